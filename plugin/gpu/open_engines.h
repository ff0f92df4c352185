/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines that a plugin has open: opened on first use, shared by all who ask for the same
 * device with the same options of the engine's own, kept for those who ask later.
 *
 * Those of one device are in one OpenCL context, so that memory of one serves another.
 *
 * An engine whose device is lost is of no use to anybody who comes: the list lets go of it at the
 * next look, and it is freed with the last program that still refers to it.
 */
#ifndef XM_PLUGIN_GPU_OPEN_ENGINES_H
#define XM_PLUGIN_GPU_OPEN_ENGINES_H

#include <pthread.h>

#include "runtime/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As xm_engine_create_in. */
typedef enum xm_status (*xm_engine_open_fn)(size_t index, const struct xm_config *config,
                                            const struct xm_shared_cl *share,
                                            struct xm_engine **out, struct xm_error *err);

struct xm_open_engine;
/* From any thread. */
struct xm_open_engines {
    pthread_mutex_t lock;
    xm_engine_open_fn open;
    /* where all of them are; no context: each device has its own */
    struct xm_shared_cl share;
    struct xm_open_engine *first; /* owned */
};

/* `share` NULL: contexts of their own; its handles outlive the list. */
void xm_open_engines_init(struct xm_open_engines *l, xm_engine_open_fn open,
                          const struct xm_shared_cl *share);
/* The engine for a device and a config that is not final; referenced. */
enum xm_status xm_open_engines_get(struct xm_open_engines *l, uint32_t index,
                                   const struct xm_config *config, struct xm_engine **out,
                                   struct xm_error *err);
/* What those of a device hold now, by kind of memory: sum->now. */
void xm_open_engines_memory(struct xm_open_engines *l, uint32_t index,
                            struct xm_memory_stats *sum);
void xm_open_engines_free(struct xm_open_engines *l);

#ifdef __cplusplus
}
#endif
#endif
