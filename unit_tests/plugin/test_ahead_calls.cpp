/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens that the device chooses, on an engine that records driver calls: what a token asks of the
 * driver, and the state after a call that fails.
 */
#include "runtime/fake/fake.h"
#include "unit_tests/plugin/ahead_texts.h"

namespace
{

class AheadCalls : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        xm_device_info info = fake_cpu();
        info.compute_units = 8;
        ASSERT_XM_OK(xm_fake_engine_create(&info, nullptr, &engine, &err));
        program = std::make_unique<Program>(compile_for_sequences(engine, "16"));
        ASSERT_TRUE(*program);
    }
    void TearDown() override
    {
        program.reset();
        xm_engine_unref(engine);
    }
    uint64_t calls(xm_fake_call call) const
    {
        return xm_fake_calls(engine, call);
    }
    xm_engine *engine = nullptr;
    std::unique_ptr<Program> program;
    xm_error err = {};
};

/* A token needs at most four flushes and one event, and allocates no memory and no view. Tables
 * are written only when a page begins, and arguments rebound only when attention cuts the keys
 * into other partitions. */
TEST_F(AheadCalls, ATokenAsksLittleOfTheDriver)
{
    Text text(program->get());
    ASSERT_EQ(text.feed({1, 2, 3}), XM_OK);
    ASSERT_EQ(text.feed({4}), XM_OK);
    for (int i = 0; i < 20; i++)
        ASSERT_EQ(text.choose(), XM_OK) << text.err.text;
    const uint64_t rebound = calls(XM_FAKE_REBIND);
    for (int i = 0; i < 20; i++) {
        std::vector<uint64_t> before;
        for (int call = 0; call < XM_FAKE_ANY; call++)
            before.push_back(calls((xm_fake_call)call));
        xm_fake_clear_launches(engine);
        const bool begins_page = xm_kv_sequence_past(text.sequence) % 16 == 15;
        ASSERT_EQ(text.choose(), XM_OK) << text.err.text;
        size_t n = 0;
        const xm_fake_launch *l = xm_fake_launches(engine, &n);
        ASSERT_GT(n, 2u);
        EXPECT_STREQ(l[n - 2].kernel, "choose_best_vec");
        EXPECT_STREQ(l[n - 1].kernel, "choose_take_ref");
        for (const xm_fake_call call : {XM_FAKE_ALLOC, XM_FAKE_VIEW, XM_FAKE_KERNEL,
                                        XM_FAKE_BIND, XM_FAKE_READ, XM_FAKE_FINISH})
            EXPECT_EQ(calls(call), before[call]) << call << " at token " << i;
        EXPECT_EQ(calls(XM_FAKE_WRITE) - before[XM_FAKE_WRITE], begins_page ? 1u : 0u)
            << i;
        EXPECT_EQ(calls(XM_FAKE_PACE), before[XM_FAKE_PACE] + 1);
        EXPECT_LE(calls(XM_FAKE_FLUSH) - before[XM_FAKE_FLUSH], 3u);
    }
    EXPECT_LE(calls(XM_FAKE_REBIND) - rebound, 2u) << "one a layer";
}

/* As for a token, for four texts: one choice and one event for all. */
TEST_F(AheadCalls, AStepOfTextsAsksLittleOfTheDriver)
{
    Texts texts(program->get(), 4);
    ASSERT_EQ(texts.feed(some_prompts(4)), XM_OK);
    ASSERT_EQ(texts.feed_each({1, 2, 3, 4}), XM_OK);
    for (int i = 0; i < 20; i++)
        ASSERT_EQ(texts.choose(), XM_OK) << texts.err.text;
    uint64_t written = 0;
    for (int i = 0; i < 20; i++) {
        std::vector<uint64_t> before;
        for (int call = 0; call < XM_FAKE_ANY; call++)
            before.push_back(calls((xm_fake_call)call));
        xm_fake_clear_launches(engine);
        ASSERT_EQ(texts.choose(), XM_OK) << texts.err.text;
        size_t n = 0;
        const xm_fake_launch *l = xm_fake_launches(engine, &n);
        ASSERT_GT(n, 2u);
        EXPECT_STREQ(l[n - 2].kernel, "choose_best_vec");
        EXPECT_STREQ(l[n - 1].kernel, "choose_take_ref");
        EXPECT_EQ(l[n - 1].launch.global[0], 4u);
        EXPECT_EQ(l[0].paces, l[n - 1].paces) << "all is enqueued before the wait";
        for (const xm_fake_call call : {XM_FAKE_ALLOC, XM_FAKE_VIEW, XM_FAKE_KERNEL,
                                        XM_FAKE_BIND, XM_FAKE_READ, XM_FAKE_FINISH})
            EXPECT_EQ(calls(call), before[call]) << call << " at step " << i;
        written += calls(XM_FAKE_WRITE) - before[XM_FAKE_WRITE];
        EXPECT_EQ(calls(XM_FAKE_PACE), before[XM_FAKE_PACE] + 1);
        EXPECT_LE(calls(XM_FAKE_FLUSH) - before[XM_FAKE_FLUSH], 3u);
    }
    EXPECT_LE(written, 8u) << "where one gets a page";
}

/* When keys are first cut into partitions, attention has one launch more: the next token is
 * recorded with it, and the one after it is replayed. */
TEST_F(AheadCalls, ALaunchMoreIsRecorded)
{
    Text text(program->get());
    ASSERT_EQ(text.feed(some_prompt(200, 3)), XM_OK);
    ASSERT_EQ(text.feed({4}), XM_OK);
    bool is_cut = false;
    for (int i = 0; i < 400 && !is_cut; i++) {
        xm_fake_clear_launches(engine);
        ASSERT_EQ(text.choose(), XM_OK) << text.err.text;
        size_t n = 0;
        const xm_fake_launch *l = xm_fake_launches(engine, &n);
        for (size_t k = 0; k < n && !is_cut; k++)
            is_cut = i > 10 && strncmp(l[k].kernel, "attention_combine", 17) == 0;
    }
    ASSERT_TRUE(is_cut);
    const uint64_t bound = calls(XM_FAKE_BIND);
    ASSERT_EQ(text.choose(), XM_OK);
    EXPECT_GT(calls(XM_FAKE_BIND), bound);
    const uint64_t recorded = calls(XM_FAKE_BIND), rebound = calls(XM_FAKE_REBIND);
    ASSERT_EQ(text.choose(), XM_OK);
    EXPECT_EQ(calls(XM_FAKE_BIND), recorded);
    EXPECT_LE(calls(XM_FAKE_REBIND), rebound + 2);
}

/* When the scratch buffer grows, launches are recorded anew, because a recording has the old buffer
 * bound. */
TEST_F(AheadCalls, AGrownScratchIsRecorded)
{
    Text text(program->get());
    ASSERT_EQ(text.feed({1, 2, 3}), XM_OK);
    ASSERT_EQ(text.feed({4}), XM_OK);
    uint64_t scratch = text.stats().scratch_bytes, bound = 0;
    int grown = 0, since = 0;
    for (int i = 0; i < 1200; i++) {
        ASSERT_EQ(text.choose(), XM_OK) << text.err.text;
        if (text.stats().scratch_bytes > scratch) {
            grown++;
            since = 0;
            bound = calls(XM_FAKE_BIND);
            scratch = text.stats().scratch_bytes;
        }
        if (grown && since++ == 6) {
            EXPECT_GT(calls(XM_FAKE_BIND), bound + 10) << i;
        }
    }
    EXPECT_GT(grown, 0);
}

/* A choice with penalties has other launches than one without them: when the kind of choice
 * changes, launches are recorded anew, and later replayed. */
TEST_F(AheadCalls, AChoiceOfAnotherKindIsRecorded)
{
    Texts texts(program->get(), 1);
    ASSERT_EQ(texts.feed(some_prompts(1)), XM_OK);
    xm_device_choice penalised = {};
    penalised.how.repetition = 1.5f;
    penalised.how.inverse_repetition = 1 / 1.5f;
    penalised.how.adjusts = 1;
    for (const bool adjusts : {false, true, false}) {
        for (int i = 0; i < 8; i++) {
            if (i == 0) {
                ASSERT_EQ(texts.feed_each({4}), XM_OK);
            }
            const uint64_t bound = calls(XM_FAKE_BIND);
            ASSERT_EQ(texts.choose(true, {adjusts ? penalised : xm_device_choice()}),
                      XM_OK)
                << texts.err.text;
            if (i == 0) {
                EXPECT_GE(calls(XM_FAKE_BIND), bound + 2) << adjusts;
            } else if (i > 4) {
                EXPECT_EQ(calls(XM_FAKE_BIND), bound) << adjusts;
            }
        }
        xm_batcher_stop(texts.batcher, nullptr);
    }
}

/* Lets each call of the driver and each allocation fail once, when the device begins to choose
 * tokens (before == 0) and at a later token. The text gets its token, or is unchanged; either way
 * it can be continued. */
TEST_F(AheadCalls, AnyCallMayFail)
{
    *program = compile_for_sequences(engine, "1"); /* a page for each position */
    for (bool allocation : {true, false})
        for (const int before : {0, 1, 4, 5}) /* the fifth token grows the page table */ {
            bool seen = true;
            for (uint64_t n = 1; seen; n++) {
                SCOPED_TRACE(n);
                Text text(program->get());
                ASSERT_EQ(text.feed({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), XM_OK);
                ASSERT_EQ(text.feed({4}), XM_OK);
                for (int i = 0; i < before; i++)
                    ASSERT_EQ(text.choose(), XM_OK);
                const uint64_t past = text.past();
                if (allocation)
                    xm_fail_allocation(n);
                else
                    xm_fake_fail(engine, XM_FAKE_ANY, n);
                const xm_status s = text.choose();
                seen = allocation ? xm_fail_allocation_seen() : xm_fake_failed(engine);
                xm_fail_allocation(0);
                xm_fake_fail(engine, XM_FAKE_ANY, 0);
                EXPECT_TRUE(seen || s == XM_OK);
                EXPECT_EQ(text.err.text[0] != '\0', s != XM_OK) << text.err.text;
                EXPECT_EQ(text.past(), past + (s == XM_OK && before ? 1 : 0));
                EXPECT_TRUE(text.has_pages(1));
                if (s != XM_OK || !text.c.is_running) {
                    ASSERT_EQ(text.feed({9}), XM_OK) << text.err.text;
                    EXPECT_EQ(xm_kv_sequence_pending(text.sequence), 0u);
                }
                for (int i = 0; i < 3; i++)
                    ASSERT_EQ(text.choose(), XM_OK) << text.err.text;
            }
        }
}

/* As above, for three texts of which one may leave. Texts that do not fail stay as they were. */
TEST_F(AheadCalls, AnyCallOfABatchMayFail)
{
    *program = compile_for_sequences(engine, "1");
    for (bool allocation : {true, false})
        for (const bool leaves : {false, true})
            for (const int before : {0, 1, 5}) {
                bool seen = true;
                for (uint64_t n = 1; seen; n++) {
                    SCOPED_TRACE(n);
                    Texts texts(program->get(), 3);
                    ASSERT_EQ(texts.feed(some_prompts(3)), XM_OK);
                    ASSERT_EQ(texts.feed_each({4, 5, 6}), XM_OK);
                    for (int i = 0; i < before; i++)
                        ASSERT_EQ(texts.choose(), XM_OK);
                    auto past = texts.pasts();
                    if (allocation)
                        xm_fail_allocation(n);
                    else
                        xm_fake_fail(engine, XM_FAKE_ANY, n);
                    if (leaves && before) {
                        texts.leave(1);
                        past.erase(past.begin() + 1);
                    }
                    const xm_status s = texts.choose();
                    seen =
                        allocation ? xm_fail_allocation_seen() : xm_fake_failed(engine);
                    xm_fail_allocation(0);
                    xm_fake_fail(engine, XM_FAKE_ANY, 0);
                    EXPECT_TRUE(seen || s == XM_OK);
                    EXPECT_EQ(texts.err.text[0] != '\0', s != XM_OK) << texts.err.text;
                    for (uint64_t &p : past)
                        p += s == XM_OK && before ? 1 : 0;
                    EXPECT_EQ(texts.pasts(), past);
                    if (s != XM_OK || !texts.c.is_running) {
                        for (const xm_kv_sequence *q : texts.sequences)
                            EXPECT_EQ(xm_kv_sequence_pending(q), 0u);
                        const Ids ids(texts.sequences.size(), 9);
                        ASSERT_EQ(texts.feed_each(ids), XM_OK) << texts.err.text;
                    }
                    for (int i = 0; i < 3; i++)
                        ASSERT_EQ(texts.choose(), XM_OK) << texts.err.text;
                }
            }
}

TEST_F(AheadCalls, ALostDeviceEndsTheText)
{
    bool seen = true;
    for (uint64_t n = 1; seen; n++) {
        TearDown();
        SetUp();
        Text text(program->get());
        ASSERT_EQ(text.feed({1, 2, 3}), XM_OK);
        ASSERT_EQ(text.feed({4}), XM_OK);
        ASSERT_EQ(text.choose(), XM_OK);
        xm_fake_lose(engine, XM_FAKE_ANY, n);
        const xm_status s = text.choose();
        seen = xm_fake_failed(engine);
        ASSERT_EQ(s, seen ? XM_LOST : XM_OK) << n << ": " << text.err.text;
        xm_fake_lose(engine, XM_FAKE_ANY, 0);
        EXPECT_EQ(text.feed({5}), seen ? XM_LOST : XM_OK);
    }
}

/* No page is left for the token that would run ahead: the host gets the error when it runs the
 * token. */
TEST_F(AheadCalls, AFullCacheIsToldAsBefore)
{
    xm_compile_options sampled = {};
    sampled.sampled_logits = true;
    Program p =
        must_compile(engine, parse(two_layers()),
                     {{"XM_KV_BLOCK_TOKENS", "1"}, {"XM_KV_MEMORY", "1"}}, &sampled);
    ASSERT_TRUE(p);
    Text text(p.get());
    ASSERT_EQ(text.feed({1}), XM_OK);
    xm_status s = XM_OK;
    uint64_t n = 0;
    do {
        ASSERT_EQ(s = text.choose(), XM_OK) << text.err.text;
        ASSERT_LT(n++, 1u << 20);
    } while (text.c.is_running);
    const uint64_t past = text.past();
    EXPECT_TRUE(text.has_pages(1));
    EXPECT_EQ(text.feed({5}), XM_NO_MEMORY) << text.err.text;
    EXPECT_EQ(text.past(), past);
    xm_kv_sequence_truncate(text.sequence, 8);
    ASSERT_EQ(text.feed({1}), XM_OK) << text.err.text;
    EXPECT_EQ(text.choose(), XM_OK) << text.err.text;
}

/* One of the texts has no page: then none runs ahead, and no page stays reserved. */
TEST_F(AheadCalls, AFullCacheStopsABatch)
{
    xm_compile_options sampled = {};
    sampled.sampled_logits = true;
    Program p =
        must_compile(engine, parse(two_layers()),
                     {{"XM_KV_BLOCK_TOKENS", "1"}, {"XM_KV_MEMORY", "1"}}, &sampled);
    ASSERT_TRUE(p);
    Texts texts(p.get(), 3);
    ASSERT_EQ(texts.feed(some_prompts(3)), XM_OK);
    ASSERT_EQ(texts.feed_each({1, 2, 3}), XM_OK);
    uint64_t n = 0;
    do {
        ASSERT_EQ(texts.choose(), XM_OK) << texts.err.text;
        ASSERT_LT(n++, 1u << 20);
    } while (texts.c.is_running);
    const auto past = texts.pasts();
    for (const xm_kv_sequence *s : texts.sequences)
        EXPECT_EQ(xm_kv_sequence_pending(s), 0u);
    EXPECT_EQ(texts.feed_each({1, 2, 3}), XM_NO_MEMORY) << texts.err.text;
    EXPECT_EQ(texts.pasts(), past);
    texts.leave(0);
    xm_kv_sequence_truncate(texts.gone[0], 0);
    ASSERT_EQ(texts.feed_each({1, 2}), XM_OK) << texts.err.text;
    EXPECT_EQ(texts.choose(), XM_OK) << texts.err.text;
    EXPECT_TRUE(texts.c.is_running);
}

} // namespace
