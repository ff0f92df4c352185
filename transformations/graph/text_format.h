/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of graph text that print.c and parse.c share. Internal to transformations/graph.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_TEXT_FORMAT_H
#define XM_TRANSFORMATIONS_GRAPH_TEXT_FORMAT_H

#include "transformations/graph/graph.h"

/* constants of at most this many elements are printed in braces */
enum { XM_TEXT_INLINE = 16 };

/* Ops whose type is printed before the operands, because it cannot be computed from them. */
bool xm_text_has_declared_type(enum xm_op op);
/* Whether constants of this element type can be printed in braces. */
bool xm_text_is_inline(enum xm_element e);

#endif
