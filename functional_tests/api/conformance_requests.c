/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: inputs and outputs of requests by every function that sets or gets them, runs, and
 * lifetimes.
 */
#include "functional_tests/api/conformance.h"

#include <string.h>

enum { ROWS = 2, N_IN = ROWS * MLP_IN, N_OUT = ROWS * MLP_OUT };

static void
fill(float *data, float first)
{
    for (int i = 0; i < N_IN; i++)
        data[i] = first + 0.125f * (float)(i % 11) - 0.5f;
}

/* Runs and checks the result in `out`. */
static void
expect_run(ov_infer_request_t *r, const float *data, const float *out)
{
    float prob[N_OUT];
    for (int row = 0; row < ROWS; row++)
        mlp_expected(data + row * MLP_IN, prob + row * MLP_OUT);
    GOOD(ov_infer_request_infer(r));
    CHECK(are_near(out, prob, N_OUT));
}

static const float *
numbers_of(ov_tensor_t *t)
{
    static const float none[N_IN];
    void *data = NULL;
    CHECK(t && ov_tensor_data(t, &data) == OK);
    return data ? data : none;
}

/* ---- seven ways to set, seven to get ------------------------------------------------ */

struct ports {
    ov_output_port_t *in, *out;
    ov_output_const_port_t *const_in, *const_out;
};

static struct ports
get_ports(const ov_model_t *m)
{
    struct ports p = {NULL, NULL, NULL, NULL};
    GOOD(ov_model_input(m, &p.in));
    GOOD(ov_model_output(m, &p.out));
    GOOD(ov_model_const_input(m, &p.const_in));
    GOOD(ov_model_const_output(m, &p.const_out));
    return p;
}

static void
free_ports(struct ports *p)
{
    ov_output_port_free(p->in);
    ov_output_port_free(p->out);
    ov_output_const_port_free(p->const_in);
    ov_output_const_port_free(p->const_out);
}

enum { WAYS = 5 };

static ov_status_e
set_input(int way, ov_infer_request_t *r, const struct ports *p, const ov_tensor_t *t)
{
    switch (way) {
    case 0:
        return ov_infer_request_set_tensor(r, "data", t);
    case 1:
        return ov_infer_request_set_tensor_by_port(r, p->in, t);
    case 2:
        return ov_infer_request_set_tensor_by_const_port(r, p->const_in, t);
    case 3:
        return ov_infer_request_set_input_tensor_by_index(r, 0, t);
    default:
        return ov_infer_request_set_input_tensor(r, t);
    }
}

static ov_status_e
set_output(int way, ov_infer_request_t *r, const struct ports *p, const ov_tensor_t *t)
{
    switch (way) {
    case 0:
        return ov_infer_request_set_tensor(r, "prob", t);
    case 1:
        return ov_infer_request_set_tensor_by_port(r, p->out, t);
    case 2:
        return ov_infer_request_set_tensor_by_const_port(r, p->const_out, t);
    case 3:
        return ov_infer_request_set_output_tensor_by_index(r, 0, t);
    default:
        return ov_infer_request_set_output_tensor(r, t);
    }
}

static ov_status_e
get_input(int way, const ov_infer_request_t *r, const struct ports *p, ov_tensor_t **t)
{
    switch (way) {
    case 0:
        return ov_infer_request_get_tensor(r, "data", t);
    case 1:
        return ov_infer_request_get_tensor_by_port(r, p->in, t);
    case 2:
        return ov_infer_request_get_tensor_by_const_port(r, p->const_in, t);
    case 3:
        return ov_infer_request_get_input_tensor_by_index(r, 0, t);
    default:
        return ov_infer_request_get_input_tensor(r, t);
    }
}

static ov_status_e
get_output(int way, const ov_infer_request_t *r, const struct ports *p, ov_tensor_t **t)
{
    switch (way) {
    case 0:
        return ov_infer_request_get_tensor(r, "prob", t);
    case 1:
        return ov_infer_request_get_tensor_by_port(r, p->out, t);
    case 2:
        return ov_infer_request_get_tensor_by_const_port(r, p->const_out, t);
    case 3:
        return ov_infer_request_get_output_tensor_by_index(r, 0, t);
    default:
        return ov_infer_request_get_output_tensor(r, t);
    }
}

static void
check_way(int way, const ov_compiled_model_t *compiled, const struct ports *p)
{
    float data[N_IN], out[N_OUT] = {0};
    ov_infer_request_t *r = make_request(compiled);
    ov_tensor_t *in = wrap_floats(data, ROWS, MLP_IN), *got = NULL;
    ov_tensor_t *result = wrap_floats(out, ROWS, MLP_OUT);
    fill(data, (float)way);
    GOOD(set_input(way, r, p, in));
    GOOD(set_output(way, r, p, result));
    expect_run(r, data, out); /* in the caller's memory */
    GOOD(get_input(way, r, p, &got));
    CHECK(numbers_of(got) == data);
    ov_tensor_free(got);
    got = NULL;
    GOOD(get_output(way, r, p, &got));
    CHECK(numbers_of(got) == out);
    ov_tensor_free(got);
    ov_tensor_free(in);
    ov_tensor_free(result);
    ov_infer_request_free(r);
}

/* Inputs with static shapes have tensors, which can be filled in place; all handles share their
 * memory. */
static void
check_in_place(const ov_compiled_model_t *compiled, const struct ports *p)
{
    float data[N_IN];
    ov_infer_request_t *r = make_request(compiled);
    ov_tensor_t *in = NULL, *out = NULL;
    void *memory = NULL;
    fill(data, 0.25f);
    for (int way = 0; way < WAYS; way++) {
        in = out = NULL;
        GOOD(get_input(way, r, p, &in));
        GOOD(ov_tensor_data(in, &memory));
        memcpy(memory, data, sizeof(data));
        GOOD(get_output(way, r, p, &out));
        expect_run(r, data, numbers_of(out));
        ov_tensor_free(in);
        ov_tensor_free(out);
    }
    ov_infer_request_free(r);
}

static void
check_wrong_tensors(const ov_compiled_model_t *compiled, const struct ports *p)
{
    int64_t dims[] = {ROWS, MLP_IN}, other[] = {ROWS + 1, MLP_IN};
    const ov_shape_t shape = {2, dims}, larger = {2, other};
    ov_infer_request_t *r = make_request(compiled);
    ov_tensor_t *whole = NULL, *large = NULL, *t = NULL;
    GOOD(ov_tensor_create(I32, shape, &whole));
    GOOD(ov_tensor_create(F32, larger, &large));
    for (int way = 0; way < WAYS; way++) {
        STATUS(set_input(way, r, p, whole), GENERAL_ERROR);
        STATUS(set_input(way, r, p, large), GENERAL_ERROR);
        STATUS(set_input(way, r, p, NULL), INVALID_C_PARAM);
        STATUS(get_input(way, r, p, NULL), INVALID_C_PARAM);
    }
    STATUS(ov_infer_request_set_tensor(r, "nope", large), GENERAL_ERROR);
    CHECK(has_last_error("nope"));
    STATUS(ov_infer_request_get_tensor(r, "nope", &t), GENERAL_ERROR);
    STATUS(ov_infer_request_set_input_tensor_by_index(r, 1, large), GENERAL_ERROR);
    STATUS(ov_infer_request_get_input_tensor_by_index(r, 1, &t), GENERAL_ERROR);
    STATUS(ov_infer_request_set_output_tensor_by_index(r, 1, large), GENERAL_ERROR);
    STATUS(ov_infer_request_get_output_tensor_by_index(r, 1, &t), GENERAL_ERROR);
    CHECK(t == NULL);
    ov_tensor_free(whole);
    ov_tensor_free(large);
    ov_infer_request_free(r);
}

static void
check_two_inputs(const struct conformance *c)
{
    ov_model_t *m = make_adder(c, 3);
    ov_compiled_model_t *compiled = compile_model(c, m);
    ov_infer_request_t *r = make_request(compiled);
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {10, 20, 30, 40, 50, 60};
    const float sum[6] = {11, 22, 33, 44, 55, 66};
    ov_tensor_t *in[] = {wrap_floats(a, 3, 2), wrap_floats(b, 3, 2)}, *t = NULL;
    /* there are two inputs */
    STATUS(ov_infer_request_set_input_tensor(r, in[0]), GENERAL_ERROR);
    STATUS(ov_infer_request_get_input_tensor(r, &t), GENERAL_ERROR);
    GOOD(ov_infer_request_set_input_tensor_by_index(r, 0, in[0]));
    GOOD(ov_infer_request_set_tensor(r, "b", in[1]));
    GOOD(ov_infer_request_infer(r));
    GOOD(ov_infer_request_get_output_tensor(r, &t));
    CHECK(are_near(numbers_of(t), sum, 6));
    ov_tensor_free(t);
    ov_tensor_free(in[0]);
    ov_tensor_free(in[1]);
    ov_infer_request_free(r);
    ov_compiled_model_free(compiled);
    ov_model_free(m);
}

/* ---- dynamic shapes, owners, counters ------------------------------------------------ */

static void
check_dynamic(const struct conformance *c)
{
    ov_model_t *m = make_mlp(c, -1);
    ov_compiled_model_t *compiled = compile_model(c, m);
    ov_infer_request_t *r = make_request(compiled);
    float data[4 * MLP_IN] = {1.0f, 2.0f}, prob[MLP_OUT];
    mlp_expected(data, prob);
    for (int64_t rows = 1; rows <= 4; rows += 3) {
        ov_tensor_t *in = wrap_floats(data, rows, MLP_IN), *out = NULL;
        ov_shape_t s = {0, NULL};
        GOOD(ov_infer_request_set_input_tensor(r, in));
        GOOD(ov_infer_request_infer(r));
        GOOD(ov_infer_request_get_output_tensor(r, &out));
        if (GOOD(ov_tensor_get_shape(out, &s))) {
            CHECK(s.rank == 2 && s.dims[0] == rows && s.dims[1] == MLP_OUT);
            ov_shape_free(&s);
        }
        CHECK(are_near(numbers_of(out), prob, MLP_OUT));
        ov_tensor_free(in);
        ov_tensor_free(out);
    }
    ov_infer_request_free(r);
    ov_compiled_model_free(compiled);
    ov_model_free(m);
}

/* A request works after its model was freed, and a tensor after its request was freed. */
static void
check_owners(const struct conformance *c)
{
    float data[N_IN];
    ov_core_t *core = NULL;
    GOOD(ov_core_create(&core));
    const struct conformance own = {c->device, c->models, core};
    ov_model_t *m = make_mlp(&own, ROWS);
    ov_compiled_model_t *compiled = compile_model(&own, m);
    ov_infer_request_t *r = make_request(compiled);
    ov_tensor_t *in = NULL, *out = NULL;
    void *memory = NULL;
    ov_core_free(core);
    ov_model_free(m);
    ov_compiled_model_free(compiled);
    fill(data, 1.5f);
    GOOD(ov_infer_request_get_input_tensor(r, &in));
    GOOD(ov_tensor_data(in, &memory));
    memcpy(memory, data, sizeof(data));
    GOOD(ov_infer_request_get_output_tensor(r, &out));
    expect_run(r, data, numbers_of(out));
    ov_infer_request_free(r);
    const float first = numbers_of(out)[0];
    CHECK(first > 0.0f && first < 1.0f);
    ov_tensor_free(in);
    ov_tensor_free(out);
    ov_infer_request_free(NULL);
}

static void
check_counters(const struct conformance *c)
{
    ov_model_t *m = make_mlp(c, ROWS);
    ov_compiled_model_t *compiled = NULL;
    ov_profiling_info_list_t list = {NULL, 0};
    bool has_names = true;
    GOOD(ov_core_compile_model(c->core, m, c->device, 2, &compiled, "PERF_COUNT", "YES"));
    ov_infer_request_t *r = make_request(compiled);
    GOOD(ov_infer_request_infer(r));
    if (GOOD(ov_infer_request_get_profiling_info(r, &list))) {
        CHECK(list.size > 0);
        for (size_t i = 0; i < list.size; i++) {
            const ov_profiling_info_t *p = &list.profiling_infos[i];
            has_names = has_names && p->node_name && p->exec_type && p->node_type &&
                        p->real_time >= 0 && p->cpu_time >= 0 &&
                        (unsigned)p->status <= EXECUTED;
        }
        CHECK(has_names);
        ov_profiling_info_list_free(&list);
        CHECK(list.profiling_infos == NULL && list.size == 0);
    }
    STATUS(ov_infer_request_get_profiling_info(r, NULL), INVALID_C_PARAM);
    ov_infer_request_free(r);
    ov_compiled_model_free(compiled);
    ov_model_free(m);
}

void
check_requests(const struct conformance *c)
{
    ov_model_t *m = make_mlp(c, ROWS);
    ov_compiled_model_t *compiled = compile_model(c, m);
    struct ports p = get_ports(m);
    for (int way = 0; way < WAYS; way++)
        check_way(way, compiled, &p);
    check_in_place(compiled, &p);
    check_wrong_tensors(compiled, &p);
    free_ports(&p);
    ov_compiled_model_free(compiled);
    ov_model_free(m);
    check_two_inputs(c);
    check_dynamic(c);
    check_owners(c);
    if (strcmp(c->device, "REFERENCE") == 0)
        skip("counters", "the device has none");
    else
        check_counters(c);
}
