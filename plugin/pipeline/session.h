/* SPDX-License-Identifier: Apache-2.0
 *
 * A generation session: turns prompts into text, one after the other, on one sequence of a compiled
 * model.
 *
 *     prompt ──► ids ──► feed what the states do not hold ──► logits ──► sampler ──► id ──► text
 *                                 ▲                                              │
 *                                 └──────────────────────────────────────────────┘
 *
 * A session owns the ids that the states hold, the sampler, and the incomplete text. If a prompt
 * begins with the tokens that the states hold, as in a chat, only the other tokens are fed; the
 * result equals that of a new session. Models compiled for sequences also share beginnings that
 * other sessions have computed. A session prints nothing.
 *
 * It is used by one thread at a time; any thread and a signal handler may call
 * xm_session_cancel.
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

/* Sets the sampling for later runs, and restarts the random numbers from its seed. Its lists must
 * outlive the session or the next call. A new session always takes the likeliest token. */
void xm_session_set_sampling(struct xm_session *s, const struct xm_sampling *sampling);

/* Saves the positions of each ended run in the store, and loads beginnings of prompts from it. The
 * store belongs to the same model; the caller owns it and keeps it until another call or the end.
 * NULL: no store, the default. No effect for models that run as requests. */
void xm_session_set_prefix_store(struct xm_session *s, struct xm_prefix_store *p);

/* cancel ends the current run and every later one, until resume is called. */
void xm_session_cancel(struct xm_session *s);
void xm_session_resume(struct xm_session *s);

/* The infer request, for hooks and statistics; the session owns it. */
struct xm_infer *xm_session_request(const struct xm_session *s);

/* Generates a text. After a failure the result holds the tokens generated before; their pieces have
 * been passed to on_piece. A cancelled run returns XM_OK. */
enum xm_status xm_session_run(struct xm_session *s, const struct xm_generation *run,
                              struct xm_generation_result *out, struct xm_error *err);

/* Returns how many of the first ids of ids[n] the states already hold; at most n - 1, because one
 * token must be fed. */
size_t xm_session_reusable(const struct xm_session *s, const int32_t *ids, size_t n);

/* The number of tokens that the states hold. */
size_t xm_session_held(const struct xm_session *s);

#ifdef __cplusplus
}
#endif
#endif
