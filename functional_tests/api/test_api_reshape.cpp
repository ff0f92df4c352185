/* SPDX-License-Identifier: Apache-2.0
 *
 * Changing the shapes of a model's inputs: shapes of ports, runs, and contradictions.
 */
#include "functional_tests/api/api_test.h"

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace
{

using Dims = std::vector<ov_dimension_t>;

ov_partial_shape_t
shape_of(Dims &d)
{
    const int64_t rank = static_cast<int64_t>(d.size());
    return {{rank, rank}, d.data()};
}

/* Returns the port's shape as text: "{?,1..8}". */
std::string
shape_text(const ov_output_const_port_t *port)
{
    ov_partial_shape_t s;
    EXPECT_EQ(ov_port_get_partial_shape(port, &s), OK);
    const char *text = ov_partial_shape_to_string(s);
    const std::string out = text;
    ov_free(text);
    ov_partial_shape_free(&s);
    return out;
}

std::string
input(const ov_model_t *m, size_t i)
{
    ov_output_const_port_t *p = nullptr;
    EXPECT_EQ(ov_model_const_input_by_index(m, i, &p), OK);
    const ConstPort port(p);
    return shape_text(p);
}

std::string
output(const ov_model_t *m)
{
    ov_output_const_port_t *p = nullptr;
    EXPECT_EQ(ov_model_const_output_by_index(m, 0, &p), OK);
    const ConstPort port(p);
    return shape_text(p);
}

ov_status_e
reshape(const ov_model_t *m, const char *name, Dims d)
{
    return ov_model_reshape_input_by_name(m, name, shape_of(d));
}

/* The model y = a + b of [?,2]. */
struct Reshape : testing::Test {
    Core core = make_core();
    Model model = read_text(core.get(), add_model());
    float numbers[16] = {1, 2, 3, 4, 5, 6};

    ov_status_e set(const Request &r, const char *name, int64_t rows)
    {
        const Tensor t = wrap(numbers, rows);
        return ov_infer_request_set_tensor(r.get(), name, t.get());
    }
};

TEST_F(Reshape, ANumberGoesThroughTheModel)
{
    EXPECT_EQ(output(model.get()), "{?,2}");
    ASSERT_EQ(reshape(model.get(), "a", {{3, 3}, {2, 2}}), OK) << last_error();
    ASSERT_EQ(reshape(model.get(), "b", {{3, 3}, {2, 2}}), OK) << last_error();
    EXPECT_EQ(input(model.get(), 0), "{3,2}");
    EXPECT_EQ(output(model.get()), "{3,2}");
    EXPECT_FALSE(ov_model_is_dynamic(model.get()));
    const Compiled compiled = compile(core.get(), model.get());
    const Request r = make_request(compiled.get());
    EXPECT_EQ(set(r, "a", 2), GENERAL_ERROR);
    EXPECT_EQ(last_error(), "input 'a': expected f32[3,2], found f32[2,2]");
    ASSERT_EQ(set(r, "a", 3), OK) << last_error();
    ASSERT_EQ(set(r, "b", 3), OK) << last_error();
    ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
    ov_tensor_t *y = nullptr;
    ASSERT_EQ(ov_infer_request_get_output_tensor(r.get(), &y), OK);
    const Tensor held(y);
    void *data = nullptr;
    ASSERT_EQ(ov_tensor_data(y, &data), OK);
    EXPECT_EQ(static_cast<float *>(data)[5], 12);
}

/* A compiled model keeps its shapes. A fixed dimension may be changed again, or become dynamic
 * again. */
TEST_F(Reshape, CanBeRepeatedAndTakenBack)
{
    for (const char *name : {"a", "b"})
        ASSERT_EQ(reshape(model.get(), name, {{3, 3}, {2, 2}}), OK) << last_error();
    const Compiled before = compile(core.get(), model.get());
    Dims five = {{5, 5}, {2, 2}}, any = {{-1, -1}, {2, 2}};
    const char *names[] = {"a", "b"};
    ov_partial_shape_t shapes[] = {shape_of(five), shape_of(five)};
    ASSERT_EQ(ov_model_reshape(model.get(), names, shapes, 2), OK) << last_error();
    EXPECT_EQ(output(model.get()), "{5,2}");
    const size_t indexes[] = {0, 1};
    shapes[0] = shapes[1] = shape_of(any);
    ASSERT_EQ(ov_model_reshape_by_port_indexes(model.get(), indexes, shapes, 2), OK)
        << last_error();
    EXPECT_EQ(input(model.get(), 1), "{?,2}");
    EXPECT_EQ(output(model.get()), "{?,2}");
    const Request fixed = make_request(before.get());
    EXPECT_EQ(set(fixed, "a", 5), GENERAL_ERROR);
    EXPECT_EQ(set(fixed, "a", 3), OK);
    const Compiled after = compile(core.get(), model.get());
    const Request free = make_request(after.get());
    for (int64_t rows : {1, 3, 7}) {
        ASSERT_EQ(set(free, "a", rows), OK);
        ASSERT_EQ(set(free, "b", rows), OK);
        ASSERT_EQ(ov_infer_request_infer(free.get()), OK) << last_error();
    }
}

TEST_F(Reshape, ARangeIsKeptToByTensors)
{
    ASSERT_EQ(reshape(model.get(), "a", {{1, 4}, {2, 2}}), OK) << last_error();
    EXPECT_EQ(input(model.get(), 0), "{1..4,2}");
    EXPECT_EQ(input(model.get(), 1), "{?,2}");
    const Compiled compiled = compile(core.get(), model.get());
    const Request r = make_request(compiled.get());
    EXPECT_EQ(set(r, "a", 4), OK);
    EXPECT_EQ(set(r, "a", 5), GENERAL_ERROR);
    EXPECT_EQ(last_error(), "input 'a': expected f32[1..4,2], found f32[5,2]");
}

TEST_F(Reshape, OfOnePortOrTheFirstInput)
{
    ov_output_port_t *p = nullptr;
    ASSERT_EQ(ov_model_input_by_name(model.get(), "b", &p), OK);
    const Port port(p);
    const ov_output_port_t *ports[] = {p};
    Dims seven = {{7, 7}, {2, 2}};
    ov_partial_shape_t shape = shape_of(seven);
    ASSERT_EQ(ov_model_reshape_by_ports(model.get(), ports, &shape, 1), OK)
        << last_error();
    EXPECT_EQ(input(model.get(), 1), "{7,2}");
    Dims three = {{3, 3}, {2, 2}};
    EXPECT_EQ(ov_model_reshape_single_input(model.get(), shape_of(three)), GENERAL_ERROR);
    EXPECT_EQ(input(model.get(), 0), "{?,2}");
    EXPECT_EQ(ov_model_reshape_single_input(model.get(), shape), OK) << last_error();
    EXPECT_EQ(input(model.get(), 0), "{7,2}");
    ASSERT_EQ(ov_model_output(model.get(), &p), OK);
    const Port result(p);
    ports[0] = p;
    EXPECT_EQ(ov_model_reshape_by_ports(model.get(), ports, &shape, 1), GENERAL_ERROR);
}

TEST_F(Reshape, AContradictionNamesTheNodeAndChangesNothing)
{
    ASSERT_EQ(reshape(model.get(), "a", {{3, 3}, {2, 2}}), OK) << last_error();
    EXPECT_EQ(reshape(model.get(), "b", {{4, 4}, {2, 2}}), GENERAL_ERROR);
    EXPECT_NE(last_error().find("add"), std::string::npos) << last_error();
    EXPECT_EQ(input(model.get(), 0), "{3,2}");
    EXPECT_EQ(input(model.get(), 1), "{?,2}");
    EXPECT_EQ(output(model.get()), "{3,2}");
    EXPECT_EQ(reshape(model.get(), "b", {{3, 3}, {5, 5}}), GENERAL_ERROR);
    EXPECT_EQ(input(model.get(), 1), "{?,2}");
}

TEST_F(Reshape, RefusesWhatIsNoShape)
{
    const struct {
        Dims dims;
        const char *sentence;
    } cases[] = {
        {{{3, 2}, {2, 2}},
         "the shape for input 'a' has a dimension that is not a valid range"},
        {{{-2, 2}, {2, 2}},
         "the shape for input 'a' has a dimension that is not a valid range"},
        {{{1, -2}, {2, 2}},
         "the shape for input 'a' has a dimension that is not a valid range"},
        {Dims(9, {1, 1}), "the shape for input 'a' has more than 8 dimensions"},
    };
    for (const auto &c : cases) {
        EXPECT_EQ(reshape(model.get(), "a", c.dims), GENERAL_ERROR);
        EXPECT_EQ(last_error(), c.sentence);
    }
    EXPECT_EQ(ov_model_reshape_single_input(model.get(), {{-1, -1}, nullptr}),
              GENERAL_ERROR);
    EXPECT_EQ(ov_model_reshape_single_input(model.get(), {{2, 2}, nullptr}),
              INVALID_C_PARAM);
    EXPECT_EQ(reshape(model.get(), "nope", {{1, 1}}), GENERAL_ERROR);
    EXPECT_EQ(last_error(), "Port for tensor name nope was not found");
    Dims one = {{1, 1}, {2, 2}};
    const ov_partial_shape_t s = shape_of(one);
    const size_t beyond = 2;
    EXPECT_EQ(ov_model_reshape_by_port_indexes(model.get(), &beyond, &s, 1),
              UNKNOW_EXCEPTION);
    EXPECT_EQ(ov_model_reshape_by_port_indexes(model.get(), &beyond, &s, SIZE_MAX),
              GENERAL_ERROR);
    EXPECT_EQ(ov_model_reshape_by_port_indexes(model.get(), &beyond, &s, 0),
              INVALID_C_PARAM);
    EXPECT_EQ(ov_model_reshape(nullptr, nullptr, nullptr, 1), INVALID_C_PARAM);
    EXPECT_EQ(input(model.get(), 0), "{?,2}");
}

Model
read_language_model(const ov_core_t *core)
{
    ov_model_t *read = nullptr;
    EXPECT_EQ(ov_core_read_model(core,
                                 XM_MODELS_DIR
                                 "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml",
                                 nullptr, &read),
              OK)
        << last_error();
    return Model(read);
}

/* The graph keeps its symbols, because one program runs all lengths; the ports show the fixed
 * dimensions. */
TEST(ReshapeOfALanguageModel, BindsItsLengths)
{
    const Core core = make_core();
    const Model model = read_language_model(core.get());
    ov_model_t *read = model.get();
    ASSERT_NE(read, nullptr);
    for (const char *name : {"input_ids", "attention_mask", "position_ids"})
        ASSERT_EQ(reshape(read, name, {{1, 1}, {8, 8}}), OK) << last_error();
    EXPECT_EQ(output(read).substr(0, 5), "{1,8,");
    EXPECT_EQ(reshape(read, "beam_idx", {{2, 2}}), GENERAL_ERROR);
    EXPECT_NE(last_error().find("the shapes of other inputs require 1"),
              std::string::npos)
        << last_error();
    const Compiled compiled = compile(core.get(), read, "GPU");
    const Request r = make_request(compiled.get());
    /* inputs with fully known shapes have tensors to be filled in place */
    for (const char *name : {"input_ids", "attention_mask", "position_ids"}) {
        ov_tensor_t *t = nullptr;
        void *data = nullptr;
        ASSERT_EQ(ov_infer_request_get_tensor(r.get(), name, &t), OK);
        const Tensor held(t);
        ASSERT_EQ(ov_tensor_data(t, &data), OK);
        for (int64_t i = 0; i < 8; i++)
            static_cast<int64_t *>(data)[i] = strcmp(name, "attention_mask") == 0 ? 1 : i;
    }
    const int64_t one = 1;
    int32_t beam = 0;
    ov_tensor_t *t = nullptr;
    ASSERT_EQ(
        ov_tensor_create_from_host_ptr(I32, {1, const_cast<int64_t *>(&one)}, &beam, &t),
        OK);
    const Tensor beams(t);
    ASSERT_EQ(ov_infer_request_set_tensor(r.get(), "beam_idx", t), OK) << last_error();
    ASSERT_EQ(ov_infer_request_infer(r.get()), OK) << last_error();
}

/* Symbols would accept any rank. */
TEST(ReshapeOfALanguageModel, RefusesARankThatItsOperationsDoNotTake)
{
    const Core core = make_core();
    const Model model = read_language_model(core.get());
    ov_model_t *read = model.get();
    ASSERT_NE(read, nullptr);
    const std::string before = output(read);
    for (const Dims &dims :
         {Dims{{1, 1}, {8, 8}, {2, 2}}, {{1, 1}, {8, 8}, {2, 2}, {3, 3}}}) {
        EXPECT_EQ(reshape(read, "input_ids", dims), GENERAL_ERROR);
        EXPECT_NE(last_error().find("layers.0.self_attn/aten::view/Reshape"),
                  std::string::npos)
            << last_error();
        EXPECT_NE(last_error().find("f32[1,8,2,"), std::string::npos) << last_error();
        EXPECT_EQ(input(read, 0), "{?,?}");
        EXPECT_EQ(output(read), before);
    }
    ASSERT_EQ(reshape(read, "input_ids", {{1, 1}, {8, 8}}), OK) << last_error();
}

TEST(ReshapeOfALanguageModel, InfersEveryModelAnew)
{
    const Core core = make_core();
    for (const auto &entry :
         std::filesystem::recursive_directory_iterator(XM_MODELS_DIR)) {
        if (entry.path().filename() != "openvino_model.xml")
            continue;
        SCOPED_TRACE(entry.path());
        ov_model_t *read = nullptr;
        ASSERT_EQ(ov_core_read_model(core.get(), entry.path().c_str(), nullptr, &read),
                  OK);
        const Model model(read);
        ASSERT_EQ(reshape(read, "input_ids", {{2, 2}, {5, 5}}), OK) << last_error();
        EXPECT_EQ(input(read, 0), "{2,5}");
        EXPECT_EQ(output(read).substr(0, 5), "{2,5,");
        ASSERT_EQ(reshape(read, "input_ids", {{-1, -1}, {-1, -1}}), OK) << last_error();
        EXPECT_EQ(output(read).substr(0, 5), "{?,?,");
    }
}

/* The ranges of dimensions in the IR. */
TEST(Bounds, OfAFileAreShown)
{
    const Core core = make_core();
    std::string xml = add_model();
    const size_t at = xml.find("shape=\"?,2\"");
    ASSERT_NE(at, std::string::npos);
    xml.replace(at, 11, "shape=\"1..8,2\"");
    const Model model = read_text(core.get(), xml);
    EXPECT_EQ(input(model.get(), 0), "{1..8,2}");
    const Compiled compiled = compile(core.get(), model.get());
    ov_output_const_port_t *p = nullptr;
    ASSERT_EQ(ov_compiled_model_input_by_name(compiled.get(), "a", &p), OK);
    const ConstPort port(p);
    EXPECT_EQ(shape_text(p), "{1..8,2}");
}

} // namespace
