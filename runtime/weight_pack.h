/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a view of a weight, without those between them.
 */
#ifndef XM_RUNTIME_WEIGHT_PACK_H
#define XM_RUNTIME_WEIGHT_PACK_H

#include "runtime/util/status.h"
#include "runtime/weight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* *out: a whole weight of the view's sizes and numbers; its streams have their lengths, but the
 * pointers of the view's. A static sentence: it cannot be packed; NULL: it can. */
const char *xm_weight_pack_sizes(const struct xm_weight *w, struct xm_weight *out);
/* The same with the bytes, which lie in *bytes; the caller frees them with xm_free. XM_UNSUPPORTED:
 * it cannot be packed. */
enum xm_status xm_weight_pack(const struct xm_weight *w, struct xm_weight *out,
                              void **bytes, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
