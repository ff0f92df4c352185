/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of a decoded token on a CPU device, counted between the program and its driver: few
 * launches, one wait, few flushes, nothing built. functional_tests/dry_run tests GPUs.
 */
#include <thread>

#include "functional_tests/common/files.h"
#include "functional_tests/common/program.h"

namespace
{

struct Kind {
    const char *name;
    int layers;
    double a_layer; /* kernels of a layer */
    /* embedding, positions, last norm, preparing its rows, logits, two of the choice, and the
     * differences between models */
    double outside;
    /* Further kernels of a layer on a processor without dot products of bytes. */
    double without_byte_dots = 0;
};

/* Further kernels of a layer with many processors: attention's keys are cut into partitions,
 * which must be combined, and pieces of gate and up are too small to prepare h. */
double
with_many_processors()
{
    return std::thread::hardware_concurrency() > 4 ? 2 : 0;
}

constexpr int TOKENS = 9; /* the last ones are replayed */

void
PrintTo(const Kind &kind, std::ostream *out)
{
    *out << kind.name;
}

class Launches : public testing::TestWithParam<Kind>
{
};

/* Kernels of a layer: norm; q k v; attention's inputs; attention; its projection; norm; the
 * router's product; routing; gate and up; down. Each writes what the next one reads. */
const Kind kinds[] = {
    {"qwen3moe-tiny/ov/int4_asym_g64", 2, 10, 7},
    {"qwen3moe-tiny/ov/int4_sym_g64", 2, 10, 7},
    {"qwen3moe-tiny/ov/int4_asym_g128_r1", 2, 10, 7},
    /* scales of whole rows: without dot products of four bytes, down reads 16 bits with sums of
     * whole rows, which a kernel of its own prepares */
    {"qwen3moe-tiny/ov/int8_asym", 2, 10, 7, 1},
    {"gpt-oss-tiny/ov/int4_sym_g64", 4, 10, 7},
    {"gemma4-moe-tiny/ov/int4_asym_g32", 6, 14, 11},
    {"gemma4-e-tiny/ov/int4_asym_g64", 6, 13, 16},
};

/* Returns the counts of the OpenCL calls of a run. */
Json
counted_of(const Kind &kind, const Words &options = {})
{
    const std::string file =
        testing::TempDir() + "xemoe_launches_" + std::to_string(getpid()) + ".json";
    Words words = {"generate",
                   "-m",
                   std::string(XM_MODELS_DIR "/") + kind.name,
                   "--ids",
                   "1,2,3,4,5",
                   "-n",
                   std::to_string(TOKENS),
                   "--ignore-eos"};
    words.insert(words.end(), options.begin(), options.end());
    Outcome o =
        run(words, {"OPENCL_LAYERS=" XM_COUNTING_LAYER, "XM_OPENCL_COUNT=" + file});
    EXPECT_EQ(o.code, 0) << o.err;
    const std::string text = read_file(file);
    unlink(file.c_str());
    return Json(text);
}

TEST_P(Launches, OfATokenAreFewAndReplayed)
{
    const Kind &kind = GetParam();
    const Json counted = counted_of(kind);
    const size_t runs = yyjson_arr_size(counted.at("/runs"));
    ASSERT_GE(runs, (size_t)TOKENS);
    const std::string last = "/runs/" + std::to_string(runs - 1) + "/";
    const double launches = kind.layers * kind.a_layer + kind.outside;
    EXPECT_GE(counted.number(last + "kernels"), launches);
    EXPECT_LE(counted.number(last + "kernels"),
              launches + kind.layers * (kind.without_byte_dots + with_many_processors()));
    for (const char *none : {"builds", "allocations", "frees", "objects"})
        EXPECT_EQ(counted.number(last + none), 0) << none;
    EXPECT_EQ(counted.number(last + "waits"), 1);
    EXPECT_LE(counted.number(last + "events"), 1);
    EXPECT_GE(counted.number(last + "flushes"),
              2); /* the device begins before the host has enqueued everything */
    EXPECT_LE(counted.number(last + "flushes"), 4);
    /* Only attention's arguments are bound again for each token. */
    const std::string early = "/runs/" + std::to_string(runs - TOKENS + 2) + "/";
    EXPECT_EQ(counted.number(last + "kernels"), counted.number(early + "kernels"));
    EXPECT_LT(counted.number(last + "arguments"),
              counted.number(early + "arguments") / 2);
}

/* Four texts: one wait for all tokens, after the launches of the next tokens. All launches but
 * attention's are replayed. */
TEST(LaunchesOfTexts, AreThoseOfOneText)
{
    const Json counted = counted_of(kinds[0], {"--parallel", "4"});
    const size_t runs = yyjson_arr_size(counted.at("/runs"));
    ASSERT_GE(runs, (size_t)TOKENS);
    const std::string last = "/runs/" + std::to_string(runs - 1) + "/",
                      early = "/runs/" + std::to_string(runs - TOKENS + 2) + "/";
    EXPECT_EQ(counted.number(last + "waits"), 1);
    EXPECT_EQ(counted.number(last + "events"), 1);
    EXPECT_LE(counted.number(last + "flushes"), 4);
    for (const char *none : {"builds", "allocations", "objects"})
        EXPECT_EQ(counted.number(last + none), 0) << none;
    EXPECT_EQ(counted.number(last + "kernels"), counted.number(early + "kernels"));
    EXPECT_LT(counted.number(last + "arguments"),
              counted.number(early + "arguments") / 10);
    /* The device chooses the tokens of all texts with one launch in each run. */
    double chosen = 0;
    for (const std::string name : {"vec", "gen", "ref"})
        chosen += counted.number("/names/choose_best_" + name);
    EXPECT_GE(chosen, TOKENS - 2);
}

INSTANTIATE_TEST_SUITE_P(Models, Launches, testing::ValuesIn(kinds));

} // namespace
