/* SPDX-License-Identifier: Apache-2.0
 *
 * Operand numbers of attention, the same in the graph, the evaluator, lowering and the primitive.
 * The node's inputs come first; then the tables of the KV cache, which a request owns, and the
 * results. Letters: B batch, T tokens, Hq and Hkv heads, D and Dv their sizes, S sequences.
 */
#ifndef XM_RUNTIME_OPERATIONS_ATTENTION_OPERATION_H
#define XM_RUNTIME_OPERATIONS_ATTENTION_OPERATION_H

enum xm_attention_operand {
    XM_ATTENTION_Q,        /* [B,T,Hq,D] */
    XM_ATTENTION_K,        /* [B,T,Hkv,D]; absent: another layer has written them */
    XM_ATTENTION_V,        /* [B,T,Hkv,Dv]; absent with K */
    XM_ATTENTION_BEAM_IDX, /* [B] the row of the state that row b continues; absent: row b */
    XM_ATTENTION_KEY_MASK, /* [B,past+T] integer, 0 = padding; absent: no padding */
    XM_ATTENTION_MASK,  /* added to the scores, [B|1,Hq|1,T,past+T] float; absent: none */
    XM_ATTENTION_SINKS, /* [Hq] logits that join the softmax's denominator; absent: none */
    XM_ATTENTION_COS, /* [B|1,T,R]: q and k are rotated as by rope; absent: they are not */
    XM_ATTENTION_SIN,     /* with COS */
    XM_ATTENTION_Q_GAMMA, /* [D]: rms_norm of each head of q, before rope; absent: none */
    XM_ATTENTION_K_GAMMA, /* [D], the same of k   */
    XM_ATTENTION_V_GAMMA, /* [Dv], the same of v  */
    XM_ATTENTION_N_IN,
    /* The flat rows (b, t) are divided into S sequences, each of consecutive rows: S = B sequences
     * of T rows, or, in a batch of xm_batcher, sequences of any lengths. */
    XM_ATTENTION_PAST_LENS =
        XM_ATTENTION_N_IN,           /* [S] i32: positions in the cache before */
    XM_ATTENTION_SUBSEQUENCE_BEGINS, /* [S+1] i32: first row of each; the last is B T */
    /* [n] i32: slab in bits 28-30, page of the slab in bits 0-27; < 0: no page */
    XM_ATTENTION_BLOCK_INDICES,
    /* [S+1] i32: the index in BLOCK_INDICES of each sequence's page of position 0. A sequence whose
     * window has released its first pages has the index that this page would have: it may be
     * negative, or lie among another sequence's pages. */
    XM_ATTENTION_BLOCK_INDICES_BEGINS,
    /* of a step: a copy of OUT in the form of activations that the next step reads
     * (docs/execution.md); absent: none */
    XM_ATTENTION_PREPARED,
    XM_ATTENTION_OUT, /* [B,T,Hq,Dv] */
    XM_ATTENTION_N_OPERANDS
};

#endif
