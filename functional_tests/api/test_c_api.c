/* SPDX-License-Identifier: Apache-2.0
 *
 * A C program as users write it: reads a model, compiles it for GPU, runs a prompt, takes the
 * likeliest token, and continues with the states. The tokens must be those of OpenVINO for the
 * same file (golden/openvino_int4_asym_g64.safetensors, prompt "short").
 *
 *     test_c_api MODELS_DIR
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openvino/c/openvino.h"
#include "xemoe/xemoe.h"

enum { N_PROMPT = 5, N_GREEDY = 5 };
static const int64_t prompt[N_PROMPT] = {1343, 266, 267, 265,
                                         269}; /* Paris is the capital of */
static const int64_t greedy[N_GREEDY] = {1024, 13, 1500, 1501, 352};

static int failures;

static void
check(int condition, const char *what, int line)
{
    if (condition)
        return;
    const char *text = ov_get_last_err_msg();
    fprintf(stderr, "line %d: %s (last error: %s)\n", line, what, text ? text : "none");
    ov_free(text);
    failures++;
}
#define CHECK(condition) check(condition, #condition, __LINE__)

/* ---- one run ----------------------------------------------------------------------- */

enum run_kind { RUN_AT_ONCE, RUN_ASYNC };

static void
set_ids(ov_infer_request_t *r, const char *name, int64_t n, const int64_t *values)
{
    int64_t dims[] = {1, n};
    ov_shape_t shape = {2, dims};
    ov_tensor_t *t = NULL;
    void *data = NULL;
    CHECK(ov_tensor_create(I64, shape, &t) == OK);
    CHECK(ov_tensor_data(t, &data) == OK);
    memcpy(data, values, (size_t)n * sizeof(*values));
    CHECK(ov_infer_request_set_tensor(r, name, t) == OK);
    ov_tensor_free(t); /* the request keeps it */
}

static void
set_beam(ov_infer_request_t *r)
{
    static int32_t beam = 0;
    int64_t dims[] = {1};
    ov_shape_t shape = {1, dims};
    ov_tensor_t *t = NULL;
    CHECK(ov_tensor_create_from_host_ptr(I32, shape, &beam, &t) == OK);
    CHECK(ov_infer_request_set_tensor(r, "beam_idx", t) == OK);
    ov_tensor_free(t);
}

static int64_t
best_token(ov_infer_request_t *r, int64_t n_tokens)
{
    ov_tensor_t *t = NULL;
    ov_shape_t shape = {0, NULL};
    void *data = NULL;
    int64_t best = -1;
    CHECK(ov_infer_request_get_output_tensor(r, &t) == OK);
    if (!t)
        return -1;
    CHECK(ov_tensor_get_shape(t, &shape) == OK);
    CHECK(ov_tensor_data(t, &data) == OK);
    CHECK(shape.rank == 3 && shape.dims[0] == 1 && shape.dims[1] == n_tokens);
    if (shape.rank == 3 && shape.dims[1] == n_tokens) {
        const float *row = (const float *)data + (n_tokens - 1) * shape.dims[2];
        best = 0;
        for (int64_t i = 1; i < shape.dims[2]; i++)
            best = row[i] > row[best] ? i : best;
    }
    ov_shape_free(&shape);
    ov_tensor_free(t);
    return best;
}

/* Runs n tokens after `past` others and returns the likeliest token after the last. */
static int64_t
step(ov_infer_request_t *r, enum run_kind kind, int64_t past, int64_t n,
     const int64_t *ids)
{
    int64_t mask[N_PROMPT + N_GREEDY], positions[N_PROMPT + N_GREEDY];
    for (int64_t i = 0; i < past + n; i++)
        mask[i] = 1;
    for (int64_t i = 0; i < n; i++)
        positions[i] = past + i;
    set_ids(r, "input_ids", n, ids);
    set_ids(r, "attention_mask", past + n, mask);
    set_ids(r, "position_ids", n, positions);
    set_beam(r);
    if (kind == RUN_ASYNC) {
        CHECK(ov_infer_request_start_async(r) == OK);
        CHECK(ov_infer_request_wait(r) == OK);
    } else {
        CHECK(ov_infer_request_infer(r) == OK);
    }
    return best_token(r, n);
}

static void
generate(ov_infer_request_t *r, enum run_kind kind)
{
    int64_t token = step(r, kind, 0, N_PROMPT, prompt);
    CHECK(token == greedy[0]);
    for (int64_t i = 1; i < N_GREEDY; i++) {
        token = step(r, kind, N_PROMPT + i - 1, 1, &token);
        CHECK(token == greedy[i]);
    }
}

/* ---- requests ---------------------------------------------------------------------- */

static void
count_call(void *args)
{
    ++*(int *)args;
}

static void
run_request(ov_infer_request_t *r)
{
    int calls = 0;
    ov_callback_t callback = {count_call, &calls};
    generate(r, RUN_AT_ONCE);
    CHECK(xm_request_reset_states(r) == OK);
    CHECK(ov_infer_request_set_callback(r, &callback) == OK);
    generate(r, RUN_ASYNC);
    CHECK(calls == N_GREEDY);
    CHECK(ov_infer_request_cancel(r) == OK);
    CHECK(ov_infer_request_wait_for(r, 1000) == OK);
}

/* Creates a request; everything else is freed before it runs. */
static ov_infer_request_t *
make_request(const char *model_path)
{
    ov_core_t *core = NULL;
    ov_model_t *model = NULL;
    ov_compiled_model_t *compiled = NULL;
    ov_infer_request_t *request = NULL;
    CHECK(ov_core_create(&core) == OK);
    CHECK(ov_core_read_model(core, model_path, NULL, &model) == OK);
    CHECK(ov_core_compile_model(core, model, "GPU", 2, &compiled,
                                ov_property_key_hint_inference_precision, "f32") == OK);
    CHECK(ov_compiled_model_create_infer_request(compiled, &request) == OK);
    ov_compiled_model_free(compiled);
    ov_model_free(model);
    ov_core_free(core);
    return request;
}

static void
lose_file(const char *path, uint64_t mapped_bytes)
{
    (void)path;
    (void)mapped_bytes;
}

/* Called for each kernel that is built, in order. */
static void
count_build(void *context, const char *kernel, uint64_t k, uint64_t n)
{
    uint64_t *built = context;
    CHECK(kernel[0] != '\0' && k > *built && (n == 0 || n >= k));
    *built = k;
}

int
main(int argc, char **argv)
{
    char path[4096];
    if (argc != 2) {
        fprintf(stderr, "usage: %s MODELS_DIR\n", argv[0]);
        return 2;
    }
    snprintf(path, sizeof(path), "%s/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml",
             argv[1]);
    CHECK(xm_watch_model_files(NULL) == INVALID_C_PARAM);
    CHECK(xm_watch_model_files(lose_file) == OK);
    uint64_t built = 0;
    CHECK(xm_watch_builds(count_build, &built) == OK);
    ov_infer_request_t *request = make_request(path);
    if (request)
        run_request(request);
    ov_infer_request_free(request);
    CHECK(built > 0);
    CHECK(xm_watch_builds(NULL, NULL) == OK);
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures ? 1 : 0;
}
