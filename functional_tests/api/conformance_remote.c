/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: a CPU device refuses remote contexts, and models still run. The functions are
 * looked up at run time, because a library may lack them.
 */
#include "functional_tests/api/conformance.h"

#include <dlfcn.h>
#include <string.h>

typedef ov_status_e (*default_context)(const ov_core_t *, const char *,
                                       ov_remote_context_t **);
typedef ov_status_e (*model_context)(const ov_compiled_model_t *, ov_remote_context_t **);
typedef ov_status_e (*runtime_model)(const ov_compiled_model_t *, ov_model_t **);
typedef ov_status_e (*add_extension)(const ov_core_t *, const char *);

/* Sets a function pointer to the function of that name; returns false if the library lacks it. */
static bool
find_function(const char *name, void *function, size_t n)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &found, n);
    if (!found)
        skip(name, "the library does not have it");
    return found != NULL;
}
#define FIND(name, function) find_function(name, &(function), sizeof(function))

static void
check_contexts(const struct conformance *c, const ov_compiled_model_t *compiled)
{
    ov_remote_context_t *context = NULL;
    default_context of_device;
    model_context of_model;
    if (FIND("ov_core_get_default_context", of_device)) {
        STATUS(of_device(c->core, c->device, &context), GENERAL_ERROR);
        STATUS(of_device(c->core, c->device, NULL), INVALID_C_PARAM);
        STATUS(of_device(NULL, c->device, &context), INVALID_C_PARAM);
    }
    if (FIND("ov_compiled_model_get_context", of_model)) {
        STATUS(of_model(compiled, &context), GENERAL_ERROR);
        STATUS(of_model(compiled, NULL), INVALID_C_PARAM);
    }
    CHECK(context == NULL);
}

static void
check_runtime_model(const ov_compiled_model_t *compiled)
{
    runtime_model get;
    ov_model_t *m = NULL;
    char *name = NULL;
    size_t n = 0;
    if (!FIND("ov_compiled_model_get_runtime_model", get))
        return;
    STATUS(get(compiled, NULL), INVALID_C_PARAM);
    if (!GOOD(get(compiled, &m)))
        return;
    CHECK(ov_model_inputs_size(m, &n) == OK && n == 1);
    if (GOOD(ov_model_get_friendly_name(m, &name)))
        CHECK(takes_text(name, "mlp"));
    ov_model_free(m);
}

static void
check_extensions(const struct conformance *c)
{
    add_extension add;
    if (!FIND("ov_core_add_extension", add))
        return;
    STATUS(add(c->core, "no_such_library.so"), GENERAL_ERROR);
    CHECK(has_last_error("no_such_library.so"));
    STATUS(add(c->core, NULL), INVALID_C_PARAM);
}

void
check_remote(const struct conformance *c)
{
    ov_model_t *m = make_mlp(c, 2);
    ov_compiled_model_t *compiled = compile_model(c, m);
    check_contexts(c, compiled);
    check_runtime_model(compiled);
    check_extensions(c);
    ov_compiled_model_free(compiled);
    ov_model_free(m);
}
