/* SPDX-License-Identifier: Apache-2.0
 *
 * A locale with a decimal comma while the object lives: de_DE, built in a temporary folder,
 * because most build machines have only the locale C.
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
        (void)status; /* it warns of unknown keywords; only the comma matters */
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

    /* Whether the locale was built and is in force. */
    bool is_on() const
    {
        return strcmp(localeconv()->decimal_point, ",") == 0;
    }

    /* Returns the folder for a program's LOCPATH. */
    const std::string &path() const
    {
        return folder;
    }

  private:
    std::string folder;
};

/* The sources of the locale are in the package locales, which tools/setup installs. */
#define REQUIRE_COMMA_LOCALE(locale)                                                     \
    ASSERT_TRUE((locale).is_on()) << "no locale with a decimal comma can be made here: " \
                                     "is the package 'locales' installed?"

#endif
