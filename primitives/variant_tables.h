/* SPDX-License-Identifier: Apache-2.0
 *
 * The variant tables of each module, collected by variant_tables.c.
 */
#ifndef XM_PRIMITIVES_VARIANT_TABLES_H
#define XM_PRIMITIVES_VARIANT_TABLES_H

#include "primitives/variant.h"

struct xm_variant_module {
    const struct xm_variant_table *tables;
    size_t n;
};
extern const struct xm_variant_module xm_linear_variants;
extern const struct xm_variant_module xm_matmul_variants;
extern const struct xm_variant_module xm_gather_matmul_variants;
extern const struct xm_variant_module xm_router_variants;
extern const struct xm_variant_module xm_moe_variants;

#endif
