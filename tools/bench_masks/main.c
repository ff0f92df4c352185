/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_masks [VOCABULARY]
 *
 * Prints the milliseconds that computing the mask of a grammar takes on one core, at several places
 * in texts: for the first time, and again when the constraint still has it. Each is the fastest of
 * several tries. The vocabulary is made up.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plugin/text/byte_level.h"
#include "plugin/text/constraint.h"
#include "plugin/text/token_trie.h"
#include "runtime/util/clock.h"
#include "runtime/util/compiler.h"
#include "runtime/util/number.h"
#include "runtime/util/strbuf.h"
#include "runtime/util/utf8.h"

enum { TRIES = 15 };

static const struct place {
    const char *name, *grammar; /* a schema if it begins with { */
    const char *text;           /* up to the place              */
} places[] = {
    {"any JSON, start", "{}", ""},
    {"any JSON, in a string", "{}", "{\"a\": [{\"b\": \"some te"},
    {"any JSON, next key", "{}", "{\"a\": [{\"b\": 12, "},
    {"any JSON, number", "{}", "[[1, 23"},
    {"schema, forced name",
     "{\"properties\": {\"name\": {\"type\": \"string\"}, \"age\": "
     "{\"type\": \"integer\"}}, \"required\": [\"name\", \"age\"], "
     "\"additionalProperties\": false}",
     "{\"na"},
    {"schema, in a string",
     "{\"properties\": {\"name\": {\"type\": \"string\"}, \"age\": "
     "{\"type\": \"integer\"}}, \"required\": [\"name\", \"age\"], "
     "\"additionalProperties\": false}",
     "{\"name\": \"Jo"},
    {"schema, of 40 characters", "{\"type\": \"string\", \"maxLength\": 40}", "\"Some w"},
    {"schema, of 4000 characters", "{\"type\": \"string\", \"maxLength\": 4000}",
     "\"Some w"},
    {"schema, pattern",
     "{\"type\": \"string\", \"pattern\": \"^[A-Z][a-z]+( [A-Z][a-z]+)*$\"}", "\"Some"},
    {"GBNF, in a string",
     "root ::= \"[\" string (\", \" string)* \"]\"\n"
     "string ::= \"\\\"\" char* \"\\\"\"\n"
     "char ::= [^\"\\\\\\x00-\\x1f] | \"\\\\\" [\"\\\\/bfnrt]",
     "[\"abc\", \"some te"},
    {"GBNF, words", "root ::= ([a-z]+ \" \")* \".\"", "some words a"},
    {"GBNF, any text", "root ::= .*", "some"},
};

/* ---- a vocabulary ---- */

static void
add_word(struct xm_strbuf *out, uint32_t i, int least)
{
    uint32_t hash = i * 2654435761u; /* distinct for distinct i */
    for (int n = 0; n < least || hash > 0; n++, hash /= 26)
        xm_strbuf_printf(out, "%c", (int)('a' + hash % 26));
}

static void
add_characters(struct xm_strbuf *out, uint32_t i, int32_t first, uint32_t count)
{
    for (int n = 0; n < 1 || i > 0; n++, i /= count)
        xm_utf8_add(out, first + (int32_t)(i % count));
}

/* Writes the text of token i, for tokens after the 256 bytes; all texts differ. One token in 25 has
 * a quote or a control character, as in vocabularies of language models. */
static void
spell(uint32_t i, struct xm_strbuf *out)
{
    static const char *const before[] = {"\"", "", "\n", ""};
    static const char *const behind[] = {"", "\":", "", "\","};
    const uint32_t kind = i % 50;
    if (kind < 30) {
        xm_strbuf_add(out, kind < 20 ? " " : "");
        add_word(out, i, 2);
    } else if (kind == 30) {
        xm_strbuf_add(out, before[i / 50 % 4]);
        add_word(out, i, 2);
        xm_strbuf_add(out, behind[i / 50 % 4]);
    } else if (kind == 31) {
        xm_strbuf_printf(out, "{\"%" PRIu32, i);
    } else if (kind < 36) {
        xm_strbuf_add(out, kind == 32 ? " (" : kind == 33 ? "_" : kind == 34 ? "." : "<");
        add_word(out, i, 2);
        xm_strbuf_add(out, kind == 32 ? ")" : "");
    } else if (kind < 41) {
        add_characters(out, i, 0x4e00, 3000);
    } else if (kind < 45) {
        add_characters(out, i, 0x430, 32);
    } else if (kind < 48) {
        add_characters(out, i, 0xac00, 800);
    } else {
        xm_strbuf_printf(out, "%" PRIu32, i);
    }
}

static void
add_token(struct xm_strbuf *json, const char *text, size_t n, uint32_t id)
{
    struct xm_strbuf stand_in = {0};
    xm_byte_level_encode(xm_slice_of(text, n), &stand_in);
    xm_strbuf_add(json, id > 0 ? ",\"" : "\"");
    for (size_t i = 0; i < stand_in.n; i++) {
        if (stand_in.text[i] == '"' || stand_in.text[i] == '\\')
            xm_strbuf_add(json, "\\");
        xm_strbuf_add_n(json, &stand_in.text[i], 1);
    }
    xm_strbuf_printf(json, "\":%" PRIu32, id);
    xm_strbuf_free(&stand_in);
}

static enum xm_status
make_tokenizer(size_t n, struct xm_tokenizer **out, struct xm_error *err)
{
    struct xm_strbuf json = {0}, text = {0};
    xm_strbuf_add(&json, "{\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (uint32_t id = 0; id < n; id++) {
        const char byte = (char)id;
        xm_strbuf_clear(&text);
        if (id >= 256)
            spell(id, &text);
        add_token(&json, id < 256 ? &byte : xm_strbuf_text(&text), id < 256 ? 1 : text.n,
                  id);
    }
    xm_strbuf_add(&json, "},\"merges\":[]},\"decoder\":{\"type\":\"ByteLevel\"}}");
    enum xm_status s = xm_strbuf_ok(&json) ? XM_OK : xm_no_memory(err, "a vocabulary");
    if (s == XM_OK)
        s = xm_tokenizer_load_memory(json.text, json.n, out, err);
    xm_strbuf_free(&json);
    xm_strbuf_free(&text);
    return s;
}

/* ---- times ---- */

static size_t
count_bits(const struct xm_token_bits *bits)
{
    size_t n = 0;
    for (size_t i = 0; i < bits->n; i++)
        for (uint64_t w = bits->words[i]; w; w &= w - 1)
            n++;
    return n;
}

/* Measures, in a new text each try, the first mask and then the mask of the same place again. */
static enum xm_status
time_place(const struct xm_grammar *g, const struct xm_tokenizer *t,
           const struct place *p, struct xm_error *err)
{
    double cold = INFINITY, warm = INFINITY;
    size_t n = 0;
    for (int i = 0; i < TRIES; i++) {
        struct xm_constraint *c;
        struct xm_token_bits bits;
        XM_TRY(xm_constraint_create(g, t, &c, err));
        enum xm_status s = xm_constraint_accept_bytes(c, p->text, strlen(p->text), err);
        for (int k = 0; k < 3 && s == XM_OK; k++) {
            const double start = xm_now();
            s = xm_constraint_allowed(c, false, &bits, err);
            const double took = xm_now() - start;
            cold = k == 0 && took < cold ? took : cold;
            warm = k > 0 && took < warm ? took : warm;
            n = s == XM_OK ? count_bits(&bits) : 0;
        }
        xm_constraint_free(c);
        XM_TRY(s);
    }
    printf("%-26s %9zu %9.3f %9.3f\n", p->name, n, 1e3 * cold, 1e3 * warm);
    return XM_OK;
}

static enum xm_status
run(size_t n, struct xm_error *err)
{
    struct xm_tokenizer *t = NULL;
    const struct xm_token_trie *trie;
    XM_TRY(make_tokenizer(n < 512 ? 512 : n, &t, err));
    const double start = xm_now();
    enum xm_status s = xm_tokenizer_trie(t, false, &trie, err);
    if (s == XM_OK)
        printf("a trie of %zu tokens has %zu nodes and takes %.1f ms\n"
               "%-26s %9s %9s %9s\n",
               trie->n_tokens, trie->n_nodes, 1e3 * (xm_now() - start), "place",
               "allowed", "cold, ms", "warm, ms");
    for (size_t i = 0; i < XM_ARRAY_LEN(places) && s == XM_OK; i++) {
        const struct place *p = &places[i];
        struct xm_grammar *g = NULL;
        s = p->grammar[0] == '{'
                ? xm_grammar_from_schema(p->grammar, strlen(p->grammar), &g, err)
                : xm_grammar_parse(p->grammar, strlen(p->grammar), &g, err);
        if (s == XM_OK)
            s = time_place(g, t, p, err);
        xm_grammar_free(g);
    }
    xm_tokenizer_free(t);
    return s;
}

int
main(int argc, char **argv)
{
    struct xm_error err = {0};
    uint64_t n = 152000;
    if (argc > 2 || (argc > 1 && (!xm_parse_whole(argv[1], &n) || n > INT32_MAX))) {
        fputs("usage: bench_masks [VOCABULARY]\n", stderr);
        return 2;
    }
    if (run((size_t)n, &err) == XM_OK)
        return 0;
    fprintf(stderr, "bench_masks: %s\n", err.text);
    return 1;
}
