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

#include "plugin/pipeline/prompt.h"
#include "plugin/plugin.h"
#include "plugin/text/answer.h"
#include "plugin/text/sampler.h"
#include "runtime/util/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_session;

/* Reads tokenizer and generation of the package, which must outlive the session. `package` may be
 * NULL, and a missing or unsupported tokenizer is no failure: then prompts and results are ids
 * only. A damaged tokenizer or generation is a failure. */
enum xm_status xm_session_create(struct xm_compiled *compiled, struct xm_package *package,
                                 struct xm_session **out, struct xm_error *err);
void xm_session_destroy(struct xm_session *s); /* NULL is allowed */

/* Applies from the next run on, and restarts the random numbers from its seed. A new session takes
 * the likeliest token. */
void xm_session_set_sampling(struct xm_session *s, const struct xm_sampling *sampling);

/* cancel ends the present run and every later one, until resume is called. */
void xm_session_cancel(struct xm_session *s);
void xm_session_resume(struct xm_session *s);

/* The infer request, for hooks and statistics; the session owns it. */
struct xm_infer *xm_session_request(const struct xm_session *s);

/* ---- a run --------------------------------------------------------------------------- */

/* Text that became certain: of a token, of text held back until the end, or of an echoed prompt. */
struct xm_piece {
    int32_t id;               /* -1: no token, the end, or the prompt               */
    enum xm_answer_part part; /* NOTHING: no text is certain yet, or it is dropped  */
    const char *text;         /* whole characters; valid during the call            */
    size_t n;
};

struct xm_generation {
    struct xm_prompt prompt;
    uint64_t max_tokens;          /* new ones                                        */
    uint64_t context;             /* most tokens of prompt and answer; 0: no bound    */
    const struct xm_slice *stops; /* the text ends before the first of them          */
    size_t n_stops;
    bool ignore_ends;  /* ids that end a text do not end it         */
    bool keep_special; /* special tokens are text, too              */
    bool keep_end;     /* so is the id that ends the text, where it is no special token */
    bool is_answer;    /* of a chat: thoughts and headers are not text (text/answer.h) */
    /* With has_ends: the ids that end a text, in place of the package's. The caller owns them. */
    const int32_t *ends;
    size_t n_ends;
    bool has_ends;
    /* Ids that end a text, ignored or not, are not chosen among the first min_tokens new tokens. */
    uint64_t min_tokens;
    bool keep_stop;       /* the stop string that ended the text is part of it       */
    bool drop_blanks;     /* else blanks of its first token before it are dropped too  */
    bool echo;            /* the text begins with the prompt                         */
    bool wants_log_probs; /* of the tokens that are chosen                           */
    /* Prompt lookup (prompt_lookup.h): draft up to `guesses` tokens by matching the last `guess_by`
     * tokens; 0: off. The text is unchanged. Sessions only. */
    size_t guesses, guess_by;
    struct xm_generation_clock *clock; /* of all but the prompt; NULL: not measured   */
    /* Called for each new token, and at the end where text was held back. Returning false ends the
     * text. NULL: not called. */
    bool (*on_piece)(const struct xm_piece *piece, void *ctx);
    void *ctx;
};

enum xm_finish {
    XM_FINISH_STOP,      /* an id that ends a text, a stop string, the end of an answer */
    XM_FINISH_LENGTH,    /* max_tokens                                                  */
    XM_FINISH_CONTEXT,   /* the context is full                                         */
    XM_FINISH_CANCELLED, /* by xm_session_cancel, or by on_piece                       */
    XM_FINISH_FAILED     /* one of texts in parallel: `error` says why                 */
};

/* Seconds of the monotonic clock. */
struct xm_generation_times {
    /* Without kernel builds. A time ends when its tokens are chosen and on_piece has returned. */
    double prompt_s, decode_s;             /* prompt: with the first new token   */
    double build_s;                        /* building kernels in the meantime   */
    uint64_t prompt_tokens, decode_tokens; /* fed; decode: after the first       */
    uint64_t prompt_multiply_adds;         /* with weights; 0: not known         */
    uint64_t decode_weight_bytes;          /* read for all tokens; 0: not known  */
};

/* Natural logarithms, one for each of the ids, where they are wanted. */
struct xm_log_probs {
    float *values; /* owned */
    size_t n, capacity;
};

/* Zero-initialise; xm_generation_result_free afterwards, also after a failure. */
struct xm_generation_result {
    struct xm_token_list prompt; /* its ids                                     */
    struct xm_token_list ids;    /* new ones, without the one that ends the text */
    struct xm_log_probs log_probs;
    struct xm_strbuf text; /* of them, thoughts left out                  */
    enum xm_finish finish;
    uint64_t reused;       /* ids of the prompt that the states held already */
    struct xm_error error; /* of XM_FINISH_FAILED                      */
    struct xm_generation_times times;
};
void xm_generation_result_free(struct xm_generation_result *r);

/* After a failure the result holds the tokens before it; their pieces have been passed on. A
 * cancelled run returns XM_OK. */
enum xm_status xm_session_run(struct xm_session *s, const struct xm_generation *run,
                              struct xm_generation_result *out, struct xm_error *err);

/* The number of leading ids of ids[n] that the states hold already; at most n - 1, because one has
 * to be fed. */
size_t xm_session_reusable(const struct xm_session *s, const int32_t *ids, size_t n);

/* Appends the text of an echoed prompt to *out. */
enum xm_status xm_generation_echo(const struct xm_package *p,
                                  const struct xm_generation *asked,
                                  const struct xm_token_list *prompt,
                                  struct xm_strbuf *out, struct xm_error *err);

/* The number of tokens that the states hold. */
size_t xm_session_held(const struct xm_session *s);

/* The number of new tokens that fit into `context` tokens (0: no bound) after a prompt of `prompt`
 * tokens. A run fails where it is 0. */
uint64_t xm_generation_room(uint64_t context, uint64_t prompt);

/* Most new tokens that memory is reserved for at the start; longer texts get more as they grow. */
enum { XM_MOST_ANNOUNCED = 4096 };

#ifdef __cplusplus
}
#endif
#endif
