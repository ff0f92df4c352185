/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations. Swish: Ramachandran et al. 2017; GELU, exact and with tanh: Hendrycks and
 * Gimpel 2016.
 */
#include <math.h>

#include "runtime/reference/reference.h"

const char *
xm_activation_text(enum xm_activation a)
{
    switch (a) {
    case XM_ACT_SWISH:
        return "swish";
    case XM_ACT_GELU_TANH:
        return "gelu_tanh";
    case XM_ACT_GELU_ERF:
        return "gelu_erf";
    default:
        return "unknown";
    }
}

float
xm_ref_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

float
xm_ref_activation(enum xm_activation a, float beta, float x)
{
    const float sqrt_2_over_pi = 0.79788456080286536f;
    const float sqrt_half = 0.70710678118654752f;
    switch (a) {
    case XM_ACT_GELU_TANH:
        return 0.5f * x * (1.0f + tanhf(sqrt_2_over_pi * (x + 0.044715f * x * x * x)));
    case XM_ACT_GELU_ERF:
        return 0.5f * x * (1.0f + erff(x * sqrt_half));
    default:
        return x * xm_ref_sigmoid(beta * x);
    }
}
