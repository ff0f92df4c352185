/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches whose rows begin with padding: each row has the logits of its text alone; padding costs
 * neither work nor pages, and its results are zeros.
 */
#include <random>

#include "plugin/gpu/request_run.h"
#include "plugin/readers/openvino_ir.h"
#include "runtime/util/memory.h"
#include "unit_tests/plugin/language_model.h"
#include "unit_tests/sample.h"

namespace
{

enum { VOCABULARY = 64, PAGE = 4, UBATCH = 16 };

const Properties in_f32 = {{"INFERENCE_PRECISION_HINT", "f32"},
                           {"KV_CACHE_PRECISION", "f32"},
                           {"XM_KV_BLOCK_TOKENS", "4"},
                           {"XM_UBATCH", "16"}};

struct row {
    std::vector<int64_t> ids;
    int64_t padding = 0;
};

class Padding : public OpenClTest
{
  protected:
    void SetUp() override
    {
        OpenClTest::SetUp();
        if (!IsSkipped())
            open(parse(two_layers()), parse(two_layers()));
    }
    void open(Graph g, Graph same)
    {
        alone.reset();
        r.reset();
        program = std::make_unique<Program>(must_compile(engine, std::move(g), in_f32));
        whole =
            std::make_unique<Program>(must_compile(engine, std::move(same),
                                                   {{"INFERENCE_PRECISION_HINT", "f32"},
                                                    {"KV_CACHE_PRECISION", "f32"},
                                                    {"XM_UBATCH", "512"}}));
        ASSERT_TRUE(*program && *whole);
        r = std::make_unique<Request>(make_request(program->get()));
        alone = std::make_unique<Request>(make_request(whole->get()));
        vocabulary = whole->get()->ports.outputs[0].type.shape.dim[2].n;
    }
    void TearDown() override
    {
        r.reset();
        alone.reset();
        if (program && *program) {
            EXPECT_EQ(used(), 0u);
        }
        program.reset();
        whole.reset();
        OpenClTest::TearDown();
    }
    uint64_t used()
    {
        uint64_t n = 0;
        for (uint32_t g = 0; g < xm_kv_pool_groups(pool()); g++) {
            xm_kv_group_stats s;
            xm_kv_pool_stats(pool(), g, &s);
            n += s.used;
        }
        return n;
    }
    xm_kv_pool *pool()
    {
        return program->get()->kv_pool;
    }
    /* Returns rows of `tokens` ids: padding, then fresh[b] random ids. */
    std::vector<std::vector<int64_t>> next_ids(const std::vector<int64_t> &fresh,
                                               int64_t tokens)
    {
        std::vector<std::vector<int64_t>> ids;
        for (int64_t n : fresh) {
            ids.push_back(std::vector<int64_t>((size_t)(tokens - n), 3));
            const auto own = some_ids(n, (uint32_t)random(), vocabulary);
            ids.back().insert(ids.back().end(), own.begin(), own.end());
        }
        return ids;
    }
    std::vector<int64_t> paddings() const
    {
        std::vector<int64_t> list;
        for (const row &b : rows)
            list.push_back(b.padding);
        return list;
    }
    /* Appends a run's ids to the rows' texts; the last fresh[b] of them belong to the text, the
     * others are padding. */
    void extend(const std::vector<std::vector<int64_t>> &ids,
                const std::vector<int64_t> &fresh)
    {
        for (size_t b = 0; b < rows.size(); b++) {
            rows[b].padding += (int64_t)ids[b].size() - fresh[b];
            rows[b].ids.insert(rows[b].ids.end(), ids[b].end() - fresh[b], ids[b].end());
        }
    }
    void check_row(const Tensor &got, size_t b, int64_t fresh)
    {
        const int64_t tokens = got->dim[1], v = got->dim[2];
        const float *first = got->f + (int64_t)b * tokens * v;
        for (int64_t i = 0; i < (tokens - fresh) * v; i++)
            ASSERT_EQ(first[i], 0.0f) << "padding of row " << b;
        if (fresh == 0)
            return;
        xm_request_reset(alone->get());
        const Tensor want = logits(alone->get(), {{rows[b].ids}});
        const int64_t before = (int64_t)rows[b].ids.size() - fresh;
        for (int64_t i = 0; i < fresh; i++)
            expect_row(got, (int64_t)b, tokens - fresh + i, want, 0, before + i, 1e-5f);
    }
    /* Runs rows of padding and fresh[b] tokens, and checks their logits. */
    void must_run(const std::vector<int64_t> &fresh, int64_t tokens,
                  const std::vector<int64_t> &beams = {})
    {
        const auto ids = next_ids(fresh, tokens);
        const uint64_t past = xm_request_past(r->get());
        extend(ids, fresh);
        const Tensor got = logits(r->get(), {ids, 0, paddings(), beams});
        ASSERT_TRUE(got);
        ASSERT_EQ(got->dim[0], (int64_t)rows.size());
        ASSERT_EQ(got->dim[1], tokens);
        EXPECT_EQ(xm_request_past(r->get()), past + (uint64_t)tokens);
        for (size_t b = 0; b < rows.size(); b++)
            check_row(got, b, fresh[b]);
    }
    void reorder(const std::vector<int64_t> &beams)
    {
        std::vector<row> list;
        for (int64_t b : beams)
            list.push_back(rows[(size_t)b]);
        rows = list;
    }
    void forget()
    {
        xm_request_reset(r->get());
        rows.clear();
    }

    std::unique_ptr<Program> program, whole;
    std::unique_ptr<Request> r, alone;
    std::vector<row> rows;
    int64_t vocabulary = VOCABULARY;
    std::mt19937 random{5};
};

TEST_F(Padding, RowsAreThoseOfTheirTextsAlone)
{
    ASSERT_TRUE((*r)->can_pack);
    rows.resize(3);
    must_run({5, 9, 1}, 9);
    must_run({1, 1, 1}, 1);
    must_run({7, 7, 7}, 7);
    must_run({30, 30, 30}, 30);
}

/* In chunks, whose boundaries lie anywhere in the rows. */
TEST_F(Padding, LongRowsGoInSteps)
{
    rows.resize(4);
    must_run({40, 3, 1, 23}, 40);
    must_run({1, 1, 1, 1}, 1);
    forget();
    rows.resize(1);
    must_run({50}, 61);
    must_run({1}, 1);
}

/* A row may be only padding at first, and begin in a later run. */
TEST_F(Padding, RowsMayBeginLater)
{
    rows.resize(3);
    must_run({2, 0, 5}, 5);
    must_run({4, 3, 4}, 4);
    must_run({1, 1, 1}, 1);
    forget();
    rows.resize(2);
    must_run({0, 0}, 6);
    EXPECT_EQ(used(), 0u);
    must_run({0, 1}, 1);
    must_run({1, 1}, 1);
}

TEST_F(Padding, CostsNeitherWorkNorPages)
{
    struct xm_request_stats before, after;
    rows.resize(2);
    must_run({3, 12}, 12);
    EXPECT_EQ(used(), 2u * (1 + 3)) << "pages of 4 positions in two groups";
    forget();
    EXPECT_EQ(used(), 0u);
    rows.resize(1);
    xm_request_stats(r->get(), &before);
    must_run({15}, 15);
    xm_request_stats(r->get(), &after);
    const uint64_t of_15 = after.multiply_adds - before.multiply_adds;
    forget();
    rows.resize(2);
    must_run({3, 12}, 12);
    xm_request_stats(r->get(), &before);
    EXPECT_EQ(before.multiply_adds - after.multiply_adds, of_15);
}

/* Decoding does not read the mask, and waits once. */
TEST_F(Padding, DecodingRunsAsWithoutPadding)
{
    struct xm_request_stats stats;
    rows.resize(2);
    must_run({6, 6}, 6);
    must_run({1, 1}, 1);
    xm_request_stats(r->get(), &stats);
    const uint64_t kernels = stats.kernels;
    forget();
    rows.resize(2);
    must_run({6, 2}, 6);
    for (int i = 0; i < 3; i++) {
        must_run({1, 1}, 1);
        EXPECT_TRUE((*r)->mask_is_full);
        xm_request_stats(r->get(), &stats);
        EXPECT_EQ(stats.kernels, kernels);
        EXPECT_EQ(stats.waits, 1u);
    }
}

struct told {
    uint64_t done, all;
};

/* The progress counts tokens without padding. */
TEST_F(Padding, TokensAreToldAsTheyAreDone)
{
    std::vector<told> list;
    xm_request_watch(
        r->get(),
        [](void *ctx, uint64_t done, uint64_t all) {
            static_cast<std::vector<told> *>(ctx)->push_back({done, all});
        },
        &list);
    rows.resize(2);
    must_run({40, 23}, 50);
    ASSERT_GE(list.size(), 63u / UBATCH);
    for (size_t i = 0; i < list.size(); i++) {
        EXPECT_EQ(list[i].all, 63u);
        EXPECT_LT(list[i].done, 63u);
        EXPECT_GE(list[i].done, i ? list[i - 1].done : 0);
    }
    EXPECT_GE(list.back().done, 48u);
}

TEST_F(Padding, BeamsTakeTheirPaddingWithThem)
{
    rows.resize(3);
    must_run({2, 8, 5}, 8);
    reorder({2, 0, 0, 1});
    must_run({1, 1, 1, 1}, 1, {2, 0, 0, 1});
    reorder({3, 1});
    must_run({3, 3}, 3, {3, 1});
}

TEST_F(Padding, TruncatedRowsGoOn)
{
    for (uint64_t past : {17u, 12u, 9u, 5u, 2u, 0u}) {
        SCOPED_TRACE(past);
        forget();
        rows.resize(3);
        must_run({4, 13, 10}, 13);
        must_run({5, 5, 5}, 5);
        xm_request_truncate(r->get(), past);
        const int64_t kept = (int64_t)xm_request_past(r->get());
        EXPECT_TRUE(kept == 0 || kept == (int64_t)past);
        std::vector<int64_t> fresh;
        for (row &b : rows) {
            b.padding = std::min(b.padding, kept);
            b.ids.resize((size_t)(kept - b.padding));
            fresh.push_back(2);
        }
        must_run(fresh, 2);
    }
}

/* Masks with holes, padding on the right, or later changes on the left are read by attention;
 * padding before them is still left out. */
TEST_F(Padding, OtherMasksAreRead)
{
    Graph g = parse(two_layers());
    for (const std::vector<int64_t> &hidden :
         {std::vector<int64_t>{5, 15}, {13}, {4}, {7, 8}}) { /* hidden in both rows */
        forget();
        std::unique_ptr<xm_state_store, decltype(&xm_state_store_destroy)> states(
            xm_state_store_create(), xm_state_store_destroy);
        int64_t keys = 0;
        for (int64_t tokens : {7, 3, 20, 1}) {
            keys += tokens;
            auto in = inputs_of(program->get(),
                                {{some_ids(tokens, 1, 64), some_ids(tokens, 2, 64)},
                                 xm_request_past(r->get()),
                                 {4, 0}});
            for (int64_t i : hidden) {
                if (keys > 7)
                    in[1]->i[i < 7 ? i : keys + i - 7] = 0;
            }
            const auto want = reference(g.get(), in, states.get()),
                       got = must_infer(r->get(), in);
            ASSERT_EQ(got.size(), 1u);
            for (int64_t t = 0; t < tokens; t++) {
                if (keys - tokens + t >= 4)
                    expect_row(got[0], 0, t, want[0], 0, t, 1e-5f);
                expect_row(got[0], 1, t, want[0], 1, t, 1e-5f);
            }
        }
    }
}

/* If the mask of the first run is not left padding, all positions are stored. */
TEST_F(Padding, AFirstRunWithHolesIsDense)
{
    Graph g = parse(two_layers());
    std::unique_ptr<xm_state_store, decltype(&xm_state_store_destroy)> states(
        xm_state_store_create(), xm_state_store_destroy);
    int64_t keys = 0;
    for (int64_t tokens : {9, 4, 1}) {
        keys += tokens;
        auto in =
            inputs_of(program->get(), {{some_ids(tokens, 1, 64), some_ids(tokens, 2, 64)},
                                       xm_request_past(r->get()),
                                       {3, 0}});
        in[1]->i[keys + 5] = 0;
        const auto want = reference(g.get(), in, states.get()),
                   got = must_infer(r->get(), in);
        EXPECT_FALSE((*r)->mask_is_full);
        for (int64_t t = 0; t < tokens; t++) {
            if (keys - tokens + t >= 3)
                expect_row(got[0], 0, t, want[0], 0, t, 1e-5f);
            expect_row(got[0], 1, t, want[0], 1, t, 1e-5f);
        }
    }
}

TEST_F(Padding, RefusesMasksThatShowIt)
{
    rows.resize(2);
    must_run({2, 8}, 8);
    std::vector<Tensor> out;
    auto in = inputs_of(program->get(), {{{1}, {2}}, 8, {5, 0}});
    EXPECT_EQ(infer(r->get(), in, out, &err), XM_INVALID);
    EXPECT_STREQ(err.text, "input 'attention_mask' unmasks position 5 of row 0, which "
                           "was padding when it ran and is not in the states");
    in = inputs_of(program->get(), {{{1}, {2}}, 8, {6, 0}, {1, 0}});
    err = {};
    EXPECT_EQ(infer(r->get(), in, out, &err), XM_INVALID);
    must_run({1, 1}, 1);
}

xm_status
stop_at_step_3(xm_request *r, uint32_t step, const xm_operand *, void *ctx, xm_error *)
{
    if (step == 3 && --*static_cast<int *>(ctx) == 0)
        xm_request_cancel(r);
    return XM_OK;
}

TEST_F(Padding, CancelledRunsLeaveTheRowsAsTheyWere)
{
    for (const auto &[chunks, tokens] :
         {std::pair<int, int64_t>{1, 6}, {1, 20}, {2, 20}}) {
        SCOPED_TRACE(tokens);
        forget();
        rows.resize(2);
        must_run({0, 3}, 3);
        const uint64_t before = used();
        int left = chunks;
        std::vector<Tensor> out;
        xm_request_set_hook(r->get(), stop_at_step_3, &left);
        auto in =
            inputs_of(program->get(),
                      {{some_ids(tokens, 1, 64), some_ids(tokens, 2, 64)}, 3, {5, 0}});
        err = {};
        EXPECT_EQ(infer(r->get(), in, out, &err), XM_CANCELLED);
        EXPECT_EQ(xm_request_past(r->get()), 3u);
        EXPECT_EQ(used(), before);
        xm_request_set_hook(r->get(), nullptr, nullptr);
        xm_request_resume(r->get());
        must_run({4, 9}, 9);
        must_run({1, 1}, 1);
    }
}

/* Each allocation fails once: the rows stay as they were, and the same run then succeeds. */
TEST_F(Padding, EveryFailureLeavesTheRowsAsTheyWere)
{
    rows.resize(2);
    must_run({0, 3}, 3);
    const uint64_t before = used();
    for (int64_t tokens : {6, 20}) {
        const auto in =
            inputs_of(program->get(),
                      {{some_ids(tokens, 1, 64), some_ids(tokens, 2, 64)}, 3, {5, 0}});
        bool failed = true;
        for (uint64_t n = 1; failed && !HasFatalFailure(); n++) {
            xm_error why = {};
            std::vector<Tensor> out;
            xm_fail_allocation(n);
            const xm_status s = infer(r->get(), in, out, &why);
            failed = xm_fail_allocation_seen();
            xm_fail_allocation(0);
            /* the run succeeded and the test's copy failed */
            if (xm_request_past(r->get()) != 3)
                xm_request_truncate(r->get(), 3);
            ASSERT_EQ(xm_request_past(r->get()), 3u) << n;
            if (s == XM_OK)
                continue;
            EXPECT_STRNE(why.text, "");
            EXPECT_EQ(used(), before) << n;
        }
    }
    must_run({4, 9}, 9);
}

/* Rows are added, truncated, reordered and forgotten, with padding of any length. */
TEST_F(Padding, FollowsRowsThroughRandomRuns)
{
    const char *all = getenv("XM_TEST_ALL");
    auto upto = [&](int64_t n) { return (int64_t)(random() % (uint32_t)n); };
    for (int i = 0; i < (all ? 400 : 40) && !HasFatalFailure(); i++) {
        SCOPED_TRACE(i);
        forget();
        rows.resize((size_t)(1 + upto(6)));
        for (int run = 0; run < 5 && !HasFatalFailure(); run++) {
            const int64_t tokens = upto(3) ? 1 + upto(24) : 1;
            std::vector<int64_t> beams, fresh;
            if (run && upto(3) == 0) {
                for (int64_t b = 1 + upto(6); b > 0; b--)
                    beams.push_back(upto((int64_t)rows.size()));
                reorder(beams);
            }
            for (const row &b : rows)
                fresh.push_back(b.ids.empty() ? upto(tokens + 1) : tokens);
            must_run(fresh, tokens, beams);
            if (upto(4) == 0) {
                xm_request_truncate(
                    r->get(), (uint64_t)upto((int64_t)xm_request_past(r->get()) + 1));
                const int64_t past = (int64_t)xm_request_past(r->get());
                for (row &b : rows) {
                    b.padding = std::min(b.padding, past);
                    b.ids.resize((size_t)(past - b.padding));
                }
            }
        }
    }
}

/* Padding is computed like other tokens if a result depends on the number of rows or has no rows,
 * or if a layer has no mask. */
TEST_F(Padding, IsComputedWhereRowsCannotBeMixed)
{
    const std::string models[] = {two_layers("_"), two_layers("%1", R"(
        %30 = parameter f32[batch,1,32] name="prefix"
        %31 = add %25, %30
        result %31 name="sums")"),
                                  two_layers("%1", R"(
        %30 = const i64[1] {9}
        result %30 name="nine")"),
                                  two_layers("%1", R"(
        %30 = convert %1 to=f32
        %31 = const i64[1] {1}
        %32 = reduce_sum %30, %31
        result %32 name="seen")")};
    for (const std::string &text : models) {
        Program p = must_compile(engine, parse(text), in_f32);
        ASSERT_TRUE(p);
        EXPECT_FALSE(make_request(p.get())->can_pack) << text;
    }
    Program p = must_compile(engine, parse(models[3]), in_f32);
    Request dense = make_request(p.get());
    Graph g = parse(models[3]);
    const auto in =
        inputs_of(p.get(), {{some_ids(9, 1, 64), some_ids(9, 2, 64)}, 0, {0, 4}});
    const auto want = reference(g.get(), in), got = must_infer(dense.get(), in);
    for (int64_t t = 0; t < 9; t++) {
        expect_row(got[0], 0, t, want[0], 0, t, 1e-5f);
        if (t >= 4)
            expect_row(got[0], 1, t, want[0], 1, t, 1e-5f);
    }
    expect_rows(got[1].get(), want[1].get(), 1e-5f, "seen");
}

/* Exported models: with position ids, experts and windows. */
TEST_F(Padding, ModelsFromFilesToo)
{
    const std::vector<std::string> models = {"qwen3moe-tiny/ov/int4_asym_g64",
                                             "gpt-oss-tiny/ov/int4_sym_g64",
                                             "gemma4-moe-tiny/ov/int4_asym_g32"};
    for (const std::string &model : sample::of(models, 1)) {
        SCOPED_TRACE(model);
        const std::string xml = XM_MODELS_DIR "/" + model + "/openvino_model.xml";
        Graph g[2] = {Graph(nullptr, xm_graph_destroy), Graph(nullptr, xm_graph_destroy)};
        for (Graph &one : g) {
            xm_graph *raw = nullptr;
            ASSERT_XM_OK(xm_openvino_ir_read(xml.c_str(), nullptr, &raw, &err));
            one.reset(raw);
        }
        open(std::move(g[0]), std::move(g[1]));
        EXPECT_TRUE((*r)->can_pack);
        rows.clear();
        rows.resize(3);
        must_run({20, 7, 1}, 20);
        must_run({1, 1, 1}, 1);
        must_run({3, 3, 3}, 3);
    }
}

} // namespace
