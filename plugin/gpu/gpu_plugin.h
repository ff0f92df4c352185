/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the plugin GPU: the adapters by which its programs, contexts, requests and sequences
 * implement the interfaces of plugin/plugin.h.
 */
#ifndef XM_PLUGIN_GPU_GPU_PLUGIN_H
#define XM_PLUGIN_GPU_GPU_PLUGIN_H

#include "plugin/gpu/open_engines.h"
#include "plugin/lower/program.h"
#include "plugin/plugin.h"

struct xm_gpu_compiled {
    struct xm_compiled base; /* first */
    struct xm_program *program;
    const char *plugin; /* "GPU"                              */
    uint32_t index,
        n_devices; /* the device's number in the plugin; the plugin's number of devices */
    uint32_t device;   /* the device's number among those of all plugins */
    char *model_name;  /* owned */
    bool has_contexts; /* the plugin supports remote contexts */
    /* the context that the model was compiled in; referenced; NULL: the device's default context */
    struct xm_context *context;
};

static inline struct xm_gpu_compiled *
xm_gpu_compiled_of(struct xm_compiled *c)
{
    return (struct xm_gpu_compiled *)c;
}

/* gpu_compiled.c: fills `c` for program `p`. `c` owns the caller's reference from now on. */
void xm_gpu_compiled_wrap(struct xm_gpu_compiled *c, struct xm_program *p);
/* Frees `c`, which may be NULL or have no program. */
void xm_gpu_compiled_free(struct xm_gpu_compiled *c);

/* gpu_context.c: identifies a device. */
struct xm_gpu_place {
    const char *plugin; /* "GPU" */
    uint32_t index;     /* the device's number in the plugin            */
    uint32_t device;    /* its number among the devices of all plugins  */
};
/* Creates the device's default context: the context of an engine that the plugin opened. */
enum xm_status xm_gpu_context_of(const struct xm_gpu_place *place,
                                 struct xm_engine *engine, struct xm_context **out,
                                 struct xm_error *err);
/* Creates a context around the application's OpenCL context or queue. Sets those options of
 * `config`, which is not final, that follow from the queue. */
enum xm_status xm_gpu_context_share(const struct xm_gpu_place *place,
                                    const struct xm_shared_cl *share,
                                    struct xm_config *config, struct xm_context **out,
                                    struct xm_error *err);
/* Finds or opens an engine in context c with the engine options of `config`, which is not final;
 * *out is referenced for the caller. `own`: the open engines of the plugin that compiles.
 * XM_INVALID: the context belongs to another core, or its device is lost. */
enum xm_status xm_gpu_context_engine(struct xm_context *c, struct xm_open_engines *own,
                                     struct xm_config *config, struct xm_engine **out,
                                     struct xm_error *err);
/* Sets *index to the number, in the plugin, of the context's device. XM_INVALID: the context
 * belongs to another plugin. */
enum xm_status xm_gpu_context_device(const struct xm_context *c, const char *plugin,
                                     uint32_t *index, struct xm_error *err);
/* Sets *out to the buffer of a remote tensor. XM_INVALID: the tensor belongs to another plugin. */
enum xm_status xm_gpu_buffer_of(struct xm_remote *m, struct xm_buffer **out,
                                struct xm_error *err);

/* gpu_requests.c: members of struct xm_compiled_ops. */
enum xm_status xm_gpu_create_request(struct xm_compiled *c, struct xm_infer **out,
                                     struct xm_error *err);
enum xm_status xm_gpu_create_sequence(struct xm_compiled *c, struct xm_sequence **out,
                                      struct xm_error *err);
enum xm_status xm_gpu_create_batch(struct xm_compiled *c, struct xm_batch **out,
                                   struct xm_error *err);

#endif
