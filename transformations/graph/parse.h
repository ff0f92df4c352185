/* SPDX-License-Identifier: Apache-2.0
 *
 * What parse.c, parse_data.c and parse_weight.c share: the parser of graph text, and what a line
 * says.
 */
#ifndef XM_TRANSFORMATIONS_GRAPH_PARSE_H
#define XM_TRANSFORMATIONS_GRAPH_PARSE_H

#include "transformations/graph/builder.h"
#include "transformations/graph/lexer.h"
#include "transformations/graph/text.h"

struct xm_parser {
    struct xm_lexer lex;
    struct xm_graph *g;
    struct xm_builder b;
    struct xm_value **values; /* by number */
    uint64_t n_values;
    struct xm_value **operands;        /* of the line */
    uint64_t data_left;                /* bytes that the text may still declare */
    const struct xm_text_blobs *blobs; /* NULL: patterns */
    bool opens_files;                  /* that the text names */
};

/* What one line says about a node. */
struct xm_parsed_line {
    uint64_t number, n_results; /* "%5, %6 =" */
    enum xm_op op;
    struct xm_type declared;
    uint32_t n_in;
    union xm_attr attr;
    uint64_t attrs_seen; /* bit i: row i of the op's attributes */
    const char *name;
};

/* Fails with XM_NO_MEMORY, at no place of the text. */
enum xm_status xm_parse_no_memory(struct xm_parser *p);

/* parse_data.c: the data of a constant, weight or shape value; other operations have none. */
enum xm_status xm_parse_data(struct xm_parser *p, struct xm_parsed_line *line);
/* Allocates for n elements and counts their bytes against XM_TEXT_MOST_DATA. */
enum xm_status xm_parse_allocate(struct xm_parser *p, enum xm_element e, uint64_t n,
                                 struct xm_bytes *out);
/* Allocates n elements and fills them with a pattern that depends on the number only. */
enum xm_status xm_parse_pattern(struct xm_parser *p, enum xm_element e, uint64_t n,
                                uint64_t number, struct xm_bytes *out);
/* The number of elements of a declared type. */
enum xm_status xm_parse_count_elements(struct xm_parser *p, const struct xm_type *t,
                                       uint64_t *out);

/* parse_weight.c: the format and the bytes of a weight of the declared shape. */
enum xm_status xm_parse_weight(struct xm_parser *p, struct xm_parsed_line *line);

#endif
