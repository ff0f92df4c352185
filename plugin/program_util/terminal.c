/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/terminal.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include "runtime/util/log.h"
#include "runtime/util/utf8.h"

bool
xm_terminal_is(int fd)
{
    return isatty(fd) == 1;
}

bool
xm_terminal_has_escapes(int fd)
{
    const char *term = xm_env("TERM");
    return term && strcmp(term, "dumb") != 0 && xm_terminal_is(fd);
}

bool
xm_terminal_has_styles(int fd)
{
    return !xm_env("NO_COLOR") && xm_terminal_has_escapes(fd);
}

size_t
xm_terminal_columns(int fd)
{
    enum { USUAL = 80 };
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : USUAL;
}

size_t
xm_terminal_char_width(int32_t code)
{
    return code < 0 ? 1 : (size_t)utf8proc_charwidth(code);
}

/* The first character of a text: its bytes, and its columns. */
static size_t
next(const char *text, size_t n, size_t *columns)
{
    int32_t code;
    const size_t bytes = xm_utf8_next(xm_slice_of(text, n), &code);
    *columns = xm_terminal_char_width(code);
    return bytes;
}

size_t
xm_terminal_fit(const char *text, size_t n, size_t columns)
{
    size_t at = 0, used = 0;
    while (at < n) {
        size_t width;
        const size_t bytes = next(text + at, n - at, &width);
        if (used + width > columns)
            break;
        used += width;
        at += bytes;
    }
    return at;
}

size_t
xm_terminal_width(const char *text, size_t n)
{
    size_t used = 0;
    for (size_t at = 0, width; at < n; used += width)
        at += next(text + at, n - at, &width);
    return used;
}
