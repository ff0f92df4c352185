/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/server/tools.h"

#include <string.h>

#include "plugin/text/tool_grammar.h"
#include "runtime/util/json.h"
#include "runtime/util/memory.h"

/* clang-format off */
/* The members of a tool in an API: the object with its name (NULL: the tool itself), and its
 * schema. */
static const struct api {
    const char *function, *parameters;
    const char *types; /* tool types that mean functions; others are refused */
    bool needs_type;
} apis[] = {
    [XM_TOOLS_CHAT]      = { "function", "parameters",   "function",        true },
    [XM_TOOLS_RESPONSES] = { NULL,       "parameters",   "function",        true },
    [XM_TOOLS_MESSAGES]  = { NULL,       "input_schema", "custom function", false },
};

/* The meaning of "tool_choice", a word, or of its member "type". */
static const struct choice {
    const char *word;
    bool is_none, must_call;
} choices[] = {
    { "auto",     false, false },
    { "none",     true,  false },
    { "required", false, true },
    { "any",      false, true },
};
/* clang-format on */

static bool
is_there(yyjson_val *v)
{
    return v && !yyjson_is_null(v);
}

/* ---- tools ----------------------------------------------------------------------------------- */

/* Returns the object with a tool's name. */
static yyjson_val *
function_of(const struct api *api, yyjson_val *tool)
{
    return api->function ? yyjson_obj_get(tool, api->function) : tool;
}

static bool
check_type(const struct api *api, yyjson_val *tool, const char *where,
           struct xm_refusal *r)
{
    yyjson_val *type = yyjson_obj_get(tool, "type");
    if (!is_there(type) && !api->needs_type)
        return true;
    if (yyjson_is_str(type) &&
        xm_list_has(api->types, ' ', yyjson_get_str(type), yyjson_get_len(type)))
        return true;
    return xm_refuse(
        r, 400, xm_place("%s.type", where).text, "unsupported_parameter",
        "'%s.type' is %s, expected '%.*s': only functions are supported as tools", where,
        xm_json_shown(type).text, (int)strcspn(api->types, " "), api->types);
}

static bool
read_tool(struct xm_wish *w, const struct api *api, yyjson_val *tool, const char *where,
          struct xm_refusal *r)
{
    yyjson_val *function = function_of(api, tool);
    yyjson_val *name = yyjson_obj_get(function, "name");
    yyjson_val *parameters = yyjson_obj_get(function, api->parameters);
    const struct xm_slice said = xm_slice_of(yyjson_get_str(name), yyjson_get_len(name));
    const struct xm_shown place =
        api->function ? xm_place("%s.%s", where, api->function) : xm_place("%s", where);
    bool strict = false;
    if (!yyjson_is_obj(tool))
        return xm_refuse_value(r, where, tool, "an object");
    if (!check_type(api, tool, where, r))
        return false;
    if (!yyjson_is_obj(function))
        return xm_refuse_value(r, place.text, function, "an object");
    if (!yyjson_is_str(name) || !xm_tool_name_is_good(said))
        return xm_refuse_value(r, xm_place("%s.name", place.text).text, name,
                               xm_place("a name of 1 to %d bytes without blanks, quotes "
                                        "and brackets",
                                        XM_LONGEST_TOOL_NAME)
                                   .text);
    if (is_there(parameters) && !yyjson_is_obj(parameters))
        return xm_refuse_value(r, xm_place("%s.%s", place.text, api->parameters).text,
                               parameters, "a JSON Schema, an object");
    if (!xm_wish_flag(function, xm_place("%s.strict", place.text).text, &strict, r))
        return false;
    w->tools.all[w->tools.may_call.n++] =
        (struct xm_tool){said, is_there(parameters) ? parameters : NULL, strict};
    return true;
}

static bool
read_tools(struct xm_wish *w, const struct api *api, yyjson_val *tools,
           struct xm_refusal *r)
{
    yyjson_val *tool;
    size_t i, n;
    if (!is_there(tools))
        return true;
    if (!yyjson_is_arr(tools))
        return xm_refuse_value(r, "tools", tools, "a list of tools");
    if (yyjson_arr_size(tools) > XM_MOST_TOOLS)
        return xm_refuse(r, 400, "tools", "out_of_range",
                         "'tools' has %zu tools, at most %d are supported",
                         yyjson_arr_size(tools), XM_MOST_TOOLS);
    w->tools.all = xm_calloc(yyjson_arr_size(tools) + 1, sizeof(*w->tools.all));
    if (!w->tools.all)
        return xm_refuse(r, 503, NULL, NULL, "out of memory for the tools");
    yyjson_arr_foreach(tools, i, n, tool)
    {
        if (!read_tool(w, api, tool, xm_place("tools[%zu]", i).text, r))
            return false;
    }
    w->tools.may_call.list = w->tools.all;
    w->tools.of_body = tools;
    w->tools.member = api->function;
    w->tools.schema = api->parameters;
    return true;
}

/* ---- tool_choice --------------------------------------------------------------------------- */

static void
choose_none(struct xm_wish *w)
{
    w->tools.may_call.n = 0;
}

static bool
choose_named(struct xm_wish *w, yyjson_val *name, const char *place, struct xm_refusal *r)
{
    const struct xm_slice said = xm_slice_of(yyjson_get_str(name), yyjson_get_len(name));
    for (size_t i = 0; yyjson_is_str(name) && i < w->tools.may_call.n; i++)
        if (xm_slice_equal(w->tools.may_call.list[i].name, said)) {
            w->tools.must_call = true;
            w->tools.only = &w->tools.may_call.list[i];
            return true;
        }
    return xm_refuse_value(r, place, name, "the name of one of the tools");
}

static bool
choose_word(struct xm_wish *w, yyjson_val *word, const char *place, struct xm_refusal *r)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(choices); i++) {
        if (!yyjson_equals_str(word, choices[i].word))
            continue;
        if (choices[i].is_none)
            choose_none(w);
        w->tools.must_call = choices[i].must_call;
        return true;
    }
    return xm_refuse_value(r, place, word,
                           "auto, none, required (Anthropic: any), or an object that "
                           "names a function");
}

/* Reads a tool_choice: a word, {"type": "function", "function": {"name": …}}, {"type": "function",
 * "name": …}, or Anthropic's {"type": auto, any, none or tool, "name": …}. */
static bool
read_choice(struct xm_wish *w, yyjson_val *choice, struct xm_refusal *r)
{
    yyjson_val *type = yyjson_obj_get(choice, "type");
    yyjson_val *function = yyjson_obj_get(choice, "function");
    if (!is_there(choice))
        return true;
    if (!yyjson_is_obj(choice))
        return choose_word(w, choice, "tool_choice", r);
    if (!yyjson_equals_str(type, "function") && !yyjson_equals_str(type, "tool"))
        return choose_word(w, type, "tool_choice.type", r);
    return choose_named(w, yyjson_obj_get(function ? function : choice, "name"),
                        function ? "tool_choice.function.name" : "tool_choice.name", r);
}

static bool
read_parallel(struct xm_wish *w, yyjson_val *body, struct xm_refusal *r)
{
    yyjson_val *choice = yyjson_obj_get(body, "tool_choice");
    bool parallel = true, disabled = false;
    if (!xm_wish_flag(body, "parallel_tool_calls", &parallel, r) ||
        !xm_wish_flag(choice, "tool_choice.disable_parallel_tool_use", &disabled, r))
        return false;
    w->tools.one = !parallel || disabled;
    return true;
}

/* Refuses tools if the chat template ignores them. */
static bool
check_template(const struct xm_wish *w, struct xm_refusal *r)
{
    const struct xm_package *p = w->model->package;
    return w->tools.may_call.n == 0 || !p || !p->chat_template ||
           xm_chat_template_mentions(p->chat_template, "tools") ||
           xm_refuse(r, 400, "tools", "unsupported_parameter",
                     "the model's chat template does not support tools");
}

bool
xm_tools_read(struct xm_wish *w, enum xm_tools_api api, yyjson_val *body,
              struct xm_refusal *r)
{
    if (!read_tools(w, &apis[api], yyjson_obj_get(body, "tools"), r) ||
        !read_choice(w, yyjson_obj_get(body, "tool_choice"), r) ||
        !read_parallel(w, body, r))
        return false;
    if (w->tools.must_call && w->tools.may_call.n == 0)
        return xm_refuse(r, 400, "tool_choice", "invalid_value",
                         "'tool_choice' requires a call, but there are no tools");
    return check_template(w, r);
}

/* ---- the grammar and the template ---------------------------------------------------------- */

/* Refuses the schema of one tool, or all tools if `which` is NULL. */
static bool
refuse_grammar(const struct xm_wish *w, const struct xm_tool *which,
               const struct xm_error *why, struct xm_refusal *r)
{
    const struct xm_shown place =
        which ? xm_place("tools[%zu]%s%s.%s", (size_t)(which - w->tools.all),
                         w->tools.member ? "." : "",
                         w->tools.member ? w->tools.member : "", w->tools.schema)
              : xm_place("%s", w->tools.must_call ? "tool_choice" : "tools");
    return why->status == XM_NO_MEMORY
               ? xm_refuse_for(r, why)
               : xm_refuse(r, 400, place.text, "unsupported_parameter", "'%s': %s",
                           place.text, why->text);
}

bool
xm_tools_grammar(struct xm_wish *w, struct xm_refusal *r)
{
    const struct xm_package *p = w->model->package;
    bool is_strict = false;
    for (size_t i = 0; i < w->tools.may_call.n; i++)
        is_strict |= w->tools.may_call.list[i].strict;
    if (w->tools.may_call.n == 0 || (!w->tools.must_call && !w->tools.one && !is_strict))
        return true;
    if (w->grammar && !w->tools.must_call)
        return true; /* the answer must match another grammar, and calls nothing */
    if (w->grammar)
        return xm_refuse(r, 400, "tool_choice", "invalid_value",
                         "'tool_choice' requires a call, which cannot be combined with a "
                         "required format of the text");
    const struct xm_tool_choice choice = {
        .tools = w->tools.only ? (struct xm_tools){w->tools.only, 1} : w->tools.may_call,
        .must_call = w->tools.must_call,
        .one = w->tools.one || w->tools.only};
    struct xm_error why = {0};
    const struct xm_tool *which = NULL;
    if (xm_tool_grammar(&choice, p->tokenizer, p->chat_template, &w->grammar, &which,
                        &why) != XM_OK)
        return refuse_grammar(w, which, &why, r);
    w->grammar_has_marks = true;
    return true;
}

void
xm_tools_add(const struct xm_wish *w, struct xm_json_out *variables)
{
    static const char *const copied[] = {"name", "description"};
    yyjson_val *tool, *v;
    size_t i, n;
    if (w->tools.may_call.n == 0)
        return;
    yyjson_mut_val *list = xm_json_add_array(variables, NULL, "tools");
    yyjson_arr_foreach(w->tools.of_body, i, n, tool)
    {
        if (w->tools.member) { /* the form that templates expect */
            xm_json_add_value(variables, list, NULL,
                              yyjson_val_mut_copy(variables->doc, tool));
            continue;
        }
        yyjson_mut_val *o = xm_json_add_object(variables, list, NULL);
        xm_json_add_text(variables, o, "type", "function", strlen("function"));
        o = xm_json_add_object(variables, o, "function");
        for (size_t k = 0; k < XM_ARRAY_LEN(copied); k++)
            if (is_there(v = yyjson_obj_get(tool, copied[k])))
                xm_json_add_value(variables, o, copied[k],
                                  yyjson_val_mut_copy(variables->doc, v));
        if (is_there(v = yyjson_obj_get(tool, w->tools.schema)))
            xm_json_add_value(variables, o, "parameters",
                              yyjson_val_mut_copy(variables->doc, v));
    }
}
