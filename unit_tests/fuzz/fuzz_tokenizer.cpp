// SPDX-License-Identifier: Apache-2.0
// The input is a tokenizer.json; after a NUL, a text that is encoded and decoded with it.
#include <string>

#include "plugin/text/tokenizer.h"
#include "unit_tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    std::string input(reinterpret_cast<const char *>(bytes), n);
    size_t end = std::min(input.find('\0'), n);
    std::string text =
        end < n ? input.substr(end + 1) : "Two words, 3.14 \xc3\xa9\xf0\x9f\x98\x80";
    xm_tokenizer *t = nullptr;
    xm_error err = {};
    enum xm_status s = xm_tokenizer_load_memory(input.data(), end, &t, &err);
    require(worked(s, err) == (t != nullptr),
            "a tokenizer comes exactly when that worked");
    if (!t)
        return 0;
    xm_token_list ids = {};
    xm_strbuf out = {};
    s = xm_tokenizer_encode(t, text.data(), text.size(), true, &ids, &err);
    if (worked(s, err))
        worked(xm_tokenizer_decode(t, ids.ids, ids.n, false, &out, &err), err);
    for (size_t i = 0; i < ids.n; i++)
        require(ids.ids[i] >= 0 &&
                    static_cast<size_t>(ids.ids[i]) < xm_tokenizer_vocab_size(t),
                "an id is below the vocabulary's size");
    xm_strbuf_free(&out);
    xm_token_list_free(&ids);
    xm_tokenizer_free(t);
    return 0;
}
