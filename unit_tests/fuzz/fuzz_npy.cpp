// SPDX-License-Identifier: Apache-2.0
// The input is a .npy file of token ids or of logits.
#include "plugin/program_util/npy.h"
#include "unit_tests/fuzz/fuzz.h"

static void
read_floats(const uint8_t *bytes, size_t n)
{
    xm_npy_floats a = {};
    xm_error err = {};
    if (!worked(xm_npy_read_floats(bytes, n, &a, &err), err))
        return;
    float sum = 0.0f;
    for (uint64_t i = 0; i < a.rows * a.cols; i++)
        sum += a.data[i];
    require(sum == 0.0f || a.rows > 0, "there are rows when there are elements");
    xm_npy_floats_free(&a);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    xm_npy a = {};
    xm_error err = {};
    read_floats(bytes, n);
    if (!xm_npy_is(bytes, n) || !worked(xm_npy_read(bytes, n, &a, &err), err))
        return 0;
    int64_t sum = 0; /* Reads every element. */
    for (uint64_t i = 0; i < a.rows * a.cols; i++)
        sum ^= a.data[i];
    require(sum != INT64_MIN || a.rows > 0, "there are rows when there are elements");
    xm_npy_free(&a);
    return 0;
}
