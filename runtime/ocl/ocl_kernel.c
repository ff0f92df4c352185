/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels. Each has a program of its own, given by its source and defines; and the declared types
 * of its parameters. */
#include <string.h>

#include "runtime/ocl/ocl.h"
#include "runtime/util/memory.h"

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

/* Reads what the driver tells of a parameter. If it tells nothing (programs from a cache may lack
 * this), `known` stays false. */
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
fill_kernel(struct ocl_kernel *k, const char *name, struct xm_error *err)
{
    cl_int code;
    k->kernel = clCreateKernel(k->program.program, name, &code);
    if (k->kernel)
        code = clGetKernelInfo(k->kernel, CL_KERNEL_NUM_ARGS, sizeof(k->n_args),
                               &k->n_args, NULL);
    if (!k->kernel || code != CL_SUCCESS)
        return xm_ocl_fail(err, code, "clCreateKernel",
                           "file '%s.cl' has no usable kernel of the same name", name);
    if (k->n_args > XM_KERNEL_ARGS)
        return xm_fail(err, XM_UNSUPPORTED,
                       "kernel '%s' has %u parameters, at most %d are supported", name,
                       k->n_args, XM_KERNEL_ARGS);
    k->args = xm_calloc(k->n_args, sizeof(*k->args));
    if (!k->args)
        return xm_no_memory(err, "kernel '%s'", name);
    for (cl_uint i = 0; i < k->n_args; i++)
        read_arg(k->kernel, i, &k->args[i]);
    return XM_OK;
}

enum xm_status
xm_ocl_kernel_create(struct xm_engine *e, const char *name, const char *defines,
                     struct xm_kernel **out, struct xm_build_report *report,
                     struct xm_error *err)
{
    struct ocl_kernel *k = xm_calloc(1, sizeof(*k));
    if (!k || pthread_mutex_init(&k->lock, NULL)) {
        xm_free(k);
        return xm_no_memory(err, "kernel '%s'", name);
    }
    enum xm_status status =
        xm_ocl_program_create(ocl_engine(e), name, defines, &k->program, report, err);
    if (status == XM_OK)
        status = fill_kernel(k, name, err);
    if (status != XM_OK) {
        xm_ocl_kernel_destroy(&k->base);
        return status;
    }
    *out = &k->base;
    return XM_OK;
}

enum xm_status
xm_ocl_kernel_bytes(struct xm_engine *e, struct xm_kernel *base, xm_kernel_bytes_fn fn,
                    void *ctx, struct xm_error *err)
{
    const struct ocl_kernel *k = (const struct ocl_kernel *)base;
    struct xm_strbuf bytes = {0};
    enum xm_status s = XM_OK;
    if (xm_ocl_program_bytes(ocl_engine(e), &k->program, &bytes))
        s = fn(ctx, &k->program.key, xm_strbuf_text(&bytes), bytes.n, err);
    xm_strbuf_free(&bytes);
    return s;
}

void
xm_ocl_kernel_destroy(struct xm_kernel *base)
{
    struct ocl_kernel *k = (struct ocl_kernel *)base;
    if (k->kernel)
        clReleaseKernel(k->kernel);
    xm_ocl_program_release(&k->program);
    xm_free(k->args);
    pthread_mutex_destroy(&k->lock);
    xm_free(k);
}
