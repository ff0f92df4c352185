// SPDX-License-Identifier: Apache-2.0
// Models whose sizes depend on the shapes of a run: the sum of two inputs of any length.
#include "functional_tests/api/small_model.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

namespace
{

std::string
property(ov_compiled_model_t *c, const char *key)
{
    char *text = nullptr;
    EXPECT_EQ(ov_compiled_model_get_property(c, key, &text), OK) << last_error();
    std::string s = text ? text : "";
    ov_free(text);
    return s;
}

// Runs a [rows_a,2] + b [rows_b,2], whose values depend on the row.
struct Sum {
    std::vector<float> y;
    int64_t rows = 0;
};

Sum
add(ov_infer_request_t *request, int64_t rows_a, int64_t rows_b)
{
    std::vector<float> a(2 * (size_t)rows_a + 1), b(2 * (size_t)rows_b + 1);
    for (size_t i = 0; i < a.size(); i++)
        a[i] = (float)i;
    for (size_t i = 0; i < b.size(); i++)
        b[i] = (float)(100 * i);
    Tensor ta = wrap(a.data(), rows_a), tb = wrap(b.data(), rows_b);
    EXPECT_EQ(ov_infer_request_set_tensor(request, "a", ta.get()), OK) << last_error();
    EXPECT_EQ(ov_infer_request_set_tensor(request, "b", tb.get()), OK) << last_error();
    Sum sum;
    if (ov_infer_request_infer(request) != OK) {
        sum.rows = -1;
        return sum;
    }
    ov_tensor_t *y = nullptr;
    EXPECT_EQ(ov_infer_request_get_tensor(request, "y", &y), OK) << last_error();
    ov_shape_t shape = {};
    void *data = nullptr;
    EXPECT_EQ(ov_tensor_get_shape(y, &shape), OK);
    EXPECT_EQ(ov_tensor_data(y, &data), OK);
    sum.rows = shape.dims[0];
    sum.y.assign((float *)data, (float *)data + 2 * sum.rows);
    ov_shape_free(&shape);
    ov_tensor_free(y);
    return sum;
}

void
expect_sum(ov_infer_request_t *request, int64_t rows_a, int64_t rows_b)
{
    const Sum sum = add(request, rows_a, rows_b);
    ASSERT_EQ(sum.rows, std::max(rows_a, rows_b)) << last_error();
    for (int64_t i = 0; i < 2 * sum.rows; i++) {
        const int64_t of_a = rows_a == 1 ? i % 2 : i, of_b = rows_b == 1 ? i % 2 : i;
        ASSERT_EQ(sum.y[(size_t)i], (float)(of_a + 100 * of_b))
            << rows_a << " + " << rows_b << " at " << i;
    }
}

// y = relu(attention_mask): no other input determines the mask's length.
const char mask_alone[] = R"(<net name="mask" version="11"><layers>
<layer id="0" name="attention_mask" type="Parameter" version="opset1">
<data shape="?,?" element_type="f32"/><output>
<port id="0" precision="FP32" names="a"><dim>-1</dim><dim>-1</dim></port></output></layer>
<layer id="1" name="relu" type="ReLU" version="opset1">
<input><port id="0" precision="FP32"><dim>-1</dim><dim>-1</dim></port></input><output>
<port id="1" precision="FP32" names="y"><dim>-1</dim><dim>-1</dim></port></output></layer>
<layer id="2" name="sink" type="Result" version="opset1">
<input><port id="0" precision="FP32"><dim>-1</dim><dim>-1</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>)";

class AnyShape : public testing::TestWithParam<const char *>
{
  protected:
    void SetUp() override
    {
        model = read_text(core.get(), add_model(false));
        char *text = nullptr;
        if (ov_core_get_property(core.get(), GetParam(), "FULL_DEVICE_NAME", &text) != OK)
            GTEST_SKIP() << "no OpenCL device";
        ov_free(text);
        compiled = compile(core.get(), model.get(), GetParam());
    }
    Core core = make_core();
    Model model;
    Compiled compiled;
};

// More shapes than programs are kept for; each twice; with a length of 1 or 0.
TEST_P(AnyShape, IsComputedWithEitherLengthBroadcast)
{
    Request request = make_request(compiled.get());
    for (int turn = 0; turn < 2; turn++) {
        for (int64_t n = 1; n < 12; n++)
            expect_sum(request.get(), n, n);
        expect_sum(request.get(), 1, 7);
        expect_sum(request.get(), 7, 1);
    }
}

TEST_P(AnyShape, ThatDoesNotFitIsRefusedAndForgotten)
{
    Request request = make_request(compiled.get());
    expect_sum(request.get(), 3, 3);
    EXPECT_EQ(add(request.get(), 3, 4).rows, -1);
    EXPECT_NE(last_error().find("add"), std::string::npos) << last_error();
    expect_sum(request.get(), 4, 4);
}

TEST_P(AnyShape, HasDynamicPortsAndTellsOfItself)
{
    ov_output_const_port_t *port = nullptr;
    ov_partial_shape_t shape = {};
    ASSERT_EQ(ov_compiled_model_output(compiled.get(), &port), OK);
    ConstPort held(port);
    ASSERT_EQ(ov_port_get_partial_shape(port, &shape), OK);
    EXPECT_TRUE(ov_partial_shape_is_dynamic(shape));
    EXPECT_EQ(shape.rank.max, 2);
    EXPECT_EQ(shape.dims[1].max, 2);
    ov_partial_shape_free(&shape);
    EXPECT_EQ(property(compiled.get(), "NETWORK_NAME"), "adder");
    EXPECT_FALSE(property(compiled.get(), "EXECUTION_DEVICES").empty());
}

TEST_P(AnyShape, RunsInThreadsAfterItsCoreAndHandleAreGone)
{
    std::vector<Request> requests;
    for (int i = 0; i < 3; i++)
        requests.push_back(make_request(compiled.get()));
    compiled.reset();
    model.reset();
    core.reset();
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++) {
        threads.emplace_back([&, t] {
            for (int64_t n = 1; n < 14; n++)
                expect_sum(requests[(size_t)t].get(), t == 1 ? 1 : n, n);
        });
    }
    for (std::thread &t : threads)
        t.join();
}

TEST_P(AnyShape, OfAMaskAloneIsItsOwn)
{
    Model mask = read_text(core.get(), mask_alone);
    ov_compiled_model_t *c = nullptr;
    ASSERT_EQ(ov_core_compile_model(core.get(), mask.get(), GetParam(), 0, &c), OK)
        << last_error();
    Compiled held(c);
    Request request = make_request(c);
    for (int64_t rows = 1; rows < 4; rows++) {
        std::vector<float> a(2 * (size_t)rows, -3.0f);
        a.back() = 5.0f;
        Tensor ta = wrap(a.data(), rows);
        ASSERT_EQ(ov_infer_request_set_tensor(request.get(), "a", ta.get()), OK);
        ASSERT_EQ(ov_infer_request_infer(request.get()), OK) << last_error();
        ov_tensor_t *y = nullptr;
        void *data = nullptr;
        ASSERT_EQ(ov_infer_request_get_tensor(request.get(), "y", &y), OK);
        EXPECT_EQ(ov_tensor_data(y, &data), OK);
        EXPECT_EQ(((float *)data)[0], 0.0f);
        EXPECT_EQ(((float *)data)[a.size() - 1], 5.0f);
        ov_tensor_free(y);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, AnyShape, testing::Values("GPU", "REFERENCE"));

TEST(AnyShapeMeasured, TellsOfTheRunBefore)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model(false));
    ov_compiled_model_t *c = nullptr;
    if (ov_core_compile_model(core.get(), model.get(), "GPU", 2, &c, "PERF_COUNT",
                              "YES") != OK)
        GTEST_SKIP() << "no OpenCL device";
    Compiled held(c);
    Request request = make_request(c);
    ov_profiling_info_list_t infos = {};
    EXPECT_EQ(ov_infer_request_get_profiling_info(request.get(), &infos), GENERAL_ERROR);
    expect_sum(request.get(), 5, 5);
    ASSERT_EQ(ov_infer_request_get_profiling_info(request.get(), &infos), OK)
        << last_error();
    EXPECT_GE(infos.size, 1u);
    ov_profiling_info_list_free(&infos);
}

/* ---- shapes that small sizes do not fit, and states ------------------------------------------ */

/* y [n,8] of x [?,?]: no shape with one element fits, so that the first program needs a larger
 * one. */
TEST(Shapes, ThatCutInPartsAreFoundForTheFirstProgram)
{
    Core core = make_core();
    SmallModel m;
    const int x = m.parameter("x", "f32", "?,?");
    const int eight = m.constant<int64_t>("i64", "2", {-1, 8});
    m.result(m.layer("Reshape", 1, "special_zero=\"false\"", {x, eight},
                     {{"f32", "?,8", "y"}}));
    Model model = m.read(core.get());
    Compiled c = compile(core.get(), model.get());
    Request r = make_request(c.get());
    for (int64_t rows : {2, 4, 6}) {
        std::vector<float> in((size_t)rows * 12);
        for (size_t i = 0; i < in.size(); i++)
            in[i] = (float)i;
        Tensor t = tensor_of(F32, {rows, 12}, in);
        ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK);
        ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
        EXPECT_EQ(numbers_of<float>(r.get(), "y"), in);
    }
    std::vector<float> odd(12);
    Tensor t = tensor_of(F32, {1, 12}, odd);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK);
    EXPECT_EQ(ov_infer_request_infer(r.get()), GENERAL_ERROR);
    EXPECT_NE(last_error().find("12 elements"), std::string::npos) << last_error();
}

/* The state is the last two rows of all rows so far. */
TEST(States, MayBeWindows)
{
    Core core = make_core();
    SmallModel m;
    const std::string state =
        "variable_id=\"last\" variable_type=\"f32\" variable_shape=\"?,2\"";
    const int x = m.parameter("x", "f32", "?,2");
    const int none = m.constant<float>("f32", "0,2", {}, 1);
    const int last = m.layer("ReadValue", 6, state, {none}, {{"f32", "?,2", ""}});
    const int all = m.layer("Concat", 1, "axis=\"0\"", {last, x}, {{"f32", "?,2", ""}});
    const int begin = m.constant<int64_t>("i64", "1", {-2}),
              end = m.constant<int64_t>("i64", "1", {INT64_MAX}),
              step = m.constant<int64_t>("i64", "1", {1}),
              axis = m.constant<int64_t>("i64", "1", {0});
    const int kept =
        m.layer("Slice", 8, "", {all, begin, end, step, axis}, {{"f32", "?,2", ""}});
    m.layer("Assign", 6, state, {kept}, {{"f32", "?,2", ""}});
    m.result(m.layer("ReLU", 1, "", {all}, {{"f32", "?,2", "y"}}));
    Model model = m.read(core.get());
    Compiled c = compile(core.get(), model.get());
    Request r = make_request(c.get());
    std::vector<float> window;
    float next = 1;
    for (int64_t rows : {1, 3, 1, 2}) {
        std::vector<float> in((size_t)rows * 2);
        for (float &v : in)
            v = next++;
        window.insert(window.end(), in.begin(), in.end());
        Tensor t = wrap(in.data(), rows);
        ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK);
        ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
        EXPECT_EQ(numbers_of<float>(r.get(), "y"), window);
        window.erase(window.begin(),
                     window.end() - std::min<long>(4, (long)window.size()));
    }
}

} // namespace
