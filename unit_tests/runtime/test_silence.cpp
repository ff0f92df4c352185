// SPDX-License-Identifier: Apache-2.0
// How long the ranks of a job have been silent.
#include <gtest/gtest.h>

#include <initializer_list>

#include "runtime/mpi/silence.h"

namespace
{

// Rank 1 of 3, which looks every 0.25 s; another rank may be silent for 3 s.
class Silence : public testing::Test
{
  protected:
    xm_silence s;
    double now = 100;

    void SetUp() override
    {
        xm_silence_begin(&s, 3, 1, 3.0, 0.25, now);
    }
    // Looks for `seconds` in which these ranks are heard; returns the rank that is lost, or 3.
    uint32_t look(double seconds, std::initializer_list<uint32_t> heard)
    {
        uint32_t lost = 3;
        for (double until = now + seconds; now < until && lost == 3;) {
            now += 0.25;
            for (uint32_t r : heard)
                xm_silence_heard(&s, r);
            lost = xm_silence_find(&s, now);
        }
        return lost;
    }
};

TEST_F(Silence, OfOneRankEndsTheJobAfterTheLimit)
{
    EXPECT_EQ(look(60, {0, 2}), 3u);
    EXPECT_EQ(look(3, {0}), 3u);
    EXPECT_EQ(look(0.25, {0}), 2u);
}

TEST_F(Silence, IsOverWhenTheRankIsHeard)
{
    for (int i = 0; i < 10; i++) {
        EXPECT_EQ(look(2.75, {2}), 3u);
        EXPECT_EQ(look(0.25, {0, 2}), 3u);
    }
    EXPECT_EQ(look(3.25, {2}), 0u);
}

TEST_F(Silence, TheFirstOfSeveralIsNamed)
{
    EXPECT_EQ(look(60, {}), 0u);
    EXPECT_LE(now, 103.25);
}

TEST_F(Silence, OfARankThatHasEndedMeansNothing)
{
    s.has_ended[0] = true;
    EXPECT_EQ(look(60, {2}), 3u);
    EXPECT_EQ(look(60, {}), 2u);
}

// After an hour in which this process stood still, the others still have almost all of the limit.
TEST_F(Silence, TimeInWhichThisProcessStoodStillDoesNotCount)
{
    for (int i = 0; i < 5; i++) {
        now += 3600;
        EXPECT_EQ(xm_silence_find(&s, now), 3u);
    }
    EXPECT_EQ(look(1.5, {}), 3u);
    EXPECT_EQ(look(0.5, {}), 0u);
}

// Short delays count as they are, so that a busy machine does not lengthen the limit.
TEST_F(Silence, ShortDelaysCount)
{
    for (int i = 0; i < 6; i++) {
        now += 0.49;
        EXPECT_EQ(xm_silence_find(&s, now), 3u);
    }
    now += 0.49;
    EXPECT_EQ(xm_silence_find(&s, now), 0u);
}

// All ranks that hear each other agree who says it.
TEST_F(Silence, TheFirstRankThatIsHeardSpeaks)
{
    EXPECT_EQ(look(2, {0}), 3u);
    EXPECT_EQ(xm_silence_first(&s), 0u);
    EXPECT_EQ(look(2, {2}), 3u);
    EXPECT_EQ(xm_silence_first(&s), 1u);
    EXPECT_EQ(look(0.25, {0}), 3u);
    EXPECT_EQ(xm_silence_first(&s), 0u);
    s.has_ended[0] = true;
    EXPECT_EQ(xm_silence_first(&s), 1u);
}

} // namespace
