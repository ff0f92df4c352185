/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe verify --against: logits of another program, here OpenVINO's, in each file format; and
 * --every-kernel.
 */
#include <cmath>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "functional_tests/common/comma_locale.h"
#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/terminal.h"
#include "functional_tests/common/text.h"

static const std::string tiny = XM_MODELS_DIR "/qwen3moe-tiny";
static const std::string model = tiny + "/ov/int4_asym_g64";
enum { VOCABULARY = 1536 };

static std::string
bytes_of(const Floats &values)
{
    return std::string(reinterpret_cast<const char *>(values.data()),
                       values.size() * sizeof(float));
}

static std::string
npy(const std::string &shape, const Floats &values)
{
    const std::string header =
        "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n";
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) +
           std::string(1, '\0') + header + bytes_of(values);
}

class Against : public testing::Test
{
  protected:
    Folder folder{"against"};
    std::string ids, text;
    size_t n = 0;
    Floats last; /* OpenVINO's logits of the last position */

    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
        const Json list(read_file(tiny + "/golden/prompts.json"));
        text = list.text("/0/text");
        for (int32_t id : list.ids("/0/ids"))
            ids += (n++ ? "," : "") + std::to_string(id);
        last = Safetensors(tiny + "/golden/openvino_int4_asym_g64.safetensors")
                   .get<float>(list.text("/0/name") + ".last_logits");
        ASSERT_EQ(last.size(), (size_t)VOCABULARY);
    }
    Outcome verify(const std::string &file, const Words &more = {},
                   const Words &settings = {}) const
    {
        Words words = {"verify", "-m", model, "--ids", ids, "--against", folder / file};
        words.insert(words.end(), more.begin(), more.end());
        return run(words, settings);
    }
    /* Returns the logits of all positions, computed by this program. */
    Matrix own_logits() const
    {
        return parse_npy(
            run({"logits", "-m", model, "--ids", ids, "-o", "-", "--precision", "f32"})
                .out);
    }
    std::string all_shape() const
    {
        return "(" + std::to_string(n) + ", 1536)";
    }
};

class EveryKernel : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
        ASSERT_EQ(run({"make-model", "-o", small, "--arch", "qwen3", "--hidden", "64",
                       "--layers", "1", "--intermediate", "128", "--heads", "2",
                       "--kv-heads", "1", "--head-dim", "32", "--vocab", "300"})
                      .code,
                  0);
    }
    Folder folder{"every_kernel"};
    const std::string small = folder / "small";
};

TEST_F(Against, TheLastPositionComesInThreeForms)
{
    folder.write("last.npy", npy("(1536,)", last));
    folder.write("row.npy", npy("(1, 1, 1536)", last));
    folder.write("last.bin", bytes_of(last));
    for (const char *file : {"last.npy", "row.npy", "last.bin"}) {
        const Outcome o = verify(file, {"--json"});
        ASSERT_EQ(o.code, 0) << file << o.err;
        EXPECT_EQ(o.err, "");
        const Json json(o.out);
        EXPECT_EQ(json.number("/positions"), 1);
        EXPECT_EQ(json.number("/per_position/0/position"), n - 1);
        EXPECT_LT(json.number("/nmse"), 1e-3);
        EXPECT_EQ(json.number("/same_top"), 1);
        EXPECT_TRUE(yyjson_is_true(json.at("/pass")));
        EXPECT_EQ(yyjson_arr_size(json.at("/worst_top")), 10u);
    }
}

TEST_F(Against, AllPositionsAreCompared)
{
    Matrix m = own_logits();
    ASSERT_EQ(m.rows, n);
    for (size_t i = 0; i < VOCABULARY; i++) /* one row differs */
        m.data[2 * VOCABULARY + i] += i % 2 ? 0.3f : -0.3f;
    folder.write("all.npy", npy(all_shape(), m.data));
    folder.write("batch.npy", npy("(1, " + std::to_string(n) + ", 1536)", m.data));
    folder.write("all.bin", bytes_of(m.data));
    for (const char *file : {"all.npy", "batch.npy", "all.bin"}) {
        const Json json(verify(file, {"--json", "--precision", "f32"}).out);
        EXPECT_EQ(json.number("/positions"), n);
        EXPECT_EQ(json.number("/worst"), 2) << file;
        EXPECT_NEAR(json.number("/max_difference"), 0.3, 1e-2);
        double mean = 0.0, variation = 0.0, square = 0.0;
        const Floats row = m.row(2);
        for (float x : row)
            mean += (double)x / VOCABULARY;
        for (float x : row) {
            variation += ((double)x - mean) * ((double)x - mean);
            square += (double)x * (double)x;
        }
        const double error = 0.09 * VOCABULARY;
        EXPECT_NEAR(json.number("/per_position/2/nmse"), error / variation,
                    0.02 * error / variation);
        EXPECT_NEAR(json.number("/per_position/2/nmse_sum"), error / square,
                    0.02 * error / square);
        EXPECT_LT(json.number("/per_position/1/nmse"), 1e-5);
        EXPECT_LT(json.number("/nmse"), json.number("/per_position/2/nmse"));
    }
}

TEST_F(Against, TextIsATableAndAVerdict)
{
    folder.write("last.npy", npy("(1536,)", last));
    Outcome o = verify("last.npy");
    EXPECT_EQ(o.code, 0) << o.err;
    for (const char *part :
         {"position  NMSE mean-removed  sum/sum ", "likeliest tokens at position ",
          "\n  10  ", "the likeliest token is the same at 1 of 1 positions; KLD ",
          "\nNMSE ", ": PASS\n"})
        EXPECT_TRUE(contains(o.out, part)) << part << " in\n" << o.out;
    Floats other = last;
    for (size_t i = 0; i < other.size(); i++)
        other[i] += i % 2 ? 2.0f : -2.0f;
    folder.write("off.npy", npy("(1536,)", other));
    o = verify("off.npy");
    EXPECT_EQ(o.code, 1) << "not a step over tolerance, not a failure with a sentence";
    EXPECT_EQ(o.err, "");
    EXPECT_TRUE(ends_with(o.out, "): poor: FAIL\n")) << o.out;
}

/* At each limit where the word for an error changes: one word is printed, and the exit code
 * agrees with it. */
TEST_F(Against, TheVerdictIsOneWordOfOneTable)
{
    const struct {
        double nmse;
        const char *verdict;
        int code;
    } cases[] = {{7e-3, "): good: PASS\n", 0}, {6e-2, "): needs review: FAIL\n", 1}};
    const Floats row = own_logits().row(n - 1);
    double mean = 0.0, variation = 0.0;
    for (float x : row)
        mean += (double)x / VOCABULARY;
    for (float x : row)
        variation += ((double)x - mean) * ((double)x - mean);
    for (const auto &c : cases) {
        Floats other = row;
        const auto step = (float)std::sqrt(c.nmse * variation / VOCABULARY);
        for (size_t i = 0; i < other.size(); i++)
            other[i] += i % 2 ? step : -step;
        folder.write("off.npy", npy("(1536,)", other));
        const Outcome o = verify("off.npy", {"--precision", "f32"});
        EXPECT_EQ(o.code, c.code) << o.err;
        EXPECT_TRUE(ends_with(o.out, c.verdict)) << o.out;
        const Json json(verify("off.npy", {"--precision", "f32", "--json"}).out);
        EXPECT_EQ(yyjson_is_true(json.at("/pass")), c.code == 0);
    }
}

TEST_F(Against, TokensMayComeAsText)
{
    folder.write("last.npy", npy("(1536,)", last));
    folder.write("text", text + "\n");
    const std::string verdict = verify("last.npy").out;
    EXPECT_EQ(
        run({"verify", "-m", model, "-p", text, "--against", folder / "last.npy"}).out,
        verdict);
    EXPECT_EQ(run({"verify", "-m", model, "-f", folder / "text", "--against",
                   folder / "last.npy"})
                  .out,
              verdict);
    EXPECT_EQ(verify("last.npy", {"-d", "REFERENCE"}).code, 0);
}

TEST_F(Against, NumbersHaveAPointInACommaLocale)
{
    const CommaLocale locale;
    REQUIRE_COMMA_LOCALE(locale);
    folder.write("last.npy", npy("(1536,)", last));
    const Outcome o =
        verify("last.npy", {},
               {"LOCPATH=" + locale.path(), std::string("LC_ALL=") + CommaLocale::name});
    EXPECT_TRUE(std::regex_search(
        o.out,
        std::regex("\nNMSE [0-9]\\.[0-9]{2}e-[0-9]+ \\(sum/sum [0-9]\\.[0-9]{2}e")))
        << o.out;
}

TEST_F(Against, ATerminalIsLeftWithTheTable)
{
    folder.write("last.npy", npy("(1536,)", last));
    Terminal t({"verify", "-m", model, "--ids", ids, "--against", folder / "last.npy"},
               {}, 120);
    EXPECT_EQ(t.finish(), 0) << t.text();
    EXPECT_TRUE(contains(t.raw(), "reading ")) << t.raw();
    EXPECT_EQ(t.text(), verify("last.npy").out);
}

TEST_F(Against, FilesThatDoNotFitGetASentence)
{
    Floats nan = last;
    nan[7] = NAN;
    folder.write("empty", "");
    folder.write("odd.bin", "12345");
    folder.write("short.bin", bytes_of(Floats(100)));
    folder.write("ints.npy", "\x93NUMPY");
    folder.write("nan.npy", npy("(1536,)", nan));
    folder.write("two.npy", npy("(2, 768)", last));
    folder.write("rows.npy", npy("(2, 1536)", Floats(2 * VOCABULARY, 1.0f)));
    const struct {
        const char *file, *says;
    } cases[] = {
        {"none.npy", "none.npy"},
        {"empty", "0 bytes are neither an .npy file nor float32 logits"},
        {"odd.bin", "5 bytes are neither"},
        {"short.bin", "logits for a vocabulary of 100 tokens, but the model has 1536"},
        {"ints.npy", "not an .npy file"},
        {"nan.npy", "element 7 of row 0 is NaN"},
        {"two.npy", "logits for a vocabulary of 768 tokens, but the model has 1536"},
        {"rows.npy", "logits of 2 positions, but"},
    };
    for (const auto &c : cases) {
        const Outcome o = verify(c.file);
        EXPECT_EQ(o.code, 3) << c.file << o.err;
        EXPECT_TRUE(contains(o.err, c.says)) << o.err;
        EXPECT_EQ(count(o.err, "\n"), 1u) << o.err;
        EXPECT_EQ(o.out, "") << c.file;
    }
}

/* This includes kernels that no device chooses. A wrong kernel is named. */
TEST_F(EveryKernel, IsComparedWithTheReference)
{
    std::string text = read_file(XM_KERNELS_DIR "/rms_norm_gen.cl");
    const size_t body = text.find('{', text.find("__kernel"));
    ASSERT_NE(body, text.npos);
    std::filesystem::create_directory(folder / "kernels");
    folder.write("kernels/rms_norm_gen.cl", text.insert(body + 1, " return;"));
    const Words words = {"verify",   small, "--ids",         "1,2,3",
                         "--decode", "1",   "--every-kernel"};
    Words json = words;
    json.push_back("--json");
    const Outcome good = run(json),
                  bad = run(words, {"XM_KERNEL_DIR=" + folder / "kernels"});
    ASSERT_EQ(good.code, 0) << good.err;
    std::set<std::string> names;
    const Json result(good.out);
    for (size_t i = 0; i < yyjson_arr_size(result.at("/kernels")); i++) {
        const std::string at = "/kernels/" + std::to_string(i);
        names.insert(result.text(at + "/name"));
        EXPECT_GT(result.number(at + "/compared"), 0);
        EXPECT_LE(result.number(at + "/share_of_tolerance"), 1);
    }
    for (const char *name :
         {"attention_decode_gen", "attention_decode_ref", "linear_gemv_gen", "linear_ref",
          "rms_norm_gen", "rms_norm_vec", "rms_norm_sg"})
        EXPECT_EQ(names.count(name), 1u) << name;
    EXPECT_EQ(bad.code, 5) << bad.err;
    EXPECT_TRUE(std::regex_search(bad.out, std::regex("\n  rms_norm_gen +\\S+  OVER\n")))
        << bad.out;
    EXPECT_TRUE(std::regex_search(bad.out, std::regex("\n  rms_norm_vec +\\S+\n")))
        << bad.out;
    EXPECT_TRUE(contains(bad.out, ", by rms_norm_gen\n")) << bad.out;
}

/* A round whose logits are NaN cannot be continued; the rounds after it still compare theirs. */
TEST_F(EveryKernel, GoesOnBehindANaN)
{
    std::string text = read_file(XM_KERNELS_DIR "/rms_norm_gen.cl");
    const std::string value = "HAS_GAMMA ? v * gamma[i] : v";
    const size_t at = text.find(value);
    ASSERT_NE(at, text.npos);
    std::filesystem::create_directory(folder / "nan");
    folder.write("nan/rms_norm_gen.cl", text.replace(at, value.size(), "NAN"));
    const Words words = {"verify",   small, "--ids",          "1,2,3",
                         "--decode", "1",   "--every-kernel", "--json"};
    const Outcome o = run(words, {"XM_KERNEL_DIR=" + folder / "nan"});
    EXPECT_EQ(o.code, 5) << o.err;
    std::map<std::string, double> share;
    const Json result(o.out);
    for (size_t i = 0; i < yyjson_arr_size(result.at("/kernels")); i++) {
        const std::string kernel = "/kernels/" + std::to_string(i);
        yyjson_val *of = result.at(kernel + "/share_of_tolerance");
        share[result.text(kernel + "/name")] =
            yyjson_is_num(of) ? yyjson_get_num(of) : INFINITY;
    }
    EXPECT_GT(share["rms_norm_gen"], 1.0);
    /* in rounds before and after */
    for (const char *name :
         {"rms_norm_vec", "rms_norm_ref", "linear_ref", "attention_decode_ref"}) {
        ASSERT_EQ(share.count(name), 1u) << name << o.err;
        EXPECT_LE(share[name], 1.0) << name;
    }
}

TEST_F(EveryKernel, IsChosenByNobodyElse)
{
    const Words words = {"verify", small, "--every-kernel"};
    const Outcome forced = run(words, {"XM_FORCE=gen"});
    EXPECT_EQ(forced.code, 2);
    EXPECT_TRUE(contains(forced.err, "unset XM_FORCE")) << forced.err;
    Words numerics = words;
    numerics.push_back("--numerics");
    EXPECT_EQ(run(numerics).code, 2);
}

TEST(VerifyOptions, ThatContradictEachOtherGetASentence)
{
    const struct {
        Words words;
        const char *says;
    } cases[] = {
        {{"--against", "x"}, "which tokens do the logits belong to?"},
        {{"--against", "x", "--ids", "1", "--decode", "2"}, "omit --decode"},
        {{"-p", "a", "-f", "b"}, "give only one of -p TEXT, -f FILE and --ids IDS"},
        {{"-p", ""}, "the prompt is empty"},
        {{"-f", "/dev/null"}, "/dev/null is empty"},
    };
    for (const auto &c : cases) {
        Words words = {"verify", "-m", model};
        words.insert(words.end(), c.words.begin(), c.words.end());
        const Outcome o = run(words);
        EXPECT_EQ(o.code, 2) << o.err;
        EXPECT_TRUE(contains(o.err, c.says)) << o.err;
    }
}
