/* SPDX-License-Identifier: Apache-2.0
 *
 * The set of live handles of the C API. Before a function of the API reads memory through a pointer
 * from the caller, it checks here that the pointer is a live handle of the expected kind. Therefore
 * NULL, a freed handle and a handle of another kind give INVALID_C_PARAM; a freed handle is not
 * noticed if its address was reused for a handle of the same kind. Thread-safe.
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
    XM_API_PORT, /* both const and non-const */
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

/* Adds a handle. Several handles of one tensor have the same address, which is counted. Returns
 * false if memory is missing. */
bool xm_api_handle_add(const void *handle, enum xm_api_kind kind);
/* Removes a handle. Returns false if it is not live, so that the caller must not free anything. */
bool xm_api_handle_drop(const void *handle, enum xm_api_kind kind);
/* Whether `handle` is a live handle of this kind; false for NULL. */
bool xm_api_is(const void *handle, enum xm_api_kind kind);

#ifdef __cplusplus
}
#endif
#endif
