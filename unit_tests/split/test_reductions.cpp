// SPDX-License-Identifier: Apache-2.0
// How many sums a split exchanges for a token, and of how many bytes, compared with two other ways
// to place them:
//   - eager: directly behind each op that makes summands, as its algebra says. Behind the down
//     product of a mixture of experts that is a value for each chosen expert of a token.
//   - by rule: as tensor parallelism is published, behind attention and behind each feed-forward,
//     one value of the width of the residual stream each.
// Experts are single ops here (gather_matmul), as on a device that cannot run them fused; fused,
// the sums must be the same.
#include "plugin/readers/openvino_ir.h"
#include "transformations/pipeline.h"
#include "transformations/split/split_plan.h"
#include "unit_tests/split/split_test.h"

namespace
{

// The number of sums, and their bytes for a token in f32.
struct Sums {
    size_t n;
    uint64_t bytes;
};

bool
operator==(const Sums &a, const Sums &b)
{
    return a.n == b.n && a.bytes == b.bytes;
}

std::ostream &
operator<<(std::ostream &out, const Sums &s)
{
    return out << s.n << " sums of " << s.bytes << " bytes";
}

// As with --split tensor: all is split but what is not worth a message at any size.
xm_split_wish
all_split(uint32_t ranks = 2, const double *shares = nullptr)
{
    xm_split_wish wish = tensor(ranks, shares);
    wish.splits_all = true;
    return wish;
}

Sums
exchanged(const Split &s)
{
    uint32_t n = 0;
    Sums sums = {};
    const xm_exchange *list = xm_split_exchanges(s.get(), &n);
    for (uint32_t i = 0; i < n; i++) {
        sums.n += list[i].kind == XM_EXCHANGE_SUM;
        sums.bytes += list[i].kind == XM_EXCHANGE_SUM ? list[i].bytes : 0;
    }
    return sums;
}

// An op makes summands if it gives partial sums of parts: then an operand is split.
Sums
eager(const Split &s)
{
    Sums sums = {};
    xm_layout *in, *out, *both = xm_split_new_layouts(s->g, &in, &out);
    xm_for_each_node(n, s->g)
    {
        xm_split_layouts(s.get(), n, in, out);
        bool has_parts = false;
        for (uint32_t i = 0; i < n->n_in; i++)
            has_parts |= !xm_is_none(xm_in(n, i)) && in[i].kind == XM_SPLIT;
        for (uint32_t i = 0; i < n->n_out && has_parts; i++) {
            sums.n += out[i].kind == XM_PARTIAL;
            sums.bytes +=
                out[i].kind == XM_PARTIAL ? xm_split_token_bytes(&n->out[i]) : 0;
        }
    }
    xm_free(both);
    return sums;
}

// ---- models ----------------------------------------------------------------------------------

bool
runs_no_experts(const void *, enum xm_op op, const union xm_attr *, xm_value *const *,
                uint32_t, const char **why_not)
{
    *why_not = "the test wants single ops";
    return op != XM_OP_MOE && op != XM_OP_MOE_COMPRESSED &&
           op != XM_OP_MOE_3GEMM_FUSED_COMPRESSED;
}

Graph
read(const std::string &name, bool is_fused)
{
    const std::string path = XM_MODELS_DIR "/" + name + "/openvino_model.xml";
    const xm_pipeline_options options = {nullptr, nullptr, nullptr, true};
    xm_caps caps = {};
    xm_graph *g = nullptr;
    xm_error err = {};
    caps.can_run = is_fused ? nullptr : runs_no_experts;
    EXPECT_EQ(xm_openvino_ir_read(path.c_str(), nullptr, &g, &err), XM_OK) << err.text;
    if (!g)
        return nullptr;
    EXPECT_EQ(xm_pipeline_run(g, &caps, &options, nullptr, nullptr, &err), XM_OK)
        << err.text;
    return Graph(g);
}

// `rule`: sums of a layer by the published rule, each of one value. Eager reduction has as many,
// but one of them has a value for each chosen expert.
struct Model {
    const char *name, *path;
    size_t layers, width, chosen, rule;
};

const Model models[] = {
    {"Qwen3", "qwen3moe-tiny/ov/int4_asym_g64", 2, 256, 4, 2},
    {"GptOss", "gpt-oss-tiny/ov/int4_sym_g64", 4, 256, 2, 2},
    {"Gemma4", "gemma4-moe-tiny/ov/int4_asym_g32", 6, 256, 3, 3},
};

class Reductions : public testing::TestWithParam<Model>
{
};

TEST_P(Reductions, OfAModelAreThoseOfTheRule)
{
    const Model &m = GetParam();
    const size_t n = m.layers * m.rule;
    const uint64_t value = m.width * sizeof(float);
    const Graph single = read(m.path, false), fused = read(m.path, true);
    ASSERT_TRUE(single && fused);
    const Split of_single = plan(single, all_split());
    EXPECT_EQ(exchanged(of_single), (Sums{n, n * value}));
    EXPECT_EQ(exchanged(plan(fused, all_split())), (Sums{n, n * value}));
    EXPECT_EQ(eager(of_single), (Sums{n, (n + m.layers * (m.chosen - 1)) * value}));
}

INSTANTIATE_TEST_SUITE_P(Models, Reductions, testing::ValuesIn(models),
                         [](const auto &i) { return i.param.name; });

// ---- structures that no rule lists -----------------------------------------------------------

enum { WIDTH = 64, CHOSEN = 2 };

// Replaces each # by a number, so that blocks can be repeated.
std::string
numbered(std::string text, int number)
{
    for (size_t at; (at = text.find('#')) != std::string::npos;)
        text.replace(at, 1, std::to_string(number));
    return text;
}

// The values that all blocks use: inputs %1 and %2, a weight for each token %3, a gain %4.
const std::string inputs = R"(
    %1 = parameter f32[tokens,64] name="x"
    %2 = parameter f32[tokens,64] name="x2"
    %3 = parameter f32[tokens,1] name="w"
    %4 = const f32[64] @4
    %5 = shape_value i64[3] {1, tokens, 64}
    %6 = shape_value i64[4] {1, tokens, 4, 16}
    %7 = shape_value i64[2] {tokens, 64}
    %8 = const i64[2] {1, 0}
    %9 = shape_value i64[3] {2, tokens, 1}
    %10 = const i64[1] {0}
    %11 = const f32[4] @11
    %12 = const i64[] {0}
)";

// Block #: attention of %#00 gives %#09.
const std::string attention = R"(
    %#01 = weight f32[64,64] f32 @101
    %#02 = reshape %#00, %5
    %#03, %#04, %#05 = linear %#02, _, %#01, _, %#01, _, %#01, _
    %#13 = reshape %#03, %6
    %#14 = reshape %#04, %6
    %#15 = reshape %#05, %6
    %#06 = attention %#13, %#14, %#15, _, _, _, _ scale=0.5 key_state="k" value_state="v"
    %#07 = reshape %#06, %7
    %#08 = weight f32[64,64] f32 @108
    %#09 = matmul %#07, %#08 transpose_b=true
)";

// Block #: a dense feed-forward of %#00 gives %#25.
const std::string dense = R"(
    %#21 = weight f32[32,64] f32 @121
    %#22 = matmul %#00, %#21 transpose_b=true
    %#23 = swish %#22
    %#24 = weight f32[64,32] f32 @124
    %#25 = matmul %#23, %#24 transpose_b=true
)";

// Block #: chooses experts %#34 for %#00; %#50 are their routing weights [2,tokens,1], %#44 is %#00
// as [1,tokens,64], %#43 is the weight of down.
const std::string choice = R"(
    %#31 = weight f32[4,64] f32 @131
    %#32 = matmul %#00, %#31 transpose_b=true
    %#33, %#34 = moe_router %#32, _, _ routing=softmax_topk top_k=2 normalise=false
    %#51 = transpose %#33, %8
    %#50 = reshape %#51, %9
    %#44 = reshape %#00, %5
    %#43 = weight f32[4,64,32] f32 @143
)";

// Block #: the chosen experts of %#00 give %#49 [2,tokens,64].
const std::string experts = choice + R"(
    %#41 = weight f32[4,32,64] f32 @141
    %#42 = weight f32[4,32,64] f32 @142
    %#45 = gather_matmul %#44, %#41, %#34, _
    %#46 = gather_matmul %#44, %#42, %#34, _
    %#47 = swish %#45
    %#48 = multiply %#47, %#46
    %#49 = gather_matmul %#48, %#43, %#34, _
)";

// Block #: sums the experts' results to %#61.
const std::string combine = R"(
    %#60 = multiply %#49, %#50
    %#61 = reduce_sum %#60, %10
)";

// `ours`, `rule` and `eager` count values of the width of the residual stream.
struct Structure {
    const char *name;
    std::string lines;
    size_t ours, rule, eager, eager_values;
};

const Structure structures[] = {
    // y = x + attention(norm x) + experts(norm x): the two branches are one sum
    {"ParallelBranches",
     numbered("%#00 = rms_norm %1, %4 epsilon=0.001" + attention + experts + combine, 1) +
         R"(
    %201 = add %109, %161
    %202 = add %201, %1
    %203 = rms_norm %202, %4 epsilon=0.001
    result %203)",
     1, 2, 2, 1 + CHOSEN},
    // y = x + experts(norm x) + sigmoid(gate) shared(norm x)
    {"SharedExpertWithItsOwnGate",
     numbered("%#00 = rms_norm %1, %4 epsilon=0.001" + dense + experts + combine, 1) + R"(
    %201 = weight f32[1,64] f32 @201
    %202 = matmul %100, %201 transpose_b=true
    %203 = sigmoid %202
    %204 = multiply %203, %125
    %205 = add %204, %161
    %206 = add %205, %1
    %207 = rms_norm %206, %4 epsilon=0.001
    result %207)",
     1, 2, 2, 1 + CHOSEN},
    // a factor for each expert and one for each column behind the down product
    {"FactorsBehindTheDownProduct",
     numbered("%#00 = rms_norm %1, %4 epsilon=0.001" + experts, 1) + R"(
    %201 = gather %11, %134, %12
    %202 = transpose %201, %8
    %203 = reshape %202, %9
    %204 = multiply %203, %149
    %205 = multiply %204, %150
    %206 = reduce_sum %205, %10
    %207 = multiply %206, %4
    %208 = add %1, %207
    %209 = rms_norm %208, %4 epsilon=0.001
    result %209)",
     1, 1, 1, CHOSEN},
    // rows of gate and up take turns in one weight, as gpt-oss has them
    {"InterleavedGateAndUp",
     numbered("%#00 = rms_norm %1, %4 epsilon=0.001" + choice, 1) + R"(
    %201 = weight f32[4,64,64] f32 @201
    %202 = gather_matmul %144, %201, %134, _
    %203 = const i64[1] {1}
    %204 = const i64[1] {2}
    %205 = const i64[1] {64}
    %206 = slice %202, %10, %205, %204, %204
    %207 = slice %202, %203, %205, %204, %204
    %208 = swish %206
    %209 = multiply %208, %207
    %210 = gather_matmul %209, %143, %134, _
    %211 = multiply %210, %150
    %212 = reduce_sum %211, %10
    %213 = add %1, %212
    %214 = rms_norm %213, %4 epsilon=0.001
    result %214)",
     1, 1, 1, CHOSEN},
    // Two residual streams: each block reads a mixture of both and is added to both. The streams
    // stay summands from block to block; only the mixtures that a norm reads are summed.
    {"TwoResidualStreams",
     numbered("%#00 = rms_norm %1, %4 epsilon=0.001" + attention, 1) + R"(
    %201 = multiply %109, %3
    %202 = add %1, %201
    %203 = add %2, %109
    %204 = multiply %203, %4
    %205 = add %202, %204)" +
         numbered("\n%#00 = rms_norm %205, %4 epsilon=0.001" + experts + combine, 3) + R"(
    %206 = multiply %361, %3
    %207 = add %202, %206
    %208 = add %203, %361
    %209 = add %207, %208
    %210 = rms_norm %209, %4 epsilon=0.001
    result %210)",
     2, 2, 2, 1 + CHOSEN},
};

class UnlistedReductions : public testing::TestWithParam<Structure>
{
};

TEST_P(UnlistedReductions, AreNoMoreThanThoseOfTheRule)
{
    const Structure &t = GetParam();
    const uint64_t value = WIDTH * sizeof(float);
    const double uneven[] = {3, 1, 2};
    const Graph g = parse(inputs + t.lines);
    ASSERT_TRUE(g);
    const Split s = plan(g, all_split());
    EXPECT_EQ(exchanged(s), (Sums{t.ours, t.ours * value}));
    EXPECT_LE(t.ours, t.rule);
    EXPECT_EQ(eager(s), (Sums{t.eager, t.eager_values * value}));
    expect_whole(g, all_split(3, uneven));
    expect_whole_in_all_ways(inputs + t.lines);
}

INSTANTIATE_TEST_SUITE_P(Structures, UnlistedReductions, testing::ValuesIn(structures),
                         [](const auto &i) { return i.param.name; });

} // namespace
