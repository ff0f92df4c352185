/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/wish.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/text/sampling_json.h"
#include "runtime/util/json.h"

/* clang-format off */
/* Unsupported members that would change a text. */
static const char *const not_supported[] = {
    "guided_regex", "guided_choice",
    "functions", "function_call", "audio", "prediction", "web_search_options",
    "stop_token_ids", "allowed_token_ids", "structured_outputs", "output_config", "output_format",
    "samplers", "use_beam_search", "include_stop_str_in_output",
    "prompt_logprobs", "mcp_servers", "container",
};
/* clang-format on */

void
xm_wish_init(struct xm_wish *w, const struct xm_served *m)
{
    *w = (struct xm_wish){
        .model = m, .sampling = m->options.sampling, .max_tokens = UINT64_MAX, .n = 1};
    w->sampling.seed = xm_sampling_random_seed();
    w->sampling.only_new = false; /* set below, when repeat_last_n is known */
}

void
xm_wish_free(struct xm_wish *w)
{
    xm_sampling_lists_free(&w->lists);
    xm_grammar_free(w->grammar);
    xm_free(w->tools.all);
}

/* ---- members -------------------------------------------------------------------------------- */

/* Returns a member; NULL: it is absent or null. */
static yyjson_val *
member(yyjson_val *body, const char *name)
{
    yyjson_val *v = yyjson_obj_get(body, name);
    return v && !yyjson_is_null(v) ? v : NULL;
}

/* Returns the part after the last dot of a place. */
static const char *
key_of(const char *place)
{
    const char *dot = strrchr(place, '.');
    return dot ? dot + 1 : place;
}

bool
xm_wish_flag(yyjson_val *body, const char *place, bool *out, struct xm_refusal *r)
{
    yyjson_val *v = member(body, key_of(place));
    if (v && !yyjson_is_bool(v))
        return xm_refuse_value(r, place, v, "true or false");
    *out = v ? yyjson_get_bool(v) : *out;
    return true;
}

bool
xm_wish_text(yyjson_val *body, const char *place, yyjson_val **out, struct xm_refusal *r)
{
    *out = member(body, key_of(place));
    return !*out || yyjson_is_str(*out) || xm_refuse_value(r, place, *out, "a string");
}

/* Whether a number has no fraction, even if it is written with a point or an exponent. */
static bool
is_whole(yyjson_val *v, uint64_t *out)
{
    const double x = yyjson_get_num(v);
    *out = yyjson_is_real(v) && x >= 0.0 && x < 0x1p64 ? (uint64_t)x : yyjson_get_uint(v);
    return yyjson_is_uint(v) || (yyjson_is_real(v) && (double)*out == x);
}

/* Describes the accepted whole numbers, without a bound that no text reaches. */
static struct xm_shown
range_of(uint64_t least, uint64_t most)
{
    if (least == most)
        return xm_place("%" PRIu64, least);
    if (most >= INT32_MAX)
        return xm_place("a whole number from %" PRIu64, least);
    return xm_place("a whole number from %" PRIu64 " to %" PRIu64, least, most);
}

bool
xm_wish_count(yyjson_val *body, const char *name, uint64_t least, uint64_t most,
              uint64_t *out, struct xm_refusal *r)
{
    yyjson_val *v = member(body, name);
    uint64_t n;
    if (v && (!is_whole(v, &n) || n < least || n > most))
        return xm_refuse_value(r, name, v, range_of(least, most).text);
    *out = v ? n : *out;
    return true;
}

static bool
check_bias(const struct xm_wish *w, struct xm_refusal *r)
{
    const struct xm_bias_view *b = &w->sampling.logit_bias;
    for (size_t i = 0; i < b->n; i++)
        if ((uint64_t)b->list[i].id >= w->model->vocabulary)
            return xm_refuse(r, 400, "logit_bias", "invalid_value",
                             "'logit_bias' has the token id %" PRId32
                             ", expected ids below %" PRIu64,
                             b->list[i].id, w->model->vocabulary);
    return true;
}

/* Reads the sampling options. Errors begin with the member's name. */
static bool
read_sampling(struct xm_wish *w, yyjson_val *body, struct xm_refusal *r)
{
    struct xm_error why = {0};
    const struct xm_package *p = w->model->package;
    char name[XM_UTF8_SHOWN];
    if (xm_sampling_from_json(body, p ? p->tokenizer : NULL, &w->sampling, &w->lists,
                              &why) != XM_OK) {
        const char *begin = why.text + (why.text[0] == '\'');
        const size_t n = strspn(begin, "abcdefghijklmnopqrstuvwxyz_");
        snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : 0), begin);
        return why.status == XM_INVALID
                   ? xm_refuse(r, 400, name, "invalid_value", "%s", why.text)
                   : xm_refuse_for(r, &why);
    }
    /* penalties count new tokens, as OpenAI's; with a number of last tokens, as llama.cpp's, all
     * tokens */
    w->sampling.only_new = w->sampling.last_n <= 0;
    return check_bias(w, r);
}

static bool
add_stop(struct xm_wish *w, yyjson_val *v, const char *place, struct xm_refusal *r)
{
    if (!yyjson_is_str(v) || yyjson_get_len(v) == 0)
        return xm_refuse_value(r, place, v,
                               "a string that is not empty, or a list of these");
    w->stops[w->n_stops++] = xm_slice_of(yyjson_get_str(v), yyjson_get_len(v));
    return true;
}

bool
xm_wish_stops(struct xm_wish *w, yyjson_val *body, const char *name, struct xm_refusal *r)
{
    yyjson_val *v = member(body, name), *item;
    size_t i, n;
    w->n_stops = 0;
    if (!v)
        return true;
    if (!yyjson_is_arr(v))
        return add_stop(w, v, name, r);
    if (yyjson_arr_size(v) > XM_MOST_STOPS)
        return xm_refuse(r, 400, name, "out_of_range",
                         "'%s' has %zu strings, at most %d are supported", name,
                         yyjson_arr_size(v), XM_MOST_STOPS);
    yyjson_arr_foreach(v, i, n, item)
    {
        if (!add_stop(w, item, xm_place("%s[%zu]", name, i).text, r))
            return false;
    }
    return true;
}

bool
xm_wish_refuses(yyjson_val *body, const char *name, struct xm_refusal *r)
{
    yyjson_val *v = member(body, name);
    const bool is_nothing = !v || yyjson_is_false(v) ||
                            (yyjson_is_num(v) && yyjson_get_num(v) == 0.0) ||
                            (yyjson_is_ctn(v) && yyjson_get_len(v) == 0) ||
                            (yyjson_is_str(v) && yyjson_get_len(v) == 0);
    return is_nothing || xm_refuse(r, 400, name, "unsupported_parameter",
                                   "'%s' is not supported", name);
}

/* ---- grammars ------------------------------------------------------------------------------- */

/* Sets the grammar that the text must match, from GBNF or a JSON Schema; a request has at most
 * one. */
static bool
set_grammar(struct xm_wish *w, const char *name, enum xm_status status,
            const struct xm_error *why, struct xm_grammar *g, struct xm_refusal *r)
{
    if (status != XM_OK &&
        /* errors contain JSON pointers, which hide_paths would shorten */
        why->status != XM_NO_MEMORY)
        return xm_refuse(r, 400, name, "invalid_value", "'%s': %s", name, why->text);
    if (status != XM_OK)
        return xm_refuse_for(r, why);
    if (w->grammar) {
        xm_grammar_free(g);
        return xm_refuse(
            r, 400, name, "invalid_value",
            "'%s' cannot be combined with another required format of the text", name);
    }
    w->grammar = g;
    return true;
}

static bool
take_schema(struct xm_wish *w, const char *name, yyjson_val *schema, struct xm_refusal *r)
{
    struct xm_error why = {0};
    struct xm_grammar *g = NULL;
    size_t n = 0;
    if (!yyjson_is_obj(schema) && !yyjson_is_bool(schema))
        return xm_refuse_value(r, name, schema, "a JSON Schema");
    char *text = yyjson_val_write_opts(schema, 0, &xm_json_allocator, &n, NULL);
    enum xm_status s = text ? XM_OK : xm_no_memory(&why, "a JSON Schema");
    if (s == XM_OK)
        s = xm_grammar_from_schema(text, n, &g, &why);
    xm_free(text);
    return set_grammar(w, name, s, &why, g, r);
}

static bool
take_gbnf(struct xm_wish *w, yyjson_val *body, const char *name, struct xm_refusal *r)
{
    yyjson_val *v;
    struct xm_error why = {0};
    struct xm_grammar *g = NULL;
    if (!xm_wish_text(body, name, &v, r))
        return false;
    if (yyjson_get_len(v) == 0)
        return true;
    const enum xm_status s =
        xm_grammar_parse(yyjson_get_str(v), yyjson_get_len(v), &g, &why);
    return set_grammar(w, name, s, &why, g, r);
}

/* Accepts any JSON object. */
static bool
take_object(struct xm_wish *w, const char *name, struct xm_refusal *r)
{
    static const char schema[] = "{\"type\":\"object\"}";
    struct xm_error why = {0};
    struct xm_grammar *g = NULL;
    const enum xm_status s = xm_grammar_from_schema(schema, sizeof(schema) - 1, &g, &why);
    return set_grammar(w, name, s, &why, g, r);
}

/* Reads {"type": "json_schema", "json_schema": {"schema": …}}, or the schema beside the type, as in
 * newer APIs. "text" is the default. */
bool
xm_wish_format(struct xm_wish *w, yyjson_val *v, const char *name, struct xm_refusal *r)
{
    if (!v || yyjson_is_null(v))
        return true;
    if (!yyjson_is_obj(v))
        return xm_refuse_value(r, name, v, "an object");
    yyjson_val *type = yyjson_obj_get(v, "type"), *schema = yyjson_obj_get(v, "schema");
    yyjson_val *inner = yyjson_obj_get(v, "json_schema");
    if (yyjson_equals_str(type, "text"))
        return true;
    if (yyjson_equals_str(type, "json_schema"))
        return inner ? take_schema(w, xm_place("%s.json_schema.schema", name).text,
                                   yyjson_obj_get(inner, "schema"), r)
                     : take_schema(w, xm_place("%s.schema", name).text, schema, r);
    if (!yyjson_equals_str(type, "json_object"))
        return xm_refuse_value(r, xm_place("%s.type", name).text, type,
                               "text, json_object or json_schema");
    return schema ? take_schema(w, name, schema, r) : take_object(w, name, r);
}

static bool
read_form(struct xm_wish *w, yyjson_val *body, struct xm_refusal *r)
{
    static const char *const schemas[] = {"json_schema", "guided_json"};
    if (!xm_wish_format(w, member(body, "response_format"), "response_format", r))
        return false;
    for (size_t i = 0; i < XM_ARRAY_LEN(schemas); i++) {
        yyjson_val *v = member(body, schemas[i]);
        if (v && !take_schema(w, schemas[i], v, r))
            return false;
    }
    return take_gbnf(w, body, "grammar", r) && take_gbnf(w, body, "guided_grammar", r);
}

/* ---- all of them ---------------------------------------------------------------------------- */

static bool
read_stream(struct xm_wish *w, yyjson_val *body, struct xm_refusal *r)
{
    yyjson_val *options = member(body, "stream_options");
    if (!xm_wish_flag(body, "stream", &w->stream, r))
        return false;
    if (options && !yyjson_is_obj(options))
        return xm_refuse_value(r, "stream_options", options, "an object");
    return xm_wish_flag(options, "stream_options.include_usage", &w->wants_usage, r);
}

bool
xm_wish_is_one(const struct xm_wish *w, struct xm_refusal *r)
{
    return w->n == 1 ||
           xm_refuse(r, 400, "n", "unsupported_parameter",
                     "'n' is %" PRIu64 ", expected 1: this API supports one answer",
                     w->n);
}

/* Reads a limit; -1 means none, as llama-server's clients send it. */
static bool
read_bound(struct xm_wish *w, yyjson_val *body, const char *name, struct xm_refusal *r)
{
    yyjson_val *v = member(body, name);
    if (!yyjson_is_sint(v) || yyjson_get_sint(v) != -1)
        return xm_wish_count(body, name, w->may_be_empty ? 0 : 1, UINT64_MAX,
                             &w->max_tokens, r);
    w->max_tokens = UINT64_MAX;
    return true;
}

bool
xm_wish_read(struct xm_wish *w, yyjson_val *body, struct xm_refusal *r)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(not_supported); i++) {
        if (!xm_wish_refuses(body, not_supported[i], r))
            return false;
    }
    uint64_t best_of = 1; /* with one text, the best of one is that text */
    return xm_wish_count(body, "best_of", 1, 1, &best_of, r) &&
           read_sampling(w, body, r) && read_form(w, body, r) &&
           read_stream(w, body, r) && xm_wish_stops(w, body, "stop", r) &&
           xm_wish_count(body, "n", 1, XM_MOST_TEXTS, &w->n, r) &&
           xm_wish_count(body, "min_tokens", 0, UINT64_MAX, &w->min_tokens, r) &&
           xm_wish_flag(body, "ignore_eos", &w->ignores_ends, r) &&
           read_bound(w, body, "max_tokens", r) && read_bound(w, body, "n_predict", r) &&
           read_bound(w, body, "max_completion_tokens", r);
}
