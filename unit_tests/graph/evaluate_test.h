/* SPDX-License-Identifier: Apache-2.0
 *
 * A fixture for tests that build a graph node by node and evaluate it, and tensors for such
 * graphs.
 */
#ifndef XM_UNIT_TESTS_GRAPH_EVALUATE_TEST_H
#define XM_UNIT_TESTS_GRAPH_EVALUATE_TEST_H

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "transformations/graph/builder.h"
#include "transformations/graph/evaluate.h"

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;
using Tensor = std::unique_ptr<xm_tensor, decltype(&xm_tensor_destroy)>;

inline Tensor
tensor(const Ints &dim, const Floats &v)
{
    xm_tensor *t = nullptr;
    EXPECT_EQ(xm_tensor_create(&t, XM_F32, (uint32_t)dim.size(), dim.data(), nullptr),
              XM_OK);
    EXPECT_EQ(t->n, v.size());
    std::copy(v.begin(), v.end(), t->f);
    return {t, xm_tensor_destroy};
}

inline Tensor
ints(const Ints &dim, const Ints &v, xm_element e = XM_I64)
{
    xm_tensor *t = nullptr;
    EXPECT_EQ(xm_tensor_create(&t, e, (uint32_t)dim.size(), dim.data(), nullptr), XM_OK);
    EXPECT_EQ(t->n, v.size());
    std::copy(v.begin(), v.end(), t->i);
    return {t, xm_tensor_destroy};
}

inline Floats
pattern(size_t n, unsigned seed)
{
    Floats v(n);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
    return v;
}

inline void
expect_near(const xm_tensor *t, const Floats &expected, float tolerance = 1e-5f)
{
    ASSERT_NE(t, nullptr);
    ASSERT_NE(t->f, nullptr);
    ASSERT_EQ(t->n, expected.size());
    for (size_t i = 0; i < expected.size(); i++)
        EXPECT_NEAR(t->f[i], expected[i], tolerance) << "element " << i;
}

inline Ints
ints_of(const xm_tensor *t)
{
    return t && t->i ? Ints(t->i, t->i + t->n) : Ints{-999};
}

// A graph that the test builds, the tensors of its inputs, and the results of its run.
class Evaluate : public testing::Test
{
  protected:
    xm_graph *g = xm_graph_create("test");
    xm_builder b = xm_builder_at_end(g);
    xm_error err = {};
    std::vector<Tensor> kept, outputs;
    std::vector<std::string> names;
    xm_state_store *states = nullptr;
    std::vector<std::unique_ptr<Floats>> bytes;

    ~Evaluate() override
    {
        outputs.clear();
        xm_state_store_destroy(states);
        xm_graph_destroy(g);
    }
    // Adds a parameter of the tensor's type and shape; the run reads the tensor as its value.
    xm_value *in(Tensor t)
    {
        xm_type type = {};
        type.element = t->element;
        type.shape.rank = t->rank;
        for (uint32_t i = 0; i < t->rank; i++)
            type.shape.dim[i] = xm_dim_const(t->dim[i]);
        return declare(std::move(t), type);
    }
    xm_value *declare(Tensor t, const xm_type &type)
    {
        names.push_back("p" + std::to_string(names.size()));
        kept.push_back(std::move(t));
        return xm_parameter(&b, names.back().c_str(), &type);
    }
    xm_value *in(const Ints &dim, const Floats &v)
    {
        return in(tensor(dim, v));
    }
    xm_value *weight(const Ints &dim, const Floats &v)
    {
        bytes.push_back(std::make_unique<Floats>(v));
        struct xm_weight w = {};
        w.element = XM_F32;
        w.rank = (uint32_t)dim.size();
        w.cols = (uint64_t)dim.back();
        w.rows = dim.size() > 1 ? (uint64_t)dim[dim.size() - 2] : 1;
        w.experts = dim.size() > 2 ? (uint64_t)dim[0] : 1;
        w.data = {(const uint8_t *)bytes.back()->data(), v.size() * sizeof(float)};
        return xm_weight(&b, &w, XM_F32);
    }
    xm_value *axes(const Ints &v)
    {
        return xm_const_ints(&b, XM_I64, v.data(), (int)v.size());
    }
    xm_value *scalar(int64_t v)
    {
        return xm_const_ints(&b, XM_I64, &v, -1);
    }
    xm_value *op(xm_op o, std::vector<xm_value *> v, const xm_attr *attr = nullptr)
    {
        return xm_op_build(&b, o, attr, v.data(), (uint32_t)v.size());
    }
    xm_attr defaults(xm_op o)
    {
        union xm_attr attr = {};
        xm_attr_defaults(g, o, &attr);
        return attr;
    }
    xm_status run()
    {
        uint32_t n = 0;
        std::vector<const char *> input_names;
        std::vector<const xm_tensor *> inputs;
        for (size_t i = 0; i < kept.size(); i++) {
            input_names.push_back(names[i].c_str());
            inputs.push_back(kept[i].get());
        }
        xm_for_each_node(node, g) n += node->op == XM_OP_RESULT;
        std::vector<xm_tensor *> out(n);
        xm_eval e = {};
        e.graph = g;
        e.input_names = input_names.data();
        e.inputs = inputs.data();
        e.n_inputs = (uint32_t)inputs.size();
        e.states = states;
        err = {};
        xm_status status = xm_evaluate(&e, out.data(), n, &err);
        outputs.clear();
        for (xm_tensor *t : out)
            outputs.emplace_back(t, xm_tensor_destroy);
        return status;
    }
    // Makes v the only result, runs the graph and returns the value of v. NULL, with a test
    // failure, if the run fails.
    const xm_tensor *value(xm_value *v)
    {
        EXPECT_NE(v, nullptr) << g->err.text;
        if (!v || !xm_result(&b, "r", v))
            return nullptr;
        EXPECT_EQ(run(), XM_OK) << err.text;
        return outputs.empty() ? nullptr : outputs.back().get();
    }
};

#endif
