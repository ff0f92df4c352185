// SPDX-License-Identifier: Apache-2.0
// The input is a GGUF file: its tokenizer and chat template are read, and the text in its key
// "text" is encoded and decoded.
#include "plugin/text/gguf/gguf_text.h"
#include "unit_tests/fuzz/fuzz.h"

static const char some_text[] = "Two words,\n\n 3.14 \xc3\xa9\xf0\x9f\x98\x80<s> ab";

static void
use_tokenizer(const xm_gguf *g, const xm_tokenizer *t)
{
    xm_slice text = {some_text, sizeof(some_text) - 1};
    xm_token_list ids = {};
    xm_strbuf out = {};
    xm_error err = {};
    xm_gguf_text(g, "text", &text, nullptr);
    if (worked(xm_tokenizer_encode(t, text.text, text.n, true, &ids, &err), err))
        worked(xm_tokenizer_decode(t, ids.ids, ids.n, false, &out, &err), err);
    for (size_t i = 0; i < ids.n; i++)
        require(xm_tokenizer_token_text(t, ids.ids[i], nullptr) != nullptr,
                "an id is that of a token");
    xm_strbuf_free(&out);
    xm_token_list_free(&ids);
}

static void
use_generation(const xm_gguf *g)
{
    xm_generation_config c;
    xm_error err = {};
    if (worked(xm_gguf_generation(g, &c, &err), err)) {
        require(c.n_eos <= 3, "each end has a key");
        require(c.sampling.temperature >= 0 && c.sampling.top_k >= 0,
                "sampling is in its range");
    }
    xm_generation_config_free(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    xm_gguf *g = nullptr;
    xm_tokenizer *t = nullptr;
    xm_chat_template *c = nullptr;
    xm_hyper_parameters facts;
    xm_error of_tokenizer = {}, of_template = {};
    if (xm_gguf_read_memory(bytes, n, nullptr, &g, nullptr) != XM_OK)
        return 0;
    const xm_status s = xm_gguf_tokenizer(g, &t, &of_tokenizer);
    require(worked(s, of_tokenizer) == (t != nullptr),
            "a tokenizer comes exactly when that worked");
    if (t)
        use_tokenizer(g, t);
    use_generation(g);
    require(worked(xm_gguf_chat_template(g, &c, &of_template), of_template) ==
                (c != nullptr),
            "a template comes exactly when that worked");
    xm_gguf_facts(g, &facts);
    xm_chat_template_free(c);
    xm_tokenizer_free(t);
    xm_gguf_close(g);
    return 0;
}
