/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid GGUF files and files with edge values: each becomes a graph, or is refused with an
 * error text that names the key or tensor. No memory is allocated for sizes that no tensor has.
 */
#include <algorithm>
#include <regex>

#include "runtime/util/memory.h"
#include "unit_tests/models/edited_model.h"

using gguf::bytes_of;
using gguf::graph_of;
using gguf::model;

namespace
{

enum { ARENA_BYTES = 8 << 20 }; /* more than the graph of any of these files needs */

/* Fails unless the model is refused with an error text that contains all parts. */
void
expect_refused(const model &m, std::initializer_list<const char *> parts)
{
    const graph_of g(m);
    EXPECT_NE(g.status, XM_OK) << *parts.begin();
    for (const char *part : parts)
        EXPECT_NE(strstr(g.err.text, part), nullptr)
            << part << " is not in: " << g.err.text;
}

/* Returns whether the model becomes a graph; the graph must be of bounded size. graph_of checks
 * that a refusal has an error text. */
bool
is_taken(const model &m)
{
    const graph_of g(m);
    EXPECT_LT(g.graph ? g.graph->arena.bytes : 0, (size_t)ARENA_BYTES);
    return g.graph != nullptr;
}

/* Returns whether the model is valid without this tensor, though it then computes something else.
 */
bool
is_optional(const std::string &model, const std::string &tensor)
{
    static const char *const known[] = {
        ".* output.weight",
        ".* rope_freqs.weight",
        "llama.* blk.*attn_.*.bias",
        "(dots1|glm4moe|deepseek2) blk.*exp_probs_b.bias",
        "glm4moe blk.*attn_._norm.weight",
        "glm4moe blk.*attn_..bias",
        "gemma4.* blk.*layer_output_scale.weight",
        "gemma4-moe blk.*ffn_down_exps.scale",
        /* Layer 2 sees all positions: without values it uses its keys as values. */
        "gemma4-e blk.2.attn_v.weight",
    };
    return std::any_of(std::begin(known), std::end(known), [&](const char *k) {
        return std::regex_match(model + " " + tensor, std::regex(k));
    });
}

const char *const all[] = {"llama",          "llama-lengths", "mixtral",  "qwen2moe",
                           "dots1",          "glm4moe",       "gpt-oss",  "deepseek2",
                           "deepseek2-lite", "gemma4-moe",    "gemma4-e", "olmoe",
                           "qwen3"};

class GgufFile : public testing::TestWithParam<const char *>
{
  protected:
    const model whole{GetParam()};
};

const struct {
    const char *model, *key;
    uint32_t value;
    std::vector<const char *> says;
} wrong_numbers[] = {
    {"llama", "block_count", 0, {"0 layers"}},
    {"llama", "block_count", UINT32_MAX, {"4294967295 layers", "number of tensors"}},
    {"llama", "block_count", 3, {"blk.2.attn_norm.weight"}},
    {"llama", "block_count", 1, {"blk.1.", "not a known tensor"}},
    {"llama", "embedding_length", 0, {"hidden size 0"}},
    {"llama", "embedding_length", 65, {"blk.0.attn_norm.weight", "[65]", "[64]"}},
    {"llama", "vocab_size", 63, {"token_embd.weight", "[63,64]", "[64,64]"}},
    {"llama", "attention.head_count", 0, {"0 query heads"}},
    {"llama", "attention.head_count", 3, {"3 query heads", "2 KV heads"}},
    {"llama", "attention.head_count_kv", 0, {"0 KV heads"}},
    {"llama", "attention.head_count_kv", 3, {"4 query heads", "3 KV heads"}},
    {"llama", "attention.key_length", UINT32_MAX, {"attn_", "17179869180"}},
    {"llama", "attention.value_length", 15, {"attn_v.weight", "[30,64]", "[32,64]"}},
    {"llama", "rope.dimension_count", 15, {"15 rotated columns", "even"}},
    {"llama", "rope.dimension_count", 18, {"18 rotated columns", "16"}},
    {"llama", "rope.dimension_count", 8, {"rope_freqs.weight", "[4]", "[8]"}},
    {"llama", "feed_forward_length", 0, {"feed_forward_length", "layer 0"}},
    {"llama", "feed_forward_length", 32, {"blk.0.ffn_gate.weight", "[32,64]", "[64,64]"}},
    {"llama", "expert_count", 4, {"ffn_gate_inp.weight", "no tensor"}},
    {"llama", "embedding_length_per_layer_input", 8, {"no tensor", "inp_gate.weight"}},
    {"llama",
     "attention.shared_kv_layers",
     2,
     {"shared_kv_layers", "2 layers", "found 2"}},
    {"mixtral", "expert_count", 5, {"ffn_gate_inp.weight", "[5,64]", "[4,64]"}},
    {"mixtral", "expert_used_count", 0, {"0 of 4 experts"}},
    {"mixtral", "expert_used_count", 5, {"5 of 4 experts"}},
    {"qwen2moe", "expert_feed_forward_length", 31, {"ffn_gate_exps.weight", "31"}},
    {"qwen2moe",
     "expert_shared_feed_forward_length",
     7,
     {"ffn_gate_shexp.weight", "[7,64]"}},
    {"qwen2moe", "expert_gating_func", 5, {"function number 5", "1 to 4"}},
    {"qwen2moe", "leading_dense_block_count", 1, {"blk.0."}},
    {"dots1", "expert_group_count", 5, {"5 groups", "12 experts"}},
    {"dots1", "expert_group_used_count", 0, {"0 of 4 groups"}},
    {"dots1", "expert_group_used_count", 5, {"5 of 4 groups"}},
    {"dots1", "expert_group_used_count", 1, {"4 of 12 experts", "1 of 4 groups"}},
    {"dots1", "expert_shared_count", UINT32_MAX, {"shared experts", "wide"}},
    {"gpt-oss", "attention.sliding_window", 0, {"attention.sliding_window", "layer 0"}},
    {"gemma4-moe", "attention.value_length", 32, {"values have size 32", "64"}},
    {"deepseek2", "attention.kv_lora_rank", 0, {"layer 0", "a latent of size 0"}},
    {"deepseek2",
     "attention.kv_lora_rank",
     33,
     {"attn_kv_a_mqa.weight", "[49,64]", "[48,64]"}},
    {"deepseek2", "attention.q_lora_rank", 0, {"blk.0.attn_q.weight", "no tensor"}},
    {"deepseek2", "rope.dimension_count", 48, {"48 rotated columns"}},
    {"deepseek2", "attention.shared_kv_layers", 1, {"blk.1.attn_kv_a_mqa.weight"}},
    {"deepseek2-lite",
     "attention.key_length_mla",
     40,
     {"attn_q.weight", "[80,64]", "[96,64]"}},
    {"gemma4-e", "attention.shared_kv_layers", 5, {"shared_kv_layers", "5 layers"}},
    {"gemma4-e", "attention.shared_kv_layers", 3, {"layer 2", "none"}},
    {"gemma4-e",
     "attention.shared_kv_layers",
     UINT32_MAX,
     {"shared_kv_layers", "4294967295"}},
    {"gemma4-e", "attention.key_length_swa", UINT32_MAX - 1, {"attn_q.weight"}},
};

const struct {
    const char *model, *key;
    float value;
    const char *says;
} wrong_floats[] = {
    {"llama", "attention.layer_norm_rms_epsilon", 0.0f, "epsilon is 0"},
    {"llama", "attention.layer_norm_rms_epsilon", -1e-5f, "epsilon is -1e-05"},
    {"llama", "attention.layer_norm_rms_epsilon", NAN, "layer_norm_rms_epsilon"},
    {"llama", "rope.freq_base", -10000.0f, "positions is -10000"},
    {"llama", "rope.freq_base", NAN, "rope.freq_base"},
    {"llama", "rope.freq_base", INFINITY, "rope.freq_base"},
    {"llama-lengths", "rope.scaling.factor", 0.0f, "scaled by 0"},
    {"llama-lengths", "rope.scaling.factor", -4.0f, "scaled by -4"},
    {"llama-lengths", "rope.scaling.factor", 1e-45f, "frequency of pair 0"},
    {"gpt-oss", "rope.scaling.yarn_beta_fast", -1.0f, "from -1 to 1 turns"},
    {"gpt-oss", "rope.scaling.yarn_beta_slow", 0.0f, "from 32 to 0 turns"},
    {"gpt-oss", "rope.scaling.original_context_length", NAN, "original_context_length"},
    {"gemma4-moe", "rope.freq_base_swa", -1.0f, "layer 0"},
    {"gemma4-moe", "final_logit_softcapping", -30.0f, "capped at -30"},
};

} // namespace

TEST_P(GgufFile, IsTakenAsItIs)
{
    EXPECT_TRUE(is_taken(whole));
}

TEST_P(GgufFile, NeedsSomeKeys)
{
    for (const char *key : {"general.architecture", "block_count", "embedding_length",
                            "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
        model m = whole;
        expect_refused(m.drop(key), {"there is no key", key});
    }
}

/* Without a key, the model gets a default or is refused: the call must not crash. */
TEST_P(GgufFile, OfWhichAnyKeyIsGone)
{
    for (const auto &k : whole.keys) {
        SCOPED_TRACE(k.name);
        model m = whole;
        m.keys.erase(m.keys.begin() + (&k - whole.keys.data()));
        is_taken(m);
    }
}

TEST_P(GgufFile, SaysWhichKeyIsOfAWrongType)
{
    for (const auto &k : whole.keys) {
        SCOPED_TRACE(k.name);
        model m = whole;
        auto &entry = m.keys[(size_t)(&k - whole.keys.data())];
        entry.type = k.type == gguf::TEXT ? gguf::U32 : gguf::TEXT;
        entry.value = k.type == gguf::TEXT ? bytes_of<uint32_t>(1) : gguf::text("one");
        expect_refused(m, {k.name.c_str()});
        entry.type = gguf::LIST;
        entry.value = gguf::list(gguf::TEXT, 1, gguf::text("one"));
        expect_refused(m, {k.name.c_str()});
    }
}

TEST_P(GgufFile, WithNumbersAtTheEdge)
{
    for (const auto &k : whole.keys) {
        for (uint32_t value : {0u, 1u, 2u, 0x7fffffffu, 0xfffffffeu, 0xffffffffu}) {
            SCOPED_TRACE(k.name + " " + std::to_string(value));
            model m = whole;
            auto &entry = m.keys[(size_t)(&k - whole.keys.data())];
            if (k.type == gguf::TEXT || k.type == gguf::BOOL)
                continue;
            if (k.type == gguf::LIST) {
                const std::string one = bytes_of(value);
                entry.value = gguf::list(gguf::U32, 5, one + one + one + one + one);
            } else {
                entry.value = bytes_of(value);
            }
            is_taken(m);
        }
    }
}

TEST_P(GgufFile, SaysWhichListIsTooShort)
{
    for (const auto &k : whole.keys) {
        if (k.type != gguf::LIST)
            continue;
        model m = whole;
        auto &entry = m.keys[(size_t)(&k - whole.keys.data())];
        entry.value = gguf::list(gguf::U8, 1, "\1");
        expect_refused(m, {k.name.c_str(), "found 1"});
    }
}

TEST_P(GgufFile, SaysWhichTensorIsGone)
{
    for (const auto &t : whole.tensors) {
        model m = whole;
        m.drop_tensor(t.name);
        const graph_of g(m);
        /* Gate and up, or K and V, may be one tensor or two: the error text may name either. */
        const std::string named =
            std::regex_replace(std::regex_replace(t.name, std::regex("gate_up"), "gate"),
                               std::regex("attn_[kv]_b"), "attn_kv_b");
        if (g.status == XM_OK)
            EXPECT_TRUE(is_optional(GetParam(), t.name)) << t.name;
        else
            EXPECT_NE(strstr(g.err.text, named.c_str()), nullptr)
                << t.name << ": " << g.err.text;
    }
}

TEST_P(GgufFile, SaysWhichTensorHasWrongSizes)
{
    for (const auto &t : whole.tensors) {
        model m = whole;
        auto &cut = m.tensor(t.name);
        /* Removes the last row, or the last element of a vector; not of the token table, whose
         * rows are the vocabulary. */
        const uint64_t last = cut.ne.back();
        const size_t row = cut.data.size() / last;
        if (last == 1 || t.name == "token_embd.weight")
            continue;
        cut.ne.back()--;
        cut.data.resize(cut.data.size() - row);
        const graph_of g(m);
        EXPECT_NE(g.status, XM_OK) << t.name;
        for (const char *part : {t.name.c_str(), "expected [", "found ["})
            EXPECT_NE(strstr(g.err.text, part), nullptr)
                << part << " is not in: " << g.err.text;
    }
}

TEST_P(GgufFile, WithAllTensorsOfOneDimensionMore)
{
    model m = whole;
    for (auto &t : m.tensors) {
        if (t.ne.size() < 4)
            t.ne.push_back(1);
    }
    EXPECT_TRUE(is_taken(m)) << "ones in front do not count";
}

TEST_P(GgufFile, SaysThatATensorIsNotKnown)
{
    for (const char *name :
         {"blk.0.attn_q.offset", "blk.9.attn_q.weight", "extra.weight",
          "blk.4294967296.attn_q.weight", "blk.00.attn_q.weight", "blk.0x0.attn_q.weight",
          "blk..attn_q.weight", "blk.0", "blk.0.", "token_embd.weigh"}) {
        model m = whole;
        m.tensors.push_back({name, {8}, gguf::TENSOR_F32, std::string(32, '\0')});
        expect_refused(m, {name, "is not a known tensor of"});
    }
}

/* If both were accepted, one of the two would be ignored without a word. */
TEST_P(GgufFile, SaysThatGateAndUpAreThereTwice)
{
    for (const auto &t : whole.tensors) {
        const size_t at = t.name.find("ffn_gate_exps.weight");
        if (at == t.name.npos)
            continue;
        model m = whole;
        auto both = t;
        both.name = t.name.substr(0, at) + "ffn_gate_up_exps.weight";
        both.ne[1] *= 2;
        both.data += t.data;
        m.tensors.push_back(both);
        expect_refused(m, {both.name.c_str(), "is not a known tensor of"});
    }
}

TEST_P(GgufFile, WithoutMemoryFailsAndLeaksNothing)
{
    const std::string bytes = whole.bytes();
    for (uint64_t n = 1;; n++) {
        xm_gguf *file = nullptr;
        xm_graph *g = nullptr;
        xm_error err = {};
        xm_fail_allocation(n);
        enum xm_status s =
            xm_gguf_read_memory(bytes.data(), bytes.size(), nullptr, &file, &err);
        if (s == XM_OK)
            s = xm_gguf_graph(file, "model.gguf", &g, &err);
        const bool failed = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        xm_graph_destroy(g);
        xm_gguf_close(file);
        EXPECT_EQ(s, failed ? XM_NO_MEMORY : XM_OK) << "allocation " << n << err.text;
        EXPECT_EQ(s == XM_OK, err.text[0] == '\0');
        if (!failed)
            break;
    }
}

INSTANTIATE_TEST_SUITE_P(Architectures, GgufFile, testing::ValuesIn(all),
                         [](const testing::TestParamInfo<const char *> &info) {
                             std::string name = info.param;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

TEST(GgufFile, SaysWhichNumberIsWrong)
{
    for (const auto &w : wrong_numbers) {
        SCOPED_TRACE(std::string(w.model) + ", " + w.key);
        model m(w.model);
        m.set(w.key, w.value);
        for (const char *part : w.says)
            expect_refused(m, {part});
    }
}

TEST(GgufFile, SaysWhichFloatIsWrong)
{
    for (const auto &w : wrong_floats) {
        SCOPED_TRACE(std::string(w.model) + ", " + w.key);
        model m(w.model);
        m.set_float(w.key, w.value);
        expect_refused(m, {w.says});
    }
}

/* These keys change what a model computes, and xemoe does not implement them: values that change
 * something are refused. */
TEST(GgufFile, WithAKeyThatChangesAModelUnread)
{
    const struct {
        const char *key;
        float says_nothing, other;
    } floats[] = {
        {"attention.temperature_scale", 0.0f, 0.1f},
        {"attn_logit_softcapping", 0.0f, 50.0f},
        {"rope.scaling.yarn_ext_factor", 1.0f, 0.5f},
        {"rope.scaling.yarn_attn_factor", 1.0f, 1.2f},
        {"rope.scaling.yarn_log_multiplier", 0.0f, 0.1f},
    };
    for (const auto &f : floats) {
        SCOPED_TRACE(f.key);
        EXPECT_TRUE(is_taken(model("gpt-oss").set_float(f.key, f.says_nothing)));
        expect_refused(model("gpt-oss").set_float(f.key, f.other),
                       {f.key, "is supported"});
        expect_refused(model("gpt-oss").set_float(f.key, NAN), {f.key, "NaN"});
    }
    const auto causal = [](const char *value) {
        return model("qwen3").set("attention.causal", gguf::BOOL, std::string(value, 1));
    };
    EXPECT_TRUE(is_taken(causal("\1")));
    expect_refused(causal("\0"), {"attention.causal", "is supported"});
    expect_refused(causal("\2"), {"attention.causal"});
}

/* Texts of a file are printed within error texts: control characters and invalid UTF-8 must not
 * reach a terminal. */
TEST(GgufFile, SaysTextsThatAreNoCommands)
{
    model m("qwen2");
    m.set("rope.scaling.type", gguf::TEXT, gguf::text("a\x1b[2J\nb\xc2\x9bm\xff"));
    expect_refused(m, {"'a?[2J?b?m\xef\xbf\xbd'"});
    m.set("general.architecture", gguf::TEXT, gguf::text("t\to\ry"));
    expect_refused(m, {"'t?o?y'"});
    m.set("general.architecture", gguf::TEXT, gguf::text(std::string(500, 'x')));
    expect_refused(m, {"xxx' is not supported"});
}

TEST(GgufFile, OfALongPathStillSaysWhatIsWrong)
{
    const gguf::reading file(model("llama").drop("block_count").bytes());
    xm_graph *g = nullptr;
    xm_error err = {};
    EXPECT_EQ(xm_gguf_graph(file.g, std::string(4000, 'p').c_str(), &g, &err),
              XM_NOT_FOUND);
    EXPECT_NE(strstr(err.text, "llama.block_count"), nullptr) << err.text;
}

TEST(GgufFile, OfAnotherArchitectureNamesThoseThatAreKnown)
{
    model m("llama");
    m.set("general.architecture", gguf::TEXT, gguf::text("toy"));
    expect_refused(m, {"'toy'", "llama, qwen2, "});
}

TEST(GgufFile, NamesThePositionsThatAreKnown)
{
    model m("qwen2");
    m.set("rope.scaling.type", gguf::TEXT, gguf::text("longrope"));
    expect_refused(m, {"'longrope'", "none, linear or yarn"});
    m.set("rope.scaling.type", gguf::TEXT, gguf::text("none"));
    EXPECT_TRUE(is_taken(m));
}

/* There is one frequency factor for each pair of columns that full layers rotate. Layers that
 * rotate another number of columns are refused, so that nothing is read beyond the factors. */
TEST(GgufFile, WithFactorsForOtherPairs)
{
    model m("gpt-oss");
    m.set("rope.dimension_count_swa", 8);
    EXPECT_TRUE(is_taken(m));
    m.tensors.push_back({"rope_freqs.weight", {8}, gguf::TENSOR_F32, ""});
    for (int i = 0; i < 8; i++)
        m.tensors.back().data += bytes_of(1.0f);
    expect_refused(m, {"layer 0", "8 rotated columns", "expected 16"});
    m.drop("rope.dimension_count_swa");
    EXPECT_TRUE(is_taken(m));
    m.tensors.back().data.replace(4, 4, bytes_of(0.0f));
    expect_refused(m, {"frequency of pair 1 is inf"});
    m.tensors.back().data.replace(4, 4, bytes_of(NAN));
    expect_refused(m, {"frequency of pair 1"});
}

/* A ".scale" tensor has one factor for a matrix, or one for each expert; ".input_scale" is
 * ignored. */
TEST(GgufFile, WithFactorsOfMatrices)
{
    const auto add = [](model &m, const char *name, size_t n, uint32_t type) {
        m.tensors.push_back({name, {n}, type, std::string(4 * n, '\0')});
    };
    model m("qwen2moe");
    const size_t experts = m.tensor("blk.1.ffn_up_exps.weight").ne[2];
    add(m, "blk.1.ffn_up_exps.scale", experts, gguf::TENSOR_F32);
    add(m, "blk.0.attn_q.scale", 1, gguf::TENSOR_F32);
    add(m, "blk.0.attn_q.input_scale", 1, gguf::TENSOR_F32);
    EXPECT_TRUE(is_taken(m));
    m.tensor("blk.1.ffn_up_exps.scale").ne[0]--;
    const std::string expected = "expected [" + std::to_string(experts) + "], found";
    expect_refused(m, {"blk.1.ffn_up_exps.scale", expected.c_str()});
    add(m = model("qwen2moe"), "blk.0.attn_q.scale", 2, gguf::TENSOR_F32);
    expect_refused(m, {"blk.0.attn_q.scale", "expected [1], found [2]"});
    add(m = model("qwen2moe"), "blk.0.attn_q.scale", 1, gguf::TENSOR_F16);
    expect_refused(m, {"blk.0.attn_q.scale", "expected f32, found f16"});
    for (const char *name :
         {"blk.0.attn_norm.scale", "token_embd.scale", "blk.9.attn_q.scale",
          "blk.0.attn_x.scale", "output.bias.scale"}) {
        add(m = model("qwen2moe"), name, 1, gguf::TENSOR_F32);
        expect_refused(m, {name, "is not a known tensor of qwen2moe models"});
    }
}

/* Rows of a quantized matrix can be reordered, but not the elements of a quantized vector,
 * because several share a block. */
TEST(GgufFile, WithABiasInBlocks)
{
    model m("llama-lengths");
    auto &bias = m.tensor("blk.1.attn_q.bias");
    bias.type = gguf::TENSOR_Q4_0;
    bias.data.assign(4 * 18, '\0');
    expect_refused(m, {"layer 1", "has a block format"});
    auto &other = (m = model("llama-lengths")).tensor("blk.1.attn_v.bias");
    other.type = gguf::TENSOR_Q4_0;
    other.data.assign(18, '\0');
    EXPECT_TRUE(is_taken(m)) << "nothing of it is moved";
}
