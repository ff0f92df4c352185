/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds small models as OpenVINO IR, layer by layer: the XML and the bytes of the weights.
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_SMALL_IR_H
#define XM_FUNCTIONAL_TESTS_COMMON_SMALL_IR_H

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

/* All values are f32; a dimension of -1 is dynamic. */
class SmallIr
{
  public:
    using Dims = std::vector<int64_t>;
    struct Value {
        int layer, port;
        Dims dims;
    };

    explicit SmallIr(std::string model_name) : name(std::move(model_name))
    {
    }

    Value parameter(const std::string &own_name, const Dims &dims)
    {
        return add(own_name, "Parameter", shape_data(dims), {}, dims);
    }

    Value constant(const std::string &own_name, const Dims &dims,
                   const std::vector<float> &numbers)
    {
        const std::string at = std::to_string(bin.size());
        const std::string size = std::to_string(4 * numbers.size());
        bin.append(reinterpret_cast<const char *>(numbers.data()), 4 * numbers.size());
        return add(own_name, "Const",
                   shape_data(dims) + " offset=\"" + at + "\" size=\"" + size + "\"", {},
                   dims);
    }

    Value op(const std::string &own_name, const std::string &type,
             const std::string &data, const std::vector<Value> &in, const Dims &dims)
    {
        return add(own_name, type, data, in, dims);
    }

    void result(const Value &v)
    {
        add("sink" + std::to_string(layers_n), "Result", "", {v}, {}, false);
    }

    std::string xml() const
    {
        return "<?xml version=\"1.0\"?><net name=\"" + name +
               "\" version=\"11\"><layers>" + layers + "</layers><edges>" + edges +
               "</edges></net>";
    }

    /* Writes both files and returns the path of the .xml file. */
    std::string save(const std::string &stem) const
    {
        std::ofstream(stem + ".xml", std::ios::binary) << xml();
        std::ofstream(stem + ".bin", std::ios::binary) << bin;
        return stem + ".xml";
    }

  private:
    std::string name, layers, edges, bin;
    int layers_n = 0;

    static std::string shape_data(const Dims &dims)
    {
        std::string text = "shape=\"";
        for (size_t i = 0; i < dims.size(); i++)
            text += (i ? "," : "") + (dims[i] < 0 ? "?" : std::to_string(dims[i]));
        return text + "\" element_type=\"f32\"";
    }

    static std::string port(int id, const Dims &dims, const std::string &names)
    {
        std::string text = "<port id=\"" + std::to_string(id) + "\" precision=\"FP32\"";
        text += names.empty() ? ">" : " names=\"" + names + "\">";
        for (int64_t d : dims)
            text += "<dim>" + std::to_string(d) + "</dim>";
        return text + "</port>";
    }

    Value add(const std::string &own_name, const std::string &type,
              const std::string &data, const std::vector<Value> &in, const Dims &dims,
              bool has_output = true)
    {
        const int id = layers_n++, out = static_cast<int>(in.size());
        const std::string number = std::to_string(id);
        layers += "<layer id=\"" + number + "\" name=\"" + own_name + "_node\" type=\"" +
                  type + "\" version=\"opset1\"><data " + data + "/>";
        if (!in.empty())
            layers += "<input>";
        for (int i = 0; i < out; i++) {
            const Value &v = in[static_cast<size_t>(i)];
            layers += port(i, v.dims, "");
            edges += "<edge from-layer=\"" + std::to_string(v.layer) + "\" from-port=\"" +
                     std::to_string(v.port) + "\" to-layer=\"" + number +
                     "\" to-port=\"" + std::to_string(i) + "\"/>";
        }
        if (!in.empty())
            layers += "</input>";
        if (has_output)
            layers += "<output>" + port(out, dims, own_name) + "</output>";
        layers += "</layer>";
        return {id, out, dims};
    }
};

/* Returns prob = softmax(data W): data [rows,16], prob [rows,8]. */
inline SmallIr
small_mlp(int64_t rows)
{
    SmallIr ir("mlp");
    std::vector<float> w(16 * 8);
    for (size_t i = 0; i < w.size(); i++)
        w[i] = 0.01f * static_cast<float>(i % 37) - 0.2f;
    const auto data = ir.parameter("data", {rows, 16});
    const auto weight = ir.constant("weight", {16, 8}, w);
    const auto product = ir.op("product", "MatMul",
                               "transpose_a=\"false\" "
                               "transpose_b=\"false\"",
                               {data, weight}, {rows, 8});
    ir.result(ir.op("prob", "SoftMax", "axis=\"1\"", {product}, {rows, 8}));
    return ir;
}

/* Returns a model with two independent parts: y = softmax(a) and z = softmax(b), [rows,2] each. */
inline SmallIr
small_pair(int64_t rows)
{
    SmallIr ir("pair");
    const auto a = ir.parameter("a", {rows, 2}), b = ir.parameter("b", {rows, 2});
    ir.result(ir.op("y", "SoftMax", "axis=\"1\"", {a}, {rows, 2}));
    ir.result(ir.op("z", "SoftMax", "axis=\"1\"", {b}, {rows, 2}));
    return ir;
}

#endif
