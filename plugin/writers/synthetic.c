/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/writers/synthetic.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/writers/synth.h"
#include "runtime/util/memory.h"
#include "runtime/util/strbuf.h"

enum { DEFAULT_GROUP = 64, LEAST_VOCABULARY = XM_SYNTH_END + 2 };
/* The most parameters of a model: the number of their bits fits into 64 bits. */
#define MOST_PARAMETERS (UINT64_C(1) << 56)

void
xm_synthetic_init(struct xm_synthetic *m)
{
    *m = (struct xm_synthetic){
        .sizes = *xm_preset_at(0), .element = XM_U4, .group = DEFAULT_GROUP, .seed = 1};
}

/* ---- types of weights ------------------------------------------------------------------ */

static const enum xm_element ir_elements[] = {XM_U4,  XM_I4,   XM_U8, XM_I8,
                                              XM_F16, XM_BF16, XM_F32};
static const enum xm_element gguf_elements[] = {XM_F16, XM_BF16, XM_F32};

static void
list_types(const struct xm_synthetic *m, struct xm_strbuf *out)
{
    const bool is_ir = m->format == XM_SYNTHETIC_IR;
    const enum xm_element *e = is_ir ? ir_elements : gguf_elements;
    const size_t n = is_ir ? XM_ARRAY_LEN(ir_elements) : XM_ARRAY_LEN(gguf_elements);
    for (size_t i = 0; i < n; i++)
        xm_strbuf_printf(out, "%s%s", i ? ", " : "", xm_element_text(e[i]));
    for (int f = 1; f < XM_WEIGHT_FORMATS && !is_ir; f++) {
        if (xm_synth_has_blocks((enum xm_weight_format)f))
            xm_strbuf_printf(out, ", %s", xm_weight_formats[f].text);
    }
}

enum xm_status
xm_synthetic_set_weights(struct xm_synthetic *m, const char *text, struct xm_error *err)
{
    const bool is_ir = m->format == XM_SYNTHETIC_IR;
    const enum xm_element *e = is_ir ? ir_elements : gguf_elements;
    const size_t n = is_ir ? XM_ARRAY_LEN(ir_elements) : XM_ARRAY_LEN(gguf_elements);
    struct xm_strbuf known = {0};
    m->blocks = XM_WEIGHT_ELEMENTS;
    for (size_t i = 0; i < n; i++) {
        m->element = e[i];
        if (strcmp(xm_element_text(e[i]), text) == 0)
            return XM_OK;
    }
    for (int f = 1; f < XM_WEIGHT_FORMATS && !is_ir; f++) {
        m->blocks = (enum xm_weight_format)f;
        if (xm_synth_has_blocks(m->blocks) &&
            strcmp(xm_weight_formats[f].text, text) == 0)
            return XM_OK;
    }
    list_types(m, &known);
    xm_fail(err, XM_INVALID,
            "weights cannot have the type '%s' in %s: expected one of %s", text,
            is_ir ? "IR" : "GGUF", xm_strbuf_text(&known));
    xm_strbuf_free(&known);
    return XM_INVALID;
}

/* ---- sizes ---------------------------------------------------------------------------- */

enum xm_status
xm_synth_each_tensor(struct xm_synth *s, void *ctx,
                     enum xm_status (*one)(struct xm_synth *s, void *ctx,
                                           enum xm_decoder_tensor t, uint32_t layer))
{
    for (uint32_t layer = 0; layer <= s->d.n_layers; layer++) {
        const bool of_model = layer == s->d.n_layers;
        for (int t = 0; t < XM_TENSORS; t++) {
            const uint64_t set = of_model ? s->d.tensors : s->d.layer[layer].tensors;
            if (xm_tensor_infos[t].is_of_layer == !of_model && set >> t & 1)
                XM_TRY(one(s, ctx, (enum xm_decoder_tensor)t, of_model ? 0 : layer));
        }
    }
    return XM_OK;
}

/* Returns the columns of a layer's matrix, which the group size must divide; 0: it is not such a
 * matrix. */
static uint64_t
cols_of(const struct xm_synth *s, enum xm_decoder_tensor t, uint32_t layer)
{
    const struct xm_tensor_info *info = &xm_tensor_infos[t];
    uint64_t dim[3];
    if (info->kind != XM_TENSOR_MATRIX || !info->is_of_layer)
        return 0;
    xm_decoder_dims(&s->d, t, layer, dim);
    return dim[info->rank - 1];
}

static enum xm_status
check_group(struct xm_synth *s, void *ctx, enum xm_decoder_tensor t, uint32_t layer)
{
    const uint64_t cols = cols_of(s, t, layer);
    (void)ctx;
    if (cols % s->m->group == 0)
        return XM_OK;
    return xm_fail(s->err, XM_INVALID,
                   "groups of %" PRIu32 " do not divide rows of %" PRIu64
                   " columns (hidden, expert width and heads * head size must be "
                   "multiples)",
                   s->m->group, cols);
}

static enum xm_status
shrink_to_fit(struct xm_synth *s, void *ctx, enum xm_decoder_tensor t, uint32_t layer)
{
    uint32_t *group = ctx;
    while (*group > 1 && cols_of(s, t, layer) % *group)
        *group /= 2;
    return XM_OK;
}

/* Adds a tensor's number of parameters to the sum; fails above MOST_PARAMETERS, so that sizes
 * computed from it cannot overflow. */
static enum xm_status
add_parameters(struct xm_synth *s, void *ctx, enum xm_decoder_tensor t, uint32_t layer)
{
    uint64_t *sum = ctx, dim[3], n;
    xm_decoder_dims(&s->d, t, layer, dim);
    if (!xm_mul_size(dim[0], dim[1], &n) || !xm_mul_size(n, dim[2], &n) ||
        !xm_add_size(*sum, n, sum) || *sum > MOST_PARAMETERS)
        return xm_fail(s->err, XM_INVALID, "a model of more than %" PRIu64 " parameters",
                       MOST_PARAMETERS);
    return XM_OK;
}

static enum xm_status
begin(struct xm_synth *s, const struct xm_synthetic *m, struct xm_error *err)
{
    *s = (struct xm_synth){.m = m, .err = err};
    return xm_preset_decoder(&m->sizes, &s->arena, &s->d, err);
}

uint32_t
xm_synthetic_common_group(const struct xm_synthetic *m)
{
    uint32_t group = DEFAULT_GROUP;
    struct xm_synth s;
    if (begin(&s, m, NULL) == XM_OK)
        xm_synth_each_tensor(&s, &group, shrink_to_fit);
    xm_arena_free(&s.arena);
    return group;
}

static enum xm_status
check(struct xm_synth *s, const struct xm_synthetic *m)
{
    uint64_t parameters = 0;
    if (m->sizes.vocabulary < LEAST_VOCABULARY)
        return xm_fail(s->err, XM_INVALID,
                       "the vocabulary must have at least %d tokens: one for each byte, "
                       "an end token and a word",
                       LEAST_VOCABULARY);
    if (m->r1 && (m->format != XM_SYNTHETIC_IR || !m->sizes.experts))
        return xm_fail(s->err, XM_INVALID,
                       "--form r1 is possible only for models in IR that have experts");
    XM_TRY(xm_synth_each_tensor(s, &parameters, add_parameters));
    return m->format == XM_SYNTHETIC_IR && m->group
               ? xm_synth_each_tensor(s, NULL, check_group)
               : XM_OK;
}

enum xm_status
xm_synthetic_check(const struct xm_synthetic *m, struct xm_error *err)
{
    struct xm_synth s;
    enum xm_status status = begin(&s, m, err);
    if (status == XM_OK)
        status = check(&s, m);
    xm_arena_free(&s.arena);
    return status;
}

static enum xm_status
add_bytes(struct xm_synth *s, void *ctx, enum xm_decoder_tensor t, uint32_t layer)
{
    uint64_t *bytes = ctx;
    *bytes += s->m->format == XM_SYNTHETIC_IR ? xm_synth_ir_bytes(s, t, layer)
                                              : xm_synth_gguf_bytes(s, t, layer);
    return XM_OK;
}

static uint64_t
all_bytes(struct xm_synth *s)
{
    uint64_t bytes = 0;
    xm_synth_each_tensor(s, &bytes, add_bytes);
    return bytes;
}

uint64_t
xm_synthetic_bytes(const struct xm_synthetic *m)
{
    struct xm_synth s;
    uint64_t bytes = begin(&s, m, NULL) == XM_OK ? all_bytes(&s) : 0;
    xm_arena_free(&s.arena);
    return bytes;
}

/* ---- the model ------------------------------------------------------------------------ */

bool
xm_synthetic_is_file(const char *path)
{
    const size_t n = strlen(path), e = sizeof(XM_SYNTHETIC_GGUF_ENDING) - 1;
    return n > e && strcmp(path + n - e, XM_SYNTHETIC_GGUF_ENDING) == 0;
}

enum xm_status
xm_synth_check_place(const struct xm_synth *s, const char *path)
{
    return s->m->keeps && access(path, F_OK) == 0
               ? xm_fail(s->err, XM_IO,
                         "'%.300s' has been created since this run began: give --force "
                         "to replace it",
                         path)
               : XM_OK;
}

/* Locks the folder, because two writers could leave the .xml of one with the .bin of the other. The
 * lock lives as long as the descriptor *fd. A file system without locks is used without one. */
static enum xm_status
lock_folder(struct xm_synth *s, const char *path, int *fd)
{
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0 || flock(*fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return XM_OK;
    close(*fd);
    return xm_fail(s->err, XM_IO,
                   "another program is writing a model to the folder '%.300s'", path);
}

static enum xm_status
write_to_folder(struct xm_synth *s, const char *path)
{
    struct xm_strbuf file = {0};
    if (s->m->format != XM_SYNTHETIC_GGUF)
        return xm_synth_write_ir(s, path);
    xm_strbuf_printf(&file, "%s/model" XM_SYNTHETIC_GGUF_ENDING, path);
    const enum xm_status status =
        xm_strbuf_ok(&file) ? xm_synth_write_gguf(s, xm_strbuf_text(&file), true)
                            : xm_no_memory(s->err, "a path");
    xm_strbuf_free(&file);
    return status;
}

static enum xm_status
write_model(struct xm_synth *s, const char *path)
{
    int lock;
    if (s->m->format == XM_SYNTHETIC_GGUF && xm_synthetic_is_file(path))
        return xm_synth_write_gguf(s, path, false);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return xm_fail(s->err, XM_IO, "cannot create folder '%s': %s", path,
                       strerror(errno));
    XM_TRY(lock_folder(s, path, &lock));
    const enum xm_status status = write_to_folder(s, path);
    if (lock >= 0)
        close(lock);
    return status;
}

enum xm_status
xm_synthetic_write(const struct xm_synthetic *m, const char *path,
                   void (*progress)(uint64_t done, uint64_t all, void *ctx), void *ctx,
                   struct xm_error *err)
{
    struct xm_error own = {0};
    struct xm_synth s;
    enum xm_status status = begin(&s, m, err ? err : &own);
    s.random = (m->seed + 1) * 0x9e3779b97f4a7c15ull;
    s.random = s.random ? s.random : 1;
    s.progress = progress;
    s.ctx = ctx;
    if (status == XM_OK)
        status = check(&s, m);
    s.all_bytes = status == XM_OK ? all_bytes(&s) : 0;
    if (status == XM_OK)
        status = write_model(&s, path);
    xm_arena_free(&s.arena);
    return status;
}
