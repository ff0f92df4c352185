/* SPDX-License-Identifier: Apache-2.0
 *
 * onednn_linear.h in builds without oneDNN: refuses everything, so that nothing is
 * created.
 */
#include "primitives/linear/onednn_linear.h"

const char *
xm_onednn_linear_refuses(const struct xm_device_info *device, const struct xm_weight *w,
                         enum xm_element src, enum xm_element product)
{
    (void)device, (void)w, (void)src, (void)product;
    return "built without oneDNN";
}

enum xm_status
xm_onednn_linear_create(struct xm_engine *engine, struct xm_device_weight *weight,
                        struct xm_buffer *bias, enum xm_element src,
                        enum xm_element product, enum xm_element dst,
                        struct xm_onednn_linear **out, struct xm_error *err)
{
    (void)engine, (void)weight, (void)bias, (void)src, (void)product, (void)dst,
        (void)out;
    return xm_fail(err, XM_UNSUPPORTED, "this build has no oneDNN");
}

void
xm_onednn_linear_destroy(struct xm_onednn_linear *l)
{
    (void)l;
}

uint64_t
xm_onednn_linear_scratch(const struct xm_onednn_linear *l, const struct xm_primitive *p,
                         uint64_t tokens)
{
    (void)l, (void)p, (void)tokens;
    return 0;
}

enum xm_status
xm_onednn_linear_run(struct xm_onednn_linear *l, struct xm_buffer *x, struct xm_buffer *y,
                     uint64_t tokens, struct xm_scratch *s, struct xm_queue *queue,
                     struct xm_error *err)
{
    (void)l, (void)x, (void)y, (void)tokens, (void)s, (void)queue;
    return xm_fail(err, XM_UNSUPPORTED, "this build has no oneDNN");
}
