/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/grammar_option.h"

#include <string.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/prompt_file.h"

enum { MOST_MIB = XM_GRAMMAR_MOST_BYTES >> 20 };

static bool
is_schema_text(const char *given)
{
    const char *text = given + strspn(given, " \t\r\n");
    return *text == '{' || strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

static bool
is_grammar_text(const char *given)
{
    return strstr(given, "::=") != NULL;
}

int
xm_cli_grammar(const struct xm_cli_generation *a, struct xm_grammar **out)
{
    const bool is_schema = a->json_schema != NULL;
    const char *given = is_schema ? a->json_schema : a->grammar;
    const char *option = is_schema ? "--json-schema" : "--grammar";
    struct xm_strbuf text = {0};
    struct xm_error err = {0};
    enum xm_status s = XM_OK;
    *out = NULL;
    if (a->grammar && a->json_schema)
        return xm_cli_usage("give only one of --grammar and --json-schema");
    if (!given)
        return XM_EXIT_OK;
    const bool is_text = is_schema ? is_schema_text(given) : is_grammar_text(given);
    if (is_text)
        xm_strbuf_add(&text, given);
    else
        s = xm_file_read(given, is_schema ? "a JSON Schema" : "a grammar", MOST_MIB,
                         &text, &err);
    const bool is_read = s == XM_OK;
    if (is_read && !xm_strbuf_ok(&text))
        s = xm_no_memory(&err, "a grammar");
    else if (is_read)
        s = is_schema ? xm_grammar_from_schema(xm_strbuf_text(&text), text.n, out, &err)
                      : xm_grammar_parse(xm_strbuf_text(&text), text.n, out, &err);
    xm_strbuf_free(&text);
    if (s == XM_OK)
        return XM_EXIT_OK;
    if (is_read && !is_text)
        xm_error_prefix(&err, "%.150s", given);
    xm_error_prefix(&err, "option %s", option);
    return is_text && s != XM_NO_MEMORY ? xm_cli_usage("%s", err.text)
                                        : xm_cli_failed(&err);
}
