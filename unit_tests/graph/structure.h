/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares graphs by structure: ops, attributes, types and operands.
 */
#ifndef XM_UNIT_TESTS_GRAPH_STRUCTURE_H
#define XM_UNIT_TESTS_GRAPH_STRUCTURE_H

#include <map>
#include <regex>
#include <string>

#include "transformations/graph/text.h"

/* Returns the graph's text with values numbered by position and without the names of values and
 * nodes. Two graphs that differ only in numbers and names have the same text. */
inline std::string
structure(const xm_graph *g)
{
    static const std::regex names(R"re( names=\{[^}]*\}| # ".*"$| @\d+$)re"),
        number(R"(%\d+)");
    std::map<std::string, std::string> place;
    std::string all;
    xm_for_each_node(n, g)
    {
        for (uint32_t i = 0; i < n->n_out; i++) {
            std::string next = "%" + std::to_string(place.size());
            place["%" + std::to_string(n->id + i)] = next;
        }
        xm_strbuf b = {};
        xm_node_print(n, &b);
        std::string line = std::regex_replace(xm_strbuf_text(&b), names, "");
        xm_strbuf_free(&b);
        std::smatch m;
        for (; std::regex_search(line, m, number); line = m.suffix())
            all += m.prefix().str() + place[m.str()];
        all += line + "\n";
    }
    return all;
}

#endif
