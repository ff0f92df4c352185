/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the API share: owning pointers to handles, and a small model as text.
 */
#ifndef XM_FUNCTIONAL_TESTS_API_API_TEST_H
#define XM_FUNCTIONAL_TESTS_API_API_TEST_H

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "openvino/c/openvino.h"

template <auto free_function> struct Free {
    template <typename T> void operator()(T *p) const
    {
        free_function(p);
    }
};
using Core = std::unique_ptr<ov_core_t, Free<ov_core_free>>;
using Model = std::unique_ptr<ov_model_t, Free<ov_model_free>>;
using Compiled = std::unique_ptr<ov_compiled_model_t, Free<ov_compiled_model_free>>;
using Request = std::unique_ptr<ov_infer_request_t, Free<ov_infer_request_free>>;
using Tensor = std::unique_ptr<ov_tensor_t, Free<ov_tensor_free>>;
using ConstPort =
    std::unique_ptr<ov_output_const_port_t, Free<ov_output_const_port_free>>;
using Port = std::unique_ptr<ov_output_port_t, Free<ov_output_port_free>>;

/* Returns the IR text of y = a + b, f32 [?,2], or [3,2] if static. */
inline std::string
add_model(bool is_static = false)
{
    const std::string n = is_static ? "3" : "-1";
    const std::string dims = "<dim>" + n + "</dim><dim>2</dim>";
    auto parameter = [&](int id, const std::string &name) {
        return "<layer id=\"" + std::to_string(id) + "\" name=\"" + name +
               "\" type=\"Parameter\" version=\"opset1\"><data shape=\"" +
               (is_static ? "3" : "?") +
               ",2\" element_type=\"f32\"/><output><port id=\"0\" precision=\"FP32\" "
               "names=\"" +
               name + "\">" + dims + "</port></output></layer>";
    };
    return "<?xml version=\"1.0\"?><net name=\"adder\" version=\"11\"><layers>" +
           parameter(0, "a") + parameter(1, "b") +
           "<layer id=\"2\" name=\"add\" type=\"Add\" version=\"opset1\">"
           "<data auto_broadcast=\"numpy\"/><input><port id=\"0\" precision=\"FP32\">" +
           dims + "</port><port id=\"1\" precision=\"FP32\">" + dims +
           "</port></input><output><port id=\"2\" precision=\"FP32\" names=\"y\">" +
           dims +
           "</port></output></layer>"
           "<layer id=\"3\" name=\"y/sink\" type=\"Result\" version=\"opset1\">"
           "<input><port id=\"0\" precision=\"FP32\">" +
           dims +
           "</port></input></layer></layers><edges>"
           "<edge from-layer=\"0\" from-port=\"0\" to-layer=\"2\" to-port=\"0\"/>"
           "<edge from-layer=\"1\" from-port=\"0\" to-layer=\"2\" to-port=\"1\"/>"
           "<edge from-layer=\"2\" from-port=\"2\" to-layer=\"3\" to-port=\"0\"/>"
           "</edges></net>";
}

inline Core
make_core()
{
    ov_core_t *core = nullptr;
    EXPECT_EQ(ov_core_create(&core), OK);
    return Core(core);
}

inline std::string
last_error()
{
    const char *text = ov_get_last_err_msg();
    std::string s = text ? text : "";
    ov_free(text);
    return s;
}

inline Model
read_text(ov_core_t *core, const std::string &xml)
{
    ov_model_t *model = nullptr;
    EXPECT_EQ(ov_core_read_model_from_memory_buffer(core, xml.data(), xml.size(), nullptr,
                                                    &model),
              OK)
        << last_error();
    return Model(model);
}

inline Compiled
compile(ov_core_t *core, ov_model_t *model, const char *device = "REFERENCE")
{
    ov_compiled_model_t *compiled = nullptr;
    EXPECT_EQ(ov_core_compile_model(core, model, device, 0, &compiled), OK)
        << last_error();
    return Compiled(compiled);
}

inline Request
make_request(ov_compiled_model_t *compiled)
{
    ov_infer_request_t *request = nullptr;
    EXPECT_EQ(ov_compiled_model_create_infer_request(compiled, &request), OK)
        << last_error();
    return Request(request);
}

/* Wraps the caller's numbers in a tensor without a copy. */
inline Tensor
wrap(float *data, int64_t rows, int64_t columns = 2)
{
    int64_t dims[] = {rows, columns};
    ov_tensor_t *t = nullptr;
    EXPECT_EQ(ov_tensor_create_from_host_ptr(F32, {2, dims}, data, &t), OK);
    return Tensor(t);
}

#endif
