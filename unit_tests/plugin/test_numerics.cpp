/* SPDX-License-Identifier: Apache-2.0
 *
 * XM_NUMERICS=bf16 on whole models of both file formats: what is rounded, that devices agree, and
 * that nothing changes without it. And that long prompts are as exact as short ones.
 */
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "plugin/pipeline/package.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/writers/synthetic.h"
#include "unit_tests/plugin/plugin_test.h"
#include "unit_tests/sample.h"

namespace
{

using Logits = std::vector<float>;

struct Outcome {
    Logits logits;
    uint32_t rounded = 0, steps = 0, on_host = 0;
};

void
count_step(const xm_step_fact *step, void *ctx)
{
    auto *o = static_cast<Outcome *>(ctx);
    o->steps++;
    o->on_host += step->on_host;
}

/* Runs a prompt and returns the logits of all tokens. */
Outcome
run(const std::string &path, const char *device,
    const std::vector<xm_property> &properties, const std::vector<int32_t> &ids)
{
    xm_error err = {};
    xm_core *core = nullptr;
    xm_package *package = nullptr;
    xm_graph *g = nullptr;
    xm_compiled *c = nullptr;
    xm_token_runner *r = nullptr;
    Outcome out;
    EXPECT_XM_OK(xm_core_create(&core, &err));
    EXPECT_XM_OK(xm_package_open(path.c_str(), &package, &err));
    EXPECT_XM_OK(xm_package_read_graph(package, nullptr, &g, &err));
    EXPECT_XM_OK(xm_core_compile(core, g, device, properties.data(),
                                 (uint32_t)properties.size(), nullptr, &c, &err));
    EXPECT_XM_OK(xm_token_runner_create(c, &r, &err));
    EXPECT_XM_OK(xm_token_runner_feed(r, ids.data(), ids.size(), ids.size(), &err));
    uint64_t rows = 0, vocabulary = 0;
    const float *logits = xm_token_runner_logits(r, &rows, &vocabulary);
    out.logits.assign(logits, logits + rows * vocabulary);
    out.rounded = c->n_rounded;
    if (c->ops->steps)
        c->ops->steps(c, count_step, &out);
    xm_token_runner_destroy(r);
    xm_compiled_unref(c);
    xm_package_close(package);
    xm_core_destroy(core);
    return out;
}

/* Runs a few tokens in f32. `numerics` sets XM_NUMERICS; NULL: not set. */
Outcome
outcome(const std::string &path, const char *device, const char *numerics)
{
    std::vector<xm_property> properties = {{"INFERENCE_PRECISION_HINT", "f32"},
                                           {"KV_CACHE_PRECISION", "f32"}};
    if (numerics)
        properties.push_back({"XM_NUMERICS", numerics});
    return run(path, device, properties, {5, 301, 7, 99, 250, 3, 17, 128});
}

double
nmse(const Logits &a, const Logits &b)
{
    double error = 0, square = 0;
    EXPECT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size() && i < b.size(); i++) {
        error += (double)(a[i] - b[i]) * (double)(a[i] - b[i]);
        square += (double)b[i] * (double)b[i];
    }
    return error / square;
}

class Numerics : public testing::Test
{
  protected:
    std::string folder = "/tmp/xemoe-numerics-XXXXXX";

    void SetUp() override
    {
        ASSERT_NE(mkdtemp(folder.data()), nullptr);
    }
    void TearDown() override
    {
        std::filesystem::remove_all(folder);
    }
    /* Writes a model with random weights and returns its path. */
    std::string gguf(const char *preset, const char *weights = "q8_0")
    {
        const std::string path =
            folder + "/" + preset + weights + XM_SYNTHETIC_GGUF_ENDING;
        xm_error err = {};
        xm_synthetic m = {};
        xm_synthetic_init(&m);
        m.format = XM_SYNTHETIC_GGUF;
        EXPECT_NE(xm_preset_find(preset), nullptr);
        m.sizes = *xm_preset_find(preset);
        EXPECT_XM_OK(xm_synthetic_set_weights(&m, weights, &err));
        EXPECT_XM_OK(xm_synthetic_write(&m, path.c_str(), nullptr, nullptr, &err));
        return path;
    }
    /* Fails unless `places` places are rounded and the device rounds as the reference: one
     * element rounded otherwise exceeds the tolerance. Only roundings of table rows are kernels
     * of their own. */
    static void check(const std::string &path, uint32_t places)
    {
        SCOPED_TRACE(path);
        const Outcome plain = outcome(path, "GPU", nullptr);
        const Outcome f32 = outcome(path, "GPU", "f32");
        const Outcome bf16 = outcome(path, "GPU", "bf16");
        const Outcome reference = outcome(path, "REFERENCE", "bf16");
        EXPECT_EQ(plain.logits, f32.logits);
        EXPECT_EQ(plain.rounded, 0u);
        EXPECT_EQ(bf16.rounded, places);
        EXPECT_EQ(reference.rounded, places);
        EXPECT_EQ(bf16.on_host, 0u);
        EXPECT_LE(bf16.steps, plain.steps + 2);
        const double change = nmse(bf16.logits, plain.logits);
        const double apart = nmse(bf16.logits, reference.logits);
        EXPECT_GT(change, 1e-8);
        EXPECT_LT(apart, 1e-9);
    }
};

TEST_F(Numerics, OfFilesOfOpenVino)
{
    check(XM_MODELS_DIR "/gemma4-moe-tiny/ov/int4_asym_g32", 7);
    check(XM_MODELS_DIR "/gemma4-e-tiny/ov/int4_asym_g64", 2);
}

TEST_F(Numerics, OfGguf)
{
    check(gguf("gemma4"), 7);
    check(gguf("gemma4-e"), 2);
}

TEST_F(Numerics, ModelsWithoutSuchPlacesStayAsTheyAre)
{
    const std::string path = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_asym_g64";
    const Outcome plain = outcome(path, "GPU", nullptr),
                  bf16 = outcome(path, "GPU", "bf16");
    EXPECT_EQ(bf16.rounded, 0u);
    EXPECT_EQ(bf16.logits, plain.logits);
}

/* Returns the median of the rows' errors. If two experts score almost equally, rounding may send
 * a token to the other one, and this row alone has a larger error than all others. */
double
median_error(const Logits &got, const Logits &want, size_t vocabulary)
{
    std::vector<double> errors;
    for (size_t at = 0; at < got.size(); at += vocabulary) {
        const auto row = [&](const Logits &all) {
            return Logits(all.begin() + (long)at, all.begin() + (long)(at + vocabulary));
        };
        errors.push_back(nmse(row(got), row(want)));
    }
    std::nth_element(errors.begin(), errors.begin() + (long)errors.size() / 2,
                     errors.end());
    return errors[errors.size() / 2];
}

/* From 128 tokens on, other kernels multiply: they must not round more than the others do. */
TEST_F(Numerics, LongPromptsAreAsExactAsShortOnes)
{
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 150; i++)
        ids.push_back(i * 37 % 300);
    const std::vector<int32_t> fewer(ids.begin(), ids.begin() + 127);
    for (const char *weights :
         sample::of<const char *>({"f32", "f16", "bf16", "q8_0"}, 2)) {
        SCOPED_TRACE(weights);
        const std::string path = gguf("qwen3moe", weights);
        const Logits want = run(path, "REFERENCE", {}, ids).logits;
        const auto error = [&](const std::vector<int32_t> &prompt) {
            const Logits got = run(path, "GPU", {}, prompt).logits;
            return median_error(got, want, want.size() / ids.size());
        };
        const double of_few = error(fewer);
        EXPECT_GT(of_few, 0.0);
        EXPECT_LE(error(ids), 4 * of_few);
    }
}

} // namespace
