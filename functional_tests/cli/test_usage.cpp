/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrong values of options and environment variables: each ends with code 2 and a sentence that
 * names the option or variable, before a model is read wherever its value can be checked without.
 */
#include "functional_tests/common/folder.h"
#include "functional_tests/common/mistakes.h"
#include "functional_tests/common/text.h"

static const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
static const std::string none = "/no/such/model";

/* ---- environment variables ------------------------------------------------------------- */

class Variables : public testing::TestWithParam<const char *>
{
};

TEST_P(Variables, WithWrongValuesEndEachCommand)
{
    const std::string setting = GetParam();
    const std::string name = setting.substr(0, setting.find('='));
    for (const Words &words : {Words{"generate", none, "-p", "a"}, Words{"info", none},
                               Words{"devices"}, Words{"bench", "--kernels"}}) {
        const Outcome o = run(words, {setting});
        EXPECT_EQ(o.code, 2) << words[0] << ": " << o.err;
        EXPECT_EQ(o.err.rfind("xemoe: " + name, 0), 0u) << o.err;
        EXPECT_EQ(o.out, "");
    }
}

INSTANTIATE_TEST_SUITE_P(Usage, Variables,
                         testing::Values("XM_DEBUG=x", "XM_SKIP=x", "XM_STOP=x",
                                         "XM_FORCE=x", "XM_SUB_DEVICES=0",
                                         "XM_DEVICE_AS=x", "XM_NUMERICS=f8",
                                         "XM_TUNED_KERNELS=x", "XM_AHEAD=x",
                                         "XM_REPLAY=x"));

/* ---- options --------------------------------------------------------------------------- */

class Usage : public testing::TestWithParam<Mistake>
{
};

TEST_P(Usage, IsOneSentenceAndACode)
{
    expect_mistake(GetParam());
}

static const Mistake mistakes[] = {
    /* token ids beyond the vocabulary */
    {"BiasOfChat",
     {"chat", model, "--logit-bias", "1536+1"},
     2,
     "option --logit-bias names token 1536, but the vocabulary has 1536 tokens"},
    {"BiasOfTexts",
     {"generate", model, "-p", "a", "--parallel", "2", "--logit-bias", "5+1,1536+1"},
     2,
     "option --logit-bias"},
    {"IdOfGenerate",
     {"generate", model, "--ids", "1536"},
     2,
     "option --ids: token id 1536 is not in the vocabulary of 1536 tokens"},
    {"IdOfLogits", {"logits", model, "--ids", "1536"}, 2, "option --ids: token id 1536"},
    {"IdOfVerify", {"verify", model, "--ids", "1536"}, 2, "option --ids: token id 1536"},
    {"IdOfPerplexity",
     {"perplexity", model, "--ids", "0,1536"},
     2,
     "option --ids: token id 1536"},
    /* empty values */
    {"EmptyIds",
     {"generate", none, "--ids", ""},
     2,
     "option --ids needs a value: IDS, found an empty one"},
    {"NoFileOfIds",
     {"generate", none, "--ids", "@"},
     2,
     "option --ids: there is no file name after '@'"},
    {"EmptyGrammar",
     {"generate", none, "-p", "a", "--grammar", ""},
     2,
     "option --grammar needs a value: GBNF"},
    {"EmptySchema",
     {"generate", none, "-p", "a", "-j", ""},
     2,
     "option -j needs a value: JSON"},
    {"EmptyStop",
     {"generate", none, "-p", "a", "--stop", ""},
     2,
     "option --stop needs a value: TEXT"},
    {"EmptyDevice", {"plan", none, "-d", ""}, 2, "option -d needs a value: NAME"},
    {"EmptyAlias", {"serve", none, "--alias", ""}, 2, "option --alias needs a value"},
    {"EmptyOutput", {"make-model", "-o", ""}, 2, "option -o needs a value: PATH"},
    /* what the server is started with; files end with 3 */
    {"NoFolderForPrefixes",
     {"serve", none, "--prefix-cache", "/no/parent/folder"},
     3,
     "option --prefix-cache: the folder '/no/parent/folder' for cached prefixes cannot "
     "be created, because its parent folder is missing"},
    {"FileForPrefixes",
     {"chat", none, "--prefix-cache", XM_PROGRAM},
     3,
     "for cached prefixes, is not a folder"},
    /* what the reference lacks */
    {"ReferenceOfServe",
     {"serve", none, "-d", "REFERENCE"},
     2,
     "option -d: device REFERENCE runs one text at a time"},
    {"ReferenceOfCompile",
     {"compile", none, "-o", "/no/file", "-d", "REFERENCE"},
     2,
     "option -d: device REFERENCE has nothing to compile"},
    {"ProfileOfTheReference",
     {"generate", none, "-p", "a", "-d", "REFERENCE", "--profile"},
     2,
     "option --profile: device REFERENCE does not measure its steps; use -d GPU or CPU"},
    {"PrefixesOfTheReference",
     {"generate", none, "-p", "a", "-d", "REFERENCE", "--prefix-cache", "/tmp"},
     2,
     "option --prefix-cache: device REFERENCE cannot save the KV cache"},
    {"MoreExpertsThanThereAre",
     {"make-model", "-o", "/no/m", "--experts", "4", "--top-k", "5"},
     2,
     "--top-k is 5, but a layer has only 4 experts"},
    {"WeightsOfTheOtherFormat",
     {"make-model", "-o", "/no/m.gguf", "--weights", "u4"},
     2,
     "option --weights: weights cannot have the type 'u4' in GGUF: expected one of f16"},
    /* hints */
    {"DecimalCommas",
     {"generate", none, "-p", "a", "-d", "CPU,CPU(0,7;0,3)"},
     2,
     "write '.' as the decimal point"},
    {"NearPass", {"opt", "fuse_gul"}, 2, "there is no pass 'fuse_gul': did you mean "},
    {"EmptyGraph", {"opt", "fuse_glu"}, 3, "standard input is empty"},
    {"SchemaOfAWrongType",
     {"generate", none, "-p", "a", "-j", "{\"type\": 5}"},
     2,
     "/type: expected null, boolean, integer, number, string, array or object, or a list "
     "of these, found 5"},
    {"FolderOfMetadata",
     {"info", model, "--metadata"},
     3,
     "is a folder; folders of OpenVINO IR have no such keys"},
    {"NearCard",
     {"plan", none, "--device-as", "b58"},
     2,
     "there is no chip or card 'b58': did you mean b580?"},
    {"FullDisk", /* no empty line is printed */
     {"perplexity", model, "-d", "REFERENCE", "-c", "16", "--chunks", "2", "--ids",
      "@" XM_MODELS_DIR "/qwen3moe-tiny/golden/ppl_tokens.npy", "--kl-divergence-base",
      "/dev/full"},
     3,
     "'/dev/full' cannot be written"},
    /* words for types */
    {"UnknownPrecision",
     {"generate", none, "-p", "a", "--precision", "dynamic"},
     2,
     "option --precision takes one of f16 f32, found 'dynamic'"},
    {"PrecisionThatWouldNotRun",
     {"plan", none, "--precision", "bf16"},
     2,
     "option --precision takes one of f16 f32, found 'bf16'"},
    {"InternalCacheType",
     {"generate", none, "-p", "a", "--kv", "dynamic"},
     2,
     "option --kv takes one of f32 f16 i8 u8 q8_0 u4 i4 q4_0, found 'dynamic'"},
};

/* Options that commands share have the same names in all of them. */
TEST(Names, AreTheSameInEachCommand)
{
    const Words cases[] = {
        {"info", none, "-dev", "CPU"},
        {"tune", none, "-dev", "CPU"},
        {"selftest", "-dev", "NPU"},
        {"bench", "--kernels", "-dev", "NPU"},
        {"bench", none, "--ubatch", "8"},
        {"compile", none, "--out", "/no/file"},
        {"logits", none, "--ids", "1", "--output", "/no/file"},
        {"embed", none, "-p", "a", "--output", "/no/file"},
        {"make-model", "--out", "/no/folder/model"},
        {"selftest", "-d", "NPU", "--out", "/no/file"},
    };
    for (const Words &words : cases) {
        const Outcome o = run(words);
        EXPECT_NE(o.code, 2) << words[0] << ": " << o.err;
        EXPECT_NE(o.code, 0) << words[0];
    }
}

TEST(Help, OffersNoDeviceThatTheCommandRefuses)
{
    for (const char *command : {"serve", "compile"})
        EXPECT_FALSE(contains(run({command, "--help"}).out, "REFERENCE")) << command;
    EXPECT_TRUE(contains(run({"generate", "--help"}).out, "REFERENCE"));
}

INSTANTIATE_TEST_SUITE_P(CommandLine, Usage, testing::ValuesIn(mistakes), mistake_name);
