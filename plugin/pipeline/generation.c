/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/pipeline/generation.h"

#include <inttypes.h>

#include "plugin/plugin.h"
#include "runtime/dry_run.h"
#include "runtime/util/clock.h"
#include "runtime/util/number.h"

void
xm_generation_result_free(struct xm_generation_result *r)
{
    xm_token_list_free(&r->prompt);
    xm_token_list_free(&r->ids);
    xm_free(r->log_probs.values);
    xm_free(r->likeliest.values);
    xm_strbuf_free(&r->text);
    xm_tool_calls_free(&r->calls);
    *r = (struct xm_generation_result){0};
}

/* Devices without statistics, such as the reference, report no work. */
struct xm_work
xm_work_done(struct xm_compiled *c, const struct xm_infer *r)
{
    struct xm_compiled_stats all = {0};
    struct xm_request_stats own = {0};
    if (c->ops->stats)
        c->ops->stats(c, &all);
    if (r->ops->stats)
        r->ops->stats(r, &own);
    return (struct xm_work){xm_now(), all.builds.seconds, own.multiply_adds,
                            own.weight_bytes};
}

struct xm_work
xm_work_between(const struct xm_work *before, const struct xm_work *now)
{
    const double built = now->built - before->built;
    const double seconds = now->seconds - before->seconds - built;
    return (struct xm_work){seconds > 0.0 ? seconds : 0.0, built,
                            now->multiply_adds - before->multiply_adds,
                            now->weight_bytes - before->weight_bytes};
}

struct xm_end_ids
xm_generation_ends(const struct xm_package *p, const struct xm_generation *asked)
{
    if (xm_dry_run())
        return (struct xm_end_ids){NULL, 0};
    if (asked->has_ends)
        return (struct xm_end_ids){asked->ends, asked->n_ends};
    if (!p)
        return (struct xm_end_ids){NULL, 0};
    return (struct xm_end_ids){p->generation.eos, p->generation.n_eos};
}

bool
xm_generation_is_end(const struct xm_package *p, const struct xm_generation *asked,
                     int32_t id)
{
    const struct xm_end_ids e = xm_generation_ends(p, asked);
    for (size_t i = 0; i < e.n && !asked->ignore_ends; i++) {
        if (e.ids[i] == id)
            return true;
    }
    return false;
}

void
xm_generation_barred(const struct xm_package *p, const struct xm_generation *asked,
                     uint64_t length, struct xm_end_ids out[XM_BARRED_LISTS])
{
    out[0] = out[1] = (struct xm_end_ids){NULL, 0};
    if (p)
        out[0] =
            (struct xm_end_ids){p->generation.suppressed.ids, p->generation.suppressed.n};
    if (length < asked->min_tokens)
        out[1] = xm_generation_ends(p, asked);
}

enum xm_status
xm_generation_echo(const struct xm_package *p, const struct xm_generation *asked,
                   const int32_t *prompt, size_t n, struct xm_strbuf *out,
                   struct xm_error *err)
{
    if (!asked->echo || !p || !p->tokenizer)
        return XM_OK;
    return xm_tokenizer_decode(p->tokenizer, prompt, n, !asked->keep_special, out, err);
}

uint64_t
xm_generation_room(uint64_t context, uint64_t prompt)
{
    if (context == 0)
        return UINT64_MAX;
    return prompt < context ? context - prompt : 0;
}

uint64_t
xm_generation_most(const struct xm_generation *asked, uint64_t prompt)
{
    const uint64_t room = xm_generation_room(asked->context, prompt);
    return room < asked->max_tokens ? room : asked->max_tokens;
}

enum xm_status
xm_generation_check_room(uint64_t context, uint64_t prompt, struct xm_error *err)
{
    if (xm_generation_room(context, prompt) > 0)
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "the prompt has %" PRIu64 " token%s, which leaves no room in a "
                   "context of %" PRIu64,
                   prompt, xm_plural(prompt), context);
}
