/* SPDX-License-Identifier: Apache-2.0
 *
 * The lexer of graph text: reads its smallest parts and reports errors with line and column.
 * Internal to transformations/graph.
 *
 * Functions that read something skip blanks before it and leave `at` behind it. A node ends with
 * its line, so only xm_lex_next_line crosses the end of a line.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_LEXER_H
#define XM_TRANSFORMATIONS_GRAPH_LEXER_H

#include "transformations/graph/graph.h"

enum { XM_LEX_WORD = 128 };

struct xm_lexer {
    const char *at;
    const char *line_start;
    uint32_t line; /* from 1 */
    struct xm_error *err;
};

/* Fails with XM_INVALID and "line L, column C: " before the message. */
enum xm_status xm_lex_fail(const struct xm_lexer *l, const char *fmt, ...)
    XM_PRINTF(2, 3);
/* Fails with the status and message of `cause`, with "line L, column C: " before it. */
enum xm_status xm_lex_pass_on(const struct xm_lexer *l, const struct xm_error *cause);

char xm_lex_peek(struct xm_lexer *l); /* the next character, '\0' or '\n' at the end */
bool xm_lex_take(struct xm_lexer *l, char c);
enum xm_status xm_lex_expect(struct xm_lexer *l, char c);
/* Reads a word of letters, digits and _ . + -; `what` names it in an error. */
enum xm_status xm_lex_word(struct xm_lexer *l, const char *what, char out[XM_LEX_WORD]);
enum xm_status xm_lex_number(struct xm_lexer *l, uint64_t max, uint64_t *out);
/* Reads a quoted string and unescapes it into the arena. */
enum xm_status xm_lex_string(struct xm_lexer *l, struct xm_arena *arena,
                             const char **out);
enum xm_status xm_lex_dim(struct xm_lexer *l, struct xm_dim_pool *p, struct xm_dim *out);
enum xm_status xm_lex_element(struct xm_lexer *l, enum xm_element *out);
/* Reads a type, such as "f32[batch,256]". */
enum xm_status xm_lex_type(struct xm_lexer *l, struct xm_dim_pool *p,
                           struct xm_type *out);
/* Moves to the next line that is neither blank nor a comment; false: there is none. */
bool xm_lex_next_line(struct xm_lexer *l);

#endif
