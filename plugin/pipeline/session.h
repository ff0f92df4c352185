/* SPDX-License-Identifier: Apache-2.0
 *
 * A generation session: prompts to text, one after the other, on one sequence of a compiled model.
 *
 *     prompt ──► ids ──► feed what the states do not hold ──► logits ──► sampler ──► id ──► text
 *                                 ▲                                              │
 *                                 └──────────────────────────────────────────────┘
 *
 * Each thing has one owner here: the ids that the states hold, the sampler, the text that is not
 * complete yet. A prompt that begins as the one before it went on (a chat) has only the rest of it
 * fed, and gives what a new session would; so does one whose beginning another session of the model
 * has computed, where it has been compiled for sequences. Nothing is printed.
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

/* The package, which outlives the session, may be NULL, or have no tokenizer, or none that is
 * known: then there are ids only. Tokenizer and generation are read of it; a damaged one is an
 * error. */
enum xm_status xm_session_create(struct xm_compiled *compiled, struct xm_package *package,
                                 struct xm_session **out, struct xm_error *err);
void xm_session_destroy(struct xm_session *s); /* NULL is allowed */

/* From the next run on; the random numbers begin anew. Until then the likeliest token is taken. */
void xm_session_set_sampling(struct xm_session *s, const struct xm_sampling *sampling);

/* Ends the run that goes on, and each that begins before the other is called. */
void xm_session_cancel(struct xm_session *s);
void xm_session_resume(struct xm_session *s);

/* For those who hook into it, or ask what it cost. */
struct xm_infer *xm_session_request(const struct xm_session *s);

/* ---- a run --------------------------------------------------------------------------- */

/* What comes of a token, or at the end of what was held back, or first of an echoed prompt. */
struct xm_piece {
    int32_t id;               /* -1: no token, the end, or the prompt               */
    enum xm_answer_part part; /* NOTHING: no text is certain yet, or it is nobody's */
    const char *text;         /* whole characters; valid during the call            */
    size_t n;
};

struct xm_generation {
    struct xm_prompt prompt;
    uint64_t max_tokens;          /* new ones                                        */
    uint64_t context;             /* at most so many of prompt and answer; 0: no bound */
    const struct xm_slice *stops; /* the text ends before the first of them          */
    size_t n_stops;
    bool ignore_ends;  /* go on behind ids that end a text          */
    bool keep_special; /* special tokens are text, too              */
    bool keep_end;     /* so is the id that ends the text, where it is no special token */
    bool is_answer;    /* of a chat: thoughts and headers are not text (text/answer.h) */
    /* Ids that end a text, where has_ends; else the package's. The caller's. */
    const int32_t *ends;
    size_t n_ends;
    bool has_ends;
    /* None of them, ignored or not, is chosen before so many new ones. */
    uint64_t min_tokens;
    bool keep_stop;       /* the stop string that ended the text is part of it       */
    bool drop_blanks;     /* else its first token's blanks before it are not, either */
    bool echo;            /* the text begins with the prompt                         */
    bool wants_log_probs; /* of the tokens that are chosen                           */
    /* Tokens that are guessed from what came behind the last ones before (prompt_lookup.h), so many
     * at a time, by so many last ones; 0: none. Of a session's text, which is the same. */
    size_t guesses, guess_by;
    struct xm_generation_clock *clock; /* of all but the prompt; NULL: nobody asks    */
    /* Called for each new token, and at the end where something was held back. False: no more
     * tokens. NULL: nobody looks. */
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
    /* Without building kernels. A time ends when its tokens have been chosen and passed on. */
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

/* What has come before a failure is in the result, and its pieces have been passed on. A cancelled
 * run has not failed. */
enum xm_status xm_session_run(struct xm_session *s, const struct xm_generation *run,
                              struct xm_generation_result *out, struct xm_error *err);

/* How many of a prompt's ids, from the first on, the states hold already; one at least is left to
 * feed. */
size_t xm_session_reusable(const struct xm_session *s, const int32_t *ids, size_t n);

/* Appends what an echoed prompt is in a text. */
enum xm_status xm_generation_echo(const struct xm_package *p,
                                  const struct xm_generation *asked,
                                  const struct xm_token_list *prompt,
                                  struct xm_strbuf *out, struct xm_error *err);

/* How many tokens the states hold. */
size_t xm_session_held(const struct xm_session *s);

/* How many tokens a context (0: without bound) has room for behind a prompt of so many. A prompt
 * that leaves none is an error of the run. */
uint64_t xm_generation_room(uint64_t context, uint64_t prompt);

/* New tokens that memory is taken for at once; longer texts get it as they grow. */
enum { XM_MOST_ANNOUNCED = 4096 };

#ifdef __cplusplus
}
#endif
#endif
