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
    struct xm_state_store *states; /* of the reference: exact keys and values so far */
};

/* The number of the step's operands that are results; the i-th result. */
uint32_t xm_verify_n_results(const struct xm_verify_step *v);
const struct xm_operand *xm_verify_result(const struct xm_verify_step *v, uint32_t i);
/* Reads an operand from the device and converts floats to f32. The caller destroys *out. */
enum xm_status xm_verify_read(const struct xm_verify_step *v, const struct xm_operand *o,
                              struct xm_tensor **out, struct xm_error *err);
/* The reference's results of a step. */
struct xm_verify_results {
    struct xm_tensor **reference; /* by result */
    /* For attention only: the contents of the KV cache, [B,S,Hkv,D], from which the reference is
     * computed */
    struct xm_tensor *cached[XM_VERIFY_CACHED];
    /* For attention only: results of operands with random errors of the size of the activations'
     * rounding. Their spread is how far the device's result may be off. */
    struct xm_tensor *rounded[XM_VERIFY_ROUNDED];
};
/* Computes the reference from the operands that the device had. XM_NOT_FOUND without a message:
 * there is nothing to compare (host steps, operands that never reach the device). The caller zeroes
 * *out before the call and frees it with xm_verify_free, also on failure. */
enum xm_status xm_verify_reference(const struct xm_verify_step *v,
                                   struct xm_verify_results *out, struct xm_error *err);
void xm_verify_free(const struct xm_verify_step *v, struct xm_verify_results *out);

/* The rows that a step of attention should have stored in the cache. */
struct xm_verify_rows {
    enum xm_element element;
    const struct xm_tensor *exact; /* borrowed */
    struct xm_tensor *rounded; /* `exact` with the errors that storing may cause; owned */
};
/* Sets *out to the rows that the step should have stored, from the reference's keys or values after
 * the step. The caller destroys out->rounded. */
enum xm_status xm_verify_stored(const struct xm_verify_step *v,
                                enum xm_verify_cached which, struct xm_verify_rows *out,
                                struct xm_error *err);

#endif
