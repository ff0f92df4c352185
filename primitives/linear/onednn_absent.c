/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the place of onednn_linear.c in builds without oneDNN: refuses every weight, so that
 * nothing is created.
 */
#include "primitives/linear/linear_library.h"

const struct xm_linear_library xm_onednn_linear = {NULL, NULL, NULL, NULL};

const char *
xm_onednn_linear_refuses(const struct xm_device_info *device, const struct xm_weight *w,
                         enum xm_element src)
{
    (void)device, (void)w, (void)src;
    return "this build has no oneDNN";
}

struct xm_onednn_operands
xm_onednn_linear_operands(const struct xm_device_info *device, const struct xm_weight *w,
                          enum xm_element src)
{
    (void)device, (void)w, (void)src;
    return (struct xm_onednn_operands){XM_DYNAMIC, 0};
}
