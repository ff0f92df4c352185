// SPDX-License-Identifier: Apache-2.0
// What files of other programs have besides language models: names of results that are inputs,
// constants without elements, versions of layers; and the ways in which programs hand them over.
#include "functional_tests/api/small_model.h"

#include <cmath>
#include <limits>

namespace
{

class SmallModels : public testing::TestWithParam<const char *>
{
  protected:
    void SetUp() override
    {
        char *text = nullptr;
        if (ov_core_get_property(core.get(), GetParam(), "FULL_DEVICE_NAME", &text) != OK)
            GTEST_SKIP() << "no device " << GetParam();
        ov_free(text);
    }
    Compiled compiled_of(SmallModel &m)
    {
        Model model = m.read(core.get());
        return compile(core.get(), model.get(), GetParam());
    }
    Core core = make_core();
};

INSTANTIATE_TEST_SUITE_P(Devices, SmallModels, testing::Values("CPU", "REFERENCE"),
                         [](const auto &info) { return info.param; });

// x of f32 [?,2] -> convert to f32, which changes nothing -> "y"; and x itself -> "x".
TEST_P(SmallModels, ResultsKeepTheirNamesWhereWhatMadeThemChangedNothing)
{
    SmallModel m;
    const int x = m.parameter("x", "f32", "?,2");
    const int y = m.layer("Convert", 1, "destination_type=\"f32\"", {x},
                          {{"f32", "?,2", "y,other"}});
    m.result(y);
    m.result(x);
    Compiled c = compiled_of(m);
    ov_output_const_port_t *port = nullptr;
    char *name = nullptr;
    ASSERT_EQ(ov_compiled_model_output_by_index(c.get(), 0, &port), OK);
    ConstPort first(port);
    ASSERT_EQ(ov_port_get_any_name(port, &name), OK);
    EXPECT_STREQ(name, "y");
    ov_free(name);
    EXPECT_NE(ov_compiled_model_input_by_name(c.get(), "y", &port), OK);
    Request r = make_request(c.get());
    std::vector<float> in = {1, 2, 3, 4};
    Tensor t = wrap(in.data(), 2);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK) << last_error();
    ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    EXPECT_EQ(numbers_of<float>(r.get(), "y"), in);
    EXPECT_EQ(numbers_of<float>(r.get(), "other"), in);
}

// Writers give a constant without elements a byte: here the order of a transpose, all reversed.
TEST_P(SmallModels, ConstantsWithoutElementsMayHaveAByte)
{
    for (size_t size : {0u, 1u}) {
        SmallModel m;
        const int x = m.parameter("x", "f32", "2,3");
        const int order = m.constant<int64_t>("i64", "0", {}, size);
        m.result(m.layer("Transpose", 1, "", {x, order}, {{"f32", "3,2", "y"}}));
        Compiled c = compiled_of(m);
        Request r = make_request(c.get());
        std::vector<float> in = {1, 2, 3, 4, 5, 6};
        Tensor t = wrap(in.data(), 2, 3);
        ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK);
        ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
        EXPECT_EQ(numbers_of<float>(r.get(), "y"),
                  std::vector<float>({1, 4, 2, 5, 3, 6}));
    }
}

TEST_P(SmallModels, LayersComeInTheVersionsThatWritersGiveThem)
{
    SmallModel m;
    const int a = m.parameter("a", "boolean", "4"), b = m.parameter("b", "boolean", "4");
    const int x = m.parameter("x", "f32", "4"), like = m.parameter("like", "i32", "1");
    m.result(m.layer("LogicalXor", 2, "auto_broadcast=\"numpy\"", {a, b},
                     {{"boolean", "4", "xor"}}));
    m.result(m.layer("ConvertLike", 1, "", {x, like}, {{"i32", "4", "converted"}}));
    Compiled c = compiled_of(m);
    Request r = make_request(c.get());
    std::vector<uint8_t> va = {0, 0, 1, 1}, vb = {0, 1, 0, 1};
    std::vector<float> vx = {1.5f, -2.5f, 3, 0};
    std::vector<int32_t> vl = {7};
    Tensor ta = tensor_of(BOOLEAN, {4}, va), tb = tensor_of(BOOLEAN, {4}, vb);
    Tensor tx = tensor_of(F32, {4}, vx), tl = tensor_of(I32, {1}, vl);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "a", ta.get()), OK);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "b", tb.get()), OK);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", tx.get()), OK);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "like", tl.get()), OK);
    ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    EXPECT_EQ(numbers_of<uint8_t>(r.get(), "xor"), std::vector<uint8_t>({0, 1, 1, 0}));
    EXPECT_EQ(numbers_of<int32_t>(r.get(), "converted"),
              std::vector<int32_t>({1, -2, 3, 0}));
}

// An execution graph is there before anything has run, whatever the inputs' sizes will be.
TEST_P(SmallModels, WithOpenSizesTellWhatTheyRun)
{
    SmallModel m;
    const int x = m.parameter("x", "f32", "?,3");
    const int w = m.constant<float>("f32", "3,2", {1, 2, 3, 4, 5, 6});
    m.result(m.layer("MatMul", 1, "transpose_a=\"false\" transpose_b=\"false\"", {x, w},
                     {{"f32", "?,2", "y"}}));
    Compiled c = compiled_of(m);
    ov_model_t *steps = nullptr;
    ASSERT_EQ(ov_compiled_model_get_runtime_model(c.get(), &steps), OK) << last_error();
    Model owned(steps);
    size_t n = 0;
    EXPECT_EQ(ov_model_inputs_size(steps, &n), OK);
    EXPECT_EQ(n, 1u);
}

TEST_P(SmallModels, ResultsHaveTheBoundsOfTheInputsTheyGoWith)
{
    SmallModel m;
    const int x = m.parameter("x", "f32", "1..4,2..16,3");
    m.result(m.layer("ReLU", 1, "", {x}, {{"f32", "?,?,3", "y"}}));
    Compiled c = compiled_of(m);
    ov_output_const_port_t *port = nullptr;
    ov_partial_shape_t shape = {};
    ASSERT_EQ(ov_compiled_model_output(c.get(), &port), OK);
    ConstPort owned(port);
    ASSERT_EQ(ov_port_get_partial_shape(port, &shape), OK);
    const char *text = ov_partial_shape_to_string(shape);
    EXPECT_STREQ(text, "{1..4,2..16,3}");
    ov_free(text);
    ov_partial_shape_free(&shape);
}

// Tensors that no result can ever fill are refused when they are set.
TEST_P(SmallModels, OutputTensorsAreComparedWithWhatIsKnown)
{
    SmallModel m;
    const int x = m.parameter("x", "f32", "?,2");
    m.result(m.layer("ReLU", 1, "", {x}, {{"f32", "?,2", "y"}}));
    Compiled c = compiled_of(m);
    Request r = make_request(c.get());
    std::vector<float> data(12);
    Tensor narrow = wrap(data.data(), 2, 1), other = wrap(data.data(), 4, 3);
    Tensor fits = wrap(data.data(), 2, 2), vector = tensor_of(F32, {4}, data);
    EXPECT_EQ(ov_infer_request_set_output_tensor(r.get(), narrow.get()), GENERAL_ERROR);
    EXPECT_EQ(ov_infer_request_set_output_tensor(r.get(), other.get()), GENERAL_ERROR);
    EXPECT_EQ(ov_infer_request_set_output_tensor(r.get(), vector.get()), GENERAL_ERROR);
    EXPECT_NE(last_error().find("'y'"), std::string::npos) << last_error();
    EXPECT_EQ(ov_infer_request_set_output_tensor(r.get(), fits.get()), OK)
        << last_error();
}

/* ---- handing over ------------------------------------------------------------------------ */

TEST(SmallModelsInMemory, TextMayCountTheCharacterAtItsEnd)
{
    Core core = make_core();
    const std::string xml = add_model();
    ov_model_t *model = nullptr;
    ASSERT_EQ(ov_core_read_model_from_memory_buffer(core.get(), xml.c_str(),
                                                    xml.size() + 1, nullptr, &model),
              OK)
        << last_error();
    ov_model_free(model);
    const char nothing[4] = "";
    EXPECT_EQ(ov_core_read_model_from_memory_buffer(core.get(), nothing, sizeof(nothing),
                                                    nullptr, &model),
              GENERAL_ERROR);
}

TEST(SmallModelsInMemory, WeightsAreBytesWhateverTheTensorsType)
{
    Core core = make_core();
    SmallModel m;
    const int x = m.parameter("x", "f32", "2");
    const int w = m.constant<float>("f32", "2", {10, 20});
    m.result(m.layer("Add", 1, "auto_broadcast=\"numpy\"", {x, w}, {{"f32", "2", "y"}}));
    std::vector<float> weights = {10, 20};
    Tensor floats = tensor_of(F32, {2}, weights);
    const std::string xml = m.text();
    ov_model_t *model = nullptr;
    ASSERT_EQ(ov_core_read_model_from_memory_buffer(core.get(), xml.data(), xml.size(),
                                                    floats.get(), &model),
              OK)
        << last_error();
    Model owned(model);
    Compiled c = compile(core.get(), model);
    Request r = make_request(c.get());
    std::vector<float> in = {1, 2};
    Tensor t = tensor_of(F32, {2}, in);
    ASSERT_EQ(ov_infer_request_set_input_tensor(r.get(), t.get()), OK);
    ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    EXPECT_EQ(numbers_of<float>(r.get(), "y"), std::vector<float>({11, 22}));
}

} // namespace
