/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of benchmark_app's -i: "in1:a.npy,b.npy in2:c.bin"; a folder is its .npy and .bin files,
 * by name. A word that names no input is for the next one that has no file; the only such word
 * is dealt out to all of these. An .npy file brings its shape, and its numbers become the
 * input's type; any other file is the bytes of a tensor.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_FILES_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_FILES_H

#include "plugin/benchmark_app/benchmark_model.h"

struct xm_benchmark_tensor;

/* Of an input, in their order. */
struct xm_benchmark_file_list {
    char **paths; /* owned */
    size_t n, capacity;
};

/* Zero-initialise. */
struct xm_benchmark_files {
    struct xm_benchmark_file_list *list; /* owned, one for each input */
    size_t n_inputs;
};

/* XM_INVALID: the sentence names -i. */
enum xm_status xm_benchmark_files_find(const struct xm_benchmark_args *a,
                                       const struct xm_benchmark_ports *inputs,
                                       struct xm_benchmark_files *out,
                                       struct xm_error *err);
void xm_benchmark_files_free(struct xm_benchmark_files *f);
bool xm_benchmark_files_has(const struct xm_benchmark_files *f, size_t input);
/* Files of the input that has most. */
size_t xm_benchmark_files_most(const struct xm_benchmark_files *f);
/* The shape in the header of a set's .npy file; false: there is none. */
bool xm_benchmark_files_shape(const struct xm_benchmark_files *f, size_t input,
                              size_t set, struct xm_benchmark_dims *out);
/* Elements of the type that a set's file without a header has; 0: there is none. */
uint64_t xm_benchmark_files_count(const struct xm_benchmark_files *f, size_t input,
                                  size_t set, ov_element_type_e type);
/* Reads a set's file into a tensor of the port's type, which has room. */
enum xm_status xm_benchmark_files_load(const struct xm_benchmark_files *f, size_t input,
                                       size_t set, const struct xm_benchmark_port *port,
                                       struct xm_benchmark_tensor *t,
                                       struct xm_error *err);

#endif
