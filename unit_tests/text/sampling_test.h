/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the sampler with formulas in double precision; shared by the tests of filters and of
 * penalties.
 */
#ifndef XM_UNIT_TESTS_TEXT_SAMPLING_TEST_H
#define XM_UNIT_TESTS_TEXT_SAMPLING_TEST_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cl/include/token_arithmetic.h"
#include "plugin/text/sampler.h"
#include "unit_tests/sample.h"

using floats = std::vector<float>;
using doubles = std::vector<double>;
using ids = std::vector<int32_t>;

const double infinity = std::numeric_limits<double>::infinity();

inline xm_sampling
drawn()
{
    xm_sampling s;
    xm_sampling_init(&s);
    s.temperature = 1.0f;
    return s;
}

struct Sampler {
    explicit Sampler(const xm_sampling &s, size_t n)
    {
        xm_error err = {};
        EXPECT_EQ(xm_sampler_create(&s, n, &sampler, &err), XM_OK) << err.text;
        scratch = xm_sampler_scratch_create(n);
    }
    ~Sampler()
    {
        xm_sampler_free(sampler);
        xm_sampler_scratch_free(scratch);
    }
    void begin(const ids &text)
    {
        EXPECT_EQ(xm_sampler_begin(sampler, text.data(), text.size(), nullptr), XM_OK);
    }
    void accept(int32_t id)
    {
        EXPECT_EQ(xm_sampler_accept(sampler, &id, 1, nullptr), XM_OK);
    }
    int32_t next(const floats &logits)
    {
        int32_t id = -1;
        xm_error err = {};
        EXPECT_EQ(xm_sampler_next(sampler, scratch, logits.data(), &id, &err), XM_OK)
            << err.text;
        return id;
    }

    xm_sampler *sampler = nullptr;
    xm_sampler_scratch *scratch = nullptr;
};

inline double
unit_of(uint64_t bits)
{
    return std::ldexp((double)(bits >> 11), -53);
}

/* ---- the formulas ------------------------------------------------------------------------ */

/* A row in double precision: its logits, and the probability of each token, 0 for filtered
 * tokens. `margin`: the least distance of a comparison so far from the opposite result; a test
 * skips rows where rounding could decide. */
struct Row {
    doubles l, p;
    double margin = infinity;

    void softmax(double temperature)
    {
        const double most = *std::max_element(l.begin(), l.end());
        p.assign(l.size(), 0.0);
        for (size_t i = 0; i < l.size(); i++)
            p[i] = std::exp((l[i] - most) / temperature);
        renormalise();
    }
    void renormalise()
    {
        const double sum = std::accumulate(p.begin(), p.end(), 0.0);
        for (double &x : p)
            x /= sum;
    }
    /* Returns x < y and lowers the margin to their relative distance. */
    bool is_below(double x, double y)
    {
        margin = std::min(margin, std::fabs(x - y) / (std::fabs(y) + 1e-3));
        return x < y;
    }
    /* Returns the remaining tokens in ascending order of by(token). */
    std::vector<size_t> order(const std::function<double(size_t)> &by)
    {
        std::vector<size_t> list;
        for (size_t i = 0; i < p.size(); i++)
            if (p[i] > 0.0)
                list.push_back(i);
        std::sort(list.begin(), list.end(),
                  [&](size_t a, size_t b) { return by(a) < by(b); });
        for (size_t i = 1; i < list.size(); i++)
            margin = std::min(margin, by(list[i]) - by(list[i - 1]));
        return list;
    }
    /* Keeps the shortest prefix of the list whose probabilities sum to at least `enough`. */
    void keep_first(const std::vector<size_t> &list, double enough)
    {
        double sum = 0.0;
        bool is_over = false;
        for (const size_t i : list) {
            const double before = sum;
            sum += p[i];
            if (is_over)
                p[i] = 0.0;
            else if (before < enough)
                is_over = !is_below(sum, enough);
        }
        renormalise();
    }
};

/* ---- the token that is drawn --------------------------------------------------------------- */

class Parameters : public testing::Test
{
  protected:
    std::mt19937 &random = sample::random();

    size_t pick(size_t n)
    {
        return random() % n;
    }
    double real(double low, double high)
    {
        return low + (high - low) * unit_of((uint64_t)random() << 32);
    }
    floats row(size_t n)
    {
        std::normal_distribution<float> normal(0.0f, (float)real(0.3, 4.0));
        floats logits(n);
        for (float &x : logits)
            x = normal(random);
        return logits;
    }

    /* Returns the token that the formula draws with the sampler's random number; -1 if the number
     * is so near to a boundary that rounding decides. */
    static int32_t expected(const Row &r, uint64_t bits)
    {
        const double at = unit_of(bits);
        double sum = 0.0;
        for (size_t i = 0; i < r.p.size(); i++) {
            sum += r.p[i];
            if (std::fabs(sum - at) < 1e-6 && r.p[i] > 0.0)
                return -1;
            if (at < sum)
                return (int32_t)i;
        }
        return -1;
    }

    using Formula = std::function<void(Row &, const xm_sampling &)>;

    /* Draws 4 tokens from each of 3000 rows and compares those with a certain answer; at least
     * 6000 must have one. `set` changes the parameters; the formulas act on logits before, and on
     * probabilities after the softmax. The parameter must change some tokens. */
    void expect_formula(const std::function<void(xm_sampling &)> &set,
                        const Formula &on_logits, const Formula &on_weights)
    {
        int compared = 0, others = 0;
        for (int i = 0; i < 3000; i++) {
            const floats logits = row(2 + pick(i % 10 ? 60 : 2000));
            xm_sampling s = drawn();
            s.seed = random();
            s.temperature = (float)real(0.4, 2.0);
            set(s);
            Row r;
            r.l.assign(logits.begin(), logits.end());
            on_logits(r, s);
            r.softmax((double)s.temperature);
            Row plain = r;
            on_weights(r, s);
            Sampler sampler(s, logits.size());
            for (uint64_t n = 0; n < 4; n++) {
                const int32_t got = sampler.next(logits);
                const int32_t want = expected(r, random_bits(s.seed, n));
                if (r.margin < 1e-6 || want < 0)
                    continue;
                ASSERT_EQ(got, want) << "row " << i << " of " << logits.size();
                compared++;
                others += want != expected(plain, random_bits(s.seed, n));
            }
        }
        EXPECT_GT(compared, 6000);
        EXPECT_GT(others, compared / 100) << "the parameter changes something";
    }

    static void nothing(Row &, const xm_sampling &)
    {
    }
};

#endif
