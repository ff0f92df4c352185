/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation and every call of the engine fails once, while compiling and while
 * running: a sentence, no leak, and afterwards the same object works. On the fake engine,
 * which computes nothing; the reference device likewise.
 */
#include "plugin/plugin.h"
#include "runtime/fake/fake.h"
#include "unit_tests/plugin/language_model.h"

namespace
{

/* A light, a layout, a reduction and a host step behind the model; a second result that
 * is a constant. */
const char *const more = R"(
        %20 = const i64[1] {-1}
        %21 = reduce_mean %17, %20 keep_dims=true
        %22 = concat %17, %21 axis=2
        %23 = const i64[] {2}
        %24 = cum_sum %22, %23
        result %24 name="sums"
        result %20 name="minus_one")";

class Faults : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        info.kind = XM_DEVICE_CPU;
        info.max_alloc_bytes = 64 << 20;
        info.base_align = 64;
        info.max_work_group = 256;
        info.local_bytes = 1 << 16;
        info.compute_units = 2;
        info.caps = XM_CAP_FP16;
        open();
    }
    void open()
    {
        xm_engine_unref(engine);
        engine = nullptr;
        ASSERT_XM_OK(xm_fake_engine_create(&info, nullptr, &engine, &err));
    }
    void TearDown() override
    {
        xm_engine_unref(engine);
    }
    /* The n-th allocation (or call) fails; whether it was reached. */
    void arm(bool allocation, uint64_t n)
    {
        if (allocation)
            xm_fail_allocation(n);
        else
            xm_fake_fail(engine, XM_FAKE_ANY, n);
    }
    bool disarm(bool allocation)
    {
        bool seen = allocation ? xm_fail_allocation_seen() : xm_fake_failed(engine);
        xm_fail_allocation(0);
        xm_fake_fail(engine, XM_FAKE_ANY, 0);
        return seen;
    }
    xm_device_info info = {};
    xm_engine *engine = nullptr;
    xm_error err = {};
};

TEST_F(Faults, CompileFailsWithASentence)
{
    for (bool allocation : {true, false}) {
        bool seen = true;
        for (uint64_t n = 1; seen; n++) {
            Program p(nullptr, xm_program_unref);
            Graph g = parse(small_model(more));
            xm_error why = {};
            arm(allocation, n);
            enum xm_status s = compile(engine, std::move(g), {}, p, &why);
            seen = disarm(allocation);
            ASSERT_EQ(s != XM_OK, seen) << n << ": " << why.text;
            EXPECT_EQ(why.text[0] != '\0', s != XM_OK) << n;
        }
    }
}

TEST_F(Faults, RequestsWorkAfterAFailedRun)
{
    Program p = must_compile(engine, parse(small_model(more)), {});
    ASSERT_TRUE(p);
    EXPECT_EQ(p->n_host_steps, 1u);
    auto in = inputs_of(p.get(), {{some_ids(5, 1, 64), some_ids(5, 2, 64)}});
    for (bool allocation : {true, false}) {
        bool seen = true;
        for (uint64_t n = 1; seen; n++) {
            xm_error why = {};
            xm_request *raw = nullptr;
            std::vector<Tensor> out;
            arm(allocation, n);
            enum xm_status s = xm_request_create(p.get(), &raw, &why);
            Request r(raw, xm_request_destroy);
            if (s == XM_OK)
                s = infer(r.get(), in, out, &why);
            seen = disarm(allocation);
            ASSERT_EQ(s != XM_OK, seen) << n << ": " << why.text;
            if (s == XM_OK)
                continue;
            ASSERT_STRNE(why.text, "") << n;
            if (!r)
                continue;
            if (xm_request_past(r.get())) /* it ran; the test's own copy has failed */
                xm_request_reset(r.get());
            err = {};
            ASSERT_XM_OK(infer(r.get(), in, out, &err));
            ASSERT_EQ(xm_request_past(r.get()), 5u);
        }
    }
}

TEST_F(Faults, TheReferenceDeviceToo)
{
    xm_core *core = nullptr;
    ASSERT_XM_OK(xm_core_create(&core, &err));
    bool seen = true;
    for (uint64_t n = 1; seen && n < 4000; n += 1 + n / 50) {
        xm_compiled *c = nullptr;
        xm_infer *r = nullptr;
        xm_error why = {};
        xm_graph *g = parse(small_model(more)).release();
        int64_t id = 1, mask = 1;
        int32_t beam = 0;
        const xm_host_tensor in[] = {{XM_I64, 2, {1, 1}, &id, 8},
                                     {XM_I64, 2, {1, 1}, &mask, 8},
                                     {XM_I32, 1, {1}, &beam, 4}};
        xm_fail_allocation(n);
        enum xm_status s =
            xm_core_compile(core, g, "REFERENCE", nullptr, 0, nullptr, &c, &why);
        if (s == XM_OK)
            s = xm_compiled_create_request(c, &r, &why);
        for (uint32_t i = 0; i < 3 && s == XM_OK; i++)
            s = r->ops->set_input(r, i, &in[i], &why);
        if (s == XM_OK)
            s = r->ops->infer(r, &why);
        seen = disarm(true);
        EXPECT_EQ(s != XM_OK, seen) << n << ": " << why.text;
        EXPECT_EQ(why.text[0] != '\0', s != XM_OK) << n;
        xm_infer_destroy(r);
        xm_compiled_unref(c);
    }
    xm_core_destroy(core);
}

} // namespace
