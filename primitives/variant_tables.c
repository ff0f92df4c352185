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
    {&xm_attention_combine_table, 1},
    {&xm_attention_decode_table, 1},
    {&xm_attention_inputs_table, 1},
    {&xm_attention_prompt_table, 1},
    {&xm_copy_table, 1},
    {&xm_eltwise_table, 1},
    {&xm_embedding_table, 1},
    {&xm_gather_table, 1},
    {&xm_gather_matmul_table, 1},
    {&xm_glu_table, 1},
    {xm_linear_tables, XM_LINEAR_N_TABLES},
    {&xm_matmul_table, 1},
    {xm_moe_tables, XM_MOE_N_TABLES},
    {&xm_moe_cache_fetch_table, 1},
    {&xm_moe_cache_lookup_table, 1},
    {&xm_moe_route_table, 1},
    {&xm_reduce_table, 1},
    {&xm_rms_norm_table, 1},
    {&xm_rope_table, 1},
    {&xm_rope_tables_table, 1},
    {&xm_row_chain_table, 1},
    {&xm_softmax_table, 1},
    {&xm_topk_table, 1},
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
