/* SPDX-License-Identifier: Apache-2.0
 *
 * What the processes of an MPI job have to have alike, though one of them alone knows it: mpirun
 * gives standard input to the first process, and a random seed is another one in each.
 */
#ifndef XM_PLUGIN_CLI_JOB_H
#define XM_PLUGIN_CLI_JOB_H

#include <stdbool.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether this process reads standard input and writes files: it is the job's first, or in none. */
bool xm_mpi_job_is_first(void);

/* Replaces the text of every process by that of the first, which may have failed to get it: `own`
 * is its status, and *err, which is not NULL, says why, to the others, too. All processes call it
 * in the same order, from one thread. Outside of jobs nothing but `return own`. */
enum xm_status xm_mpi_job_share(enum xm_status own, struct xm_strbuf *text,
                                struct xm_error *err);

/* Nothing more is shared: others that go on hear of it. Before xm_mpi_end. */
void xm_mpi_job_end(void);

#ifdef __cplusplus
}
#endif
#endif
