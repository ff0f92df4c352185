/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of typed lines: lines that are added are read back, also from several processes at
 * once, within the size limit.
 */
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "plugin/program_util/input_history.h"

namespace
{

class History : public testing::Test
{
  protected:
    const std::string path =
        testing::TempDir() + "xemoe_history_" + std::to_string(getpid());

    void SetUp() override
    {
        unlink(path.c_str());
    }
    void TearDown() override
    {
        unlink(path.c_str());
    }

    bool add(const std::string &message) const
    {
        return xm_history_add(path.c_str(), message.c_str());
    }

    std::vector<std::string> messages() const
    {
        std::vector<std::string> list;
        xm_history_read(
            path.c_str(),
            [](const char *message, void *ctx) {
                static_cast<std::vector<std::string> *>(ctx)->push_back(message);
            },
            &list);
        return list;
    }

    void write(const std::string &text) const
    {
        std::ofstream(path, std::ios::binary) << text;
    }

    size_t size() const
    {
        struct stat st;
        return stat(path.c_str(), &st) == 0 ? static_cast<size_t>(st.st_size) : 0;
    }
};

TEST_F(History, EveryMessageComesBackAsItWas)
{
    const std::vector<std::string> all = {
        "Grüße, 日本", "zwei\nZeilen\n", "a \\ b \\012 c", "tab\there", "\\", "x"};
    for (const std::string &message : all)
        EXPECT_TRUE(add(message));
    EXPECT_EQ(messages(), all);
    struct stat st;
    ASSERT_EQ(stat(path.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600u);
}

TEST_F(History, AFileThatOthersMayReadIsClosedToThem)
{
    write("alt\n");
    ASSERT_EQ(chmod(path.c_str(), 0644), 0);
    EXPECT_TRUE(add("neu"));
    struct stat st;
    ASSERT_EQ(stat(path.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600u);
    EXPECT_EQ(messages(), (std::vector<std::string>{"alt", "neu"}));
}

/* Several processes append at the same time, as several chats do. */
TEST_F(History, ProcessesLoseNothingOfEachOther)
{
    enum { PROCESSES = 6, EACH = 120 };
    for (int p = 0; p < PROCESSES; p++) {
        if (fork() != 0)
            continue;
        bool ok = true;
        for (int i = 0; i < EACH; i++)
            ok = add(std::to_string(p) + "/" + std::to_string(i)) && ok;
        _exit(ok ? 0 : 1);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status = 0;
        wait(&status);
        EXPECT_EQ(status, 0);
    }
    const std::vector<std::string> all = messages();
    EXPECT_EQ(all.size(), static_cast<size_t>(PROCESSES * EACH));
    EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
}

TEST_F(History, TheFileIsBoundedAndItsNewestPartStays)
{
    const std::string line(8000, 'x');
    for (int i = 0; i < 400; i++) {
        ASSERT_TRUE(add(std::to_string(i) + line));
        ASSERT_LE(size(), static_cast<size_t>(XM_HISTORY_MOST_BYTES));
    }
    const std::vector<std::string> all = messages();
    ASSERT_GT(all.size(), 60u);
    for (size_t i = 0; i < all.size(); i++)
        EXPECT_EQ(all[i], std::to_string(400 - all.size() + i) + line);
}

TEST_F(History, AMessageThatIsTooLongIsNotKept)
{
    EXPECT_TRUE(add(std::string(XM_HISTORY_MOST_MESSAGE, 'x')));
    EXPECT_FALSE(add(std::string(XM_HISTORY_MOST_MESSAGE + 1, 'x')));
    EXPECT_FALSE(add(""));
    EXPECT_EQ(messages().size(), 1u);
}

TEST_F(History, OnlyTheLastMessagesAreRead)
{
    std::string text;
    for (int i = 0; i < 3 * XM_HISTORY_MOST_MESSAGES; i++)
        text += std::to_string(i) + "\n";
    write(text);
    const std::vector<std::string> all = messages();
    ASSERT_EQ(all.size(), static_cast<size_t>(XM_HISTORY_MOST_MESSAGES));
    EXPECT_EQ(all[0], std::to_string(2 * XM_HISTORY_MOST_MESSAGES));
}

/* Files by libedit, by a chat that was killed while writing, and of random content. */
TEST_F(History, OtherFilesAreReadAsFarAsTheyGo)
{
    write("_HiStOrY_V2_\nein\\040Wort\nGr\xc3\xbc\xc3\x9f"
          "e\n");
    EXPECT_EQ(messages(), (std::vector<std::string>{"ein Wort", "Grüße"}));
    write("ganz\nhalb");
    EXPECT_TRUE(add("neu"));
    EXPECT_EQ(messages(), (std::vector<std::string>{"ganz", "halb", "neu"}));
    write(std::string("\0\0\n\\", 4) + "\\\n\\400\\0\n\n");
    EXPECT_EQ(messages(), (std::vector<std::string>{"\\", "\\400\\0"}));
    write(std::string(3 << 20, 'x')); /* one line without its newline */
    EXPECT_TRUE(messages().empty());
    EXPECT_TRUE(add("neu"));
    EXPECT_EQ(messages(), std::vector<std::string>{"neu"});
}

TEST_F(History, PipesAndFoldersAreNotWaitedFor)
{
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_FALSE(add("x"));
    EXPECT_TRUE(messages().empty());
    unlink(path.c_str());
    EXPECT_FALSE(xm_history_add("/proc/nowhere/x", "x"));
    EXPECT_FALSE(xm_history_add(testing::TempDir().c_str(), "x"));
}

/* A process that was stopped while it held the lock must not block others for long. */
TEST_F(History, ALockThatIsNeverGivenBackIsNotWaitedForLong)
{
    write("x\n");
    const int fd = open(path.c_str(), O_RDWR);
    ASSERT_EQ(flock(fd, LOCK_EX), 0);
    EXPECT_FALSE(add("y"));
    close(fd);
    EXPECT_TRUE(add("y"));
    EXPECT_EQ(messages(), (std::vector<std::string>{"x", "y"}));
}

} // namespace
