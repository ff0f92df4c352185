/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies the bytes of a view of a weight, leaving out the stored bytes that the view does not
 * have. */
#ifndef XM_RUNTIME_WEIGHT_PACK_H
#define XM_RUNTIME_WEIGHT_PACK_H

#include "runtime/util/status.h"
#include "runtime/weight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets *out to the weight that xm_weight_pack would make: a whole weight with the sizes and values
 * of the view. Its data, scale, … have their new lengths, but still the view's pointers. Returns
 * NULL, or a static sentence that says why the view cannot be packed. */
const char *xm_weight_pack_sizes(const struct xm_weight *w, struct xm_weight *out);
/* Packs the view: *out points into the new memory *bytes, which the caller frees (xm_free).
 * XM_UNSUPPORTED: the view cannot be packed. */
enum xm_status xm_weight_pack(const struct xm_weight *w, struct xm_weight *out,
                              void **bytes, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
