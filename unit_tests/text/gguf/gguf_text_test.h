/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of plugin/text/gguf share: GGUF files of real models, which are the headers in
 * unit_tests/readers/gguf followed by zeros, and small files made of keys.
 */
#ifndef XM_UNIT_TESTS_TEXT_GGUF_GGUF_TEXT_TEST_H
#define XM_UNIT_TESTS_TEXT_GGUF_GGUF_TEXT_TEST_H

#include <fstream>
#include <iterator>

#include "plugin/text/gguf/gguf_text.h"
#include "unit_tests/readers/gguf_file.h"
#include "unit_tests/text/text_test.h"

namespace gguf
{

struct model {
    const char *name;   /* of its folder in functional_tests/models */
    const char *header; /* in unit_tests/readers/gguf               */
};

inline const model models[] = {
    {"qwen3moe-tiny", "qwen3moe-tiny-Q2_K"},
    {"gpt-oss-tiny", "gpt-oss-tiny-MXFP4_MOE"},
    {"gemma4-moe-tiny", "gemma4-moe-tiny-Q4_K_M"},
    {"gemma4-e-tiny", "gemma4-e-tiny-Q4_0"},
};

/* Returns the header and enough zeros for the data of all tensors. */
inline std::string
model_file(const model &m)
{
    enum { MOST_BYTES = 16 << 20 };
    std::ifstream stream(std::string(XM_GGUF_DIR "/") + m.header + ".header",
                         std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    EXPECT_GT(bytes.size(), 0u) << m.header;
    bytes.resize(MOST_BYTES);
    return bytes;
}

inline std::string
texts(const std::vector<std::string> &all)
{
    std::string values;
    for (const std::string &s : all)
        values += text(s);
    return list(TEXT, all.size(), values);
}

template <typename T>
std::string
numbers(uint32_t type, const std::vector<T> &all)
{
    std::string values;
    for (T x : all)
        values += bytes_of(x);
    return list(type, all.size(), values);
}

/* A GGUF file without tensors. Setting a key again replaces its value; an empty value removes it.
 */
class keys
{
  public:
    keys &set(const std::string &key, uint32_t type, const std::string &value)
    {
        size_t i = 0;
        while (i < all_.size() && all_[i].key != key)
            i++;
        if (i == all_.size())
            all_.push_back({key, 0, ""});
        all_[i] = {key, type, value};
        return *this;
    }
    keys &set(const std::string &key, const std::string &value)
    {
        return set(key, TEXT, text(value));
    }
    keys &set(const std::string &key, uint32_t id)
    {
        return set(key, U32, bytes_of(id));
    }
    keys &set_flag(const std::string &key, bool on)
    {
        return set(key, BOOL, std::string(1, on ? '\1' : '\0'));
    }
    keys &drop(const std::string &key)
    {
        return set(key, TEXT, "");
    }
    std::string bytes() const
    {
        file f;
        for (const entry &e : all_)
            if (!e.value.empty())
                f.key(e.key, e.type, e.value);
        return f.bytes();
    }

  private:
    struct entry {
        std::string key;
        uint32_t type;
        std::string value;
    };
    std::vector<entry> all_;
};

inline Tokenizer
tokenizer_of(const reading &file)
{
    xm_tokenizer *t = nullptr;
    xm_error err = {};
    EXPECT_EQ(file.status, XM_OK) << file.err.text;
    if (file.status != XM_OK)
        return Tokenizer(nullptr, file.err);
    EXPECT_EQ(xm_gguf_tokenizer(file.g, &t, &err), err.status);
    EXPECT_EQ(t == nullptr, err.status != XM_OK);
    return Tokenizer(t, err);
}

inline Tokenizer
tokenizer_of(const keys &k)
{
    return tokenizer_of(reading(k.bytes()));
}

} // namespace gguf

#endif
