/* SPDX-License-Identifier: Apache-2.0
 *
 * How a text is to be generated.
 *
 * Setters take any value; ov_genai_generation_config_validate, which generate calls too, says
 * whether they go together. Why not stands in the log. Used by one thread at a time; while generate
 * or set_generation_config runs with it, it is that thread's.
 */
#ifndef OPENVINO_GENAI_C_GENERATION_CONFIG_H
#define OPENVINO_GENAI_C_GENERATION_CONFIG_H

#include "openvino/c/ov_common.h"
#include "openvino/genai/c/visibility.h"

/* When a search with beams has found enough. */
typedef enum { EARLY, HEURISTIC, NEVER } StopCriteria;

typedef struct ov_genai_generation_config_opaque ov_genai_generation_config;

/* With the defaults: no limit, no sampling, the model's own ends. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_create(ov_genai_generation_config **config);
/* From a generation_config.json; members that nobody knows are ignored. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_create_from_json(
    const char *json_path, ov_genai_generation_config **config);
OPENVINO_GENAI_C_EXPORTS void
ov_genai_generation_config_free(ov_genai_generation_config *handle);

/* ---- where a text ends ---- */

/* At most so many new tokens, none only with echo; wins over max_length, which counts the prompt's
 * too. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_max_new_tokens(
    ov_genai_generation_config *handle, size_t value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_max_length(
    ov_genai_generation_config *config, size_t value);
/* Go on behind tokens that end a text; wants a limit. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_ignore_eos(ov_genai_generation_config *config, bool value);
/* None of them comes before so many new tokens, with ignore_eos neither. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_min_new_tokens(
    ov_genai_generation_config *config, size_t value);
/* NULL among the strings is skipped. The text ends before the one that comes first, less the blanks
 * that its token begins with. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_stop_strings(
    ov_genai_generation_config *config, const char **strings, size_t count);
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_include_stop_str_in_output(
    ov_genai_generation_config *config, bool value);
/* 4096 different ones at most, none below 0. The one that ends a text belongs to it, unless it is
 * a special token. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_stop_token_ids(
    ov_genai_generation_config *config, const int64_t *token_ids, size_t token_ids_num);
/* Sets only this id: it has to be among the stop ids, too. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_eos_token_id(
    ov_genai_generation_config *config, int64_t id);

/* ---- what comes out ---- */

/* The text begins with the prompt. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_echo(ov_genai_generation_config *config, bool value);
/* Not 0: log-probabilities of the chosen tokens are kept (xm_genai_results_logprobs). */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_logprobs(ov_genai_generation_config *config, size_t value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_num_return_sequences(
    ov_genai_generation_config *config, size_t value);

/* ---- beams: texts that are likeliest as a whole ---- */

/* More than one: beam search, of which the best num_return_sequences texts come out; a streamer
 * does not see them. Without do_sample and penalties. Else the others here have no say. */

OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_num_beam_groups(
    ov_genai_generation_config *config, size_t value);
/* 1024 at most. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_num_beams(
    ov_genai_generation_config *config, size_t value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_diversity_penalty(
    ov_genai_generation_config *config, float value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_length_penalty(
    ov_genai_generation_config *config, float value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_stop_criteria(
    ov_genai_generation_config *config, StopCriteria value);

/* ---- which token comes next ---- */

/* Runs of so many tokens occur once. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_no_repeat_ngram_size(
    ov_genai_generation_config *config, size_t value);
/* False: the likeliest; the next four and the seed have no say. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_do_sample(ov_genai_generation_config *config, bool value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_temperature(
    ov_genai_generation_config *config, float value);
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_top_p(ov_genai_generation_config *config, float value);
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_top_k(ov_genai_generation_config *config, size_t value);
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_min_p(ov_genai_generation_config *config, float value);
/* Of all tokens before, the prompt's too. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_repetition_penalty(
    ov_genai_generation_config *config, float value);
/* Of new tokens. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_presence_penalty(
    ov_genai_generation_config *config, float value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_frequency_penalty(
    ov_genai_generation_config *config, float value);
/* The same seed, the same text. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_rng_seed(ov_genai_generation_config *config, size_t value);

/* ---- tokens that are guessed and checked together: the same text, but for rounding where a
 * device multiplies more than four tokens in 8 bits ---- */

/* num_assistant_tokens at a time are guessed to come as they did where the last max_ngram_size
 * tokens were before in prompt or answer, where both are set. Not with beams or several texts; with
 * do_sample nothing is guessed. A threshold is for another model that guesses: it has no effect,
 * and does not go with num_assistant_tokens. */

OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_assistant_confidence_threshold(
    ov_genai_generation_config *config, float value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_num_assistant_tokens(
    ov_genai_generation_config *config, size_t value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_max_ngram_size(
    ov_genai_generation_config *config, size_t value);

/* ---- */

/* SIZE_MAX: not set. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_get_max_new_tokens(
    const ov_genai_generation_config *config, size_t *max_new_tokens);
/* OK, or UNKNOW_EXCEPTION and a sentence in the log. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_validate(ov_genai_generation_config *config);

#endif
