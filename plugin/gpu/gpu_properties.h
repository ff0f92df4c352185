/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of OpenCL devices and of what is compiled for them, as OpenVINO's text: a row each in
 * gpu_properties.def. Options of the config come beside them (runtime/config.h).
 */
#ifndef XM_PLUGIN_GPU_GPU_PROPERTIES_H
#define XM_PLUGIN_GPU_GPU_PROPERTIES_H

#include "plugin/gpu/open_engines.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_program;

/* Whose properties are asked for. All borrowed. */
struct xm_gpu_subject {
    const struct xm_device_info *device;
    const struct xm_config *config;   /* whose options are given back            */
    struct xm_open_engines *engines;  /* of the plugin; NULL: a compiled model's */
    uint32_t engine;                  /* number of the device among all          */
    const struct xm_program *program; /* NULL: a device's                        */
    const char *model_name;           /* of the compiled model                   */
    const char *plugin;               /* "GPU"                                   */
    uint32_t index, n_devices;        /* of the device; of all of the plugin     */
    /* set by xm_gpu_property: where a printer says why it could not */
    struct xm_error *err;
};

/* A row, or an option of the config. XM_NOT_FOUND: neither. */
enum xm_status xm_gpu_property(struct xm_gpu_subject subject, const char *key,
                               struct xm_strbuf *out, struct xm_error *err);

/* As xm_config_set, of the plugin `plugin`. */
enum xm_status xm_gpu_set_option(struct xm_config *c, const char *plugin, const char *key,
                                 const char *value, struct xm_error *err);
/* XM_NOT_FOUND, in the words that programs look for. */
enum xm_status xm_gpu_unsupported(const char *plugin, const char *key,
                                  struct xm_error *err);

typedef void xm_gpu_print_fn(const struct xm_gpu_subject *s, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
