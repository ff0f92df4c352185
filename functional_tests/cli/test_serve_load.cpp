/* SPDX-License-Identifier: Apache-2.0
 *
 * A server under load: many clients that come at random, read all or a part of the answer, or
 * leave. Each text equals the one that its prompt gives alone; clients that leave do no harm.
 *
 * XM_TEST_MINUTES=N runs it for N minutes instead of some seconds.
 */
#include <atomic>
#include <fstream>
#include <random>

#include "functional_tests/cli/serve_test.h"

namespace
{

enum { CLIENTS = 64, LENGTHS = 3, RSS_SPARE_KB = 32 << 10 };

const int lengths[LENGTHS] = {6, 17, 40};
const char *const prompts[] = {"Paris is the capital of",
                               "Paris is the capital of France and Berlin is",
                               "Once upon a time there was a little",
                               "Once upon a time there was a little girl who", "The"};

double
seconds()
{
    const char *minutes = std::getenv("XM_TEST_MINUTES");
    return minutes ? 60.0 * std::atof(minutes) : 4.0;
}

/* Returns the text of an answer, whole or streamed, with JSON's escapes. */
std::string
text_of(std::string rest)
{
    std::string text;
    for (size_t at; (at = rest.find("\"text\":\"")) != std::string::npos;) {
        rest = rest.substr(at + 8);
        size_t n = 0;
        while (n < rest.size() && rest[n] != '"')
            n += rest[n] == '\\' ? 2 : 1;
        text += rest.substr(0, n);
    }
    return text;
}

std::string
unescaped(const std::string &json)
{
    std::string text;
    for (size_t i = 0; i < json.size(); i++) {
        const bool is_escape = json[i] == '\\';
        i += is_escape;
        text += is_escape && json[i] == 'n' ? '\n' : json[i];
    }
    return text;
}

class ServeLoad : public Serve
{
  protected:
    struct Text {
        std::string body, wanted;
    };
    static std::string ending()
    {
        return ",\"ignore_eos\":true";
    }
    /* Gets the text of each prompt alone, from the server and from generate. */
    void make_texts()
    {
        for (const char *prompt : prompts) {
            for (int n : lengths) {
                Text t = {body(prompt, n, ending()), ""};
                t.wanted = text_of(ask(RawClient::request(completions, t.body)).body);
                ASSERT_FALSE(t.wanted.empty());
                texts.push_back(t);
            }
            const Outcome alone =
                run(Words{"generate", "-m", model, "-p", prompt, "-n",
                          std::to_string(lengths[LENGTHS - 1]), "--ignore-eos"} +
                    exact);
            EXPECT_EQ(unescaped(texts.back().wanted) + "\n", alone.out);
        }
    }
    long resident_kb() const
    {
        std::ifstream status("/proc/" + std::to_string(program->process()) + "/status");
        std::string line;
        while (std::getline(status, line))
            if (line.compare(0, 6, "VmRSS:") == 0)
                return std::stol(line.substr(6));
        return 0;
    }
    void whole(const Text &t, bool streams)
    {
        RawClient c(port);
        std::string more = t.body;
        more.insert(1, streams ? R"("stream":true,)" : R"("stream":false,)");
        c.send(RawClient::request(completions, more));
        const Response r = c.read();
        n_whole++;
        if (r.status != 200 || text_of(r.body) != t.wanted) {
            n_wrong++;
            ADD_FAILURE() << r.status << ": " << r.body << "\nwanted " << t.wanted;
        }
    }
    /* A client that reads a part of a stream or nothing, and leaves. */
    void left(const Text &t, std::mt19937 &random)
    {
        RawClient c(port);
        std::string more = t.body;
        more.insert(1, R"("stream":true,)");
        c.send(RawClient::request(completions, more));
        if (random() % 2)
            c.wait_for("\"text\":\"");
        else
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
        if (random() % 2)
            c.close_side();
        n_left++;
    }
    void be_client(unsigned seed, std::chrono::steady_clock::time_point until)
    {
        std::mt19937 random(seed);
        do { /* at least once, on however slow a machine */
            const Text &t = texts[random() % texts.size()];
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));
            if (random() % 4 == 0)
                left(t, random);
            else
                whole(t, random() % 2 == 0);
        } while (std::chrono::steady_clock::now() < until);
    }
    void load(double s, unsigned seed)
    {
        std::vector<std::thread> clients;
        const auto until = std::chrono::steady_clock::now() +
                           std::chrono::milliseconds((long)(1000.0 * s));
        for (unsigned i = 0; i < CLIENTS; i++)
            clients.emplace_back([=] { be_client(seed + i, until); });
        for (std::thread &t : clients)
            t.join();
    }

    std::vector<Text> texts;
    std::atomic<size_t> n_whole{0}, n_left{0}, n_wrong{0};
};

TEST_F(ServeLoad, TextsOfManyClientsAreThoseOfEachAlone)
{
    begin({"--slots", "16", "--queue", "256"});
    make_texts();
    load(seconds() / 4.0, 1);
    becomes("kv_pages_used", "0");
    const long before = resident_kb();
    load(seconds() * 3.0 / 4.0, 1000);
    becomes("texts_running", "0");
    becomes("kv_pages_used", "0");
    const long after = resident_kb();
    EXPECT_EQ(n_wrong, 0u);
    EXPECT_GT(n_whole, 20u);
    EXPECT_GT(n_left, 5u);
    EXPECT_EQ(metric("texts_failed_total"), "0");
    EXPECT_LT(after, before + RSS_SPARE_KB) << "memory grows with requests";
    std::cout << n_whole << " texts whole, " << n_left << " left, " << before
              << " KiB, then " << after << " KiB\n";
    program->send(SIGTERM);
    EXPECT_EQ(program->finish().code, 0);
}

} // namespace
