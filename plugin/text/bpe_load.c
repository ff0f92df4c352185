/* SPDX-License-Identifier: Apache-2.0
 *
 * The "model" of a tokenizer file: vocabulary, merges, flags.
 *
 * Merges are written "a b" in older files and ["a", "b"] in newer ones. Each makes a longer token
 * of two, so merges cannot form a cycle. For other file formats, the reader of the format fills in
 * vocabulary, merges and ranks (plugin/text/gguf).
 */
#include "plugin/text/bpe.h"
#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

static uint64_t
hash_pair(int32_t left, int32_t right)
{
    return xm_hash_number((uint64_t)(uint32_t)left << 32 | (uint32_t)right);
}

const struct xm_merge *
xm_bpe_find_merge(const struct xm_bpe *bpe, int32_t left, int32_t right)
{
    struct xm_hash_probe p = xm_hash_begin(hash_pair(left, right));
    while (xm_hash_next(&bpe->by_pair, &p)) {
        const struct xm_merge *m = &bpe->merges[p.item];
        if (m->left == left && m->right == right)
            return m;
    }
    return NULL;
}

static enum xm_status
cut_merge(yyjson_val *value, struct xm_slice *left, struct xm_slice *right,
          struct xm_error *err)
{
    if (yyjson_is_arr(value) && yyjson_arr_size(value) == 2) {
        yyjson_val *a = yyjson_arr_get(value, 0), *b = yyjson_arr_get(value, 1);
        *left = xm_slice_of(yyjson_get_str(a), yyjson_get_len(a));
        *right = xm_slice_of(yyjson_get_str(b), yyjson_get_len(b));
        if (left->text && right->text)
            return XM_OK;
    }
    if (yyjson_is_str(value)) {
        struct xm_slice all = xm_slice_of(yyjson_get_str(value), yyjson_get_len(value));
        const char *space = memchr(all.text, ' ', all.n);
        size_t n = space ? (size_t)(space - all.text) : 0;
        *left = xm_slice_of(all.text, n);
        *right = xm_slice_of(space ? space + 1 : all.text, all.n - n - (space ? 1 : 0));
        if (space && !memchr(right->text, ' ', right->n))
            return XM_OK;
    }
    return xm_fail(err, XM_INVALID,
                   "expected a merge of the form \"a b\" or [\"a\", \"b\"]");
}

static enum xm_status
find_part(const struct xm_bpe *bpe, struct xm_slice text, int32_t *id,
          struct xm_error *err)
{
    *id = xm_vocab_find_in_model(bpe->vocab, text);
    if (*id == XM_NO_TOKEN)
        return xm_fail(err, XM_INVALID, "'%s' is not in the vocabulary",
                       xm_utf8_shown(text).text);
    return XM_OK;
}

/* Adds the merge, or replaces an earlier merge of the same pair. */
static enum xm_status
set_merge(struct xm_bpe *bpe, struct xm_merge merge, struct xm_error *err)
{
    const struct xm_merge *same = xm_bpe_find_merge(bpe, merge.left, merge.right);
    if (same) {
        bpe->merges[same - bpe->merges] = merge;
        return XM_OK;
    }
    struct xm_merge *grown =
        xm_grow(bpe->merges, &bpe->merge_capacity, bpe->n_merges + 1, sizeof(*grown));
    bpe->merges = grown ? grown : bpe->merges;
    if (!grown || !xm_hash_add(&bpe->by_pair, hash_pair(merge.left, merge.right),
                               (uint32_t)bpe->n_merges))
        return xm_no_memory(err, "%zu merges", bpe->n_merges + 1);
    bpe->merges[bpe->n_merges++] = merge;
    return XM_OK;
}

enum xm_status
xm_bpe_add_merge(struct xm_bpe *bpe, struct xm_slice left, struct xm_slice right,
                 uint32_t rank, struct xm_strbuf *joined, struct xm_error *err)
{
    int32_t left_id, right_id, merged_id;
    XM_TRY(find_part(bpe, left, &left_id, err));
    XM_TRY(find_part(bpe, right, &right_id, err));
    if (right.n < bpe->prefix_bytes)
        return xm_fail(err, XM_INVALID,
                       "the second part is shorter than the subword prefix");
    xm_strbuf_clear(joined);
    xm_strbuf_add_n(joined, left.text, left.n);
    xm_strbuf_add_n(joined, right.text + bpe->prefix_bytes, right.n - bpe->prefix_bytes);
    if (!xm_strbuf_ok(joined))
        return xm_no_memory(err, "%zu bytes", left.n + right.n);
    XM_TRY(
        find_part(bpe, xm_slice_of(xm_strbuf_text(joined), joined->n), &merged_id, err));
    return set_merge(bpe, (struct xm_merge){left_id, right_id, merged_id, rank}, err);
}

static enum xm_status
load_merges(yyjson_val *model, struct xm_bpe *bpe, struct xm_error *err)
{
    yyjson_val *list, *value;
    struct xm_strbuf joined = {0};
    enum xm_status status = XM_OK;
    size_t i, n;
    XM_TRY(xm_json_array(model, "merges", &list, err));
    yyjson_arr_foreach(list, i, n, value)
    {
        struct xm_slice left = {0}, right = {0};
        status = cut_merge(value, &left, &right, err);
        if (status == XM_OK)
            status = xm_bpe_add_merge(bpe, left, right, (uint32_t)i, &joined, err);
        if (status != XM_OK) {
            xm_error_prefix(err, "merge %zu", i);
            break;
        }
    }
    xm_strbuf_free(&joined);
    return status;
}

static enum xm_status
load_affix(yyjson_val *model, const char *key, char **out, size_t *n,
           struct xm_error *err)
{
    struct xm_slice text = {0};
    XM_TRY(xm_json_text(model, key, &text, err));
    if (text.n == 0)
        return XM_OK;
    *out = xm_malloc(text.n);
    if (!*out)
        return xm_no_memory(err, "'%s'", key);
    memcpy(*out, text.text, text.n);
    *n = text.n;
    return XM_OK;
}

static enum xm_status
load_unknown(yyjson_val *model, struct xm_bpe *bpe, struct xm_error *err)
{
    struct xm_slice text = {0};
    XM_TRY(xm_json_text(model, "unk_token", &text, err));
    XM_TRY(xm_json_bool(model, "fuse_unk", &bpe->fuse_unk, err));
    XM_TRY(xm_json_bool(model, "byte_fallback", &bpe->byte_fallback, err));
    xm_vocab_find_bytes(bpe->vocab, bpe->byte_ids);
    if (!text.text)
        return XM_OK;
    enum xm_status status = find_part(bpe, text, &bpe->unk, err);
    if (status != XM_OK)
        xm_error_prefix(err, "unk_token");
    return status;
}

static enum xm_status
check_dropout(yyjson_val *model, struct xm_error *err)
{
    yyjson_val *dropout = yyjson_obj_get(model, "dropout");
    if (!dropout || yyjson_is_null(dropout))
        return XM_OK;
    if (yyjson_is_num(dropout) && yyjson_get_num(dropout) == 0.0)
        return XM_OK;
    return xm_fail(err, XM_UNSUPPORTED, "a dropout other than 0 is not supported");
}

enum xm_status
xm_bpe_load(yyjson_val *model, struct xm_vocab *vocab, struct xm_bpe *out,
            struct xm_error *err)
{
    out->vocab = vocab;
    out->unk = XM_NO_TOKEN;
    XM_TRY(check_dropout(model, err));
    XM_TRY(xm_json_bool(model, "ignore_merges", &out->ignore_merges, err));
    XM_TRY(load_affix(model, "continuing_subword_prefix", &out->prefix,
                      &out->prefix_bytes, err));
    XM_TRY(
        load_affix(model, "end_of_word_suffix", &out->suffix, &out->suffix_bytes, err));
    XM_TRY(xm_vocab_load(model, vocab, err));
    XM_TRY(load_unknown(model, out, err));
    return load_merges(model, out, err);
}

void
xm_bpe_free(struct xm_bpe *bpe)
{
    xm_free(bpe->merges);
    xm_hash_free(&bpe->by_pair);
    xm_free(bpe->ranks);
    xm_free(bpe->prefix);
    xm_free(bpe->suffix);
    *bpe = (struct xm_bpe){0};
}
