/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of IQ4_NL and IQ4_XS, closer together around zero.
 */
static inline char16
iq4_numbers(uchar16 q)
{
    const char16 numbers = {-127, -104, -83, -65, -49, -35, -22, -10,
                            1,    13,   25,  38,  53,  69,  89,  113};
#ifdef __SSSE3__ /* one instruction, which a compiler does not find */
    typedef char bytes __attribute__((vector_size(16)));
    return __builtin_astype(__builtin_ia32_pshufb128(__builtin_astype(numbers, bytes),
                                                     __builtin_astype(q, bytes)),
                            char16);
#else
    char table[16], v[16];
    uchar index[16];
    vstore16(numbers, 0, table);
    vstore16(q, 0, index);
    for (uint i = 0; i < 16; i++)
        v[i] = table[index[i]];
    return vload16(0, v);
#endif
}
