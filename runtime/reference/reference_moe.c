/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixture of experts: routing, and the experts' MLPs on the tokens that chose them.
 *
 *     y[t] = sum_s weights[t,s] expert(ids[t,s], x[t])        s = 0 … K-1
 *
 * Computes one expert after the other: gathers the rows of its tokens, so that every weight row is
 * dequantised once. Activations of the expert: SwiGLU (Shazeer 2020), and the clamped form
 * (gpt-oss).
 */
#include <math.h>
#include <string.h>

#include "runtime/reference/reference.h"
#include "runtime/util/memory.h"

const char *
xm_routing_text(enum xm_routing r)
{
    static const char *const texts[] = {
#define ROUTING_FORM(number, id, text, weight, divisor, chosen_by, scores) text,
#include "kernels/cl/include/routings.def"
    };
    return r < XM_ROUTING_COUNT ? texts[r] : "unknown";
}

const char *
xm_gate_up_text(enum xm_gate_up g)
{
    static const char *const text[] = {
        [XM_GATE_UP_APART] = "apart",
        [XM_GATE_UP_INTERLEAVED] = "interleaved",
        [XM_GATE_UP_STACKED] = "stacked",
        [XM_UP_GATE_INTERLEAVED] = "up_first_interleaved",
        [XM_UP_GATE_STACKED] = "up_first_stacked",
    };
    return g < XM_GATE_UP_COUNT ? text[g] : "unknown";
}

/* Allocates a * b floats; NULL: no memory, or the size overflows. */
static float *
floats(uint64_t a, uint64_t b)
{
    uint64_t n;
    if (!xm_mul_size(a, b, &n) || !xm_mul_size(n, sizeof(float), &n))
        return NULL;
    return xm_malloc(n);
}

/* ---- routing ----------------------------------------------------------------------- */

enum divisor { UNDIVIDED, OVER_CHOSEN, OVER_ALL };
enum chosen_by { BY_LOGIT, BY_WEIGHT };
static const struct {
    enum divisor divisor;
    enum chosen_by chosen_by;
} forms[] = {
#define ROUTING_FORM(number, id, text, weight, divisor, chosen_by, scores)               \
    {divisor, chosen_by},
#include "kernels/cl/include/routings.def"
};

/* The weight of an expert with logit x before it is divided. */
static float
weight_of(enum xm_routing r, float x, float largest)
{
    switch (r) {
#define ROUTING_FORM(number, id, text, weight, divisor, chosen_by, scores)               \
    case XM_ROUTING_##id:                                                                \
        return weight;
#include "kernels/cl/include/routings.def"
    default:
        return NAN;
    }
}

/* Computes the chosen experts and their weights for one token; `score` is scratch of E floats. */
static void
route_token(const struct xm_moe_routing *r, const float *logits, const float *bias,
            uint64_t experts, float *score, float *weights, int32_t *ids)
{
    const uint64_t k = (uint64_t)r->top_k;
    const enum divisor divisor = forms[r->kind].divisor;
    float sum = 0.0f;
    for (uint64_t e = 0; e < experts; e++)
        score[e] = forms[r->kind].chosen_by == BY_LOGIT
                       ? logits[e]
                       : weight_of(r->kind, logits[e], 0.0f) + (bias ? bias[e] : 0.0f);
    xm_ref_topk(score, 1, experts, k, true, weights, ids);
    const float largest = k ? logits[ids[0]] : 0.0f;
    for (uint64_t s = 0; s < k; s++)
        weights[s] = weight_of(r->kind, logits[ids[s]], largest);
    for (uint64_t e = 0; divisor == OVER_ALL && e < experts; e++)
        sum += weight_of(r->kind, logits[e], largest);
    for (uint64_t s = 0; divisor == OVER_CHOSEN && s < k; s++)
        sum += weights[s];
    for (uint64_t s = 0; divisor != UNDIVIDED && s < k; s++)
        weights[s] /= sum;
}

static void
scale_weights(const struct xm_moe_routing *r, const float *expert_scale,
              const int32_t *ids, float *weights)
{
    float factor = r->scale;
    if (r->normalise) {
        float sum = r->epsilon;
        for (int64_t s = 0; s < r->top_k; s++)
            sum += weights[s];
        factor /= sum < r->least_sum ? r->least_sum : sum;
    }
    for (int64_t s = 0; s < r->top_k; s++)
        weights[s] *= expert_scale ? factor * expert_scale[ids[s]] : factor;
}

enum xm_status
xm_ref_moe_route(const struct xm_moe_routing *r, const float *logits, const float *bias,
                 const float *expert_scale, uint64_t tokens, uint64_t experts,
                 float *weights, int32_t *ids)
{
    if (r->kind >= XM_ROUTING_COUNT || r->top_k < 0 || (uint64_t)r->top_k > experts)
        return XM_INVALID;
    float *score = floats(experts, 1);
    if (!score)
        return XM_NO_MEMORY;
    for (uint64_t t = 0; t < tokens; t++) {
        uint64_t at = t * (uint64_t)r->top_k;
        route_token(r, logits + t * experts, bias, experts, score, weights + at,
                    ids + at);
        scale_weights(r, expert_scale, ids + at, weights + at);
    }
    xm_free(score);
    return XM_OK;
}

/* ---- experts ----------------------------------------------------------------------- */

/* Scratch for the tokens of one expert, `rows` at most. */
struct scratch {
    uint64_t *slot; /* indices into ids: t * K + s */
    float *x;       /* [rows, H]  */
    float *gate;    /* [rows, I]; if gate's weight holds up, too, [rows, 2I] */
    float *up;      /* [rows, I]  */
    float *y;       /* [rows, H]  */
};

static void
scratch_free(struct scratch *s)
{
    xm_free(s->slot);
    xm_free(s->x);
    xm_free(s->gate);
    xm_free(s->up);
    xm_free(s->y);
}

static bool
scratch_create(struct scratch *s, uint64_t slots, uint64_t rows, uint64_t cols,
               uint64_t gate, uint64_t out)
{
    uint64_t bytes;
    memset(s, 0, sizeof(*s));
    if (!xm_mul_size(slots, sizeof(*s->slot), &bytes))
        return false;
    s->slot = xm_malloc(bytes);
    s->x = floats(rows, cols);
    s->gate = floats(rows, gate);
    s->up = floats(rows, gate);
    s->y = floats(rows, out);
    return s->slot && s->x && s->gate && s->up && s->y;
}

/* Counts how many slots each expert has; *most: the largest count. XM_INVALID: an id is not the
 * number of an expert; -1 is allowed if `may_lack`. */
static enum xm_status
most_slots(const int32_t *ids, uint64_t slots, uint64_t experts, bool may_lack,
           uint64_t *most)
{
    uint64_t *count = xm_calloc(experts, sizeof(*count));
    if (!count)
        return XM_NO_MEMORY;
    *most = 0;
    enum xm_status status = XM_OK;
    for (uint64_t i = 0; i < slots && status == XM_OK; i++) {
        if (may_lack && ids[i] == -1)
            continue;
        if (ids[i] < 0 || (uint64_t)ids[i] >= experts) {
            status = XM_INVALID;
            continue;
        }
        count[ids[i]]++;
        if (count[ids[i]] > *most)
            *most = count[ids[i]];
    }
    xm_free(count);
    return status;
}

static uint64_t
slots_of(const int32_t *ids, uint64_t slots, uint64_t expert, uint64_t *slot)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < slots; i++) {
        if ((uint64_t)ids[i] == expert)
            slot[n++] = i;
    }
    return n;
}

/* The column of element i of gate (below: of up) in a row of x times gate's weight, which may hold
 * both. */
static uint64_t
gate_place(enum xm_gate_up form, uint64_t i, uint64_t inter)
{
    switch (form) {
    case XM_GATE_UP_INTERLEAVED:
        return 2 * i;
    case XM_UP_GATE_INTERLEAVED:
        return 2 * i + 1;
    case XM_UP_GATE_STACKED:
        return inter + i;
    default:
        return i;
    }
}

static uint64_t
up_place(enum xm_gate_up form, uint64_t i, uint64_t inter)
{
    switch (form) {
    case XM_GATE_UP_INTERLEAVED:
        return 2 * i + 1;
    case XM_UP_GATE_INTERLEAVED:
        return 2 * i;
    case XM_GATE_UP_STACKED:
        return inter + i;
    default:
        return i;
    }
}

static float
hidden_value(const struct xm_moe_attr *a, float gate, float up)
{
    if (a->limit > 0) {
        gate = fminf(gate, a->limit);
        up = fmaxf(fminf(up, a->limit), -a->limit);
    }
    return xm_ref_activation(a->activation, a->beta, gate) * (up + a->up_add);
}

/* Computes x Wg, x Wu and the activation of an expert; the result is in s->up. */
static enum xm_status
gate_and_up(const struct xm_moe_attr *a, const struct xm_moe_weights *m, uint64_t e,
            uint64_t rows, struct scratch *s)
{
    uint64_t n = m->gate->rows, inter = m->down->cols;
    const float *bias = m->bias_gate ? m->bias_gate + e * n : NULL;
    const float *up_bias = m->bias_up ? m->bias_up + e * n : NULL;
    const float *factor = m->factor ? m->factor + e * inter : NULL;
    bool apart = a->gate_up == XM_GATE_UP_APART;
    XM_TRY(xm_ref_linear(s->x, rows, m->gate, e, bias, s->gate));
    if (apart)
        XM_TRY(xm_ref_linear(s->x, rows, m->up, e, up_bias, s->up));
    for (uint64_t r = 0; r < rows; r++) {
        const float *row = s->gate + r * n;
        float *up = s->up + r * inter;
        for (uint64_t i = 0; i < inter; i++)
            up[i] = hidden_value(a, row[gate_place(a->gate_up, i, inter)],
                                 apart ? up[i] : row[up_place(a->gate_up, i, inter)]) *
                    (factor ? factor[i] : 1.0f);
    }
    return XM_OK;
}

/* Runs expert e on the `rows` rows in s->x; result in s->y. */
static enum xm_status
run_expert(const struct xm_moe_attr *a, const struct xm_moe_weights *m, uint64_t e,
           uint64_t rows, struct scratch *s)
{
    const float *bias = m->bias_down ? m->bias_down + e * m->down->rows : NULL;
    XM_TRY(gate_and_up(a, m, e, rows, s));
    return xm_ref_linear(s->up, rows, m->down, e, bias, s->y);
}

static void
gather_rows(const float *x, uint64_t cols, const uint64_t *slot, uint64_t n,
            uint32_t top_k, float *out)
{
    for (uint64_t i = 0; i < n; i++)
        memcpy(out + i * cols, x + slot[i] / top_k * cols, cols * sizeof(*out));
}

/* Adds the results of one expert's slots, times their weights, to y. */
static void
add_slots(const struct scratch *s, uint64_t rows, uint64_t hidden, uint32_t top_k,
          const float *weights, float *y)
{
    for (uint64_t i = 0; i < rows; i++) {
        float *sum = y + s->slot[i] / top_k * hidden;
        for (uint64_t h = 0; h < hidden; h++)
            sum[h] += weights[s->slot[i]] * s->y[i * hidden + h];
    }
}

enum xm_status
xm_ref_moe(const struct xm_moe_attr *a, const struct xm_moe_weights *m, const float *x,
           const float *weights, const int32_t *ids, uint64_t tokens, uint32_t top_k,
           float *y)
{
    uint64_t slots = tokens * top_k, most;
    struct scratch s;
    memset(y, 0, tokens * m->down->rows * sizeof(*y));
    XM_TRY(most_slots(ids, slots, m->gate->experts, xm_moe_is_part(a), &most));
    enum xm_status status = XM_OK;
    if (!scratch_create(&s, slots, most, m->gate->cols, m->gate->rows, m->down->rows))
        status = XM_NO_MEMORY;
    for (uint64_t e = 0; status == XM_OK && e < m->gate->experts; e++) {
        uint64_t rows = slots_of(ids, slots, e, s.slot);
        if (rows == 0)
            continue;
        gather_rows(x, m->gate->cols, s.slot, rows, top_k, s.x);
        status = run_expert(a, m, e, rows, &s);
        if (status == XM_OK)
            add_slots(&s, rows, m->down->rows, top_k, weights, y);
    }
    scratch_free(&s);
    return status;
}

/* ---- one product on the chosen experts --------------------------------------------- */

struct gather_matmul {
    const float *a;
    uint64_t a_slots;
    const struct xm_weight *w;
    const float *bias;
    uint64_t tokens;
    uint32_t top_k;
    float *out;
};

static enum xm_status
multiply_expert(const struct gather_matmul *g, uint64_t e, uint64_t rows,
                struct scratch *s)
{
    uint64_t cols = g->w->cols, n = g->w->rows;
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t t = s->slot[i] / g->top_k, k = s->slot[i] % g->top_k;
        uint64_t from = (k < g->a_slots ? k : g->a_slots - 1) * g->tokens + t;
        memcpy(s->x + i * cols, g->a + from * cols, cols * sizeof(*s->x));
    }
    XM_TRY(xm_ref_linear(s->x, rows, g->w, e, g->bias ? g->bias + e * n : NULL, s->y));
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t t = s->slot[i] / g->top_k, k = s->slot[i] % g->top_k;
        memcpy(g->out + (k * g->tokens + t) * n, s->y + i * n, n * sizeof(*s->y));
    }
    return XM_OK;
}

enum xm_status
xm_ref_gather_matmul(const float *a, uint64_t a_slots, const struct xm_weight *w,
                     const int32_t *ids, const float *bias, uint64_t tokens,
                     uint32_t top_k, float *out)
{
    const struct gather_matmul g = {a, a_slots, w, bias, tokens, top_k, out};
    uint64_t slots = tokens * top_k, most;
    struct scratch s;
    XM_TRY(most_slots(ids, slots, w->experts, false, &most));
    enum xm_status status = XM_OK;
    if (!scratch_create(&s, slots, most, w->cols, 0, w->rows))
        status = XM_NO_MEMORY;
    for (uint64_t e = 0; status == XM_OK && e < w->experts; e++) {
        uint64_t rows = slots_of(ids, slots, e, s.slot);
        if (rows > 0)
            status = multiply_expert(&g, e, rows, &s);
    }
    scratch_free(&s);
    return status;
}
