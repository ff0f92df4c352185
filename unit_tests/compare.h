/* SPDX-License-Identifier: Apache-2.0
 *
 * How far a value is from the expected one. What is not finite has no distance that a tolerance
 * could be above: an infinity or NaN matches itself alone, and no tolerance grows with it.
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

/* What a relative tolerance is of. */
inline float
magnitude(float want)
{
    return std::isfinite(want) ? std::fabs(want) : 0.0f;
}

#endif
