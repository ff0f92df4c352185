/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of plugin/text share: a small tokenizer as JSON text, and C++ wrappers.
 */
#ifndef XM_UNIT_TESTS_TEXT_TEXT_TEST_H
#define XM_UNIT_TESTS_TEXT_TEXT_TEST_H

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/text/detokenizer.h"
#include "plugin/text/tokenizer.h"

using ids = std::vector<int32_t>;

/* A tokenizer that the test owns; after a failure `err` says why there is none. */
class Tokenizer
{
  public:
    explicit Tokenizer(const std::string &json)
    {
        status = xm_tokenizer_load_memory(json.data(), json.size(), &t, &err);
    }
    static Tokenizer file(const std::string &path)
    {
        Tokenizer result;
        result.status = xm_tokenizer_load(path.c_str(), &result.t, &result.err);
        return result;
    }
    /* Takes over a tokenizer that was read, or NULL and the error. */
    Tokenizer(xm_tokenizer *read, const xm_error &why)
        : t(read), err(why), status(why.status)
    {
    }
    Tokenizer(Tokenizer &&other) : t(other.t), err(other.err), status(other.status)
    {
        other.t = nullptr;
    }
    ~Tokenizer()
    {
        xm_tokenizer_free(t);
    }

    ids encode(const std::string &text, bool add_special = false)
    {
        struct xm_token_list list = {};
        status =
            xm_tokenizer_encode(t, text.data(), text.size(), add_special, &list, &err);
        ids result(list.ids, list.ids + list.n);
        xm_token_list_free(&list);
        return result;
    }
    std::string decode(const ids &tokens, bool skip_special = false)
    {
        struct xm_strbuf out = {};
        status = xm_tokenizer_decode(t, tokens.data(), tokens.size(), skip_special, &out,
                                     &err);
        std::string result(xm_strbuf_text(&out), out.n);
        xm_strbuf_free(&out);
        return result;
    }
    /* Returns the texts of the tokens as the tokenizer's file spells them. */
    std::vector<std::string> pieces(const std::string &text)
    {
        std::vector<std::string> result;
        for (int32_t id : encode(text)) {
            size_t n = 0;
            const char *s = xm_tokenizer_token_text(t, id, &n);
            result.emplace_back(s, n);
        }
        return result;
    }

    struct xm_tokenizer *t = nullptr;
    struct xm_error err = {};
    enum xm_status status = XM_OK;

  private:
    Tokenizer() = default;
};

/* Returns a tokenizer.json. `model`: the members of the model object after its type; `rest`:
 * further members of the file; "" leaves either out. */
inline std::string
tokenizer_json(const std::string &model, const std::string &rest = "")
{
    return R"({"model":{"type":"BPE",)" + model + "}" + (rest.empty() ? "" : ",") + rest +
           "}";
}

/* The tokens a, b, c, ab, abc and a space, with ids in this order. */
inline const char *const small_model =
    R"("vocab":{"a":0,"b":1,"c":2,"ab":3,"abc":4," ":5},"merges":["a b","ab c"])";

#endif
