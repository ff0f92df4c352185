/* SPDX-License-Identifier: Apache-2.0
 *
 * The request for a generated text (xm_generation) and its result (xm_generation_result). Sessions,
 * parallel texts and beam search share both.
 */
#ifndef XM_PLUGIN_PIPELINE_GENERATION_H
#define XM_PLUGIN_PIPELINE_GENERATION_H

#include "plugin/pipeline/prompt.h"
#include "plugin/text/answer.h"
#include "plugin/text/grammar.h"
#include "runtime/util/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_generation_result;

/* A piece of text that can no longer change: the text of a token, text that was held back until the
 * end, or an echoed prompt. */
struct xm_piece {
    int32_t id; /* the new token; -1: text held back to the end, or the prompt */
    enum xm_answer_part part; /* NOTHING: the token's text is held back or dropped */
    const char *text;         /* whole characters; valid during the call */
    size_t n;
    /* The result so far, including this token; valid during the call. */
    const struct xm_generation_result *so_far;
    /* of XM_ANSWER_CALL: the tool call, whose JSON is `text`; else NULL */
    const struct xm_tool_call *call;
};

struct xm_generation {
    struct xm_prompt prompt;
    uint64_t max_tokens; /* maximum number of generated tokens */
    uint64_t context;    /* maximum number of tokens of prompt and answer; 0: no bound */
    const struct xm_slice *stops; /* the text ends before the first stop string */
    size_t n_stops;
    bool ignore_ends;  /* end tokens do not end the text */
    bool keep_special; /* the text includes special tokens */
    bool keep_end;     /* the text includes the end token, unless it is a special token */
    /* it is the answer of a chat: thoughts and headers are not text (text/answer.h) */
    bool is_answer;
    /* If has_ends is set: the end tokens, instead of the package's. Owned by the caller. */
    const int32_t *ends;
    size_t n_ends;
    bool has_ends;
    /* End tokens, ignored or not, are not chosen among the first min_tokens generated tokens. */
    uint64_t min_tokens;
    bool keep_stop; /* the text includes the stop string that ended it */
    /* without keep_stop: drops blanks before the stop string, inside the token in which it
     * begins */
    bool drop_blanks;
    bool echo; /* the text begins with the prompt                         */
    /* The first generated tokens, which are given instead of chosen: a part of the prompt whose
     * probabilities the caller wants. They never end the text, and are echoed with the prompt.
     * Owned by the caller. Not for beam search. */
    const int32_t *forced;
    size_t n_forced;
    /* computes log-probabilities of the chosen tokens, from the model's own distribution, even with
     * a grammar */
    bool wants_log_probs;
    size_t n_likeliest; /* number of likeliest tokens to report for each token; 0: none */
    /* Prompt lookup (prompt_lookup.h): draft up to `guesses` tokens by matching the last `guess_by`
     * tokens; 0: off. The text is unchanged. Sessions only. */
    size_t guesses, guess_by;
    /* The grammar that the text must match; NULL: any text. In an answer, it does not apply to
     * thoughts. Owned by the caller. */
    const struct xm_grammar *grammar;
    /* The grammar covers the answer with its tool calls, and names the marks around them
     * (text/tool_grammar.h). False: the answer has no calls. */
    bool grammar_has_marks;
    /* For an answer: the tools that its calls may name; NULL: not known. Owned by the caller. */
    const struct xm_tools *tools;
    /* measures all but the prompt; NULL: not measured */
    struct xm_generation_clock *clock;
    /* Called for each generated token, and at the end if text was held back. Returning false ends
     * the text. NULL: not called. */
    bool (*on_piece)(const struct xm_piece *piece, void *ctx);
    void *ctx;
};

enum xm_finish {
    /* an end token, a stop string, the end of an answer or of the grammar */
    XM_FINISH_STOP,
    XM_FINISH_LENGTH,    /* max_tokens was reached */
    XM_FINISH_CONTEXT,   /* the context is full                                         */
    XM_FINISH_CANCELLED, /* by xm_session_cancel, xm_scheduler_cancel, or on_piece      */
    XM_FINISH_FAILED     /* the text of a scheduler's job failed; `error` says why */
};

/* Durations in seconds, by the monotonic clock. */
struct xm_generation_times {
    /* Without kernel builds. They include choosing tokens and the calls of on_piece. */
    double prompt_s, decode_s; /* prompt_s includes the first generated token */
    double build_s;            /* seconds of kernel builds during the generation */
    uint64_t prompt_tokens, decode_tokens; /* tokens fed; decode: after the first */
    /* tokens of prompts that were not fed, because the cache or files held their positions */
    uint64_t reused_tokens;
    uint64_t prompt_multiply_adds; /* multiply-adds with weights; 0: not known */
    /* bytes of weights read for all decode tokens; 0: not known */
    uint64_t decode_weight_bytes;
};

struct xm_compiled;
struct xm_infer;

/* The work that a model and a request have done so far, or the difference of two such values. */
struct xm_work {
    /* xm_now(); in a difference, seconds without those of kernel builds */
    double seconds;
    double built;                         /* seconds of kernel builds */
    uint64_t multiply_adds, weight_bytes; /* 0: not known */
};
/* xm_work_done returns the work so far, xm_work_between the difference of two. */
struct xm_work xm_work_done(struct xm_compiled *c, const struct xm_infer *r);
struct xm_work xm_work_between(const struct xm_work *before, const struct xm_work *now);

/* Natural logarithms of probabilities, one for each generated token, if requested. */
struct xm_log_probs {
    float *values; /* owned */
    size_t n, capacity;
};

struct xm_likely_token {
    int32_t id; /* -1: the vocabulary has no more tokens */
    float log_prob;
};
/* For each generated token the n_likeliest tokens, the likeliest first; at equal probability, the
 * lower id first. */
struct xm_likely_tokens {
    struct xm_likely_token *values; /* owned */
    size_t n, capacity;
};

/* Zero-initialise it; free it with xm_generation_result_free, also after a failure. */
struct xm_generation_result {
    struct xm_token_list prompt; /* the prompt's ids */
    struct xm_token_list ids;    /* generated ids, without the end token */
    struct xm_log_probs log_probs;
    struct xm_likely_tokens likeliest;
    struct xm_strbuf text;      /* the text of `ids`, without thoughts and calls */
    struct xm_tool_calls calls; /* tool calls of an answer */
    enum xm_finish finish;
    size_t stop;     /* number, from 1, of the stop string that ended the text; 0: none */
    uint64_t reused; /* tokens of the prompt whose positions the states already held */
    struct xm_error error; /* for XM_FINISH_FAILED */
    bool no_room; /* the text failed because the cache is too small for it, even alone */
    struct xm_generation_times times;
};
void xm_generation_result_free(struct xm_generation_result *r);

/* A list of ids, owned by the package or the generation. */
struct xm_end_ids {
    const int32_t *ids;
    size_t n;
};
/* Returns the end tokens, also if they are ignored. */
struct xm_end_ids xm_generation_ends(const struct xm_package *p,
                                     const struct xm_generation *asked);
/* Whether the id ends the text. Then it is not part of the text, except with keep_end. */
bool xm_generation_is_end(const struct xm_package *p, const struct xm_generation *asked,
                          int32_t id);
enum { XM_BARRED_LISTS = 2 };
/* Returns the ids that must not be chosen after `length` generated tokens: those that the package
 * suppresses, and below min_tokens the end tokens. Ids may be beyond the vocabulary. */
void xm_generation_barred(const struct xm_package *p, const struct xm_generation *asked,
                          uint64_t length, struct xm_end_ids out[XM_BARRED_LISTS]);

/* Appends the text of an echoed prompt to *out. */
enum xm_status xm_generation_echo(const struct xm_package *p,
                                  const struct xm_generation *asked,
                                  const int32_t *prompt, size_t n, struct xm_strbuf *out,
                                  struct xm_error *err);

/* The maximum number of generated tokens if prompt and answer have at most `context` tokens (0: no
 * bound). */
uint64_t xm_generation_room(uint64_t context, uint64_t prompt);

/* The maximum number of generated tokens: max_tokens, or fewer if the context becomes full
 * before. */
uint64_t xm_generation_most(const struct xm_generation *asked, uint64_t prompt);
/* XM_INVALID: the context has no room for a token after a prompt of `prompt` tokens. */
enum xm_status xm_generation_check_room(uint64_t context, uint64_t prompt,
                                        struct xm_error *err);

/* The maximum number of generated tokens for which memory is reserved at the start; longer texts
 * get more memory as they grow. */
enum { XM_MOST_ANNOUNCED = 4096 };

#ifdef __cplusplus
}
#endif
#endif
