// SPDX-License-Identifier: Apache-2.0
// Exported models: any bytes are a model or are refused with an error text. The input is a header
// and sections without the space between them. The target puts the sections in their places and
// computes the checksums, so that the fuzzer gets past them.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "plugin/gpu/blob.h"
#include "plugin/gpu/blob_format.h"
#include "runtime/util/checksum.h"
#include "unit_tests/fuzz/fuzz.h"

namespace
{

// Returns a file from the input: the sizes of the sections, 16 bits each, then the sections.
std::string
unpack(const uint8_t *bytes, size_t n, const xm_device_info &device)
{
    uint16_t sizes[XM_BLOB_SECTIONS] = {};
    xm_blob_header h = {};
    memcpy(h.magic, XM_BLOB_MAGIC, sizeof(h.magic));
    h.byte_order = XM_BLOB_BYTE_ORDER;
    h.version = XM_BLOB_VERSION;
    memcpy(sizes, bytes, std::min(n, sizeof(sizes)));
    size_t at = std::min(n, sizeof(sizes));
    std::string blob(sizeof(h), '\0');
    xm_strbuf identity = {};
    xm_blob_identity(&device, &identity);
    for (int i = 0; i < XM_BLOB_SECTIONS; i++) {
        const size_t size = std::min<size_t>(sizes[i], n - at);
        std::string s(reinterpret_cast<const char *>(bytes) + at, size);
        at += size;
        if (i == XM_BLOB_IDENTITY)
            s = xm_strbuf_text(&identity);
        if (i <= XM_BLOB_PASSES)
            s += '\0';
        blob.resize(xm_align_up(blob.size(), XM_BLOB_ALIGN), '\0');
        h.section[i] = {blob.size(), s.size(), xm_checksum(s.data(), s.size())};
        blob += s;
    }
    xm_strbuf_free(&identity);
    h.n_bytes = blob.size();
    h.checksum = xm_blob_header_checksum(&h);
    memcpy(&blob[0], &h, sizeof(h));
    return blob;
}

// Sets the checksums of constants to those of the bytes that they refer to.
void
seal_views(std::string &blob)
{
    xm_blob_header h;
    memcpy(&h, blob.data(), sizeof(h));
    const xm_blob_range &views = h.section[XM_BLOB_VIEWS],
                        &own = h.section[XM_BLOB_BYTES];
    for (uint64_t at = 0; at + sizeof(xm_blob_view) <= views.n_bytes;
         at += sizeof(xm_blob_view)) {
        xm_blob_view v;
        memcpy(&v, &blob[views.offset + at], sizeof(v));
        if (v.offset <= own.n_bytes && v.n_bytes <= own.n_bytes - v.offset)
            v.checksum = xm_checksum(&blob[own.offset] + v.offset, v.n_bytes);
        memcpy(&blob[views.offset + at], &v, sizeof(v));
    }
    h.section[XM_BLOB_VIEWS].checksum =
        xm_checksum(&blob[views.offset], h.section[XM_BLOB_VIEWS].n_bytes);
    h.checksum = xm_blob_header_checksum(&h);
    memcpy(&blob[0], &h, sizeof(h));
}

// Reads the file, and then everything that it refers to.
void
read(const uint8_t *bytes, size_t n, const xm_device_info &device)
{
    xm_mapping owner = {};
    owner.refs = 1;
    owner.free = [](xm_mapping *) {};
    const xm_import from = {&owner, bytes, n, nullptr};
    const xm_kernel_key key = {};
    xm_blob blob;
    xm_config config;
    xm_error err = {}, wrong = {};
    size_t n_kernel = 0;
    if (worked(xm_blob_read(&from, &device, &blob, &err), err)) {
        xm_config_init(&config);
        worked(xm_blob_config(&blob, &config, &wrong), wrong);
        const void *kernel = xm_blob_kernel(&blob, &key, &n_kernel);
        require(!kernel || n_kernel <= n, "a kernel lies in the file");
        xm_for_each_node(node, blob.graph)
        {
            std::vector<float> row(node->op == XM_OP_WEIGHT ? node->attr.weight.cols : 0);
            if (node->op == XM_OP_WEIGHT && node->attr.weight.rows && !row.empty())
                xm_weight_row(&node->attr.weight, node->attr.weight.experts - 1,
                              node->attr.weight.rows - 1, row.data());
        }
    }
    xm_blob_free(&blob);
    require(owner.refs == 1, "nobody refers to the file any more");
}

} // namespace

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    xm_device_info device = {};
    strcpy(device.name, "any");
    read(bytes, n, device);
    std::string blob = unpack(bytes, n, device);
    seal_views(blob);
    std::vector<uint64_t> aligned((blob.size() + 7) / 8);
    memcpy(aligned.data(), blob.data(), blob.size());
    read(reinterpret_cast<const uint8_t *>(aligned.data()), blob.size(), device);
    return 0;
}
