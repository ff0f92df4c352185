// SPDX-License-Identifier: Apache-2.0
// The GGUF reader on files: compared with what the PyPI package gguf reads from them
// (make_gguf.py); files in parts; files of more than 4 GiB.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "plugin/readers/gguf.h"
#include "unit_tests/readers/gguf_file.h"

namespace
{

namespace fs = std::filesystem;

class GgufFiles : public testing::Test
{
  protected:
    fs::path dir;
    xm_gguf *g = nullptr;
    xm_error err = {};

    void SetUp() override
    {
        std::string path = (fs::temp_directory_path() / "xm_gguf_XXXXXX").string();
        ASSERT_NE(mkdtemp(path.data()), nullptr);
        dir = path;
    }
    void TearDown() override
    {
        xm_gguf_close(g);
        fs::remove_all(dir);
    }
    std::string write(const std::string &name, const std::string &bytes) const
    {
        const std::string path = (dir / name).string();
        std::ofstream(path, std::ios::binary) << bytes;
        return path;
    }
    xm_status open(const std::string &path)
    {
        xm_gguf_close(g);
        err = {};
        return xm_gguf_open(path.c_str(), &g, &err);
    }
    bool says(const std::string &part) const
    {
        return strstr(err.text, part.c_str()) != nullptr;
    }
};

std::string
read_file(const std::string &path)
{
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

// ---- the listing of a file, as make_gguf.py writes it

std::string
fnv(const std::string &bytes)
{
    uint64_t h = 0xcbf29ce484222325;
    for (unsigned char byte : bytes)
        h = (h ^ byte) * 0x100000001b3;
    char out[20];
    snprintf(out, sizeof(out), "#%016llx", static_cast<unsigned long long>(h));
    return out;
}

std::string
shown(const std::string &text)
{
    bool plain = text.size() <= 60 && !text.empty();
    for (char c : text)
        plain = plain && c > 0x20 && c < 0x7f;
    return plain ? text : fnv(text);
}

std::string
value_text(xm_gguf_values *l, uint64_t i)
{
    bool flag = false;
    double real = 0;
    uint64_t whole = 0;
    int64_t below = 0;
    xm_slice text = {};
    char out[64] = "";
    if (l->element == XM_STRING && xm_gguf_next_text(l, &text, nullptr) == XM_OK)
        return {text.text, text.n};
    if (l->element == XM_BOOL && xm_gguf_bool_at(l, i, &flag, nullptr) == XM_OK)
        return flag ? "true" : "false";
    if (xm_gguf_f64_at(l, i, &real, nullptr) == XM_OK)
        snprintf(out, sizeof(out), "%.17g", real);
    else if (xm_gguf_u64_at(l, i, &whole, nullptr) == XM_OK)
        return std::to_string(whole);
    else if (xm_gguf_i64_at(l, i, &below, nullptr) == XM_OK)
        return std::to_string(below);
    return out;
}

std::string
key_line(const xm_gguf_key &k)
{
    xm_gguf_values l = k.value;
    const uint64_t n = l.n;
    std::string values;
    for (uint64_t i = 0; i < n; i++)
        values += (i ? "\n" : "") + value_text(&l, i);
    return "key\t" + std::string(k.name.text, k.name.n) + "\t" +
           xm_gguf_element_text(k.value.element) + "\t" +
           (k.is_list ? std::to_string(n) : "-") + "\t" + shown(values) + "\n";
}

std::string
tensor_line(const xm_gguf_tensor &t, bool has_data)
{
    std::string ne;
    for (uint32_t i = 0; i < t.rank; i++)
        ne += (i ? "x" : "") + std::to_string(t.ne[i]);
    const std::string bytes(reinterpret_cast<const char *>(t.data.p),
                            has_data ? t.data.n : 0);
    return "tensor\t" + std::string(t.name.text, t.name.n) + "\t" + t.type->text + "\t" +
           ne + "\t" + std::to_string(t.offset) + "\t" + std::to_string(t.data.n) + "\t" +
           (has_data ? fnv(bytes) : "-") + "\n";
}

std::string
list_of(const xm_gguf_part &p, bool has_data)
{
    std::string list =
        "file\t" + std::to_string(p.version) + "\t" + std::to_string(p.alignment) + "\n";
    for (uint64_t i = 0; i < p.n_keys; i++)
        list += key_line(p.keys[i]);
    for (uint64_t i = 0; i < p.n_tensors; i++)
        list += tensor_line(p.tensors[i], has_data);
    return list;
}

std::string
made(const std::string &name)
{
    return XM_GGUF_DIR "/" + name;
}

/* Returns the length of a file up to the end of its last tensor. */
uint64_t
length_by(const std::string &list)
{
    uint64_t most = 0;
    std::istringstream lines(list);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string kind, name, type, ne;
        uint64_t offset = 0, bytes = 0;
        words >> kind;
        if (kind == "tensor" && words >> name >> type >> ne >> offset >> bytes)
            most = std::max(most, offset + bytes);
    }
    return most;
}

} // namespace

TEST_F(GgufFiles, AreWhatTheReferenceReads)
{
    for (const char *name :
         {"values", "types", "split-00001-of-00003", "split-00002-of-00003"}) {
        ASSERT_EQ(open(made(name + std::string(".gguf"))), XM_OK) << err.text;
        const uint64_t part = strstr(name, "00002-") != nullptr;
        EXPECT_EQ(list_of(g->parts[part], true),
                  read_file(made(name + std::string(".txt"))));
    }
}

/* Real files are stored without the bytes of their tensors, which are holes in a sparse file
 * here. */
TEST_F(GgufFiles, OfModelsAreWhatTheReferenceReads)
{
    size_t n = 0;
    for (const auto &file : fs::directory_iterator(XM_GGUF_DIR)) {
        if (file.path().extension() != ".header")
            continue;
        SCOPED_TRACE(file.path());
        const std::string list =
            read_file(fs::path(file.path()).replace_extension(".txt").string());
        const std::string path = write("model.gguf", read_file(file.path().string()));
        fs::resize_file(path, length_by(list) - 1);
        EXPECT_EQ(open(path), XM_INVALID);
        fs::resize_file(path, length_by(list));
        ASSERT_EQ(open(path), XM_OK) << err.text;
        EXPECT_EQ(list_of(g->parts[0], false), list);
        n++;
    }
    EXPECT_EQ(n, 4u);
}

// ---- parts

namespace
{

/* Copies of the three parts, which tests change. */
class GgufParts : public GgufFiles
{
  protected:
    std::string path[3], bytes[3];

    void SetUp() override
    {
        GgufFiles::SetUp();
        for (int i = 0; i < 3; i++) {
            const std::string name =
                "split-0000" + std::to_string(i + 1) + "-of-00003.gguf";
            bytes[i] = read_file(made(name));
            path[i] = write(name, bytes[i]);
        }
    }
    /* Sets the value after a key's name and type. */
    template <typename T> void set(int part, const std::string &key, T value)
    {
        const size_t at = bytes[part].find(key);
        ASSERT_NE(at, std::string::npos);
        memcpy(&bytes[part][at + key.size() + 4], &value, sizeof(value));
        write(fs::path(path[part]).filename().string(), bytes[part]);
    }
};

} // namespace

TEST_F(GgufParts, AnyOpensAll)
{
    for (const std::string &p : path) {
        ASSERT_EQ(open(p), XM_OK) << err.text;
        EXPECT_EQ(g->n_parts, 3u);
        EXPECT_EQ(g->n_tensors, 5u);
        xm_slice architecture;
        EXPECT_EQ(xm_gguf_text(g, "general.architecture", &architecture, &err), XM_OK)
            << err.text;
        for (uint64_t i = 0; i < 5; i++) {
            const std::string name = "blk." + std::to_string(i) + ".weight";
            const xm_gguf_tensor *t = xm_gguf_find_tensor(g, name.c_str());
            ASSERT_NE(t, nullptr);
            EXPECT_EQ(t, g->tensors[i]);
            EXPECT_EQ(t->ne[0], 4 + i);
            EXPECT_EQ(t->mapping, g->parts[i / 2].mapping);
        }
        EXPECT_EQ(g->parts[1].path, path[1]);
    }
}

TEST_F(GgufParts, OneThatIsMissingIsNamed)
{
    fs::remove(path[1]);
    EXPECT_EQ(open(path[2]), XM_NOT_FOUND);
    EXPECT_TRUE(says("part 2 of 3 is missing: cannot open '" + path[1] + "'"))
        << err.text;
}

TEST_F(GgufParts, OneOfAnotherNameIsRefused)
{
    const std::string other = (dir / "model.gguf").string();
    fs::rename(path[1], other);
    EXPECT_EQ(open(other), XM_INVALID);
    EXPECT_TRUE(says("model.gguf: it is part 2 of 3: expected a file name that ends in "
                     "'-00002-of-00003.gguf'"))
        << err.text;
    fs::rename(other, path[1]);
    fs::rename(path[0], dir / "-00001-of-00003.gguf.part");
    fs::rename(path[1], path[0]);
    EXPECT_EQ(open(path[0]), XM_INVALID);
    EXPECT_TRUE(says("split-00001-of-00003.gguf: it is part 2 of 3")) << err.text;
}

TEST_F(GgufParts, EachMustBeThePartThatItsNameSays)
{
    write("split-00003-of-00003.gguf", bytes[1]);
    EXPECT_EQ(open(path[0]), XM_INVALID);
    EXPECT_TRUE(
        says("split-00003-of-00003.gguf: expected part 3 of 3, found part 2 of 3"))
        << err.text;
    set<uint16_t>(2, "split.count", 4);
    EXPECT_EQ(open(path[0]), XM_INVALID);
    EXPECT_TRUE(says("expected part 3 of 3, found part 3 of 4")) << err.text;
}

TEST_F(GgufParts, TheirNumbersMustBePossible)
{
    set<uint16_t>(0, "split.no", 3);
    EXPECT_EQ(open(path[0]), XM_INVALID);
    EXPECT_TRUE(says("split-00001-of-00003.gguf: key 'split.no': expected less than the "
                     "number of parts, 3, found 3"))
        << err.text;
}

TEST_F(GgufParts, TheyCountTheirTensors)
{
    set<uint32_t>(1, "split.tensors.count", 6);
    EXPECT_EQ(open(path[0]), XM_INVALID);
    EXPECT_TRUE(says("split-00002-of-00003.gguf: key 'split.tensors.count': its value "
                     "differs between the parts"))
        << err.text;
    for (int i = 0; i < 3; i++)
        set<uint32_t>(i, "split.tensors.count", 6);
    EXPECT_EQ(open(path[0]), XM_INVALID);
    EXPECT_TRUE(says("split-00001-of-00003.gguf: key 'split.tensors.count': expected 5, "
                     "the tensors of 3 files, found 6"))
        << err.text;
}

TEST_F(GgufParts, NoTensorIsInTwo)
{
    const size_t at = bytes[2].find("blk.4.weight");
    bytes[2][at + 4] = '0';
    write("split-00003-of-00003.gguf", bytes[2]);
    EXPECT_EQ(open(path[0]), XM_INVALID);
    EXPECT_TRUE(says("split-00001-of-00003.gguf: tensor 'blk.0.weight' occurs twice"))
        << err.text;
}

TEST_F(GgufParts, OneThatIsDamagedIsNamed)
{
    write("split-00002-of-00003.gguf", bytes[1].substr(0, 100));
    EXPECT_EQ(open(path[0]), XM_INVALID);
    EXPECT_EQ(std::string(err.text).rfind(path[1] + ": ", 0), 0u) << err.text;
    write("split-00002-of-00003.gguf", "");
    EXPECT_EQ(open(path[0]), XM_INVALID);
    EXPECT_TRUE(says("split-00002-of-00003.gguf: it is not a GGUF file")) << err.text;
}

TEST_F(GgufParts, SayWhenMemoryIsExhausted)
{
    uint64_t failures = 0;
    for (bool seen = true; seen; failures++) {
        xm_fail_allocation(failures + 1);
        const xm_status s = open(path[1]);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        EXPECT_EQ(s, seen ? XM_NO_MEMORY : XM_OK) << failures;
    }
    EXPECT_GT(failures, 4u);
}

// ---- files

TEST_F(GgufFiles, OneThatIsNotThereIsNotFound)
{
    EXPECT_EQ(open((dir / "none.gguf").string()), XM_NOT_FOUND);
    EXPECT_TRUE(says("none.gguf")) << err.text;
    EXPECT_EQ(open(dir.string()), XM_IO);
}

TEST_F(GgufFiles, AModelInOnePartHasAnyName)
{
    gguf::file f;
    f.key("split.count", gguf::U16, gguf::bytes_of<uint16_t>(1));
    EXPECT_EQ(open(write("any", f.bytes())), XM_OK) << err.text;
    gguf::file none;
    none.key("split.count", gguf::U16, gguf::bytes_of<uint16_t>(0));
    EXPECT_EQ(open(write("any", none.bytes())), XM_OK) << err.text;
    EXPECT_EQ(g->n_parts, 1u);
}

/* The bytes of a tensor stay valid while the mapping is held, also after the file is closed. */
TEST_F(GgufFiles, BytesOutliveThem)
{
    gguf::file f;
    f.tensor("t", {4}, gguf::TENSOR_F32, 0).with_data(16);
    ASSERT_EQ(open(write("t.gguf", f.bytes())), XM_OK) << err.text;
    const xm_gguf_tensor t = *g->tensors[0];
    xm_mapping_ref(t.mapping);
    xm_gguf_close(g);
    g = nullptr;
    EXPECT_EQ(t.data.p[15], 15);
    xm_mapping_unref(t.mapping);
}

/* A sparse file with a header and one byte at the end. */
TEST_F(GgufFiles, MayBeLargerThanFourGiB)
{
    const uint64_t rows = 5ull << 20, far = rows * 1024;
    gguf::file f;
    f.tensor("far", {4}, gguf::TENSOR_F32, far).tensor("wide", {256, rows}, 0, 0);
    f.with_data(1);
    const std::string path = write("large.gguf", f.head());
    const uint64_t end = f.head().size() + far + 16;
    fs::resize_file(path, end);
    std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
        .seekp(static_cast<std::streamoff>(end - 1))
        .put('!');
    ASSERT_EQ(open(path), XM_OK) << err.text;
    const xm_gguf_tensor *t = xm_gguf_find_tensor(g, "far");
    EXPECT_EQ(t->offset, f.head().size() + far);
    EXPECT_EQ(t->data.p[15], '!');
    EXPECT_EQ(xm_gguf_find_tensor(g, "wide")->data.n, far);
    fs::resize_file(path, end - 1);
    EXPECT_EQ(open(path), XM_INVALID);
}
