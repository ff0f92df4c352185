/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of a generated text, and what comes of it. Sessions, texts in parallel and beams
 * share both.
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

/* Text that became certain: of a token, of text held back until the end, or of an echoed prompt. */
struct xm_piece {
    int32_t id;               /* -1: no token, the end, or the prompt               */
    enum xm_answer_part part; /* NOTHING: no text is certain yet, or it is dropped  */
    const char *text;         /* whole characters; valid during the call            */
    size_t n;
    /* The text's ids, with this one, and what is noted of them; valid during the call. */
    const struct xm_generation_result *so_far;
    const struct xm_tool_call
        *call; /* of XM_ANSWER_CALL, whose text is it as JSON; else NULL */
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
    bool keep_stop;   /* the stop string that ended the text is part of it       */
    bool drop_blanks; /* else blanks of its first token before it are dropped too  */
    bool echo;        /* the text begins with the prompt                         */
    /* The first new tokens, which are not chosen: a part of the prompt whose probabilities are
     * wanted. They end nothing, and are echoed with the prompt. The caller's. Not for beams. */
    const int32_t *forced;
    size_t n_forced;
    /* of the tokens that are chosen; of the model's own distribution, also with a grammar */
    bool wants_log_probs;
    size_t n_likeliest; /* and of so many likeliest tokens beside each; 0: of none */
    /* Prompt lookup (prompt_lookup.h): draft up to `guesses` tokens by matching the last `guess_by`
     * tokens; 0: off. The text is unchanged. Sessions only. */
    size_t guesses, guess_by;
    /* The text must match it; NULL: any text. Of an answer, thoughts are free. The caller
     * owns it. */
    const struct xm_grammar *grammar;
    /* It is of an answer with its calls, and names the marks around them (text/tool_grammar.h);
     * else the answer has no calls. */
    bool grammar_has_marks;
    /* Of an answer: what its calls may name; the caller's. NULL: not known. */
    const struct xm_tools *tools;
    struct xm_generation_clock *clock; /* of all but the prompt; NULL: not measured   */
    /* Called for each new token, and at the end where text was held back. Returning false ends the
     * text. NULL: not called. */
    bool (*on_piece)(const struct xm_piece *piece, void *ctx);
    void *ctx;
};

enum xm_finish {
    /* an id that ends a text, a stop string, the end of an answer or of the grammar */
    XM_FINISH_STOP,
    XM_FINISH_LENGTH,    /* max_tokens                                                  */
    XM_FINISH_CONTEXT,   /* the context is full                                         */
    XM_FINISH_CANCELLED, /* by xm_session_cancel, xm_scheduler_cancel, or on_piece      */
    XM_FINISH_FAILED     /* of a scheduler's job: `error` says why                      */
};

/* Seconds of the monotonic clock. */
struct xm_generation_times {
    /* Without kernel builds. A time ends when its tokens are chosen and on_piece has returned. */
    double prompt_s, decode_s;             /* prompt: with the first new token   */
    double build_s;                        /* building kernels in the meantime   */
    uint64_t prompt_tokens, decode_tokens; /* fed; decode: after the first       */
    uint64_t reused_tokens; /* of prompts, not fed: the cache, or files, had them */
    uint64_t prompt_multiply_adds; /* with weights; 0: not known         */
    uint64_t decode_weight_bytes;  /* read for all tokens; 0: not known  */
};

struct xm_compiled;
struct xm_infer;

/* Work that a model and a request have done so far; between two such, the work of the meantime. */
struct xm_work {
    double
        seconds;  /* as xm_now() counts; between two, without those of building kernels */
    double built; /* seconds in which kernels were built                                */
    uint64_t multiply_adds, weight_bytes; /* 0: not known */
};
struct xm_work xm_work_done(struct xm_compiled *c, const struct xm_infer *r);
struct xm_work xm_work_between(const struct xm_work *before, const struct xm_work *now);

/* Natural logarithms, one for each of the ids, where they are wanted. */
struct xm_log_probs {
    float *values; /* owned */
    size_t n, capacity;
};

struct xm_likely_token {
    int32_t id; /* -1: the vocabulary has no more tokens */
    float log_prob;
};
/* n_likeliest for each of the ids, the likeliest first; of equal ones, the lower id. */
struct xm_likely_tokens {
    struct xm_likely_token *values; /* owned */
    size_t n, capacity;
};

/* Zero-initialise; xm_generation_result_free afterwards, also after a failure. */
struct xm_generation_result {
    struct xm_token_list prompt; /* its ids                                     */
    struct xm_token_list ids;    /* new ones, without the one that ends the text */
    struct xm_log_probs log_probs;
    struct xm_likely_tokens likeliest;
    struct xm_strbuf text;      /* of them, thoughts and calls left out        */
    struct xm_tool_calls calls; /* of tools, in an answer                 */
    enum xm_finish finish;
    size_t stop;           /* number from 1 of the stop string that ended it; 0: none   */
    uint64_t reused;       /* ids of the prompt that the states held already */
    struct xm_error error; /* of XM_FINISH_FAILED                      */
    bool no_room; /* it failed because the cache is too small for this text alone */
    struct xm_generation_times times;
};
void xm_generation_result_free(struct xm_generation_result *r);

/* Points into the package or the generation, which own the ids. */
struct xm_end_ids {
    const int32_t *ids;
    size_t n;
};
/* The ids that end a text, or would if they were not ignored. */
struct xm_end_ids xm_generation_ends(const struct xm_package *p,
                                     const struct xm_generation *asked);
/* Whether the id ends the text; it is then no part of the text. */
bool xm_generation_is_end(const struct xm_package *p, const struct xm_generation *asked,
                          int32_t id);
enum { XM_BARRED_LISTS = 2 };
/* The ids that must not be chosen after `length` new tokens: those that the package suppresses, and
 * below min_tokens those that end a text. Ids may be beyond the vocabulary. */
void xm_generation_barred(const struct xm_package *p, const struct xm_generation *asked,
                          uint64_t length, struct xm_end_ids out[XM_BARRED_LISTS]);

/* Appends the text of an echoed prompt to *out. */
enum xm_status xm_generation_echo(const struct xm_package *p,
                                  const struct xm_generation *asked,
                                  const int32_t *prompt, size_t n, struct xm_strbuf *out,
                                  struct xm_error *err);

/* The number of new tokens that fit into `context` tokens (0: no bound) after a prompt of `prompt`
 * tokens. */
uint64_t xm_generation_room(uint64_t context, uint64_t prompt);

/* Most new tokens that it allows: max_tokens, or fewer where the context is full before. */
uint64_t xm_generation_most(const struct xm_generation *asked, uint64_t prompt);
/* XM_INVALID: there is no room for a new token after a prompt of `prompt` tokens. */
enum xm_status xm_generation_check_room(uint64_t context, uint64_t prompt,
                                        struct xm_error *err);

/* Most new tokens that memory is reserved for at the start; longer texts get more as they grow. */
enum { XM_MOST_ANNOUNCED = 4096 };

#ifdef __cplusplus
}
#endif
#endif
