/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe compile: writes a compiled model to a file, for `xemoe generate -m FILE` and `xemoe chat -m
 * FILE`.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/info.h"
#include "plugin/program_util/progress.h"
#include "runtime/util/new_file.h"

struct args {
    struct xm_cli_target target; /* first: the common options */
    const char *file;
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The result", "xemoe compile model.gguf -o model.blob"),
    { 'o', "output", XM_CLI_WORD, AT(file), "FILE", "the file to write (required)", "out" },
};
#undef AT
/* clang-format on */

/* Refuses to replace an existing file unless it is a compiled model, because a typing error could
 * overwrite the model itself. */
static int
check_output(const char *path)
{
    struct stat st;
    struct xm_import old;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return XM_EXIT_OK;
    const bool is_one =
        xm_import_open(path, &old, NULL) == XM_OK && xm_blob_recognises(&old);
    xm_import_close(&old);
    return is_one ? XM_EXIT_OK
                  : xm_cli_usage(
                        "%s exists and is not a compiled model, so it is not replaced",
                        path);
}

/* Refuses a compiled file as input, because compiling it would only copy it and ignore the
 * options. */
static int
check_input(const char *path)
{
    struct xm_import from;
    struct xm_strbuf model = {0};
    struct xm_error err = {0};
    if (xm_import_open(path, &from, NULL) == XM_OK && xm_blob_recognises(&from)) {
        const bool is_there = xm_info_model_of(&from, &model, NULL) == XM_OK;
        xm_fail(&err, XM_UNSUPPORTED,
                "%.150s is a compiled model already: give the model from which it was "
                "compiled%s%.300s",
                path, is_there ? ", " : "", is_there ? xm_strbuf_text(&model) : "");
    }
    xm_strbuf_free(&model);
    xm_import_close(&from);
    return err.status == XM_OK ? XM_EXIT_OK : xm_cli_failed(&err);
}

static int
print_json(const char *file, uint64_t bytes, double seconds)
{
    struct xm_error err = {0};
    struct xm_json_out j;
    xm_json_begin(&j);
    xm_json_add_text(&j, NULL, "file", file, strlen(file));
    xm_json_add_whole(&j, NULL, "bytes", bytes);
    xm_json_add_real(&j, NULL, "compile_s", seconds);
    const enum xm_status s = xm_json_print(&j, &err);
    xm_json_end(&j);
    return s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}

static int
export_model(const struct xm_cli_model *m, const struct args *a)
{
    struct xm_error err = {0};
    struct stat st;
    xm_progress_show("writing %s", a->file);
    enum xm_status s = xm_compiled_export_file(m->compiled, a->file, &err);
    xm_progress_clear();
    if (s != XM_OK)
        return xm_cli_failed(&err);
    const bool is_there = stat(a->file, &st) == 0;
    const uint64_t bytes = is_there ? (uint64_t)st.st_size : 0;
    if (a->target.json)
        return print_json(a->file, bytes, m->load_s);
    if (is_there)
        printf("%s: %.1f MiB, compiled in %.1f s\n", a->file, (double)bytes / 1048576.0,
               m->load_s);
    return xm_cli_flush();
}

int
xm_cli_compile(int argc, char **argv)
{
    struct xm_cli_option common[XM_CLI_N_TARGET_OPTIONS];
    const struct xm_cli_spec spec = {
        .usage = "xemoe compile MODEL -o FILE [options]",
        .about = "Writes a compiled model to a file, with which 'xemoe generate -m FILE' "
                 "and\n'xemoe chat -m FILE' start faster if its kernels are not in "
                 "--cache-dir yet. The\nfile refers to the model's weights, which must "
                 "not change, and is valid only for\nthis device, its driver and this "
                 "version of xemoe.\n",
        XM_CLI_MODEL(XM_CLI_TARGET(model)),
        .common = common,
        .n_common = XM_CLI_N_TARGET_OPTIONS,
        .own = options,
        .n_own = XM_ARRAY_LEN(options),
    };
    struct args a = {0};
    struct xm_cli_model m;
    bool done;
    memcpy(common, xm_cli_target_options, sizeof(common));
    xm_cli_leave_out_reference(common, XM_CLI_N_TARGET_OPTIONS);
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    if (!a.file)
        return xm_cli_usage("which file? Give -o FILE");
    code = xm_cli_refuse_reference(a.target.device, "-d", "has nothing to compile");
    if (code == XM_EXIT_OK)
        code = check_input(a.target.model);
    if (code == XM_EXIT_OK)
        code = check_output(a.file);
    if (code != XM_EXIT_OK)
        return code;
    /* the check above has read the old file, which may be replaced */
    xm_new_file_spare_inputs(false);
    a.target.refers = true;
    /* so that the file also has code that drivers compile at launches */
    a.target.warm_up = XM_CLI_WARM_UP_ALWAYS;
    const struct xm_compile_options compile = {.sampled_logits = true};
    code = xm_cli_model_open(&m, &a.target, &compile);
    if (code != XM_EXIT_OK)
        return code;
    code = export_model(&m, &a);
    xm_cli_model_close(&m);
    return code;
}
