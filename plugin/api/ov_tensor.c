/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors. All handles of a tensor are the same pointer with a reference count, so that a shape set
 * through one handle is visible through all, and to requests.
 *
 * An element of a STRING tensor is a record of 32 bytes that owns its text; devices do not accept
 * such tensors.
 */
#include <string.h>

#include "plugin/api/api.h"

struct text_element {
    char *text; /* owned; NULL while not set */
    uint64_t n;
    uint64_t unused[2];
};
_Static_assert((int)F32 == (int)XM_F32 && (int)U8 == (int)XM_U8 &&
                   (int)STRING == (int)XM_STRING && (int)F8E8M0 == (int)XM_F8E8M0,
               "the element types of the API are ours");
_Static_assert(sizeof(struct text_element) == 32, "what a STRING element counts");

/* ---- life -------------------------------------------------------------------------- */

static void
drop_texts(ov_tensor_t *t)
{
    struct text_element *e = t->data;
    for (uint64_t i = 0; t->type == STRING && i < t->n; i++)
        xm_free(e[i].text);
}

static void
destroy_tensor(struct xm_mapping *m)
{
    ov_tensor_t *t = (ov_tensor_t *)m;
    drop_texts(t);
    if (t->owned)
        xm_free(t->data);
    xm_remote_destroy(t->remote);
    xm_free(t);
}

/* Whether the value is a member of the enumeration, including DYNAMIC; a caller may pass any
 * number. */
static bool
is_type(ov_element_type_e type)
{
    return (unsigned)type < XM_ELEMENT_COUNT;
}

/* Computes the number of elements and bytes of a shape, whose dimensions may have any value. */
static enum xm_status
measure(ov_element_type_e type, uint32_t rank, const int64_t *dim, uint64_t *n,
        uint64_t *bytes, struct xm_error *err)
{
    *n = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (dim[i] < 0)
            return xm_fail(err, XM_INVALID,
                           "dimension %u of a tensor is %lld, expected 0 or more", i,
                           (long long)dim[i]);
        if (!xm_mul_size(*n, (uint64_t)dim[i], n))
            return xm_fail(err, XM_INVALID,
                           "a tensor has more elements than fit 64 bits");
    }
    if (!is_type(type) || type == DYNAMIC)
        return xm_fail(err, XM_INVALID, "a tensor cannot have the element type %u",
                       (unsigned)type);
    bool fits = type == STRING ? xm_mul_size(*n, sizeof(struct text_element), bytes)
                               : xm_element_bytes((enum xm_element)type, *n, bytes);
    return fits && *bytes <= SIZE_MAX / 2
               ? XM_OK
               : xm_fail(err, XM_INVALID,
                         "a tensor has more bytes than can be addressed");
}

static enum xm_status
create(ov_element_type_e type, uint32_t rank, const int64_t *dim, void *borrowed,
       ov_tensor_t **out, struct xm_error *err)
{
    uint64_t n, bytes;
    XM_TRY(measure(type, rank, dim, &n, &bytes, err));
    ov_tensor_t *t = xm_calloc(1, sizeof(*t));
    void *data = borrowed ? borrowed : xm_calloc(1, (size_t)bytes);
    if (!t || !data) {
        xm_free(t);
        if (!borrowed)
            xm_free(data);
        return xm_no_memory(err, "a tensor of %llu bytes", (unsigned long long)bytes);
    }
    *t = (ov_tensor_t){.base = {.refs = 1, .free = destroy_tensor},
                       .type = type,
                       .rank = rank,
                       .n = n,
                       .bytes = bytes,
                       .capacity = bytes,
                       .data = data,
                       .owned = !borrowed};
    if (rank)
        memcpy(t->dim, dim, rank * sizeof(*dim));
    *out = t;
    return XM_OK;
}

enum xm_status
xm_api_tensor_create(ov_element_type_e type, uint32_t rank, const int64_t *dim,
                     ov_tensor_t **out, struct xm_error *err)
{
    return create(type, rank, dim, NULL, out, err);
}

enum xm_status
xm_api_tensor_bytes(ov_element_type_e type, ov_shape_t shape, uint64_t *bytes,
                    struct xm_error *err)
{
    uint64_t n;
    if (shape.rank > XM_MAX_RANK)
        return xm_fail(err, XM_INVALID, "a tensor has rank %lld, at most %d is supported",
                       (long long)shape.rank, XM_MAX_RANK);
    if (type == STRING)
        return xm_fail(err, XM_INVALID, "a tensor of strings cannot be in device memory");
    return measure(type, (uint32_t)shape.rank, shape.dims, &n, bytes, err);
}

ov_status_e
xm_api_tensor_of_remote(ov_element_type_e type, ov_shape_t shape,
                        struct xm_remote *memory, bool is_remote, ov_tensor_t **out)
{
    struct xm_error err = {0};
    ov_tensor_t *t = NULL;
    /* `memory` is only a placeholder that is not NULL; is_remote clears it below */
    if (create(type, (uint32_t)shape.rank, shape.dims,
               memory->host ? memory->host : memory, &t, &err) != XM_OK) {
        xm_remote_destroy(memory);
        return xm_api_error(&err);
    }
    t->remote = memory;
    t->capacity = memory->bytes;
    if (is_remote)
        t->data = NULL;
    return xm_api_tensor_give(t, out);
}

/* Allocates memory for more bytes; the contents are lost. */
static enum xm_status
grow(ov_tensor_t *t, uint64_t bytes, struct xm_error *err)
{
    if (t->remote) {
        XM_TRY(t->remote->ops->grow(t->remote, bytes, err));
        t->data = t->data ? t->remote->host : NULL;
        t->capacity = bytes;
        return XM_OK;
    }
    if (!t->owned)
        return xm_fail(err, XM_INVALID,
                       "the tensor uses memory of the caller, which has %llu bytes, but "
                       "the new shape needs %llu",
                       (unsigned long long)t->capacity, (unsigned long long)bytes);
    void *grown = xm_calloc(1, (size_t)bytes);
    if (!grown)
        return xm_no_memory(err, "a tensor of %llu bytes", (unsigned long long)bytes);
    drop_texts(t);
    xm_free(t->data);
    t->data = grown;
    t->capacity = bytes;
    return XM_OK;
}

enum xm_status
xm_api_tensor_reshape(ov_tensor_t *t, uint32_t rank, const int64_t *dim,
                      struct xm_error *err)
{
    uint64_t n, bytes;
    XM_TRY(measure(t->type, rank, dim, &n, &bytes, err));
    if (bytes > t->capacity || t->type == STRING)
        XM_TRY(grow(t, bytes, err));
    if (rank)
        memcpy(t->dim, dim, rank * sizeof(*dim));
    t->rank = rank;
    t->n = n;
    t->bytes = bytes;
    return XM_OK;
}

ov_status_e
xm_api_tensor_give(ov_tensor_t *t, ov_tensor_t **out)
{
    ov_status_e s = xm_api_new_handle(t, XM_API_TENSOR);
    if (s == OK)
        *out = t;
    else
        xm_mapping_unref(&t->base);
    return s;
}

void
ov_tensor_free(ov_tensor_t *tensor)
{
    if (xm_api_handle_drop(tensor, XM_API_TENSOR))
        xm_mapping_unref(&tensor->base);
}

/* ---- creating and reshaping -------------------------------------------------------- */

bool
xm_api_is_wrong_shape(ov_shape_t shape)
{
    return shape.rank < 0 || (shape.rank > 0 && !shape.dims);
}

static ov_status_e
create_from_shape(ov_element_type_e type, ov_shape_t shape, void *borrowed,
                  ov_tensor_t **tensor)
{
    struct xm_error err = {0};
    ov_tensor_t *t = NULL;
    if (shape.rank > XM_MAX_RANK)
        return xm_api_fail(GENERAL_ERROR,
                           "a tensor has rank %lld, at most %d is supported",
                           (long long)shape.rank, XM_MAX_RANK);
    create(type, (uint32_t)shape.rank, shape.dims, borrowed, &t, &err);
    return t ? xm_api_tensor_give(t, tensor) : xm_api_error(&err);
}

ov_status_e
ov_tensor_create(const ov_element_type_e type, const ov_shape_t shape,
                 ov_tensor_t **tensor)
{
    if (!tensor || !is_type(type) || xm_api_is_wrong_shape(shape))
        return xm_api_refuse(__func__);
    return create_from_shape(type, shape, NULL, tensor);
}

ov_status_e
ov_tensor_create_from_host_ptr(const ov_element_type_e type, const ov_shape_t shape,
                               void *host_ptr, ov_tensor_t **tensor)
{
    if (!tensor || !host_ptr || !is_type(type) || xm_api_is_wrong_shape(shape))
        return xm_api_refuse(__func__);
    if (type == STRING)
        return xm_api_fail(GENERAL_ERROR,
                           "a tensor of strings cannot use memory of the caller");
    return create_from_shape(type, shape, host_ptr, tensor);
}

ov_status_e
ov_tensor_set_shape(ov_tensor_t *tensor, const ov_shape_t shape)
{
    struct xm_error err = {0};
    if (!xm_api_is(tensor, XM_API_TENSOR) || xm_api_is_wrong_shape(shape))
        return xm_api_refuse(__func__);
    if (shape.rank > XM_MAX_RANK)
        return xm_api_fail(GENERAL_ERROR,
                           "a tensor has rank %lld, at most %d is supported",
                           (long long)shape.rank, XM_MAX_RANK);
    xm_api_tensor_reshape(tensor, (uint32_t)shape.rank, shape.dims, &err);
    return xm_api_error(&err);
}

/* ---- strings ----------------------------------------------------------------------- */

static bool
has_missing_string(const char **strings, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!strings[i])
            return true;
    }
    return false;
}

/* Copies the first `n` strings. */
static ov_status_e
copy_strings(ov_tensor_t *t, const char **strings, size_t n)
{
    struct text_element *e = t->data;
    for (size_t i = 0; i < n; i++) {
        char *copy = xm_strdup(strings[i]);
        if (!copy)
            return xm_api_fail(GENERAL_ERROR, "out of memory for string %zu of a tensor",
                               i);
        xm_free(e[i].text);
        e[i].text = copy;
        e[i].n = strlen(copy);
    }
    return OK;
}

ov_status_e
ov_tensor_set_string_data(ov_tensor_t *tensor, const char **string_array,
                          const size_t array_size)
{
    if (!xm_api_is(tensor, XM_API_TENSOR) || !string_array || tensor->type != STRING ||
        array_size != tensor->n || has_missing_string(string_array, array_size))
        return xm_api_refuse(__func__);
    return copy_strings(tensor, string_array, array_size);
}

ov_status_e
ov_tensor_create_from_string_array(const char **string_array, const size_t array_size,
                                   const ov_shape_t shape, ov_tensor_t **tensor)
{
    ov_tensor_t *t = NULL;
    if (!string_array || array_size == 0 || !tensor || xm_api_is_wrong_shape(shape) ||
        has_missing_string(string_array, array_size))
        return xm_api_refuse(__func__);
    ov_status_e s = create_from_shape(STRING, shape, NULL, &t);
    if (s == OK)
        s = copy_strings(t, string_array, array_size < t->n ? array_size : t->n);
    if (s == OK)
        *tensor = t;
    else
        ov_tensor_free(t);
    return s;
}

/* ---- facts about a tensor ------------------------------------------------------------------ */

ov_status_e
ov_tensor_get_shape(const ov_tensor_t *tensor, ov_shape_t *shape)
{
    if (!xm_api_is(tensor, XM_API_TENSOR) || !shape)
        return xm_api_refuse(__func__);
    if (tensor->rank == 0) {
        *shape = (ov_shape_t){0, NULL};
        return OK;
    }
    return ov_shape_create(tensor->rank, tensor->dim, shape);
}

ov_status_e
ov_tensor_get_element_type(const ov_tensor_t *tensor, ov_element_type_e *type)
{
    if (!xm_api_is(tensor, XM_API_TENSOR) || !type)
        return xm_api_refuse(__func__);
    *type = tensor->type;
    return OK;
}

ov_status_e
ov_tensor_get_size(const ov_tensor_t *tensor, size_t *elements_size)
{
    if (!xm_api_is(tensor, XM_API_TENSOR) || !elements_size)
        return xm_api_refuse(__func__);
    *elements_size = (size_t)tensor->n;
    return OK;
}

ov_status_e
ov_tensor_get_byte_size(const ov_tensor_t *tensor, size_t *byte_size)
{
    if (!xm_api_is(tensor, XM_API_TENSOR) || !byte_size)
        return xm_api_refuse(__func__);
    *byte_size = (size_t)tensor->bytes;
    return OK;
}

ov_status_e
ov_tensor_data(const ov_tensor_t *tensor, void **data)
{
    if (!xm_api_is(tensor, XM_API_TENSOR) || !data)
        return xm_api_refuse(__func__);
    if (xm_api_tensor_is_remote(tensor))
        return xm_api_fail(
            GENERAL_ERROR,
            "the tensor is in device memory, to which the host has no pointer");
    *data = tensor->data;
    return OK;
}
