/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel sources with includes, and the cache of binaries on disk.
 */
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/kernel_cache.h"
#include "runtime/kernel_source.h"
#include "runtime/util/memory.h"

namespace
{

std::string
source(const std::vector<xm_kernel_file> &files, const char *name, xm_error *err)
{
    xm_strbuf out = {};
    xm_kernel_source_from(files.data(), files.size(), name, &out, err);
    std::string text = xm_strbuf_text(&out);
    xm_strbuf_free(&out);
    return text;
}

TEST(KernelSource, PutsEachIncludeInPlaceOnce)
{
    xm_error err = {};
    EXPECT_EQ(
        source({{"k.cl", "#include \"a.h\"\n#include \"b.h\"\nkernel"},
                {"include/a.h", "#include \"b.h\"\nint a;\n"},
                {"include/b.h", "int b;"}},
               "k", &err),
        "#line 1 \"k.cl\"\n#line 1 \"include/a.h\"\n#line 1 \"include/b.h\"\nint b;\n"
        "#line 2 \"include/a.h\"\nint a;\n#line 2 \"k.cl\"\n#line 3 \"k.cl\"\n"
        "kernel\n");
    EXPECT_EQ(err.status, XM_OK) << err.text;
}

TEST(KernelSource, NamesWhatIsMissingAndWhoNeedsIt)
{
    xm_error err = {};
    source({{"k.cl", "#include \"a.h\"\n"}}, "k", &err);
    EXPECT_EQ(err.status, XM_NOT_FOUND);
    EXPECT_STREQ(err.text, "there is no kernel source 'include/a.h', which 'k.cl' needs");
    err = {};
    source({}, "k", &err);
    EXPECT_EQ(err.status, XM_NOT_FOUND);
}

TEST(KernelSource, SurvivesIncludesInACircle)
{
    xm_error err = {};
    std::string text = source({{"k.cl", "#include \"a.h\"\n"},
                               {"include/a.h", "#include \"b.h\"\n"},
                               {"include/b.h", "#include \"a.h\"\nend\n"}},
                              "k", &err);
    EXPECT_EQ(err.status, XM_OK);
    EXPECT_NE(text.find("end"), std::string::npos);
}

TEST(KernelSource, EveryEmbeddedKernelResolves)
{
    ASSERT_GT(xm_n_kernel_files, 0u);
    for (size_t i = 0; i < xm_n_kernel_files; i++) {
        std::string name = xm_kernel_files[i].name;
        if (name.size() < 3 || name.substr(name.size() - 3) != ".cl")
            continue;
        xm_strbuf out = {};
        xm_error err = {};
        name.resize(name.size() - 3);
        EXPECT_EQ(xm_kernel_source(name.c_str(), &out, &err), XM_OK) << err.text;
        EXPECT_NE(std::string(xm_strbuf_text(&out)).find(name), std::string::npos);
        xm_strbuf_free(&out);
    }
}

TEST(KernelSource, EmbedsTheBytesOfTheFile)
{
    for (size_t i = 0; i < xm_n_kernel_files; i++) {
        std::ifstream f(std::string(XM_SOURCE_DIR "/kernels/cl/") +
                        xm_kernel_files[i].name);
        std::string text((std::istreambuf_iterator<char>(f)), {});
        EXPECT_EQ(text, xm_kernel_files[i].text) << xm_kernel_files[i].name;
    }
}

TEST(KernelSource, PrefersTheFolderOfTheEnvironment)
{
    auto dir = std::filesystem::temp_directory_path() / "xm_kernel_dir_test";
    std::filesystem::create_directories(dir);
    std::ofstream(dir / "copy_bytes.cl") << "#include \"index.h\"\nmine\n";
    setenv("XM_KERNEL_DIR", dir.c_str(), 1);
    xm_strbuf out = {};
    xm_error err = {};
    EXPECT_EQ(xm_kernel_source("copy_bytes", &out, &err), XM_OK) << err.text;
    unsetenv("XM_KERNEL_DIR");
    std::string text = xm_strbuf_text(&out);
    EXPECT_NE(text.find("mine"), std::string::npos);
    EXPECT_NE(text.find("flat_id"), std::string::npos); /* from an embedded include */
    xm_strbuf_free(&out);
    std::filesystem::remove_all(dir);
}

class KernelCache : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        char name[] = "/tmp/xm_cache_XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        root = name;
        dir = root + "/cache";
        key = xm_kernel_cache_key("device", "driver", "source", "options");
    }
    void TearDown() override
    {
        std::filesystem::remove_all(root);
    }
    /* Returns the cache's bytes for `key`; "(none)" after a miss. */
    std::string load()
    {
        size_t n = 0;
        void *bytes = xm_kernel_cache_load(dir.c_str(), &key, &n);
        if (!bytes)
            return "(none)";
        std::string text(static_cast<char *>(bytes), n);
        xm_free(bytes);
        return text;
    }
    std::string path()
    {
        char text[512];
        EXPECT_TRUE(xm_kernel_cache_path(dir.c_str(), &key, text, sizeof(text)));
        return text;
    }
    std::string root, dir;
    xm_kernel_key key;
};

TEST_F(KernelCache, GivesBackWhatWasStored)
{
    EXPECT_EQ(load(), "(none)");
    EXPECT_TRUE(xm_kernel_cache_store(dir.c_str(), &key, "binary", 6));
    EXPECT_EQ(load(), "binary");
    EXPECT_TRUE(xm_kernel_cache_store(dir.c_str(), &key, "newer!!", 7));
    EXPECT_EQ(load(), "newer!!");
    size_t files = 0;
    for (const auto &f : std::filesystem::directory_iterator(dir))
        files += f.exists();
    EXPECT_EQ(files, 1u); /* no temporary files remain */
}

TEST_F(KernelCache, EveryPartOfTheKeyCounts)
{
    const char *const parts[][4] = {{"device", "driver", "source", "option"},
                                    {"device", "driver", "sourceoptions", ""},
                                    {"devic", "edriver", "source", "options"},
                                    {"", "", "", ""}};
    for (const auto &p : parts) {
        xm_kernel_key other = xm_kernel_cache_key(p[0], p[1], p[2], p[3]);
        EXPECT_FALSE(other.hash[0] == key.hash[0] && other.hash[1] == key.hash[1]);
    }
}

TEST_F(KernelCache, TheHashIsFnv1a128)
{
    /* Hash of "device\0driver\0source\0options\0", computed by another program. */
    EXPECT_EQ(key.hash[1], 0x05cd8d40f44aac1du);
    EXPECT_EQ(key.hash[0], 0x2ea5441e64bc9a56u);
}

TEST_F(KernelCache, DamagedCutAndForeignFilesAreMisses)
{
    ASSERT_TRUE(xm_kernel_cache_store(dir.c_str(), &key, "binary", 6));
    std::ifstream in(path(), std::ios::binary);
    std::string good((std::istreambuf_iterator<char>(in)), {});
    for (size_t i = 0; i < good.size(); i++) {
        std::string bad = good;
        bad[i] = char(bad[i] ^ 0x40);
        std::ofstream(path(), std::ios::binary) << bad;
        EXPECT_EQ(load(), "(none)") << "byte " << i;
        std::ofstream(path(), std::ios::binary) << good.substr(0, i);
        EXPECT_EQ(load(), "(none)") << "cut at " << i;
    }
    std::ofstream(path(), std::ios::binary) << good << "tail";
    EXPECT_EQ(load(), "(none)");
    EXPECT_TRUE(xm_kernel_cache_store(dir.c_str(), &key, "binary", 6));
    EXPECT_EQ(load(), "binary");
}

TEST_F(KernelCache, IsTheUsersAlone)
{
    struct stat st = {};
    ASSERT_TRUE(xm_kernel_cache_store(dir.c_str(), &key, "binary", 6));
    ASSERT_EQ(stat(dir.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0700u);
}

TEST_F(KernelCache, KeepsWhatWasUsedLast)
{
    const char *const sources[] = {"first", "second", "third"};
    xm_kernel_key keys[3];
    for (int i = 0; i < 3; i++) {
        keys[i] = key = xm_kernel_cache_key("device", "driver", sources[i], "");
        ASSERT_TRUE(xm_kernel_cache_store(dir.c_str(), &key, "0123456789", 10));
        const timespec age[2] = {{1000 + i, 0}, {1000 + i, 0}};
        ASSERT_EQ(utimensat(AT_FDCWD, path().c_str(), age, 0), 0);
    }
    const uint64_t one = std::filesystem::file_size(path());
    key = keys[0];
    EXPECT_EQ(load(), "0123456789"); /* now it is the newest */
    xm_kernel_cache_trim(dir.c_str(), 3 * one);
    key = keys[1];
    EXPECT_TRUE(std::filesystem::exists(path()));
    xm_kernel_cache_trim(dir.c_str(), 3 * one - 1);
    EXPECT_FALSE(std::filesystem::exists(path()));
    xm_kernel_cache_trim(dir.c_str(), one);
    key = keys[2];
    EXPECT_FALSE(std::filesystem::exists(path()));
    key = keys[0];
    EXPECT_EQ(load(), "0123456789");
    const std::string old = path() + ".1.1", young = path() + ".1.2";
    std::ofstream(old) << "half";
    std::ofstream(young) << "half";
    const timespec age[2] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, old.c_str(), age, 0), 0);
    xm_kernel_cache_trim(dir.c_str(), one);
    EXPECT_FALSE(std::filesystem::exists(old));
    EXPECT_TRUE(std::filesystem::exists(young)); /* too young: it may still be written */
}

TEST_F(KernelCache, AFolderThatCannotBeWrittenIsHarmless)
{
    std::ofstream(dir) << "a file where the folder should be";
    EXPECT_FALSE(xm_kernel_cache_store(dir.c_str(), &key, "binary", 6));
    EXPECT_EQ(load(), "(none)");
    EXPECT_FALSE(xm_kernel_cache_store((dir + "/below").c_str(), &key, "binary", 6));
}

/* Temporary files are links to /dev/full, a device that is always full. */
TEST_F(KernelCache, AFullDiskIsHarmless)
{
    std::filesystem::create_directory(dir);
    for (int serial = 0; serial < 64; serial++)
        std::filesystem::create_symlink("/dev/full", path() + "." +
                                                         std::to_string(getpid()) + "." +
                                                         std::to_string(serial));
    EXPECT_FALSE(xm_kernel_cache_store(dir.c_str(), &key, "binary", 6));
    EXPECT_EQ(load(), "(none)");
    EXPECT_FALSE(std::filesystem::exists(path()));
}

} // namespace
