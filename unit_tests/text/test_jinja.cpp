// SPDX-License-Identifier: Apache-2.0
//
// Templates compared with Jinja 3.1.6 (its sandbox with trim_blocks, lstrip_blocks and loop
// controls), and operations that must be refused.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "plugin/text/jinja/jinja.h"
#include "runtime/util/json.h"
#include "runtime/util/memory.h"

namespace
{

/* The variables of all templates below. */
const char *const context =
    "{\"n\": 3, \"f\": 2.5, \"s\": \"Hello, World\", \"u\": \"Grüße, 世界 "
    "🎉\", \"e\": \"\", \"l\": [3, 1, 2], \"none_\": null, \"t\": true, \""
    "d\": {\"b\": 1, \"a\": [1, 2.0, \"x\"], \"items\": 5}, \"msgs\": [{"
    "\"role\": \"system\", \"content\": \"Be nice.\"}, {\"role\": \"user"
    "\", \"content\": \" hi \\n\", \"tools\": [{\"name\": \"f\", \"args\""
    ": {\"x\": 1}}]}, {\"role\": \"assistant\", \"content\": null, \"sco"
    "re\": 2}, {\"role\": \"user\", \"content\": [{\"type\": \"text\", \""
    "text\": \"A\"}, {\"type\": \"image\"}], \"score\": 1}]}";

struct result {
    enum xm_status status;
    std::string text, error;
};

result
render(const std::string &source, const struct xm_jinja_limits *limits = nullptr,
       const char *json = context)
{
    struct xm_jinja_template *tmpl = nullptr;
    struct xm_error err = {};
    struct xm_strbuf out = {};
    yyjson_doc *doc = nullptr;
    std::vector<struct xm_jinja_variable> variables;
    enum xm_status status = xm_json_parse(json, strlen(json), &doc, &err);
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(yyjson_doc_get_root(doc), i, n, key, value)
    {
        variables.push_back(
            {xm_slice_of(yyjson_get_str(key), yyjson_get_len(key)), value, false});
    }
    if (status == XM_OK)
        status = xm_jinja_parse(source.data(), source.size(), &tmpl, &err);
    if (status == XM_OK)
        status = xm_jinja_render(tmpl, variables.data(), variables.size(), limits, &out,
                                 nullptr, &err);
    result r = {status, std::string(xm_strbuf_text(&out), out.n), err.text};
    EXPECT_EQ(err.status, status);
    yyjson_doc_free(doc);
    xm_strbuf_free(&out);
    xm_jinja_free(tmpl);
    return r;
}

struct golden {
    const char *source, *text;
};

const golden goldens[] = {
    // clang-format off
    {"{{ '%s is %d' % (s, n) }}",
     "Hello, World is 3"},
    {"{{ '%05.1f|%-4s|%4s|%%' % (f, 'a', 'b') }}",
     "002.5|a   |   b|%"},
    {"{{ '%s' % n }}",
     "3"},
    {"{{ '%(b)s-%(a)s' % d }}",
     "1-[1, 2.0, 'x']"},
    {"{{ '%x %X %o %e %g %+d' % (255, 255, 8, f, f, n) }}",
     "ff FF 10 2.500000e+00 2.5 +3"},
    {"{{ '%r %s' % ('a', l) }}",
     "'a' [3, 1, 2]"},
    {"{{ 'a{}b{}'.format(n, s) }}",
     "a3bHello, World"},
    {"{{ '{1}{0}'.format(n, s) }}",
     "Hello, World3"},
    {"{{ '{x}{y!r}'.format(x=1, y='q') }}",
     "1'q'"},
    {"{{ '{:>5}|{:<5}|{:^5}|{:*^7}'.format(1, 'a', 'b', 'c') }}",
     "    1|a    |  b  |***c***"},
    {"{{ '{:05d} {:.2f} {:,} {:x} {:+d}'.format(n, f, 1234567, 255, n) }}",
     "00003 2.50 1,234,567 ff +3"},
    {"{{ '{{}} {0[1]}'.format(l) }}",
     "{} 1"},
    {"{{ '%s, %s' | format(n, s) }}",
     "3, Hello, World"},
    {"{{ '%(a)s' | format(a=n) }}",
     "3"},
    {"[{{ 'ab' | center(7) }}]",
     "[   ab  ]"},
    {"[{{ 'ab' | center(5) }}]",
     "[  ab ]"},
    {"{{ 'a b-c  d_e' | wordcount }}",
     "4"},
    {"{{ u | wordcount }}",
     "2"},
    {"{{ 'x' if t else n | nofilter }}",
     "x"},
    {"{% if not t %}{{ n | nofilter }}{% endif %}y",
     "y"},
    {"{% if not t %}{{ n is notest }}{% endif %}z",
     "z"},
    {"{{ none_ | default([], true) | selectattr('x') | list }}",
     "[]"},
    {"{{ '{:.3}'.format('abcdef') }}",
     "abc"},
    {"{{ '%.2s' % 'abc' }}",
     "ab"},
    {"{{ '%3d|%-3d|%03d' % (n, n, n) }}",
     "  3|3  |003"},
    {"{{ '{}'.format(none_) }} {{ '%s' % none_ }} {{ '%s' % (t,) }}",
     "None None True"},
    {"{{ '{:g} {:e} {:%}'.format(f, f, f) }}",
     "2.5 2.500000e+00 250.000000%"},
    {"a\n  {% if true %}\n  b\n  {% endif %}\nc\n",
     "a\n  b\nc"},
    {"{%- if t %}  x  {%- endif -%}  y",
     "  xy"},
    {"a {{- 1 -}} b {{ 2 }}\n c\n\n",
     "a1b 2\n c\n"},
    {"x\n   {# note #}\ny{# z #}\n\nw",
     "x\ny\nw"},
    {"  {%+ if t %}q{% endif +%}\nz",
     "  q\nz"},
    {"{% raw %}{{ a }}\n{% b %}{% endraw %}\nx",
     "{{ a }}\n{% b %}x"},
    {"a\n  {%- raw -%}  {{x}}  {%- endraw -%}  b",
     "a{{x}}b"},
    {"\n\n{% set x = 1 %}\n\n{{ x }}\n\n",
     "\n\n\n1\n"},
    {"a\r\nb\rc{% if t %}\r\nd{% endif %}",
     "a\nb\ncd"},
    {"{{ '}}' }}{{ {'a': {'b': 1}}['a']['b'] }}",
     "}}1"},
    {"  {% for i in [1] -%}\n  {{ i }}\n  {%- endfor %}  \n"
     "!",
     "1  \n!"},
    {"{#- a -#}  b {#- c #} d",
     "b d"},
    {"{{ 1 }}\n  {{ 2 }}",
     "1\n  2"},
    {"a {%- if t %}b{% endif %}",
     "ab"},
    {"{% if t %}\n\n  A\n{% endif %}\n   {% if t %} B{% endif %}",
     "\n  A\n B"},
    {"{% set x = 1 %}{% for i in [1,2] %}{% set x = x + i %}{{ x }},{% en"
     "dfor %}{{ x }}",
     "2,3,1"},
    {"{% set ns = namespace(a=1, found=false) %}{% for i in l %}{% set ns"
     ".a = ns.a + i %}{% endfor %}{{ ns.a }} {{ ns.found }} {{ ns.nope is"
     " defined }}",
     "7 False False"},
    {"{% set a, b = 1, 'z' %}{{ a }}{{ b }}",
     "1z"},
    {"{% set x %}  <{{ n }}>\n{% endset %}[{{ x }}]",
     "[  <3>\n]"},
    {"{% set x | trim | upper %} abc {% endset %}[{{ x }}]",
     "[ABC]"},
    {"{% if t %}{% set y = 4 %}{% endif %}{{ y }}",
     "4"},
    {"{% set ns = namespace({'q': 1}, r=2) %}{{ ns.q + ns.r }}",
     "3"},
    {"{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}[{{ a }}]",
     "3[]"},
    {"{% filter upper | replace('B', '-') %}abc{{ n }}{% endfilter %}",
     "A-C3"},
    {"{% for m in msgs %}{{ loop.index }}/{{ loop.length }}{{ m.role }}{{"
     " ' first' if loop.first }}{{ ' last' if loop.last }} {% endfor %}",
     "1/4system first 2/4user 3/4assistant 4/4user last "},
    {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
     "b=1;a=[1, 2.0, 'x'];items=5;"},
    {"{% for x in [] %}a{% else %}none{% endfor %}",
     "none"},
    {"{% for x in l if x > 1 %}{{ loop.index0 }}{{ x }}{% else %}no{% end"
     "for %}",
     "0312"},
    {"{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% "
     "endfor %}",
     "<3>1 3<1>2 1<2> "},
    {"{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% "
     "if x > 4 %}{% break %}{% endif %}{{ x }}{% endfor %}",
     "0134"},
    {"{% for a in [1,2] %}{% for b in 'xy' %}{{ a }}{{ b }}{{ loop.depth "
     "}}{{ loop.revindex }}{{ loop.revindex0 }} {% endfor %}{% endfor %}",
     "1x121 1y110 2x121 2y110 "},
    {"{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}",
     "aba"},
    {"{% for x in none_ or [] %}{{ x }}{% endfor %}.",
     "."},
    {"{% for x in undefined_thing %}{{ x }}{% else %}E{% endfor %}",
     "E"},
    {"{% for k in d %}{{ k }} {% endfor %}",
     "b a items "},
    {"{% for (a, b) in [(1, 2), [3, 4]] %}{{ a }}-{{ b }} {% endfor %}",
     "1-2 3-4 "},
    {"{% for x in u %}{{ x }}|{% endfor %}",
     "G|r|ü|ß|e|,| |世|界| |🎉|"},
    {"{% for m in msgs[::-1] %}{{ m.role }} {% endfor %}",
     "user assistant user system "},
    {"{% for m in msgs[1:] %}{% if m['role'] == 'user' and not loop.last "
     "%}{{ m.content | trim }}{% endif %}{% endfor %}",
     "hi"},
    {"{% for x in l|sort %}{{ x }}{% if not loop.last %}, {% endif %}{% e"
     "ndfor %}",
     "1, 2, 3"},
    {"{% if n > 5 %}a{% elif n > 2 %}b{% else %}c{% endif %}",
     "b"},
    {"{{ 'y' if t else 'n' }}{{ 'y' if not t else 'n' }}{{ 'y' if e }}",
     "yn"},
    {"{% if msgs[0].role == 'system' %}{{ msgs[0]['content'] }}{% endif %"
     "}",
     "Be nice."},
    {"{% if x is defined and x %}1{% else %}0{% endif %}",
     "0"},
    {"{{ 1 if e else 2 if t else 3 }}",
     "2"},
    {"{% macro f(a, b='B', c=none) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{"
     "{ f(1) }}|{{ f(1, c=3) }}|{{ f(b=2, a=0) }}",
     "1BNone|1B3|02None"},
    {"{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% en"
     "dmacro %}{{ f(3) }}",
     "321"},
    {"{% macro w(tag) %}<{{ tag }}>{{ caller() }}</{{ tag }}>{% endmacro "
     "%}{% call w('b') %}in {{ n }}{% endcall %}",
     "<b>in 3</b>"},
    {"{% macro w() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) w() %}"
     "{{ a }}+{{ b }}{% endcall %}",
     "1+2"},
    {"{% macro f(a) %}[{{ a }}]{% endmacro %}{{ f() }}",
     "[]"},
    {"{% macro r(v, indent=0) %}{% if v is mapping %}{% for k, x in v|dic"
     "tsort %}{{ ' ' * indent }}{{ k }}:\n{{ r(x, indent + 2) }}{% endfor"
     " %}{% else %}{{ ' ' * indent }}{{ v }}\n{% endif %}{% endmacro %}{{"
     " r({'a': {'z': 1, 'b': 2}}) }}",
     "a:\n  b:\n    2\n  z:\n    1\n"},
    {"{% macro f(a, b=a) %}{{ b }}{% endmacro %}{{ f(7) }}",
     "7"},
    {"{% generation %}a{{ n }}{% endgeneration %}b",
     "a3b"},
    {"{% for m in msgs %}{% generation %}\n{{ m.role }}\n"
     "{% endgeneration %}\n{% endfor %}",
     "system\nuser\nassistant\nuser\n"},
    {"{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ "
     "2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}",
     "3 -4 1 2 3.5 1024 0.5 3.0 0.5"},
    {"{{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 "
     "}} {{ 1 ~ 2 * 3 }}",
     "3 9 4 64 16"},
    {"{{ 'a' * 3 }}{{ 2 * 'xy' }}{{ [1] * 2 }}{{ 'a' ~ 1 ~ none ~ true ~ "
     "1.5 }}",
     "aaaxyxy[1, 1]a1NoneTrue1.5"},
    {"{{ [1] + [2, 'x'] }} {{ (1,) + (2,) }}",
     "[1, 2, 'x'] (1, 2)"},
    {"{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ '"
     "a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 'a' != 'b' }}",
     "True False True True True True True"},
    {"{{ 'a' in 'cat' }} {{ 1 in l }} {{ 9 not in l }} {{ 'b' in d }} {{ "
     "not 'q' in d }} {{ 'x' in e }}",
     "True True True True True False"},
    {"{{ e or 'dflt' }} {{ n and 'yes' }} {{ none_ or 0 }} {{ not n }}",
     "dflt yes 0 False"},
    {"{{ 1.0 }} {{ 0.1 + 0.2 }} {{ 1e20 }} {{ 1e16 }} {{ 1234567890123456"
     "80.0 }} {{ 1.5e-7 }} {{ 0.0001 }} {{ 0.00001 }} {{ -0.0 }} {{ 100.0"
     " }} {{ 1e15 }} {{ 1/3 }}",
     "1.0 0.30000000000000004 1e+20 1e+16 1.2345678901234568e+17 1.5e-07 "
     "0.0001 1e-05 -0.0 100.0 1000000000000000.0 0.3333333333333333"},
    {"{{ True }} {{ none }} {{ None }} {{ [true, none, 'it\\'s', \"q\\\"\""
     ", '\\n\\t\\\\é\\x00'] }} {{ {'a': 1, 2: [3.0]} }} {{ (1,) }} {{ () "
     "}} {{ (1, 2) }}",
     "True None None [True, None, \"it's\", 'q\"', '\\n\\t\\\\é\\x00'] {'"
     "a': 1, 2: [3.0]} (1,) () (1, 2)"},
    {"{{ 'a' 'b' \"c\" }}{{ 'tab\\tnl\\nq\\'u\\u00e9\\x41\\q' }}",
     "abctab\tnl\nq'uéA\\q"},
    {"{{ 1, 2 }}",
     "(1, 2)"},
    {"{{ 5 is odd and not 5 is even }}",
     "True"},
    {"{{ -1 | abs }} {{ -n }} {{ +n }}",
     "1 -3 3"},
    {"{{ n is number }}{{ n is integer }}{{ f is float }}{{ t is boolean "
     "}}{{ t is number }}{{ t is integer }}{{ s is string }}{{ d is mappi"
     "ng }}{{ l is iterable }}{{ s is iterable }}{{ n is iterable }}{{ l "
     "is sequence }}{{ none_ is none }}{{ nope is undefined }}{{ nope is "
     "not defined }}{{ t is true }}{{ t is false }}",
     "TrueTrueTrueTrueTrueFalseTrueTrueTrueTrueFalseTrueTrueTrueTrueTrueF"
     "alse"},
    {"{{ 4 is divisibleby 2 }}{{ 4 is divisibleby(3) }}{{ 1 is in l }}{{ "
     "9 is not in l }}{{ n is eq 3 }}{{ n is equalto(4) }}{{ n is sameas "
     "3 }}{{ n is gt 2 }}{{ n is le(2) }}{{ 'abc' is lower }}{{ 'ABC' is "
     "upper }}{{ 'A1' is lower }}",
     "TrueFalseTrueTrueTrueFalseTrueTrueFalseTrueTrueFalse"},
    {"{{ d.b is defined }}{{ d.zz is defined }}{{ d['zz'] is not defined "
     "}}{{ msgs[0].tools is defined }}{{ range is callable }}",
     "TrueFalseTrueFalseTrue"},
    {"{{ 'x' if m is defined and m.a is string else 'y' }}",
     "y"},
    {"{{ s is string and n is not string }}",
     "True"},
    {"{{ l[0] }}{{ l[-1] }}{{ l[9] }}{{ s[0] }}{{ s[-1] }}{{ u[1] }}{{ u["
     "-1] }}{{ d.b }}{{ d['b'] }}{{ d.a[2] }}{{ msgs.0.role }}",
     "32Hdr🎉11xsystem"},
    {"{{ s[1:4] }}{{ s[:-7] }}{{ s[::2] }}{{ s[::-1] }}{{ u[7:9] }}{{ l[1"
     ":] }}{{ l[:1] }}{{ l[::-1] }}{{ l[5:] }}{{ l[-2:-1] }}{{ l[none:2] "
     "}}",
     "ellHelloHlo oldlroW ,olleH世界[1, 2][3][2, 1, 3][][1][3, 1]"},
    {"{{ d.items() | list }}{{ d['items'] }}{{ d.keys() | list }}{{ d.val"
     "ues() | list }}{{ d.get('b') }}{{ d.get('q') }}{{ d.get('q', 'z') }"
     "}",
     "[('b', 1), ('a', [1, 2.0, 'x']), ('items', 5)]5['b', 'a', 'items']["
     "1, [1, 2.0, 'x'], 5]1Nonez"},
    {"{{ msgs[-1].content[0].text }}{{ msgs[-1]['content'][1]['text'] }}",
     "A"},
    {"[{{ '  a b '.strip() }}][{{ '  a '.lstrip() }}][{{ ' a  '.rstrip() "
     "}}][{{ 'xxaxx'.strip('x') }}][{{ '\\n\\nq\\n'.strip('\\n') }}][{{ '"
     "abcba'.lstrip('ab') }}]",
     "[a b][a ][ a][a][q][cba]"},
    {"{{ 'a,b,,c'.split(',') }}{{ ' a  b c '.split() }}{{ 'a b c'.split('"
     " ', 1) }}{{ 'a b c'.split(none, 1) }}{{ 'a-b-c'.rsplit('-', 1) }}{{"
     " 'a-b'.split('x') }}",
     "['a', 'b', '', 'c']['a', 'b', 'c']['a', 'b c']['a', 'b c']['a-b', '"
     "c']['a-b']"},
    {"{{ '<think>x</think>  y'.split('</think>')[-1].lstrip('\\n') }}{{ ("
     "'a</think>b'.split('</think>')|first) }}",
     "  ya"},
    {"{{ s.startswith('Hell') }}{{ s.endswith(('x', 'ld')) }}{{ s.upper()"
     " }}{{ s.lower() }}{{ 'heLLo wORLD x1y'.title() }}{{ 'heLLO'.capital"
     "ize() }}{{ u.upper() }}",
     "TrueTrueHELLO, WORLDhello, worldHello World X1YHelloGRÜSSE, 世界 🎉"},
    {"{{ 'banana'.replace('an', 'AN') }}{{ 'banana'.replace('an', 'AN', 1"
     ") }}{{ 'ab'.replace('', '-') }}{{ s.find('o') }}{{ s.find('zz') }}{"
     "{ 'banana'.count('an') }}{{ ','.join(['a', 'b']) }}",
     "bANANabANana-a-b-4-12a,b"},
    {"{{ 'a\\nb\\r\\nc'.splitlines() }}{{ '12'.isdigit() }}{{ '1a'.isdigi"
     "t() }}{{ l.index(2) }}{{ l.count(3) }}",
     "['a', 'b', 'c']TrueFalse21"},
    {"{{ '  x '|trim }}|{{ 'xxa'|trim('x') }}|{{ s|upper }}|{{ s|lower }}"
     "|{{ 'foo bar-baz (q)'|title }}|{{ 'aBC'|capitalize }}",
     "x|a|HELLO, WORLD|hello, world|Foo Bar-Baz (Q)|Abc"},
    {"{{ d|tojson }}|{{ 'a\"<é>\\n/'|tojson }}|{{ [1, 2.5, none, true]|to"
     "json }}|{{ {}|tojson }}{{ []|tojson }}",
     "{\"b\": 1, \"a\": [1, 2.0, \"x\"], \"items\": 5}|\"a\\\"<é>\\n/\"|["
     "1, 2.5, null, true]|{}[]"},
    {"{{ d|tojson(indent=2) }}|{{ {'a': []}|tojson(indent=4) }}|{{ d|tojs"
     "on(separators=(',', ':')) }}|{{ {'z': 1, 'a': 2}|tojson(sort_keys=t"
     "rue) }}|{{ 'é🎉'|tojson(ensure_ascii=true) }}",
     "{\n  \"b\": 1,\n  \"a\": [\n    1,\n    2.0,\n"
     "    \"x\"\n  ],\n  \"items\": 5\n}|{\n    \"a\": []\n"
     "}|{\"b\":1,\"a\":[1,2.0,\"x\"],\"items\":5}|{\"a\": 2, \"z\": 1}|\""
     "\\u00e9\\ud83c\\udf89\""},
    {"{{ {1: 2, none: 3, true: 4}|tojson }}{{ '\\u0001\\u007f'|tojson }}",
     "{\"1\": 4, \"null\": 3}\"\\u0001\177\""},
    {"{{ l|length }}{{ u|length }}{{ d|count }}{{ nope|length }}{{ nope|d"
     "efault('D') }}{{ e|default('D', true) }}{{ e|d('D') }}{{ none_|defa"
     "ult('D', boolean=true) }}",
     "31130DDD"},
    {"{{ l|join(', ') }}{{ l|join }}{{ msgs|join('/', attribute='role') }"
     "}{{ [1, none, 'x', 2.0]|join('-') }}",
     "3, 1, 2312system/user/assistant/user1-None-x-2.0"},
    {"{{ l|first }}{{ l|last }}{{ s|first }}{{ []|first }}{{ l|sort }}{{ "
     "l|sort(reverse=true) }}{{ ['b', 'A', 'c']|sort }}{{ ['b', 'A']|sort"
     "(case_sensitive=true) }}{{ l|reverse|list }}{{ 'abc'|reverse }}",
     "32H[1, 2, 3][3, 2, 1]['A', 'b', 'c']['A', 'b'][2, 1, 3]cba"},
    {"{{ msgs|map(attribute='role')|list }}{{ ['a', 'b']|map('upper')|joi"
     "n }}{{ msgs|map(attribute='score', default=0)|list }}{{ msgs|select"
     "attr('role', 'equalto', 'user')|list|length }}{{ msgs|rejectattr('r"
     "ole', 'eq', 'user')|map(attribute='role')|list }}{{ msgs|selectattr"
     "('tools', 'defined')|list|length }}",
     "['system', 'user', 'assistant', 'user']AB[0, 0, 2, 1]2['system', 'a"
     "ssistant']1"},
    {"{{ [1, 0, 2, none]|select|list }}{{ [1, 2, 3]|select('odd')|list }}"
     "{{ [1, 2, 3]|reject('gt', 1)|list }}{{ msgs|selectattr('score')|lis"
     "t|length }}",
     "[1, 2][1, 3][1]2"},
    {"{{ '42'|int }}{{ 'x'|int }}{{ 'x'|int(7) }}{{ '3.7'|int }}{{ 3.9|in"
     "t }}{{ '1.5'|float }}{{ 'q'|float }}{{ 2|float }}{{ n|string + 'x' "
     "}}{{ ' 12 '|int }}",
     "4207331.50.02.03x12"},
    {"{{ 2.567|round(2) }} {{ 2.5|round }} {{ 3.5|round }} {{ 2.1|round(0"
     ", 'ceil') }} {{ 2.9|round(method='floor') }} {{ 5|round(1) }} {{ -3"
     "|abs }} {{ -3.5|abs }}",
     "2.57 2.0 4.0 3.0 2.0 5 3 3.5"},
    {"{{ d|dictsort }}{{ d|items|list }}{{ {'b': 1, 'A': 2}|dictsort }}{{"
     " {'a': 2, 'b': 1}|dictsort(by='value') }}{{ {'a': 2, 'b': 1}|dictso"
     "rt(false, 'key', true) }}",
     "[('a', [1, 2.0, 'x']), ('b', 1), ('items', 5)][('b', 1), ('a', [1, "
     "2.0, 'x']), ('items', 5)][('A', 2), ('b', 1)][('b', 1), ('a', 2)][("
     "'b', 1), ('a', 2)]"},
    {"{{ [1, 2, 1, 'a', 'A']|unique|list }}{{ l|max }}{{ l|min }}{{ l|sum"
     " }}{{ msgs[2:]|sum(attribute='score') }}{{ [1, 2, 3]|batch(2)|list "
     "}}{{ [1, 2, 3]|batch(2, 0)|list }}",
     "[1, 2, 'a']3163[[1, 2], [3]][[1, 2], [3, 0]]"},
    {"{{ 'a\\nb\\n\\nc'|indent }}|{{ 'a\\nb'|indent(2, true) }}|{{ 'a\\n\\"
     "nb'|indent(width=1, blank=true) }}|{{ 'a\\n'|indent(2) }}|{{ 'a\\nb"
     "'|indent('> ') }}",
     "a\n    b\n\n    c|  a\n  b|a\n \n b|a\n|a\n"
     "> b"},
    {"{{ 'a<b>&\"'|escape }}{{ s|replace('l', 'L') }}{{ s|replace('l', 'L"
     "', 1) }}{{ 5|string|length }}{{ 'x'|safe }}{{ l|string }}",
     "a&lt;b&gt;&amp;&#34;HeLLo, WorLdHeLlo, World1x[3, 1, 2]"},
    {"{{ 'abc'|list }}{{ range(3)|list }}{{ range(5, 1, -2)|list }}{{ ran"
     "ge(2, 4)|list }}{{ dict(a=1, b='x') }}{{ dict({'q': 1}, r=2)|tojson"
     " }}",
     "['a', 'b', 'c'][0, 1, 2][5, 3][2, 3]{'a': 1, 'b': 'x'}{\"q\": 1, \""
     "r\": 2}"},
    {"{{ msgs[1].tools|tojson }}",
     "[{\"name\": \"f\", \"args\": {\"x\": 1}}]"},
    {"{{ msgs|map(attribute='content')|select('string')|map('trim')|list "
     "}}",
     "['Be nice.', 'hi']"},
    {"{{ (msgs|last).role }}{{ (msgs|selectattr('role','eq','user')|list)"
     "[0].content|trim }}",
     "userhi"},
    {"{% if not add_generation_prompt is defined %}{% set add_generation_"
     "prompt = false %}{% endif %}{% set ns = namespace(is_first=false, s"
     "p='') %}{%- for m in msgs %}{%- if m['role'] == 'system' %}{%- set "
     "ns.sp = m['content'] %}{%- endif %}{%- endfor %}{{ ns.sp }}{{ add_g"
     "eneration_prompt }}",
     "Be nice.False"},
    {"{%- set loop_messages = msgs[1:] if msgs[0]['role'] == 'system' els"
     "e msgs -%}\n{%- for message in loop_messages -%}\n"
     "    {%- if message.content is string -%}\n"
     "        {{ message.role ~ ': ' ~ message.content | trim }}\n"
     "    {%- elif message.content is iterable -%}\n"
     "        {%- for c in message.content -%}{{ c.type }}{%- endfor -%}\n"
     "    {%- elif message.content is none -%}\n"
     "        NONE\n    {%- endif -%}\n{%- endfor -%}",
     "user: hiNONEtextimage"},
    {"{%- set ns = namespace(multi=true, last=msgs|length - 1) %}\n"
     "{%- for message in msgs[::-1] %}\n    {%- set index = (msgs|length "
     "- 1) - loop.index0 %}\n    {%- if ns.multi and message.role == \"us"
     "er\" and message.content is string and not(message.content.startswi"
     "th('<tool>') and message.content.endswith('</tool>')) %}\n"
     "        {%- set ns.multi = false %}\n        {%- set ns.last = inde"
     "x %}\n    {%- endif %}\n{%- endfor %}{{ ns.last }}",
     "1"},
    {"{%- macro p(x, req=[]) -%}\n{%- for k, v in x.items() -%}\n"
     "{{ k }}{{ '?' if k not in req }}: {{ v | tojson }}{{ ', ' if not lo"
     "op.last }}\n{%- endfor -%}\n{%- endmacro -%}\n"
     "{{ p({'a': 1, 'b': 'q'}, req=['a']) }}",
     "a: 1, b?: \"q\""},
    {"{{- '\\n\\n# Tools\\n' }}\n{%- for tool in msgs[1].tools %}\n"
     "    {{- \"\\n\" }}\n    {{- tool | tojson }}\n"
     "{%- endfor %}\n",
     "\n\n# Tools\n\n{\"name\": \"f\", \"args\": {\"x\": 1}}"},
    {"{{ '[INST] ' + msgs[1]['content'].strip() + ' [/INST]' }}",
     "[INST] hi [/INST]"},
    {"{{ (msgs[0].content if msgs[0].content is defined else '') | length"
     " > 3 }}",
     "True"},
    {"{% for m in msgs if m.role in ['user', 'system'] and m.content %}{{"
     " loop.index }}{{ m.role[0] }}{% endfor %}",
     "1s2u3u"},
    {"{% set a = ['x'] %}{% set a = a + ['y'] %}{{ a }}{{ a|length - 1 }}",
     "['x', 'y']1"},
    {"{{ undefined_thing }}[{{ d.nope }}]{{ [nope] }}{{ nope ~ 'a' }}{{ n"
     "ope == none }}{{ nope == nope2 }}",
     "[][Undefined]aFalseTrue"},
    // clang-format on
};

} // namespace

TEST(Jinja, RendersAsTheReferenceDoes)
{
    for (const golden &g : goldens) {
        result r = render(g.source);
        EXPECT_EQ(r.status, XM_OK) << g.source << "\n" << r.error;
        EXPECT_EQ(r.text, g.text) << g.source;
    }
}

TEST(Jinja, ErrorsSayWhereAndWhat)
{
    const golden errors[] = {
        // clang-format off
        {"{{ raise_exception('Roles must alternate!') }}", "line 1, column 19: Roles must alternate!"},
        {"{{ raise_exception('a\\nb\x1b[2J\xc2\x9b') }}", "line 1, column 19: a?b?[2J?"},
        {"a\n {{ nope.x }}", "line 2, column 5: 'nope' is undefined"},
        {"{{ nope + 1 }}", "line 1, column 9: 'nope' is undefined"},
        {"{{ 1 + 'a' }}", "line 1, column 6: '+' cannot be applied to an integer and a string"},
        {"{{ 1 // 0 }}", "division by zero"},
        {"{{ 2 ** 63 }}", "more than 64 bits"},
        {"{{ 9223372036854775807 + 1 }}", "more than 64 bits"},
        {"{{ 99999999999999999999 }}", "expected a smaller number"},
        {"{{ 'a' < 1 }}", "a string and an integer cannot be compared"},
        {"{{ n() }}", "an integer cannot be called"},
        {"{{ nope() }}", "'nope' is undefined and cannot be called"},
        {"{{ l.append(1) }}", "'append' is undefined"},
        {"{% for x in 5 %}{% endfor %}", "an integer cannot be iterated over"},
        {"{{ 5 | nofilter }}", "line 1, column 8: there is no filter 'nofilter'"},
        {"{{ 5 is notest }}", "there is no test 'notest'"},
        {"{% if t %}", "found the end of the template, expected elif, else or endif"},
        {"{% if t %}{% endfor %}", "found 'endfor', expected elif, else or endif"},
        {"{{ 1", "line 1, column 1: this tag is not closed"},
        {"{{ x\ny", "line 1, column 1: this tag is not closed"},
        {"a\n {% if x\n\ny", "line 2, column 2: this tag is not closed"},
        {"x {{ 'a }}", "line 1, column 6: this string is not closed"},
        {"{# x", "this comment is not closed"},
        {"{% raw %}x", "has no {% endraw %}"},
        {"{% endif %}", "found 'endif'"},
        {"{% include 'x' %}", "line 1, column 4: 'include' is not supported: templates cannot"},
        {"a\n{% extends 'x' %}", "line 2, column 4: 'extends' is not supported: templates cannot"},
        {"{% block x %}{% endblock %}", "'block' is not supported: templates cannot inherit or include other templates"},
        {"{% from 'x' import y %}", "'from' is not supported: templates cannot"},
        {"{% import 'x' as y %}", "'import' is not supported: templates cannot"},
        {"{% autoescape true %}{% endautoescape %}", "'autoescape' is not supported"},
        {"{% trans %}{% endtrans %}", "found 'trans', expected a statement"},
        {"{{ l|map('string')|pprint }}", "an iterator cannot be written as text"},
        {"{{ 'x'|urlize(extra_schemes=['tel']) }}", "'tel' is not a valid scheme of an address"},
        {"{{ 'x'|wordwrap(0) }}", "the width is 0 characters, expected at least 1"},
        {"{{ n|random }}", "random is applied to an integer, expected a list or a string"},
        {"{{ (1 }}", "this closing bracket has no matching open bracket"},
        {"{{ ! }}", "is not valid in the code"},
        {"{% break %}", "'break' outside of a loop"},
        {"{% for x in l %}{% macro f() %}{% break %}", "'break' outside of a loop"},
        {"{{ d.a.b.c }}", "'b' is undefined"},
        {"{% set d.x = 1 %}", "expected a namespace"},
        {"{% set a, b = [1] %}", "1 value cannot be assigned to 2 names"},
        {"{% macro f() %}{% endmacro %}{{ f(1) }}", "macro 'f' takes at most 0 arguments, found 1"},
        {"{% macro f(a) %}{% endmacro %}{{ f(b=1) }}", "no parameter 'b'"},
        {"{{ 1|tojson(bad=2) }}", "tojson has no parameter 'bad'"},
        {"{{ 'a'|replace('b') }}", "replace needs its argument 'new'"},
        {"{{ range|tojson }}", "a function cannot be written as JSON"},
        {"{{ {[1]: 2} }}", "a list cannot be a key"},
        {"{{ '\\x4' }}", "an escape has too few digits"},
        // clang-format on
    };
    for (const golden &g : errors) {
        result r = render(g.source);
        EXPECT_EQ(r.status, XM_INVALID) << g.source;
        EXPECT_NE(r.error.find(g.text), std::string::npos) << g.source << "\n" << r.error;
    }
}

TEST(Jinja, RunsEndAtTheirLimits)
{
    const struct xm_jinja_limits small = {100000, 1 << 20, 1 << 16, 60};
    const golden hostile[] = {
        // clang-format off
        {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "steps"},
        {"{{ range(10 ** 9) }}", "a range has"},
        {"{{ 'x' * 10 ** 12 }}", "take more than 1048576 bytes"},
        {"{{ [0] * 10 ** 12 }}", "steps"},
        {"{% for i in range(99) %}{{ 'x' * 1000 }}{% endfor %}", "writes more than 65536 bytes"},
        {"{% set x %}{% for i in range(99) %}{{ 'x' * 1000 }}{% endfor %}{% endset %}", "writes more"},
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested deeper than"},
        {"{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}", "nested deeper than"},
        {"{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == ns.x }}", "nested deeper than"},
        {"{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == ns.x }}", "steps"},
        {"{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}", ""},
        {"{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}", "nested deeper than"},
        {"{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", "take more than"},
        {"{{ ('a' * 200000 + 'b') in 'a' * 400000 }}", "steps"},
        {"{{ ('a' * 60000).strip('b' * 60000 + 'a') }}", "steps"},
        {"{{ ('a' * 60000)|trim('b' * 60000 + 'a') }}", "steps"},
        {"{{ ('a' * 60000).startswith(('b' * 60000,) * 5000) }}", "steps"},
        {"{% set x = 'a' * 60000 %}{% for i in range(999) %}{% if x|length %}{% endif %}{% endfor %}", "steps"},
        {"{{ ('a' * 60000).replace('', 'bbb') }}", "a text has more than"},
        // clang-format on
    };
    for (const golden &g : hostile) {
        result r = render(g.source, &small);
        EXPECT_EQ(r.status, XM_INVALID) << g.source;
        EXPECT_NE(r.error.find(g.text), std::string::npos) << g.source << "\n" << r.error;
    }
}

TEST(Jinja, DeepNestingIsRefused)
{
    auto times = [](const char *s, int n) {
        std::string r;
        while (n-- > 0)
            r += s;
        return r;
    };
    const std::string deep[] = {
        "{{ " + times("(", 5000) + "1" + times(")", 5000) + " }}",
        "{{ " + times("[", 100) + times("]", 100) + " }}" + "{{ " + times("-", 5000) +
            "1 }}",
        "{{ " + times("not ", 5000) + "1 }}",
        "{{ 1 " + times("if 1 else 1 ", 5000) + " }}",
        times("{% if t %}", 5000),
        times("{% for x in l %}", 5000),
        "{% if t %}" + times("{% elif t %}", 5000) + "{% endif %}",
        "{{ 1" + times(" + 1", 5000) + " }}",
        "{{ d" + times(".x", 5000) + " }}",
        "{{ s" + times("|trim", 5000) + " }}",
    };
    for (const std::string &source : deep) {
        result r = render(source);
        EXPECT_EQ(r.status, XM_INVALID) << source.substr(0, 40);
        EXPECT_FALSE(r.error.empty());
    }
    std::string json = "{\"x\": " + times("[", 5000) + times("]", 5000) + "}";
    EXPECT_EQ(render("{{ x }}", nullptr, json.c_str()).status, XM_INVALID);
}

TEST(Jinja, FloorDivisionIsExact)
{
    EXPECT_EQ(
        render("{{ 2 // 0.1 }} {{ -2 // 0.1 }} {{ 7.5 // -2 }} {{ 6.0 // 2 }}").text,
        "19.0 -20.0 -4.0 3.0");
}

TEST(Jinja, TheDateIsKnown)
{
    std::string year = render("{{ strftime_now('%Y') }}").text;
    EXPECT_EQ(year.size(), 4u);
    EXPECT_GE(year, "2024");
    EXPECT_EQ(render("{{ strftime_now('a' * 300) }}").status, XM_INVALID);
}

/* Each rendering makes the same random choices, but not one choice every time. */
TEST(Jinja, RandomChoicesAreThoseOfEachRun)
{
    const std::string source =
        "{% for i in range(40) %}{{ range(9)|random }}{% endfor %}";
    const std::string first = render(source).text;
    EXPECT_EQ(render(source).text, first);
    for (char digit = '0'; digit < '9'; digit++)
        EXPECT_NE(first.find(digit), std::string::npos) << first;
}

TEST(Jinja, LongChainsOfUsualLengthAreFine)
{
    std::string sum = "{{ 0";
    for (int i = 0; i < 300; i++)
        sum += " + 1";
    EXPECT_EQ(render(sum + " }}").text, "300");
}

TEST(Jinja, IllFormedTextIsRepaired)
{
    EXPECT_EQ(render("a\xff"
                     "b{{ '\xc3' }}")
                  .text,
              "a\xef\xbf\xbd"
              "b\xef\xbf\xbd");
}

TEST(Jinja, TruncatedTemplatesNeverCrash)
{
    std::string all;
    for (const golden &g : goldens)
        all = all.size() < 3000 ? all + g.source : all;
    for (size_t n = 0; n < all.size(); n += 3)
        render(all.substr(0, n));
    for (size_t i = 0; i < all.size(); i += 5)
        for (const char *c : {"{", "}", "%", "'", "|", "("}) {
            std::string damaged = all.substr(i < 200 ? 0 : i - 200, 400);
            damaged[damaged.size() / 2] = *c;
            render(damaged);
        }
}

TEST(Jinja, EveryAllocationMayFail)
{
    const char *source =
        "{% macro f(a, b='x') %}{{ a ~ b }}{% endmacro %}{% set ns = namespace(q=1) %}"
        "{% for m in msgs if m.role %}{% set ns.q = ns.q + 1 %}{{ f(m.role)|upper }}"
        "{{ m|tojson(indent=2) }}{% endfor %}{% set x %}b{{ l|sort|join(',') }}{% endset "
        "%}"
        "{{ x.split('b')|map('trim')|list }}{{ 'a\\n' 'b' }}{{ u|replace('e', 'EE') }}";
    ASSERT_EQ(render(source).status, XM_OK);
    for (uint64_t n = 1;; n++) {
        xm_fail_allocation(n);
        result r = render(source);
        bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (!seen) {
            EXPECT_EQ(r.status, XM_OK);
            break;
        }
        EXPECT_EQ(r.status, XM_NO_MEMORY) << n << " " << r.error;
    }
}
