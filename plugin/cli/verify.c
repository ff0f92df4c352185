/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe verify: compares every step on the device with the host reference on the same operands
 * (plugin/step_check.h); or the logits with those of another program, or of other numerics.
 */
#include "plugin/cli/verify.h"

#include <string.h>

#include "plugin/cli/prompt_file.h"
#include "plugin/mesh/mesh_plan.h"
#include "plugin/pipeline/token_runner.h"
#include "runtime/collective_mpi.h"
#include "runtime/util/log.h"

struct args {
    struct xm_cli_target target; /* first: the common options */
    const char *prompt, *file, *ids, *against;
    uint64_t decode; /* UINT64_MAX: not given */
    bool numerics, every_kernel, inner;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The tokens", "xemoe verify model.gguf -p 'The capital of France is' --decode 4"),
    { 'p', "prompt", XM_CLI_TEXT,  AT(prompt), "TEXT", "text whose tokens are run; default: the first token ids of the vocabulary" },
    { 'f', "file",   XM_CLI_WORD,  AT(file),   "FILE", "a file with this text; -: standard input" },
    { 0,   "ids",    XM_CLI_WORD,  AT(ids),    "IDS",  "token ids instead of a text: 1,2,3 or @FILE" },
    { 0,   "decode", XM_CLI_WHOLE, AT(decode), "N",    "decode N tokens after the prompt, one by one (2)" },
    { 0,   "every-kernel", XM_CLI_FLAG, AT(every_kernel), NULL, "run again until every kernel that a step can use has been compared" },
    { 0,   "inner", XM_CLI_FLAG, AT(inner), NULL, "with several devices: compare the results of every step, not only the values that devices exchange" },
    XM_CLI_GROUP("What is compared instead", "xemoe verify model.gguf --ids 1,2,3 --numerics"),
    { 0,   "against", XM_CLI_WORD, AT(against), "FILE", "compare the logits with those in this file instead: .npy with float32 of every position or the last one; or plain float32 (.bin)" },
    { 0,   "numerics", XM_CLI_FLAG, AT(numerics), NULL,  "show instead how rounding as in training (XM_NUMERICS=bf16) changes the logits" },
};
#undef AT
/* clang-format on */

enum { DEFAULT_IDS = 12, DEFAULT_DECODE = 2 };

/* Whether steps are compared: neither --against nor --numerics, which compare logits, is given. */
static bool
checks_steps(const struct args *a)
{
    return !a->against && !a->numerics;
}

static bool
names_several(const struct args *a)
{
    uint32_t rank;
    return xm_mesh_list(a->target.device) || xm_mpi_ranks(&rank) > 1;
}

static bool
default_ids(uint64_t vocabulary, struct xm_token_list *out)
{
    for (int32_t i = 0; i < DEFAULT_IDS && (uint64_t)i < vocabulary; i++) {
        if (!xm_token_list_add(out, i))
            return false;
    }
    return true;
}

static int
run_model(struct xm_cli_model *m, const struct args *a, const struct xm_strbuf *text,
          struct xm_other_logits *other)
{
    static const struct xm_error no_memory = {XM_NO_MEMORY,
                                              "out of memory for token ids"};
    struct xm_token_list ids = {0};
    int code = XM_EXIT_OK;
    if (checks_steps(a) && !m->compiled->ops->steps)
        return xm_cli_usage(
            "option -d: device %s offers no steps to compare with the reference",
            a->target.device);
    if (a->ids || text->n)
        code = xm_cli_prompt(m, a->ids, xm_strbuf_text(text), text->n, &ids);
    else if (!default_ids(xm_compiled_vocabulary(m->compiled), &ids))
        code = xm_cli_failed(&no_memory);
    if (code == XM_EXIT_OK)
        code = a->against ? xm_verify_against(m, other, &ids, a->target.json)
               : a->numerics
                   ? xm_verify_numerics(m, &a->target, &ids)
                   : xm_verify_steps(m, &a->target, &ids, a->decode, a->every_kernel);
    xm_token_list_free(&ids);
    return code;
}

static int
check(const struct args *a)
{
    const int given = (a->prompt != NULL) + (a->file != NULL) + (a->ids != NULL);
    if (given > 1)
        return xm_cli_usage("give only one of -p TEXT, -f FILE and --ids IDS");
    if (a->against && given == 0)
        return xm_cli_usage(
            "which tokens do the logits belong to? Give -p TEXT, -f FILE or --ids IDS");
    if (a->against && a->numerics)
        return xm_cli_usage("give only one of --against and --numerics");
    if (!checks_steps(a) && a->decode != UINT64_MAX)
        return xm_cli_usage("--%s runs only the given tokens: omit --decode",
                            a->against ? "against" : "numerics");
    if (!checks_steps(a) && a->every_kernel)
        return xm_cli_usage("--%s compares no kernels: omit --every-kernel",
                            a->against ? "against" : "numerics");
    if (a->every_kernel && xm_mesh_list(a->target.device))
        return xm_cli_usage("--every-kernel needs one device, because with several "
                            "devices only exchanged values are compared");
    if (a->inner && (!checks_steps(a) || !names_several(a)))
        return xm_cli_usage("--inner needs several devices, as -d GPU.0,GPU.1; with one "
                            "device all steps are compared");
    if (checks_steps(a) &&
        xm_cli_refuse_reference(a->target.device, "-d",
                                "is what steps are compared with: give another device"))
        return XM_EXIT_USAGE;
    if (a->every_kernel && xm_env("XM_FORCE"))
        return xm_cli_usage("--every-kernel chooses the kernels: unset XM_FORCE");
    return a->ids ? xm_cli_ids_check(a->ids, true) : XM_EXIT_OK;
}

static int
read_text(const struct args *a, struct xm_strbuf *text)
{
    struct xm_error err = {0};
    if (a->prompt)
        xm_strbuf_add(text, a->prompt);
    else if (a->file && xm_prompt_file_read(a->file, text, &err) != XM_OK)
        return xm_cli_failed(&err);
    if (a->file && text->n == 0)
        return xm_cli_usage("%s is empty: there is nothing to run",
                            xm_prompt_file_name(a->file));
    return a->prompt && text->n == 0
               ? xm_cli_usage("the prompt is empty: there is nothing to run")
               : XM_EXIT_OK;
}

static int
run(struct args *a)
{
    const struct xm_compile_options compile = {.keep_graph = checks_steps(a),
                                               .shows_inner = a->inner};
    struct xm_strbuf text = {0};
    struct xm_other_logits other = {0};
    struct xm_cli_model m;
    a->target.needs_tokenizer = a->prompt || a->file ? XM_CLI_IDS_INSTEAD : NULL;
    a->target.is_exact = true;
    a->target.check = xm_cli_ids_check_vocabulary;
    a->target.check_ctx = a->ids;
    if (a->numerics) /* the reference of the comparison, whatever the environment says */
        a->target.numerics = "f32";
    if (a->every_kernel)
        xm_verify_force(1);
    int code = read_text(a, &text);
    if (code == XM_EXIT_OK && a->against)
        code = xm_other_logits_read(a->against, &other);
    if (code == XM_EXIT_OK)
        code = xm_cli_model_open(&m, &a->target, &compile);
    if (code == XM_EXIT_OK) {
        code = run_model(&m, a, &text, &other);
        xm_cli_model_close(&m);
    }
    xm_other_logits_free(&other);
    xm_strbuf_free(&text);
    return code;
}

int
xm_cli_verify(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage =
            "xemoe verify MODEL [-p TEXT | -f FILE | --ids IDS] [--decode N] "
            "[--every-kernel]\n"
            "                    [--inner] [options]\n"
            "       xemoe verify MODEL (-p TEXT | -f FILE | --ids IDS) --against FILE\n"
            "       xemoe verify MODEL [-p TEXT | -f FILE | --ids IDS] --numerics",
        .about =
            "Runs tokens on the device and compares the result of every step with "
            "the\nhost reference on the same operands, row by row. This is slow, because "
            "the\nreference is plain code. With several devices, every value that they "
            "exchange is\ncompared with that of the whole program on the first device; "
            "with --inner, every\nresult of a step. With --every-kernel the model is "
            "compiled and run again, each\ntime with the next kernel that each step can "
            "use, fast or slow.\n\nWith --against the logits are compared with those "
            "that another program has\ncomputed for the same tokens: prints the error of "
            "each position, and the\nlikeliest tokens of the worst one. The exit code is "
            "1 if the mean-removed error\nover all positions is 1e-2 or more.\n\nWith "
            "--numerics the logits of the model are compared with those of the "
            "same\nmodel with embeddings, router inputs and per-layer embeddings rounded "
            "to bf16,\nas training does.\n",
        XM_CLI_TARGET_AND(options),
    };
    struct args a = {.decode = UINT64_MAX};
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    code = check(&a);
    if (code != XM_EXIT_OK)
        return code;
    if (a.decode == UINT64_MAX)
        a.decode = DEFAULT_DECODE;
    return run(&a);
}
