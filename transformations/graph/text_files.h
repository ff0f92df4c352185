/* SPDX-License-Identifier: Apache-2.0
 *
 * Places in files: what a dump says of constants that are too large for a pattern, so that it can
 * be replayed with the model's own weights.
 *
 *     file "/models/m.gguf" bytes=82176000 changed=1764170000000000000 samples=8589934592
 *     %3 = weight f32[512,256] q4_k @3 data={0, 4096, 73728}
 *     %4 = weight f32[8,256] u4 group=64 scale=f16 @4 data={0, 77824, 2048} scale={64}
 *     %5 = weight f32[8,256] f16 @5 data={0, 79872, 65536} view={512, 0, 8, 0}
 *
 * {file, offset, bytes}: files are counted from 0 in the order of their lines. {bytes}: they lie in
 * no file, and get a pattern. `view`: struct xm_weight_view, where the weight is part of its bytes.
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

/* Of a node's bytes. A part with n > 0 and p == NULL gets a pattern; n == 0: there is none. */
struct xm_text_places {
    struct xm_bytes part[XM_TEXT_PARTS];
    struct xm_weight_view view;
};

/* Whether the blobs of the graph have more than `most` bytes: then places are written. */
bool xm_text_wants_places(const struct xm_graph *g, uint64_t most);
/* The lines of the graph's files. */
void xm_text_print_files(const struct xm_graph *g, struct xm_strbuf *out);
/* Behind a blob's number. */
void xm_text_print_places(const struct xm_graph *g, const struct xm_node *n,
                          struct xm_strbuf *out);

/* Behind the word "file": opens it and adds it to the graph's mappings. XM_NOT_FOUND: it is not
 * there; XM_UNSUPPORTED: it is not the file that was written about. */
enum xm_status xm_text_parse_file(struct xm_lexer *l, struct xm_graph *g);
/* Whether places follow the number of a blob. */
bool xm_text_places_follow(struct xm_lexer *l);
enum xm_status xm_text_parse_places(struct xm_lexer *l, const struct xm_graph *g,
                                    struct xm_text_places *out);

#endif
