/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of devices, and tensors in their memory.
 *
 * The key decides whether its value is a handle (pointer) or text. OpenCL buffers and USM are
 * supported; images, video surfaces and DirectX are refused by name.
 */
#include <stddef.h>
#include <string.h>

#include "plugin/api/api.h"

/* ---- keys and values ------------------------------------------------------------------ */

/* clang-format off */
static const struct { const char *key; bool is_handle; size_t member; } keys[] = {
    {"CONTEXT_TYPE",          false, offsetof(struct xm_api_handles, context_type)},
    {"OCL_CONTEXT",           true,  offsetof(struct xm_api_handles, cl_context)},
    {"OCL_QUEUE",             true,  offsetof(struct xm_api_handles, cl_queue)},
    {"OCL_CONTEXT_DEVICE_ID", false, offsetof(struct xm_api_handles, device)},
    {"TILE_ID",               false, offsetof(struct xm_api_handles, tile)},
    {"VA_DEVICE",             true,  offsetof(struct xm_api_handles, va_device)},
    {"SHARED_MEM_TYPE",       false, offsetof(struct xm_api_handles, memory_type)},
    {"MEM_HANDLE",            true,  offsetof(struct xm_api_handles, memory)},
    {"DEV_OBJECT_HANDLE",     true,  offsetof(struct xm_api_handles, object)},
    {"VA_PLANE",              false, offsetof(struct xm_api_handles, plane)},
};
/* clang-format on */

/* Returns the index of a key; XM_ARRAY_LEN(keys): it is unknown. */
static size_t
find_key(const char *key)
{
    size_t i = 0;
    while (i < XM_ARRAY_LEN(keys) && strcmp(key, keys[i].key) != 0)
        i++;
    return i;
}

/* Whether the key or its value is NULL. A handle may be NULL: the device then reports which handle
 * is missing. */
static bool
lacks_something(const ov_property_t *p)
{
    const size_t i = p->key ? find_key(p->key) : XM_ARRAY_LEN(keys);
    return !p->key || (!p->value && !(i < XM_ARRAY_LEN(keys) && keys[i].is_handle));
}

static ov_status_e
take_pair(const ov_property_t *p, struct xm_api_handles *out)
{
    const size_t i = find_key(p->key);
    if (i < XM_ARRAY_LEN(keys) && !p->value)
        return xm_api_fail(GENERAL_ERROR, "%s is NULL", p->key);
    if (i < XM_ARRAY_LEN(keys)) {
        memcpy((char *)out + keys[i].member, &p->value, sizeof(p->value));
        return OK;
    }
    return xm_api_fail(GENERAL_ERROR,
                       "%s is not a property of a remote context or of shared memory",
                       p->key);
}

ov_status_e
xm_api_handles_from_array(size_t n, const ov_property_t *list, struct xm_api_handles *out)
{
    ov_status_e s = OK;
    *out = (struct xm_api_handles){.n = n};
    if (n > 0 && !list)
        return xm_api_fail(INVALID_C_PARAM, "the list of %zu properties is NULL", n);
    for (size_t i = 0; i < n; i++) {
        if (lacks_something(&list[i]))
            return xm_api_fail(INVALID_C_PARAM,
                               "property %zu of %zu: its key or value is NULL", i, n);
    }
    for (size_t i = 0; i < n && s == OK; i++)
        s = take_pair(&list[i], out);
    return s;
}

ov_status_e
xm_api_handles_from_args(size_t n, va_list args, struct xm_api_handles *out)
{
    ov_property_t list[XM_API_MOST_ARGS / 2];
    const ov_status_e s = xm_api_check_args(n);
    if (s != OK)
        return s;
    for (size_t i = 0; i < n / 2; i++) {
        list[i].key = va_arg(args, const char *);
        list[i].value = va_arg(args, const void *);
    }
    return xm_api_handles_from_array(n / 2, list, out);
}

/* ---- contexts ------------------------------------------------------------------------- */

static void
destroy_context(ov_remote_context_t *c)
{
    xm_context_unref(c->context);
    xm_free(c);
}

ov_status_e
xm_api_context_give(struct xm_context *context, ov_remote_context_t **out)
{
    ov_remote_context_t *c = xm_calloc(1, sizeof(*c));
    if (!c) {
        xm_context_unref(context);
        return xm_api_fail(GENERAL_ERROR, "out of memory for a context");
    }
    c->context = context;
    ov_status_e s = xm_api_new_handle(c, XM_API_CONTEXT);
    if (s == OK)
        *out = c;
    else
        destroy_context(c);
    return s;
}

void
ov_remote_context_free(ov_remote_context_t *context)
{
    if (xm_api_handle_drop(context, XM_API_CONTEXT))
        destroy_context(context);
}

static ov_status_e
give_device_name(const struct xm_context *c, char **out)
{
    struct xm_strbuf name = {0};
    c->ops->device_name(c, &name);
    return xm_api_give_text(&name, out);
}

ov_status_e
ov_remote_context_get_device_name(const ov_remote_context_t *context, char **device_name)
{
    if (!xm_api_is(context, XM_API_CONTEXT) || !device_name)
        return xm_api_refuse(__func__);
    return give_device_name(context->context, device_name);
}

ov_status_e
ov_remote_context_get_params(const ov_remote_context_t *context, size_t *size,
                             char **params)
{
    if (!xm_api_is(context, XM_API_CONTEXT) || !size || !params)
        return xm_api_refuse(__func__);
    struct xm_strbuf text = {0};
    size_t pairs = 0;
    context->context->ops->params(context->context, &text, &pairs);
    ov_status_e s = xm_api_give_text(&text, params);
    if (s == OK)
        *size = pairs;
    return s;
}

/* ---- tensors -------------------------------------------------------------------------- */

/* Finds the kind of memory. Without any key it is a new buffer. */
static ov_status_e
find_memory(const struct xm_api_handles *h, struct xm_remote_wish *out)
{
    static const struct {
        const char *type;
        enum xm_shared_memory kind;
        bool is_foreign; /* the caller passes a handle of existing memory */
    } types[] = {{"OCL_BUFFER", XM_SHARED_OCL_BUFFER, true},
                 {"USM_USER_BUFFER", XM_SHARED_USM_USER, true},
                 {"USM_HOST_BUFFER", XM_SHARED_USM_HOST, false},
                 {"USM_DEVICE_BUFFER", XM_SHARED_USM_DEVICE, false}};
    if (h->n == 0) {
        out->kind = XM_SHARED_OCL_BUFFER;
        return OK;
    }
    if (!h->memory_type)
        return xm_api_fail(GENERAL_ERROR, "SHARED_MEM_TYPE is missing");
    for (size_t i = 0; i < XM_ARRAY_LEN(types); i++) {
        if (strcmp(h->memory_type, types[i].type) != 0)
            continue;
        if (types[i].is_foreign && !h->memory)
            return xm_api_fail(GENERAL_ERROR,
                               "SHARED_MEM_TYPE is %s: MEM_HANDLE is missing",
                               types[i].type);
        out->kind = types[i].kind;
        out->handle = types[i].is_foreign ? h->memory : NULL;
        return OK;
    }
    return xm_api_fail(GENERAL_ERROR,
                       "SHARED_MEM_TYPE is %s: expected OCL_BUFFER, USM_USER_BUFFER, "
                       "USM_HOST_BUFFER or USM_DEVICE_BUFFER",
                       h->memory_type);
}

static ov_status_e
create_tensor(const ov_remote_context_t *context, ov_element_type_e type,
              ov_shape_t shape, const struct xm_api_handles *h, ov_tensor_t **out)
{
    struct xm_error err = {0};
    struct xm_remote_wish wish = {0};
    struct xm_remote *memory = NULL;
    ov_status_e s = find_memory(h, &wish);
    if (s != OK)
        return s;
    if (xm_api_tensor_bytes(type, shape, &wish.bytes, &err) != XM_OK ||
        xm_context_create_remote(context->context, &wish, &memory, &err) != XM_OK)
        return xm_api_error(&err);
    return xm_api_tensor_of_remote(type, shape, memory, true, out);
}

static bool
is_tensor_wish(const ov_remote_context_t *context, ov_shape_t shape, ov_tensor_t **tensor)
{
    return xm_api_is(context, XM_API_CONTEXT) && !xm_api_is_wrong_shape(shape) && tensor;
}

ov_status_e
ov_remote_context_create_tensor(const ov_remote_context_t *context,
                                const ov_element_type_e type, const ov_shape_t shape,
                                const size_t object_args_size,
                                ov_tensor_t **remote_tensor, ...)
{
    struct xm_api_handles h;
    va_list args;
    if (!is_tensor_wish(context, shape, remote_tensor))
        return xm_api_refuse(__func__);
    va_start(args, remote_tensor);
    ov_status_e s = xm_api_handles_from_args(object_args_size, args, &h);
    va_end(args);
    return s == OK ? create_tensor(context, type, shape, &h, remote_tensor) : s;
}

ov_status_e
ov_remote_context_create_tensor_props(const ov_remote_context_t *context,
                                      const ov_element_type_e type,
                                      const ov_shape_t shape, size_t num_properties,
                                      const ov_property_t *properties,
                                      ov_tensor_t **remote_tensor)
{
    struct xm_api_handles h;
    if (!is_tensor_wish(context, shape, remote_tensor))
        return xm_api_refuse(__func__);
    ov_status_e s = xm_api_handles_from_array(num_properties, properties, &h);
    return s == OK ? create_tensor(context, type, shape, &h, remote_tensor) : s;
}

ov_status_e
ov_remote_context_create_host_tensor(const ov_remote_context_t *context,
                                     const ov_element_type_e type, const ov_shape_t shape,
                                     ov_tensor_t **tensor)
{
    struct xm_error err = {0};
    struct xm_remote_wish wish = {.kind = XM_SHARED_USM_HOST};
    struct xm_remote *memory = NULL;
    if (!is_tensor_wish(context, shape, tensor))
        return xm_api_refuse(__func__);
    if (!context->context->has_usm)
        return ov_tensor_create(type, shape, tensor);
    if (xm_api_tensor_bytes(type, shape, &wish.bytes, &err) != XM_OK ||
        xm_context_create_remote(context->context, &wish, &memory, &err) != XM_OK)
        return xm_api_error(&err);
    return xm_api_tensor_of_remote(type, shape, memory, false, tensor);
}

static bool
is_remote(const ov_tensor_t *tensor)
{
    return xm_api_is(tensor, XM_API_TENSOR) && xm_api_tensor_is_remote(tensor);
}

ov_status_e
ov_remote_tensor_get_params(ov_tensor_t *tensor, size_t *size, char **params)
{
    if (!is_remote(tensor) || !size || !params)
        return xm_api_refuse(__func__);
    struct xm_strbuf text = {0};
    size_t pairs = 0;
    tensor->remote->ops->params(tensor->remote, &text, &pairs);
    ov_status_e s = xm_api_give_text(&text, params);
    if (s == OK)
        *size = pairs;
    return s;
}

ov_status_e
ov_remote_tensor_get_device_name(ov_tensor_t *remote_tensor, char **device_name)
{
    if (!is_remote(remote_tensor) || !device_name)
        return xm_api_refuse(__func__);
    return give_device_name(remote_tensor->remote->context, device_name);
}
