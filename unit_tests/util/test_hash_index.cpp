// SPDX-License-Identifier: Apache-2.0
#include "runtime/util/hash_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "runtime/util/memory.h"
#include "unit_tests/sample.h"

namespace
{

std::multiset<uint32_t>
items_of(const xm_hash_index &index, uint64_t hash)
{
    std::multiset<uint32_t> out;
    xm_hash_probe p = xm_hash_begin(hash);
    while (xm_hash_next(&index, &p))
        out.insert(p.item);
    return out;
}

struct hash_function {
    const char *name;
    std::function<uint64_t(uint32_t)> of;
};

enum { N_KEYS = 300 };

/* Hash functions of N_KEYS keys; different hashes also differ in 32 bits. */
const hash_function functions[] = {
    {"spread", [](uint32_t key) { return xm_hash_number(key); }},
    {"in order", [](uint32_t key) { return (uint64_t)key; }},
    {"eight at the last slot",
     [](uint32_t key) { return UINT32_MAX - (uint64_t)(key % 8 << 20); }},
    {"around the end",
     [](uint32_t key) { return (uint64_t)(UINT32_MAX - 20 + key % 40) & UINT32_MAX; }},
    {"all equal", [](uint32_t) { return (uint64_t)0x123456789abcdefu; }},
};

class HashFunction : public ::testing::TestWithParam<hash_function>
{
};

TEST_P(HashFunction, FindsWhatAMultimapFinds)
{
    xm_hash_index index = {};
    std::multimap<uint64_t, uint32_t> want; /* by hash */
    std::set<uint64_t> hashes;
    for (uint32_t key = 0; key < N_KEYS; key++)
        hashes.insert(GetParam().of(key));
    std::mt19937 &random = sample::random();
    for (int i = 0; i < 6000; i++) {
        /* The index fills and empties in turn. Item key + N_KEYS is the same item after a move. */
        const uint32_t key = random() % N_KEYS;
        const bool grows = i / 1000 % 2 == 0 ? random() % 4 != 0 : random() % 4 == 0;
        const uint64_t hash = GetParam().of(key);
        const auto same = std::find_if(want.begin(), want.end(), [&](const auto &w) {
            return w.second % N_KEYS == key;
        });
        if (same == want.end() && grows) {
            ASSERT_TRUE(xm_hash_add(&index, hash, key));
            want.emplace(hash, key);
        } else if (same != want.end() && grows) {
            const uint32_t moved = (same->second + N_KEYS) % (2 * N_KEYS);
            xm_hash_move(&index, hash, same->second, moved);
            same->second = moved;
        } else if (same != want.end()) {
            xm_hash_remove(&index, hash, same->second);
            want.erase(same);
        }
        ASSERT_EQ(index.n, want.size());
        ASSERT_TRUE(index.n == 0 || 2 * index.n <= index.mask + 1)
            << "a free slot ends a probe";
        if (i % 50 != 0)
            continue;
        for (const uint64_t h : hashes) {
            const auto range = want.equal_range(h);
            std::multiset<uint32_t> items;
            for (auto at = range.first; at != range.second; ++at)
                items.insert(at->second);
            ASSERT_EQ(items_of(index, h), items) << h << " at " << i;
        }
    }
    xm_hash_clear(&index);
    for (const uint64_t h : hashes)
        EXPECT_TRUE(items_of(index, h).empty());
    xm_hash_free(&index);
}

INSTANTIATE_TEST_SUITE_P(Each, HashFunction, ::testing::ValuesIn(functions),
                         [](const auto &p) {
                             std::string name = p.param.name;
                             std::replace(name.begin(), name.end(), ' ', '_');
                             return name;
                         });

TEST(HashIndex, AnEmptyOneHasNothing)
{
    xm_hash_index index = {};
    EXPECT_TRUE(items_of(index, 0).empty());
    xm_hash_clear(&index);
    EXPECT_EQ(index.slots, nullptr);
    xm_hash_free(&index);
}

TEST(HashIndex, TheLargestItemAndHash)
{
    xm_hash_index index = {};
    ASSERT_TRUE(xm_hash_add(&index, UINT64_MAX, UINT32_MAX - 1));
    EXPECT_EQ(items_of(index, UINT64_MAX), std::multiset<uint32_t>{UINT32_MAX - 1});
    xm_hash_free(&index);
}

TEST(HashIndex, AddsToReservedRoomWithoutAllocating)
{
    xm_hash_index index = {};
    ASSERT_TRUE(xm_hash_reserve(&index, 1000));
    const xm_hash_slot *slots = index.slots;
    xm_fail_allocation(1);
    for (uint32_t i = 0; i < 1000; i++)
        ASSERT_TRUE(xm_hash_add(&index, xm_hash_number(i), i));
    EXPECT_FALSE(xm_fail_allocation_seen());
    xm_fail_allocation(0);
    EXPECT_EQ(index.slots, slots);
    EXPECT_LT(index.mask, 4096u) << "no more than four slots an item";
    xm_hash_free(&index);
}

TEST(HashIndex, StaysAsItIsWithoutMemory)
{
    xm_hash_index index = {};
    for (uint32_t i = 0; i < 8; i++)
        ASSERT_TRUE(xm_hash_add(&index, i, i));
    xm_fail_allocation(1);
    EXPECT_FALSE(xm_hash_add(&index, 8, 8));
    xm_fail_allocation(1);
    EXPECT_FALSE(xm_hash_reserve(&index, (uint64_t)XM_HASH_MOST + 1));
    EXPECT_FALSE(xm_hash_reserve(&index, UINT64_MAX / 2 + 1)) << "twice that is 0";
    EXPECT_FALSE(xm_fail_allocation_seen()) << "no memory would be enough";
    xm_fail_allocation(0);
    EXPECT_EQ(index.n, 8u);
    for (uint32_t i = 0; i < 8; i++)
        EXPECT_EQ(items_of(index, i), std::multiset<uint32_t>{i});
    EXPECT_TRUE(items_of(index, 8).empty());
    xm_hash_free(&index);
}

TEST(HashIndex, HashesBytesAsFnv1aDoes)
{
    EXPECT_EQ(xm_hash_bytes(XM_HASH_SEED, "", 0), 0xcbf29ce484222325u);
    EXPECT_EQ(xm_hash_bytes(XM_HASH_SEED, "foobar", 6), 0x85944171f73967e8u);
    EXPECT_EQ(xm_hash_bytes(xm_hash_bytes(XM_HASH_SEED, "foo", 3), "bar", 3),
              0x85944171f73967e8u);
}

} // namespace
