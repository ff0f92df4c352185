/* SPDX-License-Identifier: Apache-2.0
 *
 * A group of an MPI job's processes, as the sources of this module share it.
 *
 * Values that one rank sends to another, and notices: a rank that leaves sends one to each other
 * rank, because the others may wait for a value of it, and then comes to a meeting, because the
 * others may be in one. A rank that reads the notice leaves, too, so that all meet there. Then they
 * receive what of the failed run is still under way, and the next run begins anew.
 */
#ifndef XM_RUNTIME_MPI_MPI_GROUP_H
#define XM_RUNTIME_MPI_MPI_GROUP_H

#include <mpi.h>

#include "runtime/collective.h"

/* Why a run ends, and the rank whose failure it was. */
struct xm_mpi_farewell {
    uint32_t rank;
    struct xm_error why;
};

/* A message that is being sent. */
struct xm_mpi_message {
    uint8_t *bytes;
    uint64_t room;
    MPI_Request request; /* MPI_REQUEST_NULL: it has arrived, or none was sent */
};

/* What this rank and another one have sent each other since the group was made. */
struct xm_mpi_peer {
    struct xm_mpi_message value[XM_UNREAD_MESSAGES]; /* sent in turn */
    MPI_Request notice;
    uint64_t values_sent, notices_sent, values_taken, notices_taken;
};

struct xm_mpi_group {
    struct xm_collective base; /* first */
    MPI_Comm comm;
    bool has_heard; /* in this run, at a meeting, that a rank has left */
    bool is_over;   /* a rank has freed its end: nobody meets any more */
    bool is_told;   /* in this run, by a notice, that a rank has left */
    struct xm_mpi_farewell told, own; /* own: what this rank's notices say */
    uint64_t *sizes;
    int *counts, *offsets; /* all of base.ranks */
    uint8_t *bytes;        /* of all ranks; valid until the next meeting */
    uint64_t room;
    struct xm_mpi_peer *peer; /* [base.ranks] */
};

/* XM_DEVICE, with MPI's own words, unless code is MPI_SUCCESS. */
enum xm_status xm_mpi_check(int code, const char *call, struct xm_error *err);

/* mpi_messages.c */
enum xm_status xm_mpi_open_peers(struct xm_mpi_group *g, struct xm_error *err);
void xm_mpi_close_peers(struct xm_mpi_group *g); /* when nothing is under way */

/* Members of struct xm_collective_ops. */
enum xm_status xm_mpi_send(struct xm_collective *c, uint32_t to, struct xm_bytes mine,
                           struct xm_error *err);
enum xm_status xm_mpi_receive(struct xm_collective *c, uint32_t from, uint8_t *to,
                              uint64_t n, struct xm_error *err);

/* Tells every other rank that this one leaves with g->own. */
enum xm_status xm_mpi_send_notices(struct xm_mpi_group *g, struct xm_error *err);
/* Receives what is still under way, when all ranks have left a run: each of them calls it. */
enum xm_status xm_mpi_settle(struct xm_mpi_group *g, struct xm_error *err);

#endif
