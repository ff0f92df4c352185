/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/reference/reference_row_chain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace
{

using Floats = std::vector<float>;

std::string
printed(const xm_row_chain &c)
{
    xm_strbuf out = {};
    xm_row_chain_print(&c, &out);
    std::string text = xm_strbuf_text(&out);
    xm_strbuf_free(&out);
    return text;
}

TEST(RowChainText, ComesBackAsItWas)
{
    const std::string text =
        "rms_norm x1 c0 9.99999997e-07; out add x0 s0; out rms_norm s1 _ 0; multiply s1 "
        "c1; round_bf16 s3 _; out multiply s3 s4";
    xm_row_chain c;
    xm_error err = {};
    ASSERT_EQ(xm_row_chain_parse(text.c_str(), &c, &err), XM_OK) << err.text;
    EXPECT_EQ(c.n_steps, 6u);
    EXPECT_EQ(c.n_x, 2u);
    EXPECT_EQ(c.n_c, 2u);
    EXPECT_EQ(c.n_y, 3u);
    EXPECT_EQ(printed(c), text);
    EXPECT_EQ(xm_row_chain_results(text.c_str()), 3u);
    ASSERT_EQ(xm_row_chain_parse("  out  add x0   x1 ", &c, &err), XM_OK) << err.text;
    EXPECT_EQ(printed(c), "out add x0 x1");
}

std::string
steps(int n)
{
    std::string text = "out add x0 x0";
    for (int i = 1; i < n; i++)
        text += "; add s0 x0";
    return text;
}

TEST(RowChainText, WhatIsNoChainIsRefused)
{
    const struct {
        std::string text, sentence;
    } cases[] = {
        {"", "cannot be parsed"},
        {"out", "cannot be parsed"},
        {"add x0 x1;", "step 1 "},
        {"out divide x0 x1", "cannot be parsed"},
        {"out addx0 x1", "cannot be parsed"},
        {"out add x0", "cannot be parsed"},
        {"out add x0 _", "two operands"},
        {"out round_bf16 x0", "cannot be parsed"},
        {"out round_bf16 x0 x1", "one operand"},
        {"out round_bf16 x0 c0", "one operand"},
        {"out add x0 y1", "cannot be parsed"},
        {"out add x0 x", "cannot be parsed"},
        {"out add x0 x-1", "cannot be parsed"},
        {"out add x0 x1x", "cannot be parsed"},
        {"out add x0 x99999999999999999999", "cannot be parsed"},
        {"out add x0 x4", "an operand that does not exist"},
        {"out add x0 c8", "an operand that does not exist"},
        {"out add x0 s0", "an operand that does not exist"},
        {"out add c0 x0", "must be a row"},
        {"out add _ x0", "must be a row"},
        {"out rms_norm x0 x1 1", "must be a constant"},
        {"out rms_norm x0 _", "cannot be parsed"},
        {"out rms_norm x0 _ -1", "cannot be parsed"},
        {"out rms_norm x0 _ nan", "cannot be parsed"},
        {"out rms_norm x0 _ inf", "cannot be parsed"},
        {"out rms_norm x0 _ 1x", "text after its last step"},
        {"out add x0 x1 x2", "text after its last step"},
        {"add x0 x1", "1 to 4 results"},
        {"out add x0 x2", "each of its operands"},
        {"out add x1 x1", "each of its operands"},
        {"out add x0 c1", "each of its operands"},
        {"out add x0 x0; out add x0 x0; out add x0 x0; out add x0 x0; out add x0 x0",
         "1 to 4 results"},
        {steps(13), "at most 12 steps"},
    };
    xm_row_chain c;
    for (const auto &one : cases) {
        xm_error err = {};
        EXPECT_EQ(xm_row_chain_parse(one.text.c_str(), &c, &err), XM_INVALID) << one.text;
        EXPECT_NE(std::string(err.text).find(one.sentence), std::string::npos)
            << one.text << ": " << err.text;
        EXPECT_EQ(xm_row_chain_results(one.text.c_str()), 0u);
    }
    EXPECT_EQ(xm_row_chain_parse(nullptr, &c, nullptr), XM_INVALID);
    EXPECT_EQ(xm_row_chain_parse(steps(12).c_str(), &c, nullptr), XM_OK);
}

/* Rounds to bf16: eight significant bits, ties to even. */
TEST(RowChainReference, Rounds)
{
    const Floats x0 = {1.00390625f, 1.01171875f, -3.1415927f, 70000.0f};
    const Floats want = {1.0f, 1.015625f, -3.140625f, 70144.0f};
    const float *x[] = {x0.data()};
    Floats got(4);
    float *y[] = {got.data()};
    xm_row_chain c;
    ASSERT_EQ(xm_row_chain_parse("out round_bf16 x0 _", &c, nullptr), XM_OK);
    ASSERT_EQ(xm_ref_row_chain(&c, x, nullptr, nullptr, 1, 4, y), XM_OK);
    EXPECT_EQ(got, want);
}

TEST(RowChainReference, StepByStep)
{
    const Floats x0 = {1, 2, -1, 5}, x1 = {3, 4, 0, 2}, row = {1, 10}, two = {2};
    const float *x[] = {x0.data(), x1.data()}, *constant[] = {row.data(), two.data()};
    const bool is_number[] = {false, true};
    Floats sum(4, -1), normed(4, -1), scaled(4, -1);
    float *y[] = {normed.data(), sum.data(), scaled.data()};
    xm_row_chain c;
    xm_error err = {};
    ASSERT_EQ(xm_row_chain_parse("out rms_norm x1 c0 0; out add x0 s0; multiply s1 c1; "
                                 "out add s2 c0",
                                 &c, &err),
              XM_OK)
        << err.text;
    ASSERT_EQ(xm_ref_row_chain(&c, x, constant, is_number, 2, 2, y), XM_OK);
    const float a = std::sqrt(12.5f), b = std::sqrt(2.0f);
    const Floats want = {3 / a, 40 / a, 0, 20 / b};
    for (size_t i = 0; i < want.size(); i++) {
        EXPECT_NEAR(normed[i], want[i], 1e-5f);
        EXPECT_NEAR(sum[i], x0[i] + want[i], 1e-5f);
        EXPECT_NEAR(scaled[i], 2 * (x0[i] + want[i]) + row[i % 2], 1e-4f);
    }
    EXPECT_EQ(xm_ref_row_chain(&c, x, constant, is_number, 0, 2, y), XM_OK);
}

} // namespace
