/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/tool_grammar.h"

#include <string.h>

#include "plugin/text/tool_arguments.h"

/* ---- syntaxes -------------------------------------------------------------------------------- */

enum piece_kind {
    LAST,
    MARK, /* a token with this spelling */
    TEXT, /* literal characters */
    NAME, /* the tool's name */
    ARGUMENTS,
    ANY_TEXT
};
struct piece {
    enum piece_kind kind;
    const char *text;
};

enum { MOST_PIECES = 10 };

/* The syntax of a model's calls. With messages (gpt-oss), any number of `thought` messages come
 * first; an `answer` message in place of a call is the last. Without messages, text may stand
 * before calls. */
struct syntax {
    enum xm_call_form form;
    const char *mentioned; /* must be in the template; NULL: any template */
    enum xm_argument_form arguments;
    struct piece call[MOST_PIECES];
    const char *between;               /* text between calls; NULL: at most one call */
    struct piece thought[MOST_PIECES]; /* a message with any text */
    struct piece answer[MOST_PIECES];
};

/* clang-format off */
static const struct syntax syntaxes[] = {
    { XM_CALL_JSON, "<function=", XM_ARGUMENTS_PARAMETERS,
      { { MARK, "<tool_call>" }, { TEXT, "\n<function=" }, { NAME, NULL }, { TEXT, ">\n" },
        { ARGUMENTS, NULL }, { TEXT, "</function>\n" }, { MARK, "</tool_call>" } },
      "\n", { { LAST, NULL } }, { { LAST, NULL } } },
    { XM_CALL_JSON, NULL, XM_ARGUMENTS_JSON,
      { { MARK, "<tool_call>" }, { TEXT, "\n{\"name\": \"" }, { NAME, NULL },
        { TEXT, "\", \"arguments\": " }, { ARGUMENTS, NULL }, { TEXT, "}\n" },
        { MARK, "</tool_call>" } },
      "\n", { { LAST, NULL } }, { { LAST, NULL } } },
    { XM_CALL_NAMED, NULL, XM_ARGUMENTS_JSON,
      { { MARK, "<|channel|>" }, { TEXT, "commentary to=functions." }, { NAME, NULL },
        { TEXT, " " }, { MARK, "<|constrain|>" }, { TEXT, "json" }, { MARK, "<|message|>" },
        { ARGUMENTS, NULL } },
      NULL,
      { { MARK, "<|channel|>" }, { TEXT, "analysis" }, { MARK, "<|message|>" },
        { MARK, "<|end|>" }, { MARK, "<|start|>" }, { TEXT, "assistant" } },
      { { MARK, "<|channel|>" }, { TEXT, "final" }, { MARK, "<|message|>" },
        { ANY_TEXT, NULL } } },
    { XM_CALL_BRACES, NULL, XM_ARGUMENTS_BRACES,
      { { MARK, "<|tool_call>" }, { TEXT, "call:" }, { NAME, NULL }, { ARGUMENTS, NULL },
        { MARK, "<tool_call|>" } },
      "", { { LAST, NULL } }, { { LAST, NULL } } },
};
/* clang-format on */

static const struct syntax *
find_syntax(const struct xm_tokenizer *tokenizer, const struct xm_chat_template *tmpl)
{
    const struct syntax *found = NULL;
    struct xm_answer a;
    xm_answer_init(&a, tokenizer, tmpl);
    const enum xm_call_form form = xm_answer_call_form(&a);
    for (size_t i = 0; i < XM_ARRAY_LEN(syntaxes) && !found; i++) {
        const struct syntax *s = &syntaxes[i];
        if (form != XM_CALL_NONE && s->form == form &&
            (!s->mentioned || xm_chat_template_mentions(tmpl, s->mentioned)))
            found = s;
    }
    for (size_t i = 0; found && i < MOST_PIECES; i++)
        if (found->call[i].kind == MARK &&
            xm_tokenizer_id_of(tokenizer, found->call[i].text) < 0)
            return NULL;
    return found;
}

/* ---- the grammar ----------------------------------------------------------------------------- */

struct making {
    struct xm_grammar_tree *t;
    const struct syntax *syntax;
    const struct xm_tool_choice *choice;
    uint32_t any;             /* node: any text */
    const struct xm_tool *at; /* tool whose call is being added; NULL: none */
    struct xm_nodes first;    /* first node of each tool's call */
    struct xm_error *err;
};

static uint32_t
any_text(struct xm_grammar_tree *t)
{
    struct xm_class all = {0};
    xm_class_negate(&all);
    const uint32_t one = xm_tree_class(t, &all, XM_SPELL_PLAIN);
    xm_class_free(&all);
    return xm_tree_repeat(t, one, 0, XM_UNBOUNDED);
}

/* Sets *node to the pieces in order. `tool`: for NAME and ARGUMENTS; NULL: the pieces have
 * neither. */
static enum xm_status
add_pieces(struct making *m, const struct piece *pieces, const struct xm_tool *tool,
           uint32_t *node)
{
    uint32_t list[MOST_PIECES];
    size_t n = 0;
    for (; n < MOST_PIECES && pieces[n].kind != LAST; n++) {
        const char *text = pieces[n].text;
        switch (pieces[n].kind) {
        case MARK:
            list[n] = xm_tree_token(m->t, text, strlen(text), 0);
            break;
        case NAME:
            list[n] = xm_tree_text(m->t, tool->name.text, tool->name.n);
            break;
        case ARGUMENTS:
            XM_TRY(xm_tool_arguments(m->t, m->syntax->arguments, tool,
                                     m->choice->must_call || tool->strict, &list[n],
                                     m->err));
            break;
        case ANY_TEXT:
            list[n] = m->any;
            break;
        case TEXT:
        case LAST:
            list[n] = xm_tree_text(m->t, text, strlen(text));
            break;
        }
    }
    *node = xm_tree_all(m->t, list, n);
    return XM_OK;
}

static enum xm_status
add_calls(struct making *m, uint32_t *node)
{
    const struct xm_tools *tools = &m->choice->tools;
    const char *between = m->syntax->between;
    struct xm_nodes nodes = {0};
    enum xm_status s = XM_OK;
    for (size_t i = 0; i < tools->n && s == XM_OK; i++) {
        uint32_t one = 0;
        m->at = &tools->list[i];
        xm_nodes_add(m->t, &m->first, (uint32_t)m->t->n_nodes);
        s = add_pieces(m, m->syntax->call, &tools->list[i], &one);
        xm_tree_mark(m->t, one);
        xm_nodes_add(m->t, &nodes, one);
    }
    if (s == XM_OK)
        m->at = NULL;
    const uint32_t call = xm_tree_any(m->t, nodes.list, nodes.n);
    xm_nodes_free(&nodes);
    *node = call;
    if (between && !m->choice->one) {
        const uint32_t next = xm_tree_all(
            m->t, (uint32_t[]){xm_tree_text(m->t, between, strlen(between)), call}, 2);
        *node = xm_tree_all(
            m->t, (uint32_t[]){call, xm_tree_repeat(m->t, next, 0, XM_MOST_CALLS - 1)},
            2);
    }
    return s;
}

static enum xm_status
add_root(struct making *m, uint32_t *node)
{
    const bool has_messages = m->syntax->thought[0].kind != LAST;
    const bool must_call = m->choice->must_call;
    uint32_t calls = 0, thought = 0, answer = 0;
    m->any = any_text(m->t);
    XM_TRY(add_calls(m, &calls));
    if (!has_messages) {
        const uint32_t breaks = xm_tree_repeat(m->t, xm_tree_text(m->t, "\n", 1), 0, 2);
        *node = xm_tree_all(m->t,
                            (uint32_t[]){must_call ? breaks : m->any,
                                         xm_tree_repeat(m->t, calls, must_call, 1)},
                            2);
        return XM_OK;
    }
    XM_TRY(add_pieces(m, m->syntax->thought, NULL, &thought));
    XM_TRY(add_pieces(m, m->syntax->answer, NULL, &answer));
    if (!must_call)
        calls = xm_tree_any(m->t, (uint32_t[]){calls, answer}, 2);
    *node = xm_tree_all(
        m->t, (uint32_t[]){xm_tree_repeat(m->t, thought, 0, XM_UNBOUNDED), calls}, 2);
    return XM_OK;
}

/* Returns the tool during whose call the grammar became too large; NULL: not known. */
static const struct xm_tool *
too_large_at(const struct making *m)
{
    const struct xm_tool *found = NULL;
    for (size_t i = 0; i < m->first.n && m->first.list[i] <= m->t->too_large_at; i++)
        found = &m->choice->tools.list[i];
    return found;
}

static enum xm_status
make(struct making *m, struct xm_grammar **out)
{
    const uint32_t root = xm_tree_add_rule(m->t, "root", 4);
    uint32_t node = 0;
    XM_TRY(add_root(m, &node));
    XM_TRY(xm_tree_check(m->t, m->err));
    m->t->rules[root].node = node;
    const enum xm_status s = xm_grammar_compile(m->t, root, out, m->err);
    m->at = too_large_at(m);
    return s;
}

enum xm_status
xm_tool_grammar(const struct xm_tool_choice *choice, const struct xm_tokenizer *tokenizer,
                const struct xm_chat_template *tmpl, struct xm_grammar **out,
                const struct xm_tool **which, struct xm_error *err)
{
    struct xm_grammar_tree t = {0};
    struct making m = {
        .t = &t, .syntax = find_syntax(tokenizer, tmpl), .choice = choice, .err = err};
    *out = NULL;
    if (which)
        *which = NULL;
    if (!m.syntax)
        return xm_fail(err, XM_UNSUPPORTED,
                       "tool calls cannot be forced, because the format of this model's "
                       "tool calls is not known");
    const enum xm_status s = make(&m, out);
    if (which)
        *which = m.at;
    xm_nodes_free(&m.first);
    xm_tree_free(&t);
    return s;
}
