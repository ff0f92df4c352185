/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the plugin GPU: how its programs, requests and sequences stand behind plugin.h.
 */
#ifndef XM_PLUGIN_GPU_GPU_PLUGIN_H
#define XM_PLUGIN_GPU_GPU_PLUGIN_H

#include "plugin/gpu/open_engines.h"
#include "plugin/gpu/program.h"
#include "plugin/plugin.h"

struct xm_gpu_compiled {
    struct xm_compiled base; /* first */
    struct xm_program *program;
    const char *plugin;        /* "GPU"                              */
    uint32_t index, n_devices; /* of the device; of all of the plugin */
    uint32_t device;           /* its number among all devices        */
    char *model_name;          /* owned */
    bool has_contexts;         /* the plugin makes contexts */
    /* it was compiled in; referenced; NULL: the device's own */
    struct xm_context *context;
};

static inline struct xm_gpu_compiled *
xm_gpu_compiled_of(struct xm_compiled *c)
{
    return (struct xm_gpu_compiled *)c;
}

/* gpu_compiled.c: makes it that of a program, which it takes over. */
void xm_gpu_compiled_wrap(struct xm_gpu_compiled *c, struct xm_program *p);
/* As its last user does; also of one without a program, or NULL. */
void xm_gpu_compiled_free(struct xm_gpu_compiled *c);

/* gpu_context.c: the device's own, in which an engine of the plugin's works. */
struct xm_gpu_place {
    const char *plugin;     /* "GPU" */
    uint32_t index, device; /* among the plugin's, and among all */
};
enum xm_status xm_gpu_context_of(const struct xm_gpu_place *place,
                                 struct xm_engine *engine, struct xm_context **out,
                                 struct xm_error *err);
/* Somebody else's, for a config that is not final: options follow from the queue. */
enum xm_status xm_gpu_context_share(const struct xm_gpu_place *place,
                                    const struct xm_shared_cl *share,
                                    struct xm_config *config, struct xm_context **out,
                                    struct xm_error *err);
/* The engine of a context for a config that is not final; referenced. `own`: those of the plugin
 * that compiles. */
enum xm_status xm_gpu_context_engine(struct xm_context *c, struct xm_open_engines *own,
                                     struct xm_config *config, struct xm_engine **out,
                                     struct xm_error *err);
/* Its device, among the plugin's. XM_INVALID: the context is another plugin's. */
enum xm_status xm_gpu_context_device(const struct xm_context *c, const char *plugin,
                                     uint32_t *index, struct xm_error *err);
/* The bytes of a tensor on the device. XM_INVALID: they are another plugin's. */
enum xm_status xm_gpu_buffer_of(struct xm_remote *m, struct xm_buffer **out,
                                struct xm_error *err);

/* gpu_requests.c: of xm_compiled_ops. */
enum xm_status xm_gpu_create_request(struct xm_compiled *c, struct xm_infer **out,
                                     struct xm_error *err);
enum xm_status xm_gpu_create_sequence(struct xm_compiled *c, struct xm_sequence **out,
                                      struct xm_error *err);
enum xm_status xm_gpu_create_batch(struct xm_compiled *c, struct xm_batch **out,
                                   struct xm_error *err);

#endif
