/* SPDX-License-Identifier: Apache-2.0
 *
 * From a routing as files write it to the kernels of the experts: with any form of the arithmetic
 * the experts are fused, and every row equals the reference's.
 */
#include "unit_tests/plugin/plugin_test.h"
#include "unit_tests/sample.h"

namespace
{

/* T tokens of width 64 and a router for 8 experts of width 32 with logits %21; `routing` chooses
 * 2 experts a token: weights %50 and ids %32 (%108 if it chooses twice). `experts` computes %65
 * from the tiled tokens %64. */
const char *const apart = R"(
        %70 = weight f32[8,32,64] u4 group=32 scale=f16 zp=u4 @6
        %71 = weight f32[8,32,64] u4 group=32 scale=f16 zp=u4 @7
        %72 = weight f32[8,64,32] i8 group=32 scale=f16 @8
        %73 = matmul %64, %70 transpose_b=true
        %74 = matmul %64, %71 transpose_b=true
        %75 = swish %73
        %76 = multiply %75, %74
        %65 = matmul %76, %72 transpose_b=true)";

std::string
model(const std::string &routing, const std::string &experts = apart,
      const std::string &tail = "\nresult %90 name=\"y\"")
{
    return R"(
        %0 = parameter f32[T,64] name="x"
        %20 = weight f32[8,64] f32 @20
        %21 = matmul %0, %20 transpose_b=true
        %22 = const i64[] {2}
        %23 = const i64[1] {1})" +
           routing + R"(
        %60 = const f32[] {0}
        %61 = shape_value i64[2] {T, 8}
        %62 = const i64[2] {8, 1}
        %63 = tile %0, %62
        %66 = shape_value i64[3] {8, T, 64}
        %64 = reshape %63, %66)" +
           experts + R"(
        %80 = broadcast %60, %61
        %81 = const i64[] {1}
        %82 = scatter_elements_update %80, )" +
           std::string(routing.find("%108") == std::string::npos ? "%32" : "%108") +
           R"(, %50, %81
        %83 = const i64[2] {1, 0}
        %84 = transpose %82, %83
        %85 = shape_value i64[3] {8, T, 1}
        %86 = reshape %84, %85
        %87 = multiply %65, %86
        %88 = const i64[1] {0}
        %90 = reduce_sum %87, %88)" +
           tail + "\n";
}

std::string
softmax(const std::string &division)
{
    return R"(
        %30 = softmax %21 axis=1
        %31, %32 = topk %30, %22 axis=1 mode=max sort=value
        %36 = reduce_sum %31, %23 keep_dims=true)" +
           division;
}

/* DeepSeek-V3's choice, with bias and factor: the best 2 of 8 experts in 4 groups, from the 2
 * groups with the largest sums of their 2 best scores. */
const char *const groups = R"(
        %30 = sigmoid %21
        %31 = const f32[1,8] {0.1, -0.2, 0.05, 0.3, -0.1, 0.15, 0.25, -0.3}
        %32 = add %30, %31
        %33 = shape_value i64[3] {T, 4, 2}
        %34 = reshape %32, %33
        %35, %36 = topk %34, %22 axis=2 mode=max sort=value
        %37 = const i64[1] {2}
        %38 = reduce_sum %35, %37
        %39, %40 = topk %38, %22 axis=1 mode=max sort=value
        %41 = const f32[] {0}
        %42 = shape_value i64[2] {T, 4}
        %43 = broadcast %41, %42
        %44 = const f32[] {1}
        %45 = shape_value i64[2] {T, 2}
        %46 = broadcast %44, %45
        %47 = const i64[] {1}
        %48 = scatter_elements_update %43, %40, %46, %47
        %100 = shape_value i64[3] {T, 4, 1}
        %101 = reshape %48, %100
        %102 = broadcast %101, %33
        %103 = shape_value i64[2] {T, 8}
        %104 = reshape %102, %103
        %105 = greater %104, %41
        %106 = select %105, %32, %41
        %107, %108 = topk %106, %22 axis=1 mode=max sort=value
        %116 = gather_elements %30, %108 axis=1
        %109 = reduce_sum %116, %23 keep_dims=true
        %110 = const f32[1,1] {1e-20}
        %111 = add %109, %110
        %112 = divide %116, %111
        %113 = const f32[] {2.5}
        %50 = multiply %112, %113)";

struct spelling {
    const char *name;
    std::string routing;
    /* A rule recognizes the router: the fused op reads its logits. */
    bool is_router;
};

const spelling spellings[] = {
    {"Division", softmax("\n%50 = divide %31, %36"), true},
    {"Power",
     softmax("\n%33 = const f32[] {-1}\n%34 = power %36, %33\n%50 = multiply %31, %34"),
     true},
    {"Reciprocal",
     softmax("\n%33 = const f32[] {1}\n%34 = divide %33, %36\n%50 = multiply %31, %34"),
     true},
    {"Clamp", softmax("\n%34 = clamp %36 min=0.75 max=inf\n%50 = divide %31, %34"), true},
    {"Maximum",
     softmax("\n%33 = const f32[] {0.75}\n%34 = maximum %36, %33\n%50 = divide %31, %34"),
     true},
    {"Unknown", softmax("\n%34 = sqrt %36\n%50 = divide %31, %34"), false},
    {"Groups", groups, false},
};

int
count_steps(const xm_program *p, enum xm_op op)
{
    int n = 0;
    for (uint32_t i = 0; i < p->n_steps; i++)
        n += p->steps[i].node && p->steps[i].node->op == op;
    return n;
}

class Routing : public OpenClTest
{
  protected:
    void TearDown() override
    {
        unsetenv("XM_FORCE");
    }

    /* Compares every row of every result, for few tokens and for many. */
    void check(const std::string &text, const Properties &properties,
               const char *precision = "f32", bool is_fused = true)
    {
        const xm_compile_options keep = {true, false};
        Properties all = properties;
        all.push_back({"INFERENCE_PRECISION_HINT", precision});
        Program p = must_compile(engine, parse(text), all, &keep);
        ASSERT_TRUE(p);
        EXPECT_EQ(count_steps(p.get(), XM_OP_MOE_3GEMM_FUSED_COMPRESSED), is_fused);
        EXPECT_EQ(count_steps(p.get(), XM_OP_GATHER_MATMUL) == 0, is_fused);
        Request r = make_request(p.get());
        Graph g = parse(text);
        for (int64_t tokens : {1, 3, 40}) {
            SCOPED_TRACE(tokens);
            std::vector<Tensor> in;
            in.push_back(random_tensor(XM_F32, {tokens, 64}, 5));
            if (text.find("name=\"each\"") != std::string::npos)
                in.push_back(random_tensor(XM_F32, {8, tokens, 1}, 6));
            const auto want = reference(g.get(), in), got = must_infer(r.get(), in);
            ASSERT_EQ(got.size(), want.size());
            for (size_t i = 0; i < got.size(); i++)
                expect_rows(got[i].get(), want[i].get(),
                            strcmp(precision, "f32") == 0 ? 1e-4f : 8e-3f, "result");
        }
    }
};

class Spelling : public Routing, public ::testing::WithParamInterface<spelling>
{
};

TEST_P(Spelling, KeepsTheFusedExperts)
{
    const std::vector<const char *> families = {"", "vec", "sg", "gen", "ref"};
    for (const char *family : sample::of(families, 2)) {
        setenv("XM_FORCE", family, 1);
        SCOPED_TRACE(family);
        check(model(GetParam().routing), {});
    }
}

/* Checks the form of the fused op, and that its experts need equally many launches in both forms.
 */
TEST_P(Spelling, CostsLaunchesForItsArithmeticOnly)
{
    const xm_compile_options keep = {true, false};
    Program p = must_compile(engine, parse(model(GetParam().routing)), {}, &keep);
    ASSERT_TRUE(p);
    const xm_node *moe = nullptr;
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].node && p->steps[i].node->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED)
            moe = p->steps[i].node;
    ASSERT_TRUE(moe);
    EXPECT_EQ(xm_is_none(xm_in(moe, XM_MOE_IDS)), GetParam().is_router);
    EXPECT_EQ(p->n_steps == 2, GetParam().is_router) << "a product and the experts";
}

void
PrintTo(const spelling &s, std::ostream *out)
{
    *out << s.name;
}

INSTANTIATE_TEST_SUITE_P(Routings, Spelling, ::testing::ValuesIn(spellings),
                         [](const auto &info) { return std::string(info.param.name); });

/* If others read the router's result, the router is an op of its own before the experts. */
TEST_F(Routing, OfARouterOfItsOwnFeedsTheExperts)
{
    check(model(softmax("\n%50 = divide %31, %36"), apart,
                "\nresult %90 name=\"y\"\nresult %50 name=\"w\""),
          {});
}

/* With a shared expert and a residual. */
TEST_F(Routing, ByIdsTakesSharedExpertAndAddend)
{
    const std::string more = R"(
        %200 = weight f32[48,64] u8 group=32 scale=f16 @40
        %201 = weight f32[48,64] u8 group=32 scale=f16 @41
        %202 = weight f32[64,48] u8 group=16 scale=f16 @42
        %203 = weight f32[1,64] f32 @43
        %204 = matmul %0, %200 transpose_b=true
        %205 = matmul %0, %201 transpose_b=true
        %206 = swish %204
        %207 = multiply %206, %205
        %208 = matmul %207, %202 transpose_b=true
        %209 = matmul %0, %203 transpose_b=true
        %210 = sigmoid %209
        %211 = multiply %210, %208
        %212 = add %90, %211
        %213 = add %0, %212
        result %213 name="y")";
    for (const char *precision : {"f32", "f16"})
        check(model(groups, apart, more), {}, precision);
    const xm_compile_options keep = {true, false};
    Program p = must_compile(engine, parse(model(groups, apart, more)), {}, &keep);
    EXPECT_EQ(count_steps(p.get(), XM_OP_ADD), 2)
        << "bias and epsilon of the choice only";
}

/* Experts on the host, some in a cache on the device. */
TEST_F(Routing, ByIdsTakesExpertsFromTheCache)
{
    for (const std::string &routing : {spellings[0].routing, std::string(groups)})
        check(model(routing), {{"OFFLOAD_RATIO", "100"}, {"XM_EXPERT_CACHE", "1"}});
}

/* Returns a constant with values that depend on the element and the seed. */
std::string
constant(int name, int rows, int seed)
{
    std::string text =
        "\n%" + std::to_string(name) + " = const f32[8,1," + std::to_string(rows) + "] {";
    for (int i = 0; i < 8 * rows; i++)
        text += (i ? ", " : "") + std::to_string((i * 37 + seed * 11) % 29 / 29.0 - 0.5);
    return text + "}";
}

/* Returns experts with separate weights and biases for gate (%123) and up (%124). `middle`
 * computes %132 from both. */
std::string
biased(const std::string &middle)
{
    return constant(120, 32, 1) + constant(121, 32, 2) + constant(122, 64, 3) + R"(
        %70 = weight f32[8,32,64] u4 group=32 scale=f16 zp=u4 @6
        %71 = weight f32[8,32,64] u4 group=32 scale=f16 zp=u4 @7
        %72 = weight f32[8,64,32] i8 group=32 scale=f16 @8
        %73 = matmul %64, %70 transpose_b=true
        %74 = matmul %64, %71 transpose_b=true
        %123 = add %73, %120
        %124 = add %121, %74)" +
           middle + R"(
        %133 = matmul %132, %72 transpose_b=true
        %65 = add %133, %122)";
}

const char *const unit = R"(
        %131 = swish %123
        %132 = multiply %124, %131)";
const char *const clamped = R"(
        %125 = const f32[] {0.25}
        %126 = minimum %123, %125
        %127 = const f32[] {1.702}
        %128 = swish %126, %127
        %129 = clamp %124 min=-0.25 max=0.25
        %130 = const f32[] {1}
        %131 = add %129, %130
        %132 = multiply %131, %128)";

TEST_F(Routing, ExpertsWithABiasForEachWeightAreFused)
{
    const std::vector<const char *> families = {"", "vec", "sg", "gen", "ref"};
    for (const char *middle : {unit, clamped}) {
        for (const char *family : sample::of(families, 2)) {
            setenv("XM_FORCE", family, 1);
            SCOPED_TRACE(family);
            check(model(spellings[0].routing, biased(middle)), {});
        }
    }
}

/* Inserts the factor of activation-aware weight quantization, [8,1,32], after `piece`. */
std::string
factored(std::string middle, const char *piece)
{
    const std::string of = std::string(piece) + " = ";
    middle.replace(middle.find(of), of.size(), "%140 = ");
    return constant(141, 32, 4) +
           middle.insert(middle.find('\n', middle.find("%140")),
                         "\n        " + of + "multiply %140, %141");
}

TEST_F(Routing, ExpertsWithAFactorAreFused)
{
    const std::vector<const char *> families = {"", "vec", "sg", "gen", "ref"};
    const std::string middles[] = {factored(unit, "%131"), factored(clamped, "%128"),
                                   factored(clamped, "%131")};
    for (const std::string &middle : middles) {
        for (const char *family : sample::of(families, 2)) {
            setenv("XM_FORCE", family, 1);
            SCOPED_TRACE(family);
            check(model(spellings[0].routing, biased(middle)), {});
            check(model(spellings[0].routing, biased(middle)), {}, "f16");
        }
    }
    unsetenv("XM_FORCE");
    check(model(spellings[0].routing, biased(middles[0])),
          {{"OFFLOAD_RATIO", "100"}, {"XM_EXPERT_CACHE", "1"}});
}

/* Ops that no fused op computes run on the chosen experts, some of them on the host. */
TEST_F(Routing, OperationsAnywhereAreLeftToGatherMatmul)
{
    for (const std::string &middle : {
             factored(unit, "%131") + "\n%144 = tanh %132",
             std::string(unit) + constant(141, 32, 4) + "\n%144 = subtract %141, %132",
             std::string(unit) + "\n%143 = softmax %132 axis=2\n%144 = abs %143",
             std::string(unit) + "\n%143 = const f32[8,1,1] {1, 2, 3, 4, 5, 6, 7, 8}"
                                 "\n%144 = add %143, %132",
             std::string(unit) + "\n%145 = parameter f32[8,T,1] name=\"each\""
                                 "\n%144 = add %145, %132",
         }) {
        std::string experts = biased(middle);
        experts.replace(experts.find("%133 = matmul %132"), 18, "%133 = matmul %144");
        SCOPED_TRACE(middle);
        check(model(spellings[0].routing, experts), {}, "f32", false);
    }
}

/* A softmax over the tokens joins them: every expert computes every token, on the host. */
TEST_F(Routing, WhatJoinsTokensIsComputedByEveryExpert)
{
    std::string experts = biased(std::string(unit) + "\n%144 = softmax %132 axis=1");
    experts.replace(experts.find("%133 = matmul %132"), 18, "%133 = matmul %144");
    check(model(spellings[0].routing, experts), {}, "f32", false);
}

/* A swish whose gate is clamped to another limit than up is not a form of the fused op. */
TEST_F(Routing, OtherClampsAreLeftToGatherMatmul)
{
    std::string other = clamped;
    other.replace(other.find("max=0.25"), 8, "max=0.5 ");
    const xm_compile_options keep = {true, false};
    Program p = must_compile(engine, parse(model(spellings[0].routing, biased(other))),
                             {}, &keep);
    ASSERT_TRUE(p);
    EXPECT_EQ(count_steps(p.get(), XM_OP_GATHER_MATMUL), 3);
}

} // namespace
