/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages from one rank to another: values and notices (mpi_group.h).
 *
 * A value is sent synchronously: its request is done when the receiver has begun to read it, so
 * that at most XM_UNREAD_MESSAGES of a pair of ranks are unread, whatever MPI would buffer. Waits
 * are loops around calls of MPI that return at once, because a wait inside MPI could not be ended
 * when a rank leaves.
 */
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <string.h>

#include "runtime/mpi/mpi_group.h"
#include "runtime/util/memory.h"

enum { VALUE = 1, NOTICE };

enum xm_status
xm_mpi_open_peers(struct xm_mpi_group *g, struct xm_error *err)
{
    g->peer = xm_calloc(g->base.ranks, sizeof(*g->peer));
    if (!g->peer)
        return xm_no_memory(err, "a mesh");
    for (uint32_t r = 0; r < g->base.ranks; r++) {
        g->peer[r].notice = MPI_REQUEST_NULL;
        for (uint32_t i = 0; i < XM_UNREAD_MESSAGES; i++)
            g->peer[r].value[i].request = MPI_REQUEST_NULL;
    }
    return XM_OK;
}

void
xm_mpi_close_peers(struct xm_mpi_group *g)
{
    for (uint32_t r = 0; r < g->base.ranks && g->peer; r++) {
        for (uint32_t i = 0; i < XM_UNREAD_MESSAGES; i++)
            xm_free(g->peer[r].value[i].bytes);
    }
    xm_free(g->peer);
    g->peer = NULL;
}

/* ---- notices ------------------------------------------------------------------------------ */

static enum xm_status
take_notice(struct xm_mpi_group *g, int from, struct xm_error *err)
{
    struct xm_mpi_farewell notice;
    XM_TRY(xm_mpi_check(MPI_Recv(&notice, sizeof(notice), MPI_BYTE, from, NOTICE, g->comm,
                                 MPI_STATUS_IGNORE),
                        "MPI_Recv", err));
    notice.why.text[sizeof(notice.why.text) - 1] = '\0';
    g->peer[from].notices_taken++;
    if (!g->is_told)
        g->told = notice;
    g->is_told = true;
    return XM_OK;
}

/* Reads a notice if one has arrived; fails with its reason if some rank has left. */
static enum xm_status
look_for_notice(struct xm_mpi_group *g, struct xm_error *err)
{
    int found = 0;
    MPI_Status status;
    XM_TRY(xm_mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, NOTICE, g->comm, &found, &status),
                        "MPI_Iprobe", err));
    if (found)
        XM_TRY(take_notice(g, status.MPI_SOURCE, err));
    return g->is_told ? xm_fail(err, g->told.why.status, "rank %u: %s", g->told.rank,
                                g->told.why.text)
                      : XM_OK;
}

enum xm_status
xm_mpi_send_notices(struct xm_mpi_group *g, struct xm_error *err)
{
    for (uint32_t r = 0; r < g->base.ranks; r++) {
        if (r == g->base.rank)
            continue;
        XM_TRY(xm_mpi_check(MPI_Isend(&g->own, sizeof(g->own), MPI_BYTE, (int)r, NOTICE,
                                      g->comm, &g->peer[r].notice),
                            "MPI_Isend", err));
        g->peer[r].notices_sent++;
    }
    return XM_OK;
}

/* ---- values ------------------------------------------------------------------------------- */

/* Waits until the slot's last message has arrived at its receiver. */
static enum xm_status
wait_for_arrival(struct xm_mpi_group *g, struct xm_mpi_message *m, struct xm_error *err)
{
    for (int is_done = 0;; sched_yield()) {
        XM_TRY(xm_mpi_check(MPI_Test(&m->request, &is_done, MPI_STATUS_IGNORE),
                            "MPI_Test", err));
        if (is_done)
            return XM_OK;
        XM_TRY(look_for_notice(g, err));
    }
}

enum xm_status
xm_mpi_send(struct xm_collective *c, uint32_t to, struct xm_bytes mine,
            struct xm_error *err)
{
    struct xm_mpi_group *g = (struct xm_mpi_group *)c;
    struct xm_mpi_peer *peer = &g->peer[to];
    struct xm_mpi_message *m = &peer->value[peer->values_sent % XM_UNREAD_MESSAGES];
    if (mine.n > INT_MAX)
        return xm_fail(
            err, XM_UNSUPPORTED,
            "a message between ranks has 2 GiB or more; choose a smaller --ubatch");
    XM_TRY(wait_for_arrival(g, m, err));
    if (!m->bytes || m->room < mine.n) {
        xm_free(m->bytes);
        m->bytes = xm_malloc((size_t)mine.n + 1); /* malloc(0) may return NULL   */
        m->room = m->bytes ? mine.n : 0;
    }
    if (!m->bytes)
        return xm_no_memory(err, "a message to another rank");
    if (mine.n)
        memcpy(m->bytes, mine.p, (size_t)mine.n);
    XM_TRY(xm_mpi_check(
        MPI_Issend(m->bytes, (int)mine.n, MPI_BYTE, (int)to, VALUE, g->comm, &m->request),
        "MPI_Issend", err));
    peer->values_sent++;
    return XM_OK;
}

/* Receives a message of `has` bytes to `to`; NULL: discards it. */
static enum xm_status
read_value(MPI_Message *message, uint8_t *to, int has, struct xm_error *err)
{
    uint8_t *bytes = to ? to : xm_malloc((size_t)has + 1);
    if (!bytes)
        return xm_no_memory(err, "a message of %d bytes", has);
    const enum xm_status s = xm_mpi_check(
        MPI_Mrecv(bytes, has, MPI_BYTE, message, MPI_STATUS_IGNORE), "MPI_Mrecv", err);
    if (!to)
        xm_free(bytes);
    return s;
}

enum xm_status
xm_mpi_receive(struct xm_collective *c, uint32_t from, uint8_t *to, uint64_t n,
               struct xm_error *err)
{
    struct xm_mpi_group *g = (struct xm_mpi_group *)c;
    MPI_Message message;
    MPI_Status status;
    int found = 0, has = 0;
    for (;; sched_yield()) {
        XM_TRY(xm_mpi_check(
            MPI_Improbe((int)from, VALUE, g->comm, &found, &message, &status),
            "MPI_Improbe", err));
        if (found)
            break;
        XM_TRY(look_for_notice(g, err));
    }
    g->peer[from].values_taken++;
    XM_TRY(xm_mpi_check(MPI_Get_count(&status, MPI_BYTE, &has), "MPI_Get_count", err));
    const bool fits = has >= 0 && (uint64_t)has == n;
    XM_TRY(read_value(&message, fits ? to : NULL, has, err));
    return fits ? XM_OK
                : xm_fail(err, XM_INVALID,
                          "rank %u sends %d bytes, rank %u expects %" PRIu64, from, has,
                          c->rank, n);
}

/* ---- the end of a failed run -------------------------------------------------------------- */

static enum xm_status
drop_value(struct xm_mpi_group *g, int from, struct xm_error *err)
{
    MPI_Message message;
    MPI_Status status;
    int has = 0;
    XM_TRY(xm_mpi_check(MPI_Mprobe(from, VALUE, g->comm, &message, &status), "MPI_Mprobe",
                        err));
    g->peer[from].values_taken++;
    XM_TRY(xm_mpi_check(MPI_Get_count(&status, MPI_BYTE, &has), "MPI_Get_count", err));
    return read_value(&message, NULL, has, err);
}

static enum xm_status
drop_messages(struct xm_mpi_group *g, uint64_t (*sent)[2], struct xm_error *err)
{
    for (uint32_t r = 0; r < g->base.ranks; r++) {
        while (g->peer[r].values_taken < sent[r][0])
            XM_TRY(drop_value(g, (int)r, err));
        while (g->peer[r].notices_taken < sent[r][1])
            XM_TRY(take_notice(g, (int)r, err));
    }
    for (uint32_t r = 0; r < g->base.ranks; r++) {
        struct xm_mpi_peer *peer = &g->peer[r];
        XM_TRY(xm_mpi_check(MPI_Wait(&peer->notice, MPI_STATUS_IGNORE), "MPI_Wait", err));
        for (uint32_t i = 0; i < XM_UNREAD_MESSAGES; i++)
            XM_TRY(xm_mpi_check(MPI_Wait(&peer->value[i].request, MPI_STATUS_IGNORE),
                                "MPI_Wait", err));
    }
    return XM_OK;
}

enum xm_status
xm_mpi_settle(struct xm_mpi_group *g, struct xm_error *err)
{
    uint64_t to[XM_MOST_RANKS][2], from[XM_MOST_RANKS][2];
    for (uint32_t r = 0; r < g->base.ranks; r++) {
        to[r][0] = g->peer[r].values_sent;
        to[r][1] = g->peer[r].notices_sent;
    }
    XM_TRY(xm_mpi_check(MPI_Alltoall(to, 2, MPI_UINT64_T, from, 2, MPI_UINT64_T, g->comm),
                        "MPI_Alltoall", err));
    const enum xm_status s = drop_messages(g, from, err);
    g->is_told = false;
    return s;
}
