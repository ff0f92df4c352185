/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing kernel variants by timing them, on the fake engine: each launch of a kernel takes the
 * time that the test sets, on a clock that only launches advance.
 */
#include "plugin/bench_kernels/tuner.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "functional_tests/common/folder.h"
#include "plugin/program_util/interrupt.h"
#include "primitives/measured_rows.h"
#include "runtime/driver_files.h"
#include "runtime/fake/fake.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

namespace
{

double now_s;

/* What the test makes a kernel do when it is launched. */
struct Invented {
    double seconds = 100e-6;
    int dies = 0; /* the signal that a launch raises; 0: none */
    int launches = 0;
    bool computes = true; /* whether it writes a result */
    bool is_wrong = false;
};

void
take_time(const xm_fake_launch *launch, void *ctx)
{
    Invented *k = static_cast<Invented *>(ctx);
    for (uint32_t i = 0; i < launch->n_args && k->computes; i++) {
        const xm_arg &arg = launch->args[i];
        if (arg.kind == XM_ARG_BUFFER && arg.name &&
            (strcmp(arg.name, "y") == 0 || strcmp(arg.name, "y0") == 0))
            memset(xm_fake_bytes(launch, i), k->is_wrong ? 0x5b : 1, 8);
    }
    k->launches++;
    if (k->dies) {
        raise(k->dies);
        _exit(3); /* the signal's handler returned */
    }
    now_s += k->seconds;
}

class Tuner : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        now_s = 1;
        xm_clock_replace([] { return now_s; });
        info.kind = XM_DEVICE_GPU;
        info.caps = XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE | XM_CAP_SG_SHORT |
                    XM_CAP_SG_CHAR | XM_CAP_FP16 | XM_CAP_DPAS | XM_CAP_DP4A;
        info.sub_group_sizes[0] = 16;
        info.max_alloc_bytes = 1 << 30;
        info.base_align = 64;
        info.max_work_group = 256;
        info.local_bytes = 1 << 16;
        info.compute_units = 2;
        snprintf(info.name, sizeof(info.name), "fake chip");
        xm_config_init(&config);
        set("CACHE_DIR", folder.path);
        ASSERT_EQ(
            xm_timed_problem_parse_step("linear N=64 K=128 u4 g32 f16", &linear, &err),
            XM_OK)
            << err.text;
        ASSERT_EQ(
            xm_timed_problem_parse_step("linear N=32 K=64 u4 g32 f16", &smaller, &err),
            XM_OK);
        open();
    }
    void TearDown() override
    {
        xm_engine_unref(engine);
        xm_clock_replace(nullptr);
    }
    void set(const char *key, const std::string &value)
    {
        ASSERT_EQ(xm_config_set(&config, key, value.c_str(), &err), XM_OK) << err.text;
    }
    void open()
    {
        xm_engine_unref(engine);
        engine = nullptr;
        ASSERT_EQ(xm_fake_engine_create(&info, &config, &engine, &err), XM_OK)
            << err.text;
        for (auto &[name, kernel] : kernels)
            ASSERT_TRUE(xm_fake_kernel(engine, name.c_str(), take_time, &kernel));
    }
    xm_status run(const xm_timed_problem &p, bool decodes = true, double budget = 1e9)
    {
        tuner = {engine, 0.01, budget, 0, 1e9, true, nullptr, nullptr, nullptr};
        err = {};
        xm_row_trials_open(engine);
        return xm_tuner_run(&tuner, &p, decodes, &err);
    }
    /* Returns the name of the variant that was kept for the problem; "" if none was. */
    std::string kept(const xm_timed_problem &p, const char *step = "linear_few")
    {
        const xm_variant_table *table = xm_timed_table(step);
        const xm_problem_class c = xm_timed_class(&p, false);
        size_t row = 0;
        return xm_measured_row(engine, table, &c, &row) ? table->rows[row].name : "";
    }
    int launches() const
    {
        int n = 0;
        for (const auto &[name, kernel] : kernels)
            n += kernel.launches;
        return n;
    }

    Folder folder{"tuner"};
    xm_device_info info = {};
    xm_config config;
    xm_engine *engine = nullptr;
    xm_tuner tuner = {};
    xm_timed_problem linear, smaller;
    /* the variants of linear_few that this device takes; the dpas and dp4a variants share a
     * kernel */
    std::map<std::string, Invented> kernels = {
        {"linear_gemv_dpas", {}}, {"linear_gemv_sg", {}}, {"linear_gemv_gen", {}},
        {"linear_gemm_dpas", {}}, {"linear_gemm_sg", {}}, {"linear_gemm_gen", {}}};
    xm_error err = {};
};

TEST_F(Tuner, KnowsAllStepsAndTheirFollowers)
{
    size_t n = 0;
    const xm_timed_step *steps = xm_timed_steps(&n);
    ASSERT_GT(n, 0u);
    for (size_t i = 0; i < n; i++) {
        ASSERT_TRUE(xm_timed_table(steps[i].step)) << steps[i].step;
        EXPECT_EQ(steps[i].is_down, strstr(steps[i].step, "down") != nullptr);
        for (const xm_timed_follower &follower : steps[i].followers) {
            const char *step = follower.step;
            EXPECT_TRUE(!step || xm_timed_table(step)) << step;
            EXPECT_EQ(follower.is_down, step && strstr(step, "down"));
        }
    }
    EXPECT_EQ(xm_timed_table("linear"), nullptr);
}

class Planted : public Tuner, public ::testing::WithParamInterface<const char *>
{
};

TEST_P(Planted, RowIsFoundWithinTheBudget)
{
    kernels[GetParam()].seconds = 20e-6;
    ASSERT_EQ(run(linear, true, 2), XM_OK) << err.text;
    EXPECT_EQ(kept(linear).find(GetParam()), 0u) << kept(linear);
    EXPECT_EQ(kept(smaller), "") << "another class";
    EXPECT_LT(tuner.spent, 0.5) << "of 2 s";
}
INSTANTIATE_TEST_SUITE_P(Rows, Planted,
                         ::testing::Values("linear_gemv_sg", "linear_gemv_gen"),
                         [](const auto &p) { return std::string(p.param); });

TEST_F(Tuner, KeepsTheFirstInOrderWhereAllAreEquallyFast)
{
    ASSERT_EQ(run(linear), XM_OK) << err.text;
    EXPECT_EQ(kept(linear), "linear_gemv_dpas");
}

TEST_F(Tuner, PromptsAreStepsOfTheirOwn)
{
    kernels["linear_gemm_gen"].seconds = 1e-6;
    ASSERT_EQ(run(linear, false), XM_OK) << err.text;
    EXPECT_EQ(kept(linear, "linear_long"), "linear_gemm_gen");
    EXPECT_EQ(kept(linear, "linear_many"), "linear_gemm_gen");
    EXPECT_EQ(kept(linear), "");
    EXPECT_EQ(kernels["linear_gemv_gen"].launches, 0);
}

/* A variant that is too slow is launched twice: the first launch does not count, the second shows
 * its time. */
TEST_F(Tuner, HopelessRowsAreCutOff)
{
    kernels["linear_gemv_gen"].seconds = 0.3;
    ASSERT_EQ(run(linear), XM_OK) << err.text;
    EXPECT_EQ(kernels["linear_gemv_gen"].launches, 2);
    EXPECT_GT(kernels["linear_gemv_sg"].launches, 16);
}

TEST_F(Tuner, MeasuresNothingTwice)
{
    kernels["linear_gemv_sg"].seconds = 20e-6;
    ASSERT_EQ(run(linear), XM_OK) << err.text;
    const int before = launches();
    kernels["linear_gemv_sg"].seconds = 1;
    open();
    ASSERT_EQ(run(linear), XM_OK) << err.text;
    EXPECT_EQ(launches(), before);
    EXPECT_EQ(kept(linear), "linear_gemv_sg") << "a choice stays";
    tuner.only_unsettled = false;
    ASSERT_EQ(xm_tuner_run(&tuner, &linear, true, &err), XM_OK) << err.text;
    EXPECT_EQ(kept(linear), "linear_gemv_dpas") << "unless somebody asks for it";
}

TEST_F(Tuner, StopsWhereTheBudgetEnds)
{
    ASSERT_EQ(run(linear, false, 0.1), XM_CANCELLED);
    EXPECT_GT(tuner.spent, 0.1);
    EXPECT_LT(tuner.spent, 0.13) << "one row's measurement, at most, beyond";
    EXPECT_NE(kept(linear, "linear_many"), "");
    EXPECT_EQ(kept(linear, "linear_long"), "");
    for (auto &[name, kernel] : kernels)
        kernel.launches = 0;
    ASSERT_EQ(run(linear, false, 0), XM_CANCELLED);
    EXPECT_EQ(launches(), 0);
    ASSERT_EQ(run(linear, false), XM_OK) << "the rest, beside the next start";
    EXPECT_NE(kept(linear, "linear_long"), "");
}

/* A step that needs more than a whole budget is settled as too long. Otherwise each start would
 * begin it again and never reach the steps after it. */
TEST_F(Tuner, StepsThatNeedMoreThanABudgetDoNotStopTheOthers)
{
    int starts = 1;
    for (; starts < 5 && run(linear, false, 1e-3) == XM_CANCELLED; starts++)
        EXPECT_GT(tuner.spent, 0) << "each start gets further";
    EXPECT_EQ(err.status, XM_OK) << err.text;
    EXPECT_EQ(starts, 2) << "one for each of linear_many and linear_long";
    EXPECT_EQ(kept(linear, "linear_many"), "") << "of half a measurement nothing is kept";
    ASSERT_EQ(run(linear, false), XM_OK);
    EXPECT_EQ(tuner.spent, 0) << "they are settled";
}

/* A step that was stopped by the caller stays unsettled; only the end of the budget settles a
 * step as too long. */
TEST_F(Tuner, StepsThatSomebodyStopsStayUnsettled)
{
    static int left;
    left = 2;
    tuner = {engine, 0.01, 1, 0, 1e9, true, nullptr, nullptr, nullptr};
    tuner.goes_on = [](void *, const xm_tuner_job *, const char *) { return left-- > 0; };
    ASSERT_EQ(xm_tuner_run(&tuner, &linear, true, &err), XM_CANCELLED);
    EXPECT_GT(tuner.spent, 0);
    const xm_problem_class c = xm_timed_class(&linear, false);
    EXPECT_FALSE(xm_measured_row_is_settled(engine, xm_timed_table("linear_few"), &c));
}

TEST_F(Tuner, HasNothingToDoWhereNothingIsKept)
{
    set("CACHE_DIR", "");
    open();
    ASSERT_EQ(run(linear), XM_OK) << err.text;
    EXPECT_EQ(launches(), 0) << "there is no folder";
    set("CACHE_DIR", folder.path);
    set("XM_TUNED_KERNELS", "NO");
    open();
    ASSERT_EQ(run(linear), XM_OK) << err.text;
    EXPECT_EQ(launches(), 0) << "kept rows are not wanted";
}

/* Runs in a child process as another user, because root may write everywhere. */
TEST_F(Tuner, HasNothingToDoWhereTheFolderCanOnlyBeRead)
{
    enum { IS_READ = 40, MEASURES, IS_NOT_READ_ONLY };
    ASSERT_EQ(chmod(folder.path.c_str(), 0555), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        if ((geteuid() == 0 && setuid(65534) != 0) ||
            xm_driver_files_use(folder.path.c_str()) != XM_KEPT_KERNELS_READ)
            _exit(IS_NOT_READ_ONLY);
        _exit(run(linear) == XM_OK && launches() == 0 ? IS_READ : MEASURES);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(chmod(folder.path.c_str(), 0755), 0);
    EXPECT_EQ(WEXITSTATUS(status), IS_READ);
}

TEST_F(Tuner, StepsWithoutRowsToTimeAreSettled)
{
    /* hides the warnings about kernels that do not build */
    xm_log_set_level(XM_LOG_NONE);
    for (const char *name :
         {"linear_gemv_dpas", "linear_gemv_sg", "linear_gemv_gen", "linear_ref"})
        ASSERT_TRUE(xm_fake_refuse_build(engine, name));
    ASSERT_EQ(run(linear), XM_OK) << err.text;
    EXPECT_EQ(kept(linear), "");
    const xm_problem_class c = xm_timed_class(&linear, false);
    EXPECT_TRUE(xm_measured_row_is_settled(engine, xm_timed_table("linear_few"), &c));
    EXPECT_FALSE(xm_measured_row_is_settled(engine, xm_timed_table("linear_many"), &c));
    xm_log_set_level(XM_LOG_WARNING);
}

TEST_F(Tuner, NoticesTimesThatMeanNothing)
{
    for (auto &[name, kernel] : kernels)
        kernel.computes = false;
    EXPECT_EQ(run(linear), XM_DEVICE);
    EXPECT_STREQ(err.text, "the device computes nothing, so its times mean nothing");
    EXPECT_EQ(kept(linear), "");
    EXPECT_EQ(launches(), 1) << "nothing more is tried";
}

/* ---- variants that compute wrong results ------------------------------------------------- */

class Wrong : public Tuner
{
  protected:
    void SetUp() override
    {
        kernels["linear_ref"] = {};
        Tuner::SetUp();
        xm_log_set_level(XM_LOG_ERROR);
    }
    void TearDown() override
    {
        xm_log_set_level(XM_LOG_WARNING);
        Tuner::TearDown();
    }
    /* The names of the kernels whose rows are noted as wrong. */
    std::set<std::string> noted(const char *step)
    {
        const xm_variant_table *table = xm_timed_table(step);
        xm_pick pick = {};
        std::set<std::string> names;
        pick.table = table;
        EXPECT_EQ(xm_variant_prepare(&pick, engine, &err), XM_OK);
        for (size_t i = 0; i < table->n; i++) {
            EXPECT_EQ(xm_row_is_wrong(engine, table, i), (pick.wrong >> i & 1) == 1);
            if (pick.wrong >> i & 1)
                names.insert(table->rows[i].kernel ? table->rows[i].kernel
                                                   : table->rows[i].name);
        }
        return names;
    }
};

TEST_F(Wrong, RowsAreNotedAndNotKeptThoughTheyAreFast)
{
    kernels["linear_gemv_sg"].is_wrong = true;
    kernels["linear_gemv_sg"].seconds = 1e-6;
    ASSERT_EQ(run(linear), XM_OK) << err.text;
    EXPECT_NE(kept(linear).find("linear_gemv_sg"), 0u);
    EXPECT_NE(kept(linear), "");
    EXPECT_EQ(noted("linear_few"), std::set<std::string>{"linear_gemv_sg"});
    EXPECT_EQ(noted("linear_many"), std::set<std::string>());
}

/* Prompts are compared with the first row, and with the reference only when rows disagree. */
TEST_F(Wrong, FirstRowsOfPromptsAreFoundByTheReference)
{
    ASSERT_EQ(run(linear, false), XM_OK) << err.text;
    EXPECT_EQ(kernels["linear_ref"].launches, 0);
    kernels["linear_gemm_dpas"].is_wrong = true;
    ASSERT_EQ(run(smaller, false), XM_OK) << err.text;
    EXPECT_GT(kernels["linear_ref"].launches, 0);
    EXPECT_EQ(noted("linear_many"), std::set<std::string>{"linear_gemm_dpas"});
    EXPECT_NE(kept(smaller, "linear_many").find("linear_gemm_dpas"), 0u);
}

TEST_F(Wrong, AllRowsLeaveTheReference)
{
    for (auto &[name, kernel] : kernels)
        kernel.is_wrong = name != "linear_ref";
    ASSERT_EQ(run(linear), XM_OK) << err.text;
    EXPECT_EQ(kept(linear), "linear_ref");
}

TEST_F(Wrong, RowsThatWriteNothingAreNotedIfTheReferenceWrites)
{
    for (const bool decodes : {true, false}) {
        const char *const kernel = decodes ? "linear_gemv_dpas" : "linear_gemm_dpas";
        const char *const step = decodes ? "linear_few" : "linear_many";
        kernels[kernel].computes = false;
        ASSERT_EQ(run(linear, decodes), XM_OK) << err.text;
        EXPECT_EQ(noted(step), std::set<std::string>{kernel});
        EXPECT_NE(kept(linear, step), "");
    }
}

TEST_F(Wrong, RowsAreNeverTimedAgainAndTheUserIsToldOnce)
{
    static int told;
    told = 0;
    kernels["linear_gemv_gen"].is_wrong = true;
    for (const xm_timed_problem *p : {&linear, &smaller}) {
        tuner = {engine, 0.01, 1e9, 0, 1e9, true, nullptr, nullptr, nullptr, nullptr};
        tuner.wrong = [](void *, const char *sentence) {
            told++;
            EXPECT_NE(std::string(sentence).find("'linear_gemv_gen'"), std::string::npos);
        };
        ASSERT_EQ(xm_tuner_run(&tuner, p, true, &err), XM_OK) << err.text;
    }
    EXPECT_EQ(told, 1);
    const int launched = kernels["linear_gemv_gen"].launches;
    ASSERT_EQ(run(linear), XM_OK);
    EXPECT_EQ(kernels["linear_gemv_gen"].launches, launched);
}

/* Nobody is blamed if the reference computes nothing. */
TEST_F(Wrong, NobodyIsNotedWithoutAReference)
{
    kernels["linear_ref"].computes = false;
    kernels["linear_gemm_gen"].is_wrong = true;
    ASSERT_EQ(run(linear, false), XM_OK) << err.text;
    EXPECT_EQ(noted("linear_many"), std::set<std::string>());
}

/* ---- variants that end their process --------------------------------------------------------- */

class Dying : public Tuner
{
  protected:
    /* Runs the tuner in a child process and expects that it does not end normally. */
    void run_elsewhere()
    {
        const pid_t pid = fork();
        if (pid == 0) {
            xm_cli_watch_interrupt();
            run(linear);
            _exit(0);
        }
        int status = 0;
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        ASSERT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
};

class DyingOf : public Dying, public ::testing::WithParamInterface<int>
{
};

TEST_P(DyingOf, AreNeverTimedAgain)
{
    kernels["linear_gemv_sg"] = {1e-6, GetParam()};
    run_elsewhere();
    kernels["linear_gemv_sg"].dies = 0; /* it would now be the fastest */
    ASSERT_EQ(run(linear), XM_OK) << err.text;
    EXPECT_EQ(kept(linear), "linear_gemv_dpas");
    ASSERT_EQ(run(smaller), XM_OK) << err.text;
    EXPECT_EQ(kept(smaller), "linear_gemv_dpas") << "nor in another class";
    EXPECT_EQ(kernels["linear_gemv_sg"].launches, 0);
}

/* SIGKILL stands for a crash, SIGALRM for the alarm that ends a process whose variant hangs. */
INSTANTIATE_TEST_SUITE_P(Signals, DyingOf, ::testing::Values(SIGKILL, SIGALRM));

TEST_F(Dying, OfSomebodysSignalAreNotToBlame)
{
    kernels["linear_gemv_sg"] = {1e-6, SIGTERM};
    run_elsewhere();
    kernels["linear_gemv_sg"].dies = 0;
    ASSERT_EQ(run(linear), XM_OK) << err.text;
    EXPECT_EQ(kept(linear), "linear_gemv_sg");
}

TEST_F(Dying, LeaveNoNoteWhenTheyHaveEnded)
{
    ASSERT_EQ(run(linear), XM_OK) << err.text;
    xm_row_trials_open(engine);
    const xm_variant_table *table = xm_timed_table("linear_few");
    for (size_t i = 0; i < table->n; i++)
        EXPECT_FALSE(xm_row_trial_is_lost(engine, table, i)) << table->rows[i].name;
}

/* ---- building -------------------------------------------------------------------------------- */

TEST_F(Tuner, BuildsAllThatItTimesAndTakesNoMemory)
{
    tuner = {engine, 0.01, 1, 0, 1e9, true, nullptr, nullptr, nullptr};
    ASSERT_EQ(xm_tuner_build(&tuner, &linear, true, &err), XM_OK) << err.text;
    ASSERT_EQ(xm_tuner_build(&tuner, &linear, false, &err), XM_OK) << err.text;
    xm_memory_stats memory;
    xm_engine_memory_stats(engine, &memory);
    EXPECT_EQ(memory.allocations, 0u);
    EXPECT_EQ(launches(), 0);
    const uint64_t built = xm_fake_calls(engine, XM_FAKE_KERNEL);
    EXPECT_GE(built, 6u);
    ASSERT_EQ(run(linear), XM_OK) << err.text;
    ASSERT_EQ(run(linear, false), XM_OK) << err.text;
    EXPECT_EQ(xm_fake_calls(engine, XM_FAKE_KERNEL), built);
}

TEST_F(Tuner, EndsBuildingWhenItIsTold)
{
    static int left;
    left = 2;
    tuner = {engine,
             0.01,
             1,
             0,
             1e9,
             true,
             [](void *, const xm_tuner_job *, const char *) { return left-- > 0; },
             nullptr,
             nullptr};
    EXPECT_EQ(xm_tuner_build(&tuner, &linear, true, &err), XM_CANCELLED);
    EXPECT_EQ(left, -1);
    EXPECT_EQ(getenv("XM_FORCE"), nullptr);
    EXPECT_GT(xm_tuner_candidates(&tuner, &linear), 3u);
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct Reduction {
    const char *name, *line;
    double most;
    uint64_t experts, tokens;
};

class Reduced : public ::testing::TestWithParam<Reduction>
{
};

/* An expert of H=64, I=64 in f16 has 3 x 64 x 64 x 2 = 24576 bytes. */
TEST_P(Reduced, ExpertsFitIntoTheMemory)
{
    xm_timed_problem p;
    xm_error err = {};
    ASSERT_EQ(xm_timed_problem_parse(GetParam().line, &p, &err), XM_OK) << err.text;
    const xm_timed_problem whole = p;
    xm_tuner_reduce(&p, GetParam().most);
    EXPECT_EQ(p.experts, GetParam().experts);
    EXPECT_EQ(p.tokens, GetParam().tokens);
    EXPECT_EQ(p.hidden, whole.hidden);
    EXPECT_EQ(p.rows, whole.rows);
}
const Reduction reductions[] = {
    {"AllFit", "moe E=8 K=2 H=64 I=64 T=512 f16 f16", 8 * 24576, 8, 512},
    {"OneTooMany", "moe E=8 K=2 H=64 I=64 T=512 f16 f16", 8 * 24576 - 1, 7, 448},
    {"OfOneToken", "moe E=32 K=2 H=64 I=64 T=1 f16 f16", 16 * 24576, 16, 1},
    {"TwoTokensChooseAsMany", "moe E=8 K=2 H=64 I=64 T=512 f16 f16", 1, 4, 256},
    {"FewAnyway", "moe E=3 K=2 H=64 I=64 T=512 f16 f16", 1, 3, 512},
    {"NoExperts", "linear N=64 K=64 T=512 f16 f16", 1, 0, 512},
};
INSTANTIATE_TEST_SUITE_P(Problems, Reduced, ::testing::ValuesIn(reductions),
                         [](const auto &p) { return std::string(p.param.name); });

TEST_F(Tuner, FewerExpertsAreTimedThanTheChoiceIsKeptFor)
{
    static std::vector<xm_tuner_job> jobs;
    xm_timed_problem moe;
    jobs.clear();
    ASSERT_EQ(xm_timed_problem_parse_step("moe E=8 K=2 H=64 I=64 f16 f16", &moe, &err),
              XM_OK);
    tuner = {engine, 0.01, 1, 0, 4 * 24576, true, nullptr, nullptr, nullptr};
    tuner.goes_on = [](void *, const xm_tuner_job *job, const char *) {
        jobs.push_back(*job);
        return true;
    };
    ASSERT_EQ(xm_tuner_build(&tuner, &moe, false, &err), XM_OK) << err.text;
    ASSERT_FALSE(jobs.empty());
    for (const xm_tuner_job &job : jobs) {
        EXPECT_EQ(job.timed.experts, 4u);
        EXPECT_EQ(job.timed.tokens, 256u);
        EXPECT_EQ(job.problem.experts, 8u);
        EXPECT_EQ(job.problem.tokens, 512u);
    }
}

/* ---- two processes --------------------------------------------------------------------------- */

TEST_F(Tuner, IsOneProcessAtATime)
{
    xm_tuner_lock first = {-1, false}, second = {-1, false};
    ASSERT_TRUE(xm_tuner_try_lock(folder.path.c_str(), &first));
    EXPECT_FALSE(xm_tuner_try_lock(folder.path.c_str(), &second));
    EXPECT_EQ(second.file, -1);
    EXPECT_TRUE(second.is_taken);
    xm_tuner_unlock(&first);
    ASSERT_TRUE(xm_tuner_wait_lock(folder.path.c_str(), &second));
    EXPECT_FALSE(xm_tuner_try_lock(folder.path.c_str(), &first));
    xm_tuner_unlock(&second);
    for (const char *none : {"", "/proc/none"}) {
        EXPECT_FALSE(xm_tuner_try_lock(none, &first)) << none;
        EXPECT_FALSE(first.is_taken) << none;
    }
}

} // namespace
