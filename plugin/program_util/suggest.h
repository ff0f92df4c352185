/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": the known name that a mistyped word is nearest to.
 */
#ifndef XM_PLUGIN_PROGRAM_UTIL_SUGGEST_H
#define XM_PLUGIN_PROGRAM_UTIL_SUGGEST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xm_suggestion {
    const char *word; /* n bytes, the caller's */
    size_t n;
    size_t distance;  /* of `best` */
    const char *best; /* the nearest name so far; NULL: none is near enough */
};

struct xm_suggestion xm_suggest_for(const char *word, size_t n);
/* Compares with one name, or with each name of a list apart by spaces. A name is near if at most
 * one letter in three is missing, added, other or exchanged with the next, or if it begins with the
 * word (from three letters on). NULL is no name. A name that is found in a list is copied into
 * memory of the process, and lives until the next such call. */
void xm_suggest(struct xm_suggestion *s, const char *name);
void xm_suggest_list(struct xm_suggestion *s, const char *names);

#ifdef __cplusplus
}
#endif
#endif
