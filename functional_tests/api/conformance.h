/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the conformance program share: checks that are counted, models as text, and
 * short ways to objects.
 */
#ifndef XM_FUNCTIONAL_TESTS_API_CONFORMANCE_H
#define XM_FUNCTIONAL_TESTS_API_CONFORMANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "openvino/c/openvino.h"

struct conformance {
    const char *device, *models; /* models NULL: no language model is there */
    ov_core_t *core;             /* for all parts                            */
};

/* Parts, each of some functions of the API. */
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

/* Counts; a failure is printed with the last error's text. */
bool check_at(bool condition, const char *what, const char *file, int line);
#define CHECK(condition) check_at((condition), #condition, __FILE__, __LINE__)
/* The call gives this code. */
bool check_status(ov_status_e found, ov_status_e expected, const char *what,
                  const char *file, int line);
#define STATUS(call, code) check_status((call), (code), #call, __FILE__, __LINE__)
#define GOOD(call)         STATUS(call, OK)
/* Counted apart. */
void skip(const char *what, const char *why);

/* Whether a text of the library is as expected; frees it. NULL is no text. */
bool takes_text(const char *found, const char *expected);
bool has_last_error(const char *part);

/* ---- models ------------------------------------------------------------------------ */

enum { MLP_IN = 16, MLP_OUT = 8 };

/* The weight of the next two, [MLP_IN][MLP_OUT]. */
const float *mlp_weight(void);
/* prob = softmax(data W), one row. */
void mlp_expected(const float *data, float *prob);

/* prob [rows,8] = softmax(data [rows,16] W), the net's name is "mlp"; rows < 0: dynamic. */
ov_model_t *make_mlp(const struct conformance *c, int rows);
/* y = a + b, [rows,2] each, "adder". */
ov_model_t *make_adder(const struct conformance *c, int rows);
/* y = x W W …, enough work for a run to be seen going on, "heavy". */
ov_model_t *make_heavy(const struct conformance *c);
enum { HEAVY_ROWS = 128, HEAVY_SIZE = 1024 };

/* In f32, on the device. */
ov_compiled_model_t *compile_model(const struct conformance *c, const ov_model_t *m);
ov_infer_request_t *make_request(const ov_compiled_model_t *m);
/* Of `rows` times `columns` floats, which are borrowed. */
ov_tensor_t *wrap_floats(float *data, int64_t rows, int64_t columns);
/* In each element; NaN is not. */
bool are_within(const float *a, const float *b, size_t n, float most);
bool are_near(const float *a, const float *b, size_t n); /* f32's */

#endif
