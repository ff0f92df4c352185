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
    static const char *const text[] = {
#define ACTIVATION(id, text, formula) text,
#include "runtime/operations/activations.def"
    };
    return a < XM_ACT_COUNT ? text[a] : "unknown";
}

float
xm_ref_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

float
xm_ref_activation(enum xm_activation a, float beta, float x)
{
    switch (a) {
#define ACTIVATION(id, text, formula)                                                    \
    case XM_ACT_##id:                                                                    \
        return formula;
#include "runtime/operations/activations.def"
    default:
        return NAN;
    }
}
