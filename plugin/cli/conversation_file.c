/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/conversation_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/util/json.h"
#include "runtime/util/memory.h"
#include "runtime/util/new_file.h"
#include "runtime/util/utf8.h"

static struct xm_shown
show(const char *text)
{
    return xm_utf8_shown(xm_slice_of(text, strlen(text)));
}

/* ---- saving -------------------------------------------------------------------------- */

/* Creates an empty file if there was none, so that only one process can create it. */
static enum xm_status
claim(const char *path, bool replace, bool *is_new, struct xm_error *err)
{
    struct stat st;
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    *is_new = fd >= 0;
    if (fd >= 0) {
        close(fd);
        return XM_OK;
    }
    if (errno != EEXIST)
        return xm_fail(err, XM_IO, "'%s' cannot be written: %s", show(path).text,
                       strerror(errno));
    if (!replace)
        return xm_fail(err, XM_INVALID, "'%s' exists already", show(path).text);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return xm_fail(err, XM_INVALID, "'%s' is not a regular file", show(path).text);
    return XM_OK;
}

enum xm_status
xm_conversation_save(const struct xm_conversation *c, const char *path, bool replace,
                     struct xm_error *err)
{
    struct xm_json_out j;
    struct xm_strbuf text = {0};
    bool is_new = false;
    XM_TRY(claim(path, replace, &is_new, err));
    xm_json_begin(&j);
    xm_conversation_add_json(c, true, &j);
    char *json = j.failed ? NULL : xm_json_value_text(j.root);
    xm_json_end(&j);
    xm_strbuf_add(&text, json ? json : "");
    xm_strbuf_add(&text, "\n");
    enum xm_status s = json && xm_strbuf_ok(&text) ? xm_write_text_file(path, &text, err)
                                                   : xm_no_memory(err, "a file");
    if (s != XM_OK && is_new)
        unlink(path);
    xm_strbuf_free(&text);
    xm_free(json);
    return s;
}

/* ---- loading ------------------------------------------------------------------------- */

/* Reads an open file. It is not mapped, so that it can be written again later. */
static enum xm_status
read_open(int fd, struct xm_strbuf *out, struct xm_error *err)
{
    char part[1 << 16];
    struct stat st;
    ssize_t n = 0;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return xm_fail(err, XM_INVALID, "it is not a regular file");
    while ((n = read(fd, part, sizeof(part))) > 0) {
        xm_strbuf_add_n(out, part, (size_t)n);
        if (out->n > (size_t)XM_CONVERSATION_MOST_MIB << 20)
            return xm_fail(err, XM_INVALID, "it has more than %d MiB",
                           XM_CONVERSATION_MOST_MIB);
    }
    if (n < 0)
        return xm_fail(err, XM_IO, "%s", strerror(errno));
    return xm_strbuf_ok(out) ? XM_OK : xm_fail(err, XM_NO_MEMORY, "out of memory");
}

/* Reads the file; does not block on a pipe. */
static enum xm_status
read_file(const char *path, struct xm_strbuf *out, struct xm_error *err)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return xm_fail(err, errno == ENOENT ? XM_NOT_FOUND : XM_IO, "%s",
                       strerror(errno));
    const enum xm_status s = read_open(fd, out, err);
    close(fd);
    return s;
}

static bool
is(struct xm_slice s, const char *text)
{
    return xm_slice_equal(s, xm_slice_of(text, strlen(text)));
}

/* Checks and appends a message. Its position decides its role, except for the first one, which may
 * be the system's. */
static enum xm_status
take(struct xm_conversation *c, yyjson_val *message, struct xm_error *err)
{
    struct xm_slice role = {NULL, 0}, content = {NULL, 0};
    const bool has_system = c->n > 0 && strcmp(c->messages[0].role, "system") == 0;
    const char *expected = (c->n - has_system) % 2 ? "assistant" : "user";
    if (!yyjson_is_obj(message))
        return xm_fail(err, XM_INVALID, "it is not an object");
    XM_TRY(xm_json_text(message, "role", &role, err));
    XM_TRY(xm_json_text(message, "content", &content, err));
    if (c->n == 0 && is(role, "system"))
        expected = "system";
    if (!is(role, expected))
        return xm_fail(err, XM_INVALID, "'role' is '%s', expected '%s'",
                       role.n ? xm_utf8_shown(role).text : "", expected);
    if (!content.text)
        return xm_fail(err, XM_INVALID, "there is no 'content'");
    return xm_conversation_add(c, expected, content.text, content.n, err);
}

static enum xm_status
take_all(struct xm_conversation *c, yyjson_val *root, struct xm_error *err)
{
    yyjson_val *list = NULL, *message;
    size_t i, n;
    if (!yyjson_is_obj(root))
        return xm_fail(err, XM_INVALID, "it is not a JSON object");
    XM_TRY(xm_json_array(root, "messages", &list, err));
    yyjson_arr_foreach(list, i, n, message)
    {
        const enum xm_status s = take(c, message, err);
        xm_error_prefix(err, "message %zu", i + 1);
        XM_TRY(s);
    }
    if (c->n && strcmp(c->messages[c->n - 1].role, "user") == 0)
        return xm_fail(err, XM_INVALID,
                       "the last message comes from the user and has no answer");
    return XM_OK;
}

enum xm_status
xm_conversation_load(struct xm_conversation *c, const char *path, struct xm_error *err)
{
    struct xm_conversation loaded = {0};
    struct xm_strbuf text = {0};
    struct xm_error why = {0};
    yyjson_doc *doc = NULL;
    enum xm_status s = read_file(path, &text, &why);
    if (s == XM_OK)
        s = xm_json_parse(xm_strbuf_text(&text), text.n, &doc, &why);
    xm_strbuf_free(&text);
    if (s == XM_OK)
        s = take_all(&loaded, yyjson_doc_get_root(doc), &why);
    yyjson_doc_free(doc);
    if (s != XM_OK) {
        xm_conversation_free(&loaded);
        return xm_fail(err, s, "cannot read '%s': %s", show(path).text, why.text);
    }
    loaded.failed = c->failed;
    loaded.n_failed = c->n_failed;
    c->failed = NULL;
    c->n_failed = 0;
    xm_conversation_free(c);
    *c = loaded;
    return XM_OK;
}
