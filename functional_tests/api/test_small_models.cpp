// SPDX-License-Identifier: Apache-2.0
// Features of other programs' files besides language models: names of results that are inputs,
// constants without elements, versions of layers; and the ways in which programs pass models.
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

// x of f32 [?,2] is converted to f32, which changes nothing, and is the result "y"; x itself is
// the result "x".
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

TEST_P(SmallModels, ATensorMayBeAResultTwice)
{
    SmallModel m;
    const int x = m.parameter("x", "f32", "?,2");
    const int same = m.layer("Convert", 1, "destination_type=\"f32\"", {x},
                             // gives the passes something to change
                             {{"f32", "?,2", ""}});
    const int y = m.layer("ReLU", 1, "", {same}, {{"f32", "?,2", "y"}});
    m.result(y);
    m.result(y);
    Compiled c = compiled_of(m);
    Request r = make_request(c.get());
    std::vector<float> in = {1, -2, 3, -4};
    Tensor t = wrap(in.data(), 2);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK) << last_error();
    ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    for (size_t i = 0; i < 2; i++) {
        ov_tensor_t *out = nullptr;
        void *data = nullptr;
        ASSERT_EQ(ov_infer_request_get_output_tensor_by_index(r.get(), i, &out), OK);
        Tensor owned(out);
        ASSERT_EQ(ov_tensor_data(out, &data), OK);
        EXPECT_EQ(static_cast<float *>(data)[2], 3) << i;
    }
}

// Some writers store a byte for a constant without elements; here it is the order of a transpose
// that reverses all dimensions.
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

// The execution graph is available before a run, for dynamic inputs, too.
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

// Tensors that can never hold a result are refused when they are set.
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

// The state is all x so far; each request has its own. A constant gives its initial length.
TEST_P(SmallModels, StatesGrowFromRunToRun)
{
    SmallModel m;
    const int x = m.parameter("x", "f32", "?,2");
    const int first = m.constant<float>("f32", "0,2", {}, 1);
    const std::string state =
        "variable_id=\"past\" variable_type=\"f32\" variable_shape=\"?,2\"";
    const int past = m.layer("ReadValue", 6, state, {first}, {{"f32", "?,2", ""}});
    const int all = m.layer("Concat", 1, "axis=\"0\"", {past, x}, {{"f32", "?,2", ""}});
    m.layer("Assign", 6, state, {all}, {{"f32", "?,2", ""}});
    m.result(m.layer("ReLU", 1, "", {all}, {{"f32", "?,2", "y"}}));
    Compiled c = compiled_of(m);
    std::vector<Request> requests;
    requests.push_back(make_request(c.get()));
    requests.push_back(make_request(c.get()));
    std::vector<float> expected;
    for (int64_t rows : {1, 3, 2}) {
        std::vector<float> in;
        for (int64_t i = 0; i < 2 * rows; i++)
            in.push_back((float)(expected.size() + (size_t)i + 1));
        expected.insert(expected.end(), in.begin(), in.end());
        Tensor t = wrap(in.data(), rows);
        for (const Request &r : requests) {
            ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK);
            ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
            EXPECT_EQ(numbers_of<float>(r.get(), "y"), expected);
        }
    }
    ov_model_t *steps = nullptr;
    EXPECT_EQ(ov_compiled_model_get_runtime_model(c.get(), &steps), OK) << last_error();
    ov_model_free(steps);
}

// An input without rows: its sum is still computed.
TEST_P(SmallModels, NothingCanBeSummedUp)
{
    SmallModel m;
    const int x = m.parameter("x", "f32", "?,2");
    const int axis = m.constant<int64_t>("i64", "1", {0});
    for (const char *type : {"ReduceSum", "ReduceMean", "ReduceProd"})
        m.result(
            m.layer(type, 1, "keep_dims=\"false\"", {x, axis}, {{"f32", "2", type}}));
    Compiled c = compiled_of(m);
    Request r = make_request(c.get());
    std::vector<float> in = {1, 2, 3, 5};
    for (int64_t rows : {2, 0}) {
        Tensor t = wrap(in.data(), rows);
        ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK);
        ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
        const bool some = rows > 0;
        EXPECT_EQ(numbers_of<float>(r.get(), "ReduceSum"),
                  some ? std::vector<float>({4, 7}) : std::vector<float>({0, 0}));
        EXPECT_EQ(numbers_of<float>(r.get(), "ReduceMean"),
                  some ? std::vector<float>({2, 3.5f}) : std::vector<float>({0, 0}));
        EXPECT_EQ(numbers_of<float>(r.get(), "ReduceProd"),
                  some ? std::vector<float>({3, 10}) : std::vector<float>({1, 1}));
    }
}

// s = a + b, of lengths that may differ; y = s times twice the sum of s. Ops of unknown size
// would form one step, which would need the sum, which itself needs that step.
TEST_P(SmallModels, SizesOfOneRunDecideWhereTwoOpenOnesMeet)
{
    SmallModel m;
    const int a = m.parameter("a", "f32", "?,2"), b = m.parameter("b", "f32", "?,2");
    const int y = m.layer("Add", 1, "", {a, b}, {{"f32", "?,2", ""}});
    const int axes = m.constant<int64_t>("i64", "2", {0, 1});
    const int sum =
        m.layer("ReduceSum", 1, "keep_dims=\"false\"", {y, axes}, {{"f32", "", ""}});
    const int twice = m.layer("Add", 1, "", {sum, sum}, {{"f32", "", ""}});
    m.result(m.layer("Multiply", 1, "", {y, twice}, {{"f32", "?,2", "y"}}));
    Compiled c = compiled_of(m);
    Request r = make_request(c.get());
    std::vector<float> va = {1, 2, 3, 4}, vb = {10, 20};
    Tensor ta = wrap(va.data(), 2), tb = wrap(vb.data(), 1);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "a", ta.get()), OK);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "b", tb.get()), OK);
    ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    EXPECT_EQ(numbers_of<float>(r.get(), "y"), // the sum is 70
              std::vector<float>({11 * 140, 22 * 140, 13 * 140, 24 * 140}));
}

/* ---- layers of one element ---------------------------------------------------------------- */

// A model with one layer: x [?], [?,?] or []; operands and result are converted to `element`, and
// are f32 outside.
struct Converted {
    Converted(const char *type, int opset, const char *data,
              const std::vector<std::vector<float>> &more, const std::string &shape,
              const std::string &element)
    {
        const std::string to = "destination_type=\"" + element + "\"";
        std::vector<int> in = {m.layer("Convert", 1, to, {m.parameter("x", "f32", shape)},
                                       {{element, shape, ""}})};
        for (const std::vector<float> &v : more) {
            const std::string n = std::to_string(v.size());
            in.push_back(
                m.layer("Convert", 1, to, {m.constant("f32", n, v)}, {{element, n, ""}}));
        }
        const int y = m.layer(type, opset, data, in, {{element, shape, ""}});
        m.result(m.layer("Convert", 1, "destination_type=\"f32\"", {y},
                         {{"f32", shape, "y"}}));
    }
    SmallModel m;
};

std::vector<float>
run_with(ov_compiled_model_t *c, const std::vector<int64_t> &dims, std::vector<float> x)
{
    Request r = make_request(c);
    Tensor t = tensor_of(F32, dims, x);
    EXPECT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK) << last_error();
    EXPECT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    return numbers_of<float>(r.get(), "y");
}

// NaN and infinities must be equal, all other values within the relative error `part`.
void
expect_same(const std::vector<float> &got, const std::vector<float> &want, float part)
{
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); i++) {
        if (std::isnan(want[i]))
            EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
        else if (std::isinf(want[i]))
            EXPECT_EQ(got[i], want[i]) << i;
        else
            EXPECT_NEAR(got[i], want[i], part * std::max(1.0f, std::fabs(want[i]))) << i;
    }
}

struct OneElement {
    const char *type;
    int opset;
    const char *data;
    std::vector<std::vector<float>> more; // constants
    std::vector<float> y;                 // expected for `numbers`
};

/* clang-format off */
const float inf = std::numeric_limits<float>::infinity(), nan_ = std::numeric_limits<float>::quiet_NaN();
const std::vector<float> numbers = {-inf, -2.5f, -0.5f, 0, 0.5f, 2.5f, inf, nan_};
const OneElement of_one[] = {
    {"Sign",     1, "", {}, {-1, -1, -1, 0, 1, 1, 1, nan_}},
    {"Round",    5, "", {}, {-inf, -2, 0, 0, 0, 2, inf, nan_}},
    {"Round",    5, "mode=\"half_to_even\"", {}, {-inf, -2, 0, 0, 0, 2, inf, nan_}},
    {"Round",    5, "mode=\"half_away_from_zero\"", {}, {-inf, -3, -1, 0, 1, 3, inf, nan_}},
    {"Round",    5, "mode=\"HALF_AWAY_FROM_ZERO\"", {}, {-inf, -3, -1, 0, 1, 3, inf, nan_}},
    {"Tan",      1, "", {}, {nan_, 0.7470223f, -0.5463025f, 0, 0.5463025f, -0.7470223f, nan_, nan_}},
    {"Atan",     1, "", {}, {-1.5707964f, -1.1902899f, -0.4636476f, 0, 0.4636476f, 1.1902899f, 1.5707964f, nan_}},
    {"Asinh",    4, "", {}, {-inf, -1.6472311f, -0.4812118f, 0, 0.4812118f, 1.6472311f, inf, nan_}},
    {"Sinh",     1, "", {}, {-inf, -6.0502043f, -0.5210953f, 0, 0.5210953f, 6.0502043f, inf, nan_}},
    {"Cosh",     1, "", {}, {inf, 6.1322894f, 1.1276259f, 1, 1.1276259f, 6.1322894f, inf, nan_}},
    {"HSwish",   4, "", {}, {nan_, -0.2083333f, -0.2083333f, 0, 0.2916667f, 2.2916667f, inf, nan_}},
    {"HSigmoid", 5, "", {}, {0, 0.0833333f, 0.4166667f, 0.5f, 0.5833333f, 0.9166667f, 1, 0}},
    {"Mish",     4, "", {}, {nan_, -0.1968162f, -0.2207438f, 0, 0.3752452f, 2.4713924f, inf, nan_}},
    {"SoftSign", 9, "", {}, {nan_, -0.7142857f, -0.3333333f, 0, 0.3333333f, 0.7142857f, nan_, nan_}},
    {"Elu",      1, "alpha=\"0.5\"", {}, {-0.5f, -0.4589575f, -0.1967347f, 0, 0.5f, 2.5f, inf, nan_}},
    {"Elu",      1, "alpha=\"-0.5\"", {}, {0.5f, 0.4589575f, 0.1967347f, 0, 0.5f, 2.5f, inf, nan_}},
    {"Selu",     1, "", {{1.5f}, {1.25f}}, {-1.875f, -1.7210906f, -0.737755f, 0, 0.625f, 3.125f, inf, nan_}},
    {"PReLU",    1, "", {{0.25f}}, {-inf, -0.625f, -0.125f, 0, 0.5f, 2.5f, inf, nan_}},
};
/* clang-format on */

TEST_P(SmallModels, LayersOfOneElementHaveTheirValues)
{
    for (const OneElement &a : of_one) {
        for (const char *element : {"f32", "f16"}) {
            SCOPED_TRACE(std::string(a.type) + " " + a.data + " of " + element);
            const float part = element[1] == '3' ? 1e-6f : 2e-3f;
            Converted vector(a.type, a.opset, a.data, a.more, "?", element);
            Converted matrix(a.type, a.opset, a.data, a.more, "?,4", element);
            Converted scalar(a.type, a.opset, a.data, a.more, "", element);
            Compiled v = compiled_of(vector.m), m = compiled_of(matrix.m);
            Compiled s = compiled_of(scalar.m);
            std::vector<float> in, y; // long enough for vectors of 16
            for (int i = 0; i < 3; i++) {
                in.insert(in.end(), numbers.begin(), numbers.end());
                y.insert(y.end(), a.y.begin(), a.y.end());
            }
            expect_same(run_with(v.get(), {(int64_t)in.size()}, in), y, part);
            expect_same(run_with(m.get(), {2, 4}, numbers), a.y, part);
            expect_same(run_with(s.get(), {}, {numbers[4]}), {a.y[4]}, part);
        }
    }
}

// Where e^x overflows f32, half of it does not.
TEST_P(SmallModels, HyperbolicFunctionsReachTheLargestNumbers)
{
    for (const char *type : {"Sinh", "Cosh"}) {
        Converted m(type, 1, "", {}, "?", "f32");
        Compiled c = compiled_of(m.m);
        const float sign = type[0] == 'S' ? -1.0f : 1.0f, y = 2.2448064e38f;
        expect_same(run_with(c.get(), {4}, {-89, 89, -100, 100}),
                    {sign * y, y, sign * inf, inf}, 1e-5f);
    }
}

TEST_P(SmallModels, HardSigmoidsOfScalarsTakeVectorsOfOne)
{
    for (const char *element : {"f32", "f16"}) {
        Converted m("HardSigmoid", 1, "", {{0.2f}, {0.5f}}, "", element);
        Compiled c = compiled_of(m.m);
        expect_same(run_with(c.get(), {}, {-1}), {0.3f}, 1e-3f);
    }
}

/* clang-format off */
const struct {
    const char *type;
    int opset;
    const char *data;
    std::vector<int> slope;
    std::vector<int> y; // expected for -7, -1, 0, 1, 3
} of_integers[] = {
    {"Sign",  1, "", {}, {-1, -1, 0, 1, 1}},
    {"Round", 5, "mode=\"half_to_even\"", {}, {-7, -1, 0, 1, 3}},
    {"Round", 5, "mode=\"half_away_from_zero\"", {}, {-7, -1, 0, 1, 3}},
    {"PReLU", 1, "", {2}, {-14, -2, 0, 1, 3}},
};
/* clang-format on */

template <typename T>
void
check_integers(Core &core, const char *device, const char *element,
               ov_element_type_e type, bool is_signed)
{
    for (const auto &a : of_integers) {
        SCOPED_TRACE(std::string(a.type) + " " + a.data + " of " + element);
        SmallModel m;
        std::vector<int> operands = {m.parameter("x", element, "?")};
        if (!a.slope.empty())
            operands.push_back(
                m.constant(element, "1", std::vector<T>(a.slope.begin(), a.slope.end())));
        m.result(m.layer(a.type, a.opset, a.data, operands, {{element, "?", "y"}}));
        Model model = m.read(core.get());
        Compiled c = compile(core.get(), model.get(), device);
        Request r = make_request(c.get());
        std::vector<T> x = {(T)-7, (T)-1, 0, 1, 3}, y(a.y.begin(), a.y.end());
        if (!is_signed) {
            x.erase(x.begin(), x.begin() + 2);
            y.erase(y.begin(), y.begin() + 2);
        }
        Tensor t = tensor_of(type, {(int64_t)x.size()}, x);
        ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK);
        ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
        EXPECT_EQ(numbers_of<T>(r.get(), "y"), y);
    }
}

TEST_P(SmallModels, LayersOfOneElementTakeIntegersThatTheyLeaveIntegers)
{
    check_integers<int32_t>(core, GetParam(), "i32", I32, true);
    check_integers<int64_t>(core, GetParam(), "i64", I64, true);
    check_integers<uint8_t>(core, GetParam(), "u8", U8, false);
}

/* ---- layers that become several ops --------------------------------------------------------- */

// A layer of f32 [2,3,2] with further constant operands [3], one number for each channel.
struct Composed {
    const char *type;
    int opset;
    const char *data;
    std::vector<std::vector<float>> more;
    double (*value)(double x, size_t channel);
};

const double two[] = {0.5, -1, 2};

/* clang-format off */
const Composed by_channels[] = {
    {"HardSigmoid", 1, "", {{0.2f}, {0.5f}},
     [](double x, size_t) { return std::min(std::max(0.2 * x + 0.5, 0.0), 1.0); }},
    {"PReLU", 1, "", {{0.5f, -1, 2}},
     [](double x, size_t channel) { return x > 0 ? x : two[channel] * x; }},
    {"BatchNormInference", 5, "epsilon=\"0.5\"",
     {{1, 2, 3}, {0.5f, -1, 2}, {1, 0, -1}, {0.5f, 1.5f, 3.5f}},
     [](double x, size_t k) {
         const double gamma[] = {1, 2, 3}, mean[] = {1, 0, -1}, var[] = {1, 2, 4};
         return (x - mean[k]) / std::sqrt(var[k]) * gamma[k] + two[k];
     }},
};
/* clang-format on */

TEST_P(SmallModels, LayersOfChannelsAreComposed)
{
    std::vector<float> in = {-4,   -2.5f, -1.5f, -1,   -0.5f, -0.25f,
                             0.0f, 0.25f, 0.5f,  1.0f, 1.5f,  2.5f};
    for (const Composed &a : by_channels) {
        for (const char *element : {"f32", "f16"}) {
            SCOPED_TRACE(std::string(a.type) + " of " + element);
            Converted m(a.type, a.opset, a.data, a.more, "?,3,?", element);
            Compiled c = compiled_of(m.m);
            std::vector<float> y;
            for (size_t i = 0; i < in.size(); i++)
                y.push_back((float)a.value(in[i], i / 2 % 3));
            expect_same(run_with(c.get(), {2, 3, 2}, in), y,
                        element[1] == '3' ? 2e-5f : 4e-3f);
        }
    }
}

// A layer of [2,3] that works over the rows.
struct OfRows {
    const char *type;
    int opset;
    const char *data, *element;
    bool takes_axes;
    const char *shape;
    std::vector<float> x, y;
};

/* clang-format off */
const std::vector<float> rows = {1, -2, 3, -3, 0, 4};
const float log_sums[] = {3.1328456f, 4.0190450f};
const OfRows of_rows[] = {
    {"ReduceL1", 4, "keep_dims=\"true\"",  "f32", true, "?,1", rows, {6, 7}},
    {"ReduceL1", 4, "keep_dims=\"True\"",  "f32", true, "?,1", rows, {6, 7}},
    {"ReduceL1", 4, "keep_dims=\"false\"", "f32", true, "?",   rows, {6, 7}},
    {"ReduceL1", 4, "",                    "i32", true, "?",   rows, {6, 7}},
    {"ReduceL2", 4, "keep_dims=\"false\"", "f32", true, "?",   rows, {3.7416574f, 5}},
    {"ReduceL2", 4, "keep_dims=\"1\"",     "f16", true, "?,1", {300, 400, 0, 0, 0, -300}, {500, 300}},
    {"NormalizeL2", 1, "eps=\"11\" eps_mode=\"add\"", "f32", true, "?,3", rows, {0.2f, -0.4f, 0.6f, -0.5f, 0, 0.6666667f}},
    {"NormalizeL2", 1, "eps=\"11\"",                  "f32", true, "?,3", rows, {0.2f, -0.4f, 0.6f, -0.5f, 0, 0.6666667f}},
    {"NormalizeL2", 1, "eps=\"16\" eps_mode=\"MAX\"", "f32", true, "?,3", rows, {0.25f, -0.5f, 0.75f, -0.6f, 0, 0.8f}},
    {"NormalizeL2", 1, "eps=\"1e-9\" eps_mode=\"add\"", "f16", true, "?,3", {300, 400, 0, 0, 0, 0}, {0.6f, 0.8f, 0, 0, 0, 0}},
    {"NormalizeL2", 1, "eps=\"1e-9\" eps_mode=\"max\"", "f16", true, "?,3", {300, 400, 0, 0, 0, 0}, {0.6f, 0.8f, 0, 0, 0, 0}},
    {"NormalizeL2", 1, "eps=\"1e-9\" eps_mode=\"add\"", "f16", true, "?,3", {1e-4f, -2e-4f, 0, 0, 0, 1}, {0.4428f, -0.8857f, 0, 0, 0, 1}},
    {"LogSoftmax", 5, "axis=\"-1\"", "f32", false, "?,3", rows,
     {1 - log_sums[0], -2 - log_sums[0], 3 - log_sums[0], -3 - log_sums[1], -log_sums[1], 4 - log_sums[1]}},
    {"LogSoftmax", 5, "", "f16", false, "?,3", rows,
     {1 - log_sums[0], -2 - log_sums[0], 3 - log_sums[0], -3 - log_sums[1], -log_sums[1], 4 - log_sums[1]}},
};
/* clang-format on */

TEST_P(SmallModels, LayersOfRowsAreComposed)
{
    for (const OfRows &a : of_rows) {
        SCOPED_TRACE(std::string(a.type) + " " + a.data + " of " + a.element);
        SmallModel m;
        const std::string to = std::string("destination_type=\"") + a.element + "\"";
        std::vector<int> operands = {m.layer("Convert", 1, to,
                                             {m.parameter("x", "f32", "?,3")},
                                             {{a.element, "?,3", ""}})};
        if (a.takes_axes)
            operands.push_back(m.constant<int64_t>("i64", "1", {1}));
        const int y =
            m.layer(a.type, a.opset, a.data, operands, {{a.element, a.shape, ""}});
        m.result(m.layer("Convert", 1, "destination_type=\"f32\"", {y},
                         {{"f32", a.shape, "y"}}));
        Compiled c = compiled_of(m);
        expect_same(run_with(c.get(), {2, 3}, a.x), a.y,
                    a.element[0] == 'f' && a.element[1] == '1' ? 2e-3f : 5e-6f);
    }
}

// A variance of 0, and an epsilon too small for f16.
TEST_P(SmallModels, NormsOfF16AddTheirEpsilon)
{
    Converted m("BatchNormInference", 5, "epsilon=\"1e-9\"", {{1}, {2}, {0}, {0}}, "?,1",
                "f16");
    Compiled c = compiled_of(m.m);
    expect_same(run_with(c.get(), {2, 1}, {0, 1e-4f}), {2, 5.162f}, 2e-3f);
}

TEST_P(SmallModels, ReductionsOfFlagsAreComposed)
{
    SmallModel m;
    const int x = m.parameter("x", "boolean", "?,3");
    const int axes = m.constant<int64_t>("i64", "1", {1});
    for (const char *type : {"ReduceLogicalAnd", "ReduceLogicalOr"})
        m.result(
            m.layer(type, 1, "keep_dims=\"false\"", {x, axes}, {{"boolean", "?", type}}));
    Compiled c = compiled_of(m);
    Request r = make_request(c.get());
    std::vector<uint8_t> in = {1, 1, 1, 0, 1, 0, 0, 0, 0};
    Tensor t = tensor_of(BOOLEAN, {3, 3}, in);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK);
    ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    EXPECT_EQ(numbers_of<uint8_t>(r.get(), "ReduceLogicalAnd"),
              std::vector<uint8_t>({1, 0, 0}));
    EXPECT_EQ(numbers_of<uint8_t>(r.get(), "ReduceLogicalOr"),
              std::vector<uint8_t>({1, 1, 0}));
}

// Slices of x are replaced by slices of updates.
struct Update {
    int64_t axis;
    std::vector<int64_t> x, ids, updates; // their shapes; updates count down from 0
    std::vector<int64_t> at;
    std::vector<float> y; // expected for x counting up from 0
};

/* clang-format off */
const Update updates[] = {
    {0,  {3, 2},    {2},    {2, 2},       {2, 0}, {-2, -3, 2, 3, 0, -1}},
    {-1, {3},       {2},    {2},          {2, 0}, {-1, 1, 0}},
    {-2, {3, 2},    {2},    {2, 2},       {2, 0}, {-2, -3, 2, 3, 0, -1}},
    {0,  {3, 2},    {},     {2},          {1},    {0, 1, 0, -1, 4, 5}},
    {1,  {2, 3},    {2},    {2, 2},       {2, 0}, {-1, 1, 0, -3, 4, -2}},
    {1,  {2, 3, 2}, {1},    {2, 1, 2},    {1},    {0, 1, 0, -1, 4, 5, 6, 7, -2, -3, 10, 11}},
    {-1, {1, 2, 3}, {1, 2}, {1, 2, 1, 2}, {2, 0}, {-1, 1, 0, -3, 4, -2}},
};
/* clang-format on */

std::string
text_of(const std::vector<int64_t> &dims)
{
    std::string text;
    for (int64_t d : dims)
        text += (text.empty() ? "" : ",") + std::to_string(d);
    return text;
}

TEST_P(SmallModels, UpdatesOfSlicesAreComposed)
{
    for (const Update &a : updates) {
        SCOPED_TRACE("axis " + std::to_string(a.axis) + " of [" + text_of(a.x) + "]");
        SmallModel m;
        std::vector<float> x, by;
        for (size_t i = 0; i < a.y.size(); i++) {
            x.push_back((float)i);
            by.push_back(-(float)i);
        }
        int64_t n = 1;
        for (int64_t d : a.updates)
            n *= d;
        by.resize((size_t)n);
        const std::vector<int> in = {m.parameter("x", "f32", text_of(a.x)),
                                     m.constant("i64", text_of(a.ids), a.at),
                                     m.constant("f32", text_of(a.updates), by),
                                     m.constant<int64_t>("i64", "", {a.axis})};
        m.result(m.layer("ScatterUpdate", 3, "", in, {{"f32", text_of(a.x), "y"}}));
        Compiled c = compiled_of(m);
        EXPECT_EQ(run_with(c.get(), a.x, x), a.y);
    }
}

// Two groups of two channels: each has mean 0 and variance 1 before scale and bias.
TEST_P(SmallModels, NormsOfGroupsAreComposed)
{
    SmallModel m;
    const int x = m.parameter("x", "f32", "?,4,?");
    const int scale = m.constant<float>("f32", "4", {1, 2, 3, 4});
    const int bias = m.constant<float>("f32", "4", {0, 0, 1, 1});
    m.result(m.layer("GroupNormalization", 12, "num_groups=\"2\" epsilon=\"0\"",
                     {x, scale, bias}, {{"f32", "?,4,?", "y"}}));
    Compiled c = compiled_of(m);
    Request r = make_request(c.get());
    std::vector<float> in = {3, 5, 5, 3, -1, 1, 1, -1};
    Tensor t = tensor_of(F32, {1, 4, 2}, in);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK);
    ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    const std::vector<float> out = numbers_of<float>(r.get(), "y");
    const std::vector<float> expected = {-1, 1, 2, -2, -2, 4, 5, -3};
    ASSERT_EQ(out.size(), expected.size());
    for (size_t i = 0; i < out.size(); i++)
        EXPECT_NEAR(out[i], expected[i], 1e-5) << i;
}

// A layer of x and parameters f32 [7]; the last operand may be a constant.
struct Refusal {
    const char *type;
    int opset;
    const char *data, *element;
    size_t n_in;
    std::vector<int64_t> last;
    const char *sentence;
};

/* clang-format off */
const Refusal refusals[] = {
    {"Elu", 1, "", "f32", 1, {}, "the attribute 'alpha' is missing"},
    {"Elu", 1, "alpha=\"one\"", "f32", 1, {}, "attribute alpha of elu is 'one': expected a number"},
    {"Elu", 1, "alpha=\"nan\"", "f32", 1, {}, "attribute alpha of elu is 'nan': expected a number"},
    {"Elu", 2, "alpha=\"1\"", "f32", 1, {}, "expected opset 1"},
    {"Elu", 1, "alpha=\"1\"", "f32", 2, {}, "it has 2 input ports, expected 1"},
    {"Round", 5, "mode=\"up\"", "f32", 1, {}, "attribute mode of round is 'up': expected one of half_to_even, half_away_from_zero"},
    {"Elu", 1, "alpha=\"1\"", "i32", 1, {}, "operand 0 is i32, expected floats"},
    {"Tan", 1, "", "i64", 1, {}, "operand 0 is i64, expected floats"},
    {"Sinh", 1, "", "i32", 1, {}, "operand 0 is i32, expected floats"},
    {"Cosh", 1, "", "i32", 1, {}, "operand 0 is i32, expected floats"},
    {"HSwish", 4, "", "i32", 1, {}, "operand 0 is i32, expected floats"},
    {"HSigmoid", 5, "", "u8", 1, {}, "operand 0 is u8, expected floats"},
    {"Mish", 4, "", "i32", 1, {}, "operand 0 is i32, expected floats"},
    {"SoftSign", 9, "", "i32", 1, {}, "operand 0 is i32, expected floats"},
    {"SoftPlus", 4, "", "i32", 1, {}, "operand 0 is i32, expected floats"},
    {"Swish", 4, "", "i32", 1, {}, "operand 0 is i32, expected floats"},
    {"Gelu", 7, "", "i32", 1, {}, "operand 0 is i32, expected floats"},
    {"LogSoftmax", 5, "axis=\"1.5\"", "f32", 1, {}, "attribute axis is '1.5': expected an integer of 64 bits"},
    {"LogSoftmax", 5, "axis=\"7\"", "f32", 1, {}, "LogSoftmax"},
    {"LogSoftmax", 5, "", "i32", 1, {}, "LogSoftmax: operand 0 is i32, expected floats"},
    {"Selu", 1, "", "f32", 1, {}, "it has 1 input ports, expected 3"},
    {"Selu", 1, "", "i32", 3, {}, "Selu: operand 0 is i32, expected floats"},
    {"PReLU", 1, "", "f32", 2, {}, "PReLU"},
    {"ReduceL1", 4, "keep_dims=\"yes\"", "f32", 2, {1}, "attribute keep_dims is 'yes': expected true or false"},
    {"ReduceL2", 4, "", "i32", 2, {1}, "ReduceL2: operand 0 is i32, expected floats"},
    {"NormalizeL2", 1, "eps_mode=\"add\"", "f32", 2, {1}, "the attribute 'eps' is missing"},
    {"NormalizeL2", 1, "eps=\"nan\"", "f32", 2, {1}, "attribute eps is 'nan': expected a number"},
    {"NormalizeL2", 1, "eps=\"1\" eps_mode=\"mul\"", "f32", 2, {1}, "attribute eps_mode is 'mul': expected one of add, max"},
    {"BatchNormInference", 5, "", "f32", 5, {}, "the attribute 'epsilon' is missing"},
    {"GroupNormalization", 12, "epsilon=\"0\"", "f32", 3, {}, "the attribute 'num_groups' is missing"},
    {"GroupNormalization", 12, "num_groups=\"3\"", "f32", 3, {}, "the attribute 'epsilon' is missing"},
    {"GroupNormalization", 12, "num_groups=\"0\" epsilon=\"0\"", "f32", 3, {}, "num_groups is 0, expected 1 or more"},
    {"GroupNormalization", 12, "num_groups=\"-1\" epsilon=\"0\"", "f32", 3, {}, "num_groups is -1, expected 1 or more"},
    {"GroupNormalization", 12, "num_groups=\"2\" epsilon=\"0\"", "f32", 3, {}, "num_groups is 2, expected a divisor of the 3 channels"},
    {"ScatterUpdate", 3, "", "f32", 4, {}, "the axis must be a constant"},
    {"ScatterUpdate", 3, "", "f32", 4, {3}, "the axis is 3, outside a shape of rank 3"},
    {"ScatterUpdate", 3, "", "f32", 4, {-4}, "the axis is -4, outside a shape of rank 3"},
    {"ScatterUpdate", 3, "", "f32", 4, {1}, "the updates have rank 1, expected 3"},
};
/* clang-format on */

TEST(SmallModelsComposed, SayWhatIsWrongWithAttributesAndOperands)
{
    Core core = make_core();
    for (const Refusal &a : refusals) {
        SCOPED_TRACE(std::string(a.type) + " " + a.data);
        SmallModel m;
        std::vector<int> in = {m.parameter("x", a.element, "2,3,4")};
        while (in.size() + a.last.size() < a.n_in)
            in.push_back(m.parameter("p" + std::to_string(in.size()), "f32", "7"));
        if (!a.last.empty())
            in.push_back(m.constant("i64", "1", a.last));
        m.result(m.layer(a.type, a.opset, a.data, in, {{a.element, "2,3,4", "y"}}));
        const std::string xml = m.text();
        int64_t n[] = {(int64_t)std::max<size_t>(m.weights.size(), 1)};
        m.weights.resize((size_t)n[0]);
        ov_tensor_t *bytes = nullptr;
        ASSERT_EQ(ov_tensor_create_from_host_ptr(U8, {1, n}, m.weights.data(), &bytes),
                  OK);
        Tensor owned(bytes);
        ov_model_t *model = nullptr;
        EXPECT_EQ(ov_core_read_model_from_memory_buffer(core.get(), xml.data(),
                                                        xml.size(), bytes, &model),
                  GENERAL_ERROR);
        EXPECT_NE(last_error().find(a.sentence), std::string::npos) << last_error();
        ov_model_free(model);
    }
}

/* ---- passing a model ----------------------------------------------------------------------- */

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
