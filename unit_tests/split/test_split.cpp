// SPDX-License-Identifier: Apache-2.0
// transformations/split: which values are exchanged, and where. The parts of a graph, run in
// lockstep by one thread each, must give the results of the whole graph.
#include "unit_tests/split/split_test.h"

static void
expect_exchanges(const std::string &lines, const Strings &wanted)
{
    EXPECT_EQ(exchanges(plan(parse(lines), tensor(2))), wanted) << lines;
    expect_whole_in_all_ways(lines);
}

// ---- where summands are added --------------------------------------------------------------

// Two products, of which the second gives the summands %4; then the lines `tail`, up to a result.
static std::string
feed_forward(const std::string &tail)
{
    return R"(
        %0 = parameter f32[tokens,32] name="x"
        %1 = weight f32[48,32] f32 @1
        %2 = weight f32[32,48] f32 @2
        %3 = matmul %0, %1 transpose_b=true
        %4 = matmul %3, %2 transpose_b=true
        %20 = const f32[32] @3
        %21 = parameter f32[tokens,1] name="w"
    )" + tail;
}

TEST(Split, ASumIsDueBeforeTheResult)
{
    expect_exchanges(feed_forward("result %4"), {"sum of matmul for result"});
}

// Scales, routing weights and reshapes are linear and come before the sum, in either order of
// their operands.
TEST(Split, ASumIsDelayedPastWhatIsLinear)
{
    expect_exchanges(feed_forward(R"(
        %5 = multiply %20, %4
        %6 = multiply %5, %21
        %7 = unsqueeze %6, %9
        %8 = negative %7
        %10 = rms_norm %8, %20 epsilon=0.001
        result %10)")
                         .replace(0, 0, "%9 = const i64[1] {0}\n"),
                     {"sum of negative for rms_norm"});
}

TEST(Split, ASecondReaderThatNeedsTheSumEndsTheDelay)
{
    expect_exchanges(feed_forward(R"(
        %5 = multiply %4, %20
        %6 = rms_norm %4, %20 epsilon=0.001
        %7 = add %5, %6
        result %7)"),
                     {"sum of matmul for rms_norm"});
}

TEST(Split, WhatIsNotLinearNeedsTheSum)
{
    expect_exchanges(feed_forward("%5 = tanh %4\nresult %5"), {"sum of matmul for tanh"});
    expect_exchanges(feed_forward("%5 = multiply %4, %4\nresult %5"),
                     {"sum of matmul for multiply"});
}

// A conversion to a narrower type comes after the sum.
TEST(Split, ASumIsNotRoundedBefore)
{
    expect_exchanges(feed_forward("%5 = convert %4 to=f16\nresult %5"),
                     {"sum of matmul for convert"});
}

// Two branches and a value that every rank has: one message.
TEST(Split, SumsThatAreDueAtOnePlaceAreOne)
{
    expect_exchanges(feed_forward(R"(
        %5 = weight f32[32,48] f32 @5
        %6 = matmul %3, %5 transpose_b=true
        %7 = add %4, %6
        %8 = add %7, %0
        %9 = rms_norm %8, %20 epsilon=0.001
        result %9)"),
                     {"sum of add for rms_norm"});
}

TEST(Split, ABiasAndAnAddendAreCountedOnce)
{
    expect_exchanges(R"(
        %0 = parameter f32[1,tokens,32] name="x"
        %1 = weight f32[48,32] f32 @1
        %2 = weight f32[32,48] f32 @2
        %3 = const f32[48] @3
        %4 = const f32[32] @4
        %5 = linear %0, _, %1, %3
        %6 = linear %5, %0, %2, %4
        result %6)",
                     {"sum of linear for result"});
}

// The results of k chosen experts, %5, times their routing weights, are %7 [k,tokens,32]. Then the
// lines `tail`, up to a result. %10, %11, … are the slots [1,tokens,32] of %7.
static std::string
slots(int k, const std::string &tail, const std::string &product = "%5, %6",
      const std::string &bias = "_")
{
    const std::string n = std::to_string(k);
    std::string text = "%1 = parameter i32[tokens," + n + "] name=\"ids\"\n" +
                       "%6 = parameter f32[" + n + ",tokens,1] name=\"w\"" + R"(
        %0 = parameter f32[1,tokens,32] name="x"
        %2 = weight f32[4,48,32] f32 @2
        %3 = weight f32[4,32,48] f32 @3
        %8 = const f32[4,1,32] @8
        %9 = const f32[32] @9
        %4 = gather_matmul %0, %2, %1, _
        %5 = gather_matmul %4, %3, %1, )" +
                       bias + "\n%7 = multiply " + product;
    for (int i = 0; i <= k; i++)
        text +=
            "\n%3" + std::to_string(i) + " = const i64[1] {" + std::to_string(i) + "}";
    text += "\n%29 = const i64[1] {1}";
    for (int i = 0; i < k; i++)
        text += "\n%1" + std::to_string(i) + " = slice %7, %3" + std::to_string(i) +
                ", %3" + std::to_string(i + 1) + ", %29, %30";
    return text + "\n" + tail;
}

// One sum of one slot's size, however the slots are added up.
TEST(Split, TheSlotsOfExpertsAreAddedUpBeforeTheSum)
{
    const std::string norm = "\n%40 = rms_norm %20, %9 epsilon=0.001\nresult %40";
    const std::string two = "%20 = add %10, %11",
                      three = "%21 = add %12, %10\n%20 = add %11, %21";
    for (const std::string &lines :
         {slots(1, "%20 = negative %10" + norm), slots(2, two + norm),
          slots(2, two + norm, "%6, %5"), slots(2, two + norm, "%5, %6", "%8"),
          slots(3, three + norm),
          slots(3, "%20 = reduce_sum %7, %30 keep_dims=true" + norm)}) {
        const Graph g = parse(lines);
        const Split s = plan(g, tensor(2));
        uint32_t n = 0;
        const xm_exchange *e = xm_split_exchanges(s.get(), &n);
        ASSERT_EQ(n, 1u) << lines;
        EXPECT_EQ(e->bytes, 32 * sizeof(float)) << lines;
        EXPECT_EQ(e->because->op, XM_OP_RMS_NORM) << lines;
        expect_whole_in_all_ways(lines);
    }
}

// A reader that is no part of the addition needs the sum of the slots, and so does a norm between;
// the last node of a graph does, too.
TEST(Split, TheSlotsOfExpertsAreSummedEarlierForAReaderThatNeedsThem)
{
    const std::string two = "%20 = add %10, %11\n";
    expect_exchanges(slots(2, two + "%21 = tanh %7\nresult %20\nresult %21"),
                     {"sum of multiply for tanh"});
    expect_exchanges(slots(2, two + "%21 = tanh %10\nresult %20\nresult %21"),
                     {"sum of slice for tanh", "sum of add for result"});
    expect_exchanges(
        slots(
            2,
            "%21 = rms_norm %7, %9 epsilon=0.001\n%22 = reduce_sum %21, %30\nresult %22"),
        {"sum of multiply for rms_norm"});
    expect_exchanges(slots(2, two + "result %20"), {"sum of add for result"});
}

// Rows of a weight are joined if an op needs the whole vector of a token.
TEST(Split, RowsAreJoined)
{
    expect_exchanges(R"(
        %0 = parameter f32[tokens,32] name="x"
        %1 = weight f32[96,32] u4 group=32 scale=f16 zp=u4 @1
        %2 = matmul %0, %1 transpose_b=true
        result %2)",
                     {"parts of matmul for result"});
}

static const char layer[] = R"(
        %0 = parameter f32[1,tokens,64] name="x"
        %1 = weight f32[64,64] u4 group=16 scale=f16 zp=u4 @1
        %2 = weight f32[KV,64] u4 group=16 scale=f16 zp=u4 @2
        %3 = weight f32[KV,64] u4 group=16 scale=f16 zp=u4 @3
        %4 = weight f32[64,64] u4 group=16 scale=f16 zp=u4 @4
        %5 = const f32[64] @5
        %6 = rms_norm %0, %5 epsilon=0.001
        %7, %8, %9 = linear %6, _, %1, _, %2, _, %3, _
        %10 = shape_value i64[4] {1, tokens, 4, 16}
        %11 = shape_value i64[4] {1, tokens, HEADS, 16}
        %12 = reshape %7, %10
        %13 = reshape %8, %11
        %14 = reshape %9, %11
        %15 = attention %12, %13, %14, _, _, _, _ CAUSAL
        %16 = shape_value i64[3] {1, tokens, 64}
        %17 = reshape %15, %16
        %18 = linear %17, %0, %4, _
        %19 = rms_norm %18, %5 epsilon=0.001
        %20 = shape_value i64[2] {tokens, 64}
        %21 = reshape %19, %20
        %22 = weight f32[8,64] f32 @22
        %23 = matmul %21, %22 transpose_b=true
        %24 = weight f32[8,128,64] u4 group=16 scale=f16 zp=u4 @24
        %25 = weight f32[8,128,64] u4 group=16 scale=f16 zp=u4 @25
        %26 = weight f32[8,64,128] u4 group=16 scale=f16 zp=u4 @26
        %27 = reshape %18, %20
%28 = moe_3gemm_fused_compressed %21, %23, _, _, _, %24, %25, %26, _, _, _, _, _, _, %27 EXPERTS
        %29 = rms_norm %28, %5 epsilon=0.001
        result %29)";

static std::string
filled(std::string text, const std::map<std::string, std::string> &words)
{
    for (const auto &[word, meaning] : words)
        for (size_t at; (at = text.find(word)) != std::string::npos;)
            text.replace(at, word.size(), meaning);
    return text;
}

static const std::string causal =
    "scale=0.25 causal=true key_state=\"k\" value_state=\"v\"";

static std::string
layer_of(const std::string &heads, const std::string &rows)
{
    return filled(layer,
                  {{"HEADS", heads},
                   {"KV", rows},
                   {"CAUSAL", causal},
                   {"EXPERTS", "hidden_size=64 inter_size=128 num_expert=8 top_k=2"}});
}

// As in Megatron-LM's tensor parallelism, devices add their partial results twice in a layer: after
// attention and after the experts. The router is not split if a message costs more than reading
// its weights.
TEST(Split, ALayerOfAttentionAndExpertsHasTwoSums)
{
    xm_split_wish wish = tensor(2);
    wish.read_rate = 1e9;
    wish.link_latency_s = 1.5e-6;
    for (const auto &[heads, rows] : {std::pair("4", "64"), std::pair("2", "32")}) {
        const Graph g = parse(layer_of(heads, rows));
        EXPECT_EQ(exchanges(plan(g, wish)),
                  (Strings{"sum of linear for rms_norm",
                           "sum of moe_3gemm_fused_compressed for rms_norm"}));
        expect_whole(g, wish);
        expect_whole_in_all_ways(layer_of(heads, rows));
    }
}

// With one key head, each rank computes keys and values itself, or the ranks join them.
TEST(Split, QueriesAreSplitThoughTheyShareOneHeadOfKeys)
{
    xm_split_wish wish = tensor(2);
    wish.read_rate = 1e9;
    wish.link_latency_s = 1.5e-6;
    const Graph g = parse(layer_of("1", "16"));
    for (const std::string &e : exchanges(plan(g, wish)))
        EXPECT_EQ(e.find("attention"), std::string::npos) << e;
    expect_whole(g, wish);
    expect_whole_in_all_ways(layer_of("1", "16"));
}

// The state is split like the heads of the layer that writes it.
TEST(Split, AnAttentionReadsTheStateOfAnother)
{
    const std::string lines = R"(
        %0 = parameter f32[1,tokens,4,16] name="x"
        %1 = weight f32[64,64] f32 @1
        %2 = shape_value i64[3] {1, tokens, 64}
        %3 = shape_value i64[4] {1, tokens, 4, 16}
        %4 = reshape %0, %2
        %5, %6, %7 = linear %4, _, %1, _, %1, _, %1, _
        %8 = reshape %5, %3
        %9 = reshape %6, %3
        %10 = reshape %7, %3
        %11 = attention %8, %9, %10, _, _, _, _ CAUSAL
        %12 = reshape %11, %2
        %13 = matmul %12, %1 transpose_b=true
        %14 = tanh %13
        %15 = linear %14, _, %1, _
        %16 = reshape %15, %3
        %17 = attention %16, _, _, _, _, _, _ CAUSAL
        result %17)";
    expect_whole_in_all_ways(filled(lines, {{"CAUSAL", causal}}));
}

// ---- what is not split ----------------------------------------------------------------------

TEST(Split, NothingIsSplitThatSavesLessThanAMessageCosts)
{
    xm_split_wish wish = tensor(2);
    wish.link_latency_s = 1.0;
    EXPECT_EQ(exchanges(plan(parse(layer_of("4", "64")), wish)), Strings());
    expect_whole(parse(layer_of("4", "64")), wish);
}

// The split saves 1 ms, because each rank reads half of the weights, but its sum takes 1.5 ms: so
// the weights are not split. As f16 the sum takes half of that, and they are split.
TEST(Split, WhatASumIsSentAsDecides)
{
    const Graph g = parse(feed_forward("result %4"));
    xm_split_wish wish = tensor(2);
    wish.read_rate = 48 * 32 * sizeof(float) / 1e-3;
    wish.link_rate = 32 * sizeof(float) / 1.5e-3;
    EXPECT_EQ(exchanges(plan(g, wish)), Strings());
    wish.halves_sums = true;
    EXPECT_EQ(exchanges(plan(g, wish)), Strings{"sum of matmul for result"});
}

// A matmul of only eight rows behind a feed-forward of 256 is not split, whatever the read rate,
// because it is too small to be worth a message. If messages are free, it is split.
TEST(Split, AllIsSplitButWhatIsNotWorthAMessageAtAnySize)
{
    const Graph g = parse(R"(
        %0 = parameter f32[tokens,64] name="x"
        %1 = weight f32[256,64] f32 @1
        %2 = weight f32[64,256] f32 @2
        %3 = weight f32[8,64] f32 @3
        %4 = matmul %0, %1 transpose_b=true
        %5 = tanh %4
        %6 = matmul %5, %2 transpose_b=true
        %7 = tanh %6
        %8 = matmul %7, %3 transpose_b=true
        result %8)");
    const Strings one = {"sum of matmul for tanh"};
    EXPECT_EQ(exchanges(plan(g, tensor(2))),
              (Strings{"sum of matmul for tanh", "parts of matmul for result"}));
    for (double rate : {1e6, 1e9, 1e13}) {
        xm_split_wish wish = tensor(2);
        wish.splits_all = true;
        wish.read_rate = rate;
        wish.link_latency_s = 1.0;
        EXPECT_EQ(exchanges(plan(g, wish)), one) << rate;
        expect_whole(g, wish);
    }
}

TEST(Split, APartHasItsShareOfTheWeights)
{
    const double shares[] = {3, 1};
    const Graph g = parse(feed_forward("result %4"));
    const Split s = plan(g, tensor(2, shares));
    const uint64_t all = 2 * 48 * 32 * sizeof(float);
    for (uint32_t rank : {0u, 1u}) {
        uint64_t bytes = 0;
        EXPECT_EQ(xm_split_weight_bytes(s.get(), rank, &bytes, nullptr), XM_OK);
        EXPECT_EQ(bytes, rank ? all / 4 : all / 4 * 3);
    }
}

TEST(Split, WishesOutOfRangeAreSentences)
{
    const Graph g = parse("%0 = parameter f32[2] name=\"x\"\nresult %0");
    const double none[] = {1, 0};
    xm_split_wish few = tensor(0), many = tensor(65), nothing = tensor(2, none),
                  slow = tensor(2);
    slow.link_rate = 0;
    for (const xm_split_wish &w : {few, many, nothing, slow}) {
        xm_split *s = nullptr;
        xm_error err = {};
        EXPECT_EQ(xm_split_plan(g.get(), &w, &s, &err), XM_INVALID);
        EXPECT_STRNE(err.text, "");
        EXPECT_EQ(s, nullptr);
    }
}

// ---- experts --------------------------------------------------------------------------------

static xm_moe_attr
experts_of(const Split &s, uint32_t rank, uint32_t ranks)
{
    xm_rank_group *group = xm_shared_group_create(ranks);
    const std::vector<Graph> list = parts(s, group, ranks);
    xm_moe_attr attr = {};
    xm_for_each_node(n, list.at(rank).get())
    {
        if (n->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED)
            attr = n->attr.moe;
    }
    xm_rank_group_free(group);
    return attr;
}

// Cutting between experts needs the same sums as cutting across them.
TEST(Split, ExpertsAreCutBetweenThem)
{
    const double shares[] = {3, 1};
    xm_split_wish wish = by_expert(2, shares);
    wish.read_rate = 1e9;
    wish.link_latency_s = 1.5e-6;
    const Graph g = parse(layer_of("4", "64"));
    const Split s = plan(g, wish);
    EXPECT_EQ(exchanges(s), (Strings{"sum of linear for rms_norm",
                                     "sum of moe_3gemm_fused_compressed for rms_norm"}));
    for (uint32_t rank : {0u, 1u}) {
        const xm_moe_attr a = experts_of(s, rank, 2);
        EXPECT_EQ(a.first_expert, rank ? 6 : 0);
        EXPECT_EQ(a.own_experts, rank ? 2 : 6);
        EXPECT_EQ(a.inter, 128) << "whole experts";
        EXPECT_EQ(a.experts, 8) << "the router's";
    }
    const xm_moe_attr across = experts_of(plan(g, tensor(2)), 0, 2);
    EXPECT_EQ(across.own_experts, 0);
    EXPECT_EQ(across.inter, 64);
    expect_whole(g, wish);
    expect_whole_in_all_ways(layer_of("4", "64"), by_expert);
}

// Gate and up stacked in one weight can only be cut between experts; with more ranks than
// experts, not at all.
TEST(Split, StackedExpertsAreCutBetweenThemWhateverIsWished)
{
    const std::string lines = R"(
        %0 = parameter f32[tokens,64] name="x"
        %1 = parameter f32[tokens,3] name="logits"
        %2 = weight f32[3,64,64] u4 group=16 scale=f16 zp=u4 @2
        %3 = weight f32[3,64,32] u4 group=16 scale=f16 zp=u4 @3
        %6 = const f32[3,1,64] @6
        %7 = const f32[3,1,64] @7
        %4 = moe_3gemm_fused_compressed %0, %1, _, _, _, %2, _, %3, %6, %7, _, _, _, _, %0 )"
                              "hidden_size=64 inter_size=32 num_expert=3 top_k=2 "
                              "gate_up=stacked\nresult %4";
    for (const Wish wish : {Wish(tensor), Wish(by_expert)}) {
        const Graph g = parse(lines);
        EXPECT_EQ(experts_of(plan(g, wish(2, nullptr)), 0, 2).own_experts, 2);
        EXPECT_EQ(experts_of(plan(g, wish(4, nullptr)), 0, 4).own_experts, 0);
        expect_whole_in_all_ways(lines, wish);
    }
}

// The shared expert is cut at the same fractions if its blocks allow that, else the first rank
// computes it.
TEST(Split, ASharedExpertIsCutOrOnTheFirstRank)
{
    for (const char *inter : {"64", "48", "16"}) {
        const std::string lines = filled(
            R"(
        %0 = parameter f32[tokens,64] name="x"
        %1 = parameter f32[tokens,4] name="logits"
        %2 = weight f32[4,32,64] u4 group=16 scale=f16 zp=u4 @2
        %3 = weight f32[4,64,32] u4 group=16 scale=f16 zp=u4 @3
        %5 = weight f32[INTER,64] u4 group=16 scale=f16 zp=u4 @5
        %6 = weight f32[64,INTER] u4 group=16 scale=f16 zp=u4 @6
        %7 = weight f32[1,64] f16 @7
        %4 = moe_3gemm_fused_compressed %0, %1, _, _, _, %2, %2, %3, _, _, %5, %5, %6, %7 )"
            "hidden_size=64 inter_size=32 num_expert=4 top_k=2 num_shared_expert=1\n"
            "result %4",
            {{"INTER", inter}});
        const Graph g = parse(lines);
        const Split s = plan(g, by_expert(2, nullptr));
        const bool cut = std::string(inter) == "64";
        EXPECT_EQ(experts_of(s, 0, 2).shared, 1);
        EXPECT_EQ(experts_of(s, 1, 2).shared, cut ? 1 : 0) << inter;
        expect_whole_in_all_ways(lines, by_expert);
    }
}

// ---- ranks without a part -------------------------------------------------------------------

// The parts of the ranks of a job in which some are idle: the others exchange values in a group of
// their own, and the first of them sends the results to the idle ones.
struct JobParts {
    xm_rank_group *job, *working;
    std::vector<Graph> list;
    std::vector<xm_collective *> end; // nullptr: the rank is idle

    JobParts(const Graph &g, const Split &s, const std::vector<bool> &is_idle)
    {
        const uint32_t ranks = (uint32_t)is_idle.size();
        bool takes[XM_MOST_RANKS] = {};
        uint32_t n = 0, first = ranks;
        for (uint32_t r = 0; r < ranks; r++) {
            takes[r] = is_idle[r];
            n += !takes[r];
            first = !takes[r] && first == ranks ? r : first;
        }
        job = xm_shared_group_create(ranks);
        working = xm_shared_group_create(n);
        n = 0;
        for (uint32_t r = 0; r < ranks; r++) {
            xm_collective *c = xm_rank_group_rank(job, r);
            xm_graph *part = nullptr;
            xm_error err = {};
            end.push_back(takes[r] ? nullptr : xm_rank_group_rank(working, n++));
            EXPECT_EQ(takes[r]
                          ? xm_split_take_results(g.get(), c, first, nullptr, &part, &err)
                          : xm_split_part(s.get(), end[r], nullptr, &part, &err),
                      XM_OK)
                << err.text;
            if (r == first) {
                EXPECT_EQ(xm_split_give_results(g.get(), part, c, takes, &err), XM_OK)
                    << err.text;
            }
            EXPECT_EQ(xm_graph_validate(part, nullptr, &err), XM_OK) << err.text;
            list.emplace_back(part);
        }
    }
    ~JobParts()
    {
        xm_rank_group_free(job);
        xm_rank_group_free(working);
    }
};

static void
expect_results_on_idle_ranks(const Graph &g, Wish wish, const std::vector<bool> &is_idle)
{
    const auto n = (uint32_t)std::count(is_idle.begin(), is_idle.end(), false);
    const Split s = plan(g, wish(n, nullptr));
    const JobParts p(g, s, is_idle);
    const Run whole = evaluate(g.get(), 1);
    std::vector<Run> runs(is_idle.size());
    std::vector<std::thread> threads;
    for (size_t r = 0; r < is_idle.size(); r++)
        threads.emplace_back([&, r] { runs[r] = evaluate(p.list[r].get(), 1); });
    for (std::thread &t : threads)
        t.join();
    for (size_t r = 0; r < is_idle.size(); r++) {
        expect_equal(whole, runs[r], print(p.list[r].get()));
        xm_for_each_node(node, p.list[r].get())
        {
            const bool is_light = node->op == XM_OP_PARAMETER ||
                                  node->op == XM_OP_SHAPE_VALUE ||
                                  node->op == XM_OP_RECEIVE || node->op == XM_OP_RESULT;
            EXPECT_TRUE(!is_idle[r] || is_light) << print(p.list[r].get());
        }
    }
}

// They have neither weights nor states, but the same results and positions.
TEST(Split, ARankWithoutAPartGetsTheResults)
{
    const Graph one = parse(layer_of("4", "64")), two = parse(feed_forward(R"(
        %5 = tanh %0
        result %4
        result %5)"));
    for (const std::vector<bool> &is_idle : std::vector<std::vector<bool>>{
             {false, true}, {true, false, false}, {false, true, false, true}}) {
        for (const Wish wish : {tensor, by_expert, by_layer})
            expect_results_on_idle_ranks(one, wish, is_idle);
        expect_results_on_idle_ranks(two, tensor, is_idle);
    }
    const JobParts p(one, plan(one, tensor(1)), {false, true});
    EXPECT_TRUE(p.list[1]->counts_positions);
    EXPECT_TRUE(exchanges(plan(one, tensor(1))).empty());
    EXPECT_TRUE(exchanges(plan(one, by_layer(1, nullptr))).empty());
}

// A check adds results to the parts, which idle ranks do not have.
TEST(Split, ARankWithoutAPartGetsOnlyTheModelsResults)
{
    const Graph g = parse(layer_of("4", "64"));
    xm_split_wish wish = tensor(2);
    wish.shows_exchanges = true;
    const JobParts p(g, plan(g, wish), {false, false, true});
    const auto count = [&](size_t rank, xm_op op) {
        int n = 0;
        xm_for_each_node(node, p.list[rank].get()) n += node->op == op;
        return n;
    };
    EXPECT_GT(count(0, XM_OP_RESULT), 1);
    EXPECT_EQ(count(0, XM_OP_SEND), 1);
    EXPECT_EQ(count(1, XM_OP_SEND), 0);
    EXPECT_EQ(count(2, XM_OP_RECEIVE), 1);
}

// ---- layers ---------------------------------------------------------------------------------

// `n` layers of a feed-forward, then a norm.
static std::string
tower(int n)
{
    std::string text = R"(
        %0 = parameter f32[tokens,32] name="x"
        %1 = const f32[32] @1
        %2 = parameter f32[tokens,1] name="w"
        %3 = tanh %2
)";
    std::string x = "%0";
    for (int i = 0; i < n; i++) {
        const std::string k = std::to_string(i), p = "%" + std::to_string(10 + i);
        text += p + "0 = weight f32[64,32] f32 @1" + k + "\n" + p +
                "1 = weight f32[32,64] f32 @2" + k + "\n" + p + "2 = rms_norm " + x +
                ", %1 epsilon=0.001\n" + p + "3 = matmul " + p + "2, " + p +
                "0 transpose_b=true\n" + p + "4 = swish " + p + "3\n" + p +
                "5 = matmul " + p + "4, " + p + "1 transpose_b=true\n" + p +
                "6 = multiply " + p + "5, %3\n" + p + "7 = add " + p + "6, " + x + "\n";
        x = p + "7";
    }
    return text + "%5 = rms_norm " + x + ", %1 epsilon=0.001\nresult %5";
}

static uint64_t
bytes_on(const Split &s, uint32_t rank)
{
    uint64_t bytes = 0;
    EXPECT_EQ(xm_split_weight_bytes(s.get(), rank, &bytes, nullptr), XM_OK);
    return bytes;
}

// The cut is between layers, where only the sum is passed on. Each rank computes the table %3.
TEST(Split, LayersAreCutWhereTheLeastIsPassedOn)
{
    const uint64_t layer_bytes = 2 * 64 * 32 * sizeof(float);
    const double shares[] = {1, 3};
    const Graph g = parse(tower(4));
    const Strings two = {"pass add for rms_norm", "pass rms_norm for result"};
    const Split even = plan(g, by_layer(2, nullptr)),
                uneven = plan(g, by_layer(2, shares));
    EXPECT_EQ(exchanges(even), two);
    EXPECT_EQ(exchanges(uneven), two);
    EXPECT_EQ(bytes_on(even, 0), 2 * layer_bytes);
    EXPECT_EQ(bytes_on(uneven, 0), layer_bytes);
    EXPECT_EQ(bytes_on(uneven, 1), 3 * layer_bytes);
    const Graph odd = parse(tower(5)); // half of the layers ends within a layer
    const Split near = plan(odd, by_layer(2, nullptr));
    EXPECT_EQ(exchanges(near), two);
    EXPECT_EQ(bytes_on(near, 0) % layer_bytes, 0u);
    expect_whole(g, by_layer(2, shares));
    expect_whole_in_all_ways(tower(4), by_layer);
    expect_whole_in_all_ways(layer_of("4", "64"), by_layer);
}

// With pipeline parallelism a rank has only the states of its own layers.
TEST(Split, ARankByLayerHasItsStatesAlone)
{
    xm_rank_group *group = xm_shared_group_create(2);
    const Graph g = parse(layer_of("4", "64"));
    const std::vector<Graph> list = parts(plan(g, by_layer(2, nullptr)), group, 2);
    int attentions = 0, experts = 0;
    for (const Graph &part : list)
        xm_for_each_node(n, part.get())
        {
            attentions += n->op == XM_OP_ATTENTION;
            experts += n->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED;
        }
    EXPECT_EQ(attentions, 1);
    EXPECT_EQ(experts, 1);
    xm_rank_group_free(group);
}

// An attention layer runs on the rank whose state it reads, even if a cut between them would be
// even.
TEST(Split, AStateIsNotCutByLayer)
{
    const std::string lines = filled(R"(
        %0 = parameter f32[1,tokens,4,16] name="x"
        %1 = weight f32[64,64] f32 @1
        %2 = shape_value i64[3] {1, tokens, 64}
        %3 = shape_value i64[4] {1, tokens, 4, 16}
        %4 = reshape %0, %2
        %5, %6, %7 = linear %4, _, %1, _, %1, _, %1, _
        %8 = reshape %5, %3
        %9 = reshape %6, %3
        %10 = reshape %7, %3
        %11 = attention %8, %9, %10, _, _, _, _ CAUSAL
        %12 = reshape %11, %2
        %13 = matmul %12, %1 transpose_b=true
        %14 = matmul %13, %1 transpose_b=true
        %15 = reshape %14, %3
        %17 = attention %15, _, _, _, _, _, _ CAUSAL
        %18 = reshape %17, %2
        %19 = matmul %18, %1 transpose_b=true
        result %19)",
                                     {{"CAUSAL", causal}});
    const Graph g = parse(lines);
    const Split s = plan(g, by_layer(2, nullptr));
    xm_rank_group *group = xm_shared_group_create(2);
    for (const Graph &part : parts(s, group, 2)) {
        int attentions = 0;
        xm_for_each_node(n, part.get()) attentions += n->op == XM_OP_ATTENTION;
        EXPECT_NE(attentions, 1) << print(part.get());
    }
    xm_rank_group_free(group);
    expect_whole(g, by_layer(2, nullptr));
    xm_split *none = nullptr;
    xm_error err = {};
    const xm_split_wish four = by_layer(4, nullptr);
    EXPECT_EQ(xm_split_plan(g.get(), &four, &none, &err), XM_UNSUPPORTED);
    EXPECT_NE(std::string(err.text).find("too few places to cut"), std::string::npos)
        << err.text;
}

TEST(Split, AResultBetweenLayersIsASentence)
{
    std::string lines = tower(2);
    lines.replace(lines.rfind("result"), std::string::npos,
                  "result %107\n%8 = matmul %5, %100 transpose_b=true\nresult %8");
    const Graph g = parse(lines);
    ASSERT_TRUE(g);
    xm_split *s = nullptr;
    xm_error err = {};
    const xm_split_wish wish = by_layer(2, nullptr);
    EXPECT_EQ(xm_split_plan(g.get(), &wish, &s, &err), XM_UNSUPPORTED);
    EXPECT_NE(std::string(err.text).find("it is not split by layer: result"),
              std::string::npos)
        << err.text;
}

// ---- random graphs --------------------------------------------------------------------------

// Returns a graph of values [tokens, 32] and [tokens, 64]: products, elementwise ops, norms and
// reshapes.
static std::string
random_graph(unsigned seed)
{
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return (size_t)(random() % n); };
    Strings lines = {"parameter f32[tokens,32] name=\"x\"", "const f32[32] @1",
                     "const f32[64] @2", "parameter f32[tokens,1] name=\"w\""};
    struct Value {
        size_t line;
        int width;
    };
    std::vector<Value> values = {{0, 32}};
    const auto add = [&](const std::string &what) {
        lines.push_back(what);
        return lines.size() - 1;
    };
    const auto name = [](size_t i) { return "%" + std::to_string(i); };
    for (int step = 0; step < 14; step++) {
        const Value v =
            values[values.size() - 1 - below(std::min<size_t>(values.size(), 4))];
        const std::string x = name(v.line), width = std::to_string(v.width);
        switch (below(9)) {
        case 8: {
            const int rows = v.width == 32 ? 32 : 64;
            const std::string e = std::to_string(3 + below(4)), h = std::to_string(rows);
            const auto weight = [&](const std::string &shape, int at) {
                return name(
                    add("weight f32[" + shape + "] f32 @" + std::to_string(at + step)));
            };
            const std::string router = weight(e + "," + h, 30);
            const size_t logits =
                add("matmul " + x + ", " + router + " transpose_b=true");
            const std::string gate = weight(e + ",16," + h, 50),
                              down = weight(e + "," + h + ",16", 70);
            values.push_back(
                {add("moe_3gemm_fused_compressed " + x + ", " + name(logits) +
                     ", _, _, _, " + gate + ", " + gate + ", " + down +
                     ", _, _, _, _, _, _, " + (below(2) ? x : "_") + " hidden_size=" + h +
                     " inter_size=16 num_expert=" + e + " top_k=2"),
                 v.width});
            break;
        }
        case 0:
        case 1: {
            const int rows = below(2) ? 32 : 64;
            const size_t w =
                add("weight f32[" + std::to_string(rows) + "," + width + "] " +
                    (below(2) ? "f32" : "u4 group=8 scale=f16 zp=u4") + " @" +
                    std::to_string(10 + step));
            values.push_back(
                {add("matmul " + x + ", " + name(w) + " transpose_b=true"), rows});
            break;
        }
        case 2: {
            std::string other = x;
            for (const Value &o : values)
                other = o.width == v.width && below(2) ? name(o.line) : other;
            values.push_back({add("add " + x + ", " + other), v.width});
            break;
        }
        case 3:
            values.push_back(
                {add("multiply " + x + ", " + name(below(2) ? 3 : v.width / 32)),
                 v.width});
            break;
        case 4:
            values.push_back({add("rms_norm " + x + ", " + name((size_t)v.width / 32) +
                                  " epsilon=0.001"),
                              v.width});
            break;
        case 5:
            values.push_back({add("swish " + x), v.width});
            break;
        case 6: {
            const size_t s = add("shape_value i64[3] {tokens, 4, " +
                                 std::to_string(v.width / 4) + "}");
            const size_t r = add("reshape " + x + ", " + name(s));
            const size_t y = add("negative " + name(r));
            const size_t back = add("shape_value i64[2] {tokens, " + width + "}");
            values.push_back({add("reshape " + name(y) + ", " + name(back)), v.width});
            break;
        }
        default: {
            const size_t axis = add("const i64[1] {1}");
            const size_t mean =
                add("reduce_sum " + x + ", " + name(axis) + " keep_dims=true");
            values.push_back({add("multiply " + x + ", " + name(mean)), v.width});
        }
        }
    }
    add("result " + name(values.back().line));
    add("result " + name(values[values.size() / 2].line));
    std::string text;
    for (size_t i = 0; i < lines.size(); i++)
        text +=
            (lines[i].rfind("result", 0) == 0 ? "" : name(i) + " = ") + lines[i] + "\n";
    return text;
}

TEST(Split, AnyGraphGivesWhatTheWholeGives)
{
    for (unsigned seed = 1; seed <= 60; seed++) {
        const std::string text = random_graph(seed);
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
        const Graph g = parse(text);
        ASSERT_TRUE(g);
        expect_whole(g, tensor(2 + seed % 3), seed);
        expect_whole(g, by_expert(2 + seed % 3, nullptr), seed);
        if (testing::Test::HasFailure())
            return;
    }
}
