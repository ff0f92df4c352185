/* SPDX-License-Identifier: Apache-2.0
 *
 * A C program as users write it: measures generation over several runs of one prompt.
 *
 *     benchmark MODEL RUNS TOKENS [DEVICE]
 */
#include "functional_tests/genai/sample.h"
#include "openvino/genai/c/llm_pipeline.h"

enum { WARM_UP = 1 };

typedef ov_status_e (*measure)(const ov_genai_perf_metrics *, float *, float *);

static void
print(const ov_genai_perf_metrics *m, const char *name, measure get)
{
    float mean = 0.0f, std = 0.0f;
    TRY(get(m, &mean, &std));
    printf("%s: %.2f ± %.2f\n", name, (double)mean, (double)std);
}

static void
print_all(const ov_genai_perf_metrics *m)
{
    float load = 0.0f;
    size_t input = 0, generated = 0;
    TRY(ov_genai_perf_metrics_get_load_time(m, &load));
    TRY(ov_genai_perf_metrics_get_num_input_tokens(m, &input));
    TRY(ov_genai_perf_metrics_get_num_generation_tokens(m, &generated));
    printf("load time: %.2f\ninput tokens: %zu\ngenerated tokens: %zu\n", (double)load,
           input, generated);
    print(m, "generate", ov_genai_perf_metrics_get_generate_duration);
    print(m, "inference", ov_genai_perf_metrics_get_inference_duration);
    print(m, "tokenization", ov_genai_perf_metrics_get_tokenization_duration);
    print(m, "detokenization", ov_genai_perf_metrics_get_detokenization_duration);
    print(m, "chat template", ov_genai_perf_metrics_get_chat_template_duration);
    print(m, "TTFT", ov_genai_perf_metrics_get_ttft);
    print(m, "TPOT", ov_genai_perf_metrics_get_tpot);
    print(m, "IPOT", ov_genai_perf_metrics_get_ipot);
    print(m, "throughput", ov_genai_perf_metrics_get_throughput);
}

static ov_genai_perf_metrics *
run(ov_genai_llm_pipeline *pipe, const ov_genai_generation_config *config)
{
    ov_genai_decoded_results *results = NULL;
    ov_genai_perf_metrics *metrics = NULL;
    TRY(ov_genai_llm_pipeline_generate(pipe, "The Sky is blue because", config, NULL,
                                       &results));
    TRY(ov_genai_decoded_results_get_perf_metrics(results, &metrics));
    ov_genai_decoded_results_free(results);
    return metrics;
}

int
main(int argc, char *argv[])
{
    ov_genai_llm_pipeline *pipe = NULL;
    ov_genai_generation_config *config = NULL;
    ov_genai_perf_metrics *all = NULL;
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: %s MODEL RUNS TOKENS [DEVICE]\n", argv[0]);
        return EXIT_FAILURE;
    }
    TRY(ov_genai_llm_pipeline_create(argv[1], argc > 4 ? argv[4] : "CPU", 0, &pipe));
    TRY(ov_genai_llm_pipeline_get_generation_config(pipe, &config));
    TRY(ov_genai_generation_config_set_ignore_eos(config, true));
    TRY(ov_genai_generation_config_set_max_new_tokens(config, (size_t)atoi(argv[3])));
    for (int i = 0; i < WARM_UP; i++)
        ov_genai_decoded_results_perf_metrics_free(run(pipe, config));
    for (int i = 0; i < atoi(argv[2]); i++) {
        ov_genai_perf_metrics *one = run(pipe, config);
        if (all)
            TRY(ov_genai_perf_metrics_add_in_place(all, one));
        if (all)
            ov_genai_decoded_results_perf_metrics_free(one);
        else
            all = one;
    }
    if (all)
        print_all(all);
    ov_genai_decoded_results_perf_metrics_free(all);
    ov_genai_generation_config_free(config);
    ov_genai_llm_pipeline_free(pipe);
    return EXIT_SUCCESS;
}
