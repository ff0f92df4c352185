/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of one run (one rendering of a template), and the internal functions of the
 * interpreter, grouped by the file that defines them.
 *
 * All memory of a run is in one arena: it is freed at the end of the run, and the memory limit
 * counts its size. Every function here that fails has set an error message in r->err with the
 * source position of the node r->at. A run belongs to one thread.
 */
#ifndef XM_PLUGIN_TEXT_JINJA_RUN_STATE_H
#define XM_PLUGIN_TEXT_JINJA_RUN_STATE_H

#include <yyjson.h>

#include "plugin/text/jinja/content.h"
#include "plugin/text/jinja/jinja.h"
#include "plugin/text/jinja/node.h"
#include "plugin/text/jinja/value.h"

/* A variable of a scope, in a list. */
struct xm_jinja_binding {
    struct xm_slice name;
    struct xm_jinja_value value;
    struct xm_jinja_binding *next;
};
/* A scope. Names are looked up from the innermost scope outwards. Each iteration of a loop has a
 * new scope. */
struct xm_jinja_frame {
    struct xm_jinja_binding *bindings;
    struct xm_jinja_frame *outer;
};

enum xm_jinja_flow { XM_JINJA_GO_ON, XM_JINJA_LEAVE_LOOP, XM_JINJA_NEXT_ROUND };

struct xm_jinja_run {
    const struct xm_jinja_limits *limits;
    struct xm_arena arena;
    /* chunks of text with marks, newest first (content.h) */
    struct xm_jinja_chunk *content;
    struct xm_jinja_buffer *out;  /* where statements currently write text */
    struct xm_jinja_frame *frame; /* the innermost scope */
    /* the node being evaluated; error messages name its position */
    const struct xm_jinja_node *at;
    /* text of the innermost {% set %} or {% filter %} block */
    struct xm_jinja_value captured;
    enum xm_jinja_flow flow; /* changed by {% break %} and {% continue %} */
    uint64_t steps;          /* spent so far, at most limits->steps */
    uint64_t n_choices;      /* choices of the filter random so far */
    unsigned depth;          /* nesting depth, at most limits->depth */
    struct xm_error *err;
};

/* run_state.c */
enum xm_status xm_jinja_fail(struct xm_jinja_run *r, const char *fmt, ...)
    XM_PRINTF(2, 3);
/* Adds to r->steps; fails above the limit. */
enum xm_status xm_jinja_charge(struct xm_jinja_run *r, uint64_t steps);
/* Adds the steps for scanning `bytes` bytes of text. */
enum xm_status xm_jinja_charge_text(struct xm_jinja_run *r, uint64_t bytes);
/* increments r->depth; the caller decrements it */
enum xm_status xm_jinja_enter(struct xm_jinja_run *r);
/* Allocates n zeroed elements of `bytes` bytes each; *(void **)out points to them. */
enum xm_status xm_jinja_alloc(struct xm_jinja_run *r, uint64_t n, size_t bytes,
                              void *out);
enum xm_status xm_jinja_new_list(struct xm_jinja_run *r, uint64_t n,
                                 struct xm_jinja_list **out); /* of n undefined items */
enum xm_status xm_jinja_new_pair(struct xm_jinja_run *r, struct xm_jinja_value a,
                                 struct xm_jinja_value b, struct xm_jinja_value *out);
enum xm_status xm_jinja_new_dict(struct xm_jinja_run *r, struct xm_jinja_dict **out);
/* Fails for values that Python cannot hash: lists, mappings, and tuples of them. */
enum xm_status xm_jinja_check_key(struct xm_jinja_run *r, struct xm_jinja_value key);
enum xm_status xm_jinja_dict_find(struct xm_jinja_run *r, const struct xm_jinja_dict *d,
                                  struct xm_jinja_value key,
                                  const struct xm_jinja_value **out); /* NULL: none */
enum xm_status xm_jinja_dict_put(struct xm_jinja_run *r, struct xm_jinja_dict *d,
                                 struct xm_jinja_value key, struct xm_jinja_value value);
/* Converts JSON to a value; with `content`, its strings are marked as content (content.h). */
enum xm_status xm_jinja_from_json(struct xm_jinja_run *r, yyjson_val *json, bool content,
                                  struct xm_jinja_value *out);
enum xm_status xm_jinja_bind(struct xm_jinja_run *r, struct xm_slice name,
                             struct xm_jinja_value value); /* in the innermost scope */

/* safe.c */
/* Sets *out to str(v) with & < > " ' as HTML entities, marked as safe; a string that is already
 * marked as safe is not changed. */
enum xm_status xm_jinja_escape(struct xm_jinja_run *r, struct xm_jinja_value v,
                               struct xm_jinja_value *out);
/* Marks the result *out of a method or filter as safe if `self` was marked as safe. */
enum xm_status xm_jinja_keep_safe(struct xm_jinja_run *r,
                                  const struct xm_jinja_builtin *builtin,
                                  struct xm_jinja_value self, struct xm_jinja_value *out);

/* operators.c */
enum xm_status xm_jinja_equal(struct xm_jinja_run *r, struct xm_jinja_value a,
                              struct xm_jinja_value b, bool *out);
/* Sets *out < 0, 0 or > 0 if a < b, a == b or a > b; fails for kinds of values that have no
 * order. */
enum xm_status xm_jinja_order(struct xm_jinja_run *r, struct xm_jinja_value a,
                              struct xm_jinja_value b, int *out);
enum xm_status xm_jinja_compare(struct xm_jinja_run *r, struct xm_slice op,
                                struct xm_jinja_value a, struct xm_jinja_value b,
                                bool *out);
enum xm_status xm_jinja_contains(struct xm_jinja_run *r, struct xm_jinja_value container,
                                 struct xm_jinja_value item, bool *out);
enum xm_status xm_jinja_unary(struct xm_jinja_run *r, struct xm_slice op,
                              struct xm_jinja_value a, struct xm_jinja_value *out);
enum xm_status xm_jinja_binary(struct xm_jinja_run *r, struct xm_slice op,
                               struct xm_jinja_value a, struct xm_jinja_value b,
                               struct xm_jinja_value *out);

/* iterables.c */
/* Makes an iterator that calls `builtin` when its first item is asked for. Copies the arguments. */
enum xm_status xm_jinja_defer(struct xm_jinja_run *r,
                              const struct xm_jinja_builtin *builtin,
                              struct xm_jinja_value self,
                              const struct xm_jinja_args *args,
                              struct xm_jinja_value *out);
enum xm_status xm_jinja_new_iterator(struct xm_jinja_run *r,
                                     const struct xm_jinja_list *items,
                                     struct xm_jinja_value *out);
enum xm_status xm_jinja_new_view(struct xm_jinja_run *r, const char *name,
                                 const struct xm_jinja_list *items,
                                 struct xm_jinja_value *out);
/* Makes range(start, stop, step). Fails for step 0 and for more numbers than the limits allow. */
enum xm_status xm_jinja_new_range(struct xm_jinja_run *r, int64_t start, int64_t stop,
                                  int64_t step, struct xm_jinja_value *out);
/* Takes the next item of an iterator; *out is undefined if there is none. */
enum xm_status xm_jinja_take(struct xm_jinja_run *r, struct xm_jinja_value iterator,
                             struct xm_jinja_value *out);
/* Sets *out to the items of a list, the keys of a dict or the characters of a string; an empty list
 * for undefined. Consumes an iterator. */
enum xm_status xm_jinja_iterate(struct xm_jinja_run *r, struct xm_jinja_value v,
                                const struct xm_jinja_list **out);
enum xm_status xm_jinja_length(struct xm_jinja_run *r, struct xm_jinja_value v,
                               int64_t *out);
/* access.c */
enum xm_status xm_jinja_attribute(struct xm_jinja_run *r, struct xm_jinja_value v,
                                  struct xm_slice name, struct xm_jinja_value *out);
enum xm_status xm_jinja_item(struct xm_jinja_run *r, struct xm_jinja_value v,
                             struct xm_jinja_value key, struct xm_jinja_value *out);
/* Sets *out to the value at `path`, written as filters name attributes: "a.b.0", or an integer
 * index. `other` (may be NULL) replaces a missing part. */
enum xm_status xm_jinja_path(struct xm_jinja_run *r, struct xm_jinja_value v,
                             struct xm_jinja_value path,
                             const struct xm_jinja_value *other,
                             struct xm_jinja_value *out);
/* Sets *out to v[start:stop:step]; each bound is an integer, none or ABSENT. */
enum xm_status xm_jinja_slice(struct xm_jinja_run *r, struct xm_jinja_value v,
                              const struct xm_jinja_value bounds[3],
                              struct xm_jinja_value *out);

/* evaluate_expression.c */
enum xm_status xm_jinja_evaluate(struct xm_jinja_run *r, const struct xm_jinja_node *node,
                                 struct xm_jinja_value *out);
/* calls.c */
/* Evaluates the arguments of a call, a filter or a test. */
enum xm_status xm_jinja_evaluate_args(struct xm_jinja_run *r,
                                      const struct xm_jinja_node *list,
                                      struct xm_jinja_args *out);
enum xm_status xm_jinja_call_builtin(struct xm_jinja_run *r,
                                     const struct xm_jinja_builtin *builtin,
                                     struct xm_jinja_value self,
                                     const struct xm_jinja_args *args,
                                     struct xm_jinja_value *out);
/* Evaluates a CALL node, passing `caller` (may be NULL) as its argument "caller". */
enum xm_status xm_jinja_call(struct xm_jinja_run *r, const struct xm_jinja_node *call,
                             const struct xm_jinja_function *caller,
                             struct xm_jinja_value *out);

/* execute.c */
/* Runs a list of statements; text goes to r->out. */
enum xm_status xm_jinja_execute(struct xm_jinja_run *r, const struct xm_jinja_node *list);
/* Runs the body of a recursive loop over new items, for loop(items). *out is the text that it
 * writes. */
enum xm_status xm_jinja_call_loop(struct xm_jinja_run *r,
                                  const struct xm_jinja_loop *loop,
                                  const struct xm_jinja_args *args,
                                  struct xm_jinja_value *out);
/* Runs `list` in a new scope inside the current one. *out is the text that it writes. */
enum xm_status xm_jinja_capture(struct xm_jinja_run *r, const struct xm_jinja_node *list,
                                struct xm_jinja_value *out);

/* print_value.c; the first two functions append to `b`. */
enum xm_status xm_jinja_print(struct xm_jinja_run *r, struct xm_jinja_value v,
                              struct xm_jinja_buffer *b); /* as str() */
enum xm_status xm_jinja_print_repr(struct xm_jinja_run *r, struct xm_jinja_value v,
                                   struct xm_jinja_buffer *b);
enum xm_status xm_jinja_to_text(struct xm_jinja_run *r, struct xm_jinja_value v,
                                struct xm_slice *out);

/* json_writer.c */
struct xm_jinja_json_style {
    struct xm_slice indent, item_separator, key_separator;
    bool multi_line, ascii, sort_keys;
};
enum xm_status xm_jinja_print_json(struct xm_jinja_run *r,
                                   const struct xm_jinja_json_style *style,
                                   struct xm_jinja_value v, struct xm_jinja_buffer *b);
void xm_jinja_print_float(double real, struct xm_strbuf *b);

/* string_kinds.c: classes of characters. */
bool xm_jinja_is_alphanumeric(int32_t code); /* as str.isalnum()   */
bool xm_jinja_is_decimal(int32_t code);      /* as str.isdecimal() */

/* characters.c: text by characters. */
bool xm_jinja_is_space(int32_t code);     /* as str.isspace() */
bool xm_jinja_is_printable(int32_t code); /* as repr() leaves it */
size_t xm_jinja_count(struct xm_slice s);
size_t xm_jinja_offset(struct xm_slice s, size_t character); /* in bytes */
enum { XM_JINJA_LEFT = 1, XM_JINJA_RIGHT = 2 };
/* Removes the characters `chars` (NULL: white space) at the given sides. */
struct xm_slice xm_jinja_strip(struct xm_slice s, const struct xm_slice *chars,
                               int sides);
/* Strips like xm_jinja_strip, with a value as result. Charges steps, because each character is
 * searched for in `chars`. */
enum xm_status xm_jinja_strip_text(struct xm_jinja_run *r, struct xm_slice s,
                                   const struct xm_slice *chars, int sides,
                                   struct xm_jinja_value *out);
enum xm_jinja_case {
    XM_JINJA_UPPER,
    XM_JINJA_LOWER,
    XM_JINJA_CAPITAL,
    XM_JINJA_WORDS,
    XM_JINJA_SWAPPED,
    XM_JINJA_FOLDED /* for comparisons without case */
};
void xm_jinja_change_case(const struct xm_jinja_run *r, struct xm_slice s,
                          enum xm_jinja_case to, struct xm_jinja_buffer *b);
/* Finds the first occurrence of `what` at or behind byte `from`: *out is its byte offset; SIZE_MAX:
 * none. Charges steps. */
enum xm_status xm_jinja_find_text(struct xm_jinja_run *r, struct xm_slice s,
                                  struct xm_slice what, size_t from, size_t *out);
/* Finds the last occurrence of `what` at or behind byte `from`: *out is its byte offset; SIZE_MAX:
 * none. Charges steps. */
enum xm_status xm_jinja_find_last_text(struct xm_jinja_run *r, struct xm_slice s,
                                       struct xm_slice what, size_t from, size_t *out);
/* Returns the line that begins at byte *from, without its line end; moves *from behind the line
 * end. */
struct xm_slice xm_jinja_next_line(struct xm_slice s, size_t *from);
/* Replaces the first `count` occurrences of `old` (count < 0: all). An empty `old` occurs before
 * each character and at the end. */
enum xm_status xm_jinja_replace(struct xm_jinja_run *r, struct xm_slice s,
                                struct xm_slice old, struct xm_slice to, int64_t count,
                                struct xm_jinja_value *out);

#endif
