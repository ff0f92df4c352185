/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of `xemoe devices` for Intel's chips, and the facts from Level Zero: from Intel's
 * driver, and from the unit tests' fake loader, which has one of the chips.
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

struct Facts {
    const char *chip, *architecture;
    bool is_integrated;
    int slices, sub_slices, eus, threads;
};
/* clang-format off */
const std::vector<Facts> facts_of_22_43 = {
    {"skl",   "gen9",   true,  1, 3, 8,  7}, {"icllp", "gen11",  true,  1, 8,  8,  7},
    {"tgllp", "xe_lp",  true,  1, 6, 16, 7}, {"dg1",   "xe_lp",  false, 1, 6,  16, 7},
    {"dg2",   "xe_hpg", false, 8, 4, 16, 8}, {"pvc",   "xe_hpc", false, 1, 8,  8,  8},
};
const std::vector<Facts> facts_of_current = {
    {"tgllp",   "xe_lp",  true,  1, 6, 16, 7},
    {"rkl",     "xe_lp",  true,  1, 2, 16, 7},
    {"adls",    "xe_lp",  true,  1, 2, 16, 7},
    {"adlp",    "xe_lp",  true,  1, 6, 16, 7},
    {"adln",    "xe_lp",  true,  1, 2, 16, 7},
    {"dg1",     "xe_lp",  false, 1, 6, 16, 7},
    {"dg2",     "xe_hpg", false, 8, 4, 16, 8},
    {"acm-g11", "xe_hpg", false, 2, 4, 16, 8},
    {"mtl",     "xe_hpg", true,  2, 4, 16, 8},
    {"mtl-u",   "xe_hpg", true,  1, 4, 16, 8},
    {"arl",     "xe_hpg", true,  2, 4, 16, 8},
    {"pvc",     "xe_hpc", false, 8, 16, 8,  8},
    {"bmg",     "xe2",    false, 5, 4, 8,  8},
    {"bmg-g31", "xe2",    false, 8, 4, 8,  8},
    {"lnl",     "xe2",    true,  2, 4, 8,  8},
    {"ptl",     "xe3",    true,  3, 4, 8,  10},
    {"ptl-u",   "xe3",    true,  1, 4, 8,  10},
    {"wcl",     "xe3",    true,  1, 2, 8,  10},
    {"nvl-s",   "xe3",    true,  1, 4, 8,  10},
    {"nvl-u",   "xe3",    true,  1, 4, 8,  10},
    {"nvl-p",   "xe3",    true,  3, 4, 8,  10},
};
/* clang-format on */

/* `at`: where the facts are in the JSON, OpenCL's or Level Zero's. */
void
expect_geometry(const Json &j, const std::string &at, const Facts &f)
{
    EXPECT_EQ(yyjson_get_bool(j.at(at + "/integrated")), f.is_integrated);
    EXPECT_EQ(j.number(at + "/slices"), f.slices);
    EXPECT_EQ(j.number(at + "/sub_slices_of_slice"), f.sub_slices);
    EXPECT_EQ(j.number(at + "/eus_of_sub_slice"), f.eus);
    EXPECT_EQ(j.number(at + "/threads_of_eu"), f.threads);
}

TEST_F(Devices, TellsEachChipsFacts)
{
    for (const Facts &f : is_current_driver() ? facts_of_current : facts_of_22_43) {
        SCOPED_TRACE(f.chip);
        expect_chip(chip(f.chip));
        Outcome o = run({"devices", "--json"}, dry(chip(f.chip)));
        ASSERT_EQ(o.code, 0) << o.err;
        Json j(o.out);
        const std::string device = "/devices/0", zero = device + "/level_zero";
        EXPECT_EQ(j.text(device + "/architecture"), f.architecture);
        EXPECT_FALSE(yyjson_get_bool(j.at(device + "/facts_guessed")));
        expect_geometry(j, device, f);
        EXPECT_EQ(j.number(device + "/vendor_id"), 0x8086);
        EXPECT_EQ(j.text(device + "/uuid").size(), 36u);
        ASSERT_NE(j.at(zero + "/available"), nullptr) << o.out;
        /* For 22.43 Level Zero is a separate package, which may be missing. */
        const bool has_zero = yyjson_get_bool(j.at(zero + "/available"));
        EXPECT_TRUE(has_zero || !is_current_driver()) << o.out;
        if (has_zero) {
            EXPECT_EQ(j.text(zero + "/uuid"), j.text(device + "/uuid"));
            expect_geometry(j, zero, f);
        }
    }
}

/* The driver itself would replace an unknown name by another chip. */
TEST(DryRunTool, RefusesChipsThatTheDriverDoesNotKnow)
{
    static const struct {
        const char *chip, *driver, *sentence;
    } cases[] = {
        {"xyz", "", "dry_run: unknown chip xyz: skl kbl bxt icllp tgllp "},
        {"lnl", "22.43", "dry_run: driver 22.43 does not know lnl\n"},
        {"skl", "current", "dry_run: the current driver does not know skl\n"},
        {"lnl", "23", "dry_run: DRIVER is current or 22.43, not 23\n"},
    };
    for (const auto &c : cases) {
        Settings settings = {std::string("DRIVER=") + c.driver};
        settings.under = {XM_TOOLS_DIR "/dry_run", c.chip};
        const Outcome o = run({"devices"}, settings);
        EXPECT_EQ(o.code, 2);
        EXPECT_EQ(o.err.find(c.sentence), 0u) << o.err;
    }
}

TEST_F(Devices, CpuWithoutADriverIsTheGpuAndIsToldSo)
{
    Outcome o =
        run({"plan", XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64", "--device=CPU"},
            dry(chip("tgllp")));
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_NE(
        o.err.find("device CPU means GPU here: no installed OpenCL driver runs on "),
        std::string::npos)
        << o.err;
    o = run({"devices"}, dry(chip("tgllp")));
    EXPECT_EQ(o.out.find("CPU:"), std::string::npos) << o.out;
}

#ifdef XM_FAKE_ZE
TEST_F(Devices, AddsLevelZerosTelemetry)
{
    Settings settings = dry(chip("dg1"));
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
    /* The budget counts free memory. */
    std::string plan =
        run({"plan", XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64"}, settings).out;
    EXPECT_NE(plan.find(" 12288.0 MiB\nit fits"), std::string::npos) << plan;
    settings = dry(chip("tgllp")); /* the fake loader does not have this chip */
    settings.push_back("XM_LEVEL_ZERO=" XM_FAKE_ZE);
    text = run({"devices"}, settings).out;
    EXPECT_NE(text.find("Level Zero: not available: it does not list this device"),
              std::string::npos)
        << text;
}
#endif

} // namespace
