/* SPDX-License-Identifier: Apache-2.0
 *
 * The intake of a run: rows of tokens, one row for each sequence, cut into chunks. A request makes
 * an intake of its inputs' tensors, with padding or without it. A batch of sequences adds rows of
 * ids; the inputs of each chunk are then made of the ids.
 *
 * The rows of a chunk lie in its inputs in one of two ways (a chunk has at most 4 tokens in this
 * picture; '|' separates chunks):
 *
 *     side by side, as in the tensors        packed, one after the other in one row
 *
 *         a b c   ──►   a b | c                  . . a b   ──►   a b d e | f g
 *         d e f         d e | f                  d e f g
 *
 * In a chunk of a batch, rows with few tokens left come before the others, because attention has
 * kernels for few tokens, which it uses for the first rows only. The sequences grow chunk by chunk,
 * and are restored if the run fails. Only intake.c writes to an intake.
 */
#ifndef XM_PLUGIN_GPU_INTAKE_H
#define XM_PLUGIN_GPU_INTAKE_H

#include "plugin/feeds.h"
#include "plugin/kv/kv_sequence.h"
#include "plugin/lower/program.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_intake_row {
    struct xm_kv_sequence *sequence; /* borrowed; no sequence is in two rows */
    /* [n], borrowed: later prompts can find the pages by them; NULL: they must not */
    const int32_t *ids;
    uint64_t n;       /* tokens */
    uint64_t wanted;  /* number of last tokens whose results are wanted */
    uint64_t padding; /* positions before the tokens, which are counted and not stored */
    /* `at`: index of the row's first token in the tensors; `result`: index of its first wanted
     * result in the results. Both count as if all rows were concatenated to one. */
    uint64_t at, result;
    uint64_t done; /* tokens in earlier chunks */
    struct {       /* the sequence before the run, to restore it */
        uint64_t past, padding;
        struct xm_kv_sequence *copy; /* NULL: the sequence can be truncated to `past` */
    } before;
};

/* The tokens of a chunk. Part k is the next tokens[k] tokens, after the `done` ones, of row
 * row[k]. */
struct xm_intake_chunk {
    uint32_t *row, *tokens;            /* [n] */
    struct xm_kv_sequence **sequences; /* [n]: the rows' sequences */
    uint32_t n;
    uint64_t length; /* value of the symbol `tokens` */
    uint64_t wanted; /* number of wanted results of all parts */
};

/* An intake; all zeros: an empty one. */
struct xm_intake {
    /* [input], borrowed; NULL: the rows have ids instead */
    const struct xm_host_tensor *tensors;
    const uint32_t *ports; /* borrowed; if the rows have ids: [enum xm_feed] the input */
    struct xm_intake_row *rows;
    uint32_t n, room;
    bool is_packed;
    bool is_mixed; /* the chunks of packed rows may have tokens of several rows */
    /* most tokens of a chunk, of all rows; UINT64_MAX: one chunk */
    uint64_t chunk_tokens;
    uint64_t tokens;    /* number of tokens of each row of the tensors, with padding */
    uint64_t done, all; /* tokens before the chunk; tokens of the run, along `tokens` */
    uint64_t wanted;    /* number of wanted results of the run, if it is packed */
    uint32_t n_begun;   /* rows whose sequences must be restored after a failure */
    uint32_t n_chunks;  /* chunks begun */
    struct xm_intake_chunk chunk;
};

/* Returns the most tokens of a chunk, of all rows together; UINT64_MAX: no limit, because prompts
 * of this program must not be cut (xm_program.can_chunk). */
uint64_t xm_intake_chunk_tokens(const struct xm_program *p);
/* Makes *f the intake of the tensors, which have `tokens` tokens of each of n sequences, side by
 * side. n is 0 if the program has no KV cache. */
enum xm_status xm_intake_of_tensors(struct xm_intake *f, const struct xm_program *p,
                                    const struct xm_host_tensor *tensors, uint64_t tokens,
                                    struct xm_kv_sequence *const *sequences, uint32_t n,
                                    struct xm_error *err);
/* Leaves out the first `padding` tokens (0 is allowed) of row i, which are padding. All rows are
 * packed from then on. */
void xm_intake_leave_out(struct xm_intake *f, uint32_t i, uint64_t padding);
/* Makes *f an empty intake with room for n packed rows of ids. ports[feed]: the input for this feed
 * (enum xm_feed); UINT32_MAX: the model has no such input. */
enum xm_status xm_intake_of_ids(struct xm_intake *f, const struct xm_program *p,
                                const uint32_t *ports, uint32_t n, struct xm_error *err);
/* Adds a row: n tokens of a sequence. The results of its last `wanted` tokens are wanted. */
void xm_intake_add(struct xm_intake *f, struct xm_kv_sequence *sequence,
                   const int32_t *ids, uint64_t n, uint64_t wanted);
void xm_intake_free(struct xm_intake *f);
/* Returns whether the inputs of chunks differ from the run's tensors: the run is packed, or has
 * several chunks. */
bool xm_intake_is_cut(const struct xm_intake *f);

/* Begins a run: saves the state of the sequences, adds the rows' padding to theirs, and, if the run
 * has several chunks, announces its positions to `pool`. After a failure call xm_intake_cancel.
 * XM_INVALID: a sequence is in two rows. */
enum xm_status xm_intake_begin(struct xm_intake *f, struct xm_kv_pool *pool,
                               struct xm_error *err);
/* Chooses the tokens of the next chunk; false: all tokens have run. Rows side by side have at least
 * one chunk, which may have no tokens. */
bool xm_intake_next(struct xm_intake *f);
bool xm_intake_is_last(const struct xm_intake *f);
/* Returns the number of positions before the chunk, the value of the symbol `past`. 0 if the chunk
 * may have several sequences of different lengths: then nothing uses the symbol. */
uint64_t xm_intake_past(const struct xm_intake *f);
/* Returns how many results of part k of the chunk are wanted, those of its last tokens; *first: the
 * index of the first of them in the results (see xm_intake_row.result). */
uint64_t xm_intake_wanted(const struct xm_intake *f, uint32_t k, uint64_t *first);
/* Reserves pages for the chunk's tokens in their sequences. */
enum xm_status xm_intake_reserve(struct xm_intake *f, struct xm_queue *q,
                                 struct xm_error *err);
/* Call after the chunk has run: makes its tokens part of the sequences. */
void xm_intake_commit(struct xm_intake *f);
/* Restores all sequences to their state before the run, no command of which may be in the queue. */
void xm_intake_cancel(struct xm_intake *f, struct xm_kv_pool *pool);
/* Ends a run that has succeeded, or that xm_intake_cancel has cancelled: frees the saved states. */
void xm_intake_end(struct xm_intake *f);

#ifdef __cplusplus
}
#endif
#endif
