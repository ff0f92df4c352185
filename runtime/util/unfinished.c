/* SPDX-License-Identifier: Apache-2.0
 *
 * A signal handler runs in any thread, beside the threads that write. So the table is lock-free,
 * and running handlers are counted: a thread that removes a path waits until no handler reads the
 * table.
 */
#include "runtime/util/unfinished.h"

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

_Static_assert(ATOMIC_POINTER_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "handlers may use atomics only where these need no lock");

static _Atomic(const char *) paths[XM_MOST_UNFINISHED];
static atomic_int removing; /* number of handlers that read the table now */

void
xm_unfinished_add(const char *path)
{
    for (int i = 0; i < XM_MOST_UNFINISHED; i++) {
        const char *none = NULL;
        if (atomic_compare_exchange_strong(&paths[i], &none, path))
            return;
    }
}

void
xm_unfinished_drop(const char *path)
{
    for (int i = 0; i < XM_MOST_UNFINISHED; i++) {
        const char *own = path;
        if (atomic_compare_exchange_strong(&paths[i], &own, NULL))
            break;
    }
    while (removing)
        sched_yield();
}

void
xm_unfinished_remove(void)
{
    removing++;
    for (int i = 0; i < XM_MOST_UNFINISHED; i++) {
        const char *path = paths[i];
        if (path)
            unlink(path);
    }
    removing--;
}
