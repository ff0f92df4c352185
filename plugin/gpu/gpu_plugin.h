/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the plugin GPU: how its programs, requests and sequences stand behind plugin.h.
 */
#ifndef XM_PLUGIN_GPU_GPU_PLUGIN_H
#define XM_PLUGIN_GPU_GPU_PLUGIN_H

#include "plugin/gpu/program.h"
#include "plugin/plugin.h"

struct xm_gpu_compiled {
    struct xm_compiled base; /* first */
    struct xm_program *program;
    const char *plugin; /* "GPU"                             */
    uint32_t index;     /* of the device, among the plugin's */
    char *model_name;   /* owned */
};

static inline struct xm_gpu_compiled *
xm_gpu_compiled_of(struct xm_compiled *c)
{
    return (struct xm_gpu_compiled *)c;
}

/* gpu_requests.c: of xm_compiled_ops. */
enum xm_status xm_gpu_create_request(struct xm_compiled *c, struct xm_infer **out,
                                     struct xm_error *err);
enum xm_status xm_gpu_create_sequence(struct xm_compiled *c, struct xm_sequence **out,
                                      struct xm_error *err);
enum xm_status xm_gpu_create_batch(struct xm_compiled *c, struct xm_batch **out,
                                   struct xm_error *err);

#endif
