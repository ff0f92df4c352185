/* SPDX-License-Identifier: Apache-2.0
 *
 * For `xemoe verify`: the host reference of one step, on the operands that the device had.
 */
#ifndef XM_PLUGIN_GPU_VERIFY_OPERANDS_H
#define XM_PLUGIN_GPU_VERIFY_OPERANDS_H

#include "plugin/gpu/request.h"
#include "transformations/graph/evaluate.h"

enum { XM_VERIFY_ROUNDED = 4 };

/* A step that has just run. */
struct xm_verify_step {
    struct xm_request *request;
    const struct xm_step *step;
    const struct xm_operand *operands;
    struct xm_state_store *states; /* keys and values of the reference so far */
};

/* The operands of a step that are its results. */
uint32_t xm_verify_n_results(const struct xm_verify_step *v);
const struct xm_operand *xm_verify_result(const struct xm_verify_step *v, uint32_t i);
/* An operand's content; floats as f32. */
enum xm_status xm_verify_read(const struct xm_verify_step *v, const struct xm_operand *o,
                              struct xm_tensor **out, struct xm_error *err);
/* What the reference makes of the same operands: out[i] belongs to result i and is the
 * caller's. XM_NOT_FOUND without a sentence: nothing to compare with (host steps, operands that
 * never reach the device).
 *
 * rounded: of attention what it makes of queries, keys and values that are off by as much as
 * storing them may change them, a few times at random; NULL of all others, which round nothing on
 * the way. */
enum xm_status xm_verify_reference(const struct xm_verify_step *v, struct xm_tensor **out,
                                   struct xm_tensor *rounded[XM_VERIFY_ROUNDED],
                                   struct xm_error *err);

#endif
