/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs threads that start at the same moment.
 */
#ifndef XM_UNIT_TESTS_PLUGIN_THREADS_H
#define XM_UNIT_TESTS_PLUGIN_THREADS_H

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

/* Runs work(0) to work(n - 1), each in its own thread, and waits for all of them. */
inline void
in_threads(int n, const std::function<void(int)> &work)
{
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < n; t++)
        threads.emplace_back([&, t] {
            for (ready++; ready < n;)
                std::this_thread::yield();
            work(t);
        });
    for (auto &t : threads)
        t.join();
}

#endif
