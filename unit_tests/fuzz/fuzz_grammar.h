/* SPDX-License-Identifier: Apache-2.0
 *
 * Follows a hostile grammar token by token and checks two promises: a token that the mask allows
 * is accepted, and while a mask allows a token the text can go on.
 */
#ifndef XM_UNIT_TESTS_FUZZ_FUZZ_GRAMMAR_H
#define XM_UNIT_TESTS_FUZZ_FUZZ_GRAMMAR_H

#include <string>
#include <vector>

#include "plugin/text/constraint.h"
#include "unit_tests/fuzz/fuzz.h"

/* Returns a tokenizer of single ASCII characters, two byte tokens and some longer tokens. It is
 * made once. */
inline const xm_tokenizer *
fuzz_tokenizer()
{
    static xm_tokenizer *t = [] {
        std::string vocab;
        int id = 0;
        std::vector<std::string> words = {"\\\"a", "\\\",",  "ab",     "abc", "12",
                                          "{\\\"", "<0xC3>", "<0xA9>", "é",   "é中",
                                          "},",    "\\n",    "tru",    "  "};
        for (char c = ' '; c < 127; c++)
            words.push_back((c == '"' || c == '\\' ? "\\" : "") + std::string(1, c));
        for (const std::string &word : words) {
            vocab += (id ? ",\"" : "\"") + word + "\":" + std::to_string(id);
            id++;
        }
        const std::string json =
            "{\"model\":{\"type\":\"BPE\",\"vocab\":{" + vocab +
            "},\"merges\":[]},\"decoder\":{\"type\":\"ByteFallback\"}}";
        xm_tokenizer *made = nullptr;
        xm_error err = {};
        xm_tokenizer_load_memory(json.data(), json.size(), &made, &err);
        require(made != nullptr, err.text);
        return made;
    }();
    return t;
}

/* Generates up to 40 tokens under a grammar. Byte i of `picks` selects token i: the first allowed
 * id at or after that byte modulo the size of the vocabulary. */
inline void
follow_grammar(const xm_grammar *g, const std::string &picks)
{
    xm_constraint *c = nullptr;
    xm_error err = {};
    if (!worked(xm_constraint_create(g, fuzz_tokenizer(), &c, &err), err))
        return;
    for (size_t i = 0; i < picks.size() && i < 40; i++) {
        xm_token_bits bits = {};
        if (!worked(xm_constraint_allowed(c, false, &bits, &err), err))
            break;
        const int32_t n = (int32_t)xm_tokenizer_vocab_size(fuzz_tokenizer());
        int32_t id = (int32_t)((unsigned char)picks[i] % n), tried = 0;
        for (; tried < n && !(bits.words[id / 64] >> id % 64 & 1); tried++)
            id = (id + 1) % n;
        if (tried == n)
            break;
        require(worked(xm_constraint_accept(c, id, false, &err), err) ||
                    err.status == XM_UNSUPPORTED,
                "a token that is allowed is accepted");
        if (err.status != XM_OK)
            break;
    }
    xm_constraint_free(c);
}

#endif
