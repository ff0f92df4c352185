/* SPDX-License-Identifier: Apache-2.0
 *
 * What generate and chat share: the options that choose tokens, and how the pieces of a text are
 * shown on standard output.
 */
#ifndef XM_PLUGIN_CLI_TEXT_OUT_H
#define XM_PLUGIN_CLI_TEXT_OUT_H

#include "plugin/cli/cli.h"
#include "plugin/pipeline/session.h"

/* First member of the commands' structs. */
struct xm_cli_generation {
    struct xm_cli_target target;
    struct xm_cli_texts stops;
    uint64_t top_k, last_n;
    const char *seed; /* NULL: not given */
    uint64_t context; /* 0: not given */
    float temperature, top_p, min_p;
    float repetition_penalty, presence_penalty, frequency_penalty;
};
enum { XM_CLI_N_GENERATION_OPTIONS = XM_CLI_N_TARGET_OPTIONS + 12 };
extern const struct xm_cli_option xm_cli_generation_options[XM_CLI_N_GENERATION_OPTIONS];
/* Checks ranges and fills the sampler's struct. */
int xm_cli_sampling(const struct xm_cli_generation *a, struct xm_sampling *out);

/* Of --stop; they point into argv. */
struct xm_cli_stops {
    struct xm_slice list[XM_CLI_MAX_TEXTS];
    size_t n;
};
struct xm_cli_stops xm_cli_stops(const struct xm_cli_generation *a);

struct xm_text_out {
    bool has_text;      /* false: there is no tokenizer, ids are written instead     */
    bool stream;        /* false: nothing is written                                 */
    bool show_thoughts; /* the caller's choice                                       */
    bool on_terminal, styles, in_thought, in_line, wrote; /* of standard output */
    size_t n_thought;                                     /* tokens that are not shown */
};

void xm_text_out_begin(struct xm_text_out *o, bool has_text, bool stream);
/* An on_piece callback of xm_generation; ctx is the struct. False: Ctrl-C. */
bool xm_text_out_piece(const struct xm_piece *piece, void *ctx);
/* Ends the line. `is_whole`: the run has not failed; of one that failed before the first text there
 * is no line to end. */
void xm_text_out_finish(struct xm_text_out *o, bool is_whole);

#endif
