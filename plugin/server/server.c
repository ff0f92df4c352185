/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/server.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "plugin/program_util/json_out.h"
#include "plugin/server/page.h"
#include "runtime/util/json.h"
#include "runtime/util/number.h"

/* ---- routes --------------------------------------------------------------------------------- */

const struct xm_route xm_routes[] = {
#define ROUTE(method, path, form, access, answer)                                        \
    {method, path, XM_ERRORS_##form, XM_ROUTE_##access, answer},
#include "plugin/server/routes.def"
#undef ROUTE
};
const size_t xm_n_routes = XM_ARRAY_LEN(xm_routes);

static const struct xm_route page_route = {"GET", "", XM_ERRORS_OPENAI, XM_ROUTE_OPEN,
                                           xm_answer_page};

static void
add_method(struct xm_strbuf *methods, const char *method)
{
    xm_strbuf_printf(methods, "%s%s%s", methods->n ? ", " : "", method,
                     strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

/* Whether the path is the row's, or begins like a row's path that ends with an asterisk. */
static bool
is_path(const char *row, const char *path, size_t n)
{
    const size_t k = strlen(row);
    if (row[k - 1] == '*')
        return n >= k && strncmp(row, path, k - 1) == 0;
    return k == n && strncmp(row, path, n) == 0;
}

static bool
takes(const struct xm_route *row, const char *method)
{
    return strcmp(row->method, method) == 0 ||
           (strcmp(row->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

const struct xm_route *
xm_route_find(const char *method, const char *path, struct xm_strbuf *methods)
{
    const struct xm_route *found = NULL;
    const size_t n = strcspn(path, "?");
    for (size_t i = 0; i < xm_n_routes; i++) {
        const struct xm_route *row = &xm_routes[i];
        if (!is_path(row->path, path, n))
            continue;
        add_method(methods, row->method);
        if (takes(row, method))
            found = row;
    }
    if (!methods->n && xm_page_find(path)) {
        add_method(methods, page_route.method);
        if (takes(&page_route, method))
            found = &page_route;
    }
    return found;
}

/* ---- access -------------------------------------------------------------------------------- */

/* Returns the host of "host:port" or "[host]:port". */
static struct xm_slice
host_of(const char *header)
{
    if (header[0] == '[') {
        const char *end = strchr(header, ']');
        return end ? xm_slice_of(header + 1, (size_t)(end - header) - 1)
                   : xm_slice_of("", 0);
    }
    return xm_slice_of(header, strcspn(header, ":"));
}

static bool
is_host(struct xm_slice host, const char *name)
{
    return strlen(name) == host.n && strncasecmp(host.text, name, host.n) == 0;
}

static bool
check_host(const struct xm_exchange *x, struct xm_refusal *r)
{
    const char *header = x->request.host, *name = x->server->host;
    if (!name || !header)
        return true;
    const struct xm_slice host = host_of(header);
    return is_host(host, "localhost") || is_host(host, "127.0.0.1") ||
           is_host(host, "::1") || is_host(host, name) ||
           xm_refuse(r, 403, NULL, "wrong_host",
                     "this server listens on loopback and answers only requests whose "
                     "Host header is 'localhost' or a loopback address");
}

static bool
check_key(const struct xm_exchange *x, struct xm_refusal *r)
{
    static const char bearer[] = "Bearer ";
    const size_t n = sizeof(bearer) - 1;
    const char *said = x->request.authorization, *key = x->request.api_key;
    if (x->route->access == XM_ROUTE_OPEN || !x->server->keys || x->server->keys->n == 0)
        return true;
    if (said && strncasecmp(said, bearer, n) == 0)
        key = said + n;
    if (!key)
        return xm_refuse(r, 401, NULL, "missing_api_key",
                         "this server requires a key: send 'Authorization: Bearer KEY'");
    return xm_keys_has(x->server->keys, key) ||
           xm_refuse(r, 401, NULL, "invalid_api_key",
                     "the key is not valid for this server");
}

static bool
is_json(const char *type)
{
    static const char json[] = "application/json";
    const size_t n = sizeof(json) - 1;
    return type && strncasecmp(type, json, n) == 0 && strchr(" ;\t", type[n]);
}

static bool
check_body(const struct xm_exchange *x, uint64_t body_bytes, struct xm_refusal *r)
{
    if (strcmp(x->request.method, "POST") != 0)
        return true;
    if (xm_flag_get(&x->server->is_draining))
        return xm_refuse(r, 503, NULL, NULL, "the server is stopping");
    if (body_bytes > x->server->most_body)
        return xm_refuse(r, 413, NULL, "body_too_large",
                         "the request body has %" PRIu64
                         " bytes, at most %zu are allowed",
                         body_bytes, x->server->most_body);
    return is_json(x->request.content_type) ||
           xm_refuse(r, 415, NULL, "wrong_content_type",
                     "the request's Content-Type is '%s', expected application/json",
                     x->request.content_type
                         ? xm_utf8_shown(xm_slice_of(x->request.content_type,
                                                     strlen(x->request.content_type)))
                               .text
                         : "not given");
}

static bool
find_route(struct xm_exchange *x, struct xm_refusal *r)
{
    struct xm_strbuf methods = {0};
    const struct xm_request *q = &x->request;
    const struct xm_shown path = xm_utf8_shown(xm_slice_of(q->path, strlen(q->path)));
    x->route = xm_route_find(q->method, q->path, &methods);
    if (x->route)
        (void)0;
    else if (!methods.n)
        xm_refuse(r, 404, NULL, "unknown_url", "there is no endpoint '%s'", path.text);
    else
        xm_refuse(r, 405, NULL, "method_not_allowed",
                  "the endpoint '%s' supports %s, not %.16s", path.text,
                  xm_strbuf_text(&methods), q->method);
    if (methods.n) /* for the header Allow of 405 and OPTIONS */
        x->allow = strstr(xm_strbuf_text(&methods), "POST") ? "POST" : "GET, HEAD";
    xm_strbuf_free(&methods);
    return x->route != NULL;
}

static bool
answer_options(struct xm_exchange *x)
{
    if (strcmp(x->request.method, "OPTIONS") != 0 || !x->allow)
        return false;
    xm_exchange_lock(x);
    xm_exchange_answer(x, 204, XM_TYPE_JSON, "", 0);
    xm_exchange_unlock(x);
    return true;
}

bool
xm_server_admit(struct xm_exchange *x, uint64_t body_bytes)
{
    struct xm_refusal r = {0};
    if (check_host(x, &r)) {
        const bool is_found = find_route(x, &r);
        if (!is_found && answer_options(x))
            return false;
        if (is_found && check_key(x, &r) && check_body(x, body_bytes, &r))
            return true;
    }
    xm_refusal_answer(&r, x);
    return false;
}

bool
xm_server_is_origin(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char digits[] = "0123456789";
    const char *host = strstr(text, "://");
    uint64_t port = 1;
    if (strcmp(text, "*") == 0 || strcmp(text, "null") == 0)
        return true;
    if (!host || strspn(text, letters) != (size_t)(host - text) || host == text)
        return false;
    host += strlen("://");
    const struct xm_slice name = host_of(host);
    const char *end = host[0] == '[' ? strchr(host, ']') : host + name.n - 1;
    if (name.n == 0 || strcspn(host, " \t/?#@\\") != strlen(host))
        return false;
    return !end[1] || (end[1] == ':' && strspn(end + 2, digits) == strlen(end + 2) &&
                       xm_parse_whole(end + 2, &port) && port > 0 && port <= UINT16_MAX);
}

const char *
xm_server_allows_origin(const struct xm_server *s, const char *origin)
{
    if (!s->cors_origin || !origin)
        return NULL;
    if (strcmp(s->cors_origin, "*") == 0)
        return "*";
    return strcasecmp(s->cors_origin, origin) == 0 ? origin : NULL;
}

/* ---- bodies --------------------------------------------------------------------------------- */

/* Whether lists and objects are nested more deeply than XM_MOST_DEPTH. */
static bool
is_deep(const char *text, size_t n)
{
    size_t depth = 0;
    bool in_text = false;
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if (in_text && c == '\\')
            i++;
        else if (c == '"')
            in_text = !in_text;
        else if (!in_text && (c == '[' || c == '{') && ++depth > XM_MOST_DEPTH)
            return true;
        else if (!in_text && (c == ']' || c == '}') && depth > 0)
            depth--;
    }
    return false;
}

bool
xm_body_read(const struct xm_exchange *x, yyjson_doc **doc, struct xm_refusal *r)
{
    const struct xm_strbuf *body = &x->request.body;
    struct xm_error why = {0};
    *doc = NULL;
    if (body->n == 0)
        return xm_refuse(r, 400, NULL, "invalid_json",
                         "the request body is empty, expected a JSON object");
    if (is_deep(xm_strbuf_text(body), body->n))
        return xm_refuse(
            r, 400, NULL, "invalid_json",
            "lists and objects of the request body are nested deeper than %d levels",
            XM_MOST_DEPTH);
    if (xm_json_parse(xm_strbuf_text(body), body->n, doc, &why) != XM_OK)
        return why.status == XM_INVALID ? xm_refuse(r, 400, NULL, "invalid_json",
                                                    "the request body is %s", why.text)
                                        : xm_refuse_for(r, &why);
    if (yyjson_is_obj(yyjson_doc_get_root(*doc)))
        return true;
    yyjson_doc_free(*doc);
    *doc = NULL;
    return xm_refuse(r, 400, NULL, "invalid_json",
                     "the request body is not a JSON object");
}

struct xm_served *
xm_body_model(const struct xm_exchange *x, yyjson_val *body, struct xm_refusal *r)
{
    const struct xm_server *s = x->server;
    yyjson_val *v = yyjson_obj_get(body, "model");
    if (v && !yyjson_is_null(v) && !yyjson_is_str(v)) {
        xm_refuse_value(r, "model", v, "a string");
        return NULL;
    }
    return yyjson_get_len(v) == 0
               ? s->models[0]
               : xm_server_model(s, xm_slice_of(yyjson_get_str(v), yyjson_get_len(v)), r);
}

struct xm_served *
xm_server_model(const struct xm_server *s, struct xm_slice name, struct xm_refusal *r)
{
    for (size_t i = 0; i < s->n_models; i++)
        if (xm_slice_equal(name,
                           xm_slice_of(s->models[i]->name, strlen(s->models[i]->name))))
            return s->models[i];
    xm_refuse(r, 404, "model", "model_not_found",
              "there is no model '%s'; /v1/models lists the models",
              xm_utf8_shown(name).text);
    return NULL;
}

/* ---- handling -------------------------------------------------------------------------------- */

void
xm_server_handle(struct xm_exchange *x)
{
    struct xm_refusal r = {0};
    if (x->request.body.n > x->server->most_body)
        xm_refuse(&r, 413, NULL, "body_too_large",
                  "the request body has more than %zu bytes, the largest allowed size",
                  x->server->most_body);
    else if (!xm_strbuf_ok(&x->request.body))
        xm_refuse(&r, 503, NULL, NULL, "out of memory for the request body");
    if (r.status != 0)
        xm_refusal_answer(&r, x);
    else
        x->route->answer(x);
}

void
xm_answer_json(struct xm_exchange *x, struct xm_json_out *j)
{
    struct xm_strbuf text = {0};
    const bool is_whole = xm_json_write(j, &text) && xm_strbuf_ok(&text);
    struct xm_refusal r = {0};
    xm_json_end(j);
    if (is_whole) {
        xm_exchange_lock(x);
        xm_exchange_answer(x, 200, XM_TYPE_JSON, xm_strbuf_text(&text), text.n);
        xm_exchange_unlock(x);
    } else {
        xm_refuse(&r, 503, NULL, NULL, "out of memory for the answer");
        xm_refusal_answer(&r, x);
    }
    xm_strbuf_free(&text);
}
