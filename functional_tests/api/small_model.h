/* SPDX-License-Identifier: Apache-2.0
 *
 * Small models as OpenVINO IR text, one line for each layer; and runs of them on numbers.
 */
#ifndef XM_FUNCTIONAL_TESTS_API_SMALL_MODEL_H
#define XM_FUNCTIONAL_TESTS_API_SMALL_MODEL_H

#include <cstring>
#include <vector>

#include "functional_tests/api/api_test.h"

/* Builds a model from layers in order, each with the types of its outputs, as in a file. Shapes
 * are written "2,3", "?,1..8,3" or "". */
class SmallModel
{
  public:
    struct Output {
        std::string element, shape, names;
    };

    int parameter(const std::string &name, const std::string &element,
                  const std::string &shape)
    {
        return layer("Parameter", 1,
                     "shape=\"" + shape + "\" element_type=\"" + element + "\"", {},
                     {{element, shape, name}});
    }
    template <typename T>
    int constant(const std::string &element, const std::string &shape,
                 const std::vector<T> &data, size_t size = SIZE_MAX)
    {
        const size_t at = weights.size(), n = data.size() * sizeof(T);
        weights.resize(at + std::max<size_t>(n, 1));
        if (n)
            memcpy(&weights[at], data.data(), n);
        return layer("Const", 1,
                     "element_type=\"" + element + "\" shape=\"" + shape +
                         "\" offset=\"" + std::to_string(at) + "\" size=\"" +
                         std::to_string(size == SIZE_MAX ? n : size) + "\"",
                     {}, {{element, shape, ""}});
    }
    /* Adds a layer that reads output 0 of the layers `in`; returns its number. */
    int layer(const std::string &type, int opset, const std::string &data,
              const std::vector<int> &in, const std::vector<Output> &out)
    {
        const int id = (int)outputs.size();
        const std::string number = std::to_string(id);
        layers += "<layer id=\"" + number + "\" name=\"" + type + "_" + number +
                  "\" type=\"" + type + "\" version=\"opset" + std::to_string(opset) +
                  "\"><data " + data + "/><input>";
        for (size_t i = 0; i < in.size(); i++) {
            layers += port(i, outputs[(size_t)in[i]], false);
            edges += "<edge from-layer=\"" + std::to_string(in[i]) + "\" from-port=\"" +
                     std::to_string(n_inputs[(size_t)in[i]]) + "\" to-layer=\"" + number +
                     "\" to-port=\"" + std::to_string(i) + "\"/>";
        }
        layers += "</input><output>";
        for (size_t i = 0; i < out.size(); i++)
            layers += port(in.size() + i, out[i], true);
        layers += "</output></layer>";
        outputs.push_back(out.empty() ? Output() : out[0]);
        n_inputs.push_back(in.size());
        return id;
    }
    void result(int of)
    {
        layer("Result", 1, "", {of}, {});
    }
    std::string text() const
    {
        return "<?xml version=\"1.0\"?><net name=\"small\" version=\"11\"><layers>" +
               layers + "</layers><edges>" + edges + "</edges></net>";
    }
    Model read(ov_core_t *core)
    {
        int64_t n[] = {(int64_t)weights.size()};
        ov_tensor_t *bytes = nullptr;
        ov_model_t *model = nullptr;
        if (!weights.empty()) {
            EXPECT_EQ(ov_tensor_create_from_host_ptr(U8, {1, n}, weights.data(), &bytes),
                      OK);
        }
        Tensor owned(bytes);
        const std::string xml = text();
        EXPECT_EQ(ov_core_read_model_from_memory_buffer(core, xml.data(), xml.size(),
                                                        bytes, &model),
                  OK)
            << last_error();
        return Model(model);
    }

    std::vector<uint8_t> weights; /* must outlive the model that was read */

  private:
    static std::string port(size_t id, const Output &o, bool is_output)
    {
        std::string text = "<port id=\"" + std::to_string(id) + "\" precision=\"" +
                           precision(o.element) + "\"";
        if (is_output && !o.names.empty())
            text += " names=\"" + o.names + "\"";
        text += ">";
        for (size_t at = 0; at < o.shape.size();) {
            const size_t end = std::min(o.shape.find(',', at), o.shape.size());
            const std::string d = o.shape.substr(at, end - at);
            text += "<dim>" + (d.find_first_of("?.") < d.size() ? "-1" : d) + "</dim>";
            at = end + 1;
        }
        return text + "</port>";
    }
    static std::string precision(const std::string &element)
    {
        if (element == "boolean")
            return "BOOL";
        if (element[0] == 'f')
            return "FP" + element.substr(1);
        std::string s = element;
        for (char &c : s)
            c = (char)toupper(c);
        return s;
    }
    std::string layers, edges;
    std::vector<Output> outputs;
    std::vector<size_t> n_inputs;
};

/* Wraps the caller's numbers of any element type in a tensor. */
template <typename T>
Tensor
tensor_of(ov_element_type_e type, std::vector<int64_t> dims, std::vector<T> &data)
{
    ov_tensor_t *t = nullptr;
    EXPECT_EQ(ov_tensor_create_from_host_ptr(
                  type, {(int64_t)dims.size(), dims.empty() ? nullptr : dims.data()},
                  data.data(), &t),
              OK)
        << last_error();
    return Tensor(t);
}

/* Returns the elements of an output. */
template <typename T>
std::vector<T>
numbers_of(ov_infer_request_t *request, const char *name)
{
    ov_tensor_t *t = nullptr;
    size_t n = 0;
    void *data = nullptr;
    EXPECT_EQ(ov_infer_request_get_tensor(request, name, &t), OK) << last_error();
    Tensor owned(t);
    EXPECT_EQ(ov_tensor_get_size(t, &n), OK);
    EXPECT_EQ(ov_tensor_data(t, &data), OK);
    const T *first = static_cast<const T *>(data);
    return data ? std::vector<T>(first, first + n) : std::vector<T>();
}

#endif
