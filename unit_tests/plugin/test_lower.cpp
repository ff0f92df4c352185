/* SPDX-License-Identifier: Apache-2.0
 *
 * Small graphs as programs on OpenCL: they give the reference's results for every family of ops,
 * in f32 and f16.
 */
#include "unit_tests/plugin/plugin_test.h"

namespace
{

struct lower_case {
    const char *name, *text;
    std::map<std::string, int64_t> sizes;
};

void
PrintTo(const lower_case &c, std::ostream *out)
{
    *out << c.name;
}

std::vector<Tensor>
inputs_of(const xm_graph *g, const std::map<std::string, int64_t> &sizes)
{
    std::vector<Tensor> in;
    std::vector<xm_binding> bindings;
    for (auto &s : sizes)
        bindings.push_back({s.first.c_str(), s.second});
    xm_for_each_node(n, g)
    {
        if (n->op != XM_OP_PARAMETER)
            continue;
        xm_error err = {};
        std::vector<int64_t> dim(n->out[0].type.shape.rank);
        for (size_t i = 0; i < dim.size(); i++)
            EXPECT_XM_OK(xm_dim_eval(n->out[0].type.shape.dim[i], bindings.data(),
                                     (uint32_t)bindings.size(), &dim[i], &err));
        in.push_back(random_tensor(n->out[0].type.element, dim, (uint32_t)in.size() + 5));
    }
    return in;
}

void
expect_same(xm_request *r, const xm_graph *g, const std::vector<Tensor> &in,
            float tolerance)
{
    auto want = reference(g, in);
    auto got = must_infer(r, in);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); i++)
        expect_rows(got[i].get(), want[i].get(), tolerance,
                    "result " + std::to_string(i));
}

class Lower : public OpenClTest, public ::testing::WithParamInterface<lower_case>
{
  protected:
    void check(const char *precision, float tolerance)
    {
        Program p = must_compile(engine, parse(GetParam().text),
                                 {{"INFERENCE_PRECISION_HINT", precision}});
        ASSERT_TRUE(p);
        Request r = make_request(p.get());
        Graph g = parse(GetParam().text);
        expect_same(r.get(), g.get(), inputs_of(g.get(), GetParam().sizes), tolerance);
    }
};

TEST_P(Lower, EqualsTheReferenceInF32)
{
    check("f32", 1e-5f);
}

TEST_P(Lower, EqualsTheReferenceInF16)
{
    check("f16", 8e-3f);
}

const lower_case cases[] = {
    {"eltwise",
     R"(
        %0 = parameter f32[N,8] name="x"
        %1 = parameter f32[8] name="y"
        %2 = add %0, %1
        %3 = sigmoid %2
        %4 = const f32[] {2}
        %5 = multiply %3, %4
        %6 = maximum %5, %0
        %7 = swish %6
        result %7 name="r")",
     {{"N", 5}}},
    {"select_and_compare",
     R"(
        %0 = parameter f32[N,8] name="x"
        %1 = parameter f32[N,1] name="y"
        %2 = greater %0, %1
        %3 = select %2, %0, %1
        %4 = logical_not %2
        %5 = bitwise_not %2
        %6 = select %5, %1, %0
        result %3 name="a"
        result %4 name="b"
        result %6 name="c")",
     {{"N", 3}}},
    {"integers",
     R"(
        %0 = parameter i64[N] name="x"
        %1 = parameter i32[N] name="y"
        %2 = convert %1 to=i64
        %3 = add %0, %2
        %4 = const i64[] {3}
        %5 = multiply %3, %4
        %6 = convert %5 to=i32
        %7 = convert %5 to=f32
        %8 = convert %5 to=boolean
        %9 = clamp %3 min=0.5 max=1.5
        result %5 name="a"
        result %6 name="b"
        result %7 name="c"
        result %8 name="d"
        result %9 name="e")",
     {{"N", 6}}},
    /* f32 has no 2147483647, the upper bound */
    {"large_integers",
     R"(
        %0 = parameter i64[N] name="x"
        %1 = const i64[] {2147483646}
        %2 = add %0, %1
        %3 = clamp %2 min=-inf max=2147483647
        %4 = subtract %3, %1
        %5 = const i64[] {41}
        %6 = power %0, %5
        %7 = const i64[] {1000}
        %8 = floor_mod %6, %7
        result %4 name="a"
        result %8 name="b")",
     {{"N", 6}}},
    {"classifier",
     R"(
        %0 = parameter f32[N,16] name="x"
        %1 = weight f32[8,16] f32 @1
        %2 = matmul %0, %1 transpose_b=true
        %3 = const f32[8] {0.5, -1, 0.25, 0, 1, 2, -0.5, 0.125}
        %4 = add %2, %3
        %5 = softmax %4 axis=-1
        result %5 name="p")",
     {{"N", 3}}},
    {"matmul",
     R"(
        %0 = parameter f32[B,3,T,8] name="a"
        %1 = parameter f32[B,1,T,8] name="b"
        %2 = matmul %0, %1 transpose_b=true
        %3 = softmax %2 axis=3
        %4 = matmul %3, %1
        result %4 name="r")",
     {{"B", 2}, {"T", 5}}},
    {"quantised_linear",
     R"(
        %0 = parameter f32[B,T,32] name="x"
        %1 = weight f32[16,32] u4 group=16 scale=f16 zp=u4 @3
        %2 = matmul %0, %1 transpose_b=true
        result %2 name="y")",
     {{"B", 2}, {"T", 3}}},
    {"vector_times_weight",
     R"(
        %0 = parameter f32[32] name="x"
        %1 = weight f32[16,32] f32 @3
        %2 = matmul %0, %1 transpose_b=true
        result %2 name="y")",
     {}},
    {"weight_not_transposed",
     R"(
        %0 = parameter f32[N,16] name="x"
        %1 = weight f32[16,32] f32 @3
        %2 = matmul %0, %1
        result %2 name="y")",
     {{"N", 2}}},
    {"concat_and_split",
     R"(
        %0 = parameter f32[N,6] name="x"
        %1 = parameter f32[M,6] name="y"
        %2 = concat %0, %1, %0 axis=0
        %3 = const i64[] {-1}
        %4, %5, %6 = split %2, %3 n=3
        %7 = concat %6, %4 axis=-1
        %8 = const i64[2] {1, -1}
        %9, %10 = variadic_split %2, %3, %8
        result %7 name="a"
        result %5 name="b"
        result %9 name="c"
        result %10 name="d")",
     {{"N", 2}, {"M", 3}}},
    {"concat_of_many",
     R"(
        %0 = parameter f32[N,2] name="x"
        %1 = sigmoid %0
        %2 = concat %0, %1, %0, %1, %0, %1, %0, %1, %0, %1, %0, %1, %0, %1 axis=1
        result %2 name="a")",
     {{"N", 3}}},
    {"concat_of_constants",
     R"(
        %0 = parameter f32[N,2] name="x"
        %1 = const f32[1,2] {1, 2}
        %2 = const f16[1,2] {3, 4}
        %3 = convert %2 to=f32
        %4 = concat %1, %0, %3 axis=0
        result %4 name="a")",
     {{"N", 3}}},
    {"slices",
     R"(
        %0 = parameter f32[N,7] name="x"
        %1 = const i64[1] {-3}
        %2 = const i64[1] {9223372036854775807}
        %3 = const i64[1] {1}
        %4 = const i64[1] {1}
        %5 = slice %0, %1, %2, %3, %4
        %6 = const i64[2] {-1, 6}
        %7 = const i64[2] {-9223372036854775807, 0}
        %8 = const i64[2] {-1, -2}
        %9 = slice %0, %6, %7, %8
        result %5 name="a"
        result %9 name="b")",
     {{"N", 4}}},
    {"transpose_and_reshape",
     R"(
        %0 = parameter f32[B,T,2,4] name="x"
        %1 = const i64[4] {0, 2, 1, 3}
        %2 = transpose %0, %1
        %3 = const i64[3] {0, 2, -1}
        %4 = reshape %2, %3 special_zero=true
        %5 = const i64[1] {1}
        %6 = unsqueeze %4, %5
        %7 = const i64[0] {}
        %8 = transpose %0, %7
        result %6 name="a"
        result %8 name="b")",
     {{"B", 2}, {"T", 3}}},
    {"broadcast_and_tile",
     R"(
        %0 = parameter f32[N,1,3] name="x"
        %1 = shape_value i64[4] {2, N, 4, 3}
        %2 = broadcast %0, %1
        %3 = const i64[4] {2, 1, 3, 2}
        %4 = tile %0, %3
        %5 = const i64[3] {1, 4, 1}
        %6 = broadcast %0, %5 mode=bidirectional
        result %2 name="a"
        result %4 name="b"
        result %6 name="c")",
     {{"N", 2}}},
    {"tile_of_many_axes",
     R"(
        %0 = parameter f32[2,N,2,1,2] name="x"
        %1 = const i64[5] {2, 3, 2, 2, 2}
        %2 = tile %0, %1
        result %2 name="a")",
     {{"N", 2}}},
    {"reductions",
     R"(
        %0 = parameter f32[N,3,4] name="x"
        %1 = const i64[1] {-1}
        %2 = reduce_mean %0, %1 keep_dims=true
        %3 = const i64[2] {1, 2}
        %4 = reduce_sum %0, %3
        %5 = const i64[2] {2, 0}
        %6 = reduce_max %0, %5
        %7 = const i64[] {1}
        %8 = reduce_min %0, %7
        %9 = reduce_prod %0, %1
        result %2 name="a"
        result %4 name="b"
        result %6 name="c"
        result %8 name="d"
        result %9 name="e")",
     {{"N", 2}}},
    {"integer_reductions",
     R"(
        %0 = parameter i64[N,4] name="x"
        %1 = const i64[1] {1}
        %2 = reduce_sum %0, %1
        %3 = parameter i32[N,4] name="y"
        %4 = reduce_max %3, %1 keep_dims=true
        result %2 name="a"
        result %4 name="b")",
     {{"N", 3}}},
    {"topk",
     R"(
        %0 = parameter f32[N,16] name="x"
        %1 = const i64[] {3}
        %2, %3 = topk %0, %1 axis=-1 mode=max sort=value
        %4, %5 = topk %0, %1 axis=1 mode=min sort=value index_element_type=i64
        %6, %7 = topk %0, %1 axis=0 mode=max sort=value
        result %2 name="a"
        result %3 name="b"
        result %5 name="c"
        result %6 name="d")",
     {{"N", 4}}},
    {"gathers",
     R"(
        %0 = parameter i64[B,T] name="ids"
        %1 = parameter f32[4,N] name="x"
        %2 = const i64[] {0}
        %3 = gather %1, %0, %2
        %4 = const i64[] {-1}
        %5 = const i32[2] {0, -1}
        %6 = gather %1, %5, %4
        %7 = weight f32[4,32] u8 group=32 scale=f16 zp=u8 @7
        %8 = gather %7, %0, %2
        result %3 name="a"
        result %6 name="b"
        result %8 name="c")",
     {{"B", 2}, {"T", 3}, {"N", 5}}},
    {"on_the_host",
     R"(
        %0 = parameter f32[N,4] name="x"
        %1 = parameter i64[N,4] name="ids"
        %2 = const i64[] {1}
        %3 = cum_sum %0, %2
        %4 = gather_elements %3, %1 axis=1
        %5 = const i64[] {4}
        %6 = const f32[] {1}
        %7 = const f32[] {0}
        %8 = one_hot %1, %5, %6, %7
        %9 = scatter_elements_update %0, %1, %4, %2 reduction=sum
        %10 = sigmoid %9
        result %4 name="a"
        result %8 name="b"
        result %10 name="c")",
     {{"N", 3}}},
    {"range",
     R"(
        %0 = parameter f32[N,4] name="x"
        %1 = const i64[] {0}
        %2 = shape_value i64[] {N}
        %3 = const i64[] {1}
        %4 = range %1, %2, %3 output_type=i64
        %5 = convert %4 to=f32
        result %4 name="a"
        result %5 name="b")",
     {{"N", 7}}},
    {"weight_in_arithmetic",
     R"(
        %0 = parameter f32[N,16] name="x"
        %1 = weight f32[1,16] u8 group=16 scale=f16 zp=u8 @7
        %2 = multiply %0, %1
        result %2 name="a")",
     {{"N", 3}}},
    {"results_are_parameters",
     R"(
        %0 = parameter f32[N,4] name="x"
        %1 = parameter i64[N] name="y"
        %2 = const i64[2] {-1, 2}
        %3 = reshape %0, %2
        result %0 name="a"
        result %1 name="b"
        result %3 name="c")",
     {{"N", 3}}},
    {"results_are_constants",
     R"(
        %0 = parameter f32[N] name="x"
        %1 = const i64[2] {-1, 2}
        %2 = const f32[3] {1, 2, 3}
        %3 = const f16[2] {4, 5}
        %4 = shape_value i64[2] {N, 3}
        %5 = const boolean[2] {1, 0}
        result %1 name="a"
        result %2 name="b"
        result %3 name="c"
        result %4 name="d"
        result %5 name="e")",
     {{"N", 3}}},
    {"results_twice",
     R"(
        %0 = parameter f32[N,4] name="x"
        %1 = sigmoid %0
        %2 = const i64[1] {0}
        %3 = unsqueeze %1, %2
        result %1 name="a"
        result %1 name="b"
        result %3 name="c"
        result %0 name="d"
        result %0 name="e")",
     {{"N", 3}}},
    {"results_in_f16",
     R"(
        %0 = parameter f16[N,4] name="x"
        %1 = sigmoid %0
        result %1 name="a"
        result %0 name="b")",
     {{"N", 3}}},
    {"unused_parameters",
     R"(
        %0 = parameter f32[N,4] name="unused"
        %1 = parameter f32[N,4] name="x"
        %2 = abs %1
        result %2 name="a")",
     {{"N", 3}}},
    {"small_integers",
     R"(
        %0 = parameter u8[N] name="x"
        %1 = parameter i8[N] name="y"
        %2 = parameter boolean[N] name="z"
        %3 = convert %0 to=f32
        %4 = convert %1 to=i64
        %5 = convert %2 to=i32
        result %3 name="a"
        result %4 name="b"
        result %5 name="c"
        result %2 name="d"
        result %0 name="e")",
     {{"N", 5}}},
    {"doubles",
     R"(
        %0 = parameter f64[N] name="x"
        %1 = convert %0 to=f32
        %2 = sigmoid %1
        result %2 name="a")",
     {{"N", 5}}},
    {"scalars",
     R"(
        %0 = parameter f32[] name="x"
        %1 = exp %0
        result %1 name="a")",
     {}},
    {"empty",
     R"(
        %0 = parameter f32[N,4] name="x"
        %1 = sigmoid %0
        %2 = const i64[1] {1}
        %3 = reduce_sum %1, %2
        %4 = const f32[1,4] {1, 2, 3, 4}
        %5 = concat %1, %4 axis=0
        %6 = const i64[2] {1, 0}
        %7 = transpose %1, %6
        %8 = softmax %1 axis=1
        %9 = weight f32[8,4] f32 @1
        %10 = matmul %1, %9 transpose_b=true
        %11 = const i64[] {0}
        %12 = cum_sum %1, %11
        %13, %14 = split %1, %2 n=2
        %15 = const i64[] {2}
        %16, %17 = topk %1, %15 axis=1 mode=max sort=value
        result %3 name="a"
        result %5 name="b"
        result %7 name="c"
        result %8 name="d"
        result %10 name="e"
        result %12 name="f"
        result %14 name="g"
        result %17 name="h")",
     {{"N", 0}}},
};

INSTANTIATE_TEST_SUITE_P(Cases, Lower, ::testing::ValuesIn(cases),
                         [](const auto &info) { return info.param.name; });

/* ---- weights that share bytes ---- */

class SharedBytes : public OpenClTest
{
  protected:
    /* Returns y0 and y1 of x, by two weights of these formats; the second reads the first one's
     * bytes. */
    static Graph two(const std::string &first, const std::string &second)
    {
        Graph g = parse("%0 = parameter f32[N,64] name=\"x\"\n%1 = weight " + first +
                        "\n%2 = weight " + second +
                        "\n%3 = sin %0\n%4 = matmul %0, %1 transpose_b=true\n"
                        "%5 = matmul %3, %2 transpose_b=true\n"
                        "result %4 name=\"a\"\nresult %5 name=\"b\"\n");
        struct xm_weight *w[2] = {};
        size_t n = 0;
        xm_for_each_node(node, g.get()) if (node->op == XM_OP_WEIGHT && n < 2) w[n++] =
            &node->attr.weight;
        if (n < 2)
            return g;
        w[1]->data.p = w[0]->data.p;
        w[1]->scale.p = w[0]->scale.p;
        if (w[1]->zero_point.p)
            w[1]->zero_point.p = w[0]->zero_point.p;
        return g;
    }
};

/* Equal bytes in another format are another weight. */
TEST_F(SharedBytes, AreReadInTheFormatOfEach)
{
    const std::string u8 = "f32[16,64] u8 group=16 scale=f16 zp=u8 @7";
    for (const char *other : {"f32[16,64] u8 group=32 scale=f16 zp=u8 @7",
                              "f32[16,64] u8 group=16 scale=bf16 zp=u8 @7",
                              "f32[16,64] u8 group=16 scale=f16 zp=i8 @7",
                              "f32[16,64] i8 group=16 scale=f16 zp=u8 @7",
                              "f32[16,64] u8 group=16 scale=f16 @7"}) {
        SCOPED_TRACE(other);
        Program p =
            must_compile(engine, two(u8, other), {{"INFERENCE_PRECISION_HINT", "f32"}});
        ASSERT_TRUE(p);
        EXPECT_EQ(p->n_weights, 2u);
        Request r = make_request(p.get());
        Graph g = two(u8, other);
        std::vector<Tensor> in = {random_tensor(XM_F32, {3, 64}, 5)};
        auto want = reference(g.get(), in), got = must_infer(r.get(), in);
        ASSERT_EQ(got.size(), 2u);
        for (size_t i = 0; i < 2; i++)
            expect_rows(got[i].get(), want[i].get(), 1e-5f, std::to_string(i));
    }
    Program p = must_compile(engine, two(u8, u8), {});
    EXPECT_EQ(p->n_weights, 1u) << "one weight is on the device once";
}

/* Half of the experts stay on the host, chosen by layer. Experts that one layer keeps on the host
 * are on the device for the other, though both read the same bytes. */
TEST_F(SharedBytes, AreInThePlaceOfEach)
{
    const char *const text = R"(
        %0 = parameter f32[1,N,64] name="x"
        %1 = parameter i32[N,2] name="ids"
        %2 = weight f32[4,16,64] u8 group=16 scale=f16 zp=u8 @7
        %3 = gather_matmul %0, %2, %1, _
        %4 = sin %0
        %5 = gather_matmul %4, %2, %1, _
        result %3 name="a"
        result %5 name="b")";
    for (const char *ratio : {"0", "50", "100"}) {
        Program p = must_compile(engine, parse(text), {{"OFFLOAD_RATIO", ratio}});
        ASSERT_TRUE(p);
        EXPECT_EQ(p->n_weights, ratio[0] == '5' ? 2u : 1u) << ratio;
        uint32_t on_host = 0;
        for (uint32_t i = 0; i < p->n_weights; i++)
            on_host += p->weights[i]->on_host;
        EXPECT_EQ(on_host, ratio[0] == '0' ? 0u : 1u) << ratio;
    }
}

class LowerRefuses : public OpenClTest
{
};

TEST_F(LowerRefuses, ResultsThatHaveNoBytes)
{
    Program p(nullptr, xm_program_unref);
    EXPECT_NE(compile(engine, parse(R"(
        %0 = parameter u4[N] name="x"
        %1 = parameter f64[N] name="y"
        result %0 name="a"
        result %1 name="b")"),
                      {}, p, &err),
              XM_OK);
    EXPECT_STRNE(err.text, "");
}

} // namespace
