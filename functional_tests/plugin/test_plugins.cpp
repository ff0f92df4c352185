/* SPDX-License-Identifier: Apache-2.0
 *
 * Device plugins in libraries, through the public headers: valid ones, invalid ones, lifetimes.
 */
#include "functional_tests/api/api_test.h"
#include "xemoe/xemoe.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>
#include <vector>

namespace
{

ov_status_e
register_plugin(const Core &core, const std::string &name, const std::string &library)
{
    return xm_register_plugin(core.get(), name.c_str(), library.c_str());
}

std::string
devices(const Core &core)
{
    ov_available_devices_t list = {nullptr, 0};
    std::string names;
    EXPECT_EQ(ov_core_get_available_devices(core.get(), &list), OK);
    for (size_t i = 0; i < list.size; i++)
        names += std::string(list.devices[i]) + " ";
    ov_available_devices_free(&list);
    return names;
}

/* Sanitizers keep freed libraries' memory for a while. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const bool keeps_what_is_freed = true;
#elif defined(__has_feature) /* Clang */
const bool keeps_what_is_freed =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
const bool keeps_what_is_freed = false;
#endif

bool
is_mapped(const std::string &library)
{
    std::ifstream maps("/proc/self/maps");
    std::stringstream text;
    text << maps.rdbuf();
    return text.str().find(library) != std::string::npos;
}

Compiled
compile_small(ov_core_t *core, const char *device)
{
    ov_compiled_model_t *c = nullptr;
    EXPECT_EQ(
        ov_core_compile_model_from_file(core, XM_EXAMPLE_DIR "/small.xml", device, 0, &c),
        OK)
        << last_error();
    return Compiled(c);
}

/* Runs y = softmax(a b) and returns y. */
std::vector<float>
run_small(ov_infer_request_t *request)
{
    /* static, because later runs read them, too */
    static float a[6] = {1, -2, 3, 0.5f, 0, -1};
    static float b[12] = {-1.5f, -0.5f, 0.5f, 1.5f, 2.5f,  -1.5f,
                          -0.5f, 0.5f,  1.5f, 2.5f, -1.5f, -0.5f};
    EXPECT_EQ(ov_infer_request_set_tensor(request, "a", wrap(a, 2, 3).get()), OK);
    EXPECT_EQ(ov_infer_request_set_tensor(request, "b", wrap(b, 3, 4).get()), OK);
    EXPECT_EQ(ov_infer_request_infer(request), OK) << last_error();
    ov_tensor_t *y = nullptr;
    void *data = nullptr;
    EXPECT_EQ(ov_infer_request_get_tensor(request, "y", &y), OK) << last_error();
    Tensor owner(y);
    EXPECT_EQ(ov_tensor_data(y, &data), OK);
    const float *f = static_cast<float *>(data);
    return std::vector<float>(f, f + 8);
}

std::vector<float>
run_on(ov_core_t *core, const char *device)
{
    Compiled c = compile_small(core, device);
    return run_small(make_request(c.get()).get());
}

class Plugins : public testing::Test
{
  protected:
    Plugins()
    {
        ov_shutdown();
        std::filesystem::create_directories(folder);
    }

    ~Plugins() override
    {
        ov_shutdown();
        std::filesystem::remove_all(folder);
    }

    std::string write_list(const std::string &name, const std::string &library,
                           const std::string &properties = "")
    {
        const std::string path = folder + "/plugins.xml";
        std::ofstream(path) << "<ie><plugins><plugin name=\"" << name << "\" location=\""
                            << library << "\"><properties>" << properties
                            << "</properties></plugin></plugins></ie>";
        return path;
    }

    const std::string folder =
        testing::TempDir() + "xemoe_libraries_" + std::to_string(getpid());
};

/* ---- valid plugins -------------------------------------------------------------------- */

TEST_F(Plugins, AreRegisteredByACall)
{
    Core core = make_core();
    EXPECT_EQ(devices(core).find("EXAMPLE"), std::string::npos);
    ASSERT_EQ(register_plugin(core, "EXAMPLE", XM_EXAMPLE), OK) << last_error();
    EXPECT_NE(devices(core).find("EXAMPLE "), std::string::npos);
    EXPECT_EQ(devices(core).find("REFERENCE"), std::string::npos);
    const std::vector<float> found = run_on(core.get(), "EXAMPLE");
    const std::vector<float> expected = run_on(core.get(), "REFERENCE");
    for (size_t i = 0; i < expected.size(); i++)
        EXPECT_NEAR(found[i], expected[i], 1e-6);
    char *text = nullptr;
    ASSERT_EQ(ov_core_get_property(core.get(), "EXAMPLE", "FULL_DEVICE_NAME", &text), OK);
    EXPECT_STREQ(text, "plain C on the processor");
    ov_free(text);
    ov_core_version_list_t versions = {nullptr, 0};
    ASSERT_EQ(ov_core_get_versions_by_device_name(core.get(), "EXAMPLE", &versions), OK);
    EXPECT_STREQ(versions.versions[0].version.description, "example plugin 1.0");
    ov_core_versions_free(&versions);
}

TEST_F(Plugins, MayLeaveAllToTheHost)
{
    Core core = make_core();
    ASSERT_EQ(register_plugin(core, "SMALLEST", XM_SMALLEST), OK) << last_error();
    Compiled c = compile_small(core.get(), "SMALLEST");
    Request r = make_request(c.get());
    for (int i = 0; i < 2; i++)
        EXPECT_EQ(run_small(r.get()), run_on(core.get(), "REFERENCE"));
    ov_compiled_model_t *none = nullptr;
    EXPECT_EQ(ov_core_compile_model_from_file(
                  core.get(),
                  XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml",
                  "SMALLEST", 0, &none),
              GENERAL_ERROR);
    EXPECT_NE(last_error().find("plugin SMALLEST: "), std::string::npos) << last_error();
    EXPECT_NE(last_error().find("neither states nor several results"), std::string::npos);
    EXPECT_EQ(ov_core_compile_model_from_file(core.get(), XM_EXAMPLE_DIR "/small.xml",
                                              "SMALLEST", 2, &none, "KEY", "1"),
              GENERAL_ERROR);
    EXPECT_EQ(last_error(), "plugin SMALLEST: there is no property 'KEY'");
}

TEST_F(Plugins, AreListedInAFile)
{
    const std::string path =
        write_list("EXAMPLE", XM_EXAMPLE, "<property key=\"PERF_COUNT\" value=\"YES\"/>");
    ov_core_t *made = nullptr;
    ASSERT_EQ(ov_core_create_with_config(path.c_str(), &made), OK) << last_error();
    Core core(made);
    EXPECT_FALSE(is_mapped(XM_EXAMPLE)); /* loaded only when it is used */
    Compiled c = compile_small(core.get(), "EXAMPLE");
    EXPECT_TRUE(is_mapped(XM_EXAMPLE));
    Request r = make_request(c.get());
    run_small(r.get());
    ov_profiling_info_list_t infos = {nullptr, 0};
    ASSERT_EQ(ov_infer_request_get_profiling_info(r.get(), &infos), OK) << last_error();
    EXPECT_GE(infos.size, 2u);
    ov_profiling_info_list_free(&infos);
    const std::wstring wide(path.begin(), path.end());
    ASSERT_EQ(ov_core_create_with_config_unicode(wide.c_str(), &made), OK);
    EXPECT_NE(devices(Core(made)).find("EXAMPLE"), std::string::npos);
}

TEST_F(Plugins, ListsHaveAPropertyThatThePluginKnows)
{
    const std::string path =
        write_list("EXAMPLE", XM_EXAMPLE, "<property key=\"NOPE\" value=\"1\"/>");
    ov_core_t *made = nullptr;
    ASSERT_EQ(ov_core_create_with_config(path.c_str(), &made), OK);
    Core core(made);
    ov_compiled_model_t *c = nullptr;
    EXPECT_EQ(ov_core_compile_model_from_file(core.get(), XM_EXAMPLE_DIR "/small.xml",
                                              "EXAMPLE", 0, &c),
              GENERAL_ERROR);
    EXPECT_EQ(last_error(), "plugin EXAMPLE: there is no property 'NOPE'");
    EXPECT_EQ(devices(core).find("EXAMPLE"), std::string::npos);
}

TEST_F(Plugins, AreSeveralDevices)
{
    Core core = make_core(), other = make_core();
    ASSERT_EQ(register_plugin(core, "ONE", XM_EXAMPLE), OK);
    ASSERT_EQ(register_plugin(core, "TWO", XM_EXAMPLE), OK);
    ASSERT_EQ(register_plugin(other, "ONE", XM_EXAMPLE), OK);
    EXPECT_EQ(run_on(core.get(), "ONE"), run_on(core.get(), "TWO"));
    core.reset();
    EXPECT_EQ(run_on(other.get(), "ONE").size(), 8u);
}

/* ---- invalid plugins ------------------------------------------------------------------ */

TEST_F(Plugins, ThatAreNoneAreRefusedWithTheReason)
{
    Core core = make_core();
    std::ofstream(folder + "/text.so") << "not a library\n";
    std::ofstream(folder + "/empty.so") << "";
    const struct {
        std::string library, why;
    } cases[] = {
        {XM_OTHER_VERSION, "built for version 2 of xemoe/plugin.h, but this xemoe has "
                           "version 1: build the plugin again"},
        {XM_NO_ENTRY, "has no function xm_ext_entry: it is not a plugin of xemoe"},
        {folder + "/text.so", "cannot be loaded"},
        {folder + "/empty.so", "cannot be loaded"},
        {folder, "cannot be loaded"},
        {folder + "/none.so", "No such file or directory"},
        {"libxemoe_no_such_plugin.so", "cannot be loaded"},
        {"", "has no library name"},
    };
    const std::string before = devices(core);
    for (const auto &c : cases) {
        EXPECT_EQ(register_plugin(core, "BAD", c.library), GENERAL_ERROR) << c.library;
        EXPECT_NE(last_error().find(c.why), std::string::npos) << last_error();
        EXPECT_NE(last_error().find("device BAD"), std::string::npos) << last_error();
        const std::string list = write_list("BAD", c.library);
        ov_core_t *made = nullptr;
        ov_compiled_model_t *m = nullptr;
        ASSERT_EQ(ov_core_create_with_config(list.c_str(), &made), OK) << c.library;
        Core with_list(made);
        EXPECT_EQ(ov_core_compile_model_from_file(made, XM_EXAMPLE_DIR "/small.xml",
                                                  "BAD", 0, &m),
                  GENERAL_ERROR);
        EXPECT_NE(last_error().find(c.why), std::string::npos) << last_error();
    }
    EXPECT_EQ(devices(core), before);
    /* a failed registration leaves the name free */
    ASSERT_EQ(register_plugin(core, "BAD", XM_EXAMPLE), OK);
}

TEST_F(Plugins, ThatAreCutOffDoNotEndTheProcess)
{
    std::ifstream file(XM_EXAMPLE, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    const std::string whole = bytes.str(), path = folder + "/cut.so";
    Core core = make_core();
    size_t cut_off = 0;
    for (size_t n = 0; n < whole.size(); n += n < 1024 ? 61 : 997) {
        unlink(path.c_str());
        std::ofstream(path, std::ios::binary) << whole.substr(0, n);
        const ov_status_e s = register_plugin(core, "CUT" + std::to_string(n), path);
        cut_off += last_error().find("is truncated") != std::string::npos;
        /* bytes after the segments are only for debuggers */
        if (s != OK) {
            EXPECT_NE(last_error().find("cut.so"), std::string::npos) << last_error();
        }
    }
    EXPECT_GT(cut_off, 3u);
}

/* Controls slow_entry.c: its entry waits while this object exists. */
struct SlowEntry {
    SlowEntry()
    {
        may_end(0);
    }

    ~SlowEntry()
    {
        may_end(1);
        dlclose(library);
    }

    void *library = dlopen(XM_SLOW_ENTRY, RTLD_NOW);
    int (*has_begun)() = reinterpret_cast<int (*)()>(dlsym(library, "slow_has_begun"));
    void (*may_end)(int) = reinterpret_cast<void (*)(int)>(dlsym(library,
                                                                 "slow_may_end"));
};

std::string
name_of(const Core &core, const char *device)
{
    char *text = nullptr;
    if (ov_core_get_property(core.get(), device, "FULL_DEVICE_NAME", &text) != OK)
        return last_error();
    std::string name = text;
    ov_free(text);
    return name;
}

TEST_F(Plugins, ThatAreSlowAreWaitedForAlone)
{
    SlowEntry slow;
    ov_core_t *made = nullptr;
    const std::string path = write_list("SLOW", XM_SLOW_ENTRY);
    ASSERT_EQ(ov_core_create_with_config(path.c_str(), &made), OK);
    Core core(made);
    auto ask_slow = [&] { return name_of(core, "SLOW"); };
    auto first = std::async(std::launch::async, ask_slow);
    while (!slow.has_begun())
        std::this_thread::yield();
    auto second = std::async(std::launch::async, ask_slow);
    auto other = std::async(std::launch::async, [&] {
        register_plugin(core, "EXAMPLE", XM_EXAMPLE);
        return name_of(core, "EXAMPLE") + ", " + name_of(core, "REFERENCE");
    });
    EXPECT_EQ(other.wait_for(std::chrono::seconds(300)), std::future_status::ready);
    EXPECT_NE(first.wait_for(std::chrono::seconds(0)), std::future_status::ready);
    EXPECT_NE(second.wait_for(std::chrono::milliseconds(50)), std::future_status::ready);
    slow.may_end(1);
    const std::string why = first.get();
    EXPECT_NE(why.find("slow, and then not"), std::string::npos) << why;
    EXPECT_EQ(second.get(), why);
    EXPECT_NE(other.get().find("plain C on the processor"), std::string::npos);
}

ov_core_t *spoken_of;
int lines;

/* A program's log callback may call the API, even on the core that logs. */
TEST_F(Plugins, ThatAreBrokenAreSpokenOfWhereTheCoreMayBeAsked)
{
    SlowEntry slow;
    slow.may_end(1);
    for (const char *library : {"/no/such/library.so", XM_SLOW_ENTRY}) {
        const std::string path = write_list("BROKEN", library);
        ASSERT_EQ(ov_core_create_with_config(path.c_str(), &spoken_of), OK);
        Core core(spoken_of);
        lines = 0;
        ov_util_set_log_callback([](const char *) {
            ov_available_devices_t list = {nullptr, 0};
            lines++;
            EXPECT_EQ(ov_core_get_available_devices(spoken_of, &list), OK);
            ov_available_devices_free(&list);
        });
        EXPECT_EQ(devices(core).find("BROKEN"), std::string::npos);
        ov_util_set_log_callback(nullptr);
        ov_util_reset_log_callback();
        EXPECT_GE(lines, 1);
    }
}

std::string logged;

TEST_F(Plugins, ThatAreBrokenAreNotPassedOverInSilence)
{
    ov_core_t *made = nullptr;
    const std::string path = write_list("BROKEN", "/no/such/library.so");
    ASSERT_EQ(ov_core_create_with_config(path.c_str(), &made), OK);
    Core core(made);
    logged = "";
    ov_util_set_log_callback([](const char *line) { logged += line; });
    compile_small(core.get(), "AUTO:BROKEN,REFERENCE");
    EXPECT_NE(logged.find("device BROKEN is not available: "), std::string::npos)
        << logged;
    EXPECT_NE(logged.find("/no/such/library.so"), std::string::npos) << logged;
    logged = "";
    compile_small(core.get(), "AUTO:BROKEN,REFERENCE");
    EXPECT_EQ(logged, "");
    ov_util_reset_log_callback();
}

TEST_F(Plugins, HaveNamesOfTheirOwn)
{
    Core core = make_core();
    for (const char *taken : {"GPU", "CPU", "REFERENCE"}) {
        EXPECT_EQ(register_plugin(core, taken, XM_EXAMPLE), GENERAL_ERROR);
        EXPECT_NE(last_error().find("is registered already"), std::string::npos);
    }
    for (const char *bad : {"", "A.B", "A,B", "A:B"})
        EXPECT_EQ(register_plugin(core, bad, XM_EXAMPLE), GENERAL_ERROR) << bad;
    ASSERT_EQ(register_plugin(core, "EXAMPLE", XM_EXAMPLE), OK);
    EXPECT_EQ(register_plugin(core, "EXAMPLE", XM_EXAMPLE), GENERAL_ERROR);
    EXPECT_EQ(xm_register_plugin(nullptr, "A", "b"), INVALID_C_PARAM);
    EXPECT_EQ(xm_register_plugin(core.get(), nullptr, "b"), INVALID_C_PARAM);
    EXPECT_EQ(xm_register_plugin(core.get(), "A", nullptr), INVALID_C_PARAM);
}

TEST_F(Plugins, ListsAreXml)
{
    ov_core_t *core = reinterpret_cast<ov_core_t *>(1);
    const std::string path = folder + "/list.xml";
    EXPECT_EQ(ov_core_create_with_config(path.c_str(), &core), GENERAL_ERROR);
    EXPECT_EQ(last_error(), "Could not open the file: \"" + path + "\"");
    for (const char *text : {"", "# Title\n", "<net/>", "<ie><plugins><plugin/>"}) {
        std::ofstream(path) << text;
        EXPECT_EQ(ov_core_create_with_config(path.c_str(), &core), GENERAL_ERROR) << text;
        EXPECT_NE(last_error().find("is not a list of plugins"), std::string::npos);
    }
    EXPECT_EQ(core, reinterpret_cast<ov_core_t *>(1));
    EXPECT_EQ(ov_core_create_with_config(nullptr, &core), INVALID_C_PARAM);
}

/* ---- lifetimes ------------------------------------------------------------------------ */

TEST_F(Plugins, LiveAsLongAsWhatTheyMade)
{
    Core core = make_core();
    ASSERT_EQ(register_plugin(core, "EXAMPLE", XM_EXAMPLE), OK);
    Compiled c = compile_small(core.get(), "EXAMPLE");
    core.reset();
    ov_shutdown();
    EXPECT_TRUE(is_mapped(XM_EXAMPLE));
    Request r = make_request(c.get());
    c.reset();
    ov_shutdown();
    EXPECT_EQ(run_small(r.get()).size(), 8u);
    r.reset();
    EXPECT_TRUE(is_mapped(XM_EXAMPLE)); /* stays loaded for the next user */
    ov_shutdown();
    EXPECT_FALSE(is_mapped(XM_EXAMPLE));
}

TEST_F(Plugins, ComeAndGoWithoutGrowth)
{
    const auto resident = [] {
        size_t all = 0, pages = 0;
        std::ifstream("/proc/self/statm") >> all >> pages;
        return pages * static_cast<size_t>(getpagesize());
    };
    const auto cycle = [&] {
        Core core = make_core();
        ASSERT_EQ(register_plugin(core, "EXAMPLE", XM_EXAMPLE), OK);
        EXPECT_EQ(register_plugin(core, "OTHER", XM_OTHER_VERSION), GENERAL_ERROR);
        run_on(core.get(), "EXAMPLE");
        core.reset();
        ov_shutdown();
    };
    for (int i = 0; i < 100; i++)
        cycle();
    const size_t before = resident();
    for (int i = 0; i < 1000; i++)
        cycle();
    if (!keeps_what_is_freed) {
        EXPECT_LT(resident(), before + (4u << 20));
    }
    EXPECT_FALSE(is_mapped(XM_EXAMPLE));
}

TEST_F(Plugins, AreFoundByManyThreadsAtOnce)
{
    const std::string path = write_list("EXAMPLE", XM_EXAMPLE);
    ov_core_t *made = nullptr;
    ASSERT_EQ(ov_core_create_with_config(path.c_str(), &made), OK);
    Core core(made);
    std::atomic<int> good{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 20; i++) {
                good += run_on(core.get(), "EXAMPLE").size() == 8;
                if (t == 0)
                    register_plugin(core, "MORE" + std::to_string(i), XM_EXAMPLE);
                else if (t == 1)
                    devices(core);
                else if (t == 2)
                    ov_shutdown();
                else if (t == 3)
                    ov_core_set_property(core.get(), nullptr, "PERF_COUNT", "NO");
            }
        });
    }
    for (std::thread &t : threads)
        t.join();
    EXPECT_EQ(good, 160);
    EXPECT_NE(devices(core).find("MORE19"), std::string::npos);
}

TEST_F(Plugins, RunAsynchronously)
{
    Core core = make_core();
    ASSERT_EQ(register_plugin(core, "EXAMPLE", XM_EXAMPLE), OK);
    Compiled c = compile_small(core.get(), "EXAMPLE");
    Request r = make_request(c.get());
    const std::vector<float> expected = run_small(r.get());
    for (int i = 0; i < 50; i++) {
        ASSERT_EQ(ov_infer_request_start_async(r.get()), OK);
        ov_infer_request_cancel(r.get());
        const ov_status_e s = ov_infer_request_wait(r.get());
        EXPECT_TRUE(s == OK || s == INFER_CANCELLED) << s;
    }
    EXPECT_EQ(run_small(r.get()), expected);
}

} // namespace
