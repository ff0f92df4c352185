/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/tool_calls.h"

#include <string.h>

#include "plugin/text/json_schema_parts.h"
#include "plugin/text/tool_arguments.h"
#include "runtime/util/json.h"
#include "runtime/util/memory.h"

static const char blanks[] = " \t\r\n";
static const char quote[] = XM_BRACES_QUOTE; /* around strings of BRACES */

/* ---- lists ----------------------------------------------------------------------------------- */

static void
free_call(struct xm_tool_call *call)
{
    xm_free(call->name);
    xm_free(call->arguments);
}

void
xm_tool_calls_free(struct xm_tool_calls *calls)
{
    for (size_t i = 0; i < calls->n; i++)
        free_call(&calls->list[i]);
    xm_free(calls->list);
    *calls = (struct xm_tool_calls){0};
}

static char *
copy_text(const char *text, size_t n)
{
    char *copy = xm_calloc(n + 1, 1);
    if (copy)
        memcpy(copy, text, n);
    return copy;
}

static enum xm_status
append(struct xm_tool_calls *calls, struct xm_slice name, struct xm_slice arguments,
       bool is_cut, struct xm_error *err)
{
    struct xm_tool_call call = {copy_text(name.text, name.n),
                                copy_text(arguments.text, arguments.n), is_cut};
    struct xm_tool_call *grown =
        xm_grow(calls->list, &calls->capacity, calls->n + 1, sizeof(*grown));
    if (grown)
        calls->list = grown;
    if (grown && call.name && call.arguments) {
        calls->list[calls->n++] = call;
        return XM_OK;
    }
    free_call(&call);
    return xm_no_memory(err, "a tool call");
}

enum xm_status
xm_tool_calls_add(struct xm_tool_calls *calls, const struct xm_tool_call *call,
                  struct xm_error *err)
{
    return append(calls, xm_slice_of(call->name, strlen(call->name)),
                  xm_slice_of(call->arguments, strlen(call->arguments)), call->is_cut,
                  err);
}

void
xm_tool_call_add_json(const struct xm_tool_call *call, struct xm_strbuf *out)
{
    /* a name has no characters that JSON would escape (check_name) */
    xm_strbuf_printf(out, "{\"name\": \"%s\", \"arguments\": ", call->name);
    xm_strbuf_add(out, call->arguments);
    xm_strbuf_add(out, call->is_cut ? "" : "}");
}

/* ---- parts ---------------------------------------------------------------------------------- */

static struct xm_slice
behind_blanks(struct xm_slice s)
{
    while (s.n > 0 && strchr(blanks, s.text[0])) {
        s.text++;
        s.n--;
    }
    return s;
}

static struct xm_slice
trimmed(struct xm_slice s)
{
    s = behind_blanks(s);
    while (s.n > 0 && strchr(blanks, s.text[s.n - 1]))
        s.n--;
    return s;
}

static bool
starts_with(struct xm_slice s, const char *word)
{
    return xm_slice_starts_with(s, xm_slice_of(word, strlen(word)));
}

static struct xm_slice
behind(struct xm_slice s, size_t n)
{
    return xm_slice_of(s.text + n, s.n - n);
}

/* Returns whether `word` begins with `s`. */
static bool
begins(struct xm_slice s, const char *word)
{
    return strlen(word) >= s.n && memcmp(word, s.text, s.n) == 0;
}

/* Returns the position of `word` in `s`; s.n: not found. */
static size_t
find(struct xm_slice s, const char *word)
{
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= s.n; i++)
        if (memcmp(s.text + i, word, n) == 0)
            return i;
    return s.n;
}

bool
xm_tool_name_is_good(struct xm_slice name)
{
    bool ok = name.n > 0 && name.n <= XM_LONGEST_TOOL_NAME;
    for (size_t i = 0; ok && i < name.n; i++) {
        const unsigned char c = (unsigned char)name.text[i];
        ok = c > ' ' && c != 0x7f && !strchr("\"\\<>{}()", c);
    }
    return ok;
}

static enum xm_status
check_name(struct xm_slice name, struct xm_error *err)
{
    return xm_tool_name_is_good(name)
               ? XM_OK
               : xm_fail(err, XM_INVALID, "a tool call has no name");
}

/* Returns the length of the JSON string, with its quotes, with which `s` begins; 0: its end is
 * missing. */
static size_t
length_of_string(struct xm_slice s)
{
    for (size_t i = 1; i < s.n; i++) {
        if (s.text[i] == '"')
            return i + 1;
        i += s.text[i] == '\\';
    }
    return 0;
}

static bool
is_too_deep(struct xm_slice text)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.n && depth <= XM_DEEPEST_CALL; i++) {
        const char c = text.text[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            depth++;
        else if (!in_string && (c == '}' || c == ']'))
            depth--;
    }
    return depth > XM_DEEPEST_CALL;
}

/* Parses JSON; numbers are kept as texts. *out is NULL if the text is not JSON or is nested too
 * deeply. */
static enum xm_status
read_json(struct xm_slice text, yyjson_doc **out, struct xm_error *err)
{
    yyjson_read_err why = {0};
    *out = NULL;
    if (text.n == 0 || is_too_deep(text))
        return XM_OK;
    *out = yyjson_read_opts((char *)(uintptr_t)text.text, text.n,
                            YYJSON_READ_NUMBER_AS_RAW, &xm_json_allocator, &why);
    return !*out && why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION
               ? xm_no_memory(err, "a tool call")
               : XM_OK;
}

/* Appends a value as JSON text in one line. */
static enum xm_status
add_value(yyjson_val *value, struct xm_strbuf *out, struct xm_error *err)
{
    size_t n = 0;
    char *text =
        yyjson_val_write_opts(value, YYJSON_WRITE_NOFLAG, &xm_json_allocator, &n, NULL);
    if (!text)
        return xm_no_memory(err, "a tool call");
    xm_strbuf_add_n(out, text, n);
    xm_free(text);
    return xm_strbuf_ok(out) ? XM_OK : xm_no_memory(err, "a tool call");
}

/* Appends a string as JSON text. */
static enum xm_status
add_string(struct xm_slice s, struct xm_strbuf *out, struct xm_error *err)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(&xm_json_allocator);
    yyjson_mut_val *value = doc ? yyjson_mut_strn(doc, s.text, s.n) : NULL;
    yyjson_write_err why = {0};
    size_t n = 0;
    char *text = value ? yyjson_mut_val_write_opts(value, YYJSON_WRITE_NOFLAG,
                                                   &xm_json_allocator, &n, &why)
                       : NULL;
    if (text)
        xm_strbuf_add_n(out, text, n);
    const bool is_broken =
        value && !text && why.code == YYJSON_WRITE_ERROR_INVALID_STRING;
    const bool ok = text && xm_strbuf_ok(out);
    xm_free(text);
    yyjson_mut_doc_free(doc);
    if (is_broken)
        return xm_fail(err, XM_INVALID, "a tool call is not UTF-8");
    return ok ? XM_OK : xm_no_memory(err, "a tool call");
}

/* Appends a string as JSON text without the closing quote. */
static enum xm_status
add_cut_string(struct xm_slice s, struct xm_strbuf *out, struct xm_error *err)
{
    XM_TRY(add_string(s, out, err));
    out->text[--out->n] = '\0';
    return XM_OK;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* Appends the arguments, an object. Some models write the object as JSON inside a string. */
static enum xm_status
add_arguments(yyjson_val *value, struct xm_strbuf *out, struct xm_error *err)
{
    if (!value) {
        xm_strbuf_add(out, "{}");
        return xm_strbuf_ok(out) ? XM_OK : xm_no_memory(err, "a tool call");
    }
    if (yyjson_is_obj(value))
        return add_value(value, out, err);
    yyjson_doc *inner = NULL;
    if (yyjson_is_str(value))
        XM_TRY(read_json(xm_slice_of(yyjson_get_str(value), yyjson_get_len(value)),
                         &inner, err));
    const enum xm_status s =
        yyjson_is_obj(yyjson_doc_get_root(inner))
            ? add_value(yyjson_doc_get_root(inner), out, err)
            : xm_fail(err, XM_INVALID, "the arguments of a tool call are not an object");
    yyjson_doc_free(inner);
    return s;
}

static enum xm_status
parse_json(struct xm_tool_calls *calls, struct xm_slice text, struct xm_error *err)
{
    struct xm_strbuf arguments = {0};
    yyjson_doc *doc = NULL;
    XM_TRY(read_json(text, &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc), *value = yyjson_obj_get(root, "name");
    const size_t n_name = yyjson_is_str(value) ? yyjson_get_len(value) : 0;
    const struct xm_slice name = xm_slice_of(yyjson_get_str(value), n_name);
    enum xm_status s = yyjson_is_obj(root)
                           ? check_name(name, err)
                           : xm_fail(err, XM_INVALID, "a tool call is not an object");
    value = yyjson_obj_get(root, "arguments");
    if (!value)
        value = yyjson_obj_get(root, "parameters");
    if (s == XM_OK)
        s = add_arguments(value, &arguments, err);
    if (s == XM_OK)
        s = append(calls, name, xm_slice_of(xm_strbuf_text(&arguments), arguments.n),
                   false, err);
    yyjson_doc_free(doc);
    xm_strbuf_free(&arguments);
    return s;
}

static enum xm_status
parse_named(struct xm_tool_calls *calls, struct xm_slice name, struct xm_slice text,
            struct xm_error *err)
{
    struct xm_strbuf arguments = {0};
    XM_TRY(check_name(name, err));
    yyjson_doc *doc = NULL;
    XM_TRY(read_json(text, &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc);
    enum xm_status s =
        yyjson_is_obj(root) || text.n == 0
            ? add_arguments(root, &arguments, err)
            : xm_fail(err, XM_INVALID, "the arguments of a tool call are not an object");
    if (s == XM_OK)
        s = append(calls, name, xm_slice_of(xm_strbuf_text(&arguments), arguments.n),
                   false, err);
    yyjson_doc_free(doc);
    xm_strbuf_free(&arguments);
    return s;
}

/* ---- Qwen3-Coder ---------------------------------------------------------------------------- */

static const char function[] = "<function=", function_end[] = "</function>";
static const char parameter[] = XM_PARAMETER, parameter_end[] = XM_PARAMETER_END;

/* Removes one line break at each end, because it belongs to the mark. */
static struct xm_slice
without_breaks(struct xm_slice s)
{
    if (s.n > 0 && s.text[0] == '\n')
        s = behind(s, 1);
    if (s.n > 0 && s.text[s.n - 1] == '\n')
        s.n--;
    return s;
}

/* Returns whether a JSON value, not a string, has one of the types. A number kept as text is an
 * integer if it has no '.', 'e' or 'E'. */
static bool
is_of_types(yyjson_val *value, unsigned types)
{
    if (!yyjson_is_raw(value))
        return (xm_json_type_of(value) & types & ~(unsigned)XM_JSON_STRING) != 0;
    bool is_whole = true;
    for (size_t i = 0; i < yyjson_get_len(value); i++)
        is_whole &= !strchr(".eE", yyjson_get_raw(value)[i]);
    return (types & XM_JSON_FRACTION) || ((types & XM_JSON_INTEGER) && is_whole);
}

static enum xm_status
add_untyped(struct xm_slice value, unsigned types, struct xm_strbuf *out,
            struct xm_error *err)
{
    yyjson_doc *doc = NULL;
    XM_TRY(read_json(value, &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc);
    const enum xm_status s = root && is_of_types(root, types)
                                 ? add_value(root, out, err)
                                 : add_string(value, out, err);
    yyjson_doc_free(doc);
    return s;
}

/* Appends a string whose end is missing, without a beginning of `</parameter>` that may follow
 * it. */
static enum xm_status
add_cut_value(struct xm_slice value, struct xm_strbuf *out, struct xm_error *err)
{
    static const char end[] = "\n" XM_PARAMETER_END;
    if (value.n > 0 && value.text[0] == '\n')
        value = behind(value, 1);
    for (size_t i = value.n < sizeof(end) ? 0 : value.n - sizeof(end); i < value.n; i++)
        if (begins(behind(value, i), end) || begins(behind(value, i), end + 1))
            value.n = i;
    return add_cut_string(value, out, err);
}

/* Reads <parameter=KEY>VALUE</parameter>, any number of them and nothing else, and appends the JSON
 * object. is_cut: the text may end anywhere; an incomplete value is appended as a string if it
 * cannot be anything else. */
static enum xm_status
add_parameters(struct xm_slice text, const struct xm_tool *tool, bool is_cut,
               struct xm_strbuf *out, struct xm_error *err)
{
    const char *before = "";
    unsigned left = XM_TYPES_STEPS;
    xm_strbuf_add(out, "{");
    for (text = behind_blanks(text); text.n > 0; before = ",") {
        const size_t n = find(text, ">");
        if (is_cut && n == text.n)
            break;
        if (!starts_with(text, parameter) || n == text.n)
            return xm_fail(err, XM_INVALID, "a parameter of a tool call has no name");
        const struct xm_slice key =
            xm_slice_of(text.text + sizeof(parameter) - 1, n - (sizeof(parameter) - 1));
        text = behind(text, n + 1);
        const size_t end = find(text, parameter_end);
        if (key.n == 0 || (end == text.n && !is_cut))
            return xm_fail(err, XM_INVALID, "a parameter of a tool call is not closed");
        const unsigned types = xm_tool_argument_types(tool, key, &left);
        if (end == text.n && types != XM_JSON_STRING)
            break;
        xm_strbuf_add(out, before);
        XM_TRY(add_string(key, out, err));
        xm_strbuf_add(out, ":");
        if (end == text.n)
            return add_cut_value(text, out, err);
        XM_TRY(add_untyped(without_breaks(xm_slice_of(text.text, end)), types, out, err));
        text = behind_blanks(behind(text, end + sizeof(parameter_end) - 1));
    }
    xm_strbuf_add(out, is_cut ? "" : "}");
    return xm_strbuf_ok(out) ? XM_OK : xm_no_memory(err, "a tool call");
}

static const struct xm_tool *
find_tool(const struct xm_tools *tools, struct xm_slice name)
{
    for (size_t i = 0; tools && i < tools->n; i++)
        if (xm_slice_equal(tools->list[i].name, name))
            return &tools->list[i];
    return NULL;
}

static enum xm_status
parse_function(struct xm_tool_calls *calls, struct xm_slice text,
               const struct xm_tools *tools, bool is_cut, struct xm_error *err)
{
    struct xm_strbuf arguments = {0};
    const size_t n = find(text, ">"), n_end = is_cut ? 0 : sizeof(function_end) - 1;
    if (n == text.n && is_cut)
        return xm_fail(err, XM_NOT_FOUND, "a tool call has no name yet");
    if (n == text.n || text.n < n + 1 + n_end ||
        !xm_slice_equal(behind(text, text.n - n_end), xm_slice_of(function_end, n_end)))
        return xm_fail(err, XM_INVALID, "a tool call is not closed");
    const struct xm_slice name =
        xm_slice_of(text.text + sizeof(function) - 1, n - (sizeof(function) - 1));
    enum xm_status s = check_name(name, err);
    if (s == XM_OK)
        s = add_parameters(xm_slice_of(text.text + n + 1, text.n - n - 1 - n_end),
                           find_tool(tools, name), is_cut, &arguments, err);
    if (s == XM_OK)
        s = append(calls, name, xm_slice_of(xm_strbuf_text(&arguments), arguments.n),
                   is_cut, err);
    xm_strbuf_free(&arguments);
    return s;
}

/* ---- Gemma 4 -------------------------------------------------------------------------------- */

struct braces {
    struct xm_slice left; /* the text not read yet */
    bool is_cut;          /* the text may end anywhere; `out` has the part read */
    struct xm_strbuf *out;
    struct xm_error *err;
    int depth;
};

static enum xm_status
fail_braces(const struct braces *b)
{
    return xm_fail(b->err, XM_INVALID, "a tool call is incomplete or malformed");
}

/* Fails because the text ends too early. */
static enum xm_status
run_out(struct braces *b)
{
    b->left.n = 0;
    return fail_braces(b);
}

static bool
next_is(struct braces *b, char c)
{
    b->left = behind_blanks(b->left);
    return b->left.n > 0 && b->left.text[0] == c;
}

static bool
take(struct braces *b, char c)
{
    if (!next_is(b, c))
        return false;
    b->left = behind(b->left, 1);
    return true;
}

static enum xm_status
add_quoted(struct braces *b)
{
    b->left = behind(b->left, sizeof(quote) - 1);
    const size_t n = find(b->left, quote);
    if (n == b->left.n && b->is_cut)
        XM_TRY(add_cut_string(b->left, b->out, b->err));
    if (n == b->left.n)
        return run_out(b);
    XM_TRY(add_string(xm_slice_of(b->left.text, n), b->out, b->err));
    b->left = behind(b->left, n + sizeof(quote) - 1);
    return XM_OK;
}

/* Appends a number, true, false, null or a JSON string; another word is appended as a string. */
static enum xm_status
add_bare(struct braces *b)
{
    const bool is_string = next_is(b, '"');
    size_t n = is_string ? length_of_string(b->left) : 0;
    while (!is_string && n < b->left.n && !strchr(",]}", b->left.text[n]))
        n++;
    const struct xm_slice word = trimmed(xm_slice_of(b->left.text, n));
    if (n == (is_string ? 0 : b->left.n))
        return run_out(b);
    if (word.n == 0)
        return fail_braces(b);
    yyjson_doc *doc = NULL;
    XM_TRY(read_json(word, &doc, b->err));
    yyjson_val *root = yyjson_doc_get_root(doc);
    enum xm_status s = XM_OK;
    if (root)
        s = add_value(root, b->out, b->err);
    else
        s = is_string ? fail_braces(b) : add_string(word, b->out, b->err);
    yyjson_doc_free(doc);
    b->left = behind(b->left, n);
    return s;
}

static enum xm_status
add_key(struct braces *b)
{
    b->left = behind_blanks(b->left);
    if (starts_with(b->left, quote)) {
        XM_TRY(add_quoted(b));
    } else if (next_is(b, '"')) {
        XM_TRY(add_bare(b));
    } else {
        const size_t n = find(b->left, ":");
        const struct xm_slice key = trimmed(xm_slice_of(b->left.text, n));
        if (n == b->left.n)
            return run_out(b);
        if (key.n == 0)
            return fail_braces(b);
        XM_TRY(add_string(key, b->out, b->err));
        b->left = behind(b->left, n);
    }
    xm_strbuf_add(b->out, ":");
    return take(b, ':') ? XM_OK : fail_braces(b);
}

/* Appends an object or a list, nested at most XM_DEEPEST_CALL deep. */
static enum xm_status
add_nested(struct braces *b) /* NOLINT(misc-no-recursion): bounded */
{
    const bool is_object = take(b, '{');
    const char end = is_object ? '}' : ']';
    const char *before = "";
    if ((!is_object && !take(b, '[')) || ++b->depth > XM_DEEPEST_CALL)
        return fail_braces(b);
    xm_strbuf_add(b->out, is_object ? "{" : "[");
    while (!take(b, end)) {
        if (*before && !take(b, ','))
            return fail_braces(b);
        xm_strbuf_add(b->out, before);
        before = ",";
        if (is_object)
            XM_TRY(add_key(b));
        b->left = behind_blanks(b->left);
        if (starts_with(b->left, quote))
            XM_TRY(add_quoted(b));
        else if (next_is(b, '{') || next_is(b, '['))
            XM_TRY(add_nested(b));
        else
            XM_TRY(add_bare(b));
    }
    b->depth--;
    xm_strbuf_add(b->out, is_object ? "}" : "]");
    return XM_OK;
}

/* Reads a value of BRACES. With is_cut, a text that ends too early is accepted. */
static enum xm_status
add_braces(struct xm_slice text, bool is_cut, struct xm_strbuf *out, struct xm_error *err)
{
    struct xm_error why = {0};
    struct braces b = {text, is_cut, out, &why, 0};
    enum xm_status s = add_nested(&b);
    if (s == XM_OK && behind_blanks(b.left).n > 0)
        s = fail_braces(&b);
    if (s == XM_INVALID && is_cut && b.left.n == 0)
        s = XM_OK;
    if (s == XM_OK && !xm_strbuf_ok(out))
        return xm_no_memory(err, "a tool call");
    return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
}

static enum xm_status
parse_braces(struct xm_tool_calls *calls, struct xm_slice text, bool is_cut,
             struct xm_error *err)
{
    static const char call[] = "call:";
    struct xm_strbuf arguments = {0};
    const size_t n = find(text, "{");
    if (is_cut && (begins(text, call) || (starts_with(text, call) && n == text.n)))
        return xm_fail(err, XM_NOT_FOUND, "a tool call has no name yet");
    if (!starts_with(text, call) || n == text.n)
        return xm_fail(err, XM_INVALID, "a tool call has no name");
    const struct xm_slice name =
        trimmed(xm_slice_of(text.text + sizeof(call) - 1, n - (sizeof(call) - 1)));
    enum xm_status s = check_name(name, err);
    if (s == XM_OK)
        s = add_braces(behind(text, n), is_cut, &arguments, err);
    if (s == XM_OK)
        s = append(calls, name, xm_slice_of(xm_strbuf_text(&arguments), arguments.n),
                   is_cut, err);
    xm_strbuf_free(&arguments);
    return s;
}

/* ---- JSON that breaks off ------------------------------------------------------------------- */

/* Returns the end of the string or character at i; *depth counts the brackets that are open behind
 * it. */
static size_t
step_over(struct xm_slice s, size_t i, size_t *depth)
{
    const char c = s.text[i];
    const size_t n = c == '"' ? length_of_string(behind(s, i)) : 1;
    *depth += c == '{' || c == '[';
    *depth -= c == '}' || c == ']';
    return n ? i + n : s.n;
}

/* Returns the length of the value with which the text begins; s.n: its end may be missing. */
static size_t
length_of_value(struct xm_slice s)
{
    size_t depth = 0, i = 0;
    while (i < s.n &&
           (depth > 0 || (s.text[i] != '}' && s.text[i] != ']' && s.text[i] != ',')))
        i = step_over(s, i, &depth);
    return i;
}

void
xm_tool_call_close(struct xm_strbuf *arguments)
{
    const struct xm_slice all = xm_slice_of(xm_strbuf_text(arguments), arguments->n);
    size_t at = all.n > 0 && all.text[0] == '{', whole = at;
    while (at < all.n && (at += length_of_value(behind(all, at))) < all.n) {
        whole = at;
        at = all.text[at] == ',' ? at + 1 : all.n;
    }
    if (whole > 0)
        arguments->n = whole;
    else
        xm_strbuf_clear(arguments);
    xm_strbuf_add(arguments, whole > 0 ? "}" : "{}");
}

/* Finds name and arguments in a text that begins an object, as far as they were written; n = 0:
 * missing. False: it does not begin an object, or the object is complete. */
static bool
read_cut_object(struct xm_slice text, struct xm_slice *name, struct xm_slice *arguments)
{
    if (text.text[0] != '{')
        return false;
    for (text = behind_blanks(behind(text, 1)); text.n > 0;) {
        const size_t n_key = text.text[0] == '"' ? length_of_string(text) : 0;
        const struct xm_slice key = xm_slice_of(text.text, n_key);
        if (n_key == 0)
            return text.text[0] == '"';
        text = behind_blanks(behind(text, n_key));
        if (text.n == 0 || text.text[0] != ':')
            return text.n == 0;
        text = behind_blanks(behind(text, 1));
        const size_t n = length_of_value(text);
        if (starts_with(key, "\"name\""))
            *name = trimmed(xm_slice_of(text.text, n));
        if (starts_with(key, "\"arguments\"") || starts_with(key, "\"parameters\""))
            *arguments = xm_slice_of(text.text, n);
        if (n == text.n)
            return true;
        if (text.text[n] != ',')
            return false;
        text = behind_blanks(behind(text, n + 1));
    }
    return true;
}

/* Appends JSON text without the blanks between values. */
static void
add_compact(struct xm_slice s, struct xm_strbuf *out)
{
    while (s.n > 0) {
        const size_t string = s.text[0] == '"' ? length_of_string(s) : 1;
        const size_t n = string ? string : s.n;
        if (!strchr(blanks, s.text[0]))
            xm_strbuf_add_n(out, s.text, n);
        s = behind(s, n);
    }
}

/* Returns whether `s` can be the beginning of a JSON object, with nothing behind its end. */
static bool
begins_object(struct xm_slice s)
{
    const struct xm_slice first = behind_blanks(behind(s, 1));
    size_t depth = 0, i = 0;
    if (s.text[0] != '{' || (first.n > 0 && first.text[0] != '"' && first.text[0] != '}'))
        return false;
    do
        i = step_over(s, i, &depth);
    while (i < s.n && depth > 0);
    return behind_blanks(behind(s, i)).n == 0;
}

static enum xm_status
add_cut_json(struct xm_tool_calls *calls, struct xm_slice name, struct xm_slice arguments,
             struct xm_error *err)
{
    struct xm_strbuf text = {0};
    XM_TRY(check_name(name, err));
    if ((arguments.n > 0 && !begins_object(arguments)) || is_too_deep(arguments))
        return xm_fail(err, XM_INVALID, "the arguments of a tool call are not an object");
    add_compact(arguments, &text);
    const enum xm_status s =
        xm_strbuf_ok(&text)
            ? append(calls, name, xm_slice_of(xm_strbuf_text(&text), text.n), true, err)
            : xm_no_memory(err, "a tool call");
    xm_strbuf_free(&text);
    return s;
}

static enum xm_status
parse_cut_json(struct xm_tool_calls *calls, struct xm_slice text, struct xm_error *err)
{
    struct xm_slice name = {NULL, 0}, arguments = {NULL, 0};
    if (text.n > 0 && !read_cut_object(text, &name, &arguments))
        return xm_fail(err, XM_INVALID, "a tool call is not an object");
    if (name.n > 0 && name.text[0] != '"')
        return check_name(xm_slice_of(NULL, 0), err);
    if (name.n == 0 || length_of_string(name) != name.n)
        return xm_fail(err, XM_NOT_FOUND, "a tool call has no name yet");
    if (arguments.n > 0 && arguments.text[0] == '"') /* JSON inside a string */
        arguments.n = 0;
    return add_cut_json(calls, xm_slice_of(name.text + 1, name.n - 2), arguments, err);
}

/* ---- all ------------------------------------------------------------------------------------ */

static enum xm_status
check_length(const struct xm_tool_calls *calls, struct xm_slice text,
             struct xm_error *err)
{
    return text.n <= XM_LONGEST_CALL && calls->n < XM_MOST_CALLS
               ? XM_OK
               : xm_fail(err, XM_INVALID,
                         "a tool call is too long, or there are too many tool calls");
}

enum xm_status
xm_tool_calls_parse(struct xm_tool_calls *calls, enum xm_call_form form,
                    struct xm_slice name, struct xm_slice text,
                    const struct xm_tools *tools, struct xm_error *err)
{
    XM_TRY(check_length(calls, text, err));
    text = trimmed(text);
    switch (form) {
    case XM_CALL_NONE:
        break;
    case XM_CALL_JSON:
        return starts_with(text, function)
                   ? parse_function(calls, text, tools, false, err)
                   : parse_json(calls, text, err);
    case XM_CALL_NAMED:
        return parse_named(calls, name, text, err);
    case XM_CALL_BRACES:
        return parse_braces(calls, text, false, err);
    }
    return xm_fail(err, XM_INVALID, "this model has no known format of tool calls");
}

enum xm_status
xm_tool_calls_parse_cut(struct xm_tool_calls *calls, enum xm_call_form form,
                        struct xm_slice name, struct xm_slice text,
                        const struct xm_tools *tools, struct xm_error *err)
{
    XM_TRY(check_length(calls, text, err));
    text = behind_blanks(text);
    switch (form) {
    case XM_CALL_NONE:
        break;
    case XM_CALL_JSON:
        if (starts_with(text, function))
            return parse_function(calls, text, tools, true, err);
        if (text.n > 0 && begins(text, function))
            return xm_fail(err, XM_NOT_FOUND, "a tool call has no name yet");
        return parse_cut_json(calls, text, err);
    case XM_CALL_NAMED:
        return add_cut_json(calls, name, text, err);
    case XM_CALL_BRACES:
        return parse_braces(calls, text, true, err);
    }
    return xm_fail(err, XM_INVALID, "this model has no known format of tool calls");
}
