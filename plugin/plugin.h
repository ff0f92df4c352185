/* SPDX-License-Identifier: Apache-2.0
 *
 * Device plugins: the core's interface to a device.
 *
 * A plugin is one ops struct for one device name ("GPU", "REFERENCE"). The core finds it by name
 * and calls its functions; the objects that it creates (compiled models, infer requests) have ops
 * structs as well. Tests register plugins of their own.
 *
 * Threads: plugins and compiled models may be used by any thread; an infer request by one thread at
 * a time. Failures set a status and a sentence in err.
 */
#ifndef XM_PLUGIN_PLUGIN_H
#define XM_PLUGIN_PLUGIN_H

#include "plugin/compile_options.h"
#include "plugin/context.h"
#include "plugin/exec_graph.h"
#include "plugin/exported.h"
#include "plugin/port.h"
#include "plugin/profile.h"
#include "plugin/sequence.h"
#include "plugin/stats.h"
#include "plugin/step_check.h"
#include "transformations/pass_report.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_graph;
struct xm_plugin;
struct xm_compiled;
struct xm_infer;

/* A property of a request to compile: two strings. */
struct xm_property {
    const char *key, *value;
};

/* ---- the ops a device implements ---- */

struct xm_plugin_ops {
    const char *name; /* the device name: "GPU"                                      */
    const char *description; /* of the plugin, for lists of versions */
    /* The number of devices that exist now. "GPU.1" has index 1. */
    uint32_t (*count)(struct xm_plugin *p);
    /* The facts of an OpenCL device, static. NULL: the plugin's devices are not OpenCL devices. */
    const struct xm_device_info *(*info)(struct xm_plugin *p, uint32_t index);
    /* A property of one device as OpenVINO text; XM_NOT_FOUND: not a property of this
     * plugin. */
    enum xm_status (*get_property)(struct xm_plugin *p, uint32_t index, const char *key,
                                   struct xm_strbuf *out, struct xm_error *err);
    /* Sets a property for models compiled later on this plugin. */
    enum xm_status (*set_property)(struct xm_plugin *p, const char *key,
                                   const char *value, struct xm_error *err);
    /* Compiles `g`, which the plugin owns from now on, also on failure. */
    enum xm_status (*compile)(struct xm_plugin *p, uint32_t index, struct xm_graph *g,
                              const struct xm_property *properties, uint32_t n_properties,
                              const struct xm_compile_options *options,
                              struct xm_compiled **out, struct xm_error *err);
    /* Imports a model that export_model wrote. NULL: the plugin cannot. */
    enum xm_status (*import_model)(struct xm_plugin *p, uint32_t index,
                                   const struct xm_import *from,
                                   const struct xm_property *properties,
                                   uint32_t n_properties, struct xm_compiled **out,
                                   struct xm_error *err);
    /* Calls `supported` with the friendly name of each node that the device can run. */
    enum xm_status (*query_model)(struct xm_plugin *p, uint32_t index, struct xm_graph *g,
                                  void (*supported)(const char *node, void *ctx),
                                  void *ctx, struct xm_error *err);
    /* Creates a context, or returns the device's own. NULL: the devices have no contexts. */
    enum xm_status (*create_context)(struct xm_plugin *p, uint32_t index,
                                     const struct xm_context_wish *wish,
                                     struct xm_context **out, struct xm_error *err);
    /* As compile, in a context of this plugin or of a plugin with the same name. */
    enum xm_status (*compile_in)(struct xm_plugin *p, struct xm_context *c,
                                 struct xm_graph *g, const struct xm_property *properties,
                                 uint32_t n_properties, struct xm_compiled **out,
                                 struct xm_error *err);
    void (*destroy)(struct xm_plugin *p);
};

struct xm_plugin {
    const struct xm_plugin_ops *ops;
};

/* ---- compiled models ---- */

/* A step of a compiled model. */
struct xm_step_fact {
    const char *op, *name; /* of the graph's node */
    bool on_host;          /* runs on the host, not as a kernel */
};
typedef void (*xm_step_fact_fn)(const struct xm_step_fact *step, void *ctx);

struct xm_compiled_ops {
    enum xm_status (*create_request)(struct xm_compiled *c, struct xm_infer **out,
                                     struct xm_error *err);
    enum xm_status (*get_property)(struct xm_compiled *c, const char *key,
                                   struct xm_strbuf *out, struct xm_error *err);
    enum xm_status (*export_model)(struct xm_compiled *c, const struct xm_export *to,
                                   struct xm_error *err); /* NULL: cannot */
    /* Appends the program as text, for `info -v` and the runtime model. */
    void (*print)(struct xm_compiled *c, struct xm_strbuf *out);
    void (*destroy)(struct xm_compiled *c);
    /* Sequences, and the batch that runs them together. NULL: the plugin does not support them;
     * XM_UNSUPPORTED: this model does not. */
    enum xm_status (*create_sequence)(struct xm_compiled *c, struct xm_sequence **out,
                                      struct xm_error *err);
    enum xm_status (*create_batch)(struct xm_compiled *c, struct xm_batch **out,
                                   struct xm_error *err);
    /* Announces `n` sequences of that many positions each: the cache reserves memory for them and
     * no more. NULL: the device needs no announcement. */
    void (*expect)(struct xm_compiled *c, const uint64_t *positions, size_t n);
    /* Whether the cache has room now for n sequences of that many positions each, beside those that
     * it holds. A later run may find it full all the same. NULL: the device does not say. */
    bool (*has_room)(struct xm_compiled *c, const uint64_t *positions, size_t n);
    /* Statistics of memory and kernels. NULL: not supported. */
    void (*stats)(struct xm_compiled *c, struct xm_compiled_stats *out);
    /* Statistics of the expert caches, read from the device; waits for a run that uses the caches.
     * NULL: the plugin has none. */
    enum xm_status (*expert_cache)(struct xm_compiled *c,
                                   struct xm_expert_cache_stats *out,
                                   struct xm_error *err);
    /* Returns the rate of reading weights from the memory that holds them, in bytes a second.
     * Measures for `seconds` and stores the rate in CACHE_DIR. seconds = 0: returns the stored
     * rate, or XM_NOT_FOUND. NULL: not supported. */
    enum xm_status (*read_rate)(struct xm_compiled *c, double seconds, double *out,
                                struct xm_error *err);
    /* Measures for `seconds` the highest rate of multiply-adds a second in the precision of the
     * activations. NULL: not supported. */
    enum xm_status (*multiply_rate)(struct xm_compiled *c, double seconds, double *out,
                                    struct xm_error *err);
    /* Calls `fn` for each step of the program, in order of execution. NULL: the plugin has no
     * steps. */
    void (*steps)(struct xm_compiled *c, xm_step_fact_fn fn, void *ctx);
    /* The steps as a graph, which the caller frees with xm_exec_graph_free, also on failure. NULL:
     * not supported. */
    enum xm_status (*exec_graph)(struct xm_compiled *c, struct xm_exec_graph *out,
                                 struct xm_error *err);
    /* The context that the model runs in; *out is referenced. NULL: the plugin has no contexts. */
    enum xm_status (*get_context)(struct xm_compiled *c, struct xm_context **out,
                                  struct xm_error *err);
};

struct xm_compiled {
    const struct xm_compiled_ops *ops;
    int refs;
    struct xm_ports ports; /* owned by the plugin's part of the compiled model */
    const struct xm_pass_report *reports; /* one report for each pass; may be NULL */
    size_t n_reports;
    /* texts with one sentence a line: the decisions of config rules, and the passes' notes on the
     * graph. NULL: none */
    const char *rules, *notes;
    /* number of values that are rounded to bf16 as in training (XM_NUMERICS) */
    uint32_t n_rounded;
};
void xm_compiled_ref(struct xm_compiled *c);
void xm_compiled_unref(struct xm_compiled *c); /* NULL is allowed */

/* ---- infer requests ---- */

struct xm_infer_ops {
    /* The caller keeps the input's bytes unchanged until the run has ended. */
    enum xm_status (*set_input)(struct xm_infer *r, uint32_t input,
                                const struct xm_host_tensor *t, struct xm_error *err);
    enum xm_status (*infer)(struct xm_infer *r, struct xm_error *err);
    /* Returns a result, which is valid until the next run. */
    enum xm_status (*output)(struct xm_infer *r, uint32_t output,
                             struct xm_host_tensor *t, struct xm_error *err);
    /* Makes runs read an input from, or write a result to, memory of the device. The caller keeps
     * that memory until it sets another one for the same port, or destroys the request. The data of
     * `t` are not read. A result's `m` NULL: runs write it to no device memory. Host tensors set on
     * the same port stay set. NULL: the device has no such memory. */
    enum xm_status (*set_remote_input)(struct xm_infer *r, uint32_t input,
                                       const struct xm_host_tensor *t,
                                       struct xm_remote *m, struct xm_error *err);
    enum xm_status (*set_remote_output)(struct xm_infer *r, uint32_t output,
                                        struct xm_remote *m, struct xm_error *err);
    /* As output, but sets only type and shape, so that no data are read back from the device. */
    enum xm_status (*describe_output)(struct xm_infer *r, uint32_t output,
                                      struct xm_host_tensor *t, struct xm_error *err);
    void (*reset)(struct xm_infer *r); /* Empties the states. */
    /* Truncates the states; NULL: only reset is possible. */
    void (*truncate)(struct xm_infer *r, uint64_t past);
    uint64_t (*past)(
        const struct xm_infer *r); /* Returns the number of positions in the states. */
    /* From any thread and from signal handlers: makes the run in progress, and each that begins
     * before `resume`, return XM_CANCELLED. */
    void (*cancel)(struct xm_infer *r);
    void (*resume)(struct xm_infer *r);
    /* Sets the function that is called with the progress of prompts, in the thread of the run; fn
     * NULL: none. NULL: the device does not report progress. */
    void (*watch)(struct xm_infer *r, xm_tokens_fn fn, void *ctx);
    void (*stats)(const struct xm_infer *r, struct xm_request_stats *out); /* or NULL */
    /* Later runs compare every step with the host reference, which is slow. The model must have
     * been compiled with keep_graph. NULL: the device is the reference. */
    enum xm_status (*check)(struct xm_infer *r, xm_step_check_fn fn, void *ctx,
                            struct xm_error *err);
    void (*destroy)(struct xm_infer *r);
    const struct xm_profile_ops *profile; /* NULL: this plugin measures nothing */
};

struct xm_infer {
    const struct xm_infer_ops *ops;
    struct xm_compiled *compiled; /* referenced by the core */
};

/* ---- the core: plugins by name ---- */

struct xm_core;
/* Creates a core with the built-in plugins GPU (all OpenCL devices, the best first), CPU (the
 * OpenCL devices that are processors) and REFERENCE (the host reference), and with the external
 * plugins of the lists in the environment variable XM_PLUGINS. */
enum xm_status xm_core_create(struct xm_core **out, struct xm_error *err);
void xm_core_destroy(struct xm_core *c); /* NULL is allowed; compiled models stay valid */
/* Adds a plugin, which the core owns from now on. XM_INVALID: another plugin has its name. */
enum xm_status xm_core_register(struct xm_core *c, struct xm_plugin *p,
                                struct xm_error *err);
/* Adds a plugin library (xemoe/plugin.h) as the device `name`; it is loaded at once. */
enum xm_status xm_core_add_library(const struct xm_core *c, const char *name,
                                   const char *path, struct xm_error *err);
/* Adds the plugins of a list in OpenVINO's form; each is loaded when its device is first used. */
enum xm_status xm_core_load_list(const struct xm_core *c, const char *xml_path,
                                 struct xm_error *err);
/* xm_core_count is the number of plugins, loaded or not. xm_core_plugins loads all of them and
 * returns those that could be loaded, after a warning about the others; its list stays valid as
 * long as the core. */
uint32_t xm_core_count(const struct xm_core *c);
uint32_t xm_core_plugins(const struct xm_core *c, struct xm_plugin *const **list);
/* Returns the path of the library that the plugin was loaded from; NULL: it is built in. */
const char *xm_core_library_of(const struct xm_core *c, const struct xm_plugin *p);
/* Unloads the libraries of plugins that are no longer in use. */
void xm_core_unload_libraries(void);

/* Advice for users without an OpenCL device. */
#define XM_DRIVERS_TO_INSTALL                                                            \
    "install Intel's driver (package intel-opencl-icd), or for the processor PoCL "      \
    "(pocl-opencl-icd; tools/setup installs it)"

/* Finds a device: "GPU", "GPU.1", "CPU", "CPU.0", "REFERENCE", or a plugin's. NULL and OpenVINO's
 * names for several devices (AUTO, HETERO, MULTI, BATCH) mean GPU, or with a list (":GPU.1,CPU")
 * one device of the list. CPU means GPU if no device is a processor. XM_NOT_FOUND: there is no such
 * device; the sentence lists all devices. */
enum xm_status xm_core_find(const struct xm_core *c, const char *device,
                            struct xm_plugin **plugin, uint32_t *index,
                            struct xm_error *err);
/* Calls `each` with the name of every device: "GPU", or "GPU.0", "GPU.1" if there are several. */
void xm_core_devices(const struct xm_core *c, void (*each)(const char *name, void *ctx),
                     void *ctx);

/* Compiles the model for a device. Owns `g` from the call on, also on failure. */
enum xm_status xm_core_compile(const struct xm_core *c, struct xm_graph *g,
                               const char *device, const struct xm_property *properties,
                               uint32_t n_properties,
                               const struct xm_compile_options *options,
                               struct xm_compiled **out, struct xm_error *err);
/* As xm_core_compile, for a mesh of the devices in `list` (plugin/mesh/mesh_names.h). */
enum xm_status xm_mesh_compile(const struct xm_core *c, struct xm_graph *g,
                               const char *list, const struct xm_property *properties,
                               uint32_t n_properties,
                               const struct xm_compile_options *options,
                               struct xm_compiled **out, struct xm_error *err);
/* Imports an exported model. XM_UNSUPPORTED: the device cannot import, or the model was exported
 * for another device. */
enum xm_status xm_core_import(const struct xm_core *c, const struct xm_import *from,
                              const char *device, const struct xm_property *properties,
                              uint32_t n_properties, struct xm_compiled **out,
                              struct xm_error *err);
/* Import from a file, and export to a file: the file appears complete or not at all. */
enum xm_status xm_core_import_file(const struct xm_core *c, const char *path,
                                   const char *device,
                                   const struct xm_property *properties,
                                   uint32_t n_properties, struct xm_compiled **out,
                                   struct xm_error *err);
enum xm_status xm_compiled_export_file(struct xm_compiled *c, const char *path,
                                       struct xm_error *err);
enum xm_status xm_compiled_create_request(struct xm_compiled *c, struct xm_infer **out,
                                          struct xm_error *err);
void xm_infer_destroy(struct xm_infer *r); /* NULL is allowed */
/* XM_UNSUPPORTED: the device or this model does not support sequences. */
enum xm_status xm_compiled_create_sequence(struct xm_compiled *c,
                                           struct xm_sequence **out,
                                           struct xm_error *err);
enum xm_status xm_compiled_fork_sequence(struct xm_sequence *s, struct xm_sequence **out,
                                         struct xm_error *err);
void xm_compiled_destroy_sequence(struct xm_sequence *s); /* NULL is allowed */
enum xm_status xm_compiled_create_batch(struct xm_compiled *c, struct xm_batch **out,
                                        struct xm_error *err);
void xm_compiled_destroy_batch(struct xm_batch *b); /* NULL is allowed */

/* XM_INVALID: a kernel variant that XM_FORCE names does not exist. */
enum xm_status xm_core_check_force(struct xm_error *err);

/* The built-in plugins. */
enum xm_status xm_gpu_plugin_create(struct xm_plugin **out, struct xm_error *err);
enum xm_status xm_cpu_plugin_create(struct xm_plugin **out, struct xm_error *err);
enum xm_status xm_reference_plugin_create(struct xm_plugin **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
