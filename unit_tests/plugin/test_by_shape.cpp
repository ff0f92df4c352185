/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs compiled by shape, with a compiler that the test controls: waiting for a compilation,
 * and cancelling.
 */
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "plugin/by_shape.h"
#include "unit_tests/graph/graph_text.h"

namespace
{

const char any_length[] = "%0 = parameter f32[length] name=\"x\"\nresult %0 name=\"y\"\n";

struct FakeInfer {
    xm_infer base = {};
    std::atomic<bool> cancelled{false};
};

/* Called while a request is resumed, where a signal handler could run. */
std::function<void()> on_resume;

FakeInfer *
self(xm_infer *r)
{
    return reinterpret_cast<FakeInfer *>(r);
}

xm_infer_ops
make_infer_ops()
{
    xm_infer_ops ops = {};
    ops.set_input = [](xm_infer *, uint32_t, const xm_host_tensor *, xm_error *) {
        return XM_OK;
    };
    ops.infer = [](xm_infer *r, xm_error *err) {
        return self(r)->cancelled ? xm_fail(err, XM_CANCELLED, "cancelled") : XM_OK;
    };
    ops.cancel = [](xm_infer *r) { self(r)->cancelled = true; };
    ops.resume = [](xm_infer *r) {
        self(r)->cancelled = false;
        if (on_resume)
            on_resume();
    };
    ops.destroy = [](xm_infer *r) { delete self(r); };
    return ops;
}
const xm_infer_ops infer_ops = make_infer_ops();

xm_compiled_ops
make_compiled_ops()
{
    xm_compiled_ops ops = {};
    ops.create_request = [](xm_compiled *, xm_infer **out, xm_error *) {
        auto *r = new FakeInfer;
        r->base.ops = &infer_ops;
        *out = &r->base;
        return XM_OK;
    };
    ops.destroy = [](xm_compiled *c) { delete c; };
    return ops;
}
const xm_compiled_ops compiled_ops = make_compiled_ops();

class ByShape : public testing::Test
{
  protected:
    void SetUp() override
    {
        xm_graph *g = parse(any_length).release();
        xm_kept_graph *kept = nullptr;
        ASSERT_EQ(xm_graph_keep(&g, &kept, &err), XM_OK) << err.text;
        xm_graph_destroy(g);
        const xm_shape_compiler compiler = {compile, [](void *) {}, this};
        ASSERT_EQ(xm_by_shape_create(kept, compiler, &model, &err), XM_OK) << err.text;
        xm_mapping_unref(&kept->base);
    }

    void TearDown() override
    {
        on_resume = nullptr;
        xm_compiled_unref(model);
    }

    /* A compiler that returns at once for small shapes, and for large ones when the test allows
     * it. */
    static xm_status compile(void *ctx, xm_graph *g, xm_compiled **out, xm_error *err)
    {
        auto *t = static_cast<ByShape *>(ctx);
        int64_t n = 0;
        xm_for_each_node(node, g)
        {
            if (node->op == XM_OP_PARAMETER)
                n = node->out[0].type.shape.dim[0].n;
        }
        xm_graph_destroy(g);
        t->n_compiled++;
        while (n >= slow && !t->may_end)
            std::this_thread::yield();
        if (n == broken)
            return xm_fail(err, XM_UNSUPPORTED, "the device refuses it");
        *out = new xm_compiled{};
        (*out)->ops = &compiled_ops;
        (*out)->refs = 1;
        return XM_OK;
    }

    xm_infer *make_request()
    {
        xm_infer *r = nullptr;
        EXPECT_EQ(xm_compiled_create_request(model, &r, &err), XM_OK) << err.text;
        return r;
    }

    static xm_status run(xm_infer *r, int64_t n)
    {
        std::vector<float> x(static_cast<size_t>(n));
        xm_host_tensor t = {XM_F32, 1, {n}, x.data(), x.size() * sizeof(float)};
        xm_error e = {};
        const xm_status s = r->ops->set_input(r, 0, &t, &e);
        return s == XM_OK ? r->ops->infer(r, &e) : s;
    }

    std::future<xm_status> begin(int64_t n)
    {
        return std::async(std::launch::async, [this, n] {
            xm_infer *r = make_request();
            const xm_status s = run(r, n);
            xm_infer_destroy(r);
            return s;
        });
    }

    static const int64_t slow = 5, broken = 6;
    xm_compiled *model = nullptr;
    xm_error err = {};
    std::atomic<int> n_compiled{0};
    std::atomic<bool> may_end{false};
};

TEST_F(ByShape, ANewShapeKeepsTheOthersRunning)
{
    auto first = begin(slow);
    while (n_compiled < 2)
        std::this_thread::yield();
    auto second = begin(slow), known = begin(1);
    const auto found = known.wait_for(std::chrono::seconds(300));
    EXPECT_EQ(found, std::future_status::ready);
    EXPECT_NE(second.wait_for(std::chrono::milliseconds(50)), std::future_status::ready);
    may_end = true;
    for (auto *f : {&first, &second, &known})
        EXPECT_EQ(f->get(), XM_OK);
    EXPECT_EQ(n_compiled, 2); /* the small shape, and the slow one once */
}

TEST_F(ByShape, AFailureIsOfAllWhoWait)
{
    auto first = begin(broken), second = begin(broken);
    while (n_compiled < 2)
        std::this_thread::yield();
    may_end = true;
    EXPECT_EQ(first.get(), XM_UNSUPPORTED);
    EXPECT_EQ(second.get(), XM_UNSUPPORTED);
}

TEST_F(ByShape, IsCancelledFromWhereverASignalComes)
{
    xm_infer *r = make_request();
    EXPECT_EQ(run(r, 1), XM_OK);
    on_resume = [&] { r->ops->cancel(r); };
    r->ops->resume(r);
    EXPECT_EQ(run(r, 1), XM_CANCELLED);
    EXPECT_EQ(run(r, 2), XM_CANCELLED); /* also with another shape's program */
    on_resume = nullptr;
    r->ops->resume(r);
    EXPECT_EQ(run(r, 2), XM_OK);
    xm_infer_destroy(r);
}

TEST_F(ByShape, CancelsMeetRequestsThatChangeTheirProgram)
{
    xm_infer *r = make_request();
    std::atomic<bool> is_over{false};
    std::thread other([&] {
        while (!is_over) {
            r->ops->cancel(r);
            r->ops->resume(r);
        }
    });
    for (int i = 0; i < 2000; i++) {
        const xm_status s = run(r, 1 + i % 4);
        EXPECT_TRUE(s == XM_OK || s == XM_CANCELLED) << s;
    }
    is_over = true;
    other.join();
    EXPECT_EQ(run(r, 1), XM_OK);
    xm_infer_destroy(r);
}

} // namespace
