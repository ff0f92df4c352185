/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/home.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

namespace
{

/* Without HOME the directory comes from the user database, as for a shell's '~'. */
TEST(Home, IsTheUsersWhereTheEnvironmentDoesNotTell)
{
    const char *before = getenv("HOME");
    const std::string kept = before ? before : "";
    setenv("HOME", "/somewhere", 1);
    EXPECT_STREQ(xm_home_folder(), "/somewhere");
    const struct passwd *user = getpwuid(getuid());
    const std::string wanted = user ? user->pw_dir : "";
    unsetenv("HOME");
    EXPECT_EQ(xm_home_folder() ? xm_home_folder() : "", wanted);
    setenv("HOME", "", 1);
    EXPECT_EQ(xm_home_folder() ? xm_home_folder() : "", wanted);
    unsetenv("HOME");
    if (before)
        setenv("HOME", kept.c_str(), 1);
}

} // namespace
