/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution graphs: the steps that a compiled model runs, for programs compiled for a GPU on an
 * engine that only counts, and for graphs that are evaluated.
 */
#include "plugin/exec_graph.h"

#include <set>
#include <sstream>

#include "plugin/gpu/planner.h"
#include "plugin/gpu/program_exec_graph.h"
#include "plugin/readers/openvino_ir.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

struct Exec {
    xm_exec_graph g = {};
    ~Exec()
    {
        xm_exec_graph_free(&g);
    }
    const xm_exec_node *of_type(const std::string &type) const
    {
        for (uint32_t i = 0; i < g.n; i++) {
            if (g.nodes[i].type == type)
                return &g.nodes[i];
        }
        ADD_FAILURE() << "there is no " << type;
        return nullptr;
    }
};

Program
compile_model(const std::string &model)
{
    const std::string xml = XM_MODELS_DIR "/" + model + "/openvino_model.xml";
    const xm_device_info info = counted_device(XM_DEVICE_GPU);
    xm_graph *g = nullptr;
    xm_program *p = nullptr;
    xm_config config;
    xm_error err = {};
    xm_config_init(&config);
    EXPECT_XM_OK(xm_openvino_ir_read(xml.c_str(), nullptr, &g, &err));
    EXPECT_XM_OK(xm_planner_compile_open(&info, &config, g, &p, &err));
    return Program(p, xm_program_unref);
}

std::vector<std::string>
names(const char *list)
{
    std::vector<std::string> found;
    std::istringstream in(list);
    for (std::string name; std::getline(in, name, ',');)
        found.push_back(name);
    return found;
}

bool
has_part(const std::vector<std::string> &list, const std::string &part)
{
    for (const std::string &name : list) {
        if (name.find(part) != std::string::npos)
            return true;
    }
    return false;
}

/* Fails unless every edge refers to a result of an earlier node. */
void
expect_whole(const xm_exec_graph &g)
{
    for (uint32_t i = 0; i < g.n; i++) {
        const xm_exec_node &n = g.nodes[i];
        for (uint32_t k = 0; k < n.n_in; k++) {
            ASSERT_LT(n.in[k].node, i) << n.name;
            EXPECT_LT(n.in[k].result, g.nodes[n.in[k].node].n_out) << n.name;
        }
    }
}

class ExecGraphOfModel : public testing::Test
{
  protected:
    void SetUp() override
    {
        xm_error err = {};
        program = compile_model("qwen3moe-tiny/ov/int4_asym_g64");
        ASSERT_XM_OK(xm_program_exec_graph(program.get(), &exec.g, &err));
    }
    Program program{nullptr, xm_program_unref};
    Exec exec;
};

TEST_F(ExecGraphOfModel, HasTheInputsTheStepsAndTheResults)
{
    const xm_ports &ports = program->ports;
    EXPECT_EQ(exec.g.n_steps, program->n_steps);
    EXPECT_EQ(exec.g.n, ports.n_inputs + program->n_steps + ports.n_outputs);
    EXPECT_STREQ(exec.g.nodes[0].type, "Input");
    const xm_exec_node &last = exec.g.nodes[exec.g.n - 1];
    EXPECT_STREQ(last.type, "Output");
    EXPECT_STREQ(last.name, ports.outputs[ports.n_outputs - 1].name);
    EXPECT_EQ(last.n_in, 1u);
    expect_whole(exec.g);
}

TEST_F(ExecGraphOfModel, NamesKernelsAndPrecisionOfEachStep)
{
    uint32_t n_moe = 0;
    for (uint32_t i = 0; i < program->n_steps; i++) {
        const xm_exec_node &n = exec.g.nodes[program->ports.n_inputs + i];
        EXPECT_STREQ(n.name, program->steps[i].name);
        EXPECT_STRNE(n.kernels, "") << n.name;
        EXPECT_STRNE(n.layers, "") << n.type << " " << n.name;
        if (std::string(n.type) != "MOE3GemmFusedCompressed")
            continue;
        n_moe++;
        EXPECT_NE(std::string(n.kernels).find("moe_gate_up"), std::string::npos)
            << n.kernels;
        EXPECT_STREQ(n.precision, "f16");
    }
    EXPECT_EQ(n_moe, 2u);
}

TEST_F(ExecGraphOfModel, KernelsAreThoseOfOneTokenAndOfMany)
{
    const std::string kernels = exec.of_type("MOE3GemmFusedCompressed")->kernels;
    EXPECT_NE(kernels.find("moe_sort"), std::string::npos) << kernels;
    EXPECT_EQ(kernels.find("moe_route"), kernels.rfind("moe_route")) << kernels;
}

TEST_F(ExecGraphOfModel, NamesTheLayersThatBecameOne)
{
    const auto qkv = names(exec.of_type("FullyConnected")->layers);
    for (const char *part : {"q_proj", "k_proj", "v_proj"})
        EXPECT_TRUE(has_part(qkv, part)) << exec.of_type("FullyConnected")->layers;
    const auto moe = names(exec.of_type("MOE3GemmFusedCompressed")->layers);
    EXPECT_GT(moe.size(), 10u);
    EXPECT_FALSE(has_part(moe, "q_proj"));
    EXPECT_EQ(std::set<std::string>(moe.begin(), moe.end()).size(), moe.size());
}

TEST_F(ExecGraphOfModel, ShapesHaveNumbersWhereTheyAreFixed)
{
    const xm_exec_node &output = exec.g.nodes[exec.g.n - 1];
    const xm_exec_port &logits = exec.g.nodes[output.in[0].node].out[output.in[0].result];
    for (uint32_t i = 0; i < exec.g.n;
         i++) { /* prepared rows are not listed as results */
        for (uint32_t k = 0; k < exec.g.nodes[i].n_out; k++)
            EXPECT_NE(exec.g.nodes[i].out[k].element, XM_DYNAMIC) << exec.g.nodes[i].name;
    }
    EXPECT_EQ(logits.element, XM_F32);
    ASSERT_EQ(logits.rank, 3u);
    EXPECT_EQ(logits.dim[0], -1);
    EXPECT_GT(logits.dim[2], 1);
}

TEST(ExecGraph, OfAnEvaluatedGraphHasANodeForEachOperation)
{
    const Graph g = parse("%0 = parameter f32[?,4] name=\"x\"\n"
                          "%1 = const f32[4] {1, 2, 3, 4}\n"
                          "%2 = add %0, %1  # \"sum\"\n"
                          "%3 = softmax %2 axis=1  # \"p\"\n"
                          "result %3 name=\"y\"\n");
    Exec e;
    xm_error err = {};
    ASSERT_XM_OK(xm_exec_graph_from(g.get(), "a_kernel", &e.g, &err));
    ASSERT_EQ(e.g.n, 4u);
    EXPECT_EQ(e.g.n_steps, 2u);
    const xm_exec_node &sum = e.g.nodes[1];
    EXPECT_STREQ(sum.type, "Add");
    EXPECT_STREQ(sum.name, "sum");
    EXPECT_STREQ(sum.kernels, "a_kernel");
    EXPECT_STREQ(sum.precision, "f32");
    EXPECT_EQ(sum.n_in, 1u);
    EXPECT_EQ(sum.out[0].dim[0], -1);
    EXPECT_EQ(sum.out[0].dim[1], 4);
    EXPECT_STREQ(e.g.nodes[3].type, "Output");
    expect_whole(e.g);
}

TEST(LayerTypes, AreThereForEveryOperation)
{
    for (int op = 0; op < XM_OP_COUNT; op++) {
        const struct xm_op_info *info = xm_op_info((xm_op)op);
        if (op == XM_OP_NONE)
            continue;
        EXPECT_STRNE(xm_layer_type(info->text, nullptr), "Reference") << info->text;
        if (info->ir_type) {
            EXPECT_STREQ(xm_layer_type(info->text, nullptr), info->ir_type);
        }
    }
    EXPECT_STREQ(xm_layer_type("linear", nullptr), "FullyConnected");
    const Graph g =
        parse("%0 = parameter f32[2,2] name=\"x\"\n"
              "%1 = const f32[2,2] {1, 2, 3, 4}\n"
              "%2 = matmul %0, %1\n%3 = matmul %0, %2\nresult %3 name=\"y\"\n");
    const xm_node *product = g->last->before;
    EXPECT_STREQ(xm_layer_type("matmul", product), "MatMul");
    EXPECT_STREQ(xm_layer_type("matmul", product->before), "FullyConnected");
    EXPECT_STREQ(xm_layer_type("attention", nullptr), "PagedAttention");
}

/* A removed node is listed as origin of its replacement; a node that is not replaced is not. */
TEST(LayerOrigins, FollowReplacements)
{
    const Graph g = parse("%0 = parameter f32[4] name=\"x\"\n"
                          "%1 = sqrt %0  # \"inner\"\n"
                          "%2 = exp %1  # \"outer\"\n"
                          "%3 = abs %0  # \"new\"\n"
                          "%4 = ceiling %0  # \"newer\"\n"
                          "%5 = relu %2  # \"reader\"\n"
                          "result %5 name=\"y\"\nresult %4 name=\"z\"\n");
    auto node = [&](const std::string &name) -> xm_node * {
        xm_for_each_node(n, g.get())
        {
            if (n->name == name)
                return n;
        }
        return nullptr;
    };
    auto origins = [](const xm_node *n) {
        xm_strbuf list = {};
        xm_layer_origins(n, &list);
        const std::string text = xm_strbuf_text(&list);
        xm_strbuf_free(&list);
        return text;
    };
    xm_node *outer = node("outer"), *heir = node("new");
    EXPECT_EQ(origins(outer), "outer");
    xm_value_replace(g.get(), outer->out, heir->out);
    ASSERT_TRUE(xm_node_remove_dead(g.get(), outer));
    EXPECT_EQ(origins(heir), "new,inner,outer");
    xm_node *newer = node("newer"); /* also after its replacement is replaced */
    xm_value_replace(g.get(), heir->out, newer->out);
    ASSERT_TRUE(xm_node_remove_dead(g.get(), heir));
    EXPECT_EQ(origins(newer), "newer,new,inner,outer");
    EXPECT_EQ(origins(node("reader")), "reader");
}

} // namespace
