/* SPDX-License-Identifier: Apache-2.0
 *
 * The description of a linear with one weight.
 */
#ifndef XM_UNIT_TESTS_PRIMITIVES_LINEAR_FIXTURE_H
#define XM_UNIT_TESTS_PRIMITIVES_LINEAR_FIXTURE_H

#include "primitives/linear/linear.h"
#include "unit_tests/primitives/weight_fixture.h"

inline xm_linear_desc
describe(const test_weight &w, xm_element src, xm_element dst)
{
    xm_linear_desc desc = {};
    desc.src = src;
    desc.dst = dst;
    desc.n = 1;
    desc.segment[0].weight = w.device;
    return desc;
}

#endif
