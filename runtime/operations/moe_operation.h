/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixture of experts: attributes and operands, the same in the graph, the evaluator, lowering and
 * the primitive.
 *
 *     y[t] = sum_s weights[t,s] expert(ids[t,s], x[t])                   s = 0 … K-1
 *     expert(e, x) = (f[e] act(g) (u + up_add)) Wd[e]^T + bd[e]
 *         g = min(x Wg[e]^T + bg[e], limit),   u = clamp(x Wu[e]^T + bu[e], -limit, limit)
 *
 * Letters: T tokens, H hidden, I intermediate, E experts, K top-k.
 */
#ifndef XM_RUNTIME_OPERATIONS_MOE_OPERATION_H
#define XM_RUNTIME_OPERATIONS_MOE_OPERATION_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum xm_activation {
#define ACTIVATION(id, text, formula) XM_ACT_##id,
#include "runtime/operations/activations.def"
    XM_ACT_COUNT
};
const char *xm_activation_text(enum xm_activation a);

enum xm_routing {
#define ROUTING_FORM(number, id, text, weight, divisor, chosen_by, scores)               \
    XM_ROUTING_##id = (number),
#include "kernels/cl/include/routings.def"
    XM_ROUTING_COUNT
};
const char *xm_routing_text(enum xm_routing r);

/* How a router computes weights and ids of experts from logits; also the attributes of
 * moe_router. */
struct xm_moe_routing {
    enum xm_routing kind;
    int64_t top_k;
    /* divides the weights by max(sum of the k weights + epsilon, least_sum) */
    bool normalise;
    float epsilon;   /* 0 for softmax */
    float scale;     /* multiplies all weights (routed_scaling_factor); 1: none  */
    float least_sum; /* 0: none, since weights are not below 0 */
};

/* Storage of Wg and Wu: two weights [E,I,H], or one weight [E,2I,H]. */
enum xm_gate_up {
    XM_GATE_UP_APART,
    XM_GATE_UP_INTERLEAVED, /* gate in the even rows          */
    XM_GATE_UP_STACKED,     /* gate in the first I rows       */
    XM_UP_GATE_INTERLEAVED, /* up in the even rows            */
    XM_UP_GATE_STACKED,     /* up in the first I rows */
    XM_GATE_UP_COUNT
};
const char *xm_gate_up_text(enum xm_gate_up g);

struct xm_moe_attr {
    struct xm_moe_routing routing; /* if ids are an operand only top_k is read */
    enum xm_gate_up gate_up;       /* storage of gate and up */
    enum xm_activation activation;
    float beta;   /* swish beta; OpenVINO's expert_beta */
    float limit;  /* clamp limit of gate and up, 0: none; OpenVINO's expert_alpha */
    float up_add; /* added to up after its clamp */
    int64_t hidden, inter, experts, shared; /* H I E, shared experts */
    /* columns of a weight that share a scale; 0: not quantised, or the weights have different
     * groups */
    int64_t group;
    bool has_zp; /* some weight has zero points */
    /* If own_experts is not 0, the experts are split over devices: the weights, biases and factors
     * are those of experts first_expert … first_expert + own_experts - 1 only, and the other
     * experts add nothing to the result. Logits, ids and the router count all E experts. */
    int64_t first_expert, own_experts;
};

/* Whether the weights are those of some experts only. */
static inline bool
xm_moe_is_part(const struct xm_moe_attr *a)
{
    return a->own_experts != 0;
}

/* The number of experts in the weights. */
static inline int64_t
xm_moe_own_experts(const struct xm_moe_attr *a)
{
    return xm_moe_is_part(a) ? a->own_experts : a->experts;
}

/* moe and moe_compressed take the router's weights and ids as operands. The fused operation takes
 * either these, or the router's logits and computes the routing itself. "absent" below: the operand
 * may be absent. */
enum xm_moe_operand {
    XM_MOE_HIDDEN,      /* [T,H] */
    XM_MOE_ROUTING,     /* weights [T,K]; without ids: logits [T,E] */
    XM_MOE_IDS,         /* [T,K] integers; fused: absent with logits */
    XM_MOE_ROUTER_BIAS, /* [E], only with logits and sigmoid routing; absent */
    XM_MOE_EXPERT_SCALE, /* [E], multiplies the weights of chosen experts; fused only; absent */
    XM_MOE_W_GATE,       /* [E,I,H]; gate and up in one weight: [E,2I,H] */
    XM_MOE_W_UP,         /* [E,I,H]; absent: W_GATE has both */
    XM_MOE_W_DOWN,       /* [E,H,I] */
    XM_MOE_BIAS_GATE,        /* [E,1,rows of gate's weight]; absent */
    XM_MOE_BIAS_DOWN,        /* [E,1,H]; absent */
    XM_MOE_SHARED_GATE,      /* [I',H]; absent without shared expert */
    XM_MOE_SHARED_UP,        /* [I',H] */
    XM_MOE_SHARED_DOWN,      /* [H,I'] */
    XM_MOE_SHARED_GATE_GATE, /* [1,H]: sigmoid gate of the shared expert; absent */
    XM_MOE_ADDEND,           /* [T,H], added to the result; fused only; absent */
    XM_MOE_BIAS_UP,          /* [E,1,I], bu if W_UP is present; absent */
    XM_MOE_FACTOR,           /* [E,1,I], f of the formula; absent */
    XM_MOE_N_IN,
    /* Only in steps: the first rows of x in the form of activations that kernels for few tokens
     * read (docs/execution.md); absent: none. */
    XM_MOE_PREPARED = XM_MOE_N_IN,
    XM_MOE_OUT, /* [T,H] */
    XM_MOE_N_OPERANDS
};

#ifdef __cplusplus
}
#endif
#endif
