/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of log-probabilities, and the statistics that compare two models by them. Expected values
 * come from another program (make_kld_base.py).
 */
#include "plugin/logits/kld.h"
#include "plugin/text/log_sum_exp.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace
{

enum { CONTEXT = 32, VOCABULARY = 7, CHUNKS = 2, SCORED = 15, HEADER = 20 };

std::string
content(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file.good()) << path;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

const std::string golden = content(XM_SOURCE_DIR "/unit_tests/logits/kld_base.bin");

using Row = std::vector<float>;

/* Rows of two models and the expected statistics, read from kld_base.txt. */
struct Golden {
    std::vector<Row> base, other;
    std::map<std::string, xm_estimate> expected;

    Golden()
    {
        std::ifstream file(XM_SOURCE_DIR "/unit_tests/logits/kld_base.txt");
        for (std::string line; std::getline(file, line);) {
            std::istringstream words(line);
            std::string kind, word;
            words >> kind;
            if (kind == "expect") {
                xm_estimate e;
                words >> word >> e.value >> e.error;
                expected[word] = e;
                continue;
            }
            Row row;
            while (words >> word)
                row.push_back(strtof(word.c_str(), nullptr));
            (kind == "base" ? base : other).push_back(row);
        }
    }
};

struct Read {
    xm_status status;
    std::string sentence;
    xm_kld_base base;
};

Read
read(const std::string &bytes)
{
    Read r = {};
    xm_error err = {};
    r.status = xm_kld_base_read(bytes.data(), bytes.size(), &r.base, &err);
    r.sentence = err.text;
    return r;
}

/* Returns the golden file with the 32-bit word at an offset replaced. */
std::string
with(size_t offset, uint32_t word)
{
    std::string bytes = golden;
    memcpy(&bytes[offset], &word, sizeof(word));
    return bytes;
}

/* ---- the file ------------------------------------------------------------------------ */

TEST(KldBase, ReadsWhatAnotherProgramWrote)
{
    const Golden g;
    const Read r = read(golden);
    ASSERT_EQ(r.status, XM_OK) << r.sentence;
    EXPECT_EQ(r.base.context, (uint32_t)CONTEXT);
    EXPECT_EQ(r.base.vocabulary, (uint32_t)VOCABULARY);
    EXPECT_EQ(r.base.chunks, (uint32_t)CHUNKS);
    EXPECT_EQ(xm_kld_scored(CONTEXT), (uint32_t)SCORED);
    for (uint32_t i = 0; i < CHUNKS * CONTEXT; i++)
        EXPECT_EQ(xm_kld_base_token(&r.base, i / CONTEXT, i % CONTEXT),
                  (int32_t)((5 * i + 3) % VOCABULARY));
    for (uint32_t k = 0; k < CHUNKS * SCORED; k++) {
        xm_kld_row row;
        xm_error err = {};
        ASSERT_EQ(xm_kld_base_row(&r.base, k / SCORED, k % SCORED, &row, &err), XM_OK)
            << err.text;
        const double sum = xm_log_sum_exp(g.base[k].data(), VOCABULARY);
        const double top = g.base[k][xm_likeliest(g.base[k].data(), VOCABULARY)];
        for (uint64_t i = 0; i < VOCABULARY; i++) {
            const double exact = std::max((double)g.base[k][i], top - 16.0) - sum;
            EXPECT_NEAR(xm_kld_row_log_p(&row, i), exact, 16.0 / 65535) << k << " " << i;
        }
    }
}

TEST(KldBase, WritesTheSameBytes)
{
    const Golden g;
    const std::string path = testing::TempDir() + "xm_kld_" + std::to_string(getpid());
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < CHUNKS * CONTEXT; i++)
        tokens.push_back((5 * i + 3) % VOCABULARY);
    xm_kld_base sizes = {};
    sizes.context = CONTEXT;
    sizes.vocabulary = VOCABULARY;
    sizes.chunks = CHUNKS;
    xm_kld_writer w = {};
    xm_error err = {};
    ASSERT_EQ(xm_kld_writer_begin(&w, path.c_str(), &sizes, tokens.data(), &err), XM_OK)
        << err.text;
    for (const Row &row : g.base)
        ASSERT_EQ(xm_kld_writer_add(&w, row.data(), &err), XM_OK) << err.text;
    EXPECT_NE(access(path.c_str(), F_OK), 0) << "it appears as a whole";
    ASSERT_EQ(xm_kld_writer_end(&w, &err), XM_OK) << err.text;
    xm_kld_writer_free(&w);
    EXPECT_TRUE(content(path) == golden);
    unlink(path.c_str());
}

TEST(KldBase, LeavesNothingThatIsNotComplete)
{
    const std::string path =
        testing::TempDir() + "xm_kld_half_" + std::to_string(getpid());
    const int32_t tokens[4] = {};
    xm_kld_base sizes = {};
    sizes.context = 4;
    sizes.vocabulary = 2;
    sizes.chunks = 1;
    xm_kld_writer w = {};
    xm_error err = {};
    ASSERT_EQ(xm_kld_writer_begin(&w, path.c_str(), &sizes, tokens, &err), XM_OK);
    const std::string temporary = xm_new_file_name(&w.at);
    EXPECT_EQ(access(temporary.c_str(), F_OK), 0);
    xm_kld_writer_free(&w);
    EXPECT_NE(access(temporary.c_str(), F_OK), 0);
    EXPECT_NE(access(path.c_str(), F_OK), 0);
    err = {};
    EXPECT_EQ(xm_kld_writer_begin(&w, "/dev/null", &sizes, tokens, &err), XM_OK);
    EXPECT_EQ(w.at.beside, nullptr) << "a device is not replaced";
    EXPECT_EQ(xm_kld_writer_end(&w, &err), XM_OK) << err.text;
    xm_kld_writer_free(&w);
    EXPECT_EQ(xm_kld_writer_begin(&w, "/nowhere/base", &sizes, tokens, &err), XM_IO);
    EXPECT_NE(std::string(err.text).find("'/nowhere/base' cannot be written"),
              std::string::npos);
    xm_kld_writer_free(&w);
}

TEST(KldBase, RefusesWhatIsDamagedWithASentence)
{
    const struct {
        std::string bytes;
        const char *says;
    } cases[] = {
        {"", "not a file of log-probabilities"},
        {"_logits_", "not a file of log-probabilities"},
        {"x" + golden.substr(1), "not a file of log-probabilities"},
        {with(8, 3), "chunks of 3 tokens"},
        {with(8, 0xffffffff), "chunks of 4294967295 tokens"},
        {with(12, 0), "a vocabulary of 0 tokens"},
        {with(12, 0xffffffff), "a vocabulary of 4294967295 tokens"},
        {with(16, 0), "with 0 chunks"},
        {with(16, 3), "it is truncated"},
        {with(16, 1), "it is too long"},
        {golden + "x", "it is too long"},
        {with(HEADER + 4, VOCABULARY), "token 1 of chunk 1 is 7"},
        {with(HEADER + 4 * CONTEXT, 0xffffffff), "token 0 of chunk 2 is -1"},
    };
    for (const auto &c : cases) {
        const Read r = read(c.bytes);
        EXPECT_EQ(r.status, XM_INVALID) << c.says;
        EXPECT_NE(r.sentence.find(c.says), std::string::npos) << r.sentence;
    }
    std::string most = golden;
    const uint32_t large[3] = {1 << 24, 1 << 24, 1 << 24};
    memcpy(&most[8], large, sizeof(large));
    EXPECT_EQ(read(most).status, XM_INVALID) << "more bytes than numbers count";
}

TEST(KldBase, SurvivesEveryTruncation)
{
    for (size_t n = 0; n < golden.size(); n++)
        EXPECT_EQ(read(std::string(golden, 0, n)).status, XM_INVALID) << n;
}

TEST(KldBase, RefusesRowsThatAreNoDistributions)
{
    const size_t row = HEADER + 4 * CHUNKS * CONTEXT;
    const uint32_t nan = 0x7fc00000, large = 0x7f000000, negative = 0xbf800000,
                   three = 0x40400000;
    const std::string damaged[] = {with(row, nan), with(row, large), with(row, negative),
                                   with(row + 4, nan), with(row + 4, three)};
    for (const std::string &bytes : damaged) {
        const Read r = read(bytes);
        ASSERT_EQ(r.status, XM_OK) << r.sentence;
        xm_kld_row out;
        xm_error err = {};
        EXPECT_EQ(xm_kld_base_row(&r.base, 0, 0, &out, &err), XM_INVALID);
        EXPECT_NE(std::string(err.text).find("row 0 of chunk 1 starts at"),
                  std::string::npos)
            << err.text;
        err = {};
        EXPECT_EQ(xm_kld_base_row(&r.base, 1, 14, &out, &err), XM_OK) << err.text;
    }
}

/* ---- statistics ---------------------------------------------------------------------- */

xm_kld
compared()
{
    const Golden g;
    const Read r = read(golden);
    xm_kld k = {};
    xm_error err = {};
    for (uint32_t i = 0; i < CHUNKS * SCORED; i++) {
        xm_kld_row row;
        const uint32_t chunk = i / SCORED, at = i % SCORED;
        EXPECT_EQ(xm_kld_base_row(&r.base, chunk, at, &row, &err), XM_OK);
        EXPECT_EQ(xm_kld_add(&k, g.other[i].data(), VOCABULARY, &row,
                             xm_kld_base_token(&r.base, chunk, CONTEXT / 2 + at + 1),
                             &err),
                  XM_OK);
    }
    return k;
}

TEST(Kld, SaysWhatAnotherProgramComputes)
{
    const Golden g;
    xm_kld k = compared();
    xm_kld_summary s;
    xm_kld_sum_up(&k, &s);
    const std::map<std::string, xm_estimate> found = {
        {"ppl", s.ppl},
        {"ppl_base", s.ppl_base},
        {"ln_ratio", s.ln_ratio},
        {"ratio", s.ratio},
        {"difference", s.difference},
        {"divergence", s.divergence},
        {"dp", s.dp},
        {"dp_rms", s.dp_rms},
        {"same_top", s.same_top},
        {"correlation", {s.correlation, 0.0}},
    };
    for (const auto &[name, e] : found) {
        const xm_estimate expected = g.expected.at(name);
        EXPECT_NEAR(e.value, expected.value, 1e-6) << name;
        EXPECT_NEAR(e.error, expected.error, 1e-6) << name;
    }
    struct xm_strbuf text = {};
    /* Printing sorts the values, which the quantiles below need. */
    xm_kld_print(&k, &text);
    EXPECT_NEAR(xm_kld_quantile(k.divergence, k.n, 0.9), g.expected.at("kld_p90").value,
                1e-6);
    EXPECT_NEAR(xm_kld_quantile(k.dp, k.n, 0.1), g.expected.at("dp_p10").value, 1e-6);
    xm_strbuf_free(&text);
    xm_kld_free(&k);
}

TEST(Kld, OfThatWhichWasKeptIsNothing)
{
    const Golden g;
    const Read r = read(golden);
    xm_kld k = {};
    xm_error err = {};
    for (uint32_t i = 0; i < CHUNKS * SCORED; i++) {
        xm_kld_row row;
        ASSERT_EQ(xm_kld_base_row(&r.base, i / SCORED, i % SCORED, &row, &err), XM_OK);
        ASSERT_EQ(xm_kld_add(&k, g.base[i].data(), VOCABULARY, &row, 0, &err), XM_OK);
    }
    xm_kld_summary s;
    xm_kld_sum_up(&k, &s);
    EXPECT_NEAR(s.divergence.value, 0.0, 1e-4);
    EXPECT_EQ(s.same_top.value, 1.0);
    EXPECT_NEAR(s.ppl.value / s.ppl_base.value, 1.0, 1e-4);
    xm_kld_free(&k);
}

TEST(Kld, QuantilesAreLinearBetweenNeighbours)
{
    const float values[] = {1.0f, 2.0f, 4.0f, 8.0f};
    EXPECT_EQ(xm_kld_quantile(values, 4, 0.0), 1.0);
    EXPECT_EQ(xm_kld_quantile(values, 4, 0.5), 3.0);
    EXPECT_EQ(xm_kld_quantile(values, 4, 1.0), 8.0);
    EXPECT_EQ(xm_kld_quantile(values, 1, 0.7), 1.0);
}

TEST(Kld, PrintsLlamaPerplexitysLines)
{
    xm_kld k = compared();
    struct xm_strbuf text = {};
    xm_kld_print_chunk(&k, 2, &text);
    EXPECT_EQ(std::string(xm_strbuf_text(&text)).rfind("   2    ", 0), 0u)
        << xm_strbuf_text(&text);
    xm_strbuf_clear(&text);
    xm_kld_print(&k, &text);
    const std::string all = xm_strbuf_text(&text);
    for (const char *line :
         {"\n====== Perplexity statistics ======\nMean PPL(Q)                   : ",
          "\nCor(ln(PPL(Q)), ln(PPL(base))): ", "\nMean PPL(Q)-PPL(base)         : ",
          "\n====== KL divergence statistics ======\nMean    KLD: ", "\nMaximum KLD: ",
          "\n99.9%   KLD: ", "\nMedian  KLD: ", "\n 0.1%   KLD: ", "\nMinimum KLD: ",
          "\n====== Token probability statistics ======\nMean    Δp: ", "\n75.0%   Δp: ",
          "\nRMS Δp    : ", "\nSame top p: "})
        EXPECT_NE(all.find(line), std::string::npos) << line << " in\n" << all;
    EXPECT_EQ(all.find("75.0%   KLD"), std::string::npos);
    xm_strbuf_free(&text);
    xm_kld_free(&k);
}

/* ---- distributions ------------------------------------------------------------------- */

TEST(Distribution, OfLargeAndExcludedLogitsIsFinite)
{
    const float row[] = {1000.0f, -INFINITY, 1000.0f, -1000.0f};
    EXPECT_NEAR(xm_log_sum_exp(row, 4), 1000.0 + std::log(2.0), 1e-9);
    EXPECT_EQ(xm_likeliest(row, 4), 0u);
}

TEST(Estimate, HasAnErrorOfEnoughValuesOnly)
{
    const xm_estimate e = xm_estimate_of(6.0, 14.0, 3, 2); /* of the values 1, 2, 3 */
    EXPECT_NEAR(e.value, 2.0, 1e-12);
    EXPECT_NEAR(e.error, std::sqrt(2.0 / 3.0 / 2.0), 1e-12);
    EXPECT_EQ(xm_estimate_of(6.0, 14.0, 3, 4).error, 0.0);
    EXPECT_EQ(xm_estimate_of(1.0, 1.0, 1, 1).error, 0.0);
    EXPECT_EQ(xm_estimate_of(0.0, 0.0, 0, 1).value, 0.0);
}

} // namespace
