// SPDX-License-Identifier: Apache-2.0
// The input is a tool call as a model writes it; its first byte selects the syntax.
#include <yyjson.h>

#include <cstring>

#include "plugin/text/tool_calls.h"
#include "unit_tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const char *text = reinterpret_cast<const char *>(bytes);
    if (n == 0)
        return 0;
    xm_tool_calls calls = {};
    xm_error err = {};
    const xm_call_form form = static_cast<xm_call_form>(bytes[0] % 4);
    const xm_status s = xm_tool_calls_parse(&calls, form, xm_slice_of("f", 1),
                                            xm_slice_of(text + 1, n - 1), nullptr, &err);
    require(worked(s, err) == (calls.n == 1), "a call comes exactly when that worked");
    if (calls.n == 1) {
        const char *arguments = calls.list[0].arguments;
        yyjson_doc *doc =
            yyjson_read(arguments, std::strlen(arguments), YYJSON_READ_NUMBER_AS_RAW);
        require(yyjson_is_obj(yyjson_doc_get_root(doc)), "its arguments are an object");
        require(!std::strchr(arguments, '\n'), "in one line");
        yyjson_doc_free(doc);
    }
    xm_tool_calls_free(&calls);
    xm_error cut_err = {};
    const xm_status cut =
        xm_tool_calls_parse_cut(&calls, form, xm_slice_of("f", 1),
                                xm_slice_of(text + 1, n - 1), nullptr, &cut_err);
    require(worked(cut, cut_err) == (calls.n == 1), "so does what has come of one");
    if (calls.n == 1) {
        xm_strbuf arguments = {};
        xm_strbuf_add(&arguments, calls.list[0].arguments);
        xm_tool_call_close(&arguments);
        require(arguments.text[arguments.n - 1] == '}', "and is closed");
        xm_strbuf_free(&arguments);
    }
    xm_tool_calls_free(&calls);
    return 0;
}
