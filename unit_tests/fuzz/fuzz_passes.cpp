// SPDX-License-Identifier: Apache-2.0
// Graph text through every pass: valid graphs stay valid, or are refused with a sentence.
#include <string>

#include "transformations/graph/text.h"
#include "transformations/graph/validate.h"
#include "transformations/pipeline.h"
#include "unit_tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    std::string text(reinterpret_cast<const char *>(bytes), n);
    xm_graph *g = nullptr;
    xm_error err = {};
    if (xm_graph_parse(text.c_str(), &g, &err) != XM_OK)
        return 0;
    xm_caps caps = {}; // everything can be run, in f16
    caps.precision = XM_F16;
    const xm_pipeline_options options = {"", "", "", false};
    if (worked(xm_graph_validate(g, nullptr, &err), err) &&
        worked(xm_pipeline_run(g, &caps, &options, nullptr, nullptr, &err), err))
        require(xm_graph_validate(g, nullptr, &err) == XM_OK, "passes keep graphs valid");
    xm_graph_destroy(g);
    return 0;
}
