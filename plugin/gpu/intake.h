/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run takes in: tokens of sequences, cut into chunks. A request, with padding or without,
 * and a batch of sequences each describe a run by one.
 *
 * The tokens lie in the tensors of the model's inputs in one of two ways, and so do those of a
 * chunk, of which each has at most 4 here:
 *
 *     side by side, a sequence each row      packed, stretches of rows one after the other
 *
 *         a b c   ──►   a b | c                  . . a b   ──►   a b d e | f g
 *         d e f         d e | f                  d e f g
 *
 * The sequences grow chunk by chunk, and are restored if the run fails.
 */
#ifndef XM_PLUGIN_GPU_INTAKE_H
#define XM_PLUGIN_GPU_INTAKE_H

#include "plugin/gpu/kv/kv_sequence.h"
#include "plugin/gpu/program.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_intake_row {
    struct xm_kv_sequence *sequence; /* borrowed; no sequence is in two rows */
    const int32_t
        *ids;         /* [n]: its pages may be found by them later; NULL: they must not */
    uint64_t n;       /* tokens */
    uint64_t wanted;  /* number of last tokens whose results are wanted */
    uint64_t padding; /* positions before the tokens that are counted and not stored */
    /* Packed: the place of the first token in the tensors, and of the first wanted result in the
     * results, both as if these had one row. */
    uint64_t at, result;
    uint64_t done; /* tokens in earlier chunks */
    struct {
        uint64_t past, padding;
        struct xm_kv_sequence *copy; /* NULL: the sequence can be truncated to `past` */
    } before;
};

/* The tokens of a chunk: of each row in `row` as many as `tokens` says, after its `done` ones. */
struct xm_intake_chunk {
    uint32_t *row, *tokens;
    struct xm_kv_sequence **sequences;
    uint32_t n;
    uint64_t length; /* value of the symbol `tokens` */
    uint64_t wanted; /* results of all rows */
};

/* All zeros: an empty one. */
struct xm_intake {
    const struct xm_host_tensor *tensors; /* borrowed, by port: inputs of the whole run */
    struct xm_intake_row *rows;
    uint32_t n, room;
    bool is_packed;
    bool is_mixed;         /* packed chunks may have tokens of several rows */
    bool few_tokens_first; /* packed: as attention takes them; else in the rows' order */
    uint64_t
        chunk_tokens;   /* most tokens of a chunk, of all rows; UINT64_MAX: all are one */
    uint64_t tokens;    /* side by side, and before padding was left out: of each row */
    uint64_t done, all; /* tokens before the chunk, and of the run, along `tokens` */
    uint32_t n_begun;   /* rows whose sequences are to be restored after a failure */
    uint32_t n_chunks;  /* begun */
    struct xm_intake_chunk chunk;
};

/* Most tokens of a chunk, of all rows together; UINT64_MAX: no limit, because tokens of a sequence
 * may see later ones. */
uint64_t xm_intake_chunk_tokens(const struct xm_program *p);
/* Makes *f one of n empty rows for the program, side by side and with nothing done. */
enum xm_status xm_intake_open(struct xm_intake *f, const struct xm_program *p, uint32_t n,
                              struct xm_error *err);
void xm_intake_free(struct xm_intake *f);
/* Whether chunks have other tensors than the run. */
bool xm_intake_is_cut(const struct xm_intake *f);

/* Begins a run: notes how the sequences are, counts their padding, and announces to `pool` how long
 * those will be that go in several chunks. After a failure call xm_intake_cancel. */
enum xm_status xm_intake_begin(struct xm_intake *f, struct xm_kv_pool *pool,
                               struct xm_error *err);
/* Chooses the tokens of the next chunk; false: all have run. Side by side, there is one chunk at
 * least, which may have no tokens. */
bool xm_intake_next(struct xm_intake *f);
bool xm_intake_is_last(const struct xm_intake *f);
/* Positions before the chunk: the symbol `past`. 0 where it has no single value and nobody asks. */
uint64_t xm_intake_past(const struct xm_intake *f);
/* How many results of the chunk's row k are wanted, those of its last tokens; *first: the place of
 * the first of them. */
uint64_t xm_intake_wanted(const struct xm_intake *f, uint32_t k, uint64_t *first);
/* Reserves the chunk's pages. */
enum xm_status xm_intake_reserve(struct xm_intake *f, struct xm_queue *q,
                                 struct xm_error *err);
/* The chunk has run: its tokens become part of the sequences. */
void xm_intake_commit(struct xm_intake *f);
/* Restores all sequences; nothing of the run may be left in the queue. */
void xm_intake_cancel(struct xm_intake *f, struct xm_kv_pool *pool);
/* Ends a run that has succeeded or was cancelled. */
void xm_intake_end(struct xm_intake *f);

#ifdef __cplusplus
}
#endif
#endif
