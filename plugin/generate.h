/* SPDX-License-Identifier: Apache-2.0
 *
 * Text generation over an infer request: one prompt, one sequence, token by token.
 *
 * Feeds input_ids, attention_mask, position_ids and beam_idx as exported language models
 * name them (inputs that a model does not have are left out), samples from the last row
 * of logits.
 */
#ifndef XM_PLUGIN_GENERATE_H
#define XM_PLUGIN_GENERATE_H

#include "plugin/plugin.h"
#include "plugin/text/sampler.h"
#include "plugin/text/token_list.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_generator; /* one request with its sampler; one thread at a time */

enum xm_status xm_generator_create(struct xm_compiled *compiled,
                                   const struct xm_sampling *sampling,
                                   struct xm_generator **out, struct xm_error *err);
void xm_generator_destroy(struct xm_generator *g); /* NULL is allowed */

/* Feeds tokens behind what the state holds; the logits of the last one are kept. XM_NOT_FINITE:
 * a row of them is not a distribution; the sentence names the position and what to do. */
enum xm_status xm_generator_feed(struct xm_generator *g, const int32_t *ids, uint64_t n,
                                 struct xm_error *err);
/* The next token from the kept logits; in a dry run (runtime/dry_run.h) always 0. */
enum xm_status xm_generator_sample(struct xm_generator *g, int32_t *id,
                                   struct xm_error *err);
/* The logits of the last feed: rows x vocabulary of f32; rows is the number of tokens
 * fed, or 1 when the program was compiled for the last row only. Valid until the next
 * feed. */
const float *xm_generator_logits(const struct xm_generator *g, uint64_t *rows,
                                 uint64_t *vocabulary);
void xm_generator_reset(struct xm_generator *g);
/* Takes back all positions from `past` on, or every one where the request cannot cut its states:
 * the request's `past` says what is left. Penalties forget those tokens, too. */
void xm_generator_rewind(struct xm_generator *g, uint64_t past);
struct xm_infer *xm_generator_request(struct xm_generator *g);

/* Times and counts of one generation. Seconds of the monotonic clock. */
struct xm_generation_times {
    double prompt_s, decode_s;             /* without what building kernels took */
    double build_s;                        /* building kernels in the meantime   */
    uint64_t prompt_tokens, decode_tokens; /* decode: tokens after the first */
    uint64_t prompt_multiply_adds;         /* with weights; 0: not known */
    uint64_t decode_weight_bytes;          /* read for all tokens; 0: not known */
};

struct xm_generation {
    const int32_t *prompt;
    uint64_t n_prompt;
    uint64_t max_tokens;
    const int32_t *stop_ids; /* end of text; n_stop 0: never */
    uint32_t n_stop;
    /* Called with each new token; false stops. NULL: none. */
    bool (*on_token)(int32_t id, void *ctx);
    void *ctx;
};
/* Prompt, then tokens until one stops or max_tokens; new ids (a stop id is not included)
 * are appended to `out`. */
enum xm_status xm_generator_run(struct xm_generator *g, const struct xm_generation *run,
                                struct xm_token_list *out,
                                struct xm_generation_times *times, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
