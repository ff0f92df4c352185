/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: versions, devices, properties, reading, the last error's text, the log.
 */
#include "functional_tests/api/conformance.h"
#include "openvino/c/auto/properties.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

/* ---- versions and devices ---------------------------------------------------------- */

static void
check_versions(const struct conformance *c)
{
    ov_version_t v = {NULL, NULL};
    ov_core_version_list_t list = {NULL, 0};
    if (GOOD(ov_get_openvino_version(&v))) {
        CHECK(v.buildNumber && isdigit((unsigned char)v.buildNumber[0]));
        CHECK(v.description && v.description[0]);
        ov_version_free(&v);
        CHECK(v.buildNumber == NULL && v.description == NULL);
    }
    ov_version_free(NULL);
    if (GOOD(ov_core_get_versions_by_device_name(c->core, c->device, &list))) {
        CHECK(list.size == 1 && strcmp(list.versions[0].device_name, c->device) == 0);
        CHECK(list.versions[0].version.buildNumber &&
              list.versions[0].version.description);
        ov_core_versions_free(&list);
        CHECK(list.versions == NULL);
    }
    ov_core_versions_free(NULL);
    STATUS(ov_core_get_versions_by_device_name(c->core, "NOPE", &list), NOT_FOUND);
    STATUS(ov_core_get_versions_by_device_name(c->core, NULL, &list), INVALID_C_PARAM);
    STATUS(ov_get_openvino_version(NULL), INVALID_C_PARAM);
}

/* The versions of a list contain those of its devices and of AUTO or MULTI, by their names. */
static void
check_versions_of_a_list(const struct conformance *c)
{
    static const char *const names[] = {"AUTO", "BATCH", "MULTI"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ov_core_version_list_t list = {NULL, 0};
        char device[64];
        snprintf(device, sizeof(device), "%s:%s", names[i], c->device);
        if (!GOOD(ov_core_get_versions_by_device_name(c->core, device, &list)))
            continue;
        CHECK(list.size == 2 &&
              strcmp(list.versions[0].device_name, list.versions[1].device_name) < 0);
        ov_core_versions_free(&list);
    }
}

static void
check_devices(const struct conformance *c)
{
    ov_available_devices_t list = {NULL, 0};
    bool has = false;
    if (!GOOD(ov_core_get_available_devices(c->core, &list)))
        return;
    for (size_t i = 0; i < list.size; i++)
        has = has || strncmp(list.devices[i], c->device, strlen(c->device)) == 0;
    CHECK(list.size >= 1 && has);
    ov_available_devices_free(&list);
    CHECK(list.devices == NULL && list.size == 0);
    ov_available_devices_free(NULL);
}

/* ---- properties -------------------------------------------------------------------- */

static bool
property_is(const ov_core_t *core, const char *device, const char *key, const char *value)
{
    char *found = NULL;
    return ov_core_get_property(core, device, key, &found) == OK &&
           takes_text(found, value);
}

static void
check_settings(const struct conformance *c)
{
    ov_core_t *core = NULL;
    const ov_property_t list[] = {{ov_property_key_hint_performance_mode, "LATENCY"},
                                  {ov_property_key_enable_profiling, "YES"}};
    if (!GOOD(ov_core_create(&core)))
        return;
    GOOD(ov_core_set_property(core, c->device, ov_property_key_hint_performance_mode,
                              "THROUGHPUT"));
    CHECK(property_is(core, c->device, "PERFORMANCE_HINT", "THROUGHPUT"));
    GOOD(ov_core_set_properties(core, c->device, 2, list));
    CHECK(property_is(core, c->device, "PERFORMANCE_HINT", "LATENCY"));
    CHECK(property_is(core, c->device, "PERF_COUNT", "YES"));
    STATUS(ov_core_set_property(core, c->device, "PERFORMANCE_HINT", "latency"),
           GENERAL_ERROR); /* the device is loaded now */
    STATUS(ov_core_set_properties(core, c->device, 0, list), INVALID_C_PARAM);
    STATUS(ov_core_set_properties(core, c->device, 1, NULL), INVALID_C_PARAM);
    GOOD(ov_core_set_property(core, NULL, ov_property_key_cache_dir, ""));
    STATUS(ov_core_set_property(core, "NOPE", "PERF_COUNT", "YES"), GENERAL_ERROR);
    CHECK(has_last_error("NOPE"));
    ov_core_free(core);
}

/* Until a device is loaded its properties are only stored; its first use reports an invalid one. */
static void
check_late_settings(const struct conformance *c)
{
    ov_core_t *core = NULL;
    ov_compiled_model_t *compiled = NULL;
    ov_model_t *m = make_mlp(c, 2);
    if (!GOOD(ov_core_create(&core)))
        return;
    GOOD(ov_core_set_property(core, c->device, "PERFORMANCE_HINT", "WRONG"));
    STATUS(ov_core_compile_model(core, m, c->device, 0, &compiled), GENERAL_ERROR);
    CHECK(compiled == NULL);
    ov_core_free(core);
    ov_model_free(m);
}

/* Properties that only AUTO has. */
static void
check_settings_of_auto(void)
{
    const char *const keys[] = {ov_property_key_intel_auto_device_bind_buffer,
                                ov_property_key_intel_auto_enable_startup_fallback,
                                ov_property_key_intel_auto_enable_runtime_fallback};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        ov_core_t *core = NULL;
        char *value = NULL;
        if (!GOOD(ov_core_create(&core)))
            return;
        GOOD(ov_core_set_property(core, "AUTO", keys[i], "YES"));
        CHECK(property_is(core, "AUTO", keys[i], "YES"));
        GOOD(ov_core_set_property(core, "AUTO", keys[i], "NO"));
        CHECK(property_is(core, "AUTO", keys[i], "NO"));
        STATUS(ov_core_set_property(core, "AUTO", keys[i], "MAYBE"), GENERAL_ERROR);
        CHECK(property_is(core, "AUTO", keys[i], "NO"));
        ov_core_free(core);
        if (!GOOD(ov_core_create(&core)))
            return;
        /* accepted, because AUTO is not loaded */
        GOOD(ov_core_set_property(core, "AUTO", keys[i], "MAYBE"));
        STATUS(ov_core_get_property(core, "AUTO", keys[i], &value), GENERAL_ERROR);
        CHECK(value == NULL);
        ov_core_free(core);
    }
    ov_core_t *core = NULL;
    if (!GOOD(ov_core_create(&core)))
        return;
    CHECK(property_is(core, "AUTO", "SCHEDULE_POLICY", "DEVICE_PRIORITY"));
    GOOD(ov_core_set_property(core, "AUTO", "SCHEDULE_POLICY", "ROUND_ROBIN"));
    CHECK(property_is(core, "AUTO", "SCHEDULE_POLICY", "ROUND_ROBIN"));
    STATUS(ov_core_set_property(core, "AUTO", "SCHEDULE_POLICY", "ANY"), GENERAL_ERROR);
    ov_core_free(core);
}

static void
check_properties(const struct conformance *c)
{
    char *value = NULL;
    if (GOOD(ov_core_get_property(c->core, c->device,
                                  ov_property_key_supported_properties, &value)))
        CHECK(strstr(value, "FULL_DEVICE_NAME") && strstr(value, "AVAILABLE_DEVICES"));
    ov_free(value);
    value = NULL;
    if (GOOD(ov_core_get_property(c->core, c->device, ov_property_key_device_full_name,
                                  &value)))
        CHECK(value[0] != '\0');
    ov_free(value);
    value = NULL;
    STATUS(ov_core_get_property(c->core, c->device, "NO_SUCH_KEY", &value),
           GENERAL_ERROR);
    CHECK(has_last_error("NO_SUCH_KEY"));
    STATUS(ov_core_get_property(c->core, "NOPE", "FULL_DEVICE_NAME", &value),
           GENERAL_ERROR);
    CHECK(has_last_error("NOPE"));
    STATUS(ov_core_get_property(c->core, NULL, "FULL_DEVICE_NAME", &value),
           UNKNOW_EXCEPTION);
    STATUS(ov_core_get_property(c->core, c->device, NULL, &value), INVALID_C_PARAM);
    STATUS(ov_core_get_property(c->core, c->device, "FULL_DEVICE_NAME", NULL),
           INVALID_C_PARAM);
    CHECK(value == NULL);
}

/* ---- reading ----------------------------------------------------------------------- */

static void
check_reading(const struct conformance *c)
{
    static const char xml[] = "<net>";
    ov_model_t *m = NULL;
    STATUS(ov_core_read_model(c->core, "no_such_file.xml", NULL, &m), GENERAL_ERROR);
    CHECK(has_last_error("no_such_file.xml"));
    STATUS(ov_core_read_model(c->core, NULL, NULL, &m), INVALID_C_PARAM);
    STATUS(ov_core_read_model(c->core, "no_such_file.xml", NULL, NULL), INVALID_C_PARAM);
    STATUS(ov_core_read_model_unicode(c->core, L"no_such_file.xml", NULL, &m),
           GENERAL_ERROR);
    STATUS(ov_core_read_model_from_memory_buffer(c->core, xml, 0, NULL, &m),
           INVALID_C_PARAM);
    STATUS(ov_core_read_model_from_memory_buffer(c->core, xml, strlen(xml), NULL, &m),
           GENERAL_ERROR);
    CHECK(m == NULL);
}

/* A model as in a program's literal: a line break first, and a buffer longer than the text. */
static void
check_text_of_a_buffer(const struct conformance *c)
{
    static const char xml[] =
        "\n  <?xml version=\"1.0\"?><net name=\"n\" version=\"11\"><layers>"
        "<layer id=\"0\" name=\"x\" type=\"Parameter\" version=\"opset1\">"
        "<data shape=\"2\" element_type=\"f32\"/><output>"
        "<port id=\"0\" precision=\"FP32\" "
        "names=\"x\"><dim>2</dim></port></output></layer>"
        "<layer id=\"1\" name=\"y\" type=\"Result\" version=\"opset1\"><input>"
        "<port id=\"0\" precision=\"FP32\"><dim>2</dim></port></input></layer></layers>"
        "<edges><edge from-layer=\"0\" from-port=\"0\" to-layer=\"1\" to-port=\"0\"/>"
        "</edges></net>\0what was there before";
    ov_model_t *m = NULL;
    if (GOOD(ov_core_read_model_from_memory_buffer(c->core, xml, sizeof(xml), NULL, &m)))
        ov_model_free(m);
}

static void
check_configs(void)
{
    ov_core_t *core = NULL;
    STATUS(ov_core_create_with_config("no_such_file.xml", &core), GENERAL_ERROR);
    STATUS(ov_core_create_with_config(NULL, &core), INVALID_C_PARAM);
    STATUS(ov_core_create_with_config_unicode(L"no_such_file.xml", &core), GENERAL_ERROR);
    STATUS(ov_core_create(NULL), INVALID_C_PARAM);
    CHECK(core == NULL);
    if (GOOD(ov_core_create_with_config("", &core)))
        ov_core_free(core);
    ov_core_free(NULL);
}

/* ---- errors and the log ------------------------------------------------------------ */

/* The process has one text of the last error. It survives successes and invalid arguments, until
 * the next failure or until a core is freed. */
static void
check_last_error(const struct conformance *c)
{
    ov_core_t *core = NULL;
    ov_model_t *m = NULL;
    char *value = NULL;
    GOOD(ov_core_create(&core));
    STATUS(ov_core_read_model(core, "first.xml", NULL, &m), GENERAL_ERROR);
    GOOD(ov_core_get_property(c->core, c->device, "FULL_DEVICE_NAME", &value));
    ov_free(value);
    CHECK(has_last_error("first.xml"));
    STATUS(ov_core_read_model(core, "second.xml", NULL, &m), GENERAL_ERROR);
    CHECK(has_last_error("second.xml") && !has_last_error("first.xml"));
    STATUS(ov_core_read_model(core, NULL, NULL, &m), INVALID_C_PARAM);
    STATUS(ov_core_create(NULL), INVALID_C_PARAM);
    STATUS(ov_tensor_get_size(NULL, NULL), INVALID_C_PARAM);
    CHECK(has_last_error("second.xml"));
    ov_core_free(core);
    CHECK(ov_get_last_err_msg() == NULL);
}

static int log_lines;

static void
count_line(const char *line)
{
    log_lines += line != NULL;
}

static void
check_log(void)
{
    ov_util_set_log_callback(count_line);
    CHECK(log_lines >= 0);
    ov_util_set_log_callback(NULL);
    ov_util_reset_log_callback();
}

void
check_core(const struct conformance *c)
{
    check_versions(c);
    if (strcmp(c->device, "REFERENCE") == 0) {
        skip("settings", "the device has none, and is not among those that are listed");
    } else {
        check_versions_of_a_list(c);
        check_devices(c);
        check_settings(c);
        check_late_settings(c);
        check_settings_of_auto();
    }
    check_properties(c);
    check_reading(c);
    check_text_of_a_buffer(c);
    check_configs();
    check_last_error(c);
    check_log();
}
