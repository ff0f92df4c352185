/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/logits/kld_base.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plugin/logits/distribution.h"
#include "plugin/text/log_sum_exp.h"
#include "runtime/util/memory.h"

static const char magic[] = "_logits_";
enum {
    MAGIC = 8,
    HEADER = MAGIC + 12,
    ROW_HEADER = 8,
    STEPS = 65535,  /* largest q */
    MOST = 1 << 24, /* maximum number of tokens in a chunk, and in a vocabulary */
    MOST_CHUNKS = 1 << 24
};
/* below the largest logit; deeper ones are stored as 0 */
static const float deepest = 16.0f;
/* a log-probability may exceed 0 by this, due to rounding */
static const double rounding = 0.01;

uint64_t
xm_kld_row_bytes(uint32_t vocabulary)
{
    return ROW_HEADER + 4 * (((uint64_t)vocabulary + 1) / 2);
}

/* ---- reading ----------------------------------------------------------------------- */

static uint32_t
load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static float
load_f32(const uint8_t *p)
{
    const uint32_t bits = load_u32(p);
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static enum xm_status
check_sizes(const struct xm_kld_base *b, struct xm_error *err)
{
    if (b->context < XM_KLD_LEAST_CONTEXT || b->context > MOST)
        return xm_fail(err, XM_INVALID,
                       "a file of log-probabilities with chunks of %" PRIu32
                       " tokens, expected %d to %d",
                       b->context, XM_KLD_LEAST_CONTEXT, MOST);
    if (b->vocabulary < 1 || b->vocabulary > MOST)
        return xm_fail(err, XM_INVALID,
                       "a file of log-probabilities with a vocabulary of %" PRIu32
                       " tokens, expected 1 to %d",
                       b->vocabulary, MOST);
    if (b->chunks < 1 || b->chunks > MOST_CHUNKS)
        return xm_fail(err, XM_INVALID,
                       "a file of log-probabilities with %" PRIu32
                       " chunks, expected 1 to %d",
                       b->chunks, MOST_CHUNKS);
    return XM_OK;
}

/* Returns the size of the file; UINT64_MAX: it overflows. */
static uint64_t
expected_bytes(const struct xm_kld_base *b)
{
    uint64_t n;
    if (!xm_mul_size((uint64_t)b->chunks * xm_kld_scored(b->context), b->row_bytes, &n) ||
        !xm_add_size(n, HEADER + 4 * (uint64_t)b->chunks * b->context, &n))
        return UINT64_MAX;
    return n;
}

static enum xm_status
check_length(const struct xm_kld_base *b, uint64_t n, struct xm_error *err)
{
    const uint64_t expected = expected_bytes(b);
    return n == expected
               ? XM_OK
               : xm_fail(err, XM_INVALID,
                         "a file of log-probabilities of %" PRIu32 " chunks of %" PRIu32
                         " tokens, with a vocabulary of %" PRIu32 ", that has %" PRIu64
                         " bytes: it is %s",
                         b->chunks, b->context, b->vocabulary, n,
                         n < expected ? "truncated" : "too long");
}

static enum xm_status
check_tokens(const struct xm_kld_base *b, struct xm_error *err)
{
    for (uint32_t c = 0; c < b->chunks; c++) {
        for (uint32_t i = 0; i < b->context; i++) {
            const int32_t id = xm_kld_base_token(b, c, i);
            if (id < 0 || (uint32_t)id >= b->vocabulary)
                return xm_fail(err, XM_INVALID,
                               "a file of log-probabilities whose token %" PRIu32
                               " of chunk %" PRIu32 " is %" PRId32
                               ", but the vocabulary has %" PRIu32,
                               i, c + 1, id, b->vocabulary);
        }
    }
    return XM_OK;
}

bool
xm_kld_base_is_file(const char *path)
{
    char begin[MAGIC];
    FILE *f = fopen(path, "rb");
    const bool is_one =
        f && fread(begin, 1, MAGIC, f) == MAGIC && memcmp(begin, magic, MAGIC) == 0;
    if (f)
        fclose(f);
    return is_one;
}

enum xm_status
xm_kld_base_read(const void *bytes, uint64_t n, struct xm_kld_base *out,
                 struct xm_error *err)
{
    const uint8_t *p = bytes;
    *out = (struct xm_kld_base){0};
    if (n < HEADER || memcmp(p, magic, MAGIC) != 0)
        return xm_fail(err, XM_INVALID,
                       "not a file of log-probabilities, as --kl-divergence-base writes "
                       "it");
    out->context = load_u32(p + MAGIC);
    out->vocabulary = load_u32(p + MAGIC + 4);
    out->chunks = load_u32(p + MAGIC + 8);
    XM_TRY(check_sizes(out, err));
    out->row_bytes = xm_kld_row_bytes(out->vocabulary);
    XM_TRY(check_length(out, n, err));
    out->tokens = p + HEADER;
    out->rows = out->tokens + 4 * (uint64_t)out->chunks * out->context;
    return check_tokens(out, err);
}

int32_t
xm_kld_base_token(const struct xm_kld_base *b, uint32_t chunk, uint32_t i)
{
    return (int32_t)load_u32(b->tokens + 4 * ((uint64_t)chunk * b->context + i));
}

enum xm_status
xm_kld_base_row(const struct xm_kld_base *b, uint32_t chunk, uint32_t i,
                struct xm_kld_row *out, struct xm_error *err)
{
    const uint64_t index = (uint64_t)chunk * xm_kld_scored(b->context) + i;
    const uint8_t *p = b->rows + index * b->row_bytes;
    *out = (struct xm_kld_row){load_f32(p), load_f32(p + 4), p + ROW_HEADER};
    const double largest = (double)out->least + (double)out->scale * STEPS;
    if (!isfinite(largest) || out->scale < 0.0f || largest > rounding)
        return xm_fail(err, XM_INVALID,
                       "a file of log-probabilities whose row %" PRIu32
                       " of chunk %" PRIu32
                       " starts at %g with steps of %g: it is damaged",
                       i, chunk + 1, (double)out->least, (double)out->scale);
    return XM_OK;
}

double
xm_kld_row_log_p(const struct xm_kld_row *r, uint64_t token)
{
    const uint8_t *q = r->q + 2 * token;
    return (double)r->least + (double)r->scale * (q[0] | q[1] << 8);
}

/* ---- writing ----------------------------------------------------------------------- */

static void
store_u32(uint8_t *p, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(x >> 8 * i);
}

static void
store_f32(uint8_t *p, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    store_u32(p, bits);
}

void
xm_kld_row_encode(const float *logits, uint32_t vocabulary, uint8_t *out)
{
    float largest = -INFINITY, least = INFINITY;
    for (uint32_t i = 0; i < vocabulary; i++) {
        largest = fmaxf(largest, logits[i]);
        least = fminf(least, logits[i]);
    }
    least = fmaxf(least, largest - deepest);
    const double log_sum = xm_log_sum_exp(logits, vocabulary);
    const float scale = (largest - least) / STEPS;
    memset(out, 0, xm_kld_row_bytes(vocabulary));
    store_f32(out, scale);
    store_f32(out + 4, (float)((double)least - log_sum));
    for (uint32_t i = 0; i < vocabulary && scale > 0.0f; i++) {
        if (logits[i] <= least)
            continue;
        const long q = lrintf((logits[i] - least) / scale);
        out[ROW_HEADER + 2 * i] = (uint8_t)(q & 0xff);
        out[ROW_HEADER + 2 * i + 1] = (uint8_t)(q >> 8);
    }
}

enum xm_status
xm_kld_writer_begin(struct xm_kld_writer *w, const char *path,
                    const struct xm_kld_base *sizes, const int32_t *tokens,
                    struct xm_error *err)
{
    uint8_t header[HEADER], token[4];
    w->vocabulary = sizes->vocabulary;
    w->row = xm_calloc(1, (size_t)xm_kld_row_bytes(sizes->vocabulary));
    if (!w->row)
        return xm_no_memory(err, "log-probabilities");
    XM_TRY(xm_new_file_begin(&w->at, path, err));
    w->f = fopen(xm_new_file_name(&w->at), "wbe");
    if (!w->f)
        return xm_new_file_fail(&w->at, err);
    memcpy(header, magic, MAGIC);
    store_u32(header + MAGIC, sizes->context);
    store_u32(header + MAGIC + 4, sizes->vocabulary);
    store_u32(header + MAGIC + 8, sizes->chunks);
    fwrite(header, 1, sizeof(header), w->f);
    for (uint64_t i = 0; i < (uint64_t)sizes->chunks * sizes->context; i++) {
        store_u32(token, (uint32_t)tokens[i]);
        fwrite(token, 1, sizeof(token), w->f);
    }
    return ferror(w->f) ? xm_new_file_fail(&w->at, err) : XM_OK;
}

enum xm_status
xm_kld_writer_add(struct xm_kld_writer *w, const float *logits, struct xm_error *err)
{
    const uint64_t n = xm_kld_row_bytes(w->vocabulary);
    xm_kld_row_encode(logits, w->vocabulary, w->row);
    return fwrite(w->row, 1, n, w->f) == n ? XM_OK : xm_new_file_fail(&w->at, err);
}

enum xm_status
xm_kld_writer_end(struct xm_kld_writer *w, struct xm_error *err)
{
    enum xm_status s = fclose(w->f) == 0 ? XM_OK : xm_new_file_fail(&w->at, err);
    w->f = NULL;
    return xm_new_file_end(&w->at, s, err);
}

void
xm_kld_writer_free(struct xm_kld_writer *w)
{
    if (w->f)
        fclose(w->f);
    xm_new_file_end(&w->at, XM_CANCELLED, NULL); /* removes an incomplete file */
    xm_free(w->row);
    *w = (struct xm_kld_writer){0};
}
