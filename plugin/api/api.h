/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the C API: the structs behind the handles, and functions that several files share.
 *
 * The API's functions check arguments and call the modules directly. Handles with several owners
 * (models, tensors) are reference counted as mappings, so that a graph can own a reference to the
 * bytes that it uses.
 */
#ifndef XM_PLUGIN_API_API_H
#define XM_PLUGIN_API_API_H

#include "openvino/c/openvino.h"
#include "plugin/api/handles.h"
#include "plugin/plugin.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- failures (error.c) ------------------------------------------------------------ */

/* Stores the sentence for ov_get_last_err_msg(); returns the API's code for the status. */
ov_status_e xm_api_error(const struct xm_error *err);
/* Stores a formatted sentence and returns `code`. With INVALID_C_PARAM the sentence is not stored,
 * but logged. */
ov_status_e xm_api_fail(ov_status_e code, const char *fmt, ...) XM_PRINTF(2, 3);
/* Returns INVALID_C_PARAM and logs that the public function `name` was called with a wrong
 * argument. */
ov_status_e xm_api_refuse(const char *name);
void xm_api_clear_error(void);
/* Registers `handle` as a live handle, which the caller may return. After a failure the caller
 * still owns the object. */
ov_status_e xm_api_new_handle(const void *handle, enum xm_api_kind kind);

/* Moves the text of `b` to *out, which the API's caller frees with ov_free(). */
ov_status_e xm_api_give_text(struct xm_strbuf *b, char **out);

/* ---- tensors (ov_tensor.c) --------------------------------------------------------- */

/* A tensor. A handle is one reference to it. */
struct ov_tensor {
    struct xm_mapping base; /* reference count: handles, requests, graphs */
    ov_element_type_e type;
    uint32_t rank;
    int64_t dim[XM_MAX_RANK];
    uint64_t n;               /* elements */
    uint64_t bytes;           /* size of the elements */
    uint64_t capacity;        /* size of `data` in bytes */
    void *data;               /* NULL: the host cannot access the memory */
    bool owned;               /* the tensor must free `data` */
    struct xm_remote *remote; /* memory of a context, owned; NULL: the tensor has none */
};

static inline bool
xm_api_tensor_is_remote(const ov_tensor_t *t)
{
    return t->remote && !t->data;
}

enum xm_status xm_api_tensor_create(ov_element_type_e type, uint32_t rank,
                                    const int64_t *dim, ov_tensor_t **out,
                                    struct xm_error *err);
/* Computes the size of a tensor in memory of a context. */
enum xm_status xm_api_tensor_bytes(ov_element_type_e type, ov_shape_t shape,
                                   uint64_t *bytes, struct xm_error *err);
/* Creates a tensor in memory of a context, which it owns from now on, also on failure. `is_remote`
 * false: the host can access the memory, and the tensor behaves like a host tensor. */
ov_status_e xm_api_tensor_of_remote(ov_element_type_e type, ov_shape_t shape,
                                    struct xm_remote *memory, bool is_remote,
                                    ov_tensor_t **out);
/* its rank is negative, or its dimensions are NULL */
bool xm_api_is_wrong_shape(ov_shape_t shape);
/* Returns a handle; it owns the caller's reference from now on, also on failure. */
ov_status_e xm_api_tensor_give(ov_tensor_t *t, ov_tensor_t **out);
/* Changes the shape. The contents are lost if the memory must grow. */
enum xm_status xm_api_tensor_reshape(ov_tensor_t *t, uint32_t rank, const int64_t *dim,
                                     struct xm_error *err);

/* ---- ports (node.c) ---------------------------------------------------------------- */

struct xm_api_port {
    bool is_output, is_named;
    enum xm_element element;
    uint32_t rank;
    struct xm_bound dim[XM_MAX_RANK];
    /* the first tensor name, or the friendly name; stored behind the struct */
    const char *name;
    const char *node; /* the friendly name of the node; stored behind `name` */
};

/* Const and non-const port handles point to the same struct. */
static inline const struct xm_api_port *
xm_api_port(const ov_output_port_t *port)
{
    return (const struct xm_api_port *)port;
}

static inline const struct xm_api_port *
xm_api_const_port(const ov_output_const_port_t *port)
{
    return (const struct xm_api_port *)port;
}

/* The inputs or the outputs of a model. */
struct xm_api_ports {
    const struct xm_port *list;
    uint32_t n;
    bool is_output;
};

/* A new port, or the status of the failure to find it. */
struct xm_api_found {
    ov_status_e status;
    struct xm_api_port *port;
};

/* Finds the only port. */
struct xm_api_found xm_api_port_only(struct xm_api_ports p);
/* `missing`: the status if there is no such port. */
struct xm_api_found xm_api_port_by_index(struct xm_api_ports p, size_t index,
                                         ov_status_e missing);
struct xm_api_found xm_api_port_by_name(struct xm_api_ports p, const char *name);
/* Returns the found port as a handle, or the status of the failure. */
ov_status_e xm_api_give_port(struct xm_api_found found, ov_output_port_t **out);
ov_status_e xm_api_give_const_port(struct xm_api_found found,
                                   ov_output_const_port_t **out);

/* ---- models (model.c) -------------------------------------------------------------- */

struct ov_model {
    struct xm_mapping base; /* reference count: the handle, and graphs cloned from it */
    /* never changed; of a runtime model: has no nodes, only the model's name */
    struct xm_graph *graph;
    struct xm_ports ports;
    /* Of a runtime model (runtime_model.c): the compiled model, whose ports it has, and its steps.
     * Else NULL. */
    struct xm_compiled *runtime_of;
    struct xm_exec_graph exec;
};

/* Creates a model, which owns the graph from now on, also on failure. */
ov_status_e xm_api_model_create(struct xm_graph *g, ov_model_t **out);
/* Returns OK if the model was read from a file. Fails for a runtime model; `what` ("compiled") is
 * the operation that is refused. */
ov_status_e xm_api_model_check(const ov_model_t *m, const char *what);

/* ---- the core and compiled models (core*.c, compiled_model.c) ---------------------- */

struct xm_api_core_properties; /* core_properties.c */
struct xm_api_settings;        /* core_settings.c */

struct ov_core {
    struct xm_core *core;
    struct xm_api_core_properties *properties;
    struct xm_api_settings *settings; /* properties set for devices */
};

struct xm_api_core_properties *
xm_api_core_properties_create(void); /* NULL: out of memory */
void
xm_api_core_properties_destroy(struct xm_api_core_properties *p); /* NULL is allowed */

/* core_settings.c: properties set by the caller. They are stored until their device is first used.
 * `device` NULL: all devices. `is_cores`: the core has the property as well, so a device need not
 * know it. */
struct xm_api_settings *xm_api_settings_create(void);    /* NULL: out of memory */
void xm_api_settings_destroy(struct xm_api_settings *s); /* NULL is allowed */
enum xm_status xm_api_set_for_device(const ov_core_t *core, const char *device,
                                     const struct xm_property *p, bool is_cores,
                                     struct xm_error *err);
/* Finds a device by its name; at its first use applies the stored properties. */
enum xm_status xm_api_use_device(const ov_core_t *core, const char *device,
                                 struct xm_plugin **plugin, uint32_t *index,
                                 struct xm_error *err);

struct ov_compiled_model {
    struct xm_compiled *compiled;
    struct xm_api_timeout *timeout; /* NULL: the device is not BATCH */
};

/* Wraps `c`, whose reference it owns from now on, also on failure. `device`: the name that the
 * caller gave; NULL: none. */
ov_status_e xm_api_compiled_create(struct xm_compiled *c, const char *device,
                                   ov_compiled_model_t **out);

struct ov_remote_context {
    struct xm_context *context; /* referenced */
};

/* Wraps `context`, whose reference it owns from now on, also on failure. */
ov_status_e xm_api_context_give(struct xm_context *context, ov_remote_context_t **out);

/* remote_context.c: the values of the keys for contexts and shared memory; NULL: not given. */
struct xm_api_handles {
    size_t n; /* number of keys */
    const char *context_type, *device, *tile, *memory_type, *plane;
    void *cl_context, *cl_queue, *va_device, *memory, *object;
};
ov_status_e xm_api_handles_from_args(size_t n, va_list args, struct xm_api_handles *out);
ov_status_e xm_api_handles_from_array(size_t n, const ov_property_t *list,
                                      struct xm_api_handles *out);

/* properties.c: read `n` variadic arguments, or an array. Keys and values must not be NULL, and
 * values are text. The caller frees *out with xm_free(). */
/* Bound of the number of arguments. A larger number is probably not a count, and reading so many
 * would run beyond the caller's stack. */
enum { XM_API_MOST_ARGS = 256 };
ov_status_e xm_api_check_args(size_t n);
ov_status_e xm_api_properties_from_args(size_t n, va_list args, struct xm_property **out);
ov_status_e xm_api_properties_from_array(size_t n, const ov_property_t *properties,
                                         struct xm_property **out);

/* core_model.c: reads and compiles a file; owns the properties from now on. */
ov_status_e xm_api_compile_file(const ov_core_t *core, const char *path,
                                const char *device, struct xm_property *properties,
                                size_t n, ov_compiled_model_t **out);

/* ---- requests (infer_*.c) ---------------------------------------------------------- */

struct xm_api_runner;

struct ov_infer_request {
    struct xm_infer *infer;
    ov_tensor_t **inputs,
        **outputs;       /* one for each port; NULL: not set, and not requested yet */
    ov_tensor_t **bound; /* for each input, the tensor that infer refers to */
    /* for each output: the result of the last run has not been copied into it yet */
    bool *is_stale;
    struct xm_api_runner *runner; /* lock and thread */
};

/* infer_run.c: lock and thread. */
enum xm_status xm_api_runner_create(struct xm_api_runner **out, struct xm_error *err);
void
xm_api_runner_destroy(struct xm_api_runner *r); /* waits for a run; NULL is allowed */
/* Locks an idle request. Returns false if it is busy; then the sentence for REQUEST_BUSY is
 * stored. */
bool xm_api_request_lock(const ov_infer_request_t *r);
void xm_api_request_unlock(const ov_infer_request_t *r);

/* infer_slots.c: one input or output of a request. */
struct xm_api_slot {
    ov_status_e status; /* the other members are set only if this is OK */
    ov_tensor_t **tensor;
    const struct xm_port *port;
    uint32_t index;
    bool is_output;
};
/* Find a slot. `xm_api_slot_only`: the only input or output; an error if there are several. */
struct xm_api_slot xm_api_slot_by_name(const ov_infer_request_t *r, const char *name);
struct xm_api_slot xm_api_slot_by_port(const ov_infer_request_t *r,
                                       const struct xm_api_port *p);
struct xm_api_slot xm_api_slot_by_index(const ov_infer_request_t *r, bool is_output,
                                        size_t i);
struct xm_api_slot xm_api_slot_only(const ov_infer_request_t *r, bool is_output);
/* Return the slot's status if it is not OK. */
ov_status_e xm_api_slot_set(ov_infer_request_t *r, struct xm_api_slot s,
                            const ov_tensor_t *tensor);
ov_status_e xm_api_slot_get(const ov_infer_request_t *r, struct xm_api_slot s,
                            ov_tensor_t **tensor);
/* bind passes the inputs to the device before a run; collect copies the results into the outputs in
 * use after it. */
enum xm_status xm_api_slots_bind(ov_infer_request_t *r, struct xm_error *err);
enum xm_status xm_api_slots_collect(ov_infer_request_t *r, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
