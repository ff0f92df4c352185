/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz targets: each feeds one hostile input to one reader. libFuzzer (tools/fuzz) searches for
 * inputs; test_corpus.cpp runs the inputs of corpus/<target>/ in every test run.
 *
 * A target aborts when the reader breaks a promise that no sanitizer checks.
 */
#ifndef XM_UNIT_TESTS_FUZZ_FUZZ_H
#define XM_UNIT_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/util/status.h"

/* libFuzzer prescribes the name and the result, which is always 0. */
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

inline void
require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

/* Returns whether a call succeeded. Aborts unless a failure set an error text and a success set
 * none. */
inline bool
worked(enum xm_status status, const struct xm_error &err)
{
    require(status == err.status, "the status is the error's");
    require((status == XM_OK) == (err.text[0] == '\0'), "every failure has a sentence");
    return status == XM_OK;
}

#endif
