/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans splits of graphs, and runs the parts in lockstep, one thread each, against the whole graph.
 */
#ifndef XM_UNIT_TESTS_SPLIT_SPLIT_TEST_H
#define XM_UNIT_TESTS_SPLIT_SPLIT_TEST_H

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <thread>

#include "transformations/graph/evaluate.h"
#include "transformations/split/split.h"
#include "unit_tests/graph/graph_text.h"

using Strings = std::vector<std::string>;

struct SplitDeleter {
    void operator()(xm_split *s) const
    {
        xm_split_free(s);
    }
};
using Split = std::unique_ptr<xm_split, SplitDeleter>;

/* A wish in which messages cost almost nothing: everything that can be split is. */
inline xm_split_wish
tensor(uint32_t ranks, const double *shares = nullptr)
{
    xm_split_wish w = {};
    w.ranks = ranks;
    w.shares = shares;
    w.read_rate = 1e6;
    w.link_rate = 1e15;
    return w;
}

inline Split
plan(const Graph &g, const xm_split_wish &wish)
{
    xm_split *s = nullptr;
    xm_error err = {};
    EXPECT_EQ(xm_split_plan(g.get(), &wish, &s, &err), XM_OK) << err.text;
    return Split(s);
}

/* Returns the exchanges as texts "sum of OP for OP". */
inline Strings
exchanges(const Split &s)
{
    uint32_t n = 0;
    Strings list;
    const xm_exchange *e = xm_split_exchanges(s.get(), &n);
    for (uint32_t i = 0; i < n; i++)
        list.push_back((e[i].kind == XM_EXCHANGE_SUM     ? "sum of "
                        : e[i].kind == XM_EXCHANGE_PARTS ? "parts of "
                                                         : "pass ") +
                       std::string(xm_op_info(e[i].value->node->op)->text) + " for " +
                       xm_op_info(e[i].because->op)->text);
    return list;
}

// ---- running ---------------------------------------------------------------------------------

const int64_t TOKENS = 3;

inline double
number(uint64_t i, unsigned seed)
{
    std::mt19937 random((unsigned)i * 7919u + seed);
    return std::uniform_real_distribution<double>(-1, 1)(random);
}

inline xm_tensor *
input(const xm_node *n, unsigned seed)
{
    int64_t dim[XM_MAX_RANK];
    const xm_shape &shape = n->out[0].type.shape;
    for (uint32_t d = 0; d < shape.rank; d++)
        dim[d] = xm_dim_is_const(shape.dim[d]) ? shape.dim[d].n : TOKENS;
    xm_tensor *t = nullptr;
    EXPECT_EQ(xm_tensor_create(&t, n->out[0].type.element, shape.rank, dim, nullptr),
              XM_OK);
    for (uint64_t i = 0; i < t->n; i++)
        if (t->f)
            t->f[i] = (float)number(i, seed);
        else
            t->i[i] = (int64_t)(i % 4);
    return t;
}

struct Run {
    xm_status status = XM_OK;
    std::string error;
    std::vector<std::vector<float>> results;
};

inline Run
evaluate(const xm_graph *g, unsigned seed)
{
    std::vector<const char *> names;
    std::vector<xm_tensor *> inputs;
    uint32_t n_results = 0;
    xm_for_each_node(n, g)
    {
        n_results += n->op == XM_OP_RESULT;
        if (n->op != XM_OP_PARAMETER)
            continue;
        names.push_back(n->attr.name.name);
        inputs.push_back(input(n, seed + (unsigned)names.size()));
    }
    std::vector<xm_tensor *> out(n_results);
    xm_error err = {};
    xm_binding past = {"past", 0};
    xm_eval e = {};
    e.graph = g;
    e.input_names = names.data();
    e.inputs = inputs.data();
    e.n_inputs = (uint32_t)inputs.size();
    e.bindings = &past;
    e.n_bindings = 1;
    Run r;
    r.status = xm_evaluate(&e, out.data(), n_results, &err);
    r.error = err.text;
    for (xm_tensor *t : out) {
        if (t && r.status == XM_OK)
            r.results.emplace_back(t->f, t->f + t->n);
        xm_tensor_destroy(t);
    }
    for (xm_tensor *t : inputs)
        xm_tensor_destroy(t);
    return r;
}

inline std::vector<Graph>
parts(const Split &s, xm_rank_group *group, uint32_t ranks)
{
    std::vector<Graph> list;
    for (uint32_t r = 0; r < ranks; r++) {
        xm_graph *g = nullptr;
        xm_error err = {};
        EXPECT_EQ(xm_split_part(s.get(), xm_rank_group_rank(group, r), nullptr, &g, &err),
                  XM_OK)
            << err.text;
        if (!g)
            return {};
        EXPECT_EQ(xm_graph_validate(g, nullptr, &err), XM_OK) << err.text << print(g);
        list.emplace_back(g);
    }
    return list;
}

inline void
expect_equal(const Run &whole, const Run &part, const std::string &what)
{
    ASSERT_EQ(part.status, XM_OK) << part.error << what;
    ASSERT_EQ(whole.results.size(), part.results.size());
    for (size_t i = 0; i < whole.results.size(); i++) {
        double error = 0, size = 1e-30;
        ASSERT_EQ(whole.results[i].size(), part.results[i].size()) << what;
        for (size_t k = 0; k < whole.results[i].size(); k++) {
            error += std::pow(whole.results[i][k] - part.results[i][k], 2);
            size += std::pow(whole.results[i][k], 2);
        }
        EXPECT_LT(error / size, 1e-10) << what;
    }
}

/* Fails unless every rank gives the results of the whole graph. */
inline void
expect_whole(const Graph &g, const xm_split_wish &wish, unsigned seed = 1)
{
    const Split s = plan(g, wish);
    ASSERT_TRUE(s);
    xm_rank_group *group = xm_shared_group_create(wish.ranks);
    const std::vector<Graph> list = parts(s, group, wish.ranks);
    ASSERT_EQ(list.size(), wish.ranks);
    const Run whole = evaluate(g.get(), seed);
    ASSERT_EQ(whole.status, XM_OK) << whole.error;
    std::vector<Run> runs(wish.ranks);
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < wish.ranks; r++)
        threads.emplace_back([&, r] {
            runs[r] = evaluate(list[r].get(), seed);
            xm_error err = {runs[r].status, ""};
            xm_collective *c = xm_rank_group_rank(group, r);
            if (err.status != XM_OK)
                c->ops->leave(c, &err);
        });
    for (std::thread &t : threads)
        t.join();
    for (uint32_t r = 0; r < wish.ranks; r++)
        expect_equal(whole, runs[r], print(list[r].get()));
    xm_rank_group_free(group);
}

using Wish = xm_split_wish (*)(uint32_t ranks, const double *shares);

inline xm_split_wish
by_expert(uint32_t ranks, const double *shares)
{
    xm_split_wish w = tensor(ranks, shares);
    w.by_expert = true;
    return w;
}

inline xm_split_wish
by_layer(uint32_t ranks, const double *shares)
{
    xm_split_wish w = tensor(ranks, shares);
    w.by_layer = true;
    return w;
}

inline void
expect_whole_in_all_ways(const std::string &lines, Wish wish = tensor)
{
    const double uneven[] = {3, 1, 2};
    const Graph g = parse(lines);
    for (uint32_t ranks : {2u, 3u, 4u})
        expect_whole(g, wish(ranks, nullptr));
    expect_whole(g, wish(3, uneven));
}

#endif
