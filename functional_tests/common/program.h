/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the program xemoe from a test: arguments in, exit code and both outputs back.
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_PROGRAM_H
#define XM_FUNCTIONAL_TESTS_COMMON_PROGRAM_H

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

extern char **environ;

using Words = std::vector<std::string>;

/* Variables "NAME=value" that are added to this process's environment. */
struct Settings : Words {
    Words under; /* a command that runs the program; empty: none */

    using Words::Words;
    Settings(Words variables) : Words(std::move(variables))
    {
    }
};

struct Outcome {
    int code; /* exit code; 128 + signal if killed; -1: not started */
    std::string out, err;
};

/* A process. The destructor ends it if it still runs. */
class Program
{
  public:
    explicit Program(const Words &arguments, const Settings &settings = {},
                     const std::string &input = "/dev/null",
                     const std::string &output = "")
    {
        std::string stem = testing::TempDir() + "xemoe_" + std::to_string(getpid()) +
                           "_" + std::to_string(count++);
        out_path = stem + ".out";
        err_path = stem + ".err";
        start(arguments, settings, input, output.empty() ? out_path : output);
    }

    ~Program()
    {
        if (pid > 0) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
        unlink(out_path.c_str());
        unlink(err_path.c_str());
    }

    Program(const Program &) = delete;
    Program &operator=(const Program &) = delete;

    std::string output() const
    {
        return read(out_path);
    }

    std::string errors() const
    {
        return read(err_path);
    }

    /* Returns the process id; -1 after it ended. */
    pid_t process() const
    {
        return pid;
    }

    /* Fails without a process: kill() of -1 would signal every process. */
    void send(int signal_number) const
    {
        ASSERT_GT(pid, 0) << "the program was not started, or has ended";
        kill(pid, signal_number);
    }

    void interrupt() const
    {
        send(SIGINT);
    }

    /* Waits until the process has written `part`; "": anything. Fails the test if the process
     * ends before. */
    bool wait_for_output(const std::string &part = "") const
    {
        return wait_for(out_path, part);
    }

    bool wait_for_errors(const std::string &part) const
    {
        return wait_for(err_path, part);
    }

    Outcome finish()
    {
        int status = 0;
        auto until = deadline();
        while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0) {
            if (std::chrono::steady_clock::now() > until)
                kill(pid, SIGKILL);
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        int code = pid < 0             ? -1
                   : WIFEXITED(status) ? WEXITSTATUS(status)
                                       : 128 + WTERMSIG(status);
        pid = -1;
        return {code, read(out_path), read(err_path)};
    }

  private:
    static inline int count = 0;
    std::string out_path, err_path;
    pid_t pid = -1;

    /* The time after which a process counts as hung; no test takes as long even on a busy
     * machine. */
    static std::chrono::steady_clock::time_point deadline()
    {
        return std::chrono::steady_clock::now() + std::chrono::seconds(300);
    }

    bool has_ended() const
    {
        siginfo_t info = {};
        return pid < 0 ||
               waitid(P_PID, static_cast<id_t>(pid), &info,
                      WEXITED | WNOHANG | WNOWAIT) ||
               info.si_pid == pid;
    }

    bool wait_for(const std::string &path, const std::string &part) const
    {
        for (auto until = deadline(); std::chrono::steady_clock::now() < until;) {
            const bool ended =
                has_ended(); /* checked first: nothing is written after the end */
            const std::string text = read(path);
            if (!text.empty() && text.find(part) != std::string::npos)
                return true;
            if (ended)
                break;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        ADD_FAILURE() << "not written: '" << part << "'\n" << output() << errors();
        return false;
    }

    static std::string read(const std::string &path)
    {
        std::ifstream file(path, std::ios::binary);
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    }

    static std::vector<char *> pointers(const Words &words)
    {
        std::vector<char *> list;
        for (const std::string &word : words)
            list.push_back(const_cast<char *>(word.c_str()));
        list.push_back(nullptr);
        return list;
    }

    void start(const Words &arguments, const Settings &settings, const std::string &input,
               const std::string &output)
    {
        Words words = settings.under, variables = settings;
        words.push_back(XM_PROGRAM);
        words.insert(words.end(), arguments.begin(), arguments.end());
        for (char **v = environ; *v; v++)
            /* after the settings, because the first variable of a name counts */
            variables.push_back(*v);
        posix_spawn_file_actions_t files;
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_addopen(&files, 0, input.c_str(), O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files, 1, output.c_str(),
                                         O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_addopen(&files, 2, err_path.c_str(),
                                         O_WRONLY | O_CREAT | O_TRUNC, 0600);
        /* A shell starts background jobs with SIGINT and SIGQUIT ignored, which their children
         * would inherit. */
        sigset_t usual;
        sigemptyset(&usual);
        sigaddset(&usual, SIGINT);
        sigaddset(&usual, SIGQUIT);
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setsigdefault(&attributes, &usual);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        if (posix_spawn(&pid, words[0].c_str(), &files, &attributes,
                        pointers(words).data(), pointers(variables).data()) != 0)
            pid = -1;
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&files);
    }
};

inline Outcome
run(const Words &arguments, const Settings &settings = {},
    const std::string &input = "/dev/null")
{
    return Program(arguments, settings, input).finish();
}

/* Returns whether there is any OpenCL device. */
inline bool
has_device()
{
    static const bool found =
        run({"devices", "--json"}).out.find("\"GPU") != std::string::npos;
    return found;
}

#endif
