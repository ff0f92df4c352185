/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling settings of a chat: from the model's files, from options and from /set; and the
 * commands that save, load and show.
 */
#include <sys/stat.h>

#include <filesystem>
#include <regex>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/gguf.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

static const std::string models = XM_MODELS_DIR;
static const std::string italy = "What is the capital of Italy?\n";
static const char *const rome = "The capital of Italy is Rome.";

class ChatSettings : public testing::Test
{
  protected:
    const Folder folder{"settings"};

    void SetUp() override
    {
        std::filesystem::create_directory(folder / "model");
        for (const char *file : {"tokenizer.json", "chat_template.jinja", "config.json"})
            std::filesystem::copy(models + "/qwen3moe-tiny/" + file,
                                  folder / "model" + "/" + file);
        for (const char *file : {"openvino_model.xml", "openvino_model.bin"})
            std::filesystem::create_symlink(models + "/qwen3moe-tiny/ov/int4_asym_g64/" +
                                                file,
                                            folder / "model" + "/" + file);
    }

    void recommend(const std::string &text) const
    {
        folder.write("model/generation_config.json", text);
    }

    Outcome talk(const std::string &lines, const Words &options = {}) const
    {
        folder.write("lines", lines);
        Words words = {"chat", "-m", folder / "model", "-d", "REFERENCE", "-n", "12"};
        words.insert(words.end(), options.begin(), options.end());
        return Program(words, {}, folder / "lines").finish();
    }

    /* Returns the row of /set: value and source. */
    static std::string row(const std::string &err, const std::string &name)
    {
        const size_t at = err.find("  " + name + " ");
        return at == std::string::npos
                   ? "none"
                   : std::regex_replace(err.substr(at + 2, err.find('\n', at) - at - 2),
                                        std::regex(" +"), " ");
    }
};

static const char *const hot = R"({"do_sample": true, "temperature": 9.5, "top_k": 400,
                                  "top_p": 0.95, "eos_token_id": 1502})";

/* As in generate, a sampling option turns on drawing. */
TEST_F(ChatSettings, OptionsOfDrawingDrawWithoutARecommendation)
{
    const Outcome o = talk("/set\n", {"--top-p", "0.9"});
    EXPECT_EQ(row(o.err, "temp"), "temp 0.8 default");
    EXPECT_EQ(row(o.err, "top-p"), "top-p 0.9 given as an option");
    recommend(hot);
    EXPECT_EQ(row(talk("/set\n", {"--top-p", "0.9"}).err, "temp"),
              "temp 9.5 generation_config.json");
}

TEST_F(ChatSettings, WhatHasNoEffectWhileGreedyIsTold)
{
    const std::string told = "(no effect while the temperature is 0: /set temp 0.8)\n";
    for (const char *setting : {"top-k 9", "top-p 0.5", "min-p 0.1", "seed 3"}) {
        const std::string set = std::string("/set ") + setting + "\n";
        EXPECT_TRUE(contains(talk(set).err, told)) << setting;
        EXPECT_FALSE(contains(talk("/set temp 1\n" + set).err, told)) << setting;
    }
    EXPECT_FALSE(contains(talk("/set repeat-penalty 1.1\n").err, told));
}

/* ---- what the model recommends --------------------------------------------------------- */

TEST_F(ChatSettings, TheModelsRecommendationIsTaken)
{
    EXPECT_EQ(talk(italy).out, std::string(rome) + "\n") << "greedy without one";
    recommend(hot);
    Outcome o = talk(italy + "/set\n", {"--json", "--seed", "7"});
    ASSERT_EQ(o.code, 0) << o.err;
    Json json(o.out);
    EXPECT_NE(json.text("/messages/1/content"), rome);
    EXPECT_EQ(json.number("/sampling/temp"), 9.5);
    EXPECT_EQ(json.number("/sampling/top-k"), 400.0);
    EXPECT_EQ(json.number("/sampling/top-p"), 0.95);
    EXPECT_EQ(json.number("/seed"), 7.0);
    EXPECT_EQ(row(o.err, "temp"), "temp 9.5 generation_config.json");
    EXPECT_EQ(row(o.err, "top-k"), "top-k 400 generation_config.json");
    EXPECT_EQ(row(o.err, "min-p"), "min-p 0 default");
    EXPECT_EQ(row(o.err, "seed"), "seed 7 given as an option");
    EXPECT_EQ(talk(italy, {"--seed", "7", "--json"}).out.substr(0, 300),
              o.out.substr(0, 300));
}

/* A default that is stored as 0 is shown as its real value, in the list and in JSON. */
TEST_F(ChatSettings, DefaultsAreWhatTheyAre)
{
    const Outcome o = talk("/set\n", {"--json"});
    Json json(o.out);
    EXPECT_EQ(json.number("/sampling/xtc-threshold"), 0.1);
    EXPECT_EQ(json.number("/sampling/mirostat-ent"), 5.0);
    EXPECT_EQ(json.number("/sampling/mirostat-lr"), 0.1);
    EXPECT_EQ(json.number("/sampling/dry-allowed-length"), 2.0);
    EXPECT_EQ(json.number("/sampling/top-k"), 0.0) << "words stand for it";
    EXPECT_EQ(row(o.err, "mirostat-ent"), "mirostat-ent 5 default");
    EXPECT_EQ(Json(talk("/set mirostat-ent 3\n", {"--json"}).out)
                  .number("/sampling/mirostat-ent"),
              3.0);
}

TEST_F(ChatSettings, ShowAnActiveGrammar)
{
    EXPECT_EQ(row(talk("/set\n").err, "grammar"), "none");
    EXPECT_EQ(row(talk("/set\n", {"--grammar", "root ::= \"a\""}).err, "grammar"),
              "grammar root ::= \"a\" given as an option");
    EXPECT_EQ(
        row(talk("/set\n", {"--json-schema", "{\"type\":\"null\"}"}).err, "json-schema"),
        "json-schema {\"type\":\"null\"} given as an option");
}

TEST_F(ChatSettings, OptionsGoBeforeTheRecommendation)
{
    recommend(hot);
    Outcome o = talk(italy + "/set\n", {"--temp", "0"});
    EXPECT_EQ(o.out, std::string(rome) + "\n");
    EXPECT_EQ(row(o.err, "temp"), "temp 0: the likeliest token given as an option");
    EXPECT_EQ(row(o.err, "top-p"), "top-p 0.95 generation_config.json");
    EXPECT_EQ(talk(italy, {"--top-k", "1"}).out, std::string(rome) + "\n");
}

TEST_F(ChatSettings, ARecommendationWithoutSamplingIsGreedy)
{
    recommend(R"({"temperature": 9.5, "top_k": 400})");
    Outcome o = talk(italy + "/set\n", {"--json"});
    Json json(o.out);
    EXPECT_EQ(json.text("/messages/1/content"), rome);
    EXPECT_EQ(json.at("/seed"), nullptr) << "a greedy run uses none";
    EXPECT_EQ(row(o.err, "temp"), "temp 0: the likeliest token default");
    EXPECT_EQ(run({"generate", "-m", folder / "model", "-d", "REFERENCE", "-n", "4", "-p",
                   "Paris is the capital of"})
                  .out,
              " France.\n");
}

static std::string
le(uint64_t n, int bytes)
{
    std::string out;
    for (int i = 0; i < bytes; i++)
        out += static_cast<char>(n >> 8 * i);
    return out;
}

/* Inserts keys before the others. The last one pads them to a multiple of 32 bytes, the alignment
 * of tensors. */
static std::string
with_sampling(std::string gguf)
{
    const auto name = [](const std::string &key) { return le(key.size(), 8) + key; };
    std::string keys = name("general.sampling.temp") + le(6, 4);
    const float temp = 9.5f;
    keys.append(reinterpret_cast<const char *>(&temp), sizeof(temp));
    keys += name("general.sampling.top_k") + le(4, 4) + le(400, 4);
    const std::string pad = name("pad") + le(8, 4);
    keys += pad + name(std::string(32 - (keys.size() + pad.size() + 8) % 32, ' '));
    const auto n = static_cast<unsigned char>(gguf[16]);
    EXPECT_LT(n, 250) << "the count of keys is a byte here";
    gguf[16] = static_cast<char>(n + 3);
    return gguf.insert(24, keys);
}

TEST_F(ChatSettings, AGgufFileRecommendsByItsKeys)
{
    const std::string path = models + "/qwen3moe-tiny/gguf/qwen3moe-tiny-Q4_K_M.gguf";
    folder.write("model.gguf", with_sampling(read_file(path)));
    folder.write("lines", italy + "/set\n");
    const Words words = {"chat",  folder / "model.gguf", "-d", "REFERENCE", "-n", "12",
                         "--json"};
    Outcome o = Program(words, {}, folder / "lines").finish();
    ASSERT_EQ(o.code, 0) << o.err;
    Json json(o.out);
    EXPECT_NE(json.text("/messages/1/content"), rome);
    EXPECT_EQ(json.number("/sampling/temp"), 9.5);
    EXPECT_EQ(row(o.err, "temp"), "temp 9.5 general.sampling of the GGUF file");
    EXPECT_EQ(row(o.err, "top-k"), "top-k 400 general.sampling of the GGUF file");
    EXPECT_EQ(row(o.err, "top-p"), "top-p 1 default");
}

/* The printed seed gives the same conversation again. */
TEST_F(ChatSettings, TheSeedThatIsToldRepeatsTheChat)
{
    recommend(hot);
    Json first(talk(italy + italy, {"--json"}).out);
    const auto seed = static_cast<uint64_t>(first.number("/seed"));
    Json again(talk(italy + italy, {"--json", "--seed", std::to_string(seed)}).out);
    EXPECT_EQ(again.text("/messages/1/content"), first.text("/messages/1/content"));
    EXPECT_EQ(again.text("/messages/3/content"), first.text("/messages/3/content"));
    EXPECT_NE(first.text("/messages/1/content"), "");
}

/* ---- /set ------------------------------------------------------------------------------ */

TEST_F(ChatSettings, SetChangesWhatComesNext)
{
    Outcome o = talk(italy + "/set temp 9.5\n/set seed 3\n/retry\n/set temperature=0\n" +
                         italy + "/set tokens 2\n" + italy,
                     {"--json"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(row(o.err, "temp"), "temp 9.5 set in this chat");
    EXPECT_EQ(row(o.err, "seed"), "seed 3 set in this chat");
    EXPECT_EQ(row(o.err, "tokens"), "tokens 2 set in this chat");
    Json json(o.out);
    EXPECT_NE(json.text("/messages/1/content"), rome);
    EXPECT_EQ(json.text("/messages/3/content"), rome);
    EXPECT_EQ(json.text("/messages/5/content"), "The capital");
    EXPECT_EQ(json.number("/sampling/temp"), 0.0);
    Outcome same = talk("/set temp 9.5\n/set seed 3\n" + italy, {"--json"});
    EXPECT_EQ(Json(same.out).text("/messages/1/content"),
              json.text("/messages/1/content"));
}

/* Resets every setting, wherever its value came from. */
TEST_F(ChatSettings, DefaultIsWhatTheChatBeganWith)
{
    recommend(hot);
    const char *const names[] = {"temp",
                                 "top-k",
                                 "top-p",
                                 "min-p",
                                 "typical",
                                 "top-n-sigma",
                                 "xtc-probability",
                                 "xtc-threshold",
                                 "mirostat-ent",
                                 "mirostat-lr",
                                 "seed",
                                 "repeat-penalty",
                                 "context",
                                 "presence-penalty",
                                 "frequency-penalty",
                                 "repeat-last-n",
                                 "dry-multiplier",
                                 "dry-base",
                                 "dry-allowed-length",
                                 "dry-penalty-last-n",
                                 "no-repeat-ngram",
                                 "mirostat",
                                 "tokens"};
    const size_t n = std::size(names);
    std::string changes, back;
    for (const char *name : names) {
        const bool is_version =
            name == std::string("mirostat"); /* mirostat has versions 1 and 2 */
        changes += std::string("/set ") + name + (is_version ? " 2\n" : " 1\n");
        back += std::string("/set ") + name + " default\n";
    }
    for (const Words &options : {Words{}, Words{"--top-p", "0.5", "--seed", "7", "-c",
                                                "300", "--repeat-last-n", "9"}}) {
        Outcome o = talk("/set\n" + changes + back + "/set\n", options);
        EXPECT_EQ(o.code, 0) << o.err;
        std::vector<std::string> lines;
        std::istringstream in(o.err);
        for (std::string line; std::getline(in, line);)
            lines.push_back(line);
        ASSERT_EQ(lines.size(), 4 * n) << o.err;
        for (size_t i = 0; i < n; i++) {
            EXPECT_EQ(lines[i], lines[3 * n + i]);
            EXPECT_TRUE(contains(lines[n + i], "set in this chat")) << lines[n + i];
        }
    }
    EXPECT_TRUE(contains(talk("/help\n").err, "VALUE default restores"));
}

TEST_F(ChatSettings, WordsOfTheListAreTaken)
{
    Outcome o = talk("/set repeat-penalty 1.5\n/set repeat-last-n 8\n"
                     "/set repeat-penalty off\n/set repeat-last-n all\n" +
                     italy);
    EXPECT_EQ(o.out, std::string(rome) + "\n");
    EXPECT_TRUE(contains(o.err, "repeat-penalty     1.5 ")) << o.err;
    EXPECT_TRUE(contains(o.err, "repeat-penalty     off   ")) << o.err;
    EXPECT_TRUE(contains(o.err, "repeat-last-n      all   ")) << o.err;
    o = talk("/set top-p off\n");
    EXPECT_TRUE(contains(o.err, "/set top-p takes a number from 0, found 'off'"))
        << o.err;
}

TEST_F(ChatSettings, WrongValuesSayTheRange)
{
    const struct {
        const char *line, *said;
    } cases[] = {
        {"/set temp warm", "xemoe: /set temp takes a number from 0, found 'warm'"},
        {"/set temp -1", "xemoe: /set temp takes a number from 0, found '-1'"},
        {"/set temp nan", "xemoe: /set temp takes a number from 0, found 'nan'"},
        {"/set top-p 1.5", "xemoe: /set top-p takes a number from 0 up to 1, found 1.5"},
        {"/set top_k 0.5", "xemoe: /set top_k takes a whole number from 0, found '0.5'"},
        {"/set seed x", "xemoe: /set seed takes a whole number from 0 to"},
        {"/set typical 2", "xemoe: /set typical takes a number from 0 up to 1, found 2"},
        {"/set mirostat 3", "xemoe: /set mirostat takes a whole number from 0 up to 2"},
        {"/set mirostat 1", "xemoe: /set mirostat takes 0 or 2, for Mirostat 2.0"},
        {"/set tokens 0",
         "xemoe: /set tokens takes a whole number from 1 to 16777216, or -1"},
        {"/set context 99999999999", "xemoe: /set context takes at most"},
        {"/set tmep 1", "there is no setting tmep: did you mean temp?"},
        {"/set colour red", "there is no setting colour; /set lists them"},
        {"/set model x", "there is no setting model"},
    };
    for (const auto &c : cases) {
        Outcome o = talk(std::string(c.line) + "\n" + italy + "/set\n");
        EXPECT_EQ(o.code, 1) << c.line;
        EXPECT_TRUE(contains(o.err, c.said)) << c.line << ": " << o.err;
        EXPECT_EQ(o.out, std::string(rome) + "\n") << c.line;
        EXPECT_EQ(row(o.err, "temp"), "temp 0: the likeliest token default") << c.line;
    }
}

/* ---- /save and /load --------------------------------------------------------------------- */

TEST_F(ChatSettings, AConversationIsSavedAndGoesOn)
{
    const std::string file = folder / "saved.json";
    Outcome o = talk(italy + "/save " + file + "\n" + italy + "/save " + file +
                         "\n/save! " + file + "  \n",
                     {"--system", "Be kind."});
    EXPECT_EQ(o.code, 1) << "a file is there already: " << o.err;
    EXPECT_TRUE(contains(o.err, "3 messages are saved")) << o.err;
    EXPECT_TRUE(contains(o.err, "' exists already: /save! replaces a file")) << o.err;
    EXPECT_TRUE(contains(o.err, "5 messages are saved")) << o.err;
    struct stat st;
    ASSERT_EQ(stat(file.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600u);
    Json saved(read_file(file));
    EXPECT_EQ(saved.text("/messages/0/content"), "Be kind.");
    EXPECT_EQ(yyjson_arr_size(saved.at("/messages")), 5u);
    o = talk("/load " + file + "\n" + italy + "/save! " + file + "\n", {"--json"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.err, "the conversation of the file is loaded, 5 messages"))
        << o.err;
    EXPECT_TRUE(contains(o.err, "7 messages are saved")) << o.err;
    EXPECT_EQ(Json(o.out).text("/messages/6/content"), rome);
    /* the form that --json prints is accepted, too */
    folder.write("printed.json", o.out);
    o = talk("/load " + (folder / "printed.json") + "\n");
    EXPECT_TRUE(contains(o.err, "the conversation of the file is loaded, 7 messages"))
        << o.err;
}

TEST_F(ChatSettings, ATildeIsTheHomeFolder)
{
    const std::string lines = italy + "/save ~/saved.json\n/load ~/saved.json\n"
                                      "/load ~nobody/saved.json\n";
    folder.write("lines", lines);
    const Words words = {"chat", "-m", folder / "model", "-d", "REFERENCE", "-n", "12"};
    const Outcome o = Program(words, {"HOME=" + folder.path}, folder / "lines").finish();
    EXPECT_TRUE(contains(o.err, "2 messages are saved")) << o.err;
    EXPECT_TRUE(contains(o.err, "the conversation of the file is loaded, 2 messages"))
        << o.err;
    EXPECT_TRUE(contains(o.err, "cannot read '~nobody/saved.json': No such")) << o.err;
    EXPECT_EQ(yyjson_arr_size(Json(read_file(folder / "saved.json")).at("/messages")),
              2u);
}

TEST_F(ChatSettings, FilesThatAreNoConversationAreRefused)
{
    const std::string nested(200000, '[');
    const struct {
        std::string text, said;
    } cases[] = {
        {"", "cannot read '"},
        {"{\"messages\": [", "cannot read '"},
        {nested, "cannot read '"},
        {"[]", "it is not a JSON object"},
        {"{}", "'messages'"},
        {R"({"messages": {}})", "'messages'"},
        {R"({"messages": [1]})", "message 1: it is not an object"},
        {R"({"messages": [{"role": "user"}]})", "message 1: there is no 'content'"},
        {R"({"messages": [{"role": 1, "content": "x"}]})", "message 1: 'role'"},
        {R"({"messages": [{"role": "user", "content": ["x"]}]})", "message 1: 'content'"},
        {R"({"messages": [{"role": "assistant", "content": "x"}]})",
         "message 1: 'role' is 'assistant', expected 'user'"},
        {R"({"messages": [{"role": "user", "content": "x"}, {"role": "system",
            "content": "x"}]})",
         "message 2: 'role' is 'system', expected 'assistant'"},
        {R"({"messages": [{"role": "user", "content": "x"}]})",
         "the last message comes from the user and has no answer"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"\xff\"}]}",
         "cannot read '"},
    };
    for (const auto &c : cases) {
        folder.write("hostile.json", c.text);
        Outcome o = talk(italy + "/load " + (folder / "hostile.json") + "\n", {"--json"});
        EXPECT_EQ(o.code, 1) << o.err;
        EXPECT_TRUE(contains(o.err, c.said)) << c.text.substr(0, 80) << ": " << o.err;
        EXPECT_EQ(yyjson_arr_size(Json(o.out).at("/messages")), 2u)
            << "what was there stays";
    }
}

TEST_F(ChatSettings, PathsThatAreNoFilesAreRefused)
{
    ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
    const struct {
        std::string line, said;
    } cases[] = {
        {"/load " + (folder / "pipe"), "it is not a regular file"},
        {"/load /dev/zero", "it is not a regular file"},
        {"/load " + folder.path, "it is not a regular file"},
        {"/load " + (folder / "nowhere"),
         "xemoe: cannot read '" + (folder / "nowhere") + "': No such file"},
        {"/save! " + (folder / "pipe"), "is not a regular file"},
        {"/save! " + folder.path, "is not a regular file"},
        {"/save /nowhere/x", "cannot be written: No such file"},
        {"/save! /nowhere/x", "cannot be written: No such file"},
        {"/save", "/save needs a file: /save FILE"},
        {"/load", "/load needs a file: /load FILE"},
    };
    for (const auto &c : cases) {
        Outcome o = talk(c.line + "\n" + italy);
        EXPECT_EQ(o.code, 1) << c.line;
        EXPECT_TRUE(contains(o.err, c.said)) << c.line << ": " << o.err;
        EXPECT_EQ(o.out, std::string(rome) + "\n");
    }
}

TEST_F(ChatSettings, ACommandThatFailsIsInTheExitCode)
{
    for (const char *line :
         {"/hlep", "/xyzzy", "/set tmep 1", "/set temp abc", "/reset now", "/undo",
          "/retry", "/load /nowhere/x", "/save /dev/full"}) {
        const Outcome o = talk(std::string(line) + "\n");
        EXPECT_EQ(o.code, 1) << line << ": " << o.err;
    }
    const Outcome o = talk("/help\n/set temp 0\n/set\n/stats\n/reset\n/exit\n/xyzzy\n");
    EXPECT_EQ(o.code, 0) << o.err;
}

/* ---- other commands ----------------------------------------------------------------------- */

TEST_F(ChatSettings, HelpListsAllCommandsAndAWrongOneNamesTheNearest)
{
    Outcome o = talk("/help\n/hlep\n/stat temp 3\n/reset now\n/xyzzy\n/usr/bin is what?\n"
                     "/ask them all is what I say\n",
                     {"--json"});
    for (const char *command : {"/help", "/set ", "/stats", "/reset", "/undo", "/retry",
                                "/save ", "/save!", "/load", "/exit"})
        EXPECT_TRUE(contains(o.err, std::string("  ") + command)) << command;
    EXPECT_TRUE(contains(o.err, "there is no command /hlep: did you mean /help?"))
        << o.err;
    EXPECT_TRUE(contains(o.err, "there is no command /stat: did you mean /stats?"));
    EXPECT_TRUE(contains(o.err, "there is no command /xyzzy; /help lists them"));
    EXPECT_TRUE(contains(o.err, "/reset takes no arguments"));
    Json json(o.out);
    EXPECT_EQ(yyjson_arr_size(json.at("/messages")), 4u) << o.out;
    EXPECT_EQ(json.text("/messages/0/content"), "/usr/bin is what?");
    EXPECT_EQ(json.text("/messages/2/content"), "/ask them all is what I say");
}

TEST_F(ChatSettings, StatsTellTokensMemoryAndSpeed)
{
    Outcome o = talk("/stats\n" + italy + "/stats\n");
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.err, "conversation 0 messages")) << o.err;
    EXPECT_TRUE(contains(o.err, "conversation 2 messages")) << o.err;
    const std::regex speed("last answer  [0-9]+ tokens read in [0-9.]+ s, [0-9]+ decoded "
                           "at [0-9.]+ tokens/s, first token after [0-9.]+ s\n");
    EXPECT_TRUE(std::regex_search(o.err, speed)) << o.err;
    EXPECT_TRUE(contains(o.err, ", 1 answer\n")) << o.err;
    EXPECT_TRUE(std::regex_search(
        o.err, std::regex("KV cache     [1-9][0-9]* tokens, [0-9.]+ MiB")))
        << o.err;
}

/* Both commands report device and kernels in the same way. */
TEST_F(ChatSettings, VerboseTellsDeviceAndKernels)
{
    Outcome o = talk(italy, {"-v"});
    EXPECT_EQ(o.code, 0) << o.err;
    Outcome generated = run({"generate", "-m", folder / "model", "-d", "REFERENCE", "-n",
                             "1", "-p", "x", "-v"});
    const auto line = [](const std::string &text, const char *name) {
        const size_t at = text.find(name);
        return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
    };
    for (const char *name : {"device:", "passes:"}) {
        EXPECT_NE(line(o.err, name), "") << name << o.err;
        EXPECT_EQ(line(o.err, name), line(generated.err, name));
    }
    for (const char *name : {"kernels:", "prompt:", "decode:", "memory:"})
        EXPECT_NE(line(o.err, name), "") << name << o.err;
}
