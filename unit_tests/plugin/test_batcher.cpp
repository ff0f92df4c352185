/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences that run together: each row of logits equals that of its sequence running alone.
 */
#include "plugin/gpu/batcher.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "plugin/readers/openvino_ir.h"
#include "runtime/util/memory.h"
#include "unit_tests/plugin/language_model.h"
#include "unit_tests/sample.h"

namespace
{

enum { VOCABULARY = 64, WINDOW = 7 };

/* A second result depends on all positions together, so that sequences cannot share a row. */
std::string
unmixed()
{
    return two_layers("%1", R"(
    %30 = convert %1 to=f32
    %31 = const i64[1] {1}
    %32 = reduce_sum %30, %31
    result %32 name="seen"
)");
}

/* Returns a model with the positions of tokens as an input. */
std::string
placed()
{
    std::string text = two_layers();
    const std::string head = "%18 = matmul %25, %16";
    text.replace(text.find(head), head.size(),
                 R"(%40 = parameter i64[batch,tokens] name="position_ids"
    %41 = convert %40 to=f32
    %42 = const i64[1] {-1}
    %43 = unsqueeze %41, %42
    %44 = sin %43
    %45 = add %25, %44
    %18 = matmul %45, %16)");
    return text;
}

/* A second result depends on where a run ends: sequences cannot share a row, but a run can be cut
 * into chunks. */
std::string
last_of_each()
{
    return two_layers("%1", R"(
    %30 = const i64[1] {-1}
    %31 = const i64[1] {9223372036854775807}
    %32 = const i64[1] {1}
    %33 = slice %17, %30, %31, %32, %32
    result %33 name="last"
)");
}

/* Each token depends on the mean of all tokens of the run, so that a run cannot be cut. */
std::string
joined()
{
    std::string text = two_layers();
    const std::string head = "%18 = matmul %25, %16";
    text.replace(text.find(head), head.size(), R"(%40 = const i64[1] {1}
    %41 = reduce_mean %25, %40 keep_dims=true
    %42 = add %25, %41
    %18 = matmul %42, %16)");
    return text;
}

struct text {
    xm_kv_sequence *s = nullptr;
    std::vector<int32_t> ids;
};

class Batcher : public OpenClTest
{
  protected:
    void SetUp() override
    {
        OpenClTest::SetUp();
        if (!IsSkipped())
            open(two_layers());
    }
    void TearDown() override
    {
        close();
        OpenClTest::TearDown();
    }
    void open(const std::string &model)
    {
        open(parse(model), parse(model));
    }
    void open(Graph g, Graph same)
    {
        const Properties f32 = {{"INFERENCE_PRECISION_HINT", "f32"},
                                {"XM_UBATCH", "16"},
                                {"XM_KV_BLOCK_TOKENS", "4"}};
        xm_compile_options sampled = {};
        sampled.sampled_logits = true;
        program =
            std::make_unique<Program>(must_compile(engine, std::move(g), f32, &sampled));
        whole = std::make_unique<Program>(must_compile(engine, std::move(same), f32));
        ASSERT_TRUE(*program && *whole);
        alone = std::make_unique<Request>(make_request(whole->get()));
        ASSERT_XM_OK(xm_batcher_create(program->get(), &batcher, &err));
    }
    void close()
    {
        for (auto &t : texts)
            xm_kv_sequence_destroy(t.s);
        texts.clear();
        if (program) {
            EXPECT_EQ(used(), 0u);
        }
        xm_batcher_destroy(batcher);
        batcher = nullptr;
        alone.reset();
        program.reset();
        whole.reset();
    }
    xm_kv_pool *pool()
    {
        return program->get()->kv_pool;
    }
    uint64_t used()
    {
        uint64_t n = 0;
        for (uint32_t g = 0; g < xm_kv_pool_groups(pool()); g++) {
            xm_kv_group_stats s;
            xm_kv_pool_stats(pool(), g, &s);
            n += s.used;
        }
        return n;
    }
    size_t add()
    {
        texts.push_back({});
        EXPECT_XM_OK(xm_kv_sequence_create(pool(), &texts.back().s, &err));
        return texts.size() - 1;
    }

    /* Compares with the last n rows of the sequence when it runs alone and uncut. */
    void check_rows(const text &t, const float *rows, uint64_t n, uint64_t vocabulary)
    {
        ASSERT_EQ(vocabulary, (uint64_t)VOCABULARY);
        ASSERT_NE(rows, nullptr);
        xm_request_reset(alone->get());
        const Tensor want =
            logits(alone->get(), {{std::vector<int64_t>(t.ids.begin(), t.ids.end())}});
        ASSERT_TRUE(want);
        const uint64_t first = t.ids.size() - n;
        for (uint64_t r = 0; r < n; r++) {
            const float *w = want->f + (first + r) * VOCABULARY,
                        *g = rows + r * VOCABULARY;
            float most = 0;
            for (int i = 0; i < VOCABULARY; i++)
                most = std::fmax(most, std::fabs(w[i]));
            for (int i = 0; i < VOCABULARY; i++)
                ASSERT_LE(distance(g[i], w[i]), 1e-5f * most)
                    << "row " << first + r << " of " << t.ids.size() << ", logit " << i;
        }
    }
    struct part {
        size_t text;
        std::vector<int32_t> ids;
        uint64_t wanted;
    };
    xm_status run(const std::vector<part> &parts, xm_error *why)
    {
        std::vector<xm_batcher_entry> list;
        for (const part &p : parts)
            list.push_back({texts[p.text].s, p.ids.data(), p.ids.size(), p.wanted});
        return xm_batcher_run(batcher, list.data(), (uint32_t)list.size(), why);
    }
    void must_run(const std::vector<part> &parts)
    {
        ASSERT_XM_OK(run(parts, &err));
        for (size_t i = 0; i < parts.size(); i++) {
            text &t = texts[parts[i].text];
            t.ids.insert(t.ids.end(), parts[i].ids.begin(), parts[i].ids.end());
            ASSERT_EQ(xm_kv_sequence_past(t.s), t.ids.size());
            uint64_t rows, vocabulary;
            const float *got =
                xm_batcher_logits(batcher, (uint32_t)i, &rows, &vocabulary);
            ASSERT_EQ(rows, parts[i].wanted);
            if (rows)
                check_rows(t, got, rows, vocabulary);
        }
    }
    /* Runs prompts of these lengths and then single tokens, in a batch and in a request, whose
     * shorter rows begin with padding. Expects equal bytes of the logits. */
    void expect_same_bytes(const std::vector<size_t> &lengths)
    {
        const size_t n = lengths.size(),
                     most = *std::max_element(lengths.begin(), lengths.end());
        xm_request_reset(alone->get());
        step s;
        for (size_t i = 0; i < n; i++) {
            add();
            s.padding.push_back((int64_t)(most - lengths[i]));
        }
        for (unsigned round = 0; round < 8 && !HasFailure(); round++) {
            std::vector<part> parts;
            s.ids.clear();
            for (size_t i = 0; i < n; i++) {
                const auto list = ids(round ? 1 : lengths[i], (unsigned)(10 * round + i));
                s.ids.push_back(std::vector<int64_t>(round ? 0 : most - list.size(), 3));
                s.ids[i].insert(s.ids[i].end(), list.begin(), list.end());
                parts.push_back({texts.size() - n + i, list, list.size()});
            }
            ASSERT_XM_OK(run(parts, &err));
            const Tensor want = logits(alone->get(), s);
            ASSERT_TRUE(want);
            for (size_t i = 0; i < n; i++) {
                uint64_t rows, vocabulary;
                const float *got =
                    xm_batcher_logits(batcher, (uint32_t)i, &rows, &vocabulary);
                const size_t end = (i + 1) * s.ids[i].size();
                EXPECT_EQ(memcmp(got, want->f + (end - rows) * vocabulary,
                                 rows * vocabulary * sizeof(float)),
                          0)
                    << "row " << i << " of " << n << ", run " << round;
            }
        }
    }
    static std::vector<int32_t> ids(size_t n, unsigned seed)
    {
        std::mt19937 random(seed);
        std::vector<int32_t> list(n);
        for (auto &i : list)
            i = (int32_t)(random() % VOCABULARY);
        return list;
    }

    std::unique_ptr<Program> program, whole;
    std::unique_ptr<Request> alone;
    xm_batcher *batcher = nullptr;
    std::vector<text> texts;
};

TEST_F(Batcher, MixesPromptsAndTokens)
{
    for (int i = 0; i < 4; i++)
        add();
    ASSERT_TRUE(program->get()->is_ragged);
    must_run({{0, ids(5, 1), 1}});
    must_run({{1, ids(9, 2), 9}, {0, ids(1, 3), 1}});
    must_run(
        {{0, ids(1, 4), 1}, {2, ids(3, 5), 0}, {1, ids(2, 6), 2}, {3, ids(11, 7), 1}});
    must_run(
        {{3, ids(1, 8), 1}, {2, ids(1, 9), 1}, {1, ids(1, 10), 1}, {0, ids(1, 11), 1}});
}

/* Rows beyond a chunk go into several steps; wanted rows may lie in any of them. */
TEST_F(Batcher, CutsWhatIsTooLong)
{
    for (int i = 0; i < 3; i++)
        add();
    must_run({{0, ids(50, 1), 40}, {1, ids(20, 2), 1}, {2, ids(2, 3), 2}});
    must_run({{0, ids(33, 4), 1}, {1, ids(1, 5), 1}, {2, ids(40, 6), 40}});
}

/* A batch gives the same bytes as a request, with padding or without it: prompts of several chunks,
 * then single tokens, the later of which are replayed from a recording. */
TEST_F(Batcher, RequestsGiveTheSameBytes)
{
    for (const std::vector<size_t> &lengths :
         {std::vector<size_t>{40}, {20, 20}, {21, 9, 6}, {5, 5, 17}})
        expect_same_bytes(lengths);
}

/* The same for models with position ids, experts, attention windows and embeddings per layer. */
TEST_F(Batcher, RequestsOfModelsFromFilesToo)
{
    const std::vector<std::string> models = {
        "qwen3moe-tiny/ov/int4_asym_g64", "gpt-oss-tiny/ov/int4_sym_g64",
        "gemma4-moe-tiny/ov/int4_asym_g32", "gemma4-e-tiny/ov/int4_asym_g64"};
    for (const std::string &model : sample::of(models, 1)) {
        SCOPED_TRACE(model);
        const std::string xml = XM_MODELS_DIR "/" + model + "/openvino_model.xml";
        Graph g[2] = {Graph(nullptr, xm_graph_destroy), Graph(nullptr, xm_graph_destroy)};
        for (Graph &one : g) {
            xm_graph *raw = nullptr;
            ASSERT_XM_OK(xm_openvino_ir_read(xml.c_str(), nullptr, &raw, &err));
            one.reset(raw);
        }
        close();
        open(std::move(g[0]), std::move(g[1]));
        expect_same_bytes({21, 9, 6});
    }
}

TEST_F(Batcher, RunsApartWhatCannotBeMixed)
{
    close();
    open(unmixed());
    ASSERT_FALSE(program->get()->is_ragged);
    for (int i = 0; i < 3; i++)
        add();
    must_run({{0, ids(5, 1), 1}, {1, ids(20, 2), 3}, {2, ids(1, 3), 1}});
    must_run({{2, ids(1, 4), 1}, {0, ids(1, 5), 1}, {1, ids(1, 6), 1}});
}

TEST_F(Batcher, CutsWhatCannotBeMixed)
{
    close();
    open(last_of_each());
    ASSERT_FALSE(program->get()->is_ragged);
    ASSERT_TRUE(program->get()->can_chunk);
    for (int i = 0; i < 3; i++)
        add();
    must_run({{0, ids(40, 1), 30}, {1, ids(20, 2), 3}, {2, ids(1, 3), 1}});
    must_run({{2, ids(17, 4), 17}, {0, ids(1, 5), 1}, {1, ids(1, 6), 0}});
}

/* The mask is an input that no op reads. It still needs an element for each past position. */
TEST_F(Batcher, CutsWhatCannotBeMixedWithoutMasks)
{
    std::string model = last_of_each();
    for (size_t at; (at = model.find("%2, %1")) != std::string::npos;)
        model.replace(at, 6, "%2, _");
    close();
    open(model);
    ASSERT_EQ(program->get()->key_mask, nullptr);
    ASSERT_FALSE(program->get()->is_ragged);
    add();
    must_run({{0, ids(40, 1), 30}});
    must_run({{0, ids(17, 4), 17}});
}

/* In a chunk, sequences with few tokens come first, as attention requires. */
TEST_F(Batcher, TokensThatDecodeComeFirst)
{
    std::vector<int32_t> begins;
    add();
    add();
    xm_request_set_hook(
        xm_batcher_request(batcher),
        [](xm_request *r, uint32_t step, const xm_operand *o, void *ctx, xm_error *why) {
            auto *list = static_cast<std::vector<int32_t> *>(ctx);
            if (xm_request_program(r)->steps[step].kind != XM_STEP_ATTENTION)
                return XM_OK;
            list->resize((size_t)o[XM_ATTENTION_SUBSEQUENCE_BEGINS].dim[0]);
            return xm_request_read(r, &o[XM_ATTENTION_SUBSEQUENCE_BEGINS], list->data(),
                                   why);
        },
        &begins);
    must_run({{0, ids(9, 1), 9}, {1, ids(2, 2), 2}});
    EXPECT_EQ(begins, (std::vector<int32_t>{0, 2, 11}));
}

/* Only the first result, the logits, is read back. */
TEST_F(Batcher, OnlyLogitsAreRead)
{
    close();
    open(two_layers("%1", R"(
    %30 = matmul %17, %16 transpose_b=true
    result %30 name="more"
)"));
    add();
    must_run({{0, ids(5, 1), 2}});
    must_run({{0, ids(1, 2), 1}});
    struct xm_request_stats stats;
    xm_request_stats(xm_batcher_request(batcher), &stats);
    EXPECT_EQ(stats.waits, 1u);
}

TEST_F(Batcher, AFailedRunHasNoLogits)
{
    add();
    must_run({{0, ids(5, 1), 1}});
    xm_error why = {};
    xm_request_cancel(xm_batcher_request(batcher));
    EXPECT_EQ(run({{0, ids(5, 1), 1}}, &why), XM_CANCELLED);
    uint64_t rows = 7, vocabulary = 7;
    EXPECT_EQ(xm_batcher_logits(batcher, 0, &rows, &vocabulary), nullptr);
    EXPECT_EQ(rows, 0u);
    xm_request_resume(xm_batcher_request(batcher));
    must_run({{0, ids(5, 1), 1}});
    EXPECT_EQ(run({{0, {}, 0}}, &why), XM_INVALID);
    EXPECT_EQ(xm_batcher_logits(batcher, 0, &rows, &vocabulary), nullptr);
}

TEST_F(Batcher, TokensHaveThePositionsOfTheirSequences)
{
    close();
    open(placed());
    ASSERT_TRUE(program->get()->is_ragged);
    for (int i = 0; i < 3; i++)
        add();
    must_run({{0, ids(40, 1), 40}, {1, ids(20, 2), 20}, {2, ids(3, 3), 3}});
    must_run({{2, ids(30, 4), 30}, {0, ids(1, 5), 1}, {1, ids(2, 6), 2}});
}

/* A run longer than a chunk, in one step. */
TEST_F(Batcher, TakesWholeWhatCannotBeCut)
{
    close();
    open(joined());
    ASSERT_FALSE(program->get()->can_chunk);
    EXPECT_EQ(xm_intake_chunk_tokens(program->get()), UINT64_MAX);
    add();
    add();
    must_run({{0, ids(40, 1), 3}, {1, ids(3, 2), 1}});
}

TEST_F(Batcher, TakesOverBeginnings)
{
    add();
    std::vector<int32_t> prompt = ids(30, 1);
    must_run({{0, prompt, 1}});
    add();
    ASSERT_XM_OK(xm_kv_sequence_match(texts[1].s, prompt.data(), prompt.size(), &err));
    const uint64_t found = xm_kv_sequence_past(texts[1].s);
    EXPECT_EQ(found, 28u);
    texts[1].ids.assign(prompt.begin(), prompt.begin() + (long)found);
    must_run({{1, {prompt.begin() + (long)found, prompt.end()}, 1}, {0, ids(1, 2), 1}});
}

TEST_F(Batcher, RefusesWhatMakesNoSense)
{
    for (int i = 0; i < 3; i++)
        add();
    EXPECT_EQ(run({}, &err), XM_INVALID);
    xm_error why = {};
    EXPECT_EQ(run({{0, {}, 0}}, &why), XM_INVALID);
    EXPECT_STREQ(why.text, "there are no tokens to run for sequence 0");
    why = {};
    EXPECT_EQ(run({{0, ids(2, 1), 3}}, &why), XM_INVALID);
    EXPECT_STREQ(
        why.text,
        "sequence 0: the logits of 3 tokens are requested, but only 2 tokens are run");
    why = {};
    EXPECT_EQ(run({{0, ids(2, 1), 1}, {0, ids(2, 1), 1}}, &why), XM_INVALID);
    EXPECT_STREQ(why.text, "entries 0 and 1 name the same sequence");
    why = {};
    EXPECT_EQ(
        run({{2, ids(2, 1), 1}, {0, ids(2, 1), 1}, {1, ids(2, 1), 1}, {0, ids(2, 1), 1}},
            &why),
        XM_INVALID);
    EXPECT_STREQ(why.text, "entries 1 and 3 name the same sequence");
    why = {};
    EXPECT_EQ(run({{0, {5, VOCABULARY}, 1}}, &why), XM_INVALID);
    EXPECT_EQ(xm_kv_sequence_past(texts[0].s), 0u);
    must_run({{0, ids(3, 1), 1}});
}

/* A plan serves all runs that are not larger: batches that change need no new memory. */
TEST_F(Batcher, ChangingBatchesTakeNoMoreMemory)
{
    for (int i = 0; i < 8; i++)
        add();
    std::vector<part> parts;
    for (size_t i = 0; i < 8; i++)
        parts.push_back({i, ids(2, (unsigned)i), 1});
    must_run(parts);
    struct xm_request_stats before, after;
    xm_request_stats(xm_batcher_request(batcher), &before);
    for (int round = 0; round < 3; round++) {
        for (size_t n : {8u, 5u, 7u, 6u, 8u}) {
            parts.clear();
            for (size_t i = 0; i < n; i++)
                parts.push_back({i, ids(1, (unsigned)(100 + i)), 1});
            must_run(parts);
            xm_request_stats(xm_batcher_request(batcher), &after);
            EXPECT_EQ(after.waits, 1u);
        }
    }
    EXPECT_EQ(after.activation_bytes, before.activation_bytes);
}

/* Sequences come, fork, leave and are truncated, and run in any combination. */
TEST_F(Batcher, FollowsEachSequenceThroughRandomRuns)
{
    const char *set = getenv("XM_TEST_ALL");
    const int runs = set ? 1000 : 150;
    std::mt19937 random(17);
    auto upto = [&](size_t n) { return (size_t)(random() % n); };
    for (int i = 0; i < runs && !HasFatalFailure(); i++) {
        while (texts.size() < 2 || (texts.size() < 16 && upto(3) == 0))
            add();
        if (upto(4) == 0 && texts.size() < 16) {
            const size_t from = upto(texts.size());
            xm_kv_sequence *f = nullptr;
            ASSERT_XM_OK(xm_kv_sequence_fork(texts[from].s, &f, &err));
            texts.push_back({f, texts[from].ids});
        }
        if (upto(5) == 0) {
            text &t = texts[upto(texts.size())];
            xm_kv_sequence_truncate(t.s, upto(t.ids.size() + 1));
            t.ids.resize(xm_kv_sequence_past(t.s));
        }
        std::vector<part> parts;
        for (size_t k = 0; k < texts.size(); k++) {
            if (upto(2) == 0)
                continue;
            const size_t n = upto(6) ? 1 + upto(2) : 1 + upto(24);
            parts.push_back({k, ids(n, (unsigned)random()), upto(n + 1)});
        }
        std::shuffle(parts.begin(), parts.end(), random);
        if (!parts.empty())
            must_run(parts);
        for (size_t k = texts.size(); k-- > 0;) {
            if (upto(12) == 0 || texts[k].ids.size() > 90) {
                xm_kv_sequence_destroy(texts[k].s);
                texts.erase(texts.begin() + (long)k);
            }
        }
    }
}

/* Each allocation fails once: no sequence changes, and the same run then succeeds. */
TEST_F(Batcher, EveryFailureLeavesTheSequencesAsTheyWere)
{
    add();
    add();
    must_run({{0, ids(30, 1), 1}, {1, ids(3, 2), 1}});
    const std::vector<part> next = {{0, ids(20, 3), 1}, {1, ids(1, 4), 1}};
    bool failed = true;
    for (uint64_t n = 1; failed && !HasFatalFailure(); n++) {
        xm_error why = {};
        const uint64_t before = used();
        xm_fail_allocation(n);
        const xm_status s = run(next, &why);
        failed = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (s == XM_OK) {
            for (size_t i = 0; i < 2; i++)
                xm_kv_sequence_truncate(texts[i].s, texts[i].ids.size());
            if (xm_kv_sequence_past(texts[0].s) != texts[0].ids.size())
                break; /* the window's pages are gone */
            continue;
        }
        EXPECT_STRNE(why.text, "");
        EXPECT_EQ(used(), before) << n;
        for (const text &t : texts)
            ASSERT_EQ(xm_kv_sequence_past(t.s), t.ids.size()) << n;
    }
    if (xm_kv_sequence_past(texts[0].s) == texts[0].ids.size())
        must_run(next);
}

/* A cancelled prompt no longer counts when the pool decides how much to grow. */
TEST_F(Batcher, APromptThatIsCancelledIsNotExpectedAnyMore)
{
    add();
    add();
    must_run({{0, ids(3, 1), 1}});
    const uint64_t bytes = xm_kv_pool_bytes(pool());
    xm_error why = {};
    xm_request_cancel(xm_batcher_request(batcher));
    EXPECT_EQ(run({{1, ids(100000, 2), 1}}, &why), XM_CANCELLED) << why.text;
    xm_request_resume(xm_batcher_request(batcher));
    while (xm_kv_pool_bytes(pool()) == bytes)
        ASSERT_XM_OK(run({{1, ids(64, 3), 0}}, &err));
    EXPECT_LE(xm_kv_pool_bytes(pool()), 4 * bytes);
}

} // namespace
