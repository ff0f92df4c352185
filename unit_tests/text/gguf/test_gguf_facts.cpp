// SPDX-License-Identifier: Apache-2.0
// Facts from the keys of a file besides its tokenizer: dimensions, sampling, and the choice among
// several chat templates.
#include <cstring>

#include "unit_tests/text/chat_test.h"
#include "unit_tests/text/gguf/gguf_text_test.h"

namespace
{

xm_hyper_parameters
facts_of(const gguf::keys &k)
{
    gguf::reading file(k.bytes());
    xm_hyper_parameters facts;
    xm_gguf_facts(file.g, &facts);
    return facts;
}

xm_generation_config
generation_of(const gguf::keys &k)
{
    gguf::reading file(k.bytes());
    xm_generation_config c;
    xm_error err = {};
    EXPECT_EQ(xm_gguf_generation(file.g, &c, &err), XM_OK) << err.text;
    return c;
}

gguf::keys
three_tokens()
{
    gguf::keys k;
    k.set("tokenizer.ggml.model", "gpt2");
    k.set("tokenizer.ggml.tokens", gguf::LIST, gguf::texts({"<b>", "<e>", "<t>"}));
    return k;
}

std::string
rendered(const gguf::keys &k)
{
    gguf::reading file(k.bytes());
    Template t;
    EXPECT_EQ(xm_gguf_chat_template(file.g, &t.t, &t.err), XM_OK) << t.err.text;
    return t.t ? t.render(R"([{"role":"user","content":"hi"}])", false) : "";
}

} // namespace

TEST(GgufFacts, AreThoseOfTheConfigurationOfTheSameModel)
{
    for (const gguf::model &m : {gguf::models[0], gguf::models[2]}) {
        SCOPED_TRACE(m.name);
        gguf::reading file(gguf::model_file(m));
        xm_hyper_parameters facts, config;
        xm_error err = {};
        xm_gguf_facts(file.g, &facts);
        ASSERT_EQ(xm_hyper_parameters_load(
                      (std::string(XM_MODELS_DIR "/") + m.name).c_str(), &config, &err),
                  XM_OK)
            << err.text;
        EXPECT_EQ(facts.context, config.context);
        EXPECT_EQ(facts.layers, config.layers);
        EXPECT_EQ(facts.hidden, config.hidden);
        EXPECT_EQ(facts.heads, config.heads);
        EXPECT_EQ(facts.kv_heads, config.kv_heads);
        EXPECT_EQ(facts.head_size, config.head_size);
        EXPECT_EQ(facts.vocabulary, config.vocabulary);
        EXPECT_EQ(facts.experts, config.experts);
        EXPECT_EQ(facts.top_k, config.top_k);
        EXPECT_EQ(facts.expert_width, config.expert_width);
        EXPECT_EQ(facts.window, config.window);
    }
}

TEST(GgufFacts, AreUnderTheNameOfTheArchitecture)
{
    gguf::keys k;
    k.set("general.architecture", "toy").set("toy.block_count", 5u);
    k.set("other.block_count", 6u).set("toy.vocab_size", 77u);
    EXPECT_EQ(facts_of(k).layers, 5u);
    EXPECT_EQ(facts_of(k).vocabulary, 77u);
    EXPECT_STREQ(facts_of(k).model_type, "toy");
    EXPECT_STREQ(facts_of(k).architecture, "");
    EXPECT_EQ(facts_of(k.drop("general.architecture")).layers, 0u);
}

TEST(GgufFacts, WhatIsNoPositiveWholeNumberIsNotSaid)
{
    gguf::keys k;
    k.set("general.architecture", std::string(200, 'x') + "\x1b");
    EXPECT_EQ(strlen(facts_of(k).model_type),
              sizeof(xm_hyper_parameters::model_type) - 1);
    k.set("general.architecture", "toy").set("toy.block_count", "many");
    k.set("toy.embedding_length", gguf::I32, gguf::bytes_of<int32_t>(-5));
    k.set("toy.expert_count", 0xffffffffu);
    k.set("toy.attention.head_count_kv", gguf::LIST,
          gguf::numbers<int32_t>(gguf::I32, {-1, 0, 4, 2}));
    EXPECT_EQ(facts_of(k).layers, 0u);
    EXPECT_EQ(facts_of(k).hidden, 0u);
    EXPECT_EQ(facts_of(k).experts, 0u);
    EXPECT_EQ(facts_of(k).kv_heads, 4u) << "of a list the largest";
}

/* A file may list latent attention as one long head; the facts give the heads that are
 * multiplied. */
TEST(GgufFacts, HeadsOfALatentAreThoseThatAreMultiplied)
{
    gguf::keys k;
    k.set("general.architecture", "toy").set("toy.attention.head_count", 16u);
    k.set("toy.attention.head_count_kv", 1u).set("toy.attention.key_length", 576u);
    EXPECT_EQ(facts_of(k).kv_heads, 1u);
    EXPECT_EQ(facts_of(k).head_size, 576u);
    k.set("toy.attention.kv_lora_rank", 512u);
    k.set("toy.attention.key_length_mla", 192u);
    EXPECT_EQ(facts_of(k).kv_heads, 16u);
    EXPECT_EQ(facts_of(k).head_size, 192u);
}

TEST(GgufGeneration, EndsAreThoseOfThreeKeysEachOnce)
{
    gguf::keys k = three_tokens();
    k.set("tokenizer.ggml.eos_token_id", 1u).set("tokenizer.ggml.eot_token_id", 2u);
    k.set("tokenizer.ggml.eom_token_id", 1u).set("tokenizer.ggml.bos_token_id", 0u);
    xm_generation_config c = generation_of(k);
    EXPECT_EQ(ids(c.eos, c.eos + c.n_eos), ids({1, 2}));
    EXPECT_EQ(c.bos, 0);
    EXPECT_EQ(c.pad, -1);
    c = generation_of(k.set("tokenizer.ggml.eom_token_id", 0u));
    EXPECT_EQ(ids(c.eos, c.eos + c.n_eos), ids({1, 2, 0}));
}

/* Without a tokenizer, ids cannot be checked against a list. */
TEST(GgufGeneration, AFileWithoutATokenizerHasEnds)
{
    gguf::keys k;
    for (const char *none : {"none", "no_vocab"}) {
        k.set("tokenizer.ggml.model", none).set("tokenizer.ggml.eos_token_id", 12u);
        xm_generation_config c = generation_of(k);
        EXPECT_EQ(ids(c.eos, c.eos + c.n_eos), ids({12}));
    }
    k.drop("tokenizer.ggml.eos_token_id");
    EXPECT_EQ(generation_of(k).n_eos, 0u);
}

TEST(GgufGeneration, HasIdsThatAreNeverChosen)
{
    gguf::keys k = three_tokens();
    k.set("tokenizer.ggml.suppress_tokens", gguf::LIST,
          gguf::numbers<int32_t>(gguf::I32, {2, -1, 0}));
    xm_generation_config c = generation_of(k);
    EXPECT_EQ(ids(c.suppressed.ids, c.suppressed.ids + c.suppressed.n), ids({2, 0}));
    xm_generation_config_free(&c);
    gguf::reading file(k.set("tokenizer.ggml.suppress_tokens", "none").bytes());
    xm_error err = {};
    EXPECT_EQ(xm_gguf_generation(file.g, &c, &err), XM_INVALID);
    EXPECT_NE(strstr(err.text, "tokenizer.ggml.suppress_tokens"), nullptr) << err.text;
    xm_generation_config_free(&c);
}

TEST(GgufGeneration, SamplingIsWhatTheAuthorsRecommend)
{
    gguf::keys k;
    EXPECT_EQ(generation_of(k.set("general.architecture", "toy")).sampling.temperature,
              0.0f);
    k.set("general.sampling.top_k", gguf::I32, gguf::bytes_of<int32_t>(20));
    EXPECT_EQ(generation_of(k).sampling.temperature, 1.0f) << "it is not said";
    k.set("general.sampling.temp", gguf::F32, gguf::bytes_of(0.7f));
    k.set("general.sampling.top_p", gguf::F32, gguf::bytes_of(0.8f));
    k.set("general.sampling.min_p", gguf::F32, gguf::bytes_of(0.05f));
    k.set("general.sampling.penalty_repeat", gguf::F32, gguf::bytes_of(1.1f));
    const xm_sampling s = generation_of(k).sampling;
    EXPECT_EQ(s.top_k, 20);
    EXPECT_FLOAT_EQ(s.temperature, 0.7f);
    EXPECT_FLOAT_EQ(s.top_p, 0.8f);
    EXPECT_FLOAT_EQ(s.min_p, 0.05f);
    EXPECT_FLOAT_EQ(s.repetition_penalty, 1.1f);
}

TEST(GgufGeneration, EveryKeyOfTheTableIsRead)
{
    int n = 0;
    for (const xm_sampling_row &row : xm_sampling_rows) {
        if (!row.gguf)
            continue;
        const bool is_real = row.kind == XM_SAMPLING_REAL;
        gguf::keys k, other;
        if (is_real)
            k.set(row.gguf, gguf::F32, gguf::bytes_of(0.25f));
        else
            k.set(row.gguf, gguf::I32, gguf::bytes_of<int32_t>(2));
        const xm_sampling s = generation_of(k).sampling;
        EXPECT_EQ(xm_sampling_get(&s, &row), is_real ? 0.25 : 2.0) << row.gguf;
        const xm_sampling not_said = generation_of(other.set(row.gguf, "none")).sampling;
        EXPECT_EQ(xm_sampling_get(&not_said, &row),
                  row.offset == offsetof(xm_sampling, temperature) ? 1.0 : row.unsaid)
            << row.gguf;
        n++;
    }
    EXPECT_GT(n, 9);
    gguf::keys first; /* mirostat 1, which is not implemented */
    first.set("general.sampling.mirostat", gguf::I32, gguf::bytes_of<int32_t>(1));
    EXPECT_EQ(generation_of(first).sampling.mirostat, 0);
}

TEST(GgufGeneration, WhatIsOutOfRangeIsNotSaid)
{
    gguf::keys k;
    k.set("general.sampling.top_k", gguf::I32, gguf::bytes_of<int32_t>(-1));
    k.set("general.sampling.temp", gguf::F32, gguf::bytes_of(-0.5f));
    k.set("general.sampling.top_p", gguf::F32, gguf::bytes_of(1.5f));
    k.set("general.sampling.min_p", "none");
    const xm_sampling s = generation_of(k).sampling;
    EXPECT_EQ(s.top_k, 0);
    EXPECT_EQ(s.temperature, 1.0f);
    EXPECT_EQ(s.top_p, 1.0f);
    EXPECT_EQ(s.min_p, 0.0f);
}

TEST(GgufChatTemplate, IsTheOneWithoutANameElseTheDefault)
{
    gguf::keys k = three_tokens();
    k.set("tokenizer.chat_template.tool_use", "T")
        .set("tokenizer.chat_template.default", "D");
    EXPECT_EQ(rendered(k), "D");
    EXPECT_EQ(rendered(k.set("tokenizer.chat_template", "P")), "P");
    k = three_tokens().set("tokenizer.chat_template.tool_use", "T");
    gguf::reading file(k.bytes());
    Template t;
    EXPECT_EQ(xm_gguf_chat_template(file.g, &t.t, &t.err), XM_NOT_FOUND);
    EXPECT_EQ(t.t, nullptr);
}

TEST(GgufChatTemplate, HasTheTextsOfTheTokensThatTheFileNames)
{
    gguf::keys k = three_tokens();
    k.set("tokenizer.chat_template", "{{ bos_token }}|{{ eos_token }}|{{ pad_token }}");
    EXPECT_EQ(rendered(k), "||");
    k.set("tokenizer.ggml.bos_token_id", 0u).set("tokenizer.ggml.eos_token_id", 1u);
    EXPECT_EQ(rendered(k.set("tokenizer.ggml.padding_token_id", 2u)), "<b>|<e>|<t>");
}

TEST(GgufPooling, IsTheArchitecturesKey)
{
    const struct {
        uint32_t type;
        xm_status status;
        xm_pooling pooling;
        const char *says;
    } rows[] = {
        {0, XM_OK, XM_POOLING_LAST, ""},
        {1, XM_OK, XM_POOLING_MEAN, ""},
        {2, XM_UNSUPPORTED, XM_POOLING_LAST, "toy.pooling_type': pooling 'cls'"},
        {3, XM_OK, XM_POOLING_LAST, ""},
        {4, XM_UNSUPPORTED, XM_POOLING_LAST, "pooling 'rank'"},
        {5, XM_UNSUPPORTED, XM_POOLING_LAST, "pooling 5 is not supported"},
    };
    gguf::keys k;
    k.set("general.architecture", "toy");
    for (const auto &row : rows) {
        k.set("toy.pooling_type", row.type);
        gguf::reading file(k.bytes());
        xm_pooling pooling = XM_POOLING_LAST;
        xm_error err = {};
        EXPECT_EQ(xm_gguf_pooling(file.g, &pooling, &err), row.status) << row.type;
        if (row.status == XM_OK) {
            EXPECT_EQ(pooling, row.pooling) << row.type;
        }
        EXPECT_NE(std::string(err.text).find(row.says), std::string::npos) << err.text;
    }
    gguf::reading none(k.drop("toy.pooling_type").bytes());
    xm_pooling pooling = XM_POOLING_MEAN;
    EXPECT_EQ(xm_gguf_pooling(none.g, &pooling, nullptr), XM_OK);
    EXPECT_EQ(pooling, XM_POOLING_LAST);
    gguf::reading text(k.set("toy.pooling_type", "mean").bytes());
    EXPECT_EQ(xm_gguf_pooling(text.g, &pooling, nullptr), XM_INVALID);
}
