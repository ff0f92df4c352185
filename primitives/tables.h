/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the variant tables that variant_tables.def lists.
 */
#ifndef XM_PRIMITIVES_TABLES_H
#define XM_PRIMITIVES_TABLES_H

#include "primitives/variant.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TABLE(name, source) extern const struct xm_variant_table xm_##name##_table;
#define TABLES(name, NAME, count, source)                                                \
    enum { XM_##NAME##_N_TABLES = count };                                               \
    extern const struct xm_variant_table xm_##name##_tables[count];
#include "primitives/variant_tables.def"

#ifdef __cplusplus
}
#endif
#endif
