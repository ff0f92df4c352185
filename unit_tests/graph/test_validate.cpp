/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs that are broken in one way each, and the validator's error text.
 */
#include <functional>

#include "unit_tests/graph/graph_text.h"

namespace
{

const char text[] = "%0 = parameter f32[batch,4] name=\"x\"\n"
                    "%1 = const f32[4] {1, 2, 3, 4}\n"
                    "%2 = add %0, %1\n"
                    "%3 = gelu %2 # \"act\"\n"
                    "%4 = read_value f32[batch,4] variable=\"s\"\n"
                    "%5 = assign %3 variable=\"s\"\n"
                    "%6 = convert %3 to=f16\n"
                    "%7 = clamp %3 min=0 max=1\n"
                    "result %3 name=\"y\"\n"
                    "result %2 name=\"z\"\n";

const struct {
    std::function<void(xm_graph *)> damage;
    const char *error;
} rows[] = {
    {[](xm_graph *g) { node(g, 3)->out[0].type.element = XM_F16; },
     "%3 (gelu act): result 0 is f16[batch,4], but its operands give f32[batch,4]"},
    {[](xm_graph *g) { node(g, 3)->out[0].type.shape.dim[0] = xm_dim_const(1); },
     "f32[1,4]"},
    {[](xm_graph *g) { node(g, 3)->attr.gelu.approximation = 7; }, "unknown value 7"},
    {[](xm_graph *g) { node(g, 6)->attr.convert.element = (xm_element)99; },
     "not an element type"},
    {[](xm_graph *g) { node(g, 7)->attr.clamp.min = 0.0f / 0.0f; }, "not a number"},
    {[](xm_graph *g) { node(g, 5)->attr.name.name = nullptr; }, "variable is missing"},
    {[](xm_graph *g) { node(g, 4)->attr.name.name = ""; }, "variable is empty"},
    {[](xm_graph *g) { node(g, 5)->attr.name.name = "t"; },
     "'t' is assigned, but never read"},
    {[](xm_graph *g) { g->last->attr.name.name = "y"; }, "two results have the name 'y'"},
    {[](xm_graph *g) { node(g, 1)->attr.data.n_bytes = 12; }, "takes 16 bytes, not 12"},
    {[](xm_graph *g) { node(g, 1)->attr.data.bytes = nullptr; }, "no bytes"},
    {[](xm_graph *g) { node(g, 3)->n_in = 0; }, "it has 0 operands"},
    {[](xm_graph *g) { node(g, 3)->out[0].n_uses = 1; }, "uses, expected"},
    {[](xm_graph *g) { node(g, 3)->in[0].user = node(g, 2); }, "list of uses"},
    {[](xm_graph *g) { node(g, 3)->out[0].index = 1; }, "not a result of its node"},
    {[](xm_graph *g) { node(g, 3)->id = 2; }, "the number %2 is taken"},
    {[](xm_graph *g) { node(g, 3)->id = 1000; }, "its number is not below"},
    {[](xm_graph *g) { node(g, 3)->before = nullptr; }, "list of nodes is broken"},
    {[](xm_graph *g) { g->n_nodes--; }, "the list of nodes"},
    {[](xm_graph *g) { xm_node_move_before(g, node(g, 3), g->first); },
     "%3 (gelu act): operand 0, %2, is defined later"},
};

TEST(Validate, FindsEachDamage)
{
    for (const auto &r : rows) {
        Graph g = parse(text);
        xm_error err = {};
        ASSERT_EQ(xm_graph_validate(g.get(), nullptr, &err), XM_OK) << err.text;
        r.damage(g.get());
        xm_strbuf report = {};
        EXPECT_EQ(xm_graph_validate(g.get(), &report, &err), XM_INVALID) << r.error;
        std::string s = take(&report);
        EXPECT_TRUE(strstr(err.text, r.error) || s.find(r.error) != std::string::npos)
            << r.error << "\n"
            << err.text << "\n"
            << s;
    }
}

TEST(Validate, ATensorIsAResultTwiceUnderOneName)
{
    Graph g = parse(text);
    xm_error err = {};
    g->last->attr.name.name = "y";
    xm_node_set_in(g->last, 0, &node(g.get(), 3)->out[0]);
    EXPECT_EQ(xm_graph_validate(g.get(), nullptr, &err), XM_OK) << err.text;
}

TEST(Validate, CollectsAllErrors)
{
    Graph g = parse(text);
    xm_error err = {};
    xm_strbuf report = {};
    node(g.get(), 3)->attr.gelu.approximation = 7;
    node(g.get(), 5)->attr.name.name = "t";
    EXPECT_EQ(xm_graph_validate(g.get(), &report, &err), XM_INVALID);
    EXPECT_NE(strstr(err.text, "2 errors in all"), nullptr) << err.text;
    std::string s = take(&report);
    EXPECT_NE(s.find("# \"act\"\n    ^ attribute approximation"), std::string::npos) << s;
}

const struct {
    const char *text;
    const char *error; /* NULL: the graph has no leftovers */
} leftovers[] = {
    {"%0 = const u8[2048,1024] @0\n%1 = convert %0 to=f16", "%1 (convert) would expand"},
    {"%0 = const u8[1024,1024] @0\n%1 = convert %0 to=f16", nullptr},
    {"%0 = const u8[2048,1024] @0\n%1 = convert %0 to=i32", nullptr},
    {"%0 = const f16[2048,1024] @0 # \"w\"\n%1 = const f16[2048,1] @1\n%2 = multiply %1, "
     "%0",
     "the weight %0 w (4194304 bytes) to f16"},
    {"%0 = weight f32[2048,1024] f16 @0\n%1 = const f32[] {2}\n%2 = multiply %0, %1",
     "(multiply)"},
    {"%0 = const f16[2048,1024] @0\n%1 = parameter f16[t,1024]\n%2 = add %0, %1",
     nullptr},
    {"%0 = const u8[2048,1024] @0\n%1 = const i64[3] {2048, 8, 128}\n%2 = reshape %0, "
     "%1\n"
     "%3 = convert %2 to=f16",
     "%3 (convert)"},
    {"%0 = const u8[2048,1024] @0\n%1 = parameter i64[t]\n%2 = const i64[] {0}\n"
     "%3 = gather %0, %1, %2\n%4 = convert %3 to=f16",
     nullptr},
};

TEST(Validate, RefusesConstantsThatNothingReads)
{
    Graph g = parse("%0 = const u6[4] @0 # \"w\"\n%1 = convert %0 to=f16\n"
                    "result %1 name=\"r\"");
    xm_error err = {};
    EXPECT_EQ(xm_graph_check_leftovers(g.get(), &err), XM_UNSUPPORTED);
    EXPECT_STREQ(err.text, "%0 (const w) has element type u6, which is not supported");
}

TEST(Validate, RefusesLeftoverDequantisation)
{
    for (const auto &r : leftovers) {
        Graph g = parse(r.text);
        xm_error err = {};
        EXPECT_EQ(xm_graph_check_leftovers(g.get(), &err), r.error ? XM_INVALID : XM_OK)
            << r.text;
        if (r.error) {
            EXPECT_NE(strstr(err.text, r.error), nullptr) << err.text;
        }
    }
}

} // namespace
