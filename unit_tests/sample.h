/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples of long tables of cases. What takes time in tests of kernels is building them, one
 * for each row of a variant table and each format; all pairs are for `tools/test --all`
 * (XM_TEST_ALL=1). Otherwise each row runs a few cases, and each case is run by some row; and rows
 * for GPUs are compiled without optimising them (optimise_for in primitives/harness.h).
 * XM_TEST_SEED chooses the cases: tools/test makes it from the commit, a test program that is run
 * alone takes 1.
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

/* The cases 0 … n-1 of a table, dealt to those who run them. */
class deck
{
  public:
    explicit deck(size_t n) : new_(n)
    {
        std::iota(new_.begin(), new_.end(), 0);
        if (!is_whole())
            std::shuffle(new_.begin(), new_.end(), random());
    }

    /* Offers cases to `takes` until it took n of them: first those that nobody took yet. The
     * whole table is offered where samples are off. */
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

    /* For the last one, which takes everything: what nobody took yet. */
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

/* n of the values, in their order; all where samples are off. */
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
