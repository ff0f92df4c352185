/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/command_line.h"
#include "plugin/program_util/rate.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include <string>
#include <vector>

#include "plugin/program_util/suggest.h"

namespace
{

struct Args {
    bool json = false;
    const char *device = nullptr, *file = nullptr;
    uint64_t tokens = 7, seed = 1, limit = 3;
    float temperature = 0.0f;
};

const xm_cli_option common[] = {
    {'d', "device", XM_CLI_TEXT, offsetof(Args, device), "NAME", "where to run"},
    {0, "json", XM_CLI_FLAG, offsetof(Args, json), nullptr, "as JSON"},
};
const xm_cli_option own[] = {
    {'n', "tokens", XM_CLI_COUNT, offsetof(Args, tokens), "N", "how many\nnew tokens"},
    {0, "seed", XM_CLI_WHOLE, offsetof(Args, seed), "S", "of random numbers"},
    {'l', "limit", XM_CLI_LIMIT, offsetof(Args, limit), "N", "how many, or -1"},
    {0, "temp", XM_CLI_REAL, offsetof(Args, temperature), "T", "temperature"},
    {0, "nts", XM_CLI_COUNT, offsetof(Args, tokens), "N", nullptr},
};
const xm_cli_spec with_file = {"tool FILE", "About.\n", common, own,
                               2,           5,          "FILE", offsetof(Args, file)};
const xm_cli_spec without_file = {"tool", "About.\n", common, own, 2, 5, nullptr, 0};

struct Parsed {
    Args args;
    bool help = false;
    xm_status status;
    std::string text;
};

Parsed
parse(const xm_cli_spec &spec, std::vector<std::string> words)
{
    /* lives on, because results point into the words */
    static std::vector<std::string> kept;
    Parsed p;
    xm_error err = {};
    kept = std::move(words);
    std::vector<char *> argv = {const_cast<char *>("tool")};
    for (std::string &word : kept)
        argv.push_back(&word[0]);
    p.status = xm_cli_parse(&spec, static_cast<int>(argv.size()), argv.data(), &p.args,
                            &p.help, &err);
    p.text = err.text;
    return p;
}

TEST(Args, KeepDefaultsWhenNothingIsSaid)
{
    Parsed p = parse(without_file, {});
    EXPECT_EQ(p.status, XM_OK);
    EXPECT_EQ(p.args.tokens, 7u);
    EXPECT_EQ(p.args.device, nullptr);
}

/* -ngl is not read as -n with the value "gl"; a command may have an option -ngl of its own. */
TEST(Args, OfOtherProgramsAreToldWhatIsHere)
{
    Parsed p = parse(without_file, {"-ngl", "99"});
    EXPECT_EQ(p.status, XM_INVALID);
    EXPECT_EQ(p.text, "there is no option -ngl: all layers are on the device; --offload "
                      "says which percentage of the experts is not");
    EXPECT_EQ(
        parse(without_file, {"--batch-size", "99"}).text,
        "there is no option --batch-size: a prompt runs in chunks of --ubatch tokens");
    EXPECT_EQ(parse(without_file, {"-t", "2"}).text,
              "there is no option -t: kernels use the whole device");
    EXPECT_EQ(parse(with_file, {"--", "-ngl"}).status, XM_OK) << "a file of that name";
    EXPECT_EQ(parse(without_file, {"-d", "-ngl"}).status, XM_OK) << "a value";
    const xm_cli_option ours[] = {
        {'t', "threads", XM_CLI_COUNT, offsetof(Args, tokens), "N", nullptr},
        {0, "ngl", XM_CLI_COUNT, offsetof(Args, limit), "N", nullptr},
    };
    const xm_cli_spec has_them = {"tool", "About.\n", common, ours, 2, 2, nullptr, 0};
    p = parse(has_them, {"-t", "5", "-ngl", "9"});
    EXPECT_EQ(p.status, XM_OK) << p.text;
    EXPECT_EQ(p.args.tokens, 5u);
    EXPECT_EQ(p.args.limit, 9u);
}

TEST(Args, TakeEverySpelling)
{
    for (const std::vector<std::string> &words : std::vector<std::vector<std::string>>{
             {"-n", "5"}, {"-n5"}, {"--tokens", "5"}, {"--tokens=5"}}) {
        Parsed p = parse(without_file, words);
        EXPECT_EQ(p.status, XM_OK) << p.text;
        EXPECT_EQ(p.args.tokens, 5u) << words[0];
    }
}

/* A name may stand behind one dash if its first letter is no option that takes a value. */
TEST(Args, NamesWithoutALetterMayStandBehindOneDash)
{
    EXPECT_EQ(parse(without_file, {"-nts", "6"}).args.tokens, 6u);
    EXPECT_EQ(parse(without_file, {"--nts=6"}).args.tokens, 6u);
    EXPECT_TRUE(parse(without_file, {"-json"}).args.json);
    EXPECT_STREQ(parse(without_file, {"-device"}).args.device, "evice");
    EXPECT_NE(parse(without_file, {"-nts"}).text.find("needs a value"),
              std::string::npos);
    EXPECT_EQ(parse(without_file, {"-ntt", "6"}).status, XM_INVALID);
}

TEST(Args, MayHaveSeveralNames)
{
    const xm_cli_option named[] = {
        {'n', "tokens", XM_CLI_COUNT, offsetof(Args, tokens), "N", "how many",
         "n-predict -np predict"},
    };
    const xm_cli_spec spec = {"tool", "About.\n", common, named, 2, 1, nullptr, 0};
    for (const std::vector<std::string> &words : std::vector<std::vector<std::string>>{
             {"--n-predict", "5"}, {"--predict=5"}, {"-np", "5"}, {"--np", "5"}}) {
        const Parsed p = parse(spec, words);
        EXPECT_EQ(p.status, XM_OK) << p.text;
        EXPECT_EQ(p.args.tokens, 5u) << words[0];
    }
    EXPECT_EQ(parse(spec, {"-np", "x"}).text.rfind("option -np takes", 0), 0u);
    EXPECT_EQ(parse(spec, {"-predict"}).status, XM_INVALID) << "a letter stands for it";
    EXPECT_EQ(parse(spec, {"--n-predic", "5"}).text,
              "there is no option --n-predic: did you mean --n-predict?");
    struct xm_strbuf help = {};
    xm_cli_help(&spec, nullptr, &help);
    EXPECT_NE(std::string(xm_strbuf_text(&help))
                  .find("how many (also --n-predict, -np, --predict)\n"),
              std::string::npos)
        << xm_strbuf_text(&help);
    xm_strbuf_free(&help);
}

TEST(Args, ALimitMayBeNone)
{
    EXPECT_EQ(parse(without_file, {"-l", "-1"}).args.limit, UINT64_MAX);
    EXPECT_EQ(parse(without_file, {"--limit=8"}).args.limit, 8u);
    EXPECT_EQ(parse(without_file, {"--limit=16777216"}).args.limit, 16777216u);
    EXPECT_EQ(parse(without_file, {"--limit=16777217"}).status, XM_INVALID);
    for (const char *word : {"-2", "0", "", "-1x"})
        EXPECT_EQ(parse(without_file, {"-l", word}).status, XM_INVALID) << word;
}

TEST(Args, StoreEachKind)
{
    Parsed p =
        parse(with_file, {"--json", "-d", "GPU.1", "m.xml", "--seed", "0", "--temp=0.5"});
    EXPECT_EQ(p.status, XM_OK) << p.text;
    EXPECT_TRUE(p.args.json);
    EXPECT_STREQ(p.args.device, "GPU.1");
    EXPECT_STREQ(p.args.file, "m.xml");
    EXPECT_EQ(p.args.seed, 0u);
    EXPECT_EQ(p.args.temperature, 0.5f);
}

TEST(Args, TakeOperandsThatLookLikeOptionsBehindTwoDashes)
{
    EXPECT_STREQ(parse(with_file, {"--", "-n"}).args.file, "-n");
    EXPECT_STREQ(parse(with_file, {"-"}).args.file, "-");
}

/* `tool FILE` and `tool -f FILE` mean the same. */
TEST(Args, AnOptionMayStandForTheOperand)
{
    const xm_cli_option file[] = {
        {'f', "file", XM_CLI_TEXT, offsetof(Args, file), "FILE", "which"}};
    const xm_cli_spec either = {"tool FILE", "About.\n", common, file,
                                2,           1,          "FILE", offsetof(Args, file)};
    for (const std::vector<std::string> &words :
         {std::vector<std::string>{"-f", "a"}, std::vector<std::string>{"a"}}) {
        Parsed p = parse(either, words);
        EXPECT_EQ(p.status, XM_OK) << p.text;
        EXPECT_STREQ(p.args.file, "a");
    }
    EXPECT_EQ(parse(either, {}).text, "FILE is missing");
}

TEST(Args, HelpWinsOverWhatFollows)
{
    Parsed p = parse(with_file, {"--help", "--nonsense"});
    EXPECT_EQ(p.status, XM_OK);
    EXPECT_TRUE(p.help);
}

TEST(Args, RefuseWithASentence)
{
    const struct {
        std::vector<std::string> words;
        const char *says;
    } cases[] = {
        {{"--nonsense"}, "there is no option --nonsense"},
        {{"--toke", "5"}, "there is no option --toke: did you mean --tokens?"},
        {{"-x"}, "there is no option -x"},
        {{"--json=yes"}, "option --json takes no value, found 'yes'"},
        {{"--tokens"}, "option --tokens needs a value: N"},
        {{"-n", "0"}, "option -n takes a whole number from 1, found '0'"},
        {{"-n0"}, "option -n takes a whole number from 1, found '0'"},
        {{"--tokens=0"}, "option --tokens takes a whole number from 1, found '0'"},
        {{"-n", "18446744073709551616"},
         "a whole number from 1 below 2^64, found '18446744073709551616'"},
        {{"-n", " 5"}, "whole number"},
        {{"-n", ""}, "whole number"},
        {{"--temp", "nan"}, "a number from 0"},
        {{"--temp", "-1"}, "a number from 0"},
        {{"--temp", "1x"}, "a number from 0"},
        {{"a"}, "'a' is one word too many"},
    };
    for (const auto &c : cases) {
        Parsed p = parse(without_file, c.words);
        EXPECT_EQ(p.status, XM_INVALID) << c.says;
        EXPECT_NE(p.text.find(c.says), std::string::npos) << p.text;
    }
    EXPECT_EQ(parse(with_file, {}).text, "FILE is missing");
    xm_cli_spec optional = with_file;
    optional.operand_is_optional = true;
    EXPECT_EQ(parse(optional, {}).status, XM_OK);
    EXPECT_EQ(parse(optional, {""}).text, "FILE is an empty word");
    EXPECT_EQ(parse(optional, {"a", "b"}).text, "'b' is one word too many");
    EXPECT_EQ(parse(with_file, {"a", "b"}).text, "'b' is one word too many");
}

TEST(Args, HelpHasARowForEachOption)
{
    xm_strbuf out = {};
    xm_cli_help(&without_file, nullptr, &out);
    std::string text = xm_strbuf_text(&out);
    EXPECT_EQ(text.rfind("usage: tool\n\nAbout.\n", 0), 0u);
    EXPECT_NE(
        text.find("\n  -n, --tokens N          how many\n                          new "),
        std::string::npos)
        << text;
    EXPECT_NE(text.find("\n      --json              as JSON\n"), std::string::npos)
        << text;
    xm_strbuf_free(&out);
}

/* ---- suggestions for misspelt names
 * ------------------------------------------------------------ */

TEST(Suggestions, AreTheNearestName)
{
    const struct {
        const char *word, *names, *best;
    } cases[] = {
        {"genrate", "generate bench", "generate"}, /* a missing letter */
        {"benchh", "generate bench", "bench"},     /* an extra letter */
        /* exchanged letters; the first match wins */
        {"modle", "model mode models", "model"},
        {"gen", "generate bench", "generate"}, /* a prefix */
        {"b58", "b50 b580", "b580"},           /* a prefix before another letter */
        {"ge", "generate bench", nullptr},     /* too short for a prefix */
        {"chatter", "chat bench", nullptr},    /* three letters of seven differ */
        {"x", "xy", nullptr},
        {"", "ab", nullptr},
        {"zzz", "", nullptr},
    };
    for (const auto &c : cases) {
        xm_suggestion s = xm_suggest_for(c.word, strlen(c.word));
        xm_suggest_list(&s, c.names);
        EXPECT_STREQ(s.best, c.best) << c.word;
    }
    const std::string endless(100000, 'a');
    xm_suggestion s = xm_suggest_for(endless.data(), endless.size());
    xm_suggest(&s, endless.c_str());
    EXPECT_EQ(s.best, nullptr);
}

TEST(Args, OptionsOfOthersHaveAHint)
{
    for (const char *word : {"-ngl", "--n-gpu-layers=99", "-fa", "-cmoe", "--no-mmap"})
        EXPECT_NE(parse(without_file, {word}).text.find(": "), std::string::npos) << word;
}

/* ---- operands ----------------------------------------------------------------------------- */

const xm_cli_option model_option[] = {
    {'m', "model", XM_CLI_TEXT, offsetof(Args, file), "FILE", "the file"},
};

xm_cli_spec
model_spec(const char *environment)
{
    xm_cli_spec s = {};
    s.usage = "tool FILE";
    s.about = "";
    s.own = model_option;
    s.n_own = 1;
    s.operand = "FILE";
    s.operand_offset = offsetof(Args, file);
    s.operand_env = environment;
    return s;
}

TEST(Args, AnOperandIsAWordOrAnOptionButNotBoth)
{
    const xm_cli_spec spec = model_spec(nullptr);
    EXPECT_STREQ(parse(spec, {"a"}).args.file, "a");
    EXPECT_STREQ(parse(spec, {"-m", "a"}).args.file, "a");
    EXPECT_EQ(parse(spec, {"-m", "a", "b"}).text, "'b' is one word too many");
    EXPECT_EQ(parse(spec, {"b", "-m", "a"}).text, "option -m: FILE is given already");
}

TEST(Args, AnOperandMayComeFromTheEnvironment)
{
    const xm_cli_spec spec = model_spec("XM_TEST_OPERAND");
    setenv("XM_TEST_OPERAND", "usual", 1);
    EXPECT_STREQ(parse(spec, {}).args.file, "usual");
    EXPECT_STREQ(parse(spec, {"a"}).args.file, "a");
    EXPECT_STREQ(parse(spec, {"-m", "a"}).args.file, "a");
    for (const char *nothing : {"", static_cast<const char *>(nullptr)}) {
        if (nothing)
            setenv("XM_TEST_OPERAND", nothing, 1);
        else
            unsetenv("XM_TEST_OPERAND");
        const Parsed p = parse(spec, {});
        EXPECT_EQ(p.status, XM_INVALID);
        EXPECT_NE(p.text.find("FILE is missing"), std::string::npos);
        EXPECT_NE(p.text.find("XM_TEST_OPERAND"), std::string::npos);
    }
}

TEST(Args, GroupsStandInTheHelpAndAreNoOptions)
{
    const xm_cli_option rows[] = {
        XM_CLI_GROUP("Of files", "tool -m x"),
        XM_CLI_GROUP("Of several tools", "-m y"),
        {'m', "model", XM_CLI_TEXT, offsetof(Args, file), "FILE", "the file"},
    };
    xm_cli_spec spec = model_spec(nullptr);
    spec.own = rows;
    spec.n_own = 3;
    xm_strbuf out = {};
    xm_cli_help(&spec, "tool do-it", &out);
    EXPECT_NE(
        std::string(xm_strbuf_text(&out))
            .find("\nOf files:\n  example: tool -m x\n\nOf several tools:\n  example: "
                  "tool do-it -m y\n  -m, --model FILE"),
        std::string::npos)
        << xm_strbuf_text(&out);
    xm_strbuf_free(&out);
    EXPECT_STREQ(parse(spec, {"-m", "a"}).args.file, "a");
    EXPECT_EQ(parse(spec, {"--", "-m"}).args.file, std::string("-m"));
    EXPECT_EQ(parse(spec, {"--nothing"}).text, "there is no option --nothing");
}

/* ---- rates ----------------------------------------------------------------------------- */

TEST(Rates, AreReadWithTheirUnits)
{
    const auto read = [](const char *text, std::string *rest) {
        double rate = 0;
        xm_error err = {};
        const enum xm_status s = xm_rate_read(&text, "GB/s", &rate, &err);
        *rest = s == XM_OK ? text : err.text;
        return s == XM_OK ? rate : -1;
    };
    std::string rest;
    EXPECT_EQ(read("25", &rest), 25);
    EXPECT_EQ(rest, "");
    EXPECT_EQ(read("0.5GB/s,5us", &rest), 0.5);
    EXPECT_EQ(rest, ",5us");
    const std::pair<const char *, const char *> wrong[] = {
        {"", "'' is not a number"},          {"x,1", "'x' is not a number"},
        {"nan", "'nan' is not a number"},    {"1e999", "'1e999' is too large"},
        {"0", "'0' is not above 0"},         {"-1,2", "'-1' is not above 0"},
        {"1 GB", "'1 GB' has another unit"}, {"1GB/sx", "'1GB/sx' has another unit"}};
    for (const auto &[text, sentence] : wrong) {
        EXPECT_EQ(read(text, &rest), -1) << text;
        EXPECT_EQ(rest, sentence);
    }
}

TEST(Rates, AreNotKnownWithoutATime)
{
    EXPECT_EQ(xm_rate(6, 2), 3);
    EXPECT_EQ(xm_rate(6, 0), 0);
    EXPECT_EQ(xm_rate(0, 2), 0);
}

} // namespace
