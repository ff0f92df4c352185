/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/program_util/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace
{

/* Returns a version 1 .npy file with this dictionary and data. */
std::string
file(const std::string &dictionary, const std::string &data)
{
    std::string bytes = std::string("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(dictionary.size() & 0xff);
    bytes += static_cast<char>(dictionary.size() >> 8);
    return bytes + dictionary + data;
}

std::string
header(const std::string &type, const std::string &shape, const char *order = "False")
{
    return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape +
           ", }\n";
}

template <typename T>
std::string
bytes_of(const std::vector<T> &list)
{
    return std::string(reinterpret_cast<const char *>(list.data()),
                       list.size() * sizeof(T));
}

struct Read {
    xm_status status;
    std::string text;
    uint64_t rows, cols;
    std::vector<int64_t> data;
};

Read
read(const std::string &bytes)
{
    xm_npy a = {};
    xm_error err = {};
    Read r;
    r.status = xm_npy_read(bytes.data(), bytes.size(), &a, &err);
    r.text = err.text;
    r.rows = a.rows;
    r.cols = a.cols;
    if (r.status == XM_OK)
        r.data.assign(a.data, a.data + a.rows * a.cols);
    xm_npy_free(&a);
    return r;
}

TEST(Npy, ReadsRowsOfBothWidths)
{
    Read r = read(file(header("<i4", "(2, 3)"), bytes_of<int32_t>({1, 2, 3, -4, 5, 6})));
    ASSERT_EQ(r.status, XM_OK) << r.text;
    EXPECT_EQ(r.rows, 2u);
    EXPECT_EQ(r.data, (std::vector<int64_t>{1, 2, 3, -4, 5, 6}));
    r = read(file(header("<i8", "(2,)"), bytes_of<int64_t>({7, int64_t(1) << 40})));
    ASSERT_EQ(r.status, XM_OK) << r.text;
    EXPECT_EQ(r.rows, 1u);
    EXPECT_EQ(r.data, (std::vector<int64_t>{7, int64_t(1) << 40}));
}

TEST(Npy, ReadsAnEmptyRow)
{
    Read r = read(file(header("<i8", "(0,)"), ""));
    EXPECT_EQ(r.status, XM_OK) << r.text;
    EXPECT_EQ(r.cols, 0u);
}

TEST(Npy, RefusesWhatItCannotRead)
{
    const struct {
        std::string bytes;
        const char *says;
    } cases[] = {
        {"", "not an .npy file"},
        {"\x93NUMPY", "not an .npy file"},
        {file("{}", ""), "has no 'descr'"},
        {file(header("<f4", "(1,)"), "1234"), "expected int32"},
        {file(header("<i4", "(1,)", "True"), "1234"), "Fortran"},
        {file(header("<i4", "()"), "1234"), "one or two dimensions"},
        {file(header("<i4", "(1, 1, 1)"), "1234"), "one or two dimensions"},
        {file(header("<i4", "(-1,)"), "1234"), "one or two dimensions"},
        {file(header("<i4", "(99999999999999999999,)"), "1234"), "one or two dimensions"},
        {file(header("<i4", "(4294967296, 4294967296)"), "1234"), "bytes of data"},
        {file(header("<i4", "(2,)"), "1234"), "4 bytes of data"},
    };
    for (const auto &c : cases) {
        Read r = read(c.bytes);
        EXPECT_NE(r.status, XM_OK) << c.says;
        EXPECT_NE(r.text.find(c.says), std::string::npos) << r.text;
    }
}

struct ReadFloats {
    xm_status status;
    std::string text;
    uint64_t rows, cols;
    std::vector<float> data;
};

ReadFloats
read_floats(const std::string &bytes)
{
    xm_npy_floats a = {};
    xm_error err = {};
    ReadFloats r;
    r.status = xm_npy_read_floats(bytes.data(), bytes.size(), &a, &err);
    r.text = err.text;
    r.rows = a.rows;
    r.cols = a.cols;
    if (r.status == XM_OK)
        r.data.assign(a.data, a.data + a.rows * a.cols);
    xm_npy_floats_free(&a);
    return r;
}

TEST(Npy, ReadsFloatsOfUpToThreeDimensions)
{
    const std::vector<float> values = {1.5f, -2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
    const struct {
        const char *shape;
        uint64_t rows, cols;
    } cases[] = {{"(6,)", 1, 6}, {"(2, 3)", 2, 3}, {"(1, 3, 2)", 3, 2}};
    for (const auto &c : cases) {
        const ReadFloats r = read_floats(file(header("<f4", c.shape), bytes_of(values)));
        ASSERT_EQ(r.status, XM_OK) << r.text;
        EXPECT_EQ(r.rows, c.rows);
        EXPECT_EQ(r.cols, c.cols);
        EXPECT_EQ(r.data, values);
    }
}

TEST(Npy, RefusesFloatsThatItCannotRead)
{
    const struct {
        std::string bytes;
        const char *says;
    } cases[] = {
        {"", "not an .npy file"},
        {file(header("<i4", "(1,)"), "1234"), "expected float32"},
        {file(header("<f8", "(1,)"), "12345678"), "expected float32"},
        {file(header("<f4", "(1,)", "True"), "1234"), "Fortran"},
        {file(header("<f4", "(2, 1, 1)"), "12345678"), "three of which the first is 1"},
        {file(header("<f4", "(1, 1, 1, 1)"), "1234"), "three of which the first is 1"},
        {file(header("<f4", "(3,)"), "12345678"), "8 bytes of data"},
    };
    for (const auto &c : cases) {
        const ReadFloats r = read_floats(c.bytes);
        EXPECT_NE(r.status, XM_OK) << c.says;
        EXPECT_NE(r.text.find(c.says), std::string::npos) << r.text;
    }
}

TEST(Npy, ShowsTensorsOfAnyTypeAndRank)
{
    const struct {
        const char *type, *shape;
        xm_element element;
        std::vector<uint64_t> dims;
        size_t bytes;
    } cases[] = {
        {"|b1", "(3,)", XM_BOOL, {3}, 3},
        {"|i1", "(2, 2)", XM_I8, {2, 2}, 4},
        {"|u1", "()", XM_U8, {}, 1},
        {"<i2", "(2,)", XM_I16, {2}, 4},
        {"<u2", "(2,)", XM_U16, {2}, 4},
        {"<i4", "(2,)", XM_I32, {2}, 8},
        {"<u4", "(2,)", XM_U32, {2}, 8},
        {"<i8", "(2,)", XM_I64, {2}, 16},
        {"<u8", "(2,)", XM_U64, {2}, 16},
        {"<f2", "(1, 3, 2)", XM_F16, {1, 3, 2}, 12},
        {"<f4", "(2, 3, 2)", XM_F32, {2, 3, 2}, 48},
        {"<f8", "(1, 1, 1, 1, 1, 1, 1, 2)", XM_F64, {1, 1, 1, 1, 1, 1, 1, 2}, 16},
    };
    for (const auto &c : cases) {
        const std::string data(c.bytes, 'x'), bytes = file(header(c.type, c.shape), data);
        xm_npy_view v = {};
        xm_error err = {};
        ASSERT_EQ(xm_npy_open(bytes.data(), bytes.size(), &v, &err), XM_OK) << err.text;
        EXPECT_EQ(v.element, c.element);
        EXPECT_EQ(std::vector<uint64_t>(v.dim, v.dim + v.rank), c.dims);
        EXPECT_EQ(v.data, bytes.data() + bytes.size() - c.bytes);
        uint64_t n = 1;
        for (uint64_t d : c.dims)
            n *= d;
        EXPECT_EQ(v.n, n);
        const uint64_t cut = bytes.size() - 1;
        EXPECT_EQ(xm_npy_open(bytes.data(), cut, &v, nullptr), XM_INVALID) << c.type;
    }
    const char *const refused[][2] = {{">f4", "(1,)"},
                                      {"<c8", "(1,)"},
                                      {"<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"},
                                      {"<f4", "(4294967296, 4294967296)"}};
    for (const auto &c : refused) {
        const std::string bytes = file(header(c[0], c[1]), "12345678");
        xm_npy_view v = {};
        EXPECT_NE(xm_npy_open(bytes.data(), bytes.size(), &v, nullptr), XM_OK) << c[1];
    }
}

TEST(Npy, SurvivesEveryTruncation)
{
    std::string whole = file(header("<i4", "(2, 2)"), bytes_of<int32_t>({1, 2, 3, 4}));
    for (size_t n = 0; n < whole.size(); n++)
        EXPECT_NE(read(whole.substr(0, n)).status, XM_OK) << n;
}

TEST(Npy, WritesAnAlignedHeaderAndTheData)
{
    std::string path = testing::TempDir() + "xm_npy_" + std::to_string(getpid());
    const float data[] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
    xm_error err = {};
    ASSERT_EQ(xm_npy_write(path.c_str(), data, 2, 3, &err), XM_OK) << err.text;
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    std::string bytes = text.str();
    unlink(path.c_str());
    size_t begin = 10 + static_cast<unsigned char>(bytes[8]);
    EXPECT_EQ(begin % 64, 0u);
    EXPECT_EQ(bytes[begin - 1], '\n');
    EXPECT_NE(bytes.find("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"),
              std::string::npos);
    ASSERT_EQ(bytes.size(), begin + sizeof(data));
    EXPECT_EQ(memcmp(bytes.data() + begin, data, sizeof(data)), 0);
}

TEST(Npy, SaysWhyItCouldNotWrite)
{
    xm_error err = {};
    float x = 0.0f;
    EXPECT_EQ(xm_npy_write("/nowhere/a.npy", &x, 1, 1, &err), XM_IO);
    EXPECT_NE(std::string(err.text).find("/nowhere/a.npy"), std::string::npos);
}

} // namespace
