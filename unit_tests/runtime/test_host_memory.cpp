/* SPDX-License-Identifier: Apache-2.0
 *
 * Free memory of the host, and the limits of control groups, on file systems made by the test.
 */
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/host_memory.h"

namespace
{

constexpr uint64_t KIB = 1 << 10, MIB = 1 << 20, GIB = 1 << 30;

/* A folder with the files of /proc and /sys that the test needs. */
class HostMemory : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        root = testing::TempDir() + "xemoe_root_" + std::to_string(getpid());
        write("/proc/meminfo", "MemTotal:       33554432 kB\nMemFree:  1024 kB\n"
                               "MemAvailable:   16777216 kB\nSwapFree:  2097152 kB\n");
    }
    void TearDown() override
    {
        std::filesystem::remove_all(root);
    }
    void write(const std::string &path, const std::string &text)
    {
        std::filesystem::path file = root + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    uint64_t free_bytes()
    {
        return xm_host_memory_free_below(root.c_str());
    }
    std::string root;
};

TEST_F(HostMemory, IsWhatTheSystemCanGive)
{
    EXPECT_EQ(free_bytes(), 18 * GIB);
    write("/proc/meminfo", "MemTotal: 1 kB\n");
    EXPECT_EQ(xm_host_memory_total_below(root.c_str()), 1024u);
    EXPECT_EQ(free_bytes(), 0u) << "not known";
    std::filesystem::remove_all(root);
    EXPECT_EQ(free_bytes(), 0u);
    EXPECT_EQ(xm_host_memory_total_below(root.c_str()), 0u);
    EXPECT_GT(xm_host_memory_free(), MIB);
    EXPECT_GE(xm_host_memory_total(), MIB);
}

TEST_F(HostMemory, IsNarrowedByAGroupAndThoseAboveIt)
{
    const std::string mount = "/sys/fs/cgroup", slice = mount + "/a.slice";
    write("/proc/self/cgroup", "0::/a.slice/b.scope\n");
    write(slice + "/b.scope/memory.max", "max\n");
    write(slice + "/b.scope/memory.current", "1073741824\n");
    EXPECT_EQ(free_bytes(), 18 * GIB);
    write(slice + "/memory.max", "8589934592\n");
    write(slice + "/memory.current", "3221225472\n");
    EXPECT_EQ(free_bytes(), (8 - 3 + 2) * GIB);
    write(slice + "/memory.stat", "anon 5\ninactive_file 1073741824\nactive_file 1024\n");
    EXPECT_EQ(free_bytes(), (8 - 3 + 1 + 2) * GIB + KIB);
    write(slice + "/b.scope/memory.swap.max", "0\n");
    write(slice + "/b.scope/memory.swap.current", "0\n");
    EXPECT_EQ(free_bytes(), (8 - 3 + 1) * GIB + KIB);
    write(slice + "/b.scope/memory.max", "1073741824\n");
    EXPECT_EQ(free_bytes(), 1u) << "nothing is left, which is known";
}

TEST_F(HostMemory, IsNarrowedByGroupsOfTheFirstVersion)
{
    const std::string mount = "/sys/fs/cgroup/memory";
    write("/proc/self/cgroup", "9:cpu:/x\n4:memory:/docker/1234\n0::/\n");
    write(mount + "/docker/1234/memory.limit_in_bytes", "9223372036854771712\n");
    write(mount + "/docker/1234/memory.usage_in_bytes", "4294967296\n");
    EXPECT_EQ(free_bytes(), 18 * GIB);
    write(mount + "/docker/1234/memory.limit_in_bytes", "6442450944\n");
    write(mount + "/docker/1234/memory.stat",
          "inactive_file 1\ntotal_inactive_file 1048576\ntotal_active_file 1048576\n");
    EXPECT_EQ(free_bytes(), (6 - 4 + 2) * GIB + 2 * MIB);
    /* cgroup v1 controllers may share a mount */
    for (const char *together : {"cpu,memory", "memory,cpu"}) {
        write("/proc/self/cgroup", "4:" + std::string(together) + ":/docker/1234\n");
        EXPECT_EQ(free_bytes(), (6 - 4 + 2) * GIB + 2 * MIB) << together;
    }
    write("/proc/self/cgroup", "4:cpu,memory_of_another:/docker/1234\n");
    EXPECT_EQ(free_bytes(), 18 * GIB);
}

/* A container sees the end of the host's cgroup path as the root of its mount. */
TEST_F(HostMemory, IsNarrowedByTheRootOfAContainersMount)
{
    write("/proc/self/cgroup", "0::/system.slice/docker-1234.scope\n");
    write("/sys/fs/cgroup/memory.max", "2147483648\n");
    write("/sys/fs/cgroup/memory.current", "0\n");
    EXPECT_EQ(free_bytes(), (2 + 2) * GIB);
}

TEST_F(HostMemory, IsNotNarrowedByWhatCannotBeRead)
{
    for (const char *group : {"", "\n", "0", "0:", "0::", "0::/none\n", "memory"}) {
        write("/proc/self/cgroup", group);
        EXPECT_EQ(free_bytes(), 18 * GIB) << group;
    }
    write("/proc/self/cgroup", "0::/a\n");
    for (const char *limit : {"", "little", "-"}) {
        write("/sys/fs/cgroup/a/memory.max", limit);
        write("/sys/fs/cgroup/a/memory.current", "0\n");
        EXPECT_EQ(free_bytes(), 18 * GIB) << limit;
    }
    write("/proc/self/cgroup", "0::/" + std::string(10000, 'a') + "\n");
    EXPECT_EQ(free_bytes(), 18 * GIB);
}

} // namespace
