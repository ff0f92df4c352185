// SPDX-License-Identifier: Apache-2.0
// A model whose embeddings are in a separate file, as exporters write models that also read
// pictures: a tiny model is cut in two and must generate the same text.
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "functional_tests/common/files.h"
#include "functional_tests/common/folder.h"
#include "functional_tests/common/program.h"
#include "functional_tests/common/text.h"

namespace
{

const std::string qwen = XM_MODELS_DIR "/qwen3moe-tiny/ov/int4_sym_g64";
const std::string gemma = XM_MODELS_DIR "/gemma4-e-tiny/ov/int4_asym_g64";

/* The XML of a net as layers and edges. */
struct net {
    std::map<std::string, std::string> layers; /* the text of each layer by its id */
    std::vector<std::array<std::string, 4>> edges;

    explicit net(const std::string &xml)
    {
        for (size_t at = 0; (at = xml.find("<layer ", at)) != std::string::npos;) {
            const size_t end = xml.find("</layer>", at) + strlen("</layer>");
            const std::string text = xml.substr(at, end - at);
            layers[attribute(text, "id")] = text;
            at = end;
        }
        for (size_t at = 0; (at = xml.find("<edge ", at)) != std::string::npos; at++) {
            const std::string text = xml.substr(at, xml.find('>', at) - at);
            edges.push_back({attribute(text, "from-layer"), attribute(text, "from-port"),
                             attribute(text, "to-layer"), attribute(text, "to-port")});
        }
    }
    static std::string attribute(const std::string &text, const std::string &key)
    {
        const size_t at = text.find(" " + key + "=\"") + key.size() + 3;
        return text.substr(at, text.find('"', at) - at);
    }
    /* Returns the id of the layer of this type whose name contains `name`. */
    std::string id_of(const std::string &type, const std::string &name) const
    {
        for (const auto &l : layers)
            if (attribute(l.second, "type") == type &&
                attribute(l.second, "name").find(name) != std::string::npos)
                return l.first;
        ADD_FAILURE() << "no " << type << " " << name;
        return "";
    }
    /* Returns a layer and all layers that it reads, directly or not. */
    std::set<std::string> above(const std::string &id) const
    {
        std::set<std::string> all = {id};
        for (size_t n = 0; n != all.size();) {
            n = all.size();
            for (const auto &e : edges)
                if (all.count(e[2]))
                    all.insert(e[0]);
        }
        return all;
    }
    /* Returns the XML of the net without layers that nothing reads. */
    std::string text() const
    {
        std::set<std::string> used;
        for (const auto &l : layers)
            if (contains(l.second, "type=\"Result\"") ||
                contains(l.second, "type=\"Assign\""))
                for (const std::string &id : above(l.first))
                    used.insert(id);
        std::string all = "<net name=\"part\" version=\"11\"><layers>";
        for (const auto &l : layers)
            if (used.count(l.first))
                all += l.second;
        all += "</layers><edges>";
        for (const auto &e : edges)
            if (used.count(e[0]) && used.count(e[2]))
                all += "<edge from-layer=\"" + e[0] + "\" from-port=\"" + e[1] +
                       "\" to-layer=\"" + e[2] + "\" to-port=\"" + e[3] + "\"/>";
        return all + "</edges></net>";
    }
};

std::string
port(const char *id, const char *type, const std::vector<int> &dims)
{
    std::string text = std::string("<port id=\"") + id + "\" precision=\"" + type + "\">";
    for (int d : dims)
        text += "<dim>" + std::to_string(d) + "</dim>";
    return text + "</port>";
}

std::string
layer(const std::string &id, const std::string &name, const std::string &type,
      const std::string &data, const std::string &in, const std::string &out)
{
    return "<layer id=\"" + id + "\" name=\"" + name + "\" type=\"" + type +
           "\" version=\"" + (type == "Gather" ? "opset8" : "opset1") + "\"><data " +
           data + "/>" + (in.empty() ? "" : "<input>" + in + "</input>") +
           (out.empty() ? "" : "<output>" + out + "</output>") + "</layer>";
}

class Joined : public testing::Test
{
  protected:
    static constexpr int HIDDEN = 256;

    /* Writes the layers that compute the rows of a lookup to a file; in the language model an
     * input replaces them. */
    void cut(const net &model, const std::string &lookup, const std::string &file,
             const std::string &input, int width, net *language)
    {
        const std::string id = model.id_of("Gather", lookup),
                          ids = model.id_of("Parameter", "input_ids"),
                          text = model.layers.at(id);
        const std::string out = net::attribute(text.substr(text.find("<output>")), "id");
        const std::string shape =
            "shape=\"?,?," + std::to_string(width) + "\" element_type=\"f32\"";
        net part = model;
        part.layers.clear();
        for (const std::string &above : model.above(id))
            part.layers[above] = model.layers.at(above);
        part.layers[ids] =
            layer(ids, "input", "Parameter", "shape=\"?,?\" element_type=\"i64\"", "",
                  port("0", "I64", {-1, -1}));
        part.layers["900001"] =
            layer("900001", "rows", "Result", "", port("0", "FP32", {-1, -1, width}), "");
        part.edges.push_back({id, out, "900001", "0"});
        folder.write(file + ".xml", part.text());
        folder.write(file + ".bin", bin);
        language->layers[id] = layer(id, input, "Parameter", shape, "",
                                     port(out.c_str(), "FP32", {-1, -1, width}));
        std::vector<std::array<std::string, 4>> edges;
        for (const auto &e : language->edges)
            if (e[2] != id)
                edges.push_back(e);
        language->edges = edges;
    }

    /* Positions get three axes, of which the second is read, and the token types are added to
     * them. */
    void cut_all(const std::string &whole, int per_layer_width)
    {
        const net model(read_file(whole + "/openvino_model.xml"));
        const std::string positions = model.id_of("Parameter", "position_ids");
        net language = model;
        bin = read_file(whole + "/openvino_model.bin");
        cut(model, "embed_tokens/", "openvino_text_embeddings_model", "inputs_embeds",
            HIDDEN, &language);
        if (per_layer_width)
            cut(model, "embed_tokens_per_layer/",
                "openvino_text_embeddings_per_layer_model", "per_layer_inputs",
                per_layer_width, &language);
        const std::string offset = std::to_string(bin.size());
        bin += std::string("\1\0\0\0\0\0\0\0", 8) + std::string(8, '\0');
        add(&language, "1", "position_ids", "Parameter",
            "shape=\"3,?,?\" element_type=\"i64\"", "", port("0", "I64", {3, -1, -1}));
        add(&language, "2", "token_type_ids", "Parameter",
            "shape=\"?,?\" element_type=\"i64\"", "", port("0", "I64", {-1, -1}));
        add(&language, "3", "one", "Const",
            "element_type=\"i64\" shape=\"\" size=\"8\" offset=\"" + offset + "\"", "",
            port("0", "I64", {}));
        add(&language, "4", "zero", "Const",
            "element_type=\"i64\" shape=\"\" size=\"8\" offset=\"" +
                std::to_string(std::stoul(offset) + 8) + "\"",
            "", port("0", "I64", {}));
        add(&language, "5", "height", "Gather", "batch_dims=\"0\"",
            port("0", "I64", {3, -1, -1}) + port("1", "I64", {}) + port("2", "I64", {}),
            port("3", "I64", {-1, -1}));
        add(&language, "6", "sum", "Add", "auto_broadcast=\"numpy\"",
            port("0", "I64", {-1, -1}) + port("1", "I64", {-1, -1}),
            port("2", "I64", {-1, -1}));
        std::vector<std::array<std::string, 4>> edges = {{"900001", "0", "900005", "0"},
                                                         {"900003", "0", "900005", "1"},
                                                         {"900004", "0", "900005", "2"},
                                                         {"900005", "3", "900006", "0"},
                                                         {"900002", "0", "900006", "1"}};
        for (auto e : language.edges) {
            if (e[0] == positions)
                e = {"900006", "2", e[2], e[3]};
            edges.push_back(e);
        }
        language.edges = edges;
        folder.write("openvino_language_model.xml", language.text());
        folder.write("openvino_language_model.bin", bin);
    }
    static void add(net *to, const std::string &id, const std::string &name,
                    const std::string &type, const std::string &data,
                    const std::string &in, const std::string &out)
    {
        to->layers["90000" + id] = layer("90000" + id, name, type, data, in, out);
    }

    void expect_same_logits(const std::string &whole)
    {
        std::string logits[2];
        for (int i = 0; i < 2; i++) {
            const std::string file = folder / std::to_string(i) + ".npy";
            const auto r = run({"logits", "-m", i ? folder.path : whole, "-d",
                                "REFERENCE", "--ids", "5,900,17", "-o", file});
            ASSERT_EQ(r.code, 0) << r.err;
            logits[i] = read_file(file);
        }
        EXPECT_GT(logits[0].size(), 3u * 1500u * 4u);
        EXPECT_TRUE(logits[0] == logits[1]);
    }

    const Folder folder{"joined"};
    std::string bin;
};

} // namespace

TEST_F(Joined, SaysWhatTheWholeModelSays)
{
    cut_all(qwen, 0);
    expect_same_logits(qwen);
}

TEST_F(Joined, HasEmbeddingsForEachLayerToo)
{
    cut_all(gemma, 384);
    expect_same_logits(gemma);
    remove((folder / "openvino_text_embeddings_per_layer_model.xml").c_str());
    const auto r = run({"logits", "-m", folder.path, "--ids", "5"});
    EXPECT_EQ(r.code, 3);
    EXPECT_TRUE(contains(r.err, "openvino_text_embeddings_per_layer_model.xml")) << r.err;
}

TEST_F(Joined, MakesTexts)
{
    if (!has_device())
        GTEST_SKIP() << "no OpenCL device";
    cut_all(qwen, 0);
    folder.write("tokenizer.json", read_file(qwen + "/tokenizer.json"));
    const auto a = run({"generate", "-m", qwen, "--ids", "5,900,17", "-n", "4"});
    const auto b = run({"generate", "-m", folder.path, "--ids", "5,900,17", "-n", "4"});
    EXPECT_EQ(a.code, 0) << a.err;
    EXPECT_EQ(b.code, 0) << b.err;
    EXPECT_EQ(a.out, b.out);
    EXPECT_EQ(run({"verify", "-m", folder.path, "--ids", "5,900"}).code, 0);
    const auto info = run({"info", folder.path});
    EXPECT_EQ(info.code, 0) << info.err;
    EXPECT_TRUE(contains(info.out, "position_ids             i64[batch,tokens]"))
        << info.out;
    EXPECT_FALSE(contains(info.out, "inputs_embeds")) << info.out;
}

TEST_F(Joined, SaysWhatIsMissing)
{
    cut_all(qwen, 0);
    const std::string xml = folder / "openvino_language_model.xml";
    auto r = run({"logits", "-m", xml, "--ids", "5"});
    EXPECT_EQ(r.code, 3);
    EXPECT_TRUE(contains(r.err, "'inputs_embeds'"))
        << "that file alone has it: " << r.err;
    remove((folder / "openvino_text_embeddings_model.xml").c_str());
    r = run({"logits", "-m", folder.path, "--ids", "5"});
    EXPECT_EQ(r.code, 3);
    EXPECT_TRUE(contains(r.err, "openvino_text_embeddings_model.xml")) << r.err;
}
