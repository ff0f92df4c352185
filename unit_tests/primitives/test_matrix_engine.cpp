/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of many tokens on matrix engines: tiles of tokens times rows of weights converted to
 * f16, for linear layers and experts.
 */
#include <algorithm>

#include "primitives/moe/experts.h"
#include "primitives/tables.h"
#include "unit_tests/primitives/matrix_engine_fixture.h"

namespace
{

/* Many tokens: weights converted to f16 times tiles of tokens. */
class MatrixTiles : public MatrixEngine
{
  protected:
    /* Returns the inner size of the experts: one super-block for elements and large blocks; less,
     * in whole blocks, for small ones; an odd number of blocks where a row may end within a pair.
     */
    static uint64_t inter_of(const weight_format &down)
    {
        return !down.blocks                                      ? 128
               : down.blocks == XM_WEIGHT_Q4_1                   ? 160
               : xm_weight_formats[down.blocks].block_cols == 32 ? 192
                                                                 : 256;
    }

    /* Returns the number of f16 elements in `tiles` tiles of activations for a weight. */
    static int64_t halves_of(const xm_weight &w, uint64_t tiles)
    {
        const xm_rows_form f = xm_form_of(XM_FORM_STEPS, &w, XM_F16);
        return (int64_t)(xm_form_bytes(&f, w.cols, tiles * XM_TILE) / 2);
    }

    /* Returns the defines for the column order of a kernel's tiles, prefixed with `name`. */
    static std::string steps_of(const xm_weight &w, const char *name)
    {
        const xm_rows_form f = xm_form_of(XM_FORM_STEPS, &w, XM_F16);
        char defines[64];
        xm_form_defines(&f, name, defines, sizeof(defines));
        return defines;
    }

    void launch(const xm_args &a, xm_kernel *k, const xm_launch_shape &shape,
                const xm_counts &counts)
    {
        ASSERT_XM_OK(xm_launch(&shape, k, &counts, &a, queue, &err));
    }

    /* Runs a kernel on x by y sub-groups of `lanes`, or on work-groups of `shares` sub-groups. */
    void go(const xm_args &a, xm_kernel *k, uint32_t lanes, uint32_t shares, uint64_t x,
            uint64_t y)
    {
        const xm_launch_shape shape = {XM_LANES,
                                       (uint16_t)lanes,
                                       {XM_ROWS, 1, XM_FIXED},
                                       {XM_TOKENS, 1, XM_FIXED},
                                       {},
                                       (uint16_t)(shares > 1 ? shares : 0)};
        xm_counts counts = {};
        counts.n[XM_ROWS] = x;
        counts.n[XM_TOKENS] = y;
        ASSERT_XM_OK(xm_launch(&shape, k, &counts, &a, queue, &err));
    }

    static uint64_t blocks(uint64_t n, uint64_t block)
    {
        return (n + block - 1) / block;
    }

    /* Returns by how much numbers converted to f16 are larger than the weights, from which
     * minimums are subtracted later. Numbers of Q6_K above 2048 are rounded once more. */
    static double size_of_numbers(const xm_weight &w)
    {
        switch (w.format) {
        case XM_WEIGHT_Q4_1:
        case XM_WEIGHT_Q5_1:
        case XM_WEIGHT_Q2_K:
        case XM_WEIGHT_Q4_K:
        case XM_WEIGHT_Q5_K:
            return 2;
        case XM_WEIGHT_Q6_K:
            return std::sqrt(2.0);
        default:
            return 1;
        }
    }

    /* Returns whether numbers are rounded in the conversion to f16: because of f16 scales, or of
     * zero points that are not integers. */
    static bool is_rounded(const xm_weight &w)
    {
        return xm_weight_is_blocks(&w) ||
               (xm_weight_is_quantised(&w) &&
                (w.scale_element == XM_F16 ||
                 (w.zero_point.p && xm_element_is_float(w.zero_point_element))));
    }

    /* Compares sums with the expected error. Numbers lose at most half of 1/2048 in f16, with
     * independent errors; x and sums of x lose nothing. An f32 sum loses 2^-24 of its value at
     * each step of 16 columns; with minimums this is at most eight times the deviation of the
     * numbers. The tolerance is six times these deviations, for x of at most 1 + shift. */
    static void expect_sums(const xm_weight &w, const std::vector<float> &want,
                            const std::vector<float> &got, float shift)
    {
        const double of_halves =
            is_rounded(w) ? size_of_numbers(w) * 0.5 / 2048 / std::sqrt(3.0) : 0.0;
        const double of_floats = std::pow(2.0, -24) * 8 * std::sqrt((double)w.cols / 16);
        const double loss = 6 * (of_halves + of_floats) * (1 + shift);
        std::vector<float> row(w.cols);
        for (uint64_t n = 0; n < w.rows; n++) {
            double norm = 0;
            xm_weight_row(&w, 0, n, row.data());
            for (float v : row)
                norm += (double)v * v;
            for (uint64_t i = n; i < want.size(); i += w.rows)
                ASSERT_NEAR(got[i], want[i], loss * std::sqrt(norm)) << "row " << n;
        }
    }

    /* Packs x into tiles, multiplies a weight by them and compares. */
    void check_linear(const weight_format &f, uint32_t lanes, uint64_t n, uint64_t k,
                      uint64_t tokens, float shift = 0.0f,
                      const std::string &options = "", uint32_t shares = 1)
    {
        SCOPED_TRACE(text_of(f) + " SG=" + std::to_string(lanes) +
                     " N=" + std::to_string(n) + " K=" + std::to_string(k) + " T=" +
                     std::to_string(tokens) + " SHARES=" + std::to_string(shares));
        test_weight w(1, n, k, f, 7);
        ASSERT_STREQ(xm_matrix_refuses(&w.host, XM_F16), nullptr);
        std::vector<float> values = random_floats(tokens * k, 1);
        for (float &v : values)
            v += shift;
        tensor x(XM_F16, {(int64_t)tokens, (int64_t)k}, values);
        tensor bias(XM_F32, {(int64_t)n}, random_floats(n, 2));
        const xm_rows_form form = xm_form_of(XM_FORM_STEPS, &w.host, XM_F16);
        const uint64_t bytes = xm_form_bytes(&form, k, tokens);
        tensor tiles(XM_F16, {(int64_t)(bytes / 2)});
        tensor y(XM_F32, {(int64_t)tokens, (int64_t)n});

        const std::string sg = " -DSG=" + std::to_string(lanes);
        xm_kernel *pack = kernel("linear_pack_dpas", w, steps_of(w.host, "FORM") + sg);
        ASSERT_XM_OK(xm_form_make(XM_FORM_STEPS, pack, &w.host, x.buffer(), tokens,
                                  tiles.buffer(), queue, &err));
        xm_args gemm = {};
        xm_put_weight(&gemm, "w", w.device);
        xm_put_buffer(&gemm, "x", tiles.buffer());
        xm_put_buffer(&gemm, "bias", bias.buffer());
        xm_put_buffer(&gemm, "y", y.buffer());
        xm_put_uint(&gemm, "n_count", n);
        xm_put_uint(&gemm, "k_count", k);
        xm_put_uint(&gemm, "t_count", tokens);
        go(gemm,
           kernel("linear_gemm_dpas", w,
                  "-DDST=f32 -DSHARES=" + std::to_string(shares) + sg + options),
           lanes, shares, blocks(n, XM_MATRIX_ROWS * lanes),
           blocks(tokens, shares * XM_MATRIX_TOKENS));

        std::vector<float> want(y.size());
        ASSERT_EQ(xm_ref_linear(x.rounded().data(), tokens, &w.host, 0,
                                bias.rounded().data(), want.data()),
                  XM_OK);
        tiles.read(); /* checks the guard bytes */
        expect_sums(w.host, want, y.read(), shift);
    }

    /* Tokens that chose the experts 0, 2, 2, ...: their places in tiles as moe_sort gives them. */
    struct sorted {
        std::vector<int64_t> first_tile, tile_expert, source;
        std::vector<int32_t> ids;
        std::vector<float> ones;
    };
    static sorted sort(const std::vector<uint64_t> &tokens_of, uint64_t max_tiles)
    {
        sorted s;
        for (size_t e = 0; e < tokens_of.size(); e++) {
            s.first_tile.push_back((int64_t)s.tile_expert.size());
            for (uint64_t i = 0; i < blocks(tokens_of[e], 16) * 16; i++) {
                bool is_token = i < tokens_of[e];
                s.source.push_back(is_token ? (int64_t)s.ids.size() : -1);
                if (is_token)
                    s.ids.push_back((int32_t)e);
                if (i % 16 == 0)
                    s.tile_expert.push_back((int64_t)e);
            }
        }
        s.first_tile.push_back((int64_t)s.tile_expert.size());
        s.tile_expert.resize(max_tiles, -1);
        s.source.resize(max_tiles * 16, -1);
        s.ones.assign(s.ids.size(), 1.0f);
        return s;
    }

    /* The weights and operands of experts; each token has one expert. */
    struct experts_layer {
        experts_layer(const weight_format &gate_format, const weight_format &up_format,
                      const weight_format &down_format, uint32_t n_lanes,
                      xm_gate_up gate_up_form, const std::vector<uint64_t> &tokens_of,
                      uint32_t n_shares)
            : form(gate_up_form), lanes(n_lanes), shares(n_shares),
              hidden(gate_format.blocks != XM_WEIGHT_ELEMENTS ? 512 : 192),
              inter(inter_of(down_format)), experts(tokens_of.size()),
              places(sort(tokens_of, max_tiles)),
              gate(experts, gate_rows(), hidden, gate_format, 11),
              up(experts, inter, hidden, up_format, 12),
              down(experts, hidden, inter, down_format, 13)
        {
        }

        enum { max_tiles = 24 };
        const xm_gate_up form;
        const uint32_t lanes, shares;
        const uint64_t hidden, inter, experts;
        const sorted places;
        const bool clamped = form != XM_GATE_UP_APART;
        const bool interleaved =
            form == XM_GATE_UP_INTERLEAVED || form == XM_UP_GATE_INTERLEAVED;
        const uint32_t up_first =
            form == XM_UP_GATE_INTERLEAVED || form == XM_UP_GATE_STACKED;
        const uint64_t tokens = places.ids.size();
        test_weight gate, up, down;
        tensor x{
            XM_F16, {(int64_t)tokens, (int64_t)hidden}, random_floats(tokens *hidden, 1)};
        tensor bias_gate = floats(gate_rows(), 6), bias_up = floats(inter, 8),
               bias_down = floats(hidden, 7), factor = floats(inter, 9);
        tensor first_tile{XM_I32, {(int64_t)experts + 1}, places.first_tile};
        tensor tile_expert{XM_I32, {(int64_t)max_tiles}, places.tile_expert};
        tensor source{XM_I32, {(int64_t)max_tiles * 16}, places.source};
        tensor tiles{XM_F16, {halves_of(gate.host, max_tiles)}};
        tensor h{XM_F16, {halves_of(down.host, max_tiles)}};
        tensor y{XM_F32, {(int64_t)(max_tiles * 16), (int64_t)hidden}};

        uint64_t gate_rows() const
        {
            return form != XM_GATE_UP_APART ? 2 * inter : inter;
        }
        tensor floats(uint64_t rows, unsigned seed) const
        {
            return tensor(XM_F32, {(int64_t)(experts * rows)},
                          random_floats(experts * rows, seed));
        }
        std::string sub_group() const
        {
            return "-DSG=" + std::to_string(lanes) +
                   " -DSHARES=" + std::to_string(shares);
        }
        xm_launch_shape gate_up_shape() const
        {
            const auto rows = (uint16_t)(XM_MATRIX_SPLIT * lanes);
            xm_launch_shape s = {
                XM_LANES, (uint16_t)lanes, {XM_ROWS, rows}, {XM_SLOTS, XM_TILE},
                {},       XM_MATRIX_SPLIT};
            if (shares > 1) {
                s.x.per = XM_MATRIX_SUM_COLS;
                s.split = (uint16_t)shares;
            }
            return s;
        }
        /* Sets the arguments with the places of the sorted rows in tiles, which every kernel
         * reads. */
        void put_places(xm_args *args)
        {
            xm_put_buffer(args, "tile_expert", tile_expert.buffer());
            xm_put_buffer(args, "source", source.buffer());
        }
    };

    void gather(experts_layer &l)
    {
        xm_args args = {};
        xm_put_buffer(&args, "x", l.x.buffer());
        l.put_places(&args);
        xm_put_buffer(&args, "rows", l.tiles.buffer());
        xm_put_uint(&args, "k_count", l.hidden);
        xm_put_uint(&args, "top_k", 1);
        launch(args,
               kernel("moe_gather_dpas", l.gate,
                      steps_of(l.gate.host, "FORM") + " " + l.sub_group()),
               {XM_GROUP,
                XM_STEPS_ITEMS,
                {XM_COLS, XM_SUPER_COLS},
                {XM_SLOTS, XM_STEPS_TOKENS},
                {}},
               xm_counts_of(&l.gate.host, l.max_tiles * 16));
    }

    /* Sets the views of gate and up within the weight that holds both. */
    static void cut_gate_up(const experts_layer &l, xm_weight halves[2])
    {
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t at = i ^ l.up_first;
            ASSERT_STREQ(l.interleaved
                             ? xm_weight_alternate_rows(&halves[i], at)
                             : xm_weight_slice_rows(&halves[i], at * l.inter, l.inter),
                         nullptr);
        }
    }

    static xm_args gate_up_args(experts_layer &l)
    {
        xm_args args = {};
        const uint32_t second = l.interleaved ? 1 : (uint32_t)l.inter;
        xm_weight halves[2] = {l.gate.host, l.clamped ? l.gate.host : l.up.host};
        if (l.clamped)
            cut_gate_up(l, halves);
        xm_put_view(&args, "gate", l.gate.device, &halves[0]);
        xm_put_view(&args, "up", l.clamped ? l.gate.device : l.up.device, &halves[1]);
        xm_put_buffer(&args, "bias_gate", l.bias_gate.buffer());
        xm_put_buffer(&args, "bias_up",
                      l.clamped ? l.bias_gate.buffer() : l.bias_up.buffer());
        xm_put_uint4(&args, "bias_steps", (uint32_t)l.gate_rows(), l.interleaved ? 2 : 1,
                     l.up_first ? second : 0, l.up_first || !l.clamped ? 0 : second);
        xm_put_buffer(&args, "factor", l.factor.buffer());
        xm_put_float(&args, "beta", l.clamped ? 1.702f : 1.0f);
        xm_put_float(&args, "limit", l.clamped ? 0.7f : 0.0f);
        xm_put_buffer(&args, "x", l.tiles.buffer());
        xm_put_buffer(&args, "first_tile", l.first_tile.buffer());
        l.put_places(&args);
        xm_put_buffer(&args, "h", l.h.buffer());
        xm_put_uint(&args, "i_count", l.inter);
        xm_put_uint(&args, "k_count", l.hidden);
        return args;
    }

    void multiply_gate_up(experts_layer &l)
    {
        xm_counts counts = xm_counts_of(&l.gate.host, l.max_tiles * 16);
        counts.n[XM_ROWS] = l.inter;
        const xm_rows_form h = xm_form_of(XM_FORM_STEPS, &l.down.host, XM_F16);
        launch(gate_up_args(l),
               kernel("moe_gemm_gate_up_dpas", l.gate, l.clamped ? l.gate : l.up,
                      "-DACT=0 -DCLAMPED=" + std::to_string(l.clamped) +
                          (l.clamped ? " -DUP_ADD=1065353216" : "") +
                          " -DBIASED=1 -DFACTORED=1 -DOUT_PLANES=" +
                          std::to_string(h.planes) +
                          " -DOUT_SUMS=" + std::to_string(h.group) + " " + l.sub_group()),
               l.gate_up_shape(), counts);
    }

    void multiply_down(experts_layer &l)
    {
        xm_args args = {};
        xm_put_weight(&args, "w", l.down.device);
        xm_put_buffer(&args, "h", l.h.buffer());
        xm_put_buffer(&args, "first_tile", l.first_tile.buffer());
        l.put_places(&args);
        xm_put_buffer(&args, "bias", l.bias_down.buffer());
        xm_put_buffer(&args, "y", l.y.buffer());
        xm_put_uint(&args, "n_count", l.hidden);
        xm_put_uint(&args, "k_count", l.inter);
        go(args, kernel("moe_gemm_down_dpas", l.down, l.sub_group()), l.lanes, l.shares,
           blocks(l.hidden, XM_MATRIX_ROWS * l.lanes), l.max_tiles);
    }

    static std::vector<float> reference_of(const experts_layer &l)
    {
        std::vector<float> want(l.tokens * l.hidden),
            rows = l.x.rounded(), bg = l.bias_gate.rounded(), bu = l.bias_up.rounded(),
            bd = l.bias_down.rounded(), f = l.factor.rounded();
        xm_moe_attr attr = {};
        attr.gate_up = l.form;
        attr.beta = l.clamped ? 1.702f : 1.0f;
        attr.limit = l.clamped ? 0.7f : 0.0f;
        attr.up_add = l.clamped ? 1.0f : 0.0f;
        const xm_moe_weights set = {
            &l.gate.host, l.clamped ? nullptr : &l.up.host, &l.down.host,
            bg.data(),    l.clamped ? nullptr : bu.data(),  bd.data(),
            f.data()};
        EXPECT_EQ(xm_ref_moe(&attr, &set, rows.data(), l.places.ones.data(),
                             l.places.ids.data(), l.tokens, 1, want.data()),
                  XM_OK);
        return want;
    }

    /* Returns the results of the tokens from their places in the tiles. The rest of the tiles
     * must be untouched. */
    static std::vector<float> result_of(experts_layer &l)
    {
        std::vector<float> got(l.tokens * l.hidden);
        const std::vector<float> placed = l.y.read();
        for (size_t p = 0; p < l.places.source.size(); p++) {
            const bool has_expert = l.places.tile_expert[p / XM_TILE] >= 0;
            EXPECT_TRUE(has_expert || std::isnan(placed[p * l.hidden])) << "place " << p;
            if (l.places.source[p] >= 0)
                std::copy_n(placed.begin() + (long)(p * l.hidden), l.hidden,
                            got.begin() + l.places.source[p] * (long)l.hidden);
        }
        return got;
    }

    /* Runs moe_gather, gate and up, and down, and compares; each token has one expert. */
    void check_experts(const weight_format &gate_format, const weight_format &up_format,
                       const weight_format &down_format, uint32_t lanes, xm_gate_up form,
                       const std::vector<uint64_t> &tokens_of, uint32_t shares = 1)
    {
        SCOPED_TRACE(text_of(gate_format) + ", " + text_of(down_format) +
                     " SG=" + std::to_string(lanes) + " " + xm_gate_up_text(form) +
                     " SHARES=" + std::to_string(shares));
        experts_layer l(gate_format, up_format, down_format, lanes, form, tokens_of,
                        shares);
        gather(l);
        multiply_gate_up(l);
        multiply_down(l);
        l.tiles.read(); /* checks the guard bytes */
        l.h.read();
        const double times =
            std::max({size_of_numbers(l.gate.host), size_of_numbers(l.up.host),
                      size_of_numbers(l.down.host)});
        EXPECT_TRUE(rows_within(result_of(l), reference_of(l), l.hidden,
                                times * tolerance_of(XM_F16).relative));
    }
    void check_experts(const weight_format &gate_format, const weight_format &down_format,
                       uint32_t lanes, xm_gate_up form,
                       const std::vector<uint64_t> &tokens_of)
    {
        check_experts(gate_format, gate_format, down_format, lanes, form, tokens_of);
    }
};

/* Formats with groups of one iteration of the kernel's loop, of several, of a part, and of other
 * sizes; rows that end within an iteration; each type of scales and zero points. */
const std::vector<format_case> element_cases = {
    {{XM_U4, 128, true}, 384},
    {{XM_U4, 32, true}, 352},
    {view_of({XM_U4, 32, true}), 160},
    {{XM_U4, 64, true, XM_F16, true}, 448},
    {{XM_U4, 96, true}, 288},
    {{XM_U4, 256, true}, 512},
    {{XM_U4, UINT64_MAX, true, XM_F32, false, true}, 384},
    {{XM_U4, 192, true, XM_F32}, 576},
    {view_of({XM_U4, UINT64_MAX, true}), 320},
    {with_zeros({XM_U4, 64, true}, XM_U8), 320},
    {with_zeros({XM_U4, 128, true}, XM_F16), 256},
    {with_zeros({XM_U4, 32, true, XM_F32}, XM_F16), 96},
    {{XM_I4, 64, false, XM_BF16}, 320},
    {{XM_I4, 32, true}, 224},
    {{XM_I4, UINT64_MAX, false}, 416},
    {{XM_U8, 32, true, XM_F16, true}, 352},
    {{XM_U8, 64, true}, 320},
    {view_of({XM_U8, 128, true}), 256},
    {with_zeros({XM_U8, 128, true}, XM_F32), 256},
    {{XM_I8, 128, false}, 512},
    {{XM_I8, 64, true}, 192},
    {with_zeros({XM_I8, 64, true}, XM_U4), 192},
    {{XM_I8, UINT64_MAX, false, XM_F32}, 544},
    {{XM_F16, 0, false}, 352},
};

TEST_F(MatrixTiles, LinearAgreesWithTheReference)
{
    for (const format_case &c : sample::of(element_cases, 8)) {
        for (uint32_t lanes : sample::of<uint32_t>({8, 16}, 1))
            check_linear(c.format, lanes, 40, c.k, 70);
    }
}

/* Every type, with both sub-group sizes. */
TEST_F(MatrixTiles, LinearTakesElementsByBothSizesOfSubGroup)
{
    for (uint32_t lanes : {8u, 16u}) {
        for (xm_element e : {XM_U4, XM_I4, XM_U8, XM_I8, XM_F16})
            check_linear({e, e == XM_F16 ? 0u : 32u, e == XM_U4 || e == XM_U8}, lanes, 40,
                         160, 20);
    }
}

TEST_F(MatrixTiles, LinearTakesAnyNumberOfRowsAndTokens)
{
    for (uint32_t lanes : sample::of<uint32_t>({8, 16}, 1)) {
        for (uint64_t n : sample::of<uint64_t>({1, 8, 15, 16, 33}, 3)) {
            for (uint64_t tokens : sample::of<uint64_t>({1, 8, 16, 64, 79}, 3))
                check_linear(element_cases[0].format, lanes, n, 128, tokens);
        }
    }
}

/* Block formats that matrix engines multiply as f16, and numbers of columns where a row may end. */
const std::vector<format_case> blocks_cases = {
    {blocks_of(XM_WEIGHT_Q4_0), 448},
    {with_factors(blocks_of(XM_WEIGHT_Q4_0)), 64},
    {blocks_of(XM_WEIGHT_Q8_0), 320},
    {blocks_of(XM_WEIGHT_MXFP4), 448},
    {blocks_of(XM_WEIGHT_MXFP4), 64},
    {blocks_of(XM_WEIGHT_Q5_0), 320},
    {blocks_of(XM_WEIGHT_Q4_1), 352},
    {view_of(blocks_of(XM_WEIGHT_Q4_1)), 32},
    {blocks_of(XM_WEIGHT_Q5_1), 288},
    {blocks_of(XM_WEIGHT_Q4_K), 512},
    {view_of(with_factors(blocks_of(XM_WEIGHT_Q4_K))), 256},
    {blocks_of(XM_WEIGHT_Q5_K), 512},
    {view_of(blocks_of(XM_WEIGHT_Q5_K)), 256},
    {blocks_of(XM_WEIGHT_Q6_K), 768},
    {view_of(blocks_of(XM_WEIGHT_Q6_K)), 512},
    {blocks_of(XM_WEIGHT_Q3_K), 768},
    {view_of(blocks_of(XM_WEIGHT_Q3_K)), 256},
    {blocks_of(XM_WEIGHT_Q2_K), 768},
    {view_of(with_factors(blocks_of(XM_WEIGHT_Q2_K))), 256},
    {blocks_of(XM_WEIGHT_NVFP4), 448},
    {view_of(blocks_of(XM_WEIGHT_NVFP4)), 64},
    {blocks_of(XM_WEIGHT_IQ4_NL), 448},
    {with_factors(blocks_of(XM_WEIGHT_IQ4_NL)), 64},
    {blocks_of(XM_WEIGHT_IQ4_XS), 768},
    {view_of(blocks_of(XM_WEIGHT_IQ4_XS)), 256},
    {blocks_of(XM_WEIGHT_Q1_0), 640},
    {view_of(blocks_of(XM_WEIGHT_Q1_0)), 128},
    {blocks_of(XM_WEIGHT_Q2_0), 448},
    {view_of(blocks_of(XM_WEIGHT_Q2_0)), 64},
    {blocks_of(XM_WEIGHT_TQ1_0), 768},
    {view_of(blocks_of(XM_WEIGHT_TQ1_0)), 256},
    {blocks_of(XM_WEIGHT_TQ2_0), 768},
    {view_of(blocks_of(XM_WEIGHT_TQ2_0)), 256},
    {blocks_of(XM_WEIGHT_IQ2_XXS), 768},
    {view_of(blocks_of(XM_WEIGHT_IQ2_XXS)), 256},
    {blocks_of(XM_WEIGHT_IQ2_XS), 768},
    {view_of(blocks_of(XM_WEIGHT_IQ2_XS)), 256},
    {blocks_of(XM_WEIGHT_IQ2_S), 768},
    {view_of(with_factors(blocks_of(XM_WEIGHT_IQ2_S))), 256},
    {blocks_of(XM_WEIGHT_IQ3_XXS), 768},
    {view_of(blocks_of(XM_WEIGHT_IQ3_XXS)), 256},
    {blocks_of(XM_WEIGHT_IQ3_S), 768},
    {view_of(blocks_of(XM_WEIGHT_IQ3_S)), 256},
    {blocks_of(XM_WEIGHT_IQ1_S), 768},
    {view_of(blocks_of(XM_WEIGHT_IQ1_S)), 256},
    {blocks_of(XM_WEIGHT_IQ1_M), 768},
    {view_of(blocks_of(XM_WEIGHT_IQ1_M)), 256},
};

TEST_F(MatrixTiles, BlocksMeetHalvesInEveryFormat)
{
    for (const format_case &c : sample::of(blocks_cases, 10)) {
        for (uint32_t lanes : sample::of<uint32_t>({8, 16}, 1))
            check_linear(c.format, lanes, 40, c.k, 70);
    }
}

/* Formats that give the kernel only their integers. */
TEST_F(MatrixTiles, BlocksMeetHalvesByTheirIntegers)
{
    const std::vector<format_case> cases = {{blocks_of(XM_WEIGHT_Q8_0), 320},
                                            {blocks_of(XM_WEIGHT_MXFP4), 448},
                                            {blocks_of(XM_WEIGHT_NVFP4), 320},
                                            {blocks_of(XM_WEIGHT_Q3_K), 512},
                                            {view_of(blocks_of(XM_WEIGHT_Q6_K)), 256}};
    for (const format_case &c : sample::of(cases, 2)) {
        for (uint32_t lanes : sample::of<uint32_t>({8, 16}, 1))
            check_linear(c.format, lanes, 40, c.k, 70, 0.0f, " -DSTEPS_OF_INTEGERS=1");
    }
}

/* A mean of the activations makes their sums large, which minimums are multiplied by. */
TEST_F(MatrixTiles, MinimumsAndZeroPointsCancelWhereActivationsHaveAMean)
{
    for (int format : {XM_WEIGHT_Q4_0, XM_WEIGHT_Q4_K, XM_WEIGHT_Q2_K})
        check_linear(blocks_of(format), 16, 16, 256, 20, 8.0f);
    for (xm_element e : {XM_U4, XM_U8})
        check_linear({e, 64, true}, 16, 16, 256, 20, 8.0f);
}

/* Tokens of a work-group: one tile, so that some sub-groups have none; tiles that they cannot
 * divide evenly; tiles for two work-groups. Columns: less than an iteration, more, and
 * super-blocks that the row does not fill. */
TEST_F(MatrixTiles, SubGroupsShareTheHalvesOfRows)
{
    struct shared_case {
        format_case weight;
        uint64_t tokens;
    };
    const std::vector<shared_case> cases = {
        {{blocks_of(XM_WEIGHT_Q4_0), 64}, 10},
        {{blocks_of(XM_WEIGHT_IQ4_NL), 448}, 100},
        {{blocks_of(XM_WEIGHT_Q4_1), 352}, 300},
        {{blocks_of(XM_WEIGHT_Q4_K), 512}, 140},
        {{view_of(blocks_of(XM_WEIGHT_Q2_K)), 256}, 70},
        {{{XM_U4, 32, true}, 352}, 200},
        {{{XM_I8, UINT64_MAX, false}, 416}, 40},
    };
    for (const auto &c : sample::of(cases, 3))
        for (uint32_t lanes : sample::of<uint32_t>({8, 16}, 1))
            check_linear(c.weight.format, lanes, 40, c.weight.k, c.tokens, 0.0f, "", 4);
}

TEST_F(MatrixTiles, WeightsOfOtherPlacesAreNoHalves)
{
    const struct {
        weight_format format;
        uint64_t k;
        xm_element src;
    } cases[] = {
        {blocks_of(XM_WEIGHT_Q4_0), 64, XM_F32},
        {blocks_of(XM_WEIGHT_Q4_0), 96, XM_F16},
        {view_of(blocks_of(XM_WEIGHT_Q8_0)), 64, XM_F16},
        {blocks_of(XM_WEIGHT_MXFP4), 96, XM_F16},
        {{XM_U4, 16, true}, 64, XM_F16},
        {{XM_I8, UINT64_MAX, false}, 48, XM_F16},
        {{XM_F16, 0, false}, 48, XM_F16},
        {{XM_BF16, 0, false}, 64, XM_F16},
        {{XM_F4E2M1, 32, false}, 64, XM_F16},
        {view_of({XM_F16, 0, false}), 64,
         XM_F16}, /* begins in the second half of a word */
    };
    for (const auto &c : cases) {
        test_weight w(1, 8, c.k, c.format, 1);
        EXPECT_NE(xm_matrix_refuses(&w.host, c.src), nullptr) << text_of(c.format);
    }
}

TEST_F(MatrixTiles, SubGroupsShareHalvesThatMustBeMade)
{
    const struct {
        weight_format format;
        bool are_shared;
    } cases[] = {
        {{XM_U4, 32, true}, true},    {blocks_of(XM_WEIGHT_IQ4_NL), true},
        {{XM_F16, 0, false}, false},  {{XM_U4, 32, true, XM_F32}, false},
        {{XM_BF16, 0, false}, false}, /* matrix engines do not take it */
    };
    for (const auto &c : cases) {
        test_weight w(1, 8, 64, c.format, 1);
        const char *why = xm_matrix_shares_refuse(&w.host, XM_F16);
        EXPECT_EQ(why == nullptr, c.are_shared) << text_of(c.format);
        EXPECT_NE(xm_matrix_shares_refuse(&w.host, XM_F32), nullptr);
    }
}

/* For gate and up of two formats, sub-groups would need different code to convert them. */
TEST_F(MatrixTiles, GateAndUpOfTwoFormatsAreNotShared)
{
    const xm_variant_table &table = xm_moe_tables[XM_MOE_GEMM_GATE_UP];
    const xm_variant *shared = std::find_if(table.rows, table.rows + table.n,
                                            [](const xm_variant &r) { return r.shares; });
    ASSERT_NE(shared, table.rows + table.n);
    test_weight q4_k(1, 8, 256, blocks_of(XM_WEIGHT_Q4_K), 1),
        q6_k(1, 8, 256, blocks_of(XM_WEIGHT_Q6_K), 1);
    xm_product p = {{{&q4_k.host, &q4_k.host}, 2}, XM_F16, 0, nullptr};
    EXPECT_EQ(shared->refuses(&p), nullptr);
    p.weights.w[1] = &q6_k.host;
    EXPECT_STREQ(shared->refuses(&p), "gate and up have different formats");
}

TEST_F(MatrixTiles, ExpertsAgreeWithTheReference)
{
    const weight_format u4g32 = {XM_U4, 32, true}, u4g64 = {XM_U4, 64, true};
    const weight_format i8row = {XM_I8, UINT64_MAX, false}, f16 = {XM_F16, 0, false};
    for (uint32_t lanes : sample::of<uint32_t>({8, 16}, 1)) {
        const bool wide = lanes == 16;
        check_experts(u4g64, u4g32, lanes, XM_GATE_UP_APART, {3, 0, 33, 16, 48});
        check_experts(u4g32, i8row, lanes,
                      wide ? XM_GATE_UP_INTERLEAVED : XM_UP_GATE_INTERLEAVED, {17, 40});
        check_experts(i8row, f16, lanes, wide ? XM_GATE_UP_STACKED : XM_UP_GATE_STACKED,
                      {100});
        /* h is in the column order of another type, with sums and without */
        check_experts(u4g64, blocks_of(XM_WEIGHT_Q4_1), lanes, XM_GATE_UP_APART, {40});
        check_experts(blocks_of(XM_WEIGHT_Q4_K), u4g32, lanes, XM_GATE_UP_APART, {40});
    }
}

TEST_F(MatrixTiles, ExpertsOfBlocksAgreeWithTheReference)
{
    const weight_format q4_k = blocks_of(XM_WEIGHT_Q4_K),
                        q6_k = blocks_of(XM_WEIGHT_Q6_K),
                        mxfp4 = blocks_of(XM_WEIGHT_MXFP4),
                        q4_0 = blocks_of(XM_WEIGHT_Q4_0),
                        q2_k = blocks_of(XM_WEIGHT_Q2_K),
                        iq4_xs = blocks_of(XM_WEIGHT_IQ4_XS),
                        iq3_s = blocks_of(XM_WEIGHT_IQ3_S),
                        iq2_xs = blocks_of(XM_WEIGHT_IQ2_XS);
    for (uint32_t lanes : sample::of<uint32_t>({8, 16}, 1)) {
        check_experts(q4_k, q6_k, lanes, XM_GATE_UP_APART, {3, 0, 33, 16, 48});
        check_experts(with_factors(q4_0), with_factors(q6_k), q4_k, lanes,
                      XM_GATE_UP_APART, {70});
        check_experts(mxfp4, with_factors(q4_0), lanes,
                      lanes == 16 ? XM_GATE_UP_INTERLEAVED : XM_UP_GATE_STACKED,
                      {17, 40});
        check_experts(q2_k, iq4_xs, q2_k, lanes, XM_GATE_UP_APART, {3, 0, 33});
        check_experts(blocks_of(XM_WEIGHT_Q5_K), blocks_of(XM_WEIGHT_Q3_K), lanes,
                      XM_GATE_UP_APART, {20, 40});
        check_experts(iq2_xs, iq3_s, blocks_of(XM_WEIGHT_IQ1_M), lanes, XM_GATE_UP_APART,
                      {70});
    }
}

/* Tokens of an expert: fewer than sub-groups, enough for all, enough for two work-groups. */
TEST_F(MatrixTiles, SubGroupsShareTheHalvesOfExperts)
{
    const weight_format q4_k = blocks_of(XM_WEIGHT_Q4_K),
                        q5_k = blocks_of(XM_WEIGHT_Q5_K),
                        q4_1 = blocks_of(XM_WEIGHT_Q4_1), u4g32 = {XM_U4, 32, true};
    struct shared_case {
        weight_format gate, down;
        std::vector<uint64_t> tokens;
    };
    const std::vector<shared_case> cases = {
        {q4_k, q5_k, {40, 0, 270, 3}},
        {q5_k, q4_1, {130, 20}},
        {u4g32, u4g32, {70, 100, 3}},
    };
    for (const shared_case &c : sample::of(cases, 1))
        for (uint32_t lanes : sample::of<uint32_t>({8, 16}, 1))
            check_experts(c.gate, c.gate, c.down, lanes, XM_GATE_UP_APART, c.tokens, 4);
}

} // namespace
