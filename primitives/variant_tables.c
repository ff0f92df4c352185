/* SPDX-License-Identifier: Apache-2.0
 *
 * All variant tables in one array, for tests, benchmarks and listings. A module adds
 * itself to `modules`.
 */
#include "primitives/variant_tables.h"

#include <assert.h>
#include <pthread.h>

#include "runtime/util/compiler.h"

static const struct xm_variant_module *const modules[] = {
    &xm_linear_variants, &xm_matmul_variants, &xm_gather_matmul_variants,
    &xm_router_variants, &xm_moe_variants,
};

enum { MAX_TABLES = 64 };
static struct xm_variant_table all[MAX_TABLES];
static size_t n_all;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
collect(void)
{
    for (size_t m = 0; m < XM_ARRAY_LEN(modules); m++) {
        assert(n_all + modules[m]->n <= MAX_TABLES);
        for (size_t i = 0; i < modules[m]->n; i++)
            all[n_all++] = modules[m]->tables[i];
    }
}

const struct xm_variant_table *
xm_variant_tables(size_t *n)
{
    pthread_once(&once, collect);
    *n = n_all;
    return all;
}
