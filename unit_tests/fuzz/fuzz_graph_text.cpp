// SPDX-License-Identifier: Apache-2.0
// The input is graph text: a graph that was parsed can be printed, and its printed text parses to
// the same graph.
#include <string>

#include "transformations/graph/text.h"
#include "transformations/graph/validate.h"
#include "unit_tests/fuzz/fuzz.h"

namespace
{

std::string
print(const xm_graph *g)
{
    xm_strbuf out = {};
    xm_graph_print(g, &out);
    std::string text = xm_strbuf_text(&out);
    xm_strbuf_free(&out);
    return text;
}

xm_graph *
parse(const std::string &text)
{
    xm_graph *g = nullptr;
    xm_error err = {};
    enum xm_status s = xm_graph_parse(text.c_str(), &g, &err);
    require(worked(s, err) == (g != nullptr),
            "a graph comes exactly when parsing worked");
    return g;
}

} // namespace

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    xm_graph *g = parse(std::string(reinterpret_cast<const char *>(bytes), n));
    if (!g)
        return 0;
    std::string text = print(g);
    xm_graph *again = parse(text);
    require(again && print(again) == text, "printing and parsing gives the same");
    xm_graph_destroy(again);
    xm_error err = {};
    worked(xm_graph_validate(g, nullptr, &err), err);
    xm_graph_destroy(g);
    return 0;
}
