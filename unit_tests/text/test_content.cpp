// SPDX-License-Identifier: Apache-2.0
// Texts of messages, tools and variables never become control tokens, whatever a template does to
// them; templates see the texts complete and unchanged.
#include <cstring>

#include "unit_tests/text/chat_test.h"

namespace
{

/* Returns the rendered text with [ ] around the content. */
std::string
marked(const std::string &source, const char *messages, const char *extra = nullptr)
{
    Template tmpl;
    struct xm_strbuf text = {}, marks = {};
    std::string shown;
    EXPECT_EQ(xm_chat_template_parse(source.data(), source.size(), &tmpl.t, &tmpl.err),
              XM_OK)
        << tmpl.err.text;
    EXPECT_EQ(xm_chat_template_render_marked(tmpl.t, messages, true, extra, &text, &marks,
                                             &tmpl.err),
              XM_OK)
        << tmpl.err.text;
    EXPECT_EQ(text.n, marks.n);
    for (size_t i = 0; i < text.n; i++) {
        if (marks.text[i] && (i == 0 || !marks.text[i - 1]))
            shown += '[';
        shown += text.text[i];
        if (marks.text[i] && (i + 1 == text.n || !marks.text[i + 1]))
            shown += ']';
    }
    xm_strbuf_free(&text);
    xm_strbuf_free(&marks);
    return shown;
}

const char *const two = R"([{"role":"user","content":" a<b>c "},
    {"role":"tool","name":"n","content":[{"type":"text","text":"T\n"}],"args":{"k":["v",1]}}])";

struct row {
    const char *source, *text;
};
const row rows[] = {
    // clang-format off
    {"<|{{ messages[0].role }}|>{{ messages[0].content }}", "<|user|>[ a<b>c ]"},
    {"{{ messages[1].content[0].type ~ messages[1].name }}", "text[n]"},
    {"{% set c = messages[0].content %}{{ c.strip() }}{{ c|trim }}{{ c[2:5] }}{{ c[3] }}",
     "[a<b>ca<b>c<b>b]"},
    {"{% set c = messages[0].content %}{{ ('x' + c + 'y') ~ 'z' }}", "x[ a<b>c ]yz"},
    {"{{ messages[0].content.split('<b>')|join('<b>') }}", "[ a]<b>[c ]"},
    {"{{ messages[0].content.replace('b', 'BB') }}", "[ a<]BB[>c ]"},
    {"{{ messages[0].content|replace('', '-') }}", "-[ ]-[a]-[<]-[b]-[>]-[c]-[ ]-"},
    {"{{ messages[0].content|upper }}{{ messages[0].content.title() }}", "[ A<B>C  A<B>C ]"},
    {"{{ messages[0].content|e }}", "[ a&lt;b&gt;c ]"},
    {"{{ messages[0].content|tojson }}", "\"[ a<b>c ]\""},
    {"{{ messages[1].content[0].text|tojson }}", "\"[T\\n]\""},
    {"{{ messages[1].args|tojson }}", "{\"[k]\": [\"[v]\", 1]}"},
    {"{{ messages[1].args }}", "{'[k]': ['[v]', 1]}"},
    {"{{ messages[0].content * 2 }}", "[ a<b>c  a<b>c ]"},
    {"{{ messages[0].content|reverse }}{{ messages[0].content[::2] }}", "[ c>b<a  <> ]"},
    {"{% for c in messages[1].name %}{{ c }}!{% endfor %}", "[n]!"},
    {"{% set x %}<i>{{ messages[1].name }}{% endset %}{{ x }}", "<i>[n]"},
    {"{% macro m(x) %}({{ x }}){% endmacro %}{{ m(messages[1].name) }}", "([n])"},
    {"{% filter indent(1) %}a\n{{ messages[1].name }}{% endfilter %}", "a\n [n]"},
    {"{{ messages[0].content|default('d') }}{{ messages[0].content|list|first }}", "[ a<b>c  ]"},
    {"{{ '<b>' in messages[0].content }}{{ messages[0].content|length }}", "True7"},
    {"{{ messages[0].content == ' a<b>c ' }}{{ messages[0].content.find('<') }}", "True2"},
    {"{% set ns = namespace(x='') %}{% for m in messages %}{% set ns.x = ns.x + m.role %}"
     "{% endfor %}{{ ns.x }}", "usertool"},
    {"{{ messages[0].content|wordwrap(4) }}|{{ 'www.a.b/' ~ messages[1].name|urlize }}", "[ a<b]\n[>c]|www.a.b/[n]"},
    {"{{ (messages[1].name ~ '@a.com')|urlize }}", "<a href=\"mailto:[n]@a.com\">[n]@a.com</a>"},
    {"{{ [messages[0].content]|pprint }}{{ messages[1].name|random }}", "['[ a<b>c ]'][n]"},
    {"{{ tools[0].name }}{{ eos_token }}{{ kind }}", "[f]</s>[<k>]"},
    // clang-format on
};

} // namespace

TEST(Content, TemplatesCarryMarks)
{
    const char *extra = R"({"tools":[{"name":"f"}],"eos_token":"</s>","kind":"<k>"})";
    for (const row &r : rows)
        EXPECT_EQ(marked(r.source, two, extra), r.text) << r.source;
}

TEST(Content, ARoleThatIsNoWordIsContent)
{
    EXPECT_EQ(marked("{{ messages[0].role }}", R"([{"role":"<b>","content":""}])"),
              "[<b>]");
}

namespace
{

/* Letters, a merge "bc" that may cross a boundary, two special tokens, one user-defined token. */
const char *const model =
    R"("merges":[["b","c"]],"vocab":{"<":0,"s":1,">":2,"a":3,"b":4,)"
    R"("c":5,"bc":6,"<s>":7,"T":8,"/":9})";
const char *const added =
    R"("added_tokens":[{"id":7,"content":"<s>","special":true},)"
    R"({"id":20,"content":"<s>a","special":true,"normalized":false},)"
    R"({"id":21,"content":"<T>","normalized":false}])";

/* Encodes a text; the bytes marked '1' in `marks` are content. */
ids
encode(const Tokenizer &t, const std::string &text, const std::string &marks)
{
    struct xm_token_list list = {};
    struct xm_error err = {};
    std::string bytes;
    for (char c : marks)
        bytes += c == '1' ? '\1' : '\0';
    EXPECT_EQ(text.size(), marks.size());
    EXPECT_EQ(xm_tokenizer_encode_marked(t.t, text.data(), bytes.data(), text.size(),
                                         false, &list, &err),
              XM_OK);
    ids result(list.ids, list.ids + list.n);
    xm_token_list_free(&list);
    return result;
}

} // namespace

TEST(Content, NoSpecialTokenIsFoundInMarkedText)
{
    for (const char *normalized : {"true", "false"}) {
        std::string tokens = added;
        tokens.insert(tokens.find("\"special\""),
                      std::string("\"normalized\":") + normalized + ",");
        Tokenizer t(tokenizer_json(model, tokens));
        ASSERT_EQ(t.status, XM_OK) << t.err.text;
        EXPECT_EQ(encode(t, "<s><s>", "000111"), (ids{7, 0, 1, 2}));
        EXPECT_EQ(encode(t, "<s><s>", "111000"), (ids{0, 1, 2, 7}));
        /* half of the token is content */
        EXPECT_EQ(encode(t, "<s>", "001"), (ids{0, 1, 2}));
        /* the longer token is refused */
        EXPECT_EQ(encode(t, "<s>a", "0001"), (ids{7, 3}));
        EXPECT_EQ(encode(t, "<s>a", "0000"), (ids{20}));
        EXPECT_EQ(encode(t, "<T>", "111"),
                  (ids{21})); /* user-defined tokens are found everywhere */
        EXPECT_EQ(encode(t, "abc", "001"), (ids{3, 6})); /* a merge across the boundary */
        EXPECT_EQ(t.encode("<s><T>bc"), encode(t, "<s><T>bc", "00000000"));
    }
}

TEST(Content, NoSpecialTokenIsMadeOfAWholeWord)
{
    Tokenizer t(tokenizer_json(std::string("\"ignore_merges\":true,") + model, added));
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(encode(t, "<s>", "111"), (ids{0, 1, 2}));
    EXPECT_EQ(encode(t, "bc", "11"), (ids{6}));
}

TEST(Content, NormalizedTextKeepsItsMarks)
{
    const std::string tokens =
        std::string(
            R"("normalizer":{"type":"Replace","pattern":{"String":"/"},"content":)"
            R"("TT"},)") +
        added;
    Tokenizer t(tokenizer_json(model, tokens));
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(encode(t, "/<s>/<s>", "11110000"), (ids{8, 8, 0, 1, 2, 8, 8, 7}));
    EXPECT_EQ(encode(t, "/<s>/<s>", "00001111"), (ids{8, 8, 7, 8, 8, 0, 1, 2}));
}
