/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sample programs in this folder share: a failed call ends the program.
 */
#ifndef XM_FUNCTIONAL_TESTS_GENAI_SAMPLE_H
#define XM_FUNCTIONAL_TESTS_GENAI_SAMPLE_H

#include <stdio.h>
#include <stdlib.h>

#define TRY(call)                                                                        \
    do {                                                                                 \
        const int status_ = (int)(call);                                                 \
        if (status_ != 0) {                                                              \
            fprintf(stderr, "[ERROR] return status %d, line %d\n", status_, __LINE__);   \
            exit(EXIT_FAILURE);                                                          \
        }                                                                                \
    } while (0)

#endif
