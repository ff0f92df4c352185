/* SPDX-License-Identifier: Apache-2.0
 *
 * Every kernel file compiles alone, with the default values of its macros, without a warning, on
 * the OpenCL driver of this machine. Kernels that multiply integers compile for each block
 * format. tools/check_kernels runs this test, and compiles the kernels offline for Intel GPUs if
 * their compiler is installed.
 */
#include <gtest/gtest.h>

#include <string>

#include "runtime/engine.h"
#include "runtime/kernel_source.h"
#include "runtime/util/log.h"
#include "runtime/weight.h"

namespace
{

const std::string suffix = ".cl";

std::string
entry_of(const xm_kernel_file &file)
{
    const std::string name = file.name;
    bool is_kernel =
        name.size() > suffix.size() &&
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
    return is_kernel ? name.substr(0, name.size() - suffix.size()) : "";
}

void
keep_line(xm_log_level, const char *line, void *ctx)
{
    *static_cast<std::string *>(ctx) += std::string(line) + "\n";
}

class Kernels : public testing::Test
{
  protected:
    void SetUp() override
    {
        const xm_device_info *infos = nullptr;
        size_t n_devices = 0;
        xm_error err = {};
        ASSERT_EQ(xm_engine_list(&infos, &n_devices, &err), XM_OK) << err.text;
        if (n_devices == 0)
            GTEST_SKIP() << "no OpenCL device";
        ASSERT_EQ(xm_engine_create(0, nullptr, &engine, &err), XM_OK) << err.text;
        xm_log_set_sink(keep_line, &said);
        xm_log_set_level(XM_LOG_INFO);
    }
    void TearDown() override
    {
        xm_log_set_sink(nullptr, nullptr);
        xm_log_set_level(XM_LOG_WARNING);
        xm_engine_unref(engine);
    }
    void compile(const std::string &entry, const std::string &defines)
    {
        xm_kernel *kernel = nullptr;
        xm_error err = {};
        EXPECT_EQ(xm_engine_kernel(engine, entry.c_str(), (defines + " -Werror").c_str(),
                                   &kernel, &err),
                  XM_OK)
            << entry << " " << defines << ": " << err.text;
    }

    xm_engine *engine = nullptr;
    std::string said; /* log of the build, such as "builtins.h lacks …" */
};

TEST_F(Kernels, EveryFileCompilesAloneWithoutWarnings)
{
    size_t n_compiled = 0;
    for (size_t i = 0; i < xm_n_kernel_files; i++) {
        const std::string entry = entry_of(xm_kernel_files[i]);
        if (entry.empty())
            continue;
        compile(entry, "");
        n_compiled++;
    }
    EXPECT_GT(n_compiled, 0u);
    EXPECT_EQ(said, "");
}

/* At run time a kernel that does not build for a format is replaced by a slower one; here this is
 * an error. */
TEST_F(Kernels, FormatsCompileAsIntegersWithoutWarnings)
{
    size_t n_formats = 0;
    for (const xm_weight_format_info &format : xm_weight_formats) {
        if (!format.block_bytes || !(format.meets & XM_MEETS_SHORTS))
            continue;
        const std::string name = format.text;
        const std::string of = " -DFORMAT_" + name + " -DFORMAT";
        compile("linear_gemv_vec", "-DSHORTS=1" + of + "0=" + name);
        compile("moe_gemm_gate_up_vnni", of + "0=" + name);
        n_formats++;
    }
    EXPECT_GT(n_formats, 0u);
    EXPECT_EQ(said, "");
}

} // namespace
