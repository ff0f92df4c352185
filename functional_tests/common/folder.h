/* SPDX-License-Identifier: Apache-2.0
 *
 * A temporary folder: empty at first, removed when the test ends.
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_FOLDER_H
#define XM_FUNCTIONAL_TESTS_COMMON_FOLDER_H

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

class Folder
{
  public:
    /* `name` must differ from that of every other folder of this test program that exists at the
     * same time. */
    explicit Folder(const std::string &name)
        : path(testing::TempDir() + "xemoe_" + std::to_string(getpid()) + "_" + name)
    {
        std::filesystem::remove_all(path);
        std::filesystem::create_directories(path);
    }
    ~Folder()
    {
        std::filesystem::remove_all(path);
    }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;

    std::string operator/(const std::string &name) const
    {
        return path + "/" + name;
    }
    void write(const std::string &name, const std::string &content) const
    {
        std::ofstream(*this / name, std::ios::binary) << content;
    }
    std::set<std::string> names() const
    {
        std::set<std::string> list;
        for (const auto &entry : std::filesystem::directory_iterator(path))
            list.insert(entry.path().filename());
        return list;
    }

    const std::string path;
};

#endif
