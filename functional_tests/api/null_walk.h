/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of every public function with one argument that is not there: what tools/make_null_walk
 * writes and test_null_walk.cpp runs.
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

/* The arguments that are there. Handles are alive; what has an index 0 has one element. */
struct null_walk_values {
    ov_core_t *core;
    ov_model_t *model;
    ov_compiled_model_t *compiled;
    ov_infer_request_t *request;
    ov_tensor_t *tensor;
    ov_output_port_t *port;
    ov_output_const_port_t *const_port;
    ov_layout_t *layout;
    ov_remote_context_t *context; /* NULL where there is no device; so are the next two */
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
    const char *long_text; /* a megabyte */
    const wchar_t *long_wide_text;
    void *memory;
    const char **texts;
    const int64_t *numbers; /* two; as dimensions, too */
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

    const struct null_walk_values *freed; /* its handles are dead */

    /* The same with NULL in them. */
    const char **no_texts;
    const ov_partial_shape_t *hollow_shapes;
    const ov_property_t *no_key, *no_value;
    const ov_callback_t *no_callback;
    const xm_batch_entry_t *no_sequence, *no_tokens;
    const streamer_callback *no_streamer;
    const ov_output_port_t **no_ports;
};

enum null_walk_kind {
    NULL_WALK_MISSING,   /* an argument that is needed                              */
    NULL_WALK_OPTIONAL,  /* one that is not, or the function has no code            */
    NULL_WALK_UNOFFERED, /* the function says that it is not there, whatever it got */
    NULL_WALK_STRANGE,   /* a handle that was freed, or one of another kind         */
    NULL_WALK_LONG       /* a text of a megabyte                                    */
};

/* In place of a code: whatever comes of it, but not the code for bad arguments. */
enum { NULL_WALK_ANY = 1000 };

struct null_walk_case {
    const char *function, *parameter;
    enum null_walk_kind kind;
    long expected;
    /* The function's code. *touched: something that it was to fill was written to. */
    long (*call)(const struct null_walk_values *v, bool *touched);
};

extern const struct null_walk_case null_walk_cases[];
extern const size_t null_walk_n_cases, null_walk_n_functions;

/* Bytes by which one sees that nobody has written there. */
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
