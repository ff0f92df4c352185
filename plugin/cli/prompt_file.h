/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a prompt from a file, a pipe or standard input, or one prompt from each line.
 */
#ifndef XM_PLUGIN_CLI_PROMPT_FILE_H
#define XM_PLUGIN_CLI_PROMPT_FILE_H

#include <stdint.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longest prompt, in MiB: more than any model's context. An endless pipe fails at this size. */
enum { XM_PROMPT_MOST_MIB = 64 };

/* Appends all bytes read from `fd`. XM_INVALID: more than `most_mib` MiB. Error sentences name the
 * source `name` and the content `what` ("a prompt"). */
enum xm_status xm_file_read_all(int fd, const char *name, const char *what,
                                uint32_t most_mib, struct xm_strbuf *out,
                                struct xm_error *err);

/* As xm_file_read_all, for the file or pipe at `path`. */
enum xm_status xm_file_read(const char *path, const char *what, uint32_t most_mib,
                            struct xm_strbuf *out, struct xm_error *err);

/* Returns the name of a prompt's file for sentences: its path, or "standard input" for "-". */
const char *xm_prompt_file_name(const char *path);
/* Appends the prompt in the file `path` ("-": standard input), without the byte order mark and the
 * newline at its end that editors and echo add. */
enum xm_status xm_prompt_file_read(const char *path, struct xm_strbuf *out,
                                   struct xm_error *err);

struct xm_prompt_line {
    struct xm_strbuf text; /* owned */
    /* of the line in its file, from 1; 0: the prompt is not a line of a file */
    size_t number;
};

/* Several prompts. Zero-initialise. */
struct xm_prompt_lines {
    struct xm_prompt_line *list; /* owned */
    size_t n, capacity;
    const char *name;   /* name of the file, not owned; NULL: none */
    size_t n_blank;     /* number of blank lines, which are not prompts */
    size_t first_blank; /* number of the first blank line */
};
/* Appends one prompt that is not a line of a file; `text` may contain anything. */
enum xm_status xm_prompt_lines_add(struct xm_prompt_lines *lines, const char *text,
                                   size_t n, struct xm_error *err);
/* Appends a prompt for each line, except blank lines: those without characters other than spaces
 * and tabs. A line in quotes is a JSON string, in which "\n" is a newline; it may be blank. `name`
 * must outlive the lines. XM_INVALID: the sentence names the file and the line. */
enum xm_status xm_prompt_lines_split(const struct xm_strbuf *text, const char *name,
                                     struct xm_prompt_lines *lines, struct xm_error *err);
/* Prints on standard error how many blank lines were skipped, if any. */
void xm_prompt_lines_say_blank(const struct xm_prompt_lines *lines);
void xm_prompt_lines_free(struct xm_prompt_lines *lines);

#ifdef __cplusplus
}
#endif
#endif
