/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads tokenizer.json into a struct xm_tokenizer. Each component reads its own part.
 */
#include "plugin/text/token_trie.h"
#include "plugin/text/tokenizer.h"
#include "plugin/text/tokenizer_parts.h"
#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

static enum xm_status
check_ids(const struct xm_tokenizer *t, const struct xm_token_list *list,
          struct xm_error *err)
{
    for (size_t i = 0; i < list->n; i++)
        if (!xm_vocab_get(&t->vocab, list->ids[i]))
            return xm_fail(err, XM_INVALID,
                           "the post-processor adds id %d, which is not a token",
                           list->ids[i]);
    return XM_OK;
}

static enum xm_status
load_bpe(yyjson_val *model, struct xm_tokenizer *t, struct xm_error *err)
{
    return xm_bpe_load(model, &t->vocab, &t->bpe, err);
}

static enum xm_status
load_unigram(yyjson_val *model, struct xm_tokenizer *t, struct xm_error *err)
{
    return xm_unigram_load(model, &t->vocab, &t->unigram, err);
}

static enum xm_status
load_wordpiece(yyjson_val *model, struct xm_tokenizer *t, struct xm_error *err)
{
    return xm_wordpiece_load(model, &t->vocab, &t->wordpiece, err);
}

static const struct model_type {
    const char *name;
    enum xm_status (*load)(yyjson_val *model, struct xm_tokenizer *t,
                           struct xm_error *err);
} models[] = {
    {"BPE", load_bpe},
    {"Unigram", load_unigram},
    {"WordPiece", load_wordpiece},
};

/* Loads the model. Old files, written when BPE was the only kind, have no "type". */
static enum xm_status
load_model(yyjson_val *model, struct xm_tokenizer *t, struct xm_error *err)
{
    struct xm_slice type = {"BPE", 3};
    XM_TRY(xm_json_text(model, "type", &type, err));
    for (size_t i = 0; i < XM_ARRAY_LEN(models); i++)
        if (xm_slice_equal(type, xm_slice_of(models[i].name, strlen(models[i].name))))
            return models[i].load(model, t, err);
    return xm_fail(
        err, XM_UNSUPPORTED,
        "tokenizer model '%s' is not supported; BPE, Unigram and WordPiece are supported",
        xm_utf8_shown(type).text);
}

static enum xm_status
load_parts(yyjson_val *root, struct xm_tokenizer *t, struct xm_error *err)
{
    yyjson_val *model;
    if (!yyjson_is_obj(root))
        return xm_fail(err, XM_INVALID, "not an object");
    XM_TRY(xm_json_object(root, "model", &model, err));
    XM_TRY(xm_normalizer_load(yyjson_obj_get(root, "normalizer"), &t->normalizer, err));
    XM_TRY(xm_pre_tokenizer_load(yyjson_obj_get(root, "pre_tokenizer"), &t->pre, err));
    XM_TRY(xm_post_processor_load(yyjson_obj_get(root, "post_processor"), &t->post, err));
    XM_TRY(xm_token_decoder_load(yyjson_obj_get(root, "decoder"), &t->decoder, err));
    XM_TRY(load_model(model, t, err));
    XM_TRY(xm_added_tokens_load(yyjson_obj_get(root, "added_tokens"), &t->vocab,
                                &t->normalizer, &t->added, err));
    XM_TRY(check_ids(t, &t->post.before, err));
    return check_ids(t, &t->post.after, err);
}

static enum xm_status
load_document(yyjson_doc *doc, struct xm_tokenizer **out, struct xm_error *err)
{
    struct xm_tokenizer *t = xm_calloc(1, sizeof(*t));
    if (!t)
        return xm_no_memory(err, "a tokenizer");
    enum xm_status status = load_parts(yyjson_doc_get_root(doc), t, err);
    if (status != XM_OK) {
        xm_tokenizer_free(t);
        return status;
    }
    *out = t;
    return XM_OK;
}

enum xm_status
xm_tokenizer_load_memory(const char *json, size_t n, struct xm_tokenizer **out,
                         struct xm_error *err)
{
    yyjson_doc *doc = NULL;
    *out = NULL;
    enum xm_status status = xm_json_parse(json, n, &doc, err);
    if (status == XM_OK)
        status = load_document(doc, out, err);
    yyjson_doc_free(doc);
    if (status != XM_OK)
        xm_error_prefix(err, "tokenizer");
    return status;
}

enum xm_status
xm_tokenizer_load(const char *path, struct xm_tokenizer **out, struct xm_error *err)
{
    yyjson_doc *doc = NULL;
    *out = NULL;
    XM_TRY(xm_json_read(path, &doc, err));
    enum xm_status status = load_document(doc, out, err);
    yyjson_doc_free(doc);
    if (status != XM_OK)
        xm_error_prefix(err, "tokenizer '%s'", path);
    return status;
}

void
xm_tokenizer_free(struct xm_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    xm_token_trie_free(tokenizer->tries[0]);
    xm_token_trie_free(tokenizer->tries[1]);
    xm_token_decoder_free(&tokenizer->decoder);
    xm_post_processor_free(&tokenizer->post);
    xm_bpe_free(&tokenizer->bpe);
    xm_unigram_free(&tokenizer->unigram);
    xm_pre_tokenizer_free(&tokenizer->pre);
    xm_normalizer_free(&tokenizer->normalizer);
    xm_added_tokens_free(&tokenizer->added);
    xm_vocab_free(&tokenizer->vocab);
    xm_free(tokenizer);
}
