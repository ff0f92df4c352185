/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside grammars, for grammar*.c, gbnf.c, json_schema*.c and constraint*.c only.
 *
 * A parser builds a tree of nodes for each rule (`struct xm_grammar_tree`). Compiling turns the
 * trees into one nondeterministic automaton over bytes whose states may call rules:
 *
 *     split  ─► a, b                      both, without reading
 *     text   ─► a                         after the bytes of a literal
 *     units  ─► a                         after `least` to `most` units, which are counted
 *     call   ─► a                         after `least` to `most` matches of a rule
 *     token  ─► a                         after one token of the vocabulary
 *     final                               the rule is matched
 *
 * A unit is what a repetition counts as one: a character of a class, or in a JSON string also an
 * escape. It is a small deterministic automaton over bytes without cycles. So "[a-z]{0,1000000}" is
 * one state, and a schema's maxLength, too. Rules that do not call themselves are expanded where
 * they are used, as long as they are small: within a rule the automaton is regular.
 */
#ifndef XM_PLUGIN_TEXT_GRAMMAR_PARTS_H
#define XM_PLUGIN_TEXT_GRAMMAR_PARTS_H

#include <stdint.h>

#include "plugin/text/grammar.h"
#include "runtime/util/hash_index.h"
#include "runtime/util/memory.h"
#include "runtime/util/slice.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* No upper bound of a repetition; no node, rule or state. */
#define XM_UNBOUNDED UINT32_MAX
#define XM_NOWHERE   UINT32_MAX

enum {
    XM_GRAMMAR_MOST_NODES = 1 << 20,
    XM_GRAMMAR_MOST_STATES = 1 << 18,
    XM_GRAMMAR_MOST_RULES = 1 << 16,
    XM_GRAMMAR_MOST_RANGES = 1 << 12, /* of a class                                 */
    XM_GRAMMAR_MOST_COUNT = 1 << 30,  /* of a repetition                            */
    XM_GRAMMAR_DEPTH = 128,           /* of groups in groups, of schemas in schemas */
    XM_CODE_POINT_MOST = 0x10ffff
};

/* ---- characters and units ---- */

struct xm_code_range {
    uint32_t low, high; /* both are in it */
};

/* A set of characters. Zero-initialise. */
struct xm_class {
    struct xm_code_range *ranges; /* owned */
    size_t n, capacity;
    bool failed; /* no memory; sticky */
};

void xm_class_add(struct xm_class *c, uint32_t low, uint32_t high);
/* Sorts and joins the ranges. */
void xm_class_normalise(struct xm_class *c);
/* All characters that are not in it; both are normalised. */
void xm_class_negate(struct xm_class *c);
bool xm_class_has(const struct xm_class *c, uint32_t code);
void xm_class_free(struct xm_class *c);

/* Bytes low..high lead to node `next` of the unit; to XM_UNIT_END: the unit is complete. */
struct xm_unit_edge {
    uint8_t low, high;
    uint16_t next;
};
#define XM_UNIT_END UINT16_MAX

struct xm_unit_node {
    uint32_t first, n; /* edges */
};

struct xm_unit {
    uint32_t first, n;  /* nodes                                        */
    uint16_t start;     /* the node where it begins                     */
    bool all_non_ascii; /* each character from U+0080 on is a unit      */
    uint64_t ascii[2];  /* bytes below 128 that are a unit of their own */
    uint64_t hash;      /* of nodes and edges                           */
};

/* How characters are spelled. */
enum xm_spelling {
    XM_SPELL_PLAIN, /* as UTF-8                                                            */
    XM_SPELL_JSON, /* within a JSON string, each character in one way                      */
    XM_SPELL_JSON_ANY, /* the same, in every way: all characters; the class is not read        */
};

/* ---- trees ---- */

enum xm_node_kind {
    XM_NODE_NEVER, /* matches nothing                                                    */
    XM_NODE_TEXT, /* a = offset, b = length in `bytes`; length 0: the empty text         */
    XM_NODE_UNIT, /* a = unit                                                            */
    XM_NODE_TOKEN, /* a = number of the token in `tokens`                                 */
    XM_NODE_RULE, /* a = rule                                                            */
    XM_NODE_ALL, /* children one after the other                                        */
    XM_NODE_ANY, /* one of the children                                                 */
    XM_NODE_REPEAT, /* its child, a to b times                                            */
    /* Children in order, some left out: `a` holds the separator's node; between any two that are
     * there comes the separator. Which are optional: xm_grammar_tree.flags. */
    XM_NODE_LIST,
};

enum { XM_LIST_OPTIONAL = 1, XM_LIST_REPEATS = 2 }; /* flags of a list's children */

struct xm_node_row {
    uint8_t kind;
    bool is_place; /* xm_tree_mark */
    uint32_t a, b;
    uint32_t first, n; /* children in `children` */
};

/* A token of the vocabulary: by its spelling, or by its id where text.n is 0. */
struct xm_grammar_token {
    uint32_t offset, n; /* its spelling, in `bytes` */
    uint32_t id;
};

struct xm_tree_rule {
    uint32_t node;    /* XM_NOWHERE: not defined yet */
    uint32_t name, n; /* in `bytes`                  */
    size_t at;        /* of a source: its first name */
    bool
        is_called; /* never expanded where it is used: one of many that lead to each other */
};

/* A grammar while it is built. Zero-initialise. Adding to it never fails at once: after a failure
 * `failed` has its status and everything that is added is XM_NODE_NEVER. */
struct xm_grammar_tree {
    struct xm_node_row *nodes;
    size_t n_nodes, nodes_capacity;
    uint32_t *children;
    uint8_t *flags; /* of children, beside them */
    size_t n_children, children_capacity, flags_capacity;
    struct xm_tree_rule *rules;
    size_t n_rules, rules_capacity;
    struct xm_unit *units;
    size_t n_units, units_capacity;
    struct xm_hash_index unit_index; /* of them, by their hash */
    struct xm_unit_node *unit_nodes;
    size_t n_unit_nodes, unit_nodes_capacity;
    struct xm_unit_edge *unit_edges;
    size_t n_unit_edges, unit_edges_capacity;
    struct xm_grammar_token *tokens;
    size_t n_tokens, tokens_capacity;
    struct xm_strbuf bytes;
    enum xm_status failed; /* XM_NO_MEMORY, or XM_UNSUPPORTED: too large */
    /* The innermost marked node in which compiling has met a limit; 0: none, or it met none. */
    uint32_t too_large_at;
};

void xm_tree_free(struct xm_grammar_tree *t);
/* XM_OK, or what `failed` says as a sentence. */
enum xm_status xm_tree_check(const struct xm_grammar_tree *t, struct xm_error *err);

uint32_t xm_tree_never(struct xm_grammar_tree *t);
uint32_t xm_tree_text(struct xm_grammar_tree *t, const char *text, size_t n);
uint32_t xm_tree_empty(struct xm_grammar_tree *t);
/* A character of a normalised class. */
uint32_t xm_tree_class(struct xm_grammar_tree *t, const struct xm_class *c,
                       enum xm_spelling spelling);
uint32_t xm_tree_token(struct xm_grammar_tree *t, const char *text, size_t n,
                       uint32_t id);
uint32_t xm_tree_rule_ref(struct xm_grammar_tree *t, uint32_t rule);
/* Children are copied; a NEVER among them is simplified away. */
uint32_t xm_tree_all(struct xm_grammar_tree *t, const uint32_t *children, size_t n);
uint32_t xm_tree_any(struct xm_grammar_tree *t, const uint32_t *children, size_t n);
uint32_t xm_tree_repeat(struct xm_grammar_tree *t, uint32_t child, uint32_t least,
                        uint32_t most);
uint32_t xm_tree_list(struct xm_grammar_tree *t, uint32_t separator,
                      const uint32_t *children, const uint8_t *flags, size_t n);
/* Marks the node as one that its maker can name. A node that matches nothing is none. */
void xm_tree_mark(struct xm_grammar_tree *t, uint32_t node);
bool xm_tree_is_never(const struct xm_grammar_tree *t, uint32_t node);
/* A new rule without a body. */
uint32_t xm_tree_add_rule(struct xm_grammar_tree *t, const char *name, size_t n);

/* Adds a unit for a character of `c`, or returns an equal one. */
uint32_t xm_tree_add_unit(struct xm_grammar_tree *t, const struct xm_class *c,
                          enum xm_spelling spelling);

/* A list of nodes while children are gathered. Zero-initialise. */
struct xm_nodes {
    uint32_t *list; /* owned */
    size_t n, capacity;
};
void xm_nodes_add(struct xm_grammar_tree *t, struct xm_nodes *nodes, uint32_t node);
void xm_nodes_free(struct xm_nodes *nodes);

/* ---- the automaton ---- */

enum xm_state_kind {
    XM_STATE_FINAL,
    XM_STATE_NEVER,
    XM_STATE_SPLIT, /* a, b                                                  */
    XM_STATE_TEXT,  /* x = offset, y = length                                */
    XM_STATE_UNITS, /* b = unit, x = least, y = most                         */
    XM_STATE_CALL,  /* b = the rule's first state, x = least, y = most       */
    XM_STATE_TOKEN, /* b = number of the token                               */
};

struct xm_grammar_state {
    uint8_t kind;
    uint32_t a, b, x, y;
};

/* State 0 is FINAL for all rules. */
struct xm_grammar {
    struct xm_grammar_state *states; /* owned, as all below */
    size_t n_states;
    uint32_t start;
    struct xm_unit *units;
    struct xm_unit_node *unit_nodes;
    struct xm_unit_edge *unit_edges;
    size_t n_units;
    struct xm_grammar_token *tokens;
    size_t n_tokens;
    char *bytes;
};

/* Compiles the rules that `root` needs and takes what it can from the tree. */
enum xm_status xm_grammar_compile(struct xm_grammar_tree *t, uint32_t root,
                                  struct xm_grammar **out, struct xm_error *err);

/* ---- parts of a JSON Schema ---- */

/* The contents of a string that a regular expression (ECMA-262, the regular part of it) matches
 * somewhere, as JSON spells them or plain; `without` one character of ASCII ('\0': all may come).
 * `where` is prefixed to sentences. */
uint32_t xm_tree_pattern(struct xm_grammar_tree *t, struct xm_slice pattern,
                         enum xm_spelling spelling, char without, const char *where,
                         struct xm_error *err);

/* Most remainders that numbers of a factor are told apart by, at each number of digits; most digits
 * that a factor has behind the point. */
enum { XM_MOST_REMAINDERS = 4096, XM_MOST_PLACES = 30 };
/* Decimal numbers from low to high; a bound of NULL: none. Bounds are decimals without exponent
 * ("-12.5"). With `whole` integers only. */
struct xm_number_range {
    const char *low, *high;
    bool low_is_out, high_is_out; /* the bound itself is outside */
    bool whole;
    /* Multiples of multiple_of / 10^places only; 0: any. With `whole` places is 0. multiple_of and
     * one more than the digits of a bound and `places` multiply to at most XM_MOST_REMAINDERS. */
    uint32_t multiple_of, places;
};
uint32_t xm_tree_numbers(struct xm_grammar_tree *t, const struct xm_number_range *r);

/* The texts of `node` that have `least` to `most` characters: of nodes of a pattern, each unit is
 * one. XM_NOWHERE: there is no node for them, because several parts may be long or short. */
uint32_t xm_tree_of_length(struct xm_grammar_tree *t, uint32_t node, uint32_t least,
                           uint32_t most);

#ifdef __cplusplus
}
#endif
#endif
