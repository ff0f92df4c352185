/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run takes in: rows of tokens, each of a sequence, cut into chunks. A request makes one of
 * its inputs' tensors, with padding or without; a batch of sequences adds rows of ids, of which the
 * inputs of each chunk are made.
 *
 * The rows of a chunk, which has at most 4 tokens here, lie in its inputs in one of two ways:
 *
 *     side by side, as in the tensors        packed, one after the other in one row
 *
 *         a b c   ──►   a b | c                  . . a b   ──►   a b d e | f g
 *         d e f         d e | f                  d e f g
 *
 * Of a batch's rows those with few tokens left come first, as attention takes them. The sequences
 * grow chunk by chunk, and are restored if the run fails. Only intake.c writes an intake.
 */
#ifndef XM_PLUGIN_GPU_INTAKE_H
#define XM_PLUGIN_GPU_INTAKE_H

#include "plugin/feeds.h"
#include "plugin/gpu/kv/kv_sequence.h"
#include "plugin/gpu/program.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_intake_row {
    struct xm_kv_sequence *sequence; /* borrowed; no sequence is in two rows */
    const int32_t *
        ids; /* [n], borrowed: its pages may be found by them later; NULL: they must not */
    uint64_t n;       /* tokens */
    uint64_t wanted;  /* number of last tokens whose results are wanted */
    uint64_t padding; /* positions before the tokens that are counted and not stored */
    /* The place of the first token in the tensors, and of the first wanted result in the results,
     * both as if these had one row. */
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
    const struct xm_host_tensor
        *tensors;          /* borrowed, by port; NULL: there are ids instead */
    const uint32_t *ports; /* borrowed, by enum xm_feed, where there are ids */
    struct xm_intake_row *rows;
    uint32_t n, room;
    bool is_packed;
    bool is_mixed; /* packed chunks may have tokens of several rows */
    uint64_t
        chunk_tokens;   /* most tokens of a chunk, of all rows; UINT64_MAX: all are one */
    uint64_t tokens;    /* of each row of the tensors */
    uint64_t done, all; /* tokens before the chunk, and of the run, along `tokens` */
    uint64_t wanted;    /* results of the run, if it is packed */
    uint32_t n_begun;   /* rows whose sequences are to be restored after a failure */
    uint32_t n_chunks;  /* begun */
    struct xm_intake_chunk chunk;
};

/* Most tokens of a chunk, of all rows together; UINT64_MAX: no limit, because tokens of a sequence
 * may see later ones. */
uint64_t xm_intake_chunk_tokens(const struct xm_program *p);
/* Makes *f a run of the tensors, which have `tokens` tokens of each of n sequences side by side. n
 * is 0 where the program has no KV cache. */
enum xm_status xm_intake_of_tensors(struct xm_intake *f, const struct xm_program *p,
                                    const struct xm_host_tensor *tensors, uint64_t tokens,
                                    struct xm_kv_sequence *const *sequences, uint32_t n,
                                    struct xm_error *err);
/* Leaves the padding out that row i begins with, maybe 0 tokens; the rows are packed from then
 * on. */
void xm_intake_leave_out(struct xm_intake *f, uint32_t i, uint64_t padding);
/* Makes *f an empty run with room for n packed rows of ids; ports[feed] is the input for them,
 * UINT32_MAX: there is none. */
enum xm_status xm_intake_of_ids(struct xm_intake *f, const struct xm_program *p,
                                const uint32_t *ports, uint32_t n, struct xm_error *err);
/* Adds n tokens of a sequence, the results of the last `wanted` of which are wanted. */
void xm_intake_add(struct xm_intake *f, struct xm_kv_sequence *sequence,
                   const int32_t *ids, uint64_t n, uint64_t wanted);
void xm_intake_free(struct xm_intake *f);
/* Whether chunks have other tensors than the run. */
bool xm_intake_is_cut(const struct xm_intake *f);

/* Begins a run: notes how the sequences are, counts their padding, and announces to `pool` how long
 * those will be that go in several chunks. After a failure call xm_intake_cancel. XM_INVALID: a
 * sequence is in two rows. */
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
