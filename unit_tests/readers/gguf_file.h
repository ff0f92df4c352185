/* SPDX-License-Identifier: Apache-2.0
 *
 * Valid and invalid GGUF files for tests, and the result of reading them.
 */
#ifndef XM_UNIT_TESTS_READERS_GGUF_FILE_H
#define XM_UNIT_TESTS_READERS_GGUF_FILE_H

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "plugin/readers/gguf.h"

namespace gguf
{

/* Value types and some tensor types, as GGUF files number them. */
enum { U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, LIST, U64, I64, F64 };
enum { TENSOR_F32 = 0, TENSOR_F16 = 1, TENSOR_Q4_0 = 2, TENSOR_Q2_K = 10 };

template <typename T>
std::string
bytes_of(T x)
{
    return std::string(reinterpret_cast<const char *>(&x), sizeof(x));
}

inline std::string
text(const std::string &s)
{
    return bytes_of<uint64_t>(s.size()) + s;
}

/* Returns the bytes of a list: of a key's value, or of a list inside another list. */
inline std::string
list(uint32_t type, uint64_t n, const std::string &values)
{
    return bytes_of(type) + bytes_of(n) + values;
}

/* A file: header, keys, tensors, and data that begin at the next multiple of the alignment. */
struct file {
    uint32_t version = 3;
    uint64_t alignment = 32;
    uint64_t n_keys = 0, n_tensors = 0;
    std::string keys, tensors, data;

    file &key(const std::string &name, uint32_t type, const std::string &value)
    {
        keys += text(name) + bytes_of(type) + value;
        n_keys++;
        return *this;
    }
    file &tensor(const std::string &name, const std::vector<uint64_t> &ne, uint32_t type,
                 uint64_t offset)
    {
        tensors += text(name) + bytes_of<uint32_t>(static_cast<uint32_t>(ne.size()));
        for (uint64_t n : ne)
            tensors += bytes_of(n);
        tensors += bytes_of(type) + bytes_of(offset);
        n_tensors++;
        return *this;
    }
    file &with_data(size_t n)
    {
        for (size_t i = 0; i < n; i++)
            data += static_cast<char>(i);
        return *this;
    }
    std::string head() const
    {
        std::string s = "GGUF" + bytes_of(version) + bytes_of(n_tensors) +
                        bytes_of(n_keys) + keys + tensors;
        return data.empty()
                   ? s
                   : s + std::string((alignment - s.size() % alignment) % alignment,
                                     '\0');
    }
    std::string bytes() const
    {
        return head() + data;
    }
};

/* Returns a valid file with one key or tensor of each kind, which tests cut and change. */
inline file
good()
{
    file f;
    f.key("general.architecture", TEXT, text("toy"));
    f.key("general.alignment", U32, bytes_of<uint32_t>(64));
    f.key("toy.counts", LIST, list(I32, 2, bytes_of<int32_t>(4) + bytes_of<int32_t>(-4)));
    f.key("toy.words", LIST, list(TEXT, 2, text("one") + text("")));
    f.key("toy.nested", LIST,
          list(LIST, 2, list(U8, 3, "abc") + list(TEXT, 1, text("inner"))));
    f.key("toy.flag", BOOL, "\1");
    f.tensor("plain", {3, 2}, TENSOR_F32, 0);
    f.tensor("blocks", {64, 2, 3}, TENSOR_Q4_0, 64);
    f.alignment = 64;
    return f.with_data(64 + 216);
}

/* Reads a file from memory; after a failure `err` says why. */
class reading
{
  public:
    explicit reading(const std::string &file)
        // exact size, so that AddressSanitizer sees reads beyond the end
        : bytes_(new uint8_t[file.size()])
    {
        memcpy(bytes_.get(), file.data(), file.size());
        status = xm_gguf_read_memory(bytes_.get(), file.size(), nullptr, &g, &err);
        EXPECT_EQ(status, err.status);
        EXPECT_EQ(status == XM_OK, g != nullptr);
        EXPECT_EQ(status == XM_OK, err.text[0] == '\0');
        EXPECT_EQ(strpbrk(err.text, "\n\r\t"), nullptr) << err.text;
    }
    ~reading()
    {
        xm_gguf_close(g);
    }
    bool refuses(const char *part) const
    {
        return status != XM_OK && strstr(err.text, part) != nullptr;
    }

  private:
    std::unique_ptr<uint8_t[]> bytes_;

  public:
    xm_status status;
    xm_gguf *g = nullptr;
    xm_error err = {};
};

/* Reads every byte that the reader returned and adds them up, so that a sanitizer sees bad
 * pointers. */
inline uint64_t
walk(const xm_gguf_values *l)
{
    xm_gguf_values rest = *l, inner;
    xm_slice word;
    uint64_t sum = 0;
    while (rest.element == XM_STRING && xm_gguf_next_text(&rest, &word, nullptr) == XM_OK)
        for (size_t i = 0; i < word.n; i++)
            sum += static_cast<unsigned char>(word.text[i]);
    while (rest.element == XM_DYNAMIC &&
           xm_gguf_next_list(&rest, &inner, nullptr) == XM_OK)
        sum += walk(&inner);
    for (uint64_t i = 0; i < l->bytes.n; i++)
        sum += l->bytes.p[i];
    return sum;
}

inline uint64_t
walk(const xm_gguf *g)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < g->parts[0].n_keys; i++)
        sum += walk(&g->parts[0].keys[i].value);
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        for (uint64_t k = 0; k < g->tensors[i]->data.n; k++)
            sum += g->tensors[i]->data.p[k];
    }
    return sum;
}

} // namespace gguf

#endif
