/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals that another thread handles while this thread frees objects that the handlers use.
 */
#include "plugin/program_util/interrupt.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "functional_tests/common/folder.h"
#include "runtime/util/new_file.h"

namespace
{

struct FakeRun {
    std::atomic<bool> is_slow{false}, began{false}, ended{false};
};

void
fake_cancel(void *run)
{
    auto *f = static_cast<FakeRun *>(run);
    f->began = true;
    if (f->is_slow)
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    f->ended = true;
}

const xm_interruptible ops = {fake_cancel, [](void *) {}};

/* Sends the signal to another thread, as to a driver's thread that does not block it. */
std::thread
signal_elsewhere(int signal_number)
{
    return std::thread([=] { pthread_kill(pthread_self(), signal_number); });
}

class Interrupts : public testing::Test
{
  protected:
    void SetUp() override
    {
        signal(SIGINT, SIG_DFL); /* a shell's background jobs inherit them ignored */
        signal(SIGTERM, SIG_DFL);
        xm_cli_watch_interrupt();
        xm_cli_note_interrupt();
    }

    void TearDown() override
    {
        xm_cli_forget_interrupt();
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
    }
};

TEST_F(Interrupts, NobodyUsesARequestThatWasLetGo)
{
    for (auto let_go : {xm_cli_note_interrupt, xm_cli_release_interrupt}) {
        FakeRun r;
        r.is_slow = true;
        xm_cli_catch_run(&r, &ops);
        std::thread other = signal_elsewhere(SIGINT);
        while (!r.began)
            std::this_thread::yield();
        let_go();
        EXPECT_TRUE(r.ended);
        other.join();
        EXPECT_TRUE(xm_cli_interrupted());
        xm_cli_forget_interrupt();
    }
}

/* Ctrl-C arrives while the request is released and freed: whichever is first, the signal is not
 * lost. */
TEST_F(Interrupts, ARequestMayBeFreedOnceItWasLetGo)
{
    enum { ROUNDS = 2000 };
    for (int i = 0; i < ROUNDS; i++) {
        auto r = std::make_unique<FakeRun>();
        xm_cli_catch_run(r.get(), &ops);
        std::thread other = signal_elsewhere(SIGINT);
        for (int spin = 0; spin < i % 100; spin++)
            std::this_thread::yield();
        xm_cli_note_interrupt();
        r.reset();
        other.join();
        ASSERT_TRUE(xm_cli_interrupted());
        xm_cli_forget_interrupt();
    }
}

/* A Ctrl-C that was noted cancels the request that is watched next. */
TEST_F(Interrupts, ANotedOneCancelsTheNextRequest)
{
    FakeRun r;
    signal_elsewhere(SIGINT).join();
    EXPECT_FALSE(r.began);
    xm_cli_catch_run(&r, &ops);
    EXPECT_TRUE(r.ended);
    xm_cli_note_interrupt();
}

TEST_F(Interrupts, AFlagMayBeFreedOnceItsSignalIsOff)
{
    enum { ROUNDS = 2000 };
    for (int i = 0; i < ROUNDS; i++) {
        auto came = std::make_unique<bool>(false);
        xm_cli_wake_on(SIGWINCH, came.get());
        std::thread other = signal_elsewhere(SIGWINCH);
        for (int spin = 0; spin < i % 100; spin++)
            std::this_thread::yield();
        xm_cli_wake_off(SIGWINCH);
        came.reset();
        other.join();
    }
    xm_cli_wake_drain();
}

/* ---- files that are being written when a signal ends the process ---------------------- */

class Endings : public testing::TestWithParam<int>
{
};

/* Returns the signal that ends a child process which runs `write`; `write` does not return. */
template <typename Write>
int
status_of_child(Write write)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGXFSZ})
            signal(number, SIG_DFL);
        xm_cli_watch_interrupt();
        xm_cli_release_interrupt(); /* drops a signal that another test noted */
        write();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

void
expect_ended_by(int number, int status)
{
    if (number == SIGINT) {
        ASSERT_TRUE(WIFEXITED(status));
        EXPECT_EQ(WEXITSTATUS(status), 130);
    } else {
        ASSERT_TRUE(WIFSIGNALED(status));
        EXPECT_EQ(WTERMSIG(status), number);
    }
}

TEST_P(Endings, LeaveNothingOfUnfinishedFiles)
{
    const Folder folder("endings_" + std::to_string(GetParam()));
    folder.write("old", "old");
    const std::string old = folder / "old", fresh = folder / "fresh";
    const int status = status_of_child([&] {
        xm_new_file a, b;
        xm_strbuf text = {};
        xm_strbuf_add(&text, "half of it");
        if (xm_new_file_begin(&a, old.c_str(), nullptr) == XM_OK &&
            xm_new_file_begin(&b, fresh.c_str(), nullptr) == XM_OK &&
            xm_new_file_write(&b, &text, nullptr) == XM_OK)
            raise(GetParam());
    });
    expect_ended_by(GetParam(), status);
    EXPECT_EQ(folder.names(), (std::set<std::string>{"old"}));
}

/* A finished file keeps its name. A file that failed is gone, and the handler does not use its
 * freed memory. */
TEST_P(Endings, LeaveFinishedFilesAlone)
{
    const Folder folder("finished_" + std::to_string(GetParam()));
    const std::string good = folder / "good", bad = folder / "bad";
    const int status = status_of_child([&] {
        xm_new_file f;
        for (int i = 0; i < 100; i++) {
            if (xm_new_file_begin(&f, good.c_str(), nullptr) != XM_OK ||
                xm_new_file_end(&f, XM_OK, nullptr) != XM_OK ||
                xm_new_file_begin(&f, bad.c_str(), nullptr) != XM_OK ||
                xm_new_file_end(&f, XM_IO, nullptr) != XM_IO)
                _exit(1);
        }
        raise(GetParam());
    });
    expect_ended_by(GetParam(), status);
    EXPECT_EQ(folder.names(), (std::set<std::string>{"good"}));
}

INSTANTIATE_TEST_SUITE_P(Interrupts, Endings,
                         testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE,
                                         SIGXCPU, SIGXFSZ));

/* As under nohup, an ignored signal does not end the process. */
TEST(Endings, OfIgnoredSignalsAreNone)
{
    EXPECT_EQ(status_of_child([] {
                  signal(SIGHUP, SIG_IGN);
                  xm_cli_watch_interrupt();
                  raise(SIGHUP);
                  _exit(7);
              }),
              7 << 8);
}

} // namespace
