/* SPDX-License-Identifier: Apache-2.0
 *
 * Which variant of a table is found to be the fastest, by times that the test sets; and that a
 * stored choice is used, on the fake engine.
 */
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "functional_tests/common/folder.h"
#include "primitives/measured_rows.h"
#include "primitives/stage.h"
#include "primitives/tuning.h"
#include "runtime/fake/fake.h"

namespace
{

const char *
odd_refuses(const void *problem)
{
    return *static_cast<const int *>(problem) % 2 ? "it is odd" : nullptr;
}

const xm_variant rows[] = {
    {"first", XM_FAMILY_GEN, 0, odd_refuses},
    {"second", XM_FAMILY_GEN, 0, nullptr},
    {"third", XM_FAMILY_GEN, 0, nullptr},
    {"matrix", XM_FAMILY_GEN, XM_CAP_DPAS, nullptr},
    {"last", XM_FAMILY_ANY, 0, nullptr},
};
const xm_variant_table table = {"example", rows, 5};

xm_device_info
chip()
{
    xm_device_info info = {};
    info.kind = XM_DEVICE_GPU;
    info.base_align = 64;
    info.max_work_group = 256;
    info.max_alloc_bytes = 64 << 20;
    snprintf(info.name, sizeof(info.name), "fake chip");
    return info;
}

/* The times of each variant, one after the other; the last one repeats. Without times a variant
 * cannot run. */
struct Times {
    std::map<std::string, std::vector<double>> of;
    std::vector<std::string> asked;
    std::vector<double> hopeless;     /* the time limit of each measurement */
    xm_status other = XM_UNSUPPORTED; /* status of a variant without times */
};

xm_status
next_time(void *ctx, const xm_variant_table *t, size_t row, double hopeless,
          double *seconds, xm_error *err)
{
    Times *times = static_cast<Times *>(ctx);
    const std::string name = t->rows[row].name;
    times->asked.push_back(name);
    times->hopeless.push_back(hopeless);
    std::vector<double> &left = times->of[name];
    if (left.empty())
        return xm_fail(err, times->other, "%s has no time", name.c_str());
    *seconds = left.front();
    if (left.size() > 1)
        left.erase(left.begin());
    return XM_OK;
}

struct Found {
    std::string best, usual;
};

Found
tune(Times &times)
{
    const xm_device_info info = chip();
    xm_timed_rows timed;
    xm_error err = {};
    if (xm_tune_table(&table, &info, next_time, &times, &timed, &err) != XM_OK)
        return {err.text, ""};
    return {rows[timed.best].name, rows[timed.usual].name};
}

struct Case {
    const char *name;
    std::map<std::string, std::vector<double>> times;
    const char *best, *usual;
    std::vector<std::string> asked;
};

class Tuning : public ::testing::TestWithParam<Case>
{
};

TEST_P(Tuning, FindsTheBestRow)
{
    Times times{GetParam().times, {}, {}};
    const Found found = tune(times);
    EXPECT_EQ(found.best, GetParam().best);
    EXPECT_EQ(found.usual, GetParam().usual);
    EXPECT_EQ(times.asked, GetParam().asked);
}

using Names = std::vector<std::string>;
const Case cases[] = {
    {"TheUsual",
     {{"first", {1}}, {"second", {1.2}}, {"third", {9}}},
     "first",
     "first",
     Names{"first", "second", "third", "first", "second"}},
    {"Another",
     {{"first", {2}}, {"second", {9}}, {"third", {1}}},
     "third",
     "first",
     Names{"first", "second", "third", "first", "third", "first", "third"}},
    {"ALeadOfAHundredthIsNone",
     {{"first", {1}}, {"second", {0.99}}, {"third", {2}}},
     "first",
     "first",
     Names{"first", "second", "third", "first", "second"}},
    {"ADisturbedTimeIsTakenAgain",
     {{"first", {7, 1}}, {"second", {2}}, {"third", {9}}},
     "first",
     "first",
     Names{"first", "second", "third", "first", "second"}},
    {"AndOnceMoreBeforeAnotherRowWins",
     {{"first", {7, 7, 1}}, {"second", {2}}, {"third", {9}}},
     "first",
     "first",
     Names{"first", "second", "third", "first", "second", "first", "second"}},
    {"RefusedRowsAreNoUsualOnes",
     {{"second", {2}}, {"third", {1}}},
     "third",
     "second",
     Names{"first", "second", "third", "second", "third", "second", "third"}},
    {"TheReferenceOnlyWhereNothingElseRuns",
     {{"last", {5}}},
     "last",
     "last",
     Names{"first", "second", "third", "last", "last"}},
};
INSTANTIATE_TEST_SUITE_P(Times, Tuning, testing::ValuesIn(cases),
                         [](const auto &c) { return std::string(c.param.name); });

TEST(TuningTells, FromWhichTimeOnARowIsHopeless)
{
    Times times{{{"first", {2}}, {"second", {8}}, {"third", {1}}}, {}, {}};
    EXPECT_EQ(tune(times).best, "third");
    const std::vector<double> hopeless = {0, 3, 3, 1.5, 1.5, 1.5, 1.5};
    EXPECT_EQ(times.hopeless, hopeless) << "1.5 times the best";
}

TEST(TuningFails, WhereNothingRuns)
{
    Times times;
    EXPECT_EQ(tune(times).best, "example: no kernel can be timed");
    Times lost;
    lost.other = XM_LOST;
    EXPECT_EQ(tune(lost).best, "first has no time");
    EXPECT_EQ(lost.asked, Names{"first"}) << "other failures end it";
}

/* ---- stored choices ------------------------------------------------------------------------ */

class MeasuredRows : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        xm_config_init(&config);
        ASSERT_EQ(xm_config_set(&config, "CACHE_DIR", folder.path.c_str(), &err), XM_OK);
        open();
    }
    void TearDown() override
    {
        unsetenv("XM_FORCE");
        xm_engine_unref(engine);
    }
    void open()
    {
        const xm_device_info info = chip();
        xm_engine_unref(engine);
        engine = nullptr;
        ASSERT_EQ(xm_fake_engine_create(&info, &config, &engine, &err), XM_OK)
            << err.text;
    }
    bool keep(size_t row)
    {
        return xm_measured_row_keep(engine, &table, &problems, row);
    }
    /* Returns the variant that runs `problem`. */
    std::string taken(int problem = 0)
    {
        xm_pick pick = {&table, &problem, problems};
        size_t row = 0;
        err = {};
        if (xm_variant_prepare(&pick, engine, &err) != XM_OK ||
            xm_variant_pick(&pick, xm_engine_info(engine), &problem, &row, &err) != XM_OK)
            return err.text;
        return rows[row].name;
    }
    Folder folder{"measured_rows"};
    xm_problem_class problems = {"small ones"};
    xm_config config;
    xm_engine *engine = nullptr;
    xm_error err = {};
};

TEST_F(MeasuredRows, ComeFirst)
{
    EXPECT_EQ(taken(), "first");
    ASSERT_TRUE(keep(2));
    EXPECT_EQ(taken(), "third");
    ASSERT_TRUE(keep(1)) << "measured again";
    EXPECT_EQ(taken(), "second");
    open();
    EXPECT_EQ(taken(), "second") << "by another engine";
    problems = {"large ones"};
    EXPECT_EQ(taken(), "first") << "of other problems";
    problems = {""};
    EXPECT_FALSE(keep(1)) << "a step without classes";
    EXPECT_EQ(taken(), "first");
}

TEST_F(MeasuredRows, GiveWay)
{
    ASSERT_TRUE(keep(0));
    EXPECT_EQ(taken(1), "second") << "it refuses this problem";
    ASSERT_TRUE(keep(3));
    EXPECT_EQ(taken(), "first") << "the device has no matrix engines";
    ASSERT_TRUE(keep(2));
    setenv("XM_FORCE", "ref", 1);
    EXPECT_EQ(taken(), "last");
    setenv("XM_FORCE", "host", 1);
    EXPECT_EQ(taken(), "third") << "nothing is forced here";
    unsetenv("XM_FORCE");
    ASSERT_EQ(xm_config_set(&config, "XM_TUNED_KERNELS", "NO", &err), XM_OK);
    open();
    EXPECT_EQ(taken(), "first") << "the user's word";
}

TEST_F(MeasuredRows, AreNotKeptWithoutAFolder)
{
    ASSERT_EQ(xm_config_set(&config, "CACHE_DIR", "", &err), XM_OK);
    open();
    EXPECT_FALSE(keep(2));
    EXPECT_EQ(taken(), "first");
}

TEST_F(MeasuredRows, OfTablesThatHaveChangedAreForgotten)
{
    const xm_variant_table before = {"example", rows + 4, 1},
                           after = {"example", rows, 3};
    ASSERT_TRUE(xm_measured_row_keep(engine, &before, &problems, 0));
    size_t row = 0;
    EXPECT_TRUE(xm_measured_row(engine, &table, &problems, &row));
    EXPECT_EQ(row, 4u) << "by its name";
    EXPECT_FALSE(xm_measured_row(engine, &after, &problems, &row));
}

/* Refuses variant 3, as its compiler would. */
xm_status
refuse_third(void *ctx, size_t, xm_error *why)
{
    const xm_pick *pick = static_cast<const xm_pick *>(ctx);
    return pick->row == 2 ? xm_fail(why, XM_NOT_BUILT, "not this one") : XM_OK;
}

TEST_F(MeasuredRows, ThatDoNotBuildAreLeftOut)
{
    ASSERT_TRUE(keep(2));
    int problem = 0;
    xm_pick pick = {&table, &problem, problems};
    ASSERT_EQ(xm_variant_build(&pick, 1, engine, refuse_third, &pick, &err), XM_OK);
    EXPECT_EQ(pick.row, 0u);
}

} // namespace
