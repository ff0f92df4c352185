/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs of a scheduler: each text is the one that its prompt gives alone, whatever jobs run beside
 * it. Which jobs wait, which prefixes are computed once, which jobs fail.
 */
#include <map>
#include <memory>

#include "runtime/util/clock.h"
#include "unit_tests/pipeline/scheduled_jobs.h"
#include "unit_tests/pipeline/scripted_choices.h"

namespace
{

constexpr int32_t A = 0, X = 7;

std::string
decoded(const xm_package *p, const Ids &ids)
{
    xm_strbuf out = {};
    EXPECT_EQ(
        xm_tokenizer_decode(p->tokenizer, ids.data(), ids.size(), true, &out, nullptr),
        XM_OK);
    const std::string text(xm_strbuf_text(&out), out.n);
    xm_strbuf_free(&out);
    return text;
}

class Scheduler : public ::testing::Test
{
  protected:
    ~Scheduler() override
    {
        xm_scheduler_destroy(s);
    }
    void begin(size_t slots, SequenceModel &m)
    {
        ASSERT_EQ(xm_scheduler_create(&m.base, nullptr, &s, &err), XM_OK) << err.text;
        xm_scheduler_set_slots(s, slots);
    }
    void begin(size_t slots)
    {
        begin(slots, model);
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
        EXPECT_EQ(did.n_waiting, 1u);
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

/* Prompts get at least a quarter of a chunk and one token, however many texts decode. */
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
    EXPECT_EQ(runs.error, "the deadline has passed after 3 tokens of the text");
    EXPECT_EQ(waits.error, "the deadline has passed after 0 tokens of the text");
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
    EXPECT_EQ(submit(waits, wish), XM_OK)
        << "the first has the place, though it has not begun";
    wish = last.wish();
    wish.most_waiting = 1;
    EXPECT_EQ(submit(last, wish), XM_BUSY);
    EXPECT_STREQ(err.text, "too many texts: 1 text already waits");
    step();
    EXPECT_EQ(submit(last, wish), XM_BUSY);
    xm_scheduler_cancel(s, waits.id);
    step();
    EXPECT_EQ(submit(last, wish), XM_OK) << "the place in the queue is free";
    finish();
    runs.check("runs");
    last.check("last");
}

/* A request for several jobs is refused as a whole, before the first job is taken. */
TEST_F(Scheduler, RefusesAJobWhereThoseBehindItWouldBe)
{
    const Kind k = long_kind(model, 5, 4);
    Job first(&k), second(&k), third(&k);
    begin(2);
    xm_job wish = first.wish();
    wish.most_waiting = 1;
    wish.n_more = 3;
    EXPECT_EQ(submit(first, wish), XM_BUSY) << "two places, one that may wait, four jobs";
    wish.n_more = SIZE_MAX;
    EXPECT_EQ(submit(first, wish), XM_BUSY);
    wish.n_more = 2;
    EXPECT_EQ(submit(first, wish), XM_OK);
    submit(second);
    submit(third); /* accepted: its request has no bound */
    finish();
    first.check("first");
    third.check("third");
}

/* Equal prompts are computed once, and of a prompt that begins like another only the rest. */
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

/* The prompt is a prefix of another prompt: sharing pages needs no fork. */
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

/* Two texts have room until they end, so that the third is not admitted. If the device cannot
 * tell its room, the run fails and the scheduler retries. */
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

/* A job without room is admitted when another ends, while others still run. */
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

/* Cancelling a job that waits for room unblocks the jobs behind it, but frees no pages. */
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

/* A refused job fails when its turn comes, after the jobs before it. */
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

/* Invalid sampling parameters fail only their own job. */
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
    xm_scheduler_set_slots(s, 4);
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
    xm_scheduler_set_slots(s, 2);
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

/* Text that is held back (a possible stop string, an incomplete character) is given out when the
 * job ends, however it ends. */
TEST_F(Scheduler, TextsAreWholeWhenTheyEnd)
{
    SmallPackage package;
    ASSERT_EQ(xm_package_read(package.p, XM_PACKAGE_TOKENIZER, &err), XM_OK);
    const Kind k = long_kind(model, 5, 6);
    /* Any letter may begin a stop string, and two bytes may begin "é". */
    std::vector<xm_slice> stops;
    for (const char *stop : {"a!", "b!", "c!", "#!", " !", "x!", "<!", "\xEF!", "\xC3!"})
        stops.push_back(xm_slice_of(stop, 2));
    ASSERT_EQ(xm_scheduler_create(&model.base, package.p, &s, &err), XM_OK);
    xm_scheduler_set_slots(s, 2);
    Job whole(&k), cancelled(&k);
    for (Job *j : {&whole, &cancelled}) {
        xm_job wish = j->wish();
        wish.asked.stops = stops.data();
        wish.asked.n_stops = stops.size();
        submit(*j, wish);
    }
    step();
    step();
    xm_scheduler_cancel(s, cancelled.id);
    finish();
    EXPECT_EQ(whole.text, decoded(package.p, k.ids));
    EXPECT_EQ(cancelled.text, decoded(package.p, Ids(k.ids.begin(), k.ids.begin() + 2)));
    EXPECT_FALSE(cancelled.text.empty());
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

/* Texts with and without a grammar run together. A text whose grammar allows no token fails
 * alone. */
TEST_F(Scheduler, TextsFollowTheirGrammars)
{
    SmallPackage package;
    ASSERT_EQ(xm_package_read(package.p, XM_PACKAGE_TOKENIZER, &err), XM_OK);
    ASSERT_EQ(xm_package_read(package.p, XM_PACKAGE_GENERATION, &err), XM_OK);
    xm_grammar *good = nullptr, *bad = nullptr;
    const std::string texts[] = {"root ::= \"#\" [abc]{5} \"#\"",
                                 "root ::= \"ab\" \"q\""};
    ASSERT_EQ(xm_grammar_parse(texts[0].data(), texts[0].size(), &good, &err), XM_OK);
    ASSERT_EQ(xm_grammar_parse(texts[1].data(), texts[1].size(), &bad, &err), XM_OK);
    const Kind k = long_kind(model, 3, 20), free_kind = long_kind(model, 4, 12, 1);
    Job follows(&k), fails(&k), beside(&free_kind);
    ASSERT_EQ(xm_scheduler_create(&model.base, package.p, &s, &err), XM_OK) << err.text;
    xm_scheduler_set_slots(s, 3);
    xm_job wish = follows.wish();
    wish.asked.grammar = good;
    ASSERT_EQ(submit(follows, wish), XM_OK) << err.text;
    wish = fails.wish();
    wish.asked.grammar = bad;
    ASSERT_EQ(submit(fails, wish), XM_OK) << err.text;
    submit(beside);
    finish();
    EXPECT_EQ(follows.finish, XM_FINISH_STOP) << follows.error;
    ASSERT_EQ(follows.text.size(), 7u) << follows.text;
    EXPECT_EQ(follows.text.find_first_not_of("abc", 1), 6u) << follows.text;
    EXPECT_EQ(fails.finish, XM_FINISH_FAILED);
    EXPECT_EQ(fails.status, XM_INVALID);
    EXPECT_EQ(
        fails.error,
        "after 2 tokens of the text, the grammar allows no token of the vocabulary");
    beside.check("beside");
    xm_scheduler_destroy(s);
    s = nullptr;
    xm_grammar_free(good);
    xm_grammar_free(bad);
}

/* ---- a device that chooses tokens ----------------------------------------------------------- */

class SchedulerAhead : public Scheduler
{
  protected:
    ~SchedulerAhead() override
    {
        xm_scheduler_destroy(s); /* before its model is destroyed */
        s = nullptr;
    }
    ChoosingModel ahead;
};

/* The host runs the prompts and the first token of each text; the device begins all other runs. */
TEST_F(SchedulerAhead, TheDeviceRunsTheTokensOfAllTexts)
{
    const Kind kinds[] = {long_kind(ahead, 3, 9), long_kind(ahead, 5, 9, 1),
                          long_kind(ahead, 4, 9, 2)};
    Job jobs[] = {Job(&kinds[0]), Job(&kinds[1]), Job(&kinds[2])};
    begin(3, ahead);
    for (Job &j : jobs)
        submit(j);
    for (int i = 0; i < 9; i++) {
        EXPECT_EQ(step(), i < 8) << i;
        EXPECT_EQ(did.tokens, i ? 3u : 12u) << i;
        EXPECT_EQ(did.has_prompts, i == 0);
        EXPECT_EQ(ahead.runs.size(), i ? 2u : 1u) << i;
    }
    for (const Job &j : jobs)
        j.check("text");
    EXPECT_EQ(ahead.n_ahead, 3u * 7);
    EXPECT_EQ(ahead.n_dropped, 0u) << "their lengths were known";
}

/* When a text ends, its token that ran ahead is dropped. One step has no token that runs ahead,
 * and in it no text stalls. */
TEST_F(SchedulerAhead, ATextThatEndsCostsATokenInVain)
{
    const Kind longer[] = {long_kind(ahead, 3, 30), long_kind(ahead, 5, 30, 1)};
    Kind ends = kind_of(ahead, {1}, 100);
    for (int32_t seed = 0; ends.ids.size() < 5 || ends.ids.size() > 20; seed++)
        ends = kind_of(ahead, {seed % VOCABULARY, seed / VOCABULARY % VOCABULARY}, 100);
    ASSERT_EQ(ends.finish, XM_FINISH_STOP);
    Job first(&longer[0]), second(&ends), third(&longer[1]);
    begin(3, ahead);
    for (Job *j : {&first, &second, &third})
        submit(*j);
    for (size_t i = 0; i <= ends.ids.size(); i++) {
        EXPECT_EQ(second.n_ended, 0);
        step();
    }
    second.check("in the step that chose its end");
    EXPECT_EQ(ahead.n_dropped, 1u);
    EXPECT_EQ(ahead.runs.size(), 2u);
    step();
    EXPECT_EQ(did.tokens, 2u) << "of the run that goes on";
    EXPECT_EQ(ahead.runs.size(), 2u);
    step();
    EXPECT_EQ(did.tokens, 2u);
    EXPECT_EQ(ahead.runs.size(), 3u);
    finish();
    EXPECT_EQ(ahead.runs.size(), 3u) << "the device runs ahead again";
    EXPECT_EQ(ahead.n_dropped, 1u);
    first.check("first");
    third.check("third");
}

/* A new prompt waits only for the run that is going on. */
TEST_F(SchedulerAhead, APromptGoesAlongWithTheRunAfterNext)
{
    const Kind longer = long_kind(ahead, 3, 30), later = long_kind(ahead, 7, 4, 1);
    Job first(&longer), second(&later);
    begin(2, ahead);
    submit(first);
    for (int i = 0; i < 6; i++)
        step();
    EXPECT_EQ(ahead.runs.size(), 2u);
    submit(second);
    step();
    EXPECT_EQ(did.tokens, 1u);
    EXPECT_EQ(ahead.runs.size(), 2u);
    step();
    EXPECT_EQ(ahead.runs.back(), (Ids{1, 7}));
    EXPECT_TRUE(did.has_prompts);
    finish();
    EXPECT_EQ(ahead.n_dropped, 0u);
    first.check("first");
    second.check("second");
}

TEST_F(SchedulerAhead, ACancelledTextLeavesTheOthers)
{
    const Kind kinds[] = {long_kind(ahead, 3, 30), long_kind(ahead, 5, 30, 1)};
    Job first(&kinds[0]), second(&kinds[1]);
    second.may_stop = true;
    begin(2, ahead);
    submit(first);
    submit(second);
    for (int i = 0; i < 6; i++)
        step();
    xm_scheduler_cancel(s, second.id);
    step();
    EXPECT_EQ(second.finish, XM_FINISH_CANCELLED);
    EXPECT_EQ(second.ids.size(), 6u);
    EXPECT_EQ(did.tokens, 1u);
    EXPECT_EQ(ahead.n_dropped, 1u);
    finish();
    first.check("first");
    second.check("second");
}

/* While one text needs the host to choose, the host chooses for all texts. */
TEST_F(SchedulerAhead, AStepIsTheHostsAsAWhole)
{
    const Kind kinds[] = {long_kind(ahead, 3, 20), long_kind(ahead, 5, 6, 1)};
    Job first(&kinds[0]), second(&kinds[1]);
    xm_job wish = second.wish();
    wish.asked.wants_log_probs = true;
    begin(2, ahead);
    submit(first);
    ASSERT_EQ(submit(second, wish), XM_OK);
    while (second.n_ended == 0) {
        EXPECT_EQ(ahead.n_ahead, 0u);
        step();
    }
    finish();
    EXPECT_GT(ahead.n_ahead, 10u);
    first.check("first");
    second.check("second");
}

TEST_F(SchedulerAhead, AFailureOfTheDeviceEndsAll)
{
    const Kind kinds[] = {long_kind(ahead, 3, 20), long_kind(ahead, 5, 20, 1)};
    Job first(&kinds[0]), second(&kinds[1]);
    begin(2, ahead);
    submit(first);
    submit(second);
    for (int i = 0; i < 6; i++)
        step();
    ahead.run_fails_in = 0;
    EXPECT_EQ(xm_scheduler_step(s, &did, &err), XM_DEVICE);
    EXPECT_STREQ(err.text, "the device is gone");
    EXPECT_EQ(did.tokens, 0u);
    xm_scheduler_end_all(s, &err);
    for (const Job *j : {&first, &second}) {
        EXPECT_EQ(j->status, XM_DEVICE);
        EXPECT_EQ(j->ids.size(), 6u);
    }
}

} // namespace
