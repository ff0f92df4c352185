/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/grammar_option.h"

#include <string.h>

#include "plugin/cli/prompt_file.h"

enum { MOST_MIB = XM_GRAMMAR_MOST_BYTES >> 20 };

static bool
is_schema_text(const char *given)
{
    const char *text = given + strspn(given, " \t\r\n");
    return *text == '{' || strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

enum xm_status
xm_cli_grammar(const struct xm_cli_generation *a, struct xm_grammar **out,
               struct xm_error *err)
{
    const bool is_schema = a->json_schema != NULL;
    const char *given = is_schema ? a->json_schema : a->grammar;
    const char *option = is_schema ? "--json-schema" : "--grammar";
    struct xm_strbuf text = {0};
    enum xm_status s = XM_OK;
    *out = NULL;
    if (a->grammar && a->json_schema)
        return xm_fail(err, XM_INVALID, "give one of --grammar and --json-schema");
    if (!given)
        return XM_OK;
    const bool is_text = is_schema ? is_schema_text(given) : strstr(given, "::=") != NULL;
    if (is_text)
        xm_strbuf_add(&text, given);
    else
        s = xm_file_read(given, is_schema ? "a JSON Schema" : "a grammar", MOST_MIB,
                         &text, err);
    if (s == XM_OK && !xm_strbuf_ok(&text))
        s = xm_no_memory(err, "a grammar");
    if (s == XM_OK)
        s = is_schema ? xm_grammar_from_schema(xm_strbuf_text(&text), text.n, out, err)
                      : xm_grammar_parse(xm_strbuf_text(&text), text.n, out, err);
    if (s != XM_OK)
        xm_error_prefix(err, "option %s", option);
    xm_strbuf_free(&text);
    return s;
}
