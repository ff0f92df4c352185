/* SPDX-License-Identifier: Apache-2.0
 *
 * Small constants: makes them in the arena, and reads them. */
#include <string.h>

#include "transformations/graph/builder.h"

struct xm_value *
xm_const_ints(struct xm_builder *b, enum xm_element element, const int64_t *v, int n)
{
    struct xm_type type = {.element = element, .shape = {.rank = n >= 0}};
    uint64_t count = n < 0 ? 1 : (uint64_t)n, n_bytes;
    uint8_t *bytes = NULL;
    if (n >= 0)
        type.shape.dim[0] = xm_dim_const(n);
    if (xm_element_bytes(element, count, &n_bytes))
        bytes = xm_arena_alloc(&b->graph->arena, n_bytes);
    if (!bytes) {
        xm_no_memory(&b->graph->err, "a constant");
        return NULL;
    }
    for (uint64_t i = 0; i < count; i++)
        xm_store_int(element, bytes, i, v[i]);
    return xm_const(b, &type, (struct xm_data){bytes, n_bytes});
}

struct xm_value *
xm_const_float(struct xm_builder *b, enum xm_element element, float v)
{
    struct xm_type type = {.element = element};
    uint8_t *bytes = xm_arena_alloc(&b->graph->arena, sizeof(double));
    uint64_t n_bytes = 0;
    if (!bytes || !xm_element_bytes(element, 1, &n_bytes)) {
        xm_no_memory(&b->graph->err, "a constant");
        return NULL;
    }
    xm_store_float(element, bytes, 0, v);
    return xm_const(b, &type, (struct xm_data){bytes, n_bytes});
}

bool
xm_value_is_const(const struct xm_value *v)
{
    return v->node->op == XM_OP_CONST || v->node->op == XM_OP_WEIGHT;
}

bool
xm_value_is_scalar_const(const struct xm_value *v, float *out)
{
    const struct xm_shape *s = &v->type.shape;
    if (v->node->op != XM_OP_CONST || !xm_element_readable(v->type.element))
        return false;
    for (uint32_t i = 0; i < s->rank; i++)
        if (!xm_dim_is(s->dim[i], 1))
            return false;
    *out = xm_load_float(v->type.element, v->node->attr.data.bytes, 0);
    return true;
}

/* Reads the integers of a constant of any rank in row-major order; returns their number, or -1 if
 * they are more than `max`. */
static int
load_ints(const struct xm_value *v, int64_t *out, int max)
{
    uint64_t n;
    if (!xm_static_elements(&v->type.shape, &n) || max < 0 || n > (uint64_t)max)
        return -1;
    for (uint64_t i = 0; i < n; i++)
        out[i] = xm_load_int(v->type.element, v->node->attr.data.bytes, i);
    return (int)n;
}

int
xm_value_const_ints(const struct xm_value *v, int64_t *out, int max)
{
    const struct xm_content *c = &v->content;
    if (!xm_element_is_int(v->type.element))
        return -1;
    if (!xm_content_known(c))
        return v->node->op == XM_OP_CONST && xm_element_readable(v->type.element)
                   ? load_ints(v, out, max)
                   : -1;
    if (c->n > (uint32_t)(max < 0 ? 0 : max))
        return -1;
    for (uint32_t i = 0; i < c->n; i++) {
        if (!xm_dim_is_const(c->e[i]))
            return -1;
        out[i] = c->e[i].n;
    }
    return (int)c->n;
}

bool
xm_static_elements(const struct xm_shape *s, uint64_t *n)
{
    *n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        if (!xm_dim_is_const(s->dim[i]) || s->dim[i].n < 0 ||
            !xm_mul_size(*n, (uint64_t)s->dim[i].n, n))
            return false;
    return true;
}

struct xm_value *
xm_const_as_f32(struct xm_builder *b, const struct xm_value *v,
                const struct xm_shape *shape)
{
    struct xm_type type = {.element = XM_F32, .shape = *shape};
    uint64_t n, bytes;
    if (!xm_static_elements(&v->type.shape, &n) || !xm_mul_size(n, sizeof(float), &bytes))
        return NULL;
    float *copy = xm_arena_alloc(&b->graph->arena, bytes);
    if (!copy) {
        xm_no_memory(&b->graph->err, "a copy of '%.100s'", v->node->name);
        return NULL;
    }
    for (uint64_t i = 0; i < n; i++)
        copy[i] = xm_load_float(v->type.element, v->node->attr.data.bytes, i);
    return xm_const(b, &type, (struct xm_data){(const uint8_t *)copy, bytes});
}

struct xm_value *
xm_const_flat(struct xm_builder *b, const struct xm_value *v)
{
    struct xm_shape flat = {.rank = 1};
    uint64_t n;
    if (!xm_static_elements(&v->type.shape, &n))
        return NULL;
    if (v->type.element == XM_F32 && v->type.shape.rank == 1)
        return &v->node->out[v->index];
    flat.dim[0] = xm_dim_const((int64_t)n);
    return xm_const_as_f32(b, v, &flat);
}

/* Transposes from[rows][cols] to to[cols][rows] in squares that fit into the cache. */
static void
transpose_bytes(const uint8_t *from, uint64_t rows, uint64_t cols, uint32_t size,
                uint8_t *to)
{
    enum { SIDE = 32 };
    for (uint64_t r0 = 0; r0 < rows; r0 += SIDE) {
        for (uint64_t c0 = 0; c0 < cols; c0 += SIDE) {
            for (uint64_t r = r0; r < rows && r < r0 + SIDE; r++)
                for (uint64_t c = c0; c < cols && c < c0 + SIDE; c++)
                    memcpy(to + (c * rows + r) * size, from + (r * cols + c) * size,
                           size);
        }
    }
}

struct xm_value *
xm_const_transposed(struct xm_builder *b, const struct xm_value *c)
{
    struct xm_graph *g = b->graph;
    const struct xm_data *data = &c->node->attr.data;
    struct xm_type type = c->type;
    uint8_t *turned = xm_arena_alloc(&g->arena, data->n_bytes);
    if (!turned) {
        xm_no_memory(&g->err, "constant '%s', transposed", c->node->name);
        return NULL;
    }
    transpose_bytes(data->bytes, (uint64_t)c->type.shape.dim[0].n,
                    (uint64_t)c->type.shape.dim[1].n, xm_element_bits(type.element) / 8,
                    turned);
    type.shape.dim[0] = c->type.shape.dim[1];
    type.shape.dim[1] = c->type.shape.dim[0];
    return xm_const(b, &type, (struct xm_data){turned, data->n_bytes});
}
