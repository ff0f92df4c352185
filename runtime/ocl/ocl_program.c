/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs: one for each pair of source and defines, loaded from the cache on disk or built by the
 * driver's compiler.
 *
 * The cache holds a program's binary if the driver returns one (XM_CAP_BINARIES), or the files in
 * which the driver keeps compiled code (XM_CAP_DRIVER_FILES). PoCL preprocesses the source before
 * it looks for these files, which takes longer than the rest of a start. Therefore a program that
 * was built from source is built again from the bitcode that PoCL made of it; the files of the
 * second program and the bitcode are stored, and later runs build from the bitcode. PoCL does not
 * tell which files belong to a program, and other threads and processes may write files, too. So
 * each source ends with an empty kernel named after the program's key (the mark): bitcode without
 * that kernel belongs to another program.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/driver_files.h"
#include "runtime/kernel_cache.h"
#include "runtime/kernel_source.h"
#include "runtime/ocl/ocl.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"
#include "runtime/util/strbuf.h"

struct build {
    struct ocl_engine *engine;
    const char *name;
    struct xm_strbuf source, options;
    struct ocl_program *out;
    struct xm_error *err;
};

/* Copies the most telling line of a build log: the first with "error", else the first line. */
static void
pick_line(const char *log, char *line, size_t n)
{
    const char *at = strstr(log, "error");
    if (!at)
        at = log + strspn(log, "\n\r ");
    while (at > log && at[-1] != '\n')
        at--;
    size_t len = strcspn(at, "\n\r");
    if (len > n - 1)
        len = n - 1;
    memcpy(line, at, len);
    line[len] = 0;
}

/* Returns the build log, which the caller frees; NULL: there is none. */
static char *
read_log(const struct build *b)
{
    size_t n = 0;
    clGetProgramBuildInfo(b->out->program, b->engine->device, CL_PROGRAM_BUILD_LOG, 0,
                          NULL, &n);
    char *log = n > 2 ? xm_calloc(1, n + 1) : NULL;
    if (log)
        clGetProgramBuildInfo(b->out->program, b->engine->device, CL_PROGRAM_BUILD_LOG, n,
                              log, NULL);
    return log;
}

/* Reports a failed build. Lack of memory or of a device or compiler is not the kernel's fault;
 * every other code means that the compiler refuses the kernel (XM_NOT_BUILT). */
static enum xm_status
fail_build(const struct build *b, cl_int code, struct xm_build_report *report)
{
    char line[300] = "the driver returned no build log";
    if (code == CL_OUT_OF_HOST_MEMORY || code == CL_OUT_OF_RESOURCES ||
        code == CL_DEVICE_NOT_AVAILABLE || code == CL_COMPILER_NOT_AVAILABLE)
        return xm_ocl_fail(b->err, code, "clBuildProgram", "kernel '%s'", b->name);
    report->log = read_log(b);
    if (report->log)
        pick_line(report->log, line, sizeof(line));
    return xm_fail(b->err, XM_NOT_BUILT, "clBuildProgram gave %s (%d): kernel '%s': %s",
                   xm_ocl_error_text(code), code, b->name, line);
}

/* Builds the program. SIGINT is not blocked as by xm_ocl_keep_signals, because a build may take
 * long. */
static cl_int
build_program(const struct build *b)
{
    const double start = xm_now();
    struct ocl_handlers handlers;
    if (xm_device_has(&b->engine->base.info, XM_CAP_DRIVER_FILES))
        xm_driver_files_warn();
    xm_ocl_keep_handlers(&handlers);
    cl_int code = clBuildProgram(b->out->program, 1, &b->engine->device,
                                 xm_strbuf_text(&b->options), NULL, NULL);
    xm_ocl_restore_handlers(&handlers);
    if (xm_debug_on(XM_DEBUG_BUILD)) {
        char *log = read_log(b);
        xm_debug(XM_DEBUG_BUILD, "%s (%s) %.0f ms: %s\n%s", b->name,
                 xm_strbuf_text(&b->options), 1e3 * (xm_now() - start),
                 code == CL_SUCCESS ? "built" : xm_ocl_error_text(code), log ? log : "");
        xm_free(log);
    }
    return code;
}

/* ---- the cache ----------------------------------------------------------------------- */

static const char *
cache_dir(const struct ocl_engine *e)
{
    return e->base.config.cache_dir;
}

/* Makes a program from its binary; false: the driver refuses it. */
static bool
load_binary(struct build *b, const unsigned char *binary, size_t n)
{
    cl_int status, code;
    b->out->program = clCreateProgramWithBinary(b->engine->context, 1, &b->engine->device,
                                                &n, &binary, &status, &code);
    if (b->out->program && build_program(b) == CL_SUCCESS)
        return true;
    xm_ocl_program_release(b->out);
    return false;
}

static cl_int
build_source(struct build *b)
{
    const char *text = xm_strbuf_text(&b->source);
    cl_int code;
    b->out->program =
        clCreateProgramWithSource(b->engine->context, 1, &text, NULL, &code);
    return b->out->program ? build_program(b) : code;
}

/* The name of the empty kernel at the end of a source. */
struct mark {
    char text[48];
};

static struct mark
mark_of(const struct xm_kernel_key *key)
{
    struct mark m;
    snprintf(m.text, sizeof(m.text), "xm_%016" PRIx64 "%016" PRIx64, key->hash[1],
             key->hash[0]);
    return m;
}

/* Whether the program contains the mark, so that it was made from this source. */
static bool
has_mark(const struct build *b)
{
    size_t n = 0;
    cl_program program = b->out->program;
    clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &n);
    char *names = n ? xm_calloc(1, n + 1) : NULL;
    const bool has = names &&
                     clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, n, names, NULL) ==
                         CL_SUCCESS &&
                     strstr(names, mark_of(&b->out->key).text) != NULL;
    xm_free(names);
    return has;
}

static bool
load_bitcode(struct build *b, const struct xm_strbuf *bitcode)
{
    return load_binary(b, (const unsigned char *)xm_strbuf_text(bitcode), bitcode->n);
}

/* Builds the program from the bitcode among the driver's files, or from source if there is none. */
static bool
build_of_files(struct build *b)
{
    struct xm_strbuf bitcode = {0};
    const bool built =
        xm_driver_files_read_bitcode(b->out->files, XM_BITCODE_INPUT, &bitcode)
            ? load_bitcode(b, &bitcode) && has_mark(b)
            : build_source(b) == CL_SUCCESS;
    xm_strbuf_free(&bitcode);
    return built;
}

/* Puts the driver's files where it looks for them and builds the program. False: the driver did not
 * use them, or the build failed. */
static bool
load_files(struct build *b, const void *bytes, size_t n)
{
    char *name = b->out->files;
    const int64_t start = xm_driver_files_now();
    if (!xm_driver_files_unpack(bytes, n, name, sizeof(b->out->files)))
        return false;
    b->out->n_files = xm_driver_files_count(name);
    if (build_of_files(b) && xm_driver_files_used(name, start))
        return true;
    xm_ocl_program_release(b->out);
    name[0] = 0;
    b->out->n_files = 0;
    return false;
}

static bool
load_bytes(struct build *b, const void *bytes, size_t n)
{
    return xm_device_has(&b->engine->base.info, XM_CAP_BINARIES)
               ? load_binary(b, bytes, n)
               : load_files(b, bytes, n);
}

static bool
load_program(struct build *b)
{
    size_t n = 0;
    void *bytes = b->out->on_disk
                      ? xm_kernel_cache_load(cache_dir(b->engine), &b->out->key, &n)
                      : NULL;
    bool loaded = bytes && load_bytes(b, bytes, n);
    xm_free(bytes);
    if (loaded || !b->out->has_key)
        return loaded;
    const void *offered = xm_engine_offered(&b->engine->base, &b->out->key, &n);
    return offered && load_bytes(b, offered, n);
}

static bool
read_binary(const struct ocl_program *p, struct xm_strbuf *out)
{
    size_t n = 0;
    if (clGetProgramInfo(p->program, CL_PROGRAM_BINARY_SIZES, sizeof(n), &n, NULL) !=
        CL_SUCCESS)
        return false;
    unsigned char *bytes = n ? xm_malloc(n) : NULL;
    bool ok = bytes && clGetProgramInfo(p->program, CL_PROGRAM_BINARIES, sizeof(bytes),
                                        &bytes, NULL) == CL_SUCCESS;
    if (ok)
        xm_strbuf_add_n(out, (const char *)bytes, n);
    xm_free(bytes);
    return ok && xm_strbuf_ok(out);
}

bool
xm_ocl_program_bytes(const struct ocl_engine *e, const struct ocl_program *p,
                     struct xm_strbuf *out)
{
    if (!p->has_key)
        return false;
    return xm_device_has(&e->base.info, XM_CAP_BINARIES)
               ? read_binary(p, out)
               : p->files[0] && xm_driver_files_pack(p->files, out);
}

static void
store(struct ocl_engine *e, const struct ocl_program *p)
{
    struct xm_strbuf bytes = {0};
    if (xm_driver_files_may_store() && xm_ocl_program_bytes(e, p, &bytes) &&
        xm_kernel_cache_store(cache_dir(e), &p->key, xm_strbuf_text(&bytes), bytes.n))
        atomic_fetch_add(&e->base.cache_bytes, bytes.n);
    xm_strbuf_free(&bytes);
}

bool
xm_ocl_program_update(struct ocl_engine *e, struct ocl_program *p)
{
    const uint64_t before = p->n_files;
    if (!p->files[0])
        return false;
    p->n_files = xm_driver_files_count(p->files);
    if (p->n_files == before)
        return false;
    if (p->on_disk)
        store(e, p);
    return true;
}

/* ---- building ------------------------------------------------------------------------ */

/* Builds the program from this bitcode and finds its files, which become p->files. False: that
 * failed. If the bitcode lacks the mark, the folder found before belongs to another program, so
 * p->files becomes "". */
static bool
try_bitcode(struct build *b, const struct xm_strbuf *bitcode)
{
    struct ocl_program *p = b->out;
    char files[sizeof(p->files)];
    const int64_t start = xm_driver_files_now();
    if (!load_bitcode(b, bitcode))
        return false;
    const bool is_ours = has_mark(b);
    if (!is_ours)
        p->files[0] = 0;
    if (!is_ours || !xm_driver_files_find(start, p->files, files, sizeof(files)) ||
        !xm_driver_files_write_bitcode(files, bitcode))
        return false;
    memcpy(p->files, files, sizeof(files));
    return true;
}

/* Replaces a program that was built from source by one that is built from its bitcode. If that
 * fails, the first program stays. */
static void
make_of_bitcode(struct build *b)
{
    struct ocl_program *p = b->out;
    struct xm_strbuf bitcode = {0};
    const cl_program of_source = p->program;
    if (xm_driver_files_read_bitcode(p->files, XM_BITCODE_RESULT, &bitcode)) {
        if (try_bitcode(b, &bitcode)) {
            clReleaseProgram(of_source);
        } else {
            xm_ocl_program_release(p);
            p->program = of_source;
        }
    }
    xm_strbuf_free(&bitcode);
}

static enum xm_status
compile_program(struct build *b, struct xm_build_report *report)
{
    const int64_t start = xm_driver_files_now();
    const bool has_files = xm_device_has(&b->engine->base.info, XM_CAP_DRIVER_FILES);
    report->compiled = b->out->is_new = true;
    xm_engine_say_building(&b->engine->base, b->name);
    cl_int code = build_source(b);
    if (!b->out->program)
        return xm_ocl_fail(b->err, code, "clCreateProgramWithSource", "kernel '%s'",
                           b->name);
    if (code != CL_SUCCESS)
        return fail_build(b, code, report);
    if (b->out->on_disk && has_files &&
        xm_driver_files_find(start, "", b->out->files, sizeof(b->out->files))) {
        make_of_bitcode(b);
        xm_ocl_program_update(b->engine, b->out);
    } else if (b->out->on_disk && !has_files)
        store(b->engine, b->out);
    return XM_OK;
}

static enum xm_status
find_key(struct build *b)
{
    const struct xm_device_info *info = &b->engine->base.info;
    struct xm_strbuf driver = {0};
    xm_strbuf_printf(&driver, "%s %s ", info->version, info->driver);
    if (xm_device_has(info,
                      XM_CAP_DRIVER_FILES)) /* also if XM_DEVICE_AS names a chip    */
        xm_strbuf_add(&driver, xm_kernel_cache_processor());
    else
        xm_strbuf_printf(&driver, "%x %u.%u.%u", info->device_id, info->ip_major,
                         info->ip_minor, info->ip_revision);
    bool ok = xm_strbuf_ok(&driver);
    if (ok)
        b->out->key =
            xm_kernel_cache_key(info->name, xm_strbuf_text(&driver),
                                xm_strbuf_text(&b->source), xm_strbuf_text(&b->options));
    xm_strbuf_free(&driver);
    return ok ? XM_OK : xm_no_memory(b->err, "kernel '%s'", b->name);
}

/* Makes the source and the options, with or without our declarations of built-in functions
 * (builtins.h), and the key. */
static enum xm_status
prepare_build(struct build *b, const char *defines, bool declares_builtins)
{
    const struct xm_device_info *info = &b->engine->base.info;
    xm_strbuf_clear(&b->source);
    xm_strbuf_clear(&b->options);
    if (declares_builtins)
        XM_TRY(xm_kernel_include("builtins.h", &b->source, b->err));
    XM_TRY(xm_kernel_source(b->name, &b->source, b->err));
    xm_strbuf_printf(&b->options, "-cl-std=%s -cl-kernel-arg-info %s%s%s%s", info->cl_std,
                     declares_builtins ? "-D_OPENCL_H_ " : "",
                     xm_device_has(info, XM_CAP_VNNI) ? "-DVNNI=1 " : "",
                     xm_device_has(info, XM_CAP_AVX_VNNI) ? "-DAVX_VNNI=1 " : "",
                     defines);
    if (!xm_strbuf_ok(&b->options) || !xm_strbuf_ok(&b->source))
        return xm_no_memory(b->err, "kernel '%s'", b->name);
    b->out->has_key = info->caps & (XM_CAP_BINARIES | XM_CAP_DRIVER_FILES);
    b->out->on_disk = b->out->has_key && cache_dir(b->engine)[0];
    if (b->out->has_key)
        XM_TRY(find_key(b));
    if (xm_device_has(info, XM_CAP_DRIVER_FILES))
        xm_strbuf_printf(&b->source, "\n__kernel void\n%s(void)\n{\n}\n",
                         mark_of(&b->out->key).text);
    return xm_strbuf_ok(&b->source) ? XM_OK
                                    : xm_no_memory(b->err, "kernel '%s'", b->name);
}

static enum xm_status
load_or_compile(struct build *b, const char *defines, bool declares_builtins,
                struct xm_build_report *report)
{
    XM_TRY(prepare_build(b, defines, declares_builtins));
    return load_program(b) ? XM_OK : compile_program(b, report);
}

enum xm_status
xm_ocl_program_create(struct ocl_engine *e, const char *name, const char *defines,
                      struct ocl_program *out, struct xm_build_report *report,
                      struct xm_error *err)
{
    struct build b = {.engine = e, .name = name, .out = out, .err = err};
    const bool declares = xm_device_has(&e->base.info, XM_CAP_SLOW_BUILTINS);
    enum xm_status status = load_or_compile(&b, defines, declares, report);
    if (status == XM_NOT_BUILT &&
        declares) { /* perhaps builtins.h lacks a function: try without it */
        xm_ocl_program_release(out);
        xm_free(report->log);
        *report = (struct xm_build_report){0};
        *err = (struct xm_error){0};
        status = load_or_compile(&b, defines, false, report);
        if (status == XM_OK)
            xm_log(
                XM_LOG_INFO,
                "kernel '%s' calls a built-in function that builtins.h does not declare",
                name);
    }
    xm_strbuf_free(&b.source);
    xm_strbuf_free(&b.options);
    return status;
}

void
xm_ocl_program_release(struct ocl_program *p)
{
    if (p->program)
        clReleaseProgram(p->program);
    p->program = NULL;
}
