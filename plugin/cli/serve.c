/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe serve: the options.
 */
#include "plugin/cli/serve.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/server/server.h"
#include "runtime/collective_mpi.h"
#include "runtime/util/number.h"

enum { PORT = 8080, SLOTS = 4, QUEUE = 64, TIMEOUT = 30 };

/* clang-format off */
#define AT(member) offsetof(struct xm_serve_args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The server", "xemoe serve model.gguf --port 8080 --slots 8 --api-key-file keys.txt"),
    { 0,   "host",         XM_CLI_WORD,  AT(host),          "NAME",  "the name or address to listen on (127.0.0.1, for this machine only)" },
    { 0,   "port",         XM_CLI_WHOLE, AT(port),          "N",     "the port to listen on (8080); 0: any free port" },
    { 0,   "api-key-file", XM_CLI_WORD,  AT(key_file),      "FILE",  "file with keys, one per line; clients must send one of them" },
    { 0,   "tls-cert",     XM_CLI_WORD,  AT(cert_file),     "FILE",  "serve HTTPS, with this certificate (PEM)", "ssl-cert-file" },
    { 0,   "tls-key",      XM_CLI_WORD,  AT(cert_key_file), "FILE",  "the certificate's private key (PEM)", "ssl-key-file" },
    { 0,   "cors-origin",  XM_CLI_WORD,  AT(cors_origin),   "URL",   "origin whose web pages may send requests: https://host:port, null for pages from files, or * for all; default: none" },
    { 0,   "slots",        XM_CLI_COUNT, AT(slots),         "N",     "texts of a model that run together (4)", "parallel -np" },
    { 0,   "queue",        XM_CLI_COUNT, AT(queue),         "N",     "texts that may wait for a slot (64); more are refused" },
    { 0,   "timeout",      XM_CLI_RATE,  AT(timeout),       "S",     "seconds that running texts have to finish when the server stops (30)" },
    XM_CLI_GROUP("Its models", "xemoe serve -m small.gguf --alias small -m large.gguf --alias large"),
    { 0,   "alias",        XM_CLI_WORDS, AT(aliases),       "NAME",  "the name of the model in requests; for several models, in the order of -m" },
    { 0,   "chat-template", XM_CLI_WORD, AT(generation.target.chat_template), "FILE", "a file with a Jinja template to use instead of the model's", "chat-template-file" },
    XM_CLI_PREFIX_CACHE_ROWS(AT(prefixes)),
    XM_CLI_POOLING_ROW(AT(pooling)),
    { 0,   "embeddings",   XM_CLI_FLAG,  AT(embeddings), NULL,     "also compile the model for embeddings at the start, instead of at the first request for embeddings", "embedding" },
};
#undef AT
/* clang-format on */

/* Stores the values of -m, which may be given several times. */
static enum xm_status
note_model(void *out, const struct xm_cli_option *o, const char *value,
           struct xm_error *err)
{
    struct xm_serve_args *a = out;
    if (o->letter != 'm')
        return XM_OK;
    if (a->models.n == XM_CLI_MAX_TEXTS)
        return xm_fail(err, XM_INVALID, "option -m is given more than %d times",
                       XM_CLI_MAX_TEXTS);
    a->models.list[a->models.n++] = value;
    return XM_OK;
}

static int
check(struct xm_serve_args *a)
{
    struct xm_sampling sampling;
    struct xm_error err = {0};
    if (a->models.n == 0)
        a->models.list[a->models.n++] = a->generation.target.model;
    if (a->port > UINT16_MAX)
        return xm_cli_usage("option --port takes a number from 0 to %d, found %" PRIu64,
                            UINT16_MAX, a->port);
    if (a->cors_origin && !xm_server_is_origin(a->cors_origin))
        return xm_cli_usage("option --cors-origin takes *, null or an origin as "
                            "https://host:port, found '%s'",
                            a->cors_origin);
    if (!a->cert_file != !a->cert_key_file)
        return xm_cli_usage("options --tls-cert and --tls-key must be given together");
    if (a->aliases.n > a->models.n)
        return xm_cli_usage("option --alias is given %zu times for %zu model%s",
                            a->aliases.n, a->models.n, xm_plural(a->models.n));
    if (xm_cli_sampling(&a->generation, &sampling, &err) != XM_OK)
        return xm_cli_usage("%s", err.text);
    const char *device = a->generation.target.device;
    const int code = xm_cli_refuse_reference(device, "-d",
                                             "runs one text at a time, but serve needs "
                                             "a device that runs several");
    return code == XM_EXIT_OK ? xm_cli_prefix_cache_check(&a->prefixes, device) : code;
}

/* Copies the common options, except those for one text or for a printed result. */
static size_t
common_options(struct xm_cli_option out[XM_CLI_N_GENERATION_OPTIONS])
{
    static const char left_out[] = "stop grammar json-schema json";
    size_t n = 0;
    for (size_t i = 0; i < XM_CLI_N_GENERATION_OPTIONS; i++) {
        const char *name = xm_cli_generation_options[i].name;
        if (!name || !xm_list_has(left_out, ' ', name, strlen(name)))
            out[n++] = xm_cli_generation_options[i];
    }
    xm_cli_leave_out_reference(out, n);
    return n;
}

int
xm_cli_serve(int argc, char **argv)
{
    struct xm_cli_option common[XM_CLI_N_GENERATION_OPTIONS];
    const struct xm_cli_spec spec = {
        .usage = "xemoe serve MODEL [--host NAME] [--port N] [options]",
        .about =
            "Serves models over HTTP: OpenAI's API at /v1, Anthropic's at /v1/messages, "
            "a chat\npage at /, Prometheus metrics at /metrics. Texts of many requests "
            "run together.\nSampling options are the defaults for requests; without "
            "them, the defaults are\nwhat the model's files recommend, else temperature "
            "1. Stop strings, grammars and\nJSON Schemas can be given only in requests. "
            "At the first Ctrl-C or SIGTERM the\nserver lets running texts finish for up "
            "to --timeout seconds; at the second it\nstops at once.\n",
        .common = common,
        .n_common = common_options(common),
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
        .given = note_model,
        XM_CLI_MODEL(XM_CLI_TARGET(model)),
    };
    struct xm_serve_args a = {.host = "127.0.0.1",
                              .port = PORT,
                              .slots = SLOTS,
                              .queue = QUEUE,
                              .timeout = TIMEOUT};
    uint32_t rank;
    bool done;
    xm_cli_generation_open(&a.generation);
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    if (xm_mpi_ranks(&rank) > 1)
        return xm_cli_usage("serve cannot run in an MPI job; generate can");
    code = check(&a);
    return code == XM_EXIT_OK ? xm_serve(&a) : code;
}
