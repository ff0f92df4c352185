/* SPDX-License-Identifier: Apache-2.0 */
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "runtime/device_info.h"

namespace
{

uint32_t
gmdid(uint32_t architecture, uint32_t release, uint32_t revision)
{
    return architecture << 22 | release << 14 | revision;
}

xm_device_info
intel_gpu(uint32_t packed, bool integrated = false)
{
    xm_device_info d = {};
    d.kind = XM_DEVICE_GPU;
    d.vendor_id = 0x8086;
    d.integrated = integrated;
    d.caps = XM_CAP_DPAS; /* claimed by the driver, corrected by the table */
    xm_device_set_ip_version(&d, packed);
    xm_device_apply_tables(&d);
    return d;
}

TEST(DeviceInfo, UnderstandsBothPackingsOfTheIpVersion)
{
    const struct {
        uint32_t packed, major, minor;
        xm_arch arch;
        bool dpas, integrated;
    } cases[] = {
        {0x90000, 9, 0, XM_ARCH_GEN9, false, true},
        {0xb0000, 11, 0, XM_ARCH_GEN11, false, true},
        {0xc0000, 12, 0, XM_ARCH_XE_LP, false, true},
        {0xc0001, 12, 10, XM_ARCH_XE_LP, false, false},
        {0xc0501, 12, 50, XM_ARCH_XE_HP, true, false},
        {0xc0701, 12, 55, XM_ARCH_XE_HPG, true, false},
        {0xc0801, 12, 60, XM_ARCH_XE_HPC, true, false},
        {gmdid(9, 1, 9), 9, 1, XM_ARCH_GEN9, false, true},
        {gmdid(12, 0, 1), 12, 0, XM_ARCH_XE_LP, false, true},
        {gmdid(12, 3, 0), 12, 3, XM_ARCH_XE_LP, false, true},
        {gmdid(12, 10, 0), 12, 10, XM_ARCH_XE_LP, false, false},
        {gmdid(12, 57, 0), 12, 57, XM_ARCH_XE_HPG, true, false},
        {gmdid(12, 61, 7), 12, 61, XM_ARCH_XE_HPC, true, false},
        {gmdid(12, 70, 4), 12, 70, XM_ARCH_XE_HPG, false, true},
        {gmdid(12, 71, 4), 12, 71, XM_ARCH_XE_HPG, false, true},
        {gmdid(12, 74, 4), 12, 74, XM_ARCH_XE_HPG, true, true},
        {gmdid(20, 1, 4), 20, 1, XM_ARCH_XE2, true, false},
        {gmdid(20, 4, 4), 20, 4, XM_ARCH_XE2, true, true},
        {gmdid(30, 1, 0), 30, 1, XM_ARCH_XE3, true, true},
    };
    for (const auto &c : cases) {
        const xm_device_info d = intel_gpu(c.packed);
        SCOPED_TRACE(std::to_string(c.major) + "." + std::to_string(c.minor));
        EXPECT_EQ(d.ip_major, c.major);
        EXPECT_EQ(d.ip_minor, c.minor);
        EXPECT_EQ(d.arch, c.arch);
        EXPECT_EQ(xm_device_has(&d, XM_CAP_DPAS), c.dpas);
        EXPECT_EQ(d.integrated, c.integrated);
        EXPECT_EQ(xm_device_has(&d, XM_CAP_UNIFIED), c.integrated);
        EXPECT_FALSE(d.facts_guessed);
    }
}

/* Each chip has a row, found by its hardware version, with all its facts. */
TEST(DeviceInfo, EveryChipHasItsRow)
{
    const uint32_t small[] = {8, 16, 32, 0}, large[] = {16, 32, 0, 0};
    const struct {
        const char *chip, *row;
        uint32_t major, minor, revision;
        xm_arch arch;
        bool dpas, dp4a, integrated, cache, has_small;
    } chips[] = {
        {"SKL", "skl", 9, 0, 9, XM_ARCH_GEN9, false, false, true, false, true},
        {"KBL", "kbl", 9, 1, 9, XM_ARCH_GEN9, false, false, true, false, true},
        {"CFL", "cfl", 9, 2, 9, XM_ARCH_GEN9, false, false, true, false, true},
        {"APL", "bxt", 9, 3, 0, XM_ARCH_GEN9, false, false, true, false, true},
        {"GLK", "glk", 9, 4, 0, XM_ARCH_GEN9, false, false, true, false, true},
        {"WHL", "cml", 9, 5, 0, XM_ARCH_GEN9, false, false, true, false, true},
        {"AML", "cml", 9, 6, 0, XM_ARCH_GEN9, false, false, true, false, true},
        {"CML", "cml", 9, 7, 0, XM_ARCH_GEN9, false, false, true, false, true},
        {"ICL", "icl", 11, 0, 0, XM_ARCH_GEN11, false, true, true, false, true},
        {"LKF", "icl", 11, 1, 0, XM_ARCH_GEN11, false, true, true, false, true},
        {"EHL", "ehl", 11, 2, 0, XM_ARCH_GEN11, false, true, true, false, true},
        {"TGL", "tgl", 12, 0, 0, XM_ARCH_XE_LP, false, true, true, false, true},
        {"RKL", "rkl", 12, 1, 0, XM_ARCH_XE_LP, false, true, true, false, true},
        {"ADL-S", "adl_s", 12, 2, 0, XM_ARCH_XE_LP, false, true, true, false, true},
        {"ADL-P", "adl_p", 12, 3, 0, XM_ARCH_XE_LP, false, true, true, false, true},
        {"ADL-N", "adl_n", 12, 4, 0, XM_ARCH_XE_LP, false, true, true, false, true},
        {"DG1", "dg1", 12, 10, 0, XM_ARCH_XE_LP, false, true, false, true, true},
        {"XEHP", "xe_hp", 12, 50, 4, XM_ARCH_XE_HP, true, true, false, true, true},
        {"ACM-G10", "dg2", 12, 55, 8, XM_ARCH_XE_HPG, true, true, false, true, true},
        {"ACM-G11", "dg2_g11", 12, 56, 5, XM_ARCH_XE_HPG, true, true, false, true, true},
        {"ACM-G12", "dg2_g12", 12, 57, 0, XM_ARCH_XE_HPG, true, true, false, true, true},
        {"PVC", "pvc", 12, 60, 7, XM_ARCH_XE_HPC, true, true, false, true, false},
        {"PVC-VG", "pvc", 12, 61, 7, XM_ARCH_XE_HPC, true, true, false, true, false},
        {"MTL-U", "mtl_u", 12, 70, 4, XM_ARCH_XE_HPG, false, true, true, true, true},
        {"MTL-H", "mtl_h", 12, 71, 4, XM_ARCH_XE_HPG, false, true, true, true, true},
        {"ARL-H", "arl_h", 12, 74, 4, XM_ARCH_XE_HPG, true, true, true, true, true},
        {"BMG-G21", "bmg", 20, 1, 4, XM_ARCH_XE2, true, true, false, true, false},
        {"BMG-G31", "bmg", 20, 2, 0, XM_ARCH_XE2, true, true, false, true, false},
        {"LNL", "lnl", 20, 4, 4, XM_ARCH_XE2, true, true, true, true, false},
        {"PTL-H", "ptl", 30, 0, 4, XM_ARCH_XE3, true, true, true, true, false},
        {"PTL-U", "ptl", 30, 1, 1, XM_ARCH_XE3, true, true, true, true, false},
        {"NVL-S", "nvl_s", 30, 4, 4, XM_ARCH_XE3, true, true, true, true, false},
        {"NVL-U", "nvl_u", 30, 5, 4, XM_ARCH_XE3, true, true, true, true, false},
        {"NVL-P", "nvl_p", 35, 10, 4, XM_ARCH_XE3, true, true, true, true, false},
        {"CRI", "cri", 35, 11, 0, XM_ARCH_XE3, true, true, false, true, false},
    };
    size_t n;
    const xm_device_row *rows = xm_device_rows(&n);
    for (const auto &c : chips) {
        SCOPED_TRACE(c.chip);
        xm_device_info d = {};
        d.kind = XM_DEVICE_GPU;
        d.vendor_id = 0x8086;
        /* a driver's claims: only gen11's claim of DP4A is used */
        d.caps =
            XM_CAP_DPAS | XM_CAP_DP4A | (c.integrated ? 0u : unsigned(XM_CAP_UNIFIED));
        xm_device_set_ip_version(&d, gmdid(c.major, c.minor, c.revision));
        xm_device_apply_tables(&d);
        const xm_device_row *row = nullptr;
        for (size_t i = 0; i < n; i++)
            if (rows[i].major == c.major && rows[i].minor_first <= c.minor &&
                c.minor <= rows[i].minor_last) {
                EXPECT_EQ(row, nullptr) << "two rows";
                row = &rows[i];
            }
        ASSERT_NE(row, nullptr);
        EXPECT_STREQ(row->name, c.row);
        EXPECT_FALSE(d.facts_guessed);
        EXPECT_EQ(d.arch, c.arch);
        EXPECT_EQ(xm_device_has(&d, XM_CAP_DPAS), c.dpas);
        EXPECT_EQ(xm_device_has(&d, XM_CAP_DP4A), c.dp4a);
        EXPECT_EQ(d.integrated, c.integrated);
        EXPECT_EQ(xm_device_has(&d, XM_CAP_UNIFIED), c.integrated);
        EXPECT_EQ(xm_device_has(&d, XM_CAP_SEPARATE_CACHE), c.cache);
        EXPECT_EQ(memcmp(d.sub_group_sizes, c.has_small ? small : large, sizeof(small)),
                  0);
    }
}

TEST(DeviceInfo, GuessesChipsThatAreNotInTheTable)
{
    for (auto newer : {gmdid(40, 0, 0), gmdid(30, 9, 0), gmdid(35, 12, 0)}) {
        xm_device_info d = intel_gpu(newer);
        EXPECT_EQ(d.arch, XM_ARCH_XE3);
        EXPECT_TRUE(d.facts_guessed);
        EXPECT_TRUE(xm_device_has(&d, XM_CAP_DPAS)); /* the driver's claim is used */
        EXPECT_FALSE(xm_device_has(&d, XM_CAP_DP4A));
        EXPECT_EQ(d.sub_group_sizes[0], 0u); /* so that no sg kernel is chosen */
    }
    xm_device_info d;
    d = intel_gpu(gmdid(20, 9, 0));
    EXPECT_EQ(d.arch, XM_ARCH_XE2);
    EXPECT_TRUE(d.facts_guessed);
    d = intel_gpu(gmdid(12, 90, 0));
    EXPECT_EQ(d.arch, XM_ARCH_UNKNOWN);
    EXPECT_TRUE(d.facts_guessed);
    d = intel_gpu(0);
    EXPECT_EQ(d.arch, XM_ARCH_UNKNOWN);
}

TEST(DeviceInfo, LeavesOtherDevicesAlone)
{
    xm_device_info d = {};
    d.kind = XM_DEVICE_CPU;
    d.vendor_id = 0x8086;
    xm_device_apply_tables(&d);
    EXPECT_EQ(d.arch, XM_ARCH_UNKNOWN);
    EXPECT_FALSE(d.facts_guessed);
}

TEST(DeviceInfo, QuirksCorrectDriversAndChips)
{
    xm_device_info pocl = {};
    pocl.kind = XM_DEVICE_CPU;
    pocl.caps = XM_CAP_BINARIES;
    strcpy(pocl.platform, "Portable Computing Language");
    xm_device_apply_tables(&pocl);
    EXPECT_FALSE(xm_device_has(&pocl, XM_CAP_BINARIES));
    xm_device_info pvc = intel_gpu(gmdid(12, 60, 0));
    EXPECT_STREQ(pvc.cl_std, "CL2.0");
    strcpy(pvc.driver, "22.43.24595.30");
    xm_device_apply_tables(&pvc);
    EXPECT_STREQ(pvc.cl_std, "CL1.2");
}

TEST(DeviceInfo, EveryRowCanBePretended)
{
    size_t n;
    const xm_device_row *rows = xm_device_rows(&n);
    for (size_t i = 0; i < n; i++) {
        SCOPED_TRACE(rows[i].name);
        xm_device_info d = {};
        d.kind = XM_DEVICE_CPU;
        d.caps = XM_CAP_UNIFIED | XM_CAP_HOST_VISIBLE | XM_CAP_NATIVE_KERNEL;
        d.sub_group_sizes[0] = 16;
        xm_error err = {};
        ASSERT_EQ(xm_device_pretend(&d, rows[i].name, &err), XM_OK) << err.text;
        EXPECT_EQ(d.kind, XM_DEVICE_GPU);
        EXPECT_EQ(d.arch, rows[i].arch);
        EXPECT_EQ(d.caps & rows[i].set, rows[i].set);
        EXPECT_EQ(d.caps & rows[i].clear, 0u);
        /* real: it is the host's memory */
        EXPECT_TRUE(xm_device_has(&d, XM_CAP_HOST_VISIBLE));
        EXPECT_FALSE(xm_device_really_has(&d, XM_CAP_DPAS));
        EXPECT_EQ(d.sub_group_sizes[0], 16u);
        EXPECT_EQ(d.sub_group_sizes[1], 0u);
    }
}

/* A chip that is not present can be described for plans, with what its driver usually reports and
 * its own capabilities. */
TEST(DeviceInfo, EveryRowCanBeImagined)
{
    size_t n;
    const xm_device_row *rows = xm_device_rows(&n);
    for (size_t i = 0; i < n; i++) {
        SCOPED_TRACE(rows[i].name);
        xm_device_info d;
        xm_error err = {};
        ASSERT_EQ(xm_device_imagine(rows[i].name, &d, &err), XM_OK) << err.text;
        EXPECT_STREQ(d.name, rows[i].name);
        EXPECT_EQ(d.arch, rows[i].arch);
        EXPECT_TRUE(xm_device_really_has(&d, rows[i].set | XM_CAP_USM_DEVICE));
        EXPECT_EQ(d.caps & rows[i].clear, 0u);
        EXPECT_EQ(d.sub_group_sizes[0], rows[i].sub_group_sizes[0]);
        EXPECT_EQ(d.global_bytes, rows[i].integrated ? UINT64_MAX : 0);
        EXPECT_EQ(d.max_alloc_bytes, (uint64_t)4 << 30);
    }
    xm_device_info d;
    xm_error err = {};
    EXPECT_EQ(xm_device_imagine("tgllp", &d, &err), XM_NOT_FOUND);
    ASSERT_EQ(xm_device_imagine("BmG", &d, &err), XM_OK) << err.text;
    EXPECT_STREQ(d.name, "bmg");
}

TEST(DeviceInfo, EveryCardIsItsChipWithFigures)
{
    size_t n;
    const xm_card_row *cards = xm_card_rows(&n);
    for (size_t i = 0; i < n; i++) {
        SCOPED_TRACE(cards[i].name);
        xm_device_info d, chip;
        xm_error err = {};
        ASSERT_EQ(xm_device_imagine(cards[i].chip, &chip, &err), XM_OK) << err.text;
        ASSERT_EQ(xm_device_imagine(cards[i].name, &d, &err), XM_OK) << err.text;
        EXPECT_STREQ(d.name, cards[i].name);
        EXPECT_EQ(d.arch, chip.arch);
        EXPECT_EQ(d.caps, chip.caps);
        EXPECT_EQ(d.compute_units, cards[i].eus);
        EXPECT_EQ(d.integrated, cards[i].memory == 0);
        EXPECT_EQ(d.global_bytes, d.integrated ? UINT64_MAX : cards[i].memory);
        EXPECT_GT(d.memory_rate, 30e9);
        EXPECT_EQ(chip.memory_rate, 0.0);
    }
    xm_device_info d;
    xm_error err = {};
    ASSERT_EQ(xm_device_imagine("B580", &d, &err), XM_OK) << err.text;
    EXPECT_EQ(d.global_bytes, (uint64_t)12 << 30);
    EXPECT_DOUBLE_EQ(d.memory_rate, 456e9);
}

TEST(DeviceInfo, AnUnknownChipCannotBePretended)
{
    xm_device_info d = {};
    xm_error err = {};
    EXPECT_EQ(xm_device_pretend(&d, "tgllp", &err), XM_NOT_FOUND);
    EXPECT_NE(std::string(err.text).find("tgl rkl"), std::string::npos) << err.text;
}

TEST(DeviceInfo, NamesCapabilities)
{
    char text[128];
    xm_caps_text(XM_CAP_DPAS | XM_CAP_FP16 | XM_CAP_FP64, text, sizeof(text));
    EXPECT_STREQ(text, "fp16, DPAS, fp64");
    xm_caps_text(0xffff, text, 8);
    EXPECT_EQ(strlen(text), 7u);
    EXPECT_STREQ(xm_arch_text(XM_ARCH_XE_LP), "xe_lp");
}

} // namespace
