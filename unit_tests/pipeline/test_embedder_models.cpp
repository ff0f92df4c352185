/* SPDX-License-Identifier: Apache-2.0
 *
 * Embeddings of trained models on the device: the hidden states are those of the reference, and
 * times the last projection they are the logits.
 */
#include "plugin/pipeline/embedder.h"
#include "plugin/pipeline/token_runner.h"
#include "transformations/graph/builder.h"
#include "transformations/graph/symbols.h"
#include "transformations/passes/gather_hidden_states.h"
#include "transformations/passes/slice_last_token.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

using Ids = std::vector<int32_t>;
using Floats = std::vector<float>;

/* Ids below the vocabulary of every model. */
const Ids some_text = {1343, 266, 267, 265, 278, 9, 8, 7, 901, 44, 1200, 5, 77};

struct Rows {
    Floats values;
    uint64_t rows = 0, width = 0;
    const float *row(uint64_t i) const
    {
        return values.data() + i * width;
    }
};

double
cosine(const float *a, const float *b, size_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return ab / std::sqrt(aa * bb);
}

class EmbedderOnDevice : public OpenClTest,
                         public testing::WithParamInterface<const char *>
{
  protected:
    void SetUp() override
    {
        OpenClTest::SetUp();
        ASSERT_XM_OK(xm_core_create(&core, &err));
        ASSERT_XM_OK(xm_package_open(
            (std::string(XM_MODELS_DIR "/") + GetParam()).c_str(), &package, &err));
    }
    void TearDown() override
    {
        xm_package_close(package);
        xm_core_destroy(core);
        OpenClTest::TearDown();
    }
    xm_compiled *compile(xm_graph *g, const char *device)
    {
        const xm_property exact[] = {{"INFERENCE_PRECISION_HINT", "f32"},
                                     {"DYNAMIC_QUANTIZATION_GROUP_SIZE", "0"},
                                     {"KV_CACHE_PRECISION", "f32"}};
        xm_compiled *c = nullptr;
        EXPECT_XM_OK(xm_core_compile(core, g, device, exact, 3, nullptr, &c, &err));
        return c;
    }
    xm_compiled *hidden_model(const char *device)
    {
        xm_graph *g = nullptr;
        uint64_t vocabulary = 0;
        EXPECT_XM_OK(xm_embedder_read_graph(package, &g, &vocabulary, &err));
        EXPECT_GT(vocabulary, 1343u);
        EXPECT_LT(vocabulary, 2000u);
        return g ? compile(g, device) : nullptr;
    }
    xm_graph *read()
    {
        xm_graph *g = nullptr;
        EXPECT_XM_OK(xm_package_read_graph(package, nullptr, &g, &err));
        return g;
    }
    /* Returns the rows of all tokens. */
    Rows feed(xm_compiled *c, const Ids &ids)
    {
        xm_token_runner *r = nullptr;
        Rows rows;
        EXPECT_XM_OK(xm_token_runner_create(c, &r, &err));
        EXPECT_XM_OK(xm_token_runner_feed(r, ids.data(), ids.size(), ids.size(), &err));
        const float *data = xm_token_runner_logits(r, &rows.rows, &rows.width);
        rows.values.assign(data, data + rows.rows * rows.width);
        xm_token_runner_destroy(r);
        return rows;
    }
    /* Applies the model's last projection to hidden states. */
    Rows project(const Rows &h)
    {
        xm_graph *g = read();
        xm_node *head = nullptr;
        xm_for_each_node_safe(n, g)
        {
            if (n->op == XM_OP_RESULT)
                head = xm_language_head(xm_in(n, 0));
            else if (n->op == XM_OP_ASSIGN)
                xm_node_remove(g, n);
        }
        xm_builder b = xm_builder_before(g, g->first);
        xm_type type = xm_in(head, 0)->type;
        type.shape.dim[0] = xm_dim_const(1);
        type.shape.dim[1] = xm_dim_const((int64_t)h.rows);
        type.element = XM_F32;
        xm_node_set_in(head, 0, xm_parameter(&b, "hidden", &type));
        xm_graph_remove_dead(g);
        EXPECT_XM_OK(xm_graph_infer(g));
        xm_for_each_node_safe(n, g)
        {
            if (n->op == XM_OP_PARAMETER && n->out[0].n_uses == 0)
                xm_node_remove(g, n);
        }
        xm_compiled *c = compile(g, "REFERENCE");
        xm_infer *r = nullptr;
        EXPECT_XM_OK(xm_compiled_create_request(c, &r, &err));
        xm_host_tensor t = {};
        Floats copy = h.values;
        t.element = XM_F32;
        t.rank = 3;
        t.dim[0] = 1;
        t.dim[1] = (int64_t)h.rows;
        t.dim[2] = (int64_t)h.width;
        t.data = copy.data();
        t.bytes = copy.size() * sizeof(float);
        EXPECT_XM_OK(r->ops->set_input(r, 0, &t, &err));
        EXPECT_XM_OK(r->ops->infer(r, &err));
        EXPECT_XM_OK(r->ops->output(r, 0, &t, &err));
        const float *data = static_cast<const float *>(t.data);
        const Rows rows = {Floats(data, data + t.bytes / sizeof(float)),
                           (uint64_t)t.dim[1], (uint64_t)t.dim[2]};
        xm_infer_destroy(r);
        xm_compiled_unref(c);
        return rows;
    }
    Floats embed(xm_compiled *c, xm_pooling pooling, std::vector<Ids> texts,
                 uint64_t dimensions)
    {
        xm_embedder *e = nullptr;
        std::vector<xm_token_list> lists;
        for (Ids &t : texts)
            lists.push_back({t.data(), t.size(), t.size()});
        Floats out(texts.size() * dimensions);
        EXPECT_XM_OK(xm_embedder_create(c, pooling, &e, &err));
        EXPECT_GE(xm_embedder_width(e), dimensions);
        EXPECT_XM_OK(
            xm_embedder_run(e, lists.data(), lists.size(), dimensions, out.data(), &err));
        xm_embedder_destroy(e);
        return out;
    }
    static std::vector<Ids> texts()
    {
        std::vector<Ids> all;
        for (size_t n : {1, 13, 2, 7, 5})
            all.emplace_back(some_text.begin(), some_text.begin() + (long)n);
        Ids longer;
        for (int i = 0; i < 60; i++)
            longer.insert(longer.end(), some_text.begin(), some_text.end() - i % 3);
        all.push_back(longer);       /* longer than a chunk */
        all.emplace_back(Ids{3, 2}); /* runs alone */
        return all;
    }
    xm_core *core = nullptr;
    xm_package *package = nullptr;
};

TEST_P(EmbedderOnDevice, TimesTheLastProjectionIsTheLogits)
{
    xm_compiled *hidden = hidden_model("REFERENCE"),
                *whole = compile(read(), "REFERENCE");
    const Rows h = feed(hidden, some_text), logits = feed(whole, some_text);
    ASSERT_EQ(h.rows, some_text.size());
    ASSERT_EQ(h.width, 256u);
    const Rows product = project(h);
    ASSERT_EQ(product.values.size(), logits.values.size());
    for (size_t i = 0; i < logits.values.size(); i++)
        ASSERT_NEAR(product.values[i], logits.values[i], 1e-4) << i;
    xm_compiled_unref(hidden);
    xm_compiled_unref(whole);
}

TEST_P(EmbedderOnDevice, RowsAreThoseOfTheReference)
{
    xm_compiled *device = hidden_model("GPU"), *reference = hidden_model("REFERENCE");
    const Rows wanted = feed(reference, some_text);
    const uint64_t width = wanted.width;
    for (size_t n : {1, 2, 7, 13}) {
        const Ids ids(some_text.begin(), some_text.begin() + (long)n);
        const Floats last = embed(device, XM_POOLING_LAST, {ids}, width);
        EXPECT_GT(cosine(last.data(), wanted.row(n - 1), width), 1 - 1e-6) << n;
        Floats mean(width, 0.0f);
        for (size_t row = 0; row < n; row++)
            for (size_t i = 0; i < width; i++)
                mean[i] += wanted.row(row)[i];
        const Floats got = embed(device, XM_POOLING_MEAN, {ids}, width);
        EXPECT_GT(cosine(got.data(), mean.data(), width), 1 - 1e-6) << n;
        for (xm_pooling pooling : {XM_POOLING_LAST, XM_POOLING_MEAN}) {
            const Floats exact = embed(reference, pooling, {ids}, width);
            const Floats &own = pooling == XM_POOLING_LAST ? last : got;
            EXPECT_GT(cosine(exact.data(), own.data(), width), 1 - 1e-6) << n;
        }
    }
    xm_compiled_unref(device);
    xm_compiled_unref(reference);
}

TEST_P(EmbedderOnDevice, SeveralAreThoseOfEachAlone)
{
    xm_compiled *c = hidden_model("GPU");
    for (xm_pooling pooling : {XM_POOLING_LAST, XM_POOLING_MEAN}) {
        const Floats together = embed(c, pooling, texts(), 256);
        for (size_t i = 0; i < texts().size(); i++) {
            const Floats alone = embed(c, pooling, {texts()[i]}, 256);
            EXPECT_GT(cosine(alone.data(), &together[i * 256], 256), 1 - 1e-6) << i;
            double squares = 0;
            for (float x : alone)
                squares += (double)x * x;
            EXPECT_NEAR(squares, 1.0, 1e-6);
        }
    }
    xm_compiled_unref(c);
}

/* A model for embeddings, exported without cache and logits. Each token sees the tokens before
 * it. */
const char *const stateless = R"(
%0 = parameter i64[batch,tokens] name="input_ids"
%1 = const f32[5,2] {0.5, 1, -1, 2, 3, -2, 0.25, 4, -3, -1}
%2 = const i64[] {0}
%3 = gather %1, %0, %2
%4 = shape_value i64[4] {batch, 1, tokens, 2}
%5 = reshape %3, %4
%6 = sdpa %5, %5, %5 causal=true
%7 = shape_value i64[3] {batch, tokens, 2}
%8 = reshape %6, %7
result %8 name="last_hidden_state"
)";

class StatelessEmbedder : public OpenClTest,
                          public testing::WithParamInterface<const char *>
{
};

TEST_P(StatelessEmbedder, RunsTextByText)
{
    const std::vector<Floats> table = {{0.5, 1}, {-1, 2}, {3, -2}, {0.25, 4}, {-3, -1}};
    std::vector<Ids> texts = {{0}, {1, 2, 3}, {4, 4, 0, 1, 2, 3, 0}, {3, 1}};
    xm_core *core = nullptr;
    xm_compiled *c = nullptr;
    xm_embedder *e = nullptr;
    Graph g = parse(stateless);
    ASSERT_TRUE(xm_pass_gather_hidden_states(g.get())) << g->err.text;
    ASSERT_XM_OK(xm_core_create(&core, &err));
    ASSERT_XM_OK(
        xm_core_compile(core, g.release(), GetParam(), nullptr, 0, nullptr, &c, &err));
    std::vector<xm_token_list> lists;
    for (Ids &t : texts)
        lists.push_back({t.data(), t.size(), t.size()});
    for (xm_pooling pooling : {XM_POOLING_LAST, XM_POOLING_MEAN}) {
        Floats out(2 * texts.size());
        ASSERT_XM_OK(xm_embedder_create(c, pooling, &e, &err));
        ASSERT_XM_OK(xm_embedder_run(e, lists.data(), lists.size(), 2, out.data(), &err));
        for (size_t i = 0; i < texts.size(); i++) {
            Floats sum(2, 0.0f);
            for (size_t q = pooling == XM_POOLING_MEAN ? 0 : texts[i].size() - 1;
                 q < texts[i].size(); q++) {
                double whole = 0, row[2] = {0, 0};
                const Floats &a = table[(size_t)texts[i][q]];
                for (size_t k = 0; k <= q; k++) {
                    const Floats &b = table[(size_t)texts[i][k]];
                    const double w =
                        std::exp((a[0] * b[0] + a[1] * b[1]) / std::sqrt(2.0));
                    whole += w;
                    row[0] += w * b[0];
                    row[1] += w * b[1];
                }
                sum[0] += (float)(row[0] / whole);
                sum[1] += (float)(row[1] / whole);
            }
            EXPECT_GT(cosine(&out[2 * i], sum.data(), 2), 1 - 1e-5) << i;
        }
        xm_embedder_destroy(e);
    }
    xm_compiled_unref(c);
    xm_core_destroy(core);
}

INSTANTIATE_TEST_SUITE_P(Devices, StatelessEmbedder, testing::Values("GPU", "REFERENCE"));

INSTANTIATE_TEST_SUITE_P(Models, EmbedderOnDevice,
                         testing::Values("qwen3moe-tiny/ov/int8_asym",
                                         "qwen3moe-tiny/gguf/qwen3moe-tiny-Q4_K_M.gguf",
                                         "gemma4-e-tiny/gguf/gemma4-e-tiny-Q4_0.gguf"),
                         [](const auto &p) {
                             std::string name = p.param;
                             for (char &c : name)
                                 c = isalnum((unsigned char)c) ? c : '_';
                             return name;
                         });

} // namespace
