/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/kv/kv_tables.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/operations/attention_operation.h"
#include "runtime/util/memory.h"

enum {
    FIRST_SEQUENCES = 8,
    FIRST_PAGES = 64,
    /* The parts of the buffer, in order: past_lens, subsequence_begins, block_indices_begins of
     * each group, block_indices of each group. */
    PAST_LENS = 0,
    BEGINS = 1,
    RUN_PARTS = 2
};

struct part {
    uint64_t offset, room, n; /* place in the buffer, bytes; elements used */
    struct xm_buffer *view;
};

struct xm_kv_tables {
    struct xm_kv_pool *pool; /* borrowed */
    uint32_t n_groups, n_parts;
    struct xm_attention_run run;
    struct part *parts;
    uint64_t sequence_room, page_room; /* sequences, pages of a group that fit */
    struct xm_buffer *buffer;
    uint8_t *host; /* the buffer's bytes */
    bool is_new;   /* the device's buffer may differ from `host` everywhere */
    /* Copies of `host`, which the enqueued writes of the last two runs read. */
    uint8_t *sent[2];
    uint32_t n_sent;
};

static uint32_t
begins_part(uint32_t group)
{
    return RUN_PARTS + group;
}

static uint32_t
pages_part(const struct xm_kv_tables *t, uint32_t group)
{
    return RUN_PARTS + t->n_groups + group;
}

static int32_t *
host_of(const struct xm_kv_tables *t, uint32_t part)
{
    return (int32_t *)(t->host + t->parts[part].offset);
}

enum xm_status
xm_kv_tables_create(struct xm_kv_pool *pool, struct xm_kv_tables **out,
                    struct xm_error *err)
{
    struct xm_kv_tables *t = xm_calloc(1, sizeof(*t));
    if (!t)
        return xm_no_memory(err, "a run's tables");
    t->pool = pool;
    t->n_groups = xm_kv_pool_groups(pool);
    t->n_parts = RUN_PARTS + 2 * t->n_groups;
    t->parts = xm_calloc(t->n_parts, sizeof(*t->parts));
    if (!t->parts) {
        xm_free(t);
        return xm_no_memory(err, "a run's tables");
    }
    *out = t;
    return XM_OK;
}

static void
free_buffer(struct xm_kv_tables *t)
{
    for (uint32_t i = 0; i < t->n_parts; i++)
        xm_buffer_unref(t->parts[i].view);
    memset(t->parts, 0, t->n_parts * sizeof(*t->parts));
    xm_buffer_unref(t->buffer);
    xm_free(t->host);
    t->buffer = NULL;
    t->host = NULL;
    for (size_t i = 0; i < XM_ARRAY_LEN(t->sent); i++) {
        xm_free(t->sent[i]);
        t->sent[i] = NULL;
    }
    t->sequence_room = t->page_room = 0;
}

void
xm_kv_tables_destroy(struct xm_kv_tables *t)
{
    if (!t)
        return;
    free_buffer(t);
    xm_free(t->parts);
    xm_free(t);
}

static uint64_t
room_for(uint64_t first, uint64_t n)
{
    while (first < n)
        first *= 2;
    return first;
}

/* Returns the number of pages that the n sequences have in the group in which they have most. */
static uint64_t
most_pages(const struct xm_kv_tables *t, struct xm_kv_sequence *const *sequences,
           uint32_t n)
{
    uint64_t most = 0;
    for (uint32_t g = 0; g < t->n_groups; g++) {
        uint64_t pages = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t first, held;
            xm_kv_sequence_pages(sequences[i], g, &first, &held);
            pages += held;
        }
        most = pages > most ? pages : most;
    }
    return most;
}

static enum xm_status
make_buffer(struct xm_kv_tables *t, uint64_t sequences, uint64_t pages,
            struct xm_engine *e, struct xm_error *err)
{
    const uint64_t align = xm_engine_info(e)->base_align;
    uint64_t bytes = 0;
    free_buffer(t);
    for (uint32_t i = 0; i < t->n_parts; i++) {
        const uint64_t n = i < pages_part(t, 0) ? sequences + 1 : pages;
        t->parts[i].offset = bytes;
        t->parts[i].room = n * sizeof(int32_t);
        bytes = xm_align_up(bytes + t->parts[i].room, align ? align : 1);
    }
    t->host = xm_calloc(bytes, 1);
    if (!t->host)
        return xm_no_memory(err, "%" PRIu64 " bytes of tables", bytes);
    XM_TRY(xm_buffer_create(e, XM_USE_HOST, bytes, &t->buffer, err));
    for (uint32_t i = 0; i < t->n_parts; i++)
        XM_TRY(xm_buffer_view(t->buffer, t->parts[i].offset, t->parts[i].room,
                              &t->parts[i].view, err));
    t->sequence_room = sequences;
    t->page_room = pages;
    t->is_new = true;
    return XM_OK;
}

static enum xm_status
ensure_room(struct xm_kv_tables *t, uint32_t n, uint64_t pages, struct xm_queue *q,
            struct xm_error *err)
{
    if (n <= t->sequence_room && pages <= t->page_room)
        return XM_OK;
    const uint64_t sequences = t->sequence_room ? t->sequence_room : FIRST_SEQUENCES;
    enum xm_status s =
        make_buffer(t, room_for(sequences, n),
                    room_for(t->page_room ? t->page_room : FIRST_PAGES, pages),
                    xm_queue_engine(q), err);
    if (s != XM_OK)
        free_buffer(t);
    return s;
}

/* Fills past_lens and subsequence_begins for tokens[i] tokens of sequence i. `tokens` NULL: one
 * token of each sequence, at the last reserved position. */
static void
fill_run(struct xm_kv_tables *t, struct xm_kv_sequence *const *sequences,
         const uint32_t *tokens, uint32_t n)
{
    int32_t *past = host_of(t, PAST_LENS), *begins = host_of(t, BEGINS);
    begins[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t before = tokens ? 0 : xm_kv_sequence_pending(sequences[i]) - 1;
        past[i] = (int32_t)(xm_kv_sequence_past(sequences[i]) + before);
        begins[i + 1] = begins[i] + (tokens ? (int32_t)tokens[i] : 1);
    }
    t->run = (struct xm_attention_run){
        .n_sequences = n, .past_lens = past, .subsequence_begins = begins};
    t->parts[PAST_LENS].n = n;
    t->parts[BEGINS].n = (uint64_t)n + 1;
}

/* Fills the tables of a group: the sequences' pages and where they begin. Returns whether the
 * tables differ from their contents before. */
static bool
fill_group(struct xm_kv_tables *t, uint32_t group,
           struct xm_kv_sequence *const *sequences, uint32_t n)
{
    struct part *part = &t->parts[pages_part(t, group)];
    int32_t *begins = host_of(t, begins_part(group)),
            *pages = host_of(t, pages_part(t, group));
    bool differs = false;
    uint64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first, held;
        const int32_t *words = xm_kv_sequence_pages(sequences[i], group, &first, &held);
        /* the index at which page 0 would be, which may have left the window: it can be < 0 */
        const int32_t begin = (int32_t)at - (int32_t)first;
        differs |= begins[i] != begin;
        begins[i] = begin;
        if (held && memcmp(pages + at, words, held * sizeof(*words)) != 0) {
            memcpy(pages + at, words, held * sizeof(*words));
            differs = true;
        }
        at += held;
    }
    differs |= begins[n] != (int32_t)at;
    begins[n] = (int32_t)at;
    t->parts[begins_part(group)].n = (uint64_t)n + 1;
    part->n = at;
    return differs;
}

static bool
fill_groups(struct xm_kv_tables *t, struct xm_kv_sequence *const *sequences, uint32_t n)
{
    bool differs = t->is_new;
    for (uint32_t g = 0; g < t->n_groups; g++)
        differs |= fill_group(t, g, sequences, n);
    return differs;
}

static uint64_t
bytes_of(const struct xm_kv_tables *t)
{
    const struct part *last = &t->parts[t->n_parts - 1];
    return last->offset + last->room;
}

enum xm_status
xm_kv_tables_write(struct xm_kv_tables *t, struct xm_kv_sequence *const *sequences,
                   const uint32_t *tokens, uint32_t n, struct xm_queue *q,
                   struct xm_error *err)
{
    XM_TRY(ensure_room(t, n, most_pages(t, sequences, n), q, err));
    const uint64_t head = t->parts[pages_part(t, 0)].offset;
    fill_run(t, sequences, tokens, n);
    const uint64_t bytes = fill_groups(t, sequences, n) ? bytes_of(t) : head;
    t->is_new = true; /* if the write fails, the next one writes all */
    XM_TRY(xm_queue_write(q, t->buffer, 0, t->host, bytes, err));
    t->is_new = false;
    return XM_OK;
}

/* Enqueues a write of the groups' tables, without past_lens and subsequence_begins. The write reads
 * a copy; the copy of two calls ago can be overwritten, because its run has ended. */
static enum xm_status
send(struct xm_kv_tables *t, struct xm_queue *q, struct xm_error *err)
{
    const uint64_t first = t->parts[begins_part(0)].offset, bytes = bytes_of(t);
    uint8_t **copy = &t->sent[t->n_sent++ % XM_ARRAY_LEN(t->sent)];
    *copy = *copy ? *copy : xm_malloc(bytes - first);
    if (!*copy)
        return xm_no_memory(err, "%" PRIu64 " bytes of tables", bytes - first);
    memcpy(*copy, (const uint8_t *)t->host + first, bytes - first);
    return xm_queue_send(q, t->buffer, first, *copy, bytes - first, err);
}

enum xm_status
xm_kv_tables_advance(struct xm_kv_tables *t, struct xm_kv_sequence *const *sequences,
                     uint32_t n, struct xm_queue *q, struct xm_error *err)
{
    const uint64_t pages = most_pages(t, sequences, n);
    if (pages > t->page_room)
        XM_TRY(xm_queue_finish(q, err));
    XM_TRY(ensure_room(t, n, pages, q, err));
    fill_run(t, sequences, NULL, n);
    const bool differs = fill_groups(t, sequences, n), is_new = t->is_new;
    t->is_new = true; /* if the write fails, the next one writes all */
    if (is_new)
        XM_TRY(xm_queue_write(q, t->buffer, 0, t->host, bytes_of(t), err));
    else if (differs)
        XM_TRY(send(t, q, err));
    t->is_new = false;
    return XM_OK;
}

void
xm_kv_tables_operands(const struct xm_kv_tables *t, uint32_t group,
                      struct xm_operand *operands)
{
    const struct {
        int operand;
        uint32_t part;
    } list[] = {{XM_ATTENTION_PAST_LENS, PAST_LENS},
                {XM_ATTENTION_SUBSEQUENCE_BEGINS, BEGINS},
                {XM_ATTENTION_BLOCK_INDICES, pages_part(t, group)},
                {XM_ATTENTION_BLOCK_INDICES_BEGINS, begins_part(group)}};
    for (size_t i = 0; i < XM_ARRAY_LEN(list); i++)
        operands[list[i].operand] = (struct xm_operand){
            .buffer = t->parts[list[i].part].view,
            .element = XM_I32,
            .rank = 1,
            .dim = {(int64_t)t->parts[list[i].part].n},
        };
}

const struct xm_attention_run *
xm_kv_tables_run(const struct xm_kv_tables *t)
{
    return &t->run;
}
