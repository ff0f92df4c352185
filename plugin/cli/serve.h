/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe serve: the options (serve.c), and the server that they describe (serve_http.c, or
 * serve_none.c in builds without libmicrohttpd).
 */
#ifndef XM_PLUGIN_CLI_SERVE_H
#define XM_PLUGIN_CLI_SERVE_H

#include "plugin/cli/prefix_cache.h"
#include "plugin/cli/text_out.h"

struct xm_serve_args {
    struct xm_cli_generation generation; /* first: the common options */
    struct xm_cli_texts models;          /* the values of all -m, in order */
    struct xm_cli_texts aliases;         /* their names               */
    const char *host, *key_file, *cert_file, *cert_key_file, *cors_origin, *pooling;
    bool embeddings;             /* make the embedding program at the start */
    uint64_t port, slots, queue; /* queue: UINT64_MAX: not bounded */
    double timeout;              /* seconds */
    struct xm_cli_prefix_cache prefixes;
};

/* Serves until a signal ends it. Returns an exit code. */
int xm_serve(struct xm_serve_args *a);

#endif
