/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors of 16-bit integers, as kernels with SHORTS multiply them.
 */
#if defined(SHORTS) && SHORTS
typedef short short32 __attribute__((ext_vector_type(32)));
#define AS_SHORTS(v) __builtin_astype(v, short32)

/* Bytes as pairs of 16 bits: plane 0 has bytes 0 and 2 of each word, plane 1 bytes 1 and 3. */
static inline int16
byte_pairs(int16 words, uint plane)
{
    const short32 v = AS_SHORTS(words);
    return __builtin_astype((plane ? v : v << (short)8) >> (short)8, int16);
}
#endif
