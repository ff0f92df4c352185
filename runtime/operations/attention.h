/* SPDX-License-Identifier: Apache-2.0
 *
 * The operands of attention, by the same names in the graph, in evaluation, lowering and the
 * primitive. Behind those of the graph are the cache's, which a request owns, and the result.
 */
#ifndef XM_RUNTIME_OPERATIONS_ATTENTION_H
#define XM_RUNTIME_OPERATIONS_ATTENTION_H

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
    XM_ATTENTION_K_CACHE = XM_ATTENTION_N_IN, /* [pages,Hkv,page_tokens,D] */
    XM_ATTENTION_V_CACHE,                     /* [pages,Hkv,page_tokens,Dv] */
    XM_ATTENTION_K_SCALE, /* [pages,Hkv,page_tokens] f32; absent unless the cache is i8 */
    XM_ATTENTION_V_SCALE,
    XM_ATTENTION_TABLE, /* [B,max_pages] i32 */
    /* of a step: OUT again, as rows in the form that their reader wants; absent: not wanted */
    XM_ATTENTION_PREPARED,
    XM_ATTENTION_OUT, /* [B,T,Hq,Dv] */
    XM_ATTENTION_N_OPERANDS
};

#endif
