/* SPDX-License-Identifier: Apache-2.0
 *
 * A locale whose decimal point is a comma, for as long as the object lives: de_DE, made in a
 * folder of its own, since most machines that build have no locale but C.
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_COMMA_LOCALE_H
#define XM_FUNCTIONAL_TESTS_COMMON_COMMA_LOCALE_H

#include <gtest/gtest.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

class CommaLocale
{
  public:
    static constexpr const char *name = "de_DE.UTF-8";

    CommaLocale()
        : folder(testing::TempDir() + "xemoe_locale_" + std::to_string(getpid()))
    {
        std::filesystem::create_directories(folder);
        const std::string command = "localedef --no-archive -i de_DE -f UTF-8 '" +
                                    folder + "/" + name + "' >/dev/null 2>&1";
        const int status = std::system(command.c_str());
        (void)status; /* it warns of what it does not know; what counts is the comma */
        setenv("LOCPATH", folder.c_str(), 1);
        setlocale(LC_ALL, name);
    }

    ~CommaLocale()
    {
        setlocale(LC_ALL, "C");
        unsetenv("LOCPATH");
        std::filesystem::remove_all(folder);
    }

    CommaLocale(const CommaLocale &) = delete;
    CommaLocale &operator=(const CommaLocale &) = delete;

    /* Whether it could be made, and is in force. */
    bool is_on() const
    {
        return strcmp(localeconv()->decimal_point, ",") == 0;
    }

    /* Where a program finds it: for LOCPATH. */
    const std::string &path() const
    {
        return folder;
    }

  private:
    std::string folder;
};

/* The package locales has what it is made of; tools/setup installs that. */
#define REQUIRE_COMMA_LOCALE(locale)                                                     \
    ASSERT_TRUE((locale).is_on()) << "no locale with a decimal comma can be made here: " \
                                     "is the package 'locales' installed?"

#endif
