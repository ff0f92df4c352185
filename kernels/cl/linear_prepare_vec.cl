/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes plain rows of activations as prepared rows, which the vector kernels read (prepared.h). A
 * work-item prepares one row; global size {T}, local size 1.
 */
#ifndef FORM
#define FORM 8, 128, 0
#endif
#include "prepared.h"

__kernel void
linear_prepare_vec(__global const STORAGE(SRC) * x, __global int *prepared, uint t_count,
                   uint k_count)
{
    PASTE(prepare_row_, SRC)(x, k_count, get_global_id(0), prepared, FORM);
}
