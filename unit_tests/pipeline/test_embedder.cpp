/* SPDX-License-Identifier: Apache-2.0
 *
 * Embeddings of a scripted model: pooling, texts that run together, and the release of memory.
 */
#include "plugin/pipeline/embedder.h"

#include <cmath>
#include <numeric>

#include "unit_tests/pipeline/scripted_sequences.h"

namespace
{

using Vector = std::vector<float>;

Vector
unit(std::vector<double> v, size_t dimensions = VOCABULARY)
{
    v.resize(dimensions);
    const double length =
        std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
    Vector out;
    for (double x : v)
        out.push_back((float)(x / length));
    return out;
}

std::vector<double>
hidden(const Ids &ids)
{
    const Vector row = rambling(ids);
    return {row.begin(), row.end()};
}

std::vector<double>
mean_of_prefixes(const Ids &ids)
{
    std::vector<double> sum(VOCABULARY, 0.0);
    for (size_t n = 1; n <= ids.size(); n++) {
        const std::vector<double> row = hidden(Ids(ids.begin(), ids.begin() + (long)n));
        for (size_t i = 0; i < sum.size(); i++)
            sum[i] += row[i];
    }
    return sum;
}

void
expect_near(const Vector &got, const Vector &wanted)
{
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); i++)
        EXPECT_NEAR(got[i], wanted[i], 1e-6) << i;
}

class Embedder
{
  public:
    Embedder(xm_compiled &c, xm_pooling pooling)
    {
        EXPECT_EQ(xm_embedder_create(&c, pooling, &e, &err), XM_OK) << err.text;
    }
    ~Embedder()
    {
        xm_embedder_destroy(e);
    }
    Embedder(const Embedder &) = delete;
    xm_status run(std::vector<Ids> texts, size_t dimensions = VOCABULARY)
    {
        std::vector<xm_token_list> lists;
        for (Ids &t : texts)
            lists.push_back({t.data(), t.size(), t.size()});
        Vector all(texts.size() * dimensions, 9.0f);
        rows.clear();
        err = {};
        const xm_status s =
            xm_embedder_run(e, lists.data(), lists.size(), dimensions, all.data(), &err);
        for (size_t i = 0; i < texts.size(); i++)
            rows.emplace_back(all.begin() + (long)(i * dimensions),
                              all.begin() + (long)((i + 1) * dimensions));
        return s;
    }
    xm_embedder *e = nullptr;
    std::vector<Vector> rows;
    xm_error err = {};
};

/* A model with sequences, whose result has a known last dimension. */
struct Model : SequenceModel {
    Model()
    {
        result.type.shape.rank = 3;
        result.type.shape.dim[2] = xm_dim_const(VOCABULARY);
        base.ports.outputs = &result;
        base.ports.n_outputs = 1;
    }
    xm_port result = {};
};

Ids
text(size_t n, uint32_t seed)
{
    Ids ids;
    for (size_t i = 0; i < n; i++) {
        seed = digest((int32_t)i, seed);
        ids.push_back((int32_t)(seed % VOCABULARY));
    }
    return ids;
}

TEST(Embedder, OfARequestPoolsTheLastToken)
{
    ScriptedModel model(rambling);
    Embedder e(model.base, XM_POOLING_LAST);
    EXPECT_EQ(xm_embedder_width(e.e), (uint64_t)VOCABULARY);
    ASSERT_EQ(e.run({{1, 2, 3}, {4}}), XM_OK) << e.err.text;
    expect_near(e.rows[0], unit(hidden({1, 2, 3})));
    expect_near(e.rows[1], unit(hidden({4})));
}

TEST(Embedder, OfARequestPoolsTheMeanOfAllTokens)
{
    ScriptedModel model(rambling);
    model.gives_all = true;
    Embedder e(model.base, XM_POOLING_MEAN);
    ASSERT_EQ(e.run({{1, 2, 3}, {4}, {1, 2}}), XM_OK) << e.err.text;
    expect_near(e.rows[0], unit(mean_of_prefixes({1, 2, 3})));
    expect_near(e.rows[1], unit(hidden({4})));
    expect_near(e.rows[2], unit(mean_of_prefixes({1, 2})));
}

TEST(Embedder, RefusesTheMeanOfFewerRows)
{
    ScriptedModel model(rambling); /* returns only the last row */
    Embedder e(model.base, XM_POOLING_MEAN);
    EXPECT_EQ(e.run({{1, 2, 3}}), XM_DEVICE);
    EXPECT_NE(std::string(e.err.text).find("1 hidden states of width 12, expected 3"),
              std::string::npos)
        << e.err.text;
}

TEST(Embedder, CutsAndScalesAgain)
{
    Model model;
    Embedder e(model.base, XM_POOLING_LAST);
    ASSERT_EQ(e.run({{4, 5}}), XM_OK); /* leaves a vector of full width */
    ASSERT_EQ(e.run({{1, 2}, {3}}, 5), XM_OK) << e.err.text;
    expect_near(e.rows[0], unit(hidden({1, 2}), 5));
    expect_near(e.rows[1], unit(hidden({3}), 5));
}

TEST(Embedder, SeveralAreThoseOfEachAlone)
{
    Model model;
    Embedder e(model.base, XM_POOLING_LAST);
    std::vector<Ids> texts;
    for (uint32_t i = 0; i < 100; i++)
        texts.push_back(text(1 + i % 17, i));
    ASSERT_EQ(e.run(texts), XM_OK) << e.err.text;
    const std::vector<Vector> together = e.rows;
    EXPECT_LT(model.runs.size(), texts.size());
    for (size_t i = 0; i < texts.size(); i++) {
        ASSERT_EQ(e.run({texts[i]}), XM_OK);
        EXPECT_EQ(e.rows[0], together[i]) << i;
        expect_near(e.rows[0], unit(hidden(texts[i])));
    }
    EXPECT_EQ(model.n_sequences, 0u);
}

TEST(Embedder, FillsAChunkAndNoMore)
{
    Model model;
    Embedder e(model.base, XM_POOLING_LAST);
    std::vector<Ids> texts = {text(500, 1), text(12, 2), text(1, 3), text(600, 4)};
    ASSERT_EQ(e.run(texts), XM_OK) << e.err.text;
    EXPECT_EQ(model.runs, (std::vector<Ids>{{500, 12}, {1}, {600}}));
    model.runs.clear();
    ASSERT_EQ(e.run(std::vector<Ids>(33, {1})), XM_OK);
    EXPECT_EQ(model.runs, (std::vector<Ids>{Ids(32, 1), {1}}));
}

TEST(Embedder, FewerRunTogetherWhereTheCacheHasNoRoom)
{
    Model model;
    Embedder e(model.base, XM_POOLING_LAST);
    model.pages = 5; /* of 4 tokens each */
    std::vector<Ids> texts;
    for (uint32_t i = 0; i < 20; i++)
        texts.push_back(text(1 + i % 5, i));
    ASSERT_EQ(e.run(texts), XM_OK) << e.err.text;
    for (size_t i = 0; i < texts.size(); i++)
        expect_near(e.rows[i], unit(hidden(texts[i])));
    EXPECT_EQ(e.run({text(21, 1)}), XM_NO_MEMORY);
    EXPECT_STREQ(e.err.text, "the cache is full");
}

TEST(Embedder, FailuresLeaveNothingBehind)
{
    Model model;
    Embedder e(model.base, XM_POOLING_LAST);
    model.run_fails_in = 1;
    EXPECT_EQ(e.run({text(400, 1), text(400, 2)}), XM_DEVICE);
    EXPECT_STREQ(e.err.text, "the device is gone");
    EXPECT_EQ(model.n_sequences, 0u);
    EXPECT_EQ(model.used, 0u);
    model.nan_every = 1;
    EXPECT_EQ(e.run({{1}}), XM_NOT_FINITE);
    EXPECT_EQ(model.n_sequences, 0u);
    model.nan_every = 0;
    EXPECT_EQ(e.run({{1}}), XM_OK) << e.err.text;
}

TEST(Embedder, IsCancelledUntilItResumes)
{
    Model model;
    Embedder e(model.base, XM_POOLING_LAST);
    int runs = 0;
    model.on_run = [&] {
        if (++runs == 2)
            xm_embedder_cancel(e.e);
    };
    EXPECT_EQ(e.run({text(400, 1), text(400, 2), text(400, 3)}), XM_CANCELLED);
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(e.run({{1}}), XM_CANCELLED);
    xm_embedder_resume(e.e);
    EXPECT_EQ(e.run({{1}}), XM_OK) << e.err.text;
}

TEST(Embedder, NeedsAWidth)
{
    SequenceModel model; /* has no outputs */
    xm_embedder *e = nullptr;
    xm_error err = {};
    EXPECT_EQ(xm_embedder_create(&model.base, XM_POOLING_LAST, &e, &err), XM_UNSUPPORTED);
    EXPECT_EQ(e, nullptr);
    EXPECT_EQ(model.base.refs, 1);
}

} // namespace
