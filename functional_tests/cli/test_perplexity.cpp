/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe perplexity: llama-perplexity's method and output; files of log-probabilities.
 */
#include "functional_tests/common/comma_locale.h"
#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/mistakes.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

static const std::string models = XM_MODELS_DIR;
static const std::string model = models + "/qwen3moe-tiny/ov/int4_asym_g64";
static const std::string gemma = models + "/gemma4-moe-tiny/ov/int4_asym_g32";
static const std::string rows = "@" + models + "/qwen3moe-tiny/golden/ppl_tokens.npy";

/* Returns n ids "5,6,7,…" that begin with the given ids and continue in any order. */
static std::string
ids_of(Ids ids, size_t n)
{
    std::string text;
    for (size_t i = 0; i < n; i++)
        text += (i ? "," : "") +
                std::to_string(i < ids.size() ? ids[i] : int32_t(40 + i * 7 % 300));
    return text;
}

class Perplexity : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
    static Outcome perplexity(const Words &more, const Words &settings = {})
    {
        Words words = {"perplexity", "-m", model};
        words.insert(words.end(), more.begin(), more.end());
        return run(words, settings);
    }
    static Json json_of(const Outcome &o)
    {
        EXPECT_EQ(o.code, 0) << o.err;
        EXPECT_EQ(o.err, "");
        return Json(o.out);
    }
};

/* ---- the method -------------------------------------------------------------------- */

/* Returns -log p of positions context/2 … context - 2 of each chunk, from the logits. */
static std::vector<double>
expected_nll(const Ids &tokens, size_t context)
{
    std::vector<double> list;
    for (size_t begin = 0; begin + context <= tokens.size(); begin += context) {
        std::string ids;
        for (size_t i = 0; i < context; i++)
            ids += (i ? "," : "") + std::to_string(tokens[begin + i]);
        const Outcome o = run({"logits", "-m", model, "--precision", "f32", "--kv", "f32",
                               "--ids", ids, "-o", "-"});
        const Matrix m = parse_npy(o.out);
        for (size_t i = context / 2; i + 1 < context; i++) {
            double sum = 0.0;
            for (float x : m.row(i))
                sum += std::exp((double)x);
            list.push_back(std::log(sum) - m.row(i)[(size_t)tokens[begin + i + 1]]);
        }
    }
    return list;
}

TEST_F(Perplexity, ScoresTheSecondHalfOfEachChunk)
{
    Ids tokens;
    for (int32_t i = 0; i < 45; i++) /* two chunks of 20, and tokens that are left out */
        tokens.push_back(100 + i * 13 % 900);
    double sum = 0.0, squares = 0.0;
    const std::vector<double> nll = expected_nll(tokens, 20);
    for (double x : nll) {
        sum += x;
        squares += x * x;
    }
    const double n = (double)nll.size(), mean = sum / n;
    const Json json =
        json_of(perplexity({"--ids", ids_of(tokens, 45), "-c", "20", "--precision", "f32",
                            "--kv", "f32", "--json"}));
    EXPECT_EQ(json.number("/chunks"), 2);
    EXPECT_EQ(json.number("/context"), 20);
    EXPECT_EQ(json.number("/tokens"), 18);
    EXPECT_NEAR(json.number("/nll"), mean, 1e-4);
    EXPECT_NEAR(json.number("/ppl") / std::exp(mean), 1.0, 1e-4);
    EXPECT_NEAR(json.number("/ppl_error") /
                    (std::exp(mean) * std::sqrt((squares / n - mean * mean) / (n - 1))),
                1.0, 1e-3);
}

/* A chunk longer than what runs at a time. */
TEST_F(Perplexity, LongChunksAreReadInPieces)
{
    const Words one = {"--ids", rows,     "-c",   "1200", "--chunks",
                       "1",     "--json", "--kv", "f32"};
    const Json json = json_of(perplexity(one));
    EXPECT_EQ(json.number("/tokens"), 599);
    Words other = one;
    other.insert(other.end(), {"--ubatch", "100"});
    EXPECT_NEAR(json_of(perplexity(other)).number("/ppl") / json.number("/ppl"), 1.0,
                0.01);
}

/* Gemma's chunks begin with a begin token, Qwen's do not. */
TEST_F(Perplexity, EachChunkBeginsAsTextsOfTheModelDo)
{
    const Folder folder("perplexity_gemma");
    for (const char *name : {"openvino_model.xml", "openvino_model.bin"})
        std::filesystem::create_symlink(gemma + "/" + name, folder / name);
    std::filesystem::create_symlink(models + "/gemma4-moe-tiny/tokenizer.json",
                                    folder / "tokenizer.json");
    const auto ppl = [](const std::string &path, int32_t first) {
        const Outcome o = run({"perplexity", "-m", path, "--ids", ids_of({first}, 24),
                               "-c", "12", "--chunks", "1", "--json"});
        EXPECT_EQ(o.code, 0) << o.err;
        return Json(o.out).number("/ppl");
    };
    EXPECT_EQ(ppl(folder.path, 100), ppl(folder.path, 200));
    EXPECT_NE(ppl(model, 100), ppl(model, 200));
}

TEST_F(Perplexity, TextsGoThroughTheTokenizer)
{
    const Folder folder("perplexity_text");
    std::string text;
    for (int i = 0; i < 12; i++)
        text += "Paris is the capital of France. ";
    folder.write("text", text + "\n");
    const Outcome file = perplexity({"-f", folder / "text", "-c", "16"});
    EXPECT_EQ(file.code, 0) << file.err;
    EXPECT_EQ(file.out, perplexity({"-p", text, "-c", "16"}).out);
    const Outcome piped =
        run({"perplexity", "-m", model, "-f", "-", "-c", "16"}, {}, folder / "text");
    EXPECT_EQ(file.out, piped.out);
    EXPECT_EQ(perplexity({"-p", text, "-c", "16", "-d", "REFERENCE"}).code, 0);
}

/* ---- what is printed --------------------------------------------------------------- */

static const std::regex estimate("(\\[[0-9]+\\][0-9]+\\.[0-9]{4},)+\n"
                                 "Final estimate: PPL = [0-9]+\\.[0-9]{4} \\+/- "
                                 "[0-9]+\\.[0-9]{5}\n");

TEST_F(Perplexity, PrintsRunningValuesAndTheEstimate)
{
    const Outcome o = perplexity({"--ids", rows, "-c", "128", "--chunks", "3"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.err, "");
    EXPECT_TRUE(std::regex_match(o.out, estimate)) << o.out;
    EXPECT_EQ(o.out.rfind("[1]", 0), 0u);
    EXPECT_TRUE(contains(o.out, ",[3]")) << o.out;
    EXPECT_FALSE(contains(o.out, "[4]")) << o.out;
}

TEST_F(Perplexity, NumbersHaveAPointInACommaLocale)
{
    const CommaLocale locale;
    REQUIRE_COMMA_LOCALE(locale);
    const Words settings = {"LOCPATH=" + locale.path(),
                            std::string("LC_ALL=") + CommaLocale::name};
    const Outcome o = perplexity({"--ids", rows, "-c", "128", "--chunks", "2"}, settings);
    EXPECT_TRUE(std::regex_match(o.out, estimate)) << o.out;
}

TEST_F(Perplexity, ATerminalIsToldHowLongItTakes)
{
    Terminal t({"perplexity", "-m", model, "--ids", rows, "-c", "128", "--chunks", "3"});
    EXPECT_EQ(t.finish(), 0) << t.text();
    EXPECT_TRUE(contains(t.raw(), "chunk 1 of 3")) << t.raw();
    const std::vector<std::string> lines = t.screen.rows();
    ASSERT_EQ(lines.size(), 3u) << t.text();
    EXPECT_TRUE(std::regex_match(
        lines[0],
        std::regex("xemoe: [0-9]+\\.[0-9]{2} s per chunk: [0-9]+ s for 3 chunks")))
        << lines[0];
    EXPECT_TRUE(std::regex_match(t.text().substr(lines[0].size() + 1), estimate))
        << t.text();
}

/* The values are written to another place. */
TEST_F(Perplexity, TheTimeThatIsLeftStandsOnATerminalOfItsOwn)
{
    const Folder folder("perplexity_out");
    Terminal t({"perplexity", "-m", model, "--ids", rows, "-c", "128", "--chunks", "3"},
               {}, 80, folder / "out");
    EXPECT_EQ(t.finish(), 0) << t.text();
    EXPECT_TRUE(std::regex_search(t.raw(), std::regex("chunk 3 of 3, [0-9]+ s left")))
        << t.raw();
    EXPECT_EQ(t.text(), "");
    EXPECT_TRUE(std::regex_match(read_file(folder / "out"), estimate));
}

TEST_F(Perplexity, CtrlCEndsTheLineAndLeavesNoFile)
{
    const Folder folder("perplexity_stop");
    std::string ids = ids_of({}, 20000);
    Program p({"perplexity", "-m", model, "-d", "REFERENCE", "--ids", ids, "-c", "64",
               "--kl-divergence-base", folder / "base"});
    p.wait_for_output("[1]");
    p.interrupt();
    const Outcome o = p.finish();
    EXPECT_EQ(o.code, 130);
    EXPECT_EQ(o.err, "xemoe: stopped by Ctrl-C\n");
    EXPECT_EQ(o.out.back(), '\n');
    EXPECT_TRUE(folder.names().empty());
}

/* ---- a model with one row of logits ---------------------------------------------------- */

/* Writes the model with a layer that keeps only the logits of the last position. */
static void
write_last_position_model(const Folder &folder)
{
    const auto replace = [](std::string &text, const std::string &old,
                            const std::string &with) {
        const size_t at = text.rfind(old);
        ASSERT_NE(at, std::string::npos) << old;
        text.replace(at, old.size(), with);
    };
    std::string xml = read_file(model + "/openvino_model.xml"),
                bin = read_file(model + "/openvino_model.bin");
    const int64_t constants[] = {-1, 1}; /* which row; along which dimension */
    const std::string n = std::to_string(bin.size()), m = std::to_string(bin.size() + 8);
    const auto constant = [](const char *id, const std::string &offset,
                             const char *dims) {
        return std::string("<layer id=\"") + id + "\" name=\"c" + id +
               "\" type=\"Const\" version=\"opset1\"><data element_type=\"i64\" "
               "shape=\"" +
               (*dims ? "1" : "") + "\" offset=\"" + offset +
               "\" size=\"8\" /><output><port id=\"0\" precision=\"I64\">" + dims +
               "</port></output></layer>";
    };
    const std::string rows = "<dim>-1</dim><dim>-1</dim><dim>1536</dim>",
                      row = "<dim>-1</dim><dim>1</dim><dim>1536</dim>";
    const std::string last =
        constant("901", n, "<dim>1</dim>") + constant("902", m, "") +
        "<layer id=\"903\" name=\"last\" type=\"Gather\" version=\"opset8\"><data "
        "batch_dims=\"0\" /><input><port id=\"0\" precision=\"FP32\">" +
        rows +
        "</port><port id=\"1\" precision=\"I64\"><dim>1</dim></port><port id=\"2\" "
        "precision=\"I64\" /></input><output><port id=\"3\" precision=\"FP32\">" +
        row + "</port></output></layer>";
    replace(xml, "</layers>", last + "</layers>");
    replace(xml, "<edge from-layer=\"648\" from-port=\"2\" to-layer=\"653\"",
            "<edge from-layer=\"648\" from-port=\"2\" to-layer=\"903\" to-port=\"0\" />"
            "<edge from-layer=\"901\" from-port=\"0\" to-layer=\"903\" to-port=\"1\" />"
            "<edge from-layer=\"902\" from-port=\"0\" to-layer=\"903\" to-port=\"2\" />"
            "<edge from-layer=\"903\" from-port=\"3\" to-layer=\"653\"");
    bin.append(reinterpret_cast<const char *>(constants), sizeof(constants));
    folder.write("openvino_model.xml", xml);
    folder.write("openvino_model.bin", bin);
}

/* The only row belongs to the last position, not to the first. */
TEST_F(Perplexity, AModelThatGivesItsLastPositionOnlyIsRefused)
{
    const Folder folder("perplexity_last");
    ASSERT_NO_FATAL_FAILURE(write_last_position_model(folder));
    const Outcome one = run({"logits", "-m", folder.path, "--ids", "1,2,3", "-o", "-"});
    ASSERT_EQ(one.code, 0) << one.err;
    ASSERT_EQ(parse_npy(one.out).rows, 1u);
    for (const Words &more : {Words{"--by-row"}, Words{"-c", "4"}}) {
        Words words = {"perplexity", "-m", folder.path, "--ids", "1,2,3,4,5,6,7,8"};
        words.insert(words.end(), more.begin(), more.end());
        const Outcome o = run(words);
        EXPECT_EQ(o.code, 3) << o.out;
        EXPECT_TRUE(contains(o.err, "logits only for its last position")) << o.err;
    }
}

/* ---- comparison with a file ------------------------------------------------------------ */

class Divergence : public Perplexity
{
  protected:
    Folder folder{"divergence"};
    const std::string base = folder / "base";

    /* Stores the log-probabilities of the model `from`, for three chunks of 128. */
    void keep(const std::string &from)
    {
        const Outcome o =
            run({"perplexity", "-m", from, "--precision", "f32", "--kv", "f32", "--ids",
                 rows, "-c", "128", "--chunks", "3", "--kl-divergence-base", base});
        ASSERT_EQ(o.code, 0) << o.err;
        ASSERT_TRUE(std::regex_match(o.out, estimate)) << o.out;
    }
    Outcome compare(const Words &more) const
    {
        Words words = {"--kl-divergence", "--kl-divergence-base", base};
        words.insert(words.end(), more.begin(), more.end());
        return perplexity(words);
    }
};

TEST_F(Divergence, TheFileIsLlamaPerplexitys)
{
    keep(model);
    const std::string bytes = read_file(base);
    const size_t scored = 128 - 1 - 64, row = 2 * (1536 + 4);
    ASSERT_EQ(bytes.size(), 20 + 4 * 3 * 128 + 3 * scored * row);
    EXPECT_EQ(bytes.compare(0, 8, "_logits_"), 0);
    int32_t sizes[3];
    memcpy(sizes, &bytes[8], sizeof(sizes));
    EXPECT_EQ(sizes[0], 128);
    EXPECT_EQ(sizes[1], 1536);
    EXPECT_EQ(sizes[2], 3);
    for (size_t i = 0; i < 3 * scored; i++) { /* each row's probabilities sum to one */
        const char *p = &bytes[20 + 4 * 3 * 128 + i * row];
        float head[2];
        double sum = 0.0;
        memcpy(head, p, sizeof(head));
        for (size_t k = 0; k < 1536; k++) {
            uint16_t q;
            memcpy(&q, p + 8 + 2 * k, sizeof(q));
            sum += std::exp(head[1] + head[0] * q);
        }
        EXPECT_NEAR(sum, 1.0, 1e-3) << i;
    }
}

TEST_F(Divergence, OnlyAnotherBaseIsReplaced)
{
    const std::string text = "the only copy";
    const Words write = {
        "--ids", rows, "-c", "16", "--chunks", "1", "--kl-divergence-base", base};
    folder.write("base", text);
    const Outcome o = perplexity(write);
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(
        o.err,
        "base exists and is not a file of --kl-divergence-base, so it is not replaced\n"))
        << o.err;
    EXPECT_EQ(o.out, "");
    EXPECT_EQ(read_file(base), text);
    folder.write("base", "_logits_ of another run");
    EXPECT_EQ(perplexity(write).code, 0);
    EXPECT_GT(read_file(base).size(), 1000u);
    folder.write("base", "");
    EXPECT_EQ(perplexity(write).code, 0) << "as mktemp makes it";
}

TEST_F(Divergence, OfTheSameModelIsNextToNothing)
{
    keep(model);
    const Json json = json_of(compare({"--precision", "f32", "--kv", "f32", "--json"}));
    EXPECT_EQ(json.number("/tokens"), 3 * 63);
    EXPECT_EQ(json.number("/chunks"), 3);
    EXPECT_NEAR(json.number("/kld/value"), 0.0, 1e-5);
    /* the rounding to 16 bits */
    EXPECT_NEAR(json.number("/ln_ppl_ratio/value"), 0.0, 2e-3);
    EXPECT_EQ(json.number("/same_top/value"), 1.0);
    EXPECT_LT(json.number("/dp_rms/value"), 1e-3);
}

TEST_F(Divergence, OfAnotherQuantisationIsSomething)
{
    keep(models + "/qwen3moe-tiny/ov/int8_asym");
    const Json json = json_of(compare({"--json", "--chunks", "2"}));
    EXPECT_EQ(json.number("/chunks"), 2);
    EXPECT_GT(json.number("/kld/value"), 1e-4);
    EXPECT_LT(json.number("/kld/value"), 0.1);
    EXPECT_GT(json.number("/kld_quantiles/maximum"),
              json.number("/kld_quantiles/median"));
    EXPECT_GT(json.number("/same_top/value"), 0.9);
    const Outcome o = compare({});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.err, "");
    EXPECT_EQ(o.out.rfind("chunk             PPL", 0), 0u) << o.out;
    for (const char *line : {"\n   3    ", "\nMean PPL(Q)/PPL(base)         : ",
                             "\nMean    KLD: ", "\nSame top p: "})
        EXPECT_TRUE(contains(o.out, line)) << line << o.out;
}

TEST_F(Divergence, FilesThatDoNotFitGetASentence)
{
    keep(model);
    const std::string bytes = read_file(base);
    Outcome o =
        run({"perplexity", "-m", gemma, "--kl-divergence", "--kl-divergence-base", base});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, "base: the file has log-probabilities for a vocabulary "
                                "of 1536 tokens, but the model has"))
        << o.err;
    o = compare({"-c", "64"});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, "has chunks of 128 tokens: omit -c")) << o.err;
    folder.write("base", bytes.substr(0, bytes.size() - 1));
    o = compare({});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, "it is truncated")) << o.err;
    std::string damaged = bytes;
    /* the header of the last row */
    memset(&damaged[bytes.size() - 2 * (1536 + 4)], 0xff, 8);
    folder.write("base", damaged);
    o = compare({});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, "row 62 of chunk 3")) << o.err;
}

/* ---- mistakes ---------------------------------------------------------------------- */

class PerplexityMistakes : public testing::TestWithParam<Mistake>
{
};

TEST_P(PerplexityMistakes, GetOneSentence)
{
    expect_mistake(GetParam(), {"perplexity", "-m", model, "-d", "REFERENCE"});
}

static const Mistake mistakes[] = {
    {"NoText", {}, 2, "which text? Give one of"},
    {"TwoTexts", {"-p", "a", "--ids", "1"}, 2, "which text? Give one of"},
    {"EmptyText", {"-p", ""}, 2, "the text is empty"},
    {"EmptyFile",
     {"-f", "/dev/null"},
     2,
     "/dev/null is empty: there is nothing to score"},
    {"NoFile", {"-f", "/nowhere"}, 3, "/nowhere"},
    {"ShortText",
     {"--ids", "1,2,3", "-c", "4"},
     2,
     "the text has 3 tokens, but at least two chunks of 4"},
    {"TextOfAToken",
     {"--ids", "1", "-c", "4"},
     2,
     "the text has 1 token, but at least two chunks"},
    {"ShortChunk", {"--ids", "1,2,3", "-c", "3"}, 2, "takes at least 4 tokens"},
    {"NoBase", {"--kl-divergence"}, 2, "Give --kl-divergence-base FILE"},
    {"BaseHasTheText",
     {"--kl-divergence", "--kl-divergence-base", "/x", "-p", "a"},
     2,
     "omit -f, -p, --ids and --by-row"},
    {"BaseMissing",
     {"--kl-divergence", "--kl-divergence-base", "/nowhere"},
     3,
     "/nowhere"},
    {"BaseIsNone",
     {"--kl-divergence", "--kl-divergence-base", XM_MODELS_DIR "/README.md"},
     3,
     "README.md: not a file of log-probabilities"},
    {"BaseUnwritable",
     {"--ids", "1,2,3,4,5,6,7,8", "-c", "4", "--kl-divergence-base", "/nowhere/base"},
     3,
     "'/nowhere/base' cannot be written"},
    {"BaseFull",
     {"--ids", "1,2,3,4,5,6,7,8", "-c", "4", "--json", "--kl-divergence-base",
      "/dev/full"},
     3,
     "'/dev/full' cannot be written"},
    {"RowsOfText", {"-p", "a", "--by-row"}, 2, "--by-row needs --ids"},
    {"RowsInChunks",
     {"--ids", "1,2", "--rows", "1"},
     2,
     "--rows can only be used with --by-row"},
};

INSTANTIATE_TEST_SUITE_P(CommandLine, PerplexityMistakes, testing::ValuesIn(mistakes),
                         mistake_name);
