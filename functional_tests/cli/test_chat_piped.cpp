/* SPDX-License-Identifier: Apache-2.0
 *
 * A chat whose answers reach the terminal through another program: "xemoe chat | tee log".
 */
#include "functional_tests/common/folder.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

namespace
{

const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
const char rome[] = "The capital of Italy is Rome.";

/* A reader that reads every 50 ms, and then writes everything at once. */
const char slow_reader[] =
    "while sleep 0.05; do dd bs=4096 count=1 2>$XDG_STATE_HOME/read; "
    "if grep -q '^0+0' $XDG_STATE_HOME/read; then break; fi; done";

/* Returns the screen after one question. */
std::string
ask_through(const std::string &reader)
{
    const Folder state("through_a_pipe");
    const std::string command = std::string(XM_PROGRAM) + " chat -m " + model +
                                " -d REFERENCE -n 20 | { " + reader + "; }";
    Terminal t({"-c", command}, {"XDG_STATE_HOME=" + state.path}, 80, "", "/bin/sh");
    t.wait_for("> ");
    t.type("What is the capital of Italy?\r");
    t.wait_for("tokens/s");
    t.wait_for("> "); /* the prompt for the next message */
    t.watch(300);
    t.type("\x04");
    EXPECT_EQ(t.finish(), 0);
    return t.text();
}

TEST(ChatPiped, AnswersMayGoThroughAPipe)
{
    const std::string screen = ask_through("cat");
    EXPECT_TRUE(contains(screen, rome)) << screen;
}

/* The program waits for the reader: the answer is on the screen before its statistics and the
 * next prompt. On a busy machine the reader may be late, so that it has several tries. If the
 * program did not wait, the reader would never be in time. */
TEST(ChatPiped, AnAnswerThroughAPipeStandsBeforeWhatIsSaidOfIt)
{
    std::string screen;
    bool in_order = false;
    for (int i = 0; i < 4 && !in_order; i++) {
        screen = ask_through(slow_reader);
        const size_t answer = screen.find(rome), said = screen.find("tokens/s"),
                     prompt = screen.rfind("> ");
        ASSERT_NE(answer, std::string::npos) << screen;
        ASSERT_NE(said, std::string::npos) << screen;
        in_order = answer < said && said < prompt;
    }
    EXPECT_TRUE(in_order) << screen;
}

} // namespace
