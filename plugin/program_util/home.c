/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/home.h"

#include <pwd.h>
#include <stddef.h>
#include <unistd.h>

#include "runtime/util/log.h"

const char *
xm_home_folder(void)
{
    const char *home = xm_env("HOME");
    const struct passwd *user = home ? NULL : getpwuid(getuid());
    return user && user->pw_dir && user->pw_dir[0] == '/' ? user->pw_dir : home;
}
