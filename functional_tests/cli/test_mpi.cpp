/* SPDX-License-Identifier: Apache-2.0
 *
 * Models split over processes of an MPI job: texts are those of one process; what fails ends all.
 */
#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"

namespace
{

const std::string models = XM_MODELS_DIR;
const std::string qwen = models + "/qwen3moe-tiny/ov/int4_asym_g64";
const std::string gpt_oss = models + "/gpt-oss-tiny/ov/int4_sym_g64";

/* A job of n processes on this machine, whoever starts it and however few cores there are. */
Settings
job(int n)
{
    Settings s = {"OMPI_ALLOW_RUN_AS_ROOT=1",
                  "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                  "PRTE_ALLOW_RUN_AS_ROOT=1",
                  "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                  "OMPI_MCA_btl=self,sm",
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

/* In chunks of 8 tokens. */
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

/* The first process alone prints them. By layer on three, Qwen3's two layers leave a process
 * without attention. */
TEST_F(Mpi, TextsAreThoseOfOneProcess)
{
    for (const char *model : {"qwen3moe-tiny/ov/int4_asym_g64",
                              "gpt-oss-tiny/gguf/gpt-oss-tiny-MXFP4_MOE.gguf",
                              "gemma4-moe-tiny/ov/int4_asym_g32"}) {
        const Outcome one = run(generation(models + "/" + model));
        ASSERT_EQ(one.code, 0) << one.err;
        for (const char *split : {"tensor", "layer"})
            for (int n : {2, 3}) {
                const Outcome o =
                    run(generation(models + "/" + model, {}, split), job(n));
                ASSERT_EQ(o.code, 0) << o.err;
                EXPECT_EQ(Json(o.out).ids("/ids"), Json(one.out).ids("/ids"))
                    << model << " by " << split << " on " << n;
            }
    }
}

/* Chunks of a prompt flow through the processes: more of them than messages may be unread, by one
 * that has a layer to one that has three. */
TEST_F(Mpi, ALongPromptByLayerIsThatOfOneProcess)
{
    Words words = long_prompt();
    const Json one(run(generation(gpt_oss, words)).out);
    words.insert(words.end(), {"-d", "MESH:CPU,CPU(1,3)"});
    const Outcome o = run(generation(gpt_oss, words, "layer"), job(2));
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(Json(o.out).ids("/ids"), one.ids("/ids"));
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

/* One process does something else: `line` of a script changes its model, its other words, or its
 * environment. */
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

/* Processes find out before the first run. */
TEST_F(Mpi, OtherModelsAreASentence)
{
    const Outcome o =
        run(generation(qwen),
            job_with(folder, "model=" + models + "/qwen3moe-tiny/ov/int8_asym", 2));
    EXPECT_NE(o.code, 0);
    EXPECT_NE(o.err.find("another model, kind of device or version of xemoe than rank"),
              std::string::npos)
        << o.err;
}

TEST_F(Mpi, OneThatFailsEndsAll)
{
    const Outcome o = run(generation(qwen), job_with(folder, "model=/nowhere", 3));
    EXPECT_NE(o.code, 0);
    EXPECT_NE(o.err.find("cannot open '/nowhere'"), std::string::npos) << o.err;
}

/* Nobody waits for a process that has come to the end of another command. */
TEST_F(Mpi, OneThatEndsEarlyEndsAll)
{
    for (const char *split : {"tensor", "layer"}) {
        const Outcome o = run(generation(qwen, {"--ignore-eos"}, split),
                              job_with(folder, "set -- \"$@\" -n 2", 2));
        EXPECT_NE(o.code, 0);
        EXPECT_NE(o.err.find("rank 1: the process has ended, though others go on"),
                  std::string::npos)
            << o.err;
    }
}

/* Who waits for a value of a process that fails hears of it, wherever he waits; values that it has
 * not read are dropped. */
TEST_F(Mpi, ADeviceThatFailsInARunEndsAll)
{
    for (const char *split : {"tensor", "layer"})
        for (int rank = 0; rank < 3; rank++) {
            const Outcome o = run(generation(gpt_oss, long_prompt(), split),
                                  job_with(folder,
                                           "export OPENCL_LAYERS=" XM_FAULT_LAYER
                                           " XM_OPENCL_FAIL=clEnqueueNDRangeKernel:60",
                                           3, rank));
            EXPECT_NE(o.code, 0);
            EXPECT_NE(o.err.find("rank " + std::to_string(rank) + ": step "),
                      std::string::npos)
                << split << " " << rank << ": " << o.err;
        }
}

/* Variables of a job that has ended, or of another MPI. */
TEST_F(Mpi, AJobThatIsNoneIsASentence)
{
    const Outcome o =
        run(generation(qwen), {"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=0"});
    EXPECT_NE(o.code, 0);
    EXPECT_NE(o.err.find("the job has 2 processes, by MPI 1"), std::string::npos)
        << o.err;
}

} // namespace
