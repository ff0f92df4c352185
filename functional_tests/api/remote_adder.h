/* SPDX-License-Identifier: Apache-2.0
 *
 * A small model on memory of the test: y = a + b, with a number of rows that is no multiple of a
 * vector's length.
 */
#ifndef XM_FUNCTIONAL_TESTS_API_REMOTE_ADDER_H
#define XM_FUNCTIONAL_TESTS_API_REMOTE_ADDER_H

#include "functional_tests/api/remote_test.h"

constexpr int64_t rows = 300;
constexpr size_t n_floats = rows * 2, n_bytes = n_floats * sizeof(float);
inline const Dims shape = {rows, 2};

inline std::vector<float>
numbers(float seed)
{
    std::vector<float> v(n_floats);
    for (size_t i = 0; i < v.size(); i++)
        v[i] = seed + 0.37f * float(i % 91);
    return v;
}

inline std::string
replaced(std::string text, const std::string &what, const std::string &by)
{
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
        text.replace(at, what.size(), by);
    return text;
}

inline std::vector<uint8_t>
bytes_of(const std::vector<float> &v)
{
    std::vector<uint8_t> bytes(v.size() * sizeof(float));
    memcpy(bytes.data(), v.data(), bytes.size());
    return bytes;
}

/* The model y = a + b in the fixture, with inputs on the host. */
class RemoteAdder : public Remote
{
  protected:
    void SetUp() override
    {
        Remote::SetUp();
        const std::string n = std::to_string(rows);
        const std::string sized =
            replaced(add_model(true), "<dim>3</dim>", "<dim>" + n + "</dim>");
        model = read_text(core.get(),
                          replaced(sized, "shape=\"3,2\"", "shape=\"" + n + ",2\""));
    }

    /* Returns the model y = a + a with a dynamic number of rows. */
    Model dynamic_model()
    {
        return read_text(core.get(),
                         replaced(add_model(), "from-layer=\"1\"", "from-layer=\"0\""));
    }

    static void set_host(const Request &r, const char *name, std::vector<float> &v)
    {
        set(r, name, wrap(v.data(), rows));
    }

    static std::vector<uint8_t> read_output(const Request &r)
    {
        ov_tensor_t *t = nullptr;
        void *data = nullptr;
        EXPECT_EQ(ov_infer_request_get_output_tensor(r.get(), &t), OK) << last_error();
        Tensor owned(t);
        EXPECT_EQ(ov_tensor_data(t, &data), OK) << last_error();
        std::vector<uint8_t> bytes(n_bytes);
        if (data)
            memcpy(bytes.data(), data, n_bytes);
        return bytes;
    }

    /* Returns the result of a run with host tensors. */
    std::vector<uint8_t> expected(ov_compiled_model_t *compiled)
    {
        const Request r = make_request(compiled);
        set_host(r, "a", a);
        set_host(r, "b", b);
        infer(r);
        return read_output(r);
    }

    /* Runs with inputs and output in buffers of the test. Nothing waits between the test's
     * writes, the run and its read. */
    void run_on(const Request &r, const ov_remote_context_t *c, cl_command_queue q,
                const std::vector<uint8_t> &want)
    {
        cl_mem ma = make_mem(n_bytes), mb = make_mem(n_bytes), my = make_mem(n_bytes);
        set(r, "a", tensor_of(c, F32, shape, "OCL_BUFFER", ma));
        set(r, "b", tensor_of(c, F32, shape, "OCL_BUFFER", mb));
        set(r, "y", tensor_of(c, F32, shape, "OCL_BUFFER", my));
        clEnqueueWriteBuffer(q, ma, CL_FALSE, 0, n_bytes, a.data(), 0, nullptr, nullptr);
        clEnqueueWriteBuffer(q, mb, CL_FALSE, 0, n_bytes, b.data(), 0, nullptr, nullptr);
        infer(r);
        expect_bits(read_mem(my, n_bytes, q), want);
    }

    Model model;
    std::vector<float> a = numbers(1.5f), b = numbers(-20.0f);
};

#endif
