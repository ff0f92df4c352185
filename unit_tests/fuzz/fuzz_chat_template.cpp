// SPDX-License-Identifier: Apache-2.0
// The input is a chat template; after a NUL, the conversation as JSON.
#include <algorithm>
#include <string>

#include "plugin/text/chat_template.h"
#include "unit_tests/fuzz/fuzz.h"

namespace
{

const char *const conversation = R"([
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": " Hi\n"}]},
    {"role": "assistant", "content": null, "tool_calls": [{"function":
        {"name": "add", "arguments": {"a": 1, "b": -2.5, "c": [true, {}]}}}]},
    {"role": "tool", "content": "\u00e9 <b>"}])";
const char *const extra = R"({"tools": [{"type": "function"}], "bos_token": "<s>"})";

} // namespace

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    std::string input(reinterpret_cast<const char *>(bytes), n);
    size_t end = std::min(input.find('\0'), n);
    std::string messages = end < n ? input.substr(end + 1) : conversation;
    xm_chat_template *t = nullptr;
    xm_error err = {};
    enum xm_status s = xm_chat_template_parse(input.data(), end, &t, &err);
    require(worked(s, err) == (t != nullptr),
            "a template comes exactly when that worked");
    if (!t)
        return 0;
    xm_strbuf out = {};
    worked(xm_chat_template_render(t, messages.c_str(), true, extra, &out, &err), err);
    xm_strbuf_free(&out);
    xm_chat_template_free(t);
    return 0;
}
