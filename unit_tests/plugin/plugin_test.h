/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of programs and requests share: the OpenCL engine (without a device the test is
 * skipped, and says so), programs from graph text, runs on host tensors, and the comparison with
 * the reference.
 */
#ifndef XM_UNIT_TESTS_PLUGIN_PLUGIN_TEST_H
#define XM_UNIT_TESTS_PLUGIN_PLUGIN_TEST_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugin/gpu/compile.h"
#include "plugin/gpu/request.h"
#include "transformations/graph/evaluate.h"
#include "transformations/graph/text.h"
#include "unit_tests/compare.h"

using Graph = std::unique_ptr<xm_graph, decltype(&xm_graph_destroy)>;
using Program = std::unique_ptr<xm_program, decltype(&xm_program_unref)>;
using Request = std::unique_ptr<xm_request, decltype(&xm_request_destroy)>;
using Tensor = std::shared_ptr<xm_tensor>;
using Properties = std::vector<std::pair<const char *, const char *>>;

#define ASSERT_XM_OK(expr) ASSERT_EQ(expr, XM_OK) << err.text
#define EXPECT_XM_OK(expr) EXPECT_EQ(expr, XM_OK) << err.text

inline Graph
parse(const std::string &text)
{
    xm_graph *g = nullptr;
    xm_error err = {};
    xm_graph_parse(("graph \"test\"\n" + text).c_str(), &g, &err);
    EXPECT_STREQ(err.text, "") << text;
    return Graph(g, xm_graph_destroy);
}

/* Returns the engine of the first OpenCL device, which is opened once for a test program; NULL
 * without a device. */
inline xm_engine *
opencl_engine()
{
    static const std::unique_ptr<xm_engine, decltype(&xm_engine_unref)> engine(
        [] {
            xm_engine *e = nullptr;
            const xm_device_info *infos = nullptr;
            size_t n = 0;
            xm_error err = {};
            if (xm_engine_list(&infos, &n, &err) == XM_OK && n > 0)
                xm_engine_create(0, nullptr, &e, &err);
            return e;
        }(),
        xm_engine_unref);
    return engine.get();
}

/* Describes the device of a fake engine: a CPU, whose memory tests can read. */
inline xm_device_info
fake_cpu()
{
    xm_device_info info = {};
    info.kind = XM_DEVICE_CPU;
    info.max_alloc_bytes = 64 << 20;
    info.base_align = 64;
    info.max_work_group = 256;
    info.caps = XM_CAP_HOST_VISIBLE;
    return info;
}

/* Describes a device with f16 and ample memory, for engines that only count launches and bytes. */
inline xm_device_info
counted_device(enum xm_device_kind kind)
{
    xm_device_info d = {};
    strcpy(d.name, "a device");
    d.kind = kind;
    d.caps = XM_CAP_FP16;
    d.max_alloc_bytes = (uint64_t)4 << 30;
    d.base_align = 128;
    d.max_work_group = 512;
    d.local_bytes = 64 << 10;
    d.compute_units = 64;
    return d;
}

class OpenClTest : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        engine = opencl_engine();
        if (!engine)
            GTEST_SKIP() << "no OpenCL device";
    }
    void TearDown() override
    {
        unsetenv("XM_SKIP");
    }
    xm_engine *engine = nullptr;
    xm_error err = {};
};

inline enum xm_status
compile(xm_engine *engine, Graph g, const Properties &properties, Program &out,
        xm_error *err, const xm_compile_options *options = nullptr)
{
    xm_config config;
    xm_program *p = nullptr;
    xm_config_init(&config);
    for (auto &property : properties)
        EXPECT_EQ(xm_config_set(&config, property.first, property.second, err), XM_OK);
    enum xm_status s = xm_program_create(engine, &config, g.release(), options, &p, err);
    out = Program(p, xm_program_unref);
    return s;
}

inline Program
must_compile(xm_engine *engine, Graph g, const Properties &properties,
             const xm_compile_options *options = nullptr)
{
    xm_error err = {};
    Program p(nullptr, xm_program_unref);
    EXPECT_XM_OK(compile(engine, std::move(g), properties, p, &err, options));
    return p;
}

inline Request
make_request(xm_program *p)
{
    xm_request *r = nullptr;
    xm_error err = {};
    EXPECT_XM_OK(xm_request_create(p, &r, &err));
    return Request(r, xm_request_destroy);
}

inline Tensor
make_tensor(enum xm_element e, const std::vector<int64_t> &dim)
{
    xm_tensor *t = nullptr;
    xm_error err = {};
    EXPECT_XM_OK(xm_tensor_create(&t, e, (uint32_t)dim.size(), dim.data(), &err));
    return Tensor(t, xm_tensor_destroy);
}

inline Tensor
int_tensor(enum xm_element e, const std::vector<int64_t> &dim,
           const std::vector<int64_t> &values)
{
    Tensor t = make_tensor(e, dim);
    for (uint64_t i = 0; t && i < t->n; i++)
        t->i[i] = values.at(i);
    return t;
}

/* Returns a tensor of pseudo-random values: floats in [-1, 1), integers from 0 to 3. The
 * generator is written out, so that values are equal on all platforms. */
inline Tensor
random_tensor(enum xm_element e, const std::vector<int64_t> &dim, uint32_t seed)
{
    Tensor t = make_tensor(e, dim);
    for (uint64_t i = 0; t && i < t->n; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (t->f)
            t->f[i] = (float)(seed >> 8) / (1 << 23) - 1.0f;
        else
            t->i[i] = e == XM_BOOL ? (seed >> 16) & 1 : (seed >> 16) & 3;
        if (e == XM_F16)
            t->f[i] = xm_half_to_float(xm_float_to_half(t->f[i]));
    }
    return t;
}

inline std::vector<uint8_t>
packed(const xm_tensor *t)
{
    std::vector<uint8_t> bytes(t->n * xm_element_bits(t->element) / 8 + 1);
    xm_tensor_to_bytes(t, bytes.data());
    bytes.pop_back();
    return bytes;
}

/* Runs a request on tensors in the order of its inputs. `out` gets its results. */
inline enum xm_status
infer(xm_request *r, const std::vector<Tensor> &in, std::vector<Tensor> &out,
      xm_error *err)
{
    std::vector<std::vector<uint8_t>> bytes;
    for (size_t i = 0; i < in.size(); i++) {
        bytes.push_back(packed(in[i].get()));
        xm_host_tensor t = {
            in[i]->element, in[i]->rank, {}, bytes[i].data(), bytes[i].size()};
        std::copy_n(in[i]->dim, in[i]->rank, t.dim);
        XM_TRY(xm_request_set_input(r, (uint32_t)i, &t, err));
    }
    XM_TRY(xm_request_infer(r, err));
    out.clear();
    for (uint32_t i = 0; i < xm_request_program(r)->ports.n_outputs; i++) {
        xm_host_tensor t;
        xm_tensor *copy = nullptr;
        XM_TRY(xm_request_output(r, i, &t, err));
        XM_TRY(xm_tensor_from_bytes(&copy, t.element, t.rank, t.dim, t.data, err));
        out.emplace_back(copy, xm_tensor_destroy);
    }
    return XM_OK;
}

inline std::vector<Tensor>
must_infer(xm_request *r, const std::vector<Tensor> &in)
{
    xm_error err = {};
    std::vector<Tensor> out;
    EXPECT_XM_OK(infer(r, in, out, &err));
    return out;
}

/* Returns the reference's results for the same inputs. With `states`, the run starts from the
 * states that the last run left there. */
inline std::vector<Tensor>
reference(const xm_graph *g, const std::vector<Tensor> &in,
          xm_state_store *states = nullptr)
{
    std::vector<const char *> names;
    std::vector<const xm_tensor *> inputs;
    std::vector<xm_tensor *> out;
    xm_error err = {};
    xm_for_each_node(n, g)
    {
        if (n->op == XM_OP_PARAMETER)
            names.push_back(n->attr.name.name);
        if (n->op == XM_OP_RESULT)
            out.push_back(nullptr);
    }
    for (auto &t : in)
        inputs.push_back(t.get());
    xm_eval e = {};
    e.graph = g;
    e.input_names = names.data();
    e.inputs = inputs.data();
    e.n_inputs = (uint32_t)inputs.size();
    e.states = states;
    EXPECT_XM_OK(xm_evaluate(&e, out.data(), (uint32_t)out.size(), &err));
    std::vector<Tensor> results;
    for (xm_tensor *t : out)
        results.emplace_back(t, xm_tensor_destroy);
    return results;
}

/* Compares tensors row by row, where a row is the innermost dimension. The tolerance is relative
 * to the largest magnitude of the row. */
inline void
expect_rows(const xm_tensor *got, const xm_tensor *want, float tolerance,
            const std::string &what)
{
    ASSERT_TRUE(got && want) << what;
    ASSERT_EQ(std::vector<int64_t>(got->dim, got->dim + got->rank),
              std::vector<int64_t>(want->dim, want->dim + want->rank))
        << what;
    if (want->element == XM_F16)
        tolerance = std::fmax(tolerance, 1e-3f); /* f16: half a unit in the last place */
    uint64_t row = want->rank ? (uint64_t)want->dim[want->rank - 1] : 1;
    for (uint64_t at = 0; at < want->n; at += row) {
        float most = 0;
        for (uint64_t k = at; want->f && k < at + row; k++)
            most = std::fmax(most, magnitude(want->f[k]));
        for (uint64_t k = at; k < at + row; k++) {
            if (want->f)
                ASSERT_LE(distance(got->f[k], want->f[k]), tolerance * most + 1e-6f)
                    << what << ", element " << k;
            else
                ASSERT_EQ(got->i[k], want->i[k]) << what << ", element " << k;
        }
    }
}

#endif
