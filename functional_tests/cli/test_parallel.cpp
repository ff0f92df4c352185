/* SPDX-License-Identifier: Apache-2.0
 *
 * generate --parallel: each text is what its prompt gives alone, and they are printed in order.
 */
#include <filesystem>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

namespace
{

const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
const std::string story = "Once upon a time there was a little girl who ";

std::string
repeat(const std::string &text, int n)
{
    std::string all;
    for (int i = 0; i < n; i++)
        all += text;
    return all;
}

Words
operator+(Words a, const Words &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/* Returns the records that NULs separate. */
Words
records(const std::string &out)
{
    Words list;
    size_t at = 0;
    for (size_t end; (end = out.find('\0', at)) != std::string::npos; at = end + 1)
        list.push_back(out.substr(at, end - at));
    EXPECT_EQ(at, out.size()) << "a NUL is the last character";
    return list;
}

class Parallel : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }

    void write(const std::string &content)
    {
        folder.write("prompts.txt", content);
    }

    /* Prompts stay in 16 bits: in 8 bits their rounding depends on how many tokens run together. */
    static Words command()
    {
        return {"generate", "-m", model, "--dynamic-quantization", "0"};
    }

    Outcome generate(const std::string &n, const Words &options)
    {
        return run(command() + Words{"--parallel", n} + options);
    }

    Outcome alone(const std::string &prompt, const Words &options)
    {
        return run(command() + Words{"-p", prompt} + options);
    }

    /* Runs with each of these numbers of parallel texts and compares with single runs. */
    void expect_single_runs(const Words &prompts, const Words &options,
                            const Words &numbers)
    {
        Words wanted;
        for (const std::string &prompt : prompts)
            wanted.push_back(alone(prompt, options).out);
        for (const std::string &n : numbers) {
            Outcome o = generate(n, Words{"-f", file} + options);
            EXPECT_EQ(o.code, 0) << o.err;
            EXPECT_EQ(records(o.out), wanted) << n << " at a time";
        }
    }

    Folder folder{"parallel"};
    const std::string file = folder / "prompts.txt";
};

/* The fifth prompt is longer than a chunk; the second and the third contain line breaks and
 * quotes. */
TEST_F(Parallel, TextsAreThoseOfSingleRuns)
{
    const Words prompts = {"Paris is the capital of", "One day\na \"girl\"", "\"The",
                           "Berlin is the capital of Germany and",
                           repeat(story, 6) + "said"};
    write(prompts[0] + "\n\n\"One day\\na \\\"girl\\\"\"\r\n\"\\\"The\"\n" + prompts[3] +
          "\n" + prompts[4] + "\n");
    expect_single_runs(prompts, {"-n", "24"}, {"1", "2", "4"});
    expect_single_runs(prompts, {"-n", "24", "--ubatch", "16"}, {"2"});
}

TEST_F(Parallel, TextsEndAsSingleRunsDo)
{
    const Words prompts = {"Paris is the capital of", "The capital",
                           "One day, the day and"};
    write("Paris is the capital of\nThe capital\nOne day, the day and\n");
    const Words stops = {"-n", "30", "--stop", "the", "--stop", "."};
    EXPECT_TRUE(contains(alone(prompts[0], stops).out, "France"));
    EXPECT_FALSE(contains(alone(prompts[0], stops).out, "."));
    expect_single_runs(prompts, stops, {"1", "2"});
    expect_single_runs(prompts, {"-n", "1"}, {"2"});
    expect_single_runs(prompts, {"-n", "9", "--ignore-eos", "--special"}, {"4"});
    expect_single_runs(prompts, {"-n", "40", "--ignore-eos", "--presence-penalty", "30"},
                       {"2"});
}

/* Text i is drawn with the seed plus i. */
TEST_F(Parallel, EachTextHasASeedOfItsOwn)
{
    const Words options = {"-n", "12", "--temp", "1.5", "--ignore-eos"};
    const std::string largest = "18446744073709551615";
    const std::string json =
        run(Words{"generate", "-m", model, "-p", "The", "--json", "--seed", largest} +
            options)
            .out;
    EXPECT_TRUE(contains(json, "\"seed\": " + largest)) << json;
    EXPECT_EQ(alone("The", options + Words{"--seed", "-1"}).code, 0);
    for (const char *seed : {"18446744073709551616", "-2", "x", ""}) {
        const Outcome bad = alone("The", options + Words{"--seed", seed});
        EXPECT_EQ(bad.code, 2);
        EXPECT_TRUE(contains(bad.err, "--seed takes a whole number from 0 to " + largest +
                                          ", or -1 for a random one, found '" + seed +
                                          "'"))
            << bad.err;
    }
    write("The\nOne day\n");
    Words wanted;
    wanted.push_back(alone("The", options + Words{"--seed", "7"}).out);
    wanted.push_back(alone("One day", options + Words{"--seed", "8"}).out);
    Outcome o = generate("2", Words{"-f", file, "--seed", "7", "-v"} + options);
    EXPECT_EQ(records(o.out), wanted);
    EXPECT_TRUE(contains(o.err, "seed:    7, increased by one for each text")) << o.err;
}

TEST_F(Parallel, OnePromptHasSeveralTexts)
{
    const Words options = {"-n", "12", "--temp", "1.5", "--ignore-eos"};
    Words wanted;
    for (const char *seed : {"7", "8", "9"})
        wanted.push_back(alone(story, options + Words{"--seed", seed}).out);
    Outcome o = generate("3", Words{"-p", story, "--seed", "7"} + options);
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(records(o.out), wanted);
    EXPECT_NE(wanted[0], wanted[1]);
    EXPECT_FALSE(contains(o.err, "are the same")) << o.err;
    EXPECT_TRUE(contains(generate("2", {"-p", story, "-n", "4"}).err,
                         "the 2 texts of the prompt are the same"));
    o = generate("2", {"-p", "a\n\nb", "-n", "4"});
    EXPECT_EQ(records(o.out), Words(2, alone("a\n\nb", {"-n", "4"}).out))
        << "-p is one prompt, whatever is in it";
}

/* A file with one line works like one with several: --parallel is how many texts run at a time. A
 * refused line is a failed text there, too. */
TEST_F(Parallel, AFileWithOneLineHasOneText)
{
    const Words one(1, alone("The", {"-n", "4"}).out);
    write("The\n");
    Outcome o = generate("3", {"-f", file, "-n", "4"});
    EXPECT_EQ(records(o.out), one) << o.err;
    EXPECT_TRUE(contains(o.err, "xemoe: " + file +
                                    " has one prompt, which gives one text; for a prompt "
                                    "given with -p, --parallel 3 writes 3 texts"))
        << o.err;
    EXPECT_FALSE(contains(o.err, "are the same")) << o.err;
    o = run(command() + Words{"--parallel", "3", "-n", "4"}, {}, file);
    EXPECT_EQ(records(o.out), one) << o.err;
    EXPECT_TRUE(contains(o.err, "xemoe: standard input has one prompt")) << o.err;
    EXPECT_EQ(generate("1", {"-f", file, "-n", "4"}).err, "");
    write("\n \n\"\"\n");
    o = generate("2", {"-f", file, "--json"});
    EXPECT_EQ(o.code, 1);
    EXPECT_EQ(Json(o.out).number("/texts/0/line"), 3.0) << o.out;
    EXPECT_TRUE(contains(o.err, file + ", line 3: the prompt is empty")) << o.err;
    write("5 6 7");
    EXPECT_EQ(records(generate("2", {"--ids", "@" + file, "-n", "4"}).out).size(), 1u);
    EXPECT_EQ(records(generate("2", {"--ids", "5,6,7", "-n", "4"}).out).size(), 2u);
}

/* In quotes, spaces are a prompt. */
TEST_F(Parallel, LinesOfSpacesAreSkipped)
{
    write("  \nThe\n\"  \"\n");
    const Outcome o = generate("2", {"-f", file, "-n", "4"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(records(o.out),
              (Words{alone("The", {"-n", "4"}).out, alone("  ", {"-n", "4"}).out}));
    EXPECT_TRUE(contains(o.err, ": 1 blank line is skipped, the first one is line 1"))
        << o.err;
}

/* The first text computes the prompt; all others reuse it. */
TEST_F(Parallel, JsonHasTextsAndWhatTheyTook)
{
    Outcome o =
        generate("3", {"-p", story, "-n", "5", "--json", "--ignore-eos", "--temp", "1"});
    ASSERT_EQ(o.code, 0) << o.err;
    Json j(o.out);
    ASSERT_EQ(yyjson_arr_size(j.at("/texts")), 3u) << o.out;
    const size_t prompt = j.ids("/texts/2/prompt_ids").size();
    EXPECT_EQ(j.number("/texts/0/reused"), 0.0);
    EXPECT_EQ(j.number("/texts/2/reused"), static_cast<double>(prompt));
    EXPECT_EQ(j.ids("/texts/2/ids").size(), 5u);
    EXPECT_EQ(j.text("/texts/1/finish"), "length");
    EXPECT_EQ(j.number("/texts/1/seed"), j.number("/texts/0/seed") + 1);
    EXPECT_EQ(j.number("/parallel"), 3.0);
    EXPECT_EQ(j.number("/tokens"), 15.0);
    EXPECT_GT(j.number("/tokens_per_s"), 0.0);
    EXPECT_EQ(j.number("/timings/prompt_tokens"), static_cast<double>(prompt));
    EXPECT_EQ(j.number("/timings/decode_tokens"), 12.0) << "after the first of each";
}

/* A page of 32 tokens is reused; the second prompt begins when the first has ended. */
TEST_F(Parallel, APromptTakesOverTheBeginningOfAnEarlierOne)
{
    const std::string beginning = repeat(story, 6);
    write(beginning + "said\n" + beginning + "went\n");
    Json j(generate("1", {"-f", file, "-n", "3", "--json"}).out);
    EXPECT_EQ(j.number("/texts/0/reused"), 0.0);
    EXPECT_GE(j.number("/texts/1/reused"), 32.0);
}

TEST_F(Parallel, TextsEndWhereTheContextIsFull)
{
    write("Paris is the capital of\nThe\n");
    Outcome o = generate("2", {"-f", file, "-c", "6", "--ignore-eos", "--json"});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(Json(o.out).text("/texts/0/finish"), "context");
    EXPECT_TRUE(contains(o.err, "the context of 6 tokens was full for 2 texts")) << o.err;
    o = generate("2", {"-p", "Paris is the capital of", "-c", "4"});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, "the prompt has 5 tokens, which leaves no room"))
        << o.err;
}

/* As in llama.cpp, 0 means the context that the model was trained for, here 2048 positions. */
TEST_F(Parallel, AContextOf0IsTheModels)
{
    write(repeat(story, 90) + "\nThe\n");
    const Outcome o = generate("2", {"-f", file, "-c", "0", "-n", "4"});
    EXPECT_EQ(o.code, 1);
    EXPECT_TRUE(
        contains(o.err, "leaves no room in a context of 2048 tokens: give a larger"))
        << o.err;
    EXPECT_EQ(records(o.out)[1], alone("The", {"-n", "4", "-c", "0"}).out);
    EXPECT_TRUE(contains(run({"perplexity", "-m", model, "-f", file, "-c", "0"}).err,
                         "two chunks of 2048 tokens are needed"));
}

/* Not all texts have room at a time: some wait, and give the same text. */
TEST_F(Parallel, AFullCacheMakesTextsWait)
{
    std::string lines;
    for (int i = 0; i < 4; i++)
        lines += std::to_string(i) + repeat(story, 20) + "\n";
    write(lines);
    const Words options = {"-f", file, "--kv", "f16", "--kv-memory", "1", "-n", "16"};
    Outcome all = generate("4", options), one = generate("1", options);
    EXPECT_EQ(all.code, 0) << all.err;
    EXPECT_EQ(records(all.out).size(), 4u);
    EXPECT_EQ(all.out, one.out);
}

/* The other texts are complete, and the text that failed is printed in its place as far as it
 * came. */
TEST_F(Parallel, ATextWithoutRoomIsASentenceAndACode)
{
    write("The\n" + repeat(story, 90) + "\nOne day\n");
    const Words options = {"-f", file, "--kv",  "f16", "--kv-memory",
                           "1",  "-c", "16384", "-n",  "4"};
    Outcome o = generate("3", options);
    EXPECT_EQ(o.code, 4) << o.err;
    EXPECT_TRUE(contains(o.err, "xemoe: " + file +
                                    ", line 2: the KV cache is full: 1.0 of 1.0 MiB"))
        << o.err;
    EXPECT_EQ(records(o.out), (Words{alone("The", {"-n", "4"}).out, "\n",
                                     alone("One day", {"-n", "4"}).out}));
    o = generate("3", options + Words{"--json"});
    EXPECT_EQ(o.code, 4) << o.err;
    Json j(o.out);
    EXPECT_EQ(j.text("/texts/0/finish"), "length");
    EXPECT_EQ(j.text("/texts/1/finish"), "failed");
    EXPECT_TRUE(contains(j.text("/texts/1/error"), "the KV cache is full")) << o.out;
    EXPECT_EQ(j.ids("/texts/1/ids").size(), 0u);
    EXPECT_EQ(j.at("/texts/2/error"), nullptr);
}

/* An empty line, and a line longer than the context; the other texts are complete. */
TEST_F(Parallel, APromptThatCannotBeginIsASentenceAndACode)
{
    write("The\n\n\"\"\n  \t\n" + repeat(story, 20) + "\nOne day\n\n");
    const Words options = {"-f", file, "-c", "50", "-n", "4"};
    Outcome o = generate("2", options);
    EXPECT_EQ(o.code, 1) << o.err;
    EXPECT_TRUE(contains(o.err, "xemoe: " + file + ", line 3: the prompt is empty"))
        << o.err;
    EXPECT_TRUE(contains(o.err, "xemoe: " + file + ", line 5: the prompt has ")) << o.err;
    EXPECT_TRUE(contains(
        o.err, "xemoe: " + file + ": 3 blank lines are skipped, the first one is line 2"))
        << o.err;
    EXPECT_EQ(records(o.out), (Words{alone("The", {"-n", "4"}).out, "\n", "\n",
                                     alone("One day", {"-n", "4"}).out}));
    o = generate("2", options + Words{"--json"});
    EXPECT_EQ(o.code, 1) << o.err;
    Json j(o.out);
    EXPECT_EQ(j.text("/texts/1/finish"), "failed");
    EXPECT_EQ(j.text("/texts/1/error"), "the prompt is empty");
    EXPECT_EQ(j.number("/texts/1/line"), 3.0);
    EXPECT_EQ(j.number("/texts/3/line"), 6.0);
    EXPECT_TRUE(contains(j.text("/texts/2/error"), "leaves no room in a context of 50"))
        << o.out;
    EXPECT_EQ(j.text("/texts/3/finish"), "length");
}

/* The cache grows to the size that the plan predicts, because the slots' longest texts are
 * announced to it. */
TEST_F(Parallel, APlanSaysWhatTheCacheTakes)
{
    const Words options = {"-n", "20", "--ignore-eos", "--json"};
    auto planned = [](size_t positions, const char *texts) {
        return Json(run({"plan", model, "-c", std::to_string(positions), "--parallel",
                         texts, "--json"})
                        .out)
            .number("/memory/kv_cache");
    };
    std::string equal, growing;
    for (int i = 1; i < 4; i++) {
        equal += std::to_string(i) + repeat(story, 10) + "\n";
        growing += std::to_string(i) + repeat(story, 10 * i) + "\n";
    }
    write(equal);
    Json j(generate("3", Words{"-f", file} + options).out);
    const size_t n = j.ids("/texts/0/prompt_ids").size();
    ASSERT_EQ(n, j.ids("/texts/2/prompt_ids").size());
    EXPECT_EQ(j.number("/memory/kv_cache"), planned(n + 20, "3"));
    EXPECT_EQ(
        Json(generate("2", Words{"-f", file} + options).out).number("/memory/kv_cache"),
        planned(n + 20, "2"))
        << "the third takes the place of one that has ended";
    write(growing);
    Json longest(generate("2", Words{"-f", file} + options).out);
    double two = 0;
    for (const char *text : {"/texts/1", "/texts/2"})
        two += planned(longest.ids(std::string(text) + "/prompt_ids").size() + 20, "1");
    EXPECT_EQ(longest.number("/memory/kv_cache"), two);
    Json forks(generate("3", Words{"-p", repeat(story, 10)} + options).out);
    EXPECT_LT(forks.number("/memory/kv_cache"), planned(n + 20, "3"));
}

TEST_F(Parallel, MistakesAreSentences)
{
    write("");
    Outcome o = generate("2", {"-f", file});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, file + " is empty: there is nothing to continue"))
        << o.err;
    write("\n\r\n \t\n");
    o = generate("2", {"-f", file});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, file + ": no line contains a prompt")) << o.err;
    for (const char *damaged : {"\"\\q\"", "\"\\u12\""}) {
        write(std::string("The\n\n") + damaged + "\nOne day\n");
        o = generate("2", {"-f", file});
        EXPECT_EQ(o.code, 3) << damaged;
        EXPECT_TRUE(contains(o.err, "xemoe: " + file + ", line 3: ")) << o.err;
    }
    o = generate("2", {"--ids", "1,999999"});
    EXPECT_EQ(o.code, 3) << o.err;
    EXPECT_TRUE(contains(o.err, "token id 999999 is not in the vocabulary")) << o.err;
    EXPECT_EQ(generate("0", {"-p", "The"}).code, 2);
    o = generate("1025", {"-p", "The"});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, "--parallel takes at most 1024 texts")) << o.err;
}

TEST_F(Parallel, ADeviceWithoutSequencesIsASentence)
{
    Outcome o = generate("2", {"-p", "The", "-d", "REFERENCE"});
    EXPECT_EQ(o.code, 2);
    EXPECT_EQ(o.err,
              "xemoe: option --parallel: device REFERENCE runs one text at a time\n");
}

/* Endless texts, which Ctrl-C stops. */
TEST_F(Parallel, CtrlCEndsAllTexts)
{
    write("The\nOne day\nParis is the capital of\n");
    Terminal t({"generate", "-m", model, "--parallel", "2", "-f", file, "-n", "1000000",
                "--ignore-eos"});
    t.wait_for("reading prompts");
    t.watch(300);
    t.type("\x03");
    EXPECT_EQ(t.finish(30), 130) << t.text();
    EXPECT_TRUE(contains(t.text(), "--- 3 of 3 ---")) << t.text();
    EXPECT_TRUE(contains(t.text(), "xemoe: stopped by Ctrl-C")) << t.text();
}

TEST_F(Parallel, ATerminalHasLinesBetweenTexts)
{
    write("Paris is the capital of\nThe\n");
    Terminal t({"generate", "-m", model, "--parallel", "2", "-f", file, "-n", "8"});
    EXPECT_EQ(t.finish(60), 0);
    const size_t first = t.text().find("--- 1 of 2 ---"),
                 second = t.text().find("--- 2 of 2 ---");
    EXPECT_LT(first, t.text().find("France"));
    EXPECT_LT(t.text().find("France"), second);
    EXPECT_TRUE(contains(t.text(), "texts:   2, 2 at a time: ")) << t.text();
}

/* Without a tokenizer prompts are ids: one row of an .npy file each. */
TEST_F(Parallel, RowsOfIdsArePrompts)
{
    const std::string bare = folder / "bare";
    std::filesystem::create_directory(bare);
    for (const char *name : {"openvino_model.xml", "openvino_model.bin"})
        std::filesystem::create_symlink(model + "/" + name, bare + "/" + name);
    std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";
    header.resize(117, ' ');
    header += '\n';
    std::string npy = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header;
    const int32_t ids[] = {5, 6, 7, 8, 9, 10};
    npy.append(reinterpret_cast<const char *>(ids), sizeof(ids));
    write(npy);
    Outcome o = run({"generate", "-m", bare, "--parallel", "2", "--ids", "@" + file, "-n",
                     "4", "--ignore-eos"});
    ASSERT_EQ(o.code, 0) << o.err;
    Words wanted;
    for (const char *row : {"5,6,7", "8,9,10"})
        wanted.push_back(
            run({"generate", "-m", bare, "--ids", row, "-n", "4", "--ignore-eos"}).out);
    EXPECT_EQ(records(o.out), wanted);
    EXPECT_EQ(count(wanted[0], "\n"), 4u);
}

} // namespace
