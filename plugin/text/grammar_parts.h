/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to grammar*.c, gbnf.c, json_schema*.c and constraint*.c.
 *
 * A parser builds a tree of nodes for each rule (`struct xm_grammar_tree`). Compiling turns the
 * trees into one nondeterministic automaton over bytes whose states may call rules:
 *
 *     split  ─► a, b     to both states, without reading
 *     text   ─► a        after the bytes of a literal
 *     units  ─► a        after `least` to `most` units, which are counted
 *     call   ─► a        after `least` to `most` matches of a rule
 *     token  ─► a        after one token of the vocabulary
 *     final              the rule is matched
 *
 * A unit is what a repetition counts as one: a character of a class or, in a JSON string, also an
 * escape sequence. It is a small deterministic acyclic automaton over bytes. So "[a-z]{0,1000000}"
 * takes a single state of the grammar, and so does a schema's maxLength. Small rules that do not
 * call themselves are expanded where they are used; therefore most of the automaton works without a
 * stack.
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

/* XM_UNBOUNDED: a repetition has no upper bound. XM_NOWHERE: no node, rule or state. */
#define XM_UNBOUNDED UINT32_MAX
#define XM_NOWHERE   UINT32_MAX

enum {
    XM_GRAMMAR_MOST_NODES = 1 << 20,
    XM_GRAMMAR_MOST_STATES = 1 << 18,
    XM_GRAMMAR_MOST_RULES = 1 << 16,
    XM_GRAMMAR_MOST_RANGES = 1 << 12, /* ranges of a class */
    XM_GRAMMAR_MOST_COUNT = 1 << 30,  /* largest bound of a repetition */
    XM_GRAMMAR_DEPTH = 128,           /* nesting depth of groups and of schemas */
    XM_CODE_POINT_MOST = 0x10ffff
};

/* ---- characters and units ---- */

struct xm_code_range {
    uint32_t low, high; /* inclusive bounds */
};

/* A set of Unicode characters. Zero-initialise. */
struct xm_class {
    struct xm_code_range *ranges; /* owned */
    size_t n, capacity;
    bool failed; /* out of memory; stays set */
};

void xm_class_add(struct xm_class *c, uint32_t low, uint32_t high);
/* Sorts the ranges and joins those that overlap or touch; removes surrogates. */
void xm_class_normalise(struct xm_class *c);
/* Replaces the class by its complement. The class must be normalised, and the result is, too. */
void xm_class_negate(struct xm_class *c);
bool xm_class_has(const struct xm_class *c, uint32_t code);
void xm_class_free(struct xm_class *c);

/* An edge of a unit's automaton: bytes low..high lead to node `next`; XM_UNIT_END: the unit is
 * complete. */
struct xm_unit_edge {
    uint8_t low, high;
    uint16_t next;
};
#define XM_UNIT_END UINT16_MAX

struct xm_unit_node {
    uint32_t first, n; /* its n edges, from `first` in unit_edges */
};

struct xm_unit {
    uint32_t first, n;  /* its n nodes, from `first` in unit_nodes */
    uint16_t start;     /* first node, relative to `first` */
    bool all_non_ascii; /* every character from U+0080 on is accepted */
    uint64_t ascii[2];  /* bytes below 128 that alone are a unit, a bit each */
    uint64_t hash;      /* hash of nodes and edges */
};

/* How a unit spells the characters of a class. */
enum xm_spelling {
    XM_SPELL_PLAIN, /* as UTF-8 */
    XM_SPELL_JSON,  /* inside a JSON string, each character in one way */
    /* inside a JSON string, all characters in every way (the class is ignored) */
    XM_SPELL_JSON_ANY,
};

/* ---- trees ---- */

enum xm_node_kind {
    XM_NODE_NEVER,  /* matches nothing                                             */
    XM_NODE_TEXT,   /* a = offset in `bytes`, b = length; length 0: the empty text */
    XM_NODE_UNIT,   /* a = index in `units`                                        */
    XM_NODE_TOKEN,  /* a = index in `tokens`                                       */
    XM_NODE_RULE,   /* a = index in `rules`                                        */
    XM_NODE_ALL,    /* the children, one after the other                           */
    XM_NODE_ANY,    /* any one of the children                                     */
    XM_NODE_REPEAT, /* the child, a to b times                                     */
    /* The children in order, of which optional ones may be left out, with the separator, node `a`,
     * between any two that are present. xm_grammar_tree.flags says which are optional. */
    XM_NODE_LIST,
};

enum { XM_LIST_OPTIONAL = 1, XM_LIST_REPEATS = 2 }; /* flags of a LIST's children */

struct xm_node_row {
    uint8_t kind;
    bool is_place; /* marked by xm_tree_mark */
    uint32_t a, b;
    uint32_t first, n; /* its n children, from `first` in `children` */
};

/* A token of the vocabulary, given by its spelling or, if n is 0, by its id. */
struct xm_grammar_token {
    uint32_t offset, n; /* offset and length of the spelling in `bytes` */
    uint32_t id;
};

struct xm_tree_rule {
    uint32_t node;    /* its body; XM_NOWHERE: not defined yet */
    uint32_t name, n; /* offset and length of the name in `bytes` */
    size_t at;        /* offset of its first mention in the source */
    /* Never expanded where it is used, because it is one of many rules that lead to each other. */
    bool is_called;
};

/* A grammar under construction. Zero-initialise. Functions that add to it do not report failures:
 * the first failure sets `failed`, and from then on they return an XM_NODE_NEVER. */
struct xm_grammar_tree {
    struct xm_node_row *nodes;
    size_t n_nodes, nodes_capacity;
    uint32_t *children;
    uint8_t *flags; /* [n_children] XM_LIST_… of each child */
    size_t n_children, children_capacity, flags_capacity;
    struct xm_tree_rule *rules;
    size_t n_rules, rules_capacity;
    struct xm_unit *units;
    size_t n_units, units_capacity;
    struct xm_hash_index unit_index; /* of `units`, by their hash */
    struct xm_unit_node *unit_nodes;
    size_t n_unit_nodes, unit_nodes_capacity;
    struct xm_unit_edge *unit_edges;
    size_t n_unit_edges, unit_edges_capacity;
    struct xm_grammar_token *tokens;
    size_t n_tokens, tokens_capacity;
    struct xm_strbuf bytes;
    enum xm_status failed; /* XM_NO_MEMORY; XM_UNSUPPORTED: the tree is too large */
    /* The innermost marked node during whose compilation a limit was reached; 0: no limit was
     * reached, or in no marked node. */
    uint32_t too_large_at;
};

void xm_tree_free(struct xm_grammar_tree *t);
/* Returns t->failed; unless it is XM_OK, sets an error message. */
enum xm_status xm_tree_check(const struct xm_grammar_tree *t, struct xm_error *err);

uint32_t xm_tree_never(struct xm_grammar_tree *t);
uint32_t xm_tree_text(struct xm_grammar_tree *t, const char *text, size_t n);
uint32_t xm_tree_empty(struct xm_grammar_tree *t);
/* Returns a node for one character of a normalised class. */
uint32_t xm_tree_class(struct xm_grammar_tree *t, const struct xm_class *c,
                       enum xm_spelling spelling);
uint32_t xm_tree_token(struct xm_grammar_tree *t, const char *text, size_t n,
                       uint32_t id);
uint32_t xm_tree_rule_ref(struct xm_grammar_tree *t, uint32_t rule);
/* Return a node with copies of the children. NEVER children are simplified away: an ALL with one is
 * NEVER, an ANY drops it. */
uint32_t xm_tree_all(struct xm_grammar_tree *t, const uint32_t *children, size_t n);
uint32_t xm_tree_any(struct xm_grammar_tree *t, const uint32_t *children, size_t n);
uint32_t xm_tree_repeat(struct xm_grammar_tree *t, uint32_t child, uint32_t least,
                        uint32_t most);
uint32_t xm_tree_list(struct xm_grammar_tree *t, uint32_t separator,
                      const uint32_t *children, const uint8_t *flags, size_t n);
/* Marks the node, so that too_large_at may name it. Does nothing if the node matches nothing. */
void xm_tree_mark(struct xm_grammar_tree *t, uint32_t node);
bool xm_tree_is_never(const struct xm_grammar_tree *t, uint32_t node);
/* Adds a rule without a body and returns its index. */
uint32_t xm_tree_add_rule(struct xm_grammar_tree *t, const char *name, size_t n);

/* Adds a unit that accepts one character of `c`, or finds an equal one. Returns its index. */
uint32_t xm_tree_add_unit(struct xm_grammar_tree *t, const struct xm_class *c,
                          enum xm_spelling spelling);

/* A growing list of child nodes. Zero-initialise. */
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
    XM_STATE_SPLIT, /* a, b: the two next states */
    XM_STATE_TEXT,  /* x = offset in `bytes`, y = length */
    XM_STATE_UNITS, /* b = unit, x = least, y = most */
    XM_STATE_CALL,  /* b = the rule's first state, x = least, y = most */
    XM_STATE_TOKEN, /* b = index in `tokens` */
};

struct xm_grammar_state {
    uint8_t kind;
    uint32_t a, b, x, y;
};

/* A compiled grammar. State 0 is the FINAL state of all rules. */
struct xm_grammar {
    struct xm_grammar_state *states; /* all pointers are owned */
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

/* Compiles rule `root` and all rules that it uses. Moves units, tokens and bytes out of the tree.
 * XM_INVALID: no text matches, or a rule is left-recursive. */
enum xm_status xm_grammar_compile(struct xm_grammar_tree *t, uint32_t root,
                                  struct xm_grammar **out, struct xm_error *err);

/* ---- parts of a JSON Schema ---- */

/* Returns a node for the string contents in which an ECMA-262 regular expression finds a match;
 * lookaround, \b, \p and backreferences are unsupported. `spelling`: JSON-escaped or plain.
 * `without`: an ASCII character that the contents must not have; '\0': none. `where` is the prefix
 * of error messages. After a failure the node matches nothing. */
uint32_t xm_tree_pattern(struct xm_grammar_tree *t, struct xm_slice pattern,
                         enum xm_spelling spelling, char without, const char *where,
                         struct xm_error *err);

/* Limits of multiples: XM_MOST_REMAINDERS: remainders times digits to distinguish; XM_MOST_PLACES:
 * digits of the factor behind the decimal point. */
enum { XM_MOST_REMAINDERS = 4096, XM_MOST_PLACES = 30 };
/* A set of decimal numbers: from `low` to `high` (NULL: no bound), decimals without exponent such
 * as "-12.5". `whole`: integers only. */
struct xm_number_range {
    const char *low, *high;
    bool low_is_out, high_is_out; /* the bound itself is excluded */
    bool whole;
    /* Only multiples of multiple_of / 10^places; multiple_of 0: any number. With `whole`, places is
     * 0. multiple_of times (digits of the longer bound + places + 1) must not exceed
     * XM_MOST_REMAINDERS. */
    uint32_t multiple_of, places;
};
uint32_t xm_tree_numbers(struct xm_grammar_tree *t, const struct xm_number_range *r);

/* Returns a node for those texts of `node`, a node of a pattern, that have `least` to `most`
 * characters (units). XM_NOWHERE: there is no such node, because more than one part of the pattern
 * has a variable length. */
uint32_t xm_tree_of_length(struct xm_grammar_tree *t, uint32_t node, uint32_t least,
                           uint32_t most);

#ifdef __cplusplus
}
#endif
#endif
