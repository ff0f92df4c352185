/* SPDX-License-Identifier: Apache-2.0
 *
 * A C program as users write it: a chat whose prompts are lines of standard input, with
 * start_chat or with a history of its own. Answers are printed as they are generated. With a
 * history they are printed twice, as pieces and as results, which must be equal.
 *
 *     chat MODEL (start | history) [DEVICE]
 */
#include <string.h>

#include "functional_tests/genai/sample.h"
#include "openvino/genai/c/llm_pipeline.h"

enum { LINE = 4096 };

static ov_genai_streaming_status_e
print(const char *text, void *args)
{
    fputs(text, (FILE *)args);
    return OV_GENAI_STREAMING_STATUS_RUNNING;
}

static void
ask_chat(ov_genai_llm_pipeline *pipe, const ov_genai_generation_config *config,
         const char *prompt)
{
    streamer_callback streamer = {print, NULL};
    streamer.args = stdout;
    TRY(ov_genai_llm_pipeline_generate(pipe, prompt, config, &streamer, NULL));
    printf("\n");
}

static void
push(ov_genai_chat_history *history, const char *role, const char *text)
{
    char json[3 * LINE];
    ov_genai_json_container *message = NULL;
    snprintf(json, sizeof(json), "{\"role\": \"%s\", \"content\": \"%s\"}", role, text);
    TRY(ov_genai_json_container_create_from_json_string(&message, json));
    TRY(ov_genai_chat_history_push_back(history, message));
    ov_genai_json_container_free(message);
}

static void
ask_history(ov_genai_llm_pipeline *pipe, const ov_genai_generation_config *config,
            ov_genai_chat_history *history, const char *prompt)
{
    streamer_callback streamer = {print, NULL};
    ov_genai_decoded_results *results = NULL;
    char text[LINE];
    size_t size = sizeof(text);
    streamer.args = stdout;
    push(history, "user", prompt);
    TRY(ov_genai_llm_pipeline_generate_with_history(pipe, history, config, &streamer,
                                                    &results));
    TRY(ov_genai_decoded_results_get_string(results, text, &size));
    printf("\n%s\n", text);
    push(history, "assistant", text);
    ov_genai_decoded_results_free(results);
}

int
main(int argc, char *argv[])
{
    ov_genai_llm_pipeline *pipe = NULL;
    ov_genai_generation_config *config = NULL;
    ov_genai_chat_history *history = NULL;
    char prompt[LINE];
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: %s MODEL (start | history) [DEVICE]\n", argv[0]);
        return EXIT_FAILURE;
    }
    const int keeps_history = strcmp(argv[2], "history") == 0;
    TRY(ov_genai_llm_pipeline_create(argv[1], argc > 3 ? argv[3] : "CPU", 0, &pipe));
    TRY(ov_genai_generation_config_create(&config));
    TRY(ov_genai_generation_config_set_max_new_tokens(config, 12));
    TRY(ov_genai_chat_history_create(&history));
    if (!keeps_history)
        TRY(ov_genai_llm_pipeline_start_chat(pipe));
    while (fgets(prompt, sizeof(prompt), stdin)) {
        prompt[strcspn(prompt, "\n")] = '\0';
        if (keeps_history)
            ask_history(pipe, config, history, prompt);
        else
            ask_chat(pipe, config, prompt);
    }
    TRY(ov_genai_llm_pipeline_finish_chat(pipe));
    ov_genai_chat_history_free(history);
    ov_genai_generation_config_free(config);
    ov_genai_llm_pipeline_free(pipe);
    return EXIT_SUCCESS;
}
