// SPDX-License-Identifier: Apache-2.0
// Values and tensors of GGUF files.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "plugin/readers/gguf.h"
#include "unit_tests/readers/gguf_file.h"

namespace
{

using gguf::bytes_of;
using gguf::good;
using gguf::list;
using gguf::text;
using Read = gguf::reading;

/* A file whose key "k" has this value. */
struct Value : Read {
    Value(uint32_t type, const std::string &value)
        : Read(gguf::file{}.key("k", type, value).bytes())
    {
    }
};

template <typename T, typename Getter>
std::string
get(const Read &r, Getter getter, T *out)
{
    xm_error why = {};
    EXPECT_EQ(getter(r.g, "k", out, &why), why.status);
    return why.text;
}

/* Returns the number that a getter reads as text, or the error text. */
template <typename T, typename Getter>
std::string
number(uint32_t type, const std::string &value, Getter getter)
{
    Value r(type, value);
    T x{};
    const std::string why = r.g ? get(r, getter, &x) : r.err.text;
    return why.empty() ? std::to_string(x) : why;
}

} // namespace

// ---- values

TEST(Gguf, TakesAWholeNumberOfAnyTypeThatFits)
{
    const auto u32 = [](uint32_t type, const std::string &value) {
        return number<uint32_t>(type, value, xm_gguf_u32);
    };
    EXPECT_EQ(u32(gguf::U8, bytes_of<uint8_t>(255)), "255");
    EXPECT_EQ(u32(gguf::I8, bytes_of<int8_t>(7)), "7");
    EXPECT_EQ(u32(gguf::U16, bytes_of<uint16_t>(65535)), "65535");
    EXPECT_EQ(u32(gguf::I16, bytes_of<int16_t>(300)), "300");
    EXPECT_EQ(u32(gguf::U32, bytes_of<uint32_t>(UINT32_MAX)), "4294967295");
    EXPECT_EQ(u32(gguf::I32, bytes_of<int32_t>(1)), "1");
    EXPECT_EQ(u32(gguf::U64, bytes_of<uint64_t>(UINT32_MAX)), "4294967295");
    EXPECT_EQ(u32(gguf::I64, bytes_of<int64_t>(9)), "9");
}

TEST(Gguf, SaysWhichNumberDoesNotFit)
{
    const std::string u32 = "key 'k': expected a whole number from 0 to 4294967295, ";
    EXPECT_EQ(number<uint32_t>(gguf::I8, bytes_of<int8_t>(-1), xm_gguf_u32),
              u32 + "found -1");
    EXPECT_EQ(number<uint32_t>(gguf::U64, bytes_of<uint64_t>(UINT64_MAX), xm_gguf_u32),
              u32 + "found 18446744073709551615");
    EXPECT_EQ(
        number<uint64_t>(gguf::I64, bytes_of<int64_t>(-5), xm_gguf_u64),
        "key 'k': expected a whole number from 0 to 18446744073709551615, found -5");
    EXPECT_EQ(number<int64_t>(gguf::U64, bytes_of<uint64_t>(1ull << 63), xm_gguf_i64),
              "key 'k': expected a whole number from 0 to 9223372036854775807, found "
              "9223372036854775808");
}

TEST(Gguf, TakesTheEndsOfTheWidestTypes)
{
    EXPECT_EQ(number<uint64_t>(gguf::U64, bytes_of<uint64_t>(UINT64_MAX), xm_gguf_u64),
              "18446744073709551615");
    EXPECT_EQ(number<int64_t>(gguf::I64, bytes_of<int64_t>(INT64_MIN), xm_gguf_i64),
              "-9223372036854775808");
}

TEST(Gguf, TellsOneTypeFromAnother)
{
    const std::string one = bytes_of<float>(1);
    EXPECT_EQ(number<uint32_t>(gguf::F32, one, xm_gguf_u32),
              "key 'k': expected a whole number, found f32");
    EXPECT_EQ(number<int64_t>(gguf::BOOL, "\1", xm_gguf_i64),
              "key 'k': expected a whole number, found boolean");
    EXPECT_EQ(number<float>(gguf::U32, one, xm_gguf_f32),
              "key 'k': expected a number f32 or f64, found u32");
    EXPECT_EQ(number<bool>(gguf::U8, "\1", xm_gguf_bool),
              "key 'k': expected true or false, found u8");
    EXPECT_EQ(number<bool>(gguf::BOOL, "\2", xm_gguf_bool),
              "key 'k': expected true or false, found a byte above 1");
    EXPECT_EQ(number<bool>(gguf::LIST, list(gguf::BOOL, 1, "\1"), xm_gguf_bool),
              "key 'k': expected one value, found a list of 1 (boolean)");
    xm_slice words;
    EXPECT_EQ(get(Value(gguf::F32, one), xm_gguf_text, &words),
              "key 'k': expected a text, found f32");
    xm_gguf_values values;
    EXPECT_EQ(get(Value(gguf::F32, one), xm_gguf_list, &values),
              "key 'k': expected a list, found one f32");
}

TEST(Gguf, TakesFiniteFloats)
{
    EXPECT_EQ(number<float>(gguf::F32, bytes_of<float>(0.5f), xm_gguf_f32), "0.500000");
    EXPECT_EQ(number<float>(gguf::F64, bytes_of<double>(-2), xm_gguf_f32), "-2.000000");
    const std::string large =
        "key 'k': expected a finite f32, found a number that is infinite or too large";
    EXPECT_EQ(number<float>(gguf::F64, bytes_of<double>(1e300), xm_gguf_f32), large);
    EXPECT_EQ(number<float>(gguf::F32, bytes_of<float>(-INFINITY), xm_gguf_f32), large);
    EXPECT_EQ(number<float>(gguf::F32, bytes_of<float>(NAN), xm_gguf_f32),
              "key 'k': expected a finite f32, found NaN");
}

TEST(Gguf, KeepsTheCallersDefaultWhereThereIsNoKey)
{
    Read r(good().bytes());
    xm_error err = {};
    uint32_t n = 17;
    EXPECT_EQ(xm_gguf_u32(r.g, "toy.none", &n, &err), XM_NOT_FOUND);
    EXPECT_STREQ(err.text, "there is no key 'toy.none'");
    EXPECT_EQ(n, 17u);
    EXPECT_EQ(xm_gguf_find_key(r.g, "toy.none"), nullptr);
    EXPECT_EQ(xm_gguf_find_key(r.g, ""), nullptr);
}

TEST(Gguf, GivesTheValuesOfLists)
{
    Read r(good().bytes());
    ASSERT_EQ(r.status, XM_OK) << r.err.text;
    xm_gguf_values counts;
    int64_t x = 0;
    uint32_t u = 0;
    ASSERT_EQ(xm_gguf_list(r.g, "toy.counts", &counts, nullptr), XM_OK);
    EXPECT_EQ(counts.n, 2u);
    EXPECT_EQ(xm_gguf_i64_at(&counts, 1, &x, nullptr), XM_OK);
    EXPECT_EQ(x, -4);
    xm_error err = {};
    EXPECT_EQ(xm_gguf_u32_at(&counts, 1, &u, &err), XM_INVALID);
    EXPECT_STREQ(err.text, "key 'toy.counts', value 1: expected a whole number from 0 to "
                           "4294967295, found -4");
    err = {};
    EXPECT_EQ(xm_gguf_i64_at(&counts, 2, &x, &err), XM_INVALID);
    EXPECT_STREQ(
        err.text,
        "key 'toy.counts': there is no value 2: the list has 2 values, numbered from 0");
}

TEST(Gguf, GivesTextsOneAfterTheOther)
{
    Read r(good().bytes());
    xm_gguf_values words;
    xm_slice word;
    xm_error err = {};
    ASSERT_EQ(xm_gguf_list(r.g, "toy.words", &words, nullptr), XM_OK);
    ASSERT_EQ(xm_gguf_next_text(&words, &word, nullptr), XM_OK);
    EXPECT_EQ(std::string(word.text, word.n), "one");
    ASSERT_EQ(xm_gguf_next_text(&words, &word, nullptr), XM_OK);
    EXPECT_EQ(word.n, 0u);
    EXPECT_EQ(xm_gguf_next_text(&words, &word, &err), XM_NOT_FOUND);
    EXPECT_STREQ(err.text, "key 'toy.words': it has no more texts");
}

TEST(Gguf, GivesListsInLists)
{
    Read r(good().bytes());
    xm_gguf_values outer, inner;
    xm_slice word;
    uint32_t x = 0;
    ASSERT_EQ(xm_gguf_list(r.g, "toy.nested", &outer, nullptr), XM_OK);
    EXPECT_STREQ(xm_gguf_element_text(outer.element), "list");
    ASSERT_EQ(xm_gguf_next_list(&outer, &inner, nullptr), XM_OK);
    EXPECT_EQ(inner.n, 3u);
    EXPECT_EQ(xm_gguf_u32_at(&inner, 2, &x, nullptr), XM_OK);
    EXPECT_EQ(x, 'c');
    ASSERT_EQ(xm_gguf_next_list(&outer, &inner, nullptr), XM_OK);
    ASSERT_EQ(xm_gguf_next_text(&inner, &word, nullptr), XM_OK);
    EXPECT_EQ(std::string(word.text, word.n), "inner");
    EXPECT_EQ(xm_gguf_next_list(&outer, &inner, nullptr), XM_NOT_FOUND);
}

// ---- tensors

TEST(Gguf, GivesTensorsAsViewsOfTheFile)
{
    Read r(good().bytes());
    ASSERT_EQ(r.status, XM_OK) << r.err.text;
    EXPECT_EQ(r.g->n_tensors, 2u);
    EXPECT_EQ(xm_gguf_find_tensor(r.g, "none"), nullptr);
    const xm_gguf_tensor *t = xm_gguf_find_tensor(r.g, "blocks");
    ASSERT_NE(t, nullptr);
    EXPECT_STREQ(t->type->text, "q4_0");
    EXPECT_EQ(t->data.n, 64u / 32 * 18 * 6);
    EXPECT_EQ(t->data.p[0], 64); // the first byte of with_data()
    uint64_t dim[XM_GGUF_MAX_RANK] = {};
    xm_gguf_tensor_dims(t, dim);
    EXPECT_EQ(t->rank, 3u);
    EXPECT_EQ(std::vector<uint64_t>(dim, dim + 3), (std::vector<uint64_t>{3, 2, 64}));
    EXPECT_EQ(std::vector<uint64_t>(t->ne, t->ne + 4),
              (std::vector<uint64_t>{64, 2, 3, 1}));
}

TEST(Gguf, MakesWeightsOfBlocksAndOfElements)
{
    Read r(good().bytes());
    xm_weight w;
    ASSERT_EQ(xm_gguf_weight(xm_gguf_find_tensor(r.g, "blocks"), &w, nullptr), XM_OK);
    EXPECT_EQ(w.format, XM_WEIGHT_Q4_0);
    EXPECT_EQ(w.rank, 3u);
    EXPECT_EQ(w.experts, 3u);
    EXPECT_EQ(w.rows, 2u);
    EXPECT_EQ(w.cols, 64u);
    ASSERT_EQ(xm_gguf_weight(xm_gguf_find_tensor(r.g, "plain"), &w, nullptr), XM_OK);
    EXPECT_EQ(w.format, XM_WEIGHT_ELEMENTS);
    EXPECT_EQ(w.element, XM_F32);
    EXPECT_EQ(w.rank, 2u);
    float row[3];
    xm_weight_row(&w, 0, 1, row);
    const uint8_t fifth[] = {16, 17, 18, 19};
    EXPECT_EQ(memcmp(&row[1], fifth, sizeof(fifth)), 0);
}

TEST(Gguf, RefusesAWeightByTypeAndNameWhenItIsAskedFor)
{
    gguf::file f;
    f.tensor("odd", {32}, 9, 0).with_data(36); // q8_1, a type of activations
    Read r(f.bytes());
    ASSERT_EQ(r.status, XM_OK) << r.err.text;
    xm_weight w;
    xm_error err = {};
    EXPECT_EQ(xm_gguf_weight(r.g->tensors[0], &w, &err), XM_UNSUPPORTED);
    EXPECT_STREQ(err.text, "tensor 'odd': weights of type q8_1 are not supported");
}

TEST(Gguf, TakesFourDimensionsForAWeightWhereTheFourthIsOne)
{
    gguf::file f;
    f.tensor("one", {2, 3, 4, 1}, gguf::TENSOR_F32, 0);
    f.tensor("two", {2, 1, 1, 2}, gguf::TENSOR_F32, 96);
    f.tensor("none", {}, gguf::TENSOR_F32, 128).with_data(132);
    Read r(f.bytes());
    ASSERT_EQ(r.status, XM_OK) << r.err.text;
    xm_weight w;
    xm_error err = {};
    EXPECT_EQ(xm_gguf_weight(xm_gguf_find_tensor(r.g, "one"), &w, nullptr), XM_OK);
    EXPECT_EQ(w.experts, 4u);
    EXPECT_EQ(xm_gguf_weight(xm_gguf_find_tensor(r.g, "none"), &w, nullptr), XM_OK);
    EXPECT_EQ(w.cols, 1u);
    EXPECT_EQ(xm_gguf_weight(xm_gguf_find_tensor(r.g, "two"), &w, &err), XM_UNSUPPORTED);
    EXPECT_STREQ(err.text, "tensor 'two': expected a weight of at most 3 dimensions, "
                           "found 4 with an outermost dimension of 2");
}

/* The tables of GGUF types and of weight formats agree on the sizes of a block. */
TEST(Gguf, KnowsEveryFormatOfWeights)
{
    for (int f = XM_WEIGHT_ELEMENTS + 1; f < XM_WEIGHT_FORMATS; f++) {
        const xm_weight_format_info &format = xm_weight_formats[f];
        const xm_gguf_type *found = nullptr;
        for (uint32_t number = 0; number < 256; number++) {
            const xm_gguf_type *t = xm_gguf_find_type(number);
            found = t && strcmp(t->text, format.text) == 0 ? t : found;
        }
        ASSERT_NE(found, nullptr) << format.text;
        EXPECT_EQ(found->columns, format.block_cols) << format.text;
        EXPECT_EQ(found->bytes, format.block_bytes) << format.text;
    }
}
