// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads: sums in the order of ranks, joined parts, a rank that leaves.
#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "runtime/collective.h"
#include "runtime/fake/fake_ranks.h"

// Calls fn with the rank's end of the group, in a thread for each rank.
template <typename Fn>
static void
run_all(xm_rank_group *g, uint32_t ranks, Fn fn)
{
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < ranks; r++)
        threads.emplace_back([=] { fn(xm_rank_group_rank(g, r)); });
    for (std::thread &t : threads)
        t.join();
}

// The parameter: in shared memory, or over a fake network that delays and reorders messages.
class Collective : public testing::TestWithParam<bool>
{
  protected:
    enum { RANKS = 3 };
    const xm_fake_network network = {7, 1e-4, 0, 20.0};
    xm_rank_group *g = GetParam() ? xm_fake_group_create(RANKS, &network)
                                  : xm_shared_group_create(RANKS);
    ~Collective() override
    {
        xm_rank_group_free(g);
    }
};

// 1e8 + 3 - 1e8 gives another result in another order.
TEST_P(Collective, SumsAreAddedInTheOrderOfRanks)
{
    const float x[RANKS] = {3.0f, 1e8f, -1e8f};
    const float wanted = (x[0] + x[1]) + x[2];
    ASSERT_NE(wanted, x[0] + (x[1] + x[2]));
    for (int turn = 0; turn < 200; turn++) {
        float y[RANKS][2] = {};
        const float mine[RANKS][2] = {{x[0], 0}, {x[1], 1}, {x[2], 2}};
        run_all(g, RANKS, [&](xm_collective *c) {
            xm_error err = {};
            EXPECT_EQ(
                xm_collective_sum(c, XM_F32, mine[c->rank], XM_F32, y[c->rank], 2, &err),
                XM_OK)
                << err.text;
        });
        for (const auto &of : y) {
            EXPECT_EQ(of[0], wanted);
            EXPECT_EQ(of[1], 3.0f);
        }
    }
}

// f16 summands are added in f32 and rounded once. In f16, 2048 + 1 + 1 would stay 2048.
TEST_P(Collective, SumsOfHalvesAreRoundedOnce)
{
    const float x[RANKS] = {2048.0f, 1.0f, 1.0f};
    uint16_t mine[RANKS] = {}, y[RANKS] = {};
    for (int r = 0; r < RANKS; r++)
        xm_store_float(XM_F16, &mine[r], 0, x[r]);
    run_all(g, RANKS, [&](xm_collective *c) {
        xm_error err = {};
        EXPECT_EQ(
            xm_collective_sum(c, XM_F16, &mine[c->rank], XM_F16, &y[c->rank], 1, &err),
            XM_OK)
            << err.text;
    });
    for (const uint16_t &of : y)
        EXPECT_EQ(xm_load_float(XM_F16, &of, 0), 2050.0f);
}

// Two buffers are shown in turn: the others must have read a buffer before it is shown again.
TEST_P(Collective, EachMeetingShowsItsOwn)
{
    enum { TURNS = 3000 };
    float places[RANKS][2] = {};
    run_all(g, RANKS, [&](xm_collective *c) {
        for (int turn = 0; turn < TURNS; turn++) {
            float *mine = &places[c->rank][turn % 2], y = 0;
            *mine = (float)(turn * (c->rank + 1));
            xm_error err = {};
            ASSERT_EQ(xm_collective_sum(c, XM_F32, mine, XM_F32, &y, 1, &err), XM_OK);
            ASSERT_EQ(y, (float)(turn * 6)) << "turn " << turn;
        }
    });
}

// Rows of 1, 2 and 3 columns are joined to [2, 6].
TEST_P(Collective, PartsAreJoinedAlongADimension)
{
    const std::string parts[RANKS] = {"ag", "bchi", "defjkl"};
    std::string whole[RANKS];
    run_all(g, RANKS, [&](xm_collective *c) {
        const std::string &mine = parts[c->rank];
        std::vector<uint8_t> out(12);
        xm_error err = {};
        const xm_bytes part = {(const uint8_t *)mine.data(), mine.size()};
        EXPECT_EQ(xm_collective_join(c, part, 2, out.data(), out.size(), &err), XM_OK)
            << err.text;
        whole[c->rank].assign(out.begin(), out.end());
    });
    for (const std::string &w : whole)
        EXPECT_EQ(w, "abcdefghijkl");
}

TEST_P(Collective, SizesThatDoNotAgreeAreSentencesOnEveryRank)
{
    const float x[2] = {};
    const uint8_t part[2] = {};
    run_all(g, RANKS, [&](xm_collective *c) {
        float y[2];
        uint8_t whole[8];
        xm_error sum = {}, join = {};
        EXPECT_EQ(xm_collective_sum(c, XM_F32, x, XM_F32, y, 1 + (c->rank == 1), &sum),
                  XM_INVALID);
        EXPECT_STREQ(sum.text, "the ranks' partial sums differ in size: all ranks must "
                               "run the same tokens in the same precision");
        EXPECT_EQ(xm_collective_join(c, {part, 2}, 1, whole, 7, &join), XM_INVALID);
        EXPECT_STREQ(join.text, "the ranks' slices have 6 bytes in all, expected 7");
    });
}

// The other ranks stop waiting and get the reason; later runs start anew.
TEST_P(Collective, OneThatLeavesEndsTheOthersWaiting)
{
    const float x = 1;
    for (int turn = 0; turn < 50; turn++) {
        run_all(g, RANKS, [&](xm_collective *c) {
            float y = 0;
            xm_error err = {};
            EXPECT_EQ(xm_collective_sum(c, XM_F32, &x, XM_F32, &y, 1, &err), XM_OK);
            if (c->rank == 1) {
                const xm_error why = {XM_DEVICE, "the device is lost"};
                c->ops->leave(c, &why);
                return;
            }
            EXPECT_EQ(xm_collective_sum(c, XM_F32, &x, XM_F32, &y, 1, &err), XM_DEVICE);
            EXPECT_STREQ(err.text, "rank 1: the device is lost");
            c->ops->leave(c, &err); /* the text of a second call is ignored */
        });
        xm_error why = {};
        xm_rank_group_reset(g, &why);
        EXPECT_EQ(why.status, XM_DEVICE);
        EXPECT_STREQ(why.text, "rank 1: the device is lost");
        xm_error none = {};
        xm_rank_group_reset(g, &none);
        EXPECT_EQ(none.status, XM_OK);
    }
}

TEST_P(Collective, PartsOfNoWholeRowsAreASentence)
{
    const uint8_t part[3] = {};
    run_all(g, RANKS, [&](xm_collective *c) {
        uint8_t whole[8];
        xm_error err = {};
        /* two rows of 3, 3 and 2 bytes have the right sum, but not the right parts */
        EXPECT_EQ(
            xm_collective_join(c, {part, c->rank == 2 ? 2u : 3u}, 2, whole, 8, &err),
            XM_INVALID);
    });
}

TEST_P(Collective, ThoseThatDoNotAgreeAreNamed)
{
    run_all(g, RANKS, [&](xm_collective *c) {
        static const uint8_t same[] = {1, 2}, other[] = {1, 3};
        xm_error err = {};
        EXPECT_EQ(xm_collective_agree(c, {same, 2}, "model", &err), XM_OK);
        EXPECT_EQ(xm_collective_agree(c, {c->rank == 1 ? other : same, 2}, "model", &err),
                  XM_INVALID);
        EXPECT_STREQ(err.text, c->rank == 0   ? "rank 1 has another model than rank 0"
                               : c->rank == 1 ? "rank 0 has another model than rank 1"
                                              : "rank 1 has another model than rank 2");
        EXPECT_EQ(xm_collective_wait(c, nullptr), XM_OK);
    });
}

INSTANTIATE_TEST_SUITE_P(Groups, Collective, testing::Values(false, true),
                         [](const auto &i) { return i.param ? "Fake" : "Shared"; });

// When a message is lost, one rank reports it and all get its error text in time.
TEST(FakeGroup, EndsAllRanksWhenAMessageIsLost)
{
    enum { RANKS = 3, SEEDS = 8 };
    int lost = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const xm_fake_network network = {seed, 1e-5, 80, 0.2};
        xm_rank_group *g = xm_fake_group_create(RANKS, &network);
        std::string said[RANKS];
        float shown[RANKS][2] = {}; // must live until all runs have ended
        const auto began = std::chrono::steady_clock::now();
        run_all(g, RANKS, [&](xm_collective *c) {
            float *places = shown[c->rank], y = 0;
            xm_error err = {};
            xm_status s = XM_OK;
            for (int turn = 0; turn < 10 && s == XM_OK; turn++) {
                places[turn % 2] = (float)(turn * (c->rank + 1));
                s = xm_collective_sum(c, XM_F32, &places[turn % 2], XM_F32, &y, 1, &err);
                EXPECT_TRUE(s != XM_OK || y == (float)(turn * 6));
            }
            if (s != XM_OK)
                c->ops->leave(c, &err);
            said[c->rank] = err.text;
        });
        const std::chrono::duration<double> took =
            std::chrono::steady_clock::now() - began;
        xm_error why = {};
        xm_rank_group_reset(g, &why);
        lost += why.status != XM_OK;
        EXPECT_LT(took.count(), 5.0);
        EXPECT_TRUE(why.status == XM_OK || why.status == XM_LOST) << why.text;
        for (const std::string &text : said) // "": the rank had finished before
            EXPECT_TRUE(text.empty() || text.find("has not come for 0.2 s: it is lost") !=
                                            std::string::npos)
                << text;
        EXPECT_EQ(std::string(why.text).find("rank "),
                  why.status == XM_OK ? std::string::npos : 0u);
        xm_rank_group_free(g);
    }
    EXPECT_GT(lost, 0) << "the test loses none";
    EXPECT_LT(lost, SEEDS) << "the test loses one each time";
}

TEST(SharedGroup, HasAtLeastOneRankAndAtMostSo)
{
    EXPECT_EQ(xm_shared_group_create(0), nullptr);
    EXPECT_EQ(xm_shared_group_create(XM_MOST_RANKS + 1), nullptr);
    const xm_fake_network network = {};
    EXPECT_EQ(xm_fake_group_create(0, &network), nullptr);
    EXPECT_EQ(xm_fake_group_create(XM_MOST_RANKS + 1, &network), nullptr);
}
