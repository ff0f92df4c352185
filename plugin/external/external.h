/* SPDX-License-Identifier: Apache-2.0
 *
 * Wraps device plugins of other libraries (xemoe/plugin.h) as plugins of the core
 * (plugin/plugin.h).
 *
 *   external_library.c   the library: dlopen, its users, unloading
 *   external_plugin.c    the plugin's table: checks, and the device's properties
 *   external_model.c     the plugin's view of a graph; external_node.c runs a node for it
 *   external_compiled.c  compiled models; external_request.c their requests
 *   external_context.c   contexts, and memory in them
 *   plugins_file.c       lists of such libraries
 *
 * A plugin's table, statuses, ports and results are checked, because an error in them would crash
 * this process. The plugin's code cannot be checked.
 */
#ifndef XM_PLUGIN_EXTERNAL_EXTERNAL_H
#define XM_PLUGIN_EXTERNAL_EXTERNAL_H

#include "plugin/plugin.h"
#include "transformations/graph/graph.h"
#include "xemoe/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- libraries (external_library.c) ------------------------------------------------ */

/* A loaded library. Without users it stays loaded until xm_library_unload_idle, so that the next
 * user need not load it again. */
struct xm_library;

/* Opens a library, or finds an open one. dlopen's search applies to a `path` without a slash.
 * XM_INVALID: it is not a library, or has no entry function. */
enum xm_status xm_library_open(const char *path, struct xm_library **out,
                               struct xm_error *err);
void xm_library_close(struct xm_library *l); /* NULL is allowed */
xm_ext_entry_fn xm_library_entry(const struct xm_library *l);
/* Unloads all libraries without users. May be called from any thread. */
void xm_library_unload_idle(void);

/* ---- the plugin (external_plugin.c) ------------------------------------------------ */

/* The state that the plugin and its compiled models share; the last of them frees it. */
struct xm_external {
    int refs;
    struct xm_library *library; /* NULL: the table is part of this process */
    xm_ext_ops ops;             /* a copy; missing members are NULL */
    void *plugin;               /* the plugin's handle, an argument of its functions */
    char *name;                 /* of the device */
};
void xm_external_ref(struct xm_external *x);
void xm_external_unref(struct xm_external *x); /* NULL is allowed */

/* Makes a plugin for the device `name`. Owns `library`, which may be NULL, from now on, also on
 * failure. */
enum xm_status xm_external_create(const char *name, xm_ext_entry_fn entry,
                                  struct xm_library *library, struct xm_plugin **out,
                                  struct xm_error *err);
/* Makes a plugin of the library in a file. */
enum xm_status xm_external_load(const char *name, const char *path,
                                struct xm_plugin **out, struct xm_error *err);
/* Returns NULL if a device may have the name; else a static sentence with the reason. */
const char *xm_external_refuse_name(const char *name);

/* Appends the device's name: "EXAMPLE", or "EXAMPLE.1" if the plugin has several devices. */
void xm_external_print_name(const struct xm_external *x, uint32_t index,
                            struct xm_strbuf *out);

/* A sink that appends to `out`. */
xm_ext_sink xm_external_sink(struct xm_strbuf *out);

/* Whether `status` is a failure defined in xemoe/plugin.h. */
bool xm_external_is_status(int32_t status);
/* Converts the result of a plugin's function that returned `status` and wrote `why`: returns the
 * core's status and writes the plugin's sentence after the plugin's name. */
enum xm_status xm_external_status(const struct xm_external *x, const char *function,
                                  int32_t status, xm_ext_error *why,
                                  struct xm_error *err);

/* Gets a property: from the plugin's function, or, if it does not know the key, from `rows`. If it
 * does not know SUPPORTED_PROPERTIES either, that is the list of the rows' keys. */
struct xm_external_row {
    const char *key, *value;
};
/* The plugin's function, with its argument `of`: a device or a compiled model. */
struct xm_external_question {
    int32_t (*ask)(const struct xm_external *x, const void *of, const char *key,
                   const xm_ext_sink *out, xm_ext_error *err);
    const void *of;
};
enum xm_status xm_external_property(const struct xm_external *x,
                                    const struct xm_external_question *q,
                                    const struct xm_external_row *rows, size_t n_rows,
                                    const char *key, struct xm_strbuf *out,
                                    struct xm_error *err);

/* ---- models (external_model.c, external_node.c) ------------------------------------ */

struct xm_ext_model {
    int refs;
    struct xm_graph *graph;       /* owned; its arena holds all members below       */
    struct xm_ports ports;        /* inputs and results of the graph                */
    const struct xm_node **nodes; /* [n]; the graph's nodes without the absent one  */
    xm_ext_node *views;           /* [n]; the nodes as the plugin sees them         */
    xm_ext_property **attributes; /* [n]; the nodes' attributes as texts            */
    uint32_t n;
    bool has_states;
};

/* A model of the graph `g`, which it owns from now on, also on failure. */
enum xm_status xm_external_model_create(struct xm_graph *g, xm_ext_model **out,
                                        struct xm_error *err);
void xm_external_model_release(const xm_ext_model *m);
/* The function run_node of struct xm_ext_host. */
int32_t xm_external_run_node(const xm_ext_model *m, uint32_t node,
                             const xm_ext_tensor *in, xm_ext_tensor *out,
                             void *(*alloc)(void *ctx, uint64_t bytes), void *ctx,
                             xm_ext_error *err);
const xm_ext_host *xm_external_host(void);

/* ---- compiled models and requests -------------------------------------------------- */

struct xm_external_compiled {
    struct xm_compiled base; /* ports are the model's, or in the arena         */
    struct xm_external *shared;
    void *compiled;             /* the plugin's handle                            */
    xm_ext_model *model;        /* NULL: it was imported                          */
    uint32_t index;             /* of the device                                  */
    struct xm_context *context; /* referenced; NULL: compiled without a context   */
    /* only if imported: the file's bytes; memory for the ports that the plugin reports */
    struct xm_mapping *blob;
    struct xm_arena arena;
    struct xm_dim_pool dims;
};

/* The parameters of xm_external_compile. */
struct xm_external_compile {
    uint32_t index;             /* of the device */
    struct xm_context *context; /* referenced by the compiled model; NULL: none */
    const struct xm_property *properties;
    uint32_t n_properties;
};
/* Both functions reference `shared`. xm_external_compile owns `model` from now on, also on
 * failure. */
enum xm_status xm_external_compile(struct xm_external *shared,
                                   const struct xm_external_compile *how,
                                   xm_ext_model *model, struct xm_compiled **out,
                                   struct xm_error *err);
enum xm_status xm_external_import(struct xm_external *shared, uint32_t index,
                                  const struct xm_import *from,
                                  const struct xm_property *properties, uint32_t n,
                                  struct xm_compiled **out, struct xm_error *err);
enum xm_status xm_external_create_request(struct xm_compiled *c, struct xm_infer **out,
                                          struct xm_error *err);

/* ---- contexts (external_context.c) ------------------------------------------------- */

struct xm_external_context {
    struct xm_context base;
    struct xm_external *shared; /* referenced */
    uint32_t index;             /* of the device */
    void *context;              /* the plugin's */
};

/* Memory of the plugin's, which the tensor and the requests that were given it hold together. */
struct xm_external_block {
    int refs;
    const struct xm_external *shared; /* the context's library, referenced by the block */
    void *memory;                     /* the plugin's handle to the memory */
};
void xm_external_block_ref(struct xm_external_block *b);   /* NULL is allowed */
void xm_external_block_unref(struct xm_external_block *b); /* NULL is allowed */

struct xm_external_memory {
    struct xm_remote base;
    struct xm_external_block *block; /* another one when it has grown */
    uint32_t kind;
    bool is_foreign;
};

enum xm_status xm_external_create_context(struct xm_external *shared, uint32_t index,
                                          const struct xm_context_wish *wish,
                                          struct xm_context **out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
