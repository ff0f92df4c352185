/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: compiling, ports and properties of what was compiled, export and import.
 */
#include "functional_tests/api/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
check_compiling(const struct conformance *c)
{
    ov_model_t *m = make_mlp(c, 2);
    ov_compiled_model_t *compiled = NULL;
    const ov_property_t list[] = {{"PERFORMANCE_HINT", "LATENCY"}};
    STATUS(ov_core_compile_model(c->core, m, c->device, 1, &compiled, "PERF_COUNT"),
           INVALID_C_PARAM);
    STATUS(ov_core_compile_model(c->core, m, "NOPE", 0, &compiled), GENERAL_ERROR);
    CHECK(has_last_error("NOPE"));
    STATUS(ov_core_compile_model(c->core, m, c->device, 2, &compiled, "NO_SUCH_KEY", "1"),
           GENERAL_ERROR);
    CHECK(has_last_error("NO_SUCH_KEY"));
    STATUS(ov_core_compile_model(c->core, NULL, c->device, 0, &compiled),
           INVALID_C_PARAM);
    STATUS(ov_core_compile_model_from_file(c->core, "no_such_file.xml", c->device, 0,
                                           &compiled),
           GENERAL_ERROR);
    STATUS(ov_core_compile_model_props(c->core, m, c->device, 1, NULL, &compiled),
           INVALID_C_PARAM);
    CHECK(compiled == NULL);
    if (GOOD(ov_core_compile_model_props(c->core, m, c->device, 1, list, &compiled)))
        ov_compiled_model_free(compiled);
    if (GOOD(ov_core_compile_model_props(c->core, m, c->device, 0, NULL, &compiled)))
        ov_compiled_model_free(compiled);
    if (strcmp(c->device, "REFERENCE") == 0) /* REFERENCE is never chosen automatically */
        skip("a model without a device", "there may be none to choose");
    else if (GOOD(ov_core_compile_model(c->core, m, NULL, 0, &compiled)))
        ov_compiled_model_free(compiled);
    ov_compiled_model_free(NULL);
    ov_model_free(m);
}

static bool
is_named(ov_output_const_port_t *p, const char *name)
{
    char *found = NULL;
    const bool is = p && ov_port_get_any_name(p, &found) == OK && takes_text(found, name);
    ov_output_const_port_free(p);
    return is;
}

static void
check_ports(const struct conformance *c)
{
    ov_model_t *m = make_adder(c, 3);
    ov_compiled_model_t *compiled = compile_model(c, m);
    ov_output_const_port_t *p = NULL;
    size_t n = 0;
    CHECK(ov_compiled_model_inputs_size(compiled, &n) == OK && n == 2);
    CHECK(ov_compiled_model_outputs_size(compiled, &n) == OK && n == 1);
    STATUS(ov_compiled_model_input(compiled, &p), GENERAL_ERROR); /* there are two */
    STATUS(ov_compiled_model_input_by_index(compiled, 2, &p), GENERAL_ERROR);
    STATUS(ov_compiled_model_output_by_index(compiled, 1, &p), GENERAL_ERROR);
    STATUS(ov_compiled_model_input_by_name(compiled, "nope", &p), GENERAL_ERROR);
    STATUS(ov_compiled_model_output_by_name(compiled, "nope", &p), GENERAL_ERROR);
    CHECK(p == NULL);
    GOOD(ov_compiled_model_input_by_index(compiled, 1, &p));
    CHECK(is_named(p, "b"));
    GOOD(ov_compiled_model_input_by_name(compiled, "a", &p));
    CHECK(is_named(p, "a"));
    GOOD(ov_compiled_model_output(compiled, &p));
    CHECK(is_named(p, "y"));
    GOOD(ov_compiled_model_output_by_index(compiled, 0, &p));
    CHECK(is_named(p, "y"));
    GOOD(ov_compiled_model_output_by_name(compiled, "y", &p));
    CHECK(is_named(p, "y"));
    ov_compiled_model_free(compiled);
    ov_model_free(m);
}

static void
check_properties(const struct conformance *c)
{
    ov_model_t *m = make_mlp(c, 2);
    ov_compiled_model_t *compiled = compile_model(c, m);
    const ov_property_t list[] = {{"PERF_COUNT", "YES"}};
    char *value = NULL;
    if (GOOD(
            ov_compiled_model_get_property(compiled, ov_property_key_model_name, &value)))
        CHECK(takes_text(value, "mlp"));
    value = NULL;
    if (GOOD(ov_compiled_model_get_property(
            compiled, ov_property_key_optimal_number_of_infer_requests, &value)))
        CHECK(strtol(value, NULL, 10) >= 1);
    ov_free(value);
    value = NULL;
    if (GOOD(ov_compiled_model_get_property(
            compiled, ov_property_key_supported_properties, &value)))
        CHECK(strstr(value, "NETWORK_NAME") != NULL);
    ov_free(value);
    value = NULL;
    if (GOOD(ov_compiled_model_get_property(compiled, "EXECUTION_DEVICES", &value)))
        CHECK(strncmp(value, c->device, strlen(c->device)) == 0);
    ov_free(value);
    value = NULL;
    STATUS(ov_compiled_model_get_property(compiled, "NO_SUCH_KEY", &value),
           GENERAL_ERROR);
    CHECK(value == NULL && has_last_error("NO_SUCH_KEY"));
    STATUS(ov_compiled_model_set_property(compiled, "PERF_COUNT", "YES"), GENERAL_ERROR);
    STATUS(ov_compiled_model_set_properties(compiled, 1, list), GENERAL_ERROR);
    ov_compiled_model_free(compiled);
    ov_model_free(m);
}

static void
check_timeout(ov_compiled_model_t *m, const char *value)
{
    char *found = NULL;
    if (GOOD(ov_compiled_model_get_property(m, ov_property_key_auto_batch_timeout,
                                            &found)))
        CHECK(takes_text(found, value));
}

/* The only property that a compiled model can be given: how long batched requests wait. */
static void
check_batches(const struct conformance *c)
{
    const char *key = ov_property_key_auto_batch_timeout;
    const ov_property_t list[] = {{key, "3000"}, {key, "5000"}},
                        mixed[] = {{key, "7000"}, {"PERF_COUNT", "YES"}};
    ov_model_t *m = make_mlp(c, 2);
    ov_compiled_model_t *compiled = NULL;
    char device[64];
    snprintf(device, sizeof(device), "BATCH:%s(4)", c->device);
    if (GOOD(ov_core_compile_model(c->core, m, device, 0, &compiled))) {
        check_timeout(compiled, "1000");
        GOOD(ov_compiled_model_set_property(compiled, key, "2000"));
        check_timeout(compiled, "2000");
        GOOD(ov_compiled_model_set_properties(compiled, 1, list));
        check_timeout(compiled, "3000");
        GOOD(ov_compiled_model_set_properties(compiled, 2, list));
        check_timeout(compiled, "5000");
        STATUS(ov_compiled_model_set_property(compiled, key, "soon"), GENERAL_ERROR);
        STATUS(ov_compiled_model_set_property(compiled, key, "-1"), GENERAL_ERROR);
        STATUS(ov_compiled_model_set_property(compiled, "PERF_COUNT", "YES"),
               GENERAL_ERROR);
        check_timeout(compiled, "5000");
        STATUS(ov_compiled_model_set_properties(compiled, 2, mixed), GENERAL_ERROR);
        ov_compiled_model_free(compiled);
    }
    compiled = NULL;
    if (GOOD(ov_core_compile_model(c->core, m, device, 2, &compiled, key, "77")))
        check_timeout(compiled, "77");
    ov_compiled_model_free(compiled);
    compiled = compile_model(c, m);
    STATUS(ov_compiled_model_set_property(compiled, key, "2000"), GENERAL_ERROR);
    ov_compiled_model_free(compiled);
    ov_model_free(m);
}

/* ---- export and import ------------------------------------------------------------- */

/* Returns a file's bytes followed by a NUL. */
static char *
read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *bytes = NULL;
    *n = 0;
    if (f && fseek(f, 0, SEEK_END) == 0) {
        const long size = ftell(f);
        bytes = size > 0 ? calloc((size_t)size + 1, 1) : NULL;
        rewind(f);
        *n = bytes ? fread(bytes, 1, (size_t)size, f) : 0;
    }
    if (f)
        fclose(f);
    return bytes;
}

static void
check_imported(ov_compiled_model_t *m)
{
    float data[2 * MLP_IN] = {0.5f, 1.0f, -2.0f}, prob[MLP_OUT];
    ov_tensor_t *in = wrap_floats(data, 2, MLP_IN), *out = NULL;
    ov_infer_request_t *r = make_request(m);
    void *found = NULL;
    mlp_expected(data, prob);
    GOOD(ov_infer_request_set_input_tensor(r, in));
    GOOD(ov_infer_request_infer(r));
    if (GOOD(ov_infer_request_get_output_tensor(r, &out)) &&
        GOOD(ov_tensor_data(out, &found)))
        CHECK(are_within(found, prob, MLP_OUT,
                         1e-2f)); /* the tolerance of bf16, which may be the default */
    ov_tensor_free(in);
    ov_tensor_free(out);
    ov_infer_request_free(r);
}

static void
check_export(const struct conformance *c)
{
    ov_model_t *m = make_mlp(c, 2);
    ov_compiled_model_t *compiled = compile_model(c, m), *again = NULL;
    const char *path = "conformance.blob";
    size_t n = 0;
    STATUS(ov_compiled_model_export_model(compiled, "/no/such/folder/x.blob"),
           GENERAL_ERROR);
    STATUS(ov_core_import_model(c->core, "no blob at all", 14, c->device, &again),
           GENERAL_ERROR);
    CHECK(again == NULL);
    if (GOOD(ov_compiled_model_export_model(compiled, path))) {
        char *bytes = read_all(path, &n);
        CHECK(n > 0);
        if (bytes && GOOD(ov_core_import_model(c->core, bytes, n, c->device, &again)))
            check_imported(again);
        ov_compiled_model_free(again);
        again = NULL;
        if (bytes && GOOD(ov_core_import_model(c->core, bytes, n + 1, c->device, &again)))
            check_imported(again);
        free(bytes);
        remove(path);
    }
    ov_compiled_model_free(again);
    ov_compiled_model_free(compiled);
    ov_model_free(m);
}

void
check_compiled(const struct conformance *c)
{
    check_compiling(c);
    check_ports(c);
    check_properties(c);
    if (strcmp(c->device, "REFERENCE") == 0)
        skip("batches and export", "the device has none");
    else {
        check_batches(c);
        check_export(c);
    }
}
