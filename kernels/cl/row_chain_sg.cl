/* SPDX-License-Identifier: Apache-2.0
 *
 * A chain of row-wise steps (include/row_chain.h). A work-group of ITEMS work-items computes one
 * row, each of them EACH elements, which stay in registers from the first step to the last: every
 * operand is read once, all of it at once, so that a row waits for memory once and has two barriers
 * for each scale.
 */
#include "row_chain.h"
#include "sub_group_work_group.h"

#define EACH ((ROW + ITEMS - 1) / ITEMS)

/* Does something for each element j of this work-item; that is element AT(j) of the row if
 * HAS(j). */
#define FOR_EACH _Pragma("unroll") for (int j = 0; j < EACH; j++)
#define AT(j)    ((int)get_local_id(0) + (j)*ITEMS)
#define HAS(j)   (((j) + 1) * ITEMS <= ROW || AT(j) < ROW)

#define X(k)   in##k[j]
#define S(k)   s##k[j]
#define C(k)   (HAS(j) ? c##k[AT(j)] : 0.0f)
#define ONE(k) c##k[0]
#define IN(k)                                                                            \
    float in##k[EACH];                                                                   \
    FOR_EACH in##k[j] = HAS(j) ? LOAD(X##k, x##k, row + AT(j)) : 0.0f;
#define STEP(to, value)                                                                  \
    float s##to[EACH];                                                                   \
    FOR_EACH s##to[j] = value;
#define ADD(to, a, b)     STEP(to, (a) + (b))
#define MUL(to, a, b)     STEP(to, (a) * (b))
#define RND(to, a)        STEP(to, ROUND_BF16(float, a))
#define NORM(to, a, b, k) STEP(to, (a)*scale[k] * (b))
#define SCALE(k, a)                                                                      \
    {                                                                                    \
        float sum = 0.0f;                                                                \
        FOR_EACH sum += HAS(j) ? (a) * (a) : 0.0f;                                       \
        scale[k] = scale_of(work_group_sum(sum, parts), k);                              \
    }
#define OUT(k, step) FOR_EACH if (HAS(j)) STORE(Y##k, y##k, row + AT(j), s##step[j]);

SUB_GROUP_SIZE WORK_GROUP_SIZE __kernel void
row_chain_sg(ROW_CHAIN_PARAMETERS, ulong rows, ROW_CHAIN_PREPARED)
{
    __local float parts[SUB_GROUPS];
    const ulong row = get_group_id(0) * (ulong)ROW;
    float scale[SCALES + 1];
    CHAIN
}
