/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of passes, and the function that runs them in its order. */
#include "transformations/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/util/log.h"
#include "runtime/util/strbuf.h"
#include "transformations/graph/text.h"
#include "transformations/graph/validate.h"
#include "transformations/passes/moe_block.h"

#define PASS(name, public_name, ensures, why_here)
#define RULES(name, public_name, why_here)                                               \
    bool xm_pass_##name(struct xm_graph *g, const struct xm_caps *caps)                  \
    {                                                                                    \
        return xm_rewrite(g, caps, xm_rules_##name);                                     \
    }
#include "transformations/passes.def"

static const struct xm_pass passes[] = {
#define PASS(name, public_name, ensures, why_here)                                       \
    {#name, public_name, xm_pass_##name, ensures, why_here},
#define RULES(name, public_name, why_here) PASS(name, public_name, NULL, why_here)
#include "transformations/passes.def"
};

const struct xm_pass *
xm_passes(size_t *n)
{
    *n = XM_ARRAY_LEN(passes);
    return passes;
}

/* OpenVINO's names of passes that have another name, or are one pass, here. */
static const struct {
    const char *name, *pass;
} aliases[] = {
    {"ConvertTiledMoeBlockToGatherMatmuls", "lower_unfused_moe"},
    {"ConvertTiledMoeBlockTo2GatherMatmuls", "lower_unfused_moe"},
    {"ConvertTiledMoeBlockTo3GatherMatmuls", "lower_unfused_moe"},
    {"ConvertGatherMatmulToGatherMatmulCompressed", "lower_unfused_moe"},
};

static bool
is_name(const char *a, const char *name, size_t n)
{
    return strlen(a) == n && strncmp(a, name, n) == 0;
}

static bool
is_called(const struct xm_pass *p, const char *name, size_t n)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(aliases); i++) {
        if (is_name(aliases[i].name, name, n) && strcmp(aliases[i].pass, p->name) == 0)
            return true;
    }
    return is_name(p->name, name, n) || is_name(p->public_name, name, n);
}

static const struct xm_pass *
find_pass(const char *name, size_t n)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(passes); i++)
        if (is_called(&passes[i], name, n))
            return &passes[i];
    return NULL;
}

const struct xm_pass *
xm_pass_find(const char *name)
{
    return find_pass(name, strlen(name));
}

/* ---- names given by the user ------------------------------------------------------- */

static enum xm_status
fail_unknown(const char *what, const char *name, size_t n, struct xm_error *err)
{
    return xm_fail(
        err, XM_INVALID,
        "%s names '%.*s', which is not a pass; 'xemoe opt --list' lists the passes", what,
        n > 40 ? 40 : (int)n, name);
}

/* Sets skip[i] for each pass named in the comma-separated list. */
static enum xm_status
parse_skip(const char *list, bool skip[XM_ARRAY_LEN(passes)], struct xm_error *err)
{
    for (const char *name = list ? list : ""; *name;) {
        size_t n = strcspn(name, ",");
        const struct xm_pass *p = find_pass(name, n);
        if (!p)
            return fail_unknown("XM_SKIP", name, n, err);
        skip[p - passes] = true;
        name += n + (name[n] == ',');
    }
    return XM_OK;
}

static enum xm_status
parse_stop(const char *name, const struct xm_pass **stop, struct xm_error *err)
{
    *stop = name ? xm_pass_find(name) : NULL;
    if (name && !*stop)
        return fail_unknown("XM_STOP", name, strlen(name), err);
    return XM_OK;
}

/* ---- dumps ------------------------------------------------------------------------- */

static enum xm_status
write_file(const char *folder, size_t number, const char *name, const char *ending,
           const struct xm_strbuf *text, struct xm_error *err)
{
    struct xm_strbuf path = {0};
    xm_strbuf_printf(&path, "%s/%02zu_%s.%s", folder, number, name, ending);
    FILE *f = xm_strbuf_ok(&path) ? fopen(xm_strbuf_text(&path), "w") : NULL;
    bool ok = f && fwrite(xm_strbuf_text(text), 1, text->n, f) == text->n;
    if (f)
        ok = fclose(f) == 0 && ok;
    if (!ok || !xm_strbuf_ok(text))
        xm_fail(err, XM_IO, "cannot write the graph to '%.200s': %s",
                xm_strbuf_text(&path), strerror(errno));
    xm_strbuf_free(&path);
    return ok ? XM_OK : XM_IO;
}

static enum xm_status
dump(const struct xm_graph *g, const char *folder, size_t number, const char *name,
     struct xm_error *err)
{
    struct xm_strbuf text = {0}, dot = {0};
    if (!folder)
        return XM_OK;
    mkdir(folder, 0777); /* if it fails, writing the files reports it */
    xm_graph_print_dump(g, XM_TEXT_MOST_DATA, &text);
    xm_graph_print_dot(g, &dot);
    enum xm_status status = write_file(folder, number, name, "xmg", &text, err);
    if (status == XM_OK)
        status = write_file(folder, number, name, "dot", &dot, err);
    xm_strbuf_free(&text);
    xm_strbuf_free(&dot);
    return status;
}

/* ---- the runner -------------------------------------------------------------------- */

static enum xm_status
after_pass(struct xm_graph *g, const struct xm_pass *p, struct xm_error *err)
{
    enum xm_status status = xm_graph_validate(g, NULL, err);
    if (status != XM_OK)
        xm_error_prefix(err, "after %s", p->name);
    return status;
}

static enum xm_status
run_pass(struct xm_graph *g, const struct xm_caps *caps, const struct xm_pass *p,
         bool *progress, struct xm_error *err)
{
    *progress = p->run(g, caps);
    if (g->err.status != XM_OK) {
        xm_fail(err, g->err.status, "%s: %s", p->name, g->err.text);
        return g->err.status;
    }
    if (*progress)
        xm_graph_remove_dead(g);
    if (*progress || xm_debug_on(XM_DEBUG_VALIDATE))
        return after_pass(g, p, err);
    return XM_OK;
}

static enum xm_status
ensure(struct xm_graph *g, const struct xm_pass *p, struct xm_error *err)
{
    enum xm_status status = p->ensures ? p->ensures(g, err) : XM_OK;
    if (status != XM_OK)
        xm_error_prefix(err, "after %s", p->name);
    return status;
}

static const char *
setting(const struct xm_pipeline_options *o, const char *given, const char *variable)
{
    return given || o->is_aside ? given : xm_env(variable);
}

enum xm_status
xm_pipeline_check_environment(struct xm_error *err)
{
    bool skip[XM_ARRAY_LEN(passes)] = {false};
    const struct xm_pass *stop;
    XM_TRY(parse_skip(xm_env("XM_SKIP"), skip, err));
    return parse_stop(xm_env("XM_STOP"), &stop, err);
}

enum xm_status
xm_pipeline_run(struct xm_graph *g, const struct xm_caps *caps,
                const struct xm_pipeline_options *options, struct xm_pass_report *reports,
                size_t *n_reports, struct xm_error *err)
{
    struct xm_pipeline_options none = {0};
    const struct xm_pipeline_options *o = options ? options : &none;
    const char *folder = setting(o, o->dump, "XM_DUMP");
    const struct xm_pass *stop;
    bool skip[XM_ARRAY_LEN(passes)] = {false};
    size_t room = reports && n_reports ? *n_reports : 0;
    if (n_reports)
        *n_reports = 0;
    XM_TRY(parse_skip(setting(o, o->skip, "XM_SKIP"), skip, err));
    XM_TRY(parse_stop(setting(o, o->stop, "XM_STOP"), &stop, err));
    XM_TRY(dump(g, folder, 0, "read", err));
    for (size_t i = 0; i < XM_ARRAY_LEN(passes); i++) {
        const struct xm_pass *p = &passes[i];
        bool progress = false;
        if (!skip[i])
            XM_TRY(run_pass(g, caps, p, &progress, err));
        if (!skip[i] && !o->is_aside)
            xm_debug(XM_DEBUG_PASSES, "%-30s %s, %u nodes", p->name,
                     progress ? "changed the graph" : "no change", g->n_nodes);
        if (progress)
            XM_TRY(dump(g, folder, i + 1, p->name, err));
        XM_TRY(ensure(g, p, err));
        if (i < room) {
            reports[i] = (struct xm_pass_report){p, skip[i], progress, g->n_nodes};
            *n_reports = i + 1;
        }
        if (p == stop)
            break;
    }
    return XM_OK;
}
