/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems of experts, the reference's results for them, and the fixture that runs and compares
 * them.
 */
#ifndef XM_UNIT_TESTS_PRIMITIVES_MOE_FIXTURE_H
#define XM_UNIT_TESTS_PRIMITIVES_MOE_FIXTURE_H

#include "primitives/moe/moe.h"
#include "primitives/tables.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/quantise.h"
#include "unit_tests/primitives/weight_fixture.h"

enum expert_form { swiglu, clamped, limited, raised };

struct problem {
    const char *text;
    uint64_t tokens, experts, hidden, inter;
    uint32_t top_k;
    weight_format gate, down;
    expert_form expert = swiglu;
    xm_activation activation = XM_ACT_SWISH;
    xm_routing routing = XM_ROUTING_SOFTMAX;
    xm_element element = XM_F32;
    int shared = 0; /* 1: shared expert, 2: with a gate */
    bool all_to_one = false;
    bool addend = false;
    xm_gate_up form = XM_GATE_UP_APART;
    int biased = 0; /* 1: gate, 2: up, 4: down; 8: a factor */
    /* 1: ids of a top-k; 2: ids and weights from outside, with a scale */
    int by_ids = 0;
    bool tied = false;           /* equal logits, with zeros of both signs */
    uint64_t first = 0, own = 0; /* the experts on this device; own 0: all */

    uint64_t here() const
    {
        return own ? own : experts;
    }
};

const weight_format u4g32 = {XM_U4, 32, true}, u4g128 = {XM_U4, 128, true};
const weight_format i4g64 = {XM_I4, 64, false}, i8row = {XM_I8, UINT64_MAX, false};
const weight_format u8g32 = {XM_U8, 32, true}, i8g32 = {XM_I8, 32, false},
                    f16 = {XM_F16, 0, false};
const weight_format bf16 = {XM_BF16, 0, false};
const weight_format q4_0 = blocks_of(XM_WEIGHT_Q4_0), q8_0 = blocks_of(XM_WEIGHT_Q8_0),
                    q4_k = blocks_of(XM_WEIGHT_Q4_K), q6_k = blocks_of(XM_WEIGHT_Q6_K),
                    mxfp4 = blocks_of(XM_WEIGHT_MXFP4);
const weight_format mxfp4_ir = {XM_F4E2M1, 32, false, XM_F8E8M0},
                    nf4g32 = {XM_NF4, 32, false}, fp8g32 = {XM_F8E4M3, 32, false},
                    nvfp4 = with_factors({XM_F4E2M1, 16, false, XM_F8E4M3});

/* Returns the format of up: gate's, or another block format if gate and down have different ones.
 */
inline weight_format
up_of(const problem &p)
{
    return beside(p.gate, p.hidden, p.gate.blocks != p.down.blocks);
}

struct routed {
    std::vector<float> weights;
    std::vector<int32_t> ids;
};

class Moe : public PrimitiveTest
{
    /* Columns that share a scale of 8-bit activations; 0: no 8-bit activations. */
  protected:
    uint32_t x_factor = 0;
    std::vector<float> got; /* the result of the last problem */
    bool is_amx = false;    /* activations and weights are rounded to bf16 */

    static xm_moe_routing routing_of(const problem &p)
    {
        xm_moe_routing r = {};
        r.kind = p.routing;
        r.top_k = p.top_k;
        r.normalise = true;
        r.epsilon = p.routing == XM_ROUTING_SIGMOID_BIAS ? 1e-20f : 0.0f;
        r.scale = 1.5f;
        return r;
    }

    static std::vector<float> logits_of(const problem &p)
    {
        std::vector<float> v = random_floats(p.tokens * p.experts, 3);
        for (uint64_t t = 0; p.all_to_one && t < p.tokens; t++)
            v[t * p.experts + 1] = 9.0f;
        for (size_t i = 0; p.tied && i < v.size(); i++)
            v[i] = std::round(v[i]);
        return v;
    }

    static routed route(const xm_moe_routing &r, const problem &p, const tensor &logits,
                        const tensor *bias, const tensor *scale)
    {
        routed to = {std::vector<float>(p.tokens * p.top_k),
                     std::vector<int32_t>(p.tokens * p.top_k)};
        EXPECT_EQ(xm_ref_moe_route(&r, logits.rounded().data(),
                                   bias ? bias->rounded().data() : nullptr,
                                   scale ? scale->rounded().data() : nullptr, p.tokens,
                                   p.experts, to.weights.data(), to.ids.data()),
                  XM_OK);
        return to;
    }

    /* Adds the result of the shared expert (gate, up, down, its gate) to y. */
    static void add_shared(const problem &p, const std::vector<float> &x,
                           const xm_weight *const *shared, std::vector<float> &y)
    {
        const xm_moe_weights set = {shared[0], shared[1], shared[2], nullptr,
                                    nullptr,   nullptr,   nullptr};
        xm_moe_attr attr = {};
        attr.activation = p.activation;
        attr.beta = p.expert == clamped ? 1.702f : 1.0f;
        std::vector<float> weight(p.tokens, 1.0f), sum(y.size());
        std::vector<int32_t> ids(p.tokens, 0);
        if (p.shared == 2) {
            ASSERT_EQ(
                xm_ref_linear(x.data(), p.tokens, shared[3], 0, nullptr, weight.data()),
                XM_OK);
            for (float &w : weight)
                w = xm_ref_sigmoid(w);
        }
        ASSERT_EQ(xm_ref_moe(&attr, &set, x.data(), weight.data(), ids.data(), p.tokens,
                             1, sum.data()),
                  XM_OK);
        for (size_t i = 0; i < y.size(); i++)
            y[i] += sum[i];
    }

    /* The weights and operands of a problem. */
    struct layer {
        layer(const problem &of, uint32_t columns, bool in_bf16)
            : p(of), x_factor(columns), is_amx(in_bf16),
              gate(p.here(), gate_rows, p.hidden, p.gate, 11),
              up(p.here(), p.inter, p.hidden, up_of(p), 12),
              down(p.here(), p.hidden, p.inter, p.down, 13),
              shared_gate(1, p.inter, p.hidden, p.gate, 14),
              shared_up(1, p.inter, p.hidden, up_of(p), 15),
              shared_down(1, p.hidden, p.inter, p.down, 16),
              gate_gate(1, 1, p.hidden, f16, 17)
        {
        }

        /* Whether x is multiplied as 8-bit integers. */
        bool bytes() const
        {
            return x_factor && !is_amx && p.element == XM_F16;
        }

        const problem &p;
        const uint32_t x_factor; /* as Moe::x_factor */
        const bool is_amx;       /* as Moe::is_amx */
        const bool apart = p.form == XM_GATE_UP_APART;
        const uint64_t gate_rows = apart ? p.inter : 2 * p.inter;
        const bool has_bias = p.routing == XM_ROUTING_SIGMOID_BIAS && !p.by_ids;
        const bool has_scale = p.by_ids == 2 || has_bias;
        const xm_element sum = p.addend ? XM_F32 : p.element; /* a residual is f32 */
        test_weight gate, up, down, shared_gate, shared_up, shared_down, gate_gate;
        tensor x{p.element, {1, (int64_t)p.tokens, (int64_t)p.hidden}, x_values()};
        tensor logits{XM_F32, {1, (int64_t)p.tokens, (int64_t)p.experts}, logits_of(p)};
        tensor bias = floats(XM_F32, 1, p.experts, 4),
               scale = floats(XM_F32, 1, p.experts, 5);
        tensor bias_gate = floats(XM_F32, p.here(), gate_rows, 6),
               bias_up = floats(XM_F32, p.here(), p.inter, 9),
               bias_down = floats(XM_F32, p.here(), p.hidden, 7),
               factor = floats(XM_F32, p.here(), p.inter, 10);
        tensor y{sum, {1, (int64_t)p.tokens, (int64_t)p.hidden}};
        tensor addend = floats(sum, p.tokens, p.hidden, 8);

        std::vector<float> x_values() const
        {
            std::vector<float> values = random_floats(p.tokens * p.hidden, 1);
            for (size_t i = 0; x_factor && i < values.size();
                 i++) /* factors of different size */
                values[i] *= (float)(1 + i / p.hidden % 3 + i / 32 % 2);
            return values;
        }
        static tensor floats(xm_element e, uint64_t rows, uint64_t cols, unsigned seed)
        {
            return tensor(e, {1, (int64_t)rows, (int64_t)cols},
                          random_floats(rows * cols, seed));
        }
    };

    static xm_moe_desc describe(layer &l)
    {
        const problem &p = l.p;
        xm_moe_desc d = {};
        d.attr.routing = routing_of(p);
        d.attr.gate_up = p.form;
        d.attr.experts = (int64_t)p.experts;
        d.attr.first_expert = (int64_t)p.first;
        d.attr.own_experts = (int64_t)p.own;
        d.attr.activation = p.activation;
        d.attr.beta = p.expert == clamped ? 1.702f : 1.0f;
        d.attr.limit = p.expert == clamped || p.expert == limited ? 0.7f : 0.0f;
        d.attr.up_add = p.expert == clamped ? 1.0f : p.expert == raised ? -0.375f : 0.0f;
        d.experts = {l.gate.device,
                     l.apart ? l.up.device : nullptr,
                     l.down.device,
                     p.biased & 1 ? l.bias_gate.buffer() : nullptr,
                     p.biased & 2 && l.apart ? l.bias_up.buffer() : nullptr,
                     p.biased & 4 ? l.bias_down.buffer() : nullptr,
                     p.biased & 8 ? l.factor.buffer() : nullptr};
        d.router_bias = l.has_bias ? l.bias.buffer() : nullptr;
        d.expert_scale = l.has_scale ? l.scale.buffer() : nullptr;
        d.by_ids = p.by_ids > 0;
        d.ids_valid = p.by_ids == 1;
        if (p.shared)
            d.shared = {l.shared_gate.device,
                        l.shared_up.device,
                        l.shared_down.device,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr};
        d.shared_gate_gate = p.shared == 2 ? l.gate_gate.device : nullptr;
        d.src = p.element;
        d.dst = d.add = l.sum;
        d.factor = l.x_factor;
        return d;
    }

    static std::vector<float> reference_of(const layer &l, const xm_moe_desc &d,
                                           const routed &to)
    {
        const problem &p = l.p;
        std::vector<float> slot_weights = to.weights;
        for (size_t i = 0; p.by_ids == 2 && i < slot_weights.size(); i++)
            slot_weights[i] *= l.scale.rounded()[(size_t)to.ids[i]];
        std::vector<int32_t> ids = to.ids;
        for (int32_t &id : ids) {
            const int64_t mine = id - (int64_t)p.first;
            id = mine >= 0 && mine < (int64_t)p.here() ? (int32_t)mine : -1;
        }
        std::vector<float> bg = l.bias_gate.rounded(), bu = l.bias_up.rounded(),
                           bd = l.bias_down.rounded(), f = l.factor.rounded();
        const xm_moe_weights experts = {&l.gate.host,
                                        l.apart ? &l.up.host : nullptr,
                                        &l.down.host,
                                        d.experts.bias_gate ? bg.data() : nullptr,
                                        d.experts.bias_up ? bu.data() : nullptr,
                                        d.experts.bias_down ? bd.data() : nullptr,
                                        d.experts.factor ? f.data() : nullptr};
        std::vector<float> want(l.y.size()),
            rows = quantised(l.x.rounded(), p.hidden, l.bytes() ? l.x_factor : 0);
        EXPECT_EQ(xm_ref_moe(&d.attr, &experts, rows.data(), slot_weights.data(),
                             ids.data(), p.tokens, p.top_k, want.data()),
                  XM_OK);
        const xm_weight *shared[] = {&l.shared_gate.host, &l.shared_up.host,
                                     &l.shared_down.host, &l.gate_gate.host};
        if (p.shared)
            add_shared(p, rows, shared, want);
        const std::vector<float> added = l.addend.rounded();
        for (size_t i = 0; p.addend && i < want.size(); i++)
            want[i] += added[i];
        return want;
    }

    /* Returns the names of the kernels used; "" if the forced variant refuses. */
    std::string check(const problem &p)
    {
        SCOPED_TRACE(std::string(p.text) + " gate " + text_of(p.gate) + ", down " +
                     text_of(p.down));
        layer l(p, x_factor, is_amx);
        const xm_moe_desc d = describe(l);
        primitive_ptr moe;
        xm_error error = {};
        xm_status status = xm_moe_create(engine, &d, &moe.p, &error);
        if (status == XM_UNSUPPORTED)
            return "";
        EXPECT_EQ(status, XM_OK) << error.text;
        if (status != XM_OK)
            return "";
        const routed to =
            route(d.attr.routing, p, l.logits, l.has_bias ? &l.bias : nullptr,
                  l.has_bias ? &l.scale : nullptr);
        const int64_t tokens = (int64_t)p.tokens, top_k = (int64_t)p.top_k;
        tensor given(XM_F32, {1, tokens, top_k}, to.weights);
        tensor chosen(XM_I32, {1, tokens, top_k},
                      std::vector<int64_t>(to.ids.begin(), to.ids.end()));
        xm_operand operands[XM_MOE_N_OPERANDS] = {};
        operands[XM_MOE_HIDDEN] = l.x.operand();
        operands[XM_MOE_ROUTING] = p.by_ids ? given.operand() : l.logits.operand();
        if (p.by_ids)
            operands[XM_MOE_IDS] = chosen.operand();
        operands[XM_MOE_OUT] = l.y.operand();
        if (p.addend)
            operands[XM_MOE_ADDEND] = l.addend.operand();
        planned_run r(moe.p, operands, queue);
        EXPECT_EQ(xm_primitive_run(moe.p, operands, &r.run, &error), XM_OK) << error.text;
        char used[512];
        xm_primitive_describe(moe.p, operands, used, sizeof(used));
        const std::vector<float> want = reference_of(l, d, to);
        got = l.y.read();
        /* The rounding of h is not in the reference. It is largest in bf16, and in 8 bits with
         * 128 columns a scale, if minimums of weights make large terms that cancel out. */
        const bool loses_most = l.is_amx || (l.bytes() && l.x_factor == 128);
        EXPECT_TRUE(loses_most  ? rows_within_norm(got, want, p.hidden, 6e-2)
                    : l.bytes() ? rows_of_norm(got, want, p.hidden, XM_I8)
                                : rows_close(got, want, p.hidden, p.element));
        return std::string(used) + " ";
    }

    /* Forces the variant, and those of neighbouring steps that it needs: steps that exchange
     * tiles of f16 come together. */
    static void force_row(const xm_variant_table &table, const char *name)
    {
        const std::string row = name;
        if (row.find("_amx") != std::string::npos)
            setenv("XM_FORCE",
                   "moe_gather=moe_gather_amx,moe_gemm_gate_up=moe_gemm_gate_up_amx,"
                   "moe_gemm_down=moe_gemm_down_amx",
                   1);
        else if (row.find("_dpas") == std::string::npos || row == "moe_gate_up_dpas" ||
                 row == "moe_down_dpas")
            force(table.step, name);
        else if (row.find("_shared") != std::string::npos)
            setenv("XM_FORCE",
                   "moe_gather=moe_gather_dpas,"
                   "moe_gemm_gate_up=moe_gemm_gate_up_dpas_shared,"
                   "moe_gemm_down=moe_gemm_down_dpas_shared",
                   1);
        else
            setenv("XM_FORCE",
                   "moe_gather=moe_gather_dpas,moe_gemm_gate_up=moe_gemm_gate_up_dpas,"
                   "moe_gemm_down=moe_gemm_down_dpas",
                   1);
    }

    /* Runs every variant of every table on n problems; other steps take their best variant. */
    template <size_t N>
    void check_all(const problem (&problems)[N], size_t first, size_t end, size_t n)
    {
        sample::deck deck(N);
        for (size_t t = first; t < end; t++) {
            const xm_variant_table &table = xm_moe_tables[t];
            std::set<std::string> left = rows_to_cover(table);
            for (size_t v = 0; v < table.n; v++) {
                SCOPED_TRACE(table.rows[v].name);
                force_row(table, table.rows[v].name);
                is_amx = table.rows[v].form == XM_FORM_BF16_TILES;
                x_factor = table.rows[v].form == XM_FORM_BYTES || is_amx ? 32 : 0;
                optimise_for(table.rows[v]);
                auto takes = [&](size_t i) {
                    const std::string name = table.rows[v].name;
                    problem p = problems[i];
                    /* so that a sample of any variant has some */
                    p.biased |= (i % 3 ? 7 : 0) | (i % 2 ? 8 : 0);
                    if (i % 3 != 1 && p.experts > 2) {
                        p.first = p.experts / 3;
                        p.own = p.experts / 2;
                    }
                    bool taken = check(p).find(name + " ") != std::string::npos;
                    if (taken)
                        left.erase(name);
                    return taken;
                };
                deck.deal(n, takes);
                if (t + 1 == end && v + 1 == table.n)
                    deck.deal_rest(takes);
            }
            EXPECT_TRUE(left.empty()) << *left.begin() << " was never run";
        }
        EXPECT_TRUE(deck.all_taken());
    }
};

#endif
