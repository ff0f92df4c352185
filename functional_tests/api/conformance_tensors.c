/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: tensors that own their memory, tensors that borrow it, and tensors of strings.
 */
#include "functional_tests/api/conformance.h"

#include <string.h>

static size_t
bytes_of(const ov_tensor_t *t)
{
    size_t n = 0;
    CHECK(ov_tensor_get_byte_size(t, &n) == OK);
    return n;
}

static bool
has_shape(const ov_tensor_t *t, int64_t rows, int64_t columns)
{
    ov_shape_t s = {0, NULL};
    if (ov_tensor_get_shape(t, &s) != OK)
        return false;
    const bool has = s.rank == 2 && s.dims[0] == rows && s.dims[1] == columns;
    ov_shape_free(&s);
    return has;
}

static void
check_owned(void)
{
    int64_t small[] = {2, 3}, large[] = {200, 300}, none[] = {0, 3};
    const ov_shape_t a = {2, small}, b = {2, large}, empty = {2, none};
    ov_tensor_t *t = NULL;
    void *data = NULL;
    if (!GOOD(ov_tensor_create(F32, a, &t)))
        return;
    CHECK(has_shape(t, 2, 3));
    GOOD(ov_tensor_data(t, &data));
    CHECK(data != NULL && (uintptr_t)data % sizeof(float) == 0);
    GOOD(ov_tensor_set_shape(t, b)); /* needs more memory */
    CHECK(has_shape(t, 200, 300));
    CHECK(bytes_of(t) == 4u * 200 * 300);
    GOOD(ov_tensor_data(t, &data));
    memset(data, 0, bytes_of(t));
    GOOD(ov_tensor_set_shape(t, a));
    CHECK(bytes_of(t) == 24);
    ov_tensor_free(t);
    if (GOOD(ov_tensor_create(F32, empty, &t)))
        CHECK(bytes_of(t) == 0);
    ov_tensor_free(t);
}

static void
check_borrowed(void)
{
    float numbers[6] = {1, 2, 3, 4, 5, 6};
    int64_t whole[] = {2, 3}, part[] = {1, 3}, more[] = {3, 3};
    const ov_shape_t a = {2, whole}, b = {2, part}, large = {2, more};
    ov_tensor_t *t = NULL;
    void *data = NULL;
    if (!GOOD(ov_tensor_create_from_host_ptr(F32, a, numbers, &t)))
        return;
    CHECK(ov_tensor_data(t, &data) == OK && data == numbers);
    GOOD(ov_tensor_set_shape(t, b));
    CHECK(has_shape(t, 1, 3));
    GOOD(ov_tensor_set_shape(t, a)); /* at most the size it was created with */
    STATUS(ov_tensor_set_shape(t, large), GENERAL_ERROR);
    CHECK(has_shape(t, 2, 3));
    ov_tensor_free(t);
    CHECK(numbers[5] == 6.0f);
    t = NULL;
    STATUS(ov_tensor_create_from_host_ptr(F32, a, NULL, &t), INVALID_C_PARAM);
    CHECK(t == NULL);
}

static void
check_packed(void)
{
    int64_t five = 5, seven = 7;
    const ov_shape_t a = {1, &five}, b = {1, &seven};
    ov_tensor_t *t = NULL;
    if (GOOD(ov_tensor_create(U4, a, &t)))
        CHECK(bytes_of(t) == 3);
    ov_tensor_free(t);
    t = NULL;
    if (GOOD(ov_tensor_create(U1, b, &t)))
        CHECK(bytes_of(t) == 1);
    ov_tensor_free(t);
}

static void
check_strings(void)
{
    const char *texts[] = {"one", "", "a longer one that does not fit into a few bytes"};
    int64_t three = 3, two = 2;
    const ov_shape_t s = {1, &three}, fewer = {1, &two};
    ov_element_type_e type = DYNAMIC;
    ov_tensor_t *t = NULL;
    size_t n = 0;
    if (!GOOD(ov_tensor_create_from_string_array(texts, 3, s, &t)))
        return;
    CHECK(ov_tensor_get_element_type(t, &type) == OK && type == STRING);
    CHECK(ov_tensor_get_size(t, &n) == OK && n == 3);
    CHECK(bytes_of(t) == 96);
    GOOD(ov_tensor_set_string_data(t, texts, 3));
    STATUS(ov_tensor_set_string_data(t, texts, 2), INVALID_C_PARAM);
    GOOD(ov_tensor_set_shape(t, fewer));
    GOOD(ov_tensor_set_string_data(t, texts, 2));
    ov_tensor_free(t);
    STATUS(ov_tensor_create_from_string_array(NULL, 3, s, &t), INVALID_C_PARAM);
}

void
check_tensors(const struct conformance *c)
{
    (void)c;
    check_owned();
    check_borrowed();
    check_packed();
    check_strings();
    ov_tensor_free(NULL);
}
