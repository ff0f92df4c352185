/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the messages of failures, and advice for some of them.
 */
#include "plugin/cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "plugin/cli/commands.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/terminal.h"
#include "runtime/collective_mpi.h"
#include "runtime/util/slice.h"
#include "runtime/util/utf8.h"

/* Advice for statuses whose sentences do not say enough. */
/* clang-format off */
static const struct {
    enum xm_status status;
    const char *next;
} advice[] = {
    { XM_NO_MEMORY,  "'xemoe plan' says what fits, and docs/memory.md what to change" },
    { XM_DEVICE,     "'xemoe devices' shows the devices; XM_DEBUG=sync names the step that fails" },
    { XM_NOT_BUILT,  "XM_DEBUG=build shows the compiler's whole log" },
    { XM_NOT_FINITE, "if activations are f16, try --precision f32; 'xemoe verify' compares every step with the host reference" },
    { XM_LOST,       "start the program again; the system log (dmesg) may say why" },
};
/* clang-format on */

bool
xm_cli_is_advice(const char *line, size_t n)
{
    bool is = false;
    for (size_t i = 0; i < XM_ARRAY_LEN(advice); i++)
        is |= strlen(advice[i].next) == n && memcmp(advice[i].next, line, n) == 0;
    return is;
}

/* clang-format off */
static struct {
    const char *key, *option;
    bool is_there; /* the command has the option */
} settings[] = {
    { "XM_KV_MEMORY",             "kv-memory",    false },
    { "OFFLOAD_RATIO",            "offload",      false },
    { "INFERENCE_PRECISION_HINT", "precision",    false },
    { "DYNAMIC_QUANTIZATION_GROUP_SIZE", "dynamic-quantization", false },
    { "KV_CACHE_PRECISION",       "kv",           false },
    { "KEY_CACHE_PRECISION",      "cache-type-k", false },
    { "VALUE_CACHE_PRECISION",    "cache-type-v", false },
    { "XM_EXPERT_CACHE",          "expert-cache", false },
    { "XM_COPY_WEIGHTS",          "weights",      false },
    { "XM_UBATCH",                "ubatch",       false },
};
/* clang-format on */

static bool
has_option(const struct xm_cli_spec *spec, const char *name)
{
    bool has = false;
    for (size_t i = 0; i < spec->n_common + spec->n_own; i++) {
        const struct xm_cli_option *o =
            i < spec->n_common ? &spec->common[i] : &spec->own[i - spec->n_common];
        has |= o->name && strcmp(o->name, name) == 0;
    }
    return has;
}

/* Returns the command's option that sets the property with this name of n characters; NULL: none
 * does. */
static const char *
option_of(const char *word, size_t n)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(settings); i++) {
        if (strlen(settings[i].key) == n && memcmp(settings[i].key, word, n) == 0)
            return settings[i].is_there ? settings[i].option : NULL;
    }
    return NULL;
}

/* Appends a sentence. The library's sentences name properties, which are replaced by the options
 * that the user gave. Names in quotes are not replaced. */
static void
add_sentence(const char *text, struct xm_strbuf *to)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    for (char before = ' '; *text; before = text[-1]) {
        const size_t n = strspn(text, letters), gap = strcspn(text, letters);
        const char *option = n && before != '\'' ? option_of(text, n) : NULL;
        if (option)
            xm_strbuf_printf(to, "--%s%s", option, text[n] == '=' ? " " : "");
        else
            xm_strbuf_add_n(to, text, n ? n : gap);
        text += n ? n : gap;
        text += option && *text == '=';
    }
}

void
xm_cli_print_failure(const struct xm_error *err, const char *more)
{
    const char *said = err->text[0] ? err->text : xm_status_text(err->status);
    char text[XM_ERROR_TEXT];
    /* file names may have control characters */
    xm_utf8_show(xm_slice_of(said, strlen(said)), text, sizeof(text));
    struct xm_strbuf sentence = {0};
    uint32_t rank;
    /* unless the text names a rank already, which may be another one */
    if (xm_mpi_ranks(&rank) > 1 && strncmp(text, "rank ", strlen("rank ")) != 0)
        xm_strbuf_printf(&sentence, "rank %u: ", rank);
    add_sentence(text, &sentence);
    xm_say("%s%s", xm_strbuf_ok(&sentence) ? xm_strbuf_text(&sentence) : text, more);
    xm_strbuf_free(&sentence);
}

int
xm_cli_failed(const struct xm_error *err)
{
    if (err->status == XM_CANCELLED && xm_cli_interrupted())
        xm_cli_say_interrupted();
    else
        xm_cli_print_failure(err, "");
    for (size_t i = 0; i < XM_ARRAY_LEN(advice); i++) {
        if (advice[i].status == err->status)
            xm_say("%s", advice[i].next);
    }
    return xm_cli_exit_code(err->status);
}

/* Returns the name in "CPU, GPU.0; …" that differs from `name` only in letter case; empty: there is
 * none. */
static struct xm_slice
find_same_but_case(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (size_t length; *list && *list != ';';
         list += length + strspn(list + length, ", ")) {
        length = strcspn(list, ", ;");
        if (length == n && strncasecmp(list, name, n) == 0)
            return xm_slice_of(list, n);
    }
    return xm_slice_of("", 0);
}

/* Rewrites the library's sentence, which is OpenVINO's "Device with … name is not registered …;
 * available: GPU, REFERENCE"; after another semicolon follows what is missing on this computer. */
int
xm_cli_no_device(const char *option, const char *name, const struct xm_error *err)
{
    static const char available[] = "available: ";
    const char *list = strstr(err->text, available);
    if (err->status != XM_NOT_FOUND || !list) {
        xm_cli_failed(err);
        return XM_EXIT_DEVICE;
    }
    const struct xm_slice near =
        find_same_but_case(list + sizeof(available) - 1, name ? name : "");
    if (!name)
        xm_say("there is no device GPU; %s", list);
    else if (near.n)
        xm_say("option %s is '%s', which is not a device of this computer: did you mean "
               "%.*s?",
               option, name, (int)near.n, near.text);
    else
        xm_say("option %s is '%s', which is not a device of this computer; %s", option,
               name, list);
    return XM_EXIT_DEVICE;
}

static xm_cli_collect_fn collect;
static void *collect_ctx;

void
xm_cli_collect(xm_cli_collect_fn fn, void *ctx)
{
    collect = fn;
    collect_ctx = ctx;
}

static int
fail_parse(const struct xm_error *err, const char *command)
{
    char help[64];
    snprintf(help, sizeof(help), "xemoe %s --help", command);
    return xm_cli_usage_of(err, help);
}

int
xm_cli_begin(const struct xm_cli_spec *spec, int argc, char **argv, void *out, bool *done)
{
    struct xm_error err = {0};
    bool help = false;
    *done = true;
    if (collect) {
        collect(spec, collect_ctx);
        return XM_EXIT_OK;
    }
    if (xm_cli_parse(spec, argc, argv, out, &help, &err) != XM_OK)
        return fail_parse(&err, spec->name ? spec->name : argv[0]);
    if (help) {
        struct xm_strbuf text = {0};
        const struct xm_cli_command *command = xm_cli_command_find(argv[0]);
        const char *example = spec->example ? spec->example
                              : command     ? command->example
                                            : NULL;
        xm_cli_help(spec, example, &text);
        if (example)
            xm_strbuf_printf(&text, "\nexample: %s\n", example);
        xm_strbuf_add(&text, "\n'xemoe --help' lists the exit codes.\n");
        xm_terminal_print(stdout, xm_strbuf_text(&text));
        xm_strbuf_free(&text);
        return xm_cli_flush();
    }
    xm_cli_watch_interrupt();
    for (size_t i = 0; i < XM_ARRAY_LEN(settings); i++)
        settings[i].is_there = has_option(spec, settings[i].option);
    *done = false;
    return XM_EXIT_OK;
}

int
xm_cli_check_npy(const char *out)
{
    return out && strcmp(out, "-") == 0 && xm_terminal_is(STDOUT_FILENO)
               ? xm_cli_usage("-o - writes bytes, and standard output is a terminal: "
                              "give a file, or send it through a pipe")
               : XM_EXIT_OK;
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
