/* SPDX-License-Identifier: Apache-2.0
 *
 * Random graphs in text form for every op: the last line is the node under test, the lines before
 * it are its operands. Sizes and attributes are drawn at random.
 *
 * The name of a parameter says which values its elements may have: "any" (-1 to 1), "above"
 * (above zero), "above1" (above one), "below4" (whole numbers from 0 to 3).
 */
#ifndef XM_UNIT_TESTS_GRAPH_ALGEBRA_CASES_H
#define XM_UNIT_TESTS_GRAPH_ALGEBRA_CASES_H

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

class Text
{
  public:
    explicit Text(unsigned seed) : random(seed)
    {
    }
    std::string lines;
    // Bit mask of operands in which the result may be linear although the op does not claim so:
    // the test skips them when it looks for operands that are not linear.
    uint64_t not_asked = 0;

    int below(int n)
    {
        return (int)(random() % (unsigned)n);
    }
    bool maybe()
    {
        return below(2) != 0;
    }
    std::string any(const std::vector<std::string> &choices)
    {
        return choices[random() % choices.size()];
    }
    std::string line(const std::string &what)
    {
        lines += "%" + std::to_string(n) + " = " + what + "\n";
        return "%" + std::to_string(n++);
    }
    std::string in(const std::string &dims, const std::string &kind = "any",
                   const std::string &type = "f32")
    {
        return line("parameter " + type + "[" + dims + "] name=\"" + kind + "\"");
    }
    std::string ids(const std::string &dims, int limit, const std::string &type = "i64")
    {
        return in(dims, "below" + std::to_string(limit), type);
    }
    std::string ints(const std::string &values)
    {
        long count = 1 + std::count(values.begin(), values.end(), ',');
        return line("const i64[" + std::to_string(values.empty() ? 0 : count) + "] {" +
                    values + "}");
    }
    std::string number(const std::string &value)
    {
        return line("const i64[] {" + value + "}");
    }
    std::string option(const std::string &value)
    {
        return maybe() ? value : "_";
    }
    void op(const std::string &name, const std::vector<std::string> &operands,
            const std::string &attributes = "", int results = 1)
    {
        for (int i = 0; i < results && name != "result"; i++)
            lines += (i ? ", %" : "%") + std::to_string(n + i);
        lines += (name == "result" ? "" : " = ") + name;
        for (size_t i = 0; i < operands.size(); i++)
            lines += (i ? ", " : " ") + operands[i];
        lines += " " + attributes + "\n";
    }

  private:
    std::mt19937 random;
    int n = 0;
};

using Make = std::function<void(Text &t, const std::string &op)>;
struct AlgebraCase {
    std::vector<std::string> ops;
    Make make;
};

/* clang-format off */
inline void
unary(Text &t, const std::string &op)
{
    t.op(op, {t.in("3,4")});
}

inline void
binary(Text &t, const std::string &op)
{
    t.op(op, {t.in(t.any({"3,4", "1,4", "2,3,4"})), t.in(t.any({"3,4", "4", "3,1", "1"}))});
}

inline void
binary_above(Text &t, const std::string &op)
{
    t.op(op, {t.in("3,4", "above"), t.in(t.any({"3,4", "4"}), "above")});
}

inline void
binary_flags(Text &t, const std::string &op)
{
    t.op(op, {t.in("3,4", "below2", "boolean"), t.in("4", "below2", "boolean")});
}

inline void
binary_ints(Text &t, const std::string &op)
{
    t.op(op, {t.ids("3,4", 16), t.ids("4", 16)});
}

inline void
reduction(Text &t, const std::string &op)
{
    t.op(op, {t.in("3,2,4"), t.ints(t.any({"0", "-1", "1,2", "2,0"}))},
         t.maybe() ? "keep_dims=true" : "");
}

inline void
sliced(Text &t, const std::string &op)
{
    std::string x = t.in("4,6"), from = t.ints("1"), to = t.ints("5"), by = t.ints(t.any({"1", "2"}));
    if (op == "strided_slice")
        return t.op(op, {x, from, to, by}, "begin_mask=\"0\" end_mask=\"0\"");
    t.op(op, t.maybe() ? std::vector<std::string>{x, from, to, by, t.ints("1")}
                       : std::vector<std::string>{x, t.ints(t.any({"0", "1"})), t.ints("4"), by});
}

inline void
scatter(Text &t, const std::string &op)
{
    const std::string reduction = t.any({"none", "sum", "max", "min", "prod"}), how = "reduction=" + reduction;
    // "prod" is linear in the data unless an index occurs twice.
    t.not_asked = reduction == "prod" ? ~0ull : 0;
    if (op == "scatter_nd_update")
        return t.op(op, {t.in("4,3"), t.ids("2,1", 4), t.in("2,3")}, how);
    t.op(op, {t.in("4,3"), t.ids("2,3", 4), t.in("2,3"), t.number("0")}, how);
}

inline void
attention(Text &t, const std::string &op)
{
    const std::string none = "_";
    bool rotated = t.maybe(), normed = t.maybe();
    const std::string kv = t.any({"2", "1"});
    std::string q = t.in("2,3,4,6"), k = t.in("2,3," + kv + ",6"), v = t.in("2,3," + kv + ",4");
    std::string mask = t.maybe() ? t.in(t.any({"2,4,3,5", "1,1,3,5", "1,4,3,5"})) : none;
    std::string sinks = t.maybe() ? t.in("4") : none, table = rotated ? t.in("2,3,4") : none;
    t.op(op, {q, k, v, t.maybe() ? t.ids("2", 2) : none, t.maybe() ? t.ids("2,5", 2) : none,
              mask, sinks, table, rotated ? t.in("2,3,4") : none,
              normed ? t.in("6") : none, normed ? t.in("6") : none, t.maybe() ? t.in("4") : none},
         "scale=0.5 causal=true key_state=\"k\" value_state=\"v\" epsilon=0.001");
}

inline void
linear(Text &t, const std::string &op)
{
    const std::string x = t.in("2,3,4"), none = "_";
    t.not_asked = ~0x3ull; // all operands from the weights on
    if (t.maybe()) { // a gated linear unit
        std::string factor = none, w = t.in("6,4"), bias = t.maybe() ? t.in("6") : none;
        std::string slice;
        int form = t.below(3);
        if (form == 0)
            return t.op(op, {x, none, w, bias, t.in("6,4"), t.maybe() ? t.in("6") : none}, "glu=true");
        return t.op(op, {x, t.in(form == 1 ? "2,3,6" : "2,3,5,6"), w, bias},
                    form == 1 ? "glu=true" : "glu=true slice=3");
    }
    int segments = 1 + t.below(3);
    std::string rows[] = {"6", "8", "2"};
    std::vector<std::string> in = {x, segments == 1 && t.maybe() ? t.in("2,3,6") : none};
    for (int s = 0; s < segments; s++) {
        in.push_back(t.in(rows[s] + ",4"));
        in.push_back(t.maybe() ? t.in(rows[s]) : none);
    }
    t.op(op, in, "", segments);
}

inline void
experts(Text &t, const std::string &op)
{
    const std::string none = "_";
    bool fused = op == "moe_3gemm_fused_compressed", two = t.maybe(), shared = t.maybe();
    bool routes = fused;
    std::string x = t.in("5,4"), routing = t.in(routes ? "5,3" : "5,2");
    std::string ids = routes ? none : t.ids("5,2", 3, "i32");
    std::string gate_up = t.any({"interleaved", "stacked", "up_first_interleaved", "up_first_stacked"});
    std::string gate = t.in(two ? "3,16,4" : "3,8,4"), up = two ? none : t.in("3,8,4"), down = t.in("3,4,8");
    // all operands but the tokens, the routing and the addend
    t.not_asked = ~0x4003ull;
    t.op(op, {x, routing, ids, none, fused && t.maybe() ? t.in("3") : none, gate, up, down,
              t.maybe() ? t.in(two ? "3,1,16" : "3,1,8") : none, t.maybe() ? t.in("3,1,4") : none,
              shared ? t.in("6,4") : none, shared ? t.in("6,4") : none, shared ? t.in("4,6") : none,
              shared && t.maybe() ? t.in("1,4") : none, fused && t.maybe() ? t.in("5,4") : none,
              !two && t.maybe() ? t.in("3,1,8") : none, t.maybe() ? t.in("3,1,8") : none},
         "hidden_size=4 inter_size=8 num_expert=3 top_k=2 num_shared_expert=" + std::string(shared ? "1" : "0") +
             (two ? " gate_up=" + gate_up : "") + t.any({"", " expert_alpha=0.5", " up_add=1"}));
}

inline const std::vector<AlgebraCase> algebra_cases = {
    {{"add", "subtract", "multiply", "minimum", "maximum", "squared_difference", "less",
      "less_equal", "greater", "greater_equal"}, binary},
    {{"equal", "not_equal"}, [](Text &t, const std::string &op) {
        t.op(op, {t.in("3,4", "below3"), t.in(t.any({"3,4", "4"}), "below3")});
    }},
    {{"divide", "power", "mod", "floor_mod"}, binary_above},
    {{"logical_and", "logical_or", "logical_xor"}, binary_flags},
    {{"bitwise_and", "bitwise_or", "bitwise_xor"}, binary_ints},
    {{"exp", "abs", "negative", "tanh", "sigmoid", "sin", "cos", "relu", "erf", "floor", "ceiling", "softplus",
      "asin", "acos", "atan", "asinh", "atanh", "tan", "sinh", "cosh", "sign",
      "round", "hsigmoid", "hswish", "mish", "softsign", "gelu", "round_bf16"}, unary},
    {{"glu"}, [](Text &t, const std::string &op) { t.op(op, {t.in("3,4"), t.in("3,4")}); }},
    {{"result", "assign", "read_value"}, [](Text &t, const std::string &op) {
        std::string x = t.in("3,4");
        if (op == "read_value")
            // The operand counts only until the state is written.
            t.not_asked = ~0ull;
        t.op(op == "read_value" ? "read_value f32[3,4]" : op, {x},
             op == "result" ? "name=\"y\"" : "variable=\"s\"");
    }},
    {{"elu"}, [](Text &t, const std::string &op) { t.op(op, {t.in("3,4")}, "alpha=0.5"); }},
    {{"acosh"}, [](Text &t, const std::string &op) { t.op(op, {t.in("3,4", "above1")}); }},
    {{"sqrt", "log"}, [](Text &t, const std::string &op) { t.op(op, {t.in("3,4", "above")}); }},
    {{"swish"}, [](Text &t, const std::string &op) {
        std::vector<std::string> in = {t.in("3,4")};
        if (t.maybe())
            in.push_back(t.in(""));
        t.op(op, in);
    }},
    {{"clamp"}, [](Text &t, const std::string &op) { t.op(op, {t.in("3,4")}, "min=-0.5 max=0.5"); }},
    {{"logical_not"}, [](Text &t, const std::string &op) { t.op(op, {t.in("3,4", "below2", "boolean")}); }},
    {{"bitwise_not"}, [](Text &t, const std::string &op) { t.op(op, {t.ids("3,4", 16)}); }},
    {{"convert"}, [](Text &t, const std::string &op) { t.op(op, {t.in("3,4")}, "to=" + t.any({"f64", "i32"})); }},
    {{"convert_like"}, [](Text &t, const std::string &op) {
        t.op(op, {t.in("3,4"), t.in("2", "below2", t.any({"f64", "i32"}))});
    }},
    {{"select"}, [](Text &t, const std::string &op) {
        t.op(op, {t.in(t.any({"3,4", "4"}), "below2", "boolean"), t.in("3,4"), t.in(t.any({"3,4", "1"}))});
    }},
    {{"reshape"}, [](Text &t, const std::string &op) {
        t.op(op, {t.in("2,12,4"), t.ints(t.any({"24,4", "2,3,16", "2,3,4,4", "2,12,1,4", "2,6,8", "96", "2,2,6,4",
                                                "8,12", "4,6,4"}))});
    }},
    {{"squeeze", "unsqueeze"}, [](Text &t, const std::string &op) {
        t.op(op, {t.in("1,3,1,4"), op == "squeeze" ? t.ints(t.any({"0", "2", "0,2"})) : t.ints("1")});
    }},
    {{"transpose"}, [](Text &t, const std::string &op) {
        t.op(op, {t.in("2,3,4"), t.ints(t.any({"0,2,1", "2,0,1", "1,2,0"}))});
    }},
    {{"concat"}, [](Text &t, const std::string &op) {
        t.op(op, {t.in("3,4,2"), t.in("3,4,2"), t.in("3,4,2")}, "axis=" + t.any({"0", "-1", "1"}));
    }},
    {{"split"}, [](Text &t, const std::string &op) {
        t.op(op, {t.in("4,6"), t.number(t.any({"0", "-1"}))}, "n=2", 2);
    }},
    {{"variadic_split"}, [](Text &t, const std::string &op) {
        t.op(op, {t.in("4,6"), t.number(t.any({"1", "-1"})), t.ints("2,4")}, "", 2);
    }},
    {{"slice", "strided_slice"}, sliced},
    {{"broadcast"}, [](Text &t, const std::string &op) { t.op(op, {t.in("3,1"), t.ints("2,3,4")}); }},
    {{"tile"}, [](Text &t, const std::string &op) { t.op(op, {t.in("3,2"), t.ints("2,3")}); }},
    {{"gather"}, [](Text &t, const std::string &op) {
        bool batched = t.maybe();
        t.op(op, {t.in("3,4,5"), t.ids("3,2", 3), t.number(batched ? "1" : t.any({"0", "1", "-1"}))},
             batched ? "batch_dims=1" : "");
    }},
    {{"gather_elements"}, [](Text &t, const std::string &op) { t.op(op, {t.in("4,3"), t.ids("2,3", 4)}, "axis=0"); }},
    {{"gather_nd"}, [](Text &t, const std::string &op) { t.op(op, {t.in("4,3"), t.ids("2,1", 4)}); }},
    {{"scatter_elements_update", "scatter_nd_update"}, scatter},
    {{"shape_of"}, unary},
    {{"range"}, [](Text &t, const std::string &op) { t.op(op, {t.number("0"), t.number("3"), t.number("1")}, "output_type=i64"); }},
    {{"one_hot"}, [](Text &t, const std::string &op) {
        t.op(op, {t.ids("3", 4), t.number("4"), t.in(""), t.in("")});
        // The on and off values are linear only together.
        t.not_asked = ~0ull;
    }},
    {{"non_zero"}, unary},
    {{"cum_sum"}, [](Text &t, const std::string &op) {
        t.op(op, {t.in("3,4"), t.number(t.any({"0", "-1"}))}, t.maybe() ? "exclusive=true" : "reverse=true");
    }},
    {{"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"}, reduction},
    {{"mvn"}, [](Text &t, const std::string &op) { t.op(op, {t.in("3,2,4"), t.ints(t.any({"-1", "1,2"}))}, "epsilon=0.001"); }},
    {{"matmul"}, [](Text &t, const std::string &op) {
        bool a = t.maybe(), b = t.maybe();
        t.op(op, {t.in(t.any({"", "2,", "1,"}) + (a ? "4,3" : "3,4")), t.in(t.any({"", "2,"}) + (b ? "6,4" : "4,6"))},
             std::string(a ? "transpose_a=true " : "") + (b ? "transpose_b=true" : ""));
    }},
    {{"softmax"}, [](Text &t, const std::string &op) { t.op(op, {t.in("3,2,4")}, "axis=" + t.any({"0", "1", "-1"})); }},
    {{"topk"}, [](Text &t, const std::string &op) {
        t.op(op, {t.in("3,4"), t.number("2")}, "mode=max sort=value axis=" + t.any({"0", "1"}), 2);
    }},
    {{"sdpa"}, [](Text &t, const std::string &op) {
        std::vector<std::string> in = {t.in("2,4,3,4"), t.in(t.any({"2,4,5,4", "2,1,5,4", "1,4,5,4"})), t.in("2,4,5,6")};
        if (t.maybe())
            in.push_back(t.in(t.any({"2,4,3,5", "2,1,3,5", "3,5"})));
        t.op(op, in);
    }},
    {{"rms_norm"}, [](Text &t, const std::string &op) { t.op(op, {t.in("2,3,4"), t.in(t.any({"4", "1,4"}))}, "epsilon=0.001"); }},
    {{"row_chain"}, [](Text &t, const std::string &op) {
        static const std::vector<std::pair<std::string, int>> chains = {
            {"rms_norm x1 c0 0.001; out add x0 s0; out multiply s1 c1; out rms_norm s1 c1 0.001", 3},
            {"add x0 x1; out multiply s0 c0; out multiply s0 c1", 2},
            {"multiply x0 c0; out add s0 x0; out multiply x1 c1", 2},
            {"out multiply x0 x1; out multiply x0 c0; out add x1 c1", 3},
            {"out multiply x0 c0; round_bf16 s0 _; out add s1 x1; out multiply x1 c1", 3}};
        const auto &chain = chains[(size_t)t.below(5)];
        t.not_asked = ~0x3ull; // the constants
        t.op(op, {t.in("2,3,4"), t.in("2,3,4"), t.in("4"), t.in(t.any({"4", "1"}))}, "steps=\"" + chain.first + "\"",
             chain.second);
    }},
    {{"rope"}, [](Text &t, const std::string &op) {
        std::string tables = t.any({"2,3,6", "1,3,6", "2,3,4"});
        t.op(op, {t.in("2,3,4,6"), t.in(tables), t.in(tables)});
    }},
    {{"rope_tables"}, [](Text &t, const std::string &op) {
        t.op(op, {t.ids("2,3", 100), t.in("4")}, t.maybe() ? "twice=true" : "", 2);
    }},
    {{"attention"}, attention},
    {{"linear"}, linear},
    {{"gather_matmul"}, [](Text &t, const std::string &op) {
        t.not_asked = ~0x5ull;
        t.op(op, {t.in(t.any({"1,5,4", "2,5,4"})), t.in("3,6,4"), t.ids("5,2", 3, "i32"),
                  t.maybe() ? t.in(t.any({"3,6", "3,1,6"})) : "_"});
    }},
    {{"moe", "moe_compressed", "moe_3gemm_fused_compressed"}, experts},
    {{"moe_router"}, [](Text &t, const std::string &op) {
        t.op(op, {t.in("5,4"), t.option("_"), t.maybe() ? t.in("4") : "_"}, "top_k=2", 2);
        t.not_asked = 4;
    }},
};
/* clang-format on */

#endif
