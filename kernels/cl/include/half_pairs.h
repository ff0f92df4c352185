/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic on two halves in a word at once, for the eight words of a step of weights.
 *
 * Compilers split arithmetic of half2 into two instructions, and move the halves apart and together
 * again. But a register has the words of all lanes side by side, that is twice as many halves, and
 * on chips with matrix engines one instruction of Intel's virtual ISA (inline assembly) operates on
 * all of them. Eight such instructions share the registers of their other operands.
 */
#if MATRIX_ENGINE
#if SG == 8
#define HALF_LANES  "16"
#define EIGHT_LANES "128"
#else
#define HALF_LANES  "32"
#define EIGHT_LANES "256"
#endif
#define AS_HALVES(name, lanes, operand)                                                  \
    ".decl " name " v_type=G type=hf num_elts=" lanes " alias=<" operand ",0>\n"
/* The result and the first operand have eight words a lane, the other operands one. */
#define OPERANDS                                                                         \
    AS_HALVES("XM_D", EIGHT_LANES, "%0")                                                 \
    AS_HALVES("XM_A", EIGHT_LANES, "%1") AS_HALVES("XM_B", HALF_LANES, "%2")
#define EIGHT_TIMES(DO) DO("0") DO("1") DO("2") DO("3") DO("4") DO("5") DO("6") DO("7")
#define MAD_HALVES(i)                                                                    \
    "mad (M1_NM, " HALF_LANES ") XM_D(" i ",0)<1> XM_A(" i                               \
    ",0)<1;1,0> XM_B(0,0)<1;1,0> XM_C(0,0)<1;1,0>\n"
#define OP_HALVES(op, i)                                                                 \
    op " (M1_NM, " HALF_LANES ") XM_D(" i ",0)<1> XM_A(" i ",0)<1;1,0> "                 \
                                                           "XM_B(0,0)<1;1,0>\n"
#define ADD_HALVES(i) OP_HALVES("add", i)
#define MUL_HALVES(i) OP_HALVES("mul", i)
#endif

/* Returns a b + c, rounded once. */
static inline uint8
halves_mad(uint8 a, uint b, uint c)
{
    uint8 d;
#if MATRIX_ENGINE
    __asm__("{\n" OPERANDS AS_HALVES("XM_C", HALF_LANES, "%3")
                EIGHT_TIMES(MAD_HALVES) "}\n"
            : "=rw"(d)
            : "rw"(a), "rw"(b), "rw"(c));
#else
    uint words[8];
    vstore8(a, 0, words);
#pragma unroll
    for (uint i = 0; i < 8; i++) {
        const float2 v = halves(words[i]) * halves(b) + halves(c);
        words[i] = two_halves(v.x, v.y);
    }
    d = vload8(0, words);
#endif
    return d;
}

/* Defines a function that returns a OP b, rounded: by `instruction` of Intel's virtual ISA, or by
 * OP of C. */
#if MATRIX_ENGINE
#define HALVES_OP(name, instruction, OP)                                                 \
    static inline uint8 name(uint8 a, uint b)                                            \
    {                                                                                    \
        uint8 d;                                                                         \
        __asm__("{\n" OPERANDS EIGHT_TIMES(instruction) "}\n"                            \
                : "=rw"(d)                                                               \
                : "rw"(a), "rw"(b));                                                     \
        return d;                                                                        \
    }
#else
#define HALVES_OP(name, instruction, OP)                                                 \
    static inline uint8 name(uint8 a, uint b)                                            \
    {                                                                                    \
        uint words[8];                                                                   \
        vstore8(a, 0, words);                                                            \
        _Pragma("unroll") for (uint i = 0; i < 8; i++)                                   \
        {                                                                                \
            const float2 v = halves(words[i]) OP halves(b);                              \
            words[i] = two_halves(v.x, v.y);                                             \
        }                                                                                \
        return vload8(0, words);                                                         \
    }
#endif
HALVES_OP(halves_add, ADD_HALVES, +)
HALVES_OP(halves_mul, MUL_HALVES, *)

/* Returns the same half twice in a word. */
static inline uint
twice(float v)
{
    return two_halves(v, v);
}
