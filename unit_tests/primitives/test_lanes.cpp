/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of few tokens in sub-groups of 32 lanes, which chips from xe_hpc on have besides the
 * 16 that the primitives ask for.
 */
#include "primitives/args.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/weight_fixture.h"

namespace
{

enum { LANES = 32, ROWS = 4 };

class Lanes : public SubGroupTest
{
  protected:
    void go(const char *name, xm_kernel_weights w, const char *options, const xm_args &a,
            uint64_t rows, uint64_t tokens)
    {
        const xm_launch_shape shape = {
            XM_LANES, LANES, {XM_ROWS, ROWS, XM_FIXED}, {XM_TOKENS, 1, XM_FIXED}, {}};
        xm_counts counts = {};
        counts.n[XM_ROWS] = rows;
        counts.n[XM_TOKENS] = tokens;
        xm_kernel *kernel = nullptr;
        ASSERT_XM_OK(xm_weight_kernel(engine, name, w, &kernel, &err,
                                      "-DSG=%d -DROWS=%d %s", LANES, ROWS, options));
        ASSERT_XM_OK(xm_launch(&shape, kernel, &counts, &a, queue, &err));
    }

    /* Compares gate and up, then down and the sum over the slots. */
    void check(const weight_format &format, uint64_t hidden, uint64_t inter)
    {
        SCOPED_TRACE(text_of(format));
        const uint64_t experts = 5, tokens = 2, top_k = 3;
        const std::vector<int64_t> chosen = {4, 0, 2, 1, 2, 3};
        test_weight gate(experts, inter, hidden, format, 1);
        test_weight up(experts, inter, hidden, beside(format, hidden, 1), 2);
        test_weight down(experts, hidden, inter, format, 3);
        tensor x(XM_F32, {(int64_t)tokens, (int64_t)hidden},
                 random_floats(tokens * hidden, 4));
        tensor ids(XM_I32, {(int64_t)tokens, (int64_t)top_k}, chosen);
        tensor weights(XM_F32, {(int64_t)tokens, (int64_t)top_k},
                       random_floats(tokens * top_k, 5));
        tensor h(XM_F32, {(int64_t)(tokens * top_k), (int64_t)inter});
        tensor y(XM_F32, {(int64_t)tokens, (int64_t)hidden});

        xm_args a = {};
        xm_put_weight(&a, "gate", gate.device);
        xm_put_weight(&a, "up", up.device);
        xm_put_buffer(&a, "bias_gate", nullptr);
        xm_put_buffer(&a, "bias_up", nullptr);
        xm_put_uint4(&a, "bias_steps", 0, 0, 0, 0);
        xm_put_buffer(&a, "factor", nullptr);
        xm_put_float(&a, "beta", 1.0f);
        xm_put_float(&a, "limit", 0.0f);
        xm_put_buffer(&a, "x", x.buffer());
        xm_put_buffer(&a, "ids", ids.buffer());
        xm_put_uint(&a, "top_k", top_k);
        xm_put_buffer(&a, "h", h.buffer());
        xm_put_buffer(&a, "prepared", nullptr);
        xm_put_uint(&a, "i_count", inter);
        xm_put_uint(&a, "k_count", hidden);
        go("moe_gate_up_sg", {{&gate.host, &up.host}, 2}, "-DSRC=f32 -DACT=0", a, inter,
           tokens * top_k);

        xm_args b = {};
        xm_put_weight(&b, "w", down.device);
        xm_put_buffer(&b, "h", h.buffer());
        xm_put_buffer(&b, "ids", ids.buffer());
        xm_put_buffer(&b, "weights", weights.buffer());
        xm_put_buffer(&b, "bias", nullptr);
        xm_put_buffer(&b, "add", nullptr);
        xm_put_buffer(&b, "y", y.buffer());
        xm_put_uint(&b, "n_count", hidden);
        xm_put_uint(&b, "k_count", inter);
        xm_put_uint(&b, "top_k", top_k);
        go("moe_down_sg", xm_one_weight(&down.host), "-DDST=f32", b, hidden, tokens);

        const xm_moe_weights set = {&gate.host, &up.host, &down.host, nullptr,
                                    nullptr,    nullptr,  nullptr};
        xm_moe_attr attr = {};
        attr.beta = 1;
        const std::vector<int32_t> of(chosen.begin(), chosen.end());
        std::vector<float> want(y.size()), rows = x.rounded(), w = weights.rounded();
        ASSERT_EQ(xm_ref_moe(&attr, &set, rows.data(), w.data(), of.data(), tokens, top_k,
                             want.data()),
                  XM_OK);
        h.read(); /* checks the guard bytes */
        EXPECT_TRUE(rows_close(y.read(), want, hidden, XM_F32));
    }
};

TEST_F(Lanes, ExpertsOfFewTokensAgreeWithTheReference)
{
    check({XM_U4, 32, true}, 320, 96);
    check({XM_I8, UINT64_MAX, false}, 256, 140);
    check({XM_F16, 0, false}, 130, 66);
    check(view_of({XM_U4, 32, true}), 96, 64);
    const std::vector<weight_format> blocks = with_blocks({});
    for (const weight_format &format : sample::of(blocks, 3))
        check(format, 512, 256);
    for (const weight_format &format : some_codes())
        check(format, 512, 256);
}

} // namespace
