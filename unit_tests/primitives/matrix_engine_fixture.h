/* SPDX-License-Identifier: Apache-2.0
 *
 * The products on matrix engines, with the engines emulated (kernels/cl/include/matrix_mad.h):
 * the data's way through tiles and lanes is that of the real ones, for both sizes of sub-group.
 */
#ifndef XM_UNIT_TESTS_PRIMITIVES_MATRIX_ENGINE_FIXTURE_H
#define XM_UNIT_TESTS_PRIMITIVES_MATRIX_ENGINE_FIXTURE_H

#include "primitives/args.h"
#include "primitives/form.h"
#include "primitives/matrix_engine.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/weight_fixture.h"

/* A format, and columns of a row. */
struct format_case {
    weight_format format;
    uint64_t k;
};

class MatrixEngine : public SubGroupTest
{
  protected:
    /* Not optimised: the emulation is long, and it is its compilation that takes time. */
    xm_kernel *kernel(const std::string &name, const xm_kernel_weights &w,
                      const std::string &defines)
    {
        xm_kernel *k = nullptr;
        EXPECT_EQ(xm_weight_kernel(engine, name.c_str(), w, &k, &err,
                                   "%s -cl-opt-disable", defines.c_str()),
                  XM_OK)
            << err.text;
        return k;
    }
    xm_kernel *kernel(const std::string &name, const test_weight &w,
                      const std::string &defines)
    {
        return kernel(name, xm_one_weight(&w.host), defines);
    }
    xm_kernel *kernel(const std::string &name, const test_weight &a, const test_weight &b,
                      const std::string &defines)
    {
        return kernel(name, xm_kernel_weights{{&a.host, &b.host}, 2}, defines);
    }
};

#endif
