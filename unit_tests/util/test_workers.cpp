// SPDX-License-Identifier: Apache-2.0
#include "runtime/util/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <signal.h>
#include <vector>

#include "runtime/util/memory.h"

namespace
{

enum { WORKERS = 4 };

struct Course {
    std::vector<std::atomic<int>> done;
    std::atomic<int> busy[WORKERS] = {};
    std::atomic<bool> is_shared{false};
    explicit Course(size_t n) : done(n)
    {
    }
};

TEST(Workers, DoEachItemOnce)
{
    xm_workers *w = xm_workers_create(WORKERS);
    ASSERT_NE(w, nullptr);
    for (size_t n = 0; n < 300; n++) {
        Course course(n);
        xm_workers_run(
            w, n,
            [](size_t item, size_t worker, void *ctx) {
                Course *c = static_cast<Course *>(ctx);
                ASSERT_LT(worker, (size_t)WORKERS);
                c->is_shared = c->is_shared || c->busy[worker].fetch_add(1) != 0;
                c->done.at(item)++;
                c->busy[worker]--;
            },
            &course);
        for (const auto &count : course.done)
            ASSERT_EQ(count, 1);
        EXPECT_FALSE(course.is_shared) << "two calls had one worker's number";
    }
    xm_workers_free(w);
}

/* Two items that wait for each other can end only in two threads. */
TEST(Workers, WorkSideBySide)
{
    xm_workers *w = xm_workers_create(2);
    ASSERT_NE(w, nullptr);
    std::atomic<int> here{0};
    xm_workers_run(
        w, 2,
        [](size_t, size_t, void *ctx) {
            auto *n = static_cast<std::atomic<int> *>(ctx);
            n->fetch_add(1);
            while (n->load() < 2)
                ;
        },
        &here);
    EXPECT_EQ(here, 2);
    xm_workers_free(w);
}

TEST(Workers, AloneAreTheCaller)
{
    xm_workers *w = xm_workers_create(1);
    ASSERT_NE(w, nullptr);
    const pthread_t self = pthread_self();
    struct Alone {
        pthread_t self;
        int n;
    } alone = {self, 0};
    xm_workers_run(
        w, 5,
        [](size_t, size_t, void *ctx) {
            Alone *a = static_cast<Alone *>(ctx);
            EXPECT_TRUE(pthread_equal(a->self, pthread_self()));
            a->n++;
        },
        &alone);
    EXPECT_EQ(alone.n, 5);
    xm_workers_free(w);
    xm_workers_free(nullptr);
    EXPECT_GE(xm_workers_cores(), 1u);
}

TEST(Workers, TheirThreadsTakeNoSignals)
{
    xm_workers *w = xm_workers_create(2);
    ASSERT_NE(w, nullptr);
    std::atomic<int> here{0};
    xm_workers_run(
        w, 2,
        [](size_t, size_t worker, void *ctx) {
            auto *n = static_cast<std::atomic<int> *>(ctx);
            sigset_t blocked;
            pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
            EXPECT_EQ(sigismember(&blocked, SIGINT), worker > 0 ? 1 : 0);
            n->fetch_add(1);
            while (n->load() < 2)
                ;
        },
        &here);
    xm_workers_free(w);
}

TEST(Workers, NeedMemory)
{
    xm_fail_allocation(1);
    EXPECT_EQ(xm_workers_create(2), nullptr);
    xm_fail_allocation(0);
}

} // namespace
