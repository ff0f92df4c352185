// SPDX-License-Identifier: Apache-2.0
// GGUF files with every kind of damage: each is refused with an error text, or can be read
// completely.
#include <gtest/gtest.h>

#include <random>

#include "plugin/readers/gguf.h"
#include "unit_tests/readers/gguf_file.h"

namespace
{

using gguf::bytes_of;
using gguf::good;
using gguf::list;
using gguf::text;
using Read = gguf::reading;

/* Reads a file with one key of this value. */
Read
value(uint32_t type, const std::string &bytes)
{
    return Read(gguf::file{}.key("k", type, bytes).bytes());
}

/* Reads a file with one tensor and n_data bytes. */
Read
tensor(const std::vector<uint64_t> &ne, uint32_t type, uint64_t offset, size_t n_data)
{
    gguf::file f;
    return Read(f.tensor("t", ne, type, offset).with_data(n_data).bytes());
}

} // namespace

TEST(GgufMalformed, ReadsVersionTwoAndNoOther)
{
    gguf::file f = good();
    f.version = 2;
    EXPECT_EQ(Read(f.bytes()).status, XM_OK);
    f.version = 1;
    EXPECT_TRUE(
        Read(f.bytes()).refuses("expected version 2 or 3 of GGUF, found version 1"));
    f.version = 4;
    EXPECT_TRUE(Read(f.bytes()).refuses("found version 4"));
    f.version = 0x03000000;
    EXPECT_TRUE(Read(f.bytes()).refuses("it is a big-endian GGUF file"));
    EXPECT_EQ(Read(f.bytes()).status, XM_UNSUPPORTED);
    f.version = 0;
    EXPECT_TRUE(Read(f.bytes()).refuses("found version 0"));
}

TEST(GgufMalformed, RefusesWhatIsNoGguf)
{
    EXPECT_TRUE(Read("").refuses("GGUF in memory: it is not a GGUF file"));
    EXPECT_TRUE(Read("GGU").refuses("it is not a GGUF file"));
    EXPECT_TRUE(Read("<net name=\"n\"/>").refuses("it is not a GGUF file"));
}

TEST(GgufMalformed, AFileOfNothingIsRight)
{
    Read r(gguf::file{}.bytes());
    ASSERT_EQ(r.status, XM_OK) << r.err.text;
    EXPECT_EQ(r.g->n_tensors, 0u);
    EXPECT_EQ(xm_gguf_find_key(r.g, "k"), nullptr);
    EXPECT_EQ(xm_gguf_find_tensor(r.g, "t"), nullptr);
}

TEST(GgufMalformed, ComparesCountsWithTheFile)
{
    gguf::file f = good();
    f.n_keys = UINT64_MAX;
    EXPECT_TRUE(Read(f.bytes()).refuses(
        "keys: there are 18446744073709551615, of at least 14 bytes each"));
    f = good();
    f.n_tensors = 1ull << 40;
    EXPECT_TRUE(Read(f.bytes()).refuses("tensors: there are 1099511627776"));
    f = good();
    f.n_keys = 7; // one too many: the first tensor is read as a key
    EXPECT_TRUE(Read(f.bytes()).refuses("tensor 1 of 2: "));
}

TEST(GgufMalformed, ComparesLengthsWithTheFile)
{
    const auto key = [](uint32_t type, const std::string &value) {
        return gguf::file{}.key("k", type, value).bytes();
    };
    const std::string huge = bytes_of<uint64_t>(UINT64_MAX);
    EXPECT_TRUE(Read(key(gguf::TEXT, huge + "abc"))
                    .refuses("key 'k': its text: expected 18446744073709551615 bytes at "
                             "byte 45, the file ends at byte 48"));
    EXPECT_TRUE(Read(key(gguf::LIST, bytes_of<uint32_t>(gguf::U64) + huge))
                    .refuses("key 'k': the values of its list: there are "
                             "18446744073709551615"));
    EXPECT_TRUE(Read(key(gguf::LIST, list(gguf::TEXT, 2, text("a"))))
                    .refuses("the values of its list: there are 2, of at least 8 bytes"));
    EXPECT_TRUE(Read(key(gguf::LIST, list(gguf::LIST, 1ull << 60, "")))
                    .refuses("the values of its list"));
    EXPECT_TRUE(
        Read("GGUF" + bytes_of<uint32_t>(3) + bytes_of<uint64_t>(0) +
             bytes_of<uint64_t>(1) + huge + std::string(20, 'n'))
            .refuses("key 1 of 1: its name: expected 18446744073709551615 bytes"));
}

TEST(GgufMalformed, RefusesTypesOfValuesThatThereAreNot)
{
    EXPECT_TRUE(value(13, "12345678")
                    .refuses("key 'k': the type of its value: expected 0 "
                             "to 12, found 13"));
    EXPECT_TRUE(value(gguf::LIST, list(99, 1, "12345678")).refuses("found 99"));
}

TEST(GgufMalformed, NestsListsAsDeepAsEight)
{
    std::string nested = list(gguf::U8, 1, "x");
    for (int i = 1; i < 8; i++)
        nested = list(gguf::LIST, 1, nested);
    Read eight = value(gguf::LIST, nested);
    ASSERT_EQ(eight.status, XM_OK) << eight.err.text;
    EXPECT_GT(gguf::walk(eight.g), 0u);
    EXPECT_TRUE(value(gguf::LIST, list(gguf::LIST, 1, nested))
                    .refuses("lists are nested deeper than 8 levels"));
    std::string deep;
    for (int i = 0; i < 100000; i++)
        deep += list(gguf::LIST, 1, "");
    EXPECT_TRUE(value(gguf::LIST, deep).refuses("deeper than 8"));
}

TEST(GgufMalformed, RefusesNamesThatCannotBeShown)
{
    const auto key = [](const std::string &name) {
        return Read(gguf::file{}.key(name, gguf::U32, bytes_of<uint32_t>(1)).bytes());
    };
    EXPECT_TRUE(
        key("").refuses("key 1 of 1: its name: expected 1 to 65535 bytes, found 0"));
    EXPECT_TRUE(key("a\xff").refuses("key 1 of 1: its name is not UTF-8"));
    EXPECT_TRUE(key("a\nb").refuses("key 1 of 1: its name has a control character"));
    EXPECT_TRUE(key(std::string("a\0b", 3)).refuses("control character"));
    EXPECT_TRUE(key(std::string(65536, 'k')).refuses("found 65536"));
    EXPECT_EQ(key(std::string(65535, 'k')).status, XM_OK);
    const auto named = [](const std::string &name) {
        gguf::file f;
        return Read(f.tensor(name, {1}, gguf::TENSOR_F32, 0).with_data(4).bytes());
    };
    EXPECT_TRUE(named("\xc3(").refuses("tensor 1 of 1: its name is not UTF-8"));
    EXPECT_TRUE(named(std::string(65, 't')).refuses("expected 1 to 64 bytes, found 65"));
    EXPECT_EQ(named(std::string(64, 't')).status, XM_OK);
}

/* A long name is cut at a whole UTF-8 character. */
TEST(GgufMalformed, ShowsTheBeginningOfALongName)
{
    std::string name = "k";
    for (int i = 0; i < 60; i++)
        name += "\u00e9";
    gguf::file f;
    f.key(name, gguf::U32, bytes_of<uint32_t>(1)).key(name, gguf::U8, "1");
    Read r(f.bytes());
    EXPECT_EQ(r.err.text,
              "GGUF in memory: key '" + name.substr(0, 99) + "' occurs twice");
}

TEST(GgufMalformed, RefusesNamesThatAreThereTwice)
{
    gguf::file f = good();
    f.key("toy.flag", gguf::U8, "1");
    EXPECT_TRUE(Read(f.bytes()).refuses("key 'toy.flag' occurs twice"));
    f = good();
    f.tensor("plain", {1}, gguf::TENSOR_F32, 320).with_data(64 + 4);
    EXPECT_TRUE(Read(f.bytes()).refuses("tensor 'plain' occurs twice"));
}

TEST(GgufMalformed, RefusesAlignmentsThatAreNone)
{
    const auto aligned = [](uint32_t type, const std::string &value) {
        return Read(gguf::file{}.key("general.alignment", type, value).bytes());
    };
    EXPECT_TRUE(
        aligned(gguf::U32, bytes_of<uint32_t>(0))
            .refuses("key 'general.alignment': expected a power of two, found 0"));
    EXPECT_TRUE(aligned(gguf::U32, bytes_of<uint32_t>(48)).refuses("found 48"));
    EXPECT_TRUE(aligned(gguf::TEXT, text("32"))
                    .refuses("expected a whole number, found "
                             "string"));
    EXPECT_TRUE(aligned(gguf::I64, bytes_of<int64_t>(-32)).refuses("found -32"));
    EXPECT_EQ(aligned(gguf::U32, bytes_of<uint32_t>(1)).status, XM_OK);
}

TEST(GgufMalformed, RefusesDimensionsThatAreNone)
{
    EXPECT_TRUE(tensor({4, 0}, gguf::TENSOR_F32, 0, 64)
                    .refuses("tensor 't': dimension 1: expected 1 or more, found 0"));
    EXPECT_TRUE(tensor({UINT64_MAX}, gguf::TENSOR_F32, 0, 64)
                    .refuses("dimension 0: expected 1 or more, found -1"));
    EXPECT_TRUE(tensor({1ull << 40, 1ull << 40}, gguf::TENSOR_F32, 0, 64)
                    .refuses("the product of its dimensions does not fit in 64 bits"));
    EXPECT_TRUE(tensor({1ull << 62}, gguf::TENSOR_F32, 0, 64)
                    .refuses("its bytes do not fit in 64 bits"));
    EXPECT_TRUE(tensor({1, 1, 1, 1, 1}, gguf::TENSOR_F32, 0, 64)
                    .refuses("expected at most 4 dimensions, found 5"));
}

TEST(GgufMalformed, RefusesTypesOfTensorsThatThereAreNot)
{
    for (uint32_t type : {4u, 5u, 31u, 36u, 43u, UINT32_MAX}) {
        Read r = tensor({32}, type, 0, 64);
        EXPECT_EQ(r.status, XM_UNSUPPORTED);
        EXPECT_TRUE(r.refuses("tensor 't': its type is ")) << r.err.text;
    }
}

TEST(GgufMalformed, RefusesRowsOfPartsOfBlocks)
{
    EXPECT_TRUE(tensor({48, 2}, gguf::TENSOR_Q4_0, 0, 64)
                    .refuses("tensor 't': expected rows of whole blocks, 32 columns of "
                             "q4_0 each; found 48 columns"));
    EXPECT_TRUE(tensor({32, 8}, gguf::TENSOR_Q2_K, 0, 84).refuses("256 columns of q2_k"));
}

TEST(GgufMalformed, RefusesTensorsOutsideTheFile)
{
    EXPECT_TRUE(
        tensor({16}, gguf::TENSOR_F32, 8, 128)
            .refuses("tensor 't': its offset: expected a multiple of 32, found 8"));
    EXPECT_TRUE(tensor({16}, gguf::TENSOR_F32, 32, 64)
                    .refuses("tensor 't': expected 64 bytes at byte 96, the file ends at "
                             "byte 128"));
    EXPECT_TRUE(tensor({16}, gguf::TENSOR_F32, ~31ull, 64).refuses("expected 64 bytes"));
    EXPECT_EQ(tensor({16}, gguf::TENSOR_F32, 32, 96).status, XM_OK);
}

TEST(GgufMalformed, RefusesTensorsThatShareBytes)
{
    gguf::file f;
    f.tensor("b", {16}, gguf::TENSOR_F32, 32).tensor("a", {9}, gguf::TENSOR_F32, 0);
    EXPECT_TRUE(
        Read(f.with_data(96).bytes())
            .refuses("tensors 'a' and 'b' share bytes: expected the second at byte "
                     "132 or later, found byte 128"));
    f = {};
    f.tensor("b", {8}, gguf::TENSOR_F32, 32).tensor("a", {8}, gguf::TENSOR_F32, 0);
    EXPECT_EQ(Read(f.with_data(64).bytes()).status, XM_OK);
}

TEST(GgufMalformed, RefusesEveryBeginningOfAFile)
{
    const std::string file = good().bytes();
    ASSERT_EQ(Read(file).status, XM_OK);
    for (size_t n = 0; n < file.size(); n++) {
        Read r(file.substr(0, n));
        EXPECT_NE(r.status, XM_OK) << n;
    }
}

/* Flips each bit: a file that is accepted can be read completely. */
TEST(GgufMalformed, TakesOrRefusesWhateverABitMakesOfIt)
{
    const std::string file = good().bytes();
    const size_t n = good().head().size();
    size_t refused = 0;
    for (size_t i = 0; i < n * 8; i++) {
        std::string changed = file;
        changed[i / 8] = static_cast<char>(changed[i / 8] ^ 1 << i % 8);
        Read r(changed);
        refused += r.g == nullptr;
        if (r.g)
            gguf::walk(r.g);
    }
    EXPECT_GT(refused, n);
}

TEST(GgufMalformed, TakesOrRefusesWhateverBytesMakeOfIt)
{
    const std::string file = good().bytes();
    const size_t n = good().head().size();
    std::mt19937 random(1);
    for (int i = 0; i < 20000; i++) {
        std::string changed = file;
        for (unsigned k = 0; k <= random() % 4; k++)
            changed[random() % n] = static_cast<char>(random() % 3 ? random() : 0xff);
        Read r(changed);
        if (r.g)
            gguf::walk(r.g);
    }
}

TEST(GgufMalformed, SaysSoWhenMemoryIsExhausted)
{
    const std::string file = good().bytes();
    uint64_t failures = 0;
    for (;; failures++) {
        xm_gguf *g = nullptr;
        xm_error err = {};
        xm_fail_allocation(failures + 1);
        const xm_status s =
            xm_gguf_read_memory(file.data(), file.size(), nullptr, &g, &err);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        xm_gguf_close(g);
        if (!seen)
            break;
        EXPECT_EQ(s, XM_NO_MEMORY) << failures;
        EXPECT_STRNE(err.text, "");
    }
    EXPECT_GT(failures, 1u);
}

TEST(GgufMalformed, APartAloneInMemoryIsRefused)
{
    gguf::file f;
    f.key("split.count", gguf::U16, bytes_of<uint16_t>(3));
    EXPECT_TRUE(Read(f.bytes()).refuses("it is one of 3 parts"));
}
