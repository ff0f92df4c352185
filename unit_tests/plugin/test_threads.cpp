/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects that several threads may share: the core, a device's engine and kernels, a program, the
 * log. tools/test --threads runs this under ThreadSanitizer.
 */
#include <atomic>
#include <thread>

#include "plugin/plugin.h"
#include "runtime/counting/counting.h"
#include "runtime/fake/fake.h"
#include "runtime/util/log.h"
#include "unit_tests/plugin/language_model.h"
#include "unit_tests/plugin/threads.h"

/* From runtime/engine_ops.h, a header for C only. */
extern "C" void xm_engine_say_building(xm_engine *e, const char *kernel);

namespace
{

class Threads : public OpenClTest
{
  protected:
    Program model(const char *ubatch)
    {
        return must_compile(engine, parse(small_model()),
                            {{"INFERENCE_PRECISION_HINT", "f32"},
                             {"KV_CACHE_PRECISION", "f32"},
                             {"XM_UBATCH", ubatch}});
    }
};

TEST_F(Threads, CancelsFromAnotherThread)
{
    Program p = model("1");
    Request r = make_request(p.get());
    auto in = inputs_of(p.get(), {{some_ids(600, 1, 64)}});
    std::atomic<bool> done{false};
    std::thread other([&] {
        while (!done) {
            xm_request_cancel(r.get());
            std::this_thread::yield();
        }
    });
    std::vector<Tensor> out;
    EXPECT_EQ(infer(r.get(), in, out, &err), XM_CANCELLED);
    done = true;
    other.join();
    EXPECT_EQ(xm_request_past(r.get()), 0u);
    xm_request_resume(r.get());
    EXPECT_TRUE(logits(r.get(), {{some_ids(3, 1, 64)}}));
}

TEST_F(Threads, OneProgramServesTwoThreads)
{
    Program p = model("3");
    Request alone = make_request(p.get());
    step prompt = {{some_ids(10, 1, 64)}}, next = {{{5}}};
    Tensor first = logits(alone.get(), prompt), second = logits(alone.get(), next);
    in_threads(2, [&](int) {
        Request r = make_request(p.get());
        for (int i = 0; i < 3; i++) {
            expect_logits(logits(r.get(), prompt), first);
            expect_logits(logits(r.get(), next), second);
            xm_request_reset(r.get());
        }
    });
}

/* Both threads compile for a device that is not open yet, and both get an error. */
TEST_F(Threads, OneCoreServesTwoThreads)
{
    xm_core *core = nullptr;
    std::atomic<int> lines{0};
    xm_log_set_sink([](xm_log_level, const char *,
                       void *ctx) { ++*static_cast<std::atomic<int> *>(ctx); },
                    &lines);
    ASSERT_XM_OK(xm_core_create(&core, &err));
    in_threads(2, [&](int t) {
        xm_error e = {};
        xm_compiled *compiled = nullptr;
        xm_infer *infer = nullptr;
        const xm_property options[] = {{"NUM_STREAMS", "1"}};
        Graph g = parse(small_model());
        EXPECT_EQ(
            xm_core_compile(core, g.release(), "GPU", options, 1, nullptr, &compiled, &e),
            XM_OK)
            << e.text;
        EXPECT_EQ(xm_compiled_create_request(compiled, &infer, &e), XM_OK) << e.text;
        xm_log(XM_LOG_WARNING, "thread %d", t);
        xm_infer_destroy(infer);
        xm_compiled_unref(compiled);
    });
    xm_core_destroy(core);
    xm_log_set_sink(nullptr, nullptr);
    EXPECT_GE(lines, 2);
}

/* Process-wide settings that need no driver: the log level and the watcher of kernel builds. */
TEST(ThreadsWithoutADriver, SetWhatTheProcessShares)
{
    xm_device_info info = {};
    info.max_alloc_bytes = 1 << 20;
    info.max_work_group = 64;
    xm_engine *engine = nullptr;
    xm_error err = {};
    ASSERT_EQ(xm_fake_engine_create(&info, nullptr, &engine, &err), XM_OK) << err.text;
    uint64_t built = 0; /* written only under the watcher's lock */
    const xm_build_fn count = [](void *ctx, const char *, uint64_t, uint64_t) {
        ++*static_cast<uint64_t *>(ctx);
    };
    std::thread other([&] {
        for (int i = 0; i < 200; i++) {
            xm_log_set_level(i % 2 ? XM_LOG_ERROR : XM_LOG_WARNING);
            xm_build_watch(i % 2 ? nullptr : count, &built);
        }
        xm_build_watch(count, &built);
    });
    for (int i = 0; i < 200; i++) {
        xm_log(XM_LOG_DEBUG, "nobody reads this");
        xm_engine_say_building(engine, "kernel");
        xm_build_is_watched();
    }
    other.join();
    const uint64_t before = built;
    xm_engine_say_building(engine, "kernel");
    EXPECT_EQ(built, before + 1);
    xm_build_watch(nullptr, nullptr);
    xm_engine_say_building(engine, "kernel");
    EXPECT_EQ(built, before + 1);
    xm_log_set_level(XM_LOG_WARNING);
    xm_engine_unref(engine);
}

TEST(ThreadsWithoutADriver, ShareAnEngine)
{
    xm_device_info info = {};
    info.base_align = 64;
    info.max_alloc_bytes = 1 << 30;
    info.max_work_group = 256;
    info.compute_units = 2;
    xm_engine *engine = nullptr;
    xm_error err = {};
    ASSERT_XM_OK(xm_counting_engine_create(&info, nullptr, &engine, &err));
    xm_kernel *kernels[2][8] = {};
    in_threads(2, [&](int t) {
        xm_error e = {};
        xm_queue *queue = nullptr;
        EXPECT_EQ(xm_queue_create(engine, &queue, &e), XM_OK);
        for (int i = 0; i < 20000; i++) {
            const std::string defines = "-DA=" + std::to_string(i % 8);
            xm_buffer *b = nullptr;
            EXPECT_EQ(xm_buffer_create(engine, XM_USE_DEVICE, 64, &b, &e), XM_OK);
            EXPECT_EQ(xm_engine_kernel(engine, "copy_ref", defines.c_str(),
                                       &kernels[t][i % 8], &e),
                      XM_OK)
                << e.text;
            xm_log(XM_LOG_DEBUG, "%d", i);
            xm_buffer_unref(b);
        }
        xm_queue_destroy(queue);
    });
    for (int i = 0; i < 8; i++)
        EXPECT_EQ(kernels[0][i], kernels[1][i]);
    xm_memory_stats stats;
    xm_engine_memory_stats(engine, &stats);
    EXPECT_EQ(stats.total_now, 0u);
    EXPECT_EQ(stats.allocations, 40000u);
    xm_engine_unref(engine);
}

} // namespace
