/* SPDX-License-Identifier: Apache-2.0
 *
 * Expert blocks as graph text: E = 4 experts, K = 2 chosen, H = 8, I = 4. The functions return
 * lines that are concatenated, so that each comment names the values that others may use.
 */
#ifndef XM_UNIT_TESTS_PASSES_MOE_TEXT_H
#define XM_UNIT_TESTS_PASSES_MOE_TEXT_H

#include <string>

/* Tokens %0, routing weights %1 and scores %2 as parameters; %5: ids of the two chosen experts.
 * Every block below ends in the result %50. */
inline std::string
routing_parameters()
{
    return R"(
        %0 = parameter f32[T,8] name="x"
        %1 = parameter f32[T,2] name="weights"
        %2 = parameter f32[T,4] name="scores"
        %3 = const i64[] {2}
        %4, %5 = topk %2, %3 axis=1 mode=max sort=value)";
}

inline std::string
expert_weights()
{
    return R"(
        %6 = weight f32[4,4,8] u4 group=4 scale=f16 zp=u4 @6
        %7 = weight f32[4,4,8] u4 group=4 scale=f16 zp=u4 @7
        %8 = weight f32[4,8,4] u4 group=4 scale=f16 zp=u4 @8)";
}

/* Routing weights scattered over the experts, transposed and reshaped to [4,T,1]: %27. */
inline std::string
scattered()
{
    return R"(
        %20 = const f32[] {0}
        %21 = shape_value i64[2] {T, 4}
        %22 = broadcast %20, %21
        %23 = const i64[] {1}
        %24 = scatter_elements_update %22, %5, %1, %23
        %25 = const i64[2] {1, 0}
        %26 = transpose %24, %25
        %28 = shape_value i64[3] {4, T, 1}
        %27 = reshape %26, %28)";
}

/* Results of the experts [4,T,8]: %17. */
inline std::string
three_matmuls()
{
    return R"(
        %9 = const i64[2] {4, 1}
        %10 = tile %0, %9
        %11 = shape_value i64[3] {4, T, 8}
        %12 = reshape %10, %11
        %13 = matmul %12, %6 transpose_b=true
        %14 = matmul %12, %7 transpose_b=true
        %16 = glu %13, %14
        %17 = matmul %16, %8 transpose_b=true)";
}

inline std::string
sum()
{
    return R"(
        %30 = multiply %17, %27
        %31 = const i64[1] {0}
        %50 = reduce_sum %30, %31
        result %50 name="y")";
}

inline std::string
three_gemm_block()
{
    return routing_parameters() + expert_weights() + three_matmuls() + scattered() +
           sum();
}

/* The same block, with routing weights and results reshaped to four dimensions before the sum. */
inline std::string
three_gemm_block_4d()
{
    return routing_parameters() + expert_weights() + three_matmuls() + R"(
        %20 = const f32[] {0}
        %21 = shape_value i64[2] {T, 4}
        %22 = broadcast %20, %21
        %23 = const i64[] {1}
        %24 = scatter_elements_update %22, %5, %1, %23
        %25 = const i64[2] {1, 0}
        %26 = transpose %24, %25
        %28 = shape_value i64[4] {4, 1, T, 1}
        %27 = reshape %26, %28
        %29 = shape_value i64[4] {4, 1, T, 8}
        %32 = reshape %17, %29
        %30 = multiply %27, %32
        %31 = const i64[1] {0}
        %50 = reduce_sum %30, %31
        result %50 name="y")";
}

/* Gate %70 and up %66 are alternating columns of the product %61. */
inline std::string
columns(const char *gate_first = "%65", const char *up_first = "%62")
{
    return R"(
        %62 = const i64[1] {1}
        %63 = const i64[1] {9223372036854775807}
        %64 = const i64[1] {2}
        %65 = const i64[1] {0}
        %66 = slice %61, )" +
           std::string(up_first) + ", %63, %64, %64\n%70 = slice %61, " + gate_first +
           ", %63, %64, %64";
}

/* Gate %70 and up %66 are the halves of the product %61. */
inline std::string
halves(const char *gate_first, const char *up_first)
{
    return R"(
        %62 = const i64[1] {1}
        %63 = const i64[1] {4}
        %64 = const i64[1] {2}
        %65 = const i64[1] {0}
        %81 = const i64[1] {8}
        %66 = slice %61, )" +
           std::string(up_first) + ", %62, %64\n%70 = slice %61, " + gate_first +
           ", %62, %64";
}

/* The block with gate and up in one product (2-GEMM). Biases [4,1,n] are blobs; `parts` are the
 * lines that split the product %61 into gate %70 and up %66. */
inline std::string
two_gemm_block(const std::string &parts = columns())
{
    return routing_parameters() + R"(
        %6 = weight f32[4,8,8] u4 group=4 scale=f16 zp=u4 @6
        %8 = weight f32[4,8,4] u4 group=4 scale=f16 zp=u4 @8
        %9 = const i64[2] {4, 1}
        %10 = tile %0, %9
        %11 = shape_value i64[3] {4, T, 8}
        %12 = reshape %10, %11
        %13 = matmul %12, %6 transpose_b=true
        %60 = const f32[4,1,8] @60
        %61 = add %13, %60)" +
           parts + R"(
        %67 = clamp %66 min=-0.5 max=0.5
        %68 = const f32[1,1,1] {1}
        %69 = add %67, %68
        %71 = const f32[1,1,1] {0.5}
        %72 = minimum %70, %71
        %73 = const f32[] {1.702}
        %74 = swish %72, %73
        %75 = multiply %69, %74
        %76 = matmul %75, %8 transpose_b=true
        %77 = const f32[4,1,8] @77
        %17 = add %76, %77)" +
           scattered() + sum();
}

#endif
