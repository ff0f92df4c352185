// SPDX-License-Identifier: Apache-2.0
//
// The per-expert form of older exporters as graph text: every expert gathers its own tokens, so
// sizes depend on the routing.
#ifndef XM_UNIT_TESTS_PLUGIN_R0_GRAPH_H
#define XM_UNIT_TESTS_PLUGIN_R0_GRAPH_H

#include <string>

// T tokens of width 8 through 4 experts of inner width 6; each token has 2 experts.
inline std::string
r0_graph()
{
    std::string text = R"(
%0 = parameter f32[tokens,8] name="x"
%1 = parameter f32[tokens,4] name="logits"
%100 = const i64[] {2}
%101 = const i64[] {0}
%102 = const i64[1] {1}
%103 = const i64[] {4}
%104 = const i64[] {1}
%105 = const f32[] {0}
%2 = softmax %1 axis=1
%3, %4 = topk %2, %100 axis=1 mode=max sort=value
%5 = reduce_sum %3, %102 keep_dims=true
%6 = divide %3, %5
%7 = one_hot %4, %103, %104, %101 axis=2
%106 = const i64[3] {2, 1, 0}
%8 = transpose %7, %106
%9 = multiply %0, %105
)";
    std::string sum = "%9";
    for (int e = 0; e < 4; e++) {
        auto v = [e](int n) { return "%" + std::to_string(1000 + 100 * e + n); };
        auto line = [&](int n, const std::string &rhs) {
            text += v(n) + " = " + rhs + "\n";
        };
        line(0, "const i64[] {" + std::to_string(e) + "}");
        line(1, "gather %8, " + v(0) + ", %101");
        line(2, "non_zero " + v(1));
        text += v(3) + ", " + v(4) + " = split " + v(2) + ", %101 n=2\n";
        line(5, "squeeze " + v(3) + ", %101");
        line(6, "squeeze " + v(4) + ", %101");
        line(7, "gather %0, " + v(6) + ", %101");
        line(8, "weight f32[6,8] f32 @" + std::to_string(10 * e + 1));
        line(9, "weight f32[6,8] f32 @" + std::to_string(10 * e + 2));
        line(10, "weight f32[8,6] f32 @" + std::to_string(10 * e + 3));
        line(11, "matmul " + v(7) + ", " + v(8) + " transpose_b=true");
        line(12, "swish " + v(11));
        line(13, "matmul " + v(7) + ", " + v(9) + " transpose_b=true");
        line(14, "multiply " + v(12) + ", " + v(13));
        line(15, "matmul " + v(14) + ", " + v(10) + " transpose_b=true");
        line(16, "unsqueeze " + v(6) + ", %104");
        line(17, "unsqueeze " + v(5) + ", %104");
        line(18, "concat " + v(16) + ", " + v(17) + " axis=1");
        line(19, "gather_nd %6, " + v(18));
        line(20, "unsqueeze " + v(19) + ", %104");
        line(21, "multiply " + v(15) + ", " + v(20));
        line(22, "shape_of " + v(21));
        line(23, "broadcast " + v(16) + ", " + v(22) + " mode=numpy");
        line(24, "scatter_elements_update " + sum + ", " + v(23) + ", " + v(21) +
                     ", %101 reduction=sum");
        sum = v(24);
    }
    return text + "result " + sum + " name=\"y\"\n";
}

#endif
