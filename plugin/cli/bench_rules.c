/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of llama-bench for which xemoe has only one behaviour: the value that describes it is
 * accepted, others are refused. Options about a processor's threads concern the driver; other
 * devices ignore them. Also converts llama-bench's spelling, one dash and several letters.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/bench_parts.h"
#include "plugin/program_util/lines.h"

#define THREADS "the driver chooses its threads, one for each compute unit"
#define IGNORED                                                                          \
    "ignored on a GPU, refused on a processor, whose driver chooses its threads"

/* clang-format off */
static const struct rule {
    char letter;
    const char *word, *name; /* word: llama-bench's, without its dash; NULL: none */
    const char *value, *help;
    /* accepted values, separated by spaces; "": the empty value; NULL: the option is about
     * threads */
    const char *taken;
} rules[] = {
    { 't', NULL,   "threads",         "N",    "ignored on a GPU; on a processor N must be its number of compute units", NULL },
    { 'C', NULL,   "cpu-mask",        "MASK", IGNORED, NULL },
    { 0,   NULL,   "cpu-strict",      "0|1",  IGNORED, NULL },
    { 0,   NULL,   "poll",            "N",    IGNORED, NULL },
    { 0,   NULL,   "prio",            "N",    IGNORED, NULL },
    { 0,   NULL,   "numa",            "MODE", IGNORED, NULL },
    { 0,   "fa",   "flash-attn",      "MODE", "auto, on or 1 (-fa): attention never stores all scores", "auto on 1 -1" },
    { 0,   "ngl",  "n-gpu-layers",    "N",    "-1, 99, 999, all or auto (-ngl): all layers are on the device", "-1 99 999 all auto" },
    { 0,   "ncmoe", "n-cpu-moe",      "N",    "0 (-ncmoe): --offload says which experts stay in host memory", "0" },
    { 0,   "sm",   "split-mode",      "MODE", "none or layer (-sm): --device says which devices share a model",      "none layer" },
    { 0,   "mg",   "main-gpu",        "I",    "0 (-mg): --device chooses the device",                    "0" },
    { 0,   "ts",   "tensor-split",    "LIST", "0 (-ts): --device states the shares, as GPU.0/GPU.1(3/1)",                  "0 1" },
    { 0,   "ot",   "override-tensor", "LIST", "nothing (-ot): --offload says which experts stay in host memory", "" },
    { 0,   "nkvo", "no-kv-offload",   "0|1",  "0 (-nkvo): the KV cache is on the device",           "0" },
    { 0,   "lm",   "load-mode",       "MODE", "mmap (-lm): files are mapped",                     "mmap" },
    { 0,   "mmp",  "mmap",            "0|1",  "1 (-mmp): files are mapped",                       "1" },
    { 0,   "dio",  "direct-io",       "0|1",  "0 (-dio): files are mapped",                       "0" },
    { 0,   "embd", "embeddings",      "0|1",  "0 (-embd): logits are computed",                   "0" },
    { 0,   "nopo", "no-op-offload",   "0|1",  "0 (-nopo): the device runs all operations",        "0" },
    { 0,   NULL,   "no-host",         "0|1",  "0: host memory is used where it helps",            "0" },
};

/* llama-bench's words for options that have an effect. */
static const struct {
    const char *word, *name;
} spellings[] = {
    { "np",  "parallel" },       { "pg",  "prompt-gen" },     { "ub",  "ubatch-size" },  { "ctk", "cache-type-k" },
    { "ctv", "cache-type-v" },   { "oe",  "output-err" },   { "dev", "device" },
};
/* clang-format on */
_Static_assert(XM_ARRAY_LEN(rules) <= XM_BENCH_MOST_RULES, "a member for each");

size_t
xm_bench_rules_options(struct xm_cli_option out[XM_BENCH_MOST_RULES])
{
    for (size_t i = 0; i < XM_ARRAY_LEN(rules); i++)
        out[i] = (struct xm_cli_option){rules[i].letter,
                                        rules[i].name,
                                        XM_CLI_TEXTS,
                                        offsetof(struct xm_bench_args, ruled[0]) +
                                            i * sizeof(struct xm_cli_texts),
                                        rules[i].value,
                                        rules[i].help};
    return XM_ARRAY_LEN(rules);
}

/* ---- values ------------------------------------------------------------------------ */

/* Whether `word` (n characters) is one of the words of `list`. */
static bool
is_among(const char *list, const char *word, size_t n)
{
    for (size_t length;; list += length + 1) {
        length = strcspn(list, " ");
        if (length == n && memcmp(list, word, n) == 0)
            return true;
        if (list[length] == '\0')
            return false;
    }
}

/* Whether each of the given values, separated by commas, is one of `taken`. */
static bool
all_taken(const struct xm_cli_texts *given, const char *taken)
{
    for (size_t i = 0; i < given->n; i++) {
        const char *at = given->list[i];
        for (size_t n;; at += n + 1) {
            n = strcspn(at, ",");
            if (!is_among(taken, at, n))
                return false;
            if (at[n] == '\0')
                break;
        }
    }
    return true;
}

int
xm_bench_rules_check(const struct xm_bench_args *a)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(rules); i++) {
        if (rules[i].taken && !all_taken(&a->ruled[i], rules[i].taken))
            return xm_cli_usage("option --%s takes %s; found '%s'", rules[i].name,
                                rules[i].help, a->ruled[i].list[0]);
    }
    return XM_EXIT_OK;
}

void
xm_bench_rules_say_ignored(const struct xm_bench_args *a)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(rules); i++) {
        if (!rules[i].taken && a->ruled[i].n)
            xm_say("option --%s has no effect on a GPU and is ignored", rules[i].name);
    }
}

int
xm_bench_rules_check_threads(const struct xm_bench_args *a,
                             const struct xm_device_info *d)
{
    char units[XM_CLI_NUMBER];
    snprintf(units, sizeof(units), "%" PRIu32, d->compute_units);
    for (size_t i = 0; i < XM_ARRAY_LEN(rules) && d->kind == XM_DEVICE_CPU; i++) {
        const struct xm_cli_texts *given = &a->ruled[i];
        if (rules[i].taken || given->n == 0)
            continue;
        if (rules[i].letter != 't' || !all_taken(given, units))
            return xm_cli_usage("option --%s: %s, %s here (PoCL takes "
                                "POCL_MAX_PTHREAD_COUNT); found '%s'",
                                rules[i].name, THREADS, units, given->list[0]);
    }
    return XM_EXIT_OK;
}

/* ---- spellings --------------------------------------------------------------------- */

/* Returns the long name of a llama-bench word; NULL: it is none. */
static const char *
long_name(const char *word)
{
    if (word[0] != '-' || word[1] == '-')
        return NULL;
    for (size_t i = 0; i < XM_ARRAY_LEN(spellings); i++) {
        if (strcmp(word + 1, spellings[i].word) == 0)
            return spellings[i].name;
    }
    for (size_t i = 0; i < XM_ARRAY_LEN(rules); i++) {
        if (rules[i].word && strcmp(word + 1, rules[i].word) == 0)
            return rules[i].name;
    }
    return NULL;
}

char **
xm_bench_rules_long_names(int argc, char **argv)
{
    enum { WORD = 32 }; /* characters of the longest word, with dashes and NUL */
    const size_t n = (size_t)argc, pointers = (n + 1) * sizeof(char *);
    char **words = xm_calloc(1, pointers + n * WORD);
    if (!words)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const char *name = long_name(argv[i]);
        char *room = (char *)words + pointers + i * WORD;
        words[i] = name ? room : argv[i];
        if (name)
            snprintf(room, WORD, "--%s", name);
    }
    return words;
}
