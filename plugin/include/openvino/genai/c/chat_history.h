/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of a chat, with the tools and extra variables for the chat template.
 *
 * Arguments are copied; the caller frees the containers that are returned. A history is used by one
 * thread at a time, also while generate reads it.
 */
#ifndef OPENVINO_GENAI_C_CHAT_HISTORY_H
#define OPENVINO_GENAI_C_CHAT_HISTORY_H

#include "openvino/genai/c/json_container.h"
#include "openvino/genai/c/visibility.h"

typedef struct ov_genai_chat_history_opaque ov_genai_chat_history;

typedef enum {
    OV_GENAI_CHAT_HISTORY_OK = 0,
    OV_GENAI_CHAT_HISTORY_INVALID_PARAM = -1,
    OV_GENAI_CHAT_HISTORY_OUT_OF_BOUNDS = -2,
    OV_GENAI_CHAT_HISTORY_EMPTY = -3,
    OV_GENAI_CHAT_HISTORY_INVALID_JSON = -4,
    OV_GENAI_CHAT_HISTORY_ERROR = -5
} ov_genai_chat_history_status_e;

OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e
ov_genai_chat_history_create(ov_genai_chat_history **history);
/* Creates a history with these messages. INVALID_JSON: not an array of objects. */
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e
ov_genai_chat_history_create_from_json_container(ov_genai_chat_history **history,
                                                 const ov_genai_json_container *messages);
OPENVINO_GENAI_C_EXPORTS void ov_genai_chat_history_free(ov_genai_chat_history *history);

/* Appends a message. INVALID_JSON: not an object. */
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e ov_genai_chat_history_push_back(
    ov_genai_chat_history *history, const ov_genai_json_container *message);
/* Removes the last message. Returns EMPTY if there is no message, as get_first and get_last do. */
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e
ov_genai_chat_history_pop_back(ov_genai_chat_history *history);
/* Returns all messages, as an array. */
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e
ov_genai_chat_history_get_messages(const ov_genai_chat_history *history,
                                   ov_genai_json_container **messages);
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e
ov_genai_chat_history_get_message(const ov_genai_chat_history *history, size_t index,
                                  ov_genai_json_container **message);
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e ov_genai_chat_history_get_first(
    const ov_genai_chat_history *history, ov_genai_json_container **message);
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e ov_genai_chat_history_get_last(
    const ov_genai_chat_history *history, ov_genai_json_container **message);
/* Removes all messages; tools and extra variables stay. */
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e
ov_genai_chat_history_clear(ov_genai_chat_history *history);
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e
ov_genai_chat_history_size(const ov_genai_chat_history *history, size_t *size);
/* Sets *empty to 1 or 0. */
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e
ov_genai_chat_history_empty(const ov_genai_chat_history *history, int *empty);

/* The chat template's variable `tools`, an array; [] by default. */
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e ov_genai_chat_history_set_tools(
    ov_genai_chat_history *history, const ov_genai_json_container *tools);
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e ov_genai_chat_history_get_tools(
    const ov_genai_chat_history *history, ov_genai_json_container **tools);
/* An object whose members are variables for the chat template; {} by default. */
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e
ov_genai_chat_history_set_extra_context(ov_genai_chat_history *history,
                                        const ov_genai_json_container *extra_context);
OPENVINO_GENAI_C_EXPORTS ov_genai_chat_history_status_e
ov_genai_chat_history_get_extra_context(const ov_genai_chat_history *history,
                                        ov_genai_json_container **extra_context);

#endif
