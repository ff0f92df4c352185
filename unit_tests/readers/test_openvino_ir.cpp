// SPDX-License-Identifier: Apache-2.0
// The IR reader on a small hand-written net, and on damaged and hostile versions of it.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "plugin/readers/openvino_ir.h"
#include "transformations/graph/text.h"
#include "transformations/graph/validate.h"

namespace
{

// y = (x + 1) reshaped to [?, 4], with the sum kept in a state. The constants are at odd offsets,
// and the layers of the file are deliberately not in order (the Result is not last).
const char small_ir[] = R"(<?xml version="1.0"?>
<net name="small" version="11">
  <layers>
    <layer id="0" name="x" type="Parameter" version="opset1">
      <data shape="?,2..9,4" element_type="f32"/>
      <output><port id="0" precision="FP32" names="x,the\,input">
        <dim>-1</dim><dim>-1</dim><dim>4</dim></port></output>
    </layer>
    <layer id="9" name="out" type="Result" version="opset1" output_names="y">
      <input><port id="0" precision="FP32"><dim>-1</dim><dim>4</dim></port></input>
    </layer>
    <layer id="3" name="sum" type="Add" version="opset1">
      <data auto_broadcast="numpy"/>
      <input>
        <port id="0" precision="FP32"><dim>-1</dim><dim>-1</dim><dim>4</dim></port>
        <port id="1" precision="FP32"><dim>4</dim></port>
      </input>
      <output><port id="2" precision="FP32" names="the_sum">
        <dim>-1</dim><dim>-1</dim><dim>4</dim></port></output>
    </layer>
    <layer id="1" name="ones" type="Const" version="opset1">
      <data element_type="f32" shape="4" offset="1" size="16"/>
      <output><port id="0" precision="FP32"><dim>4</dim></port></output>
    </layer>
    <layer id="4" name="target" type="Const" version="opset1">
      <data element_type="i64" shape="2" offset="17" size="16"/>
      <output><port id="0" precision="I64"><dim>2</dim></port></output>
    </layer>
    <layer id="5" name="flat" type="Reshape" version="opset1">
      <data special_zero="false"/>
      <input>
        <port id="0" precision="FP32"><dim>-1</dim><dim>-1</dim><dim>4</dim></port>
        <port id="1" precision="I64"><dim>2</dim></port>
      </input>
      <output><port id="2" precision="FP32"><dim>-1</dim><dim>4</dim></port></output>
    </layer>
    <layer id="6" name="nibbles" type="Const" version="opset1">
      <data element_type="u4" shape="3" offset="33" size="2"/>
      <output><port id="0" precision="U4"><dim>3</dim></port></output>
    </layer>
  </layers>
  <edges>
    <edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>
    <edge from-layer="1" from-port="0" to-layer="3" to-port="1"/>
    <edge from-layer="3" from-port="2" to-layer="5" to-port="0"/>
    <edge from-layer="4" from-port="0" to-layer="5" to-port="1"/>
    <edge from-layer="5" from-port="2" to-layer="9" to-port="0"/>
  </edges>
  <rt_info>
    <Runtime_version value="1"/>
    <nncf><weight_compression><mode value="int4"/></weight_compression></nncf>
    <info name="OpenVINO Runtime" value="2"/>
  </rt_info>
</net>
)";

// Layers that become several nodes each: log_softmax(selu(x, p, p)); p has one element.
const char composed_ir[] = R"(<?xml version="1.0"?>
<net name="composed" version="11">
  <layers>
    <layer id="0" name="x" type="Parameter" version="opset1">
      <data shape="2,4" element_type="f16"/>
      <output><port id="0" precision="FP16" names="the_x">
        <dim>2</dim><dim>4</dim></port></output>
    </layer>
    <layer id="1" name="p" type="Parameter" version="opset1">
      <data shape="1" element_type="f16"/>
      <output><port id="0" precision="FP16" names="the_p"><dim>1</dim></port></output>
    </layer>
    <layer id="2" name="units" type="Selu" version="opset1">
      <input>
        <port id="0" precision="FP16"><dim>2</dim><dim>4</dim></port>
        <port id="1" precision="FP16"><dim>1</dim></port>
        <port id="2" precision="FP16"><dim>1</dim></port>
      </input>
      <output><port id="3" precision="FP16" names="the_units">
        <dim>2</dim><dim>4</dim></port></output>
    </layer>
    <layer id="3" name="logs" type="LogSoftmax" version="opset5">
      <data axis="-1"/>
      <input><port id="0" precision="FP16"><dim>2</dim><dim>4</dim></port></input>
      <output><port id="1" precision="FP16" names="the_logs">
        <dim>2</dim><dim>4</dim></port></output>
    </layer>
    <layer id="4" name="out" type="Result" version="opset1">
      <input><port id="0" precision="FP16"><dim>2</dim><dim>4</dim></port></input>
    </layer>
  </layers>
  <edges>
    <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
    <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
    <edge from-layer="1" from-port="0" to-layer="2" to-port="2"/>
    <edge from-layer="2" from-port="3" to-layer="3" to-port="0"/>
    <edge from-layer="3" from-port="1" to-layer="4" to-port="0"/>
  </edges>
</net>
)";

std::vector<uint8_t>
small_weights()
{
    const float ones[] = {1, 2, 3, 4};
    const int64_t target[] = {-1, 4};
    const uint8_t nibbles[] = {0x21, 0x03};
    std::vector<uint8_t> w(35);
    memcpy(&w[1], ones, sizeof(ones));
    memcpy(&w[17], target, sizeof(target));
    memcpy(&w[33], nibbles, sizeof(nibbles));
    return w;
}

std::string
replaced(std::string text, const std::string &from, const std::string &to)
{
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << "nothing to replace: " << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

struct Outcome {
    struct xm_graph *graph = nullptr;
    struct xm_error err = {};
    std::vector<uint8_t> weights;
    ~Outcome()
    {
        xm_graph_destroy(graph);
    }
};

void
read(const std::string &xml, Outcome *o, std::vector<uint8_t> weights = small_weights())
{
    o->weights = std::move(weights);
    xm_openvino_ir_read_memory(xml.data(), xml.size(), o->weights.data(),
                               o->weights.size(), nullptr, &o->graph, &o->err);
}

struct xm_node *
find_node(const struct xm_graph *g, const char *name)
{
    xm_for_each_node(n, g)
    {
        if (strcmp(n->name, name) == 0)
            return n;
    }
    return nullptr;
}

std::string
type_text(const struct xm_value *v)
{
    struct xm_strbuf b = {};
    xm_type_print(&v->type, &b);
    std::string text = xm_strbuf_text(&b);
    xm_strbuf_free(&b);
    return text;
}

} // namespace

TEST(OpenvinoIr, LayersInAnyOrderBecomeNodes)
{
    Outcome o;
    read(small_ir, &o);
    ASSERT_NE(o.graph, nullptr) << o.err.text;
    EXPECT_EQ(xm_graph_validate(o.graph, nullptr, &o.err), XM_OK) << o.err.text;
    struct xm_node *flat = find_node(o.graph, "flat");
    ASSERT_NE(flat, nullptr);
    EXPECT_EQ(flat->op, XM_OP_RESHAPE);
    EXPECT_STREQ(xm_in(flat, 0)->node->name, "sum");
    EXPECT_EQ(o.graph->first->op, XM_OP_PARAMETER);
    EXPECT_STREQ(o.graph->name, "small");
}

TEST(OpenvinoIr, ComposedLayersNameTheirResultAndWhatIsBeforeItApart)
{
    Outcome o;
    read(composed_ir, &o);
    ASSERT_NE(o.graph, nullptr) << o.err.text;
    EXPECT_EQ(xm_graph_validate(o.graph, nullptr, &o.err), XM_OK) << o.err.text;
    std::set<std::string> names;
    xm_for_each_node(n, o.graph)
    {
        EXPECT_TRUE(names.insert(n->name).second) << n->name;
    }
    const struct {
        const char *layer, *tensor;
        enum xm_op op;
    } kept[] = {{"x", "the_x", XM_OP_PARAMETER},
                {"p", "the_p", XM_OP_PARAMETER},
                {"units", "the_units", XM_OP_MULTIPLY},
                {"logs", "the_logs", XM_OP_SUBTRACT}};
    for (const auto &k : kept) {
        const struct xm_node *n = find_node(o.graph, k.layer);
        ASSERT_NE(n, nullptr) << k.layer;
        EXPECT_EQ(n->op, k.op) << k.layer;
        ASSERT_EQ(n->out[0].n_names, 1u) << k.layer;
        EXPECT_STREQ(n->out[0].names[0], k.tensor);
    }
    EXPECT_EQ(names.count("units/elu_4"), 1u);
}

TEST(OpenvinoIr, DynamicDimensionsGetSymbols)
{
    Outcome o;
    read(small_ir, &o);
    ASSERT_NE(o.graph, nullptr) << o.err.text;
    EXPECT_EQ(type_text(xm_in(find_node(o.graph, "flat"), 0)), "f32[x.0,x.1,4]");
    EXPECT_EQ(type_text(&find_node(o.graph, "flat")->out[0]), "f32[x.0*x.1,4]");
}

TEST(OpenvinoIr, TensorNamesAndEscapesReachTheValues)
{
    Outcome o;
    read(small_ir, &o);
    ASSERT_NE(o.graph, nullptr) << o.err.text;
    const struct xm_value *x = &find_node(o.graph, "x")->out[0];
    ASSERT_EQ(x->n_names, 2u);
    EXPECT_STREQ(x->names[0], "x");
    EXPECT_STREQ(x->names[1], "the,input");
    const struct xm_node *out = o.graph->last;
    while (out && out->op != XM_OP_RESULT)
        out = out->before;
    ASSERT_NE(out, nullptr);
    EXPECT_STREQ(out->attr.name.name, "y");
    EXPECT_NE(xm_graph_find_value(o.graph, "y"), nullptr);
}

TEST(OpenvinoIr, PropertiesAreFlattened)
{
    Outcome o;
    read(small_ir, &o);
    ASSERT_NE(o.graph, nullptr) << o.err.text;
    EXPECT_STREQ(xm_graph_property(o.graph, "nncf/weight_compression/mode"), "int4");
    EXPECT_STREQ(xm_graph_property(o.graph, "Runtime_version"), "1");
    EXPECT_STREQ(xm_graph_property(o.graph, "OpenVINO Runtime"), "2");
    EXPECT_EQ(xm_graph_property(o.graph, "nncf"), nullptr);
}

TEST(OpenvinoIr, ConstantsAtOddOffsetsAreViews)
{
    Outcome o;
    read(small_ir, &o);
    ASSERT_NE(o.graph, nullptr) << o.err.text;
    const struct xm_node *ones = find_node(o.graph, "ones");
    const struct xm_node *nibbles = find_node(o.graph, "nibbles");
    ASSERT_TRUE(ones && nibbles);
    EXPECT_EQ(ones->attr.data.bytes, o.weights.data() + 1);
    EXPECT_EQ(xm_load_float(XM_F32, ones->attr.data.bytes, 2), 3.0f);
    EXPECT_EQ(nibbles->attr.data.n_bytes, 2u);
    EXPECT_EQ(xm_load_int(XM_U4, nibbles->attr.data.bytes, 1), 2);
}

TEST(OpenvinoIr, EmptyConstantsNeedNoWeights)
{
    Outcome o;
    std::string xml = R"(<net name="n" version="10"><layers>
        <layer id="0" name="c" type="Const" version="opset1">
        <data element_type="f32" shape="2,0" offset="0" size="0"/>
        <output><port id="0" precision="FP32"><dim>2</dim><dim>0</dim></port></output></layer>
        <layer id="1" name="r" type="Result" version="opset1">
        <input><port id="0"/></input></layer></layers>
        <edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>)";
    xm_openvino_ir_read_memory(xml.data(), xml.size(), nullptr, 0, nullptr, &o.graph,
                               &o.err);
    ASSERT_NE(o.graph, nullptr) << o.err.text;
    EXPECT_EQ(type_text(&find_node(o.graph, "c")->out[0]), "f32[2,0]");
}

TEST(OpenvinoIr, InputNamesOfLanguageModelsNameTheirDimensions)
{
    Outcome o;
    std::string xml = replaced(small_ir, R"(name="x" type="Parameter")",
                               R"(name="inputs_embeds" type="Parameter")");
    read(xml, &o);
    ASSERT_NE(o.graph, nullptr) << o.err.text;
    EXPECT_EQ(type_text(&o.graph->first->out[0]), "f32[batch,tokens,4]");
}

TEST(OpenvinoIr, StatesOfBothOpsetsAreRead)
{
    const char *const state = R"(
    <layer id="7" name="read" type="ReadValue" version="opset6">
      <data variable_id="kv" variable_type="f32" variable_shape="?,2,?,8"/>
      <output><port id="0" precision="FP32">
        <dim>-1</dim><dim>2</dim><dim>-1</dim><dim>8</dim></port></output>
    </layer>
    <layer id="8" name="write" type="Assign" version="opset6">
      <data variable_id="kv"/>
      <input><port id="0" precision="FP32">
        <dim>-1</dim><dim>2</dim><dim>-1</dim><dim>8</dim></port></input>
    </layer>
  </layers>
  <edges>
    <edge from-layer="7" from-port="0" to-layer="8" to-port="0"/>)";
    std::string xml = replaced(small_ir, "</layers>\n  <edges>", state);
    Outcome o;
    read(xml, &o);
    ASSERT_NE(o.graph, nullptr) << o.err.text;
    EXPECT_EQ(type_text(&find_node(o.graph, "read")->out[0]), "f32[batch,2,past,8]");

    xml = replaced(xml, R"(version="opset6">
      <data variable_id="kv" variable_type="f32" variable_shape="?,2,?,8"/>
)",
                   R"(version="opset3">
      <data variable_id="kv"/>
      <input><port id="1" precision="FP32"><dim>4</dim></port></input>
)");
    xml = replaced(
        xml, "<edges>",
        R"(<edges><edge from-layer="1" from-port="0" to-layer="7" to-port="1"/>)");
    xml = replaced(xml, "<dim>-1</dim><dim>2</dim><dim>-1</dim><dim>8</dim>",
                   "<dim>4</dim>");
    Outcome old;
    read(xml, &old);
    ASSERT_NE(old.graph, nullptr) << old.err.text;
    EXPECT_EQ(type_text(&find_node(old.graph, "read")->out[0]), "f32[4]");
}

// ---- damage
// --------------------------------------------------------------------------------

struct Damage {
    const char *what, *from, *to;
    const char *sentence; // a part of the error text
};

void
PrintTo(const Damage &d, std::ostream *os)
{
    *os << d.what;
}

class OpenvinoIrDamage : public testing::TestWithParam<Damage>
{
};

TEST_P(OpenvinoIrDamage, IsRefusedWithASentence)
{
    const Damage &d = GetParam();
    Outcome o;
    read(replaced(small_ir, d.from, d.to), &o);
    EXPECT_EQ(o.graph, nullptr);
    EXPECT_NE(o.err.status, XM_OK);
    EXPECT_NE(strstr(o.err.text, d.sentence), nullptr) << o.err.text;
    EXPECT_EQ(strncmp(o.err.text, "IR in memory: ", 14), 0) << o.err.text;
}

static const Damage damages[] = {
    {"OffsetOutside", R"(offset="1" size="16")", R"(offset="20" size="16")",
     "layer 'ones' (id 1): Const: 16 bytes at offset 20 lie outside weights buffer, "
     "which has 35"},
    {"OffsetOverflow", R"(offset="1" size="16")",
     R"(offset="18446744073709551610" size="16")",
     "16 bytes at offset 18446744073709551610 lie outside"},
    {"OffsetBeyondU64", R"(offset="1" size="16")",
     R"(offset="18446744073709551616" size="16")", "expected a number"},
    {"NegativeOffset", R"(offset="1" size="16")", R"(offset="-1" size="16")",
     "offset=\"-1\", expected a number"},
    {"SizeNotShape", R"(offset="1" size="16")", R"(offset="1" size="12")",
     "the size is 12 bytes, but the shape [4] of f32 needs 16"},
    {"HugeDims", R"(shape="4" offset)", R"(shape="4294967296,4294967296,16" offset)",
     "overflows"},
    {"DimBeyondI64", R"(shape="4" offset)", R"(shape="9223372036854775808" offset)",
     "is not a valid list of dimensions"},
    {"NineDims", R"(shape="4" offset)", R"(shape="1,1,1,1,1,1,1,1,4" offset)",
     "has more than 8 dimensions"},
    {"DynamicConstant", R"(shape="4" offset)", R"(shape="?" offset)", "is dynamic"},
    {"DynamicRank", R"(shape="?,2..9,4")", R"(shape="...")", "has no fixed rank"},
    {"BadRange", R"(shape="?,2..9,4")", R"(shape="?,9..2,4")",
     "is not a valid list of dimensions"},
    {"NoShape", R"(shape="4" offset="1")", R"(offset="1")",
     "the attribute 'shape' is missing"},
    {"NoSize", R"(offset="1" size="16")", R"(offset="1")",
     "the attribute 'size' is missing"},
    {"NoElementType", R"(shape="?,2..9,4" element_type="f32")", R"(shape="?,2..9,4")",
     "layer 'x' (id 0): Parameter: the attribute 'element_type' is missing"},
    {"BadElementType", R"(element_type="i64" shape="2")",
     R"(element_type="f33" shape="2")", "element_type=\"f33\" is not an element type"},
    {"StringConstant", R"(element_type="i64" shape="2")",
     R"(element_type="string" shape="2")", "element type 'string' is not supported"},
    {"BadPrecision", R"(id="2" precision="FP32" names="the_sum")",
     R"(id="2" precision="FQ32")", "precision \"FQ32\""},
    {"OtherPrecision", R"(id="2" precision="FP32" names="the_sum")",
     R"(id="2" precision="FP16")",
     "layer 'sum' (id 3): Add: the file says that output port 2 is f16, but it is f32"},
    {"WrongDims", R"(<dim>-1</dim><dim>4</dim></port></output>)",
     R"(<dim>-1</dim><dim>5</dim></port></output>)",
     "layer 'x' (id 0): Parameter: the file says that output port 0 has shape [-1,-1,5], "
     "but it is"},
    {"WrongRank", R"(names="the_sum">
        <dim>-1</dim>)",
     R"(names="the_sum">)", "has shape [-1,4]"},
    {"BadDim", R"(<dim>4</dim></port></output>)", R"(<dim>four</dim></port></output>)",
     "has dimension 'four'"},
    {"LongDim", R"(<dim>4</dim></port></output>)",
     R"(<dim>000000000000000000000000000000000000000000000004</dim></port></output>)",
     "has dimension"},
    {"Cycle", R"(from-layer="0" from-port="0" to-layer="3")",
     R"(from-layer="5" from-port="2" to-layer="3")", "form a cycle through layer '"},
    {"SelfLoop", R"(from-layer="0" from-port="0" to-layer="3")",
     R"(from-layer="3" from-port="2" to-layer="3")",
     "cycle through layer 'sum' (id 3, Add)"},
    {"UnknownLayer", R"(from-layer="0" from-port="0" to-layer="3")",
     R"(from-layer="77" from-port="0" to-layer="3")",
     "names layer 77, which does not exist"},
    {"UnknownOutputPort", R"(from-layer="0" from-port="0" to-layer="3")",
     R"(from-layer="0" from-port="8" to-layer="3")",
     "names output port 8, which layer 'x'"},
    {"UnknownInputPort", R"(to-layer="9" to-port="0")", R"(to-layer="9" to-port="4")",
     "names input port 4, which layer 'out'"},
    {"TwoEdgesToOnePort", R"(to-layer="3" to-port="1")", R"(to-layer="3" to-port="0")",
     "two edges feed input port 0 of layer 'sum'"},
    {"UnfedPort", R"(<edge from-layer="4" from-port="0" to-layer="5" to-port="1"/>)", "",
     "no edge feeds input port 1 of layer 'flat' (id 5, Reshape)"},
    {"DuplicateLayerId", R"(<layer id="4")", R"(<layer id="3")", "have the same id 3"},
    {"DuplicatePort", R"(<port id="1" precision="FP32">)",
     R"(<port id="0" precision="FP32">)", "names input port 1, which layer 'sum'"},
    {"TooFewPorts", R"(type="Add")", R"(type="Select")",
     "Select: it has 2 input ports, expected 3"},
    {"TooManyOutputs", R"(<output><port id="2" precision="FP32"><dim>-1</dim>)",
     R"(<output><port id="3"/><port id="2" precision="FP32"><dim>-1</dim>)",
     "it has 2 output ports, expected 1"},
    {"SamePortTwice", R"(<output><port id="2" precision="FP32"><dim>-1</dim>)",
     R"(<output><port id="2"/><port id="2" precision="FP32"><dim>-1</dim>)",
     "layer 'flat' (id 5, Reshape) has port 2 twice"},
    {"UnknownOp", R"(type="Add" version="opset1")", R"(type="Foo" version="opset8")",
     "layer 'sum' (id 3): operation 'Foo' of opset 'opset8' is not known"},
    {"Subgraph", R"(type="Add" version="opset1")",
     R"(type="TensorIterator" version="opset1")",
     "operation 'TensorIterator' of opset 'opset1' is not known"},
    {"UnknownOpset", R"(type="Add" version="opset1")", R"(type="Add" version="opset11")",
     "operation 'Add' of opset 'opset11' is not supported, expected opset 1"},
    {"NoOpset", R"(type="Add" version="opset1")", R"(type="Add")",
     "operation 'Add' of opset '(none)' is not supported"},
    {"OtherBroadcast", R"(auto_broadcast="numpy")", R"(auto_broadcast="pdpd")",
     "auto_broadcast=\"pdpd\" is not supported, expected \"numpy\""},
    {"BadBool", R"(special_zero="false")", R"(special_zero="perhaps")", "perhaps"},
    {"Version9", R"(version="11")", R"(version="9")", "IR version 9, expected 10 or 11"},
    {"Version12", R"(version="11")", R"(version="12")",
     "IR version 12, expected 10 or 11"},
    {"VersionAbc", R"(version="11")", R"(version="abc")",
     "<net> has version=\"abc\", expected a number"},
    {"NoVersion", R"( version="11")", "", "<net> has no attribute 'version'"},
    {"NoLayerId", R"(<layer id="1" name)", R"(<layer name)",
     "<layer> has no attribute 'id'"},
    {"NoLayerName", R"(<layer id="1" name="ones")", R"(<layer id="1")",
     "<layer> has no attribute 'name'"},
    {"NoLayerType", R"(name="ones" type="Const")", R"(name="ones")",
     "<layer> has no attribute 'type'"},
    {"NoEdgePort", R"(from-layer="5" from-port="2")", R"(from-layer="5")",
     "<edge> has no attribute 'from-port'"},
    {"OtherRoot", R"(<net name="small" version="11">)", R"(<model><net version="11">)",
     "the root element is <model>, expected <net>"},
    {"EntityBomb", R"(<?xml version="1.0"?>)",
     R"(<!DOCTYPE net [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>)",
     "declares a document type"},
    {"ExternalDtd", R"(<?xml version="1.0"?>)",
     R"(<!DOCTYPE net SYSTEM "file:///dev/zero">)", "declares a document type"},
    {"UnknownEntity", R"(name="ones")", R"(name="&ones;")", "not valid XML"},
    {"UnclosedTag", "</rt_info>", "", "not valid XML"},
    {"BadUtf8", R"(name="ones")", "name=\"\xff\xfe\"", "not valid XML"},
};

INSTANTIATE_TEST_SUITE_P(Table, OpenvinoIrDamage, testing::ValuesIn(damages),
                         [](const auto &test) { return test.param.what; });

TEST(OpenvinoIr, TextThatIsNotXmlIsRefused)
{
    for (std::string text :
         {std::string(), std::string("GGUF"), std::string(100, '\0'),
          std::string("{\"a\": 1}"), std::string("\xff\xfe<\0n\0", 6)}) {
        Outcome o;
        read(text, &o);
        EXPECT_EQ(o.graph, nullptr);
        EXPECT_NE(strstr(o.err.text, "not valid XML"), nullptr) << o.err.text;
    }
}

TEST(OpenvinoIr, EveryTruncationIsRefused)
{
    const std::string whole = small_ir;
    const size_t end = whole.rfind("</net>") + strlen("</net>");
    for (size_t n = 0; n < end; n++) {
        Outcome o;
        read(whole.substr(0, n), &o);
        ASSERT_EQ(o.graph, nullptr) << n;
        ASSERT_NE(o.err.status, XM_OK) << n;
    }
}

TEST(OpenvinoIr, NulBytesAnywhereAreRefused)
{
    for (size_t at = 0; at < strlen(small_ir) - 1; at += 7) {
        std::string xml = small_ir;
        xml[at] = '\0';
        Outcome o;
        read(xml, &o);
        ASSERT_EQ(o.graph, nullptr) << at;
    }
}

TEST(OpenvinoIr, TruncatedWeightsAreRefused)
{
    Outcome o;
    std::vector<uint8_t> w = small_weights();
    w.pop_back();
    read(small_ir, &o, w);
    EXPECT_EQ(o.graph, nullptr);
    EXPECT_NE(strstr(o.err.text, "2 bytes at offset 33 lie outside"), nullptr)
        << o.err.text;
}

TEST(OpenvinoIr, MissingWeightsAreRefusedByTheFirstConstant)
{
    Outcome o;
    xm_openvino_ir_read_memory(small_ir, strlen(small_ir), nullptr, 0, nullptr, &o.graph,
                               &o.err);
    EXPECT_EQ(o.graph, nullptr);
    EXPECT_NE(strstr(o.err.text, "but there is no weights buffer"), nullptr)
        << o.err.text;
}

TEST(OpenvinoIr, DeepNestingIsRefused)
{
    std::string deep;
    for (int i = 0; i < 100000; i++)
        deep += "<a>";
    Outcome o;
    read(replaced(small_ir, "<rt_info>", "<rt_info>" + deep), &o);
    EXPECT_EQ(o.graph, nullptr);
    EXPECT_NE(strstr(o.err.text, "nested deeper than 64 levels"), nullptr) << o.err.text;
}

TEST(OpenvinoIr, AChainOfManyLayersBackwardsInTheFileIsRead)
{
    const int n = 20000;
    std::string layers, edges;
    for (int i = n; i >= 1; i--) {
        std::string id = std::to_string(i);
        layers += "<layer id=\"" + id + "\" name=\"l" + id +
                  "\" type=\"Abs\" version=\"opset1\"><input><port id=\"0\"/></input>"
                  "<output><port id=\"1\"/></output></layer>";
        edges += "<edge from-layer=\"" + std::to_string(i - 1) + "\" from-port=\"" +
                 (i == 1 ? "0" : "1") + "\" to-layer=\"" + id + "\" to-port=\"0\"/>";
    }
    std::string xml =
        "<net name=\"chain\" version=\"11\"><layers>" + layers +
        "<layer id=\"0\" name=\"x\" type=\"Parameter\" version=\"opset1\">"
        "<data shape=\"\" element_type=\"f32\"/><output><port id=\"0\"/></output>"
        "</layer></layers><edges>" +
        edges + "</edges></net>";
    Outcome o;
    read(xml, &o);
    ASSERT_NE(o.graph, nullptr) << o.err.text;
    EXPECT_EQ(o.graph->n_nodes, n + 1u);
    EXPECT_STREQ(o.graph->first->name, "x");
}

TEST(OpenvinoIr, RandomDamageIsReadOrRefusedNeverBoth)
{
    const int rounds = 3000;
    std::minstd_rand random(1);
    const std::string whole = small_ir;
    for (int i = 0; i < rounds; i++) {
        std::string xml = whole;
        // Copies a piece of the file over another place, which often leaves valid XML.
        size_t from = random() % whole.size(), to = random() % whole.size();
        xml.replace(to, random() % 4, whole.substr(from, random() % 8));
        Outcome o;
        read(xml, &o);
        ASSERT_EQ(o.graph == nullptr, o.err.status != XM_OK) << o.err.text;
    }
}

void
fail_every_allocation_of(const char *xml)
{
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        Outcome o;
        xm_fail_allocation(n);
        read(xml, &o);
        bool seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        if (!seen) {
            EXPECT_NE(o.graph, nullptr) << o.err.text;
            break;
        }
        ASSERT_EQ(o.graph, nullptr) << "allocation " << n;
        ASSERT_EQ(o.err.status, XM_NO_MEMORY) << n << ": " << o.err.text;
        failures++;
    }
    EXPECT_GT(failures, 10);
}

TEST(OpenvinoIr, EveryFailedAllocationIsReported)
{
    fail_every_allocation_of(small_ir);
    fail_every_allocation_of(composed_ir);
}
