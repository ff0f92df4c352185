/* SPDX-License-Identifier: Apache-2.0
 *
 * The container of GGUF files, versions 2 and 3, little endian: keys with values, and tensors as
 * views of the mapped file. Their meaning for a model is not known here.
 *
 *     "GGUF"  u32 version  u64 tensors  u64 keys | key: name, type, value | …
 *             | tensor: name, dimensions, type, offset | … | padding | the tensors' bytes
 *
 * A model may be split into NAME-00001-of-00003.gguf, NAME-00002-of-00003.gguf and so on, all in
 * one folder: opening any of them opens all. Keys are those of the first part, tensors those of all
 * parts.
 *
 * Opening checks everything before the tensors' bytes, and that the tensors' bytes lie in the file
 * and do not overlap; it reads none of these bytes. The functions that take a key or a tensor begin
 * error messages with its name; the caller puts the file's name before. An open file is immutable.
 */
#ifndef XM_PLUGIN_READERS_GGUF_H
#define XM_PLUGIN_READERS_GGUF_H

#include "runtime/util/slice.h"
#include "runtime/weight.h"
#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_GGUF_MAX_RANK = 4 };

/* The value of a key, or its list of values, undecoded: `bytes` points into the file. */
struct xm_gguf_values {
    struct xm_slice key;     /* name of the key */
    enum xm_element element; /* their type; XM_STRING: texts, XM_DYNAMIC: lists */
    uint64_t n;
    struct xm_bytes bytes; /* encoded as in the file */
};

struct xm_gguf_key {
    struct xm_slice name; /* UTF-8 without control characters, like all names */
    bool is_list;
    struct xm_gguf_values value; /* a single value, unless is_list */
};

struct xm_gguf_type {
    uint32_t number; /* the type's number in files */
    const char *text;
    uint32_t columns, bytes; /* columns and bytes of a block */
};

struct xm_gguf_tensor {
    struct xm_slice name;
    const struct xm_gguf_type *type;
    uint32_t rank;
    /* ggml's dimensions: ne[0] is the innermost, the columns of a row; 1 from index `rank` on. */
    uint64_t ne[XM_GGUF_MAX_RANK];
    uint64_t offset; /* position of the bytes in their file */
    struct xm_bytes data;
    /* The mapping that holds the bytes; to keep the bytes, take a reference to it. NULL: the caller
     * of xm_gguf_read_memory owns them. */
    struct xm_mapping *mapping;
};

/* One file of a model. */
struct xm_gguf_part {
    const char *path;
    struct xm_mapping *mapping; /* a reference; NULL: the caller owns the bytes */
    uint64_t n_bytes;
    uint32_t version, alignment;
    const struct xm_gguf_key *keys; /* in the file's order, like `tensors` */
    const struct xm_gguf_tensor *tensors;
    uint64_t n_keys, n_tensors;
    const void **keys_by_name; /* `keys`, sorted by name */
};

struct xm_gguf {
    struct xm_arena arena;
    struct xm_gguf_part *parts; /* [n_parts]; the first has the keys */
    uint64_t n_parts;
    const struct xm_gguf_tensor **tensors; /* of all parts, in order */
    uint64_t n_tensors;
    const void **tensors_by_name; /* `tensors`, sorted by name */
};

/* Opens a file, and the other parts of a split model. *out is NULL on failure. XM_NOT_FOUND: the
 * file, or another part that it mentions, does not exist. */
enum xm_status xm_gguf_open(const char *path, struct xm_gguf **out, struct xm_error *err);
/* Opens one file in memory. owner not NULL: the result holds a reference to it. NULL: the caller
 * must keep the bytes alive as long as the result or views of it are used. */
enum xm_status xm_gguf_read_memory(const void *bytes, uint64_t n,
                                   struct xm_mapping *owner, struct xm_gguf **out,
                                   struct xm_error *err);
/* Closes the file and releases its references to mappings; NULL is allowed. */
void xm_gguf_close(struct xm_gguf *g);

/* ---- keys ---------------------------------------------------------------------------- */

const struct xm_gguf_key *xm_gguf_find_key(const struct xm_gguf *g, const char *name);

/* Read the single value of a key. XM_NOT_FOUND: there is no such key. On failure *out is unchanged.
 * A whole number may have any integer type; a float must be finite, and may be an f64 if it fits
 * into an f32. Texts are the bytes of the file, which may not be valid UTF-8. */
enum xm_status xm_gguf_bool(const struct xm_gguf *g, const char *key, bool *out,
                            struct xm_error *err);
enum xm_status xm_gguf_u32(const struct xm_gguf *g, const char *key, uint32_t *out,
                           struct xm_error *err);
enum xm_status xm_gguf_u64(const struct xm_gguf *g, const char *key, uint64_t *out,
                           struct xm_error *err);
enum xm_status xm_gguf_i64(const struct xm_gguf *g, const char *key, int64_t *out,
                           struct xm_error *err);
enum xm_status xm_gguf_f32(const struct xm_gguf *g, const char *key, float *out,
                           struct xm_error *err);
enum xm_status xm_gguf_text(const struct xm_gguf *g, const char *key,
                            struct xm_slice *out, struct xm_error *err);

/* Sets *out to the values of a key that is a list. */
enum xm_status xm_gguf_list(const struct xm_gguf *g, const char *key,
                            struct xm_gguf_values *out, struct xm_error *err);
/* Read value i of a list. */
enum xm_status xm_gguf_bool_at(const struct xm_gguf_values *l, uint64_t i, bool *out,
                               struct xm_error *err);
enum xm_status xm_gguf_u32_at(const struct xm_gguf_values *l, uint64_t i, uint32_t *out,
                              struct xm_error *err);
enum xm_status xm_gguf_u64_at(const struct xm_gguf_values *l, uint64_t i, uint64_t *out,
                              struct xm_error *err);
enum xm_status xm_gguf_i64_at(const struct xm_gguf_values *l, uint64_t i, int64_t *out,
                              struct xm_error *err);
enum xm_status xm_gguf_f32_at(const struct xm_gguf_values *l, uint64_t i, float *out,
                              struct xm_error *err);
/* Reads an f64, which may be infinite or NaN. */
enum xm_status xm_gguf_f64_at(const struct xm_gguf_values *l, uint64_t i, double *out,
                              struct xm_error *err);
/* Removes the first of the remaining texts from *l and sets *out to it. XM_NOT_FOUND: none is
 * left. */
enum xm_status xm_gguf_next_text(struct xm_gguf_values *l, struct xm_slice *out,
                                 struct xm_error *err);
/* Removes the first of the remaining lists from *l, a list of lists, and sets *out to it.
 * XM_NOT_FOUND: none is left. */
enum xm_status xm_gguf_next_list(struct xm_gguf_values *l, struct xm_gguf_values *out,
                                 struct xm_error *err);

/* Returns the name of a value type: "u32", "string", "list"; static. */
const char *xm_gguf_element_text(enum xm_element element);

/* ---- tensors ------------------------------------------------------------------------- */

const struct xm_gguf_tensor *xm_gguf_find_tensor(const struct xm_gguf *g,
                                                 const char *name);

/* Sets dim[0..rank) to the dimensions, outermost first, as in the rest of the project. */
void xm_gguf_tensor_dims(const struct xm_gguf_tensor *t, uint64_t dim[XM_GGUF_MAX_RANK]);

/* Describes the tensor as a weight [K], [N,K] or [E,N,K]; its bytes are not copied. XM_UNSUPPORTED:
 * weights of this type are not supported. */
enum xm_status xm_gguf_weight(const struct xm_gguf_tensor *t, struct xm_weight *out,
                              struct xm_error *err);

/* Returns the type with this number; NULL: unknown. */
const struct xm_gguf_type *xm_gguf_find_type(uint32_t number);

#ifdef __cplusplus
}
#endif
#endif
