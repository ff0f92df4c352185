// SPDX-License-Identifier: Apache-2.0
#include "runtime/kept.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

#include "functional_tests/common/folder.h"

namespace
{

xm_device_info
device()
{
    xm_device_info d = {};
    std::snprintf(d.name, sizeof(d.name), "a device");
    std::snprintf(d.driver, sizeof(d.driver), "1.0");
    d.kind = XM_DEVICE_GPU;
    d.compute_units = 8;
    d.global_bytes = 1 << 30;
    return d;
}

class KeptRate : public ::testing::Test
{
  protected:
    double load(const xm_device_info &d, const char *what = "reading")
    {
        double rate = -1.0;
        return xm_kept_rate_load(folder.path.c_str(), &d, what, &rate) ? rate : -1.0;
    }
    void store(double rate)
    {
        const xm_device_info d = device();
        xm_kept_rate_store(folder.path.c_str(), &d, "reading", rate);
    }
    Folder folder{"kept_rate"};
};

TEST_F(KeptRate, IsThatOfTheDevice)
{
    EXPECT_EQ(load(device()), -1.0) << "none yet";
    store(12345.678);
    EXPECT_EQ(load(device()), 12345.678);
    store(54321.0);
    EXPECT_EQ(load(device()), 54321.0) << "measured anew";
    EXPECT_EQ(load(device(), "multiplying"), -1.0);
    xm_device_info other = device();
    other.compute_units = 4;
    EXPECT_EQ(load(other), -1.0);
    other = device();
    other.driver[0] = '2';
    EXPECT_EQ(load(other), -1.0);
    other = device();
    other.name[0] = 'A';
    EXPECT_EQ(load(other), -1.0);
}

/* The memory and clock of a card are fixed and identify it; drivers of processors report
 * momentary values, which are ignored. */
TEST_F(KeptRate, IsThatOfTheMemoryOfACard)
{
    for (const auto kind : {XM_DEVICE_GPU, XM_DEVICE_CPU}) {
        xm_device_info d = device();
        d.kind = kind;
        xm_kept_rate_store(folder.path.c_str(), &d, "reading", 5.0);
        const double otherwise = kind == XM_DEVICE_GPU ? -1.0 : 5.0;
        d.global_bytes *= 2;
        EXPECT_EQ(load(d), otherwise);
        d.global_bytes /= 2;
        d.clock_mhz += 100;
        EXPECT_EQ(load(d), otherwise);
        d.clock_mhz -= 100;
        EXPECT_EQ(load(d), 5.0);
        d.cache_bytes++;
        EXPECT_EQ(load(d), -1.0);
    }
}

TEST_F(KeptRate, NonsenseIsNone)
{
    for (double rate :
         {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
        store(rate);
        EXPECT_EQ(load(device()), -1.0) << rate;
    }
    store(5.0);
    size_t n_files = 0;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(folder.path)) {
        if (!entry.is_regular_file())
            continue;
        n_files++;
        std::filesystem::resize_file(entry.path(), entry.file_size() - 3);
    }
    EXPECT_GT(n_files, 0u);
    EXPECT_EQ(load(device()), -1.0) << "a file that was cut";
}

TEST_F(KeptRate, WithoutAFolderNothingIsKept)
{
    const xm_device_info d = device();
    double rate;
    xm_kept_rate_store("", &d, "reading", 5.0);
    EXPECT_FALSE(xm_kept_rate_load("", &d, "reading", &rate));
}

TEST_F(KeptRate, TextsAreKeptToo)
{
    const xm_device_info d = device();
    char text[XM_KEPT_TEXT] = "before";
    const std::string dir = folder.path, longest(XM_KEPT_TEXT - 1, 'x');
    EXPECT_FALSE(xm_kept_text_load(dir.c_str(), &d, "row", text));
    EXPECT_STREQ(text, "");
    for (const std::string &kept : {std::string("linear_gemv_sg"), longest}) {
        EXPECT_TRUE(xm_kept_text_store(dir.c_str(), &d, "row", kept.c_str()));
        EXPECT_TRUE(xm_kept_text_load(dir.c_str(), &d, "row", text));
        EXPECT_EQ(text, kept);
    }
    for (const std::string &wrong : {std::string(), longest + "x"})
        EXPECT_FALSE(xm_kept_text_store(dir.c_str(), &d, "row", wrong.c_str()));
    EXPECT_TRUE(xm_kept_text_load(dir.c_str(), &d, "row", text));
    EXPECT_EQ(text, longest) << "the last one that fits";
    store(0x1p-1060); /* a rate whose bytes are all zero */
    EXPECT_FALSE(xm_kept_text_load(dir.c_str(), &d, "reading", text));
    EXPECT_FALSE(xm_kept_text_load("", &d, "row", text));
    EXPECT_FALSE(xm_kept_text_store("", &d, "row", "linear_gemv_sg"));
}

} // namespace
