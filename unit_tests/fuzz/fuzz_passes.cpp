// SPDX-License-Identifier: Apache-2.0
// The input is graph text, which goes through every pass: a valid graph stays valid, or is
// refused with an error text.
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
    xm_caps caps = {}; // a device that can run everything, in f16
    caps.precision = XM_F16;
    const xm_pipeline_options options = {"", "", "", false};
    if (worked(xm_graph_validate(g, nullptr, &err), err) &&
        worked(xm_pipeline_run(g, &caps, &options, nullptr, nullptr, &err), err))
        require(xm_graph_validate(g, nullptr, &err) == XM_OK, "passes keep graphs valid");
    xm_graph_destroy(g);
    return 0;
}
