/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by generate and chat: the sampling options, and writing the pieces of a generated text to
 * standard output.
 */
#ifndef XM_PLUGIN_CLI_TEXT_OUT_H
#define XM_PLUGIN_CLI_TEXT_OUT_H

#include "plugin/cli/cli.h"
#include "plugin/pipeline/session.h"
#include "plugin/text/sampling_lists.h"

/* The values of the shared options; the kinds of sampling.def decide the types. First member of the
 * commands' structs. */
#define XM_CLI_MEMBER_REAL      float
#define XM_CLI_MEMBER_WHOLE     uint64_t
#define XM_CLI_MEMBER_COUNT     uint64_t
#define XM_CLI_MEMBER_SEED      const char *
#define XM_CLI_MEMBER_BIAS      struct xm_cli_texts
#define XM_CLI_MEMBER_SET       struct xm_cli_texts
#define XM_CLI_MEMBER_SEQUENCES struct xm_cli_texts
struct xm_cli_generation {
    struct xm_cli_target target;
    struct xm_cli_texts stops;
    uint64_t context; /* 0: not given */
    /* texts or files; NULL: not given */
    const char *grammar, *json_schema;
#define SAMPLING(kind, member, ...) XM_CLI_MEMBER_##kind member;
#include "plugin/text/sampling.def"
};
enum { XM_CLI_N_GENERATION_OPTIONS = XM_CLI_N_TARGET_OPTIONS + XM_N_SAMPLING + 6 };
extern const struct xm_cli_option xm_cli_generation_options[XM_CLI_N_GENERATION_OPTIONS];
/* Sets the sampling options to "not given": NaN, UINT64_MAX, or NULL. Call it before the options
 * are parsed. */
void xm_cli_generation_open(struct xm_cli_generation *a);
/* Whether the option of a numeric row of sampling.def is given. */
bool xm_cli_sampling_is_given(const struct xm_cli_generation *a, size_t row);
/* Returns an option that asks for sampling although --temp is not given: then the temperature is
 * that of the model's files, or llama.cpp's default. NULL: no such option is given. */
const char *xm_cli_sampling_option(const struct xm_cli_generation *a);
#define XM_CLI_DEFAULT_TEMPERATURE 0.8f
/* Checks the ranges and fills *out, except its lists; options that are not given have no effect.
 * XM_INVALID: a value is out of range; the sentence begins with "option --NAME". */
enum xm_status xm_cli_sampling(const struct xm_cli_generation *a, struct xm_sampling *out,
                               struct xm_error *err);
/* The `check` of a target whose check_ctx is the xm_cli_generation: XM_EXIT_USAGE if --logit-bias
 * names a token that the model's vocabulary lacks. */
int xm_cli_check_biased(const struct xm_cli_model *m, const void *generation);
/* Makes the lists of the options; `package` has the tokenizer for their texts. *lists, which the
 * caller frees, must outlive *out. */
enum xm_status xm_cli_sampling_lists(const struct xm_cli_generation *a,
                                     const struct xm_package *package,
                                     struct xm_sampling_lists *lists,
                                     struct xm_sampling *out, struct xm_error *err);

/* The texts of --stop; they point into argv. */
struct xm_cli_stops {
    struct xm_slice list[XM_CLI_MAX_TEXTS];
    size_t n;
};
struct xm_cli_stops xm_cli_stops(const struct xm_cli_generation *a);

struct xm_text_out {
    bool has_text;      /* false: there is no tokenizer; token ids are written instead */
    bool stream;        /* false: nothing is written                                   */
    bool show_thoughts; /* set by the caller after xm_text_out_begin */
    bool on_terminal;   /* standard output is a terminal                               */
    bool styles;        /* thoughts are written faint                                  */
    bool in_thought;    /* the last piece was a thought                                */
    bool in_line;       /* the last line is incomplete */
    bool in_call;       /* the last piece was a tool call */
    bool wrote;         /* something was written                                       */
    size_t n_thought;   /* tokens of thoughts that are not shown */
};

/* Initialises all members. */
void xm_text_out_begin(struct xm_text_out *o, bool has_text, bool stream);
/* The on_piece callback of struct xm_generation; ctx is a struct xm_text_out. Returns false after
 * Ctrl-C, which ends the text. */
bool xm_text_out_piece(const struct xm_piece *piece, void *ctx);
/* Ends the line of the text. `is_whole` false: the run failed; then the line is ended only if
 * something was written. */
void xm_text_out_finish(struct xm_text_out *o, bool is_whole);

#endif
