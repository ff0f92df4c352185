/* SPDX-License-Identifier: Apache-2.0
 *
 * What generate and chat share: the options that choose tokens, and the way of tokens to text on
 * standard output: detokenizer, thoughts apart, stop strings, whole characters only.
 */
#ifndef XM_PLUGIN_CLI_TEXT_OUT_H
#define XM_PLUGIN_CLI_TEXT_OUT_H

#include "plugin/cli/cli.h"
#include "plugin/generate.h"
#include "plugin/text/answer.h"
#include "plugin/text/detokenizer.h"
#include "plugin/text/stop_strings.h"

/* The seed before one is given. */
#define XM_CLI_RANDOM_SEED UINT64_MAX

/* First member of the commands' structs. */
struct xm_cli_generation {
    struct xm_cli_target target;
    struct xm_cli_texts stops;
    uint64_t top_k, seed, last_n;
    uint64_t context; /* 0: not given */
    float temperature, top_p, min_p;
    float repetition_penalty, presence_penalty, frequency_penalty;
};
enum { XM_CLI_N_GENERATION_OPTIONS = XM_CLI_N_TARGET_OPTIONS + 11 };
extern const struct xm_cli_option xm_cli_generation_options[XM_CLI_N_GENERATION_OPTIONS];
/* Checks ranges and fills the sampler's struct. */
int xm_cli_sampling(const struct xm_cli_generation *a, struct xm_sampling *out);

struct xm_text_out {
    struct xm_detokenizer detokenizer;
    struct xm_stop_strings *stops;
    struct xm_strbuf
        raw; /* detokenized, stop strings not looked for yet                   */
    struct xm_strbuf
        text;      /* all of it when `keep`, else what is not written yet            */
    bool has_text; /* false: there is no tokenizer, ids are written instead          */
    bool stream, keep, stopped;
    struct xm_answer
        *answer;        /* the caller's, begun: thoughts are no text; NULL: all is     */
    bool show_thoughts; /* the caller's choice                                         */
    bool on_terminal, styles, in_thought, in_line, wrote; /* of standard output */
    size_t n_thought;                                     /* tokens that are not shown */
    struct xm_error err;
};

/* tokenizer may be NULL. stream: write as it comes; keep: collect in text. */
enum xm_status xm_text_out_begin(struct xm_text_out *o,
                                 const struct xm_tokenizer *tokenizer,
                                 const struct xm_cli_texts *stops, bool stream, bool keep,
                                 bool skip_special, struct xm_error *err);
/* An on_token callback of xm_generation; ctx is the struct. False: stop. */
bool xm_text_out_token(int32_t id, void *ctx);
/* Writes what is held back; o->err has the first failure of all. */
enum xm_status xm_text_out_finish(struct xm_text_out *o);
void xm_text_out_end(struct xm_text_out *o);

#endif
