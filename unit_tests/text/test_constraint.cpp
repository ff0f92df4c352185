/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tokens a grammar allows next: the masks agree with reading each token's bytes.
 */
#include "plugin/text/constraint.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "plugin/text/sampler.h"
#include "plugin/text/token_trie.h"
#include "runtime/util/memory.h"
#include "unit_tests/text/grammar_test.h"

namespace
{

/* A byte-level tokenizer whose vocabulary is all bytes, then these texts, then <end> and <call>. */
std::string
byte_level_text(const std::string &bytes)
{
    std::string out;
    int stand_in[256], next = 0x100;
    for (int b = 0; b < 256; b++)
        stand_in[b] = b <= 0x20 || (b >= 0x7f && b <= 0xa0) || b == 0xad ? next++ : b;
    for (unsigned char b : bytes) {
        const int code = stand_in[b];
        if (code == '"' || code == '\\')
            out += std::string("\\") + char(code);
        else if (code < 0x80)
            out += char(code);
        else
            out += {char(0xc0 | code >> 6), char(0x80 | (code & 0x3f))};
    }
    return out;
}

const std::vector<std::string> &
pieces()
{
    static const std::vector<std::string> list = {
        "ab",          "abc",
        "a\"",         "\",",
        "\":",         "\"}",
        "{\"",         "{}",
        "[]",          "]]",
        "],",          "[[",
        "},{",         "\", \"",
        "\": \"",      "true",
        "false",       "null",
        "12",          "123",
        "1234",        "-1",
        "1.5",         "e+",
        ".0",          "\xe4\xb8",
        "\xb8\xad",    "中",
        "中文",        "é",
        "\xa9z",       "é\"",
        "😀",           "\xf0\x9f",
        "\x98\x80",    "a\xc3",
        "hello",       " world",
        "  ",          "\n\n",
        "\n  ",        "\\n",
        "\\\"",        "\\u",
        "00e9",        "xxyy",
        "xy",          "b\xc3(",
        "aaaaaaaaaa!", "aaaaaaaaa!",
        "yy",          "a b",
        "abab",        "name",
        "\"name\"",    "\"a\":1",
        "x\",\"y",     "\"\"",
        "}}",          "}]",
        "1,2",         "aaaaaaaaaaaaaaaa",
        "é中😀",        "a中",
        "中a\"",
    };
    return list;
}

std::string
byte_tokenizer()
{
    std::string vocab;
    int id = 0;
    for (int b = 0; b < 256; b++)
        vocab += "\"" + byte_level_text(std::string(1, char(b))) +
                 "\":" + std::to_string(id++) + ",";
    for (const std::string &p : pieces())
        vocab += "\"" + byte_level_text(p) + "\":" + std::to_string(id++) + ",";
    vocab.pop_back();
    return tokenizer_json("\"vocab\":{" + vocab + "},\"merges\":[]",
                          R"("decoder":{"type":"ByteLevel"},"added_tokens":[)"
                          R"({"id":)" +
                              std::to_string(id) +
                              R"(,"content":"<end>","special":true},)"
                              R"({"id":)" +
                              std::to_string(id + 1) +
                              R"(,"content":"<call>","special":true}])");
}

class Constraint
{
  public:
    Constraint(const Grammar &g, const Tokenizer &t)
    {
        status = xm_constraint_create(g.g, t.t, &c, &err);
    }
    ~Constraint()
    {
        xm_constraint_free(c);
    }
    std::vector<bool> allowed(bool first = false)
    {
        xm_token_bits bits = {};
        err = {};
        status = xm_constraint_allowed(c, first, &bits, &err);
        EXPECT_EQ(status, XM_OK) << err.text;
        std::vector<bool> out(bits.n * 64);
        for (size_t i = 0; status == XM_OK && i < out.size(); i++)
            out[i] = bits.words[i / 64] >> i % 64 & 1;
        return out;
    }
    xm_status accept(int32_t id, bool first = false)
    {
        err = {};
        return status = xm_constraint_accept(c, id, first, &err);
    }
    xm_status bytes(const std::string &text)
    {
        err = {};
        return status = xm_constraint_accept_bytes(c, text.data(), text.size(), &err);
    }
    xm_constraint *c = nullptr;
    xm_error err = {};
    xm_status status = XM_OK;
};

const char *const grammars[] = {
    R"(root ::= [a-z]{0,15} "!"?)",
    R"(root ::= [\x00-\x7f]* [\x00-\x7f\u00e9]{0,15})",
    R"(root ::= .*)",
    R"(root ::= [a-z]{10,30} "!" [a-z]*)",
    R"(root ::= "ab" ("c" | "a")* "b")",
    R"(root ::= [^"]* "\"" ("," | ":")?)",
    R"(root ::= [a-z]{0,5} [0-9]{2,20} [^"\\]{3,1000000} "\"")",
    R"(root ::= ([a-z]{1,3} " "?){2,400})",
    R"(root ::= "x" root "y" | "x" root "yy" | "")",
    R"(root ::= ("ab" | "a" | "b" "a"*){2,5} .{0,3})",
    R"(root ::= [\u00e9-\u4e2d]* [\u4e00-\U0010ffff]{1,3})",
    R"gbnf(root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (member ("," ws member)*)? "}"
member ::= string ":" ws value
array ::= "[" (value ("," ws value)*)? "]"
string ::= "\"" char* "\""
char ::= [^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [+-]? [0-9]+)?
ws ::= [ \n]{0,3})gbnf",
    R"(root ::= list
list ::= "[" (item ("," item){0,1000})? "]" | "[" "]" "]"
item ::= list | [0-9]+ | "\"" [^"]{0,40} "\"")",
};

/* Random walks through each grammar; at each step every token is also tested alone. */
TEST(Constraint, AllowsTheTokensWhoseBytesCanFollow)
{
    const Tokenizer t(byte_tokenizer());
    ASSERT_NE(t.t, nullptr) << t.err.text;
    std::mt19937 random(7);
    for (const char *text : grammars)
        for (int run = 0; run < 2; run++) {
            SCOPED_TRACE(text);
            const Grammar g = Grammar::gbnf(text);
            ASSERT_EQ(g.status, XM_OK) << g.err.text;
            Constraint c(g, t);
            std::string so_far;
            for (int step = 0; step < 16; step++) {
                const std::vector<bool> mask = c.allowed();
                std::vector<int32_t> can;
                for (int32_t id = 0; id < int32_t(256 + pieces().size()); id++) {
                    const std::string bytes =
                        id < 256 ? std::string(1, char(id)) : pieces()[size_t(id) - 256];
                    const std::string next = so_far + bytes;
                    const bool expected =
                        xm_grammar_may_begin(g.g, next.data(), next.size());
                    ASSERT_EQ(mask[size_t(id)], expected)
                        << "'" << so_far << "' then '" << bytes << "'";
                    if (expected)
                        can.push_back(id);
                }
                ASSERT_FALSE(mask[256 + pieces().size()])
                    << "an end is no token of a grammar";
                if (can.empty())
                    break;
                /* prefers long tokens */
                int32_t id = can[random() % can.size()];
                if (id < 256)
                    id = can[random() % can.size()];
                so_far +=
                    id < 256 ? std::string(1, char(id)) : pieces()[size_t(id) - 256];
                ASSERT_EQ(c.accept(id), XM_OK) << c.err.text;
                EXPECT_EQ(xm_constraint_can_end(c.c), g.matches(so_far)) << so_far;
                EXPECT_FALSE(xm_constraint_is_at_start(c.c));
            }
        }
}

/* Two texts from one place: each continues as it would alone. */
TEST(Constraint, AForkContinuesAlone)
{
    const Tokenizer t(byte_tokenizer());
    ASSERT_NE(t.t, nullptr) << t.err.text;
    std::mt19937 random(11);
    for (const char *text : grammars) {
        SCOPED_TRACE(text);
        const Grammar g = Grammar::gbnf(text);
        Constraint one(g, t), other(g, t);
        for (int step = 0; step < 24; step++) {
            if (step % 4 == 0) { /* the other text starts again from here */
                xm_constraint_free(other.c);
                ASSERT_EQ(xm_constraint_fork(one.c, &other.c, &other.err), XM_OK);
                ASSERT_EQ(xm_constraint_is_at_start(other.c), step == 0);
            }
            ASSERT_EQ(xm_constraint_can_end(other.c), xm_constraint_can_end(one.c));
            ASSERT_EQ(xm_constraint_is_over(other.c), xm_constraint_is_over(one.c));
            const std::vector<bool> mask = one.allowed();
            ASSERT_EQ(other.allowed(), mask) << step;
            std::vector<int32_t> can;
            for (int32_t id = 0; id < int32_t(mask.size()); id++)
                if (mask[size_t(id)])
                    can.push_back(id);
            if (can.empty())
                break;
            Constraint stray(g, t); /* a third text that is dropped */
            xm_constraint_free(stray.c);
            ASSERT_EQ(xm_constraint_fork(other.c, &stray.c, &stray.err), XM_OK);
            ASSERT_EQ(stray.accept(can[random() % can.size()]), XM_OK);
            const int32_t id = can[random() % can.size()];
            ASSERT_EQ(one.accept(id), XM_OK);
            ASSERT_EQ(other.accept(id), XM_OK);
        }
    }
}

TEST(Constraint, EndsWhereTheGrammarEnds)
{
    const Tokenizer t(byte_tokenizer());
    const Grammar g = Grammar::gbnf("root ::= \"ab\" \"c\"?");
    Constraint c(g, t);
    EXPECT_TRUE(xm_constraint_is_at_start(c.c));
    EXPECT_FALSE(xm_constraint_can_end(c.c));
    ASSERT_EQ(c.accept('a'), XM_OK);
    ASSERT_EQ(c.accept('b'), XM_OK);
    EXPECT_TRUE(xm_constraint_can_end(c.c));
    EXPECT_FALSE(xm_constraint_is_over(c.c));
    ASSERT_EQ(c.accept('c'), XM_OK);
    EXPECT_TRUE(xm_constraint_can_end(c.c));
    EXPECT_TRUE(xm_constraint_is_over(c.c));
    const std::vector<bool> none = c.allowed();
    EXPECT_EQ(std::count(none.begin(), none.end(), true), 0);
    EXPECT_EQ(c.accept('c'), XM_INVALID);
    EXPECT_STREQ(c.err.text, "the grammar does not allow this token here");
}

TEST(Constraint, SpecialTokensAreMatchedByTheirNamesOnly)
{
    const Tokenizer t(byte_tokenizer());
    const int32_t end = xm_tokenizer_id_of(t.t, "<end>"), call = end + 1;
    const Grammar g =
        Grammar::gbnf("root ::= (<call> [a-z]+ | \"<call>\" | \"ab\" <[97]>)+");
    Constraint c(g, t);
    std::vector<bool> mask = c.allowed();
    EXPECT_TRUE(mask[size_t(call)]);
    EXPECT_FALSE(mask[size_t(end)]);
    EXPECT_TRUE(mask['<']);
    ASSERT_EQ(c.accept(call), XM_OK) << c.err.text;
    mask = c.allowed();
    EXPECT_FALSE(mask[size_t(call)]);
    EXPECT_TRUE(mask['a']);
    EXPECT_FALSE(mask['<']);
    ASSERT_EQ(c.accept('q'), XM_OK);
    EXPECT_TRUE(c.allowed()[size_t(call)]);
    ASSERT_EQ(c.accept(256), XM_OK) << "ab"; /* as letters, or as the third alternative */
    mask = c.allowed();
    EXPECT_TRUE(mask['a']);
    ASSERT_EQ(c.accept('a'), XM_OK);
    EXPECT_TRUE(xm_constraint_can_end(c.c));

    const Grammar unknown = Grammar::gbnf("root ::= <nobody>");
    Constraint d(unknown, t);
    EXPECT_EQ(d.status, XM_INVALID);
    EXPECT_STREQ(
        d.err.text,
        "the grammar names the token <nobody>, which the tokenizer does not have");
    const Grammar beyond = Grammar::gbnf("root ::= <[100000]>");
    Constraint e(beyond, t);
    EXPECT_EQ(e.status, XM_INVALID);
}

/* Metaspace drops the space of the first token, Strip that of the text. */
TEST(Constraint, KnowsWhatTheFirstTokenAppends)
{
    const char *const decoders[] = {
        R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})",
        R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},
            {"type":"ByteFallback"},{"type":"Fuse"},
            {"type":"Strip","content":" ","start":1,"stop":0}]})"};
    for (const char *decoder : decoders) {
        SCOPED_TRACE(decoder);
        const Tokenizer t(
            tokenizer_json(R"("vocab":{"▁a":0,"a":1,"▁":2,"▁▁a":3,"b":4},"merges":[])",
                           std::string("\"decoder\":") + decoder));
        ASSERT_NE(t.t, nullptr) << t.err.text;
        const Grammar plain = Grammar::gbnf("root ::= \"a\" \" a\"");
        Constraint c(plain, t);
        std::vector<bool> mask = c.allowed(true);
        EXPECT_TRUE(mask[0]);
        EXPECT_TRUE(mask[1]);
        EXPECT_FALSE(mask[2]);
        EXPECT_FALSE(mask[4]);
        ASSERT_EQ(c.accept(0, true), XM_OK) << c.err.text;
        mask = c.allowed();
        EXPECT_TRUE(mask[0]);
        EXPECT_TRUE(mask[2]);
        EXPECT_FALSE(mask[1]);
        EXPECT_FALSE(mask[3]);
        ASSERT_EQ(c.accept(0), XM_OK);
        EXPECT_TRUE(xm_constraint_is_over(c.c));
    }
}

TEST(Constraint, ByteTokensAreBytes)
{
    const Tokenizer t(tokenizer_json(
        R"("vocab":{"<0xC3>":0,"<0xA9>":1,"é":2,"<0x41>":3,"<0xZZ>":4},"merges":[])",
        R"("decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"}]})"));
    const Grammar g = Grammar::gbnf("root ::= \"é\" \"A\"");
    Constraint c(g, t);
    EXPECT_EQ(c.allowed()[0], true);
    EXPECT_EQ(c.allowed()[1], false);
    EXPECT_EQ(c.allowed()[2], true);
    EXPECT_EQ(c.allowed()[4], false);
    ASSERT_EQ(c.accept(0), XM_OK);
    EXPECT_FALSE(xm_constraint_can_end(c.c));
    EXPECT_EQ(c.allowed()[1], true);
    EXPECT_EQ(c.allowed()[2], false);
    ASSERT_EQ(c.accept(1), XM_OK);
    ASSERT_EQ(c.accept(3), XM_OK);
    EXPECT_TRUE(xm_constraint_can_end(c.c));
}

TEST(Constraint, FailsCleanlyWithoutMemory)
{
    const Grammar g = Grammar::gbnf(grammars[11]);
    for (uint64_t n = 1;; n += n < 400 ? 1 : 37) {
        const Tokenizer t(byte_tokenizer());
        xm_fail_allocation(n);
        xm_constraint *c = nullptr;
        xm_error err = {};
        xm_status s = xm_constraint_create(g.g, t.t, &c, &err);
        xm_token_bits bits = {};
        for (int i = 0; s == XM_OK && i < 8; i++) {
            s = xm_constraint_allowed(c, false, &bits, &err);
            if (s == XM_OK)
                s = xm_constraint_accept(c, "{\"a\":[1,"[i], false, &err);
        }
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_TRUE(s == XM_OK || (seen && s == XM_NO_MEMORY)) << n << " " << err.text;
        xm_constraint_free(c);
        if (!seen)
            return;
    }
}

TEST(Constraint, ASamplerChoosesAllowedTokensInItsNextChoiceOnly)
{
    const size_t n = 130;
    std::vector<float> row(n);
    for (size_t i = 0; i < n; i++)
        row[i] = (float)i;
    xm_sampling sampling = {};
    sampling.top_p = 1.0f;
    xm_error err = {};
    xm_sampler *sampler = nullptr;
    ASSERT_EQ(xm_sampler_create(&sampling, n, &sampler, &err), XM_OK) << err.text;
    xm_sampler_scratch *scratch = xm_sampler_scratch_create(n);
    const uint64_t bits[] = {1u << 5, 1, 0};
    int32_t id = -1;
    xm_sampler_allow(sampler, bits, 2);
    EXPECT_EQ(xm_sampler_next(sampler, scratch, row.data(), &id, &err), XM_OK);
    EXPECT_EQ(id, 64) << "tokens beyond the words are not allowed either";
    EXPECT_EQ(xm_sampler_next(sampler, scratch, row.data(), &id, &err), XM_OK);
    EXPECT_EQ(id, 129);
    const int32_t barred[] = {64};
    xm_sampler_allow(sampler, bits, 3);
    EXPECT_EQ(xm_sampler_bar(sampler, barred, 1, &err), XM_OK);
    EXPECT_EQ(xm_sampler_next(sampler, scratch, row.data(), &id, &err), XM_OK);
    EXPECT_EQ(id, 5);
    xm_sampler_allow(sampler, bits + 2, 1);
    EXPECT_EQ(xm_sampler_next(sampler, scratch, row.data(), &id, &err), XM_INVALID);
    xm_sampler_scratch_free(scratch);
    xm_sampler_free(sampler);
}

TEST(TokenTrie, KnowsItsTokensAndWhatIsBelow)
{
    const Tokenizer t(byte_tokenizer());
    const xm_token_trie *trie = nullptr, *again = nullptr;
    xm_error err = {};
    ASSERT_EQ(xm_tokenizer_trie(t.t, false, &trie, &err), XM_OK) << err.text;
    ASSERT_EQ(xm_tokenizer_trie(t.t, true, &again, &err), XM_OK) << err.text;
    EXPECT_EQ(trie, again) << "these tokens are the same everywhere";
    EXPECT_EQ(trie->n_tokens, 256 + pieces().size());
    EXPECT_EQ(trie->longest, 16u);
    std::vector<std::string> path(XM_TRIE_DEEPEST + 1);
    size_t seen = 0;
    for (uint32_t i = 0; i < trie->n_nodes; i++) {
        const xm_trie_node &node = trie->nodes[i];
        if (node.depth > 0)
            path[node.depth] = path[node.depth - 1] + char(node.byte);
        for (uint32_t k = node.tokens; k < trie->nodes[i + 1].tokens; k++, seen++) {
            const xm_slice bytes = xm_trie_bytes(trie, trie->tokens[k]);
            EXPECT_EQ(std::string(bytes.text, bytes.n), path[node.depth]);
        }
        EXPECT_GT(node.end, i);
    }
    EXPECT_EQ(seen, trie->n_tokens);
    EXPECT_TRUE(trie->nodes[0].is_broken) << "tokens that begin within a character";
    EXPECT_EQ(xm_trie_bytes(trie, -1).n, 0u);
    EXPECT_EQ(xm_trie_bytes(trie, xm_tokenizer_id_of(t.t, "<end>")).n, 0u);
    EXPECT_EQ(xm_trie_bytes(trie, 1 << 30).n, 0u);
}

TEST(TokenTrie, RefusesDecodersThatLookAhead)
{
    const Tokenizer t(
        tokenizer_json(R"("vocab":{"a":0},"merges":[])",
                       R"("decoder":{"type":"Sequence","decoders":[{"type":"Fuse"},
            {"type":"Strip","content":" ","start":0,"stop":1}]})"));
    ASSERT_NE(t.t, nullptr) << t.err.text;
    const Grammar g = Grammar::gbnf("root ::= \"a\"");
    Constraint c(g, t);
    EXPECT_EQ(c.status, XM_UNSUPPORTED);
    EXPECT_NE(std::string(c.err.text).find("strips the end of a text"),
              std::string::npos);
}

} // namespace
