/* SPDX-License-Identifier: Apache-2.0
 *
 * A weight's bytes on the device, and its format as build options.
 */
#include "primitives/device_weight.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/kernel_defines.h"
#include "runtime/util/memory.h"
#include "runtime/weight_pack.h"

/* Makes a buffer of a weight's values, scales or zero points: xm_buffer_from_host,
 * xm_buffer_on_host or xm_buffer_copy. */
typedef enum xm_status (*upload_fn)(struct xm_engine *engine, const void *bytes,
                                    uint64_t n_bytes, struct xm_buffer **out,
                                    struct xm_error *err);

static enum xm_status
upload_stream(struct xm_engine *engine, upload_fn upload, const struct xm_bytes *bytes,
              struct xm_buffer **out, struct xm_error *err)
{
    return bytes->p ? upload(engine, bytes->p, bytes->n, out, err) : XM_OK;
}

/* Returns the bytes of the kernels' zero-point parameter: the codebook or the experts' factors if
 * there is one, else the zero points. */
static const struct xm_bytes *
zero_points_or_extras(const struct xm_weight *w)
{
    return w->codebook.p ? &w->codebook : w->factor.p ? &w->factor : &w->zero_point;
}

static struct xm_device_weight *
begin(const struct xm_weight *w, bool on_host, struct xm_error *err)
{
    struct xm_device_weight *d = xm_calloc(1, sizeof(*d));
    if (!d) {
        xm_no_memory(err, "a weight's handle");
        return NULL;
    }
    d->host = d->file = *w;
    d->on_host = on_host;
    d->refs = 1;
    return d;
}

static enum xm_status
create(struct xm_engine *engine, const struct xm_weight *w, upload_fn upload,
       struct xm_device_weight **out, struct xm_error *err)
{
    struct xm_device_weight *d = begin(w, upload == xm_buffer_on_host, err);
    if (!d)
        return XM_NO_MEMORY;
    enum xm_status status = upload_stream(engine, upload, &w->data, &d->data, err);
    if (status == XM_OK)
        status = upload_stream(engine, upload, &w->scale, &d->scale, err);
    if (status == XM_OK)
        status =
            upload_stream(engine, upload, zero_points_or_extras(w), &d->zero_point, err);
    if (status != XM_OK) {
        xm_device_weight_unref(d);
        return status;
    }
    *out = d;
    return XM_OK;
}

enum xm_status
xm_device_weight_create(struct xm_engine *engine, const struct xm_weight *w,
                        struct xm_device_weight **out, struct xm_error *err)
{
    return create(engine, w, xm_buffer_from_host, out, err);
}

/* Copies only the bytes of the view: packs them on the host, uploads them and frees the packed
 * copy. */
static enum xm_status
create_packed(struct xm_engine *engine, const struct xm_weight *w,
              struct xm_device_weight **out, struct xm_error *err)
{
    struct xm_weight packed;
    void *bytes = NULL;
    if (!xm_engine_only_counts(engine))
        XM_TRY(xm_weight_pack(w, &packed, &bytes, err));
    else
        (void)xm_weight_pack_sizes(w, &packed);
    const enum xm_status s = create(engine, &packed, xm_buffer_copy, out, err);
    xm_free(bytes);
    if (s != XM_OK)
        return s;
    (*out)->file = *w;
    /* not the freed bytes: callers only test these pointers for NULL */
    (*out)->host.data.p = w->data.p;
    (*out)->host.scale.p = w->scale.p;
    (*out)->host.zero_point.p = w->zero_point.p;
    (*out)->host.factor.p = w->factor.p;
    return XM_OK;
}

/* Returns whether the part has short rows with other ranks' columns between them. A processor would
 * fetch bytes between short rows from memory, too. The time of products with rows that are cut in
 * two, divided by the time with a copy without gaps (AMD EPYC):
 *
 *     bytes of a part's row    192  1152  2304  4352  8192  16384
 *                              2.4   2.4   2.6   1.7   1.4    1.0 */
static bool
is_scattered(const struct xm_weight *w)
{
    enum { SHORT_ROW = 8192 };
    const uint64_t rows = w->experts * w->rows;
    return w->cols < xm_weight_row_cols(w) && xm_weight_bytes(w) / rows <= SHORT_ROW;
}

enum xm_status
xm_device_part_create(struct xm_engine *engine, const struct xm_weight *w,
                      struct xm_device_weight **out, struct xm_error *err)
{
    struct xm_weight packed;
    if (xm_weight_is_whole(w) ||
        (xm_engine_shares_weight(engine, w->data.p, w->data.n) && !is_scattered(w)) ||
        xm_weight_pack_sizes(w, &packed))
        return xm_device_weight_create(engine, w, out, err);
    return create_packed(engine, w, out, err);
}

enum xm_status
xm_host_weight_create(struct xm_engine *engine, const struct xm_weight *w,
                      struct xm_device_weight **out, struct xm_error *err)
{
    return create(engine, w, xm_buffer_on_host, out, err);
}

static struct xm_buffer *
shared(struct xm_buffer *b)
{
    if (b)
        xm_buffer_ref(b);
    return b;
}

enum xm_status
xm_device_weight_view(const struct xm_device_weight *of, const struct xm_weight *w,
                      struct xm_device_weight **out, struct xm_error *err)
{
    struct xm_device_weight *d = begin(w, of->on_host, err);
    if (!d)
        return XM_NO_MEMORY;
    d->data = shared(of->data);
    d->scale = shared(of->scale);
    d->zero_point = shared(of->zero_point);
    *out = d;
    return XM_OK;
}

void
xm_device_weight_ref(struct xm_device_weight *w)
{
    xm_refs_add(&w->refs);
}

void
xm_device_weight_unref(struct xm_device_weight *w)
{
    if (!w || xm_refs_drop(&w->refs) > 0)
        return;
    xm_buffer_unref(w->data);
    xm_buffer_unref(w->scale);
    xm_buffer_unref(w->zero_point);
    xm_free(w);
}

static bool
kernels_read(enum xm_element e)
{
    switch (e) {
    case XM_U4:
    case XM_I4:
    case XM_U8:
    case XM_I8:
    case XM_F16:
    case XM_BF16:
    case XM_F32:
        return true;
    default:
        return false;
    }
}

static bool
is_code(enum xm_element e)
{
    return e == XM_NF4 || e == XM_F4E2M1 || e == XM_F8E4M3 || e == XM_F8E5M2;
}

static bool
fits_uint(uint64_t n)
{
    return n <= INT32_MAX;
}

const char *
xm_weight_unreadable(const struct xm_weight *w)
{
    if (!fits_uint(xm_weight_row_cols(w)) || !fits_uint(xm_weight_expert_rows(w)) ||
        !fits_uint(w->view.first_row) || !fits_uint(w->experts))
        return "a dimension of the weight is above 2^31 - 1";
    if (xm_weight_is_blocks(w))
        return w->cols % xm_weight_info(w)->block_cols
                   ? "the number of columns is not a multiple of the block size"
                   : NULL;
    if (!kernels_read(w->element) && !is_code(w->element))
        return "no kernel reads weights of this element type";
    if (!xm_weight_is_quantised(w))
        return NULL;
    if (w->cols % w->group != 0)
        return "the group does not divide the columns";
    if (!xm_weight_takes_scales(w, w->scale_element))
        return "no kernel reads scales of this element type";
    if (w->zero_point.p && !kernels_read(w->zero_point_element))
        return "no kernel reads zero points of this element type";
    return NULL;
}

enum { CODE_RUN = 16 }; /* columns of codes that kernels read at once */

/* Returns whether every row of the view begins and ends at a multiple of `cols` columns of the
 * stored weight. */
static bool
is_whole_runs(const struct xm_weight *w, uint64_t cols)
{
    return w->cols % cols == 0 && xm_weight_row_cols(w) % cols == 0 &&
           w->view.first_col % cols == 0;
}

/* Writes how a kernel finds a row's expert: " -DONE_EXPERT=1", or the rows of an expert if they are
 * equal for all weights; else nothing. Scales in group-major order and factors need it. */
static size_t
expert_defines(struct xm_kernel_weights weights, char *out, size_t out_bytes)
{
    const uint64_t rows = xm_weight_expert_rows(weights.w[0]);
    bool in_one_expert = true, same_rows = true;
    for (uint32_t i = 0; i < weights.n; i++) {
        const struct xm_weight *w = weights.w[i];
        same_rows = same_rows && xm_weight_expert_rows(w) == rows;
        in_one_expert = in_one_expert && w->experts == 1 &&
                        w->view.first_row + w->rows <= xm_weight_expert_rows(w);
    }
    if (in_one_expert)
        return xm_defines_print(out, out_bytes, " -DONE_EXPERT=1");
    if (!same_rows)
        return 0;
    return xm_defines_print(out, out_bytes, " -DSCALE_ROWS=%llu",
                            (unsigned long long)rows);
}

/* Writes " -DFACTORS=1 …" if any of the weights has factors. */
static void
factor_defines(struct xm_kernel_weights weights, char *out, size_t out_bytes)
{
    bool any = false;
    for (uint32_t i = 0; i < weights.n; i++)
        any = any || weights.w[i]->factor.p;
    if (!any)
        return;
    const size_t used = xm_defines_print(out, out_bytes, " -DFACTORS=1");
    expert_defines(weights, out + used, out_bytes - used);
}

/* Returns whether any 16 columns from a multiple of 16 on are contiguous and in one group. */
static bool
is_runs_of_codes(struct xm_kernel_weights weights)
{
    for (uint32_t i = 0; i < weights.n; i++)
        if (!is_whole_runs(weights.w[i], CODE_RUN) || weights.w[i]->group % CODE_RUN != 0)
            return false;
    return true;
}

static void
code_defines(struct xm_kernel_weights weights, char *out, size_t out_bytes)
{
    const struct xm_weight *w = weights.w[0];
    size_t used = xm_defines_print(out, out_bytes, "-DCODES=%s -DCODE_RUNS=%d",
                                   xm_weight_format_text(w), is_runs_of_codes(weights));
    if (w->group)
        used += xm_defines_print(out + used, out_bytes - used,
                                 " -DCODE_GROUP=%llu -DSCALE=%s -DGROUP_MAJOR=%d",
                                 (unsigned long long)w->group,
                                 xm_element_text(w->scale_element),
                                 w->order == XM_SCALE_GROUP_MAJOR);
    if (w->factor.p)
        factor_defines(weights, out + used, out_bytes - used);
    else if (w->group && w->order == XM_SCALE_GROUP_MAJOR)
        expert_defines(weights, out + used, out_bytes - used);
}

static void
element_defines(struct xm_kernel_weights weights, char *out, size_t out_bytes)
{
    const struct xm_weight *w = weights.w[0];
    if (!xm_weight_is_quantised(w)) {
        xm_defines_print(out, out_bytes, "-DWEI=%s -DGROUP=0",
                         xm_element_text(w->element));
        return;
    }
    bool has_zp = w->zero_point.p != NULL;
    size_t used = xm_defines_print(
        out, out_bytes,
        "-DWEI=%s -DGROUP=%llu -DSCALE=%s -DGROUP_MAJOR=%d -DHAS_ZP=%d -DZP=%s "
        "-DZP_SCALAR=%d",
        xm_element_text(w->element), (unsigned long long)w->group,
        xm_element_text(w->scale_element), w->order == XM_SCALE_GROUP_MAJOR, has_zp,
        xm_element_text(has_zp ? w->zero_point_element : XM_U4),
        has_zp && w->zero_point_is_scalar);
    if (w->order == XM_SCALE_GROUP_MAJOR)
        expert_defines(weights, out + used, out_bytes - used);
}

static bool
all_of_one_format(struct xm_kernel_weights weights)
{
    for (uint32_t i = 1; i < weights.n; i++)
        if (weights.w[i]->format != weights.w[0]->format)
            return false;
    return true;
}

void
xm_weight_defines(struct xm_kernel_weights weights, char *out, size_t out_bytes)
{
    size_t used = 0;
    if (xm_weight_is_codes(weights.w[0])) {
        code_defines(weights, out, out_bytes);
        return;
    }
    if (!xm_weight_is_blocks(weights.w[0])) {
        element_defines(weights, out, out_bytes);
        return;
    }
    const uint32_t n = all_of_one_format(weights) ? 1 : weights.n;
    for (uint32_t i = 0; i < n; i++) {
        const char *text = xm_weight_info(weights.w[i])->text;
        used +=
            xm_defines_print(out + used, out_bytes - used, "%s-DFORMAT%u=%s -DFORMAT_%s",
                             i ? " " : "", i, text, text);
    }
    factor_defines(weights, out + used, out_bytes - used);
}

const char *
xm_weight_cannot_join(const struct xm_weight *a, const struct xm_weight *b)
{
    if (a->cols != b->cols)
        return "the weights have different columns";
    if (xm_weight_is_blocks(a) && xm_weight_is_blocks(b))
        return (xm_weight_info(a)->meets | XM_MEETS_BYTES) ==
                       (xm_weight_info(b)->meets | XM_MEETS_BYTES)
                   ? NULL
                   : "the formats of the weights need different formats of activations";
    return xm_weight_same_format(a, b) ? NULL : "the weights have different formats";
}

uint32_t
xm_weight_planes(const struct xm_weight *w)
{
    uint32_t bits = xm_element_bits(w->element);
    return xm_weight_is_blocks(w) || xm_weight_is_codes(w) || bits > 8 ? 1 : 32 / bits;
}

uint64_t
xm_weight_padded_cols(const struct xm_weight *w)
{
    return xm_align_up(w->cols, (uint64_t)XM_PLANE_BLOCK * xm_weight_planes(w));
}

bool
xm_weight_is_plain_integers(const struct xm_weight *w)
{
    return !xm_weight_is_blocks(w) && !xm_weight_is_codes(w) &&
           !xm_weight_is_quantised(w) && !xm_element_is_float(w->element);
}

static const char integers_one_by_one[] =
    "integers without scales are read element by element";
static const char codes_one_by_one[] =
    "the columns or the group are not a multiple of 16";

const char *
xm_weight_not_in_planes(const struct xm_weight *w)
{
    uint32_t planes = xm_weight_planes(w);
    if (xm_weight_is_codes(w))
        return is_runs_of_codes(xm_one_weight(w)) ? NULL : codes_one_by_one;
    if (xm_weight_is_plain_integers(w))
        return integers_one_by_one;
    if (!is_whole_runs(w, planes))
        return "the columns are not a whole number of 32-bit words";
    if (!xm_weight_is_quantised(w))
        return NULL;
    if (w->group % planes != 0)
        return "the group is not a whole number of 32-bit words";
    if (w->order != XM_SCALE_ROW_MAJOR)
        return "the scales are in group-major order";
    return NULL;
}

const char *
xm_weight_not_in_words(const struct xm_weight *w, uint32_t words)
{
    if (xm_weight_is_blocks(w))
        return NULL; /* blocks are whole steps of 16 columns */
    if (xm_weight_is_codes(w))
        return is_runs_of_codes(xm_one_weight(w)) ? NULL : codes_one_by_one;
    if (xm_weight_is_plain_integers(w))
        return integers_one_by_one;
    uint32_t word = 32 / xm_element_bits(w->element);
    if (!is_whole_runs(w, word))
        return "the columns are not a whole number of 32-bit words";
    if (w->cols % ((uint64_t)word * words) != 0)
        return "the columns are not a multiple of the 32-bit words that are read at once";
    if (xm_weight_is_quantised(w) && w->group % word != 0)
        return "the group is not a whole number of 32-bit words";
    return NULL;
}

const char *
xm_weight_not_in_shorts(const struct xm_weight *w, enum xm_element src)
{
    uint64_t block = (uint64_t)XM_PLANE_BLOCK * xm_weight_planes(w);
    enum xm_element zero = w->zero_point.p ? w->zero_point_element : XM_U4;
    if (src != XM_F16)
        return "f32 activations would lose precision as integers";
    if (!(xm_weight_meets(w) & XM_MEETS_SHORTS))
        return "no kernel reads weights of this format as integers";
    if (xm_weight_is_blocks(w))
        return NULL;
    if (!xm_weight_is_quantised(w))
        return "the weight is not integers with group scales";
    if (w->group % block != 0 && block % w->group != 0)
        return "the group size is neither a multiple nor a divisor of the block of "
               "weights";
    if (zero != XM_U4 && zero != XM_I4 && zero != XM_U8 && zero != XM_I8)
        return "the zero points are not integers";
    return xm_weight_not_in_planes(w);
}

const char *
xm_weight_not_in_bytes(const struct xm_weight *w, enum xm_element src)
{
    enum { SUB_BLOCK = 32 };
    const char *why = xm_weight_not_in_shorts(w, src);
    if (why || xm_weight_is_blocks(w))
        return why;
    return w->group % SUB_BLOCK == 0 ? NULL : "the group is not a multiple of 32 columns";
}

uint64_t
xm_rows_per_item(const struct xm_device_info *device, uint64_t rows, uint64_t copies)
{
    enum { ITEMS_PER_UNIT = 8, LEAST = 8, MOST = 64 };
    uint64_t items =
        ITEMS_PER_UNIT * (uint64_t)(device->compute_units + !device->compute_units);
    uint64_t per_item = rows * (copies ? copies : 1) / items;
    return per_item < LEAST ? LEAST : per_item > MOST ? MOST : per_item;
}

uint64_t
xm_row_blocks_per_item(const struct xm_device_info *device, uint64_t rows,
                       uint64_t copies, uint64_t block)
{
    uint64_t per_item = xm_rows_per_item(device, rows, copies) / block * block;
    return per_item ? per_item : block;
}

enum xm_status
xm_weight_kernel(struct xm_engine *engine, const char *name,
                 struct xm_kernel_weights weights, struct xm_kernel **out,
                 struct xm_error *err, const char *fmt, ...)
{
    char defines[XM_KERNEL_DEFINES];
    xm_weight_defines(weights, defines, XM_WEIGHT_DEFINES);
    size_t n = strlen(defines);
    defines[n++] = ' ';
    va_list ap;
    va_start(ap, fmt);
    xm_defines_print_v(defines + n, sizeof(defines) - n, fmt, ap);
    va_end(ap);
    return xm_engine_kernel(engine, name, defines, out, err);
}
