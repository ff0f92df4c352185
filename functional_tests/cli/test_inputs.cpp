/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrong inputs: pipes and devices instead of files, files of other types, arrays of other types.
 * Each gives one error text at once, which contains the path once.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

namespace fs = std::filesystem;

static const std::string original = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

/* ---- files beside the model --------------------------------------------------------- */

class Beside : public testing::TestWithParam<const char *>
{
  protected:
    const Folder folder{"beside"};

    void SetUp() override
    {
        for (const fs::directory_entry &e : fs::directory_iterator(original)) {
            if (e.path().filename() != GetParam())
                fs::create_symlink(e.path(), folder / e.path().filename());
        }
    }

    void expect_refusal() const
    {
        const bool is_template = std::string(GetParam()).find("chat") == 0;
        Outcome o = run(is_template ? Words{"chat", "-m", folder.path, "-d", "REFERENCE"}
                                    : Words{"generate", "-m", folder.path, "-d",
                                            "REFERENCE", "-p", "x", "-n", "1"});
        EXPECT_EQ(o.code, 3) << o.err;
        EXPECT_NE(o.err.find("is not a regular file"), std::string::npos) << o.err;
        EXPECT_EQ(count(o.err, folder / GetParam()), 1u) << o.err;
    }
};

TEST_P(Beside, APipeIsNotWaitedFor)
{
    ASSERT_EQ(mkfifo((folder / GetParam()).c_str(), 0600), 0);
    expect_refusal();
}

TEST_P(Beside, ADeviceIsNotReadWithoutEnd)
{
    fs::create_symlink("/dev/zero", folder / GetParam());
    expect_refusal();
}

INSTANTIATE_TEST_SUITE_P(Files, Beside,
                         testing::Values("tokenizer.json", "config.json",
                                         "generation_config.json", "chat_template.jinja"),
                         [](const auto &info) {
                             return std::string(info.param, strcspn(info.param, "."));
                         });

/* ---- files instead of a model ------------------------------------------------------- */

TEST(InsteadOfAModel, TheSentenceSaysWhatTheFileIs)
{
    const Folder folder("instead");
    const std::pair<const char *, std::string> files[] = {
        {"text", "# A title\n\nand text\n"},
        {"JSON", "{\"model_type\": \"x\"}"},
        {"a zip archive", std::string("PK\3\4", 4)},
        {"a safetensors file, which has weights without a graph",
         std::string("\x12\0\0\0\0\0\0\0{\"w\":{}}        ", 26)},
        {"binary data", std::string("\0\1\2\3", 4)},
        {"binary data", std::string("abcd\0\1", 6)},
        {"a llama.cpp model in a format older than GGUF", std::string("tjgg\3\0\0\0", 8)},
        {"empty", ""},
    };
    for (const auto &[what, content] : files) {
        SCOPED_TRACE(what);
        folder.write("model", content);
        Outcome o = run({"info", folder / "model"});
        EXPECT_EQ(o.code, 3);
        EXPECT_NE(o.err.find(std::string("it is ") + what), std::string::npos) << o.err;
        EXPECT_NE(o.err.find("expected an OpenVINO IR"), std::string::npos) << o.err;
        EXPECT_EQ(o.err.find("well-formed"), std::string::npos) << o.err;
        EXPECT_EQ(count(o.err, folder / "model"), 1u) << o.err;
    }
    folder.write("model", std::string("GGUF\3\0\0\0", 8));
    EXPECT_NE(run({"info", folder / "model"}).err.find("tensors: expected 8 bytes"),
              std::string::npos)
        << "what begins as GGUF is read as GGUF";
    folder.write("model", "\xef\xbb\xbf \n<?xml version=\"1.0\"?><net");
    EXPECT_NE(run({"info", folder / "model"}).err.find("not valid XML: "),
              std::string::npos)
        << "what begins as XML is read as XML";
}

TEST(InsteadOfAModel, AFolderWithoutOneAndAPathWithoutAFileAreNamedOnce)
{
    const Folder folder("none");
    Outcome o = run({"info", folder.path});
    EXPECT_EQ(o.code, 3);
    EXPECT_NE(o.err.find("holds neither openvino_model.xml nor a .gguf file"),
              std::string::npos)
        << o.err;
    EXPECT_EQ(count(o.err, folder.path), 1u) << o.err;
    o = run({"info", folder / "missing.xml"});
    EXPECT_EQ(o.code, 3);
    EXPECT_EQ(count(o.err, folder / "missing.xml"), 1u) << o.err;
}

/* ---- arrays ------------------------------------------------------------------------ */

static std::string
npy(const std::string &type, const std::string &shape, size_t bytes)
{
    std::string header =
        "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
    header.resize(117, ' ');
    header += '\n';
    return std::string("\x93NUMPY\1\0", 8) + (char)header.size() + '\0' + header +
           std::string(bytes, '\0');
}

TEST(Arrays, AreRefusedInWordsWithoutTheirHeadersRemains)
{
    const Folder folder("arrays");
    const std::pair<const char *, std::string> files[] = {
        {"of type '<f8', expected", npy("<f8", "(3,)", 24)},
        {"has the shape (3, 1, 1), expected", npy("<i8", "(3, 1, 1)", 24)},
        {"has the shape (), expected", npy("<i8", "()", 8)},
        {"has 9 x 9 elements, but only 24 bytes", npy("<i8", "(9, 9)", 24)},
        {"the header of the .npy file has no",
         npy("<i8", "(3,)", 24).replace(12, 1, "_")},
    };
    for (const auto &[with, content] : files) {
        SCOPED_TRACE(with);
        folder.write("ids.npy", content);
        Outcome o = run({"logits", "-m", original, "-d", "REFERENCE", "--ids",
                         "@" + (folder / "ids.npy")});
        EXPECT_EQ(o.code, 3);
        EXPECT_NE(o.err.find(with), std::string::npos) << o.err;
        EXPECT_EQ(o.err.find("'fortran_order': "), std::string::npos) << o.err;
    }
}

/* ---- graphs and synthetic models ---------------------------------------------------- */

TEST(Opt, ReadsWithBound)
{
    Outcome o = run({"opt", "fuse_glu"}, {}, "/dev/zero");
    EXPECT_EQ(o.code, 3);
    EXPECT_NE(o.err.find("can have at most 256 MiB"), std::string::npos) << o.err;
}

TEST(Experts, SaySoWhereThePassesThatTakeThemWereLeftOut)
{
    Outcome o = run({"generate", "-m", original, "-d", "REFERENCE", "-p", "x", "-n", "1"},
                    {"XM_SKIP=ConvertMOEToMOECompressed,LowerUnfusedMoE"});
    if (o.code == 0) /* the reference runs the graph without passes */
        o = run({"info", "-v", original},
                {"XM_SKIP=ConvertMOEToMOECompressed,LowerUnfusedMoE"});
    EXPECT_NE(o.code, 0);
    EXPECT_NE(o.err.find("XM_SKIP or XM_STOP excludes"), std::string::npos) << o.err;
}

/* Compares the row of --list with the model that is made from it. */
TEST(MakeModel, TellsItsSizesAndKeepsThem)
{
    const Folder folder("defaults");
    std::istringstream list(run({"make-model", "--list"}).out);
    std::string line, name, graph;
    double layers, hidden, experts, top_k, width, vocabulary;
    ASSERT_EQ(run({"make-model", "-o", folder / "m"}).code, 0);
    const Json config(read_file(folder / "m/config.json"));
    std::getline(list, line);
    list >> name >> graph >> layers >> hidden >> experts >> top_k >> width >> vocabulary;
    EXPECT_EQ(name, "qwen3moe");
    EXPECT_EQ(layers, config.number("/num_hidden_layers"));
    EXPECT_EQ(hidden, config.number("/hidden_size"));
    EXPECT_EQ(experts, config.number("/num_experts"));
    EXPECT_EQ(top_k, config.number("/num_experts_per_tok"));
    EXPECT_EQ(width, config.number("/moe_intermediate_size"));
    EXPECT_EQ(vocabulary, config.number("/vocab_size"));
}

/* Every small model of the list in both formats: if it has experts they are fused, and it
 * generates text. */
TEST(MakeModel, MakesEachArchitectureAsIrAndGguf)
{
    const Folder folder("architectures");
    std::istringstream list(run({"make-model", "--list"}).out);
    std::string line;
    std::getline(list, line);
    int n_made = 0;
    while (std::getline(list, line)) {
        std::istringstream row(line);
        std::string name, graph;
        int layers, hidden, experts;
        row >> name >> graph >> layers >> hidden >> experts;
        if (hidden > 256)
            continue;
        n_made++;
        for (const char *ending : {"", ".gguf"}) {
            const std::string path = folder / (name + ending);
            SCOPED_TRACE(path);
            Outcome o = run({"make-model", "--arch", name, "-o", path});
            ASSERT_EQ(o.code, 0) << o.err;
            o = run({"info", "-v", path});
            EXPECT_EQ(o.code, 0) << o.err;
            EXPECT_EQ(contains(o.out, "moe_3gemm_fused_compressed"), experts > 0);
            o = run({"generate", "-m", path, "-d", "REFERENCE", "-p", "ab", "-n", "2",
                     "--ignore-eos"});
            EXPECT_EQ(o.code, 0) << o.err;
        }
    }
    EXPECT_GE(n_made, 10);
}

/* Equal seeds make equal files, different seeds different ones. */
TEST(MakeModel, IsTheSameForTheSameSeed)
{
    const Folder folder("seeds");
    for (const char *ending : {"a", "b", "c"})
        ASSERT_EQ(run({"make-model", "--arch", "gpt-oss", "--weights", "mxfp4", "--seed",
                       *ending == 'c' ? "2" : "1", "-o",
                       folder / (std::string(ending) + ".gguf")})
                      .code,
                  0);
    EXPECT_EQ(read_file(folder / "a.gguf"), read_file(folder / "b.gguf"));
    EXPECT_NE(read_file(folder / "a.gguf"), read_file(folder / "c.gguf"));
    EXPECT_EQ(run({"make-model", "-o", folder / "a.gguf"}).code, 2) << "it is there";
}

/* The XML cannot be written because a folder has its name; the weights were written before. */
TEST(MakeModel, LeavesNothingOfAFailureAndKeepsTheModelThatWasThere)
{
    const Folder folder("failure");
    folder.write("openvino_model.bin", "precious");
    fs::create_directories(folder / "openvino_model.xml/in_the_way");
    Outcome o = run({"make-model", "-o", folder.path, "--force"});
    EXPECT_EQ(o.code, 3) << o.err;
    EXPECT_EQ(read_file(folder / "openvino_model.bin"), "precious");
    const std::set<std::string> left = {"openvino_model.bin", "openvino_model.xml"};
    EXPECT_EQ(folder.names(), left);
}

/* The leftovers of a run that was killed do not count as a model. */
TEST(MakeModel, GoesOnWhereARunWasStopped)
{
    const Folder folder("stopped");
    /* no process has this id */
    const std::string left = "openvino_model.bin.2147483646.0";
    folder.write(left, "half");
    EXPECT_EQ(run({"make-model", "-o", folder.path}).code, 0);
    EXPECT_EQ(folder.names().count(left), 0u);
}

TEST(MakeModel, WritesToNoFolderThatAnotherWritesTo)
{
    const Folder folder("taken");
    const int fd = open(folder.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(flock(fd, LOCK_EX), 0);
    const Outcome o = run({"make-model", "-o", folder.path, "--force"});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, "another program is writing a model to the folder"))
        << o.err;
    EXPECT_EQ(folder.names().size(), 0u);
    close(fd);
    EXPECT_EQ(run({"make-model", "-o", folder.path}).code, 0);
}

/* Whichever is first: one complete model, and an error text from each run that did not write it. */
TEST(MakeModel, OneOfTwoAtOnceWritesTheModel)
{
    for (const char *path : {"m", "m.gguf"}) {
        const Folder folder("race");
        const std::string model = folder / path;
        const auto words = [&](const char *seed) {
            return Words{"make-model", "-o", model, "--seed", seed};
        };
        Program a(words("1")), b(words("2"));
        const Outcome of_a = a.finish(), of_b = b.finish();
        const int n = (of_a.code == 0) + (of_b.code == 0);
        /* both may succeed, one after the other */
        const int most = std::string(path) == "m" ? 1 : 2;
        EXPECT_LE(n, most) << of_a.err << of_b.err;
        EXPECT_GE(n, 1) << of_a.err << of_b.err;
        for (const Outcome &o : {of_a, of_b})
            EXPECT_EQ(o.code == 0, !contains(o.err, "xemoe: ")) << o.err;
        EXPECT_EQ(run({"info", model}).code, 0);
    }
}
