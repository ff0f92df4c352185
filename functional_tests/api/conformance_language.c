/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: a language model with states, from a file: its ports, a prompt and tokens after it.
 */
#include "functional_tests/api/conformance.h"

#include <stdio.h>
#include <string.h>

/* "Paris is the capital of", and OpenVINO's continuation. */
static const int64_t prompt[] = {1343, 266, 267, 265, 269}, answer[] = {1024, 13, 1500};
enum { N_PROMPT = sizeof(prompt) / sizeof(prompt[0]), N_ANSWER = 3 };

static void
set_numbers(ov_infer_request_t *r, const char *name, const int64_t *values, int64_t n)
{
    int64_t dims[] = {1, n};
    const ov_shape_t shape = {2, dims};
    ov_tensor_t *t = NULL;
    void *data = NULL;
    GOOD(ov_tensor_create(I64, shape, &t));
    if (GOOD(ov_tensor_data(t, &data)))
        memcpy(data, values, (size_t)n * sizeof(*values));
    GOOD(ov_infer_request_set_tensor(r, name, t));
    ov_tensor_free(t);
}

static void
set_beam(ov_infer_request_t *r)
{
    static int32_t beam[1];
    int64_t one = 1;
    const ov_shape_t shape = {1, &one};
    ov_tensor_t *t = NULL;
    GOOD(ov_tensor_create_from_host_ptr(I32, shape, beam, &t));
    GOOD(ov_infer_request_set_tensor(r, "beam_idx", t));
    ov_tensor_free(t);
}

/* Runs n more tokens after `past` and returns the likeliest next one. */
static int64_t
step(ov_infer_request_t *r, const int64_t *ids, int64_t n, int64_t past)
{
    int64_t positions[16], ones[16], best = -1;
    ov_tensor_t *t = NULL;
    ov_shape_t s = {0, NULL};
    void *data = NULL;
    for (int64_t i = 0; i < past + n; i++)
        ones[i] = 1;
    for (int64_t i = 0; i < n; i++)
        positions[i] = past + i;
    set_numbers(r, "input_ids", ids, n);
    set_numbers(r, "position_ids", positions, n);
    set_numbers(r, "attention_mask", ones, past + n);
    GOOD(ov_infer_request_infer(r));
    GOOD(ov_infer_request_get_tensor(r, "logits", &t));
    if (GOOD(ov_tensor_get_shape(t, &s)) && GOOD(ov_tensor_data(t, &data))) {
        const float *row = (const float *)data + (s.dims[1] - 1) * s.dims[2];
        CHECK(s.rank == 3 && s.dims[0] == 1 && s.dims[1] == n);
        for (int64_t i = 0; i < s.dims[2]; i++)
            best = best < 0 || row[i] > row[best] ? i : best;
        ov_shape_free(&s);
    }
    ov_tensor_free(t);
    return best;
}

static void
expect_answer(ov_infer_request_t *r)
{
    int64_t past = 0, token;
    set_beam(r);
    token = step(r, prompt, N_PROMPT, past);
    past += N_PROMPT;
    for (int i = 0; i < N_ANSWER; i++) {
        CHECK(token == answer[i]);
        token = step(r, &answer[i], 1, past++);
    }
}

static void
check_ports(const ov_model_t *m)
{
    static const char *const names[] = {"input_ids", "attention_mask", "position_ids",
                                        "beam_idx"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ov_output_const_port_t *p = NULL;
        ov_element_type_e type = DYNAMIC;
        GOOD(ov_model_const_input_by_name(m, names[i], &p));
        CHECK(ov_port_get_element_type(p, &type) == OK);
        CHECK(type == (strcmp(names[i], "beam_idx") == 0 ? I32 : I64));
        ov_output_const_port_free(p);
    }
    CHECK(ov_model_is_dynamic(m));
}

void
check_language(const struct conformance *c)
{
    char path[1024];
    ov_model_t *m = NULL;
    ov_compiled_model_t *compiled = NULL;
    if (!c->models) {
        skip("language", "no folder of models was given");
        return;
    }
    snprintf(path, sizeof(path), "%s/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml",
             c->models);
    if (!GOOD(ov_core_read_model(c->core, path, "", &m)))
        return;
    check_ports(m);
    compiled = compile_model(c, m);
    ov_infer_request_t *r = make_request(compiled), *other = make_request(compiled);
    expect_answer(r);
    expect_answer(other); /* has a state of its own */
    ov_infer_request_free(r);
    ov_infer_request_free(other);
    ov_compiled_model_free(compiled);
    compiled = NULL;
    if (GOOD(ov_core_compile_model_from_file(c->core, path, c->device, 0, &compiled)))
        ov_compiled_model_free(compiled);
    STATUS(ov_core_read_model(c->core, path, "/no/such.bin", &m), GENERAL_ERROR);
    ov_model_free(m);
}
