/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects that test_null_walk.cpp uses: one of each kind, on REFERENCE; contexts, sequences
 * and batches on a device that has them.
 */
#ifndef XM_FUNCTIONAL_TESTS_API_NULL_WALK_VALUES_H
#define XM_FUNCTIONAL_TESTS_API_NULL_WALK_VALUES_H

#include <fstream>
#include <vector>

#include "functional_tests/api/api_test.h"
#include "functional_tests/api/null_walk.h"
#include "functional_tests/common/folder.h"

class NullWalkValues
{
  public:
    null_walk_values v = {};

    NullWalkValues() : folder("null_walk"), xml(add_model(true))
    {
        folder.write("model.xml", xml);
        make_texts();
        make_lists();
        make_objects();
        make_genai();
        make_device_objects();
        make_hollow();
    }

    ~NullWalkValues()
    {
        ov_genai_llm_pipeline_free(v.pipeline);
        ov_genai_decoded_results_free(v.results);
        ov_genai_decoded_results_perf_metrics_free(v.metrics);
        ov_genai_generation_config_free(v.config);
        ov_genai_chat_history_free(v.history);
        ov_genai_json_container_free(v.json);
        xm_batch_free(v.batch);
        xm_sequence_free(v.sequence);
        ov_remote_context_free(v.context);
        ov_layout_free(v.layout);
        ov_output_const_port_free(v.const_port);
        ov_output_port_free(v.port);
        ov_tensor_free(v.tensor);
        ov_infer_request_free(v.request);
        ov_compiled_model_free(v.compiled);
        ov_model_free(v.model);
        ov_core_free(v.core);
    }

    NullWalkValues(const NullWalkValues &) = delete;
    NullWalkValues &operator=(const NullWalkValues &) = delete;

  private:
    static constexpr const char *package =
        XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
    static constexpr size_t megabyte = 1u << 20;

    Folder folder;
    std::string xml, path, long_text = std::string(megabyte, 'a');
    std::wstring long_wide_text = std::wstring(megabyte, L'a');
    float memory[16] = {};
    int64_t dims[2] = {3, 2};
    int64_t ones[2] = {1, 1};
    int32_t tokens[1] = {5};
    size_t indexes[1] = {0};
    float floats[2] = {1.0f, 1.0f};
    int integers[2] = {1, 1};
    ov_dimension_t dimensions[2] = {{1, 2}, {1, 2}};
    ov_partial_shape_t partial = {{2, 2}, dimensions}, hollow = {{2, 2}, nullptr};
    const char *texts[1] = {"a"}, *no_texts[1] = {nullptr};
    ov_property_t property = {"PERF_COUNT", "NO"}, no_key = {nullptr, "NO"},
                  no_value = {"PERF_COUNT", nullptr};
    ov_callback_t callback = {[](void *) {}, nullptr}, no_callback = {nullptr, nullptr};
    streamer_callback streamer = {
        [](const char *, void *) { return OV_GENAI_STREAMING_STATUS_RUNNING; }, nullptr};
    streamer_callback no_streamer = {nullptr, nullptr};
    xm_batch_entry_t entry = {}, no_sequence = {}, no_tokens = {};
    const ov_output_port_t *ports[1] = {}, *no_ports[1] = {nullptr};

    void make_texts()
    {
        path = folder / "model.xml";
        v.text = "text";
        v.device = "REFERENCE";
        v.model_path = path.c_str();
        v.package_path = package;
        v.model_text = xml.c_str();
        v.model_size = xml.size();
        v.wide_text = L"text";
        v.long_text = long_text.c_str();
        v.long_wide_text = long_wide_text.c_str();
    }

    void make_lists()
    {
        v.memory = memory;
        v.texts = texts;
        v.numbers = dims;
        v.tokens = tokens;
        v.indexes = indexes;
        v.floats = floats;
        v.integers = integers;
        v.dimensions = dimensions;
        v.partial_shapes = &partial;
        v.properties = &property;
        v.callback = &callback;
        v.streamer = &streamer;
        v.log = [](const char *) {};
        v.lost = [](const char *, uint64_t) {};
        v.built = [](void *, const char *, uint64_t, uint64_t) {};
        v.shape = {2, ones};
    }

    void make_objects()
    {
        v.core = make_core().release();
        v.model = read_text(v.core, xml).release();
        v.compiled = compile(v.core, v.model).release();
        v.request = make_request(v.compiled).release();
        EXPECT_EQ(ov_tensor_create(F32, {2, dims}, &v.tensor), OK);
        EXPECT_EQ(ov_model_input_by_index(v.model, 0, &v.port), OK);
        EXPECT_EQ(ov_model_const_input_by_index(v.model, 0, &v.const_port), OK);
        EXPECT_EQ(ov_layout_create("NC", &v.layout), OK);
        ports[0] = v.port;
        v.ports = ports;
    }

    void make_genai()
    {
        EXPECT_EQ(ov_genai_json_container_create_from_json_string(
                      &v.json, "{\"role\":\"user\",\"content\":\"a\"}"),
                  OV_GENAI_JSON_CONTAINER_OK);
        EXPECT_EQ(ov_genai_chat_history_create(&v.history), OV_GENAI_CHAT_HISTORY_OK);
        EXPECT_EQ(ov_genai_chat_history_push_back(v.history, v.json),
                  OV_GENAI_CHAT_HISTORY_OK);
        EXPECT_EQ(ov_genai_llm_pipeline_create(package, "REFERENCE", 0, &v.pipeline), OK);
        EXPECT_EQ(ov_genai_llm_pipeline_get_generation_config(v.pipeline, &v.config), OK);
        EXPECT_EQ(ov_genai_generation_config_set_max_new_tokens(v.config, 1), OK);
        EXPECT_EQ(ov_genai_llm_pipeline_set_generation_config(v.pipeline, v.config), OK);
        EXPECT_EQ(
            ov_genai_llm_pipeline_generate(v.pipeline, "a", nullptr, nullptr, &v.results),
            OK);
        EXPECT_EQ(ov_genai_decoded_results_get_perf_metrics(v.results, &v.metrics), OK);
    }

    bool has_device() const
    {
        char *list = nullptr;
        const bool has =
            ov_core_get_property(v.core, "GPU", "AVAILABLE_DEVICES", &list) == OK &&
            list[0] != '\0';
        ov_free(list);
        return has;
    }

    void make_device_objects()
    {
        ov_compiled_model_t *c = nullptr;
        if (has_device()) {
            EXPECT_EQ(ov_core_compile_model_from_file(v.core, package, "GPU", 2, &c,
                                                      "XM_SEQUENCES", "YES"),
                      OK)
                << last_error();
            EXPECT_EQ(ov_core_get_default_context(v.core, "GPU", &v.context), OK);
            EXPECT_EQ(xm_sequence_create(c, &v.sequence), OK);
            EXPECT_EQ(xm_batch_create(c, &v.batch), OK);
        }
        ov_compiled_model_free(c);
        entry = {v.sequence, tokens, 1, 1};
        no_sequence = {nullptr, tokens, 1, 1};
        no_tokens = {v.sequence, nullptr, 1, 1};
        v.entries = &entry;
    }

    void make_hollow()
    {
        v.no_texts = no_texts;
        v.hollow_shapes = &hollow;
        v.no_key = &no_key;
        v.no_value = &no_value;
        v.no_callback = &no_callback;
        v.no_sequence = &no_sequence;
        v.no_tokens = &no_tokens;
        v.no_streamer = &no_streamer;
        v.no_ports = no_ports;
    }
};

#endif
