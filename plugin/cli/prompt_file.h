/* SPDX-License-Identifier: Apache-2.0
 *
 * A prompt from a file, a pipe or standard input; or one of each line.
 */
#ifndef XM_PLUGIN_CLI_PROMPT_FILE_H
#define XM_PLUGIN_CLI_PROMPT_FILE_H

#include <stdint.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* More than any model's context; what goes on for ever ends here with a sentence. */
enum { XM_PROMPT_MOST_MIB = 64 };

/* Appends all that comes from `fd`, which the sentences call `name`; `what` it is ("a prompt")
 * has so many MiB at most. */
enum xm_status xm_file_read_all(int fd, const char *name, const char *what,
                                uint32_t most_mib, struct xm_strbuf *out,
                                struct xm_error *err);

/* Appends all that `path` holds, which may be a pipe. */
enum xm_status xm_file_read(const char *path, const char *what, uint32_t most_mib,
                            struct xm_strbuf *out, struct xm_error *err);

/* Appends all that `path` holds, without one newline at its end, which editors and echo put
 * there. "-" is standard input. */
enum xm_status xm_prompt_file_read(const char *path, struct xm_strbuf *out,
                                   struct xm_error *err);

/* Several prompts. Zero-initialise. */
struct xm_prompt_lines {
    struct xm_strbuf *list; /* owned */
    size_t n, capacity;
};
enum xm_status xm_prompt_lines_add(struct xm_prompt_lines *lines, const char *text,
                                   size_t n, struct xm_error *err);
/* Adds one of each line; those without a character are left out. A line that begins with a quote is
 * a JSON string, and so may have line breaks in it. XM_INVALID: the sentence has `name`, which is
 * the file's, and the line. */
enum xm_status xm_prompt_lines_split(const struct xm_strbuf *text, const char *name,
                                     struct xm_prompt_lines *lines, struct xm_error *err);
void xm_prompt_lines_free(struct xm_prompt_lines *lines);

#ifdef __cplusplus
}
#endif
#endif
