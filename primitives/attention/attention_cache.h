/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside attention: how its kernels are told of the sequences and the pages
 * (kernels/cl/include/attention_cache.h).
 */
#ifndef XM_PRIMITIVES_ATTENTION_ATTENTION_CACHE_H
#define XM_PRIMITIVES_ATTENTION_ATTENTION_CACHE_H

#include "primitives/args.h"
#include "primitives/attention/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* CACHE_PARAMETERS. */
void xm_attention_put_cache(struct xm_args *args, const struct xm_operand *operands,
                            const struct xm_attention_run *a);
/* Whether every slab that is there has room for a page, and one is there. */
enum xm_status xm_attention_check_slabs(const struct xm_attention_desc *d,
                                        const struct xm_attention_run *a,
                                        struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
