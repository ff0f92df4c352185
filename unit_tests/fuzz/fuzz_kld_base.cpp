// SPDX-License-Identifier: Apache-2.0
// The input is a file of log-probabilities, of which every row is read.
#include <math.h>

#include "plugin/logits/kld.h"
#include "unit_tests/fuzz/fuzz.h"

static void
read_row(const struct xm_kld_base &base, uint32_t chunk, uint32_t i)
{
    struct xm_kld_row row;
    struct xm_error err = {};
    if (!worked(xm_kld_base_row(&base, chunk, i, &row, &err), err))
        return;
    for (uint32_t k = 0; k < base.vocabulary; k++)
        require(isfinite(xm_kld_row_log_p(&row, k)), "log-probabilities are finite");
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct xm_kld_base base;
    struct xm_error err = {};
    if (!worked(xm_kld_base_read(bytes, n, &base, &err), err))
        return 0;
    for (uint32_t c = 0; c < base.chunks; c++) {
        for (uint32_t i = 0; i < base.context; i++)
            require((uint32_t)xm_kld_base_token(&base, c, i) < base.vocabulary,
                    "tokens are of the vocabulary");
        for (uint32_t i = 0; i < xm_kld_scored(base.context); i++)
            read_row(base, c, i);
    }
    return 0;
}
