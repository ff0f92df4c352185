/* SPDX-License-Identifier: Apache-2.0
 *
 * Forecasts against the formulas in forecast.h, computed by hand.
 */
#include "plugin/forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "plugin/mesh/mesh_plan.h"
#include "plugin/mesh/mesh_rates.h"
#include "runtime/kept.h"

namespace
{

/* The work of some steps; the struct owns their list. */
struct Work {
    std::vector<xm_work_step> list;
    xm_run_work work;
    Work(uint64_t tokens, uint64_t launches, std::vector<xm_work_step> steps)
        : list(std::move(steps)), work{tokens, launches, list.data(),
                                       (uint32_t)list.size()}
    {
    }
};

const xm_rates rates = {100e9, 2e12, 5e-6, XM_RATES_GIVEN};

TEST(Forecast, EachStepTakesWhatItIsBoundBy)
{
    const Work w(8, 3, {{1000000000, 1000}, {1000, 4000000000}});
    EXPECT_DOUBLE_EQ(xm_forecast_run(&w.work, &rates),
                     1e9 / 100e9 + 4e9 / 2e12 + 3 * 5e-6);
}

TEST(Forecast, NothingIsKnownWithoutWorkOrBandwidth)
{
    const Work w(1, 1, {{1000, 1000}}), none(1, 1, {});
    xm_rates unknown = rates;
    unknown.read = 0.0;
    EXPECT_EQ(xm_forecast_run(&none.work, &rates), 0.0);
    EXPECT_EQ(xm_forecast_run(&w.work, &unknown), 0.0);
    xm_rates unbound = rates;
    unbound.multiply = 0.0;
    EXPECT_DOUBLE_EQ(xm_forecast_run(&w.work, &unbound), 1000 / 100e9 + 5e-6);
}

/* A forecast with fitted rates returns the measured times. */
TEST(Forecast, RatesFitWhatWasMeasured)
{
    const Work token(1, 20, {{80000000, 16000000}, {20000000, 4000000}});
    const Work prompt(512, 30, {{90000000, 80000000000}, {500000000, 1000}});
    xm_rates found = {0, 0, 4e-6, XM_RATES_UNKNOWN};
    ASSERT_TRUE(xm_rates_fit(&found, &token.work, 3e-3, &prompt.work, 0.9));
    EXPECT_NEAR(xm_forecast_run(&token.work, &found), 3e-3, 1e-9);
    EXPECT_NEAR(xm_forecast_run(&prompt.work, &found), 0.9, 1e-9);
    EXPECT_NEAR(found.read, 1e8 / (3e-3 - 20 * 4e-6), 1.0);
}

/* If a prompt takes no longer than reading its weights, its time gives no rate of multiplication.
 */
TEST(Forecast, APromptThatReadingExplainsFitsNoRates)
{
    const Work token(1, 0, {{1000000, 1}}), prompt(64, 0, {{1000000, 64}});
    xm_rates found = {5, 7, 0, XM_RATES_UNKNOWN};
    EXPECT_FALSE(xm_rates_fit(&found, &token.work, 1e-3, &prompt.work, 1e-3));
    EXPECT_EQ(found.read, 5) << "rates of two measurements would be a pair of none";
    EXPECT_EQ(found.multiply, 7);
}

TEST(Forecast, RunsShorterThanTheirLaunchesFitNoRates)
{
    const Work token(1, 1000, {{1000, 1000}}), prompt(64, 1, {{1000, 1000}});
    xm_rates found = {0, 0, 4e-6, XM_RATES_UNKNOWN};
    EXPECT_FALSE(xm_rates_fit(&found, &token.work, 1e-3, &prompt.work, 1.0));
    const Work nothing(1, 0, {{0, 1000}});
    EXPECT_FALSE(xm_rates_fit(&found, &nothing.work, 1e-3, &prompt.work, 1.0));
}

TEST(Forecast, CardsReachSharesOfTheirSpecifications)
{
    const struct {
        const char *name;
        double gb_s, peak;
    } cards[] = {{"a770", 560, 128 * 512 * 2.1e9},
                 {"b580", 456, 256 * 160 * 2.67e9},
                 {"max1550", 3277, 512 * 1024 * 1.6e9},
                 {"arc_mtl_h", 119.5, 32 * 128 * 2.25e9},
                 {"b70", 608, 0}}; /* its clock is not published */
    for (const auto &c : cards) {
        SCOPED_TRACE(c.name);
        xm_device_info info;
        xm_error err = {};
        ASSERT_EQ(xm_device_imagine(c.name, &info, &err), XM_OK) << err.text;
        xm_rates r;
        xm_rates_of_card(&info, &r);
        EXPECT_EQ(r.source, XM_RATES_CARD);
        EXPECT_DOUBLE_EQ(r.read, xm_usual_read_share * c.gb_s * 1e9);
        EXPECT_NEAR(xm_peak_of_card(&info), c.peak, 1e-9 * c.peak);
        EXPECT_DOUBLE_EQ(r.multiply, xm_usual_multiply_share * xm_peak_of_card(&info));
    }
    xm_device_info chip;
    xm_rates r;
    ASSERT_EQ(xm_device_imagine("bmg", &chip, nullptr), XM_OK);
    xm_rates_of_card(&chip, &r);
    EXPECT_EQ(r.source, XM_RATES_UNKNOWN);
    EXPECT_GT(r.launch_s, 0.0);
}

/* Measured rates decide what is worth splitting: of several devices those of the slowest. */
TEST(MeshRates, AreTheSlowestDevicesAndTheKeptLatency)
{
    char folder[] = "/tmp/xemoe-rates-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    xm_device_info fast, slow, unknown;
    ASSERT_EQ(xm_device_imagine("b580", &fast, nullptr), XM_OK);
    ASSERT_EQ(xm_device_imagine("140v", &slow, nullptr), XM_OK);
    ASSERT_EQ(xm_device_imagine("bmg", &unknown, nullptr), XM_OK);
    const xm_device_info *info[] = {&fast, &slow};
    const xm_split_wish usual = {2, nullptr, 5e10, 5e9, 15e-6};
    xm_split_wish wish = usual;
    xm_mesh_take_rates(folder, info, &wish);
    EXPECT_DOUBLE_EQ(wish.read_rate, xm_usual_read_share * 136.5e9);
    EXPECT_EQ(wish.link_latency_s, 15e-6);
    EXPECT_EQ(wish.link_rate, 5e9);
    /* a measured rate replaces the card's */
    xm_kept_rate_store(folder, &slow, "reading", 600e9);
    xm_mesh_latency_store(folder, &fast, 2, 40e-6);
    wish = usual;
    xm_mesh_take_rates(folder, info, &wish);
    EXPECT_DOUBLE_EQ(wish.read_rate, xm_usual_read_share * 456e9);
    EXPECT_EQ(wish.link_latency_s, 15e-6);
    info[1] = &unknown;
    wish = usual;
    xm_mesh_take_rates(folder, info, &wish);
    EXPECT_EQ(wish.read_rate, 5e10);
    double latency_s = 1.0;
    EXPECT_TRUE(xm_mesh_latency_load(folder, &fast, 2, &latency_s));
    EXPECT_NEAR(latency_s, 40e-6, 1e-12);
    latency_s = 1.0;
    EXPECT_FALSE(xm_mesh_latency_load(folder, &fast, 3, &latency_s));
    EXPECT_EQ(latency_s, 1.0);
    std::filesystem::remove_all(folder);
}

/* What xm_mesh_plan_keep stores about two ranks with equal work. A token's time is bound by
 * reading, a prompt's by multiplying. */
class MeshKeeps : public testing::Test
{
  protected:
    void SetUp() override
    {
        ASSERT_NE(mkdtemp(folder), nullptr);
        plan->devices.n = 2;
        plan->cluster = {1, 2, {5e9, 15e-6}, {5e9, 15e-6}};
        plan->wish.ranks = 2;
        plan->n_exchanges = 5;
        plan->exchanged = {5, 0, 4e4, 1e4, 0};
        for (int i = 0; i < 2; i++) {
            xm_plan *rank = &plan->rank[i];
            ASSERT_EQ(xm_device_imagine("140v", &rank->info, nullptr), XM_OK);
            rank->room.host_is_device = true;
            rank->weight_format = "u4";
            rank->decided.ubatch = 512;
            rank->token_work = token.work;
            rank->prompt_work = prompt.work;
            alone[i] = {100e9, 2e12, 4e-6, XM_RATES_MEASURED};
        }
    }
    void TearDown() override
    {
        std::filesystem::remove_all(folder);
    }
    /* Keeps the durations that a prompt and a token have with these rates and this latency. Then
     * loads what was kept into `found` and the plan, and forecasts the prompt and the token. */
    void keep(const xm_rates &beside, double latency_s)
    {
        const xm_rates both[] = {beside, beside};
        plan->cluster.local.latency_s = latency_s;
        xm_mesh_forecast(plan.get(), both, &measured_prompt, &measured_token);
        plan->cluster.local.latency_s = 15e-6;
        xm_mesh_plan_keep(plan.get(), alone, folder, measured_prompt.all,
                          measured_token.all);
        plan->cluster.local.latency_s = 15e-6;
        found[0] = alone[0];
        found[1] = alone[1];
        (void)xm_mesh_latency_load(folder, &plan->rank[0].info, 2,
                                   &plan->cluster.local.latency_s);
        xm_mesh_plan_take_together(plan.get(), folder, found);
        xm_mesh_forecast(plan.get(), found, &forecast_prompt, &forecast_token);
    }
    char folder[32] = "/tmp/xemoe-rates-XXXXXX";
    const Work token{1, 20, {{80000000, 16000000}, {20000000, 4000000}}};
    const Work prompt{512, 30, {{90000000, 80000000000}, {500000000, 1000}}};
    std::unique_ptr<struct xm_mesh_plan> plan = std::make_unique<struct xm_mesh_plan>();
    xm_rates alone[2], found[2];
    xm_run_seconds measured_prompt, measured_token, forecast_prompt, forecast_token;
};

/* Devices that share one memory read more slowly at the same time: the kept rates are lower, the
 * latency of messages stays the same. */
TEST_F(MeshKeeps, WhatDevicesOfOneMemoryLoseToEachOther)
{
    keep({70e9, 1e12, 4e-6, XM_RATES_MEASURED}, 15e-6);
    EXPECT_NEAR(found[1].read, 70e9, 1e3);
    EXPECT_NEAR(found[1].multiply, 1e12, 1e6);
    EXPECT_TRUE(found[1].is_beside);
    EXPECT_EQ(plan->cluster.local.latency_s, 15e-6);
    EXPECT_NEAR(forecast_token.all, measured_token.all, 1e-9);
    EXPECT_NEAR(forecast_prompt.all, measured_prompt.all, 1e-8);
    plan->wish.by_layer = true; /* the ranks run one after the other */
    found[0] = alone[0];
    xm_mesh_plan_take_together(plan.get(), folder, found);
    EXPECT_EQ(found[0].read, alone[0].read);
    plan->wish.by_layer = false;
    found[0].source = XM_RATES_GIVEN; /* rates that the user gave are not replaced */
    xm_mesh_plan_take_together(plan.get(), folder, found);
    EXPECT_EQ(found[0].read, alone[0].read);
}

/* Of two nodes with two devices each, the second has devices with memory of their own. */
TEST_F(MeshKeeps, NothingThatDevicesLoseUnlessTheyShareMemoryOnEachNode)
{
    keep({70e9, 1e12, 4e-6, XM_RATES_MEASURED}, 15e-6);
    plan->devices.n = 4;
    plan->cluster.nodes = 2;
    for (bool is_one : {true, false}) {
        xm_rates rates[4];
        for (int i = 0; i < 4; i++) {
            plan->rank[i].room.host_is_device = is_one || i < 2;
            rates[i] = alone[0];
        }
        xm_mesh_plan_take_together(plan.get(), folder, rates);
        for (const xm_rates &r : rates)
            EXPECT_NEAR(r.read, is_one ? 70e9 : 100e9, 1e3);
    }
}

TEST_F(MeshKeeps, WhatMessagesOfDevicesWithMemoryOfTheirOwnTake)
{
    plan->rank[0].room.host_is_device = plan->rank[1].room.host_is_device = false;
    keep(alone[0], 300e-6);
    EXPECT_NEAR(plan->cluster.local.latency_s, 300e-6, 2e-6);
    EXPECT_EQ(found[0].read, alone[0].read);
    EXPECT_FALSE(found[0].is_beside);
    EXPECT_NEAR(forecast_token.all, measured_token.all, 2e-5);
}

/* The token takes so long that with slower reading as the reason the prompt would take longer than
 * it did; so the latency of messages is kept as the reason. */
TEST_F(MeshKeeps, WhatMessagesTakeWhereReadingExplainsNoPrompt)
{
    keep(alone[0], 20e-3);
    EXPECT_EQ(found[0].read, alone[0].read);
    EXPECT_GT(plan->cluster.local.latency_s, 10e-3);
    EXPECT_NEAR(forecast_token.all, measured_token.all, 2e-5);
}

TEST_F(MeshKeeps, NothingWhereTheDevicesThemselvesWereNotMeasured)
{
    alone[1].source = XM_RATES_CARD;
    keep({70e9, 1e12, 4e-6, XM_RATES_MEASURED}, 15e-6);
    EXPECT_EQ(found[0].read, alone[0].read);
    EXPECT_EQ(plan->cluster.local.latency_s, 15e-6);
}

TEST(Forecast, ExchangesGoOverBothKindsOfLinks)
{
    const xm_link local = {8e9, 2e-6}, between = {1e9, 10e-6};
    const xm_exchange_work w = {10, 0, 1e6, 4e6, 0};
    /* one node of 4 devices: each message takes two steps; 3 summands, and 3 of 4 parts */
    xm_cluster c = {1, 4, local, between};
    EXPECT_NEAR(xm_forecast_exchanges(&w, &c), 10 * 2 * 2e-6 + (3e6 + 3e6) / 8e9, 1e-12);
    /* three nodes of one device: 2 summands, and 2 of 3 parts */
    c = {3, 1, local, between};
    EXPECT_NEAR(xm_forecast_exchanges(&w, &c), 10 * 2 * 10e-6 + (2e6 + 8e6 / 3) / 1e9,
                1e-12);
    /* two nodes of two devices: one peer in the node, two in the other */
    c = {2, 2, local, between};
    EXPECT_NEAR(xm_forecast_exchanges(&w, &c),
                10 * (2e-6 + 10e-6) + 2e6 / 8e9 + 2 * 2e6 / 1e9, 1e-12);
    const xm_exchange_work passes = {0, 3, 0, 0, 2e6};
    EXPECT_NEAR(xm_forecast_exchanges(&passes, &c), 3 * 10e-6 + 2e6 / 1e9, 1e-12);
    c = {1, 4, local, between};
    EXPECT_NEAR(xm_forecast_exchanges(&passes, &c), 3 * 2e-6 + 2e6 / 8e9, 1e-12);
    c = {1, 1, local, between};
    EXPECT_EQ(xm_forecast_exchanges(&w, &c), 0.0);
}

} // namespace
