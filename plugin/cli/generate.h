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
    struct xm_sampling sampling;    /* made of the common options */
    struct xm_sampling_lists lists; /* the same; sampling points to them */
    struct xm_grammar *grammar;     /* the same; owned; NULL: none */
    uint64_t tokens, parallel;      /* new tokens, texts at once; parallel 0: not given */
    bool ignore_eos, special, verbose, profile;
    const char *profile_out; /* a file for the trace */
    struct xm_cli_prefix_cache prefixes;
};

/* Whether tokens are drawn at random, not chosen greedily: only then the seed matters. */
bool xm_generate_is_drawn(const struct xm_generate_args *a);

/* The parameters of one text from the options; the caller adds prompt and callback. `stops` must
 * outlive it. */
struct xm_generation xm_generate_wish(const struct xm_cli_model *m,
                                      const struct xm_generate_args *a,
                                      const struct xm_cli_stops *stops);

/* Bound of prompt and text together, in tokens; 0: none. */
uint64_t xm_generate_context(const struct xm_cli_model *m,
                             const struct xm_generate_args *a);

/* Checks the length of a prompt. XM_INVALID: its `n` tokens fill the context, or -c is not given
 * and they exceed the context that the model was trained for. */
enum xm_status xm_generate_check_prompt(const struct xm_cli_model *m,
                                        const struct xm_generate_args *a, uint64_t n,
                                        struct xm_error *err);
/* The same as an exit code, with a warning where prompt and text together exceed the context that
 * the model was trained for. */
int xm_generate_check_room(const struct xm_cli_model *m, const struct xm_generate_args *a,
                           uint64_t n);

/* Appends the token ids of a prompt text, rendered by the chat template if --chat is given. */
enum xm_status xm_generate_encode(const struct xm_cli_model *m,
                                  const struct xm_generate_args *a,
                                  const struct xm_strbuf *text, struct xm_token_list *out,
                                  struct xm_error *err);

/* The value of "finish" in --json: "stop", "length" … */
const char *xm_generate_finish_text(enum xm_finish finish);

/* Prints "xemoe: the context of … is full", for one text or for `texts`. */
void xm_generate_say_full(uint64_t context, size_t texts);

/* Begins to measure a request that is about to run, if --profile or --profile-out is given. */
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
