/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/wish.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/util/clock.h"

/* ---- rows ----------------------------------------------------------------------------------- */

struct real_row {
    const char *name;
    size_t at; /* float, of struct xm_sampling */
    double least, most;
};

/* clang-format off */
#define AT(member) offsetof(struct xm_sampling, member)
static const struct real_row reals[] = {
    { "temperature",        AT(temperature),        0.0,    100.0 },
    { "top_p",              AT(top_p),              0.0,    1.0   },
    { "min_p",              AT(min_p),              0.0,    1.0   },
    { "presence_penalty",   AT(presence_penalty),   -100.0, 100.0 },
    { "frequency_penalty",  AT(frequency_penalty),  -100.0, 100.0 },
    { "repetition_penalty", AT(repetition_penalty), 0.0,    100.0 },
    { "repeat_penalty",     AT(repetition_penalty), 0.0,    100.0 },
};
#undef AT
/* Members that would change a text. */
static const char *const not_supported[] = {
    "logit_bias", "grammar", "json_schema", "guided_json", "guided_grammar", "guided_regex",
    "functions", "function_call", "audio", "prediction", "web_search_options", "best_of",
};
/* clang-format on */

static uint64_t
random_seed(void)
{
    uint32_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        seed = (uint32_t)(1e6 * xm_now()) ^ (uint32_t)getpid();
    return seed;
}

void
xm_wish_init(struct xm_wish *w, const struct xm_served *m)
{
    *w = (struct xm_wish){
        .sampling = m->options.sampling, .max_tokens = UINT64_MAX, .n = 1};
    w->sampling.seed = random_seed();
    w->sampling.only_new = w->sampling.last_n <= 0; /* as the API has it */
}

/* ---- members -------------------------------------------------------------------------------- */

/* NULL: absent, or null. */
static yyjson_val *
member(yyjson_val *body, const char *name)
{
    yyjson_val *v = yyjson_obj_get(body, name);
    return v && !yyjson_is_null(v) ? v : NULL;
}

static bool
wrong(struct xm_refusal *r, const char *name, yyjson_val *v, const char *expected)
{
    return xm_refuse(r, 400, name, "invalid_type", "'%s' is %s, expected %s", name,
                     yyjson_get_type_desc(v), expected);
}

bool
xm_wish_flag(yyjson_val *body, const char *name, bool *out, struct xm_refusal *r)
{
    yyjson_val *v = member(body, name);
    if (v && !yyjson_is_bool(v))
        return wrong(r, name, v, "true or false");
    *out = v ? yyjson_get_bool(v) : *out;
    return true;
}

bool
xm_wish_count(yyjson_val *body, const char *name, uint64_t least, uint64_t most,
              uint64_t *out, struct xm_refusal *r)
{
    yyjson_val *v = member(body, name);
    if (!v)
        return true;
    if (!yyjson_is_int(v))
        return wrong(r, name, v, "a whole number");
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) < least || yyjson_get_uint(v) > most)
        return xm_refuse(r, 400, name, "out_of_range",
                         "'%s' takes a whole number from %" PRIu64 " to %" PRIu64, name,
                         least, most);
    *out = yyjson_get_uint(v);
    return true;
}

static bool
read_real(struct xm_sampling *to, const struct real_row *row, yyjson_val *body,
          struct xm_refusal *r)
{
    yyjson_val *v = member(body, row->name);
    if (!v)
        return true;
    if (!yyjson_is_num(v))
        return wrong(r, row->name, v, "a number");
    const double x = yyjson_get_num(v);
    if (!(x >= row->least && x <= row->most))
        return xm_refuse(r, 400, row->name, "out_of_range",
                         "'%s' takes a number from %g to %g, found %g", row->name,
                         row->least, row->most, x);
    *(float *)(void *)((char *)to + row->at) = (float)x;
    return true;
}

/* Negative numbers ask for a random one, as elsewhere. */
static bool
read_seed(struct xm_wish *w, yyjson_val *body, struct xm_refusal *r)
{
    yyjson_val *v = member(body, "seed");
    if (v && !yyjson_is_int(v))
        return wrong(r, "seed", v, "a whole number");
    if (v && yyjson_is_uint(v))
        w->sampling.seed = yyjson_get_uint(v);
    return true;
}

/* 0 and negative numbers: among all. */
static bool
read_top_k(struct xm_wish *w, yyjson_val *body, struct xm_refusal *r)
{
    yyjson_val *v = member(body, "top_k");
    if (v && !yyjson_is_int(v))
        return wrong(r, "top_k", v, "a whole number");
    if (!v)
        return true;
    const bool is_bound = yyjson_is_uint(v) && yyjson_get_uint(v) <= INT32_MAX;
    w->sampling.top_k = is_bound ? (int)yyjson_get_uint(v) : 0;
    return true;
}

static bool
add_stop(struct xm_wish *w, yyjson_val *v, const char *name, struct xm_refusal *r)
{
    if (!yyjson_is_str(v))
        return wrong(r, name, v, "a string, or a list of strings");
    if (yyjson_get_len(v) == 0)
        return xm_refuse(r, 400, name, "invalid_value",
                         "'%s' has an empty string, which every text begins with", name);
    if (w->n_stops == XM_MOST_STOPS)
        return xm_refuse(r, 400, name, "out_of_range", "'%s' takes at most %d strings",
                         name, XM_MOST_STOPS);
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
    yyjson_arr_foreach(v, i, n, item)
    {
        if (!add_stop(w, item, name, r))
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

/* ---- all of them ---------------------------------------------------------------------------- */

/* "text" is what there is without it. */
static bool
read_format(yyjson_val *body, struct xm_refusal *r)
{
    yyjson_val *v = member(body, "response_format");
    if (!v)
        return true;
    if (!yyjson_is_obj(v))
        return wrong(r, "response_format", v, "an object");
    return yyjson_equals_str(yyjson_obj_get(v, "type"), "text") ||
           xm_refuse(r, 400, "response_format", "unsupported_parameter",
                     "'response_format' is not supported, but for the type 'text'");
}

static bool
read_stream(struct xm_wish *w, yyjson_val *body, struct xm_refusal *r)
{
    yyjson_val *options = member(body, "stream_options");
    if (!xm_wish_flag(body, "stream", &w->stream, r))
        return false;
    if (options && !yyjson_is_obj(options))
        return wrong(r, "stream_options", options, "an object");
    return !options || xm_wish_flag(options, "include_usage", &w->wants_usage, r);
}

bool
xm_wish_read(struct xm_wish *w, yyjson_val *body, struct xm_refusal *r)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(not_supported); i++) {
        if (!xm_wish_refuses(body, not_supported[i], r))
            return false;
    }
    for (size_t i = 0; i < XM_ARRAY_LEN(reals); i++) {
        if (!read_real(&w->sampling, &reals[i], body, r))
            return false;
    }
    return read_seed(w, body, r) && read_top_k(w, body, r) && read_format(body, r) &&
           read_stream(w, body, r) && xm_wish_stops(w, body, "stop", r) &&
           xm_wish_count(body, "n", 1, XM_MOST_TEXTS, &w->n, r) &&
           xm_wish_flag(body, "ignore_eos", &w->ignores_ends, r) &&
           xm_wish_count(body, "max_tokens", 1, UINT64_MAX, &w->max_tokens, r) &&
           xm_wish_count(body, "max_completion_tokens", 1, UINT64_MAX, &w->max_tokens, r);
}
