/* SPDX-License-Identifier: Apache-2.0
 *
 * benchmark_app's model, which is read, compiled or imported through OpenVINO's C API, and its
 * inputs and outputs.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_MODEL_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_MODEL_H

#include "openvino/c/openvino.h"
#include "plugin/benchmark_app/benchmark_config.h"
#include "plugin/benchmark_app/benchmark_shapes.h"

/* Converts the API's status. The sentence is the API's last error, after `what` unless that is
 * NULL. */
enum xm_status xm_benchmark_api(ov_status_e status, const char *what,
                                struct xm_error *err);

struct xm_benchmark_port {
    char *name;    /* owned; the tensor's first name, else the node's      */
    char *node;    /* owned, for ov_free(); the node's friendly name       */
    bool is_named; /* the tensor has a name                                */
    ov_element_type_e type;
    struct xm_benchmark_dims dims;
    const char *layout; /* owned, for ov_free(); "[N,C]"; NULL: none */
};

struct xm_benchmark_model;

struct xm_benchmark_ports {
    struct xm_benchmark_port *list; /* owned */
    size_t n;
    const struct xm_benchmark_model *model; /* the model of the ports; not owned */
    bool are_outputs;
};

/* Zero-initialise. */
struct xm_benchmark_model {
    ov_core_t *core;
    /* NULL: the file is compiled or imported without reading it first */
    ov_model_t *model;
    ov_compiled_model_t *compiled;
    struct xm_benchmark_ports inputs, outputs;
    double read_ms, compile_ms, reshape_ms; /* 0: not done */
    bool is_exported;                       /* the file was written by 'xemoe compile' */
};

/* Returns the index of the port that a flag names, by any name of its tensor, or else by its node's
 * name; ports->n: there is none. */
size_t xm_benchmark_ports_find(const struct xm_benchmark_ports *ports,
                               struct xm_slice name);

void xm_benchmark_model_free(struct xm_benchmark_model *m);
/* Sets the properties on the core and sets is_unknown for those that a device lacks. Such a
 * property is an error if it comes from -load_config, a warning if it comes from another flag. */
enum xm_status xm_benchmark_model_configure(struct xm_benchmark_model *m,
                                            struct xm_benchmark_config *c,
                                            struct xm_error *err);
/* Reads the file and its ports. */
enum xm_status xm_benchmark_model_read(struct xm_benchmark_model *m, const char *path,
                                       struct xm_error *err);
/* Compiles the model; if none was read, compiles or imports the file at `path`. */
enum xm_status xm_benchmark_model_compile(struct xm_benchmark_model *m, const char *path,
                                          const char *device, struct xm_error *err);
/* Whether the file at `path` was written by 'xemoe compile'. */
bool xm_benchmark_model_is_exported(const char *path);

/* Reads the ports' types, shapes and layouts again; pointers to their names stay valid. */
enum xm_status xm_benchmark_model_update_ports(struct xm_benchmark_model *m,
                                               struct xm_error *err);
/* Prints "Model inputs:", "Model outputs:" and a line for each port. */
void xm_benchmark_model_print_ports(const struct xm_benchmark_model *m);
/* Whether some input has a dimension that is not fixed. */
bool xm_benchmark_model_is_dynamic(const struct xm_benchmark_model *m);
/* Writes the graph of the compiled model to `path` as an IR (-exec_graph_path). */
enum xm_status xm_benchmark_model_write_graph(const struct xm_benchmark_model *m,
                                              const char *path, struct xm_error *err);
/* Returns the value of a property of the compiled model; the caller frees it with ov_free. NULL:
 * there is no such property. */
char *xm_benchmark_model_property(const struct xm_benchmark_model *m, const char *key);

/* Begin and end showing the kernel that is being built on a terminal. */
void xm_benchmark_show_builds(void);
void xm_benchmark_hide_builds(void);

#endif
