/* SPDX-License-Identifier: Apache-2.0
 *
 * What `xemoe devices` says of Intel's chips, and what Level Zero adds: from Intel's driver where
 * it is installed, and from a loader of the unit tests that has one of the chips.
 */
#include "functional_tests/dry_run/dry_run.h"

namespace
{

class Devices : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_intel_driver())
            GTEST_SKIP() << no_driver;
    }
};

TEST_F(Devices, TellsEachChipsFacts)
{
    static const struct {
        const char *chip, *architecture;
        bool integrated;
        int slices, sub_slices, eus, threads;
    } facts[] = {
        {"skl", "gen9", true, 1, 3, 8, 7},     {"icllp", "gen11", true, 1, 8, 8, 7},
        {"tgllp", "xe_lp", true, 1, 6, 16, 7}, {"dg1", "xe_lp", false, 1, 6, 16, 7},
        {"dg2", "xe_hpg", false, 8, 4, 16, 8}, {"pvc", "xe_hpc", false, 1, 8, 8, 8},
    };
    for (const auto &f : facts) {
        SCOPED_TRACE(f.chip);
        Outcome o = run({"devices", "--json"}, dry(chip(f.chip)));
        ASSERT_EQ(o.code, 0) << o.err;
        Json j(o.out);
        EXPECT_EQ(j.text("/devices/0/architecture"), f.architecture);
        EXPECT_EQ(yyjson_get_bool(j.at("/devices/0/integrated")), f.integrated);
        EXPECT_FALSE(yyjson_get_bool(j.at("/devices/0/facts_guessed")));
        EXPECT_EQ(j.number("/devices/0/slices"), f.slices);
        EXPECT_EQ(j.number("/devices/0/sub_slices_of_slice"), f.sub_slices);
        EXPECT_EQ(j.number("/devices/0/eus_of_sub_slice"), f.eus);
        EXPECT_EQ(j.number("/devices/0/threads_of_eu"), f.threads);
        EXPECT_EQ(j.number("/devices/0/vendor_id"), 0x8086);
        EXPECT_EQ(j.text("/devices/0/uuid").size(), 36u);
        EXPECT_NE(j.at("/devices/0/level_zero/available"), nullptr) << o.out;
        if (yyjson_get_bool(j.at("/devices/0/level_zero/available"))) {
            EXPECT_EQ(j.text("/devices/0/level_zero/uuid"), j.text("/devices/0/uuid"));
            EXPECT_EQ(j.number("/devices/0/level_zero/slices"), f.slices);
        }
    }
}

TEST_F(Devices, CpuWithoutADriverIsTheGpuAndIsToldSo)
{
    Outcome o =
        run({"plan", XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64", "--device=CPU"},
            dry(chip("tgllp")));
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.err.find("device CPU is taken as GPU: no OpenCL driver here runs on "),
              std::string::npos)
        << o.err;
    o = run({"devices"}, dry(chip("tgllp")));
    EXPECT_EQ(o.out.find("CPU:"), std::string::npos) << o.out;
}

#ifdef XM_FAKE_ZE
TEST_F(Devices, AddsLevelZerosTelemetry)
{
    Words settings = dry(chip("dg1"));
    settings.push_back("XM_LEVEL_ZERO=" XM_FAKE_ZE);
    Json j(run({"devices", "--json"}, settings).out);
    const std::string zero = "/devices/0/level_zero";
    EXPECT_EQ(j.text(zero + "/name"), "Fake Discrete");
    EXPECT_EQ(j.text(zero + "/pci"), "0000:03:00.0");
    EXPECT_EQ(j.number(zero + "/memory_used"), 4294967296.0);
    EXPECT_EQ(j.number(zero + "/watts"), 42);
    EXPECT_EQ(j.number(zero + "/watts_limit"), 190);
    EXPECT_EQ(j.text(zero + "/frequencies/0/domain"), "gpu");
    EXPECT_EQ(j.number(zero + "/frequencies/0/mhz"), 600);
    EXPECT_EQ(j.number(zero + "/memories/0/bus_bits"), 256);
    std::string text = run({"devices"}, settings).out;
    for (const char *line :
         {"Level Zero: Fake Discrete, discrete, PCI 0000:03:00.0; 512 EUs of 8 threads",
          "    memory in use: 4.0 of 16.0 GiB\n", "    power: 42.0 W, limit 190 W\n",
          "    frequency of gpu: 600 MHz, at most 2400\n"})
        EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
    /* A budget counts what is free. */
    std::string plan =
        run({"plan", XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64"}, settings).out;
    EXPECT_NE(plan.find(" 12288.0 MiB\nit fits"), std::string::npos) << plan;
    settings = dry(chip("tgllp")); /* which the fake loader does not have */
    settings.push_back("XM_LEVEL_ZERO=" XM_FAKE_ZE);
    text = run({"devices"}, settings).out;
    EXPECT_NE(text.find("Level Zero: not available: it does not list this device"),
              std::string::npos)
        << text;
}
#endif

} // namespace
