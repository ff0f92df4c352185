/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepared rows: their contents, that every kernel that writes them writes the same, and that
 * kernels read them.
 */
#include <algorithm>

#include "primitives/form.h"

#include "primitives/linear/linear.h"
#include "primitives/norm/norm.h"
#include "primitives/norm/row_chain.h"
#include "primitives/tables.h"
#include "unit_tests/primitives/weight_fixture.h"

namespace
{

const weight_format formats[] = {
    {XM_U4, 32, true},          {XM_U4, 128, true},        {XM_I4, 64, false},
    {XM_U4, UINT64_MAX, true},  {XM_U8, 64, true},         {XM_I8, 32, false},
    {XM_I8, UINT64_MAX, false}, {XM_F16, 0, false},        {XM_F32, 0, false},
    blocks_of(XM_WEIGHT_Q4_0),  blocks_of(XM_WEIGHT_Q8_0),
};
const uint64_t columns[] = {256, 320, 352};

/* Returns integer k of a row, stored as bytes or as pairs of 16 bits. The device chooses which
 * (kernels/cl/include/shorts.h). */
int
unit_integer(const std::vector<int64_t> &words, uint64_t at, uint64_t k, bool bytes)
{
    const uint64_t in = k % 128, half = in / 16 % 2, in_word = in % 4;
    const uint64_t lane = in / 32 * 4 + in % 16 / 4;
    auto word = [&](uint64_t plane) {
        return (uint32_t)words[at + k / 128 * 64 + (half * 2 + plane) * 16 + lane];
    };
    if (bytes)
        return 256 * (int8_t)(word(0) >> 8 * in_word) + (int8_t)(word(1) >> 8 * in_word);
    return (int16_t)(word(in_word % 2) >> in_word / 2 * 16);
}

/* Returns whether the row holds, for each 16 integers read in this way, minus their sum. */
bool
sums_agree(const std::vector<int64_t> &words, uint64_t at, uint64_t blocks, bool bytes)
{
    bool agree = true;
    for (uint64_t i = 0; i < blocks * 8; i++) {
        int64_t sum = words[at + blocks * 65 + i];
        for (uint64_t k = 16 * i; k < 16 * i + 16; k++)
            sum += unit_integer(words, at, k, bytes);
        agree &= sum == 0;
    }
    return agree;
}

/* A prepared row (kernels/cl/include/prepared.h), decoded. */
struct prepared_row {
    std::vector<float> x, sums; /* k in natural order */
};

/* Decodes a row of 8-bit integers (kernels/cl/include/bytes.h). `has_sums`: minus the sum of each
 * 16 integers follows them, and is checked. */
prepared_row
take_bytes_apart(const std::vector<int64_t> &words, uint64_t at, uint64_t cols,
                 bool has_sums = true)
{
    const uint64_t units = (cols + 127) / 128;
    prepared_row row;
    for (uint64_t k = 0; k < units * 128; k++) {
        const uint64_t u = k / 128, b = k % 128 / 32, h = k / 16 % 2, j = k % 16 / 4;
        const uint32_t word = (uint32_t)words[at + u * 32 + h * 16 + b * 4 + j];
        const int32_t bits = (int32_t)words[at + units * 32 + u * 4 + b];
        const int8_t q = (int8_t)(word >> 8 * (k % 4));
        float factor;
        memcpy(&factor, &bits, sizeof(factor));
        if (k < cols)
            row.x.push_back(q * factor);
        else
            EXPECT_EQ(q, 0) << "behind the row's end";
        if (k % 16 == 0)
            row.sums.push_back(0);
        row.sums.back() += q;
    }
    for (uint64_t i = 0; has_sums && i < row.sums.size(); i++)
        EXPECT_EQ(-row.sums[i], (float)(int32_t)words[at + units * 36 + i]);
    return row;
}

prepared_row
take_apart(const std::vector<int64_t> &words, uint64_t at, const xm_rows_form &f,
           uint64_t cols)
{
    const uint64_t block = 16 * f.planes, blocks = (cols + block - 1) / block;
    auto as_float = [&](uint64_t i) {
        const int32_t bits = (int32_t)words[at + i];
        float v;
        memcpy(&v, &bits, sizeof(v));
        return v;
    };
    prepared_row row;
    const bool bytes = f.in_units && sums_agree(words, at, blocks, true);
    if (f.in_units && !bytes) {
        EXPECT_TRUE(sums_agree(words, at, blocks, false));
    }
    for (uint64_t k = 0; k < blocks * block; k++) {
        const uint64_t b = k / block, i = k % block / f.planes, j = k % f.planes;
        float v;
        if (f.in_units) {
            v = (float)unit_integer(words, at, k, bytes) * as_float(blocks * 64 + b);
        } else if (f.form == XM_FORM_SHORTS) {
            const uint64_t half = f.planes / 2;
            const uint32_t word = (uint32_t)words[at + b * block / 2 + j % half * 16 + i];
            v = (float)(int16_t)(j < half ? word : word >> 16) *
                as_float(blocks * block / 2 + b);
        } else {
            v = as_float(b * block + j * 16 + i);
            if (j + 1 < f.planes)
                v = std::ldexp(v, (int)(j * (32 / f.planes)));
        }
        if (k < cols)
            row.x.push_back(v);
        else
            EXPECT_EQ(v, 0.0f) << "behind the row's end";
    }
    const uint64_t values = f.form == XM_FORM_PLANES
                                ? blocks * block
                                : blocks * (block / 2 + (f.in_units ? 9 : 1));
    for (uint64_t g = 0; f.group && g < cols / f.group; g++)
        row.sums.push_back(as_float(values + g));
    return row;
}

class Form : public PrimitiveTest
{
  protected:
    /* Calls fn for every format, and for every length that its blocks and groups divide. */
    template <class F> void for_formats(xm_element src, F fn)
    {
        for (const weight_format &format : formats) {
            for (uint64_t cols : columns) {
                if (cols % unit_of(format, cols))
                    continue;
                SCOPED_TRACE(text_of(format) + " x " + std::to_string(cols));
                test_weight w(1, 8, cols, format, 1);
                for (xm_form form : {XM_FORM_PLANES, XM_FORM_SHORTS, XM_FORM_BYTES}) {
                    const xm_weight *host = &w.device->host;
                    if (form == XM_FORM_PLANES   ? xm_weight_not_in_planes(host)
                        : form == XM_FORM_SHORTS ? xm_weight_not_in_shorts(host, src)
                                                 : xm_weight_not_in_bytes(host, src))
                        continue;
                    fn(w, xm_form_of(form, &w.device->host, XM_F16));
                    formats_tried++;
                }
            }
        }
        EXPECT_GT(formats_tried, 20u);
    }
    tensor words(const xm_rows_form &f, uint64_t cols, uint64_t rows)
    {
        return tensor(XM_I32, {(int64_t)rows, (int64_t)xm_prepared_words(&f, cols)});
    }
    std::vector<int64_t> prepared(test_weight &w, const xm_rows_form &f, tensor &x,
                                  uint64_t rows)
    {
        xm_kernel *kernel = nullptr;
        const xm_weight *host = &w.device->host;
        tensor out(XM_I32, {(int64_t)rows, (int64_t)xm_prepared_words(&f, host->cols)});
        EXPECT_EQ(xm_form_kernel(engine, &f, x.operand().element, host, &kernel, &err),
                  XM_OK)
            << err.text;
        EXPECT_EQ(xm_form_make(f.form, kernel, host, x.buffer(), rows, out.buffer(),
                               queue, &err),
                  XM_OK)
            << err.text;
        return out.read_ints();
    }
    bool is_cpu() const
    {
        return xm_engine_info(engine)->kind == XM_DEVICE_CPU;
    }
    size_t formats_tried = 0;
};

TEST_F(Form, PreparedRowsAreWhatTheirDescriptionSays)
{
    const uint64_t rows = 3;
    if (!is_cpu())
        GTEST_SKIP() << "rows are prepared for CPU devices";
    for_formats(XM_F16, [&](test_weight &w, const xm_rows_form &f) {
        const uint64_t cols = w.device->host.cols;
        if (f.form == XM_FORM_BYTES)
            return; /* checked by BytesAreWithinHalfAStepOfTheLargest */
        tensor x(XM_F16, {(int64_t)rows, (int64_t)cols}, random_floats(rows * cols, 7));
        const std::vector<int64_t> got = prepared(w, f, x, rows);
        const std::vector<float> want = x.rounded();
        for (uint64_t r = 0; r < rows; r++) {
            const prepared_row row =
                take_apart(got, r * xm_prepared_words(&f, cols), f, cols);
            for (uint64_t k = 0; k < cols; k++)
                ASSERT_NEAR(row.x[k], want[r * cols + k],
                            f.form == XM_FORM_PLANES ? 0.0 : 0x1p-15)
                    << "row " << r << " k " << k;
            for (uint64_t g = 0; g < row.sums.size(); g++) {
                float sum = 0;
                for (uint64_t k = g * f.group; k < (g + 1) * f.group; k++)
                    sum += want[r * cols + k];
                ASSERT_NEAR(row.sums[g], sum, 1e-4) << "row " << r << " group " << g;
            }
        }
    });
}

/* A word holds a pair of columns; words of different tokens are adjacent; zeros fill up tokens
 * and columns. */
TEST_F(Form, TilesOfBf16AreRoundedNumbers)
{
    const uint64_t rows = 19, tiles = 2;
    if (!is_cpu())
        GTEST_SKIP() << "tiles of AMX are for CPU devices";
    for (uint64_t cols : {768, 352}) {
        test_weight w(1, 8, cols, {XM_U4, 32, true}, 1);
        const xm_weight *host = &w.device->host;
        const xm_rows_form f = xm_form_of(XM_FORM_BF16_TILES, host, XM_F16);
        const uint64_t pairs = (cols + 127) / 128 * 64;
        tensor x(XM_F16, {(int64_t)rows, (int64_t)cols}, random_floats(rows * cols, 7));
        tensor out(XM_I32, {(int64_t)tiles, (int64_t)pairs, XM_TILE});
        xm_kernel *kernel = nullptr;
        ASSERT_EQ(xm_form_bytes(&f, cols, rows),
                  tiles * pairs * XM_TILE * sizeof(uint32_t));
        ASSERT_XM_OK(xm_form_kernel(engine, &f, XM_F16, host, &kernel, &err));
        ASSERT_XM_OK(xm_form_make(f.form, kernel, host, x.buffer(), rows, out.buffer(),
                                  queue, &err));
        const std::vector<int64_t> got = out.read_ints();
        const std::vector<float> want = x.rounded();
        for (size_t i = 0; i < got.size(); i++) {
            const uint64_t t = i / (pairs * XM_TILE) * XM_TILE + i % XM_TILE,
                           k = i / XM_TILE % pairs * 2;
            for (uint64_t j = 0; j < 2; j++) {
                const bool is_there = t < rows && k + j < cols;
                const float v = is_there ? want[t * cols + k + j] : 0.0f;
                ASSERT_EQ((uint32_t)got[i] >> (16 * j) & 0xffff, xm_float_to_bf16(v))
                    << "token " << t << " column " << k + j;
            }
        }
    }
}

/* The error is at most 1/254 of the largest magnitude that shares the scale, which itself is
 * exact. */
TEST_F(Form, BytesAreWithinHalfAStepOfTheLargest)
{
    const uint64_t rows = 3;
    test_weight w(1, 8, 768, {XM_U4, 32, true}, 1), cut(1, 8, 352, {XM_U4, 32, true}, 1);
    if (!is_cpu())
        GTEST_SKIP() << "rows are prepared for CPU devices";
    for (test_weight *weight : {&w, &cut}) {
        for (uint32_t factor : {32, 128}) {
            const uint64_t cols = weight->device->host.cols;
            xm_rows_form f = xm_form_of(XM_FORM_BYTES, &weight->device->host, XM_F16);
            EXPECT_EQ(f.factor, 32u);
            f.factor = factor;
            std::vector<float> values = random_floats(rows * cols, 7);
            for (size_t i = 0; i < values.size(); i++)
                values[i] *= (float)(1 + i / 32 % 5) * 8;
            std::fill(values.begin() + 32, values.begin() + 64, 0.0f);
            tensor x(XM_F16, {(int64_t)rows, (int64_t)cols}, values);
            const std::vector<int64_t> got = prepared(*weight, f, x, rows);
            const std::vector<float> want = x.rounded();
            for (uint64_t r = 0; r < rows; r++) {
                const prepared_row row =
                    take_bytes_apart(got, r * xm_prepared_words(&f, cols), cols);
                for (uint64_t k = 0; k < cols; k++) {
                    const uint64_t first = k / factor * factor,
                                   end = std::min<uint64_t>(first + factor, cols);
                    float largest = 0;
                    for (uint64_t i = first; i < end; i++)
                        largest = std::fmax(largest, std::fabs(want[r * cols + i]));
                    const float x_k = want[r * cols + k];
                    ASSERT_NEAR(row.x[k], x_k, largest / 254 * 1.00001f)
                        << "row " << r << " k " << k;
                    if (std::fabs(x_k) == largest) {
                        ASSERT_NEAR(row.x[k], x_k, largest * 1e-6f);
                    }
                }
            }
        }
    }
}

/* NaN makes all elements that share its scale NaN, and no others. */
TEST_F(Form, BytesOfNoNumberAreNone)
{
    test_weight w(1, 8, 128, {XM_U4, 32, true}, 1);
    if (!is_cpu())
        GTEST_SKIP() << "rows are prepared for CPU devices";
    const xm_rows_form f = xm_form_of(XM_FORM_BYTES, &w.device->host, XM_F16);
    for (float wrong : {INFINITY, -INFINITY, NAN}) {
        std::vector<float> values(128, 1.0f);
        values[40] = wrong;
        tensor x(XM_F16, {1, 128}, values);
        const prepared_row row = take_bytes_apart(prepared(w, f, x, 1), 0, 128, false);
        for (uint64_t k = 0; k < 128; k++)
            EXPECT_EQ(std::isnan(row.x[k]), k / 32 == 1) << k;
    }
}

TEST_F(Form, ANormWritesTheRowsThatPreparingItsResultGives)
{
    if (!is_cpu())
        GTEST_SKIP() << "rows are prepared for CPU devices";
    for (uint64_t rows : {1, 4}) {
        for_formats(XM_F16, [&](test_weight &w, const xm_rows_form &f) {
            const uint64_t cols = w.device->host.cols;
            tensor x(XM_F32, {(int64_t)rows, (int64_t)cols},
                     random_floats(rows * cols, 3));
            tensor y(XM_F16, {(int64_t)rows, (int64_t)cols}), out = words(f, cols, rows);
            xm_rms_norm_desc desc = {nullptr, 1e-6f, XM_F32, XM_F16, f};
            primitive_ptr norm;
            ASSERT_XM_OK(xm_rms_norm_create(engine, &desc, &norm.p, &err));
            ASSERT_TRUE(xm_rms_norm_emits(norm.p));
            const xm_operand o[XM_RMS_NORM_N_OPERANDS] = {x.operand(), out.operand(),
                                                          y.operand()};
            ASSERT_XM_OK(xm_primitive_run(norm.p, o, &run, &err));
            EXPECT_EQ(out.read_ints(), prepared(w, f, y, rows));
        });
    }
}

/* One result for a reader of f16 rows, and one for a reader of f32 rows with another format. */
TEST_F(Form, ARowChainWritesEachResultForItsReader)
{
    const int64_t rows = 2, cols = 256;
    if (!is_cpu())
        GTEST_SKIP() << "rows are prepared for CPU devices";
    test_weight experts(1, 8, cols, {XM_U4, 64, true}, 1);
    test_weight router(1, 8, cols, {XM_I8, 32, false}, 2);
    xm_row_chain_desc desc = {};
    ASSERT_XM_OK(xm_row_chain_parse(
        "rms_norm x0 _ 1e-06; out add x0 s0; out multiply s0 s1", &desc.chain, &err));
    ASSERT_EQ(desc.chain.n_y, 2u);
    desc.n = cols;
    desc.x[0] = XM_F32;
    desc.y[0] = XM_F16;
    desc.y[1] = XM_F32;
    desc.prepared[0] = xm_form_of(XM_FORM_SHORTS, &experts.device->host, XM_F16);
    desc.prepared[1] = xm_form_of(XM_FORM_PLANES, &router.device->host, XM_F16);
    primitive_ptr chain;
    ASSERT_XM_OK(xm_row_chain_create(engine, &desc, &chain.p, &err));
    ASSERT_TRUE(xm_row_chain_emits(chain.p, 0));
    ASSERT_TRUE(xm_row_chain_emits(chain.p, 1));
    EXPECT_FALSE(xm_row_chain_emits(chain.p, 2));
    tensor x(XM_F32, {rows, cols}, random_floats(rows * cols, 5));
    tensor y0(XM_F16, {rows, cols}), y1(XM_F32, {rows, cols});
    tensor p0 = words(desc.prepared[0], cols, rows);
    tensor p1 = words(desc.prepared[1], cols, rows);
    xm_operand o[XM_ROW_CHAIN_N_OPERANDS] = {};
    o[XM_ROW_CHAIN_X] = x.operand();
    o[XM_ROW_CHAIN_Y] = y0.operand();
    o[XM_ROW_CHAIN_Y + 1] = y1.operand();
    o[XM_ROW_CHAIN_PREPARED] = p0.operand();
    o[XM_ROW_CHAIN_PREPARED + 1] = p1.operand();
    ASSERT_XM_OK(xm_primitive_run(chain.p, o, &run, &err));
    EXPECT_EQ(p0.read_ints(), prepared(experts, desc.prepared[0], y0, rows));
    EXPECT_EQ(p1.read_ints(), prepared(router, desc.prepared[1], y1, rows));
}

/* The value has no room for more rows than a reader takes: they are not prepared. */
TEST_F(Form, MoreRowsThanAReaderTakesAreNotWritten)
{
    const int64_t rows = XM_FEW_TOKENS + 1, cols = 256;
    test_weight w(1, 8, cols, {XM_U4, 64, true}, 1);
    const xm_rows_form f = xm_form_of(XM_FORM_PLANES, &w.device->host, XM_F16);
    tensor x(XM_F32, {rows, cols}, random_floats(rows * cols, 3));
    tensor y(XM_F32, {rows, cols}), out = words(f, cols, XM_FEW_TOKENS);
    xm_rms_norm_desc desc = {nullptr, 1e-6f, XM_F32, XM_F32, f};
    primitive_ptr norm;
    ASSERT_XM_OK(xm_rms_norm_create(engine, &desc, &norm.p, &err));
    const xm_operand o[XM_RMS_NORM_N_OPERANDS] = {x.operand(), out.operand(),
                                                  y.operand()};
    ASSERT_XM_OK(xm_primitive_run(norm.p, o, &run, &err));
    for (int64_t word : out.read_ints())
        ASSERT_EQ(word, -1);
}

class Reader : public Form
{
  protected:
    /* Returns y of `rows` rows. The plain x is NaN, and the prepared rows come from another x. */
    std::vector<float> multiply(test_weight &w, uint32_t factor, xm_rows_form said,
                                tensor &x, const xm_operand &prepared, int64_t rows)
    {
        tensor y(XM_F32, {rows, (int64_t)w.device->host.rows});
        xm_linear_desc desc = {};
        desc.src = XM_F16;
        desc.dst = XM_F32;
        desc.n = 1;
        desc.segment[0].weight = w.device;
        desc.factor = factor;
        desc.prepared = said;
        primitive_ptr linear;
        EXPECT_EQ(xm_linear_create(engine, &desc, &linear.p, &err), XM_OK) << err.text;
        xm_operand o[XM_LINEAR_N_OPERANDS] = {};
        o[XM_LINEAR_X] = x.operand();
        o[XM_LINEAR_X].dim[0] = rows; /* only the first rows */
        o[XM_LINEAR_Y] = y.operand();
        o[XM_LINEAR_PREPARED] = prepared;
        uint64_t bytes = 0;
        xm_run r = run;
        EXPECT_EQ(xm_primitive_plan(linear.p, o, nullptr, &bytes, &err), XM_OK);
        EXPECT_EQ(xm_buffer_create(engine, XM_USE_DEVICE, bytes + 1, &r.scratch, &err),
                  XM_OK);
        EXPECT_EQ(xm_primitive_run(linear.p, o, &r, &err), XM_OK) << err.text;
        std::vector<float> got = y.read();
        xm_buffer_unref(r.scratch);
        return got;
    }
};

/* The form is checked for every format and scale group. A quarter of these pairs is multiplied,
 * because each builds kernels. */
TEST_F(Reader, TakesFewRowsOfItsFormAndNoOthers)
{
    const int64_t cols = 256, few = XM_FEW_TOKENS;
    const uint32_t factors[] = {0, 32, 128};
    std::vector<size_t> pairs(std::size(formats) * std::size(factors));
    std::iota(pairs.begin(), pairs.end(), 0);
    const std::vector<size_t> multiplied = sample::of(pairs, pairs.size() / 4);
    size_t pair = 0;
    std::set<xm_form> forms;
    if (!is_cpu())
        GTEST_SKIP() << "rows are prepared for CPU devices";
    for (const weight_format &format : formats) {
        for (uint32_t factor : factors) {
            SCOPED_TRACE(text_of(format) + " factor " + std::to_string(factor));
            test_weight w(1, 24, cols, format, 1);
            const xm_rows_form f =
                xm_linear_reads(engine, &w.device->host, XM_F16, factor);
            forms.insert(f.form);
            ASSERT_TRUE(xm_rows_are_prepared(&f));
            ASSERT_EQ(f.factor, f.form == XM_FORM_BYTES ? factor : 0);
            if (!std::binary_search(multiplied.begin(), multiplied.end(), pair++))
                continue;
            tensor x(XM_F16, {few + 1, cols}, random_floats((few + 1) * cols, 3));
            tensor nan(XM_F16, {few + 1, cols});
            tensor out(XM_I32, {few, (int64_t)xm_prepared_words(&f, cols)},
                       prepared(w, f, x, few));
            const std::vector<float> want = multiply(w, factor, {}, x, {}, few);
            EXPECT_EQ(multiply(w, factor, f, nan, out.operand(), few), want);
            xm_rows_form other_sums = f, other_factor = f;
            other_sums.group += 32;
            other_factor.factor += 32;
            for (const xm_rows_form &other : {other_sums, other_factor})
                EXPECT_TRUE(
                    std::isnan(multiply(w, factor, other, nan, out.operand(), few)[0]));
            EXPECT_TRUE(
                std::isnan(multiply(w, factor, f, nan, out.operand(), few + 1)[0]));
        }
    }
    EXPECT_TRUE(forms.count(XM_FORM_PLANES));
    EXPECT_EQ(forms.count(XM_FORM_BYTES), forms.count(XM_FORM_SHORTS));
}

/* Float weights are multiplied by f32 rows. */
TEST_F(Reader, ReadsPlainRowsWhereTheyLieAsItWants)
{
    test_weight w(1, 24, 256, {XM_F32, 0, false}, 1),
        odd(1, 24, 100, {XM_F32, 0, false}, 1);
    const xm_rows_form plain = xm_linear_reads(engine, &w.device->host, XM_F32, 0);
    EXPECT_FALSE(xm_rows_are_prepared(&plain));
    if (!is_cpu())
        return;
    const xm_rows_form halves = xm_linear_reads(engine, &w.device->host, XM_F16, 0);
    const xm_rows_form padded = xm_linear_reads(engine, &odd.device->host, XM_F32, 0);
    EXPECT_TRUE(xm_rows_are_prepared(&halves));
    EXPECT_TRUE(xm_rows_are_prepared(&padded));
}

TEST(FormParts, AreWholeBlocksAndGroups)
{
    xm_rows_form f = {XM_FORM_PLANES, 8, 32};
    EXPECT_EQ(xm_prepared_part(&f, 1), 128u);
    f.group = 0;
    EXPECT_EQ(xm_prepared_part(&f, 1), 128u);
    f.group = 256;
    EXPECT_EQ(xm_prepared_part(&f, 1), 256u);
    f.group = 96;
    EXPECT_EQ(xm_prepared_part(&f, 1), 384u);
    f.planes = 1;
    EXPECT_EQ(xm_prepared_part(&f, 1), 96u);
    EXPECT_EQ(xm_prepared_part(&f, 64), 192u);
    f = {XM_FORM_PLANES, 8, 0};
    EXPECT_EQ(xm_prepared_part(&f, 96), 384u);
}

/* short_gemm.h reads rows in pairs, so that the last odd row needs a neighbour. */
TEST(FormBytes, PairsOfRowsAreWhole)
{
    const xm_rows_form pairs = {XM_FORM_SHORT_PAIRS, 8, 0};
    EXPECT_EQ(xm_form_bytes(&pairs, 256, 5), xm_form_bytes(&pairs, 256, 6));
    EXPECT_LT(xm_form_bytes(&pairs, 256, 4), xm_form_bytes(&pairs, 256, 5));
    const xm_rows_form rows = {XM_FORM_SHORTS, 8, 64};
    EXPECT_LT(xm_form_bytes(&rows, 256, 5), xm_form_bytes(&rows, 256, 6));
}

TEST_F(Form, ServesAReaderOfTheSameFormFewRowsAndWithRoom)
{
    const xm_rows_form f = {XM_FORM_PLANES, 8, 64}, other = {XM_FORM_PLANES, 8, 32},
                       shorts = {XM_FORM_SHORTS, 8, 64}, planes = {XM_FORM_PLANES, 4, 64},
                       pairs = {XM_FORM_SHORT_PAIRS, 8, 0};
    tensor four = words(f, 256, XM_FEW_TOKENS), two = words(f, 256, 2);
    const xm_operand o = four.operand(), none = {};
    EXPECT_TRUE(xm_prepared_serves(&f, &f, 256, XM_FEW_TOKENS, four.buffer()));
    EXPECT_FALSE(xm_prepared_serves(&f, &f, 256, XM_FEW_TOKENS + 1, four.buffer()));
    EXPECT_FALSE(xm_prepared_serves(&f, &f, 256, 3, two.buffer()));
    EXPECT_FALSE(xm_prepared_serves(&f, &f, 256, 1, nullptr));
    for (const xm_rows_form &wrong : {other, shorts, planes})
        EXPECT_FALSE(xm_prepared_serves(&f, &wrong, 256, 1, four.buffer()));
    EXPECT_FALSE(xm_prepared_serves(&pairs, &pairs, 256, 1, four.buffer()));
    EXPECT_EQ(xm_prepared_target(&f, &o, 256, XM_FEW_TOKENS), four.buffer());
    EXPECT_EQ(xm_prepared_target(&f, &o, 256, XM_FEW_TOKENS + 1), nullptr);
    EXPECT_EQ(xm_prepared_target(&f, &o, 512, XM_FEW_TOKENS), nullptr);
    EXPECT_EQ(xm_prepared_target(&f, &none, 256, 1), nullptr);
}

} // namespace
