/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe generate: functions shared by the generation of one text (generate.c) and of several
 * texts in parallel (generate_parallel.c).
 */
#ifndef XM_PLUGIN_CLI_GENERATE_H
#define XM_PLUGIN_CLI_GENERATE_H

#include "plugin/cli/prefix_cache.h"
#include "plugin/cli/profile_groups.h"
#include "plugin/cli/prompt_file.h"
#include "plugin/cli/text_out.h"

struct xm_generate_args {
    struct xm_cli_generation generation; /* first: the common options */
    const char *prompt, *file, *ids;
    /* with `chat`: the system message */
    const char *system;
    bool chat; /* the prompt is a user's message, rendered by the chat template */
    struct xm_sampling sampling; /* from the common options */
    /* from the common options; `sampling` points to them */
    struct xm_sampling_lists lists;
    struct xm_grammar *grammar; /* from the common options; owned; NULL: none */
    uint64_t tokens, parallel;  /* new tokens; texts at a time, 0: not given */
    bool ignore_eos, special, verbose, profile;
    const char *profile_out; /* a file for the trace */
    struct xm_cli_prefix_cache prefixes;
};

/* Whether tokens are sampled and not chosen greedily: only then the seed matters. */
bool xm_generate_is_drawn(const struct xm_generate_args *a);

/* Returns the parameters of a text from the options; the caller adds prompt and callback. `stops`
 * must outlive the result. */
struct xm_generation xm_generate_wish(const struct xm_cli_model *m,
                                      const struct xm_generate_args *a,
                                      const struct xm_cli_stops *stops);

/* Returns the maximum number of tokens of prompt and text together; 0: no bound. */
uint64_t xm_generate_context(const struct xm_cli_model *m,
                             const struct xm_generate_args *a);

/* Checks the length of a prompt. XM_INVALID: its `n` tokens fill the context, or they exceed the
 * context that the model was trained for and -c is not given. */
enum xm_status xm_generate_check_prompt(const struct xm_cli_model *m,
                                        const struct xm_generate_args *a, uint64_t n,
                                        struct xm_error *err);
/* As xm_generate_check_prompt, but prints the error and returns the program's exit code (enum
 * xm_exit). Also logs a warning if the prompt and the longest text that may follow exceed the
 * context that the model was trained for. */
int xm_generate_check_room(const struct xm_cli_model *m, const struct xm_generate_args *a,
                           uint64_t n);

/* Appends the token ids of a prompt text, rendered by the chat template if --chat is given. */
enum xm_status xm_generate_encode(const struct xm_cli_model *m,
                                  const struct xm_generate_args *a,
                                  const struct xm_strbuf *text, struct xm_token_list *out,
                                  struct xm_error *err);

/* Returns the value of "finish" in --json: "stop", "length" … */
const char *xm_generate_finish_text(enum xm_finish finish);

/* Prints "xemoe: the context of … is full", for one text or for `texts`. */
void xm_generate_say_full(uint64_t context, size_t texts);

/* Starts measuring a request before its run, if --profile or --profile-out is given. */
enum xm_status xm_generate_begin_profile(const struct xm_generate_args *a,
                                         struct xm_infer *r, struct xm_profile *p,
                                         struct xm_error *err);
/* After the run: measures the device's rates for the table and writes the trace's file. */
enum xm_status xm_generate_end_profile(const struct xm_cli_model *m,
                                       const struct xm_generate_args *a,
                                       struct xm_profile *p, struct xm_costs *c,
                                       struct xm_error *err);

/* Flushes standard output and returns the exit code; prints a sentence if Ctrl-C ended the run. */
int xm_generate_end(void);

/* Generates the texts of --parallel from the prompts in `lines`, or from --ids if there are
 * none. */
int xm_generate_parallel(struct xm_cli_model *m, const struct xm_generate_args *a,
                         const struct xm_prompt_lines *lines);

#endif
