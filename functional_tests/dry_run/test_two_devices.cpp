/* SPDX-License-Identifier: Apache-2.0
 *
 * Two Intel GPUs in one process, run dry: a model on each, and requests on both in turn. This
 * program itself runs under tools/dry_run.
 */
#include "functional_tests/api/api_test.h"

namespace
{

Request
request_on(ov_core_t *core, ov_model_t *model, const char *device)
{
    Compiled compiled = compile(core, model, device);
    return compiled ? make_request(compiled.get()) : nullptr;
}

/* Returns a tensor [1,n] of i64 with value(k) at k. */
template <typename Value>
Tensor
row(std::vector<int64_t> &data, int64_t n, Value value)
{
    data.clear();
    for (int64_t k = 0; k < n; k++)
        data.push_back(value(k));
    int64_t dims[] = {1, n};
    ov_tensor_t *t = nullptr;
    EXPECT_EQ(ov_tensor_create_from_host_ptr(I64, {2, dims}, data.data(), &t), OK);
    return Tensor(t);
}

void
infer(ov_infer_request_t *r, int64_t past, int64_t n)
{
    std::vector<int64_t> ids, mask, positions;
    int32_t beam[] = {0};
    int64_t one[] = {1};
    ov_tensor_t *beams = nullptr;
    Tensor id = row(ids, n, [](int64_t k) { return 5 + k; });
    Tensor ones = row(mask, past + n, [](int64_t) { return 1; });
    Tensor position = row(positions, n, [past](int64_t k) { return past + k; });
    ASSERT_EQ(ov_tensor_create_from_host_ptr(I32, {1, one}, beam, &beams), OK);
    Tensor keep(beams);
    ASSERT_EQ(ov_infer_request_set_tensor(r, "input_ids", id.get()), OK) << last_error();
    ASSERT_EQ(ov_infer_request_set_tensor(r, "attention_mask", ones.get()), OK);
    ASSERT_EQ(ov_infer_request_set_tensor(r, "position_ids", position.get()), OK);
    ASSERT_EQ(ov_infer_request_set_tensor(r, "beam_idx", beams), OK);
    ASSERT_EQ(ov_infer_request_infer(r), OK) << last_error();
}

TEST(TwoDevices, RunInOneProcess)
{
    Core core = make_core();
    ov_model_t *read = nullptr;
    ASSERT_EQ(ov_core_read_model(core.get(),
                                 XM_MODELS_DIR
                                 "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml",
                                 nullptr, &read),
              OK)
        << last_error();
    Model model(read);
    Request first = request_on(core.get(), read, "GPU.0");
    Request second = request_on(core.get(), read, "GPU.1");
    ASSERT_TRUE(first && second);
    for (int64_t past = 0, n = 6; past < 10; past += n, n = 2) {
        infer(first.get(), past, n);
        infer(second.get(), past, n);
    }
}

/* One model split over both devices: the launches of each rank and their exchanges, in lockstep. */
class TwoDevicesShare : public testing::TestWithParam<const char *>
{
};

TEST_P(TwoDevicesShare, OneModel)
{
    Core core = make_core();
    ov_model_t *read = nullptr;
    ov_compiled_model_t *compiled = nullptr;
    ASSERT_EQ(ov_core_read_model(core.get(),
                                 XM_MODELS_DIR
                                 "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml",
                                 nullptr, &read),
              OK)
        << last_error();
    Model model(read);
    ASSERT_EQ(ov_core_compile_model(core.get(), read, "MESH:GPU.0,GPU.1", 2, &compiled,
                                    "MODEL_DISTRIBUTION_POLICY", GetParam()),
              OK)
        << last_error();
    Compiled keep(compiled);
    Request r = make_request(compiled);
    ASSERT_TRUE(r);
    for (int64_t past = 0, n = 6; past < 10; past += n, n = 2)
        infer(r.get(), past, n);
    char *devices = nullptr;
    EXPECT_EQ(ov_compiled_model_get_property(compiled, "EXECUTION_DEVICES", &devices),
              OK);
    EXPECT_STREQ(devices, "GPU.0,GPU.1");
    ov_free(devices);
}

INSTANTIATE_TEST_SUITE_P(Split, TwoDevicesShare,
                         testing::Values("TENSOR_PARALLEL", "EXPERT_PARALLEL",
                                         "PIPELINE_PARALLEL"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
