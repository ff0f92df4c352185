/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe selftest: checks what a device computes and how fast, in one report that can be sent to
 * others.
 *
 * Models are made in a temporary folder, in which the processes work, so that results contain no
 * path of the user. Compiled kernels and kernel choices are stored there too: the report does not
 * depend on earlier runs, and nothing is left behind.
 */
#define _XOPEN_SOURCE 700 /* nftw */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/cli/chip.h"
#include "plugin/cli/cli.h"
#include "plugin/cli/selftest.h"
#include "plugin/program_util/progress.h"
#include "plugin/program_util/terminal.h"
#include "runtime/dry_run.h"
#include "runtime/util/json.h"
#include "runtime/util/log.h"
#include "runtime/util/new_file.h"
#include "runtime/util/number.h"

extern char **environ;

struct args {
    const char *device, *output, *only;
    uint64_t limit; /* seconds for a part */
    bool quick, force;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("What is tested", "xemoe selftest -d GPU.1 --quick"),
    { 'd', "device", XM_CLI_WORD,  AT(device), "NAME", "GPU (default), GPU.1, CPU; 'xemoe devices' lists them", "-dev", "GPU CPU" },
    { 0,   "quick",  XM_CLI_FLAG,  AT(quick),  NULL,   "check the results of only two weight formats, and measure no speed (takes two minutes)" },
    { 0,   "only",   XM_CLI_WORD,  AT(only),   "TEXT", "run only parts whose name contains this text, such as 'steps', 'q4_k' or 'speed'", NULL, NULL, xm_selftest_add_words },
    { 0,   "limit",  XM_CLI_COUNT, AT(limit),  "S",    "seconds after which a part is stopped (600)" },
    XM_CLI_GROUP("The report", "xemoe selftest -o report.json --force"),
    { 'o', "output", XM_CLI_WORD,  AT(output), "FILE", "file to which the report is written (xemoe-selftest.json)", "out" },
    { 0,   "force",  XM_CLI_FLAG,  AT(force),  NULL,   "replace an existing file" },
};
#undef AT
/* clang-format on */

struct selftest {
    struct args args;
    char folder[64];
    struct xm_json_out report;
    yyjson_mut_val *parts;
    bool is_stopped;              /* before all parts have run */
    size_t n_wanted;              /* number of parts that --quick and --only select */
    size_t at;                    /* number of the current one, from 1 */
    size_t n_good, n_bad, n_left; /* number of parts by outcome; n_left: not run */
    yyjson_doc *text; /* result of the last part that generated a text; NULL: none */
};

/* ---- a part ---------------------------------------------------------------------------- */

/* The words of a command, for xm_selftest_run; they point into `bytes`. */
struct command {
    char bytes[1024];
    const char *words[XM_SELFTEST_WORDS];
};

static void
make_command(const struct xm_selftest_part *p, const char *device, struct command *c)
{
    size_t n = 0;
    snprintf(c->bytes, sizeof(c->bytes), "%s", p->words);
    for (char *at = c->bytes; *at && n < XM_SELFTEST_WORDS - 3;) {
        at += strspn(at, " ");
        c->words[n++] = at;
        at += strcspn(at, " ");
        if (*at)
            *at++ = '\0';
    }
    while (n > 0 && !c->words[n - 1][0])
        n--; /* drops a space at the end */
    if (xm_selftest_computes(p)) {
        c->words[n++] = "--device";
        c->words[n++] = device;
    }
    c->words[n] = NULL;
}

/* Describes the outcome of a part. Returns false: the part failed. */
static bool
judge(const struct xm_selftest_part *p, const struct selftest *t,
      const struct xm_selftest_child *c, yyjson_val *result, struct xm_strbuf *out)
{
    bool good = c->code == XM_EXIT_OK && !c->is_late;
    if (c->is_late)
        xm_strbuf_printf(out, "did not end within %" PRIu64 " s", t->args.limit);
    else if (c->code > 128)
        xm_strbuf_printf(out, "the process ended by signal %d", c->code - 128);
    else if (p->read && result)
        good = p->read(result, out) && good;
    else if (p->read || !good)
        good = false;
    if (good && p->is_same_text)
        good = xm_selftest_is_same_text(
            result, t->text ? yyjson_doc_get_root(t->text) : NULL, out);
    if (!good && c->said.n)
        xm_strbuf_printf(out, "%s%s", out->n ? ": " : "", xm_strbuf_text(&c->said));
    return good;
}

static void
add_part(struct selftest *t, const struct xm_selftest_part *p,
         const struct xm_selftest_child *c, yyjson_val *result, bool good,
         const struct xm_strbuf *said)
{
    struct xm_json_out *j = &t->report;
    yyjson_mut_val *o = xm_json_add_object(j, t->parts, NULL);
    xm_json_add_text(j, o, "part", p->name, strlen(p->name));
    xm_json_add_text(j, o, "command", p->words, strlen(p->words));
    if (p->setting)
        xm_json_add_text(j, o, "setting", p->setting, strlen(p->setting));
    xm_json_add_bool(j, o, "good", good);
    xm_json_add_text(j, o, "said", xm_strbuf_text(said), said->n);
    xm_json_add_whole(j, o, "exit_code", (uint64_t)c->code);
    xm_json_add_real(j, o, "seconds", c->seconds);
    if (result && t->report.doc)
        t->report.failed |= !yyjson_mut_obj_add(o, yyjson_mut_str(j->doc, "result"),
                                                yyjson_val_mut_copy(j->doc, result));
}

static void
print_part(const struct selftest *t, const struct xm_selftest_part *p, const char *word,
           const char *said)
{
    enum { NAME = 24 };
    xm_progress_clear();
    const int n = printf("%*zu of %zu  %-7s %s", t->n_wanted < 10 ? 1 : 2, t->at,
                         t->n_wanted, word, p->name);
    const size_t used = n > 0 ? (size_t)n : 0, name = strlen(p->name);
    if (*said)
        xm_terminal_print_beside(stdout, said, used,
                                 used - name + (name > NAME ? name : NAME) + 1,
                                 xm_terminal_line(STDOUT_FILENO));
    printf("\n");
    fflush(stdout);
}

static enum xm_status
run_part(struct selftest *t, const struct xm_selftest_part *p, struct xm_error *err)
{
    struct command command;
    struct xm_selftest_child c;
    struct xm_strbuf said = {0};
    struct xm_error no_json = {0};
    yyjson_doc *doc = NULL;
    if (xm_dry_run() && (xm_selftest_computes(p) || xm_selftest_writes(p))) {
        t->n_left++;
        return XM_OK;
    }
    make_command(p, t->args.device, &command);
    xm_progress_show("part %zu of %zu: %s", t->at, t->n_wanted, p->name);
    enum xm_status s = xm_selftest_run(t->folder, command.words, p->setting,
                                       (double)t->args.limit, &c, err);
    if (s == XM_OK && xm_selftest_is_over())
        s = xm_fail(err, XM_CANCELLED, "stopped in the part '%s'", p->name);
    if (s == XM_OK) {
        if (p->read && c.out.n)
            (void)xm_json_parse(xm_strbuf_text(&c.out), c.out.n, &doc, &no_json);
        yyjson_val *result = doc ? yyjson_doc_get_root(doc) : NULL;
        const bool good = judge(p, t, &c, result, &said);
        print_part(t, p, good ? "ok" : "FAILED", xm_strbuf_text(&said));
        add_part(t, p, &c, result, good, &said);
        t->n_good += good;
        t->n_bad += !good;
    }
    if (doc && yyjson_obj_get(yyjson_doc_get_root(doc), "ids")) {
        yyjson_doc *last = t->text;
        t->text = doc;
        doc = last;
    }
    yyjson_doc_free(doc);
    xm_strbuf_free(&said);
    xm_selftest_child_free(&c);
    return s;
}

/* ---- all of them ----------------------------------------------------------------------- */

/* Sets a member of the report, which may have an earlier value. */
static void
put(struct xm_json_out *j, const char *key, yyjson_mut_val *value)
{
    j->failed |=
        !j->doc || !yyjson_mut_obj_put(j->root, yyjson_mut_str(j->doc, key), value);
}

/* Writes the report of the parts that have run, in place of an earlier one. */
static enum xm_status
write_report(struct selftest *t, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    struct xm_json_out *j = &t->report;
    char *json = NULL;
    put(j, "good", yyjson_mut_uint(j->doc, t->n_good));
    put(j, "failed", yyjson_mut_uint(j->doc, t->n_bad));
    put(j, "left_out", yyjson_mut_uint(j->doc, t->n_wanted - t->n_good - t->n_bad));
    put(j, "stopped", yyjson_mut_bool(j->doc, t->is_stopped));
    if (!j->failed)
        json = xm_json_value_text(j->root);
    if (!json)
        return xm_no_memory(err, "the report");
    xm_strbuf_printf(&text, "%s\n", json);
    xm_free(json);
    const enum xm_status s = xm_write_text_file(t->args.output, &text, err);
    xm_strbuf_free(&text);
    return s;
}

/* Writes the report while parts are left, so that it is there if a driver freezes the computer. A
 * pipe or device gets only the last report. */
static enum xm_status
write_early(struct selftest *t, struct xm_error *err)
{
    struct stat st;
    const bool is_file = stat(t->args.output, &st) != 0 || S_ISREG(st.st_mode);
    t->is_stopped = true;
    return is_file ? write_report(t, err) : XM_OK;
}

static void
print_end(const struct selftest *t)
{
    const size_t n = t->n_good + t->n_bad;
    struct xm_strbuf text = {0};
    if (t->is_stopped)
        xm_strbuf_printf(&text, "Stopped after %zu of %zu parts. ", n, n + t->n_left);
    else if (t->n_left)
        xm_strbuf_printf(
            &text,
            "This is a dry run: nothing was executed, and %zu parts were skipped. ",
            t->n_left);
    xm_strbuf_printf(&text,
                     "%zu of %zu part%s passed. The report '%s' has all figures, but no "
                     "paths or names of your system.",
                     t->n_good, n, xm_plural(n), t->args.output);
    xm_terminal_print_beside(stdout, xm_strbuf_text(&text), 0, 0,
                             xm_terminal_line(STDOUT_FILENO));
    printf("\n");
    xm_strbuf_free(&text);
}

/* Adds the settings from the environment: those of xemoe, without values that may be paths. */
static void
add_settings(struct xm_json_out *j)
{
    yyjson_mut_val *settings = xm_json_add_array(j, NULL, "settings");
    for (size_t i = 0; environ[i]; i++) {
        const char *text = environ[i];
        if (strncmp(text, "XM_", 3) == 0)
            xm_json_add_text(j, settings, NULL, text,
                             strchr(text, '/') ? strcspn(text, "=") : strlen(text));
    }
}

/* Begins the report and writes it, which fails if the file cannot be written. */
static enum xm_status
begin_report(struct selftest *t, struct xm_error *err)
{
    xm_json_begin(&t->report);
    xm_json_add_text(&t->report, NULL, "program", "xemoe " XM_VERSION,
                     strlen("xemoe " XM_VERSION));
    xm_json_add_bool(&t->report, NULL, "dry_run", xm_dry_run());
    xm_json_add_text(&t->report, NULL, "device", t->args.device, strlen(t->args.device));
    add_settings(&t->report);
    t->parts = xm_json_add_array(&t->report, NULL, "parts");
    return write_early(t, err);
}

static enum xm_status
run_all(struct selftest *t, struct xm_error *err)
{
    enum xm_status s = XM_OK;
    for (size_t i = 0; i < xm_selftest_n_parts; i++) {
        if (!xm_selftest_is_wanted(&xm_selftest_parts[i], t->args.quick, t->args.only))
            continue;
        t->at++;
        if (s == XM_OK)
            s = run_part(t, &xm_selftest_parts[i], err);
        t->n_left += s != XM_OK;
        if (s == XM_OK && t->at < t->n_wanted)
            s = write_early(t, err);
    }
    xm_progress_clear();
    if (s != XM_OK && s != XM_CANCELLED)
        return s;
    struct xm_error why = {0};
    t->is_stopped = s == XM_CANCELLED;
    const enum xm_status written = write_report(t, &why);
    if (written != XM_OK)
        *err = why;
    else
        print_end(t);
    return written != XM_OK ? written : s;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    (void)remove(path);
    return 0;
}

static enum xm_status
make_folder(struct selftest *t, struct xm_error *err)
{
    const char *dir = xm_env("TMPDIR");
    const int n = snprintf(t->folder, sizeof(t->folder), "%s/xemoe-selftest-XXXXXX",
                           dir ? dir : "/tmp");
    if (n < 0 || (size_t)n >= sizeof(t->folder) || !mkdtemp(t->folder)) {
        t->folder[0] = '\0';
        return xm_fail(err, XM_IO, "no folder can be created in '%.150s': %s",
                       dir ? dir : "/tmp", strerror(errno));
    }
    return XM_OK;
}

/* Signals that end the process; the folder is removed first. */
static const int last_signals[] = {SIGTERM, SIGHUP};
static bool came[XM_ARRAY_LEN(last_signals)];

bool
xm_selftest_is_over(void)
{
    bool any = xm_cli_interrupted();
    for (size_t i = 0; i < XM_ARRAY_LEN(last_signals); i++)
        any |= xm_flag_get(&came[i]);
    return any;
}

static size_t
count_wanted(const struct args *a)
{
    size_t n = 0;
    for (size_t i = 0; i < xm_selftest_n_parts; i++)
        n += xm_selftest_is_wanted(&xm_selftest_parts[i], a->quick, a->only);
    return n;
}

static void
print_beginning(const struct selftest *t, const struct xm_device_info *info)
{
    struct xm_strbuf text = {0};
    xm_strbuf_printf(&text, "xemoe " XM_VERSION " on %s: %s, driver %s; %zu part%s",
                     t->args.device, info->name, info->driver, t->n_wanted,
                     xm_plural(t->n_wanted));
    xm_terminal_print_beside(stdout, xm_strbuf_text(&text), 0, 0,
                             xm_terminal_line(STDOUT_FILENO));
    printf("\n");
    xm_strbuf_free(&text);
}

static int
run(struct selftest *t, const struct xm_device_info *info)
{
    enum { OPEN = 16 };
    struct xm_error err = {0};
    xm_cli_note_interrupt();
    for (size_t i = 0; i < XM_ARRAY_LEN(last_signals); i++)
        xm_cli_wake_on(last_signals[i], &came[i]);
    enum xm_status s = begin_report(t, &err);
    if (s == XM_OK)
        s = make_folder(t, &err);
    if (s == XM_OK) {
        print_beginning(t, info);
        s = run_all(t, &err);
    }
    xm_json_end(&t->report);
    yyjson_doc_free(t->text);
    if (t->folder[0])
        nftw(t->folder, remove_one, OPEN, FTW_DEPTH | FTW_PHYS);
    for (size_t i = 0; i < XM_ARRAY_LEN(last_signals); i++) {
        xm_cli_wake_off(last_signals[i]);
        if (xm_flag_get(&came[i]))
            raise(last_signals[i]);
    }
    if (s != XM_OK)
        return xm_cli_failed(&err);
    const int code = xm_cli_flush();
    return code == XM_EXIT_OK && t->n_bad ? XM_EXIT_TOLERANCE : code;
}

int
xm_cli_selftest(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe selftest [options]",
        .about =
            "Tests a device with models that it creates: every step of a model in each "
            "weight\nformat against the host reference, then the rates of the device and "
            "of each\nkernel, the fastest kernels for a model of 30B, and tokens per "
            "second. Each part\nruns in its own process for at most --limit seconds. All "
            "figures go to a report;\nplease attach it to a message about this device. "
            "Takes about ten minutes and\n1 GiB in $TMPDIR (/tmp).\n",
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
    };
    struct selftest t = {.args = {.output = "xemoe-selftest.json", .limit = 600}};
    struct xm_error err = {0};
    struct xm_device_info info;
    bool done;
    const int code = xm_cli_begin(&spec, argc, argv, &t.args, &done);
    if (done || code != XM_EXIT_OK)
        return code;
    t.n_wanted = count_wanted(&t.args);
    if (t.n_wanted == 0)
        return xm_cli_usage("no part of the test has '%.150s' in its name", t.args.only);
    if (!t.args.force && access(t.args.output, F_OK) == 0)
        return xm_cli_usage("'%.150s' exists already: give another -o, or --force",
                            t.args.output);
    if (t.args.device && strchr(t.args.device, ','))
        return xm_cli_usage("option -d: selftest tests one device, found '%.150s'",
                            t.args.device);
    if (xm_cli_find_chip(t.args.device, NULL, &info, &err) != XM_OK)
        return xm_cli_no_device("-d", t.args.device, &err);
    if (!t.args.device)
        t.args.device = "GPU";
    return run(&t, &info);
}
