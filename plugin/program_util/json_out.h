/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds and prints the result of --json: one object on standard output, made with yyjson and
 * xm_alloc.
 *
 * A function that runs out of memory sets `failed`, and xm_json_print returns XM_NO_MEMORY; callers
 * need no other check.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_JSON_OUT_H
#define XM_PLUGIN_PROGRAM_UTIL_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_json_out {
    yyjson_mut_doc *doc; /* NULL: out of memory */
    yyjson_mut_val *root;
    bool failed;
};

void xm_json_begin(struct xm_json_out *j);
void xm_json_end(struct xm_json_out *j); /* frees */
/* All adders: `parent` is an object (NULL: the root) and takes `key`, or it is an array and
 * `key` is NULL. */
yyjson_mut_val *xm_json_add_object(struct xm_json_out *j, yyjson_mut_val *parent,
                                   const char *key);
yyjson_mut_val *xm_json_add_array(struct xm_json_out *j, yyjson_mut_val *parent,
                                  const char *key);
/* Texts are copied; bytes that are not UTF-8 become U+FFFD. */
void xm_json_add_text(struct xm_json_out *j, yyjson_mut_val *parent, const char *key,
                      const char *text, size_t n);
void xm_json_add_whole(struct xm_json_out *j, yyjson_mut_val *parent, const char *key,
                       uint64_t n);
void xm_json_add_real(struct xm_json_out *j, yyjson_mut_val *parent, const char *key,
                      double x); /* null when not finite */
void xm_json_add_bool(struct xm_json_out *j, yyjson_mut_val *parent, const char *key,
                      bool b);
void xm_json_add_null(struct xm_json_out *j, yyjson_mut_val *parent, const char *key);
/* Adds a value of the same document. NULL: it could not be allocated; sets `failed`. */
void xm_json_add_value(struct xm_json_out *j, yyjson_mut_val *parent, const char *key,
                       yyjson_mut_val *v);
void xm_json_add_ids(struct xm_json_out *j, yyjson_mut_val *parent, const char *key,
                     const int32_t *ids, size_t n);
/* Adds a list of the parts of `text` between separators, without the empty ones. */
void xm_json_add_parts(struct xm_json_out *j, yyjson_mut_val *parent, const char *key,
                       const char *text, const char *separator);
/* A value as JSON text, which the caller frees with xm_free; NULL: out of memory. */
char *xm_json_value_text(const yyjson_mut_val *v);
/* Appends the object without white space. Returns false if a value is missing, and nothing was
 * appended, or if `out` has failed. */
bool xm_json_write(const struct xm_json_out *j, struct xm_strbuf *out);
/* Prints the object on standard output. XM_NO_MEMORY: some value is missing; nothing is printed. */
enum xm_status xm_json_print(struct xm_json_out *j, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
