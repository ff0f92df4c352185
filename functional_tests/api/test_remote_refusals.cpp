/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts and device tensors that are refused, and the error texts.
 */
#include "functional_tests/api/remote_adder.h"

namespace
{

/* After the refusal the core works with its own context. */
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
                     "belongs to another core");
    const Compiled compiled = compile(other.get(), add.get(), "GPU");
    EXPECT_TRUE(make_request(compiled.get()));
}

TEST_F(RemoteAdder, DevicesWithoutContextsSaySo)
{
    ov_remote_context_t *c = nullptr;
    if (!is_dry()) /* in a dry run the device named CPU is the GPU */
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
                 "input 'a': this device does not support remote tensors");
    expect_error(ov_infer_request_set_tensor(r.get(), "y", t.get()),
                 "output 'y': this device does not support remote tensors");
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
        {"the OpenCL queue does not belong to the given OpenCL context",
         {{"CONTEXT_TYPE", "OCL"}, {"OCL_CONTEXT", other}, {"OCL_QUEUE", queue}}},
        {"has 1 devices, so there is no device 1",
         {{"CONTEXT_TYPE", "OCL"},
          {"OCL_CONTEXT", context},
          {"OCL_CONTEXT_DEVICE_ID", "1"}}},
        {"OCL_CONTEXT_DEVICE_ID is '-1': expected a number",
         {{"CONTEXT_TYPE", "OCL"},
          {"OCL_CONTEXT", context},
          {"OCL_CONTEXT_DEVICE_ID", "-1"}}},
        {"TILE_ID is 0: the tiles of a device",
         {{"CONTEXT_TYPE", "OCL"}, {"OCL_CONTEXT", context}, {"TILE_ID", "0"}}},
        {"NO_SUCH_KEY is not a property", {{"NO_SUCH_KEY", "1"}}},
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
                 "output 'y' needs 2400 bytes, but its device memory has 2392");
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
                 "has 2400 bytes, but the new shape needs 2408");
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

} // namespace
