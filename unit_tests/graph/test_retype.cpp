/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes the element types of a graph's inputs and results.
 */
#include "transformations/graph/retype.h"
#include "unit_tests/graph/graph_text.h"

namespace
{

const char model[] = "%0 = parameter f32[4] name=\"x\"\n"
                     "%1 = relu %0 : f32[4] names={\"r\"}\n"
                     "%2 = add %0, %1\n"
                     "result %2 name=\"y\"\n"
                     "result %1 name=\"z\"\n";

void
expect_valid(xm_graph *g)
{
    xm_error err = {};
    xm_strbuf report = {};
    EXPECT_EQ(xm_graph_validate(g, &report, &err), XM_OK)
        << err.text << xm_strbuf_text(&report);
    xm_strbuf_free(&report);
}

TEST(Retype, AnInputIsConvertedForAllItsUsers)
{
    Graph g = parse(model);
    xm_error err = {};
    ASSERT_EQ(xm_graph_set_input_type(g.get(), 0, XM_F16, &err), XM_OK) << err.text;
    const xm_node *x = g->first, *convert = x->next;
    EXPECT_EQ(types(x), "f16[4]");
    EXPECT_EQ(x->out[0].n_uses, 1u);
    EXPECT_EQ(convert->op, XM_OP_CONVERT);
    EXPECT_EQ(types(convert), "f32[4]");
    EXPECT_EQ(convert->out[0].n_uses, 2u);
    expect_valid(g.get());
}

TEST(Retype, AResultIsConvertedAndKeepsItsNames)
{
    Graph g = parse(model);
    xm_error err = {};
    ASSERT_EQ(xm_graph_set_result_type(g.get(), 1, XM_I32, &err), XM_OK) << err.text;
    const xm_node *z = g->last, *convert = xm_in(z, 0)->node;
    EXPECT_EQ(convert->op, XM_OP_CONVERT);
    EXPECT_EQ(types(convert), "i32[4]");
    EXPECT_EQ(xm_in(convert, 0)->node->op, XM_OP_RELU);
    ASSERT_EQ(z->out[0].n_names, 1u);
    EXPECT_STREQ(z->out[0].names[0], "r");
    expect_valid(g.get());
}

TEST(Retype, TheSameTypeChangesNothing)
{
    Graph g = parse(model);
    const std::string before = print(g.get());
    xm_error err = {};
    EXPECT_EQ(xm_graph_set_input_type(g.get(), 0, XM_F32, &err), XM_OK);
    EXPECT_EQ(xm_graph_set_result_type(g.get(), 0, XM_F32, &err), XM_OK);
    EXPECT_EQ(print(g.get()), before);
}

TEST(Retype, RefusesWhatHasNoTensors)
{
    Graph g = parse(model);
    const std::string before = print(g.get());
    for (const xm_element type : {XM_U4, XM_STRING, XM_DYNAMIC, XM_NF4}) {
        xm_error in = {}, out = {};
        EXPECT_EQ(xm_graph_set_input_type(g.get(), 0, type, &in), XM_INVALID);
        EXPECT_EQ(xm_graph_set_result_type(g.get(), 0, type, &out), XM_INVALID);
        EXPECT_NE(std::string(in.text).find(
                      "has element type f32 and cannot take tensors of element type"),
                  std::string::npos)
            << in.text;
    }
    xm_error in = {}, out = {};
    EXPECT_EQ(xm_graph_set_input_type(g.get(), 1, XM_F16, &in), XM_INVALID);
    EXPECT_STREQ(in.text, "there is no input 1");
    EXPECT_EQ(xm_graph_set_result_type(g.get(), 2, XM_F16, &out), XM_INVALID);
    EXPECT_STREQ(out.text, "there is no result 2");
    EXPECT_EQ(print(g.get()), before);
}

} // namespace
