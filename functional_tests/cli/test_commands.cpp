/* SPDX-License-Identifier: Apache-2.0
 *
 * The program's commands: output, exit codes, and error texts.
 */
#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/mistakes.h"
#include "functional_tests/common/text.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

static const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
static const char *const prompt = "Paris is the capital of";

static Words
operator+(Words a, const Words &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

static std::string
temp_file(const std::string &name, const std::string &content)
{
    std::string path =
        testing::TempDir() + "xemoe_" + std::to_string(getpid()) + "_" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
}

/* ---- without a model --------------------------------------------------------------- */

TEST(Program, ListsItsCommands)
{
    Outcome o = run({"--help"});
    EXPECT_EQ(o.code, 0);
    for (const char *name : {"devices", "info", "plan", "compile", "generate", "chat",
                             "logits", "bench", "perplexity", "verify", "opt", "list"}) {
        EXPECT_TRUE(contains(o.out, name)) << name;
        Outcome help = run({name, "--help"});
        EXPECT_EQ(help.code, 0) << name;
        EXPECT_TRUE(contains(help.out, std::string("usage: xemoe ") + name)) << help.out;
        EXPECT_TRUE(contains(help.out, std::string("\nexample: xemoe ") + name))
            << help.out;
        EXPECT_EQ(run({"help", name}).out, help.out);
    }
    EXPECT_TRUE(contains(o.out, "\nexit codes:\n  0      success\n")) << o.out;
    EXPECT_EQ(run({"help"}).out, o.out);
    EXPECT_EQ(run({"--version"}).out.rfind("xemoe ", 0), 0u);
}

TEST(Devices, EndWithTheReference)
{
    Outcome o = run({"devices", "--rules"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "REFERENCE:"));
    Json json(run({"devices", "--rules", "--json"}).out);
    for (const char *key : {"capabilities", "rules", "sub_groups"})
        EXPECT_TRUE(!has_device() ||
                    yyjson_is_arr(json.at(std::string("/devices/0/") + key)))
            << key << " is a list";
    size_t n = yyjson_arr_size(json.at("/devices"));
    EXPECT_EQ(json.text("/devices/" + std::to_string(n - 1) + "/device"), "REFERENCE");
}

/* Returns the words of an example in the help, after the program's name, up to a '<'. */
static Words
words_of(const std::string &line)
{
    Words words;
    std::string word;
    bool quoted = false;
    for (char c : line + " ") {
        if (c == '\'') {
            quoted = !quoted;
        } else if (c == ' ' && !quoted) {
            if (!word.empty())
                words.push_back(word);
            word = "";
        } else {
            word += c;
        }
    }
    words.erase(words.begin());
    words.erase(std::find(words.begin(), words.end(), "<"), words.end());
    return words;
}

static const char *const commands[] = {
    "devices", "info",  "list", "plan",       "compile", "generate",  "chat",
    "logits",  "bench", "opt",  "perplexity", "verify",  "make-model"};

/* The options of each command are in groups, and each group has an example that the program
 * accepts: it fails only because a file is missing. */
TEST(Program, HasGroupsOfOptionsWithExamples)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Folder folder("examples");
    for (const std::string name : commands) {
        SCOPED_TRACE(name);
        const Outcome help = run({name, "--help"});
        EXPECT_EQ(help.code, 0);
        EXPECT_FALSE(contains(help.out, "\nOptions:")) << "options without a group";
        std::istringstream lines(help.out);
        std::string line, before;
        bool behind_heading = false;
        size_t examples = 0;
        for (; std::getline(lines, line); before = line) {
            const size_t at = line.find("example: xemoe ");
            if (behind_heading) {
                EXPECT_EQ(at, 2u) << before;
            }
            behind_heading = before.empty() && !line.empty() && line.back() == ':';
            if (at == std::string::npos)
                continue;
            examples++;
            Words words = words_of(line.substr(at + strlen("example: ")));
            for (std::string &w : words)
                w = w == "small" ? folder / "small" + std::to_string(examples) : w;
            if (contains(line, " --kernels")) /* it would time kernels for a minute */
                words.push_back("--list");
            EXPECT_EQ(words[0], name) << line;
            const Outcome o = run(words, {"XDG_CACHE_HOME=" + folder.path});
            EXPECT_NE(o.code, 2) << line << "\n" << o.err;
        }
        EXPECT_GE(examples, 2u) << "one of the command, and one of each group";
    }
}

/* All commands show one figure for free memory: that of the device which models may use, as
 * `plan` shows it. Other processes may change it between two commands. */
TEST(Devices, TellTheMemoryThatPlansCountWith)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Json devices(run({"devices", "--json"}).out),
        plan(run({"plan", XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_sym_g64", "--json"}).out);
    const double free = devices.number("/devices/0/room"), room = plan.number("/room");
    EXPECT_GT(free, room / 2);
    EXPECT_LT(free, room * 2);
    const std::string text = run({"devices"}).out;
    EXPECT_TRUE(contains(text, "\n  free for models ")) << text;
    EXPECT_EQ(contains(text, " GiB according to the driver, which is not a limit, "),
              free > devices.number("/devices/0/memory"))
        << text;
}

/* The row has the form of the others: name, quantity, remark. */
TEST(Plan, SaysThatTheMemoryOfAChipIsNotKnown)
{
    const std::string model = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_sym_g64";
    const Outcome o = run({"plan", model, "--device-as", "bmg"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out,
                         "\navailable           not known      cards with this chip have "
                         "different amounts; give it with --memory MIB\n"))
        << o.out;
}

TEST(Devices, TellTheirProperties)
{
    Outcome o = run({"devices", "--properties"});
    EXPECT_EQ(o.code, 0) << o.err;
    for (const char *line :
         {"\n  D  DEVICE_TYPE: ", "\n  DM EXECUTION_DEVICES: ",
          "\n  XM_UBATCH = 512: most prompt",
          "\n  ENABLE_MMAP = YES: accepted, but has no effect: weights are",
          "\n  MODEL_PRIORITY = MEDIUM: accepted, but has no effect\n"})
        EXPECT_TRUE(contains(o.out, line)) << line << " in\n" << o.out;
    const Json json(run({"devices", "--properties", "--json"}).out);
    const auto lines = (size_t)std::count(o.out.begin(), o.out.end(), '\n');
    const size_t headings = 4;
    EXPECT_EQ(yyjson_arr_size(json.at("/read")) + yyjson_arr_size(json.at("/set")),
              lines - headings);
    size_t i, n, found = 0;
    yyjson_val *row;
    yyjson_arr_foreach(json.at("/set"), i, n, row)
    {
        if (strcmp(yyjson_get_str(yyjson_obj_get(row, "name")), "XM_UBATCH") != 0)
            continue;
        found++;
        EXPECT_STREQ(yyjson_get_str(yyjson_obj_get(row, "default")), "512");
        EXPECT_STREQ(yyjson_get_str(yyjson_obj_get(row, "set_for")), "compiled_model");
    }
    EXPECT_EQ(found, 1u);
}

TEST(Program, TakesNamesOfChipsInEitherCase)
{
    const Words words = {"plan", model,      "--json", "-c",
                         "64",   "--memory", "8192",   "--device-as"};
    auto with = [&](const char *chip) {
        Words all = words;
        all.emplace_back(chip);
        return run(all);
    };
    const Outcome upper = with("BMG"), lower = with("bmg");
    EXPECT_EQ(upper.code, 0) << upper.err;
    EXPECT_EQ(upper.out, lower.out);
    EXPECT_EQ(with("Mtl_U").out, with("mtl_u").out);
}

TEST(Program, ListsItsDebugFlagsAndRefusesOthers)
{
    Outcome help = run({"devices"}, {"XM_DEBUG=help"});
    EXPECT_EQ(help.code, 0) << help.err;
    EXPECT_TRUE(contains(help.err, "dispatch")) << help.err;
    Outcome unknown = run({"devices"}, {"XM_DEBUG=passes,nonsense"});
    EXPECT_EQ(unknown.code, 2);
    EXPECT_TRUE(contains(unknown.err, "XM_DEBUG has no flag 'nonsense'")) << unknown.err;
}

/* A dump with more than 64 MiB of weights is replayed with the weights of the model. */
TEST(Opt, ReplaysTheDumpOfALargeModel)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Folder folder("opt");
    const std::string model = folder / "m";
    ASSERT_EQ(run({"make-model", "-o",        model,
                   "--arch",     "qwen3moe",  "--format",
                   "gguf",       "--weights", "q8_0",
                   "--hidden",   "1024",      "--layers",
                   "1",          "--experts", "32",
                   "--top-k",    "4",         "--moe-intermediate",
                   "768",        "--heads",   "4",
                   "--kv-heads", "2",         "--head-dim",
                   "64",         "--vocab",   "512"})
                  .code,
              0);
    const std::string dumps = folder / "d";
    ASSERT_EQ(run({"info", model, "-v"}, {"XM_DUMP=" + dumps}).code, 0);
    std::string first;
    for (const auto &e : std::filesystem::directory_iterator(dumps))
        if (e.path().extension() == ".xmg" && (first.empty() || e.path() < first))
            first = e.path();
    ASSERT_NE(first, "");
    EXPECT_TRUE(contains(read_file(first), "\nfile \"")) << "the model has 77 MiB";
    const Outcome o = run({"opt", "fuse_rms_norm"}, {}, first);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.err, "FuseRMSNorm: changed")) << o.err;
    EXPECT_TRUE(contains(o.out, " data={0, ")) << "which can be replayed again";
    for (const auto &e : std::filesystem::recursive_directory_iterator(model))
        if (e.path().extension() == ".gguf")
            std::filesystem::resize_file(e.path(), e.file_size() - 32);
    const Outcome changed = run({"opt", "fuse_rms_norm"}, {}, first);
    EXPECT_EQ(changed.code, 3);
    EXPECT_TRUE(contains(changed.err, "has changed since this graph text was written"))
        << changed.err;
}

TEST(Opt, RunsAPassOnGraphText)
{
    std::string graph = temp_file("graph.xmg", "graph \"g\"\n"
                                               "%0 = parameter f32[tokens,4] name=\"x\"\n"
                                               "%1 = convert %0 to=f32\n"
                                               "result %1 name=\"y\"\n");
    Outcome o = run({"opt", "remove_no_ops"}, {}, graph);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_FALSE(contains(o.out, "convert")) << o.out;
    EXPECT_TRUE(contains(o.err, "RemoveNoOps: changed")) << o.err;
    EXPECT_TRUE(contains(run({"opt", "RemoveNoOps", "--dot"}, {}, graph).out, "digraph"));
    EXPECT_TRUE(contains(run({"opt", "--list"}).out, "FuseMOE3GemmCompressed"));
    unlink(graph.c_str());
}

/* ---- with a model ------------------------------------------------------------------ */

TEST(Info, SaysWhatTheModelHolds)
{
    Outcome o = run({"info", model});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "i64[batch,tokens]")) << o.out;
    EXPECT_TRUE(contains(o.out, "f32[batch,tokens,1536]")) << o.out;
    Json json(run({"info", model, "--json"}).out);
    EXPECT_EQ(yyjson_arr_size(json.at("/states")), 4u);
    EXPECT_GT(json.number("/constant_bytes/u4"), 3e6);
}

TEST(Info, SaysWhatItCompilesTo)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Outcome o = run({"info", "-v", model});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "mixture of experts: moe_3gemm_fused_compressed 2"))
        << o.out;
}

/* Experts are fused whatever their router is. */
TEST(Info, SaysWhyARoutingIsNotFused)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Outcome o = run({"info", "-v", model}, {"XM_SKIP=FuseMoERouter"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "mixture of experts: moe_3gemm_fused_compressed 2"))
        << o.out;
    EXPECT_TRUE(contains(o.out, "is not fused: FuseMoERouter: the pass is excluded"))
        << o.out;
}

/* Skips each fusion in turn: the reason names the pass that left the experts unfused. */
TEST(Info, SaysWhyExpertsAreNotFused)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const struct {
        const char *skipped, *sentence;
    } cases[] = {
        {"FuseVectorizedMOE3GEMM",
         "is not fused: FuseVectorizedMOE3GEMM: the pass is excluded"},
        {"ConvertMOEToMOECompressed",
         "is not fused: ConvertMOEToMOECompressed: the pass is excluded"},
        {"FuseMOE3GemmCompressed",
         "is not fused: FuseMOE3GemmCompressed: the pass is excluded"},
    };
    for (const auto &c : cases) {
        Outcome o = run({"info", "-v", model}, {std::string("XM_SKIP=") + c.skipped});
        EXPECT_EQ(o.code, 0) << o.err;
        EXPECT_TRUE(contains(o.out, "mixture of experts: gather_matmul 6")) << o.out;
        EXPECT_TRUE(contains(o.out, c.sentence)) << o.out;
    }
}

TEST(Generate, ContinuesATextOnTheDefaultDevice)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    Outcome o = run({"generate", "-m", model, "-p", prompt, "-n", "8", "-v"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out.rfind(" France.", 0), 0u) << o.out;
    EXPECT_TRUE(contains(o.err, "FuseMOE3GemmCompressed")) << o.err;
    EXPECT_TRUE(contains(o.err, "tokens/s")) << o.err;
}

TEST(Generate, TakesThePromptFromAFileAndGivesJson)
{
    std::string file = temp_file("prompt.txt", prompt);
    Outcome o = run({"generate", "--model", model, "--file", file, "-n2", "--json",
                     "--device=REFERENCE"});
    ASSERT_EQ(o.code, 0) << o.err;
    Json json(o.out);
    EXPECT_EQ(json.text("/text"), " France.");
    EXPECT_EQ(json.ids("/prompt_ids"), (Ids{1343, 266, 267, 265, 269}));
    EXPECT_EQ(json.ids("/ids").size(), 2u);
    EXPECT_EQ(json.number("/timings/prompt_tokens"), 5);
    EXPECT_EQ(json.text("/passes/0"), "FoldDequantize");
    EXPECT_EQ(json.text("/device"), "REFERENCE");
    unlink(file.c_str());
}

TEST(Generate, DrawsTheSameTokensForTheSameSeed)
{
    Words words = {"generate", "-m",      model,  "-d",     "REFERENCE", "-p",
                   prompt,     "-n",      "6",    "--temp", "1.5",       "--top-k",
                   "50",       "--top-p", "0.95", "--seed", "7",         "--ignore-eos"};
    Outcome a = run(words), b = run(words);
    EXPECT_EQ(a.code, 0) << a.err;
    EXPECT_EQ(a.out, b.out);
}

TEST(Generate, WritesOnlyWholeCharacters)
{
    Outcome o = run(
        {"generate", "-m", model, "-d", "REFERENCE", "-n", "3", "-p",
         "I like 🍎 and 🍌, but not 🧅. 😀👍 東京は日本の首都です。 "
         "Žluťoučký "
         "kůň pěl "
         "ďábelské ódy u řeky. Le café est fermé à midi, mais la"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, " crê")) << o.out;
    EXPECT_FALSE(contains(o.out, "\xef\xbf\xbd")) << o.out;
}

/* Options of llama.cpp with the same meaning. */
TEST(Program, TakesNamesOfOptionsOfLlamaCpp)
{
    const Words words = {"generate", "/nowhere", "-dev", "REFERENCE", "-p", "x"};
    for (const Words &option :
         {Words{"--n-predict", "4"}, Words{"--predict", "4"}, Words{"--ctx-size", "64"},
          Words{"-ub", "32"}, Words{"--ubatch-size", "32"}, Words{"--temperature", "1"},
          Words{"-ctk", "f16"}, Words{"-sp"}, Words{"--chat", "-sys", "Be brief."},
          Words{"--chat", "--system-prompt", "Hi"}})
        EXPECT_EQ(run(words + option).code, 3) << option[0] << ": it fails for the model";
    EXPECT_NE(run({"generate", "/nowhere", "-p", "x", "-np", "2"}).code, 2);
    for (const char *option : {"-sys", "--system-prompt", "--n-predict", "-ub"})
        EXPECT_EQ(run({"chat", "/nowhere", option, "4"}).code, 3) << option;
    for (const char *option : {"-ub", "--ctx-size", "-np", "--chunk", "--ubatch"})
        EXPECT_EQ(run({"plan", "/nowhere", option, "4"}).code, 3) << option;
    EXPECT_EQ(run({"perplexity", "/nowhere", "--ids", "1,2", "--ctx-size", "4"}).code, 3);
}

TEST(Generate, StopsAtCtrlC)
{
    Program p({"generate", "-m", model, "-d", "REFERENCE", "-p", prompt, "-n", "1000000",
               "--ignore-eos"});
    p.wait_for_output();
    p.interrupt();
    Outcome o = p.finish();
    EXPECT_EQ(o.code, 130) << o.err;
    EXPECT_EQ(o.out.rfind(" France", 0), 0u) << o.out;
}

/* The help's meaning of 0: no penalty, and no separate bound for the KV cache. */
TEST(Generate, ZeroIsTheDefaultOfAPenaltyAndOfTheCachesMemory)
{
    const std::string help =
        std::regex_replace(run({"generate", "--help"}).out, std::regex("\\s+"), " ");
    EXPECT_TRUE(contains(help, "tokens that have occurred (0 or 1: off)")) << help;
    EXPECT_TRUE(contains(
        help,
        "memory of the KV cache; 0 (default): the memory that the model leaves free"));
    const Words words = {"generate", model, "-d", "REFERENCE", "-p", prompt, "-n", "4"};
    const Outcome zero = run(words + Words{"--repeat-penalty", "0"});
    EXPECT_EQ(zero.code, 0) << zero.err;
    EXPECT_EQ(zero.out, run(words).out);
    EXPECT_EQ(run(words + Words{"--repeat-penalty", "1"}).out, zero.out);
    if (!has_device())
        return;
    const Words plan = {"plan", model, "-c", "2048", "--kv-memory"};
    EXPECT_EQ(run(plan + Words{"1"}).code, 4);
    EXPECT_EQ(run(plan + Words{"0"}).code, 0);
}

TEST(Generate, WorksWithoutATokenizer)
{
    std::string folder = testing::TempDir() + "xemoe_bare_" + std::to_string(getpid());
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    for (const char *name : {"/openvino_model.xml", "/openvino_model.bin"})
        ASSERT_EQ(symlink((model + name).c_str(), (folder + name).c_str()), 0);
    Outcome o = run({"generate", "-m", folder, "-d", "REFERENCE", "--ids",
                     "1343 266 267 265 269", "-n", "2"});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out, "1024\n13\n");
    EXPECT_TRUE(contains(o.err, "no tokenizer.json")) << o.err;
    Folder graphs("graphs_of_passes");
    for (const Words &words :
         {Words{"generate", "-p", prompt}, {"verify", "-p", prompt}, {"chat"}}) {
        Words all = words;
        all.insert(all.end(), {"-m", folder});
        o = run(all, {"XM_DUMP=" + graphs.path});
        EXPECT_EQ(o.code, 3);
        EXPECT_TRUE(contains(o.err, "no tokenizer.json beside the model")) << o.err;
        EXPECT_TRUE(graphs.names().empty()) << "compiled before it was said";
    }
    /* The tokenizer of another model: all its ids are beyond this model's vocabulary. */
    std::ofstream(folder + "/tokenizer.json")
        << R"({"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":null,)"
        << R"("post_processor":null,"decoder":null,"model":{"type":"BPE",)"
        << R"("vocab":{"P":1536,"a":1537},"merges":[]}})";
    o = run({"generate", "-m", folder, "-d", "REFERENCE", "-p", "Pa"});
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, "belongs to another model")) << o.err;
    unlink((folder + "/tokenizer.json").c_str());
    for (const char *name : {"/openvino_model.xml", "/openvino_model.bin"})
        unlink((folder + name).c_str());
    rmdir(folder.c_str());
}

TEST(Logits, TakeIdsFromFiles)
{
    std::string text = temp_file("ids.txt", "1343,266\n267 265 269\n");
    Words words = {"logits", "-m", model, "-d", "REFERENCE", "--ids", "@" + text};
    Outcome o = run(words);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "\n4 1024 ")) << o.out;
    words.back() = "@" XM_MODELS_DIR "/qwen3moe-tiny/golden/ppl_tokens.npy:3";
    words.push_back("--json");
    o = run(words);
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(Json(o.out).number("/tokens"), 256);
    unlink(text.c_str());
}

/* ---- where the model is given ---------------------------------------------------------- */

TEST(Model, IsAWordAnOptionOrTheEnvironments)
{
    const Words rest = {"-d", "REFERENCE", "-p", prompt, "-n", "1"};
    const std::string text = run(Words{"generate", "-m", model} + rest).out;
    EXPECT_NE(text, "");
    EXPECT_EQ(run(Words{"generate", model} + rest).out, text);
    EXPECT_EQ(run(Words{"generate"} + rest, {"XM_MODEL=" + model}).out, text);
    EXPECT_EQ(run(Words{"generate", model} + rest, {"XM_MODEL=/nowhere"}).out, text);
    const std::string facts = run({"info", model}).out;
    EXPECT_EQ(run({"info", "-m", model}).out, facts);
    EXPECT_EQ(run({"info"}, {"XM_MODEL=" + model}).out, facts);
}

/* ---- mistakes: exit code and a sentence -------------------------------------------- */

class Mistakes : public testing::TestWithParam<Mistake>
{
};

TEST_P(Mistakes, AreOneSentenceAndACode)
{
    expect_mistake(GetParam());
}

static const std::string rows = "@" XM_MODELS_DIR "/qwen3moe-tiny/golden/ppl_tokens.npy";

static const Mistake mistakes[] = {
    {"Command",
     {"genrate"},
     2,
     "there is no command 'genrate': did you mean 'generate'? See 'xemoe --help'"},
    {"HelpMistyped", {"hlep"}, 2, "there is no command 'hlep': did you mean 'help'?"},
    {"VersionWithoutDashes", {"version"}, 2, "did you mean '--version'?"},
    {"HelpOfNoCommand", {"help", "genrate"}, 2, "did you mean 'generate'?"},
    {"LongOption",
     {"generate", "--modle", "x"},
     2,
     "there is no option --modle: did you mean --model? See 'xemoe generate --help'"},
    {"ModelByTwoWays", {"generate", model, "-m", model}, 2, "MODEL is given already"},
    {"ShortOption", {"info", "-x"}, 2, "there is no option -x"},
    {"FlagWithValue", {"generate", "--ignore-eos=1"}, 2, "takes no value"},
    {"NoValue", {"generate", "-m"}, 2, "needs a value"},
    {"NoTokens",
     {"generate", "-m", model, "-p", prompt, "-n", "0"},
     2,
     "whole number from 1"},
    {"NegativeTokens",
     {"generate", "-m", model, "-p", prompt, "-n", "-2"},
     2,
     "whole number from 1 to 16777216, or -1"},
    {"Temperature", {"generate", "-m", model, "-p", prompt, "--temp", "hot"}, 2, "'hot'"},
    {"TemperatureBeyondFloat",
     {"generate", "-m", model, "-p", prompt, "--temp", "1e99"},
     2,
     "option --temp takes a number from 0 to 3.4e38, found '1e99'"},
    {"TopP", {"generate", "-m", model, "-p", prompt, "--top-p", "1.5"}, 2, "up to 1"},
    {"EmptyStop",
     {"generate", "-m", model, "-p", prompt, "--stop", ""},
     2,
     "option --stop"},
    {"TopPBeforeTheModel",
     {"generate", "-m", "/nowhere", "-p", prompt, "--top-p", "1.5"},
     2,
     "found 1.5"},
    {"NoPrompt", {"generate", "-m", model}, 2, "write a prompt"},
    {"TwoPrompts",
     {"generate", "-m", model, "-p", "a", "--ids", "1"},
     2,
     "give only one prompt"},
    {"EmptyPrompt", {"generate", "-m", model, "-p", ""}, 2, "the prompt is empty"},
    {"NoModel", {"generate", "-p", prompt}, 2, "MODEL is missing"},
    {"NoPromptFile", {"generate", "-m", model, "-f", "/nowhere.txt"}, 3, "/nowhere.txt"},
    {"Precision",
     {"generate", "-m", model, "-p", prompt, "--precision", "f8"},
     2,
     "'f8'"},
    {"Ubatch",
     {"generate", "-m", model, "-p", prompt, "--ubatch", "5000000000"},
     2,
     "option --ubatch is '5000000000'"},
    {"UbatchOfAMillion",
     {"generate", "-m", model, "-p", prompt, "--ubatch", "1000000"},
     2,
     "expected 1 to 65536"},
    {"CacheType",
     {"generate", "-m", model, "-p", prompt, "--kv", "i5"},
     2,
     "option --kv takes one of f32 f16 i8 u8 q8_0 u4 i4 q4_0, found 'i5'"},
    {"CacheTypeWithoutAFormat",
     {"chat", "-m", model, "-ctv", "u3"},
     2,
     "option -ctv takes one of f32 f16 i8"},
    {"Offload",
     {"generate", "-m", model, "-p", prompt, "--offload", "101"},
     2,
     "option --offload is 101"},
    {"OffloadOfNothing",
     {"verify", "-m", model, "-p", prompt, "--offload", "half"},
     2,
     "'half'"},
    {"CacheMemory",
     {"generate", "-m", model, "-p", prompt, "--kv-memory", "much"},
     2,
     "option --kv-memory is 'much'"},
    {"CacheMemoryOfPlan", {"plan", model, "--kv-memory", "-1"}, 2, "--kv-memory"},
    {"WeightsOfPlan", {"plan", model, "--weights", "mmap"}, 2, "option --weights"},
    {"CacheTypeOfPlan", {"plan", model, "--kv", "u3"}, 2, "option --kv takes one of f32"},
    {"KeyCacheType",
     {"plan", model, "--cache-type-k", "u3"},
     2,
     "option --cache-type-k takes one of f32"},
    {"KeyCacheTypeByItsShortName",
     {"plan", model, "-ctk", "u3"},
     2,
     "option -ctk takes one of f32"},
    {"ValueCacheType",
     {"verify", "-m", model, "--cache-type-v", "u3"},
     2,
     "option --cache-type-v takes one of f32"},
    {"LittleCacheOfPlan", {"plan", model, "--kv-memory", "1"}, 4, "a larger --kv-memory"},
    {"OffloadOfPlan", {"plan", model, "--offload", "101"}, 2, "option --offload"},
    {"PrecisionOfPlan", {"plan", model, "--precision", "f8"}, 2, "'f8'"},
    {"HugeOffloadOfPlan",
     {"plan", model, "--offload", "18446744073709551615"},
     2,
     "--offload"},
    {"MemoryOfPlan",
     {"plan", model, "--memory", "17592186044417"},
     2,
     "--memory takes at most"},
    {"HugeMemoryOfPlan",
     {"plan", model, "--memory", "18446744073709551615"},
     2,
     "--memory takes at most"},
    {"RequestsOfPlan",
     {"plan", model, "--parallel", "1000000"},
     2,
     "--parallel takes at most"},
    {"ChipOfPlan",
     {"plan", model, "--device-as", "tigerlake"},
     2,
     "option --device-as: there is no chip or card 'tigerlake'"},
    {"Comma",
     {"generate", "-m", model, "-p", "a", "--temp", "0,5"},
     2,
     "--temp takes a number from 0, found '0,5': write '.' as the decimal point"},
    {"BlankMessage",
     {"generate", "-m", model, "--chat", "-p", " \n\t"},
     2,
     "the message contains only spaces"},
    {"EmptyModel", {"plan", ""}, 2, "MODEL is an empty word"},
    {"EmptyModelOfGenerate",
     {"generate", "-m", "", "-p", "a"},
     2,
     "MODEL is an empty word"},
    {"EmptyFolder", {"list", ""}, 2, "FOLDER is an empty word"},
    {"Url",
     {"info", "https://huggingface.co/Qwen/Qwen3-30B-A3B"},
     3,
     "'https://huggingface.co/Qwen/Qwen3-30B-A3B' is a URL: download the model"},
    {"UrlOfGenerate", {"generate", "hf://Qwen", "-p", "a"}, 3, "is a URL"},
    {"NotAHubName", {"info", "nowhere/model.xml"}, 3, "nowhere/model.xml"},
    {"HubNameWithAFormat",
     {"generate", "openai/gpt-oss-20b:Q4_K_M", "-p", "a"},
     3,
     "if it is a name on Hugging Face"},
    {"HubName",
     {"generate", "Qwen/Qwen3-30B-A3B", "-p", "a"},
     3,
     "if it is a name on Hugging Face, download a GGUF file"},
    {"ChipAndDeviceOfPlan",
     {"plan", model, "--device-as", "bmg", "-d", "CPU"},
     2,
     "give only one of -d and --device-as: a device of this computer, or a chip"},
    {"ChipAndDeviceOfList",
     {"list", "/nowhere", "--device-as", "bmg", "-d", "GPU"},
     2,
     "give only one of -d and --device-as"},
    {"ChipAndDeviceOfAPicture",
     {"info", model, "--svg", "x.svg", "--device-as", "bmg", "-d", "GPU"},
     2,
     "give only one of -d and --device-as"},
    {"NearChip",
     {"plan", model, "--device-as", "BGM"},
     2,
     "option --device-as: there is no chip or card 'BGM': did you mean bmg?"},
    {"NearPreset",
     {"make-model", "-o", "/nowhere/m", "--arch", "Qwen3Moe"},
     2,
     "--arch is 'Qwen3Moe': did you mean qwen3moe?"},
    {"ContextOfPlan",
     {"plan", model, "--context", "16777217"},
     2,
     "--context takes at most 16777216"},
    {"ContextOfGenerate", /* refused before the model is opened */
     {"generate", "-m", "/nowhere", "-p", prompt, "-c", "16777217"},
     2,
     "--context takes at most 16777216"},
    {"ContextOfChat",
     {"chat", "-m", "/nowhere", "-c", "18446744073709551614"},
     2,
     "--context takes at most 16777216"},
    {"SeedAsInLlamaCpp",
     {"generate", "-m", "/nowhere", "-p", prompt, "-s", "42"},
     2,
     "option --system can only be used with --chat; the seed is --seed"},
    {"NoIdBetweenCommas",
     {"generate", "-m", "/nowhere", "--ids", "1,,2"},
     2,
     "--ids: there is no token id before the comma at character 3"},
    {"NoIdBeforeTheComma",
     {"logits", "-m", "/nowhere", "--ids", " ,1"},
     2,
     "before the comma at character 2"},
    {"NoIdBehindTheComma",
     {"verify", "-m", "/nowhere", "--ids", "1, 22, "},
     2,
     "after the comma at character 6"},
    {"NoIdAtAll",
     {"perplexity", "-m", "/nowhere", "--ids", "1,x"},
     2,
     "'x' is not a token id"},
    {"IdsApartInEveryWay",
     {"logits", "-m", "/nowhere", "--ids", "1, 2 3"},
     3,
     "/nowhere"},
    {"NoRoomForAToken",
     {"generate", model, "-d", "REFERENCE", "--ids", "5", "-c", "1"},
     2,
     "the prompt has 1 token, which leaves no room in a context of 1 token: give a "
     "larger -c"},
    {"MissingModel", {"generate", "-m", "/nowhere", "-p", prompt}, 3, "/nowhere"},
    {"NotAModel", {"info", XM_MODELS_DIR "/README.md"}, 3, "README.md"},
    {"Device",
     {"generate", "-m", "/nowhere", "-p", prompt, "-d", "TPU"},
     4,
     "option -d is 'TPU', which is not a device of this computer; available: "},
    {"DeviceInLowerCase",
     {"plan", "/nowhere", "-d", "reference"},
     4,
     "option -d is 'reference', which is not a device of this computer: did you mean "
     "REFERENCE?"},
    {"DeviceOfInfo", {"info", model, "-d", "GPU.99"}, 4, "option -d is 'GPU.99'"},
    {"DeviceOfPlan", {"plan", "/nowhere", "-d", "TPU"}, 4, "option -d is 'TPU'"},
    {"DeviceOfBench",
     {"bench", "/nowhere", "--device", "TPU"},
     4,
     "option --device is 'TPU'"},
    {"AShortOption", {"generate", "/nowhere", "-n", "x"}, 2, "option -n takes"},
    {"HugeId",
     {"logits", "-m", model, "-d", "REFERENCE", "--ids", "5000"},
     2,
     "token id 5000 is not in the vocabulary of 1536"},
    {"WordAsId",
     {"logits", "-m", model, "-d", "REFERENCE", "--ids", "1,two"},
     2,
     "'two'"},
    {"NoIds",
     {"logits", "-m", model, "-d", "REFERENCE", "--ids", " "},
     2,
     "no token ids"},
    {"NoSuchRow",
     {"logits", "-m", model, "-d", "REFERENCE", "--ids", rows + ":10"},
     3,
     "no row 10"},
    {"ManyRows", {"logits", "-m", model, "-d", "REFERENCE", "--ids", rows}, 2, "10 rows"},
    {"NoIdsFile",
     {"logits", "-m", model, "-d", "REFERENCE", "--ids", "@/nowhere"},
     3,
     "/nowhere"},
    {"Unwritable",
     {"logits", "-m", model, "-d", "REFERENCE", "--ids", "1", "-o", "/nowhere/a.npy"},
     3,
     "/nowhere/a.npy"},
    {"OneToken",
     {"perplexity", "-m", model, "-d", "REFERENCE", "--by-row", "--ids", "1"},
     2,
     "two tokens"},
    {"VerifyReference",
     {"verify", "-m", model, "-d", "REFERENCE"},
     2,
     "option -d: device REFERENCE is what steps are compared with"},
    {"ModelWhere", {"make-model"}, 2, "which file or folder?"},
    {"ModelTopK",
     {"make-model", "-o", "/nowhere/m", "--top-k", "1000"},
     2,
     "--top-k is 1000, but a layer has only 16 experts"},
    {"ModelGroup", {"make-model", "-o", "/nowhere/m", "--group", "7"}, 2, "groups of 7"},
    {"ModelWeights", {"make-model", "-o", "/nowhere/m", "--weights", "q4"}, 2, "'q4'"},
    {"ModelTypes", {"make-model", "-o", "/nowhere/m", "--weights", "q4_k"}, 2, "in IR"},
    {"ModelGgufTypes",
     {"make-model", "-o", "/nowhere/m.gguf", "--weights", "u4"},
     2,
     "q4_k"},
    {"ModelArch", {"make-model", "-o", "/nowhere/m", "--arch", "gpt5"}, 2, "--list"},
    {"ModelFormat", {"make-model", "-o", "/nowhere/m", "--format", "onnx"}, 2, "onnx"},
    {"ModelSize",
     {"make-model", "-o", "/nowhere/m", "--hidden", "1048576", "--experts", "1048576",
      "--moe-intermediate", "1048576"},
     2,
     "parameters"},
    {"ModelEnding",
     {"make-model", "-o", "/nowhere/m.gguf", "--format", "ir"},
     2,
     "an IR needs a folder"},
    {"ModelOverwrites", {"make-model", "-o", XM_MODELS_DIR}, 2, "is not empty"},
    {"ModelUnwritable", {"make-model", "-o", "/nowhere/m"}, 3, "/nowhere/m"},
    {"Pass", {"opt", "make_it_fast"}, 2, "there is no pass 'make_it_fast'"},
    {"NoPass", {"opt"}, 2, "which passes?"},
};

INSTANTIATE_TEST_SUITE_P(CommandLine, Mistakes, testing::ValuesIn(mistakes),
                         mistake_name);
