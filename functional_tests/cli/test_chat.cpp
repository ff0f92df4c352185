/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversations, stop strings and penalties, as a user meets them.
 */
#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"

static const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

/* Standard input from a text. */
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

/* What the cache holds of earlier turns must not change an answer. */
TEST(Chat, ResetBeginsAnew)
{
    Outcome alone = talk("What is the capital of Japan?\n", {});
    Outcome after = talk("What is the capital of Italy?\n/reset\n"
                         "What is the capital of Japan?\n/exit\nnever read\n",
                         {});
    EXPECT_EQ(after.code, 0) << after.err;
    EXPECT_EQ(after.out, "The capital of Italy is Rome.\n" + alone.out);
}

/* The REFERENCE device cannot forget a part of its states: it feeds everything again. */
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

/* What was taken back has not been said: penalties do not see it. */
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
