/* SPDX-License-Identifier: Apache-2.0
 *
 * Experts in host memory with device caches of several sizes: results have equal bits whatever is
 * offloaded and cached. Statistics, several requests, failures, and a device without memory.
 */
#include "plugin/lower/expert_caches.h"

#include <thread>

#include "plugin/gpu/batcher.h"
#include "plugin/plugin.h"
#include "plugin/readers/openvino_ir.h"
#include "runtime/fake/fake.h"
#include "runtime/util/memory.h"
#include "unit_tests/plugin/language_model.h"
#include "unit_tests/sample.h"

namespace
{

enum { VOCABULARY = 256 };
const char *const tiny = "qwen3moe-tiny/ov/int4_asym_g64";

Graph
read(const std::string &model)
{
    xm_graph *g = nullptr;
    xm_error err = {};
    const std::string path = XM_MODELS_DIR "/" + model + "/openvino_model.xml";
    EXPECT_XM_OK(xm_openvino_ir_read(path.c_str(), nullptr, &g, &err));
    return Graph(g, xm_graph_destroy);
}

xm_expert_cache_stats
stats_of(const xm_program *p)
{
    xm_expert_cache_stats s = {};
    xm_error err = {};
    EXPECT_XM_OK(xm_expert_caches_stats(p, &s, &err));
    return s;
}

/* Returns the bytes of all logits of a prompt, three tokens, a run of three tokens, and one
 * token. */
std::vector<uint8_t>
talk(xm_request *r)
{
    std::vector<uint8_t> bytes;
    uint32_t seed = 3;
    for (int64_t n : {40, 1, 1, 1, 3, 1}) {
        Tensor t = logits(r, {{some_ids(n, seed++, VOCABULARY)}});
        EXPECT_TRUE(t);
        if (!t)
            break;
        std::vector<uint8_t> more = packed(t.get());
        bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return bytes;
}

class ExpertCaches : public OpenClTest
{
  protected:
    Program compile_tiny(const char *ratio, const char *mib, const char *model = tiny)
    {
        return must_compile(engine, read(model),
                            {{"OFFLOAD_RATIO", ratio}, {"XM_EXPERT_CACHE", mib}});
    }
};

struct Setting {
    const char *ratio, *mib;
};
const Setting settings[] = {{"0", "64"},  {"30", "2"},  {"30", "64"},
                            {"100", "0"}, {"100", "2"}, {"100", "64"}};

TEST_F(ExpertCaches, ChangeNoBit)
{
    const std::vector<const char *> models = {tiny, "gpt-oss-tiny/ov/int4_sym_g64",
                                              "gemma4-moe-tiny/ov/int4_asym_g32"};
    for (const char *model : sample::of(models, 1)) {
        SCOPED_TRACE(model);
        std::vector<uint8_t> want;
        for (const Setting &set : settings) {
            SCOPED_TRACE(std::string(set.ratio) + " %, " + set.mib + " MiB");
            Program p = compile_tiny(set.ratio, set.mib, model);
            ASSERT_TRUE(p);
            Request r = make_request(p.get());
            std::vector<uint8_t> got = talk(r.get());
            if (want.empty())
                want = got;
            ASSERT_EQ(got, want);
            xm_expert_cache_stats s = stats_of(p.get());
            EXPECT_EQ(s.layers > 0, *set.ratio != '0' && *set.mib != '0');
            EXPECT_EQ(s.misses > 0, s.layers > 0);
            EXPECT_EQ(s.hits > 0, s.layers > 0);
        }
    }
}

/* Only runs of few tokens use the cache; a prompt reads experts in host memory. Three tokens
 * count as a prompt if kernels for many tokens can decode an expert's weight once for all of
 * them. */
TEST_F(ExpertCaches, CountEveryRoutedId)
{
    const uint64_t layers = 2, top_k = 4, alone = 1 + 1 + 1 + 1, together = 3;
    Program p = compile_tiny("100", "64");
    Request r = make_request(p.get());
    talk(r.get());
    xm_expert_cache_stats s = stats_of(p.get());
    const uint64_t read = (s.hits + s.misses) / (layers * top_k);
    EXPECT_EQ(s.hits + s.misses, layers * top_k * read);
    EXPECT_TRUE(read == alone || read == alone + together) << read;
    EXPECT_EQ(s.layers, layers);
    EXPECT_LE(s.misses, s.slots) << "an expert was fetched twice into a cache for all";
    EXPECT_LE(s.fetched_bytes, p->host_weight_bytes);
    EXPECT_GT(s.bytes, p->host_weight_bytes);
}

/* Requests one after the other share the cached experts. Of two that run at once, one runs
 * without the cache. */
TEST_F(ExpertCaches, RequestsTakeTurns)
{
    Program p = compile_tiny("100", "64");
    Request first = make_request(p.get()), second = make_request(p.get());
    const std::vector<uint8_t> want = talk(first.get());
    uint64_t misses = stats_of(p.get()).misses;
    EXPECT_EQ(talk(second.get()), want);
    EXPECT_EQ(stats_of(p.get()).misses, misses) << "they were there already";
    for (int round = 0; round < 3; round++) {
        std::vector<uint8_t> other;
        xm_request_reset(first.get());
        xm_request_reset(second.get());
        std::thread beside([&] { other = talk(second.get()); });
        EXPECT_EQ(talk(first.get()), want);
        beside.join();
        EXPECT_EQ(other, want);
    }
}

TEST_F(ExpertCaches, AreReadAsAProperty)
{
    xm_core *core = nullptr;
    xm_compiled *c = nullptr;
    const xm_property properties[] = {{"OFFLOAD_RATIO", "100"}, {"XM_EXPERT_CACHE", "2"}};
    ASSERT_XM_OK(xm_core_create(&core, &err));
    ASSERT_XM_OK(xm_core_compile(core, read(tiny).release(), "GPU", properties, 2,
                                 nullptr, &c, &err));
    for (const char *key : {"XM_EXPERT_CACHE_STATISTICS", "SUPPORTED_PROPERTIES"}) {
        xm_strbuf text = {};
        ASSERT_XM_OK(c->ops->get_property(c, key, &text, &err));
        std::string said = xm_strbuf_text(&text);
        xm_strbuf_free(&text);
        EXPECT_NE(said.find(key[0] == 'X' ? ",hits:0,misses:0,fetched_bytes:0}"
                                          : " XM_EXPERT_CACHE_STATISTICS "),
                  std::string::npos)
            << said;
    }
    xm_compiled_unref(c);
    xm_core_destroy(core);
}

/* ---- failures, on a fake GPU with memory of its own ---------------------------------------- */

class ExpertCacheFaults : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        xm_device_info d = {};
        strcpy(d.name, "a GPU");
        d.kind = XM_DEVICE_GPU;
        d.caps = XM_CAP_FP16 | XM_CAP_USM_HOST | XM_CAP_USM_DEVICE;
        d.max_alloc_bytes = d.global_bytes = (uint64_t)1 << 30;
        d.base_align = 128;
        d.max_work_group = 512;
        d.local_bytes = 64 << 10;
        d.compute_units = 64;
        xm_engine *e = nullptr;
        ASSERT_XM_OK(xm_fake_engine_create(&d, nullptr, &e, &err));
        engine.reset(e);
    }
    enum xm_status compile_tiny(Program &p, xm_error *why, const char *ubatch = "512")
    {
        return compile(
            engine.get(), read(tiny),
            {{"OFFLOAD_RATIO", "100"}, {"XM_EXPERT_CACHE", "2"}, {"XM_UBATCH", ubatch}},
            p, why);
    }
    size_t launches_of(const char *kernel)
    {
        size_t n = 0, found = 0;
        const xm_fake_launch *l = xm_fake_launches(engine.get(), &n);
        for (size_t i = 0; i < n; i++)
            found += strcmp(l[i].kernel, kernel) == 0;
        return found;
    }
    std::unique_ptr<xm_engine, decltype(&xm_engine_unref)> engine{nullptr,
                                                                  xm_engine_unref};
    xm_error err = {};
};

TEST_F(ExpertCacheFaults, CompileFailsWithASentence)
{
    for (bool allocation : {true, false}) {
        bool seen = true;
        for (uint64_t n = 1; seen; n += 1 + n / 6) {
            Program p(nullptr, xm_program_unref);
            xm_error why = {};
            Graph g = read(tiny);
            if (allocation)
                xm_fail_allocation(n);
            else
                xm_fake_fail(engine.get(), XM_FAKE_ANY, n);
            enum xm_status s =
                compile(engine.get(), std::move(g),
                        {{"OFFLOAD_RATIO", "100"}, {"XM_EXPERT_CACHE", "2"}}, p, &why);
            seen = allocation ? xm_fail_allocation_seen() : xm_fake_failed(engine.get());
            xm_fail_allocation(0);
            xm_fake_fail(engine.get(), XM_FAKE_ANY, 0);
            ASSERT_EQ(s != XM_OK, seen) << n << ": " << why.text;
            EXPECT_EQ(why.text[0] != '\0', seen) << n;
        }
    }
}

/* A cache size that the planner chose may exceed what the driver can allocate: then compiling
 * continues without caches. */
TEST_F(ExpertCacheFaults, CompileGoesWithoutACacheThatNobodyAskedFor)
{
    uint64_t allocations = 0;
    /* `last`: number of the failing allocation, from the end; each layer's cache is one */
    for (int last : {0, 1, 2, 3}) {
        SCOPED_TRACE(last);
        Program p(nullptr, xm_program_unref);
        xm_error why = {};
        Graph g = read(tiny);
        uint64_t before = xm_fake_calls(engine.get(), XM_FAKE_ALLOC);
        xm_fake_fail(engine.get(), XM_FAKE_ALLOC, last ? allocations + 1 - last : 0);
        enum xm_status s =
            compile(engine.get(), std::move(g), {{"OFFLOAD_RATIO", "100"}}, p, &why);
        EXPECT_EQ(xm_fake_failed(engine.get()), last > 0);
        EXPECT_EQ(s, last == 3 ? XM_NO_MEMORY : XM_OK) << why.text;
        EXPECT_EQ(s == XM_OK && p->expert_cache_bytes > 0, last == 0);
        if (last == 0)
            allocations = xm_fake_calls(engine.get(), XM_FAKE_ALLOC) - before;
    }
}

/* A run that fails between lookup and fetch leaves tables that name experts which are not in the
 * slots. */
TEST_F(ExpertCacheFaults, AFailedRunEmptiesTheCaches)
{
    Program p(nullptr, xm_program_unref);
    ASSERT_XM_OK(compile_tiny(p, &err));
    ASSERT_GT(p->expert_cache_bytes, 0u);
    Request r = make_request(p.get());
    auto in = inputs_of(p.get(), {{some_ids(1, 1, VOCABULARY)}});
    std::vector<Tensor> out;
    ASSERT_XM_OK(infer(r.get(), in, out, &err));
    EXPECT_EQ(launches_of("moe_cache_lookup_gen"), 2u);
    EXPECT_EQ(launches_of("moe_cache_fetch_gen"), 2u);
    bool seen = true;
    for (uint64_t n = 1; seen; n++) {
        xm_error why = {};
        xm_request_reset(r.get());
        uint64_t fills = xm_fake_calls(engine.get(), XM_FAKE_FILL);
        xm_fake_fail(engine.get(), XM_FAKE_RUN, n);
        enum xm_status s = infer(r.get(), in, out, &why);
        seen = xm_fake_failed(engine.get());
        xm_fake_fail(engine.get(), XM_FAKE_RUN, 0);
        ASSERT_EQ(s != XM_OK, seen) << n << ": " << why.text;
        EXPECT_EQ(xm_fake_calls(engine.get(), XM_FAKE_FILL) - fills, n > 1 ? 6u : 0u)
            << "three tables in each layer, once after each failure";
    }
}

/* A run that cannot begin releases the caches for the next, in requests and batches. */
TEST_F(ExpertCacheFaults, ARunThatCannotBeginLeavesTheCaches)
{
    Program p(nullptr, xm_program_unref);
    ASSERT_XM_OK(compile(
        engine.get(), read(tiny),
        {{"OFFLOAD_RATIO", "100"}, {"XM_EXPERT_CACHE", "2"}, {"XM_SEQUENCES", "YES"}}, p,
        &err));
    ASSERT_GT(p->expert_cache_bytes, 0u);
    xm_batcher *batcher = nullptr;
    xm_kv_sequence *sequence = nullptr;
    ASSERT_XM_OK(xm_batcher_create(p.get(), &batcher, &err));
    ASSERT_XM_OK(xm_kv_sequence_create(p->kv_pool, &sequence, &err));
    const int32_t id = 5;
    const xm_batcher_entry entry = {sequence, &id, 1, 0};
    /* the fill is what clears the caches */
    for (auto point : {XM_FAKE_RUN, XM_FAKE_FILL}) {
        xm_error why = {};
        xm_fake_fail(engine.get(), point, 1);
        EXPECT_NE(xm_batcher_run(batcher, &entry, 1, &why), XM_OK);
        EXPECT_TRUE(xm_fake_failed(engine.get()));
        xm_fake_fail(engine.get(), point, 0);
    }
    ASSERT_XM_OK(xm_batcher_run(batcher, &entry, 1, &err));
    EXPECT_EQ(xm_kv_sequence_past(sequence), 1u);
    EXPECT_TRUE(xm_expert_caches_drop(p.get())); /* no run holds them */
    xm_kv_sequence_destroy(sequence);
    xm_batcher_destroy(batcher);
}

/* The cache is optional: a run that needs memory takes the cache's. */
TEST_F(ExpertCacheFaults, MemoryGoesToRunsFirst)
{
    Program p(nullptr, xm_program_unref);
    ASSERT_XM_OK(compile_tiny(p, &err));
    xm_memory_stats before, after;
    xm_engine_memory_stats(engine.get(), &before);
    const uint64_t cache = p->expert_cache_bytes;
    ASSERT_GT(cache, 0u);
    Request r = make_request(p.get());
    std::vector<Tensor> out;
    auto in = inputs_of(p.get(), {{some_ids(1, 1, VOCABULARY)}});
    xm_fake_fail(engine.get(), XM_FAKE_ALLOC, 1);
    ASSERT_XM_OK(infer(r.get(), in, out, &err));
    EXPECT_TRUE(xm_fake_failed(engine.get()));
    EXPECT_EQ(xm_request_past(r.get()), 1u);
    EXPECT_EQ(p->expert_cache_bytes, 0u);
    r.reset();
    xm_kv_pool_trim(p->kv_pool);
    xm_engine_memory_stats(engine.get(), &after);
    EXPECT_EQ(after.now[XM_MEMORY_USM_DEVICE] + cache, before.now[XM_MEMORY_USM_DEVICE]);
    EXPECT_EQ(stats_of(p.get()).slots, 0u);
}

/* Whichever chunk needs the memory, the whole prompt runs again. */
TEST_F(ExpertCacheFaults, MemoryGoesToEachChunk)
{
    const uint64_t tokens = 40;
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        Program p(nullptr, xm_program_unref);
        ASSERT_XM_OK(compile_tiny(p, &err, "16"));
        Request r = make_request(p.get());
        std::vector<Tensor> out;
        auto in = inputs_of(p.get(), {{some_ids((int64_t)tokens, 1, VOCABULARY)}});
        xm_fake_fail(engine.get(), XM_FAKE_ALLOC, n);
        ASSERT_XM_OK(infer(r.get(), in, out, &err)) << n;
        failed = xm_fake_failed(engine.get());
        xm_fake_fail(engine.get(), XM_FAKE_ALLOC, 0);
        ASSERT_EQ(out[0]->dim[1], (int64_t)tokens) << n;
        EXPECT_EQ(xm_request_past(r.get()), tokens);
        EXPECT_EQ(p->expert_cache_bytes == 0, failed);
    }
}

/* A failed run empties states on the host. Then a run that continued a context is not repeated;
 * one that began a context is, whichever chunk failed. */
TEST_F(ExpertCacheFaults, RunsAreMadeAgainFromStatesThatWereEmptyBefore)
{
    const auto ids = some_ids(40, 1, VOCABULARY);
    const uint64_t cases[][2] = {{0, false}, {1, false}, {0, true}};
    for (const auto &[past, on_host] : cases) {
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            Program p(nullptr, xm_program_unref);
            setenv("XM_SKIP", "SDPAToPagedAttention", 1);
            enum xm_status compiled = compile_tiny(p, &err, "16");
            unsetenv("XM_SKIP");
            ASSERT_XM_OK(compiled);
            ASSERT_TRUE(p->host_states);
            Request r = make_request(p.get());
            std::vector<Tensor> out;
            xm_error why = {};
            if (past) {
                auto one = inputs_of(p.get(), {{some_ids(1, 1, VOCABULARY)}});
                ASSERT_XM_OK(infer(r.get(), one, out, &why));
            }
            auto in = inputs_of(p.get(), {{ids}, past});
            if (on_host)
                xm_fail_allocation(n);
            else
                xm_fake_fail(engine.get(), XM_FAKE_ALLOC, n);
            const enum xm_status s = infer(r.get(), in, out, &why);
            failed = on_host ? xm_fail_allocation_seen() : xm_fake_failed(engine.get());
            xm_fail_allocation(0);
            xm_fake_fail(engine.get(), XM_FAKE_ALLOC, 0);
            const bool is_lost = s != XM_OK;
            EXPECT_TRUE(s == XM_OK || s == XM_NO_MEMORY) << n << ": " << why.text;
            EXPECT_TRUE(on_host || is_lost == (failed && past)) << n << ": " << why.text;
            /* on the host, the test's own copy of the results may have failed after the run */
            const uint64_t now = xm_request_past(r.get());
            EXPECT_TRUE(now == (is_lost ? 0u : past + 40u) || (on_host && now == 40u))
                << n << ": " << now;
        }
    }
}

} // namespace
