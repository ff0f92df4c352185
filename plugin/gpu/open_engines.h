/* SPDX-License-Identifier: Apache-2.0
 *
 * The open engines of a plugin. An engine is opened on first use, shared by all programs that use
 * the same device with the same engine options (runtime/options/engine.def), and kept open for
 * later ones.
 *
 * The engines of one device share one OpenCL context, so that they can use each other's memory.
 *
 * An engine whose device is lost cannot be used any more: the list drops its reference at the next
 * call, and the engine is freed with the last program that refers to it.
 */
#ifndef XM_PLUGIN_GPU_OPEN_ENGINES_H
#define XM_PLUGIN_GPU_OPEN_ENGINES_H

#include <pthread.h>

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens an engine on device `index`, as xm_engine_create_in (runtime/engine.h) does. */
typedef enum xm_status (*xm_engine_open_fn)(size_t index, const struct xm_config *config,
                                            const struct xm_shared_cl *share,
                                            struct xm_engine **out, struct xm_error *err);

struct xm_open_engine;
/* May be used by many threads at once. */
struct xm_open_engines {
    pthread_mutex_t lock;
    xm_engine_open_fn open;
    /* the OpenCL context of all engines; if it has none, each device has its own context */
    struct xm_shared_cl share;
    struct xm_open_engine *first; /* owned */
};

/* Makes an empty list. `share`: the OpenCL context of all engines, whose handles must outlive the
 * list; NULL: each device has its own context. */
void xm_open_engines_init(struct xm_open_engines *l, xm_engine_open_fn open,
                          const struct xm_shared_cl *share);
/* Finds the open engine for device `index` and the engine options of `config`, which is not final,
 * or opens one. *out is referenced for the caller. */
enum xm_status xm_open_engines_get(struct xm_open_engines *l, uint32_t index,
                                   const struct xm_config *config, struct xm_engine **out,
                                   struct xm_error *err);
/* Sets sum->now to the memory that all engines of a device hold now, by kind. */
void xm_open_engines_memory(struct xm_open_engines *l, uint32_t index,
                            struct xm_memory_stats *sum);
void xm_open_engines_free(struct xm_open_engines *l);

#ifdef __cplusplus
}
#endif
#endif
