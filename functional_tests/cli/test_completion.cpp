/* SPDX-License-Identifier: Apache-2.0
 *
 * Shell completion: names of chips in all shells, and the words of a command line in bash.
 */
#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

#include <cstdlib>
#include <filesystem>
#include <regex>

namespace
{

/* The error text for an unknown name lists all names. */
TEST(Completion, HasTheNamesOfChipsAndCards)
{
    const std::string err = run({"list", "/", "--device-as", "none"}).err;
    const std::string has = "; known are ";
    const size_t at = err.find(has);
    ASSERT_NE(at, std::string::npos) << err;
    const std::string chips =
        err.substr(at + has.size(), err.find('\n', at) - at - has.size());
    ASSERT_TRUE(contains(chips, " bmg") && contains(chips, " b580")) << chips;
    const std::string with_commas = std::regex_replace(chips, std::regex(" "), ",");
    EXPECT_EQ(count(run({"make-docs", "bash"}).out, " --device-as=" + with_commas + " "),
              3u)
        << "of info, list and plan";
    EXPECT_EQ(count(run({"make-docs", "zsh"}).out, ":CHIP:(" + chips + ")"), 3u);
    EXPECT_EQ(count(run({"make-docs", "fish"}).out, "-l device-as -x -a '" + chips + "'"),
              3u);
}

/* `words`: as bash splits them, which makes '=' a word. Returns the replies, separated by '|'. */
std::string
bash_completes(const std::string &folder, const std::string &words)
{
    const std::string command = "cd " + folder +
                                "; bash -c '. ./completion; COMP_WORDS=(xemoe " + words +
                                ") COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _xemoe; "
                                "IFS=\"|\"; printf %s \"${COMPREPLY[*]}\"' > out 2>err";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    EXPECT_EQ(read_file(folder + "/err"), "");
    return read_file(folder + "/out");
}

TEST(Completion, OfWordsInBash)
{
    if (std::system("bash -c 'type mapfile' >/dev/null 2>&1") != 0)
        GTEST_SKIP() << "no bash";
    const Folder folder("completion");
    folder.write("completion", run({"make-docs", "bash"}).out);
    folder.write("my model.gguf", "");
    std::filesystem::create_directories(folder / "my models/b");
    const struct {
        const char *words, *replies;
    } rows[] = {
        {"plan --device-as bm", "bmg"},
        {"plan --device-as = bm", "bmg"},
        {"plan --device-as=bm", "--device-as=bmg"},
        {"info --svg x --device-as = tg", "tgl"},
        {"plan --weights =", "map|copy|auto"},
        {"list my", "my models"},
        {"list -d GPU my", "my models"},
        {"list --json my", "my models"},
        {"list -c my", ""},
        {"plan my", "my model.gguf|my models"},
        {"plan -m my", "my model.gguf|my models"},
        {"plan --model = my", "my model.gguf|my models"},
        {"chat --model=my", "--model=my model.gguf|--model=my models"},
        {"generate --cache-dir my", "my models"},
        {"selftest --only stepss", ""},
        {"selftest --only step", "steps"},
        {"selftest --only = q4", "q4_k|q4_0|q4_1"},
        {"opt fuse_gl", "fuse_glu"},
    };
    for (const auto &row : rows) {
        std::string found = bash_completes(folder.path, row.words);
        if (contains(found, "my models|")) /* the order of the folder */
            found = std::regex_replace(found, std::regex("(.*)\\|(.*)"), "$2|$1");
        EXPECT_EQ(found, row.replies) << row.words;
    }
}

} // namespace
