/* SPDX-License-Identifier: Apache-2.0
 *
 * Device plugins: the interface that a library outside of xemoe implements to add a device.
 *
 * The library exports one function, xm_ext_entry. It receives a table of the host's (xemoe's)
 * functions and returns a table of the plugin's; there is no other connection. Users name the
 * library and its device in a list like OpenVINO's plugins.xml (XM_PLUGINS=FILE, or
 * ov_core_create_with_config) or in a call (xm_register_plugin). It is loaded when the device is
 * first used. docs/add_a_device.md has a complete plugin.
 *
 * Rules for all functions of both tables:
 *
 * Results   XM_EXT_OK or another xm_ext_status; any other number counts as XM_EXT_DEVICE, with a
 *           sentence that says so. With a status goes a sentence in the xm_ext_error, where
 *           there is one: what failed, where, what was expected, what was found; no newline.
 *           Nothing else has been written, and there is nothing to free.
 * Memory    The side that allocates also frees. Texts and tensors in arguments belong to the caller
 *           and are valid until the function returns, unless its comment says otherwise.
 * Texts     UTF-8, ended by a zero. Sizes are in bytes, of packed elements.
 * Threads   Plugins, compiled models and contexts are used by any number of threads at a time: so
 *           create_memory and destroy_memory may run in several. A request and a piece of memory
 *           are used by one, but requests may have the same memory and run at once; different
 *           requests of a compiled model run in several. `cancel` and `resume` come from any
 *           thread while the request runs.
 * Order     Requests are destroyed before their compiled model and before the memory bound to them;
 *           compiled models and memory before their context; contexts, and compiled models without
 *           one, before the plugin. The library is unloaded last. A plugin may outlive the core
 *           that it was created for.
 * Versions  Within one version members are only added, at the end of xm_ext_host and xm_ext_ops;
 *           their first two members are the same in all versions. A member of xm_ext_host at or
 *           beyond host->bytes is missing. A plugin of another version is refused with a sentence.
 *           All other structs and numbers are the same within a version.
 */
#ifndef XEMOE_PLUGIN_H
#define XEMOE_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef XM_EXT_VERSION
#define XM_EXT_VERSION 1u
#endif
#define XM_EXT_ENTRY "xm_ext_entry"
#define XM_EXT_RANK  8           /* dimensions of a tensor, at most */
#define XM_EXT_NONE  0xffffffffu /* no node                         */

/* ---- small types ------------------------------------------------------------------- */

enum xm_ext_status {
    XM_EXT_OK = 0,
    XM_EXT_INVALID = 1,     /* a model, a tensor or an argument is wrong        */
    XM_EXT_UNSUPPORTED = 2, /* it is right, but this device cannot do it        */
    XM_EXT_NO_MEMORY = 3,   /* the host or the device has not enough memory */
    XM_EXT_DEVICE = 4,      /* the device's driver failed                       */
    XM_EXT_IO = 5,          /* the operating system refused a file              */
    XM_EXT_NOT_FOUND = 6,   /* no such property, port, …                        */
    XM_EXT_CANCELLED = 7,   /* `cancel` was called                              */
    XM_EXT_LOST = 10        /* the device does not answer any more              */
};

/* As ov_element_type_e. Elements below 8 bits are packed, the first one in the lowest bits. */
enum xm_ext_element {
    XM_EXT_DYNAMIC = 0, /* the element type is not known */
    XM_EXT_BOOLEAN = 1, /* a byte: 0 or 1 */
    XM_EXT_BF16 = 2,
    XM_EXT_F16 = 3,
    XM_EXT_F32 = 4,
    XM_EXT_F64 = 5,
    XM_EXT_I4 = 6,
    XM_EXT_I8 = 7,
    XM_EXT_I16 = 8,
    XM_EXT_I32 = 9,
    XM_EXT_I64 = 10,
    XM_EXT_U1 = 11,
    XM_EXT_U2 = 12,
    XM_EXT_U3 = 13,
    XM_EXT_U4 = 14,
    XM_EXT_U6 = 15,
    XM_EXT_U8 = 16,
    XM_EXT_U16 = 17,
    XM_EXT_U32 = 18,
    XM_EXT_U64 = 19,
    XM_EXT_NF4 = 20,
    XM_EXT_F8E4M3 = 21,
    XM_EXT_F8E5M2 = 22,
    XM_EXT_STRING = 23,
    XM_EXT_F4E2M1 = 24,
    XM_EXT_F8E8M0 = 25
};

typedef struct xm_ext_error {
    char text[512]; /* the host passes it empty */
} xm_ext_error;

typedef struct xm_ext_property {
    const char *key, *value;
} xm_ext_property;

/* Receives bytes, or a text without its terminating zero, in pieces and in order. */
typedef struct xm_ext_sink {
    void (*add)(void *ctx, const void *bytes, uint64_t n);
    void *ctx;
} xm_ext_sink;

/* A tensor: row-major, without gaps, at any alignment. */
typedef struct xm_ext_tensor {
    uint32_t element;         /* enum xm_ext_element             */
    uint32_t rank;            /* number of dimensions; 0: scalar */
    int64_t dim[XM_EXT_RANK]; /* the first `rank` are set        */
    void *data;               /* NULL where there are no bytes   */
    uint64_t bytes;           /* size of the data                */
} xm_ext_tensor;

/* Bounds of a tensor's shape: dimension i from min[i] to max[i]; max[i] -1: unbounded. */
typedef struct xm_ext_type {
    uint32_t element, rank;
    int64_t min[XM_EXT_RANK], max[XM_EXT_RANK];
} xm_ext_type;

/* An input or a result of a model. */
typedef struct xm_ext_port {
    const char *name;         /* the first name of its tensor, or its node's */
    const char *const *names; /* all names of its tensor; n_names may be 0 */
    uint32_t n_names;
    uint32_t node; /* index of the Parameter or Result; in imported models XM_EXT_NONE */
    xm_ext_type type;
} xm_ext_port;

/* ---- models, as the host shows them ------------------------------------------------ */

/* A model, owned by the host. Valid until `compile` or `query_model` returns; the model of
 * `compile` longer, when the plugin retains it. Immutable: any thread may read it. Pointers
 * obtained from it are valid as long as the model. */
typedef struct xm_ext_model xm_ext_model;

/* Result `output` of node `node`. */
typedef struct xm_ext_value {
    uint32_t node; /* XM_EXT_NONE: an absent operand */
    uint32_t output;
} xm_ext_value;

typedef struct xm_ext_node {
    /* The layer type in OpenVINO's files: "MatMul", "Parameter", "Const". Types that OpenVINO does
     * not have begin in lower case: "weight". */
    const char *op;
    const char *name; /* the friendly name; may be "" */
    uint32_t n_in, n_out, n_attributes;
    const xm_ext_value *in; /* n_in operands */
} xm_ext_node;

/* The host's functions, valid while the library is loaded. */
typedef struct xm_ext_host {
    uint32_t version, bytes; /* XM_EXT_VERSION, sizeof(xm_ext_host) of the host's build */
    const char *release;     /* "xemoe 0.1.0" */

    /* Writes a line to the log. Levels: 0 error, 1 warning, 2 information, 3 debugging. */
    void (*log)(int32_t level, const char *line);

    const char *(*model_name)(const xm_ext_model *m);
    /* Nodes 0 … n - 1, in topological order. */
    uint32_t (*model_nodes)(const xm_ext_model *m);
    void (*model_node)(const xm_ext_model *m, uint32_t node, xm_ext_node *out);
    /* Attribute `i` as the file has it: "transpose_b" "true". Defaults are there as well. */
    void (*model_attribute)(const xm_ext_model *m, uint32_t node, uint32_t i,
                            const char **key, const char **value);
    /* For a dimension that varies between runs only the bounds are known. */
    void (*model_type)(const xm_ext_model *m, xm_ext_value value, xm_ext_type *out);
    /* The number of inputs (is_output 0) or results (1); requests use the same indices. */
    uint32_t (*model_ports)(const xm_ext_model *m, uint32_t is_output);
    void (*model_port)(const xm_ext_model *m, uint32_t is_output, uint32_t i,
                       xm_ext_port *out);
    /* The elements of a Const, in place: read-only, often in a mapped file. INVALID: the node is no
     * constant. UNSUPPORTED: the node is a "weight", whose bytes are quantized blocks that only
     * run_node can decode. */
    int32_t (*model_constant)(const xm_ext_model *m, uint32_t node, xm_ext_tensor *out);
    /* Retains `m` and its constants until a matching model_release; returns `m`. */
    const xm_ext_model *(*model_retain)(const xm_ext_model *m);
    void (*model_release)(const xm_ext_model *m);

    /* Runs one node as the host's reference device does: slow, in f32, for every operation. `in`
     * has n_in tensors. The data of a constant operand, or of an absent one, may be NULL: the host
     * has the constant's values. The host fills out[n_out] and gets the memory for their data from
     * `alloc`, which returns at least `bytes` bytes or NULL. The plugin frees that memory, after a
     * failure too. ReadValue returns its initial value and Assign its operand: keeping states is
     * the plugin's work. */
    int32_t (*run_node)(const xm_ext_model *m, uint32_t node, const xm_ext_tensor *in,
                        xm_ext_tensor *out, void *(*alloc)(void *ctx, uint64_t bytes),
                        void *ctx, xm_ext_error *err);
} xm_ext_host;

/* ---- functions of a plugin ----------------------------------------------------------------- */

/* Times of a step of a request since the last profile_reset. The texts are valid as long as the
 * compiled model. */
typedef struct xm_ext_step {
    const char *name;      /* of the model's node that the step was made from */
    const char *type;      /* "MatMul"                       */
    const char *precision; /* the type that the step computes in: "f32" */
    const char *kernel;    /* name: "matmul_tiled"           */
    uint64_t runs, ns;     /* number of runs, and the sum of their times */
    uint32_t on_host;      /* 1: the host's processor ran the step */
} xm_ext_step;

/* The application's handles for a context that a plugin is to create; each may be NULL. */
typedef struct xm_ext_context_wish {
    void *context, *queue; /* of OpenCL; both NULL: the plugin creates its own */
    uint32_t device;       /* index in the OpenCL context, where no queue is given */
} xm_ext_context_wish;

enum xm_ext_memory {
    XM_EXT_BUFFER = 0,    /* cl_mem: OCL_BUFFER                    */
    XM_EXT_USM_USER = 1,  /* the application's pointer, of any kind: USM_USER_BUFFER */
    XM_EXT_USM_HOST = 2,  /* USM_HOST_BUFFER                       */
    XM_EXT_USM_DEVICE = 3 /* USM_DEVICE_BUFFER                     */
};
typedef struct xm_ext_memory_wish {
    uint32_t kind; /* enum xm_ext_memory                   */
    void *handle;  /* the application's; NULL: allocate */
    uint64_t bytes;
} xm_ext_memory_wish;

/* "needed": a plugin in which the member is NULL is refused. Other members may be NULL; their
 * comments say what NULL means. */
typedef struct xm_ext_ops {
    uint32_t version, bytes; /* XM_EXT_VERSION, sizeof(xm_ext_ops) of the plugin */
    const char *description; /* "example plugin 1.0", for lists; NULL: none      */

    /* -- the plugin -- */

    /* The number n of devices that exist now, which may be 0. Their indices are 0 … n - 1; the
     * device of index 1 is "EXAMPLE.1". NULL: one device. */
    uint32_t (*count)(void *plugin);
    /* A property of a device as OpenVINO writes it. NOT_FOUND: there is no such property; the host
     * then answers FULL_DEVICE_NAME, AVAILABLE_DEVICES, DEVICE_TYPE and SUPPORTED_PROPERTIES by
     * itself. NULL: none. */
    int32_t (*get_property)(void *plugin, uint32_t device, const char *key,
                            const xm_ext_sink *out, xm_ext_error *err);
    /* Sets a property for models compiled later; get_property must return it. NOT_FOUND: there is
     * no such property. NULL: there are none. */
    int32_t (*set_property)(void *plugin, const char *key, const char *value,
                            xm_ext_error *err);
    /* Calls `supported` for each node that the device can run. This version never calls it, because
     * OpenVINO's C API has no such function. NULL: UNSUPPORTED. */
    int32_t (*query_model)(void *plugin, uint32_t device, const xm_ext_model *m,
                           void (*supported)(void *ctx, uint32_t node), void *ctx,
                           xm_ext_error *err);
    /* Needed. Sets *compiled, not NULL. `properties` override those of set_property. Keys that
     * begin with XM_ or CACHE_ are passed only if SUPPORTED_PROPERTIES lists them, all others as
     * the program gives them. NOT_FOUND: the plugin does not know a key. */
    int32_t (*compile)(void *plugin, uint32_t device, const xm_ext_model *m,
                       const xm_ext_property *properties, uint32_t n, void **compiled,
                       xm_ext_error *err);
    /* Imports bytes that export_model wrote, in this or another process. They stay valid until the
     * compiled model is destroyed, and must not be trusted. Needs compiled_port and reset, because
     * the host does not know the ports of an imported model, nor whether it has states. NULL:
     * UNSUPPORTED. */
    int32_t (*import_model)(void *plugin, uint32_t device, const void *bytes,
                            uint64_t n_bytes, const xm_ext_property *properties,
                            uint32_t n, void **compiled, xm_ext_error *err);
    void (*destroy)(void *plugin); /* NULL: nothing to free */

    /* -- compiled models -- */

    /* Writes bytes that import_model can read. NULL: UNSUPPORTED. */
    int32_t (*export_model)(void *compiled, const xm_ext_sink *out, xm_ext_error *err);
    /* Input or result `i`; NOT_FOUND: i is out of range. Valid as long as the compiled model.
     * Called for imported models only: the host knows the ports of the others from the model. */
    int32_t (*compiled_port)(void *compiled, uint32_t is_output, uint32_t i,
                             xm_ext_port *out, xm_ext_error *err);
    /* As get_property, for a compiled model. The host itself answers EXECUTION_DEVICES,
     * NETWORK_NAME, LOADED_FROM_CACHE, OPTIMAL_NUMBER_OF_INFER_REQUESTS and SUPPORTED_PROPERTIES
     * where this returns NOT_FOUND. NULL: none. */
    int32_t (*compiled_property)(void *compiled, const char *key, const xm_ext_sink *out,
                                 xm_ext_error *err);
    /* Needed. Sets *request, not NULL. A request has its own states, which are empty at first. */
    int32_t (*create_request)(void *compiled, void **request, xm_ext_error *err);
    void (*destroy_compiled)(void *compiled); /* needed */

    /* -- requests -- */

    /* Needed. The host has checked the tensor against the port. Its bytes stay in place and
     * unchanged during a run; the input may be set again before the next run. */
    int32_t (*set_input)(void *request, uint32_t i, const xm_ext_tensor *t,
                         xm_ext_error *err);
    /* Needed. Runs the model once, after all inputs have been set; returns when the results are
     * complete. A failure must leave the states unchanged. */
    int32_t (*infer)(void *request, xm_ext_error *err);
    /* Needed. Result `i` of the last run, valid until the next. The host compares it with the port:
     * element, rank, fixed dimensions, bytes. */
    int32_t (*output)(void *request, uint32_t i, xm_ext_tensor *out, xm_ext_error *err);
    /* Clears the states. NULL: creating a request of a model with states fails. */
    void (*reset)(void *request);
    /* Makes the run in progress, and each run that begins before `resume`, return CANCELLED soon.
     * Also called from signal handlers: set a flag and nothing else. NULL: runs complete. */
    void (*cancel)(void *request);
    void (*resume)(void *request);
    /* Calls `row` for each step of the program, in order; needs profile_reset. INVALID: nothing was
     * measured, because the model was compiled without PERF_COUNT=YES. NULL: the plugin measures
     * nothing. */
    int32_t (*profile)(void *request, void (*row)(void *ctx, const xm_ext_step *step),
                       void *ctx, xm_ext_error *err);
    void (*profile_reset)(void *request);
    void (*destroy_request)(void *request); /* needed */

    /* -- contexts: device memory shared with the application; all of these functions, or none -- */

    /* A context is destroyed before the plugin, and after the models and memory made in it. */
    int32_t (*create_context)(void *plugin, uint32_t device,
                              const xm_ext_context_wish *wish, void **context,
                              xm_ext_error *err);
    /* Writes OpenVINO's keys and values of the context, separated by spaces, and sets the number of
     * pairs: "CONTEXT_TYPE OCL OCL_CONTEXT 0x5581…". */
    void (*context_params)(void *context, const xm_ext_sink *out, uint32_t *pairs);
    void (*destroy_context)(void *context);
    /* As compile, for running in the context. */
    int32_t (*compile_in)(void *plugin, void *context, const xm_ext_model *m,
                          const xm_ext_property *properties, uint32_t n, void **compiled,
                          xm_ext_error *err);
    /* Allocates or wraps memory. *host: a pointer by which the host can access it, or NULL. Memory
     * that was set on a request is destroyed only after the request got another tensor for that
     * input or result, or was destroyed. A tensor that grows gets new memory, which is set on
     * requests again. */
    int32_t (*create_memory)(void *context, const xm_ext_memory_wish *wish, void **memory,
                             void **host, xm_ext_error *err);
    void (*memory_params)(void *memory, const xm_ext_sink *out, uint32_t *pairs);
    void (*destroy_memory)(void *memory);
    /* As set_input, with the tensor's bytes in `memory` of the context that the model was compiled
     * in; t->data is NULL. */
    int32_t (*set_remote_input)(void *request, uint32_t i, const xm_ext_tensor *t,
                                void *memory, xm_ext_error *err);
    /* From now on runs also write result i into `memory`; NULL: no longer. `output` may then return
     * the result with data NULL. */
    int32_t (*set_remote_output)(void *request, uint32_t i, void *memory,
                                 xm_ext_error *err);
} xm_ext_ops;

/* The function that a plugin exports. It is called once for each device name under which the
 * library is registered, possibly while functions of the table run for another name. `version` is
 * the host's version, `host` its table. Set *ops first, to the plugin's table, which must not
 * change while the library is loaded: a host of another version reads the plugin's version from it.
 * If `version` is not XM_EXT_VERSION, return UNSUPPORTED. Else set *plugin, which is passed to the
 * table's functions. */
typedef int32_t (*xm_ext_entry_fn)(uint32_t version, const xm_ext_host *host,
                                   const xm_ext_ops **ops, void **plugin,
                                   xm_ext_error *err);

/* A plugin defines XM_EXT_PLUGIN before it includes this header, which then declares its entry. */
#ifdef XM_EXT_PLUGIN
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
int32_t
xm_ext_entry(uint32_t version, const xm_ext_host *host, const xm_ext_ops **ops,
             void **plugin, xm_ext_error *err);
#endif

#ifdef __cplusplus
}
#endif
#endif
