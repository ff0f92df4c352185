/* SPDX-License-Identifier: Apache-2.0
 *
 * Setting and getting a request's tensors: by name, by port, by index, the only one.
 */
#include "plugin/api/api.h"

ov_status_e
ov_infer_request_set_tensor(ov_infer_request_t *infer_request, const char *tensor_name,
                            const ov_tensor_t *tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !tensor_name ||
        !xm_api_is(tensor, XM_API_TENSOR))
        return xm_api_refuse(__func__);
    return xm_api_slot_set(infer_request, xm_api_slot_by_name(infer_request, tensor_name),
                           tensor);
}

ov_status_e
ov_infer_request_set_tensor_by_port(ov_infer_request_t *infer_request,
                                    const ov_output_port_t *port,
                                    const ov_tensor_t *tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !xm_api_is(port, XM_API_PORT) ||
        !xm_api_is(tensor, XM_API_TENSOR))
        return xm_api_refuse(__func__);
    return xm_api_slot_set(infer_request,
                           xm_api_slot_by_port(infer_request, xm_api_port(port)), tensor);
}

ov_status_e
ov_infer_request_set_tensor_by_const_port(ov_infer_request_t *infer_request,
                                          const ov_output_const_port_t *port,
                                          const ov_tensor_t *tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !xm_api_is(port, XM_API_PORT) ||
        !xm_api_is(tensor, XM_API_TENSOR))
        return xm_api_refuse(__func__);
    return xm_api_slot_set(infer_request,
                           xm_api_slot_by_port(infer_request, xm_api_const_port(port)),
                           tensor);
}

ov_status_e
ov_infer_request_set_input_tensor_by_index(ov_infer_request_t *infer_request,
                                           const size_t idx, const ov_tensor_t *tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !xm_api_is(tensor, XM_API_TENSOR))
        return xm_api_refuse(__func__);
    return xm_api_slot_set(infer_request, xm_api_slot_by_index(infer_request, false, idx),
                           tensor);
}

ov_status_e
ov_infer_request_set_input_tensor(ov_infer_request_t *infer_request,
                                  const ov_tensor_t *tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !xm_api_is(tensor, XM_API_TENSOR))
        return xm_api_refuse(__func__);
    return xm_api_slot_set(infer_request, xm_api_slot_only(infer_request, false), tensor);
}

ov_status_e
ov_infer_request_set_output_tensor_by_index(ov_infer_request_t *infer_request,
                                            const size_t idx, const ov_tensor_t *tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !xm_api_is(tensor, XM_API_TENSOR))
        return xm_api_refuse(__func__);
    return xm_api_slot_set(infer_request, xm_api_slot_by_index(infer_request, true, idx),
                           tensor);
}

ov_status_e
ov_infer_request_set_output_tensor(ov_infer_request_t *infer_request,
                                   const ov_tensor_t *tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !xm_api_is(tensor, XM_API_TENSOR))
        return xm_api_refuse(__func__);
    return xm_api_slot_set(infer_request, xm_api_slot_only(infer_request, true), tensor);
}

ov_status_e
ov_infer_request_get_tensor(const ov_infer_request_t *infer_request,
                            const char *tensor_name, ov_tensor_t **tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !tensor_name || !tensor)
        return xm_api_refuse(__func__);
    return xm_api_slot_get(infer_request, xm_api_slot_by_name(infer_request, tensor_name),
                           tensor);
}

ov_status_e
ov_infer_request_get_tensor_by_const_port(const ov_infer_request_t *infer_request,
                                          const ov_output_const_port_t *port,
                                          ov_tensor_t **tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !xm_api_is(port, XM_API_PORT) ||
        !tensor)
        return xm_api_refuse(__func__);
    return xm_api_slot_get(infer_request,
                           xm_api_slot_by_port(infer_request, xm_api_const_port(port)),
                           tensor);
}

ov_status_e
ov_infer_request_get_tensor_by_port(const ov_infer_request_t *infer_request,
                                    const ov_output_port_t *port, ov_tensor_t **tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !xm_api_is(port, XM_API_PORT) ||
        !tensor)
        return xm_api_refuse(__func__);
    return xm_api_slot_get(infer_request,
                           xm_api_slot_by_port(infer_request, xm_api_port(port)), tensor);
}

ov_status_e
ov_infer_request_get_input_tensor_by_index(const ov_infer_request_t *infer_request,
                                           const size_t idx, ov_tensor_t **tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !tensor)
        return xm_api_refuse(__func__);
    return xm_api_slot_get(infer_request, xm_api_slot_by_index(infer_request, false, idx),
                           tensor);
}

ov_status_e
ov_infer_request_get_input_tensor(const ov_infer_request_t *infer_request,
                                  ov_tensor_t **tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !tensor)
        return xm_api_refuse(__func__);
    return xm_api_slot_get(infer_request, xm_api_slot_only(infer_request, false), tensor);
}

ov_status_e
ov_infer_request_get_output_tensor_by_index(const ov_infer_request_t *infer_request,
                                            const size_t idx, ov_tensor_t **tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !tensor)
        return xm_api_refuse(__func__);
    return xm_api_slot_get(infer_request, xm_api_slot_by_index(infer_request, true, idx),
                           tensor);
}

ov_status_e
ov_infer_request_get_output_tensor(const ov_infer_request_t *infer_request,
                                   ov_tensor_t **tensor)
{
    if (!xm_api_is(infer_request, XM_API_REQUEST) || !tensor)
        return xm_api_refuse(__func__);
    return xm_api_slot_get(infer_request, xm_api_slot_only(infer_request, true), tensor);
}
