/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/lower/program_layers.h"

#include <string.h>

struct search {
    const struct xm_program *p;
    const char *const *signatures;
    struct xm_program_layers *out;
    uint32_t *attention; /* [layer]: its step of attention */
    uint32_t *start;     /* [layer]: its first step; [n]: the end of the last layer */
    int64_t *alive;      /* [step]: values computed before the step and read from it on */
};

uint32_t
xm_program_maker(const struct xm_program *p, uint32_t value)
{
    const struct xm_program_value *v = &p->values[xm_program_root(p, value)];
    bool is_made = v->place == XM_PLACE_ACTIVATION || v->place == XM_PLACE_OUTPUT;
    return is_made && !v->is_form ? v->first : XM_NO_VALUE;
}

/* Returns whether several layers use a value, as rotary tables and masks: at least two steps of
 * attention lie between the step that computes it and its last reader. Such values do not count at
 * the boundary of two layers. */
static bool
passes_layers(const struct search *s, const struct xm_program_value *v)
{
    uint32_t i = 0;
    while (i < s->out->n && s->attention[i] <= v->first)
        i++;
    return i + 1 < s->out->n && s->attention[i + 1] <= v->last;
}

/* Sets alive[at] to the number of values that are computed before step `at` and read from it on.
 * Inputs of floats (embeddings) are alive from the start. */
static void
count_alive(struct search *s)
{
    const struct xm_program *p = s->p;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const struct xm_program_value *v = &p->values[i];
        bool is_input = v->place == XM_PLACE_INPUT && xm_element_is_float(v->element);
        if (v->first == UINT32_MAX || v->place == XM_PLACE_ALIAS ||
            (!is_input && xm_program_maker(p, i) == XM_NO_VALUE) || passes_layers(s, v))
            continue;
        s->alive[is_input ? 0 : v->first + 1]++;
        s->alive[(v->last < p->n_steps ? v->last : p->n_steps) + 1]--;
    }
    for (uint32_t at = 1; at <= p->n_steps; at++)
        s->alive[at] += s->alive[at - 1];
}

/* Returns the place from `low` to `high` with the fewest values alive, but not none; of several the
 * last. */
static uint32_t
narrowest(const struct search *s, uint32_t low, uint32_t high)
{
    uint32_t best = low;
    for (uint32_t at = low; at <= high; at++) {
        if (s->alive[at] && (!s->alive[best] || s->alive[at] <= s->alive[best]))
            best = at;
    }
    return best;
}

/* Returns the earliest step at which a layer may begin: between it and the layer's attention are at
 * most `products` steps that read weights. */
static uint32_t
earliest_start(const struct search *s, uint32_t layer, uint32_t products)
{
    uint32_t at = s->attention[layer], n = 0;
    const uint32_t low = layer ? s->attention[layer - 1] + 1 : 0;
    while (at > low) {
        n += s->p->steps[at - 1].cost.bytes > 0;
        if (n > products)
            break;
        at--;
    }
    return at;
}

/* Returns the latest step at which a layer may begin: if `products` is known, the last step before
 * its attention that reads weights; otherwise the attention. */
static uint32_t
latest_start(const struct search *s, uint32_t layer, uint32_t products)
{
    const uint32_t low = layer ? s->attention[layer - 1] + 1 : 0;
    uint32_t at = s->attention[layer];
    while (products != UINT32_MAX && at > low && s->p->steps[at].cost.bytes == 0)
        at--;
    return s->p->steps[at].cost.bytes ? at : s->attention[layer];
}

static void
find_starts(struct search *s, uint32_t products)
{
    memset(s->out->block, 0, s->p->n_steps * sizeof(*s->out->block));
    for (uint32_t i = 0; i < s->out->n; i++)
        s->start[i] =
            narrowest(s, earliest_start(s, i, products), latest_start(s, i, products));
    s->start[s->out->n] = s->p->n_steps;
    for (uint32_t i = 0; i < s->out->n; i++) {
        for (uint32_t step = s->start[i]; step < s->start[i + 1]; step++)
            s->out->block[step] = 1 + i;
    }
}

/* Returns the number of steps of the first layer that read weights before its attention, as the
 * products q, k and v do; other layers have at most as many. UINT32_MAX: it has none, so the number
 * for other layers is not known. */
static uint32_t
products_before_attention(const struct search *s)
{
    uint32_t n = 0;
    for (uint32_t i = s->start[0]; i < s->attention[0]; i++)
        n += s->out->block[i] == 1 && s->p->steps[i].cost.bytes > 0;
    return n ? n : UINT32_MAX;
}

/* ---- what layers share --------------------------------------------------------------- */

static bool
needs(const struct xm_program *p, uint32_t step, const bool *marked)
{
    const struct xm_step *s = &p->steps[step];
    for (uint32_t i = 0; i < s->n_in; i++) {
        uint32_t maker = xm_program_maker(p, s->in[i]);
        if (maker != XM_NO_VALUE && marked[maker])
            return true;
    }
    return false;
}

/* Marks the steps of other blocks that compute values which `step` reads. */
static void
mark_shared(const struct search *s, uint32_t step, bool *shared)
{
    const struct xm_program *p = s->p;
    for (uint32_t i = 0; i < p->steps[step].n_in; i++) {
        uint32_t maker = xm_program_maker(p, p->steps[step].in[i]);
        if (maker != XM_NO_VALUE && s->out->block[maker] != s->out->block[step])
            shared[maker] = true;
    }
}

/* Moves steps that another block reads, and that do not depend on attention, before layer 0. Goes
 * backwards through the steps, so that steps that only such a step reads move, too. */
static void
move_shared(struct search *s, bool *after_attention, bool *shared)
{
    const struct xm_program *p = s->p;
    for (uint32_t i = 0; i < p->n_steps; i++)
        after_attention[i] =
            p->steps[i].kind == XM_STEP_ATTENTION || needs(p, i, after_attention);
    for (uint32_t i = p->n_steps; i-- > 0;) {
        if (shared[i] && !after_attention[i])
            s->out->block[i] = 0;
        mark_shared(s, i, shared);
    }
}

/* ---- layers alike -------------------------------------------------------------------- */

/* Returns the first step of a block from `step` on; UINT32_MAX: there is none. */
static uint32_t
next_of(const struct search *s, uint32_t step, uint32_t block)
{
    while (step < s->p->n_steps && s->out->block[step] != block)
        step++;
    return step < s->p->n_steps ? step : UINT32_MAX;
}

/* Returns how many steps of the last layer, from its attention on, have the same operations as
 * those of layer `other`. Steps before attention may differ, because a layer may have tables of its
 * own. */
static uint32_t
common_steps(const struct search *s, uint32_t other)
{
    const uint32_t last = s->out->n, mine = 1 + other;
    uint32_t a = s->attention[other], b = s->attention[last - 1], n = 0;
    while (a != UINT32_MAX && b != UINT32_MAX &&
           strcmp(s->p->steps[a].op, s->p->steps[b].op) == 0) {
        a = next_of(s, a + 1, mine);
        b = next_of(s, b + 1, last);
        n++;
    }
    return n;
}

/* Returns the number of steps of the only layer from its attention to its last step with experts;
 * all its steps if it has no experts. */
static uint32_t
steps_with_experts(const struct search *s)
{
    uint32_t n = 0, all = 0;
    for (uint32_t i = s->attention[s->out->n - 1]; i < s->p->n_steps; i++) {
        all += s->out->block[i] == s->out->n;
        if (s->p->steps[i].cost.expert_bytes)
            n = all;
    }
    return n ? n : all;
}

static void
end_last_layer(struct search *s)
{
    const uint32_t last = s->out->n;
    uint32_t most = last == 1 ? steps_with_experts(s) : 0, n = 0;
    for (uint32_t i = 0; i + 1 < last; i++) {
        uint32_t common = common_steps(s, i);
        most = common > most ? common : most;
    }
    for (uint32_t i = s->attention[last - 1]; i < s->p->n_steps; i++) {
        if (s->out->block[i] == last && n++ >= most)
            s->out->block[i] = last + 1;
    }
}

static bool
are_alike(const struct search *s, uint32_t x, uint32_t y)
{
    uint32_t a = next_of(s, s->start[x], 1 + x), b = next_of(s, s->start[y], 1 + y);
    while (a != UINT32_MAX && b != UINT32_MAX &&
           strcmp(s->signatures[a], s->signatures[b]) == 0) {
        a = next_of(s, a + 1, 1 + x);
        b = next_of(s, b + 1, 1 + y);
    }
    return a == b;
}

static void
find_kinds(struct search *s)
{
    for (uint32_t i = 0; i < s->out->n; i++) {
        uint32_t k = 0;
        while (k < i && (s->out->kind[k] != k || !are_alike(s, k, i)))
            k++;
        s->out->kind[i] = k;
    }
}

/* ---- all of it ----------------------------------------------------------------------- */

static void
find_attention(struct search *s)
{
    for (uint32_t i = 0; i < s->p->n_steps; i++) {
        if (s->p->steps[i].kind == XM_STEP_ATTENTION)
            s->attention[s->out->n++] = i;
    }
}

enum xm_status
xm_program_find_layers(const struct xm_program *p, const char *const *signatures,
                       struct xm_program_layers *out, struct xm_error *err)
{
    struct search s = {.p = p, .signatures = signatures, .out = out};
    bool *marks = xm_calloc(2 * (size_t)p->n_steps + 1, sizeof(*marks));
    *out = (struct xm_program_layers){
        .block = xm_calloc(p->n_steps + 1, sizeof(*out->block)),
        .kind = xm_calloc(p->n_steps + 1, sizeof(*out->kind))};
    s.attention = xm_calloc(p->n_steps + 1, sizeof(*s.attention));
    s.start = xm_calloc((size_t)p->n_steps + 2, sizeof(*s.start));
    s.alive = xm_calloc((size_t)p->n_steps + 3, sizeof(*s.alive));
    bool good = marks && out->block && out->kind && s.attention && s.start && s.alive;
    if (good)
        find_attention(&s);
    if (good && out->n) {
        count_alive(&s);
        find_starts(&s, UINT32_MAX);
        move_shared(&s, marks, marks + p->n_steps);
        find_starts(&s, products_before_attention(&s));
        memset(marks, 0, 2 * (size_t)p->n_steps * sizeof(*marks));
        move_shared(&s, marks, marks + p->n_steps);
        end_last_layer(&s);
        find_kinds(&s);
    }
    xm_free(marks);
    xm_free(s.attention);
    xm_free(s.start);
    xm_free(s.alive);
    return good ? XM_OK : xm_no_memory(err, "the layers of a program");
}

void
xm_program_layers_free(struct xm_program_layers *l)
{
    xm_free(l->block);
    xm_free(l->kind);
    *l = (struct xm_program_layers){0};
}
