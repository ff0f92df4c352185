/* SPDX-License-Identifier: Apache-2.0
 *
 * Performance metrics of a generated text.
 */
#include <chrono>

#include "functional_tests/genai/genai_test.h"

namespace
{

const std::string prompt = "What is the capital of France?";

class Costs : public GenAi
{
};

const auto ttft = ov_genai_perf_metrics_get_ttft;
const auto tpot = ov_genai_perf_metrics_get_tpot;
const auto ipot = ov_genai_perf_metrics_get_ipot;
const auto throughput = ov_genai_perf_metrics_get_throughput;
const auto inference = ov_genai_perf_metrics_get_inference_duration;
const auto whole = ov_genai_perf_metrics_get_generate_duration;
const auto template_time = ov_genai_perf_metrics_get_chat_template_duration;
const auto tokenization = ov_genai_perf_metrics_get_tokenization_duration;
const auto detokenization = ov_genai_perf_metrics_get_detokenization_duration;

Metrics
costs(const Pipe &p, size_t tokens)
{
    const Results r = generate(p, prompt, make_config([=](auto *c) {
                                   SET(max_new_tokens, tokens);
                                   SET(ignore_eos, true);
                               }));
    return metrics_of(r.get());
}

size_t
input(const Metrics &m)
{
    size_t n = 0;
    EXPECT_EQ(ov_genai_perf_metrics_get_num_input_tokens(m.get(), &n), OK);
    return n;
}

float
load_time(const Metrics &m)
{
    float ms = 0.0f;
    EXPECT_EQ(ov_genai_perf_metrics_get_load_time(m.get(), &ms), OK);
    return ms;
}

TEST_F(Costs, AddUp)
{
    const auto start = std::chrono::steady_clock::now();
    const Metrics m = costs(chat, 9);
    const std::chrono::duration<float, std::milli> passed =
        std::chrono::steady_clock::now() - start;
    EXPECT_EQ(generated(m), 9u);
    EXPECT_EQ(input(m), 18u) << "with what the template adds";
    EXPECT_GT(load_time(m), 1.0f);
    const Value all = value(m, whole), first = value(m, ttft), next = value(m, tpot);
    EXPECT_LE(all.mean, passed.count());
    EXPECT_EQ(all.std, 0.0f);
    EXPECT_GT(first.mean, 0.0f);
    EXPECT_EQ(first.std, 0.0f);
    EXPECT_GE(next.std, 0.0f);
    EXPECT_LE(first.mean + 8.0f * next.mean, all.mean * 1.001f);
    EXPECT_NEAR(value(m, throughput).mean, 1000.0f / next.mean, 0.1f);
    EXPECT_NEAR(value(m, ipot).mean * 9.0f, value(m, inference).mean,
                1e-3f * value(m, inference).mean);
    EXPECT_LT(value(m, inference).mean, all.mean);
    EXPECT_GE(value(m, tokenization).mean, 0.0f);
    EXPECT_GE(value(m, detokenization).mean, 0.0f);
    EXPECT_GE(value(m, template_time).mean, 0.0f);
}

TEST_F(Costs, ThatThereAreNoneOfAreMinusOne)
{
    const Metrics m = costs(plain, 1);
    EXPECT_EQ(value(m, template_time).mean, -1.0f) << "no template was applied";
    EXPECT_EQ(value(m, tpot).mean, -1.0f) << "one token has none behind it";
    EXPECT_EQ(value(m, throughput).mean, -1.0f);
    EXPECT_EQ(generated(m), 1u);
}

TEST_F(Costs, OfTwoTextsArePooled)
{
    const Metrics one = costs(chat, 3), other = costs(chat, 7);
    const Value a = value(one, tpot), b = value(other, tpot);
    const Value wa = value(one, whole), wb = value(other, whole);
    const float loaded = load_time(one);
    ASSERT_EQ(ov_genai_perf_metrics_add_in_place(one.get(), other.get()), OK);
    EXPECT_EQ(generated(one), 10u);
    EXPECT_EQ(input(one), 36u);
    EXPECT_EQ(load_time(one), loaded);
    const Value all = value(one, tpot), both = value(one, whole);
    EXPECT_NEAR(all.mean, (2.0f * a.mean + 6.0f * b.mean) / 8.0f, 1e-3f * all.mean);
    EXPECT_NEAR(both.mean, (wa.mean + wb.mean) / 2.0f, 1e-3f * both.mean);
    EXPECT_NEAR(both.std, std::fabs(wa.mean - wb.mean) / 2.0f, 1e-2f * both.mean);
    EXPECT_NEAR(value(one, throughput).mean, 1000.0f / all.mean, 0.1f);
    EXPECT_EQ(generated(other), 7u) << "it stays what it was";
}

} // namespace
