/* SPDX-License-Identifier: Apache-2.0
 *
 * benchmark_app's model: read, compiled or imported through OpenVINO's C API, and what its inputs
 * and outputs are.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_MODEL_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_MODEL_H

#include "openvino/c/openvino.h"
#include "plugin/benchmark_app/benchmark_config.h"
#include "plugin/benchmark_app/benchmark_shapes.h"

/* The API's failure as ours: its sentence, behind `what` if that is not NULL. */
enum xm_status xm_benchmark_api(ov_status_e status, const char *what,
                                struct xm_error *err);

struct xm_benchmark_port {
    char *name;    /* owned: the tensor's first one, else the node's */
    char *node;    /* the friendly name, for ov_free()               */
    bool is_named; /* the tensor                                     */
    ov_element_type_e type;
    struct xm_benchmark_dims dims;
    const char *layout; /* "[N,C]", for ov_free(); NULL: none */
};

struct xm_benchmark_model;

struct xm_benchmark_ports {
    struct xm_benchmark_port *list; /* owned */
    size_t n;
    const struct xm_benchmark_model *model; /* whose they are */
    bool are_outputs;
};

/* Zero-initialise. */
struct xm_benchmark_model {
    ov_core_t *core;
    ov_model_t *model; /* NULL: the file is compiled or imported at once */
    ov_compiled_model_t *compiled;
    struct xm_benchmark_ports inputs, outputs;
    double read_ms, compile_ms, reshape_ms; /* 0: not done */
    bool is_exported;                       /* the file is what 'xemoe compile' wrote */
};

/* Which port a flag means: by any name of its tensor, else by its node's. ports->n: none. */
size_t xm_benchmark_ports_find(const struct xm_benchmark_ports *ports,
                               struct xm_slice name);

void xm_benchmark_model_free(struct xm_benchmark_model *m);
/* Sets the properties on the core, and notes which ones a device does not have: a failure where
 * -load_config has them, else a warning where they were asked for. */
enum xm_status xm_benchmark_model_configure(struct xm_benchmark_model *m,
                                            struct xm_benchmark_config *c,
                                            struct xm_error *err);
/* Reads the file and its ports. */
enum xm_status xm_benchmark_model_read(struct xm_benchmark_model *m, const char *path,
                                       struct xm_error *err);
/* Compiles the model, or the file where none was read. */
enum xm_status xm_benchmark_model_compile(struct xm_benchmark_model *m, const char *path,
                                          const char *device, struct xm_error *err);
/* Whether a file was exported. */
bool xm_benchmark_model_is_exported(const char *path);

/* Reads the ports' shapes anew; names stay where they are. */
enum xm_status xm_benchmark_model_update_ports(struct xm_benchmark_model *m,
                                               struct xm_error *err);
/* "Model inputs:" and so on, a line each. */
void xm_benchmark_model_print_ports(const struct xm_benchmark_model *m);
/* Whether an input has a shape that is not fixed. */
bool xm_benchmark_model_is_dynamic(const struct xm_benchmark_model *m);
/* Writes the graph that runs. */
enum xm_status xm_benchmark_model_write_graph(const struct xm_benchmark_model *m,
                                              const char *path, struct xm_error *err);
/* A property of the compiled model; NULL: it has none such. For ov_free. */
char *xm_benchmark_model_property(const struct xm_benchmark_model *m, const char *key);

/* From now on, until the other is called, kernels are shown on a terminal while they are built. */
void xm_benchmark_show_builds(void);
void xm_benchmark_hide_builds(void);

#endif
