/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the GGUF reader:
 *
 *     bytes ──► gguf_parse.c ──► a part's keys and tensors ──► gguf.c: all parts together
 *                                                               ▲
 *                 gguf_split.c: which part it is, and the names of the others
 *
 * gguf_names.c finds records by their names, gguf_values.c reads values, gguf_tensor.c tensors.
 */
#ifndef XM_PLUGIN_READERS_GGUF_RECORDS_H
#define XM_PLUGIN_READERS_GGUF_RECORDS_H

#include "plugin/readers/gguf.h"

/* For "%.*s": so many bytes of a name are shown, and a character is not cut. */
enum { XM_GGUF_SHOWN = 100 };
int xm_gguf_shown(struct xm_slice name);
#define XM_GGUF_SHOW(name) xm_gguf_shown(name), (name).text

/* Fills in what the bytes of a file say; path and mapping are there. Nothing but the arena holds
 * memory. Sentences do not name the file. */
enum xm_status xm_gguf_parse(struct xm_gguf_part *p, const uint8_t *bytes,
                             struct xm_arena *arena, struct xm_error *err);

/* ---- values -------------------------------------------------------------------------- */

/* The element type of values by its number in files; false: there is no such type. */
bool xm_gguf_element(uint32_t number, enum xm_element *out);

/* The value of a key that has a single one, a whole number from 0 to `most`. */
enum xm_status xm_gguf_whole(const struct xm_gguf_key *k, uint64_t most, uint64_t *out,
                             struct xm_error *err);

/* ---- records by name ----------------------------------------------------------------- */

/* Sorts n pointers to records by name. A record is any struct whose first member is its name.
 * *twice: a name that two records have; of length 0: there is none. */
void xm_gguf_sort_names(const void **records, uint64_t n, struct xm_slice *twice);
const void *xm_gguf_find_name(const void *const *sorted, uint64_t n, const char *name);

/* ---- parts --------------------------------------------------------------------------- */

struct xm_gguf_split {
    uint64_t number, count; /* part `number` (from 0) of `count`; count 1: not split */
    uint64_t n_tensors;     /* of all parts together; UINT64_MAX: not given          */
};

enum xm_status xm_gguf_find_split(const struct xm_gguf_part *p, struct xm_gguf_split *out,
                                  struct xm_error *err);
/* The path of part i, derived from the path of the part that `of` describes. XM_INVALID: that path
 * has no part number. */
enum xm_status xm_gguf_part_path(const char *path, const struct xm_gguf_split *of,
                                 uint64_t i, struct xm_arena *arena, const char **out,
                                 struct xm_error *err);

#endif
