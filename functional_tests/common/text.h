/* SPDX-License-Identifier: Apache-2.0
 *
 * Searches for parts of a text.
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_TEXT_H
#define XM_FUNCTIONAL_TESTS_COMMON_TEXT_H

#include <string>

inline bool
contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

inline bool
ends_with(const std::string &text, const std::string &end)
{
    return text.size() >= end.size() &&
           text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/* Returns how many times the text contains the part. */
inline size_t
count(const std::string &text, const std::string &part)
{
    size_t n = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at++)
        n++;
    return n;
}

#endif
