/* SPDX-License-Identifier: Apache-2.0 */
#include "primitives/attention/attention.h"

#include <algorithm>
#include <memory>

#include "primitives/attention/attention_partitions.h"
#include "primitives/tables.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/weight_fixture.h"

namespace
{

enum class key_mask { none, i64, i32, u8 };
enum class add_mask { none, shared_f32, full_f16 };

struct problem {
    const char *name;
    int64_t b = 1, t = 1, past = 0;
    uint32_t heads_q = 8, heads_kv = 2, d = 64, dv = 64, page = 16;
    xm_element element = XM_F32, cache = XM_F32;
    bool causal = true;
    uint64_t window = 0;
    float soft_cap = 0;
    bool sinks = false;
    key_mask keys = key_mask::none;
    add_mask mask = add_mask::none;
    /* what is done to the inputs; the tables for each sequence, or one for all */
    bool q_norm = false, k_norm = false, v_norm = false, shared_tables = false;
    int64_t rotated = 0;
    bool keeps_cache = false; /* K and V are written before, q comes alone */
    bool pads_left = false;   /* the key mask hides the first three keys alone */

    int64_t total() const
    {
        return past + t;
    }
};

/* The prompt path starts above this many tokens. */
const int64_t decode_tokens = 4;

problem
make(const char *name, int64_t b, int64_t t, int64_t past)
{
    problem p;
    p.name = name;
    p.b = b;
    p.t = t;
    p.past = past;
    return p;
}

/* A cache on the device with scattered pages, and what it holds on the host. */
struct state {
    const problem &p;
    int64_t max_pages, n_pages;
    std::vector<float> k, v; /* [B, S, Hkv, D] as the device sees them before the cache */
    tensor k_cache, v_cache, k_scale, v_scale;
    std::vector<int64_t> pages;

    explicit state(const problem &problem_)
        : p(problem_), max_pages((p.total() + p.page - 1) / p.page + 1),
          n_pages(p.b * max_pages + 2),
          k(random_floats((size_t)(p.b * p.total() * p.heads_kv * p.d), 1)),
          v(random_floats((size_t)(p.b * p.total() * p.heads_kv * p.dv), 2)),
          k_cache(p.cache, {n_pages, p.heads_kv, p.page, p.d}),
          v_cache(p.cache, {n_pages, p.heads_kv, p.page, p.dv}),
          k_scale(XM_F32, {n_pages, p.heads_kv, p.page}),
          v_scale(XM_F32, {n_pages, p.heads_kv, p.page}), pages((size_t)(p.b * max_pages))
    {
        for (size_t i = 0; i < pages.size(); i++)
            pages[i] = (int64_t)i + 1;
        std::shuffle(pages.begin(), pages.end(), std::mt19937(3));
        vary(k, p.d, {1, 2, 0.25f, 4, 0.5f});
        vary(v, p.dv, {0.25f, 8, 1, 0.0625f, 2, 16, 0.5f});
        for (int64_t b = 0; b < p.b; b++) /* the last page of a row is never used */
            pages[(size_t)((b + 1) * max_pages - 1)] = -1;
        round(k);
        round(v);
    }
    /* Rows of other sizes than their neighbours': what is read from another one shows. */
    static void vary(std::vector<float> &x, size_t row, const std::vector<float> &sizes)
    {
        for (size_t i = 0; i < x.size(); i++)
            x[i] *= sizes[i / row % sizes.size()];
    }
    void round(std::vector<float> &x) const
    {
        for (float &f : x) {
            if (p.element == XM_F16 || p.cache == XM_F16)
                f = xm_half_to_float(xm_float_to_half(f));
        }
    }
};

/* Tokens [first, first + n) of every sequence of x[B, tokens, row]. */
std::vector<float>
part(const std::vector<float> &x, const problem &p, int64_t tokens, size_t row,
     int64_t first, int64_t n)
{
    std::vector<float> out;
    for (int64_t b = 0; b < p.b; b++) {
        auto at = x.begin() + (long)((size_t)(b * tokens + first) * row);
        out.insert(out.end(), at, at + (long)((size_t)n * row));
    }
    return out;
}

class Attention : public PrimitiveTest
{
  protected:
    primitive_ptr attention;
    std::vector<float> sinks_host;
    std::unique_ptr<tensor> sinks;
    const float epsilon = 1e-5f;
    std::vector<float> gamma[3]; /* of q, k, v */
    std::unique_ptr<tensor> gamma_tensor[3];

    void create(const problem &p)
    {
        xm_attention_desc desc = {};
        desc.heads_q = p.heads_q;
        desc.heads_kv = p.heads_kv;
        desc.d = p.d;
        desc.dv = p.dv;
        desc.scale = 1.0f / std::sqrt((float)p.d);
        desc.soft_cap = p.soft_cap;
        desc.causal = p.causal;
        desc.window = p.window;
        desc.page_tokens = p.page;
        desc.element = p.element;
        desc.cache = p.cache;
        if (p.sinks) {
            sinks_host = random_floats(p.heads_q, 9);
            sinks = std::make_unique<tensor>(XM_F32, std::vector<int64_t>{p.heads_q},
                                             sinks_host);
            desc.sinks = sinks->buffer();
        }
        desc.epsilon = epsilon;
        const bool normed[] = {p.q_norm, p.k_norm, p.v_norm};
        xm_buffer **to[] = {&desc.q_gamma, &desc.k_gamma, &desc.v_gamma};
        for (uint32_t i = 0; i < 3; i++) {
            int64_t n = i == 2 ? p.dv : p.d;
            gamma[i] = random_floats((size_t)n, 20 + i);
            gamma_tensor[i] =
                std::make_unique<tensor>(XM_F32, std::vector<int64_t>{n}, gamma[i]);
            if (normed[i])
                *to[i] = gamma_tensor[i]->buffer();
        }
        create_for_reader(desc);
    }

    /* For a projection whose weight's format lets the rows be written beside the result, where one
     * does. */
    void create_for_reader(xm_attention_desc desc)
    {
        const weight_format formats[] = {
            {XM_U4, 32, true}, {XM_I8, 32, false}, {XM_F16, 0, false}};
        const uint64_t cols = (uint64_t)desc.heads_q * desc.dv;
        for (const weight_format &format : formats) {
            reader.reset();
            if (cols % unit_of(format, cols))
                continue;
            reader = std::make_unique<test_weight>(1, 8, cols, format, 1);
            const xm_weight *w = &reader->device->host;
            desc.prepared =
                xm_form_of(xm_weight_not_in_shorts(w, desc.element) ? XM_FORM_PLANES
                                                                    : XM_FORM_SHORTS,
                           w, XM_F16);
            form = desc.prepared;
            xm_primitive_destroy(attention.p);
            attention.p = nullptr;
            ASSERT_XM_OK(xm_attention_create(engine, &desc, &attention.p, &err));
            if (xm_attention_emits(attention.p))
                return;
        }
        reader.reset();
    }

    /* What was written is what preparing the result gives. */
    void expect_prepared(tensor &prepared, tensor &out, uint64_t rows)
    {
        xm_kernel *kernel = nullptr;
        const xm_weight *w = &reader->device->host;
        tensor want(XM_I32, {(int64_t)rows, (int64_t)xm_prepared_words(&form, w->cols)});
        ASSERT_XM_OK(
            xm_form_kernel(engine, &form, out.operand().element, w, &kernel, &err));
        ASSERT_XM_OK(xm_form_make(form.form, kernel, w, out.buffer(), rows, want.buffer(),
                                  queue, &err));
        EXPECT_EQ(prepared.read_ints(), want.read_ints());
        rows_prepared += rows;
    }
    std::unique_ptr<test_weight> reader; /* of the result; NULL: it takes it as it is */
    xm_rows_form form = {};
    uint64_t rows_prepared = 0;

    /* Positions [first, first + n) of every sequence, with these rows of q. */
    std::vector<float> chunk(state &s, const std::vector<float> &q_rows, int64_t first,
                             int64_t n, tensor *keys = nullptr, tensor *mask = nullptr)
    {
        const problem &p = s.p;
        tensor q(p.element, {p.b, n, p.heads_q, p.d}, q_rows);
        tensor k(p.element, {p.b, n, p.heads_kv, p.d},
                 part(s.k, p, p.total(), p.heads_kv * p.d, first, n));
        tensor v(p.element, {p.b, n, p.heads_kv, p.dv},
                 part(s.v, p, p.total(), p.heads_kv * p.dv, first, n));
        tensor table(XM_I32, {p.b, s.max_pages}, s.pages);
        tensor out(p.element, {p.b, n, p.heads_q, p.dv});
        xm_operand o[XM_ATTENTION_N_OPERANDS] = {};
        o[XM_ATTENTION_Q] = q.operand();
        o[XM_ATTENTION_K] = k.operand();
        o[XM_ATTENTION_V] = v.operand();
        o[XM_ATTENTION_K_CACHE] = s.k_cache.operand();
        o[XM_ATTENTION_V_CACHE] = s.v_cache.operand();
        if (p.cache == XM_I8) {
            o[XM_ATTENTION_K_SCALE] = s.k_scale.operand();
            o[XM_ATTENTION_V_SCALE] = s.v_scale.operand();
        }
        o[XM_ATTENTION_TABLE] = table.operand();
        if (keys)
            o[XM_ATTENTION_KEY_MASK] = keys->operand();
        if (mask)
            o[XM_ATTENTION_MASK] = mask->operand();
        o[XM_ATTENTION_OUT] = out.operand();
        const uint64_t rows = (uint64_t)(p.b * n);
        if (!reader || rows > XM_PREPARED_ROWS) {
            enqueue(o, first);
            return out.read();
        }
        tensor prepared(XM_I32, {(int64_t)rows, (int64_t)xm_prepared_words(
                                                    &form, reader->device->host.cols)});
        o[XM_ATTENTION_PREPARED] = prepared.operand();
        enqueue(o, first);
        expect_prepared(prepared, out, rows);
        return out.read();
    }

    void enqueue(const xm_operand *o, int64_t past)
    {
        xm_attention_run a = {(uint64_t)past};
        uint64_t bytes = 0;
        ASSERT_XM_OK(xm_attention_plan(attention.p, o, &a, &bytes, &err));
        xm_buffer *scratch = nullptr;
        if (bytes) {
            ASSERT_XM_OK(xm_buffer_create(engine, XM_USE_DEVICE, bytes, &scratch, &err));
        }
        run.scratch = scratch;
        EXPECT_EQ(xm_attention_enqueue(attention.p, o, &a, &run, &err), XM_OK)
            << err.text;
        xm_buffer_unref(scratch);
        run.scratch = nullptr;
    }

    std::vector<float> reference(const state &s, const std::vector<float> &q,
                                 const std::vector<int64_t> &keys,
                                 const std::vector<float> &mask)
    {
        const problem &p = s.p;
        std::vector<float> out((size_t)(p.b * p.t * p.heads_q * p.dv));
        for (int64_t b = 0; b < p.b; b++) {
            struct xm_ref_attention a = {};
            a.tokens = (uint64_t)p.t;
            a.keys = (uint64_t)p.total();
            a.past = (uint64_t)p.past;
            a.heads_q = p.heads_q;
            a.heads_kv = p.heads_kv;
            a.d = p.d;
            a.dv = p.dv;
            a.scale = 1.0f / std::sqrt((float)p.d);
            a.soft_cap = p.soft_cap;
            a.causal = p.causal;
            a.window = p.window;
            a.q = &q[(size_t)(b * p.t * p.heads_q * p.d)];
            a.k = &s.k[(size_t)(b * p.total() * p.heads_kv * p.d)];
            a.v = &s.v[(size_t)(b * p.total() * p.heads_kv * p.dv)];
            a.key_mask = keys.empty() ? nullptr : &keys[(size_t)(b * p.total())];
            size_t one = (size_t)(p.t * p.total());
            a.mask_heads = p.mask == add_mask::full_f16 ? p.heads_q : 1;
            if (!mask.empty())
                a.mask = p.mask == add_mask::full_f16 ? &mask[(size_t)b * p.heads_q * one]
                                                      : mask.data();
            a.sinks = p.sinks ? sinks_host.data() : nullptr;
            a.out = &out[(size_t)(b * p.t * p.heads_q * p.dv)];
            EXPECT_EQ(xm_ref_attention(&a), XM_OK);
        }
        return out;
    }

    /* Fills the cache with `past` positions, runs the chunk, compares each row. */
    void check(const problem &p)
    {
        SCOPED_TRACE(std::string(p.name) + " B " + std::to_string(p.b) + " T " +
                     std::to_string(p.t) + " past " + std::to_string(p.past) + " D " +
                     std::to_string(p.d) + " DV " + std::to_string(p.dv));
        create(p);
        state s(p);
        std::vector<float> q = random_floats((size_t)(p.b * p.t * p.heads_q * p.d), 4);
        if (p.element == XM_F16)
            for (float &f : q)
                f = xm_half_to_float(xm_float_to_half(f));
        std::vector<int64_t> keys;
        std::vector<float> mask;
        std::unique_ptr<tensor> key_tensor, mask_tensor;
        const xm_element key_types[] = {XM_DYNAMIC, XM_I64, XM_I32, XM_U8};
        if (p.keys != key_mask::none) {
            for (int64_t i = 0; i < p.b * p.total(); i++)
                keys.push_back(i % p.total() >= 3 && (p.pads_left || i % 7 != 0));
            key_tensor = std::make_unique<tensor>(
                key_types[(int)p.keys], std::vector<int64_t>{p.b, p.total()}, keys);
        }
        if (p.mask != add_mask::none) {
            bool full = p.mask == add_mask::full_f16;
            int64_t mb = full ? p.b : 1, mh = full ? p.heads_q : 1;
            mask_tensor = std::make_unique<tensor>(
                full ? XM_F16 : XM_F32, std::vector<int64_t>{mb, mh, p.t, p.total()},
                random_floats((size_t)(mb * mh * p.t * p.total()), 5));
            mask = mask_tensor->rounded();
        }
        if (p.past > 0)
            chunk(s, random_floats((size_t)(p.b * p.past * p.heads_q * p.d), 6), 0,
                  p.past);
        std::vector<float> got =
            chunk(s, q, p.past, p.t, key_tensor.get(), mask_tensor.get());
        std::vector<float> want = reference(s, q, keys, mask);
        xm_element precision = p.cache == XM_I8 ? XM_I8 : p.element;
        EXPECT_TRUE(rows_of_norm(got, want, p.dv, precision));
    }

    /* x[B, T, heads, d] as the kernels must leave it; tables [B|1, T, rotated]. */
    std::vector<float> prepared(const problem &p, const std::vector<float> &x,
                                uint64_t heads, uint64_t d, const std::vector<float> *g,
                                const std::vector<float> *cos,
                                const std::vector<float> *sin)
    {
        std::vector<float> y = x, z = x;
        uint64_t tokens = (uint64_t)p.t, n = tokens * heads * d;
        if (g)
            xm_ref_rms_norm(x.data(), g->data(), (uint64_t)p.b * tokens * heads, d,
                            epsilon, y.data());
        z = y;
        for (uint64_t b = 0; cos && b < (uint64_t)p.b; b++) {
            uint64_t at = p.shared_tables ? 0 : b * tokens * (uint64_t)p.rotated;
            xm_ref_rope(&y[b * n], &(*cos)[at], &(*sin)[at], tokens, heads, d,
                        (uint64_t)p.rotated, &z[b * n]);
        }
        return z;
    }

    /* A first chunk whose inputs are normed and rotated, row by row against the formulas. */
    void check_inputs(const problem &p)
    {
        SCOPED_TRACE(std::string(p.name) + " T " + std::to_string(p.t));
        create(p);
        state s(p);
        int64_t table_rows = (p.shared_tables ? 1 : p.b) * p.t;
        std::vector<float> angles =
            random_floats((size_t)(table_rows * std::max<int64_t>(p.rotated, 2)), 8);
        tensor cos(XM_F32,
                   {p.shared_tables ? 1 : p.b, p.t, std::max<int64_t>(p.rotated, 2)},
                   angles);
        std::reverse(angles.begin(), angles.end());
        tensor sin(XM_F32,
                   {p.shared_tables ? 1 : p.b, p.t, std::max<int64_t>(p.rotated, 2)},
                   angles);
        std::vector<float> c = cos.rounded(), n = sin.rounded();
        const std::vector<float> *tables[] = {p.rotated ? &c : nullptr,
                                              p.rotated ? &n : nullptr};
        tensor q(p.element, {p.b, p.t, p.heads_q, p.d},
                 random_floats((size_t)(p.b * p.t * p.heads_q * p.d), 4));
        if (p.keeps_cache) {
            problem plain = p;
            plain.q_norm = false;
            create(plain);
            chunk(s, q.rounded(), 0, p.t);
            create(p);
        }
        tensor k(p.element, {p.b, p.t, p.heads_kv, p.d}, s.k),
            v(p.element, {p.b, p.t, p.heads_kv, p.dv}, s.v);
        tensor table(XM_I32, {p.b, s.max_pages}, s.pages);
        tensor out(p.element, {p.b, p.t, p.heads_q, p.dv});
        xm_operand o[XM_ATTENTION_N_OPERANDS] = {};
        o[XM_ATTENTION_Q] = q.operand();
        if (!p.keeps_cache) {
            o[XM_ATTENTION_K] = k.operand();
            o[XM_ATTENTION_V] = v.operand();
        }
        o[XM_ATTENTION_K_CACHE] = s.k_cache.operand();
        o[XM_ATTENTION_V_CACHE] = s.v_cache.operand();
        if (p.cache == XM_I8) {
            o[XM_ATTENTION_K_SCALE] = s.k_scale.operand();
            o[XM_ATTENTION_V_SCALE] = s.v_scale.operand();
        }
        o[XM_ATTENTION_TABLE] = table.operand();
        if (p.rotated) {
            o[XM_ATTENTION_COS] = cos.operand();
            o[XM_ATTENTION_SIN] = sin.operand();
        }
        o[XM_ATTENTION_OUT] = out.operand();
        enqueue(o, 0);
        std::vector<float> before = q.rounded();
        EXPECT_EQ(q.read(), before) << "an operand was changed";
        s.k = prepared(p, k.rounded(), p.heads_kv, p.d,
                       p.k_norm && !p.keeps_cache ? &gamma[1] : nullptr,
                       p.keeps_cache ? nullptr : tables[0], tables[1]);
        s.v = prepared(p, v.rounded(), p.heads_kv, p.dv, p.v_norm ? &gamma[2] : nullptr,
                       nullptr, nullptr);
        std::vector<float> want =
            reference(s,
                      prepared(p, before, p.heads_q, p.d, p.q_norm ? &gamma[0] : nullptr,
                               tables[0], tables[1]),
                      {}, {});
        /* normed values are larger than one: so is their rounding */
        EXPECT_TRUE(
            rows_close(out.read(), want, p.dv, p.cache == XM_I8 ? XM_I8 : p.element));
    }
};

std::vector<problem>
problems(bool prompt)
{
    std::vector<problem> all;
    const int64_t prompt_tokens[] = {5, 17, 33}, few_tokens[] = {1, 2, 4};
    for (int64_t past : {0, 1, 31, 32, 33, 100})
        for (int64_t t : prompt ? prompt_tokens : few_tokens)
            all.push_back(make("plain", past % 2 ? 3 : 1, t, past));
    const int64_t t = prompt ? 17 : 2;
    problem p = make("window", 1, t, 100);
    p.window = 8;
    all.push_back(p);
    p.window = 32;
    p.t = prompt ? 33 : 1;
    all.push_back(p);
    p = make("f16 cache, one head", 3, t, 33);
    p.heads_q = p.heads_kv = 1;
    p.d = 128;
    p.dv = 80;
    p.element = p.cache = XM_F16;
    p.page = 32;
    all.push_back(p);
    p = make("uneven heads, odd dimensions", 1, t, 31);
    p.heads_q = 6;
    p.heads_kv = 3;
    p.d = 80;
    p.dv = 20;
    p.sinks = true;
    p.soft_cap = 2.0f;
    all.push_back(p);
    p = make("masks", 3, t, 33);
    p.keys = key_mask::i64;
    p.mask = add_mask::full_f16;
    all.push_back(p);
    p.causal = false;
    p.keys = key_mask::i32;
    p.mask = add_mask::shared_f32;
    p.sinks = true;
    all.push_back(p);
    p = make("long, one head", 1, 1, 600); /* decode cuts these keys */
    p.heads_q = p.heads_kv = 1;
    p.cache = XM_F16;
    p.sinks = true;
    if (!prompt)
        all.push_back(p);
    return all;
}

/* Every row of K and V has a scale of its own. */
problem
in_eight_bits(int64_t t, int64_t past)
{
    problem p = make("i8 cache", past > 200 ? 1 : 3, t, past);
    p.cache = XM_I8;
    p.keys = key_mask::u8;
    return p;
}

/* The problem as the kernel for matrix engines takes it. */
problem
in_tiles(problem p)
{
    p.d = (p.d + 63) / 64 * 64;
    p.dv = (p.dv + 15) / 16 * 16;
    p.element = p.cache = XM_F16;
    return p;
}

TEST_F(Attention, EveryPromptVariantAgreesWithTheReference)
{
    const std::vector<problem> all = problems(true);
    for_rows(xm_attention_prompt_table, all.size(), 2,
             [&](const xm_variant &row, size_t i) {
                 check(row.caps & XM_CAP_DPAS ? in_tiles(all[i]) : all[i]);
                 return true;
             });
}

/* Heads in one part and in several, queries that do not fill the lanes, soft caps, sinks,
 * padding. */
TEST_F(Attention, MatrixEnginesTakeHeadsOfEverySize)
{
    const char *const name = "attention_prompt_dpas";
    if (!xm_device_really_has(xm_engine_info(engine),
                              XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE))
        GTEST_SKIP() << "no sub-groups of a required size";
    force("attention_prompt", name);
    const std::pair<uint32_t, uint32_t> heads[] = {{256, 256}, {192, 144}};
    sample::deck(std::size(heads)).deal(1, [&](size_t i) {
        const auto &[d, dv] = heads[i];
        problem p = in_tiles(make("heads", 1, 5, 33));
        p.d = d;
        p.dv = dv;
        p.heads_q = 3;
        p.heads_kv = 1;
        p.sinks = d % 128 == 0;
        p.soft_cap = dv % 128 ? 3.0f : 0.0f;
        p.keys = d % 128 ? key_mask::none : key_mask::i64;
        p.pads_left = true; /* tiles with padding come before tiles without */
        check(p);
        return true;
    });
}

TEST_F(Attention, MatrixEnginesRefuseWhatIsNotInTiles)
{
    const xm_variant *row = nullptr;
    for (size_t v = 0; v < xm_attention_prompt_table.n; v++)
        if (xm_attention_prompt_table.rows[v].caps & XM_CAP_DPAS)
            row = &xm_attention_prompt_table.rows[v];
    ASSERT_NE(row, nullptr);
    xm_attention_desc good = {};
    good.d = good.dv = 128;
    good.page_tokens = 32;
    good.element = good.cache = XM_F16;
    EXPECT_EQ(row->refuses(&good), nullptr);
    const std::pair<const char *, void (*)(xm_attention_desc &)> wrong[] = {
        {"of f16", [](xm_attention_desc &d) { d.element = XM_F32; }},
        {"of f16", [](xm_attention_desc &d) { d.cache = XM_I8; }},
        {"whole tiles", [](xm_attention_desc &d) { d.d = 80; }},
        {"whole tiles", [](xm_attention_desc &d) { d.dv = 20; }},
        {"whole tiles", [](xm_attention_desc &d) { d.page_tokens = 8; }},
        {"above 256", [](xm_attention_desc &d) { d.dv = 272; }},
    };
    for (const auto &[why, change] : wrong) {
        xm_attention_desc d = good;
        change(d);
        ASSERT_NE(row->refuses(&d), nullptr) << why;
        EXPECT_NE(std::string(row->refuses(&d)).find(why), std::string::npos);
    }
}

TEST_F(Attention, EveryDecodeVariantAgreesWithTheReference)
{
    const std::vector<problem> all = problems(false);
    for_rows(xm_attention_decode_table, all.size(), 3, [&](const xm_variant &, size_t i) {
        check(all[i]);
        return true;
    });
}

/* check() compares them; heads that are a part each, and two that are one together. */
TEST_F(Attention, FewTokensArePreparedForTheirReader)
{
    if (xm_engine_info(engine)->kind != XM_DEVICE_CPU)
        GTEST_SKIP() << "rows are prepared for CPU devices";
    for (uint32_t dv : {64, 128}) {
        for (int64_t past : {0, 600}) {
            for (int64_t tokens : {1, 3}) {
                problem p = make("prepared", 1, tokens, past);
                p.element = p.cache = XM_F16;
                p.heads_q = 2;
                p.heads_kv = 1;
                p.dv = dv;
                rows_prepared = 0;
                check(p);
                EXPECT_GE(rows_prepared, (uint64_t)tokens);
            }
        }
    }
}

TEST_F(Attention, EveryCombineVariantJoinsPartitions)
{
    for (size_t v = 0; v < xm_attention_combine_table.n; v++) {
        const xm_variant *row = &xm_attention_combine_table.rows[v];
        if (xm_variant_refusal(row, xm_engine_info(engine), nullptr))
            continue;
        SCOPED_TRACE(row->name);
        force("attention_combine", row->name);
        problem p = make("long", 1, 1, 600);
        p.heads_q = p.heads_kv = 1; /* so little work is cut on every device */
        p.sinks = true;
        p.dv = 20;
        check(p);
        p.window = 400;
        p.cache = XM_I8;
        check(p);
    }
}

TEST_F(Attention, EveryVariantReadsTheScaleOfEachRow)
{
    for_rows(xm_attention_prompt_table, 1, 1, [&](const xm_variant &row, size_t) {
        if (!(row.caps & XM_CAP_DPAS))
            check(in_eight_bits(17, 100));
        return true;
    });
    const int64_t pasts[] = {100, 600}; /* one of which decode cuts */
    for_rows(xm_attention_decode_table, std::size(pasts), 2,
             [&](const xm_variant &, size_t i) {
                 check(in_eight_bits(2, pasts[i]));
                 return true;
             });
}

TEST(AttentionPartitions, AreAsManyAsTheDeviceNeedsAndNoneIsShort)
{
    static const struct {
        xm_device_kind kind;
        uint32_t compute_units;
        uint64_t units, first, end, keys, n;
    } cuts[] = {
        {XM_DEVICE_CPU, 2, 4, 0, 100000, 100000, 1}, /* two units a core as it is */
        {XM_DEVICE_CPU, 2, 1, 0, 255, 256, 1},
        {XM_DEVICE_CPU, 2, 1, 0, 256, 128, 2},
        {XM_DEVICE_CPU, 2, 1, 1000, 1256, 128, 2},
        {XM_DEVICE_CPU, 2, 1, 0, 4096, 1024, 4},
        {XM_DEVICE_CPU, 16, 4, 0, 4096, 512, 8},
        {XM_DEVICE_GPU, 96, 16, 0, 1, 32, 1},
        {XM_DEVICE_GPU, 96, 16, 0, 127, 128, 1},
        {XM_DEVICE_GPU, 96, 16, 0, 128, 64, 2},
        {XM_DEVICE_GPU, 96, 16, 0, 1000, 96, 11}, /* whole tiles of 32 keys */
        {XM_DEVICE_GPU, 96, 16, 0, 1 << 20, 43712, 24},
        {XM_DEVICE_GPU, 512, 16, 0, 1 << 20, 16384, 64}, /* the bound of scratch */
        {XM_DEVICE_GPU, 96, 400, 0, 1 << 20, 1 << 20, 1},
        {XM_DEVICE_OTHER, 0, 1, 0, 1000, 1024, 1}, /* a driver that counts none */
    };
    for (const auto &c : cuts) {
        SCOPED_TRACE(std::to_string(c.compute_units) + " compute units, " +
                     std::to_string(c.units) + " units, keys to " +
                     std::to_string(c.end));
        xm_device_info device = {};
        device.kind = c.kind;
        device.compute_units = c.compute_units;
        xm_attention_partitions p =
            xm_attention_cut_keys(&device, c.units, c.first, c.end);
        EXPECT_EQ(p.first_key, c.first);
        EXPECT_EQ(p.keys, c.keys);
        EXPECT_EQ(p.n, c.n);
    }
}

TEST_F(Attention, OnePartitionTakesNoScratch)
{
    problem p = make("short", 1, 1, 0);
    create(p);
    xm_operand o[XM_ATTENTION_N_OPERANDS] = {};
    o[XM_ATTENTION_Q] = {nullptr, XM_F32, 4, {1, 1, p.heads_q, p.d}};
    o[XM_ATTENTION_TABLE] = {nullptr, XM_I32, 2, {1, 1 << 20}};
    for (uint64_t past : {0u, 63u, 126u}) {
        xm_attention_run a = {past};
        uint64_t bytes = 1;
        ASSERT_XM_OK(xm_attention_plan(attention.p, o, &a, &bytes, &err));
        EXPECT_EQ(bytes, 0u);
    }
}

const xm_element caches[] = {XM_F32, XM_F16, XM_I8};

TEST_F(Attention, EveryCacheWriterKeepsRows)
{
    for_rows(xm_attention_inputs_table, std::size(caches), 1,
             [&](const xm_variant &, size_t i) {
                 problem p = make(xm_element_text(caches[i]), 2, 5, 17);
                 p.cache = caches[i];
                 p.d = 72;
                 p.dv = 20;
                 p.element = p.cache == XM_F16 ? XM_F16 : XM_F32;
                 check(p);
                 return true;
             });
}

TEST_F(Attention, EveryVariantNormsAndRotatesItsInputs)
{
    for_rows(xm_attention_inputs_table, std::size(caches), 1,
             [&](const xm_variant &, size_t i) {
                 problem p = make(xm_element_text(caches[i]), 2, 3, 0);
                 p.cache = caches[i];
                 p.element = p.cache == XM_F16 ? XM_F16 : XM_F32;
                 p.dv = 40;
                 p.q_norm = p.k_norm = true;
                 p.rotated = 64;
                 check_inputs(p);
                 p.t = 9; /* the way of a prompt */
                 p.d = 36;
                 p.rotated = 20;
                 p.v_norm = p.shared_tables = true;
                 check_inputs(p);
                 return true;
             });
}

TEST_F(Attention, EveryVariantTakesPartOfTheInputs)
{
    for_rows(xm_attention_inputs_table, 2, 1, [&](const xm_variant &, size_t i) {
        problem p = make("rotated only", 1, 1, 0);
        p.rotated = 32;
        if (i == 1) {
            p.name = "q normed only, K and V of another layer";
            p.rotated = 0;
            p.q_norm = true;
            p.keeps_cache = true;
        }
        check_inputs(p);
        return true;
    });
}

TEST_F(Attention, RefusesTablesOfAnotherSize)
{
    problem p = make("tables", 1, 2, 0);
    create(p);
    state s(p);
    tensor cos(XM_F32, {1, 3, 8}, random_floats(24, 1));
    tensor q(p.element, {1, 2, p.heads_q, p.d}), out(p.element, {1, 2, p.heads_q, p.dv});
    tensor table(XM_I32, {1, s.max_pages}, s.pages);
    xm_operand o[XM_ATTENTION_N_OPERANDS] = {};
    o[XM_ATTENTION_Q] = q.operand();
    o[XM_ATTENTION_K_CACHE] = s.k_cache.operand();
    o[XM_ATTENTION_V_CACHE] = s.v_cache.operand();
    o[XM_ATTENTION_TABLE] = table.operand();
    o[XM_ATTENTION_COS] = o[XM_ATTENTION_SIN] = cos.operand();
    o[XM_ATTENTION_OUT] = out.operand();
    xm_attention_run a = {0};
    EXPECT_EQ(xm_attention_enqueue(attention.p, o, &a, &run, &err), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("cos and sin"), std::string::npos);
}

TEST_F(Attention, ChunkedPromptEqualsTheWholePrompt)
{
    problem p = make("chunked", 2, 40, 0);
    create(p);
    std::vector<float> q = random_floats((size_t)(p.b * p.t * p.heads_q * p.d), 4);
    state whole(p), parts(p);
    std::vector<float> want = chunk(whole, q, 0, 40);
    for (auto [first, n] : {std::pair<int64_t, int64_t>{0, 17}, {17, 3}, {20, 20}}) {
        std::vector<float> rows = part(q, p, p.t, p.heads_q * p.d, first, n);
        EXPECT_TRUE(rows_match(chunk(parts, rows, first, n),
                               part(want, p, p.t, p.heads_q * p.dv, first, n), p.dv,
                               XM_F32));
    }
}

TEST_F(Attention, ARowThatSeesNothingIsZero)
{
    for (int64_t t : {int64_t{1}, decode_tokens + 1}) {
        problem p = make("nothing seen", 1, t, 0);
        create(p);
        state s(p);
        std::vector<float> q = random_floats((size_t)(t * p.heads_q * p.d), 4);
        tensor keys(XM_I64, {1, t}, std::vector<int64_t>((size_t)t, 0));
        std::vector<float> got = chunk(s, q, 0, t, &keys);
        EXPECT_EQ(got, std::vector<float>(got.size(), 0.0f));
    }
}

TEST_F(Attention, ScratchOfDecodeIsBoundedAndThatOfPromptIsNone)
{
    problem p = make("plan", 1, 1, 0);
    create(p);
    xm_operand o[XM_ATTENTION_N_OPERANDS] = {};
    o[XM_ATTENTION_Q] = {nullptr, XM_F32, 4, {1, 1, p.heads_q, p.d}};
    o[XM_ATTENTION_TABLE] = {nullptr, XM_I32, 2, {1, 1 << 20}};
    uint64_t bytes = 0;
    for (uint64_t past : {1000u, 100000u, 10000000u}) {
        xm_attention_run a = {past};
        ASSERT_XM_OK(xm_attention_plan(attention.p, o, &a, &bytes, &err));
        EXPECT_LE(bytes, 64u * p.heads_q * (p.dv + 2) * 4 + 4096);
    }
    o[XM_ATTENTION_Q].dim[1] = 512;
    xm_attention_run a = {100000};
    ASSERT_XM_OK(xm_attention_plan(attention.p, o, &a, &bytes, &err));
    EXPECT_EQ(bytes, 0u);
}

TEST_F(Attention, CopiesAPage)
{
    tensor cache(XM_F16, {3, 2, 4, 8}, random_floats(3 * 64, 1));
    std::vector<float> before = cache.rounded();
    xm_operand o = cache.operand();
    ASSERT_XM_OK(xm_attention_copy_page(&o, 2, 0, queue, &err));
    std::vector<float> after = cache.read();
    std::copy_n(before.begin() + 128, 64, before.begin());
    EXPECT_EQ(after, before);
    EXPECT_EQ(xm_attention_copy_page(&o, 3, 0, queue, &err), XM_INVALID);
}

TEST_F(Attention, RefusesABlockTableThatIsTooShort)
{
    problem p = make("short table", 1, 1, 0);
    create(p);
    xm_operand o[XM_ATTENTION_N_OPERANDS] = {};
    o[XM_ATTENTION_Q] = {nullptr, XM_F32, 4, {1, 1, p.heads_q, p.d}};
    o[XM_ATTENTION_TABLE] = {nullptr, XM_I32, 2, {1, 2}};
    xm_attention_run a = {32};
    uint64_t bytes = 0;
    EXPECT_EQ(xm_attention_plan(attention.p, o, &a, &bytes, &err), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("block table"), std::string::npos);
}

} // namespace
