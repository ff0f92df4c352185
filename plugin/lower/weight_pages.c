/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/lower/weight_pages.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/host_memory.h"
#include "runtime/util/memory.h"

enum { PIECE = 8 << 20 }; /* bytes that the system is asked to read ahead */

struct xm_weight_pages {
    pthread_t thread;
    size_t page; /* bytes */
    size_t n;
    _Atomic uint64_t left;
    atomic_bool is_over;
    struct xm_bytes part[];
};

/* Returns whether kernels read the bytes of weight i in the mapped file, and no earlier weight of
 * the program has the same bytes. */
static bool
lies_in_file(const struct xm_program *p, uint32_t i)
{
    const struct xm_device_weight *w = p->weights[i];
    const struct xm_bytes data = w->host.data;
    if (!data.p || !xm_weight_same(&w->file, &w->host) ||
        !(w->on_host || xm_engine_shares_weight(p->engine, data.p, data.n)))
        return false;
    while (i-- > 0)
        if (p->weights[i]->host.data.p == data.p)
            return false;
    return true;
}

static void
ask_for(const struct xm_weight_pages *s, const uint8_t *bytes, uint64_t n)
{
    const uintptr_t first = (uintptr_t)bytes / s->page * s->page;
    (void)madvise((void *)first, (uintptr_t)bytes + n - first, MADV_WILLNEED);
}

static void
touch(struct xm_weight_pages *s, const uint8_t *bytes, uint64_t n)
{
    for (uint64_t i = 0; i < n && !s->is_over; i += s->page)
        (void)*(const volatile uint8_t *)(bytes + i);
}

static void
touch_part(struct xm_weight_pages *s, const struct xm_bytes *part)
{
    const uint8_t *bytes = part->p;
    for (uint64_t at = 0; at < part->n && !s->is_over; at += PIECE) {
        const uint64_t rest = part->n - at, n = rest < PIECE ? rest : PIECE;
        const uint64_t next = rest - n < PIECE ? rest - n : PIECE;
        ask_for(s, bytes + at + n, next);
        touch(s, bytes + at, n);
        s->left -= n;
    }
}

static void *
touch_all(void *arg)
{
    struct xm_weight_pages *s = arg;
    for (size_t i = 0; i < s->n && !s->is_over; i++)
        touch_part(s, &s->part[i]);
    return NULL;
}

/* Starts the thread with all signals blocked, so that the application's threads get them, except
 * SIGBUS. False: the system refuses. */
static bool
start(struct xm_weight_pages *s)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* a read beyond the end of a truncated file raises it */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool ok = pthread_create(&s->thread, NULL, touch_all, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

static void
list_parts(struct xm_weight_pages *s, const struct xm_program *p)
{
    for (uint32_t i = 0; i < p->n_weights; i++) {
        if (!lies_in_file(p, i))
            continue;
        s->part[s->n] = p->weights[i]->host.data;
        s->left += s->part[s->n++].n;
    }
}

enum xm_status
xm_weight_pages_start(const struct xm_program *p, struct xm_weight_pages **out,
                      struct xm_error *err)
{
    const long page = sysconf(_SC_PAGESIZE);
    *out = NULL;
    if (p->is_part || page < 1 || xm_engine_only_counts(p->engine))
        return XM_OK;
    struct xm_weight_pages *s =
        xm_calloc(1, sizeof(*s) + p->n_weights * sizeof(s->part[0]));
    if (!s)
        return xm_no_memory(err, "a list of weights");
    s->page = (size_t)page;
    list_parts(s, p);
    if (s->left && s->left <= xm_host_memory_free() && start(s))
        *out = s;
    else
        xm_free(s);
    return XM_OK;
}

void
xm_weight_pages_stop(struct xm_weight_pages *s)
{
    if (!s)
        return;
    s->is_over = true;
    pthread_join(s->thread, NULL);
    xm_free(s);
}

uint64_t
xm_weight_pages_left(const struct xm_weight_pages *s)
{
    return s ? s->left : 0;
}
