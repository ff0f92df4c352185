/* SPDX-License-Identifier: Apache-2.0
 *
 * Changing the element types of input and output tensors: types of ports, and runs.
 */
#include "functional_tests/api/api_test.h"
#include "xemoe/xemoe.h"

namespace
{

/* The model sum = a + b of one row of two numbers; a as u8, sum as f64. */
class Retype : public testing::TestWithParam<const char *>
{
  protected:
    void SetUp() override
    {
        core = make_core();
        char *name = nullptr;
        if (ov_core_get_property(core.get(), GetParam(), "FULL_DEVICE_NAME", &name) !=
                OK &&
            std::string(GetParam()) != "REFERENCE")
            GTEST_SKIP() << "no device " << GetParam();
        ov_free(name);
        model = read_text(core.get(), add_model());
    }

    Core core;
    Model model;
};

INSTANTIATE_TEST_SUITE_P(Devices, Retype, testing::Values("GPU", "REFERENCE"),
                         [](const auto &info) { return info.param; });

TEST_P(Retype, ConvertsFromAndTo)
{
    ASSERT_EQ(xm_model_set_input_type(model.get(), 0, U8), OK) << last_error();
    ASSERT_EQ(xm_model_set_output_type(model.get(), 0, F16), OK) << last_error();
    ov_output_const_port_t *port = nullptr;
    ov_element_type_e type = DYNAMIC;
    ASSERT_EQ(ov_model_const_input_by_index(model.get(), 0, &port), OK);
    EXPECT_EQ(ov_port_get_element_type(port, &type), OK);
    EXPECT_EQ(type, U8);
    ov_output_const_port_free(port);
    const Compiled compiled = compile(core.get(), model.get(), GetParam());
    const Request r = make_request(compiled.get());
    uint8_t a[] = {200, 3};
    float b[] = {0.5f, -4.25f};
    int64_t dims[] = {1, 2};
    ov_tensor_t *t = nullptr;
    ASSERT_EQ(ov_tensor_create_from_host_ptr(U8, {2, dims}, a, &t), OK);
    const Tensor ta(t), tb = wrap(b, 1);
    ASSERT_EQ(ov_infer_request_set_input_tensor_by_index(r.get(), 0, ta.get()), OK)
        << last_error();
    ASSERT_EQ(ov_infer_request_set_input_tensor_by_index(r.get(), 1, tb.get()), OK)
        << last_error();
    EXPECT_EQ(ov_infer_request_set_input_tensor_by_index(r.get(), 0, tb.get()),
              GENERAL_ERROR)
        << "of the model's type, which the tensor no longer has";
    ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    ASSERT_EQ(ov_infer_request_get_output_tensor_by_index(r.get(), 0, &t), OK)
        << last_error();
    const Tensor sum(t);
    EXPECT_EQ(ov_tensor_get_element_type(t, &type), OK);
    EXPECT_EQ(type, F16);
    void *data = nullptr;
    ASSERT_EQ(ov_tensor_data(t, &data), OK);
    EXPECT_EQ(static_cast<uint16_t *>(data)[0], 0x5a44) << "200.5";
    EXPECT_EQ(static_cast<uint16_t *>(data)[1], 0xbd00) << "-1.25";
}

/* An OpenCL device has no f64: the compiled model reports another type. */
TEST_P(Retype, GivesTheTypeOfTheCompiledModel)
{
    ASSERT_EQ(xm_model_set_output_type(model.get(), 0, F64), OK) << last_error();
    const Compiled compiled = compile(core.get(), model.get(), GetParam());
    const Request r = make_request(compiled.get());
    const std::string device = GetParam();
    float a[] = {200.0f, 3.0f}, b[] = {0.5f, -4.25f};
    const Tensor ta = wrap(a, 1), tb = wrap(b, 1);
    ASSERT_EQ(ov_infer_request_set_input_tensor_by_index(r.get(), 0, ta.get()), OK);
    ASSERT_EQ(ov_infer_request_set_input_tensor_by_index(r.get(), 1, tb.get()), OK);
    ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    ov_tensor_t *t = nullptr;
    ASSERT_EQ(ov_infer_request_get_output_tensor_by_index(r.get(), 0, &t), OK)
        << last_error();
    const Tensor sum(t);
    ov_element_type_e type = DYNAMIC;
    EXPECT_EQ(ov_tensor_get_element_type(t, &type), OK);
    EXPECT_EQ(type, device == "GPU" ? F32 : F64);
}

TEST_P(Retype, RefusesWhatHasNoTensors)
{
    EXPECT_EQ(xm_model_set_input_type(nullptr, 0, F16), INVALID_C_PARAM);
    EXPECT_EQ(xm_model_set_input_type(model.get(), 0, (ov_element_type_e)99),
              INVALID_C_PARAM);
    EXPECT_EQ(xm_model_set_output_type(nullptr, 0, F16), INVALID_C_PARAM);
    EXPECT_EQ(xm_model_set_input_type(model.get(), 2, F16), UNKNOW_EXCEPTION);
    EXPECT_EQ(last_error(), "there is no input 2: the model has 2");
    EXPECT_EQ(xm_model_set_output_type(model.get(), 1, F16), UNKNOW_EXCEPTION);
    EXPECT_EQ(last_error(), "there is no output 1: the model has 1");
    EXPECT_EQ(xm_model_set_output_type(model.get(), 0, STRING), GENERAL_ERROR);
    EXPECT_NE(last_error().find("cannot take tensors of element type string"),
              std::string::npos)
        << last_error();
}

} // namespace
