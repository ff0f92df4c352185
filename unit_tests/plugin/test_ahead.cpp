/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens that the device chooses and runs before the host knows them: they equal the tokens that
 * the host takes one by one, whatever ends the text.
 */
#include "unit_tests/plugin/ahead_texts.h"

namespace
{

class Ahead : public OpenClTest
{
};

/* With small pages, and contexts that outgrow the first tables and scratch. */
TEST_F(Ahead, TheDeviceTakesTheHostsTokens)
{
    for (const char *page : {"1", "16"})
        for (const char *replays : {"YES", "NO"}) {
            SCOPED_TRACE(std::string(page) + " " + replays);
            Program p = compile_for_sequences(engine, page, replays);
            ASSERT_TRUE(p);
            Text host(p.get()), device(p.get());
            const auto prompt = some_prompt(7, 3);
            const auto ids = device.by_device(prompt, 300);
            EXPECT_EQ(ids, host.by_host(prompt, 300));
            ASSERT_EQ(device.feed({ids.back()}), XM_OK);
            EXPECT_EQ(device.logits(), host.logits());
        }
}

/* A run ahead that is not wanted is dropped, and later tokens are as without it. */
TEST_F(Ahead, ATextMayEndAnywhere)
{
    Program p = compile_for_sequences(engine);
    ASSERT_TRUE(p);
    Text host(p.get()), device(p.get());
    const auto prompt = some_prompt(6, 1);
    const auto want = host.by_host(prompt, TOKENS);
    for (size_t n = 2; n < 14; n++) {
        SCOPED_TRACE(n);
        xm_kv_sequence_truncate(device.sequence, 0);
        ASSERT_EQ(device.feed(prompt), XM_OK);
        ASSERT_EQ(device.feed({want[0]}), XM_OK);
        for (size_t i = 1; i < n; i++) {
            ASSERT_EQ(device.choose(), XM_OK) << device.err.text;
            ASSERT_EQ(device.one.id, want[i]);
            ASSERT_TRUE(device.c.is_running);
        }
        if (n % 2) /* else the next run stops it */
            xm_batcher_stop(device.batcher, nullptr);
        ASSERT_EQ(device.past(), prompt.size() + n - 1);
        ASSERT_EQ(device.feed({want[n - 1]}), XM_OK) << device.err.text;
        ASSERT_EQ(device.best(), want[n]);
        ASSERT_EQ(device.choose(), XM_OK) << device.err.text;
        ASSERT_EQ(device.one.id, want[n]);
        xm_batcher_stop(device.batcher, nullptr);
    }
}

/* Forks share a partly filled page: the fork that runs ahead gets a copy. */
TEST_F(Ahead, ForksStayApart)
{
    Program p = compile_for_sequences(engine);
    ASSERT_TRUE(p);
    Text host(p.get()), device(p.get());
    const auto prompt = some_prompt(6, 5);
    const auto want = host.by_host(prompt, 12);
    ASSERT_EQ(device.feed(prompt), XM_OK);
    xm_kv_sequence *fork = nullptr;
    ASSERT_XM_OK(xm_kv_sequence_fork(device.sequence, &fork, &err));
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(device.feed({want[0]}), XM_OK);
        for (size_t k = 1; k < 10; k++) {
            ASSERT_EQ(device.choose(k < 9), XM_OK);
            ASSERT_EQ(device.one.id, want[k]) << i << " " << k;
        }
        std::swap(device.sequence, fork);
    }
    xm_kv_sequence_destroy(fork);
}

TEST_F(Ahead, ACancelledTokenIsLeftToTheCaller)
{
    Program p = compile_for_sequences(engine);
    ASSERT_TRUE(p);
    Text text(p.get());
    ASSERT_EQ(text.feed(some_prompt(6, 1)), XM_OK);
    ASSERT_EQ(text.feed({text.best()}), XM_OK);
    for (int i = 0; i < 6; i++)
        ASSERT_EQ(text.choose(), XM_OK);
    const uint64_t past = text.past();
    const int32_t running = text.one.id;
    xm_request_cancel(xm_batcher_request(text.batcher));
    ASSERT_EQ(text.choose(), XM_OK) << text.err.text;
    EXPECT_FALSE(text.c.is_running);
    EXPECT_EQ(text.past(), past + 1) << "the run of " << running << " had ended";
    EXPECT_EQ(text.feed({text.one.id}), XM_CANCELLED);
    xm_request_resume(xm_batcher_request(text.batcher));
    EXPECT_EQ(text.feed({text.one.id}), XM_OK);
    EXPECT_EQ(text.past(), past + 2);
}

TEST_F(Ahead, OtherRunsHaveNoTokenToChoose)
{
    Program p = compile_for_sequences(engine);
    ASSERT_TRUE(p);
    Text text(p.get()), other(p.get());
    EXPECT_EQ(text.choose(), XM_UNSUPPORTED);
    ASSERT_EQ(text.feed({1, 2}), XM_OK);
    EXPECT_EQ(text.choose(), XM_UNSUPPORTED) << "two tokens";
    ASSERT_EQ(text.feed({1}), XM_OK);
    ASSERT_EQ(text.choose(), XM_OK);
    EXPECT_EQ(xm_batcher_choose(text.batcher, &other.sequence, &text.c, &err),
              XM_UNSUPPORTED);
    EXPECT_EQ(text.choose(), XM_OK) << "the text goes on";
    const xm_batcher_entry two[] = {{text.sequence, &text.one.id, 1, 1},
                                    {other.sequence, &text.one.id, 1, 1}};
    ASSERT_EQ(xm_batcher_run(text.batcher, two, 2, &err), XM_OK);
    EXPECT_EQ(text.choose(), XM_UNSUPPORTED) << "two sequences";
}

TEST_F(Ahead, APropertySwitchesItOff)
{
    xm_compile_options sampled = {};
    sampled.sampled_logits = true;
    Program p = must_compile(engine, parse(two_layers()), {{"XM_AHEAD", "NO"}}, &sampled);
    ASSERT_TRUE(p);
    Text text(p.get());
    ASSERT_EQ(text.feed({1}), XM_OK);
    EXPECT_EQ(text.choose(), XM_UNSUPPORTED);
    EXPECT_NE(strstr(text.err.text, "XM_AHEAD is NO"), nullptr) << text.err.text;
    EXPECT_GE(text.best(), 0);
}

/* Statistics count a token that ran ahead only once it belongs to the text. */
TEST_F(Ahead, CountsAreThoseOfTheTokensOfTheText)
{
    Program p = compile_for_sequences(engine);
    ASSERT_TRUE(p);
    Text host(p.get()), device(p.get());
    const auto ids = host.by_host({1, 2, 3}, TOKENS);
    device.by_device({1, 2, 3}, TOKENS);
    ASSERT_EQ(device.feed({ids.back()}), XM_OK);
    EXPECT_EQ(device.stats().weight_bytes, host.stats().weight_bytes);
    EXPECT_EQ(device.stats().multiply_adds, host.stats().multiply_adds);
    ASSERT_EQ(device.choose(), XM_OK);
    ASSERT_EQ(device.choose(), XM_OK);
    EXPECT_EQ(device.stats().kernels, host.stats().kernels + 2);
    EXPECT_EQ(device.stats().waits, 1u);
}

/* ---- several texts ------------------------------------------------------------------------- */

/* With small pages, and contexts that outgrow the first tables and scratch. */
TEST_F(Ahead, TheDeviceTakesTheHostsTokensOfABatch)
{
    for (const size_t n : {2, 4, 7})
        for (const char *page : {"1", "16"})
            for (const char *replays : {"YES", "NO"}) {
                SCOPED_TRACE(std::to_string(n) + " " + page + " " + replays);
                Program p = compile_for_sequences(engine, page, replays);
                ASSERT_TRUE(p);
                Texts host(p.get(), n), device(p.get(), n);
                ASSERT_EQ(host.feed(some_prompts(n)), XM_OK) << host.err.text;
                ASSERT_EQ(device.feed(some_prompts(n)), XM_OK) << device.err.text;
                EXPECT_EQ(device.choose(), XM_UNSUPPORTED) << "prompts";
                Ids ids = host.best();
                ASSERT_EQ(device.feed_each(ids), XM_OK) << device.err.text;
                for (int k = 0; k < 120; k++) {
                    ASSERT_EQ(host.feed_each(ids), XM_OK) << host.err.text;
                    ids = host.best();
                    ASSERT_EQ(device.choose(k < 119), XM_OK) << device.err.text;
                    ASSERT_EQ(device.chosen(), ids) << k;
                    ASSERT_EQ(device.c.is_running, k < 119);
                    ASSERT_EQ(device.pasts(), host.pasts()) << k;
                }
                ASSERT_EQ(device.feed_each(ids), XM_OK);
                ASSERT_EQ(host.feed_each(ids), XM_OK);
                for (size_t i = 0; i < n; i++)
                    EXPECT_EQ(device.logits(i), host.logits(i)) << i;
            }
}

/* Each text has its own random numbers, penalties and limits. */
TEST_F(Ahead, TextsOfABatchKeepTheirSamplers)
{
    enum { N = 6 };
    setenv("XM_FORCE", "choose_take=choose_take_gen", 1);
    Program p = compile_for_sequences(engine);
    ASSERT_TRUE(p);
    Texts host(p.get(), N), device(p.get(), N);
    xm_sampler *samplers[N] = {};
    xm_sampler_scratch *scratch = nullptr;
    ASSERT_EQ(host.feed(some_prompts(N)), XM_OK) << host.err.text;
    ASSERT_EQ(device.feed(some_prompts(N)), XM_OK) << device.err.text;
    const size_t vocabulary = host.logits(0).size();
    scratch = xm_sampler_scratch_create(vocabulary);
    Ids ids = host.best();
    std::vector<xm_device_choice> how(N);
    for (int i = 0; i < N; i++) {
        xm_sampling s = {};
        s.top_p = i == 2 ? 0.8f : 1.0f;
        s.top_k = i == 3 ? 9 : 0;
        s.temperature = i ? 2e4f : 0.0f; /* so high because logits differ that much */
        s.seed = 7 + (uint64_t)i;
        s.repetition_penalty = i == 4 ? 1.3f : 0.0f;
        s.last_n = 5;
        ASSERT_EQ(xm_sampler_create(&s, vocabulary, &samplers[i], &err), XM_OK);
        for (int k = 0; k < i; k++) /* so many random numbers were drawn before */
            xm_sampler_skip(samplers[i]);
        ASSERT_EQ(xm_sampler_accept(samplers[i], &ids[(size_t)i], 1, &err), XM_OK);
        ASSERT_TRUE(
            xm_sampler_on_device(samplers[i], &how[(size_t)i].how, &how[(size_t)i].seen));
    }
    ASSERT_EQ(host.feed_each(ids), XM_OK);
    ASSERT_EQ(device.feed_each(ids), XM_OK);
    for (int k = 0; k < TOKENS; k++) {
        ASSERT_EQ(device.choose(true, how), XM_OK) << device.err.text;
        for (size_t i = 0; i < N; i++) {
            const auto row = host.logits(i);
            ASSERT_EQ(xm_sampler_next(samplers[i], scratch, row.data(), &ids[i], &err),
                      XM_OK);
            ASSERT_EQ(xm_sampler_accept(samplers[i], &ids[i], 1, &err), XM_OK);
        }
        ASSERT_EQ(device.chosen(), ids) << k;
        ASSERT_EQ(host.feed_each(ids), XM_OK);
    }
    for (xm_sampler *s : samplers)
        xm_sampler_free(s);
    xm_sampler_scratch_free(scratch);
    unsetenv("XM_FORCE");
}

/* A text that ends had one token run for nothing. The others continue, and it may come back. */
TEST_F(Ahead, TextsMayLeaveABatch)
{
    Program p = compile_for_sequences(engine);
    ASSERT_TRUE(p);
    for (const std::vector<size_t> &leave :
         {std::vector<size_t>{0}, {3}, {1, 1}, {2, 0, 0}, {0, 0, 0, 0}})
        for (int steps = 1; steps < 9; steps++) {
            SCOPED_TRACE(std::to_string(steps) + " steps, " +
                         std::to_string(leave.size()) + " leave");
            Texts host(p.get(), 4), device(p.get(), 4);
            ASSERT_EQ(host.feed(some_prompts(4)), XM_OK) << host.err.text;
            ASSERT_EQ(device.feed(some_prompts(4)), XM_OK) << device.err.text;
            Ids ids = host.best();
            ASSERT_EQ(device.feed_each(ids), XM_OK);
            for (int k = 0; k < steps; k++) {
                ASSERT_EQ(host.feed_each(ids), XM_OK);
                ids = host.best();
                ASSERT_EQ(device.choose(), XM_OK) << device.err.text;
                ASSERT_EQ(device.chosen(), ids);
            }
            ASSERT_EQ(host.feed_each(ids), XM_OK);
            ids = host.best();
            for (const size_t i : leave) {
                const uint64_t past = device.pasts()[i];
                device.leave(i);
                EXPECT_EQ(xm_kv_sequence_pending(device.gone.back()), 0u);
                EXPECT_EQ(xm_kv_sequence_past(device.gone.back()), past);
                host.leave(i);
                ids.erase(ids.begin() + (long)i);
            }
            if (ids.empty()) {
                EXPECT_EQ(device.choose(), XM_UNSUPPORTED);
                continue;
            }
            ASSERT_EQ(device.choose(), XM_OK) << device.err.text;
            EXPECT_EQ(device.chosen(), ids) << "of the run that was in the queue";
            EXPECT_FALSE(device.c.is_running);
            EXPECT_EQ(device.pasts(), host.pasts());
            for (int k = 0; k < 5; k++) { /* and the device runs ahead again */
                ASSERT_EQ(host.feed_each(ids), XM_OK);
                if (k == 0) {
                    ASSERT_EQ(device.feed_each(ids), XM_OK) << device.err.text;
                }
                ids = host.best();
                ASSERT_EQ(device.choose(), XM_OK) << device.err.text;
                ASSERT_EQ(device.chosen(), ids) << k;
                ASSERT_TRUE(device.c.is_running);
            }
            /* A text that left holds only the tokens before the one that ran ahead. */
            ASSERT_EQ(device.gone.size(), leave.size());
            device.sequences.push_back(device.gone.back());
            device.gone.pop_back();
            xm_batcher_stop(device.batcher, nullptr);
            ids.push_back(5);
            EXPECT_EQ(device.feed_each(ids), XM_OK) << device.err.text;
        }
}

TEST_F(Ahead, ABatchChoosesForItsTextsOnly)
{
    Program p = compile_for_sequences(engine);
    ASSERT_TRUE(p);
    Texts texts(p.get(), 3);
    ASSERT_EQ(texts.feed_each({1, 2, 3}), XM_OK);
    std::swap(texts.sequences[0], texts.sequences[1]);
    EXPECT_EQ(texts.choose(), XM_UNSUPPORTED) << "another order";
    std::swap(texts.sequences[0], texts.sequences[1]);
    ASSERT_EQ(texts.choose(), XM_OK);
    std::swap(texts.sequences[1], texts.sequences[2]);
    EXPECT_EQ(texts.choose(), XM_UNSUPPORTED) << "another order";
    std::swap(texts.sequences[1], texts.sequences[2]);
    xm_kv_sequence *last = texts.sequences.back();
    texts.sequences.pop_back();
    EXPECT_EQ(texts.choose(), XM_UNSUPPORTED) << "one is missing";
    texts.sequences.push_back(last);
    EXPECT_EQ(texts.choose(), XM_OK) << "they go on";
    texts.leave(1);
    xm_kv_sequence *first = texts.sequences[0];
    texts.sequences.erase(texts.sequences.begin());
    EXPECT_EQ(texts.choose(), XM_UNSUPPORTED) << "one is missing";
    texts.sequences.insert(texts.sequences.begin(), first);
    EXPECT_EQ(texts.choose(), XM_OK);
    EXPECT_EQ(texts.choose(), XM_UNSUPPORTED) << "the batch has ended";
}

} // namespace
