/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of pipelines equal those of the program for the same prompts, in chats and without, piece
 * by piece.
 */
#include <thread>

#include "functional_tests/genai/genai_test.h"

namespace
{

const std::string question = "What is the capital of France?";

std::string
turn(const std::string &role, const std::string &text)
{
    return "<|im_start|>" + role + "\n" + text + "<|im_end|>\n";
}

const std::string begin_answer = "<|im_start|>assistant\n";

std::string
message(const std::string &role, const std::string &text)
{
    return "{\"role\":\"" + role + "\",\"content\":\"" + text + "\"}";
}

/* Returns the program's text, with its own defaults or with those of the pipeline in these tests.
 */
std::string
program_says(const std::string &model, const std::string &prompt, bool in_f32 = true,
             bool to_the_end = true)
{
    Words words = {"generate", "-m", model, "-p", prompt, "-n", "20", "-d", "CPU"};
    if (in_f32)
        words.insert(words.end(), {"--precision", "f32", "--kv", "f32"});
    if (!to_the_end)
        words.push_back("--ignore-eos");
    words.push_back("--json");
    const Outcome o = run(words);
    EXPECT_EQ(o.code, 0) << o.err;
    return Json(o.out).text("/text");
}

Config
twenty()
{
    return make_config([](auto *c) { SET(max_new_tokens, 20); });
}

class Texts : public GenAi
{
};

TEST_F(Texts, AreWhatTheProgramWrites)
{
    const std::string prompt = "January, February,";
    EXPECT_EQ(say(prompt,
                  [](auto *c) {
                      SET(max_new_tokens, 20);
                      SET(ignore_eos, true);
                  }),
              program_says(ir_folder, prompt, true, false));
    EXPECT_EQ(text_of(generate(chat, question, twenty()).get()),
              program_says(ir_folder, turn("user", question) + begin_answer))
        << "a prompt is a message of a user";
}

TEST_F(Texts, AreTheSameWithoutProperties)
{
    ov_genai_llm_pipeline *p = nullptr;
    ASSERT_EQ(ov_genai_llm_pipeline_create(ir_folder.c_str(), "CPU", 0, &p), OK);
    EXPECT_EQ(text_of(generate(Pipe(p), question, twenty()).get()),
              program_says(ir_folder, turn("user", question) + begin_answer, false));
}

TEST_F(Texts, ComeOfGgufFilesToo)
{
    const Pipe p = open_pipe(gguf_file);
    ASSERT_TRUE(p);
    EXPECT_EQ(text_of(generate(p, question, twenty()).get()),
              program_says(gguf_file, turn("user", question) + begin_answer));
    const Config c = twenty();
    ov_genai_generation_config *own = nullptr;
    ASSERT_EQ(ov_genai_llm_pipeline_get_generation_config(p.get(), &own), OK);
    EXPECT_EQ(ov_genai_generation_config_validate(Config(own).get()), OK)
        << "it has what ends its texts";
}

TEST_F(Texts, OfTheReferenceAreTheSame)
{
    const Pipe p = open_pipe(ir_folder, "REFERENCE");
    ASSERT_TRUE(p);
    const Config c = make_config([](auto *c) { SET(max_new_tokens, 4); });
    EXPECT_EQ(text_of(generate(p, question, c).get()),
              text_of(generate(chat, question, c).get()));
}

TEST_F(Texts, OfTheOwnConfigEndWhereTheModelEnds)
{
    ov_genai_generation_config *own = nullptr;
    ASSERT_EQ(ov_genai_llm_pipeline_get_generation_config(chat.get(), &own), OK);
    const Config owner(own);
    size_t most = 0;
    EXPECT_EQ(ov_genai_generation_config_get_max_new_tokens(own, &most), OK);
    EXPECT_EQ(most, SIZE_MAX);
    const std::string whole = text_of(generate(chat, question, Config()).get());
    EXPECT_EQ(whole, text_of(generate(chat, question, twenty()).get()));
    ASSERT_EQ(ov_genai_generation_config_set_max_new_tokens(own, 2), OK);
    ASSERT_EQ(ov_genai_llm_pipeline_set_generation_config(chat.get(), own), OK);
    const std::string two = text_of(generate(chat, question, Config()).get());
    EXPECT_LT(two.size(), whole.size());
    EXPECT_EQ(two, whole.substr(0, two.size()));
    ASSERT_EQ(ov_genai_generation_config_set_max_new_tokens(own, SIZE_MAX), OK);
    ASSERT_EQ(ov_genai_llm_pipeline_set_generation_config(chat.get(), own), OK);
}

/* The program also ends at tokens that the tokenizer knows by their spelling. */
TEST_F(Texts, EndAtTheIdsOfTheModelsFilesOnly)
{
    const std::string prompt = "Paris is the capital of";
    const std::string ended = program_says(ir_folder, prompt);
    const std::string text = text_of(generate(plain, prompt, twenty()).get());
    EXPECT_EQ(text.substr(0, ended.size()), ended);
    EXPECT_GT(text.size(), ended.size());
}

/* From generation_config.json, else from config.json, else from the tokenizer. */
TEST_F(Texts, EndAtTheIdsOfTheFirstPlaceThatHasAny)
{
    const std::string whole = text_of(generate(chat, question, twenty()).get());
    const Json said(run({"generate", "-m", ir_folder, "-p",
                         turn("user", question) + begin_answer, "-n", "20", "--json"})
                        .out);
    const std::string third =
        "{\"eos_token_id\":[" + std::to_string(said.ids("/ids").at(2)) + "]}";
    const struct {
        std::string generation, config;
        bool is_whole;
    } cases[] = {{"{\"eos_token_id\":1502,\"num_assistant_tokens\":20,"
                  "\"assistant_confidence_threshold\":0.4}",
                  third, true},
                 {third, "{\"eos_token_id\":1502}", false},
                 {"{}", third, false},
                 {"{}", "{}", true}};
    for (const auto &c : cases) {
        Folder own("genai_ends");
        for (const char *name : {"openvino_model.xml", "openvino_model.bin",
                                 "tokenizer.json", "chat_template.jinja"})
            std::filesystem::create_symlink(ir_folder + "/" + name, own / name);
        own.write("generation_config.json", c.generation);
        own.write("config.json", c.config);
        const Pipe p = open_pipe(own.path);
        const std::string text = text_of(generate(p, question, Config()).get());
        EXPECT_EQ(text == whole, c.is_whole) << text;
        EXPECT_EQ(text, whole.substr(0, text.size()));
    }
}

/* ---- histories and chats ---- */

TEST_F(Texts, OfAHistoryAreTheTemplates)
{
    const History h = make_history("[" + message("system", "Be short.") + "," +
                                   message("user", question) + "]");
    EXPECT_EQ(text_of(generate(chat, h, twenty()).get()),
              program_says(ir_folder, turn("system", "Be short.") +
                                          turn("user", question) + begin_answer));
    size_t n = 0;
    EXPECT_EQ(ov_genai_chat_history_size(h.get(), &n), OV_GENAI_CHAT_HISTORY_OK);
    EXPECT_EQ(n, 2u) << "the answer is not added";
}

TEST_F(Texts, OfAChatGoOnFromTheTurnsBefore)
{
    const std::string second = "And of Italy?";
    ASSERT_EQ(ov_genai_llm_pipeline_start_chat(chat.get()), OK);
    const std::string first_answer = text_of(generate(chat, question, twenty()).get());
    const Results r = generate(chat, second, twenty());
    ASSERT_EQ(ov_genai_llm_pipeline_finish_chat(chat.get()), OK);
    EXPECT_EQ(text_of(r.get()),
              program_says(ir_folder, turn("user", question) +
                                          turn("assistant", first_answer) +
                                          turn("user", second) + begin_answer));
    const History h = make_history("[" + message("user", question) + "," +
                                   message("assistant", first_answer) + "," +
                                   message("user", second) + "]");
    EXPECT_EQ(text_of(r.get()), text_of(generate(chat, h, twenty()).get()));
    EXPECT_EQ(text_of(generate(chat, second, twenty()).get()),
              program_says(ir_folder, turn("user", second) + begin_answer))
        << "the chat is over";
}

TEST_F(Texts, OfAChatWithEchoAreNotSaidTwice)
{
    const Config loud = make_config([](auto *c) { SET(echo, true); });
    ASSERT_EQ(ov_genai_llm_pipeline_start_chat(chat.get()), OK);
    const std::string quiet = text_of(generate(chat, question, make_config()).get());
    const std::string second = text_of(generate(chat, "Why?", make_config()).get());
    ASSERT_EQ(ov_genai_llm_pipeline_start_chat(chat.get()), OK) << "it begins anew";
    const std::string said = text_of(generate(chat, question, loud).get());
    EXPECT_EQ(said, "user\n" + question + "\nassistant\n" + quiet);
    EXPECT_EQ(text_of(generate(chat, "Why?", make_config()).get()), second);
    ASSERT_EQ(ov_genai_llm_pipeline_finish_chat(chat.get()), OK);
}

TEST_F(Texts, HaveToolsAndFurtherVariables)
{
    Folder own("genai_tools");
    for (const char *name : {"openvino_model.xml", "openvino_model.bin", "tokenizer.json",
                             "generation_config.json", "config.json"})
        std::filesystem::create_symlink(ir_folder + "/" + name, own / name);
    own.write("chat_template.jinja",
              "{{ tools | length }} {{ tools[0].name }} {{ mood }} "
              "{{ messages[0].content }}");
    const Pipe p = open_pipe(own.path);
    const History h = make_history("[" + message("user", "hi") + "]");
    ASSERT_EQ(
        ov_genai_chat_history_set_tools(h.get(), make_json("[{\"name\":\"f\"}]").get()),
        OV_GENAI_CHAT_HISTORY_OK);
    ASSERT_EQ(ov_genai_chat_history_set_extra_context(
                  h.get(), make_json("{\"mood\":\"glad\"}").get()),
              OV_GENAI_CHAT_HISTORY_OK);
    const Config c = make_config([](auto *c) {
        SET(echo, true);
        SET(max_new_tokens, 0);
    });
    EXPECT_EQ(text_of(generate(p, h, c).get()), "1 f glad hi");
}

TEST_F(Texts, OfChatsNeedATemplate)
{
    ov_genai_decoded_results *r = nullptr;
    const History h = make_history("[" + message("user", question) + "]");
    Log log;
    EXPECT_EQ(ov_genai_llm_pipeline_start_chat(plain.get()), UNKNOW_EXCEPTION);
    EXPECT_NE(Log::text().find("chat template"), std::string::npos) << Log::text();
    EXPECT_EQ(ov_genai_llm_pipeline_generate_with_history(plain.get(), h.get(),
                                                          twenty().get(), nullptr, &r),
              UNKNOW_EXCEPTION);
    EXPECT_EQ(r, nullptr);
    EXPECT_EQ(ov_genai_llm_pipeline_finish_chat(plain.get()), OK);
}

TEST_F(Texts, OfHistoriesNeedAMessage)
{
    ov_genai_decoded_results *r = nullptr;
    Log log;
    EXPECT_EQ(ov_genai_llm_pipeline_generate_with_history(
                  chat.get(), make_history().get(), twenty().get(), nullptr, &r),
              UNKNOW_EXCEPTION);
    EXPECT_EQ(r, nullptr);
    EXPECT_NE(Log::text().find("the chat history is empty"), std::string::npos)
        << Log::text();
}

/* ---- streamers ---- */

TEST_F(Texts, ComeInPiecesThatJoinToThem)
{
    for (const char *prompt : {"January, February,", "Caf\u00e9 cr\u00e8me \u2603"}) {
        Watcher w;
        const std::string text = say(
            prompt, [](auto *c) { SET(max_new_tokens, 24); }, &w);
        EXPECT_GT(w.pieces.size(), 2u);
        EXPECT_EQ(w.text(), text);
        for (const std::string &piece : w.pieces)
            EXPECT_FALSE(piece.empty());
    }
}

TEST_F(Texts, ComeToAStreamerAlone)
{
    Watcher w;
    const streamer_callback callback = w.callback();
    EXPECT_EQ(ov_genai_llm_pipeline_generate(chat.get(), question.c_str(), twenty().get(),
                                             &callback, nullptr),
              OK);
    EXPECT_EQ(w.text(), text_of(generate(chat, question, twenty()).get()));
}

TEST_F(Texts, EndWhereAStreamerStopsThem)
{
    for (const auto answer :
         {OV_GENAI_STREAMING_STATUS_STOP, OV_GENAI_STREAMING_STATUS_CANCEL}) {
        Watcher w;
        w.answer = [&](size_t i) {
            return i < 1 ? OV_GENAI_STREAMING_STATUS_RUNNING : answer;
        };
        const Results r = generate(chat, question, twenty(), &w);
        EXPECT_EQ(text_of(r.get()), w.text()) << "what there is, is kept";
        EXPECT_LE(w.pieces.size(), 3u);
        EXPECT_LE(generated(metrics_of(r.get())), 3u);
        const std::string whole = text_of(generate(chat, question, twenty()).get());
        EXPECT_EQ(whole.substr(0, w.text().size()), w.text());
        EXPECT_LT(w.text().size(), whole.size());
    }
}

/* The next answer shows which messages the chat has kept. */
TEST_F(Texts, ThatAreStoppedStayInTheChatAndCancelledOnesDoNot)
{
    const std::string second = "And of Italy?";
    for (const bool stops : {true, false}) {
        Watcher w;
        w.answer = [&](size_t) {
            return stops ? OV_GENAI_STREAMING_STATUS_STOP
                         : OV_GENAI_STREAMING_STATUS_CANCEL;
        };
        const Config loud = make_config([](auto *c) { SET(echo, true); });
        ASSERT_EQ(ov_genai_llm_pipeline_start_chat(chat.get()), OK);
        const Results first = generate(chat, question, twenty(), &w);
        const std::string said = text_of(generate(chat, second, loud).get());
        ASSERT_EQ(ov_genai_llm_pipeline_finish_chat(chat.get()), OK);
        const std::string kept =
            "user\n" + question + "\nassistant\n" + text_of(first.get()) + "\n";
        const std::string expected = (stops ? kept : "") + "user\n" + second;
        EXPECT_EQ(said.substr(0, expected.size()), expected);
    }
}

TEST_F(Texts, OfAStreamerThatCallsItsPipelineFailThere)
{
    ov_status_e inner = OK;
    Watcher w;
    w.answer = [&](size_t) {
        ov_genai_decoded_results *r = nullptr;
        inner = ov_genai_llm_pipeline_generate(chat.get(), "x", nullptr, nullptr, &r);
        return OV_GENAI_STREAMING_STATUS_RUNNING;
    };
    const Results r = generate(chat, question, twenty(), &w);
    EXPECT_EQ(inner, UNKNOW_EXCEPTION);
    EXPECT_EQ(text_of(r.get()), w.text());
}

/* The run continues to its end, and then the pipeline is freed. */
TEST_F(Texts, OfAStreamerThatFreesItsPipelineAreMadeToTheEnd)
{
    const std::string whole = text_of(generate(chat, question, twenty()).get());
    Pipe p = open_pipe(ir_folder);
    ov_genai_llm_pipeline *freed = p.get();
    ov_status_e inner = OK;
    Watcher w;
    const streamer_callback callback = w.callback();
    ov_genai_decoded_results *r = nullptr;
    w.answer = [&](size_t) {
        p.reset();
        inner = ov_genai_llm_pipeline_generate(freed, "x", nullptr, &callback, nullptr);
        return OV_GENAI_STREAMING_STATUS_RUNNING;
    };
    EXPECT_EQ(ov_genai_llm_pipeline_generate(freed, question.c_str(), twenty().get(),
                                             &callback, &r),
              OK);
    const Results owner(r);
    EXPECT_EQ(text_of(r), whole);
    EXPECT_EQ(w.text(), whole);
    EXPECT_EQ(inner, INVALID_C_PARAM) << "it is freed";
}

TEST_F(Texts, AreMadeToTheEndWhereAnotherThreadFreesTheirPipeline)
{
    const std::string whole = text_of(generate(chat, question, twenty()).get());
    Pipe p = open_pipe(ir_folder);
    ov_genai_llm_pipeline *freed = p.get();
    std::thread other;
    Watcher w;
    const streamer_callback callback = w.callback();
    w.answer = [&](size_t i) {
        if (i == 0)
            other = std::thread([&] { p.reset(); });
        return OV_GENAI_STREAMING_STATUS_RUNNING;
    };
    EXPECT_EQ(ov_genai_llm_pipeline_generate(freed, question.c_str(), twenty().get(),
                                             &callback, nullptr),
              OK);
    ASSERT_TRUE(other.joinable());
    other.join();
    EXPECT_EQ(w.text(), whole);
}

/* ---- threads ---- */

TEST_F(Texts, OfTwoThreadsComeOneAfterTheOther)
{
    const std::string prompts[] = {"Paris is the capital of", "3 + 4 ="};
    std::string alone[2], together[2][5];
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 2; i++)
        alone[i] = say(prompts[i], nullptr);
    for (size_t i = 0; i < 2; i++)
        threads.emplace_back([&, i] {
            for (std::string &text : together[i])
                text = say(prompts[i], nullptr);
        });
    for (std::thread &t : threads)
        t.join();
    for (size_t i = 0; i < 2; i++)
        for (const std::string &text : together[i])
            EXPECT_EQ(text, alone[i]);
}

/* ---- sample programs ---- */

std::string
output_of(const std::string &command)
{
    std::string all;
    FILE *f = popen(command.c_str(), "r");
    EXPECT_TRUE(f) << command;
    for (int c = f ? fgetc(f) : EOF; c != EOF; c = fgetc(f))
        all += (char)c;
    EXPECT_EQ(f ? pclose(f) : 1, 0) << command;
    return all;
}

/* The programs set no precision: the device's default is f16. */
TEST_F(Texts, OfProgramsAsUsersWriteThem)
{
    const std::string prompt = turn("user", question) + begin_answer;
    const std::string answer = program_says(ir_folder, prompt, false);
    EXPECT_EQ(output_of(XM_GREEDY " " + ir_folder + " '" + question + "'"),
              answer + "\n");
    const std::string ask = "printf '" + question + "\\n" + question + "\\n' | ";
    const std::string by_start = output_of(ask + XM_CHAT " " + ir_folder + " start");
    const std::string by_history = output_of(ask + XM_CHAT " " + ir_folder + " history");
    EXPECT_EQ(by_start.substr(0, answer.size() + 1), answer + "\n");
    EXPECT_EQ(by_history.substr(0, 2 * answer.size() + 2), answer + "\n" + answer + "\n");
    EXPECT_EQ(output_of(XM_GREEDY " " + ir_folder + " '" + question + "' GPU"),
              answer + "\n");
    const std::string times = output_of(XM_BENCHMARK " " + ir_folder + " 2 6");
    EXPECT_NE(times.find("generated tokens: 12\n"), std::string::npos) << times;
    EXPECT_NE(times.find("throughput: "), std::string::npos) << times;
}

} // namespace
