/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of the operands of `linear`, the same in the graph, the evaluator, lowering and the
 * primitive. It computes one result for each of 1 to 3 weights W_i (segments), or a gated unit:
 *
 *     y_i = x W_i^T (+ bias_i) (+ addend)
 *     y_0 = act(x W_0^T (+ bias_0)) (x W_1^T (+ bias_1))    gated unit of two weights
 *     y_0 = act(x W_0^T (+ bias_0)) factor                  gated unit of one weight
 */
#ifndef XM_RUNTIME_OPERATIONS_LINEAR_OPERATION_H
#define XM_RUNTIME_OPERATIONS_LINEAR_OPERATION_H

enum xm_linear_operand {
    XM_LINEAR_X, /* [..,K] */
    /* shape of the result, if there is one; absent: none */
    XM_LINEAR_ADDEND,
    XM_LINEAR_FACTOR = XM_LINEAR_ADDEND, /* shape of the result, or [..,slices,N]   */
    /* [N,K], weight of segment 0; that of segment i is XM_LINEAR_W + i XM_LINEAR_SEGMENT */
    XM_LINEAR_W,
    XM_LINEAR_BIAS,        /* [N]; absent: none */
    XM_LINEAR_SEGMENT = 2, /* number of operands of a segment */
    XM_LINEAR_SEGMENTS = 3,
    XM_LINEAR_N_IN = XM_LINEAR_W + XM_LINEAR_SEGMENTS * XM_LINEAR_SEGMENT,
    /* Only in steps: the first rows of x in the form of activations that kernels for few tokens
     * read (docs/execution.md); absent: none. */
    XM_LINEAR_PREPARED = XM_LINEAR_N_IN,
    XM_LINEAR_Y, /* results, one for each segment */
    XM_LINEAR_N_OPERANDS = XM_LINEAR_Y + XM_LINEAR_SEGMENTS
};

#endif
