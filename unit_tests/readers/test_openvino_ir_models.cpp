// SPDX-License-Identifier: Apache-2.0
// The IR reader on real exports, and on files that are missing or wrong.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "plugin/readers/openvino_ir.h"
#include "runtime/util/mapped_file.h"
#include "transformations/graph/text.h"
#include "transformations/graph/validate.h"

namespace
{

struct Model {
    const char *name, *path;
    int n_states, n_sdpa, n_topk, n_const;
    const char *logits;
};

void
PrintTo(const Model &m, std::ostream *os)
{
    *os << m.path;
}

// The numbers are those of the files' layers.
const Model models[] = {
    {"Qwen3MoeInt4Asym", "qwen3moe-tiny/ov/int4_asym_g64", 4, 2, 2, 262,
     "f32[batch,tokens,1536]"},
    {"Qwen3MoeInt4Sym", "qwen3moe-tiny/ov/int4_sym_g64", 4, 2, 2, 246,
     "f32[batch,tokens,1536]"},
    {"Qwen3MoeInt8", "qwen3moe-tiny/ov/int8_asym", 4, 2, 2, 246,
     "f32[batch,tokens,1536]"},
    {"Qwen3MoeR1", "qwen3moe-tiny/ov/int4_asym_g128_r1", 4, 2, 2, 263,
     "f32[batch,tokens,1536]"},
    {"Gemma4Moe", "gemma4-moe-tiny/ov/int4_asym_g32", 12, 6, 6, 963,
     "f32[batch,tokens,1803]"},
    {"Gemma4E", "gemma4-e-tiny/ov/int4_asym_g64", 6, 6, 0, 636, "f32[batch,tokens,1803]"},
    {"GptOss", "gpt-oss-tiny/ov/int4_sym_g64", 8, 4, 4, 406, "f32[batch,tokens,1472]"},
};

class OpenvinoIrModel : public testing::TestWithParam<Model>
{
  protected:
    struct xm_graph *g = nullptr;
    struct xm_error err = {};

    void SetUp() override
    {
        std::string path =
            std::string(XM_MODELS_DIR "/") + GetParam().path + "/openvino_model.xml";
        ASSERT_EQ(xm_openvino_ir_read(path.c_str(), nullptr, &g, &err), XM_OK)
            << err.text;
    }
    void TearDown() override
    {
        xm_graph_destroy(g);
    }
    int count(enum xm_op op) const
    {
        int n = 0;
        xm_for_each_node(node, g) n += node->op == op;
        return n;
    }
};

std::string
type_text(const struct xm_value *v)
{
    struct xm_strbuf b = {};
    xm_type_print(&v->type, &b);
    std::string text = xm_strbuf_text(&b);
    xm_strbuf_free(&b);
    return text;
}

std::string
graph_text(const struct xm_graph *g)
{
    struct xm_strbuf b = {};
    xm_graph_print(g, &b);
    std::string text = xm_strbuf_text(&b);
    xm_strbuf_free(&b);
    return text;
}

} // namespace

TEST_P(OpenvinoIrModel, IsValid)
{
    struct xm_strbuf report = {};
    EXPECT_EQ(xm_graph_validate(g, &report, &err), XM_OK) << err.text;
    xm_strbuf_free(&report);
}

TEST_P(OpenvinoIrModel, HasTheLayersOfTheFile)
{
    const Model &m = GetParam();
    EXPECT_EQ(count(XM_OP_PARAMETER), 4);
    EXPECT_EQ(count(XM_OP_RESULT), 1);
    EXPECT_EQ(count(XM_OP_READ_VALUE), m.n_states);
    EXPECT_EQ(count(XM_OP_ASSIGN), m.n_states);
    EXPECT_EQ(count(XM_OP_SDPA), m.n_sdpa);
    EXPECT_EQ(count(XM_OP_TOPK), m.n_topk);
    EXPECT_EQ(count(XM_OP_CONST), m.n_const);
}

TEST_P(OpenvinoIrModel, NamesItsDimensions)
{
    const Model &m = GetParam();
    auto type_of = [this](const char *name) {
        const struct xm_node *n = xm_graph_parameter(g, name);
        return n ? type_text(&n->out[0]) : std::string("none");
    };
    EXPECT_EQ(type_of("input_ids"), "i64[batch,tokens]");
    EXPECT_EQ(type_of("attention_mask"), "i64[batch,past + tokens]");
    EXPECT_EQ(type_of("beam_idx"), "i32[batch]");
    const struct xm_value *logits = xm_graph_find_value(g, "logits");
    ASSERT_NE(logits, nullptr);
    EXPECT_EQ(type_text(logits), m.logits);
}

TEST_P(OpenvinoIrModel, KnowsEveryDimension)
{
    xm_for_each_node(n, g)
    {
        for (uint32_t i = 0; i < n->n_out; i++)
            EXPECT_EQ(type_text(&n->out[i]).find('?'), std::string::npos)
                << n->name << ": " << type_text(&n->out[i]);
    }
}

TEST_P(OpenvinoIrModel, PrintsWhatParsesBack)
{
    std::string text = graph_text(g);
    struct xm_graph *again = nullptr;
    ASSERT_EQ(xm_graph_parse(text.c_str(), &again, &err), XM_OK) << err.text;
    EXPECT_EQ(text == graph_text(again), true);
    xm_graph_destroy(again);
}

TEST_P(OpenvinoIrModel, KeepsTheFilesProperties)
{
    EXPECT_NE(xm_graph_property(g, "conversion_parameters/framework"), nullptr);
    EXPECT_NE(xm_graph_property(g, "nncf/weight_compression/mode"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Files, OpenvinoIrModel, testing::ValuesIn(models),
                         [](const auto &test) { return test.param.name; });

// ---- files
// ---------------------------------------------------------------------------------

namespace
{

class OpenvinoIrFile : public testing::Test
{
  protected:
    std::filesystem::path dir;
    struct xm_graph *g = nullptr;
    struct xm_error err = {};

    void SetUp() override
    {
        char name[] = "xm_ir_XXXXXX";
        dir = std::filesystem::temp_directory_path() / name;
        std::string path = dir.string();
        ASSERT_NE(mkdtemp(path.data()), nullptr);
        dir = path;
    }
    void TearDown() override
    {
        xm_graph_destroy(g);
        std::filesystem::remove_all(dir);
    }
    std::string write(const char *name, const std::string &text) const
    {
        std::string path = (dir / name).string();
        std::ofstream(path, std::ios::binary) << text;
        return path;
    }
    enum xm_status read(const std::string &xml, const char *bin = nullptr)
    {
        return xm_openvino_ir_read(xml.c_str(), bin, &g, &err);
    }
    bool says(const char *part) const
    {
        return strstr(err.text, part) != nullptr;
    }
};

const char one_parameter[] = R"(<net name="n" version="11"><layers>
    <layer id="0" name="x" type="Parameter" version="opset1">
    <data shape="?" element_type="f16"/><output><port id="0"><dim>-1</dim></port></output>
    </layer></layers><edges/></net>)";

const char one_constant[] = R"(<net name="n" version="11"><layers>
    <layer id="0" name="c" type="Const" version="opset1">
    <data shape="2" element_type="u8" offset="0" size="2"/>
    <output><port id="0"><dim>2</dim></port></output></layer></layers><edges/></net>)";

} // namespace

TEST_F(OpenvinoIrFile, ANetWithoutConstantsNeedsNoBin)
{
    EXPECT_EQ(read(write("m.xml", one_parameter)), XM_OK) << err.text;
}

/* The mask's length is past plus tokens: another input or a state must determine one of them. */
TEST_F(OpenvinoIrFile, AMaskAloneHasALengthOfItsOwn)
{
    const auto port = [](const std::vector<int> &dims) {
        std::string text = "<output><port id=\"0\">";
        for (int d : dims)
            text += "<dim>" + std::to_string(d) + "</dim>";
        return text + "</port></output></layer>";
    };
    const auto input = [&](int id, const std::string &name, const std::string &shape,
                           const std::vector<int> &dims) {
        return "<layer id=\"" + std::to_string(id) + "\" name=\"" + name +
               "\" type=\"Parameter\" version=\"opset1\"><data shape=\"" + shape +
               "\" element_type=\"i64\"/>" + port(dims);
    };
    const std::string state =
        "<layer id=\"1\" name=\"s\" type=\"ReadValue\" version=\"opset6\"><data "
        "variable_id=\"s\" variable_type=\"f32\" variable_shape=\"?,2,?,4\"/>" +
        port({-1, 2, -1, 4});
    const std::string own = "i64[batch,attention_mask.1]",
                      sum = "i64[batch,past + tokens]";
    const struct {
        std::string other, type;
    } rows[] = {{"", own},
                {input(1, "x", "?,?", {-1, -1}), own},
                {input(1, "input_ids", "1,4", {1, 4}), own},
                {input(1, "input_ids", "?,?", {-1, -1}), sum},
                {input(1, "inputs_embeds", "?,?,8", {-1, -1, 8}), sum},
                {state, sum}};
    for (const auto &row : rows) {
        xm_graph_destroy(g);
        g = nullptr;
        const std::string layers =
            input(0, "attention_mask", "?,?", {-1, -1}) + row.other;
        ASSERT_EQ(read(write("m.xml", "<net name=\"n\" version=\"11\"><layers>" + layers +
                                          "</layers><edges/></net>")),
                  XM_OK)
            << err.text;
        EXPECT_EQ(type_text(&xm_graph_parameter(g, "attention_mask")->out[0]), row.type)
            << row.other;
    }
}

TEST_F(OpenvinoIrFile, AMissingBinIsNamedByTheConstantThatNeedsIt)
{
    EXPECT_EQ(read(write("m.xml", one_constant)), XM_NOT_FOUND);
    EXPECT_TRUE(says("m.xml: layer 'c' (id 0): Const: the layer needs 2 bytes"))
        << err.text;
    EXPECT_TRUE(says("m.bin")) << err.text;
}

TEST_F(OpenvinoIrFile, ABinThatWasAskedForMustBeThere)
{
    EXPECT_EQ(read(write("m.xml", one_parameter), (dir / "other.bin").c_str()),
              XM_NOT_FOUND);
    EXPECT_TRUE(says("other.bin")) << err.text;
}

TEST_F(OpenvinoIrFile, ABinOfAnotherNameIsRead)
{
    std::string bin = write("other.bin", "ab");
    EXPECT_EQ(read(write("m.xml", one_constant), bin.c_str()), XM_OK) << err.text;
}

TEST_F(OpenvinoIrFile, AnEmptyBinIsTooShort)
{
    write("m.bin", "");
    EXPECT_EQ(read(write("m.xml", one_constant)), XM_INVALID);
    EXPECT_TRUE(says("2 bytes at offset 0 lie outside")) << err.text;
}

TEST_F(OpenvinoIrFile, ThereIsNoSuchFile)
{
    EXPECT_EQ(read((dir / "none.xml").string()), XM_NOT_FOUND);
    EXPECT_TRUE(says("none.xml")) << err.text;
}

TEST_F(OpenvinoIrFile, AFolderIsNotAFile)
{
    EXPECT_EQ(read(dir.string()), XM_IO);
    EXPECT_TRUE(says("not a regular file")) << err.text;
}

TEST_F(OpenvinoIrFile, AnEmptyFileIsRefused)
{
    EXPECT_EQ(read(write("m.xml", "")), XM_UNSUPPORTED);
    EXPECT_TRUE(says("it is empty; expected an OpenVINO IR")) << err.text;
}

TEST_F(OpenvinoIrFile, TheWeightsOutliveTheReader)
{
    write("m.bin", "ab");
    ASSERT_EQ(read(write("m.xml", one_constant)), XM_OK) << err.text;
    std::filesystem::remove(dir / "m.bin");
    EXPECT_EQ(g->first->attr.data.bytes[1], 'b');
    EXPECT_EQ(g->n_mappings, 1u);
}

TEST(MappedFile, ClosingTwiceIsAllowed)
{
    struct xm_mapped_file f = {};
    struct xm_error err = {};
    ASSERT_EQ(xm_mapped_file_open(XM_MODELS_DIR "/README.md", &f, &err), XM_OK)
        << err.text;
    EXPECT_GT(f.n_bytes, 0u);
    xm_mapped_file_close(&f);
    xm_mapped_file_close(&f);
    EXPECT_EQ(f.bytes, nullptr);
}
