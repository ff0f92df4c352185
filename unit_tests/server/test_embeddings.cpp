/* SPDX-License-Identifier: Apache-2.0
 *
 * /v1/embeddings over a scripted model: forms of inputs and answers, refusals, the queue, and
 * clients that disconnect.
 */
#include <yyjson.h>

#include <cmath>
#include <cstring>
#include <future>

#include "unit_tests/server/served.h"

namespace
{

const char *const embeddings = "/v1/embeddings";
using Vector = std::vector<float>;
using Vectors = std::vector<Vector>;

/* Blocks those who pass until it is opened. */
class Gate
{
  public:
    void pass()
    {
        std::unique_lock<std::mutex> lock(mutex);
        n++;
        changed.notify_all();
        changed.wait(lock, [this] { return is_open; });
    }
    void wait_for(int passing)
    {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [this, passing] { return n >= passing; });
    }
    void open()
    {
        std::lock_guard<std::mutex> lock(mutex);
        is_open = true;
        changed.notify_all();
    }

  private:
    std::mutex mutex;
    std::condition_variable changed;
    int n = 0;
    bool is_open = false;
};

/* A server with `model` for texts and `hidden` for the hidden states of embeddings. */
class ServedEmbeddings : public Served
{
  public:
    explicit ServedEmbeddings(size_t queue = 64, uint64_t context = 512,
                              bool has_texts = true, bool at_start = false)
        : Served(4, queue, context)
    {
        result.type.shape.rank = 3;
        result.type.shape.dim[2] = xm_dim_const(VOCABULARY);
        hidden.base.ports.outputs = &result;
        hidden.base.ports.n_outputs = 1;
        xm_served_destroy(served);
        served = nullptr;
        xm_served_options options = {};
        options.name = "small";
        options.slots = 4;
        options.most_waiting = queue;
        options.context = context;
        options.sampling.top_p = 1.0f;
        options.embeddings = {open, this, at_start};
        options.is_for_embeddings = !has_texts;
        options.vocabulary = has_texts ? 0 : VOCABULARY;
        create_status = xm_served_create(has_texts ? &model.base : &hidden.base,
                                         package.p, &options, &served, &err);
        if (served)
            served->vocabulary = VOCABULARY;
    }
    ~ServedEmbeddings()
    {
        stop();
    }
    void stop()
    {
        xm_served_destroy(served);
        served = nullptr;
    }
    /* Returns the vectors of a successful answer. */
    Vectors embed(const std::string &body)
    {
        const Answer a = ask(embeddings, body);
        EXPECT_EQ(a.status, 200) << body << ": " << a.text;
        return vectors_of(a.text);
    }
    static Vectors vectors_of(const std::string &json)
    {
        Vectors all;
        yyjson_doc *doc = yyjson_read(json.data(), json.size(), 0);
        yyjson_val *data = yyjson_obj_get(yyjson_doc_get_root(doc), "data"), *o, *x;
        size_t i, n, k, m;
        yyjson_arr_foreach(data, i, n, o)
        {
            EXPECT_EQ(yyjson_get_uint(yyjson_obj_get(o, "index")), i);
            EXPECT_STREQ(yyjson_get_str(yyjson_obj_get(o, "object")), "embedding");
            yyjson_val *v = yyjson_obj_get(o, "embedding");
            all.emplace_back();
            if (yyjson_is_str(v))
                all.back() = decoded(yyjson_get_str(v));
            yyjson_arr_foreach(v, k, m, x) all.back().push_back((float)yyjson_get_num(x));
        }
        yyjson_doc_free(doc);
        return all;
    }

    SequenceModel hidden;
    int n_opened = 0;
    std::vector<xm_status> fails; /* the first results of opening the embedder */
    xm_status create_status = XM_OK;

  private:
    static Vector decoded(const std::string &base64)
    {
        const std::string digits =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        std::string bytes;
        uint32_t bits = 0;
        for (size_t i = 0; i < base64.size(); i++) {
            const size_t d = digits.find(base64[i]);
            bits = bits << 6 | (uint32_t)(d == std::string::npos ? 0 : d);
            if (i % 4 == 3)
                for (int k = 16; k >= 0; k -= 8)
                    bytes += (char)(bits >> k & 0xff);
        }
        for (size_t i = base64.size(); i > 0 && base64[i - 1] == '='; i--)
            bytes.pop_back();
        EXPECT_EQ(bytes.size() % 4, 0u);
        Vector v(bytes.size() / 4);
        for (size_t i = 0; i < v.size(); i++) {
            uint32_t word = 0;
            for (size_t k = 4; k-- > 0;)
                word = word << 8 | (uint8_t)bytes[4 * i + k];
            memcpy(&v[i], &word, sizeof(word));
        }
        return v;
    }
    static xm_status open(void *ctx, xm_embedder **out, xm_error *err)
    {
        ServedEmbeddings *self = static_cast<ServedEmbeddings *>(ctx);
        self->n_opened++;
        if (!self->fails.empty()) {
            const xm_status s = self->fails.front();
            self->fails.erase(self->fails.begin());
            return xm_fail(err, s, "it cannot be made");
        }
        return xm_embedder_create(&self->hidden.base, XM_POOLING_LAST, out, err);
    }
    xm_port result = {};
};

Vector
wanted(const Ids &ids, size_t dimensions = VOCABULARY)
{
    Vector v = rambling(ids);
    double squares = 0;
    v.resize(dimensions);
    for (float x : v)
        squares += (double)x * x;
    for (float &x : v)
        x = (float)(x / std::sqrt(squares));
    return v;
}

void
expect_near(const Vectors &got, const Vectors &all)
{
    ASSERT_EQ(got.size(), all.size());
    for (size_t i = 0; i < got.size(); i++) {
        ASSERT_EQ(got[i].size(), all[i].size());
        for (size_t k = 0; k < got[i].size(); k++)
            EXPECT_NEAR(got[i][k], all[i][k], 1e-6) << i << "," << k;
    }
}

TEST(Embeddings, InEachFormOfInputs)
{
    ServedEmbeddings s;
    const Vector abc = wanted({0, 1, 2}), b = wanted({1});
    expect_near(s.embed(R"({"input":"abc"})"), {abc});
    expect_near(s.embed(R"({"input":["abc","b"]})"), {abc, b});
    expect_near(s.embed(R"({"input":[0,1,2]})"), {abc});
    expect_near(s.embed(R"({"input":[[1],[0,1,2]]})"), {b, abc});
    expect_near(s.embed(R"({"input":["b",[0,1,2]],"user":"me","model":"small"})"),
                {b, abc});
    EXPECT_EQ(s.n_opened, 1);
}

TEST(Embeddings, TellModelAndUsage)
{
    ServedEmbeddings s;
    const std::string text = s.ask(embeddings, R"({"input":["abc","b"]})").text;
    EXPECT_TRUE(has(text, R"("object":"list")")) << text;
    EXPECT_TRUE(has(text, R"("model":"small")")) << text;
    EXPECT_TRUE(has(text, R"("usage":{"prompt_tokens":4,"total_tokens":4})")) << text;
}

TEST(Embeddings, InBase64)
{
    ServedEmbeddings s;
    for (const char *dimensions : {"1", "2", "3", "12"}) {
        const std::string rest =
            std::string(R"("input":["ab","x"],"dimensions":)") + dimensions + "}";
        const Vectors floats = s.embed("{\"encoding_format\":\"float\"," + rest);
        EXPECT_EQ(s.embed("{\"encoding_format\":\"base64\"," + rest), floats);
        EXPECT_EQ(floats[0].size(), std::stoul(dimensions));
    }
}

TEST(Embeddings, CutToDimensionsHaveLengthOne)
{
    ServedEmbeddings s;
    expect_near(s.embed(R"({"input":"abc","dimensions":5})"), {wanted({0, 1, 2}, 5)});
    const Answer a = s.ask(embeddings, R"({"input":"abc","dimensions":13})");
    EXPECT_EQ(a.status, 400);
    EXPECT_TRUE(has(a.text, R"("param":"dimensions")")) << a.text;
    EXPECT_TRUE(has(a.text, "'dimensions' is 13, but the model's embeddings have 12"));
}

TEST(Embeddings, RefusalsNameTheField)
{
    ServedEmbeddings s(64, 8);
    const struct {
        std::string body, part;
    } rows[] = {
        {"{}", R"("param":"input")"},
        {R"({"input":[]})", R"("param":"input")"},
        {R"({"input":null})", "'input' is null, expected a string"},
        {R"({"input":""})", "the input is empty"},
        {R"({"input":["a",""]})", R"("param":"input[1]")"},
        {R"({"input":["a",5]})", "'input[1]' is 5"},
        {R"({"input":[1,"a"]})", "'input[1]' is 'a', expected a token id"},
        {R"({"input":[1,12]})", "token id 12 is not in the vocabulary of 12"},
        {R"({"input":[[1],[-1]]})", R"("param":"input[1][0]")"},
        {R"({"input":["a",[1,1,1,1,1,1,1,1,1]]})", "context_length_exceeded"},
        {R"({"input":"a","encoding_format":"hex"})", R"("param":"encoding_format")"},
        {R"({"input":"a","encoding_format":5})", R"("param":"encoding_format")"},
        {R"({"input":"a","dimensions":0})", R"("param":"dimensions")"},
        {R"({"input":"a","dimensions":1.5})", R"("param":"dimensions")"},
        {R"({"input":"a","user":5})", R"("param":"user")"},
    };
    for (const auto &row : rows) {
        const Answer a = s.ask(embeddings, row.body);
        EXPECT_EQ(a.status, 400) << row.body << ": " << a.text;
        EXPECT_TRUE(has(a.text, row.part)) << row.body << ": " << a.text;
    }
    EXPECT_EQ(s.hidden.runs.size(), 0u);
    EXPECT_EQ(s.ask(embeddings, R"({"input":"a","model":"no"})").status, 404);
}

TEST(Embeddings, AreBounded)
{
    ServedEmbeddings s(64, 0);
    std::string many = "[\"a\"", longest = "[[1";
    for (int i = 0; i < 2048; i++)
        many += ",\"a\"";
    Answer a = s.ask(embeddings, "{\"input\":" + many + "]}");
    EXPECT_EQ(a.status, 400);
    EXPECT_TRUE(has(a.text, "'input' has 2049 inputs, expected 1 to 2048")) << a.text;
    for (int i = 0; i < 300000; i++)
        longest += ",1";
    a = s.ask(embeddings, "{\"input\":" + longest + "]]}");
    EXPECT_EQ(a.status, 400);
    EXPECT_TRUE(has(a.text, "more than 300000 tokens")) << a.text;
    EXPECT_EQ(s.n_opened, 0);
}

TEST(Embeddings, AModelWithoutRefusesThem)
{
    Served s;
    const Answer a = s.ask(embeddings, R"({"input":"a"})");
    EXPECT_EQ(a.status, 400);
    EXPECT_TRUE(has(a.text, "cannot compute embeddings")) << a.text;
    EXPECT_TRUE(has(a.text, R"("param":"model")")) << a.text;
}

TEST(Embeddings, TheProgramIsTriedAgainOnlyForWantOfMemory)
{
    ServedEmbeddings s;
    s.fails = {XM_NO_MEMORY, XM_UNSUPPORTED};
    EXPECT_EQ(s.ask(embeddings, R"({"input":"a"})").status, 503);
    for (int i = 0; i < 3; i++) {
        const Answer a = s.ask(embeddings, R"({"input":"a"})");
        EXPECT_EQ(a.status, 400);
        EXPECT_TRUE(has(a.text, "it cannot be made")) << a.text;
    }
    EXPECT_EQ(s.n_opened, 2);
}

TEST(Embeddings, TheProgramIsMadeAtTheStartWhereThatIsWanted)
{
    ServedEmbeddings s(64, 512, true, true);
    EXPECT_EQ(s.n_opened, 1);
    s.embed(R"({"input":"a"})");
    EXPECT_EQ(s.n_opened, 1);
}

TEST(Embeddings, AFailureOfTheDeviceIsTold)
{
    ServedEmbeddings s;
    s.embed(R"({"input":"a"})");
    s.hidden.run_fails_in = 0;
    const Answer a = s.ask(embeddings, R"({"input":"a"})");
    EXPECT_EQ(a.status, 500);
    EXPECT_TRUE(has(a.text, "the device is gone")) << a.text;
    expect_near(s.embed(R"({"input":"a"})"), {wanted({0})});
}

TEST(Embeddings, TextsDoNotWaitForThem)
{
    ServedEmbeddings s;
    Gate gate;
    s.hidden.on_run = [&] { gate.pass(); };
    auto slow = std::async(std::launch::async,
                           [&] { return s.ask(embeddings, R"({"input":"a"})").status; });
    gate.wait_for(1);
    EXPECT_EQ(s.ask("/v1/completions", R"({"prompt":"ab","max_tokens":3})").status, 200);
    gate.open();
    EXPECT_EQ(slow.get(), 200);
}

TEST(Embeddings, MoreThanTheQueueTakesAreRefused)
{
    ServedEmbeddings s(1);
    Gate gate;
    s.hidden.on_run = [&] { gate.pass(); };
    const auto ask = [&] { return s.ask(embeddings, R"({"input":"a"})").status; };
    auto runs = std::async(std::launch::async, ask);
    gate.wait_for(1);
    auto second = std::async(std::launch::async, ask);
    auto third = std::async(std::launch::async, ask);
    /* One of the two waits, the other is refused. */
    std::future<int> *refused = nullptr;
    while (!refused)
        for (std::future<int> *f : {&second, &third})
            if (f->wait_for(std::chrono::milliseconds(1)) == std::future_status::ready)
                refused = f;
    EXPECT_EQ(refused->get(), 429);
    gate.open();
    EXPECT_EQ(runs.get(), 200);
    EXPECT_EQ((refused == &second ? third : second).get(), 200);
}

TEST(Embeddings, AreInTheMetrics)
{
    ServedEmbeddings s;
    Gate gate;
    s.hidden.on_run = [&] { gate.pass(); };
    const auto metrics = [&] { return s.ask("/metrics", "", "GET").text; };
    const auto ask = [&] {
        return s.ask(embeddings, R"({"input":[[1],[2,3,1]]})").status;
    };
    auto runs = std::async(std::launch::async, ask);
    gate.wait_for(1);
    auto waits = std::async(std::launch::async, ask);
    const auto given_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!has(metrics(), "xemoe_embeddings_waiting{model=\"small\"} 1\n") &&
           std::chrono::steady_clock::now() < given_up)
        std::this_thread::yield();
    gate.open();
    EXPECT_EQ(runs.get(), 200);
    EXPECT_EQ(waits.get(), 200);
    s.ask(embeddings, R"({"input":"a","dimensions":100000})"); /* is refused */
    for (const char *sample : {"embeddings_total{model=\"small\"} 4",
                               "embedded_tokens_total{model=\"small\"} 8",
                               "embeddings_waiting{model=\"small\"} 0",
                               "requests_total{path=\"/v1/embeddings\",code=\"200\"} 2",
                               "requests_total{path=\"/v1/embeddings\",code=\"400\"} 1"})
        EXPECT_TRUE(has(metrics(), "\nxemoe_" + std::string(sample) + "\n")) << sample;
}

TEST(Embeddings, StoppingEndsThoseThatRunAndWait)
{
    ServedEmbeddings s;
    Gate gate;
    s.hidden.on_run = [&] { gate.pass(); };
    const auto ask = [&] { return s.ask(embeddings, R"({"input":"a"})").status; };
    auto runs = std::async(std::launch::async, ask);
    gate.wait_for(1);
    auto waits = std::async(std::launch::async, ask);
    auto stops = std::async(std::launch::async, [&] { xm_served_stop(s.served); });
    while (!s.hidden.cancelled)
        std::this_thread::yield();
    gate.open();
    stops.get();
    EXPECT_EQ(runs.get(), 503);
    EXPECT_EQ(waits.get(), 503);
    EXPECT_EQ(s.hidden.runs.size(), 0u);
    EXPECT_EQ(ask(), 503);
}

/* Each of the three inputs fills a run. */
TEST(Embeddings, OfAClientThatLeavesEndBetweenRuns)
{
    ServedEmbeddings s;
    xm_exchange *x = nullptr;
    std::string ids = "[1";
    int runs = 0;
    for (int i = 1; i < 400; i++)
        ids += ",1";
    ASSERT_EQ(xm_exchange_create(&s.server, &x, nullptr), XM_OK);
    x->request.method = "POST";
    x->request.path = embeddings;
    x->request.content_type = "application/json";
    const std::string body = "{\"input\":[" + ids + "]," + ids + "]," + ids + "]]}";
    s.hidden.on_run = [&] {
        if (++runs == 2)
            xm_exchange_leave(x);
    };
    ASSERT_TRUE(xm_server_admit(x, body.size()));
    xm_strbuf_add_n(&x->request.body, body.data(), body.size());
    xm_server_handle(x);
    for (bool over = false; !over;) {
        xm_exchange_lock(x);
        over = x->is_over;
        xm_exchange_unlock(x);
        std::this_thread::yield();
    }
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(s.hidden.runs.size(), 1u);
    xm_exchange_unref(x);
    s.hidden.on_run = nullptr;
    expect_near(s.embed(R"({"input":"a"})"), {wanted({0})});
}

TEST(Embeddings, OfAModelThatGivesNoTexts)
{
    ServedEmbeddings s(64, 512, false);
    ASSERT_EQ(s.create_status, XM_OK) << s.err.text;
    expect_near(s.embed(R"({"input":"ab"})"), {wanted({0, 1})});
    const Answer a = s.ask("/v1/completions", R"({"prompt":"a"})");
    EXPECT_EQ(a.status, 400);
    EXPECT_TRUE(has(a.text, "computes embeddings only, no texts")) << a.text;
    for (const char *path : {"/health", "/props", "/metrics", "/v1/models"})
        EXPECT_EQ(s.ask(path, "", "GET").status, 200) << path;
    EXPECT_EQ(s.ask("/tokenize", R"({"content":"ab"})").text, R"({"tokens":[0,1]})");
}

} // namespace
