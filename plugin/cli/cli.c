/* SPDX-License-Identifier: Apache-2.0
 *
 * Failures and exit codes.
 */
#include "plugin/cli/cli.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
    enum xm_status status;
    enum xm_exit code;
    const char *next; /* what to do about it; NULL: the sentence says enough */
} exits[] = {
    { XM_INVALID,     XM_EXIT_FILE,      NULL },
    { XM_UNSUPPORTED, XM_EXIT_FILE,      NULL },
    { XM_UNPLANNED,   XM_EXIT_FILE,      NULL },
    { XM_NO_MEMORY,   XM_EXIT_DEVICE,    "'xemoe plan' says what fits; docs/memory.md what to change" },
    { XM_DEVICE,      XM_EXIT_DEVICE,    "'xemoe devices' shows the devices; XM_DEBUG=sync finds the step" },
    { XM_IO,          XM_EXIT_FILE,      NULL },
    { XM_NOT_FOUND,   XM_EXIT_FILE,      NULL },
    { XM_CANCELLED,   XM_EXIT_CANCELLED, NULL },
    { XM_BUSY,        XM_EXIT_FAILED,    NULL },
    { XM_NOT_BUILT,   XM_EXIT_DEVICE,    "XM_DEBUG=build shows the compiler's whole log" },
    { XM_NOT_FINITE,  XM_EXIT_FAILED,    "where activations are f16, --precision f32 has room; 'xemoe verify' compares every step with the host reference" },
    { XM_LOST,        XM_EXIT_DEVICE,    "start again; the system's log (dmesg) may say why" },
};
/* clang-format on */

const char *
xm_cli_exit_help(void)
{
    return "exit codes: 0 ok; 1 failure while running, and logits that verify --against "
           "finds "
           "too\n"
           "far off; 2 command line; 3 model or file missing, wrong, unsupported or not "
           "to "
           "be\n"
           "written; 4 device or memory, and a plan that does not fit; 5 verify found a "
           "step\n"
           "over tolerance; 130 stopped by Ctrl-C\n";
}

int
xm_cli_failed(const struct xm_error *err)
{
    if (err->status == XM_CANCELLED && xm_cli_interrupted())
        xm_cli_say_interrupted();
    else
        fprintf(stderr, "xemoe: %s\n",
                err->text[0] ? err->text : xm_status_text(err->status));
    for (size_t i = 0; i < XM_ARRAY_LEN(exits); i++) {
        if (exits[i].status != err->status)
            continue;
        if (exits[i].next)
            fprintf(stderr, "xemoe: %s\n", exits[i].next);
        return (int)exits[i].code;
    }
    return XM_EXIT_FAILED;
}

int
xm_cli_begin(const struct xm_cli_spec *spec, int argc, char **argv, void *out, bool *done)
{
    struct xm_error err = {0};
    bool help = false;
    *done = true;
    if (xm_cli_parse(spec, argc, argv, out, &help, &err) != XM_OK)
        return xm_cli_usage("%s; see 'xemoe %s --help'", err.text, argv[0]);
    if (help) {
        struct xm_strbuf text = {0};
        xm_cli_help(spec, &text);
        printf("%s\n%s", xm_strbuf_text(&text), xm_cli_exit_help());
        xm_strbuf_free(&text);
        return xm_cli_flush();
    }
    xm_cli_watch_interrupt();
    *done = false;
    return XM_EXIT_OK;
}

/* ---- Ctrl-C cancels a request ------------------------------------------------------ */

static void
cancel_infer(void *run)
{
    struct xm_infer *r = run;
    r->ops->cancel(r);
}

static void
resume_infer(void *run)
{
    struct xm_infer *r = run;
    r->ops->resume(r);
}

void
xm_cli_catch_interrupt(struct xm_infer *r)
{
    static const struct xm_interruptible ops = {cancel_infer, resume_infer};
    xm_cli_catch_run(r, &ops);
}
