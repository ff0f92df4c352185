/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/line_editor.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "plugin/program_util/input_history.h"
#include "plugin/program_util/interrupt.h"
#include "plugin/program_util/terminal.h"
#include "runtime/util/compiler.h"
#include "runtime/util/memory.h"
#include "runtime/util/utf8.h"

struct xm_line_editor {
    EditLine *el;
    HistoryW *history;
    struct xm_strbuf history_path; /* empty: the history is not stored */
    const wchar_t *prompt;
    int fd;                                 /* input; reads do not block */
    bool interrupted;                       /* Ctrl-C was pressed in this line */
    bool was_resized, was_stopped, went_on; /* set by signal handlers */
    bool styles;                            /* the terminal supports colours */
    /* Number of bytes to read that were typed before the terminal delivered single keys. */
    int typed_ahead;
};

/* Bracketed paste: the terminal puts a pasted text between ESC [ 200 ~ and ESC [ 201 ~. */
#define PASTE_ON  "\033[?2004h"
#define PASTE_OFF "\033[?2004l"

static void
send(const char *codes)
{
    fputs(codes, stderr);
    fflush(stderr);
}

/* ---- keys -------------------------------------------------------------------------- */

/* Sets colours, bracketed paste and single keys. Done before the prompt, because users may type as
 * soon as they see it. */
static void
begin_line(struct xm_line_editor *e)
{
    xm_cli_farewell(STDERR_FILENO, e->styles ? XM_STYLE_USUAL PASTE_OFF : PASTE_OFF);
    send(e->styles ? XM_STYLE_GREEN PASTE_ON : PASTE_ON);
    el_wset(e->el, EL_PREP_TERM, 1);
    if (ioctl(STDIN_FILENO, FIONREAD, &e->typed_ahead) != 0)
        e->typed_ahead = 0;
}

static void
end_line(const struct xm_line_editor *e)
{
    send(e->styles ? XM_STYLE_USUAL PASTE_OFF : PASTE_OFF);
    xm_cli_farewell(STDERR_FILENO, NULL);
}

static void
stop_here(struct xm_line_editor *e)
{
    xm_flag_set(&e->was_stopped, false);
    el_wset(e->el, EL_PREP_TERM, 0);
    end_line(e);
    send("\n");
    raise(SIGSTOP); /* continues here after SIGCONT */
    xm_flag_set(&e->went_on, false);
    begin_line(e);
    el_wset(e->el, EL_REFRESH);
}

/* Restores the terminal after SIGCONT: another process stopped this one, and other programs have
 * used the terminal. */
static void
go_on(struct xm_line_editor *e)
{
    xm_flag_set(&e->went_on, false);
    el_wset(e->el, EL_PREP_TERM, 0);
    begin_line(e);
    send("\n");
    el_wset(e->el, EL_REFRESH);
}

/* Returns the rows that a text fills before its end, where the cursor is, and its column. */
static size_t
rows_before(const wchar_t *text, size_t n, size_t columns, size_t *column)
{
    size_t rows = 0;
    for (size_t i = 0; i < n; i++) {
        const bool is_control = text[i] < 0x20 || text[i] == 0x7f; /* shown as "^X" */
        const size_t cells = is_control ? 2 : xm_terminal_char_width((int32_t)text[i]);
        if (text[i] == L'\n' || *column + cells > columns) {
            rows++;
            *column = 0;
        }
        *column += text[i] == L'\n' ? 0 : cells;
    }
    rows += *column == columns; /* libedit continues in the next row */
    *column %= columns;
    return rows;
}

/* Returns the rows before the cursor of the line being edited, and the cursor's column. */
static size_t
rows_before_cursor(const struct xm_line_editor *e, size_t columns, size_t *column)
{
    const LineInfoW *info = el_wline(e->el);
    *column = 0;
    const size_t rows = rows_before(e->prompt, wcslen(e->prompt), columns, column);
    return rows + rows_before(info->buffer, (size_t)(info->cursor - info->buffer),
                              columns, column);
}

/* Redraws the line after a resize. libedit draws from the cursor's position; so the cursor is moved
 * to the beginning of the line first. Terminals re-wrap rows at their new width, as libedit
 * does. */
static void
write_anew(struct xm_line_editor *e)
{
    size_t column;
    const size_t rows =
        rows_before_cursor(e, xm_terminal_columns(STDERR_FILENO), &column);
    xm_flag_set(&e->was_resized, false);
    if (rows)
        fprintf(stderr, "\033[%zuA", rows);
    send("\r\033[J");
    el_resize(e->el);
    el_wset(e->el, EL_REFRESH);
}

static void
act_on_signals(struct xm_line_editor *e)
{
    xm_cli_wake_drain();
    e->interrupted = xm_cli_interrupted();
    if (xm_flag_get(&e->was_stopped))
        stop_here(e);
    if (xm_flag_get(&e->went_on))
        go_on(e);
    if (xm_flag_get(&e->was_resized))
        write_anew(e);
}

/* Converts NUL to Ctrl-D: a terminal in line mode stores a Ctrl-D as NUL. */
static void
undo_end_of_file(struct xm_line_editor *e, char *byte)
{
    enum { CTRL_D = 4 };
    e->typed_ahead--;
    *byte = *byte ? *byte : (char)CTRL_D;
}

/* Reads a byte. Returns 1; 0: end of input; -1: Ctrl-C, or a failure. */
static int
next_byte(struct xm_line_editor *e, char *byte)
{
    struct pollfd fds[] = {{e->fd, POLLIN, 0}, {xm_cli_wake_fd(), POLLIN, 0}};
    for (;;) {
        poll(fds, XM_ARRAY_LEN(fds), -1);
        if (fds[1].revents)
            act_on_signals(e);
        if (e->interrupted)
            return -1;
        if (!fds[0].revents)
            continue;
        ssize_t n = read(e->fd, byte, 1);
        if (n > 0 && e->typed_ahead > 0)
            undo_end_of_file(e, byte);
        if (n >= 0 || (errno != EINTR && errno != EAGAIN))
            return n > 0 ? 1 : (int)n;
    }
}

/* Reads a UTF-8 character, in any locale. */
static int
next_character(EditLine *el, wchar_t *out)
{
    struct xm_line_editor *e = NULL;
    char bytes[4];
    int32_t code = XM_UTF8_PARTIAL;
    el_wget(el, EL_CLIENTDATA, &e);
    for (size_t n = 0; code == XM_UTF8_PARTIAL && n < sizeof(bytes); n++) {
        int got = next_byte(e, &bytes[n]);
        if (got <= 0)
            return got;
        xm_utf8_next(xm_slice_of(bytes, n + 1), &code);
    }
    *out = code >= 0 ? (wchar_t)code : (wchar_t)XM_UTF8_REPLACEMENT;
    return 1;
}

/* Reads a pasted text. The terminal sends newlines in it as Enter does. */
static unsigned char
paste(EditLine *el, wint_t key)
{
    static const wchar_t end[] = L"\033[201~";
    const size_t n_end = XM_ARRAY_LEN(end) - 1;
    wchar_t text[256], character;
    size_t n = 0;
    bool ended = false, after_cr = false;
    (void)key;
    while (!ended && el_wgetc(el, &character) == 1) {
        bool is_second = character == L'\n' && after_cr;
        after_cr = character == L'\r';
        if (is_second)
            continue;
        text[n++] = after_cr ? L'\n' : character;
        ended = n >= n_end && wmemcmp(text + n - n_end, end, n_end) == 0;
        n -= ended ? n_end : 0;
        /* keeps characters that may be the beginning of the end mark */
        if (!ended && n + 1 == XM_ARRAY_LEN(text)) {
            wchar_t kept[XM_ARRAY_LEN(end)];
            wmemcpy(kept, text + n - n_end, n_end);
            text[n - n_end] = L'\0';
            el_winsertstr(el, text);
            wmemcpy(text, kept, n_end);
            n = n_end;
        }
    }
    n -= n > 0 && text[n - 1] == L'\n'; /* drops the newline after the last line */
    text[n] = L'\0';
    if (n)
        el_winsertstr(el, text);
    return CC_REFRESH;
}

/* clang-format off */
static const struct {
    const wchar_t *keys, *function;
} bindings[] = {
    { L"\\e[200~",  L"xemoe-paste" },
    { L"\\e[3~",    L"ed-delete-next-char" },
    { L"\\e[1~",    L"ed-move-to-beg" },
    { L"\\e[4~",    L"ed-move-to-end" },
    { L"\\e[H",     L"ed-move-to-beg" },
    { L"\\e[F",     L"ed-move-to-end" },
    { L"\\e[1;5C",  L"em-next-word" },
    { L"\\e[1;5D",  L"ed-prev-word" },
    { L"^R",        L"em-inc-search-prev" },
    { L"^W",        L"ed-delete-prev-word" },
};
/* clang-format on */

static wchar_t *
prompt_of(EditLine *el)
{
    struct xm_line_editor *e = NULL;
    el_wget(el, EL_CLIENTDATA, &e);
    return (wchar_t *)(uintptr_t)e->prompt; /* libedit does not write to it */
}

/* ---- history ----------------------------------------------------------------------- */

/* Converts UTF-8 to wide characters; the caller frees the result. NULL: out of memory. */
static wchar_t *
widen(const char *text)
{
    size_t n = strlen(text), length = 0;
    wchar_t *wide = xm_calloc(n + 1, sizeof(*wide));
    for (size_t at = 0; wide && at < n;) {
        int32_t code;
        at += xm_utf8_next(xm_slice_of(text + at, n - at), &code);
        wide[length++] = (wchar_t)(code < 0 ? XM_UTF8_REPLACEMENT : code);
    }
    return wide;
}

static void
enter(const char *text, void *ctx)
{
    struct xm_line_editor *e = ctx;
    HistEventW event;
    wchar_t *wide = widen(text);
    if (wide)
        history_w(e->history, &event, H_ENTER, wide);
    xm_free(wide);
}

static void
load_history(struct xm_line_editor *e, bool remembers)
{
    HistEventW event;
    history_w(e->history, &event, H_SETSIZE, XM_HISTORY_MOST_MESSAGES);
    history_w(e->history, &event, H_SETUNIQUE, 1);
    if (remembers)
        xm_history_path(&e->history_path);
    if (e->history_path.n)
        xm_history_read(xm_strbuf_text(&e->history_path), enter, e);
}

void
xm_line_editor_remember(struct xm_line_editor *e, const char *text)
{
    enter(text, e);
    if (e->history_path.n) /* stored immediately, in case the program is killed */
        xm_history_add(xm_strbuf_text(&e->history_path), text);
}

/* ---- life -------------------------------------------------------------------------- */

/* Sets LC_CTYPE only, for the width and encoding of characters: numbers keep their decimal
 * point. */
static bool
set_characters(void)
{
    return setlocale(LC_CTYPE, "C.UTF-8") ||
           (setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0);
}

static void
set_up(struct xm_line_editor *e)
{
    el_wset(e->el, EL_CLIENTDATA, e);
    el_wset(e->el, EL_PROMPT, prompt_of);
    el_wset(e->el, EL_EDITOR, L"emacs");
    el_wset(e->el, EL_GETCFN, next_character);
    el_wset(e->el, EL_HIST, history_w, e->history);
    el_wset(e->el, EL_ADDFN, L"xemoe-paste", L"Insert a pasted text", paste);
    for (size_t i = 0; i < XM_ARRAY_LEN(bindings); i++)
        el_wset(e->el, EL_BIND, bindings[i].keys, bindings[i].function, NULL);
    el_source(e->el, NULL); /* the user's own key bindings in ~/.editrc */
    xm_cli_wake_on(SIGWINCH, &e->was_resized);
}

struct xm_line_editor *
xm_line_editor_create(int fd, bool remembers)
{
    if (!xm_terminal_has_escapes(STDERR_FILENO) || !set_characters())
        return NULL;
    struct xm_line_editor *e = xm_calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    e->history = history_winit();
    e->el = e->history ? el_init("xemoe", stdin, stderr, stderr) : NULL;
    if (!e->el) {
        xm_line_editor_free(e);
        return NULL;
    }
    e->fd = fd;
    e->styles = xm_terminal_has_styles(STDERR_FILENO);
    load_history(e, remembers);
    set_up(e);
    return e;
}

void
xm_line_editor_free(struct xm_line_editor *e)
{
    if (!e)
        return;
    xm_cli_wake_off(SIGWINCH); /* its flag will be freed */
    if (e->el)
        el_end(e->el);
    if (e->history)
        history_wend(e->history);
    xm_strbuf_free(&e->history_path);
    xm_free(e);
}

/* ---- a line ------------------------------------------------------------------------ */

static void
add_wide(struct xm_strbuf *line, const wchar_t *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        xm_utf8_add(line, (int32_t)text[i]);
}

/* Leaves the line on the terminal, with "^C" after its last character, wherever the cursor was, and
 * moves to a new line. */
static void
leave_line(struct xm_line_editor *e, struct xm_strbuf *line)
{
    const LineInfoW *info = el_wline(e->el);
    const size_t columns = xm_terminal_columns(STDERR_FILENO);
    size_t column;
    (void)rows_before_cursor(e, columns, &column);
    const size_t below = rows_before(
        info->cursor, (size_t)(info->lastchar - info->cursor), columns, &column);
    if (below)
        fprintf(stderr, "\033[%zuB", below);
    fputs("\r", stderr);
    if (column)
        fprintf(stderr, "\033[%zuC", column);
    add_wide(line, info->buffer, (size_t)(info->lastchar - info->buffer));
    fputs("^C\n", stderr);
}

enum xm_line
xm_line_editor_read(struct xm_line_editor *e, const char *prompt, struct xm_strbuf *line,
                    struct xm_error *err)
{
    int n = 0;
    wchar_t *wide = widen(prompt);
    if (!wide) {
        xm_no_memory(err, "a line");
        return XM_LINE_FAILED;
    }
    e->prompt = wide;
    e->interrupted = false;
    xm_flag_set(&e->was_resized, false);
    xm_cli_wake_on(SIGTSTP, &e->was_stopped);
    xm_cli_wake_on(SIGCONT, &e->went_on);
    el_resize(e->el);
    begin_line(e);
    const wchar_t *text = el_wgets(e->el, &n);
    xm_cli_wake_off(SIGCONT);
    xm_cli_wake_off(SIGTSTP);
    end_line(e);
    if (e->interrupted)
        leave_line(e, line);
    e->prompt = L"";
    xm_free(wide);
    if (e->interrupted)
        return XM_LINE_INTERRUPTED;
    if (!text || n <= 0) {
        fputc('\n', stderr);
        return XM_LINE_END;
    }
    add_wide(line, text, (size_t)n - (text[n - 1] == L'\n'));
    return XM_LINE_TEXT;
}
