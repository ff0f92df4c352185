/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenVINO's C API as programs use it: a C99 program that includes only openvino/c/openvino.h and
 * checks the results of the library's functions. OpenVINO's own library gives the same results
 * (2026.4; tools/test --openvino).
 *
 *     conformance [DEVICE [MODELS_DIR]]
 *
 * Exit code 77: the device does not exist.
 */
#include "functional_tests/api/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks, failures, skipped;

bool
check_at(bool condition, const char *what, const char *file, int line)
{
    checks++;
    if (condition)
        return true;
    const char *text = ov_get_last_err_msg();
    failures++;
    fprintf(stderr, "%s:%d: %s (last error: %s)\n", file, line, what,
            text ? text : "none");
    ov_free(text);
    return false;
}

bool
check_status(ov_status_e found, ov_status_e expected, const char *what, const char *file,
             int line)
{
    char text[400];
    snprintf(text, sizeof(text), "%s gives %d, expected %d", what, (int)found,
             (int)expected);
    return check_at(found == expected, text, file, line);
}

void
skip(const char *what, const char *why)
{
    printf("skipped: %s: %s\n", what, why);
    skipped++;
}

bool
takes_text(const char *found, const char *expected)
{
    const bool same = found && strcmp(found, expected) == 0;
    if (!same)
        fprintf(stderr, "found \"%s\", expected \"%s\"\n", found ? found : "NULL",
                expected);
    ov_free(found);
    return same;
}

bool
has_last_error(const char *part)
{
    const char *text = ov_get_last_err_msg();
    const bool has = text && strstr(text, part);
    ov_free(text);
    return has;
}

static bool
has_device(const struct conformance *c)
{
    char *name = NULL;
    const bool has = ov_core_get_property(c->core, c->device,
                                          ov_property_key_device_full_name, &name) == OK;
    ov_free(name);
    return has;
}

int
main(int argc, char **argv)
{
    enum { NO_DEVICE = 77 };
    static const struct {
        const char *name;
        void (*run)(const struct conformance *c);
    } parts[] = {
        {"types", check_types},       {"shapes", check_shapes},
        {"tensors", check_tensors},   {"core", check_core},
        {"models", check_models},     {"reshapes", check_reshapes},
        {"compiled", check_compiled}, {"requests", check_requests},
        {"async", check_async},       {"language", check_language},
        {"remote", check_remote},
    };
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* keeps the order between both outputs */
    struct conformance c = {argc > 1 ? argv[1] : "CPU", argc > 2 ? argv[2] : NULL, NULL};
    if (ov_core_create(&c.core) != OK) {
        fprintf(stderr, "no core\n");
        return EXIT_FAILURE;
    }
    if (!has_device(&c)) {
        printf("there is no device %s\n", c.device);
        ov_core_free(c.core);
        return NO_DEVICE;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const int before = checks, wrong = failures;
        parts[i].run(&c);
        printf("%-10s %3d checks, %d failed\n", parts[i].name, checks - before,
               failures - wrong);
    }
    ov_core_free(c.core);
    printf("%d checks on %s: %d failed, %d parts skipped\n", checks, c.device, failures,
           skipped);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
