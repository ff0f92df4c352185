/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/bench_out.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/program_util/json_out.h"
#include "plugin/program_util/lines.h"
#include "runtime/util/memory.h"
#include "runtime/util/strbuf.h"

static const struct {
    const char *name;
    enum xm_bench_format format;
} formats[] = {{"none", XM_BENCH_NONE}, {"md", XM_BENCH_MD},       {"csv", XM_BENCH_CSV},
               {"json", XM_BENCH_JSON}, {"jsonl", XM_BENCH_JSONL}, {"sql", XM_BENCH_SQL}};

bool
xm_bench_format_find(const char *name, enum xm_bench_format *out)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(formats); i++) {
        if (strcmp(name, formats[i].name) == 0) {
            *out = formats[i].format;
            return true;
        }
    }
    return false;
}

/* ---- the samples ------------------------------------------------------------------- */

static double
speed(const struct xm_bench_result *r, size_t i)
{
    const double ns = r->samples_ns[i] ? (double)r->samples_ns[i] : 1.0;
    return 1e9 * (double)(r->n_prompt + r->n_gen * r->n_parallel) / ns;
}

static double
nanoseconds(const struct xm_bench_result *r, size_t i)
{
    return (double)r->samples_ns[i];
}

static double
mean(const struct xm_bench_result *r,
     double (*sample)(const struct xm_bench_result *r, size_t i))
{
    double sum = 0.0;
    for (size_t i = 0; i < r->n_samples; i++)
        sum += sample(r, i);
    return r->n_samples ? sum / (double)r->n_samples : 0.0;
}

/* Returns the standard deviation of a sample, with the divisor n - 1. */
static double
deviation(const struct xm_bench_result *r,
          double (*sample)(const struct xm_bench_result *r, size_t i))
{
    const double m = mean(r, sample);
    double sum = 0.0;
    for (size_t i = 0; i < r->n_samples; i++)
        sum += (sample(r, i) - m) * (sample(r, i) - m);
    return r->n_samples > 1 ? sqrt(sum / (double)(r->n_samples - 1)) : 0.0;
}

void
xm_bench_sum_up(struct xm_bench_result *r)
{
    r->avg_ns = (uint64_t)mean(r, nanoseconds);
    r->stddev_ns = (uint64_t)deviation(r, nanoseconds);
    r->avg_ts = mean(r, speed);
    r->stddev_ts = deviation(r, speed);
}

/* ---- fields ------------------------------------------------------------------------ */

enum type { TEXT, WHOLE, BOOL, REAL };

/* The fields of a result. Fields for settings that xemoe lacks have a fixed value: the one that
 * llama-bench prints for xemoe's behaviour. */
struct field {
    const char *name;
    enum type type;
    /* a fixed value; NULL: the member at the offset, a const char *, uint64_t or double */
    const char *fixed;
    size_t offset;
};

/* clang-format off */
#define AT(member) NULL, offsetof(struct xm_bench_result, member)
static const struct field fields[] = {
    { "build_commit",          TEXT,  AT(build) },
    { "build_number",          WHOLE, "0", 0 },
    { "cpu_info",              TEXT,  AT(cpu) },
    { "gpu_info",              TEXT,  AT(gpu) },
    { "backends",              TEXT,  AT(backend) },
    { "model_filename",        TEXT,  AT(model) },
    { "model_type",            TEXT,  AT(model_type) },
    { "model_size",            WHOLE, AT(model_bytes) },
    { "model_n_params",        WHOLE, AT(parameters) },
    { "n_batch",               WHOLE, AT(n_batch) },
    { "n_ubatch",              WHOLE, AT(n_ubatch) },
    { "n_threads",             WHOLE, AT(n_threads) },
    { "cpu_mask",              TEXT,  "0x0", 0 },
    { "cpu_strict",            BOOL,  "0", 0 },
    { "poll",                  WHOLE, "0", 0 },
    { "type_k",                TEXT,  AT(type_k) },
    { "type_v",                TEXT,  AT(type_v) },
    { "n_gpu_layers",          WHOLE, "-1", 0 },
    { "n_cpu_moe",             WHOLE, "0", 0 },
    { "split_mode",            TEXT,  "none", 0 },
    { "main_gpu",              WHOLE, "0", 0 },
    { "no_kv_offload",         BOOL,  "0", 0 },
    { "flash_attn",            WHOLE, "1", 0 },
    { "devices",               TEXT,  AT(devices) },
    { "tensor_split",          TEXT,  "0.00", 0 },
    { "tensor_buft_overrides", TEXT,  "none", 0 },
    { "load_mode",             TEXT,  "mmap", 0 },
    { "embeddings",            BOOL,  "0", 0 },
    { "no_op_offload",         WHOLE, "0", 0 },
    { "no_host",               BOOL,  "0", 0 },
    { "fit_target",            WHOLE, "0", 0 },
    { "fit_min_ctx",           WHOLE, "0", 0 },
    { "n_prompt",              WHOLE, AT(n_prompt) },
    { "n_gen",                 WHOLE, AT(n_gen) },
    { "n_depth",               WHOLE, AT(n_depth) },
    { "test_time",             TEXT,  AT(time) },
    { "avg_ns",                WHOLE, AT(avg_ns) },
    { "stddev_ns",             WHOLE, AT(stddev_ns) },
    { "avg_ts",                REAL,  AT(avg_ts) },
    { "stddev_ts",             REAL,  AT(stddev_ts) },
    { "device_name",           TEXT,  AT(device_name) },
    { "driver_version",        TEXT,  AT(driver) },
    { "platform",              TEXT,  AT(platform) },
    { "n_parallel",            WHOLE, AT(n_parallel) },
};
#undef AT
/* clang-format on */

static void
add_value(const struct field *f, const struct xm_bench_result *r, struct xm_strbuf *out)
{
    const char *member = (const char *)r + f->offset;
    const char *text = f->fixed;
    uint64_t whole;
    double real;
    if (f->type == REAL) {
        memcpy(&real, member, sizeof(real));
        xm_strbuf_printf(out, "%f", real);
    } else if (!text && f->type == WHOLE) {
        memcpy(&whole, member, sizeof(whole));
        xm_strbuf_printf(out, "%" PRIu64, whole);
    } else {
        if (!text)
            memcpy(&text, member, sizeof(text));
        xm_strbuf_add(out, text);
    }
}

/* Appends the text in quotes; quotes inside it are doubled. */
static void
add_quoted(const char *text, char quote, struct xm_strbuf *out)
{
    xm_strbuf_add_n(out, &quote, 1);
    for (const char *c = text; *c; c++) {
        if (*c == quote)
            xm_strbuf_add_n(out, c, 1);
        xm_strbuf_add_n(out, c, 1);
    }
    xm_strbuf_add_n(out, &quote, 1);
}

static void
add_values(const struct xm_bench_result *r, char quote, const char *between,
           struct xm_strbuf *out)
{
    struct xm_strbuf value = {0};
    for (size_t i = 0; i < XM_ARRAY_LEN(fields); i++) {
        xm_strbuf_clear(&value);
        add_value(&fields[i], r, &value);
        xm_strbuf_add(out, i ? between : "");
        add_quoted(xm_strbuf_text(&value), quote, out);
    }
    out->failed |= value.failed;
    xm_strbuf_free(&value);
}

static void
add_names(const char *between, struct xm_strbuf *out)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(fields); i++)
        xm_strbuf_printf(out, "%s%s", i ? between : "", fields[i].name);
}

/* ---- CSV and SQL ------------------------------------------------------------------- */

static void
begin_csv(const struct xm_bench_out *o, struct xm_strbuf *out)
{
    (void)o;
    add_names(",", out);
    xm_strbuf_add(out, "\n");
}

static void
add_csv(struct xm_bench_out *o, const struct xm_bench_result *r, struct xm_strbuf *out)
{
    (void)o;
    add_values(r, '"', ",", out);
    xm_strbuf_add(out, "\n");
}

static void
begin_sql(const struct xm_bench_out *o, struct xm_strbuf *out)
{
    static const char *const types[] = {
        [TEXT] = "TEXT", [WHOLE] = "INTEGER", [BOOL] = "INTEGER", [REAL] = "REAL"};
    (void)o;
    xm_strbuf_add(out, "CREATE TABLE IF NOT EXISTS llama_bench (\n");
    for (size_t i = 0; i < XM_ARRAY_LEN(fields); i++)
        xm_strbuf_printf(out, "  %s %s%s\n", fields[i].name, types[fields[i].type],
                         i + 1 < XM_ARRAY_LEN(fields) ? "," : "");
    xm_strbuf_add(out, ");\n\n");
}

static void
add_sql(struct xm_bench_out *o, const struct xm_bench_result *r, struct xm_strbuf *out)
{
    (void)o;
    xm_strbuf_add(out, "INSERT INTO llama_bench (");
    add_names(", ", out);
    xm_strbuf_add(out, ") VALUES (");
    add_values(r, '\'', ", ", out);
    xm_strbuf_add(out, ");\n");
}

/* ---- JSON -------------------------------------------------------------------------- */

static void
add_json_field(struct xm_json_out *j, const struct field *f, const char *value, size_t n)
{
    if (f->type == TEXT)
        xm_json_add_text(j, NULL, f->name, value, n);
    else if (f->type == BOOL)
        xm_json_add_bool(j, NULL, f->name, strcmp(value, "0") != 0);
    else
        j->failed |= !yyjson_mut_obj_add(j->root, yyjson_mut_str(j->doc, f->name),
                                         yyjson_mut_rawncpy(j->doc, value, n));
}

static void
add_samples(struct xm_json_out *j, const struct xm_bench_result *r)
{
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "samples_ns");
    for (size_t i = 0; i < r->n_samples; i++)
        xm_json_add_whole(j, list, NULL, r->samples_ns[i]);
    list = xm_json_add_array(j, NULL, "samples_ts");
    for (size_t i = 0; i < r->n_samples; i++)
        xm_json_add_real(j, list, NULL, speed(r, i));
}

/* Appends one JSON object on one line. */
static void
add_object(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    struct xm_json_out j;
    struct xm_strbuf value = {0};
    xm_json_begin(&j);
    for (size_t i = 0; i < XM_ARRAY_LEN(fields); i++) {
        xm_strbuf_clear(&value);
        add_value(&fields[i], r, &value);
        add_json_field(&j, &fields[i], xm_strbuf_text(&value), value.n);
    }
    add_samples(&j, r);
    char *text = j.failed || value.failed ? NULL : xm_json_value_text(j.root);
    if (text)
        xm_strbuf_add(out, text);
    out->failed |= text == NULL;
    xm_free(text);
    xm_strbuf_free(&value);
    xm_json_end(&j);
}

static void
begin_json(const struct xm_bench_out *o, struct xm_strbuf *out)
{
    (void)o;
    xm_strbuf_add(out, "[");
}

static void
add_json(struct xm_bench_out *o, const struct xm_bench_result *r, struct xm_strbuf *out)
{
    xm_strbuf_add(out, o->n ? ",\n" : "\n");
    add_object(r, out);
}

static void
end_json(const struct xm_bench_out *o, struct xm_strbuf *out)
{
    (void)o;
    xm_strbuf_add(out, "\n]\n");
}

static void
add_jsonl(struct xm_bench_out *o, const struct xm_bench_result *r, struct xm_strbuf *out)
{
    (void)o;
    add_object(r, out);
    xm_strbuf_add(out, "\n");
}

/* ---- the table --------------------------------------------------------------------- */

static void
print_model(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    xm_strbuf_add(out, r->model_type);
}

static void
print_size(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    const double mib = (double)r->model_bytes / 1048576.0;
    xm_strbuf_printf(out, mib < 1024.0 ? "%.2f MiB" : "%.2f GiB",
                     mib < 1024.0 ? mib : mib / 1024.0);
}

static void
print_params(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    const double millions = (double)r->parameters / 1e6;
    xm_strbuf_printf(out, millions < 1000.0 ? "%.2f M" : "%.2f B",
                     millions < 1000.0 ? millions : millions / 1000.0);
}

static void
print_backend(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    xm_strbuf_add(out, r->backend);
}

static void
print_ngl(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    xm_strbuf_add(out, r->n_threads ? "" : "-1");
}

static void
print_threads(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    if (r->n_threads)
        xm_strbuf_printf(out, "%" PRIu64, r->n_threads);
}

static void
print_batch(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%" PRIu64, r->n_batch);
}

static void
print_ubatch(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%" PRIu64, r->n_ubatch);
}

static void
print_type_k(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    xm_strbuf_add(out, r->type_k);
}

static void
print_type_v(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    xm_strbuf_add(out, r->type_v);
}

static void
print_devices(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    xm_strbuf_add(out, r->devices);
}

void
xm_bench_test_text(const struct xm_bench_result *r, char out[XM_BENCH_TEST_CHARS])
{
    char prompt[24] = "", gen[24] = "", texts[24] = "", depth[32] = "";
    if (r->n_prompt)
        snprintf(prompt, sizeof(prompt), "pp%" PRIu64, r->n_prompt);
    if (r->n_gen)
        snprintf(gen, sizeof(gen), "tg%" PRIu64, r->n_gen);
    if (r->n_parallel > 1)
        snprintf(texts, sizeof(texts), " x %" PRIu64, r->n_parallel);
    if (r->n_depth)
        snprintf(depth, sizeof(depth), " @ d%" PRIu64, r->n_depth);
    snprintf(out, XM_BENCH_TEST_CHARS, "%s%s%s%s%s", prompt,
             r->n_prompt && r->n_gen ? "+" : "", gen, texts, depth);
}

static void
print_test(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    char text[XM_BENCH_TEST_CHARS];
    xm_bench_test_text(r, text);
    xm_strbuf_add(out, text);
}

static void
print_speed(const struct xm_bench_result *r, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "%.2f ± %.2f", r->avg_ts, r->stddev_ts);
}

struct column {
    const char *title;
    int width;     /* characters; negative: left-aligned */
    unsigned when; /* enum xm_bench_column, the condition to print it; 0: always */
    void (*print)(const struct xm_bench_result *r, struct xm_strbuf *out);
};

/* The last two columns describe the test itself; the others are often equal in all tests. */
enum { N_TEST_COLUMNS = 2 };
/* clang-format off */
static const struct column columns[] = {
    { "model",    -30, 0,                print_model   },
    { "size",      10, 0,                print_size    },
    { "params",    10, 0,                print_params  },
    { "backend",  -10, 0,                print_backend },
    { "ngl",        3, XM_BENCH_NGL,     print_ngl     },
    { "threads",    7, XM_BENCH_THREADS, print_threads },
    { "n_batch",    7, XM_BENCH_BATCH,   print_batch   },
    { "n_ubatch",   8, XM_BENCH_UBATCH,  print_ubatch  },
    { "type_k",     6, XM_BENCH_TYPES,   print_type_k  },
    { "type_v",     6, XM_BENCH_TYPES,   print_type_v  },
    { "dev",      -12, XM_BENCH_DEVICE,  print_devices },
    { "test",      15, 0,                print_test    },
    { "t/s",       20, 0,                print_speed   },
};
/* clang-format on */

/* Returns the number of UTF-8 characters: bytes that do not continue a character. */
static int
characters(const char *text)
{
    int n = 0;
    for (const char *c = text; *c; c++)
        n += ((unsigned char)*c & 0xc0) != 0x80;
    return n;
}

static void
add_cell(const struct column *c, const char *text, struct xm_strbuf *out)
{
    const int width = c->width < 0 ? -c->width : c->width, n = characters(text);
    const int blank = n < width ? width - n : 0;
    xm_strbuf_printf(out, " %*s%s%*s |", c->width < 0 ? 0 : blank, "", text,
                     c->width < 0 ? blank : 0, "");
}

static bool
is_known(const struct xm_bench_out *o, size_t column)
{
    return columns[column].when == 0 || (o->columns & columns[column].when);
}

/* Whether the table is wider than a line: then it has the test's own columns only, and captions
 * have the contents of the others. */
static bool
is_narrow(const struct xm_bench_out *o)
{
    size_t width = 1;
    for (size_t i = 0; i < XM_ARRAY_LEN(columns); i++)
        width += is_known(o, i) ? (size_t)abs(columns[i].width) + 3 : 0;
    return width > o->line;
}

static bool
is_shown(const struct xm_bench_out *o, size_t column)
{
    return is_known(o, column) &&
           (!is_narrow(o) || column >= XM_ARRAY_LEN(columns) - N_TEST_COLUMNS);
}

static void
add_head(const struct xm_bench_out *o, struct xm_strbuf *out)
{
    static const char dashes[] = "------------------------------";
    xm_strbuf_add(out, "|");
    for (size_t i = 0; i < XM_ARRAY_LEN(columns); i++) {
        if (is_shown(o, i))
            add_cell(&columns[i], columns[i].title, out);
    }
    xm_strbuf_add(out, "\n|");
    for (size_t i = 0; i < XM_ARRAY_LEN(columns); i++) {
        const int width = columns[i].width;
        if (is_shown(o, i))
            xm_strbuf_printf(out, " %.*s%s |", (width < 0 ? -width : width) - 1, dashes,
                             width < 0 ? "-" : ":");
    }
    xm_strbuf_add(out, "\n");
}

/* Prints the caption of a narrow table, if it differs from the last one: the columns that the table
 * lacks, "qwen3moe 30.53B q4_0, size 16.45 GiB, params 30.53 B, backend OpenCL, threads 2". A new
 * table begins below it. */
static void
add_caption(struct xm_bench_out *o, const struct xm_bench_result *r,
            struct xm_strbuf *out)
{
    struct xm_strbuf line = {0}, cell = {0};
    for (size_t i = 0; i < XM_ARRAY_LEN(columns); i++) {
        xm_strbuf_clear(&cell);
        if (is_known(o, i) && !is_shown(o, i))
            columns[i].print(r, &cell);
        if (cell.n > 0 && i > 0)
            xm_strbuf_printf(&line, ", %s ", columns[i].title);
        xm_strbuf_add(&line, xm_strbuf_text(&cell));
    }
    if (strcmp(xm_strbuf_text(&line), xm_strbuf_text(&o->caption)) != 0) {
        xm_strbuf_add(out, o->n ? "\n" : "");
        xm_lines_wrap(xm_strbuf_text(&line), line.n, o->line, out);
        xm_strbuf_add(out, "\n\n");
        add_head(o, out);
        xm_strbuf_clear(&o->caption);
        xm_strbuf_add(&o->caption, xm_strbuf_text(&line));
    }
    out->failed |= line.failed || cell.failed || o->caption.failed;
    xm_strbuf_free(&line);
    xm_strbuf_free(&cell);
}

static void
add_md(struct xm_bench_out *o, const struct xm_bench_result *r, struct xm_strbuf *out)
{
    struct xm_strbuf cell = {0};
    if (is_narrow(o))
        add_caption(o, r, out);
    else if (o->n == 0)
        add_head(o, out);
    xm_strbuf_add(out, "|");
    for (size_t i = 0; i < XM_ARRAY_LEN(columns); i++) {
        if (!is_shown(o, i))
            continue;
        xm_strbuf_clear(&cell);
        columns[i].print(r, &cell);
        add_cell(&columns[i], xm_strbuf_text(&cell), out);
    }
    xm_strbuf_add(out, "\n");
    out->failed |= cell.failed;
    xm_strbuf_free(&cell);
}

static void
end_md(const struct xm_bench_out *o, struct xm_strbuf *out)
{
    xm_strbuf_printf(out, "\nbuild: %s\n", o->build);
}

/* ---- a format ---------------------------------------------------------------------- */

/* Writers of each format; NULL: writes nothing. */
static const struct {
    void (*begin)(const struct xm_bench_out *o, struct xm_strbuf *out);
    void (*test)(struct xm_bench_out *o, const struct xm_bench_result *r,
                 struct xm_strbuf *out);
    void (*end)(const struct xm_bench_out *o, struct xm_strbuf *out);
} printers[] = {
    [XM_BENCH_NONE] = {NULL, NULL, NULL},
    [XM_BENCH_MD] = {NULL, add_md, end_md},
    [XM_BENCH_CSV] = {begin_csv, add_csv, NULL},
    [XM_BENCH_JSON] = {begin_json, add_json, end_json},
    [XM_BENCH_JSONL] = {NULL, add_jsonl, NULL},
    [XM_BENCH_SQL] = {begin_sql, add_sql, NULL},
};

static void
begin(const struct xm_bench_out *o, struct xm_strbuf *text)
{
    if (o->n == 0 && printers[o->format].begin)
        printers[o->format].begin(o, text);
}

static enum xm_status
put(struct xm_bench_out *o, struct xm_strbuf *text, struct xm_error *err)
{
    const bool good = xm_strbuf_ok(text);
    if (good)
        fwrite(xm_strbuf_text(text), 1, text->n, o->to);
    fflush(o->to);
    xm_strbuf_free(text);
    return good ? XM_OK : xm_no_memory(err, "the results");
}

enum xm_status
xm_bench_out_test(struct xm_bench_out *o, const struct xm_bench_result *r,
                  struct xm_error *err)
{
    struct xm_strbuf text = {0};
    begin(o, &text);
    if (printers[o->format].test)
        printers[o->format].test(o, r, &text);
    o->n++;
    return put(o, &text, err);
}

enum xm_status
xm_bench_out_end(struct xm_bench_out *o, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    xm_strbuf_free(&o->caption);
    if (o->n == 0)
        return XM_OK;
    if (printers[o->format].end)
        printers[o->format].end(o, &text);
    return put(o, &text, err);
}
