/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `types` has one row for each kind of decoder. Not supported: BPEDecoder, CTC.
 */
#include "plugin/text/token_decoder.h"

#include "plugin/text/byte_level.h"
#include "plugin/text/component.h"
#include "plugin/text/normalizer.h"
#include "runtime/util/json.h"
#include "runtime/util/utf8.h"

/* One push or flush on its way through the steps. */
struct run {
    const struct xm_token_decoder *decoder;
    struct xm_token_decoder_state *state;
    struct xm_strbuf *out;
    struct xm_error *err;
};

struct xm_token_decoder_type {
    const char *name;
    bool across_parts; /* works on a text in arbitrary parts */
    bool fuses;        /* joins tokens: passes on one text in parts */
    /* Reads the object's other members; NULL: it has none. */
    enum xm_status (*load)(yyjson_val *value, struct xm_token_decoder_step *step,
                           struct xm_error *err);
    /* Step `i` takes `text` and passes on the text that is final. */
    enum xm_status (*push)(struct run *run, size_t i, struct xm_slice text);
    /* Passes on the held text at the end; NULL: the step never holds text. */
    enum xm_status (*flush)(struct run *run, size_t i);
    /* Appends the step's result for the bytes of one token alone; NULL: unchanged. */
    enum xm_status (*bytes)(const struct xm_token_decoder_step *step,
                            struct xm_slice text, bool first, struct xm_strbuf *out,
                            struct xm_error *err);
};

/* Passes `text` to step `i` or, behind the last step, to the caller. */
static enum xm_status
give(struct run *run, size_t i, struct xm_slice text)
{
    if (i < run->decoder->n)
        return run->decoder->steps[i].type->push(run, i, text);
    xm_strbuf_add_n(run->out, text.text, text.n);
    return xm_strbuf_ok(run->out) ? XM_OK : xm_no_memory(run->err, "decoded text");
}

/* Passes a buffer to step `i`, and frees it. */
static enum xm_status
give_buffer(struct run *run, size_t i, struct xm_strbuf *buffer)
{
    enum xm_status status = XM_OK;
    if (!xm_strbuf_ok(buffer))
        status = xm_no_memory(run->err, "decoded text");
    else
        status = give(run, i, xm_slice_of(xm_strbuf_text(buffer), buffer->n));
    xm_strbuf_free(buffer);
    return status;
}

static enum xm_status
load_content(yyjson_val *value, const char *key, bool one_character,
             struct xm_token_decoder_step *step, struct xm_error *err)
{
    struct xm_slice text = {0};
    int32_t code;
    XM_TRY(xm_json_text(value, key, &text, err));
    if (!text.text ||
        (one_character && (text.n == 0 || xm_utf8_next(text, &code) != text.n)))
        return xm_fail(err, XM_INVALID, "'%s' is missing or not one character", key);
    step->content = xm_malloc(text.n);
    if (!step->content)
        return xm_no_memory(err, "%zu bytes", text.n);
    memcpy(step->content, text.text, text.n);
    step->content_bytes = text.n;
    return XM_OK;
}

static struct xm_slice
content_of(const struct run *run, size_t i)
{
    const struct xm_token_decoder_step *step = &run->decoder->steps[i];
    return xm_slice_of(step->content, step->content_bytes);
}

/* Replace: replaces the matches of a pattern. */

static enum xm_status
load_replace(yyjson_val *value, struct xm_token_decoder_step *step, struct xm_error *err)
{
    XM_TRY(xm_pattern_load(value, "pattern", &step->regex, err));
    return load_content(value, "content", false, step, err);
}

static enum xm_status
push_replace(struct run *run, size_t i, struct xm_slice text)
{
    struct xm_strbuf replaced = {0};
    enum xm_status status = xm_regex_replace(run->decoder->steps[i].regex, text,
                                             content_of(run, i), &replaced, run->err);
    if (status == XM_OK)
        return give_buffer(run, i + 1, &replaced);
    xm_strbuf_free(&replaced);
    return status;
}

/* ByteFallback: a run of <0xHH> tokens is held back until it ends, because a run that is not
 * well-formed UTF-8 as a whole becomes one U+FFFD for each of its bytes. */

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Returns the byte of a <0xHH> token; -1: it is not one. */
static int
byte_of_token(struct xm_slice t)
{
    if (t.n != 6 || memcmp(t.text, "<0x", 3) != 0 || t.text[5] != '>')
        return -1;
    int high = hex_digit(t.text[3]), low = hex_digit(t.text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static enum xm_status
flush_byte_fallback(struct run *run, size_t i)
{
    struct xm_strbuf bytes = run->state->steps[i].held;
    enum xm_status status = XM_OK;
    struct xm_slice text = xm_slice_of(xm_strbuf_text(&bytes), bytes.n);
    run->state->steps[i].held = (struct xm_strbuf){0};
    if (bytes.n > 0 && xm_utf8_is_valid(text))
        status = give(run, i + 1, text);
    else
        for (size_t b = 0; status == XM_OK && b < bytes.n; b++)
            status = give(run, i + 1, xm_slice_of("\xef\xbf\xbd", 3));
    xm_strbuf_free(&bytes);
    return status;
}

static enum xm_status
push_byte_fallback(struct run *run, size_t i, struct xm_slice text)
{
    struct xm_strbuf *held = &run->state->steps[i].held;
    int byte = byte_of_token(text);
    if (byte < 0) {
        XM_TRY(flush_byte_fallback(run, i));
        return give(run, i + 1, text);
    }
    char c = (char)byte;
    xm_strbuf_add_n(held, &c, 1);
    return xm_strbuf_ok(held) ? XM_OK : xm_no_memory(run->err, "decoded text");
}

/* ByteLevel: bytes are held back until they are whole characters. Passes on the first n of the held
 * bytes. */

static enum xm_status
give_characters(struct run *run, size_t i, size_t n)
{
    struct xm_strbuf *held = &run->state->steps[i].held, whole = {0};
    if (n == 0)
        return XM_OK;
    xm_utf8_repair(xm_slice_of(held->text, n), &whole);
    memmove(held->text, held->text + n, held->n - n);
    held->n -= n;
    return give_buffer(run, i + 1, &whole);
}

static enum xm_status
push_byte_level(struct run *run, size_t i, struct xm_slice text)
{
    struct xm_strbuf *held = &run->state->steps[i].held;
    xm_byte_level_decode(text, held);
    if (!xm_strbuf_ok(held))
        return xm_no_memory(run->err, "decoded text");
    size_t n = 0;
    int32_t code = 0;
    while (n < held->n) {
        size_t bytes = xm_utf8_next(xm_slice_of(held->text + n, held->n - n), &code);
        if (code == XM_UTF8_PARTIAL)
            break;
        n += bytes;
    }
    return give_characters(run, i, n);
}

static enum xm_status
flush_byte_level(struct run *run, size_t i)
{
    return give_characters(run, i, run->state->steps[i].held.n);
}

/* Fuse: passes all text on unchanged; its row's flag says that later steps get one joined text. */

static enum xm_status
push_fuse(struct run *run, size_t i, struct xm_slice text)
{
    return give(run, i + 1, text);
}

/* Strip: removes up to strip_left occurrences of a character at the beginning and up to strip_right
 * at the end. */

static enum xm_status
load_strip(yyjson_val *value, struct xm_token_decoder_step *step, struct xm_error *err)
{
    XM_TRY(xm_json_count(value, "start", &step->strip_left, err));
    XM_TRY(xm_json_count(value, "stop", &step->strip_right, err));
    return load_content(value, "content", true, step, err);
}

static void
restart_strip(struct run *run, size_t i)
{
    run->state->steps[i].seen = run->state->steps[i].trailing = 0;
    run->state->steps[i].inside = false;
}

static void
strip_character(struct run *run, size_t i, struct xm_slice c, struct xm_strbuf *out)
{
    const struct xm_token_decoder_step *step = &run->decoder->steps[i];
    struct xm_slice content = content_of(run, i);
    uint64_t *seen = &run->state->steps[i].seen;
    uint64_t *trailing = &run->state->steps[i].trailing;
    bool is_content = xm_slice_equal(c, content);
    if (is_content && !run->state->steps[i].inside && *seen < step->strip_left) {
        ++*seen;
        return;
    }
    run->state->steps[i].inside = true;
    if (is_content && *trailing < step->strip_right) {
        ++*trailing;
        return;
    }
    for (; !is_content && *trailing > 0; --*trailing)
        xm_strbuf_add_n(out, content.text, content.n);
    xm_strbuf_add_n(out, c.text, c.n);
}

static enum xm_status
push_strip(struct run *run, size_t i, struct xm_slice text)
{
    struct xm_strbuf kept = {0};
    int32_t code;
    if (!run->decoder->steps[i].fused)
        restart_strip(run, i);
    for (size_t at = 0, n; at < text.n; at += n) {
        n = xm_utf8_next(xm_slice_of(text.text + at, text.n - at), &code);
        strip_character(run, i, xm_slice_of(text.text + at, n), &kept);
    }
    return give_buffer(run, i + 1, &kept);
}

/* Metaspace: replaces the mark by a space, and drops it in the first token. */

static enum xm_status
load_metaspace(yyjson_val *value, struct xm_token_decoder_step *step,
               struct xm_error *err)
{
    struct xm_slice scheme = {0};
    step->drop_first = true;
    XM_TRY(xm_json_bool(value, "add_prefix_space", &step->drop_first, err));
    XM_TRY(xm_json_text(value, "prepend_scheme", &scheme, err));
    if (scheme.text)
        step->drop_first = !xm_slice_equal(scheme, xm_slice_of("never", 5));
    XM_TRY(load_content(value, "replacement", true, step, err));
    return xm_regex_create_literal(xm_slice_of(step->content, step->content_bytes),
                                   &step->regex, err);
}

static enum xm_status
push_metaspace(struct run *run, size_t i, struct xm_slice text)
{
    const struct xm_token_decoder_step *step = &run->decoder->steps[i];
    bool drop = step->drop_first && run->state->steps[i].seen++ == 0;
    struct xm_strbuf replaced = {0};
    enum xm_status status = xm_regex_replace(
        step->regex, text, xm_slice_of(" ", drop ? 0 : 1), &replaced, run->err);
    if (status == XM_OK)
        return give_buffer(run, i + 1, &replaced);
    xm_strbuf_free(&replaced);
    return status;
}

/* WordPiece: puts a space before each token, unless the token's prefix marks it as continuing a
 * word. */

static enum xm_status
load_wordpiece(yyjson_val *value, struct xm_token_decoder_step *step,
               struct xm_error *err)
{
    step->cleanup = true;
    XM_TRY(xm_json_bool(value, "cleanup", &step->cleanup, err));
    return load_content(value, "prefix", false, step, err);
}

/* Appends `text` with each `from` replaced by `to`. */
static void
add_replaced(struct xm_slice text, const char *from, const char *to,
             struct xm_strbuf *out)
{
    const size_t n = strlen(from);
    for (size_t i = 0; i < text.n;) {
        if (xm_slice_starts_with(xm_slice_of(text.text + i, text.n - i),
                                 xm_slice_of(from, n))) {
            xm_strbuf_add(out, to);
            i += n;
        } else {
            xm_strbuf_add_n(out, text.text + i++, 1);
        }
    }
}

/* Removes the space before punctuation and in English contractions, in the order of the rows. */
static void
clean_up(struct xm_strbuf *text)
{
    static const struct {
        const char *from, *to;
    } rows[] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        struct xm_strbuf next = {.failed = text->failed};
        add_replaced(xm_slice_of(xm_strbuf_text(text), text->n), rows[i].from, rows[i].to,
                     &next);
        xm_strbuf_free(text);
        *text = next;
    }
}

static enum xm_status
push_wordpiece(struct run *run, size_t i, struct xm_slice text)
{
    const struct xm_slice prefix = content_of(run, i);
    const bool is_first = run->state->steps[i].seen++ == 0;
    struct xm_strbuf spaced = {0};
    if (!is_first && xm_slice_starts_with(text, prefix))
        text = xm_slice_of(text.text + prefix.n, text.n - prefix.n);
    else if (!is_first)
        xm_strbuf_add(&spaced, " ");
    xm_strbuf_add_n(&spaced, text.text, text.n);
    if (run->decoder->steps[i].cleanup)
        clean_up(&spaced);
    return give_buffer(run, i + 1, &spaced);
}

/* ---- one token's bytes ------------------------------------------------------------ */

static enum xm_status
bytes_of_replace(const struct xm_token_decoder_step *step, struct xm_slice text,
                 bool first, struct xm_strbuf *out, struct xm_error *err)
{
    (void)first;
    return xm_regex_replace(step->regex, text,
                            xm_slice_of(step->content, step->content_bytes), out, err);
}

static enum xm_status
bytes_of_byte_fallback(const struct xm_token_decoder_step *step, struct xm_slice text,
                       bool first, struct xm_strbuf *out, struct xm_error *err)
{
    (void)step, (void)first, (void)err;
    const int byte = byte_of_token(text);
    const char c = (char)byte;
    xm_strbuf_add_n(out, byte < 0 ? text.text : &c, byte < 0 ? text.n : 1);
    return XM_OK;
}

static enum xm_status
bytes_of_byte_level(const struct xm_token_decoder_step *step, struct xm_slice text,
                    bool first, struct xm_strbuf *out, struct xm_error *err)
{
    (void)step, (void)first, (void)err;
    xm_byte_level_decode(text, out);
    return XM_OK;
}

/* Strips the start of the text if tokens are joined, else the start of each token. */
static enum xm_status
bytes_of_strip(const struct xm_token_decoder_step *step, struct xm_slice text, bool first,
               struct xm_strbuf *out, struct xm_error *err)
{
    const struct xm_slice content = xm_slice_of(step->content, step->content_bytes);
    const bool strips = first || !step->fused;
    if (step->fused && step->strip_right > 0)
        return xm_fail(
            err, XM_UNSUPPORTED,
            "the tokenizer's decoder strips the end of a text, which is not supported, "
            "because the text of a token would depend on later tokens");
    for (uint32_t i = 0; strips && i < step->strip_left; i++)
        if (xm_slice_starts_with(text, content))
            text = xm_slice_of(text.text + content.n, text.n - content.n);
    for (uint32_t i = 0; !step->fused && i < step->strip_right; i++)
        if (text.n >= content.n &&
            xm_slice_equal(xm_slice_of(text.text + text.n - content.n, content.n),
                           content))
            text.n -= content.n;
    xm_strbuf_add_n(out, text.text, text.n);
    return XM_OK;
}

static enum xm_status
bytes_of_metaspace(const struct xm_token_decoder_step *step, struct xm_slice text,
                   bool first, struct xm_strbuf *out, struct xm_error *err)
{
    const bool drops = first && step->drop_first;
    return xm_regex_replace(step->regex, text, xm_slice_of(" ", drops ? 0 : 1), out, err);
}

static enum xm_status
bytes_of_wordpiece(const struct xm_token_decoder_step *step, struct xm_slice text,
                   bool first, struct xm_strbuf *out, struct xm_error *err)
{
    const struct xm_slice prefix = xm_slice_of(step->content, step->content_bytes);
    struct xm_strbuf spaced = {0};
    if (!first && xm_slice_starts_with(text, prefix))
        text = xm_slice_of(text.text + prefix.n, text.n - prefix.n);
    else if (!first)
        xm_strbuf_add(&spaced, " ");
    xm_strbuf_add_n(&spaced, text.text, text.n);
    if (step->cleanup)
        clean_up(&spaced);
    xm_strbuf_add_n(out, xm_strbuf_text(&spaced), spaced.n);
    const bool ok = xm_strbuf_ok(&spaced);
    xm_strbuf_free(&spaced);
    return ok ? XM_OK : xm_no_memory(err, "decoded text");
}

static const struct xm_token_decoder_type types[] = {
    /* clang-format off */
    /* name           parts  fuses  load            push                flush
                                                                     bytes                 */
    { "ByteLevel",    true,  true,  NULL,           push_byte_level,    flush_byte_level,
                                                                     bytes_of_byte_level    },
    { "ByteFallback", false, false, NULL,           push_byte_fallback, flush_byte_fallback,
                                                                     bytes_of_byte_fallback },
    { "Fuse",         true,  true,  NULL,           push_fuse,          NULL, NULL          },
    { "Replace",      false, false, load_replace,   push_replace,       NULL,
                                                                     bytes_of_replace       },
    { "Strip",        true,  false, load_strip,     push_strip,         NULL,
                                                                     bytes_of_strip         },
    { "Metaspace",    false, false, load_metaspace, push_metaspace,     NULL,
                                                                     bytes_of_metaspace     },
    { "WordPiece",    false, false, load_wordpiece, push_wordpiece,     NULL,
                                                                     bytes_of_wordpiece     },
    /* clang-format on */
};

static enum xm_status
load_step(const void *row, yyjson_val *value, void *into, struct xm_error *err)
{
    const struct xm_token_decoder_type *type = row;
    struct xm_token_decoder *out = into;
    if (out->n == XM_MAX_TOKEN_DECODERS)
        return xm_fail(err, XM_UNSUPPORTED, "more than %d decoders",
                       XM_MAX_TOKEN_DECODERS);
    const struct xm_token_decoder_step *before =
        out->n > 0 ? &out->steps[out->n - 1] : NULL;
    struct xm_token_decoder_step *step = &out->steps[out->n++];
    step->type = type;
    step->fused = before && (before->fused || before->type->fuses);
    if (step->fused && !type->across_parts)
        return xm_fail(err, XM_UNSUPPORTED, "not supported after Fuse or ByteLevel");
    return type->load ? type->load(value, step, err) : XM_OK;
}

static const struct xm_component component = {
    .name = "decoder",
    .list = "decoders",
    .types = types,
    .n_types = XM_ARRAY_LEN(types),
    .type_bytes = sizeof(types[0]),
    .load = load_step,
};

enum xm_status
xm_token_decoder_load(yyjson_val *value, struct xm_token_decoder *out,
                      struct xm_error *err)
{
    out->present = value && !yyjson_is_null(value);
    return xm_component_load(&component, value, out, err);
}

void
xm_token_decoder_free(struct xm_token_decoder *decoder)
{
    for (size_t i = 0; i < decoder->n; i++) {
        xm_regex_free(decoder->steps[i].regex);
        xm_free(decoder->steps[i].content);
    }
    *decoder = (struct xm_token_decoder){0};
}

enum xm_status
xm_token_decoder_push(const struct xm_token_decoder *decoder,
                      struct xm_token_decoder_state *state, struct xm_slice token,
                      struct xm_strbuf *out, struct xm_error *err)
{
    struct run run = {decoder, state, out, err};
    if (state->n_tokens++ > 0 && !decoder->present)
        xm_strbuf_add(out, " ");
    return give(&run, 0, token);
}

enum xm_status
xm_token_decoder_flush(const struct xm_token_decoder *decoder,
                       struct xm_token_decoder_state *state, struct xm_strbuf *out,
                       struct xm_error *err)
{
    struct run run = {decoder, state, out, err};
    for (size_t i = 0; i < decoder->n; i++)
        if (decoder->steps[i].type->flush)
            XM_TRY(decoder->steps[i].type->flush(&run, i));
    return XM_OK;
}

enum xm_status
xm_token_decoder_bytes(const struct xm_token_decoder *decoder, struct xm_slice token,
                       bool first, struct xm_strbuf *out, struct xm_error *err)
{
    struct xm_strbuf now = {0}, next = {0};
    enum xm_status status = XM_OK;
    if (!first && !decoder->present)
        xm_strbuf_add(&now, " ");
    xm_strbuf_add_n(&now, token.text, token.n);
    for (size_t i = 0; i < decoder->n && status == XM_OK; i++) {
        const struct xm_token_decoder_step *step = &decoder->steps[i];
        if (!step->type->bytes)
            continue;
        xm_strbuf_clear(&next);
        status = step->type->bytes(step, xm_slice_of(xm_strbuf_text(&now), now.n), first,
                                   &next, err);
        const struct xm_strbuf swapped = now;
        now = next;
        next = swapped;
        now.failed |= next.failed;
    }
    xm_strbuf_add_n(out, xm_strbuf_text(&now), now.n);
    if (status == XM_OK && !(xm_strbuf_ok(&now) && xm_strbuf_ok(out)))
        status = xm_no_memory(err, "decoded text");
    xm_strbuf_free(&now);
    xm_strbuf_free(&next);
    return status;
}

bool
xm_token_decoder_differs_at_start(const struct xm_token_decoder *decoder)
{
    bool differs = !decoder->present;
    for (size_t i = 0; i < decoder->n; i++) {
        const struct xm_token_decoder_step *s = &decoder->steps[i];
        differs |= s->drop_first || (s->fused && s->strip_left > 0) ||
                   s->type->push == push_wordpiece;
    }
    return differs;
}

void
xm_token_decoder_state_free(struct xm_token_decoder_state *state)
{
    for (size_t i = 0; i < XM_MAX_TOKEN_DECODERS; i++)
        xm_strbuf_free(&state->steps[i].held);
    *state = (struct xm_token_decoder_state){0};
}

bool
xm_token_decoder_state_copy(const struct xm_token_decoder_state *state,
                            struct xm_token_decoder_state *out)
{
    bool ok = true;
    *out = *state;
    for (size_t i = 0; i < XM_MAX_TOKEN_DECODERS; i++) {
        const struct xm_strbuf *held = &state->steps[i].held;
        struct xm_strbuf *copy = &out->steps[i].held;
        *copy = (struct xm_strbuf){0};
        xm_strbuf_add_n(copy, xm_strbuf_text(held), held->n);
        ok &= xm_strbuf_ok(copy);
    }
    return ok;
}
