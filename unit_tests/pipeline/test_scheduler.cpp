/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs of a scheduler: each text is the one that its prompt gives alone, whatever comes and goes
 * beside it. Who waits for whom, what is computed once, who fails.
 */
#include "plugin/pipeline/scheduler.h"

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "plugin/pipeline/text.h"
#include "runtime/util/clock.h"
#include "runtime/util/memory.h"
#include "unit_tests/pipeline/scripted_sequences.h"
#include "unit_tests/sample.h"

namespace
{

constexpr int32_t A = 0, X = 7;

/* What is asked of a text, and what it is alone. */
struct Kind {
    Ids prompt;
    uint64_t max_tokens = 8, context = 0;
    xm_sampling sampling = {};
    Ids ids;
    xm_finish finish = XM_FINISH_FAILED;
    xm_status status = XM_OK;
};

/* Runs it without a scheduler: tokens one by one, in a cache of `pages` pages. */
void
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

/* A job, and what came of it. */
struct Job {
    const Kind *kind;
    uint64_t id = 0;
    std::atomic<int> n_ended{0};
    bool may_stop = false; /* it was cancelled, has a deadline, or its device fails */
    Ids ids;
    xm_finish finish = XM_FINISH_FAILED;
    xm_status status = XM_OK;
    std::string error;
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
            self->reused = r->reused;
            self->n_ended++;
            if (self->on_end)
                self->on_end();
        };
        return j;
    }
    /* Of one that may have stopped before its end, a beginning is enough. */
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

Kind
kind_of(const SequenceModel &model, const Ids &prompt, uint64_t max_tokens)
{
    Kind k;
    k.prompt = prompt;
    k.max_tokens = max_tokens;
    k.sampling.top_p = 1.0f;
    make_alone(model, k);
    return k;
}

/* A prompt whose text has all its tokens. */
Kind
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

class Scheduler : public ::testing::Test
{
  protected:
    ~Scheduler() override
    {
        xm_scheduler_destroy(s);
    }
    void begin(size_t places, SequenceModel &m)
    {
        ASSERT_EQ(xm_scheduler_create(&m.base, nullptr, &s, &err), XM_OK) << err.text;
        xm_scheduler_set_places(s, places);
    }
    void begin(size_t places)
    {
        begin(places, model);
    }
    xm_status submit(Job &j, const xm_job &wish)
    {
        err = {};
        return xm_scheduler_submit(s, &wish, &j.id, &err);
    }
    void submit(Job &j)
    {
        ASSERT_EQ(submit(j, j.wish()), XM_OK) << err.text;
    }
    bool step()
    {
        err = {};
        EXPECT_EQ(xm_scheduler_step(s, &did, &err), XM_OK) << err.text;
        return did.n_jobs > 0;
    }
    void finish()
    {
        for (int n = 0; step(); n++)
            ASSERT_LT(n, 10000) << "it stands still";
    }

    SequenceModel model;
    xm_scheduler *s = nullptr;
    xm_scheduler_progress did = {};
    xm_error err = {};
};

TEST_F(Scheduler, ATextThatDecodesGoesAlongWithALongPrompt)
{
    const Kind small = long_kind(model, 3, 8), large = long_kind(model, 100, 2, 5);
    Job first(&small), second(&large);
    begin(2);
    submit(first);
    step();
    submit(second);
    for (int i = 1; i < 8; i++)
        step();
    EXPECT_EQ(first.n_ended, 1) << "a token a step";
    finish();
    first.check("small");
    second.check("large");
    for (const Ids &rows : model.runs) {
        int32_t all = 0;
        for (int32_t n : rows)
            all += n;
        EXPECT_LE(all, (int32_t)model.chunk);
    }
}

TEST_F(Scheduler, EachTextThatDecodesGetsATokenInEachStep)
{
    const Kind a = long_kind(model, 3, 8), b = long_kind(model, 4, 8, 1),
               c = long_kind(model, 5, 8, 2);
    Job jobs[] = {Job(&a), Job(&b), Job(&c)};
    begin(2);
    for (Job &j : jobs)
        submit(j);
    for (int i = 0; i < 8; i++) {
        step();
        EXPECT_EQ(did.has_prompts, i == 0);
        EXPECT_EQ(did.tokens, i == 0 ? 7u : 2u);
    }
    EXPECT_EQ(jobs[0].n_ended + jobs[1].n_ended, 2);
    EXPECT_EQ(model.runs[7], Ids({1, 1})) << "the third has no place";
    for (int i = 0; i < 8; i++)
        step();
    EXPECT_EQ(did.n_jobs, 0u);
    EXPECT_EQ(model.runs.size(), 16u);
    for (Job &j : jobs)
        j.check("job");
}

/* However many texts decode, prompts have a quarter of a chunk and one token. */
TEST_F(Scheduler, PromptsAreReadBesideManyTextsThatDecode)
{
    model.chunk = 4;
    std::vector<Kind> kinds;
    for (int32_t i = 0; i < 5; i++)
        kinds.push_back(long_kind(model, i == 4 ? 6 : 1, 20, i));
    std::vector<std::unique_ptr<Job>> jobs;
    begin(5);
    for (const Kind &k : kinds) {
        jobs.emplace_back(new Job(&k));
        submit(*jobs.back());
        step();
    }
    EXPECT_EQ(model.runs.back(), Ids({1, 1, 1, 1, 2}));
    finish();
    for (const auto &j : jobs)
        j->check("job");
}

TEST_F(Scheduler, JobsComeAndGoWhileOthersRun)
{
    const Kind a = long_kind(model, 5, 20), b = long_kind(model, 6, 3, 1);
    Job first(&a), second(&b), third(&b);
    begin(2);
    submit(first);
    step();
    submit(second);
    second.on_end = [&] { submit(third); };
    finish();
    first.check("first");
    second.check("second");
    third.check("third, which the end of the second submits");
}

TEST_F(Scheduler, OnlyTheJobThatIsMeantIsCancelled)
{
    const Kind k = long_kind(model, 5, 20), other = long_kind(model, 6, 20, 1);
    Job runs(&k), beside(&other), waits(&other);
    begin(2);
    submit(runs);
    submit(beside);
    submit(waits);
    step();
    step();
    xm_scheduler_cancel(s, runs.id);
    xm_scheduler_cancel(s, waits.id);
    xm_scheduler_cancel(s, 77);
    EXPECT_EQ(runs.n_ended, 0) << "the thread that steps ends it";
    step();
    EXPECT_EQ(runs.finish, XM_FINISH_CANCELLED);
    EXPECT_EQ(runs.ids, Ids(k.ids.begin(), k.ids.begin() + 2));
    EXPECT_EQ(waits.finish, XM_FINISH_CANCELLED);
    EXPECT_TRUE(waits.ids.empty());
    xm_scheduler_cancel(s, runs.id);
    finish();
    beside.check("beside");
    EXPECT_EQ(runs.n_ended, 1);
}

TEST_F(Scheduler, DeadlinesEndJobsThatRunAndThatWait)
{
    static double now_s;
    now_s = 10.0;
    xm_clock_replace([] { return now_s; });
    model.on_run = [] { now_s += 1.0; };
    const Kind k = long_kind(model, 5, 20);
    Job runs(&k), waits(&k), none(&k);
    begin(1);
    xm_job wish = runs.wish();
    wish.deadline = 13.0;
    submit(runs, wish);
    wish = waits.wish();
    wish.deadline = 12.0;
    submit(waits, wish);
    submit(none);
    step();
    EXPECT_EQ(did.run_s, 1.0);
    finish();
    xm_clock_replace(nullptr);
    EXPECT_EQ(runs.ids, Ids(k.ids.begin(), k.ids.begin() + 3));
    EXPECT_EQ(runs.finish, XM_FINISH_FAILED);
    EXPECT_EQ(runs.error, "the deadline has passed: the text has 3 tokens");
    EXPECT_EQ(waits.error, "the deadline has passed: the text has 0 tokens");
    none.check("none");
}

TEST_F(Scheduler, RefusesAJobWhereTooManyWait)
{
    const Kind k = long_kind(model, 5, 4);
    Job runs(&k), waits(&k), last(&k);
    begin(1);
    submit(runs);
    xm_job wish = waits.wish();
    wish.most_waiting = 1;
    EXPECT_EQ(submit(waits, wish), XM_BUSY) << "the first has not begun";
    EXPECT_STREQ(err.text, "1 text waits already");
    step();
    EXPECT_EQ(submit(waits, wish), XM_OK);
    wish = last.wish();
    wish.most_waiting = 1;
    EXPECT_EQ(submit(last, wish), XM_BUSY);
    xm_scheduler_cancel(s, waits.id);
    step();
    EXPECT_EQ(submit(last, wish), XM_OK) << "the place in the queue is free";
    finish();
    runs.check("runs");
    last.check("last");
}

/* The prompt is run once, and so is what another one has more. */
TEST_F(Scheduler, ABeginningIsComputedOnceAlsoWhereJobsComeTogether)
{
    model.chunk = 8;
    const Kind k = long_kind(model, 22, 1);
    Ids other = k.prompt;
    other.resize(18);
    other.insert(other.end(), {X, X, X});
    const Kind o = kind_of(model, other, 1);
    Job a(&k), b(&k), c(&o), d(&k);
    begin(4);
    for (Job *j : {&a, &b, &c, &d})
        submit(*j);
    finish();
    for (Job *j : {&a, &b, &c, &d})
        j->check("same");
    EXPECT_EQ(model.n_tokens, 22u + 21 - 16) << "four whole pages of the other one";
    EXPECT_EQ(model.runs[2], Ids({6, 2})) << "it waits no longer than for these";
    EXPECT_EQ(model.n_forks, 2u);
    EXPECT_EQ(b.reused, 22u);
    EXPECT_EQ(c.reused, 16u);
    EXPECT_EQ(a.reused, 0u);
}

/* It is the prompt of another, but not all of it. */
TEST_F(Scheduler, APromptThatAnotherOneBeginsWithIsNoFork)
{
    const Kind k = long_kind(model, 12, 3);
    Ids beginning = k.prompt;
    beginning.resize(8);
    const Kind o = kind_of(model, beginning, 3);
    Job a(&k), b(&o);
    begin(2);
    submit(a);
    submit(b);
    finish();
    a.check("whole");
    b.check("its beginning");
    EXPECT_EQ(model.n_forks, 0u);
    EXPECT_EQ(b.reused, 4u) << "one token is left to run";
}

TEST_F(Scheduler, AJobWhoseLeaderEndsFindsAnother)
{
    model.chunk = 8;
    const Kind k = long_kind(model, 40, 2);
    Job a(&k), b(&k), c(&k);
    begin(3);
    for (Job *j : {&a, &b, &c})
        submit(*j);
    step();
    xm_scheduler_cancel(s, a.id);
    finish();
    b.check("b");
    c.check("c");
    EXPECT_EQ(a.finish, XM_FINISH_CANCELLED);
    EXPECT_EQ(model.n_tokens, 40u + 2) << "the pages of the first step are still there";
    EXPECT_EQ(model.n_forks, 1u);
}

TEST_F(Scheduler, AJobThatCannotBeForkedReadsItsPrompt)
{
    const Kind k = long_kind(model, 10, 2);
    model.fork_fails = true;
    Job a(&k), b(&k);
    begin(2);
    submit(a);
    submit(b);
    finish();
    a.check("a");
    b.check("b");
    EXPECT_EQ(b.reused, 8u);
}

TEST_F(Scheduler, TheNewestGivesUpItsPagesAndComputesThemAgain)
{
    for (const bool says_room : {true, false}) {
        SCOPED_TRACE(says_room);
        SequenceModel m(says_room);
        m.pages = 8;
        const Kind a = long_kind(m, 9, 12), b = long_kind(m, 10, 12, 1),
                   c = long_kind(m, 9, 12, 2);
        std::vector<int> order;
        Job jobs[] = {Job(&a), Job(&b), Job(&c)};
        begin(3, m);
        for (int i = 0; i < 3; i++) {
            jobs[i].on_end = [&order, i] { order.push_back(i); };
            submit(jobs[i]);
        }
        finish();
        for (const Job &j : jobs)
            j.check("job");
        EXPECT_EQ(order, std::vector<int>({0, 1, 2}));
        EXPECT_EQ(m.n_full, says_room ? 2u : 3u) << "tried again when another has ended";
        EXPECT_EQ(jobs[1].reused + jobs[2].reused, 0u) << "its own pages are no others'";
        xm_scheduler_destroy(s);
        s = nullptr;
    }
}

/* Two have room until they end, so the third is not admitted; where the device does not say so, the
 * run tells. */
TEST_F(Scheduler, AdmissionIsByFreePages)
{
    model.pages = 9;
    const Kind a = long_kind(model, 9, 3), b = long_kind(model, 9, 3, 1),
               c = long_kind(model, 9, 3, 2);
    Job jobs[] = {Job(&a), Job(&b), Job(&c)};
    begin(3);
    for (Job &j : jobs)
        submit(j);
    step();
    EXPECT_EQ(model.n_sequences, 2u);
    finish();
    for (const Job &j : jobs)
        j.check("job");
    EXPECT_EQ(model.n_full, 0u);
}

/* What has no room now is admitted when a job ends, though others still run. */
TEST_F(Scheduler, AdmissionGoesOnWhenOneEnds)
{
    model.pages = 8;
    const Kind a = long_kind(model, 9, 2), b = long_kind(model, 9, 9, 1),
               c = long_kind(model, 9, 2, 2);
    Job jobs[] = {Job(&a), Job(&b), Job(&c)};
    std::vector<int> order;
    begin(3);
    for (int i = 0; i < 3; i++) {
        jobs[i].on_end = [&order, i] { order.push_back(i); };
        submit(jobs[i]);
    }
    finish();
    for (const Job &j : jobs)
        j.check("job");
    EXPECT_EQ(order, std::vector<int>({0, 2, 1}));
}

/* Whoever waits for room is in nobody's way when he is gone, but makes no room for others. */
TEST_F(Scheduler, TheEndOfAJobThatWaitsForRoom)
{
    SequenceModel m(false);
    m.pages = 7;
    const Kind a = long_kind(m, 9, 12), b = long_kind(m, 10, 12, 1),
               c = long_kind(m, 9, 12, 2), small = long_kind(m, 1, 2, 3);
    Job first(&a), second(&b), third(&c), last(&small);
    begin(3, m);
    for (Job *j : {&first, &second, &third, &last})
        submit(*j);
    step();
    step();
    EXPECT_EQ(m.n_full, 1u) << "the third has given up its pages";
    xm_scheduler_cancel(s, last.id);
    step();
    EXPECT_EQ(m.n_sequences, 2u);
    EXPECT_EQ(m.n_full, 1u);
    Job other(&small);
    submit(other);
    xm_scheduler_cancel(s, third.id);
    step();
    EXPECT_EQ(m.n_sequences, 3u) << "the job behind it is tried";
    finish();
    first.check("first");
    second.check("second");
    other.check("other");
    xm_scheduler_destroy(s);
    s = nullptr;
}

TEST_F(Scheduler, SharedPagesNeedRoomOnce)
{
    model.pages = 5;
    const Kind k = long_kind(model, 9, 3);
    Job a(&k), b(&k);
    begin(2);
    submit(a);
    submit(b);
    step();
    EXPECT_EQ(model.n_forks, 1u);
    finish();
    a.check("a");
    b.check("b");
    EXPECT_EQ(model.n_full, 0u);
}

TEST_F(Scheduler, AJobThatHasNoRoomAloneFailsAlone)
{
    model.pages = 5;
    const Kind sound = long_kind(model, 5, 6), large = kind_of(model, Ids(40, A), 3);
    ASSERT_EQ(large.status, XM_NO_MEMORY);
    for (size_t at = 0; at < 4; at++) {
        std::vector<std::unique_ptr<Job>> jobs;
        for (size_t i = 0; i < 4; i++)
            jobs.emplace_back(new Job(i == at ? &large : &sound));
        begin(3);
        for (auto &j : jobs)
            submit(*j);
        finish();
        for (auto &j : jobs)
            j->check("job");
        EXPECT_EQ(jobs[at]->error, "the cache is full");
        xm_scheduler_destroy(s);
        s = nullptr;
    }
}

TEST_F(Scheduler, FailuresBelongToTheirJobs)
{
    model.nan_every = 7;
    std::map<xm_status, int> seen;
    std::vector<Kind> kinds;
    for (int32_t i = 0; i < 24; i++)
        kinds.push_back(kind_of(model, Ids{i % VOCABULARY, (i * 5) % VOCABULARY}, 4));
    kinds.push_back(kind_of(model, {}, 4));
    Kind no_context = kinds[0];
    no_context.context = 2;
    make_alone(model, no_context);
    kinds.push_back(no_context);
    std::vector<std::unique_ptr<Job>> jobs;
    begin(5);
    for (const Kind &k : kinds) {
        jobs.emplace_back(new Job(&k));
        submit(*jobs.back());
    }
    finish();
    for (const auto &j : jobs) {
        j->check("job");
        seen[j->status]++;
    }
    EXPECT_GT(seen[XM_OK], 0);
    EXPECT_GT(seen[XM_NOT_FINITE], 0);
    EXPECT_EQ(seen[XM_INVALID], 2);
    EXPECT_EQ(jobs[24]->error, "the prompt is empty");
    EXPECT_EQ(jobs[25]->error,
              "the prompt has 2 tokens, which leaves no room in a context of 2");
}

/* Its end is told when it would begin, behind those before it. */
TEST_F(Scheduler, AJobThatIsRefusedFailsInItsTurn)
{
    const Kind k = long_kind(model, 5, 3);
    Job first(&k), refused(&k), last(&k);
    xm_error why = {};
    xm_fail(&why, XM_UNSUPPORTED, "the prompt is in Linear A");
    std::string order;
    first.on_end = [&] { order += "1"; };
    refused.on_end = [&] { order += "2"; };
    last.on_end = [&] { order += "3"; };
    xm_job wish = refused.wish();
    wish.refused = &why;
    begin(1);
    submit(first);
    submit(refused, wish);
    submit(last);
    finish();
    EXPECT_EQ(order, "123");
    EXPECT_EQ(refused.status, XM_UNSUPPORTED);
    EXPECT_EQ(refused.error, "the prompt is in Linear A");
    last.check("last");
}

/* What the caller asks wrongly concerns this one job. */
TEST_F(Scheduler, ASamplingThatIsNoneFailsItsJob)
{
    const Kind k = long_kind(model, 5, 4);
    Job wrong(&k), sound(&k);
    xm_job wish = wrong.wish();
    wish.sampling.temperature = -1.0f;
    begin(2);
    submit(wrong, wish);
    submit(sound);
    finish();
    EXPECT_EQ(wrong.status, XM_INVALID);
    EXPECT_NE(wrong.error.find("temperature"), std::string::npos) << wrong.error;
    sound.check("sound");
}

TEST_F(Scheduler, AFailureOfTheDeviceEndsAll)
{
    const Kind k = long_kind(model, 5, 9), o = long_kind(model, 6, 9, 1);
    Kind none = k, empty = k;
    none.prompt.clear();
    empty.max_tokens = 0;
    Job a(&k), b(&o), c(&o), later(&k), refused(&none), over(&empty);
    begin(2);
    for (Job *j : {&a, &b, &c})
        submit(*j);
    step();
    model.run_fails_in = 1;
    step();
    submit(refused);
    submit(over);
    xm_scheduler_set_places(s, 4);
    EXPECT_EQ(xm_scheduler_step(s, &did, &err), XM_DEVICE);
    EXPECT_STREQ(err.text, "the device is gone");
    EXPECT_EQ(a.n_ended + b.n_ended + c.n_ended, 0);
    xm_scheduler_end_all(s, &err);
    for (Job *j : {&a, &b, &c}) {
        EXPECT_EQ(j->n_ended, 1);
        EXPECT_EQ(j->error, "the device is gone");
        EXPECT_EQ(j->finish, XM_FINISH_FAILED);
    }
    EXPECT_EQ(refused.error, "the prompt is empty") << "the first cause";
    EXPECT_EQ(over.finish, XM_FINISH_LENGTH) << "it was over before";
    EXPECT_EQ(a.ids, Ids(k.ids.begin(), k.ids.begin() + 2)) << "it keeps its tokens";
    submit(later);
    finish();
    later.check("later");
}

TEST_F(Scheduler, ItsRequestCancelsTheRunOfAll)
{
    const Kind k = long_kind(model, 5, 9);
    Kind empty = k;
    empty.max_tokens = 0;
    Job a(&k), over(&empty), b(&k), waits(&k);
    begin(1);
    submit(a);
    step();
    xm_scheduler_set_places(s, 2);
    for (Job *j : {&over, &b, &waits})
        submit(*j);
    xm_infer *request = xm_scheduler_request(s);
    request->ops->cancel(request);
    EXPECT_EQ(xm_scheduler_step(s, &did, &err), XM_CANCELLED);
    xm_scheduler_destroy(s);
    s = nullptr;
    EXPECT_EQ(a.finish, XM_FINISH_CANCELLED);
    EXPECT_EQ(a.ids.size(), 1u);
    EXPECT_EQ(b.finish, XM_FINISH_CANCELLED);
    EXPECT_EQ(waits.finish, XM_FINISH_CANCELLED);
    EXPECT_EQ(over.finish, XM_FINISH_LENGTH);
}

TEST_F(Scheduler, PiecesComeAsTheyAreMadeAndMayEndTheJob)
{
    const Kind k = long_kind(model, 5, 9);
    Job j(&k);
    struct Seen {
        Ids ids;
        size_t most;
    } seen = {{}, 3};
    xm_job wish = j.wish();
    wish.asked.ctx = &seen;
    wish.asked.on_piece = [](const xm_piece *piece, void *ctx) {
        Seen *to = static_cast<Seen *>(ctx);
        to->ids.push_back(piece->id);
        return to->ids.size() < to->most;
    };
    begin(1);
    submit(j, wish);
    for (size_t i = 1; i <= 3; i++) {
        step();
        EXPECT_EQ(seen.ids.size(), i);
    }
    EXPECT_EQ(j.finish, XM_FINISH_CANCELLED);
    EXPECT_EQ(j.ids, seen.ids);
}

/* All that can happen at once, in small caches. */
TEST(Schedulers, EachTextIsWhatItIsAlone)
{
    static double now_s;
    std::mt19937 &random = sample::random();
    const auto below = [&](size_t n) { return (size_t)(random() % n); };
    const size_t rounds = 400, of_a_round = 250;
    std::map<std::string, size_t> seen;
    xm_clock_replace([] { return now_s; });
    for (size_t round = 0; round < rounds && !::testing::Test::HasFailure(); round++) {
        SCOPED_TRACE("round " + std::to_string(round));
        SequenceModel model(below(4) > 0);
        model.keeps_runs = false;
        model.page = 1 + below(5);
        model.pages = below(3) ? 6 + below(40) : SIZE_MAX / 8;
        model.chunk = below(8) ? 1 + below(24) : UINT64_MAX;
        model.nan_every = below(2) ? 200 : 0;
        model.fork_fails = below(8) == 0;
        model.on_run = [] { now_s += 1.0; };
        const size_t alphabet = 1 + below(VOCABULARY);
        std::vector<Kind> kinds(40);
        for (Kind &k : kinds) {
            if (below(3) == 0) /* begins as another */
                k.prompt = kinds[below(kinds.size())].prompt;
            for (size_t n = below(3) ? below(8) : below(30); n > 0; n--)
                k.prompt.push_back((int32_t)below(alphabet));
            k.max_tokens = below(10) ? 1 + below(12) : below(60);
            k.context = below(6) ? 0 : 1 + below(40);
            k.sampling.top_p = 1.0f;
            k.sampling.temperature = below(2) ? 1.0f : 0.0f;
            k.sampling.seed = random();
            k.sampling.repetition_penalty = below(2) ? 1.3f : 0.0f;
            make_alone(model, k);
        }
        const bool has_ends = below(2), may_fail = below(5) == 0;
        std::vector<std::unique_ptr<Job>> jobs;
        xm_scheduler *s = nullptr;
        ASSERT_EQ(xm_scheduler_create(&model.base, nullptr, &s, nullptr), XM_OK);
        xm_scheduler_set_places(s, 1 + below(9));
        const size_t burst = 1 + below(20);
        size_t idle = 0;
        for (xm_scheduler_progress did = {};
             jobs.size() < of_a_round || did.n_jobs > 0;) {
            for (size_t n = below(4) ? 0 : below(burst + 1);
                 n > 0 && jobs.size() < of_a_round; n--) {
                jobs.emplace_back(new Job(&kinds[below(kinds.size())]));
                Job &j = *jobs.back();
                xm_job wish = j.wish();
                if (has_ends && below(5) == 0) {
                    wish.deadline = now_s + (double)below(30);
                    j.may_stop = true;
                }
                wish.most_waiting = below(9) ? 0 : 1 + below(10);
                const xm_status submitted = xm_scheduler_submit(s, &wish, &j.id, nullptr);
                if (submitted != XM_OK) {
                    ASSERT_EQ(submitted, XM_BUSY);
                    seen["refused"]++;
                    jobs.pop_back();
                }
            }
            if (has_ends && !jobs.empty() && below(6) == 0) {
                Job &j = *jobs[below(jobs.size())];
                j.may_stop |= j.n_ended == 0;
                xm_scheduler_cancel(s, j.id);
            }
            if (may_fail && below(50) == 0)
                model.run_fails_in = (int)below(3);
            xm_error why = {};
            const uint64_t before = model.n_tokens;
            if (xm_scheduler_step(s, &did, &why) != XM_OK) {
                ASSERT_STREQ(why.text, "the device is gone");
                for (auto &j : jobs)
                    j->may_stop |= j->n_ended == 0;
                xm_scheduler_end_all(s, below(2) ? &why : nullptr);
                seen["device"]++;
            }
            ASSERT_EQ(model.n_tokens - before, did.tokens);
            idle = did.tokens || did.n_jobs == 0 ? 0 : idle + 1;
            ASSERT_LT(idle, 100u) << "it stands still";
            model.run_fails_in = did.n_jobs ? model.run_fails_in : -1;
        }
        EXPECT_EQ(model.n_sequences, 0u) << "an idle scheduler holds no pages";
        xm_scheduler_destroy(s);
        for (size_t i = 0; i < jobs.size() && !::testing::Test::HasFatalFailure(); i++) {
            const Job &j = *jobs[i];
            j.check(("job " + std::to_string(i)).c_str());
            seen[j.status == XM_OK
                     ? j.finish == XM_FINISH_CANCELLED ? "cancelled" : "whole"
                     : xm_status_text(j.status)]++;
        }
        seen["forks"] += model.n_forks;
        seen["full"] += model.n_full;
    }
    xm_clock_replace(nullptr);
    for (const auto &what : seen)
        RecordProperty(what.first, (int)what.second);
    for (const char *what : {"whole", "cancelled", "refused", "device", "forks", "full"})
        EXPECT_GT(seen[what], 50u) << what;
}

/* Jobs come from two threads, which also cancel some, while a third steps. */
TEST(SchedulerThreads, SubmitAndCancelFromAnyThread)
{
    SequenceModel model;
    model.pages = 30;
    model.keeps_runs = false;
    std::vector<Kind> kinds;
    for (int32_t i = 0; i < VOCABULARY; i++)
        kinds.push_back(kind_of(model, Ids((size_t)(3 + i), i), 6));
    xm_scheduler *s = nullptr;
    ASSERT_EQ(xm_scheduler_create(&model.base, nullptr, &s, nullptr), XM_OK);
    xm_scheduler_set_places(s, 4);
    enum { THREADS = 2, JOBS = 400 };
    std::vector<std::unique_ptr<Job>> jobs[THREADS];
    std::atomic<int> n_running{THREADS};
    std::vector<std::thread> threads;
    for (int t = 0; t < THREADS; t++) {
        for (size_t i = 0; i < JOBS; i++)
            jobs[t].emplace_back(new Job(&kinds[(i * 5 + (size_t)t) % kinds.size()]));
        threads.emplace_back([&, t] {
            for (size_t i = 0; i < JOBS; i++) {
                Job &j = *jobs[t][i];
                const xm_job wish = j.wish();
                EXPECT_EQ(xm_scheduler_submit(s, &wish, &j.id, nullptr), XM_OK);
                if (i % 3 == 2)
                    xm_scheduler_cancel(s, jobs[t][i - i % 7]->id);
                if (i % 16 == 0)
                    std::this_thread::yield();
            }
            n_running--;
        });
    }
    xm_scheduler_progress did = {};
    bool is_last = false;
    while (!is_last || did.n_jobs > 0) {
        is_last = n_running == 0;
        ASSERT_EQ(xm_scheduler_step(s, &did, nullptr), XM_OK);
    }
    for (std::thread &t : threads)
        t.join();
    size_t n_whole = 0;
    for (auto &list : jobs)
        for (size_t i = 0; i < JOBS; i++) {
            list[i]->may_stop = true;
            list[i]->check("job");
            n_whole += list[i]->finish != XM_FINISH_CANCELLED;
        }
    EXPECT_GT(n_whole, (size_t)JOBS);
    xm_scheduler_destroy(s);
}

TEST(SchedulerMemory, EveryAllocationMayFail)
{
    bool seen = true;
    for (uint64_t n = 1; seen; n++) {
        SequenceModel model;
        const Kind k = long_kind(model, 5, 3);
        Job jobs[] = {Job(&k), Job(&k)};
        xm_error err = {};
        xm_scheduler *s = nullptr;
        xm_scheduler_progress did = {};
        int n_submitted = 0;
        xm_fail_allocation(n);
        xm_status status = xm_scheduler_create(&model.base, nullptr, &s, &err);
        if (s)
            xm_scheduler_set_places(s, 2);
        for (Job &j : jobs) {
            const xm_job wish = j.wish();
            if (s && status == XM_OK)
                status = xm_scheduler_submit(s, &wish, nullptr, &err);
            n_submitted += status == XM_OK;
        }
        for (did.n_jobs = 1; s && status == XM_OK && did.n_jobs > 0;)
            status = xm_scheduler_step(s, &did, &err);
        xm_scheduler_destroy(s);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        int n_failed = status != XM_OK;
        for (int i = 0; i < n_submitted; i++) {
            EXPECT_EQ(jobs[i].n_ended, 1);
            n_failed += jobs[i].status == XM_NO_MEMORY;
        }
        EXPECT_EQ(n_failed > 0, seen) << n;
        ASSERT_LT(n, 200u);
    }
}

} // namespace
