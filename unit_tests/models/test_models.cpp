/* SPDX-License-Identifier: Apache-2.0
 *
 * Each GGUF architecture against independent decoders (make_models.py): the graph that a file
 * becomes, its ops after the passes, and logits that do not depend on how a text is cut into
 * runs.
 */
#include <gtest/gtest.h>

#include <algorithm>

#include "unit_tests/models/edited_model.h"

namespace
{

struct Model {
    const char *name;
    uint32_t fused_experts; /* layers whose routing and experts are one op */
    /* Rotations that are ops of their own, outside attention, because they rotate the last
     * columns of a head. */
    uint32_t rotations;
};

void
PrintTo(const Model &m, std::ostream *out)
{
    *out << m.name;
}

const Model models[] = {
    {"llama", 0, 0},           {"llama-lengths", 0, 0},   {"mixtral", 2, 0},
    {"qwen2", 0, 0},           {"qwen2moe", 2, 0},        {"qwen3", 0, 0},
    {"qwen3moe", 2, 0},        {"qwen3moe-sums", 1, 0},   {"qwen3moe-gate-2", 1, 0},
    {"qwen3moe-gate-3", 1, 0}, {"qwen3moe-gate-4", 1, 0}, {"olmoe", 2, 0},
    {"dots1", 1, 0},           {"dots1-groups", 1, 0},    {"glm4moe", 1, 0},
    {"deepseek2", 1, 4},       {"deepseek2-lite", 1, 4},  {"gpt-oss", 3, 0},
    {"gemma4-moe", 2, 0},      {"gemma4-e", 0, 0},        {"gemma4-dense", 0, 0},
};

/* The error of f32 against f64. gemma4 comes nearest to the limit, because nothing scales its
 * attention scores. */
constexpr double MOST_NMSE = 1e-9;

/* Returns the largest normalized mean squared error of a row. */
double
worst_nmse(const Tensor &got, const Golden &want)
{
    double worst = 0.0;
    for (size_t row = 0; row < want.ids.size(); row++) {
        double difference = 0.0, size = 0.0;
        for (size_t i = 0; i < want.vocabulary; i++) {
            const double w = (double)want.logits[row * want.vocabulary + i];
            const double d = (double)got->f[row * want.vocabulary + i] - w;
            difference += d * d;
            size += w * w;
        }
        worst = std::isfinite(difference) ? std::max(worst, difference / size) : INFINITY;
    }
    return worst;
}

Properties
in_f32(const char *ubatch)
{
    return {{"INFERENCE_PRECISION_HINT", "f32"},
            {"KV_CACHE_PRECISION", "f32"},
            {"XM_UBATCH", ubatch}};
}

uint32_t
count(const xm_graph *g, enum xm_op op)
{
    uint32_t n = 0;
    xm_for_each_node(node, g)
    {
        n += node->op == op;
    }
    return n;
}

/* Returns the names of the steps that run on the host. */
std::string
host_steps(const xm_program *p)
{
    std::string names;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].kind == XM_STEP_HOST)
            names += std::string(" ") + p->steps[i].name;
    }
    return names;
}

/* Returns the inputs of a graph before the passes, which has the ports of an exported model: ids,
 * mask, positions, beam indices. */
std::vector<Tensor>
inputs_of_graph(const std::vector<int64_t> &ids)
{
    const int64_t n = (int64_t)ids.size();
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < n; i++)
        positions.push_back(i);
    std::vector<Tensor> in;
    in.push_back(int_tensor(XM_I64, {1, n}, ids));
    in.push_back(int_tensor(XM_I64, {1, n}, std::vector<int64_t>(ids.size(), 1)));
    in.push_back(int_tensor(XM_I64, {1, n}, positions));
    in.push_back(int_tensor(XM_I32, {1}, {0}));
    return in;
}

/* A tensor type whose blocks begin with n_floats floats that scale all elements of the block. */
struct scaled_type {
    uint32_t number;
    size_t block_bytes, n_floats;
    xm_element element;
};
const scaled_type scaled_types[] = {
    {0, 4, 1, XM_F32},  {1, 2, 1, XM_F16},  {2, 18, 1, XM_F16}, {3, 20, 2, XM_F16},
    {6, 22, 1, XM_F16}, {7, 24, 2, XM_F16}, {8, 34, 1, XM_F16}, {30, 2, 1, XM_BF16}};

/* Multiplies the elements of blocks by a power of two, which rounds nothing. */
void
multiply(const scaled_type &type, char *data, size_t n_bytes, float by)
{
    for (size_t at = 0; at < n_bytes; at += type.block_bytes) {
        for (size_t i = 0; i < type.n_floats; i++)
            xm_store_float(type.element, data + at, i,
                           by * xm_load_float(type.element, data + at, i));
    }
}

/* Returns an equal model in which matrices are divided by a factor that stands in a tensor
 * "<name>.scale". */
gguf::model
with_factors(const char *name, size_t *n)
{
    gguf::model m(name);
    std::set<std::string> names;
    for (const auto &t : m.tensors)
        names.insert(t.name);
    for (size_t i = m.tensors.size(); i-- > 0;) {
        auto &t = m.tensors[i];
        const bool is_matrix = t.ne.size() > 1 &&
                               t.name.find("token_embd") == std::string::npos &&
                               t.name.find(".weight") != std::string::npos;
        const std::string stem = t.name.substr(0, t.name.rfind('.'));
        const auto *type =
            std::find_if(std::begin(scaled_types), std::end(scaled_types),
                         [&](const scaled_type &s) { return s.number == t.type; });
        if (!is_matrix || type == std::end(scaled_types) || names.count(stem + ".scale"))
            continue;
        const bool has_experts = stem.find("_exps") != std::string::npos;
        const size_t factors = has_experts ? (size_t)t.ne[2] : 1;
        std::string scale;
        for (size_t e = 0; e < factors; e++) {
            const float factor = (i + e) % 3 ? 2.0f : 0.25f;
            const size_t bytes = t.data.size() / factors;
            multiply(*type, &t.data[e * bytes], bytes, 1.0f / factor);
            scale += gguf::bytes_of(factor);
        }
        m.tensors.push_back({stem + ".scale", {factors}, gguf::TENSOR_F32, scale});
        m.tensors.push_back(
            {stem + ".input_scale", {1}, gguf::TENSOR_F32, gguf::bytes_of(7.0f)});
        ++*n;
    }
    return m;
}

class GgufModel : public testing::TestWithParam<Model>
{
};

} // namespace

TEST_P(GgufModel, SaysWhatItsFormulasSay)
{
    const Golden want = golden_of(GetParam().name);
    const Graph g = read_gguf(GetParam().name);
    ASSERT_TRUE(g);
    const auto out = reference(g.get(), inputs_of_graph(want.ids));
    ASSERT_EQ(out.size(), 1u);
    ASSERT_EQ(out[0]->n, want.logits.size());
    EXPECT_LE(worst_nmse(out[0], want), MOST_NMSE);
}

TEST_P(GgufModel, IsTheSameOnADevice)
{
    xm_engine *engine = opencl_engine();
    if (!engine)
        GTEST_SKIP() << "no OpenCL device";
    const Golden want = golden_of(GetParam().name);
    xm_compile_options options = {};
    options.keep_graph = true;
    Program p = must_compile(engine, read_gguf(GetParam().name), in_f32("512"), &options);
    ASSERT_TRUE(p);
    Request r = make_request(p.get());
    const Tensor got = logits(r.get(), {{want.ids}});
    ASSERT_TRUE(got);
    ASSERT_EQ(got->n, want.logits.size());
    EXPECT_LE(worst_nmse(got, want), MOST_NMSE);
    EXPECT_EQ(p->n_host_steps, 0u) << host_steps(p.get());
    EXPECT_EQ(count(p->graph, XM_OP_MOE_3GEMM_FUSED_COMPRESSED),
              GetParam().fused_experts);
    EXPECT_EQ(count(p->graph, XM_OP_ROPE), GetParam().rotations);
}

TEST_P(GgufModel, TakesFactorsBesideItsMatrices)
{
    size_t n = 0;
    const Golden want = golden_of(GetParam().name);
    gguf::graph_of g(with_factors(GetParam().name, &n));
    ASSERT_EQ(g.status, XM_OK) << g.err.text;
    EXPECT_GE(n, 6u);
    const auto out = reference(g.graph.get(), inputs_of_graph(want.ids));
    ASSERT_EQ(out.size(), 1u);
    EXPECT_LE(worst_nmse(out[0], want), MOST_NMSE);
    xm_engine *engine = opencl_engine();
    if (!engine)
        return;
    xm_compile_options options = {};
    options.keep_graph = true;
    Program p = must_compile(engine, std::move(g.graph), in_f32("512"), &options);
    ASSERT_TRUE(p);
    Request r = make_request(p.get());
    const Tensor got = logits(r.get(), {{want.ids}});
    ASSERT_TRUE(got);
    EXPECT_LE(worst_nmse(got, want), MOST_NMSE);
    EXPECT_EQ(p->n_host_steps, 0u) << host_steps(p.get());
    EXPECT_EQ(count(p->graph, XM_OP_MOE_3GEMM_FUSED_COMPRESSED),
              GetParam().fused_experts);
}

/* The logits of a text do not depend on how many tokens a run has, on earlier runs, or on chunks:
 * one program takes all lengths. */
TEST_P(GgufModel, IsTheSameHoweverTextsAreCut)
{
    xm_engine *engine = opencl_engine();
    if (!engine)
        GTEST_SKIP() << "no OpenCL device";
    enum { LONGEST = 131, DECODED = 2 };
    const auto ids = some_ids(LONGEST, 3, golden_of(GetParam().name).vocabulary);
    Program whole = must_compile(engine, read_gguf(GetParam().name), in_f32("512")),
            cut = must_compile(engine, read_gguf(GetParam().name), in_f32("16"));
    ASSERT_TRUE(whole && cut);
    Request r = make_request(whole.get());
    const Tensor want = logits(r.get(), {{ids}});
    for (xm_program *p : {whole.get(), cut.get()}) {
        Request one = make_request(p);
        for (int64_t n : {33, 1, 129, 2, 7}) {
            SCOPED_TRACE(n);
            xm_request_reset(one.get());
            const Tensor prompt = logits(one.get(), {{{ids.begin(), ids.begin() + n}}});
            for (int64_t t = 0; t < n; t++)
                expect_row(prompt, 0, t, want, 0, t, 1e-5f);
            for (int64_t t = n; t < n + DECODED; t++)
                expect_row(logits(one.get(), {{{ids[(size_t)t]}}}), 0, 0, want, 0, t,
                           1e-5f);
        }
    }
}

/* Experts that are chosen by score plus bias may have scores near zero. Then the sum that
 * normalizes their weights is clamped, as it is for scores that are no softmax. */
TEST(GgufModels, ClampTheSumOfWeightsThatABiasHasChosen)
{
    const auto clamps = [](const gguf::model &m) {
        const gguf::graph_of g(m);
        EXPECT_EQ(g.status, XM_OK) << g.err.text;
        return g.graph ? count(g.graph.get(), XM_OP_CLAMP) : 0;
    };
    EXPECT_EQ(clamps(gguf::model("dots1").set("expert_gating_func", 2)), 1u);
    EXPECT_EQ(clamps(gguf::model("dots1").set("expert_gating_func", 1)), 1u);
    EXPECT_EQ(clamps(gguf::model("qwen3moe")), 0u);
}

/* Layers that predict further tokens (nextn) are ignored in every architecture: neither their
 * tensors nor their entries in per-layer lists are read. */
TEST(GgufModels, LeaveOutLayersThatPredictFurtherTokens)
{
    for (const char *name : {"glm4moe", "deepseek2"}) {
        const Golden want = golden_of(name);
        gguf::model m(name);
        uint32_t n_layers = 0;
        for (const auto &t : m.tensors)
            if (t.name.compare(0, 4, "blk.") == 0)
                n_layers = std::max(n_layers, (uint32_t)std::stoul(t.name.substr(4)) + 1);
        m.set("block_count", n_layers + 2).set("nextn_predict_layers", 2);
        for (const char *tensor : {".nextn.eh_proj.weight", ".attn_norm.weight"}) {
            m.tensors.push_back(m.tensors[0]);
            m.tensors.back().name = "blk." + std::to_string(n_layers + 1) + tensor;
        }
        const gguf::graph_of g(m);
        ASSERT_EQ(g.status, XM_OK) << g.err.text;
        const auto out = reference(g.graph.get(), inputs_of_graph(want.ids));
        ASSERT_EQ(out.size(), 1u);
        EXPECT_LE(worst_nmse(out[0], want), MOST_NMSE) << name;
        m.tensors.back().name = "blk." + std::to_string(n_layers + 2) + ".nextn.x.weight";
        EXPECT_EQ(gguf::graph_of(m).status, XM_UNSUPPORTED) << "a layer beyond all";
        const gguf::graph_of none(m.set("nextn_predict_layers", n_layers + 2));
        EXPECT_EQ(none.status, XM_INVALID);
        EXPECT_NE(strstr(none.err.text, "nextn_predict_layers"), nullptr);
    }
}

/* Without a key for the scoring function: sigmoid if there is a tensor for the bias of the
 * choice, else softmax. */
TEST(GgufModels, ScoreExpertsByTheTensorsWhereNoFunctionIsSaid)
{
    for (const char *name : {"deepseek2", "deepseek2-lite"}) {
        const Golden want = golden_of(name);
        const gguf::graph_of g(gguf::model(name).drop("expert_gating_func"));
        ASSERT_EQ(g.status, XM_OK) << g.err.text;
        const auto out = reference(g.graph.get(), inputs_of_graph(want.ids));
        ASSERT_EQ(out.size(), 1u);
        EXPECT_LE(worst_nmse(out[0], want), MOST_NMSE) << name;
    }
}

/* Frequencies are computed in double precision and rounded once. In f32 they would be off by an
 * ulp or more, and the position multiplies the error. */
TEST(GgufModels, RoundFrequenciesOnce)
{
    constexpr float base = 1e6f;
    const gguf::graph_of g(gguf::model("qwen2")
                               .set_float("rope.freq_base", base)
                               .drop("rope.scaling.type")
                               .drop("rope.scaling.factor"));
    ASSERT_EQ(g.status, XM_OK) << g.err.text;
    uint32_t n_found = 0;
    xm_for_each_node(node, g.graph.get())
    {
        const xm_type &t = node->out[0].type;
        if (node->op != XM_OP_CONST || t.shape.rank != 3 || t.element != XM_F32)
            continue;
        const uint64_t n = node->attr.data.n_bytes / sizeof(float);
        for (uint64_t i = 0; i < n; i++)
            EXPECT_EQ(xm_load_float(XM_F32, node->attr.data.bytes, i),
                      (float)std::pow((double)base, -(double)i / (double)n));
        n_found++;
    }
    EXPECT_EQ(n_found, 1u);
}

/* Files older than the key rope.scaling.type scale linearly; their factor has one of two names. */
TEST(GgufModels, ScaleLinearlyWhereNoTypeIsSaid)
{
    const Golden want = golden_of("llama-lengths");
    gguf::model m("llama-lengths"), older("llama-lengths");
    m.drop("rope.scaling.type");
    older.drop("rope.scaling.type").drop("rope.scaling.factor");
    older.set_float("rope.scale_linear", 4.0f);
    for (const gguf::model &file : {m, older}) {
        const gguf::graph_of g(file);
        ASSERT_EQ(g.status, XM_OK) << g.err.text;
        const auto out = reference(g.graph.get(), inputs_of_graph(want.ids));
        ASSERT_EQ(out.size(), 1u);
        EXPECT_LE(worst_nmse(out[0], want), MOST_NMSE);
    }
}

/* A mapping that records which bytes were given back to the system. */
struct Mapping {
    xm_mapping base;
    std::vector<const void *> forgotten;
};

void
note_forgotten(xm_mapping *m, const void *bytes, uint64_t)
{
    reinterpret_cast<Mapping *>(m)->forgotten.push_back(bytes);
}

/* Returns the tensors of a model whose pages are given back while its graph is built. */
std::vector<std::string>
forgotten_tensors(const char *name)
{
    const std::string bytes = gguf::model(name).bytes();
    Mapping m = {{1, [](xm_mapping *) {}, note_forgotten, nullptr}, {}};
    std::vector<std::string> names;
    xm_gguf *file = nullptr;
    xm_graph *g = nullptr;
    xm_error err = {};
    EXPECT_XM_OK(xm_gguf_read_memory(bytes.data(), bytes.size(), &m.base, &file, &err));
    const Gguf closed_later(file, xm_gguf_close);
    EXPECT_XM_OK(xm_gguf_graph(file, name, &g, &err));
    xm_graph_destroy(g);
    for (uint64_t i = 0; i < file->n_tensors; i++) {
        const xm_gguf_tensor *t = file->tensors[i];
        if (std::count(m.forgotten.begin(), m.forgotten.end(), t->data.p))
            names.emplace_back(t->name.text, t->name.n);
    }
    EXPECT_EQ(names.size(), m.forgotten.size());
    std::sort(names.begin(), names.end());
    return names;
}

/* Tensors that the graph copies are given back, so that they are not in memory twice. Other
 * tensors stay mapped. */
TEST(GgufModels, GiveBackThePagesOfWhatIsCopied)
{
    const std::vector<std::string> none,
        llama = {"blk.0.attn_k.weight", "blk.0.attn_q.weight", "blk.1.attn_k.weight",
                 "blk.1.attn_q.weight"};
    EXPECT_EQ(forgotten_tensors("llama"), llama);
    EXPECT_EQ(forgotten_tensors("qwen3"), none);
    const auto latent = forgotten_tensors("deepseek2");
    EXPECT_TRUE(std::count(latent.begin(), latent.end(), "blk.0.attn_q_b.weight"));
    EXPECT_TRUE(std::count(latent.begin(), latent.end(), "blk.0.attn_kv_a_mqa.weight"));
}

INSTANTIATE_TEST_SUITE_P(Architectures, GgufModel, testing::ValuesIn(models),
                         [](const testing::TestParamInfo<Model> &info) {
                             std::string name = info.param.name;
                             for (char &c : name)
                                 c = isalnum((unsigned char)c) ? c : '_';
                             return name;
                         });
