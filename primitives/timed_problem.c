/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses problem lines: words NAME=number; the weight's element type and gGROUP, or its format of
 * blocks; then the element type of the activations.
 */
#include "primitives/timed_problem.h"

#include <stdio.h>
#include <string.h>

#include "primitives/attention/attention.h"
#include "primitives/product.h"
#include "runtime/util/number.h"
#include "runtime/util/strbuf.h"

static bool
set_number(struct xm_timed_problem *p, const char *word)
{
    bool moe = p->kind == XM_TIMED_MOE;
    const struct {
        const char *name;
        uint64_t *to;
    } numbers[] = {
        {"N=", &p->rows},    {"K=", moe ? &p->top_k : &p->cols},
        {"T=", &p->tokens},  {"E=", &p->experts},
        {"H=", &p->hidden},  {"I=", &p->inter},
        {"Q=", &p->heads_q}, {"KV=", &p->heads_kv},
        {"D=", &p->head},    {"P=", &p->past},
        {"g", &p->group},
    };
    for (size_t i = 0; i < XM_ARRAY_LEN(numbers); i++) {
        size_t n = strlen(numbers[i].name);
        if (strncmp(word, numbers[i].name, n) != 0)
            continue;
        return xm_parse_whole(word + n, numbers[i].to) && *numbers[i].to <= INT32_MAX;
    }
    return false;
}

static bool
set_format(struct xm_timed_problem *p, const char *word)
{
    for (int f = XM_WEIGHT_ELEMENTS + 1; f < XM_WEIGHT_FORMATS; f++) {
        if (strcmp(word, xm_weight_formats[f].text) != 0)
            continue;
        p->format = (enum xm_weight_format)f;
        p->weight = XM_U8;
        return true;
    }
    return false;
}

static enum xm_status
set_word(struct xm_timed_problem *p, const char *word, struct xm_error *err)
{
    if (set_number(p, word) || set_format(p, word))
        return XM_OK;
    enum xm_element e = xm_element_parse(word);
    if (e == XM_DYNAMIC || e == XM_ELEMENT_COUNT)
        return xm_fail(err, XM_INVALID, "'%s' is neither a size nor an element type",
                       word);
    if (p->weight == XM_DYNAMIC)
        p->weight = e;
    else
        p->activations = e;
    return XM_OK;
}

static enum xm_status
check(const struct xm_timed_problem *p, struct xm_error *err)
{
    bool moe = p->kind == XM_TIMED_MOE;
    bool sizes = moe ? p->experts && p->top_k && p->hidden && p->inter
                 : p->kind == XM_TIMED_LINEAR ? p->rows && p->cols
                                              : p->heads_q && p->heads_kv && p->head;
    uint64_t cols = moe ? p->hidden : p->cols;
    if (!sizes || !p->tokens)
        return xm_fail(err, XM_INVALID, "a size of the problem is missing");
    if (p->weight == XM_DYNAMIC || p->activations == XM_DYNAMIC)
        return xm_fail(err, XM_INVALID,
                       "expected the element types of weight and activations");
    uint64_t unit = p->group ? p->group : xm_weight_formats[p->format].block_cols;
    if (cols % unit || (moe && p->inter % unit))
        return xm_fail(err, XM_INVALID, "the group does not divide the columns");
    if (moe && p->top_k > p->experts)
        return xm_fail(err, XM_INVALID, "K, the chosen experts, is above E, all experts");
    return XM_OK;
}

enum xm_status
xm_timed_problem_parse(const char *line, struct xm_timed_problem *p, struct xm_error *err)
{
    char words[sizeof(p->text)];
    *p = (struct xm_timed_problem){.weight = XM_DYNAMIC, .activations = XM_DYNAMIC};
    snprintf(p->text, sizeof(p->text), "%s", line);
    memcpy(words, p->text, sizeof(words));
    char *rest = NULL, *word = strtok_r(words, " \t", &rest);
    static const char *const kinds[] = {[XM_TIMED_LINEAR] = "linear",
                                        [XM_TIMED_MOE] = "moe",
                                        [XM_TIMED_ATTENTION] = "attention"};
    size_t kind = 0;
    while (word && kind < XM_ARRAY_LEN(kinds) && strcmp(word, kinds[kind]) != 0)
        kind++;
    if (!word || kind == XM_ARRAY_LEN(kinds))
        return xm_fail(err, XM_INVALID, "'%s': expected linear, moe or attention", line);
    p->kind = (enum xm_timed_kind)kind;
    enum xm_status s = XM_OK;
    while (s == XM_OK && (word = strtok_r(NULL, " \t", &rest)))
        s = set_word(p, word, err);
    if (s == XM_OK)
        s = check(p, err);
    if (s != XM_OK)
        xm_error_prefix(err, "'%s'", line);
    return s;
}

enum xm_status
xm_timed_problem_parse_step(const char *line, struct xm_timed_problem *p,
                            struct xm_error *err)
{
    struct xm_strbuf whole = {0};
    xm_strbuf_printf(&whole, "%s T=1", line);
    const enum xm_status s = xm_strbuf_ok(&whole)
                                 ? xm_timed_problem_parse(xm_strbuf_text(&whole), p, err)
                                 : xm_no_memory(err, "a problem");
    xm_strbuf_free(&whole);
    snprintf(p->text, sizeof(p->text), "%s", line);
    return s;
}

/* Returns the number of weights that one token is multiplied by. */
static double
weights_per_token(const struct xm_timed_problem *p)
{
    return p->kind == XM_TIMED_MOE ? 3.0 * (double)(p->top_k * p->hidden * p->inter)
                                   : (double)(p->rows * p->cols);
}

/* Returns the keys that all tokens attend to, summed over the tokens (causal). */
static double
keys_seen(const struct xm_timed_problem *p)
{
    return (double)p->tokens * ((double)p->past + ((double)p->tokens + 1) / 2);
}

double
xm_timed_problem_flops(const struct xm_timed_problem *p)
{
    if (p->kind == XM_TIMED_ATTENTION)
        return 4.0 * keys_seen(p) * (double)(p->heads_q * p->head);
    return 2.0 * weights_per_token(p) * (double)p->tokens;
}

double
xm_timed_problem_bytes(const struct xm_timed_problem *p)
{
    const struct xm_weight_format_info *f = &xm_weight_formats[p->format];
    double bits = xm_element_bits(p->weight), reads = 1;
    if (p->kind == XM_TIMED_ATTENTION)
        return 2.0 * (double)((p->past + p->tokens) * p->heads_kv *
                              xm_attention_row_bytes(p->weight, (uint32_t)p->head));
    if (p->format != XM_WEIGHT_ELEMENTS)
        bits = 8.0 * f->block_bytes / f->block_cols;
    /* each group has an f16 scale and a zero point of the weight's type */
    if (p->group)
        bits += (16 + bits) / (double)p->group;
    if (p->kind == XM_TIMED_MOE) {
        double slots = (double)(p->tokens * p->top_k), all = (double)p->experts;
        reads = (slots < all ? slots : all) / (double)p->top_k;
    }
    return reads * weights_per_token(p) * bits / 8;
}

/* ---- steps ---------------------------------------------------------------------------- */

static const struct xm_timed_step steps[] = {
    {XM_TIMED_LINEAR, 1, "linear_few"},
    {XM_TIMED_LINEAR, 64, "linear_many"},
    {XM_TIMED_LINEAR, 512, "linear_long"},
    {XM_TIMED_MOE, 1, "moe_gate_up"},
    {XM_TIMED_MOE, 1, "moe_down", .is_down = true},
    {XM_TIMED_MOE, 512, "moe_gemm_gate_up",
     .followers = {{"moe_gather"}, {"moe_gemm_down", .is_down = true}}},
    {XM_TIMED_ATTENTION, 1, "attention_decode"},
    {XM_TIMED_ATTENTION, 512, "attention_prompt"},
};

const struct xm_timed_step *
xm_timed_steps(size_t *n)
{
    *n = XM_ARRAY_LEN(steps);
    return steps;
}

const struct xm_variant_table *
xm_timed_table(const char *step)
{
    size_t n = 0;
    const struct xm_variant_table *all = xm_variant_tables(&n);
    while (n > 0 && strcmp(all[n - 1].step, step) != 0)
        n--;
    return n > 0 ? &all[n - 1] : NULL;
}

static struct xm_problem_class
product_class(const struct xm_timed_problem *p, bool is_down)
{
    const bool is_moe = p->kind == XM_TIMED_MOE;
    const struct xm_weight w = {.format = p->format,
                                .element = p->weight,
                                .group = p->group,
                                .experts = is_moe ? p->experts : 1,
                                .rows = !is_moe   ? p->rows
                                        : is_down ? p->hidden
                                                  : p->inter,
                                .cols = !is_moe   ? p->cols
                                        : is_down ? p->inter
                                                  : p->hidden};
    return xm_product_class(
        &(struct xm_product){.weights = xm_one_weight(&w), .src = p->activations});
}

struct xm_problem_class
xm_timed_class(const struct xm_timed_problem *p, bool is_down)
{
    const struct xm_attention_desc desc = {.heads_q = (uint32_t)p->heads_q,
                                           .heads_kv = (uint32_t)p->heads_kv,
                                           .d = (uint32_t)p->head,
                                           .dv = (uint32_t)p->head,
                                           .element = p->activations,
                                           .k_cache = p->weight,
                                           .v_cache = p->weight};
    return p->kind == XM_TIMED_ATTENTION ? xm_attention_class(&desc)
                                         : product_class(p, is_down);
}
