/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe selftest: its parts. Each is a command of this program, run in a process of its own,
 * so that a hanging kernel or a crashing driver ends only one part.
 */
#ifndef XM_PLUGIN_CLI_SELFTEST_H
#define XM_PLUGIN_CLI_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* maximum number of words of a command, including its device and NULL */
enum { XM_SELFTEST_WORDS = 32 };

/* ---- a process ------------------------------------------------------------------------- */

/* The outcome of a process. `out` is its standard output, `said` the last line of its standard
 * error. */
struct xm_selftest_child {
    int code;     /* its exit code; 128 + N: signal N ended it */
    bool is_late; /* it exceeded its time limit and was killed */
    double seconds;
    struct xm_strbuf out, said;
};

/* Runs this program with `words` (NULL-terminated, without its own name) in `folder`, which also
 * has its cache, for at most `limit` seconds or until xm_selftest_is_over. `setting` is NAME=VALUE
 * for its environment, or NULL. Fails only if the process could not be started or its output could
 * not be read. The caller frees *out, also after a success. */
enum xm_status xm_selftest_run(const char *folder, const char *const *words,
                               const char *setting, double limit,
                               struct xm_selftest_child *out, struct xm_error *err);
void xm_selftest_child_free(struct xm_selftest_child *c);
/* Whether a signal has arrived after which the process only cleans up; then the child is killed. */
bool xm_selftest_is_over(void);

/* ---- the parts ------------------------------------------------------------------------- */

/* Reads the JSON that a part's command printed, and appends a description of the result. Returns
 * false if the result is wrong. */
typedef bool (*xm_selftest_read_fn)(yyjson_val *result, struct xm_strbuf *out);

struct xm_selftest_part {
    const char *name;
    const char *words;        /* of its command, separated by spaces */
    const char *setting;      /* NAME=VALUE; NULL: none          */
    xm_selftest_read_fn read; /* NULL: the exit code is the result */
    bool is_long;             /* skipped by --quick */
    /* must generate the same ids as the last part that generated any */
    bool is_same_text;
};
extern const struct xm_selftest_part xm_selftest_parts[];
extern const size_t xm_selftest_n_parts;
/* Appends the words by which --only can select parts, each followed by a space. */
void xm_selftest_add_words(struct xm_strbuf *out);
/* Whether two results of `generate --json` have the same token ids. If not, appends where they
 * differ, or that `result` or `before` (NULL: missing) has no ids. */
bool xm_selftest_is_same_text(yyjson_val *result, yyjson_val *before,
                              struct xm_strbuf *out);
/* Whether a part only writes a model for later parts. */
bool xm_selftest_writes(const struct xm_selftest_part *p);
/* Whether a part runs kernels: its command takes --device, and is meaningless in a dry run. */
bool xm_selftest_computes(const struct xm_selftest_part *p);
/* Whether a part runs: it is not skipped by `quick`, and its name contains `only` (NULL: all), or
 * it writes the model, or generates the text to compare with, of a part whose name does. */
bool xm_selftest_is_wanted(const struct xm_selftest_part *p, bool quick,
                           const char *only);

#ifdef __cplusplus
}
#endif
#endif
