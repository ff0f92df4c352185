/* SPDX-License-Identifier: Apache-2.0
 *
 * embedding: rows of a weight, dequantised as they are read.
 */
#include "primitives/gather/gather.h"
#include "primitives/stage.h"
#include "primitives/tables.h"
#include "runtime/kernel_defines.h"

/* clang-format off */
static const struct xm_variant embedding_variants[] = {
    {"embedding_vec", XM_FAMILY_VEC, 0, NULL, {XM_SPAN, 0, {XM_TOKENS}}},
    {"embedding_gen", XM_FAMILY_GEN, 0, NULL, {XM_GROUP, XM_GROUP_ITEMS, {XM_TOKENS}}},
    {"embedding_ref", XM_FAMILY_ANY, 0, NULL, {XM_ITEM, 0, {XM_ELEMENTS}}},
};
/* clang-format on */
const struct xm_variant_table xm_embedding_table = {"embedding", embedding_variants,
                                                    XM_ARRAY_LEN(embedding_variants)};

struct embedding {
    struct xm_staged base;
    struct xm_embedding_desc desc;
};

static enum xm_status
run(const struct xm_primitive *p, const struct xm_operand *operands,
    const struct xm_run *run, struct xm_error *err)
{
    const struct embedding *s = (const struct embedding *)p;
    const struct xm_operand *ids = &operands[XM_EMBEDDING_IDS];
    const struct xm_operand *y = &operands[XM_EMBEDDING_Y];
    const struct xm_weight *w = &s->desc.weight->host;
    XM_TRY(xm_operand_check(ids, "ids", s->desc.ids, err));
    XM_TRY(xm_operand_check(y, "y", s->desc.dst, err));
    uint64_t tokens = xm_operand_elements(ids);
    if (xm_operand_elements(y) != tokens * w->cols)
        return xm_fail(err, XM_INVALID,
                       "y has %llu elements for %llu ids of %llu columns",
                       (unsigned long long)xm_operand_elements(y),
                       (unsigned long long)tokens, (unsigned long long)w->cols);
    const struct xm_counts counts = {
        .n = {[XM_TOKENS] = tokens, [XM_ELEMENTS] = tokens * w->cols}};
    struct xm_args args = {.n = 0};
    xm_put_buffer(&args, "ids", ids->buffer);
    xm_put_weight(&args, "w", s->desc.weight);
    xm_put_buffer(&args, "y", y->buffer);
    xm_put_ulong(&args, "tokens", tokens);
    xm_put_uint(&args, "rows", w->rows);
    xm_put_uint(&args, "cols", w->cols);
    return xm_stage_run(&s->base.stage, NULL, &counts, &args, run, err);
}

static void
destroy(struct xm_primitive *p)
{
    xm_device_weight_unref(((struct embedding *)p)->desc.weight);
    xm_primitive_free(p);
}

static const struct xm_primitive_ops ops = {"embedding", NULL, run, xm_staged_describe,
                                            destroy};

enum xm_status
xm_embedding_create(struct xm_engine *engine, const struct xm_embedding_desc *desc,
                    struct xm_primitive **out, struct xm_error *err)
{
    char format[XM_WEIGHT_DEFINES], defines[XM_STAGE_DEFINES];
    const char *why = xm_weight_unreadable(&desc->weight->host);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED, "embedding: %s", why);
    struct embedding *s = xm_primitive_new(sizeof(*s), &ops, engine, err);
    if (!s)
        return XM_NO_MEMORY;
    s->desc = *desc;
    xm_device_weight_ref(desc->weight);
    xm_weight_defines(xm_one_weight(&desc->weight->host), format, sizeof(format));
    xm_defines_print(defines, sizeof(defines), "%s -DIDS=%s -DDST=%s", format,
                     xm_element_text(desc->ids), xm_element_text(desc->dst));
    return xm_staged_build(&s->base, &xm_embedding_table, defines, out, err);
}
