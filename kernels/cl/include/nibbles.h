/* SPDX-License-Identifier: Apache-2.0
 *
 * Logic on eight nibbles of a word.
 */

/* Composes nibbles: bit 8 of each comes from `eight`, bit 4 from `four`, bit 2 from `two`, bit 1
 * from `one`. */
static inline uint4
nibbles_of_bits(uint4 eight, uint4 four, uint4 two, uint4 one)
{
    return bitselect(bitselect(one, two, (uint4)0x22222222u),
                     bitselect(four, eight, (uint4)0x88888888u), (uint4)0xccccccccu);
}
