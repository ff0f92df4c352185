/* SPDX-License-Identifier: Apache-2.0
 *
 * A scheduler with random jobs, from several threads, and with failing allocations.
 */
#include <map>
#include <memory>
#include <thread>

#include "runtime/util/clock.h"
#include "runtime/util/memory.h"
#include "unit_tests/pipeline/scheduled_jobs.h"
#include "unit_tests/pipeline/scripted_choices.h"
#include "unit_tests/sample.h"

namespace
{

void
make_random(ChoosingModel &model, const std::function<size_t(size_t)> &below)
{
    model.keeps_runs = false;
    model.page = 1 + below(5);
    model.pages = below(3) ? 6 + below(40) : SIZE_MAX / 8;
    model.chunk = below(8) ? 1 + below(24) : UINT64_MAX;
    model.nan_every = below(2) ? 200 : 0;
    model.fork_fails = below(8) == 0;
    model.chooses = below(4) > 0;
    model.not_ahead_every = below(2) ? 0 : 2 + (uint32_t)below(9);
}

/* Random prompts, limits, cancels and failures in small caches: each text is the one it is alone.
 */
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
        ChoosingModel model(below(4) > 0);
        make_random(model, below);
        model.on_run = [] { now_s += 1.0; };
        const size_t alphabet = 1 + below(VOCABULARY);
        std::vector<Kind> kinds(40);
        for (Kind &k : kinds) {
            if (below(3) == 0) /* begins like another prompt */
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
        xm_scheduler_set_slots(s, 1 + below(9));
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
        seen["ahead"] += model.n_ahead;
        seen["dropped"] += model.n_dropped;
    }
    xm_clock_replace(nullptr);
    for (const auto &what : seen)
        RecordProperty(what.first, (int)what.second);
    for (const char *what :
         {"whole", "cancelled", "refused", "device", "forks", "full", "ahead", "dropped"})
        EXPECT_GT(seen[what], 50u) << what;
}

/* Two threads submit jobs and cancel some, while a third thread steps. */
TEST(SchedulerThreads, SubmitAndCancelFromAnyThread)
{
    ChoosingModel model;
    model.pages = 30;
    model.keeps_runs = false;
    std::vector<Kind> kinds;
    for (int32_t i = 0; i < VOCABULARY; i++)
        kinds.push_back(kind_of(model, Ids((size_t)(3 + i), i), 6));
    xm_scheduler *s = nullptr;
    ASSERT_EQ(xm_scheduler_create(&model.base, nullptr, &s, nullptr), XM_OK);
    xm_scheduler_set_slots(s, 4);
    enum { THREADS = 2, JOBS = 400 };
    const auto cancelled_by = [](size_t i) { return i - i % 7; };
    const auto is_cancelled = [&](size_t job) {
        bool is = false;
        for (size_t i = 2; i < JOBS; i += 3)
            is |= cancelled_by(i) == job;
        return is;
    };
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
                    xm_scheduler_cancel(s, jobs[t][cancelled_by(i)]->id);
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
            /* jobs that the loop above cancels; some of them had ended before */
            list[i]->may_stop = is_cancelled(i);
            list[i]->check("job");
            n_whole += list[i]->finish == list[i]->kind->finish;
        }
    EXPECT_GT(n_whole, (size_t)JOBS);
    xm_scheduler_destroy(s);
}

TEST(SchedulerMemory, EveryAllocationMayFail)
{
    bool seen = true;
    for (uint64_t n = 1; seen; n++) {
        ChoosingModel model;
        const Kind k = long_kind(model, 5, 6);
        Job jobs[] = {Job(&k), Job(&k)};
        xm_error err = {};
        xm_scheduler *s = nullptr;
        xm_scheduler_progress did = {};
        int n_submitted = 0;
        xm_fail_allocation(n);
        xm_status status = xm_scheduler_create(&model.base, nullptr, &s, &err);
        if (s)
            xm_scheduler_set_slots(s, 2);
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
