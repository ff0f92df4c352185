/* SPDX-License-Identifier: Apache-2.0
 *
 * Cached prefixes in files, on the device: a model compiled again continues from a file as the
 * program that computed the positions.
 */
#include <filesystem>

#include "functional_tests/common/folder.h"
#include "plugin/pipeline/package.h"
#include "plugin/pipeline/prefix_store.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

using Ids = std::vector<int32_t>;
using Row = std::vector<float>;

enum { TOKENS = 150, VOCABULARY = 200 };

Ids
some(size_t n, uint32_t seed)
{
    Ids ids;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids.push_back((int32_t)((seed >> 8) % VOCABULARY));
    }
    return ids;
}

/* A compiled model with its prefix store. */
class Opened
{
  public:
    Opened(xm_core *core, const std::string &path, const std::string &folder,
           const char *kv, bool has_store = true)
    {
        const xm_property properties[] = {{"INFERENCE_PRECISION_HINT", "f32"},
                                          {"KV_CACHE_PRECISION", kv},
                                          {"XM_UBATCH", "32"}};
        xm_compile_options sampled = {};
        xm_graph *g = nullptr;
        xm_error err = {};
        sampled.sampled_logits = true;
        EXPECT_EQ(xm_package_graph_of(path.c_str(), nullptr, &g, &err), XM_OK)
            << err.text;
        EXPECT_EQ(
            xm_core_compile(core, g, "GPU", properties, 3, &sampled, &compiled, &err),
            XM_OK)
            << err.text;
        EXPECT_EQ(xm_compiled_create_batch(compiled, &batch, &err), XM_OK) << err.text;
        EXPECT_EQ(xm_compiled_create_sequence(compiled, &s, &err), XM_OK) << err.text;
        if (has_store) {
            EXPECT_EQ(
                xm_prefix_store_open(compiled, folder.c_str(), 1 << 30, &store, &err),
                XM_OK)
                << err.text;
        }
    }
    ~Opened()
    {
        xm_prefix_store_close(store);
        xm_compiled_destroy_batch(batch);
        xm_compiled_destroy_sequence(s);
        xm_compiled_unref(compiled);
    }
    Opened(const Opened &) = delete;

    /* Runs the ids from position `past` on and returns the logits of the last. */
    Row run(const Ids &ids, uint64_t past)
    {
        xm_error err = {};
        uint64_t rows = 0, n = 0;
        const xm_batch_row row = {s, ids.data() + past, ids.size() - past, 1};
        EXPECT_EQ(s->ops->past(s), past);
        EXPECT_EQ(batch->ops->run(batch, &row, 1, &err), XM_OK) << err.text;
        const float *logits = batch->ops->logits(batch, 0, &rows, &n);
        return Row(logits, logits + n);
    }
    uint64_t load(const Ids &ids)
    {
        return xm_prefix_store_load(store, s, ids.data(), ids.size());
    }
    void save(const Ids &ids)
    {
        xm_prefix_store_save(store, s, ids.data(), ids.size());
    }

    xm_compiled *compiled = nullptr;
    xm_batch *batch = nullptr;
    xm_sequence *s = nullptr;
    xm_prefix_store *store = nullptr;
};

class PrefixModels : public OpenClTest
{
  protected:
    void SetUp() override
    {
        OpenClTest::SetUp();
        if (IsSkipped())
            return;
        ASSERT_XM_OK(xm_core_create(&core, &err));
    }
    void TearDown() override
    {
        xm_core_destroy(core);
        OpenClTest::TearDown();
    }
    /* Writes the pages of `text` to a file with a program that then ends. *whole: the positions
     * in whole pages. *last: the logits of the last token when the positions from *whole on are
     * run again. */
    void write(const std::string &path, const char *kv, const Ids &text, uint64_t *whole,
               Row *last)
    {
        Opened first(core, path, folder.path, kv);
        first.run(text, 0);
        first.save(text);
        const uint64_t page = first.s->ops->file->page(first.s);
        *whole = text.size() / page * page;
        ASSERT_LT(*whole, text.size());
        first.s->ops->truncate(first.s, *whole);
        *last = first.run(text, *whole);
    }

    xm_core *core = nullptr;
    Folder folder{"prefix_models"};
};

constexpr const char *QWEN = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
constexpr const char *WINDOWED =
    XM_MODELS_DIR "/gemma4-moe-tiny/gguf/gemma4-moe-tiny-Q4_K_M.gguf";

TEST_F(PrefixModels, GoOnFromAFileAsFromTheirOwnPositions)
{
    for (const char *path : {QWEN, WINDOWED})
        for (const char *kv : {"f32", "f16", "u8"}) {
            SCOPED_TRACE(std::string(path) + " " + kv);
            const Ids text = some(TOKENS, 7);
            uint64_t whole = 0;
            Row expected;
            write(path, kv, text, &whole, &expected);
            Opened again(core, path, folder.path, kv);
            ASSERT_EQ(again.load(text), whole);
            EXPECT_EQ(again.run(text, whole), expected);
        }
}

/* Layers with a window have only their last pages in the file: a text that leaves the first one
 * in the middle cannot use it. */
TEST_F(PrefixModels, BranchWhereTheFileHasAllPages)
{
    for (const char *path : {QWEN, WINDOWED}) {
        SCOPED_TRACE(path);
        Ids text = some(TOKENS, 7);
        uint64_t whole = 0;
        Row ignored;
        write(path, "f32", text, &whole, &ignored);
        Ids other(text.begin(), text.begin() + 40);
        const Ids behind = some(9, 99);
        other.insert(other.end(), behind.begin(), behind.end());
        Opened fresh(core, path, folder.path, "f32", false);
        const Row expected = fresh.run(other, 0);
        Opened again(core, path, folder.path, "f32");
        const uint64_t page = again.s->ops->file->page(again.s);
        const uint64_t got = again.load(other);
        EXPECT_EQ(got, path == QWEN ? 40 / page * page : 0u);
        const Row row = again.run(other, got);
        for (size_t i = 0; i < row.size(); i++)
            ASSERT_NEAR(row[i], expected[i], 1e-3f) << i;
    }
}

/* The file of a beginning is kept when the text continues, if another text may need it. */
TEST_F(PrefixModels, BranchWhereAnEarlierTextEnded)
{
    const Ids text = some(TOKENS, 7);
    Ids longer = text;
    const Ids behind = some(100, 3);
    longer.insert(longer.end(), behind.begin(), behind.end());
    for (const char *path : {QWEN, WINDOWED}) {
        SCOPED_TRACE(path);
        uint64_t whole = 0, ignored = 0;
        Row expected, unused;
        write(path, "f32", text, &whole, &expected);
        write(path, "f32", longer, &ignored, &unused);
        Opened again(core, path, folder.path, "f32");
        ASSERT_EQ(again.load(text), whole);
        EXPECT_EQ(again.run(text, whole), expected);
    }
}

TEST_F(PrefixModels, IgnoreFilesOfOtherOptionsAndModels)
{
    const Ids text = some(TOKENS, 7);
    uint64_t whole = 0;
    Row ignored;
    write(QWEN, "f32", text, &whole, &ignored);
    {
        Opened other(core, QWEN, folder.path, "f16");
        EXPECT_EQ(other.load(text), 0u);
    }
    {
        Opened other(core, XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_sym_g64", folder.path,
                     "f32");
        EXPECT_EQ(other.load(text), 0u);
    }
    Opened same(core, QWEN, folder.path, "f32");
    EXPECT_EQ(same.load(text), whole);
}

/* Pages loaded from a file are found by other sequences like computed ones. */
TEST_F(PrefixModels, ShareLoadedPages)
{
    const Ids text = some(TOKENS, 7);
    uint64_t whole = 0;
    Row ignored;
    write(QWEN, "f16", text, &whole, &ignored);
    Opened again(core, QWEN, folder.path, "f16");
    ASSERT_EQ(again.load(text), whole);
    xm_sequence *other = nullptr;
    ASSERT_XM_OK(xm_compiled_create_sequence(again.compiled, &other, &err));
    ASSERT_XM_OK(other->ops->match(other, text.data(), text.size(), &err));
    EXPECT_EQ(other->ops->past(other), whole);
    xm_compiled_destroy_sequence(other);
}

/* Positions computed while passes are skipped or stopped must not be used by later runs. */
TEST_F(PrefixModels, KeepNoneOfAModelThatIsDebugged)
{
    Opened debugged(core, QWEN, folder.path, "f32", false);
    xm_prefix_store *store = nullptr;
    for (const char *name : {"XM_SKIP", "XM_STOP", "XM_DUMP", "XM_FORCE"}) {
        err = {};
        setenv(name, "x", 1);
        EXPECT_EQ(
            xm_prefix_store_open(debugged.compiled, folder.path.c_str(), 1, &store, &err),
            XM_UNSUPPORTED);
        unsetenv(name);
        EXPECT_NE(std::string(err.text).find(name + std::string(" is set")),
                  std::string::npos)
            << err.text;
    }
}

TEST_F(PrefixModels, SayThatAMeshCannot)
{
    xm_compile_options sampled = {};
    xm_graph *g = nullptr;
    xm_compiled *mesh = nullptr;
    xm_prefix_store *store = nullptr;
    sampled.sampled_logits = true;
    ASSERT_XM_OK(xm_package_graph_of(QWEN, nullptr, &g, &err));
    ASSERT_XM_OK(
        xm_mesh_compile(core, g, "GPU.0,GPU.0", nullptr, 0, &sampled, &mesh, &err));
    EXPECT_EQ(xm_prefix_store_open(mesh, folder.path.c_str(), 1, &store, &err),
              XM_UNSUPPORTED);
    EXPECT_NE(std::string(err.text).find("cannot save the KV cache"), std::string::npos);
    xm_compiled_unref(mesh);
}

} // namespace
