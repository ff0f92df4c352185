/* SPDX-License-Identifier: Apache-2.0
 *
 * onednn.h in builds without a GPU engine of oneDNN: no engine can be opened, so that the other
 * functions are never called.
 */
#include "primitives/onednn/onednn.h"

static const char absent[] = "this build has no oneDNN GPU engine";

const char *
xm_onednn_refuses(struct xm_engine *engine)
{
    (void)engine;
    return absent;
}

bool
xm_onednn_could_open(const struct xm_device_info *device)
{
    (void)device;
    return false;
}

enum xm_status
xm_onednn_open(struct xm_engine *engine, struct xm_onednn **out, struct xm_error *err)
{
    (void)engine;
    *out = NULL;
    return xm_fail(err, XM_UNSUPPORTED, "%s", absent);
}

struct xm_onednn *
xm_onednn_of(const struct xm_engine *engine)
{
    (void)engine;
    return NULL;
}

void
xm_onednn_unref(struct xm_onednn *o)
{
    (void)o;
}

const char *
xm_onednn_declines(struct xm_onednn *o, const struct xm_onednn_problem *p)
{
    (void)o, (void)p;
    return absent;
}

enum xm_status
xm_onednn_matmul_get(struct xm_onednn *o, const struct xm_onednn_problem *p,
                     struct xm_onednn_matmul **out, struct xm_error *err)
{
    (void)o, (void)p;
    *out = NULL;
    return xm_fail(err, XM_UNSUPPORTED, "%s", absent);
}

void
xm_onednn_matmul_put(struct xm_onednn_matmul *m)
{
    (void)m;
}

uint64_t
xm_onednn_matmul_scratch(const struct xm_onednn_matmul *m)
{
    (void)m;
    return 0;
}

enum xm_status
xm_onednn_begin(struct xm_onednn *o, struct xm_queue *queue,
                struct xm_onednn_stream **out, struct xm_error *err)
{
    (void)o, (void)queue;
    *out = NULL;
    return xm_fail(err, XM_UNSUPPORTED, "%s", absent);
}

enum xm_status
xm_onednn_matmul_run(struct xm_onednn_matmul *m, struct xm_onednn_stream *stream,
                     const struct xm_onednn_spans *spans, struct xm_error *err)
{
    (void)m, (void)stream, (void)spans;
    return xm_fail(err, XM_UNSUPPORTED, "%s", absent);
}

void
xm_onednn_end(struct xm_onednn_stream *stream)
{
    (void)stream;
}
