/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts, and tensors in device memory, on a small model: what is shared, and in which order
 * objects may be freed.
 */
#include <filesystem>
#include <thread>

#include "functional_tests/api/remote_adder.h"

namespace
{

/* ---- contexts ------------------------------------------------------------------------- */

TEST_F(RemoteAdder, TheDevicesOwnContextSaysWhatItIs)
{
    ov_remote_context_t *c = nullptr;
    ASSERT_EQ(ov_core_get_default_context(core.get(), "GPU", &c), OK);
    Context own(c);
    const std::string params = params_of(c);
    EXPECT_EQ(params.rfind("CONTEXT_TYPE OCL OCL_CONTEXT 0x", 0), 0u) << params;
    EXPECT_EQ(value_of(params, "OCL_QUEUE"), "0");
    char *name = nullptr;
    ASSERT_EQ(ov_remote_context_get_device_name(c, &name), OK);
    EXPECT_STREQ(name, "GPU.0");
    ov_free(name);
    ov_remote_context_t *same = nullptr;
    ASSERT_EQ(ov_core_create_context(core.get(), "GPU.0", 0, &same), OK) << last_error();
    EXPECT_EQ(params_of(Context(same).get()), params);
}

TEST_F(RemoteAdder, ACompiledModelGivesItsContextBack)
{
    const Context c = share(queue);
    EXPECT_EQ(params_of(c.get()), "CONTEXT_TYPE OCL OCL_CONTEXT " + handle_text(context) +
                                      " OCL_QUEUE " + handle_text(queue));
    const Compiled compiled = compile_in(model.get(), c.get());
    ov_remote_context_t *back = nullptr;
    ASSERT_EQ(ov_compiled_model_get_context(compiled.get(), &back), OK) << last_error();
    EXPECT_EQ(params_of(Context(back).get()), params_of(c.get()));
    char *devices = nullptr;
    ASSERT_EQ(
        ov_compiled_model_get_property(compiled.get(), "EXECUTION_DEVICES", &devices),
        OK);
    EXPECT_STREQ(devices, "GPU.0");
    ov_free(devices);
}

TEST_F(RemoteAdder, AQueueAloneHasAContext)
{
    const ov_property_t keys[] = {{"CONTEXT_TYPE", "OCL"}, {"OCL_QUEUE", queue}};
    ov_remote_context_t *c = nullptr;
    ASSERT_EQ(ov_core_create_context_props(core.get(), "GPU", 2, keys, &c), OK)
        << last_error();
    EXPECT_EQ(params_of(Context(c).get()), params_of(share(queue).get()));
}

TEST_F(RemoteAdder, PropertiesOfACompilationHold)
{
    const Context c = share(nullptr);
    const ov_property_t p[] = {{"PERFORMANCE_HINT", "THROUGHPUT"}};
    ov_compiled_model_t *m = nullptr;
    ASSERT_EQ(ov_core_compile_model_with_context_props(core.get(), model.get(), c.get(),
                                                       1, p, &m),
              OK)
        << last_error();
    const Compiled compiled(m);
    char *value = nullptr;
    ASSERT_EQ(ov_compiled_model_get_property(m, "PERFORMANCE_HINT", &value), OK);
    EXPECT_STREQ(value, "THROUGHPUT");
    ov_free(value);
}

/* This includes a model loaded from the cache, which was compiled elsewhere. */
TEST_F(RemoteAdder, ModelsFromTheCacheAreInTheContext)
{
    const std::filesystem::path folder =
        std::filesystem::path(testing::TempDir()) / "xemoe_remote_cache";
    std::filesystem::remove_all(folder);
    const std::string cache = folder.string();
    ov_compiled_model_t *m = nullptr;
    ASSERT_EQ(ov_core_compile_model(core.get(), model.get(), "GPU", 2, &m, "CACHE_DIR",
                                    cache.c_str()),
              OK)
        << last_error();
    const std::vector<uint8_t> want = expected(Compiled(m).get());
    for (int i = 0; i < 2; i++) {
        const Context c = share(queue);
        ASSERT_EQ(ov_core_compile_model_with_context(core.get(), model.get(), c.get(), 2,
                                                     &m, "CACHE_DIR", cache.c_str()),
                  OK)
            << last_error();
        const Compiled compiled(m);
        run_on(make_request(m), c.get(), queue, want);
    }
    std::filesystem::remove_all(folder);
}

/* ---- shared memory ---------------------------------------------------------------------- */

TEST_F(RemoteAdder, BuffersOfTheCallerAreReadAndWrittenInHisQueue)
{
    const Context c = share(queue);
    const Compiled compiled = compile_in(model.get(), c.get());
    const Request r = make_request(compiled.get());
    const std::vector<uint8_t> first = expected(compiled.get());
    run_on(r, c.get(), queue, first);
    a = numbers(7);
    const std::vector<uint8_t> second = expected(compiled.get());
    if (!is_dry()) {
        EXPECT_NE(first, second);
    }
    run_on(r, c.get(), queue, second);
}

TEST_F(RemoteAdder, SoInAQueueThatIsOutOfOrder)
{
    cl_command_queue q = make_queue(context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    const Context c = share(q);
    const Compiled compiled = compile_in(model.get(), c.get());
    const Request r = make_request(compiled.get());
    for (float seed : {1.0f, 2.0f, 3.0f}) {
        a = numbers(seed);
        run_on(r, c.get(), q, expected(compiled.get()));
    }
}

/* A write that is enqueued but finishes late, in queues of both kinds: the run waits for it. */
TEST_F(RemoteAdder, WaitsForWhatIsEnqueuedBeforeIt)
{
    for (cl_command_queue_properties bits : {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}) {
        cl_command_queue q = make_queue(context, bits);
        const Context c = share(q);
        const Compiled compiled = compile_in(model.get(), c.get());
        const Request r = make_request(compiled.get());
        a = numbers(1);
        cl_mem ma = make_mem(a.data(), n_bytes), my = make_mem(n_bytes);
        set(r, "a", tensor_of(c.get(), F32, shape, "OCL_BUFFER", ma));
        set_host(r, "b", b);
        set(r, "y", tensor_of(c.get(), F32, shape, "OCL_BUFFER", my));
        infer(r); /* builds all kernels */
        a = numbers(2);
        const std::vector<uint8_t> want = expected(compiled.get());
        cl_event go = clCreateUserEvent(context, nullptr);
        ASSERT_EQ(
            clEnqueueWriteBuffer(q, ma, CL_FALSE, 0, n_bytes, a.data(), 1, &go, nullptr),
            CL_SUCCESS);
        ASSERT_EQ(ov_infer_request_start_async(r.get()), OK) << last_error();
        EXPECT_EQ(ov_infer_request_wait_for(r.get(), 50), RESULT_NOT_READY);
        clSetUserEventStatus(go, CL_COMPLETE);
        EXPECT_EQ(ov_infer_request_wait(r.get()), OK) << last_error();
        expect_bits(read_mem(my, n_bytes, q), want);
        clReleaseEvent(go);
    }
}

TEST_F(RemoteAdder, ResultsAreTheSameWithoutAContext)
{
    const Context c = share(nullptr);
    const Compiled inside = compile_in(model.get(), c.get());
    const Compiled outside = compile(core.get(), model.get(), "GPU");
    EXPECT_EQ(expected(inside.get()), expected(outside.get()));
}

/* With any options of the compiled model. */
TEST_F(RemoteAdder, MemoryOfTheDevicesOwnContextServesAllModels)
{
    ov_remote_context_t *own = nullptr;
    ASSERT_EQ(ov_core_get_default_context(core.get(), "GPU", &own), OK);
    const Context c(own);
    ov_compiled_model_t *m = nullptr;
    ASSERT_EQ(
        ov_core_compile_model(core.get(), model.get(), "GPU", 2, &m, "PERF_COUNT", "YES"),
        OK)
        << last_error();
    const Compiled measured(m), plain = compile(core.get(), model.get(), "GPU");
    const Tensor y = tensor_of(own, F32, shape, nullptr, nullptr);
    const std::string params = params_of(y.get());
    EXPECT_EQ(value_of(params, "SHARED_MEM_TYPE"), "OCL_BUFFER");
    cl_context theirs = (cl_context)handle_of(params, "OCL_CONTEXT");
    cl_command_queue q = make_queue(theirs);
    for (const Compiled *compiled : {&measured, &plain}) {
        const Request r = make_request(compiled->get());
        set_host(r, "a", a);
        set_host(r, "b", b);
        set(r, "y", y);
        infer(r);
        expect_bits(read_mem((cl_mem)handle_of(params, "MEM_HANDLE"), n_bytes, q),
                    expected(compiled->get()));
    }
}

/* Memory that a program allocates with USM itself. */
class RemoteUsm : public RemoteAdder
{
  protected:
    void SetUp() override
    {
        RemoteAdder::SetUp();
        cl_platform_id p = nullptr;
        clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(p), &p, nullptr);
        load(p, "clSharedMemAllocINTEL", &alloc);
        load(p, "clMemBlockingFreeINTEL", &release);
        load(p, "clEnqueueMemcpyINTEL", &copy);
        c = share(queue);
        if (!alloc || !release || !copy)
            GTEST_SKIP() << "the driver has no USM";
    }

    template <typename F> static void load(cl_platform_id p, const char *name, F *out)
    {
        *out = (F)clGetExtensionFunctionAddressForPlatform(p, name);
    }

    void run_with(const Tensor &ta, const Tensor &ty)
    {
        const Compiled compiled = compile_in(model.get(), c.get());
        const Request r = make_request(compiled.get());
        void *from = handle_of(params_of(ta.get()), "MEM_HANDLE");
        void *to = handle_of(params_of(ty.get()), "MEM_HANDLE");
        std::vector<uint8_t> got(n_bytes);
        set(r, "a", ta);
        set_host(r, "b", b);
        set(r, "y", ty);
        EXPECT_EQ(copy(queue, CL_FALSE, from, a.data(), n_bytes, 0, nullptr, nullptr),
                  CL_SUCCESS);
        infer(r);
        EXPECT_EQ(copy(queue, CL_TRUE, got.data(), to, n_bytes, 0, nullptr, nullptr),
                  CL_SUCCESS);
        expect_bits(got, expected(compiled.get()));
    }

    Context c;
    clSharedMemAllocINTEL_fn alloc = nullptr;
    clMemBlockingFreeINTEL_fn release = nullptr;
    clEnqueueMemcpyINTEL_fn copy = nullptr;
};

TEST_F(RemoteUsm, HostAndDeviceMemoryIsMade)
{
    for (const char *kind : {"USM_HOST_BUFFER", "USM_DEVICE_BUFFER"}) {
        const Tensor ta = tensor_of(c.get(), F32, shape, kind, nullptr);
        const Tensor ty = tensor_of(c.get(), F32, shape, kind, nullptr);
        EXPECT_EQ(value_of(params_of(ta.get()), "SHARED_MEM_TYPE"), kind);
        run_with(ta, ty);
    }
}

TEST_F(RemoteUsm, MemoryOfTheCallerIsTaken)
{
    cl_int code = 0;
    void *from = alloc(context, device, nullptr, n_bytes, 0, &code);
    void *to = alloc(context, device, nullptr, n_bytes, 0, &code);
    ASSERT_TRUE(from && to) << code;
    {
        const Tensor ta = tensor_of(c.get(), F32, shape, "USM_USER_BUFFER", from);
        const Tensor ty = tensor_of(c.get(), F32, shape, "USM_USER_BUFFER", to);
        EXPECT_EQ(value_of(params_of(ta.get()), "SHARED_MEM_TYPE"), "USM_USER_BUFFER");
        run_with(ta, ty);
    }
    release(context, from);
    release(context, to);
}

TEST_F(RemoteUsm, APointerThatIsNoneIsRefused)
{
    Dims dims = shape;
    ov_tensor_t *t = nullptr;
    expect_error(ov_remote_context_create_tensor(c.get(), F32, {2, dims.data()}, 4, &t,
                                                 "SHARED_MEM_TYPE", "USM_USER_BUFFER",
                                                 "MEM_HANDLE", a.data()),
                 "not USM of the OpenCL context");
}

TEST_F(RemoteAdder, AHostTensorIsATensorAsAnyOther)
{
    const Context c = share(nullptr);
    const Compiled compiled = compile_in(model.get(), c.get());
    const Request r = make_request(compiled.get());
    Dims dims = shape, more = {rows * 4, 2};
    ov_tensor_t *t = nullptr;
    void *data = nullptr;
    ASSERT_EQ(ov_remote_context_create_host_tensor(c.get(), F32, {2, dims.data()}, &t),
              OK)
        << last_error();
    const Tensor host(t);
    ASSERT_EQ(ov_tensor_set_shape(t, {2, more.data()}), OK) << last_error();
    ASSERT_EQ(ov_tensor_set_shape(t, {2, dims.data()}), OK) << last_error();
    ASSERT_EQ(ov_tensor_data(t, &data), OK);
    memcpy(data, a.data(), n_bytes);
    set(r, "a", host);
    set_host(r, "b", b);
    infer(r);
    expect_bits(read_output(r), expected(compiled.get()));
    size_t n = 0;
    char *text = nullptr;
    EXPECT_EQ(ov_remote_tensor_get_params(t, &n, &text), INVALID_C_PARAM);
}

/* The data come from the tensor that was set last, for each order of host and device tensors. */
TEST_F(RemoteAdder, TensorsOfHostAndDeviceTakeTurns)
{
    const Context c = share(queue);
    const Compiled compiled = compile_in(model.get(), c.get());
    const Request r = make_request(compiled.get());
    std::vector<float> out(n_floats);
    const std::vector<uint8_t> first = expected(compiled.get());
    run_on(r, c.get(), queue, first);
    a = numbers(3);
    const std::vector<uint8_t> second = expected(compiled.get());
    set_host(r, "a", a);
    set(r, "y", wrap(out.data(), rows));
    infer(r);
    expect_bits(bytes_of(out), second);
    b = numbers(9);
    run_on(r, c.get(), queue, expected(compiled.get()));
    expect_bits(bytes_of(out), second); /* no longer bound */
}

TEST_F(RemoteAdder, ATensorHasTheShapeOfTheResult)
{
    const Context c = share(queue);
    const Compiled compiled = compile_in(dynamic_model().get(), c.get());
    const Request r = make_request(compiled.get());
    const Tensor y = tensor_of(c.get(), F32, {rows * 2, 2}, nullptr, nullptr);
    set_host(r, "a", a);
    set_host(r, "b", b);
    set(r, "y", y);
    infer(r);
    ov_shape_t found = {0, nullptr};
    ASSERT_EQ(ov_tensor_get_shape(y.get(), &found), OK);
    EXPECT_EQ(Dims(found.dims, found.dims + found.rank), shape);
    ov_shape_free(&found);
    void *data = nullptr;
    expect_error(ov_tensor_data(y.get(), &data), "to which the host has no pointer");
}

/* A model that is compiled for each set of shapes. */
TEST_F(RemoteAdder, ModelsThatAreCompiledForEachShapeTakeMemoryToo)
{
    const Context c = share(queue);
    const Model open = read_text(core.get(), add_model());
    const Compiled compiled = compile_in(open.get(), c.get());
    ov_remote_context_t *back = nullptr;
    ASSERT_EQ(ov_compiled_model_get_context(compiled.get(), &back), OK) << last_error();
    EXPECT_EQ(params_of(Context(back).get()), params_of(c.get()));
    const Request r = make_request(compiled.get());
    const std::vector<uint8_t> want = expected(compiled.get());
    run_on(r, c.get(), queue, want);
    std::vector<float> one = {1, 2, 3, 4};
    set(r, "a", wrap(one.data(), 2));
    set(r, "b", wrap(one.data(), 2));
    infer(r);
    run_on(r, c.get(), queue, want);
    set_host(r, "a", a);
    std::vector<float> out(n_floats);
    set(r, "y", wrap(out.data(), rows));
    infer(r);
    expect_bits(bytes_of(out), want);
}

TEST_F(RemoteAdder, RunsInTheBackground)
{
    const Context c = share(queue);
    const Compiled compiled = compile_in(model.get(), c.get());
    const Request r = make_request(compiled.get());
    const std::vector<uint8_t> want = expected(compiled.get());
    cl_mem my = make_mem(n_bytes);
    set(r, "a",
        tensor_of(c.get(), F32, shape, "OCL_BUFFER", make_mem(a.data(), n_bytes)));
    set(r, "b",
        tensor_of(c.get(), F32, shape, "OCL_BUFFER", make_mem(b.data(), n_bytes)));
    set(r, "y", tensor_of(c.get(), F32, shape, "OCL_BUFFER", my));
    ASSERT_EQ(ov_infer_request_start_async(r.get()), OK) << last_error();
    ASSERT_EQ(ov_infer_request_wait(r.get()), OK) << last_error();
    expect_bits(read_mem(my, n_bytes, queue), want);
}

/* ---- lifetimes --------------------------------------------------------------------------- */

TEST_F(RemoteAdder, WhatIsFreedFirstLivesAsLongAsOthersNeedIt)
{
    const uint32_t before = references();
    std::vector<uint8_t> want;
    {
        Context c = share(queue);
        Compiled compiled = compile_in(model.get(), c.get());
        want = expected(compiled.get());
        Request r = make_request(compiled.get());
        cl_mem my = make_mem(n_bytes);
        Tensor ta = tensor_of(c.get(), F32, shape, nullptr, nullptr);
        set_host(r, "b", b);
        set(r, "y", tensor_of(c.get(), F32, shape, "OCL_BUFFER", my));
        set(r, "a", ta);
        cl_mem ma = (cl_mem)handle_of(params_of(ta.get()), "MEM_HANDLE");
        EXPECT_EQ(clEnqueueWriteBuffer(queue, ma, CL_TRUE, 0, n_bytes, a.data(), 0,
                                       nullptr, nullptr),
                  CL_SUCCESS);
        core.reset();
        c.reset();
        compiled.reset();
        model.reset();
        infer(r);
        expect_bits(read_mem(my, n_bytes, queue), want);
        r.reset();
        char *name = nullptr;
        ASSERT_EQ(ov_remote_tensor_get_device_name(ta.get(), &name), OK);
        EXPECT_STREQ(name, "GPU.0");
        ov_free(name);
        clReleaseMemObject(mems.back());
        mems.pop_back();
    }
    EXPECT_EQ(references(), before);
}

TEST_F(RemoteAdder, AThousandComeAndGo)
{
    const uint32_t before = references();
    const Context kept = share(queue);
    const Compiled compiled = compile_in(model.get(), kept.get());
    const uint32_t kept_references = references();
    cl_mem his = make_mem(n_bytes);
    for (int i = 0; i < 1000; i++) {
        const Context c = share(i % 2 ? queue : nullptr);
        const Tensor own = tensor_of(c.get(), F32, shape, nullptr, nullptr);
        const Tensor shared = tensor_of(c.get(), F32, shape, "OCL_BUFFER", his);
        ov_remote_context_t *same = nullptr;
        ASSERT_EQ(ov_compiled_model_get_context(compiled.get(), &same), OK);
        const Context back(same);
        const Request r = make_request(compiled.get());
        set(r, "a", shared);
        set(r, "y", own);
    }
    cl_uint n = 0;
    clGetMemObjectInfo(his, CL_MEM_REFERENCE_COUNT, sizeof(n), &n, nullptr);
    EXPECT_EQ(n, 1u);
    EXPECT_LE(references(), kept_references + 1) << "his memory has one";
    EXPECT_GT(kept_references, before);
}

TEST_F(RemoteAdder, TwoThreadsShareAQueue)
{
    const Context c = share(queue);
    const Compiled compiled = compile_in(model.get(), c.get());
    const std::vector<uint8_t> want = expected(compiled.get());
    struct Place {
        Request r;
        cl_mem y;
    } places[2];
    for (Place &p : places) {
        p.r = make_request(compiled.get());
        p.y = make_mem(n_bytes);
        set(p.r, "a",
            tensor_of(c.get(), F32, shape, "OCL_BUFFER", make_mem(a.data(), n_bytes)));
        set_host(p.r, "b", b);
        set(p.r, "y", tensor_of(c.get(), F32, shape, "OCL_BUFFER", p.y));
    }
    auto work = [&](Place &p) {
        const std::vector<uint8_t> zeros(n_bytes);
        for (int i = 0; i < 50; i++) {
            clEnqueueWriteBuffer(queue, p.y, CL_TRUE, 0, n_bytes, zeros.data(), 0,
                                 nullptr, nullptr);
            infer(p.r);
            expect_bits(read_mem(p.y, n_bytes, queue), want);
        }
    };
    std::thread one(work, std::ref(places[0])), two(work, std::ref(places[1]));
    one.join();
    two.join();
}

} // namespace
