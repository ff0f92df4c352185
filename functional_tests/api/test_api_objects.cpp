/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes, tensors, models, properties and requests, seen through the public headers.
 */
#include "functional_tests/api/api_test.h"
#include "xemoe/xemoe.h"

#include <sys/stat.h>
#include <unistd.h>

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

/* ---- shapes ------------------------------------------------------------------------ */

TEST(Shape, IsCopiedAndReset)
{
    int64_t dims[] = {2, 0, 3};
    ov_shape_t s = {0, nullptr};
    ASSERT_EQ(ov_shape_create(3, dims, &s), OK);
    EXPECT_EQ(s.dims[2], 3);
    EXPECT_EQ(ov_shape_free(&s), OK);
    EXPECT_EQ(s.rank, 0);
    EXPECT_EQ(s.dims, nullptr);
    dims[1] = -1;
    EXPECT_EQ(ov_shape_create(3, dims, &s), INVALID_C_PARAM);
    EXPECT_EQ(ov_shape_create(0, dims, &s), INVALID_C_PARAM);
}

TEST(PartialShape, PrintsAsOpenVinoDoes)
{
    ov_dimension_t dims[] = {{-1, -1}, {1, 20}, {300, 300}, {0, 7}};
    ov_partial_shape_t s;
    ASSERT_EQ(ov_partial_shape_create(4, dims, &s), OK);
    const char *text = ov_partial_shape_to_string(s);
    EXPECT_STREQ(text, "{?,1..20,300,..7}");
    ov_free(text);
    EXPECT_TRUE(ov_partial_shape_is_dynamic(s));
    ov_shape_t fixed;
    EXPECT_EQ(ov_partial_shape_to_shape(s, &fixed), PARAMETER_MISMATCH);
    ov_partial_shape_free(&s);
    const ov_dimension_t *const ignored_ones[] = {nullptr, dims};
    for (const ov_dimension_t *ignored : ignored_ones) {
        ASSERT_EQ(ov_partial_shape_create_dynamic({-1, -1}, ignored, &s), OK);
        EXPECT_EQ(s.dims, nullptr);
        text = ov_partial_shape_to_string(s);
        EXPECT_STREQ(text, "?");
        ov_free(text);
        ov_partial_shape_free(&s);
    }
}

TEST(PartialShape, RefusesContradictions)
{
    ov_partial_shape_t s;
    for (ov_dimension_t d : {ov_dimension_t{3, 2}, {0, -1}, {5, -1}, {-2, 4}})
        EXPECT_EQ(ov_partial_shape_create(1, &d, &s), INVALID_C_PARAM);
    EXPECT_EQ(ov_partial_shape_create(-1, nullptr, &s), INVALID_C_PARAM);
}

TEST(PartialShape, GoesToAShapeAndBack)
{
    int64_t dims[] = {1, 20, 300};
    ov_partial_shape_t s;
    ov_shape_t back;
    ASSERT_EQ(ov_partial_shape_create_static(3, dims, &s), OK);
    ASSERT_EQ(ov_partial_shape_to_shape(s, &back), OK);
    EXPECT_EQ(std::memcmp(back.dims, dims, sizeof(dims)), 0);
    ov_shape_free(&back);
    ov_partial_shape_free(&s);
    EXPECT_TRUE(ov_dimension_is_dynamic({0, 0}));
    EXPECT_FALSE(ov_rank_is_dynamic({3, 3}));
}

/* ---- tensors ----------------------------------------------------------------------- */

TEST(Tensor, CountsPackedBytesUp)
{
    struct {
        ov_element_type_e type;
        int64_t n;
        size_t bytes;
    } cases[] = {{U4, 5, 3}, {U1, 7, 1},   {U3, 1, 3},      {U3, 9, 6},
                 {U6, 5, 6}, {F32, 3, 12}, {STRING, 2, 64}, {I64, 0, 0}};
    for (const auto &c : cases) {
        int64_t dims[] = {c.n};
        ov_tensor_t *t = nullptr;
        size_t bytes = 99;
        ASSERT_EQ(ov_tensor_create(c.type, {1, dims}, &t), OK);
        EXPECT_EQ(ov_tensor_get_byte_size(t, &bytes), OK);
        EXPECT_EQ(bytes, c.bytes);
        ov_tensor_free(t);
    }
    int64_t one[] = {1}, huge[] = {INT64_MAX, INT64_MAX};
    ov_tensor_t *t = nullptr;
    EXPECT_EQ(ov_tensor_create(DYNAMIC, {1, one}, &t), GENERAL_ERROR);
    EXPECT_EQ(ov_tensor_create(F32, {2, huge}, &t), GENERAL_ERROR);
}

TEST(Tensor, GrowsOnlyInMemoryOfTheLibrary)
{
    float numbers[4];
    int64_t small[] = {1, 2}, large[] = {100, 2};
    Tensor borrowed = wrap(numbers, 2);
    EXPECT_EQ(ov_tensor_set_shape(borrowed.get(), {2, small}), OK);
    EXPECT_EQ(ov_tensor_set_shape(borrowed.get(), {2, large}), GENERAL_ERROR);
    ov_tensor_t *owned = nullptr;
    size_t n = 0;
    ASSERT_EQ(ov_tensor_create(F32, {2, small}, &owned), OK);
    EXPECT_EQ(ov_tensor_set_shape(owned, {2, large}), OK);
    EXPECT_EQ(ov_tensor_get_size(owned, &n), OK);
    EXPECT_EQ(n, 200u);
    ov_tensor_free(owned);
}

TEST(Tensor, CopiesStrings)
{
    const char *texts[] = {"one", "two"};
    int64_t dims[] = {2};
    ov_tensor_t *t = nullptr;
    ASSERT_EQ(ov_tensor_create_from_string_array(texts, 2, {1, dims}, &t), OK);
    EXPECT_EQ(ov_tensor_set_string_data(t, texts, 1), INVALID_C_PARAM);
    EXPECT_EQ(ov_tensor_set_string_data(t, texts, 2), OK);
    ov_tensor_free(t);
    /* at creation the numbers may differ, as with OpenVINO */
    int64_t other[] = {1};
    for (int64_t n : {1, 3}) {
        other[0] = n;
        t = nullptr;
        EXPECT_EQ(ov_tensor_create_from_string_array(texts, 2, {1, other}, &t), OK);
        ov_tensor_free(t);
    }
}

/* ---- models and ports -------------------------------------------------------------- */

TEST(Model, TellsItsPorts)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model());
    size_t n = 0;
    EXPECT_EQ(ov_model_inputs_size(model.get(), &n), OK);
    EXPECT_EQ(n, 2u);
    EXPECT_TRUE(ov_model_is_dynamic(model.get()));
    char *name = nullptr;
    EXPECT_EQ(ov_model_get_friendly_name(model.get(), &name), OK);
    EXPECT_STREQ(name, "adder");
    ov_free(name);
    ov_output_const_port_t *p = nullptr;
    ASSERT_EQ(ov_model_const_output(model.get(), &p), OK);
    ConstPort port(p);
    model.reset(); /* ports live on */
    ov_element_type_e type = DYNAMIC;
    EXPECT_EQ(ov_port_get_element_type(p, &type), OK);
    EXPECT_EQ(type, F32);
    EXPECT_EQ(ov_port_get_any_name(p, &name), OK);
    EXPECT_STREQ(name, "y");
    ov_free(name);
    ov_partial_shape_t shape;
    ASSERT_EQ(ov_port_get_partial_shape(p, &shape), OK);
    EXPECT_EQ(shape.rank.max, 2);
    EXPECT_EQ(shape.dims[0].min, 0);
    EXPECT_EQ(shape.dims[0].max, -1);
    EXPECT_EQ(shape.dims[1].min, 2);
    ov_partial_shape_free(&shape);
    ov_shape_t fixed;
    EXPECT_EQ(ov_const_port_get_shape(p, &fixed), GENERAL_ERROR);
}

TEST(Model, StaticOneHasShapes)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model(true));
    EXPECT_FALSE(ov_model_is_dynamic(model.get()));
    ov_output_port_t *p = nullptr;
    ASSERT_EQ(ov_model_input_by_name(model.get(), "b", &p), OK);
    Port port(p);
    ov_shape_t shape;
    ASSERT_EQ(ov_port_get_shape(p, &shape), OK);
    EXPECT_EQ(shape.dims[0], 3);
    ov_shape_free(&shape);
}

/* ---- properties -------------------------------------------------------------------- */

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

/* As compiling for it is. */
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

/* What OpenVINO stores until it loads the plugin comes out at the first use. */
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
    /* from now on at once, and the old value stays */
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

/* Entries of a folder of compiled kernels, each with its file's number: a file that is written
 * anew has another. */
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

/* The sum on the GPU; `dir` is the property's, for the compile call where `late`. */
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
    if (std::filesystem::exists(folder)) { /* not every driver lets its kernels be kept */
        const auto first = kernels_in(folder);
        EXPECT_GE(first.size(), 1u);
        add_on_gpu(folder, true);
        auto second = kernels_in(folder);
        /* Taken, not built and stored again. One is kept the next time only where another process
         * had built something in the same moment (runtime/driver_files.h). */
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

/* By a name of its own, with properties of its own; the same device may be GPU too. */
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

/* Programs may ask for a property before they set it. */
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

/* What the adder answers to 1 + 3, 2 + 4. */
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
    std::fill(bytes.begin(), bytes.end(), '\0'); /* they were the caller's */
    expect_sums(from_bytes.get());
    EXPECT_EQ(property(from_bytes.get(), "NETWORK_NAME"), "adder");
    EXPECT_EQ(property(from_bytes.get(), "LOADED_FROM_CACHE"), "YES");
    ASSERT_EQ(xm_import_model_from_file(core.get(), path.c_str(), "GPU", &imported), OK);
    Compiled from_file(imported);
    std::filesystem::remove(path);
    expect_sums(from_file.get());
    EXPECT_EQ(ov_core_import_model(core.get(), "bytes", 5, "GPU", &imported),
              GENERAL_ERROR);
    EXPECT_NE(last_error().find("no compiled model of xemoe's"), std::string::npos);
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
        << last_error(); /* the name says which one it is */
    ov_compiled_model_free(compiled);
}

std::string logged;

TEST(Log, GoesToTheCallersFunction)
{
    Core core = make_core();
    EXPECT_EQ(
        ov_core_set_property(core.get(), nullptr, ov_property_key_log_level, "LOG_INFO"),
        OK);
    ov_util_set_log_callback([](const char *line) { logged += line; });
    ov_core_t *other = nullptr;
    const std::string file = testing::TempDir() + "xemoe_log_" + std::to_string(getpid());
    std::ofstream(file) << "<ie><plugins><plugin name=\"AUTO\" "
                           "location=\"libopenvino_auto_plugin.so\"/></plugins></ie>";
    EXPECT_EQ(ov_core_create_with_config(file.c_str(), &other), OK);
    ov_core_free(other);
    EXPECT_NE(logged.find("plugin AUTO of the list is not loaded"), std::string::npos);
    logged.clear();
    ov_util_set_log_callback(nullptr);
    EXPECT_EQ(ov_core_create_with_config(file.c_str(), &other), OK);
    ov_core_free(other);
    unlink(file.c_str());
    EXPECT_EQ(logged, "");
    ov_util_reset_log_callback();
    EXPECT_EQ(ov_core_set_property(core.get(), nullptr, "LOG_LEVEL", "LOG_WARNING"), OK);
}

TEST(Core, ListsDevicesAndVersions)
{
    Core core = make_core();
    ov_available_devices_t devices = {nullptr, 0};
    ASSERT_EQ(ov_core_get_available_devices(core.get(), &devices), OK);
    for (size_t i = 0; i < devices.size; i++)
        EXPECT_STRNE(devices.devices[i], "REFERENCE"); /* which is there by its name */
    ov_available_devices_free(&devices);
    EXPECT_EQ(devices.devices, nullptr);
    ov_core_version_list_t versions = {nullptr, 0};
    ASSERT_EQ(ov_core_get_versions_by_device_name(core.get(), "REFERENCE,GPU", &versions),
              OK);
    ASSERT_EQ(versions.size, 2u);
    EXPECT_STREQ(versions.versions[0].device_name, "GPU");
    ov_core_versions_free(&versions);
    const struct {
        const char *asked;
        std::vector<std::string> names;
    } cases[] = {
        {"HETERO:GPU,REFERENCE", {"GPU", "HETERO", "REFERENCE"}},
        {"MULTI:GPU(2),GPU,REFERENCE", {"GPU", "MULTI", "REFERENCE"}},
        {"AUTO", {"AUTO"}},
        {"AUTO:-CPU,GPU", {"AUTO", "GPU"}},
        {"BATCH:GPU(4)", {"BATCH", "GPU"}},
        {"GPU,GPU", {"GPU"}},
    };
    for (const auto &k : cases) {
        ASSERT_EQ(ov_core_get_versions_by_device_name(core.get(), k.asked, &versions), OK)
            << k.asked << last_error();
        std::vector<std::string> names;
        for (size_t i = 0; i < versions.size; i++) {
            names.push_back(versions.versions[i].device_name);
            EXPECT_STRNE(versions.versions[i].version.description, "");
        }
        EXPECT_EQ(names, k.names) << k.asked;
        ov_core_versions_free(&versions);
    }
    for (const char *wrong : {"HETERO:GPU,ABSENT", "", "GPU,ABSENT"})
        EXPECT_EQ(ov_core_get_versions_by_device_name(core.get(), wrong, &versions),
                  NOT_FOUND)
            << wrong;
    ov_version_t version;
    ASSERT_EQ(ov_get_openvino_version(&version), OK);
    EXPECT_EQ(std::strncmp(version.buildNumber, "2026.4.1", 8), 0);
    ov_version_free(&version);
}

/* ---- requests ---------------------------------------------------------------------- */

class Adder : public testing::Test
{
  protected:
    void SetUp() override
    {
        Core core = make_core();
        Model model = read_text(core.get(), add_model());
        Compiled compiled = compile(core.get(), model.get());
        request = make_request(compiled.get()); /* outlives the others */
    }

    void set(const char *name, float *data, int64_t rows)
    {
        Tensor t = wrap(data, rows);
        EXPECT_EQ(ov_infer_request_set_tensor(request.get(), name, t.get()), OK);
    }

    Tensor get(const char *name)
    {
        ov_tensor_t *t = nullptr;
        EXPECT_EQ(ov_infer_request_get_tensor(request.get(), name, &t), OK)
            << last_error();
        return Tensor(t);
    }

    static float *numbers(const Tensor &t)
    {
        void *data = nullptr;
        EXPECT_EQ(ov_tensor_data(t.get(), &data), OK);
        return static_cast<float *>(data);
    }

    Request request;
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {10, 20, 30, 40, 50, 60};
};

TEST_F(Adder, AHeldOutputShowsEachRun)
{
    Tensor y = get("y"); /* empty before the first run */
    size_t n = 99;
    EXPECT_EQ(ov_tensor_get_size(y.get(), &n), OK);
    EXPECT_EQ(n, 0u);
    set("a", a, 2);
    set("b", b, 2);
    ASSERT_EQ(ov_infer_request_infer(request.get()), OK) << last_error();
    EXPECT_EQ(numbers(y)[3], 44);
    set("a", a, 3);
    set("b", b, 3);
    ASSERT_EQ(ov_infer_request_infer(request.get()), OK) << last_error();
    EXPECT_EQ(numbers(y)[5], 66);
    request.reset();
    EXPECT_EQ(numbers(y)[5], 66); /* and outlives the request */
}

TEST_F(Adder, WritesIntoTheCallersMemory)
{
    float y[4] = {0};
    set("a", a, 2);
    set("b", b, 2);
    set("y", y, 2);
    ASSERT_EQ(ov_infer_request_infer(request.get()), OK) << last_error();
    EXPECT_EQ(y[3], 44);
}

TEST_F(Adder, InputsMayBeFilledInPlace)
{
    int64_t dims[] = {1, 2};
    for (const char *name : {"a", "b"}) {
        Tensor t = get(name);
        ASSERT_EQ(ov_tensor_set_shape(t.get(), {2, dims}), OK);
        numbers(t)[0] = 1;
        numbers(t)[1] = 2;
    }
    ASSERT_EQ(ov_infer_request_infer(request.get()), OK) << last_error();
    EXPECT_EQ(numbers(get("y"))[1], 4);
}

TEST_F(Adder, AsyncRunsCallBack)
{
    std::atomic<int> calls{0};
    ov_callback_t callback = {[](void *n) { ++*static_cast<std::atomic<int> *>(n); },
                              &calls};
    ASSERT_EQ(ov_infer_request_set_callback(request.get(), &callback), OK);
    set("a", a, 3);
    set("b", b, 3);
    for (int i = 1; i <= 20; i++) {
        ASSERT_EQ(ov_infer_request_start_async(request.get()), OK);
        ASSERT_EQ(i % 2 ? ov_infer_request_wait(request.get())
                        : ov_infer_request_wait_for(request.get(), 60000),
                  OK);
        EXPECT_EQ(calls, i);
    }
    EXPECT_EQ(numbers(get("y"))[0], 11);
}

TEST_F(Adder, AFailedAsyncRunSaysSoAtTheWait)
{
    ASSERT_EQ(ov_infer_request_start_async(request.get()), OK);
    EXPECT_EQ(ov_infer_request_wait(request.get()), GENERAL_ERROR);
    EXPECT_EQ(last_error(), "input 'a' has not been set");
    set("a", a, 3);
    set("b", b, 3);
    ASSERT_EQ(ov_infer_request_infer(request.get()), OK) << last_error();
    EXPECT_EQ(ov_infer_request_wait(request.get()), OK) << "of the run before";
}

TEST_F(Adder, MayBeFreedWhileItRuns)
{
    set("a", a, 3);
    set("b", b, 3);
    ASSERT_EQ(ov_infer_request_start_async(request.get()), OK);
    request.reset();
}

TEST(WideAndMemory, ReadTheSameModel)
{
    const std::string dir = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64/";
    const std::wstring wide(dir.begin(), dir.end());
    Core core = make_core();
    ov_model_t *m = nullptr;
    ASSERT_EQ(ov_core_read_model_unicode(
                  core.get(), (wide + L"openvino_model.xml").c_str(), nullptr, &m),
              OK)
        << last_error();
    Model from_file(m);
    auto slurp = [](const std::string &path) {
        std::ifstream f(path, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(f), {});
    };
    const std::string xml = slurp(dir + "openvino_model.xml");
    std::string bin = slurp(dir + "openvino_model.bin");
    int64_t dims[] = {static_cast<int64_t>(bin.size())};
    ov_tensor_t *t = nullptr;
    ASSERT_EQ(ov_tensor_create(U8, {1, dims}, &t), OK);
    void *data = nullptr;
    ASSERT_EQ(ov_tensor_data(t, &data), OK);
    std::memcpy(data, bin.data(), bin.size());
    m = nullptr;
    EXPECT_EQ(
        ov_core_read_model_from_memory_buffer(core.get(), xml.data(), xml.size(), t, &m),
        OK)
        << last_error();
    ov_tensor_free(t); /* the model keeps the bytes */
    Model from_memory(m);
    Compiled compiled = compile(core.get(), from_memory.get());
    from_memory.reset();
    size_t n = 0, n_file = 0;
    EXPECT_EQ(ov_compiled_model_inputs_size(compiled.get(), &n), OK);
    EXPECT_EQ(ov_model_inputs_size(from_file.get(), &n_file), OK);
    EXPECT_EQ(n, n_file);
}

} // namespace
