/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs of a scheduler over a SequenceModel, and the ids that each text gets when it runs alone.
 */
#ifndef XM_UNIT_TESTS_PIPELINE_SCHEDULED_JOBS_H
#define XM_UNIT_TESTS_PIPELINE_SCHEDULED_JOBS_H

#include <atomic>

#include "plugin/pipeline/scheduler.h"
#include "plugin/pipeline/text.h"
#include "unit_tests/pipeline/scripted_sequences.h"

/* A request for a text, and the ids, finish and status that it gets without other texts. */
struct Kind {
    Ids prompt;
    uint64_t max_tokens = 8, context = 0;
    xm_sampling sampling = {};
    Ids ids;
    xm_finish finish = XM_FINISH_FAILED;
    xm_status status = XM_OK;
};

/* Computes ids, finish and status of a kind without a scheduler: token by token, with a cache of
 * `model.pages` pages. */
inline void
make_alone(const SequenceModel &model, Kind &k)
{
    xm_generation asked = {};
    xm_generation_result out = {};
    xm_text text = {};
    xm_sampler_scratch *scratch = xm_sampler_scratch_create(VOCABULARY);
    const xm_text_source from = {nullptr, &asked, &k.sampling, nullptr};
    asked.max_tokens = k.max_tokens;
    asked.context = k.context;
    static const int32_t end = IM_END;
    asked.ends = &end;
    asked.n_ends = 1;
    asked.has_ends = true;
    k.status = k.prompt.empty() ? XM_INVALID
                                : xm_text_begin(&text, &from, k.prompt.data(),
                                                k.prompt.size(), &out, nullptr);
    if (k.status == XM_OK) {
        EXPECT_EQ(xm_text_begin_sampling(&text, VOCABULARY, nullptr), XM_OK);
    }
    while (k.status == XM_OK && !text.is_over) {
        uint32_t state = 1;
        int32_t id = 0;
        for (size_t i = 0; i < text.tokens.n; i++)
            state = digest(text.tokens.ids[i], state);
        const std::vector<float> row = model.row(state);
        if ((text.tokens.n + model.page - 1) / model.page > model.pages)
            k.status = XM_NO_MEMORY;
        else if (std::isnan(row[0]))
            k.status = XM_NOT_FINITE;
        else if (xm_text_choose(&text, scratch, row.data(), row.size(), &id, nullptr) ==
                 XM_OK)
            k.status = xm_text_take(&text, id, nullptr);
    }
    k.ids.assign(out.ids.ids, out.ids.ids + out.ids.n);
    k.finish = k.status == XM_OK ? out.finish : XM_FINISH_FAILED;
    xm_text_free(&text);
    xm_generation_result_free(&out);
    xm_sampler_scratch_free(scratch);
}

/* A job of a scheduler, and its result. */
struct Job {
    const Kind *kind;
    uint64_t id = 0;
    std::atomic<int> n_ended{0};
    /* The job is cancelled, has a deadline or its device fails: a part of the text is a valid
     * result. */
    bool may_stop = false;
    Ids ids;
    xm_finish finish = XM_FINISH_FAILED;
    xm_status status = XM_OK;
    std::string error, text;
    uint64_t reused = 0;
    std::function<void()> on_end;

    explicit Job(const Kind *k) : kind(k)
    {
    }
    Job(const Job &) = delete;
    xm_job wish()
    {
        static const int32_t end = IM_END;
        xm_job j = {};
        j.prompt = kind->prompt.data();
        j.n_prompt = kind->prompt.size();
        j.asked.max_tokens = kind->max_tokens;
        j.asked.context = kind->context;
        j.asked.ends = &end;
        j.asked.n_ends = 1;
        j.asked.has_ends = true;
        j.sampling = kind->sampling;
        j.ctx = this;
        j.on_end = [](xm_generation_result *r, void *ctx) {
            Job *self = static_cast<Job *>(ctx);
            self->ids.assign(r->ids.ids, r->ids.ids + r->ids.n);
            self->finish = r->finish;
            self->status = r->error.status;
            self->error = r->error.text;
            self->text.assign(xm_strbuf_text(&r->text), r->text.n);
            self->reused = r->reused;
            self->n_ended++;
            if (self->on_end)
                self->on_end();
        };
        return j;
    }
    /* Fails unless the job ended once, with the result of its kind. A job that may stop may have
     * stopped early: then its ids must be the first ids of the kind. */
    void check(const char *what) const
    {
        ASSERT_EQ(n_ended, 1) << what;
        if (may_stop && (finish == XM_FINISH_CANCELLED || finish == XM_FINISH_FAILED) &&
            (status != kind->status || finish != kind->finish)) {
            ASSERT_LE(ids.size(), kind->ids.size()) << what;
            ASSERT_TRUE(std::equal(ids.begin(), ids.end(), kind->ids.begin())) << what;
            return;
        }
        ASSERT_EQ(ids, kind->ids) << what;
        ASSERT_EQ(finish, kind->finish) << what << ": " << error;
        ASSERT_EQ(status, kind->status) << what << ": " << error;
    }
};

inline Kind
kind_of(const SequenceModel &model, const Ids &prompt, uint64_t max_tokens)
{
    Kind k;
    k.prompt = prompt;
    k.max_tokens = max_tokens;
    k.sampling.top_p = 1.0f;
    make_alone(model, k);
    return k;
}

/* Returns a kind with a prompt of n tokens whose text reaches max_tokens, by trying prompts. */
inline Kind
long_kind(const SequenceModel &model, size_t n, uint64_t max_tokens, int32_t first = 0)
{
    for (int32_t seed = 0;; seed++) {
        Ids prompt;
        uint32_t state = (uint32_t)(seed * 16 + first);
        for (size_t i = 0; i < n; i++) {
            state = digest(3, state);
            prompt.push_back((int32_t)(state >> 8) % VOCABULARY);
        }
        Kind k = kind_of(model, prompt, max_tokens);
        if (k.ids.size() == max_tokens)
            return k;
    }
}

#endif
