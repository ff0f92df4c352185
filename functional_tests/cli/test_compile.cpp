/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe compile: the compiled file gives the same text in another process, or an error text says
 * why not.
 */
#include "functional_tests/common/cases.h"
#include "functional_tests/common/comma_locale.h"
#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/kernels.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>

namespace
{

const std::string models = XM_MODELS_DIR;
const std::string tiny = models + "/qwen3moe-tiny/ov/int4_asym_g64";
const char *const ids = "5,70,12,9,33,101,8";

class Compile : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
    Outcome compile(const std::string &model, const Words &options = {},
                    const Words &settings = {})
    {
        Words words = {"compile", model, "-o", blob};
        words.insert(words.end(), options.begin(), options.end());
        return run(words, settings);
    }
    Outcome generate(const std::string &model, const Words &options = {},
                     const Words &settings = {})
    {
        Words words = {"generate", "-m", model,          "--ids", ids,
                       "-n",       "12", "--ignore-eos", "--json"};
        words.insert(words.end(), options.begin(), options.end());
        return run(words, settings);
    }
    void expect_refused(const Outcome &o, const char *words)
    {
        EXPECT_EQ(o.code, 3) << o.out;
        EXPECT_TRUE(contains(o.err, words)) << o.err;
        EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
    }
    Folder folder{"compile"};
    const std::string blob = folder / "model.xmblob";
};

/* Models with and without a tokenizer, some in each precision. */
TEST_F(Compile, GivesTheSameIdsInAnotherProcess)
{
    std::vector<std::string> list;
    for (const auto &file : std::filesystem::recursive_directory_iterator(models)) {
        if (file.path().filename() == "openvino_model.xml")
            list.push_back(file.path().parent_path());
    }
    std::sort(list.begin(), list.end());
    ASSERT_GE(list.size(), 7u);
    const std::vector<std::string> precisions = {"f16", "f32"};
    for (const auto &[model, precision] : dealt(some(list, 4), precisions, 1)) {
        SCOPED_TRACE(model + " " + precision);
        Outcome o = compile(model, {"--precision", precision});
        ASSERT_EQ(o.code, 0) << o.err;
        EXPECT_TRUE(contains(o.out, "model.xmblob: ")) << o.out;
        Outcome want = generate(model, {"--precision", precision}),
                got = generate(blob, {"--precision", precision});
        ASSERT_EQ(want.code, 0) << want.err;
        ASSERT_EQ(got.code, 0) << got.err;
        EXPECT_EQ(Json(got.out).ids("/ids"), Json(want.out).ids("/ids"));
    }
}

TEST_F(Compile, SaysAsJsonWhatItWrote)
{
    const std::string file = folder / "json.blob";
    const Outcome o = run(
        {"compile", models + "/qwen3moe-tiny/ov/int4_asym_g64", "-o", file, "--json"});
    ASSERT_EQ(o.code, 0) << o.err;
    const Json json(o.out);
    EXPECT_EQ(json.text("/file"), file);
    EXPECT_EQ(json.number("/bytes"), (double)std::filesystem::file_size(file));
    EXPECT_GT(json.number("/compile_s"), 0);
}

TEST_F(Compile, KeepsTheKernels)
{
    ASSERT_EQ(compile(tiny, {"--cache-dir", folder / "cache"}).code, 0);
    Outcome o = generate(blob, {"--cache-dir", "none", "-v"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.err, "kernels: 0 built, ")) << o.err;
    EXPECT_TRUE(contains(o.err, "FuseMOE3GemmCompressed")) << o.err;
}

TEST_F(Compile, ServesTextChatAndParallelTexts)
{
    ASSERT_EQ(compile(tiny).code, 0);
    Outcome want = run({"generate", "-m", tiny, "-p", "Paris is", "-n", "4"});
    EXPECT_EQ(run({"generate", "-m", blob, "-p", "Paris is", "-n", "4"}).out, want.out);
    folder.write("line", "Paris is\n");
    const Words chat = {"chat", "-n", "4", "--temp", "0", "-m"};
    Words there = chat, here = chat;
    there.push_back(tiny);
    here.push_back(blob);
    Program a(there, {}, folder / "line"), b(here, {}, folder / "line");
    EXPECT_EQ(a.finish().out, b.finish().out);
    for (const char *command : {"logits", "perplexity", "verify"})
        expect_refused(
            run({command, "-m", blob, "--ids", ids}),
            "a compiled model can be used only by generate, chat, serve and bench: "
            "give the model itself");
    want = run({"generate", "-m", tiny, "-p", "Paris is", "-n", "4", "--parallel", "2"});
    EXPECT_EQ(
        run({"generate", "-m", blob, "-p", "Paris is", "-n", "4", "--parallel", "2"}).out,
        want.out);
}

/* bench shows the model that the file was compiled from, without a warning if that model is gone.
 */
TEST_F(Compile, IsNamedByBenchAsItsModelIs)
{
    const std::string copy = folder / "model";
    std::filesystem::create_directory(copy);
    for (const char *file :
         {"/openvino_model.xml", "/openvino_model.bin", "/config.json"})
        std::filesystem::copy(tiny + file, copy + file);
    ASSERT_EQ(compile(copy).code, 0);
    auto bench = [](const std::string &model) {
        return run({"bench", model, "-p", "1", "-n", "0", "-r", "1", "-o", "json"}).out;
    };
    const Json want(bench(tiny)), got(bench(blob));
    EXPECT_EQ(got.text("/0/model_type"), want.text("/0/model_type"));
    EXPECT_NE(got.text("/0/model_type"), "");
    for (const char *key : {"/0/model_size", "/0/model_n_params"}) {
        EXPECT_EQ(got.number(key), want.number(key)) << key;
        EXPECT_GT(got.number(key), 0) << key;
    }
    std::filesystem::remove(copy + "/openvino_model.xml");
    const Json alone(bench(blob));
    EXPECT_EQ(alone.text("/0/model_type"), "");
    EXPECT_EQ(alone.number("/0/n_prompt"), 1);
}

/* `info` describes the file and the model that it was compiled from. */
TEST_F(Compile, IsDescribedByInfo)
{
    ASSERT_EQ(compile(tiny, {"--kv", "i8"}).code, 0);
    const Outcome text = run({"info", blob});
    EXPECT_EQ(text.code, 0) << text.err;
    for (const char *part :
         {"compiled by   xemoe ", "device ", "KV_CACHE_PRECISION=i8",
          " changed the graph", "openvino_model.bin, ", "qwen3_moe", "parameters"})
        EXPECT_TRUE(contains(text.out, part)) << part << " in\n" << text.out;
    const Json j(run({"info", blob, "--json"}).out);
    EXPECT_EQ(j.text("/compiled/options/KV_CACHE_PRECISION"), "i8");
    EXPECT_GT(j.number("/compiled/passes"), j.number("/compiled/passes_with_progress"));
    EXPECT_GT(j.number("/compiled/passes_with_progress"), 0);
    EXPECT_GT(j.number("/compiled/kernels"), 0);
    EXPECT_EQ(j.number("/compiled/bytes"), (double)std::filesystem::file_size(blob));
    EXPECT_EQ(j.number("/compiled/files/0/bytes"),
              (double)std::filesystem::file_size(tiny + "/openvino_model.bin"));
    EXPECT_EQ(j.number("/parameters"),
              Json(run({"info", tiny, "--json"}).out).number("/parameters"));
    const Outcome steps = run({"info", blob, "-v"});
    EXPECT_TRUE(contains(steps.out, "\nsteps (")) << steps.err << steps.out;
    EXPECT_EQ(run({"info", blob, "--svg", folder / "x.svg"}).code, 2);
}

/* With the options it was compiled with, unless others are given. */
TEST_F(Compile, IsPlannedAsItsModel)
{
    ASSERT_EQ(compile(tiny, {"--kv", "i8"}).code, 0);
    const Json its(run({"plan", blob, "--json"}).out),
        of_model(run({"plan", tiny, "--kv", "i8", "--json"}).out);
    EXPECT_EQ(its.text("/kv_cache"), "i8");
    EXPECT_EQ(its.number("/needed"), of_model.number("/needed"));
    EXPECT_EQ(its.text("/compiled_from"), tiny + "/openvino_model.xml");
    EXPECT_EQ(Json(run({"plan", blob, "--kv", "u4", "--json"}).out).text("/kv_cache"),
              "u4");
    const Outcome text = run({"plan", blob});
    EXPECT_TRUE(contains(text.out, "model.xmblob (compiled from " + tiny)) << text.out;
}

/* What the file itself contains is shown without its model. */
TEST_F(Compile, IsDescribedByInfoWithoutItsModel)
{
    const std::string copy = folder / "model";
    std::filesystem::copy(tiny, copy);
    ASSERT_EQ(compile(copy).code, 0);
    std::filesystem::remove_all(copy);
    const Outcome o = run({"info", blob});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "model         not read: the compiled model reads its "))
        << o.out;
    const Json j(run({"info", blob, "--json"}).out);
    EXPECT_TRUE(contains(j.text("/reasons/model"), "openvino_model.bin"));
    std::string bytes = read_file(blob);
    bytes[33] ^= 1; /* a byte of the header */
    folder.write("model.xmblob", bytes);
    expect_refused(run({"info", blob}), "the compiled model is damaged");
}

TEST_F(Compile, WorksUnderALocaleWithCommasAndInAReadOnlyFolder)
{
    CommaLocale comma;
    REQUIRE_COMMA_LOCALE(comma);
    const Words settings = {"LC_ALL=" + std::string(CommaLocale::name),
                            "LOCPATH=" + comma.path()};
    ASSERT_EQ(compile(tiny, {}, settings).code, 0);
    const Outcome want = generate(tiny);
    chmod(folder.path.c_str(), 0500);
    Outcome got = generate(blob, {}, settings);
    chmod(folder.path.c_str(), 0700);
    ASSERT_EQ(got.code, 0) << got.err;
    EXPECT_EQ(Json(got.out).ids("/ids"), Json(want.out).ids("/ids"));
}

TEST_F(Compile, SaysWhatItCannotWriteOrRead)
{
    expect_refused(run({"compile", tiny, "-o", "/dev/full"}),
                   "'/dev/full' cannot be written: No space left on device");
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
    expect_refused(run({"compile", tiny, "-o", folder / "no/such/file"}),
                   "No such file or directory");
    EXPECT_EQ(run({"compile", tiny}).code, 2);
    ASSERT_EQ(compile(tiny).code, 0);
    EXPECT_EQ(folder.names(), std::set<std::string>{"model.xmblob"});
    expect_refused(generate(blob, {"--precision", "f32"}),
                   "compiled with --precision f16");
    expect_refused(generate(blob, {"--device", "REFERENCE"}),
                   "device REFERENCE cannot import compiled models");
    expect_refused(run({"compile", blob, "-o", folder / "again"}),
                   ("model.xmblob is a compiled model already: give the model from which "
                    "it was compiled, " +
                    tiny + "/openvino_model.xml\n")
                       .c_str());
    std::filesystem::resize_file(blob, 70000);
    expect_refused(generate(blob), "model.xmblob: the compiled model is damaged");
}

TEST_F(Compile, NeedsTheModelAsItWas)
{
    const std::string moved = folder / "model";
    std::filesystem::copy(tiny, moved, std::filesystem::copy_options::recursive);
    ASSERT_EQ(compile(moved).code, 0);
    const std::string bin = moved + "/openvino_model.bin";
    const auto bytes = std::filesystem::file_size(bin);
    const Outcome slip = run({"compile", moved, "-o", bin});
    EXPECT_EQ(slip.code, 2);
    EXPECT_TRUE(contains(slip.err, "is not a compiled model, so it is not replaced"))
        << slip.err;
    EXPECT_EQ(std::filesystem::file_size(bin), bytes);
    std::filesystem::last_write_time(bin, std::filesystem::last_write_time(bin) +
                                              std::chrono::seconds(2));
    expect_refused(generate(blob), "has changed since the model was compiled");
    std::filesystem::remove(bin);
    expect_refused(generate(blob), "No such file or directory");
}

} // namespace
