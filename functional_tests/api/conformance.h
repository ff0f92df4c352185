/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the conformance program share: counted checks, models as text, and short
 * functions that create objects.
 */
#ifndef XM_FUNCTIONAL_TESTS_API_CONFORMANCE_H
#define XM_FUNCTIONAL_TESTS_API_CONFORMANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "openvino/c/openvino.h"

struct conformance {
    const char *device, *models; /* models NULL: there is no language model */
    ov_core_t *core;             /* shared by all parts */
};

/* The parts, each for some functions of the API. */
void check_types(const struct conformance *c);
void check_shapes(const struct conformance *c);
void check_tensors(const struct conformance *c);
void check_core(const struct conformance *c);
void check_models(const struct conformance *c);
void check_reshapes(const struct conformance *c);
void check_compiled(const struct conformance *c);
void check_requests(const struct conformance *c);
void check_async(const struct conformance *c);
void check_language(const struct conformance *c);
void check_remote(const struct conformance *c);

/* Counts a check and returns the condition; prints a failure with the text of the last error. */
bool check_at(bool condition, const char *what, const char *file, int line);
#define CHECK(condition) check_at((condition), #condition, __FILE__, __LINE__)
/* Checks that a call returned this code. */
bool check_status(ov_status_e found, ov_status_e expected, const char *what,
                  const char *file, int line);
#define STATUS(call, code) check_status((call), (code), #call, __FILE__, __LINE__)
#define GOOD(call)         STATUS(call, OK)
/* Counts and prints a check that is left out. */
void skip(const char *what, const char *why);

/* Returns whether a text of the library is as expected, and frees it; false for NULL. */
bool takes_text(const char *found, const char *expected);
bool has_last_error(const char *part);

/* ---- models ------------------------------------------------------------------------ */

enum { MLP_IN = 16, MLP_OUT = 8 };

/* The weight of the next two models, [MLP_IN][MLP_OUT]. */
const float *mlp_weight(void);
/* Computes prob = softmax(data W) for one row. */
void mlp_expected(const float *data, float *prob);

/* The net "mlp": prob [rows,8] = softmax(data [rows,16] W). rows < 0: a dynamic dimension. */
ov_model_t *make_mlp(const struct conformance *c, int rows);
/* The net "adder": y = a + b, [rows,2] each. */
ov_model_t *make_adder(const struct conformance *c, int rows);
/* The net "heavy": y = x W W …, with enough work for a run to be observed while it lasts. */
ov_model_t *make_heavy(const struct conformance *c);
enum { HEAVY_ROWS = 128, HEAVY_SIZE = 1024 };

/* Compiles a model in f32 for the device. */
ov_compiled_model_t *compile_model(const struct conformance *c, const ov_model_t *m);
ov_infer_request_t *make_request(const ov_compiled_model_t *m);
/* Returns a tensor of [rows, columns] floats in the caller's memory. */
ov_tensor_t *wrap_floats(float *data, int64_t rows, int64_t columns);
/* Returns whether all elements differ by at most `most`; false with NaN. */
bool are_within(const float *a, const float *b, size_t n, float most);
bool are_near(const float *a, const float *b, size_t n); /* within the rounding of f32 */

#endif
