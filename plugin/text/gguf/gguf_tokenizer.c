/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a struct xm_tokenizer from the keys of a GGUF file. It has the same parts as a
 * tokenizer.json; some of them are given here as pieces of JSON.
 */
#include "plugin/text/gguf/gguf_parts.h"
#include "runtime/util/json.h"
#include "runtime/util/log.h"
#include "runtime/util/utf8.h"

/* clang-format off */
#define REPLACE(kind, pattern, content)                                                          \
    "{\"type\":\"Replace\",\"pattern\":{\"" kind "\":\"" pattern "\"},\"content\":\"" content "\"}"
#define SEQUENCE(of, steps) "{\"type\":\"Sequence\",\"" of "\":[" steps "]}"
/* clang-format on */
#define MARK       "\u2581"
#define TO_MARKS   REPLACE("String", " ", MARK)
#define FROM_MARKS REPLACE("String", MARK, " ")
/* Removes spaces at both ends, and all but the first of consecutive spaces. */
#define NO_EXTRA_SPACES REPLACE("Regex", "\\\\A +| +\\\\z|(?<= ) +", "")
#define FIRST_SPACE     "{\"type\":\"Prepend\",\"prepend\":\" \"}"
#define NO_FIRST_SPACE  "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}"
#define BYTES           "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}"

#define BERT(lowercase)       "{\"type\":\"BertNormalizer\",\"lowercase\":" lowercase "}"
#define NO_SPACE_BEFORE_SIGNS REPLACE("Regex", "\\\\A (?=[.?!,]\\\\z)", "")

struct loading {
    const struct xm_gguf *g;
    struct xm_tokenizer *t;
    struct xm_gguf_special special;
    bool begins, ends;  /* default: put bos before, eos behind each text */
    bool always_begins; /* put bos before each text regardless of keys */
    bool separates;     /* default: put sep behind each text */
    struct xm_error *err;
};

/* ---- parts --------------------------------------------------------------------------- */

static enum xm_status
load_texts(struct loading *l, const char *normalizer, const char *decoder)
{
    yyjson_doc *n = NULL, *d = NULL;
    enum xm_status s = XM_OK;
    if (normalizer)
        s = xm_json_parse(normalizer, strlen(normalizer), &n, l->err);
    if (s == XM_OK && decoder)
        s = xm_json_parse(decoder, strlen(decoder), &d, l->err);
    if (s == XM_OK)
        s = xm_normalizer_load(yyjson_doc_get_root(n), &l->t->normalizer, l->err);
    if (s == XM_OK)
        s = xm_token_decoder_load(yyjson_doc_get_root(d), &l->t->decoder, l->err);
    yyjson_doc_free(n);
    yyjson_doc_free(d);
    return s;
}

/* Sets the model's unknown token and byte tokens, for models that write spaces as marks: a
 * character without a token becomes the tokens of its bytes. */
static void
set_unknown(struct loading *l)
{
    struct xm_bpe *bpe = &l->t->bpe;
    /* it may be an unused row of the vocabulary */
    if (xm_vocab_get(&l->t->vocab, l->special.unk))
        bpe->unk = l->special.unk;
    bpe->fuse_unk = bpe->byte_fallback = true;
    xm_vocab_find_bytes(&l->t->vocab, bpe->byte_ids);
}

static enum xm_status
load_cuts(struct loading *l, const struct xm_gguf_pre_tokenizer *pre)
{
    if (!pre->patterns)
        return xm_pre_tokenizer_add_white_space(&l->t->pre, l->err);
    for (const char *const *pattern = pre->patterns; *pattern; pattern++)
        XM_TRY(xm_pre_tokenizer_add_cut(&l->t->pre, *pattern, l->err));
    return pre->flags & XM_GGUF_MARKS_SPACES
               ? XM_OK
               : xm_pre_tokenizer_add_bytes(&l->t->pre, l->err);
}

/* Sets a normalizer that only lower-cases, if a key says so, and a decoder that joins tokens with
 * spaces. */
static enum xm_status
load_lower_case(struct loading *l)
{
    bool lower = false;
    XM_TRY(xm_gguf_bool_or(l->g, "tokenizer.ggml.normalizer.lowercase", &lower, l->err));
    return load_texts(l, lower ? "{\"type\":\"Lowercase\"}" : NULL, NULL);
}

/* ---- kinds --------------------------------------------------------------------------- */

static enum xm_status
load_cut_texts(struct loading *l, struct xm_slice name)
{
    const struct xm_gguf_pre_tokenizer *pre = NULL;
    XM_TRY(xm_gguf_find_pre_tokenizer(name, &pre, l->err));
    XM_TRY(load_cuts(l, pre));
    l->begins = pre->flags & XM_GGUF_BEGINS;
    l->always_begins = pre->flags & XM_GGUF_ALWAYS_BEGINS;
    l->t->bpe.ignore_merges = pre->flags & XM_GGUF_WHOLE_WORDS;
    l->t->bpe.whole_newlines = pre->flags & XM_GGUF_WHOLE_NEWLINES;
    XM_TRY(xm_gguf_load_merges(l->g, &l->t->bpe, l->err));
    if (pre->flags & XM_GGUF_DROPS_SPACES)
        return load_lower_case(l);
    if (!(pre->flags & XM_GGUF_MARKS_SPACES))
        return load_texts(l, NULL, "{\"type\":\"ByteLevel\"}");
    set_unknown(l);
    return load_texts(l, TO_MARKS, SEQUENCE("decoders", FROM_MARKS "," BYTES));
}

/* Loads BPE by merges. The pre-tokenizer determines all ids. Files older than the key
 * tokenizer.ggml.pre most likely use the only pre-tokenizer of their time, "default". */
static enum xm_status
load_gpt2(struct loading *l)
{
    static const char key[] = "tokenizer.ggml.pre";
    struct xm_slice name = xm_slice_of("default", 7);
    if (xm_gguf_has(l->g, key))
        XM_TRY(xm_gguf_text(l->g, key, &name, l->err));
    else
        xm_log(XM_LOG_WARNING,
               "key '%s' is missing: the pre-tokenizer 'default' is used, and token ids "
               "may differ from those of the model; convert the model again with a newer "
               "converter, which writes this key",
               key);
    return load_cut_texts(l, name);
}

static enum xm_status
load_gemma4(struct loading *l)
{
    return load_cut_texts(l, xm_slice_of("gemma4", 6));
}

static enum xm_status
load_whitespace(struct loading *l)
{
    return load_cut_texts(l, xm_slice_of("whitespace", 10));
}

/* Normalizers, by two keys: [remove extra spaces][put a space before the text]. */
static const char *const llama_normalizers[2][2] = {
    {TO_MARKS, SEQUENCE("normalizers", FIRST_SPACE "," TO_MARKS)},
    {SEQUENCE("normalizers", NO_EXTRA_SPACES "," TO_MARKS),
     SEQUENCE("normalizers", NO_EXTRA_SPACES "," FIRST_SPACE "," TO_MARKS)},
};

static enum xm_status
load_llama(struct loading *l)
{
    bool first = true, single = false;
    XM_TRY(xm_gguf_bool_or(l->g, "tokenizer.ggml.add_space_prefix", &first, l->err));
    XM_TRY(xm_gguf_bool_or(l->g, "tokenizer.ggml.remove_extra_whitespaces", &single,
                           l->err));
    XM_TRY(xm_gguf_load_scores(l->g, &l->t->bpe, l->err));
    set_unknown(l);
    l->begins = true;
    return load_texts(l, llama_normalizers[single][first],
                      first
                          ? SEQUENCE("decoders", FROM_MARKS "," BYTES "," NO_FIRST_SPACE)
                          : SEQUENCE("decoders", FROM_MARKS "," BYTES));
}

/* Loads WordPiece. GGUF files leave out "##" and put a mark before the pieces that begin a word. */
static enum xm_status
load_bert(struct loading *l)
{
    bool lower = true;
    XM_TRY(xm_gguf_bool_or(l->g, "tokenizer.ggml.normalizer.lowercase", &lower, l->err));
    XM_TRY(xm_pre_tokenizer_add_bert(&l->t->pre, l->err));
    l->t->wordpiece = (struct xm_wordpiece){
        .vocab = &l->t->vocab,
        .unk = l->special.unk,
        .first = {MARK, sizeof(MARK) - 1},
        .most = XM_WORDPIECE_DEFAULT,
    };
    if (l->special.bos < 0)
        l->special.bos = l->special.cls;
    l->begins = l->special.bos >= 0;
    l->separates = l->special.sep >= 0;
    return load_texts(l, lower ? BERT("true") : BERT("false"),
                      SEQUENCE("decoders",
                               FROM_MARKS "," NO_SPACE_BEFORE_SIGNS
                                          ",{\"type\":\"Fuse\"}," NO_FIRST_SPACE));
}

/* Loads Unigram. */
static enum xm_status
load_t5(struct loading *l)
{
    bool first = true, single = false;
    XM_TRY(xm_gguf_bool_or(l->g, "tokenizer.ggml.add_space_prefix", &first, l->err));
    XM_TRY(xm_gguf_bool_or(l->g, "tokenizer.ggml.remove_extra_whitespaces", &single,
                           l->err));
    XM_TRY(xm_gguf_load_unigram(l->g, l->special.unk, l->t, l->err));
    XM_TRY(xm_gguf_load_charsmap(l->g, l->t, l->err));
    l->ends = l->special.eos >= 0;
    return load_texts(l, llama_normalizers[single][first],
                      first
                          ? SEQUENCE("decoders", FROM_MARKS "," BYTES "," NO_FIRST_SPACE)
                          : SEQUENCE("decoders", FROM_MARKS "," BYTES));
}

static const struct kind {
    const char *name;
    enum xm_status (*load)(struct loading *l);
    /* Tokens of the type "user defined" are special, too: the program that converts these models
     * gives this type to the marks of thoughts and calls, so that programs find them in texts, but
     * the models' authors define them as special. */
    bool own_are_special;
} kinds[] = {
    /* clang-format off */
    { "gpt2",       load_gpt2,       false },
    { "llama",      load_llama,      false },
    { "gemma4",     load_gemma4,     true  },
    { "whitespace", load_whitespace, false },
    { "bert",       load_bert,       false },
    { "t5",         load_t5,         false },
    /* clang-format on */
};

static enum xm_status
find_kind(const struct xm_gguf *g, const struct kind **out, struct xm_error *err)
{
    static const char key[] = "tokenizer.ggml.model";
    struct xm_slice name = {0};
    if (!xm_gguf_has(g, key))
        return xm_fail(err, XM_NOT_FOUND, "it has no tokenizer: key '%s' is missing",
                       key);
    XM_TRY(xm_gguf_text(g, key, &name, err));
    if (xm_gguf_is_no_tokenizer(name))
        return xm_fail(err, XM_NOT_FOUND, "it has no tokenizer: key '%s' is '%s'", key,
                       xm_utf8_shown(name).text);
    for (size_t i = 0; i < XM_ARRAY_LEN(kinds); i++) {
        *out = &kinds[i];
        if (xm_slice_equal(name, xm_slice_of(kinds[i].name, strlen(kinds[i].name))))
            return XM_OK;
    }
    struct xm_strbuf known = {0};
    for (size_t i = 0; i < XM_ARRAY_LEN(kinds); i++)
        xm_strbuf_printf(&known, "%s%s", i ? ", " : "", kinds[i].name);
    xm_fail(err, XM_UNSUPPORTED, "key '%s': '%s' is not supported; supported are %s", key,
            xm_utf8_shown(name).text, xm_strbuf_text(&known));
    xm_strbuf_free(&known);
    return XM_UNSUPPORTED;
}

/* ---- around a text ------------------------------------------------------------------- */

static enum xm_status
add_around(struct loading *l, const char *key, bool adds, const char *id_key, int32_t id,
           struct xm_token_list *list)
{
    if (!adds)
        return XM_OK;
    if (id < 0)
        return xm_fail(l->err, XM_INVALID, "key '%s' is missing, but '%s' needs it",
                       id_key, key);
    if (!xm_vocab_get(&l->t->vocab, id))
        return xm_fail(l->err, XM_INVALID, "key '%s': token %d is an unused token",
                       id_key, id);
    return xm_token_list_add(list, id) ? XM_OK : xm_no_memory(l->err, "special tokens");
}

static enum xm_status
load_around(struct loading *l)
{
    static const char begins[] = "tokenizer.ggml.add_bos_token";
    static const char ends[] = "tokenizer.ggml.add_eos_token";
    static const char separates[] = "tokenizer.ggml.add_sep_token";
    XM_TRY(xm_gguf_bool_or(l->g, begins, &l->begins, l->err));
    XM_TRY(xm_gguf_bool_or(l->g, ends, &l->ends, l->err));
    XM_TRY(add_around(l, begins, l->begins || l->always_begins,
                      "tokenizer.ggml.bos_token_id", l->special.bos, &l->t->post.before));
    XM_TRY(add_around(l, ends, l->ends, "tokenizer.ggml.eos_token_id", l->special.eos,
                      &l->t->post.after));
    if (!l->t->wordpiece.vocab)
        return XM_OK;
    XM_TRY(xm_gguf_bool_or(l->g, separates, &l->separates, l->err));
    return add_around(l, separates, l->separates, "tokenizer.ggml.seperator_token_id",
                      l->special.sep, &l->t->post.after);
}

static enum xm_status
load(struct loading *l)
{
    const struct kind *kind = NULL;
    l->t->bpe.vocab = &l->t->vocab;
    l->t->bpe.unk = XM_NO_TOKEN;
    XM_TRY(find_kind(l->g, &kind, l->err));
    XM_TRY(xm_gguf_find_special(l->g, &l->special, l->err));
    XM_TRY(xm_gguf_load_vocab(l->g, kind->own_are_special, l->t, l->err));
    XM_TRY(kind->load(l));
    return load_around(l);
}

enum xm_status
xm_gguf_tokenizer(const struct xm_gguf *g, struct xm_tokenizer **out,
                  struct xm_error *err)
{
    *out = NULL;
    struct loading l = {.g = g, .t = xm_calloc(1, sizeof(*l.t)), .err = err};
    if (!l.t)
        return xm_no_memory(err, "a tokenizer");
    const enum xm_status s = load(&l);
    if (s == XM_OK)
        *out = l.t;
    else
        xm_tokenizer_free(l.t);
    return s;
}
