/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/refusal.h"

#include <stdio.h>
#include <string.h>

#include "plugin/program_util/json_out.h"
#include "plugin/server/exchange.h"
#include "plugin/server/routes.h"
#include "runtime/util/json.h"
#include "runtime/util/memory.h"
#include "runtime/util/number.h"

/* The error types that clients know for an HTTP status. */
static const struct kind {
    int status;
    const char *openai, *anthropic;
} kinds[] = {
#define STATUS(status, openai, anthropic) {status, openai, anthropic},
#include "plugin/server/statuses.def"
#undef STATUS
};

/* clang-format off */
static const int status_of[] = {
    [XM_OK] = 200, [XM_INVALID] = 400, [XM_UNSUPPORTED] = 400, [XM_NO_MEMORY] = 503,
    [XM_NOT_FOUND] = 404, [XM_CANCELLED] = 503, [XM_BUSY] = 429,
};
/* clang-format on */

int
xm_status_of_http(enum xm_status status)
{
    const size_t i = (size_t)status;
    return i < XM_ARRAY_LEN(status_of) && status_of[i] ? status_of[i] : 500;
}

bool
xm_refuse(struct xm_refusal *r, int status, const char *param, const char *code,
          const char *fmt, ...)
{
    if (r->status != 0)
        return false;
    va_list ap;
    va_start(ap, fmt);
    xm_print_v(r->text, sizeof(r->text), fmt, ap);
    va_end(ap);
    r->status = status;
    r->code = code;
    if (param)
        xm_utf8_show(xm_slice_of(param, strlen(param)), r->param, sizeof(r->param));
    return false;
}

bool
xm_refuse_value(struct xm_refusal *r, const char *param, yyjson_val *v,
                const char *expected)
{
    return xm_refuse(r, 400, param, v ? "invalid_value" : "missing",
                     "'%s' is %s, expected %s", param, xm_json_shown(v).text, expected);
}

struct xm_shown
xm_place(const char *fmt, ...)
{
    struct xm_shown place;
    va_list ap;
    va_start(ap, fmt);
    xm_print_v(place.text, sizeof(place.text), fmt, ap);
    va_end(ap);
    return place;
}

/* Replaces all but the last component of paths by "…", because clients need not know this machine's
 * files. */
static void
hide_paths(const char *text, struct xm_strbuf *out)
{
    static const char ends[] = " \t'\"(),:;=";
    while (*text) {
        const size_t n = strcspn(text, ends);
        const char *last = NULL;
        for (size_t i = 0; text[0] == '/' && i < n; i++)
            last = text[i] == '/' ? text + i : last;
        if (last)
            xm_strbuf_add(out, "…");
        xm_strbuf_add_n(out, last ? last : text, last ? n - (size_t)(last - text) : n);
        xm_strbuf_add_n(out, text + n, text[n] != '\0');
        text += n + (text[n] != '\0');
    }
}

bool
xm_refuse_for(struct xm_refusal *r, const struct xm_error *why)
{
    return xm_refuse_at(r, NULL, NULL, why);
}

bool
xm_refuse_at(struct xm_refusal *r, const char *param, const char *code,
             const struct xm_error *why)
{
    struct xm_strbuf text = {0};
    const int status = xm_status_of_http(why->status);
    hide_paths(why->text, &text);
    xm_refuse(r, status, param, code, "%s",
              text.n && xm_strbuf_ok(&text) ? text.text : xm_status_text(why->status));
    xm_strbuf_free(&text);
    return false;
}

static const struct kind *
kind_of(int status)
{
    size_t i = XM_ARRAY_LEN(kinds) - 1;
    while (i > 0 && kinds[i].status != status)
        i--;
    return &kinds[i];
}

static void
add_text(struct xm_json_out *j, yyjson_mut_val *o, const char *key, const char *text)
{
    if (text && text[0])
        xm_json_add_text(j, o, key, text, strlen(text));
    else
        xm_json_add_null(j, o, key);
}

void
xm_refusal_print(const struct xm_refusal *r, enum xm_error_form form,
                 struct xm_strbuf *out)
{
    struct xm_json_out j;
    const struct kind *kind = kind_of(r->status);
    xm_json_begin(&j);
    if (form == XM_ERRORS_ANTHROPIC)
        add_text(&j, NULL, "type", "error");
    yyjson_mut_val *o = xm_json_add_object(&j, NULL, "error");
    add_text(&j, o, "type", form == XM_ERRORS_ANTHROPIC ? kind->anthropic : kind->openai);
    add_text(&j, o, "message", r->text);
    if (form == XM_ERRORS_OPENAI) {
        add_text(&j, o, "param", r->param);
        add_text(&j, o, "code", r->code);
    }
    if (!xm_json_write(&j, out)) /* out of memory: a constant text */
        xm_strbuf_add(out, "{\"error\":{\"type\":\"server_error\",\"message\":\"out of "
                           "memory\",\"param\":null,\"code\":null}}");
    xm_json_end(&j);
}

void
xm_refusal_answer(const struct xm_refusal *r, struct xm_exchange *x)
{
    struct xm_strbuf text = {0};
    xm_refusal_print(r, x->route ? x->route->form : XM_ERRORS_OPENAI, &text);
    xm_exchange_lock(x);
    xm_exchange_answer(x, r->status, XM_TYPE_JSON, xm_strbuf_text(&text), text.n);
    xm_exchange_unlock(x);
    xm_strbuf_free(&text);
}
