/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversion of options from and to text, and the rules that set options which the user did not
 * set. */
#include "runtime/config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/util/compiler.h"
#include "runtime/util/number.h"

enum { INTEL = 0x8086 };

enum kind {
    /* numbers; STREAMS also takes AUTO and NUMA, which mean 1 */
    U32,
    U64,
    FLOAT,
    SHARE, /* a FLOAT from 0 to 1 */
    STREAMS,
    THREADS, /* the getter returns the number of processors for 0 */
    TEXT,
    NO_FILE, /* a path, which must be empty         */
    /* one of a few words; from HINT on the members have type int */
    BOOL,
    MODE,
    NUMERICS,
    TRISTATE,
    QUEUE,
    ELEMENT,
    CACHE_ELEMENT,
    HINT,
    PRIORITY,
    CACHE,
    CORES,
    AFFINITY,
    SCHEDULE,
    POLICY,
    PARTITIONER,
    SNIPPETS,
    LOG,
};

struct option {
    const char *name;
    enum kind kind;
    size_t offset, bytes;
};

/* clang-format off */
static const struct option options[XM_OPTION_COUNT] = {
#define OPTION(member, kind, ctype, name, value, help)                                   \
    [XM_OPTION_##member] = {name, kind, offsetof(struct xm_config, member), sizeof(ctype)},
#include "runtime/options/all.def"
};

static const struct xm_option_row option_rows[XM_OPTION_COUNT] = {
#define OPTION(member, kind, ctype, name, value, help)                                   \
    [XM_OPTION_##member] = {name, help, LIST},
#include "runtime/options/all.def"
};
/* clang-format on */

const struct xm_option_row *
xm_option_rows(size_t *n)
{
    *n = XM_OPTION_COUNT;
    return option_rows;
}

void
xm_config_init(struct xm_config *c)
{
    static const struct xm_config defaults = {
#define OPTION(member, kind, ctype, name, value, help) .member = value,
#include "runtime/options/all.def"
    };
    *c = defaults;
}

/* ---- text ------------------------------------------------------------------------- */

/* The texts of a kind and their values; the first text of a value is the one printed. */
struct spelling {
    const char *text;
    int value;
};

#define BOOLEANS                                                                         \
    {"YES", 1}, {"NO", 0}, {"TRUE", 1}, {"FALSE", 0}, {"ON", 1}, {"OFF", 0}, {"1", 1},   \
    {                                                                                    \
        "0", 0                                                                           \
    }
static const struct spelling bool_texts[] = {BOOLEANS, {NULL, 0}};
static const struct spelling tristate_texts[] = {BOOLEANS, {"AUTO", XM_AUTO}, {NULL, 0}};
_Static_assert(XM_YES == 1 && XM_NO == 0, "a tristate is a boolean, or AUTO");
static const struct spelling queue_texts[] = {{"auto", XM_QUEUE_AUTO},
                                              {"in_order", XM_QUEUE_IN_ORDER},
                                              {"out_of_order", XM_QUEUE_OUT_OF_ORDER},
                                              {NULL, 0}};
static const struct spelling mode_texts[] = {
    {"PERFORMANCE", false}, {"ACCURACY", true}, {NULL, 0}};
static const struct spelling numerics_texts[] = {
    {"f32", false}, {"bf16", true}, {NULL, 0}};
static const struct spelling hint_texts[] = {
    {"LATENCY", 0}, {"THROUGHPUT", 1}, {"CUMULATIVE_THROUGHPUT", 2}, {NULL, 0}};
static const struct spelling priority_texts[] = {
    {"LOW", 0}, {"MEDIUM", 1}, {"HIGH", 2}, {NULL, 0}};
static const struct spelling cache_texts[] = {{"optimize_speed", 0},
                                              {"optimize_size", 1},
                                              {"OPTIMIZE_SPEED", 0},
                                              {"OPTIMIZE_SIZE", 1},
                                              {NULL, 0}};
static const struct spelling core_texts[] = {
    {"ANY_CORE", 0}, {"PCORE_ONLY", 1}, {"ECORE_ONLY", 2}, {NULL, 0}};
static const struct spelling affinity_texts[] = {
    {"NONE", 0}, {"CORE", 1}, {"NUMA", 2}, {"HYBRID_AWARE", 3}, {NULL, 0}};
static const struct spelling schedule_texts[] = {
    {"DEVICE_PRIORITY", 0}, {"ROUND_ROBIN", 1}, {NULL, 0}};
static const struct spelling log_texts[] = {
    {"LOG_NONE", 0},  {"LOG_ERROR", 1}, {"LOG_WARNING", 2}, {"LOG_INFO", 3},
    {"LOG_DEBUG", 4}, {"LOG_TRACE", 5}, {NULL, 0}};
static const struct spelling policy_texts[] = {{"", 0},
                                               {"TENSOR_PARALLEL", 1},
                                               {"PIPELINE_PARALLEL", 2},
                                               {"EXPERT_PARALLEL", 3},
                                               {NULL, 0}};
static const struct spelling partitioner_texts[] = {
    {"NONE", 0}, {"STATIC", 1}, {"AUTO", 2}, {"", 0}, {NULL, 0}};
static const struct spelling snippets_texts[] = {
    {"ENABLE", 0}, {"IGNORE_CALLBACK", 1}, {"DISABLE", 2}, {NULL, 0}};
/* bf16 runs as f32, because f16 lacks the range of bf16 and no kernel computes in bf16. */
static const struct spelling element_texts[] = {
    {"dynamic", XM_DYNAMIC}, {"undefined", XM_DYNAMIC},
    {"f16", XM_F16},         {"f32", XM_F32},
    {"bf16", XM_F32},        {"FP16", XM_F16},
    {"FP32", XM_F32},        {"BF16", XM_F32},
    {"", XM_DYNAMIC},        {NULL, 0}};
/* Caches are stored in f32, f16, blocks of 8 bits or blocks of 4 bits. Each other type becomes the
 * stored type of its size. */
static const struct spelling cache_element_texts[] = {
    {"dynamic", XM_DYNAMIC}, {"undefined", XM_DYNAMIC},
    {"f16", XM_F16},         {"f32", XM_F32},
    {"bf16", XM_F16},        {"i8", XM_I8},
    {"u8", XM_I8},           {"u4", XM_U4},
    {"i4", XM_U4},           {"q8_0", XM_I8},
    {"q4_0", XM_U4},         {"FP16", XM_F16},
    {"FP32", XM_F32},        {"BF16", XM_F16},
    {"", XM_DYNAMIC},        {NULL, 0}};

/* The words of each kind; NULL: a kind whose values are no words. */
static const struct spelling *const spellings[] = {
    [BOOL] = bool_texts,         [MODE] = mode_texts,
    [TRISTATE] = tristate_texts, [QUEUE] = queue_texts,
    [ELEMENT] = element_texts,   [CACHE_ELEMENT] = cache_element_texts,
    [HINT] = hint_texts,         [CACHE] = cache_texts,
    [PRIORITY] = priority_texts, [CORES] = core_texts,
    [LOG] = log_texts,           [NUMERICS] = numerics_texts,
    [AFFINITY] = affinity_texts, [SCHEDULE] = schedule_texts,
    [POLICY] = policy_texts,     [PARTITIONER] = partitioner_texts,
    [SNIPPETS] = snippets_texts,
};

/* Words that unset an option whose kind is a number: xemoe then chooses as if the user had not set
 * it. */
static const struct {
    enum xm_option option;
    const char *text;
} open_texts[] = {
    {XM_OPTION_offload_ratio, "AUTO"},
    {XM_OPTION_offload_ratio, "-1"},
    {XM_OPTION_device_id, ""},
};

static void *
member(const struct xm_config *c, enum xm_option o)
{
    return (char *)c + options[o].offset;
}

/* Value of an option of words, or of kind U64: the kinds that rules can set. */
static int64_t
get_value(const struct xm_config *c, enum xm_option o)
{
    const void *p = member(c, o);
    switch (options[o].kind) {
    case U64:
        return (int64_t)(*(const uint64_t *)p);
    case BOOL:
    case MODE:
    case NUMERICS:
        return *(const bool *)p;
    case TRISTATE:
        return *(const enum xm_tristate *)p;
    case QUEUE:
        return (int)*(const enum xm_queue_type *)p;
    case ELEMENT:
    case CACHE_ELEMENT:
        return *(const enum xm_element *)p;
    default:
        return *(const int *)p;
    }
}

static void
set_value(struct xm_config *c, enum xm_option o, int64_t value)
{
    void *p = member(c, o);
    switch (options[o].kind) {
    case U64:
        *(uint64_t *)p = (uint64_t)value;
        break;
    case BOOL:
    case MODE:
    case NUMERICS:
        *(bool *)p = value != 0;
        break;
    case TRISTATE:
        *(enum xm_tristate *)p = (enum xm_tristate)value;
        break;
    case QUEUE:
        *(enum xm_queue_type *)p = (enum xm_queue_type)value;
        break;
    case ELEMENT:
    case CACHE_ELEMENT:
        *(enum xm_element *)p = (enum xm_element)value;
        break;
    default:
        *(int *)p = (int)value;
        break;
    }
}

/* Compares words; case does not matter for BOOL and TRISTATE. */
static bool
is_same_word(enum kind kind, const char *a, const char *b)
{
    return kind == BOOL || kind == TRISTATE ? xm_same_but_case(a, b) : strcmp(a, b) == 0;
}

static enum xm_status
parse_word(struct xm_config *c, enum xm_option o, const char *value, struct xm_error *err)
{
    char accepted[160] = {0};
    for (const struct spelling *s = spellings[options[o].kind]; s->text; s++) {
        if (is_same_word(options[o].kind, s->text, value)) {
            set_value(c, o, s->value);
            return XM_OK;
        }
        if (s->text[0]) {
            strncat(accepted, accepted[0] ? ", " : "",
                    sizeof(accepted) - 1 - strlen(accepted));
            strncat(accepted, s->text, sizeof(accepted) - 1 - strlen(accepted));
        }
    }
    return xm_fail(err, XM_INVALID, "%s is '%s': expected one of %s", options[o].name,
                   value, accepted);
}

static enum xm_status
refuse_number(enum xm_option o, const char *value, uint64_t max, struct xm_error *err)
{
    char words[32] = {0};
    for (size_t i = 0, n = 0; i < XM_ARRAY_LEN(open_texts); i++) {
        if (open_texts[i].option == o && open_texts[i].text[0])
            n += (size_t)snprintf(words + n, sizeof(words) - n, ", %s",
                                  open_texts[i].text);
    }
    return xm_fail(err, XM_INVALID,
                   "%s is '%s': expected a whole number up to %" PRIu64 "%s",
                   options[o].name, value, max, words);
}

/* Takes decimal digits only; strtoull alone would take signs and spaces. For U64, -1 means the
 * largest number, as programs for OpenVINO write it. */
static enum xm_status
parse_number(struct xm_config *c, enum xm_option o, const char *value,
             struct xm_error *err)
{
    uint64_t max = options[o].kind == U64 ? UINT64_MAX : UINT32_MAX;
    if (options[o].kind == U64 && strcmp(value, "-1") == 0) {
        *(uint64_t *)member(c, o) = max;
        return XM_OK;
    }
    size_t digits = strspn(value, "0123456789");
    errno = 0;
    uint64_t n = strtoull(value, NULL, 10);
    if (digits == 0 || value[digits] || errno || n > max)
        return refuse_number(o, value, max, err);
    if (options[o].kind == U64)
        *(uint64_t *)member(c, o) = n;
    else
        *(uint32_t *)member(c, o) = (uint32_t)n;
    return XM_OK;
}

/* AUTO and NUMA, or their numbers -1 and -2, leave the number of streams to xemoe, which uses 1. */
static enum xm_status
parse_streams(struct xm_config *c, enum xm_option o, const char *value,
              struct xm_error *err)
{
    static const char *const open[] = {"AUTO", "NUMA", "-1", "-2"};
    for (size_t i = 0; i < XM_ARRAY_LEN(open); i++) {
        if (strcmp(value, open[i]) == 0)
            value = "1";
    }
    return parse_number(c, o, value, err);
}

static enum xm_status
parse_float(struct xm_config *c, enum xm_option o, const char *value,
            struct xm_error *err)
{
    char *end;
    float f = xm_parse_float(value, &end);
    const bool is_share = options[o].kind == SHARE;
    if (end == value || *end || !isfinite(f) || (is_share && (f < 0 || f > 1)))
        return xm_fail(err, XM_INVALID, "%s is '%s': expected a number%s",
                       options[o].name, value, is_share ? " from 0 to 1" : "");
    *(float *)member(c, o) = f;
    return XM_OK;
}

static enum xm_status
parse_text(struct xm_config *c, enum xm_option o, const char *value, struct xm_error *err)
{
    size_t n = strlen(value);
    if (n >= XM_OPTION_TEXT)
        return xm_fail(err, XM_INVALID, "%s has %zu characters: at most %d fit",
                       options[o].name, n, XM_OPTION_TEXT - 1);
    memcpy(member(c, o), value, n + 1);
    return XM_OK;
}

static enum xm_status
parse_no_file(enum xm_option o, const char *value, struct xm_error *err)
{
    if (!value[0])
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "%s is '%s': expected an empty path, since there are no custom layers",
                   options[o].name, value);
}

/* Resets an option to its default, as if the user had not set it. */
static void
unset(struct xm_config *c, enum xm_option o)
{
    struct xm_config defaults;
    xm_config_init(&defaults);
    xm_config_copy(c, &defaults, o);
}

static bool
is_left_open(enum xm_option o, const char *value)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(open_texts); i++) {
        if (open_texts[i].option == o && strcmp(open_texts[i].text, value) == 0)
            return true;
    }
    return false;
}

static int
find_option(const char *name)
{
    for (int i = 0; i < XM_OPTION_COUNT; i++)
        if (strcmp(options[i].name, name) == 0)
            return i;
    return -1;
}

enum xm_status
xm_config_set(struct xm_config *c, const char *name, const char *value,
              struct xm_error *err)
{
    int i = find_option(name);
    if (i < 0)
        return xm_fail(err, XM_NOT_FOUND, "there is no property '%s'", name);
    enum xm_option o = (enum xm_option)i;
    if (is_left_open(o, value)) {
        unset(c, o);
        return XM_OK;
    }
    switch (options[o].kind) {
    case U32:
    case U64:
    case THREADS:
        XM_TRY(parse_number(c, o, value, err));
        break;
    case STREAMS:
        XM_TRY(parse_streams(c, o, value, err));
        break;
    case FLOAT:
    case SHARE:
        XM_TRY(parse_float(c, o, value, err));
        break;
    case TEXT:
        XM_TRY(parse_text(c, o, value, err));
        break;
    case NO_FILE:
        XM_TRY(parse_no_file(o, value, err));
        break;
    default:
        XM_TRY(parse_word(c, o, value, err));
        break;
    }
    c->user_set[o] = true;
    return XM_OK;
}

static void
print_value(const struct xm_config *c, enum xm_option o, struct xm_strbuf *out)
{
    const void *p = member(c, o);
    if (options[o].kind == U32 || options[o].kind == STREAMS) {
        xm_strbuf_printf(out, "%" PRIu32, *(const uint32_t *)p);
    } else if (options[o].kind == THREADS) {
        const uint32_t n = *(const uint32_t *)p;
        xm_strbuf_printf(out, "%ld", n ? (long)n : sysconf(_SC_NPROCESSORS_ONLN));
    } else if (options[o].kind == FLOAT || options[o].kind == SHARE) {
        xm_strbuf_printf(out, "%g", (double)*(const float *)p);
    } else if (options[o].kind == U64) {
        xm_strbuf_printf(out, "%" PRIu64, *(const uint64_t *)p);
    } else if (options[o].kind == TEXT || options[o].kind == NO_FILE) {
        xm_strbuf_add(out, p);
    } else {
        const struct spelling *s = spellings[options[o].kind];
        while (s->text && s->value != get_value(c, o))
            s++;
        xm_strbuf_add(out, s->text ? s->text : "?");
    }
}

enum xm_status
xm_config_get(const struct xm_config *c, const char *name, struct xm_strbuf *out,
              struct xm_error *err)
{
    int o = find_option(name);
    if (o < 0)
        return xm_fail(err, XM_NOT_FOUND, "there is no property '%s'", name);
    print_value(c, (enum xm_option)o, out);
    if (!xm_strbuf_ok(out))
        return xm_no_memory(err, "the value of %s", name);
    return XM_OK;
}

bool
xm_config_user_set(const struct xm_config *c, enum xm_option option)
{
    return c->user_set[option];
}

void
xm_config_copy(struct xm_config *c, const struct xm_config *from, enum xm_option o)
{
    memcpy(member(c, o), member(from, o), options[o].bytes);
    c->user_set[o] = from->user_set[o];
}

/* Compares texts up to their NUL only, because the bytes behind it are undefined. */
static bool
same_value(const struct xm_config *a, const struct xm_config *b, enum xm_option o)
{
    return options[o].kind == TEXT
               ? strcmp(member(a, o), member(b, o)) == 0
               : memcmp(member(a, o), member(b, o), options[o].bytes) == 0;
}

bool
xm_config_same_engine(const struct xm_config *a, const struct xm_config *b)
{
    bool same = true;
    for (int i = 0; i < XM_OPTION_COUNT && same; i++)
        same = option_rows[i].list != XM_OPTIONS_ENGINE ||
               same_value(a, b, (enum xm_option)i);
    return same;
}

void
xm_config_print(const struct xm_config *c, struct xm_strbuf *out)
{
    struct xm_config defaults;
    xm_config_init(&defaults);
    for (int i = 0; i < XM_OPTION_COUNT; i++) {
        enum xm_option o = (enum xm_option)i;
        struct xm_strbuf now = {0}, before = {0};
        print_value(c, o, &now);
        print_value(&defaults, o, &before);
        if (strcmp(xm_strbuf_text(&now), xm_strbuf_text(&before)) != 0)
            xm_strbuf_printf(out, "%s = %s\n", options[i].name, xm_strbuf_text(&now));
        xm_strbuf_free(&now);
        xm_strbuf_free(&before);
    }
}

/* ---- rules ------------------------------------------------------------------------ */

struct facts {
    const struct xm_device_info *device;
    const struct xm_program_facts *program;
    const struct xm_config *config;
};

static bool
always(const struct facts *f)
{
    (void)f;
    return true;
}

static bool
wants_accuracy(const struct facts *f)
{
    return f->config->accuracy_mode;
}

/* Other models than language models run in f32, because users compare their results with f32 to all
 * digits. */
static bool
is_stateless(const struct facts *f)
{
    return f->program->is_stateless;
}

static bool
infers_in_f32(const struct facts *f)
{
    return f->config->inference_precision == XM_F32;
}

/* On these GPUs attention is bound by reading the KV cache, so an 8-bit cache helps. */
static bool
known_intel_gpu_without_dpas(const struct facts *f)
{
    const struct xm_device_info *d = f->device;
    return d->kind == XM_DEVICE_GPU && d->vendor_id == INTEL &&
           d->arch != XM_ARCH_UNKNOWN && !d->facts_guessed &&
           !xm_device_has(d, XM_CAP_DPAS);
}

static bool
is_weightless(const struct facts *f)
{
    return f->config->weightless;
}

static bool
is_told_to_keep_weights(const struct facts *f)
{
    return xm_config_user_set(f->config, XM_OPTION_weightless) && !f->config->weightless;
}

static bool
wants_out_of_order(const struct facts *f)
{
    return f->config->queue_type == XM_QUEUE_OUT_OF_ORDER;
}

static bool
has_dpas(const struct facts *f)
{
    return xm_device_has(f->device, XM_CAP_DPAS);
}

static bool
runs_fused_moe(const struct facts *f)
{
    return f->program->has_moe_3gemm_fused_compressed && f->device->arch >= XM_ARCH_XE_LP;
}

static bool
uses_onednn(const struct facts *f)
{
    return f->config->use_onednn == XM_YES;
}

/* A CPU device. With XM_DEVICE_AS it counts as the GPU it pretends to be (xm_device_pretend sets
 * the kind). */
static bool
is_cpu(const struct facts *f)
{
    return f->device->kind == XM_DEVICE_CPU;
}

static bool
is_integrated_xe2(const struct facts *f)
{
    return f->device->integrated && f->device->arch >= XM_ARCH_XE2 &&
           xm_device_has(f->device, XM_CAP_UNIFIED);
}

/* Activations are quantised only if the user has neither set the group size nor asked for accuracy
 * or f32. */
static bool
quantises_activations(const struct facts *f)
{
    const struct xm_config *c = f->config;
    return !xm_config_user_set(c, XM_OPTION_dynamic_quantization_group_size) &&
           is_cpu(f) && xm_device_has(f->device, XM_CAP_SHORT_PAIRS) &&
           !c->accuracy_mode && !infers_in_f32(f);
}

struct rule {
    enum xm_option option;
    int open; /* the value of an option that is not decided yet                      */
    bool (*applies)(const struct facts *f);
    int value;
    const char *why;
};

/* Rules are applied in this order: a rule may read options that earlier rules have set, and the
 * first rule that applies to an option sets it. */
/* clang-format off */
static const struct rule rules[] = {
    {XM_OPTION_inference_precision, XM_DYNAMIC, wants_accuracy, XM_F32, "EXECUTION_MODE_HINT=ACCURACY"},
    {XM_OPTION_inference_precision, XM_DYNAMIC, is_stateless, XM_F32,
     "the model has no states, so it is not a language model"},
    {XM_OPTION_inference_precision, XM_DYNAMIC, always, XM_F16, "f16 halves the memory traffic"},

    {XM_OPTION_kv_cache_precision, XM_DYNAMIC, infers_in_f32, XM_F32, "activations are f32"},
    {XM_OPTION_kv_cache_precision, XM_DYNAMIC, known_intel_gpu_without_dpas, XM_I8,
     "the device is an Intel GPU without DPAS"},
    {XM_OPTION_kv_cache_precision, XM_DYNAMIC, always, XM_F16, "the default"},

    {XM_OPTION_use_onednn, XM_AUTO, wants_out_of_order, XM_NO,
     "GPU_QUEUE_TYPE=out_of_order is set"},
    {XM_OPTION_use_onednn, XM_AUTO, has_dpas, XM_YES, "the device has DPAS"},
    {XM_OPTION_use_onednn, XM_AUTO, runs_fused_moe, XM_YES,
     "the model has fused MoE layers and the device is xe_lp or later"},
    {XM_OPTION_use_onednn, XM_AUTO, always, XM_NO, "the device has no DPAS and runs no fused MoE layers"},

    {XM_OPTION_queue_type, XM_QUEUE_AUTO, uses_onednn, XM_QUEUE_IN_ORDER,
     "oneDNN needs an in-order queue"},
    {XM_OPTION_queue_type, XM_QUEUE_AUTO, always, XM_QUEUE_IN_ORDER,
     "no measurement shows a gain from an out-of-order queue"},

    /* If ENABLE_WEIGHTLESS is set it wins: CACHE_MODE is set to agree with it. */
    {XM_OPTION_cache_mode, XM_CACHE_SPEED, is_weightless, XM_CACHE_SIZE,
     "ENABLE_WEIGHTLESS=YES"},
    {XM_OPTION_cache_mode, XM_CACHE_SIZE, is_told_to_keep_weights, XM_CACHE_SPEED,
     "ENABLE_WEIGHTLESS=NO"},

    {XM_OPTION_dynamic_quantization_group_size, 0, quantises_activations, XM_FACTOR_FINE,
     "the device is a processor with AVX2, and activations are f16"},

    {XM_OPTION_copy_weights, XM_AUTO, is_cpu, XM_NO, "the device reads host memory"},
    {XM_OPTION_copy_weights, XM_AUTO, is_integrated_xe2, XM_NO,
     "host and device share one memory"},
    {XM_OPTION_copy_weights, XM_AUTO, always, XM_YES, "device memory is faster"},
};
/* clang-format on */

static void
apply_rules(struct xm_config *c, const struct facts *facts, struct xm_strbuf *why)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(rules); i++) {
        const struct rule *r = &rules[i];
        if (get_value(c, r->option) != r->open || !r->applies(facts))
            continue;
        set_value(c, r->option, r->value);
        if (!why)
            continue;
        xm_strbuf_printf(why, "%s = ", options[r->option].name);
        print_value(c, r->option, why);
        xm_strbuf_printf(why, ": %s\n", r->why);
    }
}

/* Sets options that are still undecided to the value of another option. */
static void
follow(struct xm_config *c, struct xm_strbuf *why)
{
    static const enum xm_option followers[][2] = {
        {XM_OPTION_key_cache_precision, XM_OPTION_kv_cache_precision},
        {XM_OPTION_value_cache_precision, XM_OPTION_kv_cache_precision},
    };
    for (size_t i = 0; i < XM_ARRAY_LEN(followers); i++) {
        const enum xm_option o = followers[i][0], leader = followers[i][1];
        if (get_value(c, o) != XM_DYNAMIC)
            continue;
        set_value(c, o, get_value(c, leader));
        if (!why)
            continue;
        xm_strbuf_printf(why, "%s = ", options[o].name);
        print_value(c, o, why);
        xm_strbuf_printf(why, ": the same as %s\n", options[leader].name);
    }
}

uint32_t
xm_config_factor_columns(const struct xm_config *c)
{
    const uint64_t size = c->dynamic_quantization_group_size;
    if (!size)
        return 0;
    return size < XM_FACTOR_COARSE ? XM_FACTOR_FINE : XM_FACTOR_COARSE;
}

/* tokens in one run: more are not faster, but take memory */
enum { MOST_TOKENS = 1 << 16 };

enum xm_status
xm_config_check(const struct xm_config *c, struct xm_error *err)
{
    if (c->use_onednn == XM_YES && c->queue_type == XM_QUEUE_OUT_OF_ORDER)
        return xm_fail(err, XM_INVALID,
                       "GPU_QUEUE_TYPE=out_of_order cannot be combined with "
                       "GPU_USE_ONEDNN=YES, because oneDNN needs an in-order queue: drop "
                       "GPU_QUEUE_TYPE, or set GPU_USE_ONEDNN=NO");
    if (c->ubatch < 1 || c->ubatch > MOST_TOKENS)
        return xm_fail(err, XM_INVALID, "XM_UBATCH is %u: expected 1 to %d tokens",
                       c->ubatch, MOST_TOKENS);
    if (c->kv_block_tokens < 1 || (c->kv_block_tokens & (c->kv_block_tokens - 1)))
        return xm_fail(err, XM_INVALID,
                       "XM_KV_BLOCK_TOKENS is %u: expected a power of two",
                       c->kv_block_tokens);
    if (c->offload_ratio > 100)
        return xm_fail(err, XM_INVALID,
                       "OFFLOAD_RATIO is %u: expected a percentage, 0 to 100, or AUTO",
                       c->offload_ratio);
    return XM_OK;
}

enum xm_status
xm_config_finalise(struct xm_config *c, const struct xm_device_info *device,
                   const struct xm_program_facts *program, struct xm_strbuf *why,
                   struct xm_error *err)
{
    static const struct xm_program_facts no_program;
    if (c->finalised)
        return XM_OK;
    const struct facts facts = {device, program ? program : &no_program, c};
    apply_rules(c, &facts, why);
    follow(c, why);
    XM_TRY(xm_config_check(c, err));
    c->finalised = true;
    return XM_OK;
}
