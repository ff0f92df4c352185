// SPDX-License-Identifier: Apache-2.0
// The input is a grammar in GBNF, or a JSON Schema if XM_FUZZ_SCHEMA is defined; after a NUL, a
// text that is matched and also selects the tokens to follow.
#include <algorithm>

#include "unit_tests/fuzz/fuzz_grammar.h"

#ifdef XM_FUZZ_SCHEMA
static const auto parse = xm_grammar_from_schema;
#else
static const auto parse = xm_grammar_parse;
#endif

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const std::string input(reinterpret_cast<const char *>(bytes), n);
    const size_t end = std::min(input.find('\0'), n);
    const std::string text = end < n ? input.substr(end + 1) : "ab{\"c\": 12}";
    xm_grammar *g = nullptr;
    xm_error err = {};
    const xm_status s = parse(input.data(), end, &g, &err);
    require(worked(s, err) == (g != nullptr), "a grammar comes exactly when that worked");
    if (!g)
        return 0;
    bool matches = false;
    worked(xm_grammar_matches(g, text.data(), text.size(), &matches, &err), err);
    follow_grammar(g, text);
    xm_grammar_free(g);
    return 0;
}
