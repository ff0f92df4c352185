/* SPDX-License-Identifier: Apache-2.0 */
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/reference/reference.h"
#include "unit_tests/graph/graph_text.h"
#include "unit_tests/graph/structure.h"

namespace
{

const char full_text[] = R"(graph "Model \"0\"\n"
property "rt_info/version" = "1\\2"
%0 = parameter f32[batch,tokens,256] name="x" names={"x","input 0"} # "x"
%1 = const i64[2] {-1, 256}
%2 = const f32[256] @17
%3 = weight f32[512,256] u4 group=64 scale=f16 zp=u4 @3 # "layers.0/q_proj"
%4 = matmul %0, %3 transpose_b=true : f32[batch,tokens,512] names={"q"} # "q_proj"
%5 = const i64[] {4}
%6, %7 = topk %4, %5 axis=-1 mode=max sort=value : f32[batch,tokens,4] as f16, i32[batch,tokens,4]
%8 = reshape %0, %1 : f32[batch*tokens,256]
%9 = rms_norm %8, %2 epsilon=9.99999997e-07 : f32[batch*tokens,256] as f16 names={"normed"}
%10 = shape_value i64[3] {batch, past + tokens, ?3}
%11 = read_value f32[batch,past,512] variable="key.0"
%12 = concat %11, %4 axis=1 : f32[batch,past + tokens,512]
%13 = assign %12 variable="key.0" : f32[batch,past + tokens,512]
%20 = const f16[3] {0.5, inf, -0.333251953}
%21 = const f64[1] {0.10000000000000001}
%22 = const boolean[2] {1, 0}
%23 = const u4[3] @23
%24 = clamp %0 min=-inf max=2147483647 : f32[batch,tokens,256]
%25 = weight f16[4,8,32] i8 group=32 scale=f32 order=group_major zp=i8 zp_scalar=true @25
result %9 name="y"
result %6
)";

/* Returns full_text as it is printed: there a blob has the number of its node. */
std::string
renumbered()
{
    std::string s = full_text;
    s.replace(s.find("@17"), 3, "@2");
    return s;
}

/* A parsed weight has all its parts and finite numbers. */
TEST(Text, WeightsOfCodesKeepTheirParts)
{
    const char *const texts[] = {"nf4 group=32 scale=f16",
                                 "f4e2m1 group=32 scale=f8e8m0",
                                 "f8e4m3 group=64 scale=f8e4m3 order=group_major",
                                 "f8e5m2",
                                 "codebook group=32 scale=f16",
                                 "codebook",
                                 "f4e2m1 group=16 scale=f8e4m3 factors=2",
                                 "f16 factors=2",
                                 "nvfp4 factors=2"};
    for (const char *format : texts) {
        const std::string text = std::string("graph \"\"\n%0 = weight f32[2,3,512] ") +
                                 format + " @0\nresult %0\n";
        SCOPED_TRACE(text);
        xm_graph *g = nullptr;
        xm_error err = {};
        ASSERT_EQ(xm_graph_parse(text.c_str(), &g, &err), XM_OK) << err.text;
        EXPECT_EQ(print(g), text);
        EXPECT_EQ(xm_graph_validate(g, nullptr, &err), XM_OK) << err.text;
        const struct xm_weight &w = g->first->attr.weight;
        EXPECT_STREQ(xm_weight_check(&w), nullptr);
        std::vector<float> row(w.cols);
        float largest = 0;
        xm_weight_row(&w, 1, 2, row.data());
        for (float x : row) {
            EXPECT_TRUE(std::isfinite(x));
            largest = std::fmax(largest, std::fabs(x));
        }
        EXPECT_GT(largest, 0.0f);
        xm_graph_destroy(g);
    }
}

TEST(Text, WeightsInBlocksKeepTheirFormat)
{
    for (int f = XM_WEIGHT_ELEMENTS + 1; f < XM_WEIGHT_FORMATS; f++) {
        const std::string format = xm_weight_formats[f].text;
        const std::string text = "graph \"\"\n%0 = weight f32[2,3,512] " + format +
                                 " @0\n%1 = weight f16[512] " + format +
                                 " @1\nresult %0\nresult %1\n";
        SCOPED_TRACE(text);
        xm_graph *g = nullptr;
        xm_error err = {};
        ASSERT_EQ(xm_graph_parse(text.c_str(), &g, &err), XM_OK) << err.text;
        EXPECT_EQ(print(g), text);
        EXPECT_EQ(xm_graph_validate(g, nullptr, &err), XM_OK) << err.text;
        xm_for_each_node(n, g)
        {
            if (n->op != XM_OP_WEIGHT)
                continue;
            EXPECT_EQ(n->attr.weight.format, f);
            EXPECT_STREQ(xm_weight_check(&n->attr.weight), nullptr);
        }
        xm_graph_destroy(g);
    }
}

TEST(Text, PrintsWhatItReads)
{
    xm_graph *g = nullptr;
    xm_error err = {};
    ASSERT_EQ(xm_graph_parse(full_text, &g, &err), XM_OK) << err.text;
    EXPECT_EQ(print(g), renumbered());
    EXPECT_STREQ(xm_graph_property(g, "rt_info/version"), "1\\2");
    EXPECT_EQ(xm_graph_property(g, "none"), nullptr);
    EXPECT_EQ(xm_graph_validate(g, nullptr, &err), XM_OK) << err.text;
    xm_graph *again = nullptr;
    ASSERT_EQ(xm_graph_parse(print(g).c_str(), &again, &err), XM_OK) << err.text;
    EXPECT_EQ(print(again), print(g));
    EXPECT_EQ(structure(again), structure(g));
    xm_graph_destroy(again);
    xm_graph_destroy(g);
}

TEST(Text, EveryAttributePrintsAndParses)
{
    for (int op = 0; op < XM_OP_COUNT; op++) {
        size_t n;
        const xm_attr_info *info = xm_op_attrs((xm_op)op, &n);
        for (size_t i = 0; i < n; i++) {
            EXPECT_EQ(info[i].op, op);
            if (!info[i].default_text || info[i].kind == XM_ATTR_STRING)
                continue;
            Graph g(xm_graph_create(""));
            union xm_attr attr;
            xm_strbuf text = {};
            ASSERT_EQ(xm_attr_defaults(g.get(), (xm_op)op, &attr), XM_OK);
            xm_attr_print(&attr, &info[i], &text);
            EXPECT_EQ(take(&text), info[i].default_text) << info[i].text;
        }
    }
}

TEST(Text, EnumsAreSpelledAsTheReferenceSpellsThem)
{
    auto names = [](xm_op op, const char *text) {
        size_t n;
        const xm_attr_info *info = xm_op_attrs(op, &n);
        for (size_t i = 0; i < n; i++)
            if (strcmp(info[i].text, text) == 0)
                return info[i].names;
        return (const char *const *)nullptr;
    };
    for (int i = 0; i < XM_ACT_COUNT; i++)
        EXPECT_STREQ(names(XM_OP_GLU, "activation")[i],
                     xm_activation_text((xm_activation)i));
    for (int i = 0; i < XM_ROUTING_COUNT; i++)
        EXPECT_STREQ(names(XM_OP_MOE_ROUTER, "routing")[i],
                     xm_routing_text((xm_routing)i));
    for (int i = 0; i < XM_GATE_UP_COUNT; i++)
        EXPECT_STREQ(names(XM_OP_MOE, "gate_up")[i], xm_gate_up_text((xm_gate_up)i));
}

TEST(Text, OpsAreFoundByBothNames)
{
    for (int op = 0; op < XM_OP_COUNT; op++) {
        const struct xm_op_info *info = xm_op_info((xm_op)op);
        EXPECT_EQ(xm_op_by_text(info->text), op);
        if (info->ir_type) {
            EXPECT_EQ(xm_op_by_ir_type(info->ir_type), op);
        }
    }
    EXPECT_EQ(xm_op_by_text("nonsense"), XM_OP_COUNT);
    EXPECT_EQ(xm_op_by_ir_type("nonsense"), XM_OP_COUNT);
}

TEST(Text, ErrorsNameThePlace)
{
    const std::string p = "%0 = parameter f32[4]\n";
    const struct {
        std::string text;
        const char *error;
    } rows[] = {
        {"%0 = nonsense\n", "line 2, column 14: there is no operation 'nonsense'"},
        {"%0 = none\n", "no operation"},
        {"%0 parameter f32[4]", "expected '='"},
        {"%x = parameter f32[4]", "expected a number"},
        {"%99999999999 = parameter f32[4]", "above 4194303"},
        {"%0 = parameter f33[4]", "'f33' is not an element type"},
        {"%0 = parameter f32[4", "expected ','"},
        {"%0 = parameter f32[1,1,1,1,1,1,1,1,1]", "rank above 8"},
        {"%0 = parameter f32[-4]", "negative"},
        {"%0 = parameter f32[99999999999999999999]", "64 bits"},
        {p + "%0 = relu %0", "line 3, column 3: the value %0 exists already"},
        {p + "%1 = relu %0 : f32[4] as i8",
         "only float values can be stored 'as' f16 or f32"},
        {p + "%1 = relu %0 : f32[4] at f16",
         "only float values can be stored 'as' f16 or f32"},
        {p + "%1 = relu %2", "no value %2"},
        {p + "%1 = relu %0, %0", "takes 1 to 1 operands"},
        {p + "%1 = relu %0 foo=1", "no attribute 'foo'"},
        {p + "%1 = relu %0 : f32[5]", "f32[5] here, but its operands give f32[4]"},
        {p + "%1 = relu %0 : f32[4], f32[4]", "expected the end of the line"},
        {p + "%1, %2 = relu %0", "relu has 1 results here, not 2"},
        {p + "%1, %3 = relu %0", "follow each other"},
        {p + "%1 = relu %0 # name", "expected '\"'"},
        {p + "%1 = relu %0 # \"name", "no closing quote"},
        {p + "%1 = relu %0 # \"\\q\"", "escape"},
        {p + "%1 = relu %0 # \"\\x00\"", "\\x needs"},
        {p + "%1 = relu %0 x", "expected '='"},
        {p + "%1 = softmax %0", nullptr},
        {p + "%1 = concat %0", "needs the attribute axis"},
        {p + "%1 = concat %0 axis=0 axis=0", "given twice"},
        {p + "%1 = concat %0 axis=x", "an integer of 64 bits"},
        {p + "%1 = gelu %0 approximation=none", "one of ERF, TANH"},
        {p + "%1 = convert %0 to=x", "an element type"},
        {p + "%1 = divide %0, %0 python=yes", "true or false"},
        {p + "%1 = clamp %0 min=nan max=1", "a number"},
        {p + "%1 = relu _", nullptr},
        {p + "%1 = result %0", "result has 0 results here, not 1"},
        {"%0 = const i64[2] {1}", "expected ','"},
        {"%0 = const i64[2] {1, 2, 3}", "expected '}'"},
        {"%0 = const i64[2] {1, x}", "'x' is not a number"},
        {"%0 = const i64[1] {99999999999999999999}", "64 bits"},
        {"%0 = const i64[n] {1}", "must be constant"},
        {"%0 = const u4[1] {1}", "braces"},
        {"%0 = const f32[4]", "expected '@'"},
        {"%0 = const f32[100000000] @1", "64 MiB"},
        {"%0 = const f32[8000000] @1\n%1 = const f32[10000000] @2", "line 3"},
        {"%0 = const f32[4611686018427387904,4611686018427387904] @1", "constant"},
        {"%0 = weight f32[4,32] u4 group=64 scale=f16 @1", "not a multiple of the group"},
        {"%0 = weight f32[4,32] u4 size=64 @1", "no attribute 'size'"},
        {"%0 = weight f32[4,320] q4_k @1",
         "rows of 320 columns are not a whole number of q4_k blocks"},
        {"%0 = weight f32[4,32] q4_0 group=32 scale=f16 @1",
         "not a whole number of q4_0 blocks"},
        {"%0 = weight f32[4,32] elements @1",
         "neither an element type nor a weight format"},
        {"%0 = weight f32[4,32] q4_7 @1", "neither an element type nor a weight format"},
        {"%0 = weight f32[] f16 @1", "rank 1 to 3"},
        {"%0 = weight f32[2,2,2,2] f16 @1", "rank 1 to 3"},
        {"%0 = weight f32[4] f16 @4294967295", "a number is above 4294967294"},
        {"%0 = weight i64[4] f16 @1", "float type"},
        {"%0 = shape_value i64[2] {a", "expected ','"},
        {"%0 = shape_value f32[2] {a, b}", "integers"},
        {p + "%1 = const i64[] {0}\n%2 = split %0, %1 n=1000000000",
         "1000000000 results"},
        {p + "%1 = relu %0 : f32[4] names={\"a\"", "expected '}'"},
    };
    for (const auto &r : rows) {
        std::string error;
        Graph g = parse(r.text, &error);
        if (!r.error)
            continue;
        EXPECT_FALSE(g) << r.text;
        EXPECT_NE(error.find(r.error), std::string::npos) << error << "\n" << r.text;
        EXPECT_EQ(error.compare(0, 5, "line "), 0) << error;
    }
    for (const char *text :
         {"", "\n\n", "# only a comment\n", "grph \"x\"\n", "graph x\n"}) {
        xm_graph *g = nullptr;
        xm_error err = {};
        EXPECT_EQ(xm_graph_parse(text, &g, &err), XM_INVALID) << text;
        EXPECT_NE(*err.text, '\0');
    }
}

TEST(Text, AShapeValueHasElementsUpToALimit)
{
    for (const int n : {XM_MAX_CONTENT + 0, XM_MAX_CONTENT + 1}) {
        std::string elements = "0", error;
        for (int i = 1; i < n; i++)
            elements += ", " + std::to_string(i);
        const Graph g = parse(
            "%0 = shape_value i64[" + std::to_string(n) + "] {" + elements + "}", &error);
        if (n == XM_MAX_CONTENT) {
            EXPECT_TRUE(g) << error;
        } else {
            EXPECT_NE(error.find("has more than 64 elements"), std::string::npos)
                << error;
        }
    }
}

/* Returns the error text of parsing a line, with a caller whose blobs all have n_bytes bytes. */
std::string
error_with_bytes(const std::string &line, size_t n_bytes)
{
    static const uint8_t bytes[64] = {};
    struct xm_data data = {bytes, n_bytes};
    xm_text_blobs blobs = {};
    blobs.ctx = &data;
    blobs.constant = [](void *ctx, uint32_t, uint64_t, xm_data *out, xm_error *) {
        *out = *(const xm_data *)ctx;
        return XM_OK;
    };
    blobs.weight = [](void *ctx, uint32_t, struct xm_weight *w, xm_error *) {
        w->data = {((const xm_data *)ctx)->bytes, ((const xm_data *)ctx)->n_bytes};
        return XM_OK;
    };
    xm_graph *g = nullptr;
    xm_error err = {};
    (void)xm_graph_parse_with(("graph \"t\"\n" + line).c_str(), &blobs, &g, &err);
    xm_graph_destroy(g);
    return err.text;
}

TEST(Text, RefusesTooFewBytesOfTheCaller)
{
    const std::string constant = "%0 = const f32[8] @1",
                      weight = "%0 = weight f32[8] f32 @1";
    EXPECT_EQ(error_with_bytes(constant, 32), "");
    EXPECT_EQ(error_with_bytes(weight, 32), "");
    EXPECT_NE(error_with_bytes(constant, 31).find("constant @1 has 31 bytes, not 32"),
              std::string::npos);
    EXPECT_NE(error_with_bytes(weight, 31).find("weight @1: "), std::string::npos);
}

/* Text that is cut off or has one byte changed is parsed or refused, without a crash. */
TEST(Text, DamagedTextIsHarmless)
{
    const std::string text = full_text;
    const char bytes[] = "%{}[]\"?@,=9_- \n#";
    uint32_t x = 1;
    for (size_t i = 0; i < text.size(); i += 3) {
        std::string damaged = text.substr(0, i);
        std::string changed = text;
        x = x * 1664525u + 1013904223u;
        changed[i] = bytes[(x >> 16) % (sizeof(bytes) - 1)];
        for (const std::string &s : {damaged, changed}) {
            xm_graph *g = nullptr;
            xm_error err = {};
            if (xm_graph_parse(s.c_str(), &g, &err) != XM_OK) {
                EXPECT_NE(*err.text, '\0');
            }
            xm_graph_destroy(g);
        }
    }
}

/* Each allocation fails once while a graph is built, printed and parsed. */
TEST(Text, SurvivesEveryFailingAllocation)
{
    uint64_t n = 1;
    for (; n < 10000; n++) {
        xm_graph *g = nullptr;
        xm_error err = {};
        xm_strbuf out = {};
        xm_fail_allocation(n);
        xm_status status = xm_graph_parse(full_text, &g, &err);
        if (status == XM_OK) {
            xm_graph_print(g, &out);
            status = xm_graph_validate(g, &out, &err);
            xm_graph_print_dot(g, &out);
            if (status == XM_OK)
                status = xm_graph_sort(g, &err);
        }
        bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (status != XM_OK) {
            EXPECT_EQ(status, XM_NO_MEMORY) << err.text;
        }
        xm_strbuf_free(&out);
        xm_graph_destroy(g);
        if (!seen)
            break;
    }
    EXPECT_GT(n, 10u);
    EXPECT_LT(n, 10000u);
}

TEST(Text, DotNamesEveryNode)
{
    Graph g = parse("%0 = parameter f32[4] # \"in\\\"put\"\n%1 = relu %0\nresult %1");
    xm_strbuf b = {};
    xm_graph_print_dot(g.get(), &b);
    std::string s = take(&b);
    EXPECT_NE(s.find("n0 -> n1"), std::string::npos) << s;
    EXPECT_NE(s.find("n1 -> n2"), std::string::npos) << s;
}

TEST(Text, StructureIgnoresNumbersAndNames)
{
    Graph a = parse("%0 = parameter f32[4]\n%1 = relu %0 # \"a\"\nresult %1");
    Graph b = parse("%7 = parameter f32[4]\n%9 = relu %7\nresult %9");
    Graph c = parse("%0 = parameter f32[4]\n%1 = relu %0\nresult %0");
    EXPECT_EQ(structure(a.get()), structure(b.get()));
    EXPECT_NE(structure(a.get()), structure(c.get()));
}

} // namespace
