// SPDX-License-Identifier: Apache-2.0
#include "plugin/program_util/exit_codes.h"

#include <gtest/gtest.h>

namespace
{

TEST(ExitCodes, OnlySuccessIsZero)
{
    EXPECT_EQ(xm_cli_exit_code(XM_OK), 0);
    for (int s = XM_INVALID; s <= XM_UNPLANNED; s++)
        EXPECT_GT(xm_cli_exit_code((enum xm_status)s), 0) << s;
}

TEST(ExitCodes, TellFilesFromDevicesAndCancelledRuns)
{
    EXPECT_EQ(xm_cli_exit_code(XM_INVALID), 3);
    EXPECT_EQ(xm_cli_exit_code(XM_IO), 3);
    EXPECT_EQ(xm_cli_exit_code(XM_NO_MEMORY), 4);
    EXPECT_EQ(xm_cli_exit_code(XM_LOST), 4);
    EXPECT_EQ(xm_cli_exit_code(XM_BUSY), 1);
    EXPECT_EQ(xm_cli_exit_code(XM_CANCELLED), 130);
}

} // namespace
