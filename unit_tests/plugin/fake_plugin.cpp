/* SPDX-License-Identifier: Apache-2.0 */
#include "unit_tests/plugin/fake_plugin.h"

#include <cstring>
#include <thread>

std::atomic<bool> fake_is_running{false};
std::atomic<bool> fake_is_held{false}, fake_is_bound{false};

namespace
{

struct FakeInfer {
    xm_infer base;
    float input = 0, output = 0;
    std::atomic<bool> cancelled{false};
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

} // namespace

const xm_plugin_ops plugin_ops = make_plugin_ops();
