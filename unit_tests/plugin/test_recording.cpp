/* SPDX-License-Identifier: Apache-2.0
 *
 * Replayed runs give the same bytes as runs that are launched anew. A hook keeps a request from
 * recording.
 */
#include "plugin/gpu/batcher.h"

#include "plugin/gpu/request_run.h"
#include "unit_tests/plugin/language_model.h"

namespace
{

enum { VOCABULARY = 64, TOKENS = 12 };

enum xm_status
do_nothing(xm_request *, uint32_t, const xm_operand *, void *, xm_error *)
{
    return XM_OK;
}

/* Returns the number of launches that the plans of a request have recorded. */
uint32_t
recorded(const xm_request *r)
{
    uint32_t n = 0;
    for (const xm_buffer_plan &p : r->plans)
        n += p.recording.launches ? xm_recording_launches(p.recording.launches) : 0;
    return n;
}

/* Sequences of one program. */
class Texts
{
  public:
    Texts(xm_program *p, uint32_t n, bool anew) : sequences(n)
    {
        EXPECT_EQ(xm_batcher_create(p, &batcher, &err), XM_OK) << err.text;
        for (xm_kv_sequence *&s : sequences)
            EXPECT_EQ(xm_kv_sequence_create(p->kv_pool, &s, &err), XM_OK) << err.text;
        if (anew)
            xm_request_set_hook(request(), do_nothing, nullptr);
    }
    ~Texts()
    {
        for (xm_kv_sequence *s : sequences)
            xm_kv_sequence_destroy(s);
        xm_batcher_destroy(batcher);
    }
    Texts(const Texts &) = delete;
    xm_request *request()
    {
        return xm_batcher_request(batcher);
    }
    /* Feeds n tokens to each of the first `texts` sequences; returns the logits of their last
     * tokens. */
    std::vector<float> feed(uint32_t texts, uint32_t n, uint32_t seed)
    {
        std::vector<std::vector<int32_t>> ids;
        std::vector<xm_batcher_entry> list;
        for (uint32_t i = 0; i < texts; i++) {
            const auto of = some_ids(n, seed + i, VOCABULARY);
            ids.emplace_back(of.begin(), of.end());
        }
        for (uint32_t i = 0; i < texts; i++)
            list.push_back({sequences[i], ids[i].data(), n, 1});
        EXPECT_EQ(xm_batcher_run(batcher, list.data(), texts, &err), XM_OK) << err.text;
        std::vector<float> rows;
        for (uint32_t i = 0; i < texts; i++) {
            uint64_t got, vocabulary;
            const float *row = xm_batcher_logits(batcher, i, &got, &vocabulary);
            EXPECT_EQ(got, 1u);
            rows.insert(rows.end(), row, row + vocabulary);
        }
        return rows;
    }
    std::vector<xm_kv_sequence *> sequences;
    xm_batcher *batcher = nullptr;

  private:
    xm_error err = {};
};

class Recording : public OpenClTest
{
  protected:
    void SetUp() override
    {
        OpenClTest::SetUp();
        if (!IsSkipped())
            open(two_layers());
    }
    void open(const std::string &model)
    {
        replayed.reset();
        anew.reset();
        xm_compile_options sampled = {};
        sampled.sampled_logits = true;
        program = std::make_unique<Program>(must_compile(
            engine, parse(model),
            {{"INFERENCE_PRECISION_HINT", "f32"}, {"XM_KV_BLOCK_TOKENS", "4"}},
            &sampled));
        ASSERT_TRUE(*program);
        replayed = std::make_unique<Texts>(program->get(), 4, false);
        anew = std::make_unique<Texts>(program->get(), 4, true);
    }
    void TearDown() override
    {
        replayed.reset();
        anew.reset();
        program.reset();
        OpenClTest::TearDown();
    }
    void feed_both(uint32_t texts, uint32_t n, uint32_t seed)
    {
        const std::vector<float> want = anew->feed(texts, n, seed);
        ASSERT_EQ(replayed->feed(texts, n, seed), want) << "seed " << seed;
    }
    std::unique_ptr<Program> program;
    std::unique_ptr<Texts> replayed, anew;
};

TEST_F(Recording, TokensAreReplayed)
{
    feed_both(1, 7, 100);
    for (uint32_t i = 0; i < TOKENS; i++) {
        feed_both(1, 1, i);
        EXPECT_EQ(recorded(replayed->request()) > 0, i >= 3) << i;
    }
    EXPECT_EQ(recorded(anew->request()), 0u);
    /* The statistics count a replayed run like a launched one. */
    struct xm_request_stats a, b;
    xm_request_stats(replayed->request(), &a);
    xm_request_stats(anew->request(), &b);
    EXPECT_EQ(a.kernels, b.kernels);
    EXPECT_EQ(a.weight_bytes, b.weight_bytes);
    EXPECT_EQ(a.multiply_adds, b.multiply_adds);
}

/* Runs batches of changing numbers of texts. The plan of a larger batch also serves smaller ones,
 * even after a smaller batch was recorded with it. */
TEST_F(Recording, ChangingBatchesAreRunAsTheyAre)
{
    feed_both(4, 5, 200);
    for (uint32_t texts : {3, 4, 2, 3, 4, 1, 4})
        for (uint32_t i = 0; i < 5; i++)
            feed_both(texts, 1, 300 + 100 * texts + 10 * i);
    feed_both(4, 3, 999);
    for (uint32_t i = 0; i < TOKENS; i++)
        feed_both(1 + i % 2, 1 + i / 6, 2000 + 10 * i);
}

/* Larger runs in between reallocate activations, scratch and cache. */
TEST_F(Recording, LargerRunsBetweenDoNoHarm)
{
    feed_both(1, 3, 1);
    for (uint32_t prompt = 8; prompt <= 512; prompt *= 4) {
        for (uint32_t i = 0; i < 6; i++)
            feed_both(1, 1, prompt + i);
        feed_both(2, prompt, 7000 + prompt);
    }
    for (uint32_t i = 0; i < 6; i++)
        feed_both(1, 1, i);
}

/* With one head processors are idle, so that attention cuts the keys into more and larger
 * partitions as the context grows. */
TEST_F(Recording, AttentionFollowsTheContext)
{
    std::string model =
        two_layers("_"); /* without masks, which have a size of their own */
    const std::pair<std::string, std::string> edits[] = {
        {"[16,32]", "[32,32]"},
        {"{0, 0, -1, 16}", "{0, 0, -1, 32}"},
        {"%2, %1", "%2, _"}};
    for (const auto &[from, to] : edits)
        model.replace(model.find(from), from.size(), to);
    open(model);
    feed_both(1, 120, 1);
    for (uint32_t i = 0; i < 300; i++)
        feed_both(1, 1, i);
    EXPECT_GT(recorded(replayed->request()), 0u);
}

TEST_F(Recording, ACancelledRunIsForgotten)
{
    feed_both(1, 3, 1);
    for (uint32_t i = 0; i < 6; i++)
        feed_both(1, 1, i);
    const int32_t id = 5;
    const xm_batcher_entry e = {replayed->sequences[0], &id, 1, 1};
    xm_request_cancel(replayed->request());
    ASSERT_EQ(xm_batcher_run(replayed->batcher, &e, 1, &err), XM_CANCELLED);
    EXPECT_EQ(recorded(replayed->request()), 0u);
    xm_request_resume(replayed->request());
    for (uint32_t i = 0; i < 6; i++)
        feed_both(1, 1, 50 + i);
    EXPECT_GT(recorded(replayed->request()), 0u);
}

TEST_F(Recording, APropertySwitchesItOff)
{
    Program whole =
        must_compile(engine, parse(two_layers()),
                     {{"INFERENCE_PRECISION_HINT", "f32"}, {"XM_REPLAY", "NO"}});
    ASSERT_TRUE(whole);
    Request r = make_request(whole.get());
    for (uint32_t i = 0; i < TOKENS; i++)
        ASSERT_TRUE(logits(r.get(), {{some_ids(1, i, VOCABULARY)}}));
    EXPECT_EQ(recorded(r.get()), 0u);
}

/* The shapes of a request with ports include the number of positions, which grows. */
TEST_F(Recording, RequestsThatGrowAreReplayed)
{
    Program whole =
        must_compile(engine, parse(two_layers()), {{"INFERENCE_PRECISION_HINT", "f32"}});
    ASSERT_TRUE(whole);
    Request a = make_request(whole.get()), b = make_request(whole.get());
    xm_request_set_hook(b.get(), do_nothing, nullptr);
    for (uint32_t i = 0; i < TOKENS; i++) {
        const auto ids = some_ids(i == 0 ? 9 : 1, i, VOCABULARY);
        const Tensor got = logits(a.get(), {{ids}}), want = logits(b.get(), {{ids}});
        ASSERT_TRUE(got && want);
        ASSERT_EQ(memcmp(got->f, want->f, VOCABULARY * sizeof(float)), 0) << i;
    }
    EXPECT_GT(recorded(a.get()), 0u);
    EXPECT_EQ(recorded(b.get()), 0u);
}

} // namespace
