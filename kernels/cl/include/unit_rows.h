/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes 16 * VECTORS rows of weights unit by unit (units.h). The file that includes this defines
 * struct rows_unit and one of these functions, which store the unit of row r:
 *
 *     put_blocks_unit(u, zero, r, out)   the bytes of u are the integers plus `zero`
 *     put_group_unit(u, factors, r, out)
 */
/* The rows of weights: where they begin, the distance in bytes to the rows that will be read next,
 * and the zero points of their formats. */
struct tile_rows {
    __global const uchar *begin[TILE_ROWS];
    ulong ahead[VECTORS];
    int zero[VECTORS];
};

#if BLOCKS
__attribute__((always_inline)) static inline void
begin_format(const uint format, const struct short_rows *rows, uint v,
             struct tile_rows *out)
{
    out->ahead[v] = rows->ahead * blocks_step(format, &rows->w);
    out->zero[v] = (int)format_zero(format);
    for (uint r = 0; r < 16; r++)
        out->begin[16 * v + r] =
            blocks_begin(format, &rows->w, min(rows->first + r, rows->last));
}

/* Decodes unit b of row r. */
__attribute__((always_inline)) static inline void
decode_format(const uint format, const struct tile_rows *rows, uint b, uint k_count,
              uint r, struct rows_unit *out)
{
    const uint k = b * UNIT_COLUMNS, bytes = unit_bytes(format);
    __global const uchar *row = rows->begin[r];
    __global const uchar *p = row + k / format_columns(format) * format_bytes(format);
    struct unit u;
#pragma unroll
    for (uint i = 0; i < bytes; i += 64)
        prefetch_line(p + i + rows->ahead[r / 16]);
    if (INTEGER_FACTORS /* blocks of 256 columns end with a unit */ ||
        k + UNIT_COLUMNS <= k_count)
        unit_at(format, row, k, &u);
    else
        unit_of_pieces(format, row, k, k_count, &u);
    put_blocks_unit(&u, format_zero(format), r, out);
}

static inline void
begin_rows(const struct short_rows rows[VECTORS], struct tile_rows *out)
{
    for (uint v = 0; v < VECTORS; v++) {
        if (FORMATS > 1 && rows[v].w.format == 1)
            begin_format(1, &rows[v], v, out);
        else
            begin_format(0, &rows[v], v, out);
    }
}

static inline void
decode_rows(const struct short_rows rows[VECTORS], const struct tile_rows *tile, uint b,
            struct rows_unit *out)
{
    const uint k_count = rows[0].w.k_count;
#pragma unroll 1
    for (uint v = 0; v < VECTORS; v++) {
        if (FORMATS > 1 && rows[v].w.format == 1)
            for (uint r = 16 * v; r < 16 * v + 16; r++)
                decode_format(1, tile, b, k_count, r, out);
        else
            for (uint r = 16 * v; r < 16 * v + 16; r++)
                decode_format(0, tile, b, k_count, r, out);
    }
}
#else
static inline void
begin_rows(const struct short_rows rows[VECTORS], struct tile_rows *out)
{
    for (uint v = 0; v < VECTORS; v++) {
        const struct weight *w = &rows[v].w;
        out->ahead[v] = (ulong)rows[v].ahead * (w->view.x / PLANES * 4);
        for (uint r = 0; r < 16; r++)
            out->begin[16 * v + r] = row_bytes(w, min(rows[v].first + r, rows[v].last));
    }
}

static inline void
decode_rows(const struct short_rows rows[VECTORS], const struct tile_rows *tile, uint b,
            struct rows_unit *out)
{
#pragma unroll 1
    for (uint r = 0; r < TILE_ROWS; r++) {
        const struct short_rows *from = &rows[r / 16];
        __global const uchar *p = tile->begin[r];
        for (uint i = 0; i < 8 / PLANES; i++)
            prefetch_line(p + (b * 8 / PLANES + i) * 64 + tile->ahead[r / 16]);
        struct unit u;
        struct group_factors f;
        group_unit(p, b, from->w.k_count, &u);
        group_factors(&from->w, min(from->first + r % 16, from->last), b, &f);
        put_group_unit(&u, &f, r, out);
    }
}
#endif
