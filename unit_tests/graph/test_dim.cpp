/* SPDX-License-Identifier: Apache-2.0 */
#include "unit_tests/graph/graph_text.h"

namespace
{

struct Pool : xm_dim_pool {
    Pool() : xm_dim_pool()
    {
    }
    ~Pool()
    {
        xm_dim_pool_free(this);
    }
};

xm_dim
dim(xm_dim_pool *p, const std::string &text)
{
    const char *end = nullptr;
    xm_dim d = {};
    xm_error err = {};
    EXPECT_EQ(xm_dim_parse(p, text.c_str(), &end, &d, &err), XM_OK) << err.text;
    EXPECT_STREQ(end, "") << text;
    return d;
}

TEST(Dim, PrintsOneSpellingOfEachPolynomial)
{
    const struct {
        const char *in, *out;
    } rows[] = {
        {"42", "42"},
        {"-1", "-1"},
        {"batch", "batch"},
        {"tokens*8*batch", "8*batch*tokens"},
        {"tokens + past", "past + tokens"},
        {"1 + past", "past + 1"},
        {"past - 1", "past - 1"},
        {"a - a", "0"},
        {"0*a + 7", "7"},
        {"a*a + a", "a*a + a"},
        {"2*a + 3*a", "5*a"},
        {"-a + 3", "-a + 3"},
        {"?3 + 1", "?3 + 1"},
        {"b*a + c*c + a*a", "a*a + a*b + c*c"},
    };
    Pool p;
    for (const auto &r : rows) {
        xm_dim d = dim(&p, r.in);
        EXPECT_EQ(print(d), r.out);
        EXPECT_TRUE(xm_dim_eq(d, dim(&p, r.out))) << r.in;
    }
}

TEST(Dim, Algebra)
{
    const struct {
        const char *a;
        char op;
        const char *b, *out;
    } rows[] = {
        {"2", '+', "3", "5"},
        {"past", '+', "tokens", "past + tokens"},
        {"past + tokens", '-', "past", "tokens"},
        {"past + tokens", '*', "batch", "batch*past + batch*tokens"},
        {"a + b", '*', "a - b", "a*a - b*b"},
        {"a", '*', "0", "0"},
        {"8*a + 4", '/', "4", "2*a + 1"},
        {"6", '/', "3", "2"},
        {"8*batch*tokens", '/', "4*batch", "2*tokens"},
        {"8*batch*tokens + 8*batch*past", '/', "past + tokens", "8*batch"},
        {"a*a - b*b", '/', "a + b", "a - b"},
        {"0", '/', "a", "0"},
    };
    Pool p;
    for (const auto &r : rows) {
        bool exact = true;
        xm_dim a = dim(&p, r.a), b = dim(&p, r.b);
        xm_dim c = r.op == '+'   ? xm_dim_add(&p, a, b)
                   : r.op == '-' ? xm_dim_sub(&p, a, b)
                   : r.op == '*' ? xm_dim_mul(&p, a, b)
                                 : xm_dim_div(&p, a, b, &exact);
        EXPECT_EQ(print(c), r.out) << r.a << r.op << r.b;
        EXPECT_TRUE(exact);
        EXPECT_TRUE(xm_dim_eq(c, dim(&p, r.out)));
    }
}

TEST(Dim, InexactDivisionIsFresh)
{
    const char *const rows[][2] = {{"a", "2"}, {"7", "2"},     {"7", "0"},
                                   {"a", "b"}, {"a + 1", "a"}, {"7", "a"}};
    Pool p;
    for (const auto &r : rows) {
        bool exact = true;
        xm_dim d = xm_dim_div(&p, dim(&p, r[0]), dim(&p, r[1]), &exact);
        EXPECT_FALSE(exact) << r[0] << "/" << r[1];
        EXPECT_TRUE(xm_dim_is_unknown(d));
    }
}

TEST(Dim, OverflowAndCapsGiveFreshSymbols)
{
    Pool p;
    xm_dim big = xm_dim_const(INT64_MAX);
    EXPECT_TRUE(xm_dim_is_unknown(xm_dim_add(&p, big, xm_dim_const(1))));
    EXPECT_TRUE(xm_dim_is_unknown(xm_dim_mul(&p, big, xm_dim_const(2))));
    EXPECT_TRUE(xm_dim_is_unknown(xm_dim_mul(&p, big, dim(&p, "2*a"))));
    EXPECT_TRUE(xm_dim_is_unknown(dim(&p, "a*a*a*a*a*a*a")));
    xm_dim sum = xm_dim_const(0);
    for (int i = 0; i < 40; i++)
        sum = xm_dim_add(&p, sum, xm_dim_symbol(&p, ("s" + std::to_string(i)).c_str()));
    EXPECT_TRUE(xm_dim_is_unknown(sum));
    EXPECT_FALSE(xm_dim_eq(xm_dim_fresh(&p), xm_dim_fresh(&p)));
}

TEST(Dim, FreshNeverMeetsAName)
{
    Pool p;
    xm_dim named = dim(&p, "?5");
    for (int i = 0; i < 10; i++)
        EXPECT_FALSE(xm_dim_eq(xm_dim_fresh(&p), named));
}

TEST(Dim, Evaluates)
{
    Pool p;
    const xm_binding bound[] = {{"past", 7}, {"tokens", 3}, {"huge", INT64_MAX}};
    int64_t n = 0;
    xm_error err = {};
    EXPECT_EQ(xm_dim_eval(dim(&p, "2*past*tokens + past - 1"), bound, 3, &n, &err),
              XM_OK);
    EXPECT_EQ(n, 48);
    EXPECT_EQ(xm_dim_eval(dim(&p, "batch"), bound, 3, &n, &err), XM_NOT_FOUND);
    EXPECT_NE(strstr(err.text, "batch"), nullptr);
    err = {};
    EXPECT_EQ(xm_dim_eval(dim(&p, "tokens - past"), bound, 3, &n, &err), XM_INVALID);
    err = {};
    EXPECT_EQ(xm_dim_eval(dim(&p, "2*huge"), bound, 3, &n, &err), XM_INVALID);
    EXPECT_NE(strstr(err.text, "64 bits"), nullptr);
}

TEST(Dim, ImportKeepsTheMeaning)
{
    Pool p, q;
    xm_dim d = dim(&p, "3*past*tokens - past + 4");
    EXPECT_EQ(print(xm_dim_import(&q, d)), print(d));
    EXPECT_TRUE(xm_dim_eq(xm_dim_import(&p, d), d));
}

TEST(Dim, RefusesBadText)
{
    for (const char *text :
         {"", "+", "a +", "a*", "*a", "99999999999999999999", "a + -b"}) {
        Pool p;
        const char *end;
        xm_dim d;
        xm_error err = {};
        EXPECT_EQ(xm_dim_parse(&p, text, &end, &d, &err), XM_INVALID) << text;
    }
    Pool p;
    const char *end;
    xm_dim d;
    xm_error err = {};
    std::string name(200, 'a');
    EXPECT_EQ(xm_dim_parse(&p, name.c_str(), &end, &d, &err), XM_INVALID);
}

TEST(Dim, ManySymbolsAndPolynomials)
{
    Pool p;
    xm_dim first = dim(&p, "x0*y"), sum = first;
    for (int i = 1; i < 2000; i++)
        sum = xm_dim_mul(&p, xm_dim_symbol(&p, ("x" + std::to_string(i)).c_str()),
                         dim(&p, "y"));
    EXPECT_EQ(print(sum), "x1999*y");
    EXPECT_TRUE(xm_dim_eq(first, dim(&p, "y*x0")));
    EXPECT_FALSE(p.failed);
}

} // namespace
