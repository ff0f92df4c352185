/* SPDX-License-Identifier: Apache-2.0
 *
 * Command lines that are wrong: each gets one sentence and a code, and prints nothing.
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_MISTAKES_H
#define XM_FUNCTIONAL_TESTS_COMMON_MISTAKES_H

#include <algorithm>

#include "functional_tests/common/program.h"

struct Mistake {
    const char *name;
    Words words;
    int code;
    const char *says; /* in the sentence */
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

/* `before`: the words that all of them begin with. */
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
