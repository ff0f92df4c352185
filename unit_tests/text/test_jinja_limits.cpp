// SPDX-License-Identifier: Apache-2.0
//
// Templates that would use all memory, time or stack, with each function that can: they end with
// an error text.
#include <gtest/gtest.h>

#include <string>

#include "plugin/text/jinja/jinja.h"

namespace
{

enum xm_status
render(const std::string &source, std::string &text, std::string &why)
{
    const struct xm_jinja_limits small = {200000, 4 << 20, 1 << 18, 80};
    struct xm_jinja_template *tmpl = nullptr;
    struct xm_error err = {};
    struct xm_strbuf out = {};
    enum xm_status s = xm_jinja_parse(source.data(), source.size(), &tmpl, &err);
    if (s == XM_OK)
        s = xm_jinja_render(tmpl, nullptr, 0, &small, &out, nullptr, &err);
    text.assign(xm_strbuf_text(&out), out.n);
    why = err.text;
    xm_strbuf_free(&out);
    xm_jinja_free(tmpl);
    return s;
}

} // namespace

TEST(JinjaLimits, HostileTemplatesEndWithASentence)
{
    const struct {
        const char *source, *why;
    } rows[] = {
        // clang-format off
        {"{{ 'x'.center(10**9) }}", "the width is 1000000000 characters, at most 100000 are supported"},
        {"{{ 'x'.ljust(10**9, '*') }}", "the width is"},
        {"{{ 'x'.rjust(10**9) }}", "the width is"},
        {"{{ 'x'.zfill(10**9) }}", "the width is"},
        {"{{ 'x'|center(10**9) }}", "center: the width is 1000000000 characters"},
        {"{{ '%1000000000d' % 1 }}", "a format can have a width"},
        {"{{ '{:1000000000}'.format(1) }}", "a format can have a width"},
        {"{{ '%.1000000000f' % 1.5 }}", "a format can have a width"},
        {"{{ 'a\tb'.expandtabs(10**9) }}", "the tab size is 1000000000 columns"},
        {"{{ ('\t' * 60000).expandtabs(1024) }}", "writes more than"},
        {"{{ ('a' * 60000).translate({97: 'b' * 60000}) }}", "writes more than"},
        {"{{ ('a' * 60000).join(['b'] * 60000) }}", "writes more than"},
        {"{{ 'x'|indent(10**9) }}", "an indentation has"},
        {"{{ [1]|slice(10**9)|list }}", "a number from 1 to 100000"},
        {"{{ [1]|batch(10**9)|list }}", "a number from 1 to 100000"},
        {"{{ [1]|batch(99999, 0)|list|length }}{{ [1]|batch(99999, 0)|list|length }}{{ [1]|batch(99999, 0)|list|length }}", ""},
        {"{{ range(10**9) }}", "a range has"},
        {"{{ range(10**18, -(10**18), -1)|list }}", "a range has"},
        {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "nested deeper than"},
        {"{% macro f() %}{{ f(*varargs) }}{% endmacro %}{{ f(1) }}", "nested deeper than"},
        {"{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}{{ f() }}", "nested deeper than"},
        {"{% macro f() %}{{ varargs|length }}{% endmacro %}{{ f(*range(99999), *range(99999), *range(99999)) }}", "steps"},
        {"{% set ns = namespace(x=[1]) %}{% for i in range(200) %}{% set ns.x = (ns.x|map('string')) %}{% endfor %}{{ ns.x|list }}", "nested deeper than"},
        {"{{ range(9999)|map('string')|unique|list }}", "steps"},
        {"{{ ('a' * 200000).rfind('a' * 100000 + 'b') }}", "steps"},
        {"{{ ('a b ' * 50000).rsplit(' ')|length }}", "take more than"},
        {"{{ (('a' * 300 ~ '<') * 400)|striptags }}{{ (('<a' * 60000) ~ '>')|striptags }}{{ (('<!--' * 40000) ~ '>')|striptags }}{{ ('&' * 200000)|e }}", "writes more than"},
        {"{{ ('%' * 200000)|urlencode }}", "writes more than"},
        {"{{ ('a ' * 60000)|wordwrap(1, wrapstring='b' * 60000) }}", "writes more than"},
        {"{{ ('www.a.com ' * 20000)|urlize }}", "writes more than"},
        {"{{ [{'a' * 60000: [1] * 60}]|pprint }}", "writes more than"},
        {"{{ {'a': '<' * 200000}|xmlattr }}", "writes more than"},
        {"{% set c = cycler(*range(9)) %}{% for i in range(99999) %}{% for k in range(9) %}{{ c.next() }}{% endfor %}{% endfor %}", ""},
        // clang-format on
    };
    for (const auto &row : rows) {
        std::string text, why;
        EXPECT_EQ(render(row.source, text, why), XM_INVALID) << row.source;
        EXPECT_NE(why.find(row.why), std::string::npos) << row.source << "\n" << why;
    }
}

TEST(JinjaLimits, LongNumbersAreNoNumbers)
{
    std::string text, why;
    const std::string dots(2000, '.'), zeros(2000, '0');
    for (const std::string &number : {dots, zeros, dots.substr(0, 61), zeros + ".5",
                                      std::string("1__0"), std::string("_1")}) {
        EXPECT_EQ(render("{{ '" + number + "'|float(7.5) }}", text, why), XM_OK) << why;
        EXPECT_EQ(text, number == zeros.substr(0, 390) ? "0.0" : "7.5") << number;
    }
}

TEST(JinjaLimits, TheInputOfAnUnknownFilterFailsFirst)
{
    std::string text, why;
    EXPECT_EQ(render("{{ nope.x|nofilter }}", text, why), XM_INVALID);
    EXPECT_NE(why.find("'nope' is undefined"), std::string::npos) << why;
    EXPECT_EQ(render("{{ 1 is notest(nope.x) }}", text, why), XM_INVALID);
    EXPECT_NE(why.find("'nope' is undefined"), std::string::npos) << why;
}
