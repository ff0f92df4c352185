/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/log_sum_exp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace
{

const float infinity = std::numeric_limits<float>::infinity();
const float no_number = std::numeric_limits<float>::quiet_NaN();

long double
definition(const std::vector<float> &row)
{
    const long double largest = *std::max_element(row.begin(), row.end());
    long double sum = 0;
    for (const float x : row)
        sum += std::exp((long double)x - largest);
    return largest + std::log(sum);
}

double
of(const std::vector<float> &row)
{
    return xm_log_sum_exp(row.data(), row.size());
}

} // namespace

TEST(LogSumExp, IsThatOfTheDefinition)
{
    std::mt19937 random(1);
    for (const float spread : {1e-3f, 1.0f, 5.0f, 40.0f, 1000.0f})
        for (const size_t n : {1, 2, 15, 63, 64, 65, 127, 128, 500, 4099}) {
            std::normal_distribution<float> normal(0.0f, spread);
            std::vector<float> row(n);
            for (float &x : row)
                x = normal(random);
            const long double want = definition(row);
            EXPECT_NEAR(of(row), (double)want, 1.5e-15 * (1 + std::fabs((double)want)))
                << n << " logits of spread " << spread;
        }
}

TEST(LogSumExp, LeavesOutWhatIsExcluded)
{
    for (const size_t at : {0, 3, 63, 64, 99}) {
        std::vector<float> row(100, -infinity);
        row[at] = 7.5f;
        EXPECT_EQ(of(row), 7.5) << at;
    }
}

TEST(LogSumExp, IsNoNumberWhereALogitIsNone)
{
    for (const float x : {no_number, infinity})
        for (const size_t at : {0, 40, 63, 64, 99}) {
            std::vector<float> row(100, 1.0f);
            row[at] = x;
            EXPECT_TRUE(std::isnan(of(row))) << x << " at " << at;
        }
    EXPECT_TRUE(std::isnan(of(std::vector<float>(70, -infinity))));
}
