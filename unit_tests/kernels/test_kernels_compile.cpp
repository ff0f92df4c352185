/* SPDX-License-Identifier: Apache-2.0
 *
 * Every kernel file compiles alone, with the defaults that it documents, and without a
 * warning, on the OpenCL driver that is present. tools/check_kernels runs this test and
 * does the same offline for Intel GPUs where their compiler is installed.
 */
#include <gtest/gtest.h>

#include <string>

#include "runtime/engine.h"
#include "runtime/kernel_source.h"
#include "runtime/util/log.h"

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

TEST(Kernels, EveryFileCompilesAloneWithoutWarnings)
{
    const xm_device_info *infos = nullptr;
    size_t n_devices = 0;
    xm_error err = {};
    ASSERT_EQ(xm_engine_list(&infos, &n_devices, &err), XM_OK) << err.text;
    if (n_devices == 0)
        GTEST_SKIP() << "no OpenCL device";
    xm_engine *engine = nullptr;
    ASSERT_EQ(xm_engine_create(0, nullptr, &engine, &err), XM_OK) << err.text;

    size_t n_compiled = 0;
    std::string said; /* that builtins.h lacks something, for one */
    xm_log_set_sink(keep_line, &said);
    xm_log_set_level(XM_LOG_INFO);
    for (size_t i = 0; i < xm_n_kernel_files; i++) {
        const std::string entry = entry_of(xm_kernel_files[i]);
        if (entry.empty())
            continue;
        xm_kernel *kernel = nullptr;
        err = {};
        EXPECT_EQ(xm_engine_kernel(engine, entry.c_str(), "-Werror", &kernel, &err),
                  XM_OK)
            << xm_kernel_files[i].name << ": " << err.text;
        n_compiled++;
    }
    xm_log_set_sink(nullptr, nullptr);
    xm_log_set_level(XM_LOG_WARNING);
    EXPECT_GT(n_compiled, 0u);
    EXPECT_EQ(said, "");
    xm_engine_unref(engine);
}

} // namespace
