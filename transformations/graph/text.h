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
 * An absent operand is `_`. Types behind ':' are always printed, and checked when parsed (text
 * written by hand may leave them out). Constants of at most 16 elements are printed in braces;
 * larger ones are "blobs", of which only a number is printed (@2). For a blob the text may give its
 * place in the model's files (xm_graph_print_dump), or the caller may supply its bytes
 * (xm_graph_parse_with); otherwise the parser fills it with a pattern that depends on its number,
 * so that a dump can be run without weights.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_TEXT_H
#define XM_TRANSFORMATIONS_GRAPH_TEXT_H

#include "transformations/graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most bytes of constants that a text may declare without having them. */
enum { XM_TEXT_MOST_DATA = 64 << 20 };

/* Appends the graph's text. */
void xm_graph_print(const struct xm_graph *g, struct xm_strbuf *out);
/* As xm_graph_print, for xm_graph_parse_dump(): if the blobs have more than `most` bytes together
 * (XM_TEXT_MOST_DATA, except in tests), each is printed with the place of its bytes in the files
 * that the graph was read from. */
void xm_graph_print_dump(const struct xm_graph *g, uint64_t most, struct xm_strbuf *out);
void xm_node_print(const struct xm_node *n,
                   struct xm_strbuf *out); /* one line, no newline */
/* Parses a text into a new graph, which the caller destroys. XM_INVALID: the message begins with
 * line and column. */
enum xm_status xm_graph_parse(const char *text, struct xm_graph **out,
                              struct xm_error *err);

/* Whether a node is printed as a blob; the blob's number is the node's id. */
bool xm_node_is_blob(const struct xm_node *n);
/* A source of the bytes of blobs. The source owns the bytes; the graph refers to them. A failure is
 * reported with the line of the blob. */
struct xm_text_blobs {
    /* Gives the bytes of constant `number`, at least n_bytes. */
    enum xm_status (*constant)(void *ctx, uint32_t number, uint64_t n_bytes,
                               struct xm_data *out, struct xm_error *err);
    /* Sets the view and the bytes of weight `number`, whose sizes and types are set; fails if the
     * bytes do not agree with them. */
    enum xm_status (*weight)(void *ctx, uint32_t number, struct xm_weight *w,
                             struct xm_error *err);
    void *ctx;
};
/* As xm_graph_parse, but takes the bytes of blobs from `blobs`, which must outlive the graph. */
enum xm_status xm_graph_parse_with(const char *text, const struct xm_text_blobs *blobs,
                                   struct xm_graph **out, struct xm_error *err);
/* As xm_graph_parse(), but opens the files that a dump names; parse only texts that the user
 * trusts. XM_NOT_FOUND: a file is missing; XM_UNSUPPORTED: it has changed since the dump. */
enum xm_status xm_graph_parse_dump(const char *text, struct xm_graph **out,
                                   struct xm_error *err);
/* Appends `s` in double quotes, with quotes, backslashes and control characters escaped. */
void xm_text_add_quoted(struct xm_strbuf *out, const char *s);
/* Appends the graph in the language of Graphviz. */
void xm_graph_print_dot(const struct xm_graph *g, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
