/* SPDX-License-Identifier: Apache-2.0
 *
 * The operands of attention, by the same names in the graph, in evaluation, lowering and the
 * primitive. Behind those of the graph are the cache's, which a request owns, and the result.
 */
#ifndef XM_RUNTIME_OPERATIONS_ATTENTION_OPERATION_H
#define XM_RUNTIME_OPERATIONS_ATTENTION_OPERATION_H

enum xm_attention_operand {
    XM_ATTENTION_Q, /* [B,T,Hq,D] */
    XM_ATTENTION_K, /* [B,T,Hkv,D]; absent: another layer has written them */
    XM_ATTENTION_V, /* [B,T,Hkv,Dv]; absent with K */
    XM_ATTENTION_BEAM_IDX, /* [B] which row of the state each sequence continues; absent: its own */
    XM_ATTENTION_KEY_MASK, /* [B,past+T] integer, 0 = padding; absent: all are seen */
    XM_ATTENTION_MASK,     /* added to the scores, [B|1,Hq|1,T,past+T] float; absent */
    XM_ATTENTION_SINKS,    /* [Hq]; absent */
    XM_ATTENTION_COS,      /* [B|1,T,R]: q and k are rotated as by rope; absent */
    XM_ATTENTION_SIN,      /* with COS */
    XM_ATTENTION_Q_GAMMA,  /* [D]: heads of q are normed as by rms_norm, first; absent */
    XM_ATTENTION_K_GAMMA,  /* [D]; absent */
    XM_ATTENTION_V_GAMMA,  /* [Dv]; absent */
    XM_ATTENTION_N_IN,
    /* S sequences, whose tokens are stretches of the flat rows (b, t) one after the other: S = B
     * stretches of T, or any at all. */
    XM_ATTENTION_PAST_LENS =
        XM_ATTENTION_N_IN,           /* [S] i32: positions in the cache before */
    XM_ATTENTION_SUBSEQUENCE_BEGINS, /* [S+1] i32: first row of each; the last is B T */
    /* [n] i32: slab in bits 28-30, page of the slab in bits 0-27; < 0: no page */
    XM_ATTENTION_BLOCK_INDICES,
    /* [S+1] i32: where the page of each one's position 0 stands in BLOCK_INDICES; of a sequence
     * whose first pages are given up, where it would stand: below 0 or among another's */
    XM_ATTENTION_BLOCK_INDICES_BEGINS,
    /* of a step: OUT again, as rows in the form that their reader wants; absent: not wanted */
    XM_ATTENTION_PREPARED,
    XM_ATTENTION_OUT, /* [B,T,Hq,Dv] */
    XM_ATTENTION_N_OPERANDS
};

#endif
