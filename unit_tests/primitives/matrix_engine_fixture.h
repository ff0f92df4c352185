/* SPDX-License-Identifier: Apache-2.0
 *
 * A fixture for matrix products on emulated matrix engines (kernels/cl/include/matrix_mad.h).
 * Data pass through tiles and lanes as on real engines, for both sub-group sizes.
 */
#ifndef XM_UNIT_TESTS_PRIMITIVES_MATRIX_ENGINE_FIXTURE_H
#define XM_UNIT_TESTS_PRIMITIVES_MATRIX_ENGINE_FIXTURE_H

#include "primitives/args.h"
#include "primitives/form.h"
#include "primitives/matrix_engine.h"
#include "runtime/reference/reference.h"
#include "unit_tests/primitives/weight_fixture.h"

/* A weight format, and the number of columns of a row. */
struct format_case {
    weight_format format;
    uint64_t k;
};

class MatrixEngine : public SubGroupTest
{
  protected:
    /* Builds a kernel without optimisation: the emulation is long code, and most of the time is
     * its compilation. */
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
