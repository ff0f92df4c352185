/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes, tensors, models, requests and the log through the public headers.
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
    /* the number of elements may differ from the shape at creation, as in OpenVINO */
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
    model.reset(); /* ports keep the model alive */
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
    EXPECT_NE(logged.find("plugin AUTO of the plugin list is not loaded"),
              std::string::npos);
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
        EXPECT_STRNE(devices.devices[i], "REFERENCE"); /* available, but not listed */
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
        /* outlives the model and the compiled model */
        request = make_request(compiled.get());
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
    EXPECT_EQ(numbers(y)[5], 66); /* the tensor outlives the request */
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
