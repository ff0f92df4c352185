/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses expressions, in order of increasing precedence:
 *
 *     x if c else y  <  or  <  and  <  not  <  == != < > <= >= in, not in
 *         <  + -  <  ~  <  * / // %  <  **  <  unary + -  <  | is  <  . [] ()
 *
 * Binary operators are rows of one table; all of them, even **, are left-associative. A comparison
 * may be a chain: a < b < c.
 */
#include "plugin/text/jinja/node.h"

typedef struct xm_jinja_node *parse_fn(struct xm_jinja_parser *p);

static struct xm_jinja_node *parse_unary(struct xm_jinja_parser *p, bool filters);

static const struct {
    int level;
    const char *op;
} binary_operators[] = {
    {1, "+"}, {1, "-"}, {2, "~"}, {3, "*"}, {3, "/"}, {3, "//"}, {3, "%"}, {4, "**"},
};
enum { FIRST_LEVEL = 1, LAST_LEVEL = 4 };

static bool
at_binary(const struct xm_jinja_parser *p, int level)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(binary_operators); i++)
        if (binary_operators[i].level == level &&
            xm_jinja_at_operator(p, binary_operators[i].op))
            return true;
    return false;
}

static struct xm_jinja_node *
new_pair(struct xm_jinja_parser *p, enum xm_jinja_node_kind kind,
         const struct xm_jinja_token *at, struct xm_jinja_node *a,
         struct xm_jinja_node *b)
{
    struct xm_jinja_node *node = a && b ? xm_jinja_new_node(p, kind, at) : NULL;
    if (!node)
        return NULL;
    node->name = at->text;
    node->in[0] = a;
    node->in[1] = b;
    return node;
}

static struct xm_jinja_node *
parse_binary(struct xm_jinja_parser *p, int level)
{
    struct xm_jinja_node *left =
        level > LAST_LEVEL ? parse_unary(p, true) : parse_binary(p, level + 1);
    while (left && at_binary(p, level)) {
        const struct xm_jinja_token *op = p->at++;
        struct xm_jinja_node *right =
            level > LAST_LEVEL ? parse_unary(p, true) : parse_binary(p, level + 1);
        left = new_pair(p, XM_JINJA_BINARY, op, left, right);
    }
    return left;
}

/* If a comparison operator is next, sets *op to it and moves p->at behind it. False: it is not. */
static bool
take_comparison(struct xm_jinja_parser *p, struct xm_slice *op)
{
    static const char *const operators[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (size_t i = 0; i < XM_ARRAY_LEN(operators); i++)
        if (xm_jinja_skip_operator(p, operators[i])) {
            *op = xm_slice_of(operators[i], strlen(operators[i]));
            return true;
        }
    if (xm_jinja_skip_name(p, "in")) {
        *op = xm_slice_of("in", 2);
        return true;
    }
    if (xm_jinja_at_name(p, "not") && p->at[1].kind == XM_JINJA_TOKEN_NAME &&
        xm_jinja_is(p->at[1].text, "in")) {
        p->at += 2;
        *op = xm_slice_of("not in", 6);
        return true;
    }
    return false;
}

static struct xm_jinja_node *
parse_compare(struct xm_jinja_parser *p)
{
    const struct xm_jinja_token *at = p->at;
    struct xm_jinja_node *left = parse_binary(p, FIRST_LEVEL), *chain = NULL;
    struct xm_jinja_node **end = NULL;
    struct xm_slice op;
    while (left && take_comparison(p, &op)) {
        if (!chain) {
            chain = xm_jinja_new_node(p, XM_JINJA_COMPARE, at);
            if (!chain)
                return NULL;
            chain->in[0] = left;
            end = &chain->args;
        }
        struct xm_jinja_node *with =
            xm_jinja_new_node(p, XM_JINJA_COMPARE_WITH, p->at - 1);
        if (!with || !(with->in[0] = parse_binary(p, FIRST_LEVEL)))
            return NULL;
        with->name = op;
        *end = with;
        end = &with->next;
    }
    return chain ? chain : left;
}

static struct xm_jinja_node *
new_not(struct xm_jinja_parser *p, const struct xm_jinja_token *at,
        struct xm_jinja_node *of)
{
    struct xm_jinja_node *node = of ? xm_jinja_new_node(p, XM_JINJA_NOT, at) : NULL;
    if (node)
        node->in[0] = of;
    return node;
}

static struct xm_jinja_node *
parse_not(struct xm_jinja_parser *p)
{
    const struct xm_jinja_token *at = p->at;
    if (!xm_jinja_skip_name(p, "not"))
        return parse_compare(p);
    if (!xm_jinja_parse_enter(p))
        return NULL;
    struct xm_jinja_node *node = new_not(p, at, parse_not(p));
    p->depth--;
    return node;
}

static struct xm_jinja_node *
parse_logic(struct xm_jinja_parser *p, const char *word, enum xm_jinja_node_kind kind,
            parse_fn *operand)
{
    struct xm_jinja_node *left = operand(p);
    while (left && xm_jinja_skip_name(p, word)) {
        const struct xm_jinja_token *at = p->at - 1;
        left = new_pair(p, kind, at, left, operand(p));
    }
    return left;
}

static struct xm_jinja_node *
parse_and(struct xm_jinja_parser *p)
{
    return parse_logic(p, "and", XM_JINJA_AND, parse_not);
}

struct xm_jinja_node *
xm_jinja_parse_no_condition(struct xm_jinja_parser *p)
{
    if (!xm_jinja_parse_enter(p))
        return NULL;
    struct xm_jinja_node *node = parse_logic(p, "or", XM_JINJA_OR, parse_and);
    p->depth--;
    return node;
}

struct xm_jinja_node *
xm_jinja_parse_expression(struct xm_jinja_parser *p)
{
    struct xm_jinja_node *value = xm_jinja_parse_no_condition(p);
    while (value && xm_jinja_skip_name(p, "if")) {
        const struct xm_jinja_token *at = p->at - 1;
        struct xm_jinja_node *test = xm_jinja_parse_no_condition(p);
        struct xm_jinja_node *node = new_pair(p, XM_JINJA_CONDITIONAL, at, test, value);
        if (!node || !xm_jinja_parse_enter(p))
            return NULL;
        if (xm_jinja_skip_name(p, "else") &&
            !(node->in[2] = xm_jinja_parse_expression(p)))
            return NULL;
        p->depth--;
        value = node;
    }
    return value;
}

/* Parses expressions separated by commas, up to and including the operator `close`. */
static bool
parse_items(struct xm_jinja_parser *p, const char *close, struct xm_jinja_node **end)
{
    while (!xm_jinja_skip_operator(p, close)) {
        struct xm_jinja_node *item = xm_jinja_parse_expression(p);
        if (!item)
            return false;
        *end = item;
        end = &item->next;
        if (!xm_jinja_skip_operator(p, ",") && !xm_jinja_at_operator(p, close))
            return xm_jinja_unexpected(p, close);
    }
    return true;
}

static struct xm_jinja_node *
parse_list(struct xm_jinja_parser *p)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_MAKE_LIST, p->at - 1);
    return node && parse_items(p, "]", &node->args) ? node : NULL;
}

static struct xm_jinja_node *
parse_dict(struct xm_jinja_parser *p)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_MAKE_DICT, p->at - 1);
    struct xm_jinja_node **end = node ? &node->args : NULL;
    while (node && !xm_jinja_skip_operator(p, "}")) {
        struct xm_jinja_node *key = xm_jinja_parse_expression(p);
        if (!key || !xm_jinja_expect_operator(p, ":"))
            return NULL;
        struct xm_jinja_node *value = xm_jinja_parse_expression(p);
        if (!value)
            return NULL;
        *end = key;
        key->next = value;
        end = &value->next;
        if (!xm_jinja_skip_operator(p, ",") && !xm_jinja_at_operator(p, "}"))
            return xm_jinja_unexpected(p, "',' or '}'");
    }
    return node;
}

/* Parses behind "(": (a) is a itself, (a,) and () are tuples. */
static struct xm_jinja_node *
parse_parentheses(struct xm_jinja_parser *p)
{
    struct xm_jinja_node *tuple = xm_jinja_new_node(p, XM_JINJA_MAKE_TUPLE, p->at - 1);
    if (!tuple || xm_jinja_skip_operator(p, ")"))
        return tuple;
    struct xm_jinja_node *first = xm_jinja_parse_expression(p);
    if (!first || xm_jinja_skip_operator(p, ")"))
        return first;
    if (!xm_jinja_expect_operator(p, ","))
        return NULL;
    tuple->args = first;
    return parse_items(p, ")", &first->next) ? tuple : NULL;
}

struct xm_jinja_node *
xm_jinja_parse_tuple(struct xm_jinja_parser *p)
{
    struct xm_jinja_node *first = xm_jinja_parse_expression(p);
    if (!first || !xm_jinja_at_operator(p, ","))
        return first;
    struct xm_jinja_node *tuple = xm_jinja_new_node(p, XM_JINJA_MAKE_TUPLE, p->at);
    struct xm_jinja_node *last = first;
    if (!tuple)
        return NULL;
    tuple->args = first;
    while (xm_jinja_skip_operator(p, ",")) {
        if (p->at->kind == XM_JINJA_TOKEN_PRINT_END ||
            p->at->kind == XM_JINJA_TOKEN_BLOCK_END)
            break;
        if (!(last->next = xm_jinja_parse_expression(p)))
            return NULL;
        last = last->next;
    }
    return tuple;
}

/* Parses an assignment target: a name, targets in parentheses or, with `attributes`,
 * name.attribute. */
static struct xm_jinja_node *
parse_one_target(struct xm_jinja_parser *p, bool attributes)
{
    if (xm_jinja_at_operator(p, "(")) {
        if (!xm_jinja_parse_enter(p))
            return NULL;
        p->at++;
        struct xm_jinja_node *inner = xm_jinja_parse_target(p, attributes);
        p->depth--;
        return inner && xm_jinja_expect_operator(p, ")") ? inner : NULL;
    }
    if (p->at->kind != XM_JINJA_TOKEN_NAME)
        return xm_jinja_unexpected(p, "a name");
    struct xm_jinja_node *name = xm_jinja_new_node(p, XM_JINJA_NAME, p->at);
    if (!name)
        return NULL;
    name->name = p->at++->text;
    if (!attributes || !xm_jinja_skip_operator(p, "."))
        return name;
    if (p->at->kind != XM_JINJA_TOKEN_NAME)
        return xm_jinja_unexpected(p, "the name of an attribute");
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_ATTRIBUTE, p->at);
    if (!node)
        return NULL;
    node->name = p->at++->text;
    node->in[0] = name;
    return node;
}

struct xm_jinja_node *
xm_jinja_parse_target(struct xm_jinja_parser *p, bool attributes)
{
    const struct xm_jinja_token *at = p->at;
    struct xm_jinja_node *first = parse_one_target(p, attributes), *last = first;
    if (!first)
        return NULL;
    if (xm_jinja_at_operator(p, ",")) {
        first = xm_jinja_new_node(p, XM_JINJA_MAKE_TUPLE, at);
        if (!first)
            return NULL;
        first->args = last;
    }
    while (xm_jinja_skip_operator(p, ",") && !xm_jinja_at_name(p, "in") &&
           (p->at->kind == XM_JINJA_TOKEN_NAME || xm_jinja_at_operator(p, "("))) {
        if (!(last->next = parse_one_target(p, attributes)))
            return NULL;
        last = last->next;
    }
    return first;
}

/* Parses a string; adjacent strings are concatenated. */
static struct xm_jinja_node *
parse_string(struct xm_jinja_parser *p)
{
    const struct xm_jinja_token *first = p->at;
    size_t n = 0, used = 0;
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_CONSTANT, first);
    for (; p->at->kind == XM_JINJA_TOKEN_STRING; p->at++)
        n += p->at->text.n;
    char *text = xm_arena_alloc(p->arena, n + 1);
    if (!node || !text) {
        xm_no_memory(p->err, "a template");
        return NULL;
    }
    for (const struct xm_jinja_token *t = first; t < p->at; t++) {
        memcpy(text + used, t->text.text, t->text.n);
        used += t->text.n;
    }
    node->constant = xm_jinja_text(xm_slice_of(text, n));
    return node;
}

static struct xm_jinja_node *
parse_number(struct xm_jinja_parser *p)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_CONSTANT, p->at);
    if (!node)
        return NULL;
    bool is_int = p->at->kind == XM_JINJA_TOKEN_INT;
    node->constant.kind = is_int ? XM_JINJA_INT : XM_JINJA_FLOAT;
    if (is_int ? !xm_jinja_read_int_of(p->at->text, 0, &node->constant.integer)
               : !xm_jinja_read_float(p->at->text, &node->constant.real))
        return xm_jinja_unexpected(p, "a smaller number");
    p->at++;
    return node;
}

static unsigned
special_name(struct xm_slice name)
{
    return xm_jinja_is(name, "caller")    ? XM_JINJA_USES_CALLER
           : xm_jinja_is(name, "kwargs")  ? XM_JINJA_USES_KWARGS
           : xm_jinja_is(name, "varargs") ? XM_JINJA_USES_VARARGS
                                          : 0;
}

static struct xm_jinja_node *
parse_name(struct xm_jinja_parser *p)
{
    static const struct {
        const char *name;
        enum xm_jinja_kind kind;
        bool truth;
    } constants[] = {
        {"true", XM_JINJA_BOOL, true},   {"True", XM_JINJA_BOOL, true},
        {"false", XM_JINJA_BOOL, false}, {"False", XM_JINJA_BOOL, false},
        {"none", XM_JINJA_NONE, false},  {"None", XM_JINJA_NONE, false},
    };
    const struct xm_jinja_token *at = p->at++;
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_NAME, at);
    if (!node)
        return NULL;
    node->name = at->text;
    p->uses |= special_name(at->text);
    for (size_t i = 0; i < XM_ARRAY_LEN(constants); i++)
        if (xm_jinja_is(at->text, constants[i].name)) {
            node->kind = XM_JINJA_CONSTANT;
            node->constant.kind = constants[i].kind;
            node->constant.truth = constants[i].truth;
        }
    return node;
}

static struct xm_jinja_node *
parse_primary(struct xm_jinja_parser *p)
{
    switch (p->at->kind) {
    case XM_JINJA_TOKEN_NAME:
        return parse_name(p);
    case XM_JINJA_TOKEN_STRING:
        return parse_string(p);
    case XM_JINJA_TOKEN_INT:
    case XM_JINJA_TOKEN_FLOAT:
        return parse_number(p);
    default:
        break;
    }
    if (xm_jinja_skip_operator(p, "("))
        return parse_parentheses(p);
    if (xm_jinja_skip_operator(p, "["))
        return parse_list(p);
    if (xm_jinja_skip_operator(p, "{"))
        return parse_dict(p);
    return xm_jinja_unexpected(p, "an expression");
}

/* Parses one argument: x, name=x, *x or **x. */
static struct xm_jinja_node *
parse_arg(struct xm_jinja_parser *p)
{
    const bool spread = xm_jinja_at_operator(p, "*") || xm_jinja_at_operator(p, "**");
    const bool has_name = p->at->kind == XM_JINJA_TOKEN_NAME &&
                          p->at[1].kind == XM_JINJA_TOKEN_OPERATOR &&
                          xm_jinja_is(p->at[1].text, "=");
    if (!spread && !has_name)
        return xm_jinja_parse_expression(p);
    struct xm_jinja_node *arg =
        xm_jinja_new_node(p, spread ? XM_JINJA_SPREAD : XM_JINJA_KEYWORD, p->at);
    if (!arg)
        return NULL;
    arg->name = p->at->text;
    p->at += spread ? 1 : 2;
    return (arg->in[0] = xm_jinja_parse_expression(p)) ? arg : NULL;
}

/* Parses arguments behind "(", positional ones first. */
static bool
parse_args(struct xm_jinja_parser *p, struct xm_jinja_node **end)
{
    bool named = false;
    while (!xm_jinja_skip_operator(p, ")")) {
        struct xm_jinja_node *arg = parse_arg(p);
        const bool plain =
            arg && arg->kind != XM_JINJA_KEYWORD && arg->kind != XM_JINJA_SPREAD;
        if (!arg)
            return false;
        if (named && plain)
            return xm_jinja_unexpected(p, "an argument with a name");
        named = named || !plain;
        *end = arg;
        end = &arg->next;
        if (!xm_jinja_skip_operator(p, ",") && !xm_jinja_at_operator(p, ")"))
            return xm_jinja_unexpected(p, "',' or ')'");
    }
    return true;
}

/* Parses behind "[": an index, or a slice whose parts may be omitted. */
static struct xm_jinja_node *
parse_subscript(struct xm_jinja_parser *p, struct xm_jinja_node *of)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_ITEM, p->at - 1);
    if (!node)
        return NULL;
    node->in[0] = of;
    if (xm_jinja_at_operator(p, "]"))
        return xm_jinja_unexpected(p, "an expression");
    for (int part = 1; part <= 3; part++) {
        if (!xm_jinja_at_operator(p, ":") && !xm_jinja_at_operator(p, "]") &&
            !(node->in[part] = xm_jinja_parse_expression(p)))
            return NULL;
        if (xm_jinja_skip_operator(p, "]"))
            return node;
        if (part == 3 || !xm_jinja_expect_operator(p, ":"))
            return xm_jinja_unexpected(p, "']'");
        node->kind = XM_JINJA_SLICE;
    }
    return node;
}

/* Parses behind ".": a name (an attribute) or a number (an item). */
static struct xm_jinja_node *
parse_attribute(struct xm_jinja_parser *p, struct xm_jinja_node *of)
{
    bool is_name = p->at->kind == XM_JINJA_TOKEN_NAME;
    if (!is_name && p->at->kind != XM_JINJA_TOKEN_INT)
        return xm_jinja_unexpected(p, "the name of an attribute");
    struct xm_jinja_node *node =
        xm_jinja_new_node(p, is_name ? XM_JINJA_ATTRIBUTE : XM_JINJA_ITEM, p->at);
    if (!node)
        return NULL;
    node->in[0] = of;
    node->name = p->at->text;
    if (!is_name)
        return (node->in[1] = parse_number(p)) ? node : NULL;
    p->at++;
    return node;
}

static struct xm_jinja_node *
parse_call(struct xm_jinja_parser *p, struct xm_jinja_node *of)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_CALL, p->at - 1);
    if (!node)
        return NULL;
    node->in[0] = of;
    return parse_args(p, &node->args) ? node : NULL;
}

struct xm_jinja_node *
xm_jinja_parse_postfix(struct xm_jinja_parser *p, struct xm_jinja_node *node)
{
    for (;;) {
        if (!node)
            return NULL;
        if (xm_jinja_skip_operator(p, "."))
            node = parse_attribute(p, node);
        else if (xm_jinja_skip_operator(p, "["))
            node = parse_subscript(p, node);
        else if (xm_jinja_skip_operator(p, "("))
            node = parse_call(p, node);
        else
            return node;
    }
}

struct xm_jinja_node *
xm_jinja_parse_filter(struct xm_jinja_parser *p, struct xm_jinja_node *input)
{
    if (p->at->kind != XM_JINJA_TOKEN_NAME)
        return xm_jinja_unexpected(p, "the name of a filter");
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_FILTER, p->at);
    if (!node)
        return NULL;
    node->name = p->at->text;
    node->in[0] = input;
    /* NULL: unknown; evaluating it fails */
    node->builtin = xm_jinja_find_filter(node->name);
    p->at++;
    if (xm_jinja_skip_operator(p, "(") && !parse_args(p, &node->args))
        return NULL;
    return node;
}

/* Returns whether an argument without brackets follows a test, as in: x is divisibleby 3. */
static bool
at_bare_argument(const struct xm_jinja_parser *p)
{
    static const char *const others[] = {"else", "or", "and", "is", "in", "not", "if"};
    enum xm_jinja_token_kind kind = p->at->kind;
    for (size_t i = 0; i < XM_ARRAY_LEN(others); i++)
        if (xm_jinja_at_name(p, others[i]))
            return false;
    return kind == XM_JINJA_TOKEN_NAME || kind == XM_JINJA_TOKEN_STRING ||
           kind == XM_JINJA_TOKEN_INT || kind == XM_JINJA_TOKEN_FLOAT ||
           xm_jinja_at_operator(p, "[") || xm_jinja_at_operator(p, "{");
}

/* Parses a test behind "is". */
static struct xm_jinja_node *
parse_test(struct xm_jinja_parser *p, struct xm_jinja_node *of)
{
    const struct xm_jinja_token *at = p->at - 1;
    bool negated = xm_jinja_skip_name(p, "not");
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_TEST, p->at);
    if (!node)
        return NULL;
    node->name = p->at->text;
    node->in[0] = of;
    if (p->at->kind != XM_JINJA_TOKEN_NAME)
        return xm_jinja_unexpected(p, "the name of a test");
    node->builtin = xm_jinja_find_test(node->name);
    p->at++;
    if (xm_jinja_skip_operator(p, "(")) {
        if (!parse_args(p, &node->args))
            return NULL;
    } else if (at_bare_argument(p)) {
        if (!(node->args = xm_jinja_parse_postfix(p, parse_primary(p))))
            return NULL;
    }
    return negated ? new_not(p, at, node) : node;
}

struct xm_jinja_node *
xm_jinja_parse_filters(struct xm_jinja_parser *p, struct xm_jinja_node *node)
{
    for (;;) {
        if (!node)
            return NULL;
        if (xm_jinja_skip_operator(p, "|"))
            node = xm_jinja_parse_filter(p, node);
        else if (xm_jinja_skip_name(p, "is"))
            node = parse_test(p, node);
        else if (xm_jinja_skip_operator(p, "("))
            node = parse_call(p, node);
        else
            return node;
    }
}

static struct xm_jinja_node *
parse_unary(struct xm_jinja_parser *p, bool filters)
{
    struct xm_jinja_node *node = NULL;
    if (!xm_jinja_parse_enter(p))
        return NULL;
    const struct xm_jinja_token *at = p->at;
    if (xm_jinja_skip_operator(p, "-") || xm_jinja_skip_operator(p, "+")) {
        struct xm_jinja_node *of = parse_unary(p, false);
        node = of ? xm_jinja_new_node(p, XM_JINJA_UNARY, at) : NULL;
        if (node) {
            node->name = at->text;
            node->in[0] = of;
        }
    } else {
        node = parse_primary(p);
    }
    node = xm_jinja_parse_postfix(p, node);
    if (filters)
        node = xm_jinja_parse_filters(p, node);
    p->depth--;
    return node;
}
