/* SPDX-License-Identifier: Apache-2.0
 *
 * What the module libxemoe_mpi.so gives to runtime/collective_mpi.c: the only file that knows MPI.
 */
#ifndef XM_RUNTIME_MPI_MPI_MODULE_H
#define XM_RUNTIME_MPI_MPI_MODULE_H

#include "runtime/collective.h"

#define XM_MPI_MODULE        "libxemoe_mpi.so"
#define XM_MPI_MODULE_SYMBOL "xm_mpi_module"

/* The members of collective_mpi.h. */
struct xm_mpi_module {
    const char *version; /* XM_VERSION: both are of one build */
    enum xm_status (*create)(struct xm_collective **out, struct xm_error *err);
    void (*free)(struct xm_collective *c);
    void (*end)(int exit_code);
};

#endif
