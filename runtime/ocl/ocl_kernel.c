/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel: one program of its own per (source, defines), from the cache on disk or the
 * driver's compiler. PoCL is never asked for binaries: it aborts on some
 * (XM_CAP_BINARIES).
 */
#include <string.h>
#include <time.h>

#include "runtime/kernel_cache.h"
#include "runtime/kernel_source.h"
#include "runtime/ocl/ocl.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"
#include "runtime/util/strbuf.h"

struct build {
    struct ocl_engine *engine;
    const char *name;
    struct xm_strbuf source, options;
    struct xm_kernel_key key;
    bool on_disk; /* the cache is to be used */
    cl_program program;
    struct xm_error *err;
};

/* The line of the log that says most: the first with "error", else the first. */
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

/* The build log, owned by the caller; NULL when there is none. */
static char *
read_log(const struct build *b)
{
    size_t n = 0;
    clGetProgramBuildInfo(b->program, b->engine->device, CL_PROGRAM_BUILD_LOG, 0, NULL,
                          &n);
    char *log = n > 2 ? xm_calloc(1, n + 1) : NULL;
    if (log)
        clGetProgramBuildInfo(b->program, b->engine->device, CL_PROGRAM_BUILD_LOG, n, log,
                              NULL);
    return log;
}

/* No room or no device is not the kernel's fault; anything else is the compiler's word on
 * it. */
static enum xm_status
fail_build(const struct build *b, cl_int code, struct xm_build_report *report)
{
    char line[300] = "the driver gave no log";
    if (code == CL_OUT_OF_HOST_MEMORY || code == CL_OUT_OF_RESOURCES ||
        code == CL_DEVICE_NOT_AVAILABLE || code == CL_COMPILER_NOT_AVAILABLE)
        return xm_ocl_fail(b->err, code, "clBuildProgram", "kernel '%s'", b->name);
    report->log = read_log(b);
    if (report->log)
        pick_line(report->log, line, sizeof(line));
    return xm_fail(b->err, XM_NOT_BUILT, "clBuildProgram gave %s (%d): kernel '%s': %s",
                   xm_ocl_error_text(code), code, b->name, line);
}

static double
seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static cl_int
build_program(const struct build *b)
{
    double start = seconds();
    cl_int code = clBuildProgram(b->program, 1, &b->engine->device,
                                 xm_strbuf_text(&b->options), NULL, NULL);
    if (xm_debug_on(XM_DEBUG_BUILD)) {
        char *log = read_log(b);
        xm_debug(XM_DEBUG_BUILD, "%s (%s) %.0f ms: %s\n%s", b->name,
                 xm_strbuf_text(&b->options), 1e3 * (seconds() - start),
                 code == CL_SUCCESS ? "built" : xm_ocl_error_text(code), log ? log : "");
        xm_free(log);
    }
    return code;
}

/* A program from the cache; false: there is none that this driver takes. */
static bool
load_program(struct build *b)
{
    size_t n;
    unsigned char *bytes =
        b->on_disk ? xm_kernel_cache_load(b->engine->base.config.cache_dir, &b->key, &n)
                   : NULL;
    if (!bytes)
        return false;
    const unsigned char *binary = bytes;
    cl_int status, code;
    b->program = clCreateProgramWithBinary(b->engine->context, 1, &b->engine->device, &n,
                                           &binary, &status, &code);
    xm_free(bytes);
    if (b->program && build_program(b) == CL_SUCCESS)
        return true;
    if (b->program)
        clReleaseProgram(b->program);
    b->program = NULL;
    return false;
}

static void
store_program(const struct build *b)
{
    size_t n = 0;
    if (!b->on_disk || clGetProgramInfo(b->program, CL_PROGRAM_BINARY_SIZES, sizeof(n),
                                        &n, NULL) != CL_SUCCESS)
        return;
    unsigned char *bytes = n ? xm_malloc(n) : NULL;
    if (bytes && clGetProgramInfo(b->program, CL_PROGRAM_BINARIES, sizeof(bytes), &bytes,
                                  NULL) == CL_SUCCESS)
        xm_kernel_cache_store(b->engine->base.config.cache_dir, &b->key, bytes, n);
    xm_free(bytes);
}

static enum xm_status
compile_program(struct build *b, struct xm_build_report *report)
{
    const char *text = xm_strbuf_text(&b->source);
    cl_int code;
    b->program = clCreateProgramWithSource(b->engine->context, 1, &text, NULL, &code);
    if (!b->program)
        return xm_ocl_fail(b->err, code, "clCreateProgramWithSource", "kernel '%s'",
                           b->name);
    code = build_program(b);
    return code == CL_SUCCESS ? XM_OK : fail_build(b, code, report);
}

static enum xm_status
prepare_build(struct build *b, const char *defines)
{
    const struct xm_device_info *info = &b->engine->base.info;
    XM_TRY(xm_kernel_source(b->name, &b->source, b->err));
    xm_strbuf_printf(&b->options, "-cl-std=%s -cl-kernel-arg-info %s", info->cl_std,
                     defines);
    if (!xm_strbuf_ok(&b->options))
        return xm_fail(b->err, XM_NO_MEMORY, "no memory for kernel '%s'", b->name);
    b->on_disk =
        b->engine->base.config.cache_dir[0] && xm_device_has(info, XM_CAP_BINARIES);
    if (b->on_disk)
        b->key = xm_kernel_cache_key(info->name, info->driver, xm_strbuf_text(&b->source),
                                     xm_strbuf_text(&b->options));
    return XM_OK;
}

static uint32_t
scalar_bytes(const char *type)
{
    static const char *const four[] = {"int", "uint", "float"};
    static const char *const eight[] = {"long", "ulong", "double"};
    for (size_t i = 0; i < XM_ARRAY_LEN(four); i++) {
        if (strcmp(type, four[i]) == 0)
            return 4;
        if (strcmp(type, eight[i]) == 0)
            return 8;
    }
    return 0;
}

/* Without this information (programs from a cache may lack it) `known` stays false. */
static void
read_arg(cl_kernel k, cl_uint i, struct ocl_arg *arg)
{
    cl_kernel_arg_address_qualifier where;
    if (clGetKernelArgInfo(k, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(where), &where,
                           NULL) != CL_SUCCESS ||
        clGetKernelArgInfo(k, i, CL_KERNEL_ARG_TYPE_NAME, sizeof(arg->type), arg->type,
                           NULL) != CL_SUCCESS)
        return;
    if (clGetKernelArgInfo(k, i, CL_KERNEL_ARG_NAME, sizeof(arg->name), arg->name,
                           NULL) != CL_SUCCESS)
        arg->name[0] = 0;
    arg->known = true;
    arg->kind = where == CL_KERNEL_ARG_ADDRESS_LOCAL     ? XM_ARG_LOCAL
                : where == CL_KERNEL_ARG_ADDRESS_PRIVATE ? XM_ARG_SCALAR
                                                         : XM_ARG_BUFFER;
    arg->bytes = arg->kind == XM_ARG_SCALAR ? scalar_bytes(arg->type) : 0;
}

static enum xm_status
fill_kernel(const struct build *b, struct ocl_kernel *k)
{
    cl_int code;
    k->kernel = clCreateKernel(b->program, b->name, &code);
    if (k->kernel)
        code = clGetKernelInfo(k->kernel, CL_KERNEL_NUM_ARGS, sizeof(k->n_args),
                               &k->n_args, NULL);
    if (!k->kernel || code != CL_SUCCESS)
        return xm_ocl_fail(b->err, code, "clCreateKernel",
                           "file '%s.cl' has no usable kernel of that name", b->name);
    k->args = xm_calloc(k->n_args, sizeof(*k->args));
    if (!k->args)
        return xm_fail(b->err, XM_NO_MEMORY, "no memory for kernel '%s'", b->name);
    for (cl_uint i = 0; i < k->n_args; i++)
        read_arg(k->kernel, i, &k->args[i]);
    return XM_OK;
}

/* Takes over b->program on success. */
static enum xm_status
make_kernel(struct build *b, struct xm_kernel **out)
{
    struct ocl_kernel *k = xm_calloc(1, sizeof(*k));
    if (!k || pthread_mutex_init(&k->lock, NULL)) {
        xm_free(k);
        return xm_fail(b->err, XM_NO_MEMORY, "no memory for kernel '%s'", b->name);
    }
    enum xm_status status = fill_kernel(b, k);
    if (status != XM_OK) {
        xm_ocl_kernel_destroy(&k->base);
        return status;
    }
    k->program = b->program;
    b->program = NULL;
    *out = &k->base;
    return XM_OK;
}

enum xm_status
xm_ocl_kernel_create(struct xm_engine *e, const char *name, const char *defines,
                     struct xm_kernel **out, struct xm_build_report *report,
                     struct xm_error *err)
{
    struct build b = {.engine = ocl_engine(e), .name = name, .err = err};
    enum xm_status status = prepare_build(&b, defines);
    if (status == XM_OK && !load_program(&b)) {
        status = compile_program(&b, report);
        report->compiled = true;
        if (status == XM_OK)
            store_program(&b);
    }
    if (status == XM_OK)
        status = make_kernel(&b, out);
    if (b.program)
        clReleaseProgram(b.program);
    xm_strbuf_free(&b.source);
    xm_strbuf_free(&b.options);
    return status;
}

void
xm_ocl_kernel_destroy(struct xm_kernel *base)
{
    struct ocl_kernel *k = (struct ocl_kernel *)base;
    if (k->kernel)
        clReleaseKernel(k->kernel);
    if (k->program)
        clReleaseProgram(k->program);
    xm_free(k->args);
    pthread_mutex_destroy(&k->lock);
    xm_free(k);
}
