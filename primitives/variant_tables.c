/* SPDX-License-Identifier: Apache-2.0
 *
 * All variant tables in one array, for tests, benchmarks and listings.
 */
#include <assert.h>
#include <pthread.h>

#include "primitives/tables.h"
#include "runtime/util/compiler.h"

static const struct {
    const struct xm_variant_table *tables;
    size_t n;
} groups[] = {
#define TABLE(name, source)               {&xm_##name##_table, 1},
#define TABLES(name, NAME, count, source) {xm_##name##_tables, count},
#include "primitives/variant_tables.def"
};

enum { MAX_TABLES = 64 };
static struct xm_variant_table all[MAX_TABLES];
static size_t n_all;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
collect(void)
{
    for (size_t g = 0; g < XM_ARRAY_LEN(groups); g++) {
        assert(n_all + groups[g].n <= MAX_TABLES);
        for (size_t i = 0; i < groups[g].n; i++)
            all[n_all++] = groups[g].tables[i];
    }
}

const struct xm_variant_table *
xm_variant_tables(size_t *n)
{
    pthread_once(&once, collect);
    *n = n_all;
    return all;
}
