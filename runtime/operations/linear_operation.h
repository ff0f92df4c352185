/* SPDX-License-Identifier: Apache-2.0
 *
 * Operand numbers of linear, the same in the graph, the evaluator, lowering and the primitive:
 *
 *     y_i = x W_i^T (+ bias_i) (+ addend)          or, a gated unit, one result:
 *     y_0 = act(x W_0^T (+ bias_0)) (x W_1^T (+ bias_1)),   or times a factor
 */
#ifndef XM_RUNTIME_OPERATIONS_LINEAR_OPERATION_H
#define XM_RUNTIME_OPERATIONS_LINEAR_OPERATION_H

enum xm_linear_operand {
    XM_LINEAR_X,                         /* [..,K] */
    XM_LINEAR_ADDEND,                    /* of the only result's shape; absent: none */
    XM_LINEAR_FACTOR = XM_LINEAR_ADDEND, /* of the result's shape, or [..,slices,N] */
    XM_LINEAR_W, /* [N,K], weight of segment 0; segment i has XM_LINEAR_W + i XM_LINEAR_SEGMENT */
    XM_LINEAR_BIAS,        /* [N]; absent: none */
    XM_LINEAR_SEGMENT = 2, /* operands of a segment */
    XM_LINEAR_SEGMENTS = 3,
    XM_LINEAR_N_IN = XM_LINEAR_W + XM_LINEAR_SEGMENTS * XM_LINEAR_SEGMENT,
    /* of a step: the first rows of x in the form of activations that kernels for few tokens read
     * (docs/execution.md); absent: none */
    XM_LINEAR_PREPARED = XM_LINEAR_N_IN,
    XM_LINEAR_Y, /* the results, one a segment */
    XM_LINEAR_N_OPERANDS = XM_LINEAR_Y + XM_LINEAR_SEGMENTS
};

#endif
