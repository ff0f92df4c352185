/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference counting, freeing and printing of programs.
 */
#include "plugin/lower/program.h"

#include "plugin/lower/expert_caches.h"
#include "plugin/lower/weight_pages.h"
#include "primitives/onednn/onednn.h"
#include "runtime/label_times.h"

static void
free_parts(struct xm_program *p)
{
    xm_weight_pages_stop(p->weight_pages); /* first: its thread reads the weights */
    xm_expert_caches_destroy(p);
    xm_kv_pool_destroy(p->kv_pool);
    for (uint32_t i = 0; i < p->n_steps; i++)
        xm_primitive_destroy(p->steps[i].primitive);
    for (uint32_t i = 0; i < p->n_values; i++)
        xm_buffer_unref(p->values[i].buffer);
    for (uint32_t i = 0; i < p->n_weights; i++)
        xm_device_weight_unref(p->weights[i]);
    for (uint32_t i = 0; i < p->n_mappings; i++)
        xm_mapping_unref(p->mappings[i]);
    xm_onednn_unref(p->onednn);
    xm_free(p->steps);
    xm_free(p->values);
    xm_free(p->weights);
    xm_free(p->mappings);
    xm_free(p->kv);
    xm_free(p->reports);
    xm_label_times_destroy(p->step_times);
    xm_free(p->rules_text);
    xm_free(p->notes_text);
    xm_graph_destroy(p->graph);
    xm_dim_pool_free(&p->dims);
    xm_arena_free(&p->arena);
}

uint32_t
xm_program_root(const struct xm_program *p, uint32_t value)
{
    while (p->values[value].place == XM_PLACE_ALIAS)
        value = p->values[value].alias;
    return value;
}

void
xm_program_ref(struct xm_program *p)
{
    xm_refs_add(&p->refs);
}

void
xm_program_unref(struct xm_program *p)
{
    if (!p || xm_refs_drop(&p->refs) > 0)
        return;
    struct xm_engine *engine = p->engine;
    free_parts(p);
    xm_free(p);
    xm_engine_unref(engine);
}

static void
print_values(const struct xm_program *p, const uint32_t *ids, uint32_t n,
             struct xm_strbuf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct xm_type type = {p->values[ids[i]].element, p->values[ids[i]].shape};
        xm_strbuf_printf(out, " v%u", ids[i]);
        if (p->values[ids[i]].place == XM_PLACE_ALIAS)
            xm_strbuf_printf(out, "=v%u", xm_program_root(p, ids[i]));
        xm_strbuf_add(out, ":");
        xm_type_print(&type, out);
    }
}

void
xm_program_print(const struct xm_program *p, struct xm_strbuf *out)
{
    static const char *const kinds[] = {[XM_STEP_PRIMITIVE] = "",
                                        [XM_STEP_ATTENTION] = " (cache)",
                                        [XM_STEP_COPY] = " (copy)",
                                        [XM_STEP_HOST] = " (host)",
                                        [XM_STEP_COLLECTIVE] = " (collective)"};
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct xm_step *s = &p->steps[i];
        xm_strbuf_printf(out, "%4u", s->id);
        print_values(p, s->out, s->n_out, out);
        xm_strbuf_printf(out, " = %s%s", s->op, kinds[s->kind]);
        print_values(p, s->in, s->n_in, out);
        xm_strbuf_printf(out, "  # \"%s\"\n", s->name);
    }
}
