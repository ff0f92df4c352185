/* SPDX-License-Identifier: Apache-2.0
 *
 * q, k and v on their way into attention (attention_inputs.h). A work-item makes a span of
 * rows, 16 elements at a time in a private buffer.
 */
#include "attention_inputs.h"
#include "span.h"
#include "vector.h"

#define MOST ((D > DV ? D : DV) + 16)

/* Loads a row; gives its sum of squares. */
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
rotate_row(const struct input_row *r, float *y)
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

static void
store_row(const struct input_row *r, const float *y)
{
    float most = 0.0f;
    int i = 0;
#if CACHE_SCALED
    if (r->cache) {
        for (; i < r->n; i++)
            most = fmax(most, fabs(y[i]));
        r->scale[0] = most / 127.0f;
    }
    const int vectors = r->q_out ? r->n : 0;
#else
    const int vectors = r->q_out || r->cache ? r->n : 0;
#endif
    for (i = 0; i + 16 <= vectors; i += 16) {
        if (r->q_out)
            STORE16(SRC, r->q_out, i, vload16(0, y + i));
#if !CACHE_SCALED
        else
            STORE16(CACHE, r->cache, i, vload16(0, y + i));
#endif
    }
    for (; i < r->n; i++)
        store_finished(r, i, y[i], inverse_scale(most));
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
        rotate_row(&r, y);
        store_row(&r, y);
    }
}
