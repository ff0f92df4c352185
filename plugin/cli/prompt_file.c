/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/prompt_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum xm_status
xm_file_read_all(int fd, const char *name, const char *what, uint32_t most_mib,
                 struct xm_strbuf *out, struct xm_error *err)
{
    char part[1 << 14];
    const size_t most = (size_t)most_mib << 20;
    for (;;) {
        ssize_t n = read(fd, part, sizeof(part));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return xm_fail(err, XM_IO, "%s: %s", name, strerror(errno));
        if (n == 0)
            break;
        xm_strbuf_add_n(out, part, (size_t)n);
        if (out->n > most)
            return xm_fail(err, XM_INVALID, "%s: %s has at most %u MiB", name, what,
                           most_mib);
    }
    return xm_strbuf_ok(out) ? XM_OK
                             : xm_fail(err, XM_NO_MEMORY, "out of memory for %s", what);
}

static void
drop_newline(struct xm_strbuf *text)
{
    if (text->n == 0 || text->text[text->n - 1] != '\n')
        return;
    text->text[--text->n] = '\0';
    if (text->n > 0 && text->text[text->n - 1] == '\r')
        text->text[--text->n] = '\0';
}

enum xm_status
xm_prompt_file_read(const char *path, struct xm_strbuf *out, struct xm_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return xm_fail(err, errno == ENOENT ? XM_NOT_FOUND : XM_IO, "%s: %s", path,
                       strerror(errno));
    enum xm_status s = xm_file_read_all(fd, is_stdin ? "standard input" : path,
                                        "a prompt", XM_PROMPT_MOST_MIB, out, err);
    if (!is_stdin)
        close(fd);
    if (s == XM_OK)
        drop_newline(out);
    return s;
}
