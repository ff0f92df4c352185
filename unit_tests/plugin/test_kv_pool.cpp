/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool of pages and its sequences on the fake engine: contents follow their sequence through
 * sharing, copies and windows; pages are counted; memory stays within the budget.
 */
#include <algorithm>
#include <map>
#include <random>

#include "plugin/kv/kv_file.h"
#include "plugin/kv/kv_sequence.h"
#include "plugin/kv/kv_tables.h"
#include "primitives/attention/attention.h"
#include "runtime/fake/fake.h"
#include "runtime/util/memory.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

enum { PAGE = 4, CHUNK = 8, WINDOW = 6 };

/* Layers 0 and 2 keep all positions, layer 1 has a window. */
const std::vector<xm_kv_need> three_layers = {
    {PAGE * 4, 0}, {PAGE * 8, WINDOW}, {PAGE * 4, 0}};

struct sequence {
    xm_kv_sequence *s;
    std::vector<int32_t> tokens;
};

class KvPool : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        open(three_layers, 1 << 20);
    }
    void TearDown() override
    {
        close();
    }
    void open(const std::vector<xm_kv_need> &needs, uint64_t budget)
    {
        layers = needs;
        const xm_device_info info = fake_cpu();
        ASSERT_XM_OK(xm_fake_engine_create(&info, nullptr, &engine, &err));
        ASSERT_XM_OK(xm_queue_create(engine, &queue, &err));
        const xm_kv_pool_desc desc = {
            engine, PAGE, layers.data(), (uint32_t)layers.size(), CHUNK, budget};
        ASSERT_XM_OK(xm_kv_pool_create(&desc, &pool, &err));
    }
    void close()
    {
        for (auto &one : all)
            xm_kv_sequence_destroy(one.s);
        all.clear();
        for (uint32_t g = 0; pool && g < xm_kv_pool_groups(pool); g++)
            EXPECT_EQ(stats(g).used, 0u) << "group " << g;
        xm_kv_pool_destroy(pool);
        pool = nullptr;
        xm_queue_destroy(queue);
        xm_engine_unref(engine);
    }
    void reopen(const std::vector<xm_kv_need> &needs, uint64_t budget)
    {
        close();
        open(needs, budget);
    }

    xm_kv_group_stats stats(uint32_t group)
    {
        xm_kv_group_stats s;
        xm_kv_pool_stats(pool, group, &s);
        return s;
    }
    size_t add()
    {
        all.push_back({nullptr, {}});
        EXPECT_XM_OK(xm_kv_sequence_create(pool, &all.back().s, &err));
        return all.size() - 1;
    }
    size_t fork(size_t i)
    {
        xm_kv_sequence *f = nullptr;
        EXPECT_XM_OK(xm_kv_sequence_fork(all[i].s, &f, &err));
        all.push_back({f, all[i].tokens});
        return all.size() - 1;
    }
    void drop(size_t i)
    {
        xm_kv_sequence_destroy(all[i].s);
        all.erase(all.begin() + (long)i);
    }

    /* Returns the address of position `at` of a sequence in a layer's page; NULL: it has none. */
    int32_t *place(const sequence &q, uint32_t layer, uint64_t at)
    {
        uint32_t first, n;
        const int32_t *words =
            xm_kv_sequence_pages(q.s, xm_kv_pool_group_of(pool, layer), &first, &n);
        if (at / PAGE < first || at / PAGE >= first + n)
            return nullptr;
        const auto word = (uint32_t)words[at / PAGE - first];
        xm_buffer *slabs[XM_KV_SLABS];
        xm_kv_pool_slabs(pool, layer, slabs);
        auto *bytes = (uint8_t *)xm_buffer_host_ptr(slabs[word >> XM_KV_SLAB_SHIFT]);
        const uint64_t page = word & ((1u << XM_KV_SLAB_SHIFT) - 1);
        return (int32_t *)(bytes + page * layers[layer].page_bytes + at % PAGE * 4);
    }
    /* Writes as a kernel would: n tokens with values from `value` on. */
    void write(sequence &q, uint64_t n, int32_t value)
    {
        const uint64_t past = xm_kv_sequence_past(q.s);
        for (uint64_t i = 0; i < n; i++, value++) {
            for (uint32_t l = 0; l < layers.size(); l++) {
                int32_t *at = place(q, l, past + i);
                ASSERT_NE(at, nullptr) << "layer " << l << " position " << past + i;
                *at = value * 4 + (int32_t)l;
            }
            q.tokens.push_back(value);
        }
    }
    /* Runs n tokens. Values repeat, so that sequences have common beginnings. */
    void feed(size_t i, uint64_t n, int32_t value)
    {
        sequence &q = all[i];
        ASSERT_XM_OK(xm_kv_sequence_reserve(q.s, n, queue, &err));
        const size_t before = q.tokens.size();
        write(q, n, value);
        xm_kv_sequence_commit(q.s, q.tokens.data() + before);
        check(q);
    }
    /* Fails unless every position that the next token sees holds its sequence's token. */
    void check(const sequence &q)
    {
        const uint64_t past = xm_kv_sequence_past(q.s);
        ASSERT_EQ(past, q.tokens.size());
        for (uint32_t l = 0; l < layers.size(); l++) {
            const uint64_t window = layers[l].window;
            uint64_t at = window && past + 1 > window ? past + 1 - window : 0;
            for (; at < past; at++) {
                const int32_t *p = place(q, l, at);
                ASSERT_NE(p, nullptr)
                    << "layer " << l << " position " << at << " of " << past;
                ASSERT_EQ(*p, q.tokens[at] * 4 + (int32_t)l)
                    << "layer " << l << " position " << at << " of " << past;
            }
        }
    }
    /* Fails unless the pages in use are those of the sequences, within the budget. */
    void check_pages(uint64_t budget)
    {
        for (uint32_t g = 0; g < xm_kv_pool_groups(pool); g++) {
            std::map<int32_t, int> users;
            for (auto &q : all) {
                uint32_t first, n;
                const int32_t *words = xm_kv_sequence_pages(q.s, g, &first, &n);
                for (uint32_t i = 0; i < n; i++)
                    users[words[i]]++;
            }
            EXPECT_EQ(stats(g).used, users.size()) << "group " << g;
        }
        EXPECT_LE(xm_kv_pool_bytes(pool), budget);
    }

    xm_engine *engine = nullptr;
    xm_queue *queue = nullptr;
    xm_kv_pool *pool = nullptr;
    xm_error err = {};
    std::vector<xm_kv_need> layers;
    std::vector<sequence> all;
};

TEST_F(KvPool, GroupsLayersByTheirWindows)
{
    EXPECT_EQ(xm_kv_pool_groups(pool), 2u);
    EXPECT_EQ(xm_kv_pool_group_of(pool, 0), xm_kv_pool_group_of(pool, 2));
    EXPECT_NE(xm_kv_pool_group_of(pool, 0), xm_kv_pool_group_of(pool, 1));
    EXPECT_EQ(stats(0).page_bytes, (uint64_t)PAGE * 8);
    EXPECT_EQ(stats(1).window, (uint64_t)WINDOW);
}

TEST_F(KvPool, TakesPagesAsPositionsCome)
{
    add();
    feed(0, 3, 1);
    EXPECT_EQ(stats(0).used, 1u);
    feed(0, 1, 10);
    EXPECT_EQ(stats(0).used, 1u);
    feed(0, 8, 20);
    EXPECT_EQ(stats(0).used, 3u);
}

TEST_F(KvPool, WindowsKeepWindowAndChunk)
{
    add();
    const uint64_t most = xm_kv_pool_pages_for(pool, 1, 1000);
    EXPECT_EQ(most, (WINDOW + CHUNK + PAGE - 2) / PAGE + 1u);
    std::mt19937 random(5);
    for (int i = 0; i < 300 && !HasFatalFailure(); i++) {
        feed(0, 1 + random() % CHUNK, 7 * i);
        EXPECT_LE(stats(1).used, most);
    }
    EXPECT_EQ(stats(0).used, (all[0].tokens.size() + PAGE - 1) / PAGE);
    EXPECT_EQ(xm_kv_pool_pages_for(pool, 0, 1000), 250u);
    EXPECT_EQ(xm_kv_pool_pages_for(pool, 1, 3), 1u);
}

/* A run longer than a chunk keeps all positions that its tokens see; the next run frees them. */
TEST_F(KvPool, WindowsServeRunsOfAnyLength)
{
    add();
    feed(0, 5 * CHUNK, 3);
    feed(0, 1, 99);
    EXPECT_LE(stats(1).used, xm_kv_pool_pages_for(pool, 1, 1000));
}

TEST_F(KvPool, ForksShareAndCopyTheLastPageOnly)
{
    add();
    feed(0, 6, 1);
    fork(0);
    fork(0);
    EXPECT_EQ(stats(0).used, 2u);
    uint64_t copies = xm_fake_calls(engine, XM_FAKE_COPY);
    feed(1, 1, 50);
    EXPECT_EQ(stats(0).used, 3u);
    EXPECT_EQ(xm_fake_calls(engine, XM_FAKE_COPY) - copies,
              3u); /* one page for each layer */
    feed(2, 1, 60);
    feed(0, 1, 70); /* no other sequence shares its last page now */
    EXPECT_EQ(stats(0).used, 4u);
    EXPECT_EQ(xm_fake_calls(engine, XM_FAKE_COPY) - copies, 6u);
    for (auto &q : all)
        check(q);
}

TEST_F(KvPool, CancelPutsAllBack)
{
    add();
    feed(0, 6, 1);
    fork(0);
    for (int i = 0; i < 3; i++) {
        ASSERT_XM_OK(xm_kv_sequence_reserve(all[1].s, 30, queue, &err));
        write(all[1], 30, 500);
        all[1].tokens.resize(6);
        xm_kv_sequence_cancel(all[1].s);
        EXPECT_EQ(stats(0).used, 2u);
        check(all[0]);
        check(all[1]);
    }
    feed(1, 3, 80);
    check(all[0]);
}

/* The copy that a reservation made of the last page is shared by a fork, and copied again. */
TEST_F(KvPool, ForksBetweenReservationsLoseNoPage)
{
    add();
    feed(0, 6, 1);
    fork(0);
    ASSERT_XM_OK(xm_kv_sequence_reserve(all[1].s, 1, queue, &err));
    fork(1);
    ASSERT_XM_OK(xm_kv_sequence_reserve(all[1].s, 1, queue, &err));
    xm_kv_sequence_cancel(all[1].s);
    for (auto &q : all)
        check(q);
    check_pages(1 << 20);
}

TEST_F(KvPool, TruncatesAsFarAsWindowsReach)
{
    add();
    feed(0, CHUNK, 1);
    feed(0, CHUNK, 20);
    feed(0, CHUNK, 40);
    xm_kv_sequence_truncate(all[0].s, 2 * CHUNK + 1);
    all[0].tokens.resize(2 * CHUNK + 1);
    check(all[0]);
    feed(0, 2, 70);
    xm_kv_sequence_truncate(all[0].s, 3); /* cuts before the window */
    EXPECT_EQ(xm_kv_sequence_past(all[0].s), 0u);
    EXPECT_EQ(stats(0).used + stats(1).used, 0u);
    all[0].tokens.clear();
    feed(0, 9, 5);
}

TEST_F(KvPool, FindsBeginningsByTheirTokens)
{
    reopen({{PAGE * 4, 0}}, 1 << 16);
    std::vector<int32_t> text;
    for (int i = 0; i < 14; i++)
        text.push_back(100 + i);
    add();
    feed(0, 14, 100);
    add();
    ASSERT_XM_OK(xm_kv_sequence_match(all[1].s, text.data(), text.size(), &err));
    EXPECT_EQ(xm_kv_sequence_past(all[1].s), 12u);
    all[1].tokens.assign(text.begin(), text.begin() + 12);
    check(all[1]);
    EXPECT_EQ(stats(0).used, 4u);
    feed(1, 3, 900);
    check(all[0]);

    add(); /* one token must be left to run */
    ASSERT_XM_OK(xm_kv_sequence_match(all[2].s, text.data(), 12, &err));
    EXPECT_EQ(xm_kv_sequence_past(all[2].s), 8u);
    all[2].tokens.assign(text.begin(), text.begin() + 8);
    drop(2);
    text[5] = 1; /* differs in the second page */
    add();
    ASSERT_XM_OK(xm_kv_sequence_match(all[2].s, text.data(), text.size(), &err));
    EXPECT_EQ(xm_kv_sequence_past(all[2].s), 4u);
    all[2].tokens.assign(text.begin(), text.begin() + 4);
}

/* Free pages keep their contents until they are needed for others. */
TEST_F(KvPool, FindsWhatEndedSequencesHeld)
{
    reopen({{PAGE * 4, 0}}, PAGE * 4 * 16);
    std::vector<int32_t> text;
    for (int i = 0; i < 20; i++)
        text.push_back(100 + i);
    add();
    feed(0, 20, 100);
    drop(0);
    EXPECT_EQ(stats(0).used, 0u);
    EXPECT_EQ(stats(0).cached, 5u);
    add();
    ASSERT_XM_OK(xm_kv_sequence_match(all[0].s, text.data(), text.size(), &err));
    EXPECT_EQ(xm_kv_sequence_past(all[0].s), 16u);
    all[0].tokens.assign(text.begin(), text.begin() + 16);
    check(all[0]);
    drop(0);
    add(); /* uses all 16 pages: nothing is found any more */
    feed(0, 64, 1000);
    EXPECT_EQ(stats(0).cached, 0u);
    drop(0);
    add();
    ASSERT_XM_OK(xm_kv_sequence_match(all[0].s, text.data(), text.size(), &err));
    EXPECT_EQ(xm_kv_sequence_past(all[0].s), 0u);
}

/* A truncated sequence writes into a page that others could have found: then it must not be
 * found. */
TEST_F(KvPool, WhatIsWrittenOverIsNotFound)
{
    reopen({{PAGE * 4, 0}}, 1 << 16);
    std::vector<int32_t> text;
    for (int i = 0; i < 9; i++)
        text.push_back(100 + i);
    add();
    feed(0, 8, 100);
    xm_kv_sequence_truncate(all[0].s, 6);
    all[0].tokens.resize(6);
    feed(0, 2, 700);
    add();
    ASSERT_XM_OK(xm_kv_sequence_match(all[1].s, text.data(), text.size(), &err));
    EXPECT_EQ(xm_kv_sequence_past(all[1].s), 4u);
    all[1].tokens.assign(text.begin(), text.begin() + 4);
    check(all[1]);
    drop(1);
    text[6] = 700;
    text[7] = 701;
    add();
    ASSERT_XM_OK(xm_kv_sequence_match(all[1].s, text.data(), text.size(), &err));
    EXPECT_EQ(xm_kv_sequence_past(all[1].s), 8u);
    all[1].tokens.assign(text.begin(), text.begin() + 8);
    check(all[1]);
}

/* A reservation that fails has written nothing: the page that it would have written to is found. */
TEST_F(KvPool, WhatAFailedReservationLeftIsFound)
{
    reopen({{PAGE * 4, 0}}, PAGE * 4 * 5);
    add();
    feed(0, 8, 100);
    std::vector<int32_t> text = all[0].tokens;
    text.push_back(1);
    xm_kv_sequence_truncate(all[0].s, 6);
    all[0].tokens.resize(6);
    add();
    feed(1, 3 * PAGE, 500);
    EXPECT_EQ(xm_kv_sequence_reserve(all[0].s, PAGE, queue, &err), XM_NO_MEMORY);
    add();
    ASSERT_XM_OK(xm_kv_sequence_match(all[2].s, text.data(), text.size(), &err));
    EXPECT_EQ(xm_kv_sequence_past(all[2].s), 8u);
    all[2].tokens.assign(text.begin(), text.begin() + 8);
    check(all[2]);
}

TEST_F(KvPool, TokensThatNobodyToldAreNotFound)
{
    add();
    ASSERT_XM_OK(xm_kv_sequence_reserve(all[0].s, 8, queue, &err));
    write(all[0], 8, 100);
    xm_kv_sequence_commit(all[0].s, nullptr);
    feed(0, 4, 108);
    std::vector<int32_t> text = all[0].tokens;
    text.push_back(1);
    add();
    ASSERT_XM_OK(xm_kv_sequence_match(all[1].s, text.data(), text.size(), &err));
    EXPECT_EQ(xm_kv_sequence_past(all[1].s), 0u);
}

TEST_F(KvPool, FullSaysSoAndLosesNothing)
{
    reopen({{PAGE * 4, 0}}, PAGE * 4 * 5);
    add();
    add();
    feed(0, 10, 1);
    EXPECT_EQ(xm_kv_sequence_reserve(all[1].s, 3 * PAGE, queue, &err), XM_NO_MEMORY);
    EXPECT_STREQ(err.text, "the KV cache is full: 0.0 of 0.0 MiB are allocated, and all "
                           "5 pages of 4 positions are in use; run shorter or fewer "
                           "sequences, or set a larger XM_KV_MEMORY");
    EXPECT_EQ(stats(0).used, 3u);
    check(all[0]);
    feed(1, 2 * PAGE, 50);
    drop(0);
    feed(0, 2, 90);
}

TEST_F(KvPool, ExpectedPositionsTakeTheirBytesAndNoMore)
{
    xm_kv_pool_expect(pool, 3, 40);
    for (size_t i = 0; i < 3; i++) {
        add();
        while (all[i].tokens.size() < 40)
            feed(i, CHUNK, (int32_t)(1000 * i + all[i].tokens.size()));
    }
    EXPECT_EQ(stats(0).pages, 30u);
    EXPECT_EQ(stats(1).pages, 3 * xm_kv_pool_pages_for(pool, 1, 40));
    EXPECT_EQ(xm_kv_pool_bytes(pool),
              30 * stats(0).page_bytes + stats(1).pages * stats(1).page_bytes);
}

TEST_F(KvPool, PositionsThatDoNotComeTakeNoMemory)
{
    add();
    feed(0, 1, 1);
    const uint64_t pages = stats(0).pages;
    xm_kv_pool_expect(pool, 1, 100000);
    xm_kv_pool_expect_none(pool);
    while (stats(0).pages == pages)
        feed(0, CHUNK, 1);
    EXPECT_EQ(stats(0).pages, 2 * pages);
}

TEST_F(KvPool, TrimGivesAllBackWhenNothingIsUsed)
{
    add();
    feed(0, 9, 1);
    const uint64_t bytes = xm_kv_pool_bytes(pool);
    xm_kv_pool_trim(pool);
    EXPECT_EQ(xm_kv_pool_bytes(pool), bytes);
    check(all[0]);
    drop(0);
    xm_kv_pool_trim(pool);
    EXPECT_EQ(xm_kv_pool_bytes(pool), 0u);
    add();
    feed(0, 9, 1);
}

/* Room is counted in pages of each group: free pages, and pages that the budget still allows. */
TEST_F(KvPool, SaysWhatItHasRoomFor)
{
    const auto has_room = [&](const std::vector<uint64_t> &positions) {
        return xm_kv_pool_has_room(pool, positions.data(), positions.size());
    };
    const uint64_t page_bytes = PAGE * 4;
    reopen({{page_bytes, 0}}, 10 * page_bytes);
    EXPECT_TRUE(has_room({}));
    EXPECT_TRUE(has_room({10 * PAGE}));
    EXPECT_TRUE(has_room({9 * PAGE, 1}));
    EXPECT_FALSE(has_room({10 * PAGE + 1}));
    EXPECT_FALSE(has_room({9 * PAGE, 1, 1})) << "each has a page of its own";
    EXPECT_FALSE(has_room({UINT64_MAX, UINT64_MAX}));
    const size_t a = add();
    feed(a, 3 * PAGE, 7);
    EXPECT_TRUE(has_room({7 * PAGE}));
    EXPECT_FALSE(has_room({7 * PAGE + 1}));
    drop(a);
    EXPECT_TRUE(has_room({10 * PAGE})) << "free pages that are cached are room, too";

    /* A group that needs few pages beside one that keeps all positions. */
    reopen({{page_bytes, 0}, {page_bytes, WINDOW}}, 30 * page_bytes);
    const uint64_t kept = xm_kv_pool_pages_for(pool, 1, 1000);
    ASSERT_LT(kept, 10u);
    EXPECT_TRUE(has_room({(30 - kept) * PAGE}));
    EXPECT_FALSE(has_room({(31 - kept) * PAGE}));
}

/* Eight slabs suffice for any budget: each but the last two at most doubles the number of pages. */
TEST_F(KvPool, SlabsReachTheBudget)
{
    for (uint64_t pages : {3u, 64u, 65u, 1000u, 100000u}) {
        reopen({{PAGE * 4, 0}}, PAGE * 4 * pages);
        add();
        uint64_t last = 0, slabs = 0;
        for (uint64_t i = 0; i < pages && !HasFatalFailure(); i++) {
            ASSERT_XM_OK(xm_kv_sequence_reserve(all[0].s, PAGE, queue, &err)) << i;
            xm_kv_sequence_commit(all[0].s, nullptr);
            slabs += stats(0).pages != last;
            if (last && slabs <= XM_KV_SLABS - 2) {
                ASSERT_LE(stats(0).pages, 2 * last);
            }
            last = stats(0).pages;
        }
        EXPECT_EQ(stats(0).pages, pages);
        EXPECT_LE(slabs, (uint64_t)XM_KV_SLABS);
        EXPECT_EQ(xm_kv_sequence_reserve(all[0].s, 1, queue, nullptr), XM_NO_MEMORY);
        all[0].tokens.clear();
    }
}

/* The budget can be filled by sequences that come one after the other, each of them announced. */
TEST_F(KvPool, AnnouncedSequencesReachTheBudget)
{
    const uint64_t budget = 1 << 16;
    reopen({{PAGE * 4, 0}}, budget);
    xm_error why = {};
    bool has_room = true;
    while (has_room) {
        xm_kv_sequence *s = all[add()].s;
        xm_kv_pool_expect(pool, 1, 3 * CHUNK);
        for (int i = 0; i < 3 && has_room; i++) {
            has_room = xm_kv_sequence_reserve(s, CHUNK, queue, &why) == XM_OK;
            xm_kv_sequence_commit(s, nullptr);
        }
    }
    EXPECT_GT(xm_kv_pool_bytes(pool), budget - budget / 16) << why.text;
}

/* Layers with and without window share the budget: neither group takes pages that the other
 * needs. */
TEST_F(KvPool, GroupsShareTheBudgetAsTheyUseIt)
{
    const uint64_t budget = 1 << 20;
    for (uint64_t length : {12u, 400u, 4000u}) {
        reopen({{PAGE * 4, 0}, {PAGE * 4, WINDOW}}, budget);
        xm_status s = XM_OK;
        while (s == XM_OK) {
            const size_t i = add();
            for (uint64_t n = 0; n < length && s == XM_OK; n += CHUNK) {
                s = xm_kv_sequence_reserve(all[i].s, CHUNK, queue, nullptr);
                if (s == XM_OK) {
                    xm_kv_sequence_commit(all[i].s, nullptr);
                }
            }
        }
        const uint64_t used =
            stats(0).used * stats(0).page_bytes + stats(1).used * stats(1).page_bytes;
        EXPECT_GT(used, budget * 4 / 5) << length;
    }
}

TEST_F(KvPool, RefusesWhatNoPageNumberCanSay)
{
    add();
    EXPECT_EQ(xm_kv_sequence_reserve(all[0].s, UINT64_MAX, queue, &err), XM_INVALID);
    EXPECT_EQ(xm_kv_sequence_reserve(all[0].s, (uint64_t)INT32_MAX + 1, queue, nullptr),
              XM_INVALID);
    feed(0, 3, 1);
    const xm_kv_need huge[] = {{UINT64_MAX, 0}, {1, 0}};
    const xm_kv_pool_desc desc = {engine, PAGE, huge, 2, CHUNK, 1 << 20};
    xm_kv_pool *other = nullptr;
    EXPECT_EQ(xm_kv_pool_create(&desc, &other, nullptr), XM_NO_MEMORY);
}

/* Compares random operations on sequences with the same operations on lists of tokens. */
TEST_F(KvPool, FollowsAModelThroughRandomSteps)
{
    const uint64_t budget = 40 * PAGE * 16;
    reopen(three_layers, budget);
    std::mt19937 random(11);
    auto upto = [&](uint32_t n) { return (size_t)(random() % n); };
    int full = 0, matched = 0;
    for (int step = 0; step < 4000 && !HasFatalFailure(); step++) {
        const size_t what = upto(10), i = all.empty() ? 0 : upto((uint32_t)all.size());
        if (all.empty() || (what == 0 && all.size() < 12)) {
            const size_t k = add();
            std::vector<int32_t> text;
            for (int32_t t = 0; t < 40; t++)
                text.push_back(t);
            ASSERT_XM_OK(xm_kv_sequence_match(all[k].s, text.data(), text.size(), &err));
            matched += xm_kv_sequence_past(all[k].s) > 0;
            all[k].tokens.assign(text.begin(),
                                 text.begin() + (long)xm_kv_sequence_past(all[k].s));
        } else if (what == 1 && all.size() < 12) {
            fork(i);
        } else if (what == 2) {
            drop(i);
        } else if (what == 3) {
            xm_kv_sequence_truncate(all[i].s, upto((uint32_t)all[i].tokens.size() + 2));
            all[i].tokens.resize(xm_kv_sequence_past(all[i].s));
        } else {
            const uint64_t n = upto(3) ? 1 : upto(2 * CHUNK);
            xm_error why = {};
            const xm_status s = xm_kv_sequence_reserve(all[i].s, n, queue, &why);
            ASSERT_TRUE(s == XM_OK || s == XM_NO_MEMORY) << why.text;
            if (s == XM_OK && upto(8) == 0) {
                write(all[i], n, 5000);
                all[i].tokens.resize(all[i].tokens.size() - n);
                xm_kv_sequence_cancel(all[i].s);
            } else if (s == XM_OK) {
                /* mostly the value that others have at this position */
                const auto at = (int32_t)all[i].tokens.size();
                write(all[i], n, upto(4) ? at : at + 100 * (int32_t)upto(3));
                xm_kv_sequence_commit(all[i].s, all[i].tokens.data() + at);
            } else {
                full++;
            }
        }
        for (auto &q : all)
            check(q);
        check_pages(budget);
    }
    EXPECT_GT(full, 10);
    EXPECT_GT(matched, 10);
}

/* Each allocation and each engine call fails once: nothing is lost or leaked, and the same
 * operation then succeeds. */
TEST_F(KvPool, EveryFailureLeavesItUsable)
{
    for (int kind = 0; kind < 2; kind++) {
        bool failed = true;
        for (uint64_t n = 1; failed && !HasFatalFailure(); n++) {
            reopen(three_layers, 1 << 20);
            add();
            feed(0, 6, 1);
            fork(0);
            xm_error why = {};
            if (kind == 0)
                xm_fail_allocation(n);
            else
                xm_fake_fail(engine, XM_FAKE_ANY, n);
            const xm_status s = xm_kv_sequence_reserve(all[1].s, 2000, queue, &why);
            failed = kind == 0 ? xm_fail_allocation_seen() : xm_fake_failed(engine);
            xm_fail_allocation(0);
            xm_fake_fail(engine, XM_FAKE_ANY, 0);
            EXPECT_EQ(s != XM_OK, failed) << kind << " " << n;
            if (s == XM_OK)
                xm_kv_sequence_cancel(all[1].s);
            else
                EXPECT_STRNE(why.text, "");
            check(all[0]);
            check(all[1]);
            EXPECT_EQ(stats(0).used, 2u);
            feed(1, 2000, 50);
            check(all[0]);
        }
    }
}

/* ---- the tables that attention reads ------------------------------------------------------- */

struct tables {
    xm_kv_tables *t = nullptr;
    ~tables()
    {
        xm_kv_tables_destroy(t);
    }
    std::vector<int32_t> read(uint32_t group, int operand) const
    {
        xm_operand o[XM_ATTENTION_N_OPERANDS] = {};
        xm_kv_tables_operands(t, group, o);
        const auto *p = (const int32_t *)xm_buffer_host_ptr(o[operand].buffer);
        return std::vector<int32_t>(p, p + o[operand].dim[0]);
    }
};

TEST_F(KvPool, TablesSayWhereEachPositionIs)
{
    tables t;
    ASSERT_XM_OK(xm_kv_tables_create(pool, &t.t, &err));
    std::mt19937 random(3);
    for (size_t i = 0; i < 20; i++)
        add();
    for (int round = 0; round < 30 && !HasFatalFailure(); round++) {
        std::vector<xm_kv_sequence *> list;
        std::vector<uint32_t> tokens;
        const size_t n = 1 + random() % all.size();
        for (size_t i = 0; i < n; i++) {
            list.push_back(all[i].s);
            tokens.push_back((uint32_t)(1 + random() % CHUNK));
            ASSERT_XM_OK(xm_kv_sequence_reserve(list[i], tokens[i], queue, &err));
        }
        ASSERT_XM_OK(xm_kv_tables_write(t.t, list.data(), tokens.data(), (uint32_t)n,
                                        queue, &err));
        const auto past = t.read(0, XM_ATTENTION_PAST_LENS);
        const auto begins = t.read(0, XM_ATTENTION_SUBSEQUENCE_BEGINS);
        ASSERT_EQ(past.size(), n);
        ASSERT_EQ(begins.size(), n + 1);
        int32_t row = 0;
        for (size_t i = 0; i < n; i++) {
            EXPECT_EQ(past[i], (int32_t)xm_kv_sequence_past(list[i]));
            EXPECT_EQ(begins[i], row);
            row += (int32_t)tokens[i];
            for (uint32_t g = 0; g < 2; g++) {
                const auto at = t.read(g, XM_ATTENTION_BLOCK_INDICES_BEGINS);
                const auto pages = t.read(g, XM_ATTENTION_BLOCK_INDICES);
                uint32_t first, held;
                const int32_t *words = xm_kv_sequence_pages(list[i], g, &first, &held);
                for (uint32_t p = 0; p < held; p++)
                    ASSERT_EQ(pages.at((size_t)(at[i] + (int32_t)(first + p))), words[p]);
            }
        }
        EXPECT_EQ(begins[n], row);
        for (size_t i = 0; i < n; i++) {
            write(all[i], tokens[i], 10 * round);
            xm_kv_sequence_commit(list[i], nullptr);
        }
    }
}

/* ---- saved sequences ---- */

xm_status
append(void *ctx, const void *bytes, uint64_t n, xm_error *)
{
    auto *out = static_cast<std::vector<uint8_t> *>(ctx);
    out->insert(out->end(), (const uint8_t *)bytes, (const uint8_t *)bytes + n);
    return XM_OK;
}

class KvFile : public KvPool
{
  protected:
    /* Saves a text of n positions as bytes, and destroys its pool. */
    void write_bytes(uint64_t n)
    {
        add();
        /* in small runs, so that slabs and pages come one by one */
        for (uint64_t i = 0; i < n; i += 3)
            feed(0, std::min<uint64_t>(3, n - i), (int32_t)(10 + i));
        text = all[0].tokens;
        bytes.clear();
        const xm_kv_sink to = {append, &bytes};
        ASSERT_XM_OK(xm_kv_file_write(all[0].s, &to, &err));
        EXPECT_EQ(bytes.size(), xm_kv_file_bytes(all[0].s));
        least = xm_kv_file_least(all[0].s);
        reopen(three_layers, 1 << 20);
    }
    xm_status read(size_t i, uint64_t n)
    {
        err = {};
        const xm_status s =
            xm_kv_file_read(all[i].s, text.data(), n, bytes.data(), bytes.size(), &err);
        all[i].tokens.assign(text.begin(),
                             text.begin() + (long)xm_kv_sequence_past(all[i].s));
        return s;
    }

    std::vector<int32_t> text;
    std::vector<uint8_t> bytes;
    uint64_t least = 0; /* fewest positions that can be read */
};

TEST_F(KvFile, HasWhatANextTokenSees)
{
    for (const uint64_t n : {4u, 5u, 23u, 40u, 163u}) {
        SCOPED_TRACE(n);
        write_bytes(n);
        add();
        ASSERT_XM_OK(read(0, n / PAGE * PAGE));
        ASSERT_EQ(all[0].tokens.size(), n / PAGE * PAGE);
        check(all[0]);
        check_pages(1 << 20);
        feed(0, 7, 500); /* the sequence continues after reading */
        reopen(three_layers, 1 << 20);
    }
}

TEST_F(KvFile, ServesBeginningsWhereWindowsHaveTheirPages)
{
    write_bytes(30); /* the window and a chunk: pages 4 to 6 are saved */
    EXPECT_EQ(least, 24u);
    for (uint64_t n = 4; n <= 28; n += PAGE) {
        add();
        ASSERT_XM_OK(read(0, n));
        EXPECT_EQ(all[0].tokens.size(), n >= 24 ? n : 0) << n;
        check(all[0]);
        drop(0);
        reopen(three_layers, 1 << 20);
    }
}

/* `least` is exact for windows that end within a page and at its boundaries. */
TEST_F(KvFile, KnowsTheFewestPositionsThatItServes)
{
    for (uint64_t window = 1; window <= 2 * PAGE + 1; window++)
        for (const uint64_t n : {7u, 30u, 33u, 64u}) {
            SCOPED_TRACE(std::to_string(window) + " " + std::to_string(n));
            const std::vector<xm_kv_need> needs = {{PAGE * 4, 0}, {PAGE * 8, window}};
            reopen(needs, 1 << 20);
            write_bytes(n);
            reopen(needs, 1 << 20);
            for (uint64_t some = PAGE; some <= n; some += PAGE) {
                add();
                ASSERT_XM_OK(read(0, some));
                EXPECT_EQ(all[0].tokens.size(), some >= least ? some : 0) << some;
                reopen(needs, 1 << 20);
            }
        }
    reopen(three_layers, 1 << 20);
}

TEST_F(KvFile, LetsOthersFindItsPages)
{
    write_bytes(30);
    add();
    ASSERT_XM_OK(read(0, 28));
    add();
    ASSERT_XM_OK(xm_kv_sequence_match(all[1].s, text.data(), text.size(), &err));
    EXPECT_EQ(xm_kv_sequence_past(all[1].s), 28u);
    all[1].tokens.assign(text.begin(), text.begin() + 28);
    check(all[1]);
    check_pages(1 << 20);
}

TEST_F(KvFile, RefusesWhatIsNotOfSuchAPool)
{
    write_bytes(30);
    const std::vector<uint8_t> whole = bytes;
    add();
    for (size_t n = 0; n < whole.size(); n += 5) {
        bytes.assign(whole.begin(), whole.begin() + (long)n);
        ASSERT_EQ(read(0, 28), XM_INVALID) << n;
    }
    for (size_t at = 0; at < sizeof(xm_kv_file_head) + 2 * sizeof(xm_kv_file_group); at++)
        for (const uint8_t bits : {0x01, 0x80, 0xff}) {
            bytes = whole;
            bytes[at] ^= bits;
            ASSERT_EQ(read(0, 28), XM_INVALID) << at;
        }
    bytes = whole;
    bytes.push_back(0);
    EXPECT_EQ(read(0, 28), XM_INVALID);
    bytes = whole;
    EXPECT_EQ(read(0, 32), XM_OK) << "more positions than it has";
    EXPECT_EQ(xm_kv_sequence_past(all[0].s), 0u);
    check_pages(1 << 20);
    const std::vector<xm_kv_need> others = {{PAGE * 4, 0}, {PAGE * 8, 0}, {PAGE * 4, 0}};
    reopen(others, 1 << 20);
    add();
    EXPECT_EQ(read(0, 28), XM_INVALID);
}

TEST_F(KvFile, LeavesAFullPoolAsItWas)
{
    write_bytes(163);
    reopen(three_layers, 1000);
    add();
    EXPECT_EQ(read(0, 160), XM_NO_MEMORY);
    EXPECT_EQ(xm_kv_sequence_past(all[0].s), 0u);
    check_pages(1000);
    EXPECT_EQ(xm_kv_pool_bytes(pool), 0u) << "no slab has grown for it";
}

TEST_F(KvFile, SurvivesWithoutMemory)
{
    write_bytes(30);
    for (uint64_t i = 1;; i++) {
        add();
        xm_fail_allocation(i);
        const xm_status s = read(0, 28);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        ASSERT_TRUE(s == XM_OK || (seen && s == XM_NO_MEMORY)) << err.text;
        ASSERT_EQ(xm_kv_sequence_past(all[0].s), s == XM_OK ? 28u : 0u);
        check(all[0]);
        reopen(three_layers, 1 << 20);
        if (!seen)
            return;
    }
}

} // namespace
