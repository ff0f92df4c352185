/* SPDX-License-Identifier: Apache-2.0
 *
 * GBNF: which texts a grammar matches, and the error texts for invalid grammars.
 */
#include <chrono>

#include "runtime/util/memory.h"
#include "unit_tests/text/grammar_test.h"

namespace
{

struct MatchCase {
    const char *grammar;
    std::vector<std::string> yes, no;
};

const MatchCase match_cases[] = {
    {R"(root ::= "abc")", {"abc"}, {"", "ab", "abcd", "abd"}},
    {R"(root ::= "a" | "bc" | "")", {"a", "bc", ""}, {"b", "abc", "aa"}},
    {R"(root ::= ("a" | "b")* "c"?)", {"", "c", "abba", "bac"}, {"ca", "cc"}},
    {R"(root ::= [a-c]+ [^x-z0])", {"ab", "aé", "ccq"}, {"a", "ax", "a0", "é"}},
    {R"(root ::= [0-9]{2,4})", {"12", "123", "1234"}, {"1", "12345", ""}},
    {R"(root ::= [0-9]{3} "-" [0-9]{2,})", {"123-45", "123-4567"}, {"12-45", "123-4"}},
    {R"(root ::= ("ab" | "c"){2,3})", {"abab", "cabc", "cc"}, {"ab", "cccc", "abb"}},
    {R"(root ::= "\x41\u00e9\U0001F600\n\t\"\\")", {"Aé😀\n\t\"\\"}, {"A"}},
    {R"(root ::= [\u4e00-\u9fff]+)", {"中文", "一"}, {"a", "中a", "\xe4\xb8", "〇"}},
    {R"(root ::= [\x20-\U0010FFFF]*)", {"", " é😀", "~"}, {"\n", "\x80", "\xed\xa0\x80"}},
    {R"(root ::= [a\-z\]^]+)", {"a-z]^"}, {"b"}},
    {R"(root ::= [-a]+)", {"-a"}, {"b"}},
    {R"(root ::= .{2})", {"ab", "é😀", "\n\n"}, {"a", "abc", "\xff\xff"}},
    {"root ::= a b # comment\n# more\na ::= \"x\"\nb ::=\n  \"y\" |\n \"z\"\n",
     {"xy", "xz"},
     {"x", "xyz"}},
    {"root ::= \"a\"\n  | \"b\"\nother ::= \"c\"", {"a", "b"}, {"c"}},
    {"root ::= (\n \"a\"\n \"b\" # in a group\n)+", {"ab", "abab"}, {"a"}},
    {"root ::= list\nlist ::= \"[\" (list (\",\" list)*)? \"]\"",
     {"[]", "[[],[[]]]"},
     {"[", "[,]", "[][]"}},
    {"root ::= word (ws word)*\nword ::= [a-z]+\nws ::= ([ \\t] ws)?",
     {"a b", "ab  \tc", "ab"},
     {" a", "a "}},
    {"root ::= a\na ::= \"x\" a \"y\" | \"\"", {"", "xy", "xxxyyy"}, {"x", "xxy", "xyy"}},
    /* ambiguous grammars: all derivations share few threads */
    {"root ::= a\na ::= \"x\" a | \"x\" a a | \"y\"",
     {"y", "xy", "xyy", "xxyyy"},
     {"x", "yy"}},
    {"root ::= (\"a\"*)* \"b\"", {"b", "aaab"}, {"a"}},
    {"root ::= ((\"a\"?)*)+ \"b\"", {"b", "aaab"}, {"a"}},
    {"root ::= [a-z]{0,1000000} \"!\"", {"!", "abc!"}, {"abc", "!!"}},
    {"root ::= (\"ab\" | \"c\"){300,100000} \"!\"",
     {std::string(300, 'c') + "!"},
     {std::string(299, 'c') + "!", "ab!"}},
    {"root ::= (\"ab\" | \"c\"){300,400}",
     {std::string(300, 'c'), std::string(400, 'c')},
     {std::string(299, 'c'), std::string(401, 'c')}},
    {"root ::= digit{3,500} end\ndigit ::= [0-9]\nend ::= \".\"", {"123."}, {"12."}},
    {"root ::= <[3]> \"a\" | \"b\"", {"b"}, {"a"}},
    {"root ::= dead | \"a\"\ndead ::= \"b\" dead", {"a"}, {"b", "ba"}},
};

TEST(Gbnf, MatchesWhatTheGrammarSays)
{
    for (const MatchCase &c : match_cases) {
        SCOPED_TRACE(c.grammar);
        const Grammar g = Grammar::gbnf(c.grammar);
        ASSERT_EQ(g.status, XM_OK) << g.err.text;
        for (const std::string &text : c.yes)
            EXPECT_TRUE(g.matches(text)) << text;
        for (const std::string &text : c.no)
            EXPECT_FALSE(g.matches(text)) << text;
    }
}

const struct {
    const char *grammar, *sentence;
} wrong_cases[] = {
    {"", "grammar: there is no rule 'root', which must describe the whole text"},
    {"a ::= \"b\"",
     "grammar: there is no rule 'root', which must describe the whole text"},
    {"root ::= \"b", "grammar, line 1, column 10: this text has no closing \""},
    {"root ::= x\nroot ::= y",
     "grammar, line 2, column 1: a rule with this name is defined already"},
    {"root ::= \"é\" x", "grammar, line 1, column 14: there is no rule 'x'"},
    {"root ::= [a", "grammar, line 1, column 10: this character class has no closing ]"},
    {"root ::= [b-a]",
     "grammar, line 1, column 12: the end of the range comes before its start"},
    {"root ::= (\"a\"", "grammar, line 1, column 10: this group has no closing )"},
    {"root ::= \"a\")", "grammar, line 1, column 13: expected the end of the rule"},
    {"root ::= \"a\"{3,2}", "grammar, line 1, column 13: the upper bound of the "
                            "repetition is below its lower bound"},
    {"root ::= \"a\"{2", "grammar, line 1, column 13: this repetition has no closing }"},
    {"root ::= \"\\q\"",
     "grammar, line 1, column 12: unknown escape; \\n \\r \\t \\\\ \\\" \\[ \\] "
     "\\xHH \\uHHHH \\UHHHHHHHH are known"},
    {"root ::= \"\\ud800\"",
     "grammar, line 1, column 13: the escape is not a Unicode character"},
    {"root = \"a\"", "grammar, line 1, column 6: expected ::= after the name of a rule"},
    {"\n ::= \"a\"", "grammar, line 2, column 2: expected the name of a rule"},
    {"root ::= !<a>",
     "grammar, line 1, column 10: the negation of a token is not supported"},
    {"root ::= <a", "grammar, line 1, column 10: this token has no name or no closing >"},
    {"root ::= \"\xff\"", "grammar, line 1, column 11: the bytes are not UTF-8 text"},
    {"root ::= root \"a\" | \"b\"",
     "the grammar is left-recursive: the rule 'root' can begin with itself"},
    {"root ::= \"x\"? a\na ::= root \"a\" | \"b\"",
     "the grammar is left-recursive: the rule 'root' can begin with itself"},
    {"root ::= \"x\" root", "the grammar matches no text"},
    {"root ::= \"x\" [^\\x00-\\U0010FFFF]", "the grammar matches no text"},
    {"root ::= (\"a\"?){1,100000}", "the grammar repeats an item that can be empty up to "
                                    "100000 times, which is not supported"},
};

TEST(Gbnf, SaysWhatIsWrong)
{
    for (const auto &c : wrong_cases) {
        SCOPED_TRACE(c.grammar);
        const Grammar g = Grammar::gbnf(c.grammar);
        EXPECT_NE(g.status, XM_OK);
        EXPECT_EQ(g.g, nullptr);
        EXPECT_STREQ(g.err.text, c.sentence);
    }
}

TEST(Gbnf, IsBoundedInDepthSizeAndTime)
{
    const auto begin = std::chrono::steady_clock::now();
    std::string deep = "root ::= ";
    for (int i = 0; i < 100000; i++)
        deep += "(";
    EXPECT_EQ(Grammar::gbnf(deep).status, XM_UNSUPPORTED);

    /* Each rule is the one before, twice: expanded there would be 2^60 states. */
    std::string doubled = "r0 ::= \"a\"\n";
    for (int i = 1; i <= 60; i++)
        doubled += "r" + std::to_string(i) + " ::= r" + std::to_string(i - 1) + " r" +
                   std::to_string(i - 1) + "\n";
    const Grammar many = Grammar::gbnf(doubled + "root ::= r4 | r60");
    ASSERT_EQ(many.status, XM_OK) << many.err.text;
    EXPECT_TRUE(many.matches(std::string(16, 'a')));
    EXPECT_FALSE(many.matches(std::string(17, 'a')));

    /* A chain of rules, each of which is just the next. */
    std::string chain = "root ::= r0\n";
    for (int i = 0; i < 50000; i++)
        chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
    const Grammar long_chain = Grammar::gbnf(chain + "r50000 ::= \"a\"");
    ASSERT_EQ(long_chain.status, XM_OK) << long_chain.err.text;
    EXPECT_TRUE(long_chain.matches("a"));

    std::string nested = "root ::= \"a\"";
    for (int i = 0; i < 7; i++)
        nested += "{9}";
    const Grammar power = Grammar::gbnf(nested);
    ASSERT_EQ(power.status, XM_OK) << power.err.text;
    EXPECT_FALSE(power.matches("aaa"));

    const Grammar huge = Grammar::gbnf("root ::= \"a\"{99999999} | \"b\"");
    EXPECT_TRUE(huge.matches("b"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Gbnf, NestedTextsEndAtTheBoundOfOpenRules)
{
    const Grammar g = Grammar::gbnf("root ::= \"[\" root \"]\" | \"\"");
    EXPECT_TRUE(g.matches(std::string(5000, '[') + std::string(5000, ']')));
    bool matches = true;
    xm_error err = {};
    const std::string deep(2000000, '[');
    EXPECT_EQ(xm_grammar_matches(g.g, deep.data(), deep.size(), &matches, &err),
              XM_UNSUPPORTED);
    EXPECT_STREQ(err.text, "the text nests the rules of the grammar too deeply");
    EXPECT_FALSE(matches);
}

TEST(Gbnf, ManyWaysAtOnceFailWithASentence)
{
    /* Each x opens a rule or not: stacks of all depths. */
    const Grammar g =
        Grammar::gbnf("root ::= a\na ::= \"x\" a \"y\" | \"x\" a \"z\" | \"x\"");
    bool matches = true;
    xm_error err = {};
    const std::string text(40, 'x');
    EXPECT_EQ(xm_grammar_matches(g.g, text.data(), text.size(), &matches, &err),
              XM_UNSUPPORTED);
    EXPECT_STREQ(
        err.text,
        "the grammar is too ambiguous: it can read this text in too many ways at once");
}

TEST(Gbnf, FailsCleanlyWithoutMemory)
{
    const std::string text =
        "root ::= a (\",\" a){0,3} <[1]>?\na ::= [^\\n\"]+ | \"(\" root \")\"";
    const std::string sample = "b,(c,d)";
    for (uint64_t n = 1;; n++) {
        xm_grammar *g = nullptr;
        xm_error err = {};
        bool matches = false;
        xm_fail_allocation(n);
        xm_status s = xm_grammar_parse(text.data(), text.size(), &g, &err);
        if (s == XM_OK)
            s = xm_grammar_matches(g, sample.data(), sample.size(), &matches, &err);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(s, seen ? XM_NO_MEMORY : XM_OK) << n << " " << err.text;
        EXPECT_EQ(matches, !seen);
        xm_grammar_free(g);
        if (!seen)
            return;
    }
}

} // namespace
