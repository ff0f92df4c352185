/* SPDX-License-Identifier: Apache-2.0
 *
 * One buffer holds a layer's slots and tables:
 *
 *     slot_of [E]  expert_in [S]  last_use [S]  counts  slot ids  moves  part sizes
 *     part 0 [S]   part 1 [S]   …
 *
 * The launch of moe_cache_fetch has a work-group (or work-item) for every piece of every expert
 * that a call could miss; those without work return at once, so that launch sizes do not depend on
 * the routed ids.
 */
#include "primitives/moe/expert_cache.h"

#include <assert.h>
#include <string.h>

#include "primitives/tables.h"
#include "runtime/dry_run.h"
#include "runtime/kernel_defines.h"
#include "runtime/util/log.h"

enum {
    LEAST_ALIGN = 64,
    /* bytes that a work-item of moe_cache_fetch_gen copies at once */
    UNIT = 16,
    PIECE = 16384, /* bytes of a piece, copied by a work-item or work-group */
    /* indices of XM_EXPERT_COUNTS; index 0 is the number of calls */
    COUNT_HITS = 1,
    COUNT_MISSES,
    N_COUNTS
};

/* ---- parts ------------------------------------------------------------------------- */

/* Appends an array with `elements` elements for each expert (from NULL: does nothing). False: an
 * entry is not whole bytes. */
static bool
add_part(struct xm_expert_cache *c, const struct xm_buffer *from, uint64_t elements,
         enum xm_element element, struct xm_buffer **to)
{
    uint64_t bits = elements * xm_element_bits(element);
    if (!from)
        return true;
    assert(c->n_parts < XM_EXPERT_PARTS);
    c->part[c->n_parts++] = (struct xm_expert_part){from, to, bits / 8, 0};
    return bits % 8 == 0;
}

/* Appends a weight's data. False: an entry is not whole bytes, or the weight is a view of a part of
 * the stored one. */
static bool
add_data(struct xm_expert_cache *c, const struct xm_device_weight *w,
         struct xm_device_weight *slots)
{
    const struct xm_weight *h = &w->host;
    const struct xm_weight_format_info *f = xm_weight_info(h);
    if (!xm_weight_is_whole(h))
        return false;
    if (xm_weight_is_blocks(h))
        return add_part(c, w->data, h->rows * (h->cols / f->block_cols) * f->block_bytes,
                        XM_U8, &slots->data);
    return add_part(c, w->data, h->rows * h->cols, h->element, &slots->data);
}

/* Appends data, scales and zero points or factors of a weight. A scalar zero point or a codebook is
 * not copied: kernels read the original. */
static bool
add_weight(struct xm_expert_cache *c, const struct xm_device_weight *w,
           struct xm_device_weight *slots)
{
    const struct xm_weight *h = &w->host;
    uint64_t groups = h->rows * xm_weight_groups(h);
    slots->host = *h; /* its strides; the pointers are still the experts' */
    bool whole = add_data(c, w, slots) &&
                 add_part(c, w->scale, groups, h->scale_element, &slots->scale);
    if (h->factor.p)
        return whole && add_part(c, w->zero_point, 1, XM_F32, &slots->zero_point);
    if (!h->zero_point_is_scalar && !h->codebook.p)
        return whole && add_part(c, w->zero_point, groups, h->zero_point_element,
                                 &slots->zero_point);
    slots->zero_point = w->zero_point;
    xm_buffer_ref(slots->zero_point);
    return whole;
}

static bool
add_parts(struct xm_expert_cache *c, const struct xm_expert_rows *r)
{
    c->experts = r->gate->host.experts;
    c->rows.gate = &c->gate;
    c->rows.up = r->up ? &c->up : NULL;
    c->rows.down = &c->down;
    return add_weight(c, r->gate, &c->gate) && (!r->up || add_weight(c, r->up, &c->up)) &&
           add_weight(c, r->down, &c->down) &&
           add_part(c, r->bias_gate, r->gate->host.rows, XM_F32, &c->rows.bias_gate) &&
           (!r->up ||
            add_part(c, r->bias_up, r->up->host.rows, XM_F32, &c->rows.bias_up)) &&
           add_part(c, r->bias_down, r->down->host.rows, XM_F32, &c->rows.bias_down) &&
           add_part(c, r->factor, r->down->host.cols, XM_F32, &c->rows.factor);
}

uint64_t
xm_expert_cache_slot_bytes(const struct xm_expert_cache *c)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < c->n_parts; i++)
        bytes += c->part[i].bytes;
    return bytes;
}

static uint64_t
pieces(const struct xm_expert_cache *c)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < c->n_parts; i++)
        n += (c->part[i].bytes + PIECE - 1) / PIECE;
    return n;
}

/* ---- memory ------------------------------------------------------------------------ */

static uint64_t
smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t
aligned(const struct xm_expert_cache *c, uint64_t bytes)
{
    uint64_t align = xm_engine_info(c->engine)->base_align;
    return xm_align_up(bytes, align > LEAST_ALIGN ? align : LEAST_ALIGN);
}

static uint64_t
table_bytes(const struct xm_expert_cache *c, enum xm_expert_table table)
{
    const uint64_t bytes[XM_EXPERT_N_TABLES] = {
        [XM_EXPERT_SLOT_OF] = c->experts * sizeof(int32_t),
        [XM_EXPERT_IN] = c->slots * sizeof(int32_t),
        [XM_EXPERT_LAST_USE] = c->slots * sizeof(uint64_t),
        [XM_EXPERT_COUNTS] = N_COUNTS * sizeof(uint64_t),
        [XM_EXPERT_SLOT_IDS] = c->most_ids * sizeof(int32_t),
        [XM_EXPERT_MOVES] = c->slots * 2 * sizeof(int32_t),
        [XM_EXPERT_PART_SIZES] = XM_EXPERT_PARTS * 2 * sizeof(uint64_t)};
    return bytes[table];
}

/* Sets the offsets of all parts behind the tables; returns the bytes of both. */
static uint64_t
lay_out(struct xm_expert_cache *c)
{
    uint64_t at = 0;
    for (int t = 0; t < XM_EXPERT_N_TABLES; t++)
        at += aligned(c, table_bytes(c, (enum xm_expert_table)t));
    for (uint32_t i = 0; i < c->n_parts; i++) {
        c->part[i].offset = at;
        at += aligned(c, c->slots * c->part[i].bytes);
    }
    return at;
}

/* Sets c->slots to the most that fit into `bytes`; returns the bytes that tables and slots take. */
static uint64_t
size_for(struct xm_expert_cache *c, uint64_t bytes)
{
    bytes = smaller(bytes, xm_engine_info(c->engine)->max_alloc_bytes);
    c->slots = smaller(c->experts, bytes / xm_expert_cache_slot_bytes(c));
    while (c->slots > 0 && lay_out(c) > bytes)
        c->slots--;
    return lay_out(c);
}

static enum xm_status
take_memory(struct xm_expert_cache *c, uint64_t bytes, struct xm_error *err)
{
    uint64_t at = 0;
    XM_TRY(xm_buffer_create(c->engine, XM_USE_DEVICE, bytes, &c->memory, err));
    for (int t = 0; t < XM_EXPERT_N_TABLES; t++) {
        uint64_t n = table_bytes(c, (enum xm_expert_table)t);
        XM_TRY(xm_buffer_view(c->memory, at, n, &c->table[t], err));
        at += aligned(c, n);
    }
    for (uint32_t i = 0; i < c->n_parts; i++)
        XM_TRY(xm_buffer_view(c->memory, c->part[i].offset, c->slots * c->part[i].bytes,
                              c->part[i].to, err));
    return XM_OK;
}

static enum xm_status
write_tables(const struct xm_expert_cache *c, struct xm_queue *queue,
             struct xm_error *err)
{
    uint64_t sizes[XM_EXPERT_PARTS][2] = {{0}};
    for (uint32_t i = 0; i < c->n_parts; i++) {
        sizes[i][0] = c->part[i].bytes;
        sizes[i][1] = c->part[i].offset;
    }
    XM_TRY(xm_queue_write(queue, c->table[XM_EXPERT_PART_SIZES], 0, sizes, sizeof(sizes),
                          err));
    XM_TRY(xm_queue_fill(queue, c->table[XM_EXPERT_COUNTS], 0, 0,
                         N_COUNTS * sizeof(uint64_t), err));
    return xm_expert_cache_clear(c, queue, err);
}

enum xm_status
xm_expert_cache_clear(const struct xm_expert_cache *c, struct xm_queue *queue,
                      struct xm_error *err)
{
    static const struct {
        enum xm_expert_table table;
        uint8_t value;
    } fills[] = {
        {XM_EXPERT_SLOT_OF, 0xff}, {XM_EXPERT_IN, 0xff}, {XM_EXPERT_LAST_USE, 0}};
    for (size_t i = 0; i < XM_ARRAY_LEN(fills); i++)
        XM_TRY(xm_queue_fill(queue, c->table[fills[i].table], 0, fills[i].value,
                             table_bytes(c, fills[i].table), err));
    return XM_OK;
}

/* ---- kernels ----------------------------------------------------------------------- */

/* Refuses experts that are not aligned to UNIT bytes: a file mapping may begin anywhere. */
static const char *
not_in_units(const void *problem)
{
    const struct xm_expert_cache *c = problem;
    for (uint32_t i = 0; i < c->n_parts; i++) {
        uintptr_t host = (uintptr_t)xm_buffer_host_ptr(c->part[i].from);
        if (c->part[i].bytes % UNIT || host % UNIT)
            return "the weights of an expert are not aligned to 16 bytes";
    }
    return NULL;
}

/* clang-format off */
static const struct xm_variant lookup_rows[] = {
    {"moe_cache_lookup_gen", XM_FAMILY_GEN, 0, NULL, {XM_GROUP, XM_GROUP_ITEMS, {XM_ONE}}},
    {"moe_cache_lookup_ref", XM_FAMILY_ANY, 0, NULL, {XM_ALONE, 0, {XM_ONE}}},
};
static const struct xm_variant fetch_rows[] = {
    {"moe_cache_fetch_vec", XM_FAMILY_VEC, 0, NULL,
     {XM_ALONE, 0, {XM_UNITS}, {XM_EXPERTS, 1}}},
    {"moe_cache_fetch_gen", XM_FAMILY_GEN, 0, not_in_units,
     {XM_GROUP, XM_GROUP_ITEMS, {XM_UNITS}, {XM_EXPERTS, 1}}},
    {"moe_cache_fetch_ref", XM_FAMILY_ANY, 0, NULL,
     {XM_ITEM, 0, {XM_UNITS}, {XM_EXPERTS, 1}}},
};
/* clang-format on */
const struct xm_variant_table xm_moe_cache_lookup_table =
    XM_TABLE("moe_cache_lookup", lookup_rows);
const struct xm_variant_table xm_moe_cache_fetch_table =
    XM_TABLE("moe_cache_fetch", fetch_rows);

static enum xm_status
build(struct xm_expert_cache *c, struct xm_error *err)
{
    char piece[32];
    xm_defines_print(piece, sizeof(piece), "-DPIECE=%d", PIECE);
    XM_TRY(xm_stage_build_for(&c->lookup, c->engine, &xm_moe_cache_lookup_table, c, "",
                              err));
    return xm_stage_build_for(&c->fetch, c->engine, &xm_moe_cache_fetch_table, c, piece,
                              err);
}

/* ---- the cache --------------------------------------------------------------------- */

enum xm_status
xm_expert_cache_create(struct xm_engine *engine, const struct xm_expert_rows *experts,
                       uint64_t top_k, uint64_t most_ids, uint64_t bytes,
                       struct xm_queue *queue, struct xm_expert_cache **out,
                       struct xm_error *err)
{
    *out = NULL;
    struct xm_expert_cache *c = xm_calloc(1, sizeof(*c));
    if (!c)
        return xm_no_memory(err, "a cache of experts");
    c->engine = engine;
    c->most_ids = most_ids;
    bool whole = add_parts(c, experts);
    if (!whole)
        xm_log(XM_LOG_INFO,
               "experts are not cached: a weight is a slice of a stored weight, or the "
               "weight of one expert is not a whole number of bytes");
    bytes = whole ? size_for(c, bytes) : 0;
    if (c->slots < top_k || c->slots == 0) {
        xm_expert_cache_destroy(c);
        return XM_OK;
    }
    enum xm_status status = take_memory(c, bytes, err);
    if (status == XM_OK)
        status = build(c, err);
    if (status == XM_OK)
        status = write_tables(c, queue, err);
    if (status != XM_OK) {
        xm_expert_cache_destroy(c);
        return status;
    }
    *out = c;
    return XM_OK;
}

static void
release_weight(struct xm_device_weight *w)
{
    xm_buffer_unref(w->data);
    xm_buffer_unref(w->scale);
    xm_buffer_unref(w->zero_point);
}

void
xm_expert_cache_destroy(struct xm_expert_cache *c)
{
    if (!c)
        return;
    release_weight(&c->gate);
    release_weight(&c->up);
    release_weight(&c->down);
    xm_buffer_unref(c->rows.bias_gate);
    xm_buffer_unref(c->rows.bias_up);
    xm_buffer_unref(c->rows.bias_down);
    xm_buffer_unref(c->rows.factor);
    for (int t = 0; t < XM_EXPERT_N_TABLES; t++)
        xm_buffer_unref(c->table[t]);
    xm_buffer_unref(c->memory);
    xm_free(c);
}

bool
xm_expert_cache_holds(const struct xm_expert_cache *c, uint64_t n_ids)
{
    return n_ids <= c->most_ids && smaller(n_ids, c->experts) <= c->slots;
}

static enum xm_status
look_up(const struct xm_expert_cache *c, const struct xm_buffer *ids, uint64_t n_ids,
        struct xm_queue *queue, struct xm_error *err)
{
    static const char *const names[] = {
        [XM_EXPERT_SLOT_OF] = "slot_of",   [XM_EXPERT_IN] = "expert_in",
        [XM_EXPERT_LAST_USE] = "last_use", [XM_EXPERT_COUNTS] = "counts",
        [XM_EXPERT_SLOT_IDS] = "slot_ids", [XM_EXPERT_MOVES] = "moves"};
    const struct xm_run run = {.queue = queue};
    const struct xm_counts one = {.n = {0}};
    struct xm_args a = {.n = 0};
    xm_put_buffer(&a, "ids", ids);
    for (int t = XM_EXPERT_SLOT_OF; t <= XM_EXPERT_MOVES; t++)
        xm_put_buffer(&a, names[t], c->table[t]);
    xm_put_uint(&a, "n", n_ids);
    xm_put_uint(&a, "slots", c->slots);
    return xm_stage_run(&c->lookup, NULL, &one, &a, &run, err);
}

static enum xm_status
fetch(const struct xm_expert_cache *c, uint64_t n_ids, struct xm_queue *queue,
      struct xm_error *err)
{
    static const char *const from[XM_EXPERT_PARTS] = {"0", "1", "2", "3",  "4",  "5", "6",
                                                      "7", "8", "9", "10", "11", "12"};
    const struct xm_counts counts = {
        .n = {[XM_UNITS] = pieces(c), [XM_EXPERTS] = smaller(n_ids, c->slots)}};
    const struct xm_run run = {.queue = queue};
    struct xm_args a = {.n = 0};
    xm_put_buffer(&a, "moves", c->table[XM_EXPERT_MOVES]);
    xm_put_buffer(&a, "parts", c->table[XM_EXPERT_PART_SIZES]);
    for (uint32_t i = 0; i < XM_EXPERT_PARTS; i++)
        xm_put(&a, "from_", from[i], xm_arg_buffer(c->part[i].from));
    xm_put_buffer(&a, "slots", c->memory);
    return xm_stage_run(&c->fetch, NULL, &counts, &a, &run, err);
}

enum xm_status
xm_expert_cache_fill(const struct xm_expert_cache *c, const struct xm_buffer *ids,
                     uint64_t n_ids, struct xm_queue *queue, struct xm_error *err)
{
    assert(xm_expert_cache_holds(c, n_ids));
    XM_TRY(look_up(c, ids, n_ids, queue, err));
    return fetch(c, n_ids, queue, err);
}

enum xm_status
xm_expert_cache_read_counts(const struct xm_expert_cache *c, struct xm_queue *queue,
                            struct xm_expert_counts *out, struct xm_error *err)
{
    uint64_t counts[N_COUNTS] = {0};
    if (!xm_dry_run()) /* in a dry run no kernel has written the counts */
        XM_TRY(xm_queue_read(queue, c->table[XM_EXPERT_COUNTS], 0, counts, sizeof(counts),
                             err));
    out->hits = counts[COUNT_HITS];
    out->misses = counts[COUNT_MISSES];
    out->fetched_bytes = counts[COUNT_MISSES] * xm_expert_cache_slot_bytes(c);
    return XM_OK;
}
