/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling parameters from JSON, from texts, and from the recommendations in model files: each
 * row of sampling.def by its names.
 */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "functional_tests/common/folder.h"
#include "plugin/text/generation_config.h"
#include "plugin/text/sampling_json.h"
#include "runtime/util/memory.h"
#include "unit_tests/text/text_test.h"

namespace
{

const Tokenizer &
tokenizer()
{
    static const Tokenizer t =
        Tokenizer::file(std::string(XM_MODELS_DIR) + "/qwen3moe-tiny/tokenizer.json");
    EXPECT_EQ(t.status, XM_OK) << t.err.text;
    return t;
}

/* The parameters after a request's JSON was applied to the defaults. */
struct Request {
    explicit Request(const std::string &json, const xm_tokenizer *t = tokenizer().t)
    {
        yyjson_doc *doc = yyjson_read(json.data(), json.size(), 0);
        EXPECT_NE(doc, nullptr) << json;
        xm_sampling_init(&s);
        s.seed = 99;
        status = xm_sampling_from_json(yyjson_doc_get_root(doc), t, &s, &lists, &err);
        yyjson_doc_free(doc);
    }
    ~Request()
    {
        xm_sampling_lists_free(&lists);
    }
    ids breakers() const
    {
        return ids(s.dry_breakers.ids, s.dry_breakers.ids + s.dry_breakers.n);
    }
    ids bad_words() const
    {
        return ids(s.bad_words.ids, s.bad_words.ids + s.bad_words.n);
    }

    xm_sampling s;
    xm_sampling_lists lists = {};
    xm_error err = {};
    xm_status status;
};

std::vector<std::string>
names_of(const char *list)
{
    std::vector<std::string> names;
    std::istringstream in(list ? list : "");
    for (std::string name; in >> name;)
        names.push_back(name);
    return names;
}

/* Returns a valid value that is not the default. */
double
some_value(const xm_sampling_row &row)
{
    if (row.kind != XM_SAMPLING_REAL)
        return std::min(row.most, 2.0);
    return row.most >= 0.25 ? 0.25 : row.most;
}

TEST(SamplingJson, EveryNumberIsTakenByEachOfItsNames)
{
    int n = 0;
    for (const xm_sampling_row &row : xm_sampling_rows) {
        for (const std::string &name : names_of(row.json)) {
            EXPECT_TRUE(xm_sampling_is_json_name(name.data(), name.size())) << name;
            if (!xm_sampling_is_number(&row))
                continue;
            const double x = some_value(row);
            const Request r("{\"" + name + "\": " + std::to_string(x) + "}", nullptr);
            EXPECT_EQ(r.status, XM_OK) << name << ": " << r.err.text;
            xm_sampling want;
            xm_sampling_init(&want);
            want.seed = 99;
            xm_sampling_set(&want, &row, x);
            EXPECT_EQ(std::memcmp(&r.s, &want, sizeof(want)), 0) << name;
            n++;
        }
    }
    EXPECT_GT(n, 18);
    EXPECT_FALSE(xm_sampling_is_json_name("messages", 8));
    EXPECT_FALSE(xm_sampling_is_json_name("top", 3));
    EXPECT_FALSE(xm_sampling_is_json_name("", 0));
}

TEST(SamplingJson, AnotherTypeOrRangeFailsByTheName)
{
    for (const xm_sampling_row &row : xm_sampling_rows) {
        for (const std::string &name : names_of(row.json)) {
            for (const char *value :
                 {"true", "\"1\"", "{\"a\": \"b\"}", "3.5e40", "-7.5"}) {
                const bool is_seed_like = row.kind == XM_SAMPLING_SEED;
                if (value[0] == '-' && row.least < -10.0)
                    continue;
                const Request r("{\"" + name + "\": " + value + "}");
                EXPECT_EQ(r.status, XM_INVALID) << name << " " << value << is_seed_like;
                EXPECT_EQ(std::string(r.err.text).find("'" + name + "'"), 0u)
                    << name << ": " << r.err.text;
            }
            const Request none("{\"" + name + "\": null, \"messages\": [1], \"x\": {}}");
            EXPECT_EQ(none.status, XM_OK) << none.err.text;
        }
    }
    EXPECT_EQ(std::string(Request("{\"top_p\": 1.5}").err.text),
              "'top_p' is 1.5, expected a number from 0 to 1");
    EXPECT_EQ(std::string(Request("{\"top_k\": 1.5}").err.text),
              "'top_k' is 1.5, expected a whole number from 0");
    EXPECT_EQ(std::string(Request("{\"top_k\": \"1\"}").err.text),
              "'top_k' is '1', expected a whole number from 0");
    EXPECT_EQ(Request("[]").status, XM_INVALID);
    EXPECT_EQ(Request("{\"mirostat\": 1}").status, XM_INVALID);
}

TEST(SamplingJson, WholeNumbersAndSeedsMayBeMinusOne)
{
    for (const char *json : {"{\"top_k\": -1}", "{\"repeat_last_n\": -1}",
                             "{\"seed\": -1}", "{\"dry_allowed_length\": -1}"})
        EXPECT_EQ(Request(json).status, XM_OK) << json;
    EXPECT_EQ(Request("{\"top_k\": -2}").status, XM_INVALID);
    EXPECT_EQ(Request("{\"top_k\": -1}").s.top_k, 0);
    EXPECT_EQ(Request("{\"repeat_last_n\": -1}").s.last_n, 0);
    EXPECT_EQ(Request("{\"seed\": -1}").s.seed, 99u);
    EXPECT_EQ(Request("{\"seed\": 18446744073709551615}").s.seed, UINT64_MAX);
    EXPECT_EQ(Request("{\"seed\": 7}").s.seed, 7u);
    EXPECT_EQ(Request("{\"seed\": 7.5}").status, XM_INVALID);
    EXPECT_EQ(Request("{\"top_k\": 40.0}").s.top_k, 40);
}

TEST(SamplingJson, BiasesAreAnObjectOrPairs)
{
    for (const char *json : {R"({"logit_bias": {"15": -100, "7": 2.5}})",
                             R"({"logit_bias": [[15, false], ["7", 2.5]]})"}) {
        const Request r(json);
        ASSERT_EQ(r.status, XM_OK) << r.err.text;
        ASSERT_EQ(r.s.logit_bias.n, 2u);
        EXPECT_EQ(r.s.logit_bias.list[0].id, 15);
        EXPECT_LE(r.s.logit_bias.list[0].bias, XM_BIAS_BARS);
        EXPECT_EQ(r.s.logit_bias.list[1].id, 7);
        EXPECT_EQ(r.s.logit_bias.list[1].bias, 2.5f);
    }
    for (const char *json :
         {R"({"logit_bias": {"x": 1}})", R"({"logit_bias": {"-1": 1}})",
          R"({"logit_bias": {"9999999999": 1}})", R"({"logit_bias": {"1": "2"}})",
          R"({"logit_bias": [1]})", R"({"logit_bias": [[1]]})",
          R"({"logit_bias": [[1, true]]})", R"({"logit_bias": {"1": 1e40}})",
          R"({"logit_bias": 3})"}) {
        const Request r(json);
        EXPECT_EQ(r.status, XM_INVALID) << json;
        EXPECT_LE(std::string(r.err.text).find("logit_bias"), 1u) << r.err.text;
    }
}

TEST(SamplingJson, BadWordsComeWithASpaceBeforeThemToo)
{
    Tokenizer t =
        Tokenizer::file(std::string(XM_MODELS_DIR) + "/qwen3moe-tiny/tokenizer.json");
    const Request r(R"({"bad_words": ["Rome", "capital of"]})");
    ASSERT_EQ(r.status, XM_OK) << r.err.text;
    ids want;
    for (const char *text : {"Rome", " Rome", "capital of", " capital of"}) {
        const ids word = t.encode(text);
        want.insert(want.end(), word.begin(), word.end());
        want.push_back(-1);
    }
    EXPECT_EQ(r.bad_words(), want);
    EXPECT_EQ(Request(R"({"bad_words": [""]})").status, XM_INVALID);
    EXPECT_EQ(Request(R"({"bad_words": [3]})").status, XM_INVALID);
    EXPECT_EQ(Request(R"({"bad_words": "Rome"})").status, XM_INVALID);
    EXPECT_EQ(Request(R"({"bad_words": []})").s.bad_words.n, 0u);
    const Request none(R"({"bad_words": ["x"]})", nullptr);
    EXPECT_EQ(none.status, XM_INVALID);
    EXPECT_NE(std::string(none.err.text).find("tokenizer"), std::string::npos);
    std::string many = "{\"bad_words\": [\"a\"";
    for (int i = 0; i < XM_MOST_SAMPLING_TEXTS; i++)
        many += ", \"a\"";
    EXPECT_EQ(Request(many + "]}").status, XM_INVALID);
}

/* A breaker stands for each token whose text contains it, and for no other. */
TEST(SamplingJson, BreakersAreTheTokensThatHaveTheText)
{
    Tokenizer t =
        Tokenizer::file(std::string(XM_MODELS_DIR) + "/qwen3moe-tiny/tokenizer.json");
    const auto with = [&](const std::vector<std::string> &texts) {
        ids list;
        for (int32_t id = 0; id < (int32_t)xm_tokenizer_vocab_size(t.t); id++) {
            const std::string text = t.decode({id});
            for (const std::string &part : texts) {
                if (text.find(part) != std::string::npos) {
                    list.push_back(id);
                    break;
                }
            }
        }
        return list;
    };
    const Request usual(R"({"dry_multiplier": 0.8})");
    ASSERT_EQ(usual.status, XM_OK) << usual.err.text;
    ids got = usual.breakers();
    EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
    got.erase(std::unique(got.begin(), got.end()), got.end());
    EXPECT_EQ(got, with({"\n", ":", "\"", "*"}));
    EXPECT_GT(got.size(), 3u);
    const Request comma(R"({"dry_multiplier": 0.8, "dry_sequence_breakers": [","]})");
    EXPECT_EQ(comma.breakers(), with({","}));
    const Request rome(R"({"dry_multiplier": 0.8, "dry_sequence_breakers": ["Rome"]})");
    EXPECT_EQ(rome.breakers(), with({"Rome"}));
    EXPECT_GT(rome.s.dry_breakers.n, 0u);
    const Request none(R"({"dry_multiplier": 0.8, "dry_sequence_breakers": []})");
    EXPECT_EQ(none.s.dry_breakers.n, 0u);
    const Request word(R"({"dry_multiplier": 0.8, "dry_sequence_breakers": ["xqzy;"]})");
    EXPECT_EQ(word.breakers(), ids{t.encode("axqzy;").back()})
        << "the last token of a text that is none";
    EXPECT_EQ(Request("{\"dry_multiplier\": 0.8}", nullptr).s.dry_breakers.n, 0u);
    EXPECT_EQ(Request("{}").s.dry_breakers.n, 0u) << "without dry there are none";
}

/* A request that sets nothing keeps the lists of the server's options. */
TEST(SamplingJson, ListsThatAreThereStay)
{
    const int32_t ids_of[] = {3, 5};
    const xm_token_bias bias = {7, 1.5f};
    xm_sampling s;
    xm_sampling_lists lists = {};
    xm_error err = {};
    xm_sampling_init(&s);
    s.dry_multiplier = 0.8f;
    s.dry_breakers = {ids_of, 2};
    s.bad_words = {ids_of, 2};
    s.logit_bias = {&bias, 1};
    yyjson_doc *doc = yyjson_read("{\"temperature\":1}", 17, 0);
    ASSERT_EQ(
        xm_sampling_from_json(yyjson_doc_get_root(doc), tokenizer().t, &s, &lists, &err),
        XM_OK)
        << err.text;
    EXPECT_EQ(s.dry_breakers.ids, ids_of);
    EXPECT_EQ(s.bad_words.ids, ids_of);
    EXPECT_EQ(s.logit_bias.n, 1u);
    yyjson_doc_free(doc);
    doc = yyjson_read("{\"bad_words\":[]}", 16, 0);
    ASSERT_EQ(
        xm_sampling_from_json(yyjson_doc_get_root(doc), tokenizer().t, &s, &lists, &err),
        XM_OK)
        << err.text;
    EXPECT_EQ(s.bad_words.n, 0u) << "an empty list is one, too";
    EXPECT_EQ(s.dry_breakers.ids, ids_of);
    yyjson_doc_free(doc);
    xm_sampling_lists_free(&lists);
}

TEST(SamplingJson, EveryAllocationMayFail)
{
    const std::string json = R"({"dry_multiplier": 1, "logit_bias": {"1": 2, "3": 4},
                                 "bad_words": ["Rome", "Paris"]})";
    (void)tokenizer();
    yyjson_doc *doc = yyjson_read(json.data(), json.size(), 0);
    for (uint64_t n = 1; n < 100000; n++) {
        xm_sampling s;
        xm_sampling_lists lists = {};
        xm_error err = {};
        xm_sampling_init(&s);
        xm_fail_allocation(n);
        const xm_status status = xm_sampling_from_json(yyjson_doc_get_root(doc),
                                                       tokenizer().t, &s, &lists, &err);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        xm_sampling_lists_free(&lists);
        ASSERT_EQ(status, seen ? XM_NO_MEMORY : XM_OK) << n << err.text;
        if (!seen)
            break;
    }
    yyjson_doc_free(doc);
}

/* ---- biases of the command line -------------------------------------------------------------- */

TEST(SamplingLists, BiasesAreIdsWithSignsAndNumbers)
{
    xm_sampling_lists l = {};
    xm_error err = {};
    ASSERT_EQ(xm_sampling_read_biases(&l, "15043+1,29871-0.5,2-inf,0+1e2", &err), XM_OK)
        << err.text;
    ASSERT_EQ(l.n_biases, 4u);
    EXPECT_EQ(l.biases[0].id, 15043);
    EXPECT_EQ(l.biases[0].bias, 1.0f);
    EXPECT_EQ(l.biases[1].bias, -0.5f);
    EXPECT_EQ(l.biases[2].bias, -INFINITY);
    EXPECT_EQ(l.biases[3].bias, 100.0f);
    for (const char *text :
         {"", "1", "1+", "+1", "1+2,", "1+2;3+4", "1*2", "x+1", "1+x", "99999999999+1",
          "4294967296+1", "1+nan", "1+inf", "1+1e39", ",1+2", "1 +2", "-1+2"}) {
        err = {};
        EXPECT_EQ(xm_sampling_read_biases(&l, text, &err), XM_INVALID) << text;
        EXPECT_NE(err.text[0], '\0');
    }
    xm_sampling_lists_free(&l);
    std::string many = "1+1";
    for (int i = 0; i < XM_MOST_BIASES; i++)
        many += ",1+1";
    err = {};
    EXPECT_EQ(xm_sampling_read_biases(&l, many.c_str(), &err), XM_INVALID);
    xm_sampling_lists_free(&l);
}

/* ---- recommendations in model files
 * ------------------------------------------------------------- */

TEST(SamplingFiles, EveryKeyOfGenerationConfigIsRead)
{
    int n = 0;
    for (const xm_sampling_row &row : xm_sampling_rows) {
        if (!row.file || !xm_sampling_is_number(&row))
            continue;
        const Folder folder{"recommends"};
        const auto read = [&](const std::string &value) {
            folder.write("generation_config.json", "{\"do_sample\": true, \"" +
                                                       std::string(row.file) +
                                                       "\": " + value + "}");
            xm_generation_config c;
            xm_error err = {};
            EXPECT_EQ(xm_generation_config_load(folder.path.c_str(), &c, &err), XM_OK)
                << err.text;
            const double x = xm_sampling_get(&c.sampling, &row);
            xm_generation_config_free(&c);
            return x;
        };
        const double otherwise =
            row.offset == offsetof(xm_sampling, temperature) ? 1.0 : row.unsaid;
        EXPECT_EQ(read(std::to_string(some_value(row))), some_value(row)) << row.file;
        EXPECT_EQ(read("\"1\""), otherwise) << row.file;
        EXPECT_EQ(read("-1e30"), otherwise) << row.file;
        EXPECT_EQ(read("null"), otherwise) << row.file;
        n++;
    }
    EXPECT_GT(n, 8);
}

} // namespace
