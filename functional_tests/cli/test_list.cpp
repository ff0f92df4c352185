/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe list: the models below a folder, their order and facts; files that cannot be read are
 * rows with a reason; the table fits the terminal.
 */
#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/small_ir.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>

namespace
{

namespace fs = std::filesystem;
const std::string models = XM_MODELS_DIR;
const std::string ir = models + "/qwen3moe-tiny/ov/int4_asym_g64";
const std::string gguf = models + "/qwen3moe-tiny/gguf/qwen3moe-tiny-Q4_K_M.gguf";

/* A folder with some models. Chips that are not present are planned for. */
class List : public testing::Test
{
  protected:
    Folder folder{"list"};
    const std::string root = folder.path;

    void SetUp() override
    {
        fs::create_directories(root + "/b/deep");
        fs::create_directory_symlink(ir, root + "/ir");
        fs::copy_file(gguf, root + "/b/deep/m.gguf");
    }
    Outcome list(const Words &options = {}, const std::string &chip = "bmg") const
    {
        Words words = {"list", root, "--device-as", chip};
        words.insert(words.end(), options.begin(), options.end());
        return run(words);
    }
    Json json(const Words &options = {}) const
    {
        Words all = options;
        all.push_back("--json");
        const Outcome o = list(all);
        EXPECT_EQ(o.code, 0) << o.err;
        return Json(o.out);
    }
    static size_t size(const Json &j)
    {
        return yyjson_arr_size(j.at("/models"));
    }
    static std::vector<std::string> paths(const Json &j)
    {
        std::vector<std::string> all;
        for (size_t i = 0; i < size(j); i++)
            all.push_back(j.text("/models/" + std::to_string(i) + "/path"));
        return all;
    }
};

TEST_F(List, HasEachModelWithItsFactsInTheOrderOfPaths)
{
    const Json j = json();
    ASSERT_EQ(paths(j), (std::vector<std::string>{"b/deep/m.gguf", "ir"}));
    EXPECT_EQ(j.text("/models/0/kind"), "gguf");
    EXPECT_EQ(j.text("/models/1/kind"), "openvino");
    EXPECT_EQ(j.text("/models/0/weights"), "q4_k");
    EXPECT_EQ(j.text("/models/1/weights"), "u4 g64");
    const Json info(run({"info", gguf, "--json"}).out);
    for (const char *key : {"parameters", "active_parameters"})
        EXPECT_EQ(j.number(std::string("/models/0/") + key),
                  info.number(std::string("/") + key))
            << key;
    EXPECT_EQ(j.number("/models/0/bytes"), (double)fs::file_size(gguf));
    EXPECT_EQ(j.number("/models/1/bytes"),
              (double)(fs::file_size(ir + "/openvino_model.xml") +
                       fs::file_size(ir + "/openvino_model.bin")));
    EXPECT_EQ(j.text("/models/0/reason"), "");
    const Json with = json({"--memory", "8192"});
    EXPECT_TRUE(yyjson_get_bool(with.at("/models/0/fits")));
    EXPECT_EQ(with.number("/models/0/missing_bytes"), 0);
}

TEST_F(List, TakesTheFamilyFromTheGraphWhereNoFileTellsIt)
{
    fs::create_directory_symlink(models + "/gpt-oss-tiny/ov", root + "/oss");
    fs::create_directory_symlink(models + "/gemma4-e-tiny/ov", root + "/z");
    const Json j = json();
    ASSERT_EQ(paths(j),
              (std::vector<std::string>{"b/deep/m.gguf", "ir", "oss/int4_sym_g64",
                                        "z/int4_asym_g64"}));
    EXPECT_EQ(j.text("/models/1/family"), "qwen3_moe");
    EXPECT_EQ(j.text("/models/2/family"), "gpt_oss");
    EXPECT_EQ(j.at("/models/3/family"), nullptr);
}

/* The row has the verdict of `plan`. */
TEST_F(List, SaysWhatDoesNotFit)
{
    const Json j = json({"--memory", "1", "-c", "2048"});
    EXPECT_FALSE(yyjson_get_bool(j.at("/models/0/fits")));
    EXPECT_EQ(j.number("/models/0/context"), 2048);
    EXPECT_GT(j.number("/models/0/missing_bytes"), 0);
    EXPECT_EQ(
        run({"plan", gguf, "--device-as", "bmg", "--memory", "1", "-c", "2048"}).code, 4);
    EXPECT_TRUE(contains(list({"--memory", "1"}).out, " missing"));
    EXPECT_TRUE(contains(list({"--memory", "8192"}).out, "yes, needs "));
}

/* The chip is on cards with memory of different sizes. */
TEST_F(List, DoesNotSayThatAModelFitsInMemoryOfUnknownSize)
{
    EXPECT_EQ(json().at("/models/0/fits"), nullptr);
    EXPECT_GT(json().number("/models/0/needed_bytes"), 0);
    const std::string table = list().out;
    EXPECT_FALSE(contains(table, "yes")) << table;
    EXPECT_TRUE(contains(table, "  needs ")) << table;
}

TEST_F(List, SaysWhoseMemoryItIs)
{
    const std::string whose = "xemoe: the memory of this computer is assumed, because "
                              "140v has no memory of its own";
    EXPECT_TRUE(contains(list({}, "140v").err, whose));
    EXPECT_EQ(list({"--memory", "8192"}, "140v").err, "");
    EXPECT_EQ(list({}, "b580").err, "");
}

/* The row has the error text of `generate`. */
TEST_F(List, SaysWhatGenerateRefuses)
{
    fs::copy(ir, root + "/damaged");
    folder.write("damaged/tokenizer.json", "{");
    fs::copy(ir, root + "/ids");
    fs::remove(root + "/ids/tokenizer.json");
    fs::copy(ir, root + "/unknown");
    folder.write("unknown/tokenizer.json", R"({"model": {"type": "Telepathy"}})");
    folder.write("unknown/generation_config.json", "{}");
    const Json j = json({"--memory", "8192"});
    ASSERT_EQ(paths(j), (std::vector<std::string>{"b/deep/m.gguf", "damaged", "ids", "ir",
                                                  "unknown"}));
    EXPECT_TRUE(contains(j.text("/models/1/reason"), "tokenizer.json"));
    EXPECT_EQ(j.at("/models/1/fits"), nullptr);
    EXPECT_TRUE(contains(j.text("/models/2/no_text"), "there is no tokenizer.json"));
    EXPECT_TRUE(yyjson_get_bool(j.at("/models/2/fits"))) << "token ids run";
    EXPECT_TRUE(contains(j.text("/models/4/no_text"), "Telepathy"));
    EXPECT_EQ(j.text("/models/3/no_text"), "");
    const Outcome o = list({"--memory", "8192"});
    EXPECT_EQ(count(o.out, "no text generation: "), 2u) << o.out;
    for (const char *name : {"damaged", "ids", "unknown"})
        EXPECT_EQ(
            run({"generate", root + "/" + name, "-d", "REFERENCE", "-p", "Hi"}).code, 3)
            << name;
}

TEST_F(List, SaysWhichModelsAreNotForText)
{
    small_mlp(4).save(root + "/mlp");
    const Json j = json();
    ASSERT_EQ(paths(j), (std::vector<std::string>{"b/deep/m.gguf", "ir", "mlp.xml"}));
    EXPECT_TRUE(contains(j.text("/models/2/no_text"),
                         "input 'data' is not an input of text generation"));
    EXPECT_EQ(j.text("/models/2/reason"), "") << "benchmark_app runs it";
    EXPECT_EQ(j.text("/models/1/no_text"), "");
}

TEST_F(List, TellsWhereItLooks)
{
    Terminal t({"list", root, "--device-as", "bmg"});
    EXPECT_TRUE(t.wait_for("searching " + root));
    EXPECT_EQ(t.finish(), 0);
    EXPECT_FALSE(contains(t.text(), "searching")) << t.text();
}

/* A reason wraps below itself, and on narrow terminals below the path. */
TEST_F(List, HasWholeReasonsOnATerminal)
{
    folder.write("cut.gguf", read_file(gguf).substr(0, 1 << 16));
    const std::string reason = json().text("/models/1/reason");
    ASSERT_GT(reason.size(), 60u) << reason;
    for (unsigned short columns : {30, 60, 80, 250}) {
        SCOPED_TRACE(columns);
        Terminal t({"list", root, "--device-as", "bmg"}, {}, columns);
        EXPECT_EQ(t.finish(), 0);
        std::istringstream shown(t.text()), words(reason);
        const Words all(std::istream_iterator<std::string>(shown), {});
        const Words want(std::istream_iterator<std::string>(words), {});
        EXPECT_NE(std::search(all.begin(), all.end(), want.begin(), want.end()),
                  all.end())
            << t.text();
        for (const std::string &row : t.screen.rows())
            EXPECT_LT(row.size(), columns) << row;
    }
}

TEST_F(List, TakesASplitModelOnce)
{
    for (int i = 1; i <= 3; i++) {
        const std::string name = "split-0000" + std::to_string(i) + "-of-00003.gguf";
        fs::copy_file(XM_GGUF_DIR "/" + name, root + "/b/" + name);
    }
    folder.write("b/mmproj-m.gguf", "GGUF");
    const Json j = json();
    ASSERT_EQ(paths(j), (std::vector<std::string>{"b/deep/m.gguf",
                                                  "b/split-00001-of-00003.gguf", "ir"}));
    fs::remove(root + "/b/split-00002-of-00003.gguf");
    EXPECT_TRUE(contains(json().text("/models/1/reason"), "split-00002-of-00003.gguf"));
    fs::remove(root + "/b/split-00001-of-00003.gguf");
    EXPECT_EQ(paths(json())[1], "b/split-00003-of-00003.gguf");
}

TEST_F(List, TakesLinksOfOneFileOnceAndItsNamedOne)
{
    fs::create_directories(root + "/a/blobs");
    fs::rename(root + "/b/deep/m.gguf", root + "/a/blobs/0123abcd");
    EXPECT_EQ(paths(json())[0], "a/blobs/0123abcd") << "known by its first bytes";
    fs::create_symlink(root + "/a/blobs/0123abcd", root + "/b/deep/m.gguf");
    fs::create_directory_symlink(root, root + "/b/around");
    fs::create_symlink(root + "/nowhere", root + "/b/lost.gguf");
    EXPECT_EQ(paths(json()), (std::vector<std::string>{"b/deep/m.gguf", "ir"}));
}

/* Opening a pipe that nobody writes to would block for ever. */
TEST_F(List, DoesNotWaitForPipesAndLoops)
{
    for (const std::string name :
         {"openvino_model.xml", "openvino_model.bin", "tokenizer.json", "config.json",
          "generation_config.json"}) {
        const std::string copy = root + "/no_" + name;
        fs::copy(ir, copy);
        fs::remove(copy + "/" + name);
        ASSERT_EQ(mkfifo((copy + "/" + name).c_str(), 0600), 0) << name;
    }
    ASSERT_EQ(mkfifo((root + "/pipe").c_str(), 0600), 0);
    fs::create_symlink("b.gguf", root + "/a.gguf");
    fs::create_symlink("a.gguf", root + "/b.gguf");
    fs::create_symlink("self", root + "/self");
    fs::create_symlink("nowhere", root + "/dead");
    fs::create_directory_symlink("..", root + "/b/up");
    const Json j = json();
    ASSERT_EQ(paths(j), (std::vector<std::string>{
                            "b/deep/m.gguf", "ir", "no_config.json",
                            "no_generation_config.json", "no_openvino_model.bin",
                            "no_openvino_model.xml", "no_tokenizer.json"}));
    for (const char *i : {"2", "3", "4", "5", "6"})
        EXPECT_TRUE(contains(j.text(std::string("/models/") + i + "/reason"),
                             "is not a regular file"))
            << i;
    for (const char *name : {"self", "pipe", "dead"}) {
        const Outcome o = run({"list", root + "/" + name});
        EXPECT_EQ(o.code, 3) << name;
        EXPECT_TRUE(contains(o.err, "cannot read the folder '" + root)) << o.err;
    }
}

TEST_F(List, HasRowsWithReasonsForWhatCannotBeRead)
{
    std::string half = read_file(gguf);
    folder.write("cut.gguf", half.substr(0, half.size() / 2));
    folder.write("empty.gguf", "");
    folder.write("name\x1b[31m.gguf", "GGUF????");
    folder.write("o.xml", "<net");
    folder.write("o.bin", "");
    folder.write("damaged", "xmblob\r\n0123456789");
    folder.write("notes.txt", "GGU");
    ASSERT_EQ(mkfifo((folder / "pipe.gguf").c_str(), 0600), 0);
    const Json j = json();
    ASSERT_EQ(paths(j), (std::vector<std::string>{"b/deep/m.gguf", "cut.gguf", "damaged",
                                                  "empty.gguf", "ir", "name\x1b[31m.gguf",
                                                  "o.xml"}));
    EXPECT_TRUE(contains(j.text("/models/2/reason"), "damaged"));
    for (const char *i : {"1", "2", "3", "5", "6"}) {
        EXPECT_NE(j.text(std::string("/models/") + i + "/reason"), "") << i;
        EXPECT_FALSE(j.at(std::string("/models/") + i + "/fits")) << i;
    }
    const Outcome o = list();
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(count(o.out, "\n"), 8u) << o.out;
    EXPECT_FALSE(contains(o.out, "\x1b")) << "names go to terminals";
}

/* As another user, because root may read all folders. */
TEST_F(List, HasARowForAFolderThatCannotBeRead)
{
    Settings settings;
    if (geteuid() == 0)
        settings.under = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                          "--clear-groups"};
    fs::permissions(root + "/b/deep", fs::perms::none);
    const Outcome o = run({"list", root, "--device-as", "bmg", "--json"}, settings);
    fs::permissions(root + "/b/deep", fs::perms::owner_all);
    if (geteuid() == 0 && (o.code == -1 || o.code == 127 || o.code == 126))
        GTEST_SKIP() << "no other user can run the program";
    ASSERT_EQ(o.code, 0) << o.err;
    const Json j(o.out);
    EXPECT_EQ(j.text("/models/0/kind"), "folder");
    EXPECT_TRUE(contains(j.text("/models/0/reason"), "Permission denied"));
}

TEST_F(List, ReadsCompiledFiles)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    ASSERT_EQ(run({"compile", root + "/b/deep/m.gguf", "-o", root + "/c.xmblob"}).code,
              0);
    Json j = json();
    ASSERT_EQ(paths(j)[1], "c.xmblob");
    EXPECT_EQ(j.text("/models/1/kind"), "compiled");
    EXPECT_EQ(j.number("/models/1/parameters"), j.number("/models/0/parameters"));
    EXPECT_EQ(j.number("/models/1/bytes"), (double)fs::file_size(root + "/c.xmblob"));
    fs::remove(root + "/b/deep/m.gguf");
    j = json();
    EXPECT_TRUE(contains(j.text("/models/0/reason"), "m.gguf"))
        << j.text("/models/0/path");
}

TEST_F(List, FitsTheTerminal)
{
    fs::create_directories(root + "/b/" + std::string(90, 'x'));
    fs::copy_file(gguf, root + "/b/" + std::string(90, 'x') + "/long.gguf");
    folder.write("b/" + std::string(60, 'y') + ".gguf", "GGUF");
    for (unsigned short columns : {20, 40, 79, 120}) {
        SCOPED_TRACE(columns);
        Terminal t({"list", root, "--device-as", "bmg", "--memory", "8192"}, {}, columns);
        EXPECT_EQ(t.finish(), 0);
        const auto rows = t.screen.rows();
        ASSERT_GE(rows.size(), 5u) << t.text();
        for (const std::string &row : rows)
            EXPECT_LT(std::regex_replace(row, std::regex("…"), ".").size(), columns)
                << row;
        EXPECT_TRUE(contains(rows[2], "long.gguf") || columns == 20) << rows[2];
        EXPECT_TRUE(contains(rows[0], "fits")) << "what one asks for: " << rows[0];
        EXPECT_TRUE(contains(rows[2], "yes, needs") || columns == 20) << rows[2];
    }
    EXPECT_TRUE(contains(list().out, std::string(90, 'x') + "/long.gguf"))
        << "nothing is cut in a file";
}

/* Two paths with the same end would be cut to the same text. */
TEST_F(List, ShowsWholePathsWhereTheirEndsDoNotTellThemApart)
{
    for (const char *family : {"a_first_family", "another_family"}) {
        fs::create_directories(root + "/" + family + "/of/models/in/int4");
        fs::copy_file(gguf, root + "/" + family + "/of/models/in/int4/model.gguf");
    }
    for (unsigned short columns : {50, 120}) {
        SCOPED_TRACE(columns);
        Terminal t({"list", root, "--device-as", "bmg", "--memory", "8192"}, {}, columns);
        EXPECT_EQ(t.finish(), 0);
        const std::string shown = t.text();
        for (const char *family : {"a_first_family", "another_family"})
            EXPECT_TRUE(contains(shown, std::string(family) + "/of/models/in/int4"))
                << shown;
        EXPECT_EQ(contains(shown, "model\n  family"), columns == 50) << shown;
        EXPECT_EQ(count(shown, "yes, needs"), 4u) << shown;
    }
}

/* If the others lack one column, one more is left out. The terminal's last column stays free. */
TEST_F(List, LeavesOutFirstWhatSaysLeastOfWhetherAModelFits)
{
    const auto headings = [&](size_t columns) {
        Terminal t({"list", root, "--device-as", "bmg", "--memory", "8192"}, {},
                   (unsigned short)(columns + 1));
        EXPECT_EQ(t.finish(), 0);
        std::istringstream row(t.screen.rows().at(0));
        return Words(std::istream_iterator<std::string>(row), {});
    };
    std::istringstream table(list({"--memory", "8192"}).out);
    std::string head, line;
    std::getline(table, head);
    size_t columns = head.size();
    while (std::getline(table, line))
        columns = std::max(columns, line.size());
    Words names = {"model", "family", "parameters", "size", "weights", "fits"};
    const Words all = names;
    for (const char *out : {"parameters", "weights", "family", "size"}) {
        EXPECT_EQ(headings(columns), names) << columns;
        const std::string behind = *(std::find(all.begin(), all.end(), out) + 1);
        names.erase(std::find(names.begin(), names.end(), out));
        EXPECT_EQ(headings(columns - 1), names) << columns - 1;
        columns -= head.find(behind) - head.find(out);
    }
}

/* The list is named by commands that take a model. A folder without models has another error
 * text. */
TEST_F(List, IsNamedWhereAFolderIsGivenAsAModel)
{
    const std::string sentence =
        "xemoe: the folder '" + root +
        "' is not a model, but there are models below it: 'xemoe list " + root +
        "' lists them\n";
    for (const Words &words :
         {Words{"plan", root, "--device-as", "bmg"}, Words{"info", root},
          Words{"generate", root, "-p", "x", "-d", "REFERENCE"},
          Words{"bench", "-m", root, "--device", "REFERENCE"}}) {
        const Outcome o = run(words);
        EXPECT_EQ(o.code, 3) << words[0];
        EXPECT_EQ(o.err, sentence);
    }
    fs::create_directories(root + "/b/none/below");
    const Outcome o = run({"plan", root + "/b/none", "--device-as", "bmg"});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, "holds neither openvino_model.xml nor a .gguf file"))
        << o.err;
}

/* As in llama.cpp, also if the model's context is longer than the default of the count. */
TEST_F(List, AContextOf0IsTheModels)
{
    const std::string large = root + "/a.gguf";
    ASSERT_EQ(run({"make-model", "-o", large, "--arch", "qwen3-30b-a3b", "--layers", "1",
                   "--blank"})
                  .code,
              0);
    auto planned = [&](const Words &more) {
        Words words = {"plan", large, "--device-as", "bmg", "--memory", "8192", "--json"};
        words.insert(words.end(), more.begin(), more.end());
        return Json(run(words).out);
    };
    const Json plan = planned({"-c", "0"});
    EXPECT_EQ(plan.number("/context"), plan.number("/trained_context"));
    EXPECT_GT(plan.number("/context"), planned({}).number("/context"));
    const Json j = json({"-c", "0", "--memory", "8192"});
    EXPECT_EQ(j.number("/models/0/context"), plan.number("/context"));
    EXPECT_EQ(j.number("/models/1/context"), 2048) << "each its own";
}

TEST_F(List, RefusesWhatIsNoFolder)
{
    Outcome o = run({"list", root + "/none"});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, "cannot read the folder")) << o.err;
    o = run({"list", gguf});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, "is a file, not a folder: 'xemoe info'")) << o.err;
    EXPECT_EQ(run({"list"}).code, 2);
    EXPECT_EQ(list({}, "nonsense").code, 2);
    EXPECT_EQ(run({"list", root, "-d", "GPU.77"}).code, 4);
    fs::create_directories(root + "/b/none");
    o = run({"list", root + "/b/none"});
    EXPECT_EQ(o.code, 0);
    EXPECT_TRUE(contains(o.err, "there is no model in or below")) << o.err;
    EXPECT_EQ(o.out, "");
}

} // namespace
