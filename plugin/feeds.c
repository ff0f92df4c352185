/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/feeds.h"

#include "transformations/passes/slice_last_token.h"

const char *const xm_feed_names[XM_N_FEEDS] = {
    "input_ids", "attention_mask", "position_ids", "beam_idx", XM_SAMPLED_TOKENS};

enum xm_status
xm_feeds_find(const struct xm_port *ports, uint32_t n, uint32_t port[XM_N_FEEDS],
              struct xm_error *err)
{
    for (int f = 0; f < XM_N_FEEDS; f++)
        port[f] = xm_port_find(ports, n, xm_feed_names[f]);
    for (uint32_t i = 0; i < n; i++) {
        bool known = false;
        for (int f = 0; f < XM_N_FEEDS; f++)
            known |= port[f] == i;
        if (!known)
            return xm_fail(err, XM_UNSUPPORTED,
                           "input '%s' is not an input of text generation (input_ids, "
                           "attention_mask, position_ids, beam_idx)",
                           ports[i].name);
    }
    return port[XM_FEED_IDS] != UINT32_MAX
               ? XM_OK
               : xm_fail(err, XM_UNSUPPORTED,
                         "text generation needs a model with an input 'input_ids'");
}
