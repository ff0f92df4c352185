/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF files far beyond their window of 32 positions: the logits of every position, and answers
 * about facts that were given long before, compared with the host reference.
 */
#include <cmath>

#include "functional_tests/common/folder.h"
#include "functional_tests/common/gguf.h"
#include "functional_tests/common/prediction.h"
#include "functional_tests/common/program.h"

namespace
{

enum { WINDOW = 32 };

class Context : public testing::TestWithParam<GgufFile>
{
  protected:
    const GgufFile file = GetParam();

    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }

    Matrix logits(int n, const Words &options) const
    {
        Words words = {"logits", "-m", file.path(), "--ids", some_ids(n), "-o", "-"};
        words.insert(words.end(), options.begin(), options.end());
        const Outcome o = run(words);
        EXPECT_EQ(o.code, 0) << o.err;
        return parse_npy(o.out);
    }
};

/* After 8 and 32 windows: pages of sliding layers were freed and used again. */
TEST_P(Context, LogitsAreTheReferencesFarBeyondTheWindow)
{
    for (const int n : {8 * WINDOW, 32 * WINDOW}) {
        SCOPED_TRACE(n);
        const Matrix want = logits(n, {"-d", "REFERENCE"});
        ASSERT_EQ(want.rows, (uint64_t)n);
        for (const char *chunk : {"50", "512"}) {
            const Matrix m = logits(n, {"--precision", "f32", "--ubatch", chunk});
            ASSERT_EQ(m.rows, want.rows);
            double worst = 0.0;
            for (uint64_t t = 0; t < m.rows; t++)
                worst = std::max(worst, nmse(m.row(t), want.row(t)));
            EXPECT_LE(worst, 1e-8) << "chunks of " << chunk;
        }
    }
}

/* ---- facts ----------------------------------------------------------------------------- */

struct Fact {
    const char *country, *capital;
};
const Fact facts[] = {{"Norway", "Oslo"},  {"Japan", "Tokyo"}, {"Italy", "Rome"},
                      {"Peru", "Lima"},    {"Cuba", "Havana"}, {"Kenya", "Nairobi"},
                      {"Spain", "Madrid"}, {"Egypt", "Cairo"}};
size_t
n_facts()
{
    return test_all() ? std::size(facts) : 4;
}

/* Returns a fact, other sentences, and the question about the fact. */
std::string
told_and_asked(const Fact &fact, int sentences)
{
    const std::string asked = std::string("The capital of ") + fact.country + " is";
    std::string text = asked + " " + fact.capital + ". ";
    for (int i = 0; i < sentences; i++)
        text += "In the morning the sailors brought him a basket of oranges. ";
    return text + asked;
}

struct Answers {
    std::vector<std::string> texts;
    size_t right = 0, least_prompt = SIZE_MAX;

    void add(const Json &json, const std::string &at, const Fact &fact)
    {
        texts.push_back(json.text(at + "/text"));
        right += texts.back().rfind(std::string(" ") + fact.capital, 0) == 0 ? 1 : 0;
        least_prompt = std::min(least_prompt, json.ids(at + "/prompt_ids").size());
    }
};

const Words answer = {"-n", "4", "--precision", "f32", "--json"};

/* Runs all questions in parallel. */
Answers
on_device(const std::string &model, int sentences)
{
    const Folder folder("facts");
    std::string lines;
    for (size_t i = 0; i < n_facts(); i++)
        lines += told_and_asked(facts[i], sentences) + "\n";
    folder.write("prompts", lines);
    Words words = {"generate", "-m", model, "-f", folder / "prompts", "--parallel", "8"};
    words.insert(words.end(), answer.begin(), answer.end());
    const Outcome o = run(words);
    EXPECT_EQ(o.code, 0) << o.err;
    const Json json(o.out);
    Answers a;
    for (size_t i = 0; i < n_facts(); i++)
        a.add(json, "/texts/" + std::to_string(i), facts[i]);
    return a;
}

/* Runs one question at a time, because the reference has no sequences. */
Answers
by_reference(const std::string &model, int sentences)
{
    Answers a;
    for (size_t i = 0; i < n_facts(); i++) {
        Words words = {
            "generate", "-m",       model, "-p", told_and_asked(facts[i], sentences),
            "-d",       "REFERENCE"};
        words.insert(words.end(), answer.begin(), answer.end());
        const Outcome o = run(words);
        EXPECT_EQ(o.code, 0) << o.err;
        a.add(Json(o.out), "", facts[i]);
    }
    return a;
}

/* The models answer from their training, gemma4-moe-tiny most of these facts, gpt-oss-tiny few.
 * The test compares whether the sentences in between change an answer. */
TEST_P(Context, FactsAreAnsweredAsByTheReference)
{
    for (const auto &[windows, sentences] : {std::pair{1, 3}, {4, 12}, {8, 24}}) {
        SCOPED_TRACE(std::to_string(windows) + " windows");
        const Answers found = on_device(file.path(), sentences),
                      want = by_reference(file.path(), sentences);
        printf("%s: %zu tokens, %zu of %zu right, %zu by the reference\n", file.model,
               found.least_prompt, found.right, n_facts(), want.right);
        EXPECT_GE(found.least_prompt, (size_t)windows * WINDOW);
        EXPECT_EQ(found.right, want.right);
        EXPECT_EQ(found.texts, want.texts);
    }
}

INSTANTIATE_TEST_SUITE_P(Families, Context,
                         testing::ValuesIn(some(std::vector{gguf_files[1], gguf_files[3]},
                                                1)),
                         gguf_name);

} // namespace
