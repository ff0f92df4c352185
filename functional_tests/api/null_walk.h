/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of every public function with one missing argument. tools/make_null_walk writes the
 * calls, test_null_walk.cpp runs them.
 */
#ifndef XM_FUNCTIONAL_TESTS_API_NULL_WALK_H
#define XM_FUNCTIONAL_TESTS_API_NULL_WALK_H

#include <string.h>

#include "openvino/c/openvino.h"
#include "openvino/genai/c/llm_pipeline.h"
#include "xemoe/xemoe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Valid arguments. Handles are alive; arrays have at least one element. */
struct null_walk_values {
    ov_core_t *core;
    ov_model_t *model;
    ov_compiled_model_t *compiled;
    ov_infer_request_t *request;
    ov_tensor_t *tensor;
    ov_output_port_t *port;
    ov_output_const_port_t *const_port;
    ov_layout_t *layout;
    ov_remote_context_t *context; /* NULL without a device, as the next two */
    xm_sequence_t *sequence;
    xm_batch_t *batch;
    ov_genai_json_container *json;
    ov_genai_chat_history *history;
    ov_genai_generation_config *config;
    ov_genai_perf_metrics *metrics;
    ov_genai_decoded_results *results;
    ov_genai_llm_pipeline *pipeline;

    const char *text, *device, *model_path, *package_path, *model_text;
    size_t model_size;
    const wchar_t *wide_text;
    const char *long_text; /* one megabyte */
    const wchar_t *long_wide_text;
    void *memory;
    const char **texts;
    const int64_t *numbers; /* two; also used as dimensions */
    const int32_t *tokens;
    const size_t *indexes;
    const float *floats;
    const int *integers;
    const ov_dimension_t *dimensions; /* two */
    const ov_partial_shape_t *partial_shapes;
    const ov_property_t *properties;
    const ov_callback_t *callback;
    const xm_batch_entry_t *entries;
    const streamer_callback *streamer;
    const ov_output_port_t **ports;
    ov_util_log_callback_func log;
    xm_lost_file_callback_t lost;
    xm_build_callback_t built;
    ov_shape_t shape;

    const struct null_walk_values *freed; /* its handles were freed */

    /* Lists and structs that contain NULL. */
    const char **no_texts;
    const ov_partial_shape_t *hollow_shapes;
    const ov_property_t *no_key, *no_value;
    const ov_callback_t *no_callback;
    const xm_batch_entry_t *no_sequence, *no_tokens;
    const streamer_callback *no_streamer;
    const ov_output_port_t **no_ports;
};

enum null_walk_kind {
    NULL_WALK_MISSING, /* a required argument is NULL */
    /* an optional argument is NULL, or the function returns no code */
    NULL_WALK_OPTIONAL,
    /* the function is not implemented and says so for any arguments */
    NULL_WALK_UNOFFERED,
    NULL_WALK_STRANGE, /* a handle that was freed or is of another kind */
    NULL_WALK_LONG     /* a text of one megabyte */
};

/* Instead of an expected code: any code but that for invalid arguments. */
enum { NULL_WALK_ANY = 1000 };

struct null_walk_case {
    const char *function, *parameter;
    enum null_walk_kind kind;
    long expected;
    /* Returns the function's code. Sets *touched if an output argument was written to. */
    long (*call)(const struct null_walk_values *v, bool *touched);
};

extern const struct null_walk_case null_walk_cases[];
extern const size_t null_walk_n_cases, null_walk_n_functions;

/* The pattern in output arguments that shows whether they were written to. */
enum { NULL_WALK_BYTE = 0x5a };

static inline void
null_walk_fill(void *p, size_t n)
{
    memset(p, NULL_WALK_BYTE, n);
}

static inline bool
null_walk_is_filled(const void *p, size_t n)
{
    const unsigned char *bytes = (const unsigned char *)p;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != NULL_WALK_BYTE)
            return false;
    }
    return true;
}

#ifdef __cplusplus
}
#endif
#endif
