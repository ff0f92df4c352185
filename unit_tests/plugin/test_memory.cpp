/* SPDX-License-Identifier: Apache-2.0
 *
 * Scratch does not grow with the context: it is equal for prompts, and for single tokens it grows
 * at most by what attention's partitions need. Each allocation of the whole chain fails once, on
 * the OpenCL engine.
 */
#include <chrono>
#include <fstream>
#include <thread>

#include "plugin/gpu/compile.h"
#include "plugin/lower/weight_pages.h"
#include "plugin/plugin.h"
#include "plugin/readers/openvino_ir.h"
#include "runtime/util/memory.h"
#include "unit_tests/plugin/language_model.h"

namespace
{

const char *const model_path =
    XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml";
enum { VOCABULARY = 1536 };

class MemoryTest : public OpenClTest
{
  protected:
    struct xm_request_stats stats_after(xm_request *r, int64_t tokens, int64_t vocabulary)
    {
        struct xm_request_stats stats = {};
        step s = {{some_ids(tokens, 3, vocabulary)}};
        s.past = xm_request_past(r);
        must_infer(r, inputs_of(xm_request_program(r), s));
        xm_request_stats(r, &stats);
        return stats;
    }
    static Graph read()
    {
        xm_graph *g = nullptr;
        xm_error err = {};
        EXPECT_XM_OK(xm_openvino_ir_read(model_path, nullptr, &g, &err));
        return Graph(g, xm_graph_destroy);
    }
};

TEST_F(MemoryTest, PromptsTakeTheSameScratchAtAnyPosition)
{
    xm_compile_options sampled = {};
    sampled.sampled_logits = true;
    Program p = must_compile(engine, read(), {{"XM_UBATCH", "64"}}, &sampled);
    ASSERT_TRUE(p);
    OneText text(p.get());
    text.feed(some_ids(64, 3, VOCABULARY));
    struct xm_request_stats early = text.stats();
    text.feed(some_ids(36, 3, VOCABULARY));
    text.feed(some_ids(1200 - 100, 3, VOCABULARY));
    struct xm_request_stats late = text.stats();
    EXPECT_GT(early.scratch_bytes, 0u);
    EXPECT_EQ(late.scratch_bytes, early.scratch_bytes);
    EXPECT_GT(late.kv_bytes, early.kv_bytes); /* only the cache grows */
}

/* XM_UBATCH bounds the tokens of all sequences together. */
TEST_F(MemoryTest, SeveralSequencesTakeTheScratchOfOne)
{
    Program p = must_compile(engine, parse(small_model()), {{"XM_UBATCH", "16"}});
    struct xm_request_stats one, four;
    Request r = make_request(p.get()), s = make_request(p.get());
    must_infer(r.get(), inputs_of(p.get(), {{some_ids(64, 1, 64)}}));
    xm_request_stats(r.get(), &one);
    must_infer(s.get(), inputs_of(p.get(), {{some_ids(16, 1, 64), some_ids(16, 2, 64),
                                             some_ids(16, 3, 64), some_ids(16, 4, 64)}}));
    xm_request_stats(s.get(), &four);
    EXPECT_GT(one.activation_bytes, 0u);
    EXPECT_EQ(four.activation_bytes, one.activation_bytes);
    EXPECT_LE(four.scratch_bytes, one.scratch_bytes);
}

/* Returns the resident bytes (Rss of smaps) of the mapping that contains `address`. */
uint64_t
bytes_met(const void *address)
{
    std::ifstream maps("/proc/self/smaps");
    std::string line;
    bool is_it = false;
    while (std::getline(maps, line)) {
        unsigned long long from, end, kib;
        if (sscanf(line.c_str(), "%llx-%llx ", &from, &end) == 2)
            is_it = from <= (uintptr_t)address && (uintptr_t)address < end;
        else if (is_it && sscanf(line.c_str(), "Rss: %llu kB", &kib) == 1)
            return kib * 1024;
    }
    return 0;
}

/* Weights are read from the file in the background, without a run. A program may be freed before
 * they are read. */
TEST_F(MemoryTest, WeightsInTheFileComeByThemselves)
{
    Program p = must_compile(engine, read(), {});
    ASSERT_TRUE(p);
    if (!xm_engine_shares_weight(engine, p->weights[0]->host.data.p, 1)) {
        EXPECT_EQ(p->weight_pages, nullptr);
        GTEST_SKIP() << "the device has copies";
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->n_weights; i++)
        bytes += p->weights[i]->host.data.n;
    ASSERT_NE(p->weight_pages, nullptr);
    while (xm_weight_pages_left(p->weight_pages))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GE(bytes_met(p->weights[0]->host.data.p), bytes);
    for (int i = 0; i < 20; i++)
        must_compile(engine, read(), {});
}

/* A split model reads only parts of its weights, which are not prefetched either. */
TEST_F(MemoryTest, WeightsThatAreCopiedOrInPartsDoNotCome)
{
    xm_config config;
    xm_engine *copying = nullptr;
    xm_config_init(&config);
    config.copy_weights = XM_YES;
    ASSERT_XM_OK(xm_engine_create(0, &config, &copying, &err));
    Program copied = must_compile(copying, read(), {});
    ASSERT_TRUE(copied);
    EXPECT_EQ(copied->weight_pages, nullptr);
    EXPECT_EQ(xm_weight_pages_left(nullptr), 0u);
    copied.reset();
    xm_engine_unref(copying);
    Program part = must_compile(engine, read(), {});
    xm_weight_pages *pages = nullptr;
    part->is_part = true;
    EXPECT_XM_OK(xm_weight_pages_start(part.get(), &pages, &err));
    EXPECT_EQ(pages, nullptr);
}

/* Partial results of a chunk: 64 partitions, 4 tokens, 2 heads; for each a sum of 16 values, the
 * sum of the weights and the largest score, in f32. */
enum { PARTIAL_BYTES = 64 * 4 * 2 * (16 + 2) * 4 };

TEST_F(MemoryTest, DecodeTakesAtMostWhatThePartitionsNeed)
{
    Program p = must_compile(engine, parse(small_model()), {{"XM_UBATCH", "4"}});
    ASSERT_TRUE(p);
    Request r = make_request(p.get());
    struct xm_request_stats early = stats_after(r.get(), 100, 64);
    struct xm_request_stats late = stats_after(r.get(), 4000 - 100, 64);
    EXPECT_GT(early.scratch_bytes, 0u);
    EXPECT_LE(late.scratch_bytes, early.scratch_bytes + PARTIAL_BYTES);
}

/* Reads, compiles, makes a request and runs it once. Returns the error text; "" after a success. */
std::string
whole_chain(xm_engine *engine)
{
    xm_error err = {};
    xm_graph *g = nullptr;
    xm_program *p = nullptr;
    xm_request *r = nullptr;
    xm_config config;
    xm_config_init(&config);
    int64_t id = 7, one = 1, zero = 0;
    int32_t beam = 0;
    const std::map<std::string, xm_host_tensor> inputs = {
        {"input_ids", {XM_I64, 2, {1, 1}, &id, 8}},
        {"attention_mask", {XM_I64, 2, {1, 1}, &one, 8}},
        {"position_ids", {XM_I64, 2, {1, 1}, &zero, 8}},
        {"beam_idx", {XM_I32, 1, {1}, &beam, 4}}};
    enum xm_status s = xm_openvino_ir_read(model_path, nullptr, &g, &err);
    if (s == XM_OK)
        s = xm_program_create(engine, &config, g, nullptr, &p, &err);
    if (s == XM_OK)
        s = xm_request_create(p, &r, &err);
    for (uint32_t i = 0; s == XM_OK && i < p->ports.n_inputs; i++)
        s = xm_request_set_input(r, i, &inputs.at(p->ports.inputs[i].name), &err);
    if (s == XM_OK)
        s = xm_request_infer(r, &err);
    xm_request_destroy(r);
    xm_program_unref(p);
    EXPECT_EQ(s, err.status);
    EXPECT_EQ(s == XM_OK, err.text[0] == '\0');
    return err.text;
}

/* Small allocations are many and alike: after the first ones the test skips more and more of
 * them. */
TEST_F(MemoryTest, EveryAllocationMayFail)
{
    ASSERT_EQ(whole_chain(engine), "");
    bool seen = true;
    uint64_t runs = 0;
    for (uint64_t n = 1; seen; n += 1 + n / 16, runs++) {
        xm_fail_allocation(n);
        std::string sentence = whole_chain(engine);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        ASSERT_EQ(sentence.empty(), !seen) << n << ": " << sentence;
    }
    EXPECT_GT(runs, 20u);
    EXPECT_EQ(whole_chain(engine), "");
}

} // namespace
