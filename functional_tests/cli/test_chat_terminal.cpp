/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation as a person has it: keys in, screen out. Without libedit the tests of editing
 * are skipped.
 */
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

static const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
static const char *const ctrl_c = "\x03", *const ctrl_d = "\x04", *const ctrl_a = "\x01",
                         *const rubout = "\x7f", *const up = "\033[A",
                         *const left = "\033[D", *const right = "\033[C";

/* A chat with a state folder of its own, which is removed at the end. */
class Chat
{
  public:
    const bool edits;
    std::string state;
    Terminal t;

    explicit Chat(const Words &more = {}, const Words &settings = {},
                  const std::string &state_folder = "", const std::string &output = "")
        : edits(XM_HAS_EDITOR &&
                !std::count(settings.begin(), settings.end(), "TERM=dumb")),
          state(state_folder.empty() ? own_folder() : state_folder),
          t(words(more), with_state(settings), 80, output)
    {
    }
    ~Chat()
    {
        std::filesystem::remove_all(own_folder());
    }

    void wait_for_prompt()
    {
        t.wait_for(edits ? "\033[?2004h> " : "> ");
    }

    /* Types a line once the prompt is shown. */
    void say(const std::string &line)
    {
        wait_for_prompt();
        t.type(line + "\r");
    }

    int end()
    {
        wait_for_prompt();
        t.type(ctrl_d);
        return t.finish();
    }

    std::vector<std::string> rows() const
    {
        return t.screen.rows();
    }

    static std::string own_folder()
    {
        return testing::TempDir() + "xemoe_state_" + std::to_string(getpid());
    }

  private:
    static Words words(const Words &more)
    {
        Words list = {"chat", "-m", model, "-d", "REFERENCE", "-n", "20"};
        list.insert(list.end(), more.begin(), more.end());
        return list;
    }
    Words with_state(const Words &settings)
    {
        std::filesystem::create_directories(state);
        Words list = settings;
        list.push_back("XDG_STATE_HOME=" + state);
        return list;
    }
};

static const char *const hint =
    "Type a message; /help lists commands, Ctrl-D ends the chat.";
static const char *const italy = "What is the capital of Italy?";
static const char *const rome = "The capital of Italy is Rome.";
/* The line below an answer. */
static const std::regex
    speed("\\([0-9]+ tokens, [0-9.]+ tokens/s, first token after [0-9.]+ s\\)");

/* Checks the rows of one question, its answer and the end. */
static void
expect_conversation(const Chat &c, const std::string &last)
{
    const Words rows = c.rows();
    ASSERT_EQ(rows.size(), 5u) << c.t.text();
    EXPECT_EQ(rows[0], hint);
    EXPECT_EQ(rows[1], std::string("> ") + italy);
    EXPECT_EQ(rows[2], rome);
    EXPECT_TRUE(std::regex_match(rows[3], speed)) << rows[3];
    EXPECT_EQ(rows[4], last);
}

/* While the model loads, the terminal itself collects lines. */
TEST(ChatTerminal, EndsAtACtrlDThatWasTypedAhead)
{
    for (const char *settings : {"TERM=xterm", "TERM=dumb"}) {
        Chat chat({}, {settings});
        chat.t.type(std::string("Paris\r") + ctrl_d);
        EXPECT_EQ(chat.t.finish(), 0) << settings;
    }
}

TEST(ChatTerminal, LooksLikeAConversation)
{
    Chat c;
    c.say(italy);
    c.t.wait_for(rome);
    EXPECT_EQ(c.end(), 0);
    expect_conversation(c, XM_HAS_EDITOR ? "> ^D" : ">");
    EXPECT_TRUE(std::regex_match(c.t.screen.dim_text(), speed)) << c.t.screen.dim_text();
    EXPECT_TRUE(c.t.screen.modes.empty()) << "bracketed paste is left on";
}

TEST(ChatTerminal, WithoutAnEditorItLooksTheSame)
{
    Chat c({}, {"TERM=dumb"});
    c.say(italy);
    c.t.wait_for(rome);
    EXPECT_EQ(c.end(), 0);
    expect_conversation(c, ">");
    EXPECT_FALSE(c.t.screen.escaped) << c.t.raw();
}

static const char *const green = "\033[32m", *const usual = "\033[39m";

TEST(ChatTerminal, WhatIsTypedIsGreen)
{
    Chat c;
    c.say(italy);
    c.t.wait_for(rome);
    EXPECT_EQ(c.end(), 0);
    const std::string raw = c.t.raw();
    const size_t on = raw.find(green), off = raw.find(usual, on), answer = raw.find(rome);
    ASSERT_NE(on, std::string::npos);
    EXPECT_LT(on, raw.find("> "));
    EXPECT_LT(off, answer) << "not so the answer";
    EXPECT_LT(raw.rfind(green), raw.rfind(usual)) << "nor what the shell writes next";
}

TEST(ChatTerminal, NothingIsColouredWhereThatIsNotWanted)
{
    for (const char *setting : {"NO_COLOR=1", "TERM=dumb"}) {
        Chat c({}, {setting});
        c.say(italy);
        c.t.wait_for(rome);
        EXPECT_EQ(c.end(), 0);
        expect_conversation(c, c.edits ? "> ^D" : ">");
        EXPECT_EQ(c.t.raw().find(green), std::string::npos);
        EXPECT_EQ(c.t.raw().find(usual), std::string::npos);
        EXPECT_EQ(c.t.screen.dim_text(), "");
    }
}

/* Types keys as a keyboard sends them. Returns the message that the model gets, from the JSON at
 * the end. */
static std::string
told(const std::string &keys, const Words &settings, Words *screen)
{
    const std::string file = Chat::own_folder() + ".json";
    Chat c({"--json"}, settings, "", file);
    c.say(keys);
    EXPECT_EQ(c.end(), 0) << c.t.text();
    *screen = c.rows();
    std::string text = read_file(file);
    unlink(file.c_str());
    return Json(text).text("/messages/0/content");
}

class Editing : public testing::TestWithParam<const char *>
{
};

TEST_P(Editing, KnowsCharactersInEveryLocale)
{
    if (!XM_HAS_EDITOR)
        GTEST_SKIP() << "built without libedit";
    const struct {
        std::string keys, text;
    } cases[] = {
        {"Grüße", "Grüße"},
        {std::string("Grü") + rubout + "ueße", "Grueße"},
        {std::string("日本x") + rubout + rubout + "本", "日本"},
        {std::string("üä") + left + "ö", "üöä"},
        {std::string("üä") + left + left + right + "ö", "üöä"},
        {std::string("ende") + ctrl_a + "Ü" + "\033[C" + "\033[3~", "Üede"},
        {std::string("ab") + "\033[H" + "0" + "\033[F" + "9", "0ab9"},
    };
    for (const auto &c : cases) {
        Words screen;
        EXPECT_EQ(told(c.keys, {GetParam()}, &screen), c.text) << c.keys;
        ASSERT_GT(screen.size(), 1u);
        EXPECT_EQ(screen[1], "> " + c.text);
    }
}

INSTANTIATE_TEST_SUITE_P(ChatTerminal, Editing,
                         testing::Values("LC_ALL=de_DE.UTF-8", "LC_ALL=C",
                                         "LC_ALL=POSIX"),
                         [](const testing::TestParamInfo<const char *> &info) {
                             return "Locale" + std::to_string(info.index);
                         });

static const std::string paste_begin = "\033[200~", paste_end = "\033[201~";

TEST(ChatTerminal, APastedBlockIsOneMessage)
{
    if (!XM_HAS_EDITOR)
        GTEST_SKIP() << "built without libedit";
    Words screen;
    const std::string block = "eins\rzwei\n\r\nvier";
    EXPECT_EQ(told(paste_begin + block + paste_end, {}, &screen), "eins\nzwei\n\nvier");
    EXPECT_EQ(told(paste_begin + "eins\r" + paste_end + "!", {}, &screen), "eins!");
    std::string longer;
    for (int i = 0; i < 40; i++)
        longer += "Zeile " + std::to_string(i) + "\n";
    EXPECT_EQ(told("x" + paste_begin + longer + paste_end, {}, &screen) + "\n",
              "x" + longer);
}

TEST(ChatTerminal, ABackslashGoesOnInTheNextLine)
{
    Words screen;
    EXPECT_EQ(told("eins\\\rzwei\\\r\\\rvier", {}, &screen), "eins\nzwei\n\nvier");
    if (!XM_HAS_EDITOR)
        return; /* the terminal echoes keys at once, before the prompt */
    EXPECT_EQ(screen[1], "> eins\\");
    EXPECT_EQ(screen[2], ". zwei\\");
}

TEST(ChatTerminal, EarlierLinesComeBackInTheNextConversation)
{
    if (!XM_HAS_EDITOR)
        GTEST_SKIP() << "built without libedit";
    {
        Chat c({"--json"});
        c.say("erste Zeile: ü");
        c.say("zweite");
        c.say("eins\\\rzwei");
        EXPECT_EQ(c.end(), 0);
        const std::string file = c.state + "/xemoe/chat_history";
        struct stat st;
        ASSERT_EQ(stat(file.c_str(), &st), 0);
        EXPECT_EQ(st.st_mode & 0777, 0600u);
        Chat next({"--json"}, {}, c.state);
        next.say(std::string(up) + up + up);
        next.say(up);
        EXPECT_EQ(next.end(), 0);
        size_t json = next.t.text().find("{\n");
        ASSERT_NE(json, std::string::npos);
        Json list(next.t.text().substr(json));
        EXPECT_EQ(list.text("/messages/0/content"), "erste Zeile: ü");
        EXPECT_EQ(list.text("/messages/2/content"), "erste Zeile: ü");
    }
}

TEST(ChatTerminal, TwoChatsAtOnceLoseNothing)
{
    if (!XM_HAS_EDITOR)
        GTEST_SKIP() << "built without libedit";
    const std::string file = Chat::own_folder() + "/xemoe/chat_history";
    Chat one({"-n", "1"}), two({"-n", "1"});
    one.say("eins");
    two.say("zwei");
    one.say("drei");
    two.say("vier");
    EXPECT_EQ(two.end(), 0);
    EXPECT_EQ(one.end(), 0);
    const std::string kept = read_file(file);
    EXPECT_EQ(std::count(kept.begin(), kept.end(), '\n'), 4) << kept;
    for (const char *line : {"eins\n", "zwei\n", "drei\n", "vier\n"})
        EXPECT_NE(kept.find(line), std::string::npos) << kept;
}

TEST(ChatTerminal, WithoutAHistoryNothingIsReadOrKept)
{
    if (!XM_HAS_EDITOR)
        GTEST_SKIP() << "built without libedit";
    const std::string folder = Chat::own_folder() + "/xemoe";
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/chat_history") << "früher\n";
    Words screen;
    {
        Chat c({"--no-history", "-n", "1"});
        c.say(up + std::string("neu"));
        EXPECT_EQ(c.end(), 0);
        EXPECT_EQ(c.rows()[1], "> neu");
        EXPECT_EQ(read_file(folder + "/chat_history"), "früher\n");
    }
}

TEST(ChatTerminal, TheHistoryIsAtHomeWhereNoStateFolderIsNamed)
{
    if (!XM_HAS_EDITOR)
        GTEST_SKIP() << "built without libedit";
    const std::string home = Chat::own_folder() + "_home";
    std::filesystem::create_directories(home);
    Terminal t({"chat", "-m", model, "-d", "REFERENCE", "-n", "1"},
               {"HOME=" + home, "XDG_STATE_HOME="});
    t.wait_for("> ");
    t.type("x\r");
    t.wait_for("\033[?2004h> ");
    t.type(ctrl_d);
    EXPECT_EQ(t.finish(), 0);
    EXPECT_TRUE(std::filesystem::exists(home + "/.local/state/xemoe/chat_history"));
    std::filesystem::remove_all(home);
}

TEST(ChatTerminal, WorksWhereNoHistoryCanBeKept)
{
    for (const char *folder : {"/proc/nowhere", "/dev/null"}) {
        Terminal t({"chat", "-m", model, "-d", "REFERENCE"},
                   {std::string("XDG_STATE_HOME=") + folder});
        t.wait_for("> ");
        t.type(std::string(italy) + "\r");
        t.wait_for(rome);
        t.wait_for("> ");
        t.type(ctrl_d);
        EXPECT_EQ(t.finish(), 0);
    }
}

/* Without an editor the program does not know what was typed. */
TEST(ChatTerminal, CtrlCClearsTheLineAndTwiceEnds)
{
    for (const char *term : {"TERM=xterm", "TERM=dumb"}) {
        Chat c({}, {term});
        c.wait_for_prompt();
        c.t.type("never sent");
        c.t.wait_for("sent");
        c.t.type(ctrl_c);
        if (c.edits) {
            c.wait_for_prompt();
            EXPECT_FALSE(contains(c.t.text(), "(Ctrl-C again")) << c.t.text();
            c.t.type(ctrl_c);
        }
        c.t.wait_for("(Ctrl-C again or Ctrl-D ends the chat)");
        c.say(italy);
        c.t.wait_for(rome);
        c.wait_for_prompt();
        c.t.type(ctrl_c);
        c.t.wait_for("(Ctrl-C again or Ctrl-D ends the chat)");
        c.wait_for_prompt();
        c.t.type(ctrl_c);
        EXPECT_EQ(c.t.finish(), 0);
        EXPECT_EQ(c.rows()[1], "> never sent^C") << c.t.text();
        EXPECT_EQ(c.rows()[c.edits ? 4 : 3], std::string("> ") + italy) << c.t.text();
    }
}

static void
wait_for_cursor(Chat &c, const std::string &before)
{
    for (int i = 0; i < 1000 && c.t.screen.before_cursor() != before; i++)
        c.t.watch(10);
    ASSERT_EQ(c.t.screen.before_cursor(), before);
}

/* With the cursor anywhere in the line; "^C" is shown after the typed text. */
TEST(ChatTerminal, CtrlCLeavesAWrappedLineWhole)
{
    if (!XM_HAS_EDITOR)
        GTEST_SKIP() << "built without libedit";
    const std::string begin = "> ";
    const struct {
        size_t length;
        std::string end; /* of its last row, before the cursor */
        Words rows;
    } lines[] = {
        {5, "> xxxxx", {"> xxxxx^C"}},
        {78, "", {"> " + std::string(78, 'x'), "^C"}}, /* fills the row exactly */
        {200,
         std::string(42, 'x'),
         {"> " + std::string(78, 'x'), std::string(80, 'x'),
          std::string(42, 'x') + "^C"}},
    };
    for (const auto &line : lines) {
        SCOPED_TRACE(line.length);
        for (const auto &[keys, before] :
             {std::pair(std::string(), line.end), std::pair(std::string(ctrl_a), begin),
              std::pair(std::string(ctrl_a) + right + right, begin + "xx")}) {
            Chat c;
            c.wait_for_prompt();
            c.t.type(std::string(line.length, 'x'));
            /* waits, because Ctrl-C drops keys that were not read */
            wait_for_cursor(c, line.end);
            c.t.type(keys);
            wait_for_cursor(c, before);
            c.t.type(ctrl_c);
            EXPECT_EQ(c.end(), 0);
            const Words rows = c.rows();
            ASSERT_EQ(rows.size(), line.rows.size() + 2) << c.t.text();
            for (size_t i = 0; i < line.rows.size(); i++)
                EXPECT_EQ(rows[i + 1], line.rows[i]);
            EXPECT_EQ(rows.back()[0], '>') << c.t.text();
        }
    }
}

/* Statistics, settings and the list of commands on a narrow terminal. */
TEST(ChatTerminal, ListsFitIntoIt)
{
    for (unsigned short columns : {60, 40}) {
        Terminal t({"chat", "-m", model, "-d", "REFERENCE", "-n", "20"},
                   {"TERM=dumb", "XDG_STATE_HOME=" + Chat::own_folder()}, columns);
        for (const char *line : {italy, "/stats", "/set", "/help"}) {
            t.wait_for("> ");
            t.type(std::string(line) + "\r");
        }
        t.wait_for("clears the line.");
        t.type(ctrl_d);
        EXPECT_EQ(t.finish(), 0);
        std::istringstream lines(t.raw().substr(t.raw().find("/stats")));
        for (std::string line; std::getline(lines, line);)
            EXPECT_LE(line.size(), columns) << line; /* a carriage return follows */
        EXPECT_TRUE(contains(t.raw(), "\n  KV cache ")) << t.text();
    }
    std::filesystem::remove_all(Chat::own_folder());
}

TEST(ChatTerminal, CtrlCStopsTheAnswerOnly)
{
    Chat c({"-n", "100000", "--temp", "9", "--seed", "1", "-c", "1000000"});
    c.say("Tell me a story");
    c.t.wait_for("\033[K"); /* the prompt was read: the answer begins */
    c.t.watch(20);
    c.t.type(ctrl_c);
    c.say("/undo");
    EXPECT_EQ(c.end(), 0);
    EXPECT_TRUE(std::regex_search(
        c.t.text(),
        std::regex("\\^C\n\\([^)]*\\)\n> /undo\nthe last message is removed")))
        << c.t.text();
}

/* Ctrl-C at moments from sending the line until well into the answer. */
TEST(ChatTerminal, NoCtrlCIsLost)
{
    for (int moment = 0; moment < 40; moment += 2) {
        Chat c({"-n", "100000", "--temp", "9", "--seed", "1", "-c", "1000000"});
        c.say("Tell me a story");
        c.t.watch(moment);
        c.t.type(ctrl_c);
        c.wait_for_prompt();
        c.t.type(ctrl_d);
        EXPECT_EQ(c.t.finish(), 0) << c.t.text();
    }
}

/* Ctrl-C near the end of a short answer, when the request is released: it stops the answer, or
 * clears the line that is read next. */
TEST(ChatTerminal, CtrlCMayComeAtTheEndOfAnAnswer)
{
    for (int moment = 10; moment < 90; moment += 4) {
        Chat c({"-n", "2"});
        c.say("Tell me a story");
        c.t.watch(moment);
        c.t.type(ctrl_c);
        c.wait_for_prompt();
        c.t.watch(100); /* the prompt before the Ctrl-C, or the one after it */
        c.t.type(ctrl_d);
        EXPECT_EQ(c.t.finish(), 0) << c.t.text();
    }
}

static const int endings[] = {SIGTERM, SIGQUIT, SIGHUP};

TEST(ChatTerminal, ASignalThatEndsGivesTheTerminalBack)
{
    for (const int number : endings) {
        Chat c;
        c.wait_for_prompt();
        EXPECT_EQ(c.t.is_cooked(), !c.edits);
        c.t.signal(number);
        EXPECT_EQ(c.t.finish(), 128 + number);
        EXPECT_TRUE(c.t.screen.modes.empty()) << number;
        EXPECT_TRUE(c.t.is_cooked()) << number;
    }
}

TEST(ChatTerminal, CtrlBackslashEnds)
{
    Chat c;
    c.wait_for_prompt();
    c.t.type("\x1c");
    EXPECT_EQ(c.t.finish(), 128 + SIGQUIT);
    EXPECT_TRUE(c.t.is_cooked());
    EXPECT_NE(c.t.text().find("xemoe: stopped by Ctrl-\\\n"), std::string::npos)
        << c.t.text();
}

/* A driver's compiler installs its own signal handlers. These kernels build fastest. */
TEST(ChatTerminal, ASignalIsNotTheCompilers)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    for (const int number : endings) {
        Chat c({"-d", "GPU", "--cache-dir", "none", "-n", "2"}, {"XM_FORCE=ref"});
        c.say(italy);
        c.wait_for_prompt();
        c.t.signal(number);
        EXPECT_EQ(c.t.finish(), 128 + number);
        EXPECT_TRUE(c.t.screen.modes.empty()) << number;
        EXPECT_TRUE(c.t.is_cooked()) << number;
    }
}

/* Another process stops the program; a shell takes the terminal and gives it back. */
TEST(ChatTerminal, AnEditedLineGoesOnAfterAStopFromOutside)
{
    if (!XM_HAS_EDITOR)
        GTEST_SKIP() << "built without libedit";
    Chat c;
    c.wait_for_prompt();
    c.t.type("What is the capital");
    c.t.wait_for("capital");
    c.t.signal(SIGSTOP);
    ASSERT_TRUE(c.t.has_stopped());
    c.t.cook();
    c.t.signal(SIGCONT);
    c.t.wait_for("> What is the capital");
    EXPECT_FALSE(c.t.is_cooked());
    c.t.type(" of Italy?\r");
    c.t.wait_for(rome);
    EXPECT_EQ(c.end(), 0);
}

/* The shell gets the terminal in its usual mode; afterwards editing continues. */
TEST(ChatTerminal, CtrlZStopsAndTheLineGoesOn)
{
    if (!XM_HAS_EDITOR)
        GTEST_SKIP() << "built without libedit";
    Chat c;
    c.wait_for_prompt();
    c.t.type("What is the capital");
    c.t.wait_for("capital");
    c.t.type("\x1a");
    ASSERT_TRUE(c.t.has_stopped());
    EXPECT_TRUE(c.t.screen.modes.empty());
    c.t.signal(SIGCONT);
    c.t.wait_for("> What is the capital");
    c.t.type(" of Italy?\r");
    c.t.wait_for(rome);
    EXPECT_EQ(c.end(), 0);
}

TEST(ChatTerminal, CommandsAreListedAndCarriedOut)
{
    Chat c;
    c.say("/help");
    c.t.wait_for("/undo                remove");
    c.say("/hlep");
    c.t.wait_for("there is no command /hlep: did you mean /help? /help lists them");
    c.say(italy);
    c.t.wait_for(rome);
    c.say("/retry");
    c.t.wait_for(rome);
    c.say("/undo");
    c.t.wait_for("the last message is removed");
    c.say("/undo");
    c.t.wait_for("there is no message to remove");
    c.say("/reset");
    c.t.wait_for("the conversation is cleared");
    c.say("/exit");
    EXPECT_EQ(c.t.finish(), 0);
}

/* A line that is edited while the terminal is resized is shown once, and can be edited further. */
TEST(ChatTerminal, AResizedTerminalShowsTheLineOnce)
{
    if (!XM_HAS_EDITOR)
        GTEST_SKIP() << "built without libedit";
    const std::string wide = "What is 日本 und die Hauptstadt?";
    const struct {
        unsigned short columns;
        Words rows;
    } cases[] = {
        {60, {"> " + wide + "!"}},
        {20, {"> What is 日本 und d", "ie Hauptstadt?!"}},
        {12, {"> What is 日", "本 und die H", "auptstadt?!"}},
    };
    for (const auto &test : cases) {
        Chat c({"--json"});
        c.wait_for_prompt();
        c.t.type(wide);
        c.t.wait_for("Hauptstadt?");
        c.t.resize(test.columns);
        c.t.wait_for("\033[J");
        c.t.wait_for("?"); /* the line is shown again */
        c.t.type("!");
        c.t.wait_for("!");
        const Words rows = c.rows();
        ASSERT_GE(rows.size(), test.rows.size());
        EXPECT_EQ(Words(rows.end() - static_cast<long>(test.rows.size()), rows.end()),
                  test.rows)
            << c.t.text();
        EXPECT_EQ(count(c.t.text(), "> What"), 1u) << c.t.text();
        c.t.type("\r");
        EXPECT_EQ(c.end(), 0);
    }
}
