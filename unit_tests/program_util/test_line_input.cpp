/* SPDX-License-Identifier: Apache-2.0
 *
 * A Ctrl-C that empties the terminal's input just before it is read.
 */
#include "plugin/program_util/line_input.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "plugin/program_util/interrupt.h"

static bool loses_keys;

/* Replaces the C library's read: the first read of keys finds none, because they were dropped,
 * and the signal arrives in another thread. */
extern "C" ssize_t
read(int fd, void *bytes, size_t n)
{
    static const auto real = (decltype(&read))dlsym(RTLD_NEXT, "read");
    if (loses_keys && isatty(fd)) {
        loses_keys = false;
        tcflush(fd, TCIFLUSH);
        std::thread([] { pthread_kill(pthread_self(), SIGINT); }).join();
    }
    return real(fd, bytes, n);
}

namespace
{

class LineInput : public testing::TestWithParam<const char *>
{
};

/* A program that reads a line on a terminal; it exits with 0 if Ctrl-C ended the read. */
void
read_on_terminal(int terminal, const char *term)
{
    xm_line_input *in = nullptr;
    xm_strbuf line = {};
    xm_error err = {};
    setenv("TERM", term, 1);
    dup2(terminal, STDIN_FILENO);
    dup2(terminal, STDERR_FILENO);
    signal(SIGINT, SIG_DFL);
    alarm(60); /* ends a read that blocks */
    xm_cli_watch_interrupt();
    xm_cli_note_interrupt();
    loses_keys = true;
    if (xm_line_input_create(true, false, &in, &err) != XM_OK)
        _exit(1);
    const xm_line got = xm_line_input_read(in, &line, &err);
    xm_line_input_free(in);
    _exit(got == XM_LINE_INTERRUPTED ? 0 : 2);
}

TEST_P(LineInput, CtrlCIsSeenThoughTheKeysAreGone)
{
    int keyboard, terminal;
    ASSERT_EQ(openpty(&keyboard, &terminal, nullptr, nullptr, nullptr), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0)
        read_on_terminal(terminal, GetParam());
    std::string seen;
    while (seen.find("> ") == std::string::npos) {
        char bytes[256];
        const ssize_t n = read(keyboard, bytes, sizeof(bytes));
        ASSERT_GT(n, 0) << seen;
        seen.append(bytes, (size_t)n);
    }
    ASSERT_EQ(write(keyboard, "lost\n", 5), 5);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    close(keyboard);
    close(terminal);
}

/* With the line editor and without. */
INSTANTIATE_TEST_SUITE_P(Terminals, LineInput, testing::Values("xterm", "dumb"));

} // namespace
