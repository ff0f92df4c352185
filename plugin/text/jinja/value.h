/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of a running template: Python's types, as far as templates see them.
 *
 * A value is small and passed by value. The memory to which it points is in the arena of the run
 * (or of the template) and is immutable, except for namespaces, iterators, cyclers and loops. All
 * text is well-formed UTF-8; lengths and indices visible to templates count characters, those in C
 * count bytes.
 */
#ifndef XM_PLUGIN_TEXT_JINJA_VALUE_H
#define XM_PLUGIN_TEXT_JINJA_VALUE_H

#include "runtime/util/slice.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

struct xm_jinja_run;

enum xm_jinja_kind {
    XM_JINJA_ABSENT, /* no value: an argument that was not given */
    XM_JINJA_UNDEFINED,
    XM_JINJA_NONE,
    XM_JINJA_BOOL,
    XM_JINJA_INT,
    XM_JINJA_FLOAT,
    XM_JINJA_STRING,
    XM_JINJA_LIST,
    XM_JINJA_TUPLE,
    XM_JINJA_DICT,
    XM_JINJA_VIEW,     /* the result of a mapping's keys(), values() or items() */
    XM_JINJA_RANGE,    /* the result of range() */
    XM_JINJA_ITERATOR, /* the result of map, select and other lazy filters: usable once */
    XM_JINJA_CYCLER,
    XM_JINJA_NAMESPACE,
    XM_JINJA_LOOP,
    XM_JINJA_FUNCTION
};

struct xm_jinja_value {
    enum xm_jinja_kind kind;
    bool is_safe; /* a string marked by the filters safe or escape (safe.c) */
    union {
        bool truth;
        int64_t integer;
        double real;
        /* STRING: its text; UNDEFINED: the name that was looked up */
        struct xm_slice text;
        const struct xm_jinja_list *list; /* also TUPLE     */
        struct xm_jinja_dict *dict;       /* also NAMESPACE */
        const struct xm_jinja_view *view;
        const struct xm_jinja_range *range;
        struct xm_jinja_iterator *iterator;
        struct xm_jinja_cycler *cycler;
        struct xm_jinja_loop *loop;
        const struct xm_jinja_function *function;
    };
};

struct xm_jinja_list {
    size_t n;
    struct xm_jinja_value *items;
    bool is_group; /* a pair made by groupby, with the attributes grouper and list */
};

/* A mapping in order of insertion. */
struct xm_jinja_dict {
    size_t n, capacity;
    struct xm_jinja_value *keys, *values;
};

struct xm_jinja_view {
    const char *name; /* Python's name of this kind of view */
    const struct xm_jinja_list *items;
};

struct xm_jinja_range {
    int64_t start, stop, step;
    const struct xm_jinja_list *items;
};

/* A deferred call of a filter, which runs when the first item is asked for. */
struct xm_jinja_iterator {
    /* the filter to call; NULL: done, `items` is set */
    const struct xm_jinja_builtin *builtin;
    struct xm_jinja_value self;
    const struct xm_jinja_args *args;
    const struct xm_jinja_list *items;
    size_t used; /* items taken so far */
};

/* A cycler() returns its items in turn, again and again; a joiner() stays at its last item. */
struct xm_jinja_cycler {
    const struct xm_jinja_list *items;
    size_t at;
    bool stays;
};

struct xm_jinja_loop {
    const struct xm_jinja_list *items;
    size_t index;                      /* from 0 */
    unsigned depth;                    /* depth of recursive loop() calls, from 0 */
    const struct xm_jinja_node *node;  /* the FOR node */
    struct xm_jinja_frame *scope;      /* the scope outside of the loop */
    const struct xm_jinja_list *asked; /* arguments of the last call of loop.changed() */
};

/* A macro, a global function, or a method with the value on which it is called. */
struct xm_jinja_function {
    const struct xm_jinja_builtin *builtin; /* NULL: a macro */
    struct xm_jinja_value self;
    const struct xm_jinja_node *macro;
    struct xm_jinja_frame *scope; /* the scope in which the macro was defined */
};

/* The arguments of a call: first the positional, then the named ones. */
struct xm_jinja_args {
    size_t n, n_positional;
    struct xm_jinja_value *values;
    struct xm_slice *names; /* names; empty for positional arguments */
};

/* Implementation of a filter, test, global function or method. `self` is the value before "|", "is"
 * or ".". args->values has one value for each of the row's params, ABSENT if it was not given; with
 * is_raw, args are the arguments as they were given. */
enum { XM_JINJA_MAX_PARAMS = 5 };
typedef enum xm_status xm_jinja_fn(struct xm_jinja_run *r, struct xm_jinja_value self,
                                   const struct xm_jinja_args *args,
                                   struct xm_jinja_value *out);
/* A row of a table of such functions. */
struct xm_jinja_builtin {
    const char *name;
    xm_jinja_fn *run;
    const char *const params[XM_JINJA_MAX_PARAMS];
    unsigned n_required;
    bool is_raw;
    bool is_lazy; /* the result is an iterator, which runs the function when first used */
};

/* NULL: no row has this name. */
const struct xm_jinja_builtin *xm_jinja_find_filter(struct xm_slice name);
const struct xm_jinja_builtin *xm_jinja_find_test(struct xm_slice name);
const struct xm_jinja_builtin *xm_jinja_find_global(struct xm_slice name);
const struct xm_jinja_builtin *xm_jinja_find_cycler_method(struct xm_slice name);
const struct xm_jinja_builtin *xm_jinja_find_method(enum xm_jinja_kind kind,
                                                    struct xm_slice name);
const struct xm_jinja_builtin *xm_jinja_find(const struct xm_jinja_builtin *table,
                                             size_t n, struct xm_slice name);

static inline struct xm_jinja_value
xm_jinja_none(void)
{
    return (struct xm_jinja_value){.kind = XM_JINJA_NONE};
}

static inline struct xm_jinja_value
xm_jinja_undefined(struct xm_slice name)
{
    return (struct xm_jinja_value){.kind = XM_JINJA_UNDEFINED, .text = name};
}

static inline struct xm_jinja_value
xm_jinja_bool(bool truth)
{
    return (struct xm_jinja_value){.kind = XM_JINJA_BOOL, .truth = truth};
}

static inline struct xm_jinja_value
xm_jinja_int(int64_t integer)
{
    return (struct xm_jinja_value){.kind = XM_JINJA_INT, .integer = integer};
}

static inline struct xm_jinja_value
xm_jinja_float(double real)
{
    return (struct xm_jinja_value){.kind = XM_JINJA_FLOAT, .real = real};
}

static inline struct xm_jinja_value
xm_jinja_text(struct xm_slice text)
{
    return (struct xm_jinja_value){.kind = XM_JINJA_STRING, .text = text};
}

static inline struct xm_jinja_value
xm_jinja_list_value(const struct xm_jinja_list *list)
{
    return (struct xm_jinja_value){.kind = XM_JINJA_LIST, .list = list};
}

const char *xm_jinja_kind_name(enum xm_jinja_kind kind); /* "a string", … */
bool xm_jinja_truth(struct xm_jinja_value v);
bool xm_jinja_is_number(struct xm_jinja_value v);   /* bool, int, float */
bool xm_jinja_is_list(struct xm_jinja_value v);     /* list, tuple */
double xm_jinja_to_double(struct xm_jinja_value v); /* of a number */
int64_t xm_jinja_to_int(struct xm_jinja_value v);   /* of a bool or int */

/* Read a number as Python's int() and float() do, but without surrounding white space. False: it is
 * not a number, or too large. `base`: 2 to 36; 0: given by the prefix (0x, 0o, 0b). */
bool xm_jinja_read_int_of(struct xm_slice text, int base, int64_t *out);
bool xm_jinja_read_int(struct xm_slice text, int64_t *out); /* base 10 */
bool xm_jinja_read_float(struct xm_slice text, double *out);

#endif
