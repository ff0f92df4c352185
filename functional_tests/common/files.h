/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers of expected results: JSON through yyjson, safetensors (u64 length, JSON header, data)
 * and float32 .npy files. A missing file fails the test.
 */
#ifndef XM_FUNCTIONAL_TESTS_COMMON_FILES_H
#define XM_FUNCTIONAL_TESTS_COMMON_FILES_H

#include <gtest/gtest.h>
#include <yyjson.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

using Floats = std::vector<float>;
using Ids = std::vector<int32_t>;

inline std::string
read_file(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file.good()) << path;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/* A JSON document; at() takes a JSON pointer such as "/a/0/b". */
class Json
{
  public:
    explicit Json(const std::string &text)
        : doc(yyjson_read(text.data(), text.size(), 0), yyjson_doc_free)
    {
        EXPECT_TRUE(doc) << "not JSON: " << text.substr(0, 200);
    }

    yyjson_val *at(const std::string &pointer) const
    {
        return doc ? yyjson_doc_ptr_get(doc.get(), pointer.c_str()) : nullptr;
    }

    double number(const std::string &pointer) const
    {
        return yyjson_get_num(at(pointer));
    }

    std::string text(const std::string &pointer) const
    {
        const char *s = yyjson_get_str(at(pointer));
        return s ? s : "";
    }

    Ids ids(const std::string &pointer) const
    {
        Ids list;
        size_t i, n;
        yyjson_val *item;
        yyjson_arr_foreach(at(pointer), i, n, item)
            list.push_back(static_cast<int32_t>(yyjson_get_sint(item)));
        return list;
    }

  private:
    std::shared_ptr<yyjson_doc> doc;
};

class Safetensors
{
  public:
    explicit Safetensors(const std::string &path)
        : bytes(read_file(path)), header(head(bytes))
    {
    }

    template <typename T> std::vector<T> get(const std::string &name) const
    {
        uint64_t begin = offset(name, "0"), end = offset(name, "1");
        std::vector<T> list((end - begin) / sizeof(T));
        if (begin < end && 8 + length(bytes) + end <= bytes.size())
            memcpy(list.data(), bytes.data() + 8 + length(bytes) + begin, end - begin);
        EXPECT_FALSE(list.empty()) << name;
        return list;
    }

  private:
    std::string bytes;
    Json header;

    static uint64_t length(const std::string &b)
    {
        uint64_t n = 0;
        if (b.size() >= 8)
            memcpy(&n, b.data(), 8);
        return n;
    }

    static Json head(const std::string &b)
    {
        return Json(b.size() > 8 ? b.substr(8, length(b)) : "");
    }

    uint64_t offset(const std::string &name, const std::string &which) const
    {
        return yyjson_get_uint(header.at("/" + name + "/data_offsets/" + which));
    }
};

/* The rows of a float32 .npy file with two dimensions, version 1. */
struct Matrix {
    uint64_t rows = 0, cols = 0;
    Floats data;

    Floats row(uint64_t i) const
    {
        return Floats(data.begin() + static_cast<long>(i * cols),
                      data.begin() + static_cast<long>((i + 1) * cols));
    }
};

inline Matrix
parse_npy(const std::string &bytes)
{
    Matrix m;
    size_t shape = bytes.find("'shape': (");
    if (bytes.compare(0, 6, "\x93NUMPY") != 0 || shape == std::string::npos ||
        bytes.find("'descr': '<f4'") == std::string::npos ||
        sscanf(bytes.c_str() + shape, "'shape': (%zu, %zu)", &m.rows, &m.cols) != 2) {
        ADD_FAILURE() << "not a float32 matrix of " << bytes.size() << " bytes";
        return m;
    }
    size_t begin =
        10 + static_cast<uint8_t>(bytes[8]) + 256u * static_cast<uint8_t>(bytes[9]);
    m.data.resize(m.rows * m.cols);
    EXPECT_EQ(bytes.size(), begin + 4 * m.data.size());
    if (bytes.size() == begin + 4 * m.data.size())
        memcpy(m.data.data(), bytes.data() + begin, 4 * m.data.size());
    return m;
}

/* Returns sum (a - b)^2 / sum b^2. */
inline double
nmse(const Floats &a, const Floats &b)
{
    double difference = 0.0, size = 0.0;
    EXPECT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size() && i < b.size(); i++) {
        double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        difference += d * d;
        size += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    }
    return difference / size;
}

/* Returns the positions whose five largest logits are not the golden ones: either the logits of
 * the golden ids, or the five largest logits of `m`, differ from the golden logits by more than
 * the tolerance. */
inline std::vector<uint64_t>
positions_off(const Matrix &m, const Safetensors &golden, const std::string &prompt,
              float tolerance)
{
    enum { TOP = 5 };
    const Ids ids = golden.get<int32_t>(prompt + ".top5_ids");
    const Floats logits = golden.get<float>(prompt + ".top5_logits");
    std::vector<uint64_t> off;
    EXPECT_EQ(logits.size(), TOP * m.rows);
    EXPECT_EQ(ids.size(), logits.size());
    if (logits.size() != TOP * m.rows || ids.size() != logits.size())
        return off;
    for (uint64_t t = 0; t < m.rows; t++) {
        const Floats row = m.row(t);
        Floats own = row;
        std::partial_sort(own.begin(), own.begin() + TOP, own.end(),
                          std::greater<float>());
        bool agrees = true;
        for (size_t k = 0; k < TOP; k++) {
            const float want = logits[TOP * t + k];
            const float found = row.at(static_cast<size_t>(ids[TOP * t + k]));
            agrees = agrees && std::fabs(found - want) <= tolerance &&
                     std::fabs(own[k] - want) <= tolerance;
        }
        if (!agrees)
            off.push_back(t);
    }
    return off;
}

/* In f32 all positions must agree closely. In f16 a near tie in a router may choose another
 * expert, which also changes a few later positions. */
inline void
expect_golden_positions(const Matrix &m, const Safetensors &golden,
                        const std::string &prompt, const std::string &precision)
{
    const bool half = precision != "f32";
    const auto off = positions_off(m, golden, prompt, half ? 0.05f : 2e-4f);
    EXPECT_LE(off.size(), half ? m.rows / 20 : 0)
        << "of " << m.rows << " positions; the first is " << (off.empty() ? 0 : off[0]);
}

#endif
