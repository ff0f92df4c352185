/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that are processes of one MPI job: `mpirun -n 4 program …`.
 *
 * MPI itself is in a module of its own (runtime/mpi), which is opened where a job is found: who
 * needs no MPI needs none of its libraries either.
 */
#ifndef XM_RUNTIME_COLLECTIVE_MPI_H
#define XM_RUNTIME_COLLECTIVE_MPI_H

#include "runtime/collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many processes the job has, and which of them this is, by the environment that Open MPI,
 * MPICH, MVAPICH and Intel MPI set: 1 and 0 where this process is alone. */
uint32_t xm_mpi_ranks(uint32_t *rank);

/* Which of its machine's processes this is, from 0, by the same; 0 where it is not known. */
uint32_t xm_mpi_local_rank(void);

/* This process's end of a new group of all processes, each of which makes as many groups in the
 * same order. The first one starts MPI, unless the program has. XM_UNSUPPORTED: the module or MPI's
 * library is not installed, or there are more than XM_MOST_RANKS. */
enum xm_status xm_mpi_create(struct xm_collective **out, struct xm_error *err);
void xm_mpi_free(struct xm_collective *c); /* NULL is allowed */

/* Before the process ends: with 0 waits until the others do, too, else ends them all with this
 * code. A program that does not call it waits as it exits. Nothing where no group was made, or the
 * program has started MPI itself. */
void xm_mpi_end(int exit_code);

#ifdef __cplusplus
}
#endif
#endif
