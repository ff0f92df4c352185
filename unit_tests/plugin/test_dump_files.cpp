/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph dumps of real models that refer to constants in the model's files: read again, before and
 * after the passes, they have the same bytes. A file that is missing or changed is refused.
 */
#include <filesystem>
#include <fstream>

#include "functional_tests/common/folder.h"
#include "plugin/caps.h"
#include "plugin/models/gguf_graph.h"
#include "plugin/readers/openvino_ir.h"
#include "unit_tests/plugin/plugin_test.h"

namespace
{

/* Reads an OpenVINO folder or a .gguf file of the test models. */
Graph
read_model(const std::string &path)
{
    xm_graph *g = nullptr;
    xm_error err = {};
    if (path.size() > 5 && path.substr(path.size() - 5) == ".gguf") {
        xm_gguf *file = nullptr;
        EXPECT_XM_OK(xm_gguf_open(path.c_str(), &file, &err));
        EXPECT_XM_OK(xm_gguf_graph(file, path.c_str(), &g, &err));
        xm_gguf_close(file);
    } else {
        EXPECT_XM_OK(xm_openvino_ir_read((path + "/openvino_model.xml").c_str(), nullptr,
                                         &g, &err));
    }
    return Graph(g, xm_graph_destroy);
}

void
run_passes(xm_graph *g)
{
    xm_device_info device = {};
    xm_config config;
    xm_error err = {};
    size_t n = 0;
    xm_config_init(&config);
    const xm_caps caps = xm_program_caps(&device, &config, nullptr);
    const xm_pipeline_options aside = {nullptr, nullptr, nullptr, true};
    EXPECT_XM_OK(xm_pipeline_run(g, &caps, &aside, nullptr, &n, &err));
}

std::string
dump(const xm_graph *g, uint64_t most)
{
    xm_strbuf b = {};
    xm_graph_print_dump(g, most, &b);
    const std::string text = xm_strbuf_text(&b);
    xm_strbuf_free(&b);
    return text;
}

Graph
parse_dump(const std::string &text, xm_error *err)
{
    xm_graph *g = nullptr;
    const xm_status status = xm_graph_parse_dump(text.c_str(), &g, err);
    EXPECT_EQ(status == XM_OK, g != nullptr);
    return Graph(g, xm_graph_destroy);
}

bool
is_in_a_file(const xm_graph *g, const xm_bytes &b)
{
    for (uint32_t i = 0; i < g->n_mappings; i++) {
        const xm_file_mapping *f = g->mappings[i]->file;
        if (f && b.p >= f->file.bytes && b.p < f->file.bytes + f->file.n_bytes)
            return true;
    }
    return false;
}

std::vector<xm_bytes>
parts(const xm_node *n)
{
    const struct xm_weight &w = n->attr.weight;
    if (n->op == XM_OP_CONST)
        return {{n->attr.data.bytes, n->attr.data.n_bytes}};
    return {w.data, w.scale, w.zero_point, w.codebook, w.factor};
}

/* Compares all constants that lie in files and returns the number of bytes compared. */
uint64_t
compare_bytes(const xm_graph *want, const xm_graph *got)
{
    uint64_t n_bytes = 0;
    const xm_node *b = got->first;
    for (const xm_node *a = want->first; a && b; a = a->next, b = b->next) {
        EXPECT_EQ(a->op, b->op);
        if (a->op != b->op || !xm_node_is_blob(a))
            continue;
        const auto x = parts(a), y = parts(b);
        for (size_t i = 0; i < x.size(); i++) {
            if (!x[i].p || !is_in_a_file(want, x[i]))
                continue;
            n_bytes += x[i].n;
            EXPECT_TRUE(y[i].p && x[i].n == y[i].n && memcmp(x[i].p, y[i].p, x[i].n) == 0)
                << "part " << i << " of node " << a->id;
        }
        if (a->op == XM_OP_WEIGHT) {
            EXPECT_EQ(memcmp(&a->attr.weight.view, &b->attr.weight.view,
                             sizeof(xm_weight_view)),
                      0);
        }
    }
    return n_bytes;
}

class DumpFiles : public testing::TestWithParam<const char *>
{
};

TEST_P(DumpFiles, HaveTheModelsBytes)
{
    const Graph g = read_model(std::string(XM_MODELS_DIR "/") + GetParam());
    for (const char *when : {"as read", "behind the passes"}) {
        SCOPED_TRACE(when);
        const std::string text = dump(g.get(), 4096);
        xm_error err = {};
        const Graph again = parse_dump(text, &err);
        ASSERT_TRUE(again) << err.text;
        EXPECT_EQ(dump(again.get(), 4096), text);
        EXPECT_GT(compare_bytes(g.get(), again.get()), 1u << 19);
        run_passes(g.get());
    }
}

INSTANTIATE_TEST_SUITE_P(
    Models, DumpFiles,
    testing::Values("qwen3moe-tiny/ov/int4_asym_g64", "gemma4-moe-tiny/ov/int4_asym_g32",
                    "gpt-oss-tiny/ov/int4_sym_g64",
                    "qwen3moe-tiny/gguf/qwen3moe-tiny-Q4_K_M.gguf",
                    "gpt-oss-tiny/gguf/gpt-oss-tiny-MXFP4_MOE.gguf"));

class DumpOfACopy : public testing::Test
{
  protected:
    DumpOfACopy()
    {
        std::filesystem::copy_file(
            XM_MODELS_DIR "/qwen3moe-tiny/gguf/qwen3moe-tiny-Q4_K_M.gguf", path);
        text = dump(read_model(path).get(), 4096);
    }
    void expect_refused(const std::string &t, xm_status status, const char *why)
    {
        xm_error err = {};
        EXPECT_FALSE(parse_dump(t, &err));
        EXPECT_EQ(err.status, status) << err.text;
        EXPECT_TRUE(strstr(err.text, why)) << err.text;
    }
    /* Returns the dump with one part replaced. */
    std::string with(const std::string &from, const std::string &to) const
    {
        std::string t = text;
        EXPECT_NE(t.find(from), std::string::npos) << from;
        return t.replace(t.find(from), from.size(), to);
    }
    Folder folder{"dump"};
    const std::string path = folder / "m.gguf";
    std::string text;
};

TEST_F(DumpOfACopy, IsRefusedWithoutItsFile)
{
    std::filesystem::remove(path);
    expect_refused(text, XM_NOT_FOUND, "line 2, column ");
    expect_refused(text, XM_NOT_FOUND, "a file that has the text's constants");
}

TEST_F(DumpOfACopy, IsRefusedWhenItsFileHasChanged)
{
    const auto time = std::filesystem::last_write_time(path);
    const char *const sentence = "m.gguf' has changed since this graph text was written";
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x55').flush();
    std::filesystem::last_write_time(path, time);
    expect_refused(text, XM_UNSUPPORTED, sentence);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
    std::filesystem::last_write_time(path, time);
    expect_refused(text, XM_UNSUPPORTED, sentence);
}

TEST_F(DumpOfACopy, IsRefusedWithPlacesThatAreNone)
{
    expect_refused(with("data={0, ", "data={1, "), XM_INVALID,
                   "no file with the number 1 is named above");
    expect_refused(with("data={0, ", "data={0, 99999999999"), XM_INVALID,
                   "beyond the end of file 0");
    expect_refused(with("data={0, ", "data={0, 0, "), XM_INVALID, "more than 3 numbers");
    expect_refused(with("data={0, ", "data={"), XM_INVALID,
                   "expected {file, offset, bytes}");
    expect_refused(with(" changed=", " since="), XM_INVALID, "expected changed=");
    xm_graph *g = nullptr;
    xm_error err = {};
    EXPECT_EQ(xm_graph_parse(text.c_str(), &g, &err), XM_INVALID);
    EXPECT_TRUE(strstr(err.text, "this text refers to a file, which is not allowed here"))
        << err.text;
}

TEST_F(DumpOfACopy, IsRefusedWithPlacesThatAreTooSmall)
{
    const std::string head = text.substr(0, text.find("\n%") + 1);
    xm_error err = {};
    const std::string constant = "%0 = const f32[32] @0 data={0, 64, ",
                      weight = "%0 = weight f32[8,256] u4 group=64 scale=f16 @0 ";
    EXPECT_TRUE(parse_dump(head + constant + "128}", &err)) << err.text;
    expect_refused(head + constant + "127}", XM_INVALID, "has 127 bytes in the file");
    EXPECT_TRUE(parse_dump(head + weight + "data={0, 64, 1024} scale={64}", &err))
        << err.text;
    expect_refused(head + weight + "data={0, 64, 1024}", XM_INVALID,
                   "weight @0 does not state where all of its data lies in the file");
    expect_refused(head + weight + "data={0, 64, 1023} scale={64}", XM_INVALID,
                   "weight @0: ");
    expect_refused(head + weight + "data={0, 64, 1024} scale={62}", XM_INVALID,
                   "weight @0: ");
}

TEST_F(DumpOfACopy, HasNoPlacesBelowTheLimit)
{
    const Graph g = read_model(path);
    EXPECT_EQ(dump(g.get(), XM_TEXT_MOST_DATA).find("data={"), std::string::npos);
}

} // namespace
