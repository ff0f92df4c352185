/* SPDX-License-Identifier: Apache-2.0
 *
 * Building and editing: uses, order, removal, sorting.
 */
#include <ctime>

#include "unit_tests/graph/graph_text.h"

namespace
{

void
expect_valid(xm_graph *g)
{
    xm_error err = {};
    xm_strbuf report = {};
    EXPECT_EQ(xm_graph_validate(g, &report, &err), XM_OK)
        << err.text << xm_strbuf_text(&report);
    xm_strbuf_free(&report);
}

const char chain[] = "%0 = parameter f32[4] name=\"x\"\n"
                     "%1 = relu %0 : f32[4] names={\"r\"}\n"
                     "%2 = exp %1\n"
                     "%3 = add %1, %2\n"
                     "result %3 name=\"y\"\n";

TEST(Edit, ReplaceMovesUsesAndNames)
{
    Graph g = parse(chain);
    xm_value *x = &node(g.get(), 0)->out[0], *relu = &node(g.get(), 1)->out[0];
    EXPECT_EQ(relu->n_uses, 2u);
    xm_value_replace(g.get(), relu, x);
    EXPECT_EQ(relu->n_uses, 0u);
    EXPECT_EQ(x->n_uses, 3u);
    EXPECT_STREQ(x->names[0], "r");
    EXPECT_TRUE(xm_node_remove_dead(g.get(), relu->node));
    EXPECT_EQ(x->n_uses, 2u);
    EXPECT_EQ(g->n_nodes, 4u);
    expect_valid(g.get());
}

TEST(Edit, RemoveDeadGoesUpwards)
{
    Graph g = parse(chain);
    xm_node *add = node(g.get(), 3);
    EXPECT_FALSE(xm_node_remove_dead(g.get(), add));
    xm_node_set_in(g->last, 0, &node(g.get(), 0)->out[0]);
    EXPECT_TRUE(xm_node_remove_dead(g.get(), add));
    EXPECT_EQ(g->n_nodes, 2u);
    EXPECT_EQ(g->first->out[0].n_uses, 1u);
    EXPECT_FALSE(xm_graph_remove_dead(g.get()));
    expect_valid(g.get());
}

TEST(Edit, GraphRemoveDeadKeepsParametersAndStates)
{
    Graph g = parse("%0 = parameter f32[4]\n%1 = relu %0\n%2 = exp %1\n"
                    "%3 = read_value f32[4] variable=\"s\"\n"
                    "%4 = assign %3 variable=\"s\"\n");
    EXPECT_TRUE(xm_graph_remove_dead(g.get()));
    EXPECT_EQ(g->n_nodes, 3u);
    expect_valid(g.get());
}

TEST(Edit, SortIsStableAndRestoresOrder)
{
    Graph g = parse(chain);
    std::string before = print(g.get());
    xm_error err = {};
    ASSERT_EQ(xm_graph_sort(g.get(), &err), XM_OK);
    EXPECT_EQ(print(g.get()), before);
    xm_node_move_before(g.get(), node(g.get(), 3), node(g.get(), 0));
    EXPECT_EQ(g->first->id, 3u);
    EXPECT_NE(xm_graph_validate(g.get(), nullptr, &err), XM_OK);
    err = {};
    ASSERT_EQ(xm_graph_sort(g.get(), &err), XM_OK) << err.text;
    EXPECT_EQ(print(g.get()), before);
    expect_valid(g.get());
}

TEST(Edit, SortNamesACycleAndKeepsTheGraph)
{
    Graph g = parse(chain);
    std::string before;
    xm_error err = {};
    xm_node_set_in(node(g.get(), 1), 0, &node(g.get(), 2)->out[0]);
    before = print(g.get());
    EXPECT_EQ(xm_graph_sort(g.get(), &err), XM_INVALID);
    EXPECT_NE(strstr(err.text, "cycle"), nullptr) << err.text;
    EXPECT_EQ(print(g.get()), before);
    EXPECT_EQ(g->n_nodes, 5u);
}

TEST(Edit, InferFollowsADeclaredType)
{
    Graph g =
        parse("%0 = parameter f32[batch,8]\n%1 = shape_of %0\n%2 = relu %0\nresult %2");
    g->first->out[0].type.shape.dim[0] = xm_dim_const(3);
    ASSERT_EQ(xm_graph_infer(g.get()), XM_OK);
    EXPECT_EQ(types(g->last), "f32[3,8]");
    EXPECT_EQ(content(&node(g.get(), 1)->out[0]), "{3, 8}");
    g->first->out[0].type.shape.dim[1] = xm_dim_const(-3);
    EXPECT_EQ(xm_graph_infer(g.get()), XM_INVALID);
    EXPECT_NE(strstr(g->err.text, "%0 (parameter)"), nullptr) << g->err.text;
}

TEST(Edit, FindsValuesByAnyName)
{
    Graph g =
        parse("%0 = parameter f32[4] name=\"x\" names={\"a\",\"b\"} # \"friend\"\n"
              "%1 = relu %0 : f32[4] names={\"out\"}\nresult %1 name=\"y\" # \"last\"");
    for (const char *name : {"x", "a", "b", "friend"})
        EXPECT_EQ(xm_graph_find_value(g.get(), name), &g->first->out[0]) << name;
    for (const char *name : {"y", "out", "last"})
        EXPECT_EQ(xm_graph_find_value(g.get(), name), &g->last->out[0]) << name;
    EXPECT_EQ(xm_graph_find_value(g.get(), "z"), nullptr);
    EXPECT_EQ(xm_graph_parameter(g.get(), "x"), g->first);
    EXPECT_EQ(xm_graph_parameter(g.get(), "y"), nullptr);
}

TEST(Build, FailsSoftlyAndKeepsTheFirstCause)
{
    Graph g(xm_graph_create("t"));
    xm_builder b = xm_builder_at_end(g.get());
    xm_type t = {XM_F32, {1, {xm_dim_const(4)}}}, u = {XM_F32, {1, {xm_dim_const(5)}}};
    xm_value *x = xm_parameter(&b, "x", &t), *y = xm_parameter(&b, "y", &u);
    xm_value *sum = xm_op2(&b, XM_OP_ADD, x, y);
    EXPECT_EQ(sum, nullptr);
    EXPECT_EQ(x->n_uses, 0u);
    EXPECT_EQ(xm_op1(&b, XM_OP_RELU, sum), nullptr);
    EXPECT_EQ(xm_result(&b, "y", sum), nullptr);
    EXPECT_EQ(g->err.status, XM_INVALID);
    EXPECT_NE(strstr(g->err.text, "add: operands 0 and 1"), nullptr) << g->err.text;
    EXPECT_EQ(xm_op1(&b, XM_OP_CONCAT, x), nullptr); /* lacks the required attribute */
    EXPECT_EQ(g->n_nodes, 2u);
}

TEST(Build, Helpers)
{
    Graph g(xm_graph_create("t"));
    xm_builder b = xm_builder_at_end(g.get());
    xm_dim d[2] = {xm_dim_symbol(&g->dims, "batch"), xm_dim_const(8)};
    xm_type t = {XM_F32, {2, {d[0], d[1]}}};
    const int64_t order[] = {1, 0};
    xm_value *x = xm_parameter(&b, "x", &t);
    xm_value *y = xm_op2(&b, XM_OP_UNSQUEEZE, xm_transpose(&b, x, order, 2),
                         xm_const_ints(&b, XM_I64, &order[1], -1));
    EXPECT_EQ(print(y->type), "f32[1,8,batch]");
    y = xm_reshape(&b, xm_convert(&b, y, XM_F16), d, 2);
    EXPECT_EQ(print(y->type), "f16[batch,8]");
    xm_value *c = xm_const_float(&b, XM_F16, 0.5f);
    float f = 0;
    int64_t v[4] = {};
    EXPECT_TRUE(xm_value_is_scalar_const(c, &f));
    EXPECT_EQ(f, 0.5f);
    EXPECT_FALSE(xm_value_is_scalar_const(x, &f));
    EXPECT_EQ(xm_value_const_ints(xm_const_ints(&b, XM_I32, order, 2), v, 4), 2);
    EXPECT_EQ(v[0], 1);
    EXPECT_EQ(xm_value_const_ints(xm_const_ints(&b, XM_I32, order, 2), v, 1), -1);
    EXPECT_EQ(xm_value_const_ints(x, v, 4), -1);
    EXPECT_TRUE(xm_value_is_const(c));
    ASSERT_TRUE(xm_read_value(&b, "s", &t, xm_none(g.get())));
    ASSERT_TRUE(xm_assign(&b, "s", x));
    xm_builder front = xm_builder_before(g.get(), g->first);
    ASSERT_TRUE(xm_const_float(&front, XM_F32, 1));
    EXPECT_EQ(g->first->op, XM_OP_CONST);
    expect_valid(g.get());
}

struct Counted {
    xm_mapping base;
    static int freed;
};
int Counted::freed = 0;

TEST(Build, MappingsDieWithTheirLastUser)
{
    Counted m = {{1, [](xm_mapping *) { Counted::freed++; }, nullptr}};
    Graph g(xm_graph_create("t"));
    ASSERT_EQ(xm_graph_add_mapping(g.get(), &m.base), XM_OK);
    xm_mapping_unref(&m.base);
    EXPECT_EQ(Counted::freed, 0);
    g.reset();
    EXPECT_EQ(Counted::freed, 1);
    xm_mapping_unref(nullptr);
    xm_graph_destroy(nullptr);
}

TEST(Build, ManyNodesAreFast)
{
    Graph g(xm_graph_create("t"));
    xm_builder b = xm_builder_at_end(g.get());
    xm_type t = {XM_F32, {2, {xm_dim_symbol(&g->dims, "batch"), xm_dim_const(8)}}};
    xm_value *x = xm_parameter(&b, "x", &t), *y = x;
    const std::clock_t start = std::clock(); /* processor time */
    for (int i = 0; i < 10000; i++)
        y = xm_op2(&b, XM_OP_ADD, xm_op1(&b, XM_OP_RELU, y), x);
    ASSERT_TRUE(xm_result(&b, "y", y));
    expect_valid(g.get());
    xm_error err = {};
    EXPECT_EQ(xm_graph_sort(g.get(), &err), XM_OK);
    xm_node_set_in(g->last, 0, x);
    EXPECT_TRUE(xm_node_remove_dead(g.get(), y->node));
    EXPECT_EQ(g->n_nodes, 2u);
    /* loose, because sanitizers are slow */
    EXPECT_LT(std::clock() - start, 10 * CLOCKS_PER_SEC);
}

} // namespace
