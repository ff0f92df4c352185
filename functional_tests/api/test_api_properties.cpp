/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of the core, of devices and of compiled models, and their effects.
 */
#include "functional_tests/api/api_test.h"
#include "xemoe/xemoe.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

namespace
{

std::string
property(ov_core_t *core, const char *device, const char *key)
{
    char *value = nullptr;
    EXPECT_EQ(ov_core_get_property(core, device, key, &value), OK) << last_error();
    std::string s = value ? value : "";
    ov_free(value);
    return s;
}

TEST(Properties, OfTheCoreReachTheDevices)
{
    Core core = make_core();
    EXPECT_EQ(property(core.get(), "", ov_property_key_enable_mmap), "YES");
    EXPECT_EQ(
        ov_core_set_property(core.get(), nullptr, ov_property_key_cache_dir, "/tmp/x"),
        OK);
    EXPECT_EQ(property(core.get(), "", "CACHE_DIR"), "/tmp/x");
    EXPECT_EQ(property(core.get(), "GPU", "CACHE_DIR"), "/tmp/x");
    EXPECT_EQ(ov_core_set_property(core.get(), nullptr, "ENABLE_MMAP", "maybe"),
              GENERAL_ERROR);
    EXPECT_EQ(ov_core_set_property(core.get(), nullptr, "ENABLE_MMAP", "false"), OK);
    EXPECT_EQ(property(core.get(), "", "ENABLE_MMAP"), "NO");
}

/* A property of an unknown device is refused, as compiling for it is. */
TEST(Properties, OfADeviceThatNobodyKnowsAreRefused)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model());
    ov_compiled_model_t *none = nullptr;
    EXPECT_EQ(ov_core_compile_model(core.get(), model.get(), "FOO", 0, &none),
              GENERAL_ERROR);
    const std::string sentence = last_error();
    EXPECT_EQ(sentence.find("Device with \"FOO\" name is not registered"), 0u);
    EXPECT_EQ(ov_core_set_property(core.get(), "REFERENCE", "NO_SUCH_KEY", "YES"), OK)
        << "the device is not used yet";
    EXPECT_EQ(ov_core_set_property(core.get(), "FOO", "NONSENSE", "YES"), GENERAL_ERROR);
    EXPECT_EQ(last_error(), sentence);
    EXPECT_EQ(ov_core_set_property(core.get(), "GP", "PERF_COUNT", "YES"), GENERAL_ERROR);
    EXPECT_EQ(ov_core_set_property(core.get(), "FOO.1", "A", "B"), GENERAL_ERROR);
    for (const char *known : {"GPU", "GPU.7", "CPU", "AUTO", "HETERO:GPU,CPU"})
        EXPECT_EQ(ov_core_set_property(core.get(), known, "PERF_COUNT", "YES"), OK)
            << known << ": " << last_error();
}

/* As in OpenVINO, properties are stored until the device is first used; then an invalid one is
 * reported. */
TEST(Properties, AreCheckedWhenTheDeviceIsUsedFirst)
{
    Core core = make_core();
    char *text = nullptr;
    Model model = read_text(core.get(), add_model());
    ov_compiled_model_t *none = nullptr;
    ASSERT_EQ(ov_core_set_property(core.get(), "GPU", "PERF_COUNT", "perhaps"), OK);
    for (int twice = 0; twice < 2; twice++) {
        EXPECT_EQ(ov_core_compile_model(core.get(), model.get(), "GPU", 0, &none),
                  GENERAL_ERROR);
        EXPECT_NE(last_error().find("perhaps"), std::string::npos) << last_error();
        EXPECT_EQ(ov_core_get_property(core.get(), "GPU", "PERF_COUNT", &text),
                  GENERAL_ERROR);
    }
    ASSERT_EQ(ov_core_set_property(core.get(), "GPU", "PERF_COUNT", "YES"), OK);
    EXPECT_EQ(property(core.get(), "GPU", "PERF_COUNT"), "YES");
    /* from now on refused at once; the old value stays */
    EXPECT_EQ(ov_core_set_property(core.get(), "GPU", "PERF_COUNT", "perhaps"),
              GENERAL_ERROR);
    EXPECT_EQ(ov_core_set_property(core.get(), "GPU", "NO_SUCH_KEY", "1"), GENERAL_ERROR);
    EXPECT_EQ(property(core.get(), "GPU", "PERF_COUNT"), "YES");
    Compiled works = compile(core.get(), model.get());
}

TEST(Properties, OfTheLastCallCount)
{
    Core core = make_core();
    ASSERT_EQ(ov_core_set_property(core.get(), "GPU", "PERF_COUNT", "YES"), OK);
    ASSERT_EQ(ov_core_set_property(core.get(), nullptr, "PERF_COUNT", "NO"), OK);
    ASSERT_EQ(ov_core_set_property(core.get(), "GPU", "PERF_COUNT", "YES"), OK);
    EXPECT_EQ(property(core.get(), "GPU", "PERF_COUNT"), "YES");
    ASSERT_EQ(ov_core_set_property(core.get(), "CPU", "PERF_COUNT", "YES"), OK);
    ASSERT_EQ(ov_core_set_property(core.get(), nullptr, "PERF_COUNT", "NO"), OK);
    EXPECT_EQ(property(core.get(), "CPU", "PERF_COUNT"), "NO");
}

TEST(Properties, ForAllDevicesReachThoseThatAreUsedLater)
{
    Core core = make_core();
    char *text = nullptr;
    ASSERT_EQ(ov_core_set_property(core.get(), nullptr, "PERF_COUNT", "YES"), OK);
    EXPECT_EQ(property(core.get(), "GPU", "PERF_COUNT"), "YES");
    ASSERT_EQ(ov_core_set_property(core.get(), nullptr, "PERF_COUNT", "NO"), OK);
    EXPECT_EQ(property(core.get(), "GPU", "PERF_COUNT"), "NO");
    EXPECT_EQ(property(core.get(), "CPU", "PERF_COUNT"), "NO");
    ASSERT_EQ(ov_core_set_property(core.get(), nullptr, "NO_SUCH_KEY", "1"), OK)
        << "the reference's plugin, which is not used yet, may know it";
    EXPECT_EQ(ov_core_get_property(core.get(), "REFERENCE", "DEVICE_TYPE", &text),
              GENERAL_ERROR);
    EXPECT_NE(last_error().find("NO_SUCH_KEY"), std::string::npos) << last_error();
}

/* Returns the files of a folder of compiled kernels with their inode numbers: a file that is
 * written again has another number. */
std::map<std::string, ino_t>
kernels_in(const std::string &dir)
{
    std::map<std::string, ino_t> found;
    for (const auto &f : std::filesystem::directory_iterator(dir)) {
        struct stat st = {};
        EXPECT_EQ(stat(f.path().c_str(), &st), 0);
        found[f.path().filename().string()] = st.st_ino;
    }
    return found;
}

/* Runs the sum on the GPU; `dir` is the cache folder, given to the compile call if `late`. */
void
add_on_gpu(const std::string &dir, bool late)
{
    Core core = make_core();
    ov_compiled_model_t *compiled = nullptr;
    Model model = read_text(core.get(), add_model(true));
    ov_status_e status;
    if (late) {
        status = ov_core_compile_model(core.get(), model.get(), "GPU", 2, &compiled,
                                       ov_property_key_cache_dir, dir.c_str());
    } else {
        ASSERT_EQ(ov_core_set_property(core.get(), "GPU", ov_property_key_cache_dir,
                                       dir.c_str()),
                  OK);
        status = ov_core_compile_model(core.get(), model.get(), "GPU", 0, &compiled);
    }
    ASSERT_EQ(status, OK) << last_error();
    Compiled held(compiled);
    EXPECT_EQ(ov_core_set_property(core.get(), "GPU", "CACHE_DIR", ""), OK);
    Request request = make_request(compiled);
    float a[6] = {1, 2}, b[6] = {3, 4}, y[6] = {};
    for (auto &[name, data] : {std::pair{"a", a}, {"b", b}, {"y", y}}) {
        Tensor t = wrap(data, 3);
        EXPECT_EQ(ov_infer_request_set_tensor(request.get(), name, t.get()), OK);
    }
    ASSERT_EQ(ov_infer_request_infer(request.get()), OK) << last_error();
    EXPECT_EQ(y[1], 6);
}

TEST(Properties, CacheDirKeepsKernels)
{
    Core core = make_core();
    const std::string name = property(core.get(), "GPU", "FULL_DEVICE_NAME");
    if (name.empty())
        GTEST_SKIP() << "no OpenCL device";
    char dir[] = "/tmp/xm_cache_dir_XXXXXX";
    ASSERT_NE(mkdtemp(dir), nullptr);
    const std::string folder = std::string(dir) + "/made";
    add_on_gpu(folder, false);
    if (std::filesystem::exists(folder)) { /* some drivers do not allow storing kernels */
        const auto first = kernels_in(folder);
        EXPECT_GE(first.size(), 1u);
        add_on_gpu(folder, true);
        auto second = kernels_in(folder);
        /* Kernels are loaded, not built and stored again. Only if another process built something
         * at the same moment, a kernel is stored one run later (runtime/driver_files.h). */
        for (const auto &[name, number] : first)
            EXPECT_EQ(second[name], number) << name;
    }
    std::filesystem::remove_all(dir);
}

TEST(Properties, OfTheGpu)
{
    Core core = make_core();
    EXPECT_NE(property(core.get(), "GPU", "SUPPORTED_PROPERTIES").find("CACHE_DIR"),
              std::string::npos);
    EXPECT_FALSE(property(core.get(), "GPU", ov_property_key_device_full_name).empty());
    const std::string hex = "0123456789abcdef";
    std::string uuid = property(core.get(), "GPU", "DEVICE_UUID");
    EXPECT_EQ(uuid.size(), 32u);
    EXPECT_EQ(uuid.find_first_not_of(hex), std::string::npos) << uuid;
    EXPECT_EQ(property(core.get(), "GPU", "DEVICE_LUID").size(), 16u);
    EXPECT_EQ(property(core.get(), "GPU", "DEVICE_PCI_INFO").find("{domain: "), 0u);
    EXPECT_EQ(property(core.get(), "GPU", "GPU_DEVICE_ID").find("0x"), 0u);
    EXPECT_EQ(property(core.get(), "GPU", "OPTIMIZATION_CAPABILITIES").find("FP32 BIN"),
              0u);
    for (const char *key : {"DEVICE_TYPE", "GPU_UARCH_VERSION",
                            "GPU_DEVICE_TOTAL_MEM_SIZE", "GPU_DEVICE_MAX_ALLOC_MEM_SIZE",
                            "GPU_CACHELINE_SIZE", "GPU_EXECUTION_UNITS_COUNT"}) {
        EXPECT_FALSE(property(core.get(), "GPU", key).empty()) << key;
        EXPECT_NE(property(core.get(), "GPU", "SUPPORTED_PROPERTIES").find(key),
                  std::string::npos);
    }
    EXPECT_EQ(property(core.get(), "GPU", "INFERENCE_PRECISION_HINT"), "f16");
    EXPECT_EQ(ov_core_set_property(core.get(), "GPU",
                                   ov_property_key_hint_inference_precision, "f32"),
              OK);
    EXPECT_EQ(property(core.get(), "GPU", "INFERENCE_PRECISION_HINT"), "f32");
    EXPECT_EQ(ov_core_set_property(core.get(), "GPU", "INFERENCE_PRECISION_HINT", "i4"),
              GENERAL_ERROR);
    EXPECT_NE(last_error().find("INFERENCE_PRECISION_HINT"), std::string::npos);
}

std::string
property(ov_compiled_model_t *compiled, const char *key)
{
    char *value = nullptr;
    EXPECT_EQ(ov_compiled_model_get_property(compiled, key, &value), OK) << last_error();
    std::string s = value ? value : "";
    ov_free(value);
    return s;
}

TEST(Properties, OfCompiledModels)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model(true));
    for (const char *device : {"GPU", "REFERENCE"}) {
        SCOPED_TRACE(device);
        Compiled compiled = compile(core.get(), model.get(), device);
        ASSERT_TRUE(compiled);
        EXPECT_EQ(property(compiled.get(), "NETWORK_NAME"), "adder");
        EXPECT_EQ(property(compiled.get(), "LOADED_FROM_CACHE"), "NO");
        EXPECT_EQ(property(compiled.get(), "INFERENCE_PRECISION_HINT"), "f32");
        std::istringstream all(property(compiled.get(), "SUPPORTED_PROPERTIES"));
        for (std::string key; all >> key;)
            property(compiled.get(), key.c_str());
    }
    EXPECT_EQ(
        property(compile(core.get(), model.get(), "GPU").get(), "EXECUTION_DEVICES"),
        "GPU.0");
}

/* The processor has a device name and properties of its own; the same device may also be named
 * GPU. */
TEST(Properties, OfTheProcessor)
{
    Core core = make_core();
    if (property(core.get(), "CPU", "FULL_DEVICE_NAME").empty())
        GTEST_SKIP() << "no OpenCL device that is a processor";
    EXPECT_EQ(property(core.get(), "CPU", "DEVICE_TYPE"), "integrated");
    EXPECT_EQ(property(core.get(), "CPU", "AVAILABLE_DEVICES").substr(0, 1), "0");
    EXPECT_EQ(ov_core_set_property(core.get(), "CPU", "XM_UBATCH", "64"), OK);
    EXPECT_EQ(property(core.get(), "CPU.0", "XM_UBATCH"), "64");
    EXPECT_EQ(property(core.get(), "GPU", "XM_UBATCH"), "512");
    Model model = read_text(core.get(), add_model(true));
    Compiled compiled = compile(core.get(), model.get(), "CPU");
    ASSERT_TRUE(compiled);
    const bool is_only = property(core.get(), "CPU", "AVAILABLE_DEVICES") == "0";
    EXPECT_EQ(property(compiled.get(), "EXECUTION_DEVICES"), is_only ? "CPU" : "CPU.0");
    EXPECT_EQ(property(compiled.get(), "XM_UBATCH"), "64");
}

/* Programs may read a property before they set it. */
TEST(Properties, WithoutEffectAreListedApart)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model(true));
    Compiled compiled = compile(core.get(), model.get(), "GPU");
    for (bool of_compiled : {false, true}) {
        auto get = [&](const char *key) {
            return of_compiled ? property(compiled.get(), key)
                               : property(core.get(), "GPU", key);
        };
        const std::string works = " " + get("SUPPORTED_PROPERTIES") + " ",
                          accepted = " " + get("XM_ACCEPTED_PROPERTIES") + " ";
        for (const char *key : {" CACHE_DIR ", " XM_UBATCH ", " FULL_DEVICE_NAME "}) {
            EXPECT_NE(works.find(key), std::string::npos) << works;
            EXPECT_EQ(accepted.find(key), std::string::npos) << accepted;
        }
        std::istringstream all(accepted);
        int n = 0;
        for (std::string key; all >> key; n++) {
            EXPECT_EQ(works.find(" " + key + " "), std::string::npos) << key;
            get(key.c_str());
        }
        EXPECT_GE(n, 10);
    }
}

/* Checks the compiled adder with 1 + 3 and 2 + 4. */
void
expect_sums(ov_compiled_model_t *compiled)
{
    Request request = make_request(compiled);
    float a[6] = {1, 2}, b[6] = {3, 4}, y[6] = {};
    for (auto &[name, data] : {std::pair{"a", a}, {"b", b}, {"y", y}}) {
        Tensor t = wrap(data, 3);
        EXPECT_EQ(ov_infer_request_set_tensor(request.get(), name, t.get()), OK);
    }
    ASSERT_EQ(ov_infer_request_infer(request.get()), OK) << last_error();
    EXPECT_EQ(y[0], 4);
    EXPECT_EQ(y[1], 6);
}

TEST(Export, GivesTheModelBackFromBytesAndFromAFile)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model(true));
    if (property(core.get(), "GPU", "FULL_DEVICE_NAME").empty())
        GTEST_SKIP() << "no OpenCL device";
    EXPECT_NE(
        property(core.get(), "GPU", "OPTIMIZATION_CAPABILITIES").find("EXPORT_IMPORT"),
        std::string::npos);
    Compiled compiled = compile(core.get(), model.get(), "GPU");
    const std::string path = testing::TempDir() + "xm_export_" + std::to_string(getpid());
    ASSERT_EQ(ov_compiled_model_export_model(compiled.get(), path.c_str()), OK)
        << last_error();
    std::ifstream file(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    ov_compiled_model_t *imported = nullptr;
    ASSERT_EQ(
        ov_core_import_model(core.get(), bytes.data(), bytes.size(), "GPU", &imported),
        OK)
        << last_error();
    Compiled from_bytes(imported);
    std::fill(bytes.begin(), bytes.end(), '\0'); /* the caller's bytes may change now */
    expect_sums(from_bytes.get());
    EXPECT_EQ(property(from_bytes.get(), "NETWORK_NAME"), "adder");
    EXPECT_EQ(property(from_bytes.get(), "LOADED_FROM_CACHE"), "YES");
    ASSERT_EQ(xm_import_model_from_file(core.get(), path.c_str(), "GPU", &imported), OK);
    Compiled from_file(imported);
    std::filesystem::remove(path);
    expect_sums(from_file.get());
    EXPECT_EQ(ov_core_import_model(core.get(), "bytes", 5, "GPU", &imported),
              GENERAL_ERROR);
    EXPECT_NE(last_error().find("not a compiled model of xemoe"), std::string::npos);
    EXPECT_EQ(xm_import_model_from_file(core.get(), path.c_str(), "GPU", &imported),
              GENERAL_ERROR);
    EXPECT_EQ(xm_import_model_from_file(nullptr, path.c_str(), "GPU", &imported),
              INVALID_C_PARAM);
}

TEST(Properties, CountMemoryByKind)
{
    Core core = make_core();
    const std::string keys[] = {"{cl_mem_current:", ",usm_device_current:",
                                ",usm_host_current:", ",usm_shared_current:"};
    std::string map = property(core.get(), "GPU", "GPU_MEMORY_STATISTICS");
    EXPECT_EQ(map, "{cl_mem_current:0,usm_device_current:0,usm_host_current:0,"
                   "usm_shared_current:0}");
    Model model = read_text(core.get(), add_model(true));
    Compiled compiled = compile(core.get(), model.get(), "GPU");
    map = property(compiled.get(), "GPU_MEMORY_STATISTICS");
    EXPECT_EQ(map, property(core.get(), "GPU", "GPU_MEMORY_STATISTICS"));
    for (const std::string &key : keys)
        EXPECT_NE(map.find(key), std::string::npos) << map;
    EXPECT_EQ(map.back(), '}');
}

TEST(Properties, ThatProgramsSetByHabitDoNotFail)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model(true));
    const ov_property_t habits[] = {{"PERFORMANCE_HINT", "THROUGHPUT"},
                                    {"PERFORMANCE_HINT_NUM_REQUESTS", "4"},
                                    {"MODEL_PRIORITY", "HIGH"},
                                    {"ENABLE_MMAP", "YES"},
                                    {"ENABLE_CPU_PINNING", "NO"},
                                    {"CACHE_MODE", "optimize_speed"},
                                    {"DEVICE_ID", "0"},
                                    {"ACTIVATIONS_SCALE_FACTOR", "8.0"},
                                    {"GPU_QUEUE_PRIORITY", "LOW"},
                                    {"GPU_QUEUE_THROTTLE", "LOW"},
                                    {"NUM_STREAMS", "AUTO"},
                                    {"LOG_LEVEL", "LOG_ERROR"},
                                    {"INFERENCE_NUM_THREADS", "2"},
                                    {"DEVICE_BIND_BUFFER", "YES"},
                                    {"ENABLE_STARTUP_FALLBACK", "NO"},
                                    {"ENABLE_RUNTIME_FALLBACK", "NO"},
                                    {"PERF_COUNT", "YES"}};
    for (const char *device : {"GPU", "AUTO:GPU,CPU", "HETERO:GPU,CPU", "MULTI:GPU",
                               "BATCH:GPU(4)", "REFERENCE"}) {
        ov_compiled_model_t *compiled = nullptr;
        EXPECT_EQ(ov_core_compile_model_props(core.get(), model.get(), device,
                                              std::size(habits), habits, &compiled),
                  OK)
            << device << ": " << last_error();
        Compiled owner(compiled);
        if (std::string(device) == "GPU") {
            EXPECT_EQ(property(compiled, "PERF_COUNT"), "YES");
        }
    }
    const ov_property_t absent = {"DEVICE_ID", "99"};
    ov_compiled_model_t *compiled = nullptr;
    EXPECT_EQ(ov_core_compile_model_props(core.get(), model.get(), "GPU", 1, &absent,
                                          &compiled),
              GENERAL_ERROR);
    EXPECT_NE(last_error().find("DEVICE_ID is 99"), std::string::npos) << last_error();
    EXPECT_EQ(ov_core_set_property(core.get(), "GPU", "DEVICE_ID", "99"), OK);
    EXPECT_EQ(ov_core_compile_model(core.get(), model.get(), "GPU.0", 0, &compiled), OK)
        << last_error(); /* the name selects the device */
    ov_compiled_model_free(compiled);
}

} // namespace
