/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of devices and compiled models: listed ones can be read, and set to the value that
 * was read; values that programs compare; refusals.
 */
#include "functional_tests/api/api_test.h"

#include <algorithm>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

namespace
{

std::string
get(ov_core_t *core, const char *device, const std::string &key)
{
    char *value = nullptr;
    EXPECT_EQ(ov_core_get_property(core, device, key.c_str(), &value), OK)
        << device << " " << key << ": " << last_error();
    const std::string text = value ? value : "";
    ov_free(value);
    return text;
}

std::string
get(ov_compiled_model_t *compiled, const std::string &key)
{
    char *value = nullptr;
    EXPECT_EQ(ov_compiled_model_get_property(compiled, key.c_str(), &value), OK)
        << key << ": " << last_error();
    const std::string text = value ? value : "";
    ov_free(value);
    return text;
}

ov_status_e
set(ov_core_t *core, const char *device, const std::string &key, const std::string &value)
{
    return ov_core_set_property(core, device, key.c_str(), value.c_str());
}

std::vector<std::string>
words(const std::string &text)
{
    std::istringstream in(text);
    return {std::istream_iterator<std::string>(in), {}};
}

class OfADevice : public testing::TestWithParam<const char *>
{
  protected:
    void SetUp() override
    {
        char *name = nullptr;
        if (ov_core_get_property(core.get(), GetParam(), "FULL_DEVICE_NAME", &name) != OK)
            GTEST_SKIP() << "no device " << GetParam();
        ov_free(name);
    }
    Compiled compile_adder(const std::vector<ov_property_t> &properties = {})
    {
        Model model = read_text(core.get(), add_model(true));
        ov_compiled_model_t *c = nullptr;
        EXPECT_EQ(ov_core_compile_model_props(core.get(), model.get(), GetParam(),
                                              properties.size(), properties.data(), &c),
                  OK)
            << last_error();
        return Compiled(c);
    }
    Core core = make_core();
};

INSTANTIATE_TEST_SUITE_P(Devices, OfADevice, testing::Values("GPU", "CPU"),
                         [](const auto &info) { return info.param; });

/* Whether the value changes from one read to the next. */
bool
is_moving(const std::string &key)
{
    return key == "AVAILABLE_DEVICE_MEM_SIZE" || key == "GPU_MEMORY_STATISTICS";
}

TEST_P(OfADevice, EveryListedKeyIsReadAndThoseThatAreNotForReadingOnlyAreSet)
{
    auto keys = words(get(core.get(), GetParam(), "SUPPORTED_PROPERTIES"));
    const auto accepted = words(get(core.get(), GetParam(), "XM_ACCEPTED_PROPERTIES"));
    keys.insert(keys.end(), accepted.begin(), accepted.end());
    size_t n_set = 0;
    for (const std::string &key : keys) {
        EXPECT_EQ(std::count(keys.begin(), keys.end(), key), 1) << key;
        const std::string value = get(core.get(), GetParam(), key);
        if (set(core.get(), GetParam(), key, value) == OK)
            n_set++;
        else
            EXPECT_EQ(last_error(), "property " + key + " of the " + GetParam() +
                                        " plugin can only be read");
        if (!is_moving(key)) {
            EXPECT_EQ(get(core.get(), GetParam(), key), value) << key;
        }
    }
    EXPECT_GT(n_set, 40u);
}

/* Keys of OpenVINO's GPU plugin; keys that can only be written are not listed. */
TEST_P(OfADevice, KnowsTheKeysOfOpenVinosPlugin)
{
    for (const char *key : {"SUPPORTED_PROPERTIES",
                            "AVAILABLE_DEVICES",
                            "RANGE_FOR_ASYNC_INFER_REQUESTS",
                            "RANGE_FOR_STREAMS",
                            "OPTIMAL_BATCH_SIZE",
                            "MAX_BATCH_SIZE",
                            "DEVICE_ARCHITECTURE",
                            "FULL_DEVICE_NAME",
                            "DEVICE_UUID",
                            "DEVICE_LUID",
                            "DEVICE_TYPE",
                            "DEVICE_GOPS",
                            "OPTIMIZATION_CAPABILITIES",
                            "DEVICE_PCI_INFO",
                            "GPU_DEVICE_ID",
                            "GPU_DEVICE_TOTAL_MEM_SIZE",
                            "GPU_DEVICE_MAX_ALLOC_MEM_SIZE",
                            "GPU_UARCH_VERSION",
                            "GPU_CACHELINE_SIZE",
                            "GPU_EXECUTION_UNITS_COUNT",
                            "GPU_MEMORY_STATISTICS",
                            "COMPATIBILITY_CHECK",
                            "GPU_DRIVER_VERSION",
                            "AVAILABLE_DEVICE_MEM_SIZE"})
        EXPECT_FALSE(get(core.get(), GetParam(), key).empty()) << key;
    const struct {
        const char *key, *value; /* value NULL: any */
    } settable[] = {{"PERF_COUNT", "NO"},
                    {"MODEL_PRIORITY", "MEDIUM"},
                    {"GPU_HOST_TASK_PRIORITY", "MEDIUM"},
                    {"GPU_QUEUE_PRIORITY", "MEDIUM"},
                    {"GPU_QUEUE_THROTTLE", "MEDIUM"},
                    {"GPU_ENABLE_SDPA_OPTIMIZATION", "YES"},
                    {"GPU_ENABLE_LORA_OPERATION", "YES"},
                    {"GPU_ENABLE_LARGE_ALLOCATIONS", "NO"},
                    {"GPU_ENABLE_LOOP_UNROLLING", "YES"},
                    {"GPU_DISABLE_WINOGRAD_CONVOLUTION", "NO"},
                    {"CACHE_DIR", ""},
                    {"CACHE_MODE", "optimize_speed"},
                    {"PERFORMANCE_HINT", "LATENCY"},
                    {"EXECUTION_MODE_HINT", "PERFORMANCE"},
                    {"NUM_STREAMS", "1"},
                    {"PERFORMANCE_HINT_NUM_REQUESTS", "0"},
                    {"INFERENCE_PRECISION_HINT", "f16"},
                    {"ENABLE_CPU_PINNING", "NO"},
                    {"ENABLE_CPU_RESERVATION", "NO"},
                    {"DEVICE_ID", "0"},
                    {"DYNAMIC_QUANTIZATION_GROUP_SIZE", nullptr},
                    {"ACTIVATIONS_SCALE_FACTOR", "-1"},
                    {"WEIGHTS_PATH", ""},
                    {"KV_CACHE_PRECISION", "dynamic"},
                    {"OFFLOAD_RATIO", "0"},
                    {"CONFIG_FILE", ""},
                    {"COMPILATION_NUM_THREADS", nullptr},
                    {"KEY_CACHE_GROUP_SIZE", nullptr},
                    {"VALUE_CACHE_GROUP_SIZE", nullptr},
                    {"MODEL_DISTRIBUTION_POLICY", ""},
                    {"ALLOW_AUTO_BATCHING", "YES"},
                    {"AUTO_BATCH_TIMEOUT", "1000"},
                    {"GPU_ENABLE_KERNELS_REUSE", "NO"},
                    {"MULTI_DEVICE_PRIORITIES", ""},
                    {ov_property_key_intel_auto_device_bind_buffer, "NO"},
                    {ov_property_key_intel_auto_enable_startup_fallback, "YES"},
                    {ov_property_key_intel_auto_enable_runtime_fallback, "YES"},
                    {"SCHEDULE_POLICY", "DEVICE_PRIORITY"},
                    {"AFFINITY", nullptr}};
    for (const auto &s : settable) {
        const std::string value = get(core.get(), GetParam(), s.key);
        if (s.value) {
            EXPECT_EQ(value, s.value) << s.key;
        }
        EXPECT_EQ(set(core.get(), GetParam(), s.key, value), OK) << s.key << last_error();
    }
}

/* Values that OpenVINO's plugins accept, and the values read afterwards. */
TEST_P(OfADevice, TakesTheValuesOfOpenVinosPlugins)
{
    const struct {
        const char *key, *value, *want;
    } cases[] = {
        {"INFERENCE_PRECISION_HINT", "bf16", "f32"},
        {"INFERENCE_PRECISION_HINT", "undefined", "f16"},
        {"INFERENCE_PRECISION_HINT", "dynamic", "f16"},
        {"KV_CACHE_PRECISION", "bf16", "f16"},
        {"KEY_CACHE_PRECISION", "i4", "u4"},
        {"ENABLE_WEIGHTLESS", "YES", "YES"},
        {"CPU_DENORMALS_OPTIMIZATION", "YES", "YES"},
        {"CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE", "0.5", "0.5"},
        {"ENABLE_TENSOR_PARALLEL", "YES", "YES"},
        {"MODEL_DISTRIBUTION_POLICY", "TENSOR_PARALLEL", "TENSOR_PARALLEL"},
        {"TBB_PARTITIONER", "STATIC", "STATIC"},
        {"FORCE_TBB_TERMINATE", "YES", "YES"},
        {"LOG_LEVEL", "LOG_NONE", "LOG_NONE"},
        {"NUM_STREAMS", "0", "0"},
        {"DYNAMIC_QUANTIZATION_GROUP_SIZE", "-1", "18446744073709551615"},
        {"KEY_CACHE_GROUP_SIZE", "-1", "18446744073709551615"},
        {"DEVICE_ID", "", "0"},
        {"OFFLOAD_RATIO", "AUTO", "0"},
        {"OFFLOAD_RATIO", "-1", "0"},
        {"CPU_RUNTIME_CACHE_CAPACITY", "100", "100"},
        {"LP_TRANSFORMS_MODE", "NO", "NO"},
        {"SNIPPETS_MODE", "IGNORE_CALLBACK", "IGNORE_CALLBACK"},
        {"EXCLUSIVE_ASYNC_REQUESTS", "YES", "YES"},
        {"LOW_POWER_DEVICE", "NPU", "NPU"},
        {"DEVICES_UTILIZATION_THRESHOLD", "{CPU:70}", "{CPU:70}"},
        {"PERF_CURVE_TABLE", "{}", "{}"},
    };
    for (const auto &k : cases) {
        SCOPED_TRACE(std::string(k.key) + " " + k.value);
        EXPECT_EQ(set(core.get(), GetParam(), k.key, k.value), OK) << last_error();
        EXPECT_EQ(get(core.get(), GetParam(), k.key), k.want);
    }
}

/* Reads give what runs: kernels have f32 and f16, and the cache is f16. */
TEST_P(OfADevice, ModelsInBf16ReadAsWhatRuns)
{
    const char path[] =
        XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml";
    const struct {
        const char *key, *inference, *cache;
    } cases[] = {{"INFERENCE_PRECISION_HINT", "f32", "f32"},
                 {"KV_CACHE_PRECISION", "f16", "f16"}};
    for (const auto &k : cases) {
        SCOPED_TRACE(k.key);
        ov_compiled_model_t *c = nullptr;
        ASSERT_EQ(ov_core_compile_model_from_file(core.get(), path, GetParam(), 2, &c,
                                                  k.key, "bf16"),
                  OK)
            << last_error();
        Compiled compiled(c);
        EXPECT_EQ(get(c, "INFERENCE_PRECISION_HINT"), k.inference);
        EXPECT_EQ(get(c, "KEY_CACHE_PRECISION"), k.cache);
        EXPECT_EQ(get(c, "VALUE_CACHE_PRECISION"), k.cache);
    }
}

TEST_P(OfADevice, RefusalsNameTheValuesThatAreTaken)
{
    const struct {
        const char *key, *value, *expected;
    } cases[] = {
        {"INFERENCE_PRECISION_HINT", "i8",
         "expected one of dynamic, undefined, f16, f32, bf16, FP16, FP32, BF16"},
        {"ENABLE_WEIGHTLESS", "some",
         "expected one of YES, NO, TRUE, FALSE, ON, OFF, 1, 0"},
        {"MODEL_DISTRIBUTION_POLICY", "ONE",
         "expected one of TENSOR_PARALLEL, PIPELINE_PARALLEL, EXPERT_PARALLEL"},
        {"CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE", "2", "expected a number from 0 to 1"},
        {"OFFLOAD_RATIO", "auto", "expected a whole number up to 4294967295, AUTO, -1"},
    };
    for (const auto &k : cases) {
        EXPECT_EQ(set(core.get(), GetParam(), k.key, k.value), GENERAL_ERROR) << k.key;
        EXPECT_EQ(last_error(),
                  std::string(k.key) + " is '" + k.value + "': " + k.expected);
    }
}

TEST_P(OfADevice, ValuesHaveTheFormsThatProgramsRead)
{
    auto value = [&](const char *key) { return get(core.get(), GetParam(), key); };
    EXPECT_EQ(value("RANGE_FOR_ASYNC_INFER_REQUESTS"), "1 2 1");
    EXPECT_EQ(value("RANGE_FOR_STREAMS"), "1 2");
    EXPECT_EQ(value("OPTIMAL_BATCH_SIZE"), "1");
    EXPECT_EQ(value("MAX_BATCH_SIZE"), "1");
    EXPECT_EQ(value("EXECUTION_DEVICES"),
              get(compile_adder().get(), "EXECUTION_DEVICES"));
    const std::regex gops("\\{f16:[0-9.e+]+,f32:[0-9.e+]+,i8:[0-9.e+]+,u8:[0-9.e+]+\\}");
    EXPECT_TRUE(std::regex_match(value("DEVICE_GOPS"), gops)) << value("DEVICE_GOPS");
    const auto capabilities = words(value("OPTIMIZATION_CAPABILITIES"));
    ASSERT_GE(capabilities.size(), 3u);
    EXPECT_EQ(capabilities.front(), "FP32");
    EXPECT_EQ(capabilities.back(), "EXPORT_IMPORT");
    EXPECT_EQ(value("COMPILATION_NUM_THREADS"),
              std::to_string(std::thread::hardware_concurrency()));
    EXPECT_GT(std::stoull(value("AVAILABLE_DEVICE_MEM_SIZE")), 1u << 20);
    EXPECT_GT(std::stoull(value("GPU_DEVICE_TOTAL_MEM_SIZE")), 1u << 20);
    EXPECT_EQ(set(core.get(), GetParam(), "COMPILATION_NUM_THREADS", "3"), OK);
    EXPECT_EQ(value("COMPILATION_NUM_THREADS"), "3");
}

TEST_P(OfADevice, UnknownKeysAreRefusedInOpenVinosWords)
{
    const std::string sentence =
        std::string("Unsupported property NO_SUCH_KEY by ") + GetParam() + " plugin";
    char *value = nullptr;
    EXPECT_EQ(ov_core_get_property(core.get(), GetParam(), "NO_SUCH_KEY", &value),
              GENERAL_ERROR);
    EXPECT_EQ(last_error(), sentence);
    EXPECT_EQ(value, nullptr);
    EXPECT_EQ(set(core.get(), GetParam(), "NO_SUCH_KEY", "1"), GENERAL_ERROR);
    EXPECT_EQ(last_error(), sentence);
    Model model = read_text(core.get(), add_model(true));
    ov_compiled_model_t *c = nullptr;
    EXPECT_EQ(ov_core_compile_model(core.get(), model.get(), GetParam(), 2, &c,
                                    "NO_SUCH_KEY", "1"),
              GENERAL_ERROR);
    EXPECT_EQ(last_error(), sentence);
    Compiled compiled = compile_adder();
    EXPECT_EQ(ov_compiled_model_get_property(compiled.get(), "NO_SUCH_KEY", &value),
              GENERAL_ERROR);
    EXPECT_EQ(last_error(), sentence);
}

TEST_P(OfADevice, BadValuesAreRefusedAndTheOldOnesStay)
{
    const struct {
        const char *key, *value;
    } bad[] = {{"PERF_COUNT", "maybe"},
               {"INFERENCE_PRECISION_HINT", "i4"},
               {"EXECUTION_MODE_HINT", "accuracy"},
               {"PERFORMANCE_HINT", "latency"},
               {"NUM_STREAMS", "-3"},
               {"COMPILATION_NUM_THREADS", "many"},
               {"GPU_QUEUE_PRIORITY", "URGENT"},
               {"GPU_ENABLE_LORA_OPERATION", "2"},
               {"KV_CACHE_PRECISION", "i2"},
               {"KV_CACHE_PRECISION", "u3"},
               {"VALUE_CACHE_PRECISION", "u3"},
               {"AFFINITY", "SOME"},
               {"CONFIG_FILE", "layers.xml"}};
    for (const auto &b : bad) {
        const std::string before = get(core.get(), GetParam(), b.key);
        EXPECT_EQ(set(core.get(), GetParam(), b.key, b.value), GENERAL_ERROR) << b.key;
        EXPECT_EQ(last_error().find(b.key), 0u) << last_error();
        EXPECT_NE(last_error().find(b.value), std::string::npos) << last_error();
        EXPECT_EQ(get(core.get(), GetParam(), b.key), before);
    }
}

TEST_P(OfADevice, BooleansHaveSeveralSpellings)
{
    for (const char *yes : {"YES", "TRUE", "true", "True", "yes", "1"}) {
        EXPECT_EQ(set(core.get(), GetParam(), "PERF_COUNT", "NO"), OK);
        EXPECT_EQ(set(core.get(), GetParam(), "PERF_COUNT", yes), OK) << yes;
        EXPECT_EQ(get(core.get(), GetParam(), "PERF_COUNT"), "YES");
    }
}

TEST_P(OfADevice, CompiledModelsTellWhatTheyNeed)
{
    Compiled compiled = compile_adder();
    const std::string requirements = get(compiled.get(), "RUNTIME_REQUIREMENTS");
    EXPECT_NE(requirements.find("xemoe "), std::string::npos);
    EXPECT_EQ(requirements.find('\n'), std::string::npos);
    EXPECT_EQ(get(core.get(), GetParam(), "COMPATIBILITY_CHECK"), "NOT_APPLICABLE");
    EXPECT_EQ(set(core.get(), GetParam(), "RUNTIME_REQUIREMENTS", requirements), OK);
    EXPECT_EQ(get(core.get(), GetParam(), "COMPATIBILITY_CHECK"), "SUPPORTED");
    EXPECT_EQ(set(core.get(), GetParam(), "RUNTIME_REQUIREMENTS", requirements + "x"),
              OK);
    EXPECT_EQ(get(core.get(), GetParam(), "COMPATIBILITY_CHECK"), "UNSUPPORTED");
    EXPECT_EQ(get(compiled.get(), "RUNTIME_REQUIREMENTS"), requirements);
}

TEST_P(OfADevice, CompiledModelsKeepTheirOptionsAndTakeNoOthers)
{
    Compiled compiled =
        compile_adder({{"GPU_QUEUE_PRIORITY", "HIGH"}, {"PERF_COUNT", "YES"}});
    EXPECT_EQ(get(compiled.get(), "GPU_QUEUE_PRIORITY"), "HIGH");
    EXPECT_EQ(get(compiled.get(), "PERF_COUNT"), "YES");
    EXPECT_EQ(get(core.get(), GetParam(), "PERF_COUNT"), "NO");
    auto keys = words(get(compiled.get(), "SUPPORTED_PROPERTIES"));
    const auto accepted = words(get(compiled.get(), "XM_ACCEPTED_PROPERTIES"));
    keys.insert(keys.end(), accepted.begin(), accepted.end());
    for (const std::string &key : keys) {
        EXPECT_EQ(std::count(keys.begin(), keys.end(), key), 1) << key;
        const std::string value = get(compiled.get(), key);
        EXPECT_EQ(
            ov_compiled_model_set_property(compiled.get(), key.c_str(), value.c_str()),
            GENERAL_ERROR)
            << key;
    }
}

TEST_P(OfADevice, PrioritiesAreAListOfDevices)
{
    const std::string device = GetParam(), list = device + ",REFERENCE";
    const std::string name = get(compile_adder().get(), "EXECUTION_DEVICES");
    Model model = read_text(core.get(), add_model(true));
    const struct {
        std::string device, priorities;
        std::string want;
    } cases[] = {{"AUTO:" + list, "", list}, {"MULTI:" + list, "", list},
                 {"AUTO", list, list},       {"HETERO", list, list},
                 {"AUTO", "", ""},           {device, "REFERENCE", "REFERENCE"}};
    for (const auto &k : cases) {
        SCOPED_TRACE(k.device + " " + k.priorities);
        ov_compiled_model_t *c = nullptr;
        const ov_property_t property = {ov_property_key_device_priorities,
                                        k.priorities.c_str()};
        ASSERT_EQ(ov_core_compile_model_props(core.get(), model.get(), k.device.c_str(),
                                              k.priorities.empty() ? 0 : 1, &property,
                                              &c),
                  OK)
            << last_error();
        Compiled compiled(c);
        EXPECT_EQ(get(c, "MULTI_DEVICE_PRIORITIES"), k.want);
        if (!k.want.empty()) {
            EXPECT_EQ(get(c, "EXECUTION_DEVICES"), name);
        }
    }
    ov_compiled_model_t *c = nullptr;
    ASSERT_EQ(ov_core_compile_model(core.get(), model.get(), "AUTO", 2, &c,
                                    "MULTI_DEVICE_PRIORITIES", "REFERENCE,GPU"),
              OK)
        << last_error();
    EXPECT_EQ(get(Compiled(c).get(), "EXECUTION_DEVICES"), "REFERENCE");
}

/* The model's file says 8; the user's value takes precedence. */
TEST_P(OfADevice, OptionsOfTheModelsFileAreDefaults)
{
    const char path[] =
        XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml";
    const struct {
        const char *set, *want;
    } cases[] = {{nullptr, "8"}, {"2.5", "2.5"}};
    for (const auto &k : cases) {
        ov_compiled_model_t *c = nullptr;
        const ov_property_t property = {"ACTIVATIONS_SCALE_FACTOR", k.set};
        ASSERT_EQ(ov_core_compile_model_from_file_props(core.get(), path, GetParam(),
                                                        k.set ? 1 : 0, &property, &c),
                  OK)
            << last_error();
        EXPECT_EQ(get(Compiled(c).get(), "ACTIVATIONS_SCALE_FACTOR"), k.want);
    }
}

/* The reference does not use options, but programs must read what they set. */
TEST(OfTheReference, OptionsAreGivenBack)
{
    Core core = make_core();
    const char device[] = "REFERENCE";
    EXPECT_EQ(set(core.get(), device, "NUM_STREAMS", "2"), OK);
    EXPECT_EQ(get(core.get(), device, "NUM_STREAMS"), "2");
    Model model = read_text(core.get(), add_model(true));
    ov_compiled_model_t *c = nullptr;
    ASSERT_EQ(ov_core_compile_model(core.get(), model.get(), device, 2, &c, "PERF_COUNT",
                                    "YES"),
              OK);
    Compiled compiled(c);
    EXPECT_EQ(get(c, "PERF_COUNT"), "YES");
    EXPECT_EQ(get(c, "NUM_STREAMS"), "2");
    EXPECT_EQ(get(c, "INFERENCE_PRECISION_HINT"), "f32");
    char *value = nullptr;
    EXPECT_EQ(ov_compiled_model_get_property(c, "NO_SUCH_KEY", &value), GENERAL_ERROR);
    EXPECT_EQ(last_error(), "Unsupported property NO_SUCH_KEY by REFERENCE plugin");
}

} // namespace
