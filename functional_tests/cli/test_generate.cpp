/* SPDX-License-Identifier: Apache-2.0
 *
 * Where generate gets its prompt, and where its text ends.
 */
#include <sys/stat.h>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

static const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
static const char *const prompt = "Paris is the capital of";

static std::string
temp_path(const std::string &name)
{
    return testing::TempDir() + "xemoe_" + std::to_string(getpid()) + "_" + name;
}

/* Runs generate with this text as standard input. */
static Outcome
generate(const Words &options, const std::string &input = "")
{
    std::string path = temp_path("input");
    std::ofstream(path, std::ios::binary) << input;
    Words words = {"generate", "-m", model, "-d", "REFERENCE"};
    words.insert(words.end(), options.begin(), options.end());
    Outcome o = Program(words, {}, path).finish();
    unlink(path.c_str());
    return o;
}

/* ---- the prompt -------------------------------------------------------------------- */

TEST(Prompt, ComesThroughAPipeWhereNoneIsGiven)
{
    const std::string want = generate({"-p", prompt}).out;
    EXPECT_EQ(want, " France.\n");
    EXPECT_EQ(generate({}, prompt).out, want);
    EXPECT_EQ(generate({"-f", "-"}, prompt).out, want);
    EXPECT_EQ(generate({"-f", "-"}, std::string(prompt) + "\n").out, want);
    EXPECT_EQ(generate({"-f", "-"}, std::string(prompt) + "\r\n").out, want);
}

/* Only one newline is removed, because further ones may be intended. */
TEST(Prompt, KeepsAllButTheLastNewline)
{
    Outcome o = generate({"--json", "-n1"}, "a\n\n"),
            same = generate({"--json", "-n1", "-p", "a\n"});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(Json(o.out).ids("/prompt_ids"), Json(same.out).ids("/prompt_ids"));
}

TEST(Prompt, ComesOutOfAFifo)
{
    std::string fifo = temp_path("fifo");
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    Program p({"generate", "-m", model, "-d", "REFERENCE", "-f", fifo});
    std::ofstream(fifo) << prompt << "\n";
    Outcome o = p.finish();
    unlink(fifo.c_str());
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out, " France.\n");
}

TEST(Prompt, ThatIsEmptyOrEndlessIsASentence)
{
    Outcome o = generate({});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, "standard input is empty: write a prompt")) << o.err;
    o = generate({"-f", "-"}, "\n");
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, "standard input is empty: there is nothing")) << o.err;
    o = generate({"-f", "/dev/null"});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, "/dev/null is empty: there is nothing")) << o.err;
    o = generate({"-f", "/dev/zero"});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, "/dev/zero: a prompt can have at most 64 MiB")) << o.err;
}

/* Otherwise the user would not know that it waits for input. */
TEST(Prompt, IsNotWaitedForOnATerminal)
{
    Terminal t({"generate", "-m", model});
    EXPECT_EQ(t.finish(), 2);
    EXPECT_TRUE(contains(t.text(), "give a prompt: one of -p TEXT, -f FILE")) << t.text();
}

/* ---- the end ----------------------------------------------------------------------- */

TEST(Text, EndsAtEveryEndThatTheTokenizerKnows)
{
    Outcome o = generate({"-p", prompt, "-n", "20"});
    EXPECT_EQ(o.out, " France.\n");
    o = generate({"-p", prompt, "-n", "-1"});
    EXPECT_EQ(o.out, " France.\n");
}

TEST(Text, IsOfOneTokenOrOfSeveralTokens)
{
    Outcome o = generate({"-p", prompt, "-n", "2", "-v"});
    EXPECT_TRUE(contains(o.err, "prompt:  5 tokens, ")) << o.err;
    EXPECT_TRUE(contains(o.err, "decode:  1 token, ")) << o.err;
    EXPECT_FALSE(contains(o.err, " launches")) << "the reference has none";
}

/* There is no rate for no token, nor for one that may have run before the measurement began. */
TEST(Text, HasNoRateWhoseTimeWasNotMeasured)
{
    for (const char *n : {"1", "2", "3"}) {
        const bool is_measured = n == std::string("3");
        const auto words = [&](const char *output) {
            return Words{"--ids", "5", "-n", n, "--ignore-eos", output};
        };
        const std::string err = generate(words("-v")).err;
        const std::string decode = err.substr(err.find("decode:"));
        EXPECT_TRUE(contains(err, " tokens/s")) << "of the prompt: " << err;
        EXPECT_EQ(contains(decode, " tokens/s"), is_measured) << err;
        EXPECT_FALSE(contains(decode, " GB/s of weights")) << "the reference counts none";
        const Json json(generate(words("--json")).out);
        EXPECT_GT(json.number("/timings/prompt_tps"), 0.0);
        EXPECT_EQ(json.at("/timings/decode_tps") != nullptr, is_measured) << n;
    }
}

TEST(Text, HasSpecialTokensOnlyWhenAskedFor)
{
    Words words = {"-p", prompt, "-n", "5", "--ignore-eos"};
    EXPECT_EQ(generate(words).out, " France.us\n");
    words.push_back("--special");
    EXPECT_EQ(generate(words).out, " France.<|endoftext|><|im_start|>us\n");
}

TEST(Text, EndsWhereTheContextIsFull)
{
    Outcome o = generate({"-p", prompt, "-c", "6"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out, " France\n");
    EXPECT_TRUE(contains(
        o.err, "the context of 6 tokens is full: the text ends here; give a larger -c"))
        << o.err;
    o = generate({"-p", prompt, "-c", "6", "-n", "1"});
    EXPECT_EQ(o.err, "") << "as many as were asked for";
}

TEST(Text, AContextThatThePromptFillsIsRefused)
{
    for (const char *context : {"5", "3"}) {
        Outcome o = generate({"-p", prompt, "-c", context});
        EXPECT_EQ(o.code, 2);
        EXPECT_TRUE(contains(o.err, "the prompt has 5 tokens")) << o.err;
        EXPECT_TRUE(contains(o.err, std::string("a context of ") + context)) << o.err;
    }
}

TEST(Text, BeyondTheTrainedContextIsWarnedOfOnce)
{
    Outcome o = generate({"-p", prompt, "-n", "2043"});
    EXPECT_EQ(o.err, "");
    o = generate({"-p", prompt, "-n", "2044"});
    EXPECT_EQ(o.code, 0) << o.err;
    const std::string warning = "exceeds the 2048 for which the model was trained";
    ASSERT_TRUE(contains(o.err, warning)) << o.err;
    EXPECT_EQ(o.err.find(warning), o.err.rfind(warning));
}

TEST(Text, APromptBeyondTheTrainedContextNeedsAContext)
{
    std::string ids = "5";
    for (int i = 1; i < 2049; i++)
        ids += ",5";
    Words words = {"generate", "-m", model, "--ids", ids, "-n", "1"};
    Outcome o = run(words);
    EXPECT_EQ(o.code, 2) << o.err;
    EXPECT_TRUE(contains(o.err, "the prompt has 2049 tokens, but the model was trained "
                                "for 2048: give -c 2050 to continue it"))
        << o.err;
    words.back() = "128";
    o = run(words);
    EXPECT_TRUE(contains(o.err, "2048: give -c 2177 to continue it"))
        << "with all new tokens";
    Terminal t(words);
    EXPECT_EQ(t.finish(), 2);
    EXPECT_TRUE(contains(t.raw(), "reading ")) << t.raw();
    EXPECT_FALSE(contains(t.raw(), "compiling")) << "that would be waited for in vain";
    words.back() = "1";
    words.insert(words.end(), {"-c", "2050"});
    o = run(words);
    EXPECT_EQ(o.code, 0) << o.err;
}

/* ---- random numbers ---------------------------------------------------------------- */

TEST(Seed, IsAnotherOneEachTimeAndTold)
{
    Words words = {"-p", prompt, "-n", "8", "--temp", "3", "--ignore-eos", "--json"};
    Json a(generate(words).out), b(generate(words).out);
    EXPECT_NE(a.number("/seed"), b.number("/seed"));
    words.insert(words.end(),
                 {"--seed", std::to_string(static_cast<uint64_t>(a.number("/seed")))});
    EXPECT_EQ(Json(generate(words).out).ids("/ids"), a.ids("/ids"));
    words = {"-p", prompt, "-n", "2", "-v", "--temp", "1", "--seed", "42"};
    EXPECT_TRUE(contains(generate(words).err, "seed:    42\n"));
}

/* The seed does not affect the text. */
TEST(Seed, IsNotToldOfTheLikeliestTokens)
{
    for (const Words &seed : {Words{}, Words{"--seed", "42", "--temp", "0"}}) {
        Words words = {"-p", prompt, "-n", "2", "-v", "--json"};
        words.insert(words.end(), seed.begin(), seed.end());
        Outcome o = generate(words);
        EXPECT_EQ(o.code, 0) << o.err;
        EXPECT_EQ(Json(o.out).at("/seed"), nullptr) << o.out;
        EXPECT_FALSE(contains(o.err, "seed:")) << o.err;
    }
}

TEST(Seed, TopKOfZeroIsOff)
{
    Words words = {"-p", prompt, "-n", "6", "--temp", "2", "--seed", "5", "--ignore-eos"};
    const std::string without = generate(words).out;
    words.insert(words.end(), {"--top-k", "0"});
    EXPECT_EQ(generate(words).out, without);
}

/* ---- which tokens ------------------------------------------------------------------------ */

TEST(Sampling, BiasesAndBadWordsKeepTokensAway)
{
    const Outcome plain = generate({"-p", prompt, "--json"});
    const auto france = static_cast<uint64_t>(Json(plain.out).number("/ids/0"));
    const std::string bars = std::to_string(france) + "-100";
    EXPECT_FALSE(contains(generate({"-p", prompt, "--logit-bias", bars}).out, "France"));
    EXPECT_FALSE(
        contains(generate({"-p", prompt, "--bad-word", "France"}).out, "France"));
    EXPECT_EQ(generate({"-p", prompt, "--bad-word", "Italy"}).out, " France.\n");
    const std::string most = std::to_string(france) + "+1000";
    const Outcome same =
        generate({"-p", prompt, "-n", "3", "--logit-bias", most, "--logit-bias", "5-1"});
    EXPECT_EQ(same.out, " France France France\n");
    const Outcome less = generate({"-p", prompt, "-n", "6", "--logit-bias", most,
                                   "--no-repeat-ngram", "2", "--ignore-eos"});
    EXPECT_FALSE(contains(less.out, "France France France")) << less.out;
}

TEST(Sampling, DryEndsRepetitions)
{
    const Outcome plain = generate({"-p", prompt, "--json"});
    const auto france = static_cast<uint64_t>(Json(plain.out).number("/ids/0"));
    Words words = {"-p",
                   prompt,
                   "-n",
                   "5",
                   "--ignore-eos",
                   "--logit-bias",
                   std::to_string(france) + "+50"};
    EXPECT_EQ(generate(words).out, " France France France France France\n");
    words.insert(words.end(), {"--dry-multiplier", "1000"});
    const std::string dry = generate(words).out;
    EXPECT_EQ(dry.rfind(" France France France", 0), 0u) << dry;
    EXPECT_FALSE(contains(dry, "France France France France")) << dry;
    words.insert(words.end(), {"--dry-sequence-breaker", "France"});
    EXPECT_EQ(generate(words).out, " France France France France France\n")
        << "each begins anew";
}

TEST(Sampling, TheSameSeedIsTheSameTextWithEachParameter)
{
    for (const Words &option :
         {Words{"--typical", "0.7"}, Words{"--top-n-sigma", "1"},
          Words{"--xtc-probability", "1", "--xtc-threshold", "0.05"},
          Words{"--mirostat", "2", "--mirostat-ent", "4", "--mirostat-lr", "0.2"}}) {
        Words words = {"-p", prompt,   "-n", "8",           "--temp",
                       "3",  "--seed", "7",  "--ignore-eos"};
        const std::string plain = generate(words).out;
        words.insert(words.end(), option.begin(), option.end());
        const Outcome o = generate(words);
        EXPECT_EQ(o.code, 0) << o.err;
        EXPECT_NE(o.out, plain) << option[0];
        EXPECT_EQ(o.out, generate(words).out) << option[0];
    }
}

TEST(Sampling, WrongValuesNameTheOption)
{
    const struct {
        Words words;
        const char *said;
    } cases[] = {
        {{"--typical", "1.5"},
         "option --typical takes a number from 0 up to 1, found 1.5"},
        {{"--mirostat", "1"}, "option --mirostat takes 0 or 2"},
        {{"--mirostat", "3"}, "option --mirostat takes a whole number from 0 up to 2"},
        {{"--xtc-probability", "2"}, "option --xtc-probability takes a number"},
        {{"--logit-bias", "12"}, "option --logit-bias: '12' is not a token id"},
        {{"--logit-bias", "999999+1"},
         "option --logit-bias names token 999999, but the vocabulary has 1536 tokens"},
        {{"--bad-word", ""}, "option --bad-word needs a value: TEXT, found an empty one"},
        {{"--dry-sequence-breaker", ""}, "option --dry-sequence-breaker needs a value"},
    };
    for (const auto &c : cases) {
        Words words = {"-p", prompt};
        words.insert(words.end(), c.words.begin(), c.words.end());
        const Outcome o = generate(words);
        EXPECT_EQ(o.code, 2) << c.words[0];
        EXPECT_TRUE(contains(o.err, c.said)) << o.err;
        EXPECT_EQ(o.out, "") << c.words[0];
    }
}

TEST(Temperature, IsTheUsualOneForOptionsOfDrawing)
{
    const Words words = {"-p", prompt, "-n", "6", "--ignore-eos", "--seed", "5"};
    for (const Words &option : {Words{"--top-k", "0"}, Words{"--top-p", "1"},
                                Words{"--min-p", "0"}, Words{"--seed", "5"}}) {
        SCOPED_TRACE(option[0]);
        Words all = words;
        all.insert(all.end(), option.begin(), option.end());
        const Outcome o = generate(all);
        EXPECT_TRUE(contains(o.err, "tokens are drawn at random because of " + option[0] +
                                        ", at temperature 0.8; give --temp 0"))
            << o.err;
        all.insert(all.end(), {"--temp", "0.8"});
        const Outcome same = generate(all);
        EXPECT_EQ(o.out, same.out);
        EXPECT_EQ(same.err, "") << "nothing to say of what was asked for";
    }
    EXPECT_EQ(generate({"-p", prompt, "--repeat-penalty", "1.1"}).err, "");
}

TEST(Temperature, IsTheOneThatTheModelRecommends)
{
    const Folder folder("recommended");
    const std::string hot = folder / "model";
    std::filesystem::copy(model, hot);
    folder.write("model/generation_config.json",
                 R"({"do_sample": true, "temperature": 9.5})");
    const Words words = {"generate", hot, "-d", "REFERENCE", "-p", prompt, "-n", "8"};
    EXPECT_EQ(run(words).out, " France.\n") << "greedy without an option";
    Words drawn = words;
    drawn.insert(drawn.end(), {"--seed", "3", "--json"});
    const Outcome o = run(drawn);
    EXPECT_TRUE(contains(o.err, "because of --seed, at temperature 9.5 of "
                                "generation_config.json;"))
        << o.err;
    EXPECT_EQ(Json(o.out).number("/seed"), 3);
    EXPECT_NE(Json(o.out).text("/text"), " France.");
}
