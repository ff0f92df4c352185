/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside xemoe selftest: its parts, each a command of this program in a process of its own, so that
 * a kernel that hangs or a driver that crashes ends one part and not the others.
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

enum { XM_SELFTEST_WORDS = 32 }; /* of a command, its device and NULL included */

/* ---- a process ------------------------------------------------------------------------- */

/* How a process ended. `out` is its standard output, `said` the last line of standard error. */
struct xm_selftest_child {
    int code;     /* its exit code; 128 + N: signal N ended it */
    bool is_late; /* its time was over, and it was ended       */
    double seconds;
    struct xm_strbuf out, said;
};

/* Runs this program with `words` (NULL-terminated, without its own name) in `folder`, where its
 * cache lies, too, for at most `limit` seconds or until xm_selftest_is_over. `setting` is
 * NAME=VALUE for its environment, or NULL. Fails only if no process could be started, or its output
 * not be read. Free *out after success, too. */
enum xm_status xm_selftest_run(const char *folder, const char *const *words,
                               const char *setting, double limit,
                               struct xm_selftest_child *out, struct xm_error *err);
void xm_selftest_child_free(struct xm_selftest_child *c);
/* Whether a signal has come after which the process only cleans up: a child is ended then. */
bool xm_selftest_is_over(void);

/* ---- the parts ------------------------------------------------------------------------- */

/* Reads a part's result, the JSON that its command printed, and appends what it says in words.
 * False: not what it ought to be. */
typedef bool (*xm_selftest_read_fn)(yyjson_val *result, struct xm_strbuf *out);

struct xm_selftest_part {
    const char *name;
    const char *words;        /* of its command, apart by spaces */
    const char *setting;      /* NAME=VALUE; NULL: none          */
    xm_selftest_read_fn read; /* NULL: the exit code says all    */
    bool is_long;             /* left out by --quick             */
    bool is_same_text;        /* generates the ids of the last part that generated some */
};
extern const struct xm_selftest_part xm_selftest_parts[];
extern const size_t xm_selftest_n_parts;
/* Appends the words by which --only tells parts apart, each with a space behind it. */
void xm_selftest_add_words(struct xm_strbuf *out);
/* Whether two results of `generate --json` have the same token ids. False: appends where they
 * differ, or that `result` or `before` (NULL: there is none) has no ids. */
bool xm_selftest_is_same_text(yyjson_val *result, yyjson_val *before,
                              struct xm_strbuf *out);
/* Whether a part only writes a model for those behind it. */
bool xm_selftest_writes(const struct xm_selftest_part *p);
/* Whether it runs kernels: its command takes --device, and means nothing in a dry run. */
bool xm_selftest_computes(const struct xm_selftest_part *p);
/* Whether it runs: it is not left out by `quick`, and its name has the text `only` (NULL: all), or
 * it writes the model of a part whose name has it, or the text that this part repeats. */
bool xm_selftest_is_wanted(const struct xm_selftest_part *p, bool quick,
                           const char *only);

#ifdef __cplusplus
}
#endif
#endif
