/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens and the syntax tree of a template, and the parser's internal functions. The tree lives
 * in the template's arena and is immutable after parsing.
 */
#ifndef XM_PLUGIN_TEXT_JINJA_NODE_H
#define XM_PLUGIN_TEXT_JINJA_NODE_H

#include "plugin/text/jinja/value.h"

enum xm_jinja_token_kind {
    XM_JINJA_TOKEN_TEXT, /* text between tags, after trimming by {%- and -%} */
    XM_JINJA_TOKEN_PRINT_BEGIN,
    XM_JINJA_TOKEN_PRINT_END,
    XM_JINJA_TOKEN_BLOCK_BEGIN,
    XM_JINJA_TOKEN_BLOCK_END,
    XM_JINJA_TOKEN_NAME,
    XM_JINJA_TOKEN_STRING, /* `text` has its escapes replaced */
    XM_JINJA_TOKEN_INT,
    XM_JINJA_TOKEN_FLOAT,
    XM_JINJA_TOKEN_OPERATOR, /* also brackets and punctuation */
    XM_JINJA_TOKEN_END       /* the last token */
};

struct xm_jinja_token {
    enum xm_jinja_token_kind kind;
    uint32_t line, column; /* from 1 */
    struct xm_slice text;
};

/* The comment behind each kind lists the members of struct xm_jinja_node that it uses. args, body
 * and orelse are lists linked by `next`. A KEYWORD node is a named argument or a parameter. */
enum xm_jinja_node_kind {
    XM_JINJA_CONSTANT,   /* constant                                          */
    XM_JINJA_NAME,       /* name                                              */
    XM_JINJA_MAKE_LIST,  /* args: items                                       */
    XM_JINJA_MAKE_TUPLE, /* args: items                                       */
    XM_JINJA_MAKE_DICT,  /* args: key, value, key, value, …                   */
    XM_JINJA_ATTRIBUTE,  /* in[0] . name                                      */
    XM_JINJA_ITEM,       /* in[0] [ in[1] ]                                   */
    XM_JINJA_SLICE,      /* in[0] [ in[1] : in[2] : in[3] ], 1..3 may be NULL */
    XM_JINJA_CALL,       /* in[0] ( args )                                    */
    XM_JINJA_FILTER,     /* in[0] | builtin ( args )                          */
    XM_JINJA_TEST,       /* in[0] is builtin ( args )                         */
    /* the text of the innermost {% set %} or {% filter %} block */
    XM_JINJA_CAPTURED,
    XM_JINJA_NOT,           /* in[0]                                            */
    XM_JINJA_AND,           /* in[0], in[1]                                     */
    XM_JINJA_OR,            /* in[0], in[1]                                     */
    XM_JINJA_UNARY,         /* name: + or -, in[0]                              */
    XM_JINJA_BINARY,        /* name: the operator, in[0], in[1]                 */
    XM_JINJA_COMPARE,       /* in[0], args: COMPARE_WITH, COMPARE_WITH, …       */
    XM_JINJA_COMPARE_WITH,  /* name: the operator, in[0]                        */
    XM_JINJA_CONDITIONAL,   /* in[1] if in[0] else in[2] or NULL                */
    XM_JINJA_KEYWORD,       /* name, in[0] or NULL                              */
    XM_JINJA_SPREAD,        /* name: * or **, in[0]; among arguments            */
    XM_JINJA_N_EXPRESSIONS, /* --- statements from here on ---                  */
    XM_JINJA_TEXT = XM_JINJA_N_EXPRESSIONS, /* name: the text                   */
    XM_JINJA_PRINT,     /* in[0]                                            */
    XM_JINJA_IF,        /* in[0], body, orelse                              */
    XM_JINJA_DO,        /* in[0]                                            */
    XM_JINJA_FOR,       /* in[0] target, in[1], in[2] condition or NULL, body, orelse */
    XM_JINJA_SET,       /* in[0] target, in[1]                              */
    XM_JINJA_SET_BLOCK, /* in[0] target, in[1] filters over CAPTURED, body  */
    XM_JINJA_FILTER_BLOCK, /* in[1] filters over CAPTURED, body                   */
    XM_JINJA_MACRO,        /* name, args: KEYWORD parameters, body                */
    XM_JINJA_CALL_BLOCK,   /* in[0] CALL, in[1] the MACRO to pass as its "caller" */
    XM_JINJA_WITH,         /* args: SET nodes, body                               */
    XM_JINJA_GENERATION,   /* body                                                */
    XM_JINJA_BREAK,
    XM_JINJA_CONTINUE,
    XM_JINJA_N_NODES
};

struct xm_jinja_node {
    enum xm_jinja_node_kind kind;
    uint32_t line, column;
    struct xm_slice name;
    struct xm_jinja_value constant;
    const struct xm_jinja_builtin *builtin;
    struct xm_jinja_node *in[4];
    struct xm_jinja_node *args, *body, *orelse; /* lists                               */
    struct xm_jinja_node *next;                 /* the next node of the same list      */
    bool is_recursive;                          /* FOR: the body may call loop(items)  */
    unsigned uses;                              /* MACRO: set of enum xm_jinja_special */
};

/* Implicit variables of a macro: `caller`, `kwargs`, `varargs`. They are set only if its body uses
 * them. */
enum xm_jinja_special {
    XM_JINJA_USES_CALLER = 1,
    XM_JINJA_USES_KWARGS = 2,
    XM_JINJA_USES_VARARGS = 4
};

struct xm_jinja_template {
    struct xm_arena arena;
    struct xm_jinja_node *body;
};

static inline bool
xm_jinja_is(struct xm_slice text, const char *what)
{
    return xm_slice_equal(text, xm_slice_of(what, strlen(what)));
}

/* Fails with XM_INVALID and a message that begins with "line L, column C: ". */
enum xm_status xm_jinja_fail_at(struct xm_error *err, uint32_t line, uint32_t column,
                                const char *fmt, ...) XM_PRINTF(4, 5);

/* Cuts `source` into tokens; the last is XM_JINJA_TOKEN_END. The line ends of `source` must be
 * "\n". The caller frees *tokens with xm_free; their texts point into `source` or `arena`. */
enum xm_status xm_jinja_lex(struct xm_slice source, struct xm_arena *arena,
                            struct xm_jinja_token **tokens, struct xm_error *err);

/* The state of the parser. Statements are parsed in parse_statement.c, expressions in
 * parse_expression.c. */
struct xm_jinja_parser {
    const struct xm_jinja_token *at; /* the next token */
    struct xm_arena *arena;
    struct xm_error *err;
    unsigned depth, loops; /* nesting depth; number of enclosing for loops */
    unsigned uses;         /* implicit variables used so far by the macro being parsed */
};

/* Each function parses the construct at p->at and moves p->at behind it. NULL: failed, and p->err
 * is set. */
struct xm_jinja_node *xm_jinja_parse_expression(struct xm_jinja_parser *p);
struct xm_jinja_node *
xm_jinja_parse_no_condition(struct xm_jinja_parser *p); /* without inline if */
struct xm_jinja_node *
xm_jinja_parse_tuple(struct xm_jinja_parser *p); /* a, b or just a */
struct xm_jinja_node *xm_jinja_parse_target(struct xm_jinja_parser *p, bool attributes);
struct xm_jinja_node *xm_jinja_parse_postfix(struct xm_jinja_parser *p,
                                             struct xm_jinja_node *node);
struct xm_jinja_node *xm_jinja_parse_filters(struct xm_jinja_parser *p,
                                             struct xm_jinja_node *node);
struct xm_jinja_node *xm_jinja_parse_filter(struct xm_jinja_parser *p,
                                            struct xm_jinja_node *input);

struct xm_jinja_node *xm_jinja_new_node(struct xm_jinja_parser *p,
                                        enum xm_jinja_node_kind kind,
                                        const struct xm_jinja_token *at);
void *xm_jinja_unexpected(struct xm_jinja_parser *p, const char *expected); /* NULL */
bool xm_jinja_at_operator(const struct xm_jinja_parser *p, const char *op);
bool xm_jinja_at_name(const struct xm_jinja_parser *p, const char *name);
bool xm_jinja_skip_operator(struct xm_jinja_parser *p, const char *op);
bool xm_jinja_skip_name(struct xm_jinja_parser *p, const char *name);
bool xm_jinja_expect_operator(struct xm_jinja_parser *p, const char *op);
/* Increments p->depth; the caller decrements it later. False: nested too deeply, and p->err is
 * set. */
bool xm_jinja_parse_enter(struct xm_jinja_parser *p);

#endif
