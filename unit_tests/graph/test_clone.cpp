/* SPDX-License-Identifier: Apache-2.0
 *
 * Clones of graphs: a clone prints the same text and shares nothing that an edit could change.
 */
#include "runtime/util/memory.h"
#include "unit_tests/graph/graph_text.h"

namespace
{

const char source[] = "%0 = parameter f32[batch,tokens,8] name=\"x\"\n"
                      "%1 = const i64[3] {0, -1, 4}\n"
                      "%2 = reshape %0, %1 special_zero=true\n"
                      "%3 = relu %2 : f32[batch,2*tokens,4] as f16 names={\"r\"}\n"
                      "%4 = exp %3\n"
                      "%5 = add %3, %4\n"
                      "result %5 name=\"y\"\n";

/* A mapping that destroys its graph when the last clone releases it. */
struct Owner {
    xm_mapping base;
    xm_graph *graph;
};

void
free_owner(xm_mapping *m)
{
    Owner *o = reinterpret_cast<Owner *>(m);
    xm_graph_destroy(o->graph);
    delete o;
}

TEST(Clone, PrintsTheSameAndOutlivesItsSource)
{
    Owner *owner = new Owner{{1, free_owner, nullptr}, parse(source).release()};
    const std::string text = print(owner->graph);
    xm_graph *copy = nullptr;
    xm_error err = {};
    ASSERT_EQ(xm_graph_clone(owner->graph, &owner->base, &copy, &err), XM_OK) << err.text;
    xm_mapping_unref(&owner->base);
    Graph clone(copy);
    EXPECT_EQ(print(clone.get()), text);
    xm_strbuf report = {};
    EXPECT_EQ(xm_graph_validate(clone.get(), &report, &err), XM_OK)
        << xm_strbuf_text(&report);
    xm_strbuf_free(&report);
}

TEST(Clone, EditsStayInTheClone)
{
    Graph g = parse(source);
    const std::string text = print(g.get());
    xm_graph *copy = nullptr;
    xm_error err = {};
    ASSERT_EQ(xm_graph_clone(g.get(), nullptr, &copy, &err), XM_OK);
    Graph clone(copy);
    xm_node *exp = clone->last->before->before;
    ASSERT_EQ(exp->op, XM_OP_EXP);
    xm_value_replace(clone.get(), &exp->out[0], xm_in(exp, 0));
    EXPECT_TRUE(xm_node_remove_dead(clone.get(), exp));
    EXPECT_NE(print(clone.get()), text);
    EXPECT_EQ(print(g.get()), text);
}

TEST(Clone, EveryFailedAllocationIsAnError)
{
    Graph g = parse(source);
    bool seen = true;
    for (uint64_t n = 1; seen; n++) {
        xm_graph *copy = nullptr;
        xm_error err = {};
        xm_fail_allocation(n);
        xm_status s = xm_graph_clone(g.get(), nullptr, &copy, &err);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(s, seen ? XM_NO_MEMORY : XM_OK);
        EXPECT_EQ(copy != nullptr, !seen);
        xm_graph_destroy(copy);
    }
}

} // namespace
