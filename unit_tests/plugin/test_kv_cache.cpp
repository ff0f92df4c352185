/* SPDX-License-Identifier: Apache-2.0
 *
 * The paged cache on the fake engine: who uses which page, and that the contents follow
 * their sequence through growth, sharing and copies.
 */
#include <deque>
#include <random>

#include "plugin/kv_cache.h"
#include "runtime/fake/fake.h"
#include "runtime/util/memory.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

enum { PAGE = 4, HEADS = 2, D = 3, DV = 5, LAYERS = 2 };

class KvCache : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        info.kind = XM_DEVICE_CPU;
        info.max_alloc_bytes = 64 << 20;
        info.base_align = 64;
        info.max_work_group = 256;
        info.caps = XM_CAP_HOST_VISIBLE;
        ASSERT_XM_OK(xm_fake_engine_create(&info, nullptr, &engine, &err));
        ASSERT_XM_OK(xm_queue_create(engine, &queue, &err));
        for (auto &l : layers)
            l = {"k", "v", HEADS, D, DV, XM_F32};
        layers[1].element = XM_I8;
        program.engine = engine;
        program.config.kv_block_tokens = PAGE;
        program.kv = layers;
        program.n_kv = LAYERS;
        ASSERT_XM_OK(xm_kv_cache_init(&c, &program, &err));
    }
    void TearDown() override
    {
        xm_kv_cache_free(&c);
        xm_queue_destroy(queue);
        xm_engine_unref(engine);
    }

    /* Extends, writes what the kernels would, and moves past on, as a request does. */
    void feed(uint32_t batch, const std::vector<int32_t> &beams, uint64_t tokens)
    {
        std::vector<std::vector<int>> before = text;
        ASSERT_XM_OK(xm_kv_cache_extend(&c, batch, beams.empty() ? nullptr : beams.data(),
                                        tokens, queue, &err));
        text.assign(batch, {});
        for (uint32_t b = 0; b < batch; b++) {
            if (c.past)
                text[b] = before.at(beams.empty() ? b : (size_t)beams[b]);
            for (uint64_t t = 0; t < tokens; t++) {
                text[b].push_back(next_token++);
                write(b, c.past + t, text[b].back());
            }
        }
        c.past += tokens;
        check();
    }

    struct place {
        xm_buffer *buffer;
        uint64_t at;    /* in a page */
        uint64_t bytes; /* of one position of one head */
        uint64_t page_bytes;
    };
    std::vector<place> places()
    {
        std::vector<place> all;
        for (uint32_t i = 0; i < LAYERS; i++) {
            xm_attention_desc d = {};
            d.heads_kv = HEADS;
            d.d = D;
            d.dv = DV;
            d.page_tokens = PAGE;
            d.cache = layers[i].element;
            xm_kv_page page = {};
            EXPECT_TRUE(xm_attention_page(&d, &page));
            xm_buffer *slab = c.slabs[i * XM_KV_SLABS];
            const uint64_t bytes = xm_element_bits(d.cache) / 8;
            all.push_back({slab, 0, D * bytes, page.bytes});
            all.push_back({slab, page.v, DV * bytes, page.bytes});
            if (d.cache == XM_I8) {
                all.push_back({slab, page.k_scale, 4, page.bytes});
                all.push_back({slab, page.v_scale, 4, page.bytes});
            }
        }
        return all;
    }
    uint64_t offset(const place &p, uint32_t b, uint64_t position, uint32_t head)
    {
        uint64_t page = (uint64_t)c.table[b * c.table_width + position / PAGE];
        return page * p.page_bytes + p.at + (head * PAGE + position % PAGE) * p.bytes;
    }
    void write(uint32_t b, uint64_t position, int token)
    {
        for (const place &p : places()) {
            for (uint32_t h = 0; h < HEADS; h++)
                ASSERT_XM_OK(xm_queue_fill(queue, p.buffer, offset(p, b, position, h),
                                           (uint8_t)(token * HEADS + (int)h), p.bytes,
                                           &err));
        }
    }

    /* Users are the table's references; every position holds its sequence's token; the
     * device has the same table; a page that will be written next is used once. */
    void check()
    {
        uint32_t held = (uint32_t)((c.past + PAGE - 1) / PAGE);
        std::vector<uint32_t> users(c.n_pages, 0);
        for (uint32_t b = 0; b < c.n_sequences; b++) {
            for (uint32_t i = 0; i < held; i++)
                users.at((size_t)c.table[b * c.table_width + i])++;
            for (uint64_t t = 0; t < c.past; t++)
                check_position(b, t, text.at(b).at(t));
        }
        ASSERT_EQ(users, std::vector<uint32_t>(c.page_users, c.page_users + c.n_pages));
        if (c.device_table) {
            EXPECT_EQ(memcmp(xm_buffer_host_ptr(c.device_table), c.table,
                             c.n_sequences * c.table_width * sizeof(int32_t)),
                      0);
        }
    }
    void check_position(uint32_t b, uint64_t t, int token)
    {
        for (const place &p : places()) {
            auto *bytes = (const uint8_t *)xm_buffer_host_ptr(p.buffer);
            for (uint32_t h = 0; h < HEADS; h++)
                for (uint64_t i = 0; i < p.bytes; i++)
                    ASSERT_EQ(bytes[offset(p, b, t, h) + i],
                              (uint8_t)(token * HEADS + (int)h))
                        << "sequence " << b << " position " << t;
        }
    }
    uint32_t pages_in_use() const
    {
        uint32_t n = 0;
        for (uint32_t i = 0; i < c.n_pages; i++)
            n += c.page_users[i] != 0;
        return n;
    }

    xm_device_info info = {};
    xm_engine *engine = nullptr;
    xm_queue *queue = nullptr;
    xm_error err = {};
    xm_kv_layer layers[LAYERS] = {};
    xm_program program = {};
    xm_kv_cache c = {};
    std::vector<std::vector<int>> text; /* by sequence: the tokens it holds */
    int next_token = 1;
};

TEST_F(KvCache, TakesPagesAsPositionsCome)
{
    feed(1, {}, 3);
    EXPECT_EQ(pages_in_use(), 1u);
    feed(1, {}, 1);
    EXPECT_EQ(pages_in_use(), 1u);
    feed(1, {0}, 1);
    EXPECT_EQ(pages_in_use(), 2u);
    feed(1, {}, 11);
    EXPECT_EQ(pages_in_use(), 4u);
}

TEST_F(KvCache, GrowsWithItsContents)
{
    feed(2, {}, 250);
    uint64_t before = xm_kv_cache_bytes(&c);
    feed(2, {}, 300);
    feed(2, {}, 1);
    EXPECT_GT(xm_kv_cache_bytes(&c), before);
    EXPECT_EQ(pages_in_use(), 2u * ((551 + PAGE - 1) / PAGE));
}

TEST_F(KvCache, FreesWhatIsTruncatedAndReset)
{
    feed(2, {}, 13);
    xm_kv_cache_truncate(&c, 20);
    EXPECT_EQ(c.past, 13u);
    xm_kv_cache_truncate(&c, 5);
    for (auto &t : text)
        t.resize(5);
    check();
    EXPECT_EQ(pages_in_use(), 4u);
    feed(2, {1, 0}, 3);
    xm_kv_cache_truncate(&c, 0);
    EXPECT_EQ(pages_in_use(), 0u);
    feed(3, {}, 2);
    xm_kv_cache_reset(&c);
    EXPECT_EQ(pages_in_use(), 0u);
    EXPECT_EQ(c.past, 0u);
    feed(1, {}, 9);
    EXPECT_EQ(pages_in_use(), 3u);
}

TEST_F(KvCache, SharesPagesBetweenBeamsAndCopiesOnlyTheLast)
{
    feed(1, {}, 6);
    feed(3, {0, 0, 0}, 1); /* one full page shared by three, three last pages */
    EXPECT_EQ(pages_in_use(), 4u);
    EXPECT_EQ(c.page_users[c.table[0]], 3u);
    feed(3, {2, 2, 1}, 1);
    feed(3, {0, 1, 2}, 1); /* page 2 */
    EXPECT_EQ(c.table[0], c.table[c.table_width]);
    feed(2, {1, 0}, 5);
    feed(1, {1}, 1);
    EXPECT_EQ(c.page_users[c.table[0]], 1u);
}

TEST_F(KvCache, SharesWholePagesWithoutCopies)
{
    feed(1, {}, 8);
    uint64_t copies = xm_fake_calls(engine, XM_FAKE_COPY);
    feed(4, {0, 0, 0, 0}, 1);
    EXPECT_EQ(xm_fake_calls(engine, XM_FAKE_COPY), copies);
    EXPECT_EQ(pages_in_use(), 6u);
}

TEST_F(KvCache, RefusesRowsThatItDoesNotHold)
{
    feed(2, {}, 3);
    int32_t beams[] = {0, 2};
    EXPECT_EQ(xm_kv_cache_extend(&c, 2, beams, 1, queue, &err), XM_INVALID);
    EXPECT_STREQ(err.text,
                 "sequence 1 continues state row 2, but the state holds 2 rows");
    beams[1] = -1;
    EXPECT_EQ(xm_kv_cache_extend(&c, 2, beams, 1, queue, nullptr), XM_INVALID);
    EXPECT_EQ(xm_kv_cache_extend(&c, 3, nullptr, 1, queue, nullptr), XM_INVALID);
    EXPECT_EQ(xm_kv_cache_extend(&c, 0, nullptr, 1, queue, nullptr), XM_INVALID);
    EXPECT_EQ(xm_kv_cache_extend(&c, 1, nullptr, UINT64_MAX / 2, queue, nullptr),
              XM_INVALID);
    check();
    feed(2, {1, 0}, 2);
}

TEST_F(KvCache, AnyRowMayBeNamedWhileItIsEmpty)
{
    feed(2, {7, -3}, 2);
}

TEST_F(KvCache, NoTokensChangeNothing)
{
    feed(1, {}, 0);
    feed(2, {}, 256); /* up to the end of the table's row */
    feed(2, {}, 0);
    feed(2, {1, 1}, 0);
    feed(2, {}, 1);
}

TEST_F(KvCache, ManySequences)
{
    feed(65, {}, 5);
    std::vector<int32_t> reversed(65);
    for (int i = 0; i < 65; i++)
        reversed[(size_t)i] = 64 - i;
    feed(65, reversed, 1);
    EXPECT_EQ(pages_in_use(), 65u * 2);
}

/* What happens to the cache is what happens to lists of tokens. */
TEST_F(KvCache, FollowsAModelThroughRandomSteps)
{
    std::mt19937 random(7);
    auto upto = [&](uint32_t n) { return (uint32_t)(random() % n); };
    for (int step = 0; step < 300 && !HasFatalFailure(); step++) {
        uint32_t what = upto(20);
        if (what == 0) {
            xm_kv_cache_reset(&c);
            text.clear();
        } else if (what < 4) {
            xm_kv_cache_truncate(&c, upto((uint32_t)c.past + 2));
            for (auto &t : text)
                t.resize(c.past);
            check();
        } else {
            uint32_t batch = c.past && upto(4) ? c.n_sequences : 1 + upto(5);
            std::vector<int32_t> beams;
            for (uint32_t b = 0; b < batch; b++)
                beams.push_back(c.past ? (int32_t)upto(c.n_sequences) : 0);
            feed(batch, beams, upto(4) ? upto(6) : upto(60));
        }
    }
}

/* A run that fails behind extend never moves past on; its pages are free again. */
TEST_F(KvCache, PagesOfAFailedRunAreTakenAgain)
{
    feed(2, {}, 5);
    for (int i = 0; i < 50; i++)
        ASSERT_XM_OK(xm_kv_cache_extend(&c, 2, nullptr, 30, queue, &err));
    feed(2, {}, 1);
    EXPECT_EQ(pages_in_use(), 4u);
    xm_kv_cache_truncate(&c, 0);
    for (uint32_t i = 0; i < 50; i++)
        ASSERT_XM_OK(xm_kv_cache_extend(&c, 1 + i % 3, nullptr, 30, queue, &err));
    feed(1, {}, 1);
    EXPECT_EQ(pages_in_use(), 1u);
}

/* A run that fails after it has reordered the rows, over and over: they are back, with what
 * they held, and the pages of the run are free. */
TEST_F(KvCache, EndWithoutKeepingPutsTheRowsBack)
{
    feed(3, {}, 21);
    uint32_t in_use = pages_in_use();
    for (uint32_t i = 0; i < 20; i++) {
        const int32_t beams[] = {2, 2, 0, 2};
        xm_kv_cache_begin(&c);
        ASSERT_XM_OK(xm_kv_cache_extend(&c, 1 + i % 4, beams, 30, queue, &err));
        c.past += 30; /* the first chunk went well */
        ASSERT_XM_OK(xm_kv_cache_extend(&c, 1 + i % 4, nullptr, 300, queue, &err));
        xm_kv_cache_end(&c, false);
        EXPECT_EQ(c.past, 21u);
        EXPECT_EQ(c.n_sequences, 3u);
        EXPECT_EQ(pages_in_use(), in_use);
    }
    feed(3, {}, 2);
    feed(4, {2, 1, 1, 0}, 7);
}

TEST_F(KvCache, RefusesSizesThatOverflow)
{
    layers[0].heads = layers[0].d = UINT32_MAX;
    EXPECT_EQ(xm_kv_cache_extend(&c, 1, nullptr, 1, queue, &err), XM_NO_MEMORY);
    EXPECT_NE(strstr(err.text, "pages of the KV cache have more bytes"), nullptr)
        << err.text;
    layers[0].heads = layers[0].d = 1;
}

/* Each allocation and each call of the engine fails once: nothing is lost or leaked, and
 * the same step succeeds afterwards. */
TEST_F(KvCache, EveryFailureLeavesItUsable)
{
    for (int kind = 0; kind < 2; kind++) {
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            xm_kv_cache_reset(&c);
            text.clear();
            feed(1, {}, 255);
            int32_t beams[] = {0, 0, 0};
            xm_error why = {};
            if (kind == 0)
                xm_fail_allocation(n);
            else
                xm_fake_fail(engine, XM_FAKE_ANY, n);
            enum xm_status s = xm_kv_cache_extend(&c, 3, beams, 600, queue, &why);
            failed = kind == 0 ? xm_fail_allocation_seen() : xm_fake_failed(engine);
            xm_fail_allocation(0);
            xm_fake_fail(engine, XM_FAKE_ANY, 0);
            ASSERT_EQ(s != XM_OK, failed) << n;
            EXPECT_EQ(why.text[0] != '\0', failed) << n;
            if (c.n_sequences == 3) { /* the reorder has happened */
                text.assign(3, text[0]);
                feed(3, {}, 600);
            } else {
                feed(3, {0, 0, 0}, 600);
            }
            xm_kv_cache_free(&c);
            ASSERT_XM_OK(xm_kv_cache_init(&c, &program, &err));
            text.clear();
        }
    }
}

} // namespace
