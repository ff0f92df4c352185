/* SPDX-License-Identifier: Apache-2.0
 *
 * --prefix-cache: positions that a program computed are reused by the next one.
 */
#include <filesystem>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

namespace
{

const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

class PrefixCache : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
        for (int i = 0; i < 6; i++)
            prompt += "Once upon a time there was a little girl who ";
    }
    Outcome generate(const Words &more, const std::string &behind = "") const
    {
        Words words = {"generate", "-m", model, "-p", prompt + behind, "-n", "8"};
        words.insert(words.end(), more.begin(), more.end());
        return run(words);
    }
    size_t n_files() const
    {
        size_t n = 0;
        for (const auto &f : std::filesystem::directory_iterator(cache))
            n += f.is_regular_file();
        return n;
    }

    Folder folder{"prefix_cache"};
    const std::string cache = folder / "cache";
    std::string prompt;
};

TEST_F(PrefixCache, ServesTheNextProgram)
{
    const Words with = {"--prefix-cache", cache, "--json"};
    const Outcome alone = generate({});
    ASSERT_EQ(alone.code, 0) << alone.err;
    const Json first(generate(with).out), second(generate(with).out);
    EXPECT_EQ(first.text("/text"), second.text("/text"));
    EXPECT_EQ(first.text("/text") + "\n", alone.out);
    EXPECT_EQ(first.number("/timings/reused_tokens"), 0.0);
    EXPECT_EQ(second.number("/timings/reused_tokens") +
                  second.number("/timings/prompt_tokens"),
              first.number("/timings/prompt_tokens"));
    const Outcome verbose = generate({"--prefix-cache", cache, "-v"});
    EXPECT_TRUE(contains(verbose.err, " more from the KV cache\n")) << verbose.err;
    EXPECT_LT(second.number("/timings/prompt_tokens"), 20.0);
    EXPECT_GT(first.number("/timings/prompt_tokens"), 100.0);
    EXPECT_EQ(n_files(), 1u);
    const Json other(generate({"--prefix-cache", cache, "--json", "--kv", "i8"}).out);
    EXPECT_EQ(other.number("/timings/prompt_tokens"),
              first.number("/timings/prompt_tokens"))
        << "another element type";
    EXPECT_EQ(n_files(), 2u);
}

TEST_F(PrefixCache, ServesTextsInParallel)
{
    generate({"--prefix-cache", cache});
    folder.write("prompts.txt", prompt + "\n" + prompt + "was\n");
    const Words words = {"generate",
                         "-m",
                         model,
                         "-f",
                         folder / "prompts.txt",
                         "-n",
                         "8",
                         "--dynamic-quantization",
                         "0",
                         "--json",
                         "--parallel",
                         "2"};
    Words with = words;
    with.insert(with.end(), {"--prefix-cache", cache});
    const Outcome plain = run(words), cached = run(with), again = run(with);
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_LT(Json(again.out).number("/timings/prompt_tokens"),
              Json(plain.out).number("/timings/prompt_tokens") / 2);
}

TEST_F(PrefixCache, SaysWhatIsWrong)
{
    Outcome o = generate({"--prefix-cache-size", "5"});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, "--prefix-cache-size needs --prefix-cache DIR")) << o.err;
    o = generate({"--prefix-cache", cache, "-d", "REFERENCE"});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, "option --prefix-cache: device REFERENCE cannot save"))
        << o.err;
    o = generate({"--prefix-cache", cache, "-d", "CPU,CPU", "--split", "layer"});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, "in a mesh each device has a part of the cache"))
        << o.err;
    folder.write("file", "");
    o = generate({"--prefix-cache", folder / "file" + "/x"});
    EXPECT_NE(o.code, 0);
    EXPECT_TRUE(contains(o.err, "/file/x' for cached prefixes")) << o.err;
    o = generate({"--prefix-cache", folder / "no/cache"});
    EXPECT_NE(o.code, 0);
    EXPECT_TRUE(contains(o.err, "is missing: create that first")) << o.err;
    o = generate({"--prefix-cache", folder / "made", "--prefix-cache-size", "1"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.err, "/made' for cached prefixes\n")) << o.err;
}

} // namespace
