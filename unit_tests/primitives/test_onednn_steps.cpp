/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps that use oneDNN's GPU engine, on a test engine that takes the same calls and computes
 * in f32 on the host. So offsets, pieces, experts and the order of products are tested on any
 * device whose memory the host can read. test_onednn.cpp tests oneDNN's results.
 */
#include "primitives/linear/linear_rows.h"
#include "primitives/moe/onednn_experts.h"
#include "primitives/onednn/onednn_weight.h"
#include "primitives/tables.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/weight_fixture.h"

struct xm_onednn {
    int refs;
    std::set<uint64_t> sizes; /* m of the problems that ran */
    std::set<uint64_t> built; /* m of the problems that were built */
    int matmuls;
    bool has_groups;
    int calls;
} double_engine;
struct xm_onednn_matmul {
    xm_onednn_problem problem;
};
struct xm_onednn_stream {
    xm_queue *queue;
};

namespace
{

enum { SCRATCHPAD = 4096 };

float
load(const xm_onednn_span &s, xm_element e, uint64_t i)
{
    return xm_load_float(e, (const uint8_t *)xm_buffer_host_ptr(s.buffer) + s.offset, i);
}

/* Returns an element of the weight of group e, by the layout of the problem: data [n,k]; scales
 * and zero points [k / group, n]. */
float
weight_at(const xm_onednn_problem &p, const xm_onednn_spans &s, uint64_t e, uint64_t n,
          uint64_t k)
{
    float q = load(s.arg[XM_ONEDNN_W], p.w, (e * p.n + n) * p.k + k);
    if (!p.group)
        return q;
    uint64_t at = (e * (p.k / p.group) + k / p.group) * p.n + n;
    if (p.zero_point != XM_DYNAMIC)
        q -= load(s.arg[XM_ONEDNN_ZERO_POINT], p.zero_point, p.one_zero_point ? 0 : at);
    return q * load(s.arg[XM_ONEDNN_SCALE], p.scale, at);
}

float
element_of(const xm_onednn_problem &p, const xm_onednn_spans &s, uint64_t e, uint64_t m,
           uint64_t n)
{
    float sum = p.bias ? load(s.arg[XM_ONEDNN_BIAS], XM_F32, n) : 0.0f;
    for (uint64_t k = 0; k < p.k; k++)
        sum += load(s.arg[XM_ONEDNN_X], p.x, m * p.k + k) * weight_at(p, s, e, n, k);
    if (p.activated)
        sum = xm_ref_activation(p.activation, p.beta, sum);
    const uint64_t step = p.times_step ? p.times_step : p.n;
    return p.times ? sum * load(s.arg[XM_ONEDNN_TIMES], p.y, m * step + n) : sum;
}

/* Returns the row at which group e ends. */
uint64_t
end_of(const xm_onednn_problem &p, const xm_onednn_spans &s, uint64_t e)
{
    return p.groups ? (uint64_t)load(s.arg[XM_ONEDNN_ENDS], XM_I32, e) : p.m;
}

} // namespace

extern "C" {

const char *
xm_onednn_refuses(xm_engine *)
{
    return nullptr;
}

bool
xm_onednn_could_open(const xm_device_info *)
{
    return true;
}

xm_status
xm_onednn_open(xm_engine *, xm_onednn **out, xm_error *)
{
    double_engine.refs++;
    *out = &double_engine;
    return XM_OK;
}

xm_onednn *
xm_onednn_of(const xm_engine *)
{
    double_engine.refs++;
    return &double_engine;
}

void
xm_onednn_unref(xm_onednn *o)
{
    if (o)
        o->refs--;
}

const char *
xm_onednn_declines(xm_onednn *o, const xm_onednn_problem *p)
{
    return p->groups && !o->has_groups ? "the double has no groups" : nullptr;
}

xm_status
xm_onednn_matmul_get(xm_onednn *o, const xm_onednn_problem *p, xm_onednn_matmul **out,
                     xm_error *)
{
    o->matmuls++;
    o->built.insert(p->m);
    *out = new xm_onednn_matmul{*p};
    return XM_OK;
}

void
xm_onednn_matmul_put(xm_onednn_matmul *m)
{
    double_engine.matmuls -= m != nullptr;
    delete m;
}

uint64_t
xm_onednn_matmul_scratch(const xm_onednn_matmul *)
{
    return SCRATCHPAD;
}

xm_status
xm_onednn_begin(xm_onednn *, xm_queue *queue, xm_onednn_stream **out, xm_error *err)
{
    *out = new xm_onednn_stream{queue};
    return xm_queue_finish(queue, err);
}

xm_status
xm_onednn_matmul_run(xm_onednn_matmul *m, xm_onednn_stream *, const xm_onednn_spans *s,
                     xm_error *)
{
    const xm_onednn_problem &p = m->problem;
    const xm_onednn_span &y = s->arg[XM_ONEDNN_Y], &pad = s->arg[XM_ONEDNN_SCRATCHPAD];
    uint64_t done = 0, rows = 0;
    double_engine.sizes.insert(p.m);
    double_engine.calls++;
    EXPECT_GE(xm_buffer_bytes(pad.buffer), pad.offset + SCRATCHPAD);
    for (uint64_t e = 0; e < (p.groups ? p.groups : 1); e++, done += rows) {
        rows = end_of(p, *s, e) - done;
        EXPECT_LE(end_of(p, *s, e), p.m);
        EXPECT_LE(rows, p.groups ? s->most_rows : p.m);
        for (uint64_t i = done; i < done + rows; i++) {
            for (uint64_t n = 0; n < p.n; n++)
                xm_store_float(p.y, (uint8_t *)xm_buffer_host_ptr(y.buffer) + y.offset,
                               i * p.n + n, element_of(p, *s, e, i, n));
        }
    }
    EXPECT_LE(y.offset + done * p.n * xm_element_bits(p.y) / 8,
              xm_buffer_bytes(y.buffer));
    EXPECT_LE(s->arg[XM_ONEDNN_X].offset + done * p.k * 2,
              xm_buffer_bytes(s->arg[XM_ONEDNN_X].buffer));
    return XM_OK;
}

void
xm_onednn_end(xm_onednn_stream *s)
{
    delete s;
}
}

namespace
{

class OnednnSteps : public PrimitiveTest
{
  protected:
    void SetUp() override
    {
        PrimitiveTest::SetUp();
        if (!IsSkipped() && !xm_device_has(xm_engine_info(engine), XM_CAP_HOST_VISIBLE))
            GTEST_SKIP() << "the host cannot read the device's memory";
        double_engine.sizes.clear();
        double_engine.has_groups = false;
        double_engine.calls = 0;
    }
    void TearDown() override
    {
        EXPECT_EQ(double_engine.refs, 0) << "the engine was left open";
        EXPECT_EQ(double_engine.matmuls, 0) << "matmuls were left";
        PrimitiveTest::TearDown();
    }
};

const weight_format u4 = {XM_U4, 32, true};

TEST_F(OnednnSteps, LinearOfAnyNumberOfTokensIsTheReference)
{
    const uint64_t n = 64, k = 64;
    test_weight w(1, n, k, u4, 3);
    ASSERT_XM_OK(xm_onednn_weight_turn(engine, w.device, &err));
    tensor bias(XM_F32, {(int64_t)n}, random_floats(n, 2));
    void *linear = nullptr;
    const xm_library_desc desc = {w.device, bias.buffer(), XM_F16, XM_F32, nullptr, 0};
    ASSERT_XM_OK(xm_onednn_gpu_linear.create(engine, &desc, &linear, &err));
    xm_buffer *scratch = nullptr;
    ASSERT_XM_OK(xm_buffer_create(engine, XM_USE_DEVICE, 1 << 16, &scratch, &err));
    for (uint64_t tokens : {5, 8, 9, 23, 64, 100, 127, 530}) {
        SCOPED_TRACE(tokens);
        tensor x(XM_F16, {(int64_t)tokens, (int64_t)k}, random_floats(tokens * k, 1));
        tensor y(XM_F32, {(int64_t)tokens, (int64_t)n});
        xm_primitive p = {nullptr, engine};
        xm_run r = {};
        r.queue = queue;
        r.scratch = scratch;
        xm_scratch s;
        xm_scratch_begin(&s, &p, &r);
        EXPECT_LE(xm_onednn_gpu_linear.scratch(linear, &p, tokens),
                  xm_buffer_bytes(scratch));
        const xm_library_call call = {x.buffer(), y.buffer(), {}, tokens};
        ASSERT_XM_OK(xm_onednn_gpu_linear.run(linear, &call, &s, queue, &err));
        xm_scratch_end(&s);
        std::vector<float> want(y.size());
        ASSERT_EQ(xm_ref_linear(x.rounded().data(), tokens, &w.host, 0,
                                bias.rounded().data(), want.data()),
                  XM_OK);
        EXPECT_TRUE(rows_close(y.read(), want, n, XM_F16));
    }
    EXPECT_LE(double_engine.sizes.size(), (size_t)XM_ONEDNN_PIECES - 2);
    xm_buffer_unref(scratch);
    xm_onednn_gpu_linear.destroy(linear);
}

/* An engine serves programs with different chunks. */
TEST_F(OnednnSteps, PiecesAreThoseOfTheProgramsChunkAndNotOfTheEngines)
{
    test_weight w(1, 64, 64, u4, 3);
    ASSERT_XM_OK(xm_onednn_weight_turn(engine, w.device, &err));
    const uint32_t of_engine = xm_engine_config(engine)->ubatch;
    ASSERT_GE(of_engine, 128u);
    for (uint64_t chunk : {(uint64_t)64, (uint64_t)128, (uint64_t)0}) {
        SCOPED_TRACE(chunk);
        const xm_library_desc desc = {w.device, nullptr, XM_F16, XM_F16, nullptr, chunk};
        void *linear = nullptr;
        double_engine.built.clear();
        ASSERT_XM_OK(xm_onednn_gpu_linear.create(engine, &desc, &linear, &err));
        EXPECT_EQ(*double_engine.built.rbegin(),
                  chunk ? chunk : std::min(of_engine, 512u));
        xm_onednn_gpu_linear.destroy(linear);
    }
}

/* The product is multiplied by the second of three slices. */
TEST_F(OnednnSteps, GateOfAnyNumberOfTokensIsTheReference)
{
    const uint64_t n = 64, k = 64, slices = 3;
    test_weight w(1, n, k, u4, 3);
    ASSERT_XM_OK(xm_onednn_weight_turn(engine, w.device, &err));
    const xm_library_gate gate = {XM_ACT_GELU_TANH, slices * n};
    void *linear = nullptr;
    const xm_library_desc desc = {w.device, nullptr, XM_F16, XM_F16, &gate, 0};
    ASSERT_XM_OK(xm_onednn_gpu_linear.create(engine, &desc, &linear, &err));
    xm_buffer *scratch = nullptr;
    ASSERT_XM_OK(xm_buffer_create(engine, XM_USE_DEVICE, 1 << 16, &scratch, &err));
    for (uint64_t tokens : {5, 23, 100}) {
        SCOPED_TRACE(tokens);
        tensor x(XM_F16, {(int64_t)tokens, (int64_t)k}, random_floats(tokens * k, 1));
        tensor times(XM_F16, {(int64_t)tokens, (int64_t)(slices * n)},
                     random_floats(tokens * slices * n, 2));
        tensor y(XM_F16, {(int64_t)tokens, (int64_t)n});
        xm_primitive p = {nullptr, engine};
        xm_run r = {};
        r.queue = queue;
        r.scratch = scratch;
        xm_scratch s;
        xm_scratch_begin(&s, &p, &r);
        const xm_library_call call = {
            x.buffer(), y.buffer(), {times.buffer(), n * 2}, tokens};
        ASSERT_XM_OK(xm_onednn_gpu_linear.run(linear, &call, &s, queue, &err));
        xm_scratch_end(&s);
        std::vector<float> want(y.size()), factor = times.rounded();
        ASSERT_EQ(
            xm_ref_linear(x.rounded().data(), tokens, &w.host, 0, nullptr, want.data()),
            XM_OK);
        for (size_t i = 0; i < want.size(); i++)
            want[i] = xm_ref_activation(XM_ACT_GELU_TANH, 1.0f, want[i]) *
                      factor[i / n * slices * n + n + i % n];
        EXPECT_TRUE(rows_close(y.read(), want, n, XM_F16));
    }
    xm_buffer_unref(scratch);
    xm_onednn_gpu_linear.destroy(linear);
}

/* As linear does it: up is written to scratch, and gate is multiplied by it. Built twice, as
 * after another variant failed to build. */
TEST_F(OnednnSteps, GatedUnitOfTwoWeightsIsTheReference)
{
    const uint64_t n = 64, k = 64, tokens = 23;
    test_weight gate(1, n, k, u4, 3), up(1, n, k, u4, 4);
    for (test_weight *w : {&gate, &up})
        ASSERT_XM_OK(xm_onednn_weight_turn(engine, w->device, &err));
    const xm_variant row = {"of_a_library", XM_FAMILY_ONEDNN};
    xm_linear l = {};
    l.base.engine = engine;
    l.desc.src = l.desc.dst = XM_F16;
    l.desc.is_glu = true;
    l.desc.activation = XM_ACT_SWISH;
    l.desc.n = 2;
    l.desc.segment[0].weight = gate.device;
    l.desc.segment[1].weight = up.device;
    xm_linear_way *way = &l.way[0];
    way->row = &row;
    ASSERT_XM_OK(xm_linear_build(&l, way, &err));
    ASSERT_XM_OK(xm_linear_build(&l, way, &err));
    tensor x(XM_F16, {(int64_t)tokens, (int64_t)k}, random_floats(tokens * k, 1));
    tensor y(XM_F16, {(int64_t)tokens, (int64_t)n});
    xm_operand operands[XM_LINEAR_N_OPERANDS] = {};
    operands[XM_LINEAR_X] = x.operand();
    operands[XM_LINEAR_Y] = y.operand();
    xm_run r = {};
    r.queue = queue;
    ASSERT_XM_OK(xm_buffer_create(engine, XM_USE_DEVICE,
                                  xm_linear_scratch(&l, way, tokens), &r.scratch, &err));
    xm_scratch s;
    xm_scratch_begin(&s, &l.base, &r);
    const xm_linear_call call = {&l, way, operands, tokens, &r, &s};
    ASSERT_XM_OK(xm_linear_multiply(&call, &err));
    xm_scratch_end(&s);
    std::vector<float> want(y.size()), factor(y.size());
    ASSERT_EQ(
        xm_ref_linear(x.rounded().data(), tokens, &gate.host, 0, nullptr, want.data()),
        XM_OK);
    ASSERT_EQ(
        xm_ref_linear(x.rounded().data(), tokens, &up.host, 0, nullptr, factor.data()),
        XM_OK);
    for (size_t i = 0; i < want.size(); i++)
        want[i] = xm_ref_activation(XM_ACT_SWISH, 1.0f, want[i]) * factor[i];
    EXPECT_TRUE(rows_close(y.read(), want, n, XM_F16));
    xm_buffer_unref(r.scratch);
    xm_linear_library_release(way);
}

/* The output of moe_sort: the slots of each expert in tiles of 16. */
struct sorted {
    std::vector<int64_t> first, tile_expert, source;
    sorted(const std::vector<std::vector<int>> &slots_of)
    {
        for (size_t e = 0; e < slots_of.size(); e++) {
            first.push_back((int64_t)tile_expert.size());
            size_t tiles = (slots_of[e].size() + 15) / 16;
            for (size_t i = 0; i < tiles * 16; i++)
                source.push_back(i < slots_of[e].size() ? slots_of[e][i] : -1);
            tile_expert.insert(tile_expert.end(), tiles, (int64_t)e);
        }
        first.push_back((int64_t)tile_expert.size());
    }
};

class OnednnExperts : public OnednnSteps, public testing::WithParamInterface<bool>
{
};

/* Experts one by one, and all in one call for each product. */
TEST_P(OnednnExperts, MultiplyTheirOwnRows)
{
    double_engine.has_groups = GetParam();
    const uint64_t experts = 4, hidden = 64, inter = 96, tokens = 120, top_k = 2;
    test_weight gate(experts, inter, hidden, u4, 3), up(experts, inter, hidden, u4, 4),
        down(experts, hidden, inter, u4, 5);
    for (test_weight *w : {&gate, &up, &down})
        ASSERT_XM_OK(xm_onednn_weight_turn(engine, w->device, &err));
    xm_moe_desc d = {};
    d.attr.beta = 1.0f;
    d.attr.routing.top_k = top_k;
    d.experts = {gate.device, up.device, down.device, nullptr, nullptr, nullptr, nullptr};
    d.src = d.dst = d.add = XM_F16;
    xm_onednn_experts *o = nullptr;
    ASSERT_XM_OK(xm_onednn_experts_create(engine, &d, &o, &err));

    /* slots of the experts: 100 (one piece), none, 131 (several pieces), 9 (less than a tile) */
    std::vector<std::vector<int>> slots_of(experts);
    for (int slot = 0; slot < (int)(tokens * top_k); slot++)
        slots_of[slot < 100 ? 0 : slot < 231 ? 2 : 3].push_back(slot);
    const sorted s(slots_of);
    const int64_t tiles = (int64_t)s.tile_expert.size(), room = tiles + 3;
    std::vector<int64_t> tile_expert = s.tile_expert, source = s.source;
    tile_expert.resize((size_t)room, -1);
    source.resize((size_t)room * 16, -1);
    tensor x(XM_F16, {(int64_t)tokens, (int64_t)hidden},
             random_floats(tokens * hidden, 1));
    tensor first(XM_I32, {(int64_t)experts + 1}, s.first);
    tensor tile_of(XM_I32, {room}, tile_expert), source_of(XM_I32, {room * 16}, source);
    tensor xy(XM_F32, {room * 16, (int64_t)hidden});
    tensor gh(XM_F16, {2, room * 16, (int64_t)inter});
    tensor scratchpad(XM_U8, {(int64_t)xm_onednn_experts_scratchpad(o)});
    const bool ends = xm_onednn_experts_want_ends(o);
    EXPECT_EQ(ends, GetParam());

    xm_kernel *gather = nullptr;
    ASSERT_XM_OK(
        xm_engine_kernel(engine, "moe_gather_rows_ref", "-DSRC=f16", &gather, &err));
    xm_args a = {};
    xm_put_buffer(&a, "x", x.buffer());
    xm_put_buffer(&a, "tile_expert", tile_of.buffer());
    xm_put_buffer(&a, "source", source_of.buffer());
    xm_put_buffer(&a, "rows", xy.buffer());
    xm_put_uint(&a, "k_count", hidden);
    xm_put_uint(&a, "top_k", top_k);
    xm_put_buffer(&a, "first_tile", first.buffer());
    xm_put_buffer(&a, "ends", ends ? scratchpad.buffer() : nullptr);
    xm_put_uint(&a, "experts", experts);
    xm_counts counts = {};
    counts.n[XM_COLS] = hidden + 64; /* the padded end of the last block */
    counts.n[XM_SLOTS] = (uint64_t)room * 16;
    const xm_variant &row = xm_moe_tables[XM_MOE_GATHER].rows[0];
    ASSERT_STREQ(row.name, "moe_gather_rows_ref");
    ASSERT_XM_OK(xm_launch(&row.launch, gather, &counts, &a, queue, &err));

    xm_moe_call b = {};
    b.tokens = 131; /* as many as one of the experts has */
    b.tiles = (uint64_t)room;
    b.part[XM_MANY_FIRST] = first.buffer();
    b.part[XM_MANY_XY] = xy.buffer();
    b.part[XM_MANY_H] = gh.buffer();
    b.part[XM_MANY_SCRATCHPAD] = scratchpad.buffer();
    b.queue = queue;
    b.err = &err;
    ASSERT_XM_OK(xm_onednn_experts_read(o, &b));
    EXPECT_EQ(b.first == nullptr, ends) << "the host need not know";
    if (b.first) {
        EXPECT_EQ(b.first[experts], (uint32_t)tiles);
    }
    ASSERT_XM_OK(xm_onednn_experts_gate_up(o, &b));
    ASSERT_XM_OK(xm_onednn_experts_down(o, &b));

    if (ends) {
        EXPECT_EQ(double_engine.calls, 3);
        b.tiles = xm_engine_config(engine)->ubatch * top_k / 16 + experts + 1;
        EXPECT_EQ(xm_onednn_experts_gate_up(o, &b), XM_UNSUPPORTED);
        EXPECT_NE(strstr(err.text, "XM_UBATCH"), nullptr) << err.text;
        EXPECT_EQ(double_engine.calls, 3) << "of more rows than it was built for";
    }
    const std::vector<float> y = xy.read(), rows = x.rounded();
    for (size_t p = 0; p < s.source.size(); p++) {
        if (s.source[p] < 0)
            continue;
        const uint64_t e = (uint64_t)s.tile_expert[p / 16];
        const float *row = &rows[(size_t)s.source[p] / top_k * hidden];
        std::vector<float> g(inter), u(inter), want(hidden);
        ASSERT_EQ(xm_ref_linear(row, 1, &gate.host, e, nullptr, g.data()), XM_OK);
        ASSERT_EQ(xm_ref_linear(row, 1, &up.host, e, nullptr, u.data()), XM_OK);
        for (size_t i = 0; i < inter; i++)
            g[i] = xm_ref_activation(XM_ACT_SWISH, 1.0f, g[i]) * u[i];
        ASSERT_EQ(xm_ref_linear(g.data(), 1, &down.host, e, nullptr, want.data()), XM_OK);
        const std::vector<float> got(&y[p * hidden], &y[p * hidden] + hidden);
        ASSERT_TRUE(rows_close(got, want, hidden, XM_F16)) << "row " << p;
    }
    xm_free(b.first);
    xm_onednn_experts_destroy(o);
}

INSTANTIATE_TEST_SUITE_P(Calls, OnednnExperts, testing::Bool(), [](const auto &info) {
    return std::string(info.param ? "InOneCall" : "OneByOne");
});

TEST_F(OnednnSteps, TilesOutOfOrderAreAnError)
{
    test_weight gate(2, 64, 64, u4, 3);
    xm_moe_desc d = {};
    d.experts = {gate.device, gate.device, gate.device, nullptr,
                 nullptr,     nullptr,     nullptr};
    d.src = XM_F16;
    xm_onednn_experts *o = nullptr;
    ASSERT_XM_OK(xm_onednn_experts_create(engine, &d, &o, &err));
    for (const std::vector<int64_t> &bad :
         {std::vector<int64_t>{1, 2, 3}, {0, 3, 2}, {0, 1, 9}}) {
        tensor first(XM_I32, {3}, bad);
        xm_moe_call call = {};
        err = {};
        call.tiles = 8;
        call.part[XM_MANY_FIRST] = first.buffer();
        call.queue = queue;
        call.err = &err;
        EXPECT_EQ(xm_onednn_experts_read(o, &call), XM_DEVICE);
        xm_free(call.first);
        EXPECT_STREQ(err.text, "the tiles of the sorted experts are out of order");
    }
    xm_onednn_experts_destroy(o);
}

} // namespace
