/* SPDX-License-Identifier: Apache-2.0
 *
 * How the tokens of a run are cut into chunks, and how its sequences change: on the fake engine,
 * without a model.
 */
#include "plugin/gpu/intake.h"

#include <algorithm>
#include <random>

#include "runtime/fake/fake.h"
#include "runtime/util/memory.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

enum { PAGE = 4, CHUNK = 8, WINDOW = 6 };

/* The parts of a chunk, in order: row and number of its tokens. */
using Parts = std::vector<std::pair<uint32_t, uint32_t>>;

class Intake : public testing::Test
{
  protected:
    void SetUp() override
    {
        const xm_device_info info = fake_cpu();
        ASSERT_XM_OK(xm_fake_engine_create(&info, nullptr, &engine, &err));
        ASSERT_XM_OK(xm_queue_create(engine, &queue, &err));
        const xm_kv_need layers[] = {{PAGE * 4, 0}, {PAGE * 8, WINDOW}};
        const xm_kv_pool_desc desc = {engine, PAGE, layers, 2, CHUNK, 1 << 20};
        ASSERT_XM_OK(xm_kv_pool_create(&desc, &pool, &err));
        program.config.ubatch = CHUNK;
        program.can_chunk = program.is_ragged = true;
        program.chosen_rows = XM_NO_VALUE;
    }
    void TearDown() override
    {
        xm_intake_free(&f);
        for (xm_kv_sequence *s : sequences)
            xm_kv_sequence_destroy(s);
        EXPECT_EQ(used(), 0u);
        xm_kv_pool_destroy(pool);
        xm_queue_destroy(queue);
        xm_engine_unref(engine);
    }
    uint64_t used()
    {
        uint64_t n = 0;
        for (uint32_t g = 0; g < 2; g++) {
            xm_kv_group_stats s;
            xm_kv_pool_stats(pool, g, &s);
            n += s.used;
        }
        return n;
    }
    uint64_t past(size_t i)
    {
        return xm_kv_sequence_past(sequences[i]);
    }
    /* Creates a sequence for each of n rows. */
    void make_sequences(size_t n)
    {
        while (sequences.size() < n) {
            sequences.push_back(nullptr);
            ASSERT_XM_OK(xm_kv_sequence_create(pool, &sequences.back(), &err));
        }
    }
    /* Opens an intake of packed rows with these numbers of tokens. wanted[i] counts the last
     * tokens of row i whose results are wanted; empty: all of each row. */
    void open_packed(const std::vector<uint64_t> &tokens,
                     const std::vector<uint64_t> &wanted = {},
                     const int32_t *ids = nullptr)
    {
        const uint32_t n = (uint32_t)tokens.size();
        make_sequences(n);
        ASSERT_XM_OK(xm_intake_of_ids(&f, &program, nullptr, n, &err));
        for (uint32_t i = 0; i < n; i++)
            xm_intake_add(&f, sequences[i], ids, tokens[i],
                          wanted.empty() ? tokens[i] : wanted[i]);
    }
    void open_side_by_side(uint32_t rows, uint64_t tokens)
    {
        make_sequences(rows);
        ASSERT_XM_OK(xm_intake_of_tensors(&f, &program, &tensor, tokens, sequences.data(),
                                          rows, &err));
    }
    /* Opens an intake of tensors whose row i has tokens[i] tokens, after padding that makes all
     * rows equally long. */
    void open_padded(const std::vector<uint64_t> &tokens)
    {
        const uint64_t most = *std::max_element(tokens.begin(), tokens.end());
        open_side_by_side((uint32_t)tokens.size(), most);
        for (uint32_t i = 0; i < f.n; i++)
            xm_intake_leave_out(&f, i, most - tokens[i]);
    }
    void begin()
    {
        ASSERT_XM_OK(xm_intake_begin(&f, pool, &err));
    }
    Parts parts() const
    {
        Parts list;
        for (uint32_t k = 0; k < f.chunk.n; k++)
            list.push_back({f.chunk.row[k], f.chunk.tokens[k]});
        return list;
    }
    /* Runs the open intake, at most `most` chunks, and returns their parts. */
    std::vector<Parts> run(size_t most = SIZE_MAX)
    {
        std::vector<Parts> chunks;
        begin();
        while (chunks.size() < most && xm_intake_next(&f)) {
            chunks.push_back(parts());
            EXPECT_XM_OK(xm_intake_reserve(&f, queue, &err));
            xm_intake_commit(&f);
        }
        return chunks;
    }
    void feed(const std::vector<uint64_t> &tokens)
    {
        open_packed(tokens);
        run();
        xm_intake_end(&f);
    }

    xm_engine *engine = nullptr;
    xm_queue *queue = nullptr;
    xm_kv_pool *pool = nullptr;
    xm_program program = {};
    const xm_host_tensor tensor = {};
    xm_intake f = {};
    std::vector<xm_kv_sequence *> sequences;
    xm_error err = {};
};

TEST_F(Intake, RowsSideBySideHaveAsManyTokensEach)
{
    open_side_by_side(3, 5);
    EXPECT_TRUE(xm_intake_is_cut(&f));
    begin();
    const uint64_t lengths[] = {2, 2, 1};
    uint64_t done = 0;
    for (uint64_t n : lengths) {
        ASSERT_TRUE(xm_intake_next(&f));
        EXPECT_EQ(f.chunk.length, n);
        EXPECT_EQ(parts(), (Parts{{0, n}, {1, n}, {2, n}}));
        EXPECT_EQ(xm_intake_past(&f), done);
        EXPECT_EQ(f.done, done);
        EXPECT_EQ(f.all, 5u);
        EXPECT_EQ(xm_intake_is_last(&f), n == 1);
        ASSERT_XM_OK(xm_intake_reserve(&f, queue, &err));
        xm_intake_commit(&f);
        done += n;
        for (size_t i = 0; i < 3; i++)
            EXPECT_EQ(past(i), done);
    }
    EXPECT_FALSE(xm_intake_next(&f));
    xm_intake_end(&f);
}

/* With more rows than a chunk has tokens, each row gets one token; a chunk may be exactly full. */
TEST_F(Intake, RowsSideBySideAreCutWhereTheyMustBe)
{
    const struct {
        uint32_t rows;
        uint64_t tokens;
        std::vector<uint64_t> lengths;
    } cases[] = {{1, 8, {8}}, {1, 9, {8, 1}}, {2, 4, {4}},        {4, 3, {2, 1}},
                 {8, 1, {1}}, {9, 2, {1, 1}}, {1, 20, {8, 8, 4}}, {1, 0, {0}},
                 {0, 0, {0}}, {0, 7, {7}}};
    for (const auto &c : cases) {
        open_side_by_side(c.rows, c.tokens);
        EXPECT_EQ(xm_intake_is_cut(&f), c.lengths.size() > 1);
        begin();
        std::vector<uint64_t> lengths;
        for (; xm_intake_next(&f); xm_intake_commit(&f)) {
            lengths.push_back(f.chunk.length);
            ASSERT_XM_OK(xm_intake_reserve(&f, queue, &err));
        }
        EXPECT_EQ(lengths, c.lengths) << c.rows << " rows of " << c.tokens;
        xm_intake_end(&f);
        for (uint32_t i = 0; i < c.rows; i++)
            xm_kv_sequence_truncate(sequences[i], 0);
    }
}

TEST_F(Intake, PackedRowsFollowEachOther)
{
    open_padded({3, 0, 9, 4});
    EXPECT_EQ(run(), (std::vector<Parts>{{{0, 3}, {2, 5}}, {{2, 4}, {3, 4}}}));
    EXPECT_EQ(past(2), 9u);
    EXPECT_EQ(f.done, 16u);
    xm_intake_end(&f);
    open_packed({0, 0});
    EXPECT_EQ(run(), std::vector<Parts>{});
    xm_intake_end(&f);
}

/* Plans depend on the past; rows of several pasts are planned as 0, so that the plan does not
 * grow. */
TEST_F(Intake, MixedRowsHaveNoPast)
{
    feed({30, 3});
    open_packed({1, 1});
    begin();
    ASSERT_TRUE(xm_intake_next(&f));
    EXPECT_EQ(xm_intake_past(&f), 0u);
    xm_intake_cancel(&f, pool);
    xm_intake_end(&f);
}

/* This includes the rest of a prompt. */
TEST_F(Intake, FewTokensOfABatchGoFirst)
{
    open_packed({10, 1, 7, 4});
    EXPECT_EQ(run(),
              (std::vector<Parts>{{{1, 1}, {3, 4}, {0, 3}}, {{0, 7}, {2, 1}}, {{2, 6}}}));
    xm_intake_end(&f);
    open_packed({12, 7});
    EXPECT_EQ(run(), (std::vector<Parts>{{{0, 8}}, {{0, 4}, {1, 4}}, {{1, 3}}}));
    xm_intake_end(&f);
}

TEST_F(Intake, RowsThatCannotBeMixedGoOneByOne)
{
    program.is_ragged = false;
    feed({3, 1});
    open_packed({10, 2});
    begin();
    const std::pair<Parts, uint64_t> want[] = {
        {{{1, 2}}, 1}, {{{0, 8}}, 3}, {{{0, 2}}, 11}};
    for (const auto &[chunk, before] : want) {
        ASSERT_TRUE(xm_intake_next(&f));
        EXPECT_EQ(parts(), chunk);
        EXPECT_EQ(xm_intake_past(&f), before);
        ASSERT_XM_OK(xm_intake_reserve(&f, queue, &err));
        xm_intake_commit(&f);
    }
    EXPECT_FALSE(xm_intake_next(&f));
    xm_intake_end(&f);
}

TEST_F(Intake, WhatCannotBeCutIsOneChunk)
{
    program.can_chunk = program.is_ragged = false;
    EXPECT_EQ(xm_intake_chunk_tokens(&program), UINT64_MAX);
    open_packed({30, 1});
    EXPECT_EQ(run(), (std::vector<Parts>{{{1, 1}}, {{0, 30}}}));
    xm_intake_end(&f);
    open_side_by_side(2, 40);
    EXPECT_FALSE(xm_intake_is_cut(&f));
}

/* Each wanted result comes once, with its index among the wanted results of all rows. */
TEST_F(Intake, WantedResultsHaveTheirPlaces)
{
    std::mt19937 random(3);
    for (int round = 0; round < 200 && !HasFailure(); round++) {
        std::vector<uint64_t> tokens(1 + random() % 6);
        for (uint64_t &n : tokens)
            n = 1 + random() % 20;
        std::vector<uint64_t> last;
        std::vector<std::pair<uint32_t, uint64_t>> want,
            got; /* row and token, by index of the result */
        for (uint32_t i = 0; i < tokens.size(); i++) {
            last.push_back(random() % (tokens[i] + 1));
            for (uint64_t t = tokens[i] - last[i]; t < tokens[i]; t++)
                want.push_back({i, t});
        }
        open_packed(tokens, last);
        got.resize(want.size(), {UINT32_MAX, 0});
        begin();
        while (xm_intake_next(&f)) {
            uint64_t length = 0, wanted = 0;
            for (uint32_t k = 0; k < f.chunk.n; k++) {
                const xm_intake_row &row = f.rows[f.chunk.row[k]];
                uint64_t first;
                const uint64_t n = xm_intake_wanted(&f, k, &first),
                               end = row.done + f.chunk.tokens[k];
                ASSERT_LE(first + n, got.size());
                for (uint64_t i = 0; i < n; i++) {
                    EXPECT_EQ(got[first + i].first, UINT32_MAX);
                    got[first + i] = {f.chunk.row[k], end - n + i};
                }
                length += f.chunk.tokens[k];
                wanted += n;
            }
            EXPECT_LE(f.chunk.length, (uint64_t)CHUNK);
            EXPECT_EQ(f.chunk.length, length);
            EXPECT_EQ(f.chunk.wanted, wanted);
            ASSERT_XM_OK(xm_intake_reserve(&f, queue, &err));
            xm_intake_commit(&f);
        }
        EXPECT_EQ(got, want);
        xm_intake_end(&f);
        for (xm_kv_sequence *s : sequences)
            xm_kv_sequence_truncate(s, 0);
    }
}

/* Cancels after any number of chunks, with and without pages reserved for the next one. */
TEST_F(Intake, ACancelRestoresTheSequences)
{
    for (size_t chunks = 0; chunks < 6; chunks++) {
        for (bool is_reserved : {false, true}) {
            feed({13, 6, 1});
            xm_kv_sequence_set_padding(sequences[1], 2);
            const uint64_t before = used();
            open_padded({25, 20, 0, 3});
            run(chunks);
            EXPECT_EQ(xm_kv_sequence_padding(sequences[1]), 7u);
            if (is_reserved && xm_intake_next(&f)) {
                ASSERT_XM_OK(xm_intake_reserve(&f, queue, &err));
            }
            xm_intake_cancel(&f, pool);
            xm_intake_end(&f);
            EXPECT_EQ(past(0), 13u) << chunks;
            EXPECT_EQ(past(1), 6u) << chunks;
            EXPECT_EQ(past(2), 1u) << chunks;
            EXPECT_EQ(past(3), 0u) << chunks;
            EXPECT_EQ(xm_kv_sequence_padding(sequences[1]), 2u);
            EXPECT_EQ(used(), before) << chunks;
            for (xm_kv_sequence *s : sequences)
                xm_kv_sequence_truncate(s, 0);
        }
    }
}

/* If memory for a row is missing, the rows that had begun are restored. */
TEST_F(Intake, ABeginningThatFailsIsUndone)
{
    feed({13, 9});
    const uint64_t before = used();
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        open_padded({20, 17});
        xm_fail_allocation(n);
        xm_error why = {};
        const xm_status s = xm_intake_begin(&f, pool, &why);
        failed = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(s, failed ? XM_NO_MEMORY : XM_OK);
        xm_intake_cancel(&f, pool);
        xm_intake_end(&f);
        for (size_t i = 0; i < 2; i++)
            EXPECT_EQ(xm_kv_sequence_padding(sequences[i]), 0u);
        EXPECT_EQ(past(0), 13u);
        EXPECT_EQ(past(1), 9u);
        EXPECT_EQ(used(), before);
    }
}

/* A run that fits a chunk keeps no second copy of its pages. */
TEST_F(Intake, OnlyLongRunsHoldWhatWasBefore)
{
    feed({6});
    const uint64_t before = used();
    open_side_by_side(1, CHUNK);
    begin();
    EXPECT_EQ(f.rows[0].before.copy, nullptr);
    ASSERT_TRUE(xm_intake_next(&f));
    ASSERT_XM_OK(xm_intake_reserve(&f, queue, &err));
    EXPECT_EQ(used(), before + 4) << "two pages a group";
    xm_intake_cancel(&f, pool);
    xm_intake_end(&f);
    open_side_by_side(1, CHUNK + 1);
    begin();
    EXPECT_NE(f.rows[0].before.copy, nullptr);
    xm_intake_cancel(&f, pool);
    xm_intake_end(&f);
}

/* The pool can find whole pages of all chunks by their ids. */
TEST_F(Intake, IdsOfAllChunksAreKnown)
{
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 21; i++)
        ids.push_back(i);
    open_packed({21}, {}, ids.data());
    run();
    xm_intake_end(&f);
    xm_kv_sequence *s = nullptr;
    ASSERT_XM_OK(xm_kv_sequence_create(pool, &s, &err));
    sequences.push_back(s);
    ASSERT_XM_OK(xm_kv_sequence_match(s, ids.data(), ids.size(), &err));
    EXPECT_EQ(xm_kv_sequence_past(s), 20u);
}

/* A prompt of several chunks is announced to the pool, which then makes one slab for it. Short rows
 * of the same run are not announced. */
TEST_F(Intake, LongPromptsAreAnnounced)
{
    const struct {
        std::vector<uint64_t> tokens;
        uint64_t pages;
    } cases[] = {
        {{150, 150}, 75 + 1}, {{150, 150, 6}, 75 + 3}, {{300, 4}, 75}, {{6, 1}, 64}};
    for (const auto &c : cases) {
        TearDown();
        sequences.clear();
        SetUp();
        open_packed(c.tokens);
        begin();
        ASSERT_TRUE(xm_intake_next(&f));
        ASSERT_XM_OK(xm_intake_reserve(&f, queue, &err));
        xm_kv_group_stats s;
        xm_kv_pool_stats(pool, 0, &s);
        EXPECT_EQ(s.pages, c.pages);
        xm_intake_cancel(&f, pool);
        xm_intake_end(&f);
    }
}

} // namespace
