/* SPDX-License-Identifier: Apache-2.0
 *
 * The structural hash: ops, attributes, types and wiring. Nodes count by their place, not
 * by their number, and names do not count. Of constants the printed elements count; of
 * large ones only the size.
 */
#include "transformations/graph/text.h"
#include "transformations/graph/text_format.h"

static uint64_t
mix(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static uint64_t
mix_number(uint64_t h, uint64_t n)
{
    return mix(h, &n, sizeof(n));
}

static uint64_t
mix_node(uint64_t h, const struct xm_node *n, const uint32_t *place)
{
    struct xm_strbuf text = {0};
    h = mix_number(h, (uint64_t)n->op);
    for (uint32_t i = 0; i < n->n_in; i++) {
        const struct xm_value *v = xm_in(n, i);
        h = mix_number(h, xm_is_none(v) ? UINT64_MAX : place[v->node->id]);
        h = mix_number(h, v->index);
    }
    xm_text_add_data(n, &text);
    for (uint32_t i = 0; i < n->n_out; i++)
        xm_value_print_type(&n->out[i], &text);
    h = mix(h, xm_strbuf_text(&text), text.n);
    xm_strbuf_free(&text);
    return h;
}

uint64_t
xm_graph_hash(const struct xm_graph *g)
{
    uint64_t h = 0xcbf29ce484222325u;
    uint32_t at = 0;
    uint32_t *place = xm_calloc((size_t)g->next_id + 1, sizeof(*place));
    if (!place)
        return 0;
    xm_for_each_node(n, g)
    {
        place[n->id] = at++;
        h = mix_node(h, n, place);
    }
    xm_free(place);
    return h;
}
