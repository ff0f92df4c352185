/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: a model's inputs and outputs by every function that gets them, properties of
 * ports, reshaping.
 */
#include "functional_tests/api/conformance.h"

#include <string.h>

/* ---- ports ------------------------------------------------------------------------- */

/* Checks name, type and shape; rows < 0: dynamic. */
static void
expect_port(ov_output_const_port_t *p, const char *name, int64_t rows, int64_t columns)
{
    ov_element_type_e type = DYNAMIC;
    ov_partial_shape_t partial = {{0, 0}, NULL};
    ov_shape_t shape = {0, NULL};
    char *found = NULL;
    if (!CHECK(p != NULL))
        return;
    if (GOOD(ov_port_get_any_name(p, &found)))
        CHECK(takes_text(found, name));
    CHECK(ov_port_get_element_type(p, &type) == OK && type == F32);
    if (GOOD(ov_port_get_partial_shape(p, &partial))) {
        CHECK(partial.rank.min == 2 && partial.rank.max == 2);
        CHECK(partial.dims[0].min == (rows < 0 ? 0 : rows) &&
              partial.dims[0].max == rows);
        CHECK(partial.dims[1].min == columns && partial.dims[1].max == columns);
        ov_partial_shape_free(&partial);
    }
    STATUS(ov_const_port_get_shape(p, &shape), rows < 0 ? GENERAL_ERROR : OK);
    if (rows >= 0 && shape.dims) {
        CHECK(shape.rank == 2 && shape.dims[0] == rows && shape.dims[1] == columns);
        ov_shape_free(&shape);
    }
    ov_output_const_port_free(p);
}

static void
expect_plain_port(ov_output_port_t *p, int64_t rows, int64_t columns)
{
    ov_shape_t shape = {0, NULL};
    if (!CHECK(p != NULL))
        return;
    if (GOOD(ov_port_get_shape(p, &shape))) {
        CHECK(shape.rank == 2 && shape.dims[0] == rows && shape.dims[1] == columns);
        ov_shape_free(&shape);
    }
    ov_output_port_free(p);
}

static void
check_one_of_each(const struct conformance *c)
{
    ov_model_t *m = make_mlp(c, 2);
    ov_output_const_port_t *p[6] = {NULL};
    ov_output_port_t *q[6] = {NULL};
    GOOD(ov_model_const_input(m, &p[0]));
    GOOD(ov_model_const_input_by_name(m, "data", &p[1]));
    GOOD(ov_model_const_input_by_index(m, 0, &p[2]));
    GOOD(ov_model_const_output(m, &p[3]));
    GOOD(ov_model_const_output_by_name(m, "prob", &p[4]));
    GOOD(ov_model_const_output_by_index(m, 0, &p[5]));
    GOOD(ov_model_input(m, &q[0]));
    GOOD(ov_model_input_by_name(m, "data", &q[1]));
    GOOD(ov_model_input_by_index(m, 0, &q[2]));
    GOOD(ov_model_output(m, &q[3]));
    GOOD(ov_model_output_by_name(m, "prob", &q[4]));
    GOOD(ov_model_output_by_index(m, 0, &q[5]));
    ov_model_free(m); /* ports keep what they need */
    for (int i = 0; i < 6; i++) {
        expect_port(p[i], i < 3 ? "data" : "prob", 2, i < 3 ? MLP_IN : MLP_OUT);
        expect_plain_port(q[i], 2, i < 3 ? MLP_IN : MLP_OUT);
    }
}

static void
check_wrong_ports(const struct conformance *c)
{
    ov_model_t *m = make_adder(c, 3);
    ov_output_const_port_t *p = NULL;
    ov_output_port_t *q = NULL;
    STATUS(ov_model_const_input(m, &p), GENERAL_ERROR); /* there are two */
    STATUS(ov_model_input(m, &q), GENERAL_ERROR);
    STATUS(ov_model_const_input_by_index(m, 2, &p), UNKNOW_EXCEPTION);
    STATUS(ov_model_input_by_index(m, 2, &q), UNKNOW_EXCEPTION);
    STATUS(ov_model_const_output_by_index(m, 1, &p), UNKNOW_EXCEPTION);
    STATUS(ov_model_output_by_index(m, 1, &q), UNKNOW_EXCEPTION);
    STATUS(ov_model_const_input_by_name(m, "nope", &p), GENERAL_ERROR);
    CHECK(has_last_error("nope"));
    STATUS(ov_model_input_by_name(m, "nope", &q), GENERAL_ERROR);
    STATUS(ov_model_const_output_by_name(m, "nope", &p), GENERAL_ERROR);
    STATUS(ov_model_output_by_name(m, "nope", &q), GENERAL_ERROR);
    CHECK(p == NULL && q == NULL);
    ov_model_free(m);
    ov_output_port_free(NULL);
    ov_output_const_port_free(NULL);
    ov_model_free(NULL);
}

static void
check_sizes(const struct conformance *c)
{
    ov_model_t *m = make_adder(c, 3), *open = make_mlp(c, -1);
    ov_output_const_port_t *p = NULL;
    char *name = NULL;
    size_t n = 0;
    CHECK(ov_model_inputs_size(m, &n) == OK && n == 2);
    CHECK(ov_model_outputs_size(m, &n) == OK && n == 1);
    CHECK(!ov_model_is_dynamic(m));
    CHECK(ov_model_is_dynamic(open));
    if (GOOD(ov_model_get_friendly_name(m, &name)))
        CHECK(takes_text(name, "adder"));
    GOOD(ov_model_const_input(open, &p));
    expect_port(p, "data", -1, MLP_IN);
    p = NULL;
    GOOD(ov_model_const_output(open, &p));
    expect_port(p, "prob", -1, MLP_OUT);
    ov_model_free(m);
    ov_model_free(open);
}

void
check_models(const struct conformance *c)
{
    check_one_of_each(c);
    check_wrong_ports(c);
    check_sizes(c);
}

/* ---- other shapes ------------------------------------------------------------------ */

static bool
input_has_rows(const ov_model_t *m, size_t i, int64_t min, int64_t max)
{
    ov_output_const_port_t *p = NULL;
    ov_partial_shape_t s = {{0, 0}, NULL};
    const bool has = ov_model_const_input_by_index(m, i, &p) == OK &&
                     ov_port_get_partial_shape(p, &s) == OK && s.dims[0].min == min &&
                     s.dims[0].max == max;
    ov_partial_shape_free(&s);
    ov_output_const_port_free(p);
    return has;
}

static void
check_single(const struct conformance *c)
{
    ov_model_t *m = make_mlp(c, 2);
    ov_dimension_t dims[] = {{5, 5}, {MLP_IN, MLP_IN}};
    const ov_partial_shape_t s = {{2, 2}, dims};
    GOOD(ov_model_reshape_single_input(m, s));
    CHECK(input_has_rows(m, 0, 5, 5));
    dims[0] = (ov_dimension_t){-1, -1};
    GOOD(ov_model_reshape_input_by_name(m, "data", s));
    CHECK(ov_model_is_dynamic(m));
    dims[0] = (ov_dimension_t){-1, 8};
    GOOD(ov_model_reshape_input_by_name(m, "data", s));
    CHECK(input_has_rows(m, 0, 0, 8));
    dims[0] = (ov_dimension_t){3, INT64_MAX};
    GOOD(ov_model_reshape_input_by_name(m, "data", s));
    CHECK(input_has_rows(m, 0, 3, -1));
    dims[0] = (ov_dimension_t){1, 8};
    GOOD(ov_model_reshape_input_by_name(m, "data", s));
    CHECK(input_has_rows(m, 0, 1, 8));
    STATUS(ov_model_reshape_input_by_name(m, "nope", s), GENERAL_ERROR);
    CHECK(has_last_error("nope"));
    STATUS(ov_model_reshape_input_by_name(m, NULL, s), INVALID_C_PARAM);
    /* does not fit the weight's MLP_IN rows */
    dims[1] = (ov_dimension_t){MLP_IN + 1, MLP_IN + 1};
    STATUS(ov_model_reshape_single_input(m, s), GENERAL_ERROR);
    CHECK(has_last_error("product"));
    CHECK(input_has_rows(m, 0, 1, 8));
    ov_model_free(m);
}

static void
check_several(const struct conformance *c)
{
    ov_model_t *m = make_adder(c, 3);
    ov_dimension_t dims[] = {{4, 4}, {2, 2}};
    const ov_partial_shape_t s[] = {{{2, 2}, dims}, {{2, 2}, dims}};
    const char *names[] = {"a", "b"};
    const size_t indexes[] = {1, 0};
    ov_output_port_t *ports[2] = {NULL, NULL};
    GOOD(ov_model_reshape(m, names, s, 2));
    CHECK(input_has_rows(m, 0, 4, 4) && input_has_rows(m, 1, 4, 4));
    dims[0] = (ov_dimension_t){6, 6};
    GOOD(ov_model_reshape_by_port_indexes(m, indexes, s, 2));
    CHECK(input_has_rows(m, 0, 6, 6) && input_has_rows(m, 1, 6, 6));
    GOOD(ov_model_input_by_index(m, 0, &ports[0]));
    GOOD(ov_model_input_by_index(m, 1, &ports[1]));
    dims[0] = (ov_dimension_t){7, 7};
    GOOD(ov_model_reshape_by_ports(m, (const ov_output_port_t **)ports, s, 2));
    CHECK(input_has_rows(m, 0, 7, 7) && input_has_rows(m, 1, 7, 7));
    STATUS(ov_model_reshape(m, names, s, 0), INVALID_C_PARAM);
    STATUS(ov_model_reshape(m, NULL, s, 2), INVALID_C_PARAM);
    STATUS(ov_model_reshape(m, names, NULL, 2), INVALID_C_PARAM);
    dims[0] = (ov_dimension_t){9, 9};
    /* the model has two inputs */
    STATUS(ov_model_reshape_single_input(m, s[0]), GENERAL_ERROR);
    ov_output_port_free(ports[0]);
    ov_output_port_free(ports[1]);
    ov_model_free(m);
}

/* The compiled model has the new shape. */
static void
check_compiled_shape(const struct conformance *c)
{
    ov_model_t *m = make_mlp(c, 2);
    ov_dimension_t dims[] = {{1, 1}, {MLP_IN, MLP_IN}};
    const ov_partial_shape_t s = {{2, 2}, dims};
    float data[MLP_IN] = {1.0f, -1.0f}, prob[MLP_OUT];
    ov_tensor_t *in = wrap_floats(data, 1, MLP_IN), *out = NULL;
    void *found = NULL;
    GOOD(ov_model_reshape_single_input(m, s));
    ov_compiled_model_t *compiled = compile_model(c, m);
    ov_infer_request_t *r = make_request(compiled);
    mlp_expected(data, prob);
    GOOD(ov_infer_request_set_input_tensor(r, in));
    GOOD(ov_infer_request_infer(r));
    if (GOOD(ov_infer_request_get_output_tensor(r, &out)) &&
        GOOD(ov_tensor_data(out, &found)))
        CHECK(are_near(found, prob, MLP_OUT));
    ov_tensor_free(in);
    ov_tensor_free(out);
    ov_infer_request_free(r);
    ov_compiled_model_free(compiled);
    ov_model_free(m);
}

void
check_reshapes(const struct conformance *c)
{
    check_single(c);
    check_several(c);
    check_compiled_shape(c);
}
