/* SPDX-License-Identifier: Apache-2.0
 *
 * The operands of steps: which are read and which are written. Programs of the test models and of
 * one op of each kind, compiled for a GPU, and for a CPU whose steps write prepared rows, on an
 * engine that only counts.
 */
#include <set>

#include "plugin/gpu/planner.h"
#include "plugin/readers/openvino_ir.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

/* Operands of each primitive: i read, o written, - part of the descriptor; capitals: prepared
 * rows. */
const std::map<std::string, std::string> roles = {
    {"attention", "iii-ii-ii---iiiiOo"},
    {"copy", "io"},
    {"eltwise", "iiio"},
    {"embedding", "io"},
    {"gather", "iio"},
    {"gather_matmul", "iio"},
    {"glu", "iio"},
    {"linear", "ii------Iooo"},
    {"matmul", "iio"},
    {"moe", "iii-----------i--Io"},
    {"moe_router", "ioo"},
    {"reduce", "io"},
    {"rms_norm", "iOo"},
    {"rope", "iiio"},
    {"rope_tables", "ioo"},
    {"row_chain", "iiiiOOOOoooo"},
    {"softmax", "io"},
    {"topk", "ioo"},
};

char
letter(uint32_t role)
{
    return "-io?-IO?"[role & 7];
}

/* Ops that no test model has. */
const char *const operations = R"(
%0 = parameter f32[tokens,8] name="x"
%1 = parameter i32[tokens,2] name="ids"
%2 = parameter f32[1,tokens,4,8] name="q"
%3 = parameter f32[1,tokens,8] name="table"
%4 = parameter f32[tokens,4] name="logits"
%5 = parameter f32[1,tokens,8] name="slots"
%6 = parameter f32[8,tokens] name="b"
%7 = parameter f32[1,tokens,8] name="table2"
%10 = weight f32[4,4,8] f32 @1
%11 = const i64[1] {1}
%12 = const i64[] {2}
%13 = const i64[] {1}
%20 = rope %2, %3, %7
%21 = glu %0, %0
%22 = gather_matmul %5, %10, %1, _
%23, %24 = moe_router %4, _, _ top_k=2
%25 = matmul %0, %6
%26 = softmax %4 axis=-1
%27, %28 = topk %4, %12 axis=-1 mode=max sort=value
%29 = reduce_max %0, %11 keep_dims=true
%30 = gather %0, %1, %13
%31, %32 = split %0, %13 n=2
%33 = concat %31, %0, %32 axis=1
%34 = tanh %33
)";

Program
compile(enum xm_device_kind kind, xm_graph *g)
{
    const xm_device_info info = counted_device(kind);
    xm_program *p = nullptr;
    xm_config config;
    xm_error err = {};
    xm_config_init(&config);
    EXPECT_XM_OK(xm_planner_compile_open(&info, &config, g, &p, &err));
    return Program(p, xm_program_unref);
}

Program
compile_model(enum xm_device_kind kind, const std::string &name)
{
    const std::string xml = XM_MODELS_DIR "/" + name + "/openvino_model.xml";
    xm_graph *g = nullptr;
    xm_error err = {};
    EXPECT_XM_OK(xm_openvino_ir_read(xml.c_str(), nullptr, &g, &err));
    return compile(kind, g);
}

Program
compile_operations()
{
    std::string text = operations;
    for (int i = 20; i <= 34; i++)
        text += "result %" + std::to_string(i) + " name=\"r" + std::to_string(i) + "\"\n";
    return compile(XM_DEVICE_GPU, parse(text).release());
}

class Steps : public ::testing::Test
{
  protected:
    static void SetUpTestSuite()
    {
        for (const char *model :
             {"gemma4-e-tiny/ov/int4_asym_g64", "gemma4-moe-tiny/ov/int4_asym_g32",
              "gpt-oss-tiny/ov/int4_sym_g64", "qwen3moe-tiny/ov/int4_asym_g128_r1",
              "qwen3moe-tiny/ov/int4_asym_g64", "qwen3moe-tiny/ov/int4_sym_g64",
              "qwen3moe-tiny/ov/int8_asym"}) {
            programs.emplace(model, compile_model(XM_DEVICE_GPU, model));
            programs.emplace(model + std::string(" on a CPU"),
                             compile_model(XM_DEVICE_CPU, model));
        }
        programs.emplace("operations", compile_operations());
    }
    static void TearDownTestSuite()
    {
        programs.clear();
    }
    template <typename F> static void for_each_step(F look)
    {
        for (auto &p : programs) {
            ASSERT_TRUE(p.second) << p.first;
            for (uint32_t i = 0; i < p.second->n_steps; i++) {
                const xm_step &s = p.second->steps[i];
                SCOPED_TRACE(p.first + ", step " + std::to_string(i) + " " + s.op);
                look(p.second.get(), s, i);
            }
        }
    }
    static std::map<std::string, Program> programs;
    xm_error err = {};
};

std::map<std::string, Program> Steps::programs;

TEST_F(Steps, EveryPrimitiveSaysWhatItDoesWithEachOperand)
{
    std::set<std::string> seen;
    for_each_step([&](const xm_program *, const xm_step &s, uint32_t) {
        if (!s.primitive)
            return;
        const xm_primitive_ops *ops = s.primitive->ops;
        std::string said, of_step;
        for (uint32_t i = 0; i < ops->n_operands; i++)
            said += letter(ops->roles[i]);
        for (uint32_t i = 0; i < s.n_operands; i++)
            of_step += letter(s.operand[i].role);
        ASSERT_EQ(roles.count(ops->name), 1u) << ops->name;
        EXPECT_EQ(said, roles.at(ops->name)) << ops->name;
        EXPECT_TRUE(of_step == said || s.kind == XM_STEP_COPY) << of_step;
        seen.insert(ops->name);
    });
    EXPECT_EQ(seen.size(), roles.size());
}

TEST_F(Steps, ListWhatTheirOperandsReadAndWrite)
{
    uint32_t forms = 0;
    for_each_step([&](const xm_program *p, const xm_step &s, uint32_t number) {
        std::vector<uint32_t> in, out;
        for (uint32_t i = 0; i < s.n_operands; i++) {
            const xm_step_operand &o = s.operand[i];
            if (o.value == XM_NO_VALUE)
                continue;
            EXPECT_TRUE(o.role & XM_ROLE_IN_OUT) << i;
            if (o.role & XM_ROLE_IN)
                in.push_back(o.value);
            if (o.role & XM_ROLE_OUT)
                out.push_back(o.value);
            EXPECT_EQ((o.role & XM_ROLE_FORM) != 0, p->values[o.value].is_form) << i;
            forms += p->values[o.value].is_form;
        }
        EXPECT_EQ(s.id, number);
        EXPECT_EQ(in, std::vector<uint32_t>(s.in, s.in + s.n_in));
        EXPECT_EQ(out, std::vector<uint32_t>(s.out, s.out + s.n_out));
        EXPECT_FALSE(out.empty());
    });
    EXPECT_GT(forms, 0u);
}

/* Operands are identified by the graph's values; a conversion between element types has none. */
TEST_F(Steps, SayWhichOfTheNodesEachOperandIs)
{
    for_each_step([](const xm_program *p, const xm_step &s, uint32_t) {
        std::multiset<uint32_t> inputs, results;
        for (uint32_t i = 0; i < s.n_operands && s.node; i++) {
            const xm_step_operand &o = s.operand[i];
            const xm_value *source =
                o.value == XM_NO_VALUE ? nullptr : p->values[o.value].source;
            if (o.input != XM_NO_VALUE) {
                inputs.insert(o.input);
                EXPECT_TRUE(!source || source == xm_in(s.node, o.input)) << i;
            }
            if (o.result != XM_NO_VALUE) {
                results.insert(o.result);
                EXPECT_EQ(source, &s.node->out[o.result]) << i;
            }
            EXPECT_TRUE(!source || s.kind == XM_STEP_HOST || o.input != XM_NO_VALUE ||
                        o.result != XM_NO_VALUE)
                << i;
        }
        for (uint32_t i = 0; s.node && i < s.node->n_out; i++)
            EXPECT_EQ(results.count(i), 1u) << i;
        for (uint32_t i = 0; s.node && i < s.node->n_in; i++)
            EXPECT_LE(inputs.count(i), 1u) << i;
    });
}

TEST_F(Steps, ReadWhatAStepBeforeHasWritten)
{
    const xm_program *now = nullptr;
    std::map<uint32_t, uint32_t> first, last;
    for_each_step([&](const xm_program *p, const xm_step &s, uint32_t number) {
        if (p != now)
            first.clear(), last.clear();
        now = p;
        for (uint32_t i = 0; i < s.n_in; i++) {
            const uint32_t root = xm_program_root(p, s.in[i]);
            const enum xm_place place = p->values[root].place;
            EXPECT_TRUE(first.count(root) || place == XM_PLACE_INPUT ||
                        place == XM_PLACE_CONST || place == XM_PLACE_SHAPE)
                << "value " << s.in[i];
            last[root] = number;
        }
        for (uint32_t i = 0; i < s.n_out; i++) {
            const uint32_t root = xm_program_root(p, s.out[i]);
            const xm_program_value &v = p->values[root];
            EXPECT_TRUE(v.place == XM_PLACE_ACTIVATION || v.place == XM_PLACE_OUTPUT);
            EXPECT_EQ(v.first, number) << "each value has one maker";
            first.emplace(root, number);
        }
        for (auto &read : last)
            EXPECT_GE(p->values[read.first].last, read.second);
        if (number + 1 < p->n_steps)
            return;
        for (uint32_t i = 0; i < p->ports.n_outputs; i++)
            EXPECT_EQ(p->values[xm_program_root(p, p->output_values[i])].last,
                      p->n_steps);
    });
}

TEST_F(Steps, CanBePlanned)
{
    for (auto &p : programs) {
        Request r = make_request(p.second.get());
        EXPECT_XM_OK(xm_planner_feed(r.get(), 5, &err)) << p.first;
    }
}

const char *const chain = R"(
%0 = parameter f32[tokens,4] name="x"
%1 = tanh %0
%2 = sigmoid %1
%3 = add %1, %2
%4 = const i64[2] {-1, 2}
%5 = reshape %3, %4
%6 = exp %5
result %6 name="y"
)";

TEST_F(Steps, DoNotWriteOverWhatTheyRead)
{
    Program p = compile(XM_DEVICE_GPU, parse(chain).release());
    ASSERT_EQ(p->n_steps, 4u);
    p->values[p->steps[0].out[0]].last = 1; /* the third step reads it, too */
    Request r = make_request(p.get());
    EXPECT_EQ(xm_planner_feed(r.get(), 5, &err), XM_INVALID);
    EXPECT_NE(std::string(err.text).find("step 2 add '"), std::string::npos) << err.text;
    EXPECT_NE(std::string(err.text).find("would write value 3 over value 1"),
              std::string::npos)
        << err.text;
}

TEST_F(Steps, ArePrintedAsWhatTheyWriteAndRead)
{
    Program p = compile(XM_DEVICE_GPU, parse(chain).release());
    xm_strbuf text = {};
    xm_program_print(p.get(), &text);
    EXPECT_STREQ(xm_strbuf_text(&text),
                 R"(   0 v1:f32[tokens,4] = tanh v0:f32[tokens,4]  # ""
   1 v2:f32[tokens,4] = sigmoid v1:f32[tokens,4]  # ""
   2 v3:f32[tokens,4] = add v1:f32[tokens,4] v2:f32[tokens,4]  # ""
   3 v6:f32[2*tokens,2] = exp v5=v3:f32[2*tokens,2]  # ""
)");
    xm_strbuf_free(&text);
}

} // namespace
