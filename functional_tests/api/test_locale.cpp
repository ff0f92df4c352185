/* SPDX-License-Identifier: Apache-2.0
 *
 * A host program that called setlocale(LC_ALL, "") for a user with a decimal comma: the logits
 * equal the reference's. Numbers pass through text on their way into kernels (build options),
 * into graphs and out of properties.
 */
#include <vector>

#include "functional_tests/api/api_test.h"
#include "functional_tests/common/comma_locale.h"
#include "functional_tests/common/files.h"

struct Golden {
    const char *model, *variant;
};

void
PrintTo(const Golden &g, std::ostream *out)
{
    *out << g.model;
}

class InACommaLocale : public testing::TestWithParam<Golden>
{
  protected:
    CommaLocale locale;
    std::string folder = std::string(XM_MODELS_DIR "/") + GetParam().model;

    std::vector<int64_t> prompt() const
    {
        const Json list(read_file(folder + "/golden/prompts.json"));
        for (int i = 0; list.at("/" + std::to_string(i)); i++) {
            const std::string at = "/" + std::to_string(i);
            const Ids ids = list.ids(at + "/ids");
            if (list.text(at + "/name") == "short")
                return std::vector<int64_t>(ids.begin(), ids.end());
        }
        return {};
    }
};

/* Sets an input of integers; models without this input (for example without beams) are left
 * alone. */
static void
feed(ov_infer_request_t *request, const char *name, ov_element_type_e type,
     std::vector<int64_t> dims, void *data)
{
    ov_tensor_t *t = nullptr;
    ASSERT_EQ(ov_tensor_create_from_host_ptr(type, {(int64_t)dims.size(), dims.data()},
                                             data, &t),
              OK);
    const Tensor tensor(t);
    ASSERT_EQ(ov_infer_request_set_tensor(request, name, t), OK) << last_error();
}

/* Returns the logits of the last position. */
static Floats
last_logits(ov_infer_request_t *request)
{
    ov_tensor_t *t = nullptr;
    ov_shape_t shape = {};
    void *data = nullptr;
    EXPECT_EQ(ov_infer_request_get_tensor(request, "logits", &t), OK) << last_error();
    const Tensor tensor(t);
    EXPECT_EQ(ov_tensor_get_shape(t, &shape), OK);
    EXPECT_EQ(ov_tensor_data(t, &data), OK);
    if (shape.rank != 3 || !data)
        return {};
    const float *last = (const float *)data + (shape.dims[1] - 1) * shape.dims[2];
    const Floats row(last, last + shape.dims[2]);
    ov_shape_free(&shape);
    return row;
}

TEST_P(InACommaLocale, LogitsAreTheReferences)
{
    REQUIRE_COMMA_LOCALE(locale);
    const std::string path = folder + "/ov/" + GetParam().variant + "/openvino_model.xml";
    const Core core = make_core();
    ov_compiled_model_t *compiled = nullptr;
    ASSERT_EQ(ov_core_compile_model_from_file(core.get(), path.c_str(), "GPU", 2,
                                              &compiled, "INFERENCE_PRECISION_HINT",
                                              "f32"),
              OK)
        << last_error();
    const Compiled model(compiled);
    const Request request = make_request(compiled);

    std::vector<int64_t> ids = prompt(), mask(ids.size(), 1), positions(ids.size());
    std::vector<int32_t> beam = {0};
    ASSERT_FALSE(ids.empty());
    for (size_t i = 0; i < positions.size(); i++)
        positions[i] = (int64_t)i;
    const std::vector<int64_t> dims = {1, (int64_t)ids.size()};
    feed(request.get(), "input_ids", I64, dims, ids.data());
    feed(request.get(), "attention_mask", I64, dims, mask.data());
    feed(request.get(), "position_ids", I64, dims, positions.data());
    feed(request.get(), "beam_idx", I32, {1}, beam.data());
    ASSERT_EQ(ov_infer_request_infer(request.get()), OK) << last_error();

    const Safetensors golden(folder + "/golden/openvino_" + GetParam().variant +
                             ".safetensors");
    EXPECT_LE(nmse(last_logits(request.get()), golden.get<float>("short.last_logits")),
              1e-5);
    EXPECT_TRUE(locale.is_on()) << "the host program's locale is its own";
}

INSTANTIATE_TEST_SUITE_P(Models, InACommaLocale,
                         testing::Values(Golden{"qwen3moe-tiny", "int4_asym_g64"},
                                         Golden{"gemma4-moe-tiny", "int4_asym_g32"},
                                         Golden{"gpt-oss-tiny", "int4_sym_g64"}),
                         [](const auto &info) {
                             std::string name = info.param.model;
                             for (char &c : name)
                                 c = c == '-' ? '_' : c;
                             return name;
                         });
