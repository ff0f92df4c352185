/* SPDX-License-Identifier: Apache-2.0
 *
 * Generation configs: how a text is generated.
 *
 * Setters accept any value. ov_genai_generation_config_validate, which generate also calls, checks
 * that the values are possible together; the log says why they are not. A config is used by one
 * thread at a time, also while generate or set_generation_config reads it.
 */
#ifndef OPENVINO_GENAI_C_GENERATION_CONFIG_H
#define OPENVINO_GENAI_C_GENERATION_CONFIG_H

#include "openvino/c/ov_common.h"
#include "openvino/genai/c/visibility.h"

/* When a beam search stops. */
typedef enum { EARLY, HEURISTIC, NEVER } StopCriteria;

typedef struct ov_genai_generation_config_opaque ov_genai_generation_config;

/* Creates a config with the defaults: no limit, no sampling, and the ids that end the model's
 * texts. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_create(ov_genai_generation_config **config);
/* Reads a generation_config.json; unknown members are ignored. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_create_from_json(
    const char *json_path, ov_genai_generation_config **config);
OPENVINO_GENAI_C_EXPORTS void
ov_genai_generation_config_free(ov_genai_generation_config *handle);

/* ---- the end of a text ---- */

/* The maximum number of new tokens; 0 is valid only with echo. If it is set, max_length has no
 * effect, which is the maximum for prompt and new tokens together. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_max_new_tokens(
    ov_genai_generation_config *handle, size_t value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_max_length(
    ov_genai_generation_config *config, size_t value);
/* Continues a text after its end tokens; needs a limit. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_ignore_eos(ov_genai_generation_config *config, bool value);
/* End tokens are not chosen before this number of new tokens, even with ignore_eos. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_min_new_tokens(
    ov_genai_generation_config *config, size_t value);
/* Ends the text before the stop string that occurs first in it; NULL strings are skipped. Without
 * include_stop_str_in_output, blanks before the stop string are dropped if they are in the token in
 * which it begins. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_stop_strings(
    ov_genai_generation_config *config, const char **strings, size_t count);
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_include_stop_str_in_output(
    ov_genai_generation_config *config, bool value);
/* The end tokens: at most 4096 different ids, none negative. The end token belongs to the text
 * unless it is a special token. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_stop_token_ids(
    ov_genai_generation_config *config, const int64_t *token_ids, size_t token_ids_num);
/* Sets only this id, which must also be one of the stop token ids. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_eos_token_id(
    ov_genai_generation_config *config, int64_t id);

/* ---- the results ---- */

/* The text begins with the prompt's text. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_echo(ov_genai_generation_config *config, bool value);
/* Not 0: keeps the log-probabilities of the chosen tokens (xm_genai_results_logprobs). */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_logprobs(ov_genai_generation_config *config, size_t value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_num_return_sequences(
    ov_genai_generation_config *config, size_t value);

/* ---- beam search: texts with the highest probability as a whole ---- */

/* num_beams above 1: beam search, which returns the best num_return_sequences texts. A streamer
 * does not see them. It excludes do_sample and penalties. With one beam the other settings of this
 * section have no effect. */

OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_num_beam_groups(
    ov_genai_generation_config *config, size_t value);
/* At most 1024. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_num_beams(
    ov_genai_generation_config *config, size_t value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_diversity_penalty(
    ov_genai_generation_config *config, float value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_length_penalty(
    ov_genai_generation_config *config, float value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_stop_criteria(
    ov_genai_generation_config *config, StopCriteria value);

/* ---- the choice of the next token ---- */

/* No sequence of this number of tokens occurs twice. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_no_repeat_ngram_size(
    ov_genai_generation_config *config, size_t value);
/* False: always chooses the likeliest token; temperature, top_p, top_k, min_p and the seed have no
 * effect. */
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
/* Applies to all earlier tokens, including the prompt's. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_repetition_penalty(
    ov_genai_generation_config *config, float value);
/* Presence and frequency penalties apply to new tokens only. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_presence_penalty(
    ov_genai_generation_config *config, float value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_frequency_penalty(
    ov_genai_generation_config *config, float value);
/* Equal seeds give equal texts. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_rng_seed(ov_genai_generation_config *config, size_t value);

/* ---- prompt lookup: drafted tokens that one run verifies. The text is the same, except for
 * rounding on devices that multiply more than four tokens in 8 bits ---- */

/* If both are set: drafts num_assistant_tokens tokens, namely those that followed an earlier
 * occurrence of the last max_ngram_size tokens in prompt or answer. Not possible with beams or
 * several texts; do_sample drafts nothing. The confidence threshold is for a second model that
 * drafts, which this library does not have: it has no effect, and excludes num_assistant_tokens. */

OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_set_assistant_confidence_threshold(
    ov_genai_generation_config *config, float value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_num_assistant_tokens(
    ov_genai_generation_config *config, size_t value);
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_set_max_ngram_size(
    ov_genai_generation_config *config, size_t value);

/* ---- reading and checking ---- */

/* Returns SIZE_MAX if the limit is not set. */
OPENVINO_GENAI_C_EXPORTS ov_status_e ov_genai_generation_config_get_max_new_tokens(
    const ov_genai_generation_config *config, size_t *max_new_tokens);
/* Returns OK, or UNKNOW_EXCEPTION with a sentence in the log. */
OPENVINO_GENAI_C_EXPORTS ov_status_e
ov_genai_generation_config_validate(ov_genai_generation_config *config);

#endif
