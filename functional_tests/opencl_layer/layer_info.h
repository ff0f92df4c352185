/* SPDX-License-Identifier: Apache-2.0
 *
 * What a layer tells the ICD loader about itself.
 */
#ifndef XM_FUNCTIONAL_TESTS_OPENCL_LAYER_LAYER_INFO_H
#define XM_FUNCTIONAL_TESTS_OPENCL_LAYER_LAYER_INFO_H

#include <CL/cl_layer.h>
#include <string.h>

/* Implements clGetLayerInfo for a layer whose name has `name_bytes`, with its NUL. */
static inline cl_int
layer_info(const char *name, size_t name_bytes, cl_layer_info what, size_t room,
           void *value, size_t *bytes)
{
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *from = what == CL_LAYER_API_VERSION ? (const void *)&version : name;
    size_t n = what == CL_LAYER_API_VERSION ? sizeof(version) : name_bytes;
    if (what != CL_LAYER_API_VERSION && what != CL_LAYER_NAME)
        return CL_INVALID_VALUE;
    if (value && room < n)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, from, n);
    if (bytes)
        *bytes = n;
    return CL_SUCCESS;
}

#endif
