/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe serve on a real model: each text equals the one that generate makes of its prompt,
 * whatever other clients ask; clients that leave do no harm; signals end the server in order.
 */
#include <atomic>
#include <cstdlib>

#include "functional_tests/cli/serve_test.h"

namespace
{

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

TEST_F(Serve, PrefixesAreKeptForTheNextServer)
{
    const Folder folder{"serve_prefixes"};
    std::string prompt = "One day";
    for (int i = 0; i < 20; i++)
        prompt += " a little dog and a cat went to the";
    const std::string request = RawClient::request(completions, body(prompt, 4));
    std::string texts[2];
    for (std::string &text : texts) {
        begin({"--prefix-cache", folder / "prefixes"});
        const std::string answer = ask(request).body;
        const bool is_first = &text == texts;
        EXPECT_EQ(answer.find("\"cached_tokens\":0") != std::string::npos, is_first)
            << answer;
        text = value_of(answer, "text");
        program->send(SIGTERM);
        EXPECT_EQ(program->finish().code, 0);
    }
    EXPECT_FALSE(texts[0].empty());
    EXPECT_EQ(texts[0], texts[1]);
}

TEST_F(Serve, ClientsThatLeaveKeepNoPages)
{
    begin({"--slots", "4"});
    std::vector<std::thread> clients;
    std::atomic<int> good{0}, left{0};
    for (unsigned i = 0; i < 16; i++)
        clients.emplace_back([&, i] {
            uint32_t state = 2463534242u + i;
            for (int n = 0; n < 5; n++) {
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
            }
        });
    for (std::thread &t : clients)
        t.join();
    EXPECT_EQ(good + left, 16 * 5);
    EXPECT_GT(left, 10);
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
    EXPECT_TRUE(contains(json.body, R"(\"answer\":)")) << json.body;
    EXPECT_TRUE(contains(json.body, R"(\"yes\")") || contains(json.body, R"(\"no\")"))
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

/* Makes a certificate, and uses openssl as a client that trusts it. */
TEST_F(Serve, AnswersOverTls)
{
    if (std::system("openssl version > /dev/null 2>&1") != 0)
        GTEST_SKIP() << "the program openssl is not installed";
    Folder folder("serve_tls");
    const std::string cert = folder / "cert.pem", key = folder / "key.pem";
    const auto shell = [](const std::string &line) { return std::system(line.c_str()); };
    ASSERT_EQ(shell("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
                    "-nodes -days 2 -subj /CN=localhost -addext "
                    "subjectAltName=DNS:localhost -keyout '" +
                    key + "' -out '" + cert + "' 2> /dev/null"),
              0);
    begin({"--tls-cert", cert, "--tls-key", key});
    EXPECT_TRUE(contains(program->output(), "https://")) << program->output();
    folder.write("request", RawClient::request(completions, body("One day", 4),
                                               "Connection: close\r\n"));
    const auto read = [&](const std::string &trusted) {
        return shell("openssl s_client -quiet -verify_return_error -verify_hostname "
                     "localhost -CAfile '" +
                     trusted + "' -connect 127.0.0.1:" + std::to_string(port) + " < '" +
                     (folder / "request") + "' > '" + (folder / "answer") +
                     "' 2> /dev/null");
    };
    EXPECT_EQ(read(cert), 0);
    const std::string answer = read_file(folder / "answer");
    EXPECT_TRUE(contains(answer, "HTTP/1.1 200")) << answer;
    EXPECT_TRUE(contains(answer, "\"completion_tokens\":4")) << answer;
    EXPECT_NE(ask(RawClient::get("/health")).status, 200) << "without TLS";
    program->send(SIGTERM);
    EXPECT_EQ(program->finish().code, 0);
    const Outcome swapped = run(
        Words{"serve", "-m", model, "--port", "0", "--tls-cert", key, "--tls-key", cert});
    EXPECT_EQ(swapped.code, 3);
    EXPECT_EQ(swapped.err, "xemoe: options --tls-cert and --tls-key: certificate and key "
                           "must belong together and be in PEM format\n")
        << "before a model is read";
}

TEST_F(Serve, ASignalLetsTextsEnd)
{
    begin({"--timeout", "600"});
    RawClient c(port);
    /* long enough to be observed, even if this thread has to wait */
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
    EXPECT_EQ(used.code, 2);
    EXPECT_EQ(used.err, "xemoe: option --port: port " + std::to_string(port) +
                            " of '127.0.0.1' is in use by another program: choose "
                            "another port\n")
        << "before a model is read";
    Program all({"serve", "-m", model, "--port", "0", "--host", "0.0.0.0"});
    ASSERT_TRUE(all.wait_for_output(" slots)\n"));
    EXPECT_TRUE(
        contains(all.errors(), "kernels that are not in the cache are built first"));
    EXPECT_TRUE(
        contains(all.errors(), "--api-key-file FILE requires a key from clients"));
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
        {{"--tls-cert", "a.pem"}, "--tls-cert and --tls-key must be given together", 2},
        {{"--alias", "a", "--alias", "b"},
         "option --alias is given 2 times for 1 model",
         2},
        {{"--stop", "x"}, "--stop", 2},
        {{"--top-p", "2"}, "--top-p", 2},
        {{"--slots", "0"}, "--slots", 2},
        {{"--host", "no.such.host.invalid"},
         "option --host: there is no address 'no.such.host.invalid' to listen on",
         2},
        {{"-m", "/no/such/model", "--port", "0"},
         "two models have the name 'model': give each its own with --alias",
         2},
        {{"--api-key-file", folder / "empty"}, "it contains no key", 3},
        {{"--api-key-file", folder / "nothing"}, "option --api-key-file: cannot open", 3},
        {{"--tls-cert", "/no/cert", "--tls-key", "/no/key"},
         "option --tls-cert: cannot open '/no/cert'",
         3},
    };
    for (const auto &row : rows) {
        const Outcome o = run(Words{"serve", "-m", "/no/such/model"} + row.options);
        EXPECT_EQ(o.code, row.code) << row.sentence << ": " << o.err;
        EXPECT_TRUE(contains(o.err, row.sentence)) << o.err;
    }
}

} // namespace
