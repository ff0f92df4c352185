/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph text: printed and parsed in the same format (grammar in docs/graph_text.md).
 *
 *     graph "Model0"
 *     %0 = parameter f32[batch,tokens,256] name="x"
 *     %1 = const i64[2] {-1, 256}
 *     %2 = const f32[256] @2                         (large: bytes are not printed)
 *     %3 = weight f32[512,256] u4 group=64 scale=f16 zp=u4 @3
 *     %4 = matmul %0, %3 transpose_b=true            : f32[batch,tokens,512]   # "q_proj"
 *     %5, %6 = topk %4, %1 axis=-1 mode=max          : f32[batch,4], i64[batch,4]
 *     result %4 name="y"
 *
 * An absent operand is `_`. Types behind ':' are printed always, and checked when parsed (text
 * written by hand may leave them out). Constants of at most 16 elements are printed in braces;
 * larger ones are blobs. The text may have a blob's place in the model's files
 * (xm_graph_print_dump), or the caller has its bytes (xm_graph_parse_with); otherwise the parser
 * fills it with a pattern made from its number, so that a dump can be replayed without weights.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_TEXT_H
#define XM_TRANSFORMATIONS_GRAPH_TEXT_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of constants that a text may declare without having them, at most. */
enum { XM_TEXT_MOST_DATA = 64 << 20 };

/* Appends the graph's text. */
void xm_graph_print(const struct xm_graph *g, struct xm_strbuf *out);
/* The same for xm_graph_parse_dump(): where the blobs have more than `most` bytes
 * (XM_TEXT_MOST_DATA, but for tests), each is written with the place of its bytes in the files that
 * the graph was read from. */
void xm_graph_print_dump(const struct xm_graph *g, uint64_t most, struct xm_strbuf *out);
void xm_node_print(const struct xm_node *n,
                   struct xm_strbuf *out); /* one line, no newline */
/* Parses a text into a new graph, which the caller destroys. XM_INVALID: the sentence begins with
 * line and column. */
enum xm_status xm_graph_parse(const char *text, struct xm_graph **out,
                              struct xm_error *err);

/* Whether a node's bytes are a blob of the text: the node's id is its number. */
bool xm_node_is_blob(const struct xm_node *n);
/* A source of the bytes of blobs. The source keeps ownership; the graph refers to the bytes. A
 * failure is reported with the line of the blob. */
struct xm_text_blobs {
    /* At least n_bytes. */
    enum xm_status (*constant)(void *ctx, uint32_t number, uint64_t n_bytes,
                               struct xm_data *out, struct xm_error *err);
    /* Fills in the view and the bytes of a weight whose sizes and types are set; fails where the
     * bytes do not agree with them. */
    enum xm_status (*weight)(void *ctx, uint32_t number, struct xm_weight *w,
                             struct xm_error *err);
    void *ctx;
};
/* As xm_graph_parse, with the bytes of blobs from `blobs`, which must outlive the graph. */
enum xm_status xm_graph_parse_with(const char *text, const struct xm_text_blobs *blobs,
                                   struct xm_graph **out, struct xm_error *err);
/* As xm_graph_parse(), and opens the files that a dump names; parse only texts that the user
 * trusts. XM_NOT_FOUND: there is no such file; XM_UNSUPPORTED: it has changed since the dump. */
enum xm_status xm_graph_parse_dump(const char *text, struct xm_graph **out,
                                   struct xm_error *err);
/* `s` in double quotes; quotes, backslashes and control characters are escaped. */
void xm_text_add_quoted(struct xm_strbuf *out, const char *s);
/* Graphviz. */
void xm_graph_print_dot(const struct xm_graph *g, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
