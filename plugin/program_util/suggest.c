/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimal string alignment: D[i][j] is the least number of changes from the word's first i letters
 * to the name's first j.
 */
#include "plugin/program_util/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

enum { MOST = 40 }; /* maximum number of letters of a compared name */

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool
is_same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t
distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t d[MOST + 1][MOST + 1];
    for (size_t i = 0; i <= n; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            const size_t other = !is_same(a[i - 1], b[j - 1]);
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + other);
            if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) &&
                is_same(a[i - 2], b[j - 1]))
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[n][m];
}

struct xm_suggestion
xm_suggest_for(const char *word, size_t n)
{
    return (struct xm_suggestion){.word = word, .n = n, .distance = SIZE_MAX};
}

/* Returns twice the distance, or 1 if the name begins with the word, so that such a name precedes
 * one with another letter. SIZE_MAX: too far. */
static size_t
distance_of(const struct xm_suggestion *s, const char *name, size_t m)
{
    const size_t longer = s->n > m ? s->n : m;
    if (s->n == 0 || m < 2 || longer > MOST)
        return SIZE_MAX;
    if (s->n >= 3 && m > s->n && strncasecmp(name, s->word, s->n) == 0)
        return 1;
    const size_t n = distance(s->word, s->n, name, m);
    return 3 * n <= longer ? 2 * n : SIZE_MAX;
}

void
xm_suggest(struct xm_suggestion *s, const char *name)
{
    const size_t n = name ? distance_of(s, name, strlen(name)) : SIZE_MAX;
    if (n < s->distance) {
        s->distance = n;
        s->best = name;
    }
}

void
xm_suggest_list(struct xm_suggestion *s, const char *names)
{
    static char kept[MOST + 1];
    for (const char *at = names ? names : ""; *at; at += strspn(at, " ")) {
        const size_t m = strcspn(at, " ");
        const size_t n = distance_of(s, at, m);
        if (n < s->distance) {
            s->distance = n;
            memcpy(kept, at, m);
            kept[m] = '\0';
            s->best = kept;
        }
        at += m;
    }
}
