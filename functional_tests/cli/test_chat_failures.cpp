/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns that fail: the message is removed, and the conversation continues.
 */
#include <filesystem>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

static const std::string models = XM_MODELS_DIR;
static const char *const italy = "What is the capital of Italy?";
static const char *const rome = "The capital of Italy is Rome.";

/* A copy of the model whose template refuses messages with "secrets". */
class ChatFailures : public testing::Test
{
  protected:
    const Folder folder{"fails"};

    void SetUp() override
    {
        const std::string from = models + "/qwen3moe-tiny/ov/int4_asym_g64";
        std::filesystem::copy(from, folder.path,
                              std::filesystem::copy_options::recursive |
                                  std::filesystem::copy_options::overwrite_existing);
        for (const char *file : {"tokenizer.json", "chat_template.jinja", "config.json"})
            std::filesystem::copy(models + "/qwen3moe-tiny/" + file, folder / file,
                                  std::filesystem::copy_options::overwrite_existing);
        const std::string text = read_file(folder / "chat_template.jinja");
        folder.write("chat_template.jinja",
                     "{%- if 'secret' in messages[-1].content -%}"
                     "{{ raise_exception('secrets are not told') }}{%- endif -%}" +
                         text);
    }

    Outcome talk(const std::string &lines, const Words &options) const
    {
        folder.write("lines", lines);
        Words words = {"chat", "-m", folder.path};
        words.insert(words.end(), options.begin(), options.end());
        return Program(words, {}, folder / "lines").finish();
    }

    /* Returns a text of about 2 n tokens. */
    static std::string me(int n)
    {
        std::string text = "Tell";
        for (int i = 0; i < n; i++)
            text += " me";
        return text + "\n";
    }
};

TEST_F(ChatFailures, WithoutATemplateTheOptionIsNamed)
{
    const std::string file = "chat_template.jinja", text = read_file(folder / file);
    std::filesystem::remove(folder / file);
    const Outcome without = talk(std::string(italy) + "\n", {"-d", "REFERENCE"});
    EXPECT_EQ(without.code, 3) << without.err;
    EXPECT_EQ(without.err.rfind("xemoe: there is no chat template in '", 0), 0u)
        << without.err;
    EXPECT_TRUE(ends_with(without.err, "; give one with --chat-template FILE\n"))
        << without.err;
    folder.write("other.jinja", text);
    EXPECT_EQ(talk(std::string(italy) + "\n",
                   {"-d", "REFERENCE", "--chat-template", folder / "other.jinja"})
                  .code,
              0);
}

TEST_F(ChatFailures, ATemplateThatRefusesAMessageTakesItBack)
{
    const std::string lines = std::string(italy) + "\nTell me a secret\n" + italy + "\n";
    Outcome o = talk(lines, {"-d", "REFERENCE", "--json"});
    EXPECT_EQ(o.code, 1) << o.err;
    EXPECT_TRUE(contains(o.err, "secrets are not told")) << o.err;
    EXPECT_TRUE(contains(o.err, "xemoe: the message is removed\n")) << o.err;
    Json json(o.out);
    EXPECT_EQ(yyjson_arr_size(json.at("/messages")), 4u) << o.out;
    EXPECT_EQ(json.text("/messages/3/content"), rome);
    EXPECT_EQ(yyjson_arr_size(json.at("/failed")), 1u);
    EXPECT_EQ(json.text("/failed/0/content"), "Tell me a secret");
    EXPECT_TRUE(contains(json.text("/failed/0/error"), "secrets are not told"));
    EXPECT_EQ(json.number("/failed/0/behind"), 2.0);
    o = talk(std::string(italy) + "\n", {"-d", "REFERENCE", "--json"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(Json(o.out).at("/failed"), nullptr);
}

TEST_F(ChatFailures, APersonGoesOnToo)
{
    Terminal t({"chat", "-m", folder.path, "-d", "REFERENCE"},
               {"XDG_STATE_HOME=" + folder.path, "TERM=dumb"});
    t.wait_for("> ");
    t.type("Tell me a secret\r");
    t.wait_for("told"); /* the sentence begins with a path, and may have several lines */
    t.wait_for("> ");
    t.type(std::string(italy) + "\r");
    t.wait_for(rome);
    t.wait_for("> ");
    t.type("\x04");
    EXPECT_EQ(t.finish(), 1);
}

/* The cache has room for 1024 positions in f16. */
TEST_F(ChatFailures, TheMemoryOfTheCacheDropsOldTurns)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const std::string lines = me(150) + me(155) + me(160) + me(165) + italy + "\n";
    const Words options = {"--kv", "f16",    "--kv-memory", "1", "-n",
                           "12",   "--json", "--temp",      "0"};
    Outcome o = talk(lines, options);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.err, "the conversation no longer fits into the KV cache of "))
        << o.err;
    EXPECT_TRUE(contains(o.err, "messages are left out from now on")) << o.err;
    Json json(o.out);
    EXPECT_EQ(yyjson_arr_size(json.at("/messages")), 10u);
    EXPECT_EQ(json.at("/failed"), nullptr) << o.out;
    o = talk(lines, {"--kv", "f16", "-n", "12", "--json"});
    EXPECT_FALSE(contains(o.err, "outgrown")) << o.err << "all of it fits";
}

TEST_F(ChatFailures, AMessageBeyondTheMemoryOfTheCacheIsTakenBack)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Outcome o = talk(me(600) + italy + "\n" + me(600) + italy + "\n",
                     {"--kv", "f16", "--kv-memory", "1", "--json", "-n", "20"});
    EXPECT_EQ(o.code, 1) << o.err;
    EXPECT_EQ(count(o.err, "xemoe: the message is removed\n"), 2u) << o.err;
    EXPECT_TRUE(contains(o.err, "the KV cache is full")) << o.err;
    Json json(o.out);
    EXPECT_EQ(yyjson_arr_size(json.at("/failed")), 2u);
    EXPECT_EQ(json.text("/messages/1/content"), rome) << o.out;
    EXPECT_EQ(json.text("/messages/3/content"), rome) << o.out;
}

TEST_F(ChatFailures, AnAnswerEndsWhereTheMemoryOfTheCacheDoes)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Outcome o = talk(me(490) + italy + "\n", {"--kv", "f16", "--kv-memory", "1", "--json",
                                              "-n", "200", "--temp", "9", "--seed", "1"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.err, ": the answer ends here\n")) << o.err;
    Json json(o.out);
    EXPECT_EQ(yyjson_arr_size(json.at("/messages")), 4u);
    EXPECT_GT(json.text("/messages/1/content").size(), 10u) << "what was said is kept";
}

/* ---- pipes --------------------------------------------------------------------------- */

TEST_F(ChatFailures, BytesThatAreNoUtf8AreReplaced)
{
    Outcome o = talk("What \xff\xfe is \xc3\n", {"-d", "REFERENCE", "--json", "-n", "2"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(Json(o.out).text("/messages/0/content"),
              "What \xef\xbf\xbd\xef\xbf\xbd is \xef\xbf\xbd");
}

TEST_F(ChatFailures, WhatThereIsIsPrintedAlsoWhereTheInputFails)
{
    Program p({"chat", "-m", folder.path, "-d", "REFERENCE", "--json"}, {}, folder.path);
    Outcome o = p.finish(); /* a folder cannot be read */
    EXPECT_EQ(o.code, 3) << o.err;
    EXPECT_TRUE(contains(o.err, "standard input: ")) << o.err;
    EXPECT_NE(Json(o.out).at("/messages"), nullptr) << o.out;
}
