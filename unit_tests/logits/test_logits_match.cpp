/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/logits/logits_match.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace
{

using Row = std::vector<float>;

xm_logits_match
match(const Row &a, const Row &b)
{
    xm_logits_match m;
    xm_logits_compare(a.data(), b.data(), a.size(), &m);
    return m;
}

/* b has mean 4 and variance 5; a differs from it by 1 and by 3. */
TEST(LogitsMatch, HasBothErrors)
{
    const xm_logits_match m = match({2, 3, 5, 10}, {1, 3, 5, 7});
    EXPECT_NEAR(xm_nmse_sum(&m), 10.0 / 84.0, 1e-12);
    EXPECT_NEAR(xm_nmse(&m), (10.0 / 4.0) / 5.0, 1e-12);
    EXPECT_EQ(m.largest, 3.0);
    EXPECT_EQ(m.likeliest, 3u);
    EXPECT_EQ(m.other_likeliest, 3u);
}

TEST(LogitsMatch, HasTheDivergenceFromTheOther)
{
    const double p[] = {0.5, 0.25, 0.25}, q[] = {0.25, 0.25, 0.5};
    Row a, b;
    double expected = 0.0;
    for (int i = 0; i < 3; i++) {
        a.push_back((float)std::log(q[i]) +
                    7.0f); /* adding a constant leaves the softmax as it is */
        b.push_back((float)std::log(p[i]));
        expected += p[i] * std::log(p[i] / q[i]);
    }
    EXPECT_NEAR(match(a, b).kld, expected, 1e-6);
}

TEST(LogitsMatch, OfEqualRowsIsNothing)
{
    const xm_logits_match m = match({1, 2, -INFINITY}, {1, 2, -INFINITY});
    EXPECT_EQ(xm_nmse(&m), 0.0);
    EXPECT_EQ(xm_nmse_sum(&m), 0.0);
    EXPECT_EQ(m.largest, 0.0);
    EXPECT_EQ(m.kld, 0.0);
    const xm_logits_match flat = match({3, 3}, {3, 3});
    EXPECT_EQ(xm_nmse(&flat), 0.0) << "of a row that does not vary, too";
}

TEST(LogitsMatch, WhatOneExcludesAndTheOtherDoesNotIsNoMatch)
{
    for (const xm_logits_match &m :
         {match({1, 2, -INFINITY}, {1, 2, 3}), match({1, 2, 3}, {1, 2, -INFINITY})}) {
        EXPECT_FALSE(xm_nmse_passes(xm_nmse(&m)));
        EXPECT_STREQ(xm_nmse_label(xm_nmse(&m)), "poor");
    }
}

TEST(LogitsMatch, NanIsNoMatch)
{
    const xm_logits_match m = match({1, NAN, 3}, {1, 2, 3});
    EXPECT_FALSE(xm_nmse_passes(xm_nmse(&m)));
    EXPECT_FALSE(xm_nmse_sum(&m) == 0.0);
}

/* A token that the other model excludes with a large negative logit instead of -inf adds nothing
 * to the divergence. */
TEST(LogitsMatch, WhatTheOtherNeverSaysCountsNothingInTheDivergence)
{
    EXPECT_EQ(match({1, 2, -INFINITY}, {1, 2, -1e9f}).kld, 0.0);
    EXPECT_TRUE(std::isinf(match({1, 2, -INFINITY}, {1, 2, -20.0f}).kld));
}

TEST(NmseLabel, IsCausalVerifyLogitss)
{
    const struct {
        double nmse;
        const char *label;
        bool passes;
    } cases[] = {{0.0, "essentially identical", true},
                 {9.9e-7, "essentially identical", true},
                 {1e-6, "excellent", true},
                 {1e-4, "very good", true},
                 {1e-3, "good", true},
                 {9.9e-3, "good", true},
                 {1e-2, "needs review", false},
                 {0.1, "poor", false},
                 {INFINITY, "poor", false},
                 {NAN, "poor", false}};
    for (const auto &c : cases) {
        EXPECT_STREQ(xm_nmse_label(c.nmse), c.label) << c.nmse;
        EXPECT_EQ(xm_nmse_passes(c.nmse), c.passes) << c.nmse;
    }
}

TEST(LogitsTop, IsInOrderAndTheFirstOfEqualOnesFirst)
{
    const float row[] = {1, 5, 3, 5, -INFINITY, 4};
    uint64_t ids[8];
    ASSERT_EQ(xm_logits_top(row, 6, ids, 3), 3u);
    EXPECT_EQ((std::vector<uint64_t>(ids, ids + 3)), (std::vector<uint64_t>{1, 3, 5}));
    ASSERT_EQ(xm_logits_top(row, 6, ids, 8), 6u);
    EXPECT_EQ((std::vector<uint64_t>(ids, ids + 6)),
              (std::vector<uint64_t>{1, 3, 5, 2, 0, 4}));
}

} // namespace
