/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime model of a compiled model, and its file; models that are read and written again;
 * names of nodes behind ports.
 */
#include "functional_tests/api/api_test.h"

#include <expat.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "xemoe/xemoe.h"

namespace
{

const char model_path[] =
    XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml";

std::string
file_name(const std::string &what)
{
    return testing::TempDir() + "xm_runtime_" + std::to_string(getpid()) + "_" + what;
}

using Attributes = std::map<std::string, std::string>;

/* The layers of a file with their data, the edges, and the name of the net. */
struct Xml {
    std::string net;
    std::vector<Attributes> layers, edges;

    static void XMLCALL begin(void *ctx, const XML_Char *element, const XML_Char **list)
    {
        auto *x = static_cast<Xml *>(ctx);
        const std::string name = element;
        Attributes all;
        for (; *list; list += 2)
            all[list[0]] = list[1];
        if (name == "net")
            x->net = all["name"];
        else if (name == "layer")
            x->layers.push_back(all);
        else if (name == "data")
            x->layers.back().insert(all.begin(), all.end());
        else if (name == "edge")
            x->edges.push_back(all);
    }

    explicit Xml(const std::string &path)
    {
        std::ifstream file(path);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        XML_Parser p = XML_ParserCreate(nullptr);
        XML_SetUserData(p, this);
        XML_SetStartElementHandler(p, begin);
        EXPECT_EQ(XML_Parse(p, text.data(), (int)text.size(), 1), XML_STATUS_OK)
            << XML_ErrorString(XML_GetErrorCode(p)) << " in line "
            << XML_GetCurrentLineNumber(p);
        XML_ParserFree(p);
    }

    size_t count(const std::string &type) const
    {
        size_t n = 0;
        for (const Attributes &l : layers)
            n += l.at("type") == type;
        return n;
    }
};

Model
runtime_model(ov_compiled_model_t *compiled)
{
    ov_model_t *model = nullptr;
    EXPECT_EQ(ov_compiled_model_get_runtime_model(compiled, &model), OK) << last_error();
    return Model(model);
}

Xml
saved(ov_model_t *model)
{
    const std::string path = file_name("graph.xml");
    EXPECT_EQ(xm_model_save(model, path.c_str()), OK) << last_error();
    Xml x(path);
    remove(path.c_str());
    return x;
}

bool
has_device(ov_core_t *core, const char *name)
{
    char *text = nullptr;
    const bool found = ov_core_get_property(core, name, "FULL_DEVICE_NAME", &text) == OK;
    ov_free(text);
    return found;
}

class RuntimeModel : public testing::TestWithParam<const char *>
{
  protected:
    void SetUp() override
    {
        if (!has_device(core.get(), GetParam()))
            GTEST_SKIP() << "no device " << GetParam();
    }
    Core core = make_core();
};

INSTANTIATE_TEST_SUITE_P(Devices, RuntimeModel,
                         testing::Values("GPU", "CPU", "REFERENCE"),
                         [](const auto &info) { return info.param; });

TEST_P(RuntimeModel, HasTheNameAndThePortsOfTheModel)
{
    Model model = read_text(core.get(), add_model(true));
    Compiled compiled = compile(core.get(), model.get(), GetParam());
    Model runtime = runtime_model(compiled.get());
    compiled.reset();
    char *name = nullptr;
    ASSERT_EQ(ov_model_get_friendly_name(runtime.get(), &name), OK);
    EXPECT_STREQ(name, "adder");
    ov_free(name);
    size_t n = 0;
    EXPECT_EQ(ov_model_inputs_size(runtime.get(), &n), OK);
    EXPECT_EQ(n, 2u);
    EXPECT_EQ(ov_model_outputs_size(runtime.get(), &n), OK);
    EXPECT_EQ(n, 1u);
    EXPECT_FALSE(ov_model_is_dynamic(runtime.get()));
    ov_output_const_port_t *port = nullptr;
    ASSERT_EQ(ov_model_const_input_by_name(runtime.get(), "b", &port), OK)
        << last_error();
    ConstPort owned(port);
    const Xml x = saved(runtime.get());
    EXPECT_EQ(x.net, "adder");
    ASSERT_EQ(x.layers.size(), 4u);
    EXPECT_EQ(x.count("Input"), 2u);
    EXPECT_EQ(x.count("Output"), 1u);
    EXPECT_EQ(x.edges.size(), 3u);
    const Attributes &add = x.layers[2];
    EXPECT_EQ(add.at("name"), "add");
    EXPECT_EQ(add.at("layerType"), "Add");
    EXPECT_EQ(add.at("originalLayersNames"), "add");
    EXPECT_EQ(add.at("runtimePrecision"), "f32");
    EXPECT_EQ(add.at("outputPrecisions"), "f32");
    EXPECT_EQ(add.at("execTimeMcs"), "not_executed");
    EXPECT_EQ(add.at("execOrder"), "2");
    const std::string exec = add.at("execType");
    EXPECT_EQ(exec.substr(exec.size() - 4), "_f32") << exec;
}

TEST_P(RuntimeModel, CanBeNeitherCompiledNorReshaped)
{
    Model model = read_text(core.get(), add_model(true));
    Compiled compiled = compile(core.get(), model.get(), GetParam());
    Model runtime = runtime_model(compiled.get());
    ov_compiled_model_t *again = nullptr;
    EXPECT_EQ(ov_core_compile_model(core.get(), runtime.get(), GetParam(), 0, &again),
              GENERAL_ERROR);
    EXPECT_EQ(last_error(),
              "a runtime model only describes a compiled model; it cannot be compiled");
    EXPECT_EQ(again, nullptr);
    int64_t dims[] = {5, 2};
    ov_partial_shape_t shape = {};
    ASSERT_EQ(ov_partial_shape_create_static(2, dims, &shape), OK);
    EXPECT_EQ(ov_model_reshape_input_by_name(runtime.get(), "a", shape), GENERAL_ERROR);
    EXPECT_EQ(last_error(),
              "a runtime model only describes a compiled model; it cannot be reshaped");
    ov_partial_shape_free(&shape);
}

TEST_P(RuntimeModel, OfALanguageModelNamesTheKernelsOfItsExperts)
{
    ov_compiled_model_t *c = nullptr;
    ASSERT_EQ(ov_core_compile_model_from_file(core.get(), model_path, GetParam(), 0, &c),
              OK)
        << last_error();
    Compiled compiled(c);
    Model runtime = runtime_model(c);
    EXPECT_TRUE(ov_model_is_dynamic(runtime.get()));
    const Xml x = saved(runtime.get());
    size_t n = 0;
    for (const Attributes &l : x.layers) {
        if (l.at("layerType") != "MOE3GemmFusedCompressed")
            continue;
        n++;
        const bool is_reference = std::string(GetParam()) == "REFERENCE";
        EXPECT_NE(
            l.at("primitiveType").find(is_reference ? "host_reference" : "moe_down"),
            std::string::npos)
            << l.at("primitiveType");
        EXPECT_NE(l.at("originalLayersNames").find(','), std::string::npos)
            << l.at("originalLayersNames");
    }
    EXPECT_EQ(n, 2u);
    for (const Attributes &e : x.edges) {
        EXPECT_LT(std::stoul(e.at("from-layer")), std::stoul(e.at("to-layer")));
        EXPECT_LT(std::stoul(e.at("to-layer")), x.layers.size());
    }
}

/* Counts the runs of all requests, also of freed ones. */
TEST(RuntimeModelTimes, AreOfTheRunsSoFarWherePerformanceIsCounted)
{
    Core core = make_core();
    if (!has_device(core.get(), "GPU"))
        GTEST_SKIP() << "no OpenCL device";
    for (const bool counts : {false, true}) {
        Model model = read_text(core.get(), add_model());
        ov_compiled_model_t *c = nullptr;
        ASSERT_EQ(ov_core_compile_model(core.get(), model.get(), "GPU", 2, &c,
                                        ov_property_key_enable_profiling,
                                        counts ? "YES" : "NO"),
                  OK)
            << last_error();
        Compiled compiled(c);
        EXPECT_EQ(saved(runtime_model(c).get()).layers[2].at("execTimeMcs"),
                  "not_executed");
        std::vector<float> a(1 << 20, 1), b(1 << 20, 2);
        for (int i = 0; i < 3; i++) {
            Request request = make_request(c);
            ov_infer_request_set_input_tensor_by_index(request.get(), 0,
                                                       wrap(a.data(), 1 << 19).get());
            ov_infer_request_set_input_tensor_by_index(request.get(), 1,
                                                       wrap(b.data(), 1 << 19).get());
            ASSERT_EQ(ov_infer_request_infer(request.get()), OK) << last_error();
        }
        const Xml x = saved(runtime_model(c).get());
        const std::string time = x.layers[2].at("execTimeMcs");
        if (counts) {
            EXPECT_EQ(time.find_first_not_of("0123456789"), std::string::npos) << time;
            EXPECT_GT(std::stoul(time), 0u) << "no device adds a million in none at all";
        } else {
            EXPECT_EQ(time, "not_executed");
        }
        EXPECT_EQ(x.layers[0].at("execTimeMcs"), "not_executed") << "of an input";
    }
}

/* For a blob no pass has run: each layer is named only after itself. */
TEST(RuntimeModelOfABlob, NamesTheSameSteps)
{
    Core core = make_core();
    if (!has_device(core.get(), "GPU"))
        GTEST_SKIP() << "no OpenCL device";
    ov_compiled_model_t *c = nullptr, *again = nullptr;
    ASSERT_EQ(ov_core_compile_model_from_file(core.get(), model_path, "GPU", 0, &c), OK)
        << last_error();
    Compiled compiled(c);
    const std::string path = file_name("blob");
    ASSERT_EQ(ov_compiled_model_export_model(c, path.c_str()), OK) << last_error();
    ASSERT_EQ(xm_import_model_from_file(core.get(), path.c_str(), "GPU", &again), OK)
        << last_error();
    Compiled imported(again);
    const Xml a = saved(runtime_model(c).get()), b = saved(runtime_model(again).get());
    remove(path.c_str());
    EXPECT_EQ(a.net, b.net);
    ASSERT_EQ(a.layers.size(), b.layers.size());
    for (size_t i = 0; i < a.layers.size(); i++) {
        for (const char *key : {"name", "layerType", "execType", "outputPrecisions"})
            EXPECT_EQ(a.layers[i].at(key), b.layers[i].at(key));
    }
    EXPECT_EQ(a.edges.size(), b.edges.size());
}

TEST(RuntimeModelErrors, LeaveTheModelAlone)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model());
    Compiled compiled = compile(core.get(), model.get());
    Model runtime = runtime_model(compiled.get());
    ov_model_t *out = nullptr;
    EXPECT_EQ(ov_compiled_model_get_runtime_model(nullptr, &out), INVALID_C_PARAM);
    EXPECT_EQ(ov_compiled_model_get_runtime_model(compiled.get(), nullptr),
              INVALID_C_PARAM);
    EXPECT_EQ(xm_model_save(nullptr, "x.xml"), INVALID_C_PARAM);
    EXPECT_EQ(xm_model_save(runtime.get(), nullptr), INVALID_C_PARAM);
    const std::string path = file_name("missing") + "/graph.xml";
    EXPECT_EQ(xm_model_save(runtime.get(), path.c_str()), GENERAL_ERROR);
    EXPECT_NE(last_error().find(path), std::string::npos) << last_error();
    EXPECT_EQ(xm_model_save(model.get(), path.c_str()), GENERAL_ERROR);
    const std::string folder = file_name("folder.xml"), bin = file_name("folder.bin");
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    EXPECT_EQ(xm_model_save(model.get(), folder.c_str()), GENERAL_ERROR);
    EXPECT_NE(last_error().find(folder), std::string::npos) << last_error();
    EXPECT_FALSE(std::ifstream(bin).good()) << "weights that nothing refers to";
    rmdir(folder.c_str());
}

TEST(SavedModel, ComputesWhatTheFirstDoes)
{
    Core core = make_core();
    const std::string path = file_name("again.xml"), bin = file_name("again.bin");
    Model first = read_text(core.get(), add_model());
    ASSERT_EQ(xm_model_save(first.get(), path.c_str()), OK) << last_error();
    ov_model_t *m = nullptr;
    ASSERT_EQ(ov_core_read_model(core.get(), path.c_str(), nullptr, &m), OK)
        << last_error();
    Model again(m);
    Compiled compiled = compile(core.get(), again.get());
    Request request = make_request(compiled.get());
    float a[6] = {1, 2}, b[6] = {3, 4}, y[6] = {};
    for (auto &[name, data] : {std::pair{"a", a}, {"b", b}, {"y", y}}) {
        Tensor t = wrap(data, 3);
        EXPECT_EQ(ov_infer_request_set_tensor(request.get(), name, t.get()), OK)
            << last_error();
    }
    ASSERT_EQ(ov_infer_request_infer(request.get()), OK) << last_error();
    EXPECT_EQ(y[0], 4);
    remove(path.c_str());
    remove(bin.c_str());
}

/* Its weights are mapped from the file that would be overwritten. */
TEST(SavedModel, IsNotWrittenOverItself)
{
    Core core = make_core();
    const std::string path = file_name("self.xml"), bin = file_name("self.bin");
    ov_model_t *m = nullptr;
    ASSERT_EQ(ov_core_read_model(core.get(), model_path, nullptr, &m), OK);
    Model first(m);
    ASSERT_EQ(xm_model_save(m, path.c_str()), OK) << last_error();
    ASSERT_EQ(ov_core_read_model(core.get(), path.c_str(), nullptr, &m), OK)
        << last_error();
    Model copy(m);
    EXPECT_EQ(xm_model_save(copy.get(), path.c_str()), GENERAL_ERROR);
    EXPECT_NE(last_error().find("this file holds the weights of the model"),
              std::string::npos)
        << last_error();
    EXPECT_EQ(xm_model_save(copy.get(), bin.c_str()), GENERAL_ERROR)
        << "the model's text in place of its weights";
    EXPECT_EQ(last_error(),
              "cannot write '" + bin + "': this file holds the weights of the model");
    EXPECT_FALSE(std::ifstream(bin + ".bin").good());
    EXPECT_EQ(xm_model_save(copy.get(), file_name("self2.xml").c_str()), OK)
        << last_error();
    for (const std::string &file :
         {path, bin, file_name("self2.xml"), file_name("self2.bin")})
        remove(file.c_str());
}

TEST(SavedModel, IsNotWrittenOverAGgufFileThatItWasReadFrom)
{
    Core core = make_core();
    const std::string path = file_name("self.gguf");
    std::filesystem::copy_file(XM_MODELS_DIR
                               "/qwen3moe-tiny/gguf/qwen3moe-tiny-Q2_K.gguf",
                               path, std::filesystem::copy_options::overwrite_existing);
    const auto size = std::filesystem::file_size(path);
    ov_model_t *m = nullptr;
    ASSERT_EQ(ov_core_read_model(core.get(), path.c_str(), nullptr, &m), OK)
        << last_error();
    Model model(m);
    EXPECT_EQ(xm_model_save(m, path.c_str()), GENERAL_ERROR);
    EXPECT_EQ(last_error(),
              "cannot write '" + path + "': this file holds the weights of the model");
    EXPECT_EQ(std::filesystem::file_size(path), size);
    remove(path.c_str());
}

/* A folder has the file's name, so that writing fails: the files that were there stay a valid
 * model. */
TEST(SavedModel, ThatCannotBeWrittenLeavesTheOldOne)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model());
    const std::string path = file_name("kept.xml"), bin = file_name("kept.bin");
    ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
    std::ofstream(bin) << "weights of old";
    EXPECT_EQ(xm_model_save(model.get(), path.c_str()), GENERAL_ERROR);
    EXPECT_EQ(last_error(), "'" + path + "' cannot be written: Is a directory");
    std::ifstream file(bin);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "weights of old");
    rmdir(path.c_str());
    remove(bin.c_str());
}

TEST(Ports, TellTheNamesOfTheirNodes)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model());
    ov_output_const_port_t *p = nullptr;
    ASSERT_EQ(ov_model_const_output(model.get(), &p), OK);
    ConstPort output(p);
    ASSERT_EQ(ov_model_const_input_by_index(model.get(), 1, &p), OK);
    ConstPort input(p);
    char *name = nullptr;
    ASSERT_EQ(xm_port_node_name(output.get(), &name), OK);
    EXPECT_STREQ(name, "add"); /* the node before the result */
    ov_free(name);
    ASSERT_EQ(xm_port_node_name(input.get(), &name), OK);
    EXPECT_STREQ(name, "b");
    ov_free(name);
    EXPECT_EQ(xm_port_node_name(nullptr, &name), INVALID_C_PARAM);
    EXPECT_EQ(xm_port_node_name(input.get(), nullptr), INVALID_C_PARAM);
}

} // namespace
