/* SPDX-License-Identifier: Apache-2.0
 *
 * The inputs through which tokens are fed to a language model, by their names in exported
 * models.
 */
#ifndef XM_PLUGIN_FEEDS_H
#define XM_PLUGIN_FEEDS_H

#include "plugin/port.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_feed {
    XM_FEED_IDS,       /* [batch,tokens] */
    XM_FEED_MASK,      /* [batch,past+tokens], ones */
    XM_FEED_POSITIONS, /* [batch,tokens] */
    XM_FEED_BEAMS,     /* [batch] */
    XM_FEED_SAMPLES,   /* [samples], only in programs for sequences */
    XM_N_FEEDS
};
extern const char *const xm_feed_names[XM_N_FEEDS];

/* Finds the port of each feed; UINT32_MAX: the model has no such input. XM_UNSUPPORTED: the model
 * has other inputs, or none for token ids. */
enum xm_status xm_feeds_find(const struct xm_port *ports, uint32_t n,
                             uint32_t port[XM_N_FEEDS], struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
