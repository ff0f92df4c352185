/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XM_TRANSFORMATIONS_PASS_REPORT_H
#define XM_TRANSFORMATIONS_PASS_REPORT_H

#include <stdbool.h>
#include <stdint.h>

struct xm_pass;

/* What a pass did to a graph. */
struct xm_pass_report {
    const struct xm_pass *pass; /* transformations/pipeline.h */
    bool skipped, progress;
    uint32_t nodes_after;
};

#endif
