/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of attention's operands, the same in the graph, the evaluator, lowering and the
 * primitive. The node's inputs come first; then the tables of the KV cache, which a request owns,
 * and the results. Letters: B batch, T tokens, Hq and Hkv heads, D and Dv their sizes, S
 * sequences.
 */
#ifndef XM_RUNTIME_OPERATIONS_ATTENTION_OPERATION_H
#define XM_RUNTIME_OPERATIONS_ATTENTION_OPERATION_H

enum xm_attention_operand {
    XM_ATTENTION_Q, /* [B,T,Hq,D] */
    /* [B,T,Hkv,D]; absent: another layer wrote keys and values to the cache */
    XM_ATTENTION_K,
    XM_ATTENTION_V, /* [B,T,Hkv,Dv]; absent with K */
    /* [B]: row b of the batch continues row beam_idx[b] of the state; absent: row b */
    XM_ATTENTION_BEAM_IDX,
    XM_ATTENTION_KEY_MASK, /* [B,past+T] integer, 0 = padding; absent: no padding */
    XM_ATTENTION_MASK,  /* added to the scores, [B|1,Hq|1,T,past+T] float; absent: none */
    XM_ATTENTION_SINKS, /* [Hq] logits that join the softmax's denominator; absent: none */
    /* [B|1,T,R]: tables of rope, which rotates q and k; absent: no rope */
    XM_ATTENTION_COS,
    XM_ATTENTION_SIN,     /* [B|1,T,R]; absent with COS */
    XM_ATTENTION_Q_GAMMA, /* [D]: rms_norm of each head of q, before rope; absent: none */
    XM_ATTENTION_K_GAMMA, /* [D], the same of k   */
    XM_ATTENTION_V_GAMMA, /* [Dv], the same of v  */
    XM_ATTENTION_N_IN,
    /* Tables of the KV cache. The rows (b, t) one after the other are divided into S sequences,
     * each of consecutive rows: S = B sequences of T rows or, in a batch of xm_batcher, sequences
     * of different lengths. */
    XM_ATTENTION_PAST_LENS =
        XM_ATTENTION_N_IN, /* [S] i32: positions in the cache before this run */
    /* [S+1] i32: first row of each sequence; the last is B T */
    XM_ATTENTION_SUBSEQUENCE_BEGINS,
    /* [n] i32: pages of the cache. Bits 28-30: slab, bits 0-27: page in the slab; < 0: no page */
    XM_ATTENTION_BLOCK_INDICES,
    /* [S+1] i32: for each sequence the index in BLOCK_INDICES of the page of its position 0. If a
     * sliding window has released the sequence's first pages, it is the index that this page would
     * have: it may be negative, or the index of another sequence's page. */
    XM_ATTENTION_BLOCK_INDICES_BEGINS,
    /* Only in steps: a copy of OUT in the form of activations that the next step reads
     * (docs/execution.md); absent: none. */
    XM_ATTENTION_PREPARED,
    XM_ATTENTION_OUT, /* [B,T,Hq,Dv] */
    XM_ATTENTION_N_OPERANDS
};

#endif
