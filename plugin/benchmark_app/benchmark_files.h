/* SPDX-License-Identifier: Apache-2.0
 *
 * The input files of benchmark_app's -i: "in1:a.npy,b.npy in2:c.bin".
 *
 * A folder stands for its .npy and .bin files, sorted by name. A word without an input's name is
 * for the next input that has no file; if there is only one such word, its files are distributed
 * over all of these inputs. An .npy file has a shape, and its numbers are converted to the input's
 * type; any other file is the raw bytes of a tensor.
 *
 * Set number s consists of the s-th file of each input, modulo the number of its files.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_FILES_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_FILES_H

#include "plugin/benchmark_app/benchmark_model.h"

struct xm_benchmark_tensor;

/* The files of one input, in order. */
struct xm_benchmark_file_list {
    char **paths; /* owned */
    size_t n, capacity;
};

/* Zero-initialise. */
struct xm_benchmark_files {
    struct xm_benchmark_file_list *list; /* owned, one for each input */
    size_t n_inputs;
};

/* Checks, before the model's inputs are known, that the files exist. XM_INVALID: the sentence names
 * -i. */
enum xm_status xm_benchmark_files_check(const struct xm_benchmark_args *a,
                                        struct xm_error *err);
/* Finds the files of all inputs. XM_INVALID: a word is wrong; the sentence names -i. On failure
 * *out still has to be freed. */
enum xm_status xm_benchmark_files_find(const struct xm_benchmark_args *a,
                                       const struct xm_benchmark_ports *inputs,
                                       struct xm_benchmark_files *out,
                                       struct xm_error *err);
void xm_benchmark_files_free(struct xm_benchmark_files *f);
bool xm_benchmark_files_has(const struct xm_benchmark_files *f, size_t input);
/* The largest number of files of an input. */
size_t xm_benchmark_files_most(const struct xm_benchmark_files *f);
/* Reads the shape in the header of an input's .npy file. Returns false: it is not an .npy file. */
bool xm_benchmark_files_shape(const struct xm_benchmark_files *f, size_t input,
                              size_t set, struct xm_benchmark_dims *out);
/* Returns the number of elements of `type` in an input's raw file; 0: the input has no raw file. */
uint64_t xm_benchmark_files_count(const struct xm_benchmark_files *f, size_t input,
                                  size_t set, ov_element_type_e type);
/* Reads an input's file into `t`, which has the port's type and memory for its dimensions. */
enum xm_status xm_benchmark_files_load(const struct xm_benchmark_files *f, size_t input,
                                       size_t set, const struct xm_benchmark_port *port,
                                       struct xm_benchmark_tensor *t,
                                       struct xm_error *err);

#endif
