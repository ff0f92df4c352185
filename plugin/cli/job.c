/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/job.h"

#include "runtime/collective_mpi.h"

static struct xm_collective *job; /* made when something is shared first */

bool
xm_job_reads(void)
{
    uint32_t rank;
    return xm_mpi_ranks(&rank) <= 1 || rank == 0;
}

static enum xm_status
share(struct xm_strbuf *text, struct xm_error *err)
{
    const struct xm_bytes mine = {(const uint8_t *)xm_strbuf_text(text),
                                  xm_job_reads() ? text->n : 0};
    struct xm_bytes all[XM_MOST_RANKS];
    XM_TRY(job->ops->meet(job, mine, all, err));
    if (!xm_job_reads()) {
        xm_strbuf_clear(text);
        xm_strbuf_add_n(text, (const char *)all[0].p, (size_t)all[0].n);
    }
    return xm_strbuf_ok(text) ? XM_OK : xm_no_memory(err, "a text of %zu bytes", text->n);
}

enum xm_status
xm_job_share(enum xm_status own, struct xm_strbuf *text, struct xm_error *err)
{
    uint32_t rank;
    if (xm_mpi_ranks(&rank) <= 1)
        return own;
    if (!job && xm_mpi_create(&job, own == XM_OK ? err : NULL) != XM_OK)
        return own == XM_OK ? XM_UNSUPPORTED : own;
    if (own == XM_OK)
        own = share(text, err);
    if (own != XM_OK && err)
        job->ops->leave(job, err);
    return own;
}

void
xm_job_end(void)
{
    xm_mpi_free(job);
    job = NULL;
}
