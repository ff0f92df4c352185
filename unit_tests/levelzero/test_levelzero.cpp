/* SPDX-License-Identifier: Apache-2.0
 *
 * The Level Zero module on a fake loader (fake_loader.c) in which each call fails once, and on
 * files that are no loaders.
 */
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/levelzero/levelzero.h"
#include "runtime/util/memory.h"

namespace
{

const char *const core_calls[] = {"zeInit", "zeDriverGet", "zeDeviceGet",
                                  "zeDeviceGetProperties"};

class LevelZero : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        library = dlopen(XM_FAKE_ZE, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(library, nullptr) << dlerror();
        fails = static_cast<char *>(dlsym(library, "fake_ze_fails"));
        code = static_cast<uint32_t *>(dlsym(library, "fake_ze_code"));
        ASSERT_TRUE(fails && code);
        fails[0] = 0;
        setenv("XM_LEVEL_ZERO", XM_FAKE_ZE, 1);
    }
    void TearDown() override
    {
        xm_ze_close(ze);
        unsetenv("XM_LEVEL_ZERO");
        if (library)
            dlclose(library);
    }
    void fail(const char *call, uint32_t result)
    {
        snprintf(fails, 64, "%s", call);
        *code = result;
    }
    void *library = nullptr;
    char *fails = nullptr;
    uint32_t *code = nullptr;
    xm_ze *ze = nullptr;
    xm_error err = {};
};

xm_device_info
gpu(uint32_t device_id)
{
    xm_device_info d = {};
    d.kind = XM_DEVICE_GPU;
    d.vendor_id = 0x8086;
    d.device_id = device_id;
    return d;
}

TEST_F(LevelZero, TellsTheFactsOfEveryDevice)
{
    ASSERT_EQ(xm_ze_open(&ze, &err), XM_OK) << err.text;
    ASSERT_EQ(xm_ze_count(ze), 2u);
    const xm_ze_facts *f = xm_ze_facts_of(ze, 0);
    EXPECT_STREQ(f->name, "Fake Discrete");
    EXPECT_FALSE(f->integrated);
    EXPECT_EQ(f->slices * f->sub_slices * f->eus, 512u);
    EXPECT_EQ(f->threads, 8u);
    EXPECT_EQ(f->clock_mhz, 2400u);
    EXPECT_TRUE(f->fp16 && f->dp4a);
    EXPECT_FALSE(f->fp64 || f->int64_atomics);
    ASSERT_EQ(f->n_memories, 1u);
    EXPECT_STREQ(f->memory[0].name, "GDDR6");
    EXPECT_EQ(f->memory[0].bytes, 16ull << 30);
    EXPECT_EQ(f->memory[0].bus_bits, 256u);
    EXPECT_TRUE(f->has_pci);
    EXPECT_EQ(f->pci.bus, 3u);
    EXPECT_TRUE(xm_ze_facts_of(ze, 1)->integrated);
}

TEST_F(LevelZero, MeasuresMemoryPowerAndClocks)
{
    xm_ze_telemetry t;
    ASSERT_EQ(xm_ze_open(&ze, &err), XM_OK) << err.text;
    xm_ze_measure(ze, 0, &t);
    EXPECT_EQ(t.memory_used, 4ull << 30);
    EXPECT_EQ(t.memory_bytes, 16ull << 30);
    EXPECT_DOUBLE_EQ(t.watts, 42);
    EXPECT_DOUBLE_EQ(t.watts_limit, 190);
    ASSERT_EQ(t.n_clocks, 2u);
    EXPECT_STREQ(t.clock[0].domain, "gpu");
    EXPECT_STREQ(t.clock[1].domain, "memory");
    EXPECT_EQ(t.clock[0].now_mhz, 600);
    EXPECT_EQ(t.clock[0].max_mhz, 2400);
    EXPECT_STREQ(t.why_not_memory, "");
    EXPECT_STREQ(t.why_not_power, "");
    EXPECT_STREQ(t.why_not_clocks, "");
    xm_ze_measure(ze, 1, &t);
    EXPECT_STREQ(t.why_not_memory, "the device has no memory module of its own");
    EXPECT_EQ(t.n_clocks, 1u);
}

TEST_F(LevelZero, FindsTheDeviceOfOpenCl)
{
    size_t i = 9;
    ASSERT_EQ(xm_ze_open(&ze, &err), XM_OK) << err.text;
    xm_device_info by_uuid = gpu(0);
    by_uuid.has_uuid = true;
    memset(by_uuid.uuid, 0x1d, sizeof(by_uuid.uuid));
    EXPECT_TRUE(xm_ze_find(ze, &by_uuid, &i));
    EXPECT_EQ(i, 1u);
    xm_device_info by_pci = gpu(0);
    by_pci.has_pci = true;
    by_pci.pci.bus = 3;
    EXPECT_TRUE(xm_ze_find(ze, &by_pci, &i));
    EXPECT_EQ(i, 0u);
    xm_device_info by_id = gpu(0x7d55);
    EXPECT_TRUE(xm_ze_find(ze, &by_id, &i));
    EXPECT_EQ(i, 1u);
    xm_device_info other = gpu(0x1234);
    EXPECT_FALSE(xm_ze_find(ze, &other, &i));
    by_id.kind = XM_DEVICE_CPU;
    EXPECT_FALSE(xm_ze_find(ze, &by_id, &i));
}

/* The fake loader aborts if it is called after a failed zeInit. */
TEST_F(LevelZero, StopsAtTheFirstFailure)
{
    for (const char *call : core_calls) {
        fail(call, 0x78000001);
        err = {};
        EXPECT_EQ(xm_ze_open(&ze, &err), XM_UNSUPPORTED);
        EXPECT_EQ(std::string(err.text),
                  std::string(call) +
                      " gave 0x78000001 (no driver, or it is not initialised)");
        EXPECT_EQ(ze, nullptr);
    }
}

TEST_F(LevelZero, SaysWhyAQuantityIsMissing)
{
    static const struct {
        const char *call;
        bool memory, power, clocks; /* whether each is still reported */
    } cases[] = {
        {"zesInit", true, true, true}, /* the devices of the core API are used */
        {"zesDriverGet", true, true, true},
        {"zesDeviceGet", true, true, true},
        {"zesDeviceGetProperties", false, false, false},
        {"zesDevicePciGetProperties", true, true, true},
        {"zesDeviceEnumMemoryModules", false, true, true},
        {"zesMemoryGetState", false, true, true},
        {"zesDeviceEnumPowerDomains", true, false, true},
        {"zesPowerGetEnergyCounter", true, false, true},
        {"zesPowerGetLimits", true, true, true},
        {"zesDeviceEnumFrequencyDomains", true, true, false},
        {"zesFrequencyGetProperties", true, true, false},
        {"zesFrequencyGetState", true, true, false},
    };
    for (const auto &c : cases) {
        SCOPED_TRACE(c.call);
        xm_ze_telemetry t;
        fail(c.call, 0x70010000); /* the code for "not permitted" */
        err = {};
        ASSERT_EQ(xm_ze_open(&ze, &err), XM_OK) << err.text;
        xm_ze_measure(ze, 0, &t);
        EXPECT_EQ(t.why_not_memory[0] == 0, c.memory) << t.why_not_memory;
        EXPECT_EQ(t.why_not_power[0] == 0, c.power) << t.why_not_power;
        EXPECT_EQ(t.why_not_clocks[0] == 0, c.clocks) << t.why_not_clocks;
        for (const char *why : {t.why_not_memory, t.why_not_power, t.why_not_clocks})
            if (*why && strstr(why, "gave")) {
                EXPECT_NE(strstr(why, "0x70010000 (not permitted)"), nullptr) << why;
            }
        xm_ze_close(ze);
        ze = nullptr;
    }
}

TEST_F(LevelZero, SaysWhatADiscreteGpuHasFree)
{
    uint64_t bytes = 7;
    xm_device_info d = gpu(0x4905), shares = gpu(0x7d55), made_up = gpu(0x4905);
    d.has_pci = shares.has_pci = true;
    d.pci.bus = 3;
    shares.pci.device = 2;
    shares.integrated = true;
    EXPECT_TRUE(xm_ze_memory_free(&d, &bytes));
    EXPECT_EQ(bytes, 12ull << 30);
    bytes = 7;
    EXPECT_FALSE(xm_ze_memory_free(&shares, &bytes));
    EXPECT_FALSE(xm_ze_memory_free(&made_up, &bytes));
    for (const char *call : {"zeInit", "zesDeviceGetProperties",
                             "zesDeviceEnumMemoryModules", "zesMemoryGetState"}) {
        fail(call, 0x70010000);
        EXPECT_FALSE(xm_ze_memory_free(&d, &bytes)) << call;
    }
    setenv("XM_LEVEL_ZERO", "off", 1);
    EXPECT_FALSE(xm_ze_memory_free(&d, &bytes));
    EXPECT_EQ(bytes, 7u);
}

TEST_F(LevelZero, AnOldLoaderWithoutSysmanHasFactsOnly)
{
    xm_ze_telemetry t;
    setenv("XM_LEVEL_ZERO", XM_FAKE_ZE_CORE, 1);
    ASSERT_EQ(xm_ze_open(&ze, &err), XM_OK) << err.text;
    EXPECT_EQ(xm_ze_count(ze), 2u);
    EXPECT_FALSE(xm_ze_facts_of(ze, 0)->has_pci);
    xm_ze_measure(ze, 0, &t);
    EXPECT_STREQ(t.why_not_memory,
                 "zesDeviceEnumMemoryModules gave 0x78000003 (not supported)");
    EXPECT_STREQ(t.why_not_power,
                 "zesDeviceEnumPowerDomains gave 0x78000003 (not supported)");
    EXPECT_STREQ(t.why_not_clocks,
                 "zesDeviceEnumFrequencyDomains gave 0x78000003 (not supported)");
}

TEST_F(LevelZero, WhatIsNoLoaderIsRefused)
{
    setenv("XM_LEVEL_ZERO", "/no/such/library", 1);
    EXPECT_EQ(xm_ze_open(&ze, &err), XM_UNSUPPORTED);
    EXPECT_NE(strstr(err.text, "there is no Level Zero loader: /no/such/library"),
              nullptr)
        << err.text;
    err = {};
    setenv("XM_LEVEL_ZERO", "libm.so.6", 1);
    EXPECT_EQ(xm_ze_open(&ze, &err), XM_UNSUPPORTED);
    EXPECT_NE(strstr(err.text, "libm.so.6 has no function ze"), nullptr) << err.text;
    err = {};
    setenv("XM_LEVEL_ZERO", "off", 1);
    EXPECT_EQ(xm_ze_open(&ze, &err), XM_UNSUPPORTED);
    EXPECT_NE(strstr(err.text, "switched off"), nullptr) << err.text;
}

TEST_F(LevelZero, NoHostMemoryIsAnError)
{
    xm_fail_allocation(1);
    EXPECT_EQ(xm_ze_open(&ze, &err), XM_NO_MEMORY);
    xm_fail_allocation(0);
    EXPECT_EQ(ze, nullptr);
}

} // namespace
