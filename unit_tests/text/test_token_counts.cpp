// SPDX-License-Identifier: Apache-2.0
#include "plugin/text/token_counts.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "runtime/util/memory.h"
#include "unit_tests/sample.h"

namespace
{

std::map<int32_t, uint32_t>
counts_of(const xm_token_counts &c)
{
    std::map<int32_t, uint32_t> out;
    for (size_t i = 0; i < c.n; i++)
        out[c.entries[i].id] += c.entries[i].count;
    return out;
}

TEST(TokenCounts, AreThoseOfAMap)
{
    xm_token_counts c = {};
    std::map<int32_t, uint32_t> want;
    std::vector<int32_t> window;
    std::mt19937 &random = sample::random();
    for (int i = 0; i < 20000; i++) {
        const int32_t id = (int32_t)(random() % 7 == 0 ? random() % 5 : random() >> 1);
        ASSERT_TRUE(xm_token_counts_add(&c, id));
        want[id]++;
        window.push_back(id);
        if (window.size() > 50) {
            const int32_t oldest = window[window.size() - 51];
            xm_token_counts_remove(&c, oldest);
            if (--want[oldest] == 0)
                want.erase(oldest);
        }
        if (i % 997 == 0) {
            ASSERT_EQ(counts_of(c), want) << i;
        }
    }
    EXPECT_EQ(counts_of(c), want);
    EXPECT_LE(c.capacity, 64u) << "as many as tokens in the window, not in the text";
    xm_token_counts_clear(&c);
    EXPECT_TRUE(counts_of(c).empty());
    xm_token_counts_free(&c);
}

TEST(TokenCounts, AMarkTellsWhatWasBefore)
{
    xm_token_counts c = {};
    for (int i = 0; i < 100; i++)
        ASSERT_TRUE(xm_token_counts_add(&c, i % 3));
    xm_token_counts_mark(&c);
    for (int i = 0; i < 1000; i++)
        ASSERT_TRUE(xm_token_counts_add(&c, i));
    EXPECT_EQ(c.n, 1000u);
    for (size_t i = 0; i < c.n; i++)
        EXPECT_EQ(c.entries[i].count - c.entries[i].before, 1u) << c.entries[i].id;
    xm_token_counts_free(&c);
}

TEST(TokenCounts, EveryAllocationMayFail)
{
    for (uint64_t n = 1;; n++) {
        xm_token_counts c = {};
        bool ok = true;
        xm_fail_allocation(n);
        for (int32_t i = 0; i < 40 && ok; i++)
            ok = xm_token_counts_add(&c, i);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_NE(ok, seen);
        xm_token_counts_free(&c);
        if (!seen)
            break;
        ASSERT_LT(n, 100u);
    }
}

} // namespace
