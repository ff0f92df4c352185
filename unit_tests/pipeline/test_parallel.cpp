/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts in parallel on the device: which texts wait, and what happens when the cache is full.
 */
#include <algorithm>
#include <cmath>
#include <set>

#include "plugin/gpu/gpu_plugin.h"
#include "plugin/pipeline/parallel.h"
#include "runtime/util/clock.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

using Ids = std::vector<int32_t>;

enum { UBATCH = 32, VOCABULARY = 1500 };

Ids
some(size_t n, uint32_t seed)
{
    Ids ids;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids.push_back((int32_t)((seed >> 8) % VOCABULARY));
    }
    return ids;
}

struct Text {
    Ids ids;
    xm_finish finish;
    uint64_t reused;
    std::string error;
};

/* Records of the runs: rows of each run, and for each text the number of runs when it ended. The
 * logits of a text whose prompt begins with `poison` are NaN. */
struct Watch {
    std::vector<int64_t> rows;
    std::set<const xm_sequence *> poisoned;
    std::set<uint32_t> poisoned_rows;
    std::map<size_t, size_t> runs_at_end;
    std::vector<size_t> order;
    uint64_t chosen; /* tokens chosen by the device */
} watch;
bool is_ahead; /* the device may choose tokens, which needs fewer runs */
int32_t poison = -1;

/* The test's clock: seconds that a run, reading logits and telling a text take on the host. */
constexpr double run_s = 2.0, logits_s = 0.25, tell_s = 3.0;
double now_s;

const xm_compiled_ops *gpu_ops;
const xm_batch_ops *gpu_batch_ops;

xm_status
watched_run(xm_batch *b, const xm_batch_row *rows, uint32_t n, xm_error *err)
{
    int64_t all = 0;
    for (uint32_t i = 0; i < n; i++)
        all += (int64_t)rows[i].n;
    watch.rows.push_back(all);
    watch.poisoned_rows.clear();
    for (uint32_t i = 0; i < n; i++) {
        if (rows[i].n > 1) /* a new prompt: an ended text had the same address */
            watch.poisoned.erase(rows[i].sequence);
        if (rows[i].n > 1 && rows[i].ids[0] == poison)
            watch.poisoned.insert(rows[i].sequence);
        if (watch.poisoned.count(rows[i].sequence))
            watch.poisoned_rows.insert(i);
    }
    now_s += run_s;
    return gpu_batch_ops->run(b, rows, n, err);
}

const float *
watched_logits(const xm_batch *b, uint32_t i, uint64_t *rows, uint64_t *vocabulary)
{
    static std::vector<float> no_numbers;
    const float *logits = gpu_batch_ops->logits(b, i, rows, vocabulary);
    if (no_numbers.size() < *vocabulary)
        no_numbers.assign(*vocabulary, NAN);
    now_s += logits_s;
    return watch.poisoned_rows.count(i) ? no_numbers.data() : logits;
}

xm_status
watched_choose(xm_batch *b, xm_device_choices *c, xm_error *err)
{
    const xm_status s = gpu_batch_ops->choose(b, c, err);
    watch.chosen += s == XM_OK ? c->n : 0;
    return s;
}

xm_status
watched_batch(xm_compiled *c, xm_batch **out, xm_error *err)
{
    static xm_batch_ops ops;
    XM_TRY(gpu_ops->create_batch(c, out, err));
    gpu_batch_ops = (*out)->ops;
    ops = *gpu_batch_ops;
    ops.run = watched_run;
    ops.logits = watched_logits;
    ops.choose = is_ahead ? watched_choose : nullptr;
    (*out)->ops = &ops;
    return XM_OK;
}

void
watch_batches(xm_compiled *c)
{
    static xm_compiled_ops ops;
    gpu_ops = c->ops;
    ops = *gpu_ops;
    ops.create_batch = watched_batch;
    c->ops = &ops;
}

class ParallelTexts : public OpenClTest
{
  protected:
    void SetUp() override
    {
        OpenClTest::SetUp();
        if (IsSkipped())
            return;
        ASSERT_XM_OK(xm_core_create(&core, &err));
        make("0");
    }
    void TearDown() override
    {
        drop();
        xm_core_destroy(core);
        OpenClTest::TearDown();
    }
    void drop()
    {
        xm_scheduler_destroy(p);
        p = nullptr;
        xm_compiled_unref(compiled);
        compiled = nullptr;
        xm_package_close(package);
        package = nullptr;
    }
    /* mib: size of the cache; 0: as much as the device has. */
    void make(const char *mib)
    {
        const char *path = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
        const xm_property properties[] = {{"INFERENCE_PRECISION_HINT", "f32"},
                                          {"KV_CACHE_PRECISION", "f32"},
                                          {"XM_KV_BLOCK_TOKENS", "16"},
                                          {"XM_UBATCH", "32"},
                                          {"XM_KV_MEMORY", mib}};
        xm_compile_options sampled = {};
        sampled.sampled_logits = true;
        xm_graph *g = nullptr;
        drop();
        ASSERT_XM_OK(xm_package_open(path, &package, &err));
        ASSERT_XM_OK(xm_package_read_graph(package, nullptr, &g, &err));
        ASSERT_XM_OK(
            xm_core_compile(core, g, "GPU", properties, 5, &sampled, &compiled, &err));
        watch_batches(compiled);
        ASSERT_XM_OK(xm_scheduler_create(compiled, nullptr, &p, &err));
    }
    xm_kv_group_stats stats()
    {
        xm_kv_group_stats s;
        xm_kv_pool_stats(xm_gpu_compiled_of(compiled)->program->kv_pool, 0, &s);
        return s;
    }
    std::vector<Text> generate(const std::vector<Ids> &prompts, size_t slots,
                               uint64_t tokens, size_t n_texts = 0)
    {
        std::vector<xm_token_list> lists;
        for (const Ids &ids : prompts)
            lists.push_back({const_cast<int32_t *>(ids.data()), ids.size(), ids.size()});
        xm_parallel_run asked = {};
        asked.prompts = lists.data();
        asked.n_prompts = lists.size();
        asked.n_texts = n_texts ? n_texts : lists.size();
        asked.slots = slots;
        asked.refused = refused.empty() ? nullptr : refused.data();
        asked.each = each;
        asked.each.max_tokens = tokens;
        asked.sampling.top_p = 1.0f;
        asked.sampling.temperature = n_texts ? 1.0f : 0.0f;
        asked.on_text = [](size_t text, void *) {
            watch.runs_at_end[text] = watch.rows.size();
            watch.order.push_back(text);
            now_s += tell_s;
        };
        watch = {};
        std::vector<xm_generation_result> out(asked.n_texts);
        EXPECT_XM_OK(xm_parallel_generate(p, &asked, out.data(), &times, &err));
        std::vector<Text> texts;
        for (auto &r : out) {
            texts.push_back(
                {Ids(r.ids.ids, r.ids.ids + r.ids.n), r.finish, r.reused, r.error.text});
            EXPECT_EQ(r.log_probs.n, each.wants_log_probs ? r.ids.n : 0);
            xm_generation_result_free(&r);
        }
        EXPECT_EQ(stats().used, 0u);
        return texts;
    }
    std::vector<Text> one_by_one(const std::vector<Ids> &prompts, uint64_t tokens)
    {
        std::vector<Text> texts;
        for (const Ids &prompt : prompts)
            texts.push_back(generate({prompt}, 1, tokens)[0]);
        return texts;
    }
    static void expect_same(const std::vector<Text> &got, const std::vector<Text> &want)
    {
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); i++) {
            EXPECT_EQ(got[i].ids, want[i].ids) << "text " << i;
            EXPECT_EQ(got[i].finish, want[i].finish) << "text " << i;
        }
    }

    xm_core *core = nullptr;
    xm_package *package = nullptr;
    xm_compiled *compiled = nullptr;
    xm_scheduler *p = nullptr;
    std::vector<xm_error> refused;
    xm_generation each = {};
    xm_generation_times times = {};
};

/* A text that decodes gets a token in each run, even beside the chunks of a long prompt. */
TEST_F(ParallelTexts, DecodingGoesAlongWithALongPrompt)
{
    const std::vector<Ids> prompts = {some(4, 1), some(20 * UBATCH, 2), some(5, 3)};
    const auto want = one_by_one(prompts, 6);
    make("0");
    const auto got = generate(prompts, 3, 6);
    expect_same(got, want);
    EXPECT_EQ(watch.runs_at_end[0], 6u) << "a token a run";
    EXPECT_EQ(watch.order, (std::vector<size_t>{0, 1, 2}));
    for (int64_t rows : watch.rows)
        EXPECT_LE(rows, (int64_t)UBATCH);
    EXPECT_EQ(times.prompt_tokens, 4u + 20 * UBATCH + 5 + 5)
        << "five tokens of the first go along with the second's prompt";
}

/* Three texts of four tokens: the step with the prompts also gives the first token of all three. */
TEST_F(ParallelTexts, AStepEndsWhenItsTokensAreChosenAndItsTextsTold)
{
    const std::vector<Ids> prompts = {some(4, 1), some(5, 2), some(6, 3)};
    generate(prompts, 3, 4); /* builds the kernels, on another clock */
    now_s = 100.0;
    xm_clock_replace([] { return now_s; });
    generate(prompts, 3, 4);
    xm_clock_replace(nullptr);
    EXPECT_EQ(times.build_s, 0.0);
    EXPECT_DOUBLE_EQ(times.prompt_s, run_s + 3 * logits_s);
    EXPECT_DOUBLE_EQ(times.decode_s, 3 * run_s + 9 * logits_s + 3 * tell_s);
    EXPECT_EQ(times.decode_tokens, 9u);
}

TEST_F(ParallelTexts, LaterPromptsTakeOverWhatEarlierOnesHaveRead)
{
    Ids first = some(3 * UBATCH, 1), second = first;
    second.push_back(7);
    const auto want = one_by_one({first, second}, 4);
    make("0");
    const auto got = generate({first, second}, 2, 4);
    expect_same(got, want);
    EXPECT_EQ(got[0].reused, 0u);
    EXPECT_GE(got[1].reused, 2u * UBATCH) << "although both began together";
}

/* The cache has room for two texts, or for three while they are short. */
TEST_F(ParallelTexts, TextsThatHaveNoRoomWait)
{
    std::vector<Ids> prompts;
    for (uint32_t i = 0; i < 9; i++)
        prompts.push_back(some(130, i));
    const auto want = one_by_one(prompts, 60);
    make("1");
    const auto got = generate(prompts, 6, 60);
    expect_same(got, want);
    EXPECT_TRUE(std::is_sorted(watch.order.begin(), watch.order.end()))
        << "none begins before those that wait";
    EXPECT_LT(stats().pages * 16, 6u * 190) << "the cache is too small for all";
}

TEST_F(ParallelTexts, ATextThatHasNoRoomAloneFailsAlone)
{
    const std::vector<Ids> small = {some(60, 1), some(50, 2), some(70, 3)};
    const auto want = one_by_one(small, 10);
    make("1");
    for (size_t at = 0; at <= small.size(); at++) {
        SCOPED_TRACE(at);
        std::vector<Ids> prompts = small;
        prompts.insert(prompts.begin() + (long)at, some(900, 9));
        auto got = generate(prompts, 4, 10);
        EXPECT_EQ(got[at].finish, XM_FINISH_FAILED);
        EXPECT_TRUE(got[at].ids.empty());
        EXPECT_NE(got[at].error.find("the KV cache is full: 1.0 of 1.0 MiB"),
                  std::string::npos)
            << got[at].error;
        got.erase(got.begin() + (long)at);
        expect_same(got, want);
    }
}

/* The other texts are the same as without the failing one. */
TEST_F(ParallelTexts, ATextWhoseLogitsAreNotFiniteFailsAlone)
{
    const std::vector<Ids> sound = {some(9, 1), some(5, 2), some(7, 3), some(6, 4)};
    const auto want = one_by_one(sound, 6);
    Ids damaged = some(8, 5);
    damaged[0] = poison = 1234;
    for (size_t at = 0; at <= sound.size(); at++) {
        SCOPED_TRACE(at);
        std::vector<Ids> prompts = sound;
        prompts.insert(prompts.begin() + (long)at, damaged);
        auto got = generate(prompts, 2, 6);
        EXPECT_EQ(got[at].finish, XM_FINISH_FAILED);
        EXPECT_NE(got[at].error.find("the logits of position 7 are not finite"),
                  std::string::npos)
            << got[at].error;
        EXPECT_EQ(std::count(watch.order.begin(), watch.order.end(), at), 1);
        got.erase(got.begin() + (long)at);
        expect_same(got, want);
    }
    for (const Text &t : generate({damaged}, 2, 6, 5))
        EXPECT_EQ(t.finish, XM_FINISH_FAILED);
    poison = -1;
}

TEST_F(ParallelTexts, APromptThatCannotBeginFailsAlone)
{
    std::vector<Ids> prompts = {some(40, 9), some(9, 1), {}, some(7, 3), some(5, 2)};
    each.context = 20;
    refused.resize(5);
    xm_fail(&refused[3], XM_UNSUPPORTED, "the prompt is in Linear A");
    const auto got = generate(prompts, 1, 4);
    const char *const sentences[] = {
        "the prompt has 40 tokens, which leaves no room in a context of 20", "",
        "the prompt is empty", "the prompt is in Linear A", ""};
    for (size_t i = 0; i < prompts.size(); i++) {
        EXPECT_EQ(got[i].error, sentences[i]);
        EXPECT_EQ(got[i].finish, *sentences[i] ? XM_FINISH_FAILED : XM_FINISH_LENGTH);
        EXPECT_EQ(got[i].ids.size(), *sentences[i] ? 0u : 4u);
    }
    EXPECT_EQ(watch.order, (std::vector<size_t>{0, 1, 2, 3, 4})) << "each told once";
    refused.assign(5, refused[3]);
    for (const Text &t : generate(prompts, 3, 4))
        EXPECT_EQ(t.finish, XM_FINISH_FAILED);
    EXPECT_TRUE(watch.rows.empty()) << "nothing to run";
}

TEST_F(ParallelTexts, OfNoTokensAreEmpty)
{
    for (const Text &t : generate({some(9, 1), some(40, 2)}, 2, 0)) {
        EXPECT_TRUE(t.ids.empty());
        EXPECT_EQ(t.finish, XM_FINISH_LENGTH);
    }
    for (const Text &t : generate({some(9, 1)}, 2, 0, 3))
        EXPECT_TRUE(t.ids.empty());
}

/* Dense weights are read once a step for any number of rows; two texts read more experts than
 * one. */
TEST_F(ParallelTexts, WeightBytesAreThoseOfASteps)
{
    generate({some(9, 1)}, 1, 5);
    const uint64_t one = times.decode_weight_bytes, tokens = times.decode_tokens;
    make("0");
    generate({some(9, 1), some(9, 2)}, 2, 5);
    EXPECT_EQ(times.decode_tokens, 2 * tokens);
    EXPECT_GT(times.decode_weight_bytes, one);
    EXPECT_LT(times.decode_weight_bytes, one + one * 3 / 4);
}

/* Forks of one prompt share its pages. When there is no room for the pages of their own, the
 * newest wait. */
TEST_F(ParallelTexts, ForksWaitToo)
{
    const std::vector<Ids> prompt = {some(200, 1)};
    const auto want = generate(prompt, 4, 120, 6);
    make("1");
    const auto got = generate(prompt, 4, 120, 6);
    expect_same(got, want);
    EXPECT_NE(want[0].ids, want[1].ids);
    EXPECT_LT(stats().pages * 16, 200u + 4 * 120);
}

/* The longest texts are announced to the pool, so that it makes no slab larger than they need. */
TEST_F(ParallelTexts, TheCacheTakesWhatTheLongestTextsTake)
{
    const std::vector<Ids> prompts = {some(40, 1), some(90, 2), some(16, 3), some(70, 4)};
    generate(prompts, 2, 10);
    EXPECT_EQ(stats().pages, (90u + 10 + 15) / 16 + (70 + 10 + 15) / 16);
    make("0");
    generate({some(40, 1)}, 3, 8, 3);
    EXPECT_EQ(stats().pages, 3u + 2 + 1)
        << "two whole pages are everybody's; a page is there until all have left it";
}

/* A caller's end tokens and least length work as in a session, because the same functions choose.
 */
TEST_F(ParallelTexts, EndsAndTheLeastLengthAreTheCallers)
{
    const std::vector<Ids> prompts = {some(5, 1), some(7, 2)};
    const std::vector<Text> free = generate(prompts, 2, 6);
    const int32_t first = free[0].ids[0];
    xm_generation_clock clock = {};
    each.ends = &first;
    each.n_ends = 1;
    each.has_ends = each.wants_log_probs = true;
    each.clock = &clock;
    Text ended = generate(prompts, 2, 6)[0];
    EXPECT_EQ(ended.ids, Ids());
    EXPECT_EQ(ended.finish, XM_FINISH_STOP);
    EXPECT_EQ(clock.runs.n, watch.rows.size());
    each.min_tokens = 2;
    ended = generate(prompts, 2, 6)[0];
    EXPECT_GE(ended.ids.size(), 2u);
    EXPECT_NE(ended.ids[0], first);
    xm_generation_clock_free(&clock);
}

TEST_F(ParallelTexts, CancelledTextsHaveWhatTheyHad)
{
    std::vector<Ids> prompts;
    for (uint32_t i = 0; i < 6; i++)
        prompts.push_back(some(130, i));
    const auto want = one_by_one(prompts, 60);
    make("1");
    struct Stop {
        xm_infer *request;
        std::vector<size_t> texts;
    } stop = {xm_scheduler_request(p), {}};
    std::vector<xm_token_list> lists;
    for (const Ids &ids : prompts)
        lists.push_back({const_cast<int32_t *>(ids.data()), ids.size(), ids.size()});
    xm_parallel_run asked = {};
    asked.prompts = lists.data();
    asked.n_prompts = asked.n_texts = asked.slots = lists.size();
    asked.each.max_tokens = 60;
    asked.sampling.top_p = 1.0f;
    asked.ctx = &stop;
    asked.on_text = [](size_t text, void *ctx) {
        Stop *s = static_cast<Stop *>(ctx);
        s->texts.push_back(text);
        s->request->ops->cancel(s->request);
    };
    std::vector<xm_generation_result> out(asked.n_texts);
    EXPECT_XM_OK(xm_parallel_generate(p, &asked, out.data(), &times, &err));
    EXPECT_EQ(stop.texts.size(), 6u);
    for (size_t i = 0; i < out.size(); i++) {
        ASSERT_LE(out[i].ids.n, want[i].ids.size());
        EXPECT_EQ(out[i].finish, i ? XM_FINISH_CANCELLED : XM_FINISH_LENGTH);
        for (size_t k = 0; k < out[i].ids.n; k++)
            EXPECT_EQ(out[i].ids.ids[k], want[i].ids[k]) << "text " << i;
        xm_generation_result_free(&out[i]);
    }
    EXPECT_EQ(stats().used, 0u);
}

/* Runs with a device that chooses tokens: texts of several lengths, more than there are slots,
 * some with equal prompts. */
class ParallelAhead : public ParallelTexts
{
  protected:
    void TearDown() override
    {
        is_ahead = false;
        unsetenv("XM_FORCE");
        ParallelTexts::TearDown();
    }
    void restart(bool ahead, const char *mib = "0")
    {
        is_ahead = ahead;
        make(mib);
    }
};

TEST_F(ParallelAhead, TheDeviceChoosesTheHostsTokens)
{
    std::vector<Ids> prompts;
    for (uint32_t i = 0; i < 11; i++)
        prompts.push_back(some(3 + 7 * i % 40, i));
    Ids ends; /* ids at which a text ends late, for some texts */
    for (const Text &t : generate(prompts, 4, 40)) {
        size_t last = 0;
        for (size_t i = 0; i < t.ids.size(); i++)
            last =
                std::find(t.ids.begin(), t.ids.end(), t.ids[i]) - t.ids.begin() == (long)i
                    ? i
                    : last;
        if (last > 8 && ends.size() < 3)
            ends.push_back(t.ids[last]);
    }
    ASSERT_GT(ends.size(), 0u);
    for (const char *mib : {"0", "1"})
        for (const size_t slots : {2, 4, 9}) {
            SCOPED_TRACE(std::string(mib) + " MiB, slots " + std::to_string(slots));
            each.ends = ends.data();
            each.n_ends = ends.size();
            each.has_ends = true;
            restart(false, mib);
            const auto want = generate(prompts, slots, 70);
            EXPECT_EQ(watch.chosen, 0u);
            restart(true, mib);
            expect_same(generate(prompts, slots, 70), want);
            EXPECT_GT(watch.chosen, 11u * 10);
            const auto ended = [](const Text &t) { return t.finish == XM_FINISH_STOP; };
            EXPECT_GT(std::count_if(want.begin(), want.end(), ended), 1);
        }
}

TEST_F(ParallelAhead, TheDeviceDrawsTheHostsTokens)
{
    setenv("XM_FORCE", "choose_take=choose_take_gen", 1);
    restart(false);
    const auto want = generate({some(9, 1)}, 4, 40, 6);
    EXPECT_NE(want[0].ids, want[1].ids);
    restart(true);
    expect_same(generate({some(9, 1)}, 4, 40, 6), want);
    EXPECT_GT(watch.chosen, 6u * 20);
}

} // namespace
