/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch sizes that follow from a variant's shape and the sizes of a run. Expected numbers
 * are computed by hand.
 */
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "primitives/launch.h"
#include "primitives/variant.h"

namespace
{

xm_device_info
a_cpu(uint32_t units)
{
    xm_device_info d = {};
    d.kind = XM_DEVICE_CPU;
    d.caps = XM_CAP_HOST_VISIBLE | XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE;
    d.compute_units = units;
    return d;
}

xm_device_info
a_gpu(uint32_t units, uint32_t caps = 0, std::initializer_list<uint32_t> sizes = {16})
{
    xm_device_info d = {};
    d.kind = XM_DEVICE_GPU;
    d.caps = XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE | caps;
    d.compute_units = units;
    size_t i = 0;
    for (uint32_t size : sizes)
        d.sub_group_sizes[i++] = size;
    return d;
}

xm_counts
of(std::initializer_list<std::pair<xm_axis, uint64_t>> counts)
{
    xm_counts c = {};
    for (const auto &[axis, n] : counts)
        c.n[axis] = n;
    return c;
}

/* Returns the global and the local size, as "40 1 1 / 1 1 1". " each N" follows if the rows are
 * shared out (XM_SHARED): a work-item takes N of them. */
std::string
launch(const xm_launch_shape &shape, const xm_device_info &device,
       const xm_counts &counts)
{
    uint64_t per_item = 0;
    const auto l = xm_launch_for(&shape, &device, &counts, &per_item);
    char text[128];
    int n = snprintf(text, sizeof(text), "%llu %llu %llu / %llu %llu %llu",
                     (unsigned long long)l.global[0], (unsigned long long)l.global[1],
                     (unsigned long long)l.global[2], (unsigned long long)l.local[0],
                     (unsigned long long)l.local[1], (unsigned long long)l.local[2]);
    if (shape.x.take == XM_SHARED)
        snprintf(text + n, sizeof(text) - (size_t)n, " each %llu",
                 (unsigned long long)per_item);
    return text;
}

const char *const driver = " / 0 0 0"; /* the driver chooses the work-groups */

TEST(Launch, OfWorkItemsLeavesTheWorkGroupsToTheDriver)
{
    const xm_launch_shape item = {XM_ITEM};
    EXPECT_EQ(launch(item, a_gpu(96), of({{XM_UNITS, 5}})),
              std::string("5 1 1") + driver);
    EXPECT_EQ(launch(item, a_cpu(2), of({{XM_UNITS, 5}})), std::string("5 1 1") + driver);
    const xm_launch_shape four = {XM_ITEM, 0, {XM_UNITS, 4}};
    EXPECT_EQ(launch(four, a_gpu(96), of({{XM_UNITS, 9}})),
              std::string("3 1 1") + driver);
    const xm_launch_shape wide = {XM_ITEM, 0, {XM_ROWS}, {XM_TOKENS, 1}, {XM_SLOTS, 2}};
    EXPECT_EQ(launch(wide, a_gpu(96), of({{XM_ROWS, 7}, {XM_TOKENS, 3}, {XM_SLOTS, 5}})),
              std::string("7 3 3") + driver);
}

TEST(Launch, OfASpanIsFewWorkItems)
{
    const xm_launch_shape span = {XM_SPAN}, sixteen = {XM_SPAN, 0, {XM_UNITS, 16}};
    EXPECT_EQ(launch(span, a_cpu(2), of({{XM_UNITS, 7}})), "7 1 1 / 1 1 1");
    EXPECT_EQ(launch(span, a_cpu(2), of({{XM_UNITS, 8}})), "8 1 1 / 1 1 1");
    EXPECT_EQ(launch(span, a_cpu(2), of({{XM_UNITS, 9}})), "8 1 1 / 1 1 1");
    EXPECT_EQ(launch(span, a_cpu(0), of({{XM_UNITS, 9}})), "9 1 1 / 1 1 1");
    EXPECT_EQ(launch(sixteen, a_cpu(64), of({{XM_UNITS, 33}})), "3 1 1 / 1 1 1");
    EXPECT_EQ(launch(sixteen, a_cpu(2), of({{XM_UNITS, 1ull << 40}})), "8 1 1 / 1 1 1");
}

TEST(Launch, OfWorkItemsAloneIsAllOfThem)
{
    const xm_launch_shape alone = {XM_ALONE}, one = {XM_ALONE, 0, {XM_ONE}};
    EXPECT_EQ(launch(alone, a_cpu(2), of({{XM_UNITS, 900}})), "900 1 1 / 1 1 1");
    EXPECT_EQ(launch(one, a_cpu(2), of({})), "1 1 1 / 1 1 1");
}

TEST(Launch, OfWorkGroupsHasTheItemsOfTheRowOrOfTheRun)
{
    const xm_launch_shape group = {XM_GROUP, XM_GROUP_ITEMS};
    EXPECT_EQ(launch(group, a_gpu(96), of({{XM_UNITS, 3}})), "192 1 1 / 64 1 1");
    EXPECT_EQ(launch(group, a_cpu(2), of({{XM_UNITS, 3}})), "192 1 1 / 64 1 1");
    const xm_launch_shape one = {XM_GROUP, XM_GROUP_ITEMS, {XM_ONE}};
    EXPECT_EQ(launch(one, a_gpu(96), of({})), "64 1 1 / 64 1 1");
    const xm_launch_shape gemm = {XM_GROUP, 128, {XM_ROWS, 64}, {XM_TOKENS, 64}};
    EXPECT_EQ(launch(gemm, a_gpu(96), of({{XM_ROWS, 65}, {XM_TOKENS, 64}})),
              "256 1 1 / 128 1 1");
    EXPECT_EQ(launch(gemm, a_gpu(96), of({{XM_ROWS, 64}, {XM_TOKENS, 129}})),
              "128 3 1 / 128 1 1");
    xm_counts counts = of({{XM_UNITS, 3}});
    counts.items = 256;
    EXPECT_EQ(launch({XM_GROUP, 0}, a_gpu(96), counts), "768 1 1 / 256 1 1");
}

/* Four sub-groups form a work-group, rounded up along x; on CPU devices one does, without
 * rounding. */
TEST(Launch, OfSubGroupsPutsSeveralInAWorkGroupOfAGpu)
{
    const xm_launch_shape rows = {XM_LANES, 0, {XM_ROWS, 4}, {XM_TOKENS, 1}};
    const xm_counts counts = of({{XM_ROWS, 17}, {XM_TOKENS, 3}});
    EXPECT_EQ(launch(rows, a_gpu(96), counts), "128 3 1 / 64 1 1");
    EXPECT_EQ(launch(rows, a_cpu(2), counts), "80 3 1 / 16 1 1");
    const xm_launch_shape wide = {XM_LANES, 32};
    EXPECT_EQ(launch(wide, a_gpu(96), of({{XM_UNITS, 1}})), "128 1 1 / 128 1 1");
    EXPECT_EQ(launch(wide, a_cpu(2), of({{XM_UNITS, 3}})), "96 1 1 / 32 1 1");
}

/* Matrix engines have 8 lanes on chips with sub-groups of 8, else 16. */
TEST(Launch, OfMatrixEnginesFollowsTheirLanes)
{
    const xm_launch_shape shape = {
        XM_LANES, XM_MATRIX_LANES, {XM_ROWS, 16}, {XM_TOKENS, 2, XM_PER_LANE}};
    const xm_launch_shape across = {
        XM_LANES, XM_MATRIX_LANES, {XM_TOKENS, 2, XM_PER_LANE}};
    const xm_device_info narrow = a_gpu(96, XM_CAP_DPAS, {8, 16, 32});
    const xm_device_info wide = a_gpu(96, XM_CAP_DPAS, {16, 32});
    const xm_counts counts = of({{XM_ROWS, 40}, {XM_TOKENS, 33}});
    EXPECT_EQ(launch(shape, narrow, counts), "32 3 1 / 32 1 1");
    EXPECT_EQ(launch(shape, wide, counts), "64 2 1 / 64 1 1");
    EXPECT_EQ(launch(across, narrow, counts), "32 1 1 / 32 1 1"); /* 3 sub-groups */
    EXPECT_EQ(launch(across, wide, counts), "64 1 1 / 64 1 1");   /* 2 */
}

/* 8 work-items a compute unit, each with 8 to 64 rows in whole blocks. */
TEST(Launch, SharesRowsOutAmongTheComputeUnits)
{
    const xm_launch_shape rows = {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}};
    EXPECT_EQ(launch(rows, a_cpu(2), of({{XM_ROWS, 320}})), "16 1 1 / 1 1 1 each 20");
    EXPECT_EQ(launch(rows, a_cpu(2), of({{XM_ROWS, 321}})), "17 1 1 / 1 1 1 each 20");
    EXPECT_EQ(launch(rows, a_cpu(2), of({{XM_ROWS, 10}})), "2 1 1 / 1 1 1 each 8");
    EXPECT_EQ(launch(rows, a_cpu(2), of({{XM_ROWS, 1u << 20}})),
              "16384 1 1 / 1 1 1 each 64");
    const xm_launch_shape eights = {XM_ALONE, 0, {XM_ROWS, 8, XM_SHARED}};
    EXPECT_EQ(launch(eights, a_cpu(2), of({{XM_ROWS, 320}})), "20 1 1 / 1 1 1 each 16");
    const xm_launch_shape copies = {
        XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}, {XM_TOKENS, 1}, {XM_SLOTS, 1}};
    EXPECT_EQ(
        launch(copies, a_cpu(2), of({{XM_ROWS, 96}, {XM_TOKENS, 2}, {XM_SLOTS, 3}})),
        "3 2 3 / 1 1 1 each 36");
    xm_counts blocks = of({{XM_ROWS, 320}});
    blocks.block = 128;
    EXPECT_EQ(launch({XM_ALONE, 0, {XM_ROWS, 0, XM_SHARED}}, a_cpu(2), blocks),
              "3 1 1 / 1 1 1 each 128");
}

TEST(Launch, GivesAUnitRowsOfOneWeightOnly)
{
    xm_counts counts = of({{XM_ROWS, 50}, {XM_TOKENS, 2}});
    counts.n_parts = 3;
    counts.part[0] = 40;
    counts.part[1] = counts.part[2] = 5;
    const xm_launch_shape item = {XM_ITEM, 0, {XM_ROWS}, {XM_TOKENS, 1}};
    const xm_launch_shape group = {XM_GROUP, 64, {XM_ROWS, 4}, {XM_TOKENS, 1}};
    const xm_launch_shape shared = {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}};
    EXPECT_EQ(launch(item, a_gpu(96), counts), std::string("50 2 1") + driver);
    EXPECT_EQ(launch(group, a_gpu(96), counts), "896 2 1 / 64 1 1");     /* 10 + 2 + 2 */
    EXPECT_EQ(launch(shared, a_cpu(2), counts), "7 1 1 / 1 1 1 each 8"); /* 5 + 1 + 1 */
}

TEST(Launch, OfNothingIsNothing)
{
    const xm_launch_shape shapes[] = {
        {XM_ITEM, 0, {XM_ROWS}, {XM_TOKENS, 1}},
        {XM_SPAN, 0, {XM_ROWS}, {XM_TOKENS, 1}},
        {XM_GROUP, 64, {XM_ROWS, 4}, {XM_TOKENS, 16}},
        {XM_LANES, 0, {XM_ROWS, 4}, {XM_TOKENS, 16}},
        {XM_ALONE, 0, {XM_ROWS, 1, XM_SHARED}, {XM_TOKENS, 1}}};
    for (const xm_launch_shape &shape : shapes) {
        for (const xm_device_info &device : {a_cpu(2), a_gpu(96)}) {
            uint64_t per_item = 0;
            xm_counts none = of({{XM_ROWS, 8}, {XM_TOKENS, 0}});
            EXPECT_EQ(xm_launch_for(&shape, &device, &none, &per_item).global[1], 0u);
            none = of({{XM_ROWS, 0}, {XM_TOKENS, 8}});
            EXPECT_EQ(xm_launch_for(&shape, &device, &none, &per_item).global[0], 0u);
        }
    }
}

TEST(Launch, CountsInSixtyFourBits)
{
    const uint64_t many = 3ull << 33;
    const xm_launch_shape shape = {XM_GROUP, 64, {XM_UNITS}, {XM_TOKENS, 16}};
    EXPECT_EQ(launch(shape, a_gpu(96), of({{XM_UNITS, many}, {XM_TOKENS, many}})),
              "1649267441664 1610612736 1 / 64 1 1");
    EXPECT_EQ(launch({XM_LANES}, a_gpu(96), of({{XM_UNITS, many + 1}})),
              "412316860480 1 1 / 64 1 1");
    EXPECT_EQ(launch({XM_ITEM}, a_gpu(96), of({{XM_UNITS, many}})),
              std::string("25769803776 1 1") + driver);
}

/* Returns NULL if the unit suits kernels of the variant's family, else what the family requires. */
const char *
misfit(const xm_variant &row)
{
    const xm_launch_shape &l = row.launch;
    const bool whole = l.size % XM_SUB_GROUP == 0; /* size 0: the run sets it */
    switch (row.family) {
    case XM_FAMILY_VEC:
        return l.unit == XM_ALONE || l.unit == XM_SPAN ? nullptr : "vec: no work-groups";
    case XM_FAMILY_GEN:
        return l.unit == XM_GROUP && l.size ? nullptr : "gen: a work-group of some size";
    case XM_FAMILY_SG:
        return l.unit == XM_LANES || (l.unit == XM_GROUP && whole)
                   ? nullptr
                   : "sg: sub-groups, or work-groups of whole ones";
    case XM_FAMILY_ANY:
        return l.unit == XM_ITEM || l.unit == XM_ALONE
                   ? nullptr
                   : "the reference: work-items that know nothing of each other";
    default:
        return nullptr; /* launched by the library */
    }
}

TEST(Launch, OfEveryRowIsOfItsKind)
{
    size_t n = 0;
    const xm_variant_table *tables = xm_variant_tables(&n);
    for (size_t i = 0; i < n; i++) {
        for (size_t r = 0; r < tables[i].n; r++) {
            const xm_variant &row = tables[i].rows[r];
            const xm_launch_shape &l = row.launch;
            SCOPED_TRACE(row.name);
            EXPECT_STREQ(misfit(row), nullptr);
            if (l.unit == XM_LANES) { /* only such variants use matrix engines */
                EXPECT_EQ(l.size == XM_MATRIX_LANES, (row.caps & XM_CAP_DPAS) != 0);
            }
            if (row.form == XM_FORM_STEPS) {
                EXPECT_NE(row.caps & XM_CAP_DPAS, 0u);
            }
            EXPECT_TRUE(l.y.per || !l.z.per) << "a third direction without a second";
            EXPECT_TRUE(l.y.take != XM_SHARED && l.z.take != XM_SHARED);
            if (row.form == XM_FORM_SHORTS) {
                EXPECT_NE(row.caps & XM_CAP_SHORT_PAIRS, 0u);
            }
        }
    }
}

} // namespace
