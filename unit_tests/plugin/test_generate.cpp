/* SPDX-License-Identifier: Apache-2.0
 *
 * What a generation's times mean: a clock of the test's own, and an engine that builds kernels in
 * the middle of runs. And which tokens penalties see.
 */
#include "plugin/generate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plugin/program.h"
#include "runtime/fake/fake.h"
#include "runtime/util/clock.h"

namespace
{

constexpr double run_s = 2.0, build_s = 100.0;

double now_s;
int runs, built_until; /* runs with a number below that build a kernel */
xm_engine *engine;
uint64_t held, fed; /* tokens in the states, and of the run to come */
bool fails;         /* the next run, which then keeps nothing          */

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
set_input(xm_infer *, uint32_t, const xm_host_tensor *t, xm_error *)
{
    fed = static_cast<uint64_t>(t->dim[1]);
    return XM_OK;
}

xm_status
infer(xm_infer *, xm_error *err)
{
    now_s += run_s;
    if (fails) {
        held = 0;
        return xm_fail(err, XM_CANCELLED, "cancelled");
    }
    held += fed;
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
    return held;
}

void
reset(xm_infer *)
{
    held = 0;
}

void
truncate_states(xm_infer *, uint64_t to)
{
    held = to;
}

void
destroy_infer(xm_infer *r)
{
    delete r;
}

xm_infer_ops infer_ops = [] {
    xm_infer_ops ops = {};
    ops.set_input = set_input;
    ops.infer = infer;
    ops.output = output;
    ops.reset = reset;
    ops.truncate = truncate_states;
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

const xm_compiled_ops compiled_ops = {create_request, nullptr, nullptr, nullptr,
                                      destroy_compiled};

/* What a generator needs of a model. */
struct Model {
    Model()
    {
        input.name = name;
        input.names = names;
        input.n_names = 1;
        input.type.element = XM_I64;
        compiled.ops = &compiled_ops;
        compiled.refs = 1;
        compiled.inputs = &input;
        compiled.n_inputs = 1;
        compiled.outputs = &result;
        compiled.n_outputs = 1;
        held = 0;
        runs = built_until = 0;
        fails = false;
    }

    char name[10] = "input_ids", *names[1] = {name};
    xm_port input = {}, result = {};
    xm_compiled compiled = {};
};

/* A prompt of three tokens and three tokens after the first. */
xm_generation_times
generate(int n_builds)
{
    xm_error err = {};
    xm_device_info info = {};
    xm_generation_times times = {};
    EXPECT_EQ(xm_fake_engine_create(&info, nullptr, &engine, &err), XM_OK) << err.text;
    xm_program program = {};
    program.engine = engine;
    Model model;
    model.compiled.program = &program;
    now_s = 1000.0;
    built_until = n_builds;
    const int32_t prompt[] = {1, 2, 3};
    xm_generation run = {};
    run.prompt = prompt;
    run.n_prompt = 3;
    run.max_tokens = 4;
    xm_sampling sampling = {};
    xm_generator *g = nullptr;
    xm_token_list ids = {};
    xm_clock_replace(test_clock);
    xm_build_watch(take_time, nullptr);
    EXPECT_EQ(xm_generator_create(&model.compiled, &sampling, &g, &err), XM_OK)
        << err.text;
    EXPECT_EQ(xm_generator_run(g, &run, &ids, &times, &err), XM_OK) << err.text;
    EXPECT_EQ(ids.n, 4u);
    xm_build_watch(nullptr, nullptr);
    xm_clock_replace(nullptr);
    xm_generator_destroy(g);
    xm_token_list_free(&ids);
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

TEST(GenerationTimes, BuildingCountsForItself)
{
    xm_generation_times t = generate(1); /* in the prompt */
    EXPECT_NEAR(t.prompt_s, run_s, 1e-6);
    EXPECT_NEAR(t.build_s, build_s, 1e-6);
    t = generate(3); /* and in two tokens */
    EXPECT_NEAR(t.prompt_s, run_s, 1e-6);
    EXPECT_NEAR(t.decode_s, 3 * run_s, 1e-6);
    EXPECT_NEAR(t.build_s, 3 * build_s, 1e-6);
}

/* ---- penalties ---------------------------------------------------------------------- */

/* The likeliest token is 1; the one that is chosen when 1 has occurred is 0. */
class Penalties : public testing::Test
{
  protected:
    void SetUp() override
    {
        xm_sampling sampling = {};
        sampling.presence_penalty = 5;
        infer_ops.truncate = truncate_states;
        ASSERT_EQ(xm_generator_create(&model.compiled, &sampling, &g, &err), XM_OK);
    }

    void TearDown() override
    {
        xm_generator_destroy(g);
    }

    xm_status feed(const std::vector<int32_t> &ids)
    {
        xm_error why = {};
        return xm_generator_feed(g, ids.data(), ids.size(), &why);
    }

    int32_t next()
    {
        int32_t id = -1;
        EXPECT_EQ(xm_generator_sample(g, &id, &err), XM_OK) << err.text;
        return id;
    }

    Model model;
    xm_generator *g = nullptr;
    xm_error err = {};
};

TEST_F(Penalties, ForgetWhatIsTakenBack)
{
    ASSERT_EQ(feed({3, 2, 1}), XM_OK);
    EXPECT_EQ(next(), 0);
    xm_generator_rewind(g, 2);
    EXPECT_EQ(xm_generator_sample(g, nullptr, &err), XM_INVALID); /* its logits, too */
    err = {};
    ASSERT_EQ(feed({3}), XM_OK);
    EXPECT_EQ(next(), 1);
    ASSERT_EQ(feed({1}), XM_OK);
    xm_generator_rewind(g, 4); /* nothing lies behind it */
    EXPECT_EQ(next(), 0);
    xm_generator_reset(g);
    ASSERT_EQ(feed({3}), XM_OK);
    EXPECT_EQ(next(), 1);
}

/* Where states cannot be cut all is forgotten, and the caller feeds everything again. */
TEST_F(Penalties, ForgetAllWhereStatesCannotBeCut)
{
    infer_ops.truncate = nullptr;
    ASSERT_EQ(feed({1, 2, 3}), XM_OK);
    xm_generator_rewind(g, 2);
    EXPECT_EQ(held, 0u);
    ASSERT_EQ(feed({2, 3}), XM_OK);
    EXPECT_EQ(next(), 1);
}

/* States on the host are empty after a run that failed. */
TEST_F(Penalties, ForgetWhatAFailedRunHasLost)
{
    ASSERT_EQ(feed({1, 2}), XM_OK);
    fails = true;
    EXPECT_EQ(feed({3}), XM_CANCELLED);
    fails = false;
    ASSERT_EQ(feed({2, 3}), XM_OK);
    EXPECT_EQ(next(), 1);
}

} // namespace
