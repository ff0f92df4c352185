/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics: means and standard deviations of measured values, of one run and of several runs
 * pooled.
 */
#include <cmath>
#include <vector>

#include "runtime/util/memory.h"
#include "unit_tests/genai/genai_test.h"

namespace
{

struct Metrics {
    ov_genai_perf_metrics m = {};
    Metrics()
    {
        EXPECT_TRUE(xm_api_handle_add(&m, XM_API_METRICS));
    }
    ~Metrics()
    {
        EXPECT_TRUE(xm_api_handle_drop(&m, XM_API_METRICS));
        xm_genai_metrics_clear(&m);
    }
    void add(xm_genai_measure which, const std::vector<double> &values)
    {
        for (double v : values)
            EXPECT_TRUE(xm_genai_values_add(&m.values[which], v));
    }
};

using Get = ov_status_e (*)(const ov_genai_perf_metrics *, float *, float *);

const struct {
    Get get;
    xm_genai_measure which;
} getters[] = {
    {ov_genai_perf_metrics_get_ttft, XM_GENAI_TTFT},
    {ov_genai_perf_metrics_get_tpot, XM_GENAI_TPOT},
    {ov_genai_perf_metrics_get_ipot, XM_GENAI_IPOT},
    {ov_genai_perf_metrics_get_inference_duration, XM_GENAI_INFERENCE},
    {ov_genai_perf_metrics_get_generate_duration, XM_GENAI_GENERATE},
    {ov_genai_perf_metrics_get_tokenization_duration, XM_GENAI_TOKENISE},
    {ov_genai_perf_metrics_get_detokenization_duration, XM_GENAI_DETOKENISE},
    {ov_genai_perf_metrics_get_chat_template_duration, XM_GENAI_TEMPLATE},
};

TEST(PerfMetrics, AreMeanAndDeviation)
{
    for (const auto &g : getters) {
        Metrics x;
        float mean = 0, std = 0;
        EXPECT_EQ(g.get(&x.m, &mean, &std), OK);
        EXPECT_EQ(mean, -1.0f);
        x.add(g.which, {4.0});
        EXPECT_EQ(g.get(&x.m, &mean, &std), OK);
        EXPECT_EQ(mean, 4.0f);
        EXPECT_EQ(std, 0.0f);
        x.add(g.which, {8.0});
        EXPECT_EQ(g.get(&x.m, &mean, &std), OK);
        EXPECT_EQ(mean, 6.0f);
        EXPECT_EQ(std, 2.0f);
    }
}

TEST(PerfMetrics, ThroughputIsThatOfTheMeanTime)
{
    Metrics x;
    float mean = 0, std = 0;
    EXPECT_EQ(ov_genai_perf_metrics_get_throughput(&x.m, &mean, &std), OK);
    EXPECT_EQ(mean, -1.0f);
    x.add(XM_GENAI_TPOT, {20.0});
    EXPECT_EQ(ov_genai_perf_metrics_get_throughput(&x.m, &mean, &std), OK);
    EXPECT_EQ(mean, 50.0f);
    EXPECT_EQ(std, 0.0f);
    x.add(XM_GENAI_TPOT, {5.0});
    EXPECT_EQ(ov_genai_perf_metrics_get_throughput(&x.m, &mean, &std), OK);
    EXPECT_EQ(mean, 80.0f);
    EXPECT_EQ(std, 48.0f); /* mean 12.5 ms, deviation 7.5 ms */
}

TEST(PerfMetrics, ArePooled)
{
    Metrics left, right;
    left.m.load_ms = 7;
    right.m.load_ms = 9;
    left.m.generated = 3;
    right.m.generated = 4;
    left.m.input = 10;
    right.m.input = 20;
    left.add(XM_GENAI_TPOT, {1.0, 1.0, 1.0});
    right.add(XM_GENAI_TPOT, {5.0});
    float mean = 0, std = 0, load = 0;
    size_t generated = 0, input = 0;
    EXPECT_EQ(ov_genai_perf_metrics_add_in_place(&left.m, &right.m), OK);
    EXPECT_EQ(ov_genai_perf_metrics_get_tpot(&left.m, &mean, &std), OK);
    EXPECT_EQ(mean, 2.0f);
    EXPECT_NEAR(std, std::sqrt(3.0), 1e-6);
    EXPECT_EQ(ov_genai_perf_metrics_get_load_time(&left.m, &load), OK);
    EXPECT_EQ(load, 7.0f);
    EXPECT_EQ(ov_genai_perf_metrics_get_num_generation_tokens(&left.m, &generated), OK);
    EXPECT_EQ(ov_genai_perf_metrics_get_num_input_tokens(&left.m, &input), OK);
    EXPECT_EQ(generated, 7u);
    EXPECT_EQ(input, 30u);
    EXPECT_EQ(ov_genai_perf_metrics_add_in_place(&left.m, &left.m), OK);
    EXPECT_EQ(left.m.values[XM_GENAI_TPOT].n, 8u);
    EXPECT_EQ(left.m.generated, 14u);
}

TEST(PerfMetrics, ArePooledAllOrNot)
{
    for (uint64_t i = 1;; i++) {
        Log log;
        Metrics left, right;
        left.add(XM_GENAI_TTFT, std::vector<double>(16, 1.0));
        right.m.generated = 4;
        for (const auto &g : getters)
            right.add(g.which, {1.0, 2.0});
        xm_fail_allocation(i);
        const ov_status_e s = ov_genai_perf_metrics_add_in_place(&left.m, &right.m);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(s, seen ? UNKNOW_EXCEPTION : OK);
        EXPECT_EQ(left.m.values[XM_GENAI_TTFT].n, seen ? 16u : 18u) << i;
        EXPECT_EQ(left.m.values[XM_GENAI_TEMPLATE].n, seen ? 0u : 2u) << i;
        EXPECT_EQ(left.m.generated, seen ? 0u : 4u) << i;
        if (!seen)
            break;
    }
}

TEST(PerfMetrics, RefuseMissingArguments)
{
    Metrics x;
    float mean, std;
    size_t n;
    std::vector<Get> all = {ov_genai_perf_metrics_get_throughput};
    for (const auto &g : getters)
        all.push_back(g.get);
    for (Get get : all) {
        EXPECT_EQ(get(nullptr, &mean, &std), INVALID_C_PARAM);
        EXPECT_EQ(get(&x.m, nullptr, &std), INVALID_C_PARAM);
        EXPECT_EQ(get(&x.m, &mean, nullptr), INVALID_C_PARAM);
    }
    for (ov_status_e s : {ov_genai_perf_metrics_get_load_time(nullptr, &mean),
                          ov_genai_perf_metrics_get_load_time(&x.m, nullptr),
                          ov_genai_perf_metrics_get_num_generation_tokens(nullptr, &n),
                          ov_genai_perf_metrics_get_num_generation_tokens(&x.m, nullptr),
                          ov_genai_perf_metrics_get_num_input_tokens(nullptr, &n),
                          ov_genai_perf_metrics_get_num_input_tokens(&x.m, nullptr),
                          ov_genai_perf_metrics_add_in_place(nullptr, &x.m),
                          ov_genai_perf_metrics_add_in_place(&x.m, nullptr)})
        EXPECT_EQ(s, INVALID_C_PARAM);
}

} // namespace
