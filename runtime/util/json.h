/* SPDX-License-Identifier: Apache-2.0
 *
 * yyjson with our allocator, and members of objects read with a sentence for each error.
 *
 * The getters take an object and a key. An absent member and one that is null are the
 * same: *out keeps the caller's default. Texts point into the document.
 */
#ifndef XM_RUNTIME_UTIL_JSON_H
#define XM_RUNTIME_UTIL_JSON_H

#include <yyjson.h>

#include "runtime/util/slice.h"
#include "runtime/util/status.h"
#include "runtime/util/utf8.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Our allocator for yyjson. */
extern const yyjson_alc xm_json_allocator;

/* Parses n bytes. XM_INVALID: the sentence has the place. Free *out with yyjson_doc_free(). The
 * document keeps no reference to `text`. */
enum xm_status xm_json_parse(const char *text, size_t n, yyjson_doc **out,
                             struct xm_error *err);

/* The same for a file. XM_NOT_FOUND: there is no such file. */
enum xm_status xm_json_read(const char *path, yyjson_doc **out, struct xm_error *err);

/* Members that may be absent: a boolean, a string, an integer from 0 to INT32_MAX. XM_INVALID: the
 * member has another type; the sentence names the key. */
enum xm_status xm_json_bool(yyjson_val *object, const char *key, bool *out,
                            struct xm_error *err);
enum xm_status xm_json_text(yyjson_val *object, const char *key, struct xm_slice *out,
                            struct xm_error *err);
enum xm_status xm_json_count(yyjson_val *object, const char *key, uint32_t *out,
                             struct xm_error *err);

/* Members that are required: an object, an array. XM_INVALID: absent, or of another type. */
enum xm_status xm_json_object(yyjson_val *object, const char *key, yyjson_val **out,
                              struct xm_error *err);
enum xm_status xm_json_array(yyjson_val *object, const char *key, yyjson_val **out,
                             struct xm_error *err);

/* A value that must be a token id: an integer 0 ≤ id < XM_MAX_TOKENS. `what` names it. */
enum { XM_MAX_TOKENS = 1 << 22 };
enum xm_status xm_json_token_id(yyjson_val *value, const char *what, int32_t *out,
                                struct xm_error *err);

/* What a value is, for sentences: "a list", "an object", "missing". Static. */
const char *xm_json_what(yyjson_val *value);
/* The same, and of a number or a string the value: "-5", "'abc'", "an empty list". */
struct xm_shown xm_json_shown(yyjson_val *value);

/* The "type" of a component: an error when `object` is no object or has none. */
enum xm_status xm_json_type(yyjson_val *object, const char *component, const char **out,
                            struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
