/* SPDX-License-Identifier: Apache-2.0
 *
 * One pool of pages in several threads: sequences share beginnings and take pages that others
 * freed. Contents must follow their sequence.
 */
#include <random>

#include "plugin/gpu/batcher.h"
#include "plugin/kv/kv_sequence.h"
#include "primitives/attention/attention.h"
#include "runtime/fake/fake.h"
#include "unit_tests/plugin/language_model.h"
#include "unit_tests/plugin/threads.h"

namespace
{

enum { PAGE = 4, CHUNK = 8, WINDOW = 6, BUDGET = 2048 };
enum { THREADS = 4, STEPS = 10000, VALUES = 3, LONGEST = 60 };

/* Layer 0 keeps all positions, layer 1 has a window. */
const std::vector<xm_kv_need> two_layers = {{PAGE * 4, 0}, {PAGE * 8, WINDOW}};

struct context {
    xm_kv_sequence *s;
    std::vector<int32_t> tokens;
};

/* The pool calls its engine only while it holds its lock, so that one fake engine serves all
 * threads. */
class KvThreads : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        const xm_device_info info = fake_cpu();
        ASSERT_XM_OK(xm_fake_engine_create(&info, nullptr, &engine, &err));
        const xm_kv_pool_desc desc = {
            engine, PAGE, two_layers.data(), (uint32_t)two_layers.size(), CHUNK, BUDGET};
        ASSERT_XM_OK(xm_kv_pool_create(&desc, &pool, &err));
        for (auto &q : queue)
            ASSERT_XM_OK(xm_queue_create(engine, &q, &err));
    }
    void TearDown() override
    {
        xm_kv_pool_destroy(pool);
        for (auto &q : queue)
            xm_queue_destroy(q);
        xm_engine_unref(engine);
    }
    xm_engine *engine = nullptr;
    xm_queue *queue[THREADS] = {};
    xm_kv_pool *pool = nullptr;
    xm_error err = {};
};

/* Random operations of one thread on its own sequences. */
class User
{
  public:
    User(xm_kv_pool *p, xm_queue *q, int thread) : pool(p), queue(q), random(thread)
    {
    }
    ~User()
    {
        for (auto &c : all)
            xm_kv_sequence_destroy(c.s);
    }
    void step()
    {
        if (all.empty() || upto(4) == 0)
            begin();
        const size_t i = upto(all.size());
        switch (upto(6)) {
        case 0:
            end(i);
            return;
        case 1:
            fork(i);
            break;
        case 2:
            cut(all[i]);
            break;
        default:
            feed(all[i]);
            break;
        }
        if (all.size() > 6 || all[i].tokens.size() > LONGEST)
            end(i);
    }
    /* found: tokens taken over from others; full: runs without room */
    uint64_t found = 0, full = 0;

  private:
    size_t upto(size_t n)
    {
        return random() % n;
    }
    /* Returns few different values, so that beginnings are equal across threads. */
    std::vector<int32_t> some(size_t n)
    {
        std::vector<int32_t> list(n);
        for (auto &t : list)
            t = (int32_t)(upto(8) ? 1 : upto(VALUES));
        return list;
    }
    void begin()
    {
        xm_kv_sequence *s = nullptr;
        const auto wish = some(1 + upto(LONGEST / 2));
        ASSERT_XM_OK(xm_kv_sequence_create(pool, &s, &err));
        ASSERT_XM_OK(xm_kv_sequence_match(s, wish.data(), wish.size(), &err));
        const uint64_t past = xm_kv_sequence_past(s);
        found += past;
        all.push_back({s, {wish.begin(), wish.begin() + (long)past}});
        check(all.back());
    }
    void end(size_t i)
    {
        check(all[i]);
        xm_kv_sequence_destroy(all[i].s);
        all.erase(all.begin() + (long)i);
    }
    void fork(size_t i)
    {
        xm_kv_sequence *s = nullptr;
        ASSERT_XM_OK(xm_kv_sequence_fork(all[i].s, &s, &err));
        all.push_back({s, all[i].tokens});
    }
    void cut(context &c)
    {
        xm_kv_sequence_truncate(c.s, upto(c.tokens.size() + 1));
        c.tokens.resize(xm_kv_sequence_past(c.s));
        check(c);
    }
    /* Runs tokens: writes between reserve and commit, as kernels do. Some runs are cancelled. */
    void feed(context &c)
    {
        const auto next = some(1 + upto(CHUNK));
        xm_error why = {};
        if (xm_kv_sequence_reserve(c.s, next.size(), queue, &why) != XM_OK) {
            EXPECT_EQ(why.status, XM_NO_MEMORY) << why.text;
            full++;
            return check(c);
        }
        for (size_t i = 0; i < next.size(); i++)
            for (uint32_t l = 0; l < two_layers.size(); l++)
                *place(c, l, c.tokens.size() + i) = next[i] * 2 + (int32_t)l;
        if (upto(8) == 0) {
            xm_kv_sequence_cancel(c.s);
            return check(c);
        }
        c.tokens.insert(c.tokens.end(), next.begin(), next.end());
        xm_kv_sequence_commit(c.s, next.data());
        check(c);
    }
    int32_t *place(const context &c, uint32_t layer, uint64_t at)
    {
        uint32_t first, n;
        xm_buffer *slabs[XM_KV_SLABS];
        const int32_t *words =
            xm_kv_sequence_pages(c.s, xm_kv_pool_group_of(pool, layer), &first, &n);
        if (at / PAGE < first || at / PAGE >= first + n)
            return &nowhere;
        const auto word = (uint32_t)words[at / PAGE - first];
        xm_kv_pool_slabs(pool, layer, slabs);
        auto *bytes = (uint8_t *)xm_buffer_host_ptr(slabs[word >> XM_KV_SLAB_SHIFT]);
        const uint64_t page = word & ((1u << XM_KV_SLAB_SHIFT) - 1);
        return (int32_t *)(bytes + page * two_layers[layer].page_bytes + at % PAGE * 4);
    }
    void check(const context &c)
    {
        const uint64_t past = xm_kv_sequence_past(c.s);
        ASSERT_EQ(past, c.tokens.size());
        for (uint32_t l = 0; l < two_layers.size(); l++) {
            const uint64_t window = two_layers[l].window;
            uint64_t at = window && past + 1 > window ? past + 1 - window : 0;
            for (; at < past; at++)
                ASSERT_EQ(*place(c, l, at), c.tokens[at] * 2 + (int32_t)l)
                    << "layer " << l << " position " << at << " of " << past;
        }
    }

    xm_kv_pool *pool;
    xm_queue *queue;
    std::mt19937 random;
    std::vector<context> all;
    xm_error err = {};
    int32_t nowhere = -1; /* where a position without a page is read from */
};

TEST_F(KvThreads, ContentsFollowTheirSequences)
{
    std::atomic<uint64_t> found{0}, full{0};
    in_threads(THREADS, [&](int t) {
        User user(pool, queue[t], t);
        for (int i = 0; i < STEPS && !HasFatalFailure(); i++)
            user.step();
        found += user.found;
        full += user.full;
    });
    EXPECT_GT(found, 0u);
    EXPECT_GT(full, 0u);
    EXPECT_LE(xm_kv_pool_bytes(pool), (uint64_t)BUDGET);
    for (uint32_t g = 0; g < xm_kv_pool_groups(pool); g++) {
        xm_kv_group_stats s;
        xm_kv_pool_stats(pool, g, &s);
        EXPECT_EQ(s.used, 0u) << "group " << g;
    }
}

/* Returns the logits of a prompt and of a token after it, in a batch of two. */
std::vector<float>
run_batch(xm_program *p, uint32_t seed)
{
    std::vector<float> all;
    xm_error err = {};
    xm_batcher *b = nullptr;
    xm_kv_sequence *s[2] = {};
    EXPECT_XM_OK(xm_batcher_create(p, &b, &err));
    for (auto &one : s)
        EXPECT_XM_OK(xm_kv_sequence_create(p->kv_pool, &one, &err));
    for (int64_t n : {9, 1}) {
        const auto wide = some_ids(2 * n + 1, seed, 64);
        const std::vector<int32_t> ids(wide.begin(), wide.end());
        const xm_batcher_entry list[] = {{s[0], ids.data(), (uint64_t)n, 1},
                                         {s[1], ids.data() + n, (uint64_t)n + 1, 1}};
        EXPECT_XM_OK(xm_batcher_run(b, list, 2, &err));
        for (uint32_t i = 0; i < 2; i++) {
            uint64_t rows = 0, width = 0;
            const float *logits = xm_batcher_logits(b, i, &rows, &width);
            EXPECT_EQ(rows, 1u);
            all.insert(all.end(), logits, logits + rows * width);
        }
    }
    for (auto *one : s)
        xm_kv_sequence_destroy(one);
    xm_batcher_destroy(b);
    return all;
}

class KvBatches : public OpenClTest
{
};

TEST_F(KvBatches, OneProgramServesThemInSeveralThreads)
{
    xm_compile_options sampled = {};
    sampled.sampled_logits = true;
    Program p = must_compile(engine, parse(small_model()),
                             {{"INFERENCE_PRECISION_HINT", "f32"},
                              {"XM_UBATCH", "8"},
                              {"XM_KV_BLOCK_TOKENS", "4"}},
                             &sampled);
    ASSERT_TRUE(p);
    std::vector<std::vector<float>> want;
    for (uint32_t seed = 0; seed < THREADS; seed++)
        want.push_back(run_batch(p.get(), seed));
    in_threads(THREADS, [&](int t) {
        for (int i = 0; i < 3; i++)
            EXPECT_EQ(run_batch(p.get(), (uint32_t)t), want[(size_t)t]) << "thread " << t;
    });
}

} // namespace
