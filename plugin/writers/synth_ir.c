/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the decoder's graph as OpenVINO IR, with quantised weights in the form that exporters use:
 *
 *     w = (q - zp) scale,  q uniform over its range; `scale` gives a row of k columns unit gain
 */
#include <math.h>
#include <string.h>

#include "plugin/writers/openvino_ir_write.h"
#include "plugin/writers/synth.h"

/* ---- weights ------------------------------------------------------------------------- */

static struct xm_value *
constant(struct xm_synth *s, struct xm_builder *b, enum xm_element e, uint32_t rank,
         const uint64_t *dims, uint8_t **bytes)
{
    struct xm_type type = {.element = e, .shape.rank = rank};
    uint64_t n = 1, n_bytes = 0;
    for (uint32_t i = 0; i < rank; i++) {
        type.shape.dim[i] = xm_dim_const((int64_t)dims[i]);
        n *= dims[i];
    }
    if (!xm_element_bytes(e, n, &n_bytes))
        return NULL;
    *bytes = xm_bin_file_take(&s->bin, n_bytes, 64, s->err);
    if (!*bytes)
        return NULL;
    return xm_const(b, &type, (struct xm_data){*bytes, n_bytes});
}

/* Fills p with n random f16 values in (0.75, 1.25) times `scale`. */
static void
fill_scales(struct xm_synth *s, uint8_t *p, uint64_t n, float scale)
{
    for (uint64_t i = 0; i < n && !s->m->blank; i++)
        xm_store_float(XM_F16, p, i, scale * (1.0f + 0.25f * xm_synth_uniform(s)));
}

/* Makes the zero points: at random one of the two middle values of the range (7 or 8, 127 or
 * 128). */
static struct xm_value *
zero_points(struct xm_synth *s, struct xm_builder *b, enum xm_element e, uint32_t rank,
            const uint64_t *dims, uint64_t n)
{
    uint8_t *bytes = NULL;
    struct xm_value *zp = constant(s, b, e, rank, dims, &bytes);
    for (uint64_t i = 0; zp && i < n && !s->m->blank; i += 1 + (e == XM_U4)) {
        if (e == XM_U4)
            bytes[i / 2] = (uint8_t)(0x77 + (xm_synth_next(s) & 0x11));
        else
            bytes[i] = (uint8_t)(127 + (xm_synth_next(s) & 1));
    }
    return zp;
}

/* Returns the element type of a tensor, and its group size: as the options say, except that tables
 * have 8 bits and one scale per row. */
static enum xm_element
element_of(const struct xm_synth *s, enum xm_decoder_tensor t, uint32_t *group)
{
    const bool is_table =
        xm_tensor_infos[t].kind == XM_TENSOR_TABLE || t == XM_TENSOR_OUTPUT;
    *group = is_table ? 0 : s->m->group;
    return is_table && s->m->element != XM_F32 ? XM_U8 : s->m->element;
}

/* Builds a matrix [n,k] or [experts,n,k] with its dequantisation, a value in f32. */
static struct xm_value *
matrix(struct xm_synth *s, struct xm_builder *b, enum xm_decoder_tensor t,
       const uint64_t dim[3])
{
    uint32_t group;
    const enum xm_element e = element_of(s, t, &group);
    const uint32_t full_rank = xm_tensor_infos[t].rank;
    const uint64_t k = dim[full_rank - 1], g = group ? group : k;
    const bool is_quantised = e != XM_F16 && e != XM_BF16 && e != XM_F32;
    const bool has_groups = group && is_quantised, has_zero = e == XM_U4 || e == XM_U8;
    uint64_t dims[4], scale_dims[4], count = 1;
    uint32_t rank = full_rank;
    uint8_t *bytes = NULL;
    for (uint32_t i = 0; i < full_rank; i++)
        dims[i] = scale_dims[i] = dim[i];
    dims[rank - 1] = scale_dims[rank - 1] = k / g;
    if (has_groups) {
        dims[rank] = g;
        scale_dims[rank++] = 1;
    } else {
        dims[rank - 1] = k;
        scale_dims[rank - 1] = 1;
    }
    for (uint32_t i = 0; i < rank; i++)
        count *= scale_dims[i];
    struct xm_value *w = constant(s, b, e, rank, dims, &bytes);
    if (!w)
        return NULL;
    if (!is_quantised) {
        xm_synth_fill_floats(s, e, bytes, count * k, sqrtf(3.0f / (float)k));
        return e == XM_F32 ? w : xm_convert(b, w, XM_F32);
    }
    xm_synth_fill(s, bytes, w->node->attr.data.n_bytes);
    const float spread = (float)(1 << xm_element_bits(e)) / sqrtf(12.0f);
    struct xm_value *zp = has_zero ? zero_points(s, b, e, rank, scale_dims, count) : NULL;
    struct xm_value *scale = constant(s, b, XM_F16, rank, scale_dims, &bytes);
    if (!scale)
        return NULL;
    fill_scales(s, bytes, count, 1.0f / (spread * sqrtf((float)k)));
    struct xm_value *x = xm_convert(b, w, XM_F16);
    if (has_zero)
        x = xm_op2(b, XM_OP_SUBTRACT, x, xm_convert(b, zp, XM_F16));
    x = xm_op2(b, XM_OP_MULTIPLY, x, scale);
    if (has_groups) {
        const int64_t target[3] = {(int64_t)dim[0], (int64_t)dim[1], (int64_t)dim[2]};
        struct xm_value *in[2] = {x, xm_const_ints(b, XM_I64, target, (int)full_rank)};
        x = xm_op_build(b, XM_OP_RESHAPE, NULL, in, 2);
    }
    return xm_convert(b, x, XM_F32);
}

/* Builds a vector, f32 [n] or, of rank 2, [n0,1,n1]. */
static struct xm_value *
vector(struct xm_synth *s, struct xm_builder *b, enum xm_decoder_tensor t,
       const uint64_t dim[3])
{
    const bool is_matrix = xm_tensor_infos[t].rank == 2;
    const uint64_t dims[3] = {dim[0], 1, dim[1]};
    uint8_t *bytes = NULL;
    struct xm_value *v = constant(s, b, XM_F32, is_matrix ? 3 : 1, dims, &bytes);
    if (v)
        xm_synth_vector(s, t, dim[0] * dim[1], (float *)(void *)bytes);
    return v;
}

static struct xm_value *
get(void *ctx, struct xm_builder *b, enum xm_decoder_tensor t, uint32_t layer)
{
    struct xm_synth *s = ctx;
    uint64_t dim[3];
    xm_decoder_dims(&s->d, t, layer, dim);
    struct xm_value *v = xm_tensor_infos[t].kind == XM_TENSOR_VECTOR
                             ? vector(s, b, t, dim)
                             : matrix(s, b, t, dim);
    if (!v && b->graph->err.status == XM_OK && s->err->status != XM_OK)
        xm_fail(&b->graph->err, s->err->status, "%s", s->err->text);
    return v;
}

uint64_t
xm_synth_ir_bytes(const struct xm_synth *s, enum xm_decoder_tensor t, uint32_t layer)
{
    uint64_t dim[3];
    uint32_t group;
    const enum xm_element e = element_of(s, t, &group);
    xm_decoder_dims(&s->d, t, layer, dim);
    const uint64_t n = dim[0] * dim[1] * dim[2];
    if (xm_tensor_infos[t].kind == XM_TENSOR_VECTOR)
        return n * sizeof(float);
    const uint64_t k = dim[xm_tensor_infos[t].rank - 1];
    const uint64_t scales =
        e == XM_F16 || e == XM_BF16 || e == XM_F32 ? 0 : n / (group ? group : k);
    return n * xm_element_bits(e) / 8 + 3 * scales;
}

/* ---- the files ----------------------------------------------------------------------- */

static enum xm_status
write_files(struct xm_synth *s, struct xm_graph *g, const struct xm_new_file *xml,
            const struct xm_new_file *bin)
{
    const struct xm_decoder_weights weights = {s, get};
    const uint64_t slack = 64ull * 1024 * (s->d.n_layers + 16);
    XM_TRY(xm_bin_file_create(&s->bin, bin, 2 * s->all_bytes + slack, s->err));
    s->bin.sparse = s->m->blank;
    enum xm_status status = xm_decoder_build(
        &s->d, &weights, s->m->r1 ? XM_EXPERTS_R1 : XM_EXPERTS_EXPORTER, g, s->err);
    if (status == XM_OK)
        status = xm_openvino_ir_write(g, xml, &s->bin, s->err);
    enum xm_status closed = xm_bin_file_close(&s->bin, s->err);
    return status == XM_OK ? closed : status;
}

/* Writes both files. The .bin gets its final name first, because an .xml without weights is not a
 * model. */
static enum xm_status
write_both(struct xm_synth *s, struct xm_graph *g, const char *xml_path,
           const char *bin_path)
{
    struct xm_new_file xml = {0}, bin = {0};
    enum xm_status status = xm_synth_check_place(s, xml_path);
    if (status == XM_OK)
        status = xm_new_file_begin(&xml, xml_path, s->err);
    if (status == XM_OK)
        status = xm_new_file_begin(&bin, bin_path, s->err);
    if (status == XM_OK)
        status = write_files(s, g, &xml, &bin);
    status = xm_new_file_end(&bin, status, s->err);
    return xm_new_file_end(&xml, status, s->err);
}

enum xm_status
xm_synth_write_ir(struct xm_synth *s, const char *folder)
{
    struct xm_strbuf xml = {0}, bin = {0};
    struct xm_graph *g = xm_graph_create("synthetic");
    xm_strbuf_printf(&xml, "%s/openvino_model.xml", folder);
    xm_strbuf_printf(&bin, "%s/openvino_model.bin", folder);
    enum xm_status status =
        g && xm_strbuf_ok(&xml) && xm_strbuf_ok(&bin)
            ? write_both(s, g, xm_strbuf_text(&xml), xm_strbuf_text(&bin))
            : xm_no_memory(s->err, "a graph");
    xm_strbuf_free(&xml);
    xm_strbuf_free(&bin);
    if (g)
        xm_graph_destroy(g);
    return status == XM_OK ? xm_synth_write_side_files(s, folder) : status;
}
