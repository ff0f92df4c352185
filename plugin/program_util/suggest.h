/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": finds the known name nearest to a mistyped word.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_SUGGEST_H
#define XM_PLUGIN_PROGRAM_UTIL_SUGGEST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_suggestion {
    const char *word; /* n bytes, not owned */
    size_t n;
    size_t distance;  /* of `best` */
    const char *best; /* the nearest name so far; NULL: no name is near enough */
};
/* Begins a search for `word` (n bytes). */
struct xm_suggestion xm_suggest_for(const char *word, size_t n);
/* Compares the word with one name, or with each name of a list separated by spaces; NULL: none. A
 * name is near enough if at most a third of its letters is missing, added, changed or swapped with
 * the next, or if it begins with the word and the word has at least 3 letters. Letter case is
 * ignored. A name found in a list is copied to static memory, which the next call overwrites. */
void xm_suggest(struct xm_suggestion *s, const char *name);
void xm_suggest_list(struct xm_suggestion *s, const char *names);

#ifdef __cplusplus
}
#endif
#endif
