/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /v1/models, /v1/models/NAME, /props, /metrics and /health: describe the models, their
 * counters, and their health.
 */
#include <string.h>

#include "plugin/program_util/json_out.h"
#include "plugin/server/openai.h"

static void
add_model(const struct xm_served *m, struct xm_json_out *j, yyjson_mut_val *o)
{
    xm_openai_text(j, o, "id", m->name);
    xm_openai_text(j, o, "object", "model");
    xm_json_add_whole(j, o, "created", (uint64_t)m->created);
    xm_openai_text(j, o, "owned_by", "xemoe");
    if (m->options.context)
        xm_json_add_whole(j, o, "context_length", m->options.context);
}

void
xm_answer_models(struct xm_exchange *x)
{
    const struct xm_server *s = x->server;
    struct xm_json_out j;
    xm_json_begin(&j);
    xm_openai_text(&j, NULL, "object", "list");
    yyjson_mut_val *list = xm_json_add_array(&j, NULL, "data");
    for (size_t i = 0; i < s->n_models; i++)
        add_model(s->models[i], &j, xm_json_add_object(&j, list, NULL));
    xm_answer_json(x, &j);
}

void
xm_answer_model(struct xm_exchange *x)
{
    const char *name = x->request.path + strlen("/v1/models/");
    struct xm_refusal r = {0};
    const struct xm_served *m =
        xm_server_model(x->server, xm_slice_of(name, strcspn(name, "?")), &r);
    struct xm_json_out j;
    if (!m) {
        xm_refusal_answer(&r, x);
        return;
    }
    xm_json_begin(&j);
    add_model(m, &j, NULL);
    xm_answer_json(x, &j);
}

/* Answers 503 if the server is stopping or a device is lost. After other failures the next text may
 * succeed. */
void
xm_answer_health(struct xm_exchange *x)
{
    struct xm_json_out j;
    for (size_t i = 0; i < x->server->n_models; i++) {
        struct xm_error why;
        struct xm_refusal r = {0};
        if (xm_served_is_well(x->server->models[i], &why) || why.status != XM_LOST)
            continue;
        xm_refuse_for(&r, &why);
        r.status = 503;
        r.code = "device_failed";
        xm_refusal_answer(&r, x);
        return;
    }
    if (xm_flag_get(&x->server->is_draining)) {
        struct xm_refusal r = {0};
        xm_refuse(&r, 503, NULL, "stopping", "the server is stopping");
        xm_refusal_answer(&r, x);
        return;
    }
    xm_json_begin(&j);
    xm_openai_text(&j, NULL, "status", "ok");
    xm_answer_json(x, &j);
}

/* Answers with the facts that clients need for their requests. */
void
xm_answer_props(struct xm_exchange *x)
{
    const struct xm_server *s = x->server;
    struct xm_json_out j;
    xm_json_begin(&j);
    xm_openai_text(&j, NULL, "version", XM_VERSION);
    yyjson_mut_val *list = xm_json_add_array(&j, NULL, "models");
    for (size_t i = 0; i < s->n_models; i++) {
        const struct xm_served *m = s->models[i];
        const struct xm_sampling *sampling = &m->options.sampling;
        yyjson_mut_val *o = xm_json_add_object(&j, list, NULL);
        xm_openai_text(&j, o, "id", m->name);
        xm_json_add_whole(&j, o, "slots", m->options.slots);
        xm_json_add_whole(&j, o, "context_length", m->options.context);
        xm_json_add_bool(&j, o, "has_chat_template",
                         m->package && m->package->chat_template);
        o = xm_json_add_object(&j, o, "default_sampling");
        xm_json_add_real(&j, o, "temperature", (double)sampling->temperature);
        xm_json_add_real(&j, o, "top_p", (double)sampling->top_p);
        xm_json_add_whole(&j, o, "top_k",
                          sampling->top_k > 0 ? (uint64_t)sampling->top_k : 0);
        xm_json_add_real(&j, o, "min_p", (double)sampling->min_p);
    }
    xm_answer_json(x, &j);
}

void
xm_answer_metrics(struct xm_exchange *x)
{
    const struct xm_server *s = x->server;
    struct xm_metrics **all = xm_calloc(s->n_models, sizeof(*all));
    struct xm_metrics_now *now = xm_calloc(s->n_models, sizeof(*now));
    struct xm_strbuf text = {0};
    struct xm_refusal r = {0};
    for (size_t i = 0; all && now && i < s->n_models; i++) {
        all[i] = &s->models[i]->metrics;
        xm_served_look(s->models[i], &now[i]);
    }
    if (all && now)
        xm_metrics_print(all, now, s->n_models, &text);
    if (all && now)
        xm_request_counts_print(&x->server->requests, &text);
    if (text.n && xm_strbuf_ok(&text)) {
        xm_exchange_lock(x);
        xm_exchange_answer(x, 200, "text/plain; version=0.0.4; charset=utf-8", text.text,
                           text.n);
        xm_exchange_unlock(x);
    } else {
        xm_refuse(&r, 503, NULL, NULL, "out of memory for the metrics");
        xm_refusal_answer(&r, x);
    }
    xm_strbuf_free(&text);
    xm_free(all);
    xm_free(now);
}
