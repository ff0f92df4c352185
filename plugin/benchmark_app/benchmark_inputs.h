/* SPDX-License-Identifier: Apache-2.0
 *
 * The input tensors of benchmark_app: sets with a tensor for each input. Inferences take the sets
 * in turn.
 *
 * A group is one combination of shapes: those of -data_shape, else the shapes of the files. A set
 * belongs to one group and takes the next file of each input that has files.
 *
 * Inputs without files get random numbers: floats in [0, 1), integers 0 or 1. A model that has
 * `input_ids` and a mask, position ids or a beam index is treated as a language model: ids are
 * below the vocabulary, the mask is all ones, positions are 0, 1, 2, …, and the beam index is 0. It
 * gets 1 x 16 tokens, unless -data_shape or a file of ids, mask or positions gives another shape.
 */
#ifndef XM_PLUGIN_BENCHMARK_APP_BENCHMARK_INPUTS_H
#define XM_PLUGIN_BENCHMARK_APP_BENCHMARK_INPUTS_H

#include "plugin/benchmark_app/benchmark_model.h"

/* A tensor in host memory. */
struct xm_benchmark_tensor {
    struct xm_benchmark_dims dims; /* all fixed */
    uint64_t bytes;
    void *data; /* owned */
};

/* Zero-initialise. */
struct xm_benchmark_inputs {
    const struct xm_benchmark_ports *ports; /* the model's inputs; not owned       */
    struct xm_benchmark_tensor *list;       /* owned, [n_sets][ports->n]           */
    size_t n_sets, n_groups;                /* set s belongs to group s % n_groups */
    bool groups_are_files; /* shapes come from files, not from -data_shape */
    bool is_language;      /* a language model                    */
    size_t ids;            /* its input of token ids              */
};
/* The tensors of a set, [ports->n]. */

static inline const struct xm_benchmark_tensor *
xm_benchmark_set(const struct xm_benchmark_inputs *in, size_t set)
{
    return &in->list[set * in->ports->n];
}

/* Checks that the files of -i and the shapes of -data_shape suit the model's inputs, before the
 * model is compiled. Reads all files. */
enum xm_status xm_benchmark_inputs_check(const struct xm_benchmark_model *m,
                                         const struct xm_benchmark_args *a,
                                         const struct xm_benchmark_shapes *shapes,
                                         struct xm_error *err);
/* Makes all sets and prints how they are filled; `shapes` are those of -data_shape. `m` must
 * outlive *out. */
enum xm_status xm_benchmark_inputs_make(const struct xm_benchmark_model *m,
                                        const struct xm_benchmark_args *a,
                                        const struct xm_benchmark_shapes *shapes,
                                        struct xm_benchmark_inputs *out,
                                        struct xm_error *err);
/* Appends the shapes of a group: "a: [1,2] b: [1,2]". */
void xm_benchmark_group_print(const struct xm_benchmark_inputs *in, size_t group,
                              struct xm_strbuf *out);
void xm_benchmark_inputs_free(struct xm_benchmark_inputs *in);
/* Number of tokens in a set; 0: the model is not a language model. */
uint64_t xm_benchmark_inputs_tokens(const struct xm_benchmark_inputs *in, size_t set);
/* The batch size of a set: the dimension that an input's layout calls N; 1: no layout has it. */
uint64_t xm_benchmark_inputs_batch(const struct xm_benchmark_inputs *in, size_t set);

#endif
