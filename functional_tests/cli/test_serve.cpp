/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe serve on a real model: each text is the one that generate makes of its prompt, whoever else
 * asks; what clients leave behind is nothing; signals end it in order.
 */
#include <atomic>
#include <memory>

#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/raw_client.h"
#include "functional_tests/common/text.h"

namespace
{

const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
const Words exact = {"--precision", "f32", "--kv", "f32", "--dynamic-quantization", "0"};
const char *const completions = "/v1/completions";

Words
operator+(Words a, const Words &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/* The value of a member of JSON text that is a string without escapes. */
std::string
value_of(const std::string &json, const std::string &key)
{
    const std::string begin = "\"" + key + "\":\"";
    const size_t at = json.find(begin);
    return at == std::string::npos
               ? ""
               : json.substr(at + begin.size(),
                             json.find('"', at + begin.size()) - at - begin.size());
}

class Serve : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
    void begin(const Words &options = {})
    {
        program = std::make_unique<Program>(Words{"serve", "-m", model, "--port", "0"} +
                                            exact + options);
        ASSERT_TRUE(program->wait_for_output(" slots)\n")) << program->errors();
        port = port_of(program->output());
    }
    static uint16_t port_of(const std::string &line)
    {
        const size_t at = line.find(':', line.find("://") + 3);
        EXPECT_NE(at, std::string::npos) << line;
        return (uint16_t)std::stoi(line.substr(at + 1));
    }
    Response ask(const std::string &request) const
    {
        RawClient c(port);
        c.send(request);
        return c.read();
    }
    static std::string body(const std::string &prompt, int tokens,
                            const std::string &more = "")
    {
        return R"({"temperature":0,"max_tokens":)" + std::to_string(tokens) +
               R"(,"prompt":")" + prompt + "\"" + more + "}";
    }
    std::string metric(const std::string &name) const
    {
        const std::string text = ask(RawClient::get("/metrics")).body;
        const size_t at = text.find("\nxemoe_" + name + "{");
        const size_t value = text.find("} ", at) + 2;
        return at == std::string::npos
                   ? ""
                   : text.substr(value, text.find('\n', value) - value);
    }
    bool becomes(const std::string &name, const std::string &value) const
    {
        for (int i = 0; i < 2000; i++) {
            if (metric(name) == value)
                return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        ADD_FAILURE() << name << " is " << metric(name);
        return false;
    }

    std::unique_ptr<Program> program;
    uint16_t port = 0;
};

TEST_F(Serve, TextsAreThoseOfGenerate)
{
    const Words prompts = {"Paris is the capital of",
                           "Once upon a time there was a little",
                           "The",
                           "Berlin is the capital of Germany and",
                           "One day",
                           "2 and 2 make"};
    Words wanted;
    for (const std::string &p : prompts)
        wanted.push_back(
            run(Words{"generate", "-m", model, "-p", p, "-n", "24"} + exact).out);
    begin({"--slots", "3"});
    std::vector<std::thread> clients;
    std::vector<std::string> got(2 * prompts.size());
    for (size_t i = 0; i < got.size(); i++)
        clients.emplace_back([&, i] {
            const bool streams = i >= prompts.size();
            const Response r = ask(
                RawClient::request(completions, body(prompts[i % prompts.size()], 24,
                                                     streams ? ",\"stream\":true" : "")));
            std::string rest = r.body, text;
            for (size_t at; (at = rest.find("\"text\":\"")) != std::string::npos;) {
                rest = rest.substr(at);
                text += value_of(rest, "text");
                rest = rest.substr(8);
            }
            got[i] = text;
        });
    for (std::thread &t : clients)
        t.join();
    for (size_t i = 0; i < got.size(); i++)
        EXPECT_EQ(got[i] + "\n", wanted[i % prompts.size()])
            << prompts[i % prompts.size()];
    const std::string chat =
        ask(RawClient::request(
                "/v1/chat/completions",
                R"({"messages":[{"role":"user","content":"Hi"}],"temperature":0,"max_tokens":24})"))
            .body;
    const Outcome alone =
        run(Words{"generate", "-m", model, "--chat", "-p", "Hi", "-n", "24"} + exact);
    EXPECT_EQ(value_of(chat, "content") + "\n", alone.out);
}

TEST_F(Serve, ClientsThatLeaveKeepNoPages)
{
    begin({"--slots", "4"});
    std::vector<std::thread> clients;
    std::atomic<int> good{0}, left{0};
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    for (unsigned i = 0; i < 16; i++)
        clients.emplace_back([&, i] {
            uint32_t state = 2463534242u + i;
            for (;;) {
                state = state * 1664525u + 1013904223u;
                const bool leaves = state >> 30 == 0, streams = state >> 29 & 1;
                RawClient c(port);
                c.send(RawClient::request(
                    completions, body("One day", 8 + (int)(state >> 8) % 64,
                                      std::string(",\"ignore_eos\":true,\"stream\":") +
                                          (streams ? "true" : "false"))));
                if (leaves)
                    std::this_thread::sleep_for(std::chrono::milliseconds(state >> 24));
                else
                    good += c.read().status == 200;
                left += leaves;
                if (std::chrono::steady_clock::now() > until)
                    return;
            }
        });
    for (std::thread &t : clients)
        t.join();
    EXPECT_GT(good, 10);
    EXPECT_GT(left, 2);
    becomes("texts_running", "0");
    becomes("kv_pages_used", "0");
    EXPECT_EQ(metric("texts_failed_total"), "0");
    program->send(SIGTERM);
    EXPECT_EQ(program->finish().code, 0);
}

TEST_F(Serve, SeveralModelsByTheirNames)
{
    const std::string other = XM_MODELS_DIR "/qwen3moe-tiny/ov/int8_asym";
    program = std::make_unique<Program>(
        Words{"serve", "-m", model, "--alias", "four", "-m", other, "--port", "0"});
    ASSERT_TRUE(program->wait_for_output(" slots)\n")) << program->errors();
    port = port_of(program->output());
    const std::string list = ask(RawClient::get("/v1/models")).body;
    EXPECT_TRUE(contains(list, "\"id\":\"four\"")) << list;
    EXPECT_TRUE(contains(list, "\"id\":\"int8_asym\"")) << list;
    for (const std::string name : {"four", "int8_asym"}) {
        const Response r = ask(RawClient::request(
            completions, body("One day", 2, R"(,"model":")" + name + "\"")));
        EXPECT_EQ(r.status, 200) << r.body;
        EXPECT_EQ(value_of(r.body, "model"), name) << r.body;
    }
    EXPECT_EQ(
        ask(RawClient::request(completions, body("One", 1, R"(,"model":"none")"))).status,
        404);
}

TEST_F(Serve, TextsHaveTheFormThatIsAskedFor)
{
    begin();
    const std::string schema = R"({"type":"object","required":["answer"],)"
                               R"("properties":{"answer":{"enum":["yes","no"]}},)"
                               R"("additionalProperties":false})";
    const std::string format =
        R"({"type":"json_schema","json_schema":{"name":"a","schema":)" + schema + "}}";
    const Response json = ask(RawClient::request(
        "/v1/chat/completions", R"({"messages":[{"role":"user","content":"Hi"}],)"
                                R"("max_tokens":64,"response_format":)" +
                                    format + "}"));
    EXPECT_EQ(json.status, 200);
    EXPECT_TRUE(contains(json.body, R"({\"answer\":)") ||
                contains(json.body, R"({\"answer\": )"))
        << json.body;
    EXPECT_TRUE(contains(json.body, "\"finish_reason\":\"stop\"")) << json.body;
    const Response gbnf = ask(RawClient::request(
        completions,
        body("One day", 8, R"(,"grammar":"root ::= \"<\" [0-9]{3} \">\"")")));
    const std::string text = value_of(gbnf.body, "text");
    ASSERT_EQ(text.size(), 5u) << gbnf.body;
    EXPECT_TRUE(text[0] == '<' && isdigit(text[1]) && isdigit(text[3]) && text[4] == '>')
        << text;
    const Response wrong = ask(RawClient::request(
        completions, body("One day", 8, R"(,"grammar":"root ::= other")")));
    EXPECT_EQ(wrong.status, 400);
    EXPECT_EQ(value_of(wrong.body, "param"), "grammar") << wrong.body;
}

TEST_F(Serve, ASignalLetsTextsEnd)
{
    begin({"--timeout", "600"});
    RawClient c(port);
    /* long enough to be seen, also where this thread has to wait */
    c.send(
        RawClient::request(completions, body("One day", 1900, ",\"ignore_eos\":true")));
    becomes("texts_running", "1");
    EXPECT_NE(metric("kv_pages_used"), "0");
    program->send(SIGTERM);
    ASSERT_TRUE(program->wait_for_errors("xemoe: stopping"));
    EXPECT_EQ(ask(RawClient::request(completions, body("One", 1))).status, 503);
    EXPECT_TRUE(contains(c.read().body, "\"completion_tokens\":1900"));
    EXPECT_EQ(program->finish().code, 0);
}

TEST_F(Serve, TextsThatDoNotEndInTimeAreTold)
{
    begin({"--timeout", "0.2"});
    RawClient c(port);
    c.send(
        RawClient::request(completions, body("One day", 2000, ",\"ignore_eos\":true")));
    becomes("texts_running", "1");
    program->interrupt();
    const Response r = c.read();
    EXPECT_EQ(r.status, 503);
    EXPECT_TRUE(contains(r.body, "the server is stopping")) << r.body;
    EXPECT_EQ(program->finish().code, 0);
}

TEST_F(Serve, ASecondSignalEndsItAtOnce)
{
    begin();
    RawClient c(port);
    c.send(
        RawClient::request(completions, body("One day", 2000, ",\"ignore_eos\":true")));
    becomes("texts_running", "1");
    program->interrupt();
    ASSERT_TRUE(program->wait_for_errors("xemoe: stopping"));
    program->interrupt();
    const Outcome o = program->finish();
    EXPECT_EQ(o.code, 130);
    EXPECT_TRUE(contains(o.err, "second signal")) << o.err;
}

TEST_F(Serve, KeysNamesAndOtherAddresses)
{
    Folder folder("serve_keys");
    folder.write("keys", "open-sesame\n");
    begin({"--api-key-file", folder / "keys", "--alias", "tiny"});
    EXPECT_TRUE(contains(program->output(), "(tiny, 4 slots)")) << program->output();
    EXPECT_EQ(ask(RawClient::get("/v1/models")).status, 401);
    const Response r =
        ask(RawClient::get("/v1/models", "GET", "Authorization: Bearer open-sesame\r\n"));
    EXPECT_TRUE(contains(r.body, "\"id\":\"tiny\"")) << r.body;
    EXPECT_FALSE(contains(r.body, "/")) << "no path of the machine: " << r.body;
    const Outcome used = run({"serve", "-m", model, "--port", std::to_string(port)});
    EXPECT_EQ(used.code, 1);
    EXPECT_TRUE(
        contains(used.err, "port " + std::to_string(port) + " of '127.0.0.1' is in use"))
        << used.err;
    Program all({"serve", "-m", model, "--port", "0", "--host", "0.0.0.0"});
    ASSERT_TRUE(all.wait_for_output(" slots)\n"));
    EXPECT_TRUE(contains(all.errors(), "--api-key-file FILE asks clients for a key"));
    const std::string other = "GET /health HTTP/1.1\r\nHost: any.example\r\n\r\n";
    EXPECT_EQ(ask(other).status, 403) << "it is on loopback";
    port = port_of(all.output());
    EXPECT_EQ(ask(other).status, 200) << "others call it by names of their own";
}

TEST(ServeOptions, AreRefusedByName)
{
    Folder folder("serve_options");
    folder.write("empty", "# none\n");
    struct {
        Words options;
        const char *sentence;
        int code;
    } const rows[] = {
        {{"--port", "65536"}, "option --port takes a number from 0 to 65535", 2},
        {{"--port", "x"}, "--port", 2},
        {{"--tls-cert", "a.pem"}, "--tls-cert and --tls-key are given together", 2},
        {{"--alias", "a", "--alias", "b"},
         "option --alias is given 2 times for 1 model",
         2},
        {{"--stop", "x"}, "--stop", 2},
        {{"--top-p", "2"}, "--top-p", 2},
        {{"--slots", "0"}, "--slots", 2},
        {{"--api-key-file", folder / "empty"}, "there is no key in it", 3},
        {{"--api-key-file", folder / "nothing"}, "nothing", 3},
    };
    for (const auto &row : rows) {
        const Outcome o = run(Words{"serve", "-m", model} + row.options);
        EXPECT_EQ(o.code, row.code) << row.sentence << ": " << o.err;
        EXPECT_TRUE(contains(o.err, row.sentence)) << o.err;
    }
}

} // namespace
