/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/request_counts.h"

#include <inttypes.h>

#include "plugin/server/routes.h"

static const int statuses[] = {
#define STATUS(status, openai, anthropic) status,
#include "plugin/server/statuses.def"
#undef STATUS
};

static size_t
index_of(const struct xm_route *route)
{
    size_t i = 0;
    while (i < xm_n_routes && route != &xm_routes[i])
        i++;
    return i;
}

void
xm_request_counts_add(struct xm_request_counts *c, const struct xm_route *route,
                      int status)
{
    size_t i = XM_N_COUNTED_STATUSES - 1;
    while (i > 0 && statuses[i] != status)
        i--;
    __atomic_add_fetch(&c->n[index_of(route)][i], 1, __ATOMIC_RELAXED);
}

/* Prints status 200 of each endpoint even if it is 0, so that a rate can be computed from the first
 * request on. */
void
xm_request_counts_print(struct xm_request_counts *c, struct xm_strbuf *out)
{
    xm_strbuf_add(out, "# HELP xemoe_requests_total Requests that were answered, by "
                       "endpoint and HTTP status\n# TYPE xemoe_requests_total counter\n");
    for (size_t row = 0; row < XM_N_COUNTED; row++)
        for (size_t i = 0; i < XM_N_COUNTED_STATUSES; i++) {
            const uint64_t n = __atomic_load_n(&c->n[row][i], __ATOMIC_RELAXED);
            if (n > 0 || statuses[i] == 200)
                xm_strbuf_printf(
                    out, "xemoe_requests_total{path=\"%s\",code=\"%d\"} %" PRIu64 "\n",
                    row < xm_n_routes ? xm_routes[row].path : "", statuses[i], n);
        }
}
