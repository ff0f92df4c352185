/* SPDX-License-Identifier: Apache-2.0
 *
 * Ctrl-C and SIGTERM, typed on a terminal, and sent to a program whose output goes to files.
 */
#include <sys/resource.h>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

static const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
static const char *const ctrl_c = "\x03";
static const char *const sentence = "xemoe: stopped by Ctrl-C\n";

/* A command that would run for minutes. */
static Words
endless(const std::string &device)
{
    return {"generate",
            "-m",
            model,
            "-d",
            device,
            "-p",
            "Paris is the capital of",
            "-n",
            "1000000",
            "--ignore-eos"};
}

class Moments : public testing::TestWithParam<int>
{
};

/* At moments during loading, the beginning of the run, the prompt, and tokens. */
TEST_P(Moments, CtrlCEndsGenerateWithASentence)
{
    Terminal t(endless("REFERENCE"));
    t.wait_for("reading ");
    t.watch(GetParam());
    t.type(ctrl_c);
    EXPECT_EQ(t.finish(), 130) << t.text();
    EXPECT_TRUE(ends_with(t.text(), sentence)) << t.text();
}

INSTANTIATE_TEST_SUITE_P(Interrupt, Moments,
                         testing::Values(0, 5, 20, 40, 60, 80, 90, 100, 105, 110, 115,
                                         120, 125, 130, 140, 160, 200, 300));

/* Ctrl-C just as the run begins, when it could be lost. */
TEST(Interrupt, CtrlCAsTheRunBeginsIsNotLost)
{
    for (int i = 0; i < 10; i++) {
        Terminal t(endless("REFERENCE"));
        t.wait_for("reading a prompt");
        t.watch(i);
        t.type(ctrl_c);
        EXPECT_EQ(t.finish(), 130) << t.text();
        EXPECT_TRUE(ends_with(t.text(), sentence)) << t.text();
        EXPECT_LT(t.screen.rows().size(), 8u) << t.text(); /* a few tokens */
    }
}

/* The prompt takes seconds, and there is no token yet. */
TEST(Interrupt, CtrlCStopsTheReadingOfAPrompt)
{
    std::string ids = "5";
    for (int i = 0; i < 20000; i++)
        ids += ",5";
    Terminal t({"generate", "-m", model, "-d", "REFERENCE", "-c", "30000", "--ids", ids});
    t.wait_for("reading a prompt of 20001 tokens");
    t.type(ctrl_c);
    EXPECT_EQ(t.finish(), 130);
    EXPECT_EQ(t.screen.rows().size(), 3u) << t.raw(); /* two rows of a warning */
    EXPECT_TRUE(ends_with(t.text(), sentence)) << t.text();
}

TEST(Interrupt, WhatWasWrittenIsEndedWithALine)
{
    Program p(endless("REFERENCE"));
    p.wait_for_output();
    p.interrupt();
    Outcome o = p.finish();
    EXPECT_EQ(o.code, 130);
    EXPECT_TRUE(ends_with(o.out, "\n"));
    EXPECT_TRUE(ends_with(o.err, sentence)) << o.err;
}

/* The first signal is still being handled while a layer is computed. */
TEST(Interrupt, TheSecondOneEndsAtOnce)
{
    Program p(endless("REFERENCE"));
    p.wait_for_output();
    p.interrupt();
    p.interrupt();
    Outcome o = p.finish();
    EXPECT_EQ(o.code, 130);
    EXPECT_TRUE(ends_with(o.out, "\n"));
    EXPECT_TRUE(ends_with(o.err, sentence)) << o.err;
}

TEST(Interrupt, SigtermEndsByThatSignal)
{
    Terminal t(endless("REFERENCE"));
    t.wait_for("France");
    t.signal(SIGTERM);
    EXPECT_EQ(t.finish(), 128 + SIGTERM);
    EXPECT_TRUE(ends_with(t.text(), "\nxemoe: stopped by a signal to terminate\n"))
        << t.text();
}

/* The compiler in PoCL installs handlers of its own. */
TEST(Interrupt, ASignalThatIsIgnoredFromTheStartStaysIgnored)
{
    ::signal(SIGHUP, SIG_IGN); /* the program inherits it, as after nohup */
    Program p(endless("CPU"));
    ::signal(SIGHUP, SIG_DFL);
    p.wait_for_output();
    const std::string status =
        read_file("/proc/" + std::to_string(p.process()) + "/status");
    const size_t at = status.find("SigIgn:");
    ASSERT_NE(at, std::string::npos) << status;
    EXPECT_EQ(std::stoull(status.substr(at + 7), nullptr, 16) >> (SIGHUP - 1) & 1, 1u)
        << status;
    p.send(SIGTERM);
    EXPECT_EQ(p.finish().code, 128 + SIGTERM);
}

TEST(Interrupt, OtherCommandsEndWithTheirCodeToo)
{
    const struct {
        const char *command, *running;
    } cases[] = {{"perplexity", "chunk 1 of "}, {"logits", "reading 20001 tokens"}};
    std::string ids = "5";
    for (int i = 0; i < 20000; i++)
        ids += ",5";
    for (const auto &c : cases) {
        Terminal t({c.command, "-m", model, "-d", "REFERENCE", "--ids", ids});
        t.wait_for(c.running);
        t.type(ctrl_c);
        EXPECT_EQ(t.finish(), 130) << c.command << t.text();
        EXPECT_TRUE(ends_with(t.text(), sentence)) << c.command << t.text();
    }
}

/* ---- signals while a file is being written -------------------------------------------- */

struct Writing {
    const char *name;
    /* a command that writes for minutes; the folder is given before the words */
    Words words;
};

class Writes : public testing::TestWithParam<Writing>
{
};

TEST_P(Writes, LeaveNothingBehindWhenASignalEndsThem)
{
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core); /* the program inherits it */
    for (int number : {SIGTERM, SIGHUP, SIGQUIT, SIGINT}) {
        const Folder folder(GetParam().name);
        Words words = GetParam().words;
        words.back() = folder / words.back();
        Program p(words);
        for (int i = 0; i < 60000 && folder.names().empty(); i++)
            usleep(1000);
        ASSERT_FALSE(folder.names().empty()) << p.errors();
        p.send(number);
        EXPECT_EQ(p.finish().code, number == SIGINT ? 130 : 128 + number);
        EXPECT_EQ(folder.names(), std::set<std::string>{}) << number;
    }
}

static std::string
many_ids(int n)
{
    std::string ids = "5";
    for (int i = 1; i < n; i++)
        ids += ",5";
    return ids;
}

INSTANTIATE_TEST_SUITE_P(
    Interrupt, Writes,
    testing::Values(Writing{"perplexity",
                            {"perplexity", "-m", model, "-d", "REFERENCE", "-c", "512",
                             "--ids", many_ids(8192), "--kl-divergence-base", "base"}},
                    Writing{"make_model",
                            {"make-model", "--arch", "qwen3moe", "--hidden", "4096",
                             "--layers", "64", "-o", "model.gguf"}}),
    [](const auto &info) { return std::string(info.param.name); });

/* A driver's compiler installs its own handler of the signal. */
TEST(Interrupt, CtrlBackslashEndsAtOnceWhereKernelsWereBuilt)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Folder cache("quit_cache");
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    Words words = endless("GPU");
    words.insert(words.end(), {"--cache-dir", cache.path});
    Terminal t(words, {"XM_FORCE=ref"}); /* kernels that build fastest */
    t.wait_for("France");
    t.type("\x1c");
    EXPECT_EQ(t.finish(), 128 + SIGQUIT) << t.text();
    EXPECT_TRUE(ends_with(t.text(), "\nxemoe: stopped by Ctrl-\\\n")) << t.text();
}
