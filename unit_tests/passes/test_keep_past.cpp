/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns caches that are inputs and results of a model into states.
 */
#include "transformations/passes/keep_past.h"
#include "unit_tests/passes/pass_test.h"

namespace
{

/* x appended to the cache k, and to the reordered cache v. */
const std::string stateless = R"(
        %0 = parameter f32[batch,2,tokens,4] name="x"
        %1 = parameter f32[batch,2,past,4] name="k" names={"past_key_values.0.key"}
        %2 = parameter f32[batch,2,past,4] name="v" names={"past_key_values.0.value"}
        %3 = parameter i32[batch] name="beam_idx"
        %4 = const i64[] {0}
        %5 = concat %1, %0 axis=-2 : f32[batch,2,past + tokens,4] names={"present.0.key"}
        %6 = gather %2, %3, %4
        %7 = concat %6, %0 axis=2
        %8 = multiply %5, %7
        result %8 name="y"
        result %5 name="pk"
        result %7 name="pv" names={"present.0.value"})";

const std::string stateful = R"(
        %0 = parameter f32[batch,2,tokens,4] name="x"
        %1 = read_value f32[batch,2,past,4] variable="past_key_values.0.keypresent.0.key"
        %2 = read_value f32[batch,2,past,4] variable="past_key_values.0.valuepresent.0.value"
        %3 = parameter i32[batch] name="beam_idx"
        %4 = const i64[] {0}
        %5 = concat %1, %0 axis=-2
        %6 = gather %2, %3, %4
        %7 = concat %6, %0 axis=2
        %8 = multiply %5, %7
        result %8 name="y"
        %9 = assign %5 variable="past_key_values.0.keypresent.0.key"
        %10 = assign %7 variable="past_key_values.0.valuepresent.0.value")";

TEST(KeepPast, MakesStatesOfCaches)
{
    Graph g = parse(stateless), want = parse(stateful);
    ASSERT_TRUE(g && want);
    EXPECT_TRUE(xm_pass_keep_past(g.get()));
    EXPECT_STREQ(g->err.text, "");
    expect_valid(g.get());
    EXPECT_EQ(structure(g.get()), structure(want.get()));
    EXPECT_FALSE(xm_pass_keep_past(g.get()));
}

/* Graphs that resemble a cache but must stay as they are. */
TEST(KeepPast, LeavesTheRest)
{
    const struct {
        const char *from, *to;
    } cases[] = {
        {"axis=2", "axis=1"},                                      /* along the heads */
        {"concat %6, %0 axis=2", "concat %0, %6 axis=2"},          /* before the past */
        {"result %7 name=\"pv\" names={\"present.0.value\"}", ""}, /* no result */
        {"f32[batch,2,past,4] name=\"v\"", "f32[batch,2,other,4] name=\"v\""},
    };
    for (const auto &c : cases) {
        std::string text = replaced(stateless, c.from, c.to);
        if (strstr(c.to, "axis=1"))
            text = replaced(text, "multiply %5, %7", "multiply %5, %5");
        if (strstr(c.to, "other"))
            text = replaced(replaced(text, "multiply %5, %7", "multiply %5, %5"),
                            "result %7 name=\"pv\" names={\"present.0.value\"}",
                            "%9 = parameter f32[batch,2,past,4] name=\"w\"\n"
                            "%10 = exp %9\nresult %10 name=\"z\"");
        SCOPED_TRACE(text);
        Graph g = parse(text);
        ASSERT_TRUE(g);
        const std::string before = print(g.get());
        EXPECT_FALSE(xm_pass_keep_past(g.get()));
        EXPECT_EQ(print(g.get()), before);
    }
}

} // namespace
