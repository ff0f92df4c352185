/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/pieces.h"

struct xm_slice
xm_pieces_get(const struct xm_pieces *pieces, size_t i)
{
    size_t start = i > 0 ? pieces->ends[i - 1] : 0;
    return xm_slice_of(xm_strbuf_text(&pieces->text) + start, pieces->ends[i] - start);
}

void
xm_pieces_close(struct xm_pieces *pieces)
{
    size_t start = pieces->n > 0 ? pieces->ends[pieces->n - 1] : 0;
    if (pieces->text.n == start || !xm_pieces_ok(pieces))
        return;
    size_t *grown =
        xm_grow(pieces->ends, &pieces->capacity, pieces->n + 1, sizeof(*grown));
    if (!grown) {
        pieces->failed = true;
        return;
    }
    pieces->ends = grown;
    pieces->ends[pieces->n++] = pieces->text.n;
}

void
xm_pieces_add(struct xm_pieces *pieces, struct xm_slice piece)
{
    if (piece.n == 0)
        return;
    xm_strbuf_add_n(&pieces->text, piece.text, piece.n);
    xm_pieces_close(pieces);
}

bool
xm_pieces_ok(const struct xm_pieces *pieces)
{
    return !pieces->failed && xm_strbuf_ok(&pieces->text);
}

void
xm_pieces_clear(struct xm_pieces *pieces)
{
    xm_strbuf_clear(&pieces->text);
    pieces->n = 0;
    pieces->at_start = false;
    pieces->failed = false;
}

void
xm_pieces_free(struct xm_pieces *pieces)
{
    xm_strbuf_free(&pieces->text);
    xm_free(pieces->ends);
    *pieces = (struct xm_pieces){0};
}
