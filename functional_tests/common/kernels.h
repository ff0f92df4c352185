/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels that a run of the program used. XM_FORCE=<family> prefers variants and falls back
 * silently, so that a test of a family must check that it ran: the setting `list_kernels` prints
 * the names.
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_KERNELS_H
#define XM_FUNCTIONAL_TESTS_COMMON_KERNELS_H

#include <set>

#include "functional_tests/common/program.h"

inline const char *const list_kernels = "XM_DEBUG=times";

/* Parses lines like "… 4 runs of 15.4 us: moe_gate_up_gen (-DWEI=…". */
inline std::set<std::string>
kernels_of(const Outcome &o)
{
    std::set<std::string> names;
    std::istringstream lines(o.err);
    for (std::string line; std::getline(lines, line);) {
        const size_t at = line.find(" us: ");
        if (line.find("debug: times: ") != line.npos && at != line.npos)
            names.insert(line.substr(at + 5, line.find(' ', at + 5) - at - 5));
    }
    return names;
}

/* Fails unless each of the steps ran, and only with kernels of the family. */
inline void
expect_family(const Outcome &o, const std::string &family, const Words &steps)
{
    const std::set<std::string> kernels = kernels_of(o);
    for (const std::string &step : steps) {
        size_t n = 0;
        for (const std::string &kernel : kernels) {
            if (kernel.rfind(step, 0) != 0)
                continue;
            n++;
            EXPECT_EQ(kernel.substr(kernel.rfind('_') + 1), family) << kernel;
        }
        EXPECT_GT(n, 0u) << "no kernel of " << step << " ran: " << o.err;
    }
}

#endif
