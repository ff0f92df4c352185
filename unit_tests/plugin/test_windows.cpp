/* SPDX-License-Identifier: Apache-2.0
 *
 * Models with window layers: prompts of four windows in chunks, truncated requests, and the pages
 * and bytes in use.
 */
#include <algorithm>

#include "plugin/kv/kv_pool.h"
#include "plugin/readers/openvino_ir.h"
#include "unit_tests/plugin/language_model.h"
#include "unit_tests/sample.h"

namespace
{

enum { WINDOWS = 4, PAGE_TOKENS = 8, CHUNK = 512, SMALL = 16, LINE = 64 };

Graph
read(const std::string &model)
{
    xm_graph *g = nullptr;
    xm_error err = {};
    const std::string xml = XM_MODELS_DIR "/" + model + "/openvino_model.xml";
    EXPECT_XM_OK(xm_openvino_ir_read(xml.c_str(), nullptr, &g, &err));
    return Graph(g, xm_graph_destroy);
}

class WindowTest : public OpenClTest, public testing::WithParamInterface<const char *>
{
  protected:
    Program with(unsigned ubatch, const char *cache = "f32")
    {
        const std::string chunk = std::to_string(ubatch),
                          page = std::to_string((int)PAGE_TOKENS);
        return must_compile(engine, read(GetParam()),
                            {{"INFERENCE_PRECISION_HINT", "f32"},
                             {"KV_CACHE_PRECISION", cache},
                             {"XM_KV_BLOCK_TOKENS", page.c_str()},
                             {"XM_UBATCH", chunk.c_str()}});
    }
    static uint64_t window_of(const xm_program *p)
    {
        uint64_t window = 0;
        for (uint32_t i = 0; i < p->n_kv; i++)
            window = std::max(window, p->kv[i].window);
        return window;
    }
    static int64_t vocabulary_of(const xm_program *p)
    {
        return p->ports.outputs[0].type.shape.dim[2].n;
    }
};

/* Fails if the request's only sequence has more pages than its positions need. */
void
expect_few_pages(xm_request *r, uint64_t positions)
{
    xm_kv_pool *pool = xm_request_program(r)->kv_pool;
    for (uint32_t g = 0; g < xm_kv_pool_groups(pool); g++) {
        xm_kv_group_stats s;
        xm_kv_pool_stats(pool, g, &s);
        EXPECT_GT(s.used, 0u) << "group " << g;
        EXPECT_LE(s.used, xm_kv_pool_pages_for(pool, g, positions)) << "group " << g;
    }
}

xm_status
at_step(xm_request *r, uint32_t, const xm_operand *, void *positions, xm_error *)
{
    expect_few_pages(r, *static_cast<uint64_t *>(positions));
    return XM_OK;
}

/* Runs some ids after the request's positions and returns the logits. */
Tensor
watched(xm_request *r, const std::vector<int64_t> &ids)
{
    uint64_t positions = xm_request_past(r) + ids.size();
    xm_request_set_hook(r, at_step, &positions);
    Tensor t = logits(r, {{ids}});
    xm_request_set_hook(r, nullptr, nullptr);
    return t;
}

TEST_P(WindowTest, ChunksOfAnySizeGiveTheSame)
{
    Program whole = with(CHUNK);
    ASSERT_TRUE(whole);
    const uint64_t window = window_of(whole.get());
    ASSERT_GT(window, 0u);
    const int64_t n = (int64_t)(WINDOWS * window) + 5;
    ASSERT_LE(n, (int64_t)CHUNK);
    const auto prompt = some_ids(n, 7, vocabulary_of(whole.get()));
    Request all = make_request(whole.get());
    const Tensor want = watched(all.get(), prompt), next = watched(all.get(), {5});
    for (unsigned ubatch : {16u, 24u, 64u}) {
        SCOPED_TRACE(ubatch);
        Program p = with(ubatch);
        ASSERT_TRUE(p);
        Request r = make_request(p.get());
        expect_logits(watched(r.get(), prompt), want, 1e-5f);
        expect_logits(watched(r.get(), {5}), next, 1e-5f);
    }
}

/* A request truncated by at most a chunk continues there. Truncated further, it continues there
 * or starts anew. */
TEST_P(WindowTest, TruncatedRequestsGoOn)
{
    Program whole = with(CHUNK), small = with(SMALL);
    ASSERT_TRUE(whole && small);
    const uint64_t window = window_of(small.get()), n = WINDOWS * window + 5;
    const int64_t vocabulary = vocabulary_of(whole.get());
    const auto prompt = some_ids((int64_t)n, 7, vocabulary),
               more = some_ids(SMALL + 5, 8, vocabulary);
    Request all = make_request(whole.get()), r = make_request(small.get());
    for (uint64_t past :
         {n - 1, n - SMALL, n - SMALL - PAGE_TOKENS, n - window, window, (uint64_t)3}) {
        SCOPED_TRACE(past);
        xm_request_reset(r.get());
        watched(r.get(), prompt);
        xm_request_truncate(r.get(), past);
        const uint64_t kept = xm_request_past(r.get());
        EXPECT_EQ(kept, past + SMALL >= n || kept ? past : 0);
        std::vector<int64_t> ids(prompt.begin(), prompt.begin() + (long)kept);
        ids.insert(ids.end(), more.begin(), more.end());
        xm_request_reset(all.get());
        const Tensor want = logits(all.get(), {{ids}}), got = logits(r.get(), {{more}});
        expect_few_pages(r.get(), ids.size());
        for (size_t i = 0; i < more.size(); i++)
            expect_row(got, 0, (int64_t)i, want, 0, (int64_t)(kept + i), 1e-5f);
    }
    EXPECT_EQ(xm_request_past(r.get()), more.size()) << "of the last one nothing is kept";
    xm_request_truncate(all.get(), 2);
    EXPECT_EQ(xm_request_past(all.get()), 2u) << "in one chunk nothing is dropped";
}

/* Returns the bytes of a layer's page: keys and values, with a scale for each row of i8 and each
 * block of u4. Each part begins at a multiple of 64 bytes. */
uint64_t
page_bytes(const xm_kv_layer &l)
{
    const uint64_t rows = (uint64_t)l.heads * PAGE_TOKENS;
    auto row_bytes = [](xm_element e, uint64_t n) { return n * xm_element_bits(e) / 8; };
    auto scale_bytes = [](xm_element e, uint64_t n) {
        return e == XM_I8 ? 4 : e == XM_U4 ? n / 32 * 2 : 0;
    };
    uint64_t bytes = 0;
    for (uint64_t part : {row_bytes(l.k_element, l.d), row_bytes(l.v_element, l.dv),
                          scale_bytes(l.k_element, l.d), scale_bytes(l.v_element, l.dv)})
        bytes += (rows * part + LINE - 1) / LINE * LINE;
    return bytes;
}

/* Returns the pages of a layer: for all positions, or for a window and a chunk wherever they
 * begin in a page. */
uint64_t
pages(const xm_kv_layer &l, uint64_t positions, uint64_t chunk)
{
    const uint64_t all = (positions + PAGE_TOKENS - 1) / PAGE_TOKENS;
    const uint64_t seen = (l.window + chunk - 2 + PAGE_TOKENS) / PAGE_TOKENS + 1;
    return l.window ? std::min(all, seen) : all;
}

TEST_P(WindowTest, TheCacheTakesWhatItsPagesTake)
{
    for (const char *cache : sample::of<const char *>({"f32", "f16", "i8", "u4"}, 2)) {
        SCOPED_TRACE(cache);
        Program p = with(SMALL, cache);
        ASSERT_TRUE(p);
        for (uint64_t positions : {PAGE_TOKENS + 1u, 200u}) {
            uint64_t want = 0;
            for (uint32_t i = 0; i < p->n_kv; i++)
                want += page_bytes(p->kv[i]) * pages(p->kv[i], positions, SMALL);
            Request r = make_request(p.get());
            xm_kv_pool_expect(p->kv_pool, 1, positions);
            const auto ids = some_ids((int64_t)positions - 1, 3, vocabulary_of(p.get()));
            logits(r.get(), {{ids}});
            logits(r.get(), {{{1}}});
            EXPECT_EQ(xm_kv_pool_bytes(p->kv_pool), want) << positions;
            r.reset();
            xm_kv_pool_trim(p->kv_pool);
            EXPECT_EQ(xm_kv_pool_bytes(p->kv_pool), 0u);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Models, WindowTest,
                         testing::Values("gpt-oss-tiny/ov/int4_sym_g64",
                                         "gemma4-moe-tiny/ov/int4_asym_g32",
                                         "gemma4-e-tiny/ov/int4_asym_g64"));

} // namespace
