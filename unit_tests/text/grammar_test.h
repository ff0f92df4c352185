/* SPDX-License-Identifier: Apache-2.0
 *
 * A wrapper for grammars that the tests of grammars share.
 */
#ifndef XM_UNIT_TESTS_TEXT_GRAMMAR_TEST_H
#define XM_UNIT_TESTS_TEXT_GRAMMAR_TEST_H

#include <string>

#include "plugin/text/constraint.h"
#include "unit_tests/text/text_test.h"

/* Parses a grammar and owns it; after a failure `err` says why. */
class Grammar
{
  public:
    static Grammar gbnf(const std::string &text)
    {
        Grammar g;
        g.status = xm_grammar_parse(text.data(), text.size(), &g.g, &g.err);
        return g;
    }
    static Grammar schema(const std::string &text)
    {
        Grammar g;
        g.status = xm_grammar_from_schema(text.data(), text.size(), &g.g, &g.err);
        return g;
    }
    Grammar(Grammar &&other) : g(other.g), err(other.err), status(other.status)
    {
        other.g = nullptr;
    }
    ~Grammar()
    {
        xm_grammar_free(g);
    }
    bool matches(const std::string &text) const
    {
        bool result = false;
        xm_error why = {};
        if (!g) {
            ADD_FAILURE() << err.text;
            return false;
        }
        EXPECT_EQ(xm_grammar_matches(g, text.data(), text.size(), &result, &why), XM_OK)
            << why.text;
        return result;
    }

    struct xm_grammar *g = nullptr;
    struct xm_error err = {};
    enum xm_status status = XM_OK;

  private:
    Grammar() = default;
};

#endif
