/* SPDX-License-Identifier: Apache-2.0
 *
 * Read-only properties of OpenCL devices and of models compiled for them, printed as OpenVINO's
 * text. Each property is a row of gpu_properties.def. Properties that can be set are the options of
 * the config (runtime/config.h).
 */
#ifndef XM_PLUGIN_GPU_GPU_PROPERTIES_H
#define XM_PLUGIN_GPU_GPU_PROPERTIES_H

#include "plugin/gpu/open_engines.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_program;

/* The device or compiled model whose property is read. Nothing is owned. */
struct xm_gpu_subject {
    const struct xm_device_info *device;
    const struct xm_config *config;   /* whose options are returned              */
    struct xm_open_engines *engines;  /* the plugin's; NULL for a compiled model */
    uint32_t engine;                  /* the device's number among all devices   */
    const struct xm_program *program; /* the compiled model's; NULL for a device */
    const char *model_name;           /* of the compiled model                   */
    const char *plugin;               /* "GPU"                                   */
    uint32_t index;                   /* the device's number in the plugin       */
    uint32_t n_devices;               /* number of the plugin's devices          */
    /* set by xm_gpu_property; a printing function writes its failure here */
    struct xm_error *err;
};

/* Appends the value of a property: a row of the table, or an option of the config. XM_NOT_FOUND:
 * neither has the key. */
enum xm_status xm_gpu_property(struct xm_gpu_subject subject, const char *key,
                               struct xm_strbuf *out, struct xm_error *err);

/* Sets an option as xm_config_set does; error messages name the plugin. */
enum xm_status xm_gpu_set_option(struct xm_config *c, const char *plugin, const char *key,
                                 const char *value, struct xm_error *err);
/* Fails with XM_NOT_FOUND and OpenVINO's wording of the message, which programs search for. */
enum xm_status xm_gpu_unsupported(const char *plugin, const char *key,
                                  struct xm_error *err);

/* Appends the value of one property of `s` to `out`: columns 2 and 3 of gpu_properties.def. */
typedef void xm_gpu_print_fn(const struct xm_gpu_subject *s, struct xm_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
