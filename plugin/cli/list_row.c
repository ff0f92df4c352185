/* SPDX-License-Identifier: Apache-2.0
 *
 * Determines the facts of one model: from its graph and keys, and what `plan` computes. The first
 * failure is the row's reason; facts found before stay.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "plugin/cli/info.h"
#include "plugin/cli/list.h"
#include "plugin/feeds.h"
#include "plugin/memory_planner.h"
#include "plugin/model_facts.h"

const char *
xm_list_kind_text(enum xm_list_kind kind)
{
    static const char *const texts[XM_LIST_KINDS] = {"gguf", "openvino", "compiled",
                                                     "folder"};
    return texts[kind];
}

/* Finds the format of most of the model's bytes. */
static void
find_weights(const struct xm_model_facts *f, struct xm_list_row *row)
{
    const struct xm_format_facts *most = NULL;
    for (uint32_t i = 0; i < f->n_formats; i++) {
        if (!most || f->formats[i].bytes > most->bytes)
            most = &f->formats[i];
    }
    if (!most)
        return;
    if (most->group == UINT64_MAX)
        snprintf(row->weights, sizeof(row->weights), "%s row", most->text);
    else if (most->group)
        snprintf(row->weights, sizeof(row->weights), "%s g%" PRIu64, most->text,
                 most->group);
    else
        snprintf(row->weights, sizeof(row->weights), "%s", most->text);
}

static enum xm_status
count(const struct xm_list_wish *wish, const struct xm_graph *g, uint64_t trained,
      struct xm_list_row *row, struct xm_error *err)
{
    struct xm_plan *p = xm_calloc(1, sizeof(*p));
    if (!p)
        return xm_no_memory(err, "a plan");
    p->info = wish->device;
    p->wish = (struct xm_plan_wish){xm_cli_context(wish->context, trained), 1};
    if (p->wish.context == 0)
        p->wish.context = xm_planner_usual_context(trained);
    xm_config_init(&p->config);
    xm_planner_room(&p->info, NULL, &p->room);
    p->room.is_for_mapped = true;
    if (wish->memory) {
        p->room.known = true;
        p->room.device = wish->memory;
        if (p->room.host_is_device)
            p->room.host = p->room.device;
    }
    enum xm_status s = xm_planner_plan(p, g, err);
    if (s == XM_OK) {
        row->is_counted = true;
        row->context = p->wish.context;
        row->need = xm_planner_of_device(&p->need, &p->room) +
                    xm_planner_of_host(&p->need, &p->room);
        row->is_room_known = p->room.known;
        row->excess = p->excess;
    }
    xm_planner_free_plan(p);
    xm_free(p);
    return s;
}

/* Returns a sentence without the path at its beginning, in quotes or not, because the row has the
 * path. */
static const char *
behind_path(const char *sentence, const char *path)
{
    const bool is_quoted = *sentence == '\'';
    const char *behind = is_quoted ? "': " : ": ", *at = sentence + is_quoted;
    const size_t n = strlen(path);
    return strncmp(at, path, n) == 0 && strncmp(at + n, behind, strlen(behind)) == 0
               ? at + n + strlen(behind)
               : sentence;
}

/* Fails if text generation cannot feed the graph. */
static enum xm_status
check_feeds(struct xm_graph *g, struct xm_error *err)
{
    struct xm_ports ports;
    uint32_t port[XM_N_FEEDS];
    XM_TRY(xm_ports_from_graph(g, &g->arena, &g->dims, &ports, err));
    return xm_feeds_find(ports.inputs, ports.n_inputs, port, err);
}

/* Checks the tokenizer like `generate`, which refuses a damaged one; without a tokenizer it accepts
 * token ids. */
static enum xm_status
look_at_text(struct xm_package *p, struct xm_graph *g, struct xm_list_row *row,
             struct xm_error *err)
{
    struct xm_error why = {0};
    if (check_feeds(g, &row->no_text) != XM_OK)
        return XM_OK; /* a model of another kind */
    const enum xm_status s = xm_package_read(p, XM_PACKAGE_TOKENIZER, &why);
    if (s == XM_NOT_FOUND)
        xm_fail(&row->no_text, s, "there is no %s", p->reader->tokenizer);
    else if (s == XM_UNSUPPORTED)
        xm_fail(&row->no_text, s, "%s", behind_path(why.text, p->path));
    else if (s != XM_OK)
        return xm_fail(err, s, "%s", why.text);
    return xm_package_read(p, XM_PACKAGE_GENERATION, err);
}

static enum xm_status
look_at_graph(const struct xm_list_wish *wish, struct xm_package *p,
              struct xm_list_row *row, struct xm_error *err)
{
    struct xm_graph *g = NULL;
    struct xm_model_facts *f = xm_calloc(1, sizeof(*f));
    if (!f)
        return xm_no_memory(err, "the facts of a model");
    enum xm_status s = xm_package_read_graph(p, NULL, &g, err);
    if (s == XM_OK)
        s = xm_model_facts(g, f, err);
    if (s == XM_OK) {
        row->parameters = f->parameters;
        row->active_parameters = f->active_parameters;
        if (f->family && !row->family[0] && !row->architecture[0])
            snprintf(row->family, sizeof(row->family), "%s", f->family);
        find_weights(f, row);
    }
    if (s == XM_OK)
        s = look_at_text(p, g, row, err);
    if (s == XM_OK && wish->has_device)
        s = count(wish, g, p->facts.context, row, err);
    xm_graph_destroy(g);
    xm_free(f);
    return s;
}

static enum xm_status
look_at_package(const char *path, const struct xm_list_wish *wish,
                struct xm_list_row *row, struct xm_error *err)
{
    struct xm_package *p = NULL;
    XM_TRY(xm_package_open(path, &p, err));
    xm_package_read(p, XM_PACKAGE_FACTS, NULL);
    memcpy(row->family, p->facts.model_type, sizeof(row->family));
    memcpy(row->architecture, p->facts.architecture, sizeof(row->architecture));
    if (row->kind != XM_LIST_COMPILED)
        row->bytes = xm_package_file_bytes(p);
    enum xm_status s = look_at_graph(wish, p, row, err);
    xm_package_close(p);
    return s;
}

/* Takes the facts from the model that the file was compiled from, if that is unchanged. */
static enum xm_status
look_at_compiled(const char *path, const struct xm_list_wish *wish,
                 struct xm_list_row *row, struct xm_error *err)
{
    struct xm_import from;
    struct xm_strbuf model = {0};
    XM_TRY(xm_import_open(path, &from, err));
    row->bytes = from.n_bytes;
    enum xm_status s = xm_info_model_of(&from, &model, err);
    if (s == XM_OK)
        s = look_at_package(xm_strbuf_text(&model), wish, row, err);
    xm_strbuf_free(&model);
    xm_import_close(&from);
    return s;
}

void
xm_list_look(const char *folder, const struct xm_list_wish *wish, struct xm_list_row *row)
{
    struct xm_strbuf path = {0};
    struct xm_error why = {0};
    struct stat st;
    if (row->kind == XM_LIST_FOLDER)
        return; /* it already has a reason */
    const size_t n = strlen(folder);
    xm_strbuf_printf(&path, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/",
                     row->path);
    if (!xm_strbuf_ok(&path))
        xm_no_memory(&why, "a path");
    else if (row->kind == XM_LIST_COMPILED)
        look_at_compiled(xm_strbuf_text(&path), wish, row, &why);
    else
        look_at_package(xm_strbuf_text(&path), wish, row, &why);
    if (row->bytes == 0 && row->kind != XM_LIST_OPENVINO &&
        stat(xm_strbuf_text(&path), &st) == 0)
        row->bytes = (uint64_t)st.st_size;
    if (why.status != XM_OK)
        xm_fail(&row->why, why.status, "%s",
                behind_path(why.text, xm_strbuf_text(&path)));
    xm_strbuf_free(&path);
}
