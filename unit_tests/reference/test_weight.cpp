/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding of weight formats compared with the gguf package's floats, and views of weights.
 */
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "runtime/util/memory.h"
#include "runtime/weight.h"
#include "runtime/weight_pack.h"

namespace
{

std::vector<uint8_t>
bytes_of(const std::string &hex)
{
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes.push_back((uint8_t)std::stoi(hex.substr(i, 2), nullptr, 16));
    return bytes;
}

/* A weight of this format with random elements; it owns the bytes. */
struct stored {
    xm_weight w = {};
    std::vector<uint8_t> data, scale, zero;

    stored(xm_weight_format format, uint64_t experts, uint64_t rows, uint64_t cols,
           uint64_t group = 0, xm_scale_order order = XM_SCALE_ROW_MAJOR)
    {
        std::mt19937 gen((uint32_t)format * 7 + 1);
        w.format = format;
        w.rank = 3;
        w.experts = experts;
        w.rows = rows;
        w.cols = cols;
        uint64_t n = experts * rows * cols;
        if (xm_weight_is_blocks(&w)) {
            const xm_weight_format_info *f = xm_weight_info(&w);
            data.resize(n / f->block_cols * f->block_bytes);
        } else {
            w.element = XM_U4;
            data.resize(n / 2);
            w.group = group;
            w.order = order;
            w.scale_element = XM_F32;
            w.zero_point_element = XM_U4;
            scale.resize(n / group * 4);
            zero.resize((n / group + 1) / 2);
        }
        for (uint8_t &b : data)
            b = gen() & 63;
        for (uint8_t &b : zero)
            b = (uint8_t)gen();
        for (size_t i = 0; i < scale.size() / 4; i++) {
            float s = 1.0f + (float)i / 64;
            std::memcpy(&scale[4 * i], &s, 4);
        }
        w.data = {data.data(), data.size()};
        if (group) {
            w.scale = {scale.data(), scale.size()};
            w.zero_point = {zero.data(), zero.size()};
        }
    }
};

std::vector<float>
row_of(const xm_weight &w, uint64_t e, uint64_t n)
{
    std::vector<float> row(w.cols, NAN);
    xm_weight_row(&w, e, n, row.data());
    return row;
}

struct view_case {
    xm_weight_format format;
    uint64_t cols, group;
    xm_scale_order order;
};

/* Small enough to check every row of every view. */
const view_case views[] = {
    {XM_WEIGHT_ELEMENTS, 96, 32, XM_SCALE_ROW_MAJOR},
    {XM_WEIGHT_ELEMENTS, 96, 32, XM_SCALE_GROUP_MAJOR},
    {XM_WEIGHT_ELEMENTS, 60, 6, XM_SCALE_ROW_MAJOR},
    {XM_WEIGHT_Q4_0, 96, 0, XM_SCALE_ROW_MAJOR},
    {XM_WEIGHT_Q4_K, 768, 0, XM_SCALE_ROW_MAJOR},
    {XM_WEIGHT_Q6_K, 768, 0, XM_SCALE_ROW_MAJOR},
    {XM_WEIGHT_MXFP4, 96, 0, XM_SCALE_ROW_MAJOR},
};

/* The host and the kernels agree on which integers of a format products with bytes may read. */
TEST(WeightFormats, HaveTheBitsOfTheirKernels)
{
    for (const xm_weight_format_info &f : xm_weight_formats) {
        if (!f.decode)
            continue;
        std::ifstream file(std::string(XM_SOURCE_DIR "/kernels/cl/include/format_") +
                           f.text + ".h");
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        const std::regex line("#define BITS_" + std::string(f.text) + " +([0-9]+)\\n");
        std::smatch found;
        ASSERT_FALSE(text.empty()) << f.text;
        const bool has_bits = std::regex_search(text, found, line);
        EXPECT_EQ(has_bits, (f.meets & XM_MEETS_BYTES) != 0) << f.text;
        EXPECT_LE(has_bits ? std::stoi(found[1]) : 0, 6) << f.text;
    }
    xm_weight w = {};
    w.element = XM_U4;
    EXPECT_TRUE(xm_weight_meets(&w) & XM_MEETS_BYTES);
    w.element = XM_I8;
    EXPECT_FALSE(xm_weight_meets(&w) & XM_MEETS_BYTES);
}

} // namespace

TEST(WeightFormats, BlocksAreTheFloatsOfGguf)
{
    std::ifstream in(XM_WEIGHT_BLOCKS);
    std::map<std::string, int> seen;
    std::string name, block, floats;
    while (in >> name >> block >> floats) {
        int format = 0;
        while (format < XM_WEIGHT_FORMATS && name != xm_weight_formats[format].text)
            format++;
        ASSERT_LT(format, XM_WEIGHT_FORMATS) << name;
        const xm_weight_format_info &f = xm_weight_formats[format];
        std::vector<uint8_t> raw = bytes_of("00" + block), want = bytes_of(floats);
        ASSERT_EQ(raw.size(), 1 + f.block_bytes);
        ASSERT_EQ(want.size(), f.block_cols * sizeof(float));
        std::vector<float> got(f.block_cols, NAN);
        f.decode(raw.data() + 1, got.data());
        for (size_t i = 0; i < f.block_cols; i++) {
            float w;
            std::memcpy(&w, &want[4 * i], 4);
            /* neither the sign of zero nor the bits of NaN are compared */
            EXPECT_TRUE(std::memcmp(&w, &got[i], 4) == 0 || (w == 0 && got[i] == 0) ||
                        (std::isnan(w) && std::isnan(got[i])))
                << name << " " << i << ": " << got[i] << " is not " << w;
        }
        seen[name]++;
    }
    for (int f = XM_WEIGHT_ELEMENTS + 1; f < XM_WEIGHT_FORMATS; f++)
        EXPECT_GE(seen[xm_weight_formats[f].text], 3) << xm_weight_formats[f].text;
}

/* Bit 7 of a scale is ignored, so that NaN is 0 with either sign. */
TEST(WeightFormats, ScalesOfNvfp4HaveSevenBits)
{
    uint8_t block[36] = {0x7f, 0xff, 0x3a, 0xba};
    float got[64];
    std::fill(block + 4, block + sizeof(block), (uint8_t)0x75);
    xm_weight_formats[XM_WEIGHT_NVFP4].decode(block, got);
    for (int i = 0; i < 32; i++)
        EXPECT_EQ(got[i], 0) << i;
    for (int i = 32; i < 48; i++)
        EXPECT_EQ(got[i], got[i + 16]) << i;
    EXPECT_NE(got[32], 0);
}

TEST(WeightViews, SlicesAreRowsAndColumnsOfTheWhole)
{
    for (const view_case &c : views) {
        stored whole(c.format, 5, 7, c.cols, c.group, c.order);
        SCOPED_TRACE(xm_weight_format_text(&whole.w));
        ASSERT_STREQ(xm_weight_check(&whole.w), nullptr);
        uint64_t unit = c.group ? c.group : xm_weight_info(&whole.w)->block_cols;
        xm_weight w = whole.w;
        ASSERT_STREQ(xm_weight_slice_cols(&w, unit, c.cols - unit), nullptr);
        ASSERT_STREQ(xm_weight_slice_rows(&w, 2, 4), nullptr);
        ASSERT_STREQ(xm_weight_slice_experts(&w, 1, 3), nullptr);
        ASSERT_STREQ(xm_weight_slice_rows(&w, 1, 2), nullptr); /* slices the slice */
        ASSERT_STREQ(xm_weight_check(&w), nullptr);
        EXPECT_FALSE(xm_weight_is_whole(&w));
        EXPECT_LT(xm_weight_bytes(&w), xm_weight_bytes(&whole.w));
        for (uint64_t e = 0; e < w.experts; e++) {
            for (uint64_t n = 0; n < w.rows; n++) {
                std::vector<float> all = row_of(whole.w, e + 1, n + 3);
                EXPECT_EQ(row_of(w, e, n),
                          std::vector<float>(all.begin() + (ptrdiff_t)unit, all.end()));
            }
        }
    }
}

/* Rows of every expert, without some columns at both ends. */
TEST(WeightViews, ArePackedWithoutWhatLiesBetween)
{
    for (const view_case &c : views) {
        stored whole(c.format, 5, 7, c.cols, c.group, c.order);
        SCOPED_TRACE(xm_weight_format_text(&whole.w));
        const uint64_t unit = c.group ? c.group : xm_weight_info(&whole.w)->block_cols;
        xm_weight w = whole.w, packed;
        ASSERT_STREQ(xm_weight_slice_cols(&w, unit, c.cols - unit), nullptr);
        ASSERT_STREQ(xm_weight_slice_rows(&w, 1, 5), nullptr);
        ASSERT_STREQ(xm_weight_slice_experts(&w, 1, 3), nullptr);
        void *bytes = nullptr;
        xm_error err = {};
        const xm_status s = xm_weight_pack(&w, &packed, &bytes, &err);
        if (c.group && c.order == XM_SCALE_GROUP_MAJOR) {
            EXPECT_EQ(s, XM_UNSUPPORTED);
            EXPECT_EQ(bytes, nullptr);
            continue;
        }
        ASSERT_EQ(s, XM_OK) << err.text;
        EXPECT_STREQ(xm_weight_check(&packed), nullptr);
        EXPECT_TRUE(xm_weight_is_whole(&packed));
        EXPECT_EQ(packed.data.n + packed.scale.n + packed.zero_point.n,
                  xm_weight_bytes(&w) +
                      (packed.zero_point_is_scalar ? packed.zero_point.n : 0));
        for (uint64_t e = 0; e < w.experts; e++)
            for (uint64_t n = 0; n < w.rows; n++)
                EXPECT_EQ(row_of(packed, e, n), row_of(w, e, n)) << e << " " << n;
        xm_free(bytes);
    }
}

TEST(WeightViews, WhatIsNotThereIsRefused)
{
    stored s(XM_WEIGHT_Q4_0, 2, 3, 64);
    xm_weight w = s.w;
    EXPECT_STREQ(xm_weight_slice_rows(&w, 1, 3), "the rows lie outside the weight");
    EXPECT_STREQ(xm_weight_slice_rows(&w, 3, 0), "the rows lie outside the weight");
    EXPECT_STREQ(xm_weight_slice_rows(&w, UINT64_MAX, 2),
                 "the rows lie outside the weight");
    EXPECT_STREQ(xm_weight_slice_experts(&w, 2, 1), "the experts lie outside the weight");
    EXPECT_STREQ(xm_weight_slice_cols(&w, 32, 64), "the columns lie outside the weight");
    EXPECT_STREQ(xm_weight_slice_cols(&w, 16, 32),
                 "columns can be sliced only between groups or blocks");
    EXPECT_EQ(std::memcmp(&w, &s.w, sizeof(w)), 0);

    w.view.first_row = UINT64_MAX;
    EXPECT_STREQ(xm_weight_check(&w), "the number of elements overflows");
    w = s.w;
    w.view.first_row = 1; /* the last row is beyond the end */
    EXPECT_STREQ(xm_weight_check(&w),
                 "the size of the data does not match the dimensions");
    w = s.w;
    w.view = {96, 3, 0, 64};
    EXPECT_STREQ(xm_weight_check(&w), "the columns lie outside the stored weight");
    w = s.w;
    w.cols = 48;
    EXPECT_STREQ(xm_weight_check(&w),
                 "the number of columns is not a multiple of the block size");
    w = s.w;
    w.group = 32;
    EXPECT_STREQ(xm_weight_check(&w),
                 "a block format cannot have separate scales or zero points");
}

/* Two weights are the same if all parts that determine their values are equal. */
TEST(WeightViews, SameIsEverythingThatMakesTheNumbers)
{
    stored s(XM_WEIGHT_ELEMENTS, 2, 4, 64, 32);
    xm_weight w = s.w;
    EXPECT_TRUE(xm_weight_same(&w, &s.w));
    const std::vector<void (*)(xm_weight &)> changes = {
        [](xm_weight &x) { x.group = 16; },
        [](xm_weight &x) { x.element = XM_I4; },
        [](xm_weight &x) { x.format = XM_WEIGHT_Q4_0; },
        [](xm_weight &x) { x.scale_element = XM_F16; },
        [](xm_weight &x) { x.zero_point_element = XM_I4; },
        [](xm_weight &x) { x.zero_point_is_scalar = true; },
        [](xm_weight &x) { x.order = XM_SCALE_GROUP_MAJOR; },
        [](xm_weight &x) { x.experts = 1; },
        [](xm_weight &x) { x.view.first_row = 1; },
        [](xm_weight &x) { x.view.first_col = 32; },
        [](xm_weight &x) { x.view.row_cols = 128; },
        [](xm_weight &x) { x.scale.p++; },
    };
    for (size_t i = 0; i < changes.size(); i++) {
        w = s.w;
        changes[i](w);
        EXPECT_FALSE(xm_weight_same(&w, &s.w)) << "change " << i;
    }
}
