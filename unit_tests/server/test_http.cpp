/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's sockets, by raw bytes: requests that come in pieces, slowly, too large or not at
 * all, and clients that disconnect.
 */
#include <atomic>
#include <memory>

#include "functional_tests/common/raw_client.h"
#include "plugin/server/http.h"
#include "plugin/server/listen.h"
#include "runtime/util/clock.h"
#include "unit_tests/server/served.h"

namespace
{

const char *const completions = "/v1/completions";
const std::string small = R"({"prompt":[1,2],"max_tokens":4,"ignore_eos":true})";
const std::string endless =
    R"({"prompt":[1,2],"max_tokens":100000,"ignore_eos":true,"stream":)";

class Http : public ::testing::Test
{
  protected:
    void begin(double patience = 30.0, unsigned connections = 64)
    {
        xm_http_options o = {};
        o.host = "127.0.0.1";
        o.patience = patience;
        o.connections = connections;
        ASSERT_EQ(xm_http_start(&s.server, &o, &h, &err), XM_OK) << err.text;
        port = xm_http_port(h);
    }
    ~Http() override
    {
        xm_served_stop(s.served);
        xm_http_stop(h);
    }
    /* Makes each run take some time, as on a device. */
    void be_slow(int us = 500)
    {
        s.model.on_run = [us] {
            std::this_thread::sleep_for(std::chrono::microseconds(us));
        };
    }
    Response ask(const std::string &request)
    {
        RawClient c(port);
        c.send(request);
        return c.read();
    }
    std::string metric(const std::string &name)
    {
        const std::string text = ask(RawClient::get("/metrics")).body;
        const std::string line = "\nxemoe_" + name + "{model=\"small\"} ";
        const size_t at = text.find(line);
        return at == std::string::npos
                   ? ""
                   : text.substr(at + line.size(),
                                 text.find('\n', at + 1) - at - line.size());
    }
    /* Returns whether a new connection is accepted soon; the server notices only after a while
     * that clients have left. */
    bool has_room()
    {
        int status = 503;
        for (int i = 0; i < 3000 && status == 503; i++) {
            status = ask(RawClient::get("/health")).status;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return status == 200;
    }
    bool becomes(const std::string &name, const std::string &value)
    {
        for (int i = 0; i < 3000; i++) {
            if (metric(name) == value)
                return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        return false;
    }

    Served s{4, 64, 200000};
    xm_http *h = nullptr;
    uint16_t port = 0;
    xm_error err = {};
};

TEST_F(Http, AnswersOnOneConnectionAfterTheOther)
{
    begin();
    RawClient c(port);
    for (int i = 0; i < 5; i++) {
        ASSERT_TRUE(c.send(RawClient::request(completions, small)));
        const Response r = c.read();
        ASSERT_EQ(r.status, 200) << r.head;
        EXPECT_TRUE(has(r.body, R"("completion_tokens":4)")) << r.body;
        c.send(RawClient::get("/health"));
        EXPECT_EQ(c.read().body, R"({"status":"ok"})");
    }
    /* Two requests sent at once are answered in order. */
    c.send(RawClient::get("/health") + RawClient::get("/v1/models"));
    EXPECT_TRUE(has(c.read().body, "ok"));
    EXPECT_TRUE(has(c.read().body, "small"));
}

TEST_F(Http, ABodyMayComeInPieces)
{
    begin();
    RawClient c(port);
    const std::string all = RawClient::request(completions, small);
    for (size_t i = 0; i < all.size(); i++) {
        ASSERT_TRUE(c.send(all.substr(i, 1)));
        if (i % 40 == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(c.read().status, 200);
    RawClient chunked(port);
    chunked.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                 "application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (char letter : small)
        chunked.send(std::string("1\r\n") + letter + "\r\n");
    chunked.send("0\r\n\r\n");
    EXPECT_EQ(chunked.read().status, 200);
    RawClient asks(port);
    asks.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
              "application/json\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(small.size()) + "\r\n\r\n");
    EXPECT_TRUE(asks.wait_for("100 Continue"));
    asks.left.clear();
    asks.send(small);
    EXPECT_EQ(asks.read().status, 200);
}

TEST_F(Http, AStreamComesWhileItIsMade)
{
    begin();
    std::atomic<bool> holds{false};
    std::atomic<int> runs{0};
    s.model.on_run = [&] {
        runs++;
        while (holds)
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        if (runs == 3)
            holds = true; /* holds from the next run on */
    };
    RawClient c(port);
    c.send(RawClient::request(
        completions,
        R"({"prompt":[1,2],"max_tokens":40,"ignore_eos":true,"stream":true})"));
    ASSERT_TRUE(c.wait_for("data: {")) << "before the text is over";
    EXPECT_TRUE(holds || runs < 4);
    while (!holds)
        std::this_thread::yield();
    holds = false;
    const Response r = c.read();
    EXPECT_EQ(r.status, 200);
    EXPECT_TRUE(has(r.head, "Content-Type: text/event-stream")) << r.head;
    EXPECT_TRUE(has(r.body, "data: [DONE]\n\n"));
}

TEST_F(Http, ManyClientsAtOnceGetTheTextsOfTheirPrompts)
{
    begin();
    std::vector<Kind> kinds;
    std::vector<std::thread> clients;
    std::atomic<int> good{0};
    for (int i = 0; i < 32; i++)
        kinds.push_back(long_kind(s.model, 3 + (size_t)i, 16, i));
    for (const Kind &k : kinds)
        clients.emplace_back([&, this] {
            std::string ids;
            for (int32_t id : k.prompt)
                ids += (ids.empty() ? "" : ",") + std::to_string(id);
            const bool streams = k.prompt.size() % 2;
            const Response r = ask(RawClient::request(
                completions, R"({"temperature":0,"max_tokens":16,"prompt":[)" + ids +
                                 R"(],"stream":)" + (streams ? "true}" : "false}")));
            good += r.status == 200 && values_of(r.body, "text") == s.text_of(k.ids);
        });
    for (std::thread &t : clients)
        t.join();
    EXPECT_EQ(good, 32);
}

TEST_F(Http, AClientThatGoesAwayEndsItsText)
{
    begin();
    be_slow();
    for (const char *streams : {"true}", "false}"}) {
        RawClient c(port);
        c.send(RawClient::request(completions, endless + streams));
        ASSERT_TRUE(becomes("texts_running", "1"));
        c.leave();
        EXPECT_TRUE(becomes("texts_running", "0")) << streams;
    }
    RawClient half(port);
    half.send(RawClient::request(completions, endless + "false}"));
    half.close_side();
    EXPECT_TRUE(half.is_closed());
    EXPECT_TRUE(becomes("texts_running", "0"));
    /* Clients that leave while they wait in the queue. */
    std::vector<std::unique_ptr<RawClient>> all;
    for (int i = 0; i < 8; i++) {
        all.push_back(std::make_unique<RawClient>(port));
        all.back()->send(RawClient::request(completions, endless + "false}"));
    }
    ASSERT_TRUE(becomes("texts_waiting", "4"));
    all.clear();
    EXPECT_TRUE(becomes("texts_waiting", "0"));
    EXPECT_TRUE(becomes("texts_running", "0"));
}

/* A client that does not read has its text cancelled once much output is unread. */
TEST_F(Http, AClientThatDoesNotReadIsGivenUp)
{
    begin();
    RawClient c(port);
    c.send(RawClient::request(completions, R"({"prompt":[1,2],"max_tokens":150000,)"
                                           R"("ignore_eos":true,"stream":true})"));
    EXPECT_TRUE(becomes("texts_cancelled_total", "1"));
}

TEST_F(Http, SlowClientsAreCut)
{
    begin(0.3);
    RawClient silent(port), drips(port), body(port), idle(port);
    body.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
              "application/json\r\nContent-Length: 10\r\n\r\n{");
    idle.send(RawClient::get("/health"));
    EXPECT_EQ(idle.read().status, 200);
    std::thread dripping([&] {
        for (int i = 0; i < 200 && drips.send("G"); i++)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
    EXPECT_TRUE(silent.is_closed());
    EXPECT_TRUE(body.is_closed());
    EXPECT_TRUE(idle.is_closed());
    dripping.join();
    /* A client that still waits for its answer is kept. */
    std::atomic<int> runs{0};
    s.model.on_run = [&] {
        if (runs++ == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(800));
    };
    EXPECT_EQ(ask(RawClient::request(completions, small)).status, 200);
}

/* Clients beyond the limit are told so, and may come again. */
TEST_F(Http, ConnectionsAreBounded)
{
    begin(3.0, 8);
    std::vector<std::unique_ptr<RawClient>> idle;
    for (int i = 0; i < 24; i++)
        idle.push_back(std::make_unique<RawClient>(port));
    for (int i = 0; i < 3; i++) {
        RawClient c(port);
        c.send(i ? RawClient::request(completions, small) : RawClient::get("/health"));
        const Response r = c.read();
        EXPECT_EQ(r.status, 503);
        EXPECT_TRUE(has(r.body, "the server has 8 connections and accepts no more"))
            << r.body;
        EXPECT_TRUE(has(r.head, "Retry-After: 1")) << r.head;
        EXPECT_TRUE(c.is_closed());
    }
    for (const auto &other : idle)
        EXPECT_TRUE(other->is_closed());
    EXPECT_TRUE(has_room()) << "once the others were cut";
}

/* More connections than the server can even refuse: a late one is answered or refused, and there
 * is room again when they have left. */
TEST_F(Http, ManyConnectionsBeyondTheBoundAreSurvived)
{
    begin(0.5, 8);
    std::vector<std::unique_ptr<RawClient>> idle;
    for (int i = 0; i < 200; i++)
        idle.push_back(std::make_unique<RawClient>(port));
    RawClient c(port);
    c.send(RawClient::get("/health"));
    const int status = c.read().status;
    EXPECT_TRUE(status == 200 || status == 503) << status;
    for (const auto &other : idle)
        EXPECT_TRUE(other->is_closed());
    EXPECT_TRUE(has_room());
}

/* A connection above the limit is served once others have left. */
TEST_F(Http, AConnectionIsWithinTheBoundOnceOthersHaveGone)
{
    begin(30.0, 8);
    std::vector<std::unique_ptr<RawClient>> idle;
    for (int i = 0; i < 8; i++)
        idle.push_back(std::make_unique<RawClient>(port));
    RawClient late(port);
    idle.clear();
    EXPECT_TRUE(has_room());
    late.send(RawClient::get("/health"));
    EXPECT_EQ(late.read().status, 200);
}

TEST_F(Http, AnErrorLeavesTheConnectionToTheNextRequest)
{
    begin();
    RawClient c(port);
    c.send(RawClient::request(completions, R"({"prompt":5})"));
    EXPECT_EQ(c.read().status, 400);
    c.send(RawClient::get("/nothing"));
    EXPECT_EQ(c.read().status, 404);
    s.model.run_fails_in = 0;
    c.send(RawClient::request(completions, small));
    EXPECT_EQ(c.read().status, 500);
    c.send(RawClient::request(completions, small));
    EXPECT_EQ(c.read().status, 200);
}

TEST_F(Http, WhatIsNoRequestIsRefused)
{
    begin();
    struct {
        std::string bytes;
        int status;
    } const rows[] = {
        {RawClient::get("/v1/completions"), 405},
        {RawClient::get("/nothing"), 404},
        {RawClient::get("/health", "DELETE"), 405},
        {RawClient::get("/health", "GET", "X: " + std::string(100000, 'x') + "\r\n"),
         431},
        {"GET /health HTTP/1.1\r\n\r\n", 400}, /* no Host header */
        {"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
        {RawClient::request(completions, "{"), 400},
        {"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
         "application/json\r\nContent-Length: 99999999999\r\n\r\n",
         413},
        {"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
         "application/json\r\nContent-Length: -5\r\n\r\n",
         400},
        {"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
         "2\r\n\r\n{}",
         415},
    };
    for (const auto &row : rows)
        EXPECT_EQ(ask(row.bytes).status, row.status) << row.bytes.substr(0, 200);
    const int status = ask("nonsense\r\n\r\n").status;
    EXPECT_TRUE(status == 0 || status == 400) << "libmicrohttpd closes, or says so";
    EXPECT_EQ(ask(RawClient::get("/health")).status, 200);
}

/* Requests whose body could have another length for a proxy than for this server (RFC 9112, 6.3).
 */
TEST_F(Http, BodiesWhoseEndIsNotCertainAreRefused)
{
    begin();
    const std::string head =
                          "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                          "application/json\r\n",
                      chunks = "f\r\n{\"content\":\"a\"}\r\n0\r\n\r\n";
    struct {
        std::string fields;
        int status;
        const char *says;
    } const rows[] = {
        {"Content-Length: 15\r\nTransfer-Encoding: chunked\r\n", 400,
         "both Content-Length and Transfer-Encoding"},
        {"Content-Length: 3\r\nContent-Length: 15\r\n", 400, "Content-Length twice"},
        {"Transfer-Encoding: gzip\r\n", 501,
         "Transfer-Encoding is 'gzip', but only 'chunked'"},
        {"Transfer-Encoding: gzip, chunked\r\n", 501, "'gzip, chunked'"},
        {"Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n", 501,
         "Transfer-Encoding"},
    };
    for (const auto &row : rows) {
        RawClient c(port);
        c.send(head + row.fields + "\r\n" + chunks);
        const Response r = c.read();
        EXPECT_EQ(r.status, row.status) << row.fields;
        EXPECT_TRUE(has(r.head, "Content-Type: application/json")) << r.head;
        EXPECT_TRUE(has(r.body, row.says)) << r.body;
        EXPECT_TRUE(c.is_closed()) << row.fields << "what follows is no request";
    }
    EXPECT_EQ(ask(head + "Transfer-Encoding: Chunked\r\n\r\n" + chunks).status, 200);
    EXPECT_EQ(ask(head + "Content-Length: 15\r\nContent-Length: 15\r\n\r\n" +
                  chunks.substr(3, 15))
                  .status,
              200);
}

TEST_F(Http, AMissingHostIsTold)
{
    begin();
    RawClient c(port);
    c.send("GET /health HTTP/1.1\r\n\r\n");
    const Response r = c.read();
    EXPECT_EQ(r.status, 400);
    EXPECT_TRUE(has(r.head, "Content-Type: application/json")) << r.head;
    EXPECT_TRUE(has(r.body, "the request has no Host header")) << r.body;
    EXPECT_EQ(ask("GET /health HTTP/1.0\r\n\r\n").status, 200);
}

TEST_F(Http, ABodyThatGrowsTooLargeIsRefused)
{
    begin();
    RawClient c(port);
    c.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
           "application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
    const std::string chunk = "8000\r\n" + std::string(0x8000, ' ') + "\r\n";
    for (size_t n = 0; n < s.server.most_body + 0x8000; n += 0x8000)
        ASSERT_TRUE(c.send(chunk));
    c.send("0\r\n\r\n");
    EXPECT_EQ(c.read().status, 413);
}

TEST_F(Http, HeadAndOptions)
{
    s.server.cors_origin = "https://a.example";
    begin();
    RawClient c(port);
    c.send(RawClient::get("/health", "HEAD"));
    const Response head = c.read(false);
    EXPECT_EQ(head.status, 200);
    EXPECT_TRUE(has(head.head, "Content-Length: 15")) << head.head;
    c.send(RawClient::get("/health"));
    EXPECT_EQ(c.read().body, R"({"status":"ok"})") << "the answer to HEAD had no body";
    c.send(RawClient::get("/v1/completions", "OPTIONS", "Origin: https://a.example\r\n"));
    const Response options = c.read(false);
    EXPECT_EQ(options.status, 204);
    EXPECT_TRUE(has(options.head, "Access-Control-Allow-Origin: https://a.example"))
        << options.head;
    EXPECT_TRUE(has(options.head, "Access-Control-Allow-Methods: POST"));
    const Response other =
        ask(RawClient::get("/health", "GET", "Origin: https://b.example\r\n"));
    EXPECT_FALSE(has(other.head, "Access-Control")) << other.head;
    const Response wrong = ask(RawClient::get("/v1/completions"));
    EXPECT_TRUE(has(wrong.head, "Allow: POST")) << wrong.head;
}

TEST_F(Http, TextsThatAreStoppedAreTold)
{
    begin();
    be_slow();
    RawClient whole(port), streamed(port);
    whole.send(RawClient::request(completions, endless + "false}"));
    streamed.send(RawClient::request(completions, endless + "true}"));
    ASSERT_TRUE(streamed.wait_for("data: {"));
    ASSERT_TRUE(becomes("texts_running", "2"));
    xm_flag_set(&s.server.is_draining, true);
    EXPECT_EQ(ask(RawClient::request(completions, small)).status, 503);
    xm_http_cancel(h);
    const Response r = whole.read();
    EXPECT_EQ(r.status, 503);
    EXPECT_TRUE(has(r.body, "the server is stopping")) << r.body;
    EXPECT_TRUE(has(streamed.read().body, "the server is stopping"));
    for (int i = 0; i < 1000 && xm_http_n_open(h) > 0; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(xm_http_n_open(h), 0u);
}

/* Connections are closed while texts run and clients wait. */
TEST_F(Http, AServerStopsWithTextsThatRun)
{
    begin();
    be_slow();
    RawClient a(port), b(port), c(port);
    a.send(RawClient::request(completions, endless + "false}"));
    b.send(RawClient::request(completions, endless + "true}"));
    ASSERT_TRUE(becomes("texts_running", "2"));
    c.send("POST /v1/com");
}

TEST_F(Http, ClientsComeAndGoAtRandom)
{
    begin();
    be_slow(50);
    std::vector<std::thread> clients;
    std::atomic<int> good{0};
    for (unsigned i = 0; i < 16; i++)
        clients.emplace_back([&, i] {
            uint32_t state = digest((int32_t)i);
            for (int n = 0; n < 20; n++) {
                state = digest(n, state);
                const bool leaves = state >> 30 == 0, streams = state >> 29 & 1;
                RawClient c(port);
                const std::string tokens = std::to_string(1 + (state >> 16) % 60);
                c.send(RawClient::request(
                    completions, R"({"prompt":[1,2,3],"ignore_eos":true,"max_tokens":)" +
                                     tokens + R"(,"stream":)" +
                                     (streams ? "true}" : "false}")));
                if (leaves)
                    std::this_thread::sleep_for(std::chrono::microseconds(state >> 20));
                else
                    good += c.read().status == 200;
            }
        });
    for (std::thread &t : clients)
        t.join();
    EXPECT_GT(good, 160);
    EXPECT_TRUE(becomes("texts_running", "0"));
    EXPECT_TRUE(becomes("texts_waiting", "0"));
}

TEST(Listening, APortInUseHasASentence)
{
    Served s;
    xm_http *first = nullptr, *second = nullptr;
    xm_error err = {};
    xm_http_options o = {};
    o.host = "127.0.0.1";
    o.patience = 30.0;
    o.connections = 8;
    ASSERT_EQ(xm_http_start(&s.server, &o, &first, &err), XM_OK) << err.text;
    o.port = xm_http_port(first);
    EXPECT_TRUE(xm_http_is_loopback(first));
    EXPECT_EQ(xm_http_start(&s.server, &o, &second, &err), XM_BUSY);
    EXPECT_EQ(std::string(err.text), "port " + std::to_string(o.port) +
                                         " of '127.0.0.1' is in use by another program: "
                                         "choose another port");
    err = {};
    EXPECT_EQ(xm_http_check(&o, &err), XM_BUSY);
    err = {};
    o.host = "no such.host";
    EXPECT_EQ(xm_http_start(&s.server, &o, &second, &err), XM_NOT_FOUND);
    EXPECT_TRUE(has(err.text, "there is no address 'no such.host' to listen on"))
        << err.text;
    err = {};
    o.host = "127.0.0.1";
    o.port = 0;
    o.cert = o.key = "no certificate";
    EXPECT_EQ(xm_http_start(&s.server, &o, &second, &err), XM_INVALID);
    EXPECT_TRUE(has(err.text, "PEM")) << err.text;
    err = {};
    EXPECT_EQ(xm_http_check(&o, &err), XM_INVALID);
    o.cert = o.key = nullptr;
    EXPECT_EQ(xm_http_check(&o, &err), XM_OK) << "any free port";
    xm_http_stop(first);
}

/* Takes over a socket as systemd passes it: descriptor 3 and two variables. Runs in a child
 * process, where descriptor 3 is free. */
int
take_given(const char *pid, bool listens)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    xm_listener l = {};
    xm_error err = {};
    if (fd < 0 || (listens && listen(fd, 1) != 0) || dup2(fd, 3) != 3)
        return 100;
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_PID", pid ? pid : std::to_string(getpid()).c_str(), 1);
    if (!xm_listener_is_given())
        return 1;
    if (xm_listener_take_given(&l, &err) != XM_OK)
        return err.status == XM_INVALID && l.fd == -1 ? 2 : 101;
    return l.fd == 3 && l.port > 0 && !l.is_loopback ? 0 : 102;
}

TEST(Listening, TakesTheSocketOfAServiceManager)
{
    EXPECT_EXIT(_exit(take_given(nullptr, true)), testing::ExitedWithCode(0), "");
    EXPECT_EXIT(_exit(take_given("1", true)), testing::ExitedWithCode(1), "");
    EXPECT_EXIT(_exit(take_given("x", true)), testing::ExitedWithCode(1), "");
    EXPECT_EXIT(_exit(take_given(nullptr, false)), testing::ExitedWithCode(2), "");
}

} // namespace
