/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads generation_config.json for plugin/text/generation_config.h and for plugin/genai, which use
 * different members of the file.
 *
 * A member that is absent or null leaves *out as it is. A member of another type fails with
 * XM_INVALID and leaves *out as it is; `err` may be NULL.
 */
#ifndef XM_PLUGIN_TEXT_GENERATION_FILE_H
#define XM_PLUGIN_TEXT_GENERATION_FILE_H

#include "plugin/text/token_list.h"
#include "runtime/util/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parses the file at `path`, whose root must be an object. The caller frees *out with
 * yyjson_doc_free(). XM_NOT_FOUND: there is no such file. The error message begins with the
 * path. */
enum xm_status xm_generation_file_open(const char *path, yyjson_doc **out,
                                       struct xm_error *err);

/* Reads a whole number >= 0. -1 counts as absent: some models write it for "none". */
enum xm_status xm_generation_file_count(yyjson_val *root, const char *key, uint64_t *out,
                                        struct xm_error *err);
enum xm_status xm_generation_file_number(yyjson_val *root, const char *key, double *out,
                                         struct xm_error *err);
/* Appends a token id or a list of token ids to *out, which the caller frees, also on failure. */
enum xm_status xm_generation_file_ids(yyjson_val *root, const char *key,
                                      struct xm_token_list *out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
