/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation and every call of the engine fails once, during compilation and during a run:
 * the call returns an error text, nothing leaks, and the same object works afterwards. Uses the
 * fake engine, which computes nothing, and the reference device.
 */
#include <algorithm>

#include "plugin/gpu/program_exec_graph.h"
#include "plugin/plugin.h"
#include "primitives/variant.h"
#include "runtime/fake/fake.h"
#include "runtime/util/log.h"
#include "unit_tests/plugin/language_model.h"

namespace
{

/* Adds to the model a reduction, a concat, an op that runs on the host, and a second result that
 * is constant. */
const char *const more = R"(
        %20 = const i64[1] {-1}
        %21 = reduce_mean %17, %20 keep_dims=true
        %22 = concat %17, %21 axis=2
        %23 = const i64[] {2}
        %24 = cum_sum %22, %23
        result %24 name="sums"
        result %20 name="minus_one")";

class Faults : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        info.kind = XM_DEVICE_CPU;
        info.max_alloc_bytes = 64 << 20;
        info.base_align = 64;
        info.max_work_group = 256;
        info.local_bytes = 1 << 16;
        info.compute_units = 2;
        info.caps = XM_CAP_FP16;
        snprintf(info.name, sizeof(info.name), "fake chip");
        open();
    }
    void open()
    {
        xm_engine_unref(engine);
        engine = nullptr;
        ASSERT_XM_OK(xm_fake_engine_create(&info, nullptr, &engine, &err));
    }
    void TearDown() override
    {
        xm_engine_unref(engine);
    }
    /* arm() makes the n-th allocation or engine call fail; disarm() returns whether it was
     * reached. */
    void arm(bool allocation, uint64_t n)
    {
        if (allocation)
            xm_fail_allocation(n);
        else
            xm_fake_fail(engine, XM_FAKE_ANY, n);
    }
    bool disarm(bool allocation)
    {
        bool seen = allocation ? xm_fail_allocation_seen() : xm_fake_failed(engine);
        xm_fail_allocation(0);
        xm_fake_fail(engine, XM_FAKE_ANY, 0);
        return seen;
    }
    xm_device_info info = {};
    xm_engine *engine = nullptr;
    xm_error err = {};
};

TEST_F(Faults, CompileFailsWithASentence)
{
    for (bool allocation : {true, false}) {
        bool seen = true;
        for (uint64_t n = 1; seen; n++) {
            Program p(nullptr, xm_program_unref);
            Graph g = parse(small_model(more));
            xm_error why = {};
            arm(allocation, n);
            enum xm_status s = compile(engine, std::move(g), {}, p, &why);
            seen = disarm(allocation);
            ASSERT_EQ(s != XM_OK, seen) << n << ": " << why.text;
            EXPECT_EQ(why.text[0] != '\0', s != XM_OK) << n;
        }
    }
}

TEST_F(Faults, RequestsWorkAfterAFailedRun)
{
    Program p = must_compile(engine, parse(small_model(more)), {});
    ASSERT_TRUE(p);
    EXPECT_EQ(p->n_host_steps, 1u);
    auto in = inputs_of(p.get(), {{some_ids(5, 1, 64), some_ids(5, 2, 64)}});
    for (bool allocation : {true, false}) {
        bool seen = true;
        for (uint64_t n = 1; seen; n++) {
            xm_error why = {};
            xm_request *raw = nullptr;
            std::vector<Tensor> out;
            arm(allocation, n);
            enum xm_status s = xm_request_create(p.get(), &raw, &why);
            Request r(raw, xm_request_destroy);
            if (s == XM_OK)
                s = infer(r.get(), in, out, &why);
            seen = disarm(allocation);
            ASSERT_EQ(s != XM_OK, seen) << n << ": " << why.text;
            if (s == XM_OK)
                continue;
            ASSERT_STRNE(why.text, "") << n;
            if (!r)
                continue;
            struct xm_request_stats stats;
            xm_request_stats(r.get(), &stats);
            EXPECT_TRUE(stats.waits > 0 || stats.kernels == 0)
                << n << ": launches may still be in the queue";
            /* the run succeeded and the test's own copy failed */
            if (xm_request_past(r.get()))
                xm_request_reset(r.get());
            err = {};
            ASSERT_XM_OK(infer(r.get(), in, out, &err));
            ASSERT_EQ(xm_request_past(r.get()), 5u);
        }
    }
}

/* Returns the number of pages that the sequences of a program use. */
uint64_t
used_pages(const xm_program *p)
{
    uint64_t n = 0;
    for (uint32_t g = 0; g < xm_kv_pool_groups(p->kv_pool); g++) {
        xm_kv_group_stats s;
        xm_kv_pool_stats(p->kv_pool, g, &s);
        n += s.used;
    }
    return n;
}

/* Two sequences and the batch that runs them. */
class Pair
{
  public:
    explicit Pair(xm_program *p)
    {
        EXPECT_EQ(xm_batcher_create(p, &batcher, nullptr), XM_OK);
        for (xm_kv_sequence *&s : sequences)
            EXPECT_EQ(xm_kv_sequence_create(p->kv_pool, &s, nullptr), XM_OK);
    }
    ~Pair()
    {
        for (xm_kv_sequence *s : sequences)
            xm_kv_sequence_destroy(s);
        xm_batcher_destroy(batcher);
    }
    Pair(const Pair &) = delete;
    xm_status feed(uint64_t a, uint64_t b, xm_error *why)
    {
        const std::vector<int32_t> ids(a + b, 5);
        const xm_batcher_entry list[] = {{sequences[0], ids.data(), a, 1},
                                         {sequences[1], ids.data(), b, b}};
        return xm_batcher_run(batcher, list, 2, why);
    }
    std::vector<uint64_t> pasts() const
    {
        return {xm_kv_sequence_past(sequences[0]), xm_kv_sequence_past(sequences[1])};
    }
    xm_kv_sequence *sequences[2] = {};

  private:
    xm_batcher *batcher = nullptr;
};

const xm_compile_options for_sequences = [] {
    xm_compile_options o = {};
    o.sampled_logits = true;
    return o;
}();
const Properties small_chunks = {{"XM_UBATCH", "8"}, {"XM_KV_BLOCK_TOKENS", "4"}};

/* Each call and allocation of a run fails once: of a run of prompts in several chunks, and of a run
 * of single tokens, the sixth, which is replayed from a recording. The failed run leaves both
 * sequences unchanged, and works when it is repeated. */
TEST_F(Faults, BatchesWorkAfterAFailedRun)
{
    Program p = must_compile(engine, parse(two_layers()), small_chunks, &for_sequences);
    ASSERT_TRUE(p);
    for (bool allocation : {true, false})
        for (const int tokens : {0, 5}) {
            const uint64_t a = tokens ? 1 : 21, b = tokens ? 1 : 3;
            bool seen = true;
            for (uint64_t n = 1; seen; n++) {
                SCOPED_TRACE(n);
                Pair pair(p.get());
                ASSERT_EQ(pair.feed(11, 2, nullptr), XM_OK);
                for (int i = 0; i < tokens; i++)
                    ASSERT_EQ(pair.feed(1, 1, nullptr), XM_OK);
                auto want = pair.pasts();
                const uint64_t used = used_pages(p.get());
                xm_error why = {};
                arm(allocation, n);
                const xm_status s = pair.feed(a, b, &why);
                seen = disarm(allocation);
                EXPECT_TRUE(seen || s == XM_OK) << why.text;
                EXPECT_EQ(why.text[0] != '\0', s != XM_OK);
                if (s != XM_OK) {
                    ASSERT_EQ(pair.pasts(), want);
                    EXPECT_EQ(used_pages(p.get()), used);
                    ASSERT_EQ(pair.feed(a, b, nullptr), XM_OK);
                }
                want[0] += a;
                want[1] += b;
                ASSERT_EQ(pair.pasts(), want);
            }
        }
    EXPECT_EQ(used_pages(p.get()), 0u);
}

/* A run that finds no free page in a later chunk leaves both sequences unchanged. They can be
 * continued when there are free pages again. */
TEST_F(Faults, BatchesWorkAfterAFullCache)
{
    Properties small = small_chunks;
    small.push_back({"XM_KV_MEMORY", "1"});
    Program p = must_compile(engine, parse(two_layers()), small, &for_sequences);
    ASSERT_TRUE(p);
    Pair pair(p.get());
    ASSERT_EQ(pair.feed(11, 2, nullptr), XM_OK);
    xm_status s = XM_OK;
    std::vector<uint64_t> before;
    uint64_t used = 0;
    for (int i = 0; s == XM_OK && i < 20000; i++) {
        before = pair.pasts();
        used = used_pages(p.get());
        s = pair.feed(100, 7, &err);
    }
    ASSERT_EQ(s, XM_NO_MEMORY);
    EXPECT_EQ(pair.pasts(), before);
    EXPECT_LE(used_pages(p.get()), used) << "a page before the window may be gone";
    xm_kv_sequence_truncate(pair.sequences[0], 0);
    EXPECT_EQ(pair.feed(100, 7, nullptr), XM_OK);
    EXPECT_EQ(pair.pasts(), (std::vector<uint64_t>{100, before[1] + 7}));
}

/* The same for a request whose second row begins with padding: a prompt in several chunks, then a
 * single token. */
TEST_F(Faults, PaddedRowsWorkAfterAFailedRun)
{
    Program p = must_compile(engine, parse(two_layers()), small_chunks);
    ASSERT_TRUE(p);
    const std::vector<int64_t> some(13, 5), one(1, 5);
    step prompt = {{some, some}, 0, {0, 9}}, token = {{one, one}, 13, {0, 9}};
    for (bool allocation : {true, false})
        for (const bool is_token : {false, true}) {
            bool seen = true;
            for (uint64_t n = 1; seen; n++) {
                SCOPED_TRACE(n);
                Request r = make_request(p.get());
                std::vector<Tensor> out;
                if (is_token) {
                    ASSERT_XM_OK(infer(r.get(), inputs_of(p.get(), prompt), out, &err));
                }
                const auto in = inputs_of(p.get(), is_token ? token : prompt);
                const uint64_t past = xm_request_past(r.get());
                const uint64_t used = used_pages(p.get());
                std::vector<std::vector<uint8_t>> bytes;
                for (uint32_t i = 0; i < in.size(); i++) {
                    bytes.push_back(packed(in[i].get()));
                    xm_host_tensor t = {in[i]->element,
                                        in[i]->rank,
                                        {},
                                        bytes[i].data(),
                                        bytes[i].size()};
                    std::copy_n(in[i]->dim, in[i]->rank, t.dim);
                    ASSERT_XM_OK(xm_request_set_input(r.get(), i, &t, &err));
                }
                xm_error why = {};
                arm(allocation, n);
                const xm_status s = xm_request_infer(r.get(), &why);
                seen = disarm(allocation);
                EXPECT_TRUE(seen || s == XM_OK) << why.text;
                EXPECT_EQ(why.text[0] != '\0', s != XM_OK);
                if (s != XM_OK) {
                    ASSERT_EQ(xm_request_past(r.get()), past);
                    EXPECT_EQ(used_pages(p.get()), used);
                    ASSERT_XM_OK(xm_request_infer(r.get(), &err));
                }
                ASSERT_EQ(xm_request_past(r.get()), past + (is_token ? 1u : 13u));
            }
        }
    EXPECT_EQ(used_pages(p.get()), 0u);
}

/* Failing calls in runs whose inputs and results are buffers of the device, set by the caller. */
class RemoteFaults : public Faults
{
  protected:
    using Buffer = std::unique_ptr<xm_buffer, void (*)(xm_buffer *)>;

    Buffer make(uint64_t bytes)
    {
        xm_buffer *b = nullptr;
        EXPECT_XM_OK(xm_buffer_create(engine, XM_USE_DEVICE, bytes, &b, &err));
        return Buffer(b, xm_buffer_unref);
    }

    /* Copies the inputs to buffers of the device. */
    void upload(const std::vector<Tensor> &in)
    {
        xm_queue *q = nullptr;
        ASSERT_XM_OK(xm_queue_create(engine, &q, &err));
        for (const Tensor &t : in) {
            const std::vector<uint8_t> bytes = packed(t.get());
            shapes.push_back({t->element, t->rank, {}, nullptr, bytes.size()});
            std::copy_n(t->dim, t->rank, shapes.back().dim);
            inputs.push_back(make(bytes.size()));
            EXPECT_XM_OK(xm_queue_write(q, inputs.back().get(), 0, bytes.data(),
                                        bytes.size(), &err));
        }
        xm_queue_destroy(q);
    }

    xm_status run(xm_request *r, xm_error *why)
    {
        for (uint32_t i = 0; i < inputs.size(); i++)
            XM_TRY(xm_request_set_remote_input(r, i, &shapes[i], inputs[i].get(), why));
        for (uint32_t i = 0; i < outputs.size(); i++)
            XM_TRY(xm_request_set_remote_output(r, i, outputs[i].get(), why));
        return xm_request_infer(r, why);
    }

    std::vector<Buffer> inputs, outputs;
    std::vector<xm_host_tensor> shapes;
};

TEST_F(RemoteFaults, RequestsWorkAfterAFailedRun)
{
    Program p = must_compile(engine, parse(small_model(more)), {});
    ASSERT_TRUE(p);
    upload(inputs_of(p.get(), {{some_ids(5, 1, 64), some_ids(5, 2, 64)}}));
    for (uint32_t i = 0; i < p->ports.n_outputs; i++)
        outputs.push_back(make(1 << 16));
    for (bool allocation : {true, false}) {
        bool seen = true;
        for (uint64_t n = 1; seen; n++) {
            xm_error why = {};
            xm_request *raw = nullptr;
            arm(allocation, n);
            enum xm_status s = xm_request_create(p.get(), &raw, &why);
            Request r(raw, xm_request_destroy);
            if (s == XM_OK)
                s = run(r.get(), &why);
            seen = disarm(allocation);
            ASSERT_EQ(s != XM_OK, seen) << n << ": " << why.text;
            if (s == XM_OK || !r)
                continue;
            ASSERT_STRNE(why.text, "") << n;
            ASSERT_EQ(xm_request_past(r.get()), 0u) << n;
            ASSERT_XM_OK(run(r.get(), &err));
            ASSERT_EQ(xm_request_past(r.get()), 5u);
        }
    }
}

TEST_F(RemoteFaults, MemoryThatIsTooSmallOrElsewhereIsRefused)
{
    Program p = must_compile(engine, parse(small_model(more)), {});
    upload(inputs_of(p.get(), {{some_ids(5, 1, 64), some_ids(5, 2, 64)}}));
    xm_request *raw = nullptr;
    ASSERT_XM_OK(xm_request_create(p.get(), &raw, &err));
    Request r(raw, xm_request_destroy);
    Buffer small = make(1);
    EXPECT_EQ(xm_request_set_remote_input(raw, 0, &shapes[0], small.get(), &err),
              XM_INVALID);
    EXPECT_NE(std::string(err.text).find("its device memory has 1"), std::string::npos)
        << err.text;
    err = {};
    xm_engine *other = nullptr;
    ASSERT_XM_OK(xm_fake_engine_create(&info, nullptr, &other, &err));
    xm_buffer *b = nullptr;
    ASSERT_XM_OK(xm_buffer_create(other, XM_USE_DEVICE, 4096, &b, &err));
    EXPECT_EQ(xm_request_set_remote_input(raw, 0, &shapes[0], b, &err), XM_INVALID);
    err = {};
    EXPECT_EQ(xm_request_set_remote_output(raw, 0, b, &err), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("another OpenCL context"), std::string::npos);
    xm_buffer_unref(b);
    xm_engine_unref(other);
}

/* The first error is kept, later calls fail at once with it, and all objects can be freed. */
TEST_F(Faults, ALostDeviceIsSaidOnceAndForAll)
{
    Program p = must_compile(engine, parse(small_model(more)), {});
    ASSERT_TRUE(p);
    auto in = inputs_of(p.get(), {{some_ids(5, 1, 64), some_ids(5, 2, 64)}});
    xm_request *raw = nullptr;
    ASSERT_XM_OK(xm_request_create(p.get(), &raw, &err));
    Request r(raw, xm_request_destroy);
    std::vector<Tensor> out;
    xm_fake_lose(engine, XM_FAKE_READ, 1);
    EXPECT_EQ(infer(r.get(), in, out, &err), XM_LOST);
    const std::string first =
        "fake chip is lost: the fake device does not come back from this read";
    EXPECT_NE(std::string(err.text).find(first), std::string::npos) << err.text;
    EXPECT_TRUE(xm_engine_is_lost(engine));
    uint64_t calls = xm_fake_calls(engine, XM_FAKE_ANY);
    for (int i = 0; i < 2; i++) {
        xm_error again = {};
        EXPECT_EQ(infer(r.get(), in, out, &again), XM_LOST);
        EXPECT_NE(std::string(again.text).find(first), std::string::npos) << again.text;
    }
    xm_error why = {};
    Program other(nullptr, xm_program_unref);
    EXPECT_EQ(compile(engine, parse(small_model(more)), {}, other, &why), XM_LOST);
    EXPECT_NE(std::string(why.text).find(first), std::string::npos) << why.text;
    why = {};
    raw = nullptr;
    EXPECT_EQ(xm_request_create(p.get(), &raw, &why), XM_LOST);
    EXPECT_EQ(xm_fake_calls(engine, XM_FAKE_ANY), calls);
}

/* The device is lost at its n-th call, for every n. */
TEST_F(Faults, ADeviceMayBeLostAnywhere)
{
    bool seen = true;
    for (uint64_t n = 1; seen; n++) {
        open();
        xm_fake_lose(engine, XM_FAKE_ANY, n);
        Program p(nullptr, xm_program_unref);
        xm_error why = {};
        enum xm_status s = compile(engine, parse(small_model(more)), {}, p, &why);
        xm_request *raw = nullptr;
        if (s == XM_OK)
            s = xm_request_create(p.get(), &raw, &why);
        Request r(raw, xm_request_destroy);
        std::vector<Tensor> out;
        if (s == XM_OK)
            s = infer(r.get(), inputs_of(p.get(), {{some_ids(5, 1, 64)}}), out, &why);
        seen = xm_fake_failed(engine);
        ASSERT_EQ(s, seen ? XM_LOST : XM_OK) << n << ": " << why.text;
        ASSERT_EQ(strstr(why.text, "fake chip is lost") != nullptr, seen) << why.text;
    }
}

/* A GPU without sub-groups, f16 and USM suffices, also if its version is newer than the device
 * table. */
TEST_F(Faults, AGpuThatHasNothingSpecialServes)
{
    info.kind = XM_DEVICE_GPU;
    info.caps = 0;
    for (bool is_new : {false, true}) {
        info.vendor_id = is_new ? 0x8086 : 0;
        info.ip_major = is_new ? 60 : 0;
        xm_device_apply_tables(&info);
        EXPECT_EQ(info.facts_guessed, is_new);
        open();
        Program p = must_compile(engine, parse(small_model(more)), {});
        ASSERT_TRUE(p);
        xm_request *raw = nullptr;
        ASSERT_XM_OK(xm_request_create(p.get(), &raw, &err));
        Request r(raw, xm_request_destroy);
        std::vector<Tensor> out;
        EXPECT_XM_OK(
            infer(r.get(), inputs_of(p.get(), {{some_ids(5, 1, 64)}}), out, &err));
        size_t n = 0;
        const xm_fake_launch *l = xm_fake_launches(engine, &n);
        EXPECT_GT(n, 0u);
        for (size_t i = 0; i < n; i++) {
            std::string name = l[i].kernel;
            EXPECT_EQ(name.find("_vec"), std::string::npos) << name;
            EXPECT_NE(name.substr(name.size() - 3), "_sg") << name;
        }
    }
}

/* A user who requires oneDNN where it is not available gets one warning, and xemoe's own kernels
 * run. */
TEST_F(Faults, InsistingOnOnednnWithoutItsEngineIsWarnedOfOnce)
{
    std::vector<std::string> warnings;
    xm_log_set_sink(
        [](xm_log_level level, const char *line, void *ctx) {
            if (level == XM_LOG_WARNING)
                static_cast<std::vector<std::string> *>(ctx)->push_back(line);
        },
        &warnings);
    for (int i = 0; i < 2; i++) {
        Program p =
            must_compile(engine, parse(small_model(more)), {{"GPU_USE_ONEDNN", "YES"}});
        ASSERT_TRUE(p);
        EXPECT_EQ(p->config.use_onednn, XM_NO);
        const std::string rules = p->rules_text;
        EXPECT_EQ(rules.find("GPU_USE_ONEDNN = YES"), std::string::npos) << rules;
        EXPECT_NE(
            rules.find("GPU_USE_ONEDNN = NO: oneDNN's GPU engine cannot be used on"),
            std::string::npos)
            << rules;
    }
    xm_log_set_sink(nullptr, nullptr);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("so GPU_USE_ONEDNN=YES has no effect"), std::string::npos)
        << warnings[0];
}

/* All kernels but the references fail to build: the model still compiles and runs. */
TEST_F(Faults, KernelsThatDoNotBuildGiveWay)
{
    size_t n = 0;
    const xm_variant_table *tables = xm_variant_tables(&n);
    std::vector<std::string> warnings;
    xm_log_set_sink(
        [](xm_log_level, const char *line, void *ctx) {
            static_cast<std::vector<std::string> *>(ctx)->push_back(line);
        },
        &warnings);
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < tables[t].n; i++)
            if (tables[t].rows[i].family == XM_FAMILY_VEC) {
                ASSERT_TRUE(xm_fake_refuse_build(engine, tables[t].rows[i].name));
            }
    Program p = must_compile(engine, parse(small_model(more)), {});
    xm_log_set_sink(nullptr, nullptr);
    ASSERT_TRUE(p);
    EXPECT_FALSE(warnings.empty());
    auto in = inputs_of(p.get(), {{some_ids(5, 1, 64)}});
    xm_request *raw = nullptr;
    ASSERT_XM_OK(xm_request_create(p.get(), &raw, &err));
    Request r(raw, xm_request_destroy);
    std::vector<Tensor> out;
    EXPECT_XM_OK(infer(r.get(), in, out, &err));
    size_t launches = 0;
    const xm_fake_launch *l = xm_fake_launches(engine, &launches);
    for (size_t i = 0; i < launches; i++)
        EXPECT_EQ(strstr(l[i].kernel, "_vec"), nullptr) << l[i].kernel;
    /* no kernel is left for one step: the error names the node and the first compiler error */
    open();
    ASSERT_TRUE(xm_fake_refuse_build(engine, "embedding_vec"));
    ASSERT_TRUE(xm_fake_refuse_build(engine, "embedding_ref"));
    err = {};
    EXPECT_EQ(compile(engine, parse(small_model(more)), {}, p, &err), XM_NOT_BUILT);
    EXPECT_NE(strstr(err.text, "embedding: no kernel variant builds: kernel "
                               "'embedding_vec': error: the fake compiler refuses"),
              nullptr)
        << err.text;
}

/* For a program, and for a graph that is evaluated. */
TEST_F(Faults, ExecutionGraphsFailWithASentence)
{
    Program p = must_compile(engine, parse(small_model(more)), {});
    ASSERT_TRUE(p);
    for (bool of_program : {true, false}) {
        bool seen = true;
        for (uint64_t n = 1; seen; n++) {
            xm_exec_graph exec = {};
            xm_error why = {};
            arm(true, n);
            enum xm_status s = of_program
                                   ? xm_program_exec_graph(p.get(), &exec, &why)
                                   : xm_exec_graph_from(p->graph, "k", &exec, &why);
            seen = disarm(true);
            EXPECT_EQ(s != XM_OK, seen) << n << ": " << why.text;
            EXPECT_EQ(why.text[0] != '\0', s != XM_OK) << n;
            xm_exec_graph_free(&exec);
        }
    }
}

TEST_F(Faults, TheReferenceDeviceToo)
{
    xm_core *core = nullptr;
    ASSERT_XM_OK(xm_core_create(&core, &err));
    bool seen = true;
    for (uint64_t n = 1; seen && n < 4000; n += 1 + n / 50) {
        xm_compiled *c = nullptr;
        xm_infer *r = nullptr;
        xm_error why = {};
        xm_graph *g = parse(small_model(more)).release();
        int64_t id = 1, mask = 1;
        int32_t beam = 0;
        const xm_host_tensor in[] = {{XM_I64, 2, {1, 1}, &id, 8},
                                     {XM_I64, 2, {1, 1}, &mask, 8},
                                     {XM_I32, 1, {1}, &beam, 4}};
        xm_fail_allocation(n);
        enum xm_status s =
            xm_core_compile(core, g, "REFERENCE", nullptr, 0, nullptr, &c, &why);
        if (s == XM_OK)
            s = xm_compiled_create_request(c, &r, &why);
        for (uint32_t i = 0; i < 3 && s == XM_OK; i++)
            s = r->ops->set_input(r, i, &in[i], &why);
        if (s == XM_OK)
            s = r->ops->infer(r, &why);
        seen = disarm(true);
        EXPECT_EQ(s != XM_OK, seen) << n << ": " << why.text;
        EXPECT_EQ(why.text[0] != '\0', s != XM_OK) << n;
        xm_infer_destroy(r);
        xm_compiled_unref(c);
    }
    xm_core_destroy(core);
}

} // namespace
