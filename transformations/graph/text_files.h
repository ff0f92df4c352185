/* SPDX-License-Identifier: Apache-2.0
 *
 * Places of constants in files. A dump of a graph with large constants has, instead of their bytes,
 * their places in the model's files, so that the dump can be run with these weights.
 *
 *     file "/models/m.gguf" bytes=82176000 changed=1764170000000000000 samples=8589934592
 *     %3 = weight f32[512,256] q4_k @3 data={0, 4096, 73728}
 *     %4 = weight f32[8,256] u4 group=64 scale=f16 @4 data={0, 77824, 2048} scale={64}
 *     %5 = weight f32[8,256] f16 @5 data={0, 79872, 65536} view={512, 0, 8, 0}
 *
 * data={file, offset, bytes}: files are numbered from 0 in the order of their lines. data={bytes}:
 * the bytes are in no file and are replaced by a pattern. view={…}: the members of struct
 * xm_weight_view, if the weight is only a part of its stored bytes.
 *
 * Internal to transformations/graph.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_TEXT_FILES_H
#define XM_TRANSFORMATIONS_GRAPH_TEXT_FILES_H

#include "transformations/graph/lexer.h"

enum xm_text_part {
    XM_TEXT_DATA,
    XM_TEXT_SCALE,
    XM_TEXT_ZERO_POINT,
    XM_TEXT_CODEBOOK,
    XM_TEXT_FACTOR,
    XM_TEXT_PARTS
};

/* The arrays of bytes of a node. If n > 0 and p == NULL, the array is filled with a pattern; n ==
 * 0: the node has no such array. */
struct xm_text_places {
    struct xm_bytes part[XM_TEXT_PARTS];
    struct xm_weight_view view;
};

/* Whether the blobs of the graph have more than `most` bytes together, so that places are
 * printed. */
bool xm_text_wants_places(const struct xm_graph *g, uint64_t most);
/* Prints a `file` line for each of the graph's files. */
void xm_text_print_files(const struct xm_graph *g, struct xm_strbuf *out);
/* Prints the places of a node's bytes; called after the blob's number (@3). */
void xm_text_print_places(const struct xm_graph *g, const struct xm_node *n,
                          struct xm_strbuf *out);

/* Reads the rest of a `file` line, opens the file and adds it to the graph's mappings.
 * XM_NOT_FOUND: there is no such file; XM_UNSUPPORTED: it has changed since the dump. */
enum xm_status xm_text_parse_file(struct xm_lexer *l, struct xm_graph *g);
/* Whether places follow the number of a blob. */
bool xm_text_places_follow(struct xm_lexer *l);
enum xm_status xm_text_parse_places(struct xm_lexer *l, const struct xm_graph *g,
                                    struct xm_text_places *out);

#endif
