/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz targets: each reads one hostile input through one reader. libFuzzer (tools/fuzz)
 * searches for inputs; test_corpus.cpp runs those of corpus/<target>/ in every test run.
 *
 * A target aborts where a promise is broken that no sanitizer sees.
 */
#ifndef XM_UNIT_TESTS_FUZZ_FUZZ_H
#define XM_UNIT_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/util/status.h"

/* The name and the result, 0, are libFuzzer's. */
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

inline void
require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

/* Failed with a sentence, or worked without one. */
inline bool
worked(enum xm_status status, const struct xm_error &err)
{
    require(status == err.status, "the status is the error's");
    require((status == XM_OK) == (err.text[0] == '\0'), "every failure has a sentence");
    return status == XM_OK;
}

#endif
