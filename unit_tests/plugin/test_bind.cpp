/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of symbols from shapes: which equations are solved, what contradicts, and the error
 * texts.
 */
#include <algorithm>

#include "plugin/bind.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

/* Ports with the types that a graph's parameters would have. */
class Bind : public ::testing::Test
{
  protected:
    enum xm_status run(const std::vector<const char *> &shapes,
                       const std::vector<std::vector<int64_t>> &dims)
    {
        std::string text;
        for (size_t i = 0; i < shapes.size(); i++)
            text += "%" + std::to_string(i) + " = parameter f32[" + shapes[i] +
                    "] name=\"in" + std::to_string(i) + "\"\n";
        graph = parse(text);
        std::vector<xm_port> ports;
        std::vector<xm_host_tensor> tensors;
        xm_for_each_node(n, graph.get())
        {
            xm_port port = {};
            port.name = n->attr.name.name;
            port.type = n->out[0].type;
            ports.push_back(port);
        }
        for (auto &d : dims) {
            xm_host_tensor t = {};
            t.rank = (uint32_t)d.size();
            std::copy(d.begin(), d.end(), t.dim);
            tensors.push_back(t);
        }
        err = {};
        return xm_bindings_from_ports(&bindings, ports.data(), tensors.data(),
                                      (uint32_t)ports.size(), &err);
    }
    int64_t value(const char *symbol)
    {
        int64_t v = -1;
        EXPECT_TRUE(xm_bindings_find(&bindings, symbol, &v)) << symbol;
        return v;
    }
    Graph graph{nullptr, xm_graph_destroy};
    xm_bindings bindings = {};
    xm_error err = {};
};

TEST_F(Bind, SolvesSymbolsOneByOne)
{
    ASSERT_EQ(run({"batch,tokens,4", "batch,past+tokens"}, {{2, 3, 4}, {2, 10}}), XM_OK)
        << err.text;
    EXPECT_EQ(value("batch"), 2);
    EXPECT_EQ(value("tokens"), 3);
    EXPECT_EQ(value("past"), 7);
}

TEST_F(Bind, SolvesInAnyOrderOfInputs)
{
    ASSERT_EQ(run({"batch,past+tokens", "a*batch", "a", "batch,tokens"},
                  {{2, 10}, {10}, {5}, {2, 10}}),
              XM_OK)
        << err.text;
    EXPECT_EQ(value("past"), 0);
    EXPECT_EQ(value("a"), 5);
}

TEST_F(Bind, SolvesMultiplesAndZero)
{
    ASSERT_EQ(run({"2*n+1", "m"}, {{7}, {0}}), XM_OK) << err.text;
    EXPECT_EQ(value("n"), 3);
    EXPECT_EQ(value("m"), 0);
}

TEST_F(Bind, RefusesWhatNoValueSolves)
{
    EXPECT_EQ(run({"2*n+1"}, {{6}}), XM_INVALID);
    EXPECT_STREQ(err.text, "input 'in0', axis 0: no size of 'n' gives the dimension 6");
    bindings = {};
    EXPECT_EQ(run({"n+4"}, {{3}}), XM_INVALID);
    EXPECT_STREQ(err.text, "input 'in0', axis 0: no size of 'n' gives the dimension 3");
}

TEST_F(Bind, SaysWhatContradicts)
{
    EXPECT_EQ(run({"batch,tokens", "tokens"}, {{2, 3}, {4}}), XM_INVALID);
    EXPECT_STREQ(err.text, "input 'in1', axis 0: expected 3 (tokens), found 4");
    bindings = {};
    EXPECT_EQ(run({"batch,8"}, {{2, 9}}), XM_INVALID);
    EXPECT_STREQ(err.text, "input 'in0', axis 1: expected 8 (8), found 9");
}

TEST_F(Bind, RefusesAnotherRank)
{
    EXPECT_EQ(run({"batch,tokens"}, {{2, 3, 1}}), XM_INVALID);
    EXPECT_STREQ(err.text, "input 'in0': expected rank 2, found 3");
}

TEST_F(Bind, RefusesDimensionsThatStayUnknown)
{
    EXPECT_EQ(run({"a+b", "a+2*b"}, {{5}, {8}}), XM_INVALID);
    EXPECT_NE(strstr(err.text, "do not determine"), nullptr) << err.text;
}

TEST_F(Bind, KeepsWhatWasBoundBefore)
{
    ASSERT_EQ(xm_bindings_set(&bindings, "past", 5, &err), XM_OK);
    EXPECT_EQ(run({"tokens", "past+tokens"}, {{3}, {9}}), XM_INVALID);
    EXPECT_STREQ(err.text, "input 'in1', axis 0: expected 8 (past + tokens), found 9");
}

TEST_F(Bind, HoldsALimitedNumberOfSymbols)
{
    static char names[XM_MAX_BINDINGS + 1][16];
    for (int i = 0; i <= XM_MAX_BINDINGS; i++) {
        snprintf(names[i], sizeof(names[i]), "s%d", i);
        EXPECT_EQ(xm_bindings_set(&bindings, names[i], i, &err),
                  i < XM_MAX_BINDINGS ? XM_OK : XM_UNSUPPORTED);
    }
    EXPECT_NE(strstr(err.text, "symbolic dimensions"), nullptr);
    EXPECT_EQ(value("s7"), 7);
}

/* n*n has no unique solution that the binder may assume: it is refused. */
TEST_F(Bind, DoesNotGuessAtSquares)
{
    EXPECT_EQ(run({"n*n"}, {{9}}), XM_INVALID);
    EXPECT_NE(strstr(err.text, "input 'in0', axis 0"), nullptr) << err.text;
}

} // namespace
