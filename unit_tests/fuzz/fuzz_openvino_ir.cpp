// SPDX-License-Identifier: Apache-2.0
// The input is the XML of an OpenVINO IR; 512 bytes of weights are given.
#include <memory>

#include "plugin/readers/openvino_ir.h"
#include "transformations/graph/text.h"
#include "transformations/graph/validate.h"
#include "unit_tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static uint8_t weights[512];
    for (size_t i = 0; i < sizeof(weights); i++)
        /* small numbers if read as i64 or f64 */
        weights[i] = static_cast<uint8_t>(i % 8 ? 0 : 1 + i / 8);
    xm_graph *g = nullptr;
    xm_error err = {};
    enum xm_status s =
        xm_openvino_ir_read_memory(reinterpret_cast<const char *>(bytes), n, weights,
                                   sizeof(weights), nullptr, &g, &err);
    require(worked(s, err) == (g != nullptr),
            "a graph comes exactly when reading worked");
    if (!g)
        return 0;
    worked(xm_graph_validate(g, nullptr, &err), err);
    xm_strbuf text = {};
    xm_graph_print(g, &text);
    xm_strbuf_free(&text);
    xm_graph_destroy(g);
    return 0;
}
