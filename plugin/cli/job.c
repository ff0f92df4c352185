/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/job.h"

#include "runtime/collective_mpi.h"

/* created when something is shared for the first time */
static struct xm_collective *job;

bool
xm_mpi_job_is_first(void)
{
    uint32_t rank;
    return xm_mpi_ranks(&rank) <= 1 || rank == 0;
}

static enum xm_status
share(struct xm_strbuf *text, struct xm_error *err)
{
    const struct xm_bytes mine = {(const uint8_t *)xm_strbuf_text(text),
                                  xm_mpi_job_is_first() ? text->n : 0};
    struct xm_bytes all[XM_MOST_RANKS];
    XM_TRY(job->ops->meet(job, mine, all, err));
    if (!xm_mpi_job_is_first()) {
        xm_strbuf_clear(text);
        xm_strbuf_add_n(text, (const char *)all[0].p, (size_t)all[0].n);
    }
    return xm_strbuf_ok(text) ? XM_OK : xm_no_memory(err, "a text of %zu bytes", text->n);
}

enum xm_status
xm_mpi_job_share(enum xm_status own, struct xm_strbuf *text, struct xm_error *err)
{
    uint32_t rank;
    if (xm_mpi_ranks(&rank) <= 1)
        return own;
    if (!job) {
        struct xm_error why = {0};
        const enum xm_status s = xm_mpi_create(NULL, &job, own == XM_OK ? err : &why);
        if (s != XM_OK)
            return own == XM_OK ? s : own;
    }
    if (own == XM_OK && xm_mpi_job_is_first() && !xm_strbuf_ok(text))
        own = xm_no_memory(err, "a text for the job's processes");
    if (own == XM_OK)
        /* a process that fails here ends, and MPI ends the others */
        return share(text, err);
    job->ops->leave(job, err);
    return own;
}

void
xm_mpi_job_end(void)
{
    xm_mpi_free(job);
    job = NULL;
}
