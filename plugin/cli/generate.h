/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe generate: what one text and several in parallel share.
 */
#ifndef XM_PLUGIN_CLI_GENERATE_H
#define XM_PLUGIN_CLI_GENERATE_H

#include "plugin/cli/profile_groups.h"
#include "plugin/cli/prompt_file.h"
#include "plugin/cli/text_out.h"

struct xm_generate_args {
    struct xm_cli_generation generation; /* first: the common options */
    const char *prompt, *file, *ids;
    const char *system; /* with `chat`: what the model is told before the prompt */
    bool chat;          /* the prompt is a message of a user, through the chat template */
    struct xm_sampling sampling; /* what the common options say of it */
    uint64_t tokens, parallel;   /* parallel: 0: not given */
    bool ignore_eos, special, verbose, profile;
    const char *profile_out; /* a file for the trace */
};

/* A greedy run uses no seed. */
bool xm_generate_is_drawn(const struct xm_generate_args *a);

/* What the options say of a text; the caller adds prompt and callback. `stops` outlives it. */
struct xm_generation xm_generate_wish(const struct xm_cli_model *m,
                                      const struct xm_generate_args *a,
                                      const struct xm_cli_stops *stops);

/* The context that bounds prompt and text, in tokens; 0: no bound. */
uint64_t xm_generate_context(const struct xm_cli_model *m,
                             const struct xm_generate_args *a);

/* XM_INVALID: a prompt of `n` tokens leaves no room in the context, or without -c it is longer than
 * the context that the model was trained for. */
enum xm_status xm_generate_check_prompt(const struct xm_cli_model *m,
                                        const struct xm_generate_args *a, uint64_t n,
                                        struct xm_error *err);
/* The same as an exit code, with a warning where prompt and text together exceed the context that
 * the model was trained for. */
int xm_generate_check_room(const struct xm_cli_model *m, const struct xm_generate_args *a,
                           uint64_t n);

/* Appends the ids of a prompt of text, which with --chat goes through the chat template. */
enum xm_status xm_generate_encode(const struct xm_cli_model *m,
                                  const struct xm_generate_args *a,
                                  const struct xm_strbuf *text, struct xm_token_list *out,
                                  struct xm_error *err);

/* As --json has it: "stop", "length" … */
const char *xm_generate_finish_text(enum xm_finish finish);

/* "xemoe: the context of … is full", of a text or of so many. */
void xm_generate_say_full(uint64_t context, size_t texts);

/* What --profile and --profile-out measure of a request that is about to run … */
enum xm_status xm_generate_begin_profile(const struct xm_generate_args *a,
                                         struct xm_infer *r, struct xm_profile *p,
                                         struct xm_error *err);
/* … and when it has run: the limits that the table needs, and the trace's file. */
enum xm_status xm_generate_end_profile(const struct xm_cli_model *m,
                                       const struct xm_generate_args *a,
                                       struct xm_profile *p, struct xm_costs *c,
                                       struct xm_error *err);

/* What has been written is out: the exit code, and the sentence of a run that Ctrl-C has ended. */
int xm_generate_end(void);

/* The texts of --parallel; of --ids where there are no lines. */
int xm_generate_parallel(struct xm_cli_model *m, const struct xm_generate_args *a,
                         const struct xm_prompt_lines *lines);

#endif
