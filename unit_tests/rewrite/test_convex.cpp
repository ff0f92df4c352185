/* SPDX-License-Identifier: Apache-2.0
 *
 * Convex sets on random graphs, compared with brute force. Sums are members, reshapes are passed
 * through, all other ops are outside.
 */
#include <functional>
#include <map>
#include <random>
#include <set>

#include "transformations/rewrite/convex.h"
#include "unit_tests/passes/pass_test.h"

namespace
{
enum { NODES = 40, GRAPHS = 400 };

using Sets = std::unique_ptr<xm_convex, decltype(&xm_convex_destroy)>;

xm_convex_kind
classify(const xm_node *n)
{
    return n->op == XM_OP_ADD       ? XM_CONVEX_MEMBER
           : n->op == XM_OP_RESHAPE ? XM_CONVEX_PASSED
                                    : XM_CONVEX_OUTSIDE;
}

bool
always(void *, const xm_convex *, xm_node *const *, uint32_t)
{
    return true;
}

xm_convex_rules
rules(uint32_t most = 6)
{
    return {nullptr, classify, always, most};
}

Sets
grow(xm_graph *g, const xm_convex_rules &r)
{
    return Sets(xm_convex_grow(g, &r), xm_convex_destroy);
}

/* Returns a random graph whose nodes read near ones, as in models, or any. */
Graph
random_graph(uint32_t seed)
{
    std::mt19937 random(seed);
    Graph g = parse("%0 = parameter f32[T,4] name=\"x\"\n"
                    "%1 = parameter f32[T,4] name=\"y\"\n");
    xm_builder b = xm_builder_at_end(g.get());
    std::vector<xm_value *> values = {&g->first->out[0], &g->last->out[0]};
    const xm_dim square[] = {xm_dim_const(2), xm_dim_const(2)};
    auto any = [&] {
        size_t near = random() % 2 ? 6 : values.size(), n = values.size();
        return values[n - 1 - random() % std::min(near, n)];
    };
    for (int i = 0; i < NODES; i++) {
        xm_value *v = any();
        switch (random() % 5) {
        case 0:
            values.push_back(xm_op1(&b, XM_OP_SIN, v));
            break;
        case 1:
            values.push_back(xm_op2(&b, XM_OP_MAXIMUM, v, any()));
            break;
        case 2: {
            xm_dim flat[] = {v->type.shape.dim[0], square[0], square[0]};
            xm_dim back[] = {v->type.shape.dim[0], xm_dim_const(4)};
            values.push_back(xm_reshape(&b, xm_reshape(&b, v, flat, 3), back, 2));
            break;
        }
        default:
            values.push_back(xm_op2(&b, XM_OP_ADD, v, any()));
        }
    }
    xm_result(&b, "r", values.back());
    EXPECT_EQ(g->err.status, XM_OK) << g->err.text;
    return g;
}

const xm_value *
below_reshapes(const xm_value *v)
{
    while (v->node->op == XM_OP_RESHAPE)
        v = xm_in(v->node, 0);
    return v;
}

/* The set of each node; a node in no set is a set of its own. */
using Partition = std::map<const xm_node *, const xm_node *>;

Partition
partition(const xm_graph *g, const xm_convex *c)
{
    Partition p;
    xm_for_each_node(n, g)
    {
        xm_node *member[XM_CONVEX_MOST];
        p[n] = xm_convex_members(c, n, member) ? member[0] : n;
    }
    return p;
}

/* Returns whether the sets can be ordered so that all operands come before their readers. */
bool
has_order(const xm_graph *g, const Partition &p)
{
    std::map<const xm_node *, std::set<const xm_node *>> reads;
    xm_for_each_node(n, g)
    {
        for (uint32_t i = 0; n->op != XM_OP_RESHAPE && i < n->n_in; i++) {
            const xm_node *from = p.at(below_reshapes(xm_in(n, i))->node);
            if (from != p.at(n))
                reads[p.at(n)].insert(from);
        }
    }
    std::map<const xm_node *, int> state; /* 1: being visited, 2: done */
    std::function<bool(const xm_node *)> visit = [&](const xm_node *n) {
        if (state[n])
            return state[n] == 2;
        state[n] = 1;
        for (const xm_node *from : reads[n]) {
            if (!visit(from))
                return false;
        }
        return state[n] = 2, true;
    };
    for (const auto &one : p) {
        if (!visit(one.second))
            return false;
    }
    return true;
}

size_t
size_of(const Partition &p, const xm_node *set)
{
    size_t n = 0;
    for (const auto &one : p)
        n += one.second == set;
    return n;
}

/* Returns the number of edges between two sets that could be merged. */
int
left_over(const xm_graph *g, const Partition &p, uint32_t most)
{
    int n_left = 0;
    xm_for_each_node(n, g)
    {
        for (uint32_t i = 0; n->op == XM_OP_ADD && i < 2; i++) {
            const xm_node *from = below_reshapes(xm_in(n, i))->node;
            const xm_node *a = p.at(from), *b = p.at(n);
            if (from->op != XM_OP_ADD || a == b || size_of(p, a) + size_of(p, b) > most)
                continue;
            Partition joined = p;
            for (auto &one : joined)
                one.second = one.second == b ? a : one.second;
            n_left += has_order(g, joined);
        }
    }
    return n_left;
}
} // namespace

TEST(Convex, SetsOfRandomGraphsHaveAnOrderAndCannotGrow)
{
    for (uint32_t seed = 0; seed < GRAPHS; seed++) {
        SCOPED_TRACE(seed);
        Graph g = random_graph(seed);
        const uint32_t most = 2 + seed % 9;
        Sets sets = grow(g.get(), rules(most));
        ASSERT_TRUE(sets);
        Partition p = partition(g.get(), sets.get());
        ASSERT_TRUE(has_order(g.get(), p)) << print(g.get());
        ASSERT_EQ(left_over(g.get(), p, most), 0) << print(g.get());
        for (const auto &one : p)
            ASSERT_LE(size_of(p, one.second), most);
        ASSERT_EQ(p, partition(g.get(), grow(g.get(), rules(most)).get()));
    }
}

TEST(Convex, MembersComeInOrderAndReadsAreCountedThroughWhatIsPassed)
{
    for (uint32_t seed = 0; seed < GRAPHS; seed++) {
        Graph g = random_graph(seed);
        Sets sets = grow(g.get(), rules());
        std::map<const xm_value *, uint32_t> reads;
        std::map<const xm_node *, int> place;
        xm_for_each_node(n, g.get())
        {
            place[n] = (int)place.size();
            for (uint32_t i = 0; n->op != XM_OP_RESHAPE && i < n->n_in; i++)
                reads[below_reshapes(xm_in(n, i))]++;
        }
        xm_for_each_node(n, g.get())
        {
            xm_node *member[XM_CONVEX_MOST];
            uint32_t n_members = xm_convex_members(sets.get(), n, member);
            ASSERT_EQ(n_members > 0, n->op == XM_OP_ADD);
            for (uint32_t i = 1; i < n_members; i++)
                ASSERT_LT(place[member[i - 1]], place[member[i]]);
            ASSERT_EQ(xm_convex_source(sets.get(), &n->out[0]),
                      below_reshapes(&n->out[0]));
            ASSERT_EQ(xm_convex_reads(sets.get(), &n->out[0]), reads[&n->out[0]]);
        }
    }
}

TEST(Convex, AsksWhetherMembersFit)
{
    /* a rule: two members of a set may not read the same parameter */
    xm_convex_rules r = rules(XM_CONVEX_MOST);
    r.fits = [](void *, const xm_convex *, xm_node *const *member, uint32_t n) {
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = 0; k < i; k++) {
                if (xm_in(member[i], 1) == xm_in(member[k], 1))
                    return false;
            }
        }
        return true;
    };
    Graph g = parse(R"(
        %0 = parameter f32[T] name="a"
        %1 = parameter f32[T] name="b"
        %2 = add %0, %1
        %3 = add %2, %0
        %4 = add %3, %1
        result %4 name="r")");
    Sets sets = grow(g.get(), r);
    xm_node *member[XM_CONVEX_MOST];
    EXPECT_EQ(xm_convex_members(sets.get(), xm_in(g->last, 0)->node, member), 1u);
    EXPECT_EQ(xm_convex_members(sets.get(), first(g.get(), XM_OP_ADD), member), 2u);
}

/* A reshape whose target shape is computed depends on two operands, and is not passed through. */
TEST(Convex, PassesOnlyWhatDependsOnOneOperand)
{
    Graph g = parse(R"(
        %0 = parameter f32[4,8] name="a"
        %1 = parameter i32[2] name="to"
        %2 = convert %1 to=i64
        %3 = add %0, %0
        %4 = reshape %3, %2
        %5 = add %4, %4
        result %5 name="r")");
    Sets sets = grow(g.get(), rules());
    xm_node *member[XM_CONVEX_MOST];
    EXPECT_EQ(xm_convex_members(sets.get(), first(g.get(), XM_OP_ADD), member), 1u);
}

/* The search is bounded by counts: nodes that are far apart are not compared. */
TEST(Convex, LooksNoFurtherThanItsReach)
{
    for (int between : {XM_CONVEX_REACH - 16, XM_CONVEX_REACH + 16}) {
        Graph g = parse("%0 = parameter f32[T,4] name=\"x\"\n%1 = add %0, %0\n");
        xm_builder b = xm_builder_at_end(g.get());
        xm_value *x = &g->first->out[0], *sum = &g->last->out[0], *v = x;
        for (int i = 0; i < between; i++)
            v = xm_op1(&b, XM_OP_SIN, v);
        xm_result(&b, "r", xm_op2(&b, XM_OP_ADD, sum, v));
        Sets sets = grow(g.get(), rules());
        xm_node *member[XM_CONVEX_MOST];
        EXPECT_EQ(xm_convex_members(sets.get(), sum->node, member),
                  between < XM_CONVEX_REACH ? 2u : 1u);
    }
}
