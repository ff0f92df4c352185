/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/generation_clock.h"

#include "runtime/util/clock.h"
#include "runtime/util/memory.h"

void
xm_generation_clock_free(struct xm_generation_clock *c)
{
    xm_free(c->tokens.s);
    xm_free(c->runs.s);
    *c = (struct xm_generation_clock){0};
}

static void
add(struct xm_generation_clock *c, struct xm_time_list *list, double s)
{
    double *grown = xm_grow(list->s, &list->capacity, list->n + 1, sizeof(*grown));
    c->failed |= !grown;
    if (!grown)
        return;
    list->s = grown;
    list->s[list->n++] = s;
}

double
xm_clock_start(const struct xm_generation_clock *c)
{
    return c ? xm_now() : 0.0;
}

void
xm_clock_add(const struct xm_generation_clock *c, double *sum, double start)
{
    if (c)
        *sum += xm_now() - start;
}

void
xm_clock_add_run(struct xm_generation_clock *c, double start)
{
    xm_clock_add_run_of(c, c ? xm_now() - start : 0.0);
}

void
xm_clock_add_run_of(struct xm_generation_clock *c, double seconds)
{
    if (c)
        add(c, &c->runs, seconds);
}

void
xm_clock_add_token(struct xm_generation_clock *c)
{
    if (c)
        add(c, &c->tokens, xm_now());
}
