/* SPDX-License-Identifier: Apache-2.0
 *
 * Models on Intel's GPU driver, run dry, through a layer that counts OpenCL calls: no call
 * fails, everything is compiled before the second token, a token costs one wait and one
 * flush, memory is what the weights and our own statistics say.
 */
#include "functional_tests/dry_run/dry_run.h"

namespace
{

/* Kernels and copies of a decoded token, at most: in each layer of the plain kind, and outside
 * the layers (embedding, positions, last norm, logits). */
constexpr double A_LAYER = 12, OUTSIDE_LAYERS = 12;

struct Kind {
    const char *name; /* folder below the models */
    int layers;
    double a_layer;  /* more norms, sinks, soft caps: more kernels  */
    size_t passes;   /* how many of moe_passes have work            */
    bool whole_file; /* no: equal constants share their bytes in it */
};
const char *const moe_passes[] = {"FuseVectorizedMOE3GEMM", "ConvertMOEToMOECompressed",
                                  "FuseMOE3GemmCompressed"};
/* clang-format off */
const Kind kinds[] = {
    {"qwen3moe-tiny/ov/int4_asym_g64",     2, A_LAYER, 3, true},
    {"qwen3moe-tiny/ov/int4_sym_g64",      2, A_LAYER, 3, true},
    {"qwen3moe-tiny/ov/int8_asym",         2, A_LAYER, 3, true},
    {"qwen3moe-tiny/ov/int4_asym_g128_r1", 2, A_LAYER, 3, true},
    {"gemma4-moe-tiny/ov/int4_asym_g32",   6, 47,      3, true},
    {"gpt-oss-tiny/ov/int4_sym_g64",       4, A_LAYER, 3, true},
    {"gemma4-e-tiny/ov/int4_asym_g64",     6, 41,      0, false},
};
/* clang-format on */

void
PrintTo(const Kind &kind, std::ostream *out)
{
    *out << kind.name;
}

const char *const prompts[] = {"short", "long"};

std::string
prompt_ids(const std::string &prompt)
{
    std::string ids = "3";
    for (int i = 1; i < (prompt == "long" ? 512 : 5); i++)
        ids += "," + std::to_string(3 + i * 37 % 250);
    return ids;
}

constexpr int TOKENS = 4;

/* What the program said of a run, and what the layer saw. */
struct Seen {
    Outcome outcome;
    Json said, counted;

    double run(size_t i, const std::string &what) const
    {
        return counted.number("/runs/" + std::to_string(i) + "/" + what);
    }
    size_t runs() const
    {
        return yyjson_arr_size(counted.at("/runs"));
    }
};

Seen
generate(const Chip &c, const std::string &model, const std::string &prompt)
{
    std::string file =
        testing::TempDir() + "xemoe_counted_" + std::to_string(getpid()) + ".json";
    Words settings = dry(c);
    settings.push_back("OPENCL_LAYERS=" XM_COUNTING_LAYER);
    settings.push_back("XM_OPENCL_COUNT=" + file);
    Outcome o = run({"generate", "-m", model, "--ids", prompt_ids(prompt), "-n",
                     std::to_string(TOKENS), "--ignore-eos", "--json"},
                    settings);
    EXPECT_EQ(o.code, 0) << o.err;
    Seen seen = {o, Json(o.out), Json(read_file(file))};
    unlink(file.c_str());
    return seen;
}

void
expect_clean_calls(const Seen &s)
{
    EXPECT_NE(s.outcome.err.find("dry run"), std::string::npos) << s.outcome.err;
    EXPECT_EQ(s.said.ids("/ids"), Ids(TOKENS, 0));
    EXPECT_EQ(s.counted.number("/failures"), 0)
        << s.counted.text("/failed/0/call") << s.counted.number("/failed/0/code");
    EXPECT_GT(s.counted.number("/queues/in_order"), 0);
    EXPECT_EQ(s.counted.number("/queues/out_of_order"), 0);
}

/* The first run is the prompt; the others are a token each. The first of them may enlarge the
 * KV cache and give the prompt's buffers back. */
void
expect_lean_tokens(const Seen &s, const Kind &kind)
{
    ASSERT_EQ(s.runs(), static_cast<size_t>(TOKENS));
    EXPECT_GT(s.run(0, "builds"), 0);
    for (size_t i = 1; i < s.runs(); i++) {
        EXPECT_EQ(s.run(i, "builds"), 0) << "token " << i;
        if (i == 1)
            continue;
        EXPECT_EQ(s.run(i, "waits"), 1) << "token " << i;
        EXPECT_EQ(s.run(i, "flushes"), 1) << "token " << i;
        EXPECT_EQ(s.run(i, "allocations"), 0) << "token " << i;
        EXPECT_EQ(s.run(i, "frees"), 0) << "token " << i;
        EXPECT_LE(s.run(i, "kernels") + s.run(i, "copies"),
                  kind.a_layer * kind.layers + OUTSIDE_LAYERS)
            << "token " << i;
    }
}

/* Our statistics are the driver's, and the weights are held once. */
void
expect_lean_memory(const Seen &s, const Kind &kind, const std::string &model)
{
    double peak = s.counted.number("/memory/total_peak");
    double weights = s.said.number("/memory/weights");
    if (kind.whole_file)
        weights = static_cast<double>(
            std::filesystem::file_size(model + "/openvino_model.bin"));
    double beside = s.said.number("/memory/kv_cache") +
                    s.said.number("/memory/activations") +
                    s.said.number("/memory/scratch");
    EXPECT_EQ(peak, s.said.number("/memory/allocated_peak"));
    EXPECT_LE(peak, 1.10 * weights + beside + 1048576.0);
    EXPECT_EQ(s.counted.number("/memory/total"), 0) << "not freed";
}

bool
ran(const Seen &s, const char *pass)
{
    size_t i, n;
    yyjson_val *name;
    yyjson_arr_foreach(s.said.at("/passes"), i, n, name)
    {
        if (yyjson_equals_str(name, pass))
            return true;
    }
    return false;
}

void
print(const Chip &c, const std::string &model, const char *prompt, const Seen &s)
{
    printf("%-6s %-36s %-6s compiled %3.0f | prompt %4.0f kernels | token %4.0f kernels "
           "%3.0f copies %.0f waits %.0f flushes | device %.2f MiB, weights %.2f\n",
           c.name, model.c_str(), prompt, s.counted.number("/builds"),
           s.run(0, "kernels"), s.run(s.runs() - 1, "kernels"),
           s.run(s.runs() - 1, "copies"), s.run(s.runs() - 1, "waits"),
           s.run(s.runs() - 1, "flushes"),
           s.counted.number("/memory/total_peak") / 1048576.0,
           s.said.number("/memory/weights") / 1048576.0);
}

void
expect_lean(const Chip &c, const Kind &kind, const std::string &model)
{
    for (const char *prompt : prompts) {
        SCOPED_TRACE(prompt);
        Seen s = generate(c, model, prompt);
        if (s.outcome.code != 0 || s.runs() == 0)
            return;
        print(c, kind.name, prompt, s);
        expect_clean_calls(s);
        expect_lean_tokens(s, kind);
        expect_lean_memory(s, kind, model);
        for (size_t i = 0; i < kind.passes; i++)
            EXPECT_TRUE(ran(s, moe_passes[i])) << moe_passes[i];
    }
}

using Case = std::tuple<const char *, Kind>;

class DryRun : public testing::TestWithParam<Case>
{
};

TEST_P(DryRun, TokensAreLean)
{
    const Chip &c = chip(std::get<0>(GetParam()));
    const Kind &kind = std::get<1>(GetParam());
    if (!has_intel_driver())
        GTEST_SKIP() << no_driver;
    expect_chip(c);
    expect_lean(c, kind, std::string(XM_MODELS_DIR "/") + kind.name);
}

std::string
case_name(const testing::TestParamInfo<Case> &info)
{
    std::string name =
        std::get<0>(info.param) + std::string("_") + std::get<1>(info.param).name;
    for (char &letter : name) {
        if (!isalnum(letter))
            letter = '_';
    }
    return name;
}

INSTANTIATE_TEST_SUITE_P(XeLp, DryRun,
                         testing::Combine(testing::Values("tgllp"),
                                          testing::ValuesIn(kinds)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Others, DryRun,
                         testing::Combine(testing::Values("skl", "icllp", "dg1", "dg2"),
                                          testing::Values(kinds[0], kinds[5])),
                         case_name);

/* One layer with the dimensions of Qwen3-30B-A3B. */
TEST(DryRunLarge, TokensAreLean)
{
    if (!has_intel_driver())
        GTEST_SKIP() << no_driver;
    std::string folder = testing::TempDir() + "xemoe_dry_" + std::to_string(getpid());
    Outcome made = run(
        {"make-model", "-o",        folder, "--hidden",   "2048", "--layers",
         "1",          "--experts", "128",  "--top-k",    "8",    "--moe-intermediate",
         "768",        "--heads",   "32",   "--kv-heads", "4",    "--head-dim",
         "128",        "--vocab",   "4096", "--group",    "128"});
    ASSERT_EQ(made.code, 0) << made.err;
    expect_lean(chip("tgllp"), {"1 layer of Qwen3-30B-A3B", 1, A_LAYER, 3, true}, folder);
    std::filesystem::remove_all(folder);
}

} // namespace
