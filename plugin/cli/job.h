/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares data among the processes of an MPI job that must be equal in all of them, but which only
 * one knows: mpirun passes standard input to the first process only, and each process would draw
 * another random seed.
 */
#ifndef XM_PLUGIN_CLI_JOB_H
#define XM_PLUGIN_CLI_JOB_H

#include <stdbool.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether this process reads standard input and writes files: it is the first of its job, or not in
 * a job. */
bool xm_mpi_job_is_first(void);

/* Replaces the text of every process by that of the first one. `own` is the status with which this
 * process got its text; if the first process failed, its failure is returned in all processes, with
 * its sentence in *err, which must not be NULL. All processes call it in the same order, from one
 * thread. Outside of a job it only returns `own`. */
enum xm_status xm_mpi_job_share(enum xm_status own, struct xm_strbuf *text,
                                struct xm_error *err);

/* Ends sharing: processes that still wait to share something fail. Call it before xm_mpi_end. */
void xm_mpi_job_end(void);

#ifdef __cplusplus
}
#endif
#endif
