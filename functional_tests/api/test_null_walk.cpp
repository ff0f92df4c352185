/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function of the public headers is called with each pointer NULL in turn: it returns the
 * code for a missing argument, logs a line, keeps the text of the last error, and writes nothing.
 * Handles that were freed or are of another kind are refused in the same way. With one megabyte
 * in place of each text nothing worse than a failure happens.
 */
#include "functional_tests/api/null_walk_values.h"

static std::string
name_of(const null_walk_case &c)
{
    return std::string(c.function) + " (" + c.parameter + ")";
}

static bool
begins_with(const std::string &text, const std::string &begin)
{
    return text.compare(0, begin.size(), begin) == 0;
}

/* Makes an unrelated failure and returns the text that it leaves. */
static std::string
leave_sentence(const ov_core_t *core)
{
    ov_model_t *m = nullptr;
    EXPECT_EQ(ov_core_read_model(core, "/nonexistent/model.xml", nullptr, &m),
              GENERAL_ERROR);
    return last_error();
}

class NullWalk : public testing::Test
{
  protected:
    static void SetUpTestSuite()
    {
        values = new NullWalkValues;
    }
    static void TearDownTestSuite()
    {
        ov_util_reset_log_callback();
        delete values;
        values = nullptr;
    }

    /* Returns the cases of a kind, without those of objects that do not exist here. */
    static std::vector<null_walk_case> cases(null_walk_kind kind)
    {
        std::vector<null_walk_case> list;
        for (size_t i = 0; i < null_walk_n_cases; i++) {
            const null_walk_case &c = null_walk_cases[i];
            bool needs = strstr(c.function, "_with_context") != nullptr;
            for (const char *begin : {"xm_sequence_", "xm_batch_", "ov_remote_context_"})
                needs = needs || begins_with(c.function, begin);
            if (c.kind == kind && (!needs || values->v.context))
                list.push_back(c);
        }
        return list;
    }

    static inline NullWalkValues *values;
};

TEST_F(NullWalk, KnowsEveryFunction)
{
    EXPECT_GE(null_walk_n_functions, 250u);
    EXPECT_GE(null_walk_n_cases, 550u);
}

static std::string logged;

static void
expect_refusal(const null_walk_case &c, const null_walk_values &v)
{
    const std::string sentence = leave_sentence(v.core);
    bool touched = false;
    logged.clear();
    ov_util_set_log_callback([](const char *line) { logged += line; });
    const long code = c.call(&v, &touched);
    ov_util_reset_log_callback();
    EXPECT_EQ(code, c.expected) << name_of(c) << ": " << last_error();
    EXPECT_FALSE(touched) << name_of(c);
    if (c.expected != INVALID_C_PARAM)
        return;
    EXPECT_EQ(last_error(), sentence) << name_of(c);
    if (!strstr(c.function, "genai_") && !strstr(c.function, "log_callback")) {
        EXPECT_NE(logged, "") << name_of(c);
    }
}

TEST_F(NullWalk, WhatIsMissingIsRefused)
{
    for (const null_walk_case &c : cases(NULL_WALK_MISSING))
        expect_refusal(c, values->v);
}

/* Freeing twice has no effect either. */
TEST_F(NullWalk, StrangeHandlesAreRefused)
{
    null_walk_values dead = {};
    {
        const NullWalkValues others;
        dead = others.v;
    }
    null_walk_values v = values->v;
    v.freed = &dead;
    const auto list = cases(NULL_WALK_STRANGE);
    EXPECT_GT(list.size(), 200u);
    for (const null_walk_case &c : list)
        expect_refusal(c, v);
}

/* Functions without a code, and optional arguments. */
TEST_F(NullWalk, WhatMayBeMissingIsNotNeeded)
{
    for (const null_walk_case &c : cases(NULL_WALK_OPTIONAL)) {
        bool touched = false;
        const long code = c.call(&values->v, &touched);
        EXPECT_NE(code, INVALID_C_PARAM) << name_of(c);
        if (c.expected != NULL_WALK_ANY) {
            EXPECT_EQ(code, c.expected) << name_of(c) << ": " << last_error();
        }
    }
}

TEST_F(NullWalk, PreProcessingIsNotThere)
{
    const auto list = cases(NULL_WALK_UNOFFERED);
    EXPECT_GT(list.size(), 30u);
    for (const null_walk_case &c : list) {
        bool touched = false;
        leave_sentence(values->v.core);
        EXPECT_EQ(c.call(&values->v, &touched), c.expected) << name_of(c);
        EXPECT_FALSE(touched) << name_of(c);
        EXPECT_NE(last_error().find(c.function), std::string::npos) << name_of(c);
    }
}

TEST_F(NullWalk, LongTextsAreTextsLikeOthers)
{
    for (const null_walk_case &c : cases(NULL_WALK_LONG)) {
        bool touched = false;
        const long code = c.call(&values->v, &touched);
        EXPECT_LE(code, OK) << name_of(c);
        EXPECT_FALSE(touched && code != OK) << name_of(c);
        EXPECT_LT(last_error().size(), 4096u) << name_of(c);
    }
}
