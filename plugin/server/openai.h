/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions shared by the endpoints of OpenAI's API: the common members of answers, choices,
 * probabilities, usage.
 */
#ifndef XM_PLUGIN_SERVER_OPENAI_H
#define XM_PLUGIN_SERVER_OPENAI_H

#include "plugin/server/completion.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds a NUL-terminated text; NULL: adds null. */
void xm_openai_text(struct xm_json_out *j, yyjson_mut_val *o, const char *key,
                    const char *text);
void xm_openai_strbuf(struct xm_json_out *j, yyjson_mut_val *o, const char *key,
                      const struct xm_strbuf *text);
/* Adds id, object, created, model and system_fingerprint. */
void xm_openai_head(const struct xm_completion *c, struct xm_json_out *j,
                    const char *object);
void xm_openai_usage(const struct xm_completion *c, struct xm_json_out *j);
/* Begins an event of a stream with one choice and returns the choice, to which the caller adds
 * members. */
yyjson_mut_val *xm_openai_chunk(const struct xm_completion_text *t, struct xm_json_out *j,
                                const char *object);
/* Appends the event with the usage, if it is wanted, and the final event. */
void xm_openai_finish(struct xm_completion *c, const char *object);
void xm_openai_fail(struct xm_completion *c, const struct xm_refusal *why);
/* Adds the members token, logprob and bytes of an id. */
void xm_openai_token(const struct xm_completion *c, struct xm_json_out *j,
                     yyjson_mut_val *o, int32_t id, double log_prob);

/* Reads a member of a body that is a text, a list of token ids, or a list of these. */
struct xm_openai_prompts {
    const char *name, *plural; /* "prompt", "prompts" */
    size_t most;
    const struct xm_served *model;
    /* Called for each prompt in order; `where` is its place in the body. The prompt's strings are
     * valid until the reading function returns. Returning false: the prompt was refused. */
    bool (*add)(void *ctx, const struct xm_prompt *prompt, const char *where,
                struct xm_refusal *r);
    void *ctx;
};
bool xm_openai_read_prompts(const struct xm_openai_prompts *p, yyjson_val *body,
                            struct xm_refusal *r);

#ifdef __cplusplus
}
#endif
#endif
