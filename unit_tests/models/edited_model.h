/* SPDX-License-Identifier: Apache-2.0
 *
 * A small model whose keys and tensors a test edits, and the graph that is built from the edited
 * file.
 */
#ifndef XM_UNIT_TESTS_MODELS_EDITED_MODEL_H
#define XM_UNIT_TESTS_MODELS_EDITED_MODEL_H

#include <algorithm>
#include <string>
#include <vector>

#include "unit_tests/models/model_files.h"
#include "unit_tests/readers/gguf_file.h"

namespace gguf
{

/* Returns the number that GGUF files have for an element type. */
inline uint32_t
type_number(enum xm_element element)
{
    static const enum xm_element of[] = {XM_U8,  XM_I8,  XM_U16,  XM_I16,    XM_U32,
                                         XM_I32, XM_F32, XM_BOOL, XM_STRING, XM_DYNAMIC,
                                         XM_U64, XM_I64, XM_F64};
    return (uint32_t)(std::find(std::begin(of), std::end(of), element) - of);
}

class model
{
  public:
    explicit model(const std::string &name) : name_(name)
    {
        const Gguf g = open_gguf(name);
        xm_slice arch = {};
        xm_error err = {};
        EXPECT_XM_OK(xm_gguf_text(g.get(), "general.architecture", &arch, &err));
        arch_ = std::string(arch.text, arch.n);
        for (uint64_t i = 0; g && i < g->parts[0].n_keys; i++)
            add_key(g->parts[0].keys[i]);
        for (uint64_t i = 0; g && i < g->n_tensors; i++) {
            const xm_gguf_tensor *t = g->tensors[i];
            tensors.push_back(
                {std::string(t->name.text, t->name.n),
                 {t->ne, t->ne + t->rank},
                 t->type->number,
                 std::string(reinterpret_cast<const char *>(t->data.p), t->data.n)});
        }
    }

    struct entry {
        std::string name;
        uint32_t type;
        std::string value;
    };
    struct tensor_entry {
        std::string name;
        std::vector<uint64_t> ne;
        uint32_t type;
        std::string data;
    };
    std::vector<entry> keys;
    std::vector<tensor_entry> tensors;

    /* Sets a key. `key` is written without the prefix of the architecture, except for keys that
     * begin with "general.". */
    model &set(const std::string &key, uint32_t type, const std::string &value)
    {
        drop(key);
        keys.push_back({full(key), type, value});
        return *this;
    }
    model &set(const std::string &key, uint32_t number)
    {
        return set(key, U32, bytes_of(number));
    }
    model &set_float(const std::string &key, float number)
    {
        return set(key, F32, bytes_of(number));
    }
    model &drop(const std::string &key)
    {
        const std::string name = full(key);
        keys.erase(std::remove_if(keys.begin(), keys.end(),
                                  [&](const entry &e) { return e.name == name; }),
                   keys.end());
        return *this;
    }
    tensor_entry &tensor(const std::string &name)
    {
        for (tensor_entry &t : tensors) {
            if (t.name == name)
                return t;
        }
        ADD_FAILURE() << "no tensor " << name << " in " << name_;
        return tensors[0];
    }
    model &drop_tensor(const std::string &name)
    {
        tensors.erase(tensors.begin() + (&tensor(name) - tensors.data()));
        return *this;
    }

    std::string bytes() const
    {
        file f;
        for (const entry &e : keys)
            f.key(e.name, e.type, e.value);
        for (const tensor_entry &t : tensors) {
            f.data.resize((f.data.size() + 31) / 32 * 32);
            f.tensor(t.name, t.ne, t.type, f.data.size());
            f.data += t.data;
        }
        return f.bytes();
    }

  private:
    std::string full(const std::string &key) const
    {
        return key.rfind("general.", 0) == 0 ? key : arch_ + "." + key;
    }
    void add_key(const xm_gguf_key &k)
    {
        const xm_gguf_values &v = k.value;
        const std::string raw(reinterpret_cast<const char *>(v.bytes.p), v.bytes.n);
        const uint32_t type = type_number(v.element);
        keys.push_back({std::string(k.name.text, k.name.n),
                        k.is_list ? (uint32_t)LIST : type,
                        k.is_list ? list(type, v.n, raw) : raw});
    }
    std::string name_, arch_;
};

/* Builds the graph of an edited model; after a failure the error text says why there is none. */
class graph_of
{
  public:
    explicit graph_of(const model &m) : file_(m.bytes())
    {
        EXPECT_EQ(file_.status, XM_OK) << file_.err.text;
        if (!file_.g)
            return;
        xm_graph *g = nullptr;
        status = xm_gguf_graph(file_.g, "model.gguf", &g, &err);
        graph = Graph(g, xm_graph_destroy);
        EXPECT_EQ(status, err.status);
        EXPECT_EQ(status == XM_OK, g != nullptr);
        EXPECT_EQ(status == XM_OK, err.text[0] == '\0') << err.text;
        EXPECT_EQ(strpbrk(err.text, "\n\r\t"), nullptr) << err.text;
        EXPECT_TRUE(status == XM_OK || strncmp(err.text, "model.gguf: ", 12) == 0)
            << err.text;
    }

  private:
    reading file_;

  public:
    enum xm_status status = XM_OK;
    xm_error err = {};
    Graph graph{nullptr, xm_graph_destroy};
};

} // namespace gguf

#endif
