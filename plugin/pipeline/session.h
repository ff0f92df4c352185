/* SPDX-License-Identifier: Apache-2.0
 *
 * A generation session: prompts to text, one after the other, on one sequence of a compiled model.
 *
 *     prompt ──► ids ──► feed what the states do not hold ──► logits ──► sampler ──► id ──► text
 *                                 ▲                                              │
 *                                 └──────────────────────────────────────────────┘
 *
 * A session owns the ids that the states hold, the sampler, and the incomplete text. Where a prompt
 * begins with the tokens that the states hold, as in a chat, only the rest is fed; the result is
 * that of a new session. Models compiled for sequences also share beginnings that other sessions
 * have computed. Nothing is printed.
 *
 * Used by one thread at a time; xm_session_cancel from any, and from a signal's handler.
 */
#ifndef XM_PLUGIN_PIPELINE_SESSION_H
#define XM_PLUGIN_PIPELINE_SESSION_H

#include "plugin/pipeline/generation.h"
#include "plugin/plugin.h"
#include "plugin/text/sampler.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_session;
struct xm_prefix_store;

/* Reads tokenizer and generation of the package, which must outlive the session. `package` may be
 * NULL, and a missing or unsupported tokenizer is no failure: then prompts and results are ids
 * only. A damaged tokenizer or generation is a failure. */
enum xm_status xm_session_create(struct xm_compiled *compiled, struct xm_package *package,
                                 struct xm_session **out, struct xm_error *err);
void xm_session_destroy(struct xm_session *s); /* NULL is allowed */

/* Applies from the next run on, and restarts the random numbers from its seed. Its lists must
 * outlive the session, or its next sampling. A new session takes the likeliest token. */
void xm_session_set_sampling(struct xm_session *s, const struct xm_sampling *sampling);

/* What a run has computed is kept in the store when it ends, and prompts begin with what the store
 * has. The store, of the same model, is the caller's until another call or the end. NULL: none, as
 * at first. Models that run as requests have none. */
void xm_session_set_prefix_store(struct xm_session *s, struct xm_prefix_store *p);

/* cancel ends the present run and every later one, until resume is called. */
void xm_session_cancel(struct xm_session *s);
void xm_session_resume(struct xm_session *s);

/* The infer request, for hooks and statistics; the session owns it. */
struct xm_infer *xm_session_request(const struct xm_session *s);

/* After a failure the result holds the tokens before it; their pieces have been passed on. A
 * cancelled run returns XM_OK. */
enum xm_status xm_session_run(struct xm_session *s, const struct xm_generation *run,
                              struct xm_generation_result *out, struct xm_error *err);

/* The number of leading ids of ids[n] that the states hold already; at most n - 1, because one has
 * to be fed. */
size_t xm_session_reusable(const struct xm_session *s, const int32_t *ids, size_t n);

/* The number of tokens that the states hold. */
size_t xm_session_held(const struct xm_session *s);

#ifdef __cplusplus
}
#endif
#endif
