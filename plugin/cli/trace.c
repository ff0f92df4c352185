/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes Chrome's trace format, for chrome://tracing and ui.perfetto.dev. Each event is one line,
 * so that a long trace is never completely in memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/profile_groups.h"
#include "plugin/program_util/lines.h"
#include "runtime/util/memory.h"
#include "runtime/util/new_file.h"

enum { PROCESS = 1, DEVICE_THREAD = 1, HOST_THREAD = 2 };

struct trace {
    FILE *file;
    uint64_t zero, n; /* start of the first launch in ns; number of events so far */
    bool failed;      /* out of memory */
};

/* Writes the event, the root of `j`, and frees `j`. */
static void
write_event(struct trace *t, struct xm_json_out *j)
{
    char *text = j->failed ? NULL : xm_json_value_text(j->root);
    t->failed |= !text;
    if (text)
        fprintf(t->file, "%s%s", t->n++ ? ",\n" : "", text);
    xm_free(text);
    xm_json_end(j);
}

static void
add_string(struct xm_json_out *j, yyjson_mut_val *o, const char *key, const char *text)
{
    xm_json_add_text(j, o, key, text, strlen(text));
}

/* Writes an event "process_name" or "thread_name". */
static void
write_name(struct trace *t, const char *what, int thread, const char *name)
{
    struct xm_json_out j;
    xm_json_begin(&j);
    add_string(&j, NULL, "name", what);
    add_string(&j, NULL, "ph", "M");
    xm_json_add_whole(&j, NULL, "pid", PROCESS);
    xm_json_add_whole(&j, NULL, "tid", (uint64_t)thread);
    add_string(&j, xm_json_add_object(&j, NULL, "args"), "name", name);
    write_event(t, &j);
}

/* Converts to microseconds; launches queued before the first one began have negative times. */
static double
us(const struct trace *t, uint64_t ns)
{
    return 1e-3 * (double)(int64_t)(ns - t->zero);
}

static void
write_launch(void *ctx, const struct xm_trace_row *row)
{
    struct trace *t = ctx;
    struct xm_json_out j;
    if (t->zero == 0)
        t->zero = row->start;
    xm_json_begin(&j);
    add_string(&j, NULL, "name", row->kernel);
    add_string(&j, NULL, "cat", row->op);
    add_string(&j, NULL, "ph", "X");
    xm_json_add_real(&j, NULL, "ts", us(t, row->start));
    xm_json_add_real(&j, NULL, "dur", 1e-3 * (double)(row->end - row->start));
    xm_json_add_whole(&j, NULL, "pid", PROCESS);
    xm_json_add_whole(&j, NULL, "tid", row->on_host ? HOST_THREAD : DEVICE_THREAD);
    yyjson_mut_val *args = xm_json_add_object(&j, NULL, "args");
    if (row->step != XM_PROFILE_NO_STEP)
        xm_json_add_whole(&j, args, "step", row->step);
    add_string(&j, args, "op", row->op);
    add_string(&j, args, "node", row->name);
    add_string(&j, args, "kernel", row->kernel);
    xm_json_add_real(&j, args, "queued", us(t, row->queued));
    write_event(t, &j);
}

static enum xm_status
write_all(const struct xm_profile *p, const char *device, FILE *file, uint64_t *dropped,
          struct xm_error *err)
{
    struct trace t = {.file = file};
    fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n", file);
    write_name(&t, "process_name", DEVICE_THREAD, "xemoe generate");
    write_name(&t, "thread_name", DEVICE_THREAD, device);
    write_name(&t, "thread_name", HOST_THREAD, "host steps");
    XM_TRY(p->request->ops->profile->trace(p->request, write_launch, &t, dropped, err));
    fprintf(file, "\n], \"otherData\": {\"dropped\": %" PRIu64 "}}\n", *dropped);
    return t.failed ? xm_no_memory(err, "a trace") : XM_OK;
}

enum xm_status
xm_trace_check(const char *path, struct xm_error *err)
{
    struct xm_new_file at;
    XM_TRY(xm_new_file_begin(&at, path, err));
    xm_new_file_end(&at, XM_CANCELLED, NULL); /* removes the temporary file */
    return XM_OK;
}

enum xm_status
xm_trace_write(const struct xm_profile *p, const char *device, const char *path,
               struct xm_error *err)
{
    uint64_t dropped = 0;
    struct xm_new_file at;
    XM_TRY(xm_new_file_begin(&at, path, err));
    FILE *file = fopen(xm_new_file_name(&at), "wbe");
    enum xm_status s =
        file ? write_all(p, device, file, &dropped, err) : xm_new_file_fail(&at, err);
    if (file && (fflush(file) != 0 || ferror(file)) && s == XM_OK)
        s = xm_new_file_fail(&at, err);
    if (file && fclose(file) != 0 && s == XM_OK)
        s = xm_new_file_fail(&at, err);
    s = xm_new_file_end(&at, s, err);
    if (s == XM_OK && dropped)
        xm_say("%s has only the last launches: %" PRIu64 " earlier launches were dropped",
               path, dropped);
    return s;
}
