/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of logits does not depend on the rows beside it. The number of tokens of a step selects
 * the kernel, and all kernels give the same row except for the order of sums. Tested for dense
 * weights, 8-bit blocks and 4-bit blocks. CTest also runs this program with fewer processor
 * features for oneDNN (ONEDNN_MAX_CPU_ISA), which multiplies dense weights from 128 tokens on.
 */
#include "functional_tests/api/language_model.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"

namespace
{

/* The limit that `xemoe verify` calls "essentially identical". */
const double BOUND = 1e-6;

/* Returns different tokens in an order that depends on `seed`, all within a small model's
 * vocabulary. */
Ids
make_ids(size_t n, uint32_t seed)
{
    Ids ids(n);
    for (size_t i = 0; i < n; i++)
        ids[i] = static_cast<int32_t>(1 + (seed * 97 + i * i * 31 + i * 7) % 250);
    return ids;
}

class BatchRows : public testing::TestWithParam<const char *>
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
        path = folder / "model.gguf";
        const Outcome o = run({"make-model", "--arch", "gemma4-e", "--format", "gguf",
                               "--weights", GetParam(), "-o", path});
        ASSERT_EQ(o.code, 0) << o.err;
    }

    LanguageModel open(const char *chunk) const
    {
        ModelOptions options;
        options.precision = "f32";
        options.kv = "f32";
        options.chunk = chunk;
        return LanguageModel(path, options);
    }

    static void expect_same_rows(const Matrix &a, const Matrix &b)
    {
        double worst = 0;
        ASSERT_EQ(a.rows, b.rows);
        ASSERT_EQ(a.cols, b.cols);
        for (uint64_t i = 0; i < a.rows; i++)
            worst = std::max(worst, nmse(a.row(i), b.row(i)));
        EXPECT_LT(worst, BOUND);
    }

    Folder folder{"batch_rows"};
    std::string path;
};

TEST_P(BatchRows, OfManyTokensAreThoseOfFewer)
{
    const Ids ids = make_ids(200, 1);
    const Matrix many = open("512").rows(ids);
    ASSERT_EQ(many.rows, ids.size());
    for (const char *chunk : {"127", "8", "1"}) {
        SCOPED_TRACE(chunk);
        expect_same_rows(open(chunk).rows(ids), many);
    }
}

TEST_P(BatchRows, OfSeveralTextsAreThoseOfEachAlone)
{
    const LanguageModel model = open("512");
    const std::vector<Ids> texts = {make_ids(90, 1), make_ids(40, 2), make_ids(5, 3),
                                    make_ids(1, 4), make_ids(100, 5)};
    std::vector<LanguageModel::Sequence> sequences;
    std::vector<Feed> feeds;
    for (const Ids &ids : texts) {
        sequences.push_back(model.sequence());
        feeds.push_back({sequences.back().get(), ids, ids.size()});
    }
    const std::vector<Matrix> together = model.run(feeds);
    for (size_t i = 0; i < texts.size(); i++) {
        SCOPED_TRACE(texts[i].size());
        expect_same_rows(model.rows(texts[i]), together[i]);
    }
}

INSTANTIATE_TEST_SUITE_P(Weights, BatchRows,
                         testing::Values("f16", "f32", "bf16", "q8_0", "q4_0"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
