/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/kernels.h"

#include <inttypes.h>
#include <string.h>

#include "plugin/cli/text_out.h"
#include "plugin/plugin.h"
#include "plugin/program_util/home.h"
#include "plugin/program_util/progress.h"
#include "runtime/driver_files.h"
#include "runtime/engine.h"
#include "runtime/util/log.h"
#include "runtime/util/number.h"

static void
find_folder(const char *option, struct xm_strbuf *out)
{
    const char *xdg = xm_env("XDG_CACHE_HOME"), *home = xm_home_folder();
    if (option)
        xm_strbuf_add(out, option);
    else if (xdg && xdg[0] == '/') /* the standard says to ignore relative paths */
        xm_strbuf_printf(out, "%s/xemoe", xdg);
    else if (home)
        xm_strbuf_printf(out, "%s/.cache/xemoe", home);
}

static bool
is_off(const char *option)
{
    return option && (option[0] == '\0' || strcmp(option, "none") == 0);
}

void
xm_cli_cache_use(const char *option)
{
    struct xm_strbuf folder = {0};
    if (!is_off(option))
        find_folder(option, &folder);
    if (folder.n && xm_strbuf_ok(&folder))
        (void)xm_driver_files_use(xm_strbuf_text(&folder));
    xm_strbuf_free(&folder);
}

enum xm_status
xm_cli_cache_open(const char *option, struct xm_strbuf *out, struct xm_error *err)
{
    if (is_off(option))
        return XM_OK;
    find_folder(option, out);
    if (!xm_strbuf_ok(out))
        return xm_no_memory(err, "a path");
    const enum xm_kept_kernels may =
        out->n ? xm_driver_files_use(xm_strbuf_text(out)) : XM_KEPT_KERNELS_WRITE;
    if (may == XM_KEPT_KERNELS_READ)
        xm_log(XM_LOG_WARNING,
               "the folder '%s' cannot be written: its compiled kernels are used, but "
               "new ones are not kept",
               xm_strbuf_text(out));
    if (may != XM_KEPT_KERNELS_NONE)
        return XM_OK;
    if (option)
        return xm_fail(err, XM_IO,
                       "option --cache-dir: the folder '%s' cannot be created or read",
                       option);
    xm_log(XM_LOG_WARNING,
           "the folder '%s' cannot be created or read: compiled kernels are not kept, "
           "and each start compiles them again; give another folder with --cache-dir",
           xm_strbuf_text(out));
    xm_strbuf_clear(out);
    return XM_OK;
}

/* The prompt whose progress is shown. */
static struct {
    struct xm_infer *request; /* NULL: none */
    const char *what;
} reading;

static void
show_percent(void *ctx, uint64_t done, uint64_t all)
{
    (void)ctx;
    xm_progress_show("%s %" PRIu64 " token%s: %" PRIu64 " %%", reading.what, all,
                     xm_plural(all), 100 * done / all);
}

void
xm_cli_show_reading(struct xm_infer *r, const char *what, uint64_t n)
{
    xm_progress_show("%s %" PRIu64 " token%s", what, n, xm_plural(n));
    if (!xm_progress_is_shown() || !r->ops->watch)
        return;
    reading.request = r;
    reading.what = what;
    r->ops->watch(r, show_percent, NULL);
}

void
xm_cli_show_builds(void)
{
    if (xm_progress_is_shown())
        xm_build_watch(xm_progress_build, NULL);
}

void
xm_cli_hide_builds(void)
{
    xm_build_watch(NULL, NULL);
    if (reading.request)
        reading.request->ops->watch(reading.request, NULL, NULL);
    reading.request = NULL;
}

bool
xm_cli_piece_out(const struct xm_piece *piece, void *ctx)
{
    xm_cli_hide_builds();
    return xm_text_out_piece(piece, ctx);
}
