/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms of activations: sizes, and the kernels that convert plain rows into them.
 */
#include "primitives/form.h"

#include "primitives/matrix_engine.h"
#include "runtime/kernel_defines.h"

enum { VECTOR_WORDS = 16 };
/* PLANES and SUM_K of kernels/cl/include/planes.h, for 16-bit integers that are multiplied by
 * weights in blocks. */
enum { UNIT_PLANES = 8, BLOCK_SUM = 16 };
/* Halves of a token's super-block: 16 steps of 16 columns, and two steps of sums
 * (kernels/cl/include/steps.h); for weights in blocks, elements of a 32-bit word and columns of a
 * sum. */
enum { SUPER_HALVES = 18 * 16, BLOCK_WORD = 4, STEPS_SUM = 32 };
/* 32-bit words of a unit besides its 16-bit integers: scale and sums (kernels/cl/include/shorts.h);
 * words of a whole unit of 8-bit integers (bytes.h). */
enum { UNIT_EXTRA_WORDS = 9, BYTE_UNIT_WORDS = 44 };

/* clang-format off */
static const struct {
    const char *kernel; /* NULL: the form is plain rows */
    struct xm_launch_shape launch;
    bool is_rows, has_sums;
    bool is_given; /* also written by primitives that compute the rows */
} makers[XM_FORM_COUNT] = {
    [XM_FORM_PLANES] = {"linear_prepare_vec", {XM_ALONE, 0, {XM_TOKENS}}, true, true, true},
    [XM_FORM_SHORTS] = {"linear_prepare_vec", {XM_ALONE, 0, {XM_TOKENS}}, true, true, true},
    [XM_FORM_SHORT_PAIRS] = {"linear_prepare_vec", {XM_ALONE, 0, {XM_TOKENS}}, true, true},
    [XM_FORM_BYTES] = {"linear_prepare_vec", {XM_ALONE, 0, {XM_TOKENS}}, true, false, true},
    [XM_FORM_BF16_TILES] = {"linear_pack_amx", {XM_ALONE, 0, {XM_TOKENS, XM_TILE}}},
    [XM_FORM_TILES] = {"linear_pack_vec", {XM_ALONE, 0, {XM_BLOCKS}, {XM_TOKENS, XM_TILE}}},
    [XM_FORM_LANE_TILES] = {"linear_pack_sg", {XM_LANES, 0, {XM_BLOCKS}, {XM_TOKENS, XM_TILE}}},
    [XM_FORM_STEPS] = {"linear_pack_dpas", {XM_GROUP, XM_STEPS_ITEMS,
                       {XM_COLS, XM_SUPER_COLS}, {XM_SLOTS, XM_STEPS_TOKENS}}},
};
/* clang-format on */

static struct xm_rows_form
steps_of(const struct xm_weight *w)
{
    return xm_weight_is_blocks(w)
               ? (struct xm_rows_form){XM_FORM_STEPS, BLOCK_WORD, STEPS_SUM}
               : (struct xm_rows_form){XM_FORM_STEPS, 32 / xm_element_bits(w->element)};
}

struct xm_rows_form
xm_form_of(enum xm_form form, const struct xm_weight *w, enum xm_element src)
{
    const bool sums =
        makers[form].has_sums && xm_weight_is_quantised(w) && !xm_weight_is_codes(w);
    if (xm_weight_is_blocks(w) && (form == XM_FORM_SHORTS || form == XM_FORM_SHORT_PAIRS))
        return (struct xm_rows_form){form, UNIT_PLANES, BLOCK_SUM, true, 0};
    if (form == XM_FORM_STEPS)
        return steps_of(w);
    if (form == XM_FORM_BYTES)
        return (struct xm_rows_form){form, UNIT_PLANES, 0, true, XM_FACTOR_FINE};
    if (form == XM_FORM_BF16_TILES)
        return (struct xm_rows_form){form, UNIT_PLANES};
    const struct xm_rows_form f = {form, xm_weight_planes(w), sums ? w->group : 0};
    const bool lies_so = form == XM_FORM_PLANES && f.planes == 1 && !f.group &&
                         src == XM_F32 && w->cols % VECTOR_WORDS == 0;
    return lies_so ? (struct xm_rows_form){XM_FORM_ROWS, 0, 0} : f;
}

bool
xm_rows_are_prepared(const struct xm_rows_form *f)
{
    return makers[f->form].is_given;
}

static uint64_t
padded(const struct xm_rows_form *f, uint64_t cols)
{
    return xm_align_up(cols, (uint64_t)XM_PLANE_BLOCK * f->planes);
}

uint64_t
xm_prepared_words(const struct xm_rows_form *f, uint64_t cols)
{
    const uint64_t k = padded(f, cols), sums = f->group ? cols / f->group : 0;
    const uint64_t blocks = k / XM_PLANE_BLOCK / f->planes;
    const uint64_t words = f->form == XM_FORM_PLANES  ? k
                           : f->form == XM_FORM_BYTES ? blocks * BYTE_UNIT_WORDS
                           : f->in_units              ? k / 2 + blocks * UNIT_EXTRA_WORDS
                                                      : k / 2 + blocks;
    return xm_align_up(words + sums, VECTOR_WORDS);
}

static bool
has_room(const struct xm_rows_form *f, uint64_t cols, uint64_t rows,
         const struct xm_buffer *b)
{
    return b && xm_rows_are_prepared(f) && rows <= XM_FEW_TOKENS &&
           xm_form_bytes(f, cols, rows) <= xm_buffer_bytes(b);
}

struct xm_buffer *
xm_prepared_target(const struct xm_rows_form *f, const struct xm_operand *o,
                   uint64_t cols, uint64_t rows)
{
    return has_room(f, cols, rows, o->buffer) ? o->buffer : NULL;
}

bool
xm_prepared_serves(const struct xm_rows_form *want, const struct xm_rows_form *given,
                   uint64_t cols, uint64_t rows, const struct xm_buffer *b)
{
    return want->form == given->form && want->planes == given->planes &&
           want->group == given->group && want->in_units == given->in_units &&
           want->factor == given->factor && has_room(want, cols, rows, b);
}

uint64_t
xm_form_bytes(const struct xm_rows_form *f, uint64_t cols, uint64_t tokens)
{
    const uint64_t rows =
        f->form == XM_FORM_SHORT_PAIRS ? xm_align_up(tokens, 2) : tokens;
    if (f->form == XM_FORM_ROWS)
        return 0;
    if (makers[f->form].is_rows)
        return rows * xm_prepared_words(f, cols) * sizeof(uint32_t);
    if (f->form == XM_FORM_STEPS)
        return xm_align_up(tokens, XM_TILE) *
               (xm_align_up(cols, XM_SUPER_COLS) / XM_SUPER_COLS) * SUPER_HALVES *
               sizeof(uint16_t);
    const size_t bytes = f->form == XM_FORM_BF16_TILES ? sizeof(uint16_t) : sizeof(float);
    return xm_align_up(tokens, XM_TILE) * padded(f, cols) * bytes;
}

static uint64_t
common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint64_t
xm_prepared_part(const struct xm_rows_form *f, uint64_t run)
{
    const uint64_t block = (uint64_t)XM_PLANE_BLOCK * f->planes,
                   group = f->group ? f->group : 1;
    const uint64_t part = block / common_divisor(block, group) * group;
    return part / common_divisor(part, run) * run;
}

uint32_t
xm_form_kind(const struct xm_rows_form *f)
{
    if (f->form == XM_FORM_BYTES)
        return f->factor == XM_FACTOR_COARSE ? 4 : 3;
    return f->form == XM_FORM_PLANES ? 0 : f->in_units ? 2 : 1;
}

size_t
xm_form_defines(const struct xm_rows_form *f, const char *name, char *out, size_t n)
{
    out[0] = '\0';
    if (f->form == XM_FORM_STEPS)
        return xm_defines_print(out, n, " -D%s_PLANES=%u -D%s_SUMS=%d", name, f->planes,
                                name, f->group != 0);
    if (!makers[f->form].is_rows)
        return 0;
    return xm_defines_print(out, n, " -DN_%s=3 -D%s=%u,%llu,%u", name, name, f->planes,
                            (unsigned long long)f->group, xm_form_kind(f));
}

enum xm_status
xm_form_kernel(struct xm_engine *engine, const struct xm_rows_form *f,
               enum xm_element src, const struct xm_weight *w, struct xm_kernel **out,
               struct xm_error *err)
{
    const char *name = makers[f->form].kernel, *type = xm_element_text(src);
    const struct xm_variant row = {.launch = makers[f->form].launch, .form = f->form};
    char defines[XM_KERNEL_DEFINES];
    if (!name)
        return XM_OK;
    if (f->form == XM_FORM_STEPS) {
        const size_t used = xm_form_defines(f, "FORM", defines, sizeof(defines));
        xm_defines_print(defines + used, sizeof(defines) - used, "%s",
                         xm_variant_defines(&row, xm_engine_info(engine)).text);
        return xm_engine_kernel(engine, name, defines, out, err);
    }
    if (!makers[f->form].is_rows)
        return xm_weight_kernel(engine, name, xm_one_weight(w), out, err,
                                "-DSRC=%s -DTILE=%s%s", type, type,
                                xm_variant_defines(&row, xm_engine_info(engine)).text);
    size_t used = xm_defines_print(defines, sizeof(defines), "-DSRC=%s", type);
    xm_form_defines(f, "FORM", defines + used, sizeof(defines) - used);
    return xm_engine_kernel(engine, name, defines, out, err);
}

struct xm_counts
xm_counts_of(const struct xm_weight *w, uint64_t tokens)
{
    const uint64_t block = (uint64_t)XM_PLANE_BLOCK * xm_weight_planes(w);
    const struct xm_counts c = {.n = {[XM_COLS] = xm_weight_padded_cols(w),
                                      [XM_BLOCKS] = xm_weight_padded_cols(w) / block,
                                      [XM_TOKENS] = tokens,
                                      [XM_SLOTS] = xm_align_up(tokens, XM_TILE)},
                                .block = block};
    return c;
}

enum xm_status
xm_form_make(enum xm_form form, struct xm_kernel *kernel, const struct xm_weight *w,
             const struct xm_buffer *x, uint64_t tokens, struct xm_buffer *prepared,
             struct xm_queue *queue, struct xm_error *err)
{
    const struct xm_counts counts = xm_counts_of(w, tokens);
    struct xm_args a = {.n = 0};
    xm_put_buffer(&a, "x", x);
    xm_put_buffer(&a, "prepared", prepared);
    xm_put_uint(&a, "t_count", tokens);
    xm_put_uint(&a, "k_count", w->cols);
    return xm_launch(&makers[form].launch, kernel, &counts, &a, queue, err);
}
