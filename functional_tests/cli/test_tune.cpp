/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe tune, and --tune beside a model: the choices that are stored for a model's steps, that
 * later commands use them, and refusals.
 */
#include <sys/file.h>

#include <filesystem>
#include <map>
#include <memory>
#include <regex>
#include <set>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/mistakes.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

namespace
{

const std::string gguf =
    std::string(XM_MODELS_DIR) + "/qwen3moe-tiny/gguf/qwen3moe-tiny-Q4_K_M.gguf";

class Tune : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
    Outcome tune(const Words &more = {})
    {
        Words words = {"tune", gguf, "--seconds", "0.0001", "--cache-dir", folder.path};
        words.insert(words.end(), more.begin(), more.end());
        return run(words);
    }
    Outcome generate(const Words &more = {})
    {
        Words words = {"generate", gguf, "-p",          "hello",
                       "-n",       "8",  "--cache-dir", folder.path};
        words.insert(words.end(), more.begin(), more.end());
        return run(words, {"XM_DEBUG=dispatch"});
    }
    Folder folder{"tune"};
};

TEST_F(Tune, KeepsARowOfEachStepForLaterRuns)
{
    const Outcome before = generate();
    ASSERT_EQ(before.code, 0) << before.err;
    EXPECT_FALSE(contains(before.err, "(measured)"));
    const Outcome o = tune({"--json"});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.err, "");
    const Json json(o.out);
    std::map<std::string, int> kept;
    std::set<std::string> steps;
    const size_t n = yyjson_arr_size(json.at("/results"));
    for (size_t i = 0; i < n; i++) {
        const std::string at = "/results/" + std::to_string(i);
        EXPECT_GT(json.number(at + "/seconds"), 0);
        kept[json.text(at + "/problem")] += yyjson_get_bool(json.at(at + "/kept"));
        steps.insert(json.text(at + "/step"));
    }
    for (const auto &[problem, times] : kept)
        EXPECT_EQ(times, 1) << problem;
    const std::set<std::string> all = {
        "attention_decode", "attention_prompt", "linear_few",       "linear_long",
        "linear_many",      "moe_down",         "moe_gemm_gate_up", "moe_gate_up"};
    EXPECT_EQ(steps, all);
    const Outcome after = generate();
    EXPECT_EQ(after.code, 0) << after.err;
    EXPECT_EQ(after.out, before.out) << "greedy texts do not change";
    for (const std::string &step : all)
        EXPECT_TRUE(std::regex_search(after.err,
                                      std::regex(step + ": [a-z0-9_]+ \\(measured\\)")))
            << step;
    EXPECT_FALSE(contains(generate({"--no-tune"}).err, "(measured)"));
}

/* A driver on which one kernel does nothing. */
TEST_F(Tune, AWrongKernelIsFoundAndPassedOver)
{
    const Settings driver = {"OPENCL_LAYERS=" XM_FAULT_LAYER,
                             "XM_OPENCL_OMIT=linear_gemm_vec"};
    const Outcome o =
        run({"tune", gguf, "--seconds", "0.0001", "--cache-dir", folder.path}, driver);
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(
        contains(o.err, "xemoe: kernel 'linear_gemm_vec' computes wrong results on "))
        << o.err;
    EXPECT_EQ(o.err.find("wrong results"), o.err.rfind("wrong results")) << o.err;
    const Outcome later = run({"generate", gguf, "-p", "hello", "-n", "2", "--no-tune",
                               "--cache-dir", folder.path},
                              {"XM_DEBUG=dispatch"});
    EXPECT_EQ(later.code, 0) << later.err;
    EXPECT_TRUE(contains(later.err, "linear_gemm_vec refused: it computed wrong results"))
        << later.err;
    EXPECT_FALSE(contains(later.err, ": linear_gemm_vec\n")) << later.err;
}

TEST_F(Tune, RefusesDryRuns)
{
    const Outcome o = run({"tune", gguf, "--cache-dir", folder.path}, {"XM_DRY_RUN=1"});
    EXPECT_EQ(o.code, 3) << o.err;
    EXPECT_TRUE(contains(o.err, "times mean nothing")) << o.err;
    EXPECT_EQ(o.out, "");
}

/* Waits until no process measures for the folder any more, so that it can be removed. */
void
wait_for_end(const Folder &folder)
{
    const int lock = open((folder / "tuning.lock").c_str(), O_RDWR);
    if (lock < 0)
        return;
    EXPECT_EQ(flock(lock, LOCK_EX), 0);
    close(lock);
}

/* ---- beside a model -------------------------------------------------------------------------- */

/* The tests share a folder; the first test builds its kernels, and each test deletes the stored
 * choices. */
class BesideAModel : public testing::Test
{
  protected:
    static void SetUpTestSuite()
    {
        shared = std::make_unique<Folder>("beside");
    }
    static void TearDownTestSuite()
    {
        shared.reset();
    }
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
        enum { MOST_OF_A_CHOICE = 256 }; /* in bytes; kernels are larger */
        for (const auto &[name, bytes] : files()) {
            if (bytes < MOST_OF_A_CHOICE)
                std::filesystem::remove(*shared / name);
        }
    }
    Outcome generate(const Words &more = {}, Settings settings = {"XM_DEBUG=dispatch"})
    {
        Words words = {"generate", gguf, "-p",          "hello",
                       "-n",       "8",  "--cache-dir", shared->path};
        words.insert(words.end(), more.begin(), more.end());
        return run(words, settings);
    }
    /* Returns names and sizes of the files in the cache folder. */
    std::map<std::string, uintmax_t> files() const
    {
        std::map<std::string, uintmax_t> found;
        for (const auto &entry : std::filesystem::directory_iterator(shared->path)) {
            if (entry.is_regular_file())
                found[entry.path().filename().string()] = entry.file_size();
        }
        return found;
    }
    bool has_measured() const
    {
        return files().count("tuning.lock") > 0;
    }
    int n_measured(const Outcome &o) const
    {
        const std::regex measured("\\(measured\\)");
        return (int)std::distance(
            std::sregex_iterator(o.err.begin(), o.err.end(), measured), {});
    }
    /* Starts again and again until everything is measured; each start measures for 2 s. */
    Outcome measure_all()
    {
        Outcome o = generate({"--tune"});
        for (int starts = 1; starts < 10 && o.code == 0; starts++) {
            const auto before = files();
            o = generate({"--tune"});
            if (files() == before)
                break;
        }
        return o;
    }
    static std::unique_ptr<Folder> shared;
};
std::unique_ptr<Folder> BesideAModel::shared;

TEST_F(BesideAModel, KernelsAreMeasuredOnceAndTakenByLaterStarts)
{
    const Outcome before = generate();
    ASSERT_EQ(before.code, 0) << before.err;
    EXPECT_FALSE(has_measured()) << "a processor, and no terminal";
    ASSERT_EQ(generate({"--no-tune"}).code, 0);
    EXPECT_FALSE(has_measured());
    const Outcome all = measure_all();
    ASSERT_EQ(all.code, 0) << all.err;
    EXPECT_TRUE(has_measured());
    const auto kept = files();
    const Outcome after = generate({"--tune"});
    ASSERT_EQ(after.code, 0) << after.err;
    EXPECT_EQ(files(), kept) << "a second time nothing is measured";
    EXPECT_EQ(after.out, before.out) << "greedy texts do not change";
    for (const char *step : {"attention_decode", "linear_few", "moe_down", "moe_gate_up",
                             "moe_gemm_gate_up", "linear_long"})
        EXPECT_TRUE(std::regex_search(
            after.err, std::regex(std::string(step) + ": [a-z0-9_]+ \\(measured\\)")))
            << step;
    EXPECT_EQ(n_measured(generate({"--no-tune"})), 0);
    const Outcome chat = run(
        {"chat", gguf, "-n", "4", "--no-history", "--tune", "--cache-dir", shared->path});
    EXPECT_EQ(chat.code, 0) << chat.err;
    EXPECT_EQ(files(), kept);
}

TEST_F(BesideAModel, TwoProcessesAtOnceDoNotDisturbEachOther)
{
    const Words words = {"generate", gguf,     "-p",          "hello",     "-n",
                         "4",        "--tune", "--cache-dir", shared->path};
    Program first(words), second(words);
    const Outcome one = first.finish(), other = second.finish();
    EXPECT_EQ(one.code, 0) << one.err;
    EXPECT_EQ(other.code, 0) << other.err;
    /* The second process reports that another one measures, unless the first has ended. */
    const std::string said = one.err + other.err;
    EXPECT_TRUE(said.empty() || said ==
                                    "xemoe: kernels are not measured (--tune): another "
                                    "process measures kernels\n")
        << said;
    EXPECT_EQ(one.out, other.out);
    const Outcome all = measure_all();
    EXPECT_EQ(all.code, 0) << all.err;
    EXPECT_GT(n_measured(all), 0);
}

TEST_F(BesideAModel, NothingIsMeasuredWhereItCannotBeKeptOrMeansNothing)
{
    const std::string said = "xemoe: kernels are not measured (--tune): ";
    const Outcome dry = generate({"--tune"}, {"XM_DRY_RUN=1"});
    EXPECT_FALSE(has_measured()) << dry.err;
    EXPECT_TRUE(contains(dry.err, said + "times of a dry run")) << dry.err;
    const Outcome forced = generate({"--tune"}, {"XM_FORCE=vec"});
    EXPECT_EQ(forced.code, 0) << forced.err;
    EXPECT_EQ(forced.err, said + "XM_FORCE chooses the kernels\n");
    const Outcome ignored = generate({"--tune"}, {"XM_TUNED_KERNELS=no"});
    EXPECT_EQ(ignored.err, said + "XM_TUNED_KERNELS=NO ignores the choices\n");
    EXPECT_FALSE(has_measured());
    EXPECT_EQ(generate({}, {"XM_FORCE=vec"}).err, "") << "nobody asked for it";
    const Outcome none = run(
        {"generate", gguf, "-p", "hello", "-n", "2", "--tune", "--cache-dir", "none"});
    EXPECT_EQ(none.code, 0) << none.err;
    EXPECT_EQ(none.err,
              said + "there is no cache folder where the choices could be kept\n");
}

/* The model is opened again, with the chosen kernels. */
TEST_F(BesideAModel, BenchMeasuresBeforeItsTests)
{
    const Outcome o = run({"bench", gguf, "-p", "4", "-n", "2", "-r", "1", "--tune",
                           "--cache-dir", shared->path},
                          {"XM_DEBUG=dispatch"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "pp4")) << o.out;
    EXPECT_TRUE(contains(o.out, "tg2")) << o.out;
    EXPECT_GT(n_measured(o), 0) << o.err;
}

/* Ctrl-C while kernels are built ends the whole command. */
TEST_F(BesideAModel, CtrlCEndsABenchThatMeasures)
{
    Folder empty("bench"); /* many kernels to build */
    Program bench(
        {"bench", gguf, "-p", "4", "-n", "2", "--tune", "--cache-dir", empty.path},
        {"POCL_CACHE_DIR=" + empty / "driver"});
    const std::string lock = empty / "tuning.lock";
    for (int waits = 0; waits < 6000 && !std::filesystem::exists(lock); waits++)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    bench.send(SIGINT);
    const Outcome o = bench.finish();
    EXPECT_EQ(o.code, 130) << o.err;
    EXPECT_EQ(o.out, "");
    EXPECT_TRUE(contains(o.err, "stopped by Ctrl-C")) << o.err;
    wait_for_end(empty);
}

/* A typed line does not wait for the builds, and the screen is as if no progress had been shown. */
TEST_F(BesideAModel, ALineTypedInAChatEndsTheMeasuring)
{
    Folder empty("typed"); /* many kernels to build */
    Terminal t(
        {"chat", gguf, "-n", "2", "--no-history", "--tune", "--cache-dir", empty.path},
        {"POCL_CACHE_DIR=" + empty / "driver"});
    ASSERT_TRUE(t.wait_for("> ")) << t.raw();
    t.type("hello\r");
    ASSERT_TRUE(t.wait_for("measuring kernels (Enter")) << t.raw();
    t.type("/stats\r");
    EXPECT_TRUE(t.wait_for("conversation 2 messages")) << t.raw();
    EXPECT_TRUE(contains(t.text(), "> /stats")) << t.text();
    EXPECT_FALSE(contains(t.text(), "measuring")) << t.text();
    t.type("/exit\r");
    EXPECT_EQ(t.finish(), 0) << t.raw();
    wait_for_end(empty);
}

/* Returns whether a command on a terminal starts a process that measures, with these settings. */
bool
starts_on_a_terminal(const Folder &folder, const std::vector<std::string> &settings,
                     const std::vector<std::string> &more = {})
{
    std::vector<std::string> words = {"generate", gguf, "-p",          "hello",
                                      "-n",       "2",  "--cache-dir", folder.path};
    words.insert(words.end(), more.begin(), more.end());
    Terminal t(words, settings);
    EXPECT_EQ(t.finish(300), 0) << t.raw();
    const std::string path = folder / "tuning.lock";
    int lock = -1;
    for (int waits = 0; waits < 200 && lock < 0; waits++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        lock = open(path.c_str(), O_RDWR);
    }
    if (lock < 0)
        return false;
    /* the process has ended: the folder can be removed */
    EXPECT_EQ(flock(lock, LOCK_EX), 0);
    close(lock);
    std::filesystem::remove(path);
    return true;
}

/* Measuring begins without an option on GPUs; here the device is a GPU only by XM_DEVICE_AS. */
TEST_F(Tune, BeginsByItselfOnAGpuWithATerminal)
{
    EXPECT_TRUE(starts_on_a_terminal(folder, {"XM_DEVICE_AS=tgl"}));
    EXPECT_FALSE(starts_on_a_terminal(folder, {"XM_DEVICE_AS=tgl"}, {"--no-tune"}));
    EXPECT_FALSE(
        starts_on_a_terminal(folder, {"XM_DEVICE_AS=tgl", "XM_TUNED_KERNELS=NO"}));
    ASSERT_EQ(
        run({"generate", gguf, "-p", "hello", "-n", "2", "--cache-dir", folder.path},
            {"XM_DEVICE_AS=tgl"})
            .code,
        0);
    EXPECT_FALSE(std::filesystem::exists(folder / "tuning.lock")) << "no terminal";
    EXPECT_FALSE(starts_on_a_terminal(folder, {})) << "a processor";
}

/* ---- the process that measures, alone
 * ------------------------------------------------------------- */

/* Returns the output of the measuring process for these input lines, whose end means that the
 * model's process has ended. */
std::string
run_beside(const std::string &folder, const std::string &lines,
           const std::string &setting = "XM_DRY_RUN=0")
{
    const std::string program =
        std::filesystem::path(XM_PROGRAM).parent_path().string() + "/bench_kernels";
    const std::string command = "printf '" + lines + "' | " + setting + " '" + program +
                                "' tune --beside --cache-dir '" + folder + "' 2>&1";
    std::string out;
    char part[256];
    FILE *pipe = popen(command.c_str(), "r");
    while (pipe && fgets(part, sizeof(part), pipe))
        out += part;
    EXPECT_TRUE(pipe && pclose(pipe) >= 0);
    return out;
}
const char one_step[] = "linear N=64 K=64 q4_0 f32\\n\\n";

class BesideProcess : public Tune
{
};

TEST_F(BesideProcess, BuildsARowAtLeastThoughTheModelHasGone)
{
    std::string out = run_beside(folder.path, one_step);
    EXPECT_EQ(out.rfind("build 1 of ", 0), 0u) << out;
    EXPECT_FALSE(contains(out, "ready")) << out;
    int starts = 1;
    for (; starts < 20 && !contains(out, "ready"); starts++)
        out = run_beside(folder.path, one_step);
    EXPECT_LT(starts, 20) << out;
}

TEST_F(BesideProcess, SaysWhyItDoesNotMeasure)
{
    const int lock = open((folder / "tuning.lock").c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_EQ(flock(lock, LOCK_EX), 0);
    EXPECT_EQ(run_beside(folder.path, one_step),
              "failed another process measures kernels\n");
    close(lock);
    EXPECT_EQ(run_beside("/proc/none", one_step),
              "failed the cache folder cannot be written\n");
    EXPECT_EQ(
        run_beside(folder.path, one_step, "XM_DRY_RUN=1"),
        "xemoe: warning: dry run: kernels are compiled and submitted but not executed, "
        "so no value is computed\nfailed times of a dry run mean nothing\n");
    const std::string wrong = run_beside(folder.path, "lines\\n\\n");
    EXPECT_TRUE(contains(wrong, "failed 'lines T=1': expected linear")) << wrong;
}

const Mistake beside_mistakes[] = {
    {"BothWishes",
     {"generate", gguf, "-p", "a", "--tune", "--no-tune"},
     2,
     "give only one of --tune"},
    {"OfBench", {"bench", gguf, "--tune", "--no-tune"}, 2, "give only one of --tune"},
    {"NoText",
     {"perplexity", gguf, "-f", gguf, "--tune"},
     2,
     "there is no option --tune"},
    {"Logits", {"logits", gguf, "--ids", "1", "--tune"}, 2, "there is no option --tune"},
};

class BesideMistakes : public testing::TestWithParam<Mistake>
{
};

TEST_P(BesideMistakes, GetOneSentence)
{
    expect_mistake(GetParam());
}
INSTANTIATE_TEST_SUITE_P(CommandLine, BesideMistakes, testing::ValuesIn(beside_mistakes),
                         mistake_name);

class TuneMistakes : public testing::TestWithParam<Mistake>
{
};

TEST_P(TuneMistakes, GetOneSentence)
{
    expect_mistake(GetParam(), {"tune"});
}

const Mistake mistakes[] = {
    {"NoModel", {}, 2, "MODEL is missing"},
    {"Absent", {"absent.gguf"}, 3, "absent.gguf"},
    {"NoTime", {gguf, "--seconds", "0"}, 2, "option --seconds takes a number above 0"},
    {"TooMuchTime", {gguf, "--seconds", "1e9"}, 2, "at most 3600"},
    {"Type", {gguf, "--kv", "u3"}, 2, "--kv"},
    {"Device", {gguf, "-d", "GPU.99"}, 4, "GPU.99"},
    {"Folder", {gguf, "--cache-dir", "/proc/none"}, 3, "option --cache-dir"},
};
INSTANTIATE_TEST_SUITE_P(CommandLine, TuneMistakes, testing::ValuesIn(mistakes),
                         mistake_name);

} // namespace
