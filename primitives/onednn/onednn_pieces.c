/* SPDX-License-Identifier: Apache-2.0
 *
 * Cutting rows into pieces of few sizes; see onednn.h.
 */
#include "primitives/onednn/onednn.h"

uint32_t
xm_onednn_largest_piece(uint64_t rows, uint32_t least)
{
    uint32_t power = XM_ONEDNN_PIECES - 1;
    while (power > least && xm_onednn_piece_rows(power) > rows)
        power--;
    return power;
}

struct xm_onednn_piece
xm_onednn_piece_at(uint64_t rows, uint64_t done, uint32_t least, uint32_t most)
{
    uint64_t left = rows - done;
    struct xm_onednn_piece piece = {least, done};
    if (done == 0) {
        piece.power = xm_onednn_largest_piece(rows, least);
        piece.power = piece.power > most ? most : piece.power;
        return piece;
    }
    while (piece.power < most && xm_onednn_piece_rows(piece.power) < left)
        piece.power++;
    if (xm_onednn_piece_rows(piece.power) > left)
        piece.first = rows - xm_onednn_piece_rows(piece.power);
    return piece;
}
