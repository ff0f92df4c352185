/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>

#include "runtime/util/number.h"

#include "runtime/ocl/ocl.h"

const char *
xm_ocl_error_text(cl_int code)
{
    /* clang-format off */
    static const struct { cl_int code; const char *text; } names[] = {
#define CODE(c) {c, #c}
        CODE(CL_DEVICE_NOT_FOUND), CODE(CL_DEVICE_NOT_AVAILABLE),
        CODE(CL_COMPILER_NOT_AVAILABLE), CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE),
        CODE(CL_OUT_OF_RESOURCES), CODE(CL_OUT_OF_HOST_MEMORY),
        CODE(CL_PROFILING_INFO_NOT_AVAILABLE), CODE(CL_MEM_COPY_OVERLAP),
        CODE(CL_BUILD_PROGRAM_FAILURE), CODE(CL_MAP_FAILURE),
        CODE(CL_MISALIGNED_SUB_BUFFER_OFFSET),
        CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
        CODE(CL_INVALID_VALUE), CODE(CL_INVALID_DEVICE), CODE(CL_INVALID_PLATFORM),
        CODE(CL_INVALID_CONTEXT), CODE(CL_INVALID_QUEUE_PROPERTIES),
        CODE(CL_INVALID_COMMAND_QUEUE), CODE(CL_INVALID_HOST_PTR),
        CODE(CL_INVALID_MEM_OBJECT), CODE(CL_INVALID_BINARY),
        CODE(CL_INVALID_BUILD_OPTIONS), CODE(CL_INVALID_PROGRAM),
        CODE(CL_INVALID_PROGRAM_EXECUTABLE), CODE(CL_INVALID_KERNEL_NAME),
        CODE(CL_INVALID_KERNEL), CODE(CL_INVALID_ARG_INDEX), CODE(CL_INVALID_ARG_VALUE),
        CODE(CL_INVALID_ARG_SIZE), CODE(CL_INVALID_KERNEL_ARGS),
        CODE(CL_INVALID_WORK_DIMENSION), CODE(CL_INVALID_WORK_GROUP_SIZE),
        CODE(CL_INVALID_WORK_ITEM_SIZE), CODE(CL_INVALID_GLOBAL_OFFSET),
        CODE(CL_INVALID_EVENT_WAIT_LIST), CODE(CL_INVALID_EVENT),
        CODE(CL_INVALID_OPERATION), CODE(CL_INVALID_BUFFER_SIZE),
        CODE(CL_INVALID_GLOBAL_WORK_SIZE), CODE(CL_INVALID_PROPERTY),
#undef CODE
        {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    };
    /* clang-format on */
    for (size_t i = 0; i < XM_ARRAY_LEN(names); i++)
        if (names[i].code == code)
            return names[i].text;
    return "unknown code";
}

static enum xm_status
status_of(cl_int code, bool waits)
{
    switch (code) {
    case CL_DEVICE_NOT_AVAILABLE:
        return XM_LOST;
    case CL_OUT_OF_RESOURCES:
        return waits ? XM_LOST : XM_NO_MEMORY;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
        return XM_NO_MEMORY;
    default:
        return XM_DEVICE;
    }
}

static enum xm_status
fail(struct xm_error *err, enum xm_status status, cl_int code, const char *call,
     const char *fmt, va_list ap)
{
    char what[XM_ERROR_TEXT];
    xm_print_v(what, sizeof(what), fmt, ap);
    return xm_fail(err, status, "%s gave %s (%d): %s", call, xm_ocl_error_text(code),
                   code, what);
}

enum xm_status
xm_ocl_fail(struct xm_error *err, cl_int code, const char *call, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    enum xm_status status = fail(err, status_of(code, false), code, call, fmt, ap);
    va_end(ap);
    return status;
}

enum xm_status
xm_ocl_fail_wait(struct xm_error *err, cl_int code, const char *call, const char *fmt,
                 ...)
{
    va_list ap;
    va_start(ap, fmt);
    enum xm_status status = fail(err, status_of(code, true), code, call, fmt, ap);
    va_end(ap);
    return status;
}
