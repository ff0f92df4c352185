// SPDX-License-Identifier: Apache-2.0
// Names of meshes and shares, the common length of the ranks' contexts, and what a process of an
// MPI job learns from its environment.
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "plugin/mesh/mesh.h"
#include "plugin/mesh/mesh_names.h"
#include "runtime/collective_mpi.h"

namespace
{

TEST(MeshLevel, IsThatOfTheShortestOrTheBeginning)
{
    const auto level = [](std::vector<uint64_t> pasts) {
        xm_mesh_level(
            nullptr, (uint32_t)pasts.size(),
            [](uint32_t rank, void *ctx) {
                return (*static_cast<std::vector<uint64_t> *>(ctx))[rank];
            },
            [](uint32_t rank, uint64_t past, void *ctx) {
                uint64_t &own = (*static_cast<std::vector<uint64_t> *>(ctx))[rank];
                own = rank == 2 && past < own ? 0 : past;
            },
            &pasts);
        return pasts;
    };
    using Pasts = std::vector<uint64_t>;
    EXPECT_EQ(level({5, 3}), (Pasts{3, 3}));
    EXPECT_EQ(level({4, 4, 4}), (Pasts{4, 4, 4}));
    EXPECT_EQ(level({5, 7, 3}), (Pasts{3, 3, 3}));
    EXPECT_EQ(level({5, 3, 6, 9}), (Pasts{0, 0, 0, 0}));
}

TEST(MeshNames, AreListsOfDevices)
{
    EXPECT_EQ(xm_mesh_list(nullptr), nullptr);
    for (const char *other :
         {"GPU", "GPU.1", "AUTO:GPU,CPU", "HETERO:GPU.0,GPU.1", "MESH"})
        EXPECT_EQ(xm_mesh_list(other), nullptr) << other;
    EXPECT_STREQ(xm_mesh_list("MESH:GPU.0,GPU.1"), "GPU.0,GPU.1");
    EXPECT_STREQ(xm_mesh_list("GPU.0,GPU.1(1,2)"), "GPU.0,GPU.1(1,2)");
    xm_mesh_devices d = {};
    ASSERT_EQ(xm_mesh_parse("GPU.0,CPU(0.7,1e-1)", 0, &d, nullptr), XM_OK);
    ASSERT_EQ(d.n, 2u);
    EXPECT_STREQ(d.name[0], "GPU.0");
    EXPECT_STREQ(d.name[1], "CPU");
    EXPECT_EQ(d.share[0], 0.7);
    EXPECT_EQ(d.share[1], 0.1);
}

// The share 0 is kept where each process of a job has one of the devices.
TEST(MeshNames, OfDevicesWithoutAShareAreLeftOut)
{
    xm_mesh_devices d = {};
    ASSERT_EQ(xm_mesh_parse("A,B,C,D(0,2,0,1)", 0, &d, nullptr), XM_OK);
    ASSERT_EQ(d.n, 4u);
    EXPECT_EQ(d.share[2], 0.0);
    xm_mesh_leave_out(&d);
    ASSERT_EQ(d.n, 2u);
    EXPECT_STREQ(d.name[0], "B");
    EXPECT_EQ(d.share[0], 2.0);
    EXPECT_STREQ(d.name[1], "D");
    EXPECT_EQ(d.share[1], 1.0);
    ASSERT_EQ(xm_mesh_parse("A,B(0,1e-300)", 0, &d, nullptr), XM_OK);
    xm_mesh_leave_out(&d);
    ASSERT_EQ(d.n, 1u);
    EXPECT_STREQ(d.name[0], "B");
    xm_error err = {};
    EXPECT_EQ(xm_mesh_parse("A,B(0,0)", 0, &d, &err), XM_INVALID);
    EXPECT_STREQ(err.text,
                 "the shares '(0,0)' are all 0: a mesh of 2 devices takes as many "
                 "shares, one of them above 0, as in GPU.0,GPU.1(0.7,0.3)");
}

/* In an MPI job, a list names one device for all processes, or one for each. */
TEST(MeshNames, MayStandForAllProcesses)
{
    xm_mesh_devices d = {};
    ASSERT_EQ(xm_mesh_parse("GPU", 3, &d, nullptr), XM_OK);
    ASSERT_EQ(d.n, 3u);
    EXPECT_STREQ(d.name[2], "GPU");
    ASSERT_EQ(xm_mesh_parse("GPU(3,2,1)", 3, &d, nullptr), XM_OK);
    EXPECT_EQ(d.share[2], 1.0);
    ASSERT_EQ(xm_mesh_parse("GPU,CPU", 2, &d, nullptr), XM_OK);
    EXPECT_STREQ(d.name[1], "CPU");
    xm_error err = {};
    EXPECT_EQ(xm_mesh_parse("A,B,C", 2, &d, &err), XM_INVALID);
    EXPECT_STREQ(err.text, "3 devices are named for 2 processes: name one for all, or "
                           "one for each");
}

/* mpirun sets the variables; without valid ones the process is alone. */
TEST(MpiJob, IsFoundInTheEnvironment)
{
    const char *names[][2] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                              {"PMI_SIZE", "PMI_RANK"},
                              {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"}};
    const auto forget = [&] {
        for (auto &pair : names)
            for (const char *name : pair)
                unsetenv(name);
    };
    const auto ranks = [&](const char *const pair[2], const char *size, const char *rank,
                           uint32_t *own) {
        forget();
        setenv(pair[0], size, 1);
        setenv(pair[1], rank, 1);
        return xm_mpi_ranks(own);
    };
    uint32_t own = 7;
    for (auto &pair : names) {
        EXPECT_EQ(ranks(pair, "4", "3", &own), 4u);
        EXPECT_EQ(own, 3u);
        for (auto [size, rank] : {std::pair("4", "4"),
                                  {"4", "-1"},
                                  {"x", "0"},
                                  {"", ""},
                                  {"99999999999", "1"}}) {
            own = 7;
            EXPECT_EQ(ranks(pair, size, rank, &own), 1u) << size << " " << rank;
            EXPECT_EQ(own, 0u);
        }
    }
    forget();
    EXPECT_EQ(xm_mpi_ranks(&own), 1u);
}

TEST(MpiJob, SaysWhichOfItsMachinesProcessesThisIs)
{
    const char *names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                           "MV2_COMM_WORLD_LOCAL_RANK"};
    for (const char *name : names)
        unsetenv(name);
    EXPECT_EQ(xm_mpi_local_rank(), 0u);
    for (const char *name : names) {
        setenv(name, "3", 1);
        EXPECT_EQ(xm_mpi_local_rank(), 3u) << name;
        setenv(name, "x", 1);
        EXPECT_EQ(xm_mpi_local_rank(), 0u) << name;
        unsetenv(name);
    }
}

} // namespace
