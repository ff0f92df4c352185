/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples of /metrics that the tests of the endpoints do not check.
 */
#include <set>

#include "unit_tests/server/served.h"

namespace
{

/* Returns the sample with this name and labels; "" if there is none. */
std::string
sample(Served &s, const std::string &name)
{
    const std::string text = "\n" + s.ask("/metrics", "", "GET").text;
    const size_t at = text.find("\nxemoe_" + name + " ");
    if (at == std::string::npos)
        return "";
    const size_t value = at + sizeof("\nxemoe_") + name.size();
    return text.substr(value, text.find('\n', value) - value);
}

std::string
answers(Served &s, const std::string &path, int code)
{
    return sample(s, "requests_total{path=\"" + path + "\",code=\"" +
                         std::to_string(code) + "\"}");
}

TEST(Metrics, BucketsHoldWhatIsNotAboveTheirBound)
{
    xm_metrics m;
    xm_metrics *all[] = {&m};
    xm_metrics_now now = {};
    xm_strbuf out = {};
    now.model = "a\"b";
    ASSERT_EQ(xm_metrics_init(&m, nullptr), XM_OK);
    xm_metrics_add_token(&m, true, 0.02);
    xm_metrics_add_token(&m, true, 0.03);
    xm_metrics_add_token(&m, true, 1000.0);
    xm_metrics_print(all, &now, 1, &out);
    for (const char *line :
         {"le=\"0.01\"} 0\n", "le=\"0.02\"} 1\n", "le=\"0.04\"} 2\n", "le=\"40.96\"} 2\n",
          "le=\"+Inf\"} 3\n", "first_token_seconds_sum{model=\"a\\\"b\"} 1000.05\n"})
        EXPECT_TRUE(has(xm_strbuf_text(&out), line)) << line << xm_strbuf_text(&out);
    xm_strbuf_free(&out);
    xm_metrics_free(&m);
}

TEST(Metrics, CountAnswersByEndpointAndStatus)
{
    Served s;
    EXPECT_EQ(answers(s, "/tokenize", 200), "0");
    EXPECT_EQ(answers(s, "/tokenize", 400), "");
    s.ask("/tokenize", R"({"content":"ab"})");
    s.ask("/tokenize?x=1", R"({"content":"ab"})");
    s.ask("/tokenize", R"({"content":5})");
    s.ask("/v1/completions", R"({"prompt":[1],"max_tokens":2,"stream":true})");
    s.ask("/v1/models/small", "", "GET");
    s.ask("/v1/models/other", "", "GET");
    s.ask("/nothing", "", "GET");
    s.ask("/tokenize", "", "GET");
    s.ask("/", "", "GET");
    EXPECT_EQ(answers(s, "/tokenize", 200), "2");
    EXPECT_EQ(answers(s, "/tokenize", 400), "1");
    EXPECT_EQ(answers(s, "/v1/completions", 200), "1");
    EXPECT_EQ(answers(s, "/v1/models/*", 200), "1");
    EXPECT_EQ(answers(s, "/v1/models/*", 404), "1");
    EXPECT_EQ(answers(s, "", 404), "1");
    EXPECT_EQ(answers(s, "", 405), "1");
    EXPECT_EQ(answers(s, "", 200), "1");
}

TEST(Metrics, HaveEachEndpoint)
{
    Served s;
    const std::string text = s.ask("/metrics", "", "GET").text;
    for (size_t i = 0; i < xm_n_routes; i++)
        EXPECT_TRUE(has(text, "xemoe_requests_total{path=\"" +
                                  std::string(xm_routes[i].path) + "\",code=\"200\"} "))
            << xm_routes[i].path;
}

/* Prometheus refuses a page with a repeated sample, or with samples of one name that are not
 * together. */
TEST(Metrics, HaveEachSampleOnceAndTheirNamesTogether)
{
    Served s;
    s.ask("/nothing", "", "GET");
    s.ask("/tokenize", R"({"content":5})");
    std::string line, last;
    std::set<std::string> samples, names;
    std::stringstream text(s.ask("/metrics", "", "GET").text);
    while (std::getline(text, line)) {
        if (line.compare(0, 7, "# HELP ") == 0) {
            last = line.substr(7, line.find(' ', 7) - 7);
            EXPECT_TRUE(names.insert(last).second) << line;
        } else if (line[0] != '#') {
            EXPECT_EQ(line.compare(0, last.size(), last), 0) << line << " below " << last;
            EXPECT_TRUE(samples.insert(line.substr(0, line.rfind(' '))).second) << line;
        }
    }
    EXPECT_GT(samples.size(), xm_n_routes);
}

} // namespace
