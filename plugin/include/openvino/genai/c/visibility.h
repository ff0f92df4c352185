/* SPDX-License-Identifier: Apache-2.0
 *
 * How the functions of the GenAI C API are declared.
 */
#ifndef OPENVINO_GENAI_C_VISIBILITY_H
#define OPENVINO_GENAI_C_VISIBILITY_H

#include "openvino/c/ov_common.h"

#define OPENVINO_GENAI_C_EXPORTS OPENVINO_C_API_EXTERN OPENVINO_C_API_VISIBLE

#endif
