/* SPDX-License-Identifier: Apache-2.0
 *
 * Logic on eight nibbles of a word.
 */

/* Nibbles of which each bit, 8, 4, 2 and 1, comes from the word that has it in its place. */
static inline uint4
nibbles_of_bits(uint4 eight, uint4 four, uint4 two, uint4 one)
{
    return bitselect(bitselect(one, two, (uint4)0x22222222u),
                     bitselect(four, eight, (uint4)0x88888888u), (uint4)0xccccccccu);
}
