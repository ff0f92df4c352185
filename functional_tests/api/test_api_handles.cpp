// SPDX-License-Identifier: Apache-2.0
// Handles that were freed or are of another kind are refused by every function.
#include "functional_tests/api/api_test.h"

#include <functional>
#include <thread>
#include <vector>

#include "xemoe/xemoe.h"

namespace
{

struct Live {
    Core core = make_core();
    Model model = read_text(core.get(), add_model(true));
    Compiled compiled = compile(core.get(), model.get());
    Request request = make_request(compiled.get());
    float data[6] = {};
    Tensor tensor = wrap(data, 3);
    Port port;
    ConstPort const_port;
    ov_layout_t *layout = nullptr;

    Live()
    {
        ov_output_port_t *p = nullptr;
        ov_output_const_port_t *c = nullptr;
        EXPECT_EQ(ov_model_input_by_index(model.get(), 0, &p), OK);
        EXPECT_EQ(ov_model_const_input_by_index(model.get(), 0, &c), OK);
        EXPECT_EQ(ov_layout_create("NC", &layout), OK);
        port.reset(p);
        const_port.reset(c);
    }
    ~Live()
    {
        ov_layout_free(layout);
    }
};

ov_output_const_port_t *some_const_port;
ov_output_port_t *some_port;
ov_tensor_t *some_tensor;
ov_compiled_model_t *some_compiled;
ov_model_t *some_model;
ov_infer_request_t *some_request;
char *some_text;
size_t some_size;
void *some_data;
ov_shape_t some_shape;
ov_partial_shape_t some_partial;
ov_element_type_e some_type;
ov_callback_t some_callback = {[](void *) {}, nullptr};
ov_profiling_info_list_t some_infos;
ov_available_devices_t some_devices;
ov_core_version_list_t some_versions;

// Each call gets one invalid handle; all other handles are alive.
template <typename T> using Calls = std::vector<std::function<ov_status_e(T *)>>;

Calls<ov_core_t>
core_calls(Live &l)
{
    const ov_property_t property = {"CACHE_DIR", ""};
    return {
        [](ov_core_t *h) { return ov_core_read_model(h, "a.xml", nullptr, &some_model); },
        [](ov_core_t *h) {
            return ov_core_read_model_unicode(h, L"a.xml", nullptr, &some_model);
        },
        [](ov_core_t *h) {
            return ov_core_read_model_from_memory_buffer(h, "<", 1, nullptr, &some_model);
        },
        [&](ov_core_t *h) {
            return ov_core_compile_model(h, l.model.get(), "GPU", 0, &some_compiled);
        },
        [&](ov_core_t *h) {
            return ov_core_compile_model_props(h, l.model.get(), "GPU", 0, nullptr,
                                               &some_compiled);
        },
        [](ov_core_t *h) {
            return ov_core_compile_model_from_file(h, "a", "GPU", 0, &some_compiled);
        },
        [](ov_core_t *h) { return ov_core_set_property(h, "GPU", "CACHE_DIR", ""); },
        [=](ov_core_t *h) { return ov_core_set_properties(h, "GPU", 1, &property); },
        [](ov_core_t *h) { return ov_core_get_property(h, "", "CACHE_DIR", &some_text); },
        [](ov_core_t *h) { return ov_core_get_available_devices(h, &some_devices); },
        [](ov_core_t *h) {
            return ov_core_import_model(h, "x", 1, "GPU", &some_compiled);
        },
        [](ov_core_t *h) {
            return ov_core_get_versions_by_device_name(h, "GPU", &some_versions);
        },
    };
}

Calls<ov_model_t>
model_calls(Live &l)
{
    return {
        [&](ov_model_t *h) {
            return ov_core_compile_model(l.core.get(), h, "GPU", 0, &some_compiled);
        },
        [](ov_model_t *h) { return ov_model_inputs_size(h, &some_size); },
        [](ov_model_t *h) { return ov_model_outputs_size(h, &some_size); },
        [](ov_model_t *h) { return ov_model_input_by_name(h, "a", &some_port); },
        [](ov_model_t *h) { return ov_model_const_output(h, &some_const_port); },
        [](ov_model_t *h) { return ov_model_get_friendly_name(h, &some_text); },
        [](ov_model_t *h) {
            ov_partial_shape_t s = {{0, 0}, nullptr};
            return ov_model_reshape_single_input(h, s);
        },
    };
}

Calls<ov_compiled_model_t>
compiled_calls(Live &)
{
    return {
        [](ov_compiled_model_t *h) {
            return ov_compiled_model_inputs_size(h, &some_size);
        },
        [](ov_compiled_model_t *h) {
            return ov_compiled_model_output(h, &some_const_port);
        },
        [](ov_compiled_model_t *h) {
            return ov_compiled_model_create_infer_request(h, &some_request);
        },
        [](ov_compiled_model_t *h) {
            return ov_compiled_model_get_property(h, "PERF_COUNT", &some_text);
        },
        [](ov_compiled_model_t *h) {
            return ov_compiled_model_set_property(h, "PERF_COUNT", "YES");
        },
        [](ov_compiled_model_t *h) { return ov_compiled_model_export_model(h, "/x/y"); },
    };
}

Calls<ov_infer_request_t>
request_calls(Live &l)
{
    return {
        [](ov_infer_request_t *h) { return ov_infer_request_infer(h); },
        [](ov_infer_request_t *h) { return ov_infer_request_start_async(h); },
        [](ov_infer_request_t *h) { return ov_infer_request_wait(h); },
        [](ov_infer_request_t *h) { return ov_infer_request_wait_for(h, 1); },
        [](ov_infer_request_t *h) { return ov_infer_request_cancel(h); },
        [](ov_infer_request_t *h) {
            return ov_infer_request_set_callback(h, &some_callback);
        },
        [](ov_infer_request_t *h) {
            return ov_infer_request_get_profiling_info(h, &some_infos);
        },
        [](ov_infer_request_t *h) {
            return ov_infer_request_get_tensor(h, "a", &some_tensor);
        },
        [&](ov_infer_request_t *h) {
            return ov_infer_request_set_tensor(h, "a", l.tensor.get());
        },
        [](ov_infer_request_t *h) { return xm_request_reset_states(h); },
    };
}

Calls<ov_tensor_t>
tensor_calls(Live &l)
{
    return {
        [&](ov_tensor_t *h) {
            return ov_infer_request_set_tensor(l.request.get(), "a", h);
        },
        [](ov_tensor_t *h) { return ov_tensor_get_shape(h, &some_shape); },
        [](ov_tensor_t *h) { return ov_tensor_get_element_type(h, &some_type); },
        [](ov_tensor_t *h) { return ov_tensor_get_size(h, &some_size); },
        [](ov_tensor_t *h) { return ov_tensor_get_byte_size(h, &some_size); },
        [](ov_tensor_t *h) { return ov_tensor_data(h, &some_data); },
        [](ov_tensor_t *h) {
            return ov_tensor_set_shape(h, {0, nullptr});
        },
        [&](ov_tensor_t *h) {
            return ov_core_read_model_from_memory_buffer(l.core.get(), "<", 1, h,
                                                         &some_model);
        },
    };
}

Calls<ov_output_port_t>
port_calls(Live &l)
{
    return {
        [](ov_output_port_t *h) { return ov_port_get_shape(h, &some_shape); },
        [&](ov_output_port_t *h) {
            return ov_infer_request_set_tensor_by_port(l.request.get(), h,
                                                       l.tensor.get());
        },
        [&](ov_output_port_t *h) {
            const ov_output_port_t *list[] = {h};
            ov_partial_shape_t s = {{0, 0}, nullptr};
            return ov_model_reshape_by_ports(l.model.get(), list, &s, 1);
        },
    };
}

Calls<ov_output_const_port_t>
const_port_calls(Live &l)
{
    return {
        [](ov_output_const_port_t *h) { return ov_const_port_get_shape(h, &some_shape); },
        [](ov_output_const_port_t *h) {
            return ov_port_get_partial_shape(h, &some_partial);
        },
        [](ov_output_const_port_t *h) { return ov_port_get_any_name(h, &some_text); },
        [](ov_output_const_port_t *h) { return ov_port_get_element_type(h, &some_type); },
        [&](ov_output_const_port_t *h) {
            return ov_infer_request_get_tensor_by_const_port(l.request.get(), h,
                                                             &some_tensor);
        },
    };
}

template <typename T>
void
expect_refused(const Calls<T> &calls, T *handle)
{
    for (size_t i = 0; i < calls.size(); i++)
        EXPECT_EQ(calls[i](handle), INVALID_C_PARAM) << "call " << i;
}

TEST(FreedHandles, AreRefusedByEveryFunction)
{
    Live live, freed;
    ov_core_t *core = freed.core.release();
    ov_model_t *model = freed.model.release();
    ov_compiled_model_t *compiled = freed.compiled.release();
    ov_infer_request_t *request = freed.request.release();
    ov_tensor_t *tensor = freed.tensor.release();
    ov_output_port_t *port = freed.port.release();
    ov_output_const_port_t *const_port = freed.const_port.release();
    for (int twice = 0; twice < 2; twice++) {
        ov_infer_request_free(request);
        ov_compiled_model_free(compiled);
        ov_model_free(model);
        ov_core_free(core);
        ov_tensor_free(tensor);
        ov_output_port_free(port);
        ov_output_const_port_free(const_port);
    }
    expect_refused(core_calls(live), core);
    expect_refused(model_calls(live), model);
    expect_refused(compiled_calls(live), compiled);
    expect_refused(request_calls(live), request);
    expect_refused(tensor_calls(live), tensor);
    expect_refused(port_calls(live), port);
    expect_refused(const_port_calls(live), const_port);
    EXPECT_FALSE(ov_model_is_dynamic(model));
    EXPECT_EQ(ov_infer_request_infer(live.request.get()), OK) << last_error();
}

TEST(FreedHandles, OfLayoutsHaveNoText)
{
    ov_layout_t *layout = nullptr;
    ASSERT_EQ(ov_layout_create("NCHW", &layout), OK);
    ov_layout_free(layout);
    ov_layout_free(layout);
    EXPECT_EQ(ov_layout_to_string(layout), nullptr);
}

TEST(HandlesOfAnotherKind, AreRefused)
{
    Live live;
    expect_refused(core_calls(live), reinterpret_cast<ov_core_t *>(live.model.get()));
    expect_refused(model_calls(live), reinterpret_cast<ov_model_t *>(live.core.get()));
    expect_refused(compiled_calls(live),
                   reinterpret_cast<ov_compiled_model_t *>(live.core.get()));
    expect_refused(request_calls(live),
                   reinterpret_cast<ov_infer_request_t *>(live.tensor.get()));
    expect_refused(tensor_calls(live), reinterpret_cast<ov_tensor_t *>(live.port.get()));
    expect_refused(port_calls(live),
                   reinterpret_cast<ov_output_port_t *>(live.tensor.get()));
    ov_model_free(reinterpret_cast<ov_model_t *>(live.core.get()));
    ov_tensor_free(reinterpret_cast<ov_tensor_t *>(live.model.get()));
    EXPECT_EQ(ov_model_inputs_size(live.model.get(), &some_size), OK);
}

// A request's tensor may be handed out several times; each handle is freed separately.
TEST(Tensors, HaveAHandleForEachTimeTheyWereGiven)
{
    Live live;
    ov_tensor_t *first = nullptr, *second = nullptr;
    ASSERT_EQ(ov_infer_request_get_tensor(live.request.get(), "a", &first), OK);
    ASSERT_EQ(ov_infer_request_get_tensor(live.request.get(), "a", &second), OK);
    EXPECT_EQ(first, second);
    ov_tensor_free(first);
    EXPECT_EQ(ov_tensor_get_size(second, &some_size), OK);
    live.request.reset();
    EXPECT_EQ(ov_tensor_data(second, &some_data), OK);
    static_cast<float *>(some_data)[5] = 1; // the memory is still valid
    ov_tensor_free(second);
    EXPECT_EQ(ov_tensor_get_size(second, &some_size), INVALID_C_PARAM);
}

TEST(Tensors, AreKeptByRequestsAfterTheirHandles)
{
    Live live;
    ov_tensor_t *mine = live.tensor.release(), *back = nullptr;
    ASSERT_EQ(ov_infer_request_set_tensor(live.request.get(), "a", mine), OK);
    ov_tensor_free(mine);
    ov_tensor_free(mine);
    EXPECT_EQ(ov_tensor_get_size(mine, &some_size), INVALID_C_PARAM);
    ASSERT_EQ(ov_infer_request_get_tensor(live.request.get(), "a", &back), OK);
    EXPECT_EQ(back, mine);
    EXPECT_EQ(ov_tensor_get_size(back, &some_size), OK);
    ov_tensor_free(back);
    EXPECT_EQ(ov_infer_request_infer(live.request.get()), OK) << last_error();
}

} // namespace
