/* SPDX-License-Identifier: Apache-2.0
 *
 * linear through oneDNN's CPU engine: the host function of variant linear_gemm_onednn.
 *
 * No operand is rounded, whatever types the processor multiplies in hardware, so that a token's
 * result does not depend on the number of other tokens. Weights are read in place if they have the
 * type of the product; else a kernel converts some rows at a time (a stretch) into bounded scratch.
 * Quantised weights are refused: linear_gemm_vnni and linear_gemm_vec need no dequantised copy.
 *
 *   products of f32    f16 and f32 weights; bf16 ones where the processor has no products of bf16
 *       x, W     ->  f32, if they have another type (linear_unpack_vec)
 *       matmul       a host function in queue order, per stretch of W's rows and piece of tokens
 *       y        ->  f16, if that is the result's type (linear_unpack_vec)
 *
 *   products of bf16   bf16 weights and f16 activations, where the processor has them (AVX512-BF16,
 *                      AMX): an f16 number is the exact sum of two bf16 numbers
 *       x        ->  rows 2t (high part) and 2t + 1 (remainder), linear_split_vec
 *       matmul       of all these rows
 *       y        <-  row 2t + row 2t + 1 + bias, linear_sum_vec
 *
 * Pieces are 64, 128, 256 or 512 tokens; the last one reaches back over tokens already
 * done, so that any prompt needs these four shapes only and nothing is padded. oneDNN's own cache
 * shares primitives of equal shape between layers.
 */
#include <pthread.h>

#include "primitives/args.h"
#include "primitives/linear/linear_library.h"
#include "primitives/onednn/onednn_guard.h"
#include "primitives/onednn/onednn_matmul.h"
#include "runtime/util/compiler.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

enum { LEAST_POWER = 6, STRETCH_BYTES = 16 << 20 }; /* 2^6 tokens, the least piece */

struct linear {
    struct xm_engine *engine;
    const struct xm_device_weight *weight;
    const struct xm_buffer *bias;
    enum xm_element src, dst;
    struct xm_onednn_operands operands; /* of the products                           */
    /* rows of W at a time; N if W is read in place */
    uint64_t stretch;
    struct xm_kernel *unpack_x, *unpack_w, *pack_y; /* NULL: not needed */
    pthread_mutex_t lock;                           /* guards `product` */
    /* by power of tokens; [.][1]: the last, shorter stretch */
    dnnl_primitive_t product[XM_ONEDNN_PIECES][2];
};

/* ---- oneDNN's side ----------------------------------------------------------------- */

static dnnl_engine_t cpu;
static pthread_once_t cpu_once = PTHREAD_ONCE_INIT;

static void
create_cpu(void)
{
    xm_onednn_be_quiet();
    if (dnnl_engine_get_count(dnnl_cpu) == 0 ||
        dnnl_engine_create(&cpu, dnnl_cpu, 0) != dnnl_success)
        cpu = NULL;
}

static dnnl_engine_t
cpu_engine(void)
{
    pthread_once(&cpu_once, create_cpu);
    return cpu;
}

/* Returns the problem y[m,n] = x[m,k] w[n,k]^T + bias[n] with y in f32; y's rows are `ld` elements
 * apart. */
static struct xm_onednn_problem
product_problem(uint64_t m, uint64_t n, uint64_t k, uint64_t ld, enum xm_element compute,
                bool has_bias)
{
    return (struct xm_onednn_problem){.m = m,
                                      .n = n,
                                      .k = k,
                                      .y_step = ld,
                                      .x = compute,
                                      .w = compute,
                                      .y = XM_F32,
                                      .bias = has_bias};
}

/* Returns NULL if oneDNN has no implementation, or only reference code. */
static dnnl_primitive_desc_t
describe_product(const struct xm_onednn_problem *p)
{
    dnnl_primitive_desc_t pd = cpu_engine() ? xm_onednn_describe(cpu_engine(), p) : NULL;
    if (!pd || !xm_onednn_is_reference(xm_onednn_implementation(pd)))
        return pd;
    xm_debug(XM_DEBUG_DISPATCH, "linear_gemm_onednn: oneDNN offers '%s' for %s",
             xm_onednn_implementation(pd), xm_element_text(p->x));
    dnnl_primitive_desc_destroy(pd);
    return NULL;
}

static bool
multiplies(const struct xm_weight *w, enum xm_element compute)
{
    uint64_t n = w->rows < 1024 ? w->rows : 1024;
    const struct xm_onednn_problem p = product_problem(
        xm_onednn_piece_rows(LEAST_POWER), n, w->cols, w->rows, compute, false);
    dnnl_primitive_desc_t pd = describe_product(&p);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    return pd != NULL;
}

/* Returns whether ONEDNN_MAX_CPU_ISA keeps oneDNN from bf16 products that the processor has. oneDNN
 * then emulates them, several times slower than f32 products. */
static bool
leaves_bf16(void)
{
    const unsigned bf16 = dnnl_cpu_isa_avx512_core_bf16;
    return xm_cpu_has_bf16() && ((unsigned)dnnl_get_effective_cpu_isa() & bf16) != bf16;
}

struct xm_onednn_operands
xm_onednn_linear_operands(const struct xm_device_info *device, const struct xm_weight *w,
                          enum xm_element src)
{
    const struct xm_onednn_operands split = {XM_BF16, 2}, f32 = {XM_F32, 1},
                                    none = {XM_DYNAMIC, 0};
    if (src == XM_F16 && w->element == XM_BF16 && xm_device_has(device, XM_CAP_BF16) &&
        !leaves_bf16() && multiplies(w, XM_BF16))
        return split;
    return multiplies(w, XM_F32) ? f32 : none;
}

const char *
xm_onednn_linear_refuses(const struct xm_device_info *device, const struct xm_weight *w,
                         enum xm_element src)
{
    if (!cpu_engine())
        return "this oneDNN has no CPU engine";
    if (xm_weight_is_plain_integers(w))
        return "oneDNN multiplies only integers that have scales";
    if (xm_weight_is_quantised(w) || xm_weight_is_blocks(w) || xm_weight_is_codes(w))
        return "oneDNN would need a weight dequantised to f32, which is not faster than "
               "the other kernels";
    return xm_onednn_linear_operands(device, w, src).element == XM_DYNAMIC
               ? "oneDNN has only reference code for these sizes"
               : NULL;
}

/* ---- creation ---------------------------------------------------------------------- */

static uint64_t
bytes_of(enum xm_element e)
{
    return xm_element_bits(e) / 8;
}

static bool
is_split(const struct linear *l)
{
    return l->operands.parts > 1;
}

/* Returns whether oneDNN reads the weight in place. */
static bool
is_plain(const struct linear *l)
{
    const struct xm_weight *w = &l->weight->host;
    return w->element == l->operands.element && xm_weight_is_whole(w);
}

static enum xm_status
build_kernels(struct linear *l, struct xm_error *err)
{
    const struct xm_weight *w = &l->weight->host;
    const struct xm_weight f16 = {.element = XM_F16}, f32 = {.element = XM_F32};
    const char *name = "linear_unpack_vec";
    if (is_split(l))
        XM_TRY(xm_engine_kernel(l->engine, "linear_split_vec", "", &l->unpack_x, err));
    else if (l->src != XM_F32)
        XM_TRY(xm_weight_kernel(l->engine, name, xm_one_weight(&f16), &l->unpack_x, err,
                                "-DOUT=f32"));
    if (!is_plain(l))
        XM_TRY(xm_weight_kernel(l->engine, name, xm_one_weight(w), &l->unpack_w, err,
                                "-DOUT=%s", xm_element_text(l->operands.element)));
    if (is_split(l))
        XM_TRY(xm_engine_kernel(l->engine, "linear_sum_vec",
                                l->dst == XM_F16 ? "-DDST=f16" : "-DDST=f32", &l->pack_y,
                                err));
    else if (l->dst == XM_F16)
        XM_TRY(xm_weight_kernel(l->engine, name, xm_one_weight(&f32), &l->pack_y, err,
                                "-DOUT=f16"));
    return XM_OK;
}

static void
destroy(void *linear)
{
    struct linear *l = linear;
    if (!l)
        return;
    for (uint32_t p = LEAST_POWER; p < XM_ONEDNN_PIECES; p++) {
        dnnl_primitive_destroy(l->product[p][0]);
        dnnl_primitive_destroy(l->product[p][1]);
    }
    pthread_mutex_destroy(&l->lock);
    xm_free(l);
}

static enum xm_status
create(struct xm_engine *engine, const struct xm_library_desc *d, void **out,
       struct xm_error *err)
{
    const struct xm_weight *w = &d->weight->host;
    struct linear *l = xm_calloc(1, sizeof(*l));
    if (!l)
        return xm_no_memory(err, "a oneDNN linear");
    pthread_mutex_init(&l->lock, NULL);
    l->engine = engine;
    l->weight = d->weight;
    l->bias = d->bias;
    l->src = d->src;
    l->dst = d->dst;
    l->operands = xm_onednn_linear_operands(xm_engine_info(engine), w, d->src);
    l->stretch = w->rows;
    uint64_t most = STRETCH_BYTES / (w->cols * bytes_of(l->operands.element) + 1) + 1;
    if (!is_plain(l) && most < l->stretch)
        l->stretch = most;
    enum xm_status status = build_kernels(l, err);
    if (status != XM_OK) {
        destroy(l);
        return status;
    }
    *out = l;
    return XM_OK;
}

/* ---- the host function ------------------------------------------------------------- */

/* Arguments of the host function `multiply`; the queue copies them. */
struct product {
    dnnl_primitive_t primitive;
    struct xm_onednn_problem problem;
    const void *x, *w;
    const float *bias;
    float *y;
};

/* The casts drop const for oneDNN's interface; oneDNN writes only Y and the scratchpad. */
static dnnl_status_t
execute(const struct product *p, dnnl_stream_t stream, void *scratchpad)
{
    const struct xm_onednn_handles handles = {
        .arg[XM_ONEDNN_X] = {(void *)p->x, XM_ONEDNN_HOST},
        .arg[XM_ONEDNN_W] = {(void *)p->w, XM_ONEDNN_HOST},
        .arg[XM_ONEDNN_BIAS] = {(void *)p->bias, XM_ONEDNN_HOST},
        .arg[XM_ONEDNN_Y] = {p->y, XM_ONEDNN_HOST},
        .arg[XM_ONEDNN_SCRATCHPAD] = {scratchpad, XM_ONEDNN_HOST},
    };
    dnnl_status_t status = xm_onednn_execute(p->primitive, cpu_engine(), stream,
                                             &p->problem, &handles, NULL);
    return status == dnnl_success ? dnnl_stream_wait(stream) : status;
}

static enum xm_status
multiply(void *ctx, struct xm_error *err)
{
    const struct product *p = ctx;
    const_dnnl_primitive_desc_t pd = NULL;
    dnnl_stream_t stream = NULL;
    void *scratchpad = NULL;
    dnnl_status_t status = dnnl_primitive_get_primitive_desc(p->primitive, &pd);
    uint64_t bytes = status == dnnl_success ? xm_onednn_scratchpad_bytes(pd) : 0;
    if (bytes && !(scratchpad = xm_malloc(bytes)))
        status = dnnl_out_of_memory;
    if (status == dnnl_success)
        status = dnnl_stream_create(&stream, cpu_engine(), dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = execute(p, stream, scratchpad);
    dnnl_stream_destroy(stream);
    xm_free(scratchpad);
    if (status == dnnl_success)
        return XM_OK;
    return xm_fail(err, status == dnnl_out_of_memory ? XM_NO_MEMORY : XM_DEVICE,
                   "linear_gemm_onednn: a product of %llu x %llu x %llu failed with "
                   "oneDNN status %d",
                   (unsigned long long)p->problem.m, (unsigned long long)p->problem.n,
                   (unsigned long long)p->problem.k, (int)status);
}

/* ---- enqueueing -------------------------------------------------------------------- */

static enum xm_status
product_for(struct linear *l, uint32_t power, const struct xm_onednn_problem *p,
            dnnl_primitive_t *out, struct xm_error *err)
{
    pthread_mutex_lock(&l->lock);
    dnnl_primitive_t *slot = &l->product[power][p->n != l->stretch];
    if (!*slot) {
        dnnl_primitive_desc_t pd = describe_product(p);
        if (pd && xm_onednn_try_create(slot, pd) != dnnl_success)
            *slot = NULL;
        if (pd)
            dnnl_primitive_desc_destroy(pd);
    }
    *out = *slot;
    pthread_mutex_unlock(&l->lock);
    if (*out)
        return XM_OK;
    return xm_fail(
        err, XM_DEVICE, "oneDNN could not create a matmul of %llu x %llu x %llu",
        (unsigned long long)p->m, (unsigned long long)p->n, (unsigned long long)p->k);
}

/* Enqueues the conversion of rows first … first + rows - 1 of a weight to the kernel's type of
 * plain numbers. */
static enum xm_status
unpack(struct xm_queue *queue, struct xm_kernel *kernel,
       const struct xm_device_weight *from, uint64_t first, uint64_t rows,
       struct xm_buffer *to, struct xm_error *err)
{
    static const struct xm_launch_shape a_row_each = {.unit = XM_ALONE};
    const struct xm_counts counts = {.n = {[XM_UNITS] = rows}};
    struct xm_args a = {.n = 0};
    xm_put_weight(&a, "w", from);
    xm_put_buffer(&a, "out", to);
    xm_put_uint(&a, "first", first);
    xm_put_uint(&a, "k_count", from->host.cols);
    return xm_launch(&a_row_each, kernel, &counts, &a, queue, err);
}

/* Enqueues the split of x into rows of high and low parts. */
static enum xm_status
split(const struct linear *l, const struct xm_buffer *x, uint64_t tokens,
      struct xm_buffer *parts, struct xm_queue *queue, struct xm_error *err)
{
    static const struct xm_launch_shape a_row_each = {.unit = XM_ALONE};
    const struct xm_counts counts = {.n = {[XM_UNITS] = tokens}};
    struct xm_args a = {.n = 0};
    xm_put_buffer(&a, "x", x);
    xm_put_buffer(&a, "parts", parts);
    xm_put_uint(&a, "k_count", l->weight->host.cols);
    return xm_launch(&a_row_each, l->unpack_x, &counts, &a, queue, err);
}

/* Enqueues y = the sum of the products of both parts, plus bias. */
static enum xm_status
sum(const struct linear *l, const struct xm_buffer *products, uint64_t tokens,
    struct xm_buffer *y, struct xm_queue *queue, struct xm_error *err)
{
    static const struct xm_launch_shape a_row_each = {.unit = XM_ALONE};
    const struct xm_counts counts = {.n = {[XM_UNITS] = tokens}};
    struct xm_args a = {.n = 0};
    xm_put_buffer(&a, "products", products);
    xm_put_buffer(&a, "bias", l->bias);
    xm_put_buffer(&a, "y", y);
    xm_put_uint(&a, "n_count", l->weight->host.rows);
    return xm_launch(&a_row_each, l->pack_y, &counts, &a, queue, err);
}

/* Enqueues `unpack` for activations: describes them as a weight of plain floats. */
static enum xm_status
unpack_rows(struct xm_queue *queue, struct xm_kernel *kernel, struct xm_buffer *x,
            uint64_t rows, uint64_t cols, struct xm_buffer *to, struct xm_error *err)
{
    const struct xm_device_weight from = {
        .host = {.experts = 1, .rows = rows, .cols = cols}, .data = x};
    return unpack(queue, kernel, &from, 0, rows, to, err);
}

struct operands {
    const struct xm_buffer *x, *w;
    struct xm_buffer *y; /* f32 */
    uint64_t tokens;
};

/* Enqueues the products of all tokens with rows first … first + rows - 1 of W; o->w begins at row
 * `first`. */
static enum xm_status
enqueue_stretch(struct linear *l, const struct operands *o, uint64_t first, uint64_t rows,
                struct xm_queue *queue, struct xm_error *err)
{
    const struct xm_weight *w = &l->weight->host;
    const uint8_t *x = xm_buffer_host_ptr(o->x);
    float *y = xm_buffer_host_ptr(o->y);
    const uint64_t parts = l->operands.parts;
    const float *bias =
        /* a split product gets its bias in `sum` */
        l->bias && !is_split(l) ? xm_buffer_host_ptr(l->bias) : NULL;
    for (uint64_t t = 0; t < o->tokens;) {
        uint32_t power = xm_onednn_largest_piece(o->tokens - t, LEAST_POWER);
        uint64_t m = xm_onednn_piece_rows(power),
                 at = t + m <= o->tokens ? t : o->tokens - m;
        struct product p = {.problem =
                                product_problem(m * parts, rows, w->cols, w->rows,
                                                l->operands.element, bias != NULL)};
        XM_TRY(product_for(l, power, &p.problem, &p.primitive, err));
        p.x = x + at * parts * w->cols * bytes_of(l->operands.element);
        p.w = xm_buffer_host_ptr(o->w);
        p.bias = bias ? bias + first : NULL;
        p.y = y + at * parts * w->rows + first;
        XM_TRY(
            xm_queue_run_host(queue, "linear_gemm_onednn", multiply, &p, sizeof(p), err));
        t = at + m;
    }
    return XM_OK;
}

static enum xm_status
enqueue_products(struct linear *l, struct operands *o, struct xm_scratch *s,
                 struct xm_queue *queue, struct xm_error *err)
{
    const struct xm_weight *w = &l->weight->host;
    struct xm_buffer *plain = l->weight->data;
    if (l->unpack_w)
        XM_TRY(xm_scratch_take(s, l->stretch * w->cols * bytes_of(l->operands.element),
                               &plain, err));
    o->w = plain;
    if (!xm_buffer_host_ptr(o->x) || !xm_buffer_host_ptr(o->w) ||
        !xm_buffer_host_ptr(o->y))
        return xm_fail(err, XM_DEVICE,
                       "the host cannot access a buffer of a oneDNN matmul");
    for (uint64_t first = 0; first < w->rows; first += l->stretch) {
        uint64_t left = w->rows - first, rows = left < l->stretch ? left : l->stretch;
        if (l->unpack_w)
            XM_TRY(unpack(queue, l->unpack_w, l->weight, first, rows, plain, err));
        XM_TRY(enqueue_stretch(l, o, first, rows, queue, err));
    }
    return XM_OK;
}

static uint64_t
x_bytes(const struct linear *l, uint64_t tokens)
{
    return tokens * l->operands.parts * l->weight->host.cols *
           bytes_of(l->operands.element);
}

static uint64_t
products_bytes(const struct linear *l, uint64_t tokens)
{
    return tokens * l->operands.parts * l->weight->host.rows * sizeof(float);
}

static uint64_t
scratch(const void *linear, const struct xm_primitive *p, uint64_t tokens)
{
    const struct linear *l = linear;
    const struct xm_weight *w = &l->weight->host;
    uint64_t bytes = 0;
    if (l->unpack_x)
        bytes += xm_scratch_bytes(p, x_bytes(l, tokens));
    if (l->pack_y)
        bytes += xm_scratch_bytes(p, products_bytes(l, tokens));
    if (l->unpack_w)
        bytes +=
            xm_scratch_bytes(p, l->stretch * w->cols * bytes_of(l->operands.element));
    return bytes;
}

static enum xm_status
run(void *linear, const struct xm_library_call *c, struct xm_scratch *s,
    struct xm_queue *queue, struct xm_error *err)
{
    struct linear *l = linear;
    const struct xm_weight *w = &l->weight->host;
    const uint64_t tokens = c->tokens;
    struct xm_buffer *plain_x = c->x, *products = c->y;
    if (l->unpack_x)
        XM_TRY(xm_scratch_take(s, x_bytes(l, tokens), &plain_x, err));
    if (l->unpack_x && is_split(l))
        XM_TRY(split(l, c->x, tokens, plain_x, queue, err));
    else if (l->unpack_x)
        XM_TRY(unpack_rows(queue, l->unpack_x, c->x, tokens, w->cols, plain_x, err));
    if (l->pack_y)
        XM_TRY(xm_scratch_take(s, products_bytes(l, tokens), &products, err));
    struct operands o = {plain_x, NULL, products, tokens};
    XM_TRY(enqueue_products(l, &o, s, queue, err));
    if (!l->pack_y)
        return XM_OK;
    if (is_split(l))
        return sum(l, products, tokens, c->y, queue, err);
    return unpack_rows(queue, l->pack_y, products, tokens, w->rows, c->y, err);
}

const struct xm_linear_library xm_onednn_linear = {create, destroy, scratch, run};
