/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions over a trained model on the device, on a sequence or on a request's states; models
 * that cannot generate text.
 */
#include <algorithm>

#include "plugin/pipeline/session.h"
#include "plugin/pipeline/token_runner.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

using Ids = std::vector<int32_t>;

const Ids prompt = {1343, 266, 267, 265, 278}, some_other = {9, 8, 7};

/* The parameter: whether the model is compiled for sequences. */
class SessionOnDevice : public OpenClTest, public testing::WithParamInterface<bool>
{
  protected:
    void SetUp() override
    {
        OpenClTest::SetUp();
        ASSERT_XM_OK(xm_core_create(&core, &err));
    }
    void TearDown() override
    {
        drop();
        xm_core_destroy(core);
    }
    void drop()
    {
        xm_session_destroy(s);
        xm_session_destroy(other);
        s = other = nullptr;
        xm_compiled_unref(compiled);
        compiled = nullptr;
        xm_package_close(package);
        package = nullptr;
    }
    void make(const xm_sampling &sampling, const char *ahead = "YES")
    {
        const char *path = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
        xm_graph *g = nullptr;
        const xm_property properties[] = {{"INFERENCE_PRECISION_HINT", "f32"},
                                          {"XM_KV_BLOCK_TOKENS", "16"},
                                          {"XM_UBATCH", "32"},
                                          {"XM_AHEAD", ahead}};
        xm_compile_options options = {};
        options.sampled_logits = GetParam();
        drop();
        ASSERT_XM_OK(xm_package_open(path, &package, &err));
        ASSERT_XM_OK(xm_package_read_graph(package, nullptr, &g, &err));
        ASSERT_XM_OK(
            xm_core_compile(core, g, "GPU", properties, 4, &options, &compiled, &err));
        EXPECT_XM_OK(xm_session_create(compiled, package, &s, &err));
        EXPECT_XM_OK(xm_session_create(compiled, package, &other, &err));
        xm_session_set_sampling(s, &sampling);
        xm_session_set_sampling(other, &sampling);
    }
    Ids run(const Ids &ids, uint64_t max)
    {
        return run_in(s, ids, max);
    }
    Ids run_in(xm_session *session, const Ids &ids, uint64_t max)
    {
        xm_generation asked = {};
        xm_generation_result got = {};
        asked.prompt.kind = XM_PROMPT_IDS;
        asked.prompt.ids = ids.data();
        asked.prompt.n = ids.size();
        asked.max_tokens = max;
        EXPECT_XM_OK(xm_session_run(session, &asked, &got, &err));
        Ids result(got.ids.ids, got.ids.ids + got.ids.n);
        times = got.times;
        finish = got.finish;
        reused = got.reused;
        xm_generation_result_free(&got);
        return result;
    }
    void suppress(int32_t id)
    {
        EXPECT_TRUE(xm_token_list_add(&package->generation.suppressed, id));
    }
    xm_core *core = nullptr;
    xm_package *package = nullptr;
    xm_compiled *compiled = nullptr;
    xm_session *s = nullptr, *other = nullptr; /* two sessions of one compiled model */
    xm_generation_times times = {9, 9, 9, 9, 9, 9, 9};
    xm_finish finish = XM_FINISH_STOP;
    uint64_t reused = 0;
};

xm_sampling
sampling(float temperature, int top_k, float top_p, uint64_t seed)
{
    xm_sampling s = {};
    s.temperature = temperature;
    s.top_k = top_k;
    s.top_p = top_p;
    s.seed = seed;
    return s;
}

xm_sampling
penalties(float temperature, float repetition, float frequency, int last_n, bool only_new)
{
    xm_sampling s = sampling(temperature, 0, 1, 6);
    s.repetition_penalty = repetition;
    s.frequency_penalty = frequency;
    s.presence_penalty = frequency / 2;
    s.last_n = last_n;
    s.only_new = only_new;
    return s;
}

TEST_P(SessionOnDevice, GreedyStopsWhereItIsTold)
{
    make(sampling(0, 0, 1, 0));
    package->generation.n_eos = 0;
    const Ids all = run(prompt, 8);
    ASSERT_EQ(all.size(), 8u);
    EXPECT_EQ(times.prompt_tokens, 5u);
    EXPECT_EQ(times.decode_tokens, 7u);
    EXPECT_EQ(run(prompt, 8), all);
    EXPECT_EQ(reused, 4u);
    EXPECT_EQ(times.prompt_tokens, 1u);
    EXPECT_EQ(run(prompt, 0).size(), 0u);
    size_t at = 3;
    while (std::find(all.begin(), all.begin() + (long)at, all[at]) !=
           all.begin() + (long)at)
        at = (size_t)(std::find(all.begin(), all.end(), all[at]) - all.begin());
    package->generation.eos[package->generation.n_eos++] = all[at];
    EXPECT_EQ(run(prompt, 8), Ids(all.begin(), all.begin() + (long)at));
    EXPECT_EQ(finish, XM_FINISH_STOP);
}

TEST_P(SessionOnDevice, AnswersLongerPromptsAsANewOne)
{
    make(sampling(0, 0, 1, 0));
    Ids longer = prompt;
    for (int32_t id : run(prompt, 6))
        longer.push_back(id);
    longer.push_back(300);
    const Ids again = run(longer, 6);
    EXPECT_EQ(reused, prompt.size() + 5);
    Ids parting = prompt;
    parting[3] = 301;
    const Ids other = run(parting, 6);
    EXPECT_EQ(reused, 3u);
    make(sampling(0, 0, 1, 0));
    EXPECT_EQ(run(longer, 6), again);
    make(sampling(0, 0, 1, 0));
    EXPECT_EQ(run(parting, 6), other);
}

TEST_P(SessionOnDevice, ASeedGivesTheSameText)
{
    make(sampling(1.0f, 40, 0.9f, 7));
    auto first = run(prompt, 6);
    make(sampling(1.0f, 40, 0.9f, 7));
    EXPECT_EQ(run(prompt, 6), first);
}

/* Whether the host or the device chooses, and whatever ends a text: its ids, the positions held
 * and the next text are the same. */
TEST_P(SessionOnDevice, TheDeviceChoosesAsTheHostDoes)
{
    /* forces a kernel, or the host draws */
    setenv("XM_FORCE", "choose_take=choose_take_gen", 1);
    /* the kernel takes long to build */
    setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 1);
    for (const xm_sampling &how :
         {sampling(0, 0, 1, 0), sampling(1.0f, 0, 1, 3), sampling(0.8f, 0, 0.9f, 4),
          sampling(1.2f, 20, 0.95f, 5), penalties(0, 1.3f, 0.1f, 0, false),
          penalties(0, 1.1f, 0.2f, 6, false), penalties(0.9f, 0, 0.5f, 0, true)}) {
        std::vector<Ids> texts[2];
        uint64_t kernels[2];
        for (const bool ahead : {false, true}) {
            make(how, ahead ? "YES" : "NO");
            package->generation.n_eos = 0;
            for (const uint64_t most : {40, 1, 2, 3}) {
                texts[ahead].push_back(run(prompt, most));
                EXPECT_EQ(xm_session_held(s), prompt.size() + most - 1);
                EXPECT_EQ(times.decode_tokens, most - 1);
            }
            package->generation.eos[package->generation.n_eos++] = texts[ahead][0][9];
            texts[ahead].push_back(run(prompt, 40));
            suppress(texts[ahead][0][1]);
            texts[ahead].push_back(run(prompt, 40));
            EXPECT_EQ(xm_session_held(s), prompt.size() + texts[ahead].back().size() -
                                              (finish == XM_FINISH_STOP ? 0 : 1));
            texts[ahead].push_back(run(texts[ahead][0], 6));
            struct xm_request_stats stats;
            xm_infer *r = xm_session_request(s);
            r->ops->stats(r, &stats);
            EXPECT_EQ(stats.waits, 1u);
            kernels[ahead] = stats.kernels;
        }
        EXPECT_EQ(kernels[1] - kernels[0], GetParam() ? 2u : 0u);
        EXPECT_EQ(texts[1], texts[0]) << how.temperature;
    }
    unsetenv("XM_FORCE");
    unsetenv("POCL_EXTRA_BUILD_FLAGS");
}

TEST_P(SessionOnDevice, TextsThatTheirReaderEndsAreHeldAlike)
{
    for (const char *ahead : {"NO", "YES"}) {
        make(sampling(0, 0, 1, 0), ahead);
        package->generation.n_eos = 0;
        for (const uint64_t end : {1, 2, 5, 9}) {
            xm_generation asked = {};
            xm_generation_result got = {};
            uint64_t left = end;
            asked.prompt.kind = XM_PROMPT_IDS;
            asked.prompt.ids = prompt.data();
            asked.prompt.n = prompt.size();
            asked.max_tokens = 30;
            asked.ctx = &left;
            asked.on_piece = [](const xm_piece *piece, void *ctx) {
                return piece->id < 0 || --*static_cast<uint64_t *>(ctx) > 0;
            };
            ASSERT_XM_OK(xm_session_run(s, &asked, &got, &err));
            EXPECT_EQ(got.finish, XM_FINISH_CANCELLED);
            EXPECT_EQ(got.ids.n, end);
            EXPECT_EQ(xm_session_held(s), prompt.size() + end - 1) << ahead;
            xm_generation_result_free(&got);
        }
    }
}

/* Cancels in the callback of a piece: the token that then runs is the last. */
TEST_P(SessionOnDevice, ACancelledTextCanGoOn)
{
    make(sampling(0, 0, 1, 0));
    package->generation.n_eos = 0;
    const Ids whole = run(prompt, 20);
    xm_session_cancel(s);
    EXPECT_TRUE(run(some_other, 20).empty());
    xm_session_resume(s);
    xm_generation asked = {};
    xm_generation_result got = {};
    asked.prompt.kind = XM_PROMPT_IDS;
    asked.prompt.ids = prompt.data();
    asked.prompt.n = prompt.size();
    asked.max_tokens = 20;
    asked.ctx = s;
    asked.on_piece = [](const xm_piece *piece, void *ctx) {
        if (piece->id >= 0)
            xm_session_cancel(static_cast<xm_session *>(ctx));
        return true;
    };
    ASSERT_XM_OK(xm_session_run(s, &asked, &got, &err));
    EXPECT_EQ(got.finish, XM_FINISH_CANCELLED);
    EXPECT_LE(got.ids.n, 2u);
    EXPECT_LE(xm_session_held(s), prompt.size() + got.ids.n);
    xm_generation_result_free(&got);
    xm_session_resume(s);
    EXPECT_EQ(run(prompt, 20), whole);
}

Ids
some(size_t n, uint32_t seed)
{
    Ids ids;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids.push_back((int32_t)((seed >> 8) % 1500));
    }
    return ids;
}

/* Whole pages that another session computed are shared. The text stays the same. */
TEST_P(SessionOnDevice, SharesBeginningsWithOthers)
{
    const Ids system = some(70, 1);
    Ids first = system, second = system;
    first.push_back(7);
    second.push_back(8);
    make(sampling(0, 0, 1, 0));
    const Ids want_second = run(second, 6);
    make(sampling(0, 0, 1, 0));
    const Ids want_first = run(first, 6);
    EXPECT_EQ(reused, 0u);
    EXPECT_EQ(run_in(other, second, 6), want_second);
    EXPECT_EQ(reused, GetParam() ? 64u : 0u);
    EXPECT_EQ(times.prompt_tokens, 71u - reused);
    EXPECT_EQ(run(first, 6), want_first) << "its own positions are still there";
    EXPECT_EQ(reused, 70u);
    const Ids anew = run(some(40, 9), 6);
    EXPECT_EQ(run_in(other, some(40, 9), 6), anew);
    EXPECT_EQ(reused, GetParam() ? 32u : 0u) << "a session that begins anew, too";
}

/* A prompt that is cancelled between its chunks leaves the session as it was before. */
TEST_P(SessionOnDevice, ACancelledPromptLeavesWhatWasHeld)
{
    Ids longer = prompt;
    for (int32_t id : some(100, 3))
        longer.push_back(id);
    make(sampling(0, 0, 1, 0));
    const Ids want = run(longer, 4);
    make(sampling(0, 0, 1, 0));
    run(prompt, 1);
    xm_session_cancel(s);
    EXPECT_TRUE(run(longer, 4).empty());
    EXPECT_EQ(finish, XM_FINISH_CANCELLED);
    xm_session_resume(s);
    EXPECT_EQ(run(longer, 4), want);
    EXPECT_EQ(reused, prompt.size());
}

TEST_P(SessionOnDevice, RefusesModelsOfAnotherKind)
{
    const char *models[] = {R"(
        %0 = parameter f32[N,4] name="x"
        %1 = abs %0
        result %1 name="y")",
                            R"(
        %0 = parameter i64[N,4] name="attention_mask"
        result %0 name="y")",
                            R"(
        %0 = parameter i64[batch,tokens] name="input_ids"
        result %0 name="y")"};
    const char *why[] = {"input 'x' is not an input", "with an input 'input_ids'",
                         "expected f32 logits"};
    for (int i = 0; i < 3; i++) {
        xm_compiled *c = nullptr;
        xm_token_runner *r = nullptr;
        err = {};
        xm_compile_options options = {};
        options.sampled_logits = GetParam();
        ASSERT_XM_OK(xm_core_compile(core, parse(models[i]).release(), "GPU", nullptr, 0,
                                     &options, &c, &err));
        enum xm_status status = xm_token_runner_create(c, &r, &err);
        int32_t id = 1;
        if (status == XM_OK)
            status = xm_token_runner_feed(r, &id, 1, 1, &err);
        EXPECT_EQ(status, XM_UNSUPPORTED);
        EXPECT_NE(strstr(err.text, why[i]), nullptr) << err.text;
        xm_token_runner_destroy(r);
        xm_compiled_unref(c);
    }
}

INSTANTIATE_TEST_SUITE_P(Feeds, SessionOnDevice, testing::Bool(), [](const auto &info) {
    return info.param ? "Sequence" : "Request";
});

} // namespace
