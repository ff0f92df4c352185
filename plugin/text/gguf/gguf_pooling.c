/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/gguf/gguf_parts.h"

/* Kinds of pooling, indexed by the value of "<architecture>.pooling_type". is_done: supported
 * here. */
static const struct {
    const char *name;
    bool is_done;
    enum xm_pooling pooling;
} types[] = {
    {"none", true, XM_POOLING_LAST},
    {"mean", true, XM_POOLING_MEAN},
    {"cls", false, 0},
    {"last", true, XM_POOLING_LAST},
    {"rank", false, 0},
};

static enum xm_status
read_type(const struct xm_gguf *g, const char *key, enum xm_pooling *out,
          struct xm_error *err)
{
    uint32_t type = 0;
    XM_TRY(xm_gguf_u32(g, key, &type, err));
    if (type >= XM_ARRAY_LEN(types))
        return xm_fail(
            err, XM_UNSUPPORTED,
            "key '%s': pooling %u is not supported; last and mean are supported", key,
            type);
    *out = types[type].pooling;
    return types[type].is_done ? XM_OK
                               : xm_fail(err, XM_UNSUPPORTED,
                                         "key '%s': pooling '%s' is not supported; last "
                                         "and mean are supported",
                                         key, types[type].name);
}

enum xm_status
xm_gguf_pooling(const struct xm_gguf *g, enum xm_pooling *out, struct xm_error *err)
{
    struct xm_slice architecture = {0};
    struct xm_strbuf key = {0};
    *out = XM_POOLING_LAST;
    XM_TRY(xm_gguf_text(g, "general.architecture", &architecture, err));
    xm_strbuf_add_n(&key, architecture.text, architecture.n);
    xm_strbuf_add(&key, ".pooling_type");
    enum xm_status s = xm_strbuf_ok(&key) ? XM_OK : xm_no_memory(err, "a key");
    if (s == XM_OK && xm_gguf_has(g, xm_strbuf_text(&key)))
        s = read_type(g, xm_strbuf_text(&key), out, err);
    xm_strbuf_free(&key);
    return s;
}
