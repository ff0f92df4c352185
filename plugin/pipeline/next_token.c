/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/next_token.h"

#include <math.h>

#include "runtime/dry_run.h"

bool
xm_next_token_ends(const struct xm_next_token *t, int32_t id)
{
    return xm_generation_is_end(t->package, t->asked, id);
}

double
xm_logits_log_prob(const float *row, uint64_t n, int32_t id)
{
    return (double)row[id] - xm_log_sum_exp(row, n);
}

static enum xm_status
keep_log_prob(struct xm_log_probs *list, double log_prob, struct xm_error *err)
{
    float *grown = xm_grow(list->values, &list->capacity, list->n + 1, sizeof(*grown));
    if (!grown)
        return xm_no_memory(err, "probabilities");
    list->values = grown;
    list->values[list->n++] = (float)log_prob;
    return XM_OK;
}

enum xm_status
xm_next_token_choose(const struct xm_next_token *t, const float *row, uint64_t vocabulary,
                     int32_t *id, struct xm_error *err)
{
    struct xm_end_ids barred[XM_BARRED_LISTS];
    *id = 0;
    if (xm_dry_run())
        return XM_OK;
    xm_generation_barred(t->package, t->asked, t->out->ids.n, barred);
    for (size_t i = 0; i < XM_BARRED_LISTS; i++)
        if (barred[i].n > 0)
            XM_TRY(xm_sampler_bar(t->sampler, barred[i].ids, barred[i].n, err));
    XM_TRY(xm_sampler_next(t->sampler, t->scratch, row, id, err));
    if (t->asked->wants_log_probs && !xm_next_token_ends(t, *id))
        XM_TRY(keep_log_prob(&t->out->log_probs, xm_logits_log_prob(row, vocabulary, *id),
                             err));
    return XM_OK;
}
