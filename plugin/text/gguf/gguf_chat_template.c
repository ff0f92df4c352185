/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/gguf/gguf_parts.h"
#include "runtime/util/json.h"

static const char *const template_keys[] = {"tokenizer.chat_template",
                                            "tokenizer.chat_template.default"};

/* Sets *out to the text of token `id`, which points into the file. */
static enum xm_status
text_of(const struct xm_gguf *g, int32_t id, struct xm_slice *out, struct xm_error *err)
{
    struct xm_gguf_values tokens;
    XM_TRY(xm_gguf_tokens(g, &tokens, err));
    for (int32_t i = 0; i <= id; i++)
        XM_TRY(xm_gguf_next_text(&tokens, out, err));
    return XM_OK;
}

/* Makes the root {"bos_token": "<s>", …} with the special tokens that the file has. */
static enum xm_status
add_tokens(const struct xm_gguf *g, yyjson_mut_doc *doc, struct xm_error *err)
{
    struct xm_gguf_special special;
    XM_TRY(xm_gguf_find_special(g, &special, err));
    const struct {
        const char *name;
        int32_t id;
    } tokens[] = {{"bos_token", special.bos},
                  {"eos_token", special.eos},
                  {"unk_token", special.unk},
                  {"pad_token", special.pad}};
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    for (size_t i = 0; i < XM_ARRAY_LEN(tokens); i++) {
        struct xm_slice text = {0};
        if (tokens[i].id < 0)
            continue;
        XM_TRY(text_of(g, tokens[i].id, &text, err));
        if (!yyjson_mut_obj_add_strn(doc, root, tokens[i].name, text.text, text.n))
            return xm_no_memory(err, "special tokens");
    }
    return XM_OK;
}

static enum xm_status
set_tokens(const struct xm_gguf *g, struct xm_chat_template *tmpl, struct xm_error *err)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(&xm_json_allocator);
    yyjson_doc *tokens = NULL;
    enum xm_status s = doc ? add_tokens(g, doc, err) : XM_NO_MEMORY;
    if (s == XM_OK) {
        tokens = yyjson_mut_doc_imut_copy(doc, &xm_json_allocator);
        s = tokens ? XM_OK : XM_NO_MEMORY;
    }
    yyjson_mut_doc_free(doc);
    xm_chat_template_set_tokens(tmpl, tokens);
    return s == XM_NO_MEMORY ? xm_fail(err, s, "out of memory for special tokens") : s;
}

static enum xm_status
load(const struct xm_gguf *g, const char *key, struct xm_chat_template **out,
     struct xm_error *err)
{
    struct xm_slice text = {0};
    XM_TRY(xm_gguf_text(g, key, &text, err));
    const enum xm_status s = xm_chat_template_parse(text.text, text.n, out, err);
    if (s != XM_OK)
        xm_error_prefix(err, "key '%s'", key);
    return s;
}

static enum xm_status
add_file_tokens(const struct xm_gguf *g, enum xm_status found,
                struct xm_chat_template **tmpl, struct xm_error *err)
{
    if (found != XM_OK)
        return found;
    const enum xm_status s = set_tokens(g, *tmpl, err);
    if (s != XM_OK) {
        xm_chat_template_free(*tmpl);
        *tmpl = NULL;
    }
    return s;
}

enum xm_status
xm_gguf_chat_template(const struct xm_gguf *g, struct xm_chat_template **out,
                      struct xm_error *err)
{
    *out = NULL;
    size_t i = 0;
    while (i < XM_ARRAY_LEN(template_keys) && !xm_gguf_has(g, template_keys[i]))
        i++;
    if (i == XM_ARRAY_LEN(template_keys))
        return xm_fail(err, XM_NOT_FOUND,
                       "there is no chat template: key '%s' is missing",
                       template_keys[0]);
    return add_file_tokens(g, load(g, template_keys[i], out, err), out, err);
}

enum xm_status
xm_gguf_chat_template_with(const struct xm_gguf *g, const char *text, size_t n,
                           struct xm_chat_template **out, struct xm_error *err)
{
    return add_file_tokens(g, xm_chat_template_parse(text, n, out, err), out, err);
}
