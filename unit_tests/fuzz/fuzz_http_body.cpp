// SPDX-License-Identifier: Apache-2.0
// The input is a letter that names an endpoint of the server and the body of a request to it,
// which the server answers.
#include <cstring>

#include "runtime/util/json.h"
#include "unit_tests/fuzz/fuzz.h"
#include "unit_tests/server/served.h"

namespace
{

const char *const paths[] = {"/v1/chat/completions", "/v1/completions", "/v1/messages",
                             "/v1/responses",        "/tokenize",       "/detokenize",
                             "/apply-template"};
enum { N_PATHS = sizeof(paths) / sizeof(paths[0]), CONTEXT = 48, MOST_MADE = 1 << 20 };

bool
is_json(const std::string &text)
{
    yyjson_doc *doc = nullptr;
    const bool is = xm_json_parse(text.data(), text.size(), &doc, nullptr) == XM_OK;
    yyjson_doc_free(doc);
    return is;
}

} // namespace

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static Served *s = new Served(4, 256, CONTEXT);
    if (n == 0)
        return 0;
    const std::string body(reinterpret_cast<const char *>(bytes) + 1, n - 1);
    const Answer a = s->ask(paths[bytes[0] % N_PATHS], body);
    require(a.status == 200 || a.status == 400 || a.status == 404 || a.status == 503,
            "a body is answered, or refused");
    require(a.text.size() < MOST_MADE, "an answer is bounded");
    require(a.type != "application/json" || is_json(a.text), "an answer is JSON");
    require(a.status == 200 || has(a.text, "\"error\":{\"type\":"), "a refusal says why");
    require(a.status == 200 || has(a.text, "\"message\":\""), "by a sentence");
    return 0;
}
