/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/conversation.h"

#include <string.h>

#include "runtime/util/memory.h"

static void
free_failed(struct xm_failed_turn *turn)
{
    xm_strbuf_free(&turn->text);
    xm_strbuf_free(&turn->answer);
    xm_strbuf_free(&turn->error);
}

static bool
is_by(const struct xm_conversation *c, size_t i, const char *role)
{
    return i < c->n && strcmp(c->messages[i].role, role) == 0;
}

/* Returns the index of the first turn's message. */
static size_t
turns_begin(const struct xm_conversation *c)
{
    return is_by(c, 0, "system") ? 1 : 0;
}

enum xm_status
xm_conversation_add(struct xm_conversation *c, const char *role, const char *text,
                    size_t n, struct xm_error *err)
{
    struct xm_message m = {.role = role};
    struct xm_message *grown = xm_realloc(c->messages, (c->n + 1) * sizeof(*c->messages));
    if (grown)
        c->messages = grown;
    xm_strbuf_add_n(&m.text, text, n);
    if (!grown || !xm_strbuf_ok(&m.text)) {
        xm_strbuf_free(&m.text);
        return xm_no_memory(err, "the conversation");
    }
    c->messages[c->n++] = m;
    if (c->first < turns_begin(c))
        c->first = turns_begin(c);
    return XM_OK;
}

void
xm_conversation_pop(struct xm_conversation *c)
{
    if (c->n <= turns_begin(c))
        return;
    xm_strbuf_free(&c->messages[--c->n].text);
    /* the prompt's messages were all removed: there is room for older ones again */
    if (c->first >= c->n)
        c->first = turns_begin(c);
}

void
xm_conversation_fail(struct xm_conversation *c, const struct xm_strbuf *answer,
                     const char *error)
{
    struct xm_failed_turn turn = {.behind = c->n - 1};
    const struct xm_strbuf *text = &c->messages[c->n - 1].text;
    struct xm_failed_turn *grown =
        xm_realloc(c->failed, (c->n_failed + 1) * sizeof(*c->failed));
    if (grown)
        c->failed = grown;
    xm_strbuf_add_n(&turn.text, xm_strbuf_text(text), text->n);
    xm_strbuf_add_n(&turn.answer, xm_strbuf_text(answer), answer->n);
    xm_strbuf_add(&turn.error, error);
    if (grown && xm_strbuf_ok(&turn.text) && xm_strbuf_ok(&turn.answer) &&
        xm_strbuf_ok(&turn.error))
        c->failed[c->n_failed++] = turn;
    else
        free_failed(&turn);
    xm_conversation_pop(c);
}

bool
xm_conversation_undo_answer(struct xm_conversation *c)
{
    bool found = c->n > turns_begin(c);
    while (c->n > turns_begin(c) && !is_by(c, c->n - 1, "user"))
        xm_conversation_pop(c);
    return found;
}

bool
xm_conversation_undo(struct xm_conversation *c)
{
    bool found = xm_conversation_undo_answer(c);
    xm_conversation_pop(c);
    return found;
}

void
xm_conversation_clear(struct xm_conversation *c)
{
    while (c->n > turns_begin(c))
        xm_conversation_pop(c);
    c->first = turns_begin(c);
}

bool
xm_conversation_leave_out(struct xm_conversation *c)
{
    size_t next = c->first + 1;
    while (next < c->n && !is_by(c, next, "user"))
        next++;
    if (next >= c->n)
        return false;
    c->first = next;
    return true;
}

yyjson_mut_val *
xm_conversation_add_json(const struct xm_conversation *c, bool all, struct xm_json_out *j)
{
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "messages");
    for (size_t i = 0; i < c->n; i++) {
        const struct xm_message *m = &c->messages[i];
        if (!all && i >= turns_begin(c) && i < c->first)
            continue;
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_json_add_text(j, o, "role", m->role, strlen(m->role));
        xm_json_add_text(j, o, "content", xm_strbuf_text(&m->text), m->text.n);
    }
    return list;
}

char *
xm_conversation_messages(const struct xm_conversation *c, struct xm_error *err)
{
    struct xm_json_out j;
    xm_json_begin(&j);
    yyjson_mut_val *list = xm_conversation_add_json(c, false, &j);
    char *messages = j.failed ? NULL : xm_json_value_text(list);
    xm_json_end(&j);
    if (!messages)
        xm_no_memory(err, "the conversation");
    return messages;
}

void
xm_conversation_add_failed_json(const struct xm_conversation *c, struct xm_json_out *j)
{
    yyjson_mut_val *list = c->n_failed ? xm_json_add_array(j, NULL, "failed") : NULL;
    for (size_t i = 0; i < c->n_failed; i++) {
        const struct xm_failed_turn *turn = &c->failed[i];
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_json_add_text(j, o, "content", xm_strbuf_text(&turn->text), turn->text.n);
        xm_json_add_text(j, o, "answer", xm_strbuf_text(&turn->answer), turn->answer.n);
        xm_json_add_text(j, o, "error", xm_strbuf_text(&turn->error), turn->error.n);
        xm_json_add_whole(j, o, "behind", turn->behind);
    }
}

void
xm_conversation_free(struct xm_conversation *c)
{
    for (size_t i = 0; i < c->n_failed; i++)
        free_failed(&c->failed[i]);
    xm_free(c->failed);
    for (size_t i = 0; i < c->n; i++)
        xm_strbuf_free(&c->messages[i].text);
    xm_free(c->messages);
    *c = (struct xm_conversation){0};
}
