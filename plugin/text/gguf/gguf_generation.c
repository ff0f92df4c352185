/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "plugin/text/gguf/gguf_parts.h"

/* ---- ids ----------------------------------------------------------------------------- */

static void
add_end(struct xm_generation_config *c, int32_t id)
{
    if (id >= 0 && !xm_generation_config_is_eos(c, id))
        c->eos[c->n_eos++] = id;
}

/* ---- recommendations ----------------------------------------------------------------- */

/* clang-format off */
#define AT(member) offsetof(struct xm_sampling, member)
static const struct {
    const char *key;
    size_t offset; /* of a float */
    float least, most;
} numbers[] = {
    { "general.sampling.temp",           AT(temperature),        0.0f,  1e6f },
    { "general.sampling.top_p",          AT(top_p),              0.0f,  1.0f },
    { "general.sampling.min_p",          AT(min_p),              0.0f,  1.0f },
    { "general.sampling.penalty_repeat", AT(repetition_penalty), 1e-6f, 1e6f },
};
#undef AT
/* clang-format on */
static const char top_k_key[] = "general.sampling.top_k";

static bool
recommends(const struct xm_gguf *g)
{
    bool any = xm_gguf_has(g, top_k_key);
    for (size_t i = 0; i < XM_ARRAY_LEN(numbers); i++)
        any = any || xm_gguf_has(g, numbers[i].key);
    return any;
}

/* What is no number in its range is not said. */
static void
load_sampling(const struct xm_gguf *g, struct xm_sampling *out)
{
    uint32_t top_k = 0;
    out->temperature = 1.0f;
    for (size_t i = 0; i < XM_ARRAY_LEN(numbers); i++) {
        float x = 0.0f;
        if (xm_gguf_f32(g, numbers[i].key, &x, NULL) == XM_OK && x >= numbers[i].least &&
            x <= numbers[i].most)
            *(float *)(void *)((char *)out + numbers[i].offset) = x;
    }
    if (xm_gguf_u32(g, top_k_key, &top_k, NULL) == XM_OK && top_k <= INT32_MAX)
        out->top_k = (int)top_k;
}

/* ---- ids that are never chosen -------------------------------------------------------- */

/* Ids that no token can have are none. */
static enum xm_status
load_suppressed(const struct xm_gguf *g, struct xm_token_list *out, struct xm_error *err)
{
    static const char key[] = "tokenizer.ggml.suppress_tokens";
    struct xm_gguf_values list;
    if (!xm_gguf_has(g, key))
        return XM_OK;
    XM_TRY(xm_gguf_list(g, key, &list, err));
    for (uint64_t i = 0; i < list.n; i++) {
        int64_t id = 0;
        XM_TRY(xm_gguf_i64_at(&list, i, &id, err));
        if (id >= 0 && id <= INT32_MAX && !xm_token_list_add(out, (int32_t)id))
            return xm_no_memory(err, "key '%s'", key);
    }
    return XM_OK;
}

enum xm_status
xm_gguf_generation(const struct xm_gguf *g, struct xm_generation_config *out,
                   struct xm_error *err)
{
    struct xm_gguf_special special;
    xm_generation_config_init(out);
    if (recommends(g))
        load_sampling(g, &out->sampling);
    XM_TRY(load_suppressed(g, &out->suppressed, err));
    if (!xm_gguf_has(g, "tokenizer.ggml.model"))
        return XM_OK;
    XM_TRY(xm_gguf_find_special(g, &special, err));
    add_end(out, special.eos);
    add_end(out, special.eot);
    add_end(out, special.eom);
    out->bos = special.bos;
    out->pad = special.pad;
    return XM_OK;
}
