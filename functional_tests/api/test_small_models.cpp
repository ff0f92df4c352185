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

TEST_P(SmallModels, ATensorMayBeAResultTwice)
{
    SmallModel m;
    const int x = m.parameter("x", "f32", "?,2");
    const int same = m.layer("Convert", 1, "destination_type=\"f32\"", {x},
                             {{"f32", "?,2", ""}}); // passes have something to do
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

// What came so far, and x behind it; each request has its own, the first length is a constant's.
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

// An input of no rows: its sum is there all the same.
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

// s = a + b, of lengths that nobody knows to be the same; y = s times twice the sum of s. What has
// no size in the plan is one step, which would need the sum, which needs that step.
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

/* ---- layers that become several operations ------------------------------------------------ */

// Of f32 [2,3,2], with further operands as constants of [3], a number a channel.
struct Composed {
    const char *type;
    int opset;
    const char *data;
    std::vector<std::vector<float>> more;
    double (*value)(double x, size_t channel);
};

const double two[] = {0.5, -1, 2};

const Composed activations[] = {
    {"HSigmoid",
     5,
     "",
     {},
     [](double x, size_t) { return std::min(std::max(x + 3, 0.0), 6.0) / 6; }},
    {"HSwish",
     4,
     "",
     {},
     [](double x, size_t) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }},
    {"HardSigmoid",
     1,
     "",
     {{0.2f}, {0.5f}},
     [](double x, size_t) { return std::min(std::max(0.2 * x + 0.5, 0.0), 1.0); }},
    {"Mish",
     4,
     "",
     {},
     [](double x, size_t) { return x * std::tanh(std::log1p(std::exp(x))); }},
    {"SoftSign", 9, "", {}, [](double x, size_t) { return x / (1 + std::fabs(x)); }},
    {"Elu",
     1,
     "alpha=\"0.5\"",
     {},
     [](double x, size_t) { return x > 0 ? x : 0.5 * std::expm1(x); }},
    {"Selu",
     1,
     "",
     {{1.5f}, {1.25f}},
     [](double x, size_t) { return 1.25 * (x > 0 ? x : 1.5 * std::expm1(x)); }},
    {"PReLU", 1, "", {{0.25f}}, [](double x, size_t) { return x > 0 ? x : 0.25 * x; }},
    {"PReLU",
     1,
     "",
     {{0.5f, -1, 2}},
     [](double x, size_t channel) { return x > 0 ? x : two[channel] * x; }},
    {"Sign", 1, "", {}, [](double x, size_t) { return (double)((x > 0) - (x < 0)); }},
    {"Round",
     5,
     "mode=\"half_to_even\"",
     {},
     [](double x, size_t) { return std::nearbyint(x); }},
    {"Round",
     5,
     "mode=\"half_away_from_zero\"",
     {},
     [](double x, size_t) { return std::round(x); }},
    {"Tan", 1, "", {}, [](double x, size_t) { return std::tan(x); }},
    {"Atan", 1, "", {}, [](double x, size_t) { return std::atan(x); }},
    {"Asinh", 4, "", {}, [](double x, size_t) { return std::asinh(x); }},
    {"Sinh", 1, "", {}, [](double x, size_t) { return std::sinh(x); }},
    {"Cosh", 1, "", {}, [](double x, size_t) { return std::cosh(x); }},
    {"BatchNormInference",
     5,
     "epsilon=\"0.5\"",
     {{1, 2, 3}, {0.5f, -1, 2}, {1, 0, -1}, {0.5f, 1.5f, 3.5f}},
     [](double x, size_t k) {
         const double gamma[] = {1, 2, 3}, mean[] = {1, 0, -1}, var[] = {1, 2, 4};
         return (x - mean[k]) / std::sqrt(var[k]) * gamma[k] + two[k];
     }},
};

TEST_P(SmallModels, LayersOfOneElementAreComposed)
{
    std::vector<float> in = {-4,   -2.5f, -1.5f, -1,   -0.5f, -0.25f,
                             0.0f, 0.25f, 0.5f,  1.0f, 1.5f,  2.5f};
    for (const Composed &a : activations) {
        SmallModel m;
        std::vector<int> operands = {m.parameter("x", "f32", "?,3,?")};
        for (const std::vector<float> &v : a.more)
            operands.push_back(m.constant("f32", std::to_string(v.size()), v));
        m.result(m.layer(a.type, a.opset, a.data, operands, {{"f32", "?,3,?", "y"}}));
        Compiled c = compiled_of(m);
        Request r = make_request(c.get());
        Tensor t = tensor_of(F32, {2, 3, 2}, in);
        ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK);
        ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << a.type << last_error();
        const std::vector<float> out = numbers_of<float>(r.get(), "y");
        ASSERT_EQ(out.size(), in.size());
        for (size_t i = 0; i < out.size(); i++)
            EXPECT_NEAR(out[i], a.value(in[i], i / 2 % 3), 2e-5)
                << a.type << " " << in[i];
    }
}

// Of f32 [2,3] over the rows.
const struct {
    const char *type;
    int opset;
    const char *data;
    bool takes_axes;
    const char *shape;
    std::vector<double> y;
} of_rows[] = {
    {"ReduceL1", 4, "keep_dims=\"true\"", true, "?,1", {6, 7}},
    {"ReduceL1", 4, "keep_dims=\"false\"", true, "?", {6, 7}},
    {"ReduceL2", 4, "keep_dims=\"false\"", true, "?", {std::sqrt(14), 5}},
    {"NormalizeL2",
     1,
     "eps=\"11\" eps_mode=\"add\"",
     true,
     "?,3",
     {0.2, -0.4, 0.6, -0.5, 0, 2.0 / 3}},
    {"NormalizeL2",
     1,
     "eps=\"16\" eps_mode=\"max\"",
     true,
     "?,3",
     {0.25, -0.5, 0.75, -0.6, 0, 0.8}},
    {"LogSoftmax",
     5,
     "axis=\"-1\"",
     false,
     "?,3",
     {1 - std::log(std::exp(1) + std::exp(-2) + std::exp(3)),
      -2 - std::log(std::exp(1) + std::exp(-2) + std::exp(3)),
      3 - std::log(std::exp(1) + std::exp(-2) + std::exp(3)),
      -3 - std::log(std::exp(-3) + 1 + std::exp(4)),
      0 - std::log(std::exp(-3) + 1 + std::exp(4)),
      4 - std::log(std::exp(-3) + 1 + std::exp(4))}},
};

TEST_P(SmallModels, LayersOfRowsAreComposed)
{
    std::vector<float> in = {1, -2, 3, -3, 0, 4};
    for (const auto &a : of_rows) {
        SmallModel m;
        std::vector<int> operands = {m.parameter("x", "f32", "?,3")};
        if (a.takes_axes)
            operands.push_back(m.constant<int64_t>("i64", "1", {1}));
        m.result(m.layer(a.type, a.opset, a.data, operands, {{"f32", a.shape, "y"}}));
        Compiled c = compiled_of(m);
        Request r = make_request(c.get());
        Tensor t = tensor_of(F32, {2, 3}, in);
        ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", t.get()), OK);
        ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << a.type << last_error();
        const std::vector<float> out = numbers_of<float>(r.get(), "y");
        ASSERT_EQ(out.size(), a.y.size()) << a.type;
        for (size_t i = 0; i < out.size(); i++)
            EXPECT_NEAR(out[i], a.y[i], 2e-5) << a.type << " " << i;
    }
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

// Rows of x are replaced by those of updates.
TEST_P(SmallModels, UpdatesOfRowsAreComposed)
{
    SmallModel m;
    const int x = m.parameter("x", "f32", "?,2"), ids = m.parameter("ids", "i64", "?");
    const int updates = m.parameter("updates", "f32", "?,2");
    const int axis = m.constant<int64_t>("i64", "", {0});
    m.result(
        m.layer("ScatterUpdate", 3, "", {x, ids, updates, axis}, {{"f32", "?,2", "y"}}));
    Compiled c = compiled_of(m);
    Request r = make_request(c.get());
    std::vector<float> vx = {1, 2, 3, 4, 5, 6}, vu = {10, 20, 30, 40};
    std::vector<int64_t> vi = {2, 0};
    Tensor tx = wrap(vx.data(), 3), tu = wrap(vu.data(), 2), ti = tensor_of(I64, {2}, vi);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "x", tx.get()), OK);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "ids", ti.get()), OK);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "updates", tu.get()), OK);
    ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    EXPECT_EQ(numbers_of<float>(r.get(), "y"),
              std::vector<float>({30, 40, 3, 4, 10, 20}));
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

TEST(SmallModelsComposed, SayWhatIsWrongWithAttributesAndOperands)
{
    const struct {
        const char *type;
        int opset;
        const char *data;
        size_t n_in;
        const char *sentence;
    } cases[] = {
        {"Elu", 1, "", 1, "alpha is \"\": expected a number"},
        {"Elu", 1, "alpha=\"one\"", 1, "alpha is \"one\": expected a number"},
        {"Elu", 2, "alpha=\"1\"", 1, "expected opset 1"},
        {"Elu", 1, "alpha=\"1\"", 2, "has 2 input ports, expected 1"},
        {"Round", 5, "mode=\"up\"", 1, "mode is \"up\""},
        {"LogSoftmax", 5, "axis=\"1.5\"", 1, "axis is \"1.5\": expected a whole number"},
        {"LogSoftmax", 5, "axis=\"7\"", 1, "LogSoftmax"},
        {"Selu", 1, "", 1, "has 1 input ports, expected 3"},
        {"PReLU", 1, "", 2, "PReLU"},
        {"ScatterUpdate", 3, "", 4, "the axis must be a constant of 0"},
    };
    Core core = make_core();
    for (const auto &a : cases) {
        SmallModel m;
        std::vector<int> in = {m.parameter("x", "f32", "2,3,4")};
        while (in.size() < a.n_in)
            in.push_back(m.parameter("p" + std::to_string(in.size()), "f32", "7"));
        m.result(m.layer(a.type, a.opset, a.data, in, {{"f32", "2,3,4", "y"}}));
        const std::string xml = m.text();
        ov_model_t *model = nullptr;
        EXPECT_EQ(ov_core_read_model_from_memory_buffer(core.get(), xml.data(),
                                                        xml.size(), nullptr, &model),
                  GENERAL_ERROR)
            << a.type;
        EXPECT_NE(last_error().find(a.sentence), std::string::npos) << last_error();
        ov_model_free(model);
    }
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
