/* SPDX-License-Identifier: Apache-2.0
 *
 * Options that a model's file sets (rt_info/runtime_options): they rank below the user's and
 * above those of device rules. Tested for a chip whose rule sets caches of i8.
 */
#include "plugin/gpu/planner.h"
#include "plugin/readers/openvino_ir.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

using Options = std::vector<std::pair<const char *, const char *>>;

/* Compiles with these options instead of those in the model's file. */
Program
compile_with(const Options &of_model, const Options &of_user)
{
    const char xml[] = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_sym_g64/openvino_model.xml";
    xm_device_info info;
    xm_graph *g = nullptr;
    xm_program *p = nullptr;
    xm_config config;
    xm_error err = {};
    xm_config_init(&config);
    EXPECT_XM_OK(xm_device_imagine("tgl", &info, &err));
    EXPECT_XM_OK(xm_openvino_ir_read(xml, nullptr, &g, &err));
    g->n_properties = 0;
    for (const auto &[key, value] : of_model)
        EXPECT_XM_OK(xm_graph_add_property(
            g, (std::string("runtime_options/") + key).c_str(), value));
    for (const auto &[key, value] : of_user)
        EXPECT_XM_OK(xm_config_set(&config, key, value, &err));
    EXPECT_XM_OK(xm_planner_compile(&info, &config, g, &p, &err));
    return Program(p, xm_program_unref);
}

TEST(ModelOptions, AreBelowTheUsersAndAboveTheRules)
{
    const Options f16 = {{"KV_CACHE_PRECISION", "f16"}};
    const struct {
        Options of_model, of_user;
        xm_element want;
    } cases[] = {
        {{}, {}, XM_I8},
        {f16, {}, XM_F16},
        {f16, {{"KV_CACHE_PRECISION", "u4"}}, XM_U4},
        {f16, {{"KEY_CACHE_PRECISION", "f32"}}, XM_I8},
        {f16, {{"INFERENCE_PRECISION_HINT", "f32"}}, XM_F32},
        {f16, {{"EXECUTION_MODE_HINT", "ACCURACY"}}, XM_F32},
        {{{"KV_CACHE_PRECISION", "f8e4m3"}}, {}, XM_I8},
    };
    for (const auto &k : cases) {
        const Program p = compile_with(k.of_model, k.of_user);
        ASSERT_TRUE(p);
        EXPECT_EQ(p->config.kv_cache_precision, k.want)
            << (k.of_user.empty() ? "" : k.of_user[0].first);
    }
}

/* The file's value ranks below the user's, and below the accuracy hint. */
TEST(ModelOptions, SayWhetherPromptsAreQuantised)
{
    const Options file = {{"DYNAMIC_QUANTIZATION_GROUP_SIZE", "128"}};
    const struct {
        Options of_user;
        uint64_t want;
    } cases[] = {{{}, 128},
                 {{{"DYNAMIC_QUANTIZATION_GROUP_SIZE", "0"}}, 0},
                 {{{"EXECUTION_MODE_HINT", "ACCURACY"}}, 0}};
    for (const auto &k : cases) {
        const Program p = compile_with(file, k.of_user);
        ASSERT_TRUE(p);
        EXPECT_EQ(p->config.dynamic_quantization_group_size, k.want);
    }
}

TEST(ModelOptions, OthersAreGivenBackOnly)
{
    const Program p = compile_with({{"ACTIVATIONS_SCALE_FACTOR", "8.0"},
                                    {"DYNAMIC_QUANTIZATION_GROUP_SIZE", "32"},
                                    {"XM_UBATCH", "16"}},
                                   {});
    ASSERT_TRUE(p);
    EXPECT_EQ(p->config.activations_scale, 8.0f);
    EXPECT_EQ(p->config.ubatch, 512u) << "not an option of files";
}

} // namespace
