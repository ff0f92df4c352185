/* SPDX-License-Identifier: Apache-2.0
 *
 * Image pre-processing: declared for programs that mention it, but not implemented. Each function
 * returns NOT_IMPLEMENT_C_METHOD for any arguments and stores an error that names it; the _free
 * functions do nothing.
 */
#ifndef OPENVINO_C_OV_PREPOSTPROCESS_H
#define OPENVINO_C_OV_PREPOSTPROCESS_H

#include "openvino/c/ov_common.h"
#include "openvino/c/ov_layout.h"
#include "openvino/c/ov_model.h"
#include "openvino/c/ov_tensor.h"

typedef struct ov_preprocess_prepostprocessor ov_preprocess_prepostprocessor_t;
typedef struct ov_preprocess_input_info ov_preprocess_input_info_t;
typedef struct ov_preprocess_input_tensor_info ov_preprocess_input_tensor_info_t;
typedef struct ov_preprocess_output_info ov_preprocess_output_info_t;
typedef struct ov_preprocess_output_tensor_info ov_preprocess_output_tensor_info_t;
typedef struct ov_preprocess_input_model_info ov_preprocess_input_model_info_t;
typedef struct ov_preprocess_preprocess_steps ov_preprocess_preprocess_steps_t;

typedef enum {
    UNDEFINE = 0U,
    NV12_SINGLE_PLANE,
    NV12_TWO_PLANES,
    I420_SINGLE_PLANE,
    I420_THREE_PLANES,
    RGB,
    BGR,
    GRAY,
    RGBX,
    BGRX
} ov_color_format_e;

typedef enum {
    RESIZE_LINEAR,
    RESIZE_CUBIC,
    RESIZE_NEAREST
} ov_preprocess_resize_algorithm_e;

typedef enum { CONSTANT = 0U, EDGE, REFLECT, SYMMETRIC } ov_padding_mode_e;

/* ---- the processor of a model ------------------------------------------------------- */

OPENVINO_C_API(ov_status_e)
ov_preprocess_prepostprocessor_create(const ov_model_t *model,
                                      ov_preprocess_prepostprocessor_t **preprocess);
OPENVINO_C_API(void)
ov_preprocess_prepostprocessor_free(ov_preprocess_prepostprocessor_t *preprocess);
OPENVINO_C_API(ov_status_e)
ov_preprocess_prepostprocessor_build(const ov_preprocess_prepostprocessor_t *preprocess,
                                     ov_model_t **model);

/* ---- inputs ------------------------------------------------------------------------- */

OPENVINO_C_API(ov_status_e)
ov_preprocess_prepostprocessor_get_input_info(
    const ov_preprocess_prepostprocessor_t *preprocess,
    ov_preprocess_input_info_t **preprocess_input_info);
OPENVINO_C_API(ov_status_e)
ov_preprocess_prepostprocessor_get_input_info_by_name(
    const ov_preprocess_prepostprocessor_t *preprocess, const char *tensor_name,
    ov_preprocess_input_info_t **preprocess_input_info);
OPENVINO_C_API(ov_status_e)
ov_preprocess_prepostprocessor_get_input_info_by_index(
    const ov_preprocess_prepostprocessor_t *preprocess, const size_t tensor_index,
    ov_preprocess_input_info_t **preprocess_input_info);
OPENVINO_C_API(void)
ov_preprocess_input_info_free(ov_preprocess_input_info_t *preprocess_input_info);
OPENVINO_C_API(ov_status_e)
ov_preprocess_input_info_get_tensor_info(
    const ov_preprocess_input_info_t *preprocess_input_info,
    ov_preprocess_input_tensor_info_t **preprocess_input_tensor_info);
OPENVINO_C_API(void)
ov_preprocess_input_tensor_info_free(
    ov_preprocess_input_tensor_info_t *preprocess_input_tensor_info);
OPENVINO_C_API(ov_status_e)
ov_preprocess_input_tensor_info_set_element_type(
    ov_preprocess_input_tensor_info_t *preprocess_input_tensor_info,
    const ov_element_type_e element_type);
OPENVINO_C_API(ov_status_e)
ov_preprocess_input_tensor_info_set_color_format(
    ov_preprocess_input_tensor_info_t *preprocess_input_tensor_info,
    const ov_color_format_e colorFormat);
OPENVINO_C_API(ov_status_e)
ov_preprocess_input_tensor_info_set_color_format_with_subname(
    ov_preprocess_input_tensor_info_t *preprocess_input_tensor_info,
    const ov_color_format_e colorFormat, const size_t sub_names_size, ...);
OPENVINO_C_API(ov_status_e)
ov_preprocess_input_tensor_info_set_color_format_with_subnames(
    ov_preprocess_input_tensor_info_t *preprocess_input_tensor_info,
    const ov_color_format_e colorFormat, const size_t sub_names_size,
    const char **sub_names);
OPENVINO_C_API(ov_status_e)
ov_preprocess_input_tensor_info_set_spatial_static_shape(
    ov_preprocess_input_tensor_info_t *preprocess_input_tensor_info,
    const size_t input_height, const size_t input_width);
OPENVINO_C_API(ov_status_e)
ov_preprocess_input_tensor_info_set_memory_type(
    ov_preprocess_input_tensor_info_t *preprocess_input_tensor_info,
    const char *mem_type);
OPENVINO_C_API(ov_status_e)
ov_preprocess_input_tensor_info_set_from(
    ov_preprocess_input_tensor_info_t *preprocess_input_tensor_info,
    const ov_tensor_t *tensor);
OPENVINO_C_API(ov_status_e)
ov_preprocess_input_tensor_info_set_layout(
    ov_preprocess_input_tensor_info_t *preprocess_input_tensor_info, ov_layout_t *layout);
OPENVINO_C_API(ov_status_e)
ov_preprocess_input_info_get_model_info(
    const ov_preprocess_input_info_t *preprocess_input_info,
    ov_preprocess_input_model_info_t **preprocess_input_model_info);
OPENVINO_C_API(void)
ov_preprocess_input_model_info_free(
    ov_preprocess_input_model_info_t *preprocess_input_model_info);
OPENVINO_C_API(ov_status_e)
ov_preprocess_input_model_info_set_layout(
    ov_preprocess_input_model_info_t *preprocess_input_model_info, ov_layout_t *layout);

/* ---- steps -------------------------------------------------------------------------- */

OPENVINO_C_API(ov_status_e)
ov_preprocess_input_info_get_preprocess_steps(
    const ov_preprocess_input_info_t *preprocess_input_info,
    ov_preprocess_preprocess_steps_t **preprocess_input_steps);
OPENVINO_C_API(void)
ov_preprocess_preprocess_steps_free(
    ov_preprocess_preprocess_steps_t *preprocess_input_process_steps);
OPENVINO_C_API(ov_status_e)
ov_preprocess_preprocess_steps_resize(
    ov_preprocess_preprocess_steps_t *preprocess_input_process_steps,
    const ov_preprocess_resize_algorithm_e resize_algorithm);
OPENVINO_C_API(ov_status_e)
ov_preprocess_preprocess_steps_scale(
    ov_preprocess_preprocess_steps_t *preprocess_input_process_steps, float value);
OPENVINO_C_API(ov_status_e)
ov_preprocess_preprocess_steps_scale_multi_channels(
    ov_preprocess_preprocess_steps_t *preprocess_input_process_steps, const float *values,
    const int32_t value_size);
OPENVINO_C_API(ov_status_e)
ov_preprocess_preprocess_steps_mean(
    ov_preprocess_preprocess_steps_t *preprocess_input_process_steps, float value);
OPENVINO_C_API(ov_status_e)
ov_preprocess_preprocess_steps_mean_multi_channels(
    ov_preprocess_preprocess_steps_t *preprocess_input_process_steps, const float *values,
    const int32_t value_size);
OPENVINO_C_API(ov_status_e)
ov_preprocess_preprocess_steps_crop(
    ov_preprocess_preprocess_steps_t *preprocess_input_process_steps, int32_t *begin,
    int32_t begin_size, int32_t *end, int32_t end_size);
OPENVINO_C_API(ov_status_e)
ov_preprocess_preprocess_steps_pad(
    const ov_preprocess_preprocess_steps_t *preprocess_input_process_steps,
    const int *pads_begin, size_t pads_begin_size, const int *pads_end,
    size_t pads_end_size, float value, ov_padding_mode_e mode);
OPENVINO_C_API(ov_status_e)
ov_preprocess_preprocess_steps_convert_layout(
    ov_preprocess_preprocess_steps_t *preprocess_input_process_steps,
    ov_layout_t *layout);
OPENVINO_C_API(ov_status_e)
ov_preprocess_preprocess_steps_reverse_channels(
    ov_preprocess_preprocess_steps_t *preprocess_input_process_steps);
OPENVINO_C_API(ov_status_e)
ov_preprocess_preprocess_steps_convert_element_type(
    ov_preprocess_preprocess_steps_t *preprocess_input_process_steps,
    const ov_element_type_e element_type);
OPENVINO_C_API(ov_status_e)
ov_preprocess_preprocess_steps_convert_color(
    ov_preprocess_preprocess_steps_t *preprocess_input_process_steps,
    const ov_color_format_e colorFormat);

/* ---- outputs ------------------------------------------------------------------------ */

OPENVINO_C_API(ov_status_e)
ov_preprocess_prepostprocessor_get_output_info(
    const ov_preprocess_prepostprocessor_t *preprocess,
    ov_preprocess_output_info_t **preprocess_output_info);
OPENVINO_C_API(ov_status_e)
ov_preprocess_prepostprocessor_get_output_info_by_index(
    const ov_preprocess_prepostprocessor_t *preprocess, const size_t tensor_index,
    ov_preprocess_output_info_t **preprocess_output_info);
OPENVINO_C_API(ov_status_e)
ov_preprocess_prepostprocessor_get_output_info_by_name(
    const ov_preprocess_prepostprocessor_t *preprocess, const char *tensor_name,
    ov_preprocess_output_info_t **preprocess_output_info);
OPENVINO_C_API(void)
ov_preprocess_output_info_free(ov_preprocess_output_info_t *preprocess_output_info);
OPENVINO_C_API(ov_status_e)
ov_preprocess_output_info_get_tensor_info(
    const ov_preprocess_output_info_t *preprocess_output_info,
    ov_preprocess_output_tensor_info_t **preprocess_output_tensor_info);
OPENVINO_C_API(void)
ov_preprocess_output_tensor_info_free(
    ov_preprocess_output_tensor_info_t *preprocess_output_tensor_info);
OPENVINO_C_API(ov_status_e)
ov_preprocess_output_set_element_type(
    ov_preprocess_output_tensor_info_t *preprocess_output_tensor_info,
    const ov_element_type_e element_type);

#endif
