/* SPDX-License-Identifier: Apache-2.0
 *
 * A C program as users write it: prints the likeliest continuation of a prompt.
 *
 *     greedy MODEL PROMPT [DEVICE]
 */
#include "functional_tests/genai/sample.h"
#include "openvino/genai/c/llm_pipeline.h"

int
main(int argc, char *argv[])
{
    ov_genai_llm_pipeline *pipe = NULL;
    ov_genai_generation_config *config = NULL;
    ov_genai_decoded_results *results = NULL;
    size_t size = 0;
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: %s MODEL PROMPT [DEVICE]\n", argv[0]);
        return EXIT_FAILURE;
    }
    TRY(ov_genai_llm_pipeline_create(argv[1], argc > 3 ? argv[3] : "CPU", 0, &pipe));
    TRY(ov_genai_generation_config_create(&config));
    TRY(ov_genai_generation_config_set_max_new_tokens(config, 20));
    TRY(ov_genai_llm_pipeline_generate(pipe, argv[2], config, NULL, &results));
    TRY(ov_genai_decoded_results_get_string(results, NULL, &size));
    char *text = malloc(size);
    if (!text)
        return EXIT_FAILURE;
    TRY(ov_genai_decoded_results_get_string(results, text, &size));
    printf("%s\n", text);
    free(text);
    ov_genai_decoded_results_free(results);
    ov_genai_generation_config_free(config);
    ov_genai_llm_pipeline_free(pipe);
    return EXIT_SUCCESS;
}
