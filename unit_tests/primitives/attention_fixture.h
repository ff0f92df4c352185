/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention problems on a KV cache whose pages lie in slabs, the reference's results for them,
 * and the fixture that runs and compares them.
 */
#ifndef XM_UNIT_TESTS_PRIMITIVES_ATTENTION_FIXTURE_H
#define XM_UNIT_TESTS_PRIMITIVES_ATTENTION_FIXTURE_H

#include <algorithm>
#include <memory>
#include <numeric>

#include "primitives/attention/attention.h"
#include "primitives/attention/attention_partitions.h"
#include "primitives/tables.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/weight_fixture.h"

enum class key_mask { none, i64, i32, u8 };
enum class add_mask { none, shared_f32, full_f16 };

/* The lengths of one sequence: tokens in the cache, and tokens of this run. */
struct length {
    int64_t past, tokens;
};

struct problem {
    const char *name;
    int64_t b = 1, t = 1, past = 0;
    uint32_t heads_q = 8, heads_kv = 2, d = 64, dv = 64, page = 16;
    xm_element element = XM_F32, cache = XM_F32;
    xm_element v_cache = XM_DYNAMIC; /* XM_DYNAMIC: as `cache` */
    bool causal = true;
    uint64_t window = 0;
    float soft_cap = 0, scale = 0; /* scale 0: 1 / sqrt(d) */
    bool sinks = false;
    key_mask keys = key_mask::none;
    add_mask mask = add_mask::none;
    /* The norms and the rotation of the inputs. `shared_tables`: one table of cosines and sines
     * for all sequences; else one for each. */
    bool q_norm = false, k_norm = false, v_norm = false, shared_tables = false;
    int64_t rotated = 0;
    /* K and V are in the cache before the run, whose only input is q. */
    bool keeps_cache = false;
    bool pads_left = false; /* the key mask hides only the first three keys */
    /* Sequences of different lengths. If set, they replace the b sequences of t tokens after
     * `past`; then b is 1 and t is the number of all tokens. */
    std::vector<length> ragged;
    /* Pages that no token's window reaches are missing in the page table. */
    bool gives_up_pages = false;

    float factor() const
    {
        return scale > 0 ? scale : 1.0f / std::sqrt((float)d);
    }
    xm_element value_cache() const
    {
        return v_cache == XM_DYNAMIC ? cache : v_cache;
    }
    int64_t total() const
    {
        return past + t;
    }
    std::vector<length> lengths() const
    {
        return ragged.empty() ? std::vector<length>((size_t)b, {past, t}) : ragged;
    }
    /* Returns the run that fills the cache first: the `past` tokens of each sequence, with no
     * past. */
    std::vector<length> before() const
    {
        std::vector<length> all = lengths();
        for (length &l : all)
            l = {0, l.past};
        return all;
    }
    int64_t most_keys() const
    {
        int64_t most = 0;
        for (const length &l : lengths())
            most = std::max(most, l.past + l.tokens);
        return most;
    }
};

inline int64_t
rows_of(const std::vector<length> &all)
{
    int64_t n = 0;
    for (const length &l : all)
        n += l.tokens;
    return n;
}

/* A run with more tokens than this takes the kernels for prompts. */
const int64_t decode_tokens = 4;

inline problem
make(const char *name, int64_t b, int64_t t, int64_t past)
{
    problem p;
    p.name = name;
    p.b = b;
    p.t = t;
    p.past = past;
    return p;
}

inline problem
make_ragged(const char *name, const std::vector<length> &lengths)
{
    problem p = make(name, 1, rows_of(lengths), 0);
    p.ragged = lengths;
    return p;
}

/* The host's description of the sequences of a run, as xm_attention_run has it. */
struct sequences {
    std::vector<int32_t> past, begins{0};
    xm_attention_run run;

    explicit sequences(const std::vector<length> &all, xm_buffer *const *slabs = nullptr)
    {
        for (const length &l : all) {
            past.push_back((int32_t)l.past);
            begins.push_back(begins.back() + (int32_t)l.tokens);
        }
        run = {(uint32_t)all.size(), past.data(), begins.data(), slabs};
    }
    sequences(const sequences &) = delete;
};

/* ---- cache elements of 4 and 8 bits ------------------------------------------------- */

/* Returns the value of scale code e. Codes are floats of 3 mantissa bits: 8 codes for each power
 * of two from 2^first on, less 2^first, so that code 0 is zero. */
inline float
scale_number(int e, int first)
{
    return (float)(std::ldexp(8 + e % 8, e / 8 + first - 3) - std::ldexp(1.0, first));
}

/* Returns the lowest scale code whose value is at least x, but at most `last`; 0 if x is below
 * 2^first / 128. x + 2^first is rounded to f32, as in the kernel. */
inline int
scale_not_below(float x, int first, int last)
{
    const float one = std::ldexp(1.0f, first);
    int e = 1;
    if (x < one / 128)
        return 0;
    while (e < last && std::ldexp(8.0f + (float)(e % 8), e / 8 + first - 3) < x + one)
        e++;
    return e;
}

/* A quantized block of 16 elements: the byte with its scale, the quantized and the decoded
 * elements. */
struct block_16 {
    uint8_t byte;
    int q[16];
    float value[16];
};

inline float
largest_of(const float *x, size_t n)
{
    float most = 0.0f;
    for (size_t i = 0; i < n; i++)
        most = std::max(most, std::fabs(x[i]));
    return most;
}

inline block_16
quantise_i8(const float *x, size_t n)
{
    block_16 b = {};
    b.byte = (uint8_t)scale_not_below(largest_of(x, n) * (1.0f / 127.0f), -23, 255);
    const float s = scale_number(b.byte, -23), inverse = b.byte ? 1.0f / s : 0.0f;
    for (size_t i = 0; i < n; i++) {
        b.q[i] = (int)std::clamp(std::nearbyint(x[i] * inverse), -128.0f, 127.0f);
        b.value[i] = (float)b.q[i] * s;
    }
    return b;
}

/* Returns level q (0 to 15) of the cubic u4 levels, which reach further up if `up`, else further
 * down. */
inline float
level_of(int q, bool up)
{
    const double n = 2 * q - 15 + (up ? 0.25 : -0.25);
    return (float)(n * (n * n + 512));
}

/* Returns the nearest of the 16 levels by comparing all; of two equally near, the lower. */
inline int
nearest_level(float x, bool up)
{
    int best = 0;
    for (int q = 1; q < 16; q++)
        if (std::fabs((double)x - level_of(q, up)) <
            std::fabs((double)x - level_of(best, up)))
            best = q;
    return best;
}

inline block_16
quantise_u4(const float *x)
{
    const int first = scale_not_below(largest_of(x, 16) * (1.0f / 11055.0f), -19, 127);
    block_16 best = {};
    float least = INFINITY;
    for (int tried : {first, first + 1, first - 1})
        for (bool up : {false, true}) {
            const int e = first ? std::clamp(tried, 1, 127) : 0;
            const float s = scale_number(e, -19), inverse = e ? 1.0f / s : 0.0f;
            int squares = 0;
            block_16 b = {};
            b.byte = (uint8_t)(2 * e + up);
            for (int i = 0; i < 16; i++) {
                b.q[i] = nearest_level(x[i] * inverse, up);
                b.value[i] = level_of(b.q[i], up) * s;
                const float off = x[i] * inverse - level_of(b.q[i], up);
                const int whole = (int)std::nearbyint(std::clamp(off, -8191.0f, 8191.0f));
                squares += whole * whole;
            }
            const float worth = (float)squares * (s * s);
            if (worth < least) {
                best = b;
                least = worth;
            }
        }
    return best;
}

/* Returns rows of n elements after a round trip through a cache of type u4 or i8: rotated,
 * quantized in blocks of 16, decoded, rotated back. Returns them unchanged for other types. */
inline std::vector<float>
cached(std::vector<float> x, xm_element cache, size_t n)
{
    if (cache != XM_U4 && cache != XM_I8)
        return x;
    xm_ref_rotate(x.data(), x.size() / n, n);
    for (size_t row = 0; row < x.size(); row += n)
        for (size_t i = 0; i < n; i += 16) {
            float *at = &x[row + i];
            const size_t here = std::min<size_t>(16, n - i);
            const block_16 b = cache == XM_U4 ? quantise_u4(at) : quantise_i8(at, here);
            std::copy(b.value, b.value + here, at);
        }
    xm_ref_rotate(x.data(), x.size() / n, n);
    return x;
}

/* A KV cache on the device and its contents on the host. Its pages are scattered over all slabs
 * but one, which is missing. */
struct state {
    const problem &p;
    xm_kv_page page = {};
    std::vector<float> k, v;    /* the sequences, [past + tokens, Hkv, D] each */
    std::vector<int64_t> first; /* first position of each sequence in k, v */
    std::unique_ptr<tensor> slab[XM_KV_SLABS];
    xm_buffer *slabs[XM_KV_SLABS] = {};
    std::vector<std::vector<int64_t>> pages; /* page-table entries of each sequence */
    int64_t nothing = 0;                     /* page-table entry of a page of NaN */

    explicit state(const problem &problem_) : p(problem_)
    {
        int64_t positions = 0, n_pages = 1, next = 0;
        std::vector<int64_t> words;
        for (const length &l : p.lengths()) {
            first.push_back(positions);
            positions += l.past + l.tokens;
            n_pages += pages_for(l);
        }
        k = random_floats((size_t)(positions * p.heads_kv * p.d), 1);
        v = random_floats((size_t)(positions * p.heads_kv * p.dv), 2);
        vary(k, p.d, {1, 2, 0.25f, 4, 0.5f});
        vary(v, p.dv, {0.25f, 8, 1, 0.0625f, 2, 16, 0.5f});
        round(k, p.cache);
        round(v, p.value_cache());
        make_slabs(n_pages, words);
        nothing = words[(size_t)next++];
        for (const length &l : p.lengths()) {
            const auto at = words.begin() + next;
            pages.emplace_back(at, at + pages_for(l));
            next += pages_for(l);
            pages.back().push_back(-1); /* an entry that no kernel may read */
        }
    }
    int64_t pages_for(const length &l) const
    {
        return (l.past + l.tokens + p.page - 1) / p.page;
    }
    void make_slabs(int64_t n_pages, std::vector<int64_t> &words)
    {
        xm_attention_desc d = {};
        d.heads_kv = p.heads_kv;
        d.d = p.d;
        d.dv = p.dv;
        d.page_tokens = p.page;
        d.k_cache = p.cache;
        d.v_cache = p.value_cache();
        EXPECT_TRUE(xm_attention_page(&d, &page));
        const int64_t each = n_pages / (XM_KV_SLABS - 1) + 1, missing = n_pages % 8;
        for (int64_t i = 0; i < XM_KV_SLABS; i++) {
            if (i == missing)
                continue;
            const int64_t bytes = each * (int64_t)page.bytes;
            slab[i] = std::make_unique<tensor>(XM_U8, std::vector<int64_t>{bytes});
            slabs[i] = slab[i]->buffer();
            for (int64_t j = 0; j < each; j++)
                words.push_back(i << XM_KV_SLAB_SHIFT | j);
        }
        std::shuffle(words.begin(), words.end(), std::mt19937(3));
    }
    /* Returns how many pages the window of the sequence's first token no longer reaches. */
    int64_t given_up(size_t i, const length &l) const
    {
        const int64_t unseen = l.past + 1 - (int64_t)p.window;
        return p.gives_up_pages && p.window && unseen > 0
                   ? std::min(unseen / p.page, (int64_t)pages[i].size())
                   : 0;
    }
    /* Scales each row by another factor than its neighbours, so that reading a wrong row shows. */
    static void vary(std::vector<float> &x, size_t row, const std::vector<float> &sizes)
    {
        for (size_t i = 0; i < x.size(); i++)
            x[i] *= sizes[i / row % sizes.size()];
    }
    void round(std::vector<float> &x, xm_element cache) const
    {
        for (float &f : x) {
            if (p.element == XM_F16 || cache == XM_F16)
                f = xm_half_to_float(xm_float_to_half(f));
        }
    }
};

/* Returns tokens [first, first + n) of every sequence of x[B, tokens, row]. */
inline std::vector<float>
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

/* A run of some sequences of a state: sequence which[i] with lengths[i], and their tables on the
 * device. */
struct batch {
    const state &s;
    const std::vector<length> lengths;
    const std::vector<size_t> which;
    sequences host;
    std::vector<int64_t> words, word_begins;
    /* past lengths, row begins, page table, page begins */
    std::unique_ptr<tensor> tables[4];
    /* The page table behind its first entries, which kernels must not read: they name the page of
     * NaN. */
    xm_buffer *from_first = nullptr;

    batch(const state &state_, const std::vector<length> &lengths_,
          const std::vector<size_t> &which_)
        : s(state_), lengths(lengths_), which(which_), host(lengths, s.slabs)
    {
        const int64_t poison = (int64_t)xm_engine_info(device::get().engine)->base_align;
        words.assign((size_t)poison, s.nothing);
        for (size_t i = 0; i < which.size(); i++) {
            const std::vector<int64_t> &all = s.pages[which[i]];
            const int64_t gone = s.given_up(which[i], lengths[i]);
            word_begins.push_back((int64_t)words.size() - poison - gone);
            words.insert(words.end(), all.begin() + gone, all.end());
        }
        word_begins.push_back((int64_t)words.size() - poison);
        put_list(0, {host.past.begin(), host.past.end()});
        put_list(1, {host.begins.begin(), host.begins.end()});
        put_list(2, words);
        put_list(3, word_begins);
        xm_error err = {};
        EXPECT_EQ(xm_buffer_view(tables[2]->buffer(), (uint64_t)poison * 4,
                                 (words.size() - (size_t)poison) * 4, &from_first, &err),
                  XM_OK)
            << err.text;
    }
    ~batch()
    {
        xm_buffer_unref(from_first);
    }
    batch(const batch &) = delete;

    void operands(xm_operand *o) const
    {
        for (int i = 0; i < 4; i++)
            o[XM_ATTENTION_PAST_LENS + i] = tables[i]->operand();
        o[XM_ATTENTION_BLOCK_INDICES].buffer = from_first;
        o[XM_ATTENTION_BLOCK_INDICES].dim[0] = (int64_t)(xm_buffer_bytes(from_first) / 4);
    }
    /* Returns the rows of all tokens of this run, from x with rows for every position of the
     * state. */
    std::vector<float> rows(const std::vector<float> &x, size_t row) const
    {
        std::vector<float> out;
        for (size_t i = 0; i < which.size(); i++) {
            const size_t from = (size_t)(s.first[which[i]] + lengths[i].past) * row;
            const auto at = x.begin() + (long)from;
            out.insert(out.end(), at, at + (long)((size_t)lengths[i].tokens * row));
        }
        return out;
    }

  private:
    void put_list(int i, const std::vector<int64_t> &list)
    {
        tables[i] = std::make_unique<tensor>(
            XM_I32, std::vector<int64_t>{(int64_t)list.size()}, list);
    }
};

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
        desc.scale = p.factor();
        desc.soft_cap = p.soft_cap;
        desc.causal = p.causal;
        desc.window = p.window;
        desc.page_tokens = p.page;
        desc.element = p.element;
        desc.k_cache = p.cache;
        desc.v_cache = p.value_cache();
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
        create_for_reader(desc, p);
    }

    /* Whether the test asks for prepared rows: only for few tokens, because every weight format
     * that is tried builds the kernels anew; and not if XM_FORCE names an attention kernel other
     * than a _vec one. */
    static bool may_prepare(const problem &p)
    {
        const std::string forced = getenv("XM_FORCE") ? getenv("XM_FORCE") : "";
        const bool by_other = forced.find("_vec") == std::string::npos &&
                              (forced.find("attention_decode=") == 0 ||
                               forced.find("attention_combine=") == 0);
        return !by_other && rows_of(p.lengths()) <= XM_FEW_TOKENS;
    }

    /* Creates the attention so that it also writes prepared rows for a projection. Tries three
     * weight formats and takes the first that the kernels can prepare rows for; else `reader` is
     * NULL. */
    void create_for_reader(xm_attention_desc desc, const problem &p)
    {
        reader.reset();
        if (!may_prepare(p)) {
            xm_primitive_destroy(attention.p);
            attention.p = nullptr;
            ASSERT_XM_OK(xm_attention_create(engine, &desc, &attention.p, &err));
            return;
        }
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

    /* Fails unless the prepared rows that attention wrote equal those made from its result. */
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
    /* The weight of the projection that reads the result; NULL: it reads plain rows. */
    std::unique_ptr<test_weight> reader;
    xm_rows_form form = {};
    uint64_t rows_prepared = 0;

    /* Runs some sequences with these rows of q and returns their results. */
    std::vector<float> chunk(const batch &b, const std::vector<float> &q_rows,
                             tensor *keys = nullptr, tensor *mask = nullptr)
    {
        const problem &p = b.s.p;
        const int64_t n = rows_of(b.lengths), dense = p.ragged.empty() ? p.b : 1;
        tensor q(p.element, {dense, n / dense, p.heads_q, p.d}, q_rows);
        tensor k(p.element, {dense, n / dense, p.heads_kv, p.d},
                 b.rows(b.s.k, p.heads_kv * p.d));
        tensor v(p.element, {dense, n / dense, p.heads_kv, p.dv},
                 b.rows(b.s.v, p.heads_kv * p.dv));
        tensor out(p.element, {dense, n / dense, p.heads_q, p.dv});
        xm_operand o[XM_ATTENTION_N_OPERANDS] = {};
        o[XM_ATTENTION_Q] = q.operand();
        o[XM_ATTENTION_K] = k.operand();
        o[XM_ATTENTION_V] = v.operand();
        b.operands(o);
        if (keys)
            o[XM_ATTENTION_KEY_MASK] = keys->operand();
        if (mask)
            o[XM_ATTENTION_MASK] = mask->operand();
        o[XM_ATTENTION_OUT] = out.operand();
        const uint64_t rows = (uint64_t)n;
        if (!reader || rows > XM_FEW_TOKENS) {
            enqueue(o, b.host.run);
            return out.read();
        }
        tensor prepared(XM_I32, {(int64_t)rows, (int64_t)xm_prepared_words(
                                                    &form, reader->device->host.cols)});
        o[XM_ATTENTION_PREPARED] = prepared.operand();
        enqueue(o, b.host.run);
        expect_prepared(prepared, out, rows);
        return out.read();
    }
    /* Runs all sequences of the state. */
    std::vector<float> chunk(const state &s, const std::vector<length> &lengths,
                             const std::vector<float> &q_rows, tensor *keys = nullptr,
                             tensor *mask = nullptr)
    {
        std::vector<size_t> all(lengths.size());
        std::iota(all.begin(), all.end(), 0);
        return chunk(batch(s, lengths, all), q_rows, keys, mask);
    }

    void enqueue(const xm_operand *o, const xm_attention_run &a)
    {
        uint64_t bytes = 0;
        ASSERT_XM_OK(xm_primitive_plan(attention.p, o, &a, &bytes, &err));
        xm_buffer *scratch = nullptr;
        if (bytes) {
            ASSERT_XM_OK(xm_buffer_create(engine, XM_USE_DEVICE, bytes, &scratch, &err));
            ASSERT_XM_OK(xm_queue_fill(queue, scratch, 0, 0xff, bytes, &err));
        }
        run.scratch = scratch;
        run.sequences = &a;
        EXPECT_EQ(xm_primitive_run(attention.p, o, &run, &err), XM_OK) << err.text;
        xm_buffer_unref(scratch);
        run.scratch = nullptr;
        run.sequences = nullptr;
    }

    std::vector<float> reference(const state &s, const std::vector<float> &q,
                                 const std::vector<int64_t> &keys,
                                 const std::vector<float> &mask)
    {
        const problem &p = s.p;
        const std::vector<length> all = p.lengths();
        const size_t row = p.heads_q * p.dv, stride = keys.size() / all.size();
        const std::vector<float> k = cached(s.k, p.cache, p.d),
                                 v = cached(s.v, p.value_cache(), p.dv);
        std::vector<float> out((size_t)rows_of(all) * row);
        size_t begin = 0;
        for (size_t b = 0; b < all.size(); begin += (size_t)all[b++].tokens) {
            struct xm_ref_attention a = {};
            a.tokens = (uint64_t)all[b].tokens;
            a.past = (uint64_t)all[b].past;
            a.keys = a.past + a.tokens;
            a.heads_q = p.heads_q;
            a.heads_kv = p.heads_kv;
            a.d = p.d;
            a.dv = p.dv;
            a.scale = p.factor();
            a.soft_cap = p.soft_cap;
            a.causal = p.causal;
            a.window = p.window;
            a.q = &q[begin * p.heads_q * p.d];
            a.k = &k[(size_t)s.first[b] * p.heads_kv * p.d];
            a.v = &v[(size_t)s.first[b] * p.heads_kv * p.dv];
            a.key_mask = keys.empty() ? nullptr : &keys[b * stride];
            size_t one = (size_t)(a.tokens * a.keys);
            a.mask_heads = p.mask == add_mask::full_f16 ? p.heads_q : 1;
            if (!mask.empty())
                a.mask = p.mask == add_mask::full_f16 ? &mask[(size_t)b * p.heads_q * one]
                                                      : mask.data();
            a.sinks = p.sinks ? sinks_host.data() : nullptr;
            a.out = &out[begin * row];
            EXPECT_EQ(xm_ref_attention(&a), XM_OK);
        }
        return out;
    }

    /* The inputs of a problem other than K and V: q and the masks. */
    struct question {
        std::vector<float> q, mask;
        std::vector<int64_t> keys;
        std::unique_ptr<tensor> key_tensor, mask_tensor;

        explicit question(const problem &p)
            : q(random_floats((size_t)(rows_of(p.lengths()) * p.heads_q * p.d), 4))
        {
            const int64_t n = (int64_t)p.lengths().size();
            if (p.element == XM_F16)
                for (float &f : q)
                    f = xm_half_to_float(xm_float_to_half(f));
            if (p.keys != key_mask::none)
                make_key_mask(p, n, p.most_keys() + (p.ragged.empty() ? 0 : 3));
            if (p.mask != add_mask::none) {
                const bool full = p.mask == add_mask::full_f16;
                const length l = p.lengths()[0];
                const int64_t mb = full ? n : 1, mh = full ? p.heads_q : 1,
                              keys = l.past + l.tokens;
                mask_tensor = std::make_unique<tensor>(
                    full ? XM_F16 : XM_F32, std::vector<int64_t>{mb, mh, l.tokens, keys},
                    random_floats((size_t)(mb * mh * l.tokens * keys), 5));
                mask = mask_tensor->rounded();
            }
        }

      private:
        void make_key_mask(const problem &p, int64_t n, int64_t stride)
        {
            const xm_element types[] = {XM_DYNAMIC, XM_I64, XM_I32, XM_U8};
            for (int64_t i = 0; i < n * stride; i++)
                keys.push_back(i % stride >= 3 && (p.pads_left || i % 7 != 0));
            key_tensor = std::make_unique<tensor>(types[(int)p.keys],
                                                  std::vector<int64_t>{n, stride}, keys);
        }
    };

    /* Fills the cache with the past tokens of all sequences. */
    void fill(const state &s)
    {
        const std::vector<length> before = s.p.before();
        const int64_t rows = rows_of(before);
        if (rows > 0)
            chunk(s, before, random_floats((size_t)(rows * s.p.heads_q * s.p.d), 6));
    }

    /* Fills the cache, runs the sequences and compares each row with the reference. */
    void check(const problem &p)
    {
        SCOPED_TRACE(std::string(p.name) + " B " + std::to_string(p.b) + " T " +
                     std::to_string(p.t) + " past " + std::to_string(p.past) + " D " +
                     std::to_string(p.d) + " DV " + std::to_string(p.dv));
        create(p);
        state s(p);
        const question ask(p);
        fill(s);
        std::vector<float> got =
            chunk(s, p.lengths(), ask.q, ask.key_tensor.get(), ask.mask_tensor.get());
        EXPECT_TRUE(
            rows_of_norm(got, reference(s, ask.q, ask.keys, ask.mask), p.dv, p.element));
    }

    /* As check(), with all keys of the last sequence hidden: its rows must be zeros. */
    void check_hidden(const problem &p)
    {
        create(p);
        state s(p);
        const question ask(p);
        const int64_t n = (int64_t)p.ragged.size(), most = p.most_keys();
        std::vector<int64_t> keys((size_t)(n * most), 1);
        std::fill(keys.end() - (long)most, keys.end(), 0);
        tensor key_tensor(XM_U8, {n, most}, keys);
        fill(s);
        std::vector<float> got = chunk(s, p.ragged, ask.q, &key_tensor),
                           want = reference(s, ask.q, keys, {});
        EXPECT_TRUE(rows_of_norm(got, want, p.dv, p.element));
        EXPECT_EQ(want.back(), 0.0f);
    }

    /* Returns x[B, T, heads, d] normed with g (NULL: not) and rotated with the tables [B|1, T,
     * rotated] (NULL: not), as the kernels must. */
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

    /* Runs a first chunk whose inputs the kernels norm and rotate, and compares its rows with the
     * formulas. */
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
            chunk(s, p.lengths(), q.rounded());
            create(p);
        }
        tensor k(p.element, {p.b, p.t, p.heads_kv, p.d}, s.k),
            v(p.element, {p.b, p.t, p.heads_kv, p.dv}, s.v);
        tensor out(p.element, {p.b, p.t, p.heads_q, p.dv});
        std::vector<size_t> all(p.lengths().size());
        std::iota(all.begin(), all.end(), 0);
        const batch sequences(s, p.lengths(), all);
        xm_operand o[XM_ATTENTION_N_OPERANDS] = {};
        o[XM_ATTENTION_Q] = q.operand();
        if (!p.keeps_cache) {
            o[XM_ATTENTION_K] = k.operand();
            o[XM_ATTENTION_V] = v.operand();
        }
        sequences.operands(o);
        if (p.rotated) {
            o[XM_ATTENTION_COS] = cos.operand();
            o[XM_ATTENTION_SIN] = sin.operand();
        }
        o[XM_ATTENTION_OUT] = out.operand();
        enqueue(o, sequences.host.run);
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
        /* Normed values are larger than one, and so is their rounding error. A value that the
         * device normed may round to the other neighbour: few-bit caches get the tolerance of i8.
         */
        const bool few_bits = p.cache == XM_U4 || p.cache == XM_I8;
        EXPECT_TRUE(rows_close(out.read(), want, p.dv, few_bits ? XM_I8 : p.element));
    }
};

#endif
