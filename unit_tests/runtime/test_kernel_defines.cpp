/* SPDX-License-Identifier: Apache-2.0
 *
 * Build options that a compiler would read differently from the host are refused.
 */
#include "runtime/kernel_defines.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/fake/fake.h"

namespace
{

std::string
refusal(const std::string &defines)
{
    xm_error err = {};
    xm_status status = xm_defines_check(defines.c_str(), &err);
    EXPECT_EQ(status, err.status);
    EXPECT_TRUE(status == XM_OK || status == XM_NOT_BUILT);
    return err.text;
}

TEST(KernelDefines, TakesNumbersNamesListsAndChains)
{
    for (const char *good :
         {"", "-DSRC=f16 -DROWS=8", "-DA=-1 -DB=1.5f  -DC=1.00000000e-06f",
          "-DFLAG -Werror", "-cl-intel-256-GRF-per-thread", "-DN_LIST=3 -DLIST=1,2,3",
          "-DLIST=1u -DN_LIST=1",
          "-DCHAIN=IN(0)SCALE(0,X(0))NORM(0,X(0),1.0f,0)OUT(0,0)"})
        EXPECT_EQ(refusal(good), "") << good;
}

TEST(KernelDefines, AListHasAsManyValuesAsItSays)
{
    EXPECT_EQ(refusal("-DN_EPSILONS=1 -DEPSILONS=9,99999997e-07f"),
              "the build option '-DEPSILONS=9,99999997e-07f' has 2 values: expected 1, "
              "the value of N_EPSILONS");
    EXPECT_NE(refusal("-DN_EPSILONS=2 -DEPSILONS=1e-6f"), "");
    EXPECT_EQ(refusal("-DSCALE=0,5f"),
              "the build option '-DSCALE=0,5f' has 2 values: expected 1");
}

TEST(KernelDefines, RefusesWhatIsNeitherNumberNorNameNorCall)
{
    for (const char *bad :
         {"-DA=", "-DA=1e", "-DA=.", "-DA=1x", "-D=1", "-D1=1", "-DA=(1)", "-DA=F(",
          "-DA=F(1", "-DA=F(1,)", "-DA=F)", "-DA=1;2", "-DA=\"x\"", "A=1", "-I/tmp",
          "-DA=,", "-DN_A=2 -DA=1,,2"})
        EXPECT_NE(refusal(bad), "") << bad;
}

TEST(KernelDefines, WhatDoesNotFitIsRefused)
{
    char text[16];
    EXPECT_EQ(xm_defines_print(text, sizeof(text), "-DA=%d", 12), 6u);
    EXPECT_EQ(refusal(text), "");
    xm_defines_print(text, sizeof(text), "-DA=%d", 1234567890);
    EXPECT_EQ(refusal(text), "");
    size_t n = xm_defines_print(text, sizeof(text), "-DABC=%d", 1234567890);
    EXPECT_EQ(refusal(text), "the build options of a kernel are too long");
    xm_defines_print(text + n, sizeof(text) - n, " -DB=1");
    EXPECT_EQ(refusal(text), "the build options of a kernel are too long");
}

/* For every size of the buffer, an option is in the text or the text is refused. */
TEST(KernelDefines, NothingIsLeftOutWhereTheRoomEnds)
{
    const std::string whole = "-DAB=12 -DC=3";
    for (size_t room = 2; room < 24; room++) {
        std::string text(room, '\0');
        size_t n = xm_defines_print(&text[0], room, "-DAB=%d", 12);
        xm_defines_print(&text[n], room - n, " -DC=%d", 3);
        EXPECT_TRUE(text.c_str() == whole || !refusal(text.c_str()).empty()) << room;
    }
}

TEST(KernelDefines, NoEngineBuildsWithThem)
{
    xm_error err = {};
    xm_device_info info = {};
    xm_engine *engine = nullptr;
    xm_kernel *kernel = nullptr;
    ASSERT_EQ(xm_fake_engine_create(&info, nullptr, &engine, &err), XM_OK) << err.text;
    EXPECT_EQ(xm_engine_kernel(engine, "k", "-DA=1,5f", &kernel, &err), XM_NOT_BUILT);
    EXPECT_STREQ(err.text,
                 "kernel 'k': the build option '-DA=1,5f' has 2 values: expected 1");
    EXPECT_EQ(xm_fake_calls(engine, XM_FAKE_KERNEL), 0u);
    xm_engine_unref(engine);
}

} // namespace
