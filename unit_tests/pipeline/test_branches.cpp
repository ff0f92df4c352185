/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches on the device: each has the logits of its whole text, however it was made.
 */
#include "plugin/pipeline/branches.h"
#include "plugin/pipeline/package.h"
#include "plugin/pipeline/token_runner.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

using Ids = std::vector<int32_t>;
using Create = xm_status (*)(xm_compiled *, xm_branches **, xm_error *);

class Branches : public OpenClTest
{
  protected:
    void SetUp() override
    {
        OpenClTest::SetUp();
        if (IsSkipped())
            return;
        const xm_property properties[] = {{"INFERENCE_PRECISION_HINT", "f32"},
                                          {"KV_CACHE_PRECISION", "f32"}};
        xm_compile_options sampled = {};
        xm_graph *g = nullptr;
        sampled.sampled_logits = true;
        ASSERT_XM_OK(xm_core_create(&core, &err));
        ASSERT_XM_OK(xm_package_graph_of(XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64",
                                         nullptr, &g, &err));
        ASSERT_XM_OK(
            xm_core_compile(core, g, "GPU", properties, 2, &sampled, &compiled, &err));
    }
    void TearDown() override
    {
        xm_branches_destroy(b);
        xm_compiled_unref(compiled);
        xm_core_destroy(core);
        OpenClTest::TearDown();
    }
    void go_on(const std::vector<xm_branch_step> &steps)
    {
        std::vector<Ids> next;
        for (const xm_branch_step &s : steps) {
            next.push_back(texts.at(s.parent));
            next.back().push_back(s.id);
        }
        texts = next;
        ASSERT_XM_OK(b->ops->go_on(b, steps.data(), steps.size(), &err));
        expect_texts();
    }
    /* Returns the logits of a text that is computed alone. */
    std::vector<float> row(const Ids &text)
    {
        xm_token_runner *r = nullptr;
        uint64_t rows = 0, n = 0;
        EXPECT_EQ(xm_token_runner_create(compiled, &r, &err), XM_OK);
        EXPECT_EQ(xm_token_runner_feed(r, text.data(), text.size(), 1, &err), XM_OK);
        const float *logits = xm_token_runner_logits(r, &rows, &n);
        const std::vector<float> list(logits + (rows - 1) * n, logits + rows * n);
        xm_token_runner_destroy(r);
        return list;
    }
    void expect_texts()
    {
        for (size_t i = 0; i < texts.size(); i++) {
            uint64_t n = 0;
            const float *logits = b->ops->logits(b, i, &n);
            const std::vector<float> expected = row(texts[i]);
            ASSERT_EQ(n, expected.size());
            float worst = 0.0f;
            for (uint64_t k = 0; k < n; k++)
                worst = std::max(worst, std::fabs(logits[k] - expected[k]));
            EXPECT_LT(worst, 1e-3f) << "branch " << i;
        }
    }

    xm_core *core = nullptr;
    xm_compiled *compiled = nullptr;
    xm_branches *b = nullptr;
    std::vector<Ids> texts;
};

TEST_F(Branches, SplitEndAndChangePlaces)
{
    for (const Create create :
         {xm_branches_create_together, xm_branches_create_in_turn, xm_branches_create}) {
        uint64_t reused = 0;
        xm_branches_destroy(b);
        b = nullptr;
        texts = {{278, 265, 269, 1185, 266}};
        ASSERT_XM_OK(create(compiled, &b, &err));
        ASSERT_XM_OK(b->ops->begin(b, texts[0].data(), texts[0].size(), &reused, &err));
        expect_texts();
        go_on({{0, 11}, {0, 700}, {0, 13}});
        go_on({{2, 5}, {1, 6}, {1, 7}, {2, 8}, {1, 9}}); /* branch 0 ends */
        go_on({{4, 1000}, {3, 1001}, {3, 1002}});
        go_on({{1, 266}});
    }
}

} // namespace
