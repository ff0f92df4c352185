/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples of long tables of cases. Tests of kernels spend most of their time building them: one
 * build for each variant of a table and each format. `tools/test --all` (XM_TEST_ALL=1) runs all
 * pairs. Otherwise each variant runs a few cases, each case is run by at least one variant, and
 * variants for GPUs are compiled without optimisation (optimise_for in primitives/harness.h).
 *
 * XM_TEST_SEED selects the cases: tools/test derives it from the commit; without it the seed is
 * 1.
 */
#ifndef XM_UNIT_TESTS_SAMPLE_H
#define XM_UNIT_TESTS_SAMPLE_H

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

namespace sample
{

inline bool
is_whole()
{
    const char *all = std::getenv("XM_TEST_ALL");
    return all && *all && *all != '0';
}

inline std::mt19937 &
random()
{
    static std::mt19937 generator = [] {
        const char *text = std::getenv("XM_TEST_SEED");
        const uint32_t seed =
            text && *text ? (uint32_t)std::strtoul(text, nullptr, 10) : 1;
        std::fprintf(stderr, "sample: XM_TEST_SEED=%u\n", seed);
        return std::mt19937(seed);
    }();
    return generator;
}

/* Deals the cases 0 … n-1 of a table to variants, in random order. */
class deck
{
  public:
    explicit deck(size_t n) : new_(n)
    {
        std::iota(new_.begin(), new_.end(), 0);
        if (!is_whole())
            std::shuffle(new_.begin(), new_.end(), random());
    }

    /* Offers cases to `takes` until it returned true n times: first cases that nobody took yet,
     * then others. Without sampling it offers every case. */
    void deal(size_t n, const std::function<bool(size_t)> &takes)
    {
        std::vector<size_t> left, again = old_;
        for (size_t i : new_) {
            const bool taken = wants(n) && takes(i);
            n -= taken && n > 0;
            (taken ? old_ : left).push_back(i);
        }
        new_ = left;
        for (size_t i = 0; i < again.size() && wants(n); i++)
            n -= takes(again[i]) && n > 0;
    }

    /* Offers all cases that nobody took yet; the last variant calls it. */
    void deal_rest(const std::function<bool(size_t)> &takes)
    {
        if (!is_whole())
            deal(new_.size(), takes);
    }

    bool all_taken() const
    {
        return new_.empty();
    }

  private:
    static bool wants(size_t n)
    {
        return is_whole() || n > 0;
    }

    std::vector<size_t> new_, old_;
};

/* Returns a sample of n values in their order; without sampling all of them. */
template <typename T>
std::vector<T>
of(std::vector<T> values, size_t n)
{
    if (is_whole() || n >= values.size())
        return values;
    std::vector<size_t> at(values.size());
    std::iota(at.begin(), at.end(), 0);
    std::shuffle(at.begin(), at.end(), random());
    at.resize(n);
    std::sort(at.begin(), at.end());
    std::vector<T> few;
    for (size_t i : at)
        few.push_back(values[i]);
    return few;
}

} // namespace sample

#endif
