/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes and error texts for each mistake of a caller.
 */
#include "functional_tests/api/api_test.h"

#include <cstring>
#include <filesystem>
#include <fstream>

namespace
{

std::string logged;

/* Returns what is logged by a call that fails with INVALID_C_PARAM; such a call does not change
 * the text of the last error. */
template <typename Call>
std::string
refusal(Call call)
{
    logged.clear();
    ov_util_set_log_callback([](const char *line) { logged += line; });
    const ov_status_e status = call();
    ov_util_reset_log_callback();
    EXPECT_EQ(status, INVALID_C_PARAM);
    const size_t prefix = logged.rfind("warning: ", 0) == 0 ? strlen("warning: ") : 0;
    return logged.substr(prefix);
}

TEST(Status, EveryCodeHasItsText)
{
    const char *texts[] = {"success",
                           "general error",
                           "it's not implement",
                           "failed to network",
                           "input parameter mismatch",
                           "cannot find the value",
                           "out of bounds",
                           "run with unexpected error",
                           "request is busy",
                           "result is not ready",
                           "it is not allocated",
                           "inference start with error",
                           "network is not ready",
                           "inference is canceled",
                           "invalid c input parameters",
                           "unknown c error",
                           "not implement in c method",
                           "unknown exception"};
    for (int i = 0; i < 18; i++)
        EXPECT_STREQ(ov_get_error_info(static_cast<ov_status_e>(-i)), texts[i]);
    EXPECT_STREQ(ov_get_error_info(static_cast<ov_status_e>(-99)), "unknown exception");
}

TEST(LastError, IsKeptUntilTheNextFailureAndClearedWithACore)
{
    Core core = make_core();
    ov_model_t *model = nullptr;
    EXPECT_EQ(ov_core_read_model(core.get(), "no_such_file.xml", nullptr, &model),
              GENERAL_ERROR);
    EXPECT_NE(last_error().find("no_such_file.xml"), std::string::npos);
    EXPECT_EQ(last_error(),
              "Could not open the file: \"no_such_file.xml\": No such file or directory");
    const std::string text = last_error();
    EXPECT_EQ(
        refusal([&] { return ov_core_read_model(core.get(), nullptr, nullptr, &model); }),
        "ov_core_read_model: an argument is NULL, a number out of range, or not a live "
        "handle of the expected kind");
    EXPECT_EQ(last_error(), text);
    EXPECT_EQ(model, nullptr);
    core.reset();
    EXPECT_EQ(last_error(), "");
}

TEST(Null, IsRefusedEverywhereBeforeAnythingElse)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model());
    ov_compiled_model_t *compiled = nullptr;
    ov_output_port_t *port = nullptr;
    ov_tensor_t *tensor = nullptr;
    char *text = nullptr;
    size_t n = 0;
    EXPECT_EQ(ov_core_create(nullptr), INVALID_C_PARAM);
    EXPECT_EQ(ov_core_create_with_config(nullptr, nullptr), INVALID_C_PARAM);
    EXPECT_EQ(ov_core_compile_model(nullptr, model.get(), "GPU", 0, &compiled),
              INVALID_C_PARAM);
    EXPECT_EQ(ov_core_compile_model(core.get(), nullptr, "GPU", 0, &compiled),
              INVALID_C_PARAM);
    EXPECT_EQ(ov_core_compile_model(core.get(), model.get(), "GPU", 0, nullptr),
              INVALID_C_PARAM);
    EXPECT_EQ(ov_core_compile_model(core.get(), model.get(), "GPU", 1, &compiled, "KEY"),
              INVALID_C_PARAM);
    EXPECT_EQ(ov_core_set_properties(core.get(), "GPU", 0, nullptr), INVALID_C_PARAM);
    EXPECT_EQ(ov_core_get_property(core.get(), "GPU", nullptr, &text), INVALID_C_PARAM);
    EXPECT_EQ(ov_core_get_property(core.get(), nullptr, "CACHE_DIR", &text),
              UNKNOW_EXCEPTION);
    EXPECT_EQ(ov_core_get_available_devices(core.get(), nullptr), INVALID_C_PARAM);
    EXPECT_EQ(ov_model_input(nullptr, &port), INVALID_C_PARAM);
    EXPECT_EQ(ov_model_inputs_size(model.get(), nullptr), INVALID_C_PARAM);
    EXPECT_EQ(ov_compiled_model_inputs_size(nullptr, &n), INVALID_C_PARAM);
    EXPECT_EQ(ov_infer_request_infer(nullptr), INVALID_C_PARAM);
    EXPECT_EQ(ov_infer_request_wait(nullptr), INVALID_C_PARAM);
    EXPECT_EQ(ov_tensor_create(F32, {1, nullptr}, &tensor), INVALID_C_PARAM);
    EXPECT_EQ(ov_shape_free(nullptr), INVALID_C_PARAM);
    EXPECT_EQ(ov_core_read_model_from_memory_buffer(core.get(), "x", 0, nullptr, nullptr),
              INVALID_C_PARAM);
}

/* A NULL in a list is named by its index where that is known. */
TEST(Null, InListsIsNamed)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model());
    ov_compiled_model_t *compiled = nullptr;
    const ov_property_t list[] = {{"PERF_COUNT", "YES"}, {"PERF_COUNT", nullptr}};
    EXPECT_EQ(refusal([&] { return ov_core_set_properties(core.get(), "GPU", 2, list); }),
              "property 1 of 2: its value is NULL");
    EXPECT_EQ(
        refusal([&] { return ov_core_set_properties(core.get(), "GPU", 2, nullptr); }),
        "the list of 2 properties is NULL");
    EXPECT_NE(refusal([&] {
                  return ov_core_compile_model(core.get(), model.get(), "GPU", 1,
                                               &compiled, "KEY");
              }).find("must be pairs of a key and a value, at most"),
              std::string::npos);
}

TEST(Null, IsAllowedForEveryFree)
{
    ov_free(nullptr);
    ov_core_free(nullptr);
    ov_model_free(nullptr);
    ov_compiled_model_free(nullptr);
    ov_infer_request_free(nullptr);
    ov_tensor_free(nullptr);
    ov_output_port_free(nullptr);
    ov_output_const_port_free(nullptr);
    ov_partial_shape_free(nullptr);
    ov_version_free(nullptr);
    ov_core_versions_free(nullptr);
    ov_available_devices_free(nullptr);
    ov_profiling_info_list_free(nullptr);
}

TEST(Core, NamesWhatItDoesNotKnow)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model());
    ov_compiled_model_t *compiled = nullptr;
    ov_core_version_list_t versions = {nullptr, 0};
    char *text = nullptr;
    EXPECT_EQ(ov_core_compile_model(core.get(), model.get(), "NOPE", 0, &compiled),
              GENERAL_ERROR);
    EXPECT_NE(last_error().find(
                  "Device with \"NOPE\" name is not registered in the OpenVINO Runtime"),
              std::string::npos);
    EXPECT_EQ(ov_core_get_versions_by_device_name(core.get(), "NOPE", &versions),
              NOT_FOUND);
    EXPECT_EQ(ov_core_get_property(core.get(), "REFERENCE", "NO_SUCH_KEY", &text),
              GENERAL_ERROR);
    EXPECT_NE(last_error().find("Unsupported property NO_SUCH_KEY by"),
              std::string::npos);
    EXPECT_EQ(ov_core_get_property(core.get(), "", "NO_SUCH_KEY", &text), GENERAL_ERROR);
    EXPECT_EQ(ov_core_compile_model(core.get(), model.get(), "REFERENCE", 2, &compiled,
                                    "NO_SUCH_KEY", "1"),
              GENERAL_ERROR);
    EXPECT_NE(last_error().find("NO_SUCH_KEY"), std::string::npos);
    EXPECT_EQ(ov_core_import_model(core.get(), "bytes", 5, "REFERENCE", &compiled),
              NOT_IMPLEMENTED);
    EXPECT_EQ(ov_core_create_with_config("no_such_plugins.xml", nullptr),
              INVALID_C_PARAM);
    ov_core_t *other = nullptr;
    EXPECT_EQ(ov_core_create_with_config("no_such_plugins.xml", &other), GENERAL_ERROR);
    EXPECT_EQ(compiled, nullptr);
}

TEST(Core, RefusesDamagedModels)
{
    Core core = make_core();
    ov_model_t *model = nullptr;
    const std::string whole = add_model();
    for (size_t n = 1; n < whole.size(); n += 97)
        EXPECT_EQ(ov_core_read_model_from_memory_buffer(core.get(), whole.data(), n,
                                                        nullptr, &model),
                  GENERAL_ERROR);
    EXPECT_EQ(model, nullptr);
}

TEST(Ports, AnswerAsDocumentedWhenThereIsNone)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model());
    Compiled compiled = compile(core.get(), model.get());
    ov_output_port_t *port = nullptr;
    ov_output_const_port_t *const_port = nullptr;
    EXPECT_EQ(ov_model_input(model.get(), &port), GENERAL_ERROR); /* there are two */
    EXPECT_EQ(ov_model_input_by_index(model.get(), 2, &port), UNKNOW_EXCEPTION);
    EXPECT_EQ(ov_model_const_output_by_index(model.get(), 1, &const_port),
              UNKNOW_EXCEPTION);
    EXPECT_EQ(ov_model_input_by_name(model.get(), "nope", &port), GENERAL_ERROR);
    EXPECT_EQ(last_error(), "Port for tensor name nope was not found");
    EXPECT_EQ(ov_compiled_model_input_by_index(compiled.get(), 2, &const_port),
              GENERAL_ERROR);
    EXPECT_EQ(ov_compiled_model_input(compiled.get(), &const_port), GENERAL_ERROR);
    EXPECT_EQ(ov_compiled_model_set_property(compiled.get(), "PERF_COUNT", "YES"),
              GENERAL_ERROR);
    EXPECT_EQ(port, nullptr);
    EXPECT_EQ(const_port, nullptr);
}

TEST(Request, RefusesTensorsThatDoNotFit)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model());
    Compiled compiled = compile(core.get(), model.get());
    Request request = make_request(compiled.get());
    float numbers[6] = {0};
    int64_t dims[] = {1, 2};
    ov_tensor_t *integers = nullptr;
    ASSERT_EQ(ov_tensor_create(I64, {2, dims}, &integers), OK);
    EXPECT_EQ(ov_infer_request_set_tensor(request.get(), "a", integers), GENERAL_ERROR);
    EXPECT_NE(last_error().find("found i64[1,2]"), std::string::npos) << last_error();
    ov_tensor_free(integers);
    Tensor wide = wrap(numbers, 2, 3);
    EXPECT_EQ(ov_infer_request_set_tensor(request.get(), "a", wide.get()), GENERAL_ERROR);
    EXPECT_EQ(ov_infer_request_set_tensor(request.get(), "nope", wide.get()),
              GENERAL_ERROR);
    EXPECT_EQ(ov_infer_request_set_input_tensor(request.get(), wide.get()),
              GENERAL_ERROR);
    EXPECT_EQ(ov_infer_request_set_input_tensor_by_index(request.get(), 2, wide.get()),
              GENERAL_ERROR);
    EXPECT_EQ(ov_infer_request_infer(request.get()), GENERAL_ERROR);
    EXPECT_EQ(last_error(), "input 'a' has not been set");
    EXPECT_EQ(ov_infer_request_wait_for(request.get(), 0), GENERAL_ERROR);
    EXPECT_EQ(ov_infer_request_wait(request.get()), GENERAL_ERROR);
    EXPECT_EQ(last_error(), "input 'a' has not been set");
}

TEST(Request, CannotPutAResultIntoMemoryThatIsTooSmall)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model());
    Compiled compiled = compile(core.get(), model.get());
    Request request = make_request(compiled.get());
    float a[4] = {1, 2, 3, 4}, b[4] = {1, 1, 1, 1}, small[2] = {0};
    Tensor ta = wrap(a, 2), tb = wrap(b, 2), ty = wrap(small, 1);
    EXPECT_EQ(ov_infer_request_set_tensor(request.get(), "a", ta.get()), OK);
    EXPECT_EQ(ov_infer_request_set_tensor(request.get(), "b", tb.get()), OK);
    EXPECT_EQ(ov_infer_request_set_output_tensor(request.get(), ty.get()), OK);
    EXPECT_EQ(ov_infer_request_infer(request.get()), GENERAL_ERROR);
    EXPECT_NE(last_error().find("8 bytes"), std::string::npos) << last_error();
}

/* The library is not loaded: its name must be that of a tokenizer extension. */
TEST(Extension, OnlyTokenizersAreTaken)
{
    const Core core = make_core();
    const std::filesystem::path folder =
        std::filesystem::path(testing::TempDir()) / "xemoe_extensions";
    std::filesystem::create_directories(folder);
    const struct {
        const char *name, *content, *sentence;
    } files[] = {
        {"libopenvino_tokenizers.so",
         "\x7f"
         "ELF",
         nullptr},
        {"libopenvino_tokenizers.so.2026",
         "\x7f"
         "ELF\x02",
         nullptr},
        {"libother.so",
         "\x7f"
         "ELF",
         "is not loaded"},
        {"openvino_tokenizers.txt", "text", "is not a shared library"},
        {"empty_openvino_tokenizers.so", "", "is not a shared library"},
    };
    for (const auto &f : files) {
        const std::string path = (folder / f.name).string();
        std::ofstream(path, std::ios::binary) << f.content;
        const ov_status_e code = ov_core_add_extension(core.get(), path.c_str());
        EXPECT_EQ(code, f.sentence ? GENERAL_ERROR : OK) << f.name;
        if (f.sentence) {
            EXPECT_NE(last_error().find(f.sentence), std::string::npos) << last_error();
        }
    }
    const std::string gone = (folder / "libopenvino_tokenizers_gone.so").string();
    EXPECT_EQ(ov_core_add_extension(core.get(), gone.c_str()), GENERAL_ERROR);
    EXPECT_NE(last_error().find("Could not open the file"), std::string::npos);
    EXPECT_EQ(ov_core_add_extension(core.get(), folder.c_str()), GENERAL_ERROR);
    EXPECT_EQ(ov_core_add_extension(nullptr, gone.c_str()), INVALID_C_PARAM);
    EXPECT_EQ(ov_core_add_extension(core.get(), nullptr), INVALID_C_PARAM);
    std::filesystem::remove_all(folder);
}

} // namespace
