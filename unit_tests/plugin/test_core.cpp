/* SPDX-License-Identifier: Apache-2.0
 *
 * The core with a plugin of the test's own: that it knows devices through their ops only.
 * And the C API under failing allocations.
 */
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "plugin/api/api.h"
#include "runtime/util/log.h"
#include "unit_tests/graph/graph_text.h"

namespace
{

/* ---- a device that adds one -------------------------------------------------------- */

struct FakeInfer {
    xm_infer base;
    float input = 0, output = 0;
    std::atomic<bool> cancelled{false};
};
/* With this input a run goes on until it is cancelled. */
const float endless = -1;
std::atomic<bool> fake_is_running{false};
/* Held: a request that has been started does not get to its run. */
std::atomic<bool> fake_is_held{false}, fake_is_bound{false};

struct FakePlugin {
    xm_plugin base;
    std::string *events; /* of the test */
};

xm_status
fake_set_input(xm_infer *r, uint32_t input, const xm_host_tensor *t, xm_error *err)
{
    if (input != 0 || t->bytes != sizeof(float))
        return xm_fail(err, XM_INVALID, "FAKE takes one number");
    fake_is_bound = true;
    while (fake_is_held)
        std::this_thread::yield();
    reinterpret_cast<FakeInfer *>(r)->input = *static_cast<const float *>(t->data);
    return XM_OK;
}

xm_status
fake_infer(xm_infer *r, xm_error *err)
{
    auto *f = reinterpret_cast<FakeInfer *>(r);
    fake_is_running = true;
    while (f->input == endless && !f->cancelled)
        std::this_thread::yield();
    fake_is_running = false;
    if (f->cancelled)
        return xm_fail(err, XM_CANCELLED, "cancelled");
    f->output = f->input + 1;
    return XM_OK;
}

void
fake_cancel(xm_infer *r)
{
    reinterpret_cast<FakeInfer *>(r)->cancelled = true;
}

void
fake_resume(xm_infer *r)
{
    reinterpret_cast<FakeInfer *>(r)->cancelled = false;
}

xm_status
fake_output(xm_infer *r, uint32_t, xm_host_tensor *t, xm_error *)
{
    *t = {XM_F32, 1, {1}, &reinterpret_cast<FakeInfer *>(r)->output, sizeof(float)};
    return XM_OK;
}

void
fake_infer_destroy(xm_infer *r)
{
    delete reinterpret_cast<FakeInfer *>(r);
}

xm_infer_ops
make_infer_ops()
{
    xm_infer_ops ops = {};
    ops.set_input = fake_set_input;
    ops.infer = fake_infer;
    ops.output = fake_output;
    ops.cancel = fake_cancel;
    ops.resume = fake_resume;
    ops.destroy = fake_infer_destroy;
    return ops;
}
const xm_infer_ops infer_ops = make_infer_ops();

xm_status
fake_create_request(xm_compiled *, xm_infer **out, xm_error *)
{
    auto *r = new FakeInfer;
    r->base = {};
    r->base.ops = &infer_ops;
    *out = &r->base;
    return XM_OK;
}

xm_status
fake_compiled_property(xm_compiled *, const char *key, xm_strbuf *out, xm_error *err)
{
    if (std::string(key) != "EXECUTION_DEVICES")
        return xm_fail(err, XM_NOT_FOUND, "Unsupported property %s by FAKE plugin", key);
    xm_strbuf_add(out, "FAKE");
    return XM_OK;
}

xm_status
fake_export(xm_compiled *, const xm_export *to, xm_error *err)
{
    XM_TRY(to->write(to->ctx, "fake ", 5, err));
    return to->write(to->ctx, "blob", 4, err);
}

void
fake_compiled_destroy(xm_compiled *c)
{
    delete c;
}

xm_compiled_ops
make_compiled_ops()
{
    xm_compiled_ops ops = {};
    ops.create_request = fake_create_request;
    ops.get_property = fake_compiled_property;
    ops.export_model = fake_export;
    ops.destroy = fake_compiled_destroy;
    return ops;
}
const xm_compiled_ops compiled_ops = make_compiled_ops();

xm_port input = {"x", nullptr, 0, {XM_F32, {1, {{1, nullptr}}}}, {{1, 1}}, 0};
xm_port output = {"y", nullptr, 0, {XM_F32, {1, {{1, nullptr}}}}, {{1, 1}}, 0};

xm_compiled *
make_compiled()
{
    auto *c = new xm_compiled{};
    c->ops = &compiled_ops;
    c->refs = 1;
    c->ports.inputs = &input;
    c->ports.outputs = &output;
    c->ports.n_inputs = c->ports.n_outputs = 1;
    return c;
}

uint32_t
fake_count(xm_plugin *)
{
    return 2;
}

xm_status
fake_get_property(xm_plugin *, uint32_t index, const char *key, xm_strbuf *out,
                  xm_error *err)
{
    if (std::string(key) != "FULL_DEVICE_NAME")
        return xm_fail(err, XM_NOT_FOUND, "Unsupported property %s by FAKE plugin", key);
    xm_strbuf_printf(out, "fake %u", index);
    return XM_OK;
}

xm_status
fake_set_property(xm_plugin *p, const char *key, const char *value, xm_error *)
{
    *reinterpret_cast<FakePlugin *>(p)->events += std::string(key) + "=" + value + ";";
    return XM_OK;
}

xm_status
fake_compile(xm_plugin *p, uint32_t index, xm_graph *g, const xm_property *properties,
             uint32_t n, const xm_compile_options *, xm_compiled **out, xm_error *err)
{
    uint32_t nodes = g->n_nodes;
    xm_graph_destroy(g);
    for (uint32_t i = 0; i < n; i++)
        fake_set_property(p, properties[i].key, properties[i].value, err);
    if (nodes > 2)
        return xm_fail(err, XM_UNSUPPORTED, "FAKE %u runs nothing in between", index);
    *out = make_compiled();
    return XM_OK;
}

xm_status
fake_import(xm_plugin *, uint32_t, const struct xm_import *from, const xm_property *,
            uint32_t, xm_compiled **out, xm_error *err)
{
    if (std::string(reinterpret_cast<const char *>(from->bytes), from->n_bytes) !=
        "fake blob")
        return xm_fail(err, XM_INVALID, "these bytes are not FAKE's");
    *out = make_compiled();
    return XM_OK;
}

xm_status
fake_query(xm_plugin *, uint32_t, xm_graph *g, void (*supported)(const char *, void *),
           void *ctx, xm_error *)
{
    xm_for_each_node(n, g)
    {
        if (n->op != XM_OP_RELU)
            supported(xm_op_info(n->op)->text, ctx);
    }
    return XM_OK;
}

void
fake_destroy(xm_plugin *p)
{
    *reinterpret_cast<FakePlugin *>(p)->events += "destroyed;";
    delete reinterpret_cast<FakePlugin *>(p);
}

xm_plugin_ops
make_plugin_ops()
{
    xm_plugin_ops ops = {};
    ops.name = "FAKE";
    ops.description = "a device of the tests";
    ops.count = fake_count;
    ops.get_property = fake_get_property;
    ops.set_property = fake_set_property;
    ops.compile = fake_compile;
    ops.import_model = fake_import;
    ops.query_model = fake_query;
    ops.destroy = fake_destroy;
    return ops;
}
const xm_plugin_ops plugin_ops = make_plugin_ops();

/* ---- the core ---------------------------------------------------------------------- */

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

const char identity[] = "%0 = parameter f32[1] name=\"x\"\nresult %0 name=\"y\"\n";
const char relu[] =
    "%0 = parameter f32[1] name=\"x\"\n%1 = relu %0\nresult %1 name=\"y\"\n";

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

/* The built-in plugins with as many devices as a test says. */
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
        const char *found; /* NULL: no device */
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

/* As OpenVINO, AUTO and MULTI take what is there. */
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
    EXPECT_EQ(
        said("HETERO:FAKE.1,FAKE.7,ABSENT"),
        "device HETERO:FAKE.1,FAKE.7,ABSENT: there is no FAKE.7, ABSENT\n"
        "device HETERO:FAKE.1,FAKE.7,ABSENT runs on FAKE.1 alone: the other devices "
        "of the list are not used\n");
    EXPECT_EQ(index, 1u);
    EXPECT_EQ(said("HETERO:FAKE.1,FAKE.7,ABSENT"), "");
    EXPECT_EQ(said("MULTI:FAKE.1,ABSENT"),
              "device MULTI:FAKE.1,ABSENT runs on FAKE.1 alone: the other devices of the "
              "list are not used\n");
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
              "device MULTI:FAKE.1,FAKE.0 runs on FAKE.1 alone: the other devices of the "
              "list are not used");
    EXPECT_EQ(said("MULTI:FAKE.1,FAKE.0"), "");
    EXPECT_EQ(
        said("HETERO:FAKE.1,FAKE.0"),
        "device HETERO:FAKE.1,FAKE.0 runs on FAKE.1 alone: the other devices of the "
        "list are not used");
    EXPECT_EQ(said("BATCH:FAKE(4)"),
              "device BATCH:FAKE(4) runs on FAKE alone: its requests run one by one, and "
              "are not put together in batches");
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
    xm_compiled_unref(c); /* the request holds it */
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

/* ---- the API over the fake --------------------------------------------------------- */

/* A model whose export is interrupted by another one to the same file. */
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

TEST(ApiWithFake, ImportsExportsAndCompiles)
{
    std::string events;
    ov_core_t *core = nullptr;
    xm_error err = {};
    ASSERT_EQ(ov_core_create(&core), OK);
    auto *p = new FakePlugin{{&plugin_ops}, &events};
    ASSERT_EQ(xm_core_register(core->core, &p->base, &err), XM_OK);
    ov_compiled_model_t *compiled = nullptr;
    EXPECT_EQ(ov_core_import_model(core, "other", 5, "FAKE", &compiled), GENERAL_ERROR);
    ASSERT_EQ(ov_core_import_model(core, "fake blob", 9, "FAKE", &compiled), OK);
    EXPECT_EQ(ov_compiled_model_export_model(compiled, "/no/such/folder/blob"),
              GENERAL_ERROR);
    ov_compiled_model_free(compiled);
    EXPECT_EQ(ov_core_set_property(core, nullptr, "ONLY_FAKE_KNOWS", "1"), OK);
    EXPECT_EQ(events, "ONLY_FAKE_KNOWS=1;");
    ov_core_free(core);
}

/* Of a device that is not used yet, which gets what was set last. */
TEST(ApiWithFake, KeepsASettingWhenThereIsNoMemoryForTheNext)
{
    std::string events;
    ov_core_t *core = nullptr;
    xm_error err = {};
    xm_plugin *found = nullptr;
    uint32_t index;
    ASSERT_EQ(ov_core_create(&core), OK);
    auto *p = new FakePlugin{{&plugin_ops}, &events};
    ASSERT_EQ(xm_core_register(core->core, &p->base, &err), XM_OK);
    const xm_property old = {"KEY", "old"}, next = {"KEY", "next"};
    ASSERT_EQ(xm_api_set_for_device(core, "FAKE", &old, false, &err), XM_OK);
    for (uint64_t n = 1; n <= 3; n++) {
        err = {};
        xm_fail_allocation(n);
        EXPECT_EQ(xm_api_set_for_device(core, "FAKE", &next, false, &err), XM_NO_MEMORY);
        EXPECT_TRUE(xm_fail_allocation_seen());
        xm_fail_allocation(0);
        EXPECT_STREQ(err.text, "out of memory for KEY");
    }
    err = {};
    EXPECT_EQ(xm_api_use_device(core, "FAKE", &found, &index, &err), XM_OK) << err.text;
    EXPECT_EQ(events, "KEY=old;");
    ov_core_free(core);
}

/* A request on the fake device, whose only input is `value`. */
ov_infer_request_t *
request_for(float *value)
{
    std::string events;
    ov_core_t *core = nullptr;
    ov_compiled_model_t *compiled = nullptr;
    ov_infer_request_t *request = nullptr;
    ov_tensor_t *x = nullptr;
    int64_t dims[] = {1};
    xm_error err = {};
    EXPECT_EQ(ov_core_create(&core), OK);
    auto *p = new FakePlugin{{&plugin_ops}, &events};
    EXPECT_EQ(xm_core_register(core->core, &p->base, &err), XM_OK);
    EXPECT_EQ(ov_core_import_model(core, "fake blob", 9, "FAKE", &compiled), OK);
    EXPECT_EQ(ov_compiled_model_create_infer_request(compiled, &request), OK);
    EXPECT_EQ(ov_tensor_create_from_host_ptr(F32, {1, dims}, value, &x), OK);
    EXPECT_EQ(ov_infer_request_set_tensor(request, "x", x), OK);
    ov_tensor_free(x);
    ov_compiled_model_free(compiled);
    ov_core_free(core);
    return request;
}

TEST(ApiWithFake, ARunningRequestIsBusyUntilItIsCancelled)
{
    float value = endless;
    ov_infer_request_t *r = request_for(&value);
    ov_tensor_t *y = nullptr;
    ASSERT_EQ(ov_infer_request_cancel(r), OK); /* idle: nothing happens */
    ASSERT_EQ(ov_infer_request_start_async(r), OK);
    EXPECT_EQ(ov_infer_request_wait_for(r, 1), RESULT_NOT_READY);
    EXPECT_EQ(ov_infer_request_start_async(r), REQUEST_BUSY);
    EXPECT_EQ(ov_infer_request_infer(r), REQUEST_BUSY);
    EXPECT_EQ(ov_infer_request_get_output_tensor(r, &y), REQUEST_BUSY);
    const char *text = ov_get_last_err_msg();
    EXPECT_STREQ(text, "Infer Request is busy");
    ov_free(text);
    while (!fake_is_running)
        std::this_thread::yield();
    EXPECT_EQ(ov_infer_request_cancel(r), OK);
    EXPECT_EQ(ov_infer_request_wait(r), INFER_CANCELLED);
    value = 1;
    EXPECT_EQ(ov_infer_request_infer(r), OK); /* and usable again */
    ov_infer_request_free(r);
}

/* Between the start and the device's own begin; the next run is none of the cancel's business. */
TEST(ApiWithFake, ACancelBeforeTheDeviceBeginsIsNotLost)
{
    for (bool in_thread : {false, true}) {
        float value = 1;
        ov_infer_request_t *r = request_for(&value);
        ov_status_e s = OK;
        fake_is_bound = false;
        fake_is_held = true;
        std::thread other([&] {
            s = in_thread ? ov_infer_request_start_async(r) : ov_infer_request_infer(r);
        });
        while (!fake_is_bound)
            std::this_thread::yield();
        EXPECT_EQ(ov_infer_request_cancel(r), OK);
        fake_is_held = false;
        other.join();
        EXPECT_EQ(in_thread ? ov_infer_request_wait(r) : s, INFER_CANCELLED);
        EXPECT_EQ(ov_infer_request_infer(r), OK);
        ov_infer_request_free(r);
    }
}

/* However soon a cancel comes: a lost one would leave the run going on for ever. */
TEST(ApiWithFake, ACancelRightBehindTheStartIsNotLost)
{
    enum { ROUNDS = 300 };
    float value = endless;
    ov_infer_request_t *r = request_for(&value);
    for (int i = 0; i < ROUNDS; i++) {
        ASSERT_EQ(ov_infer_request_start_async(r), OK);
        EXPECT_EQ(ov_infer_request_cancel(r), OK);
        EXPECT_EQ(ov_infer_request_wait(r), INFER_CANCELLED);
    }
    ov_infer_request_free(r);
}

/* An idle request has nothing to cancel: as OpenVINO's, it runs when it is asked next. */
TEST(ApiWithFake, ACancelOfAnIdleRequestIsForgotten)
{
    float value = 1;
    ov_infer_request_t *r = request_for(&value);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(ov_infer_request_cancel(r), OK);
        EXPECT_EQ(ov_infer_request_infer(r), OK);
        EXPECT_EQ(ov_infer_request_cancel(r), OK);
        EXPECT_EQ(ov_infer_request_start_async(r), OK);
        EXPECT_EQ(ov_infer_request_wait(r), OK);
    }
    ov_infer_request_free(r);
}

/* What a callback does with its request: reads the result, starts the next run. */
struct Chain {
    ov_infer_request_t *request;
    float *value;
    int runs = 0;
};

void
start_next(void *args)
{
    auto *c = static_cast<Chain *>(args);
    ov_tensor_t *y = nullptr;
    void *data = nullptr;
    EXPECT_EQ(ov_infer_request_get_output_tensor(c->request, &y), OK);
    EXPECT_EQ(ov_tensor_data(y, &data), OK);
    *c->value = *static_cast<float *>(data);
    ov_tensor_free(y);
    if (++c->runs < 5) {
        EXPECT_EQ(ov_infer_request_start_async(c->request), OK);
    }
}

TEST(ApiWithFake, ACallbackMayStartTheNextRun)
{
    float value = 0;
    ov_infer_request_t *r = request_for(&value);
    Chain chain = {r, &value};
    ov_callback_t callback = {start_next, &chain};
    ASSERT_EQ(ov_infer_request_set_callback(r, &callback), OK);
    ASSERT_EQ(ov_infer_request_start_async(r), OK);
    EXPECT_EQ(ov_infer_request_wait(r), OK);
    EXPECT_EQ(chain.runs, 5);
    EXPECT_EQ(value, 5);
    ov_infer_request_free(r);
}

/* The callback frees its request, with the next run started or not. */
struct Freed {
    ov_infer_request_t *request;
    bool starts_another;
    std::atomic<bool> done;
};

TEST(ApiWithFake, ACallbackMayFreeItsRequest)
{
    for (bool starts_another : {false, true}) {
        float value = 0;
        Freed freed = {request_for(&value), starts_another, {false}};
        ov_callback_t callback = {[](void *args) {
                                      auto *f = static_cast<Freed *>(args);
                                      if (f->starts_another)
                                          ov_infer_request_start_async(f->request);
                                      ov_infer_request_free(f->request);
                                      f->done = true;
                                  },
                                  &freed};
        ASSERT_EQ(ov_infer_request_set_callback(freed.request, &callback), OK);
        ASSERT_EQ(ov_infer_request_start_async(freed.request), OK);
        for (int i = 0; i < 300000 && !freed.done; i++)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ASSERT_TRUE(freed.done);
    }
}

/* Model to result on the host reference; whatever was made is freed. */
ov_status_e
run_all(xm_graph *g)
{
    ov_core_t *core = nullptr;
    ov_model_t *model = nullptr;
    ov_compiled_model_t *compiled = nullptr;
    ov_infer_request_t *request = nullptr;
    ov_tensor_t *x = nullptr, *y = nullptr;
    int64_t dims[] = {1};
    ov_status_e s = xm_api_model_create(g, &model);
    if (s == OK)
        s = ov_core_create(&core);
    if (s == OK)
        s = ov_core_compile_model(core, model, "REFERENCE", 2, &compiled, "CACHE_DIR",
                                  "");
    if (s == OK)
        s = ov_compiled_model_create_infer_request(compiled, &request);
    if (s == OK)
        s = ov_tensor_create(F32, {1, dims}, &x);
    if (s == OK)
        s = ov_infer_request_set_tensor(request, "x", x);
    if (s == OK)
        s = ov_infer_request_infer(request);
    if (s == OK)
        s = ov_infer_request_get_output_tensor(request, &y);
    ov_tensor_free(y);
    ov_tensor_free(x);
    ov_infer_request_free(request);
    ov_compiled_model_free(compiled);
    ov_model_free(model);
    ov_core_free(core);
    return s;
}

TEST(ApiMemory, EveryFailedAllocationIsAnErrorWithoutLeak)
{
    EXPECT_EQ(run_all(parse(relu).release()), OK);
    bool seen = true;
    for (uint64_t n = 1; seen; n++) {
        xm_graph *g = parse(relu).release();
        xm_fail_allocation(n);
        ov_status_e s = run_all(g);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(s, seen ? GENERAL_ERROR : OK) << "allocation " << n;
    }
}

} // namespace
