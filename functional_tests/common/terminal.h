/* SPDX-License-Identifier: Apache-2.0
 *
 * A small terminal: what a person sees of a program that runs on it.
 *
 *     Terminal t({"chat", "-m", model});       the program on a pseudo-terminal
 *     t.wait_for("> ");                        until the screen shows it
 *     t.type("Grüße\x7f\r");                   keys, as a terminal sends them
 *     t.finish(); t.text()                     all rows, without spaces at their ends
 *
 * It knows what xemoe and the line editor send under TERM=xterm: carriage return, line feed,
 * backspace, cursor moves, erasing, inserting and deleting characters, attributes, private
 * modes; text wraps at the width. An escape code that it does not know fails the test. Rows
 * that a real terminal would have scrolled away stay, so that a test can see them.
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_TERMINAL_H
#define XM_FUNCTIONAL_TESTS_COMMON_TERMINAL_H

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

/* The characters on the screen: bytes in, rows out. */
class Screen
{
  public:
    explicit Screen(size_t columns) : columns(columns)
    {
    }

    void feed(const std::string &bytes)
    {
        pending += bytes;
        size_t used = 0;
        while (size_t n = one(used))
            used += n;
        pending.erase(0, used);
    }

    std::vector<std::string> rows() const
    {
        std::vector<std::string> list;
        for (const Row &row : cells) {
            std::string line;
            for (const Cell &cell : row)
                line += cell.text;
            line.erase(line.find_last_not_of(' ') + 1);
            list.push_back(line);
        }
        while (!list.empty() && list.back().empty())
            list.pop_back();
        return list;
    }

    std::string text() const
    {
        std::string all;
        for (const std::string &row : rows())
            all += row + "\n";
        return all;
    }

    /* Returns all text in dim letters. */
    std::string dim_text() const
    {
        std::string all;
        for (const Row &row : cells)
            for (const Cell &cell : row)
                all += cell.dim ? cell.text : "";
        return all;
    }

    /* Returns the cursor's row up to the cursor. */
    std::string before_cursor() const
    {
        std::string line;
        for (size_t i = 0; y < cells.size() && i < x; i++)
            line += i < cells[y].size() ? cells[y][i].text : " ";
        return line;
    }

    /* Makes the screen narrower: rows wrap again, and the cursor stays after its character. */
    void narrow(size_t to)
    {
        std::vector<Row> broken;
        size_t new_x = x, new_y = y;
        for (size_t i = 0; i < cells.size(); i++) {
            if (i == y) {
                new_y = broken.size() + x / to;
                new_x = x % to;
            }
            size_t at = 0;
            do {
                const size_t n = std::min(cells[i].size() - at, to);
                broken.emplace_back(cells[i].begin() + static_cast<long>(at),
                                    cells[i].begin() + static_cast<long>(at + n));
                at += n;
            } while (at < cells[i].size());
        }
        cells = broken;
        columns = to;
        x = new_x;
        y = new_y;
        row();
    }

    std::set<int> modes;  /* private modes that are on */
    bool escaped = false; /* whether any escape code was sent */

  private:
    struct Cell {
        std::string text = " "; /* "": the second half of a wide character */
        bool dim = false;
    };
    using Row = std::vector<Cell>;

    size_t columns, x = 0, y = 0;
    bool dim = false;
    std::vector<Row> cells{1};
    std::string pending;

    Row &row()
    {
        if (y >= cells.size())
            cells.resize(y + 1);
        return cells[y];
    }

    void put(const std::string &character, size_t width)
    {
        /* the cursor waits in the last column until the next character */
        if (x + width > columns) {
            x = 0;
            y++;
        }
        Row &r = row();
        if (r.size() < x + width)
            r.resize(x + width);
        r[x] = {character, dim};
        for (size_t i = 1; i < width; i++)
            r[x + i] = {"", dim};
        x += width;
    }

    /* Consumes one character or code at `at` and returns its bytes; 0: more bytes are needed. */
    size_t one(size_t at)
    {
        if (at >= pending.size())
            return 0;
        unsigned char c = static_cast<unsigned char>(pending[at]);
        if (c == '\033')
            return escape(at);
        if (c < 0x20 || c == 0x7f)
            return control(c);
        size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        if (at + n > pending.size())
            return 0;
        std::string character = pending.substr(at, n);
        bool is_wide = c >= 0xe3 && (c < 0xee || c >= 0xf0); /* CJK, emoji */
        put(character, is_wide ? 2 : 1);
        return n;
    }

    size_t control(unsigned char c)
    {
        if (c == '\r')
            x = 0;
        else if (c == '\n')
            y++, row();
        else if (c == '\b')
            x -= x > 0;
        else if (c == '\t')
            x = std::min((x / 8 + 1) * 8, columns - 1);
        else if (c != '\a' && c != 0)
            ADD_FAILURE() << "control character " << static_cast<int>(c);
        return 1;
    }

    size_t escape(size_t at)
    {
        if (at + 1 >= pending.size())
            return 0;
        escaped = true;
        if (pending[at + 1] != '[') {
            if (std::string("=>78").find(pending[at + 1]) == std::string::npos)
                ADD_FAILURE() << "escape code '" << pending[at + 1] << "'";
            return 2;
        }
        size_t end = pending.find_first_not_of("0123456789;?", at + 2);
        if (end == std::string::npos)
            return 0;
        code(pending.substr(at + 2, end - at - 2), pending[end]);
        return end + 1 - at;
    }

    void code(const std::string &parameters, char kind)
    {
        size_t n = static_cast<size_t>(atoi(parameters.c_str())), count = n ? n : 1;
        Row &r = row();
        if (x > columns - 1 && kind != 'm')
            x = columns - 1;
        switch (kind) {
        case 'A':
            y -= std::min(y, count);
            break;
        case 'B':
            y += count;
            break;
        case 'C':
            x = std::min(x + count, columns - 1);
            break;
        case 'D':
            x -= std::min(x, count);
            break;
        case 'G':
            x = count - 1;
            break;
        case 'K':
            EXPECT_EQ(n, 0u) << "erase to the end only";
            r.resize(std::min(r.size(), x));
            break;
        case 'J':
            EXPECT_EQ(n, 0u) << "erase to the end only";
            r.resize(std::min(r.size(), x));
            cells.resize(y + 1);
            break;
        case '@':
            if (x < r.size())
                r.insert(r.begin() + static_cast<long>(x), count, Cell());
            break;
        case 'P':
            if (x < r.size())
                r.erase(r.begin() + static_cast<long>(x),
                        r.begin() + static_cast<long>(std::min(r.size(), x + count)));
            break;
        case 'm':
            dim = n == 2 || (dim && n != 0 && n != 22);
            break;
        case 'h':
            modes.insert(atoi(parameters.c_str() + 1));
            break;
        case 'l':
            modes.erase(atoi(parameters.c_str() + 1));
            break;
        default:
            ADD_FAILURE() << "escape code [" << parameters << kind;
        }
    }
};

/* The program on a pseudo-terminal. The destructor ends it if it still runs. */
class Terminal
{
  public:
    Screen screen;

    /* `settings`: "NAME=value" on top of this process's environment. */
    explicit Terminal(const std::vector<std::string> &arguments,
                      const std::vector<std::string> &settings = {},
                      unsigned short columns = 80, const std::string &output = "",
                      const std::string &program = XM_PROGRAM)
        : screen(columns)
    {
        struct winsize size = {24, columns, 0, 0};
        fflush(nullptr); /* or the child would write the test's buffered output */
        pid = forkpty(&fd, nullptr, nullptr, &size);
        if (pid != 0)
            return;
        std::vector<char *> words{const_cast<char *>(program.c_str())};
        for (const std::string &word : arguments)
            words.push_back(const_cast<char *>(word.c_str()));
        words.push_back(nullptr);
        /* a shell's background jobs ignore these two signals */
        ::signal(SIGINT, SIG_DFL);
        ::signal(SIGQUIT, SIG_DFL);
        setenv("TERM", "xterm", 1);
        unsetenv("NO_COLOR");
        for (const std::string &setting : settings)
            putenv(const_cast<char *>(setting.c_str()));
        if (!output.empty() && !freopen(output.c_str(), "w", stdout))
            _exit(127);
        execv(program.c_str(), words.data());
        _exit(127);
    }

    ~Terminal()
    {
        if (pid > 0) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
        close(fd);
    }

    Terminal(const Terminal &) = delete;
    Terminal &operator=(const Terminal &) = delete;

    void type(const std::string &keys) const
    {
        EXPECT_EQ(write(fd, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
    }

    void signal(int number) const
    {
        kill(pid, number);
    }

    /* Returns whether the program stops, as after Ctrl-Z, within 20 seconds. */
    bool has_stopped()
    {
        int status = 0;
        for (auto until = deadline(20); std::chrono::steady_clock::now() < until;) {
            read_some(1);
            if (waitpid(pid, &status, WUNTRACED | WNOHANG) == pid)
                return WIFSTOPPED(status);
        }
        return false;
    }

    /* Whether the terminal echoes and passes whole lines, as a shell expects. */
    bool is_cooked() const
    {
        struct termios modes;
        return tcgetattr(fd, &modes) == 0 && (modes.c_lflag & ICANON) &&
               (modes.c_lflag & ECHO) && (modes.c_iflag & ICRNL);
    }

    /* Sets the modes as a shell does when it takes the terminal. */
    void cook() const
    {
        struct termios modes;
        ASSERT_EQ(tcgetattr(fd, &modes), 0);
        modes.c_lflag |= ICANON | ECHO;
        modes.c_iflag |= ICRNL;
        ASSERT_EQ(tcsetattr(fd, TCSANOW, &modes), 0);
    }

    /* Makes the terminal narrower. */
    void resize(unsigned short columns)
    {
        screen.narrow(columns);
        struct winsize size = {24, columns, 0, 0};
        ioctl(fd, TIOCSWINSZ, &size);
    }

    /* Reads until the program has sent `part` after the parts that earlier calls found, or has
     * ended. */
    bool wait_for(const std::string &part, int seconds = 60)
    {
        return read_until("'" + part + "' was sent", seconds, [&] {
            size_t found = bytes.find(part, seen);
            if (found != std::string::npos)
                seen = found + part.size();
            return found != std::string::npos;
        });
    }

    /* As wait_for(), for a regular expression. */
    bool wait_for_match(const std::string &form, int seconds = 60)
    {
        const std::regex regex(form);
        return read_until("/" + form + "/ was sent", seconds, [&] {
            std::smatch match;
            bool found = std::regex_search(bytes.cbegin() + static_cast<long>(seen),
                                           bytes.cend(), match, regex);
            if (found)
                seen = static_cast<size_t>(match[0].second - bytes.cbegin());
            return found;
        });
    }

    /* Reads until the program runs a child process, as a driver runs its linker. */
    bool wait_for_child(int seconds = 60)
    {
        return read_until(
            "a process of the program's own was seen", seconds,
            [&] { return has_child(); }, 1);
    }

    /* Reads for this time. */
    void watch(int milliseconds)
    {
        auto until =
            std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
        while (std::chrono::steady_clock::now() < until && read_some(1))
            ;
    }

    /* Returns the exit code; 128 + signal if killed; -1 if the program sent nothing for so many
     * seconds and was killed. */
    int finish(int seconds = 120)
    {
        auto until = deadline(seconds);
        size_t n_read = bytes.size();
        while (read_some(100) && std::chrono::steady_clock::now() < until) {
            if (bytes.size() > n_read)
                until = deadline(seconds);
            n_read = bytes.size();
        }
        int status = 0;
        pid_t ended = 0;
        while ((ended = waitpid(pid, &status, WNOHANG)) == 0 &&
               std::chrono::steady_clock::now() < until)
            usleep(1000);
        if (ended == 0) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
        pid = -1;
        if (ended == 0)
            return -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

    std::string text() const
    {
        return screen.text();
    }

    const std::string &raw() const
    {
        return bytes;
    }

  private:
    pid_t pid = -1;
    int fd = -1;
    size_t seen = 0;
    std::string bytes;

    static std::chrono::steady_clock::time_point deadline(int seconds)
    {
        return std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    }

    /* Reads until `is_so` returns true, which is called after each part and at least every
     * `milliseconds`. Fails the test if nothing comes for `seconds`: a program that still reports
     * what it builds is slow, not stuck. */
    template <typename IsSo>
    bool read_until(const std::string &what, int seconds, IsSo is_so,
                    int milliseconds = 100)
    {
        auto until = deadline(seconds);
        size_t n_read = bytes.size();
        while (!is_so()) {
            if (std::chrono::steady_clock::now() > until || !read_some(milliseconds)) {
                ADD_FAILURE() << "not so: " << what << "; the screen:\n" << text();
                return false;
            }
            if (bytes.size() > n_read)
                until = deadline(seconds);
            n_read = bytes.size();
        }
        return true;
    }

    bool has_child() const
    {
        std::error_code gone;
        for (const auto &task : std::filesystem::directory_iterator(
                 "/proc/" + std::to_string(pid) + "/task", gone)) {
            std::string child;
            if (std::ifstream(task.path() / "children") >> child)
                return true;
        }
        return false;
    }

    /* Returns false if the program has closed the terminal. */
    bool read_some(int milliseconds)
    {
        char part[4096];
        struct pollfd p = {fd, POLLIN, 0};
        if (poll(&p, 1, milliseconds) <= 0)
            return true;
        ssize_t n = read(fd, part, sizeof(part));
        if (n <= 0)
            return false;
        bytes.append(part, static_cast<size_t>(n));
        screen.feed(std::string(part, static_cast<size_t>(n)));
        return true;
    }
};

#endif
