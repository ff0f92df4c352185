/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: texts of codes, element types, dimensions, shapes, layouts.
 */
#include "functional_tests/api/conformance.h"

#include <string.h>

/* ---- codes and element types ------------------------------------------------------- */

static void
check_error_texts(void)
{
    static const struct {
        ov_status_e status;
        const char *text;
    } texts[] = {
        {OK, "success"},
        {GENERAL_ERROR, "general error"},
        {NOT_IMPLEMENTED, "it's not implement"},
        {NETWORK_NOT_LOADED, "failed to network"},
        {PARAMETER_MISMATCH, "input parameter mismatch"},
        {NOT_FOUND, "cannot find the value"},
        {OUT_OF_BOUNDS, "out of bounds"},
        {UNEXPECTED, "run with unexpected error"},
        {REQUEST_BUSY, "request is busy"},
        {RESULT_NOT_READY, "result is not ready"},
        {NOT_ALLOCATED, "it is not allocated"},
        {INFER_NOT_STARTED, "inference start with error"},
        {NETWORK_NOT_READ, "network is not ready"},
        {INFER_CANCELLED, "inference is canceled"},
        {INVALID_C_PARAM, "invalid c input parameters"},
        {UNKNOWN_C_ERROR, "unknown c error"},
        {NOT_IMPLEMENT_C_METHOD, "not implement in c method"},
        {UNKNOW_EXCEPTION, "unknown exception"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK((int)texts[i].status == -(int)i);
        CHECK(strcmp(ov_get_error_info(texts[i].status), texts[i].text) == 0);
    }
    CHECK(strcmp(ov_get_error_info((ov_status_e)-100), "unknown exception") == 0);
    CHECK(strcmp(ov_get_error_info((ov_status_e)7), "unknown exception") == 0);
    CHECK(ov_get_error_info(OK) == ov_get_error_info(OK));
    ov_free(NULL);
}

/* Sizes of eight elements in bytes. */
static const struct {
    ov_element_type_e type;
    size_t bytes;
} elements[] = {
    {OV_BOOLEAN, 8}, {BF16, 16},  {F16, 16},     {F32, 32},   {F64, 64},
    {I4, 4},         {I8, 8},     {I16, 16},     {I32, 32},   {I64, 64},
    {U1, 1},         {U2, 2},     {U3, 3},       {U4, 4},     {U6, 6},
    {U8, 8},         {U16, 16},   {U32, 32},     {U64, 64},   {NF4, 4},
    {F8E4M3, 8},     {F8E5M3, 8}, {STRING, 256}, {F4E2M1, 4}, {F8E8M0, 8},
};

static void
check_element(ov_element_type_e type, size_t expected)
{
    int64_t dims[] = {2, 4};
    const ov_shape_t shape = {2, dims};
    ov_tensor_t *t = NULL;
    ov_element_type_e found = DYNAMIC;
    size_t n = 0, bytes = 0;
    if (!GOOD(ov_tensor_create(type, shape, &t)))
        return;
    CHECK(ov_tensor_get_element_type(t, &found) == OK && found == type);
    CHECK(ov_tensor_get_size(t, &n) == OK && n == 8);
    CHECK(ov_tensor_get_byte_size(t, &bytes) == OK && bytes == expected);
    ov_tensor_free(t);
}

static void
check_elements(void)
{
    int64_t one = 1;
    const ov_shape_t shape = {1, &one};
    ov_tensor_t *t = NULL;
    for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
        CHECK((size_t)elements[i].type == i + 1);
        check_element(elements[i].type, elements[i].bytes);
    }
    STATUS(ov_tensor_create(DYNAMIC, shape, &t), GENERAL_ERROR);
    STATUS(ov_tensor_create((ov_element_type_e)99, shape, &t), INVALID_C_PARAM);
    STATUS(ov_tensor_create_from_host_ptr((ov_element_type_e)-1, shape, &one, &t),
           INVALID_C_PARAM);
    CHECK(t == NULL);
}

void
check_types(const struct conformance *c)
{
    (void)c;
    check_error_texts();
    check_elements();
}

/* ---- shapes ------------------------------------------------------------------------ */

static void
check_static_shapes(void)
{
    const int64_t dims[] = {2, 0, 5}, negative[] = {2, -1};
    ov_shape_t s = {0, NULL};
    if (GOOD(ov_shape_create(3, dims, &s))) {
        CHECK(s.rank == 3 && s.dims != dims);
        CHECK(s.dims[0] == 2 && s.dims[1] == 0 && s.dims[2] == 5);
        GOOD(ov_shape_free(&s));
        CHECK(s.rank == 0 && s.dims == NULL);
    }
    if (GOOD(ov_shape_create(2, NULL, &s))) {
        s.dims[0] = s.dims[1] = 7; /* the caller fills them in */
        GOOD(ov_shape_free(&s));
    }
    STATUS(ov_shape_create(0, dims, &s), INVALID_C_PARAM);
    STATUS(ov_shape_create(-1, dims, &s), INVALID_C_PARAM);
    STATUS(ov_shape_create(2, negative, &s), INVALID_C_PARAM);
    STATUS(ov_shape_create(2, dims, NULL), INVALID_C_PARAM);
    STATUS(ov_shape_free(NULL), INVALID_C_PARAM);
}

static void
check_dynamic_numbers(void)
{
    static const struct {
        int64_t min, max;
        bool is_dynamic;
    } cases[] = {
        {3, 3, false}, {1, 3, true}, {-1, -1, true}, {0, 0, true}, {0, -1, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const ov_dimension_t d = {cases[i].min, cases[i].max};
        const ov_rank_t r = {cases[i].min, cases[i].max};
        CHECK(ov_dimension_is_dynamic(d) == cases[i].is_dynamic);
        CHECK(ov_rank_is_dynamic(r) == cases[i].is_dynamic);
    }
}

static void
check_partial_text(int64_t rank, const ov_dimension_t *dims, const char *text,
                   bool is_dynamic)
{
    ov_partial_shape_t p = {{0, 0}, NULL};
    if (!GOOD(ov_partial_shape_create(rank, dims, &p)))
        return;
    CHECK(p.rank.min == rank && p.rank.max == rank);
    CHECK(ov_partial_shape_is_dynamic(p) == is_dynamic);
    CHECK(takes_text(ov_partial_shape_to_string(p), text));
    ov_partial_shape_free(&p);
}

static void
check_partial_shapes(void)
{
    const ov_dimension_t fixed[] = {{1, 1}, {20, 20}, {300, 300}};
    const ov_dimension_t mixed[] = {{-1, -1}, {1, 20}, {300, 300}};
    const ov_dimension_t open[] = {{-1, 5}, {0, 5}, {1, INT64_MAX}, {0, INT64_MAX}};
    const ov_dimension_t wrong[][1] = {{{5, 3}}, {{0, -1}}, {{2, -1}}};
    ov_partial_shape_t p = {{0, 0}, NULL};
    check_partial_text(3, fixed, "{1,20,300}", false);
    check_partial_text(3, mixed, "{?,1..20,300}", true);
    check_partial_text(4, open, "{..5,..5,1..,?}", true);
    for (int i = 0; i < 3; i++)
        STATUS(ov_partial_shape_create(1, wrong[i], &p), INVALID_C_PARAM);
    STATUS(ov_partial_shape_create(-1, fixed, &p), INVALID_C_PARAM);
    STATUS(ov_partial_shape_create(3, NULL, &p), INVALID_C_PARAM);
    STATUS(ov_partial_shape_create(3, fixed, NULL), INVALID_C_PARAM);
    ov_partial_shape_free(NULL);
}

static void
check_partial_kinds(void)
{
    const int64_t dims[] = {1, 20};
    const ov_dimension_t ranges[] = {{1, 4}, {2, 2}};
    const ov_rank_t any = {-1, -1}, two = {2, 2};
    ov_partial_shape_t p = {{0, 0}, NULL};
    if (GOOD(ov_partial_shape_create_static(2, dims, &p))) {
        CHECK(!ov_partial_shape_is_dynamic(p));
        CHECK(takes_text(ov_partial_shape_to_string(p), "{1,20}"));
        ov_partial_shape_free(&p);
    }
    if (GOOD(ov_partial_shape_create_dynamic(any, NULL, &p))) {
        CHECK(ov_partial_shape_is_dynamic(p));
        CHECK(takes_text(ov_partial_shape_to_string(p), "?"));
        ov_partial_shape_free(&p);
    }
    if (GOOD(ov_partial_shape_create_dynamic(two, ranges, &p))) {
        CHECK(takes_text(ov_partial_shape_to_string(p), "{1..4,2}"));
        ov_partial_shape_free(&p);
    }
}

static void
check_conversions(void)
{
    int64_t dims[] = {4, 6}, negative[] = {4, -6};
    ov_dimension_t fixed[] = {{4, 4}, {6, 6}}, open[] = {{4, 4}, {-1, -1}};
    const ov_shape_t shape = {2, dims};
    const ov_partial_shape_t whole = {{2, 2}, fixed}, dynamic = {{2, 2}, open};
    ov_partial_shape_t p = {{0, 0}, NULL};
    ov_shape_t s = {0, dims}; /* holds no memory that would need freeing */
    STATUS(ov_partial_shape_to_shape(dynamic, &s), PARAMETER_MISMATCH);
    if (CHECK(s.dims != dims))
        /* programs free a shape that a failed call should have set */
        GOOD(ov_shape_free(&s));
    p.dims = fixed;
    STATUS(ov_partial_shape_create_static(2, negative, &p), INVALID_C_PARAM);
    if (CHECK(p.dims != fixed))
        ov_partial_shape_free(&p);
    if (GOOD(ov_partial_shape_to_shape(whole, &s))) {
        CHECK(s.rank == 2 && s.dims[0] == 4 && s.dims[1] == 6);
        GOOD(ov_shape_free(&s));
    }
    if (GOOD(ov_shape_to_partial_shape(shape, &p))) {
        CHECK(!ov_partial_shape_is_dynamic(p));
        CHECK(takes_text(ov_partial_shape_to_string(p), "{4,6}"));
        ov_partial_shape_free(&p);
    }
    STATUS(ov_partial_shape_to_shape(whole, NULL), INVALID_C_PARAM);
    STATUS(ov_shape_to_partial_shape(shape, NULL), INVALID_C_PARAM);
}

static void
check_layouts(void)
{
    static const char *const good[][2] = {
        {"NCHW", "[N,C,H,W]"},        {"[N,C,H,W]", "[N,C,H,W]"},
        {"[N,?,...]", "[N,?,...]"},   {"NC", "[N,C]"},
        {"[N,...,C]", "[N,...,C]"},   {"BCHW", "[N,C,H,W]"},
        {"[batch,channel]", "[N,C]"},
    };
    static const char *const bad[] = {"NN", "[N,N]", "N*C", "[N,...,...]", "[N,,C]"};
    ov_layout_t *l = NULL;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        if (!GOOD(ov_layout_create(good[i][0], &l)))
            continue;
        CHECK(takes_text(ov_layout_to_string(l), good[i][1]));
        ov_layout_free(l);
    }
    l = NULL;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        STATUS(ov_layout_create(bad[i], &l), GENERAL_ERROR);
    CHECK(l == NULL);
    STATUS(ov_layout_create(NULL, &l), INVALID_C_PARAM);
    ov_layout_free(NULL);
}

void
check_shapes(const struct conformance *c)
{
    (void)c;
    check_static_shapes();
    check_dynamic_numbers();
    check_partial_shapes();
    check_partial_kinds();
    check_conversions();
    check_layouts();
}
