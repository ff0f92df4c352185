/* SPDX-License-Identifier: Apache-2.0
 *
 * Device plugins: all that the core knows of a device.
 *
 * A plugin is one ops struct for one device name ("GPU", "REFERENCE"). The core finds it
 * by name and calls through the ops; objects it makes (compiled models, infer requests)
 * carry ops structs of their own. Tests register plugins of theirs.
 *
 * Threads: plugins and compiled models may be used from any thread; an infer request from
 * one at a time. Errors: status and sentence in err.
 */
#ifndef XM_PLUGIN_PLUGIN_H
#define XM_PLUGIN_PLUGIN_H

#include "plugin/gpu/request.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_plugin;
struct xm_compiled;
struct xm_batcher;
struct xm_kv_sequence;
struct xm_infer;

/* A property of a request to compile: two strings. */
struct xm_property {
    const char *key, *value;
};

/* ---- the ops a device implements ---- */

struct xm_plugin_ops {
    const char *name; /* the device name: "GPU"                                      */
    const char *description; /* of the plugin, for versions */
    /* Devices there are now; 0 when none. "GPU.1" is index 1. */
    uint32_t (*count)(struct xm_plugin *p);
    /* A property of one device as OpenVINO text; XM_NOT_FOUND: not a property of this
     * plugin. */
    enum xm_status (*get_property)(struct xm_plugin *p, uint32_t index, const char *key,
                                   struct xm_strbuf *out, struct xm_error *err);
    /* Stored for later compiles on this plugin. */
    enum xm_status (*set_property)(struct xm_plugin *p, const char *key,
                                   const char *value, struct xm_error *err);
    /* Compiles; takes `g` over, also on failure. */
    enum xm_status (*compile)(struct xm_plugin *p, uint32_t index, struct xm_graph *g,
                              const struct xm_property *properties, uint32_t n_properties,
                              const struct xm_compile_options *options,
                              struct xm_compiled **out, struct xm_error *err);
    /* From what export_model wrote. NULL: this device cannot import. */
    enum xm_status (*import_model)(struct xm_plugin *p, uint32_t index, const void *bytes,
                                   uint64_t n, const struct xm_property *properties,
                                   uint32_t n_properties, struct xm_compiled **out,
                                   struct xm_error *err);
    /* Calls `supported` with the friendly name of each node that the device can run. */
    enum xm_status (*query_model)(struct xm_plugin *p, uint32_t index, struct xm_graph *g,
                                  void (*supported)(const char *node, void *ctx),
                                  void *ctx, struct xm_error *err);
    /* The engine for remote contexts; referenced. NULL: this device has none. */
    enum xm_status (*create_context)(struct xm_plugin *p, uint32_t index,
                                     struct xm_engine **out, struct xm_error *err);
    void (*destroy)(struct xm_plugin *p);
};

struct xm_plugin {
    const struct xm_plugin_ops *ops;
};

/* ---- compiled models ---- */

struct xm_compiled_ops {
    enum xm_status (*create_request)(struct xm_compiled *c, struct xm_infer **out,
                                     struct xm_error *err);
    enum xm_status (*get_property)(struct xm_compiled *c, const char *key,
                                   struct xm_strbuf *out, struct xm_error *err);
    enum xm_status (*export_model)(struct xm_compiled *c, struct xm_strbuf *out,
                                   struct xm_error *err); /* NULL: cannot */
    /* The program as text, for `info -v` and the runtime model. */
    void (*print)(struct xm_compiled *c, struct xm_strbuf *out);
    void (*destroy)(struct xm_compiled *c);
    /* Contexts that run together; NULL: this plugin has none. XM_UNSUPPORTED: nor has this
     * model. */
    enum xm_status (*create_sequence)(struct xm_compiled *c, struct xm_kv_sequence **out,
                                      struct xm_error *err);
    enum xm_status (*create_batcher)(struct xm_compiled *c, struct xm_batcher **out,
                                     struct xm_error *err);
};

struct xm_compiled {
    const struct xm_compiled_ops *ops;
    int refs;
    struct xm_ports ports;                /* lists of the ops' owner */
    const struct xm_pass_report *reports; /* which passes fired; may be NULL */
    size_t n_reports;
    struct xm_program *program; /* borrowed; NULL for plugins without programs    */
};
void xm_compiled_ref(struct xm_compiled *c);
void xm_compiled_unref(struct xm_compiled *c); /* NULL is allowed */

/* ---- infer requests ---- */

struct xm_infer_ops {
    /* Input bytes stay the caller's until the run has ended. */
    enum xm_status (*set_input)(struct xm_infer *r, uint32_t input,
                                const struct xm_host_tensor *t, struct xm_error *err);
    enum xm_status (*infer)(struct xm_infer *r, struct xm_error *err);
    /* Valid until the next run. */
    enum xm_status (*output)(struct xm_infer *r, uint32_t output,
                             struct xm_host_tensor *t, struct xm_error *err);
    void (*reset)(struct xm_infer *r); /* states empty                         */
    void (*truncate)(struct xm_infer *r, uint64_t past); /* NULL: only reset */
    uint64_t (*past)(const struct xm_infer *r); /* positions in the states              */
    /* From any thread, and from a signal's handler: ends the run that goes on, and each that
     * begins before `resume`, with XM_CANCELLED. */
    void (*cancel)(struct xm_infer *r);
    void (*resume)(struct xm_infer *r);
    void (*destroy)(struct xm_infer *r);
};

struct xm_infer {
    const struct xm_infer_ops *ops;
    struct xm_compiled *compiled; /* referenced by the core */
    struct xm_request *request;   /* borrowed; NULL for plugins without programs */
};

/* ---- the core: plugins by name ---- */

struct xm_core;
/* With the built-in plugins GPU (OpenCL devices) and REFERENCE (the host reference). */
enum xm_status xm_core_create(struct xm_core **out, struct xm_error *err);
void xm_core_destroy(struct xm_core *c); /* NULL is allowed; compiled models stay valid */
/* Takes the plugin over; XM_INVALID when the name is taken. */
enum xm_status xm_core_register(struct xm_core *c, struct xm_plugin *p,
                                struct xm_error *err);
uint32_t xm_core_plugins(const struct xm_core *c, struct xm_plugin *const **list);

/* "GPU", "GPU.1", "REFERENCE"; "CPU", NULL and what OpenVINO spreads over devices (AUTO,
 * HETERO, MULTI, BATCH, with or without ":GPU,CPU") mean GPU. XM_NOT_FOUND lists what there
 * is. */
enum xm_status xm_core_find(const struct xm_core *c, const char *device,
                            struct xm_plugin **plugin, uint32_t *index,
                            struct xm_error *err);
/* Names of all devices ("GPU" alone, "GPU.0", "GPU.1" when several), one by one. */
void xm_core_devices(const struct xm_core *c, void (*each)(const char *name, void *ctx),
                     void *ctx);

/* Takes `g` over, also on failure. */
enum xm_status xm_core_compile(const struct xm_core *c, struct xm_graph *g,
                               const char *device, const struct xm_property *properties,
                               uint32_t n_properties,
                               const struct xm_compile_options *options,
                               struct xm_compiled **out, struct xm_error *err);
enum xm_status xm_compiled_create_request(struct xm_compiled *c, struct xm_infer **out,
                                          struct xm_error *err);
void xm_infer_destroy(struct xm_infer *r); /* NULL is allowed */

/* Whether what XM_FORCE names is there. */
enum xm_status xm_core_check_force(struct xm_error *err);

/* The two built-in plugins. */
enum xm_status xm_gpu_plugin_create(struct xm_plugin **out, struct xm_error *err);
enum xm_status xm_reference_plugin_create(struct xm_plugin **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
