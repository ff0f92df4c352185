/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe info: its first lines about a model, where they come from, and the picture of the graph.
 */
#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>

namespace
{

const std::string tiny = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";

/* Whether a line begins with the label and contains the text, in any column. */
bool
has_row(const std::string &out, const std::string &label, const std::string &text)
{
    std::istringstream lines(out);
    std::string line;
    while (std::getline(lines, line)) {
        if (line.rfind(label + " ", 0) == 0 && contains(line, text))
            return true;
    }
    return false;
}

/* A folder with links to a model's files, to which tests add files. */
class InfoFolder : public testing::Test
{
  protected:
    InfoFolder()
    {
        for (const char *name : {"openvino_model.xml", "openvino_model.bin"})
            std::filesystem::create_symlink(tiny + "/" + name, folder + "/" + name);
    }
    Outcome info(const std::string &config, const Words &more = {})
    {
        made.write("config.json", config);
        Words words = {"info", folder};
        words.insert(words.end(), more.begin(), more.end());
        return run(words);
    }
    const Folder made{"info"};
    const std::string &folder = made.path;
};

/* This includes ports without names in the file. */
TEST(Info, NamesPortsAlikeInTextAndJson)
{
    const Folder folder{"ports"};
    std::string xml = read_file(tiny + "/openvino_model.xml");
    for (size_t at = 0; (at = xml.find(" names=\"", at)) != xml.npos;)
        xml.erase(at, xml.find('"', at + 8) + 1 - at);
    folder.write("openvino_model.xml", xml);
    std::filesystem::create_symlink(tiny + "/openvino_model.bin",
                                    folder / "openvino_model.bin");
    Outcome text = run({"info", folder.path, "-v"}),
            json = run({"info", folder.path, "--json"});
    ASSERT_EQ(json.code, 0) << json.err;
    const Json ports(json.out);
    for (const std::string list : {"/inputs", "/results", "/states"}) {
        const size_t n = yyjson_arr_size(ports.at(list));
        EXPECT_GT(n, 0u) << list;
        for (size_t i = 0; i < n; i++) {
            const std::string at = list + "/" + std::to_string(i);
            std::string row = ports.text(at + "/name");
            row.resize(std::max<size_t>(row.size(), 24), ' ');
            row += " " + ports.text(at + "/type") + "\n";
            EXPECT_NE(text.out.find(row), std::string::npos) << row << text.out;
        }
    }
}

TEST(Info, BeginsWithWhatTheModelIs)
{
    Outcome o = run({"info", tiny});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out.rfind("family        qwen3_moe (Qwen3MoeForCausalLM)\n", 0), 0u)
        << o.out;
    const struct {
        const char *label, *text;
    } rows[] = {
        {"parameters", "7.74 M, of which 3.02 M are active for a token"},
        {"layers", "2"},
        {"experts", "16, of which 4 for each token, width 256"},
        {"attention", "8 heads of 64, 2 KV heads"},
        {"hidden size", "256"},
        {"context", "2048 positions"},
        {"vocabulary", "1536"},
        {"tokenizer", "BPE, 1505 tokens"},
        {"weights", "u4   groups of 64          zero points    3.58 MiB   82.4 %"},
        {"files", "4.64 MiB"},
        {"inputs", "i64[batch,tokens]"},
        {"results", "f32[batch,tokens,1536]"},
        {"states", "f32[batch,2,past,64]"},
    };
    for (const auto &row : rows)
        EXPECT_TRUE(has_row(o.out, row.label, row.text)) << row.label << "\n" << o.out;
    EXPECT_FALSE(contains(o.out, "operations:")) << "only with -v";
    EXPECT_FALSE(contains(o.out, "disagreement")) << o.out;
}

TEST(Info, HasTheSameAsJson)
{
    Json json(run({"info", tiny, "--json"}).out);
    EXPECT_EQ(json.text("/family"), "qwen3_moe");
    EXPECT_EQ(json.text("/architecture"), "Qwen3MoeForCausalLM");
    EXPECT_EQ(json.number("/parameters"), 7743008.0);
    EXPECT_EQ(json.number("/active_parameters"), 3024416.0);
    EXPECT_EQ(json.number("/layers"), 2.0);
    EXPECT_EQ(json.number("/experts/0/experts"), 16.0);
    EXPECT_EQ(json.number("/experts/0/top_k"), 4.0);
    EXPECT_EQ(json.number("/attention/0/kv_heads"), 2.0);
    EXPECT_EQ(json.number("/hidden_size"), 256.0);
    EXPECT_EQ(json.number("/context"), 2048.0);
    EXPECT_EQ(json.number("/vocabulary"), 1536.0);
    EXPECT_EQ(json.text("/tokenizer/kind"), "BPE");
    EXPECT_EQ(json.text("/weights/0/element"), "u4");
    EXPECT_EQ(json.number("/weights/0/group"), 64.0);
    EXPECT_EQ(json.text("/weights/1/group"), "row");
    EXPECT_GT(json.number("/file_bytes"), 4e6);
    EXPECT_EQ(yyjson_arr_size(json.at("/disagreements")), 0u);
}

/* The graph gives most facts; those it cannot give are reported as unknown. */
TEST_F(InfoFolder, NeedsNoFilesBesideTheModel)
{
    Outcome o = run({"info", folder});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(has_row(o.out, "family", "not known: config.json is missing"));
    EXPECT_TRUE(has_row(o.out, "context", "not known"));
    EXPECT_TRUE(
        has_row(o.out, "tokenizer", "none: there is no tokenizer.json beside the model"));
    EXPECT_TRUE(has_row(o.out, "experts", "16, of which 4 for each token, width 256"));
    Json json(run({"info", folder, "--json"}).out);
    EXPECT_EQ(json.at("/family"), nullptr);
    EXPECT_EQ(json.at("/context"), nullptr);
    EXPECT_EQ(json.number("/layers"), 2.0);
}

/* The family is recognized if only one has such layers; a config takes precedence. */
TEST_F(InfoFolder, NamesTheFamilyThatOnlyTheGraphTells)
{
    const std::string oss = XM_MODELS_DIR "/gpt-oss-tiny/ov/int4_sym_g64",
                      gemma = XM_MODELS_DIR "/gemma4-moe-tiny/ov/int4_asym_g32";
    EXPECT_TRUE(has_row(run({"info", oss}).out, "family", "gpt_oss (from the graph; "));
    EXPECT_TRUE(
        has_row(run({"info", gemma}).out, "family", "gemma4_text (from the graph; "));
    EXPECT_EQ(Json(run({"info", gemma, "--json"}).out).text("/family"), "gemma4_text");
    for (const char *name : {"openvino_model.xml", "openvino_model.bin"}) {
        std::filesystem::remove(folder + "/" + name);
        std::filesystem::create_symlink(oss + "/" + name, folder + "/" + name);
    }
    Json named(info("{\"architectures\": [\"OtherForCausalLM\"]}", {"--json"}).out);
    EXPECT_EQ(named.at("/family"), nullptr);
    EXPECT_EQ(Json(info("{}", {"--json"}).out).text("/family"), "gpt_oss");
}

TEST_F(InfoFolder, SaysWhereGraphAndConfigDisagree)
{
    Outcome o = info(R"({"num_experts": 64, "hidden_size": 256, "num_hidden_layers": 1,
                         "num_attention_heads": 8})");
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "layers: 2 in the graph, 1 in config.json")) << o.out;
    EXPECT_TRUE(contains(o.out, "experts: 16 in the graph, 64 in config.json")) << o.out;
    EXPECT_FALSE(contains(o.out, "hidden size: ")) << o.out;
    EXPECT_TRUE(has_row(o.out, "experts", "16, of which 4")) << "the graph is what runs";
    Json json(info("{\"num_experts\": 64}", {"--json"}).out);
    EXPECT_EQ(json.text("/disagreements/0/what"), "experts");
    EXPECT_EQ(json.number("/disagreements/0/config"), 64.0);
}

TEST_F(InfoFolder, SurvivesAnyConfig)
{
    for (const char *config : {"", "[", "null",
                               "{\"text_config\": 5, \"num_experts\": "
                               "-1, \"max_position_embeddings\": 1e99}"})
        EXPECT_EQ(info(config).code, 0) << config;
    EXPECT_TRUE(contains(info("{").out, "family        not known: ")) << info("{").out;
    std::filesystem::remove(folder + "/config.json");
    ASSERT_EQ(mkfifo((folder + "/config.json").c_str(), 0600), 0);
    Outcome o = run({"info", folder});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "not a regular file")) << o.out;
}

/* ---- the picture ------------------------------------------------------------------- */

class Picture : public testing::Test
{
  protected:
    ~Picture() override
    {
        unlink(svg.c_str());
    }
    /* Returns the picture; skips the test and returns "" without the program dot. */
    std::string draw(const std::string &model, const Words &more = {})
    {
        Words words = {"info", model, "--svg", svg, "--device-as", "bmg"};
        words.insert(words.end(), more.begin(), more.end());
        Outcome o = run(words);
        no_dot = contains(o.err, "graphviz");
        EXPECT_TRUE(o.code == 0 || no_dot) << o.err;
        return no_dot ? "" : read_file(svg);
    }
    const std::string svg =
        testing::TempDir() + "xemoe_" + std::to_string(getpid()) + ".svg";
    bool no_dot = false;
};

TEST_F(Picture, HasOneLayerOfEachKindAndItsKernels)
{
    const struct {
        const char *model, *layers;
    } cases[] = {
        {"qwen3moe-tiny/ov/int4_asym_g64", "layers 0, 1 — 2 alike"},
        {"gpt-oss-tiny/ov/int4_sym_g64", "layers 1, 3 — 2 alike"},
        {"gemma4-moe-tiny/ov/int4_asym_g32", "layers 1–4 — 4 alike"},
        {"gemma4-e-tiny/ov/int4_asym_g64", "layer 5"},
    };
    for (const auto &c : cases) {
        std::string text = draw(std::string(XM_MODELS_DIR "/") + c.model);
        if (no_dot)
            GTEST_SKIP() << "no dot";
        EXPECT_TRUE(contains(text, c.layers)) << c.model;
        for (const char *part : {"<svg", "before the layers", "after the layers",
                                 "attention_decode", "linear_gemv", "on bmg"})
            EXPECT_TRUE(contains(text, part)) << c.model << ": " << part;
    }
}

/* One error text of ours, and no output of dot. */
TEST_F(Picture, SaysWhereItCannotBeWritten)
{
    Outcome o =
        run({"info", tiny, "--svg", "/no/such/folder/x.svg", "--device-as", "bmg"});
    if (contains(o.err, "graphviz"))
        GTEST_SKIP() << "no dot";
    EXPECT_EQ(o.code, 3);
    EXPECT_EQ(o.err, "xemoe: '/no/such/folder/x.svg' cannot be written: No such file or "
                     "directory\n");
}

TEST_F(Picture, MayBeOfOneLayer)
{
    std::string text = draw(tiny, {"--layer", "1"});
    if (no_dot)
        GTEST_SKIP() << "no dot";
    EXPECT_TRUE(contains(text, "moe_gate_up"));
    EXPECT_TRUE(contains(text, "layers.1.self_attn"));
    EXPECT_FALSE(contains(text, "layers.0.self_attn"));
    EXPECT_FALSE(contains(text, "before the layers"));
    Outcome none =
        run({"info", tiny, "--svg", svg, "--device-as", "bmg", "--layer", "2"});
    EXPECT_EQ(none.code, 2);
    EXPECT_TRUE(contains(none.err, "there is no layer 2: the model has 2")) << none.err;
    EXPECT_EQ(run({"info", tiny, "--layer", "1"}).code, 2);
    EXPECT_EQ(run({"info", tiny, "--svg", svg, "--device-as", "pentium"}).code, 2);
}

/* Names come from the file, and dot interprets markup. */
TEST_F(Picture, EscapesNames)
{
    const std::string folder =
        testing::TempDir() + "xemoe_<b>&_" + std::to_string(getpid());
    std::filesystem::create_directory(folder);
    std::string xml = read_file(tiny + "/openvino_model.xml");
    const std::string name = "__module.model.embed_tokens/",
                      bad = "&lt;/TD&gt;&amp;&quot;\\N/";
    for (size_t at = 0; (at = xml.find(name, at)) != std::string::npos; at += bad.size())
        xml.replace(at, name.size(), bad);
    std::ofstream(folder + "/openvino_model.xml") << xml;
    std::filesystem::create_symlink(tiny + "/openvino_model.bin",
                                    folder + "/openvino_model.bin");
    std::string text = draw(folder);
    std::filesystem::remove_all(folder);
    if (no_dot)
        GTEST_SKIP() << "no dot";
    EXPECT_TRUE(contains(text, "&lt;")) << text.substr(0, 400);
    EXPECT_TRUE(contains(text, "after the layers"));
}

/* Returns the processor time of all child processes that ended. */
static double
cpu_seconds()
{
    struct rusage u = {};
    getrusage(RUSAGE_CHILDREN, &u);
    return static_cast<double>(u.ru_utime.tv_sec) +
           1e-6 * static_cast<double>(u.ru_utime.tv_usec);
}

/* Sizes of Qwen3-30B-A3B: facts and picture in seconds, without any weights. */
TEST_F(Picture, OfALargeModelTakesSeconds)
{
    const std::string folder =
        testing::TempDir() + "xemoe_large_" + std::to_string(getpid());
    Outcome made =
        run({"make-model",         "-o",  folder,      "--blank", "--hidden",   "2048",
             "--layers",           "48",  "--experts", "128",     "--top-k",    "8",
             "--moe-intermediate", "768", "--heads",   "32",      "--kv-heads", "4",
             "--head-dim",         "128", "--vocab",   "151936",  "--group",    "128"});
    ASSERT_EQ(made.code, 0) << made.err;
    const double start = cpu_seconds();
    std::string text = draw(folder);
    const double taken = cpu_seconds() - start;
    Outcome o = run({"info", folder});
    std::filesystem::remove_all(folder);
    EXPECT_TRUE(
        has_row(o.out, "parameters", "30.5 B, of which 3.35 B are active for a token"))
        << o.out;
    EXPECT_TRUE(has_row(o.out, "weights", "14.5 GiB")) << o.out;
    if (no_dot)
        GTEST_SKIP() << "no dot";
    EXPECT_TRUE(contains(text, "layers 0–47 — 48 alike"));
    EXPECT_LT(taken, 60.0); /* takes 1 s; with sanitizers longer */
}

} // namespace
