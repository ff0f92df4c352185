/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF, versions 2 and 3, little endian: the container. Keys with values, and tensors as views of
 * the mapped file; what they mean to a model is not known here.
 *
 *     "GGUF"  u32 version  u64 tensors  u64 keys | key: name, type, value | …
 *             | tensor: name, dimensions, type, offset | … | padding | the tensors' bytes
 *
 * A model may be split into NAME-00001-of-00003.gguf, NAME-00002-of-00003.gguf and so on: any of
 * them opens all, which lie in one folder. Keys are those of the first, tensors those of all.
 *
 * Opening checks all that lies before the tensors' bytes, and that these lie in the file, each
 * apart from the others; it reads none of them. Sentences of the functions that take a key or a
 * tensor begin with its name: the caller puts the file before. An open file is immutable.
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

/* Values of a key, one or a list of them; they stay in the file. */
struct xm_gguf_values {
    struct xm_slice key;     /* whose they are                      */
    enum xm_element element; /* XM_STRING: texts; XM_DYNAMIC: lists */
    uint64_t n;
    struct xm_bytes bytes; /* as the file has them */
};

struct xm_gguf_key {
    struct xm_slice name; /* UTF-8 without control characters, as all names */
    bool is_list;
    struct xm_gguf_values value; /* one, unless it is a list */
};

struct xm_gguf_type {
    uint32_t number; /* in files */
    const char *text;
    uint32_t columns, bytes; /* of a block */
};

struct xm_gguf_tensor {
    struct xm_slice name;
    const struct xm_gguf_type *type;
    uint32_t rank;
    /* As ggml has them: ne[0] is the innermost, the columns of a row; 1 from the rank on. */
    uint64_t ne[XM_GGUF_MAX_RANK];
    uint64_t offset; /* of the bytes in their file */
    struct xm_bytes data;
    /* That holds the bytes: who keeps them refers to it. NULL: they are the caller's. */
    struct xm_mapping *mapping;
};

/* A file. */
struct xm_gguf_part {
    const char *path;
    struct xm_mapping *mapping; /* a reference; NULL: the caller's bytes */
    uint64_t n_bytes;
    uint32_t version, alignment;
    const struct xm_gguf_key *keys; /* in the file's order, as the tensors */
    const struct xm_gguf_tensor *tensors;
    uint64_t n_keys, n_tensors;
    const void **keys_by_name; /* the same keys */
};

struct xm_gguf {
    struct xm_arena arena;
    struct xm_gguf_part *parts; /* the first has the keys */
    uint64_t n_parts;
    const struct xm_gguf_tensor **tensors; /* of all parts, in their order */
    uint64_t n_tensors;
    const void **tensors_by_name; /* the same */
};

/* *out is NULL on failure; XM_NOT_FOUND: the file, or one that it says there is, is not there. */
enum xm_status xm_gguf_open(const char *path, struct xm_gguf **out, struct xm_error *err);
/* One file in memory. With an owner it holds a reference to it; without, the caller keeps the bytes
 * alive as long as anybody looks at them. */
enum xm_status xm_gguf_read_memory(const void *bytes, uint64_t n,
                                   struct xm_mapping *owner, struct xm_gguf **out,
                                   struct xm_error *err);
/* Gives back its references to the mappings; NULL is allowed. */
void xm_gguf_close(struct xm_gguf *g);

/* ---- keys ---------------------------------------------------------------------------- */

const struct xm_gguf_key *xm_gguf_find_key(const struct xm_gguf *g, const char *name);

/* The one value of a key; XM_NOT_FOUND: there is no such key; *out is as it was where that fails.
 * A whole number may be of any integer type, floats are finite, and f64 if they fit. Texts are
 * as the file has them, UTF-8 if it is right. */
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

/* The values of a key that is a list. */
enum xm_status xm_gguf_list(const struct xm_gguf *g, const char *key,
                            struct xm_gguf_values *out, struct xm_error *err);
/* Value i of them. */
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
/* As it is, infinite and NaN too. */
enum xm_status xm_gguf_f64_at(const struct xm_gguf_values *l, uint64_t i, double *out,
                              struct xm_error *err);
/* Takes the first text off those that are left; XM_NOT_FOUND: none is. */
enum xm_status xm_gguf_next_text(struct xm_gguf_values *l, struct xm_slice *out,
                                 struct xm_error *err);
/* The same of lists in a list. */
enum xm_status xm_gguf_next_list(struct xm_gguf_values *l, struct xm_gguf_values *out,
                                 struct xm_error *err);

/* "u32", "string", "list"; static. */
const char *xm_gguf_element_text(enum xm_element element);

/* ---- tensors ------------------------------------------------------------------------- */

const struct xm_gguf_tensor *xm_gguf_find_tensor(const struct xm_gguf *g,
                                                 const char *name);

/* The dimensions as everywhere else here, outermost first: its rank of them. */
void xm_gguf_tensor_dims(const struct xm_gguf_tensor *t, uint64_t dim[XM_GGUF_MAX_RANK]);

/* As a weight [K], [N,K] or [E,N,K], whose bytes stay where they are. XM_UNSUPPORTED: the type is
 * none that weights have here. */
enum xm_status xm_gguf_weight(const struct xm_gguf_tensor *t, struct xm_weight *out,
                              struct xm_error *err);

/* NULL: ggml has no such type. */
const struct xm_gguf_type *xm_gguf_find_type(uint32_t number);

#ifdef __cplusplus
}
#endif
#endif
