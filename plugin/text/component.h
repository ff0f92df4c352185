/* SPDX-License-Identifier: Apache-2.0
 *
 * A component of tokenizer.json (normalizer, pre-tokenizer, decoder, …): an object whose "type"
 * names a row of a table, or a "Sequence" of such objects.
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
    const char *name; /* for error messages: "normalizer" */
    const char *list; /* the key of the objects of a sequence */
    /* The table: n_types rows of type_bytes bytes each; a row's first member is the type's name, a
     * const char *. */
    const void *types;
    size_t n_types, type_bytes;
    /* Reads one object of this type and adds it to *out. */
    enum xm_status (*load)(const void *type, yyjson_val *object, void *out,
                           struct xm_error *err);
};

/* Returns the row of the type with this name; NULL: there is none. */
const void *xm_component_type(const struct xm_component *c, const char *name);
/* Loads the object, or each object of a sequence in order, into *out. Does nothing if `value` is
 * NULL or JSON null. */
enum xm_status xm_component_load(const struct xm_component *c, yyjson_val *value,
                                 void *out, struct xm_error *err);

#ifdef __cplusplus
}
#endif
#endif
