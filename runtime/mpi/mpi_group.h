/* SPDX-License-Identifier: Apache-2.0
 *
 * A group of processes of an MPI job, shared by the sources of this module.
 *
 * Ranks exchange three kinds of things: meetings (collective.h), values from one rank to another,
 * and notices. A rank that leaves a run sends a notice to each other rank, because that rank may
 * wait for a value from it. Then it takes part in one more meeting, because other ranks may be in
 * one. A rank that reads a notice leaves, too, so that all ranks come to this meeting. After it
 * they receive all messages of the failed run that are still under way, and the next run begins
 * with none.
 */
#ifndef XM_RUNTIME_MPI_MPI_GROUP_H
#define XM_RUNTIME_MPI_MPI_GROUP_H

#include <mpi.h>

#include "runtime/collective.h"

/* Why a run failed: the rank in the job of the process that failed, and its reason. */
struct xm_mpi_farewell {
    uint32_t rank;
    struct xm_error why;
};

/* A message that is being sent. */
struct xm_mpi_message {
    uint8_t *bytes;
    uint64_t room;
    MPI_Request request; /* MPI_REQUEST_NULL: no message, or it has arrived    */
};

/* The messages between this rank and another since the group was made. */
struct xm_mpi_peer {
    struct xm_mpi_message value[XM_UNREAD_MESSAGES]; /* slots, used in turn */
    MPI_Request notice;
    uint64_t values_sent, notices_sent, values_taken, notices_taken;
};

struct xm_mpi_group {
    struct xm_collective base; /* first */
    MPI_Comm comm;
    uint32_t job_rank; /* in MPI_COMM_WORLD: the group may be a part of the job */
    bool has_heard;    /* a meeting of this run has told that a rank has left */
    bool is_over;      /* a rank has freed its collective: there are no more meetings */
    bool is_told; /* a notice in this run has told that a rank has left; see `told` */
    /* told: from the notice; own: sent in this rank's notices */
    struct xm_mpi_farewell told, own;
    uint64_t *sizes;
    int *counts, *offsets; /* arrays [base.ranks] for a meeting */
    /* bytes of all ranks in the last meeting; valid until the next */
    uint8_t *bytes;
    uint64_t room;
    struct xm_mpi_peer *peer; /* [base.ranks] */
};

/* Fails with XM_DEVICE and MPI's message unless `code` is MPI_SUCCESS. */
enum xm_status xm_mpi_check(int code, const char *call, struct xm_error *err);

/* mpi_messages.c: allocates the members for messages between two ranks */
enum xm_status xm_mpi_open_peers(struct xm_mpi_group *g, struct xm_error *err);
/* frees the peers; no message may be under way */
void xm_mpi_close_peers(struct xm_mpi_group *g);

/* Members of struct xm_collective_ops. */
enum xm_status xm_mpi_send(struct xm_collective *c, uint32_t to, struct xm_bytes mine,
                           struct xm_error *err);
enum xm_status xm_mpi_receive(struct xm_collective *c, uint32_t from, uint8_t *to,
                              uint64_t n, struct xm_error *err);

/* Sends g->own to every other rank as a notice that this rank leaves. */
enum xm_status xm_mpi_send_notices(struct xm_mpi_group *g, struct xm_error *err);
/* After all ranks have left a run: receives all messages that are still under way. Every rank calls
 * it. */
enum xm_status xm_mpi_settle(struct xm_mpi_group *g, struct xm_error *err);

#endif
