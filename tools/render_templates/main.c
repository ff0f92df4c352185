/* SPDX-License-Identifier: Apache-2.0
 *
 * render_templates: renders chat templates, line by line, for tools/compare_templates.
 *
 *     {"template": text, "messages": […], "add_generation_prompt": true,
 *      "tokens": {…}, "variables": {…}}      ->      {"text": text} or {"error": sentence}
 *
 * Each line of standard input is a conversation and its template; "tokens" are those of
 * tokenizer_config.json, "variables" those that a caller passes besides the messages. All members
 * but the template may be left out. Not installed.
 */
#include <stdio.h>

#include "plugin/text/chat_template.h"
#include "runtime/util/json.h"

/* Returns a member as JSON text, which the caller frees; NULL if there is none. */
static char *
member(yyjson_val *line, const char *key)
{
    yyjson_val *value = yyjson_obj_get(line, key);
    return value ? yyjson_val_write_opts(value, 0, &xm_json_allocator, NULL, NULL) : NULL;
}

static enum xm_status
set_tokens(struct xm_chat_template *tmpl, yyjson_val *line, struct xm_error *err)
{
    char *tokens = member(line, "tokens");
    yyjson_doc *doc = NULL;
    enum xm_status s = XM_OK;
    if (tokens)
        s = xm_json_parse(tokens, strlen(tokens), &doc, err);
    xm_free(tokens);
    if (doc)
        xm_chat_template_set_tokens(tmpl, doc);
    return s;
}

static enum xm_status
render(yyjson_val *line, struct xm_strbuf *out, struct xm_error *err)
{
    yyjson_val *text = yyjson_obj_get(line, "template");
    struct xm_chat_template *tmpl = NULL;
    if (!yyjson_is_str(text))
        return xm_fail(err, XM_INVALID, "a line has no template");
    XM_TRY(
        xm_chat_template_parse(yyjson_get_str(text), yyjson_get_len(text), &tmpl, err));
    char *messages = member(line, "messages"), *variables = member(line, "variables");
    enum xm_status s = set_tokens(tmpl, line, err);
    if (s == XM_OK)
        s = xm_chat_template_render(
            tmpl, messages ? messages : "[]",
            yyjson_get_bool(yyjson_obj_get(line, "add_generation_prompt")), variables,
            out, err);
    xm_free(messages);
    xm_free(variables);
    xm_chat_template_free(tmpl);
    return s;
}

/* Prints one line of output for a line of input. */
static enum xm_status
answer(const char *text, size_t n, struct xm_error *err)
{
    yyjson_doc *doc = NULL;
    struct xm_strbuf out = {0};
    struct xm_error why = {0};
    XM_TRY(xm_json_parse(text, n, &doc, err));
    const enum xm_status s = render(yyjson_doc_get_root(doc), &out, &why);
    yyjson_mut_doc *result = yyjson_mut_doc_new(&xm_json_allocator);
    yyjson_mut_val *root = yyjson_mut_obj(result);
    yyjson_mut_doc_set_root(result, root);
    if (s == XM_OK)
        yyjson_mut_obj_add_strn(result, root, "text", xm_strbuf_text(&out), out.n);
    else
        yyjson_mut_obj_add_str(result, root, "error", why.text);
    char *json = yyjson_mut_write_opts(result, 0, &xm_json_allocator, NULL, NULL);
    if (json)
        puts(json);
    xm_free(json);
    yyjson_mut_doc_free(result);
    yyjson_doc_free(doc);
    xm_strbuf_free(&out);
    return json ? XM_OK : xm_no_memory(err, "a line of output");
}

/* Reads the next line; returns false if there is none. */
static bool
read_line(struct xm_strbuf *line)
{
    char part[4096];
    xm_strbuf_clear(line);
    while (fgets(part, sizeof(part), stdin)) {
        xm_strbuf_add(line, part);
        if (strchr(part, '\n'))
            break;
    }
    return line->n > 0;
}

int
main(void)
{
    struct xm_error err = {0};
    struct xm_strbuf line = {0};
    while (err.status == XM_OK && read_line(&line))
        answer(xm_strbuf_text(&line), line.n, &err);
    xm_strbuf_free(&line);
    if (err.status != XM_OK)
        fprintf(stderr, "render_templates: %s\n", err.text);
    return err.status == XM_OK && fflush(stdout) == 0 ? 0 : 1;
}
