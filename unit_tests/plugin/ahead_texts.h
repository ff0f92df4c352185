/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences whose tokens the device chooses: one alone, and several in a batch.
 */
#ifndef XM_UNIT_TESTS_PLUGIN_AHEAD_TEXTS_H
#define XM_UNIT_TESTS_PLUGIN_AHEAD_TEXTS_H

#include "plugin/gpu/ahead.h"

#include <algorithm>

#include "plugin/gpu/batcher.h"
#include "plugin/gpu/request_run.h"
#include "plugin/text/sampler.h"
#include "unit_tests/plugin/language_model.h"

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

inline std::vector<int32_t>
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

inline Program
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

inline std::vector<Ids>
some_prompts(size_t n)
{
    std::vector<Ids> prompts;
    for (size_t i = 0; i < n; i++)
        prompts.push_back(some_prompt(3 + (int64_t)(5 * i) % 17, (uint32_t)i + 1));
    return prompts;
}

#endif
