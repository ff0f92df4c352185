/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/linear/linear_rows.h"

#include <algorithm>
#include <memory>

#include "primitives/device_weight.h"
#include "primitives/linear/linear_library.h"
#include "primitives/matrix_engine.h"
#include "primitives/onednn/onednn_weight.h"
#include "primitives/tables.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/linear_fixture.h"
#include "unit_tests/primitives/quantise.h"

namespace
{

const std::vector<weight_format> formats = with_codes(with_blocks({
    {XM_U4, 32, true},
    {XM_U4, 128, true},
    {XM_U4, UINT64_MAX, true},
    {XM_U4, 64, true, XM_F32, false, true},
    {XM_I4, 32, false},
    {XM_U8, 64, true},
    {XM_I8, UINT64_MAX, false, XM_F32},
    {XM_I8, 32, false, XM_BF16},
    {XM_U4, 32, true, XM_F16, true},
    {XM_F16, 0, false},
    {XM_BF16, 0, false},
    {XM_F32, 0, false},
    view_of({XM_U4, 32, true}),
    view_of({XM_U4, 32, true, XM_F16, true}),
    view_of({XM_U8, 64, true}),
    view_of({XM_I8, UINT64_MAX, false, XM_F32}),
    view_of({XM_F16, 0, false}),
}));
const weight_format f32 = {XM_F32, 0, false};

struct shape {
    uint64_t n, k;
};
const shape shapes[] = {{1, 128},
                        {17, 96},
                        {40, 320},
                        {9, 352},
                        {33, 2176},
                        /* more rows than a work-item, sub-group or work-group takes */
                        {5, 100},
                        {19, 512},
                        {34, 768},
                        {130, 128}};

/* Returns x W^T (+ bias), computed in f32. */
std::vector<float>
expected(const std::vector<float> &x, const xm_weight &w, const float *bias)
{
    const uint64_t tokens = x.size() / w.cols;
    std::vector<float> y(tokens * w.rows);
    EXPECT_EQ(xm_ref_linear(x.data(), tokens, &w, 0, bias, y.data()), XM_OK);
    return y;
}

/* Returns the product of x and weights rounded to bf16; weights are rounded before their common
 * factor. */
std::vector<float>
expected_in_bf16(const std::vector<float> &x, const xm_weight &w, const float *bias)
{
    const uint64_t tokens = x.size() / w.cols;
    const std::vector<float> rounded = in_bf16(x);
    std::vector<float> y(tokens * w.rows), row(w.cols);
    const float factor = xm_weight_factor_at(&w, 0);
    xm_weight numbers = w;
    numbers.factor = {};
    for (uint64_t n = 0; n < w.rows; n++) {
        xm_weight_row(&numbers, 0, n, row.data());
        row = in_bf16(row);
        for (uint64_t t = 0; t < tokens; t++) {
            double sum = 0;
            for (uint64_t k = 0; k < w.cols; k++)
                sum += (double)rounded[t * w.cols + k] * row[k];
            y[t * w.rows + n] = (float)sum * factor + (bias ? bias[n] : 0.0f);
        }
    }
    return y;
}

/* What a linear computes besides its product. */
struct extras {
    uint32_t segments;
    bool has_bias, has_addend;
    bool is_glu = false;
    xm_activation activation = XM_ACT_SWISH;
    uint32_t slices = 1, slice = 0;
    bool has_factor() const
    {
        return is_glu && segments == 1;
    }
};
using list = std::vector<extras>;
const list products = {{1, false, false},
                       {3, true, false},
                       {1, true, true},
                       {2, false, false},
                       {1, false, true}};
const list gated_units = {{2, false, false, true, XM_ACT_SWISH},
                          {1, false, false, true, XM_ACT_GELU_TANH, 3, 2},
                          {2, true, false, true, XM_ACT_GELU_TANH},
                          {1, true, false, true, XM_ACT_GELU_ERF},
                          {2, true, false, true, XM_ACT_GELU_ERF},
                          {1, false, false, true, XM_ACT_SWISH, 5, 0}};

/* Sets gate = act(gate) up[:,slice,:] in rows of n. Returns the scale of the error of each
 * element: the magnitude of the other factor, times the largest value of the row of gate, and of
 * up if it is a product. No activation here is steeper than 1.13. */
std::vector<float>
gate_with(std::vector<float> &gate, const std::vector<float> &up, size_t n,
          const extras &e, uint32_t slices, uint32_t slice)
{
    std::vector<float> scale(gate.size());
    for (size_t first = 0; first < gate.size(); first += n) {
        const float *factor = &up[(first / n * slices + slice) * n];
        float largest_gate = 1, largest_up = e.has_factor() ? 0.0f : 1.0f;
        for (size_t i = 0; i < n; i++) {
            largest_gate = std::fmax(largest_gate, magnitude(gate[first + i]));
            if (!e.has_factor())
                largest_up = std::fmax(largest_up, magnitude(factor[i]));
        }
        for (size_t i = 0; i < n; i++) {
            float &g = gate[first + i];
            g = xm_ref_activation(e.activation, 1.0f, g);
            scale[first + i] = 1.13f * largest_gate * magnitude(factor[i]) +
                               largest_up * magnitude(g) + magnitude(g * factor[i]);
            g *= factor[i];
        }
    }
    return scale;
}

/* Whether each error is within the type's relative tolerance of its scale, which is at least 1. */
::testing::AssertionResult
units_close(const std::vector<float> &got, const std::vector<float> &want,
            const std::vector<float> &scale, size_t row, xm_element element)
{
    const float relative = tolerance_of(element).relative;
    for (size_t i = 0; i < want.size(); i++) {
        if (distance(got[i], want[i]) > relative * std::fmax(scale[i], 1.0f))
            return ::testing::AssertionFailure()
                   << "row " << i / row << " element " << i % row << ": " << got[i]
                   << ", expected " << want[i] << ", of factors' scale " << scale[i];
    }
    return ::testing::AssertionSuccess();
}

/* A segment: its operands on the device and on the host. Segments have different numbers of rows.
 */
struct segment {
    test_weight w;
    tensor bias, y;
    segment(const weight_format &f, uint64_t n, uint64_t k, uint64_t tokens,
            xm_element dst, uint32_t seed)
        : w(1, n, k, f, seed), bias(XM_F32, {(int64_t)n}, random_floats(n, seed)),
          y(dst, {1, (int64_t)tokens, (int64_t)n})
    {
    }
};

/* Where the integers and the small scales lie in a block, and the byte that makes all of them the
 * largest. */
struct integers {
    xm_weight_format format;
    size_t first, n;
    uint8_t largest;
};
const integers of_blocks[] = {
    {XM_WEIGHT_Q4_0, 2, 16, 0xff},  {XM_WEIGHT_Q5_0, 2, 20, 0xff},
    {XM_WEIGHT_Q8_0, 2, 32, 0x7f},  {XM_WEIGHT_MXFP4, 1, 16, 0x77},
    {XM_WEIGHT_Q2_K, 0, 80, 0xff},  {XM_WEIGHT_Q3_K, 0, 108, 0xff},
    {XM_WEIGHT_Q4_K, 4, 140, 0xff}, {XM_WEIGHT_Q5_K, 4, 172, 0xff},
    {XM_WEIGHT_Q6_K, 0, 192, 0xff}, {XM_WEIGHT_Q6_K, 192, 16, 0x80}};

/* Overwrites the integers of a weight that the device reads in place. */
void
fill_integers(const xm_weight &w)
{
    auto *p = const_cast<uint8_t *>(static_cast<const uint8_t *>(w.data.p));
    for (const integers &f : of_blocks)
        for (size_t at = 0, step = xm_weight_formats[f.format].block_bytes;
             f.format == w.format && at < w.data.n; at += step)
            std::fill_n(p + at + f.first, f.n, f.largest);
}

class Linear : public PrimitiveTest
{
  protected:
    /* The value of all x, to be multiplied by the largest integers; 0: random values. */
    float level = 0.0f;

    /* Returns whether the forced variant took the problem. */
    bool check(const weight_format &f, const shape &s, uint64_t tokens, xm_element src,
               xm_element dst, const extras &e, const char *name)
    {
        SCOPED_TRACE(text_of(f) + " N=" + std::to_string(s.n) +
                     " K=" + std::to_string(s.k) + " T=" + std::to_string(tokens) + " " +
                     std::to_string(e.segments) + " segments" +
                     (e.is_glu ? ", gated" : ""));
        tensor x(src, {1, (int64_t)tokens, (int64_t)s.k},
                 level ? std::vector<float>(tokens * s.k, level)
                       : random_floats(tokens * s.k, 1));
        tensor other(dst, {1, (int64_t)tokens, e.slices * (int64_t)s.n},
                     random_floats(tokens * e.slices * s.n, 3));
        std::vector<std::unique_ptr<segment>> segments;
        xm_linear_desc desc = {};
        xm_operand operands[XM_LINEAR_N_OPERANDS] = {};
        desc.src = src;
        desc.dst = dst;
        desc.factor = factor_of(name);
        desc.n = e.segments;
        desc.has_addend = e.has_addend;
        desc.is_glu = e.is_glu;
        desc.activation = e.activation;
        desc.slices = e.slices;
        desc.slice = e.slice;
        operands[XM_LINEAR_X] = x.operand();
        if (e.has_addend || e.has_factor())
            operands[XM_LINEAR_ADDEND] = other.operand();
        for (uint32_t i = 0; i < e.segments; i++) {
            uint64_t n = s.n + (e.is_glu ? 0 : 5 * i);
            segments.push_back(
                std::make_unique<segment>(beside(f, s.k, i), n, s.k, tokens, dst, 7 + i));
            if (level)
                fill_integers(segments[i]->w.host);
            desc.segment[i] = {segments[i]->w.device,
                               e.has_bias ? segments[i]->bias.buffer() : nullptr};
            if (i == 0 || !e.is_glu)
                operands[XM_LINEAR_Y + i] = segments[i]->y.operand();
        }
        primitive_ptr linear;
        xm_error error = {};
        xm_status status = xm_linear_create(engine, &desc, &linear.p, &error);
        if (status == XM_UNSUPPORTED)
            return false;
        EXPECT_EQ(status, XM_OK) << error.text;
        if (status != XM_OK)
            return false;
        planned_run r(linear.p, operands, queue);
        char used[64];
        xm_primitive_describe(linear.p, operands, used, sizeof(used));
        EXPECT_STREQ(used, name);
        EXPECT_EQ(xm_primitive_run(linear.p, operands, &r.run, &error), XM_OK)
            << error.text;
        const xm_element product = e.has_addend ? src : dst; /* the product's precision */
        std::vector<std::vector<float>> want;
        const std::vector<float> more = other.rounded();
        for (auto &one : segments) {
            const std::vector<float> bias = one->bias.rounded();
            const float *added = e.has_bias ? bias.data() : nullptr;
            want.push_back(is_amx(name)
                               ? expected_in_bf16(x.rounded(), one->w.host, added)
                               : expected(quantised(x.rounded(), s.k, desc.factor),
                                          one->w.host, added));
            for (size_t i = 0; e.has_addend && i < more.size(); i++)
                want[0][i] += more[i];
        }
        if (e.is_glu) {
            const std::vector<float> scale =
                e.has_factor() ? gate_with(want[0], more, s.n, e, e.slices, e.slice)
                               : gate_with(want[0], want[1], s.n, e, 1, 0);
            EXPECT_TRUE(units_close(segments[0]->y.read(), want[0], scale, s.n, product));
            return true;
        }
        for (uint32_t i = 0; i < e.segments; i++)
            EXPECT_TRUE(rows_close(segments[i]->y.read(), want[i],
                                   segments[i]->w.host.rows, product));
        return true;
    }

    /* Columns that share a scale, for variants that multiply 8-bit integers. */
    uint32_t factor = 32;
    uint32_t factor_of(const std::string &row) const
    {
        return row.find("_bytes") != row.npos || is_amx(row) ? factor : 0;
    }
    static bool is_amx(const std::string &row)
    {
        return row == "linear_gemm_amx";
    }

    /* Forces the variant; steps that the test does not ask for are built as the reference. */
    static void force_row(const xm_variant_table &t, const char *name)
    {
        std::string all;
        for (const xm_variant_table &other : xm_linear_tables)
            all += std::string(other.step) + "=" + (&other == &t ? name : "linear_ref") +
                   ",";
        all.pop_back();
        setenv("XM_FORCE", all.c_str(), 1);
    }

    /* Returns whether the variant took one of the shapes. */
    bool check_format(size_t f, const std::vector<uint64_t> &tokens,
                      const list &all_extras, const char *name)
    {
        const weight_format &format = formats[f];
        std::vector<shape> fitting;
        for (const shape &s : shapes) {
            if (s.k % unit_of(format, s.k) == 0)
                fitting.push_back(s);
        }
        /* builds one type for each format */
        const xm_element e = f % 3 == 1 ? XM_F16 : XM_F32;
        const extras &extra = all_extras[f % all_extras.size()]; /* a residual is f32 */
        bool taken = false;
        for (const shape &s : sample::of(fitting, 2))
            taken |= check(format, s, tokens[s.n % tokens.size()], e,
                           extra.has_addend ? XM_F32 : e, extra, name);
        return taken;
    }

    enum { MORE = 6 }; /* more formats, which no variant but the last takes */

    /* Tests each variant with n formats. */
    void check_table(const xm_variant_table &t, const std::vector<uint64_t> &tokens,
                     const list &all_extras, size_t n)
    {
        std::set<std::string> left = rows_to_cover(t);
        test_weight dense(1, 33, 2176, f32, 1);
        if (xm_onednn_linear_refuses(xm_engine_info(engine), &dense.host, XM_F32))
            left.erase("linear_gemm_onednn");
        sample::deck deck(formats.size());
        for (size_t v = 0; v < t.n; v++) {
            const char *name = t.rows[v].name;
            SCOPED_TRACE(name);
            force_row(t, name);
            optimise_for(t.rows[v]);
            auto takes = [&](size_t f) {
                bool taken = check_format(f, tokens, all_extras, name);
                if (taken)
                    left.erase(name);
                return taken;
            };
            deck.deal(n, takes);
            if (v + 1 == t.n)
                deck.deal(MORE, takes);
        }
        EXPECT_TRUE(deck.all_taken() || !sample::is_whole());
        EXPECT_TRUE(left.empty()) << *left.begin() << " was never run";
    }
};

TEST_F(Linear, EveryVariantForFewTokensAgreesWithTheReference)
{
    check_table(xm_linear_tables[0], {1, 2, 3, 4}, products, 2);
}

TEST_F(Linear, EveryVariantForManyTokensAgreesWithTheReference)
{
    check_table(xm_linear_tables[1], {5, 16, 17, 33}, products, 1);
}

TEST_F(Linear, EveryVariantForLongPromptsAgreesWithTheReference)
{
    check_table(xm_linear_tables[2], {128, 133, 321}, products, 1);
}

TEST_F(Linear, EveryVariantMakesGatedUnitsOfFewTokens)
{
    check_table(xm_linear_tables[0], {1, 2, 3, 4}, gated_units, 1);
}

TEST_F(Linear, EveryVariantMakesGatedUnitsOfManyTokens)
{
    check_table(xm_linear_tables[1], {5, 17, 40}, gated_units, 1);
}

TEST_F(Linear, EveryVariantMakesGatedUnitsOfLongPrompts)
{
    check_table(xm_linear_tables[2], {128, 133}, gated_units, 1);
}

/* Whole weights and views, alone and beside other formats, and with half a block at the end. */
TEST_F(Linear, BlocksOfEveryFormatMeetIntegers)
{
    const struct {
        const char *row;
        const xm_variant_table *table;
        uint64_t tokens;
    } cases[] = {{"linear_gemv_vnni", &xm_linear_tables[0], 4},
                 {"linear_gemm_vnni", &xm_linear_tables[1], 17}};
    if (!xm_device_has(xm_engine_info(engine), XM_CAP_SHORT_PAIRS))
        GTEST_SKIP() << "the processor has no AVX2";
    for (const auto &c : cases) {
        force_row(*c.table, c.row);
        std::vector<weight_format> some = some_blocks();
        some.push_back(with_factors(blocks_of(XM_WEIGHT_NVFP4)));
        some.push_back(view_of(with_factors(blocks_of(XM_WEIGHT_Q4_K))));
        for (const weight_format &f : some) {
            for (uint32_t segments : sample::of<uint32_t>({1, 3}, 1)) {
                const uint64_t k = unit_of(f, 0) == 32 && segments == 1 ? 352 : 768;
                EXPECT_TRUE(check(f, {33, k}, c.tokens, XM_F16, XM_F16,
                                  {segments, segments == 3, false}, c.row));
            }
        }
    }
}

/* Each format is multiplied as bf16 on AMX tiles, real or emulated. */
TEST_F(Linear, BlocksAndGroupsOfEveryFormatMeetTilesOfAmx)
{
    const char *const row = "linear_gemm_amx";
    const xm_device_info *info = xm_engine_info(engine);
    if (!xm_device_has(info, XM_CAP_SHORT_PAIRS))
        GTEST_SKIP() << "the processor has no AVX2";
    force_row(xm_linear_tables[1], row);
    std::vector<weight_format> some = some_blocks();
    some.insert(some.end(), {with_factors(blocks_of(XM_WEIGHT_NVFP4)),
                             view_of(with_factors(blocks_of(XM_WEIGHT_Q4_K))),
                             {XM_U4, 32, true},
                             {XM_I4, 64, false},
                             {XM_U8, 32, true},
                             {XM_I8, UINT64_MAX, false, XM_F32},
                             view_of({XM_U4, 32, true})});
    const uint64_t tokens[] = {5, 16, 17, 33, 50};
    size_t n = 0;
    for (const weight_format &f : some) {
        const uint64_t k = unit_of(f, 0) == 32 ? 352 : 768;
        EXPECT_TRUE(check(f, {130, k}, tokens[n++ % std::size(tokens)], XM_F16, XM_F16,
                          {1, false, false}, row));
    }
}

/* The same kernel on a processor without AMX, with more tokens than a work-item takes. */
TEST_F(Linear, TilesOfAmxAreEmulated)
{
    const char *const row = "linear_gemm_amx";
    auto *info = const_cast<xm_device_info *>(xm_engine_info(engine));
    const uint32_t caps = info->caps;
    if (!xm_device_has(info, XM_CAP_SHORT_PAIRS))
        GTEST_SKIP() << "the processor has no AVX2";
    info->caps &= ~(uint32_t)XM_CAP_AMX;
    force_row(xm_linear_tables[2], row);
    for (const weight_format &f :
         {blocks_of(XM_WEIGHT_Q4_K), weight_format{XM_U4, 64, true}})
        EXPECT_TRUE(check(f, {130, 768}, 165, XM_F16, XM_F16, {1, true, false}, row));
    info->caps = caps;
}

/* Without AMX only XM_FORCE selects the variant. */
TEST_F(Linear, EmulatedTilesAreADrawback)
{
    xm_device_info device = *xm_engine_info(engine);
    const xm_variant *row = nullptr;
    for (size_t i = 0; i < xm_linear_tables[1].n; i++) {
        if (is_amx(xm_linear_tables[1].rows[i].name))
            row = &xm_linear_tables[1].rows[i];
    }
    ASSERT_NE(row, nullptr);
    device.caps |= XM_CAP_AMX;
    EXPECT_EQ(xm_variant_drawback(row, &device), nullptr);
    EXPECT_NE(std::string(xm_variant_defines(row, &device).text).find("-DAMX=1"),
              std::string::npos);
    device.caps &= ~(uint32_t)XM_CAP_AMX;
    EXPECT_NE(xm_variant_drawback(row, &device), nullptr);
    EXPECT_NE(std::string(xm_variant_defines(row, &device).text).find("-DAMX=0"),
              std::string::npos);
}

/* The variants that multiply 8-bit integers, and numbers of tokens: one to four, and tiles of
 * eight and 16. */
const struct {
    const char *row;
    const xm_variant_table *table;
    std::vector<uint64_t> tokens;
} in_bytes[] = {{"linear_gemv_bytes", &xm_linear_tables[0], {1, 2, 3, 4}},
                {"linear_gemm_bytes", &xm_linear_tables[1], {5, 8, 9, 17, 33, 50}}};

/* The reference rounds x in the same way. */
TEST_F(Linear, BlocksAndGroupsOfEveryFormatMeetBytes)
{
    if (!xm_device_has(xm_engine_info(engine), XM_CAP_SHORT_PAIRS))
        GTEST_SKIP() << "the processor has no AVX2";
    std::vector<weight_format> some = some_blocks();
    some.insert(some.end(), {with_factors(blocks_of(XM_WEIGHT_NVFP4)),
                             view_of(with_factors(blocks_of(XM_WEIGHT_Q4_K))),
                             {XM_U4, 32, true},
                             {XM_U4, 128, true},
                             {XM_I4, 64, false},
                             {XM_U4, UINT64_MAX, true},
                             {XM_U8, 64, true},
                             {XM_I8, UINT64_MAX, false, XM_F32},
                             {XM_U8, 32, true},
                             view_of({XM_U4, 32, true}),
                             view_of({XM_I8, 32, false})});
    for (const auto &c : in_bytes) {
        force_row(*c.table, c.row);
        size_t n = 0;
        for (const weight_format &f : some) {
            for (uint32_t segments : sample::of<uint32_t>({1, 3}, 1)) {
                const uint64_t unit = unit_of(f, 0);
                const uint64_t k = unit == 32 && segments == 1 ? 352 : 768;
                factor = n % 3 ? 32 : 128;
                EXPECT_TRUE(check(f, {130, k}, c.tokens[n++ % c.tokens.size()], XM_F16,
                                  XM_F16, {segments, segments == 3, false}, c.row));
            }
        }
    }
}

/* All columns of a unit share a scale of x: the multipliers of the weights are applied to integer
 * sums. */
TEST_F(Linear, MultipliersMeetSumsOfProducts)
{
    if (!xm_device_has(xm_engine_info(engine), XM_CAP_SHORT_PAIRS))
        GTEST_SKIP() << "the processor has no AVX2";
    factor = 128;
    const std::vector<xm_weight_format> formats = {
        XM_WEIGHT_Q2_K, XM_WEIGHT_Q3_K, XM_WEIGHT_Q4_K, XM_WEIGHT_Q5_K, XM_WEIGHT_Q6_K};
    for (const auto &c : in_bytes) {
        force_row(*c.table, c.row);
        for (xm_weight_format f : sample::of(formats, 2))
            for (uint64_t tokens : c.tokens)
                EXPECT_TRUE(check(blocks_of(f), {50, 768}, tokens, XM_F16, XM_F16,
                                  {tokens % 2 ? 3u : 1u, false, false}, c.row));
    }
}

/* Sums of products may be 16-bit: tests the largest of both signs. */
TEST_F(Linear, LargestIntegersDoNotOverflow)
{
    if (!xm_device_has(xm_engine_info(engine), XM_CAP_SHORT_PAIRS))
        GTEST_SKIP() << "the processor has no AVX2";
    for (const auto &c : in_bytes) {
        force_row(*c.table, c.row);
        for (const integers &f : of_blocks) {
            for (float x : {1.0f, -1.0f}) {
                level = x;
                factor = xm_weight_formats[f.format].block_cols < 256 ? 32 : 128;
                EXPECT_TRUE(check(blocks_of(f.format), {16, 256}, c.tokens[3], XM_F16,
                                  XM_F16, {1, false, false}, c.row));
            }
        }
    }
}

TEST_F(Linear, NoTokensIsNothingToDo)
{
    test_weight w(1, 8, 64, formats[0], 1);
    tensor x(XM_F32, {0, 64}), y(XM_F32, {0, 8});
    const xm_linear_desc desc = describe(w, XM_F32, XM_F32);
    primitive_ptr linear;
    ASSERT_XM_OK(xm_linear_create(engine, &desc, &linear.p, &err));
    const xm_operand operands[XM_LINEAR_N_OPERANDS] = {x.operand(), {}, y.operand()};
    ASSERT_XM_OK(xm_primitive_run(linear.p, operands, &run, &err));
}

/* On a processor without bf16 products oneDNN emulates them. */
TEST_F(Linear, BothPartsOfAnActivationMeetWeightsOfBf16)
{
    auto *device = const_cast<xm_device_info *>(xm_engine_info(engine));
    const uint32_t caps = device->caps;
    test_weight w(1, 33, 2176, {XM_BF16, 0, false}, 1);
    device->caps |= XM_CAP_BF16;
    if (xm_onednn_linear_refuses(device, &w.host, XM_F16) ||
        xm_onednn_linear_operands(device, &w.host, XM_F16).parts != 2) {
        device->caps = caps;
        GTEST_SKIP() << "oneDNN has no products of bf16 on this processor";
    }
    force_row(xm_linear_tables[2], "linear_gemm_onednn");
    const weight_format whole = {XM_BF16, 0, false};
    for (xm_element dst : {XM_F16, XM_F32}) {
        for (const weight_format &f : {whole, view_of(whole)}) {
            for (bool has_bias : {false, true})
                EXPECT_TRUE(check(f, {33, 2176}, 133, XM_F16, dst, {1, false, has_bias},
                                  "linear_gemm_onednn"));
        }
    }
    device->caps = caps;
}

/* A product that fails for lack of memory fails the run, and y stays unchanged. */
TEST_F(Linear, AProductOfOnednnThatFailsFailsTheRun)
{
    test_weight w(1, 33, 2176, f32, 1);
    if (xm_onednn_linear_refuses(xm_engine_info(engine), &w.host, XM_F32))
        GTEST_SKIP() << "this build has no oneDNN CPU engine";
    force_row(xm_linear_tables[2], "linear_gemm_onednn");
    tensor x(XM_F32, {128, 2176}, random_floats(128 * 2176, 1)), y(XM_F32, {128, 33});
    const xm_linear_desc desc = describe(w, XM_F32, XM_F32);
    primitive_ptr linear;
    ASSERT_XM_OK(xm_linear_create(engine, &desc, &linear.p, &err));
    xm_operand operands[XM_LINEAR_N_OPERANDS] = {};
    operands[XM_LINEAR_X] = x.operand();
    operands[XM_LINEAR_Y] = y.operand();
    planned_run r(linear.p, operands, queue);
    const std::vector<float> want = expected(x.rounded(), w.host, nullptr);
    bool seen = true;
    for (uint64_t n = 1; seen; n++) {
        ASSERT_XM_OK(xm_queue_fill(queue, y.buffer(), 0, 0xff, 128 * 33 * 4, &err));
        ASSERT_XM_OK(xm_queue_finish(queue, &err));
        xm_error error = {};
        xm_fail_allocation(n);
        xm_status status = xm_primitive_run(linear.p, operands, &r.run, &error);
        if (status == XM_OK)
            status = xm_queue_finish(queue, &error);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (status == XM_OK)
            EXPECT_TRUE(rows_close(y.read(), want, 33, XM_F32)) << "allocation " << n;
        else
            EXPECT_EQ(status, XM_NO_MEMORY) << error.text;
    }
}

} // namespace
