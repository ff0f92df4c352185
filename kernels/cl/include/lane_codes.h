/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of f4e2m1 with scales in a separate array (codes.h), one row in each lane: the functions
 * of lane_rows.h for them. A step of 32 columns is in one group.
 */
static inline uint
unit_columns(const uint format)
{
    return X_COLUMNS;
}

static inline void
find_row(const uint format, struct lane_rows *rows, uint i, ulong row)
{
    rows->word[i] = (uint)(row_begin(rows->w, row) / 8);
    rows->scale[i] = (uint)scale_index(rows->w, row, 0);
}

static inline void
find_expert(const uint format, struct lane_rows *rows, uint expert)
{
    const uint4 view = rows->w->view;
    rows->words = expert * (view.z * (view.x / 8));
    rows->scales = expert * (view.z * (view.x / CODE_GROUP));
}

/* Adds to sum the products of a unit's columns from k on, up to the row's end, times `factor`. */
static inline void
add_unit(const uint format, const struct lane_rows *rows, __global const STORAGE(SRC) * x,
         uint k, float factor, float sum[ROW_BLOCKS])
{
    const struct weight *w = rows->w;
    const uint last = w->k_count - 32; /* column where the last step begins */
    float v[X_VALUES];
    struct activations a;
#pragma unroll
    for (uint s = 0; s < 4; s++)
        load_nibbles(x + min(k + 32 * s, last), v + s * LANE_SLOTS);
    make_integers(v, &a);
#pragma unroll
    for (uint s = 0; s < 4; s++) {
        const uint from = min(k + 32 * s, last);
        const uint g = rows->scales + from / CODE_GROUP * (GROUP_MAJOR ? w->view.z : 1);
        const float scale = k + 32 * s <= last ? 0.5f * a.scale * factor : 0.0f;
        const a_rows2 bytes = byte_rows(a.q + s * LANE_SLOTS);
#pragma unroll
        for (uint i = 0; i < ROW_BLOCKS; i++) {
            __global const uint *words =
                (__global const uint *)w->data + (rows->word[i] + (rows->words + from / 8));
            sum[i] += fp4_products(bytes, vload4(0, words)) *
                      (BYTES(SCALE, w->scale, rows->scale[i] + g) * scale);
        }
    }
}
