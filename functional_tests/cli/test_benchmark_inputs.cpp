/* SPDX-License-Identifier: Apache-2.0
 *
 * The inputs of xemoe benchmark_app: folders and lists of files, and groups of shapes from
 * -data_shape or from files.
 */
#include "functional_tests/cli/benchmark_test.h"

/* ---- groups of shapes -------------------------------------------------------------- */

/* An input with only one shape has it in each group. */
TEST(BenchmarkGroups, RepeatTheOnlyShapeOfAnInput)
{
    const Words flags = {"-niter", "4", "-nireq", "1", "-layout", "a[NC]", "-pcseq"};
    const auto r =
        on_host(small().pair, flags + Words{"-data_shape", "a[1,2][5,2],b[1,2]"});
    ASSERT_EQ(r.outcome.code, 0) << r.outcome.out;
    EXPECT_TRUE(r.says("[ INFO ] Defined 2 tensor groups:\n"
                       "[ INFO ] \t a: [1,2] b: [1,2]\n[ INFO ] \t a: [5,2] b: [1,2]\n"));
    expect_throughput(r, 12.0);
    const auto uneven = on_host(
        small().pair, flags + Words{"-data_shape", "a[1,2][5,2][7,2],b[1,2][5,2]"});
    EXPECT_EQ(uneven.outcome.code, 1);
    EXPECT_TRUE(
        uneven.says("[ ERROR ] -data_shape: input 'b' has 2 shapes, but another input "
                    "has 3; every input needs one shape or the same number\n"))
        << uneven.outcome.out;
}

/* An input with a fixed shape keeps it. */
TEST(BenchmarkGroups, AreNotOfInputsWithFixedShapes)
{
    for (const char *shapes : {"[3,16]", "data[2,16][4,16]"}) {
        const auto r = on_host(small().mlp, {"-niter", "1", "-nireq", "1", "-layout",
                                             "[NC]", "-data_shape", shapes});
        expect_complete(r);
        EXPECT_TRUE(r.says("[ WARNING ] -data_shape: input 'data' keeps its fixed shape, "
                           "[2,16]\n"))
            << r.outcome.out;
        EXPECT_FALSE(r.says("tensor groups"));
        expect_throughput(r, 2.0);
    }
    EXPECT_FALSE(on_host(small().mlp, {"-niter", "1", "-data_shape", "[2,16]"})
                     .says("keeps its fixed shape"));
}

/* Without -data_shape the shapes come from .npy files. */
TEST(BenchmarkGroups, FollowFromFiles)
{
    const Folder folder("benchmark_file_groups");
    for (const int rows : {1, 2, 4})
        folder.write(std::to_string(rows) + ".npy",
                     npy("<f4", std::to_string(rows) + ", 16",
                         std::string(static_cast<size_t>(rows) * 64, '\0')));
    const std::string files =
        "data:" + folder / "2.npy," + folder / "1.npy," + folder / "4.npy";
    auto r = on_host(small().rows, {"-nireq", "1", "-niter", "4", "-pcseq", "-i", files});
    ASSERT_EQ(r.outcome.code, 0) << r.outcome.out;
    EXPECT_EQ(r.count(), 6.0) << "whole rounds of three";
    EXPECT_TRUE(r.says("[ INFO ] Defined 3 tensor groups:\n[ INFO ] \t data: [2,16]\n"
                       "[ INFO ] \t data: [1,16]\n[ INFO ] \t data: [4,16]\n"))
        << r.outcome.out;
    EXPECT_TRUE(r.says("[ INFO ] 3. data: [4,16]\n"));
    /* With synchronous runs they are taken in turn, too. */
    r = on_host(small().rows,
                {"-api", "sync", "-niter", "3", "-layout", "[NC]", "-i", files});
    expect_complete(r);
    expect_throughput(r, 7.0);
    const std::string same = "data:" + folder / "2.npy," + folder / "2.npy";
    r = on_host(small().rows, {"-nireq", "1", "-niter", "3", "-i", same});
    expect_complete(r);
    EXPECT_EQ(r.count(), 3.0);
    EXPECT_FALSE(r.says("tensor groups"));
}

/* ---- the batch --------------------------------------------------------------------- */

/* The line shows the model's batch, which is unknown before; the report shows that of the only
 * group. */
TEST(BenchmarkBatch, IsTheModels)
{
    const auto r = on_host(small().rows, {"-niter", "1", "-nireq", "1", "-layout", "[NC]",
                                          "-data_shape", "[3,16]"});
    expect_complete(r);
    EXPECT_TRUE(r.says("[ INFO ] Model batch size: ?\n")) << r.outcome.out;
    expect_throughput(r, 3.0);
}

/* ---- files ------------------------------------------------------------------------- */

/* The folder's .npy and .bin files, in the order of names. */
TEST(BenchmarkFiles, OfAFolderAreTakenInTurn)
{
    const Folder folder("benchmark_folder"), empty("benchmark_empty_folder");
    folder.write("b.npy", npy("<f4", "1, 16", std::string(64, '\0')));
    folder.write("a.NPY", npy("<f4", "2, 16", std::string(128, '\0')));
    folder.write("notes.txt", "no input");
    for (const std::string &files :
         {"data:" + folder.path, folder.path, folder.path + "/"}) {
        const auto r = on_host(small().rows, {"-api", "sync", "-niter", "3", "-layout",
                                              "[NC]", "-i", files});
        expect_complete(r);
        expect_throughput(r, 5.0); /* 2, 1 and 2 rows */
    }
    const auto r = on_host(small().rows, {"-niter", "1", "-i", empty.path});
    EXPECT_EQ(r.outcome.code, 1);
    EXPECT_TRUE(r.says("[ ERROR ] -i: folder '" + empty.path +
                       "' has no file that ends in .npy or .bin\n"))
        << r.outcome.out;
}

TEST(BenchmarkFiles, ThatAreWrongAreToldBeforeTheModelIsCompiled)
{
    const Folder folder("benchmark_wrong_files");
    folder.write("short.bin", "abc");
    folder.write("shape.npy", npy("<f4", "3, 5", std::string(60, '\0')));
    const struct {
        Words files;
        const char *sentence;
    } wrong[] = {
        {{"picture.png"}, "is a picture"},
        {{"/nonexistent.npy"}, "/nonexistent.npy"},
        {{"nope:x.npy"}, "-i: there is neither an input 'nope' of the model nor a file "},
        {{"a.npy", "b.npy"}, "names no input of the model"},
        {{folder / "short.bin"}, "it has 3 bytes, but input 'data' takes 128"},
        {{folder / "shape.npy"}, "its shape is [3,5], but input 'data' takes [2,16]"},
    };
    for (const auto &w : wrong) {
        const auto r = on_host(small().mlp, Words{"-niter", "1", "-i"} + w.files);
        EXPECT_EQ(r.outcome.code, 1) << w.sentence;
        EXPECT_TRUE(r.says("[ ERROR ] -i: ")) << r.outcome.out;
        EXPECT_TRUE(r.says(w.sentence)) << r.outcome.out;
        EXPECT_FALSE(r.says("[Step 7/11]")) << w.sentence;
    }
}

/* With -lfile the inputs are known only after the model is compiled. */
TEST(BenchmarkFiles, ThatAreNotThereAreToldBeforeTheModelIsCompiledAtOnce)
{
    const Folder folder("benchmark_no_files");
    folder.write("x.npy", npy("<f4", "2, 16", std::string(128, '\0')));
    const std::string there = folder / "x.npy";
    for (const char *absent : {"/nowhere/x.npy", "data:/nowhere/x.npy"}) {
        const auto r = on_host(
            small().mlp, {"-niter", "1", "-lfile", "-i", "data:" + there + "," + absent});
        EXPECT_EQ(r.outcome.code, 1);
        EXPECT_TRUE(
            r.says("[ ERROR ] -i: there is no file '" + std::string(absent) + "'\n"))
            << r.outcome.out;
        EXPECT_FALSE(r.says("[Step 7/11]"));
    }
    expect_complete(
        on_host(small().mlp, {"-niter", "1", "-lfile", "-i", "data:" + there}));
}

/* A list without names is distributed over the inputs without files. */
TEST(BenchmarkFiles, WithoutNamesAreDealtOut)
{
    const Folder folder("benchmark_dealt_out");
    folder.write("1.npy", npy("<f4", "1, 2", std::string(8, '\0')));
    folder.write("2.npy", npy("<f4", "1, 2", std::string(8, '\0')));
    for (const Words &files :
         {Words{folder / "1.npy," + folder / "2.npy"}, Words{folder.path},
          Words{folder / "1.npy", "a:" + folder / "2.npy"}}) {
        const auto r = on_host(small().pair, Words{"-niter", "2", "-i"} + files);
        expect_complete(r);
        EXPECT_TRUE(r.says("[ INFO ] Fill input 'a' from files\n")) << files[0];
        EXPECT_TRUE(r.says("[ INFO ] Fill input 'b' from files\n")) << files[0];
    }
}
