/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph text to graph. Each line is read into a `struct xm_parsed_line`, then built through the
 * builder, so that text must satisfy the same checks as the graph of any reader; types in the
 * text are compared with those of the shape functions.
 *
 * Limits against hostile text: memory is proportional to the length of the text, plus at most
 * XM_TEXT_MOST_DATA bytes of data that the text only declares (@7).
 */
#include <string.h>

#include "transformations/graph/infer.h"
#include "transformations/graph/parse.h"
#include "transformations/graph/text_files.h"
#include "transformations/graph/text_format.h"

enum {
    MAX_NUMBER = 1 << 22, /* of values, up to %4194303 */
    MAX_NAMES = 64,       /* tensor names of one value */
    MAX_OPERANDS = 4096
};

enum xm_status
xm_parse_no_memory(struct xm_parser *p)
{
    return xm_fail(p->lex.err, XM_NO_MEMORY, "out of memory to parse a graph");
}

/* ---- numbers of values ------------------------------------------------------------- */

/* Reads "%5, %6 =": numbers of results must be consecutive. */
static enum xm_status
parse_results(struct xm_parser *p, struct xm_parsed_line *line)
{
    uint64_t number;
    line->n_results = 0;
    while (xm_lex_peek(&p->lex) == '%') {
        p->lex.at++;
        XM_TRY(xm_lex_number(&p->lex, MAX_NUMBER - 1, &number));
        if (line->n_results == 0)
            line->number = number;
        else if (number != line->number + line->n_results)
            return xm_lex_fail(&p->lex, "the numbers of results must follow each other");
        if (number < p->n_values && p->values[number])
            return xm_lex_fail(&p->lex, "the value %%%u exists already",
                               (unsigned)number);
        line->n_results++;
        if (!xm_lex_take(&p->lex, ','))
            break;
    }
    return line->n_results ? xm_lex_expect(&p->lex, '=') : XM_OK;
}

static enum xm_status
remember(struct xm_parser *p, uint64_t number, struct xm_value *v)
{
    if (number >= p->n_values) {
        uint64_t n = number * 2 + 64;
        struct xm_value **grown = xm_realloc(p->values, n * sizeof(*grown));
        if (!grown)
            return xm_parse_no_memory(p);
        memset(grown + p->n_values, 0, (n - p->n_values) * sizeof(*grown));
        p->values = grown;
        p->n_values = n;
    }
    p->values[number] = v;
    return XM_OK;
}

static enum xm_status
parse_operand(struct xm_parser *p, struct xm_value **out)
{
    uint64_t number;
    if (xm_lex_take(&p->lex, '_')) {
        *out = xm_none(p->g);
        return *out ? XM_OK : xm_parse_no_memory(p);
    }
    XM_TRY(xm_lex_expect(&p->lex, '%'));
    XM_TRY(xm_lex_number(&p->lex, MAX_NUMBER - 1, &number));
    if (number >= p->n_values || !p->values[number])
        return xm_lex_fail(&p->lex, "there is no value %%%u above", (unsigned)number);
    *out = p->values[number];
    return XM_OK;
}

static enum xm_status
parse_operands(struct xm_parser *p, struct xm_parsed_line *line)
{
    char c = xm_lex_peek(&p->lex);
    line->n_in = 0;
    if (c != '%' && c != '_')
        return XM_OK;
    do {
        if (line->n_in == MAX_OPERANDS)
            return xm_lex_fail(&p->lex, "a node has more than %d operands", MAX_OPERANDS);
        XM_TRY(parse_operand(p, &p->operands[line->n_in]));
        line->n_in++;
    } while (xm_lex_take(&p->lex, ','));
    return XM_OK;
}

/* ---- attributes and names ---------------------------------------------------------- */

static enum xm_status
parse_attr_value(struct xm_parser *p, struct xm_parsed_line *line,
                 const struct xm_attr_info *info)
{
    char word[XM_LEX_WORD];
    const char *value = word;
    struct xm_error e = {0};
    if (info->kind == XM_ATTR_STRING)
        XM_TRY(xm_lex_string(&p->lex, &p->g->arena, &value));
    else
        XM_TRY(xm_lex_word(&p->lex, "a value", word));
    if (xm_attr_set(p->g, &line->attr, info, value, &e) != XM_OK)
        return xm_lex_pass_on(&p->lex, &e);
    return XM_OK;
}

static enum xm_status
parse_attr(struct xm_parser *p, struct xm_parsed_line *line,
           const struct xm_attr_info *info, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(info[i].text, key) != 0)
            continue;
        if (line->attrs_seen & (UINT64_C(1) << i))
            return xm_lex_fail(&p->lex, "the attribute %s is given twice", key);
        line->attrs_seen |= UINT64_C(1) << i;
        return parse_attr_value(p, line, &info[i]);
    }
    return xm_lex_fail(&p->lex, "%s has no attribute '%s'", xm_op_info(line->op)->text,
                       key);
}

/* Reads attributes up to the end of the line, ':' or "names="; *names: it was the latter. */
static enum xm_status
parse_attrs(struct xm_parser *p, struct xm_parsed_line *line, bool *names)
{
    size_t n;
    const struct xm_attr_info *info = xm_op_attrs(line->op, &n);
    char key[XM_LEX_WORD];
    *names = false;
    /* strchr also finds the end of the text */
    while (strchr(":#\n", xm_lex_peek(&p->lex)) == NULL) {
        XM_TRY(xm_lex_word(&p->lex, "an attribute", key));
        XM_TRY(xm_lex_expect(&p->lex, '='));
        *names = strcmp(key, "names") == 0;
        if (*names)
            break;
        XM_TRY(parse_attr(p, line, info, n, key));
    }
    for (size_t i = 0; i < n; i++)
        if (!info[i].default_text && !(line->attrs_seen & (UINT64_C(1) << i)))
            return xm_lex_fail(&p->lex, "%s needs the attribute %s",
                               xm_op_info(line->op)->text, info[i].text);
    return XM_OK;
}

/* Reads {"a","b"} after "names=". */
static enum xm_status
parse_names(struct xm_parser *p, struct xm_value *v)
{
    const char *names[MAX_NAMES], **copy;
    uint32_t n = 0;
    XM_TRY(xm_lex_expect(&p->lex, '{'));
    do {
        if (n == MAX_NAMES)
            return xm_lex_fail(&p->lex, "a value has more than %d names", MAX_NAMES);
        XM_TRY(xm_lex_string(&p->lex, &p->g->arena, &names[n++]));
    } while (xm_lex_take(&p->lex, ','));
    XM_TRY(xm_lex_expect(&p->lex, '}'));
    copy = xm_arena_alloc(&p->g->arena, n * sizeof(*copy));
    if (!copy)
        return xm_parse_no_memory(p);
    memcpy(copy, names, n * sizeof(*copy));
    v->names = copy;
    v->n_names = n;
    return XM_OK;
}

/* ---- nodes ------------------------------------------------------------------------- */

static enum xm_status
fail_type(struct xm_parser *p, const struct xm_type *said, const struct xm_type *found)
{
    struct xm_strbuf a = {0}, b = {0};
    xm_type_print(said, &a);
    xm_type_print(found, &b);
    xm_lex_fail(&p->lex, "the result is %s here, but its operands give %s",
                xm_strbuf_text(&a), xm_strbuf_text(&b));
    xm_strbuf_free(&a);
    xm_strbuf_free(&b);
    return XM_INVALID;
}

/* Reads "as f16": the element type in device memory. */
static enum xm_status
parse_stored(struct xm_parser *p, struct xm_value *v)
{
    char word[XM_LEX_WORD];
    XM_TRY(xm_lex_word(&p->lex, "as", word));
    XM_TRY(xm_lex_element(&p->lex, &v->stored));
    if (strcmp(word, "as") != 0 || (v->stored != XM_F16 && v->stored != XM_F32) ||
        !xm_element_is_float(v->type.element))
        return xm_lex_fail(&p->lex, "only float values can be stored 'as' f16 or f32");
    return XM_OK;
}

/* Reads ": f32[4] as f16, i64[4] names={"ids"}". Types in the text replace inferred ones, which
 * keeps the text's symbols. Text written by hand may have no types. */
static enum xm_status
parse_types(struct xm_parser *p, struct xm_node *n)
{
    char key[XM_LEX_WORD];
    if (!xm_lex_take(&p->lex, ':'))
        return XM_OK;
    for (uint32_t i = 0; i < n->n_out; i++) {
        struct xm_type t;
        if (i > 0)
            XM_TRY(xm_lex_expect(&p->lex, ','));
        XM_TRY(xm_lex_type(&p->lex, &p->g->dims, &t));
        if (!xm_type_agrees(&t, &n->out[i].type))
            return fail_type(p, &t, &n->out[i].type);
        n->out[i].type = t;
        if (xm_lex_peek(&p->lex) == 'a')
            XM_TRY(parse_stored(p, &n->out[i]));
        if (xm_lex_peek(&p->lex) != 'n')
            continue;
        XM_TRY(xm_lex_word(&p->lex, "names", key));
        XM_TRY(xm_lex_expect(&p->lex, '='));
        XM_TRY(parse_names(p, &n->out[i]));
    }
    return XM_OK;
}

static enum xm_status
parse_friendly_name(struct xm_parser *p, struct xm_node *n)
{
    if (xm_lex_take(&p->lex, '#'))
        XM_TRY(xm_lex_string(&p->lex, &p->g->arena, &n->name));
    char c = xm_lex_peek(&p->lex);
    if (c != '\n' && c != '\0')
        return xm_lex_fail(&p->lex, "expected the end of the line, found '%c'", c);
    return XM_OK;
}

/* Checks that the line names each result: a count that is only declared, by attributes, could cost
 * any amount of memory. */
static enum xm_status
check_result_count(struct xm_parser *p, const struct xm_parsed_line *line)
{
    uint64_t n = (uint64_t)xm_op_info(line->op)->n_out;
    if (line->op == XM_OP_RESULT)
        n = 0;
    if (line->op == XM_OP_LINEAR)
        n = line->attr.linear.glu      ? 1
            : line->n_in > XM_LINEAR_W ? (line->n_in - XM_LINEAR_W) / XM_LINEAR_SEGMENT
                                       : 0;
    if (line->op == XM_OP_ROW_CHAIN) {
        n = xm_row_chain_results(line->attr.row_chain.steps);
        if (n == 0) /* not a chain: the builder reports it */
            return XM_OK;
    }
    if (line->op == XM_OP_SPLIT)
        n = (uint64_t)line->attr.split.n;
    if (line->op == XM_OP_VARIADIC_SPLIT) {
        const struct xm_shape *s = line->n_in == 3 ? &p->operands[2]->type.shape : NULL;
        n = s && s->rank == 1 && xm_dim_is_const(s->dim[0]) ? (uint64_t)s->dim[0].n : 0;
    }
    if (line->n_results != n)
        return xm_lex_fail(&p->lex, "%s has %llu results here, not %llu",
                           xm_op_info(line->op)->text, (unsigned long long)n,
                           (unsigned long long)line->n_results);
    return XM_OK;
}

static enum xm_status
build_line(struct xm_parser *p, const struct xm_parsed_line *line, struct xm_node **out)
{
    bool declared = xm_text_has_declared_type(line->op);
    struct xm_node *n =
        xm_node_build_declared(&p->b, line->op, &line->attr, p->operands, line->n_in,
                               declared ? &line->declared : NULL);
    if (!n)
        return xm_lex_pass_on(&p->lex, &p->g->err);
    *out = n;
    if (line->n_results == 0)
        return XM_OK;
    n->id = (uint32_t)line->number;
    for (uint32_t i = 0; i < n->n_out; i++)
        XM_TRY(remember(p, line->number + i, &n->out[i]));
    return XM_OK;
}

static enum xm_status
parse_op(struct xm_parser *p, struct xm_parsed_line *line)
{
    char word[XM_LEX_WORD];
    XM_TRY(xm_lex_word(&p->lex, "an operation", word));
    line->op = xm_op_by_text(word);
    if (line->op == XM_OP_COUNT || line->op == XM_OP_NONE)
        return xm_lex_fail(&p->lex, "there is no operation '%s'", word);
    if (xm_attr_defaults(p->g, line->op, &line->attr) != XM_OK)
        return xm_parse_no_memory(p);
    return XM_OK;
}

static enum xm_status
parse_node(struct xm_parser *p)
{
    struct xm_parsed_line line = {0};
    struct xm_node *n = NULL;
    bool names;
    XM_TRY(parse_results(p, &line));
    XM_TRY(parse_op(p, &line));
    if (xm_text_has_declared_type(line.op))
        XM_TRY(xm_lex_type(&p->lex, &p->g->dims, &line.declared));
    XM_TRY(parse_operands(p, &line));
    XM_TRY(xm_parse_data(p, &line));
    XM_TRY(parse_attrs(p, &line, &names));
    XM_TRY(check_result_count(p, &line));
    XM_TRY(build_line(p, &line, &n));
    if (names)
        XM_TRY(parse_names(p, &n->out[0]));
    if (line.n_results > 0 && !xm_text_has_declared_type(line.op))
        XM_TRY(parse_types(p, n));
    return parse_friendly_name(p, n);
}

/* ---- the whole text ---------------------------------------------------------------- */

static bool
take_word(struct xm_lexer *l, const char *word)
{
    size_t n = strlen(word);
    xm_lex_peek(l);
    if (strncmp(l->at, word, n) != 0 || l->at[n] != ' ')
        return false;
    l->at += n;
    return true;
}

static enum xm_status
parse_property(struct xm_parser *p)
{
    const char *key, *value;
    XM_TRY(xm_lex_string(&p->lex, &p->g->arena, &key));
    XM_TRY(xm_lex_expect(&p->lex, '='));
    XM_TRY(xm_lex_string(&p->lex, &p->g->arena, &value));
    if (xm_graph_add_property(p->g, key, value) != XM_OK)
        return xm_lex_pass_on(&p->lex, &p->g->err);
    return XM_OK;
}

static enum xm_status
parse_file(struct xm_parser *p)
{
    return p->opens_files
               ? xm_text_parse_file(&p->lex, p->g)
               : xm_lex_fail(&p->lex,
                             "this text refers to a file, which is not allowed here");
}

/* Numbers the results, which have no number in the text, after all other nodes. */
static void
number_results(struct xm_parser *p, uint64_t highest)
{
    uint32_t next = (uint32_t)highest;
    xm_for_each_node(n, p->g)
    {
        if (n->op == XM_OP_RESULT)
            n->id = next++;
    }
    p->g->next_id = next;
}

static enum xm_status
parse_text(struct xm_parser *p)
{
    struct xm_lexer *l = &p->lex;
    uint64_t highest = 0;
    char c = xm_lex_peek(l);
    if ((c == '\n' || c == '#') && !xm_lex_next_line(l))
        return xm_lex_fail(l, "the text contains no graph");
    if (!take_word(l, "graph"))
        return xm_lex_fail(l, "expected graph \"name\"");
    XM_TRY(xm_lex_string(l, &p->g->arena, &p->g->name));
    while (xm_lex_next_line(l))
        XM_TRY(take_word(l, "property") ? parse_property(p)
               : take_word(l, "file")   ? parse_file(p)
                                        : parse_node(p));
    for (uint64_t i = 0; i < p->n_values; i++)
        if (p->values[i])
            highest = i + 1;
    number_results(p, highest);
    return XM_OK;
}

static enum xm_status
parse_whole(struct xm_parser *p, const char *text, struct xm_graph **out)
{
    enum xm_status status;
    *out = NULL;
    p->g = xm_graph_create("");
    p->operands = xm_calloc(MAX_OPERANDS, sizeof(struct xm_value *));
    if (p->g && p->operands) {
        p->b = xm_builder_at_end(p->g);
        for (const char *s = text; (s = strchr(s, '?')) != NULL; s++)
            /* new fresh symbols must differ from those in the text */
            xm_dim_reserve_fresh(&p->g->dims, s);
        status = parse_text(p);
    } else {
        status = xm_parse_no_memory(p);
    }
    xm_free(p->values);
    xm_free(p->operands);
    if (status == XM_OK)
        *out = p->g;
    else
        xm_graph_destroy(p->g);
    return status;
}

enum xm_status
xm_graph_parse(const char *text, struct xm_graph **out, struct xm_error *err)
{
    return xm_graph_parse_with(text, NULL, out, err);
}

enum xm_status
xm_graph_parse_with(const char *text, const struct xm_text_blobs *blobs,
                    struct xm_graph **out, struct xm_error *err)
{
    struct xm_parser p = {
        .lex = {text, text, 1, err}, .data_left = XM_TEXT_MOST_DATA, .blobs = blobs};
    return parse_whole(&p, text, out);
}

enum xm_status
xm_graph_parse_dump(const char *text, struct xm_graph **out, struct xm_error *err)
{
    struct xm_parser p = {
        .lex = {text, text, 1, err}, .data_left = XM_TEXT_MOST_DATA, .opens_files = true};
    return parse_whole(&p, text, out);
}
