/* SPDX-License-Identifier: Apache-2.0
 *
 * How far a kernel's result may be from the f32 reference, per element type of the result: |got -
 * want| <= absolute + relative * |want|. This is the only table of tolerances; no test loosens
 * one.
 */
#ifndef XM_UNIT_TESTS_PRIMITIVES_TOLERANCE_H
#define XM_UNIT_TESTS_PRIMITIVES_TOLERANCE_H

#include "runtime/util/element.h"

struct tolerance {
    float absolute, relative;
};

static inline struct tolerance
tolerance_of(enum xm_element e)
{
    switch (e) {
    case XM_F32:
        return {2e-5f, 2e-5f};
    case XM_F16:
        return {2e-3f, 2e-3f};
    case XM_BF16:
        return {2e-2f, 2e-2f};
    case XM_I8: /* a cache or activation of 8 bits against exact values */
        return {3e-2f, 3e-2f};
    default:
        return {0.0f, 0.0f};
    }
}

#endif
