/* SPDX-License-Identifier: Apache-2.0
 *
 * Variant tables: for each step of a primitive an ordered list of kernels, best first, the
 * reference last. A row is refused with a sentence; the first row that is not refused runs.
 *
 *     static const struct xm_variant gate_up_variants[] = {
 *         { "moe_gate_up_vec", XM_FAMILY_VEC, 0,            vec_refuses },
 *         { "moe_gate_up_ref", XM_FAMILY_ANY, 0,            NULL        },
 *     };
 *
 * The row's name is the kernel's file name and entry name. XM_DEBUG=dispatch prints every
 * refusal once per problem. Tests and benchmarks walk the same tables.
 *
 * XM_FORCE overrides the choice, with items separated by commas:
 *
 *     <step>=<variant>   that row; an error when it refuses or is not in the step's table
 *     <family>           in every step without an item of its own: the first row of the family
 *                        (ref vec gen sg host) that does not refuse, or else the usual choice
 *
 * so that XM_FORCE=gen runs a CPU device the way a GPU without sub-groups would run.
 */
#ifndef XM_PRIMITIVES_VARIANT_H
#define XM_PRIMITIVES_VARIANT_H

#include "runtime/device_info.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which devices a family is written for. */
enum xm_family {
    XM_FAMILY_ANY, /* correct everywhere; the reference */
    XM_FAMILY_VEC, /* explicit vectors, local size 1: CPU devices */
    XM_FAMILY_GEN, /* local memory only: any OpenCL 1.2 GPU; runs on CPU devices, slowly */
    XM_FAMILY_SG,  /* Intel sub-groups */
    XM_FAMILY_HOST /* a host library in queue order: devices whose memory the host sees */
};

struct xm_variant {
    const char *name;
    enum xm_family family;
    uint32_t caps; /* enum xm_cap the device must have */
    /* NULL accepts; a static sentence refuses. The problem is the step's own struct. */
    const char *(*refuses)(const void *problem);
};

/* The index of the row to use. `step` names the table ("moe_gate_up"). XM_UNSUPPORTED when
 * every row refuses (the sentence has the last reason) or the forced one does. */
enum xm_status xm_variant_choose(const struct xm_variant *rows, size_t n,
                                 const char *step, const struct xm_device_info *device,
                                 const void *problem, size_t *out, struct xm_error *err);
/* Why a row may not run on a device; NULL: it may. Without XM_FORCE. */
const char *xm_variant_refusal(const struct xm_variant *row,
                               const struct xm_device_info *device, const void *problem);
/* Why a row that may run is not worth it on a device, so that only XM_FORCE takes it; NULL:
 * it is. */
const char *xm_variant_drawback(const struct xm_variant *row,
                                const struct xm_device_info *device);

/* A step's table for tests, benchmarks and `xemoe info --variants`. */
struct xm_variant_table {
    const char *step;
    const struct xm_variant *rows;
    size_t n;
};
/* All tables: variant_tables.c lists them. */
const struct xm_variant_table *xm_variant_tables(size_t *n);

#ifdef __cplusplus
}
#endif
#endif
