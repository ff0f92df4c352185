/* SPDX-License-Identifier: Apache-2.0
 *
 * embedding: rows of a weight, dequantised as they are read.
 */
#include "primitives/gather/gather.h"
#include "primitives/stage.h"
#include "primitives/tables.h"

/* clang-format off */
static const struct xm_variant rows[] = {
    {"embedding_vec", XM_FAMILY_VEC, 0, NULL, {XM_SPAN, 0, {XM_TOKENS}}},
    {"embedding_gen", XM_FAMILY_GEN, 0, NULL, {XM_GROUP, XM_GROUP_ITEMS, {XM_TOKENS}}},
    {"embedding_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_ELEMENTS}}},
};
/* clang-format on */
const struct xm_variant_table xm_embedding_table = XM_TABLE("embedding", rows);

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *operands,
    const struct xm_run *run, struct xm_error *err)
{
    const struct xm_staged *s = (const struct xm_staged *)p;
    const struct xm_embedding_desc *d = s->desc;
    const struct xm_operand *ids = &operands[XM_EMBEDDING_IDS];
    const struct xm_operand *y = &operands[XM_EMBEDDING_Y];
    const struct xm_weight *w = &d->weight->host;
    XM_TRY(xm_operand_check(ids, "ids", d->ids, err));
    XM_TRY(xm_operand_check(y, "y", d->dst, err));
    uint64_t tokens = xm_operand_elements(ids);
    XM_TRY(xm_operand_check_elements(y, "y", tokens * w->cols, err));
    const struct xm_counts counts = {
        .n = {[XM_TOKENS] = tokens, [XM_ELEMENTS] = tokens * w->cols}};
    struct xm_args args = {.n = 0};
    xm_put_buffer(&args, "ids", ids->buffer);
    xm_put_weight(&args, "w", d->weight);
    xm_put_buffer(&args, "y", y->buffer);
    xm_put_ulong(&args, "tokens", tokens);
    xm_put_uint(&args, "rows", w->rows);
    xm_put_uint(&args, "cols", w->cols);
    return xm_stage_run(&s->stage, NULL, &counts, &args, run, err);
}

static void
destroy(struct xm_primitive *p)
{
    const struct xm_embedding_desc *d = ((struct xm_staged *)p)->desc;
    xm_device_weight_unref(d->weight);
    xm_primitive_free(p);
}

static const struct xm_staged_kind kind = {
    {"embedding", NULL, run, xm_staged_describe, destroy, XM_ROLES(xm_roles_1_1)},
    &xm_embedding_table,
    sizeof(struct xm_embedding_desc)};

enum xm_status
xm_embedding_create(struct xm_engine *engine, const struct xm_embedding_desc *desc,
                    struct xm_primitive **out, struct xm_error *err)
{
    char format[XM_WEIGHT_DEFINES];
    const char *why = xm_weight_unreadable(&desc->weight->host);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "embedding: %s", why);
    xm_weight_defines(xm_one_weight(&desc->weight->host), format, sizeof(format));
    XM_TRY(xm_staged_create(&kind, engine, desc, out, err, "%s -DIDS=%s -DDST=%s", format,
                            xm_element_text(desc->ids), xm_element_text(desc->dst)));
    xm_device_weight_ref(desc->weight);
    return XM_OK;
}
