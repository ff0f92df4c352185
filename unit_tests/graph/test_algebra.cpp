// SPDX-License-Identifier: Apache-2.0
// Checks what algebra.h claims of every op by evaluating it. Linearity: f(a + b) = f(a) + f(b)
// exactly in the operands where it is claimed. Layouts: for every assignment of layouts, the
// results of two parts of the operands, put together, are the result of the whole.
#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "transformations/graph/algebra.h"
#include "transformations/graph/evaluate.h"
#include "unit_tests/graph/algebra_cases.h"
#include "unit_tests/graph/graph_text.h"

enum { SEEDS = 24, TRIES = 6, MOST_ASSIGNMENTS = 64 };

struct Tensor {
    xm_element element = XM_F32;
    std::vector<int64_t> dim;
    std::vector<double> v; // floats and integers alike
    bool absent = false;

    bool is_float() const
    {
        return xm_element_is_float(element);
    }
};
using Tensors = std::vector<Tensor>;

class Node
{
  public:
    Node(const std::string &op, unsigned seed) : text(seed), random(seed)
    {
        for (const AlgebraCase &c : algebra_cases)
            for (const std::string &name : c.ops)
                if (name == op)
                    c.make(text, op);
        graph = text.lines.empty() ? nullptr : parse(text.lines);
        n = graph ? graph->last : nullptr;
    }

    Text text;
    std::mt19937 random;
    Graph graph;
    xm_node *n = nullptr;
    std::map<std::string, Tensor> states;

    double any(double low, double high)
    {
        return std::uniform_real_distribution<double>(low, high)(random);
    }
    Tensor like(const Tensor &t, double low, double high)
    {
        Tensor r = t;
        for (double &x : r.v)
            x = t.is_float() ? (float)any(low, high) : std::floor(any(low, high + 1));
        return r;
    }
    Tensor whole(const Tensor &t, int limit)
    {
        Tensor r = t;
        for (double &x : r.v)
            x = (double)(random() % (unsigned)limit);
        return r;
    }
    Tensor filled(const xm_value *v)
    {
        const std::string kind =
            v->node->op == XM_OP_PARAMETER ? v->node->attr.name.name : "";
        Tensor t = typed(v);
        if (v->node->op == XM_OP_CONST)
            return constant(v);
        if (kind.rfind("below", 0) == 0)
            return whole(t, std::stoi(kind.substr(5)));
        if (kind == "above1")
            return like(t, 1.5, 2.5);
        return kind == "above" ? like(t, 0.5, 1.5) : like(t, -1, 1);
    }
    Tensors operands()
    {
        Tensors list;
        for (uint32_t i = 0; i < n->n_in; i++) {
            Tensor none;
            none.absent = true;
            list.push_back(xm_is_none(xm_in(n, i)) ? none : filled(xm_in(n, i)));
        }
        return list;
    }
    void fill_states() // gives attention a past of two positions
    {
        if (n->op != XM_OP_ATTENTION)
            return;
        for (uint32_t i : {XM_ATTENTION_K, XM_ATTENTION_V}) {
            Tensor t = typed(xm_in(n, i));
            t.dim[1] = 2;
            t.v.resize((size_t)(t.dim[0] * 2 * t.dim[2] * t.dim[3]));
            states[i == XM_ATTENTION_K ? "k" : "v"] = like(t, -1, 1);
        }
    }

    static Tensor typed(const xm_value *v)
    {
        Tensor t;
        size_t count = 1;
        t.element = v->type.element;
        for (uint32_t d = 0; d < v->type.shape.rank; d++) {
            t.dim.push_back(v->type.shape.dim[d].n);
            count *= (size_t)t.dim.back();
        }
        t.v.assign(count, 0.0);
        return t;
    }
    static Tensor constant(const xm_value *v)
    {
        int64_t e[16];
        Tensor t = typed(v);
        EXPECT_EQ(xm_value_const_ints(v, e, 16), (int)t.v.size());
        std::copy(e, e + t.v.size(), t.v.begin());
        return t;
    }
};

static xm_tensor *
lower(const Tensor &t)
{
    xm_tensor *r = nullptr;
    if (t.absent)
        return nullptr;
    EXPECT_EQ(
        xm_tensor_create(&r, t.element, (uint32_t)t.dim.size(), t.dim.data(), nullptr),
        XM_OK);
    for (size_t i = 0; i < t.v.size(); i++)
        if (r->f)
            r->f[i] = (float)t.v[i];
        else
            r->i[i] = (int64_t)t.v[i];
    return r;
}

static Tensor
lift(const xm_tensor *t)
{
    Tensor r;
    r.element = t->element;
    r.dim.assign(t->dim, t->dim + t->rank);
    for (uint64_t i = 0; i < t->n; i++)
        r.v.push_back(t->f ? t->f[i] : (double)t->i[i]);
    return r;
}

// Returns a copy of the node whose attributes have the sizes of these operands.
static xm_node
resized(const xm_node *n, const Tensors &in, int part)
{
    xm_node copy = *n;
    if (copy.op == XM_OP_MOE || copy.op == XM_OP_MOE_COMPRESSED ||
        copy.op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED) {
        const int64_t own = in[XM_MOE_W_DOWN].dim[0], all = copy.attr.moe.experts;
        copy.attr.moe.own_experts = own < all ? own : 0;
        copy.attr.moe.first_expert = own < all && part ? all - own : 0;
    }
    if (n->op == XM_OP_MOE || n->op == XM_OP_MOE_COMPRESSED ||
        n->op == XM_OP_MOE_3GEMM_FUSED_COMPRESSED)
        copy.attr.moe.inter = in[XM_MOE_W_DOWN].dim[2];
    return copy;
}

static Tensors
evaluate(const Node &node, const Tensors &in, const std::map<std::string, Tensor> &states,
         int part = 0)
{
    xm_node n = resized(node.n, in, part);
    std::vector<xm_use> uses(n.in, n.in + n.n_in); // an operand may be absent in a part
    for (size_t i = 0; i < uses.size(); i++)
        if (in[i].absent)
            uses[i].value = xm_none(node.graph.get());
    n.in = uses.data();
    std::vector<xm_tensor *> operands, results(n.n_out);
    xm_state_store *store = xm_state_store_create();
    for (const auto &s : states) {
        xm_tensor *t = lower(s.second);
        EXPECT_EQ(xm_state_set(store, s.first.c_str(), t, nullptr), XM_OK);
        xm_tensor_destroy(t);
    }
    for (const Tensor &t : in)
        operands.push_back(lower(t));
    xm_error err = {};
    const xm_status status =
        xm_evaluate_node(&n, operands.data(), results.data(), store, nullptr, 0, &err);
    Tensors out;
    for (xm_tensor *t : results) {
        out.push_back(t ? lift(t) : Tensor());
        xm_tensor_destroy(t);
    }
    for (xm_tensor *t : operands)
        xm_tensor_destroy(t);
    xm_state_store_destroy(store);
    if (status != XM_OK)
        throw std::runtime_error(err.text + ("\n" + node.text.lines));
    return out;
}

static Tensors
evaluate(const Node &node, const Tensors &in)
{
    return evaluate(node, in, node.states);
}

static Tensor
sum(const Tensor &a, const Tensor &b, double factor = 1.0)
{
    Tensor r = a;
    for (size_t i = 0; i < r.v.size(); i++)
        r.v[i] += factor * b.v[i];
    return r;
}

// Returns the largest difference between elements of two tensors, relative to `scale`; infinity
// if the shapes differ.
static double
distance(const Tensor &a, const Tensor &b, double scale)
{
    double most = a.dim == b.dim ? 0.0 : INFINITY;
    for (size_t i = 0; i < a.v.size() && most < INFINITY; i++) {
        const bool same = a.v[i] == b.v[i] || (std::isnan(a.v[i]) && std::isnan(b.v[i]));
        most = std::max(most, same ? 0.0 : std::abs(a.v[i] - b.v[i]) / scale);
    }
    return std::isnan(most) ? INFINITY : most;
}

static double
size_of(const Tensors &list, size_t r)
{
    double most = 1.0;
    for (double x : list[r].v)
        most = std::max(most, std::abs(x));
    return most;
}

static const double EQUAL = 2e-5, DIFFERENT = 1e-3;

class Algebra : public testing::TestWithParam<std::string>
{
  protected:
    // Returns how far result r is from f(a + b) = f(a) + f(b), where a and b differ in the
    // operands of `set`. `affine`: f(0) is subtracted.
    static double nonlinearity(Node &node, uint64_t set, uint32_t r, bool affine = false)
    {
        Tensors a = node.operands(), b = a, both = a, zero = a;
        for (uint32_t i = 0; i < a.size(); i++) {
            if (!xm_has_operand(set, i) || a[i].absent)
                continue;
            b[i] = node.filled(xm_in(node.n, i));
            both[i] = sum(a[i], b[i]);
            std::fill(zero[i].v.begin(), zero[i].v.end(), 0.0);
        }
        Tensors fa = evaluate(node, a), fb = evaluate(node, b),
                fab = evaluate(node, both);
        Tensor right = sum(fa[r], fb[r]);
        if (affine)
            right = sum(right, evaluate(node, zero)[r], -1.0);
        return distance(fab[r], right, size_of(fa, r) + size_of(fb, r));
    }

    // Fails if an element of result r depends on two elements of operand i.
    static void expect_elementwise(Node &node, uint32_t i, uint32_t r)
    {
        Tensors in = node.operands();
        const Tensors before = evaluate(node, in);
        std::vector<int> changes(before[r].v.size());
        for (size_t e = 0; e < in[i].v.size(); e++) {
            const double old = in[i].v[e];
            in[i].v[e] += 1.0;
            const Tensors after = evaluate(node, in);
            for (size_t j = 0; j < changes.size(); j++)
                changes[j] += after[r].v[j] != before[r].v[j];
            in[i].v[e] = old;
        }
        EXPECT_LE(*std::max_element(changes.begin(), changes.end()), 1)
            << "operand " << i << "\n"
            << node.text.lines;
    }
};

static std::vector<std::string>
all_ops()
{
    std::vector<std::string> list;
    for (int op = 0; op < XM_OP_COUNT; op++)
        if (!(xm_op_info((xm_op)op)->flags & (XM_OPF_SOURCE | XM_OPF_EXCHANGES)))
            list.push_back(xm_op_info((xm_op)op)->text);
    return list;
}

static bool
can_add(const Node &node, uint32_t i)
{
    const xm_value *v = xm_in(node.n, i);
    return v->node->op == XM_OP_PARAMETER && xm_element_is_float(v->type.element);
}

TEST_P(Algebra, LinearWhereItSaysSo)
{
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        Node node(GetParam(), seed);
        ASSERT_NE(node.n, nullptr) << "algebra_cases.h has no case of " << GetParam();
        node.fill_states();
        for (uint32_t r = 0; r < node.n->n_out; r++) {
            const xm_linearity linear = xm_node_linearity(node.n, r);
            for (uint32_t i = 0; i < node.n->n_in; i++) {
                if (xm_has_operand(linear.alone, i)) {
                    EXPECT_LT(nonlinearity(node, 1ull << i, r), EQUAL)
                        << "operand " << i << "\n"
                        << node.text.lines;
                }
                if (xm_has_operand(linear.carried, i)) {
                    EXPECT_LT(nonlinearity(node, 1ull << i, r, true), EQUAL)
                        << "operand " << i << "\n"
                        << node.text.lines;
                    expect_elementwise(node, i, r);
                }
            }
            if (linear.jointly) {
                EXPECT_LT(nonlinearity(node, linear.jointly, r), EQUAL)
                    << node.text.lines;
            }
        }
    }
}

// An operand that is not claimed to be linear must not be so by measurement.
TEST_P(Algebra, NotLinearWhereItDoesNotSaySo)
{
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        Node node(GetParam(), seed);
        ASSERT_NE(node.n, nullptr);
        node.fill_states();
        for (uint32_t r = 0; r < node.n->n_out; r++) {
            const xm_linearity linear = xm_node_linearity(node.n, r);
            uint64_t floats = 0;
            for (uint32_t i = 0; i < node.n->n_in; i++) {
                if (!can_add(node, i) || xm_has_operand(node.text.not_asked, i))
                    continue;
                floats |= 1ull << i;
                if (xm_has_operand(linear.alone, i))
                    continue;
                double most = 0.0;
                for (int k = 0; k < TRIES; k++)
                    most = std::max(most, nonlinearity(node, 1ull << i, r));
                EXPECT_GT(most, DIFFERENT)
                    << "operand " << i << " of result " << r << "\n"
                    << node.text.lines;
            }
            double most = linear.alone || linear.jointly || !floats ? INFINITY : 0.0;
            for (int k = 0; k < TRIES && most < INFINITY; k++)
                most = std::max(most, nonlinearity(node, floats, r));
            EXPECT_GT(most, DIFFERENT) << "result " << r << " of all together\n"
                                       << node.text.lines;
        }
    }
}

// ---- layouts --------------------------------------------------------------------------

// Returns the elements from `from` to `to` along a dimension.
static Tensor
slice(const Tensor &t, uint32_t dim, int64_t from, int64_t to)
{
    Tensor r = t;
    r.v.clear();
    r.dim[dim] = to - from;
    int64_t inner = 1;
    for (size_t d = dim + 1; d < t.dim.size(); d++)
        inner *= t.dim[d];
    for (size_t i = 0; i < t.v.size(); i++) {
        const int64_t at = (int64_t)i / inner % t.dim[dim];
        if (at >= from && at < to)
            r.v.push_back(t.v[i]);
    }
    return r;
}

static Tensor
join(const Tensor &a, const Tensor &b, uint32_t dim)
{
    Tensor r = a;
    r.v.clear();
    r.dim[dim] += b.dim[dim];
    size_t outer = 1;
    for (uint32_t d = 0; d < dim; d++)
        outer *= (size_t)a.dim[d];
    for (size_t o = 0; o < outer; o++)
        for (const Tensor *t : {&a, &b}) {
            const size_t n = t->v.size() / outer;
            r.v.insert(r.v.end(), t->v.begin() + (long)(o * n),
                       t->v.begin() + (long)((o + 1) * n));
        }
    return r;
}

// Returns the index at which a dimension is cut, a multiple of the grain near the fraction; 0 if
// it has only one grain.
static int64_t
cut_of(const Tensor &t, const xm_layout &l, double fraction)
{
    const int64_t grains = t.dim[l.dim] / l.grain;
    EXPECT_EQ(t.dim[l.dim] % l.grain, 0);
    const int64_t at = (int64_t)((double)grains * fraction);
    return grains < 2 ? 0 : std::max<int64_t>(1, std::min(at, grains - 1)) * l.grain;
}

struct Parts {
    Tensors of[2];
    std::map<std::string, Tensor> states[2];
    bool possible = true;
};

static Parts
take_apart(Node &node, const Tensors &whole, const Tensors &result,
           const std::vector<xm_layout> &in, const std::vector<xm_layout> &out)
{
    const double fraction = node.any(0.2, 0.8);
    Parts p;
    for (int part = 0; part < 2; part++)
        p.of[part] = whole, p.states[part] = node.states;
    for (uint32_t i = 0; i < whole.size(); i++) {
        if (in[i].kind == XM_SPLIT) {
            const int64_t cut = cut_of(whole[i], in[i], fraction);
            p.possible &= cut > 0;
            p.of[0][i] = slice(whole[i], in[i].dim, 0, cut);
            p.of[1][i] = slice(whole[i], in[i].dim, cut, whole[i].dim[in[i].dim]);
            for (auto &s : node.states) // the cache has as many heads as K and V
                if (i == XM_ATTENTION_K) {
                    p.states[0][s.first] = slice(s.second, 2, 0, cut);
                    p.states[1][s.first] = slice(s.second, 2, cut, s.second.dim[2]);
                }
        } else if (in[i].kind == XM_PARTIAL) {
            p.of[0][i] = node.like(whole[i], -1, 1);
            p.of[1][i] = sum(whole[i], p.of[0][i], -1.0);
        } else if (in[i].kind == XM_FIRST) {
            p.of[1][i].absent = true;
        } else if (in[i].kind == XM_SIZES) {
            const int64_t cut = cut_of(result[0], out[0], fraction);
            p.of[0][i].v[in[i].dim] = (double)cut;
            p.of[1][i].v[in[i].dim] = (double)(result[0].dim[in[i].dim] - cut);
        }
    }
    return p;
}

TEST_P(Algebra, PartsMakeTheWhole)
{
    int splits = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        Node node(GetParam(), seed);
        ASSERT_NE(node.n, nullptr);
        node.fill_states();
        std::vector<xm_layout> in(node.n->n_in + 1), out(node.n->n_out + 1);
        uint32_t k = 0;
        for (; xm_node_layouts(node.n, k, in.data(), out.data()); k++) {
            ASSERT_LT(k, (uint32_t)MOST_ASSIGNMENTS);
            const Tensors whole = node.operands(), expected = evaluate(node, whole);
            const Parts p = take_apart(node, whole, expected, in, out);
            if (!p.possible)
                continue;
            splits += k > 0;
            const Tensors a = evaluate(node, p.of[0], p.states[0], 0);
            const Tensors b = evaluate(node, p.of[1], p.states[1], 1);
            for (uint32_t r = 0; r < node.n->n_out; r++) {
                const double scale = size_of(a, r) + size_of(b, r);
                Tensor both = out[r].kind == XM_SPLIT     ? join(a[r], b[r], out[r].dim)
                              : out[r].kind == XM_PARTIAL ? sum(a[r], b[r])
                                                          : a[r];
                EXPECT_LT(distance(both, expected[r], scale), EQUAL)
                    << "assignment " << k << "\n"
                    << node.text.lines;
            }
        }
        EXPECT_GE(k, 1u) << "all may be mirrored always";
    }
    RecordProperty("assignments", splits);
}

INSTANTIATE_TEST_SUITE_P(EveryOp, Algebra, testing::ValuesIn(all_ops()),
                         [](const auto &info) { return info.param; });

// Returns each assignment of layouts as text: "in0 split 2 by 4, in2 split 1 by 4, out partial".
// Mirrored operands are left out.
static std::vector<std::string>
assignments(const xm_node *n)
{
    std::vector<xm_layout> l(n->n_in + n->n_out);
    std::vector<std::string> list;
    for (uint32_t k = 0; xm_node_layouts(n, k, l.data(), l.data() + n->n_in); k++) {
        list.emplace_back();
        for (uint32_t i = 0; i < l.size(); i++) {
            const std::string name = (i < n->n_in ? "in" : "out") +
                                     std::to_string(i < n->n_in ? i : i - n->n_in);
            if (l[i].kind == XM_SPLIT)
                list.back() += name + " split " + std::to_string(l[i].dim) + " by " +
                               std::to_string(l[i].grain) + ", ";
            else if (l[i].kind == XM_FIRST)
                list.back() += name + " first, ";
            else if (l[i].kind != XM_MIRRORED)
                list.back() += name + " partial, ";
        }
    }
    return list;
}

static void
expect_assignment(const std::string &lines, const std::string &wanted, int times = 1)
{
    Graph g = parse(lines);
    const std::vector<std::string> list = assignments(g->last);
    EXPECT_EQ(std::count(list.begin(), list.end(), wanted), times)
        << wanted << testing::PrintToString(list);
}

// The cuts that tensor parallelism uses: heads, rows and columns of products, the inner dimension
// of experts. Columns are cut only between quantization groups.
TEST(Layouts, CutTheLayersOfALanguageModel)
{
    const std::string linear = R"(
        %0 = parameter f32[batch,tokens,64] name="x"
        %1 = weight f32[32,64] u4 group=16 scale=f16 zp=u4 @1
        %2 = parameter f32[batch,tokens,32] name="r"
        %3 = linear %0, %2, %1, _)";
    expect_assignment(linear, "in1 split 2 by 1, in2 split 0 by 1, out0 split 2 by 1, ");
    expect_assignment(linear, "in0 split 2 by 16, in1 partial, in2 split 1 by 16, "
                              "out0 partial, ");
    expect_assignment(R"(
        %0 = parameter f32[batch,tokens,8,4] name="q"
        %1 = parameter f32[batch,tokens,2,4] name="k"
        %2 = attention %0, %1, %1, _, _, _, _ scale=0.5 key_state="k" value_state="v")",
                      "in0 split 2 by 4, in1 split 2 by 1, in2 split 2 by 1, "
                      "out0 split 2 by 4, ");
    expect_assignment(R"(
        %0 = parameter f32[tokens,64] name="x"
        %1 = parameter f32[tokens,4] name="logits"
        %2 = weight f32[4,32,64] u4 group=16 scale=f16 zp=u4 @2
        %3 = weight f32[4,64,32] u4 group=16 scale=f16 zp=u4 @3
        %4 = moe_3gemm_fused_compressed %0, %1, _, _, _, %2, %2, %3, _, _, _, _, _, _ )"
                      "hidden_size=64 inter_size=32 num_expert=4 top_k=2",
                      "in5 split 1 by 16, in6 split 1 by 16, in7 split 2 by 16, "
                      "out0 partial, ");
}

// Interleaved rows of gate and up are taken apart by slices, which are cut between pairs.
TEST(Layouts, CutSlicesThatTakeOneElementOfEachStep)
{
    const auto sliced = [](const char *starts, const char *stops) {
        return std::string(
                   "%0 = parameter f32[2,tokens,12] name=\"x\"\n%1 = const i64[1] {") +
               starts + "}\n%2 = const i64[1] {" + stops +
               "}\n%3 = const i64[1] {2}\n%4 = slice %0, %1, %2, %3, %3";
    };
    const std::string pairs = "in0 split 2 by 2, out0 split 2 by 1, ";
    expect_assignment(sliced("0", "11"), pairs);
    expect_assignment(sliced("1", "12"), pairs);
    expect_assignment(sliced("1", "-1"), pairs, 0);
    expect_assignment(sliced("2", "12"), pairs, 0);
}

// The expert dimension is cut. Then a shared expert is cut at the same fraction, or the first
// device computes it.
TEST(Layouts, CutBetweenExperts)
{
    const std::string layer = R"(
        %0 = parameter f32[tokens,64] name="x"
        %1 = parameter f32[tokens,4] name="logits"
        %2 = weight f32[4,64,64] u4 group=16 scale=f16 zp=u4 @2
        %3 = weight f32[4,64,32] u4 group=16 scale=f16 zp=u4 @3
        %5 = weight f32[32,64] u4 group=16 scale=f16 zp=u4 @5
        %6 = weight f32[64,32] u4 group=16 scale=f16 zp=u4 @6
        %7 = weight f32[1,64] f16 @7
        %4 = moe_3gemm_fused_compressed %0, %1, _, _, _, %2, _, %3, _, _, SHARED )"
                              "hidden_size=64 inter_size=32 num_expert=4 top_k=2 "
                              "gate_up=stacked";
    const std::string experts = "in5 split 0 by 1, in7 split 0 by 1, ";
    auto with = [&](const char *shared) {
        std::string lines = layer;
        return lines.replace(lines.find("SHARED"), 6, shared);
    };
    expect_assignment(with("_, _, _, _"), experts + "out0 partial, ");
    expect_assignment(with("%5, %5, %6, %7"),
                      experts + "in10 split 0 by 16, in11 split 0 by 16, "
                                "in12 split 1 by 16, out0 partial, ");
    expect_assignment(with("%5, %5, %6, %7"),
                      experts + "in10 first, in11 first, in12 first, in13 first, "
                                "out0 partial, ");
}
