/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `types` has one row for each kind of normalizer. Not supported: Nmt, which only other
 * kinds of models use.
 */
#include "plugin/text/normalizer.h"

#include "plugin/text/byte_level.h"
#include "plugin/text/component.h"
#include "plugin/text/unicode_form.h"
#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

struct xm_normalizer_type {
    const char *name;
    /* Reads the object's other members; NULL: it has none. */
    enum xm_status (*load)(yyjson_val *value, struct xm_normalizer_step *step,
                           struct xm_error *err);
    enum xm_status (*run)(const struct xm_normalizer_step *step, struct xm_slice text,
                          struct xm_strbuf *out, struct xm_error *err);
    enum xm_unicode_form form; /* used by run_form only */
};

enum xm_status
xm_pattern_load(yyjson_val *object, const char *key, struct xm_regex **out,
                struct xm_error *err)
{
    yyjson_val *pattern;
    struct xm_slice text = {0}, regex = {0};
    XM_TRY(xm_json_object(object, key, &pattern, err));
    XM_TRY(xm_json_text(pattern, "String", &text, err));
    XM_TRY(xm_json_text(pattern, "Regex", &regex, err));
    if (!text.text == !regex.text)
        return xm_fail(err, XM_INVALID, "'%s' has to have one of 'String' and 'Regex'",
                       key);
    return text.text ? xm_regex_create_literal(text, out, err)
                     : xm_regex_create(regex, out, err);
}

static enum xm_status
load_content(yyjson_val *value, const char *key, struct xm_normalizer_step *step,
             struct xm_error *err)
{
    struct xm_slice text = {0};
    XM_TRY(xm_json_text(value, key, &text, err));
    if (!text.text)
        return xm_fail(err, XM_INVALID, "'%s' is missing", key);
    step->content = xm_malloc(text.n);
    if (!step->content)
        return xm_no_memory(err, "%zu bytes", text.n);
    memcpy(step->content, text.text, text.n);
    step->content_bytes = text.n;
    return XM_OK;
}

static enum xm_status
load_replace(yyjson_val *value, struct xm_normalizer_step *step, struct xm_error *err)
{
    XM_TRY(xm_pattern_load(value, "pattern", &step->regex, err));
    return load_content(value, "content", step, err);
}

static enum xm_status
run_replace(const struct xm_normalizer_step *step, struct xm_slice text,
            struct xm_strbuf *out, struct xm_error *err)
{
    return xm_regex_replace(step->regex, text,
                            xm_slice_of(step->content, step->content_bytes), out, err);
}

static enum xm_status
load_prepend(yyjson_val *value, struct xm_normalizer_step *step, struct xm_error *err)
{
    return load_content(value, "prepend", step, err);
}

static enum xm_status
run_prepend(const struct xm_normalizer_step *step, struct xm_slice text,
            struct xm_strbuf *out, struct xm_error *err)
{
    (void)err;
    if (text.n > 0)
        xm_strbuf_add_n(out, step->content, step->content_bytes);
    xm_strbuf_add_n(out, text.text, text.n);
    return XM_OK;
}

static enum xm_status
load_strip(yyjson_val *value, struct xm_normalizer_step *step, struct xm_error *err)
{
    step->strip_left = step->strip_right = true;
    XM_TRY(xm_json_bool(value, "strip_left", &step->strip_left, err));
    return xm_json_bool(value, "strip_right", &step->strip_right, err);
}

static enum xm_status
run_strip(const struct xm_normalizer_step *step, struct xm_slice text,
          struct xm_strbuf *out, struct xm_error *err)
{
    (void)err;
    if (step->strip_left)
        text = xm_utf8_trim_left(text);
    if (step->strip_right)
        text = xm_utf8_trim_right(text);
    xm_strbuf_add_n(out, text.text, text.n);
    return XM_OK;
}

static enum xm_status
run_strip_accents(const struct xm_normalizer_step *step, struct xm_slice text,
                  struct xm_strbuf *out, struct xm_error *err)
{
    (void)step, (void)err;
    int32_t code;
    for (size_t i = 0, n; i < text.n; i += n) {
        n = xm_utf8_next(xm_slice_of(text.text + i, text.n - i), &code);
        if (!xm_utf8_is_mark(code))
            xm_strbuf_add_n(out, text.text + i, n);
    }
    return XM_OK;
}

static enum xm_status
run_lowercase(const struct xm_normalizer_step *step, struct xm_slice text,
              struct xm_strbuf *out, struct xm_error *err)
{
    (void)step, (void)err;
    int32_t code;
    for (size_t i = 0; i < text.n;) {
        i += xm_utf8_next(xm_slice_of(text.text + i, text.n - i), &code);
        xm_unicode_add_lower(code, out);
    }
    return XM_OK;
}

static enum xm_status
run_byte_level(const struct xm_normalizer_step *step, struct xm_slice text,
               struct xm_strbuf *out, struct xm_error *err)
{
    (void)step, (void)err;
    xm_byte_level_encode(text, out);
    return XM_OK;
}

static enum xm_status
run_form(const struct xm_normalizer_step *step, struct xm_slice text,
         struct xm_strbuf *out, struct xm_error *err)
{
    return xm_unicode_normalize(step->type->form, text, out, err);
}

static enum xm_status
load_precompiled(yyjson_val *value, struct xm_normalizer_step *step, struct xm_error *err)
{
    struct xm_slice base64 = {0};
    XM_TRY(xm_json_text(value, "precompiled_charsmap", &base64, err));
    return base64.n > 0 ? xm_charsmap_create(base64, &step->map, err) : XM_OK;
}

static enum xm_status
run_precompiled(const struct xm_normalizer_step *step, struct xm_slice text,
                struct xm_strbuf *out, struct xm_error *err)
{
    (void)err;
    if (step->map)
        xm_charsmap_run(step->map, text, out);
    else
        xm_strbuf_add_n(out, text.text, text.n);
    return XM_OK;
}

/* Reads a BertNormalizer. By default accents are stripped if letters are lowercased. */
static enum xm_status
load_bert(yyjson_val *value, struct xm_normalizer_step *step, struct xm_error *err)
{
    struct xm_bert_normalizer *bert = &step->bert;
    *bert = (struct xm_bert_normalizer){true, true, true, true};
    XM_TRY(xm_json_bool(value, "clean_text", &bert->clean_text, err));
    XM_TRY(xm_json_bool(value, "handle_chinese_chars", &bert->spaces_chinese, err));
    XM_TRY(xm_json_bool(value, "lowercase", &bert->lowercase, err));
    bert->strip_accents = bert->lowercase;
    return xm_json_bool(value, "strip_accents", &bert->strip_accents, err);
}

static enum xm_status
run_bert(const struct xm_normalizer_step *step, struct xm_slice text,
         struct xm_strbuf *out, struct xm_error *err)
{
    return xm_bert_normalize(&step->bert, text, out, err);
}

static const struct xm_normalizer_type types[] = {
    /* clang-format off */
    { "NFC",          NULL,         run_form,          XM_NFC  },
    { "NFD",          NULL,         run_form,          XM_NFD  },
    { "NFKC",         NULL,         run_form,          XM_NFKC },
    { "NFKD",         NULL,         run_form,          XM_NFKD },
    { "Lowercase",    NULL,         run_lowercase,     0       },
    { "Strip",        load_strip,   run_strip,         0       },
    { "StripAccents", NULL,         run_strip_accents, 0       },
    { "Replace",      load_replace, run_replace,       0       },
    { "Prepend",      load_prepend, run_prepend,       0       },
    { "ByteLevel",    NULL,         run_byte_level,    0       },
    { "Precompiled",  load_precompiled, run_precompiled, 0     },
    { "BertNormalizer", load_bert,  run_bert,          0       },
    /* clang-format on */
};

static enum xm_status
load_step(const void *type, yyjson_val *value, void *out, struct xm_error *err)
{
    struct xm_normalizer *normalizer = out;
    if (normalizer->n == XM_MAX_STEPS)
        return xm_fail(err, XM_UNSUPPORTED, "more than %d normalizers", XM_MAX_STEPS);
    struct xm_normalizer_step *step = &normalizer->steps[normalizer->n++];
    step->type = type;
    return step->type->load ? step->type->load(value, step, err) : XM_OK;
}

static const struct xm_component component = {
    .name = "normalizer",
    .list = "normalizers",
    .types = types,
    .n_types = XM_ARRAY_LEN(types),
    .type_bytes = sizeof(types[0]),
    .load = load_step,
};

enum xm_status
xm_normalizer_load(yyjson_val *value, struct xm_normalizer *out, struct xm_error *err)
{
    return xm_component_load(&component, value, out, err);
}

enum xm_status
xm_normalizer_add_map(struct xm_normalizer *normalizer, struct xm_charsmap *map,
                      struct xm_error *err)
{
    if (normalizer->n == XM_MAX_STEPS) {
        xm_charsmap_free(map);
        return xm_fail(err, XM_UNSUPPORTED, "more than %d normalizers", XM_MAX_STEPS);
    }
    normalizer->steps[normalizer->n++] = (struct xm_normalizer_step){
        .type = xm_component_type(&component, "Precompiled"), .map = map};
    return XM_OK;
}

void
xm_normalizer_free(struct xm_normalizer *normalizer)
{
    for (size_t i = 0; i < normalizer->n; i++) {
        xm_regex_free(normalizer->steps[i].regex);
        xm_free(normalizer->steps[i].content);
        xm_charsmap_free(normalizer->steps[i].map);
    }
    *normalizer = (struct xm_normalizer){0};
}

enum xm_status
xm_normalizer_run(const struct xm_normalizer *normalizer, struct xm_slice text,
                  struct xm_strbuf *out, struct xm_error *err)
{
    struct xm_strbuf now = {0}, next = {0};
    enum xm_status status = XM_OK;
    for (size_t i = 0; status == XM_OK && i < normalizer->n; i++) {
        const struct xm_normalizer_step *step = &normalizer->steps[i];
        xm_strbuf_clear(&next);
        status = step->type->run(step, text, &next, err);
        if (status == XM_OK && !xm_strbuf_ok(&next))
            status = xm_no_memory(err, "%zu bytes", text.n);
        struct xm_strbuf swap = now;
        now = next;
        next = swap;
        text = xm_slice_of(xm_strbuf_text(&now), now.n);
    }
    if (status == XM_OK)
        xm_strbuf_add_n(out, text.text, text.n);
    xm_strbuf_free(&now);
    xm_strbuf_free(&next);
    if (status == XM_OK && !xm_strbuf_ok(out))
        status = xm_no_memory(err, "%zu bytes", text.n);
    return status;
}
