/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders left by processes that were killed: the next process removes them, and no other folders
 * with such names.
 */
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/driver_files.h"

namespace fs = std::filesystem;

namespace
{

class DriverFolders : public testing::Test
{
  protected:
    const fs::path root =
        testing::TempDir() + "xemoe_driver_files_" + std::to_string(getpid());

    void SetUp() override
    {
        fs::remove_all(root);
        fs::create_directories(root / "run");
        setenv("XDG_RUNTIME_DIR", (root / "run").c_str(), 1);
        unsetenv("POCL_CACHE_DIR");
    }
    void TearDown() override
    {
        unsetenv("XDG_RUNTIME_DIR");
        unsetenv("POCL_CACHE_DIR");
    }

    /* Creates a folder as a process would have left it an hour ago. */
    fs::path left(const std::string &name, bool with_lock = true) const
    {
        const fs::path folder = root / "run" / name;
        fs::create_directories(folder / "pocl/AB/CDEF/kernel");
        std::ofstream(folder / "pocl/AB/CDEF/kernel/code.so") << "x";
        if (with_lock)
            std::ofstream(folder / "lock") << "";
        age(folder);
        return folder;
    }
    static void age(const fs::path &folder)
    {
        fs::last_write_time(folder,
                            fs::file_time_type::clock::now() - std::chrono::hours(1));
    }
};

TEST_F(DriverFolders, OfKilledProcessesAreRemovedAndNoOthers)
{
    const fs::path dead = left("xemoe-run-dead"),
                   without_lock = left("xemoe-run-none", false),
                   other = left("somebody-elses");
    fs::create_directories(root / "precious");
    std::ofstream(root / "precious/file") << "x";
    age(root / "precious");
    fs::create_directory_symlink(root / "precious", root / "run/xemoe-run-link");
    const fs::path young = left("xemoe-run-young");
    fs::last_write_time(young, fs::file_time_type::clock::now());
    const fs::path alive = left("xemoe-run-alive");
    int lock = open((alive / "lock").c_str(), O_RDWR);
    ASSERT_EQ(flock(lock, LOCK_EX), 0);

    ASSERT_TRUE(xm_driver_files_use((root / "cache").c_str()));
    xm_driver_files_open();
    EXPECT_FALSE(fs::exists(dead));
    EXPECT_FALSE(fs::exists(without_lock));
    EXPECT_TRUE(fs::exists(other));
    EXPECT_TRUE(fs::exists(young)) << "it may be about to be locked";
    EXPECT_TRUE(fs::exists(alive / "pocl/AB/CDEF/kernel/code.so"));
    EXPECT_TRUE(fs::exists(root / "precious/file")) << "behind a link";
    close(lock);

    const char *own = getenv("POCL_CACHE_DIR");
    ASSERT_NE(own, nullptr);
    EXPECT_EQ(std::string(own).find((root / "run/xemoe-run-").string()), 0u) << own;
    struct stat st;
    ASSERT_EQ(stat(fs::path(own).parent_path().c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0700u);
}

} // namespace
