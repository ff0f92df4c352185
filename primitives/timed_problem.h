/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps whose kernel variants (rows) are timed, and the problems to time them with. A problem
 * is a line of text:
 *
 *     linear N=4096 K=2048 T=1 q4_k f16             rows, columns, tokens
 *     moe E=128 K=8 H=2048 I=768 T=16 u4 g128 f16   experts, chosen, widths
 *     attention Q=32 KV=4 D=128 P=2048 T=1 i8 f16   heads, head size, past positions
 *
 * then the type of the weight (and its group) or of the KV cache, then the type of the activations.
 * A program writes such lines for its steps (plugin/gpu/describe.h), plugin/bench_kernels reads
 * them. xm_timed_class says for both under which class of problems a step's fastest row is kept
 * (measured_rows.h).
 */
#ifndef XM_PRIMITIVES_TIMED_PROBLEM_H
#define XM_PRIMITIVES_TIMED_PROBLEM_H

#include "primitives/variant.h"
#include "runtime/weight.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xm_timed_kind { XM_TIMED_LINEAR, XM_TIMED_MOE, XM_TIMED_ATTENTION };

struct xm_timed_problem {
    char text[128]; /* the line, for tables of results */
    enum xm_timed_kind kind;
    uint64_t tokens;
    uint64_t rows, cols;                    /* linear: N, K                      */
    uint64_t experts, top_k, hidden, inter; /* moe: E, K, H, I                   */
    uint64_t heads_q, heads_kv, head, past; /* attention: Q, KV, D, P            */
    enum xm_weight_format format;
    /* weight: u8 if the format is blocks; for attention the type of the KV cache */
    enum xm_element weight, activations;
    uint64_t group; /* 0: not quantised */
};

/* Parses a line. XM_INVALID: the error text repeats the line. */
enum xm_status xm_timed_problem_parse(const char *line, struct xm_timed_problem *p,
                                      struct xm_error *err);
/* Parses a line without T=…; T becomes 1. */
enum xm_status xm_timed_problem_parse_step(const char *line, struct xm_timed_problem *p,
                                           struct xm_error *err);
/* Returns the bytes of weights, or of KV cache, that one run reads. */
double xm_timed_problem_bytes(const struct xm_timed_problem *p);
/* Returns twice the multiply-adds of one run. */
double xm_timed_problem_flops(const struct xm_timed_problem *p);

/* A step that is timed, and with how many tokens. Steps that pass activations to each other must
 * agree on their form, so they are chosen together: the followers take the row whose form is that
 * of this step's row. */
enum { XM_TIMED_FOLLOWERS = 2 };
struct xm_timed_follower {
    const char *step; /* the name of the step's table; NULL: none */
    bool is_down;     /* it multiplies experts' down matrices */
};
struct xm_timed_step {
    enum xm_timed_kind kind;
    uint64_t tokens;
    const char *step; /* the name of its table                */
    bool is_down;     /* it multiplies experts' down matrices */
    struct xm_timed_follower followers[XM_TIMED_FOLLOWERS];
};
/* Returns all timed steps: linear, moe, attention; for each, few tokens first. */
const struct xm_timed_step *xm_timed_steps(size_t *n);
/* Returns the table of the step of that name; NULL: there is none. */
const struct xm_variant_table *xm_timed_table(const char *step);
/* Returns the class of problems under which the fastest row of a step of the problem's kind is
 * kept. is_down: the step's or follower's; ignored for linear layers and attention. */
struct xm_problem_class xm_timed_class(const struct xm_timed_problem *p, bool is_down);

#ifdef __cplusplus
}
#endif
#endif
