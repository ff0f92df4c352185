/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of generate on a terminal: progress, the text as it comes, nothing else.
 */
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

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

/* Without a driver for GPUs the first device, GPU, is the processor. */
TEST(Terminal, SaysThatAProcessorTakesThePlaceOfAGpu)
{
    const std::string devices = run({"devices"}).out;
    const bool is_first = devices.find("also named CPU") < devices.find("GPU.1");
    for (const std::string device : {"GPU", "CPU"}) {
        const Words words = {"generate", model, "-d", device, "-p", "a", "-n", "1"};
        Terminal t(words);
        EXPECT_EQ(t.finish(), 0) << t.raw();
        EXPECT_EQ(t.text().find("there is no GPU with an OpenCL driver") !=
                      std::string::npos,
                  is_first && device == "GPU")
            << t.text();
        EXPECT_EQ(run(words).err, "") << "through a pipe nothing is said";
    }
}

/* A progress line that wraps would leave its first part on the screen. */
TEST(Terminal, ProgressFitsIntoANarrowTerminal)
{
    Terminal t(generate({"-n", "2"}), {}, 20);
    EXPECT_EQ(t.finish(), 0);
    EXPECT_EQ(t.text(), " France.\n") << t.raw();
}

/* File names may have been chosen by somebody else. */
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
    Terminal made({"make-model", "-o", file, "--force"});
    EXPECT_EQ(made.finish(), 0);
    Terminal plan({"plan", file, "--device-as", "bmg"});
    EXPECT_EQ(plan.finish(), 0);
    for (const std::string &raw : {list.raw(), refused.raw(), made.raw(), plan.raw()}) {
        EXPECT_NE(raw.find("a?]2;title?.gguf"), std::string::npos) << raw;
        EXPECT_EQ(raw.find("\033]2;"), std::string::npos);
    }
    std::filesystem::remove_all(folder);
}

/* Failures, mistakes, warnings and advice are wrapped on a terminal, and whole lines elsewhere. */
TEST(Terminal, SentencesAreBrokenBetweenWords)
{
    const std::tuple<Words, int, std::string> cases[] = {
        {{"plan", "/nowhere/model.gguf", "--device-as", "bmg"},
         3,
         "xemoe: cannot open '/nowhere/model.gguf': No such file or directory"},
        {{"plan", model, "--device-as", "bmgg"},
         2,
         "xemoe: option --device-as: there is no chip or card 'bmgg': did you mean bmg?"},
        {generate({"-n", "1", "--split", "layer"}), 0,
         "xemoe: warning: option --split layer has no effect, because REFERENCE is one "
         "device"},
        {{"plan", model, "--device-as", "bmg", "--memory", "1"},
         4,
         "xemoe: the model does not fit on bmg"},
    };
    for (const auto &[words, code, sentence] : cases) {
        Terminal t(words, {}, 50);
        EXPECT_EQ(t.finish(), code);
        const std::string joined = std::regex_replace(t.text(), std::regex("\n *"), " ");
        EXPECT_NE(joined.find(sentence), std::string::npos) << t.text();
        for (const std::string &row : t.screen.rows())
            EXPECT_LT(row.size(), 50u) << row;
        EXPECT_NE(run(words).err.find(sentence), std::string::npos) << sentence;
    }
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

/* The model's tokens contain bytes that a terminal would obey. */
TEST(Terminal, ControlCharactersOfAModelAreShown)
{
    Words words;
    size_t controls = 0;
    for (int seed = 1; seed <= 30 && controls == 0; seed++) {
        words = {"generate",  "-m",
                 model,       "-d",
                 "REFERENCE", "-p",
                 "x",         "-n",
                 "60",        "--temp",
                 "9",         "--ignore-eos",
                 "--seed",    std::to_string(seed)};
        for (char c : run(words).out)
            controls += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
    }
    ASSERT_GT(controls, 0u) << "no seed draws one";
    Terminal t(words);
    EXPECT_EQ(t.finish(), 0);
    /* and Screen found no unknown escape code */
    EXPECT_NE(t.text().find('^'), std::string::npos);
}

TEST(Terminal, GetsNoBytesOfAnArray)
{
    Terminal t({"logits", "-m", model, "-d", "REFERENCE", "--ids", "1", "-o", "-"});
    EXPECT_EQ(t.finish(), 2);
    EXPECT_NE(t.text().find("standard output is a terminal"), std::string::npos)
        << t.text();
    EXPECT_EQ(t.raw().find("NUMPY"), std::string::npos);
}

/* Otherwise the first opened file would become standard input and be read as the prompt. */
TEST(Terminal, AClosedStandardInputIsAnEmptyOne)
{
    const std::string command =
        std::string(XM_PROGRAM) + " generate -m " + model + " -d REFERENCE -n 1 <&-";
    Terminal t({"-c", command}, {}, 200, "", "/bin/sh");
    EXPECT_EQ(t.finish(), 2);
    EXPECT_NE(t.text().find("standard input is empty"), std::string::npos) << t.text();
}

/* Examples are not wrapped, so that they can be copied. */
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

/* Returns the columns of a line of output. */
static size_t
width_of(const std::string &line)
{
    const std::string plain =
        std::regex_replace(line, std::regex("\033\\[[0-9;?]*[a-zA-Z]|\r"), "");
    return static_cast<size_t>(std::count_if(plain.begin(), plain.end(),
                                             [](char c) { return (c & 0xc0) != 0x80; }));
}

/* Output lines must fit, so that the terminal does not wrap them. Progress ends with a carriage
 * return and does not count. */
TEST(Terminal, FactsAndTablesFitIntoIt)
{
    const Words facts[] = {
        {"devices", "--rules"},
        {"devices", "--properties"},
        {"plan", model, "--device-as", "bmg", "--memory", "1", "--offload", "50"},
        {"plan", model, "--device-as", "bmg", "--memory", "8000", "-c", "9999"},
        {"info", model, "-v", "-d", "REFERENCE"},
        {"make-model", "--list"},
        {"opt", "--list"},
        {"generate", model, "-p", "Hello", "-n", "2", "-v", "-d", "REFERENCE"},
    };
    for (const Words &words : facts) {
        for (unsigned short columns : {60, 40}) {
            SCOPED_TRACE(words[0] + " " + std::to_string(columns));
            Terminal t(words, {}, columns);
            t.finish();
            std::istringstream lines(t.raw());
            size_t n = 0;
            for (std::string line; std::getline(lines, line); n++) {
                line = line.substr(0, line.find_last_not_of('\r') + 1);
                line = line.substr(line.rfind('\r') + 1); /* the text after progress */
                EXPECT_TRUE(width_of(line) < columns || line.rfind("xemoe: ", 0) == 0)
                    << line;
                EXPECT_FALSE(!line.empty() &&
                             line.find_first_not_of(' ') == std::string::npos)
                    << "a line of spaces";
            }
            EXPECT_GT(n, 5u) << t.raw();
        }
    }
}

TEST(Terminal, AProfileFitsIntoIt)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    for (unsigned short columns : {130, 70, 40}) {
        SCOPED_TRACE(columns);
        Terminal t({"generate", model, "-p", "Hello", "-n", "2", "--profile"}, {},
                   columns);
        EXPECT_EQ(t.finish(), 0);
        EXPECT_EQ(t.raw().find("GFLOP/s      ") != std::string::npos, columns == 130);
        EXPECT_EQ(t.raw().find(" steps     runs") != std::string::npos, columns >= 60);
        EXPECT_NE(t.raw().find("share  op: kernel") != std::string::npos, columns == 130)
            << t.raw();
        std::istringstream lines(t.raw());
        for (std::string line; std::getline(lines, line);) {
            line = line.substr(0, line.find_last_not_of('\r') + 1);
            line = line.substr(line.rfind('\r') + 1);
            EXPECT_TRUE(width_of(line) < columns || line.rfind("xemoe: ", 0) == 0)
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
                << line; /* a carriage return follows */
        }
    }
}
