/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/kv_cache.h"

#include <string.h>

enum { FIRST_POSITIONS = 256 }; /* capacity of the first allocation, per sequence */

enum xm_status
xm_kv_cache_init(struct xm_kv_cache *c, const struct xm_program *p, struct xm_error *err)
{
    *c = (struct xm_kv_cache){.program = p, .page_tokens = p->config.kv_block_tokens};
    c->slabs = xm_calloc(p->n_kv + 1, XM_KV_SLABS * sizeof(struct xm_buffer *));
    if (!c->slabs)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the KV cache's lists");
    return XM_OK;
}

static void
free_lengths(struct xm_kv_lengths *l)
{
    for (int i = 0; i < XM_KV_LENGTHS; i++)
        xm_buffer_unref(l->view[i]);
    xm_buffer_unref(l->buffer);
    xm_free(l->host);
    *l = (struct xm_kv_lengths){0};
}

void
xm_kv_cache_free(struct xm_kv_cache *c)
{
    for (uint32_t i = 0; c->slabs && i < c->program->n_kv; i++)
        xm_buffer_unref(c->slabs[i * XM_KV_SLABS]);
    xm_free(c->slabs);
    free_lengths(&c->lengths);
    xm_buffer_unref(c->device_table);
    xm_free(c->page_users);
    xm_free(c->table);
    xm_free(c->before.table);
    *c = (struct xm_kv_cache){.program = c->program};
}

static uint32_t
pages_for(const struct xm_kv_cache *c, uint64_t positions)
{
    return (uint32_t)((positions + c->page_tokens - 1) / c->page_tokens);
}

/* Only the pages behind the positions held count: what a run took that failed before it
 * moved `past` is free again. */
static void
count_users(struct xm_kv_cache *c)
{
    const struct xm_kv_before *before = &c->before;
    uint32_t held = pages_for(c, c->past);
    c->first_free = 0;
    if (c->page_users)
        memset(c->page_users, 0, c->n_pages * sizeof(*c->page_users));
    for (uint32_t b = 0; b < c->n_sequences; b++) {
        for (uint32_t i = 0; i < held; i++)
            c->page_users[c->table[(size_t)b * c->table_width + i]]++;
    }
    held = pages_for(c, before->past);
    for (uint32_t b = 0; before->is_replaced && b < before->n_sequences; b++) {
        for (uint32_t i = 0; i < held; i++)
            c->page_users[before->table[(size_t)b * before->table_width + i]] |=
                XM_KV_KEPT;
    }
}

void
xm_kv_cache_begin(struct xm_kv_cache *c)
{
    c->before = (struct xm_kv_before){.is_running = true, .past = c->past};
}

void
xm_kv_cache_end(struct xm_kv_cache *c, bool keep)
{
    struct xm_kv_before *before = &c->before;
    int32_t *useless = before->table;
    if (!keep) {
        c->past = before->past;
        if (before->is_replaced) {
            useless = c->table;
            c->table = before->table;
            c->n_sequences = before->n_sequences;
            c->table_width = before->table_width;
            c->table_changed = true;
        }
    }
    xm_free(useless);
    *before = (struct xm_kv_before){0};
    count_users(c);
}

void
xm_kv_cache_reset(struct xm_kv_cache *c)
{
    c->past = 0;
    c->n_sequences = 0;
    count_users(c);
}

void
xm_kv_cache_truncate(struct xm_kv_cache *c, uint64_t past)
{
    if (past < c->past)
        c->past = past;
    count_users(c);
}

/* ---- growing the buffers ---- */

/* A page of a layer; bytes UINT64_MAX: too many. */
static struct xm_kv_page
page_of(const struct xm_kv_cache *c, uint32_t layer)
{
    const struct xm_kv_layer *l = &c->program->kv[layer];
    const struct xm_attention_desc d = {.heads_kv = l->heads,
                                        .d = l->d,
                                        .dv = l->dv,
                                        .page_tokens = c->page_tokens,
                                        .cache = l->element};
    struct xm_kv_page page;
    if (!xm_attention_page(&d, &page))
        page.bytes = UINT64_MAX;
    return page;
}

static enum xm_status
grow_buffer(struct xm_kv_cache *c, struct xm_buffer **b, uint64_t bytes_of_page,
            uint32_t n_pages, struct xm_queue *q, struct xm_error *err)
{
    struct xm_buffer *bigger = NULL;
    uint64_t bytes = 0;
    if (!xm_mul_size(bytes_of_page, n_pages, &bytes))
        return xm_fail(err, XM_NO_MEMORY,
                       "%u pages of the KV cache have more bytes than 64 bits can say",
                       n_pages);
    XM_TRY(xm_buffer_create(c->program->engine, XM_USE_DEVICE, bytes, &bigger, err));
    enum xm_status s = XM_OK;
    if (*b)
        s = xm_queue_copy(q, *b, 0, bigger, 0, bytes_of_page * c->n_pages, err);
    if (s != XM_OK) {
        xm_buffer_unref(bigger);
        return s;
    }
    xm_buffer_unref(*b);
    *b = bigger;
    return XM_OK;
}

static enum xm_status
grow(struct xm_kv_cache *c, uint32_t n_pages, struct xm_queue *q, struct xm_error *err)
{
    if (n_pages > 1u << XM_KV_SLAB_SHIFT)
        return xm_fail(err, XM_NO_MEMORY, "a KV cache of %u pages is not possible",
                       n_pages);
    uint32_t *users = xm_realloc(c->page_users, n_pages * sizeof(*users));
    if (!users)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the KV cache's page list");
    c->page_users = users;
    memset(users + c->n_pages, 0, (n_pages - c->n_pages) * sizeof(*users));
    for (uint32_t i = 0; i < c->program->n_kv; i++)
        XM_TRY(grow_buffer(c, &c->slabs[i * XM_KV_SLABS], page_of(c, i).bytes, n_pages, q,
                           err));
    c->n_pages = n_pages;
    return XM_OK;
}

static enum xm_status
take_page(struct xm_kv_cache *c, struct xm_queue *q, int32_t *page, struct xm_error *err)
{
    uint32_t i = c->first_free;
    while (i < c->n_pages && c->page_users[i])
        i++;
    if (i == c->n_pages) {
        uint32_t first = pages_for(c, FIRST_POSITIONS);
        XM_TRY(grow(c, c->n_pages ? 2 * c->n_pages : first, q, err));
    }
    c->page_users[i] = 1;
    c->first_free = i + 1;
    *page = (int32_t)i;
    return XM_OK;
}

/* ---- the block table ---- */

/* The run's first table but one is kept for its end. */
static void
replace_table(struct xm_kv_cache *c, int32_t *table)
{
    struct xm_kv_before *before = &c->before;
    if (before->is_running && !before->is_replaced) {
        before->is_replaced = true;
        before->table = c->table;
        before->n_sequences = c->n_sequences;
        before->table_width = c->table_width;
    } else {
        xm_free(c->table);
    }
    c->table = table;
}

/* A new table of `batch` rows, row b a copy of old row beam_idx[b]. */
static enum xm_status
reorder(struct xm_kv_cache *c, uint32_t batch, const int32_t *beam_idx, uint32_t width,
        struct xm_error *err)
{
    uint32_t held = pages_for(c, c->past);
    int32_t *table = xm_calloc((size_t)batch * width, sizeof(*table));
    if (!table)
        return xm_fail(err, XM_NO_MEMORY, "out of memory for the KV cache's block table");
    for (uint32_t b = 0; b < batch && held; b++) {
        size_t from = beam_idx ? (size_t)beam_idx[b] : b;
        memcpy(table + (size_t)b * width, c->table + from * c->table_width,
               held * sizeof(*table));
    }
    replace_table(c, table);
    c->n_sequences = batch;
    c->table_width = width;
    c->table_changed = true;
    count_users(c);
    return XM_OK;
}

static bool
is_identity(const struct xm_kv_cache *c, uint32_t batch, const int32_t *beam_idx)
{
    if (batch != c->n_sequences)
        return false;
    for (uint32_t b = 0; beam_idx && b < batch; b++) {
        if (beam_idx[b] != (int32_t)b)
            return false;
    }
    return true;
}

static enum xm_status
check_beams(const struct xm_kv_cache *c, uint32_t batch, const int32_t *beam_idx,
            struct xm_error *err)
{
    for (uint32_t b = 0; b < batch && c->past; b++) {
        int64_t from = beam_idx ? beam_idx[b] : (int64_t)b;
        if (from < 0 || from >= (int64_t)c->n_sequences)
            return xm_fail(
                err, XM_INVALID,
                "sequence %u continues state row %lld, but the state holds %u rows", b,
                (long long)from, c->n_sequences);
    }
    return XM_OK;
}

/* The last page is written next: whoever shares it gets a copy. */
static enum xm_status
unshare_last_page(struct xm_kv_cache *c, uint32_t b, struct xm_queue *q,
                  struct xm_error *err)
{
    if (c->past % c->page_tokens == 0)
        return XM_OK;
    size_t at = (size_t)b * c->table_width + c->past / c->page_tokens;
    int32_t page = c->table[at], copy;
    if ((c->page_users[page] & ~XM_KV_KEPT) <= 1)
        return XM_OK;
    XM_TRY(take_page(c, q, &copy, err));
    for (uint32_t i = 0; i < c->program->n_kv; i++) {
        const struct xm_kv_page layout = page_of(c, i);
        XM_TRY(xm_attention_copy_page(&c->slabs[i * XM_KV_SLABS], &layout, page, copy, q,
                                      err));
    }
    c->page_users[page]--;
    c->table[at] = copy;
    c->table_changed = true;
    return XM_OK;
}

static enum xm_status
upload_table(struct xm_kv_cache *c, struct xm_queue *q, struct xm_error *err)
{
    uint64_t bytes = (uint64_t)c->n_sequences * c->table_width * sizeof(*c->table);
    if (!c->table_changed)
        return XM_OK;
    if (!c->device_table || xm_buffer_bytes(c->device_table) < bytes) {
        struct xm_buffer *b = NULL;
        XM_TRY(xm_buffer_create(c->program->engine, XM_USE_HOST, bytes, &b, err));
        xm_buffer_unref(c->device_table);
        c->device_table = b;
    }
    XM_TRY(xm_queue_write(q, c->device_table, 0, c->table, bytes, err));
    c->table_changed = false;
    return XM_OK;
}

/* Room for n numbers in each of the lengths. */
static enum xm_status
ensure_lengths(struct xm_kv_cache *c, uint32_t n, struct xm_error *err)
{
    struct xm_engine *engine = c->program->engine;
    struct xm_kv_lengths new = {.n_sequences = 0};
    if (n <= c->lengths.each)
        return XM_OK;
    const uint64_t bytes =
        xm_align_up(n * sizeof(*new.host), xm_engine_info(engine)->base_align);
    new.each = (uint32_t)(bytes / sizeof(*new.host));
    new.host = xm_calloc(XM_KV_LENGTHS, bytes);
    enum xm_status s =
        new.host ? xm_buffer_create(engine, XM_USE_HOST, XM_KV_LENGTHS * bytes,
                                    &new.buffer, err)
                 : xm_fail(err, XM_NO_MEMORY, "out of memory for the sequences' lengths");
    for (uint32_t i = 0; i < XM_KV_LENGTHS && s == XM_OK; i++)
        s = xm_buffer_view(new.buffer, i * bytes, bytes, &new.view[i], err);
    if (s != XM_OK) {
        free_lengths(&new);
        return s;
    }
    free_lengths(&c->lengths);
    c->lengths = new;
    return XM_OK;
}

static enum xm_status
upload_lengths(struct xm_kv_cache *c, uint64_t tokens, struct xm_queue *q,
               struct xm_error *err)
{
    struct xm_kv_lengths *l = &c->lengths;
    const uint32_t n = c->n_sequences;
    XM_TRY(ensure_lengths(c, n + 1, err));
    int32_t *past = l->host, *rows = past + l->each, *pages = rows + l->each;
    l->n_sequences = n;
    for (uint32_t b = 0; b <= n; b++) {
        past[b] = (int32_t)c->past;
        rows[b] = (int32_t)(b * tokens);
        pages[b] = (int32_t)(b * c->table_width);
    }
    return xm_queue_write(q, l->buffer, 0, l->host,
                          XM_KV_LENGTHS * (uint64_t)l->each * sizeof(*l->host), err);
}

enum xm_status
xm_kv_cache_extend(struct xm_kv_cache *c, uint32_t batch, const int32_t *beam_idx,
                   uint64_t tokens, struct xm_queue *q, struct xm_error *err)
{
    uint64_t end = c->past + tokens;
    if (batch == 0 || end > INT32_MAX / 2 / batch)
        return xm_fail(err, XM_INVALID, "%u sequences of %llu positions are not possible",
                       batch, (unsigned long long)end);
    XM_TRY(check_beams(c, batch, beam_idx, err));
    uint32_t need = pages_for(c, end);
    uint32_t width = c->table_width ? c->table_width : pages_for(c, FIRST_POSITIONS);
    while (width < need)
        width *= 2;
    count_users(c);
    if (width != c->table_width || !is_identity(c, batch, beam_idx))
        XM_TRY(reorder(c, batch, beam_idx, width, err));
    for (uint32_t b = 0; b < batch; b++) {
        XM_TRY(unshare_last_page(c, b, q, err));
        for (uint32_t i = pages_for(c, c->past); i < need; i++) {
            XM_TRY(take_page(c, q, &c->table[(size_t)b * width + i], err));
            c->table_changed = true;
        }
    }
    XM_TRY(upload_table(c, q, err));
    return upload_lengths(c, tokens, q, err);
}

/* ---- for the primitive ---- */

static struct xm_operand
list_operand(struct xm_buffer *b, uint64_t n)
{
    return (struct xm_operand){
        .buffer = b, .element = XM_I32, .rank = 1, .dim = {(int64_t)n}};
}

void
xm_kv_cache_operands(const struct xm_kv_cache *c,
                     struct xm_operand operands[XM_ATTENTION_N_OPERANDS])
{
    const struct xm_kv_lengths *l = &c->lengths;
    operands[XM_ATTENTION_PAST_LENS] = list_operand(l->view[0], l->n_sequences);
    operands[XM_ATTENTION_SUBSEQUENCE_BEGINS] =
        list_operand(l->view[1], l->n_sequences + 1);
    operands[XM_ATTENTION_BLOCK_INDICES] =
        list_operand(c->device_table, (uint64_t)c->n_sequences * c->table_width);
    operands[XM_ATTENTION_BLOCK_INDICES_BEGINS] =
        list_operand(l->view[2], l->n_sequences + 1);
}

struct xm_attention_run
xm_kv_cache_run(const struct xm_kv_cache *c, uint32_t layer)
{
    return (struct xm_attention_run){.n_sequences = c->lengths.n_sequences,
                                     .past_lens = c->lengths.host,
                                     .subsequence_begins =
                                         c->lengths.host + c->lengths.each,
                                     .slabs = c->slabs + layer * XM_KV_SLABS};
}

uint64_t
xm_kv_cache_bytes(const struct xm_kv_cache *c)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < c->program->n_kv; i++)
        bytes += c->n_pages * page_of(c, i).bytes;
    return bytes;
}
