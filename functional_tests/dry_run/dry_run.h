/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings under which Intel's OpenCL driver runs dry as one of the chips it knows: it
 * compiles, checks and records, and executes nothing (docs/intel_gpu.md).
 */
#ifndef XM_FUNCTIONAL_TESTS_DRY_RUN_DRY_RUN_H
#define XM_FUNCTIONAL_TESTS_DRY_RUN_DRY_RUN_H

#include <filesystem>

#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"

/* ip: major and minor of the version that the driver then reports. */
struct Chip {
    const char *name, *hardware, *ip;
};
/* clang-format off */
inline const Chip chips[] = {
    {"skl",   "default", "9.0"},
    {"icllp", "default", "11.0"},
    {"tgllp", "default", "12.0"},
    {"dg1",   "default", "12.10"},
    {"dg2",   "8x4x16",  "12.55"},
    {"pvc",   "1x8x8",   "12.60"},
};
/* clang-format on */

inline const Chip &
chip(const std::string &name)
{
    for (const Chip &c : chips) {
        if (name == c.name)
            return c;
    }
    ADD_FAILURE() << "no chip " << name;
    return chips[0];
}

/* The driver keeps what it compiled, so that models share kernels. It must not wait for
 * timestamps, as it would on pvc: nothing writes them. */
inline Words
dry(const Chip &c, int devices = 1)
{
    std::filesystem::path cache = std::filesystem::path(XM_DRIVER_CACHE) / c.name;
    std::filesystem::create_directories(cache);
    return {"NEOReadDebugKeys=1",
            "SetCommandStreamReceiver=1",
            "AUBDumpCaptureFileName=/dev/null",
            "EnableTimestampWaitForQueues=0",
            "EnableTimestampWaitForEvents=0",
            "CreateMultipleRootDevices=" + std::to_string(devices),
            std::string("ProductFamilyOverride=") + c.name,
            std::string("HardwareInfoOverride=") + c.hardware,
            "OCL_ICD_VENDORS=/etc/OpenCL/vendors/intel.icd",
            "cl_cache_dir=" + cache.string()};
}

/* What is installed under that name but cannot run dry fails the tests; tools/test looks at the
 * driver before it runs them. */
inline bool
has_intel_driver()
{
    return std::filesystem::exists("/etc/OpenCL/vendors/intel.icd");
}
static const char *const no_driver =
    "Intel's GPU driver (intel-opencl-icd) is not installed";

/* The device is the chip: the driver takes a name that it does not know for another. */
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
