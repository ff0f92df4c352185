/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that are processes of one MPI job: `mpirun -n 4 program …`.
 *
 * The calls of MPI are in a separate module (runtime/mpi), which is opened at run time: a process
 * that uses no MPI does not need MPI's libraries.
 */
#ifndef XM_RUNTIME_COLLECTIVE_MPI_H
#define XM_RUNTIME_COLLECTIVE_MPI_H

#include "runtime/collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of processes of the MPI job, and this process's rank in *rank, from the environment
 * variables that Open MPI, MPICH, MVAPICH and Intel MPI set. 1 and rank 0 if this process is
 * alone. */
uint32_t xm_mpi_ranks(uint32_t *rank);

/* The number of this process among those of its machine, from 0, from the same variables; 0 if it
 * is not known. */
uint32_t xm_mpi_local_rank(void);

/* Creates a group of processes of the job and returns this process's collective; NULL: this process
 * is not a member. `members` says for each process, by its rank in the job, whether it is one;
 * NULL: all are. Failures name a process by its rank in the job. Every process must create the same
 * groups in the same order. The first call starts MPI, unless the program has started it.
 * XM_UNSUPPORTED: the module or MPI's library is not installed, or the job has more than
 * XM_MOST_RANKS processes. */
enum xm_status xm_mpi_create(const bool *members, struct xm_collective **out,
                             struct xm_error *err);
void xm_mpi_free(struct xm_collective *c); /* NULL is allowed */

/* Call before the process ends. exit_code 0: waits until the other processes end, too; else ends
 * all of them with this code. A program that does not call it waits while it exits. Does nothing if
 * no group was created, or if the program itself started MPI. */
void xm_mpi_end(int exit_code);

#ifdef __cplusplus
}
#endif
#endif
