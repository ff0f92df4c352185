/* SPDX-License-Identifier: Apache-2.0
 *
 * generate --profile and --profile-out: every step has a time, and the numbers are consistent.
 */
#include "functional_tests/common/comma_locale.h"
#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

#include <set>

namespace
{

const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

Words
operator+(Words a, const Words &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

class Profile : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
    static Outcome generate(const Words &options)
    {
        return run(Words{"generate", "-m", model, "-n", "6", "--ignore-eos"} + options);
    }
    /* Returns the ops in the steps of `info -v`: "   2 v7:f16[…] = linear v6:f16[…]". */
    static std::set<std::string> ops()
    {
        std::istringstream lines(run({"info", model, "-v"}).out);
        std::set<std::string> list;
        std::string line, op;
        bool in_steps = false;
        while (std::getline(lines, line)) {
            const size_t at = line.find(" = ");
            std::istringstream words(at == std::string::npos ? "" : line.substr(at + 3));
            if (in_steps && words >> op)
                list.insert(op);
            in_steps |= line.rfind("steps (", 0) == 0;
        }
        EXPECT_GT(list.size(), 5u);
        return list;
    }
    Folder folder{"profile"};
};

TEST_F(Profile, IsATableBehindTheText)
{
    const Outcome plain = generate({"-p", "Paris is the capital of"});
    const Outcome o = generate({"-p", "Paris is the capital of", "--profile"});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out, plain.out);
    EXPECT_EQ(plain.err, "");
    EXPECT_TRUE(contains(o.err, "profile of prompt: 5 tokens, ")) << o.err;
    EXPECT_TRUE(contains(o.err, "profile of decode: 5 tokens, ")) << o.err;
    EXPECT_TRUE(contains(o.err, " ms on the device, ")) << o.err;
    EXPECT_TRUE(contains(o.err, "rate of multiply-adds, "))
        << "the limit of multiply-adds: " << o.err;
    EXPECT_EQ(count(o.err, "100.0 %"), 2u) << o.err;
    for (const std::string &op : ops())
        EXPECT_GE(count(o.err, "  " + op), 2u) << op << ": " << o.err;
}

/* A phase in the output of --json. */
struct Phase {
    std::set<std::string> ops;
    double ms = 0, share = 0, multiply_adds = 0, kernels_ms = 0;
    size_t n = 0;
};

Phase
phase_of(const Json &json, const std::string &name)
{
    Phase p;
    double last = 1e30;
    for (size_t i = 0; json.at("/profile/" + std::to_string(i)); i++) {
        const std::string at = "/profile/" + std::to_string(i);
        if (json.text(at + "/phase") != name)
            continue;
        p.n++;
        p.ops.insert(json.text(at + "/op"));
        p.ms += json.number(at + "/ms");
        p.share += json.number(at + "/share");
        p.multiply_adds += json.number(at + "/multiply_adds");
        EXPECT_LE(json.number(at + "/ms"), last) << "the longest first";
        last = json.number(at + "/ms");
        EXPECT_GT(json.number(at + "/runs"), 0) << at;
        EXPECT_EQ(json.number(at + "/unmeasured"), 0) << at;
        for (size_t k = 0; json.at(at + "/kernels/" + std::to_string(k)); k++)
            p.kernels_ms += json.number(at + "/kernels/" + std::to_string(k) + "/ms");
    }
    return p;
}

TEST_F(Profile, OfJsonAddsUp)
{
    const CommaLocale comma; /* the user's locale, which the program sets */
    setenv("LC_ALL", CommaLocale::name, 1);
    const Outcome o = generate({"-p", "Paris is the capital of", "--profile", "--json"});
    unsetenv("LC_ALL");
    ASSERT_EQ(o.code, 0) << o.err;
    const Json json(o.out);
    const Phase prompt = phase_of(json, "prompt"), decode = phase_of(json, "decode");
    for (const Phase &p : {prompt, decode}) {
        EXPECT_NEAR(p.share, 1.0, 1e-6);
        EXPECT_NEAR(p.kernels_ms, p.ms, 1e-6 * p.ms);
        for (const std::string &op : ops())
            EXPECT_EQ(p.ops.count(op), 1u) << op;
    }
    EXPECT_LE(prompt.ms, 1e3 * json.number("/timings/prompt_s"));
    EXPECT_LE(decode.ms, 1e3 * json.number("/timings/decode_s"));
    /* Counts the weights as -v does, and attention; the vocabulary's matrix once. */
    EXPECT_GT(prompt.multiply_adds * 2e-9,
              json.number("/timings/prompt_gflops") * json.number("/timings/prompt_s"));
    EXPECT_GT(decode.multiply_adds, prompt.multiply_adds * 0.5);
    EXPECT_EQ(Json(generate({"-p", "a", "--json"}).out).at("/profile"), nullptr);
}

/* Checks a trace file and returns the milliseconds of all launches. */
double
check_trace(const std::string &path, const std::set<std::string> &ops)
{
    const std::string text = read_file(path);
    const Json json(text);
    std::set<std::string> seen, names;
    double us = 0, last = -1;
    for (size_t i = 0; json.at("/traceEvents/" + std::to_string(i)); i++) {
        const std::string at = "/traceEvents/" + std::to_string(i);
        if (json.text(at + "/ph") == "M") {
            names.insert(json.text(at + "/name") + ": " + json.text(at + "/args/name"));
            continue;
        }
        EXPECT_EQ(json.text(at + "/ph"), "X");
        EXPECT_EQ(json.text(at + "/args/op"), json.text(at + "/cat"));
        EXPECT_EQ(json.text(at + "/args/kernel"), json.text(at + "/name"));
        EXPECT_GE(json.number(at + "/ts"), last) << "in the order of time";
        EXPECT_LE(json.number(at + "/args/queued"), json.number(at + "/ts"));
        last = json.number(at + "/ts");
        us += json.number(at + "/dur");
        seen.insert(json.text(at + "/cat"));
    }
    EXPECT_EQ(names.count("process_name: xemoe generate"), 1u);
    EXPECT_EQ(json.number("/otherData/dropped"), 0);
    for (const std::string &op : ops)
        EXPECT_EQ(seen.count(op), 1u) << op;
    return us / 1e3;
}

TEST_F(Profile, TraceHasEveryLaunch)
{
    const Outcome o = generate({"-p", "Paris is the capital of", "--profile-out",
                                folder / "trace.json", "--profile", "--json"});
    ASSERT_EQ(o.code, 0) << o.err;
    const Json json(o.out);
    const double ms = check_trace(folder / "trace.json", ops());
    EXPECT_NEAR(ms, phase_of(json, "prompt").ms + phase_of(json, "decode").ms, 1e-3 * ms);
    EXPECT_LE(
        ms, 1e3 * (json.number("/timings/prompt_s") + json.number("/timings/decode_s")));
}

TEST_F(Profile, IsOfTextsInParallelToo)
{
    folder.write("prompts.txt", "Paris is the capital of\nOnce upon a time\nA b c\n");
    const Outcome o =
        generate({"-f", folder / "prompts.txt", "--parallel", "2", "--profile",
                  "--profile-out", folder / "trace.json", "--json"});
    ASSERT_EQ(o.code, 0) << o.err;
    const Json json(o.out);
    const Phase prompt = phase_of(json, "prompt"), decode = phase_of(json, "decode");
    for (const char *op : {"linear", "attention", "moe_3gemm_fused_compressed"}) {
        EXPECT_EQ(prompt.ops.count(op), 1u) << op;
        EXPECT_EQ(decode.ops.count(op), 1u) << op;
    }
    const double ms = check_trace(folder / "trace.json", {"linear", "attention"});
    EXPECT_NEAR(ms, prompt.ms + decode.ms, 1e-3 * ms);
    EXPECT_TRUE(contains(o.err, "profile of decode")) << o.err;
}

TEST_F(Profile, AFileThatCannotBeWrittenIsASentence)
{
    Outcome o = generate({"-p", "a", "--profile-out", folder / "none/trace.json"});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(
        contains(o.err, "none/trace.json' cannot be written: No such file or directory"))
        << o.err;
    EXPECT_EQ(o.out, "") << "nothing is generated before";
    o = generate({"-p", "a", "--profile-out", "/dev/full"});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, "'/dev/full' cannot be written: No space left")) << o.err;
    o = generate({"-p", "a", "--profile-out", "-"});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, "option --profile-out needs a file")) << o.err;
}

TEST(ProfileOfTheReference, IsNotThere)
{
    const Outcome o = run(
        {"generate", "-m", model, "-d", "REFERENCE", "-p", "a", "-n", "1", "--profile"});
    EXPECT_EQ(o.code, 2);
    EXPECT_EQ(o.err, "xemoe: option --profile: device REFERENCE does not measure its "
                     "steps; use -d GPU or CPU\n");
}

} // namespace
