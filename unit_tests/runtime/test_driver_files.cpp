/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiled files of a driver packed into one blob, and the folder that they lie in. Each test
 * runs in a process of its own, because the folder is chosen once.
 */
#include "runtime/driver_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/kept.h"
#include "runtime/util/log.h"

namespace
{

namespace fs = std::filesystem;

const char *const program = "AB/CDEFGHIJ";
const char *const code = "AB/CDEFGHIJ/copy/1-1-1/copy.so";

std::string said;

void
keep_line(xm_log_level, const char *line, void *)
{
    said += std::string(line) + "\n";
}

void
write(const fs::path &path, const std::string &bytes)
{
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
}

std::string
read(const fs::path &path)
{
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

/* Runs `body` in a child process with an empty folder; its failures count for this test. */
template <typename Body>
void
apart(Body body)
{
    char name[] = "/tmp/xm_files_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    EXPECT_EXIT(
        {
            unsetenv("POCL_CACHE_DIR");
            unsetenv("XDG_CACHE_HOME");
            unsetenv("XDG_RUNTIME_DIR");
            xm_log_set_sink(keep_line, nullptr);
            body(fs::path(name));
            exit(testing::Test::HasFailure() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
    fs::remove_all(name);
}

TEST(DriverFiles, GoAndComeBackAsOnePiece)
{
    apart([](const fs::path &root) {
        setenv("POCL_CACHE_DIR", (root / "pocl").c_str(), 1);
        xm_driver_files_open();
        const int64_t start = xm_driver_files_now();
        write(root / "pocl" / program / "program.bc", std::string("a\0b", 3));
        write(root / "pocl" / code, "code");
        write(root / "pocl" / program / "last_accessed", "");
        char name[64];
        ASSERT_TRUE(xm_driver_files_find(start, "", name, sizeof(name)));
        EXPECT_STREQ(name, program);
        EXPECT_EQ(xm_driver_files_count(name), 2u);
        xm_strbuf packed = {};
        ASSERT_TRUE(xm_driver_files_pack(name, &packed));
        fs::remove_all(root / "pocl" / "AB");
        write(root / "pocl" / code, "cod"); /* a damaged file */
        name[0] = 0;
        ASSERT_TRUE(xm_driver_files_unpack(packed.text, packed.n, name, sizeof(name)));
        EXPECT_STREQ(name, program);
        EXPECT_EQ(read(root / "pocl" / code), "code");
        EXPECT_EQ(read(root / "pocl" / program / "program.bc"), std::string("a\0b", 3));
        EXPECT_FALSE(xm_driver_files_used(name, start)); /* the driver did not use it */
        xm_strbuf_free(&packed);
    });
}

TEST(DriverFiles, HaveBitcodeThatGoesWithThem)
{
    apart([](const fs::path &root) {
        setenv("POCL_CACHE_DIR", (root / "pocl").c_str(), 1);
        xm_driver_files_open();
        xm_strbuf bitcode = {}, packed = {}, back = {};
        char name[64];
        EXPECT_FALSE(xm_driver_files_read_bitcode(program, XM_BITCODE_RESULT, &bitcode));
        write(root / "pocl" / program / "program.bc", std::string("a\0b", 3));
        ASSERT_TRUE(xm_driver_files_read_bitcode(program, XM_BITCODE_RESULT, &bitcode));
        EXPECT_EQ(std::string(bitcode.text, bitcode.n), std::string("a\0b", 3));
        EXPECT_FALSE(xm_driver_files_read_bitcode(program, XM_BITCODE_INPUT, &back));
        ASSERT_TRUE(xm_driver_files_write_bitcode(program, &bitcode));
        ASSERT_TRUE(xm_driver_files_pack(program, &packed));
        fs::remove_all(root / "pocl" / "AB");
        ASSERT_TRUE(xm_driver_files_unpack(packed.text, packed.n, name, sizeof(name)));
        ASSERT_TRUE(xm_driver_files_read_bitcode(name, XM_BITCODE_INPUT, &back));
        EXPECT_EQ(std::string(back.text, back.n), std::string("a\0b", 3));
        for (xm_strbuf *b : {&bitcode, &packed, &back})
            xm_strbuf_free(b);
    });
}

TEST(DriverFiles, AreFoundBesideThoseOfTheProgramBefore)
{
    apart([](const fs::path &root) {
        setenv("POCL_CACHE_DIR", (root / "pocl").c_str(), 1);
        xm_driver_files_open();
        const int64_t start = xm_driver_files_now();
        const std::string second = std::string(program) + "2";
        char name[64];
        write(root / "pocl" / program / "last_accessed", "");
        write(root / "pocl" / second / "last_accessed", "");
        fs::last_write_time(
            root / "pocl" / second / "last_accessed",
            fs::last_write_time(root / "pocl" / program / "last_accessed"));
        EXPECT_FALSE(xm_driver_files_find(start, "", name, sizeof(name)))
            << "two at the same time";
        ASSERT_TRUE(xm_driver_files_find(start, program, name, sizeof(name)));
        EXPECT_EQ(name, second);
        ASSERT_TRUE(xm_driver_files_find(start, second.c_str(), name, sizeof(name)));
        EXPECT_STREQ(name, program);
    });
}

TEST(DriverFiles, OtherBytesAreNoPackedFolder)
{
    apart([](const fs::path &root) {
        setenv("POCL_CACHE_DIR", (root / "pocl").c_str(), 1);
        xm_driver_files_open();
        write(root / "pocl" / code, "code");
        xm_strbuf packed = {};
        ASSERT_TRUE(xm_driver_files_pack(program, &packed));
        fs::remove_all(root / "pocl" / "AB");
        const std::string whole(packed.text, packed.n);
        char name[64];
        for (size_t n = 1; n < whole.size(); n++) {
            const std::string cut = whole.substr(0, n);
            /* a folder without files is valid */
            bool whole_record = n == 16 + strlen(program);
            EXPECT_EQ(xm_driver_files_unpack(cut.data(), n, name, sizeof(name)),
                      whole_record)
                << n;
        }
        /* some damage makes lengths invalid */
        for (size_t i = 0; i < whole.size(); i++) {
            std::string damaged = whole;
            damaged[i] = '\xff';
            xm_driver_files_unpack(damaged.data(), damaged.size(), name, sizeof(name));
        }
        std::string elsewhere = whole;
        elsewhere.replace(elsewhere.find("copy/1-1-1"), 10, "../../..//");
        EXPECT_FALSE(xm_driver_files_unpack(elsewhere.data(), elsewhere.size(), name,
                                            sizeof(name)));
        xm_strbuf_free(&packed);
    });
}

TEST(DriverFiles, NothingIsLeftToAnotherProgramInThisProcess)
{
    apart([](const fs::path &root) {
        setenv("XDG_RUNTIME_DIR", root.c_str(), 1);
        ASSERT_EQ(xm_driver_files_use((root / "cache").c_str()), XM_KEPT_KERNELS_WRITE);
        xm_driver_files_open();
        const char *given = getenv("POCL_CACHE_DIR");
        ASSERT_NE(given, nullptr);
        const fs::path own = fs::path(given).parent_path();
        ASSERT_TRUE(fs::exists(own));
        xm_driver_files_leave();
        EXPECT_EQ(getenv("POCL_CACHE_DIR"), nullptr);
        EXPECT_FALSE(fs::exists(own));
    });
    apart([](const fs::path &root) {
        setenv("POCL_CACHE_DIR", (root / "pocl").c_str(), 1);
        xm_driver_files_open();
        xm_driver_files_leave();
        EXPECT_STREQ(getenv("POCL_CACHE_DIR"), (root / "pocl").c_str()) << "the user's";
    });
}

TEST(DriverFiles, ACacheGivesEachProcessAFolderOfItsOwn)
{
    apart([](const fs::path &root) {
        ASSERT_EQ(xm_driver_files_use((root / "a" / "b").c_str()), XM_KEPT_KERNELS_WRITE);
        struct stat st = {};
        ASSERT_EQ(stat((root / "a" / "b").c_str(), &st), 0);
        EXPECT_EQ(st.st_mode & 0777, 0700u);
        xm_driver_files_open();
        const char *folder = getenv("POCL_CACHE_DIR");
        ASSERT_NE(folder, nullptr);
        EXPECT_TRUE(fs::is_directory(fs::path(folder).parent_path()));
        ASSERT_EQ(stat(fs::path(folder).parent_path().c_str(), &st), 0);
        EXPECT_EQ(st.st_mode & 0777, 0700u);
        EXPECT_EQ(said, "");
    });
}

/* As another user, because root may write everywhere. */
TEST(DriverFiles, ACacheThatCanOnlyBeReadIsRead)
{
    apart([](const fs::path &root) {
        EXPECT_TRUE(xm_driver_files_may_store()) << "no cache is set";
        ASSERT_EQ(chmod(root.c_str(), 0755), 0);
        const std::pair<const char *, mode_t> folders[] = {
            {"cache", 0555}, {"writable", 0777}, {"listed", 0444}, {"entered", 0111}};
        for (const auto &[name, mode] : folders) {
            fs::create_directories(root / name);
            ASSERT_EQ(chmod((root / name).c_str(), mode), 0);
        }
        write(root / "program", "");
        ASSERT_EQ(chmod((root / "program").c_str(), 0555), 0);
        ASSERT_TRUE(geteuid() != 0 || setuid(65534) == 0);
        EXPECT_EQ(xm_driver_files_use((root / "cache").c_str()), XM_KEPT_KERNELS_READ);
        EXPECT_FALSE(xm_driver_files_may_store());
        const xm_device_info device = {};
        double rate;
        const std::string writable = root / "writable";
        xm_kept_rate_store(writable.c_str(), &device, "reading", 1.0);
        EXPECT_FALSE(xm_kept_rate_load(writable.c_str(), &device, "reading", &rate));
        for (const char *name : {"none", "listed", "entered", "program"}) {
            EXPECT_EQ(xm_driver_files_use((root / name).c_str()), XM_KEPT_KERNELS_NONE)
                << name;
            EXPECT_TRUE(xm_driver_files_may_store()) << name;
        }
    });
}

TEST(DriverFiles, TheFolderOfAProcessGoesWithIt)
{
    char name[] = "/tmp/xm_files_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    const fs::path root = name;
    EXPECT_EXIT(
        {
            unsetenv("POCL_CACHE_DIR");
            setenv("XDG_RUNTIME_DIR", name, 1);
            xm_driver_files_use((root / "cache").c_str());
            xm_driver_files_open();
            write(fs::path(getenv("POCL_CACHE_DIR")) / code, "code");
            write(root / "path", getenv("POCL_CACHE_DIR"));
            exit(0);
        },
        testing::ExitedWithCode(0), "");
    const fs::path folder = read(root / "path");
    EXPECT_FALSE(folder.empty());
    EXPECT_FALSE(fs::exists(folder.parent_path()));
    fs::remove_all(root);
}

TEST(DriverFiles, AHomeThatCannotBeWrittenCostsAWarning)
{
    apart([](const fs::path &root) {
        setenv("HOME", "/proc/none", 1);
        setenv("TMPDIR", root.c_str(), 1);
        xm_driver_files_open();
        const std::string folder = getenv("POCL_CACHE_DIR");
        EXPECT_EQ(folder.rfind(root.string(), 0), 0u) << folder;
        EXPECT_EQ(said, "") << "nothing is compiled yet";
        xm_driver_files_warn();
        xm_driver_files_warn();
        EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
        EXPECT_NE(
            said.find("/proc/none/.cache/pocl/kcache cannot be created or written: the "
                      "OpenCL driver keeps its compiled code in the temporary folder "),
            std::string::npos)
            << said;
    });
}

TEST(DriverFiles, WithoutAHomeNothingGoesWhereOthersWrite)
{
    apart([](const fs::path &root) {
        unsetenv("HOME");
        setenv("TMPDIR", root.c_str(), 1);
        xm_driver_files_open();
        ASSERT_NE(getenv("POCL_CACHE_DIR"), nullptr);
        xm_driver_files_warn();
        EXPECT_NE(said.find("HOME is not set: "), std::string::npos) << said;
    });
}

} // namespace
