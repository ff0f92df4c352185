/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalises, rotates and stores q, k and v for attention (attention_inputs.h). A work-item
 * computes a span of rows, 16 elements at a time in a private buffer.
 */
#include "attention_inputs.h"
#include "span.h"
#include "vector.h"

#define MOST (MOST_ELEMENTS + 32)

/* Loads a row; returns its sum of squares. */
static float
load_row(const struct input_row *r, float *y)
{
    float16 squares = 0.0f;
    int i = 0;
    for (; i + 16 <= r->n; i += 16) {
        const float16 x = LOAD16(SRC, r->x, i);
        squares += x * x;
        vstore16(x, 0, y + i);
    }
    float sum = sum16(squares);
    for (; i < r->n; i++) {
        y[i] = LOAD(SRC, r->x, i);
        sum += y[i] * y[i];
    }
    return sum;
}

static void
norm_row(const struct input_row *r, float *y, float factor)
{
    int i = 0;
    for (; i + 16 <= r->n; i += 16)
        vstore16(vload16(0, y + i) * factor * vload16(0, r->gamma + i), 0, y + i);
    for (; i < r->n; i++)
        y[i] *= factor * r->gamma[i];
}

static void
embed_position(const struct input_row *r, float *y)
{
    const int half_r = r->rotated / 2;
    float *z = y + half_r;
    __global const float *c = r->cosines, *s = r->sines;
    int i = 0;
    for (; i + 16 <= half_r; i += 16) {
        const float16 a = vload16(0, y + i), b = vload16(0, z + i);
        vstore16(a * vload16(0, c + i) - b * vload16(0, s + i), 0, y + i);
        vstore16(b * vload16(0, c + half_r + i) + a * vload16(0, s + half_r + i), 0,
                 z + i);
    }
    for (; i < half_r; i++) {
        const float a = y[i], b = z[i];
        y[i] = a * c[i] - b * s[i];
        z[i] = b * c[half_r + i] + a * s[half_r + i];
    }
}

/* Stores a row without scales, 16 elements at a time. */
static void
store_vectors(const struct input_row *r, const float *y)
{
    int i = 0;
    for (; i + 16 <= r->n; i += 16) {
        const float16 x = vload16(0, y + i);
        if (r->q_out)
            STORE16(SRC, r->q_out, i, x);
        else if (r->type == IS_f16)
            STORE16_f16((__global half *)r->to.values, i, x);
        else
            STORE16_f32((__global float *)r->to.values, i, x);
    }
    for (; i < r->n; i++)
        store_finished(r, i, y[i]);
}

static void
store_row(const struct input_row *r, const float *y)
{
    if (!r->q_out && !r->to.values)
        return;
    if (has_scales(r))
        for (int i = 0; i < r->n; i += 32)
            store_32(r, i, y + i);
    else
        store_vectors(r, y);
}

__kernel void
attention_inputs_vec(INPUT_PARAMETERS)
{
    const struct inputs in = INPUT_ARGUMENTS;
    for (ulong id = span_begin(rows); id < span_end(rows); id++) {
        const struct input_row r = find_row(&in, id);
        float y[MOST];
        const float squares = load_row(&r, y);
        if (r.gamma)
            norm_row(&r, y, norm_factor(&r, squares, epsilon));
        embed_position(&r, y);
        rotate_vectors(y, r.n, r.block);
        store_row(&r, y);
    }
}
