/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of few tokens on matrix engines: the stored integers of weights times activations in
 * 8-bit integers.
 */
#include "unit_tests/primitives/matrix_engine_fixture.h"

namespace
{

/* Engines that multiply stored integers: matrix engines with both sub-group sizes, and dot
 * products of four bytes. */
struct rows_engine {
    uint32_t lanes;
    const char *defines;
};
const std::vector<rows_engine> rows_engines = {{8, ""}, {16, ""}, {8, " -DDP4A=1"}};

class MatrixRows : public MatrixEngine
{
  protected:
    /* Multiplies few tokens: stored integers times two rows of bytes for each token. Results are
     * f32, so that the rounding of x shows. */
    void check_rows(const std::vector<weight_format> &all, const rows_engine &engine_of,
                    uint32_t split, uint64_t n, uint64_t k, uint64_t tokens)
    {
        static const char *const ws[] = {"w0", "w1", "w2"},
                                 *const biases[] = {"bias0", "bias1", "bias2"},
                                 *const ys[] = {"y0", "y1", "y2"},
                                 *const rows[] = {"rows0", "rows1", "rows2"};
        SCOPED_TRACE(text_of(all[0]) + " SG=" + std::to_string(engine_of.lanes) +
                     engine_of.defines + " SPLIT=" + std::to_string(split) +
                     " N=" + std::to_string(n) + " K=" + std::to_string(k) +
                     " T=" + std::to_string(tokens));
        std::vector<std::unique_ptr<test_weight>> w;
        std::vector<std::unique_ptr<tensor>> y;
        tensor x(XM_F16, {(int64_t)tokens, (int64_t)k}, random_floats(tokens * k, 1));
        tensor bias(XM_F32, {(int64_t)n}, random_floats(n, 2));
        xm_kernel_weights read = {};
        xm_counts counts = {};
        xm_args a = {};
        for (size_t i = 0; i < all.size(); i++) {
            w.push_back(std::make_unique<test_weight>(1, n, k, all[i], 7 + i));
            y.push_back(std::make_unique<tensor>(
                XM_F32, std::vector<int64_t>{(int64_t)tokens, (int64_t)n}));
            ASSERT_STREQ(xm_matrix_rows_refuse(&w[i]->host, XM_F16), nullptr);
            read.w[read.n++] = &w[i]->host;
            xm_put_weight(&a, ws[i], w[i]->device);
            xm_put_buffer(&a, biases[i], bias.buffer());
            xm_put_buffer(&a, ys[i], y[i]->buffer());
            xm_put_uint(&a, rows[i], n);
            counts.part[counts.n_parts++] = n;
        }
        xm_put_buffer(&a, "x", x.buffer());
        xm_put_buffer(&a, "other", nullptr);
        xm_put_uint(&a, "other_step", n);
        xm_put_uint(&a, "other_first", 0);
        xm_put_uint(&a, "k_count", k);
        const xm_launch_shape shape = {XM_LANES,
                                       (uint16_t)engine_of.lanes,
                                       {XM_ROWS, XM_INTEGER_ROWS, XM_FIXED},
                                       {XM_TOKENS, 1, XM_FIXED},
                                       {},
                                       (uint16_t)split};
        counts.n[XM_ROWS] = n * all.size();
        counts.n[XM_TOKENS] = tokens;
        xm_kernel *kernel = nullptr;
        ASSERT_XM_OK(xm_weight_kernel(engine, "linear_gemv_dpas", read, &kernel, &err,
                                      "-DSRC=f16 -DDST=f32 -DSEGMENTS=%zu -DSG=%u "
                                      "-DSPLIT=%u%s -cl-opt-disable",
                                      all.size(), engine_of.lanes, split,
                                      engine_of.defines));
        ASSERT_XM_OK(xm_launch(&shape, kernel, &counts, &a, queue, &err));
        for (size_t i = 0; i < all.size(); i++) {
            std::vector<float> want(y[i]->size());
            ASSERT_EQ(xm_ref_linear(x.rounded().data(), tokens, &w[i]->host, 0,
                                    bias.rounded().data(), want.data()),
                      XM_OK);
            expect_exact_to_bytes(w[i]->host, want, y[i]->read());
        }
    }

    /* x of at most 1 has two bytes and loses at most half of 1/32639. The tolerance is six
     * standard deviations of the sum of these independent errors times the row's numbers. */
    static void expect_exact_to_bytes(const xm_weight &w, const std::vector<float> &want,
                                      const std::vector<float> &got)
    {
        const double loss = 0.5 / 32639 / std::sqrt(3.0);
        std::vector<float> row(w.cols);
        for (uint64_t n = 0; n < w.rows; n++) {
            double norm = 0;
            xm_weight_row(&w, 0, n, row.data());
            for (float v : row)
                norm += (double)v * v;
            for (uint64_t i = n; i < want.size(); i += w.rows)
                ASSERT_NEAR(got[i], want[i], 6 * loss * std::sqrt(norm)) << "row " << n;
        }
    }
};

/* Formats whose stored integers matrix engines take, and where a row may end: after steps of 32
 * columns, groups, pairs of blocks. */
const std::vector<format_case> rows_cases = {
    {{XM_U4, 128, true}, 384},
    {{XM_U4, 64, true, XM_F32, false, true}, 448},
    {{XM_U4, 32, true, XM_F16, true}, 352},
    {view_of({XM_U4, UINT64_MAX, true}), 352},
    {{XM_I4, 32, false}, 96},
    {view_of({XM_I4, 128, false, XM_BF16}), 256},
    {{XM_U8, 64, true}, 320},
    {{XM_I8, UINT64_MAX, false, XM_F32}, 544},
    {view_of({XM_I8, 32, false, XM_F16, true}), 160},
    {{XM_F4E2M1, 32, false, XM_F8E8M0}, 352},
    {view_of({XM_F4E2M1, 64, false, XM_F16, false, true}), 192},
    {with_factors({XM_F4E2M1, 32, false, XM_F8E4M3}), 96},
    {blocks_of(XM_WEIGHT_Q4_0), 320},
    {blocks_of(XM_WEIGHT_Q4_0), 64},
    {blocks_of(XM_WEIGHT_Q4_1), 320},
    {blocks_of(XM_WEIGHT_Q5_0), 320},
    {blocks_of(XM_WEIGHT_Q5_1), 192},
    {blocks_of(XM_WEIGHT_Q8_0), 320},
    {blocks_of(XM_WEIGHT_Q4_K), 768},
    {view_of(with_factors(blocks_of(XM_WEIGHT_Q4_K))), 256},
    {blocks_of(XM_WEIGHT_Q2_K), 512},
    {blocks_of(XM_WEIGHT_Q3_K), 768},
    {view_of(blocks_of(XM_WEIGHT_Q3_K)), 256},
    {blocks_of(XM_WEIGHT_Q5_K), 512},
    {blocks_of(XM_WEIGHT_MXFP4), 192},
    {blocks_of(XM_WEIGHT_MXFP4), 256},
    {blocks_of(XM_WEIGHT_NVFP4), 320},
    {view_of(blocks_of(XM_WEIGHT_NVFP4)), 128},
    {blocks_of(XM_WEIGHT_IQ4_NL), 192},
    {blocks_of(XM_WEIGHT_IQ4_XS), 512},
    {blocks_of(XM_WEIGHT_Q6_K), 768},
    {view_of(blocks_of(XM_WEIGHT_Q6_K)), 512},
};

TEST_F(MatrixRows, StoredIntegersMeetBytesInEveryFormat)
{
    for (const format_case &c : rows_cases) {
        for (const rows_engine &e : sample::of(rows_engines, 1))
            check_rows({c.format}, e, 4, 40, c.k, 2);
    }
}

TEST_F(MatrixRows, StoredIntegersMayBeOfTwoFormats)
{
    const weight_format q4_k = blocks_of(XM_WEIGHT_Q4_K),
                        q6_k = blocks_of(XM_WEIGHT_Q6_K);
    const rows_engine e = sample::of(rows_engines, 1)[0];
    check_rows({q4_k, q6_k}, e, 4, 40, 512, 1);
    check_rows({q6_k, q4_k}, e, 4, 33, 256, 2);
    check_rows({blocks_of(XM_WEIGHT_IQ4_XS), q6_k}, e, 8, 33, 256, 1);
    check_rows({blocks_of(XM_WEIGHT_Q5_0), blocks_of(XM_WEIGHT_NVFP4)}, e, 4, 40, 192, 1);
    check_rows({q6_k, q4_k, q4_k}, e, 4, 40, 256, 1);
}

TEST_F(MatrixRows, ThreeWeightsOfElementsAreMultipliedInOneLaunch)
{
    const weight_format u4 = {XM_U4, 32, true};
    for (const rows_engine &e : sample::of(rows_engines, 1))
        check_rows({u4, u4, u4}, e, 4, 40, 96, 2);
}

TEST_F(MatrixRows, StoredIntegersOfOtherPlacesAreRefused)
{
    const struct {
        weight_format format;
        uint64_t k;
        xm_element src;
    } cases[] = {
        {{XM_U4, 128, true}, 256, XM_F32},
        {{XM_U4, 16, true}, 64, XM_F16},
        {{XM_F16, 0, false}, 64, XM_F16},
        {{XM_NF4, 32, false}, 64, XM_F16},
        {{XM_F4E2M1, 16, false}, 64, XM_F16},
        {codebook_of({XM_U4, 32, false}), 64, XM_F16},
        {blocks_of(XM_WEIGHT_Q4_0), 96, XM_F16},
        {blocks_of(XM_WEIGHT_Q5_1), 32, XM_F16},
        {view_of(blocks_of(XM_WEIGHT_Q8_0)), 64,
         XM_F16}, /* begins with the second block */
        {blocks_of(XM_WEIGHT_IQ1_S), 256, XM_F16},
    };
    for (const auto &c : cases) {
        test_weight w(1, 8, c.k, c.format, 1);
        EXPECT_NE(xm_matrix_rows_refuse(&w.host, c.src), nullptr) << text_of(c.format);
    }
}

TEST_F(MatrixRows, RowsOfLanesMayBeOfAnyNumber)
{
    for (const rows_engine &e : rows_engines) {
        for (uint64_t n : sample::of<uint64_t>({1, 31, 32, 33, 65}, 2))
            check_rows({rows_cases[0].format}, e, 8, n, 128, 1);
    }
}

} // namespace
