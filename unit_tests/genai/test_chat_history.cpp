/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON containers and chat histories.
 */
#include "unit_tests/genai/genai_test.h"

#include "runtime/util/memory.h"

namespace
{

using JsonStatus = ov_genai_json_container_status_e;
using HistoryStatus = ov_genai_chat_history_status_e;

History
history(const std::string &messages = "[]")
{
    ov_genai_chat_history *h = nullptr;
    EXPECT_EQ(ov_genai_chat_history_create_from_json_container(&h, json(messages).get()),
              OV_GENAI_CHAT_HISTORY_OK);
    return History(h);
}

/* Returns the JSON text that a getter returns; "" if it fails, with the expected status. */
template <typename Get>
std::string
got(Get get, HistoryStatus expected = OV_GENAI_CHAT_HISTORY_OK)
{
    ov_genai_json_container *c = nullptr;
    EXPECT_EQ(get(&c), expected);
    const Json owner(c);
    return c ? text_of(c) : "";
}

std::string
messages(const History &h)
{
    return got([&](auto **c) { return ov_genai_chat_history_get_messages(h.get(), c); });
}

TEST(JsonContainer, KeepsOrderAndNumbersAndDropsBlanks)
{
    EXPECT_EQ(
        text_of(json(" { \"b\" : 1.0 , \"a\":[ 1e5, true,null , \"x y\" ]} ").get()),
        "{\"b\":1.0,\"a\":[1e5,true,null,\"x y\"]}");
    EXPECT_EQ(text_of(json("12345678901234567890123").get()), "12345678901234567890123");
    EXPECT_EQ(text_of(json("\"\\u00e9\"").get()), "\"\u00e9\"");
}

TEST(JsonContainer, SaysWhatIsNoValue)
{
    const struct {
        const char *text, *says;
    } cases[] = {
        {"[1e400]", "byte 1: number is infinity"},
        {"{\"a\":[1,-1e400]}", "byte 8: number is infinity"},
        {"{\"a\":}", "not valid JSON at byte 5"},
    };
    for (const auto &c : cases) {
        ov_genai_json_container *made = nullptr;
        Log log;
        EXPECT_EQ(ov_genai_json_container_create_from_json_string(&made, c.text),
                  OV_GENAI_JSON_CONTAINER_INVALID_JSON);
        EXPECT_EQ(made, nullptr);
        EXPECT_NE(log.text.find(c.says), std::string::npos) << log.text;
    }
}

TEST(JsonContainer, BeginsEmpty)
{
    const struct {
        JsonStatus (*create)(ov_genai_json_container **);
        const char *text;
    } cases[] = {{ov_genai_json_container_create, "{}"},
                 {ov_genai_json_container_create_object, "{}"},
                 {ov_genai_json_container_create_array, "[]"}};
    for (const auto &c : cases) {
        ov_genai_json_container *made = nullptr;
        ASSERT_EQ(c.create(&made), OV_GENAI_JSON_CONTAINER_OK);
        EXPECT_EQ(text_of(Json(made).get()), c.text);
        EXPECT_EQ(c.create(nullptr), OV_GENAI_JSON_CONTAINER_INVALID_PARAM);
    }
}

TEST(JsonContainer, RefusesWhatIsNoJson)
{
    for (const char *text : {"", "{", "[1,]", "{'a':1}", "nul", "{} {}"}) {
        ov_genai_json_container *c = nullptr;
        EXPECT_EQ(ov_genai_json_container_create_from_json_string(&c, text),
                  OV_GENAI_JSON_CONTAINER_INVALID_JSON)
            << text;
        EXPECT_EQ(c, nullptr);
    }
}

TEST(JsonContainer, CopiesAreOnTheirOwn)
{
    Json one = json("[1,2]");
    ov_genai_json_container *c = nullptr;
    ASSERT_EQ(ov_genai_json_container_copy(one.get(), &c), OV_GENAI_JSON_CONTAINER_OK);
    one.reset();
    EXPECT_EQ(text_of(Json(c).get()), "[1,2]");
}

TEST(JsonContainer, SaysHowMuchRoomItsTextTakes)
{
    const Json c = json("[1,2]");
    char text[6] = "?";
    size_t n = 5;
    EXPECT_EQ(ov_genai_json_container_to_json_string(c.get(), text, &n),
              OV_GENAI_JSON_CONTAINER_OUT_OF_BOUNDS);
    EXPECT_STREQ(text, "?");
    EXPECT_EQ(n, 6u);
    EXPECT_EQ(ov_genai_json_container_to_json_string(c.get(), text, &n),
              OV_GENAI_JSON_CONTAINER_OK);
    EXPECT_STREQ(text, "[1,2]");
    char wide[20];
    n = sizeof(wide);
    EXPECT_EQ(ov_genai_json_container_to_json_string(c.get(), wide, &n),
              OV_GENAI_JSON_CONTAINER_OK);
    EXPECT_EQ(n, 6u);
    EXPECT_STREQ(wide, "[1,2]");
}

TEST(JsonContainer, TakesValuesThatAreNestedDeeply)
{
    const std::string deep = std::string(100000, '[') + std::string(100000, ']');
    EXPECT_EQ(text_of(json(deep).get()), deep);
}

TEST(JsonContainer, RefusesMissingArguments)
{
    const Json c = json("1");
    ov_genai_json_container *out = nullptr;
    char text[9];
    size_t n = sizeof(text);
    for (JsonStatus s : {ov_genai_json_container_create_from_json_string(nullptr, "1"),
                         ov_genai_json_container_create_from_json_string(&out, nullptr),
                         ov_genai_json_container_to_json_string(nullptr, text, &n),
                         ov_genai_json_container_to_json_string(c.get(), text, nullptr),
                         ov_genai_json_container_copy(nullptr, &out),
                         ov_genai_json_container_copy(c.get(), nullptr)})
        EXPECT_EQ(s, OV_GENAI_JSON_CONTAINER_INVALID_PARAM);
    ov_genai_json_container_free(nullptr);
}

TEST(ChatHistory, IsAList)
{
    const History h = history();
    size_t n = 9;
    int empty = 9;
    EXPECT_EQ(messages(h), "[]");
    EXPECT_EQ(ov_genai_chat_history_pop_back(h.get()), OV_GENAI_CHAT_HISTORY_EMPTY);
    EXPECT_EQ(ov_genai_chat_history_empty(h.get(), &empty), OV_GENAI_CHAT_HISTORY_OK);
    EXPECT_EQ(empty, 1);
    for (const char *text : {"{\"role\":\"user\"}", "{ \"b\": 2 }", "{\"c\":3}"})
        EXPECT_EQ(ov_genai_chat_history_push_back(h.get(), json(text).get()),
                  OV_GENAI_CHAT_HISTORY_OK);
    EXPECT_EQ(messages(h), "[{\"role\":\"user\"},{\"b\":2},{\"c\":3}]");
    EXPECT_EQ(ov_genai_chat_history_pop_back(h.get()), OV_GENAI_CHAT_HISTORY_OK);
    EXPECT_EQ(ov_genai_chat_history_size(h.get(), &n), OV_GENAI_CHAT_HISTORY_OK);
    EXPECT_EQ(n, 2u);
    EXPECT_EQ(ov_genai_chat_history_empty(h.get(), &empty), OV_GENAI_CHAT_HISTORY_OK);
    EXPECT_EQ(empty, 0);
    EXPECT_EQ(ov_genai_chat_history_clear(h.get()), OV_GENAI_CHAT_HISTORY_OK);
    EXPECT_EQ(messages(h), "[]");
}

TEST(ChatHistory, GivesSingleMessages)
{
    const History h = history("[{\"a\":1}, {\"b\":[2.0]}]"), none = history();
    const auto at = [&](size_t i) {
        return
            [&, i](auto **c) { return ov_genai_chat_history_get_message(h.get(), i, c); };
    };
    const auto first = [](const History &of) {
        return [&](auto **c) { return ov_genai_chat_history_get_first(of.get(), c); };
    };
    const auto last = [](const History &of) {
        return [&](auto **c) { return ov_genai_chat_history_get_last(of.get(), c); };
    };
    EXPECT_EQ(got(at(0)), "{\"a\":1}");
    EXPECT_EQ(got(at(1)), "{\"b\":[2.0]}");
    EXPECT_EQ(got(at(2), OV_GENAI_CHAT_HISTORY_OUT_OF_BOUNDS), "");
    EXPECT_EQ(got(first(h)), "{\"a\":1}");
    EXPECT_EQ(got(last(h)), "{\"b\":[2.0]}");
    EXPECT_EQ(got(first(none), OV_GENAI_CHAT_HISTORY_EMPTY), "");
    EXPECT_EQ(got(last(none), OV_GENAI_CHAT_HISTORY_EMPTY), "");
}

TEST(ChatHistory, TakesObjectsOnly)
{
    ov_genai_chat_history *made = nullptr;
    for (const char *text : {"{}", "1", "[1]", "[{},[]]"})
        EXPECT_EQ(
            ov_genai_chat_history_create_from_json_container(&made, json(text).get()),
            OV_GENAI_CHAT_HISTORY_INVALID_JSON)
            << text;
    EXPECT_EQ(made, nullptr);
    const History h = history();
    for (const char *text : {"[]", "1", "\"{}\"", "null"}) {
        EXPECT_EQ(ov_genai_chat_history_push_back(h.get(), json(text).get()),
                  OV_GENAI_CHAT_HISTORY_INVALID_JSON);
        EXPECT_EQ(ov_genai_chat_history_set_extra_context(h.get(), json(text).get()),
                  OV_GENAI_CHAT_HISTORY_INVALID_JSON);
    }
    EXPECT_EQ(ov_genai_chat_history_set_tools(h.get(), json("{}").get()),
              OV_GENAI_CHAT_HISTORY_INVALID_JSON);
}

TEST(ChatHistory, KeepsToolsAndExtraContext)
{
    const History h = history();
    const auto tools = [&](auto **c) {
        return ov_genai_chat_history_get_tools(h.get(), c);
    };
    const auto extra = [&](auto **c) {
        return ov_genai_chat_history_get_extra_context(h.get(), c);
    };
    const auto variables = [&] {
        xm_strbuf b = {};
        xm_genai_history_variables(h.get(), &b);
        const std::string text = xm_strbuf_text(&b);
        xm_strbuf_free(&b);
        return text;
    };
    EXPECT_EQ(got(tools), "[]");
    EXPECT_EQ(got(extra), "{}");
    EXPECT_EQ(variables(), "{}");
    EXPECT_EQ(ov_genai_chat_history_set_tools(h.get(), json("[{\"t\":1}]").get()),
              OV_GENAI_CHAT_HISTORY_OK);
    EXPECT_EQ(variables(), "{\"tools\":[{\"t\":1}]}");
    EXPECT_EQ(ov_genai_chat_history_set_extra_context(h.get(), json("{\"x\":2}").get()),
              OV_GENAI_CHAT_HISTORY_OK);
    EXPECT_EQ(got(tools), "[{\"t\":1}]");
    EXPECT_EQ(got(extra), "{\"x\":2}");
    EXPECT_EQ(variables(), "{\"tools\":[{\"t\":1}],\"x\":2}");
    EXPECT_EQ(ov_genai_chat_history_set_tools(h.get(), json("[]").get()),
              OV_GENAI_CHAT_HISTORY_OK);
    EXPECT_EQ(variables(), "{\"x\":2}");
}

TEST(ChatHistory, RefusesMissingArguments)
{
    const History h = history("[{}]");
    const Json object = json("{}");
    ov_genai_chat_history *made = nullptr;
    ov_genai_json_container *c = nullptr;
    size_t n;
    int empty;
    for (HistoryStatus s :
         {ov_genai_chat_history_create(nullptr),
          ov_genai_chat_history_create_from_json_container(nullptr, object.get()),
          ov_genai_chat_history_create_from_json_container(&made, nullptr),
          ov_genai_chat_history_push_back(nullptr, object.get()),
          ov_genai_chat_history_push_back(h.get(), nullptr),
          ov_genai_chat_history_pop_back(nullptr),
          ov_genai_chat_history_get_messages(nullptr, &c),
          ov_genai_chat_history_get_messages(h.get(), nullptr),
          ov_genai_chat_history_get_message(nullptr, 0, &c),
          ov_genai_chat_history_get_message(h.get(), 0, nullptr),
          ov_genai_chat_history_get_first(nullptr, &c),
          ov_genai_chat_history_get_first(h.get(), nullptr),
          ov_genai_chat_history_get_last(nullptr, &c),
          ov_genai_chat_history_get_last(h.get(), nullptr),
          ov_genai_chat_history_clear(nullptr),
          ov_genai_chat_history_size(nullptr, &n),
          ov_genai_chat_history_size(h.get(), nullptr),
          ov_genai_chat_history_empty(nullptr, &empty),
          ov_genai_chat_history_empty(h.get(), nullptr),
          ov_genai_chat_history_set_tools(nullptr, object.get()),
          ov_genai_chat_history_set_tools(h.get(), nullptr),
          ov_genai_chat_history_get_tools(nullptr, &c),
          ov_genai_chat_history_get_tools(h.get(), nullptr),
          ov_genai_chat_history_set_extra_context(nullptr, object.get()),
          ov_genai_chat_history_set_extra_context(h.get(), nullptr),
          ov_genai_chat_history_get_extra_context(nullptr, &c),
          ov_genai_chat_history_get_extra_context(h.get(), nullptr)})
        EXPECT_EQ(s, OV_GENAI_CHAT_HISTORY_INVALID_PARAM);
    ov_genai_chat_history_free(nullptr);
    EXPECT_EQ(made, nullptr);
    EXPECT_EQ(c, nullptr);
}

/* Each allocation fails once: the call returns an error, leaks nothing and changes nothing. */
TEST(ChatHistory, SurvivesWithoutMemory)
{
    const Json list = json("[{\"a\":1},{\"b\":2}]"), one = json("{\"c\":3}");
    for (uint64_t n = 1;; n++) {
        ov_genai_chat_history *h = nullptr;
        ov_genai_json_container *c = nullptr;
        xm_fail_allocation(n);
        HistoryStatus s =
            ov_genai_chat_history_create_from_json_container(&h, list.get());
        if (s == OV_GENAI_CHAT_HISTORY_OK)
            s = ov_genai_chat_history_push_back(h, one.get());
        if (s == OV_GENAI_CHAT_HISTORY_OK)
            s = ov_genai_chat_history_get_messages(h, &c);
        const bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        ov_genai_chat_history_free(h);
        ov_genai_json_container_free(c);
        if (!seen) {
            EXPECT_EQ(s, OV_GENAI_CHAT_HISTORY_OK);
            break;
        }
        EXPECT_EQ(s, OV_GENAI_CHAT_HISTORY_ERROR) << n;
    }
}

} // namespace
