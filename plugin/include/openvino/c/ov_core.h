/* SPDX-License-Identifier: Apache-2.0
 *
 * The core: lists devices, reads models and compiles them.
 *
 * Devices: "GPU" (the best OpenCL device), "GPU.n", "CPU" (an OpenCL driver that runs on the
 * processor), "CPU.n", "REFERENCE" (plain host code), and the devices of plugins. OpenVINO's
 * virtual devices without a list (AUTO), and NULL where a model is compiled, mean GPU. With a list
 * they mean one device of the list: the first (HETERO:GPU,CPU), or the first that exists (AUTO,
 * MULTI).
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
/* Creates a core with the built-in devices and the plugins that an XML file (plugins.xml) lists:
 * libraries that implement xemoe/plugin.h. Each is loaded when its device is first used. Plugins
 * made for OpenVINO are skipped. "": as ov_core_create. */
OPENVINO_C_API(ov_status_e)
ov_core_create_with_config(const char *xml_config_file, ov_core_t **core);
/* Frees the core; objects made with it stay valid. Clears the text of the last error. */
OPENVINO_C_API(void) ov_core_free(ov_core_t *core);

/* model_path: an .xml file, a folder with openvino_model.xml, or a .gguf file. bin_path: the file
 * of the weights. NULL or "": the .xml file's name with .bin; that file may be missing if no
 * constant needs it. */
OPENVINO_C_API(ov_status_e)
ov_core_read_model(const ov_core_t *core, const char *model_path, const char *bin_path,
                   ov_model_t **model);
/* `weights`: a U8 tensor with the bytes of the .bin file, or NULL. The bytes are shared, not
 * copied. The tensor's handle may be freed at once, but memory that the caller lent to the tensor
 * must outlive the model and everything compiled from it. */
OPENVINO_C_API(ov_status_e)
ov_core_read_model_from_memory_buffer(const ov_core_t *core, const char *model_str,
                                      const size_t str_len, const ov_tensor_t *weights,
                                      ov_model_t **model);

/* Does nothing for a library of openvino_tokenizers, because its operations are built in.
 * GENERAL_ERROR for any other library; none is ever loaded. */
OPENVINO_C_API(ov_status_e)
ov_core_add_extension(const ov_core_t *core, const char *path);

/* property_args_size is the number of arguments that follow: key, value, key, value.
 * INVALID_C_PARAM: the number is odd. */
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
/* Creates a context of a GPU that uses the application's handles (ov_remote_context.h), or, without
 * any key, returns the device's default context. GENERAL_ERROR: a handle is missing or belongs to
 * another device, or the device (CPU, REFERENCE) has no contexts. */
OPENVINO_C_API(ov_status_e)
ov_core_create_context(const ov_core_t *core, const char *device_name,
                       const size_t context_args_size, ov_remote_context_t **context,
                       ...);
OPENVINO_C_API(ov_status_e)
ov_core_create_context_props(const ov_core_t *core, const char *device_name,
                             size_t num_properties, const ov_property_t *properties,
                             ov_remote_context_t **context);
/* Returns the context in which models compiled for the device run. */
OPENVINO_C_API(ov_status_e)
ov_core_get_default_context(const ov_core_t *core, const char *device_name,
                            ov_remote_context_t **context);
/* Compiles for the context's device. Runs are enqueued in the context's queue if it has one. */
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
/* Imports bytes that ov_compiled_model_export_model wrote; they are copied. NOT_IMPLEMENTED: the
 * device cannot import. The model's own files must be at their former paths.
 * xm_import_model_from_file (xemoe/xemoe.h) copies nothing and also finds them beside the exported
 * file. */
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

/* Sets one property: a key and a value. device_name NULL: for the core and for every device that
 * knows the key. GENERAL_ERROR: no plugin has a device of that name. A device index that does not
 * exist is accepted here; using the device then fails. */
OPENVINO_C_API(ov_status_e)
ov_core_set_property(const ov_core_t *core, const char *device_name, ...);
OPENVINO_C_API(ov_status_e)
ov_core_set_properties(const ov_core_t *core, const char *device_name,
                       size_t num_properties, const ov_property_t *properties);
/* device_name "": a property of the core. NULL: UNKNOW_EXCEPTION. Free the value with ov_free(). */
OPENVINO_C_API(ov_status_e)
ov_core_get_property(const ov_core_t *core, const char *device_name,
                     const char *property_key, char **property_value);

OPENVINO_C_API(ov_status_e)
ov_core_get_available_devices(const ov_core_t *core, ov_available_devices_t *devices);
OPENVINO_C_API(void) ov_available_devices_free(ov_available_devices_t *devices);
/* Returns one entry for each device of a list such as "A,B". NOT_FOUND: a device does not exist. */
OPENVINO_C_API(ov_status_e)
ov_core_get_versions_by_device_name(const ov_core_t *core, const char *device_name,
                                    ov_core_version_list_t *versions);
OPENVINO_C_API(void) ov_core_versions_free(ov_core_version_list_t *versions);

/* For programs that unload the library: no function may be called afterwards. */
OPENVINO_C_API(void) ov_shutdown(void);

#endif
