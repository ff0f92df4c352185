/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples of long tables of cases, as unit_tests/sample.h has them for kernels. XM_TEST_ALL=1
 * runs every case; otherwise XM_TEST_SEED, which tools/test derives from the commit, selects the
 * cases.
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_CASES_H
#define XM_FUNCTIONAL_TESTS_COMMON_CASES_H

#include <algorithm>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

/* Whether to run cases that take too long for every run of the tests. */
inline bool
test_all()
{
    const char *all = getenv("XM_TEST_ALL");
    return all && std::string(all) == "1";
}

inline size_t
test_seed()
{
    const char *seed = getenv("XM_TEST_SEED");
    return seed && *seed ? std::strtoul(seed, nullptr, 10) : 1;
}

/* Pairs each row with `n` columns. Each row takes the columns after those of the row before, so
 * that with enough rows every column is taken. */
template <typename Row, typename Column>
std::vector<std::tuple<Row, Column>>
dealt(const std::vector<Row> &rows, const std::vector<Column> &columns, size_t n)
{
    const size_t all = columns.size(), first = test_seed() % all;
    n = test_all() ? all : std::min(n, all);
    std::vector<std::tuple<Row, Column>> cases;
    for (size_t r = 0; r < rows.size(); r++)
        for (size_t k = 0; k < n; k++)
            cases.emplace_back(rows[r], columns[(first + r * n + k) % all]);
    return cases;
}

/* Returns `n` neighbouring values of the table. */
template <typename Value>
std::vector<Value>
some(const std::vector<Value> &values, size_t n)
{
    std::vector<Value> list;
    for (const auto &[row, value] : dealt(std::vector<int>{0}, values, n))
        list.push_back(value);
    return list;
}

#endif
