/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of tests, parsed from text, and parts of graphs printed as text.
 */
#ifndef XM_UNIT_TESTS_GRAPH_GRAPH_TEXT_H
#define XM_UNIT_TESTS_GRAPH_GRAPH_TEXT_H

#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "transformations/graph/builder.h"
#include "transformations/graph/text.h"
#include "transformations/graph/validate.h"

struct GraphDeleter {
    void operator()(xm_graph *g) const
    {
        xm_graph_destroy(g);
    }
};
using Graph = std::unique_ptr<xm_graph, GraphDeleter>;

inline std::string
take(xm_strbuf *b)
{
    std::string s = xm_strbuf_text(b);
    xm_strbuf_free(b);
    return s;
}

/* Parses the lines of a graph, before which "graph" and a name are added. Returns NULL if the
 * parser refuses them; then *error is the error text. */
inline Graph
parse(const std::string &lines, std::string *error = nullptr)
{
    xm_graph *g = nullptr;
    xm_error err = {};
    xm_status status = xm_graph_parse(("graph \"t\"\n" + lines).c_str(), &g, &err);
    EXPECT_EQ(status == XM_OK, g != nullptr);
    EXPECT_EQ(status, err.status);
    if (error)
        *error = err.text;
    else
        EXPECT_EQ(status, XM_OK) << err.text << "\n" << lines;
    return Graph(g);
}

inline std::string
print(const xm_graph *g)
{
    xm_strbuf b = {};
    xm_graph_print(g, &b);
    return take(&b);
}

inline std::string
print(const xm_type &t)
{
    xm_strbuf b = {};
    xm_type_print(&t, &b);
    return take(&b);
}

inline std::string
print(xm_dim d)
{
    xm_strbuf b = {};
    xm_dim_print(d, &b);
    return take(&b);
}

/* Returns the types of a node's results as "f32[4], i64[4]". */
inline std::string
types(const xm_node *n)
{
    std::string s;
    for (uint32_t i = 0; i < n->n_out; i++)
        s += (i ? ", " : "") + print(n->out[i].type);
    return s;
}

/* Returns the known elements of a value as "{past, 8}", or "?" if they are unknown. */
inline std::string
content(const xm_value *v)
{
    std::string s = "{";
    if (!xm_content_known(&v->content))
        return "?";
    for (uint32_t i = 0; i < v->content.n; i++)
        s += (i ? ", " : "") + print(v->content.e[i]);
    return s + "}";
}

inline xm_node *
node(xm_graph *g, uint32_t id)
{
    xm_for_each_node(n, g) if (n->id == id) return n;
    return nullptr;
}

#endif
