/* SPDX-License-Identifier: Apache-2.0
 *
 * The server of xemoe serve: opens the models, listens, and waits for a signal.
 *
 *     first signal ──► no new requests ──► texts end, or time runs out ──► connections closed
 *     second       ──► the process ends
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/serve.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/progress.h"
#include "plugin/server/http.h"
#include "plugin/server/listen.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/number.h"

enum {
    CONNECTIONS = 1024,
    PATIENCE = 60,  /* seconds; http.h */
    LAST_WORDS = 2, /* seconds that cancelled answers have to be sent in */
    LOOK_MS = 20,   /* while the texts end */
    SIGNALLED = 128 /* exit code of a process that a signal ends: this and its number */
};

/* A model whose embedding program is made when it is needed. */
struct embeddings {
    const struct xm_serve_args *a;
    const struct xm_cli_model *m;
    struct xm_cli_target target;
};

struct serving {
    const struct xm_serve_args *a;
    struct xm_cli_model opened[XM_CLI_MAX_TEXTS];
    struct xm_served *served[XM_CLI_MAX_TEXTS];
    struct xm_sampling_lists lists[XM_CLI_MAX_TEXTS];   /* of each model's sampling */
    struct xm_prefix_store *prefixes[XM_CLI_MAX_TEXTS]; /* NULL: none         */
    struct embeddings embeddings[XM_CLI_MAX_TEXTS];
    struct xm_strbuf names[XM_CLI_MAX_TEXTS]; /* in requests */
    size_t n;
    struct xm_keys keys;
    struct xm_strbuf cert, cert_key;
    struct xm_server server;
    struct xm_http *http;
    bool is_terminated; /* read with xm_flag_get; SIGTERM has arrived */
};

/* ---- models ---------------------------------------------------------------------------------- */

/* Finds the default sampling: from the options, else from the model's files, else the defaults in
 * the API's documentation. */
static enum xm_status
find_sampling(const struct xm_cli_generation *g, const struct xm_package *p,
              struct xm_sampling_lists *lists, struct xm_sampling *out,
              struct xm_error *err)
{
    struct xm_sampling given;
    *out = p->generation.sampling;
    XM_TRY(xm_cli_sampling(g, &given, err));
    for (size_t i = 0; i < XM_N_SAMPLING; i++) {
        const struct xm_sampling_row *row = &xm_sampling_rows[i];
        if (xm_sampling_is_number(row) && xm_cli_sampling_is_given(g, i))
            xm_sampling_set(out, row, xm_sampling_get(&given, row));
    }
    if (out->temperature == 0.0f && !xm_cli_sampling_is_given(g, XM_AT_temperature))
        out->temperature = 1.0f;
    XM_TRY(xm_sampling_check(out, err));
    return xm_cli_sampling_lists(g, p, lists, out, err);
}

/* Appends the name of a model: the last part of its path, without the extension. */
static void
name_model(const char *path, struct xm_strbuf *out)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t at = n;
    while (at > 0 && path[at - 1] != '/')
        at--;
    const char *file = "openvino_model.xml";
    if (at > 1 && n - at == strlen(file) && strncmp(path + at, file, n - at) == 0) {
        for (n = at - 1, at = n; at > 0 && path[at - 1] != '/';)
            at--;
    }
    static const char *const endings[] = {".gguf", ".xml", ".blob"};
    for (size_t i = 0; i < XM_ARRAY_LEN(endings); i++) {
        const size_t k = strlen(endings[i]);
        if (n - at > k && strncmp(path + n - k, endings[i], k) == 0)
            n -= k;
    }
    xm_strbuf_add_n(out, path + at, n - at);
}

/* Finds the names of all models, before the first one is read. */
static int
name_models(struct serving *s)
{
    const struct xm_serve_args *a = s->a;
    for (size_t i = 0; i < a->models.n; i++) {
        if (i < a->aliases.n)
            xm_strbuf_add(&s->names[i], a->aliases.list[i]);
        else
            name_model(a->models.list[i], &s->names[i]);
        for (size_t k = 0; k < i; k++) {
            const char *name = xm_strbuf_text(&s->names[i]);
            if (strcmp(xm_strbuf_text(&s->names[k]), name) == 0)
                return xm_cli_usage("two models have the name '%s': give each its own "
                                    "with --alias",
                                    name);
        }
    }
    return XM_EXIT_OK;
}

/* Called by the queue's thread, or at the start. */
static enum xm_status
open_embedder(void *ctx, struct xm_embedder **out, struct xm_error *err)
{
    const struct embeddings *e = ctx;
    struct xm_compiled *compiled = NULL;
    enum xm_pooling pooling;
    XM_TRY(xm_cli_pooling(e->m->package, e->a->pooling, &pooling, err));
    if (e->m->gives_hidden)
        return xm_embedder_create(e->m->compiled, pooling, out, err);
    XM_TRY(xm_cli_compile_hidden(e->m, &e->target, &compiled, err));
    const enum xm_status s = xm_embedder_create(compiled, pooling, out, err);
    xm_compiled_unref(compiled);
    return s;
}

static int
serve_model(struct serving *s, size_t i)
{
    const struct xm_serve_args *a = s->a;
    const struct xm_cli_model *m = &s->opened[i];
    const uint64_t trained = m->package->facts.context;
    const uint64_t given = xm_cli_context(a->generation.context, trained);
    struct xm_served_options options = {.name = xm_strbuf_text(&s->names[i]),
                                        .slots = (size_t)a->slots,
                                        .most_waiting = (size_t)a->queue,
                                        .context = given ? given : trained};
    struct xm_error err = {0};
    char warning[XM_CLI_WARNING];
    if (xm_cli_beyond_training(options.context, trained, warning))
        xm_log(XM_LOG_WARNING, "%s", warning);
    if (!m->gives_hidden && !m->compiled->ops->create_batch)
        return xm_cli_usage(
            "option -d: this device runs one text at a time and cannot be used by serve");
    if (find_sampling(&a->generation, m->package, &s->lists[i], &options.sampling,
                      &err) != XM_OK)
        return xm_cli_usage("%s", err.text);
    if (xm_cli_prefix_cache_open(&a->prefixes, m->compiled, &s->prefixes[i], &err) !=
        XM_OK)
        return xm_cli_failed(&err);
    options.prefixes = s->prefixes[i];
    options.embeddings = (struct xm_embedding_source){open_embedder, &s->embeddings[i],
                                                      a->embeddings || m->gives_hidden};
    options.is_for_embeddings = m->gives_hidden;
    options.vocabulary = m->vocabulary;
    if (xm_served_create(m->compiled, m->package, &options, &s->served[i], &err) != XM_OK)
        return xm_cli_failed(&err);
    return XM_EXIT_OK;
}

static int
open_model(struct serving *s, size_t i)
{
    const struct xm_serve_args *a = s->a;
    struct xm_cli_target target = a->generation.target;
    const struct xm_compile_options compile = {.sampled_logits = true};
    target.model = a->models.list[i];
    target.warm_up = XM_CLI_WARM_UP_ALWAYS;
    target.embeds = XM_CLI_EMBEDS_IF_IT_MUST;
    target.needs_tokenizer = "serve needs it, so put the file beside the model";
    target.needs_chat_template = target.chat_template != NULL;
    target.check = xm_cli_check_biased;
    target.check_ctx = &a->generation;
    if (!xm_progress_is_shown()) /* otherwise a log would show nothing for a minute */
        fprintf(stderr,
                "xemoe: reading %s; kernels that are not in the cache are built first\n",
                target.model);
    int code = xm_cli_model_open(&s->opened[i], &target, &compile);
    if (code != XM_EXIT_OK)
        return code;
    s->n = i + 1;
    s->embeddings[i] = (struct embeddings){a, &s->opened[i], target};
    struct xm_error why = {0};
    if (s->opened[i].gives_hidden)
        xm_log(XM_LOG_INFO, "the model computes embeddings only, no texts");
    else if (xm_package_read(s->opened[i].package, XM_PACKAGE_CHAT_TEMPLATE, &why) !=
             XM_OK)
        xm_log(XM_LOG_WARNING, "the model cannot be used for chats: %s", why.text);
    return serve_model(s, i);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Reads the PEM file that `option` names. */
static enum xm_status
read_pem(const char *option, const char *path, struct xm_strbuf *out,
         struct xm_error *err)
{
    enum { MOST = 1 << 20 };
    struct xm_mapped_file file;
    if (!path)
        return XM_OK;
    enum xm_status s = xm_mapped_file_open(path, &file, err);
    if (s != XM_OK) {
        xm_error_prefix(err, "option %s", option);
        return s;
    }
    if (file.n_bytes > MOST)
        s = xm_fail(err, XM_INVALID,
                    "option %s: '%s' is too large for a certificate or its key", option,
                    path);
    else
        xm_strbuf_add_n(out, (const char *)file.bytes, (size_t)file.n_bytes);
    xm_mapped_file_close(&file);
    return s == XM_OK && !xm_strbuf_ok(out) ? xm_no_memory(err, "'%s'", path) : s;
}

static enum xm_status
read_files(struct serving *s, struct xm_error *err)
{
    if (s->a->key_file && xm_keys_read(s->a->key_file, &s->keys, err) != XM_OK) {
        xm_error_prefix(err, "option --api-key-file");
        return err->status;
    }
    XM_TRY(read_pem("--tls-cert", s->a->cert_file, &s->cert, err));
    return read_pem("--tls-key", s->a->cert_key_file, &s->cert_key, err);
}

/* ---- the server ------------------------------------------------------------------------------ */

static struct xm_http_options
http_options(const struct serving *s)
{
    const struct xm_serve_args *a = s->a;
    return (struct xm_http_options){.host = a->host,
                                    .port = (uint16_t)a->port,
                                    .patience = PATIENCE,
                                    .connections = CONNECTIONS,
                                    .cert = a->cert_file ? s->cert.text : NULL,
                                    .key = a->cert_file ? s->cert_key.text : NULL};
}

/* Prints why the server cannot listen. */
static int
fail_to_listen(const struct serving *s, const struct xm_error *err)
{
    if (err->status == XM_INVALID && s->a->cert_file) {
        xm_say("options --tls-cert and --tls-key: %s", err->text);
        return XM_EXIT_FILE;
    }
    if (err->status == XM_NO_MEMORY || xm_listener_is_given())
        return xm_cli_failed(err);
    return xm_cli_usage("%s: %s",
                        err->status == XM_BUSY        ? "option --port"
                        : err->status == XM_NOT_FOUND ? "option --host"
                                                      : "options --host and --port",
                        err->text);
}

static enum xm_status
start(struct serving *s, struct xm_error *err)
{
    const struct xm_serve_args *a = s->a;
    const bool is_v6 = strchr(a->host, ':') != NULL;
    const struct xm_http_options options = http_options(s);
    s->server = (struct xm_server){.models = s->served,
                                   .n_models = s->n,
                                   .keys = &s->keys,
                                   .cors_origin = a->cors_origin,
                                   .most_body = XM_SERVER_BODY};
    XM_TRY(xm_http_start(&s->server, &options, &s->http, err));
    if (!xm_http_is_loopback(s->http) && s->keys.n == 0)
        xm_log(XM_LOG_WARNING, "everyone who can reach this machine can use the server; "
                               "--api-key-file FILE requires a key from clients");
    if (xm_listener_is_given())
        printf("xemoe: listening on the service manager's socket, port %u (",
               xm_http_port(s->http));
    else
        printf("xemoe: listening on %s://%s%s%s:%u (", a->cert_file ? "https" : "http",
               is_v6 ? "[" : "", a->host, is_v6 ? "]" : "", xm_http_port(s->http));
    for (size_t i = 0; i < s->n; i++)
        printf("%s, ", s->served[i]->name);
    printf("%zu slot%s)\n", (size_t)a->slots, xm_plural(a->slots));
    fflush(stdout);
    return XM_OK;
}

/* Waits for another signal for `ms` milliseconds; -1: without limit. Returns whether it has
 * arrived. */
static bool
signal_comes(int ms)
{
    struct pollfd p = {.fd = xm_cli_wake_fd(), .events = POLLIN};
    if (poll(&p, 1, ms) <= 0)
        return false;
    xm_cli_wake_drain();
    return true;
}

static void
leave_at_once(const struct serving *s)
{
    fputs("xemoe: stopped by a second signal; running texts were cut\n", stderr);
    _exit(xm_flag_get(&s->is_terminated) ? SIGNALLED + SIGTERM : XM_EXIT_CANCELLED);
}

static void
wait_for_answers(struct serving *s, double seconds)
{
    const double until = xm_now() + seconds;
    while (xm_http_n_open(s->http) > 0 && xm_now() < until)
        if (signal_comes(LOOK_MS))
            leave_at_once(s);
}

static void
run(struct serving *s)
{
    while (!signal_comes(-1))
        ;
    xm_flag_set(&s->server.is_draining, true);
    fputs("xemoe: stopping\n", stderr);
    wait_for_answers(s, s->a->timeout);
    xm_http_cancel(s->http);
    wait_for_answers(s, LAST_WORDS);
}

/* Checks files, names, host and port before the models are read, which takes longer. */
static int
check_before_models(struct serving *s)
{
    struct xm_error err = {0};
    if (read_files(s, &err) != XM_OK)
        return xm_cli_failed(&err);
    const int code = name_models(s);
    const struct xm_http_options options = http_options(s);
    if (code == XM_EXIT_OK && xm_http_check(&options, &err) != XM_OK)
        return fail_to_listen(s, &err);
    return code;
}

static int
serve(struct serving *s)
{
    struct xm_error err = {0};
    int code = check_before_models(s);
    for (size_t i = 0; code == XM_EXIT_OK && i < s->a->models.n; i++)
        code = open_model(s, i);
    if (code != XM_EXIT_OK)
        return code;
    xm_cli_note_interrupt();
    xm_cli_wake_on(SIGTERM, &s->is_terminated);
    if (start(s, &err) == XM_OK)
        run(s);
    else
        code = fail_to_listen(s, &err);
    for (size_t i = 0; i < s->n; i++)
        xm_served_stop(s->served[i]);
    xm_http_stop(s->http);
    xm_cli_wake_off(SIGTERM);
    xm_cli_release_interrupt();
    return code;
}

int
xm_serve(struct xm_serve_args *a)
{
    struct serving s = {.a = a};
    const int code = serve(&s);
    for (size_t i = 0; i < s.n; i++) {
        xm_served_destroy(s.served[i]);
        xm_prefix_store_close(s.prefixes[i]);
        xm_sampling_lists_free(&s.lists[i]);
        xm_cli_model_close(&s.opened[i]);
    }
    for (size_t i = 0; i < a->models.n; i++)
        xm_strbuf_free(&s.names[i]);
    xm_keys_free(&s.keys);
    xm_strbuf_free(&s.cert);
    xm_strbuf_free(&s.cert_key);
    return code;
}
