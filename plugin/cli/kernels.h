/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled kernels as the program sees them: the folder that keeps them, and a line that counts
 * them while they are built.
 */
#ifndef XM_PLUGIN_CLI_KERNELS_H
#define XM_PLUGIN_CLI_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

/* The folder for compiled kernels into out, before the first device is opened: what --cache-dir
 * says, else the user's ($XDG_CACHE_HOME/xemoe, $HOME/.cache/xemoe). Nothing is added for
 * "none", for "", and where the user's folder cannot be written. */
enum xm_status xm_cli_cache_open(const char *option, struct xm_strbuf *out,
                                 struct xm_error *err);

/* "<what> n tokens", and percent as the request tells how many are done; up to hide_builds. */
struct xm_infer;
void xm_cli_show_reading(struct xm_infer *r, const char *what, uint64_t n);

/* From now on, until the other is called, builds are shown. Not while text is written to the
 * terminal: the line would be wiped away. */
void xm_cli_show_builds(void);
void xm_cli_hide_builds(void);

/* xm_text_out_piece for runs during which builds are shown: from the first token on the terminal
 * belongs to the text. */
struct xm_piece;
bool xm_cli_piece_out(const struct xm_piece *piece, void *ctx);

#endif
