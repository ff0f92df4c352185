/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request wishes of its texts: members of its body that all endpoints share, by the names
 * that OpenAI's and other servers' clients have for them. Members that nobody here knows are left
 * alone; those that would change the text, and are not supported, are refused by name.
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
    XM_MOST_LIKELIEST = 20, /* tokens beside each */
};

/* tools.h */
struct xm_wish_tools {
    struct xm_tool *all; /* owned; their texts are the body's */
    struct xm_tools may_call;
    const struct xm_tool *only; /* the one that is to be called; NULL: any */
    bool must_call, one;        /* one: call at most */
    yyjson_val *of_body;        /* as the request has them */
    /* In each of these, the member that has the name, NULL: itself; and the schema's name. */
    const char *member, *schema;
};

struct xm_wish {
    const struct xm_served *model;
    struct xm_sampling sampling;    /* of sampling.def, by its names in JSON */
    struct xm_sampling_lists lists; /* of it, owned */
    struct xm_grammar *grammar;     /* owned; NULL: any text */
    bool grammar_has_marks;         /* it is of calls, too */
    struct xm_wish_tools tools;
    uint64_t max_tokens; /* UINT64_MAX: what the context has room for */
    uint64_t min_tokens; /* before a token may end the text */
    uint64_t n;          /* texts of each prompt */
    uint64_t likeliest;  /* tokens beside each   */
    bool stream, wants_usage, wants_log_probs, ignores_ends;
    bool may_be_empty;                    /* no new tokens may be asked for */
    struct xm_slice stops[XM_MOST_STOPS]; /* in the body */
    size_t n_stops;
};

/* The defaults of the model, and a seed of its own. */
void xm_wish_init(struct xm_wish *w, const struct xm_served *m);
void xm_wish_free(struct xm_wish *w);
/* Reads the members of sampling, form and length, "n", "stream", "stream_options" and "stop". */
bool xm_wish_read(struct xm_wish *w, yyjson_val *body, struct xm_refusal *r);

/* Whether it is for one text, as some APIs have no others. */
bool xm_wish_is_one(const struct xm_wish *w, struct xm_refusal *r);

/* Single members, for those of one endpoint. Absent or null: *out is left alone. The place
 * of a member in the request ends with its name. */
bool xm_wish_flag(yyjson_val *body, const char *place, bool *out, struct xm_refusal *r);
bool xm_wish_count(yyjson_val *body, const char *name, uint64_t least, uint64_t most,
                   uint64_t *out, struct xm_refusal *r);
/* *out NULL: absent, or null. */
bool xm_wish_text(yyjson_val *body, const char *place, yyjson_val **out,
                  struct xm_refusal *r);
/* A string, or a list of them. */
bool xm_wish_stops(struct xm_wish *w, yyjson_val *body, const char *name,
                   struct xm_refusal *r);
/* What the text has to be: of OpenAI's form of a "response_format", named so; NULL: any. */
bool xm_wish_format(struct xm_wish *w, yyjson_val *format, const char *name,
                    struct xm_refusal *r);
/* Refuses the member where it is there, and neither null nor false, zero or empty. */
bool xm_wish_refuses(yyjson_val *body, const char *name, struct xm_refusal *r);

#ifdef __cplusplus
}
#endif
#endif
