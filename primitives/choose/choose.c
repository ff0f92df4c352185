/* SPDX-License-Identifier: Apache-2.0
 *
 * choose: one launch over parts of the logit rows, and one that takes a token from each row.
 */
#include "primitives/choose/choose.h"

#include <stdio.h>
#include <string.h>

#include "primitives/stage.h"
#include "primitives/tables.h"

enum { BEST, TAKE, STAGES };
enum { TAKE_ITEMS = 256 }; /* kernels/cl/choose_take_gen.cl */

/* clang-format off */
static const struct xm_variant best_rows[] = {
    {"choose_best_vec", XM_FAMILY_VEC, 0, NULL, {XM_SPAN, 0, {XM_UNITS}, {XM_TOKENS, 1}}},
    {"choose_best_gen", XM_FAMILY_GEN, 0, NULL,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_UNITS}, {XM_TOKENS, 1}}},
    {"choose_best_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_UNITS}, {XM_TOKENS, 1}}},
};
static const struct xm_variant take_rows[] = {
    {"choose_take_gen", XM_FAMILY_GEN, 0, NULL, {XM_GROUP, TAKE_ITEMS, {XM_TOKENS}}},
    {"choose_take_ref", XM_FAMILY_ANY, 0, NULL, {XM_ALONE, 0, {XM_TOKENS}}},
};
/* clang-format on */
const struct xm_variant_table xm_choose_tables[XM_CHOOSE_N_TABLES] = {
    XM_TABLE("choose_best", best_rows), XM_TABLE("choose_take", take_rows)};

/* Counts of a token, as kernels read them (kernels/cl/include/choose.h): how often it is in the
 * penalties' window, and how often of that presence and frequency penalties count. Bit BARRED of
 * `count`: the token must not be chosen. */
struct seen {
    uint32_t count, fresh;
};
#define BARRED (UINT32_C(1) << 31)

struct choose {
    struct xm_primitive base; /* first */
    struct xm_choose_desc desc;
    struct xm_stage stage[STAGES];
};

static uint64_t
n_parts(uint64_t vocabulary)
{
    return (vocabulary + XM_CHOOSE_PART - 1) / XM_CHOOSE_PART;
}

uint64_t
xm_choose_parts_bytes(uint64_t vocabulary)
{
    return 2 * sizeof(uint64_t) * n_parts(vocabulary);
}

uint64_t
xm_choose_seen_bytes(uint64_t vocabulary, uint32_t window)
{
    const uint64_t ring = window * sizeof(int32_t);
    return vocabulary * sizeof(struct seen) + xm_align_up(ring, sizeof(struct seen));
}

void
xm_choose_add(struct xm_choose_desc *desc, const struct xm_token_choice *how)
{
    desc->draws |= how->draws > 0;
    desc->top_k |= how->top_k > 0;
    desc->top_p |= how->draws && how->top_p >> 32 == 0;
    desc->adjusts |= how->adjusts > 0;
}

bool
xm_choose_is_fast(const struct xm_engine *engine)
{
    struct xm_pick pick = {.table = &xm_choose_tables[TAKE]};
    struct xm_error ignored = {0};
    size_t row;
    return xm_variant_prepare(&pick, engine, &ignored) == XM_OK &&
           xm_variant_pick(&pick, xm_engine_info(engine), NULL, &row, &ignored) ==
               XM_OK &&
           (pick.forced.has_row || row + 1 < pick.table->n);
}

void
xm_choose_fill_seen(void *zeros, uint64_t vocabulary, const struct xm_token_choice *how,
                    const struct xm_seen_tokens *tokens)
{
    struct seen *list = zeros;
    for (size_t i = 0; i < tokens->n; i++) {
        const struct xm_token_count *c = &tokens->counts[i];
        list[c->id] = (struct seen){c->count, c->count - c->before};
    }
    for (size_t i = 0; i < tokens->n_barred; i++)
        if (tokens->barred[i] >= 0 && (uint64_t)tokens->barred[i] < vocabulary)
            list[tokens->barred[i]].count |= BARRED;
    if (how->in_window)
        memcpy(list + vocabulary, tokens->ring, how->in_window * sizeof(*tokens->ring));
}

/* Checks the operands; sets the rows of logits, their length, and the bytes of one text in
 * XM_CHOOSE_SEEN (0: no text adjusts). */
static enum xm_status
check(const struct choose *c, const struct xm_operand *o, uint64_t *texts, uint64_t *n,
      uint64_t *seen_bytes, struct xm_error *err)
{
    const struct xm_operand *logits = &o[XM_CHOOSE_LOGITS], *seen = &o[XM_CHOOSE_SEEN];
    XM_TRY(xm_operand_check(logits, "logits", XM_F32, err));
    *texts = xm_operand_rows(logits);
    *n = *texts ? xm_operand_elements(logits) / *texts : 0;
    if (*n == 0)
        return xm_fail(err, XM_INVALID,
                       "there are no logits from which to choose a token");
    XM_TRY(xm_operand_check(&o[XM_CHOOSE_IDS], "ids", c->desc.ids, err));
    XM_TRY(xm_operand_check_elements(&o[XM_CHOOSE_IDS], "ids", *texts, err));
    XM_TRY(xm_operand_check(&o[XM_CHOOSE_PAST], "past", XM_I32, err));
    XM_TRY(xm_operand_check_elements(&o[XM_CHOOSE_PAST], "past", *texts, err));
    XM_TRY(xm_operand_check_rows(&o[XM_CHOOSE_STATE], "state", XM_U8, *texts,
                                 sizeof(struct xm_token_choice), err));
    XM_TRY(xm_operand_check_rows(&o[XM_CHOOSE_PARTS], "parts", XM_U8, *texts,
                                 xm_choose_parts_bytes(*n), err));
    XM_TRY(xm_operand_check_rows(&o[XM_CHOOSE_CHOSEN], "chosen", XM_I32, *texts,
                                 XM_CHOOSE_SLOTS, err));
    *seen_bytes = 0;
    if (!c->desc.adjusts)
        return XM_OK;
    *seen_bytes = xm_operand_elements(seen) / *texts;
    XM_TRY(xm_operand_check_rows(seen, "seen", XM_U8, *texts, *seen_bytes, err));
    return *seen_bytes >= xm_choose_seen_bytes(*n, 0) &&
                   *seen_bytes % sizeof(struct seen) == 0
               ? XM_OK
               : xm_fail(err, XM_INVALID,
                         "the buffer for the counts of tokens is too small");
}

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *o, const struct xm_run *run,
    struct xm_error *err)
{
    const struct choose *c = (const struct choose *)p;
    const struct xm_operand *logits = &o[XM_CHOOSE_LOGITS];
    uint64_t texts, n, seen_bytes;
    XM_TRY(check(c, o, &texts, &n, &seen_bytes, err));
    const struct xm_counts counts = {.n = {[XM_UNITS] = n_parts(n), [XM_TOKENS] = texts}};
    struct xm_args best = {.n = 0}, take = {.n = 0};
    xm_put_buffer(&best, "logits", logits->buffer);
    xm_put_buffer(&best, "parts", o[XM_CHOOSE_PARTS].buffer);
    xm_put_buffer(&best, "seen", o[XM_CHOOSE_SEEN].buffer);
    xm_put_buffer(&best, "state", o[XM_CHOOSE_STATE].buffer);
    xm_put_uint(&best, "n", n);
    xm_put_uint(&best, "seen_stride", seen_bytes / sizeof(struct seen));
    xm_put_buffer(&take, "logits", logits->buffer);
    xm_put_buffer(&take, "parts", o[XM_CHOOSE_PARTS].buffer);
    xm_put_buffer(&take, "state", o[XM_CHOOSE_STATE].buffer);
    xm_put_buffer(&take, "seen", o[XM_CHOOSE_SEEN].buffer);
    xm_put_buffer(&take, "chosen", o[XM_CHOOSE_CHOSEN].buffer);
    xm_put_buffer(&take, "ids", o[XM_CHOOSE_IDS].buffer);
    xm_put_buffer(&take, "position", o[XM_CHOOSE_POSITION].buffer);
    xm_put_buffer(&take, "past", o[XM_CHOOSE_PAST].buffer);
    xm_put_uint(&take, "n", n);
    xm_put_uint(&take, "seen_stride", seen_bytes / sizeof(struct seen));
    XM_TRY(xm_stage_run(&c->stage[BEST], NULL, &counts, &best, run, err));
    return xm_stage_run(&c->stage[TAKE], NULL, &counts, &take, run, err);
}

static void
describe(const struct xm_primitive *p, const struct xm_operand *operands, char *out,
         size_t out_bytes)
{
    const struct choose *c = (const struct choose *)p;
    (void)operands;
    snprintf(out, out_bytes, "%s %s", xm_stage_describe(&c->stage[BEST], NULL),
             xm_stage_describe(&c->stage[TAKE], NULL));
}

static const uint8_t roles[XM_CHOOSE_N_OPERANDS] = {
    [XM_CHOOSE_LOGITS] = XM_ROLE_IN_OUT,   [XM_CHOOSE_STATE] = XM_ROLE_IN_OUT,
    [XM_CHOOSE_SEEN] = XM_ROLE_IN_OUT,     [XM_CHOOSE_PARTS] = XM_ROLE_OUT,
    [XM_CHOOSE_CHOSEN] = XM_ROLE_OUT,      [XM_CHOOSE_IDS] = XM_ROLE_OUT,
    [XM_CHOOSE_POSITION] = XM_ROLE_IN_OUT, [XM_CHOOSE_PAST] = XM_ROLE_IN_OUT,
};
static const struct xm_primitive_ops ops = {
    "choose", NULL, run, describe, xm_primitive_free, XM_ROLES(roles)};

enum xm_status
xm_choose_create(struct xm_engine *engine, const struct xm_choose_desc *desc,
                 struct xm_primitive **out, struct xm_error *err)
{
    char defines[96], adjusts[16];
    struct choose *c = xm_primitive_new(sizeof(*c), &ops, engine, err);
    if (!c)
        return XM_NO_MEMORY;
    c->desc = *desc;
    snprintf(adjusts, sizeof(adjusts), "-DADJUSTS=%d", desc->adjusts);
    snprintf(defines, sizeof(defines),
             "%s -DIDS=%s -DPOSITIONS=%s -DDRAWS=%d -DTOP_K=%d -DTOP_P=%d", adjusts,
             xm_element_text(desc->ids), xm_element_text(desc->position), desc->draws,
             desc->top_k, desc->top_p);
    enum xm_status s = XM_OK;
    for (int i = 0; i < STAGES && s == XM_OK; i++)
        s = xm_stage_build_for(&c->stage[i], engine, &xm_choose_tables[i], &c->desc,
                               i == TAKE ? defines : adjusts, err);
    if (s != XM_OK) {
        xm_primitive_free(&c->base);
        return s;
    }
    *out = &c->base;
    return XM_OK;
}
