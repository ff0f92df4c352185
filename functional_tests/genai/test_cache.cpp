/* SPDX-License-Identifier: Apache-2.0
 *
 * CACHE_DIR of pipelines: the compiled model is stored, and not used for another model.
 */
#include <map>

#include "functional_tests/genai/genai_test.h"

namespace
{

Pipe
open_with(const Folder &folder)
{
    ov_genai_llm_pipeline *p = nullptr;
    EXPECT_EQ(ov_genai_llm_pipeline_create(ir_folder.c_str(), "CPU", 2, &p, "CACHE_DIR",
                                           folder.path.c_str()),
              OK);
    return Pipe(p);
}

using Times = std::map<std::string, std::filesystem::file_time_type>;

/* Returns the files and their times of modification. */
Times
blobs_in(const Folder &folder)
{
    Times list;
    for (const auto &entry : std::filesystem::directory_iterator(folder.path)) {
        if (entry.path().extension() == ".blob")
            list[entry.path().filename()] = entry.last_write_time();
    }
    return list;
}

std::string
loaded_from_cache(const Folder &folder)
{
    ov_core_t *core = nullptr;
    ov_compiled_model_t *c = nullptr;
    EXPECT_EQ(ov_core_create(&core), OK);
    EXPECT_EQ(
        ov_core_compile_model_from_file(core, (ir_folder + "/openvino_model.xml").c_str(),
                                        "CPU", 2, &c, "CACHE_DIR", folder.path.c_str()),
        OK);
    char *text = nullptr;
    EXPECT_EQ(ov_compiled_model_get_property(c, "LOADED_FROM_CACHE", &text), OK);
    const std::string answer = text ? text : "";
    ov_free(text);
    ov_compiled_model_free(c);
    ov_core_free(core);
    return answer;
}

/* A pipeline computes only the logits of the last position: its compiled model differs from the
 * one that the core compiles from the same file with the same properties. */
TEST(PipelineCache, HasTheCompiledModel)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    const Folder folder("genai_cache");
    const Config config = make_config();
    const std::string first =
        text_of(generate(open_with(folder), "Paris is", config).get());
    EXPECT_FALSE(first.empty());
    const Times kept = blobs_in(folder);
    ASSERT_EQ(kept.size(), 1u);
    EXPECT_EQ(text_of(generate(open_with(folder), "Paris is", config).get()), first);
    EXPECT_EQ(blobs_in(folder), kept);
    EXPECT_EQ(loaded_from_cache(folder), "NO");
    EXPECT_EQ(blobs_in(folder).size(), 2u);
    EXPECT_EQ(loaded_from_cache(folder), "YES");
    EXPECT_EQ(text_of(generate(open_with(folder), "Paris is", config).get()), first);
    EXPECT_EQ(blobs_in(folder).size(), 2u);
}

} // namespace
