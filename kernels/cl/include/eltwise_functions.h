/* SPDX-License-Identifier: Apache-2.0
 *
 * APPLY(a, b, c): function number FN of primitives/eltwise/eltwise.def, in the same order.
 *
 * VALUE is the type of a, b, c and the result: float or float16, or long with INTEGER. p0 and
 * p1 (float) are in scope. Integer division by zero gives zero: kernels cannot fail.
 */
#include "round_bf16.h"

#ifndef FN
#define FN 0
#endif
#ifndef INTEGER
#define INTEGER 0
#endif

#if INTEGER
/* LONG_MIN / -1 would overflow; the negation of an unsigned number wraps instead. */
static inline long
int_divide(long a, long b)
{
    return b == 0 ? 0 : b == -1 ? (long)-(ulong)a : a / b;
}

static inline long
int_mod(long a, long b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

static inline long
int_floor_mod(long a, long b)
{
    const long r = int_mod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* A power with a negative exponent is truncated to an integer: 0 unless the base is 1 or -1. */
static inline long
int_power(long a, long b)
{
    long y = 1;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    for (; b > 0; b >>= 1, a *= a)
        y *= b & 1 ? a : 1;
    return y;
}
#endif

#if FN == 0 /* ADD */
#define APPLY(a, b, c) ((a) + (b))
#elif FN == 1 /* SUBTRACT */
#define APPLY(a, b, c) ((a) - (b))
#elif FN == 2 /* MULTIPLY */
#define APPLY(a, b, c) ((a) * (b))
#elif FN == 3 && INTEGER /* DIVIDE */
#define APPLY(a, b, c) (int_divide(a, b))
#elif FN == 3
#define APPLY(a, b, c) ((a) / (b))
#elif FN == 4 && INTEGER /* POWER */
#define APPLY(a, b, c) (int_power(a, b))
#elif FN == 4
#define APPLY(a, b, c) (pow(a, b))
#elif FN == 5 /* MINIMUM */
#define APPLY(a, b, c) ((a) < (b) ? (a) : (b))
#elif FN == 6 /* MAXIMUM */
#define APPLY(a, b, c) ((a) > (b) ? (a) : (b))
#elif FN == 7 && INTEGER /* MOD */
#define APPLY(a, b, c) (int_mod(a, b))
#elif FN == 7
#define APPLY(a, b, c) (fmod(a, b))
#elif FN == 8 && INTEGER /* FLOOR_MOD */
#define APPLY(a, b, c) (int_floor_mod(a, b))
#elif FN == 8
#define APPLY(a, b, c) ((a) - floor((a) / (b)) * (b))
#elif FN == 9 /* SQUARED_DIFFERENCE */
#define APPLY(a, b, c) (((a) - (b)) * ((a) - (b)))
#elif FN == 10 /* EQUAL */
#define APPLY(a, b, c) (((a) == (b)) ? (VALUE)1 : (VALUE)0)
#elif FN == 11 /* NOT_EQUAL */
#define APPLY(a, b, c) (((a) != (b)) ? (VALUE)1 : (VALUE)0)
#elif FN == 12 /* LESS */
#define APPLY(a, b, c) (((a) < (b)) ? (VALUE)1 : (VALUE)0)
#elif FN == 13 /* LESS_EQUAL */
#define APPLY(a, b, c) (((a) <= (b)) ? (VALUE)1 : (VALUE)0)
#elif FN == 14 /* GREATER */
#define APPLY(a, b, c) (((a) > (b)) ? (VALUE)1 : (VALUE)0)
#elif FN == 15 /* GREATER_EQUAL */
#define APPLY(a, b, c) (((a) >= (b)) ? (VALUE)1 : (VALUE)0)
#elif FN == 16 /* LOGICAL_AND */
#define APPLY(a, b, c) ((((a) != 0) & ((b) != 0)) ? (VALUE)1 : (VALUE)0)
#elif FN == 17 /* LOGICAL_OR */
#define APPLY(a, b, c) ((((a) != 0) | ((b) != 0)) ? (VALUE)1 : (VALUE)0)
#elif FN == 18 /* LOGICAL_XOR */
#define APPLY(a, b, c) ((((a) != 0) ^ ((b) != 0)) ? (VALUE)1 : (VALUE)0)
#elif FN == 19 /* LOGICAL_NOT */
#define APPLY(a, b, c) (((a) == 0) ? (VALUE)1 : (VALUE)0)
#elif FN == 20 && INTEGER /* BITWISE_AND */
#define APPLY(a, b, c) ((a) & (b))
#elif FN == 21 && INTEGER /* BITWISE_OR */
#define APPLY(a, b, c) ((a) | (b))
#elif FN == 22 && INTEGER /* BITWISE_XOR */
#define APPLY(a, b, c) ((a) ^ (b))
#elif FN == 23 && INTEGER /* BITWISE_NOT */
#define APPLY(a, b, c) (~(a))
#elif FN == 24 && INTEGER /* ABS */
#define APPLY(a, b, c) ((a) < 0 ? -(a) : (a))
#elif FN == 24
#define APPLY(a, b, c) (fabs(a))
#elif FN == 25 /* NEGATIVE */
#define APPLY(a, b, c) (-(a))
#elif FN == 26 && INTEGER /* FLOOR */
#define APPLY(a, b, c) (a)
#elif FN == 26
#define APPLY(a, b, c) (floor(a))
#elif FN == 27 && INTEGER /* CEILING */
#define APPLY(a, b, c) (a)
#elif FN == 27
#define APPLY(a, b, c) (ceil(a))
#elif FN == 28 /* RELU */
#define APPLY(a, b, c) ((a) > 0 ? (a) : (VALUE)0)
#elif FN == 29 && INTEGER /* CLAMP */
#define APPLY(a, b, c) (clamp(a, convert_long_sat(p0), convert_long_sat(p1)))
#elif FN == 29
#define APPLY(a, b, c) (fmin(fmax(a, p0), p1))
#elif FN == 30 /* CONVERT */
#define APPLY(a, b, c) (a)
#elif FN == 31 /* SELECT */
#define APPLY(a, b, c) ((a) != 0 ? (b) : (c))
#elif FN == 32 && INTEGER /* SIGN */
#define APPLY(a, b, c) ((a) > 0 ? 1L : (a) < 0 ? -1L : 0L)
#elif FN == 32
#define APPLY(a, b, c) ((a) > 0 ? (VALUE)1 : (a) < 0 ? (VALUE)(-1) : (a))
#elif FN == 33 && INTEGER /* ROUND_EVEN */
#define APPLY(a, b, c) (a)
#elif FN == 33
#define APPLY(a, b, c) (rint(a))
#elif FN == 34 && INTEGER /* ROUND_AWAY */
#define APPLY(a, b, c) (a)
#elif FN == 34
#define APPLY(a, b, c) (round(a))
#elif FN == 35 /* SQRT */
#define APPLY(a, b, c) (sqrt(a))
#elif FN == 36 /* EXP */
#define APPLY(a, b, c) (exp(a))
#elif FN == 37 /* LOG */
#define APPLY(a, b, c) (log(a))
#elif FN == 38 /* TANH */
#define APPLY(a, b, c) (tanh(a))
#elif FN == 39 /* SIGMOID */
#define APPLY(a, b, c) (1.0f / (1.0f + exp(-(a))))
#elif FN == 40 /* SIN */
#define APPLY(a, b, c) (sin(a))
#elif FN == 41 /* COS */
#define APPLY(a, b, c) (cos(a))
#elif FN == 42 /* ERF */
#define APPLY(a, b, c) (erf(a))
#elif FN == 43 /* SOFTPLUS */
#define APPLY(a, b, c) ((a) > 20.0f ? (a) : log1p(exp(a)))
#elif FN == 44 /* SWISH */
#define APPLY(a, b, c) ((a) / (1.0f + exp(-p0 * (a))))
#elif FN == 45 /* GELU_TANH */
#define APPLY(a, b, c)                                                                   \
    (0.5f * (a) *                                                                        \
     (1.0f + tanh(0.7978845608028654f * ((a) + 0.044715f * (a) * (a) * (a)))))
#elif FN == 46 /* GELU_ERF */
#define APPLY(a, b, c) (0.5f * (a) * (1.0f + erf((a)*0.7071067811865476f)))
#elif FN == 47 /* ROUND_BF16 */
#define APPLY(a, b, c) (ROUND_BF16(VALUE, a))
#elif FN == 48 /* ASIN */
#define APPLY(a, b, c) (asin(a))
#elif FN == 49 /* ACOS */
#define APPLY(a, b, c) (acos(a))
#elif FN == 50 /* ATAN */
#define APPLY(a, b, c) (atan(a))
#elif FN == 51 /* ASINH */
#define APPLY(a, b, c) (asinh(a))
#elif FN == 52 /* ACOSH */
#define APPLY(a, b, c) (acosh(a))
#elif FN == 53 /* ATANH */
#define APPLY(a, b, c) (atanh(a))
#elif FN == 54 /* TAN */
#define APPLY(a, b, c) (tan(a))
#elif FN == 55 /* SINH */
#define APPLY(a, b, c) (sinh(a))
#elif FN == 56 /* COSH */
#define APPLY(a, b, c) (cosh(a))
#elif FN == 57 /* ELU */
#define APPLY(a, b, c) ((a) > 0 ? (a) : p0 * expm1(a))
#elif FN == 58 /* HSIGMOID */
#define APPLY(a, b, c) (fmin(fmax((a) + 3.0f, 0.0f), 6.0f) / 6.0f)
#elif FN == 59 /* HSWISH */
#define APPLY(a, b, c) ((a) * (fmin(fmax((a) + 3.0f, 0.0f), 6.0f) / 6.0f))
#elif FN == 60 /* MISH */
#define APPLY(a, b, c) ((a)*tanh((a) > 20.0f ? (a) : log1p(exp(a))))
#elif FN == 61 /* SOFTSIGN */
#define APPLY(a, b, c) ((a) / (1.0f + fabs(a)))
#else
#error "FN is not a row of eltwise.def, or has no form for these types"
#endif
