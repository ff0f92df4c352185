/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside attention: kernel arguments that describe the sequences and the pages
 * (kernels/cl/include/attention_cache.h).
 */
#ifndef XM_PRIMITIVES_ATTENTION_ATTENTION_CACHE_H
#define XM_PRIMITIVES_ATTENTION_ATTENTION_CACHE_H

#include "primitives/args.h"
#include "primitives/attention/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends the arguments of macro CACHE_PARAMETERS. A slab that does not exist is passed as the
 * first one that does. */
void xm_attention_put_cache(struct xm_args *args, const struct xm_operand *operands,
                            const struct xm_attention_run *a);
/* XM_INVALID unless there is a slab and each existing slab has room for at least one page. */
enum xm_status xm_attention_check_slabs(const struct xm_attention_desc *d,
                                        const struct xm_attention_run *a,
                                        struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
