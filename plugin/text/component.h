/* SPDX-License-Identifier: Apache-2.0
 *
 * A component of tokenizer.json: one object whose "type" names a row of a table, or a "Sequence" of
 * such objects.
 */
#ifndef XM_PLUGIN_TEXT_COMPONENT_H
#define XM_PLUGIN_TEXT_COMPONENT_H

#include <stddef.h>
#include <yyjson.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_component {
    const char *name; /* in sentences, such as "normalizer"   */
    const char *list; /* the key of the objects of a sequence */
    /* The rows: n_types structs of type_bytes, whose first member is the type's name, a const
     * char *. */
    const void *types;
    size_t n_types, type_bytes;
    /* Adds what the object says to *out. */
    enum xm_status (*load)(const void *type, yyjson_val *object, void *out,
                           struct xm_error *err);
};

/* The row of a type; NULL: there is none. */
const void *xm_component_type(const struct xm_component *c, const char *name);
/* Loads each object in its order. Nothing, where `value` is NULL or null. */
enum xm_status xm_component_load(const struct xm_component *c, yyjson_val *value,
                                 void *out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
