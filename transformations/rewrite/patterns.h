/* SPDX-License-Identifier: Apache-2.0
 *
 * Macros for rule tables. Patterns are C compound literals, so tables are in .c files, never in
 * headers. Only the files with tables include this header, because its names are short. enum
 * xm_pat_kind in rewrite.h explains the kinds.
 */
#ifndef XM_TRANSFORMATIONS_REWRITE_PATTERNS_H
#define XM_TRANSFORMATIONS_REWRITE_PATTERNS_H

#include "transformations/rewrite/rewrite.h"

/* Returns false for a condition that fails, and records why. */
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
/* A node of op `id` with exactly these operands, in this order. */
#define P(id, ...) XM_PAT(.op = XM_OP_##id, .slot = -1, .in = XM_PATS(__VA_ARGS__))
/* As P; slot s gets the node's value, for example to read its attributes. */
#define PN(s, id, ...) XM_PAT(.op = XM_OP_##id, .slot = (s), .in = XM_PATS(__VA_ARGS__))
/* As PN; the node may have other uses. */
#define PS(s, id, ...) XM_PAT(.op = XM_OP_##id, .slot = (s), .shared = true, .in = XM_PATS(__VA_ARGS__))
/* As PS, for result o of a node with several results. */
#define PO(s, o, id, ...) XM_PAT(.op = XM_OP_##id, .slot = (s), .out = (o), .shared = true, .in = XM_PATS(__VA_ARGS__))
/* Result o of a node with any operands; it may have other uses. */
#define ANY(s, o, id) XM_PAT(.op = XM_OP_##id, .slot = (s), .out = (o), .shared = true, .rest = XM_REST_FREE)
/* A node with operands given by number: AT(number, pattern), …; its other operands may be any. In a
 * replacement: a copy of the node in slot s, perhaps with another op, with these operands
 * changed. */
#define N(s, id, ...) XM_PAT(.op = XM_OP_##id, .slot = (s), .rest = XM_REST_FREE, .in = XM_PATS(__VA_ARGS__))
/* As N, but the other operands must be absent. */
#define ONLY(s, id, ...) XM_PAT(.op = XM_OP_##id, .slot = (s), .rest = XM_REST_ABSENT, .in = XM_PATS(__VA_ARGS__))
#define AT(name, pat) XM_PAT(.kind = XM_PAT_AT, .slot = -1, .at = (name), .in = XM_PATS(pat))
/* A product x W^T with a stored matrix W [N,K], with nothing else but perhaps a bias. */
#define LINEAR_OF(s, x, w, bias) XM_PAT(.kind = XM_PAT_LINEAR, .slot = (s), .in = XM_PATS(x, w, bias))
#define THROUGH(pat)   XM_PAT(.kind = XM_PAT_THROUGH, .slot = -1, .in = XM_PATS(pat))
#define LIKE(s, pat)   XM_PAT(.kind = XM_PAT_LIKE, .slot = (s), .in = XM_PATS(pat))
#define FLAT(s)        XM_PAT(.kind = XM_PAT_FLAT, .slot = (s))
#define MAKE(function) XM_PAT(.kind = XM_PAT_MAKE, .slot = -1, .make = (function))
/* clang-format on */

#endif
