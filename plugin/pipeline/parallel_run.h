/* SPDX-License-Identifier: Apache-2.0
 *
 * What texts in parallel share while they are made. For parallel*.c only.
 */
#ifndef XM_PLUGIN_PIPELINE_PARALLEL_RUN_H
#define XM_PLUGIN_PIPELINE_PARALLEL_RUN_H

#include "plugin/pipeline/chooser.h"
#include "plugin/pipeline/parallel.h"
#include "plugin/pipeline/text_stream.h"

struct xm_parallel {
    struct xm_compiled *compiled;
    struct xm_package *package; /* borrowed; may be NULL */
    struct xm_batch *batch;
    struct xm_chooser *chooser;
};

/* A text that is being made. */
struct xm_place {
    bool is_taken;                /* by a text                                */
    struct xm_sequence *sequence; /* NULL: it waits for room in the cache     */
    size_t text;
    uint64_t most; /* new tokens                               */
    struct xm_sampler *sampler;
    struct xm_text_stream stream; /* where there is a tokenizer               */
    struct xm_token_list again;   /* of one that has waited: all that it had  */
    const int32_t *ids;           /* to feed next: of the prompt, or `last` … */
    uint64_t n;
    uint64_t piece; /* … of them, in this run                   */
    int32_t last;
    uint32_t row; /* of the run whose logits it continues     */
    bool is_prompt, has_logits;
};

/* A run that goes on. */
struct xm_texts_run {
    struct xm_parallel *p;
    const struct xm_parallel_run *asked;
    struct xm_generation_result *out;
    struct xm_generation_times *times;
    struct xm_place *places;    /* [asked->places]; they do not move */
    struct xm_batch_row *rows;  /* [asked->places] */
    struct xm_choice *choices;  /* [asked->places]; tokens chosen in this step */
    struct xm_place **choosing; /* [asked->places]; the place of each choice   */
    uint64_t vocabulary;        /* size of the last rows of logits             */
    size_t next;                /* the next text to begin                      */
    bool has_text;              /* the model has a tokenizer                   */
    bool has_ended;             /* a text ended after a waiting text continued last */
};

/* ---- places (parallel_texts.c) ---- */

bool xm_place_runs(const struct xm_place *p);
bool xm_place_waits(const struct xm_place *p);
bool xm_place_has_unread_prompt(const struct xm_place *p);
/* Number of places for which `is_meant` returns true. */
size_t xm_places_count(const struct xm_texts_run *r,
                       bool (*is_meant)(const struct xm_place *));
/* The one of these places whose text has the lowest number; NULL: there is none. */
struct xm_place *xm_places_oldest(const struct xm_texts_run *r,
                                  bool (*is_meant)(const struct xm_place *));
uint64_t xm_place_past(const struct xm_place *p); /* positions that its sequence holds */
void xm_place_close(struct xm_place *p);

/* ---- texts that begin and end (parallel_texts.c) ---- */

const struct xm_token_list *xm_texts_prompt(const struct xm_texts_run *r, size_t text);
/* Announces to the device the most positions that each place will hold, if all texts have a
 * bound. */
enum xm_status xm_texts_announce(const struct xm_texts_run *r, struct xm_error *err);
/* Begins the next texts in the free places. */
enum xm_status xm_texts_fill_places(struct xm_texts_run *r, struct xm_error *err);
/* Begins further texts with the same prompt as forks of `first`, which has read it. */
enum xm_status xm_texts_fork(struct xm_texts_run *r, const struct xm_place *first,
                             struct xm_error *err);
/* Moves the decided text of the place's stream to the result. */
enum xm_status xm_texts_pass_on(struct xm_texts_run *r, const struct xm_place *p,
                                struct xm_error *err);
enum xm_status xm_texts_end(struct xm_texts_run *r, struct xm_place *p,
                            enum xm_finish finish, struct xm_error *err);
/* Ends a text with an error. It keeps its tokens; the other texts continue. */
void xm_texts_fail(struct xm_texts_run *r, struct xm_place *p,
                   const struct xm_error *why);
/* Ends all texts, begun or not, as cancelled. */
enum xm_status xm_texts_cancel(struct xm_texts_run *r, struct xm_error *err);

/* ---- tokens (parallel_choose.c) ---- */

/* Chooses a token for each text that has logits. A text whose choice fails ends; a returned failure
 * concerns all texts. */
enum xm_status xm_texts_choose(struct xm_texts_run *r, struct xm_error *err);

#endif
