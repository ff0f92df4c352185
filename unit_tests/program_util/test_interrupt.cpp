/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals that another thread handles while this one takes away what their handlers use.
 */
#include "plugin/program_util/interrupt.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

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

/* Ctrl-C in a thread of its own, as in one of a driver that does not block it. */
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
        signal(SIGINT, SIG_DFL); /* a shell's background jobs ignore it */
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

/* Ctrl-C comes while the request is let go and freed: whoever sees it, it is not lost. */
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

/* What was noted is for the request that is caught next. */
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

} // namespace
