/* SPDX-License-Identifier: Apache-2.0
 *
 * The expert cache compared with a simple model: slots, evictions and counts for random ids, and
 * the bytes in the slots.
 */
#include "primitives/moe/expert_cache.h"

#include <algorithm>
#include <map>

#include "primitives/tables.h"
#include "unit_tests/primitives/weight_fixture.h"

namespace
{

const weight_format u4g32 = {XM_U4, 32, true}, i8row = {XM_I8, UINT64_MAX, false};

/* The model evicts the least recently used expert; of several, that in the lowest slot. */
struct lru_model {
    std::map<int64_t, size_t> slot_of;
    std::vector<int64_t> expert_in;
    std::vector<uint64_t> last_use;
    uint64_t now = 0, hits = 0, misses = 0;

    explicit lru_model(size_t slots) : expert_in(slots, -1), last_use(slots, 0)
    {
    }

    std::vector<int64_t> look_up(const std::vector<int64_t> &ids)
    {
        std::vector<int64_t> slots;
        now++;
        for (int64_t e : ids) {
            auto found = slot_of.find(e);
            if (found != slot_of.end())
                last_use[found->second] = now;
        }
        for (int64_t e : ids) {
            if (slot_of.count(e)) {
                hits++;
            } else {
                size_t s = (size_t)(std::min_element(last_use.begin(), last_use.end()) -
                                    last_use.begin());
                EXPECT_LT(last_use[s], now) << "an expert of the same call is evicted";
                slot_of.erase(expert_in[s]);
                expert_in[s] = e;
                slot_of[e] = s;
                last_use[s] = now;
                misses++;
            }
            slots.push_back((int64_t)slot_of[e]);
        }
        return slots;
    }
};

/* A weight in an aligned buffer, as on devices that copy weights. */
struct aligned_weight {
    test_weight bytes;
    xm_device_weight device = {};

    aligned_weight(uint64_t experts, uint64_t n, uint64_t k, const weight_format &f,
                   uint32_t seed)
        : bytes(experts, n, k, f, seed)
    {
        device.host = bytes.host;
        device.data = copy(bytes.host.data);
        device.scale = copy(bytes.host.scale);
        device.zero_point = copy(bytes.host.zero_point);
    }
    ~aligned_weight()
    {
        xm_buffer_unref(device.data);
        xm_buffer_unref(device.scale);
        xm_buffer_unref(device.zero_point);
    }
    static xm_buffer *copy(const xm_bytes &b)
    {
        xm_buffer *out = nullptr;
        xm_error err = {};
        if (!b.p)
            return nullptr;
        EXPECT_EQ(xm_buffer_create(::device::get().engine, XM_USE_HOST, b.n, &out, &err),
                  XM_OK);
        EXPECT_EQ(xm_queue_write(::device::get().queue, out, 0, b.p, b.n, &err), XM_OK);
        return out;
    }
};

struct cache_ptr {
    xm_expert_cache *p = nullptr;
    ~cache_ptr()
    {
        xm_expert_cache_destroy(p);
    }
};

class ExpertCache : public PrimitiveTest
{
  protected:
    std::vector<uint8_t> read(const xm_buffer *b, uint64_t bytes)
    {
        std::vector<uint8_t> v(bytes);
        EXPECT_EQ(xm_queue_read(queue, b, 0, v.data(), bytes, &err), XM_OK) << err.text;
        return v;
    }
    std::vector<int64_t> slots_of(const xm_expert_cache *c, size_t n)
    {
        std::vector<int32_t> v(n);
        EXPECT_EQ(
            xm_queue_read(queue, c->table[XM_EXPERT_SLOT_IDS], 0, v.data(), 4 * n, &err),
            XM_OK)
            << err.text;
        return {v.begin(), v.end()};
    }
    /* Fails unless every used slot holds the parts of the model's expert. */
    void expect_bytes(const xm_expert_cache *c, const lru_model &m)
    {
        for (uint32_t i = 0; i < c->n_parts; i++) {
            const xm_expert_part &p = c->part[i];
            std::vector<uint8_t> from = read(p.from, c->experts * p.bytes);
            std::vector<uint8_t> to = read(*p.to, c->slots * p.bytes);
            for (auto &entry : m.slot_of) {
                ASSERT_EQ(memcmp(from.data() + (uint64_t)entry.first * p.bytes,
                                 to.data() + entry.second * p.bytes, p.bytes),
                          0)
                    << "part " << i << ", expert " << entry.first;
            }
        }
    }
    std::vector<int64_t> some_ids(size_t n, uint64_t experts)
    {
        std::vector<int64_t> ids;
        /* draws the first experts more often than the last */
        for (size_t i = 0; i < n; i++)
            ids.push_back((int64_t)(gen() % experts * (gen() % experts) / experts));
        return ids;
    }
    void expect_like_model(xm_expert_cache *c, size_t calls, size_t most)
    {
        lru_model m(c->slots);
        for (size_t i = 0; i < calls; i++) {
            size_t n = 1 + gen() % most;
            std::vector<int64_t> ids = some_ids(n, c->experts);
            tensor on_device(XM_I32, {(int64_t)n}, ids);
            ASSERT_TRUE(xm_expert_cache_holds(c, n));
            ASSERT_XM_OK(xm_expert_cache_fill(c, on_device.buffer(), n, queue, &err));
            ASSERT_EQ(slots_of(c, n), m.look_up(ids)) << "call " << i;
            expect_bytes(c, m);
        }
        xm_expert_counts counts;
        ASSERT_XM_OK(xm_expert_cache_read_counts(c, queue, &counts, &err));
        EXPECT_EQ(counts.hits, m.hits);
        EXPECT_EQ(counts.misses, m.misses);
        EXPECT_EQ(counts.fetched_bytes, m.misses * xm_expert_cache_slot_bytes(c));
        EXPECT_GT(m.hits, 0u);
    }

    std::mt19937 gen{7};
};

/* Returns the bytes of this number of slots and their tables. */
uint64_t
bytes_for(const xm_expert_rows &rows, uint64_t slots, xm_queue *queue)
{
    xm_error err = {};
    cache_ptr all, c;
    xm_engine *engine = ::device::get().engine;
    EXPECT_EQ(xm_expert_cache_create(engine, &rows, 1, 64, 1 << 20, queue, &all.p, &err),
              XM_OK)
        << err.text;
    if (!all.p)
        return 0;
    uint64_t bytes = slots * xm_expert_cache_slot_bytes(all.p);
    while (!c.p || c.p->slots < slots) {
        xm_expert_cache_destroy(c.p);
        bytes += 64;
        EXPECT_EQ(xm_expert_cache_create(engine, &rows, 1, 64, bytes, queue, &c.p, &err),
                  XM_OK);
    }
    return bytes;
}

TEST_F(ExpertCache, EveryRowIsTheModel)
{
    const uint64_t experts = 80;
    for (const xm_variant_table *table :
         {&xm_moe_cache_lookup_table, &xm_moe_cache_fetch_table}) {
        for (size_t v = 0; v < table->n; v++) {
            SCOPED_TRACE(table->rows[v].name);
            aligned_weight gate(experts, 32, 64, u4g32, 1), up(experts, 32, 64, u4g32, 2);
            aligned_weight down(experts, 64, 32, i8row, 3);
            const xm_expert_rows rows = {&gate.device, &up.device, &down.device, nullptr,
                                         nullptr,      nullptr,    nullptr};
            force(table->step, table->rows[v].name);
            const uint64_t all = bytes_for(rows, experts, queue);
            for (uint64_t room : {all / 8, all * 7 / 8, all}) {
                cache_ptr c;
                ASSERT_XM_OK(xm_expert_cache_create(engine, &rows, 1, 64, room, queue,
                                                    &c.p, &err));
                ASSERT_TRUE(c.p);
                EXPECT_EQ(c.p->slots == experts, room == all);
                expect_like_model(c.p, 12, std::min<size_t>(c.p->slots, 20));
            }
        }
    }
}

/* Weights at odd addresses, as on devices that read the mapped file; gate and up interleaved,
 * with biases and a factor. */
TEST_F(ExpertCache, BiasesComeAlongAndNothingNeedsToBeAligned)
{
    const uint64_t experts = 9;
    test_weight gate(experts, 6, 64, u4g32, 1),
        down(experts, 64, 3, {XM_F16, 0, false}, 2);
    tensor bias_gate(XM_F32, {(int64_t)experts, 6}, random_floats(experts * 6, 3));
    tensor bias_down(XM_F32, {(int64_t)experts, 64}, random_floats(experts * 64, 4));
    tensor factor(XM_F32, {(int64_t)experts, 3}, random_floats(experts * 3, 5));
    const xm_expert_rows rows = {gate.device,        nullptr, down.device,
                                 bias_gate.buffer(), nullptr, bias_down.buffer(),
                                 factor.buffer()};
    for (const char *row : {"moe_cache_fetch_ref", "moe_cache_fetch_vec"}) {
        cache_ptr c;
        force("moe_cache_fetch", row);
        xm_status s =
            xm_expert_cache_create(engine, &rows, 2, 8, 8192, queue, &c.p, &err);
        if (s == XM_UNSUPPORTED)
            continue; /* the device cannot run this variant */
        ASSERT_XM_OK(s);
        ASSERT_TRUE(c.p);
        /* gate has three, down one, then biases and the factor */
        EXPECT_EQ(c.p->n_parts, 7u);
        EXPECT_TRUE(c.p->rows.factor);
        EXPECT_LT(c.p->slots, experts);
        EXPECT_FALSE(c.p->rows.up);
        expect_like_model(c.p, 30, 2);
    }
    force("moe_cache_fetch", "moe_cache_fetch_gen");
    cache_ptr c;
    EXPECT_EQ(xm_expert_cache_create(engine, &rows, 2, 8, 8192, queue, &c.p, &err),
              XM_UNSUPPORTED);
}

TEST_F(ExpertCache, HoldsWhatHasRoom)
{
    test_weight gate(8, 4, 32, u4g32, 1), up(8, 4, 32, u4g32, 2),
        down(8, 32, 4, i8row, 3);
    const xm_expert_rows rows = {gate.device, up.device, down.device, nullptr,
                                 nullptr,     nullptr,   nullptr};
    const uint64_t bytes = bytes_for(rows, 4, queue);
    cache_ptr small, all, none;
    ASSERT_XM_OK(
        xm_expert_cache_create(engine, &rows, 4, 32, bytes, queue, &small.p, &err));
    ASSERT_TRUE(small.p);
    EXPECT_EQ(small.p->slots, 4u);
    EXPECT_LE(xm_buffer_bytes(small.p->memory), bytes);
    EXPECT_TRUE(xm_expert_cache_holds(small.p, 4));
    EXPECT_FALSE(xm_expert_cache_holds(small.p, 5));
    ASSERT_XM_OK(
        xm_expert_cache_create(engine, &rows, 4, 32, 1 << 20, queue, &all.p, &err));
    ASSERT_TRUE(all.p);
    EXPECT_EQ(all.p->slots, 8u);
    EXPECT_TRUE(xm_expert_cache_holds(all.p, 32)); /* at most 8 of them differ */
    EXPECT_FALSE(xm_expert_cache_holds(all.p, 33));
    ASSERT_XM_OK(
        xm_expert_cache_create(engine, &rows, 5, 32, bytes, queue, &none.p, &err));
    EXPECT_FALSE(none.p) << "fewer slots than a token needs";
}

/* After a failure the contents of the slots are not trusted. */
TEST_F(ExpertCache, IsFilledAnewAfterClearing)
{
    test_weight gate(8, 4, 32, u4g32, 1), up(8, 4, 32, u4g32, 2),
        down(8, 32, 4, i8row, 3);
    const xm_expert_rows rows = {gate.device, up.device, down.device, nullptr,
                                 nullptr,     nullptr,   nullptr};
    cache_ptr c;
    ASSERT_XM_OK(
        xm_expert_cache_create(engine, &rows, 2, 32, 1 << 20, queue, &c.p, &err));
    tensor ids(XM_I32, {3}, std::vector<int64_t>{5, 2, 5});
    xm_expert_counts counts;
    for (uint64_t round = 1; round <= 2; round++) {
        ASSERT_XM_OK(xm_expert_cache_clear(c.p, queue, &err));
        ASSERT_XM_OK(xm_expert_cache_fill(c.p, ids.buffer(), 3, queue, &err));
        EXPECT_EQ(slots_of(c.p, 3), (std::vector<int64_t>{0, 1, 0}));
        ASSERT_XM_OK(xm_expert_cache_read_counts(c.p, queue, &counts, &err));
        EXPECT_EQ(counts.misses, 2 * round);
        EXPECT_EQ(counts.hits, round);
    }
}

/* With u4 in rows of odd length an expert would begin within a byte. */
TEST_F(ExpertCache, AnExpertIsWholeBytes)
{
    const weight_format u4 = {XM_U4, UINT64_MAX, false};
    test_weight gate(2, 3, 5, u4, 1), up(2, 3, 5, u4, 2), down(2, 5, 3, u4, 3);
    const xm_expert_rows rows = {gate.device, up.device, down.device, nullptr,
                                 nullptr,     nullptr,   nullptr};
    cache_ptr c;
    ASSERT_XM_OK(xm_expert_cache_create(engine, &rows, 1, 8, 1 << 20, queue, &c.p, &err));
    EXPECT_FALSE(c.p);
}

/* The cache copies the bytes of blocks; the slots are weights of the same block format. */
TEST_F(ExpertCache, HoldsBlocks)
{
    const uint64_t experts = 12;
    for (size_t i = 0; i < BLOCK_FORMATS; i++) {
        const weight_format f = blocks_number(i);
        SCOPED_TRACE(text_of(f));
        test_weight gate(experts, 5, 256, f, 1), up(experts, 5, 256, u4g32, 2),
            down(experts, 3, 512, blocks_number(i + 1), 3);
        const xm_expert_rows rows = {gate.device, up.device, down.device, nullptr,
                                     nullptr,     nullptr,   nullptr};
        cache_ptr c;
        ASSERT_XM_OK(
            xm_expert_cache_create(engine, &rows, 2, 64, 1 << 14, queue, &c.p, &err));
        ASSERT_TRUE(c.p);
        const xm_weight_format_info *info = xm_weight_info(&gate.host);
        EXPECT_EQ(c.p->part[0].bytes, 5 * 256 / info->block_cols * info->block_bytes);
        EXPECT_EQ(c.p->n_parts, 5u);
        EXPECT_LT(c.p->slots, experts);
        EXPECT_TRUE(xm_weight_same_format(&c.p->rows.gate->host, &gate.host));
        EXPECT_EQ(xm_weight_row_cols(&c.p->rows.down->host), 512u);
        expect_like_model(c.p, 12, 2);
    }
}

/* Factors are copied with their expert; a codebook is shared by all experts. */
TEST_F(ExpertCache, HoldsFactorsAndCodebooks)
{
    const uint64_t experts = 12;
    const weight_format nvfp4 = with_factors({XM_F4E2M1, 16, false, XM_F8E4M3}),
                        blocks = with_factors(blocks_of(XM_WEIGHT_Q8_0)),
                        codebook = codebook_of({XM_U4, 32, false});
    test_weight gate(experts, 5, 256, nvfp4, 1), up(experts, 5, 256, blocks, 2),
        down(experts, 3, 512, codebook, 3);
    const xm_expert_rows rows = {gate.device, up.device, down.device,
                                 nullptr,     nullptr,   nullptr};
    cache_ptr c;
    ASSERT_XM_OK(
        xm_expert_cache_create(engine, &rows, 2, 64, 1 << 14, queue, &c.p, &err));
    ASSERT_TRUE(c.p);
    EXPECT_EQ(c.p->n_parts,
              7u); /* data, scales and factors; data and factors; data, scales */
    EXPECT_EQ(c.p->part[2].bytes, sizeof(float));
    EXPECT_LT(c.p->slots, experts);
    EXPECT_EQ(c.p->rows.down->zero_point, down.device->zero_point);
    expect_like_model(c.p, 12, 2);
}

/* A view is refused, because an expert's bytes are not contiguous. */
TEST_F(ExpertCache, RefusesPartsOfWeights)
{
    test_weight whole(6, 8, 64, u4g32, 1), part(6, 8, 64, view_of(u4g32), 1),
        down(6, 64, 8, i8row, 2), down_part(6, 64, 8, view_of(i8row), 2);
    xm_expert_rows rows = {whole.device, whole.device, down.device, nullptr,
                           nullptr,      nullptr,      nullptr};
    for (xm_device_weight **at : {&rows.gate, &rows.up, &rows.down}) {
        cache_ptr c;
        xm_device_weight *const before = *at;
        *at = at == &rows.down ? down_part.device : part.device;
        ASSERT_XM_OK(
            xm_expert_cache_create(engine, &rows, 1, 8, 1 << 20, queue, &c.p, &err));
        EXPECT_FALSE(c.p);
        *at = before;
    }
}

} // namespace
