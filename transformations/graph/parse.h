/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by parse.c, parse_data.c and parse_weight.c: the state of the parser of graph text, and
 * what it has read of a line. */
#ifndef XM_TRANSFORMATIONS_GRAPH_PARSE_H
#define XM_TRANSFORMATIONS_GRAPH_PARSE_H

#include "transformations/graph/builder.h"
#include "transformations/graph/lexer.h"
#include "transformations/graph/text.h"

struct xm_parser {
    struct xm_lexer lex;
    struct xm_graph *g;
    struct xm_builder b;
    struct xm_value **values; /* values by the number in the text: %5 */
    uint64_t n_values;
    struct xm_value **operands; /* operands of the present line */
    /* bytes of constants that the text may still declare */
    uint64_t data_left;
    /* source of blobs; NULL: they are filled with patterns */
    const struct xm_text_blobs *blobs;
    bool opens_files; /* whether to open the files that the text names */
};

/* What one line says about a node. */
struct xm_parsed_line {
    uint64_t number, n_results; /* of "%5, %6 =": first number, number of results */
    enum xm_op op;
    struct xm_type declared;
    uint32_t n_in;
    union xm_attr attr;
    uint64_t attrs_seen; /* bit i: attribute i of the op was given */
    const char *name;
};

/* Fails with XM_NO_MEMORY, without line and column. */
enum xm_status xm_parse_no_memory(struct xm_parser *p);

/* parse_data.c: reads the data of a constant, weight or shape value; other ops have none. */
enum xm_status xm_parse_data(struct xm_parser *p, struct xm_parsed_line *line);
/* Allocates memory for n elements, whose bytes count against XM_TEXT_MOST_DATA. */
enum xm_status xm_parse_allocate(struct xm_parser *p, enum xm_element e, uint64_t n,
                                 struct xm_bytes *out);
/* As xm_parse_allocate, but fills the memory with a pattern that depends only on `number`. */
enum xm_status xm_parse_pattern(struct xm_parser *p, enum xm_element e, uint64_t n,
                                uint64_t number, struct xm_bytes *out);
/* Computes the number of elements of a declared type. */
enum xm_status xm_parse_count_elements(struct xm_parser *p, const struct xm_type *t,
                                       uint64_t *out);

/* parse_weight.c: reads the format and the bytes of a weight of the declared shape. */
enum xm_status xm_parse_weight(struct xm_parser *p, struct xm_parsed_line *line);

#endif
