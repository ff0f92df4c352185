/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/hyper_parameters.h"

#include <stddef.h>

#include "runtime/util/json.h"
#include "runtime/util/strbuf.h"
#include "runtime/util/utf8.h"

enum { MAX_NAMES = 4 };

/* clang-format off */
#define AT(member) offsetof(struct xm_hyper_parameters, member)
static const struct {
    size_t offset;
    const char *names[MAX_NAMES]; /* the first one present is used */
} rows[] = {
    { AT(context),      { "max_position_embeddings", "n_positions", "max_seq_len", "seq_length" } },
    { AT(layers),       { "num_hidden_layers", "n_layer", "num_layers" } },
    { AT(hidden),       { "hidden_size", "n_embd", "d_model" } },
    { AT(heads),        { "num_attention_heads", "n_head" } },
    { AT(kv_heads),     { "num_key_value_heads" } },
    { AT(head_size),    { "head_dim" } },
    { AT(vocabulary),   { "vocab_size" } },
    { AT(experts),      { "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts" } },
    { AT(top_k),        { "num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_top_k" } },
    { AT(expert_width), { "moe_intermediate_size" } },
    { AT(window),       { "sliding_window" } },
};
#undef AT
/* clang-format on */

static const char *const text_objects[] = {"text_config", "llm_config",
                                           "language_config"};

/* Returns a positive whole number; 0: it is not one. Some tools write 4096 as 4096.0. */
static uint32_t
positive(yyjson_val *value)
{
    double n = yyjson_is_num(value) ? yyjson_get_num(value) : 0.0;
    return n >= 1.0 && n <= INT32_MAX && n == (double)(uint32_t)n ? (uint32_t)n : 0;
}

static void
load_numbers(yyjson_val *object, struct xm_hyper_parameters *out)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        uint32_t *number = (uint32_t *)(void *)((char *)out + rows[i].offset);
        for (size_t k = 0; k < MAX_NAMES && rows[i].names[k] && *number == 0; k++)
            *number = positive(yyjson_obj_get(object, rows[i].names[k]));
    }
}

static void
load_text(yyjson_val *value, char *out, size_t out_bytes)
{
    if (yyjson_is_str(value) && !out[0])
        xm_utf8_show(xm_slice_of(yyjson_get_str(value), yyjson_get_len(value)), out,
                     out_bytes);
}

static void
load(yyjson_val *root, struct xm_hyper_parameters *out)
{
    yyjson_val *sliding = yyjson_obj_get(root, "use_sliding_window");
    for (size_t i = 0; i < XM_ARRAY_LEN(text_objects); i++)
        load_numbers(yyjson_obj_get(root, text_objects[i]), out);
    load_numbers(root, out);
    if (yyjson_is_false(sliding))
        out->window = 0;
    load_text(yyjson_obj_get(root, "model_type"), out->model_type,
              sizeof(out->model_type));
    load_text(yyjson_arr_get_first(yyjson_obj_get(root, "architectures")),
              out->architecture, sizeof(out->architecture));
}

enum xm_status
xm_hyper_parameters_load(const char *folder, struct xm_hyper_parameters *out,
                         struct xm_error *err)
{
    struct xm_strbuf path = {0};
    yyjson_doc *doc = NULL;
    *out = (struct xm_hyper_parameters){0};
    xm_strbuf_printf(&path, "%s/config.json", folder);
    enum xm_status s = xm_strbuf_ok(&path)
                           ? xm_json_read(xm_strbuf_text(&path), &doc, err)
                           : xm_no_memory(err, "a path");
    if (s == XM_OK && !yyjson_is_obj(yyjson_doc_get_root(doc)))
        s = xm_fail(err, XM_INVALID, "'%s': not an object", xm_strbuf_text(&path));
    if (s == XM_OK)
        load(yyjson_doc_get_root(doc), out);
    yyjson_doc_free(doc);
    xm_strbuf_free(&path);
    return s;
}
