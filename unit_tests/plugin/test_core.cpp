/* SPDX-License-Identifier: Apache-2.0
 *
 * The core with a fake plugin: it uses devices only through their ops.
 */
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "plugin/core.h"
#include "runtime/util/log.h"
#include "unit_tests/graph/graph_text.h"
#include "unit_tests/plugin/fake_plugin.h"

namespace
{

class CoreWithFake : public testing::Test
{
  protected:
    void SetUp() override
    {
        ASSERT_EQ(xm_core_create(&core, &err), XM_OK) << err.text;
        auto *p = new FakePlugin{{&plugin_ops}, &events};
        ASSERT_EQ(xm_core_register(core, &p->base, &err), XM_OK);
    }

    void TearDown() override
    {
        xm_core_destroy(core);
        EXPECT_NE(events.find("destroyed;"), std::string::npos);
    }

    xm_plugin *find(const char *device, uint32_t *index)
    {
        xm_plugin *p = nullptr;
        EXPECT_EQ(xm_core_find(core, device, &p, index, &err), XM_OK) << err.text;
        return p;
    }

    xm_core *core = nullptr;
    std::string events;
    xm_error err = {};
};

TEST_F(CoreWithFake, FindsDevicesByNameAndIndex)
{
    uint32_t index = 9;
    EXPECT_EQ(find("FAKE", &index)->ops, &plugin_ops);
    EXPECT_EQ(index, 0u);
    find("FAKE.1", &index);
    EXPECT_EQ(index, 1u);
    EXPECT_EQ(find("MULTI:FAKE.1,FAKE.0", &index)->ops, &plugin_ops);
    EXPECT_EQ(index, 1u);
    find("AUTO:FAKE.7,FAKE.1(2)", &index);
    EXPECT_EQ(index, 1u);
    for (const char *wrong : {"HETERO:FAKE.2,FAKE.1", "AUTO:FAKE.2,ABSENT", "FAKE.2",
                              "FAKE.", "FAKE.x", "fake", "FAK", ""}) {
        xm_plugin *p = nullptr;
        xm_error e = {};
        EXPECT_EQ(xm_core_find(core, wrong, &p, &index, &e), XM_NOT_FOUND) << wrong;
        EXPECT_NE(std::string(e.text).find("FAKE.1"), std::string::npos) << e.text;
    }
}

TEST_F(CoreWithFake, CpuIsAProcessorAndTheBestDeviceHasManyNames)
{
    uint32_t index = 9;
    xm_plugin *gpu = nullptr, *cpu = nullptr;
    if (xm_core_find(core, "GPU", &gpu, &index, nullptr) != XM_OK)
        GTEST_SKIP() << "no OpenCL device";
    for (const char *best : {"AUTO", "AUTO:", "AUTO:GPU,CPU", "HETERO:GPU,FAKE",
                             "MULTI:ABSENT,GPU(2)", "AUTO:-CPU", "BATCH:GPU(4)"}) {
        EXPECT_EQ(find(best, &index), gpu) << best;
        EXPECT_EQ(index, 0u);
    }
    EXPECT_EQ(find(nullptr, &index), gpu);
    if (xm_core_find(core, "CPU", &cpu, &index, &err) != XM_OK) {
        EXPECT_NE(std::string(err.text).find("install PoCL"), std::string::npos);
        GTEST_SKIP() << "no OpenCL device that is a processor";
    }
    for (const char *processor :
         {"CPU.0", "AUTO:CPU", "HETERO:CPU,GPU", "AUTO:-GPU", "BATCH:CPU(4)"})
        EXPECT_EQ(find(processor, &index), cpu) << processor;
    for (uint32_t i = 0; i < cpu->ops->count(cpu); i++)
        EXPECT_EQ(cpu->ops->info(cpu, i)->kind, XM_DEVICE_CPU);
}

/* Replaces a built-in plugin's count of devices by N. */
template <uint32_t N>
uint32_t
fixed_count(xm_plugin *)
{
    return N;
}

TEST_F(CoreWithFake, CpuIsAnotherDeviceWhereThereIsNoProcessor)
{
    struct {
        uint32_t (*gpus)(xm_plugin *);
        const char *name;
        const char *found; /* NULL: not found */
    } const cases[] = {
        {fixed_count<2>, "CPU", "GPU"},      {fixed_count<2>, "CPU.0", "GPU"},
        {fixed_count<2>, "AUTO:CPU", "GPU"}, {fixed_count<2>, "CPU.1", nullptr},
        {fixed_count<0>, "CPU", nullptr},
    };
    xm_plugin *const *list = nullptr;
    const xm_plugin_ops *real[2] = {};
    ASSERT_GE(xm_core_plugins(core, &list), 2u);
    for (const auto &k : cases) {
        xm_plugin_ops ops[2];
        for (int i = 0; i < 2; i++) {
            real[i] = list[i]->ops;
            ops[i] = *real[i];
            ops[i].count = strcmp(ops[i].name, "GPU") == 0 ? k.gpus : fixed_count<0>;
            list[i]->ops = &ops[i];
        }
        xm_plugin *p = nullptr;
        uint32_t index = 9;
        xm_error e = {};
        const xm_status s = xm_core_find(core, k.name, &p, &index, &e);
        if (k.found) {
            EXPECT_EQ(s, XM_OK) << k.name << ": " << e.text;
            EXPECT_STREQ(p ? p->ops->name : "", k.found);
            EXPECT_EQ(index, 0u);
        } else {
            EXPECT_EQ(s, XM_NOT_FOUND) << k.name;
        }
        for (int i = 0; i < 2; i++)
            list[i]->ops = real[i];
    }
}

/* AUTO and MULTI use one available device, as OpenVINO does, and warn of the rest. */
const std::string unused = "the other devices of the list are not used; MESH: with the "
                           "same list splits the model over them";

TEST_F(CoreWithFake, SaysOnceWhichDevicesOfHeteroAreAbsent)
{
    std::string log;
    uint32_t index;
    xm_log_set_sink(
        [](xm_log_level, const char *line, void *to) {
            *static_cast<std::string *>(to) += std::string(line) + "\n";
        },
        &log);
    const auto said = [&](const char *device) {
        log = "";
        find(device, &index);
        return log;
    };
    for (const char *silent : {"AUTO:ABSENT,FAKE.1", "MULTI:FAKE.0(2)"})
        EXPECT_EQ(said(silent), "") << silent;
    xm_plugin *p;
    EXPECT_EQ(xm_core_find(core, "HETERO:FAKE.7,FAKE.1", &p, &index, &err), XM_NOT_FOUND);
    EXPECT_NE(std::string(err.text).find("\"FAKE.7\""), std::string::npos) << err.text;
    EXPECT_EQ(log, "") << "the sentence says it";
    EXPECT_EQ(said("HETERO:FAKE.1,FAKE.7,ABSENT"),
              "device HETERO:FAKE.1,FAKE.7,ABSENT: there is no FAKE.7, ABSENT\ndevice "
              "HETERO:FAKE.1,FAKE.7,ABSENT uses FAKE.1 alone: " +
                  unused + "\n");
    EXPECT_EQ(index, 1u);
    EXPECT_EQ(said("HETERO:FAKE.1,FAKE.7,ABSENT"), "");
    EXPECT_EQ(said("MULTI:FAKE.1,ABSENT"),
              "device MULTI:FAKE.1,ABSENT uses FAKE.1 alone: " + unused + "\n");
    xm_log_set_sink(nullptr, nullptr);
}

TEST_F(CoreWithFake, SaysOnceWhatOfSeveralDevicesIsNotUsed)
{
    std::string log;
    uint32_t index;
    xm_log_set_sink([](xm_log_level, const char *line,
                       void *to) { *static_cast<std::string *>(to) += line; },
                    &log);
    const auto said = [&](const char *device) {
        log = "";
        find(device, &index);
        return log;
    };
    for (const char *silent : {"AUTO:FAKE.1,FAKE.0", "MULTI:FAKE.1", "HETERO:FAKE"})
        EXPECT_EQ(said(silent), "") << silent;
    EXPECT_EQ(said("MULTI:FAKE.1,FAKE.0"),
              "device MULTI:FAKE.1,FAKE.0 uses FAKE.1 alone: " + unused);
    EXPECT_EQ(said("MULTI:FAKE.1,FAKE.0"), "");
    EXPECT_EQ(said("HETERO:FAKE.1,FAKE.0"),
              "device HETERO:FAKE.1,FAKE.0 uses FAKE.1 alone: " + unused);
    EXPECT_EQ(said("BATCH:FAKE(4)"), "device BATCH:FAKE(4) uses FAKE alone: requests run "
                                     "one by one and are not combined into batches");
    EXPECT_EQ(said("BATCH:FAKE(4)"), "");
    xm_log_set_sink(nullptr, nullptr);
}

TEST_F(CoreWithFake, AnIndexInTheNameIsTheDevice)
{
    uint32_t index;
    xm_compiled *c = nullptr;
    xm_plugin *gpu = nullptr;
    if (xm_core_find(core, "GPU", &gpu, &index, nullptr) != XM_OK)
        GTEST_SKIP() << "no OpenCL device";
    ASSERT_EQ(gpu->ops->set_property(gpu, "DEVICE_ID", "9", &err), XM_OK);
    const auto compile = [&](const char *device) {
        err = {};
        return xm_core_compile(core, parse(identity).release(), device, nullptr, 0,
                               nullptr, &c, &err);
    };
    EXPECT_EQ(compile("GPU"), XM_NOT_FOUND);
    EXPECT_NE(std::string(err.text).find("DEVICE_ID is 9"), std::string::npos);
    EXPECT_EQ(compile("GPU.0"), XM_OK) << err.text;
    xm_compiled_unref(c);
    c = nullptr;
    EXPECT_EQ(compile("AUTO:GPU.0"), XM_OK) << err.text;
    xm_compiled_unref(c);
    EXPECT_EQ(compile("FAKE.0"), XM_OK) << err.text;
    xm_compiled_unref(c);
    EXPECT_EQ(events, "");
}

TEST_F(CoreWithFake, RefusesANameTwice)
{
    FakePlugin second = {{&plugin_ops}, &events};
    EXPECT_EQ(xm_core_register(core, &second.base, &err), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("FAKE"), std::string::npos);
}

TEST_F(CoreWithFake, CompilesAndRunsThroughTheOps)
{
    const xm_property properties[] = {{"KEY", "value"}};
    xm_compiled *c = nullptr;
    xm_infer *r = nullptr;
    ASSERT_EQ(xm_core_compile(core, parse(identity).release(), "FAKE.1", properties, 1,
                              nullptr, &c, &err),
              XM_OK);
    EXPECT_EQ(events, "KEY=value;");
    ASSERT_EQ(xm_compiled_create_request(c, &r, &err), XM_OK);
    xm_compiled_unref(c); /* the request keeps the model alive */
    float x = 41;
    xm_host_tensor t = {XM_F32, 1, {1}, &x, sizeof(x)};
    EXPECT_EQ(r->ops->set_input(r, 0, &t, &err), XM_OK);
    EXPECT_EQ(r->ops->infer(r, &err), XM_OK);
    EXPECT_EQ(r->ops->output(r, 0, &t, &err), XM_OK);
    EXPECT_EQ(*static_cast<float *>(t.data), 42);
    xm_infer_destroy(r);
}

TEST_F(CoreWithFake, PassesOnWhatTheDeviceRefuses)
{
    xm_compiled *c = nullptr;
    EXPECT_EQ(xm_core_compile(core, parse(relu).release(), "FAKE", nullptr, 0, nullptr,
                              &c, &err),
              XM_UNSUPPORTED);
    EXPECT_STREQ(err.text, "FAKE 0 runs nothing in between");
    xm_error unknown = {};
    EXPECT_EQ(xm_core_compile(core, parse(relu).release(), "NOPE", nullptr, 0, nullptr,
                              &c, &unknown),
              XM_NOT_FOUND);
}

TEST_F(CoreWithFake, PropertiesQueriesAndImportsReachTheDevice)
{
    uint32_t index = 0;
    xm_plugin *p = find("FAKE.1", &index);
    xm_strbuf text = {};
    EXPECT_EQ(p->ops->get_property(p, index, "FULL_DEVICE_NAME", &text, &err), XM_OK);
    EXPECT_EQ(take(&text), "fake 1");
    Graph g = parse(relu);
    std::string nodes;
    auto add = [](const char *node, void *to) {
        *static_cast<std::string *>(to) += node;
    };
    EXPECT_EQ(p->ops->query_model(p, index, g.get(), add, &nodes, &err), XM_OK);
    EXPECT_EQ(nodes, "parameterresult");
    xm_compiled *c = nullptr;
    const auto import = [&](const char *bytes) {
        const struct xm_import from = {nullptr, reinterpret_cast<const uint8_t *>(bytes),
                                       strlen(bytes), nullptr};
        return xm_core_import(core, &from, "FAKE.1", nullptr, 0, &c, &err);
    };
    ASSERT_EQ(import("fake blob"), XM_OK);
    const std::string path =
        testing::TempDir() + "xemoe_fake_" + std::to_string(getpid());
    EXPECT_EQ(xm_compiled_export_file(c, path.c_str(), &err), XM_OK) << err.text;
    xm_compiled_unref(c);
    ASSERT_EQ(xm_core_import_file(core, path.c_str(), "FAKE", nullptr, 0, &c, &err),
              XM_OK);
    EXPECT_EQ(xm_compiled_export_file(c, "/dev/full", &err), XM_IO);
    EXPECT_STREQ(err.text, "'/dev/full' cannot be written: No space left on device");
    EXPECT_EQ(access("/dev/full", W_OK), 0);
    xm_compiled_unref(c);
    unlink(path.c_str());
    err = {};
    EXPECT_EQ(import("other"), XM_INVALID);
}

/* A model whose export is interrupted by another export to the same file. */
struct Interrupted {
    xm_compiled base = {};
    xm_compiled *other;
    std::string path;
};

TEST_F(CoreWithFake, ExportsToOneFileDoNotMix)
{
    xm_compiled *c = nullptr;
    ASSERT_EQ(xm_core_compile(core, parse(identity).release(), "FAKE.1", nullptr, 0,
                              nullptr, &c, &err),
              XM_OK);
    xm_compiled_ops ops = {};
    ops.export_model = [](xm_compiled *base, const xm_export *to, xm_error *e) {
        auto *self = reinterpret_cast<Interrupted *>(base);
        xm_status s = to->write(to->ctx, "whole ", 6, e);
        if (s == XM_OK)
            s = xm_compiled_export_file(self->other, self->path.c_str(), e);
        return s == XM_OK ? to->write(to->ctx, "again", 5, e) : s;
    };
    Interrupted one;
    one.base.ops = &ops;
    one.other = c;
    one.path = testing::TempDir() + "xemoe_mixed_" + std::to_string(getpid());
    EXPECT_EQ(xm_compiled_export_file(&one.base, one.path.c_str(), &err), XM_OK)
        << err.text;
    std::ifstream file(one.path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "whole again");
    unlink(one.path.c_str());
    xm_compiled_unref(c);
}

} // namespace
