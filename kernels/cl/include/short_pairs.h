/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors of 16-bit integers for kernels with SHORTS.
 */
#if defined(SHORTS) && SHORTS
typedef short short32 __attribute__((ext_vector_type(32)));
#define AS_SHORTS(v) __builtin_astype(v, short32)

/* Returns unsigned bytes as pairs of 16-bit integers: plane 0 has bytes 0 and 2 of each word, plane
 * 1 bytes 1 and 3. */
static inline int16
byte_pairs(uint16 words, uint plane)
{
    return as_int16(plane ? words >> 8 & 0x00ff00ffu : words & 0x00ff00ffu);
}
#endif
