/* SPDX-License-Identifier: Apache-2.0
 *
 * Missing parts of the machine: a device, a driver, a kernel that builds, room for the cache.
 * Each is reported with an error text, or does no harm.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

#include <sys/file.h>

static const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
static const char *const prompt = "Paris is the capital of";

TEST(Failures, WithoutADriverThereIsTheReference)
{
    Folder empty("no_drivers");
    Words none = {"OCL_ICD_VENDORS=" + empty.path, "OPENCL_VENDOR_PATH=" + empty.path};
    Outcome o = run({"devices"}, none);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "no OpenCL device: install Intel's driver")) << o.out;
    EXPECT_TRUE(contains(o.out, "REFERENCE")) << o.out;
    Json json(run({"devices", "--json"}, none).out);
    EXPECT_EQ(json.text("/devices/0/device"), "REFERENCE");
    o = run({"generate", "-m", model, "-p", prompt, "-n1"}, none);
    EXPECT_EQ(o.code, 4);
    EXPECT_TRUE(contains(o.err, "xemoe: there is no device GPU; available: REFERENCE; no "
                                "OpenCL driver is installed, or none reports a device: "
                                "install Intel's driver (package intel-opencl-icd), or"))
        << o.err;
    EXPECT_FALSE(contains(o.err, "OpenVINO")) << o.err;
    for (const char *device : {"GPU", "GPU.1", "AUTO", "TPU"})
        for (const Words &words : {Words{"generate", model, "-p", "x", "-d", device},
                                   Words{"plan", model, "-d", device},
                                   Words{"bench", model, "--device", device},
                                   Words{"tune", model, "-d", device}})
            EXPECT_EQ(run(words, none).code, 4) << words[0] << " " << device;
    o = run({"generate", "-m", model, "-p", prompt, "-n1", "--device=CPU"}, none);
    EXPECT_EQ(o.code, 4);
    EXPECT_TRUE(contains(o.err, "no installed OpenCL driver runs on the processor"))
        << o.err;
    o = run({"generate", "-m", model, "-p", prompt, "-n1", "--device=REFERENCE"}, none);
    EXPECT_EQ(o.code, 0) << o.err;
}

/* A copy of the model, which is truncated between two messages. */
class LostFile : public testing::TestWithParam<const char *>
{
  protected:
    void SetUp() override
    {
        if (std::string(GetParam()) == "GPU" && !has_device())
            GTEST_SKIP() << "no OpenCL device";
        std::filesystem::copy(model, folder / "model");
        ASSERT_EQ(mkfifo(lines.c_str(), 0600), 0);
    }

    /* Truncates the file after the first answer was read, when the weights are mapped. */
    Outcome lose_after_first_answer(Words more)
    {
        Words words = {"chat", "-m", folder / "model", "-d", GetParam(), "-n", "12"};
        words.insert(words.end(), more.begin(), more.end());
        /* opened for both, so that opening does not block */
        int both_ends = open(lines.c_str(), O_RDWR | O_CLOEXEC);
        Program p(words, {}, lines);
        send(both_ends);
        p.wait_for_output("Rome.\n");
        std::filesystem::resize_file(bin, 4096);
        send(both_ends);
        Outcome o = p.finish();
        close(both_ends);
        return o;
    }

    const Folder folder{"lost_file"};
    const std::string lines = folder / "lines", bin = folder / "model/openvino_model.bin";

  private:
    static void send(int fd)
    {
        const std::string line = "What is the capital of Italy?\n";
        ASSERT_EQ(write(fd, line.data(), line.size()), ssize_t(line.size()));
    }
};

TEST_P(LostFile, IsASentenceAndACode)
{
    const auto bytes = std::filesystem::file_size(bin);
    Outcome o = lose_after_first_answer({});
    EXPECT_EQ(o.code, 3);
    EXPECT_EQ(o.out, "The capital of Italy is Rome.\n");
    EXPECT_EQ(o.err, "xemoe: file '" + bin +
                         "' was truncated or can no longer be read (" +
                         std::to_string(bytes) + " bytes are mapped)\n");
}

INSTANTIATE_TEST_SUITE_P(Failures, LostFile, testing::Values("GPU", "REFERENCE"));

/* The signal is sent by a process and has nothing to do with a file. */
TEST(Failures, AnotherBusErrorEndsByThatSignal)
{
    Program p({"generate", "-m", model, "-d", "REFERENCE", "-p", prompt, "-n", "-1",
               "--ignore-eos", "-c", "1000000"});
    p.wait_for_output();
    p.send(SIGBUS);
    Outcome o = p.finish();
    EXPECT_EQ(o.code, 128 + SIGBUS);
    EXPECT_FALSE(contains(o.err, "truncated")) << o.err;
}

TEST(Failures, DevicesSaysWhyThereIsNoLevelZero)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Outcome o = run({"devices", "--json"}, {"XM_LEVEL_ZERO=/no/such/loader"});
    ASSERT_EQ(o.code, 0) << o.err;
    Json json(o.out);
    ASSERT_NE(json.at("/devices/0/level_zero/available"), nullptr) << o.out;
    EXPECT_FALSE(yyjson_get_bool(json.at("/devices/0/level_zero/available")));
    EXPECT_NE(json.text("/devices/0/level_zero/why_not"), "");
    EXPECT_TRUE(contains(run({"devices"}).out, "  Level Zero: ")) << o.out;
}

/* Reported before anything is read. */
TEST(Failures, AMistakeInXmForceListsWhatThereIs)
{
    Words generate = {"generate", "-m", "/no/such/model", "-p", prompt, "-n1"};
    Outcome o = run(generate, {"XM_FORCE=linear_fwe=linear_ref"});
    EXPECT_EQ(o.code, 2) << o.err;
    EXPECT_TRUE(
        contains(o.err, "there is no step 'linear_fwe'; the steps are attention_"))
        << o.err;
    EXPECT_TRUE(contains(o.err, "linear_few")) << o.err;
    o = run(generate, {"XM_FORCE=linear_few=linear_best"});
    EXPECT_EQ(o.code, 2) << o.err;
    EXPECT_TRUE(contains(
        o.err, "step linear_few has no variant 'linear_best'; its variants are linear_"))
        << o.err;
}

/* The sources of the best variants are broken, so that no compiler accepts them. */
TEST(Failures, KernelsThatDoNotBuildGiveWay)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Folder broken("broken_kernels");
    Words generate = {"generate", "-m", model, "-p", prompt, "-n2"};
    const std::string want = run(generate).out;
    for (const char *name :
         {"rms_norm_vec", "rms_norm_sg", "moe_route_gen", "moe_route_sg"})
        broken.write(std::string(name) + ".cl", "this is no kernel;\n");
    Outcome o = run(generate, {"XM_KERNEL_DIR=" + broken.path});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out, want);
    EXPECT_TRUE(contains(o.err, "does not build on")) << o.err;
    EXPECT_TRUE(contains(o.err, "the step uses its next kernel variant")) << o.err;
    EXPECT_LE(count(o.err, "kernel 'rms_norm_vec'"), 4u)
        << o.err; /* one warning for each build */
}

TEST(Failures, AForcedKernelThatDoesNotBuildIsAnError)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Folder broken("broken_forced");
    broken.write("rms_norm_ref.cl", "this is no kernel;\n");
    Outcome o = run({"generate", "-m", model, "-p", prompt, "-n1"},
                    {"XM_KERNEL_DIR=" + broken.path, "XM_FORCE=rms_norm=rms_norm_ref"});
    EXPECT_EQ(o.code, 4) << o.err;
    EXPECT_TRUE(contains(o.err, "rms_norm: XM_FORCE asks for this variant")) << o.err;
    EXPECT_TRUE(contains(o.err, "XM_DEBUG=build")) << o.err; /* says what to do next */
}

TEST(Failures, AFullCacheIsASentenceAndACode)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    std::string ids = "1";
    for (int i = 2; i <= 1020; i++)
        ids += "," + std::to_string(i);
    Words words = {"generate", "-m",  model,          "--ids", ids,
                   "--kv",     "f16", "--ignore-eos", "-n",    "20"};
    EXPECT_EQ(run(words).code, 0);
    words.insert(words.end(), {"--kv-memory", "1"}); /* room for 1024 positions */
    Outcome o = run(words);
    EXPECT_EQ(o.code, 4) << o.err;
    EXPECT_TRUE(contains(o.err, "xemoe: the KV cache is full: 1.0 of 1.0 MiB")) << o.err;
    EXPECT_GT(o.out.size(), 1u) << "what came before it is shown";
}

/* No newline is printed if no line has begun. The error text names the option, not the property. */
TEST(Failures, OfAPromptLeaveStandardOutputAlone)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    std::string ids = "1";
    for (int i = 2; i <= 1400; i++)
        ids += "," + std::to_string(i);
    Outcome o =
        run({"generate", "-m", model, "--ids", ids, "--kv", "f16", "--kv-memory", "1"});
    EXPECT_EQ(o.code, 4) << o.err;
    EXPECT_EQ(o.out, "");
    EXPECT_TRUE(contains(o.err, "or set a larger --kv-memory\n")) << o.err;
}

/* A mistyped output path must not overwrite the model. */
TEST(Failures, NothingIsWrittenOverWhatWasRead)
{
    const Folder folder("own_input");
    const std::string copy = folder / "model";
    std::filesystem::copy(model, copy, std::filesystem::copy_options::recursive);
    const std::string weights = copy + "/openvino_model.bin";
    const std::string xml = copy + "/openvino_model.xml";
    const std::string bytes = read_file(weights), layers = read_file(xml);
    const Words wrong[] = {
        {"logits", "-m", copy, "--ids", "1,2", "-o", weights},
        {"logits", "-m", copy, "--ids", "1,2", "-o", xml},
        {"generate", "-m", copy, "-p", prompt, "-n1", "--profile-out", weights},
        {"info", copy, "--svg", xml},
        {"benchmark_app", "-m", copy, "-d", "CPU", "-niter", "1", "-exec_graph_path",
         xml},
    };
    for (const Words &words : wrong) {
        const Outcome o = run(words);
        EXPECT_NE(o.code, 0) << words[0];
        EXPECT_TRUE(
            contains(o.out + o.err, "is not written, because this program reads it"))
            << words[0] << o.err;
    }
    EXPECT_EQ(read_file(weights), bytes);
    EXPECT_EQ(read_file(xml), layers);
}

TEST(Failures, AFolderOfKernelsMustBeThere)
{
    Outcome o = run({"generate", "-m", model, "-p", prompt, "-n1"},
                    {"XM_KERNEL_DIR=/no/such/kernels"});
    EXPECT_EQ(o.code, 2) << o.err;
    EXPECT_TRUE(contains(o.err, "XM_KERNEL_DIR: there is no folder '/no/such/kernels'"))
        << o.err;
}

TEST(Failures, AModelIsNotReplacedUnasked)
{
    Folder folder("replaced");
    Words words = {"make-model", "-o", folder.path, "--blank"};
    EXPECT_EQ(run(words).code, 0) << "an empty folder";
    const auto before = read_file(folder.path + "/openvino_model.xml");
    words.push_back("--layers=1");
    Outcome o = run(words);
    EXPECT_EQ(o.code, 2) << o.err;
    EXPECT_TRUE(contains(o.err, "is not empty: choose another folder, or give --force"))
        << o.err;
    EXPECT_EQ(read_file(folder.path + "/openvino_model.xml"), before);
    words.push_back("--force");
    EXPECT_EQ(run(words).code, 0);
    EXPECT_NE(read_file(folder.path + "/openvino_model.xml"), before);
}

/* The second of two writers of a file notices it before it writes anything. With --force both
 * continue, and the file is that of one of them. */
TEST(Failures, TwoModelsOfOneNameAreNotWrittenAtOnce)
{
    Folder folder("two_writers");
    const std::string file = folder / "m.gguf";
    const Words large = {"make-model", "--arch", "qwen3moe", "--hidden", "4096",
                         "--layers",   "64",     "-o",       file};
    Program first(large);
    first.wait_for_errors("writing about ");
    const Outcome o = run({"make-model", "-o", file});
    EXPECT_EQ(o.code, 3) << o.err;
    EXPECT_EQ(o.err, "xemoe: another program is writing '" + file + "'\n");
    EXPECT_FALSE(std::filesystem::exists(file));
    const Outcome forced = run({"make-model", "--force", "-o", file});
    EXPECT_EQ(forced.code, 0) << forced.err;
    EXPECT_EQ(run({"info", file}).code, 0);
    first.interrupt();
    EXPECT_EQ(first.finish().code, 130);
    EXPECT_EQ(run({"info", file}).code, 0) << "its own file is whole";
    EXPECT_EQ(folder.names(), std::set<std::string>{"m.gguf"});
}

/* A writer holds the folder's lock while it looks for other writers and begins; the next one
 * waits for the lock. */
TEST(Failures, AWriterWaitsForItsTurnToBegin)
{
    Folder folder("turns");
    const std::string file = folder / "m.gguf";
    const int turn = open(folder.path.c_str(), O_RDONLY | O_DIRECTORY);
    ASSERT_GE(turn, 0);
    ASSERT_EQ(flock(turn, LOCK_EX), 0);
    Program writer({"make-model", "-o", file});
    usleep(400000);
    EXPECT_TRUE(folder.names().empty()) << "not begun";
    close(turn);
    EXPECT_EQ(writer.finish().code, 0);
    EXPECT_EQ(folder.names(), std::set<std::string>{"m.gguf"});
}

/* Of several writers that begin at the same time one succeeds. */
TEST(Failures, OfWritersThatBeginTogetherOneWins)
{
    Folder folder("together");
    const std::string file = folder / "m.gguf";
    std::vector<std::unique_ptr<Program>> all;
    int good = 0;
    for (int i = 0; i < 4; i++)
        all.push_back(std::make_unique<Program>(
            Words{"make-model", "--layers", "12", "--hidden", "1024", "-o", file}));
    for (auto &program : all) {
        const Outcome o = program->finish();
        good += o.code == 0;
        EXPECT_TRUE(o.code == 0 || contains(o.err, "another program is writing") ||
                    contains(o.err, "exists already") ||
                    contains(o.err, "has been created since"))
            << o.err;
        EXPECT_EQ(o.out.empty(), o.code != 0);
    }
    EXPECT_EQ(good, 1);
    EXPECT_EQ(run({"info", file}).code, 0);
    EXPECT_EQ(folder.names(), std::set<std::string>{"m.gguf"});
}

/* For each form of output: text, JSON, an array, the help. */
TEST(Failures, OutputThatCannotBeWrittenHasOneCode)
{
    if (!std::filesystem::exists("/dev/full"))
        GTEST_SKIP() << "there is no /dev/full";
    for (const Words &command :
         {Words{"devices"}, Words{"devices", "--json"}, Words{"info", model},
          Words{"plan", model, "--device-as", "dg2"}, Words{"plan", "--help"}}) {
        Outcome o = Program(command, {}, "/dev/null", "/dev/full").finish();
        EXPECT_EQ(o.code, 3) << command[0] << ": " << o.err;
        EXPECT_TRUE(contains(o.err, "standard output")) << o.err;
    }
    for (const char *file : {"/dev/full", "/nowhere/a.npy"}) {
        Outcome o =
            run({"logits", "-m", model, "-d", "REFERENCE", "--ids", "1", "-o", file});
        EXPECT_EQ(o.code, 3) << o.err;
        EXPECT_TRUE(contains(o.err, file)) << o.err;
    }
}

/* The passes of this model take seconds. */
TEST(Failures, CtrlCEndsLoadingWithASentence)
{
    Folder folder("loading");
    ASSERT_EQ(run({"make-model", "-o", folder.path, "--blank", "--layers", "96"}).code,
              0);
    Program p({"generate", "-m", folder.path, "-d", "REFERENCE", "--ids", "1"},
              {"XM_DEBUG=passes"});
    p.wait_for_errors("passes: ");
    p.interrupt();
    Outcome o = p.finish();
    EXPECT_EQ(o.code, 130) << o.err;
    EXPECT_TRUE(contains(o.err, "xemoe: stopped by Ctrl-C\n")) << o.err;
    EXPECT_EQ(o.out, "");
}

/* xemoe benchmark_app starts a separate program, which may not be installed. */
TEST(Failures, AMissingProgramIsASentence)
{
    Folder folder("alone");
    std::filesystem::copy(XM_PROGRAM, folder / "xemoe");
    const std::string command =
        (folder / "xemoe") + " benchmark_app -h 2>" + (folder / "err");
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 3);
    EXPECT_EQ(read_file(folder / "err").find("xemoe: the program benchmark_app is "), 0u)
        << read_file(folder / "err");
    std::ofstream(folder / "benchmark_app") << "no program";
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 3);
    EXPECT_NE(read_file(folder / "err").find("cannot be started: Permission denied"),
              std::string::npos);
}
