/* SPDX-License-Identifier: Apache-2.0
 *
 * The core: devices, reading models, compiling them.
 *
 * Devices: "GPU" (the best OpenCL device), "GPU.n", "CPU" (an OpenCL driver that runs on the
 * processor), "CPU.n", "REFERENCE" (plain host code), and those of plugins. Names such as AUTO, and
 * NULL for compiling, are taken as GPU; those with a list, as HETERO:GPU,CPU, as the first of it
 * that is there.
 */
#ifndef OPENVINO_C_OV_CORE_H
#define OPENVINO_C_OV_CORE_H

#include "openvino/c/deprecated.h"
#include "openvino/c/ov_common.h"
#include "openvino/c/ov_compiled_model.h"
#include "openvino/c/ov_model.h"
#include "openvino/c/ov_node.h"
#include "openvino/c/ov_property.h"
#include "openvino/c/ov_remote_context.h"
#include "openvino/c/ov_tensor.h"

typedef struct ov_core ov_core_t;

typedef struct ov_version {
    /* "2026.4.1-…": the API that is offered, then who offers it */
    const char *buildNumber;
    const char *description;
} ov_version_t;

typedef struct {
    const char *device_name;
    ov_version_t version;
} ov_core_version_t;

typedef struct {
    ov_core_version_t *versions;
    size_t size;
} ov_core_version_list_t;

typedef struct {
    char **devices;
    size_t size;
} ov_available_devices_t;

OPENVINO_C_API(ov_status_e) ov_get_openvino_version(ov_version_t *version);
OPENVINO_C_API(void) ov_version_free(ov_version_t *version);

OPENVINO_C_API(ov_status_e) ov_core_create(ov_core_t **core);
/* With the plugins of a list (plugins.xml) beside the built-in ones: libraries that keep to
 * xemoe/plugin.h, each loaded when its device is first used. Those of OpenVINO are passed over. ""
 * is the same as ov_core_create. */
OPENVINO_C_API(ov_status_e)
ov_core_create_with_config(const char *xml_config_file, ov_core_t **core);
/* What was made with the core stays valid. Clears the last error's text. */
OPENVINO_C_API(void) ov_core_free(ov_core_t *core);

/* model_path: an .xml, a folder with openvino_model.xml, or a .gguf. bin_path NULL or "": the same
 * name with .bin, which may be missing when no constant needs it. */
OPENVINO_C_API(ov_status_e)
ov_core_read_model(const ov_core_t *core, const char *model_path, const char *bin_path,
                   ov_model_t **model);
/* `weights`: a U8 tensor with the bytes of the .bin, shared, not copied; or NULL. Its
 * handle may be freed at once; memory that the tensor borrows must outlive the model and
 * what is compiled from it. */
OPENVINO_C_API(ov_status_e)
ov_core_read_model_from_memory_buffer(const ov_core_t *core, const char *model_str,
                                      const size_t str_len, const ov_tensor_t *weights,
                                      ov_model_t **model);

/* A library of openvino_tokenizers is accepted, and not needed: its operations are there. Others
 * are GENERAL_ERROR; none is loaded. */
OPENVINO_C_API(ov_status_e)
ov_core_add_extension(const ov_core_t *core, const char *path);

/* property_args_size counts the arguments that follow: key, value, key, value. An odd
 * number is INVALID_C_PARAM. */
OPENVINO_C_API(ov_status_e)
ov_core_compile_model(const ov_core_t *core, const ov_model_t *model,
                      const char *device_name, const size_t property_args_size,
                      ov_compiled_model_t **compiled_model, ...);
OPENVINO_C_API(ov_status_e)
ov_core_compile_model_from_file(const ov_core_t *core, const char *model_path,
                                const char *device_name, const size_t property_args_size,
                                ov_compiled_model_t **compiled_model, ...);
OPENVINO_C_API(ov_status_e)
ov_core_compile_model_props(const ov_core_t *core, const ov_model_t *model,
                            const char *device_name, size_t num_properties,
                            const ov_property_t *properties,
                            ov_compiled_model_t **compiled_model);
OPENVINO_C_API(ov_status_e)
ov_core_compile_model_from_file_props(const ov_core_t *core, const char *model_path,
                                      const char *device_name, size_t num_properties,
                                      const ov_property_t *properties,
                                      ov_compiled_model_t **compiled_model);
/* A context of GPU for handles of others (ov_remote_context.h), or without any key the device's
 * own. GENERAL_ERROR: a handle is missing or is of another device, or the device (CPU, REFERENCE)
 * has no contexts. */
OPENVINO_C_API(ov_status_e)
ov_core_create_context(const ov_core_t *core, const char *device_name,
                       const size_t context_args_size, ov_remote_context_t **context,
                       ...);
OPENVINO_C_API(ov_status_e)
ov_core_create_context_props(const ov_core_t *core, const char *device_name,
                             size_t num_properties, const ov_property_t *properties,
                             ov_remote_context_t **context);
/* That in which models run that are compiled for the device. */
OPENVINO_C_API(ov_status_e)
ov_core_get_default_context(const ov_core_t *core, const char *device_name,
                            ov_remote_context_t **context);
/* For the context's device; runs are enqueued in its queue where it has one. */
OPENVINO_C_API(ov_status_e)
ov_core_compile_model_with_context(const ov_core_t *core, const ov_model_t *model,
                                   const ov_remote_context_t *context,
                                   const size_t property_args_size,
                                   ov_compiled_model_t **compiled_model, ...);
OPENVINO_C_API(ov_status_e)
ov_core_compile_model_with_context_props(const ov_core_t *core, const ov_model_t *model,
                                         const ov_remote_context_t *context,
                                         size_t num_properties,
                                         const ov_property_t *properties,
                                         ov_compiled_model_t **compiled_model);
/* From what ov_compiled_model_export_model wrote, which is copied; NOT_IMPLEMENTED where the device
 * cannot. The model's own files must be where they were; xm_import_model_from_file (xemoe/xemoe.h)
 * needs no copy, and finds them beside the file too. */
OPENVINO_C_API(ov_status_e)
ov_core_import_model(const ov_core_t *core, const char *content,
                     const size_t content_size, const char *device_name,
                     ov_compiled_model_t **compiled_model);

#ifdef OPENVINO_ENABLE_UNICODE_PATH_SUPPORT
OPENVINO_C_API(ov_status_e)
ov_core_create_with_config_unicode(const wchar_t *xml_config_file_ws, ov_core_t **core);
OPENVINO_C_API(ov_status_e)
ov_core_read_model_unicode(const ov_core_t *core, const wchar_t *model_path,
                           const wchar_t *bin_path, ov_model_t **model);
OPENVINO_C_API(ov_status_e)
ov_core_compile_model_from_file_unicode(const ov_core_t *core, const wchar_t *model_path,
                                        const char *device_name,
                                        const size_t property_args_size,
                                        ov_compiled_model_t **compiled_model, ...);
OPENVINO_C_API(ov_status_e)
ov_core_compile_model_from_file_unicode_props(const ov_core_t *core,
                                              const wchar_t *model_path,
                                              const char *device_name,
                                              size_t num_properties,
                                              const ov_property_t *properties,
                                              ov_compiled_model_t **compiled_model);
#endif

/* One key and one value. device_name NULL: for the core and for every device that knows
 * the key. A name that no plugin has is GENERAL_ERROR; a device of one that is not there is
 * accepted, and missed when it is used. */
OPENVINO_C_API(ov_status_e)
ov_core_set_property(const ov_core_t *core, const char *device_name, ...);
OPENVINO_C_API(ov_status_e)
ov_core_set_properties(const ov_core_t *core, const char *device_name,
                       size_t num_properties, const ov_property_t *properties);
/* device_name "": of the core; NULL: UNKNOW_EXCEPTION. The value is for ov_free(). */
OPENVINO_C_API(ov_status_e)
ov_core_get_property(const ov_core_t *core, const char *device_name,
                     const char *property_key, char **property_value);

OPENVINO_C_API(ov_status_e)
ov_core_get_available_devices(const ov_core_t *core, ov_available_devices_t *devices);
OPENVINO_C_API(void) ov_available_devices_free(ov_available_devices_t *devices);
/* One entry for each device of "A,B"; NOT_FOUND: one is not there. */
OPENVINO_C_API(ov_status_e)
ov_core_get_versions_by_device_name(const ov_core_t *core, const char *device_name,
                                    ov_core_version_list_t *versions);
OPENVINO_C_API(void) ov_core_versions_free(ov_core_version_list_t *versions);

/* For hosts that unload the library: nothing may be called afterwards. */
OPENVINO_C_API(void) ov_shutdown(void);

#endif
