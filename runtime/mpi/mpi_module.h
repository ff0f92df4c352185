/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of the module libxemoe_mpi.so to runtime/collective_mpi.c. Only the module calls
 * MPI. */
#ifndef XM_RUNTIME_MPI_MPI_MODULE_H
#define XM_RUNTIME_MPI_MPI_MODULE_H

#include "runtime/collective.h"

#define XM_MPI_MODULE        "libxemoe_mpi.so"
#define XM_MPI_MODULE_SYMBOL "xm_mpi_module"

/* The functions of collective_mpi.h. `say`: see xm_mpi_watch_start. */
struct xm_mpi_module {
    const char *version; /* XM_VERSION of the module's build; must be equal */
    enum xm_status (*create)(const bool *members, void (*say)(const char *sentence),
                             struct xm_collective **out, struct xm_error *err);
    void (*free)(struct xm_collective *c);
    void (*end)(int exit_code);
};

#endif
