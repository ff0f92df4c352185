/* SPDX-License-Identifier: Apache-2.0
 *
 * A JSON value as a handle: messages of a chat, definitions of tools. It is immutable: any thread
 * may read it until one thread frees it.
 */
#ifndef OPENVINO_GENAI_C_JSON_CONTAINER_H
#define OPENVINO_GENAI_C_JSON_CONTAINER_H

#include "openvino/genai/c/visibility.h"

typedef struct ov_genai_json_container_opaque ov_genai_json_container;

typedef enum {
    OV_GENAI_JSON_CONTAINER_OK = 0,
    OV_GENAI_JSON_CONTAINER_INVALID_PARAM = -1,
    OV_GENAI_JSON_CONTAINER_INVALID_JSON = -2,
    OV_GENAI_JSON_CONTAINER_OUT_OF_BOUNDS = -3,
    OV_GENAI_JSON_CONTAINER_ERROR = -4
} ov_genai_json_container_status_e;

/* Creates an empty object. */
OPENVINO_GENAI_C_EXPORTS ov_genai_json_container_status_e
ov_genai_json_container_create(ov_genai_json_container **container);
/* Creates the value that the text encodes. INVALID_JSON: the text is not JSON, or has a number that
 * no double can hold; the log says where. */
OPENVINO_GENAI_C_EXPORTS ov_genai_json_container_status_e
ov_genai_json_container_create_from_json_string(ov_genai_json_container **container,
                                                const char *json_str);
OPENVINO_GENAI_C_EXPORTS ov_genai_json_container_status_e
ov_genai_json_container_create_object(ov_genai_json_container **container);
OPENVINO_GENAI_C_EXPORTS ov_genai_json_container_status_e
ov_genai_json_container_create_array(ov_genai_json_container **container);
OPENVINO_GENAI_C_EXPORTS void
ov_genai_json_container_free(ov_genai_json_container *container);
/* Writes the value as compact text; the members of objects keep their order. *output_size is the
 * size of the buffer and becomes the size of the text, in bytes with the NUL. output NULL: only
 * sets the size. OUT_OF_BOUNDS: the buffer is too small and stays unchanged. */
OPENVINO_GENAI_C_EXPORTS ov_genai_json_container_status_e
ov_genai_json_container_to_json_string(const ov_genai_json_container *container,
                                       char *output, size_t *output_size);
OPENVINO_GENAI_C_EXPORTS ov_genai_json_container_status_e ov_genai_json_container_copy(
    const ov_genai_json_container *source, ov_genai_json_container **target);

#endif
