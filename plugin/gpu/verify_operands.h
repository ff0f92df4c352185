/* SPDX-License-Identifier: Apache-2.0
 *
 * For `xemoe verify`: the host reference of one step, on the operands that the device had.
 */
#ifndef XM_PLUGIN_GPU_VERIFY_OPERANDS_H
#define XM_PLUGIN_GPU_VERIFY_OPERANDS_H

#include "plugin/gpu/request.h"
#include "transformations/graph/evaluate.h"

enum { XM_VERIFY_ROUNDED = 4 };
enum xm_verify_cached { XM_VERIFY_KEYS, XM_VERIFY_VALUES, XM_VERIFY_CACHED };

/* A step that has just run. */
struct xm_verify_step {
    struct xm_request *request;
    const struct xm_step *step;
    const struct xm_operand *operands;
    struct xm_state_store *states; /* keys and values so far, before they were stored */
};

/* The operands of a step that are its results. */
uint32_t xm_verify_n_results(const struct xm_verify_step *v);
const struct xm_operand *xm_verify_result(const struct xm_verify_step *v, uint32_t i);
/* An operand's content; floats as f32. */
enum xm_status xm_verify_read(const struct xm_verify_step *v, const struct xm_operand *o,
                              struct xm_tensor **out, struct xm_error *err);
/* What the reference makes of a step. */
struct xm_verify_results {
    struct xm_tensor **reference; /* by result */
    /* Of attention alone, which has one result: what the KV cache holds, [B,S,Hkv,D]; the reference
     * is of that, */
    struct xm_tensor *cached[XM_VERIFY_CACHED];
    /* and so are results of operands that are off by as much as activations are rounded, a few
     * times at random. */
    struct xm_tensor *rounded[XM_VERIFY_ROUNDED];
};
/* Of the operands that the device had. XM_NOT_FOUND without a sentence: nothing to compare with
 * (host steps, operands that never reach the device). `out` is zeros before, and to be freed
 * afterwards, whatever came of it. */
enum xm_status xm_verify_reference(const struct xm_verify_step *v,
                                   struct xm_verify_results *out, struct xm_error *err);
void xm_verify_free(const struct xm_verify_step *v, struct xm_verify_results *out);

/* Of attention, afterwards: what the cache should hold. */
struct xm_verify_rows {
    enum xm_element element;
    const struct xm_tensor *exact; /* borrowed */
    struct xm_tensor *rounded; /* off by as much as storing them may change them; owned */
};
enum xm_status xm_verify_stored(const struct xm_verify_step *v,
                                enum xm_verify_cached which, struct xm_verify_rows *out,
                                struct xm_error *err);

#endif
