/* SPDX-License-Identifier: Apache-2.0
 *
 * Problem lines: words NAME=number, an element of the weight, gGROUP, or a format of blocks, an
 * element of the activations.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plugin/bench_kernels/bench.h"
#include "plugin/program_util/command_line.h"
#include "primitives/attention/attention.h"

static bool
set_number(struct problem *p, const char *word)
{
    bool moe = p->kind == BENCH_MOE;
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
        return xm_cli_whole(word + n, numbers[i].to) && *numbers[i].to <= INT32_MAX;
    }
    return false;
}

static bool
set_format(struct problem *p, const char *word)
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
set_word(struct problem *p, const char *word, struct xm_error *err)
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
check(const struct problem *p, struct xm_error *err)
{
    bool moe = p->kind == BENCH_MOE;
    bool sizes = moe ? p->experts && p->top_k && p->hidden && p->inter
                 : p->kind == BENCH_LINEAR ? p->rows && p->cols
                                           : p->heads_q && p->heads_kv && p->head;
    uint64_t cols = moe ? p->hidden : p->cols;
    if (!sizes || !p->tokens)
        return xm_fail(err, XM_INVALID, "a size is missing");
    if (p->weight == XM_DYNAMIC || p->activations == XM_DYNAMIC)
        return xm_fail(err, XM_INVALID,
                       "expected element types of weight and activations");
    uint64_t unit = p->group ? p->group : xm_weight_formats[p->format].block_cols;
    if (cols % unit || (moe && p->inter % unit))
        return xm_fail(err, XM_INVALID, "the group does not divide the columns");
    if (moe && p->top_k > p->experts)
        return xm_fail(err, XM_INVALID, "K is above E");
    return XM_OK;
}

enum xm_status
xm_bench_problem_parse(const char *line, struct problem *p, struct xm_error *err)
{
    char words[sizeof(p->text)];
    *p = (struct problem){.weight = XM_DYNAMIC, .activations = XM_DYNAMIC};
    snprintf(p->text, sizeof(p->text), "%s", line);
    memcpy(words, p->text, sizeof(words));
    char *rest = NULL, *word = strtok_r(words, " \t", &rest);
    static const char *const kinds[] = {
        [BENCH_LINEAR] = "linear", [BENCH_MOE] = "moe", [BENCH_ATTENTION] = "attention"};
    size_t kind = 0;
    while (word && kind < XM_ARRAY_LEN(kinds) && strcmp(word, kinds[kind]) != 0)
        kind++;
    if (!word || kind == XM_ARRAY_LEN(kinds))
        return xm_fail(err, XM_INVALID, "'%s': expected linear, moe or attention", line);
    p->kind = (enum kind)kind;
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
xm_bench_problems_read(FILE *file, const char *name, xm_bench_line_fn take, void *ctx,
                       struct xm_error *err)
{
    struct problem p;
    char line[sizeof(p.text) + 128];
    for (size_t number = 1; fgets(line, sizeof(line), file); number++) {
        const bool whole = strchr(line, '\n') || feof(file);
        line[strcspn(line, "#\r\n")] = 0;
        enum xm_status s =
            whole && strlen(line) < sizeof(p.text)
                ? take(ctx, line, err)
                : xm_fail(err, XM_INVALID, "the line has more than %zu bytes",
                          sizeof(p.text) - 1);
        if (s != XM_OK) {
            xm_error_prefix(err, "'%.150s', line %zu", name, number);
            return s;
        }
    }
    return ferror(file)
               ? xm_fail(err, XM_IO, "'%.150s' cannot be read: %s", name, strerror(errno))
               : XM_OK;
}

/* Weights that one token meets. */
static double
weights_per_token(const struct problem *p)
{
    return p->kind == BENCH_MOE ? 3.0 * (double)(p->top_k * p->hidden * p->inter)
                                : (double)(p->rows * p->cols);
}

/* Keys that the tokens of attention see, all together. */
static double
keys_seen(const struct problem *p)
{
    return (double)p->tokens * ((double)p->past + ((double)p->tokens + 1) / 2);
}

double
xm_bench_problem_flops(const struct problem *p)
{
    if (p->kind == BENCH_ATTENTION)
        return 4.0 * keys_seen(p) * (double)(p->heads_q * p->head);
    return 2.0 * weights_per_token(p) * (double)p->tokens;
}

double
xm_bench_problem_bytes(const struct problem *p)
{
    const struct xm_weight_format_info *f = &xm_weight_formats[p->format];
    double bits = xm_element_bits(p->weight), reads = 1;
    if (p->kind == BENCH_ATTENTION)
        return 2.0 * (double)((p->past + p->tokens) * p->heads_kv *
                              xm_attention_row_bytes(p->weight, (uint32_t)p->head));
    if (p->format != XM_WEIGHT_ELEMENTS)
        bits = 8.0 * f->block_bytes / f->block_cols;
    if (p->group) /* a scale of f16 and a zero point of the weight's type */
        bits += (16 + bits) / (double)p->group;
    if (p->kind == BENCH_MOE) {
        double slots = (double)(p->tokens * p->top_k), all = (double)p->experts;
        reads = (slots < all ? slots : all) / (double)p->top_k;
    }
    return reads * weights_per_token(p) * bits / 8;
}
