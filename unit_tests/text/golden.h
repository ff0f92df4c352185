/* SPDX-License-Identifier: Apache-2.0
 *
 * The ids and texts that reference implementations return for 260 strings with the tokenizer of a
 * test model.
 */
#ifndef XM_UNIT_TESTS_TEXT_GOLDEN_H
#define XM_UNIT_TESTS_TEXT_GOLDEN_H

#include <yyjson.h>

#include "unit_tests/text/text_test.h"

struct golden {
    std::string text, decoded, decoded_skip_special;
    ids plain, with_special;
    ids unnormalized; /* ids by llama.cpp, which normalizes no text */
};

inline std::string
text_of(yyjson_val *item, const char *key)
{
    yyjson_val *value = yyjson_obj_get(item, key);
    return std::string(yyjson_get_str(value), yyjson_get_len(value));
}

inline ids
ids_of(yyjson_val *item, const char *key)
{
    ids result;
    size_t i, n;
    yyjson_val *value;
    yyjson_arr_foreach(yyjson_obj_get(item, key), i, n, value)
        result.push_back((int32_t)yyjson_get_int(value));
    return result;
}

inline std::vector<golden>
read_golden(const std::string &path)
{
    std::vector<golden> result;
    yyjson_doc *doc = yyjson_read_file(path.c_str(), 0, nullptr, nullptr);
    size_t i, n;
    yyjson_val *item;
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "items"), i, n, item)
        result.push_back(
            {text_of(item, "text"), text_of(item, "decoded"),
             text_of(item, "decoded_skip_special"), ids_of(item, "ids"),
             ids_of(item, "ids_with_special"),
             ids_of(item,
                    yyjson_obj_get(item, "llamacpp_ids") ? "llamacpp_ids" : "ids")});
    yyjson_doc_free(doc);
    return result;
}

#endif
