/* SPDX-License-Identifier: Apache-2.0
 *
 * What benchmark_app gives to a model: sets of tensors, one for each inference in turn.
 *
 * A set is a group of -data_shape, with the next file of -i where inputs have files. Without
 * -data_shape, files of several shapes are the groups. What has no file is random: floats from 0
 * up to 1, integers 0 or 1. A model with `input_ids` and a mask, positions or a beam index is a
 * language model: its ids are below the vocabulary, the mask is of ones, positions count and the
 * beam is 0, of 1 x 16 tokens unless -data_shape or a file of one of the first three says
 * otherwise.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_INPUTS_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_INPUTS_H

#include "plugin/benchmark_app/benchmark_model.h"

struct xm_benchmark_tensor {
    struct xm_benchmark_dims dims; /* fixed */
    uint64_t bytes;
    void *data; /* owned */
};

/* Zero-initialise. */
struct xm_benchmark_inputs {
    const struct xm_benchmark_ports *ports;
    struct xm_benchmark_tensor *list; /* owned, [n_sets][ports->n] */
    size_t n_sets, n_groups;          /* set s is of group s % n_groups */
    bool groups_are_files;            /* -data_shape does not make them */
    bool is_language;
    size_t ids; /* which input has the tokens of a language model */
};

static inline const struct xm_benchmark_tensor *
xm_benchmark_set(const struct xm_benchmark_inputs *in, size_t set)
{
    return &in->list[set * in->ports->n];
}

/* Checks that the files of -i and the shapes of -data_shape suit the model's inputs. The model need
 * not be compiled. Reads all files. */
enum xm_status xm_benchmark_inputs_check(const struct xm_benchmark_model *m,
                                         const struct xm_benchmark_args *a,
                                         const struct xm_benchmark_shapes *shapes,
                                         struct xm_error *err);
/* Fills all sets and says how; `shapes` are those of -data_shape. `m` must outlive *out. */
enum xm_status xm_benchmark_inputs_make(const struct xm_benchmark_model *m,
                                        const struct xm_benchmark_args *a,
                                        const struct xm_benchmark_shapes *shapes,
                                        struct xm_benchmark_inputs *out,
                                        struct xm_error *err);
/* "a: [1,2] b: [1,2]": the shapes of a group. */
void xm_benchmark_group_print(const struct xm_benchmark_inputs *in, size_t group,
                              struct xm_strbuf *out);
void xm_benchmark_inputs_free(struct xm_benchmark_inputs *in);
/* Tokens of a set; 0: the model is no language model. */
uint64_t xm_benchmark_inputs_tokens(const struct xm_benchmark_inputs *in, size_t set);
/* What a set has along the dimension that a layout calls N; 1: none has one. */
uint64_t xm_benchmark_inputs_batch(const struct xm_benchmark_inputs *in, size_t set);

#endif
