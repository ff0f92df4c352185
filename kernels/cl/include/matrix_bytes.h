/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes matrices b of 16 keys (matrix_mad.h) from bytes of V, with 8 lanes: word c of lane l in
 * matrix n has the value 8 n + l of the keys c and c + 8. Four lanes read bytes of one key, the
 * other four those of the next key. One move instruction converts 8 bytes of both keys to halves,
 * and writes them to the even halves of two words. Odd halves are converted to a temporary first,
 * and then moved.
 */

/* Chunks of 8 values that are read at once. Four lanes read a key, so the number is half the number
 * of bytes that a lane reads. */
#if DV % (64 * ((DV + 127) / 128)) == 0
#define BYTE_CHUNKS 8
typedef ulong2 byte_pieces;
#elif DV % (32 * ((DV + 127) / 128)) == 0
#define BYTE_CHUNKS 4
typedef ulong byte_pieces;
#else
#define BYTE_CHUNKS 2
typedef uint byte_pieces;
#endif

struct byte_values {
#if MATRIX_ENGINE
    byte_pieces p[8]; /* p[i]: bytes of the keys 2i and 2i + 1 */
#else
    __global const uchar *at;
#endif
};

#if MATRIX_ENGINE
#define HALVES_FROM(i)                                                                   \
    ".decl XM_T" i " v_type=G type=hf num_elts=32 align=GRF\n"                           \
    ".decl XM_U" i " v_type=G type=uw num_elts=32 alias=<XM_T" i ",0>\n"
#define HALVES_OF_BYTES                                                                  \
    ".decl XM_D v_type=G type=hf num_elts=128 alias=<%0,0>\n"                            \
    ".decl XM_W v_type=G type=uw num_elts=128 alias=<%0,0>\n"                            \
    HALVES_FROM("0") HALVES_FROM("1") HALVES_FROM("2") HALVES_FROM("3")
#define BYTES_OF(name, bytes, operand)                                                   \
    ".decl " name " v_type=G type=b num_elts=" bytes " alias=<" operand ",0>\n"
/* Fills the words `row` and row + 1 of d: their even halves with the bytes at `even`, their odd
 * halves with the bytes at `odd`, by way of temporary i. */
#define PUT_HALVES(i, row, even, odd)                                                    \
    "mov (M1_NM, 16) XM_D(" row ",0)<2> " even "\n"                                      \
    "mov (M1_NM, 16) XM_T" i "(0,0)<2> " odd "\n"                                        \
    "mov (M1_NM, 16) XM_W(" row ",1)<2> XM_U" i "(0,0)<16;8,2>\n"

#if BYTE_CHUNKS == 8
#define LOAD_PIECES(p) vload2(0, (__global const ulong *)(p))
#define PIECE_BYTES    "128"
#define OF_TWO_KEYS    "<32;8,1>"
#elif BYTE_CHUNKS == 4
#define LOAD_PIECES(p) (*(__global const ulong *)(p))
#define PIECE_BYTES    "64"
#define OF_TWO_KEYS    "<32;8,1>"
#else
#define LOAD_PIECES(p) (*(p))
#define PIECE_BYTES    "32"
#define OF_TWO_KEYS    "<16;8,1>"
#endif

#define VALUE_CASE(n, at)                                                                \
    case n:                                                                              \
        __asm__("{\n" HALVES_OF_BYTES                                                    \
                BYTES_OF("XM_A", PIECE_BYTES, "%1") BYTES_OF("XM_B", PIECE_BYTES, "%2")  \
                BYTES_OF("XM_C", PIECE_BYTES, "%3") BYTES_OF("XM_E", PIECE_BYTES, "%4")  \
                BYTES_OF("XM_F", PIECE_BYTES, "%5") BYTES_OF("XM_G", PIECE_BYTES, "%6")  \
                BYTES_OF("XM_H", PIECE_BYTES, "%7") BYTES_OF("XM_I", PIECE_BYTES, "%8")  \
                PUT_HALVES("0", "0", "XM_A" at OF_TWO_KEYS, "XM_F" at OF_TWO_KEYS)       \
                PUT_HALVES("1", "2", "XM_B" at OF_TWO_KEYS, "XM_G" at OF_TWO_KEYS)       \
                PUT_HALVES("2", "4", "XM_C" at OF_TWO_KEYS, "XM_H" at OF_TWO_KEYS)       \
                PUT_HALVES("3", "6", "XM_E" at OF_TWO_KEYS, "XM_I" at OF_TWO_KEYS) "}\n" \
                : "=rw"(d)                                                               \
                : "rw"(v->p[0]), "rw"(v->p[1]), "rw"(v->p[2]), "rw"(v->p[3]),            \
                  "rw"(v->p[4]), "rw"(v->p[5]), "rw"(v->p[6]), "rw"(v->p[7]));           \
        break;
#endif

/* Reads BYTE_CHUNKS chunks of 16 keys, from `bytes` bytes after `values`, the values of a unit. */
static inline void
load_byte_values(__global const uchar *values, uint bytes, bool is_near,
                 struct byte_values *to)
{
#if MATRIX_ENGINE
    const uint lane = get_sub_group_local_id();
    const uint of_lane = lane / 4 * VALUE_BYTES + lane % 4 * (uint)sizeof(byte_pieces);
#pragma unroll
    for (uint i = 0; i < 8; i++)
        to->p[i] = LOAD_PIECES(
            words_behind(values, of_lane + (bytes + i * (2 * VALUE_BYTES)), is_near));
#else
    to->at = values + bytes;
#endif
}

/* Returns chunk n of the values as matrix b. */
static inline int8
byte_value_matrix(const struct byte_values *v, const uint n)
{
#if MATRIX_ENGINE
    int8 d;
    switch (n) {
#if BYTE_CHUNKS == 8
        VALUE_CASE(0, "(0,0)")
        VALUE_CASE(1, "(2,0)")
        VALUE_CASE(2, "(0,8)")
        VALUE_CASE(3, "(2,8)")
        VALUE_CASE(4, "(0,16)")
        VALUE_CASE(5, "(2,16)")
        VALUE_CASE(6, "(0,24)")
        VALUE_CASE(7, "(2,24)")
#else
        VALUE_CASE(0, "(0,0)")
        VALUE_CASE(1, "(0,8)")
#if BYTE_CHUNKS == 4
        VALUE_CASE(2, "(0,16)")
        VALUE_CASE(3, "(0,24)")
#endif
#endif
    }
    return d;
#else
    __global const char *at =
        (__global const char *)v->at + n * 8 + get_sub_group_local_id();
    uint words[8];
    for (uint c = 0; c < 8; c++)
        words[c] = two_halves((float)at[c * VALUE_BYTES], (float)at[(c + 8) * VALUE_BYTES]);
    return as_int8(vload8(0, words));
#endif
}
