/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request asks of its texts: the members of the body that all endpoints share, with the
 * names that clients of OpenAI's and other servers use. Unknown members are ignored; unsupported
 * members that would change the text are refused by name.
 */
#ifndef XM_PLUGIN_SERVER_WISH_H
#define XM_PLUGIN_SERVER_WISH_H

#include <yyjson.h>

#include "plugin/server/engine.h"
#include "plugin/server/refusal.h"
#include "plugin/text/sampling_lists.h"
#include "plugin/text/tool_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    XM_MOST_STOPS = 16,
    XM_MOST_TEXTS = 128,    /* of a request */
    XM_MOST_LIKELIEST = 20, /* tokens reported for each position */
};

/* Set by tools.h. */
struct xm_wish_tools {
    struct xm_tool *all; /* owned; their strings are the body's */
    struct xm_tools may_call;
    const struct xm_tool *only; /* the tool that must be called; NULL: any */
    bool must_call, one;        /* must_call: a call is required; one: at most one call */
    yyjson_val *of_body;        /* the tools as the request has them */
    /* The member of each tool with its name (NULL: the tool itself), and the member with its
     * schema. */
    const char *member, *schema;
};

struct xm_wish {
    const struct xm_served *model;
    struct xm_sampling sampling;    /* the options of sampling.def, by their JSON names */
    struct xm_sampling_lists lists; /* owned lists of `sampling` */
    struct xm_grammar *grammar;     /* owned; NULL: any text */
    bool grammar_has_marks;         /* the grammar also covers tool calls */
    struct xm_wish_tools tools;
    uint64_t max_tokens; /* UINT64_MAX: as many as the context has room for */
    uint64_t min_tokens; /* number of tokens before a token may end the text */
    uint64_t n;          /* number of texts for each prompt */
    uint64_t likeliest;  /* number of likeliest tokens to report for each token */
    bool stream, wants_usage, wants_log_probs, ignores_ends;
    bool may_be_empty;                    /* max_tokens may be 0 */
    struct xm_slice stops[XM_MOST_STOPS]; /* strings in the body */
    size_t n_stops;
};

/* Sets the model's defaults, and a random seed. */
void xm_wish_init(struct xm_wish *w, const struct xm_served *m);
void xm_wish_free(struct xm_wish *w);
/* Reads the members for sampling, form and length, "n", "stream", "stream_options" and "stop". */
bool xm_wish_read(struct xm_wish *w, yyjson_val *body, struct xm_refusal *r);

/* Refuses more than one text, for APIs that have only one. */
bool xm_wish_is_one(const struct xm_wish *w, struct xm_refusal *r);

/* Read single members for one endpoint. Absent or null: *out is unchanged. `place` is the member's
 * place in the request and ends with its name. */
bool xm_wish_flag(yyjson_val *body, const char *place, bool *out, struct xm_refusal *r);
bool xm_wish_count(yyjson_val *body, const char *name, uint64_t least, uint64_t most,
                   uint64_t *out, struct xm_refusal *r);
/* *out becomes NULL if the member is absent or null. */
bool xm_wish_text(yyjson_val *body, const char *place, yyjson_val **out,
                  struct xm_refusal *r);
/* Reads stop strings: a string, or a list of strings. */
bool xm_wish_stops(struct xm_wish *w, yyjson_val *body, const char *name,
                   struct xm_refusal *r);
/* Reads the required form of the text from a member like OpenAI's "response_format". NULL: any
 * form. */
bool xm_wish_format(struct xm_wish *w, yyjson_val *format, const char *name,
                    struct xm_refusal *r);
/* Refuses the member if it is present, unless it is null, false, zero or empty. */
bool xm_wish_refuses(yyjson_val *body, const char *name, struct xm_refusal *r);

#ifdef __cplusplus
}
#endif
#endif
