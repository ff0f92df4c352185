/* SPDX-License-Identifier: Apache-2.0
 *
 * Row chains: parsing and printing, and the reference, which computes one row at a time. */
#include "runtime/reference/reference_row_chain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/reference/reference.h"
#include "runtime/util/compiler.h"
#include "runtime/util/element.h"
#include "runtime/util/memory.h"
#include "runtime/util/number.h"

static const char *const op_names[XM_CHAIN_N_OPS] = {"rms_norm", "add", "multiply",
                                                     "round_bf16"};
static const char kind_letters[] = {
    [XM_CHAIN_NONE] = '_', [XM_CHAIN_X] = 'x', [XM_CHAIN_C] = 'c', [XM_CHAIN_S] = 's'};

/* ---- text -------------------------------------------------------------------------- */

static void
print_operand(const struct xm_chain_operand *o, struct xm_strbuf *out)
{
    if (o->kind == XM_CHAIN_NONE)
        xm_strbuf_add(out, " _");
    else
        xm_strbuf_printf(out, " %c%u", kind_letters[o->kind], o->i);
}

void
xm_row_chain_print(const struct xm_row_chain *c, struct xm_strbuf *out)
{
    for (uint32_t i = 0; i < c->n_steps; i++) {
        const struct xm_chain_step *s = &c->step[i];
        xm_strbuf_printf(out, "%s%s%s", i ? "; " : "", s->is_result ? "out " : "",
                         op_names[s->op]);
        print_operand(&s->a, out);
        print_operand(&s->b, out);
        if (s->op == XM_CHAIN_RMS_NORM)
            xm_strbuf_printf(out, " %.9g", (double)s->epsilon);
    }
}

/* Takes `word` if it comes next, after spaces, and ends at a space, ';' or the end; moves *at
 * behind it. */
static bool
take_word(const char **at, const char *word)
{
    size_t n = strlen(word);
    const char *from = *at + strspn(*at, " ");
    if (strncmp(from, word, n) != 0 || !strchr(" ;", from[n]))
        return false; /* strchr also finds the NUL at the end */
    *at = from + n;
    return true;
}

static bool
take_operand(const char **at, struct xm_chain_operand *o)
{
    const char *from = *at + strspn(*at, " ");
    char *end = NULL;
    *o = (struct xm_chain_operand){XM_CHAIN_NONE, 0};
    if (take_word(at, "_"))
        return true;
    for (int kind = XM_CHAIN_X; kind <= XM_CHAIN_S; kind++) {
        if (*from == kind_letters[kind])
            o->kind = (enum xm_chain_kind)kind;
    }
    if (o->kind == XM_CHAIN_NONE || from[1] < '0' || from[1] > '9')
        return false;
    unsigned long i = strtoul(from + 1, &end, 10);
    o->i = (uint32_t)i;
    *at = end;
    return i < XM_CHAIN_STEPS && strchr(" ;", *end);
}

static bool
take_epsilon(const char **at, float *epsilon)
{
    char *end = NULL;
    *epsilon = xm_parse_float(*at, &end);
    bool ok = end != *at && *epsilon >= 0.0f && *epsilon < INFINITY;
    *at = end;
    return ok;
}

static bool
take_step(const char **at, struct xm_chain_step *s)
{
    s->is_result = take_word(at, "out");
    s->op = XM_CHAIN_RMS_NORM;
    while (s->op < XM_CHAIN_N_OPS && !take_word(at, op_names[s->op]))
        s->op++;
    if (s->op == XM_CHAIN_N_OPS || !take_operand(at, &s->a) || !take_operand(at, &s->b))
        return false;
    return s->op != XM_CHAIN_RMS_NORM || take_epsilon(at, &s->epsilon);
}

/* Returns what is wrong with step i of the chain; NULL: nothing. */
static const char *
step_fault(const struct xm_row_chain *c, uint32_t i)
{
    const struct xm_chain_step *s = &c->step[i];
    bool is_norm = s->op == XM_CHAIN_RMS_NORM;
    const uint32_t most[] = {[XM_CHAIN_NONE] = 1,
                             [XM_CHAIN_X] = XM_CHAIN_XS,
                             [XM_CHAIN_C] = XM_CHAIN_CS,
                             [XM_CHAIN_S] = i};
    if (s->a.i >= most[s->a.kind] || s->b.i >= most[s->b.kind])
        return "it reads an operand that does not exist";
    if (s->a.kind != XM_CHAIN_X && s->a.kind != XM_CHAIN_S)
        return "its first operand must be a row";
    if (is_norm && s->b.kind != XM_CHAIN_C && s->b.kind != XM_CHAIN_NONE)
        return "the weight of its norm must be a constant";
    if (s->op == XM_CHAIN_ROUND_BF16)
        return s->b.kind != XM_CHAIN_NONE ? "a rounding takes one operand" : NULL;
    return !is_norm && s->b.kind == XM_CHAIN_NONE ? "it needs two operands" : NULL;
}

/* The number of operands of a kind; -1: an operand below the highest one is not used. */
static int
count_operands(const struct xm_row_chain *c, enum xm_chain_kind kind)
{
    uint32_t read = 0;
    for (uint32_t i = 0; i < c->n_steps; i++) {
        const struct xm_chain_operand *o[] = {&c->step[i].a, &c->step[i].b};
        for (uint32_t k = 0; k < XM_ARRAY_LEN(o); k++)
            read |= o[k]->kind == kind ? 1u << o[k]->i : 0u;
    }
    int n = 0;
    while (read >> n & 1)
        n++;
    return read >> n ? -1 : n;
}

static enum xm_status
count(struct xm_row_chain *c, struct xm_error *err)
{
    int x = count_operands(c, XM_CHAIN_X), constants = count_operands(c, XM_CHAIN_C);
    for (uint32_t i = 0; i < c->n_steps; i++)
        c->n_y += c->step[i].is_result;
    if (x < 1 || constants < 0 || c->n_y < 1 || c->n_y > XM_CHAIN_YS)
        return xm_fail(
            err, XM_INVALID,
            "a row chain must read each of its operands and have 1 to %d results",
            XM_CHAIN_YS);
    c->n_x = (uint32_t)x;
    c->n_c = (uint32_t)constants;
    return XM_OK;
}

enum xm_status
xm_row_chain_parse(const char *text, struct xm_row_chain *out, struct xm_error *err)
{
    const char *at = text ? text : "";
    *out = (struct xm_row_chain){.n_steps = 0};
    do {
        uint32_t i = out->n_steps;
        if (i == XM_CHAIN_STEPS)
            return xm_fail(err, XM_INVALID, "a row chain has at most %d steps",
                           XM_CHAIN_STEPS);
        if (!take_step(&at, &out->step[i]))
            return xm_fail(err, XM_INVALID,
                           "step %u of the row chain '%.80s' cannot be parsed", i,
                           text ? text : "");
        const char *fault = step_fault(out, i);
        if (fault)
            return xm_fail(err, XM_INVALID, "step %u of the row chain '%.80s': %s", i,
                           text, fault);
        out->n_steps++;
        at += strspn(at, " ");
    } while (*at++ == ';');
    if (at[-1])
        return xm_fail(err, XM_INVALID,
                       "the row chain '%.80s' has text after its last step", text);
    return count(out, err);
}

uint32_t
xm_row_chain_results(const char *text)
{
    struct xm_row_chain c;
    return xm_row_chain_parse(text, &c, NULL) == XM_OK ? c.n_y : 0;
}

/* ---- the reference ----------------------------------------------------------------- */

/* The operands of a chain, and the rows that its steps have computed, for the present row. */
struct rows {
    const float *const *x, *const *constant;
    const bool *is_number;
    float *steps; /* rows of the steps, one after the other */
    uint64_t at, n;
};

static const float *
row_of(const struct rows *r, const struct xm_chain_operand *o)
{
    switch (o->kind) {
    case XM_CHAIN_X:
        return r->x[o->i] + r->at;
    case XM_CHAIN_C:
        return r->constant[o->i];
    case XM_CHAIN_S:
        return r->steps + o->i * r->n;
    case XM_CHAIN_NONE:
        break;
    }
    return NULL;
}

static void
run_step(const struct xm_chain_step *s, const struct rows *r, float *out)
{
    const float *a = row_of(r, &s->a), *b = row_of(r, &s->b);
    uint64_t stride = s->b.kind == XM_CHAIN_C && r->is_number[s->b.i] ? 0 : 1;
    if (s->op == XM_CHAIN_RMS_NORM) {
        xm_ref_rms_norm(a, NULL, 1, r->n, s->epsilon, out);
        a = out;
    }
    for (uint64_t i = 0; s->op == XM_CHAIN_ROUND_BF16 && i < r->n; i++)
        out[i] = xm_bf16_to_float(xm_float_to_bf16(a[i]));
    for (uint64_t i = 0; b && i < r->n; i++)
        out[i] = s->op == XM_CHAIN_ADD ? a[i] + b[i * stride] : a[i] * b[i * stride];
}

enum xm_status
xm_ref_row_chain(const struct xm_row_chain *c, const float *const *x,
                 const float *const *constant, const bool *is_number, uint64_t rows,
                 uint64_t n, float *const *y)
{
    uint64_t bytes;
    if (!xm_mul_size(n, XM_CHAIN_STEPS * sizeof(float), &bytes))
        return XM_NO_MEMORY;
    struct rows r = {x, constant, is_number, xm_malloc(bytes + 1), 0, n};
    if (!r.steps)
        return XM_NO_MEMORY;
    for (uint64_t row = 0; row < rows; row++, r.at += n) {
        uint32_t results = 0;
        for (uint32_t i = 0; i < c->n_steps; i++) {
            float *out = r.steps + i * n;
            run_step(&c->step[i], &r, out);
            if (c->step[i].is_result)
                memcpy(y[results++] + r.at, out, n * sizeof(*out));
        }
    }
    xm_free(r.steps);
    return XM_OK;
}
