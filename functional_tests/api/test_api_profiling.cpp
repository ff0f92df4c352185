/* SPDX-License-Identifier: Apache-2.0
 *
 * ov_infer_request_get_profiling_info: a row for each step of the last run.
 */
#include "functional_tests/api/api_test.h"

namespace
{

struct List {
    ov_profiling_info_list_t rows = {nullptr, 0};
    ~List()
    {
        ov_profiling_info_list_free(&rows);
    }
};

Compiled
compile_measured(ov_core_t *core, const char *device, const char *measured)
{
    Model model = read_text(core, add_model(true));
    const ov_property_t property = {ov_property_key_enable_profiling, measured};
    ov_compiled_model_t *compiled = nullptr;
    EXPECT_EQ(
        ov_core_compile_model_props(core, model.get(), device, 1, &property, &compiled),
        OK)
        << last_error();
    return Compiled(compiled);
}

void
infer(ov_infer_request_t *request)
{
    static float numbers[6] = {1, 2, 3, 4, 5, 6};
    const Tensor a = wrap(numbers, 3), b = wrap(numbers, 3);
    ASSERT_EQ(ov_infer_request_set_tensor(request, "a", a.get()), OK) << last_error();
    ASSERT_EQ(ov_infer_request_set_tensor(request, "b", b.get()), OK) << last_error();
    ASSERT_EQ(ov_infer_request_infer(request), OK) << last_error();
}

/* Returns the only row, that of the Add. */
ov_profiling_info_t
expect_add(const List &l)
{
    EXPECT_EQ(l.rows.size, 1u);
    if (l.rows.size != 1)
        return {};
    const ov_profiling_info_t &row = l.rows.profiling_infos[0];
    EXPECT_STREQ(row.node_name, "add");
    EXPECT_STREQ(row.node_type, "Add");
    return row;
}

class Profiling : public testing::Test
{
  protected:
    void SetUp() override
    {
        ov_available_devices_t devices = {nullptr, 0};
        ASSERT_EQ(ov_core_get_available_devices(core.get(), &devices), OK);
        bool found = false;
        for (size_t i = 0; i < devices.size; i++)
            found |= std::string(devices.devices[i]).rfind("GPU", 0) == 0;
        ov_available_devices_free(&devices);
        if (!found)
            GTEST_SKIP() << "no OpenCL device";
    }
    Core core = make_core();
};

TEST_F(Profiling, TellsWhatEachStepTook)
{
    Compiled compiled = compile_measured(core.get(), "GPU", "YES");
    Request request = make_request(compiled.get());
    for (int i = 0; i < 3000; i++)
        infer(request.get());
    for (int i = 0; i < 2; i++) {
        List l;
        ASSERT_EQ(ov_infer_request_get_profiling_info(request.get(), &l.rows), OK)
            << last_error();
        const ov_profiling_info_t row = expect_add(l);
        EXPECT_EQ(row.status, ov_profiling_info_t::EXECUTED);
        ASSERT_NE(row.exec_type, nullptr);
        const std::string exec_type = row.exec_type;
        EXPECT_EQ(exec_type.rfind("eltwise_", 0), 0u) << exec_type;
        EXPECT_EQ(exec_type.find("_f32"), exec_type.size() - 4) << exec_type;
        EXPECT_GE(row.real_time, 0);
        EXPECT_LT(row.real_time, 2000) << "of the last run";
        EXPECT_EQ(row.cpu_time, 0);
    }
}

TEST_F(Profiling, TellsWhatHasNotRun)
{
    Compiled compiled = compile_measured(core.get(), "GPU", "YES");
    Request request = make_request(compiled.get());
    List before;
    ASSERT_EQ(ov_infer_request_get_profiling_info(request.get(), &before.rows), OK);
    const ov_profiling_info_t row = expect_add(before);
    EXPECT_EQ(row.status, ov_profiling_info_t::NOT_RUN);
    EXPECT_EQ(row.real_time, 0);
    EXPECT_STREQ(row.exec_type, "undef");
}

TEST_F(Profiling, IsAnErrorWithoutMeasurements)
{
    Compiled compiled = compile_measured(core.get(), "GPU", "NO");
    Request request = make_request(compiled.get());
    List l;
    infer(request.get());
    EXPECT_NE(ov_infer_request_get_profiling_info(request.get(), &l.rows), OK);
    EXPECT_NE(last_error().find("compile the model with PERF_COUNT=YES"),
              std::string::npos)
        << last_error();
    EXPECT_EQ(l.rows.size, 0u);
    char untouched[] = "untouched";
    l.rows.profiling_infos = reinterpret_cast<ov_profiling_info_t *>(untouched);
    EXPECT_NE(ov_infer_request_get_profiling_info(request.get(), &l.rows), OK);
    EXPECT_EQ(l.rows.profiling_infos, reinterpret_cast<ov_profiling_info_t *>(untouched));
    l.rows.profiling_infos = nullptr;
}

TEST_F(Profiling, TellsTheStepsAloneOfACpuWithoutMeasurements)
{
    char *name = nullptr;
    if (ov_core_get_property(core.get(), "CPU", "FULL_DEVICE_NAME", &name) != OK)
        GTEST_SKIP() << "no OpenCL device";
    ov_free(name);
    Compiled compiled = compile_measured(core.get(), "CPU", "NO");
    Request request = make_request(compiled.get());
    infer(request.get());
    List l;
    ASSERT_EQ(ov_infer_request_get_profiling_info(request.get(), &l.rows), OK)
        << last_error();
    const ov_profiling_info_t row = expect_add(l);
    EXPECT_EQ(row.status, ov_profiling_info_t::NOT_RUN);
    EXPECT_EQ(row.real_time, 0);
}

TEST(ProfilingOfTheReference, IsNotThere)
{
    Core core = make_core();
    Compiled compiled = compile_measured(core.get(), "REFERENCE", "YES");
    Request request = make_request(compiled.get());
    List l;
    infer(request.get());
    EXPECT_NE(ov_infer_request_get_profiling_info(request.get(), &l.rows), OK);
    EXPECT_EQ(last_error(), "this device does not measure its steps");
    EXPECT_EQ(ov_infer_request_get_profiling_info(nullptr, &l.rows), INVALID_C_PARAM);
    EXPECT_EQ(ov_infer_request_get_profiling_info(request.get(), nullptr),
              INVALID_C_PARAM);
}

} // namespace
