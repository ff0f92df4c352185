/* SPDX-License-Identifier: Apache-2.0
 *
 * Models split over devices: logits and texts equal those of one device.
 */
#include <algorithm>

#include "functional_tests/cli/mesh_models.h"
#include "functional_tests/common/cases.h"
#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/mistakes.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

namespace
{

const std::string models = XM_MODELS_DIR;
const std::string qwen = models + "/qwen3moe-tiny/ov/int4_asym_g64";

/* Adds options under which messages cost nothing: everything that can be split is, though the
 * models are small. */
Words
on(const std::string &device, Words words, const std::string &split = "tensor")
{
    words.insert(words.end(), {"-d", device, "--split", split, "--precision", "f32"});
    return words;
}
const std::vector<std::string> splits = {"tensor", "expert", "layer"};

class Mesh : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
    static std::string out(const Words &words)
    {
        const Outcome o = run(words);
        EXPECT_EQ(o.code, 0) << o.err;
        return o.out;
    }
    Folder folder{"mesh"};
};

/* ---- logits of every model ---------------------------------------------------------- */

/* A split and its devices. */
using Way = std::pair<const char *, const char *>;
using Case = std::tuple<const char *, Way>;

class MeshLogits : public testing::TestWithParam<Case>
{
};

TEST_P(MeshLogits, AreThoseOfOneDevice)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const auto &[name, way] = GetParam();
    const auto &[split, devices] = way;
    Matrix m[2];
    for (int i : {0, 1}) {
        const Outcome o = run(on(i ? devices : "CPU",
                                 {"logits", "-m", models + "/" + name, "--ids",
                                  "5,77,300,12,9,400,31,8", "-o", "-"},
                                 split));
        ASSERT_EQ(o.code, 0) << o.err;
        m[i] = parse_npy(o.out);
    }
    ASSERT_EQ(m[0].rows, 8u);
    ASSERT_EQ(m[1].rows, m[0].rows);
    for (uint64_t t = 0; t < m[0].rows; t++)
        EXPECT_LE(nmse(m[1].row(t), m[0].row(t)), 1e-10)
            << name << " by " << split << " on " << devices << " row " << t;
}

/* The ways to split a model. A test run gives each model two neighbours of this list, so these
 * differ in their split. */
const std::vector<Way> all_ways = {{"tensor", "CPU,CPU"},
                                   {"expert", "CPU,CPU"},
                                   {"layer", "CPU,CPU"},
                                   {"tensor", "MESH:CPU,CPU(3,1)"},
                                   {"expert", "MESH:CPU,CPU(3,1)"},
                                   {"layer", "MESH:CPU,CPU(3,1)"},
                                   {"tensor", "CPU,CPU,CPU"},
                                   {"expert", "CPU,CPU,CPU"},
                                   {"layer", "CPU,CPU,CPU"},
                                   {"tensor", "MESH:CPU,CPU,CPU,CPU(4,1,2,1)"},
                                   {"expert", "MESH:CPU,CPU,CPU,CPU(4,1,2,1)"},
                                   {"layer", "MESH:CPU,CPU,CPU,CPU(4,1,2,1)"},
                                   {"tensor", "MESH:CPU,CPU,CPU(1,0,1)"},
                                   {"expert", "MESH:CPU,CPU(0.99,0.01)"},
                                   {"layer", "MESH:CPU,CPU(0.99,0.01)"},
                                   {"tensor", "MESH:CPU,CPU,CPU(0.005,0.99,0.005)"},
                                   {"expert", "MESH:CPU,CPU,CPU,CPU(0,1,2,0)"},
                                   {"layer", "MESH:CPU,CPU,CPU(0,3,1)"},
                                   {"tensor", "REFERENCE,REFERENCE"},
                                   {"expert", "REFERENCE,REFERENCE"},
                                   {"layer", "REFERENCE,REFERENCE"}};

INSTANTIATE_TEST_SUITE_P(EveryModel, MeshLogits,
                         testing::ValuesIn(dealt(mesh_models, all_ways, 2)));

/* ---- exchanges -------------------------------------------------------------------------- */

/* Returns the number of lines of XM_DEBUG=dispatch that list an exchange of this kind. */
size_t
count(const std::string &model, const std::string &kind,
      const std::string &split = "tensor")
{
    Words words =
        on("CPU,CPU", {"generate", "-m", model, "--ids", "1", "-n", "1"}, split);
    const Outcome o = run(words, {"XM_DEBUG=dispatch"});
    EXPECT_EQ(o.code, 0) << o.err;
    size_t n = 0;
    for (size_t at = 0; (at = o.err.find("dispatch: " + kind, at)) != std::string::npos;
         at++)
        n++;
    return n;
}

/* Two sums a layer, and the joined rows of the vocabulary. Gemma 4 has a third sum in its six
 * layers, and one layer whose queries share one head of keys. */
TEST_F(Mesh, ALayerOfAMixtureOfExpertsHasTwoSums)
{
    EXPECT_EQ(count(qwen, "all_reduce"), 2u * 2);
    EXPECT_EQ(count(qwen, "all_gather"), 1u);
    const std::string gpt_oss = models + "/gpt-oss-tiny/ov/int4_sym_g64";
    EXPECT_EQ(count(gpt_oss, "all_reduce"), 2u * 4);
    EXPECT_EQ(count(gpt_oss, "all_gather"), 1u);
    const std::string gemma = models + "/gemma4-moe-tiny/ov/int4_asym_g32";
    EXPECT_EQ(count(gemma, "all_reduce"), 3u * 6);
    EXPECT_EQ(count(gemma, "all_gather"), 2u);
}

/* The sum is at the same place whether experts are cut across or the layer is cut between
 * experts. */
TEST_F(Mesh, ExpertsThatAreCutBetweenThemHaveAsManySums)
{
    const std::string gpt_oss = models + "/gpt-oss-tiny/ov/int4_sym_g64";
    for (const auto &[model, layers] : {std::pair(qwen, 2u), std::pair(gpt_oss, 4u)}) {
        EXPECT_EQ(count(model, "all_reduce", "expert"), 2u * layers);
        EXPECT_EQ(count(model, "all_gather", "expert"), 1u);
    }
}

/* Compares a row's error with the same mesh with f32 messages, and checks that messages are half
 * as long. */
TEST_F(Mesh, SumsMayBeSentInHalfTheBytes)
{
    const std::string gpt_oss = models + "/gpt-oss-tiny/gguf/gpt-oss-tiny-MXFP4_MOE.gguf";
    for (const std::string &model : {qwen, gpt_oss})
        for (const char *devices : {"CPU,CPU", "REFERENCE,REFERENCE"}) {
            const Words logits = {"logits",      "-m", model, "--ids",
                                  "5,77,300,12", "-o", "-"};
            Words halves = logits;
            halves.insert(halves.end(), {"--messages", "f16"});
            const Matrix whole = parse_npy(out(on(devices, logits))),
                         half = parse_npy(out(on(devices, halves)));
            ASSERT_EQ(half.rows, 4u);
            for (uint64_t t = 0; t < half.rows; t++) {
                EXPECT_GT(nmse(half.row(t), whole.row(t)), 1e-12) << model << devices;
                EXPECT_LT(nmse(half.row(t), whole.row(t)), 1e-5) << model << devices;
            }
        }
    const Outcome o = run(on("CPU,CPU", {"generate", "-m", qwen, "--ids", "1", "-n", "1",
                                         "--messages", "f16"}),
                          {"XM_DEBUG=dispatch"});
    EXPECT_NE(o.err.find("all_reduce       0.5 KiB per token"), std::string::npos)
        << o.err;
    EXPECT_EQ(o.err.find("all_reduce       1.0 KiB per token"), std::string::npos)
        << o.err;
}

/* The residual stream is passed on, and the logits are returned. */
TEST_F(Mesh, LayersPassOneValueOn)
{
    EXPECT_EQ(count(qwen, "all_", "layer"), 0u);
    EXPECT_EQ(count(qwen, "send       1.0 KiB", "layer"), 1u);
    EXPECT_EQ(count(qwen, "send", "layer"), 2u);
}

/* ---- plans ---------------------------------------------------------------------------- */

Json
plan(Words words)
{
    words.insert(words.begin(), {"plan", qwen, "--json"});
    if (std::find(words.begin(), words.end(), "--split") == words.end())
        words.insert(words.end(), {"--split", "tensor"});
    const Outcome o = run(words);
    EXPECT_EQ(o.code, 0) << o.err;
    return Json(o.out);
}

TEST(MeshPlan, SaysWhatEachRankHoldsAndWhatIsExchanged)
{
    const Json one(run({"plan", qwen, "--json", "--device-as", "bmg"}).out);
    const Json two =
        plan({"--device-as", "2xbmg", "--bandwidth", "2,1", "--link", "4,50"});
    const double experts = one.number("/memory/experts");
    EXPECT_EQ(two.number("/ranks/0/memory/experts"), experts / 2);
    EXPECT_EQ(two.number("/ranks/1/memory/experts"), experts / 2);
    EXPECT_LT(two.number("/ranks/0/memory/weights"), 0.8 * one.number("/memory/weights"));
    EXPECT_EQ(two.number("/exchanges/messages"), 2 * 2 + 1);
    /* four sums of 256 columns, and the other rank's half of 1536 logits, in f32 */
    const double received = 4 * 256 * 4.0 + 1536 / 2 * 4.0;
    EXPECT_EQ(two.number("/exchanges/received_bytes"), received);
    const double exchange_s = 5 * 50e-6 + received / 4e9;
    EXPECT_NEAR(two.number("/forecast/token/exchange_seconds"), exchange_s, 1e-9);
    /* The slower rank reads its weights and some of the cache, and starts about 22 launches. */
    const double read_s = two.number("/ranks/1/memory/token_weights") / 1e9;
    const double seconds = two.number("/forecast/token/seconds") - exchange_s;
    EXPECT_GT(seconds, read_s);
    EXPECT_LT(seconds, 1.6 * read_s + 22 * 4e-6);
    EXPECT_EQ(two.text("/forecast/rates/0/source"), "given");
    EXPECT_EQ(two.number("/forecast/rates/0/read"), 2e9);
    EXPECT_FALSE(two.at("/forecast/prompt")); /* bmg has no known clock */
}

/* --messages f16: the summands of four sums of 256 columns are sent as f16; the logits stay f32. */
TEST(MeshPlan, CountsMessagesOfHalfTheBytes)
{
    const Json half = plan({"--device-as", "2xbmg", "--messages", "f16"});
    EXPECT_EQ(half.number("/exchanges/received_bytes"), 4 * 256 * 2.0 + 1536 / 2 * 4.0);
    const Outcome o = run({"plan", qwen, "--device-as", "bmg", "--messages", "f16"});
    EXPECT_EQ(o.code, 2);
    EXPECT_NE(o.err.find("--messages"), std::string::npos) << o.err;
}

TEST(MeshPlan, ForecastsCardsOnSeveralNodes)
{
    const Json one(run({"plan", qwen, "--json", "--device-as", "b580"}).out);
    EXPECT_EQ(one.number("/room"), 12.0 * (1 << 30));
    EXPECT_EQ(one.text("/forecast/rates/0/source"), "specifications");
    EXPECT_EQ(one.number("/forecast/rates/0/read"), 0.75 * 456e9);
    EXPECT_EQ(one.number("/forecast/prompt/tokens"), 512);
    EXPECT_EQ(one.number("/forecast/token/exchange_seconds"), 0);
    const Json four = plan({"--device-as", "b580", "--nodes", "4", "--link", "25,5"});
    EXPECT_EQ(four.number("/nodes"), 4);
    EXPECT_EQ(four.text("/ranks/3/device"), "b580");
    const Json pairs = plan({"--device-as", "2xb580", "--nodes", "2", "--link", "25,5",
                             "--local-link", "1000,0.001"});
    EXPECT_EQ(pairs.text("/ranks/3/device"), "b580");
    /* Two nodes need one step for a message where four need two. Both receive from three other
     * devices; with two devices a node, one of them is in the same node. */
    const double messages = four.number("/exchanges/messages");
    const double received = four.number("/exchanges/received_bytes");
    EXPECT_NEAR(four.number("/forecast/token/exchange_seconds"),
                messages * 2 * 5e-6 + received / 25e9, 1e-9);
    EXPECT_NEAR(pairs.number("/forecast/token/exchange_seconds"),
                messages * 5.001e-6 + received * 2 / 3 / 25e9, 1e-7);
    EXPECT_GT(four.number("/forecast/prompt/exchange_seconds"),
              four.number("/forecast/token/exchange_seconds"));
}

TEST(MeshPlan, TakesSharesAndUnits)
{
    const Json p = plan({"--device-as", "MESH:bmg,lnl(3,1)", "--bandwidth", "456GB/s",
                         "--link", "25GB/s,5us"});
    EXPECT_EQ(p.text("/ranks/1/device"), "lnl");
    EXPECT_EQ(p.number("/ranks/0/memory/experts"),
              3 * p.number("/ranks/1/memory/experts"));
    EXPECT_TRUE(p.at("/forecast/token"));
    EXPECT_FALSE(plan({"--device-as", "2xbmg"}).at("/forecast"));
}

TEST(MeshPlan, LeavesDevicesWithoutAShareOut)
{
    const Json p = plan({"--device-as", "b580,a770,b580(1,0,1)"});
    EXPECT_EQ(p.text("/ranks/1/device"), "b580");
    EXPECT_FALSE(p.at("/ranks/2"));
    const Outcome o = run({"plan", qwen, "--device-as", "a770,b580(0,1)"});
    EXPECT_NE(o.out.find(" on 1 device: "), std::string::npos) << o.out;
    EXPECT_NE(o.out.find("the only device with a share of the model runs all of it\n"),
              std::string::npos);
}

/* Its exchanges and those of two devices are the same. */
TEST_F(Mesh, ADeviceWithoutAShareTakesNoPart)
{
    const Words words = {"generate", "-m", qwen, "--ids", "5,77", "-n", "4", "-v"};
    const Outcome o = run(on("CPU,NOWHERE_BUT_HERE,CPU(1,0,1)", words));
    EXPECT_EQ(o.code, 4) << "names are checked";
    const std::string said = "CPU.1 has the share 0 of the model: it is not used\n";
    const std::string only = out(on("CPU", words));
    for (const char *devices : {"CPU.0,CPU.1,CPU.2(1,0,1)", "CPU.0,CPU.1(1,0)"}) {
        const Outcome of = run(on(devices, words), {"XM_SUB_DEVICES=3"});
        EXPECT_EQ(of.code, 0) << of.err;
        EXPECT_EQ(of.out, only);
        EXPECT_EQ(::count(of.err, said), 1u) << of.err;
    }
}

TEST(MeshPlan, OfExpertsAndLayersSaysWhatEachRankHolds)
{
    const Json one(run({"plan", qwen, "--json", "--device-as", "bmg"}).out);
    const double experts = one.number("/memory/experts"),
                 weights = one.number("/memory/weights");
    const Json expert = plan({"--device-as", "MESH:bmg,bmg(3,1)", "--split", "expert"});
    EXPECT_EQ(expert.number("/ranks/0/memory/experts"), experts * 3 / 4);
    EXPECT_EQ(expert.number("/ranks/1/memory/experts"), experts / 4);
    EXPECT_EQ(expert.number("/exchanges/messages"), 2 * 2 + 1);
    const Json layer = plan({"--device-as", "2xbmg", "--split", "layer"});
    EXPECT_EQ(layer.number("/exchanges/messages"), 2);
    for (const char *rank : {"/ranks/0", "/ranks/1"})
        EXPECT_LT(layer.number(std::string(rank) + "/memory/weights"), 0.8 * weights);
}

TEST(MeshPlan, SaysWhatDoesNotFit)
{
    const Words wish = {"plan",     qwen, "--device-as", "2xbmg",
                        "--memory", "4",  "--split",     "tensor"};
    const Outcome o = run(wish);
    EXPECT_EQ(o.code, 4);
    EXPECT_NE(o.out.find("too small"), std::string::npos) << o.out;
    EXPECT_NE(o.out.find("of memory on each device, or a model"), std::string::npos);
    EXPECT_EQ(o.err, "xemoe: the model does not fit on these devices\n");
    const auto with = [](Words words, const Words &more) {
        words.insert(words.end(), more.begin(), more.end());
        return words;
    };
    const Json json(run(with(wish, {"--json"})).out);
    ASSERT_TRUE(json.at("/advice/0")) << o.out;
    for (int i = 0; json.at("/advice/" + std::to_string(i)); i++) {
        const std::string at = "/advice/" + std::to_string(i);
        const Words change = {json.text(at + "/option"), json.text(at + "/value")};
        EXPECT_NE(o.out.find("with " + change[0] + " " + change[1]), std::string::npos);
        EXPECT_EQ(run(with(wish, change)).code, 0) << change[0] << change[1];
    }
}

/* The weights are too large for the two cards; a third card makes enough room. */
TEST_F(Mesh, MoreDevicesAndFewerAreCounted)
{
    const std::string big = folder.path + "/big";
    ASSERT_EQ(run({"make-model", "-o", big, "--arch", "qwen3-30b-a3b", "--blank"}).code,
              0);
    const Outcome o = run({"plan", big, "--device-as", "2xa380"});
    EXPECT_EQ(o.code, 4);
    EXPECT_NE(o.out.find("  or --device-as 3xa380\n"), std::string::npos) << o.out;
    EXPECT_EQ(run({"plan", big, "--device-as", "3xa380"}).code, 0);
    /* One device with room for everything is slower, unless messages take long. */
    const std::string faster = "a token on b60 alone, which is faster: ";
    const Words two = {"plan", big, "--device-as", "2xb60", "--link"};
    for (const auto &[link, is_slow] : {std::pair("5,15", false), {"5,500", true}}) {
        Words words = two;
        words.push_back(link);
        const Outcome of_two = run(words);
        EXPECT_EQ(of_two.out.find(faster) != std::string::npos, is_slow) << of_two.out;
    }
}

TEST(MeshPlan, SaysWhereOneDeviceIsFaster)
{
    const Words two = {"--device-as", "2xb580"};
    const Json one(run({"plan", qwen, "--json", "--device-as", "b580"}).out);
    const Json slow = plan(two);
    EXPECT_EQ(slow.text("/forecast/alone/device"), "b580");
    for (const char *what : {"token/seconds", "prompt/seconds"}) {
        const std::string seconds = what;
        EXPECT_EQ(slow.number("/forecast/alone/" + seconds),
                  one.number("/forecast/" + seconds));
        EXPECT_LT(slow.number("/forecast/alone/" + seconds),
                  slow.number("/forecast/" + seconds));
    }
    const Words text = {"plan", qwen, "--split", "tensor", "--device-as", "2xb580"};
    const std::string faster = "a token on b580 alone, which is faster: ";
    EXPECT_NE(run(text).out.find(faster), std::string::npos);
}

/* A card without memory of its own uses a computer's, which need not be this computer. */
TEST(MeshPlan, SaysWhoseMemoryItPlansWith)
{
    const std::string whose = "because 140v has no memory of its own; give the memory";
    for (const char *devices : {"140v", "b580,140v"}) {
        const bool is_mesh = devices[0] == 'b';
        const std::string at = is_mesh ? "/ranks/1/room_of" : "/room_of";
        Words words = {"plan", qwen, "--device-as", devices};
        EXPECT_NE(run(words).out.find(whose), std::string::npos) << devices;
        words.push_back("--json");
        EXPECT_EQ(Json(run(words).out).text(at), "this computer");
        words.insert(words.end(), {"--memory", "8000"});
        EXPECT_EQ(Json(run(words).out).text(at), "--memory");
        words.erase(words.begin() + 4);
        EXPECT_EQ(run(words).out.find(whose), std::string::npos) << devices;
    }
}

/* plan and generate -v use the rates that bench measured. */
TEST_F(Mesh, ForecastsByWhatBenchHasMeasured)
{
    /* PoCL may use its usual cache of kernels, also those built for other tests. */
    const char *home = getenv("HOME"), *pocl = getenv("POCL_CACHE_DIR");
    const Settings cache = {"XDG_CACHE_HOME=" + folder.path,
                            "POCL_CACHE_DIR=" + (pocl ? std::string(pocl)
                                                 : home
                                                     ? home + std::string("/.cache/pocl")
                                                     : folder.path)};
    const auto bench = [&](const char *devices, const Words &more = {}) {
        Words words = {"bench", qwen, "--device", devices, "-p",
                       "64",    "-n", "8",        "-r",    "1"};
        words.insert(words.end(), more.begin(), more.end());
        EXPECT_EQ(Program(words, cache).finish().code, 0) << devices;
    };
    const Words one = {"plan", qwen, "-d", "CPU", "--json"};
    const auto source = [&] {
        const Json json(Program(one, cache).finish().out);
        return json.at("/forecast") ? json.text("/forecast/rates/0/source") : "";
    };
    EXPECT_NE(source(), "measured");
    bench("CPU", {"--no-warmup"});
    EXPECT_NE(source(), "measured") << "of a run that built kernels";
    bench("CPU");
    EXPECT_EQ(source(), "measured");
    const Words text = {"plan", qwen, "-d", "CPU,CPU", "--split", "tensor"};
    /* After a measurement the plan prints another latency than the usual 15 us, or that the ranks'
     * rates are those that they reach beside each other on one memory. */
    const auto is_measured = [&] {
        const std::string plan = Program(text, cache).finish().out;
        EXPECT_NE(plan.find(" us per message"), std::string::npos) << plan;
        return plan.find(" 15 us per message") == std::string::npos ||
               plan.find(" beside the others, as 'xemoe bench' measured") !=
                   std::string::npos;
    };
    EXPECT_FALSE(is_measured());
    bench("CPU/CPU", {"--split", "tensor", "--messages", "f16"});
    EXPECT_FALSE(is_measured()) << "messages of half the bytes";
    bench("CPU/CPU", {"--split", "tensor"});
    EXPECT_TRUE(is_measured());
}

TEST(MeshPlan, NamesWhatIsWrong)
{
    const std::vector<std::pair<Words, const char *>> cases = {
        {{"--device-as", "2xbgm"}, "did you mean bmg?"},
        {{"--device-as", "0xbmg"},
         "'0xbmg' is not a device: COUNTxNAME has a count from 1 to 64"},
        {{"--device-as", "2x"}, "'2x' has no name after the x"},
        {{"--device-as", "bmg,2x"}, "as in b580, 2xb580 or b580,b70(1,2)"},
        {{"--device-as", "65xbmg"}, "'65xbmg' is more devices than a mesh can have"},
        {{"--device-as", "99999999999999999999xbmg"},
         "more devices than a mesh can have"},
        {{"--device-as", "40xbmg,40xbmg"}, "names more than 64 devices"},
        {{"--device-as", "MESH:"}, "the list of devices '' has an empty place"},
        {{"--device-as", "bmg,", "--nodes", "2"}, "'bmg,' has an empty place"},
        {{"--device-as", ",bmg"}, "the list of devices ',bmg' has an empty place"},
        {{"--device-as", "bmg,,bmg"}, "'bmg,,bmg' has an empty place"},
        {{"--device-as", "bmg(3,4"}, "'bmg(3,4' names one device"},
        {{"--device-as", "2xbmg(3,4"}, "the shares '(3,4' lack the ')' at their end"},
        {{"--device-as", "1xbmg"}, "names one device"},
        {{"--device-as", "2xbmg", "--bandwidth", "1,2,3"}, "one for each of the 2"},
        {{"--device-as", "bmg", "--bandwidth", "450,5"}, "one number of GB/s for one"},
        {{"--device-as", "2xbmg", "--bandwidth", "0"}, "'0' is not above 0"},
        {{"--device-as", "2xbmg", "--bandwidth", "1,1e999"}, "'1e999' is too large"},
        {{"--device-as", "2xbmg", "--bandwidth", "1,x"}, "'x' is not a number"},
        {{"--device-as", "2xbmg", "--bandwidth", "1TB/s"}, "'1TB/s' has another unit"},
        {{"--device-as", "2xbmg", "--link", "25"}, "as 25,5"},
        {{"--device-as", "2xbmg", "--link", "25,1e999"}, "'1e999' is too large"},
        {{"--device-as", "bmg", "--link", "25,5"}, "need several devices"},
        {{"--device-as", "2xbmg", "--nodes", "33"},
         "at most 32 machines of 2 devices each"},
        {{"--device-as", "2xbmg", "--local-link", "25,5"}, "needs --nodes"},
        {{"--device-as", "b580", "--prompt", "200000"},
         "at most 131072 tokens, found 200000"},
        {{"--device-as", "b581"}, "did you mean b580?"}};
    for (const auto &[words, sentence] : cases) {
        Words all = {"plan", qwen};
        all.insert(all.end(), words.begin(), words.end());
        const Outcome o = run(all);
        EXPECT_EQ(o.code, 2) << sentence;
        EXPECT_NE(o.err.find(sentence), std::string::npos) << o.err;
    }
}

/* ---- texts -------------------------------------------------------------------------- */

/* The model has two layers: with three ranks by layer, one has no attention but must count
 * positions. */
TEST_F(Mesh, TextsInParallelAreThoseOfOneDevice)
{
    folder.write("prompts.txt", "Once upon a time\nThe little girl\nOne day a dog\n");
    const Words words = {"generate",   "-m", qwen, "-f", folder.path + "/prompts.txt",
                         "--parallel", "2",  "-n", "20"};
    const std::string one = out(on("CPU", words));
    for (const std::string &split : splits) {
        EXPECT_EQ(out(on("CPU,CPU", words, split)), one) << split;
        EXPECT_EQ(out(on("MESH:CPU,CPU,CPU(1,2,1)", words, split)), one) << split;
    }
}

TEST_F(Mesh, ALongPromptIsCutIntoChunks)
{
    std::string story;
    for (int i = 0; i < 20; i++)
        story += "Once upon a time there was a little dog. ";
    const Words words = {"generate", "-m", qwen,       "-p", story,
                         "-n",       "12", "--ubatch", "32"};
    const std::string one = out(on("CPU", words));
    for (const std::string &split : splits)
        EXPECT_EQ(out(on("CPU,CPU", words, split)), one) << split;
}

/* Compares each exchange of the prompt and of decoded tokens, and the logits; by layer the values
 * that arrive. */
TEST_F(Mesh, IsVerifiedAgainstTheWholeProgram)
{
    const std::string gpt_oss = models + "/gpt-oss-tiny/gguf/gpt-oss-tiny-MXFP4_MOE.gguf";
    for (const auto &[model, sums] : {std::pair(qwen, 2 * 2), std::pair(gpt_oss, 2 * 4)})
        for (const std::string &split : splits) {
            const Json json(out(on("CPU,CPU", {"verify", model, "--json"}, split)));
            EXPECT_EQ(json.number("/compared"), split == "layer" ? 2 : sums + 1) << model;
            EXPECT_EQ(json.number("/over"), 0) << model << " " << split;
            for (int i = 0; i < json.number("/compared"); i++)
                EXPECT_LT(json.number("/steps/" + std::to_string(i) + "/error"), 1e-5);
        }
    for (const std::string &split : splits) { /* every step of two layers */
        const Json json(out(on("CPU,CPU", {"verify", qwen, "--inner", "--json"}, split)));
        EXPECT_EQ(json.number("/compared"), 43) << split;
        EXPECT_EQ(json.number("/over"), 0) << split;
    }
    EXPECT_EQ(run({"verify", qwen, "-d", "CPU", "--inner"}).code, 2) << "one device";
    const Outcome o = run(on("CPU,CPU", {"verify", qwen, "--every-kernel"}));
    EXPECT_EQ(o.code, 2);
    EXPECT_NE(o.err.find("only exchanged values are compared"), std::string::npos)
        << o.err;
}

TEST_F(Mesh, ReportsItsDevices)
{
    const Json json(out(on("MESH:CPU,CPU(2,1)",
                           {"generate", "-m", qwen, "--ids", "1", "-n", "2", "--json"})));
    EXPECT_NE(json.text("/device").find("CPU,CPU"), std::string::npos)
        << json.text("/device");
}

/* As in llama-bench, '/' joins devices; a comma separates those that are measured one after the
 * other. */
TEST_F(Mesh, IsMeasured)
{
    const Json json(out({"bench", "-m", qwen, "-p", "2", "-n", "0", "-r", "1", "-o",
                         "json", "--device", "REFERENCE/REFERENCE(2/1),REFERENCE"}));
    EXPECT_EQ(json.text("/0/devices"), "REFERENCE,REFERENCE(2,1)");
    EXPECT_EQ(json.text("/1/devices"), "REFERENCE");
    EXPECT_GT(json.number("/0/avg_ts"), 0);
}

TEST_F(Mesh, CtrlCEndsAllRanks)
{
    const Words words = on("CPU,CPU", {"generate", "-m", qwen, "-p", "Once upon a time",
                                       "-n", "1000000", "--ignore-eos", "-c", "1000000"});
    Words by_layer = words;
    *std::find(by_layer.begin(), by_layer.end(), "tensor") = "layer";
    for (const Words &w : {words, by_layer}) {
        Program p(w);
        ASSERT_TRUE(p.wait_for_output());
        p.interrupt();
        EXPECT_EQ(p.finish().code, 130);
    }
}

/* ---- parts of a processor ------------------------------------------------------------ */

TEST_F(Mesh, AProcessorIsSeveralDevices)
{
    const Words words = {"generate", "-m", qwen, "-p", "Once upon a time", "-n", "12"};
    const std::string one = out(on("CPU", words));
    for (const auto &[devices, names] :
         {std::pair("2", "CPU.0,CPU.1"), std::pair("5", "CPU.0,CPU.4,CPU.2")}) {
        const Outcome o =
            run(on(names, words), {std::string("XM_SUB_DEVICES=") + devices});
        EXPECT_EQ(o.code, 0) << o.err;
        EXPECT_EQ(o.out, one);
    }
    for (const char *wrong : {"0", "33", "x", "-1", ""}) {
        const Outcome o = run({"devices"}, {std::string("XM_SUB_DEVICES=") + wrong});
        if (!*wrong) {
            EXPECT_EQ(o.code, 0) << o.err;
            continue;
        }
        EXPECT_EQ(o.code, 2);
        EXPECT_EQ(o.err, std::string("xemoe: XM_SUB_DEVICES is '") + wrong +
                             "': expected a number from 1 to 32\n");
    }
}

/* ---- one device where several are expected, and several where one is ----------------------- */

TEST(MeshInfo, NamesTheStepsThatWaitForOtherRanks)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Outcome o = run({"info", qwen, "-v", "-d", "CPU,CPU", "--split", "tensor"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.out.find(" = all_reduce (collective) v"), std::string::npos) << o.out;
}

TEST(MeshInfo, SaysWhatEachRankRuns)
{
    const Words words = {"info", qwen, "-v", "-d", "REFERENCE,REFERENCE", "--split"};
    for (const auto &[split, operation] :
         {std::pair("tensor", "all_reduce"), {"layer", "receive"}}) {
        Words all = words;
        all.push_back(split);
        const Outcome o = run(all);
        EXPECT_EQ(o.code, 0) << o.err;
        for (const char *part :
             {"rank 0, REFERENCE:\n", "rank 1, REFERENCE:\n", operation})
            EXPECT_NE(o.out.find(part), std::string::npos) << part;
        all.push_back("--json");
        EXPECT_EQ(Json(run(all).out).text("/devices/1"), "REFERENCE");
    }
}

TEST(OneDevice, IsMeantWhereSeveralAreNamed)
{
    const std::tuple<Words, int, const char *> cases[] = {
        {{"info", qwen, "-d", "REFERENCE,NOWHERE"}, 4, "option -d is 'NOWHERE'"},
        {{"info", qwen, "-d", "CPU,CPU", "--svg", "x"},
         2,
         "draws the steps of one device"},
        {{"info", qwen, "--split", "layer"}, 2, "option --split needs -v"},
        {{"info", qwen, "--device-as", "2xb580", "--svg", "x"},
         2,
         "'2xb580' names several"},
        {{"list", XM_MODELS_DIR, "-d", "CPU,CPU"},
         2,
         "option -d: 'CPU,CPU' names several"},
        {{"list", XM_MODELS_DIR, "-d", "CPU,CPU", "--device-as", "b580"},
         2,
         "give only one of -d and --device-as"},
        {{"list", XM_MODELS_DIR, "--device-as", "b580,b70"}, 2, "'xemoe plan' accepts"},
    };
    for (const auto &[words, code, sentence] : cases) {
        const Outcome o = run(words);
        EXPECT_EQ(o.code, code) << o.err;
        EXPECT_NE(o.err.find(sentence), std::string::npos) << o.err;
    }
}

TEST(OneDevice, HasNothingToSplit)
{
    const Words commands[] = {
        {"generate", qwen, "-d", "REFERENCE", "--ids", "5", "-n", "1"},
        {"logits", qwen, "-d", "REFERENCE", "--ids", "5"},
        {"info", qwen, "-d", "REFERENCE", "-v"},
        {"bench", qwen, "--device", "REFERENCE", "-p", "4", "-n", "1,2", "-r", "1"},
    };
    for (const Words &command : commands) {
        for (const auto &[split, said] : {std::pair("layer", 1u), {"auto", 0u}}) {
            Words words = command;
            words.insert(words.end(), {"--split", split});
            const Outcome o = run(words);
            EXPECT_EQ(o.code, 0) << o.err;
            EXPECT_EQ(::count(o.err, "warning: option --split layer has no effect, "
                                     "because REFERENCE is one device"),
                      said)
                << command[0] << ": " << o.err;
        }
    }
}

/* ---- mistakes ----------------------------------------------------------------------- */

class MeshMistakes : public testing::TestWithParam<::Mistake>
{
};

TEST_P(MeshMistakes, GetOneSentence)
{
    expect_mistake(GetParam(), {"generate", "-m", qwen, "-p", "a", "-n", "1"});
}

const ::Mistake mistakes[] = {
    {"OneDevice", {"-d", "MESH:REFERENCE"}, 2, "a mesh is of two devices or more"},
    {"NoDevice", {"-d", "REFERENCE,NOWHERE"}, 4, "NOWHERE"},
    {"Shares",
     {"-d", "REFERENCE,REFERENCE(1)"},
     2,
     "takes as many shares, one of them above 0"},
    {"NoShares", {"-d", "REFERENCE,REFERENCE(0,0)"}, 2, "the shares '(0,0)' are all 0"},
    {"TooManyForLayers",
     {"-d",
      "REFERENCE,REFERENCE,REFERENCE,REFERENCE,REFERENCE,REFERENCE,REFERENCE,"
      "REFERENCE,REFERENCE,REFERENCE,REFERENCE,REFERENCE,REFERENCE,REFERENCE",
      "--split", "layer"},
     3,
     "too few places to cut"},
    {"Split", {"-d", "REFERENCE,REFERENCE", "--split", "rows"}, 2, "--split"},
};

INSTANTIATE_TEST_SUITE_P(CommandLine, MeshMistakes, testing::ValuesIn(mistakes),
                         mistake_name);

} // namespace
