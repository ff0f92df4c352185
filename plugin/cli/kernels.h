/* SPDX-License-Identifier: Apache-2.0
 *
 * The program's cache folder for compiled kernels, and the progress lines of building them.
 */
#ifndef XM_PLUGIN_CLI_KERNELS_H
#define XM_PLUGIN_CLI_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

/* Appends the folder for compiled kernels: `option` (the value of --cache-dir) unless NULL, else
 * $XDG_CACHE_HOME/xemoe or $HOME/.cache/xemoe. A folder that can be read but not written is used,
 * with a warning. Appends nothing, for no cache, if the option is "none" or "", or the user's own
 * folder can be neither made nor read. XM_IO: the option's folder can be neither made nor read.
 * Call it before the first device is opened. */
enum xm_status xm_cli_cache_open(const char *option, struct xm_strbuf *out,
                                 struct xm_error *err);
/* Lets the driver use that folder for its own files, without messages. For commands that query
 * devices before they open a model, which calls xm_cli_cache_open. */
void xm_cli_cache_use(const char *option);

/* Until xm_cli_hide_builds, shows "<what> n tokens" with the request's progress in percent. */
struct xm_infer;
void xm_cli_show_reading(struct xm_infer *r, const char *what, uint64_t n);

/* Begin and end showing the kernel that is being built. Do not show builds while text is written to
 * the terminal, because the progress line overwrites the current line. */
void xm_cli_show_builds(void);
void xm_cli_hide_builds(void);

/* As xm_text_out_piece, for a run that shows builds: hides them before the first token is
 * written. */
struct xm_piece;
bool xm_cli_piece_out(const struct xm_piece *piece, void *ctx);

#endif
