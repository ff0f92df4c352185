/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of a chat: undoing a turn, leaving out old turns, starting again.
 */
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "plugin/cli/conversation.h"
#include "runtime/util/memory.h"

namespace
{

/* A conversation made from the first letters of roles: "sua" is system, user, assistant. The text
 * of each message is its number. */
class Conversation
{
  public:
    struct xm_conversation c = {};

    explicit Conversation(const std::string &roles)
    {
        for (size_t i = 0; i < roles.size(); i++) {
            std::string text = std::to_string(i);
            const char *role = roles[i] == 's'   ? "system"
                               : roles[i] == 'u' ? "user"
                                                 : "assistant";
            EXPECT_EQ(xm_conversation_add(&c, role, text.data(), text.size(), nullptr),
                      XM_OK);
        }
    }
    ~Conversation()
    {
        xm_conversation_free(&c);
    }

    std::string seen(bool all = false) const
    {
        struct xm_json_out j;
        xm_json_begin(&j);
        yyjson_mut_val *list = xm_conversation_add_json(&c, all, &j);
        std::string text;
        size_t i, n;
        yyjson_mut_val *item;
        yyjson_mut_arr_foreach(list, i, n, item)
        {
            text += yyjson_mut_get_str(yyjson_mut_obj_get(item, "role"))[0];
            text += yyjson_mut_get_str(yyjson_mut_obj_get(item, "content"));
        }
        xm_json_end(&j);
        return text;
    }
};

TEST(Conversation, LeavesOutTheOldestTurnAndKeepsTheSystemsMessage)
{
    Conversation c("suauau");
    EXPECT_EQ(c.seen(), "s0u1a2u3a4u5");
    EXPECT_TRUE(xm_conversation_leave_out(&c.c));
    EXPECT_EQ(c.seen(), "s0u3a4u5");
    EXPECT_TRUE(xm_conversation_leave_out(&c.c));
    EXPECT_EQ(c.seen(), "s0u5");
    EXPECT_FALSE(xm_conversation_leave_out(&c.c));
    EXPECT_EQ(c.seen(true), "s0u1a2u3a4u5") << "the record keeps all";
}

TEST(Conversation, TakesBackAnswersAndTurns)
{
    Conversation c("suaua");
    EXPECT_TRUE(xm_conversation_undo_answer(&c.c));
    EXPECT_EQ(c.seen(), "s0u1a2u3");
    EXPECT_TRUE(xm_conversation_undo(&c.c));
    EXPECT_EQ(c.seen(), "s0u1a2");
    EXPECT_TRUE(xm_conversation_undo(&c.c));
    EXPECT_FALSE(xm_conversation_undo(&c.c));
    EXPECT_FALSE(xm_conversation_undo_answer(&c.c));
    EXPECT_EQ(c.seen(), "s0");
}

TEST(Conversation, BeginsAnewAlsoWhereTurnsWereLeftOut)
{
    Conversation c("uaua");
    EXPECT_TRUE(xm_conversation_leave_out(&c.c));
    xm_conversation_clear(&c.c);
    EXPECT_EQ(c.seen(), "");
    EXPECT_EQ(xm_conversation_add(&c.c, "user", "x", 1, nullptr), XM_OK);
    EXPECT_EQ(c.seen(), "ux");
}

/* An undo may remove all turns that were still shown: then turns that were left out are shown
 * again. */
TEST(Conversation, TakingBackShowsWhatWasLeftOutAgain)
{
    Conversation c("uaua");
    EXPECT_TRUE(xm_conversation_leave_out(&c.c));
    EXPECT_TRUE(xm_conversation_undo(&c.c));
    EXPECT_EQ(c.seen(), "u0a1");
}

TEST(Conversation, SaysWhenMemoryIsOut)
{
    for (int nth = 1; nth <= 2; nth++) {
        Conversation c("ua");
        struct xm_error err = {};
        xm_fail_allocation(static_cast<uint64_t>(nth));
        EXPECT_EQ(xm_conversation_add(&c.c, "user", "x", 1, &err), XM_NO_MEMORY);
        xm_fail_allocation(0);
        EXPECT_EQ(c.seen(), "u0a1");
    }
}

TEST(Conversation, AFailedTurnIsTakenBackAndNotedApart)
{
    Conversation c("suau");
    const std::string begun = "half";
    struct xm_strbuf answer = {};
    xm_strbuf_add_n(&answer, begun.data(), begun.size());
    xm_conversation_fail(&c.c, &answer, "no room");
    xm_strbuf_free(&answer);
    EXPECT_EQ(c.seen(true), "s0u1a2");
    ASSERT_EQ(c.c.n_failed, 1u);
    EXPECT_STREQ(xm_strbuf_text(&c.c.failed[0].text), "3");
    EXPECT_STREQ(xm_strbuf_text(&c.c.failed[0].answer), "half");
    EXPECT_STREQ(xm_strbuf_text(&c.c.failed[0].error), "no room");
    EXPECT_EQ(c.c.failed[0].behind, 3u);
}

} // namespace
