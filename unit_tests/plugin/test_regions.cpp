/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs with sizes that depend on data: steps on the host run between kernels.
 */
#include "unit_tests/plugin/plugin_test.h"
#include "unit_tests/plugin/r0_graph.h"

namespace
{

class Regions : public OpenClTest
{
  protected:
    void expect_equal(const std::string &text, int64_t tokens, float tolerance)
    {
        std::vector<Tensor> in = {random_tensor(XM_F32, {tokens, 8}, 3),
                                  random_tensor(XM_F32, {tokens, 4}, 4)};
        Program p =
            must_compile(engine, parse(text), {{"INFERENCE_PRECISION_HINT", "f32"}});
        ASSERT_TRUE(p);
        Request r = make_request(p.get());
        Graph g = parse(text);
        auto want = reference(g.get(), in);
        auto got = must_infer(r.get(), in);
        ASSERT_EQ(got.size(), 1u);
        expect_rows(got[0].get(), want[0].get(), tolerance, "result");
    }
};

TEST_F(Regions, PerExpertFormEqualsTheReference)
{
    expect_equal(r0_graph(), 5, 1e-5f);
}

TEST_F(Regions, ExpertsWithoutTokensAreEmpty)
{
    expect_equal(r0_graph(), 1, 1e-5f);
}

/* A table whose length depends on data is read twice on the host, and by a kernel in between. */
TEST_F(Regions, AResultIsThereBeforeTheRegionsLastNode)
{
    expect_equal(R"(
%0 = parameter f32[tokens,8] name="x"
%1 = parameter f32[tokens,4] name="l"
%2 = const i64[2] {0, 1}
%3 = reduce_max %1, %2
%4 = convert %3 to=i64
%5 = const i64[] {4}
%6 = add %4, %5
%7 = const i64[] {0}
%8 = const i64[] {1}
%9 = range %7, %6, %8 output_type=f32
%10 = cos %9
%11 = const i64[1] {1}
%12 = gather %10, %11, %7
%13 = multiply %0, %12
%14 = const i64[1] {2}
%15 = gather %10, %14, %7
%16 = multiply %13, %15
result %16 name="y"
)",
                 5, 1e-5f);
}

TEST_F(Regions, EachExpertIsOneStep)
{
    Program p = must_compile(engine, parse(r0_graph()), {});
    ASSERT_TRUE(p);
    uint32_t regions = 0;
    for (uint32_t i = 0; i < p->n_steps; i++)
        regions += p->steps[i].kind == XM_STEP_HOST && p->steps[i].region->n_nodes > 1;
    EXPECT_EQ(regions, 4u);
}

TEST_F(Regions, ASizeThatMustBePlannedIsRefused)
{
    Program p(nullptr, xm_program_unref);
    EXPECT_NE(compile(engine, parse(R"(
%0 = parameter f32[tokens,8] name="x"
%1 = non_zero %0
result %1 name="y"
)"),
                      {}, p, &err),
              XM_OK);
    EXPECT_NE(std::string(err.text).find("depends on data"), std::string::npos)
        << err.text;
}

} // namespace
