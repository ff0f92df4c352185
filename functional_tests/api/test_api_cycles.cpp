// SPDX-License-Identifier: Apache-2.0
// Creating and freeing each object of the API hundreds of times leaves no memory in use.
#include "functional_tests/api/api_test.h"

#include <algorithm>
#include <vector>

#include "functional_tests/common/heap.h"

namespace
{

void
look_at_core(ov_core_t *core, const char *device)
{
    ov_available_devices_t devices;
    ov_core_version_list_t versions;
    char *value = nullptr;
    ASSERT_EQ(ov_core_get_available_devices(core, &devices), OK);
    ov_available_devices_free(&devices);
    ASSERT_EQ(ov_core_get_versions_by_device_name(core, device, &versions), OK);
    ov_core_versions_free(&versions);
    ASSERT_EQ(ov_core_get_property(core, device, "FULL_DEVICE_NAME", &value), OK);
    ov_free(value);
    EXPECT_NE(ov_core_get_property(core, device, "NO_SUCH_KEY", &value), OK);
    ASSERT_FALSE(last_error().empty());
}

void
look_at_model(const ov_model_t *model)
{
    ov_output_const_port_t *port = nullptr;
    ov_partial_shape_t shape;
    ov_layout_t *layout = nullptr;
    char *name = nullptr;
    ASSERT_EQ(ov_model_get_friendly_name(model, &name), OK);
    ov_free(name);
    ASSERT_EQ(ov_model_const_input_by_index(model, 1, &port), OK);
    ASSERT_EQ(ov_port_get_any_name(port, &name), OK);
    ov_free(name);
    ASSERT_EQ(ov_port_get_partial_shape(port, &shape), OK);
    ov_partial_shape_free(&shape);
    ov_output_const_port_free(port);
    ASSERT_EQ(ov_layout_create("N?", &layout), OK);
    ov_layout_free(layout);
}

void
run(const ov_compiled_model_t *compiled, ov_infer_request_t *request)
{
    float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
    ov_profiling_info_list_t infos;
    ov_tensor_t *result = nullptr;
    ov_model_t *steps = nullptr;
    float *sum = nullptr;
    ASSERT_EQ(ov_infer_request_set_input_tensor_by_index(request, 0, wrap(a, 2).get()),
              OK);
    ASSERT_EQ(ov_infer_request_set_input_tensor_by_index(request, 1, wrap(b, 2).get()),
              OK);
    ASSERT_EQ(ov_infer_request_start_async(request), OK) << last_error();
    ASSERT_EQ(ov_infer_request_wait(request), OK) << last_error();
    ASSERT_EQ(ov_infer_request_get_output_tensor(request, &result), OK);
    ASSERT_EQ(ov_tensor_data(result, reinterpret_cast<void **>(&sum)), OK);
    EXPECT_EQ(sum[3], 12.0f);
    ov_tensor_free(result);
    if (ov_infer_request_get_profiling_info(request, &infos) ==
        OK) /* REFERENCE has none */
        ov_profiling_info_list_free(&infos);
    ASSERT_EQ(ov_compiled_model_get_runtime_model(compiled, &steps), OK) << last_error();
    ov_model_free(steps);
}

void
live_once(const char *device)
{
    const Core core = make_core();
    look_at_core(core.get(), device);
    const Model model = read_text(core.get(), add_model());
    ASSERT_TRUE(model);
    look_at_model(model.get());
    ov_compiled_model_t *made = nullptr;
    ASSERT_EQ(ov_core_compile_model(core.get(), model.get(), device, 2, &made,
                                    ov_property_key_enable_profiling, "YES"),
              OK)
        << last_error();
    const Compiled compiled(made);
    run(made, make_request(made).get());
}

/* Creates and frees all objects `lives` times. `allowed_kib`: memory that the driver may keep. */
void
expect_no_growth(const char *device, size_t lives, long allowed_kib)
{
    std::vector<long> heap(lives); /* allocated before, so that it does not grow */
    for (size_t i = 0; i < lives && !testing::Test::HasFailure(); i++) {
        live_once(device);
        heap[i] = heap_kib();
    }
    const long early = *std::min_element(heap.begin() + 100, heap.begin() + 110);
    const long late = *std::min_element(heap.end() - 10, heap.end());
    printf("%zu lives on %s: heap %ld -> %ld KiB\n", lives, device, early, late);
    EXPECT_LE(late, early + allowed_kib);
}

} // namespace

TEST(Lives, LeaveNothingBehind)
{
    expect_no_growth("REFERENCE", 1000, 16);
}

TEST(Lives, LeaveNothingBehindOnADevice)
{
    const Core core = make_core(); /* keeps the engine and its kernels open */
    char *name = nullptr;
    if (ov_core_get_property(core.get(), "CPU", "FULL_DEVICE_NAME", &name) != OK)
        GTEST_SKIP() << "no OpenCL device";
    ov_free(name);
    expect_no_growth("CPU", 250, 250);
}
