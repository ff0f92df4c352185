/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person sees of generate on a terminal: progress, the text as it comes, nothing else.
 */
#include <filesystem>
#include <fstream>

#include "functional_tests/common/program.h"
#include "functional_tests/common/terminal.h"

static const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

static Words
generate(const Words &more)
{
    Words words = {
        "generate", "-m", model, "-d", "REFERENCE", "-p", "Paris is the capital of"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

TEST(Terminal, ShowsTheTextOfGenerate)
{
    Terminal t(generate({"-n", "2"}));
    EXPECT_EQ(t.finish(), 0);
    EXPECT_EQ(t.text(), " France.\n") << t.raw();
}

TEST(Terminal, ShowsWhatIsWaitedForAndWipesIt)
{
    Terminal t(generate({"-n", "2"}));
    EXPECT_EQ(t.finish(), 0);
    for (const char *line :
         {"reading " XM_MODELS_DIR, "compiling ", "reading a prompt of"})
        EXPECT_NE(t.raw().find(line), std::string::npos) << line;
    EXPECT_EQ(t.text().find("reading"), std::string::npos) << t.text();
}

/* A line that has wrapped would leave its beginning behind. */
TEST(Terminal, ProgressFitsIntoANarrowTerminal)
{
    Terminal t(generate({"-n", "2"}), {}, 20);
    EXPECT_EQ(t.finish(), 0);
    EXPECT_EQ(t.text(), " France.\n") << t.raw();
}

/* Names of files may have been chosen by whoever made the files. */
TEST(Terminal, NamesOfFilesDoNotControlIt)
{
    const std::string folder =
                          testing::TempDir() + "xemoe_names_" + std::to_string(getpid()),
                      file = folder + "/a\033]2;title\007.gguf";
    std::filesystem::create_directory(folder);
    std::ofstream(file) << "no model";
    Terminal list({"list", folder}), refused({"generate", file, "-p", "a"});
    EXPECT_EQ(list.finish(), 0);
    EXPECT_NE(refused.finish(), 0);
    for (const std::string &raw : {list.raw(), refused.raw()}) {
        EXPECT_NE(raw.find("a?]2;title?.gguf"), std::string::npos) << raw;
        EXPECT_EQ(raw.find("\033]2;"), std::string::npos);
    }
    std::filesystem::remove_all(folder);
}

TEST(Terminal, TextInAFileLeavesTheScreenEmpty)
{
    Terminal t(generate({"-n", "2"}), {}, 80, "/dev/null");
    EXPECT_EQ(t.finish(), 0);
    EXPECT_EQ(t.text(), "") << t.raw();
}

TEST(Terminal, LogLinesStandOnLinesOfTheirOwn)
{
    Terminal t(generate({"-n", "2"}), {"XM_DEBUG=passes"});
    EXPECT_EQ(t.finish(), 0);
    EXPECT_NE(t.text().find("\nxemoe: debug: passes: "), std::string::npos) << t.text();
    for (const std::string &row : t.screen.rows())
        EXPECT_TRUE(row.find("xemoe: ") == std::string::npos || row.find("xemoe: ") == 0)
            << row;
}

TEST(Terminal, ADumbOneGetsNoEscapeCodes)
{
    for (const char *term : {"TERM=dumb", "TERM="}) {
        Terminal t(generate({"-n", "2"}), {term});
        EXPECT_EQ(t.finish(), 0);
        EXPECT_EQ(t.text(), " France.\n") << t.raw();
        EXPECT_FALSE(t.screen.escaped) << t.raw();
    }
}

/* One that is told to write what a terminal would obey. */
TEST(Terminal, ControlCharactersOfAModelAreShown)
{
    Words words = {"generate", "-m", model, "-d", "REFERENCE", "-p", "x", "-n", "60"};
    words.insert(words.end(), {"--temp", "9", "--seed", "1", "--ignore-eos"});
    Terminal t(words);
    EXPECT_EQ(t.finish(), 0);
    Outcome plain = run(words);
    size_t controls = 0;
    for (char c : plain.out)
        controls += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
    ASSERT_GT(controls, 0u) << "choose another seed";
    EXPECT_NE(t.text().find('^'), std::string::npos); /* and no failure by the screen */
}

TEST(Terminal, GetsNoBytesOfAnArray)
{
    Terminal t({"logits", "-m", model, "-d", "REFERENCE", "--ids", "1", "-o", "-"});
    EXPECT_EQ(t.finish(), 2);
    EXPECT_NE(t.text().find("standard output is a terminal"), std::string::npos)
        << t.text();
    EXPECT_EQ(t.raw().find("NUMPY"), std::string::npos);
}

/* Else the first file that is opened would be standard input, and be read as the prompt. */
TEST(Terminal, AClosedStandardInputIsAnEmptyOne)
{
    const std::string command =
        std::string(XM_PROGRAM) + " generate -m " + model + " -d REFERENCE -n 1 <&-";
    Terminal t({"-c", command}, {}, 200, "", "/bin/sh");
    EXPECT_EQ(t.finish(), 2);
    EXPECT_NE(t.text().find("standard input is empty"), std::string::npos) << t.text();
}

/* Examples are whole, so that they can be copied. */
TEST(Terminal, HelpThroughAPipeIsAsWideAsAUsualTerminal)
{
    for (const Words &words : {Words{"--help"}, Words{"generate", "--help"},
                               Words{"bench", "--kernels", "--help"}}) {
        std::istringstream lines(run(words).out);
        for (std::string line; std::getline(lines, line);) {
            const auto characters = std::count_if(
                line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
            EXPECT_TRUE(characters <= 80 || line.find("example: ") != std::string::npos)
                << line;
        }
    }
}

TEST(Terminal, HelpFitsIntoIt)
{
    for (const char *command : {"generate", "bench", "plan"}) {
        Terminal t({command, "--help"}, {}, 80);
        EXPECT_EQ(t.finish(), 0);
        std::istringstream lines(t.raw());
        for (std::string line; std::getline(lines, line);) {
            const auto characters = std::count_if(
                line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
            EXPECT_TRUE(characters <= 81 || line.find("example: ") != std::string::npos)
                << line; /* a carriage return behind it */
        }
    }
}
