/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers with thoughts, and conversations that outgrow the context.
 */
#include <filesystem>
#include <regex>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

static const std::string models = XM_MODELS_DIR;

/* A model folder made of links to files elsewhere. */
class ModelFolder : public Folder
{
  public:
    ModelFolder(const std::string &model, const std::string &variant) : Folder("model")
    {
        for (const char *file :
             {"tokenizer.json", "chat_template.jinja", "config.json"}) {
            if (std::filesystem::exists(models + model + "/" + file))
                std::filesystem::copy(models + model + "/" + file, *this / file);
        }
        for (const char *file : {"openvino_model.xml", "openvino_model.bin"})
            std::filesystem::create_symlink(
                models + model + "/ov/" + variant + "/" + file, *this / file);
    }
};

static Outcome
talk(const Folder &folder, const std::string &lines, const Words &options)
{
    std::string input = folder.path + "/lines";
    std::ofstream(input, std::ios::binary) << lines;
    Words words = {"chat", "-m", folder.path, "-d", "REFERENCE"};
    words.insert(words.end(), options.begin(), options.end());
    return Program(words, {}, input).finish();
}

/* ---- channels ---------------------------------------------------------------------- */

/* Accepts any capital: the model is too small to know the right one. */
static bool
is_an_answer(const std::string &text)
{
    return std::regex_match(text, std::regex("The capital of \\w+ is \\w+\\.\n"));
}

class GptOss : public testing::Test
{
  protected:
    ModelFolder folder{"/gpt-oss-tiny", "int4_sym_g64"};
};

TEST_F(GptOss, ChatShowsTheFinalChannelWithoutItsName)
{
    Outcome o = talk(folder, "What is the capital of France?\n", {"-n", "30"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(is_an_answer(o.out)) << o.out;
}

/* The history has what the template expects; golden/chat.json has the rendered text. */
TEST_F(GptOss, TheHistoryHoldsWhatWasSaidOnly)
{
    const char *lines = "What is the capital of France?\nWhat is the capital of Italy?\n";
    Outcome o = talk(folder, lines, {"-n", "30", "--json"});
    ASSERT_EQ(o.code, 0) << o.err;
    Json json(o.out);
    EXPECT_TRUE(is_an_answer(json.text("/messages/1/content") + "\n")) << o.out;
    EXPECT_TRUE(is_an_answer(json.text("/messages/3/content") + "\n")) << o.out;
}

TEST_F(GptOss, GenerateWritesTheRawContinuation)
{
    Words words = {"generate",
                   "-m",
                   folder.path,
                   "-d",
                   "REFERENCE",
                   "-n",
                   "12",
                   "-p",
                   "<|start|>user<|message|>What is the capital of France?<|end|>"
                   "<|start|>assistant"};
    EXPECT_EQ(run(words).out.rfind("finalThe capital of ", 0), 0u);
    words.push_back("--special");
    EXPECT_TRUE(contains(run(words).out, "<|channel|>final<|message|>The capital"));
}

/* The template begins an analysis, which the model continues. */
TEST_F(GptOss, AnalysisIsShownOnlyWhenAskedFor)
{
    std::string text = read_file(folder.path + "/chat_template.jinja");
    size_t at = text.find("'<|start|>assistant' }}");
    ASSERT_NE(at, std::string::npos);
    text.insert(at + 19, "<|channel|>analysis<|message|>");
    folder.write("chat_template.jinja", text);
    const char *line = "What is the capital of France?\n";
    Outcome hidden = talk(folder, line, {"-n", "30"});
    EXPECT_EQ(hidden.code, 0) << hidden.err;
    Outcome shown = talk(folder, line, {"-n", "30", "--show-thinking"});
    EXPECT_EQ(shown.out.rfind("The capital of ", 0), 0u) << shown.out;
    EXPECT_EQ(shown.out.find("\n"), shown.out.size() - 1) << shown.out;
    EXPECT_FALSE(contains(shown.out, "\033")) << "no terminal, no styles";
    EXPECT_EQ(hidden.out, "\n");
}

/* The template begins the call, and the model can only end it. */
TEST_F(GptOss, ACallOfAToolIsALine)
{
    folder.write("chat_template.jinja",
                 "<|start|>assistant<|channel|>commentary to=functions.get_weather "
                 "<|constrain|>json<|message|>{\"city\": \"Rome\"}");
    const Words ends = {"-n", "1", "--logit-bias", "1458+1000"};
    const char *line = "What is the weather?\n";
    Outcome o = talk(folder, line, ends);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out, "call get_weather {\"city\":\"Rome\"}\n");
    /* a bracket that is never closed */
    folder.write("chat_template.jinja", "<|start|>assistant<|channel|>commentary "
                                        "to=functions.get_weather<|message|>{\"city\": ");
    Outcome none = talk(folder, line, ends);
    EXPECT_EQ(none.out, "{\"city\": \n");
}

TEST_F(GptOss, ThoughtsAreDimOnATerminalThatMay)
{
    std::string text = read_file(folder.path + "/chat_template.jinja");
    text.insert(text.find("'<|start|>assistant' }}") + 19,
                "<|channel|>analysis<|message|>");
    folder.write("chat_template.jinja", text);
    for (const char *setting : {"XM_UNUSED=1", "NO_COLOR=1", "TERM=dumb"}) {
        Terminal t(
            {"chat", "-m", folder.path, "-d", "REFERENCE", "-n", "12", "--show-thinking"},
            {setting, "XDG_STATE_HOME=" + folder.path});
        t.wait_for("> ");
        t.type("What is the capital of France?\r");
        t.wait_for("The capital of ");
        t.wait_for("\n");
        t.wait_for("> ");
        t.type("\x04");
        EXPECT_EQ(t.finish(), 0);
        bool is_dim = contains(t.screen.dim_text(), "The capital of ");
        EXPECT_EQ(is_dim, std::string(setting) == "XM_UNUSED=1") << t.raw();
    }
}

/* ---- tags -------------------------------------------------------------------------- */

/* The tiny model has the tags and never uses them: its template opens the thought. */
TEST(Thinking, OfAModelWithTagsIsNoText)
{
    ModelFolder folder("/qwen3moe-tiny", "int4_asym_g64");
    std::string text = read_file(folder.path + "/chat_template.jinja");
    const std::string end = "<|im_start|>assistant\\n' }}";
    size_t at = text.rfind(end);
    ASSERT_NE(at, std::string::npos);
    const char *line = "What is the capital of Italy?\n";
    EXPECT_EQ(talk(folder, line, {}).out, "The capital of Italy is Rome.\n");
    text.insert(at + end.size() - 4, "<think>\\n");
    folder.write("chat_template.jinja", "{# </think> #}" + text);
    Outcome hidden = talk(folder, line, {"-n", "20"});
    EXPECT_EQ(hidden.code, 0) << hidden.err;
    EXPECT_EQ(hidden.out, "\n");
    Outcome shown = talk(folder, line, {"-n", "20", "--show-thinking"});
    EXPECT_GT(shown.out.size(), 5u);
}

/* ---- the context ------------------------------------------------------------------- */

class Context : public testing::Test
{
  protected:
    ModelFolder folder{"/qwen3moe-tiny", "int4_asym_g64"};
};

static const char *const four =
    "What is the capital of Italy?\nWhat is the capital of Japan?\n"
    "What is the capital of Peru?\nWhat is the capital of Italy?\n";

TEST_F(Context, OldTurnsAreLeftOutWithANotice)
{
    Outcome o = talk(folder, four, {"-c", "80", "--system", "Be kind.", "--json"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(
        o.err, "no longer fits into the context of 80 tokens: its oldest 2 messages"))
        << o.err;
    Json json(o.out);
    EXPECT_EQ(json.text("/messages/0/role"), "system");
    EXPECT_EQ(json.text("/messages/1/content"), "What is the capital of Italy?");
    EXPECT_EQ(json.text("/messages/8/content"), "The capital of Italy is Rome.");
    EXPECT_EQ(talk(folder, four, {"--system", "Be kind."}).err, "") << "all of it fits";
}

/* Without an option the trained context counts. */
TEST_F(Context, ComesOutOfTheConfiguration)
{
    folder.write("config.json", R"({"text_config": {"max_position_embeddings": 80}})");
    Outcome o = talk(folder, four, {"--system", "Be kind."});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.err, "no longer fits into the context of 80 tokens")) << o.err;
    o = talk(folder, "", {"-c", "81"});
    EXPECT_TRUE(contains(o.err, "exceeds the 80 for which the model was trained"));
    EXPECT_EQ(talk(folder, "", {"-c", "80"}).err, "");
}

TEST_F(Context, AMessageThatDoesNotFitIsRefusedAndTheConversationGoesOn)
{
    std::string longer = "Tell";
    for (int i = 0; i < 100; i++)
        longer += " me";
    Outcome o = talk(folder,
                     "What is the capital of Italy?\n" + longer +
                         "\nWhat is the capital of Japan?\n",
                     {"-c", "80", "--json"});
    EXPECT_EQ(o.code, 1) << o.err;
    EXPECT_TRUE(
        contains(o.err, "in a context of 80 tokens: it is not sent; give a larger -c"))
        << o.err;
    Json json(o.out);
    EXPECT_EQ(json.text("/messages/1/content"), "The capital of Italy is Rome.");
    EXPECT_EQ(json.text("/messages/2/content"), "What is the capital of Japan?");
    EXPECT_EQ(yyjson_arr_size(json.at("/messages")), 4u);
}

TEST_F(Context, AnAnswerEndsWhereItIsFull)
{
    Outcome o = talk(folder, "What is the capital of Italy?\n", {"-c", "22", "-n", "-1"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.err, "the context of 22 tokens is full; give a larger -c"))
        << o.err;
    EXPECT_LT(o.out.size(), std::string("The capital of Italy is Rome.").size());
    o = talk(folder, "What is the capital of Italy?\n", {"-n", "2"});
    EXPECT_TRUE(contains(o.err, "the answer was cut after 2 tokens (-n)")) << o.err;
}

/* ---- commands and lines ------------------------------------------------------------ */

TEST_F(Context, CommandsChangeTheConversation)
{
    Outcome o = talk(folder,
                     "What is the capital of Italy?\n/retry\nWhat is\\\nthis?\n/undo\n"
                     "/usr/bin is what?\n/nonsense\n",
                     {"--json", "-n", "10"});
    EXPECT_EQ(o.code, 1) << "a command that there is not: " << o.err;
    Json json(o.out);
    EXPECT_EQ(yyjson_arr_size(json.at("/messages")), 4u) << o.out;
    EXPECT_EQ(json.text("/messages/1/content"), "The capital of Italy is Rome.");
    EXPECT_EQ(json.text("/messages/2/content"), "/usr/bin is what?");
    EXPECT_TRUE(contains(o.err, "there is no command /nonsense")) << o.err;
}

TEST_F(Context, CtrlCWithoutATerminalEndsTheConversation)
{
    folder.write("lines", std::string(four) + four);
    Program p({"chat", "-m", folder.path, "-d", "REFERENCE", "-n", "-1", "--temp", "9"},
              {}, folder.path + "/lines");
    p.wait_for_output();
    p.interrupt();
    Outcome o = p.finish();
    EXPECT_EQ(o.code, 130) << o.err;
    EXPECT_TRUE(contains(o.err, "xemoe: stopped by Ctrl-C\n")) << o.err;
    EXPECT_EQ(o.out.back(), '\n');
}
