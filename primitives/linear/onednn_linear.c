/* SPDX-License-Identifier: Apache-2.0
 *
 * linear through oneDNN's CPU engine: the host function of variant linear_gemm_onednn.
 *
 * Dense weights are multiplied where they lie. Quantised ones are dequantised by a kernel
 * into bounded scratch, a stretch of rows at a time, and multiplied from there: oneDNN's
 * own decompression falls back to reference code for grouped zero points. f16 activations
 * go through bf16 where the processor multiplies it in hardware and that pays: tiles (AMX) for
 * quantised weights, vectors too for dense ones. f32 activations stay f32.
 *
 *   x, W     ->  bf16 or f32 where they are something else (linear_unpack_vec)
 *   matmul       a host function in queue order, per stretch of W's rows and piece of tokens
 *   y        ->  f16 where that is wanted
 *
 * Pieces are 64, 128, 256 or 512 tokens; the last one reaches back over tokens already
 * done, so that any prompt needs these four shapes only and nothing is padded. oneDNN
 * shares primitives of equal shape between layers in a cache of its own.
 */
#include <pthread.h>

#include "primitives/args.h"
#include "primitives/linear/linear_library.h"
#include "primitives/onednn/onednn_guard.h"
#include "primitives/onednn/onednn_matmul.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

enum { LEAST_POWER = 6, STRETCH_BYTES = 16 << 20 }; /* 2^6 tokens, the least piece */

struct linear {
    struct xm_engine *engine;
    const struct xm_device_weight *weight;
    const struct xm_buffer *bias;
    enum xm_element src, dst, compute; /* compute: bf16 or f32                       */
    uint64_t stretch;                  /* rows of W at a time; N when used in place  */
    struct xm_kernel *unpack_x, *unpack_w, *pack_y; /* NULL where not needed         */
    pthread_mutex_t lock;                           /* of product                    */
    dnnl_primitive_t product[XM_ONEDNN_PIECES][2];  /* [.][1]: the last, short stretch */
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

/* y[m,n] = x[m,k] w[n,k]^T + bias[n] in f32, y's rows being `ld` apart. */
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

/* NULL when oneDNN has none, or only reference code. */
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

/* What the processor has and oneDNN was not told to leave (ONEDNN_MAX_CPU_ISA). */
static bool
multiplies_by(const struct xm_device_info *device, uint32_t cap, dnnl_cpu_isa_t isa)
{
    return xm_device_has(device, cap) &&
           ((unsigned)dnnl_get_effective_cpu_isa() & (unsigned)isa) == (unsigned)isa;
}

/* Whether the product is of a dequantised copy. */
static bool
is_compressed(const struct xm_weight *w)
{
    return xm_weight_is_quantised(w) || xm_weight_is_blocks(w);
}

/* Without instructions for it oneDNN emulates products of bf16, several times slower than those of
 * f32. Vectors of bf16 multiply as fast as the 16-bit integers of linear_gemm_vnni, or at half
 * their rate, and integers need no dequantised copy: it pays for tiles only. */
static bool
has_bf16_products(const struct xm_device_info *device, const struct xm_weight *w)
{
    return is_compressed(w)
               ? multiplies_by(device, XM_CAP_BF16_TILES, dnnl_cpu_isa_avx512_core_amx)
               : multiplies_by(device, XM_CAP_BF16, dnnl_cpu_isa_avx512_core_bf16);
}

/* bf16 keeps 8 bits: enough beside f16 activations, not where f32 was asked for. */
static enum xm_element
compute_element(const struct xm_device_info *device, const struct xm_weight *w,
                enum xm_element src, enum xm_element product)
{
    if (src == XM_F16 && product == XM_F16 && has_bf16_products(device, w) &&
        multiplies(w, XM_BF16))
        return XM_BF16;
    return multiplies(w, XM_F32) ? XM_F32 : XM_DYNAMIC;
}

const char *
xm_onednn_linear_refuses(const struct xm_device_info *device, const struct xm_weight *w,
                         enum xm_element src, enum xm_element product)
{
    if (!cpu_engine())
        return "this oneDNN has no CPU engine";
    if (xm_weight_is_plain_integers(w))
        return "oneDNN multiplies integers with scales only";
    const enum xm_element compute = compute_element(device, w, src, product);
    if (compute == XM_DYNAMIC)
        return "oneDNN has only reference code for these sizes";
    /* The vector kernels have the same products of f32 and need no dequantised copy. */
    if (is_compressed(w) && compute == XM_F32)
        return src == XM_F16 && product == XM_F16
                   ? "the processor has no tiles of bf16, and without them oneDNN gains "
                     "nothing"
                   : "dequantised in f32, oneDNN gains nothing on the vector kernel";
    return NULL;
}

/* ---- creation ---------------------------------------------------------------------- */

static uint64_t
bytes_of(enum xm_element e)
{
    return xm_element_bits(e) / 8;
}

/* Whether oneDNN reads the weight where it is. */
static bool
is_plain(const struct xm_weight *w, enum xm_element compute)
{
    return w->element == compute && xm_weight_is_whole(w);
}

static enum xm_status
build_kernels(struct linear *l, struct xm_error *err)
{
    const struct xm_weight *w = &l->weight->host;
    const struct xm_weight f16 = {.element = XM_F16}, f32 = {.element = XM_F32};
    const char *name = "linear_unpack_vec", *compute = xm_element_text(l->compute);
    if (l->src != l->compute)
        XM_TRY(xm_weight_kernel(l->engine, name,
                                xm_one_weight(l->src == XM_F16 ? &f16 : &f32),
                                &l->unpack_x, err, "-DOUT=%s", compute));
    if (!is_plain(w, l->compute))
        XM_TRY(xm_weight_kernel(l->engine, name, xm_one_weight(w), &l->unpack_w, err,
                                "-DOUT=%s", compute));
    if (l->dst == XM_F16)
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
        return xm_fail(err, XM_NO_MEMORY, "no memory for a oneDNN linear");
    pthread_mutex_init(&l->lock, NULL);
    l->engine = engine;
    l->weight = d->weight;
    l->bias = d->bias;
    l->src = d->src;
    l->dst = d->dst;
    l->compute = compute_element(xm_engine_info(engine), w, d->src, d->product);
    l->stretch = w->rows;
    uint64_t most = STRETCH_BYTES / (w->cols * bytes_of(l->compute) + 1) + 1;
    if (!is_plain(w, l->compute) && most < l->stretch)
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

/* One product; copied into the queue. */
struct product {
    dnnl_primitive_t primitive;
    struct xm_onednn_problem problem;
    const void *x, *w;
    const float *bias;
    float *y;
};

/* oneDNN's memory is not const; it only writes Y. */
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

static void
multiply(void *ctx)
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
    if (status != dnnl_success)
        xm_log(XM_LOG_ERROR, "linear_gemm_onednn: oneDNN failed with status %d",
               (int)status);
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
    return xm_fail(err, XM_DEVICE, "oneDNN made no matmul of %llu x %llu x %llu",
                   (unsigned long long)p->m, (unsigned long long)p->n,
                   (unsigned long long)p->k);
}

/* Rows first … first + rows of a weight as plain numbers. */
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

/* The same for activations, which are a matrix of floats as well. */
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

/* Rows first … first + rows of W with every token; o->w begins at row `first`. */
static enum xm_status
enqueue_stretch(struct linear *l, const struct operands *o, uint64_t first, uint64_t rows,
                struct xm_queue *queue, struct xm_error *err)
{
    const struct xm_weight *w = &l->weight->host;
    const uint8_t *x = xm_buffer_host_ptr(o->x);
    float *y = xm_buffer_host_ptr(o->y);
    const float *bias = l->bias ? xm_buffer_host_ptr(l->bias) : NULL;
    for (uint64_t t = 0; t < o->tokens;) {
        uint32_t power = xm_onednn_largest_piece(o->tokens - t, LEAST_POWER);
        uint64_t m = xm_onednn_piece_rows(power),
                 at = t + m <= o->tokens ? t : o->tokens - m;
        struct product p = {.problem = product_problem(m, rows, w->cols, w->rows,
                                                       l->compute, l->bias != NULL)};
        XM_TRY(product_for(l, power, &p.problem, &p.primitive, err));
        p.x = x + at * w->cols * bytes_of(l->compute);
        p.w = xm_buffer_host_ptr(o->w);
        p.bias = bias ? bias + first : NULL;
        p.y = y + at * w->rows + first;
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
        XM_TRY(
            xm_scratch_take(s, l->stretch * w->cols * bytes_of(l->compute), &plain, err));
    o->w = plain;
    if (!xm_buffer_host_ptr(o->x) || !xm_buffer_host_ptr(o->w) ||
        !xm_buffer_host_ptr(o->y))
        return xm_fail(err, XM_DEVICE, "the host cannot see a buffer of a oneDNN matmul");
    for (uint64_t first = 0; first < w->rows; first += l->stretch) {
        uint64_t left = w->rows - first, rows = left < l->stretch ? left : l->stretch;
        if (l->unpack_w)
            XM_TRY(unpack(queue, l->unpack_w, l->weight, first, rows, plain, err));
        XM_TRY(enqueue_stretch(l, o, first, rows, queue, err));
    }
    return XM_OK;
}

static uint64_t
scratch(const void *linear, const struct xm_primitive *p, uint64_t tokens)
{
    const struct linear *l = linear;
    const struct xm_weight *w = &l->weight->host;
    uint64_t size = bytes_of(l->compute), bytes = 0;
    if (l->unpack_x)
        bytes += xm_scratch_bytes(p, tokens * w->cols * size);
    if (l->pack_y)
        bytes += xm_scratch_bytes(p, tokens * w->rows * sizeof(float));
    if (l->unpack_w)
        bytes += xm_scratch_bytes(p, l->stretch * w->cols * size);
    return bytes;
}

static enum xm_status
run(void *linear, const struct xm_library_call *c, struct xm_scratch *s,
    struct xm_queue *queue, struct xm_error *err)
{
    struct linear *l = linear;
    const struct xm_weight *w = &l->weight->host;
    const uint64_t tokens = c->tokens;
    struct xm_buffer *plain_x = c->x, *sum = c->y;
    if (l->unpack_x) {
        XM_TRY(
            xm_scratch_take(s, tokens * w->cols * bytes_of(l->compute), &plain_x, err));
        XM_TRY(unpack_rows(queue, l->unpack_x, c->x, tokens, w->cols, plain_x, err));
    }
    if (l->pack_y)
        XM_TRY(xm_scratch_take(s, tokens * w->rows * sizeof(float), &sum, err));
    struct operands o = {plain_x, NULL, sum, tokens};
    XM_TRY(enqueue_products(l, &o, s, queue, err));
    if (!l->pack_y)
        return XM_OK;
    return unpack_rows(queue, l->pack_y, sum, tokens, w->rows, c->y, err);
}

const struct xm_linear_library xm_onednn_linear = {create, destroy, scratch, run};
