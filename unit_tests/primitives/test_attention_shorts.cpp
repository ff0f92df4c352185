/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in f16 on caches of few bits, which processors multiply as 16-bit integers: the
 * largest sums, the smallest weights, and NaN.
 */
#include <algorithm>

#include "unit_tests/primitives/attention_fixture.h"
#include "unit_tests/sample.h"

namespace
{

/* Types of keys and values. */
std::vector<std::pair<xm_element, xm_element>>
some_types()
{
    return sample::of<std::pair<xm_element, xm_element>>(
        {{XM_F16, XM_F16}, {XM_I8, XM_I8}, {XM_U4, XM_U4}}, 2);
}

problem
halves(const char *name, int64_t t, int64_t past, uint32_t d,
       const std::pair<xm_element, xm_element> &type)
{
    problem p = make(name, 1, t, past);
    p.element = XM_F16;
    p.d = p.dv = d;
    p.heads_q = 8;
    p.heads_kv = 1;
    p.page = 32;
    p.cache = type.first;
    p.v_cache = type.second;
    return p;
}

/* Returns rows of n elements: x in the first column, else 0. */
std::vector<float>
spikes(size_t rows, size_t n, float x)
{
    std::vector<float> v(rows * n);
    for (size_t i = 0; i < v.size(); i += n)
        v[i] = x;
    return v;
}

TEST_F(Attention, RowsOfFewBitsStayAsExactAsHalves)
{
    struct sizes {
        uint32_t d, dv, heads_q;
        int64_t t;
        xm_element k, v;
    };
    const std::vector<sizes> problems = {
        {64, 64, 3, 1, XM_U4, XM_U4},    {128, 128, 7, 4, XM_I8, XM_I8},
        {192, 64, 8, 9, XM_U4, XM_I8},   {256, 128, 1, 2, XM_I8, XM_U4},
        {128, 64, 12, 3, XM_F16, XM_I8}, {64, 128, 5, 33, XM_U4, XM_F16},
    };
    for (const sizes &size : sample::of(problems, 3)) {
        problem p = halves("sizes", size.t, 100, size.d, {size.k, size.v});
        p.dv = size.dv;
        p.heads_q = size.heads_q;
        check(p);
    }
}

/* A row with one element becomes flat when it is rotated: all products have one sign, so that no
 * sum of as many products is larger. */
TEST_F(Attention, TheLargestSumsOfProductsFit)
{
    for (const auto &type : some_types())
        for (int64_t t : {1, 9}) {
            problem p = halves("spikes", t, 64, 256, type);
            SCOPED_TRACE(xm_element_text(type.first));
            create(p);
            state s(p);
            s.k = spikes((size_t)p.total(), p.d, 3.0f);
            s.v = spikes((size_t)p.total(), p.dv, -5.0f);
            fill(s);
            const std::vector<float> q = spikes((size_t)p.t * p.heads_q, p.d, 7.0f);
            EXPECT_TRUE(rows_of_norm(chunk(s, p.lengths(), q), reference(s, q, {}, {}),
                                     p.dv, p.element));
        }
}

/* One key has half of the weight, and its values are zero. The result is that of the other keys,
 * each with a weight of e^-9. */
TEST_F(Attention, SmallWeightsCountBesideALargeOne)
{
    for (const auto &type : some_types())
        for (int64_t t : {1, 9}) {
            problem p = halves("light keys", t, 4000, 64, type);
            SCOPED_TRACE(xm_element_text(type.first));
            create(p);
            state s(p);
            const size_t heavy = 40;
            std::fill(s.k.begin(), s.k.end(), 0.0f);
            s.k[heavy * p.d] = 9.0f;
            for (size_t i = 0; i < s.v.size(); i++)
                s.v[i] = i / p.dv == heavy ? 0.0f : 1.0f + (float)(i % 3);
            fill(s);
            const std::vector<float> q = spikes((size_t)p.t * p.heads_q, p.d, 8.0f);
            EXPECT_TRUE(rows_of_norm(chunk(s, p.lengths(), q), reference(s, q, {}, {}),
                                     p.dv, p.element));
        }
}

TEST_F(Attention, AQueryThatIsNoNumberGivesNone)
{
    for (const auto &type : some_types())
        for (int64_t t : {1, 9})
            for (int64_t past : {3, 700}) { /* decode cuts the keys of the second */
                problem p = halves("not a number", t, past, 64, type);
                SCOPED_TRACE(xm_element_text(type.first));
                create(p);
                state s(p);
                fill(s);
                std::vector<float> q = random_floats((size_t)p.t * p.heads_q * p.d, 4);
                const std::vector<float> whole = chunk(s, p.lengths(), q);
                q[2 * p.d + 5] = NAN;
                const std::vector<float> got = chunk(s, p.lengths(), q);
                for (size_t i = 0; i < got.size(); i++)
                    if (i / p.dv == 2)
                        ASSERT_TRUE(std::isnan(got[i])) << i;
                    else
                        ASSERT_EQ(got[i], whole[i]) << i;
            }
}

} // namespace
