/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens that the device chooses and runs before the host knows them: they equal the tokens that
 * the host takes one by one, whatever ends the text. Counts the driver calls of a token, and
 * checks the state after a failed call.
 */
#include "plugin/gpu/ahead.h"

#include <algorithm>

#include "plugin/gpu/batcher.h"
#include "plugin/gpu/request_run.h"
#include "plugin/text/sampler.h"
#include "runtime/fake/fake.h"
#include "unit_tests/plugin/language_model.h"

namespace
{

enum { TOKENS = 40 };
using Ids = std::vector<int32_t>;

/* One sequence of a program. */
class Text
{
  public:
    explicit Text(xm_program *p)
    {
        EXPECT_EQ(xm_batcher_create(p, &batcher, &err), XM_OK) << err.text;
        EXPECT_EQ(xm_kv_sequence_create(p->kv_pool, &sequence, &err), XM_OK) << err.text;
    }
    ~Text()
    {
        xm_batcher_stop(batcher, nullptr);
        xm_kv_sequence_destroy(sequence);
        xm_batcher_destroy(batcher);
    }
    Text(const Text &) = delete;
    xm_status feed(const std::vector<int32_t> &ids)
    {
        const xm_batcher_entry e = {sequence, ids.data(), ids.size(), 1};
        err = {};
        return xm_batcher_run(batcher, &e, 1, &err);
    }
    int32_t best()
    {
        uint64_t rows = 0, n = 0;
        const float *row = xm_batcher_logits(batcher, 0, &rows, &n);
        return (int32_t)(std::max_element(row, row + n) - row);
    }
    /* Lets the device choose the next token. `more`: it also runs the token ahead. */
    xm_status choose(bool more = true)
    {
        one = {};
        c = {&one, 1, more, false};
        err = {};
        return xm_batcher_choose(batcher, &sequence, &c, &err);
    }
    /* Returns the n tokens after a prompt that the host chooses. */
    std::vector<int32_t> by_host(const std::vector<int32_t> &prompt, size_t n)
    {
        EXPECT_EQ(feed(prompt), XM_OK) << err.text;
        std::vector<int32_t> ids;
        for (size_t i = 0; i < n; i++) {
            ids.push_back(best());
            EXPECT_EQ(feed({ids.back()}), XM_OK) << err.text;
        }
        return ids;
    }
    /* Returns the n tokens after a prompt; the device chooses all but the first, and does not run
     * the last. */
    std::vector<int32_t> by_device(const std::vector<int32_t> &prompt, size_t n)
    {
        EXPECT_EQ(feed(prompt), XM_OK) << err.text;
        std::vector<int32_t> ids = {best()};
        EXPECT_EQ(feed({ids[0]}), XM_OK) << err.text;
        while (ids.size() < n) {
            const bool more = ids.size() + 1 < n;
            EXPECT_EQ(choose(more), XM_OK) << err.text;
            EXPECT_EQ(c.is_running, more);
            EXPECT_EQ(past(), prompt.size() + ids.size());
            ids.push_back(one.id);
        }
        return ids;
    }
    std::vector<float> logits()
    {
        uint64_t rows = 0, n = 0;
        const float *row = xm_batcher_logits(batcher, 0, &rows, &n);
        return std::vector<float>(row, row + n);
    }
    /* Whether every position has a page in the layer without window. */
    bool has_pages(uint64_t page) const
    {
        uint32_t first = 0, n = 0;
        xm_kv_sequence_pages(sequence, 0, &first, &n);
        return (first + n) * page >= past();
    }
    uint64_t past() const
    {
        return xm_kv_sequence_past(sequence);
    }
    struct xm_request_stats stats() const
    {
        struct xm_request_stats s;
        xm_request_stats(xm_batcher_request(batcher), &s);
        return s;
    }
    xm_batcher *batcher = nullptr;
    xm_kv_sequence *sequence = nullptr;
    xm_device_choice one = {};
    xm_device_choices c = {};
    xm_error err = {};
};

std::vector<int32_t>
some_prompt(int64_t n, uint32_t seed)
{
    const auto ids = some_ids(n, seed, 64);
    return std::vector<int32_t>(ids.begin(), ids.end());
}

/* Sequences that run together; some may leave. */
class Texts
{
  public:
    Texts(xm_program *p, size_t n)
    {
        EXPECT_EQ(xm_batcher_create(p, &batcher, &err), XM_OK) << err.text;
        sequences.resize(n);
        for (xm_kv_sequence *&s : sequences)
            EXPECT_EQ(xm_kv_sequence_create(p->kv_pool, &s, &err), XM_OK) << err.text;
    }
    ~Texts()
    {
        xm_batcher_destroy(batcher);
        for (xm_kv_sequence *s : sequences)
            xm_kv_sequence_destroy(s);
        for (xm_kv_sequence *s : gone)
            xm_kv_sequence_destroy(s);
    }
    Texts(const Texts &) = delete;
    xm_status feed(const std::vector<Ids> &ids)
    {
        std::vector<xm_batcher_entry> entries;
        for (size_t i = 0; i < ids.size(); i++)
            entries.push_back({sequences[i], ids[i].data(), ids[i].size(), 1});
        err = {};
        return xm_batcher_run(batcher, entries.data(), (uint32_t)entries.size(), &err);
    }
    xm_status feed_each(const Ids &ids)
    {
        std::vector<Ids> each;
        for (int32_t id : ids)
            each.push_back({id});
        return feed(each);
    }
    std::vector<float> logits(size_t i)
    {
        uint64_t rows = 0, n = 0;
        const float *row = xm_batcher_logits(batcher, (uint32_t)i, &rows, &n);
        return std::vector<float>(row, row + n);
    }
    Ids best()
    {
        Ids ids;
        for (size_t i = 0; i < sequences.size(); i++) {
            const auto row = logits(i);
            ids.push_back(
                (int32_t)(std::max_element(row.begin(), row.end()) - row.begin()));
        }
        return ids;
    }
    /* Lets the device choose the next token of each sequence. Empty `how`: the likeliest tokens. */
    xm_status choose(bool more = true, const std::vector<xm_device_choice> &how = {})
    {
        list = how;
        list.resize(sequences.size());
        c = {list.data(), (uint32_t)list.size(), more, false};
        err = {};
        return xm_batcher_choose(batcher, sequences.data(), &c, &err);
    }
    Ids chosen() const
    {
        Ids ids;
        for (const xm_device_choice &one : list)
            ids.push_back(one.id);
        return ids;
    }
    void leave(size_t i)
    {
        xm_batcher_stop(batcher, sequences[i]);
        gone.push_back(sequences[i]);
        sequences.erase(sequences.begin() + (long)i);
    }
    std::vector<uint64_t> pasts() const
    {
        std::vector<uint64_t> all;
        for (const xm_kv_sequence *s : sequences)
            all.push_back(xm_kv_sequence_past(s));
        return all;
    }
    xm_batcher *batcher = nullptr;
    std::vector<xm_kv_sequence *> sequences, gone;
    std::vector<xm_device_choice> list;
    xm_device_choices c = {};
    xm_error err = {};
};

Program
compile_for_sequences(xm_engine *engine, const char *page = "4",
                      const char *replays = "YES")
{
    xm_compile_options sampled = {};
    sampled.sampled_logits = true;
    return must_compile(engine, parse(two_layers()),
                        {{"INFERENCE_PRECISION_HINT", "f32"},
                         {"XM_KV_BLOCK_TOKENS", page},
                         {"XM_REPLAY", replays}},
                        &sampled);
}

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

std::vector<Ids>
some_prompts(size_t n)
{
    std::vector<Ids> prompts;
    for (size_t i = 0; i < n; i++)
        prompts.push_back(some_prompt(3 + (int64_t)(5 * i) % 17, (uint32_t)i + 1));
    return prompts;
}

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

/* ---- driver calls, on an engine that records them -------------------------------------------- */

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
