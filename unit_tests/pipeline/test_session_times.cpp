/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of a generation, with a clock that the test sets and an engine that builds kernels during
 * runs.
 */
#include "plugin/pipeline/session.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/fake/fake.h"
#include "runtime/util/clock.h"

namespace
{

constexpr double run_s = 2.0, build_s = 100.0, show_s = 5.0;

double now_s;
int runs, built_until; /* number of runs so far; runs before built_until build a kernel */
xm_engine *engine;

double
test_clock()
{
    return now_s;
}

void
take_time(void *, const char *, uint64_t, uint64_t)
{
    now_s += build_s;
}

xm_status
set_input(xm_infer *, uint32_t, const xm_host_tensor *, xm_error *)
{
    return XM_OK;
}

xm_status
infer(xm_infer *, xm_error *err)
{
    now_s += run_s;
    if (runs++ >= built_until)
        return XM_OK;
    xm_kernel *kernel = nullptr;
    return xm_engine_kernel(engine, "k", ("-DRUN=" + std::to_string(runs)).c_str(),
                            &kernel, err);
}

xm_status
output(xm_infer *, uint32_t, xm_host_tensor *t, xm_error *)
{
    static float logits[4] = {0, 1, 0, 0};
    *t = {};
    t->element = XM_F32;
    t->rank = 3;
    t->dim[0] = t->dim[1] = 1;
    t->dim[2] = 4;
    t->data = logits;
    t->bytes = sizeof(logits);
    return XM_OK;
}

uint64_t
past(const xm_infer *)
{
    return 0;
}

void
destroy_infer(xm_infer *r)
{
    delete r;
}

const xm_infer_ops infer_ops = [] {
    xm_infer_ops ops = {};
    ops.set_input = set_input;
    ops.infer = infer;
    ops.output = output;
    ops.past = past;
    ops.destroy = destroy_infer;
    return ops;
}();

xm_status
create_request(xm_compiled *, xm_infer **out, xm_error *)
{
    *out = new xm_infer();
    (*out)->ops = &infer_ops;
    return XM_OK;
}

void
destroy_compiled(xm_compiled *)
{
}

void
stats(xm_compiled *, xm_compiled_stats *out)
{
    xm_engine_build_stats(engine, &out->builds);
}

const xm_compiled_ops compiled_ops = [] {
    xm_compiled_ops ops = {};
    ops.create_request = create_request;
    ops.stats = stats;
    ops.destroy = destroy_compiled;
    return ops;
}();

/* A callback that takes time to show a token. */
bool
show(const xm_piece *, void *)
{
    now_s += show_s;
    return true;
}

/* Generates a prompt of three tokens and three tokens after the first. */
xm_generation_times
generate(int n_builds, bool is_shown = false)
{
    xm_error err = {};
    xm_device_info info = {};
    EXPECT_EQ(xm_fake_engine_create(&info, nullptr, &engine, &err), XM_OK) << err.text;
    char name[] = "input_ids";
    char *names[] = {name};
    xm_port input = {}, result = {};
    input.name = name;
    input.names = names;
    input.n_names = 1;
    input.type.element = XM_I64;
    xm_compiled compiled = {};
    compiled.ops = &compiled_ops;
    compiled.refs = 1;
    compiled.ports.inputs = &input;
    compiled.ports.n_inputs = 1;
    compiled.ports.outputs = &result;
    compiled.ports.n_outputs = 1;
    now_s = 1000.0;
    runs = 0;
    built_until = n_builds;
    const int32_t prompt[] = {1, 2, 3};
    xm_generation run = {};
    run.prompt.kind = XM_PROMPT_IDS;
    run.prompt.ids = prompt;
    run.prompt.n = 3;
    run.max_tokens = 4;
    run.on_piece = is_shown ? show : nullptr;
    xm_session *session = nullptr;
    xm_generation_result got = {};
    xm_clock_replace(test_clock);
    xm_build_watch(take_time, nullptr);
    EXPECT_EQ(xm_session_create(&compiled, nullptr, &session, &err), XM_OK) << err.text;
    EXPECT_EQ(xm_session_run(session, &run, &got, &err), XM_OK) << err.text;
    EXPECT_EQ(got.ids.n, 4u);
    const xm_generation_times times = got.times;
    xm_build_watch(nullptr, nullptr);
    xm_clock_replace(nullptr);
    xm_session_destroy(session);
    xm_generation_result_free(&got);
    xm_engine_unref(engine);
    return times;
}

TEST(GenerationTimes, AreThoseOfTheRuns)
{
    xm_generation_times t = generate(0);
    EXPECT_DOUBLE_EQ(t.prompt_s, run_s);
    EXPECT_DOUBLE_EQ(t.decode_s, 3 * run_s);
    EXPECT_DOUBLE_EQ(t.build_s, 0.0);
}

/* The first token counts as prompt time. */
TEST(GenerationTimes, EndWhenTokensHaveBeenPassedOn)
{
    xm_generation_times t = generate(0, true);
    EXPECT_DOUBLE_EQ(t.prompt_s, run_s + show_s);
    EXPECT_DOUBLE_EQ(t.decode_s, 3 * (run_s + show_s));
}

TEST(GenerationTimes, BuildingCountsForItself)
{
    xm_generation_times t = generate(1); /* one build, in the prompt */
    EXPECT_NEAR(t.prompt_s, run_s, 1e-6);
    EXPECT_NEAR(t.build_s, build_s, 1e-6);
    t = generate(3); /* two more builds, in two tokens */
    EXPECT_NEAR(t.prompt_s, run_s, 1e-6);
    EXPECT_NEAR(t.decode_s, 3 * run_s, 1e-6);
    EXPECT_NEAR(t.build_s, 3 * build_s, 1e-6);
}

} // namespace
