/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings under which Intel's OpenCL driver runs dry as one of its chips: it compiles, checks
 * and records, and executes nothing (docs/intel_gpu.md). XM_DRY_DRIVER selects the driver of a
 * test program: 22.43 (Debian 12's) or current (that of tools/intel_driver).
 */
#ifndef XM_FUNCTIONAL_TESTS_DRY_RUN_DRY_RUN_H
#define XM_FUNCTIONAL_TESTS_DRY_RUN_DRY_RUN_H

#include <filesystem>

#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"

/* A chip as a driver presents it. ip: major and minor of the IP version that the driver reports. */
struct Chip {
    const char *name, *driver, *ip;
};
/* clang-format off */
inline const Chip chips[] = {
    {"skl",     "22.43",   "9.0"},
    {"icllp",   "22.43",   "11.0"},
    {"tgllp",   "22.43",   "12.0"},
    {"dg1",     "22.43",   "12.10"},
    {"dg2",     "22.43",   "12.55"},
    {"pvc",     "22.43",   "12.60"},
    {"tgllp",   "current", "12.0"},
    {"rkl",     "current", "12.1"},
    {"adls",    "current", "12.2"},
    {"adlp",    "current", "12.3"},
    {"adln",    "current", "12.4"},
    {"dg1",     "current", "12.10"},
    {"dg2",     "current", "12.55"},
    {"acm-g11", "current", "12.56"},
    {"mtl",     "current", "12.70"},
    {"mtl-u",   "current", "12.70"},
    {"arl",     "current", "12.74"},
    {"pvc",     "current", "12.60"},
    {"bmg",     "current", "20.1"},
    {"bmg-g31", "current", "20.2"},
    {"lnl",     "current", "20.4"},
    {"ptl",     "current", "30.0"},
    {"ptl-u",   "current", "30.1"},
    {"wcl",     "current", "30.3"},
    {"nvl-s",   "current", "30.4"},
    {"nvl-u",   "current", "30.5"},
    {"nvl-p",   "current", "35.10"},
};
/* clang-format on */

inline std::string
driver()
{
    const char *named = getenv("XM_DRY_DRIVER");
    return named && *named ? named : "22.43";
}

inline bool
is_current_driver()
{
    return driver() == "current";
}

inline const Chip &
chip(const std::string &name)
{
    for (const Chip &c : chips) {
        if (name == c.name && driver() == c.driver)
            return c;
    }
    ADD_FAILURE() << "no chip " << name << " of driver " << driver();
    return chips[0];
}

/* Returns the settings for the driver's cache of compiled kernels, which all models share. The
 * first variable is for 22.43, the others for the current driver. */
inline Words
driver_cache(const Chip &c)
{
    const auto folder = std::filesystem::path(XM_DRIVER_CACHE) / c.driver / c.name;
    std::filesystem::create_directories(folder);
    return {"cl_cache_dir=" + folder.string(), "NEO_CACHE_DIR=" + folder.string(),
            "NEO_CACHE_PERSISTENT=1"};
}

inline Settings
dry(const Chip &c)
{
    Settings settings(driver_cache(c));
    settings.push_back(std::string("DRIVER=") + c.driver);
    settings.under = {XM_TOOLS_DIR "/dry_run", c.name};
    return settings;
}

/* A driver that is installed but does not run dry fails the tests; tools/test checks that first. */
inline bool
has_intel_driver()
{
    static const bool found =
        is_current_driver()
            ? system(XM_TOOLS_DIR "/intel_driver --find >/dev/null 2>&1") == 0
            : std::filesystem::exists("/etc/OpenCL/vendors/intel.icd");
    return found;
}
static const char *const no_driver =
    "Intel's GPU driver is not there (tools/setup --intel-driver)";

/* Checks that the device is the chip, because the driver replaces an unknown name by another
 * chip. */
inline void
expect_chip(const Chip &c)
{
    Outcome o = run({"devices", "--json"}, dry(c));
    ASSERT_EQ(o.code, 0) << o.err;
    Json j(o.out);
    EXPECT_NE(j.text("/devices/0/vendor").find("Intel"), std::string::npos);
    EXPECT_EQ(j.text("/devices/0/ip").rfind(std::string(c.ip) + ".", 0), 0u)
        << j.text("/devices/0/ip") << " for " << c.name;
}

#endif
