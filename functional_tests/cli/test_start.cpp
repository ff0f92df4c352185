/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting: kernels are built once and stored, even if files are damaged; if nothing can or shall
 * be stored, the program still works; Ctrl-C ends a start at any moment.
 */
#include <filesystem>
#include <regex>

#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

namespace
{

namespace fs = std::filesystem;

const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
const int deadline_s = 300; /* limit for what takes seconds on an idle machine */
const char *const prompt = "Paris is the capital of";
const Words generate = {"generate", "-m", model, "-p", prompt, "-n4"};
/* Kernels that build fastest; which kernels are used does not matter here. */
const char *const plain_kernels = "XM_FORCE=ref";

class Start : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
        char name[] = "/tmp/xm_start_XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        root = name;
        user = {"XDG_CACHE_HOME=" + root.string(), plain_kernels};
    }
    void TearDown() override
    {
        if (!root.empty())
            fs::remove_all(root);
    }
    /* Runs once with this test's cache and returns the JSON. */
    static Json run_json(const Words &settings, const Words &more = {})
    {
        Words words = generate;
        words.push_back("--json");
        words.insert(words.end(), more.begin(), more.end());
        Outcome o = run(words, settings);
        EXPECT_EQ(o.code, 0) << o.err;
        EXPECT_EQ(o.err, "");
        return Json(o.code == 0 ? o.out : "{}");
    }
    static bool keeps_kernels()
    {
        return run({"devices"}).out.find("PoCL") != std::string::npos;
    }
    std::vector<fs::path> entries() const
    {
        std::vector<fs::path> found;
        for (const auto &f : fs::recursive_directory_iterator(root))
            if (f.is_regular_file())
                found.push_back(f.path());
        return found;
    }
    fs::path root;
    Words user;
};

TEST_F(Start, BenchKeepsNothingOutsideTheFolder)
{
    if (!keeps_kernels())
        GTEST_SKIP() << "the driver keeps kernels in its own way";
    const fs::path home = root / "home";
    fs::create_directories(home);
    const Outcome o = run(
        {"bench", model, "-p", "4", "-n", "1", "-r", "1", "--cache-dir", root / "dir"},
        {"HOME=" + home.string(), "XDG_CACHE_HOME=" + home.string(), plain_kernels});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_FALSE(fs::is_empty(root / "dir"));
    EXPECT_TRUE(fs::is_empty(home));
}

TEST_F(Start, TheSecondRunBuildsWhatIsDamagedAndNothingElse)
{
    if (!keeps_kernels())
        GTEST_SKIP() << "the driver keeps kernels in its own way";
    Json first = run_json(user);
    EXPECT_GT(first.number("/kernels_built"), 0);
    EXPECT_GT(first.number("/last_run/launches"), 0);
    EXPECT_EQ(first.number("/last_run/waits"), 1);
    EXPECT_GT(first.number("/launches_built"), 0);
    EXPECT_GT(first.number("/kernel_cache_bytes_written"), 0);
    EXPECT_GT(first.number("/timings/build_s"), first.number("/timings/prompt_s"));
    Json second = run_json(user);
    EXPECT_EQ(second.number("/kernels_built"), 0);
    Words words = generate;
    words.push_back("-v");
    const std::string told = run(words, user).err;
    EXPECT_TRUE(contains(told, " launches and 1 wait per token\n")) << told;
    EXPECT_EQ(second.number("/kernels_loaded"), first.number("/kernels_built"));
    EXPECT_EQ(second.number("/launches_built"), 0);
    EXPECT_EQ(second.number("/kernel_cache_bytes_written"), 0);
    EXPECT_EQ(second.text("/text"), first.text("/text"));
    EXPECT_TRUE(fs::is_directory(root / "xemoe"));
    size_t n = 0;
    for (const fs::path &file : entries()) { /* no other files remain */
        EXPECT_EQ(file.extension(), ".xmk") << file;
        fs::resize_file(file, n++ % 2 ? 0 : fs::file_size(file) / 2);
    }
    /* Damaged files are built again. */
    EXPECT_GT(n, 1u);
    Json again = run_json(user);
    EXPECT_EQ(again.number("/kernels_built"), first.number("/kernels_built"));
    EXPECT_EQ(again.text("/text"), first.text("/text"));
    EXPECT_EQ(run_json(user).number("/kernels_built"), 0);
}

TEST_F(Start, TheFolderIsAnOption)
{
    const std::string dir = (root / "mine").string();
    run_json(user, {"--cache-dir", dir});
    EXPECT_FALSE(fs::exists(root / "xemoe"));
    EXPECT_TRUE(fs::is_directory(dir));
    if (keeps_kernels()) {
        EXPECT_EQ(run_json(user, {"--cache-dir", dir}).number("/kernels_built"), 0);
    }
    Words words = generate;
    words.push_back("--cache-dir=/proc/none");
    Outcome o = run(words, user);
    EXPECT_EQ(o.code, 3) << o.err;
    EXPECT_NE(o.err.find("option --cache-dir: the folder '/proc/none' cannot be created"),
              std::string::npos)
        << o.err;
}

/* One warning for our kernels and one for the driver's; none if nothing is compiled. */
TEST_F(Start, AHomeThatCannotBeWrittenCostsTwoSentences)
{
    const Words no_home = {"XDG_CACHE_HOME=", "XDG_RUNTIME_DIR=", "HOME=/proc/none",
                           "TMPDIR=" + root.string(), plain_kernels};
    EXPECT_EQ(run({"devices"}, no_home).err, "");
    Outcome o = run(generate, no_home);
    EXPECT_EQ(o.code, 0) << o.err;
    if (!keeps_kernels())
        return;
    EXPECT_EQ(
        o.err.rfind("xemoe: warning: the folder '/proc/none/.cache/xemoe' cannot", 0), 0u)
        << o.err;
    EXPECT_TRUE(
        contains(o.err, "warning: /proc/none/.cache/pocl/kcache cannot be created"))
        << o.err;
    EXPECT_EQ(count(o.err, "\n"), 2u) << o.err;
    EXPECT_TRUE(fs::is_empty(root)) << "what was made for the run is removed";
}

/* ---- output on a terminal ---- */

struct Built {
    int k, n;
};

std::vector<Built>
all_built(const std::string &raw)
{
    static const std::regex line("building kernel ([0-9]+) of ([0-9]+): ");
    std::vector<Built> list;
    for (std::sregex_iterator i(raw.begin(), raw.end(), line), end; i != end; ++i)
        list.push_back({std::stoi((*i)[1]), std::stoi((*i)[2])});
    return list;
}

/* Checks that builds are counted one by one up to a total that is known from the start. */
void
expect_counted(const std::string &raw)
{
    const std::vector<Built> list = all_built(raw);
    ASSERT_GT(list.size(), 20u) << raw;
    for (size_t i = 0; i < list.size(); i++) {
        EXPECT_EQ(list[i].k, (int)i + 1);
        EXPECT_EQ(list[i].n, list[0].n);
        EXPECT_LE(list[i].k, list[i].n);
    }
}

/* All builds come before the first token. Without a cache no folder is created. */
TEST_F(Start, BuildsAreCountedToTheEndBeforeTheTextBegins)
{
    if (!keeps_kernels())
        GTEST_SKIP() << "the driver keeps kernels in its own way";
    Words words = generate;
    words.push_back("--cache-dir=none");
    Terminal t(words, {user[0]}); /* with the usual kernels of a run */
    EXPECT_EQ(t.finish(deadline_s), 0) << t.raw();
    EXPECT_FALSE(fs::exists(root / "xemoe"));
    EXPECT_FALSE(fs::exists("none"));
    ASSERT_NO_FATAL_FAILURE(expect_counted(t.raw()));
    const size_t last = t.raw().rfind("building "), text = t.raw().find("France");
    ASSERT_NE(text, std::string::npos) << t.raw();
    EXPECT_LT(last, text) << t.raw();
    EXPECT_FALSE(contains(t.text(), "building")) << "it is wiped away";
}

/* Kernels from the cache count as built. */
TEST_F(Start, TheNumberOfBuildsStaysWhereSomeAreKept)
{
    if (!keeps_kernels())
        GTEST_SKIP() << "the driver keeps kernels in its own way";
    run_json(user);
    size_t i = 0;
    for (const fs::path &file : entries())
        if (i++ % 2)
            fs::remove(file);
    Terminal t(generate, user);
    EXPECT_EQ(t.finish(deadline_s), 0) << t.raw();
    const std::vector<Built> list = all_built(t.raw());
    ASSERT_GT(list.size(), 4u) << t.raw();
    for (i = 0; i < list.size(); i++) {
        EXPECT_EQ(list[i].n, list[0].n) << t.raw();
        EXPECT_GT(list[i].k, i ? list[i - 1].k : 0);
    }
    EXPECT_GT(list.back().k, (int)list.size());
    EXPECT_LE(list.back().k, list.back().n);
}

/* Kernels of forced variants are built when they are first needed. */
TEST_F(Start, BuildsOfForcedVariantsAreCountedToo)
{
    if (!keeps_kernels())
        GTEST_SKIP() << "the driver keeps kernels in its own way";
    Words words = generate;
    words.push_back("--cache-dir=none");
    Terminal t(words, {user[0], "XM_FORCE=ref"});
    EXPECT_EQ(t.finish(deadline_s), 0) << t.raw();
    expect_counted(t.raw());
    EXPECT_FALSE(contains(t.raw(), "of a new size")) << t.raw();
}

/* The first answer waits only for kernels whose shape could not be known before. */
TEST_F(Start, ChatIsReadyWhenItSaysSo)
{
    if (!keeps_kernels())
        GTEST_SKIP() << "the driver keeps kernels in its own way";
    Terminal t({"chat", "-m", model, "-n", "4", "--cache-dir=none"}, user);
    t.wait_for("Type a message", deadline_s);
    const size_t before = all_built(t.raw()).size();
    EXPECT_GT(before, 20u);
    t.wait_for("> ");
    t.type("Which country has the capital Paris?\r");
    t.wait_for("reading", deadline_s);
    t.wait_for("> ", deadline_s);
    t.type("/exit\r");
    EXPECT_EQ(t.finish(deadline_s), 0) << t.raw();
    EXPECT_EQ(all_built(t.raw()).size(), before) << t.raw();
    EXPECT_FALSE(fs::exists(root / "xemoe"));
}

TEST_F(Start, PercentOfALongPromptIsShown)
{
    std::string ids = "5";
    for (int i = 1; i < 1500; i++)
        ids += ",5";
    Terminal t({"generate", "-m", model, "--ids", ids, "-n1", "--ubatch", "256"});
    EXPECT_EQ(t.finish(deadline_s), 0) << t.raw();
    static const std::regex line("reading a prompt of 1500 tokens: ([0-9]+) %");
    int last = -1;
    size_t n = 0;
    const std::string raw = t.raw();
    for (std::sregex_iterator i(raw.begin(), raw.end(), line), end; i != end; ++i, n++) {
        EXPECT_GE(std::stoi((*i)[1]), last);
        last = std::stoi((*i)[1]);
    }
    EXPECT_GT(n, 6u) << raw; /* more than one progress report a chunk */
    EXPECT_GE(last, 80);
    EXPECT_LT(last, 100);
    EXPECT_FALSE(contains(t.text(), "reading")) << "it is wiped away";
}

/* ---- Ctrl-C at a terminal ---- */

/* When Ctrl-C is typed: `ms` milliseconds after output of this form; or, if set, as soon after it
 * as the process has a child process, the driver's linker. Which kernels exist depends on the
 * processor, so no form names a number or a variant. */
struct Moment {
    const char *after;
    int ms;
    bool links;
};

TEST_F(Start, CtrlCEndsAColdStartAtAnyMoment)
{
    if (!keeps_kernels())
        GTEST_SKIP() << "the driver keeps kernels in its own way";
    const Moment moments[] = {
        {"compiling", 0, false},
        {"building kernel [0-9]+ of", 10, false},
        {"kernel [0-9]+ of [0-9]+: attention_prompt_", 70, false},
        {"reading a prompt", 20, false},
        {"reading a prompt", 0, true},
        {"moe_down_[\\s\\S]*attention_decode_", 0, true}, /* a launch needs it */
        {"reading a prompt[\\s\\S]*attention_prompt_", 90, false},
        {"reading a prompt[\\s\\S]*moe_", 0, true},
    };
    for (const Moment &m : moments) {
        SCOPED_TRACE(std::string(m.after) + " + " + std::to_string(m.ms) + " ms" +
                     (m.links ? ", when it links" : ""));
        fs::remove_all(root / "xemoe");
        Terminal t(generate, user); /* its Ctrl-C is sent to all of its processes */
        t.wait_for_match(m.after, deadline_s);
        t.watch(m.ms);
        if (m.links)
            t.wait_for_child(deadline_s);
        t.type("\003");
        EXPECT_EQ(t.finish(deadline_s), 130) << t.raw();
        EXPECT_FALSE(contains(t.raw(), "bort")) << t.raw();
        EXPECT_FALSE(contains(t.raw(), "failed")) << t.raw();
    }
    run_json(user); /* the files that remain are valid */
    EXPECT_EQ(run_json(user).number("/kernels_built"), 0);
}

} // namespace
