/* SPDX-License-Identifier: Apache-2.0
 *
 * The small models of the folder data, and the logits that make_models.py computed for them.
 */
#ifndef XM_UNIT_TESTS_MODELS_MODEL_FILES_H
#define XM_UNIT_TESTS_MODELS_MODEL_FILES_H

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "plugin/models/gguf_graph.h"
#include "unit_tests/plugin/language_model.h"

using Gguf = std::unique_ptr<xm_gguf, void (*)(xm_gguf *)>;

inline std::string
model_path(const std::string &name)
{
    return std::string(XM_MODEL_DATA "/") + name + ".gguf";
}

inline Gguf
open_gguf(const std::string &name)
{
    xm_gguf *g = nullptr;
    xm_error err = {};
    EXPECT_XM_OK(xm_gguf_open(model_path(name).c_str(), &g, &err));
    return Gguf(g, xm_gguf_close);
}

inline Graph
read_gguf(const std::string &name)
{
    const Gguf file = open_gguf(name);
    xm_graph *g = nullptr;
    xm_error err = {};
    EXPECT_XM_OK(xm_gguf_graph(file.get(), name.c_str(), &g, &err));
    return Graph(g, xm_graph_destroy);
}

/* A text and its logits [T,V], computed in float64 and rounded to f32. */
struct Golden {
    std::vector<int64_t> ids;
    std::vector<float> logits;
    size_t vocabulary = 0;
};

inline Golden
golden_of(const std::string &name)
{
    const Gguf file = open_gguf("golden");
    Golden out;
    xm_gguf_values list = {};
    xm_error err = {};
    EXPECT_XM_OK(xm_gguf_list(file.get(), (name + ".ids").c_str(), &list, &err));
    for (uint64_t i = 0; i < list.n; i++) {
        uint32_t id = 0;
        EXPECT_XM_OK(xm_gguf_u32_at(&list, i, &id, &err));
        out.ids.push_back(id);
    }
    const xm_gguf_tensor *t = xm_gguf_find_tensor(file.get(), (name + ".logits").c_str());
    EXPECT_NE(t, nullptr) << name;
    if (!t)
        return out;
    out.vocabulary = t->ne[0];
    out.logits.resize(t->data.n / sizeof(float));
    memcpy(out.logits.data(), t->data.p, t->data.n);
    EXPECT_EQ(out.logits.size(), out.ids.size() * out.vocabulary);
    return out;
}

#endif
