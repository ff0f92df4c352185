/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of xemoe selftest, and functions that describe their results.
 */
#include <inttypes.h>
#include <string.h>

#include "plugin/cli/selftest.h"
#include "runtime/util/compiler.h"

static double
number(yyjson_val *object, const char *key)
{
    return yyjson_get_num(yyjson_obj_get(object, key));
}

static const char *
text(yyjson_val *object, const char *key)
{
    const char *t = yyjson_get_str(yyjson_obj_get(object, key));
    return t ? t : "";
}

/* ---- reading results ----------------------------------------------------------------------- */

static bool
read_devices(yyjson_val *result, struct xm_strbuf *out)
{
    yyjson_val *d;
    size_t i, n;
    yyjson_arr_foreach(yyjson_obj_get(result, "devices"), i, n, d)
    {
        if (yyjson_obj_get(d, "units"))
            xm_strbuf_printf(out, "%s%s: %s, driver %s, %.0f units, %.1f GiB",
                             out->n ? "; " : "", text(d, "device"), text(d, "name"),
                             text(d, "driver"), number(d, "units"),
                             number(d, "memory") / 1073741824.0);
    }
    return out->n > 0;
}

/* Describes a result of xemoe verify, whose steps are sorted, the worst first. */
static bool
read_steps(yyjson_val *result, struct xm_strbuf *out)
{
    const double compared = number(result, "compared"), over = number(result, "over");
    yyjson_val *worst = yyjson_arr_get_first(yyjson_obj_get(result, "steps"));
    if (over > 0)
        xm_strbuf_printf(out, "%.0f of %.0f steps differ from the reference: ", over,
                         compared);
    else
        xm_strbuf_printf(out, "%.0f steps; the largest error is ", compared);
    xm_strbuf_printf(out, "%s %.1e, tolerance %.1e; %zu kernels", text(worst, "op"),
                     number(worst, "error"), number(worst, "tolerance"),
                     yyjson_arr_size(yyjson_obj_get(result, "kernels")));
    return compared > 0 && over == 0;
}

/* Returns the larger of a kernel's shares of the device's reading and multiplying rates. */
static double
share_of(yyjson_val *kernel, double read, double multiply)
{
    const double bytes = number(kernel, "bytes_per_second") / read,
                 flops = number(kernel, "flops") / multiply;
    return bytes > flops ? bytes : flops;
}

/* Describes a result of xemoe bench --kernels. Kernels of one problem are adjacent; the fastest
 * counts. */
static bool
read_kernels(yyjson_val *result, struct xm_strbuf *out)
{
    const double read = number(result, "read_bytes_per_second"),
                 multiply = number(result, "flops");
    double sum = 0.0, best = 0.0;
    const char *problem = "";
    yyjson_val *r;
    size_t i, n, problems = 0;
    if (!(read > 0 && multiply > 0))
        return false;
    yyjson_arr_foreach(yyjson_obj_get(result, "results"), i, n, r)
    {
        const double share = share_of(r, read, multiply);
        const bool is_new = strcmp(text(r, "problem"), problem) != 0;
        problems += is_new;
        sum += is_new ? share : share > best ? share - best : 0.0;
        best = is_new || share > best ? share : best;
        problem = text(r, "problem");
    }
    xm_strbuf_printf(out,
                     "read rate %.1f GB/s, multiply-add rate %.2f TFLOP/s; the fastest "
                     "kernels of %zu problems reach %.0f %% of one of these on average",
                     read / 1e9, multiply / 1e12, problems,
                     problems ? 100.0 * sum / (double)problems : 0.0);
    return problems > 0;
}

/* Describes a result of xemoe tune: a kernel was stored for each problem. */
static bool
read_tuned(yyjson_val *result, struct xm_strbuf *out)
{
    yyjson_val *r;
    size_t i, n, kept = 0;
    yyjson_arr_foreach(yyjson_obj_get(result, "results"), i, n, r) kept +=
        yyjson_get_bool(yyjson_obj_get(r, "kept"));
    xm_strbuf_printf(out, "%zu kernels timed for %zu steps", n, kept);
    return kept > 0;
}

/* Describes a result of xemoe bench. */
static bool
read_speed(yyjson_val *result, struct xm_strbuf *out)
{
    yyjson_val *r;
    size_t i, n;
    yyjson_arr_foreach(result, i, n, r)
        xm_strbuf_printf(out, "%s%s %.0f: %.1f tokens/s", i ? ", " : "",
                         number(r, "n_prompt") > 0 ? "prompt of" : "decoding",
                         number(r, "n_prompt") + number(r, "n_gen"), number(r, "avg_ts"));
    return n > 0;
}

/* Describes a result of xemoe generate. */
static bool
read_run(yyjson_val *result, struct xm_strbuf *out)
{
    yyjson_val *times = yyjson_obj_get(result, "timings");
    yyjson_val *run = yyjson_obj_get(result, "last_run");
    const double waits = number(run, "waits");
    xm_strbuf_printf(out, "%.0f launches and %.0f wait%s per token; ",
                     number(run, "launches"), waits, waits == 1.0 ? "" : "s");
    xm_strbuf_printf(out, "%.0f kernels built in %.1f s; %.0f MiB of device memory",
                     number(result, "kernels_built") + number(result, "launches_built"),
                     number(times, "build_s"),
                     number(yyjson_obj_get(result, "memory"), "allocated_peak") /
                         1048576.0);
    return yyjson_arr_size(yyjson_obj_get(result, "ids")) > 0;
}

/* ---- the parts ------------------------------------------------------------------------- */

#define SMALL                                                                            \
    "--hidden 256 --layers 2 --intermediate 512 --experts 8 --top-k 2 "                  \
    "--moe-intermediate 256 --heads 4 --kv-heads 2 --head-dim 64 --vocab 512 "
#define IDS                                                                              \
    "--ids 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,"  \
    "29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48 "

/* clang-format off */
#define MAKES(file, options, long) \
    { .name = "making " file, .words = "make-model -o " file " " options, .is_long = long }
#define STEPS(title, file, options, force, long) \
    { .name = "steps, " title, .words = "verify " file " " IDS "--decode 2 --json " options, .setting = force, .read = read_steps, .is_long = long }
#define TEXT(title, file, environment, same, long) \
    { .name = title, .words = "generate " file " " IDS "-n 32 --ignore-eos --json", .setting = environment, .read = read_run, .is_same_text = same, .is_long = long }
#define BLOCKS(format, long) \
    MAKES(format ".gguf", SMALL "--format gguf --weights " format, long), \
    STEPS(format, format ".gguf", "", NULL, long)
#define GROUPS(format, group, long) \
    MAKES(format, SMALL "--weights " format " --group " group, long), \
    STEPS(format, format, "", NULL, long)
const struct xm_selftest_part xm_selftest_parts[] = {
    { .name = "devices", .words = "devices --json", .read = read_devices },
    GROUPS("u4", "64", false),
    STEPS("u4, f32",           "u4",        "--precision f32", NULL, false),
    STEPS("u4, cache of i8",   "u4",        "--kv i8", NULL, false),
    STEPS("u4, cache of u4",   "u4",        "--kv u4", NULL, false),
    STEPS("u4, every kernel",  "u4",        "--every-kernel", NULL, false),
    BLOCKS("q4_k", false),
    STEPS("q4_k, every kernel", "q4_k.gguf", "--every-kernel", NULL, false),
    TEXT("a text",             "u4",        "XM_REPLAY=YES", false, false),
    TEXT("without replays",    "u4",        "XM_REPLAY=NO", true, false),
    TEXT("a text, q4_k",       "q4_k.gguf", "XM_REPLAY=YES", false, false),
    TEXT("q4_k, no replays",  "q4_k.gguf", "XM_REPLAY=NO", true, false),
    GROUPS("i4", "32", true), GROUPS("u8", "128", true), GROUPS("i8", "0", true),
    GROUPS("f16", "0", true),
    BLOCKS("q4_0", true), BLOCKS("q4_1", true), BLOCKS("q5_0", true), BLOCKS("q5_1", true),
    BLOCKS("q8_0", true), BLOCKS("q2_k", true), BLOCKS("q3_k", true), BLOCKS("q5_k", true),
    BLOCKS("q6_k", true), BLOCKS("mxfp4", true),
    BLOCKS("iq4_nl", true), BLOCKS("iq4_xs", true),
    { .name = "kernels", .words = "bench --kernels --json --seconds 0.2", .read = read_kernels, .is_long = true },
    MAKES("large", "--arch qwen3-30b-a3b --layers 2 --weights u4 --group 128", true),
    { .name = "tuning", .words = "tune large --json --seconds 0.05", .read = read_tuned, .is_long = true },
    { .name = "speed", .words = "bench large -p 16,64,512 -n 64 -r 3 -o json", .read = read_speed, .is_long = true },
};
/* clang-format on */
const size_t xm_selftest_n_parts = XM_ARRAY_LEN(xm_selftest_parts);

static bool
begins_with(const struct xm_selftest_part *p, const char *command)
{
    const size_t n = strlen(command);
    return strncmp(p->words, command, n) == 0 && p->words[n] == ' ';
}

bool
xm_selftest_writes(const struct xm_selftest_part *p)
{
    return begins_with(p, "make-model");
}

bool
xm_selftest_computes(const struct xm_selftest_part *p)
{
    return !xm_selftest_writes(p) && !begins_with(p, "devices");
}

bool
xm_selftest_is_same_text(yyjson_val *result, yyjson_val *before, struct xm_strbuf *out)
{
    yyjson_val *ids = yyjson_obj_get(result, "ids"),
               *wanted = yyjson_obj_get(before, "ids");
    const size_t n = yyjson_arr_size(ids), most = yyjson_arr_size(wanted);
    size_t same = 0;
    while (same < n && same < most &&
           yyjson_equals(yyjson_arr_get(ids, same), yyjson_arr_get(wanted, same)))
        same++;
    if (n == 0 || most == 0)
        xm_strbuf_add(
            out,
            "; the token ids of two texts cannot be compared, because one is missing");
    else if (same < n || same < most)
        xm_strbuf_printf(out,
                         "; its token ids differ from those of the same text with "
                         "replays, from token %zu of %zu on",
                         same + 1, n > most ? n : most);
    return n > 0 && same == n && same == most;
}

/* Appends words of the parts' names with a digit, such as formats, or with at least four
 * letters. */
void
xm_selftest_add_words(struct xm_strbuf *out)
{
    enum { LEAST = 4 };
    static const char ends[] = " ,.";
    struct xm_strbuf known = {0};
    xm_strbuf_add(&known, " ");
    for (size_t i = 0; i < xm_selftest_n_parts; i++) {
        size_t n;
        for (const char *at = xm_selftest_parts[i].name; *at;
             at += n + strspn(at + n, ends)) {
            n = strcspn(at, ends);
            const bool tells = n >= LEAST || strcspn(at, "0123456789") < n;
            if (!tells || xm_list_has(xm_strbuf_text(&known), ' ', at, n))
                continue;
            xm_strbuf_printf(&known, "%.*s ", (int)n, at);
        }
    }
    xm_strbuf_add(out, xm_strbuf_text(&known) + 1);
    xm_strbuf_free(&known);
}

/* Returns the file that a part writes, up to the end of the word; "": none. */
static const char *
made_by(const struct xm_selftest_part *p)
{
    const char *file = strstr(p->words, "-o ");
    return xm_selftest_writes(p) && file ? file + 3 : "";
}

/* Whether the first word after a part's command is this file. */
static bool
reads(const struct xm_selftest_part *p, const char *file)
{
    const size_t n = strcspn(file, " ");
    const char *word = p->words + strcspn(p->words, " ");
    return n > 0 && *word && strncmp(word + 1, file, n) == 0 && word[1 + n] == ' ';
}

/* Whether the next part must generate the same text, and its name contains `only`. */
static bool
is_repeated(const struct xm_selftest_part *p, const char *only)
{
    const struct xm_selftest_part *next = p + 1;
    return next < xm_selftest_parts + xm_selftest_n_parts && next->is_same_text &&
           strstr(next->name, only);
}

bool
xm_selftest_is_wanted(const struct xm_selftest_part *p, bool quick, const char *only)
{
    if (quick && p->is_long)
        return false;
    if (!only || strstr(p->name, only) || is_repeated(p, only))
        return true;
    for (size_t i = 0; i < xm_selftest_n_parts; i++) {
        if (strstr(xm_selftest_parts[i].name, only) &&
            reads(&xm_selftest_parts[i], made_by(p)))
            return true;
    }
    return false;
}
