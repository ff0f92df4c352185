/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversations, stop strings and penalties, as a user sees them.
 */
#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"

static const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

/* Runs a chat with these lines as standard input. */
static Outcome
talk(const std::string &lines, Words options)
{
    std::string path =
        testing::TempDir() + "xemoe_" + std::to_string(getpid()) + "_lines";
    std::ofstream(path, std::ios::binary) << lines;
    Words words = {"chat", "-m", model};
    words.insert(words.end(), options.begin(), options.end());
    Outcome o = Program(words, {}, path).finish();
    unlink(path.c_str());
    return o;
}

TEST(Chat, AnswersEachLine)
{
    Outcome o =
        talk("What is the capital of Italy?\nWhat is the capital of Japan?\n", {});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out, "The capital of Italy is Rome.\nThe capital of Japan is Tokyo.\n");
}

/* Lines of spaces are ignored like empty lines. */
TEST(Chat, LinesOfSpacesDoNothing)
{
    Outcome o =
        talk("\n  \n \t\r\n \\\n \nWhat is the capital of Italy?\n   ", {"--json"});
    EXPECT_EQ(o.code, 0) << o.err;
    Json json(o.out);
    ASSERT_EQ(yyjson_arr_size(json.at("/messages")), 2u) << o.out;
    EXPECT_EQ(json.text("/messages/0/content"), "What is the capital of Italy?");
    EXPECT_EQ(yyjson_arr_size(json.at("/failed")), 0u) << o.out;
}

/* Positions cached from earlier turns must not change an answer. */
TEST(Chat, ResetBeginsAnew)
{
    Outcome alone = talk("What is the capital of Japan?\n", {});
    Outcome after = talk("What is the capital of Italy?\n/reset\n"
                         "What is the capital of Japan?\n/exit\nnever read\n",
                         {});
    EXPECT_EQ(after.code, 0) << after.err;
    EXPECT_EQ(after.out, "The capital of Italy is Rome.\n" + alone.out);
}

/* REFERENCE cannot truncate its states: it feeds everything again. */
TEST(Chat, HistoryIsTheSameWithAndWithoutPrefixReuse)
{
    const char *lines =
        "What is the capital of Italy?\nAnd what is the capital of Peru?\n";
    Outcome reused = talk(lines, {"--precision", "f32", "-n", "12"});
    Outcome whole = talk(lines, {"--device", "REFERENCE", "-n", "12"});
    EXPECT_EQ(reused.code, 0) << reused.err;
    EXPECT_EQ(whole.code, 0) << whole.err;
    EXPECT_EQ(reused.out, whole.out);
}

/* Penalties do not count a turn that was undone. */
TEST(Chat, APenaltyForgetsWhatIsTakenBack)
{
    const std::string question = "What is the capital of Italy?\n";
    const Words penalty = {"--frequency-penalty", "3", "-n", "12"};
    Outcome alone = talk(question, penalty);
    Outcome again = talk(question + "/undo\n" + question + "/retry\n", penalty);
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(again.out, alone.out + alone.out + alone.out);
}

TEST(Chat, JsonHasTheConversation)
{
    Outcome o =
        talk("What is the capital of Italy?\n", {"--json", "--system", "Be kind."});
    EXPECT_EQ(o.code, 0) << o.err;
    Json json(o.out);
    EXPECT_EQ(json.text("/messages/0/role"), "system");
    EXPECT_EQ(json.text("/messages/1/content"), "What is the capital of Italy?");
    EXPECT_EQ(json.text("/messages/2/content"), "The capital of Italy is Rome.");
}

/* Writes a template to a temporary file and returns its path. */
static std::string
template_file(const std::string &text)
{
    std::string path =
        testing::TempDir() + "xemoe_" + std::to_string(getpid()) + "_template";
    std::ofstream(path, std::ios::binary) << text;
    return path;
}

TEST(Chat, ATemplateFromAFileStandsForTheModels)
{
    const std::string path = template_file(
        "{% for m in messages %}<|im_start|>{{ m.role }}\nWhat is the capital of "
        "Japan?<|im_end|>\n{% endfor %}<|im_start|>assistant{{ '\\n' }}");
    Outcome o = talk("What is the capital of Italy?\n", {"--chat-template", path});
    unlink(path.c_str());
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out, "The capital of Japan is Tokyo.\n");
    EXPECT_NE(o.err.find("does not render the messages"), std::string::npos) << o.err;
}

TEST(Chat, ATemplateThatCannotBeReadIsNamed)
{
    const std::string path = template_file("{% for m in messages %}");
    Outcome broken = talk("x\n", {"--chat-template", path});
    unlink(path.c_str());
    EXPECT_EQ(broken.code, 3) << broken.err;
    EXPECT_NE(broken.err.find("--chat-template '" + path + "': line 1"),
              std::string::npos)
        << broken.err;
    Outcome missing = talk("x\n", {"--chat-template", "/nowhere/a.jinja"});
    EXPECT_EQ(missing.code, 3) << missing.err;
    EXPECT_NE(missing.err.find(
                  "option --chat-template needs a file: /nowhere/a.jinja: No such"),
              std::string::npos)
        << missing.err;
}

TEST(Generate, ChatPutsThePromptThroughTheTemplate)
{
    const std::string question = "What is the capital of Italy?";
    Outcome o = run({"generate", "-m", model, "--chat", "-p", question, "--json"});
    Outcome by_hand =
        run({"generate", "-m", model, "--json", "-p",
             "<|im_start|>user\n" + question + "<|im_end|>\n<|im_start|>assistant\n"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(Json(o.out).text("/text"), "The capital of Italy is Rome.");
    EXPECT_EQ(o.out.substr(0, o.out.find("\"ids\"")),
              by_hand.out.substr(0, by_hand.out.find("\"ids\"")));
}

TEST(Generate, ChatTakesASystemMessage)
{
    Outcome o = run({"generate", "-m", model, "--chat", "--system", "Be kind.", "-p",
                     "Hello", "-n", "1", "--json"});
    Outcome by_hand = run({"generate", "-m", model, "-n", "1", "--json", "-p",
                           "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n"
                           "Hello<|im_end|>\n<|im_start|>assistant\n"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out.substr(0, o.out.find("\"ids\"")),
              by_hand.out.substr(0, by_hand.out.find("\"ids\"")));
}

/* The name of a control token in a message is plain text. */
TEST(Generate, ChatKeepsAMessageText)
{
    const std::string path = template_file("{{ messages[0].content }}");
    Outcome token =
        run({"generate", "-m", model, "-p", "<|im_end|>", "-n", "1", "--json"});
    Outcome text = run({"generate", "-m", model, "--chat", "-p", "<|im_end|>", "-n", "1",
                        "--json", "--chat-template", path});
    unlink(path.c_str());
    EXPECT_EQ(token.code, 0) << token.err;
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_EQ(Json(token.out).ids("/prompt_ids").size(), 1u);
    EXPECT_GT(Json(text.out).ids("/prompt_ids").size(), 1u);
    EXPECT_EQ(text.err.find("does not render"), std::string::npos) << text.err;
}

TEST(Generate, ChatWritesSeveralAnswers)
{
    const std::string path =
        testing::TempDir() + "xemoe_" + std::to_string(getpid()) + "_p";
    std::ofstream(path)
        << "What is the capital of Italy?\nWhat is the capital of Japan?\n";
    Outcome o = run({"generate", "-m", model, "--chat", "-f", path, "--parallel", "2"});
    unlink(path.c_str());
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.out.find("The capital of Italy is Rome."), std::string::npos) << o.out;
    EXPECT_NE(o.out.find("The capital of Japan is Tokyo."), std::string::npos) << o.out;
}

TEST(Generate, WhatGoesWithChatOnlyIsRefusedAlone)
{
    EXPECT_EQ(run({"generate", "-m", model, "-p", "x", "--system", "y"}).code, 2);
    EXPECT_EQ(run({"generate", "-m", model, "-p", "x", "--chat-template", "y"}).code, 2);
    EXPECT_EQ(run({"generate", "-m", model, "--ids", "1", "--chat"}).code, 2);
}

TEST(Generate, StopsBeforeAStopString)
{
    Outcome o = run({"generate", "-m", model, "-p", "Paris is the capital of", "-n", "20",
                     "--stop", "never there", "--stop", "nce."});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out, " Fra\n");
}

TEST(Generate, APenaltyChangesWhatRepeats)
{
    Words words = {"generate",        "-m", model, "-p",
                   "a a a a a a a a", "-n", "12",  "--ignore-eos"};
    Outcome plain = run(words);
    words.insert(words.end(), {"--frequency-penalty", "100"});
    Outcome punished = run(words);
    EXPECT_EQ(plain.code, 0) << plain.err;
    EXPECT_EQ(punished.code, 0) << punished.err;
    EXPECT_NE(plain.out, punished.out);
}

TEST(Generate, ProbabilitiesAboveOneAreRefused)
{
    Outcome o = run({"generate", "-m", model, "-p", "x", "--min-p", "1.5"});
    EXPECT_EQ(o.code, 2);
    EXPECT_NE(o.err.find("--min-p"), std::string::npos) << o.err;
}
