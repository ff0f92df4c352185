/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner predicts exactly the memory of a run. Scratch is one buffer for any number of
 * layers. What does not fit is reported, or stays on the host, before memory is allocated.
 */
#include <cinttypes>
#include <fstream>

#include "plugin/gpu/planner.h"
#include "plugin/readers/openvino_ir.h"
#include "plugin/writers/synthetic.h"
#include "runtime/fake/fake.h"
#include "runtime/util/memory.h"
#include "unit_tests/plugin/language_model.h"

namespace
{

constexpr uint64_t MIB = 1 << 20, GIB = 1 << 30;
enum { VOCABULARY = 1536, SMALL_VOCABULARY = 64 };

using Engine = std::unique_ptr<xm_engine, decltype(&xm_engine_unref)>;

std::string
tiny_model()
{
    return XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml";
}

Graph
read(const std::string &path)
{
    xm_graph *g = nullptr;
    xm_error err = {};
    EXPECT_XM_OK(xm_openvino_ir_read(path.c_str(), nullptr, &g, &err));
    return Graph(g, xm_graph_destroy);
}

/* Writes a synthetic model whose weight file is sparse, and returns the path of its graph. */
std::string
write_blank(const xm_synthetic &m)
{
    std::string folder = testing::TempDir() + "xemoe_planner_" +
                         std::to_string(getpid()) + "_" + std::to_string(m.sizes.layers);
    xm_error err = {};
    EXPECT_XM_OK(xm_synthetic_write(&m, folder.c_str(), nullptr, nullptr, &err));
    return folder + "/openvino_model.xml";
}

void
remove_blank(const std::string &xml)
{
    std::string folder = xml.substr(0, xml.rfind('/'));
    for (const char *name : {"openvino_model.xml", "openvino_model.bin", "config.json",
                             "generation_config.json", "tokenizer.json"})
        unlink((folder + "/" + name).c_str());
    rmdir(folder.c_str());
}

xm_config
config_of(const Properties &properties)
{
    xm_config c;
    xm_error err = {};
    xm_config_init(&c);
    for (auto &p : properties)
        EXPECT_EQ(xm_config_set(&c, p.first, p.second, &err), XM_OK) << err.text;
    return c;
}

Program
compile_to_count(const xm_device_info &info, Graph g, const Properties &properties)
{
    xm_program *p = nullptr;
    xm_error err = {};
    xm_config c = config_of(properties);
    EXPECT_XM_OK(xm_planner_compile(&info, &c, g.release(), &p, &err));
    return Program(p, xm_program_unref);
}

xm_memory_need
count(xm_program *p, uint64_t context, uint64_t requests = 1)
{
    xm_memory_need need = {};
    xm_error err = {};
    const xm_plan_wish wish = {context, requests};
    EXPECT_XM_OK(xm_planner_count(p, &wish, &need, &err));
    return need;
}

/* Returns a GPU with memory of its own and a driver that allocates at most 4 GiB at once. */
xm_device_info
gpu(uint64_t memory)
{
    xm_device_info d = {};
    strcpy(d.name, "a GPU");
    d.kind = XM_DEVICE_GPU;
    d.caps = XM_CAP_FP16 | XM_CAP_USM_HOST | XM_CAP_USM_DEVICE;
    d.global_bytes = memory;
    d.max_alloc_bytes = 4 * GIB;
    d.base_align = 128;
    d.max_work_group = 512;
    d.local_bytes = 64 << 10;
    d.compute_units = 64;
    return d;
}

/* ---- the prediction --------------------------------------------------------------- */

struct Wish {
    std::string model; /* a trained model; "": the small one, which compiles fast */
    Properties properties;
    uint64_t context;
    /* The planner counts only some of the chunks: then tables grow in fewer steps. */
    bool is_long = false;
};

class Planner : public OpenClTest
{
  protected:
    /* Opens an engine for one program, so that its statistics count only that program. */
    Engine open(const Properties &properties)
    {
        xm_engine *e = nullptr;
        xm_config c = config_of(properties);
        EXPECT_XM_OK(xm_engine_create(0, &c, &e, &err));
        return Engine(e, xm_engine_unref);
    }
    /* Runs a prompt and a token, as the planner assumes. */
    Tensor fill(OneText &text, uint64_t context, int64_t vocabulary = VOCABULARY)
    {
        text.feed(some_ids((int64_t)context - 1, 3, vocabulary));
        Tensor logits = text.feed(some_ids(1, 5, vocabulary));
        text.prepare_choices();
        return logits;
    }
};

TEST_F(Planner, SaysWhatARunTakes)
{
    const std::string tiny = tiny_model();
    const std::string windows =
        XM_MODELS_DIR "/gpt-oss-tiny/ov/int4_sym_g64/openvino_model.xml";
    const Wish wishes[] = {
        {tiny,
         {{"XM_UBATCH", "64"}, {"XM_COPY_WEIGHTS", "YES"}, {"OFFLOAD_RATIO", "50"}},
         300},
        {tiny, {{"OFFLOAD_RATIO", "100"}, {"XM_EXPERT_CACHE", "2"}}, 30},
        {"", {{"XM_UBATCH", "64"}, {"KV_CACHE_PRECISION", "i8"}}, 700},
        {"", {{"INFERENCE_PRECISION_HINT", "f32"}, {"XM_COPY_WEIGHTS", "YES"}}, 40},
        /* More chunks than the planner counts; the last does not fill a page. */
        {tiny, {{"XM_UBATCH", "256"}}, 9003, true},
        {windows, {{"XM_UBATCH", "24"}}, 1003, true},
    };
    xm_compile_options sampled = {};
    sampled.sampled_logits = true;
    for (const Wish &w : wishes) {
        auto graph = [&] {
            return w.model.empty() ? parse(small_model()) : read(w.model);
        };
        Program planned =
            compile_to_count(*xm_engine_info(engine), graph(), w.properties);
        xm_memory_need need = count(planned.get(), w.context);
        Engine real = open(w.properties);
        Program p = must_compile(real.get(), graph(), w.properties, &sampled);
        OneText text(p.get());
        xm_kv_pool_expect(p->kv_pool, 1, w.context);
        fill(text, w.context, w.model == tiny ? VOCABULARY : SMALL_VOCABULARY);
        xm_memory_stats stats;
        const struct xm_request_stats held = text.stats();
        xm_engine_memory_stats(real.get(), &stats);
        for (int k = 0; k < XM_MEMORY_KIND_COUNT; k++) {
            const char *kind = xm_memory_kind_text((xm_memory_kind)k);
            EXPECT_EQ(need.kinds.now[k], stats.now[k]) << kind;
            EXPECT_EQ(need.kinds.peak[k], stats.peak[k]) << kind;
            EXPECT_LE(need.kinds.buffers[k], stats.buffers[k]) << kind;
            EXPECT_TRUE(w.is_long || need.kinds.buffers[k] == stats.buffers[k]) << kind;
        }
        EXPECT_EQ(need.kv, held.kv_bytes);
        EXPECT_EQ(need.scratch, held.scratch_bytes);
        EXPECT_EQ(need.activations, held.activation_bytes);
        EXPECT_EQ(need.io, held.io_bytes);
        EXPECT_EQ(need.expert_cache, p->expert_cache_bytes);
        EXPECT_GT(need.weights + need.mapped_weights, w.model.empty() ? 1000 : 4 * MIB);
    }
}

/* The buffers for scratch and activations serve every run that is not larger. */
TEST_F(Planner, ARunOfAKnownSizeAllocatesNothing)
{
    Engine e = open({});
    xm_compile_options sampled = {};
    sampled.sampled_logits = true;
    Program p =
        must_compile(e.get(), read(tiny_model()), {{"XM_UBATCH", "64"}}, &sampled);
    OneText text(p.get());
    xm_memory_stats first, second;
    fill(text, 200);
    xm_engine_memory_stats(e.get(), &first);
    text.forget();
    fill(text, 200);
    xm_engine_memory_stats(e.get(), &second);
    EXPECT_EQ(first.allocations, second.allocations);
    EXPECT_EQ(first.total_now, second.total_now);
}

/* Kernels that read experts from two memories give equal bits. */
TEST_F(Planner, ExpertsOnTheHostChangeNoBit)
{
    Engine e = open({{"XM_COPY_WEIGHTS", "YES"}});
    Tensor want;
    xm_compile_options sampled = {};
    sampled.sampled_logits = true;
    for (uint32_t ratio : {0u, 30u, 50u, 100u}) {
        std::string percent = std::to_string(ratio);
        Program p = must_compile(
            e.get(), read(tiny_model()),
            {{"OFFLOAD_RATIO", percent.c_str()}, {"XM_UBATCH", "64"}}, &sampled);
        OneText text(p.get());
        Tensor got = fill(text, 80);
        uint64_t experts = 0, on_host = 0, layer = 0;
        for (uint32_t i = 0; i < p->n_weights; i++) {
            const xm_device_weight *w = p->weights[i];
            bool host = xm_buffer_kind(w->data) == XM_MEMORY_MAPPED;
            uint64_t bytes = xm_weight_bytes(&w->host);
            experts += w->host.experts > 1 ? bytes : 0;
            layer = std::max(layer, w->host.experts > 1 ? 3 * bytes : 0);
            on_host += host ? bytes : 0;
        }
        EXPECT_EQ(on_host, p->host_weight_bytes);
        EXPECT_GE(100 * on_host, ratio * experts);
        EXPECT_LE(100 * on_host, ratio * experts + 100 * layer * (ratio > 0));
        if (!want)
            want = got;
        ASSERT_EQ(packed(got.get()), packed(want.get())) << ratio;
    }
}

/* ---- a model of 30 billion weights -------------------------------------------------- */

/* Returns the resident memory of this process that maps a file, in KiB. */
uint64_t
resident_kib(const std::string &path)
{
    std::ifstream maps("/proc/self/smaps");
    std::string line;
    uint64_t kib = 0, sum = 0;
    bool inside = false;
    while (std::getline(maps, line)) {
        if (line.find('-') < 17 && line.find(' ') > line.find('-'))
            inside = line.find(path) != std::string::npos;
        if (inside && sscanf(line.c_str(), "Rss: %" SCNu64, &kib) == 1)
            sum += kib;
    }
    return sum;
}

/* Sizes of Qwen3-30B-A3B. A buffer of partial results for each layer (tokens x heads x head size
 * x partitions of 256 keys, in f32) would be 2 GiB a layer at a context of 8K. */
TEST(PlannerLarge, ScratchOfALongPromptIsSharedByAllLayers)
{
    xm_synthetic m;
    xm_synthetic_init(&m);
    m.sizes = *xm_preset_find("qwen3-30b-a3b");
    m.group = 128, m.blank = true;
    const uint64_t chunk = 4096, keys = 256;
    auto one_layer = [&](uint64_t context) {
        return chunk * m.sizes.heads * m.sizes.head_dim * (context / keys) * 4;
    };
    EXPECT_EQ(m.sizes.layers * one_layer(8192), 96 * GIB);
    EXPECT_GT(one_layer(32768), 4 * GIB); /* more than one allocation can be */

    std::string xml = write_blank(m);
    xm_device_info gen = gpu(0), sg = gpu(0), vec = gpu(0);
    sg.vendor_id = 0x8086, sg.arch = XM_ARCH_XE_HPG;
    sg.caps |= XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE | XM_CAP_SG_SHORT | XM_CAP_SG_CHAR;
    sg.sub_group_sizes[0] = 8, sg.sub_group_sizes[1] = 16, sg.sub_group_sizes[2] = 32;
    vec.kind = XM_DEVICE_CPU, vec.caps = XM_CAP_FP16 | XM_CAP_HOST_VISIBLE;
    for (const xm_device_info &info : {vec, gen, sg}) {
        Program p = compile_to_count(info, read(xml), {{"XM_UBATCH", "4096"}});
        ASSERT_TRUE(p);
        uint64_t before = 0;
        for (uint64_t context : {8192, 32768}) {
            xm_memory_need need = count(p.get(), context);
            EXPECT_LE(need.scratch, 2 * GIB);
            EXPECT_LE(need.kinds.largest, info.max_alloc_bytes);
            EXPECT_GT(need.kv, 0u);
            EXPECT_EQ(need.scratch, before ? before : need.scratch) << "grows";
            before = need.scratch;
        }
        EXPECT_LT(resident_kib("openvino_model.bin"), 16u << 10) << "weights were read";
    }
    remove_blank(xml);
}

/* More layers need only their weights and cache. */
TEST(PlannerLarge, LayersTakeTurns)
{
    xm_memory_need need[2];
    uint64_t buffers[2];
    uint32_t n_weights[2];
    for (int i = 0; i < 2; i++) {
        xm_synthetic m;
        xm_synthetic_init(&m);
        m.sizes.layers = i ? 6 : 2;
        m.blank = true;
        std::string xml = write_blank(m);
        Program p = compile_to_count(gpu(0), read(xml), {});
        ASSERT_TRUE(p);
        xm_memory_stats weights;
        xm_engine_memory_stats(p->engine, &weights);
        need[i] = count(p.get(), 200);
        buffers[i] = need[i].kinds.allocations - weights.allocations;
        n_weights[i] = p->n_weights;
        remove_blank(xml);
    }
    EXPECT_GT(n_weights[1], n_weights[0]);
    EXPECT_EQ(need[1].scratch, need[0].scratch);
    EXPECT_EQ(need[1].activations, need[0].activations);
    EXPECT_EQ(need[1].kv, 3 * need[0].kv);
    EXPECT_EQ(buffers[1] - buffers[0], 4u) << "a slab of four layers";
}

/* Each allocation of host memory fails once: an error text, and no leak. */
TEST(PlannerLarge, EveryAllocationMayFail)
{
    const xm_device_info info = gpu(0);
    const xm_plan_wish wish = {40, 2};
    bool seen = true;
    uint64_t n = 1;
    int kept = 0;
    for (; seen; n++) {
        xm_program *p = nullptr;
        xm_memory_need need;
        xm_error err = {};
        xm_config c = config_of({{"XM_UBATCH", "16"}});
        Graph g = parse(small_model());
        xm_fail_allocation(n);
        enum xm_status s = xm_planner_compile(&info, &c, g.release(), &p, &err);
        if (s == XM_OK)
            s = xm_planner_count(p, &wish, &need, &err);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_TRUE(s == XM_OK || seen) << n << ": " << err.text;
        kept += s == XM_OK && seen;
        EXPECT_EQ(err.text[0] != 0, s != XM_OK) << n;
        xm_program_unref(p);
    }
    EXPECT_GT(n, 100u);
    EXPECT_LE(kept, 10) << "a sequence does without what others would find it by";
}

/* ---- the available room ------------------------------------------------------------- */

TEST(PlannerRoom, FindsTheLargestContextThatFits)
{
    Program p = compile_to_count(gpu(0), read(tiny_model()), {});
    ASSERT_TRUE(p);
    const uint64_t most = 1 << 16;
    xm_memory_room room = {true, 64 * MIB, 64 * MIB, false, false};
    xm_error err = {};
    uint64_t context = 0;
    EXPECT_XM_OK(xm_planner_largest_context(p.get(), &room, 1, most, &context, &err));
    ASSERT_GT(context, 256u);
    ASSERT_LT(context, most);
    xm_memory_need fits = count(p.get(), context), more = count(p.get(), context + 256);
    EXPECT_EQ(xm_planner_excess(&fits, &room), 0u);
    EXPECT_GT(xm_planner_excess(&more, &room), 0u);
    uint64_t of_two = 0;
    EXPECT_XM_OK(xm_planner_largest_context(p.get(), &room, 2, most, &of_two, &err));
    EXPECT_LT(of_two, context);
    room.device = MIB;
    EXPECT_XM_OK(xm_planner_largest_context(p.get(), &room, 1, most, &context, &err));
    EXPECT_EQ(context, 0u);
    room.known = false;
    EXPECT_XM_OK(xm_planner_largest_context(p.get(), &room, 1, 1000, &context, &err));
    EXPECT_EQ(context, 1000u);
}

/* ---- weights read in the file -------------------------------------------------------- */

/* Returns a CPU device, which reads weights in the mapped file. */
xm_device_info
cpu()
{
    xm_device_info d = gpu(0);
    d.kind = XM_DEVICE_CPU;
    d.caps = XM_CAP_FP16 | XM_CAP_HOST_VISIBLE | XM_CAP_UNIFIED;
    return d;
}

class PlannerMapped : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        program = compile_to_count(cpu(), read(tiny_model()), {});
        ASSERT_TRUE(program);
        need = count(program.get(), 100);
        dense = need.token_weights - need.token_experts;
    }
    /* Returns a host memory that holds everything else and `host` bytes of the weights. */
    xm_memory_room room(uint64_t host)
    {
        const uint64_t all = need.kinds.total_peak + host;
        return {true, all, all, true, true};
    }
    Program program{nullptr, xm_program_unref};
    xm_memory_need need = {};
    uint64_t dense = 0;
};

TEST_F(PlannerMapped, ATokenReadsItsShareOfTheExperts)
{
    /* 4 of 16 experts, and all other weights but the embedding table */
    EXPECT_EQ(need.token_experts, need.experts / 4);
    EXPECT_GT(dense, 0u);
    EXPECT_LT(dense, need.mapped_weights - need.experts);
}

TEST_F(PlannerMapped, WeightsHaveToFindRoom)
{
    xm_memory_room enough = room(need.mapped_weights),
                   less = room(need.mapped_weights - 1);
    EXPECT_EQ(xm_planner_excess(&need, &enough), 0u);
    EXPECT_EQ(xm_planner_token_disk(&need, &enough), 0u);
    EXPECT_EQ(xm_planner_excess(&need, &less), 1u);
    EXPECT_EQ(xm_planner_of_device(&need, &less),
              need.kinds.total_peak + need.mapped_weights);
    /* as when a program is created: the system pages mapped weights */
    less.is_for_mapped = false;
    EXPECT_EQ(xm_planner_excess(&need, &less), 0u);
}

TEST_F(PlannerMapped, WhatHasNoRoomComesFromTheDiskForEachToken)
{
    const struct {
        uint64_t held, disk;
    } cases[] = {
        {0, need.token_weights},
        {dense, need.token_weights},
        {dense + 1, need.token_experts},
        {dense + need.experts / 2, need.token_experts / 2},
        {dense + need.experts, 0},
    };
    for (const auto &c : cases) {
        xm_memory_room r = room(c.held);
        EXPECT_NEAR((double)xm_planner_token_disk(&need, &r), (double)c.disk, 4.0)
            << c.held;
    }
    xm_memory_room unknown = room(0);
    unknown.known = false;
    EXPECT_EQ(xm_planner_token_disk(&need, &unknown), 0u);
}

/* Unfused experts are one product each, and count for the experts that a token has. */
TEST_F(PlannerMapped, UnfusedExpertsCountAlike)
{
    setenv("XM_SKIP", "FuseMOE3GemmCompressed", 1);
    Program p = compile_to_count(cpu(), read(tiny_model()), {});
    unsetenv("XM_SKIP");
    ASSERT_TRUE(p);
    xm_memory_need unfused = count(p.get(), 100);
    EXPECT_EQ(unfused.token_experts, need.token_experts);
    EXPECT_EQ(unfused.token_weights, need.token_weights);
}

class PlannerFit : public ::testing::Test
{
  protected:
    /* Compiles the tiny model (4.3 MiB, of which experts 3.2) for a device. */
    enum xm_status compile_on(xm_device_info info, const Properties &properties = {})
    {
        xm_engine *e = nullptr;
        EXPECT_XM_OK(xm_fake_engine_create(&info, nullptr, &e, &err));
        engine.reset(e);
        return compile(e, read(tiny_model()), properties, program, &err);
    }
    uint64_t on_device()
    {
        xm_memory_stats s;
        xm_engine_memory_stats(engine.get(), &s);
        return s.peak[XM_MEMORY_USM_DEVICE];
    }
    Engine engine{nullptr, xm_engine_unref};
    Program program{nullptr, xm_program_unref};
    xm_error err = {};
};

TEST_F(PlannerFit, ADeviceThatHoldsTheModelGetsAllOfIt)
{
    ASSERT_XM_OK(compile_on(gpu(256 * MIB)));
    EXPECT_EQ(program->host_weight_bytes, 0u);
}

TEST_F(PlannerFit, ExpertsThatDoNotFitStayOnTheHost)
{
    xm_memory_need need = {};
    {
        Program p = compile_to_count(gpu(0), read(tiny_model()), {});
        need = count(p.get(), 4096);
    }
    uint64_t memory = need.kinds.total_peak - need.experts / 2;
    ASSERT_XM_OK(compile_on(gpu(memory)));
    EXPECT_GT(program->config.offload_ratio, 80u) << "so that a cache has room";
    EXPECT_EQ(program->host_weight_bytes, need.experts);
    EXPECT_GT(program->expert_cache_bytes, need.experts / 5);
    EXPECT_LT(program->expert_cache_bytes, need.experts / 2);
    EXPECT_LT(on_device(), memory);
    ASSERT_XM_OK(compile_on(gpu(memory), {{"XM_EXPERT_CACHE", "0"}}));
    EXPECT_GT(program->config.offload_ratio, 40u);
    EXPECT_LT(program->config.offload_ratio, 80u);
    EXPECT_GT(program->host_weight_bytes, need.experts / 3);
    EXPECT_EQ(program->expert_cache_bytes, 0u);
    EXPECT_LT(on_device(), memory);
    ASSERT_XM_OK(compile_on(gpu(memory), {{"XM_EXPERT_CACHE", "1"}}));
    EXPECT_GT(program->expert_cache_bytes, MIB / 2);
    EXPECT_LE(program->expert_cache_bytes, MIB);
    EXPECT_LT(on_device(), memory);
}

TEST_F(PlannerFit, WhatCannotFitIsRefusedBeforeAnythingIsAllocated)
{
    EXPECT_EQ(compile_on(gpu(MIB)), XM_NO_MEMORY);
    EXPECT_NE(std::string(err.text).find("does not fit on a GPU"), std::string::npos)
        << err.text;
    EXPECT_EQ(xm_fake_calls(engine.get(), XM_FAKE_ALLOC), 0u);
}

TEST_F(PlannerFit, TheUsersShareOfExpertsIsKept)
{
    EXPECT_EQ(compile_on(gpu(3 * MIB), {{"OFFLOAD_RATIO", "0"}}), XM_NO_MEMORY);
    EXPECT_NE(std::string(err.text).find("OFFLOAD_RATIO"), std::string::npos) << err.text;
    err = {};
    ASSERT_XM_OK(compile_on(gpu(256 * MIB), {{"OFFLOAD_RATIO", "100"}}));
    EXPECT_GT(program->host_weight_bytes, 3 * MIB);
    EXPECT_GT(program->expert_cache_bytes, program->host_weight_bytes);
    ASSERT_XM_OK(
        compile_on(gpu(256 * MIB), {{"OFFLOAD_RATIO", "100"}, {"XM_EXPERT_CACHE", "0"}}));
    EXPECT_EQ(program->expert_cache_bytes, 0u);
}

/* The buffers of a chunk's scratch and values must not exceed the device's largest allocation. */
TEST_F(PlannerFit, AChunkOfLargerBuffersThanTheDeviceAllocatesIsHalved)
{
    xm_device_info small = gpu(256 * MIB);
    small.max_alloc_bytes = 12 * MIB;
    ASSERT_XM_OK(compile_on(small, {{"XM_UBATCH", "8192"}}));
    EXPECT_LT(program->config.ubatch, 8192u);
    EXPECT_GE(program->config.ubatch, 512u);
    ASSERT_XM_OK(compile_on(gpu(256 * MIB), {{"XM_UBATCH", "8192"}}));
    EXPECT_EQ(program->config.ubatch, 8192u);
}

/* A CPU's driver may report only a part of the memory, and weights are read in the file: so its
 * limit is ignored. */
TEST_F(PlannerFit, ACpuDeviceIsNotJudgedByItsDriver)
{
    xm_device_info cpu = gpu(MIB);
    cpu.kind = XM_DEVICE_CPU;
    cpu.caps = XM_CAP_FP16 | XM_CAP_HOST_VISIBLE | XM_CAP_UNIFIED;
    ASSERT_XM_OK(compile_on(cpu));
    EXPECT_EQ(program->host_weight_bytes, 0u);
}

} // namespace
