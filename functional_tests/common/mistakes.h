/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid command lines: each prints one error text, returns a code, and prints nothing else.
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_MISTAKES_H
#define XM_FUNCTIONAL_TESTS_COMMON_MISTAKES_H

#include <algorithm>

#include "functional_tests/common/program.h"

struct Mistake {
    const char *name;
    Words words;
    int code;
    const char *says; /* a part of the error text */
};

inline void
PrintTo(const Mistake &m, std::ostream *out)
{
    *out << m.name;
}

inline std::string
mistake_name(const testing::TestParamInfo<Mistake> &info)
{
    return info.param.name;
}

/* `before`: words that stand before those of the mistake. */
inline void
expect_mistake(const Mistake &m, Words before = {})
{
    before.insert(before.end(), m.words.begin(), m.words.end());
    const Outcome o = run(before);
    EXPECT_EQ(o.code, m.code) << o.err;
    EXPECT_EQ(o.err.rfind("xemoe: ", 0), 0u) << o.err;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
    EXPECT_NE(o.err.find(m.says), std::string::npos) << o.err;
    EXPECT_TRUE(o.out.empty()) << o.out;
}

#endif
