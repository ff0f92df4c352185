/* SPDX-License-Identifier: Apache-2.0
 *
 * Values, constants and weights of a program being lowered.
 */
#include <string.h>

#include "plugin/lower/lower.h"
#include "primitives/eltwise/eltwise.h"
#include "primitives/onednn/onednn_weight.h"
#include "primitives/product.h"

enum { LARGEST_PLAIN_CONSTANT = 64 * 1024 * 1024 }; /* bytes; weights are WEIGHT nodes */

static struct xm_shape
import_shape(struct xm_lower *l, const struct xm_shape *shape)
{
    struct xm_shape s = {.rank = shape->rank};
    for (uint32_t i = 0; i < s.rank; i++)
        s.dim[i] = xm_dim_import(&l->p->dims, shape->dim[i]);
    return s;
}

enum xm_status
xm_lower_new_value(struct xm_lower *l, const struct xm_value *source,
                   enum xm_element element, const struct xm_shape *shape,
                   enum xm_place place, uint32_t *out)
{
    struct xm_program *p = l->p;
    struct xm_program_value *values =
        xm_grow(p->values, &l->values_capacity, p->n_values + 1, sizeof(*values));
    if (!values)
        return xm_no_memory(l->err, "a program's values");
    p->values = values;
    *out = p->n_values++;
    p->values[*out] = (struct xm_program_value){
        .place = place,
        .element = element,
        .shape = import_shape(l, shape),
        .alias = XM_NO_VALUE,
        .first = UINT32_MAX,
        .source = source,
    };
    return XM_OK;
}

enum xm_element
xm_lower_element(const struct xm_value *v)
{
    const enum xm_element e = xm_value_stored(v);
    return xm_element_is_float(e) && e != XM_F16 ? XM_F32 : e;
}

static void
set_value(struct xm_lower *l, const struct xm_node *n, uint32_t i, uint32_t id)
{
    l->first_value[l->first_result[n->id] + i] = id;
}

enum xm_status
xm_lower_result(struct xm_lower *l, struct xm_node *n, uint32_t i, enum xm_element e,
                struct xm_step_operand *out)
{
    struct xm_value *v = &n->out[i];
    xm_lower_absent(out, 1);
    if (e == XM_DYNAMIC)
        e = xm_lower_element(v);
    XM_TRY(xm_lower_new_value(l, v, e, &v->type.shape, XM_PLACE_ACTIVATION, &out->value));
    set_value(l, n, i, out->value);
    out->result = i;
    return XM_OK;
}

enum xm_status
xm_lower_alias(struct xm_lower *l, struct xm_node *n, uint32_t i, uint32_t of)
{
    uint32_t id = XM_NO_VALUE;
    struct xm_value *v = &n->out[i];
    XM_TRY(xm_lower_new_value(l, v, l->p->values[of].element, &v->type.shape,
                              XM_PLACE_ALIAS, &id));
    l->p->values[id].alias = of;
    set_value(l, n, i, id);
    return XM_OK;
}

/* Converts n elements of type `from` to type `to`. *out is new memory of *n_bytes bytes, which the
 * caller frees with xm_free. */
static enum xm_status
convert_constant(const struct xm_data *data, enum xm_element from, enum xm_element to,
                 uint64_t n, void **out, uint64_t *n_bytes, struct xm_error *err)
{
    if (!xm_element_bytes(to, n, n_bytes) || *n_bytes > LARGEST_PLAIN_CONSTANT)
        return xm_fail(err, XM_UNSUPPORTED,
                       "a constant of %llu elements is not a stored weight and is too "
                       "large to expand",
                       (unsigned long long)n);
    *out = xm_malloc((size_t)*n_bytes);
    if (!*out)
        return xm_no_memory(err, "a constant");
    if (from == to && data->n_bytes >= *n_bytes) {
        memcpy(*out, data->bytes, (size_t)*n_bytes);
        return XM_OK;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (xm_element_is_float(to))
            xm_store_float(to, *out, i, xm_load_float(from, data->bytes, i));
        else
            xm_store_int(to, *out, i, xm_load_int(from, data->bytes, i));
    }
    return XM_OK;
}

/* Dequantizes a weight to f32, for operations that cannot read weights, up to
 * LARGEST_PLAIN_CONSTANT bytes. *out is new memory, which the caller frees with xm_free. */
static enum xm_status
expand_weight(const struct xm_weight *w, void **out, uint64_t *n_bytes,
              struct xm_error *err)
{
    uint64_t rows = w->experts * w->rows;
    *n_bytes = rows * w->cols * sizeof(float);
    if (*n_bytes > LARGEST_PLAIN_CONSTANT)
        return xm_fail(err, XM_UNSUPPORTED,
                       "a weight of %llu bytes is read by an operation that does not "
                       "support stored weights",
                       (unsigned long long)xm_weight_bytes(w));
    float *f = *out = xm_malloc((size_t)*n_bytes);
    if (!f)
        return xm_no_memory(err, "a constant");
    for (uint64_t r = 0; r < rows; r++)
        xm_weight_row(w, r / w->rows, r % w->rows, f + r * w->cols);
    return XM_OK;
}

/* Writes a constant to its buffer. All constants are written by one queue, made on first use. */
static enum xm_status
write_constant(struct xm_lower *l, struct xm_buffer *b, const void *bytes,
               uint64_t n_bytes)
{
    if (!l->queue)
        XM_TRY(xm_queue_create(l->p->engine, &l->queue, l->err));
    return xm_queue_write(l->queue, b, 0, bytes, n_bytes, l->err);
}

/* Uploads a constant; floats become f32 so that every kernel reads them alike. */
static enum xm_status
upload(struct xm_lower *l, const struct xm_value *v, enum xm_element e,
       struct xm_buffer **out)
{
    const struct xm_node *n = v->node;
    struct xm_dim elements = xm_shape_elements(&l->g->dims, &v->type.shape);
    void *bytes = NULL;
    uint64_t n_bytes = 0;
    enum xm_status s;
    if (n->op == XM_OP_WEIGHT)
        s = expand_weight(&n->attr.weight, &bytes, &n_bytes, l->err);
    else
        s = convert_constant(&n->attr.data, v->type.element, e, (uint64_t)elements.n,
                             &bytes, &n_bytes, l->err);
    if (s == XM_OK)
        s = xm_buffer_create(l->p->engine, XM_USE_WEIGHT, n_bytes ? n_bytes : 1, out,
                             l->err);
    if (s == XM_OK && n_bytes)
        s = write_constant(l, *out, bytes, n_bytes);
    xm_free(bytes);
    return s;
}

static enum xm_element
constant_element(const struct xm_value *v)
{
    enum xm_element e = v->type.element;
    return xm_element_is_float(e) ? XM_F32 : xm_element_bits(e) < 8 ? XM_I32 : e;
}

/* Fails because a value is used before it is computed. In a graph with regions this is a limit of
 * lowering: a region's step may stand before a node whose value it reads. Otherwise the graph's
 * order is wrong. */
static enum xm_status
fail_early(struct xm_lower *l, const struct xm_node *n)
{
    bool has_regions = false;
    xm_for_each_node(other, l->g) has_regions |= xm_lower_is_in_region(l, other);
    return xm_fail(l->err, has_regions ? XM_UNPLANNED : XM_INVALID,
                   "%%%u %s '%s' is used before it is computed%s", n->id,
                   xm_op_info(n->op)->text, n->name,
                   has_regions ? " (the graph has sizes that depend on data)" : "");
}

enum xm_status
xm_lower_value(struct xm_lower *l, struct xm_value *v, uint32_t *out)
{
    uint32_t *known = &l->first_value[l->first_result[v->node->id] + v->index];
    *out = *known;
    if (*out == XM_NO_VALUE) {
        XM_TRY(xm_lower_region_before(l, v->node));
        *out = *known;
    }
    if (*out != XM_NO_VALUE)
        return XM_OK;
    if (!xm_value_is_const(v))
        return fail_early(l, v->node);
    enum xm_element e = constant_element(v);
    XM_TRY(xm_lower_new_value(l, v, e, &v->type.shape, XM_PLACE_CONST, out));
    *known = *out;
    return upload(l, v, e, &l->p->values[*out].buffer); /* freed with the program */
}

enum xm_status
xm_lower_value_as(struct xm_lower *l, struct xm_value *v, enum xm_element e,
                  uint32_t *out)
{
    uint32_t from = XM_NO_VALUE;
    XM_TRY(xm_lower_value(l, v, &from));
    *out = from;
    if (l->p->values[from].element == e)
        return XM_OK;
    struct xm_eltwise_desc desc = {
        .fn = XM_FN_CONVERT, .a = l->p->values[from].element, .y = e};
    struct xm_primitive *primitive = NULL;
    if (xm_eltwise_supports(&desc))
        return XM_UNSUPPORTED;
    XM_TRY(xm_eltwise_create(l->p->engine, &desc, &primitive, l->err));
    enum xm_status s =
        xm_lower_new_value(l, NULL, e, &v->type.shape, XM_PLACE_ACTIVATION, out);
    if (s != XM_OK) {
        xm_primitive_destroy(primitive);
        return s;
    }
    struct xm_step_operand operands[XM_ELTWISE_N_OPERANDS];
    xm_lower_absent(operands, XM_ELTWISE_N_OPERANDS);
    operands[XM_ELTWISE_A].value = from;
    operands[XM_ELTWISE_A].input = 0;
    operands[XM_ELTWISE_Y].value = *out;
    operands[XM_ELTWISE_Y].result = 0;
    return xm_lower_step(l, NULL, XM_STEP_PRIMITIVE, primitive, operands, NULL);
}

void
xm_lower_absent(struct xm_step_operand *operands, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        operands[i] =
            (struct xm_step_operand){XM_NO_VALUE, XM_NO_VALUE, XM_NO_VALUE, XM_ROLE_NONE};
}

enum xm_element
xm_lower_element_of(const struct xm_lower *l, const struct xm_step_operand *o)
{
    return o->value == XM_NO_VALUE ? XM_DYNAMIC : l->p->values[o->value].element;
}

enum xm_status
xm_lower_input(struct xm_lower *l, const struct xm_node *n, uint32_t i,
               struct xm_step_operand *out)
{
    xm_lower_absent(out, 1);
    out->input = i;
    return xm_is_none(xm_in(n, i)) ? XM_OK : xm_lower_value(l, xm_in(n, i), &out->value);
}

enum xm_status
xm_lower_input_as(struct xm_lower *l, const struct xm_node *n, uint32_t i,
                  enum xm_element e, struct xm_step_operand *out)
{
    xm_lower_absent(out, 1);
    out->input = i;
    return xm_is_none(xm_in(n, i)) ? XM_OK
                                   : xm_lower_value_as(l, xm_in(n, i), e, &out->value);
}

enum xm_status
xm_lower_like_result(struct xm_lower *l, const struct xm_node *n, uint32_t i,
                     struct xm_step_operand *out)
{
    const enum xm_element e = xm_lower_element(&n->out[0]);
    return xm_element_is_float(e) ? xm_lower_input_as(l, n, i, e, out)
                                  : xm_lower_input(l, n, i, out);
}

enum xm_status
xm_lower_f32_buffer(struct xm_lower *l, const struct xm_value *v, struct xm_buffer **out)
{
    *out = NULL;
    if (xm_is_none(v))
        return XM_OK;
    if (!xm_value_is_const(v))
        return XM_UNSUPPORTED;
    uint32_t id = XM_NO_VALUE;
    XM_TRY(xm_lower_value(l, &v->node->out[v->index], &id));
    if (l->p->values[id].element != XM_F32)
        return XM_UNSUPPORTED;
    *out = l->p->values[id].buffer;
    return XM_OK;
}

/* Returns whether `have` was made of w (same bytes and same view) and is in the same place, host or
 * device. */
static bool
is_same_weight(const struct xm_device_weight *have, const struct xm_weight *w,
               bool on_host)
{
    return have->on_host == on_host && xm_weight_same(&have->file, w);
}

/* Returns whether oneDNN may read the weights. A plan on a counting engine, which cannot open
 * oneDNN, must count the same buffers as the program that will run. */
static bool
suits_onednn(const struct xm_program *p)
{
    return p->onednn ||
           (p->config.use_onednn == XM_YES && xm_engine_only_counts(p->engine) &&
            xm_onednn_could_open(xm_engine_info(p->engine)));
}

/* Returns whether w is of experts of which some layers' stay in host memory (OFFLOAD_RATIO). The
 * same kernels read both, so the weights on the device must have the file's format, too. */
static bool
offloads(const struct xm_lower *l, const struct xm_weight *w)
{
    return w->experts > 1 && l->p->config.offload_ratio > 0;
}

/* Returns whether the experts of the next layer, `bytes` bytes, stay in host memory. Layers are
 * chosen so that at any time at least OFFLOAD_RATIO percent of the bytes so far stay there, and are
 * spread over the model. */
static bool
stay_on_host(struct xm_lower *l, uint64_t bytes)
{
    l->expert_bytes += bytes;
    if (100 * l->host_expert_bytes >= l->p->config.offload_ratio * l->expert_bytes)
        return false;
    l->host_expert_bytes += bytes;
    return true;
}

/* Lets the system drop the pages of the mapped file that have been copied to the device, because
 * they are not needed beside the copy. */
static void
forget_copied(const struct xm_program *p, const struct xm_device_weight *w)
{
    const struct {
        const struct xm_bytes *bytes;
        const struct xm_buffer *copy;
    } parts[] = {{&w->host.data, w->data},
                 {&w->host.scale, w->scale},
                 {&w->host.zero_point, w->zero_point}};
    for (size_t i = 0; i < XM_ARRAY_LEN(parts); i++) {
        if (!parts[i].copy || xm_buffer_kind(parts[i].copy) == XM_MEMORY_MAPPED)
            continue;
        for (uint32_t m = 0; m < p->n_mappings; m++) {
            if (p->mappings[m]->forget)
                p->mappings[m]->forget(p->mappings[m], parts[i].bytes->p,
                                       parts[i].bytes->n);
        }
    }
}

/* Makes room for one more weight in the program's list. */
static enum xm_status
reserve_weight(struct xm_lower *l)
{
    struct xm_program *p = l->p;
    struct xm_device_weight **list =
        xm_grow(p->weights, &l->weights_capacity, p->n_weights + 1, sizeof(*list));
    if (!list)
        return xm_no_memory(l->err, "the list of weights");
    p->weights = list;
    return XM_OK;
}

/* Returns a weight of the program, in the same place, whose stored bytes w is another view of: a
 * file may store gate and up as one tensor. NULL: there is none, or its bytes were converted to
 * another layout than the file's. */
static const struct xm_device_weight *
with_its_bytes(const struct xm_program *p, const struct xm_weight *w, bool on_host)
{
    for (uint32_t i = 0; i < p->n_weights; i++) {
        const struct xm_device_weight *have = p->weights[i];
        if (have->on_host == on_host && xm_weight_same_stored(&have->file, w) &&
            xm_weight_same(&have->file, &have->host))
            return have;
    }
    return NULL;
}

static enum xm_status
create_weight(const struct xm_lower *l, const struct xm_weight *w, bool on_host,
              struct xm_device_weight **out)
{
    const struct xm_device_weight *of = with_its_bytes(l->p, w, on_host);
    if (of)
        return xm_device_weight_view(of, w, out, l->err);
    return on_host         ? xm_host_weight_create(l->p->engine, w, out, l->err)
           : l->p->is_part ? xm_device_part_create(l->p->engine, w, out, l->err)
                           : xm_device_weight_create(l->p->engine, w, out, l->err);
}

static enum xm_status
lower_weight(struct xm_lower *l, const struct xm_weight *w, bool on_host, bool turns,
             struct xm_device_weight **out)
{
    struct xm_program *p = l->p;
    for (uint32_t i = 0; i < p->n_weights; i++) {
        if (is_same_weight(p->weights[i], w, on_host)) {
            *out = p->weights[i];
            return XM_OK;
        }
    }
    XM_TRY(reserve_weight(l));
    XM_TRY(create_weight(l, w, on_host, out));
    p->weights[p->n_weights++] = *out;
    if (turns && suits_onednn(p) && !offloads(l, w) &&
        xm_onednn_weight_can_turn(xm_engine_info(p->engine), w))
        XM_TRY(xm_onednn_weight_turn(p->engine, *out, l->err));
    p->weight_bytes += xm_weight_bytes(w);
    p->host_weight_bytes += on_host ? xm_weight_bytes(w) : 0;
    forget_copied(p, *out);
    return XM_OK;
}

enum xm_status
xm_lower_experts(struct xm_lower *l, const struct xm_value *const *v, uint32_t n,
                 struct xm_device_weight **out, uint64_t *host_bytes)
{
    uint64_t experts = 0;
    /* may oneDNN read them? Not experts with gate and up in one weight, where v[i] is xm_none. */
    bool turns = true;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = NULL;
        turns = turns && (n == 1 || !xm_is_none(v[i]));
        if (xm_is_none(v[i]))
            continue;
        if (v[i]->node->op != XM_OP_WEIGHT)
            return XM_UNSUPPORTED;
        const struct xm_weight *w = &v[i]->node->attr.weight;
        experts += w->experts > 1 ? xm_weight_bytes(w) : 0;
    }
    bool on_host = experts && stay_on_host(l, experts);
    *host_bytes = on_host ? experts : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!xm_is_none(v[i]))
            XM_TRY(lower_weight(l, &v[i]->node->attr.weight, on_host, turns, &out[i]));
    }
    return XM_OK;
}

enum xm_status
xm_lower_weight(struct xm_lower *l, const struct xm_value *v,
                struct xm_device_weight **out)
{
    uint64_t host_bytes;
    return xm_lower_experts(l, &v, 1, out, &host_bytes);
}

bool
xm_lower_is_float(const struct xm_lower *l, const struct xm_step_operand *o)
{
    enum xm_element e = xm_lower_element_of(l, o);
    return e == XM_F16 || e == XM_F32;
}

uint32_t
xm_lower_factor_columns(const struct xm_lower *l, const struct xm_node *n)
{
    const struct xm_config *config = &l->p->config;
    const struct xm_device_info *device = xm_engine_info(l->p->engine);
    const uint32_t asked = xm_config_factor_columns(config);
    bool gains = true, has_weight = false;
    bool is_coarse =
        asked == XM_FACTOR_FINE &&
        !xm_config_user_set(config, XM_OPTION_dynamic_quantization_group_size);
    for (uint32_t i = 0; i < n->n_in; i++) {
        const struct xm_weight *w =
            xm_is_none(xm_in(n, i)) ? NULL : xm_asked_weight(xm_in(n, i));
        if (!w)
            continue;
        gains = gains && (xm_device_has(device, XM_CAP_BYTE_DOTS) ||
                          (xm_weight_meets(w) & XM_MEETS_BYTES));
        is_coarse = is_coarse && xm_product_wants_coarse(device, w);
        has_weight = true;
    }
    return !gains ? 0 : has_weight && is_coarse ? XM_FACTOR_COARSE : asked;
}

/* ---- operands that a pass asks for ------------------------------------------------------ */

const struct xm_weight *
xm_asked_weight(const struct xm_value *v)
{
    return v->node->op == XM_OP_WEIGHT ? &v->node->attr.weight : NULL;
}

enum xm_element
xm_asked_type(const struct xm_value *v)
{
    return xm_element_is_float(v->type.element) ? XM_F32 : v->type.element;
}

uint32_t
xm_asked_size(const struct xm_value *v, uint32_t i)
{
    const struct xm_shape *s = &v->type.shape;
    return i < s->rank && xm_dim_is_const(s->dim[i]) && s->dim[i].n <= INT32_MAX
               ? (uint32_t)s->dim[i].n
               : 0;
}

uint32_t
xm_asked_last_size(const struct xm_value *v)
{
    return v->type.shape.rank ? xm_asked_size(v, v->type.shape.rank - 1) : 0;
}
