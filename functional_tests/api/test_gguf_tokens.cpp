/* SPDX-License-Identifier: Apache-2.0
 *
 * One compiled program and any number of tokens: each row of logits equals that of a program that
 * ran nothing else, whatever ran before, in whatever pieces, beside whatever other sequences. To
 * prove that the test finds errors, a norm that writes only its first row is planted.
 */
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "functional_tests/api/language_model.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/gguf.h"

namespace
{

/* One token, few tokens, more than a chunk of 16, 64 and 512 has; all but the first not multiples
 * of these. */
const std::vector<size_t> lengths = {1, 2, 7, 33, 129, 1025};
enum { SOME_VOCABULARY = 1400 };
constexpr int32_t NEXT = 77; /* the token decoded after a prompt */

Ids
prompt_of(size_t n)
{
    std::mt19937 random((unsigned)n);
    Ids ids(n);
    for (int32_t &id : ids)
        id = (int32_t)(random() % SOME_VOCABULARY);
    return ids;
}

void
append(Matrix *m, const Matrix &more)
{
    m->rows += more.rows;
    m->cols = more.cols;
    m->data.insert(m->data.end(), more.data.begin(), more.data.end());
}

/* Returns all rows of a prompt, and the row of the token after it. */
Matrix
rows_of(const LanguageModel &model, size_t n)
{
    const LanguageModel::Sequence s = model.sequence();
    Matrix m = model.run(s, prompt_of(n), n);
    append(&m, model.run(s, {NEXT}, 1));
    return m;
}

/* Returns the same rows, with one token in each run. */
Matrix
rows_one_by_one(const LanguageModel &model, size_t n)
{
    const LanguageModel::Sequence s = model.sequence();
    Ids ids = prompt_of(n);
    ids.push_back(NEXT);
    Matrix m;
    for (const int32_t id : ids)
        append(&m, model.run(s, {id}, 1));
    return m;
}

/* Returns the number of rows with an element that differs by more than 1e-5 of the row's largest.
 * NaN counts as different. */
size_t
rows_off(const Matrix &m, const Matrix &want)
{
    if (m.data.size() != want.data.size())
        return SIZE_MAX;
    size_t off = 0;
    for (size_t r = 0; r < want.rows; r++) {
        float largest = 0.0f, worst = 0.0f;
        bool finite = true;
        for (size_t i = r * want.cols; i < (r + 1) * want.cols; i++) {
            largest = std::max(largest, std::fabs(want.data[i]));
            worst = std::max(worst, std::fabs(m.data[i] - want.data[i]));
            finite = finite && std::isfinite(m.data[i]);
        }
        off += finite && worst <= 1e-5f * largest ? 0 : 1;
    }
    return off;
}

std::vector<size_t>
shuffled()
{
    std::vector<size_t> order = lengths;
    std::shuffle(order.begin(), order.end(), std::mt19937(11));
    return order;
}

class Tokens : public testing::TestWithParam<GgufFile>
{
  protected:
    const GgufFile file = GetParam();

    LanguageModel compile(const char *chunk = "512") const
    {
        return LanguageModel(file.path(), {"f32", "f32", chunk});
    }

    /* Returns the rows of a program that ran nothing else. */
    const Matrix &fresh(size_t n)
    {
        const auto key = std::make_pair(file.path(), n);
        if (!alone.count(key))
            alone[key] = rows_of(compile(), n);
        return alone[key];
    }

    void expect_fresh(const LanguageModel &model, const std::vector<size_t> &order)
    {
        for (const size_t n : order)
            EXPECT_EQ(rows_off(rows_of(model, n), fresh(n)), 0u) << n << " tokens";
    }

    static void TearDownTestSuite()
    {
        alone.clear();
    }

  private:
    static inline std::map<std::pair<std::string, size_t>, Matrix> alone;
};

TEST_P(Tokens, OfAnyNumberInAnyOrder)
{
    const LanguageModel model = compile();
    expect_fresh(model, lengths);
    expect_fresh(model, shuffled());
}

TEST_P(Tokens, InChunksOfAnySize)
{
    for (const char *chunk : {"16", "64"}) {
        SCOPED_TRACE(chunk);
        const LanguageModel model = compile(chunk);
        expect_fresh(model, lengths);
        if (test_all())
            expect_fresh(model, shuffled());
    }
}

TEST_P(Tokens, OneByOne)
{
    const LanguageModel model = compile();
    EXPECT_EQ(rows_off(rows_one_by_one(model, 33), fresh(33)), 0u);
    EXPECT_EQ(rows_off(rows_one_by_one(model, 7), fresh(7)), 0u);
}

/* Runs prompts of several lengths together, then the token after each of them. */
TEST_P(Tokens, BesideNeighbours)
{
    const std::vector<std::vector<size_t>> groups = {{7, 129, 1, 33}, {33, 2, 1025, 7}};
    for (const char *chunk : {"64", "512"}) {
        SCOPED_TRACE(chunk);
        const LanguageModel model = compile(chunk);
        for (const auto &group : groups) {
            std::vector<LanguageModel::Sequence> sequences;
            std::vector<Feed> prompts, next;
            for (const size_t n : group) {
                sequences.push_back(model.sequence());
                prompts.push_back({sequences.back().get(), prompt_of(n), n});
                next.push_back({sequences.back().get(), {NEXT}, 1});
            }
            std::vector<Matrix> rows = model.run(prompts);
            const std::vector<Matrix> behind = model.run(next);
            for (size_t i = 0; i < group.size(); i++) {
                append(&rows[i], behind[i]);
                EXPECT_EQ(rows_off(rows[i], fresh(group[i])), 0u) << group[i];
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Families, Tokens, testing::ValuesIn(some(gguf_families, 2)),
                         gguf_name);

/* ---- a planted fault ------------------------------------------------------------------- */

/* Plants kernels of the norms for CPU devices that write only the first row. */
void
plant_fault(const Folder &folder)
{
    const std::string loop = "r < span_end(rows)";
    for (const char *name : {"rms_norm_vec.cl", "row_chain_vec.cl"}) {
        std::string text = read_file(std::string(XM_KERNELS_DIR "/") + name);
        const size_t at = text.find(loop);
        ASSERT_NE(at, text.npos) << name;
        folder.write(name, text.insert(at + loop.size(), " && r == 0"));
    }
}

/* Exit codes of a child process, because kernels are read once in a process: no rows differ, or
 * some do. */
enum { NONE_OFF = 40, SOME_OFF };

[[noreturn]] void
compare(const GgufFile &file, const char *kernels)
{
    if (kernels)
        setenv("XM_KERNEL_DIR", kernels, 1);
    setenv("XM_FORCE", "vec", 1);
    const LanguageModel whole(file.path()), pieces(file.path(), {"f32", "f32", "16"});
    const Matrix want = rows_of(whole, 33);
    const bool chunks = rows_off(rows_of(pieces, 33), want) > 0;
    const bool tokens = rows_off(rows_one_by_one(whole, 33), want) > 0;
    if (chunks != tokens)
        exit(1);
    exit(chunks ? SOME_OFF : NONE_OFF);
}

using Faults = testing::TestWithParam<GgufFile>;

TEST_P(Faults, ANormThatWritesItsFirstRowOnlyIsFound)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const Folder kernels("one_row");
    plant_fault(kernels);
    EXPECT_EXIT(compare(GetParam(), nullptr), testing::ExitedWithCode(NONE_OFF), "");
    EXPECT_EXIT(compare(GetParam(), kernels.path.c_str()),
                testing::ExitedWithCode(SOME_OFF), "");
}

INSTANTIATE_TEST_SUITE_P(Families, Faults,
                         testing::ValuesIn(some(std::vector{gguf_files[0], gguf_files[1]},
                                                1)),
                         gguf_name);

/* ---- several programs ------------------------------------------------------------------- */

/* A model without experts gives the same results beside a model with experts. */
TEST(Programs, ChangeNothingForEachOther)
{
    const std::string dense = gguf_files[2].path(), experts = gguf_files[1].path();
    const Matrix first = rows_of(LanguageModel(dense), 129);
    const LanguageModel beside(experts);
    rows_of(beside, 129);
    const LanguageModel again(dense);
    EXPECT_TRUE(rows_of(again, 129).data == first.data) << "compiled behind the other";
    rows_of(beside, 33);
    EXPECT_TRUE(rows_of(again, 129).data == first.data) << "run behind the other";
}

/* ---- masks ----------------------------------------------------------------------------- */

/* The inputs of a request, each followed by bytes that no kernel may read as input. */
class Guarded
{
  public:
    Guarded(ov_compiled_model_t *compiled, int guard)
        : request(make_request(compiled)), guard(guard)
    {
    }

    /* Returns the rows of the next tokens. */
    Floats run(const Ids &ids)
    {
        const size_t n = ids.size();
        past += n;
        std::vector<int64_t> positions;
        for (size_t i = past - n; i < past; i++)
            positions.push_back((int64_t)i);
        set("input_ids", std::vector<int64_t>(ids.begin(), ids.end()));
        set("attention_mask", std::vector<int64_t>(past, 1));
        set("position_ids", positions);
        int64_t dims[] = {1};
        int32_t beam = 0;
        ov_tensor_t *t = nullptr;
        EXPECT_EQ(ov_tensor_create_from_host_ptr(I32, {1, dims}, &beam, &t), OK);
        const Tensor tensor(t);
        EXPECT_EQ(ov_infer_request_set_tensor(request.get(), "beam_idx", t), OK);
        EXPECT_EQ(ov_infer_request_infer(request.get()), OK) << last_error();
        return logits();
    }

  private:
    enum { BEHIND = 256 };
    const Request request;
    const int guard;
    size_t past = 0;
    std::map<std::string, std::vector<int64_t>> inputs;

    void set(const std::string &name, const std::vector<int64_t> &values)
    {
        std::vector<int64_t> &kept = inputs[name];
        kept = values;
        kept.resize(values.size() + BEHIND);
        memset(&kept[values.size()], guard, BEHIND * sizeof(kept[0]));
        int64_t dims[] = {1, (int64_t)values.size()};
        ov_tensor_t *t = nullptr;
        EXPECT_EQ(ov_tensor_create_from_host_ptr(I64, {2, dims}, kept.data(), &t), OK);
        const Tensor tensor(t);
        EXPECT_EQ(ov_infer_request_set_tensor(request.get(), name.c_str(), t), OK)
            << last_error();
    }

    Floats logits() const
    {
        ov_tensor_t *t = nullptr;
        void *data = nullptr;
        size_t n = 0;
        EXPECT_EQ(ov_infer_request_get_tensor(request.get(), "logits", &t), OK);
        const Tensor tensor(t);
        EXPECT_EQ(ov_tensor_data(t, &data), OK);
        EXPECT_EQ(ov_tensor_get_size(t, &n), OK);
        return Floats((const float *)data, (const float *)data + n);
    }
};

class Masks : public testing::TestWithParam<GgufFile>
{
};

/* Layers with and without a window read different numbers of keys of one mask. NaN bytes after
 * the mask change nothing, for any cache type. */
TEST_P(Masks, EndWhereTheyEnd)
{
    const Ids ids = GgufPrompt(GetParam(), "long").ids;
    for (const char *kv : {"f16", "i8", "u4"}) {
        SCOPED_TRACE(kv);
        const LanguageModel model(GetParam().path(), {"f16", kv, "64", "NO"});
        Guarded zeros(model.handle(), 0), nans(model.handle(), 0x7f);
        for (const Ids &next : {ids, Ids{NEXT}, Ids{5, 6, 7}}) {
            const Floats want = zeros.run(next), found = nans.run(next);
            for (const float x : found)
                ASSERT_TRUE(std::isfinite(x));
            EXPECT_TRUE(found == want) << next.size() << " tokens";
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Families, Masks,
                         testing::ValuesIn(some(std::vector{gguf_files[1], gguf_files[3]},
                                                1)),
                         gguf_name);

} // namespace
