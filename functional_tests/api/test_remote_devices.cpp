/* SPDX-License-Identifier: Apache-2.0
 *
 * A context with several devices: which of them a model uses, and memory that they share.
 */
#include "functional_tests/api/remote_adder.h"

namespace
{

/* A context of two devices; on PoCL with POCL_DEVICES="cpu cpu". */
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
                 "not to GPU.1");
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

/* Each device reads memory that the other wrote. */
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

} // namespace
