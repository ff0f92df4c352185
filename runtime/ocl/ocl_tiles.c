/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks for permission to use the tiles of AMX. Linux gives it to the whole process, existing
 * threads included, and refuses it if a thread's alternate signal stack is too small for the
 * tiles. */
#include <pthread.h>

#include "runtime/ocl/ocl.h"
#include "runtime/util/log.h"

#if defined(__linux__) && defined(__x86_64__)
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    REQUEST_PERMISSION = 0x1023,
    TILE_DATA = 18
}; /* ARCH_REQ_XCOMP_PERM of asm/prctl.h, and the number of the tile data */

static bool
ask(void)
{
    if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0)
        return true;
    xm_debug(XM_DEBUG_DISPATCH,
             "AMX is not used: the system does not let this process use its tiles: %s",
             strerror(errno));
    return false;
}
#else
static bool
ask(void)
{
    return false;
}
#endif

static bool is_given;

static void
ask_once(void)
{
    is_given = ask();
}

void
xm_ocl_ask_for_tiles(struct xm_device_info *device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!xm_device_has(device, XM_CAP_AMX))
        return;
    pthread_once(&once, ask_once);
    if (!is_given)
        device->caps &= ~(uint32_t)XM_CAP_AMX;
}
