/* SPDX-License-Identifier: Apache-2.0
 *
 * Image pre-processing is not implemented: each function refuses, with its name in the error.
 */
#include "openvino/c/ov_prepostprocess.h"

#include "plugin/api/api.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" /* none of the arguments is used */

static ov_status_e
refuse(const char *name)
{
    return xm_api_fail(NOT_IMPLEMENT_C_METHOD, "%s: image preprocessing is not supported",
                       name);
}

#define REFUSED(name, ...)                                                               \
    ov_status_e name(__VA_ARGS__)                                                        \
    {                                                                                    \
        return refuse(#name);                                                            \
    }
#define NO_FREE(name, type)                                                              \
    void name(type)                                                                      \
    {                                                                                    \
    }

/* clang-format off */
REFUSED(ov_preprocess_prepostprocessor_create, const ov_model_t *model,
        ov_preprocess_prepostprocessor_t **preprocess)
NO_FREE(ov_preprocess_prepostprocessor_free, ov_preprocess_prepostprocessor_t *preprocess)
REFUSED(ov_preprocess_prepostprocessor_build, const ov_preprocess_prepostprocessor_t *preprocess,
        ov_model_t **model)
REFUSED(ov_preprocess_prepostprocessor_get_input_info, const ov_preprocess_prepostprocessor_t
        *preprocess, ov_preprocess_input_info_t **preprocess_input_info)
REFUSED(ov_preprocess_prepostprocessor_get_input_info_by_name, const
        ov_preprocess_prepostprocessor_t *preprocess, const char *tensor_name,
        ov_preprocess_input_info_t **preprocess_input_info)
REFUSED(ov_preprocess_prepostprocessor_get_input_info_by_index, const
        ov_preprocess_prepostprocessor_t *preprocess, const size_t tensor_index,
        ov_preprocess_input_info_t **preprocess_input_info)
NO_FREE(ov_preprocess_input_info_free, ov_preprocess_input_info_t *preprocess_input_info)
REFUSED(ov_preprocess_input_info_get_tensor_info, const ov_preprocess_input_info_t
        *preprocess_input_info, ov_preprocess_input_tensor_info_t **preprocess_input_tensor_info)
NO_FREE(ov_preprocess_input_tensor_info_free, ov_preprocess_input_tensor_info_t *preprocess_input_tensor_info)
REFUSED(ov_preprocess_input_tensor_info_set_element_type, ov_preprocess_input_tensor_info_t
        *preprocess_input_tensor_info, const ov_element_type_e element_type)
REFUSED(ov_preprocess_input_tensor_info_set_color_format, ov_preprocess_input_tensor_info_t
        *preprocess_input_tensor_info, const ov_color_format_e colorFormat)
REFUSED(ov_preprocess_input_tensor_info_set_color_format_with_subname,
        ov_preprocess_input_tensor_info_t *preprocess_input_tensor_info, const ov_color_format_e
        colorFormat, const size_t sub_names_size, ...)
REFUSED(ov_preprocess_input_tensor_info_set_color_format_with_subnames,
        ov_preprocess_input_tensor_info_t *preprocess_input_tensor_info, const ov_color_format_e
        colorFormat, const size_t sub_names_size, const char **sub_names)
REFUSED(ov_preprocess_input_tensor_info_set_spatial_static_shape,
        ov_preprocess_input_tensor_info_t *preprocess_input_tensor_info, const size_t
        input_height, const size_t input_width)
REFUSED(ov_preprocess_input_tensor_info_set_memory_type, ov_preprocess_input_tensor_info_t
        *preprocess_input_tensor_info, const char *mem_type)
REFUSED(ov_preprocess_input_tensor_info_set_from, ov_preprocess_input_tensor_info_t
        *preprocess_input_tensor_info, const ov_tensor_t *tensor)
REFUSED(ov_preprocess_input_tensor_info_set_layout, ov_preprocess_input_tensor_info_t
        *preprocess_input_tensor_info, ov_layout_t *layout)
REFUSED(ov_preprocess_input_info_get_model_info, const ov_preprocess_input_info_t
        *preprocess_input_info, ov_preprocess_input_model_info_t **preprocess_input_model_info)
NO_FREE(ov_preprocess_input_model_info_free, ov_preprocess_input_model_info_t *preprocess_input_model_info)
REFUSED(ov_preprocess_input_model_info_set_layout, ov_preprocess_input_model_info_t
        *preprocess_input_model_info, ov_layout_t *layout)
REFUSED(ov_preprocess_input_info_get_preprocess_steps, const ov_preprocess_input_info_t
        *preprocess_input_info, ov_preprocess_preprocess_steps_t **preprocess_input_steps)
NO_FREE(ov_preprocess_preprocess_steps_free, ov_preprocess_preprocess_steps_t *preprocess_input_process_steps)
REFUSED(ov_preprocess_preprocess_steps_resize, ov_preprocess_preprocess_steps_t
        *preprocess_input_process_steps, const ov_preprocess_resize_algorithm_e resize_algorithm)
REFUSED(ov_preprocess_preprocess_steps_scale, ov_preprocess_preprocess_steps_t
        *preprocess_input_process_steps, float value)
REFUSED(ov_preprocess_preprocess_steps_scale_multi_channels, ov_preprocess_preprocess_steps_t
        *preprocess_input_process_steps, const float *values, const int32_t value_size)
REFUSED(ov_preprocess_preprocess_steps_mean, ov_preprocess_preprocess_steps_t
        *preprocess_input_process_steps, float value)
REFUSED(ov_preprocess_preprocess_steps_mean_multi_channels, ov_preprocess_preprocess_steps_t
        *preprocess_input_process_steps, const float *values, const int32_t value_size)
REFUSED(ov_preprocess_preprocess_steps_crop, ov_preprocess_preprocess_steps_t
        *preprocess_input_process_steps, int32_t *begin, int32_t begin_size, int32_t *end, int32_t
        end_size)
REFUSED(ov_preprocess_preprocess_steps_pad, const ov_preprocess_preprocess_steps_t
        *preprocess_input_process_steps, const int *pads_begin, size_t pads_begin_size, const int
        *pads_end, size_t pads_end_size, float value, ov_padding_mode_e mode)
REFUSED(ov_preprocess_preprocess_steps_convert_layout, ov_preprocess_preprocess_steps_t
        *preprocess_input_process_steps, ov_layout_t *layout)
REFUSED(ov_preprocess_preprocess_steps_reverse_channels, ov_preprocess_preprocess_steps_t
        *preprocess_input_process_steps)
REFUSED(ov_preprocess_preprocess_steps_convert_element_type, ov_preprocess_preprocess_steps_t
        *preprocess_input_process_steps, const ov_element_type_e element_type)
REFUSED(ov_preprocess_preprocess_steps_convert_color, ov_preprocess_preprocess_steps_t
        *preprocess_input_process_steps, const ov_color_format_e colorFormat)
REFUSED(ov_preprocess_prepostprocessor_get_output_info, const ov_preprocess_prepostprocessor_t
        *preprocess, ov_preprocess_output_info_t **preprocess_output_info)
REFUSED(ov_preprocess_prepostprocessor_get_output_info_by_index, const
        ov_preprocess_prepostprocessor_t *preprocess, const size_t tensor_index,
        ov_preprocess_output_info_t **preprocess_output_info)
REFUSED(ov_preprocess_prepostprocessor_get_output_info_by_name, const
        ov_preprocess_prepostprocessor_t *preprocess, const char *tensor_name,
        ov_preprocess_output_info_t **preprocess_output_info)
NO_FREE(ov_preprocess_output_info_free, ov_preprocess_output_info_t *preprocess_output_info)
REFUSED(ov_preprocess_output_info_get_tensor_info, const ov_preprocess_output_info_t
        *preprocess_output_info, ov_preprocess_output_tensor_info_t
        **preprocess_output_tensor_info)
NO_FREE(ov_preprocess_output_tensor_info_free, ov_preprocess_output_tensor_info_t *preprocess_output_tensor_info)
REFUSED(ov_preprocess_output_set_element_type, ov_preprocess_output_tensor_info_t
        *preprocess_output_tensor_info, const ov_element_type_e element_type)
/* clang-format on */
