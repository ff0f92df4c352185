// SPDX-License-Identifier: Apache-2.0
// Unigram models, and the normalization that SentencePiece files contain.
#include <cstring>

#include "runtime/util/memory.h"
#include "unit_tests/text/text_test.h"

namespace
{

std::string
unigram_json(const std::string &model, const std::string &rest = "")
{
    return R"({"model":{"type":"Unigram",)" + model + "}" + (rest.empty() ? "" : ",") +
           rest + "}";
}

/* ids:  ? 0, a 1, b 2, ab 3, abc 4, é 5 */
const char *const pieces =
    R"("unk_id":0,"vocab":[["?",0],["a",-1],["b",-2],["ab",-3.5],["abc",-4],["é",-1]])";

std::string
base64(const std::string &bytes)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    unsigned bits = 0, n = 0;
    for (unsigned char c : bytes) {
        bits = bits << 8 | c;
        for (n += 8; n >= 6; n -= 6)
            out += digits[bits >> (n - 6) & 63];
    }
    if (n > 0)
        out += digits[bits << (6 - n) & 63];
    return out + std::string((4 - out.size() % 4) % 4, '=');
}

std::string
units_of(const std::vector<uint32_t> &units)
{
    std::string bytes;
    for (uint32_t u : units)
        for (int i = 0; i < 4; i++)
            bytes += (char)(u >> 8 * i);
    return bytes;
}

/* Returns a charsmap in which "x" becomes `to`: unit 0 leads to unit 'x', whose leaf is the unit
 * next to it. */
std::string
charsmap_of_x(const std::string &to, uint32_t start = 0)
{
    std::vector<uint32_t> units(256);
    units['x'] = 'x' | 1 << 8 | 1 << 10;
    units['x' ^ 1] = start;
    return units_of({1024}) + units_of(units) + to + std::string(1, '\0');
}

std::string
precompiled(const std::string &map)
{
    return R"("normalizer":{"type":"Precompiled","precompiled_charsmap":")" +
           base64(map) + "\"}";
}

} // namespace

TEST(Unigram, TakesTheCutWithTheLargestSum)
{
    Tokenizer t(unigram_json(pieces));
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(t.encode("ab"), ids({1, 2})); // score -3 against -3.5
    EXPECT_EQ(t.encode("aabcé"), ids({1, 4, 5}));
    EXPECT_EQ(t.encode(""), ids());
}

/* Of equal pieces the last one counts, with its score. */
TEST(Unigram, PiecesMayBeEqual)
{
    Tokenizer t(unigram_json(R"("unk_id":0,"vocab":[["?",0],["a",-1],["b",-2],)"
                             R"(["ab",-1.5],["a",-5],["ab",-9]])"));
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(t.encode("aba"), ids({4, 2, 4}));
    EXPECT_EQ(xm_tokenizer_id_of(t.t, "ab"), 5);
    EXPECT_STREQ(xm_tokenizer_token_text(t.t, 3, nullptr), "ab");
}

TEST(Unigram, UnknownCharactersInARowAreOneToken)
{
    Tokenizer t(unigram_json(pieces));
    EXPECT_EQ(t.encode("axéyzb"), ids({1, 0, 5, 0, 2}));
    EXPECT_EQ(t.encode("cc"), ids({0}));
}

TEST(Unigram, BytesStandInForUnknownCharacters)
{
    Tokenizer t(unigram_json(R"("byte_fallback":true,"unk_id":0,"vocab":)"
                             R"([["?",0],["a",-1],["<0xC3>",-2],["<0xA9>",-3]])",
                             R"("decoder":{"type":"ByteFallback"})"));
    EXPECT_EQ(t.encode("aéé"), ids({1, 2, 3, 2, 3}));
    EXPECT_EQ(t.encode("aß"), ids({1, 0})); // one of its bytes has no token
    EXPECT_EQ(t.decode({1, 2, 3}), "aé");
}

TEST(Unigram, WithoutAnUnknownTokenUnknownTextIsAnError)
{
    Tokenizer t(unigram_json(R"("vocab":[["a",-1]])"));
    EXPECT_EQ(t.encode("aa"), ids({0, 0}));
    t.encode("ab");
    EXPECT_EQ(t.status, XM_INVALID);
    EXPECT_NE(strstr(t.err.text, "'b' is not in the vocabulary"), nullptr) << t.err.text;
}

TEST(Unigram, BadModelsAreRefused)
{
    const std::pair<const char *, const char *> bad[] = {
        {R"("vocab":[])", "0 pieces"},
        {R"("vocab":{"a":0})", "vocab"},
        {R"("vocab":[["a"]])", "piece 0"},
        {R"("vocab":[["a",0],["b","1"]])", "piece 1"},
        {R"("vocab":[["a",0]],"unk_id":1)", "unk_id"},
    };
    for (auto &b : bad) {
        Tokenizer t(unigram_json(b.first));
        EXPECT_EQ(t.status, XM_INVALID) << b.first;
        EXPECT_NE(strstr(t.err.text, b.second), nullptr) << t.err.text;
    }
}

TEST(Charsmap, ReplacesWhatItHolds)
{
    Tokenizer t(unigram_json(pieces, precompiled(charsmap_of_x("abc"))));
    ASSERT_EQ(t.status, XM_OK) << t.err.text;
    EXPECT_EQ(t.encode("axb"), ids({1, 4, 2}));
    EXPECT_EQ(t.encode("x\u0301"), ids({4})); // the whole grapheme cluster is looked up
}

TEST(Charsmap, AnEmptyOneChangesNothing)
{
    Tokenizer t(unigram_json(pieces, precompiled("")));
    EXPECT_EQ(t.encode("abc"), ids({4}));
}

TEST(Charsmap, BadOnesAreRefusedOrLeadNowhere)
{
    for (const std::string &map :
         {std::string("abc"), units_of({8, 0}), units_of({3, 0}), units_of({0})}) {
        Tokenizer t(unigram_json(pieces, precompiled(map)));
        EXPECT_EQ(t.status, XM_INVALID) << map.size();
    }
    Tokenizer far(unigram_json(pieces, precompiled(charsmap_of_x("a", 100))));
    EXPECT_EQ(far.encode("x"), ids({0}));
    Tokenizer outside(unigram_json(pieces, precompiled(units_of({4, 0x7fffffff}) + "a")));
    EXPECT_EQ(outside.encode("x"), ids({0}));
}

TEST(Unigram, EveryAllocationMayFail)
{
    const std::string json = unigram_json(pieces, precompiled(charsmap_of_x("ab")));
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        xm_fail_allocation(n);
        Tokenizer t(json);
        if (t.status == XM_OK)
            t.encode("xab");
        failed = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(t.status, failed ? XM_NO_MEMORY : XM_OK) << n << ": " << t.err.text;
    }
}
