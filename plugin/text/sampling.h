/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampling parameters of sampling.def as a struct. sampler.h says what they do.
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

/* A bias of XM_BIAS_BARS or less forbids the token. */
#define XM_BIAS_BARS (-100.0f)
struct xm_token_bias {
    int32_t id;
    float bias;
};

/* A list of biases. The views below do not own their lists (sampling_lists.h makes lists). */
struct xm_bias_view {
    const struct xm_token_bias *list;
    size_t n;
};
/* A list of tokens: a SET is sorted by id; SEQUENCES follow each other, each ended by a -1. */
struct xm_token_view {
    const int32_t *ids;
    size_t n;
};

/* One member for each row, such as `float min_p;`. In a struct of zeros all parameters are off
 * except top_p (0 is not "off"). */
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
    /* Presence and frequency penalties ignore the prompt's tokens; requires last_n = 0. */
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

/* A row of sampling.def, which describes the members. */
struct xm_sampling_row {
    const char *member;
    enum xm_sampling_kind kind;
    size_t offset; /* in struct xm_sampling */
    bool draws;
    double least, most, unsaid;
    const char *zero, *option, *file, *gguf, *genai, *json;
};
extern const struct xm_sampling_row xm_sampling_rows[XM_N_SAMPLING];

/* xm_sampling_is_number: returns whether the parameter is a REAL, WHOLE or COUNT. The other two
 * read and set such a parameter. */
bool xm_sampling_is_number(const struct xm_sampling_row *row);
double xm_sampling_get(const struct xm_sampling *s, const struct xm_sampling_row *row);
void xm_sampling_set(struct xm_sampling *s, const struct xm_sampling_row *row, double x);
/* Returns whether x is a valid value of the row: in its range, and whole unless it is a REAL. */
bool xm_sampling_takes(const struct xm_sampling_row *row, double x);

/* Sets the value that a model's file recommends. A value that the parameter does not take is
 * ignored. */
void xm_sampling_recommend(struct xm_sampling *s, const struct xm_sampling_row *row,
                           double x);
/* Sets all parameters to their defaults: greedy, all else off. */
void xm_sampling_init(struct xm_sampling *s);
/* Checks all parameters. XM_INVALID: a parameter is out of range, or two exclude each other; the
 * error message begins with the member's name. */
enum xm_status xm_sampling_check(const struct xm_sampling *s, struct xm_error *err);

/* Returns a random seed that is short enough to be typed. Not for secrets. */
uint64_t xm_sampling_random_seed(void);

#ifdef __cplusplus
}
#endif
#endif
