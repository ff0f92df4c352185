/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the comparisons that all other tests of primitives use.
 */
#include "unit_tests/primitives/harness.h"

namespace
{

using Floats = std::vector<float>;
using Compare = ::testing::AssertionResult (*)(const Floats &, const Floats &, size_t,
                                               xm_element);

const float inf = std::numeric_limits<float>::infinity(),
            nan = std::numeric_limits<float>::quiet_NaN();

class Comparison : public ::testing::TestWithParam<Compare>
{
};

TEST_P(Comparison, WhatIsNotFiniteMatchesItselfAlone)
{
    const float values[] = {0.0f, 1.0f, -65504.0f, inf, -inf, nan};
    for (size_t i = 0; i < std::size(values); i++)
        for (size_t j = 0; j < std::size(values); j++)
            EXPECT_EQ((bool)GetParam()({1.0f, values[i]}, {1.0f, values[j]}, 2, XM_F16),
                      i == j)
                << values[i] << ", expected " << values[j];
}

TEST_P(Comparison, AnInfinityDoesNotHideTheRestOfItsRow)
{
    EXPECT_FALSE(GetParam()({inf, 2.0f}, {inf, 1.0f}, 2, XM_F16));
    EXPECT_TRUE(GetParam()({inf, 1.0f}, {inf, 1.0f}, 2, XM_F16));
    EXPECT_FALSE(GetParam()({1.0f}, {1.0f, 1.0f}, 1, XM_F16)) << "as many elements";
}

INSTANTIATE_TEST_SUITE_P(Rows, Comparison,
                         ::testing::Values(rows_match, rows_close, rows_of_norm));

TEST(RowsOfNorm, SmallRowsAreAsExactAsLargeOnes)
{
    for (float size : {1e-6f, 1.0f, 1e6f}) {
        const Floats want = {3 * size, 4 * size, 1, 1};
        Floats got = want;
        got[0] += 0.5f * 2e-5f * 5 * size;
        EXPECT_TRUE(rows_of_norm(got, want, 2, XM_F32)) << size;
        got[0] += 2e-5f * 5 * size;
        EXPECT_FALSE(rows_of_norm(got, want, 2, XM_F32)) << size;
    }
}

TEST(RowsOfNorm, ARowOfZerosIsOfZeros)
{
    EXPECT_TRUE(rows_of_norm({0, 0}, {0, 0}, 2, XM_F16));
    EXPECT_FALSE(rows_of_norm({0, 1e-20f}, {0, 0}, 2, XM_F16));
}

} // namespace
