/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/intake.h"

#include <stdlib.h>

#include "primitives/form.h"
#include "runtime/util/memory.h"

uint64_t
xm_intake_chunk_tokens(const struct xm_program *p)
{
    return p->can_chunk ? p->config.ubatch : UINT64_MAX;
}

static bool
grow_list(void *list, size_t n, size_t bytes)
{
    void *larger = xm_realloc(*(void **)list, n * bytes);
    if (larger)
        *(void **)list = larger;
    return larger != NULL;
}

static enum xm_status
make_room(struct xm_intake *f, uint32_t n, struct xm_error *err)
{
    if (n <= f->room)
        return XM_OK;
    if (!grow_list(&f->rows, n, sizeof(*f->rows)) ||
        !grow_list(&f->chunk.row, n, sizeof(*f->chunk.row)) ||
        !grow_list(&f->chunk.tokens, n, sizeof(*f->chunk.tokens)) ||
        !grow_list(&f->chunk.sequences, n, sizeof(struct xm_kv_sequence *)))
        return xm_no_memory(err, "a run of %u sequences", n);
    f->room = n;
    return XM_OK;
}

/* Empties the intake and makes room for n rows. */
static enum xm_status
open_intake(struct xm_intake *f, const struct xm_program *p, uint32_t n,
            struct xm_error *err)
{
    XM_TRY(make_room(f, n, err));
    *f = (struct xm_intake){.rows = f->rows,
                            .room = f->room,
                            .is_mixed = p->is_ragged,
                            .chunk_tokens = xm_intake_chunk_tokens(p),
                            .chunk = {.row = f->chunk.row,
                                      .tokens = f->chunk.tokens,
                                      .sequences = f->chunk.sequences}};
    return XM_OK;
}

enum xm_status
xm_intake_of_tensors(struct xm_intake *f, const struct xm_program *p,
                     const struct xm_host_tensor *tensors, uint64_t tokens,
                     struct xm_kv_sequence *const *sequences, uint32_t n,
                     struct xm_error *err)
{
    XM_TRY(open_intake(f, p, n, err));
    f->tensors = tensors;
    f->tokens = f->all = tokens;
    if (p->chosen_rows != XM_NO_VALUE)
        f->chunk_tokens =
            UINT64_MAX; /* the input chosen_rows counts rows of the whole run: no chunks */
    for (; f->n < n; f->n++)
        f->rows[f->n] = (struct xm_intake_row){.sequence = sequences[f->n],
                                               .n = tokens,
                                               .wanted = tokens,
                                               .at = f->n * tokens,
                                               .result = f->n * tokens};
    return XM_OK;
}

void
xm_intake_leave_out(struct xm_intake *f, uint32_t i, uint64_t padding)
{
    struct xm_intake_row *row = &f->rows[i];
    if (!f->is_packed)
        f->all = f->n * f->tokens;
    f->is_packed = true;
    f->all -= padding;
    row->padding = padding;
    row->n -= padding;
    row->wanted -= padding;
    row->at += padding;
    row->result += padding;
}

enum xm_status
xm_intake_of_ids(struct xm_intake *f, const struct xm_program *p, const uint32_t *ports,
                 uint32_t n, struct xm_error *err)
{
    XM_TRY(open_intake(f, p, n, err));
    f->ports = ports;
    f->is_packed = true;
    return XM_OK;
}

void
xm_intake_add(struct xm_intake *f, struct xm_kv_sequence *sequence, const int32_t *ids,
              uint64_t n, uint64_t wanted)
{
    f->rows[f->n++] = (struct xm_intake_row){.sequence = sequence,
                                             .ids = ids,
                                             .n = n,
                                             .wanted = wanted,
                                             .at = f->all,
                                             .result = f->wanted};
    f->all += n;
    f->wanted += wanted;
}

void
xm_intake_free(struct xm_intake *f)
{
    xm_free(f->rows);
    xm_free(f->chunk.row);
    xm_free(f->chunk.tokens);
    xm_free(f->chunk.sequences);
    *f = (struct xm_intake){0};
}

/* ---- chunks ------------------------------------------------------------------------------- */

/* Returns how many tokens of each row a chunk of rows side by side has: together at most
 * chunk_tokens, but at least one of each. */
static uint64_t
most_of_each(const struct xm_intake *f)
{
    const uint64_t n = f->n ? f->n : 1;
    return f->chunk_tokens > n ? f->chunk_tokens / n : 1;
}

bool
xm_intake_is_cut(const struct xm_intake *f)
{
    return f->is_packed || f->tokens > most_of_each(f);
}

uint64_t
xm_intake_wanted(const struct xm_intake *f, uint32_t k, uint64_t *first)
{
    const struct xm_intake_row *row = &f->rows[f->chunk.row[k]];
    const uint64_t end = row->done + f->chunk.tokens[k], unwanted = row->n - row->wanted;
    const uint64_t begin = row->done > unwanted ? row->done : unwanted;
    *first = row->result + begin - unwanted;
    return end > begin ? end - begin : 0;
}

static void
add_to_chunk(struct xm_intake *f, uint32_t i, uint64_t tokens)
{
    struct xm_intake_chunk *s = &f->chunk;
    uint64_t first;
    s->row[s->n] = i;
    s->tokens[s->n] = (uint32_t)tokens;
    s->sequences[s->n] = f->rows[i].sequence;
    s->wanted += xm_intake_wanted(f, s->n++, &first);
}

static void
choose_from_each(struct xm_intake *f)
{
    const uint64_t left = f->tokens - f->done, most = most_of_each(f);
    f->chunk.length = left < most ? left : most;
    for (uint32_t i = 0; i < f->n; i++)
        add_to_chunk(f, i, f->chunk.length);
}

/* Chooses the tokens of a packed chunk. Rows of tensors are taken in order. Rows of ids: first
 * those with few tokens left (XM_FEW_TOKENS), then the other ones, until the chunk is full. */
static void
choose_stretches(struct xm_intake *f)
{
    for (int many = f->tensors != NULL; many < 2; many++) {
        for (uint32_t i = 0; i < f->n && f->chunk.length < f->chunk_tokens; i++) {
            const uint64_t left = f->rows[i].n - f->rows[i].done,
                           room = f->chunk_tokens - f->chunk.length;
            const bool is_turn = f->tensors || (left > XM_FEW_TOKENS) == many;
            if (left == 0 || !is_turn || (f->chunk.n && !f->is_mixed))
                continue;
            add_to_chunk(f, i, left < room ? left : room);
            f->chunk.length += left < room ? left : room;
        }
    }
}

bool
xm_intake_next(struct xm_intake *f)
{
    f->chunk.n = 0;
    f->chunk.length = f->chunk.wanted = 0;
    if (f->n_chunks++ && f->done == f->all)
        return false;
    if (f->is_packed)
        choose_stretches(f);
    else
        choose_from_each(f);
    return !f->is_packed || f->chunk.n > 0;
}

bool
xm_intake_is_last(const struct xm_intake *f)
{
    return f->done + f->chunk.length == f->all;
}

uint64_t
xm_intake_past(const struct xm_intake *f)
{
    if (f->chunk.n == 0 || (f->is_packed && f->is_mixed))
        return 0;
    const struct xm_kv_sequence *s = f->chunk.sequences[0];
    return xm_kv_sequence_padding(s) + xm_kv_sequence_past(s);
}

/* ---- what becomes of the sequences --------------------------------------------------------- */

static int
compare_sequences(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (struct xm_kv_sequence *const *)a;
    const uintptr_t y = (uintptr_t) * (struct xm_kv_sequence *const *)b;
    return (x > y) - (x < y);
}

static enum xm_status
fail_twice(const struct xm_intake *f, const struct xm_kv_sequence *sequence,
           struct xm_error *err)
{
    uint32_t at[2] = {0}, found = 0;
    for (uint32_t i = 0; i < f->n && found < 2; i++) {
        if (f->rows[i].sequence == sequence)
            at[found++] = i;
    }
    return xm_fail(err, XM_INVALID, "entries %u and %u name the same sequence", at[0],
                   at[1]);
}

/* Refuses a sequence that is in two rows. Sorts the sequences, in the memory of the chunk's list,
 * so that equal ones are adjacent. */
static enum xm_status
check_twice(struct xm_intake *f, struct xm_error *err)
{
    struct xm_kv_sequence **sorted = f->chunk.sequences;
    for (uint32_t i = 0; i < f->n; i++)
        sorted[i] = f->rows[i].sequence;
    if (f->n > 1)
        qsort(sorted, f->n, sizeof(*sorted), compare_sequences);
    for (uint32_t i = 1; i < f->n; i++) {
        if (sorted[i] == sorted[i - 1])
            return fail_twice(f, sorted[i], err);
    }
    return XM_OK;
}

/* Announces the positions of a run of several chunks, so that the pool allocates one slab for all
 * of them. Rows of few tokens are not announced, because these often fit in their last page. */
static enum xm_status
announce(const struct xm_intake *f, struct xm_kv_pool *pool, struct xm_error *err)
{
    size_t n = 0;
    if (f->is_packed ? f->all <= f->chunk_tokens : !xm_intake_is_cut(f))
        return XM_OK;
    uint64_t *positions = xm_malloc(f->n * sizeof(*positions));
    if (!positions)
        return xm_no_memory(err, "a run of %u sequences", f->n);
    for (uint32_t i = 0; i < f->n; i++) {
        if (f->rows[i].n > XM_FEW_TOKENS)
            positions[n++] = f->rows[i].n;
    }
    xm_kv_pool_expect_each(pool, positions, n);
    xm_free(positions);
    return XM_OK;
}

/* Saves the state of a row's sequence before a run. A sequence with a sliding window keeps only the
 * pages that a truncation by one chunk needs, so for a longer run a fork keeps the earlier
 * pages. */
static enum xm_status
note(const struct xm_intake *f, struct xm_intake_row *row, struct xm_error *err)
{
    row->done = 0;
    row->before.past = xm_kv_sequence_past(row->sequence);
    row->before.padding = xm_kv_sequence_padding(row->sequence);
    row->before.copy = NULL;
    return row->n > f->chunk_tokens && row->before.past
               ? xm_kv_sequence_fork(row->sequence, &row->before.copy, err)
               : XM_OK;
}

enum xm_status
xm_intake_begin(struct xm_intake *f, struct xm_kv_pool *pool, struct xm_error *err)
{
    f->done = f->n_begun = f->n_chunks = 0;
    XM_TRY(check_twice(f, err));
    XM_TRY(announce(f, pool, err));
    for (; f->n_begun < f->n; f->n_begun++) {
        struct xm_intake_row *row = &f->rows[f->n_begun];
        XM_TRY(note(f, row, err));
        xm_kv_sequence_set_padding(row->sequence, row->before.padding + row->padding);
    }
    return XM_OK;
}

enum xm_status
xm_intake_reserve(struct xm_intake *f, struct xm_queue *q, struct xm_error *err)
{
    for (uint32_t k = 0; k < f->chunk.n; k++)
        XM_TRY(xm_kv_sequence_reserve(f->chunk.sequences[k], f->chunk.tokens[k], q, err));
    return XM_OK;
}

void
xm_intake_commit(struct xm_intake *f)
{
    for (uint32_t k = 0; k < f->chunk.n; k++) {
        struct xm_intake_row *row = &f->rows[f->chunk.row[k]];
        xm_kv_sequence_commit(row->sequence, row->ids ? row->ids + row->done : NULL);
        row->done += f->chunk.tokens[k];
    }
    f->done += f->chunk.length;
}

void
xm_intake_cancel(struct xm_intake *f, struct xm_kv_pool *pool)
{
    for (uint32_t i = 0; i < f->n_begun; i++) {
        struct xm_intake_row *row = &f->rows[i];
        xm_kv_sequence_cancel(row->sequence);
        if (row->before.copy)
            xm_kv_sequence_swap(row->sequence, row->before.copy);
        else
            xm_kv_sequence_truncate(row->sequence, row->before.past);
        xm_kv_sequence_set_padding(row->sequence, row->before.padding);
    }
    if (pool)
        xm_kv_pool_expect_none(pool);
}

void
xm_intake_end(struct xm_intake *f)
{
    for (uint32_t i = 0; i < f->n_begun; i++) {
        xm_kv_sequence_destroy(f->rows[i].before.copy);
        f->rows[i].before.copy = NULL;
    }
    f->n_begun = 0;
}
