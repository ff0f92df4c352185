/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests: changing shapes, prompts in chunks, states, failures in the middle of a run. The
 * model is a small language model as text; whole models are in test_models.cpp.
 */
#include "unit_tests/plugin/language_model.h"

namespace
{

const Properties in_f32 = {{"INFERENCE_PRECISION_HINT", "f32"},
                           {"KV_CACHE_PRECISION", "f32"}};

Properties
with_ubatch(const char *n)
{
    Properties p = in_f32;
    p.push_back({"XM_UBATCH", n});
    return p;
}

class RequestTest : public OpenClTest
{
  protected:
    Program model(const char *ubatch = "512", const std::string &more = "")
    {
        return must_compile(engine, parse(small_model(more)), with_ubatch(ubatch));
    }
};

TEST_F(RequestTest, ShapesMayChangeFromRunToRun)
{
    const char *text = R"(
        %0 = parameter f32[N,M] name="x"
        %1 = const i64[2] {1, 0}
        %2 = transpose %0, %1
        %3 = matmul %0, %2
        %4 = softmax %3 axis=-1
        result %4 name="y")";
    Program p = must_compile(engine, parse(text), in_f32);
    Request r = make_request(p.get());
    Graph g = parse(text);
    const int64_t sizes[][2] = {{2, 3}, {3, 2}, {7, 1}, {1, 7}, {2, 3},  {16, 16},
                                {5, 5}, {0, 4}, {4, 0}, {2, 3}, {33, 9}, {3, 2}};
    for (auto &s : sizes) {
        std::vector<Tensor> in = {random_tensor(XM_F32, {s[0], s[1]}, (uint32_t)s[0])};
        auto want = reference(g.get(), in);
        auto got = must_infer(r.get(), in);
        ASSERT_EQ(got.size(), 1u);
        expect_rows(got[0].get(), want[0].get(), 1e-5f, std::to_string(s[0]));
    }
}

TEST_F(RequestTest, SaysWhatIsWrongWithItsInputs)
{
    Program p = must_compile(engine, parse(R"(
        %0 = parameter f32[N,4] name="x"
        %1 = parameter boolean[N,1] name="m"
        %2 = const f32[] {0}
        %3 = select %1, %0, %2
        result %3 name="y")"),
                             in_f32);
    Request r = make_request(p.get());
    float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint8_t mask[2] = {1, 0};
    xm_host_tensor x = {XM_F32, 2, {2, 4}, data, sizeof(data)};
    xm_host_tensor m = {XM_U8, 2, {2, 1}, mask, sizeof(mask)};
    auto fails = [&](uint32_t input, xm_host_tensor t, const char *with) {
        xm_error why = {};
        EXPECT_NE(xm_request_set_input(r.get(), input, &t, &why), XM_OK);
        EXPECT_STREQ(why.text, with);
    };
    EXPECT_EQ(xm_request_infer(r.get(), &err), XM_INVALID);
    EXPECT_STREQ(err.text, "input 'x' has not been set");
    fails(7, x, "there is no input 7");
    x.bytes = 31;
    fails(0, x, "input 'x': its shape needs 32 bytes, found 31");
    x.bytes = 32;
    x.element = XM_I32;
    fails(0, x, "input 'x': expected f32, found i32");
    x.element = XM_F32;
    x.dim[1] = -4;
    fails(0, x, "input 'x': dimension 1 is -4, expected 0 or more");
    x.dim[1] = 4;
    x.data = nullptr;
    fails(0, x, "input 'x' has no data");
    x.data = data;
    x.rank = 9;
    fails(0, x, "input 'x': expected rank 2, found 9");
    x.rank = 2;
    xm_host_tensor out;
    err = {};
    EXPECT_EQ(xm_request_output(r.get(), 0, &out, &err), XM_INVALID);
    EXPECT_STREQ(err.text, "output 'y' has no value before a run that succeeds");
    err = {};
    ASSERT_XM_OK(xm_request_set_input(r.get(), 0, &x, &err));
    ASSERT_XM_OK(xm_request_set_input(r.get(), 1, &m, &err));
    ASSERT_XM_OK(xm_request_infer(r.get(), &err));
    ASSERT_XM_OK(xm_request_output(r.get(), 0, &out, &err));
    const float want[8] = {1, 2, 3, 4};
    EXPECT_EQ(memcmp(out.data, want, sizeof(want)), 0);
    EXPECT_EQ(xm_request_output(r.get(), 1, &out, &err), XM_NOT_FOUND);
    /* an empty tensor may have a NULL pointer */
    xm_host_tensor no_x = {XM_F32, 2, {0, 4}, nullptr, 0},
                   no_m = {XM_BOOL, 2, {0, 1}, nullptr, 0};
    err = {};
    ASSERT_XM_OK(xm_request_set_input(r.get(), 0, &no_x, &err));
    ASSERT_XM_OK(xm_request_set_input(r.get(), 1, &no_m, &err));
    ASSERT_XM_OK(xm_request_infer(r.get(), &err));
    ASSERT_XM_OK(xm_request_output(r.get(), 0, &out, &err));
    EXPECT_EQ(out.bytes, 0u);
}

/* A prompt run whole on the reference equals one run in chunks on the device. */
TEST_F(RequestTest, CutPromptsEqualTheReference)
{
    Graph g = parse(small_model());
    Program one = model("1"), three = model("3"), whole = model();
    EXPECT_TRUE(whole->can_chunk);
    for (int64_t n : {1, 7, 40}) {
        step s = {{some_ids(n, 3, 64), some_ids(n, 4, 64)}};
        Tensor want = reference(g.get(), inputs_of(one.get(), s))[0];
        for (auto *p : {one.get(), three.get(), whole.get()}) {
            Request r = make_request(p);
            expect_logits(logits(r.get(), s), want);
            EXPECT_EQ(xm_request_past(r.get()), (uint64_t)n);
        }
    }
}

/* Returns a layer on states as files have it. `sdpa` are the lines after its operands q, k and v.
 */
std::string
layer_on_states(const std::string &sdpa)
{
    return R"(
        %0 = parameter f32[batch,2,tokens,8] name="x"
        %1 = parameter i64[batch,tokens] name="position_ids"
        %24 = parameter i64[batch,past + tokens] name="attention_mask"
        %2 = shape_value i64[4] {batch, 2, 0, 8}
        %3 = const f32[] {0}
        %4 = broadcast %3, %2 mode=numpy
        %5 = read_value f32[batch,2,past,8] %4 variable="k"
        %6 = read_value f32[batch,2,past,8] %4 variable="v"
        %7 = sin %0
        %8 = concat %5, %0 axis=2
        %9 = concat %6, %7 axis=2
        %10 = assign %8 variable="k"
        %11 = assign %9 variable="v"
        %12 = const i64[] {0}
        %13 = const i64[] {1}
        %14 = shape_value i64[] {past + tokens}
        %15 = range %12, %14, %13 output_type=i64
        %16 = shape_value i64[4] {1, 1, 1, past + tokens}
        %17 = reshape %15, %16
        %18 = shape_value i64[4] {batch, 1, tokens, 1}
        %19 = reshape %1, %18
        %20 = less_equal %17, %19
        %21 = const f32[] {-65504}
        %22 = select %20, %3, %21
        %23 = sdpa %7, %8, %9)" +
           sdpa + "\nresult %23 name=\"y\"\n";
}

/* A mask of position ids becomes an operand of attention. The attribute `causal` aligns to the
 * first key, whatever the past is, which attention on a cache does not do. */
TEST_F(RequestTest, MasksOnStatesMeanWhatTheFileSays)
{
    for (std::string sdpa : {", %22", ", %22 causal=true"}) {
        Graph g = parse(layer_on_states(sdpa));
        Program p = must_compile(engine, parse(layer_on_states(sdpa)), in_f32);
        ASSERT_TRUE(p);
        EXPECT_EQ(p->n_kv > 0, sdpa == ", %22");
        Request r = make_request(p.get());
        std::unique_ptr<xm_state_store, decltype(&xm_state_store_destroy)> states(
            xm_state_store_create(), xm_state_store_destroy);
        int64_t keys = 0;
        for (int64_t tokens : {3, 1, 2}) {
            keys += tokens;
            std::vector<Tensor> in = {random_tensor(XM_F32, {2, 2, tokens, 8}, 5),
                                      random_tensor(XM_I64, {2, tokens}, 6),
                                      random_tensor(XM_I64, {2, keys}, 7)};
            auto want = reference(g.get(), in, states.get()),
                 got = must_infer(r.get(), in);
            ASSERT_EQ(got.size(), 1u);
            expect_rows(got[0].get(), want[0].get(), 1e-4f, sdpa);
        }
    }
}

/* Wanted rows are numbered within the whole run, so that the prompt is not cut. */
TEST_F(RequestTest, ChosenRowsMayBeAnyOfALongPrompt)
{
    xm_compile_options sampled = {};
    sampled.sampled_logits = true;
    Program p = must_compile(engine, parse(small_model()), with_ubatch("4"), &sampled),
            whole = model();
    ASSERT_TRUE(p->can_chunk);
    Request r = make_request(p.get()), all = make_request(whole.get());
    const step s = {{some_ids(11, 3, 64)}};
    auto in = inputs_of(whole.get(), s);
    const std::vector<int64_t> rows = {1, 6, 10};
    in.insert(in.begin(), int_tensor(XM_I64, {3}, rows));
    ASSERT_STREQ(p->ports.inputs[0].name, "sampled_tokens_indices");
    const auto got = must_infer(r.get(), in);
    const Tensor want = logits(all.get(), s);
    ASSERT_EQ(got.size(), 1u);
    ASSERT_EQ(got[0]->dim[1], 3);
    for (int64_t i = 0; i < 3; i++)
        expect_row(got[0], 0, i, want, 0, rows[(size_t)i]);
}

/* The reordering by beam indices applies once to a run, not to each of its chunks. */
TEST_F(RequestTest, CutPromptsAreReorderedOnce)
{
    Program cut = model("2"), whole = model();
    Request a = make_request(cut.get()), b = make_request(whole.get());
    for (auto &s :
         std::vector<step>{{{some_ids(3, 1, 64)}},
                           {{some_ids(5, 2, 64), some_ids(5, 3, 64), some_ids(5, 4, 64)},
                            0,
                            {},
                            {0, 0, 0}},
                           {{some_ids(5, 5, 64), some_ids(5, 6, 64), some_ids(5, 7, 64)},
                            0,
                            {},
                            {1, 2, 0}}})
        expect_logits(logits(a.get(), s), logits(b.get(), s));
}

/* A prompt is not cut if a result depends on all tokens or all positions at once. */
TEST_F(RequestTest, DoesNotCutWhatJoinsTokens)
{
    const char *more[] = {R"(
        %20 = const i64[1] {1}
        %21 = reduce_mean %17, %20
        result %21 name="pooled")",
                          R"(result %1 name="mask")", R"(
        %20 = const i64[3] {1, 0, 2}
        %21 = transpose %17, %20
        %22 = matmul %17, %17 transpose_b=true
        result %22 name="pairs")"};
    for (const char *text : more) {
        Program p = model("2", text);
        EXPECT_FALSE(p->can_chunk) << text;
        Request r = make_request(p.get());
        Graph g = parse(small_model(text));
        step s = {{some_ids(5, 1, 64), some_ids(5, 2, 64)}};
        auto in = inputs_of(p.get(), s);
        auto want = reference(g.get(), in), got = must_infer(r.get(), in);
        ASSERT_EQ(got.size(), 2u);
        expect_rows(got[1].get(), want[1].get(), 1e-5f, text);
    }
}

TEST_F(RequestTest, ResultsWithoutTokensAreOfTheLastChunk)
{
    const char *more = R"(
        %20 = const i64[1] {-1}
        %21 = const i64[1] {9223372036854775807}
        %22 = const i64[1] {1}
        %23 = slice %17, %20, %21, %22, %22
        result %23 name="last"
        result %5 name="embedded"
        result %0 name="ids")";
    Program p = model("2", more);
    EXPECT_TRUE(p->can_chunk);
    Request r = make_request(p.get());
    Graph g = parse(small_model(more));
    step s = {{some_ids(5, 1, 64), some_ids(5, 2, 64)}};
    auto in = inputs_of(p.get(), s);
    auto want = reference(g.get(), in), got = must_infer(r.get(), in);
    ASSERT_EQ(got.size(), 4u);
    for (size_t i = 0; i < 4; i++)
        expect_rows(got[i].get(), want[i].get(), 1e-5f, std::to_string(i));
}

TEST_F(RequestTest, TruncatedAndResetStatesEqualFreshOnes)
{
    Program p = model();
    Request r = make_request(p.get()), fresh = make_request(p.get());
    auto first = some_ids(9, 1, 64), second = some_ids(4, 2, 64);
    logits(r.get(), {{first}});
    xm_request_truncate(r.get(), 5);
    EXPECT_EQ(xm_request_past(r.get()), 5u);
    Tensor got = logits(r.get(), {{second}});
    logits(fresh.get(), {{{first.begin(), first.begin() + 5}}});
    expect_logits(got, logits(fresh.get(), {{second}}));
    xm_request_reset(r.get());
    xm_request_reset(fresh.get());
    EXPECT_EQ(xm_request_past(r.get()), 0u);
    expect_logits(logits(r.get(), {{second}}), logits(fresh.get(), {{second}}));
}

TEST_F(RequestTest, RefusesAMaskOfAnotherLength)
{
    Program p = model();
    Request r = make_request(p.get());
    logits(r.get(), {{some_ids(3, 1, 64)}});
    std::vector<Tensor> out;
    auto in = inputs_of(p.get(), {{some_ids(2, 1, 64)}, 4});
    EXPECT_EQ(infer(r.get(), in, out, &err), XM_INVALID);
    EXPECT_STREQ(err.text,
                 "input 'attention_mask', axis 1: expected 5 (past + tokens), found 6");
    EXPECT_EQ(xm_request_past(r.get()), 3u);
}

TEST_F(RequestTest, RefusesBeamsThatItDoesNotHold)
{
    Program p = model();
    Request r = make_request(p.get());
    logits(r.get(), {{some_ids(3, 1, 64)}});
    std::vector<Tensor> out;
    auto in = inputs_of(p.get(), {{some_ids(1, 1, 64)}, 3, {}, {1}});
    EXPECT_EQ(infer(r.get(), in, out, &err), XM_INVALID);
    EXPECT_NE(strstr(err.text, "row 1"), nullptr) << err.text;
    xm_host_tensor t;
    xm_error none = {};
    EXPECT_EQ(xm_request_output(r.get(), 0, &t, &none), XM_INVALID);
    in = inputs_of(p.get(), {{some_ids(1, 1, 64)}, 3});
    err = {};
    EXPECT_XM_OK(infer(r.get(), in, out, &err));
}

enum xm_status
stop_at_step_3(xm_request *r, uint32_t step, const xm_operand *operands, void *ctx,
               xm_error *err)
{
    (void)operands;
    (void)err;
    if (step == 3 && --*static_cast<int *>(ctx) == 0)
        xm_request_cancel(r);
    return XM_OK;
}

/* A run that is cancelled in its third chunk leaves the request with its earlier positions. */
TEST_F(RequestTest, CancelledRunsLeaveTheStatesAsTheyWere)
{
    Program p = model("4");
    Request r = make_request(p.get()), fresh = make_request(p.get());
    auto first = some_ids(6, 1, 64), second = some_ids(15, 2, 64);
    logits(r.get(), {{first}});
    int chunks = 3;
    std::vector<Tensor> out;
    xm_request_set_hook(r.get(), stop_at_step_3, &chunks);
    auto in = inputs_of(p.get(), {{second}, 6});
    EXPECT_EQ(infer(r.get(), in, out, &err), XM_CANCELLED);
    EXPECT_NE(strstr(err.text, "cancelled before step 4"), nullptr) << err.text;
    EXPECT_EQ(xm_request_past(r.get()), 6u);
    xm_request_set_hook(r.get(), nullptr, nullptr);
    xm_request_resume(r.get());
    logits(fresh.get(), {{first}});
    expect_logits(logits(r.get(), {{second}}), logits(fresh.get(), {{second}}));
}

/* A cancelled first prompt leaves no positions, though some chunks had ended. */
TEST_F(RequestTest, CancelledFirstPromptsLeaveNothing)
{
    Program p = model("4");
    Request r = make_request(p.get()), fresh = make_request(p.get());
    const auto ids = some_ids(15, 2, 64);
    auto in = inputs_of(p.get(), {{ids}});
    for (int chunk : {1, 3}) {
        std::vector<Tensor> out;
        xm_request_set_hook(r.get(), stop_at_step_3, &chunk);
        err = {};
        EXPECT_EQ(infer(r.get(), in, out, &err), XM_CANCELLED);
        EXPECT_EQ(xm_request_past(r.get()), 0u);
        xm_request_set_hook(r.get(), nullptr, nullptr);
        xm_request_resume(r.get());
    }
    expect_logits(logits(r.get(), {{ids}}), logits(fresh.get(), {{ids}}));
}

/* The order of the states' rows is restored after a failed run that had reordered them. */
TEST_F(RequestTest, FailedRunsLeaveTheRowsInTheirOrder)
{
    Program p = model("4");
    auto a = some_ids(6, 1, 64), b = some_ids(6, 2, 64), c = some_ids(9, 3, 64);
    for (const std::vector<int64_t> &beams :
         {std::vector<int64_t>{1, 0}, {1, 1}, {0, 0, 1}, {1}}) {
        Request r = make_request(p.get()), fresh = make_request(p.get());
        logits(r.get(), {{a, b}});
        logits(fresh.get(), {{a, b}});
        for (int chunk : {1, 3}) {
            int chunks = chunk;
            std::vector<Tensor> out;
            err = {};
            xm_request_set_hook(r.get(), stop_at_step_3, &chunks);
            std::vector<std::vector<int64_t>> ids(beams.size(), c);
            auto in = inputs_of(p.get(), {ids, 6, {}, beams});
            EXPECT_EQ(infer(r.get(), in, out, &err), XM_CANCELLED);
            EXPECT_EQ(xm_request_past(r.get()), 6u);
            xm_request_set_hook(r.get(), nullptr, nullptr);
            xm_request_resume(r.get());
        }
        step next = {{some_ids(5, 4, 64), some_ids(5, 5, 64)}};
        expect_logits(logits(r.get(), next), logits(fresh.get(), next));
        next.beams = {1, 1};
        expect_logits(logits(r.get(), next), logits(fresh.get(), next));
    }
}

/* A cancel before a run counts for that run. */
TEST_F(RequestTest, ACancelHoldsUntilRunsResume)
{
    Program p = model("1");
    Request r = make_request(p.get());
    auto in = inputs_of(p.get(), {{some_ids(3, 1, 64)}});
    std::vector<Tensor> out;
    xm_request_cancel(r.get());
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(infer(r.get(), in, out, &err), XM_CANCELLED);
        err = {};
    }
    xm_request_resume(r.get());
    EXPECT_EQ(infer(r.get(), in, out, &err), XM_OK) << err.text;
}

/* Weights that are used in place stay alive after compilation; a sanitizer checks the reads. */
TEST_F(RequestTest, WeightsUsedInPlaceOutliveCompile)
{
    Program p = model();
    ASSERT_GT(p->n_weights, 0u);
    unsigned sum = 0;
    for (uint32_t i = 0; i < p->n_weights; i++) {
        const struct xm_weight &w = p->weights[i]->host;
        if (xm_buffer_kind(p->weights[i]->data) == XM_MEMORY_MAPPED)
            for (uint64_t k = 0; k < w.data.n; k++)
                sum += w.data.p[k];
    }
    EXPECT_EQ(p->graph == nullptr, sum == 0);
}

/* In either order of a short and a long run, the smaller buffer is freed when a larger one
 * replaces it. */
TEST_F(RequestTest, AGrownScratchTakesThePlaceOfTheOldOne)
{
    uint64_t bytes[2] = {0, 0};
    for (int token_first = 0; token_first < 2; token_first++) {
        xm_memory_stats before, after;
        Program p = model();
        xm_engine_memory_stats(engine, &before);
        Request r = make_request(p.get());
        struct xm_request_stats small = {}, large;
        if (token_first)
            logits(r.get(), {{{1}}});
        xm_request_stats(r.get(), &small);
        for (int64_t tokens : {40, 1})
            logits(r.get(), {{some_ids(tokens, 1, 64)}});
        xm_request_stats(r.get(), &large);
        EXPECT_GT(large.scratch_bytes, small.scratch_bytes);
        xm_engine_memory_stats(engine, &after);
        bytes[token_first] = after.total_now - before.total_now;
    }
    EXPECT_EQ(bytes[0], bytes[1]);
}

/* Decoding keeps its plan although the mask grows, and compiles no kernels. */
TEST_F(RequestTest, DecodingCompilesNothing)
{
    Program p = model();
    Request r = make_request(p.get());
    logits(r.get(), {{some_ids(4, 1, 64)}});
    logits(r.get(), {{{1}}});
    uint64_t built = xm_engine_kernels_built(engine);
    for (int64_t i = 0; i < 70; i++)
        logits(r.get(), {{{i % 64}}});
    EXPECT_EQ(xm_engine_kernels_built(engine), built);
    struct xm_request_stats stats;
    xm_request_stats(r.get(), &stats);
    EXPECT_EQ(stats.waits, 1u);
}

} // namespace
