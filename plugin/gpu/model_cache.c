/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/model_cache.h"

#include <inttypes.h>

#include "plugin/gpu/blob.h"
#include "plugin/gpu/blob_format.h"
#include "runtime/util/checksum.h"
#include "runtime/util/folder.h"
#include "runtime/util/log.h"
#include "transformations/graph/text.h"

/* ---- what an entry depends on ------------------------------------------------------- */

static const struct xm_file_mapping *
file_of(const struct xm_graph *g, const struct xm_bytes *b)
{
    for (uint32_t i = 0; i < g->n_mappings; i++) {
        const struct xm_file_mapping *f = g->mappings[i]->file;
        if (f && b->p >= f->file.bytes && b->p < f->file.bytes + f->file.n_bytes)
            return f;
    }
    return NULL;
}

/* Appends what identifies the bytes of a constant: of a mapped file, its path, size, time of change
 * and the place in it; otherwise a checksum of the bytes. */
static void
add_bytes(const struct xm_graph *g, const struct xm_bytes *b, struct xm_strbuf *out)
{
    const struct xm_file_mapping *f = b->p && b->n ? file_of(g, b) : NULL;
    if (f)
        xm_strbuf_printf(out, "%s %" PRIu64 " %" PRId64 " at %" PRIu64 " %" PRIu64 "\n",
                         f->path, f->file.n_bytes, f->file.mtime_ns,
                         (uint64_t)(b->p - f->file.bytes), b->n);
    else if (b->p)
        xm_strbuf_printf(out, "%016" PRIx64 " %" PRIu64 "\n", xm_checksum(b->p, b->n),
                         b->n);
}

static void
add_constants(const struct xm_graph *g, struct xm_strbuf *out)
{
    xm_for_each_node(n, g)
    {
        const struct xm_weight *w = &n->attr.weight;
        const struct xm_bytes data = {n->attr.data.bytes, n->attr.data.n_bytes};
        if (!xm_node_is_blob(n))
            continue;
        xm_strbuf_printf(out, "%" PRIu32 " ", n->id);
        add_bytes(g, n->op == XM_OP_CONST ? &data : &w->data, out);
        if (n->op != XM_OP_CONST) {
            add_bytes(g, &w->scale, out);
            add_bytes(g, &w->zero_point, out);
            add_bytes(g, &w->codebook, out);
            add_bytes(g, &w->factor, out);
        }
    }
}

static void
add_options(const struct xm_config *config, struct xm_strbuf *out)
{
    size_t n;
    const struct xm_option_row *rows = xm_option_rows(&n);
    for (size_t i = 0; i < n; i++) {
        if (!xm_blob_has_option((enum xm_option)i))
            continue;
        xm_strbuf_printf(out, "%s ", rows[i].name);
        xm_config_get(config, rows[i].name, out, NULL);
        xm_strbuf_add(out, "\n");
    }
}

const char *
xm_model_cache_obstacle(void)
{
    static const char *const names[] = {"XM_SKIP", "XM_STOP", "XM_DUMP", "XM_FORCE"};
    for (size_t i = 0; i < XM_ARRAY_LEN(names); i++) {
        if (xm_env(names[i]))
            return names[i];
    }
    return NULL;
}

void
xm_model_cache_identify(const struct xm_graph *g, const struct xm_config *config,
                        const struct xm_device_info *device, const char *kind,
                        struct xm_strbuf *out)
{
    struct xm_strbuf all = {0};
    xm_blob_identity(device, &all);
    add_options(config, &all);
    xm_strbuf_add(&all, kind);
    xm_graph_print(g, &all);
    const uint64_t first = xm_checksum(xm_strbuf_text(&all), all.n);
    add_constants(g, &all);
    out->failed |= !xm_strbuf_ok(&all);
    xm_strbuf_printf(out, "%016" PRIx64 "%016" PRIx64, first,
                     xm_checksum(xm_strbuf_text(&all), all.n));
    xm_strbuf_free(&all);
}

char *
xm_model_cache_path(const struct xm_graph *g, const struct xm_config *config,
                    const struct xm_compile_options *options,
                    const struct xm_device_info *device)
{
    struct xm_strbuf path = {0};
    if (!config->cache_dir[0] || xm_model_cache_obstacle())
        return NULL;
    xm_strbuf_printf(&path, "%s/", config->cache_dir);
    xm_model_cache_identify(g, config, device,
                            options->sampled_logits ? "sampled logits\n" : "", &path);
    xm_strbuf_add(&path, ".blob");
    if (xm_strbuf_ok(&path))
        return xm_strbuf_take(&path);
    xm_strbuf_free(&path);
    return NULL;
}

/* ---- reading and writing ------------------------------------------------------------ */

/* Replaces the bytes of `from` by the decrypted ones. A failure leaves `from` unchanged. */
static enum xm_status
decrypt(struct xm_import *from, xm_cipher_fn fn, struct xm_error *err)
{
    struct xm_strbuf plain = {0};
    enum xm_status s =
        xm_cache_cipher_run(fn, from->bytes, (size_t)from->n_bytes, &plain, err);
    if (s != XM_OK) {
        xm_strbuf_free(&plain);
        return s;
    }
    const size_t n = plain.n;
    char *bytes = xm_strbuf_take(&plain);
    struct xm_mapping *owner = xm_mapping_of_heap(bytes);
    if (!owner)
        return xm_no_memory(err, "a compiled model");
    xm_mapping_unref(from->owner);
    from->owner = owner;
    from->bytes = (const uint8_t *)bytes;
    from->n_bytes = n;
    return XM_OK;
}

enum xm_status
xm_model_cache_open(const char *path, const struct xm_cache_cipher *cipher,
                    struct xm_import *out, struct xm_error *err)
{
    XM_TRY(xm_import_open(path, out, err));
    enum xm_status s = cipher->decrypt ? decrypt(out, cipher->decrypt, err) : XM_OK;
    if (s == XM_OK && !xm_blob_recognises(out))
        s = xm_fail(err, XM_INVALID, "it is not a compiled model%s",
                    cipher->decrypt ? ", or it was encrypted with another key" : "");
    if (s != XM_OK)
        xm_import_close(out);
    return s;
}

static enum xm_status
append(void *ctx, const void *bytes, uint64_t n, struct xm_error *err)
{
    struct xm_strbuf *b = ctx;
    xm_strbuf_add_n(b, bytes, (size_t)n);
    return xm_strbuf_ok(b) ? XM_OK : xm_no_memory(err, "a compiled model");
}

struct entry {
    struct xm_program *program;
    const struct xm_cache_cipher *cipher;
};

/* Makes the whole blob in memory, encrypts it, and writes the result at once. */
static enum xm_status
write_encrypted(struct entry *e, const struct xm_export *to, struct xm_error *err)
{
    struct xm_strbuf plain = {0}, secret = {0};
    const struct xm_export to_memory = {
        .write = append, .ctx = &plain, .folder = to->folder};
    enum xm_status s = xm_blob_write(e->program, &to_memory, err);
    if (s == XM_OK)
        s = xm_cache_cipher_run(e->cipher->encrypt, plain.text, plain.n, &secret, err);
    if (s == XM_OK)
        s = to->write(to->ctx, secret.text, secret.n, err);
    xm_strbuf_free(&plain);
    xm_strbuf_free(&secret);
    return s;
}

static enum xm_status
write_entry(void *ctx, const struct xm_export *to, struct xm_error *err)
{
    struct entry *e = ctx;
    return e->cipher->encrypt ? write_encrypted(e, to, err)
                              : xm_blob_write(e->program, to, err);
}

void
xm_model_cache_store(const char *path, const struct xm_cache_cipher *cipher,
                     struct xm_program *p)
{
    struct xm_error err = {0};
    struct entry e = {p, cipher};
    if (xm_folder_make(p->config.cache_dir) != 0)
        return; /* the cache of kernels has logged the failure */
    if (xm_export_file(write_entry, &e, path, &err) != XM_OK)
        xm_log(XM_LOG_WARNING, "the compiled model cannot be kept in CACHE_DIR: %s",
               err.text);
}
