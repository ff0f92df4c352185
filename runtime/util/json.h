/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON by yyjson with our allocator, and getters for members of objects that report each failure as
 * a sentence.
 *
 * A getter takes an object and a key. If the member is absent or null, a getter of an optional
 * member leaves *out, the caller's default, unchanged. Texts point into the document. */
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

/* Parses n bytes of JSON. XM_INVALID: the message has the byte offset. Free *out with
 * yyjson_doc_free(). The document keeps no reference to `text`. */
enum xm_status xm_json_parse(const char *text, size_t n, yyjson_doc **out,
                             struct xm_error *err);

/* Parses the file at `path` as xm_json_parse does. XM_NOT_FOUND: there is no such file. */
enum xm_status xm_json_read(const char *path, yyjson_doc **out, struct xm_error *err);

/* Getters of optional members: a boolean, a string, an integer from 0 to INT32_MAX. XM_INVALID: the
 * member has another type or value; the message names the key. */
enum xm_status xm_json_bool(yyjson_val *object, const char *key, bool *out,
                            struct xm_error *err);
enum xm_status xm_json_text(yyjson_val *object, const char *key, struct xm_slice *out,
                            struct xm_error *err);
enum xm_status xm_json_count(yyjson_val *object, const char *key, uint32_t *out,
                             struct xm_error *err);

/* Getters of required members: an object, an array. XM_INVALID: the member is absent or has another
 * type. */
enum xm_status xm_json_object(yyjson_val *object, const char *key, yyjson_val **out,
                              struct xm_error *err);
enum xm_status xm_json_array(yyjson_val *object, const char *key, yyjson_val **out,
                             struct xm_error *err);

/* Reads a token id: an integer 0 ≤ id < XM_MAX_TOKENS. XM_INVALID: the value is another; the
 * message calls it `what`. */
enum { XM_MAX_TOKENS = 1 << 22 };
enum xm_status xm_json_token_id(yyjson_val *value, const char *what, int32_t *out,
                                struct xm_error *err);

/* Describes a value for messages: "a list", "an object", "missing". Static. */
const char *xm_json_what(yyjson_val *value);
/* As xm_json_what, but with the value of a number or a string: "-5", "'abc'", "an empty list". */
struct xm_shown xm_json_shown(yyjson_val *value);

/* Gets the member "type" of a tokenizer component. XM_INVALID: `object` is no object, or has no
 * such member. */
enum xm_status xm_json_type(yyjson_val *object, const char *component, const char **out,
                            struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
