/* SPDX-License-Identifier: Apache-2.0
 *
 * How tokens are chosen, as numbers: the parameters of sampling.def. sampler.h says what they mean.
 */
#ifndef XM_PLUGIN_TEXT_SAMPLING_H
#define XM_PLUGIN_TEXT_SAMPLING_H

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* At XM_BIAS_BARS or below, the token is never chosen. */
#define XM_BIAS_BARS (-100.0f)
struct xm_token_bias {
    int32_t id;
    float bias;
};

/* Lists are the caller's (sampling_lists.h makes them). */
struct xm_bias_view {
    const struct xm_token_bias *list;
    size_t n;
};
/* A set is in order; sequences follow each other, each with a -1 behind it. */
struct xm_token_view {
    const int32_t *ids;
    size_t n;
};

/* A member for each row: `float min_p;`. In a struct of zeros all but top_p are off. */
struct xm_sampling {
#define XM_MEMBER_REAL              float
#define XM_MEMBER_WHOLE             int
#define XM_MEMBER_COUNT             int
#define XM_MEMBER_SEED              uint64_t
#define XM_MEMBER_BIAS              struct xm_bias_view
#define XM_MEMBER_SET               struct xm_token_view
#define XM_MEMBER_SEQUENCES         struct xm_token_view
#define SAMPLING(kind, member, ...) XM_MEMBER_##kind member;
#include "plugin/text/sampling.def"
    /* presence and frequency penalties ignore the prompt's tokens; requires last_n = 0 */
    bool only_new;
};

enum {
#define SAMPLING(kind, member, ...) XM_AT_##member,
#include "plugin/text/sampling.def"
    XM_N_SAMPLING
};

enum xm_sampling_kind {
    XM_SAMPLING_REAL,
    XM_SAMPLING_WHOLE,
    XM_SAMPLING_COUNT,
    XM_SAMPLING_SEED,
    XM_SAMPLING_BIAS,
    XM_SAMPLING_SET,
    XM_SAMPLING_SEQUENCES
};

/* A row of sampling.def, which says what the members are. */
struct xm_sampling_row {
    const char *member;
    enum xm_sampling_kind kind;
    size_t offset; /* in struct xm_sampling */
    bool draws;
    double least, most, unsaid;
    const char *zero, *option, *file, *gguf, *genai, *json;
};
extern const struct xm_sampling_row xm_sampling_rows[XM_N_SAMPLING];

/* The value of a REAL, WHOLE or COUNT. */
bool xm_sampling_is_number(const struct xm_sampling_row *row);
double xm_sampling_get(const struct xm_sampling *s, const struct xm_sampling_row *row);
void xm_sampling_set(struct xm_sampling *s, const struct xm_sampling_row *row, double x);
/* Whether it is a value of the row: in its range, and whole where it has to be. */
bool xm_sampling_takes(const struct xm_sampling_row *row, double x);

/* Sets what a model's file recommends; what the parameter does not take counts as not said. */
void xm_sampling_recommend(struct xm_sampling *s, const struct xm_sampling_row *row,
                           double x);
/* What holds where nobody says anything: greedy, and all else off. */
void xm_sampling_init(struct xm_sampling *s);
/* XM_INVALID: a parameter is out of its range, or two do not go together; the sentence begins with
 * the member's name. */
enum xm_status xm_sampling_check(const struct xm_sampling *s, struct xm_error *err);

/* A seed that nobody has chosen, short enough to be typed again. Not for secrets. */
uint64_t xm_sampling_random_seed(void);

#ifdef __cplusplus
}
#endif
#endif
