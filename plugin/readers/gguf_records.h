/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to the GGUF reader:
 *
 *     bytes ──► gguf_parse.c ──► a part's keys and tensors ──► gguf.c: all parts together
 *                                                               ▲
 *         gguf_split.c: number and count of a file's part, and the names of the other parts
 *
 * gguf_names.c finds records by name, gguf_values.c reads values, gguf_tensor.c makes weights of
 * tensors.
 */
#ifndef XM_PLUGIN_READERS_GGUF_RECORDS_H
#define XM_PLUGIN_READERS_GGUF_RECORDS_H

#include "plugin/readers/gguf.h"

/* xm_gguf_shown returns the number of bytes of a name, at most XM_GGUF_SHOWN and ending between
 * characters, to print with "%.*s". XM_GGUF_SHOW gives both arguments of "%.*s". */
enum { XM_GGUF_SHOWN = 100 };
int xm_gguf_shown(struct xm_slice name);
#define XM_GGUF_SHOW(name) xm_gguf_shown(name), (name).text

/* Parses the bytes of a file into *p, whose path and mapping are set already. Allocates in the
 * arena only. Error messages do not name the file. */
enum xm_status xm_gguf_parse(struct xm_gguf_part *p, const uint8_t *bytes,
                             struct xm_arena *arena, struct xm_error *err);

/* ---- values -------------------------------------------------------------------------- */

/* Sets *out to the element type with this number in files. False: there is no such type. */
bool xm_gguf_element(uint32_t number, enum xm_element *out);

/* Reads the single value of a key, a whole number from 0 to `most`. */
enum xm_status xm_gguf_whole(const struct xm_gguf_key *k, uint64_t most, uint64_t *out,
                             struct xm_error *err);

/* ---- records by name ----------------------------------------------------------------- */

/* Sorts n pointers to records by name. A record is any struct whose first member is its name.
 * *twice is a name that two records have; of length 0: there is none. */
void xm_gguf_sort_names(const void **records, uint64_t n, struct xm_slice *twice);
const void *xm_gguf_find_name(const void *const *sorted, uint64_t n, const char *name);

/* ---- parts --------------------------------------------------------------------------- */

struct xm_gguf_split {
    /* the file is part `number` (from 0) of `count`; 1: not split */
    uint64_t number, count;
    uint64_t n_tensors; /* tensors of all parts together; UINT64_MAX: not given */
};

enum xm_status xm_gguf_find_split(const struct xm_gguf_part *p, struct xm_gguf_split *out,
                                  struct xm_error *err);
/* Derives the path of part i from `path`, the path of the part that `of` describes. XM_INVALID:
 * `path` has no part number. */
enum xm_status xm_gguf_part_path(const char *path, const struct xm_gguf_split *of,
                                 uint64_t i, struct xm_arena *arena, const char **out,
                                 struct xm_error *err);

#endif
