/* SPDX-License-Identifier: Apache-2.0
 *
 * The profile of a request's steps: times, and the amount of work.
 */
#include <malloc.h>

#include <set>

#include "plugin/gpu/request_profile.h"
#include "plugin/lower/step_work.h"
#include "runtime/fake/fake.h"
#include "runtime/util/clock.h"
#include "unit_tests/plugin/language_model.h"
#include "unit_tests/plugin/r0_graph.h"

namespace
{

const Properties in_f32 = {{"INFERENCE_PRECISION_HINT", "f32"},
                           {"KV_CACHE_PRECISION", "f32"},
                           {"PERF_COUNT", "YES"}};

struct Row {
    uint32_t step;
    std::string kind, op, kernel;
    uint64_t step_runs, runs, ns, bytes, multiply_adds;
};

void
add_row(void *ctx, const xm_profile_row *r)
{
    static_cast<std::vector<Row> *>(ctx)->push_back({r->step, r->kind, r->op, r->kernel,
                                                     r->step_runs, r->runs, r->ns,
                                                     r->bytes, r->multiply_adds});
}

class Profile : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        const xm_device_info *infos = nullptr;
        size_t n = 0;
        xm_config config;
        xm_config_init(&config);
        ASSERT_XM_OK(xm_config_set(&config, "PERF_COUNT", "YES", &err));
        ASSERT_XM_OK(xm_engine_list(&infos, &n, &err));
        if (n == 0)
            GTEST_SKIP() << "no OpenCL device";
        ASSERT_XM_OK(xm_engine_create(0, &config, &engine, &err));
    }
    void TearDown() override
    {
        xm_engine_unref(engine);
    }
    std::vector<Row> rows(xm_request *r)
    {
        std::vector<Row> list;
        EXPECT_XM_OK(xm_request_profile(r, add_row, &list, &err));
        return list;
    }
    static void feed(xm_request *r, int64_t tokens)
    {
        ASSERT_TRUE(logits(r, {{some_ids(tokens, 1, 64)}}));
    }

    xm_engine *engine = nullptr;
    xm_error err = {};
};

uint64_t
sum(const std::vector<Row> &rows, uint64_t Row::*what, const std::string &op = "")
{
    uint64_t n = 0;
    for (const Row &r : rows)
        n += op.empty() || r.op == op ? r.*what : 0;
    return n;
}

/* Computed by hand: three weights of 32x32, 16x32 and 64x32, and rows of an embedding; two heads
 * of size 16 that share one head of the cache. */
const uint64_t per_token = (32 + 16 + 64) * 32, per_key = 2 * (16 + 16);

TEST_F(Profile, TellsWhatEachStepHadToDo)
{
    Program p = must_compile(engine, parse(small_model()), in_f32);
    Request r = make_request(p.get());
    feed(r.get(), 3);
    std::vector<Row> list = rows(r.get());
    EXPECT_EQ(sum(list, &Row::multiply_adds), 3 * per_token + (1 + 2 + 3) * per_key);
    EXPECT_EQ(sum(list, &Row::multiply_adds, "attention"), 6 * per_key);
    /* K and V of 3 positions, written and read; q, k, v and the result. */
    EXPECT_EQ(sum(list, &Row::bytes, "attention"),
              2 * 3 * (16 + 16) * 4u + 3 * (32 + 16 + 16 + 32) * 4u);
    /* 3 rows of the table, 3 ids, 3 rows of the result. */
    EXPECT_EQ(sum(list, &Row::bytes, "gather"), 3 * (128 + 8 + 128u));
    xm_request_reset_profile(r.get());
    feed(r.get(), 1);
    list = rows(r.get());
    EXPECT_EQ(sum(list, &Row::multiply_adds), per_token + 4 * per_key);
    EXPECT_EQ(sum(list, &Row::bytes, "attention"),
              (4 + 1) * (16 + 16) * 4u + (32 + 16 + 16 + 32) * 4u);
    feed(r.get(), 1);
    EXPECT_EQ(sum(rows(r.get()), &Row::multiply_adds), 2 * per_token + 9 * per_key)
        << "of all runs since the reset";
}

TEST_F(Profile, HasARowForEveryStepAndAllOfTheTime)
{
    Program p = must_compile(engine, parse(small_model()), in_f32);
    Request r = make_request(p.get());
    for (const Row &row : rows(r.get())) {
        EXPECT_EQ(row.step_runs, 0u) << row.op;
        EXPECT_EQ(row.kernel, "") << row.op;
    }
    feed(r.get(), 5);
    feed(r.get(), 1);
    std::set<uint32_t> steps;
    uint32_t last = 0;
    for (const Row &row : rows(r.get())) {
        EXPECT_GE(row.step, last) << "in the order of steps";
        last = row.step;
        if (row.step == XM_PROFILE_NO_STEP)
            continue;
        steps.insert(row.step);
        EXPECT_EQ(row.step_runs, 2u) << row.op;
        EXPECT_GT(row.runs, 0u) << row.op;
        EXPECT_GT(row.ns, 0u) << row.op << " " << row.kernel;
        EXPECT_EQ(row.op, p->steps[row.step].op);
    }
    EXPECT_EQ(steps.size(), p->n_steps);
    xm_request_reset_profile(r.get());
    EXPECT_EQ(sum(rows(r.get()), &Row::ns), 0u);
    EXPECT_EQ(sum(rows(r.get()), &Row::step_runs), 0u);
}

void
add_trace(void *ctx, const xm_trace_row *row)
{
    static_cast<std::vector<xm_trace_row> *>(ctx)->push_back(*row);
}

TEST_F(Profile, TraceAndSumsAgree)
{
    Program p = must_compile(engine, parse(small_model()), in_f32);
    Request r = make_request(p.get());
    std::vector<xm_trace_row> trace;
    std::map<std::pair<uint32_t, std::string>, uint64_t> ns;
    uint64_t dropped;
    ASSERT_XM_OK(xm_request_begin_trace(r.get(), &err));
    const double start = xm_now();
    feed(r.get(), 5);
    feed(r.get(), 1);
    const double wall = xm_now() - start;
    ASSERT_XM_OK(xm_request_trace(r.get(), add_trace, &trace, &dropped, &err));
    EXPECT_EQ(dropped, 0u);
    uint64_t whole = 0;
    for (const xm_trace_row &t : trace) {
        ns[{t.step, t.kernel}] += t.end - t.start;
        whole += t.end - t.start;
    }
    EXPECT_LE((double)whole, 1e9 * wall);
    for (const Row &row : rows(r.get())) {
        EXPECT_EQ((ns[{row.step, row.kernel}]), row.ns) << row.op << " " << row.kernel;
        whole -= row.ns;
    }
    EXPECT_EQ(whole, 0u);
}

TEST_F(Profile, StepsOnTheHostHaveItsTime)
{
    Program p = must_compile(engine, parse(r0_graph()), in_f32);
    ASSERT_GT(p->n_host_steps, 0u);
    Request r = make_request(p.get());
    must_infer(r.get(),
               {random_tensor(XM_F32, {5, 8}, 3), random_tensor(XM_F32, {5, 4}, 4)});
    uint32_t n = 0;
    for (const Row &row : rows(r.get())) {
        n += row.kind == "host";
        EXPECT_EQ(row.kind == "host", row.kernel == "host reference") << row.op;
        EXPECT_GT(row.ns, 0u) << row.op;
    }
    EXPECT_EQ(n, p->n_host_steps);
}

TEST_F(Profile, OfManyRunsTakesNoMoreMemory)
{
    Program p = must_compile(engine, parse(small_model()), in_f32);
    Request r = make_request(p.get());
    const auto run = [&](int times) {
        for (int i = 0; i < times; i++) {
            xm_request_reset(r.get());
            feed(r.get(), 1 + i % 3);
        }
    };
    run(200);
    const size_t before = mallinfo2().uordblks;
    run(2000);
    EXPECT_LT(mallinfo2().uordblks, before + (128 << 10));
    EXPECT_EQ(rows(r.get())[0].step_runs, 2200u);
}

TEST_F(Profile, IsOfProgramsThatWereCompiledForIt)
{
    Program p = must_compile(engine, parse(small_model()), {});
    Request r = make_request(p.get());
    std::vector<Row> list;
    EXPECT_EQ(xm_request_profile(r.get(), add_row, &list, &err), XM_INVALID);
    EXPECT_STREQ(err.text, "profiling data was not collected: compile the model with "
                           "PERF_COUNT=YES (ov::enable_profiling)");
    EXPECT_EQ(xm_request_begin_trace(r.get(), nullptr), XM_INVALID);
    ASSERT_XM_OK(xm_request_count_work(r.get(), nullptr)); /* without times */
    feed(r.get(), 1);
    EXPECT_GT(xm_request_step_sum(r.get(), 0)->runs, 0u);
    EXPECT_FALSE(xm_request_is_measured(r.get()));
    EXPECT_EQ(xm_request_profile(r.get(), add_row, &list, nullptr), XM_INVALID);
    EXPECT_EQ(xm_request_begin_trace(r.get(), nullptr), XM_INVALID);
    EXPECT_TRUE(list.empty());
}

/* ---- labels ---- */

TEST(ProfileLabels, AreTheStepsThatLaunch)
{
    xm_error err = {};
    xm_engine *engine = nullptr;
    const xm_device_info info = fake_cpu();
    ASSERT_XM_OK(xm_fake_engine_create(&info, nullptr, &engine, &err));
    {
        Program p = must_compile(engine, parse(small_model()), {});
        ASSERT_TRUE(p);
        Request r = make_request(p.get());
        std::vector<Tensor> out;
        size_t n = 0;
        std::set<uint32_t> labels;
        xm_fake_clear_launches(engine);
        ASSERT_XM_OK(
            infer(r.get(), inputs_of(p.get(), {{some_ids(5, 1, 64)}}), out, &err));
        const xm_fake_launch *l = xm_fake_launches(engine, &n);
        for (size_t i = 0; i < n; i++) {
            EXPECT_TRUE(i == 0 || l[i].label >= l[i - 1].label) << l[i].kernel;
            labels.insert(l[i].label);
        }
        EXPECT_EQ(labels.size(), p->n_steps);
        EXPECT_EQ(labels.count(XM_NO_LABEL), 0u);
    }
    xm_engine_unref(engine);
}

/* ---- work ---- */

/* Changes the cost of a step of the small model. */
class StepWork : public Profile
{
  protected:
    void SetUp() override
    {
        Profile::SetUp();
        if (engine)
            program = must_compile(engine, parse(small_model()), in_f32);
    }
    xm_step step_of(const char *op) const
    {
        for (uint32_t i = 0; i < program->n_steps; i++) {
            if (strcmp(program->steps[i].op, op) == 0)
                return program->steps[i];
        }
        ADD_FAILURE() << "no step is " << op;
        return program->steps[0];
    }
    xm_step_work work(const xm_step &s, int64_t tokens, int64_t past = 0) const
    {
        xm_bindings b = {};
        xm_step_work w = {};
        const int32_t past_lens[] = {(int32_t)past}, begins[] = {0, (int32_t)tokens};
        const xm_attention_run a = {1, past_lens, begins, nullptr};
        EXPECT_EQ(xm_bindings_set(&b, "batch", 1, nullptr), XM_OK);
        EXPECT_EQ(xm_bindings_set(&b, "tokens", tokens, nullptr), XM_OK);
        EXPECT_EQ(xm_bindings_set(&b, "past", past, nullptr), XM_OK);
        xm_step_find_work(program.get(), &s, &b,
                          s.kind == XM_STEP_ATTENTION ? &a : nullptr, &w);
        return w;
    }
    Program program{nullptr, xm_program_unref};
};

TEST_F(StepWork, ReadsDenseWeightsOnceAndExpertsUpToAll)
{
    xm_step s = step_of("matmul");
    s.cost.bytes = 1000;
    s.cost.expert_bytes = 800;
    s.cost.all_expert_bytes = 3000;
    s.cost.multiply_adds = 7;
    EXPECT_EQ(work(s, 3).weight_bytes, 200 + 3 * 800u);
    EXPECT_EQ(work(s, 10).weight_bytes, 200 + 3000u);
    EXPECT_EQ(work(s, 10).multiply_adds, 70u);
    EXPECT_EQ(work(s, 0).weight_bytes, 0u);
}

TEST_F(StepWork, AttentionSeesItsWindow)
{
    xm_step s = step_of("attention");
    ASSERT_EQ(s.cost.key_bytes, 128u);
    EXPECT_EQ(work(s, 3, 5).multiply_adds, (6 + 7 + 8) * per_key);
    EXPECT_EQ(work(s, 3, 5).cache_bytes, (8 + 3) * 128u);
    s.cost.window = 2;
    EXPECT_EQ(work(s, 3, 5).multiply_adds, (2 + 2 + 2) * per_key);
    EXPECT_EQ(work(s, 3, 5).cache_bytes, (4 + 3) * 128u);
    EXPECT_EQ(work(s, 1, 0).multiply_adds, per_key);
    s.cost.window = 0;
    s.cost.causal = false;
    EXPECT_EQ(work(s, 3, 5).multiply_adds, (8 + 8 + 8) * per_key);
    std::vector<xm_step_operand> shared(s.operand, s.operand + s.n_operands);
    shared[XM_ATTENTION_K].value = XM_NO_VALUE;
    s.operand = shared.data();
    EXPECT_EQ(work(s, 3, 5).cache_bytes, 8 * 128u) << "another layer has written them";
}

} // namespace
