/* SPDX-License-Identifier: Apache-2.0
 *
 * The handles that callers hold. A function asks here, before it reads a byte behind a
 * pointer, whether that is a live handle of the kind that it takes; so NULL, freed handles
 * and handles of another kind are all INVALID_C_PARAM, as far as memory that has been
 * given out anew lets that be known.
 */
#ifndef XM_PLUGIN_API_HANDLES_H
#define XM_PLUGIN_API_HANDLES_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum xm_api_kind {
    XM_API_CORE,
    XM_API_MODEL,
    XM_API_COMPILED,
    XM_API_REQUEST,
    XM_API_TENSOR,
    XM_API_PORT, /* const ones too */
    XM_API_LAYOUT,
    XM_API_CONTEXT,
    XM_API_SEQUENCE,
    XM_API_BATCH,
    XM_API_JSON,
    XM_API_HISTORY,
    XM_API_CONFIG,
    XM_API_METRICS,
    XM_API_RESULTS,
    XM_API_PIPELINE
};

/* One handle more at this address: those of one tensor share theirs. False: no memory. */
bool xm_api_handle_add(const void *handle, enum xm_api_kind kind);
/* One less. False: there is none, and nothing is to be freed. */
bool xm_api_handle_drop(const void *handle, enum xm_api_kind kind);
bool xm_api_is(const void *handle, enum xm_api_kind kind); /* false for NULL */

#ifdef __cplusplus
}
#endif
#endif
