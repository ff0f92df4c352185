/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts, shapes that callers fill in themselves, and functions that are declared but refused.
 */
#include "functional_tests/api/api_test.h"

#include <string>

namespace
{

/* Returns a layout as text in brackets; the error text if it is refused. */
std::string
layout(const std::string &desc)
{
    ov_layout_t *l = nullptr;
    const ov_status_e s = ov_layout_create(desc.c_str(), &l);
    if (s != OK) {
        EXPECT_EQ(s, GENERAL_ERROR);
        EXPECT_EQ(l, nullptr);
        return last_error();
    }
    const char *text = ov_layout_to_string(l);
    const std::string out = text;
    ov_free(text);
    ov_layout_free(l);
    return out;
}

TEST(Layout, IsGivenInBrackets)
{
    const struct {
        const char *desc, *text;
    } cases[] = {
        {"NCHW", "[N,C,H,W]"},
        {"nchw", "[N,C,H,W]"},
        {"[N,C,H,W]", "[N,C,H,W]"},
        {"[n, height ,Width_2]", "[N,H,WIDTH_2]"},
        {"[batch,channels,DEPTH,Width]", "[N,C,D,W]"},
        {"BC", "[N,C]"},
        {"[b\t,c]", "[N,C]"},
        {" \tNC\n", "[N,C]"},
        {" [N,C] ", "[N,C]"},
        {"[N,C,]", "[N,C]"},
        {"[N_1,_c,1]", "[N_1,_C,1]"},
        {"N...C", "[N,...,C]"},
        {"[...,C]", "[...,C]"},
        {"??C", "[?,?,C]"},
        {"[N,?,...]", "[N,?,...]"},
        {"", "[...]"},
    };
    for (const auto &c : cases)
        EXPECT_EQ(layout(c.desc), c.text) << c.desc;
}

TEST(Layout, RefusesWhatIsNoName)
{
    const struct {
        std::string desc, sentence;
    } cases[] = {
        {"NCN", "layout: the dimension 'N' occurs twice"},
        {"[n,c,N]", "layout: the dimension 'N' occurs twice"},
        {"......", "layout: the dimension '...' occurs twice"},
        {"N C", "layout: ' ' is not the name of a dimension"},
        {"[N,,C]", "layout: '' is not the name of a dimension"},
        {"[N, ]", "layout: '' is not the name of a dimension"},
        {"[,N]", "layout: '' is not the name of a dimension"},
        {"[C,channels]", "layout: the dimension 'C' occurs twice"},
        {"N_C", "layout: '_' is not the name of a dimension"},
        {"[__]", "layout: '__' is not the name of a dimension"},
        {" ", "layout: it contains only spaces"},
        {"[]", "layout: '' is not the name of a dimension"},
        {"[N,C", "layout: '[' is not the name of a dimension"},
        {"[N;C]", "layout: 'N;C' is not the name of a dimension"},
        {"N..", "layout: '.' is not the name of a dimension"},
        {std::string(1 << 20, '?'), "layout: it has more than 64 dimensions"},
        {"[" + std::string(1 << 20, '-') + "]",
         "layout: '" + std::string(50, '-') + "' is not the name of a dimension"},
    };
    for (const auto &c : cases)
        EXPECT_EQ(layout(c.desc), c.sentence) << c.desc.substr(0, 40);
    ov_layout_t *l = nullptr;
    EXPECT_EQ(ov_layout_create(nullptr, &l), INVALID_C_PARAM);
    EXPECT_EQ(ov_layout_create("N", nullptr), INVALID_C_PARAM);
    EXPECT_EQ(ov_layout_to_string(nullptr), nullptr);
    ov_layout_free(nullptr);
}

/* The structs are public, so that a caller can make such a shape. */
TEST(PartialShape, WithoutItsDimensionsIsNoShape)
{
    const ov_partial_shape_t none = {{3, 3}, nullptr};
    ov_shape_t s = {7, nullptr};
    EXPECT_EQ(ov_partial_shape_to_shape(none, &s), INVALID_C_PARAM);
    EXPECT_EQ(s.rank, 7);
    EXPECT_TRUE(ov_partial_shape_is_dynamic(none));
    EXPECT_EQ(ov_partial_shape_to_string(none), nullptr);
    EXPECT_EQ(ov_partial_shape_to_string({{-3, -3}, nullptr}), nullptr);
}

TEST(PartialShape, OfANonsenseRankFailsBeforeItsDimensionsAreRead)
{
    const int64_t one = 1;
    const ov_dimension_t d = {1, 1};
    ov_shape_t s = {0, nullptr};
    ov_partial_shape_t p = {{0, 0}, nullptr};
    EXPECT_EQ(ov_shape_create(INT64_MAX, &one, &s), GENERAL_ERROR);
    EXPECT_EQ(ov_partial_shape_create(INT64_MAX, &d, &p), GENERAL_ERROR);
    EXPECT_EQ(ov_partial_shape_create_static(INT64_MAX, &one, &p), GENERAL_ERROR);
}

TEST(Preprocessing, IsRefusedByName)
{
    ov_preprocess_prepostprocessor_t *p = nullptr;
    EXPECT_EQ(ov_preprocess_prepostprocessor_create(nullptr, &p), NOT_IMPLEMENT_C_METHOD);
    EXPECT_EQ(
        last_error(),
        "ov_preprocess_prepostprocessor_create: image preprocessing is not supported");
    EXPECT_EQ(ov_preprocess_preprocess_steps_resize(nullptr, RESIZE_CUBIC),
              NOT_IMPLEMENT_C_METHOD);
    EXPECT_EQ(
        last_error(),
        "ov_preprocess_preprocess_steps_resize: image preprocessing is not supported");
    EXPECT_EQ(p, nullptr);
    ov_preprocess_prepostprocessor_free(p);
}

TEST(Properties, OfMoreArgumentsThanAnyoneHasAreNotRead)
{
    Core core = make_core();
    Model model = read_text(core.get(), add_model());
    ov_compiled_model_t *compiled = nullptr;
    for (const size_t n : {size_t{1}, size_t{258}, SIZE_MAX - 1})
        EXPECT_EQ(
            ov_core_compile_model(core.get(), model.get(), "REFERENCE", n, &compiled),
            INVALID_C_PARAM);
    EXPECT_EQ(compiled, nullptr);
}

} // namespace
