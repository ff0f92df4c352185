/* SPDX-License-Identifier: Apache-2.0
 *
 * Macros for rule tables. Patterns are C compound literals, so tables are in .c files, never in
 * headers. Only those files include this header, because its names are short.
 */
#ifndef XM_TRANSFORMATIONS_REWRITE_PATTERNS_H
#define XM_TRANSFORMATIONS_REWRITE_PATTERNS_H

#include "transformations/rewrite/rewrite.h"

/* The value that a failed condition returns. */
static inline bool
refuse(struct xm_match *m, const char *why)
{
    m->why = why;
    return false;
}

/* clang-format off */
#define XM_PAT(...)  (&(const struct xm_pat){ __VA_ARGS__ })
#define XM_PATS(...) (const struct xm_pat *const[]){ __VA_ARGS__, NULL }
#define VAR(s)    XM_PAT(.kind = XM_PAT_VAR,    .slot = (s))
#define MAYBE(s)  XM_PAT(.kind = XM_PAT_MAYBE,  .slot = (s))
#define ABSENT    XM_PAT(.kind = XM_PAT_ABSENT, .slot = -1)
#define WEIGHT(s) XM_PAT(.kind = XM_PAT_CONST,  .slot = (s))
#define SCALAR(v) XM_PAT(.kind = XM_PAT_SCALAR, .slot = -1, .number = (v))
#define NUMBER(s) XM_PAT(.kind = XM_PAT_NUMBER, .slot = (s))
#define INTS(s)   XM_PAT(.kind = XM_PAT_INTS,   .slot = (s))
/* A node with exactly these operands, in their order. */
#define P(id, ...) XM_PAT(.op = XM_OP_##id, .slot = -1, .in = XM_PATS(__VA_ARGS__))
/* The same, with the node's value kept in a slot (to read its attributes). */
#define PN(s, id, ...) XM_PAT(.op = XM_OP_##id, .slot = (s), .in = XM_PATS(__VA_ARGS__))
/* A node that may have other uses. */
#define PS(s, id, ...) XM_PAT(.op = XM_OP_##id, .slot = (s), .shared = true, .in = XM_PATS(__VA_ARGS__))
/* Result o of a node with several, which may have other uses. */
#define PO(s, o, id, ...) XM_PAT(.op = XM_OP_##id, .slot = (s), .out = (o), .shared = true, .in = XM_PATS(__VA_ARGS__))
/* Result o of a node whose operands are not looked at; may have other uses. */
#define ANY(s, o, id) XM_PAT(.op = XM_OP_##id, .slot = (s), .out = (o), .shared = true, .rest = XM_REST_FREE)
/* A node by the names of its operands: AT(name, pattern), ... The others are free. As a
 * replacement: the node of slot s again, perhaps as another op, with these operands changed. */
#define N(s, id, ...) XM_PAT(.op = XM_OP_##id, .slot = (s), .rest = XM_REST_FREE, .in = XM_PATS(__VA_ARGS__))
/* The same; the others are absent. */
#define ONLY(s, id, ...) XM_PAT(.op = XM_OP_##id, .slot = (s), .rest = XM_REST_ABSENT, .in = XM_PATS(__VA_ARGS__))
#define AT(name, pat) XM_PAT(.kind = XM_PAT_AT, .slot = -1, .at = (name), .in = XM_PATS(pat))
/* A product with a stored matrix W [N,K], and nothing else but perhaps a bias. */
#define LINEAR_OF(s, x, w, bias) XM_PAT(.kind = XM_PAT_LINEAR, .slot = (s), .in = XM_PATS(x, w, bias))
#define THROUGH(pat)   XM_PAT(.kind = XM_PAT_THROUGH, .slot = -1, .in = XM_PATS(pat))
#define LIKE(s, pat)   XM_PAT(.kind = XM_PAT_LIKE, .slot = (s), .in = XM_PATS(pat))
#define FLAT(s)        XM_PAT(.kind = XM_PAT_FLAT, .slot = (s))
#define MAKE(function) XM_PAT(.kind = XM_PAT_MAKE, .slot = -1, .make = (function))
/* clang-format on */

#endif
