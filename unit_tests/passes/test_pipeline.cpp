/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of passes and its runner: order, names, skipping, stopping, dumps, reports.
 */
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <unistd.h>

#include "unit_tests/passes/moe_text.h"
#include "unit_tests/passes/pass_test.h"

TEST(Pipeline, EveryRowHasNamesAndAReason)
{
    size_t n;
    const xm_pass *p = xm_passes(&n);
    std::set<std::string> names;
    for (size_t i = 0; i < n; i++) {
        EXPECT_TRUE(names.insert(p[i].name).second);
        EXPECT_TRUE(names.insert(p[i].public_name).second);
        EXPECT_GT(std::string(p[i].why_here).size(), 5u);
        EXPECT_EQ(xm_pass_find(p[i].name), &p[i]);
        EXPECT_EQ(xm_pass_find(p[i].public_name), &p[i]);
    }
    EXPECT_TRUE(xm_pass_find("FuseVectorizedMOE3GEMM"));
    EXPECT_TRUE(xm_pass_find("ConvertMOEToMOECompressed"));
    EXPECT_TRUE(xm_pass_find("FuseMOE3GemmCompressed"));
    EXPECT_FALSE(xm_pass_find("fuse"));
}

TEST(Pipeline, KnowsWhatOpenVINOCallsItsPasses)
{
    const xm_pass *lower = xm_pass_find("lower_unfused_moe");
    EXPECT_EQ(xm_pass_find("ConvertTiledMoeBlockToGatherMatmuls"), lower);
    EXPECT_EQ(xm_pass_find("ConvertGatherMatmulToGatherMatmulCompressed"), lower);
    EXPECT_FALSE(xm_pass_find("ConvertTiledMoeBlock"));
    Graph g = parse(three_gemm_block());
    ASSERT_TRUE(g);
    xm_pass_report reports[32];
    size_t n = 32;
    const xm_pipeline_options o = {"ConvertTiledMoeBlockToGatherMatmuls", nullptr,
                                   nullptr, false};
    xm_error err = {};
    xm_pipeline_run(g.get(), nullptr, &o, reports, &n, &err);
    for (size_t i = 0; i < n; i++)
        EXPECT_EQ(reports[i].skipped, reports[i].pass == lower);
}

TEST(Pipeline, RefusesUnknownNames)
{
    Graph g = parse(three_gemm_block());
    ASSERT_TRUE(g);
    std::string why = run_pipeline(g.get(), "fuse_glu,nonsense", nullptr);
    EXPECT_NE(why.find("'nonsense'"), std::string::npos) << why;
    EXPECT_NE(why.find("'xemoe opt --list'"), std::string::npos) << why;
    EXPECT_NE(run_pipeline(g.get(), nullptr, "nowhere").find("XM_STOP"),
              std::string::npos);
}

TEST(Pipeline, SkipsByEitherName)
{
    for (const char *name : {"fuse_vectorized_moe_3gemm", "FuseVectorizedMOE3GEMM"}) {
        Graph g = parse(three_gemm_block());
        ASSERT_TRUE(g);
        EXPECT_EQ(run_pipeline(g.get(), name, "fuse_moe_3gemm_compressed"), "");
        EXPECT_EQ(count(g.get(), XM_OP_TILE), 1);
    }
}

TEST(Pipeline, StopsBehindTheNamedPassAndReports)
{
    Graph g = parse(three_gemm_block());
    ASSERT_TRUE(g);
    xm_pass_report reports[32];
    size_t n = 32;
    xm_pipeline_options o = {"fuse_glu", "fuse_vectorized_moe_3gemm", nullptr, false};
    xm_error err = {};
    ASSERT_EQ(xm_pipeline_run(g.get(), nullptr, &o, reports, &n, &err), XM_OK)
        << err.text;
    EXPECT_EQ(count(g.get(), XM_OP_MOE), 1);
    ASSERT_GT(n, 2u);
    EXPECT_STREQ(reports[n - 1].pass->name, "fuse_vectorized_moe_3gemm");
    EXPECT_TRUE(reports[n - 1].progress);
    EXPECT_EQ(reports[n - 1].nodes_after, g->n_nodes);
    EXPECT_TRUE(reports[n - 2].skipped);
}

TEST(Pipeline, FewerReportsThanRowsAreFilledAndNoMore)
{
    Graph g = parse(three_gemm_block());
    ASSERT_TRUE(g);
    xm_pass_report reports[2] = {};
    size_t n = 1;
    xm_error err = {};
    ASSERT_EQ(xm_pipeline_run(g.get(), nullptr, nullptr, reports, &n, &err), XM_OK)
        << err.text;
    EXPECT_EQ(n, 1u);
    EXPECT_EQ(reports[1].pass, nullptr);
}

TEST(Pipeline, DumpsAfterEachPassWithProgress)
{
    char folder[] = "/tmp/xm_dump_XXXXXX";
    ASSERT_TRUE(mkdtemp(folder));
    Graph g = parse(three_gemm_block());
    ASSERT_TRUE(g);
    xm_pipeline_options o = {nullptr, "fuse_vectorized_moe_3gemm", folder, false};
    xm_error err = {};
    ASSERT_EQ(xm_pipeline_run(g.get(), nullptr, &o, nullptr, nullptr, &err), XM_OK)
        << err.text;
    size_t n;
    const xm_pass *p = xm_passes(&n);
    char name[128];
    size_t row = (size_t)(xm_pass_find("fuse_vectorized_moe_3gemm") - p) + 1;
    snprintf(name, sizeof(name), "%s/%02zu_fuse_vectorized_moe_3gemm.xmg", folder, row);
    std::stringstream text;
    text << std::ifstream(name).rdbuf();
    EXPECT_EQ(text.str(), print(g.get()));
    EXPECT_EQ(system((std::string("rm -r ") + folder).c_str()), 0);
}

TEST(Pipeline, SaysThatADumpCannotBeWritten)
{
    Graph g = parse(three_gemm_block());
    ASSERT_TRUE(g);
    xm_pipeline_options o = {nullptr, nullptr, "/dev/null/folder", false};
    xm_error err = {};
    EXPECT_EQ(xm_pipeline_run(g.get(), nullptr, &o, nullptr, nullptr, &err), XM_IO);
    EXPECT_NE(std::string(err.text).find("/dev/null/folder"), std::string::npos)
        << err.text;
}

static void
expect_the_same_whatever_is_skipped(const std::string &text)
{
    const char *names[] = {
        "fuse_glu",        "fuse_vectorized_moe_3gemm", "convert_moe_to_moe_compressed",
        "fuse_moe_router", "fuse_moe_shared_expert",    "fuse_moe_3gemm_compressed"};
    for (unsigned set = 0; set < 1u << 6; set++) {
        std::string skip;
        for (unsigned i = 0; i < 6; i++)
            if (set >> i & 1)
                skip += (skip.empty() ? "" : ",") + std::string(names[i]);
        SCOPED_TRACE(skip);
        Graph g = parse(text);
        ASSERT_TRUE(g);
        auto before = evaluate(g.get());
        ASSERT_EQ(run_pipeline(g.get(), skip.c_str(), nullptr), "");
        expect_close(before, evaluate(g.get()));
    }
}

/* Skipping any set of the expert passes gives the same results. */
TEST(Pipeline, MeansTheSameWhateverIsSkipped)
{
    expect_the_same_whatever_is_skipped(replaced(three_gemm_block(), "%16 = glu %13, %14",
                                                 "%80 = swish %13\n"
                                                 "%16 = multiply %80, %14"));
}

TEST(Pipeline, MeansTheSameWithGateAndUpInOneWeight)
{
    for (const std::string &parts :
         {columns(), columns("%62", "%65"), halves("%65, %63", "%63, %81"),
          halves("%63, %81", "%65, %63")}) {
        std::string text = replaced(two_gemm_block(parts), "%5, %1, %23", "%5, %85, %23");
        text = replaced(text, "sort=value", "sort=value\n%85 = softmax %4 axis=1");
        expect_the_same_whatever_is_skipped(text);
        Graph g = parse(text);
        ASSERT_TRUE(g);
        ASSERT_EQ(run_pipeline(g.get(), nullptr, nullptr), "");
        EXPECT_EQ(count(g.get(), XM_OP_MOE_3GEMM_FUSED_COMPRESSED), 1);
    }
}

/* Each allocation fails once: the failure is reported, and nothing leaks. */
TEST(Pipeline, SurvivesEveryFailingAllocation)
{
    std::string text = replaced(three_gemm_block(), "%16 = glu %13, %14",
                                "%80 = swish %13\n%16 = multiply %80, %14");
    for (uint64_t n = 1;; n++) {
        Graph g = parse(text);
        ASSERT_TRUE(g);
        xm_error err = {};
        xm_fail_allocation(n);
        enum xm_status status =
            xm_pipeline_run(g.get(), nullptr, nullptr, nullptr, nullptr, &err);
        bool failed = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (!failed) {
            EXPECT_EQ(status, XM_OK) << err.text;
            EXPECT_GT(n, 5u);
            break;
        }
        EXPECT_NE(status, XM_OK) << "allocation " << n << " failed unnoticed";
    }
}
