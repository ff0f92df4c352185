/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/sampling.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/util/clock.h"
#include "runtime/util/memory.h"

/* clang-format off */
#define DRAWS  true
#define ALWAYS false
#define SAMPLING(kind, member, draws, least, most, unsaid, zero, option, value, aliases, help, \
                 file, gguf, genai, json)                                                      \
    {#member, XM_SAMPLING_##kind, offsetof(struct xm_sampling, member), draws,                 \
     (double)(least), (double)(most), (double)(unsaid), zero, option, file, gguf, genai, json},
const struct xm_sampling_row xm_sampling_rows[XM_N_SAMPLING] = {
#include "plugin/text/sampling.def"
};
/* clang-format on */

bool
xm_sampling_is_number(const struct xm_sampling_row *row)
{
    return row->kind == XM_SAMPLING_REAL || row->kind == XM_SAMPLING_WHOLE ||
           row->kind == XM_SAMPLING_COUNT;
}

double
xm_sampling_get(const struct xm_sampling *s, const struct xm_sampling_row *row)
{
    const void *member = (const char *)s + row->offset;
    return row->kind == XM_SAMPLING_REAL ? (double)*(const float *)member
                                         : (double)*(const int *)member;
}

void
xm_sampling_set(struct xm_sampling *s, const struct xm_sampling_row *row, double x)
{
    void *member = (char *)s + row->offset;
    if (row->kind == XM_SAMPLING_REAL)
        *(float *)member = (float)x;
    else
        *(int *)member = (int)x;
}

bool
xm_sampling_takes(const struct xm_sampling_row *row, double x)
{
    return x >= row->least && x <= row->most &&
           (row->kind == XM_SAMPLING_REAL || x == trunc(x));
}

void
xm_sampling_init(struct xm_sampling *s)
{
    memset(s, 0, sizeof(*s));
    for (size_t i = 0; i < XM_N_SAMPLING; i++)
        if (xm_sampling_is_number(&xm_sampling_rows[i]))
            xm_sampling_set(s, &xm_sampling_rows[i], xm_sampling_rows[i].unsaid);
}

/* Fails with "NAME is X, expected LOW..HIGH" if x, or NaN, is outside of the row's range. */
static enum xm_status
check_range(const struct xm_sampling_row *row, double x, struct xm_error *err)
{
    if (row->kind != XM_SAMPLING_REAL && x < 0.0)
        x = 0.0;
    if (xm_sampling_takes(row, x))
        return XM_OK;
    if (row->most == (double)FLT_MAX)
        return xm_fail(err, XM_INVALID, "%s is %g, expected %g or more", row->member, x,
                       row->least);
    return xm_fail(err, XM_INVALID, "%s is %g, expected %g..%g", row->member, x,
                   row->least, row->most);
}

static enum xm_status
check_bias(const struct xm_bias_view *view, struct xm_error *err)
{
    for (size_t i = 0; i < view->n; i++) {
        const float bias = view->list[i].bias;
        if (!(bias <= XM_BIAS_BARS || isfinite(bias)))
            return xm_fail(err, XM_INVALID,
                           "logit_bias of token %" PRId32 " is %g, expected a number",
                           view->list[i].id, (double)bias);
    }
    return XM_OK;
}

enum xm_status
xm_sampling_check(const struct xm_sampling *s, struct xm_error *err)
{
    for (size_t i = 0; i < XM_N_SAMPLING; i++) {
        const struct xm_sampling_row *row = &xm_sampling_rows[i];
        if (xm_sampling_is_number(row))
            XM_TRY(check_range(row, xm_sampling_get(s, row), err));
    }
    if (s->mirostat == 1)
        return xm_fail(err, XM_INVALID,
                       "mirostat is 1, expected 2 (its second version) or 0 (off)");
    if (s->only_new && s->last_n > 0)
        return xm_fail(
            err, XM_INVALID,
            "last_n is %d, expected 0, because these penalties apply to all new tokens",
            s->last_n);
    return check_bias(&s->logit_bias, err);
}

void
xm_sampling_recommend(struct xm_sampling *s, const struct xm_sampling_row *row, double x)
{
    struct xm_sampling with = *s;
    struct xm_error why = {0};
    if (!xm_sampling_takes(row, x))
        return;
    xm_sampling_set(&with, row, x);
    if (xm_sampling_check(&with, &why) == XM_OK)
        *s = with;
}

uint64_t
xm_sampling_random_seed(void)
{
    uint32_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        seed = (uint32_t)(1e6 * xm_now()) ^ (uint32_t)getpid();
    return seed;
}
