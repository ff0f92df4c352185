/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches the other processes of an MPI job: a thread sends each of them a sign of life at short
 * intervals and ends this process when it hears nothing from one of them for too long.
 *
 * MPI itself waits forever for a process that was stopped or whose machine was cut off, and a wait
 * inside MPI cannot be ended. A limit for the length of an exchange would be wrong, because another
 * rank may compute for minutes before it comes.
 */
#ifndef XM_RUNTIME_MPI_MPI_WATCH_H
#define XM_RUNTIME_MPI_MPI_WATCH_H

#include "runtime/util/status.h"

/* Starts watching, in the first call; every process of the job calls it at the same place. The
 * thread ends in MPI_Finalize. When a process is lost, the first process that still hears the
 * others calls `say` with a sentence, in the thread, before it ends with exit code 1.
 * XM_INVALID: XM_RANK_TIMEOUT of rank 0, which holds for all processes, is not a number of
 * seconds. */
enum xm_status xm_mpi_watch_start(void (*say)(const char *sentence),
                                  struct xm_error *err);

#endif
