/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of graph text that print.c and parse.c share. Internal to transformations/graph.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_TEXT_FORMAT_H
#define XM_TRANSFORMATIONS_GRAPH_TEXT_FORMAT_H

#include "transformations/graph/graph.h"

enum { XM_TEXT_INLINE = 16 }; /* constants up to this many elements stand in braces */

/* Ops whose type stands before the operands, as it cannot be computed. */
bool xm_text_has_declared_type(enum xm_op op);
/* Element types that can stand in braces. */
bool xm_text_is_inline(enum xm_element e);

#endif
