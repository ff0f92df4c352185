/* SPDX-License-Identifier: Apache-2.0
 *
 * Experts of few tokens and prepared rows (primitives/form.h): gate and up write h in the form
 * that down reads, and x may come in the form that gate and up read.
 */
#include "primitives/form.h"
#include "primitives/moe/experts.h"
#include "primitives/tables.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/weight_fixture.h"

namespace
{

using rows_form = struct xm_rows_form; /* in C++ the function hides the struct */

const weight_format u4g32 = {XM_U4, 32, true}, u4g128 = {XM_U4, 128, true},
                    u8g32 = {XM_U8, 32, true};

class MoePrepared : public PrimitiveTest
{
  protected:
    void SetUp() override
    {
        PrimitiveTest::SetUp();
        if (!IsSkipped() && xm_engine_info(engine)->kind != XM_DEVICE_CPU)
            GTEST_SKIP() << "prepared rows are for CPU devices";
    }

    uint64_t launches()
    {
        uint64_t waits = 0, kernels = 0;
        xm_queue_counts(queue, &waits, &kernels);
        return kernels;
    }

    /* Returns x[tokens, columns of w] prepared in a form for w. */
    std::unique_ptr<tensor> prepare(const rows_form &form, const xm_weight &w,
                                    const tensor &x, uint64_t tokens)
    {
        const int64_t words = (int64_t)xm_prepared_words(&form, w.cols);
        auto prepared = std::make_unique<tensor>(
            XM_I32, std::vector<int64_t>{(int64_t)tokens, words});
        xm_kernel *kernel = nullptr;
        EXPECT_EQ(xm_form_kernel(engine, &form, x.operand().element, &w, &kernel, &err),
                  XM_OK)
            << err.text;
        EXPECT_EQ(xm_form_make(form.form, kernel, &w, x.buffer(), tokens,
                               prepared->buffer(), queue, &err),
                  XM_OK)
            << err.text;
        return prepared;
    }
};

/* ---- h ---------------------------------------------------------------------------- */

/* The results of gate and up for a few tokens. */
struct halves {
    std::vector<int64_t> h, prepared; /* as bits; `prepared` is empty if not prepared */
};

class PreparedH : public MoePrepared
{
  protected:
    enum { EXPERTS = 5, HIDDEN = 64, TOKENS = 3, TOP_K = 2, SLOTS = TOKENS * TOP_K };

    static const xm_variant &row_named(const std::string &name)
    {
        size_t i = 0;
        while (xm_moe_tables[XM_MOE_GATE_UP].rows[i].name != name)
            i++;
        return xm_moe_tables[XM_MOE_GATE_UP].rows[i];
    }

    /* With `form`, the same kernel also prepares h for `down`. */
    halves gate_up(const test_weight &gate, const test_weight &up, const xm_weight &down,
                   const rows_form *form)
    {
        const xm_variant &row = row_named("moe_gate_up_vec");
        const rows_form x_form = xm_form_of(row.form, &gate.host, XM_F16);
        const rows_form plain = {};
        const uint64_t words = form ? xm_prepared_words(form, down.cols) : 1;
        char defines[XM_KERNEL_DEFINES];
        xm_form_defines(form ? form : &plain, "FORM", defines, sizeof(defines));
        tensor x(XM_F32, {TOKENS, HIDDEN}, random_floats(TOKENS * HIDDEN, 4));
        tensor ids(XM_I32, {SLOTS}, std::vector<int64_t>{4, 0, 2, 1, 2, 3});
        tensor h(XM_I32, {SLOTS, (int64_t)down.cols});
        tensor prepared(XM_I32, {SLOTS, (int64_t)words});
        const auto x_rows = prepare(x_form, gate.host, x, TOKENS);
        xm_args a = {};
        xm_put_weight(&a, "gate", gate.device);
        xm_put_weight(&a, "up", up.device);
        xm_put_buffer(&a, "bias_gate", nullptr);
        xm_put_buffer(&a, "bias_up", nullptr);
        xm_put_uint4(&a, "bias_steps", 0, 0, 0, 0);
        xm_put_buffer(&a, "factor", nullptr);
        xm_put_float(&a, "beta", 1.0f);
        xm_put_float(&a, "limit", 0.0f);
        xm_put_buffer(&a, "x", x_rows->buffer());
        xm_put_buffer(&a, "ids", ids.buffer());
        xm_put_uint(&a, "top_k", TOP_K);
        xm_put_buffer(&a, "h", h.buffer());
        xm_put_buffer(&a, "prepared", form ? prepared.buffer() : nullptr);
        xm_put_uint(&a, "i_count", down.cols);
        xm_put_uint(&a, "k_count", HIDDEN);
        xm_counts counts = {};
        counts.n[XM_ROWS] = down.cols;
        counts.n[XM_SLOTS] = SLOTS;
        counts.block = form ? xm_prepared_part(form, 1) : 1;
        xm_kernel *kernel = nullptr;
        EXPECT_EQ(xm_weight_kernel(engine, row.name, {{&gate.host, &up.host}, 2}, &kernel,
                                   &err, "-DSRC=f32 -DACT=0%s", defines),
                  XM_OK)
            << err.text;
        EXPECT_EQ(xm_launch(&row.launch, kernel, &counts, &a, queue, &err), XM_OK)
            << err.text;
        if (form)
            return {h.read_ints(), prepared.read_ints()};
        return {h.read_ints(), {}};
    }

    void check(const weight_format &format, uint64_t inter)
    {
        test_weight gate(EXPERTS, inter, HIDDEN, u4g32, 1);
        test_weight up(EXPERTS, inter, HIDDEN, u4g32, 2);
        test_weight down(EXPERTS, HIDDEN, inter, format, 3);
        ASSERT_STREQ(xm_weight_not_in_planes(&down.host), nullptr);
        const halves plain = gate_up(gate, up, down.host, nullptr);
        tensor h(XM_F32, {SLOTS, (int64_t)inter}, as_floats(plain.h));
        for (xm_form f : {XM_FORM_PLANES, XM_FORM_SHORTS, XM_FORM_BYTES}) {
            SCOPED_TRACE(text_of(format) + " I=" + std::to_string(inter) + " form " +
                         std::to_string(f));
            if (f == XM_FORM_SHORTS && xm_weight_not_in_shorts(&down.host, XM_F16))
                continue;
            if (f == XM_FORM_BYTES && xm_weight_not_in_bytes(&down.host, XM_F16))
                continue;
            const rows_form form = xm_form_of(f, &down.host, XM_F16);
            const halves both = gate_up(gate, up, down.host, &form);
            EXPECT_EQ(both.h, plain.h);
            EXPECT_EQ(both.prepared, prepare(form, down.host, h, SLOTS)->read_ints());
        }
    }

    static std::vector<float> as_floats(const std::vector<int64_t> &bits)
    {
        std::vector<float> v(bits.size());
        for (size_t i = 0; i < v.size(); i++) {
            const int32_t b = (int32_t)bits[i];
            memcpy(&v[i], &b, sizeof(b));
        }
        return v;
    }
};

/* Prepared bits equal those of a separate pass. Rows of I that end within a block; groups smaller
 * than a block, larger, and across blocks. */
TEST_F(PreparedH, IsWhatAPassOverHWouldMake)
{
    check(u4g32, 160);
    check(u4g128, 384);
    check({XM_U4, 256, true}, 768);
    check({XM_U4, 48, true}, 432);
    check({XM_I4, 64, false}, 320);
    check({XM_I4, UINT64_MAX, false}, 200);
    check(u8g32, 160);
    check({XM_U8, UINT64_MAX, true}, 132);
    check({XM_I8, 128, false, XM_BF16}, 256);
    check({XM_F16, 0, false}, 70);
    check({XM_BF16, 0, false}, 33);
    check(blocks_of(XM_WEIGHT_Q8_0), 96);
    check(blocks_of(XM_WEIGHT_Q4_K), 256);
}

/* ---- whole sets -------------------------------------------------------------------- */

/* Experts with routing weights and ids as inputs. */
struct experts {
    uint64_t tokens, inter, n, top_k;
    const weight_format *shared = nullptr; /* format of the shared expert's gate and up */
};

class PreparedX : public MoePrepared
{
  protected:
    enum { HIDDEN = 128 };
    struct result {
        std::vector<float> y;
        uint64_t launches;
    };

    /* Runs experts. `given`: the operand PREPARED, rows of x in the descriptor's `form`. */
    result go(const experts &e, const tensor &x, const rows_form &form, xm_buffer *given)
    {
        const int64_t slots = (int64_t)(e.tokens * e.top_k);
        test_weight gate(e.n, e.inter, HIDDEN, u4g32, 1),
            up(e.n, e.inter, HIDDEN, u4g32, 2), down(e.n, HIDDEN, e.inter, u4g32, 3);
        const weight_format &format = e.shared ? *e.shared : u4g32;
        test_weight shared_gate(1, e.inter, HIDDEN, format, 4),
            shared_up(1, e.inter, HIDDEN, format, 5),
            shared_down(1, HIDDEN, e.inter, u4g32, 6);
        std::vector<int64_t> chosen((size_t)slots);
        for (size_t i = 0; i < chosen.size(); i++)
            chosen[i] = (int64_t)((7 * i + 1) % e.n);
        tensor ids(XM_I32, {slots}, chosen);
        tensor weights(XM_F32, {slots}, random_floats((size_t)slots, 7));
        tensor y(XM_F32, {(int64_t)e.tokens, HIDDEN});
        xm_moe_desc d = {};
        d.attr.routing.top_k = (int64_t)e.top_k;
        d.attr.beta = 1;
        d.experts = {gate.device, up.device, down.device, nullptr,
                     nullptr,     nullptr,   nullptr};
        if (e.shared)
            d.shared = {shared_gate.device,
                        shared_up.device,
                        shared_down.device,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr};
        d.src = x.operand().element;
        d.dst = d.add = XM_F32;
        d.by_ids = d.ids_valid = true;
        d.prepared = form;
        primitive_ptr moe;
        EXPECT_EQ(xm_moe_create(engine, &d, &moe.p, &err), XM_OK) << err.text;
        xm_operand o[XM_MOE_N_OPERANDS] = {};
        o[XM_MOE_HIDDEN] = x.operand();
        o[XM_MOE_ROUTING] = weights.operand();
        o[XM_MOE_IDS] = ids.operand();
        o[XM_MOE_OUT] = y.operand();
        for (xm_moe_operand i : {XM_MOE_ROUTING, XM_MOE_IDS}) {
            o[i].rank = 2;
            o[i].dim[0] = (int64_t)e.tokens;
            o[i].dim[1] = (int64_t)e.top_k;
        }
        o[XM_MOE_PREPARED].buffer = given;
        planned_run r(moe.p, o, queue);
        const uint64_t before = launches();
        EXPECT_EQ(xm_primitive_run(moe.p, o, &r.run, &err), XM_OK) << err.text;
        return {y.read(), launches() - before};
    }

    static std::vector<float> values(uint64_t tokens)
    {
        return random_floats(tokens * HIDDEN, 8);
    }

    rows_form form_of_x(xm_element src)
    {
        test_weight gate(1, 8, HIDDEN, u4g32, 1);
        return xm_moe_reads(engine, &gate.host, src, 0);
    }

    std::unique_ptr<tensor> prepared(xm_element src, uint64_t tokens)
    {
        test_weight gate(1, 8, HIDDEN, u4g32, 1);
        const tensor x(src, {(int64_t)tokens, HIDDEN}, values(tokens));
        return prepare(form_of_x(src), gate.host, x, tokens);
    }
};

/* As many work-items as compute units, and one. */
TEST_F(PreparedX, HIsPreparedByGateAndUpWhereThatKeepsTheUnitsBusy)
{
    const uint64_t units = xm_engine_info(engine)->compute_units;
    const tensor x(XM_F32, {1, HIDDEN}, values(1));
    EXPECT_EQ(go({1, 128, units, units}, x, {}, nullptr).launches, 3u)
        << "x is prepared, gate and up, down";
    if (units > 1) {
        EXPECT_EQ(go({1, 128, units, 1}, x, {}, nullptr).launches, 4u);
    }
    force("moe_down", "moe_down_ref");
    EXPECT_EQ(go({1, 128, units, units}, x, {}, nullptr).launches, 3u)
        << "down reads plain rows";
}

TEST_F(PreparedX, IsReadInPlaceOfPlainRows)
{
    for (xm_element src : {XM_F32, XM_F16}) {
        const rows_form form = form_of_x(src);
        ASSERT_TRUE(xm_rows_are_prepared(&form));
        for (uint64_t tokens : {(uint64_t)1, (uint64_t)XM_FEW_TOKENS}) {
            SCOPED_TRACE(tokens);
            /* Two tokens of a shared expert would be sorted, which the steps for few tokens do
             * not do. */
            const bool shared = tokens == 1;
            const experts e = {tokens, 96, 40, 2, shared ? &u4g32 : nullptr};
            const tensor x(src, {(int64_t)tokens, HIDDEN}, values(tokens));
            const tensor poison(src, {(int64_t)tokens, HIDDEN});
            const auto rows = prepared(src, tokens);
            const result plain = go(e, x, form, nullptr);
            const result taken = go(e, poison, form, rows->buffer());
            EXPECT_EQ(taken.y, plain.y);
            EXPECT_EQ(taken.launches + 1 + shared, plain.launches)
                << "routed, and shared";
        }
    }
}

/* Prepared rows are not read for more tokens, or in another form than gate's. Routed and shared
 * experts decide separately. */
TEST_F(PreparedX, IsNotReadWhereItIsOfNoUse)
{
    const rows_form form = form_of_x(XM_F32);
    rows_form other = form;
    other.group = 64;
    const uint64_t many = XM_FEW_TOKENS + 1;
    const tensor x(XM_F32, {(int64_t)many, HIDDEN}, values(many));
    const tensor row(XM_F32, {1, HIDDEN}, values(1));
    const tensor poison(XM_I32, {1 << 14});
    const experts e = {many, 96, 5, 2, &u4g32};
    EXPECT_EQ(go(e, x, form, poison.buffer()).y, go(e, x, form, nullptr).y);
    const experts one = {1, 96, 5, 2, &u4g32}, unlike = {1, 96, 5, 2, &u8g32};
    EXPECT_EQ(go(one, row, other, poison.buffer()).y, go(one, row, form, nullptr).y);
    EXPECT_EQ(go(one, row, {}, poison.buffer()).y, go(one, row, form, nullptr).y);
    const result plain = go(unlike, row, form, nullptr);
    const result taken = go(unlike, row, form, prepared(XM_F32, 1)->buffer());
    EXPECT_EQ(taken.y, plain.y);
    EXPECT_EQ(taken.launches + 1, plain.launches) << "routed only";
    force("moe_gate_up", "moe_gate_up_ref");
    EXPECT_EQ(go(one, row, form, poison.buffer()).y, go(one, row, form, nullptr).y);
}

TEST_F(PreparedX, ItsFormIsKnownBeforeThereAreExperts)
{
    test_weight gate(2, 8, HIDDEN, u4g32, 1),
        turned(2, 8, HIDDEN, {XM_U4, 32, true, XM_F16, true}, 1);
    const rows_form form = xm_moe_reads(engine, &gate.host, XM_F32, 0);
    EXPECT_EQ(form.form, XM_FORM_PLANES);
    EXPECT_EQ(form.planes, 8u);
    EXPECT_EQ(form.group, 32u);
    EXPECT_EQ(xm_moe_reads(engine, &turned.host, XM_F32, 0).form, XM_FORM_ROWS);
    force("moe_gate_up", "moe_gate_up_ref");
    EXPECT_EQ(xm_moe_reads(engine, &gate.host, XM_F32, 0).form, XM_FORM_ROWS);
    force("moe_gate_up", "no_such_row");
    EXPECT_EQ(xm_moe_reads(engine, &gate.host, XM_F32, 0).form, XM_FORM_ROWS);
}

} // namespace
