/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled models as files: reading gives the same program, and which files are refused.
 */
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "functional_tests/common/comma_locale.h"
#include "plugin/gpu/blob.h"
#include "plugin/gpu/blob_format.h"
#include "plugin/gpu/compile.h"
#include "plugin/gpu/planner.h"
#include "plugin/readers/openvino_ir.h"
#include "runtime/util/checksum.h"
#include "unit_tests/plugin/language_model.h"

namespace
{

const std::string models = XM_MODELS_DIR;
enum { VOCABULARY = 1536 };

Graph
read_file(const std::string &path)
{
    xm_graph *g = nullptr;
    xm_error err = {};
    EXPECT_XM_OK(xm_openvino_ir_read(path.c_str(), nullptr, &g, &err));
    return Graph(g, xm_graph_destroy);
}

Graph
read_tiny()
{
    return read_file(models + "/qwen3moe-tiny/ov/int4_asym_g64/openvino_model.xml");
}

xm_status
append(void *ctx, const void *bytes, uint64_t n, xm_error *)
{
    static_cast<std::string *>(ctx)->append(static_cast<const char *>(bytes), n);
    return XM_OK;
}

std::string
exported(xm_program *p, const char *folder = nullptr)
{
    std::string bytes;
    xm_error err = {};
    const xm_export to = {append, &bytes, folder};
    EXPECT_XM_OK(xm_blob_write(p, &to, &err));
    return bytes;
}

/* The bytes of a blob, with a reference count like a mapping's. */
struct Owned {
    explicit Owned(std::string content) : bytes(std::move(content))
    {
        base.refs = 1;
        base.free = [](xm_mapping *) {};
    }
    xm_import from(const char *folder = nullptr)
    {
        return {&base, reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size(),
                const_cast<char *>(folder)};
    }
    xm_mapping base = {};
    std::string bytes;
};

/* Reads a blob and frees it; the mapping must have no other users then. */
xm_status
read(const std::string &bytes, const xm_device_info &device, xm_error *err,
     const char *folder = nullptr)
{
    Owned owned(bytes);
    const xm_import from = owned.from(folder);
    xm_blob blob;
    const xm_status s = xm_blob_read(&from, &device, &blob, err);
    xm_blob_free(&blob);
    EXPECT_EQ(owned.base.refs, 1);
    return s;
}

/* Recomputes the checksums after the test changed sections. */
void
seal(std::string &bytes)
{
    xm_blob_header h;
    memcpy(&h, bytes.data(), sizeof(h));
    for (int i = 0; i < XM_BLOB_BYTES; i++) {
        xm_blob_range &r = h.section[i];
        if (r.offset <= bytes.size() && r.n_bytes <= bytes.size() - r.offset)
            r.checksum = xm_checksum(bytes.data() + r.offset, r.n_bytes);
    }
    h.n_bytes = bytes.size();
    h.checksum = xm_blob_header_checksum(&h);
    memcpy(&bytes[0], &h, sizeof(h));
}

xm_blob_header
header_of(const std::string &bytes)
{
    xm_blob_header h;
    memcpy(&h, bytes.data(), sizeof(h));
    return h;
}

class Blob : public OpenClTest
{
  protected:
    /* Returns the tiny model, compiled once. */
    static xm_program *whole()
    {
        static Program p =
            must_compile(opencl_engine(), read_tiny(),
                         {{"XM_UBATCH", "64"}, {"KV_CACHE_PRECISION", "f16"}});
        return p.get();
    }
    static const std::string &bytes()
    {
        static const std::string b = exported(whole());
        return b;
    }
    const xm_device_info &device()
    {
        return *xm_engine_info(engine);
    }
    Program imported(Owned &owned, const char *folder = nullptr)
    {
        const xm_import from = owned.from(folder);
        xm_blob blob;
        xm_config config;
        xm_program *p = nullptr;
        xm_config_init(&config);
        EXPECT_XM_OK(xm_blob_read(&from, &device(), &blob, &err));
        if (blob.graph) {
            EXPECT_XM_OK(xm_blob_config(&blob, &config, &err));
            const xm_rewritten rewritten = {blob.graph, blob.reports, blob.n_reports,
                                            blob.notes};
            blob.graph = nullptr;
            EXPECT_XM_OK(xm_program_import(engine, &config, &rewritten, &p, &err));
        }
        xm_blob_free(&blob);
        return Program(p, xm_program_unref);
    }
    /* Fails unless reading is refused with an error text that contains `words`. */
    void expect_refused(const std::string &b, const char *words,
                        const char *folder = nullptr)
    {
        xm_error why = {};
        EXPECT_NE(read(b, device(), &why, folder), XM_OK) << words;
        EXPECT_NE(std::string(why.text).find(words), std::string::npos) << why.text;
    }
};

std::string
print(const xm_program *p)
{
    xm_strbuf out = {};
    xm_program_print(p, &out);
    std::string text = xm_strbuf_text(&out);
    xm_strbuf_free(&out);
    return text;
}

std::vector<uint8_t>
answer(xm_program *p)
{
    Request r = make_request(p);
    std::vector<uint8_t> all;
    for (const step &s :
         std::vector<step>{{{some_ids(40, 3, VOCABULARY)}}, {{{7}}}, {{{9}}}}) {
        const auto row = packed(logits(r.get(), s).get());
        all.insert(all.end(), row.begin(), row.end());
    }
    return all;
}

TEST_F(Blob, IsTheSameProgramAgain)
{
    Owned owned(bytes());
    {
        Program again = imported(owned);
        ASSERT_TRUE(again);
        EXPECT_EQ(print(again.get()), print(whole()));
        EXPECT_EQ(answer(again.get()), answer(whole()));
        EXPECT_TRUE(again->is_imported);
        EXPECT_EQ(again->config.ubatch, 64u);
        EXPECT_EQ(again->n_reports, whole()->n_reports);
        EXPECT_STREQ(again->notes_text, whole()->notes_text);
        const auto first = header_of(bytes()), second = header_of(exported(again.get()));
        EXPECT_EQ(second.section[XM_BLOB_GRAPH].checksum,
                  first.section[XM_BLOB_GRAPH].checksum);
        EXPECT_EQ(second.section[XM_BLOB_VIEWS].n_bytes,
                  first.section[XM_BLOB_VIEWS].n_bytes);
    }
    EXPECT_EQ(owned.base.refs, 1);
}

/* Without a device: for every test model, the graph after the passes equals the graph that was
 * read back. */
TEST(BlobText, KeepsTheGraphOfEveryModel)
{
    int n = 0;
    const xm_device_info info = fake_cpu();
    for (const auto &file : std::filesystem::recursive_directory_iterator(models)) {
        if (file.path().filename() != "openvino_model.xml")
            continue;
        SCOPED_TRACE(file.path());
        xm_config config;
        xm_program *compiled = nullptr;
        xm_error err = {};
        xm_config_init(&config);
        ASSERT_XM_OK(xm_planner_compile_open(
            &info, &config, read_file(file.path()).release(), &compiled, &err));
        Program p(compiled, xm_program_unref);
        Owned owned(exported(p.get()));
        const xm_import from = owned.from();
        xm_blob blob;
        ASSERT_XM_OK(xm_blob_read(&from, xm_engine_info(p->engine), &blob, &err));
        xm_strbuf before = {}, after = {};
        xm_graph_print(p->graph, &before);
        xm_graph_print(blob.graph, &after);
        EXPECT_STREQ(xm_strbuf_text(&after), xm_strbuf_text(&before));
        xm_node *a = p->graph->first;
        xm_for_each_node(b, blob.graph)
        {
            ASSERT_EQ(a->op, b->op);
            if (b->op == XM_OP_WEIGHT) {
                const struct xm_weight &v = a->attr.weight, &w = b->attr.weight;
                EXPECT_EQ(memcmp(&v.view, &w.view, sizeof(v.view)), 0);
                ASSERT_EQ(v.data.n, w.data.n);
                EXPECT_EQ(memcmp(v.data.p, w.data.p, v.data.n), 0);
            }
            a = a->next;
        }
        xm_strbuf_free(&before);
        xm_strbuf_free(&after);
        xm_blob_free(&blob);
        n++;
    }
    EXPECT_GE(n, 7);
}

/* A weight that is a view, a part of the stored matrix. */
TEST(BlobText, KeepsViews)
{
    const xm_device_info info = fake_cpu();
    xm_config config;
    xm_program *compiled = nullptr;
    xm_error err = {};
    std::vector<float> stored(70 * 80);
    for (size_t i = 0; i < stored.size(); i++)
        stored[i] = (float)i;
    xm_config_init(&config);
    ASSERT_XM_OK(xm_planner_compile_open(
        &info, &config,
        parse("%0 = parameter f32[batch,32] name=\"x\"\n%1 = weight f32[64,32] f32 @1\n"
              "%2 = matmul %0, %1 transpose_b=true\nresult %2 name=\"y\"\n")
            .release(),
        &compiled, &err));
    Program p(compiled, xm_program_unref);
    uint32_t weights = 0;
    xm_for_each_node(n, p->graph)
    {
        if (n->op != XM_OP_WEIGHT)
            continue;
        weights++;
        n->attr.weight.view = {80, 0, 3, 40};
        n->attr.weight.data = {reinterpret_cast<const uint8_t *>(stored.data()),
                               stored.size() * sizeof(float)};
    }
    EXPECT_EQ(weights, 1u);
    Owned owned(exported(p.get()));
    const xm_import from = owned.from();
    xm_blob blob;
    ASSERT_XM_OK(xm_blob_read(&from, xm_engine_info(p->engine), &blob, &err));
    xm_for_each_node(n, blob.graph)
    {
        std::vector<float> row(32);
        if (n->op != XM_OP_WEIGHT)
            continue;
        xm_weight_row(&n->attr.weight, 0, 63, row.data());
        EXPECT_EQ(row[31], (float)(66 * 80 + 71));
    }
    xm_blob_free(&blob);
}

TEST(BlobText, KeepsCodebooksAndFactors)
{
    const xm_device_info info = fake_cpu();
    xm_config config;
    xm_program *compiled = nullptr;
    xm_error err = {};
    xm_config_init(&config);
    ASSERT_XM_OK(xm_planner_compile_open(
        &info, &config,
        parse("%0 = parameter f32[batch,32] name=\"x\"\n"
              "%1 = weight f32[64,32] codebook group=32 scale=f16 @1\n"
              "%2 = matmul %0, %1 transpose_b=true\n"
              "%3 = weight f32[32,64] f4e2m1 group=16 scale=f8e4m3 factors=1 @3\n"
              "%4 = matmul %2, %3 transpose_b=true\nresult %4 name=\"y\"\n")
            .release(),
        &compiled, &err));
    Program p(compiled, xm_program_unref);
    Owned owned(exported(p.get()));
    const xm_import from = owned.from();
    xm_blob blob;
    ASSERT_XM_OK(xm_blob_read(&from, xm_engine_info(p->engine), &blob, &err));
    int codebooks = 0, factors = 0;
    const xm_node *a = p->graph->first;
    xm_for_each_node(b, blob.graph)
    {
        if (b->op == XM_OP_WEIGHT) {
            const struct xm_weight &v = a->attr.weight, &w = b->attr.weight;
            std::vector<float> want(v.cols), have(w.cols);
            xm_weight_row(&v, 0, v.rows - 1, want.data());
            xm_weight_row(&w, 0, w.rows - 1, have.data());
            EXPECT_EQ(have, want);
            codebooks += w.codebook.p != nullptr;
            factors += w.factor.p != nullptr;
        }
        a = a->next;
    }
    EXPECT_EQ(codebooks, 1);
    EXPECT_EQ(factors, 1);
    xm_blob_free(&blob);
}

/* ---- device, driver and version ---------------------------------------------------- */

TEST_F(Blob, IsForOneDeviceDriverAndVersion)
{
    const auto expect_not_for = [&](const xm_device_info &other, const char *words) {
        xm_error why = {};
        EXPECT_EQ(read(bytes(), other, &why), XM_UNSUPPORTED);
        EXPECT_NE(std::string(why.text).find(words), std::string::npos) << why.text;
    };
    xm_device_info other = device();
    strcpy(other.name, "another");
    expect_not_for(other, "compiled for device ");
    expect_not_for(other, "here it is another: compile the model again");
    other = device();
    strcpy(other.driver, "7.1");
    expect_not_for(other, "here it is 7.1; OpenCL");
    other = device();
    other.caps ^= XM_CAP_FP16;
    expect_not_for(other, "compiled for capabilities ");
    std::string b = bytes();
    b[header_of(b).section[XM_BLOB_IDENTITY].offset + strlen("xemoe 0")] = ':';
    seal(b);
    expect_refused(b, "compiled for xemoe 0:");
    b = bytes();
    b[offsetof(xm_blob_header, version)]++;
    expect_refused(b, "has format version 2, but this xemoe reads version 1");
    b = bytes();
    std::swap(b[offsetof(xm_blob_header, byte_order)],
              b[offsetof(xm_blob_header, byte_order) + 3]);
    expect_refused(b, "another byte order");
    expect_refused("<?xml version=\"1.0\"?>", "not a compiled model of xemoe");
    expect_refused("", "not a compiled model of xemoe");
}

TEST_F(Blob, TakesOnlyOptionsThatDoNotChangeTheGraph)
{
    Owned owned(bytes());
    const xm_import from = owned.from();
    xm_blob blob;
    ASSERT_XM_OK(xm_blob_read(&from, &device(), &blob, &err));
    xm_config c;
    xm_config_init(&c);
    ASSERT_XM_OK(xm_config_set(&c, "XM_UBATCH", "32", &err));
    ASSERT_XM_OK(xm_config_set(&c, "INFERENCE_PRECISION_HINT", "f16", &err));
    ASSERT_XM_OK(xm_config_set(&c, "CACHE_DIR", "here", &err));
    ASSERT_XM_OK(xm_blob_config(&blob, &c, &err));
    EXPECT_EQ(c.ubatch, 32u);
    EXPECT_EQ(c.kv_cache_precision, XM_F16);
    EXPECT_TRUE(xm_config_user_set(&c, XM_OPTION_kv_cache_precision));
    EXPECT_STREQ(c.cache_dir, "here");
    xm_config_init(&c);
    ASSERT_XM_OK(xm_config_set(&c, "INFERENCE_PRECISION_HINT", "f32", &err));
    EXPECT_EQ(xm_blob_config(&blob, &c, &err), XM_INVALID);
    EXPECT_STREQ(err.text, "the model was compiled with INFERENCE_PRECISION_HINT=f16: it "
                           "cannot be imported with f32");
    xm_blob_free(&blob);
}

/* ---- the model's files ------------------------------------------------------------- */

class BlobFiles : public Blob
{
  protected:
    void SetUp() override
    {
        Blob::SetUp();
        std::filesystem::create_directories(root + "/models/tiny");
        std::filesystem::create_directories(root + "/blobs");
        for (const char *name : {"openvino_model.xml", "openvino_model.bin"})
            std::filesystem::copy(models + "/qwen3moe-tiny/ov/int4_asym_g64/" + name,
                                  root + "/models/tiny/" + name);
        if (!engine)
            return;
        Program p =
            must_compile(engine, read_file(root + "/models/tiny/openvino_model.xml"), {});
        blob = exported(p.get(), (root + "/blobs").c_str());
    }
    void TearDown() override
    {
        std::filesystem::remove_all(root);
        Blob::TearDown();
    }
    const std::string root = std::filesystem::canonical(testing::TempDir()).string() +
                             "/xemoe_blob_" + std::to_string(getpid());
    const std::string bin = root + "/models/tiny/openvino_model.bin";
    std::string blob;
};

TEST_F(BlobFiles, AreReferredToAndFoundWhereTheyWere)
{
    const uint64_t weights = std::filesystem::file_size(bin);
    EXPECT_LT(header_of(blob).section[XM_BLOB_BYTES].n_bytes, weights / 10);
    EXPECT_EQ(read(blob, device(), &err), XM_OK) << err.text;
}

TEST_F(BlobFiles, MoveTogetherWithTheBlob)
{
    const std::string moved = root + "/elsewhere";
    std::filesystem::create_directories(moved + "/blobs");
    std::filesystem::rename(root + "/models", moved + "/models");
    expect_refused(blob, "openvino_model.bin': No such file or directory");
    EXPECT_EQ(read(blob, device(), &err, (moved + "/blobs").c_str()), XM_OK) << err.text;
}

TEST_F(BlobFiles, MustBeAsTheyWere)
{
    const auto time = std::filesystem::last_write_time(bin);
    std::filesystem::last_write_time(bin, time + std::chrono::seconds(1));
    expect_refused(blob, "openvino_model.bin' has changed since the model was compiled");
    {
        std::fstream f(bin, std::ios::in | std::ios::out | std::ios::binary);
        f.seekp(-1, std::ios::end);
        f.put('\x5a');
    }
    std::filesystem::last_write_time(bin, time);
    expect_refused(blob, "has changed since");
    std::filesystem::resize_file(bin, std::filesystem::file_size(bin) - 1);
    std::filesystem::last_write_time(bin, time);
    expect_refused(blob, "has changed since");
}

/* ---- damage ------------------------------------------------------------------------ */

TEST_F(Blob, CutAnywhereIsRefused)
{
    for (size_t n = 0; n < bytes().size(); n += 64) {
        xm_error why = {};
        ASSERT_NE(read(bytes().substr(0, n), device(), &why), XM_OK) << n;
        ASSERT_NE(why.text[0], '\0') << n;
    }
    expect_refused(bytes().substr(0, bytes().size() - 1), "bytes, but was written with");
}

/* Bytes after the end of a blob are ignored, because callers pass their whole buffer. */
TEST_F(Blob, WhatIsBehindItDoesNotCount)
{
    xm_error err = {};
    EXPECT_XM_OK(read(bytes() + std::string(1, '\0'), device(), &err));
    EXPECT_XM_OK(read(bytes() + std::string(10000, 'x'), device(), &err));
    EXPECT_XM_OK(read(bytes() + bytes(), device(), &err));
}

/* Flips single bytes. Bytes between sections do not count. */
TEST_F(Blob, AnyOtherByteIsRefused)
{
    const xm_blob_header h = header_of(bytes());
    size_t tried = 0;
    for (size_t at = 0; at < bytes().size(); at += 97) {
        bool counts = at < sizeof(h);
        for (int i = 0; i < XM_BLOB_BYTES; i++)
            counts |= at >= h.section[i].offset &&
                      at - h.section[i].offset < h.section[i].n_bytes;
        if (!counts)
            continue;
        std::string b = bytes();
        b[at] = (char)(b[at] ^ 0x10);
        xm_error why = {};
        ASSERT_NE(read(b, device(), &why), XM_OK) << at;
        ASSERT_NE(why.text[0], '\0') << at;
        tried++;
    }
    EXPECT_GT(tried, 100u);
}

/* Checksums do not protect against intent: invalid sizes with correct checksums are refused. */
TEST_F(Blob, HostileSizesAreRefused)
{
    const xm_blob_header h = header_of(bytes());
    const uint64_t sizes[] = {0,          1,
                              4095,       bytes().size(),
                              UINT32_MAX, (uint64_t)INT64_MAX,
                              UINT64_MAX, UINT64_MAX - 4095};
    const auto expect_safe = [&](std::string b) {
        xm_error why = {};
        seal(b);
        if (read(b, device(), &why) != XM_OK) {
            EXPECT_NE(why.text[0], '\0');
        }
    };
    for (uint64_t size : sizes) {
        std::string b = bytes();
        for (size_t at = offsetof(xm_blob_header, n_files); at < sizeof(h); at += 8) {
            b = bytes();
            memcpy(&b[at], &size, sizeof(size));
            expect_safe(b);
        }
        const xm_blob_range &files = h.section[XM_BLOB_FILES],
                            &views = h.section[XM_BLOB_VIEWS];
        for (size_t at = 0; at < sizeof(xm_blob_file); at += 8) {
            b = bytes();
            memcpy(&b[files.offset + at], &size, sizeof(size));
            expect_safe(b);
        }
        for (size_t at = 0; at < sizeof(xm_blob_view); at += 8) {
            b = bytes();
            for (size_t v = 0; v < views.n_bytes; v += sizeof(xm_blob_view))
                memcpy(&b[views.offset + v + at], &size, sizeof(size));
            expect_safe(b);
        }
    }
}

/* ---- bytes that are not in a file -------------------------------------------------- */

TEST_F(Blob, HoldsBytesThatAreInNoFile)
{
    Program p = must_compile(engine, parse(small_model()), {});
    Owned owned(exported(p.get()));
    const xm_blob_header h = header_of(owned.bytes);
    EXPECT_EQ(h.n_files, 0u);
    EXPECT_GT(h.section[XM_BLOB_BYTES].n_bytes, 64u * 32 * 4 * 2);
    std::string damaged = owned.bytes;
    damaged[h.section[XM_BLOB_BYTES].offset + 5] ^= 1;
    expect_refused(damaged, "its checksum is wrong");
    Program again = imported(owned);
    ASSERT_TRUE(again);
    Request a = make_request(p.get()), b = make_request(again.get());
    const step s = {{some_ids(9, 4, 64)}};
    EXPECT_EQ(packed(logits(a.get(), s).get()), packed(logits(b.get(), s).get()));
}

TEST_F(Blob, IsTheSameUnderALocaleWithCommas)
{
    const std::string before = bytes();
    CommaLocale comma;
    REQUIRE_COMMA_LOCALE(comma);
    const std::string there = exported(whole());
    for (int i = 0; i < XM_BLOB_KERNELS; i++)
        EXPECT_EQ(header_of(there).section[i].checksum,
                  header_of(before).section[i].checksum)
            << i;
    EXPECT_EQ(read(there, device(), &err), XM_OK) << err.text;
}

/* ---- failures ---------------------------------------------------------------------- */

TEST_F(Blob, WhatCannotBeWrittenIsSaid)
{
    const auto refuse = [](void *ctx, const void *, uint64_t, xm_error *e) {
        return --*static_cast<int *>(ctx) < 0 ? xm_fail(e, XM_IO, "no room") : XM_OK;
    };
    for (int n = 0; n < 12; n++) {
        int left = n;
        xm_error why = {};
        const xm_export to = {refuse, &left, nullptr};
        EXPECT_EQ(xm_blob_write(whole(), &to, &why), XM_IO) << n;
        EXPECT_STREQ(why.text, "no room");
    }
}

/* Calls `step` with each allocation failing once: it returns an error with a text and leaks
 * nothing. */
template <typename Step>
void
fail_each_allocation(Step step)
{
    bool seen = true;
    for (uint64_t n = 1; seen; n++) {
        xm_error why = {};
        xm_fail_allocation(n);
        const xm_status s = step(&why);
        seen = xm_fail_allocation_seen();
        xm_fail_allocation(0);
        ASSERT_EQ(s, seen ? XM_NO_MEMORY : XM_OK) << n << ": " << why.text;
        ASSERT_EQ(why.text[0] != '\0', seen) << n;
    }
}

TEST(BlobFaults, EveryFailedAllocationIsASentence)
{
    const xm_device_info info = fake_cpu();
    xm_config config;
    xm_program *compiled = nullptr;
    xm_error err = {};
    xm_config_init(&config);
    ASSERT_XM_OK(
        xm_planner_compile_open(&info, &config, read_tiny().release(), &compiled, &err));
    Program p(compiled, xm_program_unref);
    const auto sink = [](void *, const void *, uint64_t, xm_error *) { return XM_OK; };
    const xm_export to = {sink, nullptr, "/some/folder"};
    fail_each_allocation([&](xm_error *why) { return xm_blob_write(p.get(), &to, why); });
    Owned owned(exported(p.get()));
    const xm_import from = owned.from();
    const auto import = [&](xm_error *why) {
        xm_blob blob;
        xm_program *again = nullptr;
        xm_status s = xm_blob_read(&from, xm_engine_info(p->engine), &blob, why);
        if (s == XM_OK) {
            const xm_rewritten rewritten = {blob.graph, blob.reports, blob.n_reports,
                                            blob.notes};
            blob.graph = nullptr;
            s = xm_program_import(p->engine, &config, &rewritten, &again, why);
        }
        xm_blob_free(&blob);
        xm_program_unref(again);
        return s;
    };
    fail_each_allocation(import);
    EXPECT_EQ(owned.base.refs, 1);
}

} // namespace
