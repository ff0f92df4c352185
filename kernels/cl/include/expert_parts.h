/* SPDX-License-Identifier: Apache-2.0
 *
 * An expert as bytes: up to 13 parts (matrices, scales, zero points, biases, factor). Each part is
 * an array with one entry for each expert; a cache has a second array with one entry for each slot.
 *
 *     parts[i]    bytes of an entry (0: no such part), where slot 0 begins in the cache's memory
 *
 * Parts are copied in pieces of PIECE bytes, the last piece of each is shorter.
 */
#ifndef PIECE
#define PIECE 16384 /* a multiple of 16 */
#endif
#define PARTS 13

#define PART_ARGS                                                                        \
    __global const uchar *from_0, __global const uchar *from_1,                          \
        __global const uchar *from_2, __global const uchar *from_3,                      \
        __global const uchar *from_4, __global const uchar *from_5,                      \
        __global const uchar *from_6, __global const uchar *from_7,                      \
        __global const uchar *from_8, __global const uchar *from_9,                      \
        __global const uchar *from_10, __global const uchar *from_11,                    \
        __global const uchar *from_12

/* The address of a part's entry of expert 0. */
#define PART_FROM(i)                                                                     \
    ((i) == 0    ? from_0                                                                \
     : (i) == 1  ? from_1                                                                \
     : (i) == 2  ? from_2                                                                \
     : (i) == 3  ? from_3                                                                \
     : (i) == 4  ? from_4                                                                \
     : (i) == 5  ? from_5                                                                \
     : (i) == 6  ? from_6                                                                \
     : (i) == 7  ? from_7                                                                \
     : (i) == 8  ? from_8                                                                \
     : (i) == 9  ? from_9                                                                \
     : (i) == 10 ? from_10                                                               \
     : (i) == 11 ? from_11                                                               \
                 : from_12)

/* One piece of an expert: its bytes, its source and its destination. */
struct piece {
    uint part;  /* PARTS: there is no such piece */
    uint bytes; /* at most PIECE                            */
    ulong from; /* bytes behind the part's entry of expert 0 */
    ulong to;   /* bytes behind the beginning of the cache's memory */
};

/* Returns piece `p` of all pieces of an expert, for the copy of expert move.x to slot move.y. */
static inline struct piece
find_piece(__global const ulong2 *parts, uint p, int2 move)
{
    struct piece found = {0, 0, 0, 0};
    for (; found.part < PARTS; found.part++) {
        const ulong2 part = parts[found.part];
        const uint pieces = (uint)((part.x + PIECE - 1) / PIECE);
        if (p < pieces) {
            const ulong at = (ulong)p * PIECE;
            found.bytes = (uint)min(part.x - at, (ulong)PIECE);
            found.from = (ulong)move.x * part.x + at;
            found.to = part.y + (ulong)move.y * part.x + at;
            return found;
        }
        p -= pieces;
    }
    return found;
}
