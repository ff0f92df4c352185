/* SPDX-License-Identifier: Apache-2.0
 *
 * A text cut into pieces: one buffer and the end of each piece in it, in bytes.
 *
 *     text   "Hello world"        ends   5, 11
 *
 * Each step of a pre-tokenizer reads one such list and writes another. No piece is empty.
 */
#ifndef XM_PLUGIN_TEXT_PIECES_H
#define XM_PLUGIN_TEXT_PIECES_H

#include "runtime/util/slice.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise to use. */
struct xm_pieces {
    struct xm_strbuf text;
    size_t *ends; /* owned */
    size_t n, capacity;
    bool at_start; /* the first piece begins the caller's text */
    bool failed;   /* out of memory; stays set, as in xm_strbuf */
};

/* Returns piece i < n; it is valid until the next change of `pieces`. */
struct xm_slice xm_pieces_get(const struct xm_pieces *pieces, size_t i);

/* Ends a piece: the bytes appended to `text` since the end of the last piece become a piece, unless
 * there are none. */
void xm_pieces_close(struct xm_pieces *pieces);
/* Appends a copy of `piece` as a piece. */
void xm_pieces_add(struct xm_pieces *pieces, struct xm_slice piece);

bool xm_pieces_ok(const struct xm_pieces *pieces);
void xm_pieces_clear(struct xm_pieces *pieces); /* n = 0; keeps the memory */
void xm_pieces_free(struct xm_pieces *pieces);

#ifdef __cplusplus
}
#endif
#endif
