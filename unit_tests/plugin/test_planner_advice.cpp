/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans for a chip that is not in this machine: each piece of advice is checked to be enough.
 */
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "plugin/gpu/planner.h"
#include "plugin/readers/openvino_ir.h"

namespace
{

constexpr uint64_t MIB = 1 << 20;

class PlannerAdvice : public ::testing::Test
{
  protected:
    PlannerAdvice()
    {
        EXPECT_EQ(xm_openvino_ir_read(
                      XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml",
                      nullptr, &g, &err),
                  XM_OK)
            << err.text;
        ask("bmg", 24 * MIB, 20000);
    }
    ~PlannerAdvice() override
    {
        xm_graph_destroy(g);
        xm_planner_free_plan(&p);
    }
    /* Starts a new plan for a chip with `room` bytes. */
    void ask(const char *chip, uint64_t room, uint64_t context)
    {
        err = {};
        xm_planner_free_plan(&p);
        p = {};
        EXPECT_EQ(xm_device_imagine(chip, &p.info, &err), XM_OK) << err.text;
        xm_config_init(&p.config);
        p.wish = {context, 1};
        xm_planner_room(&p.info, nullptr, &p.room);
        p.room.known = true;
        p.room.device = room;
    }
    void set(const char *key, const std::string &value)
    {
        EXPECT_EQ(xm_config_set(&p.config, key, value.c_str(), &err), XM_OK) << err.text;
    }
    xm_status plan()
    {
        return xm_planner_plan(&p, g, &err);
    }

    xm_graph *g = nullptr;
    xm_plan p = {};
    xm_error err = {};
};

TEST_F(PlannerAdvice, IsNotGivenWhereAllFits)
{
    ask("bmg", 1000 * MIB, 100);
    ASSERT_EQ(plan(), XM_OK) << err.text;
    EXPECT_EQ(p.excess, 0u);
    EXPECT_EQ(p.n_advice, 0u);
    EXPECT_GT(p.largest_context, 100u);
    EXPECT_GT(p.need.weights, 0u);
}

/* Follows each piece of advice alone, in the order of the enum. */
TEST_F(PlannerAdvice, IsEnough)
{
    ASSERT_EQ(plan(), XM_OK) << err.text;
    ASSERT_GT(p.excess, 0u);
    ASSERT_GT(p.n_advice, 0u);
    EXPECT_EQ(p.advice[0].change, XM_PLAN_CONTEXT);
    const xm_plan first = p;
    for (size_t i = 0; i < first.n_advice; i++) {
        const xm_plan_advice &a = first.advice[i];
        SCOPED_TRACE(a.value);
        const char *keys[] = {nullptr, "KV_CACHE_PRECISION", "XM_UBATCH",
                              "OFFLOAD_RATIO"};
        ask("bmg", 24 * MIB,
            a.change == XM_PLAN_CONTEXT ? std::stoull(a.value) : first.wish.context);
        if (keys[a.change])
            set(keys[a.change], a.value);
        EXPECT_TRUE(i == 0 || a.change > first.advice[i - 1].change);
        ASSERT_EQ(plan(), XM_OK) << err.text;
        EXPECT_EQ(p.excess, 0u);
    }
}

TEST_F(PlannerAdvice, IsOfTheCacheWhereHalfOfItIsEnough)
{
    ASSERT_EQ(plan(), XM_OK) << err.text;
    const uint64_t half = p.need.kv / 2;
    ask("bmg", 24 * MIB + p.excess - half / 2, 20000);
    ASSERT_EQ(plan(), XM_OK) << err.text;
    bool kv = false;
    for (size_t i = 0; i < p.n_advice; i++)
        kv |= p.advice[i].change == XM_PLAN_KV && strcmp(p.advice[i].value, "i8") == 0;
    EXPECT_TRUE(kv);
    ask("bmg", 24 * MIB, 20000);
    set("KV_CACHE_PRECISION", "i8");
    ASSERT_EQ(plan(), XM_OK) << err.text;
    for (size_t i = 0; i < p.n_advice; i++)
        EXPECT_TRUE(p.advice[i].change != XM_PLAN_KV ||
                    strcmp(p.advice[i].value, "u4") == 0)
            << "it is i8 already";
    ask("bmg", 24 * MIB, 20000);
    set("KV_CACHE_PRECISION", "u4");
    ASSERT_EQ(plan(), XM_OK) << err.text;
    for (size_t i = 0; i < p.n_advice; i++)
        EXPECT_NE(p.advice[i].change, XM_PLAN_KV) << "there is none below u4";
}

/* 8-bit values and their scales need more than half of 16-bit values; 4-bit ones less than a
 * third. */
TEST_F(PlannerAdvice, IsOfFourBitsWhereEightAreTooMany)
{
    ASSERT_EQ(plan(), XM_OK) << err.text;
    const uint64_t third = p.need.kv / 3;
    const uint64_t room = 24 * MIB + p.excess - 2 * third;
    auto advised = [this] {
        std::string value;
        for (size_t i = 0; i < p.n_advice; i++)
            if (p.advice[i].change == XM_PLAN_KV)
                value = p.advice[i].value;
        return value;
    };
    ask("bmg", room, 20000);
    ASSERT_EQ(plan(), XM_OK) << err.text;
    EXPECT_EQ(advised(), "u4");
    ask("bmg", room, 20000);
    set("KV_CACHE_PRECISION", "u4");
    ASSERT_EQ(plan(), XM_OK) << err.text;
    EXPECT_EQ(p.excess, 0u);
    ask("bmg", room, 20000);
    set("KEY_CACHE_PRECISION", "f16");
    ASSERT_EQ(plan(), XM_OK) << err.text;
    EXPECT_EQ(advised(), "") << "--kv alone would not change the keys";
}

/* Offloading experts is advised only if host and device memory are separate. */
TEST_F(PlannerAdvice, LeavesExpertsOnTheHostOfADiscreteDevice)
{
    for (const char *chip : {"bmg", "mtl_u"}) {
        ask(chip, 13 * MIB, 4096);
        p.room.host = 13 * MIB;
        if (!p.room.host_is_device)
            p.room.host = UINT64_MAX;
        ASSERT_EQ(plan(), XM_OK) << err.text;
        bool offload = false;
        for (size_t i = 0; i < p.n_advice; i++)
            offload |= p.advice[i].change == XM_PLAN_OFFLOAD;
        EXPECT_EQ(offload, strcmp(chip, "bmg") == 0) << chip;
    }
}

TEST_F(PlannerAdvice, SaysWhichContextCouldBeCounted)
{
    ask("bmg", 100000 * MIB, 1000000);
    setenv("XM_SKIP", "SDPAToPagedAttention", 1);
    EXPECT_EQ(plan(), XM_NO_MEMORY);
    unsetenv("XM_SKIP");
    EXPECT_TRUE(p.is_beyond_counting);
    EXPECT_GT(p.largest_context, 0u);
    const std::string end =
        "; a context of " + std::to_string(p.largest_context) + " fits";
    EXPECT_NE(std::string(err.text).find(end), std::string::npos) << err.text;
}

TEST(PlannerUsualContext, IsNoLongerThanTheTraining)
{
    EXPECT_EQ(xm_planner_usual_context(0), 4096u);
    EXPECT_EQ(xm_planner_usual_context(2048), 2048u);
    EXPECT_EQ(xm_planner_usual_context(1 << 20), 4096u);
}

} // namespace
