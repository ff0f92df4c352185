/* SPDX-License-Identifier: Apache-2.0
 *
 * A model over two Intel GPUs, run dry: what a token costs on each of them. The driver shows one
 * chip twice; it cannot show two different ones.
 */
#include <regex>

#include "functional_tests/common/cases.h"
#include "functional_tests/dry_run/dry_run.h"

namespace
{

/* The exchanges of a token: sums and joined values, and their bytes. */
struct Exchanges {
    double sums = 0, sum_bytes = 0, parts = 0, part_bytes = 0;
};

Exchanges
exchanges_of(const std::string &log)
{
    static const std::regex line(R"(all_(reduce|gather) +([0-9.]+) KiB per token)");
    Exchanges e;
    for (std::sregex_iterator i(log.begin(), log.end(), line), end; i != end; ++i) {
        const double bytes = std::stod((*i)[2]) * 1024;
        const bool is_sum = (*i)[1] == "reduce";
        (is_sum ? e.sums : e.parts) += 1;
        (is_sum ? e.sum_bytes : e.part_bytes) += bytes;
    }
    return e;
}

/* What one device did: the members of "of_queues" (functional_tests/opencl_layer/count.c). */
struct Counts {
    double kernels, waits, flushes, copies, copied_bytes;
};

/* Generates n tokens. Returns what was done in the queue of each device that ran kernels. */
std::vector<Counts>
generate(const Chip &c, const char *model, const char *split, int n, Exchanges *exchanges)
{
    const std::string file =
        testing::TempDir() + "xemoe_dry_mesh_" + std::to_string(getpid()) + ".json";
    Settings settings = dry(c);
    settings.insert(settings.end(),
                    {"DEVICES=2", "XM_DEBUG=dispatch", "OPENCL_LAYERS=" XM_COUNTING_LAYER,
                     "XM_OPENCL_COUNT=" + file});
    const Outcome o =
        run({"generate", "-d", "GPU.0,GPU.1", "--split", split, "-m",
             std::string(XM_MODELS_DIR "/") + model, "--ids", "3,40,77", "-n",
             std::to_string(n), "--ignore-eos", "--cache-dir=none", "--json"},
            settings);
    EXPECT_EQ(o.code, 0) << o.err;
    const Json counted(read_file(file));
    unlink(file.c_str());
    EXPECT_EQ(counted.number("/failures"), 0);
    *exchanges = exchanges_of(o.err);
    std::vector<Counts> list;
    for (int i = 0; counted.at("/of_queues/" + std::to_string(i)); i++) {
        const std::string at = "/of_queues/" + std::to_string(i) + "/";
        const Counts q = {counted.number(at + "kernels"), counted.number(at + "waits"),
                          counted.number(at + "flushes"), counted.number(at + "copies"),
                          counted.number(at + "copied_bytes")};
        if (q.kernels > 0)
            list.push_back(q);
    }
    return list;
}

/* The chips of both drivers on which the cases run. */
std::vector<std::string>
some_chips()
{
    return is_current_driver() ? std::vector<std::string>{"lnl", "bmg", "ptl", "dg2"}
                               : std::vector<std::string>{"tgllp", "dg1"};
}

/* A model, and the most launches of a token on each device. */
using Model = std::pair<const char *, double>;
const std::vector<Model> models = {{"qwen3moe-tiny/ov/int4_asym_g64", 22},
                                   {"gpt-oss-tiny/ov/int4_sym_g64", 40},
                                   {"gemma4-moe-tiny/ov/int4_asym_g32", 74}};

class DryMesh : public testing::TestWithParam<std::tuple<Model, std::string>>
{
};

/* Each device waits once for each exchange, flushes at most once for each sum, and copies summands
 * to the host and sums back. Differences of two runs are those of the tokens between them. */
TEST_P(DryMesh, ATokenWaitsForItsExchangesOnly)
{
    enum { FEW = 4, MANY = 8 };
    if (!has_intel_driver())
        GTEST_SKIP() << no_driver;
    const auto &[name, kernels] = std::get<0>(GetParam());
    const char *model = name;
    const Chip &c = chip(std::get<1>(GetParam()));
    for (const char *split : {"tensor", "expert"}) {
        Exchanges e, same;
        const std::vector<Counts> few = generate(c, model, split, FEW, &e),
                                  many = generate(c, model, split, MANY, &same);
        ASSERT_EQ(few.size(), 2u);
        ASSERT_EQ(many.size(), 2u);
        ASSERT_GT(e.sums, 0);
        for (int i : {0, 1}) {
            const auto token = [&](double Counts::*what) {
                return (many[i].*what - few[i].*what) / (MANY - FEW);
            };
            const double flushes = token(&Counts::flushes),
                         bytes = token(&Counts::copied_bytes);
            printf("%-6s %-34s %-6s GPU.%d: %2.0f + %.0f exchanges | %3.0f kernels %2.0f "
                   "waits "
                   "%.1f flushes %2.0f copies %.1f KiB\n",
                   c.name, model, split, i, e.sums, e.parts, token(&Counts::kernels),
                   token(&Counts::waits), flushes, token(&Counts::copies), bytes / 1024);
            EXPECT_LE(token(&Counts::kernels), kernels);
            EXPECT_EQ(token(&Counts::waits), e.sums + e.parts);
            EXPECT_LE(flushes, e.sums);
            EXPECT_LE(token(&Counts::copies), 2 * (e.sums + e.parts));
            EXPECT_LE(bytes, 2 * e.sum_bytes + e.part_bytes + 2048);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Chips, DryMesh,
                         testing::ValuesIn(dealt(some(models, 1), some_chips(), 1)));

} // namespace
