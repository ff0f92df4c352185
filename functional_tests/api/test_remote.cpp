/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts, and tensors in memory of the device, on a small model: what is shared with whom, what
 * is refused, who may be freed before whom.
 */
#include <filesystem>
#include <thread>

#include "functional_tests/api/remote_test.h"

namespace
{

constexpr int64_t rows = 300;
constexpr size_t n_floats = rows * 2, n_bytes = n_floats * sizeof(float);
const Dims shape = {rows, 2};

std::vector<float>
numbers(float seed)
{
    std::vector<float> v(n_floats);
    for (size_t i = 0; i < v.size(); i++)
        v[i] = seed + 0.37f * float(i % 91);
    return v;
}

std::string
replaced(std::string text, const std::string &what, const std::string &by)
{
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
        text.replace(at, what.size(), by);
    return text;
}

std::vector<uint8_t>
bytes_of(const std::vector<float> &v)
{
    std::vector<uint8_t> bytes(v.size() * sizeof(float));
    memcpy(bytes.data(), v.data(), bytes.size());
    return bytes;
}

/* y = a + b. */
class RemoteAdder : public Remote
{
  protected:
    void SetUp() override
    {
        Remote::SetUp();
        const std::string n = std::to_string(rows);
        const std::string sized =
            replaced(add_model(true), "<dim>3</dim>", "<dim>" + n + "</dim>");
        model = read_text(core.get(),
                          replaced(sized, "shape=\"3,2\"", "shape=\"" + n + ",2\""));
    }

    /* y = a + a, of any number of rows. */
    Model dynamic_model()
    {
        return read_text(core.get(),
                         replaced(add_model(), "from-layer=\"1\"", "from-layer=\"0\""));
    }

    static void set_host(const Request &r, const char *name, std::vector<float> &v)
    {
        set(r, name, wrap(v.data(), rows));
    }

    static std::vector<uint8_t> read_output(const Request &r)
    {
        ov_tensor_t *t = nullptr;
        void *data = nullptr;
        EXPECT_EQ(ov_infer_request_get_output_tensor(r.get(), &t), OK) << last_error();
        Tensor owned(t);
        EXPECT_EQ(ov_tensor_data(t, &data), OK) << last_error();
        std::vector<uint8_t> bytes(n_bytes);
        if (data)
            memcpy(bytes.data(), data, n_bytes);
        return bytes;
    }

    /* What tensors of the host give. */
    std::vector<uint8_t> expected(ov_compiled_model_t *compiled)
    {
        const Request r = make_request(compiled);
        set_host(r, "a", a);
        set_host(r, "b", b);
        infer(r);
        return read_output(r);
    }

    /* All three in buffers of the test, whose writes and read nobody waits for. */
    void run_on(const Request &r, const ov_remote_context_t *c, cl_command_queue q,
                const std::vector<uint8_t> &want)
    {
        cl_mem ma = make_mem(n_bytes), mb = make_mem(n_bytes), my = make_mem(n_bytes);
        set(r, "a", tensor_of(c, F32, shape, "OCL_BUFFER", ma));
        set(r, "b", tensor_of(c, F32, shape, "OCL_BUFFER", mb));
        set(r, "y", tensor_of(c, F32, shape, "OCL_BUFFER", my));
        clEnqueueWriteBuffer(q, ma, CL_FALSE, 0, n_bytes, a.data(), 0, nullptr, nullptr);
        clEnqueueWriteBuffer(q, mb, CL_FALSE, 0, n_bytes, b.data(), 0, nullptr, nullptr);
        infer(r);
        expect_bits(read_mem(my, n_bytes, q), want);
    }

    Model model;
    std::vector<float> a = numbers(1.5f), b = numbers(-20.0f);
};

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

/* What was kept of a model that was compiled elsewhere, too. */
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

/* ---- memory of both ------------------------------------------------------------------- */

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

/* A write that comes late, in a queue of either kind: the run was asked for before. */
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
        infer(r); /* all kernels are there */
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

/* Whatever options a model is compiled with. */
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

/* What a program would do with USM itself. */
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
                 "none of the OpenCL context's USM");
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

/* The bytes follow the tensor that is set last, whichever kinds come one after the other. */
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
    expect_bits(bytes_of(out), second); /* it is bound no more */
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
    expect_error(ov_tensor_data(y.get(), &data), "the host has no pointer to them");
}

/* A model that has a program for each set of shapes. */
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

/* ---- several devices ------------------------------------------------------------------ */

/* A context of two; on PoCL with POCL_DEVICES="cpu cpu". */
class RemoteDevices : public RemoteAdder
{
  protected:
    void SetUp() override
    {
        RemoteAdder::SetUp();
        cl_platform_id platform = nullptr;
        cl_device_id list[8];
        clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, nullptr);
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 8, list, &n_devices);
        if (n_devices < 2)
            GTEST_SKIP() << "there is one device";
        both = clCreateContext(nullptr, 2, list, nullptr, nullptr, nullptr);
        ASSERT_NE(both, nullptr);
        ASSERT_EQ(list[0], device);
        second = list[1];
    }

    void TearDown() override
    {
        if (both)
            clReleaseContext(both);
        RemoteAdder::TearDown();
    }

    std::string device_of(const ov_remote_context_t *c)
    {
        char *name = nullptr;
        EXPECT_EQ(ov_remote_context_get_device_name(c, &name), OK);
        Text owned(name);
        return name ? name : "";
    }

    Context context_of(const char *name, const char *number)
    {
        const ov_property_t keys[] = {{"CONTEXT_TYPE", "OCL"},
                                      {"OCL_CONTEXT", both},
                                      {"OCL_CONTEXT_DEVICE_ID", number}};
        ov_remote_context_t *c = nullptr;
        EXPECT_EQ(ov_core_create_context_props(core.get(), name, 3, keys, &c), OK)
            << last_error();
        return Context(c);
    }

    cl_uint n_devices = 0;
    cl_context both = nullptr;
    cl_device_id second = nullptr;
};

TEST_F(RemoteDevices, TheHandlesSayWhichIsMeant)
{
    EXPECT_EQ(device_of(context_of("GPU", "0").get()), "GPU.0");
    EXPECT_EQ(device_of(context_of("GPU", "1").get()), "GPU.1");
    EXPECT_EQ(device_of(context_of("GPU.1", "1").get()), "GPU.1");
    device = second;
    const ov_property_t keys[] = {{"CONTEXT_TYPE", "OCL"},
                                  {"OCL_QUEUE", make_queue(both)}};
    ov_remote_context_t *c = nullptr;
    ASSERT_EQ(ov_core_create_context_props(core.get(), "GPU", 2, keys, &c), OK)
        << last_error();
    EXPECT_EQ(device_of(Context(c).get()), "GPU.1");
    expect_error(ov_core_create_context(core.get(), "GPU.1", 4, &c, "CONTEXT_TYPE", "OCL",
                                        "OCL_CONTEXT", context),
                 "not of GPU.1");
}

TEST_F(RemoteDevices, TheDevicesOwnContextIsWhereModelsAreCompiled)
{
    ASSERT_EQ(ov_core_set_property(core.get(), "GPU", "DEVICE_ID", "1"), OK);
    ov_remote_context_t *c = nullptr, *of_model = nullptr;
    ASSERT_EQ(ov_core_get_default_context(core.get(), "GPU", &c), OK) << last_error();
    const Context own(c);
    EXPECT_EQ(device_of(c), "GPU.1");
    const Compiled compiled = compile(core.get(), model.get(), "GPU");
    ASSERT_EQ(ov_compiled_model_get_context(compiled.get(), &of_model), OK);
    EXPECT_EQ(params_of(Context(of_model).get()), params_of(c));
}

/* Memory that the first device writes is read by the second, and the other way round. */
TEST_F(RemoteDevices, AModelRunsOnTheSecond)
{
    cl_command_queue on_first = make_queue(both);
    clReleaseContext(context);
    clRetainContext(both);
    context = both;
    const Context c = context_of("GPU", "1");
    const Compiled compiled = compile_in(model.get(), c.get());
    const Request r = make_request(compiled.get());
    cl_mem ma = make_mem(n_bytes), my = make_mem(n_bytes);
    set(r, "a", tensor_of(c.get(), F32, shape, "OCL_BUFFER", ma));
    set_host(r, "b", b);
    set(r, "y", tensor_of(c.get(), F32, shape, "OCL_BUFFER", my));
    for (float seed : {1.0f, 2.0f}) {
        a = numbers(seed);
        EXPECT_EQ(clEnqueueWriteBuffer(on_first, ma, CL_TRUE, 0, n_bytes, a.data(), 0,
                                       nullptr, nullptr),
                  CL_SUCCESS);
        infer(r);
        expect_bits(read_mem(my, n_bytes, on_first), expected(compiled.get()));
    }
    char *devices = nullptr;
    ASSERT_EQ(
        ov_compiled_model_get_property(compiled.get(), "EXECUTION_DEVICES", &devices),
        OK);
    EXPECT_STREQ(devices, "GPU.1");
    ov_free(devices);
}

/* ---- what is refused ------------------------------------------------------------------ */

/* The core that refused goes on with its own. */
TEST_F(RemoteAdder, TheOwnContextOfAnotherCoreIsNoPlace)
{
    const Core other = make_core();
    ov_remote_context_t *c = nullptr;
    ov_compiled_model_t *m = nullptr;
    ASSERT_EQ(ov_core_get_default_context(core.get(), "GPU", &c), OK) << last_error();
    const Context own(c);
    const Model add = read_text(other.get(), add_model());
    for (int i = 0; i < 3; i++)
        expect_error(ov_core_compile_model_with_context(other.get(), add.get(), c, 0, &m),
                     "another core's own");
    const Compiled compiled = compile(other.get(), add.get(), "GPU");
    EXPECT_TRUE(make_request(compiled.get()));
}

TEST_F(RemoteAdder, DevicesWithoutContextsSaySo)
{
    ov_remote_context_t *c = nullptr;
    if (!is_dry()) /* there CPU is the GPU */
        expect_error(ov_core_get_default_context(core.get(), "CPU", &c),
                     "has no remote contexts");
    expect_error(ov_core_get_default_context(core.get(), "REFERENCE", &c),
                 "has no remote contexts");
    const Compiled compiled = compile(core.get(), model.get(), "REFERENCE");
    expect_error(ov_compiled_model_get_context(compiled.get(), &c),
                 "has no remote contexts");
    const Context gpu = share(nullptr);
    const Tensor t = tensor_of(gpu.get(), F32, shape, nullptr, nullptr);
    const Request r = make_request(compiled.get());
    expect_error(ov_infer_request_set_tensor(r.get(), "a", t.get()),
                 "input 'a': this device takes no remote tensors");
    expect_error(ov_infer_request_set_tensor(r.get(), "y", t.get()),
                 "output 'y': this device takes no remote tensors");
    EXPECT_EQ(c, nullptr);
}

TEST_F(RemoteAdder, AContextNeedsHandlesThatGoTogether)
{
    ov_remote_context_t *c = nullptr;
    cl_context other = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    const struct {
        const char *sentence;
        std::vector<ov_property_t> keys;
    } cases[] = {
        {"CONTEXT_TYPE is missing", {{"OCL_CONTEXT", context}}},
        {"CONTEXT_TYPE is VA_SHARED: expected OCL",
         {{"CONTEXT_TYPE", "VA_SHARED"}, {"VA_DEVICE", context}}},
        {"OCL_CONTEXT or OCL_QUEUE is missing", {{"CONTEXT_TYPE", "OCL"}}},
        {"OCL_CONTEXT is NULL", {{"CONTEXT_TYPE", "OCL"}, {"OCL_CONTEXT", nullptr}}},
        {"the OpenCL queue is not of the OpenCL context",
         {{"CONTEXT_TYPE", "OCL"}, {"OCL_CONTEXT", other}, {"OCL_QUEUE", queue}}},
        {"has 1 devices, number 1 is none",
         {{"CONTEXT_TYPE", "OCL"},
          {"OCL_CONTEXT", context},
          {"OCL_CONTEXT_DEVICE_ID", "1"}}},
        {"OCL_CONTEXT_DEVICE_ID is '-1': expected a number",
         {{"CONTEXT_TYPE", "OCL"},
          {"OCL_CONTEXT", context},
          {"OCL_CONTEXT_DEVICE_ID", "-1"}}},
        {"TILE_ID is 0: parts of a device",
         {{"CONTEXT_TYPE", "OCL"}, {"OCL_CONTEXT", context}, {"TILE_ID", "0"}}},
        {"NO_SUCH_KEY is no key", {{"NO_SUCH_KEY", "1"}}},
    };
    for (const auto &t : cases)
        expect_error(ov_core_create_context_props(core.get(), "GPU", t.keys.size(),
                                                  t.keys.data(), &c),
                     t.sentence);
    EXPECT_EQ(c, nullptr);
    expect_error(ov_core_get_default_context(core.get(), "GPU.77", &c),
                 "is not registered");
    clReleaseContext(other);
}

TEST_F(RemoteAdder, MemoryNeedsATypeAHandleAndRoom)
{
    const Context c = share(nullptr);
    Dims dims = shape;
    ov_tensor_t *t = nullptr;
    cl_mem small = make_mem(n_bytes - 1);
    const struct {
        const char *sentence;
        std::vector<ov_property_t> keys;
    } cases[] = {
        {"SHARED_MEM_TYPE is missing", {{"MEM_HANDLE", small}}},
        {"SHARED_MEM_TYPE is OCL_BUFFER: MEM_HANDLE is missing",
         {{"SHARED_MEM_TYPE", "OCL_BUFFER"}}},
        {"MEM_HANDLE is missing", {{"SHARED_MEM_TYPE", "USM_USER_BUFFER"}}},
        {"SHARED_MEM_TYPE is OCL_IMAGE2D: expected",
         {{"SHARED_MEM_TYPE", "OCL_IMAGE2D"}, {"MEM_HANDLE", small}}},
        {"SHARED_MEM_TYPE is VA_SURFACE: expected",
         {{"SHARED_MEM_TYPE", "VA_SURFACE"}, {"MEM_HANDLE", small}}},
        {"SHARED_MEM_TYPE is DX_BUFFER: expected",
         {{"SHARED_MEM_TYPE", "DX_BUFFER"}, {"MEM_HANDLE", small}}},
        {"has 2399 bytes, the tensor needs 2400",
         {{"SHARED_MEM_TYPE", "OCL_BUFFER"}, {"MEM_HANDLE", small}}},
    };
    for (const auto &k : cases)
        expect_error(ov_remote_context_create_tensor_props(c.get(), F32, {2, dims.data()},
                                                           k.keys.size(), k.keys.data(),
                                                           &t),
                     k.sentence);
    expect_error(
        ov_remote_context_create_tensor(c.get(), STRING, {2, dims.data()}, 0, &t),
        "strings");
    EXPECT_EQ(t, nullptr);
}

TEST_F(RemoteAdder, MemoryOfAnotherContextIsRefusedAndWhatWasSetStays)
{
    const Context c = share(queue);
    cl_context other = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    ov_remote_context_t *o = nullptr;
    ASSERT_EQ(ov_core_create_context(core.get(), "GPU", 4, &o, "CONTEXT_TYPE", "OCL",
                                     "OCL_CONTEXT", other),
              OK);
    const Context elsewhere(o);
    const Tensor wrong = tensor_of(o, F32, shape, nullptr, nullptr);
    const Compiled compiled = compile_in(model.get(), c.get());
    const Request r = make_request(compiled.get());
    const std::vector<uint8_t> want = expected(compiled.get());
    run_on(r, c.get(), queue, want);
    for (const char *name : {"a", "y"})
        expect_error(ov_infer_request_set_tensor(r.get(), name, wrong.get()),
                     "another OpenCL context");
    infer(r);
    clReleaseContext(other);
}

TEST_F(RemoteAdder, AResultThatDoesNotFitIsAnError)
{
    const Context c = share(queue);
    const Compiled compiled = compile_in(dynamic_model().get(), c.get());
    const Request r = make_request(compiled.get());
    set_host(r, "a", a);
    set_host(r, "b", b);
    set(r, "y", tensor_of(c.get(), F32, {rows - 1, 2}, nullptr, nullptr));
    expect_error(ov_infer_request_infer(r.get()),
                 "output 'y' has 2400 bytes, its memory on the device 2392");
    set(r, "y", tensor_of(c.get(), F32, shape, nullptr, nullptr));
    infer(r);
}

TEST_F(RemoteAdder, OwnMemoryGrowsThatOfOthersDoesNot)
{
    const Context c = share(queue);
    Dims more = {rows + 1, 2};
    const Tensor own = tensor_of(c.get(), F32, shape, nullptr, nullptr);
    EXPECT_EQ(ov_tensor_set_shape(own.get(), {2, more.data()}), OK) << last_error();
    const Tensor his = tensor_of(c.get(), F32, shape, "OCL_BUFFER", make_mem(n_bytes));
    expect_error(ov_tensor_set_shape(his.get(), {2, more.data()}),
                 "it has 2400 bytes, the new shape needs 2408");
}

TEST_F(RemoteAdder, NullIsAnInvalidParameter)
{
    const Context c = share(nullptr);
    const Compiled compiled = compile(core.get(), model.get(), "GPU");
    Dims dims = shape;
    const ov_shape_t s = {2, dims.data()};
    ov_remote_context_t *out = nullptr;
    ov_compiled_model_t *m = nullptr;
    ov_tensor_t *t = nullptr;
    const Tensor remote = tensor_of(c.get(), F32, shape, nullptr, nullptr);
    size_t n = 0;
    char *text = nullptr;
    ov_core_t *k = core.get();
    ov_model_t *g = model.get();
    const ov_property_t no_key[] = {{nullptr, "1"}}, no_value[] = {{"TILE_ID", nullptr}};
    const ov_status_e codes[] = {
        ov_core_create_context(nullptr, "GPU", 0, &out),
        ov_core_create_context(k, nullptr, 0, &out),
        ov_core_create_context(k, "GPU", 0, nullptr),
        ov_core_create_context(k, "GPU", 1, &out, "CONTEXT_TYPE"),
        ov_core_create_context_props(k, "GPU", 1, nullptr, &out),
        ov_core_create_context_props(k, "GPU", 1, no_key, &out),
        ov_core_create_context_props(k, "GPU", 1, no_value, &out),
        ov_core_get_default_context(nullptr, "GPU", &out),
        ov_core_get_default_context(k, nullptr, &out),
        ov_core_get_default_context(k, "GPU", nullptr),
        ov_core_compile_model_with_context(nullptr, g, c.get(), 0, &m),
        ov_core_compile_model_with_context(k, nullptr, c.get(), 0, &m),
        ov_core_compile_model_with_context(k, g, nullptr, 0, &m),
        ov_core_compile_model_with_context(k, g, c.get(), 0, nullptr),
        ov_core_compile_model_with_context_props(k, g, c.get(), 1, nullptr, &m),
        ov_compiled_model_get_context(nullptr, &out),
        ov_compiled_model_get_context(compiled.get(), nullptr),
        ov_remote_context_create_tensor(nullptr, F32, s, 0, &t),
        ov_remote_context_create_tensor(c.get(), F32, {2, nullptr}, 0, &t),
        ov_remote_context_create_tensor(c.get(), F32, s, 0, nullptr),
        ov_remote_context_create_tensor(c.get(), F32, s, 1, &t, "MEM_HANDLE"),
        ov_remote_context_create_tensor_props(c.get(), F32, s, 1, nullptr, &t),
        ov_remote_context_create_host_tensor(nullptr, F32, s, &t),
        ov_remote_context_create_host_tensor(c.get(), F32, {2, nullptr}, &t),
        ov_remote_context_create_host_tensor(c.get(), F32, s, nullptr),
        ov_remote_context_get_device_name(nullptr, &text),
        ov_remote_context_get_device_name(c.get(), nullptr),
        ov_remote_context_get_params(nullptr, &n, &text),
        ov_remote_context_get_params(c.get(), nullptr, &text),
        ov_remote_context_get_params(c.get(), &n, nullptr),
        ov_remote_tensor_get_params(nullptr, &n, &text),
        ov_remote_tensor_get_params(remote.get(), nullptr, &text),
        ov_remote_tensor_get_params(remote.get(), &n, nullptr),
        ov_remote_tensor_get_device_name(nullptr, &text),
        ov_remote_tensor_get_device_name(remote.get(), nullptr),
        ov_remote_tensor_get_device_name(wrap(a.data(), rows).get(), &text),
    };
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        EXPECT_EQ(codes[i], INVALID_C_PARAM) << "call " << i;
    ov_remote_context_free(nullptr);
    EXPECT_TRUE(!out && !m && !t && !text);
}

/* ---- lives ---------------------------------------------------------------------------- */

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
