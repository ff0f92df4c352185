/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of xemoe benchmark_app, parsed with the regular expressions of programs that parse
 * OpenVINO's benchmark_app.
 */
#ifndef XM_FUNCTIONAL_TESTS_CLI_BENCHMARK_RUN_H
#define XM_FUNCTIONAL_TESTS_CLI_BENCHMARK_RUN_H

#include <map>
#include <regex>

#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/small_ir.h"
#include "functional_tests/common/text.h"

struct BenchmarkRun {
    Outcome outcome;
    std::vector<std::string> lines;

    explicit BenchmarkRun(const Words &flags, const Settings &settings = {})
        : BenchmarkRun(run(with_command(flags), settings))
    {
    }

    explicit BenchmarkRun(const Outcome &o) : outcome(o)
    {
        std::istringstream text(o.out);
        for (std::string line; std::getline(text, line);)
            lines.push_back(line);
    }

    static Words with_command(const Words &flags)
    {
        Words words = {"benchmark_app"};
        words.insert(words.end(), flags.begin(), flags.end());
        return words;
    }

    bool says(const std::string &part) const
    {
        return contains(outcome.out, part);
    }

    /* Returns the groups of each line that matches as a whole; "" for an expression without
     * groups. */
    std::vector<std::vector<std::string>> all(const std::string &expression) const
    {
        const std::regex re(expression);
        std::vector<std::vector<std::string>> found;
        std::smatch m;
        for (const std::string &line : lines) {
            if (std::regex_match(line, m, re))
                found.emplace_back(m.begin() + (m.size() > 1), m.end());
        }
        return found;
    }

    /* Returns the last group of the only matching line as a number; -1, with a test failure,
     * unless there is exactly one. */
    double number(const std::string &expression) const
    {
        const auto found = all(expression);
        EXPECT_EQ(found.size(), 1u) << expression << "\n" << outcome.out;
        return found.size() == 1 ? std::strtod(found[0].back().c_str(), nullptr) : -1.0;
    }

    double throughput() const
    {
        return number("\\[ INFO \\] Throughput:\\s+([0-9.]+) FPS");
    }
    double count() const
    {
        return number("\\[ INFO \\] Count:\\s+(\\d+) iterations");
    }
    double duration_ms() const
    {
        return number("\\[ INFO \\] Duration:\\s+([0-9.]+) ms");
    }
    double took_ms(const std::string &what) const
    {
        return number("\\[ INFO \\] " + what + " took ([0-9.]+) ms");
    }

    /* Returns the latencies of the first block in milliseconds, by label. */
    std::map<std::string, double> latency() const
    {
        std::map<std::string, double> list;
        for (const auto &m :
             all("\\[ INFO \\]    (Median|Average|Min|Max|\\d+ percentile)"
                 ":\\s+([0-9.]+) (ms|us)"))
            list.emplace(m[0], std::strtod(m[1].c_str(), nullptr) /
                                   (m[2] == "us" ? 1000.0 : 1.0));
        return list;
    }

    /* Returns the numbers of the steps in order, with "s" after skipped ones. */
    std::string steps() const
    {
        std::string text;
        for (const auto &m : all("\\[Step (\\d+)/11\\] [A-Z][^()]*( \\((.*)\\))?"))
            text += m[0] + (m[2] == "skipped" ? "s " : " ");
        return text;
    }
};

inline const char *const all_steps = "1 2 3 4 5 6 7 8 9 10 11 ";

/* Checks what every complete run prints, whatever its flags. */
inline void
expect_complete(const BenchmarkRun &r)
{
    ASSERT_EQ(r.outcome.code, 0) << r.outcome.out << r.outcome.err;
    EXPECT_EQ(r.outcome.err, "");
    const double duration = r.duration_ms(), count = r.count();
    EXPECT_GT(count, 0.0);
    EXPECT_GT(r.throughput(), 0.0);
    EXPECT_EQ(r.all("\\[ INFO \\] Execution Devices:\\['[A-Z0-9.]+'\\]").size(), 1u);
    const auto l = r.latency();
    ASSERT_EQ(l.size(), 4u) << r.outcome.out;
    EXPECT_LE(l.at("Min"), l.at("Average"));
    EXPECT_LE(l.at("Average"), l.at("Max"));
    for (const auto &[label, ms] : l) {
        EXPECT_GE(ms, l.at("Min")) << label;
        EXPECT_LE(ms, l.at("Max")) << label;
    }
    /* Both are in milliseconds. In some virtual machines threads read slightly different times. */
    EXPECT_LE(l.at("Max"), 2.0 * duration + 10.0);
    /* All four latencies are in microseconds if the average is below a millisecond. */
    EXPECT_EQ(r.all("\\[ INFO \\]    .*: +[0-9]+\\.[0-9]{2} us").size(),
              l.at("Average") < 1.0 ? 4u : 0u);
}

/* Checks the throughput of `frames` inferences times batch size; printed figures have two
 * decimals. */
inline void
expect_throughput(const BenchmarkRun &r, double frames)
{
    const double ms = r.duration_ms();
    EXPECT_GE(r.throughput(), 1000.0 * frames / (ms + 0.006) - 0.01);
    EXPECT_LE(r.throughput(), 1000.0 * frames / (ms - 0.006) + 0.01);
}

#endif
