/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses statements and whole templates.
 *
 * A table has a row for each statement: its first word and the function that parses the rest of its
 * tag and its body.
 */
#include "plugin/text/jinja/node.h"

#include "plugin/text/jinja/jinja.h"
#include "runtime/util/utf8.h"

/* Nesting is limited because each level uses several levels of the C stack. */
enum { MAX_DEPTH = 200 };

struct statement {
    const char *word;
    struct xm_jinja_node *(*parse)(struct xm_jinja_parser *p,
                                   const struct xm_jinja_token *at);
};

enum xm_status
xm_jinja_fail_at(struct xm_error *err, uint32_t line, uint32_t column, const char *fmt,
                 ...)
{
    if (err && err->status == XM_OK) {
        va_list ap;
        va_start(ap, fmt);
        xm_fail_v(err, XM_INVALID, fmt, ap);
        va_end(ap);
        xm_error_prefix(err, "line %u, column %u", line, column);
    }
    return XM_INVALID;
}

struct xm_jinja_node *
xm_jinja_new_node(struct xm_jinja_parser *p, enum xm_jinja_node_kind kind,
                  const struct xm_jinja_token *at)
{
    struct xm_jinja_node *node = xm_arena_alloc(p->arena, sizeof(*node));
    if (!node) {
        xm_no_memory(p->err, "a template");
        return NULL;
    }
    node->kind = kind;
    node->line = at->line;
    node->column = at->column;
    return node;
}

void *
xm_jinja_unexpected(struct xm_jinja_parser *p, const char *expected)
{
    static const char *const names[] = {
        "text",     "'{{'", "'}}'", "'{%'", "the end of the tag",     "",
        "a string", "",     "",     "",     "the end of the template"};
    const struct xm_jinja_token *t = p->at;
    if (*names[t->kind])
        xm_jinja_fail_at(p->err, t->line, t->column, "found %s, expected %s",
                         names[t->kind], expected);
    else
        xm_jinja_fail_at(p->err, t->line, t->column, "found '%.*s', expected %s",
                         (int)(t->text.n < 64 ? t->text.n : 64), t->text.text, expected);
    return NULL;
}

bool
xm_jinja_at_operator(const struct xm_jinja_parser *p, const char *op)
{
    return p->at->kind == XM_JINJA_TOKEN_OPERATOR && xm_jinja_is(p->at->text, op);
}

bool
xm_jinja_at_name(const struct xm_jinja_parser *p, const char *name)
{
    return p->at->kind == XM_JINJA_TOKEN_NAME && xm_jinja_is(p->at->text, name);
}

bool
xm_jinja_skip_operator(struct xm_jinja_parser *p, const char *op)
{
    bool found = xm_jinja_at_operator(p, op);
    p->at += found;
    return found;
}

bool
xm_jinja_skip_name(struct xm_jinja_parser *p, const char *name)
{
    bool found = xm_jinja_at_name(p, name);
    p->at += found;
    return found;
}

bool
xm_jinja_expect_operator(struct xm_jinja_parser *p, const char *op)
{
    if (xm_jinja_skip_operator(p, op))
        return true;
    const struct xm_jinja_token *t = p->at;
    xm_jinja_fail_at(p->err, t->line, t->column, "expected '%s' here", op);
    return false;
}

bool
xm_jinja_parse_enter(struct xm_jinja_parser *p)
{
    if (p->depth < MAX_DEPTH) {
        p->depth++;
        return true;
    }
    xm_jinja_fail_at(p->err, p->at->line, p->at->column,
                     "constructs are nested deeper than %d levels", MAX_DEPTH);
    return false;
}

static bool
expect_block_end(struct xm_jinja_parser *p)
{
    if (p->at->kind != XM_JINJA_TOKEN_BLOCK_END)
        return xm_jinja_unexpected(p, "the end of the tag");
    p->at++;
    return true;
}

static bool parse_body(struct xm_jinja_parser *p, struct xm_jinja_node **list);

/* Parses a body and the tag {% word %} behind it. */
static bool
parse_body_until(struct xm_jinja_parser *p, struct xm_jinja_node **list, const char *word)
{
    if (!parse_body(p, list))
        return false;
    if (p->at->kind != XM_JINJA_TOKEN_END)
        p->at++; /* the {% of the tag */
    if (!xm_jinja_skip_name(p, word))
        return xm_jinja_unexpected(p, word);
    return expect_block_end(p);
}

/* Parses behind "if" or "elif". */
static struct xm_jinja_node *
parse_if(struct xm_jinja_parser *p, const struct xm_jinja_token *at)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_IF, at);
    if (!node || !(node->in[0] = xm_jinja_parse_tuple(p)) || !expect_block_end(p) ||
        !parse_body(p, &node->body))
        return NULL;
    if (p->at->kind != XM_JINJA_TOKEN_END)
        p->at++;
    const struct xm_jinja_token *word = p->at;
    if (xm_jinja_skip_name(p, "elif")) {
        if (!xm_jinja_parse_enter(p) || !(node->orelse = parse_if(p, word)))
            return NULL;
        p->depth--;
        return node;
    }
    if (xm_jinja_skip_name(p, "else"))
        return expect_block_end(p) && parse_body_until(p, &node->orelse, "endif") ? node
                                                                                  : NULL;
    if (!xm_jinja_skip_name(p, "endif"))
        return xm_jinja_unexpected(p, "elif, else or endif");
    return expect_block_end(p) ? node : NULL;
}

static bool
parse_for_head(struct xm_jinja_parser *p, struct xm_jinja_node *node)
{
    if (!(node->in[0] = xm_jinja_parse_target(p, false)))
        return false;
    if (!xm_jinja_skip_name(p, "in"))
        return xm_jinja_unexpected(p, "in");
    if (!(node->in[1] = xm_jinja_parse_no_condition(p)))
        return false;
    if (xm_jinja_skip_name(p, "if") && !(node->in[2] = xm_jinja_parse_expression(p)))
        return false;
    node->is_recursive = xm_jinja_skip_name(p, "recursive");
    return expect_block_end(p);
}

static struct xm_jinja_node *
parse_for(struct xm_jinja_parser *p, const struct xm_jinja_token *at)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_FOR, at);
    if (!node || !parse_for_head(p, node))
        return NULL;
    p->loops++;
    if (!parse_body(p, &node->body))
        return NULL;
    p->loops--;
    if (p->at->kind != XM_JINJA_TOKEN_END)
        p->at++;
    if (xm_jinja_skip_name(p, "else"))
        return expect_block_end(p) && parse_body_until(p, &node->orelse, "endfor") ? node
                                                                                   : NULL;
    if (!xm_jinja_skip_name(p, "endfor"))
        return xm_jinja_unexpected(p, "else or endfor");
    return expect_block_end(p) ? node : NULL;
}

/* Makes the node for captured text with the filters behind "|", if any. */
static struct xm_jinja_node *
parse_captured(struct xm_jinja_parser *p)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_CAPTURED, p->at);
    return xm_jinja_parse_filters(p, node);
}

static struct xm_jinja_node *
parse_set(struct xm_jinja_parser *p, const struct xm_jinja_token *at)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_SET, at);
    if (!node || !(node->in[0] = xm_jinja_parse_target(p, true)))
        return NULL;
    if (xm_jinja_skip_operator(p, "=")) {
        node->in[1] = xm_jinja_parse_tuple(p);
        return node->in[1] && expect_block_end(p) ? node : NULL;
    }
    node->kind = XM_JINJA_SET_BLOCK;
    node->in[1] = parse_captured(p);
    return node->in[1] && expect_block_end(p) &&
                   parse_body_until(p, &node->body, "endset")
               ? node
               : NULL;
}

static struct xm_jinja_node *
parse_filter_block(struct xm_jinja_parser *p, const struct xm_jinja_token *at)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_FILTER_BLOCK, at);
    struct xm_jinja_node *input = xm_jinja_new_node(p, XM_JINJA_CAPTURED, at);
    if (!node || !input)
        return NULL;
    node->in[1] = xm_jinja_parse_filters(p, xm_jinja_parse_filter(p, input));
    return node->in[1] && expect_block_end(p) &&
                   parse_body_until(p, &node->body, "endfilter")
               ? node
               : NULL;
}

/* Parses parameters behind "(": names with or without default values. */
static bool
parse_parameters(struct xm_jinja_parser *p, struct xm_jinja_node **end)
{
    while (!xm_jinja_skip_operator(p, ")")) {
        if (p->at->kind != XM_JINJA_TOKEN_NAME)
            return xm_jinja_unexpected(p, "the name of a parameter");
        struct xm_jinja_node *parameter = xm_jinja_new_node(p, XM_JINJA_KEYWORD, p->at);
        if (!parameter)
            return false;
        parameter->name = p->at++->text;
        if (xm_jinja_skip_operator(p, "=") &&
            !(parameter->in[0] = xm_jinja_parse_expression(p)))
            return false;
        *end = parameter;
        end = &parameter->next;
        if (!xm_jinja_skip_operator(p, ",") && !xm_jinja_at_operator(p, ")"))
            return xm_jinja_unexpected(p, "',' or ')'");
    }
    return true;
}

/* Parses the body of a macro or a call block. It is outside of any loop: break cannot leave it. */
static bool
parse_macro_body(struct xm_jinja_parser *p, struct xm_jinja_node *node, const char *end)
{
    const unsigned loops = p->loops, uses = p->uses;
    p->loops = p->uses = 0;
    bool ok = expect_block_end(p) && parse_body_until(p, &node->body, end);
    node->uses = p->uses;
    p->loops = loops;
    p->uses |= uses;
    return ok;
}

static struct xm_jinja_node *
parse_macro(struct xm_jinja_parser *p, const struct xm_jinja_token *at)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_MACRO, at);
    if (!node)
        return NULL;
    if (p->at->kind != XM_JINJA_TOKEN_NAME)
        return xm_jinja_unexpected(p, "the name of a macro");
    node->name = p->at++->text;
    return xm_jinja_expect_operator(p, "(") && parse_parameters(p, &node->args) &&
                   parse_macro_body(p, node, "endmacro")
               ? node
               : NULL;
}

static struct xm_jinja_node *
parse_call_block(struct xm_jinja_parser *p, const struct xm_jinja_token *at)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_CALL_BLOCK, at);
    struct xm_jinja_node *caller = xm_jinja_new_node(p, XM_JINJA_MACRO, at);
    if (!node || !caller)
        return NULL;
    node->in[1] = caller;
    if (xm_jinja_skip_operator(p, "(") && !parse_parameters(p, &caller->args))
        return NULL;
    node->in[0] = xm_jinja_parse_expression(p);
    if (!node->in[0])
        return NULL;
    if (node->in[0]->kind != XM_JINJA_CALL)
        return xm_jinja_unexpected(p, "a call");
    return parse_macro_body(p, caller, "endcall") ? node : NULL;
}

static struct xm_jinja_node *
parse_with(struct xm_jinja_parser *p, const struct xm_jinja_token *at)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_WITH, at);
    struct xm_jinja_node **end = node ? &node->args : NULL;
    while (node && p->at->kind != XM_JINJA_TOKEN_BLOCK_END) {
        struct xm_jinja_node *set = xm_jinja_new_node(p, XM_JINJA_SET, p->at);
        if (!set || !(set->in[0] = xm_jinja_parse_target(p, false)) ||
            !xm_jinja_expect_operator(p, "=") ||
            !(set->in[1] = xm_jinja_parse_expression(p)))
            return NULL;
        *end = set;
        end = &set->next;
        if (!xm_jinja_skip_operator(p, ","))
            break;
    }
    return node && expect_block_end(p) && parse_body_until(p, &node->body, "endwith")
               ? node
               : NULL;
}

static struct xm_jinja_node *
parse_do(struct xm_jinja_parser *p, const struct xm_jinja_token *at)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_DO, at);
    return node && (node->in[0] = xm_jinja_parse_tuple(p)) && expect_block_end(p) ? node
                                                                                  : NULL;
}

/* Parses {% print a, b %}, which writes both values with nothing between them. */
static struct xm_jinja_node *
parse_print_block(struct xm_jinja_parser *p, const struct xm_jinja_token *at)
{
    struct xm_jinja_node *first = NULL, **end = &first;
    do {
        struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_PRINT, at);
        if (!node || !(node->in[0] = xm_jinja_parse_expression(p)))
            return NULL;
        *end = node;
        end = &node->next;
    } while (xm_jinja_skip_operator(p, ","));
    return expect_block_end(p) ? first : NULL;
}

static struct xm_jinja_node *
parse_generation(struct xm_jinja_parser *p, const struct xm_jinja_token *at)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_GENERATION, at);
    return node && expect_block_end(p) &&
                   parse_body_until(p, &node->body, "endgeneration")
               ? node
               : NULL;
}

static struct xm_jinja_node *
parse_loop_control(struct xm_jinja_parser *p, const struct xm_jinja_token *at)
{
    if (p->loops == 0) {
        xm_jinja_fail_at(p->err, at->line, at->column, "'%.*s' outside of a loop",
                         (int)at->text.n, at->text.text);
        return NULL;
    }
    struct xm_jinja_node *node = xm_jinja_new_node(
        p, xm_jinja_is(at->text, "break") ? XM_JINJA_BREAK : XM_JINJA_CONTINUE, at);
    return node && expect_block_end(p) ? node : NULL;
}

/* Fails, because templates cannot use other templates here. */
static struct xm_jinja_node *
refuse_other_templates(struct xm_jinja_parser *p, const struct xm_jinja_token *at)
{
    xm_jinja_fail_at(
        p->err, at->line, at->column,
        "'%.*s' is not supported: templates cannot inherit or include other templates",
        (int)at->text.n, at->text.text);
    return NULL;
}

static struct xm_jinja_node *
refuse_autoescape(struct xm_jinja_parser *p, const struct xm_jinja_token *at)
{
    xm_jinja_fail_at(p->err, at->line, at->column,
                     "'autoescape' is not supported: use the filter 'escape'");
    return NULL;
}

static const struct statement statements[] = {
    {"if", parse_if},
    {"for", parse_for},
    {"set", parse_set},
    {"macro", parse_macro},
    {"call", parse_call_block},
    {"filter", parse_filter_block},
    {"with", parse_with},
    {"do", parse_do},
    {"print", parse_print_block},
    {"generation", parse_generation},
    {"break", parse_loop_control},
    {"continue", parse_loop_control},
    {"extends", refuse_other_templates},
    {"block", refuse_other_templates},
    {"include", refuse_other_templates},
    {"import", refuse_other_templates},
    {"from", refuse_other_templates},
    {"autoescape", refuse_autoescape},
};

static struct xm_jinja_node *
parse_print(struct xm_jinja_parser *p)
{
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_PRINT, p->at++);
    if (!node || !(node->in[0] = xm_jinja_parse_tuple(p)))
        return NULL;
    if (p->at->kind != XM_JINJA_TOKEN_PRINT_END)
        return xm_jinja_unexpected(p, "'}}'");
    p->at++;
    return node;
}

/* Returns the statement whose word is next; NULL: unknown. */
static const struct statement *
find_statement(const struct xm_jinja_parser *p)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(statements); i++)
        if (xm_jinja_at_name(p, statements[i].word))
            return &statements[i];
    return NULL;
}

/* Returns whether the next word ends a body. The statement that owns the body reads it. */
static bool
at_end_word(const struct xm_jinja_parser *p)
{
    return p->at->kind == XM_JINJA_TOKEN_NAME &&
           (xm_slice_starts_with(p->at->text, xm_slice_of("end", 3)) ||
            xm_jinja_at_name(p, "else") || xm_jinja_at_name(p, "elif"));
}

/* Parses a block. NULL without an error in p->err: the body ends before this tag. */
static struct xm_jinja_node *
parse_block(struct xm_jinja_parser *p)
{
    const struct xm_jinja_token *begin = p->at++;
    const struct statement *statement = find_statement(p);
    if (statement) {
        const struct xm_jinja_token *word = p->at++;
        return statement->parse(p, word);
    }
    if (!at_end_word(p))
        return xm_jinja_unexpected(p, "a statement");
    p->at = begin;
    return NULL;
}

static struct xm_jinja_node *
parse_one(struct xm_jinja_parser *p)
{
    if (p->at->kind == XM_JINJA_TOKEN_PRINT_BEGIN)
        return parse_print(p);
    if (p->at->kind == XM_JINJA_TOKEN_BLOCK_BEGIN)
        return parse_block(p);
    struct xm_jinja_node *node = xm_jinja_new_node(p, XM_JINJA_TEXT, p->at);
    if (node)
        node->name = p->at++->text;
    return node;
}

/* Parses up to the end of the template or a tag that ends a body. */
static bool
parse_body(struct xm_jinja_parser *p, struct xm_jinja_node **list)
{
    if (!xm_jinja_parse_enter(p))
        return false;
    while (p->at->kind != XM_JINJA_TOKEN_END) {
        struct xm_jinja_node *node = parse_one(p);
        if (!node)
            break;
        *list = node;
        while (*list) /* a print tag may give several nodes */
            list = &(*list)->next;
    }
    p->depth--;
    return p->err->status == XM_OK;
}

/* Converts line ends to "\n", and removes one at the end of the template. */
static enum xm_status
clean_source(const char *text, size_t n, struct xm_arena *arena, struct xm_slice *out,
             struct xm_error *err)
{
    struct xm_strbuf repaired = {0};
    xm_utf8_repair(xm_slice_of(text, n), &repaired);
    char *clean = xm_strbuf_ok(&repaired) ? xm_arena_alloc(arena, repaired.n + 1) : NULL;
    size_t length = 0;
    for (size_t i = 0; clean && i < repaired.n; i++) {
        char c = repaired.text[i];
        if (c == '\r' && i + 1 < repaired.n && repaired.text[i + 1] == '\n')
            continue;
        clean[length++] = c == '\r' ? '\n' : c;
    }
    xm_strbuf_free(&repaired);
    if (!clean)
        return xm_no_memory(err, "a template of %zu bytes", n);
    if (length > 0 && clean[length - 1] == '\n')
        length--;
    *out = xm_slice_of(clean, length);
    return XM_OK;
}

static enum xm_status
parse_tokens(const struct xm_jinja_token *tokens, struct xm_jinja_template *tmpl,
             struct xm_error *err)
{
    struct xm_error own = {0}; /* the caller's `err` may be NULL */
    struct xm_jinja_parser p = {.at = tokens, .arena = &tmpl->arena, .err = &own};
    if (parse_body(&p, &tmpl->body) && p.at->kind != XM_JINJA_TOKEN_END) {
        p.at++;
        xm_jinja_unexpected(&p, "a statement other than an end tag");
    }
    return own.status == XM_OK ? XM_OK : xm_fail(err, own.status, "%s", own.text);
}

enum xm_status
xm_jinja_parse(const char *text, size_t n, struct xm_jinja_template **out,
               struct xm_error *err)
{
    *out = NULL;
    struct xm_jinja_template *tmpl = xm_calloc(1, sizeof(*tmpl));
    if (!tmpl)
        return xm_no_memory(err, "a template");
    struct xm_slice source;
    struct xm_jinja_token *tokens = NULL;
    enum xm_status status = clean_source(text, n, &tmpl->arena, &source, err);
    if (status == XM_OK)
        status = xm_jinja_lex(source, &tmpl->arena, &tokens, err);
    if (status == XM_OK)
        status = parse_tokens(tokens, tmpl, err);
    xm_free(tokens);
    if (status == XM_OK)
        *out = tmpl;
    else
        xm_jinja_free(tmpl);
    return status;
}

void
xm_jinja_free(struct xm_jinja_template *tmpl)
{
    if (!tmpl)
        return;
    xm_arena_free(&tmpl->arena);
    xm_free(tmpl);
}
