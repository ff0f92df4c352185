/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels for matrix engines ask for; the reasons are in
 * kernels/cl/include/pairs.h.
 */
#include "primitives/matrix_engine.h"

#include "primitives/device_weight.h"

enum { CHUNK_WORDS = 8, STEP_K = 16 }; /* words of a chunk at most; k of a step */

const char *
xm_matrix_refuses(const struct xm_weight *w, enum xm_element src)
{
    uint32_t bits = xm_element_bits(w->element);
    bool is_half = w->element == XM_F16 && !xm_weight_is_quantised(w);
    if (src != XM_F16)
        return "matrix engines take activations of f16";
    if (!(xm_weight_meets(w) & XM_MEETS_PAIRS))
        return xm_weight_is_codes(w)
                   ? "matrix engines take no small floats, codebooks and factors"
                   : "matrix engines take no weights in blocks";
    if (!is_half && (!xm_weight_is_quantised(w) || (bits != 4 && bits != 8)))
        return "matrix engines take weights of 4 or 8 bits, or of f16";
    uint64_t chunk = CHUNK_WORDS * (32 / bits);
    if (xm_weight_is_quantised(w) && w->group < chunk)
        chunk = w->group;
    if (chunk % STEP_K != 0 || w->cols % chunk != 0 ||
        (xm_weight_is_quantised(w) && w->group % chunk != 0))
        return "the columns or the group are not whole steps of matrix engines";
    return xm_weight_not_in_words(w, 1);
}

uint32_t
xm_matrix_lanes(const struct xm_device_info *device)
{
    return device->sub_group_sizes[0] == 8 ? 8 : 16;
}

bool
xm_matrix_is_real(const struct xm_device_info *device)
{
    return xm_device_really_has(device, XM_CAP_DPAS);
}
