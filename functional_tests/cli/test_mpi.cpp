/* SPDX-License-Identifier: Apache-2.0
 *
 * Models split over the processes of an MPI job: texts equal those of one process; a failure ends
 * all processes.
 */
#include <regex>
#include <set>

#include "functional_tests/cli/mesh_models.h"
#include "functional_tests/common/cases.h"
#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"

namespace
{

const std::string models = XM_MODELS_DIR;
const std::string qwen = models + "/qwen3moe-tiny/ov/int4_asym_g64";
const std::string gpt_oss = models + "/gpt-oss-tiny/ov/int4_sym_g64";

/* A job of n processes on this machine, for any user and any number of cores. */
Settings
job(int n)
{
    Settings s = {"OMPI_ALLOW_RUN_AS_ROOT=1",
                  "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                  "PRTE_ALLOW_RUN_AS_ROOT=1",
                  "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                  "OMPI_MCA_btl=self,vader", /* Open MPI 5 knows sm by this name, too */
                  "OMPI_MCA_rmaps_base_oversubscribe=1",
                  "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"};
    s.under = {XM_MPIRUN, "-n", std::to_string(n)};
    return s;
}

Words
generation(const std::string &model, Words more = {}, const std::string &split = "tensor")
{
    Words words = {"generate", "-m",  model, "-d", "CPU",   "--precision", "f32",
                   "--split",  split, "-n",  "16", "--ids", "5,77,300",    "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/* Returns options for a long prompt in chunks of 8 tokens. */
Words
long_prompt()
{
    std::string ids = "5";
    for (int i = 1; i < 100; i++)
        ids += "," + std::to_string(5 + i * 7 % 400);
    return {"--ids", ids, "--ubatch", "8"};
}

class Mpi : public testing::Test
{
  protected:
    void SetUp() override
    {
        if (!has_device())
            GTEST_SKIP() << "no OpenCL device";
    }
    Folder folder{"mpi"};
};

/* A split, a number of processes, and the value of -d. */
using Way = std::tuple<const char *, int, const char *>;
class MpiGolden : public testing::TestWithParam<std::tuple<const char *, Way>>
{
};

/* Compares the logits and greedy ids of a job, which only its first process prints, with those of
 * one process. The two layers of the small Qwen3 leave one of three processes without attention
 * when a model is split by layer. */
TEST_P(MpiGolden, IsThatOfOneProcess)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const auto &[name, way] = GetParam();
    const auto &[split, n, device] = way;
    const std::string model = models + "/" + name;
    const Words logits = {"logits",      "-m", model, "--ids", "5,77,300,12,9,400,31,8",
                          "--precision", "f32"};
    Folder folder("mpi");
    Matrix m[2];
    Ids ids[2];
    for (int i : {0, 1}) {
        const Settings settings = i ? job(n) : Settings{};
        Words words = logits;
        const std::string file = folder / ("logits" + std::to_string(i) + ".npy");
        words.insert(words.end(),
                     {"-d", i ? device : "CPU", "--split", split, "-o", file});
        const Outcome o = run(words, settings),
                      text = run(generation(model, {"-d", i ? device : "CPU"}, split),
                                 settings);
        ASSERT_EQ(o.code, 0) << o.err;
        ASSERT_EQ(text.code, 0) << text.err;
        m[i] = parse_npy(read_file(file));
        ids[i] = Json(text.out).ids("/ids");
    }
    EXPECT_EQ(ids[1], ids[0]);
    ASSERT_EQ(m[0].rows, 8u);
    ASSERT_EQ(m[1].rows, m[0].rows);
    for (uint64_t t = 0; t < m[0].rows; t++)
        EXPECT_LE(nmse(m[1].row(t), m[0].row(t)), 1e-10)
            << name << " by " << split << " on " << n << " row " << t;
}

const std::vector<Way> golden_ways = {{"tensor", 2, "CPU"},
                                      {"layer", 3, "CPU"},
                                      {"expert", 2, "MESH:CPU,CPU(3,1)"},
                                      {"tensor", 3, "MESH:CPU,CPU,CPU(4,1,2)"},
                                      {"layer", 2, "MESH:CPU,CPU(1,3)"},
                                      {"expert", 3, "CPU"},
                                      {"tensor", 4, "CPU"},
                                      {"layer", 4, "CPU"},
                                      {"expert", 4, "MESH:CPU,CPU,CPU,CPU(4,1,2,1)"},
                                      {"tensor", 2, "MESH:CPU(0,1)"},
                                      {"layer", 3, "MESH:CPU(1,0,2)"},
                                      {"expert", 4, "MESH:CPU(0,2,0,1)"},
                                      {"tensor", 3, "MESH:CPU(0.99,0,0.01)"}};
INSTANTIATE_TEST_SUITE_P(EveryModel, MpiGolden,
                         testing::ValuesIn(dealt(some(mesh_models, 3), golden_ways, 1)));

/* Also if summands are sent as f16, every rank adds them as f32 in the order of the ranks. */
TEST_F(Mpi, HalvesGiveTheSameTextAsOnSubDevices)
{
    const Words halves = {"--messages", "f16"};
    Words in_process = halves;
    in_process.insert(in_process.end(), {"-d", "CPU,CPU"});
    const Outcome one = run(generation(gpt_oss, in_process)),
                  two = run(generation(gpt_oss, halves), job(2));
    ASSERT_EQ(one.code, 0) << one.err;
    ASSERT_EQ(two.code, 0) << two.err;
    EXPECT_EQ(Json(two.out).ids("/ids"), Json(one.out).ids("/ids"));
}

/* The chunks of a prompt go through the processes: more of them than messages may be unread, from
 * a process with one layer to one with three. */
TEST_F(Mpi, ALongPromptByLayerIsThatOfOneProcess)
{
    Words words = long_prompt();
    const Json one(run(generation(gpt_oss, words)).out);
    words.insert(words.end(), {"-d", "MESH:CPU,CPU(1,3)"});
    const Outcome o = run(generation(gpt_oss, words, "layer"), job(2));
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(Json(o.out).ids("/ids"), one.ids("/ids"));
}

/* Every process admits the same texts in a step. Texts of one prompt are forks of its sequence. */
TEST_F(Mpi, TextsInParallelAreThoseOfOneProcess)
{
    folder.write("prompts.txt", "Once upon a time\nThe little girl\nOne day a dog\n");
    const Words texts[] = {
        {"-f", folder.path + "/prompts.txt", "--parallel", "2", "--temp", "0"},
        {"-p", "Once upon a time", "--parallel", "3", "--temp", "1", "--seed", "3"}};
    for (const Words &which : texts) {
        Words words = {"generate", "-m",      qwen,     "-d", "CPU", "--precision",
                       "f32",      "--split", "tensor", "-n", "12",  "--json"};
        words.insert(words.end(), which.begin(), which.end());
        const Outcome one = run(words), three = run(words, job(3));
        ASSERT_EQ(one.code, 0) << one.err;
        ASSERT_EQ(three.code, 0) << three.err;
        for (int i = 0; i < 3; i++) {
            const std::string text = "/texts/" + std::to_string(i);
            const Json a(one.out), b(three.out);
            EXPECT_EQ(b.ids((text + "/ids").c_str()), a.ids((text + "/ids").c_str()));
            EXPECT_EQ(b.number(text + "/reused"), a.number(text + "/reused"));
        }
    }
}

/* A process whose share is 0 ends with the others and does all that they do without a part of the
 * model, even if it is the first, which prints. */
TEST_F(Mpi, AProcessWithoutAShareHasTheSameTexts)
{
    folder.write("prompts.txt", "Once upon a time\nThe little girl\nOne day a dog\n");
    const Words parallel = {"-f", folder.path + "/prompts.txt", "--parallel", "2"};
    for (const char *split : {"tensor", "layer"}) {
        for (const Words &which : {long_prompt(), parallel}) {
            Words words = {"generate", "-m", qwen, "--precision", "f32", "--split",
                           split,      "-n", "12", "--temp",      "0",   "--json"};
            words.insert(words.end(), which.begin(), which.end());
            const auto ids = [&](const char *device, const Settings &settings) {
                Words all = words;
                all.insert(all.end(), {"-d", device});
                const Outcome o = run(all, settings);
                EXPECT_EQ(o.code, 0) << o.err;
                const Json json(o.out);
                return json.at("/texts/0") ? json.ids("/texts/2/ids") : json.ids("/ids");
            };
            const Ids one = ids("CPU", {});
            EXPECT_FALSE(one.empty());
            for (const auto &[n, device] : {std::pair(2, "MESH:CPU(0,1)"),
                                            {2, "MESH:CPU(1,0)"},
                                            {3, "MESH:CPU(0,1,2)"}})
                EXPECT_EQ(ids(device, job(n)), one) << split << device;
        }
    }
}

/* It has no weights and launches no kernels. */
TEST_F(Mpi, AProcessWithoutAShareHasNothingToDo)
{
    const auto facts = [&](const char *device) {
        const Json json(run(generation(qwen, {"-d", device}), job(2)).out);
        return std::pair(json.number("/memory/weights"),
                         json.number("/last_run/launches"));
    };
    const auto [all_bytes, all_launches] = facts("MESH:CPU(1,0)");
    EXPECT_GT(all_bytes, 0);
    EXPECT_GT(all_launches, 0);
    EXPECT_EQ(facts("MESH:CPU(0,1)"), std::pair(0.0, 0.0));
}

/* The processes repeat the untimed run equally often, though each measures another time. */
TEST_F(Mpi, IsMeasured)
{
    const Words words = {"bench",   "-m",     qwen, "--device", "CPU",
                         "--split", "tensor", "-p", "4",        "-n",
                         "2,3,4,5", "-r",     "1",  "-o",       "json"};
    const Outcome o = run(words, job(3));
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_GT(Json(o.out).number("/1/avg_ts"), 0);
}

/* mpirun gives standard input to the first process, which passes prompt and lines to the others.
 * mpirun may lose parts of a text written in pieces, so the test reads JSON. */
TEST_F(Mpi, TheFirstProcessReadsStandardInputForAll)
{
    folder.write("prompt.txt", "Once upon a time\n");
    folder.write("lines.txt", "hello\nand then\n");
    const std::vector<std::tuple<Words, std::string, Words>> cases = {
        {{"generate", "-n", "12"}, "prompt.txt", {"/text"}},
        {{"chat", "-n", "12", "--temp", "0"},
         "lines.txt",
         {"/messages/0/content", "/messages/1/content", "/messages/2/content",
          "/messages/3/content"}}};
    for (const auto &[words, input, texts] : cases) {
        Words all = words;
        all.insert(all.end(), {"-m", qwen, "-d", "CPU", "--precision", "f32", "--split",
                               "tensor", "--json"});
        const Outcome one = run(all, {}, folder.path + "/" + input),
                      o = run(all, job(2), folder.path + "/" + input);
        ASSERT_EQ(one.code, 0) << one.err;
        ASSERT_EQ(o.code, 0) << o.err;
        for (const std::string &text : texts) {
            ASSERT_NE(Json(one.out).text(text.c_str()), "") << text;
            EXPECT_EQ(Json(o.out).text(text.c_str()), Json(one.out).text(text.c_str()))
                << words[0] << " " << text;
        }
    }
}

/* Returns how often the text has the sentence. */
size_t
count(const std::string &text, const std::string &sentence)
{
    size_t n = 0;
    for (size_t at = 0; (at = text.find(sentence, at)) != std::string::npos; at++)
        n++;
    return n;
}

/* /save: the first process writes the file; it alone prints the message of success or failure. */
TEST_F(Mpi, TheFirstProcessSavesForAll)
{
    const std::string file = folder / "saved.json";
    folder.write("lines.txt", "hello\n/save " + file + "\n/save " + file + "\n");
    const Outcome o = run(
        {"chat", "-m", qwen, "-d", "CPU", "--split", "tensor", "-n", "4", "--temp", "0"},
        job(3), folder.path + "/lines.txt");
    EXPECT_NE(o.code, 0) << "the second time there was a file";
    EXPECT_EQ(count(o.err, "2 messages are saved"), 1u) << o.err;
    EXPECT_EQ(count(o.err, "exists already: /save! replaces a file"), 1u) << o.err;
    EXPECT_EQ(Json(read_file(file)).text("/messages/0/content"), "hello")
        << read_file(file);
}

TEST_F(Mpi, AnEmptyInputIsASentence)
{
    folder.write("empty.txt", "");
    const Outcome o =
        run({"generate", "-m", qwen, "-d", "CPU"}, job(2), folder.path + "/empty.txt");
    EXPECT_EQ(o.code, 2) << o.err;
    EXPECT_NE(o.err.find("standard input is empty"), std::string::npos) << o.err;
}

/* All processes use one random seed; otherwise they would continue with different tokens. */
TEST_F(Mpi, ProcessesDrawFromOneSeed)
{
    const Outcome o = run({"generate", "-m", qwen, "-d", "CPU", "--split", "tensor", "-n",
                           "4", "--ids", "5,77", "--temp", "1", "-v"},
                          job(2));
    ASSERT_EQ(o.code, 0) << o.err;
    const std::string word = "seed:";
    const size_t first = o.err.find(word), second = o.err.find(word, first + 1);
    ASSERT_NE(second, std::string::npos) << o.err;
    EXPECT_EQ(std::stoull(o.err.substr(first + word.size())),
              std::stoull(o.err.substr(second + word.size())));
}

TEST_F(Mpi, EachProcessMayHaveADeviceAndAShareOfItsOwn)
{
    const Json one(run(generation(qwen)).out);
    const Json two(run(generation(qwen, {"-d", "MESH:CPU,CPU(3,1)"}), job(2)).out);
    EXPECT_EQ(two.ids("/ids"), one.ids("/ids"));
    const Outcome o = run(generation(qwen, {"-d", "CPU,CPU,CPU"}), job(2));
    EXPECT_NE(o.code, 0);
    EXPECT_NE(o.err.find("3 devices are named for 2 processes"), std::string::npos)
        << o.err;
}

/* Returns the names of devices that the processes print. */
std::set<std::string>
devices_of(const Outcome &o)
{
    std::set<std::string> out;
    static const std::regex line(R"(rank \d has device (\S+))");
    for (std::sregex_iterator i(o.err.begin(), o.err.end(), line), end; i != end; ++i)
        out.insert((*i)[1]);
    return out;
}

/* Given a name without a number, each process on a machine takes another device while there are
 * enough. */
TEST_F(Mpi, ProcessesOfAMachineTakeDifferentDevices)
{
    const Json one(run(generation(qwen)).out);
    for (const auto &[n, name, devices] :
         {std::tuple(2, "CPU", std::set<std::string>{"CPU.0", "CPU.1"}),
          {3, "CPU", {"CPU.0", "CPU.1"}},
          {2, "CPU.1", {"CPU.1"}}}) {
        Settings settings = job(n);
        settings.insert(settings.end(), {"XM_SUB_DEVICES=2", "XM_DEBUG=dispatch"});
        const Outcome o = run(generation(qwen, {"-d", name}), settings);
        ASSERT_EQ(o.code, 0) << o.err;
        EXPECT_EQ(Json(o.out).ids("/ids"), one.ids("/ids"));
        EXPECT_EQ(devices_of(o), devices) << n << " " << name << o.err;
    }
}

/* A job in which one process differs: `line` of a script changes its model, its other words, or
 * its environment. */
Settings
job_with(const Folder &folder, const std::string &line, int n, int rank = 1)
{
    folder.write("one.sh", "program=$1 model=$4\nshift 4\n"
                           "[ \"$OMPI_COMM_WORLD_RANK$PMI_RANK\" = " +
                               std::to_string(rank) + " ] && " + line +
                               "\n"
                               "exec \"$program\" generate -m \"$model\" \"$@\"\n");
    Settings s = job(n);
    s.under.insert(s.under.end(), {"/bin/sh", folder.path + "/one.sh"});
    return s;
}

/* The processes find the difference before the first run. */
TEST_F(Mpi, OtherModelsAreASentence)
{
    const Outcome o =
        run(generation(qwen),
            job_with(folder, "model=" + models + "/qwen3moe-tiny/ov/int8_asym", 2));
    EXPECT_NE(o.code, 0);
    EXPECT_NE(o.err.find("another model, kind of device, version of xemoe"),
              std::string::npos)
        << o.err;
}

TEST_F(Mpi, OneThatFailsEndsAll)
{
    const Outcome o = run(generation(qwen), job_with(folder, "model=/nowhere", 3));
    EXPECT_NE(o.code, 0);
    EXPECT_NE(o.err.find("xemoe: rank 1: cannot open '/nowhere'"), std::string::npos)
        << o.err;
}

/* mpirun notices that a process was killed and ends the others. Open MPI's mpirun names the rank,
 * MPICH's prints the exit code. */
TEST_F(Mpi, OneThatIsKilledEndsAll)
{
    for (const char *split : {"tensor", "layer"}) {
        const Outcome o = run(generation(qwen, {"--ignore-eos", "-n", "100000"}, split),
                              job_with(folder, "{ sleep 2; kill -9 $$; } &", 3));
        EXPECT_NE(o.code, 0);
        EXPECT_TRUE(o.err.find("rank 1") != std::string::npos ||
                    o.err.find("EXIT CODE: 9") != std::string::npos ||
                    o.out.find("EXIT CODE: 9") != std::string::npos)
            << o.out << o.err;
    }
}

/* A stopped process looks like one whose machine was cut off: MPI waits for it forever. The first
 * of the others says so. A process that is not stopped for long, and one that is stopped while
 * nobody watches, go on. */
TEST_F(Mpi, OneThatIsStoppedEndsAll)
{
    const auto stop = [&](const std::string &how, int rank, const char *timeout,
                          const Words &more, const char *split, int n) {
        Settings s =
            job_with(folder, "{ sleep 2; kill -STOP $$; " + how + "; } &", n, rank);
        if (timeout)
            s.push_back(std::string("XM_RANK_TIMEOUT=") + timeout);
        return run(generation(qwen, more, split), s);
    };
    const Words endless = {"--ignore-eos", "-n", "100000", "-c", "200000"};
    for (const auto &[split, rank, timeout, seconds] :
         {std::tuple("tensor", 1, (const char *)nullptr, "3"),
          {"layer", 0, "1.5", "1.5"}}) {
        const Outcome o = stop(":", rank, timeout, endless, split, 3);
        EXPECT_NE(o.code, 0);
        const std::string sentence =
            "xemoe: error: rank " + std::to_string(rank) +
            " has sent no sign of life for " + seconds +
            " s: its process is stopped, or the link to its machine is cut";
        EXPECT_EQ(count(o.err, sentence), 1u) << o.err;
    }
    const Words longer = {"-n", "1500", "-c", "2000", "--ignore-eos"};
    for (const auto &[how, timeout] :
         {std::pair("sleep 1; kill -CONT $$", (const char *)nullptr),
          {"sleep 4; kill -CONT $$", "0"}}) {
        const Outcome o = stop(how, 1, timeout, longer, "tensor", 2);
        EXPECT_EQ(o.code, 0) << o.err;
        EXPECT_EQ(Json(o.out).ids("/ids").size(), 1500u);
    }
    EXPECT_NE(
        stop(":", 1, "x", {}, "tensor", 2).err.find("XM_RANK_TIMEOUT takes a number"),
        std::string::npos);
}

/* A process that ends early, here because it generates fewer tokens, fails the job: the other
 * process does not wait for it. */
TEST_F(Mpi, OneThatEndsEarlyEndsAll)
{
    for (const auto &[split, device] : {std::pair("tensor", "CPU"),
                                        {"layer", "CPU"},
                                        {"tensor", "MESH:CPU(1,0)"},
                                        {"tensor", "MESH:CPU(0,1)"}}) {
        const Outcome o = run(generation(qwen, {"--ignore-eos", "-d", device}, split),
                              job_with(folder, "set -- \"$@\" -n 2", 2));
        EXPECT_NE(o.code, 0);
        EXPECT_NE(o.err.find("rank 1: the process has ended while others still run"),
                  std::string::npos)
            << o.err;
    }
}

/* A process that waits for a value of a failed process gets the error of that process. Values that
 * the failed process has not read are dropped. */
TEST_F(Mpi, ADeviceThatFailsInARunEndsAll)
{
    for (const auto &[split, device, first] : {std::tuple("tensor", "CPU", 0),
                                               {"layer", "CPU", 0},
                                               {"tensor", "MESH:CPU(0,1,1)", 1}})
        for (int rank = first; rank < 3; rank++) {
            Words words = long_prompt();
            words.insert(words.end(), {"-d", device});
            const Outcome o = run(generation(gpt_oss, words, split),
                                  job_with(folder,
                                           "export OPENCL_LAYERS=" XM_FAULT_LAYER
                                           " XM_OPENCL_FAIL=clEnqueueNDRangeKernel:60",
                                           3, rank));
            EXPECT_NE(o.code, 0);
            EXPECT_NE(o.err.find("xemoe: rank " + std::to_string(rank) + ": step "),
                      std::string::npos)
                << split << " " << rank << ": " << o.err;
            EXPECT_EQ(o.err.find("xemoe: step "), std::string::npos) << o.err;
        }
}

/* The environment variables are those of a job of 2 processes, but by MPI there is 1 process: for
 * example because the job has ended, or is one of another MPI. */
TEST_F(Mpi, AJobThatIsNoneIsASentence)
{
    const Outcome o =
        run(generation(qwen), {"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=0"});
    EXPECT_NE(o.code, 0);
    EXPECT_NE(o.err.find("the job has 2 processes, by MPI 1"), std::string::npos)
        << o.err;
}

} // namespace
