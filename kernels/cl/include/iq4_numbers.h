/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of IQ4_NL and IQ4_XS, closer together around zero.
 */
#define IQ4_NUMBERS                                                                      \
    (char16)(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)

static inline char16
iq4_numbers(uchar16 q)
{
    return look_up_bytes(IQ4_NUMBERS, q);
}
