/* SPDX-License-Identifier: Apache-2.0
 *
 * The distance of a value from the expected one, for comparisons within a tolerance. An infinity
 * or NaN equals only itself: its distance from any other value is infinite, so that no tolerance
 * covers it, and it adds nothing to a relative tolerance.
 */
#ifndef XM_UNIT_TESTS_COMPARE_H
#define XM_UNIT_TESTS_COMPARE_H

#include <cmath>
#include <limits>

inline float
distance(float got, float want)
{
    if (std::isfinite(got) && std::isfinite(want))
        return std::fabs(got - want);
    const bool same = got == want || (std::isnan(got) && std::isnan(want));
    return same ? 0.0f : std::numeric_limits<float>::infinity();
}

/* Returns the magnitude that a relative tolerance is multiplied by; 0 for an infinity or NaN. */
inline float
magnitude(float want)
{
    return std::isfinite(want) ? std::fabs(want) : 0.0f;
}

#endif
