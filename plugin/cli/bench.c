/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe bench: measures tokens a second for all combinations of the given option values.
 */
#include "plugin/cli/bench_parts.h"

#include <limits.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugin/cli/bench_sampling.h"
#include "plugin/cli/kernels.h"
#include "plugin/program_util/lines.h"
#include "plugin/program_util/terminal.h"

/* ---- the devices ------------------------------------------------------------------- */

static int
find_device(const struct xm_core *core, const char *name, struct xm_bench_device *out)
{
    struct xm_plugin *plugin = NULL;
    struct xm_error err = {0};
    uint32_t index = 0;
    *out = (struct xm_bench_device){.name = name};
    if (xm_core_find(core, name, &plugin, &index, &err) != XM_OK)
        return xm_cli_no_device("--device", name, &err);
    out->is_reference = plugin->ops->info == NULL;
    if (out->is_reference) /* it runs plain code in one thread */
        out->info = (struct xm_device_info){.kind = XM_DEVICE_CPU, .compute_units = 1};
    else
        out->info = *plugin->ops->info(plugin, index);
    return XM_EXIT_OK;
}

static bool
is_processor(const struct xm_bench_device *d)
{
    return d->info.kind == XM_DEVICE_CPU;
}

/* Finds the devices and checks options about threads before anything runs, so that mistakes are
 * reported first. */
static int
find_devices(const struct xm_bench_args *a, struct xm_bench_device *out, size_t n)
{
    struct xm_core *core = NULL;
    struct xm_error err = {0};
    xm_cli_cache_use(a->target.cache_dir);
    if (xm_core_create(&core, &err) != XM_OK)
        return xm_cli_failed(&err);
    int code = XM_EXIT_OK;
    bool has_gpu = false;
    for (size_t i = 0; i < n && code == XM_EXIT_OK; i++) {
        code = find_device(core, a->devices.n ? a->devices.list[i] : NULL, &out[i]);
        if (code == XM_EXIT_OK)
            code = xm_bench_rules_check_threads(a, &out[i].info);
        has_gpu |= !is_processor(&out[i]);
    }
    if (has_gpu && code == XM_EXIT_OK)
        xm_bench_rules_say_ignored(a);
    xm_core_destroy(core);
    return code;
}

/* ---- all combinations -------------------------------------------------------------- */

struct bench {
    const struct xm_bench_args *args;
    struct xm_bench_device *devices; /* owned */
    size_t n_devices;
    struct xm_bench_bed bed;
    struct xm_bench_out out, err;
    uint64_t *samples_ns; /* owned */
};

/* Finds the lengths of test `i` of a model: first the prompt tests, then the generation tests, then
 * the pairs of both. Returns false: there are no more. */
static bool
find_lengths(const struct xm_bench_args *a, size_t i, struct xm_bench_test *t)
{
    t->n_prompt = t->n_gen = 0;
    t->n_parallel = 1;
    if (i < a->prompts.n) {
        t->n_prompt = a->prompts.list[i];
        return true;
    }
    i -= a->prompts.n;
    if (i < a->gens.n * a->parallels.n) {
        t->n_gen = a->gens.list[i / a->parallels.n];
        t->n_parallel = a->parallels.list[i % a->parallels.n];
        return true;
    }
    i -= a->gens.n * a->parallels.n;
    if (2 * i >= a->pairs.n)
        return false;
    t->n_prompt = a->pairs.list[2 * i];
    t->n_gen = a->pairs.list[2 * i + 1];
    return true;
}

/* Returns the last digit of `i` in this base, and removes it from `i`. */
static size_t
take_digit(size_t *i, size_t base)
{
    const size_t digit = *i % base;
    *i /= base;
    return digit;
}

static const char *
take_type(size_t *i, const struct xm_bench_texts *types)
{
    return types->n ? types->list[take_digit(i, types->n)] : NULL;
}

/* Finds combination `i` of the settings, in llama-bench's order. Returns false: there are no
 * more. */
static bool
find_setting(const struct bench *b, size_t i, struct xm_bench_test *t)
{
    const struct xm_bench_args *a = b->args;
    t->depth = a->depths.list[take_digit(&i, a->depths.n)];
    t->type_v = take_type(&i, &a->types_v);
    t->type_k = take_type(&i, &a->types_k);
    t->ubatch = a->ubatches.list[take_digit(&i, a->ubatches.n)];
    t->batch = a->batches.list[take_digit(&i, a->batches.n)];
    t->device = &b->devices[take_digit(&i, b->n_devices)];
    if (i >= a->models.n)
        return false;
    t->model = a->models.list[i];
    return true;
}

/* ---- a test ------------------------------------------------------------------------ */

/* Appends the type of keys or values in the cache, by llama-bench's name. */
static void
find_cache_type(const struct xm_cli_model *m, const char *property, struct xm_strbuf *out)
{
    static const struct {
        const char *ours, *ggml;
    } names[] = {{"i8", "q8_0"}, {"u4", "q4_0"}};
    if (m->compiled->ops->get_property(m->compiled, property, out, NULL) != XM_OK)
        xm_strbuf_add(out, "f32"); /* the reference device has no other type */
    for (size_t i = 0; i < XM_ARRAY_LEN(names); i++) {
        if (strcmp(xm_strbuf_text(out), names[i].ours) == 0) {
            xm_strbuf_clear(out);
            xm_strbuf_add(out, names[i].ggml);
            return;
        }
    }
}

static const char *
name_if(bool is_so, const struct xm_bench_device *d)
{
    return is_so ? d->info.name : "";
}

static enum xm_status
print_test(struct bench *b, const struct xm_bench_test *t, const char *time,
           struct xm_error *err)
{
    const struct xm_bench_device *d = t->device;
    const bool is_cpu = is_processor(d);
    struct xm_strbuf type_k = {0}, type_v = {0};
    find_cache_type(&b->bed.model, "KEY_CACHE_PRECISION", &type_k);
    find_cache_type(&b->bed.model, "VALUE_CACHE_PRECISION", &type_v);
    struct xm_bench_result r = {
        .build = b->out.build,
        .cpu = name_if(is_cpu, d),
        .gpu = name_if(!is_cpu, d),
        .backend = d->is_reference ? d->name : "OpenCL",
        .model = t->model,
        .model_type = b->bed.id.text,
        .type_k = xm_strbuf_text(&type_k),
        .type_v = xm_strbuf_text(&type_v),
        .devices = d->name ? d->name : "auto",
        .device_name = d->info.name,
        .driver = d->info.driver,
        .platform = d->info.platform,
        .time = time,
        .model_bytes = b->bed.id.bytes,
        .parameters = b->bed.id.parameters,
        .n_batch = t->batch,
        .n_ubatch = t->ubatch,
        .n_threads = is_cpu ? d->info.compute_units : 0,
        .n_prompt = t->n_prompt,
        .n_gen = t->n_gen,
        .n_depth = t->depth,
        .n_parallel = t->n_parallel,
        .samples_ns = b->samples_ns,
        .n_samples = (size_t)b->args->reps,
    };
    xm_bench_sum_up(&r);
    enum xm_status s = xm_bench_out_test(&b->out, &r, err);
    if (s == XM_OK)
        s = xm_bench_out_test(&b->err, &r, err);
    xm_strbuf_free(&type_k);
    xm_strbuf_free(&type_v);
    return s;
}

/* Waits for --delay seconds. Ctrl-C ends the wait, and cancels the next run. */
static void
cool_off(const struct bench *b, const struct xm_bench_test *t)
{
    enum { MOST = INT_MAX / 1000 };
    struct pollfd wake = {.fd = xm_cli_wake_fd(), .events = POLLIN};
    const uint64_t seconds = b->args->delay;
    xm_cli_note_interrupt();
    if (b->args->progress)
        xm_say("test %zu of %zu: waiting before the test", t->number, t->of);
    poll(&wake, 1, seconds < MOST ? (int)seconds * 1000 : MOST * 1000);
    xm_cli_wake_drain();
    xm_cli_release_interrupt();
}

static double
mean_seconds(const struct bench *b)
{
    double sum = 0.0;
    for (uint64_t i = 0; i < b->args->reps; i++)
        sum += 1e-9 * (double)b->samples_ns[i];
    return sum / (double)b->args->reps;
}

static int
run_test(struct bench *b, const struct xm_bench_test *t, struct xm_bench_rates *rates)
{
    struct xm_error err = {0};
    char begun[32];
    struct tm utc;
    if (b->args->delay)
        cool_off(b, t);
    const time_t now = time(NULL);
    strftime(begun, sizeof(begun), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    const int code = xm_bench_run(&b->bed, b->args, t, b->samples_ns);
    if (code != XM_EXIT_OK)
        return code;
    xm_bench_note_rates(rates, t, mean_seconds(b));
    return print_test(b, t, begun, &err) == XM_OK ? XM_EXIT_OK : xm_cli_failed(&err);
}

/* Runs all tests of a setting. After a failure, prints it and continues with the next test; Ctrl-C
 * ends all. Returns the exit code of the first failure. */
static int
run_setting(struct bench *b, struct xm_bench_test *t, size_t *number)
{
    struct xm_bench_rates rates = {0};
    int first = xm_bench_load(&b->bed, b->args, t);
    if (first != XM_EXIT_OK)
        return first;
    for (size_t i = 0; find_lengths(b->args, i, t) && first != XM_EXIT_CANCELLED; i++) {
        if (t->n_prompt == 0 && t->n_gen == 0)
            continue;
        t->number = ++*number;
        const int code = run_test(b, t, &rates);
        if (first == XM_EXIT_OK || code == XM_EXIT_CANCELLED)
            first = code;
    }
    xm_bench_keep_rates(&b->bed, b->args, t, &rates);
    return first;
}

static size_t
count_tests(const struct bench *b)
{
    struct xm_bench_test t;
    size_t lengths = 0, settings = 0;
    for (size_t i = 0; find_lengths(b->args, i, &t); i++)
        lengths += t.n_prompt || t.n_gen;
    while (find_setting(b, settings, &t))
        settings++;
    return lengths * settings;
}

static int
run_all(struct bench *b)
{
    struct xm_bench_test t = {.of = count_tests(b)};
    size_t number = 0;
    int first = XM_EXIT_OK;
    for (size_t i = 0; find_setting(b, i, &t) && first != XM_EXIT_CANCELLED; i++) {
        const int code = run_setting(b, &t, &number);
        if (first == XM_EXIT_OK || code == XM_EXIT_CANCELLED)
            first = code;
    }
    xm_bench_unload(&b->bed);
    return first;
}

/* ---- the command ------------------------------------------------------------------- */

static bool
is_default(const struct xm_bench_values *v, uint64_t usual)
{
    return v->n == 1 && v->list[0] == usual;
}

static unsigned
columns_of(const struct bench *b)
{
    const struct xm_bench_args *a = b->args;
    unsigned columns = 0;
    for (size_t i = 0; i < b->n_devices; i++)
        columns |= is_processor(&b->devices[i]) ? XM_BENCH_THREADS : XM_BENCH_NGL;
    columns |= is_default(&a->batches, XM_BENCH_N_BATCH) ? 0u : XM_BENCH_BATCH;
    columns |= is_default(&a->ubatches, XM_BENCH_N_UBATCH) ? 0u : XM_BENCH_UBATCH;
    columns |= a->type_k_texts.n || a->type_v_texts.n ? XM_BENCH_TYPES : 0u;
    columns |= a->device_texts.n ? XM_BENCH_DEVICE : 0u;
    return columns;
}

static int
print_all(struct bench *b)
{
    struct xm_error err = {0};
    const int code = run_all(b);
    if (xm_bench_out_end(&b->out, &err) != XM_OK ||
        xm_bench_out_end(&b->err, &err) != XM_OK)
        return xm_cli_failed(&err);
    const int flushed = xm_cli_flush();
    return code == XM_EXIT_OK ? flushed : code;
}

static int
bench(const struct xm_bench_args *a)
{
    static const struct xm_error no_memory = {XM_NO_MEMORY, "out of memory for tests"};
    static const char build[] = "xemoe " XM_VERSION;
    struct bench b = {.args = a, .n_devices = a->devices.n ? a->devices.n : 1};
    b.devices = xm_calloc(b.n_devices, sizeof(*b.devices));
    b.samples_ns = xm_calloc((size_t)a->reps, sizeof(*b.samples_ns));
    int code = b.devices && b.samples_ns ? find_devices(a, b.devices, b.n_devices)
                                         : xm_cli_failed(&no_memory);
    if (code == XM_EXIT_OK) {
        const unsigned columns = columns_of(&b);
        b.out = (struct xm_bench_out){a->format, columns, stdout, build,
                                      .line = xm_terminal_line(STDOUT_FILENO)};
        b.err = (struct xm_bench_out){a->format_err, columns, stderr, build,
                                      .line = xm_terminal_line(STDERR_FILENO)};
        code = print_all(&b);
    }
    xm_free(b.devices);
    xm_free(b.samples_ns);
    return code;
}

/* Removes a word from argv: --kernels starts another program with the other words, --sampling
 * another command. */
static bool
take_out(const char *word, int *argc, char **argv)
{
    int n = 0;
    for (int i = 0; i < *argc; i++) {
        if (i == 0 || strcmp(argv[i], word) != 0)
            argv[n++] = argv[i];
    }
    const bool found = n < *argc;
    *argc = n;
    argv[n] = NULL;
    return found;
}

int
xm_cli_bench(int argc, char **argv)
{
    if (take_out("--kernels", &argc, argv))
        return xm_cli_start_program("bench_kernels", argv);
    if (take_out("--sampling", &argc, argv))
        return xm_cli_bench_sampling(argc, argv);
    struct xm_bench_args *a = xm_calloc(1, sizeof(*a)); /* too large for the stack */
    static const struct xm_error no_memory = {XM_NO_MEMORY,
                                              "out of memory for the command line"};
    bool done;
    if (!a)
        return xm_cli_failed(&no_memory);
    int code = xm_bench_args_read(argc, argv, a, &done);
    if (!done)
        code = bench(a);
    xm_bench_args_free(a);
    xm_free(a);
    return code;
}
