/* SPDX-License-Identifier: Apache-2.0
 *
 * An external plugin inside the test's process, which a script controls: it runs a model node by
 * node with the host's reference, or fails in the function that the script names.
 */
#ifndef XM_UNIT_TESTS_PLUGIN_SCRIPTED_PLUGIN_H
#define XM_UNIT_TESTS_PLUGIN_SCRIPTED_PLUGIN_H

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugin/external/external.h"

namespace scripted
{

struct Script {
    std::string fails; /* the function that fails with `status` and `text` */
    int32_t status = XM_EXT_DEVICE;
    std::string text = "the script says so";
    /* compile and create_request return OK and leave their result NULL. */
    bool gives_nothing = false;
    /* Changes a result before the plugin hands it out. */
    std::function<void(xm_ext_tensor &)> spoil;
    std::function<void(uint32_t, xm_ext_port &)> spoil_port;
    bool waits = false; /* a run waits until it is cancelled */
    bool measures = false;
    uint32_t devices = 1;
    std::string supported;             /* SUPPORTED_PROPERTIES; "": unknown key */
    xm_ext_ops ops;                    /* the table that the entry point returns */
    const xm_ext_ops *table = nullptr; /* another table to return, if not NULL */

    const xm_ext_host *host = nullptr; /* the host, as the plugin got it */
    std::string calls;                 /* record of destroy calls and properties */
    std::atomic<bool> is_running{false};
};
inline Script *script; /* the script of the running test */

inline void
note(const std::string &call)
{
    static std::mutex lock;
    const std::lock_guard<std::mutex> held(lock);
    script->calls += call;
}

inline bool
does_fail(const char *function, xm_ext_error *err)
{
    if (script->fails != function)
        return false;
    /* Copies the text without a terminating zero if it fills the buffer, as careless plugins do. */
    memcpy(err->text, script->text.c_str(),
           std::min(sizeof(err->text), script->text.size() + 1));
    return true;
}

#define SCRIPTED(function)                                                               \
    if (does_fail(function, err))                                                        \
        return script->status;

struct Bytes {
    std::vector<std::unique_ptr<char[]>> blocks;

    static void *alloc(void *ctx, uint64_t n)
    {
        if (script->fails == "alloc")
            return nullptr;
        auto &blocks = static_cast<Bytes *>(ctx)->blocks;
        blocks.emplace_back(new char[n]);
        return blocks.back().get();
    }
};

struct Compiled {
    const xm_ext_model *model = nullptr;
    std::string properties;
};

struct Request {
    Compiled *owner;
    std::vector<xm_ext_tensor> inputs, results;
    std::vector<std::vector<xm_ext_tensor>> values; /* by node and output */
    Bytes bytes;                                    /* memory of the last run */
    std::map<std::string, std::pair<xm_ext_tensor, std::string>> states;
    struct Memory *remote = nullptr; /* of the result */
    uint64_t runs = 0;
    std::atomic<bool> cancelled{false};
};

struct Memory {
    std::vector<char> own;
    void *bytes;
};

inline std::string
variable(const xm_ext_model *m, uint32_t node)
{
    const char *key, *value;
    script->host->model_attribute(m, node, 0, &key, &value);
    return value;
}

/* Evaluates node i of a run with the host's reference. */
inline int32_t
run_node(Request *r, uint32_t i, xm_ext_error *err)
{
    const xm_ext_host *h = script->host;
    const xm_ext_model *m = r->owner->model;
    xm_ext_node n;
    xm_ext_port port;
    h->model_node(m, i, &n);
    std::vector<xm_ext_tensor> in(n.n_in + 1);
    auto &out = r->values[i];
    out.resize(n.n_out);
    if (strcmp(n.op, "Const") == 0 || strcmp(n.op, "weight") == 0)
        return XM_EXT_OK;
    for (uint32_t k = 0; strcmp(n.op, "Parameter") == 0; k++) {
        h->model_port(m, 0, k, &port);
        if (port.node == i) {
            out[0] = r->inputs[k];
            return XM_EXT_OK;
        }
    }
    if (strcmp(n.op, "ReadValue") == 0 && r->states.count(variable(m, i))) {
        auto &state = r->states[variable(m, i)];
        out[0] = state.first;
        out[0].data = &state.second[0];
        return XM_EXT_OK;
    }
    for (uint32_t k = 0; k < n.n_in; k++) {
        if (n.in[k].node != XM_EXT_NONE)
            in[k] = r->values[n.in[k].node][n.in[k].output];
    }
    return h->run_node(m, i, in.data(), out.data(), Bytes::alloc, &r->bytes, err);
}

inline void
keep_states(Request *r)
{
    const xm_ext_model *m = r->owner->model;
    xm_ext_node n;
    for (uint32_t i = 0; i < script->host->model_nodes(m); i++) {
        script->host->model_node(m, i, &n);
        if (strcmp(n.op, "Assign") != 0)
            continue;
        const xm_ext_tensor &t = r->values[i][0];
        std::string bytes(static_cast<char *>(t.data), t.bytes);
        r->states[variable(m, i)] = {t, bytes};
    }
}

/* ---- the functions of the plugin's table -------------------------------------------- */

inline int32_t
infer(void *request, xm_ext_error *err)
{
    auto *r = static_cast<Request *>(request);
    const xm_ext_model *m = r->owner->model;
    script->is_running = true;
    while (script->waits && !r->cancelled)
        std::this_thread::yield();
    script->is_running = false;
    SCRIPTED("infer")
    if (r->cancelled)
        return XM_EXT_CANCELLED;
    r->runs++;
    r->results.clear();
    if (!m) { /* an imported model: the result is the input */
        r->results = r->inputs;
        return XM_EXT_OK;
    }
    Bytes().blocks.swap(r->bytes.blocks);
    r->values.assign(script->host->model_nodes(m), {});
    for (uint32_t i = 0; i < r->values.size(); i++) {
        const int32_t status = run_node(r, i, err);
        if (status != XM_EXT_OK)
            return status;
    }
    keep_states(r);
    for (uint32_t i = 0; i < script->host->model_ports(m, 1); i++) {
        xm_ext_port port;
        script->host->model_port(m, 1, i, &port);
        r->results.push_back(r->values[port.node][0]);
    }
    if (r->remote)
        memcpy(r->remote->bytes, r->results[0].data, r->results[0].bytes);
    return XM_EXT_OK;
}

inline int32_t
output(void *request, uint32_t i, xm_ext_tensor *out, xm_ext_error *err)
{
    SCRIPTED("output")
    *out = static_cast<Request *>(request)->results[i];
    if (static_cast<Request *>(request)->remote)
        out->data = nullptr;
    if (script->spoil)
        script->spoil(*out);
    return XM_EXT_OK;
}

inline int32_t
set_input(void *request, uint32_t i, const xm_ext_tensor *t, xm_ext_error *err)
{
    SCRIPTED("set_input")
    auto &inputs = static_cast<Request *>(request)->inputs;
    inputs.resize(std::max<size_t>(inputs.size(), i + 1));
    inputs[i] = *t;
    return XM_EXT_OK;
}

inline int32_t
profile(void *request, void (*row)(void *, const xm_ext_step *), void *ctx,
        xm_ext_error *err)
{
    SCRIPTED("profile")
    const xm_ext_step steps[] = {{"mul", "MatMul", "f32", "mul_f32",
                                  static_cast<Request *>(request)->runs, 1000, 0},
                                 {"soft", "SoftMax", nullptr, nullptr, 1, 500, 1}};
    for (const xm_ext_step &s : steps)
        row(ctx, &s);
    return XM_EXT_OK;
}

inline int32_t
create_request(void *compiled, void **request, xm_ext_error *err)
{
    SCRIPTED("create_request")
    if (script->gives_nothing)
        return XM_EXT_OK;
    auto *r = new Request;
    r->owner = static_cast<Compiled *>(compiled);
    *request = r;
    return XM_EXT_OK;
}

inline int32_t
compile(void *, uint32_t, const xm_ext_model *m, const xm_ext_property *p, uint32_t n,
        void **compiled, xm_ext_error *err)
{
    SCRIPTED("compile")
    if (script->gives_nothing)
        return XM_EXT_OK;
    auto *c = new Compiled;
    c->model = script->host->model_retain(m);
    for (uint32_t i = 0; i < n; i++)
        c->properties += std::string(p[i].key) + "=" + p[i].value + ";";
    note(c->properties);
    *compiled = c;
    return XM_EXT_OK;
}

inline int32_t
import_model(void *, uint32_t, const void *bytes, uint64_t n, const xm_ext_property *,
             uint32_t, void **compiled, xm_ext_error *err)
{
    SCRIPTED("import_model")
    if (std::string(static_cast<const char *>(bytes), n) != "scripted blob")
        return XM_EXT_INVALID;
    *compiled = new Compiled;
    return XM_EXT_OK;
}

inline int32_t
export_model(void *, const xm_ext_sink *out, xm_ext_error *err)
{
    SCRIPTED("export_model")
    out->add(out->ctx, "scripted ", 9);
    out->add(out->ctx, "blob", 4);
    return XM_EXT_OK;
}

/* The input x and the output y, each f32 [any,2]. */
inline int32_t
compiled_port(void *, uint32_t is_output, uint32_t i, xm_ext_port *out, xm_ext_error *err)
{
    SCRIPTED("compiled_port")
    static const char *const names[] = {"x", "y"};
    if (i > 0 && !script->spoil_port)
        return XM_EXT_NOT_FOUND;
    out->name = names[is_output];
    out->names = &names[is_output];
    out->n_names = 1;
    out->type = {XM_EXT_F32, 2, {0, 2}, {-1, 2}};
    if (script->spoil_port)
        script->spoil_port(i, *out);
    return XM_EXT_OK;
}

inline int32_t
get_property(void *, uint32_t device, const char *key, const xm_ext_sink *out,
             xm_ext_error *err)
{
    SCRIPTED("get_property")
    const std::string k = key;
    std::string value;
    if (k == "SUPPORTED_PROPERTIES")
        value = script->supported;
    else if (k == "FULL_DEVICE_NAME")
        value = "scripted " + std::to_string(device);
    if (value.empty())
        return XM_EXT_NOT_FOUND;
    out->add(out->ctx, value.data(), value.size());
    return XM_EXT_OK;
}

inline int32_t
set_property(void *, const char *key, const char *value, xm_ext_error *err)
{
    SCRIPTED("set_property")
    if (strcmp(key, "KEY") != 0)
        return XM_EXT_NOT_FOUND;
    note(std::string(key) + "=" + value + ";");
    return XM_EXT_OK;
}

inline int32_t
query_model(void *, uint32_t, const xm_ext_model *m,
            void (*supported)(void *ctx, uint32_t node), void *ctx, xm_ext_error *err)
{
    SCRIPTED("query_model")
    xm_ext_node n;
    for (uint32_t i = 0; i < script->host->model_nodes(m); i++) {
        script->host->model_node(m, i, &n);
        if (strcmp(n.op, "SoftMax") != 0)
            supported(ctx, i);
    }
    supported(ctx, 1000);
    return XM_EXT_OK;
}

/* ---- contexts, whose memory is host memory ---- */

inline int32_t
create_context(void *, uint32_t, const xm_ext_context_wish *wish, void **context,
               xm_ext_error *err)
{
    SCRIPTED("create_context")
    if (!script->gives_nothing)
        *context = new std::string(wish->queue ? "queue" : "context");
    return XM_EXT_OK;
}

inline void
say_params(const xm_ext_sink *out, uint32_t *pairs, const std::string &text)
{
    out->add(out->ctx, text.data(), text.size());
    *pairs = 1;
}

inline int32_t
create_memory(void *, const xm_ext_memory_wish *wish, void **memory, void **host,
              xm_ext_error *err)
{
    SCRIPTED("create_memory")
    if (script->gives_nothing)
        return XM_EXT_OK;
    auto *m = new Memory;
    m->own.resize(wish->bytes);
    m->bytes = wish->handle ? wish->handle : m->own.data();
    *memory = m;
    *host = wish->kind == XM_EXT_USM_HOST ? m->bytes : nullptr;
    return XM_EXT_OK;
}

inline int32_t
set_remote_input(void *request, uint32_t i, const xm_ext_tensor *t, void *memory,
                 xm_ext_error *err)
{
    SCRIPTED("set_remote_input")
    xm_ext_tensor there = *t;
    there.data = static_cast<Memory *>(memory)->bytes;
    return set_input(request, i, &there, err);
}

inline int32_t
set_remote_output(void *request, uint32_t, void *memory, xm_ext_error *err)
{
    SCRIPTED("set_remote_output")
    static_cast<Request *>(request)->remote = static_cast<Memory *>(memory);
    return XM_EXT_OK;
}

inline void
add_contexts(xm_ext_ops *t)
{
    t->create_context = create_context;
    t->context_params = [](void *context, const xm_ext_sink *out, uint32_t *pairs) {
        say_params(out, pairs, "CONTEXT_TYPE " + *static_cast<std::string *>(context));
    };
    t->destroy_context = [](void *context) {
        delete static_cast<std::string *>(context);
        note("context;");
    };
    t->compile_in = [](void *plugin, void *, const xm_ext_model *m,
                       const xm_ext_property *p, uint32_t n, void **compiled,
                       xm_ext_error *err) {
        return compile(plugin, 0, m, p, n, compiled, err);
    };
    t->create_memory = create_memory;
    t->memory_params = [](void *, const xm_ext_sink *out, uint32_t *pairs) {
        say_params(out, pairs, "SHARED_MEM_TYPE OCL_BUFFER");
    };
    t->destroy_memory = [](void *memory) {
        delete static_cast<Memory *>(memory);
        note("memory;");
    };
    t->set_remote_input = set_remote_input;
    t->set_remote_output = set_remote_output;
}

/* Returns a table with all functions. */
inline xm_ext_ops
make_table()
{
    xm_ext_ops t = {};
    t.version = XM_EXT_VERSION;
    t.bytes = sizeof(t);
    t.description = "scripted plugin 1.0";
    t.count = [](void *) { return script->devices; };
    t.get_property = get_property;
    t.set_property = set_property;
    t.query_model = query_model;
    t.compile = compile;
    t.import_model = import_model;
    t.destroy = [](void *) { note("plugin;"); };
    t.export_model = export_model;
    t.compiled_port = compiled_port;
    t.create_request = create_request;
    t.destroy_compiled = [](void *compiled) {
        auto *c = static_cast<Compiled *>(compiled);
        if (c->model)
            script->host->model_release(c->model);
        delete c;
        note("compiled;");
    };
    t.set_input = set_input;
    t.infer = infer;
    t.output = output;
    t.reset = [](void *request) { static_cast<Request *>(request)->states.clear(); };
    t.cancel = [](void *request) { static_cast<Request *>(request)->cancelled = true; };
    t.resume = [](void *request) { static_cast<Request *>(request)->cancelled = false; };
    t.profile = profile;
    t.profile_reset = [](void *request) { static_cast<Request *>(request)->runs = 0; };
    t.destroy_request = [](void *request) {
        delete static_cast<Request *>(request);
        note("request;");
    };
    add_contexts(&t);
    return t;
}

inline int32_t
entry(uint32_t, const xm_ext_host *host, const xm_ext_ops **ops, void **plugin,
      xm_ext_error *err)
{
    *ops = script->table;
    script->host = host;
    SCRIPTED("entry")
    *plugin = script;
    return XM_EXT_OK;
}

} // namespace scripted

#endif
