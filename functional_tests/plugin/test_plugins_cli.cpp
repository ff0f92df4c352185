/* SPDX-License-Identifier: Apache-2.0
 *
 * The program with a device plugin: it lists the device, and runs models on it as on other
 * devices.
 */
#include "functional_tests/common/program.h"

namespace
{

const char model[] = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

class PluginInProgram : public testing::Test
{
  protected:
    PluginInProgram()
    {
        write(XM_EXAMPLE);
    }

    ~PluginInProgram() override
    {
        unlink(path.c_str());
    }

    void write(const std::string &library)
    {
        std::ofstream(path) << "<ie><plugins><plugin name=\"EXAMPLE\" location=\""
                            << library << "\"/></plugins></ie>";
    }

    Outcome run_with(const Words &arguments)
    {
        return run(arguments, {"XM_PLUGINS=" + path});
    }

    const std::string path =
        testing::TempDir() + "xemoe_list_" + std::to_string(getpid()) + ".xml";
};

bool
has(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

TEST_F(PluginInProgram, IsListed)
{
    const Outcome o = run_with({"devices"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(has(o.out, "\nREFERENCE: "));
    EXPECT_TRUE(has(o.out, "\nEXAMPLE: plain C on the processor\n  example plugin 1.0; "
                           "library " XM_EXAMPLE "\n"))
        << o.out;
    const Outcome j = run_with({"devices", "--json"});
    EXPECT_TRUE(has(j.out, "\"EXAMPLE\"") && has(j.out, "\"library\"")) << j.out;
    EXPECT_FALSE(has(run({"devices"}).out, "EXAMPLE"));
}

TEST_F(PluginInProgram, MakesTheTextOfTheReference)
{
    const auto generate = [&](const char *device) {
        const Outcome o = run_with(
            {"generate", "-m", model, "-d", device, "-p", "The answer is", "-n", "12"});
        EXPECT_EQ(o.code, 0) << o.err;
        return o.out;
    };
    const std::string text = generate("EXAMPLE");
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text, generate("REFERENCE"));
}

TEST_F(PluginInProgram, IsTimed)
{
    const Outcome o = run_with({"benchmark_app", "-m", XM_EXAMPLE_DIR "/small.xml", "-d",
                                "EXAMPLE", "-niter", "4", "-pc"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(has(o.out, "Count:            4 iterations")) << o.out;
    EXPECT_TRUE(has(o.out, "example_matmul")) << o.out;
}

/* The properties that benchmark_app dumps for a device can be loaded again: none is unknown to
 * it. */
TEST_F(PluginInProgram, HasPropertiesThatAreDumpedAndLoaded)
{
    const std::string dumped = path + ".json";
    const Words words = {
        "benchmark_app", "-m", XM_EXAMPLE_DIR "/small.xml", "-d", "EXAMPLE",
        "-niter",        "1"};
    Words dump = words, load = words;
    dump.insert(dump.end(),
                {"-nstreams", "1", "-hint", "latency", "-dump_config", dumped});
    load.insert(load.end(), {"-load_config", dumped});
    for (const Words &each : {dump, load}) {
        const Outcome o = run_with(each);
        EXPECT_EQ(o.code, 0) << o.out;
        EXPECT_TRUE(has(o.out, "Start inference synchronously")) << o.out;
        EXPECT_EQ(has(o.out, "-nstreams: NUM_STREAMS has no effect"), each == dump);
        EXPECT_FALSE(has(o.out, "-load_config"));
    }
    unlink(dumped.c_str());
}

TEST_F(PluginInProgram, SaysWhatItHasNot)
{
    const struct {
        Words arguments;
        int code;
        const char *out, *err;
    } cases[] = {
        {{"info", model, "-v", "-d", "EXAMPLE"}, 0, "MatMul", ""},
        {{"verify", "-m", model, "-d", "EXAMPLE"},
         2,
         "",
         "device EXAMPLE offers no steps to compare with the reference"},
        {{"plan", model, "-d", "EXAMPLE"}, 4, "", "EXAMPLE is not an OpenCL device"},
        {{"compile", model, "-d", "EXAMPLE", "-o", "/dev/null"},
         3,
         "",
         "plugin EXAMPLE cannot export compiled models"},
        {{"generate", "-m", model, "-d", "EXAMPLE", "-p", "x", "--kv", "u8"},
         3,
         "",
         "plugin EXAMPLE: there is no property 'KV_CACHE_PRECISION'"},
        {{"generate", "-m", model, "-d", "EXAMPLE.1", "-p", "x"}, 4, "", "available: "},
    };
    for (const auto &c : cases) {
        const Outcome o = run_with(c.arguments);
        EXPECT_EQ(o.code, c.code) << c.arguments[0] << ": " << o.err;
        EXPECT_TRUE(has(o.out, c.out)) << c.arguments[0];
        EXPECT_TRUE(has(o.err, c.err)) << c.arguments[0] << ": " << o.err;
    }
}

TEST_F(PluginInProgram, IsLeftOutWhereItCannotBeLoaded)
{
    write(XM_OTHER_VERSION);
    const Outcome o = run_with({"devices"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_FALSE(has(o.out, "EXAMPLE"));
    EXPECT_TRUE(has(o.err, "device EXAMPLE is not available: ") &&
                has(o.err, "built for version 2 of xemoe/plugin.h"))
        << o.err;
    const Outcome g = run_with({"generate", "-m", model, "-d", "EXAMPLE", "-p", "x"});
    EXPECT_EQ(g.code, 4) << g.err;
    EXPECT_TRUE(has(g.err, "build the plugin again")) << g.err;
    std::ofstream(path) << "no list\n";
    const Outcome n = run_with({"devices"});
    EXPECT_NE(n.code, 0);
    EXPECT_TRUE(has(n.err, "XM_PLUGINS: '" + path + "' is not a list of plugins"))
        << n.err;
}

} // namespace
