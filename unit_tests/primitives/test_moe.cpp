/* SPDX-License-Identifier: Apache-2.0 */
#include "unit_tests/primitives/moe_fixture.h"

namespace
{

const problem few[] = {
    {"one token", 1, 7, 128, 96, 3, u4g32, u4g32},
    {"k = 1", 1, 5, 256, 128, 1, u4g128, u4g128},
    {"k = E, with addend", 2, 5, 128, 64, 5, i4g64, i4g64, swiglu, XM_ACT_SWISH,
     XM_ROUTING_SOFTMAX, XM_F32, 0, false, true},
    {"mixed formats", 3, 11, 96, 64, 2, u4g32, i8row},
    {"f16 with addend", 4, 9, 128, 96, 2, u8g32, f16, swiglu, XM_ACT_GELU_TANH,
     XM_ROUTING_SOFTMAX_TOPK, XM_F16, 0, false, true},
    {"shared, with addend", 2, 6, 128, 64, 2, u4g32, u4g32, swiglu, XM_ACT_SWISH,
     XM_ROUTING_SIGMOID_BIAS, XM_F32, 1, false, true},
    {"f16 and shared, with addend", 1, 6, 128, 64, 2, u4g32, u4g32, swiglu, XM_ACT_SWISH,
     XM_ROUTING_SOFTMAX, XM_F16, 1, false, true},
    {"clamped", 1, 4, 64, 96, 2, i4g64, u4g32, clamped, XM_ACT_SWISH,
     XM_ROUTING_SOFTMAX_TOPK, XM_F32, 0, false, false, XM_GATE_UP_INTERLEAVED, 7},
    {"odd sizes", 1, 3, 50, 21, 2, bf16, f16},
    {"clamped, apart", 2, 4, 64, 96, 2, i4g64, u4g32, clamped, XM_ACT_SWISH,
     XM_ROUTING_SOFTMAX_TOPK, XM_F32, 0, false, true, XM_GATE_UP_APART, 7},
    {"by ids, shared, with addend", 2, 6, 128, 64, 2, u4g32, u4g32, swiglu, XM_ACT_SWISH,
     XM_ROUTING_SOFTMAX, XM_F32, 2, false, true, XM_GATE_UP_APART, 0, 1},
    {"views", 2, 5, 96, 64, 2, view_of(u4g32), view_of(i8g32)},
    {"views, group-major", 1, 5, 96, 64, 2, view_of({XM_U4, 32, true, XM_F16, true}),
     view_of({XM_U8, 32, true, XM_F16, true})},
    {"views of floats", 3, 5, 50, 22, 2, view_of(bf16), view_of(f16)},
    {"blocks of three formats", 2, 16, 256, 96, 2, q4_k, q4_0},
    {"blocks of two formats, f16 with addend", 1, 4, 64, 256, 2, mxfp4, q6_k, swiglu,
     XM_ACT_SWISH, XM_ROUTING_SOFTMAX, XM_F16, 0, false, true},
    {"blocks of one format, shared", 3, 24, 64, 96, 2, q8_0, q8_0, swiglu, XM_ACT_SWISH,
     XM_ROUTING_SOFTMAX, XM_F32, 1},
    {"views of blocks", 2, 16, 256, 32, 2, view_of(q6_k), view_of(mxfp4)},
    {"small floats", 2, 5, 128, 96, 2, mxfp4_ir, nf4g32},
    {"factors, f16 with addend", 1, 4, 64, 256, 2, nvfp4, fp8g32, swiglu, XM_ACT_SWISH,
     XM_ROUTING_SOFTMAX, XM_F16, 0, false, true},
    {"floats with factors, shared", 3, 4, 64, 96, 2, fp8g32, with_factors(f16), swiglu,
     XM_ACT_SWISH, XM_ROUTING_SOFTMAX, XM_F32, 1},
    {"blocks with factors", 2, 16, 256, 96, 2, with_factors(q4_k), with_factors(q4_0)},
    {"odd small floats", 1, 3, 50, 22, 2, {XM_F8E4M3, 2, false}, {XM_NF4, 22, false}},
    {"views of codes", 2, 5, 96, 64, 2, view_of(nvfp4), view_of(codebook_of(nf4g32))},
};
const problem many[] = {
    {"empty experts", 17, 3, 128, 96, 1, u4g32, u4g32},
    {"all to one", 33, 5, 96, 64, 1, u4g32, i4g64, swiglu, XM_ACT_SWISH,
     XM_ROUTING_SOFTMAX, XM_F32, 0, true},
    {"k = E, with addend", 5, 4, 128, 128, 4, u4g128, u4g128, swiglu, XM_ACT_SWISH,
     XM_ROUTING_SOFTMAX, XM_F32, 0, false, true},
    {"mixed formats", 35, 6, 352, 160, 3, u4g32, i8row, swiglu, XM_ACT_GELU_ERF},
    {"f16 and shared with gate, with addend", 40, 5, 128, 96, 2, u8g32, f16, swiglu,
     XM_ACT_GELU_TANH, XM_ROUTING_SOFTMAX_TOPK, XM_F16, 2, false, true},
    {"f16", 131, 3, 352, 160, 2, u4g32, i8g32, swiglu, XM_ACT_SWISH, XM_ROUTING_SOFTMAX,
     XM_F16},
    {"f16, whole groups", 67, 4, 256, 128, 2, u4g128, u4g128, swiglu, XM_ACT_GELU_ERF,
     XM_ROUTING_SOFTMAX, XM_F16},
    {"f16, clamped", 33, 5, 64, 96, 2, i4g64, u4g32, clamped, XM_ACT_SWISH,
     XM_ROUTING_SOFTMAX_TOPK, XM_F16, 0, false, false, XM_GATE_UP_INTERLEAVED, 7},
    {"clamped", 33, 5, 64, 96, 2, i4g64, u4g32, clamped, XM_ACT_SWISH,
     XM_ROUTING_SOFTMAX_TOPK, XM_F32, 0, false, false, XM_GATE_UP_INTERLEAVED, 7},
    {"odd sizes", 34, 3, 50, 21, 2, bf16, f16},
    {"f16, clamped, apart", 35, 4, 64, 96, 2, i4g64, u4g32, clamped, XM_ACT_SWISH,
     XM_ROUTING_SOFTMAX_TOPK, XM_F16, 0, false, true, XM_GATE_UP_APART, 7},
    {"f16, by ids with a scale, shared", 35, 6, 128, 64, 2, u4g32, u4g32, swiglu,
     XM_ACT_SWISH, XM_ROUTING_SOFTMAX, XM_F16, 1, false, false, XM_GATE_UP_APART, 0, 2},
    {"views", 33, 5, 96, 64, 2, view_of(u4g32), view_of(i8g32)},
    {"f16, views, group-major", 34, 5, 64, 64, 2,
     view_of({XM_U4, 32, true, XM_F16, true}), view_of({XM_U8, 32, true, XM_F16, true}),
     swiglu, XM_ACT_SWISH, XM_ROUTING_SOFTMAX, XM_F16},
    {"views of floats", 35, 5, 50, 22, 2, view_of(bf16), view_of(f16)},
    {"blocks of three formats", 37, 5, 256, 96, 2, q4_k, q4_0},
    {"f16, blocks of two formats, shared", 33, 4, 64, 256, 2, mxfp4, q6_k, swiglu,
     XM_ACT_SWISH, XM_ROUTING_SOFTMAX, XM_F16, 1},
    {"blocks of one format", 40, 4, 64, 96, 2, q8_0, q8_0},
    {"small floats", 37, 5, 128, 96, 2, mxfp4_ir, nf4g32},
    {"f16, factors, shared", 33, 4, 64, 256, 2, nvfp4, fp8g32, swiglu, XM_ACT_SWISH,
     XM_ROUTING_SOFTMAX, XM_F16, 1},
    {"floats with factors", 35, 4, 64, 96, 2, fp8g32, with_factors(f16)},
    {"blocks with factors", 37, 5, 256, 96, 2, with_factors(q4_k), with_factors(q4_0)},
    {"f16, blocks with factors", 40, 4, 64, 96, 2, with_factors(q8_0), with_factors(q4_0),
     swiglu, XM_ACT_SWISH, XM_ROUTING_SOFTMAX, XM_F16},
    {"f16, blocks of whole words", 40, 5, 256, 192, 2, q4_k, with_factors(q4_0), swiglu,
     XM_ACT_SWISH, XM_ROUTING_SOFTMAX, XM_F16, 1},
    {"odd small floats", 34, 3, 50, 22, 2, {XM_F8E4M3, 2, false}, {XM_NF4, 22, false}},
    {"views of codes", 33, 5, 96, 64, 2, view_of(nvfp4), view_of(codebook_of(nf4g32))},
};

/* Results have the bits of a separate routing launch if the sub-groups have as many lanes, which
 * add up in the same order; else they equal the reference. Above a few tokens routing is a
 * separate launch. */
TEST_F(Moe, GateAndUpRouteTheirTokens)
{
    const problem list[] = {
        {"a token", 1, 37, 128, 96, 8, u4g32, u4g32},
        {"a lane is left", 2, 16, 128, 64, 7, u4g32, i8g32, swiglu, XM_ACT_SWISH,
         XM_ROUTING_SOFTMAX_TOPK},
        {"ties", 2, 35, 128, 64, 8, u4g32, u4g32, swiglu, XM_ACT_SWISH,
         XM_ROUTING_SOFTMAX, XM_F32, 0, false, false, XM_GATE_UP_APART, 0, 0, true},
        {"k = 1", 4, 3, 128, 160, 1, i8g32, u4g32, swiglu, XM_ACT_SWISH,
         XM_ROUTING_SQRT_SOFTPLUS},
        {"bias and scale, shared", 3, 40, 128, 64, 3, u4g32, u4g32, swiglu, XM_ACT_SWISH,
         XM_ROUTING_SIGMOID_BIAS, XM_F16, 1, false, true}};
    const xm_variant_table &table = xm_moe_tables[0];
    ASSERT_STREQ(table.step, "moe_gate_up");
    size_t n_routing = 0;
    optimise(false);
    for (size_t v = 0; v < table.n; v++) {
        const xm_variant &row = table.rows[v];
        SCOPED_TRACE(row.name);
        const std::string joined = std::string("sg,moe_gate_up=") + row.name;
        n_routing += row.routes;
        for (problem p : list) {
            setenv("XM_FORCE", joined.c_str(), 1);
            const std::string used = check(p);
            if (used.empty())
                continue;
            EXPECT_EQ(used.find("moe_route") == std::string::npos, row.routes) << used;
            const std::vector<float> routed = got;
            setenv("XM_FORCE", (joined + ",moe_route=moe_route_sg").c_str(), 1);
            EXPECT_NE(check(p).find("moe_route_sg"), std::string::npos);
            if (xm_launch_lanes(&row.launch, xm_engine_info(engine)) == XM_SUB_GROUP) {
                EXPECT_EQ(got, routed);
            }
        }
        setenv("XM_FORCE", joined.c_str(), 1);
        for (problem p : list) { /* a device with some of the experts */
            p.first = p.experts / 3;
            p.own = (p.experts + 1) / 2;
            const std::string used = check(p);
            if (!used.empty()) {
                EXPECT_EQ(used.find("moe_route") == std::string::npos, row.routes);
            }
        }
        problem p = list[0];
        p.tokens = 5;
        setenv("XM_FORCE", joined.c_str(), 1);
        const std::string used = check(p);
        EXPECT_TRUE(used.empty() || used.find("moe_route_sg") != std::string::npos);
    }
    EXPECT_EQ(n_routing, 3u);
}

/* Devices with a third of the experts, one, or the last: their sums add up to the whole result.
 * Slots of experts that are elsewhere are not read: their scratch is filled with NaN. */
TEST_F(Moe, DevicesWithSomeOfTheExpertsAddUp)
{
    const problem list[] = {
        {"few", 3, 9, 128, 64, 2, u4g32, u4g32, swiglu, XM_ACT_SWISH, XM_ROUTING_SOFTMAX,
         XM_F32, 0, false, false, XM_GATE_UP_APART, 4},
        {"few of f16", 3, 9, 384, 128, 2, u4g128, u4g128, swiglu, XM_ACT_SWISH,
         XM_ROUTING_SOFTMAX, XM_F16, 0, false, false, XM_GATE_UP_APART, 4},
        {"many, by ids and scaled", 70, 9, 128, 64, 2, u4g32, u4g32, swiglu, XM_ACT_SWISH,
         XM_ROUTING_SOFTMAX, XM_F32, 0, false, false, XM_GATE_UP_APART, 4, 2}};
    const std::pair<uint64_t, uint64_t> parts[] = {{0, 4}, {4, 1}, {5, 4}};
    const bool has_sub_groups = xm_device_really_has(
        xm_engine_info(engine), XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE);
    for (const std::string kernels :
         {"ref", "gen", "sg", "vec",
          "sg,moe_gate_up=moe_gate_up_dpas,moe_down=moe_down_dpas",
          "sg,moe_gate_up=moe_gate_up_dp4a,moe_down=moe_down_dp4a",
          /* kernels that multiply absent rows, after each that stores them */
          "sg,moe_gate_up=moe_gate_up_ref,moe_down=moe_down_dpas",
          "sg,moe_gate_up=moe_gate_up_sg,moe_down=moe_down_dp4a",
          "sg,moe_gate_up=moe_gate_up_vec,moe_down=moe_down_gen"}) {
        SCOPED_TRACE(kernels);
        setenv("XM_FORCE", kernels.c_str(), 1);
        optimise(kernels == "vec");
        const bool takes_bytes = kernels.find("_dp") != std::string::npos;
        const bool is_family = kernels.find('=') == std::string::npos;
        size_t n_run = 0;
        for (problem p : list) {
            const bool is_few = p.tokens < 8;
            if (is_few ? takes_bytes != (p.element == XM_F16) : !is_family)
                continue;
            for (const auto &[first, own] : parts) {
                p.first = first;
                p.own = own;
                /* A race between lanes may give the right result by chance: repeat. */
                for (int again = 0; again < (is_few ? 24 : 1); again++)
                    n_run += !check(p).empty();
            }
        }
        EXPECT_TRUE(n_run > 0 || !has_sub_groups);
    }
}

/* Returns the work-items of a unit, on a chip whose matrix engines have 8 lanes. */
uint64_t
items_of(const xm_launch_shape &shape)
{
    const uint64_t lanes = shape.size == XM_MATRIX_LANES ? 8 : shape.size;
    if (shape.unit == XM_LANES)
        return (lanes ? lanes : (uint64_t)XM_SUB_GROUP) * (shape.split ? shape.split : 1);
    return shape.unit == XM_GROUP ? shape.size : 1;
}

/* Fails unless the units cover n, the last of them at least partly; up to `spare` units may be
 * idle. */
void
expect_covered(uint64_t units, uint64_t per, uint64_t n, uint64_t spare)
{
    EXPECT_GE(units * per, n);
    EXPECT_LT(units * per, n + (1 + spare) * per);
}

TEST(MoeTables, EveryRowSaysHowItIsLaunched)
{
    xm_device_info chip = {};
    chip.kind = XM_DEVICE_GPU;
    chip.compute_units = 3;
    chip.sub_group_sizes[0] = 8;
    xm_counts counts = {};
    for (int axis = 0; axis < XM_AXES; axis++)
        counts.n[axis] = axis == XM_ONE ? 1 : 1000 + 16 * (uint64_t)axis;
    counts.block = 128;
    for (const xm_variant_table &table : xm_moe_tables) {
        for (size_t i = 0; i < table.n; i++) {
            const xm_variant &row = table.rows[i];
            const xm_launch_shape &s = row.launch;
            SCOPED_TRACE(row.name);
            if (std::string(row.name).find("_onednn") != std::string::npos)
                continue; /* launched by a library */
            const uint64_t items = items_of(s);
            uint64_t per_item = 0;
            const struct xm_launch l = xm_launch_for(&s, &chip, &counts, &per_item);
            EXPECT_NE(s.x.axis, XM_UNITS) << "a step of experts has axes of their own";
            EXPECT_EQ(l.global[0] % items, 0u);
            expect_covered(l.global[0] / items, per_item, counts.n[s.x.axis],
                           s.unit == XM_LANES && !s.split ? 3 : 0);
            EXPECT_EQ(s.z.per, 0u);
            if (!s.y.per)
                continue;
            EXPECT_NE(s.x.axis, s.y.axis);
            expect_covered(l.global[1], s.y.per * (s.y.take == XM_PER_LANE ? items : 1),
                           counts.n[s.y.axis], 0);
        }
    }
}

TEST_F(Moe, EveryVariantForFewTokensAgreesWithTheReference)
{
    check_all(few, 0, 2, 1);
}

TEST_F(Moe, EveryVariantForManyTokensAgreesWithTheReference)
{
    check_all(many, 2, XM_MOE_N_TABLES, 1);
}

/* Gate and up in one weight: every order of its rows with every family of kernels, for few tokens
 * and many. The last tile of 16 tokens and the last block of I are not full. */
TEST_F(Moe, GateAndUpOfOneWeightAgreeWithTheReference)
{
    const weight_format formats[] = {{XM_U4, 32, true},
                                     {XM_I4, 64, false},
                                     {XM_U8, UINT64_MAX, true},
                                     {XM_I8, 32, false},
                                     {XM_I4, UINT64_MAX, false},
                                     {XM_U8, 64, true},
                                     view_of({XM_U4, 32, true}),
                                     q4_0,
                                     view_of(mxfp4)};
    const int n_forms = XM_GATE_UP_COUNT - XM_GATE_UP_INTERLEAVED;
    sample::deck forms((size_t)n_forms);
    const std::vector<const char *> families = {"", "vec", "sg", "gen", "ref"};
    const std::vector<size_t> few_families = sample::of<size_t>({0, 1, 2, 3, 4}, 3);
    for (size_t family : few_families) {
        setenv("XM_FORCE", families[family], 1);
        SCOPED_TRACE(families[family]);
        auto takes = [&](size_t i) {
            const int form = XM_GATE_UP_INTERLEAVED + (int)i;
            const size_t n = family * (size_t)n_forms + i;
            problem p = {"", 1, 4, 128, 64, 2, formats[n % 9], formats[(n + 2) % 9]};
            p.form = (xm_gate_up)form;
            p.expert = n % 4 == 3 ? swiglu : clamped;
            p.biased = n % 3 != 2 ? 5 : 0;
            p.element = n / 4 % 2 ? XM_F16 : XM_F32; /* vec: as integers, too */
            for (uint64_t tokens : sample::of<uint64_t>({1, 3, 40}, 2)) {
                p.tokens = tokens;
                EXPECT_NE(check(p), "") << xm_gate_up_text(p.form);
            }
            return true;
        };
        forms.deal(1, takes);
        if (family == few_families.back())
            forms.deal_rest(takes);
    }
    EXPECT_TRUE(forms.all_taken());
    unsetenv("XM_FORCE");
}

/* The attributes of an expert are independent: some combinations of them, for every family of
 * kernels, few tokens and many. */
TEST_F(Moe, AnyMixtureOfAttributesAgreesWithTheReference)
{
    const std::vector<const char *> families = {"", "vec", "sg", "gen", "ref"};
    const weight_format formats[] = {u4g32, i4g64,          u8g32, i8g32,
                                     f16,   view_of(u4g32), q8_0,  mxfp4};
    auto any = [](size_t n) { return (size_t)sample::random()() % n; };
    for (const char *family : sample::of(families, 3)) {
        setenv("XM_FORCE", family, 1);
        SCOPED_TRACE(family);
        for (uint64_t tokens : {2, 37}) {
            problem p = {"", tokens, 5, 128, 64, 2, formats[any(8)], formats[any(8)]};
            p.expert = (expert_form)any(raised + 1);
            p.activation = (xm_activation)any(XM_ACT_COUNT);
            p.form = (xm_gate_up)any(XM_GATE_UP_COUNT);
            p.biased = (int)any(8);
            p.shared = (int)any(3);
            p.addend = any(2) == 1;
            p.element = any(2) ? XM_F16 : XM_F32;
            p.by_ids = (int)any(3);
            SCOPED_TRACE("form " + std::to_string(p.expert) + " " +
                         xm_activation_text(p.activation) + " " +
                         xm_gate_up_text(p.form) + " biases " + std::to_string(p.biased) +
                         " by_ids " + std::to_string(p.by_ids));
            EXPECT_NE(check(p), "");
        }
    }
    unsetenv("XM_FORCE");
}

/* Ids from outside that name no expert count as absent. */
TEST_F(Moe, IdsOfNoExpertCountForNothing)
{
    const uint64_t hidden = 64, inter = 32;
    test_weight gate(3, inter, hidden, u4g32, 1), up(3, inter, hidden, u4g32, 2),
        down(3, hidden, inter, u4g32, 3);
    const std::vector<int64_t> wild = {INT32_MAX, 2, 1, -1, 0, 3};
    const std::vector<int32_t> tame = {0, 2, 1, 0, 0, 0};
    const std::vector<float> given = {9, 0.5f, 0.25f, 9, 1, 9},
                             counted = {0, 0.5f, 0.25f, 0, 1, 0};
    tensor x(XM_F32, {3, (int64_t)hidden}, random_floats(3 * hidden, 4));
    tensor weights(XM_F32, {3, 2}, given), ids(XM_I32, {3, 2}, wild);
    tensor y(XM_F32, {3, (int64_t)hidden});
    xm_moe_desc d = {};
    d.attr.routing.top_k = 2;
    d.attr.beta = 1;
    d.experts = {gate.device, up.device, down.device, nullptr, nullptr, nullptr, nullptr};
    d.src = d.dst = d.add = XM_F32;
    d.by_ids = true;
    primitive_ptr moe;
    ASSERT_XM_OK(xm_moe_create(engine, &d, &moe.p, &err));
    xm_operand operands[XM_MOE_N_OPERANDS] = {};
    operands[XM_MOE_HIDDEN] = x.operand();
    operands[XM_MOE_ROUTING] = weights.operand();
    operands[XM_MOE_IDS] = ids.operand();
    operands[XM_MOE_OUT] = y.operand();
    planned_run r(moe.p, operands, queue);
    ASSERT_XM_OK(xm_primitive_run(moe.p, operands, &r.run, &err));
    const xm_moe_weights set = {&gate.host, &up.host, &down.host, nullptr,
                                nullptr,    nullptr,  nullptr};
    std::vector<float> want(y.size());
    ASSERT_EQ(xm_ref_moe(&d.attr, &set, x.rounded().data(), counted.data(), tame.data(),
                         3, 2, want.data()),
              XM_OK);
    EXPECT_TRUE(rows_close(y.read(), want, hidden, XM_F32));
    operands[XM_MOE_IDS].dim[0] = 2;
    uint64_t bytes;
    EXPECT_EQ(xm_primitive_plan(moe.p, operands, nullptr, &bytes, &err), XM_INVALID);
    EXPECT_STREQ(err.text, "the routing weights are not given for 3 tokens");
}

/* Scales in the order that oneDNN needs, in which then all kernels find them. */
TEST_F(Moe, TurnedScalesAgreeWithTheReference)
{
    const weight_format turned[] = {{XM_U4, 32, true, XM_F16, true},
                                    {XM_I8, 64, false, XM_F16, true}};
    sample::deck deck(2);
    for (const char *family : sample::of<const char *>({"sg", "gen", "ref"}, 1)) {
        setenv("XM_FORCE", family, 1);
        SCOPED_TRACE(family);
        deck.deal(1, [&](size_t i) {
            problem p = {"", 1, 4, 128, 64, 2, turned[i], turned[1 - i]};
            p.element = XM_F16;
            for (uint64_t tokens : {1, 40}) {
                p.tokens = tokens;
                EXPECT_NE(check(p), "");
            }
            return true;
        });
    }
    unsetenv("XM_FORCE");
}

TEST_F(Moe, RefusesWithASentence)
{
    test_weight gate(4, 64, 128, u4g32, 1), down(4, 128, 64, u4g32, 2);
    test_weight other(4, 64, 128, u8g32, 3), wrong(4, 96, 64, u4g32, 4);
    xm_moe_weights w = {&gate.host, &gate.host, &down.host, nullptr,
                        nullptr,    nullptr,    nullptr};
    const xm_moe_weights none = {};
    xm_moe_attr a = {};
    a.routing.top_k = 2;
    auto refusal = [&] { return xm_moe_supports(&a, &w, &none, nullptr); };
    EXPECT_EQ(refusal(), nullptr);
    w.up = &other.host;
    EXPECT_STREQ(refusal(), "the gate and up projections differ in format");
    w.up = &gate.host;
    w.down = &wrong.host;
    EXPECT_NE(refusal(), nullptr);
    w.down = &down.host;
    a.routing.top_k = 5;
    EXPECT_NE(refusal(), nullptr);
    a.routing.top_k = 2;
    a.gate_up = XM_GATE_UP_STACKED;
    EXPECT_STREQ(refusal(), "the joint weight of gate and up has an odd number of rows");
    w.up = nullptr;
    a.gate_up = XM_GATE_UP_INTERLEAVED;
    xm_weight part = gate.host; /* the view's first row belongs to up */
    ASSERT_STREQ(xm_weight_slice_rows(&part, 1, 62), nullptr);
    w.gate = &part;
    EXPECT_STREQ(refusal(), "the number of rows is odd");
    w.gate = &gate.host;
    /* gate and up have 32 rows each, down has 64 columns */
    a.gate_up = XM_GATE_UP_STACKED;
    EXPECT_STREQ(refusal(), "the size of the down projection does not match gate and up");
}

} // namespace
