/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/input_history.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "plugin/program_util/home.h"
#include "runtime/util/folder.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"

/* The first line of files written by libedit. Its other lines have the same escapes as this
 * file. */
static const char cookie[] = "_HiStOrY_V2_";

void
xm_history_path(struct xm_strbuf *path)
{
    const char *state = xm_env("XDG_STATE_HOME"), *home = xm_home_folder();
    struct stat st;
    bool good = true;
    if (state && state[0] == '/') {
        xm_strbuf_printf(path, "%s/xemoe", state);
    } else {
        good = home && stat(home, &st) == 0; /* the home folder is never created here */
        xm_strbuf_printf(path, "%s/.local/state/xemoe", home ? home : "");
    }
    good = good && xm_strbuf_ok(path) && xm_folder_make(xm_strbuf_text(path)) == 0;
    xm_strbuf_add(path, "/chat_history");
    if (!good || !xm_strbuf_ok(path))
        xm_strbuf_clear(path);
}

/* ---- files --------------------------------------------------------------------------- */

/* Locks a file. Waits at most 2 seconds: other processes hold the lock only briefly, unless one was
 * stopped meanwhile. */
static bool
lock(int fd, int how)
{
    const struct timespec pause = {0, 5000000};
    for (int i = 0; i < 400; i++) {
        if (flock(fd, how | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* Opens a regular file and locks it; does not block on a pipe. -1: failed. */
static int
open_locked(const char *path, int flags, int how, struct stat *st)
{
    const int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) && lock(fd, how) &&
        fstat(fd, st) == 0) /* the size while the lock is held */
        return fd;
    close(fd);
    return -1;
}

/* Reads the last `most` bytes of a file, starting at the beginning of a line. */
static bool
read_tail(int fd, off_t size, size_t most, struct xm_strbuf *out)
{
    const bool is_cut = size > (off_t)most;
    off_t at = is_cut ? size - (off_t)most : 0;
    char part[1 << 14];
    bool in_line = is_cut; /* skips the line whose beginning was cut off */
    while (at < size) {
        const ssize_t n = pread(fd, part, sizeof(part), at);
        if (n <= 0)
            return false;
        const char *end = in_line ? memchr(part, '\n', (size_t)n) : NULL;
        const size_t skipped = !in_line ? 0 : end ? (size_t)(end + 1 - part) : (size_t)n;
        xm_strbuf_add_n(out, part + skipped, (size_t)n - skipped);
        in_line = in_line && !end;
        at += n;
    }
    return xm_strbuf_ok(out);
}

static bool
write_at(int fd, off_t at, const char *text, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t now = pwrite(fd, text + done, n - done, at + (off_t)done);
        if (now < 0 && errno == EINTR)
            continue;
        if (now <= 0)
            return false;
        done += (size_t)now;
    }
    return true;
}

/* ---- reading ------------------------------------------------------------------------- */

static bool
is_octal(const char *digits)
{
    return digits[0] >= '0' && digits[0] <= '3' && digits[1] >= '0' && digits[1] <= '7' &&
           digits[2] >= '0' && digits[2] <= '7';
}

static void
decode(const char *line, size_t n, struct xm_strbuf *out)
{
    xm_strbuf_clear(out);
    for (size_t i = 0; i < n; i++) {
        char byte = line[i];
        if (byte == '\\' && n - i > 3 && is_octal(line + i + 1)) {
            byte = (char)((line[i + 1] - '0') << 6 | (line[i + 2] - '0') << 3 |
                          (line[i + 3] - '0'));
            i += 3;
        } else if (byte == '\\' && n - i > 1 && line[i + 1] == '\\') {
            i++;
        }
        if (byte)
            xm_strbuf_add_n(out, &byte, 1);
    }
}

static size_t
count_lines(const char *text, size_t n)
{
    size_t lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

static void
take_lines(const struct xm_strbuf *file, void (*take)(const char *message, void *ctx),
           void *ctx)
{
    struct xm_strbuf message = {0};
    const char *at = xm_strbuf_text(file), *end = at + file->n, *newline;
    size_t left = count_lines(at, file->n);
    for (; (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1, left--) {
        const size_t n = (size_t)(newline - at);
        const bool is_cookie = n == strlen(cookie) && memcmp(at, cookie, n) == 0;
        if (left > XM_HISTORY_MOST_MESSAGES || n == 0 || is_cookie)
            continue;
        decode(at, n, &message);
        if (xm_strbuf_ok(&message) && message.n)
            take(xm_strbuf_text(&message), ctx);
    }
    xm_strbuf_free(&message);
}

void
xm_history_read(const char *path, void (*take)(const char *message, void *ctx), void *ctx)
{
    struct xm_strbuf file = {0};
    struct stat st;
    const int fd = open_locked(path, O_RDONLY, LOCK_SH, &st);
    if (fd < 0)
        return;
    if (read_tail(fd, st.st_size, XM_HISTORY_MOST_BYTES, &file))
        take_lines(&file, take, ctx);
    close(fd);
    xm_strbuf_free(&file);
}

/* ---- adding -------------------------------------------------------------------------- */

static void
encode(const char *message, struct xm_strbuf *out)
{
    for (const char *p = message; *p; p++) {
        if (*p == '\\')
            xm_strbuf_add(out, "\\\\");
        else if (*p == '\n')
            xm_strbuf_add(out, "\\012");
        else
            xm_strbuf_add_n(out, p, 1);
    }
    xm_strbuf_add(out, "\n");
}

/* Appends the line at the end of the file, first a newline if the last line lacks one, because its
 * writer was killed. */
static bool
append(int fd, off_t size, const struct xm_strbuf *line)
{
    char last = '\n';
    if (size > 0 && pread(fd, &last, 1, size - 1) != 1)
        return false;
    if (last != '\n' && !write_at(fd, size++, "\n", 1))
        return false;
    return write_at(fd, size, xm_strbuf_text(line), line->n);
}

/* Keeps the newer half and appends the line. Rewrites the file in place, because other chats have
 * it open; the result is smaller. */
static bool
shorten(int fd, off_t size, const struct xm_strbuf *line)
{
    struct xm_strbuf kept = {0};
    bool ok = read_tail(fd, size, XM_HISTORY_MOST_BYTES / 2, &kept);
    if (kept.n && kept.text[kept.n - 1] != '\n')
        xm_strbuf_add(&kept, "\n");
    xm_strbuf_add_n(&kept, xm_strbuf_text(line), line->n);
    ok = ok && xm_strbuf_ok(&kept) && write_at(fd, 0, xm_strbuf_text(&kept), kept.n) &&
         ftruncate(fd, (off_t)kept.n) == 0;
    xm_strbuf_free(&kept);
    return ok;
}

bool
xm_history_add(const char *path, const char *message)
{
    struct xm_strbuf line = {0};
    struct stat st;
    if (!message[0] || strlen(message) > XM_HISTORY_MOST_MESSAGE)
        return false;
    encode(message, &line);
    const int fd =
        xm_strbuf_ok(&line) ? open_locked(path, O_RDWR | O_CREAT, LOCK_EX, &st) : -1;
    bool ok = fd >= 0 && ((st.st_mode & 077) == 0 || fchmod(fd, 0600) == 0);
    if (ok)
        ok = st.st_size + (off_t)line.n <= XM_HISTORY_MOST_BYTES
                 ? append(fd, st.st_size, &line)
                 : shorten(fd, st.st_size, &line);
    if (fd >= 0)
        close(fd); /* releases the lock */
    xm_strbuf_free(&line);
    return ok;
}
