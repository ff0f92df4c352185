/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of passes share: graphs from text, evaluation on pseudo-random inputs, and the
 * comparison of results before and after a pass.
 */
#ifndef XM_UNIT_TESTS_PASSES_PASS_TEST_H
#define XM_UNIT_TESTS_PASSES_PASS_TEST_H

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "transformations/graph/evaluate.h"
#include "transformations/graph/text.h"
#include "transformations/graph/validate.h"
#include "transformations/pipeline.h"
#include "unit_tests/compare.h"
#include "unit_tests/graph/structure.h"

using Graph = std::unique_ptr<xm_graph, decltype(&xm_graph_destroy)>;
using Run = bool (*)(xm_graph *, const xm_caps *);
using Floats = std::vector<float>;

inline Graph
parse(const std::string &text)
{
    xm_graph *g = nullptr;
    xm_error err = {};
    xm_graph_parse(("graph \"test\"\n" + text).c_str(), &g, &err);
    EXPECT_STREQ(err.text, "") << text;
    return Graph(g, xm_graph_destroy);
}

inline std::string
print(const xm_graph *g)
{
    xm_strbuf out = {};
    xm_graph_print(g, &out);
    std::string text = xm_strbuf_text(&out);
    xm_strbuf_free(&out);
    return text;
}

inline void
expect_valid(xm_graph *g)
{
    xm_error err = {};
    xm_strbuf report = {};
    EXPECT_EQ(xm_graph_validate(g, &report, &err), XM_OK) << err.text << "\n"
                                                          << xm_strbuf_text(&report);
    xm_strbuf_free(&report);
}

inline int
count(const xm_graph *g, enum xm_op op)
{
    int n = 0;
    xm_for_each_node(node, g) n += node->op == op;
    return n;
}

inline xm_node *
first(const xm_graph *g, enum xm_op op)
{
    xm_for_each_node(node, g) if (node->op == op) return node;
    return nullptr;
}

/* The values of the symbols that the tests' graphs use. */
inline const std::vector<xm_binding> &
sizes()
{
    static const std::vector<xm_binding> s = {
        {"batch", 2}, {"tokens", 3}, {"T", 5}, {"past", 0}};
    return s;
}

/* Returns a tensor of pseudo-random values: floats in [-1, 1), integers from 0 to 3. The
 * generator is written out, so that values are equal on all platforms. */
inline xm_tensor *
random_tensor(const xm_type &type, uint32_t seed,
              const std::vector<xm_binding> &bindings = sizes())
{
    int64_t dim[XM_MAX_RANK];
    xm_error err = {};
    xm_tensor *t = nullptr;
    for (uint32_t i = 0; i < type.shape.rank; i++)
        EXPECT_EQ(xm_dim_eval(type.shape.dim[i], bindings.data(), bindings.size(),
                              &dim[i], &err),
                  XM_OK)
            << err.text;
    EXPECT_EQ(xm_tensor_create(&t, type.element, type.shape.rank, dim, &err), XM_OK);
    for (uint64_t i = 0; t && i < t->n; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (t->f)
            t->f[i] = (float)(seed >> 8) / (1 << 23) - 1.0f;
        else
            t->i[i] = (seed >> 16) & 3;
    }
    return t;
}

/* Returns all results of a graph on pseudo-random parameters. With `states`, the run starts from
 * the states that the last run left there. */
inline std::vector<Floats>
evaluate(const xm_graph *g, const std::vector<xm_binding> &bindings = sizes(),
         xm_state_store *states = nullptr)
{
    std::vector<const char *> names;
    std::vector<const xm_tensor *> in;
    std::vector<xm_tensor *> out(count(g, XM_OP_RESULT));
    xm_error err = {};
    xm_for_each_node(n, g)
    {
        if (n->op != XM_OP_PARAMETER)
            continue;
        names.push_back(n->attr.name.name);
        in.push_back(random_tensor(n->out[0].type, (uint32_t)in.size() + 1, bindings));
    }
    xm_eval e = {};
    e.graph = g;
    e.input_names = names.data();
    e.inputs = in.data();
    e.n_inputs = (uint32_t)in.size();
    e.states = states;
    e.bindings = bindings.data();
    e.n_bindings = (uint32_t)bindings.size();
    EXPECT_EQ(xm_evaluate(&e, out.data(), (uint32_t)out.size(), &err), XM_OK) << err.text;
    std::vector<Floats> values;
    for (xm_tensor *t : out) {
        Floats f;
        for (uint64_t i = 0; t && i < t->n; i++)
            f.push_back(t->f ? t->f[i] : (float)t->i[i]);
        values.push_back(f);
        xm_tensor_destroy(t);
    }
    for (const xm_tensor *t : in)
        xm_tensor_destroy(const_cast<xm_tensor *>(t));
    return values;
}

inline void
expect_close(const std::vector<Floats> &a, const std::vector<Floats> &b,
             float relative = 1e-5f)
{
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); i++) {
        ASSERT_EQ(a[i].size(), b[i].size());
        float largest = 1e-6f;
        for (float x : a[i])
            largest = std::fmax(largest, magnitude(x));
        for (size_t j = 0; j < a[i].size(); j++)
            ASSERT_LE(distance(a[i][j], b[i][j]), relative * largest)
                << "result " << i << " at " << j;
    }
}

/* Runs a pass and returns whether it changed the graph. Fails unless the graph stays valid, keeps
 * its results, and is not changed by a second run. */
inline bool
run_pass(xm_graph *g, Run run, const xm_caps *caps = nullptr)
{
    auto before = evaluate(g);
    bool progress = run(g, caps);
    EXPECT_STREQ(g->err.text, "");
    xm_graph_remove_dead(g);
    expect_valid(g);
    expect_close(before, evaluate(g));
    EXPECT_FALSE(run(g, caps)) << "a second run still changes\n" << print(g);
    return progress;
}

/* Fails unless the pass turns graph `before` into graph `after`. */
inline void
expect_rewrites(Run run, const std::string &before, const std::string &after)
{
    Graph g = parse(before), want = parse(after);
    ASSERT_TRUE(g && want);
    xm_graph_remove_dead(want.get());
    EXPECT_TRUE(run_pass(g.get(), run)) << print(g.get());
    EXPECT_EQ(structure(g.get()), structure(want.get()));
}

inline void
expect_leaves(Run run, const std::string &text)
{
    Graph g = parse(text);
    ASSERT_TRUE(g);
    EXPECT_FALSE(run_pass(g.get(), run)) << print(g.get());
}

/* Runs the passes up to and including `stop` (NULL: all), except those in the list `skip`.
 * Returns the error text; "" after a success. */
inline std::string
run_pipeline(xm_graph *g, const char *skip, const char *stop,
             const xm_caps *caps = nullptr)
{
    xm_pipeline_options o = {skip, stop, nullptr, false};
    xm_error err = {};
    xm_pipeline_run(g, caps, &o, nullptr, nullptr, &err);
    return err.text;
}

inline std::string
replaced(std::string text, const std::string &from, const std::string &to)
{
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << "the text has no '" << from << "'";
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

#endif
